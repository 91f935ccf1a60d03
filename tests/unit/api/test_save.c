#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/env.h"
#include "support/gates.h"
#include "support/models.h"
#include "support/recorder.h"
#include "support/simdisk.h"

static const dcn_cut cut = {.slot = 256, .slots = 2, .direct = 100};

/* Three tensors of 40 bytes each. */
static decant_model *model_of_three(void)
{
    uint64_t shape[] = {2, 5};
    decant_model *model = NULL;
    decant_error err;

    CHECK_OK(decant_model_create(&model, &err), &err);
    model_add_stream(model, "one", DECANT_F32, 2, shape, 1);
    model_add_stream(model, "two", DECANT_F32, 2, shape, 2);
    model_add_stream(model, "three", DECANT_F32, 2, shape, 3);
    return model;
}

/* What it is as a safetensors file. */
static uint8_t *file_of(const decant_model *model, size_t *len)
{
    uint8_t *bytes = NULL;
    decant_error err;

    CHECK_OK(model_render(&dcn_safetensors, model, NULL, &bytes, len, &err), &err);
    return bytes;
}

static decant_status save_on(simdisk *disk, const decant_model *model, const char *path,
                             const decant_save_options *options, bool plan_only, decant_report **report,
                             decant_error *err)
{
    dcn_env env = {.io = &disk->io, .cut = cut};
    dcn_target target = {.kind = DCN_TO_FILE, .path = path};

    return dcn_save(&env, model, &target, options, plan_only, report, err);
}

TEST(save__gives_the_same_bytes_to_every_kind_of_place)
{
    decant_save_options options = DECANT_SAVE_OPTIONS_INIT;
    decant_model *model = model_of_three();
    decant_bytes *made = NULL;
    decant_view view;
    size_t len, got_len, written = 0;
    uint8_t *wanted = file_of(model, &len), *got;
    uint64_t size = 0;
    char path[4096];
    decant_error err;

    options.format = "safetensors";
    CHECK_OK(decant_size(model, &options, &size, &err), &err);
    CHECK_EQ(size, len);

    snprintf(path, sizeof path, "%s/a.safetensors", test_folder());
    CHECK_OK(decant_save(model, path, NULL, NULL, &err), &err);
    got = test_data(path, &got_len);
    CHECK_BYTES(got, got_len, wanted, len);
    free(got);

    options.replace = 1;
    CHECK_OK(decant_save_in_place(model, path, &options, NULL, &err), &err);
    got = test_data(path, &got_len);
    CHECK_BYTES(got, got_len, wanted, len);
    free(got);

    got = malloc(len + 7);
    CHECK(got != NULL);
    memset(got, 0xEE, len + 7);
    CHECK_OK(decant_save_into(model, got, len + 7, &written, &options, NULL, &err), &err);
    CHECK_BYTES(got, written, wanted, len);
    CHECK_EQ(got[len], 0xEE);
    CHECK_FAILS(decant_save_into(model, got, len - 1, NULL, &options, NULL, &err), DECANT_NO_SPACE, &err);
    free(got);

    CHECK_OK(decant_save_new(model, &made, &options, NULL, &err), &err);
    CHECK_OK(decant_bytes_pin(made, 0, len, DECANT_NO_COPY, &view, &err), &err);
    CHECK_BYTES(view.data, view.len, wanted, len);
    decant_view_release(&view);
    decant_bytes_unref(&made);

    free(wanted);
    decant_model_close(&model);
}

typedef struct collected {
    uint8_t data[4096];
    size_t len;
} collected;

static decant_status collect(void *ctx, const void *data, size_t len, decant_error *err)
{
    collected *c = ctx;

    (void)err;
    CHECK(c->len + len <= sizeof c->data);
    memcpy(c->data + c->len, data, len);
    c->len += len;
    return DECANT_OK;
}

