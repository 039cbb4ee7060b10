// A disk that fails: loaded before the system's library (LD_PRELOAD), it lets calls that write to files
// below a directory fail.
//
//   IO_FAULTS_UNDER   the directory
//   IO_FAULTS_WHICH   "nth N": the Nth such call; "from N": the Nth and all that follow;
//                     "percent N SEED": so many of them, the same ones for the same seed
//   IO_FAULTS_ERRNO   what they fail with, as a number
//   IO_FAULTS_LOG     a file: one line is added for each call that failed
//   IO_FAULTS_SWITCH  if given: calls fail only while this file is there
//   IO_FAULTS_READS   if given: calls that read count, too
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_ulong calls;

// Whether the call is among those that fail, by its number from 1 on.
static int is_chosen(unsigned long number) {
    const char *which = getenv("IO_FAULTS_WHICH");
    unsigned long n, seed;
    if (!which) return 0;
    if (sscanf(which, "nth %lu", &n) == 1) return number == n;
    if (sscanf(which, "from %lu", &n) == 1) return number >= n;
    if (sscanf(which, "percent %lu %lu", &n, &seed) != 2) return 0;
    unsigned long mixed = (seed << 20 ^ number) * 0x9E3779B97F4A7C15UL; // SplitMix64
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9UL;
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EBUL;
    return (mixed ^ mixed >> 31) % 100 < n;
}

// Whether this call is to fail; then errno is set and the log has a line more.
static int fails(const char *call, const char *path) {
    const char *under = getenv("IO_FAULTS_UNDER"), *log = getenv("IO_FAULTS_LOG");
    const char *with = getenv("IO_FAULTS_ERRNO"), *when = getenv("IO_FAULTS_SWITCH");
    if (!under || !log || !with || strncmp(path, under, strlen(under)) != 0) return 0;
    if (when && access(when, F_OK) != 0) return 0;
    if (!is_chosen(atomic_fetch_add(&calls, 1) + 1)) return 0;
    char line[4200];
    int length = snprintf(line, sizeof line, "%s %s\n", call, path);
    int file = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    // The system's own call: ours would count itself.
    if (file >= 0 && syscall(SYS_write, file, line, length) == length) close(file);
    errno = atoi(with);
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

// Defines a function of the system's library anew: it fails, or does what it always did.
#define CALL(type, name, parameters, arguments, is_failing)                     \
    type name parameters {                                                      \
        static type(*real) parameters;                                          \
        if (!real) real = (type(*) parameters)dlsym(RTLD_NEXT, #name);          \
        return (is_failing) ? (type)-1 : real arguments;                        \
    }
#define ON_FILE(type, name, parameters, arguments) \
    CALL(type, name, parameters, arguments, fails_on(#name, file))
#define READING(type, name, parameters, arguments) \
    CALL(type, name, parameters, arguments, getenv("IO_FAULTS_READS") && fails_on(#name, file))

ON_FILE(ssize_t, write, (int file, const void *from, size_t length), (file, from, length))
ON_FILE(ssize_t, writev, (int file, const struct iovec *from, int count), (file, from, count))
ON_FILE(ssize_t, pwrite, (int file, const void *from, size_t length, off_t at), (file, from, length, at))
ON_FILE(ssize_t, pwrite64, (int file, const void *from, size_t length, off64_t at), (file, from, length, at))
ON_FILE(int, fsync, (int file), (file))
ON_FILE(int, fdatasync, (int file), (file))
ON_FILE(int, ftruncate, (int file, off_t length), (file, length))
ON_FILE(int, ftruncate64, (int file, off64_t length), (file, length))
ON_FILE(int, fallocate, (int file, int mode, off_t from, off_t length), (file, mode, from, length))
READING(ssize_t, read, (int file, void *into, size_t length), (file, into, length))
READING(ssize_t, pread, (int file, void *into, size_t length, off_t at), (file, into, length, at))
READING(ssize_t, pread64, (int file, void *into, size_t length, off64_t at), (file, into, length, at))
CALL(int, rename, (const char *from, const char *to), (from, to), fails("rename", to))
CALL(int, link, (const char *from, const char *to), (from, to), fails("link", to))
CALL(int, linkat, (int in, const char *from, int out, const char *to, int flags), (in, from, out, to, flags), fails("linkat", to))
