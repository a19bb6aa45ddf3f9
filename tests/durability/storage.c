// Preloaded into a process, this library stands between it and the files below one folder. It counts every call that changes a file or makes
// a change durable, and at a chosen call it kills the process, lets the call fail, or writes only half; it can also record all of them.
//
// A file descriptor is attributed to its file by asking the kernel (/proc/self/fd), so dup, close, rename and unlink need no bookkeeping here.
// Calls that fail although nobody chose them are recorded with their result. The -shm file of SQLite is mapped and its content is not seen.
//
// After storage_widen() calls that only look count too, and may fail: opening, reading, mapping, locking, closing, and asking for a status.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum plan { WATCH, KILL_BEFORE, KILL_WITHIN, FAIL_ONCE, FAIL_ON, SHORTEN };
enum kind { WRITES, SYNCS, NAMES, FREES, LOOKS };  // FREES and LOOKS: never short of space

#define LONGEST 4096
static char root[LONGEST], hit[LONGEST + 64];
static size_t root_size = 0;
static enum plan plan = WATCH;
static long n_calls = 0, n_hits = 0, chosen = 0;
static int chosen_error = EIO, trace = -1, counts_looks = 0;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

// What a test calls, through ctypes.

void storage_watch(const char* folder) {
    strncpy(root, folder, LONGEST - 1);
    root_size = strlen(root);
    plan = WATCH;
    n_calls = n_hits = 0;
    hit[0] = 0;
}

void storage_plan(int what, long at, int error) {
    plan = what;
    chosen = at;
    chosen_error = error;
}

void storage_widen(int is_wide) { counts_looks = is_wide; }

long storage_calls(void) { return n_calls; }
long storage_hits(void) { return n_hits; }
const char* storage_hit(void) { return hit; }

struct __attribute__((packed)) entry {
    char name[16];
    int64_t at, result;
    int32_t n_path, n_other, n_data;
};

static void put(const void* data, size_t size) {
    for (const char* from = data; size > 0;) {
        ssize_t n = syscall(SYS_write, trace, from, size);
        if (n <= 0) _exit(97);  // a trace with a gap would prove nothing
        from += n;
        size -= n;
    }
}

static void record(const char* name, const char* path, const char* other, int64_t at, int64_t result, const void* data, size_t size) {
    if (trace < 0) return;
    struct entry entry = {.at = at, .result = result, .n_path = strlen(path), .n_other = strlen(other), .n_data = size};
    strncpy(entry.name, name, sizeof entry.name - 1);
    put(&entry, sizeof entry);
    put(path, entry.n_path);
    put(other, entry.n_other);
    put(data, size);
}

int storage_record(const char* path) {
    if (trace >= 0) syscall(SYS_close, trace);
    trace = -1;
    if (path == NULL) return 0;
    int fd = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) return -1;
    trace = syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 900);  // out of the way of descriptors that a test counts
    syscall(SYS_close, fd);
    return trace < 0 ? -1 : 0;
}

void storage_mark(const char* text) {
    pthread_mutex_lock(&mutex);
    record("mark", text, "", 0, 0, "", 0);
    pthread_mutex_unlock(&mutex);
}

// Which file is meant, and whether it lies below the root.

static int is_below(const char* path) {
    return root_size && strncmp(path, root, root_size) == 0 && (path[root_size] == '/' || path[root_size] == 0);
}

static void path_of(int fd, char* path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = syscall(SYS_readlinkat, AT_FDCWD, link, path, LONGEST - 1);
    path[n < 0 ? 0 : n] = 0;
}

static void path_at(int folder, const char* name, char* path) {
    path[0] = 0;
    if (root_size == 0 || name == NULL) return;
    if (name[0] == '/') {
        strncpy(path, name, LONGEST - 1);
        path[LONGEST - 1] = 0;
    } else {
        if (folder != AT_FDCWD) path_of(folder, path);
        else if (syscall(SYS_getcwd, path, LONGEST) < 0) path[0] = 0;
        size_t n = strlen(path);
        if (strncmp(name, "./", 2) == 0) name += 2;
        snprintf(path + n, LONGEST - n, "/%s", name);
    }
}

// What happens to a call.