TEST(save__gives_a_stream_the_same_bytes)
{
    decant_save_options options = DECANT_SAVE_OPTIONS_INIT;
    static collected c;
    decant_stream stream = {sizeof stream, collect, &c};
    decant_model *model = model_of_three();
    size_t len;
    uint8_t *wanted = file_of(model, &len);
    decant_error err;

    c.len = 0;
    options.format = "safetensors";
    CHECK_OK(decant_save_stream(model, &stream, &options, NULL, &err), &err);
    CHECK_BYTES(c.data, c.len, wanted, len);
    free(wanted);
    decant_model_close(&model);
}

/* A model whose one tensor a provider gives. */
static decant_model *model_of_provider(recorder *r)
{
    uint64_t shape[] = {100};
    decant_tensor tensor = DECANT_TENSOR_INIT;
    decant_bytes *bytes = recorder_bytes(r, 0, 100, true);
    decant_model *model = NULL;
    decant_error err;

    tensor.name = "late";
    tensor.dtype = DECANT_U8;
    tensor.rank = 1;
    tensor.shape = shape;
    CHECK_OK(decant_model_create(&model, &err), &err);
    CHECK_OK(decant_model_add(model, &tensor, bytes, &err), &err);
    decant_bytes_unref(&bytes);
    return model;
}

TEST(plan__asks_no_provider_writes_nothing_and_knows_what_the_save_will_do)
{
    simdisk *disk = simdisk_new();
    recorder r = {0};
    decant_model *model = model_of_provider(&r);
    decant_report *planned = NULL, *saved = NULL;
    size_t len = 0;
    gates g;
    decant_error err;

    gates_up(&g, &disk->io);
    CHECK_OK(save_on(disk, model, "a.safetensors", NULL, true, &planned, &err), &err);
    CHECK_EQ(r.count, 0);
    CHECK_EQ(simdisk_file_count(disk), 0);
    CHECK_EQ(g.count[DCN_DO_OPEN] + g.count[DCN_DO_WRITE] + g.count[DCN_DO_SYNC] + g.count[DCN_DO_SYNC_DIR], 0);
    CHECK(!decant_report_published(planned) && !decant_report_durable(planned));
    gates_down(&g);

    CHECK_OK(save_on(disk, model, "a.safetensors", NULL, false, &saved, &err), &err);
    CHECK_EQ(r.asked, 1);
    simdisk_get(disk, "a.safetensors", &len);
    CHECK_EQ(decant_report_size(planned), len);
    CHECK_EQ(decant_report_size(saved), len);
    CHECK_EQ(decant_report_data(planned), 100);
    CHECK_EQ(decant_report_tensors(planned), 1);
    CHECK_EQ(decant_report_memory(planned), cut.slot * cut.slots);
    CHECK(decant_report_room(planned) >= len);
    CHECK_TEXT(decant_report_path(planned), "a.safetensors");
    CHECK_TEXT(decant_report_format(planned), "safetensors");
    CHECK(decant_report_published(saved) && decant_report_durable(saved));

    decant_report_close(&planned);
    decant_report_close(&saved);
    decant_model_close(&model);
    recorder_close(&r);
    simdisk_free(&disk);
}

/* Both, and each says the same. */
static void check_refused(simdisk *disk, const decant_model *model, const char *path,
                          const decant_save_options *options, decant_status wanted, decant_error *err)
{
    decant_report *report = NULL;
    size_t files = simdisk_file_count(disk);
    decant_error planned;

    CHECK_FAILS(save_on(disk, model, path, options, true, &report, &planned), wanted, &planned);
    CHECK_FAILS(save_on(disk, model, path, options, false, &report, err), wanted, err);
    CHECK_TEXT(decant_error_text(err), decant_error_text(&planned));
    CHECK(report == NULL);
    CHECK_EQ(simdisk_file_count(disk), files);
    CHECK(err->hint[0]);
}

TEST(plan__refuses_an_output_that_exists_as_the_save_does)
{
    simdisk *disk = simdisk_new();
    decant_model *model = model_of_three();
    decant_error err;

    simdisk_put_text(disk, "a.safetensors", "precious");
    check_refused(disk, model, "a.safetensors", NULL, DECANT_EXISTS, &err);
    CHECK_EQ(err.side, DECANT_SIDE_OUTPUT);
    CHECK_TEXT(err.path, "a.safetensors");
    CHECK_HAS(err.hint, "--force");
    CHECK_FILE(disk, "a.safetensors", "precious");

    simdisk_make(disk, "b.safetensors", DCN_KIND_LINK, "nowhere");
    check_refused(disk, model, "b.safetensors", NULL, DECANT_EXISTS, &err);
    decant_model_close(&model);
    simdisk_free(&disk);
}

