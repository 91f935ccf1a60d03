/* The laws of the disk in memory on what a file takes of it, gives back, and carries along. */
#include "support/simdisk.h"

static decant_error err;

/* A disk whose units are two blocks of 4 bytes, and on it the file "a", of which all is safe. */
typedef struct scene {
    simdisk *disk;
    dcn_dir *dir;
    dcn_file *file;
} scene;

static dcn_file *open_file(dcn_dir *dir, const char *name, unsigned flags)
{
    dcn_file *file = NULL;

    CHECK_OK(dcn_dir_open(dir, name, flags, 0666, &file, &err), &err);
    return file;
}

static scene set_up(const char *text)
{
    scene s = {.disk = simdisk_new()};

    s.disk->block = 4;
    s.disk->unit = 8;
    simdisk_put_text(s.disk, "a", text);
    CHECK_OK(dcn_io_open_dir(&s.disk->io, ".", &s.dir, &err), &err);
    s.file = open_file(s.dir, "a", DCN_READ | DCN_WRITE);
    return s;
}

static void close_all(scene *s)
{
    dcn_file_close(&s->file);
    dcn_dir_close(&s->dir);
}

static void tear_down(scene *s)
{
    close_all(s);
    simdisk_free(&s->disk);
}

static void cut_power(scene *s, uint64_t (*choose)(void *ctx, const simdisk_op *op), const void *ctx)
{
    close_all(s);
    simdisk_crash(s->disk, choose, (void *)(uintptr_t)ctx);
}

static uint64_t all(void *ctx, const simdisk_op *op)
{
    (void)ctx, (void)op;
    return UINT64_MAX;
}

static uint64_t none(void *ctx, const simdisk_op *op)
{
    (void)ctx, (void)op;
    return 0;
}

/* Only changes of the kind that *ctx says. */
static uint64_t only(void *ctx, const simdisk_op *op)
{
    return op->change == *(simdisk_change *)ctx ? UINT64_MAX : 0;
}

static void punch(const scene *s, uint64_t at, uint64_t len)
{
    CHECK_OK(dcn_file_punch(s->file, at, len, &err), &err);
}

static void put(const scene *s, uint64_t at, const char *text)
{
    CHECK_OK(dcn_file_write(s->file, at, &(dcn_chunk){text, strlen(text)}, 1, &err), &err);
}

static dcn_facts facts_of(const scene *s)
{
    dcn_facts facts;

    CHECK_OK(dcn_dir_stat(s->dir, "a", &facts, &err), &err);
    return facts;
}

/* What the file holds; a dot stands for a zero. */
static void check_content(const scene *s, const char *wanted)
{
    size_t len = 0;
    const char *data = (const char *)simdisk_get(s->disk, "a", &len);

    CHECK(data);
    CHECK_EQ(len, strlen(wanted));
    for (size_t i = 0; i < len; i++)
        if (data[i] != (wanted[i] == '.' ? '\0' : wanted[i]))
            test_fail(__FILE__, __LINE__, "byte %zu is %d, wanted %c", i, data[i], wanted[i]);
}

/* --- punching ---------------------------------------------------------------------------------------------------- */

TEST(simdisk__what_is_punched_is_zeros_and_free_at_once)
{
    scene s = set_up("aaaaaaaabbbbbbbbcccccccc");
    dcn_file *other = open_file(s.dir, "b", DCN_WRITE | DCN_CREATE);
    int64_t before = facts_of(&s).mtime;

    s.disk->capacity = 24;
    CHECK_FAILS(dcn_file_reserve(other, 0, 1, &err), DECANT_NO_SPACE, &err);
    punch(&s, 8, 8);
    check_content(&s, "aaaaaaaa........cccccccc");
    CHECK_EQ(facts_of(&s).blocks, 16);
    CHECK(facts_of(&s).mtime > before);
    CHECK_OK(dcn_file_reserve(other, 0, 1, &err), &err);
    CHECK_FAILS(dcn_file_reserve(s.file, 8, 8, &err), DECANT_NO_SPACE, &err); /* somebody has it */
    dcn_file_close(&other);
    tear_down(&s);
}

