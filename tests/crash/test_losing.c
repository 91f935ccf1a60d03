#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/stopped.h"

/*
 * What a disk does to the files of a save that gives its inputs up: it loses what it said it had, or its journal is damaged. What
 * can be had from elsewhere is; otherwise recovery stops, and nothing is touched.
 */

/* --- a disk that has lost what it said it had ------------------------------------------------------------------------ */

/* The n-th batch is marked, and the source still has it, and then the part has not. */
static simdisk *with_bad_batch(caravan *c, size_t n)
{
    simdisk *disk = stopped_before(c, false, DCN_DO_PUNCH, "a", n);
    uint8_t garbage[128];
    char part[STOPPED_NAME];

    CHECK(disk != NULL);
    stopped_find(disk, ".jpart", part);
    memset(garbage, 0x5A, sizeof garbage);
    stopped_overwrite(disk, part, 64 + 128 * n, garbage, sizeof garbage);
    return disk;
}

TEST(recover__takes_the_last_batch_from_the_source_where_the_part_has_lost_it)
{
    caravan c;

    caravan_load(&c, &stopped_even);
    for (size_t n = 0; n < 3; n++) {
        simdisk *bad = with_bad_batch(&c, n);
        dcn_stage stage;

        for (unsigned undo = 0; undo < 2; undo++) {
            bool stopped = true;

            for (size_t k = 0; stopped; k++) {
                simdisk *disk = simdisk_clone(bad);
                char when[64];
                gates g;
                decant_error err;

                gates_up(&g, &disk->io);
                gates_crash(&g, k);
                (void)!caravan_recover(disk, undo, &err);
                stopped = g.fired;
                gates_down(&g);
                snprintf(when, sizeof when, "batch %zu, %s stopped at %zu", n, undo ? "undo" : "resume", k);
                caravan_check_recovers(&c, disk, 0, when, &stage);
                simdisk_crash_nth(disk, 0, k);
                caravan_check_recovers(&c, disk, 0, when, &stage);
                simdisk_free(&disk);
            }
        }
        simdisk_free(&bad);
    }
    caravan_close(&c);
}

/* Zeros of a source that has holes are not written again: they are, where the part does not read as zero. */
/* Of a crash in which nothing survives that was not synced. */
static uint64_t nothing(void *ctx, const simdisk_op *op)
{
    (void)ctx;
    (void)op;
    return 0;
}

/* Of the marks of one sync all survive but the first: none of them is ever read. */
static uint64_t all_but_one_mark(void *ctx, const simdisk_op *op)
{
    size_t *marks = ctx;

    if (op->change != SIMDISK_WRITE || op->len != DCN_JOURNAL_CELL)
        return 0;
    return (*marks)++ ? UINT64_MAX : 0;
}

/* Resumes; the power goes at the n-th call of a verb on a name. */
static void resume_until(simdisk *disk, dcn_verb verb, const char *name, size_t n)
{
    gates g;
    decant_error err;

    gates_up(&g, &disk->io);
    gates_fail(&g, (gates_fault){.nth = n,
                                 .one_verb = true,
                                 .verb = verb,
                                 .name = name,
                                 .status = DECANT_IO,
                                 .os_code = EIO,
                                 .crash = true});
    (void)!caravan_recover(disk, false, &err);
    CHECK(g.fired);
    gates_down(&g);
}

/* Cells of the journal behind which the next record is put. */
static uint64_t used_cells(simdisk *disk)
{
    dcn_leftover l;
    dcn_dir *dir = NULL;
    uint64_t used;
    decant_error err;

    CHECK_OK(dcn_io_open_dir(&disk->io, ".", &dir, &err), &err);
    CHECK_OK(dcn_leftover_open(&l, dir, stopped_journal, false, &err), &err);
    used = l.journal.next;
    dcn_leftover_close(&l);
    dcn_dir_close(&dir);
    return used;
}