TEST(plan__refuses_another_users_file_in_a_folder_where_only_he_may_replace_it)
{
    decant_save_options options = DECANT_SAVE_OPTIONS_INIT;
    simdisk *disk = simdisk_new();
    decant_model *model = model_of_three();
    decant_error err;

    options.replace = 1;
    disk->is_tmp = true;
    simdisk_put_text(disk, "a.safetensors", "precious");
    simdisk_make(disk, "b.safetensors", DCN_KIND_LINK, "nowhere");
    simdisk_give_away(disk, "a.safetensors");
    simdisk_give_away(disk, "b.safetensors");
    check_refused(disk, model, "a.safetensors", &options, DECANT_DENIED, &err);
    CHECK_EQ(err.side, DECANT_SIDE_OUTPUT);
    CHECK_FILE(disk, "a.safetensors", "precious");
    check_refused(disk, model, "b.safetensors", &options, DECANT_DENIED, &err);

    CHECK_OK(save_on(disk, model, "new.safetensors", &options, false, NULL, &err), &err);
    CHECK_OK(save_on(disk, model, "new.safetensors", &options, false, NULL, &err), &err); /* one's own */
    disk->is_tmp = false;
    CHECK_OK(save_on(disk, model, "a.safetensors", &options, false, NULL, &err), &err);
    decant_model_close(&model);
    simdisk_free(&disk);
}

TEST(plan__refuses_what_is_no_file_even_if_it_may_replace)
{
    decant_save_options options = DECANT_SAVE_OPTIONS_INIT;
    simdisk *disk = simdisk_new();
    decant_model *model = model_of_three();
    decant_error err;

    options.replace = 1;
    simdisk_make(disk, "a.safetensors", DCN_KIND_OTHER, NULL);
    check_refused(disk, model, "a.safetensors", &options, DECANT_EXISTS, &err);
    CHECK_HAS(err.message, "device");
    decant_model_close(&model);
    simdisk_free(&disk);
}

TEST(plan__refuses_an_output_without_room_with_both_figures)
{
    simdisk *disk = simdisk_new();
    decant_model *model = model_of_three();
    size_t len;
    uint8_t *wanted = file_of(model, &len);
    char text[64];
    decant_error err;

    disk->block = 16;
    disk->capacity = (len + 15) / 16 * 16 - 16;
    check_refused(disk, model, "a.safetensors", NULL, DECANT_NO_SPACE, &err);
    snprintf(text, sizeof text, "%zu bytes free in '.'", (len + 15) / 16 * 16 - 16);
    CHECK_TEXT(err.found, text);
    snprintf(text, sizeof text, "%zu", (len + 15) / 16 * 16);
    CHECK_TEXT(err.expected, text);

    disk->capacity += 16;
    CHECK_OK(save_on(disk, model, "a.safetensors", NULL, false, NULL, &err), &err);
    free(wanted);
    decant_model_close(&model);
    simdisk_free(&disk);
}

TEST(plan__refuses_an_output_that_passes_the_limit_of_a_files_size)
{
    simdisk *disk = simdisk_new();
    dcn_env env = {.io = &disk->io, .cut = cut};
    dcn_target target = {.kind = DCN_TO_FILE_IN_PLACE, .path = "a.safetensors"};
    decant_model *model = model_of_three();
    decant_error err;

    disk->limit = 100;
    check_refused(disk, model, "a.safetensors", NULL, DECANT_NO_SPACE, &err);
    CHECK_HAS(err.found, "100 bytes");
    CHECK_HAS(err.hint, "ulimit");

    /* in place too: passing it would not fail but end the process */
    CHECK_FAILS(dcn_save(&env, model, &target, NULL, false, NULL, &err), DECANT_NO_SPACE, &err);
    CHECK_HAS(err.hint, "ulimit");
    CHECK_EQ(simdisk_file_count(disk), 0);
    decant_model_close(&model);
    simdisk_free(&disk);
}

