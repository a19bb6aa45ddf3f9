// Preloaded into a process, kills it at the n-th call that changes a file: before it, or, if it writes, when half is written.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/types.h>
#include <unistd.h>

static long n_calls = 0, fatal = -1;
static int is_torn = 0;

void kill_at(long n, int torn) {
    n_calls = 0;
    fatal = n;
    is_torn = torn;
}

long calls_so_far(void) { return n_calls; }

static int is_due(void) { return fatal >= 0 && ++n_calls == fatal; }

static void die(void) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

#define CHANGE(result, name, declared, passed)                        \
    result name declared {                                            \
        result(*real) declared = dlsym(RTLD_NEXT, #name);             \
        if (is_due()) die();                                          \
        return real passed;                                           \
    }

#define WRITE(name, declared, passed, half)                           \
    ssize_t name declared {                                           \
        ssize_t(*real) declared = dlsym(RTLD_NEXT, #name);            \
        if (is_due()) {                                               \
            if (is_torn && real half < 0) die();                      \
            die();                                                    \
        }                                                             \
        return real passed;                                           \
    }

WRITE(write, (int fd, const void* data, size_t size), (fd, data, size), (fd, data, size / 2))
WRITE(pwrite, (int fd, const void* data, size_t size, off_t at), (fd, data, size, at), (fd, data, size / 2, at))
WRITE(pwrite64, (int fd, const void* data, size_t size, off64_t at), (fd, data, size, at), (fd, data, size / 2, at))
CHANGE(int, fsync, (int fd), (fd))
CHANGE(int, fdatasync, (int fd), (fd))
CHANGE(int, ftruncate, (int fd, off_t size), (fd, size))
CHANGE(int, ftruncate64, (int fd, off64_t size), (fd, size))
CHANGE(int, rename, (const char* from, const char* to), (from, to))
CHANGE(int, link, (const char* from, const char* to), (from, to))
CHANGE(int, unlink, (const char* path), (path))
CHANGE(int, mkdir, (const char* path, mode_t mode), (path, mode))
