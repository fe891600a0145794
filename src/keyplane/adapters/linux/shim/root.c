/* A private view of the file system, in which declared paths stand where they were declared.
 *
 * A tmpfs is the new root. Each top-level directory of the host is bound into it, but where a
 * declared path must appear the directory is made anew: host directories in it are bound,
 * host links copied, and host files become links into `/.keyplane/host`, so that a file which
 * the host replaces by a rename is seen replaced. A declared directory is a bind of
 * STATE/root/PATH; a declared file is a link to `/.keyplane/root/PATH`, for the same reason.
 * What a unit creates in a directory made anew is its own and ends with it. */
#define _GNU_SOURCE
#include "shim.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };
enum { BINDS_MAX = 1000 }; /* past them a host directory is a link too: a bind costs 10 µs */

struct node {
  char *name;
  const char *declared; /* the path it was declared as, for what must appear here */
  struct node *child, *next;
};

struct build {
  const char *state;
  int binds;
};

static struct node *descend(struct node *node, const char *name, size_t length) {
  struct node *child = node->child;
  while (child != NULL && (strncmp(child->name, name, length) != 0 || child->name[length] != '\0'))
    child = child->next;
  if (child != NULL) return child;
  child = calloc(1, sizeof *child);
  if (child == NULL || (child->name = strndup(name, length)) == NULL) exit(EXIT_BROKEN);
  child->next = node->child;
  return node->child = child;
}

/* Parents that exist are resolved: `/var/run/x` appears in `/run`. */
static bool resolve(const char *path, char *out) {
  char prefix[PATH_BYTES];
  size_t length = strlen(path);
  if (path[0] != '/' || length >= sizeof prefix) return false;
  strcpy(prefix, path);
  do {
    while (length > 0 && prefix[length] != '/') length--;
    prefix[length] = '\0';
    if (length == 0) return strcpy(out, path), true;
  } while (realpath(prefix, out) == NULL);
  if (strlen(out) + strlen(path + length) >= PATH_BYTES) return false;
  strcat(strcmp(out, "/") == 0 ? strcpy(out, "") : out, path + length);
  return true;
}

/* False for what cannot be shown: the kernel's own directories stay the host's. */
static bool insert(struct node *root, const char *declared) {
  char path[PATH_BYTES];
  struct node *node = root;
  if (!resolve(declared, path)) return false;
  for (const char *at = path; *at != '\0';) {
    size_t length;
    at += strspn(at, "/");
    length = strcspn(at, "/");
    if (length == 0) break;
    if (at[0] == '.' && (length == 1 || (length == 2 && at[1] == '.'))) return false;
    if (node == root && ((length == 4 && strncmp(at, "proc", 4) == 0) ||
                         (length == 3 && (strncmp(at, "sys", 3) == 0 || strncmp(at, "dev", 3) == 0))))
      return false;
    node = descend(node, at, length);
    if (node->declared != NULL) return true; /* stands inside a declared directory already */
    at += length;
  }
  if (node == root) return false;
  node->declared = declared;
  return true;
}

static bool bind(struct build *build, const char *source, const char *target) {
  if (build->binds >= BINDS_MAX || mkdir(target, 0755) != 0) return false;
  build->binds++;
  if (mount(source, target, NULL, MS_BIND | MS_REC, NULL) == 0) return true;
  rmdir(target);
  return false;
}

static void link_to(const char *prefix, const char *path, const char *target) {
  char place[2 * PATH_BYTES];
  snprintf(place, sizeof place, "%s%s", prefix, path);
  if (symlink(place, target) != 0) return; /* seen as absent by the unit, and by no one else */
}

/* `path` is absolute on the host, and without its slash the place below the new root. */
static void show_host(struct build *build, const char *path) {
  char target[PATH_BYTES];
  struct stat host;
  ssize_t length;
  if (lstat(path, &host) != 0) return;
  if (S_ISLNK(host.st_mode)) {
    length = readlink(path, target, sizeof target - 1);
    target[length < 0 ? 0 : length] = '\0';
    if (length <= 0 || symlink(target, path + 1) != 0) return;
  } else if (!S_ISDIR(host.st_mode) || !bind(build, path, path + 1)) {
    link_to("/.keyplane/host", path, path + 1);
  }
}

static void show_declared(struct build *build, const struct node *node, const char *path) {
  char source[2 * PATH_BYTES];
  struct stat stands;
  snprintf(source, sizeof source, "%s/root%s", build->state, node->declared);
  if (lstat(source, &stands) == 0 && S_ISDIR(stands.st_mode) && bind(build, source, path + 1))
    return;
  link_to("/.keyplane/root", node->declared, path + 1);
}

static const struct node *child_named(const struct node *node, const char *name) {
  const struct node *child = node->child;
  while (child != NULL && strcmp(child->name, name) != 0) child = child->next;
  return child;
}