TEST(plan__names_a_folder_that_is_missing_and_one_that_may_have_been_meant)
{
    simdisk *disk = simdisk_new();
    decant_model *model = model_of_three();
    decant_error err;

    simdisk_folder(disk, "models");
    check_refused(disk, model, "nowhere/a.safetensors", NULL, DECANT_NOT_FOUND, &err);
    CHECK_EQ(err.side, DECANT_SIDE_OUTPUT);
    CHECK_HAS(err.message, "'nowhere'");
    CHECK_HAS(err.hint, "make it");
    decant_model_close(&model);
    simdisk_free(&disk);
}

TEST(plan__suggests_the_folder_that_was_meant)
{
    decant_model *model = model_of_three();
    char path[4096];
    decant_error err;

    snprintf(path, sizeof path, "%s/models", test_folder());
    CHECK_EQ(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/modles/a.safetensors", test_folder());
    CHECK_FAILS(decant_plan(model, path, NULL, NULL, &err), DECANT_NOT_FOUND, &err);
    CHECK_TEXT(err.hint, "did you mean 'models'?");
    decant_model_close(&model);
}

TEST(plan__refuses_a_folder_without_leave_to_write_whoever_asks)
{
    decant_model *model = model_of_three();
    char path[4096];
    decant_error err;

    snprintf(path, sizeof path, "%s/sealed", test_folder());
    CHECK_EQ(mkdir(path, 0500), 0);
    snprintf(path, sizeof path, "%s/sealed/a.safetensors", test_folder());
    CHECK_FAILS(decant_plan(model, path, NULL, NULL, &err), DECANT_DENIED, &err);
    CHECK_EQ(err.side, DECANT_SIDE_OUTPUT);
    decant_model_close(&model);
}

TEST(plan__refuses_a_path_that_ends_in_no_name)
{
    static const char *const paths[] = {"", "/", "a/", ".", "..", "a/.."};
    decant_save_options options = DECANT_SAVE_OPTIONS_INIT;
    decant_model *model = model_of_three();
    decant_error err;

    options.format = "safetensors";
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        CHECK_FAILS(decant_plan(model, paths[i], &options, NULL, &err), DECANT_BAD_CALL, &err);
        CHECK_EQ(err.side, DECANT_SIDE_OUTPUT);
    }
    decant_model_close(&model);
}

TEST(save__does_not_touch_an_input_unless_it_may_replace_it)
{
    simdisk *disk = simdisk_new();
    dcn_env env = {.io = &disk->io, .cut = cut};
    decant_save_options options = DECANT_SAVE_OPTIONS_INIT;
    decant_model *made = model_of_three(), *model = NULL;
    size_t len, got_len = 0;
    uint8_t *bytes = file_of(made, &len);
    const uint8_t *got;
    dcn_dir *dir = NULL;
    decant_report *report = NULL;
    const char *path, *route, *reason;
    uint64_t used;
    decant_error err;

    simdisk_put(disk, "a.safetensors", bytes, len);
    CHECK_OK(dcn_io_open_dir(&disk->io, ".", &dir, &err), &err);
    CHECK_OK(dcn_dir_link(dir, "a.safetensors", "other.safetensors", &err), &err);
    dcn_dir_close(&dir);
    CHECK_OK(dcn_open(&env, "a.safetensors", NULL, &model, &err), &err);
    check_refused(disk, model, "a.safetensors", NULL, DECANT_SAME_FILE, &err);
    check_refused(disk, model, "other.safetensors", NULL, DECANT_SAME_FILE, &err);

    options.replace = 1;
    CHECK_OK(save_on(disk, model, "a.safetensors", &options, false, &report, &err), &err);
    got = simdisk_get(disk, "a.safetensors", &got_len);
    CHECK_BYTES(got, got_len, bytes, len);
    CHECK(decant_report_source(report, 0, &path, &used, &route, &reason));
    CHECK_TEXT(path, "a.safetensors");
    CHECK_EQ(used, 120);
    CHECK_TEXT(route, "copy");
    CHECK_TEXT(reason, "no blocks of it line up with the output's");
    CHECK(!decant_report_source(report, 1, &path, &used, &route, &reason));
    CHECK_TEXT(decant_report_replaces(report, 0), "a file with other names, which keep it");
    CHECK(!decant_report_replaces(report, 1) && !decant_report_replaces(report, 9));

    decant_report_close(&report);
    free(bytes);
    decant_model_close(&model);
    decant_model_close(&made);
    simdisk_free(&disk);
}