TEST(simdisk__pieces_of_a_unit_are_zeros_but_not_free)
{
    scene s = set_up("aaaaaaaabbbbbbbbcccccccc");

    punch(&s, 8, 4);
    punch(&s, 12, 4);
    punch(&s, 6, 1);
    check_content(&s, "aaaaaa.a........cccccccc");
    CHECK_EQ(simdisk_used(s.disk), 24);
    punch(&s, 7, 10);
    check_content(&s, "aaaaaa...........ccccccc");
    CHECK_EQ(simdisk_used(s.disk), 16);
    tear_down(&s);
}

TEST(simdisk__a_unit_is_taken_from_its_first_byte)
{
    scene s = set_up("a");

    CHECK_EQ(simdisk_used(s.disk), 8);
    s.disk->capacity = 16;
    CHECK_OK(dcn_file_reserve(s.file, 9, 1, &err), &err);
    CHECK_EQ(simdisk_used(s.disk), 16);
    CHECK_FAILS(dcn_file_reserve(s.file, 16, 1, &err), DECANT_NO_SPACE, &err);
    tear_down(&s);
}

TEST(simdisk__a_punch_may_be_on_the_medium_before_what_was_written_earlier_or_never)
{
    static const simdisk_change kinds[] = {SIMDISK_PUNCH, SIMDISK_WRITE};
    static const char *const contents[] = {"aaaaaaaa........", "aaaBaaaabbbbbbbb"};

    for (size_t i = 0; i < 2; i++) {
        scene s = set_up("aaaaaaaabbbbbbbb");

        put(&s, 3, "B");
        punch(&s, 8, 8);
        cut_power(&s, only, &kinds[i]);
        check_content(&s, contents[i]);
        CHECK_EQ(simdisk_used(s.disk), i == 0 ? 8 : 16);
        tear_down(&s);
    }
}

static uint64_t first_and_third(void *ctx, const simdisk_op *op)
{
    (void)ctx, (void)op;
    return 5;
}

TEST(simdisk__of_a_punch_some_units_may_survive)
{
    scene s = set_up("aaaaaaaabbbbbbbbccccccccdddddddd");

    punch(&s, 4, 20);
    cut_power(&s, first_and_third, NULL);
    check_content(&s, "aaaa....bbbbbbbb........dddddddd");
    CHECK_EQ(simdisk_used(s.disk), 24);
    tear_down(&s);
}

TEST(simdisk__a_synced_punch_stays)
{
    scene s = set_up("aaaaaaaabbbbbbbb");

    punch(&s, 0, 8);
    CHECK_OK(dcn_file_sync(s.file, &err), &err);
    CHECK_EQ(simdisk_pending(s.disk), 0);
    cut_power(&s, none, NULL);
    check_content(&s, "........bbbbbbbb");
    CHECK_EQ(simdisk_used(s.disk), 8);
    tear_down(&s);
}

TEST(simdisk__the_cache_shows_a_punch_though_a_sync_has_failed)
{
    scene s = set_up("aaaaaaaabbbbbbbb");

    put(&s, 8, "BB");
    punch(&s, 0, 8);
    s.disk->lie_at = 1;
    CHECK_FAILS(dcn_file_sync(s.file, &err), DECANT_IO, &err);
    CHECK_OK(dcn_file_forget(s.file, &err), &err);
    check_content(&s, "........bbbbbbbb"); /* the write is lost, the punch is still on its way */
    cut_power(&s, none, NULL);
    check_content(&s, "aaaaaaaabbbbbbbb");
    tear_down(&s);
}

