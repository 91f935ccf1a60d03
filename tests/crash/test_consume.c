#include <stdio.h>
#include <stdlib.h>

#include "support/caravan.h"
#include "support/gates.h"

/*
 * The machine stops after each call of a save that gives its inputs up, or the process is killed there; of what was not synced
 * every choice survives. Recovery finishes it, and undoes it: all is new, or all is as it was, down to the times of the inputs.
 * So it is if recovery itself is stopped at any call.
 */

/* Every kind of crew in turn: inline, with seeds, and with threads, whose order is another one each time. */
static caravan_how crew_of_kind(size_t n)
{
    n %= 4;
    return (caravan_how){.seed = n < 3 ? n : 0, .threads = n < 3 ? 0 : 2};
}

TEST(consume__moves_the_bytes_and_leaves_nothing)
{
    for (size_t i = 0; i < 4 * caravan_scene_count; i++) {
        caravan_how how = crew_of_kind(i % 4);
        caravan c;
        simdisk *disk;
        decant_error err;

        caravan_load(&c, &caravan_scenes[i / 4]);
        disk = caravan_disk(&c);
        CHECK_OK(caravan_pour(&c, disk, &how, &err), &err);
        if (!caravan_is_new(&c, disk))
            test_fail(__FILE__, __LINE__, "%s: not new: %s | %s", c.scene->name, simdisk_names(disk, "."),
                      simdisk_names(disk, "s"));
        simdisk_free(&disk);
        caravan_close(&c);
    }
}

static void check_recovers(const caravan *c, const simdisk *before, bool undo, const char *when)
{
    simdisk *disk = simdisk_clone(before);
    dcn_stage stage = DCN_STAGE_NOTHING;
    bool journal = caravan_journal(disk, &stage);
    decant_error err;
    decant_status rc;

    caravan_check(c, disk, when);
    if (!journal) {
        simdisk_free(&disk);
        return;
    }
    rc = caravan_recover(disk, undo, &err);
    caravan_check(c, disk, when);
    if (undo && stage == DCN_STAGE_COMMITTED) {
        CHECK_EQ(rc, DECANT_BAD_CALL);
    } else if (!undo && (stage < DCN_STAGE_READY || stage == DCN_STAGE_ABORTED)) {
        CHECK_EQ(rc, DECANT_BAD_CALL);
    } else {
        if (rc)
            test_fail(__FILE__, __LINE__, "%s, %s, %s of stage %d: %s", c->scene->name, when, undo ? "undo" : "resume",
                      (int)stage, decant_error_text(&err));
        if (!(undo ? caravan_is_old(c, disk) : caravan_is_new(c, disk)))
            test_fail(__FILE__, __LINE__, "%s, %s, %s of stage %d: wrong end: %s | %s", c->scene->name, when,
                      undo ? "undo" : "resume", (int)stage, simdisk_names(disk, "."), simdisk_names(disk, "s"));
    }
    simdisk_free(&disk);
}

TEST(consume__is_recovered_from_a_kill_or_a_power_cut_at_every_call)
{
    for (size_t i = 0; i < caravan_scene_count; i++) {
        caravan c;
        bool stopped = true;
        size_t states = 0;

        caravan_load(&c, &caravan_scenes[i]);
        for (size_t n = 0; stopped; n++) {
            simdisk *disk = caravan_disk(&c);
            caravan_how how = crew_of_kind(n);
            gates g;
            size_t cuts;
            char when[64];
            decant_error err;

            gates_up(&g, &disk->io);
            gates_crash(&g, n);
            (void)!caravan_pour(&c, disk, &how, &err);
            stopped = g.fired;
            gates_down(&g);
            snprintf(when, sizeof when, "kill at %zu", n);
            check_recovers(&c, disk, false, when);
            check_recovers(&c, disk, true, when);
            cuts = simdisk_crash_count(disk);
            for (size_t k = 0; k < cuts; k++) {
                simdisk *after = simdisk_clone(disk);

                simdisk_crash_nth(after, k, n + k);
                snprintf(when, sizeof when, "cut %zu at %zu", k, n);
                check_recovers(&c, after, false, when);
                check_recovers(&c, after, true, when);
                simdisk_free(&after);
                states++;
            }
            simdisk_free(&disk);
        }
        fprintf(stderr, "%s: %zu states\n", c.scene->name, states);
        caravan_close(&c);
    }
}