/* DA-06: what was opened lazily stays readable when its file is replaced, by whichever handle, and can be saved again. */
TEST(save__again_and_again_to_the_file_that_was_opened)
{
    decant_save_options options = DECANT_SAVE_OPTIONS_INIT;
    decant_model *made = model_of_three(), *models[3] = {NULL};
    size_t len, got_len;
    uint8_t *bytes = file_of(made, &len), *got;
    char path[4096], data[40];
    decant_bytes *one = NULL;
    decant_error err;

    options.replace = 1;
    snprintf(path, sizeof path, "%s/again.safetensors", test_folder());
    CHECK_OK(decant_save(made, path, &options, NULL, &err), &err);
    CHECK_OK(decant_open(path, NULL, &models[0], &err), &err);
    CHECK_OK(decant_open(path, NULL, &models[1], &err), &err);
    for (size_t i = 0; i < 4; i++) {
        CHECK_OK(decant_save(models[i % 2], path, &options, NULL, &err), &err);
        got = test_data(path, &got_len);
        CHECK_BYTES(got, got_len, bytes, len);
        free(got);
    }
    CHECK_OK(decant_open(path, NULL, &models[2], &err), &err);
    for (size_t i = 0; i < 3; i++) {
        CHECK_OK(decant_model_bytes(models[i], 0, &one, &err), &err);
        CHECK_OK(decant_bytes_read(one, 0, data, sizeof data, &err), &err);
        CHECK_BYTES(data, sizeof data, bytes + len - 120, sizeof data);
        decant_bytes_unref(&one);
        decant_model_close(&models[i]);
    }
    free(bytes);
    decant_model_close(&made);
}

/* SE-07: bytes are measured against dtype and shape before anything is written. */
TEST(save__refuses_bytes_that_do_not_fill_their_shape)
{
    static const uint64_t shapes[][2] = {{2, 2}, {1, 1}, {UINT64_C(1) << 33, UINT64_C(1) << 33}};

    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        decant_save_options options = DECANT_SAVE_OPTIONS_INIT;
        decant_tensor tensor = DECANT_TENSOR_INIT;
        decant_model *model = NULL;
        decant_bytes *bytes = NULL, *out = NULL;
        decant_error err;

        tensor.name = "short";
        tensor.dtype = DECANT_F32;
        tensor.rank = 2;
        tensor.shape = shapes[i];
        options.format = i % 2 ? "burnpack" : "safetensors";
        CHECK_OK(decant_bytes_wrap("0123456789abcdef", 15, NULL, NULL, &bytes, &err), &err);
        CHECK_OK(decant_model_create(&model, &err), &err);
        CHECK_OK(decant_model_add(model, &tensor, bytes, &err), &err);
        CHECK(decant_save_new(model, &out, &options, NULL, &err) != DECANT_OK);
        CHECK_TEXT(err.tensor, "short");
        CHECK(!out);
        decant_bytes_unref(&bytes);
        decant_model_close(&model);
    }
}

TEST(save__refuses_to_go_in_place_over_an_input)
{
    simdisk *disk = simdisk_new();
    dcn_env env = {.io = &disk->io, .cut = cut};
    dcn_target target = {.kind = DCN_TO_FILE_IN_PLACE, .path = "a.safetensors"};
    decant_save_options options = DECANT_SAVE_OPTIONS_INIT;
    decant_model *made = model_of_three(), *model = NULL;
    size_t len, got_len = 0;
    uint8_t *bytes = file_of(made, &len);
    const uint8_t *got;
    decant_error err;

    simdisk_put(disk, "a.safetensors", bytes, len);
    CHECK_OK(dcn_open(&env, "a.safetensors", NULL, &model, &err), &err);
    options.replace = 1;
    CHECK_FAILS(dcn_save(&env, model, &target, &options, false, NULL, &err), DECANT_SAME_FILE, &err);
    got = simdisk_get(disk, "a.safetensors", &got_len);
    CHECK_BYTES(got, got_len, bytes, len);
    free(bytes);
    decant_model_close(&model);
    decant_model_close(&made);
    simdisk_free(&disk);
}