enum verdict { GO, DIE, DIE_WITHIN, FAIL, HALVE };

static void die(void) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

static enum verdict judge(const char* name, enum kind kind, const char* path, size_t size) {
    long call = ++n_calls;
    int is_due = plan == FAIL_ON ? call >= chosen : call == chosen;
    if (plan == WATCH || !is_due) return GO;
    if ((plan == FAIL_ONCE || plan == FAIL_ON) && chosen_error == ENOSPC && (kind == FREES || kind == LOOKS)) return GO;
    if (plan == SHORTEN && (kind != WRITES || size < 2)) {
        if (kind == WRITES) plan = FAIL_ONCE;  // one byte cannot be half written
        else return GO;
    }
    ++n_hits;
    if (n_hits == 1) snprintf(hit, sizeof hit, "%s %s", name, path + root_size);
    if (plan == KILL_BEFORE) return DIE;
    if (plan == KILL_WITHIN) return DIE_WITHIN;
    if (plan == SHORTEN) {  // a disk that is just full: part is written, and the next write fails
        plan = FAIL_ON;
        chosen = call + 1;
        chosen_error = ENOSPC;
        return HALVE;
    }
    if (plan == FAIL_ONCE) plan = WATCH;
    return FAIL;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

// A call that names files: PASSED is the real call, below the lock so that the trace is in order.
#define CHANGE(NAME, KIND, LABEL, PATH, OTHER, AT, PASSED)                        \
    if (!is_below(PATH) && !is_below(OTHER)) return PASSED;                       \
    pthread_mutex_lock(&mutex);                                                   \
    enum verdict verdict = judge(NAME, KIND, is_below(PATH) ? PATH : OTHER, 0);   \
    int result = -1, reason = chosen_error;                                       \
    if (verdict == DIE) die();                                                    \
    if (verdict != FAIL) {                                                        \
        result = PASSED;                                                          \
        reason = errno;                                                           \
    }                                                                             \
    record(LABEL, PATH, OTHER, AT, result, "", 0);                                \
    if (verdict == DIE_WITHIN) die();                                             \
    pthread_mutex_unlock(&mutex);                                                 \
    errno = reason;                                                               \
    return result;

static ssize_t write_at(const char* name, int fd, const struct iovec* pieces, int n_pieces, off64_t at, int has_place) {
    char path[LONGEST];
    path_of(fd, path);
    if (!is_below(path)) return has_place ? syscall(SYS_pwritev, fd, pieces, n_pieces, at, 0) : syscall(SYS_writev, fd, pieces, n_pieces);
    pthread_mutex_lock(&mutex);
    if (!has_place) {
        struct stat64 status;
        int is_appended = syscall(SYS_fcntl, fd, F_GETFL) & O_APPEND;
        at = is_appended && REAL(fstat64)(fd, &status) == 0 ? status.st_size : (off64_t)syscall(SYS_lseek, fd, 0, SEEK_CUR);
    }
    size_t size = 0;
    for (int i = 0; i < n_pieces; ++i) size += pieces[i].iov_len;
    enum verdict verdict = judge(name, WRITES, path, size);
    int reason = chosen_error;
    if (verdict == DIE) die();
    size_t limit = verdict == DIE_WITHIN || verdict == HALVE ? size / 2 : size;
    ssize_t total = verdict == FAIL ? -1 : 0;
    for (int i = 0; i < n_pieces && verdict != FAIL && limit > 0; ++i) {
        size_t n = pieces[i].iov_len < limit ? pieces[i].iov_len : limit;
        ssize_t done = has_place ? syscall(SYS_pwrite64, fd, pieces[i].iov_base, n, at + total) : syscall(SYS_write, fd, pieces[i].iov_base, n);
        reason = errno;
        if (done > 0) record("write", path, "", at + total, done, pieces[i].iov_base, done);
        if (done < 0 && total == 0) total = -1;
        if (done < 0) break;
        total += done;
        limit -= done;
        if ((size_t)done < n) break;
    }
    if (total < 0) record("write", path, "", at, -1, "", 0);
    if (verdict == DIE_WITHIN) die();
    pthread_mutex_unlock(&mutex);
    errno = reason;
    return total;
}

static struct iovec piece_of(const void* data, size_t size) { return (struct iovec){.iov_base = (void*)data, .iov_len = size}; }

ssize_t write(int fd, const void* data, size_t size) {
    if (root_size == 0) return syscall(SYS_write, fd, data, size);
    struct iovec piece = piece_of(data, size);
    return write_at("write", fd, &piece, 1, 0, 0);
}

ssize_t pwrite64(int fd, const void* data, size_t size, off64_t at) {
    struct iovec piece = piece_of(data, size);
    return write_at("pwrite", fd, &piece, 1, at, 1);
}

ssize_t pwrite(int fd, const void* data, size_t size, off_t at) { return pwrite64(fd, data, size, at); }
ssize_t writev(int fd, const struct iovec* pieces, int n) { return write_at("writev", fd, pieces, n, 0, 0); }
ssize_t pwritev(int fd, const struct iovec* pieces, int n, off_t at) { return write_at("pwritev", fd, pieces, n, at, 1); }
ssize_t pwritev64(int fd, const struct iovec* pieces, int n, off64_t at) { return write_at("pwritev", fd, pieces, n, at, 1); }

int fsync(int fd) {
    char path[LONGEST];
    path_of(fd, path);
    CHANGE("fsync", SYNCS, "sync", path, "", 0, (int)syscall(SYS_fsync, fd))
}

int fdatasync(int fd) {
    char path[LONGEST];
    path_of(fd, path);
    CHANGE("fdatasync", SYNCS, "sync", path, "", 0, (int)syscall(SYS_fdatasync, fd))
}

int ftruncate64(int fd, off64_t size) {
    char path[LONGEST];
    path_of(fd, path);
    CHANGE("ftruncate", NAMES, "truncate", path, "", size, (int)syscall(SYS_ftruncate, fd, size))
}

int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }

