/* The system itself, on a real folder. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "io/io.h"
#include "support/alloc.h"
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

static void make(dcn_dir *dir, const char *name, const char *text)
{
    dcn_file *file = opened(dir, name, DCN_WRITE | DCN_CREATE | DCN_TRUNCATE);
    const dcn_chunk chunk = {text, strlen(text)};

    CHECK_OK(dcn_file_write(file, 0, &chunk, 1, &err), &err);
    dcn_file_close(&file);
}

static const char *path_of(const char *name)
{
    static char path[8192];

    snprintf(path, sizeof path, "%s/%s", test_folder(), name);
    return path;
}

static void check_content(dcn_dir *dir, const char *name, const char *text)
{
    dcn_file *file = opened(dir, name, DCN_READ);
    dcn_facts facts;
    char data[256] = "";
    dcn_range range = {0, data, strlen(text)};

    CHECK_OK(dcn_file_facts(file, &facts, &err), &err);
    CHECK_EQ(facts.size, strlen(text));
    CHECK_OK(dcn_file_read(file, &range, 1, &err), &err);
    CHECK_TEXT(data, text);
    dcn_file_close(&file);
}

static size_t open_descriptors(void)
{
    DIR *stream = opendir("/proc/self/fd");
    size_t count = 0;

    if (!stream)
        test_skip("no /proc");
    while (readdir(stream))
        count++;
    closedir(stream);
    return count;
}

TEST(posix__facts_say_what_a_file_is)
{
    dcn_dir *dir = folder();
    dcn_file *file;
    dcn_facts by_name, by_handle, other;

    make(dir, "a", "hello");
    make(dir, "b", "");
    CHECK_EQ(chmod(path_of("a"), 0640), 0);
    CHECK_OK(dcn_dir_stat(dir, "a", &by_name, &err), &err);
    CHECK_EQ(by_name.kind, DCN_KIND_REGULAR);
    CHECK_EQ(by_name.size, 5);
    CHECK_EQ(by_name.mode, 0640);
    CHECK_EQ(by_name.links, 1);
    CHECK_EQ(by_name.uid, geteuid());
    CHECK(by_name.ours);
    CHECK(by_name.mtime > INT64_C(1500000000) * 1000000000);

    file = opened(dir, "a", DCN_READ);
    CHECK_OK(dcn_file_facts(file, &by_handle, &err), &err);
    CHECK(dcn_facts_same_file(&by_name, &by_handle));
    CHECK_EQ(by_handle.mtime, by_name.mtime);
    dcn_file_close(&file);

    CHECK_OK(dcn_dir_stat(dir, "b", &other, &err), &err);
    CHECK(!dcn_facts_same_file(&by_name, &other));
    CHECK_OK(dcn_dir_link(dir, "a", "c", &err), &err);
    CHECK_OK(dcn_dir_stat(dir, "c", &other, &err), &err);
    CHECK(dcn_facts_same_file(&by_name, &other));
    CHECK_EQ(other.links, 2);
    dcn_dir_close(&dir);
}

TEST(posix__a_file_has_the_birth_that_the_system_gives_it)
{
    dcn_dir *dir = folder();
    struct statx x;
    dcn_facts facts;

    make(dir, "a", "");
    CHECK_EQ(statx(AT_FDCWD, path_of("a"), 0, STATX_BTIME, &x), 0);
    CHECK_OK(dcn_dir_stat(dir, "a", &facts, &err), &err);
    CHECK_EQ(facts.birth, x.stx_mask & STATX_BTIME ? x.stx_btime.tv_sec * 1000000000 + x.stx_btime.tv_nsec : 0);
    dcn_dir_close(&dir);
}

TEST(posix__a_new_file_has_the_mode_less_the_umask)
{
    dcn_dir *dir = folder();
    mode_t old = umask(027);
    dcn_facts facts;

    make(dir, "a", "");
    umask(old);
    CHECK_OK(dcn_dir_stat(dir, "a", &facts, &err), &err);
    CHECK_EQ(facts.mode, 0640);
    dcn_dir_close(&dir);
}

TEST(posix__names_may_hold_anything_but_a_slash)
{
    static const char *const names[] = {"two\nlines", " ", "\xff\xfe", "-rf", "...", "\x1b[31m"};
    dcn_dir *dir = folder();
    char longest[257];

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        make(dir, names[i], "x");
        check_content(dir, names[i], "x");
        CHECK_OK(dcn_dir_rename(dir, names[i], "y", 0, &err), &err);
        CHECK_OK(dcn_dir_remove(dir, "y", &err), &err);
    }
    memset(longest, 'n', 256);
    longest[255] = '\0';
    make(dir, longest, "x");
    check_content(dir, longest, "x");
    longest[255] = 'n';
    longest[256] = '\0';
    dcn_file *file = NULL;
    CHECK_FAILS(dcn_dir_open(dir, longest, DCN_READ, 0, &file, &err), DECANT_BAD_CALL, &err);
    CHECK_EQ(err.os_code, ENAMETOOLONG);
    dcn_dir_close(&dir);
}

TEST(posix__a_control_character_in_a_name_is_escaped_in_the_error)
{
    dcn_dir *dir = folder();
    dcn_facts facts;

    CHECK_FAILS(dcn_dir_stat(dir, "a\nb", &facts, &err), DECANT_NOT_FOUND, &err);
    CHECK_HAS(err.path, "/a\\x0ab");
    CHECK(!strchr(decant_error_text(&err), '\n'));
    dcn_dir_close(&dir);
}

TEST(posix__an_error_holds_the_systems_words_and_code)
{
    dcn_dir *dir = folder();
    dcn_file *file = NULL;

    CHECK_FAILS(dcn_dir_open(dir, "no", DCN_READ, 0, &file, &err), DECANT_NOT_FOUND, &err);
    CHECK_EQ(err.os_code, ENOENT);
    CHECK_TEXT(err.message, "cannot open: No such file or directory");
    CHECK_TEXT(err.path, path_of("no"));
    CHECK(!file);
    dcn_dir_close(&dir);
}

TEST(posix__links_are_followed_unless_that_is_refused)
{
    dcn_dir *dir = folder();
    dcn_file *file = NULL;
    dcn_facts facts;

    make(dir, "a", "hello");
    CHECK_EQ(symlink("a", path_of("good")), 0);
    CHECK_EQ(symlink("no", path_of("dangling")), 0);
    CHECK_EQ(symlink("loop", path_of("loop")), 0);
    check_content(dir, "good", "hello");
    CHECK_OK(dcn_dir_stat(dir, "good", &facts, &err), &err);
    CHECK_EQ(facts.kind, DCN_KIND_LINK);
    CHECK_FAILS(dcn_dir_open(dir, "good", DCN_READ | DCN_NO_FOLLOW, 0, &file, &err), DECANT_DENIED, &err);
    CHECK_FAILS(dcn_dir_open(dir, "loop", DCN_READ, 0, &file, &err), DECANT_DENIED, &err);
    CHECK_FAILS(dcn_dir_open(dir, "dangling", DCN_READ, 0, &file, &err), DECANT_NOT_FOUND, &err);
    CHECK_FAILS(dcn_dir_open(dir, "dangling", DCN_WRITE | DCN_CREATE_NEW, 0666, &file, &err), DECANT_EXISTS, &err);
    CHECK_FAILS(dcn_dir_open(dir, "good", DCN_WRITE | DCN_CREATE_NEW, 0666, &file, &err), DECANT_EXISTS, &err);

    make(dir, "b", "new"); /* a rename replaces the link, not what it points to */
    CHECK_OK(dcn_dir_rename(dir, "b", "good", 0, &err), &err);
    CHECK_OK(dcn_dir_stat(dir, "good", &facts, &err), &err);
    CHECK_EQ(facts.kind, DCN_KIND_REGULAR);
    check_content(dir, "a", "hello");
    dcn_dir_close(&dir);
}

