#include <stdio.h>
#include <stdlib.h>

#include "api/env.h"
#include "support/gates.h"
#include "support/models.h"
#include "support/simdisk.h"

/* Blocks that an output shares with its input: where they can be, where they cannot, and whatever fails. */

static const char old[] = "an old file, of which nothing must be lost";

enum { A = 20000, B = 300, C = 9000, BLOCK = 4096 };

typedef struct outcome {
    uint64_t bytes, shared;
    char route[8], reason[64];
} outcome;

/* "in.safetensors", of tensors that lie end to end. */
static simdisk *disk_with_files(void)
{
    simdisk *disk = simdisk_new();
    decant_model *model = NULL;
    size_t len;
    uint8_t *file = NULL;
    decant_error err;

    CHECK_OK(decant_model_create(&model, &err), &err);
    model_add_stream(model, "a", DECANT_U8, 1, (const uint64_t[]){A}, 1);
    model_add_stream(model, "b", DECANT_U8, 1, (const uint64_t[]){B}, 2);
    model_add_stream(model, "c", DECANT_U8, 1, (const uint64_t[]){C}, 3);
    CHECK_OK(model_render(&dcn_safetensors, model, NULL, &file, &len, &err), &err);
    simdisk_put(disk, "in.safetensors", file, len);
    simdisk_put_text(disk, "out.bpk", old);
    decant_model_close(&model);
    free(file);
    return disk;
}

static decant_status convert(simdisk *disk, decant_layout layout, bool plan_only, outcome *out, decant_error *err)
{
    dcn_env env = {.io = &disk->io, .cut = {.slot = 512, .slots = 2, .direct = 300, .share = BLOCK}};
    decant_save_options options = DECANT_SAVE_OPTIONS_INIT;
    dcn_target target = {.kind = DCN_TO_FILE, .path = "out.bpk"};
    decant_model *model = NULL;
    decant_report *report = NULL;
    const char *path, *route, *reason;
    decant_status rc;

    options.replace = 1;
    options.layout = layout;
    if ((rc = dcn_open(&env, "in.safetensors", NULL, &model, err)) == DECANT_OK)
        rc = dcn_save(&env, model, &target, &options, plan_only, &report, err);
    if (report) {
        CHECK(decant_report_source(report, 0, &path, &out->bytes, &route, &reason));
        out->shared = decant_report_shared(report, 0);
        snprintf(out->route, sizeof out->route, "%s", route);
        snprintf(out->reason, sizeof out->reason, "%s", reason);
    }
    decant_report_close(&report);
    decant_model_close(&model);
    return rc;
}

/* What out.bpk holds, and that it is whole. */
static size_t check_output(simdisk *disk, const uint8_t **bytes)
{
    dcn_env env = {.io = &disk->io, .cut = dcn_cut_default};
    decant_model *a = NULL, *b = NULL;
    decant_diff_totals totals;
    size_t len;
    decant_error err;

    CHECK_OK(dcn_open(&env, "in.safetensors", NULL, &a, &err), &err);
    CHECK_OK(dcn_open(&env, "out.bpk", NULL, &b, &err), &err);
    CHECK_OK(decant_diff(a, b, NULL, NULL, NULL, &totals, &err), &err);
    CHECK_EQ(totals.differences, 0);
    CHECK_EQ(totals.tensors, 3);
    decant_model_close(&a);
    decant_model_close(&b);
    *bytes = simdisk_get(disk, "out.bpk", &len);
    return len;
}

/* One call for what lies end to end; at most two blocks of it are written, and the header. */
TEST(share__takes_one_call_a_run_and_copies_its_ends)
{
    simdisk *disk = disk_with_files();
    outcome seen = {0}, planned = {0};
    const uint8_t *bytes;
    decant_error err;
    gates g;

    CHECK_OK(convert(disk, DECANT_LAYOUT_CONGRUENT, true, &planned, &err), &err);
    gates_up(&g, &disk->io);
    CHECK_OK(convert(disk, DECANT_LAYOUT_CONGRUENT, false, &seen, &err), &err);
    CHECK_EQ(g.count[DCN_DO_CLONE], 1);
    CHECK_EQ(g.count[DCN_DO_SYNC], 1);
    CHECK_EQ(g.bytes[DCN_DO_CLONE], seen.shared);
    CHECK_EQ(seen.bytes, A + B + C);
    CHECK(seen.shared >= seen.bytes - 2 * BLOCK);
    CHECK(g.bytes[DCN_DO_WRITE] + g.bytes[DCN_DO_COPY] <= (seen.bytes - seen.shared) + 2 * BLOCK);
    CHECK_TEXT(seen.route, "clone");
    CHECK_TEXT(seen.reason, "blocks at the ends are copied");
    CHECK(planned.shared == seen.shared && strcmp(planned.route, seen.route) == 0);
    gates_down(&g);
    check_output(disk, &bytes);
    simdisk_free(&disk);
}