int truncate64(const char* name, off64_t size) {
    char path[LONGEST];
    path_at(AT_FDCWD, name, path);
    CHANGE("truncate", NAMES, "truncate", path, "", size, (int)syscall(SYS_truncate, name, size))
}

int truncate(const char* name, off_t size) { return truncate64(name, size); }

int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned int flags) {
    char path[LONGEST], other[LONGEST];
    path_at(from_folder, from, path);
    path_at(to_folder, to, other);
    CHANGE("rename", NAMES, "rename", path, other, flags, (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, flags))
}

int renameat(int from_folder, const char* from, int to_folder, const char* to) { return renameat2(from_folder, from, to_folder, to, 0); }
int rename(const char* from, const char* to) { return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0); }

int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) {
    char path[LONGEST], other[LONGEST];
    path_at(from_folder, from, path);
    path_at(to_folder, to, other);
    CHANGE("link", NAMES, "link", path, other, flags, (int)syscall(SYS_linkat, from_folder, from, to_folder, to, flags))
}

int link(const char* from, const char* to) { return linkat(AT_FDCWD, from, AT_FDCWD, to, 0); }

int symlinkat(const char* text, int folder, const char* name) {
    char path[LONGEST];
    path_at(folder, name, path);
    CHANGE("symlink", NAMES, "symlink", path, "", 0, (int)syscall(SYS_symlinkat, text, folder, name))
}

int symlink(const char* text, const char* name) { return symlinkat(text, AT_FDCWD, name); }

int unlinkat(int folder, const char* name, int flags) {
    char path[LONGEST];
    path_at(folder, name, path);
    CHANGE("unlink", FREES, "unlink", path, "", flags, (int)syscall(SYS_unlinkat, folder, name, flags))
}

int unlink(const char* name) { return unlinkat(AT_FDCWD, name, 0); }
int rmdir(const char* name) { return unlinkat(AT_FDCWD, name, AT_REMOVEDIR); }

int mkdirat(int folder, const char* name, mode_t mode) {
    char path[LONGEST];
    path_at(folder, name, path);
    CHANGE("mkdir", NAMES, "mkdir", path, "", 0, (int)syscall(SYS_mkdirat, folder, name, mode))
}

int mkdir(const char* name, mode_t mode) { return mkdirat(AT_FDCWD, name, mode); }

// Calls that only look. FAILED is what such a call returns when it fails; one that closes does so all the same, as in the kernel.
// To let go of a lock, which no kernel refuses, always succeeds: SQLite would go on to believe that it has the lock.

