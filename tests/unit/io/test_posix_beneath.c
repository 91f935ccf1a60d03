/* What the system may do to a call: move less than asked, interrupt it, refuse it. */
#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "io/io.h"
#include "support/syscalls.h"
#include "support/test.h"

static decant_error err;

static dcn_dir *folder(void)
{
    dcn_dir *dir = NULL;

    CHECK_OK(dcn_io_open_dir(dcn_io_posix(), test_folder(), &dir, &err), &err);
    return dir;
}

static dcn_file *opened(dcn_dir *dir, const char *name, unsigned flags)
{
    dcn_file *file = NULL;

    CHECK_OK(dcn_dir_open(dir, name, flags, 0666, &file, &err), &err);
    return file;
}

TEST(beneath__short_transfers_are_gone_on_with)
{
    dcn_dir *dir = folder();
    dcn_file *file = opened(dir, "a", DCN_READ | DCN_WRITE | DCN_CREATE_NEW);
    const dcn_chunk chunks[] = {{"abcde", 5}, {"fg", 2}, {"hijkl", 5}};
    char data[12];
    const dcn_range ranges[] = {{0, data, 2}, {2, data + 2, 7}, {9, data + 9, 3}};

    syscalls_begin();
    syscalls_short(5);
    CHECK_OK(dcn_file_write(file, 1, chunks, 3, &err), &err);
    CHECK_OK(dcn_file_write(file, 0, &(dcn_chunk){"0", 1}, 1, &err), &err);
    CHECK_OK(dcn_file_read(file, ranges, 3, &err), &err);
    CHECK_BYTES(data, 12, "0abcdefghijk", 12);
    CHECK_TEXT(syscalls_trace(), "pwritev 1+12\n"
                                 "pwritev 6+7\n"
                                 "pwrite 11+2\n"
                                 "pwrite 0+1\n"
                                 "preadv 0+12\n"
                                 "preadv 5+7\n"
                                 "pread 10+2\n");
    syscalls_end();
    dcn_file_close(&file);
    dcn_dir_close(&dir);
}

TEST(beneath__single_bytes_arrive_in_order)
{
    dcn_dir *dir = folder();
    dcn_file *file = opened(dir, "a", DCN_READ | DCN_WRITE | DCN_CREATE_NEW | DCN_ONCE);
    uint8_t data[3][100], back[300];
    const dcn_chunk chunks[] = {{data[0], 100}, {data[1], 100}, {data[2], 100}};
    const dcn_range ranges[] = {{0, back, 150}, {150, back + 150, 150}};

    test_stream(9, data, sizeof data);
    syscalls_begin();
    syscalls_short(1);
    syscalls_interrupt(1);
    CHECK_OK(dcn_file_write(file, 0, chunks, 3, &err), &err);
    CHECK_OK(dcn_file_read(file, ranges, 2, &err), &err);
    CHECK_EQ(syscalls_count("pread") + syscalls_count("preadv"), 600);
    syscalls_end();
    CHECK_BYTES(back, sizeof back, data, sizeof data);
    dcn_file_close(&file);
    dcn_dir_close(&dir);
}

TEST(beneath__interrupted_calls_are_made_again)
{
    dcn_dir *dir;
    dcn_file *file;
    dcn_space space;

    test_folder();
    syscalls_begin();
    syscalls_interrupt(2);
    dir = folder();
    file = opened(dir, "a", DCN_READ | DCN_WRITE | DCN_CREATE_NEW);
    CHECK_OK(dcn_file_resize(file, 3, &err), &err);
    CHECK_OK(dcn_file_write(file, 0, &(dcn_chunk){"abc", 3}, 1, &err), &err);
    CHECK_OK(dcn_file_lock(file, &err), &err);
    CHECK_OK(dcn_file_sync(file, &err), &err);
    CHECK_OK(dcn_dir_sync(dir, &err), &err);
    CHECK_OK(dcn_dir_space(dir, &space, &err), &err);
    CHECK_EQ(syscalls_count("open"), 3);
    CHECK_EQ(syscalls_count("openat"), 3);
    CHECK_EQ(syscalls_count("ftruncate"), 3);
    CHECK_EQ(syscalls_count("pwrite"), 3);
    CHECK_EQ(syscalls_count("flock"), 3);
    CHECK_EQ(syscalls_count("fdatasync"), 3);
    CHECK_EQ(syscalls_count("fsync"), 3);
    CHECK_EQ(syscalls_count("fstatvfs"), 3);

    CHECK(dcn_file_reserve(file, 0, 3, &err) != DECANT_IO);
    CHECK(syscalls_count("fallocate") >= 3);
    syscalls_end();
    dcn_file_close(&file);
    dcn_dir_close(&dir);
}

