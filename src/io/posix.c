/*
 * The system that the program runs on. The one file that knows errno: a failing call becomes a status, the system's own
 * words, and the code, here and nowhere else. Every loop over short transfers and interruptions is here too; the tests
 * put their own functions in the place of the system's when they link, and so make both happen.
 */
#define _GNU_SOURCE
#define _DARWIN_C_SOURCE
#if !defined(__LP64__)
#define _FILE_OFFSET_BITS 64
#endif

#include "io/io.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#if defined(__linux__)
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#elif defined(__APPLE__)
#include <copyfile.h>
#include <sys/random.h>
#endif

#include "base/alloc.h"
#include "base/ckd.h"

/* One call takes this much: Linux moves no more, others refuse it. */
enum { LONGEST = 0x7ffff000, PIECES = 256 };

/* Without RWF_DONTCACHE, what is written once is pushed to the disk in steps of this size. */
#define STEP (UINT64_C(8) << 20)

#if defined(__linux__) && !defined(STATX_ATTR_MOUNT_ROOT)
#define STATX_ATTR_MOUNT_ROOT 0x2000 /* Linux 5.8 */
#endif
#if defined(__linux__) && !defined(RWF_DONTCACHE)
#define RWF_DONTCACHE 0x80 /* Linux 6.14 */
#endif

typedef struct posix_dir {
    dcn_dir base;
    int fd;
    bool blind; /* may be passed through, not read: it cannot be synced */
} posix_dir;

typedef struct posix_file {
    dcn_file base;
    int fd;
    bool resembled;       /* mode, owner and attributes wait for a full sync */
    atomic_bool uncached; /* try RWF_DONTCACHE; cleared by the first refusal, and nothing depends on its order */
    bool once;
} posix_file;

static posix_dir *dir_of(dcn_dir *d)
{
    return (posix_dir *)d;
}

static posix_file *file_of(dcn_file *f)
{
    return (posix_file *)f;
}

/* What a call was for, and the codes that mean "not on this file system": try another way. */
static const struct {
    const char *what;
    int elsewhere[4];
} calls[DCN_VERB_COUNT] = {
    [DCN_DO_OPEN_DIR] = {"cannot open the folder", {0}},
    [DCN_DO_RANDOM] = {"cannot get random bytes", {0}},
    [DCN_DO_OPEN] = {"cannot open", {0}},
    [DCN_DO_STAT] = {"cannot look at it", {0}},
    [DCN_DO_READLINK] = {"cannot tell where the link leads", {EINVAL, ENAMETOOLONG}},
    [DCN_DO_LIST] = {"cannot list the folder", {0}},
    [DCN_DO_RENAME] = {"cannot rename to this", {EINVAL, ENOSYS, EXDEV, EOPNOTSUPP}},
    [DCN_DO_LINK] = {"cannot link to this", {EPERM, EMLINK, EXDEV, EOPNOTSUPP}},
    [DCN_DO_REMOVE] = {"cannot remove", {0}},
    [DCN_DO_SYNC_DIR] = {"cannot sync the folder", {EINVAL, ENOSYS, EOPNOTSUPP}},
    [DCN_DO_SPACE] = {"cannot tell the free space", {ENOSYS, EOPNOTSUPP}},
    [DCN_DO_READ] = {"cannot read", {0}},
    [DCN_DO_WRITE] = {"cannot write", {0}},
    [DCN_DO_RESIZE] = {"cannot set the size", {EPERM, ENOSYS, EOPNOTSUPP}},
    [DCN_DO_RESERVE] = {"cannot reserve room", {ENOSYS, EOPNOTSUPP, ENODEV, EINVAL}},
    [DCN_DO_SYNC] = {"cannot sync", {0}},
    [DCN_DO_FACTS] = {"cannot look at it", {0}},
    [DCN_DO_LOCK] = {"cannot lock", {ENOLCK, ENOSYS, EOPNOTSUPP, EINVAL}},
    [DCN_DO_RESEMBLE] = {"cannot be made like the old file", {0}},
    [DCN_DO_COPY] = {"cannot write", {0}},
    [DCN_DO_FORGET] = {"cannot drop what is cached of it", {ENOSYS, EOPNOTSUPP, EINVAL, ESPIPE}},
    [DCN_DO_CLONE] = {"cannot write", {0}},
};

