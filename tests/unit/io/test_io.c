/* The wrappers: the gate, the paths in errors, what an implementation may leave out. */
#include <errno.h>

#include "base/alloc.h"
#include "base/error.h"
#include "io/io.h"
#include "support/alloc.h"
#include "support/gates.h"
#include "support/simdisk.h"

static decant_error err;

TEST(split__gives_the_folder_and_the_bare_name)
{
    static const struct {
        const char *path, *folder, *name;
    } cases[] = {{"c", ".", "c"},       {"a/b/c", "a/b", "c"}, {"a//c", "a", "c"},
                 {"/c", "/", "c"},      {"//c", "/", "c"},     {"./c", ".", "c"},
                 {"a/..c", "a", "..c"}, {"a/.c", "a", ".c"},   {"a b/c\nd", "a b", "c\nd"}};
    simdisk *disk = simdisk_new();

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dcn_dir *dir = NULL;
        char *name = NULL;

        simdisk_folder(disk, cases[i].folder);
        CHECK_OK(dcn_io_split(&disk->io, cases[i].path, &dir, &name, &err), &err);
        CHECK_TEXT(name, cases[i].name);
        CHECK_TEXT(dir->path, cases[i].folder);
        dcn_free(&name);
        dcn_dir_close(&dir);
    }
    simdisk_free(&disk);
}

TEST(split__refuses_a_path_without_a_name)
{
    static const char *const paths[] = {"", "/", "a/", ".", "..", "a/.", "a/..", "//"};
    simdisk *disk = simdisk_new();

    simdisk_folder(disk, "a");
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        dcn_dir *dir = NULL;
        char *name = NULL;

        CHECK_FAILS(dcn_io_split(&disk->io, paths[i], &dir, &name, &err), DECANT_BAD_CALL, &err);
        CHECK(!dir && !name);
        CHECK_TEXT(err.path, paths[i]);
    }
    simdisk_free(&disk);
}

TEST(split__gives_nothing_when_the_folder_is_missing_or_memory_ends)
{
    simdisk *disk = simdisk_new();
    dcn_dir *dir = NULL;
    char *name = NULL;

    CHECK_FAILS(dcn_io_split(&disk->io, "no/a", &dir, &name, &err), DECANT_NOT_FOUND, &err);
    CHECK_TEXT(err.path, "no");
    for (size_t n = 0; n < 2; n++) {
        test_alloc_fail(n);
        CHECK_FAILS(dcn_io_split(&disk->io, "a", &dir, &name, &err), DECANT_NOMEM, &err);
    }
    test_alloc_disarm();
    CHECK(!dir && !name);
    simdisk_free(&disk);
}

TEST(join__is_the_opposite_of_split)
{
    static const char *const cases[][3] = {
        {".", "a", "a"}, {"/", "a", "/a"}, {"a/b", "c", "a/b/c"}, {"a/", "b", "a/b"}, {"..", "a", "../a"}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *path = dcn_io_join(cases[i][0], cases[i][1]);

        CHECK_TEXT(path, cases[i][2]);
        dcn_free(&path);
    }
}

TEST(open_by_path__leaves_only_the_file_open)
{
    simdisk *disk = simdisk_new();
    dcn_file *file = NULL;

    simdisk_put_text(disk, "a/b", "x");
    CHECK_OK(dcn_io_open(&disk->io, "a/b", DCN_READ, &file, &err), &err);
    CHECK_EQ(disk->open_dirs, 0);
    CHECK_TEXT(file->path, "a/b");
    CHECK_TEXT(file->name, "b");
    dcn_file_close(&file);
    CHECK_FAILS(dcn_io_open(&disk->io, "a/c", DCN_READ, &file, &err), DECANT_NOT_FOUND, &err);
    CHECK_TEXT(err.path, "a/c");
    CHECK_EQ(disk->open_dirs, 0);
    simdisk_free(&disk);
}

