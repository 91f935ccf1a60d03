#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "format/input.h"
#include "support/alloc.h"
#include "support/gates.h"
#include "support/simdisk.h"

static decant_error err;

static decant_status open_path(dcn_io *io, const char *path, dcn_input **out)
{
    dcn_dir *dir = NULL;
    char *name = NULL;
    decant_status rc = dcn_io_split(io, path, &dir, &name, &err);

    if (!rc)
        rc = dcn_input_open(&dir, name, path, out, &err);
    dcn_free(&name);
    dcn_dir_close(&dir);
    return rc;
}

static decant_status sibling(dcn_input *in, const char *name, dcn_input **out)
{
    return dcn_input_sibling(in, name, strlen(name), out, &err);
}

static void check_text(dcn_input **in, const char *text)
{
    char got[64] = "";
    dcn_fetch fetch = {0, got, strlen(text)};

    CHECK_EQ((*in)->bytes->len, strlen(text));
    CHECK_OK(dcn_backing_fetch((*in)->bytes, &fetch, 1, &err), &err);
    CHECK_TEXT(got, text);
    dcn_input_close(in);
    CHECK(!*in);
}

TEST(sibling__is_a_file_of_the_same_folder_and_is_named_as_the_caller_names_that)
{
    static const char *const folders[] = {"", "./", "d/"};
    simdisk *disk = simdisk_new();

    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        dcn_input *in = NULL, *beside = NULL;
        char path[32];

        snprintf(path, sizeof path, "%sa", strcmp(folders[i], "./") == 0 ? "" : folders[i]);
        simdisk_put_text(disk, path, "index");
        snprintf(path, sizeof path, "%sb", strcmp(folders[i], "./") == 0 ? "" : folders[i]);
        simdisk_put_text(disk, path, "shard");

        snprintf(path, sizeof path, "%sa", folders[i]);
        CHECK_OK(open_path(&disk->io, path, &in), &err);
        CHECK_TEXT(in->name, path);
        CHECK_OK(sibling(in, "b", &beside), &err);
        CHECK_FAILS(sibling(beside, "a", &(dcn_input *){NULL}), DECANT_UNSUPPORTED, &err); /* a sibling has none */
        snprintf(path, sizeof path, "%sb", strcmp(folders[i], "./") == 0 ? "" : folders[i]);
        CHECK_TEXT(err.path, path);
        check_text(&beside, "shard");
        CHECK_FAILS(sibling(in, "c", &beside), DECANT_NOT_FOUND, &err);
        path[strlen(path) - 1] = 'c';
        CHECK_HAS(err.path, path);
        check_text(&in, "index");
    }
    simdisk_free(&disk);
}

/* SE-01 */
TEST(sibling__is_no_path_and_no_name_that_is_one_elsewhere__SE_01)
{
    static const struct {
        const char *name;
        size_t len;
    } names[] = {{"../x", 4},      {"/etc/hostname", 13},
                 {"a/../../x", 9}, {"a/x", 3},
                 {"C:\\x", 4},     {"C:x", 3},
                 {"..\\x", 4},     {"", 0},
                 {".", 1},         {"..", 2},
                 {"x\0y", 3},      {"\0", 1},
                 {"x\n", 2},       {"x\x7f", 2}};
    simdisk *disk = simdisk_new();
    dcn_input *in = NULL, *out = NULL;
    char longest[258];
    gates g;

    simdisk_put_text(disk, "d/a", "index");
    simdisk_put_text(disk, "x", "secret");
    CHECK_OK(open_path(&disk->io, "d/a", &in), &err);
    gates_up(&g, &disk->io);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        CHECK_FAILS(dcn_input_sibling(in, names[i].name, names[i].len, &out, &err), DECANT_MALFORMED, &err);
        CHECK_TEXT(err.path, "d/a");
        CHECK_HAS(err.expected, "bare name");
        CHECK(err.hint[0]);
    }
    memset(longest, 'x', 257);
    longest[256] = '\0';
    CHECK_FAILS(dcn_input_sibling(in, longest, 256, &out, &err), DECANT_MALFORMED, &err);
    CHECK_EQ(g.total, 0); /* the system is not even asked */
    longest[255] = '\0';
    CHECK_FAILS(dcn_input_sibling(in, longest, 255, &out, &err), DECANT_NOT_FOUND, &err);
    gates_down(&g);
    dcn_input_close(&in);
    simdisk_free(&disk);
}

