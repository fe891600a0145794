/* keyplane-shim: stands between an agent, which may be restarted at any time, and one unit.
 *
 * It decides nothing. It holds the lock that says "this unit runs under this digest", records
 * pid and exit, owns the log, and leaves no process behind. The agent says everything in argv;
 * the unit's environment is the shim's own.
 *
 * Signals: TERM is passed on to the unit's process group (with CONT, as systemd does). The shim
 * never kills on a timeout of its own: who stops a unit knows how long it may take, and sends
 * USR1, upon which everything below the shim is killed.
 */
#ifndef KEYPLANE_SHIM_H
#define KEYPLANE_SHIM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum {
  EXIT_HELD = 17,        /* another shim holds the lock */
  EXIT_NOT_STARTED = 18, /* the command could not be executed; status says why */
  EXIT_USAGE = 64,
  EXIT_BROKEN = 71, /* the shim could not do its own work: no descriptors, no run directory */
};

enum { TEXT_MAX = 8192 }; /* of a cause or a note: two longest paths and a sentence */

struct options {
  const char *run;      /* run directory; none when the command runs once */
  const char *log;      /* log file */
  long long log_max;    /* bytes after which it is rotated */
  int log_keep;         /* rotated files that are kept */
  int report;           /* descriptor that hears `started`, `failed` or `held` */
  const char *cwd;      /* as the unit sees it */
  const char *bare_cwd; /* the same without a private root */
  long long uid, gid;   /* -1: as they are */
  gid_t *groups;
  int group_count;
  const char *mountpoint; /* a directory of ours under which a private root is built */
  const char *state;  /* state root whose `root` and `artifacts` a private root shows */
  const char **paths; /* declared paths that appear in a private root */
  int path_count;
  const char **cgroups; /* directories of control groups that the unit enters */
  int cgroup_count;
  long long memory; /* bytes of data each process may have; 0: no limit */
  const char **notes;
  int note_count;
  int timeout_ms; /* of a command that runs once */
  char **command;
};

/* status.c */
struct status {
  int directory;
  pid_t pid;
  unsigned long long start_ticks;
  char notes[TEXT_MAX];
  char cause[TEXT_MAX];
  bool ended;
  bool asked; /* to end, before it did */
  int wait_status;
};
bool status_write(const struct status *status);
void status_note(struct status *status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
unsigned long long start_ticks_of(pid_t pid);

/* root.c */
bool private_root(const struct options *options, char *why, size_t size);

/* child.c */
pid_t child_start(const struct options *options, bool rooted, int output, char *cause,
                  size_t size);

/* log.c */
struct log;
struct log *log_open(const char *path, long long max, int keep);
void log_take(struct log *log, const char *bytes, size_t count);
void log_finish(struct log *log);

/* watch.c */
int watch_signals(void);
int watch(pid_t main_pid, int signals, int input, struct log *log, int timeout_ms,
          struct status *status);

#endif
