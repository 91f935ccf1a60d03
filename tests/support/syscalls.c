#include "syscalls.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static struct {
    bool active, pretend;
    size_t most;
    unsigned interrupt, interrupted; /* how often; how often since the last call that got through */
    const char *function;            /* the one that fails */
    unsigned times;
    int code;
    char *trace;
    size_t len, cap;
} now;

static void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void note(const char *format, ...)
{
    va_list args;

    if (now.len + 256 > now.cap) {
        now.cap = (now.len + 256) * 2;
        now.trace = realloc(now.trace, now.cap);
        if (!now.trace)
            abort();
    }
    va_start(args, format);
    now.len += (size_t)vsnprintf(now.trace + now.len, now.cap - now.len, format, args);
    va_end(args);
}

/* True if the call just noted is to fail, with errno set. */
static bool fails(const char *function, bool interruptible)
{
    if (now.function && now.times && strcmp(now.function, function) == 0) {
        now.times--;
        note(" = %s\n", strerrorname_np(now.code));
        errno = now.code;
        return true;
    }
    if (interruptible && now.interrupted < now.interrupt) {
        now.interrupted++;
        note(" = interrupted\n");
        errno = EINTR;
        return true;
    }
    now.interrupted = 0;
    note("\n");
    return false;
}

void syscalls_begin(void)
{
    syscalls_end();
    now.active = true;
}

void syscalls_end(void)
{
    free(now.trace);
    memset(&now, 0, sizeof now);
}

void syscalls_short(size_t most)
{
    now.most = most;
}

void syscalls_interrupt(unsigned times)
{
    now.interrupt = times;
}

void syscalls_fail(const char *function, unsigned times, int code)
{
    now.function = function;
    now.times = times;
    now.code = code;
}

void syscalls_pretend(void)
{
    now.pretend = true;
}

const char *syscalls_trace(void)
{
    return now.len ? now.trace : "";
}

void syscalls_forget(void)
{
    now.len = 0;
}

size_t syscalls_count(const char *function)
{
    size_t count = 0, len = strlen(function);

    for (const char *line = syscalls_trace(); *line; line = strchr(line, '\n') + 1)
        count += strncmp(line, function, len) == 0 && (line[len] == ' ' || line[len] == '\n');
    return count;
}