TEST(sibling__is_no_folder_pipe_or_device_and_is_not_opened_to_find_out)
{
    static const dcn_kind kinds[] = {DCN_KIND_FOLDER, DCN_KIND_OTHER};
    simdisk *disk = simdisk_new();
    dcn_input *in = NULL, *out = NULL;
    gates g;

    simdisk_put_text(disk, "a", "index");
    simdisk_make(disk, "to-fifo", DCN_KIND_LINK, "1");
    CHECK_OK(open_path(&disk->io, "a", &in), &err);
    gates_up(&g, &disk->io);
    for (int i = 0; i < 2; i++) {
        const char *name = i ? "1" : "0";

        simdisk_make(disk, name, kinds[i], NULL);
        CHECK_FAILS(sibling(in, name, &out), DECANT_UNSUPPORTED, &err);
        CHECK_TEXT(err.path, name);
    }
    CHECK_EQ(g.count[DCN_DO_OPEN], 0);
    CHECK_FAILS(sibling(in, "to-fifo", &out), DECANT_UNSUPPORTED, &err);
    gates_down(&g);
    dcn_input_close(&in);
    simdisk_free(&disk);
}

/* --- links, on a real disk ---------------------------------------------------------------------------------------- */

static const char *at(const char *name)
{
    static char paths[8][4096];
    static size_t next;

    next = (next + 1) % 8;
    snprintf(paths[next], sizeof paths[next], "%s/%s", test_folder(), name);
    return paths[next];
}

static void put(const char *name, const char *text)
{
    FILE *out = fopen(at(name), "wb");

    CHECK(out);
    fputs(text, out);
    CHECK_EQ(fclose(out), 0);
}

static void link_to(const char *to, const char *name)
{
    CHECK_EQ(symlink(to, at(name)), 0);
}

/* The layout of the cache of huggingface_hub: snapshots are links into the folder where all files of a model lie. */
TEST(sibling__may_be_a_link_into_the_folder_where_the_file_itself_really_lies)
{
    dcn_input *in = NULL, *out = NULL;

    CHECK_EQ(mkdir(at("blobs"), 0777) | mkdir(at("snapshots"), 0777) | mkdir(at("snapshots/1f"), 0777), 0);
    put("blobs/aa", "index");
    put("blobs/bb", "shard");
    put("secret", "secret");
    link_to("../../blobs/aa", "snapshots/1f/index.json");
    link_to("../../blobs/bb", "snapshots/1f/one");
    link_to("../../secret", "snapshots/1f/two");
    link_to("/etc/hostname", "snapshots/1f/three");
    link_to("one", "snapshots/1f/four");
    put("snapshots/1f/five", "plain");

    CHECK_OK(open_path(dcn_io_posix(), at("snapshots/1f/index.json"), &in), &err);
    CHECK_OK(sibling(in, "one", &out), &err);
    CHECK_TEXT(out->name, at("snapshots/1f/one"));
    check_text(&out, "shard");
    CHECK_OK(sibling(in, "four", &out), &err); /* a link to a link */
    check_text(&out, "shard");
    CHECK_OK(sibling(in, "five", &out), &err);
    check_text(&out, "plain");

    CHECK_FAILS(sibling(in, "two", &out), DECANT_DENIED, &err);
    CHECK_TEXT(err.path, at("snapshots/1f/two"));
    CHECK_HAS(err.found, "/snapshots/1f/../..'");
    CHECK(err.hint[0]);
    CHECK_FAILS(sibling(in, "three", &out), DECANT_DENIED, &err);
    CHECK_HAS(err.found, "'/etc'");
    CHECK_FAILS(sibling(in, "aa", &out), DECANT_NOT_FOUND, &err); /* the name is looked up where the link lies */
    dcn_input_close(&in);
}

