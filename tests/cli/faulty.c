/*
 * Stands between decant and the system, by LD_PRELOAD: FAULT="fsync 2" makes the second call of fsync fail with EIO,
 * SHORT=N lets a write take at most N bytes and interrupts every other one. SIGNAL="fsync" is a Ctrl-C in each call of it.
 * CORRUPT=N turns the lowest bit of the byte that is written at N, and says nothing. LACKS="flock lease xattr" are not to be had.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

/* Whether this call of `name` is the one to fail. */
static int fails(const char *name)
{
    static int left = -1;
    char wanted[32];
    const char *fault = getenv("FAULT"), *signal = getenv("SIGNAL");
    int nth;

    if (signal && strstr(signal, name))
        raise(SIGINT);
    if (!fault || sscanf(fault, "%31s %d", wanted, &nth) != 2 || strcmp(name, wanted) != 0)
        return 0;
    left = left < 0 ? nth - 1 : left - 1;
    if (left != 0)
        return 0;
    errno = EIO;
    return 1;
}

/* Whether the system has not got this. */
static int lacks(const char *name)
{
    const char *list = getenv("LACKS");

    if (!list || !strstr(list, name))
        return 0;
    errno = EOPNOTSUPP;
    return 1;
}

/* At most so many bytes of `len`; -1: interrupted. */
static ssize_t shortened(size_t len)
{
    static int call;
    const char *most = getenv("SHORT");

    if (!most)
        return (ssize_t)len;
    if (call++ % 2) {
        errno = EINTR;
        return -1;
    }
    return (ssize_t)(len < strtoul(most, NULL, 10) ? len : strtoul(most, NULL, 10));
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t pwrite(int fd, const void *data, size_t len, off_t at)
{
    ssize_t most = fails("write") ? -1 : shortened(len);
    const char *corrupt = getenv("CORRUPT");
    off_t bad = corrupt ? (off_t)strtoull(corrupt, NULL, 10) : -1;

    if (most > 0 && bad >= at && bad < at + most) {
        char *copy = malloc(len);
        ssize_t done;

        memcpy(copy, data, len);
        copy[bad - at] ^= 1;
        done = REAL(pwrite)(fd, copy, (size_t)most, at);
        free(copy);
        return done;
    }
    return most < 0 ? -1 : REAL(pwrite)(fd, data, (size_t)most, at);
}

ssize_t pwritev(int fd, const struct iovec *v, int count, off_t at)
{
    (void)count;
    return pwrite(fd, v[0].iov_base, v[0].iov_len, at);
}

ssize_t pwritev2(int fd, const struct iovec *v, int count, off_t at, int flags)
{
    (void)flags;
    return pwritev(fd, v, count, at);
}

int fsync(int fd)
{
    return fails("fsync") ? -1 : REAL(fsync)(fd);
}

int fdatasync(int fd)
{
    return fails("fdatasync") ? -1 : REAL(fdatasync)(fd);
}

/* What is closed is closed, whatever close says of it. */
int close(int fd)
{
    int result = REAL(close)(fd);

    return fails("close") ? -1 : result;
}

int unlinkat(int fd, const char *name, int flags)
{
    return fails("unlinkat") ? -1 : REAL(unlinkat)(fd, name, flags);
}

int renameat(int from, const char *old, int to, const char *new)
{
    return fails("renameat") ? -1 : REAL(renameat)(from, old, to, new);
}

int renameat2(int from, const char *old, int to, const char *new, unsigned flags)
{
    return fails("renameat2") ? -1 : REAL(renameat2)(from, old, to, new, flags);
}

int flock(int fd, int how)
{
    return lacks("flock") ? -1 : REAL(flock)(fd, how);
}

int fcntl(int fd, int command, ...)
{
    va_list more;
    void *value;

    va_start(more, command);
    value = va_arg(more, void *);
    va_end(more);
    return command == F_SETLEASE && lacks("lease") ? -1 : REAL(fcntl)(fd, command, value);
}

int fcntl64(int, int, ...) __attribute__((alias("fcntl")));

int fsetxattr(int fd, const char *name, const void *value, size_t len, int flags)
{
    return lacks("xattr") ? -1 : REAL(fsetxattr)(fd, name, value, len, flags);
}
