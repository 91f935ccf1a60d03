#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/env.h"
#include "support/alloc.h"
#include "support/gates.h"
#include "support/safetensors.h"
#include "support/simdisk.h"

static const char header[] = "{\"a\":{\"dtype\":\"U8\",\"shape\":[5],\"data_offsets\":[0,5]},"
                             "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[5,13]}}";

static void check_model(decant_model **model, const uint8_t *file, size_t len)
{
    decant_bytes *bytes = NULL;
    uint8_t got[8];
    decant_error err;

    CHECK_EQ(decant_model_count(*model), 2);
    CHECK_TEXT(decant_model_format(*model), "safetensors");
    CHECK_OK(decant_model_bytes(*model, 1, &bytes, &err), &err);
    CHECK_OK(decant_bytes_read(bytes, 0, got, sizeof got, &err), &err);
    CHECK_BYTES(got, sizeof got, file + len - 8, 8);
    decant_bytes_unref(&bytes);
    decant_model_close(model);
}

/* A file with `before` bytes of something else in front, and some behind. */
static void write_file(const char *path, const uint8_t *file, size_t len, size_t before)
{
    FILE *out = fopen(path, "wb");

    CHECK(out != NULL);
    for (size_t i = 0; i < before; i++)
        fputc('#', out);
    CHECK_EQ(fwrite(file, 1, len, out), len);
    if (before)
        fputs("behind it", out);
    CHECK_EQ(fclose(out), 0);
}

TEST(open__reads_a_model_from_a_path)
{
    size_t len;
    uint8_t *file = st_file(header, 13, &len);
    decant_model *model = NULL;
    char path[4096];
    size_t index;
    decant_error err;

    snprintf(path, sizeof path, "%s/a.safetensors", test_folder());
    write_file(path, file, len, 0);
    CHECK_OK(decant_open(path, NULL, &model, &err), &err);
    CHECK_FAILS(decant_model_find(model, "no", 2, &index, &err), DECANT_NOT_FOUND, &err);
    CHECK_TEXT(err.path, path);
    check_model(&model, file, len);
    free(file);
}

TEST(open__reads_a_model_from_a_range_of_a_descriptor)
{
    size_t len;
    uint8_t *file = st_file(header, 13, &len);
    decant_model *model = NULL;
    char path[4096];
    int fd;
    decant_error err;

    snprintf(path, sizeof path, "%s/a.safetensors", test_folder());
    write_file(path, file, len, 100);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    CHECK_OK(decant_open_fd(fd, 100, len, NULL, &model, &err), &err);
    CHECK_EQ(close(fd), 0); /* it was duplicated */
    check_model(&model, file, len);

    fd = open(path, O_RDONLY | O_CLOEXEC);
    CHECK_FAILS(decant_open_fd(fd, 100, len + 100, NULL, &model, &err), DECANT_TRUNCATED, &err);
    CHECK_EQ(err.side, DECANT_SIDE_INPUT);
    CHECK_FAILS(decant_open_fd(fd, 5000, 0, NULL, &model, &err), DECANT_TRUNCATED, &err);
    CHECK_EQ(close(fd), 0);
    CHECK(decant_open_fd(fd, 0, 0, NULL, &model, &err) != DECANT_OK); /* it is closed */
    free(file);
}

TEST(open__reads_a_model_from_bytes)
{
    size_t len;
    uint8_t *file = st_file(header, 13, &len);
    decant_bytes *bytes = NULL;
    decant_model *model = NULL;
    decant_error err;

    CHECK_OK(decant_bytes_copy(file, len, &bytes, &err), &err);
    CHECK_OK(decant_open_bytes(bytes, "memory", NULL, &model, &err), &err);
    decant_bytes_unref(&bytes);
    check_model(&model, file, len);

    CHECK_OK(decant_bytes_copy(file, len - 1, &bytes, &err), &err);
    CHECK(decant_open_bytes(bytes, "memory", NULL, &model, &err) != DECANT_OK);
    CHECK_TEXT(err.path, "memory");
    CHECK_EQ(err.side, DECANT_SIDE_INPUT);
    decant_bytes_unref(&bytes);
    free(file);
}