TEST(beneath__neighbours_in_the_file_are_read_together)
{
    dcn_dir *dir = folder();
    dcn_file *file = opened(dir, "a", DCN_READ | DCN_WRITE | DCN_CREATE_NEW);
    char data[10] = {0};
    const dcn_range ranges[] = {{0, data + 4, 2}, {2, data, 2}, {4, data + 8, 1}, {6, data + 2, 2}, {8, data + 6, 2}};

    CHECK_OK(dcn_file_write(file, 0, &(dcn_chunk){"0123456789", 10}, 1, &err), &err);
    syscalls_begin();
    CHECK_OK(dcn_file_read(file, ranges, 5, &err), &err);
    CHECK_TEXT(syscalls_trace(), "preadv 0+5\n"
                                 "preadv 6+4\n");
    syscalls_end();
    CHECK_BYTES(data, 10, "236701894", 10);
    dcn_file_close(&file);
    dcn_dir_close(&dir);
}

/* FW-04 */
TEST(beneath__no_call_moves_more_than_the_system_does)
{
    const size_t huge = (size_t)5 << 30;
    dcn_dir *dir = folder();
    dcn_file *file = opened(dir, "a", DCN_READ | DCN_WRITE | DCN_CREATE_NEW);
    void *memory = mmap(NULL, huge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    const dcn_chunk chunks[] = {{memory, huge}, {memory, 10}};

    CHECK(memory != MAP_FAILED);
    syscalls_begin();
    syscalls_pretend();
    CHECK_OK(dcn_file_write(file, 7, chunks, 2, &err), &err);
    CHECK_OK(dcn_file_read(file, &(dcn_range){7, memory, huge}, 1, &err), &err);
    CHECK_TEXT(syscalls_trace(), "pwrite 7+2147479552\n"
                                 "pwrite 2147479559+2147479552\n"
                                 "pwritev 4294959111+1073750026\n"
                                 "pread 7+2147479552\n"
                                 "pread 2147479559+2147479552\n"
                                 "pread 4294959111+1073750016\n");
    syscalls_end();
    munmap(memory, huge);
    dcn_file_close(&file);
    dcn_dir_close(&dir);
}

TEST(beneath__a_read_that_fails_says_where)
{
    dcn_dir *dir = folder();
    dcn_file *file = opened(dir, "a", DCN_READ | DCN_WRITE | DCN_CREATE_NEW);
    uint8_t got[4];

    CHECK_OK(dcn_file_resize(file, 8, &err), &err);
    syscalls_begin();
    syscalls_fail("pread", 1, EIO);
    CHECK_FAILS(dcn_file_read(file, &(dcn_range){3, got, sizeof got}, 1, &err), DECANT_IO, &err);
    syscalls_end();
    CHECK_EQ(err.offset, 3);
    dcn_file_close(&file);
    dcn_dir_close(&dir);
}

TEST(beneath__a_write_that_goes_nowhere_fails)
{
    dcn_dir *dir = folder();
    dcn_file *file = opened(dir, "a", DCN_WRITE | DCN_CREATE_NEW);

    syscalls_begin();
    syscalls_fail("pwrite", 1, 0); /* no error, but 0 bytes would loop for ever */
    CHECK_FAILS(dcn_file_write(file, 0, &(dcn_chunk){"a", 1}, 1, &err), DECANT_IO, &err);
    syscalls_end();
    dcn_file_close(&file);
    dcn_dir_close(&dir);
}

TEST(beneath__what_is_written_once_bypasses_the_cache)
{
    dcn_dir *dir = folder();
    dcn_file *file = opened(dir, "a", DCN_WRITE | DCN_CREATE_NEW | DCN_ONCE);

    syscalls_begin();
    syscalls_pretend();
    CHECK_OK(dcn_file_write(file, 0, &(dcn_chunk){"abc", 3}, 1, &err), &err);
    CHECK_OK(dcn_file_write(file, 3, &(dcn_chunk){"def", 3}, 1, &err), &err);
    CHECK_TEXT(syscalls_trace(), "pwritev2 0+3 dontcache\n"
                                 "pwritev2 3+3 dontcache\n");
    syscalls_end();
    dcn_file_close(&file);
    dcn_dir_close(&dir);
}

TEST(beneath__where_the_cache_cannot_be_bypassed_writes_are_pushed_in_steps)
{
    static const int codes[] = {EOPNOTSUPP, EINVAL};
    static const char megabytes[3 << 20];

    for (size_t i = 0; i < 2; i++) {
        dcn_dir *dir = folder();
        dcn_file *file = opened(dir, "a", DCN_WRITE | DCN_CREATE | DCN_ONCE);

        syscalls_begin();
        syscalls_pretend();
        syscalls_fail("pwritev2", 1, codes[i]);
        for (uint64_t at = 0; at < 18 << 20; at += sizeof megabytes)
            CHECK_OK(dcn_file_write(file, at, &(dcn_chunk){megabytes, sizeof megabytes}, 1, &err), &err);
        CHECK_EQ(syscalls_count("pwritev2"), 1); /* asked once */
        CHECK_EQ(syscalls_count("pwrite"), 6);
        CHECK_EQ(syscalls_count("sync_file_range"), 2);
        CHECK_HAS(syscalls_trace(), "sync_file_range 0+8388608\n");
        CHECK_HAS(syscalls_trace(), "sync_file_range 8388608+8388608\n");
        syscalls_end();
        dcn_file_close(&file);
        dcn_dir_close(&dir);
    }
}

TEST(beneath__other_failures_of_such_a_write_are_failures)
{
    dcn_dir *dir = folder();
    dcn_file *file = opened(dir, "a", DCN_WRITE | DCN_CREATE_NEW | DCN_ONCE);

    syscalls_begin();
    syscalls_fail("pwritev2", 1, ENOSPC);
    CHECK_FAILS(dcn_file_write(file, 0, &(dcn_chunk){"abc", 3}, 1, &err), DECANT_NO_SPACE, &err);
    CHECK_EQ(err.os_code, ENOSPC);
    syscalls_end();
    dcn_file_close(&file);
    dcn_dir_close(&dir);
}

TEST(beneath__a_plain_write_is_plain)
{
    dcn_dir *dir = folder();
    dcn_file *file = opened(dir, "a", DCN_WRITE | DCN_CREATE_NEW);
    static const char megabytes[9 << 20];

    syscalls_begin();
    syscalls_pretend();
    CHECK_OK(dcn_file_write(file, 0, &(dcn_chunk){megabytes, sizeof megabytes}, 1, &err), &err);
    CHECK_TEXT(syscalls_trace(), "pwrite 0+9437184\n");
    syscalls_end();
    dcn_file_close(&file);
    dcn_dir_close(&dir);
}

TEST(beneath__data_is_synced_without_attributes_unless_they_were_set)
{
    dcn_dir *dir = folder();
    dcn_file *file = opened(dir, "a", DCN_READ | DCN_WRITE | DCN_CREATE_NEW);

    syscalls_begin();
    CHECK_OK(dcn_file_sync(file, &err), &err);
    CHECK_TEXT(syscalls_trace(), "fdatasync\n");
    CHECK_OK(dcn_file_resemble(file, file, &err), &err);
    syscalls_forget();
    CHECK_OK(dcn_file_sync(file, &err), &err);
    CHECK_TEXT(syscalls_trace(), "fsync\n");
    syscalls_end();
    dcn_file_close(&file);
    dcn_dir_close(&dir);
}

TEST(beneath__a_failed_sync_is_reported_and_not_tried_again)
{
    dcn_dir *dir = folder();
    dcn_file *file = opened(dir, "a", DCN_WRITE | DCN_CREATE_NEW);

    syscalls_begin();
    syscalls_fail("fdatasync", 1, EIO);
    CHECK_FAILS(dcn_file_sync(file, &err), DECANT_IO, &err);
    CHECK_EQ(syscalls_count("fdatasync"), 1);
    syscalls_end();
    dcn_file_close(&file);
    dcn_dir_close(&dir);
}

TEST(beneath__who_may_not_give_a_file_away_widens_nothing)
{
    static const struct {
        unsigned refused;
        unsigned old, mode;
    } cases[] = {{0, 06775, 06775}, {1, 06775, 0775}, {2, 06770, 0700}, {2, 0664, 0644}, {2, 0640, 0600}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dcn_dir *dir = folder();
        dcn_file *old = opened(dir, "old", DCN_READ | DCN_WRITE | DCN_CREATE),
                 *new = opened(dir, "new", DCN_WRITE | DCN_CREATE);
        dcn_facts facts;
        char path[8192];

        snprintf(path, sizeof path, "%s/old", test_folder());
        CHECK_EQ(chmod(path, cases[i].old), 0);
        syscalls_begin();
        syscalls_fail("fchown", cases[i].refused, EPERM);
        CHECK_OK(dcn_file_resemble(new, old, &err), &err);
        syscalls_end();
        CHECK_OK(dcn_file_facts(new, &facts, &err), &err);
        CHECK_EQ(facts.mode, cases[i].mode);
        dcn_file_close(&old);
        dcn_file_close(&new);
        dcn_dir_close(&dir);
    }
}

TEST(beneath__a_folder_that_cannot_be_read_still_has_files)
{
    dcn_dir *dir = NULL, *plain = folder();
    dcn_file *file = opened(plain, "a", DCN_WRITE | DCN_CREATE_NEW);
    dcn_facts facts;

    dcn_file_close(&file);
    dcn_dir_close(&plain);
    syscalls_begin();
    syscalls_fail("open", 1, EACCES);
    CHECK_OK(dcn_io_open_dir(dcn_io_posix(), test_folder(), &dir, &err), &err);
    CHECK_TEXT(syscalls_trace(), "open = EACCES\nopen path\n");
    syscalls_end();
    CHECK_OK(dcn_dir_stat(dir, "a", &facts, &err), &err);
    file = opened(dir, "a", DCN_READ);
    dcn_file_close(&file);
    CHECK_FAILS(dcn_dir_sync(dir, &err), DECANT_DENIED, &err);
    dcn_dir_close(&dir);

    syscalls_begin();
    syscalls_fail("open", 2, EACCES);
    CHECK_FAILS(dcn_io_open_dir(dcn_io_posix(), test_folder(), &dir, &err), DECANT_DENIED, &err);
    syscalls_end();
}

/* Which of the two files is to blame for the rest, reading and writing tells. */
TEST(beneath__copying_stops_where_the_system_fails_without_saying_why)
{
    static const int codes[] = {EXDEV, EINVAL, EIO, EOPNOTSUPP, ENOSYS};
    dcn_dir *dir = folder();
    dcn_file *file = opened(dir, "a", DCN_READ | DCN_WRITE | DCN_CREATE_NEW);
    dcn_file *once = opened(dir, "b", DCN_WRITE | DCN_CREATE_NEW | DCN_ONCE);

    CHECK_OK(dcn_file_resize(file, 10, &err), &err);
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        syscalls_begin();
        syscalls_fail("copy_file_range", 1, codes[i]);
        CHECK_FAILS(dcn_file_copy(file, 10, file, 0, 10, &err), DECANT_UNSUPPORTED, &err);
        CHECK_EQ(syscalls_count("copy_file_range"), 1);
        syscalls_end();
    }
    syscalls_begin();
    CHECK_FAILS(dcn_file_copy(once, 0, file, 0, 10, &err), DECANT_UNSUPPORTED, &err);
    CHECK_EQ(syscalls_count("copy_file_range"), 0); /* it is written past the cache */
    syscalls_end();
    dcn_file_close(&once);
    dcn_file_close(&file);
    dcn_dir_close(&dir);
}

