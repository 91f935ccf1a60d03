#include <stdlib.h>

#include "api/env.h"
#include "support/alloc.h"
#include "support/gates.h"
#include "support/models.h"
#include "support/simdisk.h"

/* From a file to every kind of place: opened, planned, poured, reported; and any one call on the way fails. */

static const char old[] = "an old file, of which nothing must be lost";

static decant_status ignore(void *ctx, const void *data, size_t len, decant_error *err)
{
    (void)data;
    (void)err;
    *(size_t *)ctx += len;
    return DECANT_OK;
}

/* Converts "in.safetensors". */
static decant_status convert(simdisk *disk, dcn_target_kind kind, decant_report **report, decant_error *err)
{
    dcn_env env = {.io = &disk->io, .cut = {.slot = 128, .slots = 2, .direct = 64}};
    decant_save_options options = DECANT_SAVE_OPTIONS_INIT;
    uint8_t memory[8192];
    size_t streamed = 0;
    decant_bytes *made = NULL;
    decant_model *model = NULL;
    dcn_target target = {.kind = kind, .dst = memory, .len = sizeof memory};
    decant_status rc;

    target.stream = (decant_stream){sizeof target.stream, ignore, &streamed};
    target.bytes = &made;
    if (kind == DCN_TO_FILE || kind == DCN_TO_FILE_IN_PLACE)
        target.path = "out.safetensors";
    options.format = "safetensors";
    options.replace = 1;
    if ((rc = dcn_open(&env, "in.safetensors", NULL, &model, err)) == DECANT_OK)
        rc = dcn_save(&env, model, &target, &options, kind == DCN_TO_NOWHERE, report, err);
    CHECK_EQ(made != NULL, rc == DECANT_OK && kind == DCN_TO_NEW);
    decant_bytes_unref(&made);
    decant_model_close(&model);
    return rc;
}

/* The input is as decant writes it, so the output is to be the same. Longer than what is held back, so that some is copied. */
static simdisk *disk_with_files(void)
{
    simdisk *disk = simdisk_new();
    decant_model *model = NULL;
    size_t len;
    uint8_t *file = NULL;
    decant_error err;

    CHECK_OK(decant_model_create(&model, &err), &err);
    model_add_stream(model, "a", DECANT_U8, 1, (const uint64_t[]){6000}, 1);
    model_add_stream(model, "b", DECANT_F32, 2, (const uint64_t[]){2, 10}, 2);
    CHECK_OK(model_render(&dcn_safetensors, model, NULL, &file, &len, &err), &err);
    simdisk_put(disk, "in.safetensors", file, len);
    simdisk_put_text(disk, "out.safetensors", old);
    free(file);
    decant_model_close(&model);
    return disk;
}

static void check(simdisk *disk, dcn_target_kind kind, decant_status rc, decant_report **report)
{
    bool saved = rc == DECANT_OK || rc == DECANT_NOT_DURABLE;
    size_t in_len = 0, out_len = 0;
    const uint8_t *in = simdisk_get(disk, "in.safetensors", &in_len);
    const uint8_t *out = simdisk_get(disk, "out.safetensors", &out_len);

    CHECK_EQ(*report != NULL, saved);
    if (saved)
        CHECK_EQ(!!decant_report_published(*report), kind != DCN_TO_NOWHERE);
    if (saved && (kind == DCN_TO_FILE || kind == DCN_TO_FILE_IN_PLACE))
        CHECK_BYTES(out, out_len, in, in_len);
    else if (kind != DCN_TO_FILE_IN_PLACE)
        CHECK_FILE(disk, "out.safetensors", old);
    CHECK_EQ(simdisk_file_count(disk), 2);
    CHECK_EQ(disk->open_files + disk->open_dirs, 0);
    decant_report_close(report);
}

TEST(convert__survives_the_failure_of_any_allocation)
{
    for (unsigned kind = DCN_TO_FILE; kind <= DCN_TO_NOWHERE; kind++) {
        bool fired = true;

        for (size_t n = 0; fired; n++) {
            simdisk *disk = disk_with_files();
            decant_report *report = NULL;
            decant_status rc;
            decant_error err;

            test_alloc_fail(n);
            rc = convert(disk, (dcn_target_kind)kind, &report, &err);
            fired = test_alloc_fired();
            test_alloc_disarm();
            CHECK(rc == DECANT_OK || (fired && rc == DECANT_NOMEM && err.status == DECANT_NOMEM));
            check(disk, (dcn_target_kind)kind, rc, &report);
            simdisk_free(&disk);
        }
    }
}

