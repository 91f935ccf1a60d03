#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/stopped.h"

/*
 * What others do to the files of a save that gives its inputs up, while it works and when it has been stopped: nothing that they
 * have done is lost, nor is a byte of the inputs; what does not fit stops recovery, which says so, before it touches anything.
 */

static void rename_in(simdisk *disk, const char *folder, const char *from, const char *to)
{
    dcn_dir *dir = NULL;
    decant_error err;

    CHECK_OK(dcn_io_open_dir(&disk->io, folder, &dir, &err), &err);
    CHECK_OK(dcn_dir_rename(dir, from, to, DCN_NO_REPLACE, &err), &err);
    CHECK_OK(dcn_dir_sync(dir, &err), &err);
    dcn_dir_close(&dir);
}

static void remove_from(simdisk *disk, const char *folder, const char *name)
{
    dcn_dir *dir = NULL;
    decant_error err;

    CHECK_OK(dcn_io_open_dir(&disk->io, folder, &dir, &err), &err);
    CHECK_OK(dcn_dir_remove(dir, name, &err), &err);
    CHECK_OK(dcn_dir_sync(dir, &err), &err);
    dcn_dir_close(&dir);
}

/* --- names ----------------------------------------------------------------------------------------------------------- */

static const char again[] = "downloaded again";

static void take_the_name(caravan *c, simdisk *disk, const char *when)
{
    dcn_stage stage;

    if (stopped_has(disk, "s/a") || !stopped_has(disk, "s/a.moving") || !caravan_journal(disk, &stage))
        return;
    simdisk_put_text(disk, "s/a", again);
    for (unsigned undo = 0; undo < 2; undo++) {
        simdisk *after = simdisk_clone(disk);
        decant_error err;
        decant_status rc = caravan_recover(after, undo, &err);

        if (stage != DCN_STAGE_COMMITTED && rc == DECANT_OK)
            test_fail(__FILE__, __LINE__, "%s: nothing is said of the file that has come", when);
        CHECK_FILE(after, "s/a", again);
        if (rc) {
            remove_from(after, "s", "a");
            caravan_check_recovers(c, after, 0, when, &stage);
        }
        simdisk_free(&after);
    }
}

TEST(recover__leaves_a_file_alone_that_has_come_under_the_name_of_a_source)
{
    stopped_everywhere(take_the_name, 1);
}

static void name_it_back(caravan *c, simdisk *disk, const char *when)
{
    dcn_stage stage;

    if (stopped_has(disk, "s/a") || !stopped_has(disk, "s/a.moving") || !caravan_journal(disk, &stage) ||
        stage == DCN_STAGE_COMMITTED)
        return;
    rename_in(disk, "s", "a.moving", "a");
    for (unsigned undo = stage == DCN_STAGE_ABORTED; undo < 2; undo++) {
        simdisk *after = simdisk_clone(disk);
        decant_error err;

        if (caravan_recover(after, undo, &err) || !(undo ? caravan_is_old(c, after) : caravan_is_new(c, after)))
            test_fail(__FILE__, __LINE__, "%s: %s", when, decant_error_text(&err));
        simdisk_free(&after);
    }
}

TEST(recover__finds_a_source_that_somebody_has_renamed_back)
{
    stopped_everywhere(name_it_back, 1);
}

/* What was there stays, whatever the next save says. */
static void lose_the_journal(caravan *c, simdisk *disk, const char *when)
{
    static const caravan_scene next = {
        .name = "next", .outputs = {{.name = "p", .held = 8, .replace = true, .pieces = {{-1, 0, 50}}}}, .unit = 64};
    caravan other;
    char *before, part[STOPPED_NAME];
    dcn_stage stage;
    decant_error err;

    stopped_find(disk, ".jpart", part);
    if (!part[0] || strncmp(part, "p.", 2) != 0 || !caravan_journal(disk, &stage))
        return;
    remove_from(disk, ".", stopped_journal);
    before = strdup(simdisk_names(disk, "s"));
    caravan_load(&other, &next);
    CHECK_FAILS(caravan_pour(&other, disk, &(caravan_how){0}, &err), DECANT_BUSY, &err);
    CHECK_OK(caravan_recover(disk, true, &err), &err);
    if (!stopped_has(disk, part) || strcmp(before, simdisk_names(disk, "s")) != 0)
        test_fail(__FILE__, __LINE__, "%s: %s", when, simdisk_names(disk, "s"));
    free(before);
    caravan_close(&other);
    (void)c;
}