/* `path` is of PATH_BYTES, and given back as it was. The root's path is empty. */
static void show_directory(struct build *build, const struct node *node, char *path) {
  size_t length = strlen(path);
  struct stat host;
  DIR *listing = opendir(length == 0 ? "/" : path);
  for (struct dirent *entry; listing != NULL && (entry = readdir(listing)) != NULL;) {
    const char *name = entry->d_name;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || child_named(node, name) != NULL)
      continue;
    if (length == 0 && strcmp(name, ".keyplane") == 0) continue;
    if (snprintf(path + length, PATH_BYTES - length, "/%s", name) < (int)(PATH_BYTES - length))
      show_host(build, path);
    path[length] = '\0';
  }
  if (listing != NULL) closedir(listing);
  for (const struct node *child = node->child; child != NULL; child = child->next) {
    snprintf(path + length, PATH_BYTES - length, "/%s", child->name);
    if (child->declared != NULL) {
      show_declared(build, child, path);
    } else if (mkdir(path + 1, 0755) == 0) {
      bool there = stat(path, &host) == 0 && S_ISDIR(host.st_mode);
      show_directory(build, child, path);
      if (there && chown(path + 1, host.st_uid, host.st_gid) == 0)
        chmod(path + 1, host.st_mode & 07777);
    }
    path[length] = '\0';
  }
}

static bool write_text(const char *path, const char *text) {
  int file = open(path, O_WRONLY | O_CLOEXEC);
  bool whole = file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text);
  if (file >= 0) close(file);
  return whole;
}

/* Without the right to mount, a user namespace gives it, in which we are who we are. */
static bool own_namespace(const struct options *options) {
  uid_t uid = geteuid();
  gid_t gid = getegid();
  char map[64];
  if (unshare(CLONE_NEWNS) == 0) return true;
  if (errno != EPERM || (options->uid >= 0 && (uid_t)options->uid != uid)) return false;
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  snprintf(map, sizeof map, "%u %u 1", uid, uid);
  if (!write_text("/proc/self/uid_map", map)) return false;
  write_text("/proc/self/setgroups", "deny");
  snprintf(map, sizeof map, "%u %u 1", gid, gid);
  return write_text("/proc/self/gid_map", map);
}

static void read_only(const char *path) {
#ifdef SYS_mount_setattr
  struct {
    unsigned long long set, clear, propagation, namespace;
  } attributes = {.set = MS_RDONLY};
  syscall(SYS_mount_setattr, AT_FDCWD, path, 0x8000 /* AT_RECURSIVE */, &attributes,
          sizeof attributes);
#endif
}

static bool enter(const char *state) {
  char source[PATH_BYTES];
  if (mkdir(".keyplane", 0755) != 0 || mkdir(".keyplane/root", 0755) != 0 ||
      mkdir(".keyplane/artifacts", 0755) != 0 || mkdir(".keyplane/host", 0755) != 0)
    return false;
  snprintf(source, sizeof source, "%s/root", state);
  if (mount(source, ".keyplane/root", NULL, MS_BIND | MS_REC, NULL) != 0) return false;
  snprintf(source, sizeof source, "%s/artifacts", state);
  if (mount(source, ".keyplane/artifacts", NULL, MS_BIND | MS_REC, NULL) != 0) return false;
  read_only(".keyplane/artifacts");
  return true;
}

static bool change_root(void) {
  if (syscall(SYS_pivot_root, ".", ".keyplane/host") == 0) return chdir("/") == 0;
  /* The first root of a machine that boots from memory cannot be pivoted away from. */
  return mount("/", ".keyplane/host", NULL, MS_BIND | MS_REC, NULL) == 0 && chroot(".") == 0 &&
         chdir("/") == 0;
}

bool private_root(const struct options *options, char *why, size_t size) {
  struct build build = {.state = options->state};
  struct node root = {0};
  char path[PATH_BYTES] = "";
  const char *step = "mount namespace";
  why[0] = '\0';
  for (int i = 0; i < options->path_count; i++)
    if (!insert(&root, options->paths[i]))
      snprintf(why, size, "%.1024s cannot be shown in place", options->paths[i]);
  bool done = own_namespace(options) && mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) == 0;
  if (done) {
    step = "new root";
    /* On the run directory, which is surely there; we hold it open. Not bound along with `/`. */
    done = mount("keyplane", options->mountpoint, "tmpfs", MS_NOSUID, "mode=0755,size=16m") == 0 &&
           mount(NULL, options->mountpoint, NULL, MS_UNBINDABLE, NULL) == 0 &&
           chdir(options->mountpoint) == 0;
  }
  if (done) {
    step = "binds";
    done = enter(options->state);
  }
  if (done) {
    show_directory(&build, &root, path);
    step = "change of root";
    done = change_root() && mount(NULL, "/", NULL, MS_PRIVATE, NULL) == 0;
  }
  if (!done) {
    snprintf(why, size, "%s: %s", step, strerror(errno));
    umount2(options->mountpoint, MNT_DETACH);
    if (chdir("/") != 0) return false;
  }
  return done;
}
