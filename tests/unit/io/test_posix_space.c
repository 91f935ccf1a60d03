/* What the system does with blocks, marks and leases, on the file systems that matter. Without root: on the one at hand. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "io/io.h"
#include "support/syscalls.h"
#include "support/test.h"

#define KIB ((size_t)1024)
#define MIB (1024 * KIB)

static decant_error err;

/* --- file systems ------------------------------------------------------------------------------------------------- */

/* A file system, mounted where no other process sees it; gone with this one if a test fails. */
typedef struct system_kind {
    const char *name, *make;
    unsigned gib; /* mostly holes */
    bool shares, punches, whole_extents;
} system_kind;

static const system_kind kinds[] = {
    {"here", NULL, .punches = true},
    {"ext4", "mkfs.ext4 -q", 1, .punches = true},
    {"xfs", "mkfs.xfs -q", 1, .punches = true, .shares = true},
    {"btrfs", "mkfs.btrfs -q", 16, .punches = true, .shares = true, .whole_extents = true},
    {"tmpfs", NULL, .punches = true},
    {0},
};

static const char *path_of(const char *folder, const char *name)
{
    static char path[8192];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static bool is_here(const system_kind *k)
{
    return strcmp(k->name, "here") == 0;
}

static bool run(const char *format, ...) DECANT_PRINTF(1, 2);

static bool run(const char *format, ...)
{
    char command[16384];
    va_list args;

    va_start(args, format);
    vsnprintf(command, sizeof command, format, args);
    va_end(args);
    return system(command) == 0;
}

static bool alone_in_its_namespace(void)
{
    static bool done;

    if (!done)
        done = geteuid() == 0 && unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
    return done;
}

static void need_other_systems(void)
{
    if (!alone_in_its_namespace())
        test_skip("nothing can be mounted here");
}

static bool mount_image(const system_kind *k, const char *folder)
{
    const char *image = path_of(test_folder(), "image");
    int fd = open(image, O_RDWR | O_CREAT | O_TRUNC, 0600);
    bool there;

    CHECK(fd >= 0 && ftruncate(fd, (off_t)k->gib << 30) == 0);
    close(fd);
    there = run("%s '%s' >/dev/null 2>&1", k->make, image) && run("mount -o loop '%s' '%s' 2>/dev/null", image, folder);
    unlink(image);
    return there;
}

/* Its folder; NULL: it cannot be had. */
static dcn_dir *mounted(const system_kind *k)
{
    dcn_dir *dir = NULL;
    char folder[8192];

    snprintf(folder, sizeof folder, "%s", is_here(k) ? test_folder() : path_of(test_folder(), k->name));
    if (!is_here(k)) {
        CHECK(mkdir(folder, 0755) == 0 || errno == EEXIST);
        if (!alone_in_its_namespace() ||
            (k->make ? !mount_image(k, folder) : mount("none", folder, k->name, 0, "size=64m") != 0))
            return NULL;
    }
    CHECK_OK(dcn_io_open_dir(dcn_io_posix(), folder, &dir, &err), &err);
    return dir;
}

static void let_go(const system_kind *k, dcn_dir **dir)
{
    const char *folder = path_of(test_folder(), k->name);

    dcn_dir_close(dir);
    if (!is_here(k))
        CHECK_EQ(umount2(folder, MNT_DETACH), 0);
}

/* --- files -------------------------------------------------------------------------------------------------------- */

static dcn_file *opened(dcn_dir *dir, const char *name, unsigned flags)
{
    dcn_file *file = NULL;

    CHECK_OK(dcn_dir_open(dir, name, flags, 0666, &file, &err), &err);
    return file;
}

static dcn_file *made(dcn_dir *dir, const char *name)
{
    return opened(dir, name, DCN_READ | DCN_WRITE | DCN_CREATE | DCN_TRUNCATE);
}

static void fill(dcn_file *file, uint64_t at, size_t len)
{
    char *bytes = malloc(len);

    CHECK(bytes);
    test_stream(at + 1, bytes, len);
    CHECK_OK(dcn_file_write(file, at, &(dcn_chunk){bytes, len}, 1, &err), &err);
    free(bytes);
}

static bool is_zero(dcn_file *file, uint64_t at, size_t len)
{
    char *bytes = malloc(len);
    size_t zeros = 0;

    CHECK(bytes);
    CHECK_OK(dcn_file_read(file, &(dcn_range){at, bytes, len}, 1, &err), &err);
    for (size_t i = 0; i < len; i++)
        zeros += bytes[i] == 0;
    free(bytes);
    return zeros == len;
}

static dcn_facts facts_of(dcn_file *file)
{
    dcn_facts facts;

    CHECK_OK(dcn_file_facts(file, &facts, &err), &err);
    return facts;
}

static uint64_t free_of(dcn_dir *dir)
{
    dcn_space space;

    CHECK(run("sync -f '%s'", dir->path));
    CHECK_OK(dcn_dir_space(dir, &space, &err), &err);
    return space.free;
}

/* --- blocks ------------------------------------------------------------------------------------------------------- */

TEST(posix__space_tells_what_each_kind_of_file_system_can)
{
    for (const system_kind *k = kinds; k->name; k++) {
        dcn_dir *dir = is_here(k) ? NULL : mounted(k);
        dcn_space space;

        if (!dir)
            continue;
        CHECK_OK(dcn_dir_space(dir, &space, &err), &err);
        CHECK_EQ(space.punches, k->punches);
        CHECK_EQ(space.shares, k->shares);
        CHECK_EQ(space.unit, 64 * KIB);
        let_go(k, &dir);
    }
    dcn_dir *dir = NULL;
    dcn_space space;

    CHECK_OK(dcn_io_open_dir(dcn_io_posix(), "/proc", &dir, &err), &err);
    CHECK_OK(dcn_dir_space(dir, &space, &err), &err);
    CHECK(!space.punches && !space.shares);
    dcn_dir_close(&dir);
}

TEST(posix__what_is_punched_is_zeros_and_free)
{
    for (const system_kind *k = kinds; k->name; k++) {
        dcn_dir *dir = mounted(k);
        dcn_file *file;
        dcn_facts before, after;
        uint64_t room;

        if (!dir)
            continue;
        file = made(dir, "a");
        fill(file, 0, 8 * MIB);
        CHECK_OK(dcn_file_sync(file, &err), &err);
        before = facts_of(file);
        room = free_of(dir);
        if (is_here(k) && dcn_file_punch(file, 0, 64 * KIB, &err) == DECANT_UNSUPPORTED)
            goto next; /* who knows what it is built on */

        CHECK_OK(dcn_file_punch(file, MIB + 100, 4 * MIB, &err), &err);
        CHECK_OK(dcn_file_punch(file, 0, 0, &err), &err);
        CHECK_OK(dcn_file_sync(file, &err), &err);
        after = facts_of(file);
        CHECK_EQ(after.size, 8 * MIB);
        CHECK(after.blocks <= before.blocks - 4 * MIB + 128 * KIB);
        CHECK(is_zero(file, MIB + 100, 4 * MIB));
        CHECK(!is_zero(file, MIB + 92, 8) && !is_zero(file, 5 * MIB + 100, 8));
        if (!is_here(k) && !k->whole_extents) /* nobody else is on it */
            CHECK(free_of(dir) >= room + 4 * MIB - 128 * KIB);
        CHECK_FAILS(dcn_file_punch(file, UINT64_MAX - 1, 2, &err), DECANT_NO_SPACE, &err);
    next:
        dcn_file_close(&file);
        let_go(k, &dir);
    }
}

/* Whether some of it has no place on the disk yet. */
static bool is_on_its_way(const char *path)
{
    union {
        struct fiemap map;
        char room[sizeof(struct fiemap) + 400 * sizeof(struct fiemap_extent)];
    } all = {.map = {.fm_length = UINT64_MAX, .fm_extent_count = 400}};
    int fd = open(path, O_RDONLY);
    bool found = false;

    CHECK_EQ(ioctl(fd, FS_IOC_FIEMAP, &all), 0);
    close(fd);
    for (unsigned i = 0; i < all.map.fm_mapped_extents; i++)
        found |= all.map.fm_extents[i].fe_flags & FIEMAP_EXTENT_DELALLOC;
    return found;
}

TEST(posix__extents_tell_what_is_shared_however_many_there_are)
{
    need_other_systems();
    for (const system_kind *k = kinds; k->name; k++) {
        dcn_dir *dir = is_here(k) ? NULL : mounted(k);
        dcn_file *file, *other;
        dcn_extents extents = {.largest = 1};

        if (!dir)
            continue;
        file = made(dir, "a");
        other = made(dir, "b");
        for (uint64_t i = 0; i < 300; i++)
            fill(file, i * 8 * KIB, 4 * KIB);
        fill(file, 2400 * KIB, MIB); /* nothing is synced yet */
        if (strcmp(k->name, "tmpfs") == 0) {
            CHECK_FAILS(dcn_file_extents(file, &extents, &err), DECANT_UNSUPPORTED, &err);
        } else {
            CHECK_OK(dcn_file_extents(file, &extents, &err), &err);
            CHECK(!is_on_its_way(path_of(dir->path, "a")));
            CHECK(!extents.shared);
            CHECK_EQ(extents.largest, k->whole_extents ? MIB : 0);
            CHECK_OK(dcn_file_extents(other, &extents, &err), &err); /* which is empty */
            CHECK(!extents.shared && extents.largest == 0);
        }
        if (k->whole_extents) { /* neighbours are told as one */
            CHECK_OK(dcn_file_reserve(other, 0, 700 * MIB, &err), &err);
            CHECK_OK(dcn_file_extents(other, &extents, &err), &err);
            CHECK_EQ(extents.largest, 256 * MIB);
        }
        if (k->shares) {
            CHECK_OK(dcn_file_clone(other, 0, file, 2400 * KIB + MIB - 4 * KIB, 4 * KIB, &err), &err);
            CHECK_OK(dcn_file_extents(file, &extents, &err), &err);
            CHECK(extents.shared);
            CHECK_OK(dcn_file_extents(other, &extents, &err), &err);
            CHECK(extents.shared);
        }
        dcn_file_close(&other);
        dcn_file_close(&file);
        let_go(k, &dir);
    }
}

static void check_data(dcn_file *file, uint64_t at, uint64_t wanted_begin, uint64_t wanted_end)
{
    uint64_t begin = 0, end = 0;

    CHECK_OK(dcn_file_data(file, at, &begin, &end, &err), &err);
    CHECK_EQ(begin, wanted_begin);
    CHECK_EQ(end, wanted_end);
}

TEST(posix__data_is_found_between_holes)
{
    need_other_systems();
    for (const system_kind *k = kinds; k->name; k++) {
        dcn_dir *dir = is_here(k) ? NULL : mounted(k);
        dcn_file *file, *borrowed = NULL;
        int fd;

        if (!dir)
            continue;
        file = made(dir, "a");
        CHECK_OK(dcn_file_resize(file, 4 * MIB, &err), &err);
        fill(file, 64 * KIB, 64 * KIB);
        fill(file, 2 * MIB, 128 * KIB);
        CHECK_OK(dcn_file_sync(file, &err), &err);
        check_data(file, 0, 64 * KIB, 128 * KIB);
        check_data(file, 65 * KIB, 65 * KIB, 128 * KIB);
        check_data(file, 128 * KIB, 2 * MIB, 2 * MIB + 128 * KIB);
        check_data(file, 3 * MIB, 4 * MIB, 4 * MIB);
        check_data(file, 9 * MIB, 4 * MIB, 4 * MIB);
        dcn_file_close(&file);

        fd = open(path_of(dir->path, "a"), O_RDONLY);
        CHECK_EQ(lseek(fd, 77, SEEK_SET), 77);
        CHECK_OK(dcn_file_from_fd(fd, &borrowed, &err), &err);
        check_data(borrowed, 0, 64 * KIB, 128 * KIB);
        check_data(borrowed, 3 * MIB, 4 * MIB, 4 * MIB);
        CHECK_EQ(lseek(fd, 0, SEEK_CUR), 77); /* the caller reads on where he was */
        dcn_file_close(&borrowed);
        close(fd);
        let_go(k, &dir);
    }
}

/* --- who else has it ---------------------------------------------------------------------------------------------- */

TEST(posix__a_file_is_ones_own_while_nobody_else_has_it_open_or_mapped)
{
    for (const system_kind *k = kinds; k->name; k++)
        for (unsigned flags = DCN_READ; flags <= (DCN_READ | DCN_WRITE); flags += DCN_WRITE) {
            dcn_dir *dir = mounted(k);
            dcn_file *file, *again;
            char *map;
            int fd;

            if (!dir)
                continue;
            file = made(dir, "a");
            fill(file, 0, 4 * KIB);
            dcn_file_close(&file);
            file = opened(dir, "a", flags);
            if (is_here(k) && dcn_file_alone(file, &err) == DECANT_UNSUPPORTED)
                goto next;
            CHECK_OK(dcn_file_alone(file, &err), &err);
            again = opened(dir, "a", DCN_READ);
            CHECK_FAILS(dcn_file_alone(file, &err), DECANT_BUSY, &err);
            dcn_file_close(&again);
            CHECK_OK(dcn_file_alone(file, &err), &err);

            fd = open(path_of(dir->path, "a"), O_RDONLY);
            map = mmap(NULL, 4 * KIB, PROT_READ, MAP_SHARED, fd, 0);
            close(fd);
            CHECK(map != MAP_FAILED);
            CHECK_FAILS(dcn_file_alone(file, &err), DECANT_BUSY, &err);
            munmap(map, 4 * KIB);
            CHECK_OK(dcn_file_alone(file, &err), &err);
            CHECK_OK(dcn_file_alone(file, &err), &err); /* nothing is held */
        next:
            dcn_file_close(&file);
            let_go(k, &dir);
        }
}

TEST(posix__whose_file_it_is_not_cannot_tell_who_has_it_open)
{
    dcn_dir *dir = NULL;
    dcn_file *file;

    if (geteuid() != 0)
        test_skip("only root can become another user");
    CHECK_OK(dcn_io_open_dir(dcn_io_posix(), test_folder(), &dir, &err), &err);
    file = made(dir, "a");
    CHECK_EQ(seteuid(1234), 0);
    (void)!dcn_file_alone(file, &err);
    CHECK_EQ(seteuid(0), 0);
    CHECK_EQ(err.status, DECANT_UNSUPPORTED);
    dcn_file_close(&file);
    dcn_dir_close(&dir);
}

/* The system tells who holds a lease that somebody opens the file, by a signal; it must not end the process. */
TEST(posix__who_asks_survives_whoever_opens_the_file_meanwhile)
{
    enum { TIMES = 100000 };
    dcn_dir *dir = NULL;
    dcn_file *file;
    pid_t opener, asker;
    int how = 0;
    char path[8192];

    CHECK_OK(dcn_io_open_dir(dcn_io_posix(), test_folder(), &dir, &err), &err);
    file = made(dir, "a");
    dcn_file_close(&file);
    snprintf(path, sizeof path, "%s", path_of(test_folder(), "a"));
    opener = fork();
    if (opener == 0)
        for (;;)
            close(open(path, O_RDONLY | O_NONBLOCK));
    asker = fork();
    if (asker == 0) {
        if (dcn_dir_open(dir, "a", DCN_READ, 0, &file, NULL))
            _exit(1);
        for (int i = 0; i < TIMES; i++)
            (void)!dcn_file_alone(file, NULL);
        _exit(0);
    }
    CHECK_EQ(waitpid(asker, &how, 0), asker);
    kill(opener, SIGKILL);
    CHECK_EQ(waitpid(opener, NULL, 0), opener);
    CHECK(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    dcn_dir_close(&dir);
}

/* A mapping of which the descriptor is closed is not seen there. */
TEST(posix__over_layers_nobody_knows_who_has_a_file_open)
{
    dcn_dir *dir = NULL;
    dcn_file *file, *again;
    dcn_space space;
    char options[16384];
    const char *top = test_folder();

    need_other_systems();
    CHECK(run("cd '%s' && mkdir base && mount -t tmpfs none base && cd base && mkdir lower upper work all", top));
    snprintf(options, sizeof options, "lowerdir=%s/base/lower,upperdir=%s/base/upper,workdir=%s/base/work", top, top,
             top);
    if (mount("overlay", path_of(top, "base/all"), "overlay", 0, options)) {
        umount2(path_of(top, "base"), MNT_DETACH);
        test_skip("no overlay can be mounted here");
    }
    CHECK_OK(dcn_io_open_dir(dcn_io_posix(), path_of(top, "base/all"), &dir, &err), &err);
    file = made(dir, "a");
    CHECK_FAILS(dcn_file_alone(file, &err), DECANT_UNSUPPORTED, &err);
    again = opened(dir, "a", DCN_READ);
    CHECK_FAILS(dcn_file_alone(file, &err), DECANT_BUSY, &err); /* but an open one is */
    CHECK_OK(dcn_dir_space(dir, &space, &err), &err);
    CHECK(!space.punches);
    dcn_file_close(&again);
    dcn_file_close(&file);
    dcn_dir_close(&dir);
    umount2(path_of(top, "base/all"), MNT_DETACH);
    umount2(path_of(top, "base"), MNT_DETACH);
}

/* --- what a file carries along ------------------------------------------------------------------------------------ */

TEST(posix__a_note_stays_with_the_file_until_it_is_taken_away)
{
    for (const system_kind *k = kinds; k->name; k++) {
        dcn_dir *dir = mounted(k);
        dcn_file *file, *other;
        char text[16] = "";

        if (!dir)
            continue;
        file = made(dir, "a");
        if (setxattr(path_of(dir->path, "a"), "user.probe", "", 0, 0))
            goto next; /* tmpfs before Linux 6.6 */
        CHECK_FAILS(dcn_file_read_note(file, text, sizeof text, &err), DECANT_NOT_FOUND, &err);
        CHECK_OK(dcn_file_note(file, NULL, &err), &err);
        CHECK_OK(dcn_file_note(file, "a longer text", &err), &err);
        CHECK_OK(dcn_file_note(file, "mark", &err), &err);
        CHECK_OK(dcn_dir_rename(dir, "a", "b", 0, &err), &err);
        dcn_file_close(&file);

        file = opened(dir, "b", DCN_READ);
        CHECK_OK(dcn_file_read_note(file, text, 5, &err), &err);
        CHECK_TEXT(text, "mark");
        CHECK_EQ(getxattr(path_of(dir->path, "b"), "user.decant", text, sizeof text), 4);
        CHECK_FAILS(dcn_file_read_note(file, text, 4, &err), DECANT_UNSUPPORTED, &err);
        CHECK_FAILS(dcn_file_read_note(file, text, 3, &err), DECANT_UNSUPPORTED, &err);

        other = made(dir, "c"); /* it is about this file, not about who takes its place */
        CHECK_OK(dcn_file_resemble(other, file, &err), &err);
        CHECK_FAILS(dcn_file_read_note(other, text, sizeof text, &err), DECANT_NOT_FOUND, &err);
        CHECK_EQ(getxattr(path_of(dir->path, "c"), "user.probe", text, sizeof text), 0);
        dcn_file_close(&other);

        CHECK_OK(dcn_file_note(file, NULL, &err), &err);
        CHECK_FAILS(dcn_file_read_note(file, text, sizeof text, &err), DECANT_NOT_FOUND, &err);
    next:
        dcn_file_close(&file);
        let_go(k, &dir);
    }
}

TEST(posix__a_time_is_set_to_the_nanosecond_and_the_other_left)
{
    static const int64_t times[] = {INT64_C(1234567890123456789), 1, 0, -1, INT64_C(-1500000001)};
    dcn_dir *dir = NULL;
    dcn_file *file;
    struct stat before, after;

    CHECK_OK(dcn_io_open_dir(dcn_io_posix(), test_folder(), &dir, &err), &err);
    file = made(dir, "a");
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        CHECK_EQ(stat(path_of(test_folder(), "a"), &before), 0);
        CHECK_OK(dcn_file_set_mtime(file, times[i], &err), &err);
        CHECK_EQ(facts_of(file).mtime, times[i]);
        CHECK_EQ(stat(path_of(test_folder(), "a"), &after), 0);
        CHECK_EQ(after.st_atim.tv_sec, before.st_atim.tv_sec);
        CHECK_EQ(after.st_atim.tv_nsec, before.st_atim.tv_nsec);
    }
    dcn_file_close(&file);
    dcn_dir_close(&dir);
}

TEST(posix__notes_and_times_need_a_full_sync)
{
    for (int note = 0; note < 2; note++) {
        dcn_dir *dir = NULL;
        dcn_file *file;
        decant_status rc;

        CHECK_OK(dcn_io_open_dir(dcn_io_posix(), test_folder(), &dir, &err), &err);
        file = made(dir, "a");
        rc = note ? dcn_file_note(file, "mark", &err) : dcn_file_set_mtime(file, 1, &err);
        if (rc != DECANT_UNSUPPORTED) {
            CHECK_EQ(rc, DECANT_OK);
            syscalls_begin();
            CHECK_OK(dcn_file_sync(file, &err), &err);
            CHECK_TEXT(syscalls_trace(), "fsync\n");
            syscalls_end();
        }
        dcn_file_close(&file);
        dcn_dir_close(&dir);
    }
}

TEST(posix__what_may_not_be_changed_is_said_to_be_fixed)
{
    static const unsigned long flags[] = {FS_IMMUTABLE_FL, FS_APPEND_FL};

    need_other_systems();
    for (const system_kind *k = kinds; k->name; k++) {
        dcn_dir *dir = k->make ? mounted(k) : NULL;
        dcn_file *file;
        int fd;

        if (!dir)
            continue;
        file = made(dir, "a");
        fd = open(path_of(dir->path, "a"), O_RDONLY);
        CHECK(!facts_of(file).fixed);
        for (size_t i = 0; i < 2; i++) {
            int set = (int)flags[i], none = 0;

            CHECK_EQ(ioctl(fd, FS_IOC_SETFLAGS, &set), 0);
            CHECK(facts_of(file).fixed);
            CHECK_FAILS(dcn_file_punch(file, 0, 4 * KIB, &err), DECANT_DENIED, &err);
            CHECK_EQ(ioctl(fd, FS_IOC_SETFLAGS, &none), 0);
            CHECK(!facts_of(file).fixed);
        }
        close(fd);
        dcn_file_close(&file);
        let_go(k, &dir);
    }
}

/* --- folders ------------------------------------------------------------------------------------------------------ */

TEST(posix__a_nameless_file_is_gone_when_it_is_closed)
{
    for (const system_kind *k = kinds; k->name; k++) {
        dcn_dir *dir = mounted(k);
        dcn_file *file = NULL;

        if (!dir)
            continue;
        if (dcn_dir_open(dir, "", DCN_READ | DCN_WRITE | DCN_NAMELESS, 0600, &file, &err) == DECANT_UNSUPPORTED &&
            is_here(k))
            goto next;
        CHECK_OK(file ? DECANT_OK : err.status, &err);
        CHECK_TEXT(file->name, "");
        CHECK_TEXT(file->path, dir->path);
        fill(file, 0, 64 * KIB);
        CHECK(!is_zero(file, 0, 64 * KIB));
        CHECK_EQ(facts_of(file).links, 0);
        CHECK_EQ(facts_of(file).mode, 0600);
        CHECK(run("test -z \"$(ls '%s' | grep -vx 'lost+found')\"", dir->path));
        dcn_file_close(&file);
    next:
        let_go(k, &dir);
    }
}

TEST(posix__where_no_nameless_file_can_be_made_is_said)
{
    static const int codes[] = {EOPNOTSUPP, EISDIR, EINVAL, ENOENT};
    dcn_dir *dir = NULL;
    dcn_file *file = NULL;

    CHECK_OK(dcn_io_open_dir(dcn_io_posix(), test_folder(), &dir, &err), &err);
    syscalls_begin();
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        syscalls_fail("openat", 1, codes[i]);
        CHECK_FAILS(dcn_dir_open(dir, "", DCN_WRITE | DCN_NAMELESS, 0600, &file, &err), DECANT_UNSUPPORTED, &err);
        CHECK_TEXT(err.path, test_folder());
    }
    syscalls_fail("openat", 1, EACCES);
    CHECK_FAILS(dcn_dir_open(dir, "", DCN_WRITE | DCN_NAMELESS, 0600, &file, &err), DECANT_DENIED, &err);
    syscalls_end();
    dcn_dir_close(&dir);
}