TEST(save__refuses_an_input_that_has_changed_since_it_was_opened)
{
    simdisk *disk = simdisk_new();
    dcn_env env = {.io = &disk->io, .cut = cut};
    decant_model *made = model_of_three(), *model = NULL;
    size_t len;
    uint8_t *bytes = file_of(made, &len);
    decant_error err;

    simdisk_put(disk, "a.safetensors", bytes, len);
    CHECK_OK(dcn_open(&env, "a.safetensors", NULL, &model, &err), &err);
    simdisk_touch(disk, "a.safetensors");
    CHECK_FAILS(save_on(disk, model, "b.safetensors", NULL, false, NULL, &err), DECANT_CHANGED, &err);
    CHECK_EQ(err.side, DECANT_SIDE_INPUT);
    CHECK_HAS(err.path, "a.safetensors");
    free(bytes);
    decant_model_close(&model);
    decant_model_close(&made);
    simdisk_free(&disk);
}

/* Writes to an input while it is being poured, without changing its size. */
static int touch_input(void *ctx, uint64_t done, uint64_t total)
{
    if (done < total)
        simdisk_touch(ctx, "a.safetensors");
    return 0;
}

TEST(save__refuses_an_input_that_changes_while_it_is_poured)
{
    simdisk *disk = simdisk_new();
    dcn_env env = {.io = &disk->io, .cut = cut};
    decant_save_options options = DECANT_SAVE_OPTIONS_INIT;
    decant_model *made = model_of_three(), *model = NULL;
    size_t len;
    uint8_t *bytes = file_of(made, &len), into[1024];
    dcn_target memory = {.kind = DCN_TO_MEMORY, .dst = into, .len = sizeof into};
    decant_error err;

    options.format = "safetensors";
    options.progress = touch_input;
    options.progress_ctx = disk;
    simdisk_put(disk, "a.safetensors", bytes, len);
    CHECK_OK(dcn_open(&env, "a.safetensors", NULL, &model, &err), &err);
    CHECK_FAILS(save_on(disk, model, "b.safetensors", &options, false, NULL, &err), DECANT_CHANGED, &err);
    CHECK_EQ(err.side, DECANT_SIDE_INPUT);
    CHECK_HAS(err.path, "a.safetensors");
    CHECK_EQ(simdisk_file_count(disk), 1);
    decant_model_close(&model);

    CHECK_OK(dcn_open(&env, "a.safetensors", NULL, &model, &err), &err);
    CHECK_FAILS(dcn_save(&env, model, &memory, &options, false, NULL, &err), DECANT_CHANGED, &err);
    free(bytes);
    decant_model_close(&model);
    decant_model_close(&made);
    simdisk_free(&disk);
}

TEST(save__names_the_output_and_not_its_scratch_file_when_the_disk_fails)
{
    simdisk *disk = simdisk_new();
    decant_model *model = model_of_three();
    gates g;
    decant_error err;

    gates_up(&g, &disk->io);
    gates_fail(&g, (gates_fault){.one_verb = true, .verb = DCN_DO_WRITE, .status = DECANT_IO, .os_code = 5});
    CHECK_FAILS(save_on(disk, model, "a.safetensors", NULL, false, NULL, &err), DECANT_IO, &err);
    CHECK_TEXT(err.path, "a.safetensors");
    CHECK_EQ(err.side, DECANT_SIDE_OUTPUT);
    CHECK_EQ(simdisk_file_count(disk), 0);
    gates_down(&g);
    decant_model_close(&model);
    simdisk_free(&disk);
}

