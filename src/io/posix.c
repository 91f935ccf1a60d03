#include "io/posix.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#if defined(__linux__) || defined(__APPLE__)
#include <sys/random.h>
#endif

/* --- failures ---------------------------------------------------------------------------------------------------- */

/* What a call was for, and the codes that mean "not on this file system": try another way. */
static const struct {
    const char *what;
    int elsewhere[5];
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
    /* EBADF: NFS, for a file that is open for reading only */
    [DCN_DO_LOCK] = {"cannot lock", {ENOLCK, ENOSYS, EOPNOTSUPP, EINVAL, EBADF}},
    [DCN_DO_RESEMBLE] = {"cannot be made like the old file", {0}},
    [DCN_DO_COPY] = {"cannot write", {0}},
    [DCN_DO_FORGET] = {"cannot drop what is cached of it", {ENOSYS, EOPNOTSUPP, EINVAL, ESPIPE}},
    [DCN_DO_CLONE] = {"cannot write", {0}},
    [DCN_DO_WHERE] = {"cannot tell where the folder is", {0}},
    [DCN_DO_PUNCH] = {"cannot give up room", {ENOSYS, EOPNOTSUPP, ENODEV, EINVAL}},
    [DCN_DO_EXTENTS] = {"cannot tell how its blocks lie", {ENOSYS, EOPNOTSUPP, ENOTTY, EINVAL}},
    [DCN_DO_DATA] = {"cannot tell its holes", {ENOSYS, EOPNOTSUPP, EINVAL, ESPIPE}},
    [DCN_DO_ALONE] = {"cannot tell who has it open", {ENOSYS, EOPNOTSUPP, EINVAL, EACCES}},
    [DCN_DO_NOTE] = {"cannot note anything on it", {ENOSYS, EOPNOTSUPP, E2BIG}},
    [DCN_DO_READ_NOTE] = {"cannot read what is noted on it", {ENOSYS, EOPNOTSUPP, ERANGE}},
    [DCN_DO_SET_MTIME] = {"cannot set its time", {ENOSYS, EOPNOTSUPP}},
};

decant_status dcn_posix_status(dcn_verb verb, int code)
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

decant_status dcn_posix_failed(dcn_verb verb, decant_error *err)
{
    int code = errno;
    char text[128];
    struct rlimit limit;
    decant_status rc = dcn_posix_status(verb, code);

    decant_error_set(err, rc, "%s: %s", calls[verb].what, words(code, text, sizeof text));
    if (rc == DECANT_LIMIT) {
        if (code == EMFILE && getrlimit(RLIMIT_NOFILE, &limit) == 0)
            dcn_error_found(err, "a limit of %" PRIu64 " for this process", (uint64_t)limit.rlim_cur);
        dcn_error_hint(err, "close some, or raise the limit with ulimit -n");
    } else if (code == ENAMETOOLONG)
        dcn_error_hint(err, "choose a shorter path");
    else if (code == EFBIG)
        dcn_error_hint(err, "choose a disk that takes files of this size");
    else if (code == ELOOP)
        dcn_error_hint(err, "name the file itself, not a link that leads back to itself");
    else if (code == EROFS)
        dcn_error_hint(err, "choose another disk: this one can only be read");
    else if (rc == DECANT_BAD_CALL && code != EBADF)
        dcn_error_hint(err, "choose another name: the file system does not take this one");
    if (err)
        err->os_code = code;
    return rc;
}

decant_status dcn_posix_refuse_far(dcn_verb verb, decant_error *err)
{
    errno = EFBIG;
    return dcn_posix_failed(verb, err);
}

decant_status dcn_posix_outcome(dcn_verb verb, int result, decant_error *err)
{
    return result ? dcn_posix_failed(verb, err) : DECANT_OK;
}

/* --- the system -------------------------------------------------------------------------------------------------- */

static decant_status posix_random(dcn_io *io, void *dst, size_t len, decant_error *err)
{
    enum { MOST = 256 }; /* getentropy gives no more at a time */
    char *at = dst;

    (void)io;
    while (len) {
        size_t part = len < MOST ? len : MOST;

        if (getentropy(at, part))
            return dcn_posix_failed(DCN_DO_RANDOM, err);
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
    static const dcn_io_ops ops = {.open_dir = dcn_posix_open_dir, .random = posix_random, .who = posix_who};
    static dcn_io system = {.ops = &ops};

    return &system;
}
