// A disk that fails: loaded before the system's library (LD_PRELOAD), it lets calls fail that write to files below
// a directory, or use them in any way.
//
//   IO_FAULTS_UNDER   what their paths begin with
//   IO_FAULTS_WHICH   "nth N": the Nth such call; "from N": the Nth and all that follow;
//                     "percent N SEED": so many of them, the same ones for the same seed
//   IO_FAULTS_ERRNO   what they fail with, as a number
//   IO_FAULTS_LOG     a file: one line is added for each call that failed
//   IO_FAULTS_SWITCH  if given: calls fail only while this file is there. Its content, if any, stands for
//                     ERRNO and WHICH, such as "5 nth 3"; calls are counted anew when it changes
//   IO_FAULTS_READS   if given: calls count, too, that read, open, map and remove
//   IO_FAULTS_LOCKS   if given: calls count, too, that lock; with "all", those that unlock
//   IO_FAULTS_ONLY    if given: only calls count whose names begin so
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long calls;
// What the switch said last.
static char last[96];

// Whether the call is among those that fail, by its number from 1 on.
static int is_chosen(const char *which, unsigned long number) {
    unsigned long n, seed;
    if (sscanf(which, "nth %lu", &n) == 1) return number == n;
    if (sscanf(which, "from %lu", &n) == 1) return number >= n;
    if (sscanf(which, "percent %lu %lu", &n, &seed) != 2) return 0;
    unsigned long mixed = (seed << 20 ^ number) * 0x9E3779B97F4A7C15UL; // SplitMix64
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9UL;
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EBUL;
    return (mixed ^ mixed >> 31) % 100 < n;
}

// What stands in the switch; -1 where there is none. By the system's own calls: ours would count themselves.
static ssize_t switched(const char *path, char *into, size_t most) {
    int file = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return -1;
    ssize_t length = syscall(SYS_read, file, into, most - 1);
    syscall(SYS_close, file);
    into[length < 0 ? 0 : length] = 0;
    return length;
}

// What this call is to fail with, or 0.
static int error_of_next_call(void) {
    const char *which = getenv("IO_FAULTS_WHICH"), *with = getenv("IO_FAULTS_ERRNO");
    const char *when = getenv("IO_FAULTS_SWITCH");
    char now[sizeof last];
    ssize_t length = when ? switched(when, now, sizeof now) : 0;
    if (length < 0) return 0;
    if (length > 0) {
        if (strcmp(now, last) != 0) {
            strcpy(last, now);
            calls = 0;
        }
        with = now;
        which = strchr(now, ' ');
        if (which) which++;
    }
    return which && with && is_chosen(which, ++calls) ? atoi(with) : 0;
}

// Whether this call is to fail; then errno is set and the log has a line more.
static int fails(const char *call, const char *path) {
    const char *under = getenv("IO_FAULTS_UNDER"), *log = getenv("IO_FAULTS_LOG");
    const char *only = getenv("IO_FAULTS_ONLY");
    if (!under || !log || strncmp(path, under, strlen(under)) != 0) return 0;
    if (only && strncmp(call, only, strlen(only)) != 0) return 0;
    pthread_mutex_lock(&lock);
    int error = error_of_next_call();
    pthread_mutex_unlock(&lock);
    if (!error) return 0;
    char line[4200];
    int length = snprintf(line, sizeof line, "%s %s\n", call, path);
    int file = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file >= 0 && syscall(SYS_write, file, line, length) == length) syscall(SYS_close, file);
    errno = error;
    return 1;
}

