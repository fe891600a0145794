/* Reads argv, takes the lock, starts the unit, says how that went, and waits for its end. */
#define _GNU_SOURCE
#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void report(int to, const char *format, unsigned long long first, unsigned long long second) {
  char line[128];
  if (to < 0) return;
  int length = snprintf(line, sizeof line, format, first, second);
  ssize_t done = write(to, line, (size_t)length);
  (void)done; /* an agent that is gone asks the run directory later */
}

static _Noreturn void broken(const struct options *options, const char *what) {
  report(options->report, "broken\n", 0, 0);
  dprintf(STDERR_FILENO, "keyplane-shim: %s: %s\n", what, strerror(errno));
  exit(EXIT_BROKEN);
}

static void read_groups(struct options *options, const char *text) {
  options->groups = calloc(strlen(text) / 2 + 1, sizeof *options->groups);
  if (options->groups == NULL) broken(options, "groups");
  for (char *next; *text != '\0'; text = *next == ',' ? next + 1 : next) {
    options->groups[options->group_count++] = (gid_t)strtoul(text, &next, 10);
    if (next == text) exit(EXIT_USAGE);
  }
}

/* One option. False if there is none of that name. */
static bool read_option(struct options *options, const char *name, const char *value) {
  const struct {
    const char *name;
    const char **text;
  } texts[] = {{"--run", &options->run},         {"--log", &options->log},
               {"--cwd", &options->cwd},         {"--bare-cwd", &options->bare_cwd},
               {"--state", &options->state},     {"--mountpoint", &options->mountpoint}};
  const struct {
    const char *name;
    long long *number;
  } numbers[] = {{"--log-max", &options->log_max},
                 {"--uid", &options->uid},
                 {"--gid", &options->gid},
                 {"--memory", &options->memory}};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    if (strcmp(name, texts[i].name) == 0) return *texts[i].text = value, true;
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    if (strcmp(name, numbers[i].name) == 0) return *numbers[i].number = atoll(value), true;
  if (strcmp(name, "--log-keep") == 0) return options->log_keep = atoi(value), true;
  if (strcmp(name, "--report") == 0) return options->report = atoi(value), true;
  if (strcmp(name, "--timeout") == 0) return options->timeout_ms = atoi(value), true;
  if (strcmp(name, "--groups") == 0) return read_groups(options, value), true;
  if (strcmp(name, "--path") == 0) return options->paths[options->path_count++] = value, true;
  if (strcmp(name, "--cgroup") == 0) return options->cgroups[options->cgroup_count++] = value, true;
  if (strcmp(name, "--note") == 0) return options->notes[options->note_count++] = value, true;
  return false;
}

static void read_options(struct options *options, int argc, char **argv) {
  int i = 1;
  options->paths = calloc((size_t)argc, sizeof *options->paths);
  options->notes = calloc((size_t)argc, sizeof *options->notes);
  options->cgroups = calloc((size_t)argc, sizeof *options->cgroups);
  if (options->paths == NULL || options->notes == NULL || options->cgroups == NULL) broken(options, "arguments");
  for (; i + 1 < argc && strcmp(argv[i], "--") != 0; i += 2) {
    if (!read_option(options, argv[i], argv[i + 1])) {
      dprintf(STDERR_FILENO, "keyplane-shim: no option %s\n", argv[i]);
      exit(EXIT_USAGE);
    }
  }
  if (i + 1 >= argc || (options->run != NULL) != (options->log != NULL)) {
    dprintf(STDERR_FILENO, "keyplane-shim: usage: [--run DIR --log FILE] OPTIONS -- COMMAND…\n");
    exit(EXIT_USAGE);
  }
  options->command = argv + i + 1;
}

/* A record lock, as it is not inherited by the unit, ends with this process and no earlier, and
 * tells who asks (F_GETLK) the holder's pid without being taken for a moment. */
static void take_lock(const struct options *options, int directory) {
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  int file = openat(directory, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) broken(options, options->run);
  if (fcntl(file, F_SETLK, &lock) == 0) return;
  if (errno != EAGAIN && errno != EACCES) broken(options, options->run);
  report(options->report, "held\n", 0, 0);
  exit(EXIT_HELD);
}

/* What an agent had set for itself is nothing to the unit: Python ignores SIGPIPE, for one. */
static void reset_signals(void) {
  for (int number = 1; number < NSIG; number++) signal(number, SIG_DFL);
  signal(SIGPIPE, SIG_IGN); /* the shim's own; the child resets it */
}

static int run(const struct options *options, struct status *status) {
  bool supervised = options->run != NULL, rooted = false;
  struct log *log = NULL;
  int output[2] = {-1, -1}, signals;
  if (supervised) {
    log = log_open(options->log, options->log_max, options->log_keep);
    if (log == NULL) broken(options, options->log);
    if (pipe2(output, O_CLOEXEC) != 0) broken(options, "pipe");
  }
  if (options->state != NULL && options->mountpoint != NULL) {
    char why[TEXT_MAX / 2];
    rooted = private_root(options, why, sizeof why);
    if (!rooted)
      status_note(status, "declared paths stand under $KEYPLANE_ROOT: no private root (%s)", why);
    else if (why[0] != '\0')
      status_note(status, "%s", why);
  }
  signals = watch_signals();
  if (signals < 0) broken(options, "signalfd");
  pid_t pid = child_start(options, rooted, output[1], status->cause, sizeof status->cause);
  if (supervised) close(output[1]);
  if (pid < 0) {
    if (supervised) status_write(status);
    report(options->report, "failed\n", 0, 0);
    if (!supervised) dprintf(STDERR_FILENO, "%s\n", status->cause);
    return supervised ? EXIT_NOT_STARTED : 127;
  }
  status->pid = pid;
  status->start_ticks = start_ticks_of(pid);
  if (supervised) status_write(status);
  report(options->report, "started %llu %llu\n", (unsigned long long)pid, status->start_ticks);
  if (options->report >= 0) close(options->report);
  status->wait_status = watch(pid, signals, output[0], log, options->timeout_ms, status);
  status->ended = true;
  if (supervised) {
    log_finish(log);
    status_write(status);
    return 0;
  }
  if (WIFSIGNALED(status->wait_status)) return 128 + WTERMSIG(status->wait_status);
  return WEXITSTATUS(status->wait_status);
}

int main(int argc, char **argv) {
  static struct status status = {.directory = -1};
  static struct options options = {.report = -1, .uid = -1, .gid = -1, .timeout_ms = -1};
  read_options(&options, argc, argv);
  reset_signals();
  umask(022);
  if (options.report >= 0) fcntl(options.report, F_SETFD, FD_CLOEXEC);
  if (options.run != NULL) {
    status.directory = open(options.run, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (status.directory < 0) broken(&options, options.run);
    take_lock(&options, status.directory);
    unlinkat(status.directory, "status", 0); /* of the one that ran here before */
  }
  if (chdir("/") != 0) broken(&options, "/"); /* else we would keep the agent's in use */
  /* Whatever of the unit loses its parent becomes our child, and cannot be lost sight of. */
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) broken(&options, "subreaper");
  for (int i = 0; i < options.note_count; i++) status_note(&status, "%s", options.notes[i]);
  return run(&options, &status);
}
