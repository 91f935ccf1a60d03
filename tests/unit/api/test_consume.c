#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/env.h"
#include "pour/journal.h"
#include "support/gates.h"
#include "support/models.h"
#include "support/recorder.h"
#include "support/simdisk.h"

/* Models that are given up when they are saved: opened as owned, and saved so that they are consumed. */
static const dcn_cut cut = {.slot = 256, .slots = 2, .direct = 100, .batch = 512, .least_batch = 256};

enum { TENSORS = 12, VALUES = 500 }; /* several times what an output holds back */

/* A disk with "in.safetensors", in which there are tensors t0, t1 ... */
static simdisk *disk_with_model(void)
{
    uint64_t shape[] = {VALUES};
    simdisk *disk = simdisk_new();
    decant_model *model = NULL;
    uint8_t *bytes = NULL;
    size_t len = 0;
    char name[] = "t0";
    decant_error err;

    disk->block = disk->unit = 64;
    CHECK_OK(decant_model_create(&model, &err), &err);
    for (int i = 0; i < TENSORS; i++, name[1]++)
        model_add_stream(model, name, DECANT_F32, 1, shape, 1 + (uint64_t)i);
    CHECK_OK(model_render(&dcn_safetensors, model, NULL, &bytes, &len, &err), &err);
    simdisk_put(disk, "in.safetensors", bytes, len);
    free(bytes);
    decant_model_close(&model);
    return disk;
}

static decant_model *open_on(simdisk *disk, const char *path, bool owned)
{
    dcn_env env = {.io = &disk->io, .cut = cut};
    decant_open_options options = {.size = sizeof options, .owned = owned};
    decant_model *model = NULL;
    decant_error err;

    CHECK_OK(dcn_open(&env, path, &options, &model, &err), &err);
    return model;
}

static decant_status save_on(simdisk *disk, const decant_model *model, const char *path, decant_consume consume,
                             decant_report **report, decant_error *err)
{
    dcn_env env = {.io = &disk->io, .cut = cut};
    dcn_target target = {.kind = DCN_TO_FILE, .path = path};
    decant_save_options options = DECANT_SAVE_OPTIONS_INIT;

    options.consume = consume;
    return dcn_save(&env, model, &target, &options, false, report, err);
}

static void check_values(const decant_model *model)
{
    uint8_t wanted[4 * VALUES];

    CHECK_EQ(model->count, TENSORS);
    for (size_t i = 0; i < TENSORS; i++) {
        uint8_t *got = entry_bytes(&model->entries[i]);

        test_stream(1 + i, wanted, sizeof wanted);
        CHECK_BYTES(got, model->entries[i].data.len, wanted, sizeof wanted);
        free(got);
    }
}

TEST(consume__takes_two_keys)
{
    simdisk *disk = disk_with_model();
    decant_model *model = open_on(disk, "in.safetensors", false);
    decant_error err;

    CHECK_OK(save_on(disk, model, "a.bpk", DECANT_CONSUME, NULL, &err), &err);
    decant_model_close(&model);
    model = open_on(disk, "in.safetensors", true);
    CHECK_OK(save_on(disk, model, "b.bpk", DECANT_CONSUME_NEVER, NULL, &err), &err);
    decant_model_close(&model);
    CHECK_TEXT(simdisk_names(disk, "."), "a.bpk b.bpk in.safetensors");
    simdisk_free(&disk);
}

/* Before anything is made, and whether it is moved or copied. */
TEST(consume__refuses_an_input_that_was_changed_since_it_was_opened)
{
    for (unsigned i = 0; i < 4; i++) {
        bool copied = i & 1, longer = i & 2;
        simdisk *disk = disk_with_model();
        decant_model *model = open_on(disk, "in.safetensors", true);
        uint8_t content[TENSORS * VALUES * 4 + 4096] = {0};
        size_t len;
        decant_error err;

        disk->lacks = copied ? 1u << DCN_DO_PUNCH : 0;
        CHECK(simdisk_get(disk, "in.safetensors", &len) && len < sizeof content);
        if (longer)
            simdisk_put(disk, "in.safetensors", content, len + 1);
        else
            simdisk_touch(disk, "in.safetensors");
        CHECK_FAILS(save_on(disk, model, "out.bpk", DECANT_CONSUME, NULL, &err), DECANT_CHANGED, &err);
        CHECK_TEXT(err.path, "in.safetensors");
        CHECK(*err.found && *err.expected && *err.hint);
        CHECK_TEXT(simdisk_names(disk, "."), "in.safetensors");
        CHECK_EQ(simdisk_pending(disk), 0);
        decant_model_close(&model);
        simdisk_free(&disk);
    }
}

