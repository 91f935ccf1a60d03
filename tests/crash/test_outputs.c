#include <stdio.h>
#include <stdlib.h>

#include "support/convoy.h"
#include "support/gates.h"
#include "support/salvage.h"

/*
 * The machine stops after each call of the system while several files are saved, and of what was not synced every choice
 * survives. Recovery finds the journal and finishes or undoes: all files are new, or none is. So it is if recovery itself is
 * stopped at any call, and the power cut again.
 */
enum { FILES = 3 };

static const char old[] = "an old file of that name";

typedef struct scene {
    bool replace;
    bool prune;
    unsigned lacks;
    uint64_t seed;
} scene;

static simdisk *disk_for(const scene *s)
{
    simdisk *disk = simdisk_new();

    disk->lacks = s->lacks;
    for (size_t i = 0; s->replace && i < FILES; i++)
        simdisk_put_text(disk, convoy_name(i), old);
    if (s->prune)
        simdisk_put_text(disk, CONVOY_OLD, old);
    return disk;
}

/* How many files are new; the others are as they were. */
static size_t count_new(const simdisk *disk, const scene *s, const convoy *c)
{
    size_t count = 0;

    for (size_t i = 0; i < FILES; i++)
        if (convoy_landed(c, disk, i))
            count++;
        else
            CHECK_FILE(disk, convoy_name(i), s->replace ? old : NULL);
    return count;
}

/* In the end: all or none, nothing left over. @return whether all are new */
static bool check_end(simdisk *disk, const scene *s, const convoy *c)
{
    size_t fresh = count_new(disk, s, c);

    CHECK(fresh == 0 || fresh == FILES);
    if (s->prune) {
        CHECK_FILE(disk, CONVOY_OLD, fresh ? NULL : old);
        CHECK_EQ(simdisk_file_count(disk), fresh ? FILES : s->replace ? FILES + 1 : 1);
    } else {
        CHECK_TEXT(simdisk_names(disk, "."), fresh || s->replace ? "a.bin b.bin c.bin" : "");
    }
    return fresh;
}

/* The index, which is last, is new only when all others are: also for who knows no journal. What is superseded stays until then. */
static void check_index(const simdisk *disk, const scene *s, const convoy *c)
{
    if (s->prune && !simdisk_get(disk, CONVOY_OLD, &(size_t){0}))
        CHECK(convoy_landed(c, disk, FILES - 1));
    if (!convoy_landed(c, disk, FILES - 1))
        return;
    for (size_t i = 0; i < FILES; i++)
        CHECK(convoy_landed(c, disk, i));
}

/* What recovery must make of a save. Where the process was killed, COMMIT may still be in the cache alone: one or the other. */
typedef enum verdict { NONE, ALL, EITHER } verdict;

typedef struct trial {
    const scene *scene;
    const convoy *convoy;
    verdict wanted;
} trial;

static void judge(void *ctx, simdisk *disk, bool recovered)
{
    const trial *t = ctx;
    bool all;

    check_index(disk, t->scene, t->convoy);
    if (!recovered)
        return;
    all = check_end(disk, t->scene, t->convoy);
    if (t->wanted != EITHER)
        CHECK_EQ(all, t->wanted == ALL);
}

static void cut_recovery(const simdisk *before, const scene *s, const convoy *c, verdict wanted)
{
    trial t = {s, c, wanted};

    salvage_interrupted(before, &(salvage_law){judge, &t, getenv("NIGHTLY") ? 1000 : 6});
}

static size_t cut_power(const simdisk *disk, const scene *s, const convoy *c, decant_status rc, bool deep)
{
    size_t count = simdisk_crash_count(disk), often = getenv("NIGHTLY") ? 1 : 7;

    for (size_t n = 0; n < count; n++) {
        simdisk *after = simdisk_clone(disk), *start;
        bool all;
        decant_error err;

        simdisk_crash_nth(after, n, n + 1);
        check_index(after, s, c);
        if (!salvage_journal(after)) /* without one there is nothing to decide */
            check_end(after, s, c);
        start = simdisk_clone(after);
        CHECK_OK(salvage(after, &err), &err);
        all = check_end(after, s, c);
        if (rc == DECANT_OK)
            CHECK(all);
        if (deep && n % often == 0 && salvage_journal(start))
            cut_recovery(start, s, c, all ? ALL : NONE);
        simdisk_free(&after);
        simdisk_free(&start);
    }
    return count;
}

static size_t crash_everywhere(const scene *s, bool deep)
{
    size_t cuts = 0, often = getenv("NIGHTLY") ? 1 : 5;
    bool crashed = true;

    for (size_t n = 0; crashed; n++) {
        simdisk *disk = disk_for(s), *killed;
        convoy c;
        gates g;
        decant_status rc;
        decant_error err;

        convoy_load(&c, FILES, s->seed);
        gates_up(&g, &disk->io);
        gates_crash(&g, n);
        rc = convoy_pour(
            &c,
            &(convoy_voyage){.disk = disk, .replace = s->replace, .prune = s->prune, .journal = true, .seed = s->seed},
            &err);
        crashed = g.fired;
        gates_down(&g);
        if (!crashed)
            CHECK_OK(rc, &err);

        killed = simdisk_clone(disk); /* everything written stays */
        check_index(killed, s, &c);
        if (deep && salvage_journal(killed) && (n % often == 0 || salvage_stage(killed) == DCN_STAGE_COMMITTED))
            cut_recovery(killed, s, &c, EITHER);
        CHECK_OK(salvage(killed, &err), &err);
        check_end(killed, s, &c);
        cuts += cut_power(killed, s, &c, rc, false); /* what a recovery says is done survives, too */
        simdisk_free(&killed);

        cuts += cut_power(disk, s, &c, rc, deep);
        convoy_close(&c);
        simdisk_free(&disk);
    }
    return cuts;
}

TEST(crash__of_a_save_of_several_files_leaves_all_or_none_of_them)
{
    size_t cuts = 0;

    for (unsigned replace = 0; replace < 2; replace++)
        for (uint64_t seed = 0; seed < 2; seed++)
            cuts += crash_everywhere(&(scene){.replace = replace, .seed = seed}, seed == 0);
    printf("%zu cuts\n", cuts);
    CHECK(cuts > 1000);
}

TEST(crash__leaves_what_a_save_supersedes_until_all_of_it_is_in_place)
{
    printf("%zu cuts\n", crash_everywhere(&(scene){.replace = true, .prune = true}, true));
}

TEST(crash__of_a_save_of_several_files_leaves_all_or_none_without_exclusive_renames_and_links)
{
    size_t cuts = crash_everywhere(&(scene){.lacks = 1u << DCN_DO_RENAME}, false);

    cuts += crash_everywhere(&(scene){.lacks = 1u << DCN_DO_RENAME | 1u << DCN_DO_LINK}, false);
    printf("%zu cuts\n", cuts);
}