TEST(posix__opening_a_fifo_does_not_wait_for_its_other_end)
{
    dcn_dir *dir = folder();
    dcn_file *file;
    dcn_facts facts;

    CHECK_EQ(mkfifo(path_of("fifo"), 0600), 0);
    file = opened(dir, "fifo", DCN_READ);
    CHECK_OK(dcn_file_facts(file, &facts, &err), &err);
    CHECK_EQ(facts.kind, DCN_KIND_OTHER);
    dcn_file_close(&file);
    CHECK_FAILS(dcn_dir_open(dir, "fifo", DCN_WRITE, 0, &file, &err), DECANT_DENIED, &err);
    CHECK_OK(dcn_dir_remove(dir, "fifo", &err), &err);
    dcn_dir_close(&dir);
}

TEST(posix__a_folder_is_no_file)
{
    dcn_dir *dir = folder(), *inner = NULL;
    dcn_file *file = NULL;
    dcn_facts facts;
    char byte;
    dcn_range range = {0, &byte, 1};

    CHECK_EQ(mkdir(path_of("sub"), 0700), 0);
    make(dir, "a", "x");
    CHECK_FAILS(dcn_dir_open(dir, "sub", DCN_WRITE, 0, &file, &err), DECANT_DENIED, &err);
    CHECK_FAILS(dcn_dir_remove(dir, "sub", &err), DECANT_DENIED, &err);
    CHECK_FAILS(dcn_dir_rename(dir, "a", "sub", 0, &err), DECANT_DENIED, &err);
    CHECK_FAILS(dcn_io_open_dir(dcn_io_posix(), path_of("a"), &inner, &err), DECANT_NOT_FOUND, &err);
    CHECK_FAILS(dcn_io_open_dir(dcn_io_posix(), path_of("no"), &inner, &err), DECANT_NOT_FOUND, &err);
    CHECK_TEXT(err.path, path_of("no"));

    file = opened(dir, "sub", DCN_READ);
    CHECK_OK(dcn_file_facts(file, &facts, &err), &err);
    CHECK_EQ(facts.kind, DCN_KIND_FOLDER);
    CHECK_FAILS(dcn_file_read(file, &range, 1, &err), DECANT_DENIED, &err);
    dcn_file_close(&file);
    dcn_dir_close(&dir);
}