typedef struct shelf {
    const uint8_t *data;
    size_t len;
    int released;
} shelf;

static decant_status read_shelf(void *ctx, uint64_t offset, void *dst, size_t len, decant_error *err)
{
    const shelf *s = ctx;

    if (offset + len > s->len)
        return decant_error_set(err, DECANT_IO, "past the end of the shelf");
    memcpy(dst, s->data + offset, len);
    return DECANT_OK;
}

static void release_shelf(void *ctx)
{
    ((shelf *)ctx)->released++;
}

TEST(open__reads_a_model_from_callbacks_and_releases_them_once_at_the_end)
{
    size_t len;
    uint8_t *file = st_file(header, 13, &len);
    shelf s = {file, len, 0};
    decant_reader reader = {sizeof reader, len, read_shelf, release_shelf, &s};
    decant_bytes *bytes = NULL;
    decant_model *model = NULL;
    decant_error err;

    CHECK_OK(decant_open_reader(&reader, "a shelf", NULL, &model, &err), &err);
    CHECK_OK(decant_model_bytes(model, 0, &bytes, &err), &err);
    check_model(&model, file, len);
    CHECK_EQ(s.released, 0); /* bytes handed out live on */
    decant_bytes_unref(&bytes);
    CHECK_EQ(s.released, 1);
    free(file);
}

TEST(open__releases_the_callbacks_of_a_model_without_tensors)
{
    size_t len;
    uint8_t *file = st_file("{}", 0, &len);
    shelf s = {file, len, 0};
    decant_reader reader = {sizeof reader, len, read_shelf, release_shelf, &s};
    decant_model *model = NULL;
    decant_error err;

    CHECK_OK(decant_open_reader(&reader, "a shelf", NULL, &model, &err), &err);
    decant_model_close(&model);
    CHECK_EQ(s.released, 1);
    free(file);
}

TEST(open__leaves_callbacks_to_the_caller_on_failure_and_keeps_their_words)
{
    size_t len;
    uint8_t *file = st_file(header, 13, &len);
    decant_model *model = NULL;
    decant_error err;
    bool fired = true;

    for (size_t n = 0; fired; n++) {
        shelf s = {file, len, 0};
        decant_reader reader = {sizeof reader, len, read_shelf, release_shelf, &s};
        decant_status rc;

        test_alloc_fail(n);
        rc = decant_open_reader(&reader, "a shelf", NULL, &model, &err);
        fired = test_alloc_fired();
        test_alloc_disarm();
        CHECK_EQ(rc, fired ? DECANT_NOMEM : DECANT_OK);
        CHECK_EQ(s.released, 0);
        decant_model_close(&model);
        CHECK_EQ(s.released, !fired);
    }

    shelf s = {file, 4, 0};
    decant_reader reader = {sizeof reader, len, read_shelf, release_shelf, &s};

    CHECK_FAILS(decant_open_reader(&reader, "a shelf", NULL, &model, &err), DECANT_IO, &err);
    CHECK_TEXT(err.message, "past the end of the shelf");
    CHECK_TEXT(err.path, "a shelf");
    CHECK_EQ(s.released, 0);
    free(file);
}

TEST(open__says_what_cannot_be_opened)
{
    decant_open_options options = {.size = sizeof options, .format = "nonsense"};
    decant_model *model = NULL;
    char path[4096];
    decant_error err;

    snprintf(path, sizeof path, "%s/none", test_folder());
    CHECK_FAILS(decant_open(path, NULL, &model, &err), DECANT_NOT_FOUND, &err);
    CHECK_TEXT(err.path, path);
    CHECK_EQ(err.side, DECANT_SIDE_INPUT);
    CHECK(decant_open(test_folder(), NULL, &model, &err) != DECANT_OK);
    CHECK_EQ(err.side, DECANT_SIDE_INPUT);
    write_file(path, (const uint8_t *)"{}", 2, 0);
    CHECK_FAILS(decant_open(path, &options, &model, &err), DECANT_UNSUPPORTED, &err);
    CHECK_HAS(err.message, "'nonsense'");
}

