#include "api/env.h"
#include "support/alloc.h"
#include "support/gates.h"
#include "support/models.h"
#include "support/simdisk.h"

#include <stdlib.h>

static decant_error err;

/* Once the part is synced a bit of it turns: what a disk does that loses what it was given. */
typedef struct rot {
    dcn_gate gate;
    const dcn_gate *next;
    simdisk *disk;
    size_t at; /* which byte; SIZE_MAX: none */
} rot;

static decant_status pass(void *ctx, const dcn_call *call, decant_error *e)
{
    rot *r = ctx;

    return r->next ? r->next->before(r->next->ctx, call, e) : DECANT_OK;
}

static void turn(void *ctx, const dcn_call *call, decant_status status)
{
    rot *r = ctx;
    uint8_t *copy;
    const uint8_t *data;
    size_t len;

    if (r->next && r->next->after)
        r->next->after(r->next->ctx, call, status);
    if (call->verb != DCN_DO_SYNC || r->at == SIZE_MAX)
        return;
    data = simdisk_get(r->disk, call->name, &len);
    CHECK(data && r->at < len && (copy = malloc(len)) != NULL);
    memcpy(copy, data, len);
    copy[r->at] ^= 1;
    simdisk_put(r->disk, call->name, copy, len);
    free(copy);
}

static simdisk *disk_with_model(size_t *size)
{
    simdisk *disk = simdisk_new();
    decant_model *model = NULL;
    uint8_t *file = NULL;
    size_t len;

    CHECK_OK(decant_model_create(&model, &err), &err);
    model_add_stream(model, "a", DECANT_U8, 1, (const uint64_t[]){6000}, 1);
    model_add_stream(model, "b", DECANT_F32, 2, (const uint64_t[]){2, 10}, 2);
    CHECK_OK(model_render(&dcn_safetensors, model, NULL, &file, &len, &err), &err);
    simdisk_put(disk, "in.safetensors", file, len);
    free(file);
    CHECK_OK(model_render(&dcn_burnpack, model, NULL, &file, size, &err), &err);
    free(file);
    decant_model_close(&model);
    return disk;
}

static decant_status save(simdisk *disk, dcn_target_kind kind, uint64_t seed, decant_progress progress, void *ctx,
                          decant_report **report)
{
    dcn_env env = {.io = &disk->io, .cut = {.slot = 128, .slots = 2, .direct = 64, .share = 64}, .crew_seed = seed};
    decant_save_options options = DECANT_SAVE_OPTIONS_INIT;
    dcn_target target = {.kind = kind, .path = "out.bpk"};
    decant_model *model = NULL;
    decant_status rc;

    options.verify = 1;
    options.format = "burnpack";
    options.progress = progress;
    options.progress_ctx = ctx;
    if ((rc = dcn_open(&env, "in.safetensors", NULL, &model, &err)) == DECANT_OK)
        rc = dcn_save(&env, model, &target, &options, false, report, &err);
    decant_model_close(&model);
    return rc;
}

TEST(verify__DA_03_a_byte_that_the_disk_lost_is_found_wherever_it_is_and_nothing_is_published)
{
    size_t size;
    simdisk *disk = disk_with_model(&size);
    rot r = {.disk = disk, .next = disk->io.gate};

    r.gate = (dcn_gate){pass, turn, &r};
    disk->io.gate = &r.gate;
    for (r.at = 0; r.at < size; r.at += r.at % 128 == 127 ? 1 : 63) {
        decant_report *report = NULL;

        CHECK_FAILS(save(disk, DCN_TO_FILE, 0, NULL, NULL, &report), DECANT_IO, &err);
        CHECK(!report);
        CHECK_EQ(err.side, DECANT_SIDE_OUTPUT);
        CHECK_HAS(decant_error_text(&err), "out.bpk: what was read back differs from what was written, in bytes ");
        CHECK_TEXT(simdisk_names(disk, "."), "in.safetensors");
    }
    disk->io.gate = r.next;
    simdisk_free(&disk);
}

