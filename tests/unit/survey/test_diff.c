#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>

#include "api/env.h"
#include "support/alloc.h"
#include "support/safetensors.h"
#include "support/simdisk.h"
#include "survey/diff.h"

/* What the callback was told, a line each. */
static char told[4096];
static size_t told_most; /* it stops after so many; 0: never */
static size_t told_count;
static decant_error err;
static decant_diff_totals totals;
static decant_diff_options how;

static int tell(void *ctx, const decant_difference *d)
{
    size_t used = strlen(told);

    (void)ctx;
    snprintf(told + used, sizeof told - used, "%d %.*s %llu/%llu@%llu%s %s|%s\n", (int)d->kind, (int)d->name_len,
             d->name, (unsigned long long)d->elements, (unsigned long long)d->total, (unsigned long long)d->first,
             d->in_bytes ? "b" : "", d->a_text, d->b_text);
    return ++told_count == told_most;
}

static decant_status diff(const decant_model *a, const decant_model *b, size_t slot)
{
    told[0] = '\0';
    told_count = 0;
    totals = (decant_diff_totals){0};
    return dcn_diff(a, b, slot, &how, tell, NULL, &totals, &err);
}

static decant_model *empty(void)
{
    decant_model *model = NULL;

    CHECK_OK(decant_model_create(&model, &err), &err);
    return model;
}

/* Adds a vector of `len` bytes, and lets `bytes` go. */
static void add_bytes(decant_model *model, const char *name, decant_dtype dtype, uint64_t extent, decant_bytes *bytes)
{
    decant_tensor tensor = {.size = sizeof tensor, .name = name, .dtype = dtype, .rank = 1, .shape = &extent};

    CHECK_OK(decant_model_add(model, &tensor, bytes, &err), &err);
    decant_bytes_unref(&bytes);
}

static void add(decant_model *model, const char *name, decant_dtype dtype, uint64_t extent, const void *data,
                size_t len)
{
    decant_bytes *bytes = NULL;

    CHECK_OK(decant_bytes_copy(data, len, &bytes, &err), &err);
    add_bytes(model, name, dtype, extent, bytes);
}

/* A provider by range of `len` bytes: 0, 1, 2 ... with the byte at `odd` one more; fails from `broken` on. */
typedef struct ramp {
    uint64_t odd, broken;
} ramp;

static decant_status read_ramp(void *ctx, uint64_t offset, void *dst, size_t len, decant_error *e)
{
    const ramp *r = ctx;

    if (offset + len > r->broken)
        return decant_error_set(e, DECANT_IO, "the ramp ends here");
    for (size_t i = 0; i < len; i++)
        ((uint8_t *)dst)[i] = (uint8_t)(offset + i + (offset + i == r->odd));
    return DECANT_OK;
}

static void add_ramp(decant_model *model, const char *name, uint64_t len, ramp *r)
{
    decant_provider provider = {.size = sizeof provider, .read = read_ramp, .ctx = r};
    decant_bytes *bytes = NULL;

    CHECK_OK(decant_bytes_defer(len, &provider, &bytes, &err), &err);
    add_bytes(model, name, DECANT_U8, len, bytes);
}

TEST(diff__reads_both_in_slots_and_counts_across_them)
{
    static const size_t slots[] = {8, 16, 104, 4096};
    ramp plain = {UINT64_MAX, UINT64_MAX};

    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++)
        for (uint64_t odd = 0; odd <= 100; odd++) { /* 100: none */
            ramp other = {odd, UINT64_MAX};
            decant_model *a = empty(), *b = empty();
            char wanted[64] = "";

            add_ramp(a, "t", 100, &plain);
            add_ramp(b, "t", 100, &other);
            CHECK_OK(diff(a, b, slots[i]), &err);
            if (odd < 100)
                snprintf(wanted, sizeof wanted, "5 t 1/100@%d %d|%d\n", (int)odd, (int)odd, (int)odd + 1);
            CHECK_TEXT(told, wanted);
            CHECK_EQ(totals.differences, odd < 100);
            CHECK_EQ(totals.bytes, 100);
            decant_model_close(&b);
            decant_model_close(&a);
        }
}