/* Counts calls that another thread makes than that which put it up. */
typedef struct watch {
    dcn_gate gate;
    pthread_t self;
    atomic_size_t others;
} watch;

static decant_status see(void *ctx, const dcn_call *call, decant_error *err)
{
    watch *w = ctx;

    (void)call;
    (void)err;
    atomic_fetch_add_explicit(&w->others, !pthread_equal(w->self, pthread_self()), memory_order_relaxed);
    return DECANT_OK;
}

static int keep_when_half_is_done(void *ctx, uint64_t done, uint64_t total)
{
    (void)ctx;
    return done > total / 2 ? DECANT_STOP_AND_KEEP : 0;
}

/*
 * Real files and a real helper, so that a thread sanitizer has something to look at: a batch is freed while the next is filled.
 * And the same when it was stopped half way, and is resumed.
 */
static void move_with_a_helper(bool stops)
{
    dcn_env env = {.io = dcn_io_posix(), .cut = cut, .threads = 2};
    decant_recover_options resuming = {.size = sizeof resuming, .direction = DECANT_RECOVER_RESUME};
    decant_recovery *recovery = NULL;
    watch w = {.gate = {.before = see, .ctx = &w}, .self = pthread_self()};
    decant_open_options opening = {.size = sizeof opening, .owned = true};
    decant_save_options saving = DECANT_SAVE_OPTIONS_INIT;
    simdisk *disk = disk_with_model();
    decant_model *model = NULL, *saved = NULL;
    size_t len;
    const uint8_t *content = simdisk_get(disk, "in.safetensors", &len);
    char in[512], out[512];
    dcn_target target = {.kind = DCN_TO_FILE, .path = out};
    decant_error err;
    FILE *file;

    snprintf(in, sizeof in, "%s/in.safetensors", test_folder());
    snprintf(out, sizeof out, "%s/out.bpk", test_folder());
    file = fopen(in, "wb");
    CHECK(file && fwrite(content, len, 1, file) == 1 && fclose(file) == 0);
    saving.consume = DECANT_CONSUME;
    CHECK_OK(dcn_open(&env, in, &opening, &model, &err), &err);
    if (stops) {
        saving.progress = keep_when_half_is_done;
        CHECK_FAILS(dcn_save(&env, model, &target, &saving, false, NULL, &err), DECANT_INTERRUPTED, &err);
        env.io->gate = &w.gate;
        CHECK_OK(dcn_recover(&env, out, &resuming, &recovery, &err), &err);
        decant_recovery_close(&recovery);
    } else {
        env.io->gate = &w.gate;
        CHECK_OK(dcn_save(&env, model, &target, &saving, false, NULL, &err), &err);
        check_values(model);
    }
    env.io->gate = NULL;
    CHECK(atomic_load_explicit(&w.others, memory_order_relaxed) > 0);
    CHECK_OK(dcn_open(&env, out, NULL, &saved, &err), &err);
    check_values(saved);
    CHECK(access(in, F_OK) != 0);
    decant_model_close(&model);
    decant_model_close(&saved);
    unlink(out);
    simdisk_free(&disk);
}

TEST(consume__with_a_helper_moves_the_same_bytes)
{
    move_with_a_helper(false);
}

TEST(recover__with_a_helper_moves_the_same_bytes)
{
    move_with_a_helper(true);
}