TEST(save__removes_no_part_that_has_lost_its_journal)
{
    stopped_everywhere(lose_the_journal, 1);
}

/* A file that has given up nothing yet is not needed to undo. */
static void lose_a_whole_source(caravan *c, simdisk *disk, const char *when)
{
    dcn_stage stage;
    decant_error err;

    if (c->source_count < 2 || !stopped_has(disk, c->scene->sources[1].name) || !caravan_journal(disk, &stage) ||
        stage == DCN_STAGE_COMMITTED)
        return;
    remove_from(disk, "s", c->scene->sources[1].name + 2);
    if (stage == DCN_STAGE_READY && !caravan_recover(disk, false, &err))
        test_fail(__FILE__, __LINE__, "%s: finished without a source", when);
    if (stopped_has(disk, "s/b.moving")) /* its other name */
        return;
    if (caravan_recover(disk, true, &err))
        test_fail(__FILE__, __LINE__, "%s: %s", when, decant_error_text(&err));
    CHECK(!stopped_has(disk, stopped_journal) && stopped_has(disk, "s/a") && !stopped_has(disk, "s/a.moving"));
}

TEST(recover__undoes_without_a_source_that_has_given_up_nothing)
{
    stopped_everywhere(lose_a_whole_source, 1);
}

/* A file that has given up nothing yet is somebody's again: its time is as he left it. */
static void touch_a_whole_source(caravan *c, simdisk *disk, const char *when)
{
    dcn_stage stage;
    int64_t time;
    decant_error err;

    if (c->source_count < 2 || !stopped_has(disk, c->scene->sources[1].name) || !caravan_journal(disk, &stage) ||
        stage == DCN_STAGE_COMMITTED || stopped_has(disk, "s/b.moving") ||
        simdisk_mtime_of(disk, c->scene->sources[1].name) != c->times[1])
        return;
    simdisk_touch(disk, c->scene->sources[1].name);
    time = simdisk_mtime_of(disk, c->scene->sources[1].name);
    if (stage == DCN_STAGE_READY)
        CHECK_FAILS(caravan_recover(disk, false, &err), DECANT_CHANGED, &err);
    if (caravan_recover(disk, true, &err))
        test_fail(__FILE__, __LINE__, "%s: %s", when, decant_error_text(&err));
    c->times[1] = time;
    if (!caravan_is_old(c, disk))
        test_fail(__FILE__, __LINE__, "%s: a source has lost the time that somebody gave it", when);
}

TEST(recover__leaves_the_time_of_a_source_that_has_given_up_nothing)
{
    stopped_everywhere(touch_a_whole_source, 1);
}

TEST(recover__stops_where_a_part_is_another_file)
{
    caravan c;
    simdisk *disk;
    char part[STOPPED_NAME];

    caravan_load(&c, &stopped_even);
    disk = stopped_before(&c, false, DCN_DO_PUNCH, "a", 1);
    stopped_find(disk, ".jpart", part);
    rename_in(disk, ".", part, "elsewhere");
    for (unsigned undo = 0; undo < 2; undo++) {
        decant_error err;

        CHECK_FAILS(caravan_recover(disk, undo, &err), DECANT_CHANGED, &err);
        CHECK_HAS(err.path, part);
        simdisk_put(disk, part, "0123456789", 10);
    }
    remove_from(disk, ".", part);
    rename_in(disk, ".", "elsewhere", part);
    CHECK(caravan_check_recovers(&c, disk, 0, "put back", &(dcn_stage){0}));
    simdisk_free(&disk);
    caravan_close(&c);
}

/* It was in place, and is moved away before all was removed: a source that is whole may be all there is. */
TEST(recover__spares_what_is_whole_where_an_output_has_been_moved_away)
{
    caravan c;
    simdisk *disk;
    decant_error err;

    caravan_load(&c, &caravan_scenes[3]);
    disk = stopped_before(&c, false, DCN_DO_REMOVE, "c", 0);
    CHECK(disk != NULL && stopped_has(disk, "p") && stopped_has(disk, "s/c"));
    rename_in(disk, ".", "p", "mine");
    CHECK_OK(caravan_recover(disk, false, &err), &err);
    CHECK_TEXT(simdisk_names(disk, "."), "mine q");
    CHECK_TEXT(simdisk_names(disk, "s"), "c");
    simdisk_free(&disk);
    caravan_close(&c);
}

