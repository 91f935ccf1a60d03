/* Folders and names. */
#include "io/posix.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#if defined(__linux__)
#include <linux/fs.h>
#include <linux/magic.h>
#endif

#include "base/alloc.h"

typedef struct posix_dir {
    dcn_dir base;
    int fd;
    bool blind; /* may be passed through, not read: it cannot be synced */
} posix_dir;

static posix_dir *dir_of(dcn_dir *d)
{
    return (posix_dir *)d;
}

static int access_of(unsigned flags)
{
    /* not to wait for the other end of a FIFO, which the caller is going to refuse; files do not care */
    int how = O_CLOEXEC | O_NOCTTY | O_NONBLOCK;

    return how | (!(flags & DCN_WRITE) ? O_RDONLY : flags & DCN_READ ? O_RDWR : O_WRONLY);
}

static decant_status open_nameless(dcn_dir *d, unsigned flags, uint32_t mode, dcn_file **out, decant_error *err)
{
    int fd = -1;
    decant_status rc;

#if defined(O_TMPFILE)
    do
        fd = openat(dir_of(d)->fd, ".", access_of(flags) | O_TMPFILE, (mode_t)mode);
    while (fd < 0 && errno == EINTR);
#else
    (void)mode;
    errno = EOPNOTSUPP;
#endif
    /* the last three are of kernels that do not know what they are asked for */
    if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL || errno == ENOENT))
        return decant_error_set(err, DECANT_UNSUPPORTED, "no file without a name can be made here");
    if (fd < 0)
        return dcn_posix_failed(DCN_DO_OPEN, err);
    rc = dcn_posix_file_new(d->io, fd, dcn_strndup(d->path, strlen(d->path)), flags, out, err);
    if (!rc)
        (*out)->name = "";
    return rc;
}

/* btrfs writes elsewhere what is written over, unless a file that is still empty is told otherwise; the rest refuse, or do. */
static void try_rewriting(int fd)
{
#if defined(__linux__)
    int flags;

    if (ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0) {
        flags |= FS_NOCOW_FL;
        ioctl(fd, FS_IOC_SETFLAGS, &flags);
    }
#else
    (void)fd;
#endif
}

static decant_status posix_open(dcn_dir *d, const char *name, unsigned flags, uint32_t mode, dcn_file **out,
                                decant_error *err)
{
    int how = access_of(flags), fd;

    if (flags & DCN_NAMELESS)
        return open_nameless(d, flags, mode, out, err);
    how |= flags & (DCN_CREATE | DCN_CREATE_NEW) ? O_CREAT : 0;
    how |= flags & DCN_CREATE_NEW ? O_EXCL : 0;
    how |= flags & DCN_TRUNCATE ? O_TRUNC : 0;
    how |= flags & DCN_NO_FOLLOW ? O_NOFOLLOW : 0;
    do
        fd = openat(dir_of(d)->fd, name, how, (mode_t)mode);
    while (fd < 0 && errno == EINTR);
    if (fd < 0)
        return dcn_posix_failed(DCN_DO_OPEN, err);
    if (flags & DCN_REWRITTEN)
        try_rewriting(fd);
    return dcn_posix_file_new(d->io, fd, dcn_io_join(d->path, name), flags, out, err);
}

static decant_status posix_stat(dcn_dir *d, const char *name, dcn_facts *out, decant_error *err)
{
    return dcn_posix_outcome(DCN_DO_STAT, dcn_posix_look(dir_of(d)->fd, name, out), err);
}

static decant_status posix_readlink(dcn_dir *d, const char *name, char *out, size_t size, decant_error *err)
{
    ssize_t len = readlinkat(dir_of(d)->fd, name, out, size);

    if (len >= 0 && (size_t)len == size) {
        errno = ENAMETOOLONG; /* there may be more of it */
        len = -1;
    }
    if (len < 0)
        return dcn_posix_failed(DCN_DO_READLINK, err);
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
        rc = dcn_posix_failed(DCN_DO_LIST, err);
        if (fd >= 0)
            close(fd);
        return rc;
    }
    while (errno = 0, (entry = readdir(stream)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 && found(ctx, entry->d_name))
            goto done;
    if (errno)
        rc = dcn_posix_failed(DCN_DO_LIST, err);
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
    return dcn_posix_outcome(DCN_DO_RENAME, result, err);
}

static decant_status posix_link(dcn_dir *d, const char *name, const char *to, decant_error *err)
{
    int fd = dir_of(d)->fd;

    return dcn_posix_outcome(DCN_DO_LINK, linkat(fd, name, fd, to, 0), err);
}