TEST(posix__reads_and_writes_are_whole_and_in_any_order)
{
    dcn_dir *dir = folder();
    dcn_file *file = opened(dir, "a", DCN_READ | DCN_WRITE | DCN_CREATE_NEW);
    const dcn_chunk chunks[] = {{"abc", 3}, {"", 0}, {NULL, 0}, {"defgh", 5}};
    char data[8] = {0};
    const dcn_range ranges[] = {{7, data + 7, 1}, {0, data, 4}, {4, data + 4, 0}, {4, data + 4, 3}};

    CHECK_OK(dcn_file_write(file, 2, chunks, 4, &err), &err);
    CHECK_OK(dcn_file_write(file, 0, &(dcn_chunk){"01", 2}, 1, &err), &err);
    CHECK_OK(dcn_file_read(file, ranges, 4, &err), &err);
    CHECK_BYTES(data, 8, "01abcdef", 8);
    CHECK_OK(dcn_file_read(file, NULL, 0, &err), &err);
    CHECK_OK(dcn_file_write(file, 100, NULL, 0, &err), &err);
    dcn_file_close(&file);
    check_content(dir, "a", "01abcdefgh");
    dcn_dir_close(&dir);
}

TEST(posix__a_thousand_pieces_arrive)
{
    enum { PIECES = 1500 };
    dcn_dir *dir = folder();
    dcn_file *file = opened(dir, "a", DCN_READ | DCN_WRITE | DCN_CREATE_NEW);
    static uint8_t data[PIECES * 7], back[PIECES * 7];
    static dcn_chunk chunks[PIECES];
    static dcn_range ranges[PIECES];

    test_stream(1, data, sizeof data);
    for (size_t i = 0; i < PIECES; i++) {
        chunks[i] = (dcn_chunk){data + 7 * i, 7};
        ranges[i] = (dcn_range){7 * i, back + 7 * i, 7};
    }
    CHECK_OK(dcn_file_write(file, 0, chunks, PIECES, &err), &err);
    CHECK_OK(dcn_file_read(file, ranges, PIECES, &err), &err);
    CHECK_BYTES(back, sizeof back, data, sizeof data);
    dcn_file_close(&file);
    dcn_dir_close(&dir);
}

