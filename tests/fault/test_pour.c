#include <stdio.h>

#include "base/ckd.h"
#include "support/alloc.h"
#include "support/cargo.h"
#include "support/gates.h"

/* A save, set up the same way again and again. */
typedef struct trial {
    simdisk *disk;
    vessel v;
    cargo c;
    size_t names, files; /* before it */
    dcn_job how;
    uint64_t seed;
} trial;

static const char old[] = "an old file, longer than what is held back";

static void set_up(trial *t, vessel_kind kind, bool replace, uint64_t seed, unsigned lacks)
{
    *t = (trial){.disk = simdisk_new(), .seed = seed};
    t->how.cut = (dcn_cut){.slot = 64, .slots = 3, .direct = 40};
    t->disk->lacks = lacks;
    t->v = (vessel){.kind = kind, .disk = t->disk, .replace = replace};
    if (replace)
        simdisk_put_text(t->disk, "out.bin", old);
    cargo_load(&t->c, t->disk, CARGO_ALL, 12, 90, seed);
    t->names = simdisk_file_count(t->disk);
    t->files = t->disk->open_files;
}

static bool file_is(const trial *t, const void *wanted, size_t wanted_len)
{
    size_t len = 0;
    const uint8_t *got = simdisk_get(t->disk, "out.bin", &len);

    return wanted ? got && len == wanted_len && memcmp(got, wanted, len) == 0 : !got;
}

/* The path holds what it should; `left` names are left over; all that was lent is given back. */
static void check(trial *t, decant_status rc, size_t left)
{
    bool there = t->v.replace;

    if (rc == DECANT_OK)
        vessel_check(&t->v, &t->c);
    if (t->v.kind == TO_FILE) {
        bool fresh = rc == DECANT_OK || rc == DECANT_NOT_DURABLE;

        CHECK(fresh ? file_is(t, t->c.wanted, t->c.total) : file_is(t, t->v.replace ? old : NULL, sizeof old - 1));
        CHECK_EQ(t->v.published, fresh);
        there |= fresh;
    } else if (t->v.kind == TO_FILE_IN_PLACE) {
        size_t len = 0;
        const uint8_t *got = simdisk_get(t->disk, "out.bin", &len);
        static const uint8_t zeros[CARGO_HELD];

        /* whole as it was or is to be, or its first bytes are none of any format's */
        if (rc && got)
            CHECK(file_is(t, old, sizeof old - 1) || memcmp(got, zeros, dcn_min(len, CARGO_HELD)) == 0);
        there |= rc == DECANT_OK;
    }
    if (t->v.kind == TO_FILE || t->v.kind == TO_FILE_IN_PLACE)
        CHECK_EQ(simdisk_file_count(t->disk), t->names + (there && !t->v.replace) + left);
    CHECK_EQ(t->disk->open_files, t->files);
    CHECK_EQ(t->disk->open_dirs, 0);
    CHECK_EQ(t->c.rec.lent, 0);
}

static void tear_down(trial *t)
{
    vessel_close(&t->v);
    cargo_close(&t->c);
    simdisk_free(&t->disk);
}

TEST(save__survives_the_failure_of_any_allocation)
{
    for (unsigned kind = 0; kind < VESSELS; kind++)
        for (unsigned way = 0; way < 4; way++) {
            bool fired = true;

            for (size_t n = 0; fired; n++) {
                trial t;
                decant_status rc;
                decant_error err;

                set_up(&t, (vessel_kind)kind, way % 2, way / 2 * 5, 0);
                test_alloc_fail(n);
                rc = vessel_pour(&t.v, &t.c, &t.how, t.seed, &err);
                fired = test_alloc_fired();
                test_alloc_disarm();
                /* what is needed for the path in an error that nobody sees is the one kind that may be missing */
                CHECK(rc == DECANT_OK || (fired && rc == DECANT_NOMEM && err.status == DECANT_NOMEM));
                check(&t, rc, 0);
                tear_down(&t);
            }
        }
}

/* Which calls of the system there are depends on what it lacks: each way to lock, grow, reserve and publish is a case. */
static const unsigned lacks[] = {
    0,
    1u << DCN_DO_RESERVE | 1u << DCN_DO_LOCK,
    1u << DCN_DO_RENAME,
    1u << DCN_DO_RENAME | 1u << DCN_DO_LINK,
    1u << DCN_DO_RESIZE,
};

