#include "survey/digest.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/alloc.h"
#include "support/cargo.h"
#include "support/models.h"
#include "support/sha256.h"

static const dcn_cut cut = {.slot = 64, .slots = 2, .direct = 1000};
static const decant_digest_options defaults = {0};
static decant_error err;

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The definition, taken at its word: lines are made, sorted and hashed. `names` are JSON already. */
static const char *digest_of_lines(const decant_model *model, const char *const *names)
{
    size_t count = decant_model_count(model), len = 0;
    char **lines = calloc(count + 1, sizeof *lines), *all = calloc(count + 1, 512);
    const char *hex;

    for (size_t i = 0; i < count; i++) {
        decant_tensor t = DECANT_TENSOR_INIT;
        uint8_t *data = entry_bytes(&model->entries[i]);
        char shape[128] = "";

        decant_model_tensor(model, i, &t);
        for (size_t k = 0; k < t.rank; k++)
            snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%s%" PRIu64, k ? "," : "", t.shape[k]);
        lines[i] = malloc(512);
        snprintf(lines[i], 512, "%s %s [%s] %s\n", sha256_hex(data, t.len), decant_dtype_name(t.dtype), shape,
                 names[i]);
        free(data);
    }
    qsort(lines, count, sizeof *lines, by_bytes);
    for (size_t i = 0; i < count; i++) {
        memcpy(all + len, lines[i], strlen(lines[i]));
        len += strlen(lines[i]);
        free(lines[i]);
    }
    hex = sha256_hex(all, len);
    free(all);
    free(lines);
    return hex;
}

/* All of one content and many of one dtype and shape, so that every part of a line decides. */
TEST(digest__is_of_lines_sorted_by_bytes_whatever_decides_their_order)
{
    static const char *const names[] = {"a",     "a!",    "a\"", "a\\", "ab",    "a\n",       "a\x01", "a\x02",
                                        "a\x0b", "a\x1f", "a\t", "a~",  "a\x7f", "a\xc3\xa9", "",      "a ",
                                        "A",     "a]",    "a\b", "a\f", "a\r",   "a#"};
    static const char *const json[] = {"\"a\"",    "\"a!\"",       "\"a\\\"\"",    "\"a\\\\\"",     "\"ab\"",
                                       "\"a\\n\"", "\"a\\u0001\"", "\"a\\u0002\"", "\"a\\u000b\"",  "\"a\\u001f\"",
                                       "\"a\\t\"", "\"a~\"",       "\"a\x7f\"",    "\"a\xc3\xa9\"", "\"\"",
                                       "\"a \"",   "\"A\"",        "\"a]\"",       "\"a\\b\"",      "\"a\\f\"",
                                       "\"a\\r\"", "\"a#\""};
    static const struct {
        decant_dtype dtype;
        size_t rank;
        uint64_t shape[3];
    } kinds[] = {
        {DECANT_U8, 1, {24}},      {DECANT_I8, 1, {24}},    {DECANT_F32, 2, {2, 3}},    {DECANT_F32, 2, {3, 2}},
        {DECANT_F32, 2, {1, 6}},   {DECANT_F32, 1, {6}},    {DECANT_F32, 3, {2, 3, 1}}, {DECANT_BF16, 1, {12}},
        {DECANT_BOOL_U8, 1, {24}}, {DECANT_U8, 2, {2, 12}}, {DECANT_F32, 3, {2, 1, 3}},
    };
    enum { NAMES = sizeof names / sizeof *names, KINDS = sizeof kinds / sizeof *kinds };
    uint64_t random = 7;

    for (unsigned round = 0; round < 200; round++) {
        decant_model *model = NULL;
        const char *in_order[NAMES];
        char hex[DECANT_DIGEST];
        size_t start = test_random(&random), step = 1 + 2 * (test_random(&random) % 10), count = 0;

        CHECK_OK(decant_model_create(&model, &err), &err);
        for (size_t i = 0; i < NAMES; i++) {
            size_t n = (start + i * (step == 11 ? 13 : step)) % NAMES, kind = test_random(&random) % KINDS;

            model_add(model, names[n], kinds[kind].dtype, kinds[kind].rank, kinds[kind].shape, NULL,
                      "the same for all of them", 24);
            in_order[count++] = json[n];
        }
        CHECK_OK(dcn_digest(model, &cut, &defaults, NULL, NULL, hex, &err), &err);
        CHECK_TEXT(hex, digest_of_lines(model, in_order));
        decant_model_close(&model);
    }
}