TEST(open__survives_the_failure_of_any_allocation_and_leaves_nothing_open)
{
    simdisk *disk = simdisk_new();
    dcn_env env = {.io = &disk->io, .cut = dcn_cut_default};
    size_t len;
    uint8_t *file = st_file(header, 13, &len);
    bool fired = true;

    simdisk_put(disk, "a.safetensors", file, len);
    for (size_t n = 0; fired; n++) {
        decant_model *model = NULL;
        decant_status rc;
        decant_error err;

        test_alloc_fail(n);
        rc = dcn_open(&env, "a.safetensors", NULL, &model, &err);
        fired = test_alloc_fired();
        test_alloc_disarm();
        CHECK_EQ(rc, fired ? DECANT_NOMEM : DECANT_OK);
        CHECK_EQ(model != NULL, !fired);
        decant_model_close(&model);
        CHECK_EQ(disk->open_files + disk->open_dirs, 0);
    }
    free(file);
    simdisk_free(&disk);
}

/* --- what it reads ------------------------------------------------------------------------------------------------ */

/* The head, by which the format is known; the length of the header; the header. */
enum { READS_TO_OPEN = 3 };

/* So many tensors of 2000 bytes, whose names have so many. */
static decant_model *model_of_many(size_t count, int name_len)
{
    static const uint64_t shape[] = {2000};
    char name[1024];
    decant_model *model = NULL;
    decant_error err;

    CHECK_OK(decant_model_create(&model, &err), &err);
    for (size_t i = 0; i < count; i++) {
        snprintf(name, sizeof name, "%0*zu", name_len, i);
        model_add_stream(model, name, DECANT_U8, 1, shape, i);
    }
    return model;
}

/* Opens the model as a file of this format, and plans to save it as one of the other; counts what of the file is read. */
static void check_reads(const dcn_format *format, const decant_model *written, uint64_t header_least)
{
    simdisk *disk = simdisk_new();
    dcn_env env = {.io = &disk->io, .cut = dcn_cut_default};
    dcn_target target = {.kind = DCN_TO_FILE, .path = "out"};
    decant_save_options options = DECANT_SAVE_OPTIONS_INIT;
    decant_model *model = NULL;
    uint8_t *file;
    uint64_t start;
    size_t len;
    gates g;
    decant_error err;

    CHECK_OK(model_render(format, written, NULL, &file, &len, &err), &err);
    simdisk_put(disk, "in", file, len);
    free(file);
    gates_up(&g, &disk->io);

    CHECK_OK(dcn_open(&env, "in", NULL, &model, &err), &err);
    CHECK_EQ(decant_model_count(model), decant_model_count(written));
    start = model->entries[0].data.offset; /* of the data: the end of the header */
    CHECK(start >= header_least);
    CHECK(len > start + 2 * DCN_HEAD); /* so that reading all would show */
    CHECK(g.count[DCN_DO_READ] <= READS_TO_OPEN);
    CHECK(g.bytes[DCN_DO_READ] <= DCN_HEAD + start);

    options.format = format == &dcn_safetensors ? "burnpack" : "safetensors";
    CHECK_OK(dcn_save(&env, model, &target, &options, true, NULL, &err), &err);
    target.kind = DCN_TO_NOWHERE;
    CHECK_OK(dcn_save(&env, model, &target, &options, true, NULL, &err), &err);
    CHECK(g.count[DCN_DO_READ] <= READS_TO_OPEN);
    CHECK_TEXT(simdisk_names(disk, "."), "in");

    decant_model_close(&model);
    gates_down(&g);
    simdisk_free(&disk);
}

TEST(open__reads_the_header_alone_in_as_many_reads_however_large_it_is_and_planning_reads_nothing)
{
    decant_model *small = model_of_many(8, 1), *large = model_of_many(12000, 1000);

    for (size_t i = 0; dcn_format_at(i); i++) {
        check_reads(dcn_format_at(i), small, 1);
        check_reads(dcn_format_at(i), large, 12000000);
    }
    decant_model_close(&small);
    decant_model_close(&large);
}
