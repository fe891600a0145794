/* Waits for the unit's end: carries its output to the log, signals to it, and reaps. */
#define _GNU_SOURCE
#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { KILL_MAX_MS = 5000 }; /* a killed process that is still there hangs in the kernel */

int watch_signals(void) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, NULL);
  return signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
}

static long long now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/* Our children at this moment: the unit's main process and all that lost their parents. */
static void kill_children(void) {
  char path[64], text[16384];
  snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
  int file = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t count = file < 0 ? 0 : read(file, text, sizeof text - 1);
  if (file >= 0) close(file);
  text[count < 0 ? 0 : count] = '\0';
  for (char *at = text, *next; (count = strtol(at, &next, 10)) > 0 && next != at; at = next)
    kill((pid_t)count, SIGKILL);
}

/* Reaps all that ended; true when the main process is among them. */
static bool reap(pid_t main_pid, int *main_status, bool *none_left) {
  bool main_ended = false;
  int status;
  pid_t pid;
  while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
    if (pid != main_pid) continue;
    *main_status = status;
    main_ended = true;
  }
  *none_left = pid < 0 && errno == ECHILD;
  return main_ended;
}

/* Killing a parent gives us its children, so this goes on until there is none. */
static void kill_rest(int signals, struct status *status) {
  long long deadline = now_ms() + KILL_MAX_MS;
  bool none_left = false;
  int ignored;
  for (;;) {
    struct pollfd wait = {.fd = signals, .events = POLLIN};
    struct signalfd_siginfo info[8];
    reap(-1, &ignored, &none_left);
    if (none_left) return;
    if (now_ms() >= deadline) break;
    kill_children();
    poll(&wait, 1, 20);
    while (read(signals, info, sizeof info) > 0) continue;
  }
  status_note(status, "some of its processes could not be killed");
}

/* True while there may be more. */
static bool carry(int input, struct log *log) {
  char bytes[65536];
  ssize_t count = read(input, bytes, sizeof bytes);
  if (count > 0) log_take(log, bytes, (size_t)count);
  return count > 0;
}

/* True if a signal said that everything is to be killed. */
static bool pass_on(int signals, pid_t main_pid, struct status *status) {
  struct signalfd_siginfo info;
  bool kill_all = false;
  while (read(signals, &info, sizeof info) == sizeof info) {
    bool end = info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT;
    status->asked |= end || info.ssi_signo == SIGUSR1;
    if (end) {
      kill(-main_pid, SIGTERM);
      kill(-main_pid, SIGCONT);
    }
    kill_all |= info.ssi_signo == SIGUSR1;
  }
  return kill_all;
}

int watch(pid_t main_pid, int signals, int input, struct log *log, int timeout_ms,
          struct status *status) {
  long long deadline = now_ms() + timeout_ms;
  int main_status = 0;
  bool none_left = false;
  if (input >= 0) fcntl(input, F_SETFL, O_NONBLOCK);
  for (;;) {
    struct pollfd waits[] = {{.fd = signals, .events = POLLIN}, {.fd = input, .events = POLLIN}};
    long long left = timeout_ms < 0 ? -1 : deadline - now_ms();
    poll(waits, 2, timeout_ms < 0 ? -1 : left > 0 ? (int)left : 0);
    if (waits[1].revents != 0 && !carry(input, log) && (waits[1].revents & POLLHUP)) {
      close(input);
      input = -1;
    }
    bool kill_all = (waits[0].revents & POLLIN) && pass_on(signals, main_pid, status);
    if (kill_all || (timeout_ms >= 0 && now_ms() >= deadline)) {
      kill(-main_pid, SIGKILL);
      kill(main_pid, SIGKILL);
    }
    if (reap(main_pid, &main_status, &none_left)) break;
  }
  if (!none_left) kill_rest(signals, status);
  while (input >= 0 && carry(input, log)) continue;
  return main_status;
}