#define LOOK_AT(NAME, PATH, TYPE, FAILED, PASSED)                  \
    if (!counts_looks || !is_below(PATH)) return PASSED;           \
    pthread_mutex_lock(&mutex);                                    \
    enum verdict verdict = judge(NAME, LOOKS, PATH, 0);            \
    int reason = chosen_error;                                     \
    if (verdict == DIE || verdict == DIE_WITHIN) die();            \
    record("look", PATH, "", 0, verdict == GO ? 0 : -1, "", 0);    \
    pthread_mutex_unlock(&mutex);                                  \
    if (verdict == GO) return PASSED;                              \
    errno = reason;                                                \
    return (TYPE)(FAILED);

#define LOOK(TYPE, FAILED, NAME, DECLARED, FOLDER, FILE, PASSED)   \
    TYPE NAME DECLARED {                                           \
        char path[LONGEST];                                        \
        path[0] = 0;                                               \
        if (counts_looks) path_at(FOLDER, FILE, path);             \
        LOOK_AT(#NAME, path, TYPE, FAILED, PASSED)                 \
    }

#define LOOK_FD(TYPE, FAILED, NAME, DECLARED, FD, PASSED)          \
    TYPE NAME DECLARED {                                           \
        char path[LONGEST];                                        \
        path[0] = 0;                                               \
        if (counts_looks && (FD) >= 0) path_of(FD, path);          \
        LOOK_AT(#NAME, path, TYPE, FAILED, PASSED)                 \
    }

LOOK(int, -1, stat, (const char* restrict name, struct stat* restrict to), AT_FDCWD, name, REAL(stat)(name, to))
LOOK(int, -1, stat64, (const char* restrict name, struct stat64* restrict to), AT_FDCWD, name, REAL(stat64)(name, to))
LOOK(int, -1, lstat, (const char* restrict name, struct stat* restrict to), AT_FDCWD, name, REAL(lstat)(name, to))
LOOK(int, -1, lstat64, (const char* restrict name, struct stat64* restrict to), AT_FDCWD, name, REAL(lstat64)(name, to))
LOOK(int, -1, access, (const char* name, int mode), AT_FDCWD, name, REAL(access)(name, mode))
LOOK(int, -1, faccessat, (int folder, const char* name, int mode, int flags), folder, name, REAL(faccessat)(folder, name, mode, flags))
LOOK(DIR*, NULL, opendir, (const char* name), AT_FDCWD, name, REAL(opendir)(name))
LOOK_FD(int, -1, fstat, (int fd, struct stat* to), fd, REAL(fstat)(fd, to))
LOOK_FD(int, -1, fstat64, (int fd, struct stat64* to), fd, REAL(fstat64)(fd, to))
LOOK_FD(int, -1, flock, (int fd, int what), what == LOCK_UN ? -1 : fd, (int)syscall(SYS_flock, fd, what))
LOOK_FD(ssize_t, -1, read, (int fd, void* to, size_t size), fd, syscall(SYS_read, fd, to, size))
LOOK_FD(ssize_t, -1, pread, (int fd, void* to, size_t size, off_t at), fd, syscall(SYS_pread64, fd, to, size, at))
LOOK_FD(ssize_t, -1, pread64, (int fd, void* to, size_t size, off64_t at), fd, syscall(SYS_pread64, fd, to, size, at))
LOOK_FD(void*, MAP_FAILED, mmap, (void* to, size_t size, int may, int how, int fd, off_t at), fd, (void*)syscall(SYS_mmap, to, size, may, how, fd, at))
LOOK_FD(void*, MAP_FAILED, mmap64, (void* to, size_t size, int may, int how, int fd, off64_t at), fd, (void*)syscall(SYS_mmap, to, size, may, how, fd, at))
LOOK_FD(int, (syscall(SYS_close, fd), -1), close, (int fd), fd, (int)syscall(SYS_close, fd))

static int may_fail(int what, const void* argument) {
    if (what == F_SETLK || what == F_SETLKW) return ((const struct flock*)argument)->l_type != F_UNLCK;
    return what == F_GETLK || what == F_DUPFD_CLOEXEC;
}

static int control(int fd, int what, void* argument) {
    char path[LONGEST];
    path[0] = 0;
    if (counts_looks && may_fail(what, argument)) path_of(fd, path);
    LOOK_AT("fcntl", path, int, -1, (int)syscall(SYS_fcntl, fd, what, argument))
}

#define ARGUMENT_OF(what)                      \
    va_list rest;                              \
    va_start(rest, what);                      \
    void* argument = va_arg(rest, void*);      \
    va_end(rest);

int fcntl(int fd, int what, ...) {
    ARGUMENT_OF(what)
    return control(fd, what, argument);
}

int fcntl64(int fd, int what, ...) {
    ARGUMENT_OF(what)
    return control(fd, what, argument);
}

// Opening counts where it makes a file, or empties one; else it is a look.
static int open_to_look(int folder, const char* name, int flags, mode_t mode) {
    char path[LONGEST];
    path[0] = 0;
    if (counts_looks) path_at(folder, name, path);
    LOOK_AT("open", path, int, -1, (int)syscall(SYS_openat, folder, name, flags, mode))
}

static int open_at(int folder, const char* name, int flags, mode_t mode) {
    char path[LONGEST];
    path[0] = 0;
    if (flags & (O_CREAT | O_TRUNC)) path_at(folder, name, path);
    struct stat64 status;
    int is_there = path[0] && fstatat64(folder, name, &status, 0) == 0;
    int is_emptied = is_there && (flags & O_TRUNC) && S_ISREG(status.st_mode) && status.st_size > 0;
    if ((is_there && !is_emptied) || (!is_there && !(flags & O_CREAT))) return open_to_look(folder, name, flags, mode);
    CHANGE("open", NAMES, is_emptied ? "truncate" : "create", path, "", 0, (int)syscall(SYS_openat, folder, name, flags, mode))
}

#define MODE_OF(flags, mode)                             \
    mode_t mode = 0;                                     \
    if ((flags) & (O_CREAT | __O_TMPFILE)) {             \
        va_list rest;                                    \
        va_start(rest, flags);                           \
        mode = va_arg(rest, mode_t);                     \
        va_end(rest);                                    \
    }

int open64(const char* name, int flags, ...) {
    MODE_OF(flags, mode)
    return open_at(AT_FDCWD, name, flags | O_LARGEFILE, mode);
}

int open(const char* name, int flags, ...) {
    MODE_OF(flags, mode)
    return open_at(AT_FDCWD, name, flags, mode);
}

int openat64(int folder, const char* name, int flags, ...) {
    MODE_OF(flags, mode)
    return open_at(folder, name, flags | O_LARGEFILE, mode);
}

int openat(int folder, const char* name, int flags, ...) {
    MODE_OF(flags, mode)
    return open_at(folder, name, flags, mode);
}

int creat(const char* name, mode_t mode) { return open_at(AT_FDCWD, name, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int creat64(const char* name, mode_t mode) { return open_at(AT_FDCWD, name, O_CREAT | O_WRONLY | O_TRUNC | O_LARGEFILE, mode); }

// Shortcuts of the kernel are refused below the root: whoever uses them goes on with write().

#define REFUSE(result, name, fd, declared, passed, reason)       \
    result name declared {                                       \
        char path[LONGEST];                                      \
        path_of(fd, path);                                       \
        if (is_below(path)) {                                    \
            errno = reason;                                      \
            return -1;                                           \
        }                                                        \
        return REAL(name) passed;                                \
    }

REFUSE(ssize_t, sendfile, to, (int to, int from, off_t* at, size_t size), (to, from, at, size), EINVAL)
REFUSE(ssize_t, sendfile64, to, (int to, int from, off64_t* at, size_t size), (to, from, at, size), EINVAL)
REFUSE(ssize_t, copy_file_range, to, (int from, off64_t* a, int to, off64_t* b, size_t size, unsigned int flags), (from, a, to, b, size, flags), ENOSYS)
REFUSE(int, fallocate, fd, (int fd, int mode, off_t at, off_t size), (fd, mode, at, size), EOPNOTSUPP)
REFUSE(int, fallocate64, fd, (int fd, int mode, off64_t at, off64_t size), (fd, mode, at, size), EOPNOTSUPP)