/* Each wrapper once, in the order of the verbs; the first failure of each is the one of *rc. */
static void call_each(dcn_io *io, decant_status *rc, decant_error *errors)
{
    dcn_dir *dir = NULL, *other_dir = NULL;
    dcn_file *file = NULL, *other = NULL;
    const dcn_gate *gate = io->gate;
    const dcn_chunk chunk = {"x", 1};
    dcn_facts facts;
    dcn_space space;
    dcn_self self;
    dcn_extents extents;
    uint64_t begin, end;
    char byte, text[16];
    const dcn_range range = {0, &byte, 1};

    io->gate = NULL;
    CHECK_OK(dcn_io_open_dir(io, "d", &dir, &err), &err);
    CHECK_OK(dcn_dir_open(dir, "f", DCN_READ | DCN_WRITE | DCN_CREATE, 0666, &file, &err), &err);
    CHECK_OK(dcn_file_write(file, 0, &chunk, 1, &err), &err);
    io->gate = gate;

    rc[DCN_DO_OPEN_DIR] = dcn_io_open_dir(io, "d", &other_dir, &errors[DCN_DO_OPEN_DIR]);
    rc[DCN_DO_RANDOM] = dcn_io_random(io, &byte, 1, &errors[DCN_DO_RANDOM]);
    rc[DCN_DO_OPEN] = dcn_dir_open(dir, "f", DCN_READ, 0, &other, &errors[DCN_DO_OPEN]);
    rc[DCN_DO_STAT] = dcn_dir_stat(dir, "f", &facts, &errors[DCN_DO_STAT]);
    rc[DCN_DO_READLINK] = dcn_dir_readlink(dir, "f", text, sizeof text, &errors[DCN_DO_READLINK]);
    rc[DCN_DO_LIST] = dcn_dir_list(dir, NULL, NULL, &errors[DCN_DO_LIST]);
    rc[DCN_DO_RENAME] = dcn_dir_rename(dir, "f", "g", 0, &errors[DCN_DO_RENAME]);
    rc[DCN_DO_LINK] = dcn_dir_link(dir, "g", "h", &errors[DCN_DO_LINK]);
    rc[DCN_DO_REMOVE] = dcn_dir_remove(dir, "h", &errors[DCN_DO_REMOVE]);
    rc[DCN_DO_SYNC_DIR] = dcn_dir_sync(dir, &errors[DCN_DO_SYNC_DIR]);
    rc[DCN_DO_SPACE] = dcn_dir_space(dir, &space, &errors[DCN_DO_SPACE]);
    rc[DCN_DO_READ] = dcn_file_read(file, &range, 1, &errors[DCN_DO_READ]);
    rc[DCN_DO_WRITE] = dcn_file_write(file, 0, &chunk, 1, &errors[DCN_DO_WRITE]);
    rc[DCN_DO_RESIZE] = dcn_file_resize(file, 1, &errors[DCN_DO_RESIZE]);
    rc[DCN_DO_RESERVE] = dcn_file_reserve(file, 0, 1, &errors[DCN_DO_RESERVE]);
    rc[DCN_DO_SYNC] = dcn_file_sync(file, &errors[DCN_DO_SYNC]);
    rc[DCN_DO_FACTS] = dcn_file_facts(file, &facts, &errors[DCN_DO_FACTS]);
    rc[DCN_DO_LOCK] = dcn_file_lock(file, &errors[DCN_DO_LOCK]);
    rc[DCN_DO_RESEMBLE] = dcn_file_resemble(file, file, &errors[DCN_DO_RESEMBLE]);
    rc[DCN_DO_COPY] = dcn_file_copy(file, 0, file, 0, 1, &errors[DCN_DO_COPY]);
    rc[DCN_DO_WHO] = dcn_io_who(io, &self, &errors[DCN_DO_WHO]);
    rc[DCN_DO_FORGET] = dcn_file_forget(file, &errors[DCN_DO_FORGET]);
    rc[DCN_DO_CLONE] = dcn_file_clone(file, 0, file, 0, 1, &errors[DCN_DO_CLONE]);
    rc[DCN_DO_WHERE] = dcn_dir_where(dir, text, sizeof text, &errors[DCN_DO_WHERE]);
    rc[DCN_DO_PUNCH] = dcn_file_punch(file, 0, 1, &errors[DCN_DO_PUNCH]);
    rc[DCN_DO_EXTENTS] = dcn_file_extents(file, &extents, &errors[DCN_DO_EXTENTS]);
    rc[DCN_DO_DATA] = dcn_file_data(file, 0, &begin, &end, &errors[DCN_DO_DATA]);
    rc[DCN_DO_ALONE] = dcn_file_alone(file, &errors[DCN_DO_ALONE]);
    rc[DCN_DO_NOTE] = dcn_file_note(file, "x", &errors[DCN_DO_NOTE]);
    rc[DCN_DO_READ_NOTE] = dcn_file_read_note(file, text, sizeof text, &errors[DCN_DO_READ_NOTE]);
    rc[DCN_DO_SET_MTIME] = dcn_file_set_mtime(file, 1, &errors[DCN_DO_SET_MTIME]);

    dcn_file_close(&file);
    dcn_file_close(&other);
    dcn_dir_close(&dir);
    dcn_dir_close(&other_dir);
}

