#include "pour/route.h"
#include "support/convoy.h"
#include "support/gates.h"
#include "support/salvage.h"

TEST(outputs__of_one_save_are_all_poured_and_the_last_gets_its_name_when_the_others_have_theirs_for_good)
{
    for (uint64_t seed = 0; seed < 4; seed++) {
        simdisk *disk = simdisk_new();
        gates g;
        convoy c;
        decant_error err;

        convoy_load(&c, 4, seed);
        gates_up(&g, &disk->io);
        CHECK_OK(convoy_pour(&c, &(convoy_voyage){.disk = disk, .seed = seed}, &err), &err);
        for (size_t i = 0; i < 4; i++) {
            CHECK(convoy_landed(&c, disk, i));
            CHECK(c.published[i] && c.durable[i]);
        }
        CHECK_TEXT(simdisk_names(disk, "."), "a.bin b.bin c.bin d.bin");
        CHECK_EQ(g.count[DCN_DO_SYNC_DIR], 2);
        gates_down(&g);
        convoy_close(&c);
        simdisk_free(&disk);
    }
}

static decant_status check(simdisk *disk, const dcn_landing *landings, size_t count, bool replace, uint64_t *room,
                           decant_error *err)
{
    dcn_routes routes = {0};
    dcn_dir *dir = NULL;
    dcn_space space;
    decant_status rc;

    CHECK_OK(dcn_io_open_dir(&disk->io, ".", &dir, err), err);
    if ((rc = dcn_routes_check_files(&routes, dir, landings, count, replace, &space, err)) == DECANT_OK)
        rc = dcn_routes_check_room(&routes, dir, &space, err);
    if (room)
        *room = routes.room;
    dcn_routes_close(&routes);
    dcn_dir_close(&dir);
    return rc;
}

TEST(outputs__are_refused_where_one_of_them_is_and_it_is_named)
{
    static const dcn_landing landings[] = {{"a", "there/a", 10}, {"b", "there/b", 600}, {"c", "there/c", 10}};
    simdisk *disk = simdisk_new();
    decant_error err;

    simdisk_put_text(disk, "b", "old");
    CHECK_FAILS(check(disk, landings, 3, false, NULL, &err), DECANT_EXISTS, &err);
    CHECK_TEXT(err.path, "there/b");
    CHECK_OK(check(disk, landings, 3, true, NULL, &err), &err);
    disk->limit = 500;
    CHECK_FAILS(check(disk, landings, 3, true, NULL, &err), DECANT_NO_SPACE, &err);
    CHECK_TEXT(err.path, "there/b");
    simdisk_free(&disk);
}

TEST(outputs__need_room_for_all_of_them_together)
{
    static const dcn_landing landings[] = {{"a", "a", 513}, {"b", "b", 1}, {"c", "c", 0}};
    simdisk *disk = simdisk_new();
    uint64_t room = 0;
    decant_error err;

    disk->capacity = 3 * 512;
    CHECK_OK(check(disk, landings, 3, false, &room, &err), &err);
    CHECK_EQ(room, 3 * 512);
    disk->capacity--;
    CHECK_FAILS(check(disk, landings, 3, false, &room, &err), DECANT_NO_SPACE, &err);
    simdisk_free(&disk);
}

TEST(outputs__of_one_save_have_names_of_their_own)
{
    static const dcn_landing landings[] = {{"a", "a", 1}, {"b", "b", 1}, {"a", "a", 1}};
    simdisk *disk = simdisk_new();
    decant_error err;

    CHECK_FAILS(check(disk, landings, 3, true, NULL, &err), DECANT_SAME_FILE, &err);
    CHECK_TEXT(err.path, "a");
    CHECK(err.hint[0]);
    simdisk_free(&disk);
}

typedef struct visitor {
    simdisk *disk;
    size_t ends;
} visitor;

/* Somebody puts a file of his own where the second is to go, when all is written. */
static int visit(void *ctx, uint64_t done, uint64_t total)
{
    visitor *v = ctx;

    if (done == total && ++v->ends == 2)
        simdisk_put_text(v->disk, "b.bin", "somebody's file, which has just come");
    return 0;
}

/* Somebody writes to what is going to be removed. */
static int touch(void *ctx, uint64_t done, uint64_t total)
{
    (void)done, (void)total;
    simdisk_touch(((visitor *)ctx)->disk, CONVOY_OLD);
    return 0;
}

TEST(outputs__are_all_taken_back_where_a_name_is_another_file_at_the_last_moment)
{
    for (int replace = 0; replace < 2; replace++) {
        visitor v = {.disk = simdisk_new()};
        convoy c;
        convoy_voyage how = {
            .disk = v.disk, .replace = replace, .journal = true, .progress = visit, .progress_ctx = &v};
        decant_error err;

        for (size_t i = 0; replace && i < 3; i++)
            simdisk_put_text(v.disk, convoy_name(i), "old");
        convoy_load(&c, 3, 1);
        CHECK_FAILS(convoy_pour(&c, &how, &err), replace ? DECANT_CHANGED : DECANT_EXISTS, &err);
        CHECK_TEXT(err.path, "b.bin");
        CHECK_TEXT(simdisk_names(v.disk, "."), replace ? "a.bin b.bin c.bin" : "b.bin");
        CHECK_FILE(v.disk, "b.bin", "somebody's file, which has just come");
        convoy_close(&c);
        simdisk_free(&v.disk);
    }
}

TEST(outputs__remove_what_they_supersede_only_when_they_are_in_place_and_only_if_it_is_still_that)
{
    for (int journal = 0; journal < 2; journal++)
        for (int touched = 0; touched < 2; touched++) {
            simdisk *disk = simdisk_new();
            convoy c;
            visitor v = {.disk = disk};
            gates g;
            convoy_voyage how = {.disk = disk, .journal = journal, .prune = true};
            decant_error err;

            simdisk_put_text(disk, CONVOY_OLD, "an earlier save");
            if (touched) {
                how.progress = touch;
                how.progress_ctx = &v;
            }
            convoy_load(&c, journal ? 3 : 1, 1);
            CHECK_OK(convoy_pour(&c, &how, &err), &err);
            CHECK_FILE(disk, CONVOY_OLD, touched ? "an earlier save" : NULL);
            convoy_close(&c);
            simdisk_free(&disk);

            /* where it cannot be removed that is told, and with a journal recovery tries again */
            disk = how.disk = v.disk = simdisk_new();
            simdisk_put_text(disk, CONVOY_OLD, "an earlier save");
            how.progress = NULL;
            convoy_load(&c, journal ? 3 : 1, 1);
            gates_up(&g, &disk->io);
            gates_fail(&g, (gates_fault){
                               .one_verb = true, .verb = DCN_DO_REMOVE, .name = CONVOY_OLD, .status = DECANT_DENIED});
            CHECK_FAILS(convoy_pour(&c, &how, &err), journal ? DECANT_PUBLISH_PENDING : DECANT_NOT_REMOVED, &err);
            gates_down(&g);
            for (size_t i = 0; i < c.plans.count; i++)
                CHECK(c.published[i] && convoy_landed(&c, disk, i));
            if (journal)
                CHECK_OK(salvage(disk, &err), &err);
            CHECK_FILE(disk, CONVOY_OLD, journal ? NULL : "an earlier save");
            convoy_close(&c);
            simdisk_free(&disk);
        }
}
