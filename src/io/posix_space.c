/* Blocks: where a file has them, with whom it shares them, and how it gets and gives them up. */
#include "io/posix.h"

#include <fcntl.h>
#include <unistd.h>

#if defined(__linux__)
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/statfs.h>
#endif

/*
 * Of btrfs, for room that was reserved; what is written has half of it (Linux 6, __btrfs_prealloc_file_range() and
 * BTRFS_MAX_EXTENT_SIZE). Neighbours on the disk are told as one, but freed as they were made.
 */
#define LARGEST_EXTENT (UINT64_C(256) << 20)

unsigned dcn_posix_system(int fd)
{
#if defined(__linux__)
    struct statfs system;

    return fstatfs(fd, &system) == 0 ? (unsigned)system.f_type : 0;
#else
    (void)fd;
    return 0;
#endif
}

#if defined(__linux__)
static int allocate(int fd, int mode, uint64_t at, uint64_t len)
{
    int result;

    do
        result = fallocate(fd, mode | FALLOC_FL_KEEP_SIZE, (off_t)at, (off_t)len);
    while (result && errno == EINTR);
    return result;
}
#endif

decant_status dcn_posix_reserve(dcn_file *f, uint64_t at, uint64_t len, decant_error *err)
{
    int result = -1;

    if (dcn_posix_too_far(at, len))
        return dcn_posix_refuse_far(DCN_DO_RESERVE, err);
    if (len == 0)
        return DECANT_OK;
#if defined(__linux__)
    /* not posix_fallocate: where the file system cannot, the C library would write zeros */
    errno = EOPNOTSUPP; /* of tmpfs: it would clear every page, which the write does not need: an eighth of its time */
    if (dcn_posix_system(dcn_posix_file_of(f)->fd) != TMPFS_MAGIC)
        result = allocate(dcn_posix_file_of(f)->fd, 0, at, len);
#else
    (void)f;
    errno = ENOSYS;
#endif
    return dcn_posix_outcome(DCN_DO_RESERVE, result, err);
}

decant_status dcn_posix_punch(dcn_file *f, uint64_t at, uint64_t len, decant_error *err)
{
    int result = -1;

    if (dcn_posix_too_far(at, len))
        return dcn_posix_refuse_far(DCN_DO_PUNCH, err);
    if (len == 0)
        return DECANT_OK;
#if defined(__linux__)
    result = allocate(dcn_posix_file_of(f)->fd, FALLOC_FL_PUNCH_HOLE, at, len);
#elif defined(__APPLE__)
    /* whole blocks of the file system only, and EINVAL otherwise */
    result =
        fcntl(dcn_posix_file_of(f)->fd, F_PUNCHHOLE, &(fpunchhole_t){.fp_offset = (off_t)at, .fp_length = (off_t)len});
#else
    (void)f;
    errno = ENOSYS;
#endif
    return dcn_posix_outcome(DCN_DO_PUNCH, result, err);
}

decant_status dcn_posix_clone(dcn_file *file, uint64_t at, dcn_file *source, uint64_t source_at, uint64_t len,
                              decant_error *err)
{
#if defined(__linux__)
    struct file_clone_range range = {dcn_posix_file_of(source)->fd, source_at, len, at};
    int result;

    do
        result = ioctl(dcn_posix_file_of(file)->fd, FICLONERANGE, &range);
    while (result && errno == EINTR);
    if (result == 0)
        return DECANT_OK;
    if (dcn_posix_status(DCN_DO_CLONE, errno) == DECANT_NO_SPACE)
        return dcn_posix_failed(DCN_DO_CLONE, err);
#else
    (void)file, (void)at, (void)source, (void)source_at, (void)len;
#endif
    return decant_error_set(err, DECANT_UNSUPPORTED, "the system does not share blocks between these files");
}

decant_status dcn_posix_extents(dcn_file *f, dcn_extents *out, decant_error *err)
{
#if defined(__linux__)
    enum { EXTENTS = 64 };
    int fd = dcn_posix_file_of(f)->fd, result;
    bool whole = dcn_posix_system(fd) == BTRFS_SUPER_MAGIC, last = false;
    union {
        struct fiemap map;
        char room[sizeof(struct fiemap) + EXTENTS * sizeof(struct fiemap_extent)];
    } some;
    dcn_extents found = {0};

    some.map = (struct fiemap){.fm_flags = FIEMAP_FLAG_SYNC};
    while (!last && !found.shared) {
        some.map.fm_length = UINT64_MAX - some.map.fm_start;
        some.map.fm_extent_count = EXTENTS;
        do
            result = ioctl(fd, FS_IOC_FIEMAP, &some.map);
        while (result && errno == EINTR);
        if (result)
            return dcn_posix_failed(DCN_DO_EXTENTS, err);
        last = some.map.fm_mapped_extents == 0;
        for (unsigned i = 0; i < some.map.fm_mapped_extents; i++) {
            const struct fiemap_extent *e = &some.map.fm_extents[i];

            last |= (e->fe_flags & FIEMAP_EXTENT_LAST) != 0;
            found.shared |= (e->fe_flags & FIEMAP_EXTENT_SHARED) != 0;
            if (whole && e->fe_length > found.largest)
                found.largest = dcn_min(e->fe_length, LARGEST_EXTENT);
            some.map.fm_start = e->fe_logical + e->fe_length;
        }
        some.map.fm_flags = 0;
    }
    *out = found;
    return DECANT_OK;
#else
    (void)f, (void)out;
    errno = ENOSYS;
    return dcn_posix_failed(DCN_DO_EXTENTS, err);
#endif
}

decant_status dcn_posix_data(dcn_file *f, uint64_t at, uint64_t *begin, uint64_t *end, decant_error *err)
{
#if defined(SEEK_DATA)
    int fd = dcn_posix_file_of(f)->fd;
    off_t position = lseek(fd, 0, SEEK_CUR), data, hole = 0; /* which a descriptor of the caller's shares */
    dcn_facts facts;
    int code;

    if (dcn_posix_too_far(at, 0))
        return dcn_posix_refuse_far(DCN_DO_DATA, err);
    if (dcn_posix_look(fd, "", &facts))
        return dcn_posix_failed(DCN_DO_DATA, err);
    data = lseek(fd, (off_t)at, SEEK_DATA);
    if (data >= 0)
        hole = lseek(fd, data, SEEK_HOLE);
    code = errno;
    lseek(fd, position, SEEK_SET);
    errno = code;
    if (data >= 0 && hole >= 0) {
        *begin = (uint64_t)data;
        *end = (uint64_t)hole;
    } else if (code == ENXIO) {
        *begin = *end = facts.size;
    } else {
        return dcn_posix_failed(DCN_DO_DATA, err);
    }
    return DECANT_OK;
#else
    (void)f, (void)at, (void)begin, (void)end;
    errno = ENOSYS;
    return dcn_posix_failed(DCN_DO_DATA, err);
#endif
}