/* --- codes ------------------------------------------------------------------------------------------------------- */

static int ignore(void *ctx, const char *name)
{
    (void)ctx, (void)name;
    return 0;
}

/* Makes the call that uses `function`. */
static decant_status call(const char *function, dcn_dir *dir, dcn_file *file)
{
    dcn_file *other = NULL;
    dcn_dir *other_dir = NULL;
    dcn_facts facts;
    dcn_space space;
    char byte;

#define IS(name) (strcmp(function, name) == 0)
    if (IS("open"))
        return dcn_io_open_dir(dcn_io_posix(), test_folder(), &other_dir, &err);
    if (IS("openat"))
        return dcn_dir_open(dir, "a", DCN_READ, 0, &other, &err);
    if (IS("statx"))
        return dcn_dir_stat(dir, "a", &facts, &err);
    if (IS("readdir"))
        return dcn_dir_list(dir, ignore, NULL, &err);
    if (IS("renameat"))
        return dcn_dir_rename(dir, "a", "b", 0, &err);
    if (IS("renameat2"))
        return dcn_dir_rename(dir, "a", "b", DCN_NO_REPLACE, &err);
    if (IS("linkat"))
        return dcn_dir_link(dir, "a", "b", &err);
    if (IS("unlinkat"))
        return dcn_dir_remove(dir, "a", &err);
    if (IS("fsync"))
        return dcn_dir_sync(dir, &err);
    if (IS("fstatvfs"))
        return dcn_dir_space(dir, &space, &err);
    if (IS("pread"))
        return dcn_file_read(file, &(dcn_range){0, &byte, 1}, 1, &err);
    if (IS("pwrite"))
        return dcn_file_write(file, 0, &(dcn_chunk){"x", 1}, 1, &err);
    if (IS("ftruncate"))
        return dcn_file_resize(file, 1, &err);
    if (IS("fallocate"))
        return dcn_file_reserve(file, 0, 1, &err);
    if (IS("fdatasync"))
        return dcn_file_sync(file, &err);
    if (IS("flock"))
        return dcn_file_lock(file, &err);
    if (IS("copy_file_range"))
        return dcn_file_copy(file, 1, file, 0, 1, &err);
    CHECK(IS("getentropy"));
#undef IS
    return dcn_io_random(dcn_io_posix(), &byte, 1, &err);
}

