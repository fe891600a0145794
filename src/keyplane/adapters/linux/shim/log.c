/* The unit's log: each line with the time at which it was read, rotated by size.
 *
 * A log that cannot be written never stops the unit: lines are dropped and counted, and the
 * count is written as soon as there is room again. Several shims may write one log (a unit that
 * is handed over): all append, and who finds that another has rotated opens the new file. */
#define _GNU_SOURCE
#include "shim.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 16384 }; /* a longer line is cut, so that a unit cannot fill our memory */

struct log {
  int directory, file, keep;
  long long max, size, dropped;
  char name[256];
  char time[48];
  char line[LINE_MAX_BYTES + 1];
  size_t used;
  char gather[8 * LINE_MAX_BYTES]; /* whole lines that are written together */
  size_t gathered;
};

static bool open_file(struct log *log) {
  struct stat now;
  if (log->file >= 0) close(log->file);
  log->file = openat(log->directory, log->name,
                     O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0640);
  log->size = log->file >= 0 && fstat(log->file, &now) == 0 ? now.st_size : 0;
  return log->file >= 0;
}

struct log *log_open(const char *path, long long max, int keep) {
  struct log *log = calloc(1, sizeof *log);
  const char *slash = strrchr(path, '/');
  char folder[4096];
  if (log == NULL || slash == NULL || strlen(slash + 1) >= sizeof log->name) return NULL;
  snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
  snprintf(log->name, sizeof log->name, "%s", slash + 1);
  log->max = max;
  log->keep = keep;
  log->file = -1;
  log->directory = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return log->directory >= 0 && open_file(log) ? log : NULL;
}

static void rotate(struct log *log) {
  char from[sizeof log->name + 16], to[sizeof log->name + 16];
  struct stat ours, named;
  bool rotated_by_another = fstat(log->file, &ours) == 0 &&
                            (fstatat(log->directory, log->name, &named, 0) != 0 ||
                             named.st_ino != ours.st_ino);
  for (int number = log->keep; number > 0 && !rotated_by_another; number--) {
    snprintf(to, sizeof to, "%s.%d", log->name, number);
    if (number > 1)
      snprintf(from, sizeof from, "%s.%d", log->name, number - 1);
    else
      snprintf(from, sizeof from, "%s", log->name);
    renameat(log->directory, from, log->directory, to);
  }
  if (log->keep == 0) unlinkat(log->directory, log->name, 0);
  open_file(log);
}

/* The time at which lines are read, once for all that came together. */
static void take_time(struct log *log) {
  struct timespec now;
  struct tm parts;
  clock_gettime(CLOCK_REALTIME, &now);
  gmtime_r(&now.tv_sec, &parts);
  size_t length = strftime(log->time, sizeof log->time, "%Y-%m-%dT%H:%M:%S", &parts);
  snprintf(log->time + length, sizeof log->time - length, ".%03ldZ ", now.tv_nsec / 1000000);
}

static long long count_lines(const char *bytes, size_t count) {
  long long lines = 0;
  for (const char *at = bytes; (at = memchr(at, '\n', count - (size_t)(at - bytes))) != NULL; at++)
    lines++;
  return lines;
}

/* Writes what is gathered. Lines for which there is no room are counted, no half line stays. */
static void flush(struct log *log) {
  ssize_t done = -1;
  if (log->gathered == 0) return;
  if (log->file >= 0 || open_file(log)) done = write(log->file, log->gather, log->gathered);
  if (done > 0) log->size += done;
  size_t whole = done > 0 ? (size_t)done : 0;
  while (whole > 0 && log->gather[whole - 1] != '\n') whole--;
  if (done > (ssize_t)whole && ftruncate(log->file, log->size - (done - (ssize_t)whole)) == 0)
    log->size -= done - (ssize_t)whole;
  log->dropped += count_lines(log->gather + whole, log->gathered - whole);
  log->gathered = 0;
}

static void gather(struct log *log, const char *text, size_t count) {
  size_t stamp = strlen(log->time), line = stamp + count + 1;
  if (log->gathered + line > sizeof log->gather) flush(log);
  if (log->max > 0 && log->size + (long long)(log->gathered + line) > log->max) {
    flush(log);
    if (log->size > 0) rotate(log);
  }
  memcpy(log->gather + log->gathered, log->time, stamp);
  memcpy(log->gather + log->gathered + stamp, text, count);
  log->gather[log->gathered + line - 1] = '\n';
  log->gathered += line;
}

static void write_line(struct log *log) {
  if (log->dropped > 0) {
    char text[96];
    flush(log);
    long long dropped = log->dropped;
    int length = snprintf(text, sizeof text,
                          "keyplane: %lld lines were lost here: no room for the log", dropped);
    gather(log, text, (size_t)length);
    log->dropped = 0;
    flush(log);
    if (log->dropped > 0) log->dropped = dropped; /* still no room, not even to say so */
  }
  if (log->dropped > 0)
    log->dropped++;
  else
    gather(log, log->line, log->used);
  log->used = 0;
}

void log_take(struct log *log, const char *bytes, size_t count) {
  take_time(log);
  while (count > 0) {
    const char *end = memchr(bytes, '\n', count);
    size_t part = end != NULL ? (size_t)(end - bytes) : count, room = LINE_MAX_BYTES - log->used;
    bool cut = part > room;
    if (cut) part = room;
    memcpy(log->line + log->used, bytes, part);
    log->used += part;
    if (cut || end != NULL) write_line(log);
    part += !cut && end != NULL;
    bytes += part;
    count -= part;
  }
  flush(log);
}

void log_finish(struct log *log) {
  if (log->used == 0) return;
  take_time(log);
  write_line(log);
  flush(log);
}