/* Moved, and copied where nothing can be punched; planned, and done. */
TEST(report__says_where_the_bytes_of_what_was_given_up_are)
{
    for (unsigned i = 0; i < 4; i++) {
        simdisk *disk = disk_with_model();
        dcn_env env = {.io = &disk->io, .cut = cut};
        decant_save_options options = DECANT_SAVE_OPTIONS_INIT;
        dcn_target target = {.kind = DCN_TO_FILE, .path = "out.bpk"};
        decant_model *model = open_on(disk, "in.safetensors", true);
        decant_report *report = NULL, *planned = NULL;
        size_t in_len, out_len, output, count = 0;
        const uint8_t *in = simdisk_get(disk, "in.safetensors", &in_len), *out;
        uint8_t *kept = malloc(in_len);
        uint64_t from, len, to, at[3], all = 0;
        decant_error err;

        CHECK(kept != NULL);
        memcpy(kept, in, in_len);
        disk->lacks = i & 1 ? 1u << DCN_DO_PUNCH : 0;
        options.consume = i & 2 ? DECANT_CONSUME : DECANT_CONSUME_NEVER;
        CHECK_OK(dcn_save(&env, model, &target, &options, true, &planned, &err), &err);
        CHECK_OK(dcn_save(&env, model, &target, &options, false, &report, &err), &err);
        decant_model_close(&model);
        out = simdisk_get(disk, "out.bpk", &out_len);
        for (; decant_report_range(report, 0, count, &from, &len, &output, &to); count++) {
            CHECK_EQ(output, 0);
            CHECK_BYTES(out + to, len, kept + from, len);
            CHECK(decant_report_range(planned, 0, count, &at[0], &at[1], &output, &at[2]));
            CHECK(at[0] == from && at[1] == len && at[2] == to);
            all += len;
        }
        CHECK_EQ(all, i & 2 ? TENSORS * VALUES * 4 : 0);
        CHECK(!decant_report_range(report, 1, 0, &from, &len, &output, &to));
        decant_report_close(&planned);
        decant_report_close(&report);
        free(kept);
        simdisk_free(&disk);
    }
}

/* The tensors of a Burnpack have padding between them, in which a new file reads as zero. */
TEST(consume__writes_nothing_between_what_it_moves)
{
    enum { HELD = 4096, PADDING = 2048 - 4 * VALUES };
    simdisk *disk = disk_with_model();
    decant_model *model = open_on(disk, "in.safetensors", true), *saved;
    uint64_t written = 0, at, bytes;
    size_t len;
    gates g;
    decant_error err;

    gates_up(&g, &disk->io);
    CHECK_OK(save_on(disk, model, "out.bpk", DECANT_CONSUME_REQUIRE, NULL, &err), &err);
    for (const char *line = gates_trace(&g); line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (sscanf(line, "write out.bpk.decant-%*[0-9a-f].jpart %" SCNu64 "+%" SCNu64, &at, &bytes) == 2)
            written += bytes;
    }
    gates_down(&g);
    CHECK(simdisk_get(disk, "out.bpk", &len) != NULL);
    CHECK(written <= len - (TENSORS - 1 - HELD / 2048) * PADDING); /* that in what is held back is written with it */
    decant_model_close(&model);
    saved = open_on(disk, "out.bpk", false);
    check_values(saved);
    decant_model_close(&saved);
    simdisk_free(&disk);
}

TEST(consume__that_is_none_of_its_options_is_refused)
{
    simdisk *disk = disk_with_model();
    decant_model *model = open_on(disk, "in.safetensors", true);
    decant_error err;

    CHECK_FAILS(save_on(disk, model, "out.bpk", (decant_consume)3, NULL, &err), DECANT_BAD_CALL, &err);
    decant_model_close(&model);
    CHECK_TEXT(simdisk_names(disk, "."), "in.safetensors");
    simdisk_free(&disk);
}

TEST(consume__tells_how_much_room_it_took)
{
    simdisk *disk = disk_with_model();
    decant_model *model;
    decant_report *report = NULL;
    decant_error err;

    disk->capacity = 1 << 20;
    for (int i = 0; i < 2; i++) {
        model = open_on(disk, "in.safetensors", true);
        CHECK_OK(save_on(disk, model, i ? "b.bpk" : "a.bpk", i ? DECANT_CONSUME_REQUIRE : DECANT_CONSUME_NEVER, &report,
                         &err),
                 &err);
        CHECK_TEXT(decant_report_survives(report), "power");
        CHECK(decant_report_taken(report) && decant_report_taken(report) <= decant_report_room(report));
        decant_report_close(&report);
        decant_model_close(&model);
    }
    simdisk_free(&disk);
}

