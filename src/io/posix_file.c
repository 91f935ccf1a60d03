/* Bytes. */
#include "io/posix.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/alloc.h"

/* One call takes this much: Linux moves no more, others refuse it. */
enum { LONGEST = 0x7ffff000, PIECES = 256 };

/* Without RWF_DONTCACHE, what is written once is pushed to the disk in steps of this size. */
#define STEP (UINT64_C(8) << 20)

#if defined(__linux__) && !defined(RWF_DONTCACHE)
#define RWF_DONTCACHE 0x80 /* Linux 6.14 */
#endif

/* What one call moves. */
typedef struct batch {
    struct iovec v[PIECES];
    size_t count;
    size_t bytes;
} batch;

/* Adds as much of a piece, whose first `done` bytes are through, as one call takes, and says how much that is. */
static size_t batch_add(batch *b, const void *data, size_t done, size_t len)
{
    size_t taken = (size_t)dcn_min(len - done, LONGEST - b->bytes);

    if (b->count == PIECES)
        return 0;
    if (taken) {
        b->v[b->count++] = (struct iovec){.iov_base = (char *)(uintptr_t)data + done, .iov_len = taken};
        b->bytes += taken;
    }
    return taken;
}

/* Writes what is complete of the steps that [at, at + len) touches; what is left of the last one follows later. */
static void push_steps(dcn_posix_file *f, uint64_t at, uint64_t len)
{
#if defined(__linux__)
    uint64_t from = at / STEP * STEP, to = (at + len) / STEP * STEP;

    if (from < to)
        sync_file_range(f->fd, (off_t)from, (off_t)(to - from), SYNC_FILE_RANGE_WRITE); /* a hint */
#else
    (void)f, (void)at, (void)len;
#endif
}

static ssize_t write_some(dcn_posix_file *f, const struct iovec *v, int count, uint64_t at)
{
    ssize_t moved;

#if defined(__linux__)
    if (atomic_load_explicit(&f->uncached, memory_order_relaxed)) {
        moved = pwritev2(f->fd, v, count, (off_t)at, RWF_DONTCACHE);
        if (moved >= 0 || (errno != EOPNOTSUPP && errno != EINVAL))
            return moved;
        atomic_store_explicit(&f->uncached, false, memory_order_relaxed);
    }
#endif
    moved = count == 1 ? pwrite(f->fd, v->iov_base, v->iov_len, (off_t)at) : pwritev(f->fd, v, count, (off_t)at);
    if (moved > 0 && f->once)
        push_steps(f, at, (uint64_t)moved);
    return moved;
}

static ssize_t read_some(dcn_posix_file *f, const struct iovec *v, int count, uint64_t at)
{
    return count == 1 ? pread(f->fd, v->iov_base, v->iov_len, (off_t)at) : preadv(f->fd, v, count, (off_t)at);
}

static decant_status too_short(uint64_t size, uint64_t wanted, decant_error *err)
{
    decant_error_set(err, DECANT_TRUNCATED, "file is too short");
    dcn_error_found(err, "%" PRIu64 " bytes", size);
    dcn_error_expected(err, "at least %" PRIu64, wanted);
    dcn_error_offset(err, size);
    return DECANT_TRUNCATED;
}

/* Moves all of a batch. */
static decant_status batch_move(dcn_posix_file *f, batch *b, dcn_verb verb, uint64_t at, decant_error *err)
{
    struct iovec *v = b->v;

    while (b->bytes) {
        int count = (int)(b->v + b->count - v);
        ssize_t moved = verb == DCN_DO_WRITE ? write_some(f, v, count, at) : read_some(f, v, count, at);

        if (moved < 0 && errno == EINTR)
            continue;
        if (moved < 0) {
            decant_status rc = dcn_posix_failed(verb, err);

            if (verb == DCN_DO_READ)
                dcn_error_offset(err, at); /* what is before it was read */
            return rc;
        }
        if (moved == 0 && verb == DCN_DO_READ)
            return too_short(at, at + b->bytes, err);
        if (moved == 0) {
            errno = EIO; /* no progress and no reason */
            return dcn_posix_failed(verb, err);
        }
        at += (uint64_t)moved;
        b->bytes -= (size_t)moved;
        for (size_t left = (size_t)moved; left;) {
            size_t part = (size_t)dcn_min(left, v->iov_len);

            v->iov_base = (char *)v->iov_base + part;
            v->iov_len -= part;
            left -= part;
            v += v->iov_len == 0;
        }
    }
    return DECANT_OK;
}

