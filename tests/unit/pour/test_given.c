#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "pour/given.h"
#include "support/gates.h"
#include "support/simdisk.h"

/* What may be freed of a file that is drained, against a byte at a time; and its names. */
enum { SIZE = 700, UNIT = 64 };

typedef struct plan {
    dcn_owned owned;
    dcn_giving giving;
    uint8_t data[SIZE];
    bool covered[SIZE];
    size_t size;
} plan;

static void invent(plan *p, uint64_t *seed)
{
    uint64_t at = 0;
    decant_error err;

    *p = (plan){.giving = {.count = 1, .batch = 100, .unit = UNIT}, .size = 1 + (size_t)(test_random(seed) % SIZE)};
    test_stream(test_random(seed), p->data, p->size);
    for (size_t i = 0; i < p->size; i++)
        p->data[i] |= 1;
    while (at < p->size) {
        uint64_t len = 1 + test_random(seed) % (test_random(seed) % 2 ? 200 : 10);

        len = len < p->size - at ? len : p->size - at;
        switch (test_random(seed) % 4) {
        case 0: /* padding */
            memset(p->data + at, 0, (size_t)len);
            break;
        case 1: /* in no output */
            break;
        default:
            CHECK_OK(dcn_runs_add(&p->giving.runs, &(dcn_run){.from = at, .to = 2 * at, .len = len}, &err), &err);
            memset(p->covered + at, true, (size_t)len);
        }
        at += len;
    }
    CHECK_OK(dcn_runs_finish(&p->giving.runs, 1, &err), &err);
    p->giving.items = &p->owned;
}

static void open_file(dcn_owned *owned, const uint8_t *data, size_t size, simdisk *disk, dcn_dir *dir, dcn_given *g)
{
    dcn_facts facts;
    decant_error err;

    simdisk_put(disk, "a", data, size);
    CHECK_OK(dcn_dir_stat(dir, "a", &facts, &err), &err);
    *owned = (dcn_owned){.name = "a", .file = dcn_identity_of(&facts), .mtime = facts.mtime, .drained = true};
    CHECK_OK(dcn_given_describe(g, owned, dir, dir->path, true, &err), &err);
    CHECK_OK(dcn_given_open(g, &err), &err);
}

static void open_given(plan *p, simdisk *disk, dcn_dir *dir, dcn_given *g)
{
    open_file(&p->owned, p->data, p->size, disk, dir, g);
}

/* Below a mark each byte that is in a run may have gone, and no other; and what is not freed is padding at most. */
static void check_freed(const plan *p, const simdisk *disk, uint64_t upto)
{
    size_t len = 0;
    const uint8_t *now = simdisk_get(disk, "a", &len);

    CHECK_EQ(len, p->size);
    for (size_t i = 0; i < p->size; i++)
        if (now[i] != p->data[i] && !(p->covered[i] && i < upto))
            test_fail(__FILE__, __LINE__, "byte %zu of %zu went, which is in no run below %zu", i, p->size,
                      (size_t)upto);
    for (size_t unit = 0; unit * UNIT < p->size; unit++) {
        size_t end = (unit + 1) * UNIT < p->size ? (unit + 1) * UNIT : p->size;
        bool may = true, there = false;

        for (size_t i = unit * UNIT; i < end; i++) {
            may = may && p->covered[i] && i < upto;
            there = there || now[i];
        }
        if (may && there)
            test_fail(__FILE__, __LINE__, "unit %zu could go, and is there", unit);
    }
}

TEST(given__frees_units_of_which_each_byte_is_elsewhere_or_zero)
{
    for (uint64_t seed = 1; seed < 400; seed++) {
        simdisk *disk = simdisk_new();
        dcn_dir *dir = NULL;
        uint64_t state = seed, upto = 0;
        dcn_given g;
        plan p;
        decant_error err;

        disk->block = UNIT;
        CHECK_OK(dcn_io_open_dir(&disk->io, ".", &dir, &err), &err);
        invent(&p, &state);
        open_given(&p, disk, dir, &g);
        while (upto < p.size) {
            uint64_t from = upto;

            upto += 1 + test_random(&state) % 150;
            upto = upto < p.size ? upto : p.size;
            CHECK_OK(dcn_given_free(&g, &p.giving, test_random(&state) % 3 ? from : 0, upto, &err), &err);
            check_freed(&p, disk, upto);
            CHECK_OK(dcn_given_check(&g, &err), &err); /* its own doing */
        }
        dcn_given_close(&g);
        dcn_runs_close(&p.giving.runs);
        dcn_dir_close(&dir);
        simdisk_free(&disk);
    }
}