TEST(consume__lets_handles_go_on_reading_through_the_output)
{
    simdisk *disk = disk_with_model();
    decant_model *model = open_on(disk, "in.safetensors", true), *saved;
    decant_report *report = NULL;
    const char *path, *route, *reason;
    uint64_t bytes;
    decant_error err;

    CHECK_OK(save_on(disk, model, "out.bpk", DECANT_CONSUME_REQUIRE, &report, &err), &err);
    CHECK_TEXT(simdisk_names(disk, "."), "out.bpk");
    CHECK(decant_report_source(report, 0, &path, &bytes, &route, &reason));
    CHECK_TEXT(route, "drain");
    CHECK(decant_report_given(report, 0));
    decant_report_close(&report);
    check_values(model);
    saved = open_on(disk, "out.bpk", false);
    check_values(saved);
    decant_model_close(&saved);

    /* saved again it is read from there too; given up again it cannot be */
    CHECK_OK(save_on(disk, model, "again.safetensors", DECANT_CONSUME_NEVER, NULL, &err), &err);
    saved = open_on(disk, "again.safetensors", false);
    check_values(saved);
    decant_model_close(&saved);
    CHECK_FAILS(save_on(disk, model, "third.bpk", DECANT_CONSUME, NULL, &err), DECANT_NOT_FOUND, &err);
    CHECK_HAS(err.hint, "out.bpk");
    decant_model_close(&model);
    CHECK_TEXT(simdisk_names(disk, "."), "again.safetensors out.bpk");
    CHECK_EQ(disk->open_files, 0);
    simdisk_free(&disk);
}

TEST(consume__drains_beside_what_is_produced)
{
    simdisk *disk = disk_with_model();
    decant_model *model = open_on(disk, "in.safetensors", true), *saved;
    recorder r = {0};
    uint8_t made[4 * VALUES], *got;
    uint64_t shape[] = {VALUES};
    decant_tensor tensor = DECANT_TENSOR_INIT;
    decant_bytes *bytes = recorder_bytes(&r, 0, sizeof made, true);
    size_t index;
    decant_error err;

    tensor.name = "t55"; /* among the others in the output */
    tensor.dtype = DECANT_F32;
    tensor.rank = 1;
    tensor.shape = shape;
    CHECK_OK(decant_model_add(model, &tensor, bytes, &err), &err);
    decant_bytes_unref(&bytes);
    CHECK_OK(save_on(disk, model, "out.bpk", DECANT_CONSUME, NULL, &err), &err);
    recorder_check(&r, (const uint64_t[]){sizeof made}, 1);
    decant_model_close(&model);
    recorder_close(&r);
    CHECK_TEXT(simdisk_names(disk, "."), "out.bpk");

    saved = open_on(disk, "out.bpk", false);
    CHECK_EQ(saved->count, TENSORS + 1);
    CHECK(dcn_model_find(saved, "t55", 3, &index));
    got = entry_bytes(&saved->entries[index]);
    test_stream(0, made, sizeof made);
    CHECK_BYTES(got, sizeof made, made, sizeof made);
    free(got);
    decant_model_close(&saved);
    simdisk_free(&disk);
}

static decant_bytes *whole_file(simdisk *disk, const char *name)
{
    dcn_source *source = NULL;
    decant_bytes *bytes = NULL;
    decant_error err;

    CHECK_OK(dcn_source_open(&disk->io, name, &source, &err), &err);
    CHECK_OK(dcn_bytes_from_source(source, &bytes, &err), &err);
    return bytes;
}

static decant_status write_on(simdisk *disk, const decant_file *files, size_t count, decant_error *err)
{
    dcn_env env = {.io = &disk->io, .cut = cut};
    decant_save_options options = DECANT_SAVE_OPTIONS_INIT;

    options.consume = DECANT_CONSUME_REQUIRE;
    return dcn_write(&env, files, count, &options, false, NULL, err);
}

