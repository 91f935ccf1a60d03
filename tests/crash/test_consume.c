#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/ckd.h"
#include "support/caravan.h"
#include "support/gates.h"

/*
 * A save that gives its inputs up is stopped after each of its calls: by a kill, or by a cut of the power, and of what was not
 * synced any choice survives. Recovery finishes it, and undoes it: all is new, or all is as it was, down to the times of the
 * inputs. So it is if recovery itself is stopped at any call, whichever way it goes, and that which follows it.
 *
 * What fails says how to come back to it:
 *
 *     EXPLORE=17,2,45:3,u7:k     scene 17, crew 2; the save is stopped at call 45, by cut 3; undoing it is killed at call 7
 *                                (crew 3 has threads, which take turns in another order each time)
 *     EXPLORE_SCENES=100,20      twenty scenes from the hundredth on, and many states of each
 */
enum { DEEPEST = 3 };

typedef struct stop {
    bool undo;  /* what is stopped; the first one is the save */
    size_t at;  /* call */
    size_t cut; /* how the power fails; KILLED: it does not */
} stop;

#define KILLED SIZE_MAX

/* How much is tried, of each stop but the first, of which all calls are. */
typedef struct zeal {
    size_t deepest;          /* stops one after the other */
    size_t cuts[DEEPEST];    /* of each stop, about */
    size_t strides[DEEPEST]; /* every how many calls, about */
} zeal;

typedef struct explorer {
    caravan c;
    uint64_t scene, crew, state;
    const zeal *zeal;
    stop stops[DEEPEST];
    size_t depth;
    size_t states, nested;
} explorer;

/* --- replaying ------------------------------------------------------------------------------------------------------- */

static const char *replay(const explorer *e)
{
    static char text[200];
    int len = snprintf(text, sizeof text, "EXPLORE=%" PRIu64 ",%" PRIu64, e->scene, e->crew);

    for (size_t i = 0; i < e->depth; i++) {
        len += snprintf(text + len, sizeof text - (size_t)len, ",%s%zu:",
                        i == 0             ? ""
                        : e->stops[i].undo ? "u"
                                           : "r",
                        e->stops[i].at);
        if (e->stops[i].cut == KILLED)
            len += snprintf(text + len, sizeof text - (size_t)len, "k");
        else
            len += snprintf(text + len, sizeof text - (size_t)len, "%zu", e->stops[i].cut);
    }
    return text;
}

/* What was freed in the inputs may be back, and take the room in which it would be undone. */
static bool is_tight_after_cut(const explorer *e)
{
    for (size_t i = 0; i < e->depth; i++)
        if (e->stops[i].cut != KILLED)
            return e->c.scene->tight;
    return false;
}

/* @return whether there is anything to recover; in which stage it is */
static bool check_state(explorer *e, simdisk *disk, bool said_new, dcn_stage *stage)
{
    e->states++;
    e->nested += e->depth > 1;
    return caravan_check_recovers(
        &e->c, disk, (said_new ? CARAVAN_SAID_NEW : 0) | (is_tight_after_cut(e) ? CARAVAN_MAY_LACK_ROOM : 0), replay(e),
        stage);
}

/* --- exploring ------------------------------------------------------------------------------------------------------- */

/* The save, or a recovery, up to its n-th call. @return whether it came so far; `done`: it says that all is new */
static bool run_to(explorer *e, simdisk *disk, bool undo, size_t n, bool *done)
{
    caravan_how how = caravan_crew(e->crew);
    gates g;
    bool fired;
    decant_error err;
    decant_status rc;

    gates_up(&g, &disk->io);
    gates_crash(&g, n);
    rc = e->depth ? caravan_recover(disk, undo, &err) : caravan_pour(&e->c, disk, &how, &err);
    fired = g.fired;
    gates_down(&g);
    if (!fired && rc && !(undo && is_tight_after_cut(e)))
        test_fail(__FILE__, __LINE__, "%s: %s fails by itself: %s", replay(e),
                  !e->depth ? "save"
                  : undo    ? "undo"
                            : "resume",
                  decant_error_text(&err));
    *done = rc == DECANT_OK && !undo;
    return fired;
}

static void explore(explorer *e, const simdisk *before, bool undo);

/* What is left of a stop, and what becomes of it. */
static void stop_here(explorer *e, const simdisk *stopped, stop s, bool done)
{
    simdisk *disk = simdisk_clone(stopped);
    dcn_stage stage;

    if (s.cut != KILLED)
        simdisk_crash_nth(disk, s.cut, s.at + s.cut);
    if (simdisk_used(disk) > disk->capacity) /* no disk is as full as that: what was freed and lost was not used anew */
        goto done;
    e->stops[e->depth++] = s;
    if (check_state(e, disk, done, &stage) && e->depth < e->zeal->deepest) {
        if (stage != DCN_STAGE_COMMITTED)
            explore(e, disk, true);
        if (stage == DCN_STAGE_READY || stage == DCN_STAGE_COMMITTED)
            explore(e, disk, false);
    }
    e->depth--;
done:
    simdisk_free(&disk);
}

/* A stride of about `mean`, at random. */
static size_t stride(explorer *e, size_t mean)
{
    return mean < 2 ? 1 : 1 + (size_t)(test_random(&e->state) % (2 * mean - 1));
}