TEST(save__reports_what_is_in_place_though_perhaps_not_for_good)
{
    simdisk *disk = simdisk_new();
    decant_model *model = model_of_three();
    decant_report *report = NULL;
    gates g;
    decant_error err;

    gates_up(&g, &disk->io);
    gates_fail(&g, (gates_fault){.one_verb = true, .verb = DCN_DO_SYNC_DIR, .status = DECANT_IO});
    CHECK_FAILS(save_on(disk, model, "a.safetensors", NULL, false, &report, &err), DECANT_NOT_DURABLE, &err);
    CHECK(decant_report_published(report) && !decant_report_durable(report));
    gates_down(&g);
    decant_report_close(&report);
    decant_model_close(&model);
    simdisk_free(&disk);
}

TEST(save__chooses_the_format_by_option_or_extension_and_says_which_there_are)
{
    decant_save_options options = DECANT_SAVE_OPTIONS_INIT;
    decant_model *model = model_of_three();
    uint64_t size;
    char path[4096];
    decant_error err;

    options.format = "nonsense";
    CHECK_FAILS(decant_size(model, &options, &size, &err), DECANT_UNSUPPORTED, &err);
    CHECK_HAS(err.message, "'nonsense'");
    CHECK_HAS(err.hint, "safetensors");
    CHECK_FAILS(decant_size(model, NULL, &size, &err), DECANT_UNSUPPORTED, &err);
    snprintf(path, sizeof path, "%s/model.xyz", test_folder());
    CHECK_FAILS(decant_plan(model, path, NULL, NULL, &err), DECANT_UNSUPPORTED, &err);
    CHECK_HAS(err.hint, "safetensors");
    CHECK_EQ(err.side, DECANT_SIDE_OUTPUT);
    decant_model_close(&model);
}

/* burn-pack 0.23.0-pre.1, src/writer.rs; after Rust's Path. */
TEST(save__gives_an_extension_to_a_name_that_has_none)
{
    static const char *const names[][2] = {
        {"model", "model.safetensors"},
        {"model.bin", "model.bin"},
        {"x.tar.gz", "x.tar.gz"},
        {"v1.0", "v1.0"},
        {"model.", "model."},
        {"a.b/c", "a.b/c.safetensors"},
        {".hidden", ".hidden.safetensors"},
        {".hidden.x", ".hidden.x"},
        {"dir/", "dir.safetensors"},
        {"foo/.", "foo.safetensors"},
        {"foo/.//", "foo.safetensors"},
    };
    decant_save_options options = DECANT_SAVE_OPTIONS_INIT;
    simdisk *disk = simdisk_new();
    decant_model *model = model_of_three();
    decant_error err;

    simdisk_folder(disk, "a.b");
    options.format = "safetensors";
    options.append_extension = 1;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        decant_report *report = NULL;

        CHECK_OK(save_on(disk, model, names[i][0], &options, true, &report, &err), &err);
        CHECK_TEXT(decant_report_path(report), names[i][1]);
        decant_report_close(&report);
    }
    CHECK_FAILS(save_on(disk, model, "..", &options, true, NULL, &err), DECANT_BAD_CALL, &err);
    CHECK_FAILS(save_on(disk, model, "a/..", &options, true, NULL, &err), DECANT_BAD_CALL, &err);
    CHECK_FAILS(save_on(disk, model, "/", &options, true, NULL, &err), DECANT_BAD_CALL, &err);
    CHECK_FAILS(save_on(disk, model, "", &options, true, NULL, &err), DECANT_BAD_CALL, &err);
    decant_model_close(&model);
    simdisk_free(&disk);
}

/* An older program has a shorter struct: what it lacks is the default, whatever lies behind it. */
TEST(save__reads_no_further_than_the_options_are_long)
{
    decant_save_options options = DECANT_SAVE_OPTIONS_INIT;
    simdisk *disk = simdisk_new();
    decant_model *model = model_of_three();
    decant_error err;

    simdisk_put_text(disk, "a.safetensors", "old");
    options.size = offsetof(decant_save_options, replace);
    options.replace = 1;
    CHECK_FAILS(save_on(disk, model, "a.safetensors", &options, false, NULL, &err), DECANT_EXISTS, &err);
    options.size = 0;
    CHECK_OK(save_on(disk, model, "a.safetensors", &options, false, NULL, &err), &err);
    decant_model_close(&model);
    simdisk_free(&disk);
}