/* Of one file the first half goes into one output and the second into another; the other file is not given up. */
TEST(consume__moves_files_within_ropes_into_several_outputs)
{
    enum { HEAD = 5, OWN = 3000, HALF = OWN / 2, KEPT = 700 };
    static const uint8_t head[HEAD] = "head";
    uint8_t own[OWN], kept[KEPT], wanted[HEAD + KEPT + HALF];
    simdisk *disk = simdisk_new();
    decant_bytes *parts[4] = {NULL};
    decant_file files[] = {{"first", NULL}, {"last", NULL}};
    const uint8_t *got;
    size_t len;
    decant_error err;

    disk->block = disk->unit = 64;
    test_stream(1, own, sizeof own);
    test_stream(2, kept, sizeof kept);
    simdisk_put(disk, "own", own, sizeof own);
    simdisk_put(disk, "kept", kept, sizeof kept);
    parts[0] = whole_file(disk, "own");
    CHECK_OK(decant_bytes_own(parts[0], &err), &err);
    CHECK_OK(decant_bytes_copy(head, HEAD, &parts[1], &err), &err);
    parts[2] = whole_file(disk, "kept");
    CHECK_OK(decant_bytes_slice(parts[0], HALF, HALF, &parts[3], &err), &err);
    CHECK_OK(decant_bytes_join(parts + 1, 3, &files[1].bytes, &err), &err);
    CHECK_OK(decant_bytes_slice(parts[0], 0, HALF - 1, &files[0].bytes, &err), &err);

    /* a byte of it is missing */
    CHECK_FAILS(write_on(disk, files, 2, &err), DECANT_LOSS, &err);
    CHECK_TEXT(err.path, "own");
    CHECK_TEXT(simdisk_names(disk, "."), "kept own");
    decant_bytes_unref(&files[0].bytes);
    CHECK_OK(decant_bytes_slice(parts[0], 0, HALF, &files[0].bytes, &err), &err);
    CHECK_OK(write_on(disk, files, 2, &err), &err);

    CHECK_TEXT(simdisk_names(disk, "."), "first kept last");
    got = simdisk_get(disk, "first", &len);
    CHECK_BYTES(got, len, own, HALF);
    memcpy(wanted, head, HEAD);
    memcpy(wanted + HEAD, kept, KEPT);
    memcpy(wanted + HEAD + KEPT, own + HALF, HALF);
    got = simdisk_get(disk, "last", &len);
    CHECK_BYTES(got, len, wanted, sizeof wanted);
    for (size_t i = 0; i < 4; i++)
        decant_bytes_unref(&parts[i]);
    decant_bytes_unref(&files[0].bytes);
    decant_bytes_unref(&files[1].bytes);
    simdisk_free(&disk);
}

/* One byte, more often than a journal can say. */
TEST(consume__copies_what_is_in_too_many_pieces)
{
    size_t count = DCN_RUNS_MOST + 1, len;
    simdisk *disk = simdisk_new();
    dcn_env env = {.io = &disk->io, .cut = cut};
    decant_save_options options = DECANT_SAVE_OPTIONS_INIT;
    decant_bytes **parts = malloc(count * sizeof(decant_bytes *));
    decant_file file = {"out", NULL};
    decant_report *report = NULL;
    const uint8_t *got;
    const char *path, *route, *reason;
    uint64_t bytes;
    decant_error err;

    CHECK(parts != NULL);
    env.cut.slot = env.cut.batch = 1 << 20;
    simdisk_put_text(disk, "in", "x");
    parts[0] = whole_file(disk, "in");
    for (size_t i = 1; i < count; i++)
        parts[i] = parts[0];
    CHECK_OK(decant_bytes_own(parts[0], &err), &err);
    CHECK_OK(decant_bytes_join(parts, count, &file.bytes, &err), &err);
    CHECK_FAILS(write_on(disk, &file, 1, &err), DECANT_UNSUPPORTED, &err);
    CHECK_HAS(err.message, "too many pieces");
    options.consume = DECANT_CONSUME;
    CHECK_OK(dcn_write(&env, &file, 1, &options, false, &report, &err), &err);
    CHECK(decant_report_source(report, 0, &path, &bytes, &route, &reason));
    CHECK_TEXT(route, "copy");
    CHECK_HAS(reason, "too many pieces");
    CHECK_TEXT(simdisk_names(disk, "."), "out");
    got = simdisk_get(disk, "out", &len);
    CHECK(len == count && got[0] == 'x' && memcmp(got, got + 1, len - 1) == 0);
    decant_report_close(&report);
    decant_bytes_unref(&file.bytes);
    decant_bytes_unref(&parts[0]);
    free(parts);
    simdisk_free(&disk);
}