static int fails_on(const char *call, int file) {
    char name[64], path[4096];
    snprintf(name, sizeof name, "/proc/self/fd/%d", file);
    ssize_t length = readlink(name, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return fails(call, path);
}

// The same for a path, which may be relative to a directory or to where the process is.
static int fails_at(const char *call, int in, const char *path) {
    char name[64], full[8200];
    if (path[0] == '/') return fails(call, path);
    snprintf(name, sizeof name, in == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", in);
    ssize_t length = readlink(name, full, 4095);
    if (length < 0) return 0;
    snprintf(full + length, sizeof full - length, "/%s", path);
    return fails(call, full);
}

// Defines a function of the system's library anew: it fails, or does what it always did. By its name for the
// linker, since headers declare some with arguments that may be missing.
#define CALL(type, name, parameters, arguments, is_failing)                     \
    type failing_##name parameters __asm__(#name);                              \
    type failing_##name parameters {                                            \
        static type(*real) parameters;                                          \
        if (!real) real = (type(*) parameters)dlsym(RTLD_NEXT, #name);          \
        return (is_failing) ? (type)-1 : real arguments;                        \
    }
#define ON_FILE(type, name, parameters, arguments) \
    CALL(type, name, parameters, arguments, fails_on(#name, file))
#define READING_IF(condition, type, name, parameters, arguments) \
    CALL(type, name, parameters, arguments, getenv("IO_FAULTS_READS") && (condition))
#define READING(type, name, parameters, arguments) \
    READING_IF(fails_on(#name, file), type, name, parameters, arguments)

ON_FILE(ssize_t, write, (int file, const void *from, size_t length), (file, from, length))
ON_FILE(ssize_t, writev, (int file, const struct iovec *from, int count), (file, from, count))
ON_FILE(ssize_t, pwrite, (int file, const void *from, size_t length, off_t at), (file, from, length, at))
ON_FILE(ssize_t, pwrite64, (int file, const void *from, size_t length, off64_t at), (file, from, length, at))
ON_FILE(int, fsync, (int file), (file))
ON_FILE(int, fdatasync, (int file), (file))
ON_FILE(int, ftruncate, (int file, off_t length), (file, length))
ON_FILE(int, ftruncate64, (int file, off64_t length), (file, length))
ON_FILE(int, fallocate, (int file, int mode, off_t from, off_t length), (file, mode, from, length))
CALL(int, rename, (const char *from, const char *to), (from, to), fails_at("rename", AT_FDCWD, to))
CALL(int, link, (const char *from, const char *to), (from, to), fails_at("link", AT_FDCWD, to))
CALL(int, linkat, (int in, const char *from, int out, const char *to, int flags), (in, from, out, to, flags), fails_at("linkat", out, to))

READING(ssize_t, read, (int file, void *into, size_t length), (file, into, length))
READING(ssize_t, pread, (int file, void *into, size_t length, off_t at), (file, into, length, at))
READING(ssize_t, pread64, (int file, void *into, size_t length, off64_t at), (file, into, length, at))
READING_IF(fails_at("open", AT_FDCWD, path), int, open, (const char *path, int flags, mode_t mode), (path, flags, mode))
READING_IF(fails_at("open64", AT_FDCWD, path), int, open64, (const char *path, int flags, mode_t mode), (path, flags, mode))
READING_IF(fails_at("openat", in, path), int, openat, (int in, const char *path, int flags, mode_t mode), (in, path, flags, mode))
READING_IF(fails_at("openat64", in, path), int, openat64, (int in, const char *path, int flags, mode_t mode), (in, path, flags, mode))
READING_IF(fails_at("unlink", AT_FDCWD, path), int, unlink, (const char *path), (path))
READING_IF(file >= 0 && fails_on("mmap", file), void *, mmap, (void *at, size_t length, int protection, int flags, int file, off_t from), (at, length, protection, flags, file, from))
READING_IF(file >= 0 && fails_on("mmap64", file), void *, mmap64, (void *at, size_t length, int protection, int flags, int file, off64_t from), (at, length, protection, flags, file, from))
static int is_lock(int command, const struct flock *wanted) {
    const char *locks = getenv("IO_FAULTS_LOCKS");
    return locks && command == F_SETLK && (wanted->l_type != F_UNLCK || strcmp(locks, "all") == 0);
}

CALL(int, fcntl, (int file, int command, void *argument), (file, command, argument), is_lock(command, argument) && fails_on("fcntl", file))
CALL(int, fcntl64, (int file, int command, void *argument), (file, command, argument), is_lock(command, argument) && fails_on("fcntl", file))