TEST(simdisk__with_extents_only_whole_ones_are_free)
{
    scene s = set_up("aaaaaaaabbbbbbbbccccccccdddddddd");
    dcn_extents extents;

    s.disk->extent = 16;
    CHECK_OK(dcn_file_extents(s.file, &extents, &err), &err);
    CHECK_EQ(extents.largest, 16);
    punch(&s, 0, 8);
    punch(&s, 16, 8);
    CHECK_EQ(facts_of(&s).blocks, 16); /* so it says */
    CHECK_EQ(simdisk_used(s.disk), 32);
    punch(&s, 8, 8);
    CHECK_EQ(simdisk_used(s.disk), 16);

    s.disk->capacity = 20; /* what is put back is a new extent: there is no room for it beside the old one */
    CHECK_FAILS(dcn_file_reserve(s.file, 16, 8, &err), DECANT_NO_SPACE, &err);
    s.disk->capacity = 24;
    put(&s, 16, "CCCCCCCC");
    CHECK_EQ(simdisk_used(s.disk), 24);
    punch(&s, 24, 8);
    CHECK_EQ(simdisk_used(s.disk), 8);
    CHECK_OK(dcn_file_resize(s.file, 0, &err), &err);
    CHECK_EQ(simdisk_used(s.disk), 0);
    tear_down(&s);
}

TEST(simdisk__with_extents_what_is_written_over_is_another_one)
{
    scene s = set_up("aaaaaaaabbbbbbbb");

    s.disk->extent = 16;
    punch(&s, 0, 8);
    CHECK_EQ(simdisk_used(s.disk), 16);
    put(&s, 8, "bbbbbbbb");
    CHECK_EQ(simdisk_used(s.disk), 8);
    tear_down(&s);
}

TEST(simdisk__what_is_shared_frees_nothing)
{
    scene s = set_up("aaaaaaaabbbbbbbb");
    dcn_extents extents;

    CHECK_OK(dcn_file_extents(s.file, &extents, &err), &err);
    CHECK(!extents.shared && extents.largest == 0);
    simdisk_share(s.disk, "a", true);
    CHECK_OK(dcn_file_extents(s.file, &extents, &err), &err);
    CHECK(extents.shared);
    punch(&s, 0, 16);
    check_content(&s, "................");
    CHECK_EQ(simdisk_used(s.disk), 16);
    tear_down(&s);
}

TEST(simdisk__a_power_cut_keeps_holes)
{
    scene s = set_up("");

    CHECK_OK(dcn_file_resize(s.file, 24, &err), &err);
    put(&s, 8, "b");
    CHECK_EQ(simdisk_used(s.disk), 8);
    cut_power(&s, all, NULL);
    check_content(&s, "........b...............");
    CHECK_EQ(simdisk_used(s.disk), 8);
    tear_down(&s);
}

TEST(simdisk__room_is_reserved_past_the_end_until_a_power_cut_takes_it)
{
    for (int synced = 0; synced < 2; synced++) {
        scene s = set_up("");

        CHECK_OK(dcn_file_reserve(s.file, 0, 24, &err), &err);
        put(&s, 0, "a"); /* growing does not end it */
        CHECK_EQ(simdisk_used(s.disk), 24);
        if (synced)
            CHECK_OK(dcn_file_sync(s.file, &err), &err);
        cut_power(&s, none, NULL);
        CHECK_EQ(simdisk_used(s.disk), synced ? 24 : 0);
        tear_down(&s);
    }
}

/* --- where the data is ------------------------------------------------------------------------------------------- */

static void check_data(const scene *s, uint64_t at, uint64_t wanted_begin, uint64_t wanted_end)
{
    uint64_t begin = 99, end = 99;

    CHECK_OK(dcn_file_data(s->file, at, &begin, &end, &err), &err);
    CHECK_EQ(begin, wanted_begin);
    CHECK_EQ(end, wanted_end);
}

TEST(simdisk__data_is_what_was_written)
{
    scene s = set_up("aaaaaaaabbbbbbbbcccccccc");

    punch(&s, 8, 8);
    check_data(&s, 0, 0, 8);
    check_data(&s, 5, 5, 8);
    check_data(&s, 8, 16, 24);
    check_data(&s, 24, 24, 24);
    check_data(&s, 77, 24, 24);
    CHECK_OK(dcn_file_reserve(s.file, 8, 8, &err), &err);
    check_data(&s, 8, 16, 24); /* reserved is not written */
    punch(&s, 16, 8);
    check_data(&s, 8, 24, 24);
    tear_down(&s);
}