/* A lock is how another consume of the same input would be seen: without one nothing of it goes before the end. */
TEST(consume__copies_what_cannot_be_locked_and_says_so)
{
    simdisk *disk = disk_with_model();
    decant_model *model = open_on(disk, "in.safetensors", true);
    decant_report *report = NULL;
    const char *path, *route, *reason;
    uint64_t bytes;
    decant_error err;

    disk->lacks = 1u << DCN_DO_LOCK;
    CHECK_FAILS(save_on(disk, model, "out.bpk", DECANT_CONSUME_REQUIRE, NULL, &err), DECANT_UNSUPPORTED, &err);
    CHECK_HAS(err.message, "files cannot be locked there");
    CHECK_HAS(err.hint, "let it be copied");
    CHECK_TEXT(simdisk_names(disk, "."), "in.safetensors");
    CHECK_OK(save_on(disk, model, "out.bpk", DECANT_CONSUME, &report, &err), &err);
    CHECK(decant_report_source(report, 0, &path, &bytes, &route, &reason));
    CHECK_TEXT(route, "copy");
    CHECK_TEXT(reason, "files cannot be locked there");
    CHECK_TEXT(simdisk_names(disk, "."), "out.bpk");
    decant_report_close(&report);
    decant_model_close(&model);
    simdisk_free(&disk);
}

/* Whether it would be moved or copied, which takes no journal. */
TEST(consume__refuses_what_another_process_has_locked)
{
    for (unsigned copied = 0; copied < 2; copied++) {
        simdisk *disk = disk_with_model();
        decant_model *model = open_on(disk, "in.safetensors", true);
        decant_error err;

        disk->lacks = copied ? 1u << DCN_DO_PUNCH : 0;
        simdisk_hold(disk, "in.safetensors", true);
        CHECK_FAILS(save_on(disk, model, "out.bpk", DECANT_CONSUME, NULL, &err), DECANT_BUSY, &err);
        CHECK_TEXT(err.path, "in.safetensors");
        CHECK_HAS(err.hint, "wait until that is done");
        CHECK_TEXT(simdisk_names(disk, "."), "in.safetensors");
        CHECK_EQ(simdisk_pending(disk), 0);
        simdisk_hold(disk, "in.safetensors", false);
        CHECK_OK(save_on(disk, model, "out.bpk", DECANT_CONSUME, NULL, &err), &err);
        decant_model_close(&model);
        simdisk_free(&disk);
    }
}

TEST(bytes__own_what_is_a_file_s_and_nothing_else)
{
    simdisk *disk = simdisk_new();
    decant_bytes *parts[2] = {NULL}, *joined = NULL, *none = NULL;
    decant_file file = {"out", NULL};
    decant_error err;

    simdisk_put_text(disk, "in", "content");
    parts[0] = whole_file(disk, "in");
    CHECK_OK(decant_bytes_copy("memory", 6, &parts[1], &err), &err);
    CHECK_OK(decant_bytes_join(parts, 2, &joined, &err), &err);
    CHECK_OK(decant_bytes_slice(parts[0], 1, 0, &none, &err), &err);
    CHECK_FAILS(decant_bytes_own(joined, &err), DECANT_BAD_CALL, &err);
    CHECK_FAILS(decant_bytes_own(parts[1], &err), DECANT_BAD_CALL, &err);
    CHECK_FAILS(decant_bytes_own(none, &err), DECANT_BAD_CALL, &err);
    file.bytes = joined; /* of which nothing is owned by now */
    CHECK_OK(write_on(disk, &file, 1, &err), &err);
    CHECK_TEXT(simdisk_names(disk, "."), "in out");
    decant_bytes_unref(&none);
    decant_bytes_unref(&joined);

    /* a piece stands for its file, whose rest would be destroyed */
    CHECK_OK(decant_bytes_slice(parts[0], 1, 4, &joined, &err), &err);
    CHECK_OK(decant_bytes_own(joined, &err), &err);
    file = (decant_file){"piece", joined};
    CHECK_FAILS(write_on(disk, &file, 1, &err), DECANT_LOSS, &err);
    CHECK_TEXT(simdisk_names(disk, "."), "in out");
    decant_bytes_unref(&joined);
    decant_bytes_unref(&parts[0]);
    decant_bytes_unref(&parts[1]);
    simdisk_free(&disk);
}

