#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/alloc.h"
#include "support/caravan.h"
#include "support/gates.h"

/*
 * A save that gives its inputs up, and its recovery, when any call or any allocation fails: all is as it was, or it can be gone
 * on with, and the status says which (I7). So it is if the power is cut afterwards.
 */

enum { EVERY = TEST_IS_SLOW ? 7 : 1, SCENES = TEST_IS_SLOW ? 8 : 12 };

typedef struct failure {
    decant_status status;
    int os_code;
    bool forever;
} failure;

static const failure failures[] = {{DECANT_IO, EIO, false},
                                   {DECANT_NO_SPACE, ENOSPC, false},
                                   {DECANT_NO_SPACE, EDQUOT, true},
                                   {DECANT_DENIED, EPERM, false}};
enum { FAILURES = sizeof failures / sizeof *failures };

static void load(caravan *c, caravan_scene *made, uint64_t scene)
{
    if (scene >= caravan_scene_count)
        caravan_invent(made, scene);
    made->tight = false;
    caravan_load(c, scene < caravan_scene_count ? &caravan_scenes[scene] : made);
}

/* Of a disk as it is, and of one of which a cut of the power has left something. */
static void check_recovers(const caravan *c, const simdisk *failed, bool is_new, const char *when)
{
    size_t cuts = simdisk_crash_count(failed);
    dcn_stage stage;

    for (size_t k = 0; k <= cuts; k += 1 + cuts / 3) {
        simdisk *disk = simdisk_clone(failed);

        if (k)
            simdisk_crash_nth(disk, k - 1, k);
        caravan_check_recovers(c, disk, is_new ? CARAVAN_SAID_NEW : 0, when, &stage);
        simdisk_free(&disk);
    }
}

static bool has_part(simdisk *disk)
{
    return strstr(simdisk_names(disk, "."), ".part") != NULL;
}

/* What the save says is so. */
static void check_outcome(const caravan *c, simdisk *disk, decant_status rc, decant_error *err, const char *when)
{
    dcn_stage stage;
    bool journal = caravan_journal(disk, &stage);

    if (rc == DECANT_OK ? !caravan_is_new(c, disk)
        : rc == DECANT_INTERRUPTED || rc == DECANT_PUBLISH_PENDING
            ? !journal || !err->hint[0]
            : rc != DECANT_NOT_DURABLE && rc != DECANT_NOT_REMOVED && !caravan_is_old(c, disk) && !has_part(disk) &&
                  !(journal && stage < DCN_STAGE_READY))
        test_fail(__FILE__, __LINE__, "%s: scene '%s': it says %s: %s | %s", when, c->scene->name,
                  decant_status_name(rc), simdisk_names(disk, "."), rc ? decant_error_text(err) : "");
    check_recovers(c, disk, rc == DECANT_OK, when);
}

TEST(consume__is_undone_or_can_be_gone_on_with_whichever_call_fails)
{
    for (uint64_t scene = 0; scene < caravan_scene_count + SCENES; scene++) {
        caravan_scene made;
        caravan c;

        load(&c, &made, scene);
        for (size_t kind = scene < caravan_scene_count ? 0 : scene % FAILURES; kind < FAILURES;
             kind += scene < caravan_scene_count ? 1 : FAILURES) {
            bool fired = true;

            for (size_t n = scene % EVERY; fired; n += EVERY) {
                simdisk *disk = caravan_disk(&c);
                const failure *f = &failures[kind];
                char when[64];
                gates g;
                decant_error err;
                decant_status rc;

                gates_up(&g, &disk->io);
                gates_fail(&g, (gates_fault){.nth = n,
                                             .status = f->status,
                                             .os_code = f->os_code,
                                             .one_verb = f->forever,
                                             .verb = DCN_DO_WRITE,
                                             .forever = f->forever});
                rc = caravan_pour(&c, disk, &(caravan_how){.seed = n % 3}, &err);
                fired = g.fired;
                gates_down(&g);
                snprintf(when, sizeof when, "scene %d, failure %zu of call %zu", (int)scene, kind, n);
                if (!fired && rc)
                    test_fail(__FILE__, __LINE__, "%s: %s", when, decant_error_text(&err));
                check_outcome(&c, disk, rc, &err, when);
                simdisk_free(&disk);
            }
        }
        caravan_close(&c);
    }
}