TEST(simdisk__may_lie_about_holes)
{
    scene s = set_up("aaaaaaaabbbbbbbb");

    punch(&s, 8, 8);
    s.disk->holes = SIMDISK_NO_HOLES;
    check_data(&s, 3, 3, 16);
    s.disk->holes = SIMDISK_DIRTY_HOLES;
    put(&s, 0, "A");
    check_data(&s, 0, 4, 8);
    CHECK_OK(dcn_file_sync(s.file, &err), &err);
    check_data(&s, 0, 0, 8);
    tear_down(&s);
}

/* --- what a file carries along ----------------------------------------------------------------------------------- */

static void check_note(const scene *s, const char *wanted)
{
    dcn_file *file = open_file(s->dir, "a", DCN_READ);
    char text[32] = "";

    if (wanted)
        CHECK_OK(dcn_file_read_note(file, text, sizeof text, &err), &err);
    else
        CHECK_FAILS(dcn_file_read_note(file, text, sizeof text, &err), DECANT_NOT_FOUND, &err);
    CHECK_TEXT(text, wanted ? wanted : "");
    dcn_file_close(&file);
}

TEST(simdisk__a_note_stays_until_it_is_taken_away)
{
    scene s = set_up("a");
    char small[4];

    check_note(&s, NULL);
    CHECK_OK(dcn_file_note(s.file, NULL, &err), &err);
    CHECK_OK(dcn_file_note(s.file, "mark", &err), &err);
    CHECK_OK(dcn_file_note(s.file, "other", &err), &err);
    CHECK_OK(dcn_dir_rename(s.dir, "a", "b", 0, &err), &err);
    CHECK_OK(dcn_dir_rename(s.dir, "b", "a", 0, &err), &err);
    check_note(&s, "other");
    CHECK_FAILS(dcn_file_read_note(s.file, small, sizeof small, &err), DECANT_UNSUPPORTED, &err);
    CHECK_OK(dcn_file_note(s.file, NULL, &err), &err);
    check_note(&s, NULL);
    tear_down(&s);
}

TEST(simdisk__notes_and_times_wait_for_a_sync_each_for_itself)
{
    static const simdisk_change kinds[] = {SIMDISK_NOTE, SIMDISK_TIME};

    for (size_t i = 0; i < 2; i++)
        for (int synced = 0; synced < 2; synced++) {
            scene s = set_up("a");
            int64_t old = facts_of(&s).mtime;

            CHECK_OK(dcn_file_note(s.file, "mark", &err), &err);
            CHECK_OK(dcn_file_set_mtime(s.file, 12345, &err), &err);
            CHECK_EQ(facts_of(&s).mtime, 12345);
            CHECK_EQ(simdisk_pending(s.disk), 2);
            if (synced)
                CHECK_OK(dcn_file_sync(s.file, &err), &err);
            cut_power(&s, only, &kinds[i]);
            CHECK_OK(dcn_io_open_dir(&s.disk->io, ".", &s.dir, &err), &err);
            CHECK_EQ(facts_of(&s).mtime, synced || kinds[i] == SIMDISK_TIME ? 12345 : old);
            check_note(&s, synced || kinds[i] == SIMDISK_NOTE ? "mark" : NULL);
            tear_down(&s);
        }
}

TEST(simdisk__the_time_of_a_change_is_lost_with_it)
{
    scene s = set_up("a");
    int64_t old = facts_of(&s).mtime;

    put(&s, 0, "b");
    CHECK(facts_of(&s).mtime > old);
    cut_power(&s, none, NULL);
    CHECK_OK(dcn_io_open_dir(&s.disk->io, ".", &s.dir, &err), &err);
    CHECK_EQ(facts_of(&s).mtime, old);
    tear_down(&s);
}

/* --- who else, and where ----------------------------------------------------------------------------------------- */