TEST(consume__refuses_what_would_destroy_a_tensor_and_names_it)
{
    simdisk *disk = disk_with_model();
    decant_model *model = open_on(disk, "in.safetensors", true), *less = NULL;
    decant_transform_options how = {.size = sizeof how};
    static const char *const without[] = {"t3"};
    const decant_model *models[] = {model};
    decant_error err;

    how.exclude = without;
    how.exclude_count = 1;
    CHECK_OK(decant_transform(models, NULL, 1, &how, &less, &err), &err);
    CHECK_FAILS(save_on(disk, less, "out.bpk", DECANT_CONSUME, NULL, &err), DECANT_LOSS, &err);
    CHECK_TEXT(err.tensor, "t3");
    CHECK_TEXT(simdisk_names(disk, "."), "in.safetensors");
    decant_model_close(&less);
    check_values(model);
    decant_model_close(&model);
    simdisk_free(&disk);
}

/* Stops a save at the n-th time that it is asked. */
typedef struct stopper {
    size_t left;
    int how;
    bool stopped;
} stopper;

static int stop(void *ctx, uint64_t done, uint64_t total)
{
    stopper *s = ctx;

    (void)done;
    (void)total;
    s->stopped = s->left == 0;
    s->left -= !s->stopped;
    return s->stopped ? s->how : 0;
}

static decant_status save_stopped(simdisk *disk, const decant_model *model, stopper *s, decant_error *err)
{
    dcn_env env = {.io = &disk->io, .cut = cut};
    dcn_target target = {.kind = DCN_TO_FILE, .path = "out.bpk"};
    decant_save_options options = DECANT_SAVE_OPTIONS_INIT;

    options.consume = DECANT_CONSUME;
    options.progress = stop;
    options.progress_ctx = s;
    return dcn_save(&env, model, &target, &options, false, NULL, err);
}

/* What was undone can be tried again with the same model: it holds the lock itself. */
TEST(consume__can_be_tried_again_when_it_was_undone)
{
    simdisk *disk = disk_with_model();
    decant_model *model = open_on(disk, "in.safetensors", true);
    stopper s = {.how = 1};
    decant_error err;

    for (size_t n = 0; n == 0 || s.stopped; n++) {
        s.left = n;
        CHECK_EQ(save_stopped(disk, model, &s, &err), s.stopped ? DECANT_CANCELLED : DECANT_OK);
    }
    CHECK_TEXT(simdisk_names(disk, "."), "out.bpk");
    check_values(model);
    decant_model_close(&model);
    simdisk_free(&disk);
}

/* A callback that says stop has all put back; one that says keep has what is moved stay moved, and recovery goes on. */
TEST(consume__is_undone_or_kept_half_way_as_the_callback_says)
{
    bool stopped = true;
    size_t kept = 0;

    for (size_t n = 0; stopped; n++)
        for (int how = 1; how <= DECANT_STOP_AND_KEEP; how++) {
            simdisk *disk = disk_with_model();
            stopper s = {.left = n, .how = how};
            decant_model *model = open_on(disk, "in.safetensors", true);
            decant_error err;
            decant_status rc = save_stopped(disk, model, &s, &err);

            decant_model_close(&model);
            stopped = s.stopped;
            if (!stopped) {
                CHECK_OK(rc, &err);
            } else if (how == 1 || rc == DECANT_CANCELLED) {
                CHECK_EQ(rc, DECANT_CANCELLED);
                CHECK_TEXT(simdisk_names(disk, "."), "in.safetensors");
            } else {
                dcn_env env = {.io = &disk->io, .cut = cut};
                decant_recover_options options = {.size = sizeof options, .direction = DECANT_RECOVER_RESUME};
                decant_recovery *recovery = NULL;
                decant_model *saved;

                CHECK_EQ(rc, DECANT_INTERRUPTED);
                CHECK_HAS(err.hint, "out.bpk");
                CHECK_OK(dcn_recover(&env, "out.bpk", &options, &recovery, &err), &err);
                decant_recovery_close(&recovery);
                CHECK_TEXT(simdisk_names(disk, "."), "out.bpk");
                saved = open_on(disk, "out.bpk", false);
                check_values(saved);
                decant_model_close(&saved);
                kept++;
            }
            simdisk_free(&disk);
        }
    CHECK(kept > 3);
}

static decant_status recover_on(simdisk *disk, decant_direction direction, decant_error *err)
{
    dcn_env env = {.io = &disk->io, .cut = cut};
    decant_recover_options options = {.size = sizeof options, .direction = direction};
    decant_recovery *recovery = NULL;
    decant_status rc = dcn_recover(&env, "out.bpk", &options, &recovery, err);

    decant_recovery_close(&recovery);
    return rc;
}