TEST(posix__a_folder_knows_its_absolute_path_wherever_the_process_has_gone)
{
    char real[4096], deep[4200], where[8192], old[4096];
    dcn_dir *dir = NULL;

    CHECK(realpath(test_folder(), real) && getcwd(old, sizeof old));
    snprintf(deep, sizeof deep, "%s/deep", real);
    CHECK_EQ(mkdir(deep, 0755), 0);
    CHECK_EQ(symlink("deep", path_of(real, "link")), 0);
    CHECK_EQ(chdir(real), 0);
    CHECK_OK(dcn_io_open_dir(dcn_io_posix(), "link", &dir, &err), &err);
    CHECK_EQ(chdir(old), 0);
    CHECK_OK(dcn_dir_where(dir, where, sizeof where, &err), &err);
    CHECK_TEXT(where, deep);
    CHECK_OK(dcn_dir_where(dir, where, strlen(deep) + 1, &err), &err);
    CHECK_FAILS(dcn_dir_where(dir, where, strlen(deep), &err), DECANT_UNSUPPORTED, &err);
    CHECK_TEXT(err.path, "link");
    CHECK_EQ(rmdir(deep), 0);
    CHECK_EQ(mkdir(path_of(real, "deep (deleted)"), 0755), 0); /* which is what the system calls it now */
    CHECK_FAILS(dcn_dir_where(dir, where, sizeof where, &err), DECANT_UNSUPPORTED, &err);
    dcn_dir_close(&dir);
}