static decant_status status_of(dcn_verb verb, int code)
{
    for (size_t i = 0; i < sizeof calls[verb].elsewhere / sizeof(int); i++)
        if (calls[verb].elsewhere[i] && calls[verb].elsewhere[i] == code)
            return DECANT_UNSUPPORTED;
    switch (code) {
    case ENOENT:
    case ENOTDIR:
        return DECANT_NOT_FOUND;
    case EACCES:
    case EPERM:
    case EROFS:
    case EISDIR:
    case ELOOP:
    case ENXIO:
        return DECANT_DENIED;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return DECANT_NO_SPACE;
    case EEXIST:
    case ENOTEMPTY:
        return DECANT_EXISTS;
    case EAGAIN:
    case EBUSY:
    case ETXTBSY:
        return DECANT_BUSY;
    case EMFILE:
    case ENFILE:
        return DECANT_LIMIT;
    case EINVAL:
        return verb == DCN_DO_OPEN ? DECANT_BAD_CALL : DECANT_IO; /* a name that the file system does not take */
    case EBADF:
    case ENAMETOOLONG:
    case EILSEQ:
        return DECANT_BAD_CALL;
    case ENOMEM:
        return DECANT_NOMEM;
    default:
        return DECANT_IO;
    }
}

static const char *words(int code, char *out, size_t size)
{
#if defined(__GLIBC__) || defined(__BIONIC__)
    return strerror_r(code, out, size);
#else
    return strerror_r(code, out, size) ? "unknown error" : out;
#endif
}

/* The failure of the call just made. */
static decant_status failed(dcn_verb verb, decant_error *err)
{
    int code = errno;
    char text[128];
    struct rlimit limit;
    decant_status rc = status_of(verb, code);

    decant_error_set(err, rc, "%s: %s", calls[verb].what, words(code, text, sizeof text));
    if (rc == DECANT_LIMIT) {
        if (code == EMFILE && getrlimit(RLIMIT_NOFILE, &limit) == 0)
            dcn_error_found(err, "a limit of %" PRIu64 " for this process", (uint64_t)limit.rlim_cur);
        dcn_error_hint(err, "close some, or raise the limit with ulimit -n");
    } else if (code == ENAMETOOLONG)
        dcn_error_hint(err, "choose a shorter path");
    else if (code == EFBIG)
        dcn_error_hint(err, "choose a disk that takes files of this size");
    else if (rc == DECANT_BAD_CALL && code != EBADF)
        dcn_error_hint(err, "choose another name: the file system does not take this one");
    if (err)
        err->os_code = code;
    return rc;
}

static decant_status outcome(dcn_verb verb, int result, decant_error *err)
{
    return result ? failed(verb, err) : DECANT_OK;
}

/* Files cannot be longer than this; the system's offsets are signed. */
static bool too_far(uint64_t at, uint64_t len)
{
    return dcn_outside(at, len, INT64_MAX);
}

static decant_status refuse_far(dcn_verb verb, decant_error *err)
{
    errno = EFBIG;
    return failed(verb, err);
}

/* --- facts ------------------------------------------------------------------------------------------------------- */

static dcn_kind kind_of(unsigned mode)
{
    return S_ISREG(mode)   ? DCN_KIND_REGULAR
           : S_ISDIR(mode) ? DCN_KIND_FOLDER
           : S_ISLNK(mode) ? DCN_KIND_LINK
                           : DCN_KIND_OTHER;
}

static int64_t ns_of(int64_t seconds, long ns)
{
    return seconds * 1000000000 + ns;
}

static bool is_ours(uid_t uid)
{
    return uid == geteuid() || geteuid() == 0;
}