static int ignore(void *ctx, const char *name)
{
    (void)ctx, (void)name;
    return 1;
}

TEST(wrappers__a_gate_sees_each_call_and_can_refuse_it)
{
    simdisk *disk = simdisk_new();
    decant_status rc[DCN_VERB_COUNT];
    decant_error errors[DCN_VERB_COUNT];
    gates g;

    simdisk_folder(disk, "d");
    gates_up(&g, &disk->io);
    gates_fail(&g, (gates_fault){.status = DECANT_IO, .os_code = EIO, .forever = true});
    call_each(&disk->io, rc, errors);
    for (int verb = 0; verb < DCN_VERB_COUNT; verb++) {
        CHECK_EQ(g.count[verb], 1);
        CHECK_EQ(rc[verb], DECANT_IO);
        CHECK_EQ(errors[verb].os_code, EIO);
        if (verb != DCN_DO_RANDOM && verb != DCN_DO_WHO)
            CHECK_TEXT(errors[verb].path, verb == DCN_DO_OPEN_DIR || verb == DCN_DO_LIST || verb == DCN_DO_SYNC_DIR ||
                                                  verb == DCN_DO_SPACE || verb == DCN_DO_WHERE
                                              ? "d"
                                          : verb == DCN_DO_RENAME                        ? "d/g"
                                          : verb == DCN_DO_LINK || verb == DCN_DO_REMOVE ? "d/h"
                                                                                         : "d/f");
    }
    gates_down(&g);
    CHECK_TEXT(simdisk_names(disk, "d"), "f"); /* no call had an effect */
    simdisk_free(&disk);
}

TEST(wrappers__tell_the_gate_what_the_call_is)
{
    simdisk *disk = simdisk_new();
    dcn_dir *dir = NULL;
    dcn_file *file = NULL;
    const dcn_chunk chunks[] = {{"abc", 3}, {"de", 2}};
    char bytes[5];
    const dcn_range ranges[] = {{3, bytes + 3, 2}, {0, bytes, 3}};
    gates g;

    gates_up(&g, &disk->io);
    CHECK_OK(dcn_io_open_dir(&disk->io, ".", &dir, &err), &err);
    CHECK_OK(dcn_dir_open(dir, "f", DCN_READ | DCN_WRITE | DCN_CREATE, 0666, &file, &err), &err);
    CHECK_OK(dcn_file_write(file, 0, chunks, 2, &err), &err);
    CHECK_OK(dcn_file_read(file, ranges, 2, &err), &err);
    CHECK_OK(dcn_file_resize(file, 9, &err), &err);
    CHECK_OK(dcn_file_reserve(file, 2, 7, &err), &err);
    CHECK_OK(dcn_file_copy(file, 1, file, 5, 4, &err), &err);
    CHECK_OK(dcn_file_punch(file, 3, 6, &err), &err);
    CHECK_OK(dcn_dir_list(dir, ignore, NULL, &err), &err);
    CHECK_OK(dcn_dir_rename(dir, "f", "g", 0, &err), &err);
    CHECK_FAILS(dcn_dir_remove(dir, "f", &err), DECANT_NOT_FOUND, &err);
    dcn_dir_discard(dir, "f");
    CHECK_TEXT(gates_trace(&g), "open_dir .\n"
                                "open f\n"
                                "write f 0+5\n"
                                "read f 3+5\n"
                                "resize f 9\n"
                                "reserve f 2+7\n"
                                "copy f 1+4\n"
                                "punch f 3+6\n"
                                "list .\n"
                                "rename f g\n"
                                "remove f = not_found\n"
                                "remove f = not_found\n");
    CHECK_BYTES(bytes, 5, "abcde", 5);
    dcn_file_close(&file);
    dcn_dir_close(&dir);
    gates_down(&g);
    simdisk_free(&disk);
}

