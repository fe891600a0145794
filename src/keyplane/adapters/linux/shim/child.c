/* From fork to exec: account, limits, directory; and the exact reason if that fails. */
#define _GNU_SOURCE
#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* What the dynamic loader obeys reaches us under this prefix: the shim may be root where the
 * unit is not, and a shim that is linked dynamically must not load the unit's libraries. */
static const char PASSED[] = "KEYPLANE_PASSED_";

static void restore_passed(void) {
  for (char **at = environ; *at != NULL; at++)
    if (strncmp(*at, PASSED, sizeof PASSED - 1) == 0) *at += sizeof PASSED - 1;
}

static _Noreturn void give_up(int to, const char *what, const char *path) {
  char text[TEXT_MAX];
  int length = snprintf(text, sizeof text, "%s %.4096s: %s", what, path, strerror(errno));
  ssize_t done = write(to, text, (size_t)length);
  (void)done;
  _exit(127);
}

static void become(const struct options *options, int failure) {
  char number[32];
  if (options->gid >= 0) {
    snprintf(number, sizeof number, "%lld", options->gid);
    if (setgroups((size_t)options->group_count, options->groups) != 0)
      give_up(failure, "cannot take the groups of account", number);
    if (setresgid((gid_t)options->gid, (gid_t)options->gid, (gid_t)options->gid) != 0)
      give_up(failure, "cannot become group", number);
  }
  if (options->uid >= 0) {
    uid_t uid = (uid_t)options->uid;
    snprintf(number, sizeof number, "%lld", options->uid);
    if (setresuid(uid, uid, uid) != 0) give_up(failure, "cannot become account", number);
  }
}

static void limit(const struct options *options, int failure) {
  for (int i = 0; i < options->cgroup_count; i++) {
    char path[4096];
    snprintf(path, sizeof path, "%s/cgroup.procs", options->cgroups[i]);
    int group = open(path, O_WRONLY | O_CLOEXEC);
    if (group < 0 || write(group, "0", 1) != 1)
      give_up(failure, "cannot enter control group", options->cgroups[i]);
    close(group);
  }
  if (options->memory > 0) {
    struct rlimit bytes = {(rlim_t)options->memory, (rlim_t)options->memory};
    if (setrlimit(RLIMIT_DATA, &bytes) != 0) give_up(failure, "cannot limit", "memory");
  }
}

static _Noreturn void child(const struct options *options, bool rooted, int output, pid_t shim,
                            int failure) {
  const char *cwd = rooted || options->bare_cwd == NULL ? options->cwd : options->bare_cwd;
  sigset_t none;
  setsid();
  int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null >= 0) dup2(null, STDIN_FILENO);
  if (output >= 0) {
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
  }
  limit(options, failure);
  become(options, failure);
  /* After the change of account, which would clear it. */
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != shim) _exit(127);
  if (cwd != NULL && chdir(cwd) != 0) give_up(failure, "cannot enter working directory", cwd);
  signal(SIGPIPE, SIG_DFL);
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  restore_passed();
#ifdef SYS_close_range
  syscall(SYS_close_range, 3, ~0U, 4 /* CLOSE_RANGE_CLOEXEC */);
#endif
  execvpe(options->command[0], options->command, environ);
  give_up(failure, "cannot execute", options->command[0]);
}

pid_t child_start(const struct options *options, bool rooted, int output, char *cause,
                  size_t size) {
  int failure[2];
  pid_t shim = getpid(), pid;
  cause[0] = '\0';
  if (options->state != NULL && !rooted) {
    char place[4096];
    snprintf(place, sizeof place, "%s/root", options->state);
    setenv("KEYPLANE_ROOT", place, 1);
  }
  if (pipe2(failure, O_CLOEXEC) != 0 || (pid = fork()) < 0) {
    snprintf(cause, size, "cannot fork: %s", strerror(errno));
    return -1;
  }
  if (pid == 0) child(options, rooted, output, shim, failure[1]);
  close(failure[1]);
  size_t used = 0;
  for (ssize_t count; used < size - 1; used += (size_t)count) {
    count = read(failure[0], cause + used, size - 1 - used);
    if (count < 0 && errno == EINTR) count = 0;
    else if (count <= 0) break;
  }
  cause[used] = '\0';
  for (char *at = cause; *at != '\0'; at++)
    if (*at == '\n') *at = ' '; /* it becomes one line of the status */
  close(failure[0]);
  if (used == 0) return pid;
  waitpid(pid, NULL, 0);
  return -1;
}