/* Of the open file itself if `name` is empty. */
static int look(int fd, const char *name, dcn_facts *out)
{
#if defined(__linux__)
    struct statx x;

    if (statx(fd, name, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &x))
        return -1;
    *out = (dcn_facts){
        .dev = makedev(x.stx_dev_major, x.stx_dev_minor),
        .ino = x.stx_ino,
        .birth = x.stx_mask & STATX_BTIME ? ns_of(x.stx_btime.tv_sec, x.stx_btime.tv_nsec) : 0,
        .mtime = ns_of(x.stx_mtime.tv_sec, x.stx_mtime.tv_nsec),
        .size = x.stx_size,
        .blocks = x.stx_blocks * 512,
        .links = x.stx_nlink,
        .mode = x.stx_mode & 07777,
        .uid = x.stx_uid,
        .gid = x.stx_gid,
        .ours = is_ours(x.stx_uid),
        .mine = x.stx_uid == geteuid(),
        .mounted = x.stx_attributes & STATX_ATTR_MOUNT_ROOT,
        .kind = kind_of(x.stx_mode),
    };
#else
    struct stat s;

    if (name[0] ? fstatat(fd, name, &s, AT_SYMLINK_NOFOLLOW) : fstat(fd, &s))
        return -1;
    *out = (dcn_facts)
    {
        .dev = (uint64_t)s.st_dev, .ino = (uint64_t)s.st_ino,
#if defined(__APPLE__)
        .birth = ns_of(s.st_birthtimespec.tv_sec, s.st_birthtimespec.tv_nsec),
        .mtime = ns_of(s.st_mtimespec.tv_sec, s.st_mtimespec.tv_nsec),
#else
        .mtime = ns_of(s.st_mtim.tv_sec, s.st_mtim.tv_nsec),
#endif
        .size = (uint64_t)s.st_size, .blocks = (uint64_t)s.st_blocks * 512, .links = (uint64_t)s.st_nlink,
        .mode = s.st_mode & 07777, .uid = s.st_uid, .gid = s.st_gid, .ours = is_ours(s.st_uid),
        .mine = s.st_uid == geteuid(), .kind = kind_of(s.st_mode),
    };
#endif
    return 0;
}

/* --- files ------------------------------------------------------------------------------------------------------- */

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
static void push_steps(posix_file *f, uint64_t at, uint64_t len)
{
#if defined(__linux__)
    uint64_t from = at / STEP * STEP, to = (at + len) / STEP * STEP;

    if (from < to)
        sync_file_range(f->fd, (off_t)from, (off_t)(to - from), SYNC_FILE_RANGE_WRITE); /* a hint */
#else
    (void)f, (void)at, (void)len;
#endif
}

static ssize_t write_some(posix_file *f, const struct iovec *v, int count, uint64_t at)
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

