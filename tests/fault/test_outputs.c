#include <stdio.h>

#include "support/alloc.h"
#include "support/convoy.h"
#include "support/gates.h"
#include "support/salvage.h"

/* Several files in one save, when any call or allocation fails: all of them or none, and nothing is left that nobody knows. */
enum { FILES = 3 };

static const char old[] = "an old file of that name";

static simdisk *disk_for(bool replace)
{
    simdisk *disk = simdisk_new();

    for (size_t i = 0; replace && i < FILES; i++)
        simdisk_put_text(disk, convoy_name(i), old);
    return disk;
}

static decant_status save(simdisk *disk, convoy *c, bool replace, uint64_t seed, decant_error *err)
{
    return convoy_pour(c, &(convoy_voyage){.disk = disk, .replace = replace, .journal = true, .seed = seed}, err);
}

/* All are new or none is, and nothing else is there. */
static bool check_end(simdisk *disk, const convoy *c, bool replace)
{
    size_t fresh = 0;

    for (size_t i = 0; i < FILES; i++)
        fresh += convoy_landed(c, disk, i);
    CHECK(fresh == 0 || fresh == FILES);
    CHECK_TEXT(simdisk_names(disk, "."), fresh || replace ? "a.bin b.bin c.bin" : "");
    for (size_t i = 0; replace && !fresh && i < FILES; i++)
        CHECK_FILE(disk, convoy_name(i), old);
    return fresh;
}

/* What a save said is so, and what it left is recovered. */
static void check_outcome(simdisk *disk, const convoy *c, bool replace, decant_status rc)
{
    bool all;
    decant_error err;

    if (rc == DECANT_INTERRUPTED || rc == DECANT_PUBLISH_PENDING) {
        CHECK(salvage_journal(disk) != NULL);
        CHECK_OK(salvage(disk, &err), &err);
    }
    all = check_end(disk, c, replace);
    if (rc == DECANT_OK || rc == DECANT_PUBLISH_PENDING)
        CHECK(all);
    else if (rc != DECANT_INTERRUPTED)
        CHECK(!all);
}

TEST(save_of_several__survives_the_failure_of_any_allocation)
{
    for (unsigned replace = 0; replace < 2; replace++) {
        bool fired = true;

        for (size_t n = 0; fired; n++) {
            simdisk *disk = disk_for(replace);
            convoy c;
            decant_status rc;
            decant_error err;

            convoy_load(&c, FILES, 3);
            test_alloc_fail(n);
            rc = save(disk, &c, replace, 0, &err);
            fired = test_alloc_fired();
            test_alloc_disarm();
            CHECK(rc == DECANT_OK || (fired && rc == DECANT_NOMEM));
            check_outcome(disk, &c, replace, rc);
            convoy_close(&c);
            simdisk_free(&disk);
        }
    }
}

static const unsigned lacks[] = {
    0,
    1u << DCN_DO_RESERVE | 1u << DCN_DO_LOCK,
    1u << DCN_DO_RENAME,
    1u << DCN_DO_RENAME | 1u << DCN_DO_LINK,
};

TEST(save_of_several__survives_the_failure_of_any_call_of_the_system)
{
    size_t pending = 0, interrupted = 0;

    for (unsigned way = 0; way < 4; way++)
        for (size_t lack = 0; lack < sizeof lacks / sizeof *lacks; lack++) {
            bool fired = true;

            for (size_t n = 0; fired; n++) {
                simdisk *disk = disk_for(way % 2);
                convoy c;
                gates g;
                decant_status rc;
                decant_error err;

                disk->lacks = lacks[lack];
                convoy_load(&c, FILES, way);
                gates_up(&g, &disk->io);
                gates_fail(&g, (gates_fault){.nth = n, .status = DECANT_IO, .os_code = 5});
                rc = save(disk, &c, way % 2, way / 2 * 5, &err);
                fired = g.fired;
                gates_down(&g);
                CHECK(fired == (rc != DECANT_OK));
                if (fired) {
                    CHECK_EQ(err.status, rc);
                    CHECK_EQ(err.os_code, 5);
                }
                if (rc == DECANT_PUBLISH_PENDING) {
                    pending++;
                    CHECK_HAS(err.hint, "--resume");
                }
                if (rc == DECANT_INTERRUPTED) {
                    interrupted++;
                    CHECK_HAS(err.hint, "--undo");
                }
                check_outcome(disk, &c, way % 2, rc);
                convoy_close(&c);
                simdisk_free(&disk);
            }
        }
    CHECK(pending > 0 && interrupted > 0);
}