TEST(posix__reading_past_the_end_is_truncated_and_says_where)
{
    dcn_dir *dir = folder();
    dcn_file *file;
    char data[16];
    const dcn_range past = {2, data, 9}, far = {UINT64_MAX - 4, data, 8};

    make(dir, "a", "hello");
    file = opened(dir, "a", DCN_READ);
    CHECK_FAILS(dcn_file_read(file, &past, 1, &err), DECANT_TRUNCATED, &err);
    CHECK_TEXT(err.found, "5 bytes");
    CHECK_TEXT(err.expected, "at least 11");
    CHECK_FAILS(dcn_file_read(file, &far, 1, &err), DECANT_TRUNCATED, &err);
    dcn_file_close(&file);
    dcn_dir_close(&dir);
}

TEST(posix__no_offset_beyond_the_systems_reaches_it)
{
    dcn_dir *dir = folder();
    dcn_file *file = opened(dir, "a", DCN_READ | DCN_WRITE | DCN_CREATE_NEW);
    const uint64_t far = UINT64_C(1) << 63;
    const dcn_chunk chunk = {"ab", 2};

    CHECK_FAILS(dcn_file_write(file, far, &chunk, 1, &err), DECANT_NO_SPACE, &err);
    CHECK_FAILS(dcn_file_write(file, far - 1, &chunk, 1, &err), DECANT_NO_SPACE, &err);
    CHECK_FAILS(dcn_file_resize(file, far, &err), DECANT_NO_SPACE, &err);
    CHECK_FAILS(dcn_file_reserve(file, far, 1, &err), DECANT_NO_SPACE, &err);
    CHECK_FAILS(dcn_file_copy(file, far - 1, file, 0, 2, &err), DECANT_UNSUPPORTED, &err);
    dcn_file_close(&file);
    dcn_dir_close(&dir);
}

TEST(posix__a_size_is_set_either_way_and_new_bytes_are_zeros)
{
    dcn_dir *dir = folder();
    dcn_file *file;
    char data[6];

    make(dir, "a", "hello");
    file = opened(dir, "a", DCN_READ | DCN_WRITE);
    CHECK_OK(dcn_file_resize(file, 2, &err), &err);
    CHECK_OK(dcn_file_resize(file, 6, &err), &err);
    CHECK_OK(dcn_file_read(file, &(dcn_range){0, data, 6}, 1, &err), &err);
    CHECK_BYTES(data, 6, "he\0\0\0\0", 6);
    dcn_file_close(&file);
    dcn_dir_close(&dir);
}

TEST(posix__reserving_takes_blocks_and_leaves_the_size)
{
    dcn_dir *dir = folder();
    dcn_file *file = opened(dir, "a", DCN_WRITE | DCN_CREATE_NEW);
    dcn_facts facts;
    decant_status rc = dcn_file_reserve(file, 0, 1 << 20, &err);

    if (rc == DECANT_UNSUPPORTED) {
        dcn_file_close(&file);
        dcn_dir_close(&dir);
        test_skip("this file system cannot reserve");
    }
    CHECK_EQ(rc, DECANT_OK);
    CHECK_OK(dcn_file_facts(file, &facts, &err), &err);
    CHECK_EQ(facts.size, 0);
    CHECK(facts.blocks >= 1 << 20);
    CHECK_OK(dcn_file_reserve(file, 0, 0, &err), &err);
    dcn_file_close(&file);
    dcn_dir_close(&dir);
}