static decant_status posix_read(dcn_file *file, const dcn_range *r, size_t count, decant_error *err)
{
    dcn_posix_file *f = dcn_posix_file_of(file);
    size_t i = 0, done = 0; /* of ranges, and in bytes of the one after them */

    while (i < count) {
        uint64_t at = r[i].at + done, end = at;
        batch b;
        decant_status rc;

        b.count = b.bytes = 0;
        while (i < count && r[i].at + done == end) {
            size_t taken = batch_add(&b, r[i].dst, done, r[i].len);

            if (dcn_posix_too_far(r[i].at, r[i].len))
                return too_short(INT64_MAX, r[i].at, err);
            end += taken;
            done += taken;
            if (done < r[i].len)
                break;
            done = 0;
            i++;
        }
        if ((rc = batch_move(f, &b, DCN_DO_READ, at, err)))
            return rc;
    }
    return DECANT_OK;
}

static decant_status posix_write(dcn_file *file, uint64_t at, const dcn_chunk *c, size_t count, decant_error *err)
{
    dcn_posix_file *f = dcn_posix_file_of(file);
    size_t i = 0, done = 0;

    while (i < count) {
        uint64_t end = at;
        batch b;
        decant_status rc;

        b.count = b.bytes = 0;
        while (i < count) {
            size_t taken = batch_add(&b, c[i].data, done, c[i].len);

            if (dcn_posix_too_far(end, taken))
                return dcn_posix_refuse_far(DCN_DO_WRITE, err);
            end += taken;
            done += taken;
            if (done < c[i].len)
                break;
            done = 0;
            i++;
        }
        if ((rc = batch_move(f, &b, DCN_DO_WRITE, at, err)))
            return rc;
        at = end;
    }
    return DECANT_OK;
}

static decant_status posix_resize(dcn_file *f, uint64_t len, decant_error *err)
{
    int result;

    if (dcn_posix_too_far(0, len))
        return dcn_posix_refuse_far(DCN_DO_RESIZE, err);
    do
        result = ftruncate(dcn_posix_file_of(f)->fd, (off_t)len);
    while (result && errno == EINTR);
    return dcn_posix_outcome(DCN_DO_RESIZE, result, err);
}

int dcn_posix_sync_all(int fd)
{
    int result;

    do {
#if defined(__APPLE__)
        result = fcntl(fd, F_FULLFSYNC); /* fsync leaves the data in the drive's cache */
        if (result && (errno == ENOTSUP || errno == ENOTTY || errno == EINVAL))
            result = fsync(fd);
#else
        result = fsync(fd);
#endif
    } while (result && errno == EINTR);
    return result;
}

static decant_status posix_sync(dcn_file *file, decant_error *err)
{
    dcn_posix_file *f = dcn_posix_file_of(file);
    int result;

#if defined(__APPLE__)
    result = dcn_posix_sync_all(f->fd);
#else
    if (f->attributes) {
        result = dcn_posix_sync_all(f->fd);
    } else {
        do
            result = fdatasync(f->fd);
        while (result && errno == EINTR);
    }
#endif
    return dcn_posix_outcome(DCN_DO_SYNC, result, err);
}

static decant_status posix_facts(dcn_file *f, dcn_facts *out, decant_error *err)
{
    return dcn_posix_outcome(DCN_DO_FACTS, dcn_posix_look(dcn_posix_file_of(f)->fd, "", out), err);
}