TEST(beneath__each_code_becomes_what_a_caller_would_act_on)
{
    static const struct {
        const char *function;
        int code;
        decant_status status;
    } cases[] = {
        {"open", ENOENT, DECANT_NOT_FOUND},
        {"open", ENOTDIR, DECANT_NOT_FOUND},
        {"open", EMFILE, DECANT_LIMIT},
        {"openat", EACCES, DECANT_DENIED},
        {"openat", EPERM, DECANT_DENIED},
        {"openat", EROFS, DECANT_DENIED},
        {"openat", EISDIR, DECANT_DENIED},
        {"openat", ELOOP, DECANT_DENIED},
        {"openat", ENFILE, DECANT_LIMIT},
        {"openat", ETXTBSY, DECANT_BUSY},
        {"openat", ENAMETOOLONG, DECANT_BAD_CALL},
        {"openat", EINVAL, DECANT_BAD_CALL},
        {"openat", ENOMEM, DECANT_NOMEM},
        {"openat", EDQUOT, DECANT_NO_SPACE},
        {"statx", EACCES, DECANT_DENIED},
        {"statx", EILSEQ, DECANT_BAD_CALL},
        {"statx", EIO, DECANT_IO},
        {"readdir", EIO, DECANT_IO},
        {"renameat", EACCES, DECANT_DENIED},
        {"renameat", EXDEV, DECANT_UNSUPPORTED},
        {"renameat", ENOTEMPTY, DECANT_EXISTS},
        {"renameat2", EINVAL, DECANT_UNSUPPORTED},
        {"renameat2", ENOSYS, DECANT_UNSUPPORTED},
        {"renameat2", EEXIST, DECANT_EXISTS},
        {"renameat2", EBUSY, DECANT_BUSY},
        {"linkat", EPERM, DECANT_UNSUPPORTED},
        {"linkat", EOPNOTSUPP, DECANT_UNSUPPORTED},
        {"linkat", EMLINK, DECANT_UNSUPPORTED},
        {"linkat", EACCES, DECANT_DENIED},
        {"unlinkat", EPERM, DECANT_DENIED},
        {"fsync", EIO, DECANT_IO},
        {"fsync", EINVAL, DECANT_UNSUPPORTED},
        {"fstatvfs", ENOSYS, DECANT_UNSUPPORTED},
        {"pread", EIO, DECANT_IO},
        {"pread", EISDIR, DECANT_DENIED},
        {"pwrite", ENOSPC, DECANT_NO_SPACE},
        {"pwrite", EDQUOT, DECANT_NO_SPACE},
        {"pwrite", EFBIG, DECANT_NO_SPACE},
        {"pwrite", EINVAL, DECANT_IO},
        {"ftruncate", EFBIG, DECANT_NO_SPACE},
        {"ftruncate", EPERM, DECANT_UNSUPPORTED},
        {"ftruncate", EINVAL, DECANT_IO},
        {"fallocate", EOPNOTSUPP, DECANT_UNSUPPORTED},
        {"fallocate", ENOSYS, DECANT_UNSUPPORTED},
        {"fallocate", ENOSPC, DECANT_NO_SPACE},
        {"fdatasync", EIO, DECANT_IO},
        {"fdatasync", EDQUOT, DECANT_NO_SPACE},
        {"fdatasync", EINVAL, DECANT_IO},
        {"flock", EWOULDBLOCK, DECANT_BUSY},
        {"flock", ENOLCK, DECANT_UNSUPPORTED},
        {"copy_file_range", ENOSPC, DECANT_NO_SPACE},
        {"copy_file_range", EDQUOT, DECANT_NO_SPACE},
        {"getentropy", EIO, DECANT_IO},
    };
    dcn_dir *dir = folder();
    dcn_file *file = opened(dir, "a", DCN_READ | DCN_WRITE | DCN_CREATE_NEW);

    CHECK_OK(dcn_file_resize(file, 1, &err), &err);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct statfs system;
        decant_status rc;

        if (strcmp(cases[i].function, "fallocate") == 0 && statfs(test_folder(), &system) == 0 &&
            system.f_type == TMPFS_MAGIC)
            continue; /* not called there */
        syscalls_begin();
        syscalls_fail(cases[i].function, 1, cases[i].code);
        rc = call(cases[i].function, dir, file);
        syscalls_end();
        if (rc != cases[i].status)
            test_fail(__FILE__, __LINE__, "%s with %s gave %s", cases[i].function, strerrorname_np(cases[i].code),
                      decant_status_name(rc));
        CHECK_EQ(err.os_code, cases[i].code);
        CHECK_HAS(err.message, strerrordesc_np(cases[i].code));
        if (cases[i].status == DECANT_LIMIT)
            CHECK_HAS(err.hint, "ulimit -n");
    }
    dcn_file_close(&file);
    dcn_dir_close(&dir);
}