/* Piece by piece frees nothing: neighbours go in one call. */
TEST(given__frees_a_hull_in_one_call)
{
    simdisk *disk = simdisk_new();
    dcn_dir *dir = NULL;
    dcn_given g;
    plan p = {.giving = {.count = 1, .batch = 100, .unit = UNIT}, .size = 640};
    gates calls;
    decant_error err;

    test_stream(1, p.data, p.size);
    memset(p.data + 100, 0, 30); /* padding between two runs */
    CHECK_OK(dcn_runs_add(&p.giving.runs, &(dcn_run){.from = 0, .len = 100}, &err), &err);
    CHECK_OK(dcn_runs_add(&p.giving.runs, &(dcn_run){.from = 130, .to = 1000, .len = 510}, &err), &err);
    CHECK_OK(dcn_runs_finish(&p.giving.runs, 1, &err), &err);
    p.giving.items = &p.owned;
    CHECK_OK(dcn_io_open_dir(&disk->io, ".", &dir, &err), &err);
    open_given(&p, disk, dir, &g);
    gates_up(&calls, &disk->io);
    CHECK_OK(dcn_given_free(&g, &p.giving, 0, 640, &err), &err);
    CHECK_HAS(gates_trace(&calls), "punch a 0+640");
    CHECK_EQ(calls.count[DCN_DO_PUNCH], 1);
    gates_down(&calls);
    dcn_given_close(&g);
    dcn_runs_close(&p.giving.runs);
    dcn_dir_close(&dir);
    simdisk_free(&disk);
}

/* Where extents go as a whole, what stays of them is written anew: as it was, however long. */
TEST(given__leaves_what_it_writes_anew_as_it_was)
{
    enum { BLOCK = 4096, ALL = 24 * BLOCK, FROM = 30000, UPTO = 50000 };
    static uint8_t data[ALL];
    simdisk *disk = simdisk_new();
    dcn_owned owned;
    dcn_giving giving = {.items = &owned, .count = 1, .batch = ALL, .unit = BLOCK};
    dcn_dir *dir = NULL;
    size_t len;
    const uint8_t *now;
    dcn_given g;
    decant_error err;

    disk->block = BLOCK;
    disk->extent = (uint64_t)8 * BLOCK;
    test_stream(1, data, ALL);
    CHECK_OK(dcn_runs_add(&giving.runs, &(dcn_run){.len = FROM}, &err), &err);
    CHECK_OK(dcn_runs_add(&giving.runs, &(dcn_run){.from = UPTO, .to = FROM, .len = ALL - UPTO}, &err), &err);
    CHECK_OK(dcn_runs_finish(&giving.runs, 1, &err), &err);
    CHECK_OK(dcn_io_open_dir(&disk->io, ".", &dir, &err), &err);
    open_file(&owned, data, ALL, disk, dir, &g);
    CHECK_OK(dcn_given_free(&g, &giving, 0, ALL, &err), &err);
    now = simdisk_get(disk, "a", &len);
    CHECK_BYTES(now + FROM, UPTO - FROM, data + FROM, UPTO - FROM);
    CHECK_EQ(now[0] | now[ALL - 1], 0);
    dcn_given_close(&g);
    dcn_runs_close(&giving.runs);
    dcn_dir_close(&dir);
    simdisk_free(&disk);
}

/* "a", of four bytes, open. */
typedef struct small {
    simdisk *disk;
    dcn_dir *dir;
    dcn_owned owned;
    dcn_given g;
} small;

static void make_small(small *s)
{
    decant_error err;

    s->disk = simdisk_new();
    CHECK_OK(dcn_io_open_dir(&s->disk->io, ".", &s->dir, &err), &err);
    open_file(&s->owned, (const uint8_t *)"aaaa", 4, s->disk, s->dir, &s->g);
}

static void close_small(small *s)
{
    dcn_given_close(&s->g);
    dcn_dir_close(&s->dir);
}