TEST(wrappers__what_an_implementation_leaves_out_is_unsupported)
{
    const dcn_io_ops no_io = {0};
    const dcn_dir_ops no_dir = {0};
    const dcn_file_ops no_file = {0};
    dcn_io io = {.ops = &no_io};
    dcn_dir dir = {.ops = &no_dir, .io = &io, .path = "d"};
    dcn_file file = {.ops = &no_file, .io = &io, .path = "d/f", .name = "f"};
    dcn_extents extents;
    uint64_t begin, end;
    char text[16];

    CHECK_FAILS(dcn_dir_link(&dir, "a", "b", &err), DECANT_UNSUPPORTED, &err);
    CHECK_FAILS(dcn_file_reserve(&file, 0, 1, &err), DECANT_UNSUPPORTED, &err);
    CHECK_FAILS(dcn_file_lock(&file, &err), DECANT_UNSUPPORTED, &err);
    CHECK_FAILS(dcn_file_resemble(&file, &file, &err), DECANT_UNSUPPORTED, &err);
    CHECK_FAILS(dcn_file_copy(&file, 0, &file, 0, 1, &err), DECANT_UNSUPPORTED, &err);
    CHECK_FAILS(dcn_file_forget(&file, &err), DECANT_UNSUPPORTED, &err);
    CHECK_FAILS(dcn_file_clone(&file, 0, &file, 0, 1, &err), DECANT_UNSUPPORTED, &err);
    CHECK_FAILS(dcn_file_punch(&file, 0, 1, &err), DECANT_UNSUPPORTED, &err);
    CHECK_FAILS(dcn_file_extents(&file, &extents, &err), DECANT_UNSUPPORTED, &err);
    CHECK_FAILS(dcn_file_data(&file, 0, &begin, &end, &err), DECANT_UNSUPPORTED, &err);
    CHECK_FAILS(dcn_file_alone(&file, &err), DECANT_UNSUPPORTED, &err);
    CHECK_FAILS(dcn_file_note(&file, "x", &err), DECANT_UNSUPPORTED, &err);
    CHECK_FAILS(dcn_file_read_note(&file, text, sizeof text, &err), DECANT_UNSUPPORTED, &err);
    CHECK_FAILS(dcn_file_set_mtime(&file, 1, &err), DECANT_UNSUPPORTED, &err);
    CHECK_TEXT(err.path, "d/f");
    CHECK_FAILS(dcn_dir_where(&dir, text, sizeof text, &err), DECANT_UNSUPPORTED, &err);
    CHECK_TEXT(err.path, "d");
}

TEST(wrappers__closing_nothing_does_nothing)
{
    dcn_dir *dir = NULL;
    dcn_file *file = NULL;

    dcn_dir_close(&dir);
    dcn_dir_close(NULL);
    dcn_file_close(&file);
    dcn_file_close(NULL);
}

TEST(same_file__needs_device_number_and_birth)
{
    const dcn_facts a = {.dev = 1, .ino = 2, .birth = 3, .size = 4};
    dcn_facts b = a;

    b.size = 5;
    b.mtime = 6;
    CHECK(dcn_facts_same_file(&a, &b));
    b.birth = 4;
    CHECK(!dcn_facts_same_file(&a, &b));
    b = a;
    b.ino = 4;
    CHECK(!dcn_facts_same_file(&a, &b));
    b = a;
    b.dev = 4;
    CHECK(!dcn_facts_same_file(&a, &b));
}