/* It is complete: what is gone with its folder need not be removed. */
TEST(recover__finishes_when_the_folder_of_the_sources_is_gone)
{
    simdisk *disk;
    caravan c;

    caravan_load(&c, &caravan_scenes[3]);
    disk = stopped_before(&c, false, DCN_DO_RENAME, ".jpart", 0);
    for (unsigned undo = 0; undo < 2; undo++) {
        gates g;
        decant_error err;

        gates_up(&g, &disk->io);
        gates_fail(&g,
                   (gates_fault){.one_verb = true, .verb = DCN_DO_OPEN_DIR, .name = "/s", .status = DECANT_NOT_FOUND});
        CHECK_EQ(caravan_recover(disk, undo == 0, &err), undo == 0 ? DECANT_BAD_CALL : DECANT_OK);
        gates_down(&g);
    }
    CHECK_TEXT(simdisk_names(disk, "."), "p q");
    simdisk_free(&disk);
    caravan_close(&c);
}

/* --- while it works --------------------------------------------------------------------------------------------------- */

typedef struct visit {
    simdisk *disk;
    size_t at, calls; /* of progress */
    void (*act)(simdisk *disk, const char *path);
    const char *path, *other; /* its name, before and after */
} visit;

static int come_by(void *ctx, uint64_t done, uint64_t total)
{
    visit *v = ctx;

    (void)done;
    (void)total;
    if (v->calls++ == v->at)
        v->act(v->disk, stopped_has(v->disk, v->path) ? v->path : v->other);
    return 0;
}

static void open_it(simdisk *disk, const char *path)
{
    simdisk_someone_opens(disk, path, true);
}

static void visit_at_any_time(const caravan_scene *scene, visit v)
{
    size_t undone = 0;

    for (bool came = true; came; v.at++) {
        caravan c;
        decant_error err;
        decant_status rc;

        v.calls = 0;
        caravan_load(&c, scene);
        v.disk = caravan_disk(&c);
        rc = caravan_pour(&c, v.disk, &(caravan_how){.progress = come_by, .progress_ctx = &v}, &err);
        came = v.calls > v.at;
        if (rc == DECANT_CHANGED || rc == DECANT_BUSY)
            undone++;
        else if (rc || v.at + 2 < v.calls) /* behind the last calls there is nothing but to remove them */
            test_fail(__FILE__, __LINE__, "%s, call %zu of %zu: %s", scene->name, v.at, v.calls,
                      decant_status_name(rc));
        if (rc) {
            CHECK_HAS(err.path, v.path);
            simdisk_someone_opens(v.disk, v.path, false);
            for (size_t i = 0; i < c.source_count; i++)
                c.times[i] = simdisk_mtime_of(v.disk, c.scene->sources[i].name); /* somebody else's */
            CHECK(caravan_is_old(&c, v.disk));
        }
        simdisk_free(&v.disk);
        caravan_close(&c);
    }
    if (undone < 2)
        test_fail(__FILE__, __LINE__, "%s: undone at %zu of %zu calls", scene->name, undone, v.calls);
}

TEST(consume__is_undone_when_somebody_changes_or_opens_a_source)
{
    visit_at_any_time(&stopped_even, (visit){.act = simdisk_touch, .path = "s/a", .other = "s/a.moving"});
    visit_at_any_time(&stopped_even, (visit){.act = open_it, .path = "s/a", .other = "s/a.moving"});
    /* one that is copied is looked at again at the end */
    visit_at_any_time(&caravan_scenes[3], (visit){.act = simdisk_touch, .path = "s/c", .other = "s/c"});
}

static void open_it_and_touch_the_next(simdisk *disk, const char *path)
{
    open_it(disk, path);
    simdisk_touch(disk, "s/b");
}