/* A mark that is lost takes no room in the stopped_journal, however often it is: there is as much for either way as there was. */
TEST(recover__may_lose_its_marks_any_number_of_times)
{
    enum { TIMES = 200, SYNCS = 1 /* of the journal before that of the marks: of what was found */ };
    static const caravan_scene scene = {
        .name = "together",
        .sources = {{.name = "s/a", .len = 128}, {.name = "s/b", .len = 64}, {.name = "s/c", .len = 192}},
        .outputs = {{.name = "p", .held = 16, .pieces = {{-1, 0, 64}, {0, 0, 128}, {1, 0, 64}, {2, 0, 192}}}},
        .batch = 256,
        .unit = 64};
    caravan c;
    decant_error err;

    caravan_load(&c, &scene);
    for (unsigned undo = 0; undo < 2; undo++) {
        simdisk *disk =
            stopped_before(&c, false, DCN_DO_SYNC, stopped_journal, 2); /* READY is there, and the marks are lost */
        uint64_t used;

        CHECK(disk != NULL);
        simdisk_crash(disk, nothing, NULL);
        used = used_cells(disk);
        for (unsigned i = 0; i < TIMES; i++) {
            bool was_torn = i && i % 2 == 0; /* what is there is zeroed first */
            size_t marks = 0;

            resume_until(disk, DCN_DO_SYNC, stopped_journal, SYNCS + was_torn);
            simdisk_crash(disk, i % 2 ? all_but_one_mark : nothing, &marks);
            CHECK_EQ(marks, i % 2 ? 3 : 0);
            CHECK_EQ(used_cells(disk), used);
        }
        CHECK_OK(caravan_recover(disk, undo, &err), &err);
        CHECK(undo ? caravan_is_old(&c, disk) : caravan_is_new(&c, disk));
        simdisk_free(&disk);
    }
    caravan_close(&c);
}

/* A disk that loses what it said it had, again and again, has each time the same batch drained again: the way back stays. */
TEST(recover__leaves_room_in_the_journal_for_the_way_back)
{
    enum { TIMES = 200 };
    simdisk *disk;
    size_t refused = 0;
    caravan c;

    caravan_load(&c, &stopped_even);
    disk = with_bad_batch(&c, 0);
    for (unsigned i = 0; i < TIMES; i++) {
        uint8_t garbage[128];
        char part[STOPPED_NAME];
        gates g;
        decant_error err;

        gates_up(&g, &disk->io);
        gates_fail(&g, (gates_fault){.one_verb = true,
                                     .verb = DCN_DO_PUNCH,
                                     .name = "a",
                                     .status = DECANT_IO,
                                     .os_code = EIO,
                                     .crash = true});
        if (caravan_recover(disk, false, &err) == DECANT_INTERRUPTED && !g.fired) {
            CHECK_HAS(err.message, "too often");
            refused++;
        }
        gates_down(&g);
        stopped_find(disk, ".jpart", part);
        memset(garbage, 0x5A, sizeof garbage);
        stopped_overwrite(disk, part, 64, garbage, sizeof garbage);
    }
    CHECK(refused > 0);
    for (unsigned i = 0; i < 2; i++) {
        simdisk *after = simdisk_clone(disk);
        decant_error err;

        if (i)
            simdisk_crash(after, nothing, NULL);
        CHECK_OK(caravan_recover(after, true, &err), &err);
        CHECK(caravan_is_old(&c, after));
        simdisk_free(&after);
    }
    simdisk_free(&disk);
    caravan_close(&c);
}

TEST(recover__writes_zeros_too_where_the_part_has_lost_them)
{
    caravan_scene holey = stopped_even;
    simdisk *disk;
    caravan c;
    dcn_stage stage;

    holey.sources[0].zero_at = 64;
    holey.sources[0].zeros = 64;
    holey.sources[0].sparse = true;
    caravan_load(&c, &holey);
    disk = with_bad_batch(&c, 0);
    CHECK(caravan_check_recovers(&c, disk, 0, "holes", &stage));
    simdisk_free(&disk);
    caravan_close(&c);
}

TEST(recover__touches_nothing_where_neither_has_the_last_batch)
{
    simdisk *disk;
    caravan c;
    uint8_t garbage[128] = {1};
    char part[STOPPED_NAME];

    caravan_load(&c, &stopped_even);
    disk = stopped_before(&c, false, DCN_DO_WRITE, stopped_journal,
                          4); /* two marks are made, and what they cover is freed */
    CHECK(disk != NULL);
    stopped_find(disk, ".jpart", part);
    stopped_overwrite(disk, part, 64 + 128, garbage, sizeof garbage);
    for (unsigned undo = 0; undo < 2; undo++) {
        simdisk *after = simdisk_clone(disk);
        decant_error err;

        CHECK_FAILS(caravan_recover(after, undo, &err), DECANT_CHANGED, &err);
        CHECK(err.hint[0]);
        CHECK_BYTES(simdisk_get(after, "s/a.moving", &(size_t){0}), 384, simdisk_get(disk, "s/a.moving", &(size_t){0}),
                    384);
        CHECK(stopped_has(after, part) && stopped_has(after, stopped_journal));
        simdisk_free(&after);
    }
    simdisk_free(&disk);
    caravan_close(&c);
}

