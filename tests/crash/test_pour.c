#include <stdio.h>
#include <stdlib.h>

#include "support/cargo.h"
#include "support/gates.h"

/*
 * The machine stops after each call of the system, and of what was not synced every choice survives: the path holds the old
 * file or the new one, whole. What else is there are parts, which the next save removes.
 */
static const char old[] = "an old file";

typedef struct scene {
    bool replace;
    unsigned lacks;
    uint64_t seed; /* of the crew */
} scene;

static decant_status pour(simdisk *disk, const scene *s, gates *g, size_t crash_at, cargo *c)
{
    vessel v = {.kind = TO_FILE, .disk = disk, .replace = s->replace};
    dcn_job how = {.cut = {.slot = 512, .slots = 2, .direct = 300}};
    decant_status rc;
    decant_error err;

    cargo_load(c, disk, CARGO_MEMORY | CARGO_RANGE | CARGO_FILE, 7, 400, 2);
    gates_up(g, &disk->io);
    gates_crash(g, crash_at);
    rc = vessel_pour(&v, c, &how, s->seed, &err);
    gates_down(g);
    vessel_close(&v);
    return rc;
}

/* @return whether the new file is there */
static bool check_path(const simdisk *disk, const scene *s, const cargo *c)
{
    size_t len = 0;
    const uint8_t *got = simdisk_get(disk, "out.bin", &len);

    if (got && len == c->total && memcmp(got, c->wanted, len) == 0)
        return true;
    if (s->replace)
        CHECK_FILE(disk, "out.bin", old);
    else
        CHECK(!got);
    return false;
}

/* All names but those of input and output are parts. */
static void check_names(simdisk *disk)
{
    char *names = strdup(simdisk_names(disk, ".")), *rest = names, *name;

    while ((name = strtok_r(rest, " ", &rest)))
        if (strcmp(name, "in.bin") != 0 && strcmp(name, "out.bin") != 0) {
            CHECK(strncmp(name, "out.bin.decant-", 15) == 0);
            CHECK_TEXT(name + 15 + 16, ".part");
        }
    free(names);
}

static void check_next_save(simdisk *disk, const scene *s)
{
    scene again = {.replace = true, .lacks = s->lacks, .seed = s->seed};
    gates g;
    cargo c;

    disk->seed++;
    CHECK_EQ(pour(disk, &again, &g, SIZE_MAX, &c), DECANT_OK);
    CHECK(check_path(disk, &again, &c));
    CHECK_TEXT(simdisk_names(disk, "."), "in.bin out.bin");
    cargo_close(&c);
}

/* All cuts of the power at one moment. @return how many */
static size_t cut_power(const simdisk *disk, const scene *s, const cargo *c, decant_status rc)
{
    size_t count = simdisk_crash_count(disk);

    for (size_t n = 0; n < count; n++) {
        simdisk *after = simdisk_clone(disk);
        bool fresh;

        simdisk_crash_nth(after, n, n + 1);
        fresh = check_path(after, s, c);
        if (rc == DECANT_OK)
            CHECK(fresh); /* what was reported as saved is */
        check_names(after);
        if (n % 8 == 0)
            check_next_save(after, s);
        simdisk_free(&after);
    }
    return count;
}

static size_t crash_everywhere(const scene *s)
{
    size_t cuts = 0;
    bool crashed = true;

    for (size_t n = 0; crashed; n++) {
        simdisk *disk = simdisk_new();
        decant_status rc;
        gates g;
        cargo c;
        simdisk *killed;

        disk->lacks = s->lacks;
        if (s->replace)
            simdisk_put_text(disk, "out.bin", old);
        rc = pour(disk, s, &g, n, &c);
        crashed = g.fired;
        if (!crashed)
            CHECK_EQ(rc, DECANT_OK);
        dcn_source_unref(&c.source);
        decant_model_close(&c.model);

        /* killed: what was written stays, and so does the part */
        killed = simdisk_clone(disk);
        CHECK(check_path(killed, s, &c) || rc != DECANT_OK);
        check_names(killed);
        check_next_save(killed, s);
        simdisk_free(&killed);

        cuts += cut_power(disk, s, &c, rc);
        cargo_close(&c);
        simdisk_free(&disk);
    }
    return cuts;
}

static void crash_scenes(unsigned lacks)
{
    size_t cuts = 0;

    for (unsigned replace = 0; replace < 2; replace++)
        for (uint64_t seed = 0; seed < 3; seed++)
            cuts += crash_everywhere(&(scene){.replace = replace, .lacks = lacks, .seed = seed});
    printf("%zu cuts\n", cuts);
    CHECK(cuts > 1000);
}

TEST(crash__leaves_the_old_file_or_the_new_one_whole)
{
    crash_scenes(0);
}

TEST(crash__leaves_the_old_file_or_the_new_one_where_no_exclusive_rename_is_to_be_had)
{
    crash_scenes(1u << DCN_DO_RENAME);
}

TEST(crash__leaves_the_old_file_or_the_new_one_where_links_are_not_to_be_had_either)
{
    crash_scenes(1u << DCN_DO_RENAME | 1u << DCN_DO_LINK);
}

TEST(crash__leaves_the_old_file_or_the_new_one_where_nothing_can_be_reserved)
{
    crash_scenes(1u << DCN_DO_RESERVE);
}

TEST(crash__leaves_the_old_file_or_the_new_one_where_files_grow_only_as_they_are_written)
{
    crash_scenes(1u << DCN_DO_RESIZE | 1u << DCN_DO_RESERVE);
}
