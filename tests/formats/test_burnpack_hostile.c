/*
 * Small files of which every length, offset and byte is wrong in turn. Whatever opens is compared with a second reader, slow
 * and plain, that knows only what must hold of a file that is taken.
 */
#include "support/burnpack.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/dtype.h"
#include "base/endian.h"

static const char *const files[] = {"one-f32",         "three-in-caller-order", "scalars-each-kind",
                                    "zero-size",       "quant-blocks",          "param-ids",
                                    "metadata-strings"};
enum { FILES = sizeof files / sizeof *files };

static uint8_t *load(const char *name, size_t *len)
{
    char path[128];

    snprintf(path, sizeof path, "%s.bpk", name);
    return test_data(path, len);
}

static int by_offset(const void *a, const void *b)
{
    const dcn_entry *x = a, *y = b;

    return (x->data.offset > y->data.offset) - (x->data.offset < y->data.offset);
}

/* What must hold of every model that opened, by rules of its own. */
static void check_sound(const decant_model *model, const uint8_t *file, size_t len)
{
    uint64_t data = (10 + (uint64_t)dcn_le32(file + 6) + 255) / 256 * 256, end = data;
    dcn_entry *entries = malloc(model->count * sizeof *entries + 1);

    CHECK(entries);
    CHECK_EQ(dcn_le32(file), 0x4255524E);
    CHECK(dcn_le16(file + 4) <= 1);
    if (model->count)
        memcpy(entries, model->entries, model->count * sizeof *entries);
    qsort(entries, model->count, sizeof *entries, by_offset);
    for (size_t i = 0; i < model->count; i++) {
        const dcn_entry *e = &entries[i];

        CHECK(e->data.offset >= data && e->data.offset <= len && e->data.len <= len - e->data.offset);
        if (e->dtype != DECANT_QFLOAT) {
            __uint128_t product = dcn_dtype(e->dtype)->bits / 8;

            for (size_t k = 0; k < e->rank; k++)
                if (e->shape[k] == 0)
                    product = 0;
            for (size_t k = 0; k < e->rank && product; k++) {
                product *= e->shape[k];
                CHECK(product >> 64 == 0);
            }
            CHECK_EQ((uint64_t)product, e->data.len);
        }
        if (e->data.len)
            CHECK(e->data.offset >= end);
        if (e->data.offset + e->data.len > end)
            end = e->data.offset + e->data.len;
        for (size_t k = i + 1; k < model->count; k++)
            CHECK(e->name_len != entries[k].name_len || memcmp(e->name, entries[k].name, e->name_len) != 0);
    }
    CHECK(model->count == 0 || end <= len);
    CHECK(len <= end);
    free(entries);
}

/* What opens must be sound, and the same when it is written and opened again. */
static bool try_file(const uint8_t *file, size_t len)
{
    decant_model *model = NULL;
    decant_error err = {0};
    bool opens = model_open(&dcn_burnpack, file, len, NULL, false, &model, &err) == DECANT_OK;

    if (opens) {
        check_sound(model, file, len);
        check_comes_back(&dcn_burnpack, model, false);
    } else {
        check_any_file(&dcn_burnpack, file, len, true);
    }
    decant_model_close(&model);
    return opens;
}

TEST(any_byte_changed__is_refused_or_read_soundly)
{
    static const uint8_t odd[] = {0x00, 0x01, 0x17, 0x18, 0x1B, 0x5F, 0x7F, 0x80, 0x9F, 0xA0, 0xBF, 0xC2, 0xF6, 0xFF};

    for (size_t f = 0; f < FILES; f++) {
        size_t len, opened = 0, metadata;
        uint8_t *file = load(files[f], &len);

        CHECK(try_file(file, len));
        metadata = 10 + dcn_le32(file + 6);
        metadata = metadata < 700 ? metadata : 700;
        for (size_t i = 0; i < metadata; i++) {
            uint8_t was = file[i];

            for (size_t k = 0; k < sizeof odd + 3; k++) {
                file[i] = k < sizeof odd
                              ? odd[k]
                              : (uint8_t)(was + k - sizeof odd - 1); /* the last: one less, itself, one more */
                opened += try_file(file, len);
            }
            file[i] = was;
        }
        CHECK(opened > metadata); /* itself, at least, and what only changes a name */
        free(file);
    }
}