/* --- journals -------------------------------------------------------------------------------------------------------- */

enum { CELL = 512 };

typedef enum damage { FLIP, ERASE, SWAP, DOUBLE, CUT, DAMAGES } damage;

/* @return false: such damage is none that can be told from what a crash leaves */
static bool damage_cell(uint8_t *cells, size_t *count, size_t used, size_t together, size_t i, damage how)
{
    uint8_t saved[CELL];

    switch (how) {
    case FLIP:
        cells[i * CELL + 40] ^= 1;
        return true;
    case ERASE:
        memset(cells + i * CELL, 0, CELL);
        return i + together < used;
    case SWAP:
        memcpy(saved, cells + i * CELL, CELL);
        memcpy(cells + i * CELL, cells + (i + 1) * CELL, CELL);
        memcpy(cells + (i + 1) * CELL, saved, CELL);
        return i + 1 < used;
    case DOUBLE:
        memcpy(cells + (i + 1) * CELL, cells + i * CELL, CELL);
        return true;
    default:
        *count = i + 1;
        return true;
    }
}

/* Nothing is lost: the inputs are whole, under their names, or the outputs are. */
static bool is_whole(const caravan *c, const simdisk *disk)
{
    size_t landed = 0;

    while (landed < c->output_count && caravan_has_landed(c, disk, landed))
        landed++;
    for (size_t i = 0; i < c->source_count && landed < c->output_count; i++) {
        size_t len = 0;
        const uint8_t *data = simdisk_get(disk, c->scene->sources[i].name, &len);

        if (!data || len != c->scene->sources[i].len || memcmp(data, c->sources[i], len) != 0)
            return false;
    }
    return true;
}

/* Recovery with a journal that says something else: right, or it stops, and with the right one all is there. */
static void recover_damaged(caravan *c, const simdisk *before, const uint8_t *right, size_t count, const uint8_t *cells,
                            size_t left, const char *when)
{
    for (unsigned undo = 0; undo < 2; undo++) {
        simdisk *disk = simdisk_clone(before);
        dcn_stage stage;
        decant_error err;

        simdisk_put(disk, stopped_journal, cells, left * CELL);
        if (caravan_recover(disk, undo, &err)) {
            CHECK(err.hint[0]);
            simdisk_put(disk, stopped_journal, right, count * CELL);
            caravan_check_recovers(c, disk, 0, when, &stage);
        } else if (!(undo ? is_whole(c, disk) : caravan_is_new(c, disk))) {
            test_fail(__FILE__, __LINE__, "%s, %s: destroyed: %s", when, undo ? "undo" : "resume",
                      simdisk_names(disk, "s"));
        }
        simdisk_free(&disk);
    }
}

static void damage_journal(caravan *c, simdisk *disk, const char *when)
{
    size_t len = 0, count, used;
    const uint8_t *now = simdisk_get(disk, stopped_journal, &len);
    uint8_t *right, *copy;

    if (!now || len < CELL)
        return;
    right = malloc(2 * len + CELL);
    CHECK(right != NULL);
    memcpy(right, now, len);
    copy = right + len;
    count = used = len / CELL;
    while (used && !right[(used - 1) * CELL])
        used--;
    for (size_t i = 0; i < used; i++)
        for (damage how = FLIP; how < DAMAGES; how++) {
            size_t left = count;
            char what[100];

            memcpy(copy, right, len);
            snprintf(what, sizeof what, "%s, damage %d of cell %zu of %zu", when, (int)how, i, used);
            if (damage_cell(copy, &left, used, c->source_count, i, how) && i + 1 < count)
                recover_damaged(c, disk, right, count, copy, left, what);
        }
    free(right);
}

TEST(recover__destroys_nothing_when_its_journal_is_damaged)
{
    stopped_everywhere(damage_journal, TEST_IS_SLOW ? 20 : 5);
}