static void close_nothing(dcn_extra *extra)
{
    (void)extra;
}

TEST(save__refuses_a_loss_unless_it_is_allowed_and_then_reports_it)
{
    static const dcn_extra_ops ops = {.format = "other", .what = "vocabulary", .close = close_nothing};
    dcn_extra extra = {.ops = &ops, .refs = 2};
    decant_save_options options = DECANT_SAVE_OPTIONS_INIT;
    simdisk *disk = simdisk_new();
    decant_model *model = model_of_three();
    decant_report *report = NULL;
    decant_error err;

    model->extra = &extra;
    CHECK_FAILS(save_on(disk, model, "a.safetensors", NULL, false, &report, &err), DECANT_LOSS, &err);
    CHECK_EQ(simdisk_file_count(disk), 0);
    options.allow = DECANT_ALLOW_LOSS;
    CHECK_OK(save_on(disk, model, "a.safetensors", &options, false, &report, &err), &err);
    CHECK(decant_report_loss(report, 0) != NULL);
    CHECK(decant_report_loss(report, 1) == NULL);
    decant_report_close(&report);
    decant_model_close(&model);
    simdisk_free(&disk);
}

TEST(formats__are_listed_with_name_and_extension)
{
    decant_format_info info = {.size = sizeof info};
    bool safetensors = false;

    for (size_t i = 0; decant_format(i, &info); i++) {
        CHECK(info.name[0] && info.extension[0] && info.reads && info.writes);
        safetensors |= strcmp(info.name, "safetensors") == 0 && strcmp(info.extension, "safetensors") == 0;
    }
    CHECK(safetensors);
}

static decant_status take_all(void *ctx, const void *data, size_t len, decant_error *err)
{
    (void)ctx, (void)data, (void)len, (void)err;
    return DECANT_OK;
}

static decant_status read_zeros(void *ctx, uint64_t offset, void *dst, size_t len, decant_error *err)
{
    (void)ctx, (void)offset, (void)err;
    memset(dst, 0, len);
    return DECANT_OK;
}

/* What a caller left out is named, and nothing is touched. */
TEST(a_broken_call__is_refused_by_name)
{
    const decant_stream no_size = {.write = take_all}, no_write = {.size = sizeof no_write};
    const decant_reader no_reader_size = {.len = 8, .read = read_zeros}, no_read = {.size = sizeof no_read, .len = 8};
    decant_save_options options = DECANT_SAVE_OPTIONS_INIT;
    decant_model *model = model_of_three(), *opened = NULL;
    decant_error err;

    options.format = "safetensors";
    CHECK_FAILS(decant_save(model, NULL, &options, NULL, &err), DECANT_BAD_CALL, &err);
    CHECK_FAILS(decant_save_in_place(model, NULL, &options, NULL, &err), DECANT_BAD_CALL, &err);
    CHECK_FAILS(decant_save_stream(model, NULL, &options, NULL, &err), DECANT_BAD_CALL, &err);
    CHECK_FAILS(decant_save_stream(model, &no_size, &options, NULL, &err), DECANT_BAD_CALL, &err);
    CHECK_FAILS(decant_save_stream(model, &no_write, &options, NULL, &err), DECANT_BAD_CALL, &err);
    CHECK_FAILS(decant_open(NULL, NULL, &opened, &err), DECANT_BAD_CALL, &err);
    CHECK_FAILS(decant_open_reader(NULL, "r", NULL, &opened, &err), DECANT_BAD_CALL, &err);
    CHECK_FAILS(decant_open_reader(&no_reader_size, "r", NULL, &opened, &err), DECANT_BAD_CALL, &err);
    CHECK_FAILS(decant_open_reader(&no_read, "r", NULL, &opened, &err), DECANT_BAD_CALL, &err);
    CHECK(opened == NULL);
    decant_model_close(&model);
}