/* Who writes to it under its own name, which it has while it is whole, keeps it. */
TEST(given__is_removed_only_as_it_was)
{
    dcn_chunk chunk = {"b", 1};
    dcn_file *file = NULL;
    dcn_facts facts;
    small s;
    decant_error err;

    make_small(&s);
    CHECK_OK(dcn_dir_open(s.dir, "a", DCN_READ | DCN_WRITE, 0, &file, &err), &err);
    CHECK_OK(dcn_file_write(file, 0, &chunk, 1, &err), &err);
    CHECK_OK(dcn_given_remove(&s.g, &err), &err);
    CHECK_OK(dcn_dir_stat(s.dir, "a", &facts, &err), &err);
    CHECK_OK(dcn_file_set_mtime(file, s.owned.mtime, &err), &err);
    CHECK_OK(dcn_given_remove(&s.g, &err), &err);
    CHECK_FAILS(dcn_dir_stat(s.dir, "a", &facts, &err), DECANT_NOT_FOUND, &err);
    dcn_file_close(&file);
    close_small(&s);
    simdisk_free(&s.disk);
}

static uint64_t none(void *ctx, const simdisk_op *op)
{
    (void)ctx;
    (void)op;
    return 0;
}

/* Who finds it under its other name is told by it where the journal is. */
TEST(given__keeps_its_other_name_and_its_note_through_a_power_cut)
{
    small s;
    decant_error err;

    make_small(&s);
    CHECK_OK(dcn_given_set_aside(&s.g, "/journal", &err), &err);
    close_small(&s);
    simdisk_crash(s.disk, none, NULL);
    CHECK_FILE(s.disk, "a.moving", "aaaa");
    CHECK(simdisk_has_note(s.disk, "a.moving"));
    simdisk_free(&s.disk);
}

/* After a sync that failed nobody knows which name it has on the disk: it is not taken back, recovery looks. */
TEST(given__is_in_doubt_after_a_sync_that_failed)
{
    static const dcn_verb syncs[] = {DCN_DO_SYNC, DCN_DO_SYNC_DIR};

    for (size_t i = 0; i < 2; i++) {
        small s;
        gates calls;
        decant_error err;

        make_small(&s);
        gates_up(&calls, &s.disk->io);
        gates_fail(&calls, (gates_fault){.one_verb = true, .verb = syncs[i], .status = DECANT_IO});
        CHECK_FAILS(dcn_given_set_aside(&s.g, "/journal", &err), DECANT_IO, &err);
        CHECK(calls.fired && s.g.in_doubt);
        gates_down(&calls);
        close_small(&s);
        simdisk_free(&s.disk);
    }
}

TEST(given__is_not_put_back_over_what_has_its_name_since)
{
    small s;
    decant_error err;

    make_small(&s);
    CHECK_OK(dcn_given_set_aside(&s.g, NULL, &err), &err);
    simdisk_put_text(s.disk, "a", "another");
    CHECK_FAILS(dcn_given_restore(&s.g, &err), DECANT_CHANGED, &err);
    CHECK_FILE(s.disk, "a", "another");
    CHECK_FILE(s.disk, "a.moving", "aaaa");
    close_small(&s);
    simdisk_free(&s.disk);
}

/* Another file comes under its name between the look at it and the opening. */
static decant_status swap_before_opening(void *ctx, const dcn_call *call, decant_error *err)
{
    small *s = ctx;

    if (call->verb == DCN_DO_OPEN) {
        s->disk->io.gate = NULL;
        CHECK_OK(dcn_dir_remove(s->dir, "a", err), err);
        simdisk_put_text(s->disk, "a", "bbbb");
    }
    return DECANT_OK;
}

TEST(given__is_the_file_that_was_looked_at_though_its_name_is_another_ones_by_then)
{
    small s;
    const dcn_gate gate = {.before = swap_before_opening, .ctx = &s};
    decant_error err;

    make_small(&s);
    dcn_given_close_file(&s.g);
    s.disk->io.gate = &gate;
    CHECK_FAILS(dcn_given_open(&s.g, &err), DECANT_CHANGED, &err);
    CHECK(!s.disk->io.gate);
    close_small(&s);
    simdisk_free(&s.disk);
}