/* FAT takes no "a:b" and no file of 4 GiB, NTFS no name that is not Unicode. */
TEST(beneath__what_a_file_system_does_not_take_is_called_so)
{
    dcn_dir *dir = folder();
    dcn_file *file = NULL;
    dcn_facts facts;

    syscalls_begin();
    syscalls_fail("openat", 1, EINVAL);
    CHECK_FAILS(dcn_dir_open(dir, "a:b", DCN_WRITE | DCN_CREATE_NEW, 0666, &file, &err), DECANT_BAD_CALL, &err);
    CHECK_HAS(err.hint, "choose another name");
    syscalls_fail("statx", 1, EILSEQ);
    CHECK_FAILS(dcn_dir_stat(dir, "\xff", &facts, &err), DECANT_BAD_CALL, &err);
    CHECK_HAS(err.hint, "choose another name");
    syscalls_fail("openat", 1, EROFS);
    CHECK_FAILS(dcn_dir_open(dir, "a", DCN_WRITE | DCN_CREATE_NEW, 0666, &file, &err), DECANT_DENIED, &err);
    CHECK_HAS(err.hint, "another disk");

    file = opened(dir, "a", DCN_WRITE | DCN_CREATE_NEW);
    syscalls_fail("ftruncate", 1, EFBIG);
    CHECK_FAILS(dcn_file_resize(file, 1, &err), DECANT_NO_SPACE, &err);
    CHECK_HAS(err.hint, "files of this size");
    syscalls_end();
    dcn_file_close(&file);
    dcn_dir_close(&dir);
}
