/* What a file is, and whose. */
#include "io/posix.h"

#include <assert.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__linux__)
#include <signal.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#elif defined(__APPLE__)
#include <copyfile.h>
#include <sys/xattr.h>
#endif

#include "base/alloc.h"

#if defined(__linux__) && !defined(STATX_ATTR_MOUNT_ROOT)
#define STATX_ATTR_MOUNT_ROOT 0x2000 /* Linux 5.8 */
#endif
#if defined(__linux__) && !defined(STATX_ATTR_VERITY)
#define STATX_ATTR_VERITY 0x100000 /* Linux 5.5 */
#endif

/* A mark of decant's own, which stands for this file and no other. */
static const char note_name[] = "user.decant";

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

int dcn_posix_look(int fd, const char *name, dcn_facts *out)
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
        .fixed = x.stx_attributes & (STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND | STATX_ATTR_VERITY),
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
        .fixed = s.st_flags & (UF_IMMUTABLE | UF_APPEND | SF_IMMUTABLE | SF_APPEND),
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

/* --- made like another ------------------------------------------------------------------------------------------- */

#if defined(__linux__)
static const char acl[] = "system.posix_acl_access";

/* Not what vouches for the old content or is decant's own, and not an ACL whose group is another one now. */
static bool comes_along(const char *name, bool same_group)
{
    static const char *const stays[] = {"security.capability", "security.evm", "security.ima", note_name};

    for (size_t i = 0; i < sizeof stays / sizeof *stays; i++)
        if (strcmp(name, stays[i]) == 0)
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

decant_status dcn_posix_resemble(dcn_file *file, dcn_file *old, decant_error *err)
{
    dcn_posix_file *f = dcn_posix_file_of(file);
    int from = dcn_posix_file_of(old)->fd;
    dcn_facts facts;
    uint32_t mode;
    bool same_group = true;
    decant_status rc;

    assert(old->ops == file->ops);
    if (dcn_posix_look(from, "", &facts))
        return dcn_posix_failed(DCN_DO_RESEMBLE, err);
    f->attributes = true;

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

/* --- what it carries along --------------------------------------------------------------------------------------- */

#if defined(__APPLE__)
enum { NO_ATTRIBUTE = ENOATTR };

static int set_attribute(int fd, const char *text)
{
    return text ? fsetxattr(fd, note_name, text, strlen(text), 0, 0) : fremovexattr(fd, note_name, 0);
}

static ssize_t get_attribute(int fd, char *out, size_t size)
{
    return fgetxattr(fd, note_name, out, size, 0, 0);
}
#elif defined(__linux__)
enum { NO_ATTRIBUTE = ENODATA };

static int set_attribute(int fd, const char *text)
{
    return text ? fsetxattr(fd, note_name, text, strlen(text), 0) : fremovexattr(fd, note_name);
}

static ssize_t get_attribute(int fd, char *out, size_t size)
{
    return fgetxattr(fd, note_name, out, size);
}
#else
enum { NO_ATTRIBUTE = 0 };

static int set_attribute(int fd, const char *text)
{
    (void)fd, (void)text;
    errno = ENOSYS;
    return -1;
}

static ssize_t get_attribute(int fd, char *out, size_t size)
{
    (void)out, (void)size;
    return set_attribute(fd, NULL);
}
#endif

decant_status dcn_posix_note(dcn_file *file, const char *text, decant_error *err)
{
    dcn_posix_file *f = dcn_posix_file_of(file);

    if (set_attribute(f->fd, text) && (text || errno != NO_ATTRIBUTE))
        return dcn_posix_failed(DCN_DO_NOTE, err);
    f->attributes = true;
    return DECANT_OK;
}

decant_status dcn_posix_read_note(dcn_file *file, char *out, size_t size, decant_error *err)
{
    ssize_t len = get_attribute(dcn_posix_file_of(file)->fd, out, size);

    if (len < 0 && errno == NO_ATTRIBUTE)
        return decant_error_set(err, DECANT_NOT_FOUND, "nothing is noted on it");
    if (len >= 0 && (size_t)len == size) {
        errno = ERANGE; /* no room for the NUL */
        len = -1;
    }
    if (len < 0)
        return dcn_posix_failed(DCN_DO_READ_NOTE, err);
    out[len] = '\0';
    return DECANT_OK;
}

decant_status dcn_posix_set_mtime(dcn_file *file, int64_t ns, decant_error *err)
{
    enum { SECOND = 1000000000 };
    dcn_posix_file *f = dcn_posix_file_of(file);
    int64_t part = (ns % SECOND + SECOND) % SECOND;
    const struct timespec times[] = {{.tv_nsec = UTIME_OMIT},
                                     {.tv_sec = (time_t)((ns - part) / SECOND), .tv_nsec = (long)part}};

    if (futimens(f->fd, times))
        return dcn_posix_failed(DCN_DO_SET_MTIME, err);
    f->attributes = true;
    return DECANT_OK;
}

/* --- who else has it --------------------------------------------------------------------------------------------- */

/*
 * A lease for writing is given to who alone has the file open, and given back at once. In between, somebody who opens it
 * makes the system send a signal; the usual one, SIGIO, ends a process that does not expect it, SIGURG does not.
 */
decant_status dcn_posix_alone(dcn_file *file, decant_error *err)
{
#if defined(__linux__)
    enum { OVERLAY = 0x794c7630 }; /* its lease does not see who has mapped the file and closed it */
    int fd = dcn_posix_file_of(file)->fd, result = fcntl(fd, F_SETSIG, SIGURG), code;

    if (result == 0)
        result = fcntl(fd, F_SETLEASE, F_WRLCK);
    code = errno;
    if (result == 0)
        fcntl(fd, F_SETLEASE, F_UNLCK);
    fcntl(fd, F_SETSIG, 0);
    if (result && code == EAGAIN)
        return decant_error_set(err, DECANT_BUSY, "somebody else has it open");
    errno = result ? code : EOPNOTSUPP;
    return result || dcn_posix_system(fd) == OVERLAY ? dcn_posix_failed(DCN_DO_ALONE, err) : DECANT_OK;
#else
    (void)file;
    errno = ENOSYS;
    return dcn_posix_failed(DCN_DO_ALONE, err);
#endif
}