/* It is undone before the one that was touched has begun to give up anything. */
TEST(consume__leaves_the_time_of_a_source_that_has_given_up_nothing)
{
    visit v = {.at = 3, .act = open_it_and_touch_the_next, .path = "s/a", .other = "s/a.moving"};
    decant_error err;
    caravan c;

    caravan_load(&c, &caravan_scenes[1]);
    v.disk = caravan_disk(&c);
    CHECK_FAILS(caravan_pour(&c, v.disk, &(caravan_how){.progress = come_by, .progress_ctx = &v}, &err), DECANT_BUSY,
                &err);
    CHECK(simdisk_mtime_of(v.disk, "s/b") != c.times[1]);
    c.times[1] = simdisk_mtime_of(v.disk, "s/b");
    CHECK(caravan_is_old(&c, v.disk));
    simdisk_someone_opens(v.disk, "s/a", false);
    simdisk_free(&v.disk);
    caravan_close(&c);
}

/* Somebody else's sync of the part is told that the disk has failed; the save's own is told that all is well. */
static void hear_of_a_failure(simdisk *disk, const char *path)
{
    const dcn_gate *gate = disk->io.gate;
    char part[STOPPED_NAME];
    dcn_file *file = NULL;
    decant_error err;

    (void)path;
    stopped_find(disk, ".jpart", part);
    disk->io.gate = NULL;
    CHECK_OK(dcn_io_open(&disk->io, part, DCN_READ, &file, &err), &err);
    disk->lie_at = 1;
    CHECK_FAILS(dcn_file_sync(file, &err), DECANT_IO, &err);
    dcn_file_close(&file);
    disk->io.gate = gate;
}

TEST(recover__reads_the_last_batch_from_the_disk_and_not_from_the_cache)
{
    size_t lost = 0;
    bool came = true;

    for (size_t at = 1; came; at++) { /* the first time something was copied, of which nobody has another one */
        visit v = {.at = at, .act = hear_of_a_failure, .path = "s/a", .other = "s/a.moving"};
        caravan c;
        simdisk *killed;
        gates g;
        dcn_stage stage;
        char when[64];
        decant_error err;

        caravan_load(&c, &stopped_even);
        v.disk = caravan_disk(&c);
        gates_up(&g, &v.disk->io);
        gates_fail(
            &g, (gates_fault){.one_verb = true, .verb = DCN_DO_PUNCH, .name = "a", .status = DECANT_IO, .crash = true});
        (void)!caravan_pour(&c, v.disk, &(caravan_how){.progress = come_by, .progress_ctx = &v}, &err);
        gates_down(&g);
        came = v.calls > at;
        killed = simdisk_clone(v.disk);
        snprintf(when, sizeof when, "lost at %zu", at);
        if (caravan_journal(killed, &stage) && stage == DCN_STAGE_READY && stopped_has(killed, "s/a.moving")) {
            lost++;
            for (unsigned undo = 0; undo < 2; undo++) {
                simdisk *after = simdisk_clone(killed);

                CHECK_OK(caravan_recover(after, undo, &err), &err);
                simdisk_crash_nth(after, 0, 0);
                caravan_check_recovers(&c, after, undo ? 0 : CARAVAN_SAID_NEW, when, &stage);
                simdisk_free(&after);
            }
        }
        simdisk_free(&killed);
        simdisk_free(&v.disk);
        caravan_close(&c);
    }
    CHECK(lost > 0);
}

static decant_status look_away(void *ctx, size_t plan, uint64_t at, const dcn_chunk *chunk, decant_error *err)
{
    (void)ctx;
    (void)plan;
    (void)at;
    (void)chunk;
    (void)err;
    return DECANT_OK;
}

/* A batch that is not on the disk, though the disk has said so, is seen before the source has given it up. */
TEST(consume__frees_nothing_that_does_not_come_back_from_the_disk_if_asked_to_look)
{
    dcn_proof proof = {.see = look_away};

    for (size_t at = 1; at < 6; at++) {
        visit v = {.at = at, .act = hear_of_a_failure, .path = "s/a", .other = "s/a.moving"};
        caravan c;
        decant_error err;

        caravan_load(&c, &stopped_even);
        v.disk = caravan_disk(&c);
        CHECK_FAILS(
            caravan_pour(&c, v.disk, &(caravan_how){.progress = come_by, .progress_ctx = &v, .proof = &proof}, &err),
            DECANT_CHANGED, &err);
        CHECK_HAS(decant_error_text(&err), "not on the disk");
        CHECK(caravan_is_old(&c, v.disk));
        simdisk_free(&v.disk);
        caravan_close(&c);
    }
}