typedef struct told {
    const decant_model *model;
    size_t count, stop_at;
} told;

static int tell(void *ctx, const decant_tensor *tensor, const char *hex)
{
    told *t = ctx;
    uint8_t *data = entry_bytes(&t->model->entries[t->count]);

    CHECK(tensor->name == t->model->entries[t->count].name);
    CHECK_TEXT(hex, sha256_hex(data, tensor->len));
    free(data);
    return ++t->count == t->stop_at;
}

TEST(digest__tells_of_each_tensor_in_the_models_order_and_stops_when_told_to)
{
    simdisk *disk = simdisk_new();
    char hex[DECANT_DIGEST], again[DECANT_DIGEST];
    cargo c;
    told t;

    cargo_load(&c, disk, CARGO_MEMORY | CARGO_FILE | CARGO_ROPE, 40, 700, 5);
    t = (told){.model = c.model};
    CHECK_OK(dcn_digest(c.model, &cut, &defaults, tell, &t, hex, &err), &err);
    CHECK_EQ(t.count, 40);
    CHECK_OK(decant_digest(c.model, NULL, NULL, NULL, again, &err), &err);
    CHECK_TEXT(again, hex);
    t = (told){.model = c.model, .stop_at = 3};
    CHECK_FAILS(dcn_digest(c.model, &cut, &defaults, tell, &t, again, &err), DECANT_CANCELLED, &err);
    CHECK_EQ(t.count, 3);
    cargo_close(&c);
    simdisk_free(&disk);
}

TEST(digest__asks_providers_once_and_in_turn)
{
    simdisk *disk = simdisk_new();
    char hex[DECANT_DIGEST];
    cargo c;

    cargo_load(&c, disk, CARGO_ALL, 40, 700, 5);
    CHECK_OK(dcn_digest(c.model, &cut, &defaults, NULL, NULL, hex, &err), &err);
    recorder_check(&c.rec, c.lens, 40);
    cargo_close(&c);
    simdisk_free(&disk);
}

TEST(digest__leaves_nothing_whichever_allocation_fails)
{
    simdisk *disk = simdisk_new();
    char hex[DECANT_DIGEST];
    cargo c;
    size_t live;

    cargo_load(&c, disk, CARGO_FILE | CARGO_MEMORY, 5, 100, 1);
    CHECK_OK(dcn_digest(c.model, &cut, &defaults, NULL, NULL, hex, &err), &err);
    live = test_alloc_live();
    for (size_t n = 0;; n++) {
        decant_status rc;

        test_alloc_fail(n);
        rc = dcn_digest(c.model, &cut, &defaults, NULL, NULL, hex, &err);
        test_alloc_disarm();
        CHECK_EQ(test_alloc_live(), live);
        if (!test_alloc_fired()) {
            CHECK_EQ(rc, DECANT_OK);
            CHECK(n > 5);
            break;
        }
        CHECK_EQ(rc, DECANT_NOMEM);
    }
    cargo_close(&c);
    simdisk_free(&disk);
}

TEST(digest__refuses_what_no_save_would_take)
{
    char hex[DECANT_DIGEST];
    decant_model *model = NULL;

    CHECK_OK(decant_model_create(&model, &err), &err);
    model_add(model, "short", DECANT_F32, 1, (const uint64_t[]){2}, NULL, "1234", 4);
    CHECK_FAILS(decant_digest(model, NULL, NULL, NULL, hex, &err), DECANT_MISMATCH, &err);
    CHECK_TEXT(err.tensor, "short");
    CHECK_FAILS(decant_digest(NULL, NULL, NULL, NULL, hex, &err), DECANT_BAD_CALL, &err);
    CHECK_FAILS(decant_digest(model, NULL, NULL, NULL, NULL, &err), DECANT_BAD_CALL, &err);
    decant_model_close(&model);
}
