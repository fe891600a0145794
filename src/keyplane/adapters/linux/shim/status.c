/* RUN/status: lines of a word and a value, replaced whole. Not synced: a machine that lost its
 * power lost the process too, and `boot` tells. */
#define _GNU_SOURCE
#include "shim.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static ssize_t read_file(const char *path, char *text, size_t size) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t count = file < 0 ? -1 : read(file, text, size - 1);
  if (file >= 0) close(file);
  text[count < 0 ? 0 : count] = '\0';
  return count;
}

unsigned long long start_ticks_of(pid_t pid) {
  char path[64], text[1024];
  unsigned long long ticks = 0;
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  if (read_file(path, text, sizeof text) <= 0) return 0;
  /* The command's name may hold anything: fields are counted from the last parenthesis. */
  char *field = strrchr(text, ')');
  for (int i = 0; field != NULL && i < 20; i++) field = strchr(field + 1, ' ');
  if (field != NULL) sscanf(field, " %llu", &ticks);
  return ticks;
}

void status_note(struct status *status, const char *format, ...) {
  size_t used = strlen(status->notes), room = sizeof status->notes - used;
  va_list arguments;
  if (room < 16) return;
  int label = snprintf(status->notes + used, room, "note ");
  va_start(arguments, format);
  vsnprintf(status->notes + used + label, room - (size_t)label - 1, format, arguments);
  va_end(arguments);
  for (char *at = status->notes + used; *at != '\0'; at++)
    if (*at == '\n') *at = ' ';
  strcat(status->notes, "\n");
}

bool status_write(const struct status *status) {
  char text[3 * TEXT_MAX], boot[64];
  int length = 0, file;
  if (read_file("/proc/sys/kernel/random/boot_id", boot, sizeof boot) > 0)
    length += snprintf(text + length, sizeof text - (size_t)length, "boot %s", boot);
  if (status->pid > 0)
    length += snprintf(text + length, sizeof text - (size_t)length, "pid %d\nstart %llu\n",
                       (int)status->pid, status->start_ticks);
  length += snprintf(text + length, sizeof text - (size_t)length, "%s", status->notes);
  if (status->cause[0] != '\0')
    length += snprintf(text + length, sizeof text - (size_t)length, "cause %s\n", status->cause);
  if (status->ended && WIFSIGNALED(status->wait_status))
    length += snprintf(text + length, sizeof text - (size_t)length, "signal %d\n",
                       WTERMSIG(status->wait_status));
  else if (status->ended)
    length += snprintf(text + length, sizeof text - (size_t)length, "exit %d\n",
                       WEXITSTATUS(status->wait_status));
  if (status->ended && status->asked)
    length += snprintf(text + length, sizeof text - (size_t)length, "asked yes\n");
  file = openat(status->directory, "status.new",
                O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return false;
  bool whole = write(file, text, (size_t)length) == length;
  close(file);
  return whole && renameat(status->directory, "status.new", status->directory, "status") == 0;
}
