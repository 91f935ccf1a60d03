/* What is tried of a file system before inputs are given up on it. */
#include <stdio.h>
#include <stdlib.h>

#include "api/env.h"
#include "pour/probe.h"
#include "support/gates.h"
#include "support/models.h"
#include "support/simdisk.h"

static decant_error err;

static dcn_dir *folder_of(simdisk *disk)
{
    dcn_dir *dir = NULL;

    CHECK_OK(dcn_io_open_dir(&disk->io, ".", &dir, &err), &err);
    return dir;
}

/* What comes of a punch on a disk of which `assumed` is known. */
static decant_status try_punch(simdisk *disk, uint64_t assumed, bool *frees, uint64_t *unit)
{
    dcn_space space = {.block = 8, .unit = assumed, .limit = disk->limit};
    dcn_dir *dir = folder_of(disk);
    dcn_probe probe;
    decant_status rc;

    *unit = assumed;
    rc = dcn_probe_open(&probe, dir, &space, &err);
    if (rc == DECANT_OK)
        rc = dcn_probe_punch(&probe, frees, unit, &err);
    dcn_probe_close(&probe);
    dcn_dir_close(&dir);
    CHECK_EQ(disk->open_files, 0);
    CHECK_EQ(simdisk_file_count(disk), 0);
    CHECK_EQ(simdisk_used(disk), 0);
    return rc;
}

TEST(probe__finds_what_is_freed_at_once_be_it_less_or_more_than_assumed)
{
    static const struct {
        uint64_t real, assumed;
        bool frees;
    } cases[] = {{8, 64, true}, {32, 64, true}, {64, 64, true}, {512, 64, true}, {1024, 64, true}, {2048, 64, false}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        simdisk *disk = simdisk_new();
        uint64_t unit;
        bool frees = false;

        disk->block = 8;
        disk->unit = cases[i].real;
        CHECK_OK(try_punch(disk, cases[i].assumed, &frees, &unit), &err);
        CHECK_EQ(frees, cases[i].frees);
        if (frees)
            CHECK_EQ(unit, cases[i].real);
        simdisk_free(&disk);
    }
}

TEST(probe__leaves_a_promise_that_it_cannot_try)
{
    for (int i = 0; i < 3; i++) {
        simdisk *disk = simdisk_new();
        uint64_t unit;
        bool frees = false;

        disk->block = disk->unit = 8;
        if (i == 0)
            disk->lacks = 1u << DCN_DO_OPEN; /* files without a name */
        else if (i == 1)
            disk->capacity = 64;
        else
            disk->limit = 200;
        CHECK_OK(try_punch(disk, 64, &frees, &unit), &err);
        CHECK(frees);
        CHECK_EQ(unit, 64);
        simdisk_free(&disk);
    }
}

TEST(probe__reports_what_fails_and_leaves_nothing)
{
    simdisk *disk = simdisk_new();
    gates g;

    disk->block = disk->unit = 8;
    gates_up(&g, &disk->io);
    for (size_t n = 1;; n++) { /* the first opens the folder */
        uint64_t unit;
        bool frees;
        decant_status rc;

        gates_fail(&g, (gates_fault){.nth = n, .status = DECANT_IO});
        rc = try_punch(disk, 64, &frees, &unit);
        CHECK_EQ(rc, g.fired ? DECANT_IO : DECANT_OK);
        if (!g.fired)
            break;
    }
    gates_down(&g);
    simdisk_free(&disk);
}

/* --- what a save makes of it -------------------------------------------------------------------------------------------- */

static const dcn_cut cut = {.slot = 8192, .slots = 2, .direct = 100, .batch = 8192, .least_batch = 4096, .share = 4096};

enum { LEN = 40000 };

static simdisk *disk_with_model(void)
{
    uint64_t shape[] = {LEN / 4};
    simdisk *disk = simdisk_new();
    decant_model *model = NULL;
    uint8_t *bytes = NULL;
    size_t len = 0;

    disk->block = disk->unit = 4096;
    CHECK_OK(decant_model_create(&model, &err), &err);
    model_add_stream(model, "t", DECANT_F32, 1, shape, 1);
    CHECK_OK(model_render(&dcn_safetensors, model, NULL, &bytes, &len, &err), &err);
    simdisk_put(disk, "in.safetensors", bytes, len);
    free(bytes);
    decant_model_close(&model);
    return disk;
}

static decant_status consume(simdisk *disk, decant_layout layout, decant_consume how, bool plan_only, char *route,
                             char *reason)
{
    dcn_env env = {.io = &disk->io, .cut = cut};
    dcn_target target = {.kind = DCN_TO_FILE, .path = "out.bpk"};
    decant_open_options opening = {.size = sizeof opening, .owned = true};
    decant_save_options options = DECANT_SAVE_OPTIONS_INIT;
    decant_model *model = NULL;
    decant_report *report = NULL;
    const char *path, *seen_route, *seen_reason;
    uint64_t bytes;
    decant_status rc;

    options.consume = how;
    options.layout = layout;
    CHECK_OK(dcn_open(&env, "in.safetensors", &opening, &model, &err), &err);
    rc = dcn_save(&env, model, &target, &options, plan_only, &report, &err);
    if (rc == DECANT_OK) {
        CHECK(decant_report_source(report, 0, &path, &bytes, &seen_route, &seen_reason));
        snprintf(route, 64, "%s", seen_route);
        snprintf(reason, 128, "%s", seen_reason);
    }
    decant_report_close(&report);
    decant_model_close(&model);
    return rc;
}

TEST(probe__a_plan_tries_nothing_and_the_save_goes_by_what_it_found)
{
    static const struct {
        dcn_verb fails;
        decant_layout layout;
        const char *planned, *route, *reason;
    } cases[] = {{DCN_DO_PUNCH, DECANT_LAYOUT_CANONICAL, "drain", "copy",
                  "a try showed that the file system does not free parts of a file"},
                 {DCN_DO_CLONE, DECANT_LAYOUT_CONGRUENT, "clone", "drain", "the system did not share its blocks"}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        simdisk *disk = disk_with_model();
        char route[64], reason[128];
        gates g;

        gates_up(&g, &disk->io);
        gates_fail(
            &g, (gates_fault){.one_verb = true, .verb = cases[i].fails, .status = DECANT_UNSUPPORTED, .forever = true});
        CHECK_OK(consume(disk, cases[i].layout, DECANT_CONSUME, true, route, reason), &err);
        CHECK_TEXT(route, cases[i].planned);
        CHECK_EQ(g.count[DCN_DO_PUNCH] + g.count[DCN_DO_CLONE] + g.count[DCN_DO_WRITE], 0);
        if (cases[i].fails == DCN_DO_PUNCH) {
            CHECK_FAILS(consume(disk, cases[i].layout, DECANT_CONSUME_REQUIRE, false, route, reason),
                        DECANT_UNSUPPORTED, &err);
            CHECK_TEXT(simdisk_names(disk, "."), "in.safetensors");
        }
        CHECK_OK(consume(disk, cases[i].layout, DECANT_CONSUME, false, route, reason), &err);
        CHECK_TEXT(route, cases[i].route);
        CHECK_TEXT(reason, cases[i].reason);
        CHECK_TEXT(simdisk_names(disk, "."), "out.bpk");
        gates_down(&g);
        simdisk_free(&disk);
    }
}