TEST(simdisk__a_file_is_ones_own_while_nobody_else_has_it_open)
{
    scene s = set_up("a");
    dcn_file *again = open_file(s.dir, "a", DCN_READ);

    CHECK_FAILS(dcn_file_alone(s.file, &err), DECANT_BUSY, &err);
    dcn_file_close(&again);
    CHECK_OK(dcn_file_alone(s.file, &err), &err);
    simdisk_someone_opens(s.disk, "a", true);
    CHECK_FAILS(dcn_file_alone(s.file, &err), DECANT_BUSY, &err);
    simdisk_someone_opens(s.disk, "a", false);
    CHECK_OK(dcn_file_alone(s.file, &err), &err);
    simdisk_give_away(s.disk, "a");
    CHECK_FAILS(dcn_file_alone(s.file, &err), DECANT_UNSUPPORTED, &err);
    CHECK_FAILS(dcn_file_set_mtime(s.file, 1, &err), DECANT_DENIED, &err);
    tear_down(&s);
}

TEST(simdisk__what_is_fixed_stays_as_and_where_it_is)
{
    scene s = set_up("a");
    dcn_file *file = NULL;

    CHECK(!facts_of(&s).fixed);
    simdisk_put_text(s.disk, "b", "b");
    simdisk_fix(s.disk, "a", true);
    CHECK(facts_of(&s).fixed);
    CHECK_FAILS(dcn_dir_open(s.dir, "a", DCN_WRITE, 0, &file, &err), DECANT_DENIED, &err);
    CHECK_FAILS(dcn_dir_rename(s.dir, "a", "c", 0, &err), DECANT_DENIED, &err);
    CHECK_FAILS(dcn_dir_rename(s.dir, "b", "a", 0, &err), DECANT_DENIED, &err);
    CHECK_FAILS(dcn_dir_remove(s.dir, "a", &err), DECANT_DENIED, &err);
    CHECK_TEXT(simdisk_names(s.disk, "."), "a b");
    simdisk_fix(s.disk, "a", false);
    CHECK_OK(dcn_dir_remove(s.dir, "a", &err), &err);
    tear_down(&s);
}

TEST(simdisk__a_nameless_file_takes_room_until_it_is_closed)
{
    scene s = set_up("a");
    dcn_file *file = open_file(s.dir, "", DCN_READ | DCN_WRITE | DCN_NAMELESS);
    simdisk *killed;

    CHECK_OK(dcn_file_write(file, 0, &(dcn_chunk){"123456789", 9}, 1, &err), &err);
    CHECK_EQ(simdisk_file_count(s.disk), 1);
    CHECK_EQ(simdisk_used(s.disk), 8 + 16);
    killed = simdisk_clone(s.disk);
    CHECK_EQ(simdisk_used(killed), 8);
    CHECK_EQ(simdisk_pending(killed), 0);
    simdisk_free(&killed);
    dcn_file_close(&file);
    CHECK_EQ(simdisk_used(s.disk), 8);
    CHECK_EQ(simdisk_pending(s.disk), 0);
    tear_down(&s);
}

TEST(simdisk__a_folder_says_where_it_is_and_is_found_there)
{
    static const char *const folders[][2] = {{".", "/"}, {"d", "/d"}};
    scene s = set_up("a");

    simdisk_put_text(s.disk, "d/a", "a");
    for (size_t i = 0; i < 2; i++) {
        dcn_dir *dir = NULL;
        dcn_file *file = NULL;
        char where[16], path[32] = "";

        CHECK_OK(dcn_io_open_dir(&s.disk->io, folders[i][0], &dir, &err), &err);
        CHECK_OK(dcn_dir_where(dir, where, sizeof where, &err), &err);
        CHECK_TEXT(where, folders[i][1]);
        CHECK_FAILS(dcn_dir_where(dir, where, strlen(where), &err), DECANT_UNSUPPORTED, &err);
        dcn_dir_close(&dir);
        strcat(strcat(path, where), where[1] ? "/a" : "a");
        CHECK_OK(dcn_io_open(&s.disk->io, path, DCN_READ, &file, &err), &err);
        CHECK_FILE(s.disk, path, "a");
        dcn_file_close(&file);
    }
    tear_down(&s);
}