static ssize_t read_some(posix_file *f, const struct iovec *v, int count, uint64_t at)
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
static decant_status batch_move(posix_file *f, batch *b, dcn_verb verb, uint64_t at, decant_error *err)
{
    struct iovec *v = b->v;

    while (b->bytes) {
        int count = (int)(b->v + b->count - v);
        ssize_t moved = verb == DCN_DO_WRITE ? write_some(f, v, count, at) : read_some(f, v, count, at);

        if (moved < 0 && errno == EINTR)
            continue;
        if (moved < 0) {
            decant_status rc = failed(verb, err);

            if (verb == DCN_DO_READ)
                dcn_error_offset(err, at); /* what is before it was read */
            return rc;
        }
        if (moved == 0 && verb == DCN_DO_READ)
            return too_short(at, at + b->bytes, err);
        if (moved == 0) {
            errno = EIO; /* no progress and no reason */
            return failed(verb, err);
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
    posix_file *f = file_of(file);
    size_t i = 0, done = 0; /* of ranges, and in bytes of the one after them */

    while (i < count) {
        uint64_t at = r[i].at + done, end = at;
        batch b;
        decant_status rc;

        b.count = b.bytes = 0;
        while (i < count && r[i].at + done == end) {
            size_t taken = batch_add(&b, r[i].dst, done, r[i].len);

            if (too_far(r[i].at, r[i].len))
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
    posix_file *f = file_of(file);
    size_t i = 0, done = 0;

    while (i < count) {
        uint64_t end = at;
        batch b;
        decant_status rc;

        b.count = b.bytes = 0;
        while (i < count) {
            size_t taken = batch_add(&b, c[i].data, done, c[i].len);

            if (too_far(end, taken))
                return refuse_far(DCN_DO_WRITE, err);
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

    if (too_far(0, len))
        return refuse_far(DCN_DO_RESIZE, err);
    do
        result = ftruncate(file_of(f)->fd, (off_t)len);
    while (result && errno == EINTR);
    return outcome(DCN_DO_RESIZE, result, err);
}

/* Data and all attributes, down to the medium. */
static int sync_all(int fd)
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
    posix_file *f = file_of(file);
    int result;

#if defined(__APPLE__)
    result = sync_all(f->fd);
#else
    if (f->resembled) {
        result = sync_all(f->fd);
    } else {
        do
            result = fdatasync(f->fd);
        while (result && errno == EINTR);
    }
#endif
    return outcome(DCN_DO_SYNC, result, err);
}

static decant_status posix_facts(dcn_file *f, dcn_facts *out, decant_error *err)
{
    return outcome(DCN_DO_FACTS, look(file_of(f)->fd, "", out), err);
}

static decant_status posix_reserve(dcn_file *f, uint64_t at, uint64_t len, decant_error *err)
{
#if defined(__linux__)
    struct statfs system;
    int result;

    if (too_far(at, len))
        return refuse_far(DCN_DO_RESERVE, err);
    if (len == 0)
        return DECANT_OK;
    if (fstatfs(file_of(f)->fd, &system) == 0 && system.f_type == TMPFS_MAGIC) {
        errno = EOPNOTSUPP; /* it would clear every page, which the write does not need: an eighth of its time */
        return failed(DCN_DO_RESERVE, err);
    }
    do /* not posix_fallocate: where the file system cannot, the C library would write zeros */
        result = fallocate(file_of(f)->fd, FALLOC_FL_KEEP_SIZE, (off_t)at, (off_t)len);
    while (result && errno == EINTR);
#else
    int result = -1;

    (void)f, (void)at, (void)len;
    errno = ENOSYS;
#endif
    return outcome(DCN_DO_RESERVE, result, err);
}

static decant_status posix_lock(dcn_file *f, decant_error *err)
{
    int result;

    do
        result = flock(file_of(f)->fd, LOCK_EX | LOCK_NB);
    while (result && errno == EINTR);
    return outcome(DCN_DO_LOCK, result, err);
}

static decant_status posix_copy(dcn_file *file, uint64_t at, dcn_file *source, uint64_t source_at, uint64_t len,
                                decant_error *err)
{
#if defined(__linux__)
    posix_file *f = file_of(file);
    off_t from = (off_t)source_at, to = (off_t)at;

    /* past the cache, a write of our own is faster */
    while (len && !atomic_load_explicit(&f->uncached, memory_order_relaxed) && !too_far(at, len) &&
           !too_far(source_at, len)) {
        ssize_t moved = copy_file_range(file_of(source)->fd, &from, f->fd, &to, (size_t)dcn_min(len, LONGEST), 0);

        if (moved < 0 && errno == EINTR)
            continue;
        if (moved < 0 && status_of(DCN_DO_COPY, errno) == DECANT_NO_SPACE)
            return failed(DCN_DO_COPY, err);
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
    errno = posix_fadvise(file_of(f)->fd, 0, 0, POSIX_FADV_DONTNEED);
#else
    (void)f;
    errno = ENOSYS;
#endif
    return errno ? failed(DCN_DO_FORGET, err) : DECANT_OK;
}

static decant_status posix_clone(dcn_file *file, uint64_t at, dcn_file *source, uint64_t source_at, uint64_t len,
                                 decant_error *err)
{
#if defined(__linux__)
    struct file_clone_range range = {file_of(source)->fd, source_at, len, at};
    int result;

    do
        result = ioctl(file_of(file)->fd, FICLONERANGE, &range);
    while (result && errno == EINTR);
    if (result == 0)
        return DECANT_OK;
    if (status_of(DCN_DO_CLONE, errno) == DECANT_NO_SPACE)
        return failed(DCN_DO_CLONE, err);
#else
    (void)file, (void)at, (void)source, (void)source_at, (void)len;
#endif
    return decant_error_set(err, DECANT_UNSUPPORTED, "the system does not share blocks between these files");
}

#if defined(__linux__)
static const char acl[] = "system.posix_acl_access";

/* Not what vouches for the old content, and not an ACL whose group is another one now. */
static bool comes_along(const char *name, bool same_group)
{
    static const char *const about_content[] = {"security.capability", "security.evm", "security.ima"};

    for (size_t i = 0; i < sizeof about_content / sizeof *about_content; i++)
        if (strcmp(name, about_content[i]) == 0)
            return false;
    return same_group || strcmp(name, acl) != 0;
}

/*
 * Extended attributes; ACLs are among them. An ACL that the folder gave the new file goes if the old one has none. What
 * is refused (security.* needs rights, another file system may have none) is left out.
 */
static decant_status copy_attributes(int from, int to, bool same_group, decant_error *err)
{
    enum { NAMES = 1 << 16, VALUE = 1 << 16 }; /* Linux lists and keeps no more */
    char *names = dcn_alloc(NAMES + VALUE, 1), *value;
    ssize_t names_len, value_len;

    if (!names)
        return dcn_error_nomem(err);
    value = names + NAMES;
    if (fgetxattr(from, acl, NULL, 0) < 0 && errno == ENODATA)
        fremovexattr(to, acl);
    names_len = flistxattr(from, names, NAMES);
    for (char *name = names; name < names + names_len; name += strlen(name) + 1)
        if (comes_along(name, same_group) && (value_len = fgetxattr(from, name, value, VALUE)) >= 0)
            fsetxattr(to, name, value, (size_t)value_len, 0);
    dcn_free(&names);
    return DECANT_OK;
}
#elif defined(__APPLE__)
static decant_status copy_attributes(int from, int to, bool same_group, decant_error *err)
{
    (void)err;
    fcopyfile(from, to, NULL, same_group ? COPYFILE_ACL | COPYFILE_XATTR : COPYFILE_XATTR);
    return DECANT_OK;
}
#else
static decant_status copy_attributes(int from, int to, bool same_group, decant_error *err)
{
    (void)from, (void)to, (void)same_group, (void)err;
    return DECANT_OK;
}
#endif

static decant_status posix_resemble(dcn_file *file, dcn_file *old, decant_error *err)
{
    posix_file *f = file_of(file);
    int from = file_of(old)->fd;
    dcn_facts facts;
    uint32_t mode;
    bool same_group = true;
    decant_status rc;

    assert(old->ops == file->ops);
    if (look(from, "", &facts))
        return failed(DCN_DO_RESEMBLE, err);
    f->resembled = true;

    /* the owner first: changing it takes the set-id bits away, which are for the old owner and group alone */
    mode = facts.mode;
    if (fchown(f->fd, facts.uid, facts.gid)) {
        mode &= 0777;
        same_group = fchown(f->fd, (uid_t)-1, facts.gid) == 0;
    }
    if (!same_group)
        mode &= ~(uint32_t)070 | (mode & 07) << 3; /* another group may do what all may */

    /* the mode last: it may make the file read-only, and with the folder's ACL still there it would let in whom that names */
    rc = copy_attributes(from, f->fd, same_group, err);
    fchmod(f->fd, (mode_t)mode);
    return rc;
}

static void posix_close(dcn_file *f)
{
    close(file_of(f)->fd);
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
    .reserve = posix_reserve,
    .lock = posix_lock,
    .resemble = posix_resemble,
    .copy = posix_copy,
    .forget = posix_forget,
    .clone = posix_clone,
};

/* Takes over `fd` and `path`, also on failure. */
static decant_status file_new(dcn_io *io, int fd, char *path, unsigned flags, dcn_file **out, decant_error *err)
{
    posix_file *f = path ? dcn_alloc(1, sizeof *f) : NULL;
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
        return failed(DCN_DO_OPEN, err);
    snprintf(name, sizeof name, "descriptor %d", fd);
    return file_new(dcn_io_posix(), own, dcn_strndup(name, strlen(name)), 0, out, err);
}

/* --- folders ----------------------------------------------------------------------------------------------------- */

static decant_status posix_open(dcn_dir *d, const char *name, unsigned flags, uint32_t mode, dcn_file **out,
                                decant_error *err)
{
    /* not to wait for the other end of a FIFO, which the caller is going to refuse; files do not care */
    int how = O_CLOEXEC | O_NOCTTY | O_NONBLOCK, fd;

    how |= !(flags & DCN_WRITE) ? O_RDONLY : flags & DCN_READ ? O_RDWR : O_WRONLY;
    how |= flags & (DCN_CREATE | DCN_CREATE_NEW) ? O_CREAT : 0;
    how |= flags & DCN_CREATE_NEW ? O_EXCL : 0;
    how |= flags & DCN_TRUNCATE ? O_TRUNC : 0;
    how |= flags & DCN_NO_FOLLOW ? O_NOFOLLOW : 0;
    do
        fd = openat(dir_of(d)->fd, name, how, (mode_t)mode);
    while (fd < 0 && errno == EINTR);
    if (fd < 0)
        return failed(DCN_DO_OPEN, err);
    return file_new(d->io, fd, dcn_io_join(d->path, name), flags, out, err);
}

static decant_status posix_stat(dcn_dir *d, const char *name, dcn_facts *out, decant_error *err)
{
    return outcome(DCN_DO_STAT, look(dir_of(d)->fd, name, out), err);
}

static decant_status posix_readlink(dcn_dir *d, const char *name, char *out, size_t size, decant_error *err)
{
    ssize_t len = readlinkat(dir_of(d)->fd, name, out, size);

    if (len >= 0 && (size_t)len == size) {
        errno = ENAMETOOLONG; /* there may be more of it */
        len = -1;
    }
    if (len < 0)
        return failed(DCN_DO_READLINK, err);
    out[len] = '\0';
    return DECANT_OK;
}

static decant_status posix_list(dcn_dir *d, int (*found)(void *ctx, const char *name), void *ctx, decant_error *err)
{
    /* a descriptor of its own: the position in a folder belongs to the description */
    int fd = openat(dir_of(d)->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    decant_status rc = DECANT_OK;

    if (!stream) {
        rc = failed(DCN_DO_LIST, err);
        if (fd >= 0)
            close(fd);
        return rc;
    }
    while (errno = 0, (entry = readdir(stream)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 && found(ctx, entry->d_name))
            goto done;
    if (errno)
        rc = failed(DCN_DO_LIST, err);
done:
    closedir(stream);
    return rc;
}

static decant_status posix_rename(dcn_dir *d, const char *name, const char *to, unsigned flags, decant_error *err)
{
    int fd = dir_of(d)->fd, result;

    if (!(flags & DCN_NO_REPLACE)) {
        result = renameat(fd, name, fd, to);
    } else {
#if defined(__linux__)
        result = renameat2(fd, name, fd, to, RENAME_NOREPLACE);
#elif defined(__APPLE__)
        result = renameatx_np(fd, name, fd, to, RENAME_EXCL);
#else
        result = -1;
        errno = ENOSYS;
#endif
    }
    return outcome(DCN_DO_RENAME, result, err);
}

static decant_status posix_link(dcn_dir *d, const char *name, const char *to, decant_error *err)
{
    int fd = dir_of(d)->fd;

    return outcome(DCN_DO_LINK, linkat(fd, name, fd, to, 0), err);
}

static decant_status posix_remove(dcn_dir *d, const char *name, decant_error *err)
{
    return outcome(DCN_DO_REMOVE, unlinkat(dir_of(d)->fd, name, 0), err);
}

static decant_status posix_sync_dir(dcn_dir *d, decant_error *err)
{
    int result = -1;

    errno = EACCES;
    if (!dir_of(d)->blind)
        result = sync_all(dir_of(d)->fd);
    return outcome(DCN_DO_SYNC_DIR, result, err);
}

/* Whether files of this system can share blocks: by its kind, since asking takes two files. XFS can be made without. */
static bool can_share(int fd)
{
#if defined(__linux__)
    static const unsigned kinds[] = {BTRFS_SUPER_MAGIC, XFS_SUPER_MAGIC, 0xca451a4e /* bcachefs */,
                                     0x7461636f /* OCFS2 */};
    struct statfs system;

    if (fstatfs(fd, &system))
        return false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if ((unsigned)system.f_type == kinds[i])
            return true;
#else
    (void)fd;
#endif
    return false;
}

static decant_status posix_space(dcn_dir *d, dcn_space *out, decant_error *err)
{
    struct statvfs v;
    struct rlimit limit;
    int result;

    do
        result = fstatvfs(dir_of(d)->fd, &v);
    while (result && errno == EINTR);
    if (result || getrlimit(RLIMIT_FSIZE, &limit))
        return failed(DCN_DO_SPACE, err);
    *out = (dcn_space){
        .block = v.f_frsize ? v.f_frsize : v.f_bsize,
        .limit = limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur,
        .shares = can_share(dir_of(d)->fd),
    };
    /* memory without a bound, and what a network or a program serves without knowing, count no blocks at all */
    if (v.f_blocks == 0 || dcn_ckd_mul(&out->free, v.f_bavail, out->block))
        out->free = UINT64_MAX;
    return DECANT_OK;
}

static void posix_close_dir(dcn_dir *d)
{
    close(dir_of(d)->fd);
    dcn_free_raw((void *)(uintptr_t)d->path);
    dcn_free_raw(d);
}

static const dcn_dir_ops dir_ops = {
    .open = posix_open,
    .stat = posix_stat,
    .readlink = posix_readlink,
    .list = posix_list,
    .rename = posix_rename,
    .link = posix_link,
    .remove = posix_remove,
    .sync = posix_sync_dir,
    .space = posix_space,
    .close = posix_close_dir,
};

/* --- the system -------------------------------------------------------------------------------------------------- */

static decant_status posix_open_dir(dcn_io *io, const char *path, dcn_dir **out, decant_error *err)
{
    posix_dir *d = NULL;
    char *copy = NULL;
    int fd;
    bool blind = false;
    decant_status rc;

    do
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (fd < 0 && errno == EINTR);
#if defined(O_PATH)
    if (fd < 0 && errno == EACCES) { /* a folder that may be passed through still has files */
        fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        blind = true;
    }
#endif
    if (fd < 0)
        return failed(DCN_DO_OPEN_DIR, err);

    copy = dcn_strndup(path, strlen(path));
    d = dcn_alloc(1, sizeof *d);
    if (!copy || !d) {
        rc = dcn_error_nomem(err);
        goto failed;
    }
    d->base = (dcn_dir){.ops = &dir_ops, .io = io, .path = copy};
    d->fd = fd;
    d->blind = blind;
    *out = &d->base;
    return DECANT_OK;
failed:
    dcn_free(&d);
    dcn_free(&copy);
    close(fd);
    return rc;
}

static decant_status posix_random(dcn_io *io, void *dst, size_t len, decant_error *err)
{
    enum { MOST = 256 }; /* getentropy gives no more at a time */
    char *at = dst;

    (void)io;
    while (len) {
        size_t part = len < MOST ? len : MOST;

        if (getentropy(at, part))
            return failed(DCN_DO_RANDOM, err);
        at += part;
        len -= part;
    }
    return DECANT_OK;
}

/* "01234567-89ab-...": the value of two hexadecimal digits at a time, dashes left out. What is none counts as 0. */
static void read_uuid(const char *text, uint8_t out[16])
{
    static const char digits[] = "0123456789abcdef";
    size_t count = 0;

    for (; *text && count < 32; text++) {
        const char *digit = strchr(digits, *text);

        if (digit) {
            out[count / 2] = (uint8_t)(out[count / 2] << 4 | (digit - digits));
            count++;
        }
    }
}

static decant_status posix_who(dcn_io *io, dcn_self *out, decant_error *err)
{
    char text[64] = "";
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

    (void)io, (void)err;
    *out = (dcn_self){.process = (uint64_t)getpid()};
    if (fd < 0)
        return DECANT_OK;
    if (read(fd, text, sizeof text - 1) >= 36)
        read_uuid(text, out->boot);
    close(fd);
    return DECANT_OK;
}

dcn_io *dcn_io_posix(void)
{
    static const dcn_io_ops ops = {.open_dir = posix_open_dir, .random = posix_random, .who = posix_who};
    static dcn_io system = {.ops = &ops};

    return &system;
}