TEST(diff__goes_in_order_of_name_whatever_order_the_models_have)
{
    enum { NAMES = 500 };
    decant_model *a = empty(), *b = empty();
    uint64_t random = 1;
    unsigned last = 0, seen = 0;

    for (unsigned i = 0; i < NAMES; i++) {
        char name[32];

        snprintf(name, sizeof name, "%04u", i * 7 % NAMES);
        add(a, name, DECANT_U8, 1, "a", 1);
        snprintf(name, sizeof name, "%04u", (NAMES - 1 - i) * 11 % NAMES);
        add(b, name, DECANT_U8, 1, test_random(&random) % 2 ? "a" : "b", 1);
    }
    CHECK_OK(diff(a, b, 8), &err);
    CHECK_EQ(totals.tensors, NAMES);
    CHECK(totals.differences > 100 && totals.differences < 400);
    for (const char *line = told; *line && strchr(line, '\n'); line = strchr(line, '\n') + 1) {
        unsigned kind, name;

        if (sscanf(line, "%u %u", &kind, &name) != 2)
            break;
        CHECK(seen++ == 0 || name > last);
        last = name;
    }
    CHECK(seen > 50);
    decant_model_close(&b);
    decant_model_close(&a);
}

TEST(diff__counts_packed_types_and_odd_lengths_by_the_byte)
{
    decant_model *a = empty(), *b = empty();

    add(a, "f4", DECANT_F4, 4, "\x12\x34", 2);
    add(b, "f4", DECANT_F4, 4, "\x12\x35", 2);
    add(a, "long", DECANT_U8, 3, "abc", 3);
    add(b, "long", DECANT_U8, 3, "abcde", 5);
    CHECK_OK(diff(a, b, 8), &err);
    CHECK_TEXT(told, "5 f4 1/2@1b 0x34|0x35\n5 long 2/5@3b nothing|more\n");
    decant_model_close(&b);
    decant_model_close(&a);
}

TEST(diff__a_tensor_that_cannot_be_read_is_named)
{
    ramp good = {UINT64_MAX, UINT64_MAX}, bad = {UINT64_MAX, 50};
    decant_model *a = empty(), *b = empty();

    add_ramp(a, "broken.weight", 100, &good);
    add_ramp(b, "broken.weight", 100, &bad);
    CHECK_FAILS(diff(a, b, 8), DECANT_IO, &err);
    CHECK_TEXT(err.tensor, "broken.weight");
    CHECK_EQ(err.side == DECANT_SIDE_NONE, 0);
    CHECK_HAS(decant_error_text(&err), "the ramp ends here");
    CHECK_EQ(totals.tensors, 0);
    decant_model_close(&b);
    decant_model_close(&a);
}

TEST(diff__values_are_compared_by_kind_and_do_not_count)
{
    decant_model *a = empty(), *b = empty();
    decant_value text = {.type = DECANT_VALUE_TEXT, .as.text = {"x", 1}},
                 number = {.type = DECANT_VALUE_I64, .as.i64 = -1},
                 other = {.type = DECANT_VALUE_U64, .as.u64 = UINT64_MAX};

    CHECK_OK(decant_model_set(a, "k", 1, &text, &err), &err);
    CHECK_OK(decant_model_set(a, "k", 1, &number, &err), &err);
    CHECK_OK(decant_model_set(a, "b", 1, &number, &err), &err);
    CHECK_OK(decant_model_set(b, "k", 1, &text, &err), &err);
    CHECK_OK(decant_model_set(b, "k", 1, &other, &err), &err); /* the same bits, another type */
    CHECK_OK(diff(a, b, 8), &err);
    CHECK_TEXT(told, "6 b 0/0@0 -1|\n6 k 0/0@0 -1|18446744073709551615\n");
    CHECK_EQ(totals.differences, 0);
    decant_model_close(&b);
    decant_model_close(&a);
}

TEST(diff__stops_when_it_is_told_to)
{
    decant_model *a = empty(), *b = empty();

    add(a, "x", DECANT_U8, 1, "a", 1);
    add(a, "y", DECANT_U8, 1, "a", 1);
    told_most = 1;
    CHECK_FAILS(diff(a, b, 8), DECANT_CANCELLED, &err);
    CHECK_EQ(told_count, 1);
    told_most = 0;
    decant_model_close(&b);
    decant_model_close(&a);
}