TEST(simdisk__another_file_system_has_its_own_device_and_room)
{
    scene s = set_up("aaaaaaaa");
    dcn_dir *dir = NULL;
    dcn_file *file;
    dcn_facts here, there, folder;
    dcn_space space;
    uint64_t used;

    s.disk->block = 512; /* what a clone takes is whole blocks */
    s.disk->unit = 0;
    s.disk->capacity = 512;
    simdisk_put_text(s.disk, "far/early", "");
    simdisk_other_fs(s.disk, "far");
    CHECK_OK(dcn_io_open_dir(&s.disk->io, "far", &dir, &err), &err);
    file = open_file(dir, "b", DCN_READ | DCN_WRITE | DCN_CREATE);
    CHECK_OK(dcn_file_facts(s.file, &here, &err), &err);
    CHECK_OK(dcn_file_facts(file, &there, &err), &err);
    CHECK(here.dev != there.dev);
    CHECK_OK(dcn_dir_stat(dir, "early", &there, &err), &err);
    CHECK(here.dev != there.dev);
    CHECK_OK(dcn_dir_stat(dir, ".", &folder, &err), &err);
    CHECK_EQ(folder.dev, there.dev);
    CHECK_OK(dcn_dir_stat(s.dir, "far", &folder, &err), &err);
    CHECK_EQ(folder.dev, there.dev);

    CHECK_FAILS(dcn_file_clone(file, 0, s.file, 0, 0, &err), DECANT_UNSUPPORTED, &err);
    CHECK_FAILS(dcn_file_copy(file, 0, s.file, 0, 1, &err), DECANT_UNSUPPORTED, &err);
    used = simdisk_used(s.disk);
    CHECK_OK(dcn_file_reserve(file, 0, 1 << 20, &err), &err);
    CHECK_EQ(simdisk_used(s.disk), used);
    CHECK_OK(dcn_dir_space(dir, &space, &err), &err);
    CHECK_EQ(space.free, UINT64_MAX);
    dcn_file_close(&file);
    dcn_dir_close(&dir);
    tear_down(&s);
}

TEST(simdisk__what_it_lacks_for_giving_up_is_unsupported)
{
    scene s = set_up("a");
    dcn_file *file = NULL;
    dcn_extents extents;
    dcn_space space;
    uint64_t begin, end;
    char text[8];

    CHECK_OK(dcn_dir_space(s.dir, &space, &err), &err);
    CHECK(space.punches && space.unit == 8);
    s.disk->lacks = 1u << DCN_DO_OPEN | 1u << DCN_DO_PUNCH | 1u << DCN_DO_EXTENTS | 1u << DCN_DO_DATA |
                    1u << DCN_DO_ALONE | 1u << DCN_DO_NOTE | 1u << DCN_DO_READ_NOTE | 1u << DCN_DO_SET_MTIME |
                    1u << DCN_DO_WHERE;
    CHECK_OK(dcn_dir_space(s.dir, &space, &err), &err);
    CHECK(!space.punches);
    CHECK_FAILS(dcn_dir_open(s.dir, "", DCN_WRITE | DCN_NAMELESS, 0, &file, &err), DECANT_UNSUPPORTED, &err);
    CHECK_TEXT(err.path, ".");
    CHECK_FAILS(dcn_dir_where(s.dir, text, sizeof text, &err), DECANT_UNSUPPORTED, &err);
    CHECK_FAILS(dcn_file_punch(s.file, 0, 8, &err), DECANT_UNSUPPORTED, &err);
    CHECK_FAILS(dcn_file_extents(s.file, &extents, &err), DECANT_UNSUPPORTED, &err);
    CHECK_FAILS(dcn_file_data(s.file, 0, &begin, &end, &err), DECANT_UNSUPPORTED, &err);
    CHECK_FAILS(dcn_file_alone(s.file, &err), DECANT_UNSUPPORTED, &err);
    CHECK_FAILS(dcn_file_note(s.file, "x", &err), DECANT_UNSUPPORTED, &err);
    CHECK_FAILS(dcn_file_read_note(s.file, text, sizeof text, &err), DECANT_UNSUPPORTED, &err);
    CHECK_FAILS(dcn_file_set_mtime(s.file, 1, &err), DECANT_UNSUPPORTED, &err);
    CHECK_FILE(s.disk, "a", "a");
    file = open_file(s.dir, "a", DCN_READ); /* with a name it can */
    dcn_file_close(&file);
    tear_down(&s);
}