static decant_status posix_remove(dcn_dir *d, const char *name, decant_error *err)
{
    return dcn_posix_outcome(DCN_DO_REMOVE, unlinkat(dir_of(d)->fd, name, 0), err);
}

static decant_status posix_sync_dir(dcn_dir *d, decant_error *err)
{
    int result = -1;

    errno = EACCES;
    if (!dir_of(d)->blind)
        result = dcn_posix_sync_all(dir_of(d)->fd);
    return dcn_posix_outcome(DCN_DO_SYNC_DIR, result, err);
}

/* What is known of a file system by its kind, since asking takes files. XFS can be made without sharing. */
typedef struct traits {
    unsigned system;
    bool shares, punches;
    dcn_lasts lasts;
} traits;

static traits traits_of(int fd)
{
#if defined(__linux__)
    static const traits known[] = {
        {BTRFS_SUPER_MAGIC, .shares = true, .punches = true, .lasts = DCN_LASTS_POWER},
        {XFS_SUPER_MAGIC, .shares = true, .punches = true, .lasts = DCN_LASTS_POWER},
        {EXT4_SUPER_MAGIC, .punches = true, .lasts = DCN_LASTS_POWER}, /* ext2 and ext3 have the same number */
        {F2FS_SUPER_MAGIC, .lasts = DCN_LASTS_POWER},
        {0x2fc12fc1 /* ZFS */, .lasts = DCN_LASTS_POWER},
        {0xca451a4e /* bcachefs */, .shares = true, .lasts = DCN_LASTS_POWER},
        {0x7461636f /* OCFS2 */, .shares = true, .lasts = DCN_LASTS_POWER},
        {TMPFS_MAGIC, .punches = true, .lasts = DCN_LASTS_PROCESS},
        {RAMFS_MAGIC, .lasts = DCN_LASTS_PROCESS},
    };
    unsigned system = dcn_posix_system(fd);

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].system == system)
            return known[i];
#else
    (void)fd;
#endif
    return (traits){0};
}

static decant_status posix_space(dcn_dir *d, dcn_space *out, decant_error *err)
{
    enum { UNIT = 1 << 16 }; /* of blocks, pages and clusters the largest that are usual; few say what theirs is */
    traits system = traits_of(dir_of(d)->fd);
    struct statvfs v;
    struct rlimit limit, files;
    int result;

    do
        result = fstatvfs(dir_of(d)->fd, &v);
    while (result && errno == EINTR);
    if (result || getrlimit(RLIMIT_FSIZE, &limit) || getrlimit(RLIMIT_NOFILE, &files))
        return dcn_posix_failed(DCN_DO_SPACE, err);
    *out = (dcn_space){
        .block = v.f_frsize ? v.f_frsize : v.f_bsize,
        .limit = limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur,
        .files = files.rlim_cur == RLIM_INFINITY ? UINT64_MAX : files.rlim_cur,
        .shares = system.shares,
        .punches = system.punches,
        .lasts = system.lasts,
    };
    out->unit = out->block > UNIT ? out->block : UNIT;
    /* memory without a bound, and what a network or a program serves without knowing, count no blocks at all */
    if (v.f_blocks == 0 || dcn_ckd_mul(&out->free, v.f_bavail, out->block))
        out->free = UINT64_MAX;
    return DECANT_OK;
}

/* The path by which the system knows the folder; else the one by which it was opened, which may lead elsewhere by now. */
static bool find_folder(dcn_dir *d, char out[PATH_MAX])
{
#if defined(__linux__)
    char link[64];
    ssize_t len;

    snprintf(link, sizeof link, "/proc/self/fd/%d", dir_of(d)->fd);
    len = readlink(link, out, PATH_MAX - 1);
    if (len >= 0) {
        out[len] = '\0';
        return true;
    }
#endif
    return realpath(d->path, out);
}

static decant_status posix_where(dcn_dir *d, char *out, size_t size, decant_error *err)
{
    char path[PATH_MAX];
    dcn_facts folder, found;

    if (!find_folder(d, path) || dcn_posix_look(dir_of(d)->fd, "", &folder) || dcn_posix_look(AT_FDCWD, path, &found) ||
        !dcn_facts_same_file(&folder, &found) || path[0] != '/' || strlen(path) >= size)
        return decant_error_set(err, DECANT_UNSUPPORTED, "cannot tell where the folder is");
    memcpy(out, path, strlen(path) + 1);
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
    .where = posix_where,
    .close = posix_close_dir,
};

decant_status dcn_posix_open_dir(dcn_io *io, const char *path, dcn_dir **out, decant_error *err)
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
        return dcn_posix_failed(DCN_DO_OPEN_DIR, err);

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