TEST(posix__what_is_written_once_is_the_same_as_ever)
{
    enum { LEN = (8 << 20) + 4097 };
    dcn_dir *dir = folder();
    dcn_file *file = opened(dir, "a", DCN_READ | DCN_WRITE | DCN_CREATE_NEW | DCN_ONCE);
    uint8_t *data = malloc(LEN), *back = malloc(LEN);

    CHECK(data && back);
    test_stream(3, data, LEN);
    for (size_t at = 0; at < LEN; at += 1 << 20)
        CHECK_OK(dcn_file_write(file, at, &(dcn_chunk){data + at, at + (1 << 20) > LEN ? LEN - at : 1 << 20}, 1, &err),
                 &err);
    CHECK_OK(dcn_file_sync(file, &err), &err);
    CHECK_OK(dcn_file_read(file, &(dcn_range){0, back, LEN}, 1, &err), &err);
    CHECK_BYTES(back, LEN, data, LEN);
    free(data);
    free(back);
    dcn_file_close(&file);
    dcn_dir_close(&dir);
}

TEST(posix__copies_from_file_to_file)
{
    enum { LEN = 100000 };
    static uint8_t data[LEN], back[LEN];
    dcn_dir *dir = folder();
    dcn_file *from = opened(dir, "a", DCN_READ | DCN_WRITE | DCN_CREATE_NEW);
    dcn_file *to = opened(dir, "b", DCN_READ | DCN_WRITE | DCN_CREATE_NEW);
    decant_status rc;

    test_stream(3, data, LEN);
    CHECK_OK(dcn_file_write(from, 0, &(dcn_chunk){data, LEN}, 1, &err), &err);
    rc = dcn_file_copy(to, 7, from, 5, LEN - 5, &err);
    if (rc == DECANT_OK) {
        CHECK_OK(dcn_file_read(to, &(dcn_range){7, back, LEN - 5}, 1, &err), &err);
        CHECK_BYTES(back, LEN - 5, data + 5, LEN - 5);
    } else {
        CHECK_EQ(rc, DECANT_UNSUPPORTED); /* a file system that cannot */
    }
    CHECK_FAILS(dcn_file_copy(to, 0, from, LEN - 1, 2, &err), DECANT_UNSUPPORTED, &err); /* it ends before */
    CHECK_OK(dcn_file_sync(to, &err), &err);
    CHECK_OK(dcn_dir_sync(dir, &err), &err);
    dcn_file_close(&from);
    dcn_file_close(&to);
    dcn_dir_close(&dir);
}

TEST(posix__a_handle_does_only_what_it_was_opened_for)
{
    dcn_dir *dir = folder();
    dcn_file *file;
    char byte;

    make(dir, "a", "x");
    file = opened(dir, "a", DCN_READ);
    CHECK_FAILS(dcn_file_write(file, 0, &(dcn_chunk){"y", 1}, 1, &err), DECANT_BAD_CALL, &err);
    dcn_file_close(&file);
    file = opened(dir, "a", DCN_WRITE);
    CHECK_FAILS(dcn_file_read(file, &(dcn_range){0, &byte, 1}, 1, &err), DECANT_BAD_CALL, &err);
    dcn_file_close(&file);
    check_content(dir, "a", "x");
    dcn_dir_close(&dir);
}

TEST(posix__a_rename_that_must_not_replace_does_not)
{
    dcn_dir *dir = folder();

    make(dir, "a", "new");
    make(dir, "b", "old");
    CHECK_FAILS(dcn_dir_rename(dir, "a", "b", DCN_NO_REPLACE, &err), DECANT_EXISTS, &err);
    CHECK_TEXT(err.path, path_of("b"));
    check_content(dir, "b", "old");
    CHECK_OK(dcn_dir_rename(dir, "a", "c", DCN_NO_REPLACE, &err), &err);
    check_content(dir, "c", "new");
    CHECK_OK(dcn_dir_rename(dir, "c", "b", 0, &err), &err);
    check_content(dir, "b", "new");
    CHECK_FAILS(dcn_dir_rename(dir, "c", "b", 0, &err), DECANT_NOT_FOUND, &err);
    dcn_dir_close(&dir);
}