static int stop_at_the_end(void *ctx, uint64_t done, uint64_t total)
{
    size_t *ends = ctx;

    return done == total && ++*ends == 2;
}

TEST(save_of_several__leaves_its_journal_where_it_cannot_undo)
{
    bool fired = true;
    size_t left = 0;

    for (size_t n = 0; fired; n++) {
        simdisk *disk = disk_for(true);
        size_t ends = 0;
        convoy c;
        gates g;
        decant_status rc;
        decant_error err;

        convoy_load(&c, FILES, 3);
        gates_up(&g, &disk->io);
        gates_fail(&g, (gates_fault){.nth = n, .status = DECANT_IO, .os_code = 5, .forever = true});
        rc = convoy_pour(
            &c,
            &(convoy_voyage){
                .disk = disk, .replace = true, .journal = true, .progress = stop_at_the_end, .progress_ctx = &ends},
            &err);
        fired = g.fired;
        gates_down(&g);
        CHECK(rc == DECANT_IO || rc == DECANT_CANCELLED);
        left += salvage_journal(disk) != NULL;
        CHECK(salvage_journal(disk) || strstr(simdisk_names(disk, "."), "part") == NULL);
        CHECK_OK(salvage(disk, &err), &err);
        CHECK(!check_end(disk, &c, true));
        convoy_close(&c);
        simdisk_free(&disk);
    }
    CHECK(left > 0);
}

static void judge(void *ctx, simdisk *disk, bool recovered)
{
    if (recovered)
        check_end(disk, ctx, true);
}

/* A sync that fails once and then seems to work: nothing that it was to keep is relied on. */
TEST(save_of_several__believes_no_sync_that_failed)
{
    bool lied = true;

    for (size_t n = 1; lied; n++) {
        simdisk *disk = disk_for(true);
        convoy c;
        salvage_law law = {judge, &c, 0};
        decant_status rc;
        decant_error err;

        disk->lie_at = n;
        convoy_load(&c, FILES, 3);
        rc = save(disk, &c, true, 0, &err);
        lied = disk->lied;
        CHECK(lied == (rc != DECANT_OK));
        disk->lie_at = 0;
        salvage_after_cuts(disk, n, &law);
        if (rc == DECANT_INTERRUPTED) /* the journal's: recovered in the same boot */
            salvage_interrupted(disk, &law);
        convoy_close(&c);
        simdisk_free(&disk);
    }
}

/* A save that was stopped after `n` calls, before or after it was complete; the disk as a kill leaves it. */
static simdisk *stopped_at(convoy *c, size_t n, bool *stopped)
{
    simdisk *disk = disk_for(true), *killed;
    gates g;
    decant_error err;

    convoy_load(c, FILES, 3);
    gates_up(&g, &disk->io);
    gates_crash(&g, n);
    (void)!save(disk, c, true, 0, &err);
    *stopped = g.fired;
    gates_down(&g);
    killed = simdisk_clone(disk);
    simdisk_free(&disk);
    return killed;
}

TEST(recovery__survives_the_failure_of_any_call_and_allocation)
{
    bool stopped = true;

    for (size_t n = 0; stopped; n += 3)
        for (unsigned memory = 0; memory < 2; memory++) {
            bool fired = true;

            for (size_t k = 0; fired; k++) {
                convoy c;
                simdisk *disk = stopped_at(&c, n, &stopped);
                dcn_stage stage = salvage_stage(disk);
                gates g;
                decant_status rc;
                decant_error err;

                gates_up(&g, &disk->io);
                if (memory)
                    test_alloc_fail(k);
                else
                    gates_fail(&g, (gates_fault){.nth = k, .status = DECANT_IO, .os_code = 5});
                rc = salvage(disk, &err);
                fired = memory ? test_alloc_fired() : g.fired;
                test_alloc_disarm();
                gates_down(&g);
                if (rc && !memory)
                    CHECK(rc == DECANT_IO || rc == DECANT_INTERRUPTED || rc == DECANT_PUBLISH_PENDING);
                CHECK(!rc || fired);
                CHECK_OK(salvage(disk, &err), &err);
                if (stopped)
                    CHECK_EQ(check_end(disk, &c, true), stage == DCN_STAGE_COMMITTED);
                convoy_close(&c);
                simdisk_free(&disk);
            }
        }
}