/* The first of them that fails, and what it was to keep is lost though the next one says that all is well. */
TEST(consume__loses_nothing_to_a_sync_that_lies)
{
    for (uint64_t scene = 0; scene < caravan_scene_count + SCENES; scene++) {
        caravan_scene made;
        caravan c;
        bool lied = true;

        load(&c, &made, scene);
        for (size_t n = 1; lied; n++) {
            simdisk *disk = caravan_disk(&c);
            char when[64];
            decant_error err;
            decant_status rc;

            disk->lie_at = n;
            rc = caravan_pour(&c, disk, &(caravan_how){.seed = n % 3}, &err);
            lied = disk->lied;
            disk->lie_at = 0;
            snprintf(when, sizeof when, "scene %d, sync %zu", (int)scene, n);
            if (lied && rc == DECANT_OK)
                test_fail(__FILE__, __LINE__, "%s: it says nothing", when);
            check_outcome(&c, disk, rc, &err, when);
            simdisk_free(&disk);
        }
        caravan_close(&c);
    }
}

/* --- recovery -------------------------------------------------------------------------------------------------------- */

/* A disk on which the save was killed at its n-th call. NULL: it has no so many. */
static simdisk *killed_at(caravan *c, size_t n)
{
    simdisk *disk = caravan_disk(c), *killed = NULL;
    gates g;
    decant_error err;

    gates_up(&g, &disk->io);
    gates_crash(&g, n);
    (void)!caravan_pour(c, disk, &(caravan_how){.seed = n % 3}, &err);
    if (g.fired)
        killed = simdisk_clone(disk);
    gates_down(&g);
    simdisk_free(&disk);
    return killed;
}

/* What recovery says is so, and it can be tried again. */
static void check_recovery(const caravan *c, simdisk *disk, bool undo, decant_status rc, const char *when)
{
    dcn_stage stage;

    if (rc == DECANT_OK ? !(undo ? caravan_is_old(c, disk) : caravan_is_new(c, disk)) : !caravan_journal(disk, &stage))
        test_fail(__FILE__, __LINE__, "%s: scene '%s': it says %s: %s", when, c->scene->name, decant_status_name(rc),
                  simdisk_names(disk, "."));
    check_recovers(c, disk, rc == DECANT_OK && !undo, when);
}

static void fail_recovery(const caravan *c, const simdisk *killed, bool undo, size_t stop, size_t lie)
{
    bool fired = true;

    for (size_t n = lie; fired; n += lie ? 1 : EVERY) {
        simdisk *disk = simdisk_clone(killed);
        char when[80];
        gates g;
        decant_error err;
        decant_status rc;

        gates_up(&g, &disk->io);
        if (!lie)
            gates_fail(&g, (gates_fault){.nth = n, .status = DECANT_IO, .os_code = EIO});
        disk->lie_at = lie ? n : 0;
        disk->lied = false;
        rc = caravan_recover(disk, undo, &err);
        fired = lie ? disk->lied : g.fired;
        disk->lie_at = 0;
        gates_down(&g);
        snprintf(when, sizeof when, "stop at %zu, %s, %s %zu", stop, undo ? "undo" : "resume", lie ? "sync" : "call",
                 n);
        check_recovery(c, disk, undo, rc, when);
        simdisk_free(&disk);
    }
}

TEST(recover__of_what_was_given_up_can_be_tried_again_whichever_call_fails)
{
    for (uint64_t scene = 0; scene < caravan_scene_count + SCENES / 4; scene++) {
        caravan_scene made;
        simdisk *killed;
        caravan c;

        load(&c, &made, scene);
        for (size_t n = 20 + scene % 7; (killed = killed_at(&c, n)); n += 17 * EVERY) {
            dcn_stage stage;

            if (caravan_journal(killed, &stage)) {
                for (size_t lie = 0; lie < 2; lie++) {
                    if (stage != DCN_STAGE_COMMITTED)
                        fail_recovery(&c, killed, true, n, lie);
                    if (stage == DCN_STAGE_READY || stage == DCN_STAGE_COMMITTED)
                        fail_recovery(&c, killed, false, n, lie);
                }
            }
            simdisk_free(&killed);
        }
        caravan_close(&c);
    }
}