TEST(diff__leaves_nothing_whichever_allocation_fails)
{
    decant_model *a = empty(), *b = empty();
    size_t live;

    add(a, "x", DECANT_U8, 3, "abc", 3);
    add(b, "x", DECANT_U8, 3, "abd", 3);
    CHECK_OK(diff(a, b, 8), &err);
    live = test_alloc_live();
    for (size_t n = 0;; n++) {
        decant_status rc;

        test_alloc_fail(n);
        rc = diff(a, b, 8);
        test_alloc_disarm();
        CHECK_EQ(test_alloc_live(), live);
        if (!test_alloc_fired()) {
            CHECK_EQ(rc, DECANT_OK);
            CHECK(n > 0);
            break;
        }
        CHECK_EQ(rc, DECANT_NOMEM);
    }
    decant_model_close(&b);
    decant_model_close(&a);
}

TEST(diff__needs_two_models)
{
    CHECK_FAILS(decant_diff(NULL, NULL, NULL, NULL, NULL, NULL, &err), DECANT_BAD_CALL, &err);
}

TEST(diff__numbers_that_are_close_do_not_differ_when_that_is_enough)
{
    static const float a[] = {1, 101, 0, 0.0f / 0.0f, 1.0f / 0.0f, -0.0f},
                       b[] = {1.001f, 103, 1e-4f, 0.0f / 0.0f, 1.0f / 0.0f, 0};
    decant_model *x = empty(), *y = empty();

    add(x, "w", DECANT_F32, 6, a, sizeof a);
    add(y, "w", DECANT_F32, 6, b, sizeof b);
    add(x, "z", DECANT_I32, 1, "\1\0\0\0", 4); /* whole numbers are not close, but the same */
    add(y, "z", DECANT_I32, 1, "\2\0\0\0", 4);
    how = (decant_diff_options){.close = 1, .rtol = 0.01, .atol = 1e-3};
    for (size_t slot = 8; slot <= 64; slot *= 2) {
        CHECK_OK(diff(x, y, slot), &err);
        CHECK_TEXT(told, "5 w 2/6@1 101|103\n5 z 1/1@0 1|2\n");
    }
    how.rtol = 0.02;
    CHECK_OK(diff(x, y, 8), &err);
    CHECK_HAS(told, "5 w 1/6@3 0x"); /* no number is close to itself */
    how = (decant_diff_options){.close = 1};
    CHECK_OK(diff(x, y, 8), &err);
    CHECK_HAS(told, "5 w 4/6@0 "); /* the zeros are */
    how = (decant_diff_options){0};
    CHECK_OK(diff(x, y, 8), &err);
    CHECK_HAS(told, "5 w 4/6@0 "); /* and the bits of the others */
    decant_model_close(&y);
    decant_model_close(&x);
}

TEST(diff__refuses_a_tolerance_that_is_none)
{
    static const double wrong[] = {-1, 0.0 / 0.0};
    decant_model *a = empty();

    for (size_t i = 0; i < 2; i++) {
        CHECK_FAILS(decant_diff(a, a, &(decant_diff_options){.close = 1, .rtol = wrong[i]}, NULL, NULL, NULL, &err),
                    DECANT_BAD_CALL, &err);
        CHECK_FAILS(decant_diff(a, a, &(decant_diff_options){.close = 1, .atol = wrong[i]}, NULL, NULL, NULL, &err),
                    DECANT_BAD_CALL, &err);
    }
    decant_model_close(&a);
}

TEST(diff__says_nothing_of_a_file_that_changes_while_it_is_read)
{
    simdisk *disk = simdisk_new();
    dcn_env env = {.io = &disk->io, .cut = dcn_cut_default};
    size_t len;
    uint8_t *file = st_file("{\"w\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]}}", 3, &len);
    decant_model *a = NULL, *b = NULL;

    simdisk_put(disk, "a.safetensors", file, len);
    simdisk_put(disk, "b.safetensors", file, len);
    CHECK_OK(dcn_open(&env, "a.safetensors", NULL, &a, &err), &err);
    CHECK_OK(dcn_open(&env, "b.safetensors", NULL, &b, &err), &err);
    CHECK_OK(diff(a, b, 16), &err);
    simdisk_touch(disk, "b.safetensors");
    CHECK_FAILS(diff(a, b, 16), DECANT_CHANGED, &err);
    CHECK_HAS(err.path, "b.safetensors");
    CHECK_FAILS(diff(b, a, 16), DECANT_CHANGED, &err);
    decant_model_close(&a);
    decant_model_close(&b);
    free(file);
    simdisk_free(&disk);
}