/* A function that only passes on, traces, or fails. */
#define WRAP(type, name, interruptible, params, args) \
    type __real_##name params;                        \
    type __wrap_##name params;                        \
    type __wrap_##name params                         \
    {                                                 \
        if (now.active) {                             \
            note(#name);                              \
            if (fails(#name, interruptible))          \
                return (type)-1;                      \
        }                                             \
        return __real_##name args;                    \
    }

/* The same for one that works on [at, at + len). */
#define WRAP_RANGE(name, interruptible, params, args)                   \
    int __real_##name params;                                           \
    int __wrap_##name params;                                           \
    int __wrap_##name params                                            \
    {                                                                   \
        if (now.active) {                                               \
            note("%s %lld+%lld", #name, (long long)at, (long long)len); \
            if (fails(#name, interruptible))                            \
                return -1;                                              \
            if (now.pretend)                                            \
                return 0;                                               \
        }                                                               \
        return __real_##name args;                                      \
    }

WRAP(ssize_t, copy_file_range, true, (int from, off_t *from_at, int to, off_t *to_at, size_t len, unsigned flags),
     (from, from_at, to, to_at, len, flags))
WRAP(int, fchmod, false, (int fd, mode_t mode), (fd, mode))
WRAP(int, fchown, false, (int fd, uid_t uid, gid_t gid), (fd, uid, gid))
WRAP(int, fdatasync, true, (int fd), (fd))
WRAP(int, flock, true, (int fd, int how), (fd, how))
WRAP(int, fstatvfs, true, (int fd, struct statvfs *out), (fd, out))
WRAP(int, fsync, true, (int fd), (fd))
WRAP(int, ftruncate, true, (int fd, off_t len), (fd, len))
WRAP(int, getentropy, false, (void *dst, size_t len), (dst, len))
WRAP(int, linkat, false, (int fd, const char *from, int to_fd, const char *to, int flags), (fd, from, to_fd, to, flags))
WRAP(int, pthread_create, false,
     (pthread_t * thread, const pthread_attr_t *attributes, void *(*run)(void *), void *ctx),
     (thread, attributes, run, ctx))
WRAP(int, renameat, false, (int fd, const char *from, int to_fd, const char *to), (fd, from, to_fd, to))
WRAP(int, renameat2, false, (int fd, const char *from, int to_fd, const char *to, unsigned flags),
     (fd, from, to_fd, to, flags))
WRAP(int, statx, false, (int fd, const char *path, int flags, unsigned mask, struct statx *out),
     (fd, path, flags, mask, out))
WRAP(int, unlinkat, false, (int fd, const char *path, int flags), (fd, path, flags))
WRAP_RANGE(fallocate, true, (int fd, int mode, off_t at, off_t len), (fd, mode, at, len))
WRAP_RANGE(sync_file_range, false, (int fd, off_t at, off_t len, unsigned flags), (fd, at, len, flags))

struct dirent *__real_readdir(DIR *stream);
struct dirent *__wrap_readdir(DIR *stream);

struct dirent *__wrap_readdir(DIR *stream)
{
    if (now.active) {
        note("readdir");
        if (fails("readdir", false))
            return NULL;
    }
    return __real_readdir(stream);
}

static mode_t mode_of(int flags, va_list args)
{
    return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(args, mode_t) : 0;
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);

int __wrap_open(const char *path, int flags, ...)
{
    va_list args;
    mode_t mode;

    va_start(args, flags);
    mode = mode_of(flags, args);
    va_end(args);
    if (now.active) {
        note("open%s", flags & O_PATH ? " path" : "");
        if (fails("open", true))
            return -1;
    }
    return __real_open(path, flags, mode);
}

int __real_openat(int fd, const char *path, int flags, ...);
int __wrap_openat(int fd, const char *path, int flags, ...);

int __wrap_openat(int fd, const char *path, int flags, ...)
{
    va_list args;
    mode_t mode;

    va_start(args, flags);
    mode = mode_of(flags, args);
    va_end(args);
    if (now.active) {
        note("openat");
        if (fails("openat", true))
            return -1;
    }
    return __real_openat(fd, path, flags, mode);
}

/* --- transfers --------------------------------------------------------------------------------------------------- */

static size_t total(const struct iovec *v, int count)
{
    size_t len = 0;

    for (int i = 0; i < count; i++)
        len += v[i].iov_len;
    return len;
}

/* Cuts a transfer down to what it may move; the pieces are copied to `out`. */
static int cut(const struct iovec *v, int count, struct iovec *out)
{
    size_t left = now.most;
    int n = 0;

    for (; n < count && left; n++) {
        out[n] = v[n];
        if (out[n].iov_len > left)
            out[n].iov_len = left;
        left -= out[n].iov_len;
    }
    return n;
}

/* The transfer itself; `real` takes the pieces, cut or not. */
static ssize_t transfer(const char *name, const struct iovec *v, int count, off_t at, int flags,
                        ssize_t (*real)(int fd, const struct iovec *v, int count, off_t at, int flags), int fd)
{
    struct iovec some[1024];

    if (!now.active)
        return real(fd, v, count, at, flags);
    note("%s %lld+%zu%s", name, (long long)at, total(v, count), flags == 0x80 ? " dontcache" : "");
    if (fails(name, true))
        return errno ? -1 : 0;
    if (now.pretend)
        return (ssize_t)total(v, count);
    return now.most ? real(fd, some, cut(v, count, some), at, flags) : real(fd, v, count, at, flags);
}

ssize_t __real_pread(int fd, void *dst, size_t len, off_t at);
ssize_t __real_preadv(int fd, const struct iovec *v, int count, off_t at);
ssize_t __real_pwrite(int fd, const void *data, size_t len, off_t at);
ssize_t __real_pwritev(int fd, const struct iovec *v, int count, off_t at);
ssize_t __real_pwritev2(int fd, const struct iovec *v, int count, off_t at, int flags);
ssize_t __wrap_pread(int fd, void *dst, size_t len, off_t at);
ssize_t __wrap_preadv(int fd, const struct iovec *v, int count, off_t at);
ssize_t __wrap_pwrite(int fd, const void *data, size_t len, off_t at);
ssize_t __wrap_pwritev(int fd, const struct iovec *v, int count, off_t at);
ssize_t __wrap_pwritev2(int fd, const struct iovec *v, int count, off_t at, int flags);

static ssize_t real_pread(int fd, const struct iovec *v, int count, off_t at, int flags)
{
    (void)count, (void)flags;
    return __real_pread(fd, v->iov_base, v->iov_len, at);
}

static ssize_t real_preadv(int fd, const struct iovec *v, int count, off_t at, int flags)
{
    (void)flags;
    return __real_preadv(fd, v, count, at);
}

static ssize_t real_pwrite(int fd, const struct iovec *v, int count, off_t at, int flags)
{
    (void)count, (void)flags;
    return __real_pwrite(fd, v->iov_base, v->iov_len, at);
}

static ssize_t real_pwritev(int fd, const struct iovec *v, int count, off_t at, int flags)
{
    (void)flags;
    return __real_pwritev(fd, v, count, at);
}

ssize_t __wrap_pread(int fd, void *dst, size_t len, off_t at)
{
    return transfer("pread", &(struct iovec){dst, len}, 1, at, 0, real_pread, fd);
}

ssize_t __wrap_preadv(int fd, const struct iovec *v, int count, off_t at)
{
    return transfer("preadv", v, count, at, 0, real_preadv, fd);
}

ssize_t __wrap_pwrite(int fd, const void *data, size_t len, off_t at)
{
    return transfer("pwrite", &(struct iovec){(void *)(uintptr_t)data, len}, 1, at, 0, real_pwrite, fd);
}

ssize_t __wrap_pwritev(int fd, const struct iovec *v, int count, off_t at)
{
    return transfer("pwritev", v, count, at, 0, real_pwritev, fd);
}

ssize_t __wrap_pwritev2(int fd, const struct iovec *v, int count, off_t at, int flags)
{
    return transfer("pwritev2", v, count, at, flags, __real_pwritev2, fd);
}