/* --- memory ---------------------------------------------------------------------------------------------------------- */

static void fail_from_here(void *ctx)
{
    test_alloc_fail(*(size_t *)ctx);
}

TEST(consume__survives_the_failure_of_any_allocation)
{
    for (uint64_t scene = 0; scene < caravan_scene_count + SCENES / 4; scene++) {
        caravan_scene made;
        caravan c;
        bool fired = true;

        load(&c, &made, scene);
        for (size_t n = 0; fired; n++) {
            simdisk *disk = caravan_disk(&c);
            char when[64];
            decant_error err;
            decant_status rc;

            rc =
                caravan_pour(&c, disk, &(caravan_how){.seed = n % 3, .begins = fail_from_here, .begins_ctx = &n}, &err);
            fired = test_alloc_fired();
            test_alloc_disarm();
            snprintf(when, sizeof when, "scene %d, allocation %zu", (int)scene, n);
            check_outcome(&c, disk, rc, &err, when);
            simdisk_free(&disk);
        }
        caravan_close(&c);
    }
}

/* A save of which an allocation fails. */
typedef struct failing {
    size_t allocation, calls; /* that fails; until all is undone */
    bool fired, renamed;      /* it has failed; and something had been given up */
} failing;

/* It is stopped `left` calls before the end, on the way back; 0: it is not, which tells how many there are. */
static void stop_the_way_back(caravan *c, failing *f, size_t left)
{
    simdisk *disk = caravan_disk(c);
    char when[64];
    gates g;
    dcn_stage stage;
    decant_error err;

    gates_up(&g, &disk->io);
    if (left)
        gates_crash(&g, f->calls - left);
    (void)!caravan_pour(c, disk, &(caravan_how){.begins = fail_from_here, .begins_ctx = &f->allocation}, &err);
    if (!left)
        *f = (failing){f->allocation, g.total, test_alloc_fired(), strstr(gates_trace(&g), "rename a ") != NULL};
    test_alloc_disarm();
    gates_down(&g);
    snprintf(when, sizeof when, "allocation %zu, %zu calls before the end", f->allocation, left);
    for (size_t k = 0, cuts = simdisk_crash_count(disk); k < cuts; k += 1 + cuts / 12) {
        simdisk *after = simdisk_clone(disk);

        simdisk_crash_nth(after, k, f->allocation + k);
        caravan_check_recovers(c, after, 0, when, &stage);
        simdisk_free(&after);
    }
    simdisk_free(&disk);
}

/* Of the marks of one batch some are put when memory ends, and ABORT behind them. */
TEST(consume__can_be_stopped_on_the_way_back_from_a_failed_allocation)
{
    caravan_scene scene = caravan_scenes[1];
    caravan c;
    failing f = {.fired = true};

    scene.batch = 700;
    caravan_load(&c, &scene);
    for (; f.fired; f.allocation++) {
        stop_the_way_back(&c, &f, 0);
        for (size_t left = 1; f.fired && f.renamed && left < 50; left++)
            stop_the_way_back(&c, &f, left);
    }
    caravan_close(&c);
}

TEST(recover__of_what_was_given_up_survives_the_failure_of_any_allocation)
{
    for (uint64_t scene = 0; scene < caravan_scene_count; scene++) {
        simdisk *killed;
        caravan c;

        caravan_load(&c, &caravan_scenes[scene]);
        for (size_t n = 25; (killed = killed_at(&c, n)); n += 23) {
            dcn_stage stage;

            for (unsigned undo = 0; undo < 2 && caravan_journal(killed, &stage); undo++) {
                bool fired = stage == DCN_STAGE_READY;

                for (size_t k = 0; fired; k++) {
                    simdisk *disk = simdisk_clone(killed);
                    char when[64];
                    decant_error err;
                    decant_status rc;

                    test_alloc_fail(k);
                    rc = caravan_recover(disk, undo, &err);
                    fired = test_alloc_fired();
                    test_alloc_disarm();
                    snprintf(when, sizeof when, "stop at %zu, allocation %zu", n, k);
                    check_recovery(&c, disk, undo, rc, when);
                    simdisk_free(&disk);
                }
            }
            simdisk_free(&killed);
        }
        caravan_close(&c);
    }
}