TEST(posix__a_link_is_a_second_name_and_never_replaces)
{
    dcn_dir *dir = folder();

    make(dir, "a", "one");
    make(dir, "b", "two");
    CHECK_FAILS(dcn_dir_link(dir, "a", "b", &err), DECANT_EXISTS, &err);
    CHECK_OK(dcn_dir_link(dir, "a", "c", &err), &err);
    CHECK_OK(dcn_dir_remove(dir, "a", &err), &err);
    check_content(dir, "c", "one");
    CHECK_FAILS(dcn_dir_remove(dir, "a", &err), DECANT_NOT_FOUND, &err);
    dcn_dir_discard(dir, "a");
    dcn_dir_discard(dir, "c");
    CHECK_FAILS(dcn_dir_link(dir, "c", "d", &err), DECANT_NOT_FOUND, &err);
    dcn_dir_close(&dir);
}

typedef struct seen {
    size_t count, stop_at;
    char names[256];
} seen;

static int see(void *ctx, const char *name)
{
    seen *s = ctx;

    strcat(strcat(s->names, name), ";");
    return ++s->count == s->stop_at;
}

TEST(posix__a_listing_has_every_name_and_can_be_stopped_and_repeated)
{
    dcn_dir *dir = folder();

    make(dir, "one", "");
    make(dir, ".two", "");
    CHECK_EQ(mkdir(path_of("three\n"), 0700), 0);
    for (int round = 0; round < 2; round++) {
        seen s = {0};

        CHECK_OK(dcn_dir_list(dir, see, &s, &err), &err);
        CHECK_EQ(s.count, 3);
        CHECK_HAS(s.names, "one;");
        CHECK_HAS(s.names, ".two;");
        CHECK_HAS(s.names, "three\n;");
    }
    seen s = {.stop_at = 2};
    CHECK_OK(dcn_dir_list(dir, see, &s, &err), &err);
    CHECK_EQ(s.count, 2);
    dcn_dir_close(&dir);
}

TEST(posix__space_tells_room_and_the_process_limit)
{
    dcn_dir *dir = folder();
    struct rlimit old, low;
    dcn_space space;

    CHECK_OK(dcn_dir_space(dir, &space, &err), &err);
    CHECK(space.free > 0);
    CHECK(space.block >= 512);
    CHECK_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
    CHECK_EQ(space.limit, old.rlim_cur == RLIM_INFINITY ? UINT64_MAX : old.rlim_cur);
    low = old;
    low.rlim_cur = 1 << 30;
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &low), 0);
    CHECK_OK(dcn_dir_space(dir, &space, &err), &err);
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
    CHECK_EQ(space.limit, 1 << 30);
    dcn_dir_close(&dir);
}

#if defined(__linux__)
TEST(posix__a_file_system_that_counts_no_blocks_is_not_full)
{
    dcn_dir *dir = NULL;
    dcn_space space = {0};

    CHECK_OK(dcn_io_open_dir(dcn_io_posix(), "/proc", &dir, &err), &err);
    CHECK_OK(dcn_dir_space(dir, &space, &err), &err);
    CHECK_EQ(space.free, UINT64_MAX);
    dcn_dir_close(&dir);
}
#endif

TEST(posix__a_lock_keeps_others_out_until_it_is_closed)
{
    dcn_dir *dir = folder();
    dcn_file *a = opened(dir, "a", DCN_WRITE | DCN_CREATE_NEW), *again = opened(dir, "a", DCN_READ);

    CHECK_OK(dcn_file_lock(a, &err), &err);
    CHECK_FAILS(dcn_file_lock(again, &err), DECANT_BUSY, &err);
    dcn_file_close(&a);
    CHECK_OK(dcn_file_lock(again, &err), &err);
    dcn_file_close(&again);
    dcn_dir_close(&dir);
}