TEST(any_prefix__is_refused_or_read_soundly)
{
    for (size_t f = 0; f < FILES; f++) {
        size_t len, data;
        uint8_t *file = load(files[f], &len);

        data = (10 + dcn_le32(file + 6) + 255) / 256 * 256;
        for (size_t cut = 0; cut < len; cut++) {
            if (try_file(file, cut)) /* where there are no tensors, nothing need follow the metadata */
                CHECK(cut >= 10 + dcn_le32(file + 6) && len == data);
        }
        free(file);
    }
}

/* Every number of the schema set to what is around the right one and around what its bytes can say. */
TEST(any_number_changed__is_refused_unless_it_is_the_right_one)
{
    static const char format[] = "a1 'tensors' a2 'a' a3 'dtype' 'F32' 'shape' 82 1b%016llx 1b%016llx 'data_offsets' 82"
                                 "1b%016llx 1b%016llx 'b' a3 'dtype' 'U8' 'shape' 81 1b%016llx 'data_offsets' 82"
                                 "1b%016llx 1b%016llx";
    static const unsigned long long right[] = {2, 3, 0, 24, 5, 256, 261};
    enum { NUMBERS = sizeof right / sizeof *right };

    for (size_t i = 0; i < NUMBERS; i++) {
        unsigned long long values[] = {0,         1,          right[i] - 1, right[i],       right[i] + 1,
                                       INT64_MAX, UINT64_MAX, 1ull << 62,   UINT64_MAX - 1, UINT64_MAX - 255};

        for (size_t k = 0; k < sizeof values / sizeof *values; k++) {
            unsigned long long n[NUMBERS];
            char text[1024];
            uint8_t *file;
            size_t len;

            memcpy(n, right, sizeof n);
            n[i] = values[k];
            snprintf(text, sizeof text, format, n[0], n[1], n[2], n[3], n[4], n[5], n[6]);
            file = bpk_file(text, 261, &len);
            if (try_file(file, len) != (values[k] == right[i]))
                test_fail(__FILE__, __LINE__, "number %zu as %llu", i, values[k]);
            free(file);
        }
    }
}

TEST(the_length_of_the_metadata__changed_is_refused)
{
    size_t len;
    uint8_t *file = load("three-in-caller-order", &len);
    uint32_t right = dcn_le32(file + 6);
    uint32_t values[] = {0, 1, right - 1, right + 1, (uint32_t)len, (uint32_t)len - 10, INT32_MAX, UINT32_MAX};

    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        dcn_put_le(file + 6, values[i], 4);
        CHECK(!try_file(file, len));
    }
    free(file);
}

/* Random bytes behind a good prefix, and pieces of good files put together. */
TEST(noise__is_refused_or_read_soundly)
{
    uint64_t state = 3;
    size_t len;
    uint8_t *good = load("quant-blocks", &len), metadata[256];

    for (int i = 0; i < 20000; i++) {
        size_t metadata_len = test_random(&state) % sizeof metadata, file_len;
        uint8_t *file;

        for (size_t k = 0; k < metadata_len;) {
            size_t from = 10 + test_random(&state) % 600, run = 1 + test_random(&state) % 40;

            while (run-- && k < metadata_len)
                metadata[k++] = good[from++];
        }
        if (test_random(&state) % 2)
            memcpy(metadata, "\xA1\x67tensors\xBF", metadata_len < 10 ? metadata_len : 10);
        file = bpk_file_of(metadata, metadata_len, 64, &file_len);
        try_file(file, file_len);
        free(file);
    }
    free(good);
}