TEST(save__survives_the_failure_of_any_call_of_the_system)
{
    static const decant_status statuses[] = {DECANT_IO, DECANT_NO_SPACE};

    for (unsigned kind = 0; kind < VESSELS; kind++)
        for (unsigned way = 0; way < 4; way++)
            for (size_t lack = 0; lack < sizeof lacks / sizeof *lacks; lack++)
                for (size_t s = 0; s < 2; s++) {
                    bool fired = true;

                    for (size_t n = 0; fired; n++) {
                        trial t;
                        gates g;
                        decant_status rc;
                        decant_error err;

                        set_up(&t, (vessel_kind)kind, way % 2, way / 2 * 5, lacks[lack]);
                        gates_up(&g, &t.disk->io);
                        gates_fail(&g, (gates_fault){.nth = n, .status = statuses[s], .os_code = 5});
                        rc = vessel_pour(&t.v, &t.c, &t.how, t.seed, &err);
                        fired = g.fired;
                        if (fired) {
                            /* none is swallowed, and each is told */
                            CHECK(rc == statuses[s] || rc == DECANT_NOT_DURABLE);
                            CHECK_EQ(err.status, rc);
                            CHECK_EQ(err.os_code, 5);
                            CHECK(err.path[0] || strstr(gates_trace(&g), "random"));
                        } else {
                            CHECK_EQ(rc, DECANT_OK);
                        }
                        gates_down(&g);
                        check(&t, rc, rc == DECANT_NOT_DURABLE && strstr(err.message, "scratch name is left"));
                        tear_down(&t);
                    }
                }
}

TEST(save__believes_no_sync_that_failed_though_a_second_one_would_succeed)
{
    trial t;
    gates g;
    decant_error err;

    set_up(&t, TO_FILE, true, 0, 0);
    t.disk->lie_at = 1;
    gates_up(&g, &t.disk->io);
    CHECK_FAILS(vessel_pour(&t.v, &t.c, &t.how, 0, &err), DECANT_IO, &err);
    CHECK(t.disk->lied);
    CHECK_EQ(g.count[DCN_DO_SYNC], 1);
    CHECK_EQ(g.count[DCN_DO_RENAME], 0);
    gates_down(&g);
    check(&t, DECANT_IO, 0);
    tear_down(&t);
}

TEST(save__survives_a_disk_that_fills_up_at_any_byte)
{
    for (int full = 0; full < 2; full++) {
        bool failed = true;

        for (uint64_t room = 0; failed; room += 64) {
            trial t;
            decant_status rc;
            decant_error err;

            set_up(&t, full ? TO_FILE_IN_PLACE : TO_FILE, true, 0, 1u << DCN_DO_RESERVE);
            t.disk->block = 64;
            t.disk->capacity = simdisk_used(t.disk) + room;
            rc = vessel_pour(&t.v, &t.c, &t.how, 0, &err);
            failed = rc != DECANT_OK;
            if (failed)
                CHECK_EQ(rc, DECANT_NO_SPACE);
            check(&t, rc, 0);
            tear_down(&t);
        }
    }
}

TEST(save__survives_a_provider_that_fails_at_any_call)
{
    for (unsigned kind = 0; kind < VESSELS; kind++)
        for (unsigned way = 0; way < 4; way++) {
            bool fired = true;

            for (size_t n = 1; fired; n++) {
                trial t;
                decant_status rc;
                decant_error err;

                set_up(&t, (vessel_kind)kind, way % 2, way / 2 * 5, 0);
                t.c.rec.fail_at = n;
                t.c.rec.silent = n % 2;
                rc = vessel_pour(&t.v, &t.c, &t.how, t.seed, &err);
                fired = t.c.rec.asked >= n;
                if (fired) {
                    CHECK_EQ(rc, n % 2 ? DECANT_CALLBACK : DECANT_IO);
                    CHECK_EQ(t.c.rec.asked, n); /* and nobody after it was asked */
                    CHECK_EQ(err.side, DECANT_SIDE_CALLER);
                    CHECK(err.tensor[0]);
                } else {
                    CHECK_EQ(rc, DECANT_OK);
                }
                check(&t, rc, 0);
                tear_down(&t);
            }
        }
}

TEST(save__survives_a_provider_that_gives_too_little_or_too_much)
{
    for (unsigned kind = 0; kind < VESSELS; kind++)
        for (unsigned who = 0; who < 12; who++)
            for (long by = -1; by <= 1; by += 2) {
                trial t;
                decant_status rc;
                decant_error err;

                set_up(&t, (vessel_kind)kind, true, 0, 0);
                t.c.rec.longer = by;
                t.c.rec.longer_of = who;
                rc = vessel_pour(&t.v, &t.c, &t.how, t.seed, &err);
                /* only those asked for the whole have a length to be wrong */
                CHECK_EQ(rc, who % 6 == 3 && t.c.lens[who] ? DECANT_MISMATCH : DECANT_OK);
                check(&t, rc, 0);
                tear_down(&t);
            }
}

TEST(save__survives_a_stream_that_fails_at_any_write)
{
    bool fired = true;

    for (size_t n = 1; fired; n++) {
        trial t;
        decant_status rc;
        decant_error err;

        set_up(&t, TO_STREAM, false, n % 2 * 5, 0);
        t.v.fail_at = n;
        rc = vessel_pour(&t.v, &t.c, &t.how, t.seed, &err);
        fired = t.v.calls >= n;
        CHECK_EQ(rc, fired ? DECANT_IO : DECANT_OK);
        CHECK_EQ(t.v.calls < n, !fired);
        check(&t, rc, 0);
        tear_down(&t);
    }
}