TEST(sibling__is_no_link_out_of_the_folder_of_a_file_that_lies_there)
{
    dcn_input *in = NULL, *out = NULL;

    CHECK_EQ(mkdir(at("m"), 0777) | mkdir(at("other"), 0777), 0);
    put("m/index.json", "index");
    put("m/one", "shard");
    put("other/two", "secret");
    link_to("one", "m/alias");
    link_to("../m/one", "m/round");
    link_to("../other/two", "m/two");
    link_to("nowhere", "m/dangling");
    link_to("loop", "m/loop");
    link_to("..", "m/up");
    link_to("m", "door"); /* the folder may be reached by a link */

    CHECK_OK(open_path(dcn_io_posix(), at("door/index.json"), &in), &err);
    CHECK_OK(sibling(in, "alias", &out), &err);
    check_text(&out, "shard");
    CHECK_OK(sibling(in, "round", &out), &err);
    check_text(&out, "shard");
    CHECK_FAILS(sibling(in, "two", &out), DECANT_DENIED, &err);
    CHECK_FAILS(sibling(in, "dangling", &out), DECANT_NOT_FOUND, &err);
    CHECK_TEXT(err.path, at("door/dangling"));
    CHECK_FAILS(sibling(in, "loop", &out), DECANT_DENIED, &err);
    CHECK(sibling(in, "up", &out) != DECANT_OK);
    dcn_input_close(&in);
}

TEST(sibling__that_cannot_be_read_later_is_still_called_by_its_own_name)
{
    simdisk *disk = simdisk_new();
    dcn_input *in = NULL, *out = NULL;
    char byte;
    dcn_fetch fetch = {0, &byte, 1};
    gates g;

    simdisk_put_text(disk, "a", "index");
    simdisk_put_text(disk, "blob", "shard");
    simdisk_make(disk, "b", DCN_KIND_LINK, "blob");
    CHECK_OK(open_path(&disk->io, "a", &in), &err);
    CHECK_OK(sibling(in, "b", &out), &err);
    gates_up(&g, &disk->io);
    gates_fail(&g, (gates_fault){.one_verb = true, .verb = DCN_DO_READ, .status = DECANT_IO, .os_code = EIO});
    CHECK_FAILS(dcn_backing_fetch(out->bytes, &fetch, 1, &err), DECANT_IO, &err);
    CHECK_TEXT(err.path, "b");
    gates_down(&g);
    dcn_input_close(&out);
    dcn_input_close(&in);
    simdisk_free(&disk);
}

TEST(sibling__survives_the_failure_of_any_call_and_any_allocation)
{
    simdisk *disk = simdisk_new();

    simdisk_put_text(disk, "d/a", "index");
    simdisk_put_text(disk, "d/blob", "shard");
    simdisk_make(disk, "d/b", DCN_KIND_LINK, "blob");
    for (int calls = 0; calls < 2; calls++) {
        bool fired = true;

        for (size_t n = 0; fired; n++) {
            dcn_input *in = NULL, *out = NULL;
            decant_status rc;
            gates g;

            gates_up(&g, &disk->io);
            if (calls)
                gates_fail(&g, (gates_fault){.nth = n, .status = DECANT_IO, .os_code = EIO});
            else
                test_alloc_fail(n);
            rc = open_path(&disk->io, "d/a", &in);
            if (!rc)
                rc = sibling(in, "b", &out);
            fired = calls ? g.fired : test_alloc_fired();
            test_alloc_disarm();
            gates_down(&g);
            CHECK_EQ(rc, !fired ? DECANT_OK : calls ? DECANT_IO : DECANT_NOMEM);
            CHECK_EQ(out != NULL, !fired);
            dcn_input_close(&out);
            dcn_input_close(&in);
            CHECK_EQ(disk->open_files + disk->open_dirs, 0);
        }
    }
    simdisk_free(&disk);
}