/* --- beneath ------------------------------------------------------------------------------------------------------ */

TEST(beneath__a_punch_is_made_again_when_interrupted_and_says_what_is_wrong)
{
    static const struct {
        int code;
        decant_status status;
    } cases[] = {{EOPNOTSUPP, DECANT_UNSUPPORTED},
                 {ENOSYS, DECANT_UNSUPPORTED},
                 {EINVAL, DECANT_UNSUPPORTED},
                 {ETXTBSY, DECANT_BUSY},
                 {EPERM, DECANT_DENIED},
                 {ENOSPC, DECANT_NO_SPACE},
                 {EIO, DECANT_IO}};
    dcn_dir *dir = NULL;
    dcn_file *file;

    CHECK_OK(dcn_io_open_dir(dcn_io_posix(), test_folder(), &dir, &err), &err);
    file = made(dir, "a");
    syscalls_begin();
    syscalls_interrupt(2);
    CHECK(dcn_file_punch(file, 0, 4096, &err) != DECANT_IO);
    CHECK_EQ(syscalls_count("fallocate"), 3);
    syscalls_interrupt(0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        syscalls_fail("fallocate", 1, cases[i].code);
        CHECK_FAILS(dcn_file_punch(file, 0, 4096, &err), cases[i].status, &err);
        CHECK_EQ(err.os_code, cases[i].code);
    }
    syscalls_end();
    dcn_file_close(&file);
    dcn_dir_close(&dir);
}