TEST(verify__what_was_kept_is_published_with_its_digest)
{
    for (uint64_t seed = 0; seed < 4; seed++) {
        size_t size;
        simdisk *disk = disk_with_model(&size);
        dcn_env env = {.io = &disk->io, .cut = dcn_cut_default};
        decant_report *report = NULL;
        decant_model *saved = NULL;
        char hex[DECANT_DIGEST];
        gates g;

        gates_up(&g, &disk->io);
        CHECK_OK(save(disk, DCN_TO_FILE, seed, NULL, NULL, &report), &err);
        CHECK_EQ(g.bytes[DCN_DO_COPY] + g.bytes[DCN_DO_CLONE], 0); /* everything passes memory */
        CHECK_EQ(g.count[DCN_DO_FORGET], 1);
        CHECK_HAS(gates_trace(&g), "forget");
        gates_down(&g);
        CHECK(decant_report_verified(report) && decant_report_published(report));
        CHECK_OK(dcn_open(&env, "out.bpk", NULL, &saved, &err), &err);
        CHECK_OK(decant_digest(saved, NULL, NULL, NULL, hex, &err), &err);
        CHECK_TEXT(decant_report_digest(report), hex);
        decant_model_close(&saved);
        decant_report_close(&report);
        simdisk_free(&disk);
    }
}

TEST(verify__a_system_that_cannot_forget_is_read_all_the_same)
{
    size_t size;
    simdisk *disk = disk_with_model(&size);
    decant_report *report = NULL;

    disk->lacks = 1u << DCN_DO_FORGET;
    CHECK_OK(save(disk, DCN_TO_FILE, 0, NULL, NULL, &report), &err);
    CHECK(decant_report_verified(report));
    decant_report_close(&report);
    simdisk_free(&disk);
}

typedef struct watch {
    uint64_t done, total, stop_at;
} watch;

static int look(void *ctx, uint64_t done, uint64_t total)
{
    watch *w = ctx;

    CHECK(done >= w->done && done <= total);
    w->done = done;
    w->total = total;
    return done >= w->stop_at;
}

TEST(verify__is_work_that_progress_counts_and_can_stop)
{
    size_t size;
    simdisk *disk = disk_with_model(&size);
    watch w = {.stop_at = UINT64_MAX};
    decant_report *report = NULL;

    CHECK_OK(save(disk, DCN_TO_FILE, 0, look, &w, &report), &err);
    size = (size_t)decant_report_size(report);
    CHECK_EQ(w.total, 2 * size);
    CHECK_EQ(w.done, 2 * size);
    decant_report_close(&report);
    simdisk_free(&disk);

    w = (watch){.stop_at = size + size / 2};
    disk = disk_with_model(&size);
    CHECK_FAILS(save(disk, DCN_TO_FILE, 0, look, &w, &report), DECANT_CANCELLED, &err);
    CHECK_TEXT(simdisk_names(disk, "."), "in.safetensors");
    simdisk_free(&disk);
}

TEST(verify__is_refused_where_nothing_waits_to_be_published)
{
    size_t size;
    simdisk *disk = disk_with_model(&size);

    CHECK_FAILS(save(disk, DCN_TO_FILE_IN_PLACE, 0, NULL, NULL, NULL), DECANT_BAD_CALL, &err);
    CHECK_TEXT(simdisk_names(disk, "."), "in.safetensors");
    simdisk_free(&disk);
}

TEST(verify__survives_the_failure_of_any_allocation_and_any_call)
{
    for (int way = 0; way < 2; way++)
        for (size_t n = 0, fired = 1; fired; n++) {
            size_t size;
            simdisk *disk = disk_with_model(&size);
            decant_report *report = NULL;
            decant_status rc;
            gates g;

            gates_up(&g, &disk->io);
            if (way)
                gates_fail(&g, (gates_fault){.nth = n, .status = DECANT_IO});
            else
                test_alloc_fail(n);
            rc = save(disk, DCN_TO_FILE, 0, NULL, NULL, &report);
            fired = way ? g.fired : test_alloc_fired();
            test_alloc_disarm();
            gates_down(&g);
            CHECK_EQ(report != NULL, rc == DECANT_OK || rc == DECANT_NOT_DURABLE);
            CHECK_EQ(simdisk_get(disk, "out.bpk", &size) != NULL, report != NULL);
            decant_report_close(&report);
            simdisk_free(&disk);
        }
}