TEST(convert__survives_the_failure_of_any_call_of_the_system)
{
    static const decant_status statuses[] = {DECANT_IO, DECANT_NO_SPACE, DECANT_DENIED};

    for (unsigned kind = DCN_TO_FILE; kind <= DCN_TO_NOWHERE; kind++)
        for (size_t s = 0; s < 3; s++) {
            bool fired = true;

            for (size_t n = 0; fired; n++) {
                simdisk *disk = disk_with_files();
                decant_report *report = NULL;
                gates g;
                decant_status rc;
                decant_error err;

                gates_up(&g, &disk->io);
                gates_fail(&g, (gates_fault){.nth = n, .status = statuses[s], .os_code = 13});
                rc = convert(disk, (dcn_target_kind)kind, &report, &err);
                fired = g.fired;
                if (rc) {
                    CHECK(fired && (rc == statuses[s] || rc == DECANT_NOT_DURABLE));
                    CHECK_EQ(err.os_code, 13);
                    CHECK(err.side == DECANT_SIDE_INPUT || err.side == DECANT_SIDE_OUTPUT);
                    CHECK(err.path[0]);
                } else {
                    /* attributes of the old file and parts of dead saves that one may not look at are left */
                    CHECK(!fired || statuses[s] == DECANT_DENIED);
                }
                gates_down(&g);
                check(disk, (dcn_target_kind)kind, rc, &report);
                simdisk_free(&disk);
            }
        }
}

/* From file to file the system copies, where it can: what is long enough, and not held back. Where it cannot, nothing changes. */
TEST(convert__lets_the_system_copy_what_it_can)
{
    uint64_t read[2], copied[2];

    for (int copies = 0; copies < 2; copies++) {
        simdisk *disk = disk_with_files();
        decant_report *report = NULL;
        decant_error err;
        gates g;

        disk->lacks = copies ? 0 : 1u << DCN_DO_COPY;
        gates_up(&g, &disk->io);
        CHECK_OK(convert(disk, DCN_TO_FILE, &report, &err), &err);
        CHECK(g.count[DCN_DO_COPY] > 0);
        read[copies] = g.bytes[DCN_DO_READ];
        copied[copies] = g.bytes[DCN_DO_COPY];
        gates_down(&g);
        check(disk, DCN_TO_FILE, DECANT_OK, &report);
        simdisk_free(&disk);
    }
    CHECK_EQ(copied[0], 0);
    CHECK(copied[1] > 1000);
    CHECK_EQ(read[1] + copied[1], read[0]);
}

/* A write that fails in front of a long range ends the save there, not when all of the range is copied. */
TEST(convert__copies_nothing_after_a_failed_write)
{
    dcn_env env = {.cut = {.slot = 128, .slots = 2, .direct = 1000}};
    decant_save_options options = DECANT_SAVE_OPTIONS_INIT;
    dcn_target target = {.kind = DCN_TO_FILE, .path = "out.bpk"};
    size_t failures = 0;
    bool fired = true;

    for (size_t n = 0; fired; n++) {
        simdisk *disk = simdisk_new();
        decant_model *model = NULL;
        uint8_t *file = NULL;
        const char *failed;
        size_t len;
        decant_error err;
        gates g;

        CHECK_OK(decant_model_create(&model, &err), &err);
        model_add_stream(model, "a", DECANT_U8, 1, (const uint64_t[]){6000}, 1);
        model_add_stream(model, "b", DECANT_U8, 1, (const uint64_t[]){80}, 2);
        model_add_stream(model, "c", DECANT_U8, 1, (const uint64_t[]){6000}, 3);
        CHECK_OK(model_render(&dcn_safetensors, model, NULL, &file, &len, &err), &err);
        simdisk_put(disk, "in.safetensors", file, len);
        free(file);
        decant_model_close(&model);

        env.io = &disk->io;
        CHECK_OK(dcn_open(&env, "in.safetensors", NULL, &model, &err), &err);
        gates_up(&g, &disk->io);
        gates_fail(&g, (gates_fault){.nth = n, .one_verb = true, .verb = DCN_DO_WRITE, .status = DECANT_IO});
        fired = dcn_save(&env, model, &target, &options, false, NULL, &err) != DECANT_OK;
        CHECK_EQ(fired, g.fired);
        failed = strstr(gates_trace(&g), " = io\n");
        CHECK(!fired || (failed && !strstr(failed, "copy ")));
        failures += fired;
        gates_down(&g);
        decant_model_close(&model);
        simdisk_free(&disk);
    }
    CHECK(failures > 2);
}