/* The layout is that of the model and the options: where nothing can be shared the bytes are the same. */
TEST(share__is_left_where_it_cannot_be_and_says_why)
{
    static const struct {
        const char *reason;
        unsigned lacks;
        decant_layout layout;
        bool refuses; /* the system, though its kind does not tell */
    } cases[] = {
        {"the file system cannot share blocks", 1u << DCN_DO_CLONE, DECANT_LAYOUT_CONGRUENT, false},
        {"the system did not share its blocks", 0, DECANT_LAYOUT_CONGRUENT, true},
        {"no blocks of it line up with the output's", 0, DECANT_LAYOUT_CANONICAL, false},
    };
    simdisk *sharing = disk_with_files();
    const uint8_t *shared, *bytes;
    outcome seen = {0};
    decant_error err;
    size_t len;

    CHECK_OK(convert(sharing, DECANT_LAYOUT_CONGRUENT, false, &seen, &err), &err);
    len = check_output(sharing, &shared);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        simdisk *disk = disk_with_files();
        gates g;

        disk->lacks = cases[i].lacks;
        gates_up(&g, &disk->io);
        if (cases[i].refuses)
            gates_fail(&g, (gates_fault){.one_verb = true, .verb = DCN_DO_CLONE, .status = DECANT_UNSUPPORTED});
        CHECK_OK(convert(disk, cases[i].layout, false, &seen, &err), &err);
        CHECK_EQ(g.count[DCN_DO_CLONE], cases[i].refuses);
        CHECK_EQ(seen.shared, 0);
        CHECK_TEXT(seen.route, "copy");
        CHECK_TEXT(seen.reason, cases[i].reason);
        gates_down(&g);
        if (cases[i].layout == DECANT_LAYOUT_CONGRUENT) {
            size_t other = check_output(disk, &bytes);

            CHECK_BYTES(bytes, other, shared, len);
        }
        simdisk_free(&disk);
    }
    simdisk_free(&sharing);
}

/* Shared blocks take no room: a disk too small for a copy has enough. */
TEST(share__needs_room_for_what_is_copied_alone)
{
    simdisk *disk = disk_with_files();
    outcome seen = {0};
    decant_error err;

    disk->capacity = simdisk_used(disk) + 5 * BLOCK;
    CHECK_OK(convert(disk, DECANT_LAYOUT_CONGRUENT, true, &seen, &err), &err);
    CHECK_FAILS(convert(disk, DECANT_LAYOUT_CANONICAL, true, &seen, &err), DECANT_NO_SPACE, &err);
    simdisk_free(&disk);
}

TEST(share__leaves_the_old_file_or_the_new_one_whatever_fails)
{
    static const decant_status statuses[] = {DECANT_IO, DECANT_NO_SPACE, DECANT_UNSUPPORTED};

    for (size_t s = 0; s < sizeof statuses / sizeof *statuses; s++) {
        bool fired = true;

        for (size_t n = 0; fired; n++) {
            simdisk *disk = disk_with_files();
            outcome seen = {0};
            const uint8_t *bytes;
            decant_status rc;
            decant_error err;
            gates g;

            gates_up(&g, &disk->io);
            gates_fail(&g, (gates_fault){.nth = n, .status = statuses[s], .os_code = 5});
            rc = convert(disk, DECANT_LAYOUT_CONGRUENT, false, &seen, &err);
            fired = g.fired;
            gates_down(&g);
            if (rc == DECANT_OK || rc == DECANT_NOT_DURABLE)
                check_output(disk, &bytes);
            else
                CHECK_FILE(disk, "out.bpk", old);
            CHECK_TEXT(simdisk_names(disk, "."), "in.safetensors out.bpk");
            simdisk_free(&disk);
        }
    }
}

TEST(share__leaves_the_old_file_or_the_new_one_wherever_the_power_is_cut)
{
    size_t cuts = 0;
    bool crashed = true;

    for (size_t n = 0; crashed; n++) {
        simdisk *disk = disk_with_files();
        outcome seen = {0};
        decant_status rc;
        decant_error err;
        gates g;

        gates_up(&g, &disk->io);
        gates_crash(&g, n);
        rc = convert(disk, DECANT_LAYOUT_CONGRUENT, false, &seen, &err);
        crashed = g.fired;
        gates_down(&g);
        for (size_t i = 0; i < simdisk_crash_count(disk); i++, cuts++) {
            simdisk *after = simdisk_clone(disk);
            const uint8_t *bytes;
            size_t len;

            simdisk_crash_nth(after, i, i + 1);
            bytes = simdisk_get(after, "out.bpk", &len);
            CHECK(bytes != NULL);
            if (rc == DECANT_OK || len != sizeof old - 1)
                check_output(after, &bytes);
            else
                CHECK_FILE(after, "out.bpk", old);
            simdisk_free(&after);
        }
        simdisk_free(&disk);
    }
    CHECK(cuts > 100);
}