static decant_status posix_lock(dcn_file *f, decant_error *err)
{
    int result;

    do
        result = flock(dcn_posix_file_of(f)->fd, LOCK_EX | LOCK_NB);
    while (result && errno == EINTR);
    return dcn_posix_outcome(DCN_DO_LOCK, result, err);
}

static decant_status posix_copy(dcn_file *file, uint64_t at, dcn_file *source, uint64_t source_at, uint64_t len,
                                decant_error *err)
{
#if defined(__linux__)
    dcn_posix_file *f = dcn_posix_file_of(file);
    off_t from = (off_t)source_at, to = (off_t)at;

    /* past the cache, a write of our own is faster */
    while (len && !atomic_load_explicit(&f->uncached, memory_order_relaxed) && !dcn_posix_too_far(at, len) &&
           !dcn_posix_too_far(source_at, len)) {
        ssize_t moved =
            copy_file_range(dcn_posix_file_of(source)->fd, &from, f->fd, &to, (size_t)dcn_min(len, LONGEST), 0);

        if (moved < 0 && errno == EINTR)
            continue;
        if (moved < 0 && dcn_posix_status(DCN_DO_COPY, errno) == DECANT_NO_SPACE)
            return dcn_posix_failed(DCN_DO_COPY, err);
        if (moved <= 0)
            break;
        len -= (uint64_t)moved;
    }
#else
    (void)file, (void)at, (void)source, (void)source_at;
#endif
    return len ? decant_error_set(err, DECANT_UNSUPPORTED, "the system does not copy between these files") : DECANT_OK;
}

static decant_status posix_forget(dcn_file *f, decant_error *err)
{
#if defined(POSIX_FADV_DONTNEED)
    errno = posix_fadvise(dcn_posix_file_of(f)->fd, 0, 0, POSIX_FADV_DONTNEED);
#else
    (void)f;
    errno = ENOSYS;
#endif
    return errno ? dcn_posix_failed(DCN_DO_FORGET, err) : DECANT_OK;
}

static void posix_close(dcn_file *f)
{
    close(dcn_posix_file_of(f)->fd);
    dcn_free_raw((void *)(uintptr_t)f->path);
    dcn_free_raw(f);
}

static const dcn_file_ops file_ops = {
    .read = posix_read,
    .write = posix_write,
    .resize = posix_resize,
    .sync = posix_sync,
    .facts = posix_facts,
    .close = posix_close,
    .reserve = dcn_posix_reserve,
    .lock = posix_lock,
    .resemble = dcn_posix_resemble,
    .copy = posix_copy,
    .forget = posix_forget,
    .clone = dcn_posix_clone,
    .punch = dcn_posix_punch,
    .extents = dcn_posix_extents,
    .data = dcn_posix_data,
    .alone = dcn_posix_alone,
    .note = dcn_posix_note,
    .read_note = dcn_posix_read_note,
    .set_mtime = dcn_posix_set_mtime,
};

decant_status dcn_posix_file_new(dcn_io *io, int fd, char *path, unsigned flags, dcn_file **out, decant_error *err)
{
    dcn_posix_file *f = path ? dcn_alloc(1, sizeof *f) : NULL;
    const char *slash;

    if (!f) {
        close(fd);
        dcn_free(&path);
        return dcn_error_nomem(err);
    }
    slash = strrchr(path, '/');
    f->base = (dcn_file){.ops = &file_ops, .io = io, .path = path, .name = slash ? slash + 1 : path};
    f->fd = fd;
    f->once = flags & DCN_ONCE;
    atomic_init(&f->uncached, f->once);
    *out = &f->base;
    return DECANT_OK;
}

decant_status dcn_file_from_fd(int fd, dcn_file **out, decant_error *err)
{
    char name[32];
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);

    if (own < 0)
        return dcn_posix_failed(DCN_DO_OPEN, err);
    snprintf(name, sizeof name, "descriptor %d", fd);
    return dcn_posix_file_new(dcn_io_posix(), own, dcn_strndup(name, strlen(name)), 0, out, err);
}