static void explore(explorer *e, const simdisk *before, bool undo)
{
    size_t depth = e->depth, mean = e->zeal->strides[depth], n = mean < 2 ? 0 : stride(e, mean) - 1;
    bool fired = true;

    for (; fired; n += stride(e, mean)) {
        simdisk *disk = simdisk_clone(before);
        bool done;
        size_t cuts;

        fired = run_to(e, disk, undo, n, &done);
        cuts = simdisk_crash_count(disk);
        stop_here(e, disk, (stop){undo, n, KILLED}, done);
        for (size_t k = cuts > e->zeal->cuts[depth] ? stride(e, cuts / e->zeal->cuts[depth]) - 1 : 0; k < cuts;
             k += stride(e, cuts / e->zeal->cuts[depth]))
            stop_here(e, disk, (stop){undo, n, k}, done);
        simdisk_free(&disk);
    }
}

static void load_scene(explorer *e, caravan_scene *made)
{
    if (e->scene >= caravan_scene_count)
        caravan_invent(made, e->scene);
    caravan_load(&e->c, e->scene < caravan_scene_count ? &caravan_scenes[e->scene] : made);
}

static void explore_scene(explorer *e, uint64_t scene, uint64_t crew, const zeal *how)
{
    caravan_scene made;
    simdisk *disk;

    e->scene = scene;
    e->crew = crew;
    e->state = scene * 1000 + crew;
    e->zeal = how;
    load_scene(e, &made);
    disk = caravan_disk(&e->c);
    explore(e, disk, false);
    simdisk_free(&disk);
    caravan_close(&e->c);
}

/* --- the tests ------------------------------------------------------------------------------------------------------- */

enum { SHARE = TEST_IS_SLOW ? 10 : 1 };

/* Runs the one state that EXPLORE names. */
static void run_again(const char *text)
{
    static const zeal none = {.deepest = 0};
    explorer e = {.zeal = &none};
    caravan_scene made;
    simdisk *disk, *stopped;
    char *end;
    dcn_stage stage;
    bool done = false;

    e.scene = strtoull(text, &end, 10);
    e.crew = strtoull(end + 1, &end, 10);
    load_scene(&e, &made);
    disk = caravan_disk(&e.c);
    while (*end == ',') {
        stop s = {.undo = end[1] == 'u', .cut = KILLED};

        s.at = strtoull(end + 1 + (end[1] == 'u' || end[1] == 'r'), &end, 10);
        run_to(&e, disk, s.undo, s.at, &done);
        stopped = simdisk_clone(disk);
        simdisk_free(&disk);
        disk = stopped;
        if (end[1] == 'k') {
            end += 2;
        } else {
            s.cut = strtoull(end + 1, &end, 10);
            simdisk_crash_nth(disk, s.cut, s.at + s.cut);
        }
        e.stops[e.depth++] = s;
        fprintf(stderr, "%s\n  . %s\n", replay(&e), simdisk_names(disk, "."));
        fprintf(stderr, "  s %s\n", simdisk_names(disk, "s"));
    }
    if (check_state(&e, disk, done, &stage))
        fprintf(stderr, "stage %d, and both ways are right\n", (int)stage);
    simdisk_free(&disk);
    caravan_close(&e.c);
}

static bool is_asked_otherwise(void)
{
    return getenv("EXPLORE") || getenv("EXPLORE_SCENES");
}

static void tell(const explorer *e)
{
    fprintf(stderr, "%zu states, %zu of them of recoveries\n", e->states, e->nested);
}

TEST(consume__moves_the_bytes_and_leaves_nothing)
{
    for (uint64_t i = 0; i < caravan_scene_count + 300 && !is_asked_otherwise(); i++) {
        explorer e = {.scene = i};
        caravan_scene made;
        simdisk *disk;
        decant_error err;

        load_scene(&e, &made);
        for (e.crew = 0; e.crew < 4; e.crew++) {
            caravan_how how = caravan_crew(e.crew);

            disk = caravan_disk(&e.c);
            if (caravan_pour(&e.c, disk, &how, &err) || !caravan_is_new(&e.c, disk))
                test_fail(__FILE__, __LINE__, "%s: %s", replay(&e), decant_error_text(&err));
            simdisk_free(&disk);
        }
        caravan_close(&e.c);
    }
}

TEST(consume__is_recovered_from_a_kill_or_a_power_cut_at_every_call)
{
    static const zeal all = {.deepest = 1, .cuts = {SHARE == 1 ? 5000 : 4}, .strides = {SHARE}};
    explorer e = {0};

    if (getenv("EXPLORE"))
        run_again(getenv("EXPLORE"));
    for (uint64_t i = 0; i < caravan_scene_count && !is_asked_otherwise(); i++)
        explore_scene(&e, i, i % 4, &all);
    tell(&e);
}

TEST(consume__is_recovered_when_recovery_is_stopped_too)
{
    static const zeal nested = {.deepest = 2, .cuts = {1, 2}, .strides = {9 * SHARE, 3}};
    explorer e = {0};

    for (uint64_t i = 0; i < caravan_scene_count && !is_asked_otherwise(); i++)
        explore_scene(&e, i, i % 3, &nested);
    tell(&e);
}

TEST(consume__is_recovered_in_any_scene)
{
    static const zeal some = {.deepest = 3, .cuts = {2, 1, 1}, .strides = {9, 50, 50}};
    static const zeal more = {.deepest = 3, .cuts = {6, 2, 1}, .strides = {3, 60, 60}};
    const char *asked = getenv("EXPLORE_SCENES");
    uint64_t from = caravan_scene_count, count = 60 / SHARE;
    explorer e = {0};
    char *end;

    if (getenv("EXPLORE"))
        return;
    if (asked) {
        from = strtoull(asked, &end, 10);
        count = strtoull(end + 1, NULL, 10);
    }
    for (uint64_t i = from; i < from + count; i++)
        explore_scene(&e, i, i % 4, asked ? &more : &some);
    tell(&e);
}