TEST(posix__a_file_can_be_made_like_the_one_it_replaces)
{
    dcn_dir *dir = folder();
    dcn_file *old, *new = opened(dir, "new", DCN_WRITE | DCN_CREATE_NEW);
    dcn_facts facts;
    char value[8] = "";
    bool attributes;

    make(dir, "old", "");
    attributes = setxattr(path_of("old"), "user.note", "keep", 4, 0) == 0;
    if (geteuid() == 0)
        CHECK_EQ(chown(path_of("old"), 1234, 2345), 0);
    CHECK_EQ(chmod(path_of("old"), 04751), 0);
    old = opened(dir, "old", DCN_READ);
    CHECK_OK(dcn_file_resemble(new, old, &err), &err);
    CHECK_OK(dcn_file_facts(new, &facts, &err), &err);
    CHECK_EQ(facts.mode, 04751);
    if (geteuid() == 0) {
        CHECK_EQ(facts.uid, 1234);
        CHECK_EQ(facts.gid, 2345);
    }
    if (attributes) {
        CHECK_EQ(getxattr(path_of("new"), "user.note", value, sizeof value), 4);
        CHECK_TEXT(value, "keep");
    }
    CHECK_OK(dcn_file_sync(new, &err), &err);
    dcn_file_close(&old);
    dcn_file_close(&new);
    dcn_dir_close(&dir);
}

TEST(posix__a_file_made_like_a_read_only_one_has_its_attributes)
{
    enum { SOMEBODY = 65534 };
    dcn_dir *dir = folder();
    dcn_file *old, *new = opened(dir, "new", DCN_WRITE | DCN_CREATE_NEW);
    bool root = geteuid() == 0, attributes;
    char value[8] = "";

    make(dir, "old", "");
    attributes = setxattr(path_of("old"), "user.note", "keep", 4, 0) == 0;
    CHECK_EQ(chmod(path_of("old"), 0444), 0);
    old = opened(dir, "old", DCN_READ);
    if (root) { /* who may do everything shows nothing */
        CHECK_EQ(chown(path_of("old"), SOMEBODY, (gid_t)-1), 0);
        CHECK_EQ(chown(path_of("new"), SOMEBODY, (gid_t)-1), 0);
        CHECK_EQ(seteuid(SOMEBODY), 0);
    }
    CHECK_OK(dcn_file_resemble(new, old, &err), &err);
    if (root)
        CHECK_EQ(seteuid(0), 0);
    dcn_file_close(&old);
    dcn_file_close(&new);
    dcn_dir_close(&dir);
    if (!attributes)
        test_skip("no attributes here");
    CHECK_EQ(getxattr(path_of("new"), "user.note", value, sizeof value), 4);
    CHECK_TEXT(value, "keep");
}

TEST(posix__what_vouches_for_the_old_content_stays_with_it)
{
    static const uint8_t capability[20] = {1, 0, 0, 2}; /* version 2, effective, none */
    dcn_dir *dir = folder();
    dcn_file *old, *new = opened(dir, "new", DCN_WRITE | DCN_CREATE_NEW);
    uint8_t back[64];

    make(dir, "old", "");
    if (setxattr(path_of("old"), "security.capability", capability, sizeof capability, 0)) {
        dcn_file_close(&new);
        dcn_dir_close(&dir);
        test_skip("may not set capabilities here");
    }
    old = opened(dir, "old", DCN_READ);
    CHECK_OK(dcn_file_resemble(new, old, &err), &err);
    CHECK_EQ(getxattr(path_of("new"), "security.capability", back, sizeof back), -1);
    dcn_file_close(&old);
    dcn_file_close(&new);
    dcn_dir_close(&dir);
}

/* Version 2; user::rw- user:1234:rw- group::r-- mask::rw- other::--- */
static const uint8_t acl[] = {2, 0,    0,    0,    1,    0,    6,    0, 0xff, 0xff, 0xff, 0xff, 2,    0,    6,
                              0, 0xd2, 4,    0,    0,    4,    0,    4, 0,    0xff, 0xff, 0xff, 0xff, 0x10, 0,
                              6, 0,    0xff, 0xff, 0xff, 0xff, 0x20, 0, 0,    0,    0xff, 0xff, 0xff, 0xff};