TEST(recover__leaves_alone_what_another_process_works_on)
{
    simdisk *disk;
    caravan c;
    decant_error err;

    caravan_load(&c, &stopped_even);
    disk = stopped_before(&c, false, DCN_DO_PUNCH, "a", 1);
    simdisk_hold(disk, stopped_journal, true);
    CHECK_FAILS(caravan_recover(disk, false, &err), DECANT_BUSY, &err);
    CHECK_FAILS(caravan_recover(disk, true, &err), DECANT_BUSY, &err);
    simdisk_hold(disk, stopped_journal, false);
    simdisk_hold(disk, "s/a.moving", true);
    CHECK_FAILS(caravan_recover(disk, false, &err), DECANT_BUSY, &err);
    CHECK_FAILS(caravan_recover(disk, true, &err), DECANT_BUSY, &err);
    simdisk_hold(disk, "s/a.moving", false);
    CHECK_OK(caravan_recover(disk, true, &err), &err);
    CHECK(caravan_is_old(&c, disk));
    simdisk_hold(disk, "s/a", true);
    CHECK_FAILS(caravan_pour(&c, disk, &(caravan_how){0}, &err), DECANT_BUSY, &err);
    CHECK(caravan_is_old(&c, disk));
    simdisk_hold(disk, "s/a", false);
    simdisk_free(&disk);
    caravan_close(&c);
}

static void take_other_name(simdisk *disk, const char *path)
{
    (void)path;
    simdisk_put_text(disk, "s/a.moving", again);
}

/* Its other name was free when all was checked. */
TEST(consume__replaces_nothing_under_the_other_name_of_a_source)
{
    for (unsigned lacks = 0; lacks < 2; lacks++) {
        caravan_scene scene = stopped_even;
        visit v = {.at = 2, .act = take_other_name, .path = "s/a", .other = "s/a"};
        decant_error err;
        caravan c;

        scene.lacks = lacks ? 1u << DCN_DO_RENAME : 0;
        caravan_load(&c, &scene);
        v.disk = caravan_disk(&c);
        CHECK_FAILS(caravan_pour(&c, v.disk, &(caravan_how){.progress = come_by, .progress_ctx = &v}, &err),
                    DECANT_EXISTS, &err);
        CHECK_FILE(v.disk, "s/a.moving", again);
        remove_from(v.disk, "s", "a.moving");
        CHECK(caravan_is_old(&c, v.disk));
        simdisk_free(&v.disk);
        caravan_close(&c);
    }
}

static int stop_in_the_end(void *ctx, uint64_t done, uint64_t total)
{
    (void)ctx;
    return done == total;
}

/* It is undone but for a part that stays: a save that finds its journal will not undo it, so this one must say so. */
TEST(consume__says_that_it_is_interrupted_when_a_part_cannot_be_removed)
{
    simdisk *disk;
    caravan c;
    gates g;
    dcn_stage stage;
    decant_error err;

    caravan_load(&c, &stopped_even);
    disk = caravan_disk(&c);
    gates_up(&g, &disk->io);
    gates_fail(
        &g,
        (gates_fault){.one_verb = true, .verb = DCN_DO_REMOVE, .name = ".jpart", .status = DECANT_IO, .forever = true});
    CHECK_FAILS(caravan_pour(&c, disk, &(caravan_how){.progress = stop_in_the_end}, &err), DECANT_INTERRUPTED, &err);
    CHECK_HAS(err.hint, "decant recover");
    gates_down(&g);
    CHECK(caravan_check_recovers(&c, disk, 0, "left", &stage));
    simdisk_free(&disk);
    caravan_close(&c);
}

/* What cannot be freed costs room, and no more. */
TEST(consume__goes_on_when_something_cannot_be_freed)
{
    for (size_t i = 0; i < caravan_scene_count; i++) {
        bool fired = true;

        for (size_t n = 0; fired; n++) {
            simdisk *disk;
            caravan c;
            gates g;
            decant_error err;

            caravan_load(&c, &caravan_scenes[i]);
            disk = caravan_disk(&c);
            gates_up(&g, &disk->io);
            gates_fail(&g, (gates_fault){.nth = n, .one_verb = true, .verb = DCN_DO_PUNCH, .status = DECANT_IO});
            CHECK_OK(caravan_pour(&c, disk, &(caravan_how){0}, &err), &err);
            CHECK(caravan_is_new(&c, disk));
            fired = g.fired;
            gates_down(&g);
            simdisk_free(&disk);
            caravan_close(&c);
        }
    }
}