/* Room for what is put back is taken while there still is the other way. */
TEST(consume__that_has_no_room_to_be_undone_can_still_be_finished)
{
    bool stopped = true;
    size_t full = 0;

    for (size_t n = 0; stopped; n++) {
        simdisk *disk = disk_with_model();
        stopper s = {.left = n, .how = DECANT_STOP_AND_KEEP};
        decant_model *model = open_on(disk, "in.safetensors", true);
        decant_error err;
        decant_status rc = save_stopped(disk, model, &s, &err);

        decant_model_close(&model);
        stopped = s.stopped;
        disk->capacity = simdisk_used(disk);
        if (rc == DECANT_INTERRUPTED && recover_on(disk, DECANT_RECOVER_UNDO, &err)) {
            disk->capacity = UINT64_MAX;
            CHECK_OK(recover_on(disk, DECANT_RECOVER_RESUME, &err), &err);
            CHECK_TEXT(simdisk_names(disk, "."), "out.bpk");
            full++;
        }
        simdisk_free(&disk);
    }
    CHECK(full > 0);
}

/* Of a save that was stopped before READY, or half way. */
static simdisk *disk_with_journal(bool ready)
{
    for (size_t n = 0;; n++) {
        simdisk *disk = disk_with_model();
        stopper s = {.left = ready ? n : SIZE_MAX, .how = DECANT_STOP_AND_KEEP};
        decant_model *model = open_on(disk, "in.safetensors", true);
        gates calls;
        decant_status rc;

        gates_up(&calls, &disk->io);
        if (!ready)
            gates_fail(
                &calls,
                (gates_fault){
                    .one_verb = true, .verb = DCN_DO_SYNC, .name = ".jpart", .status = DECANT_IO, .crash = true});
        rc = save_stopped(disk, model, &s, NULL);
        gates_down(&calls);
        decant_model_close(&model);
        CHECK(rc);
        if (!ready || rc == DECANT_INTERRUPTED)
            return disk;
        simdisk_free(&disk);
    }
}

/* One record or two behind what a journal has, that fit it but not each other. */
static void check_out_of_order(bool ready, dcn_record_type first, dcn_record_type second)
{
    simdisk *disk = disk_with_journal(ready);
    dcn_record record = {.type = DCN_RECORD_BEGIN};
    dcn_buf empty = {0};
    dcn_journal j;
    dcn_dir *dir = NULL;
    bool live;
    decant_error err;

    CHECK_OK(dcn_io_open_dir(&disk->io, ".", &dir, &err), &err);
    CHECK_OK(dcn_journal_open(&j, dir, "out.bpk.decant-journal", true, &live, &err), &err);
    while (record.type != DCN_RECORD_NONE)
        CHECK_OK(dcn_journal_next(&j, &record, &err), &err);
    CHECK_OK(dcn_journal_put(&j, first, &empty, &err), &err);
    if (second)
        CHECK_OK(dcn_journal_put(&j, second, &empty, &err), &err);
    dcn_journal_close(&j);
    dcn_dir_close(&dir);
    CHECK_FAILS(recover_on(disk, DECANT_RECOVER_UNDO, &err), DECANT_MALFORMED, &err);
    CHECK_HAS(err.message, "stands where none can be");
    simdisk_free(&disk);
}

TEST(consume__believes_no_record_that_stands_where_none_can_be)
{
    check_out_of_order(false, DCN_RECORD_MOVED, 0);
    check_out_of_order(false, DCN_RECORD_ABORT, 0);
    check_out_of_order(false, DCN_RECORD_UNMOVED, 0);
    check_out_of_order(false, DCN_RECORD_COMMIT, 0);
    check_out_of_order(true, DCN_RECORD_READY, 0);
    check_out_of_order(true, DCN_RECORD_UNMOVED, 0);
    check_out_of_order(true, DCN_RECORD_ABORT, DCN_RECORD_MOVED);
    check_out_of_order(true, DCN_RECORD_ABORT, DCN_RECORD_ABORT);
    check_out_of_order(true, DCN_RECORD_ABORT, DCN_RECORD_COMMIT);
}