TEST(posix__access_control_lists_come_along)
{
    dcn_dir *dir = folder();
    dcn_file *old, *new = opened(dir, "new", DCN_WRITE | DCN_CREATE_NEW);
    dcn_file *other = opened(dir, "other", DCN_WRITE | DCN_CREATE_NEW);
    uint8_t back[128];

    make(dir, "old", "");
    if (setxattr(path_of("old"), "system.posix_acl_access", acl, sizeof acl, 0)) {
        dcn_file_close(&new);
        dcn_file_close(&other);
        dcn_dir_close(&dir);
        test_skip("no access control lists here");
    }
    old = opened(dir, "old", DCN_READ);
    CHECK_OK(dcn_file_resemble(new, old, &err), &err);
    CHECK_EQ(getxattr(path_of("new"), "system.posix_acl_access", back, sizeof back), sizeof acl);
    CHECK_BYTES(back, sizeof acl, acl, sizeof acl);

    syscalls_begin(); /* who cannot give it to the group does not give that group's rights to his own */
    syscalls_fail("fchown", 2, EPERM);
    CHECK_OK(dcn_file_resemble(other, old, &err), &err);
    syscalls_end();
    CHECK_EQ(getxattr(path_of("other"), "system.posix_acl_access", back, sizeof back), -1);

    CHECK_EQ(removexattr(path_of("old"), "system.posix_acl_access"), 0); /* and go if the old file has none */
    CHECK_OK(dcn_file_resemble(new, old, &err), &err);
    CHECK_EQ(getxattr(path_of("new"), "system.posix_acl_access", back, sizeof back), -1);
    dcn_file_close(&old);
    dcn_file_close(&new);
    dcn_file_close(&other);
    dcn_dir_close(&dir);
}

TEST(posix__a_callers_descriptor_is_duplicated)
{
    dcn_dir *dir = folder();
    dcn_file *file = NULL;
    char data[5];
    int fd;

    make(dir, "a", "hello");
    fd = open(path_of("a"), O_RDONLY);
    CHECK(fd >= 0);
    CHECK_OK(dcn_file_from_fd(fd, &file, &err), &err);
    CHECK_EQ(close(fd), 0);
    CHECK_OK(dcn_file_read(file, &(dcn_range){0, data, 5}, 1, &err), &err);
    CHECK_BYTES(data, 5, "hello", 5);
    CHECK_FAILS(dcn_file_read(file, &(dcn_range){5, data, 1}, 1, &err), DECANT_TRUNCATED, &err);
    CHECK_HAS(err.path, "descriptor ");
    dcn_file_close(&file);
    CHECK_FAILS(dcn_file_from_fd(-1, &file, &err), DECANT_BAD_CALL, &err);
    dcn_dir_close(&dir);
}

TEST(posix__random_bytes_are_all_there_and_differ)
{
    uint8_t a[1000] = {0}, b[1000] = {0}, zeros[32] = {0};

    CHECK_OK(dcn_io_random(dcn_io_posix(), a, sizeof a, &err), &err);
    CHECK_OK(dcn_io_random(dcn_io_posix(), b, sizeof b, &err), &err);
    CHECK(memcmp(a, b, sizeof a) != 0);
    CHECK(memcmp(a + sizeof a - 32, zeros, 32) != 0);
}

TEST(posix__without_memory_nothing_stays_open)
{
    dcn_dir *dir = folder();
    size_t before = open_descriptors(), n;

    make(dir, "a", "x");
    for (n = 0;; n++) {
        dcn_dir *other = NULL;
        dcn_file *file = NULL, *old = NULL;
        decant_status rc;

        test_alloc_fail(n);
        rc = dcn_io_open_dir(dcn_io_posix(), test_folder(), &other, &err);
        if (!rc)
            rc = dcn_dir_open(other, "a", DCN_READ | DCN_WRITE, 0, &file, &err);
        if (!rc)
            rc = dcn_file_from_fd(STDIN_FILENO, &old, &err);
        if (!rc)
            rc = dcn_file_resemble(file, file, &err);
        test_alloc_disarm();
        dcn_file_close(&old);
        dcn_file_close(&file);
        dcn_dir_close(&other);
        CHECK_EQ(rc, test_alloc_fired() ? DECANT_NOMEM : DECANT_OK);
        CHECK_EQ(open_descriptors(), before);
        if (!test_alloc_fired())
            break;
    }
    CHECK(n >= 7);
    dcn_dir_close(&dir);
}
