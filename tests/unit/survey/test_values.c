#include "survey/values.h"

#include <math.h>
#include <stdlib.h>

#include "base/dtype.h"
#include "support/test.h"

/* What is counted in `count` elements of a vector, put in parts of at most `part` elements. */
static dcn_tally tally(decant_dtype dtype, const void *data, uint64_t count, uint64_t part, uint64_t longest,
                       bool *told)
{
    static decant_tensor tensor;
    static uint64_t extent;
    size_t width = dcn_dtype(dtype)->bits / 8;
    dcn_tally t;
    bool any;

    extent = count;
    tensor = (decant_tensor){.size = sizeof tensor, .name = "t", .dtype = dtype, .rank = 1, .shape = &extent};
    tensor.len = count * width;
    dcn_tally_begin(&t, &tensor);
    for (uint64_t at = 0; at < count; at += part)
        dcn_tally_put(&t, (const uint8_t *)data + at * width,
                      (size_t)((count - at < part ? count - at : part) * width));
    any = dcn_tally_end(&t, longest);
    if (told)
        *told = any;
    return t;
}

TEST(values__no_numbers_and_infinities_are_counted_in_every_small_type)
{
    static const struct {
        decant_dtype dtype;
        uint64_t nans, infinities, first;
    } types[] = {
        {DECANT_F16, 2046, 2, 0x7C00},
        {DECANT_BF16, 254, 2, 0x7F80},
        {DECANT_F8_E5M2, 6, 2, 0x7C},
        {DECANT_F8_E4M3, 2, 0, 0x7F},
        {DECANT_F8_E4M3FNUZ, 1, 0, 0x80},
        {DECANT_F8_E5M2FNUZ, 1, 0, 0x80},
        {DECANT_F8_E8M0, 1, 0, 0xFF},
        {DECANT_I16, 0, 0, 0},
        {DECANT_U8, 0, 0, 0},
    };
    static uint8_t all[1 << 17];

    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        size_t width = dcn_dtype(types[i].dtype)->bits / 8, count = (size_t)1 << 8 * width;

        for (size_t k = 0; k < count; k++)
            for (size_t b = 0; b < width; b++)
                all[k * width + b] = (uint8_t)(k >> 8 * b);
        for (size_t part = 1; part <= count; part = part * 3 + 1) {
            dcn_tally t = tally(types[i].dtype, all, count, part, UINT64_MAX, NULL);

            CHECK_EQ(t.values.nans, types[i].nans);
            CHECK_EQ(t.values.infinities, types[i].infinities);
            CHECK_EQ(t.values.first, types[i].first);
            CHECK_EQ(t.values.total, count);
        }
    }
}

TEST(values__of_wide_types_are_what_the_machine_says_they_are)
{
    enum { COUNT = 4096 };
    static uint64_t bits[COUNT];
    static uint32_t half[2 * COUNT];
    uint64_t random = 5, nans = 0, infinities = 0, nans32 = 0, infinities32 = 0;

    for (size_t i = 0; i < COUNT; i++) {
        double d;

        bits[i] = test_random(&random);
        if (i % 5 == 0)
            bits[i] |= UINT64_C(0x7FF) << 52;
        if (i % 25 == 0)
            bits[i] &= ~((UINT64_C(1) << 52) - 1);
        memcpy(&d, &bits[i], 8);
        nans += isnan(d) != 0;
        infinities += isinf(d) != 0;
    }
    for (size_t i = 0; i < 2 * COUNT; i++) {
        float f;

        half[i] = (uint32_t)test_random(&random) | (i % 3 ? 0 : 0x7F800000);
        if (i % 9 == 0)
            half[i] &= 0xFF800000;
        memcpy(&f, &half[i], 4);
        nans32 += isnan(f) != 0;
        infinities32 += isinf(f) != 0;
    }
    CHECK(nans > 100 && infinities > 100 && nans32 > 100 && infinities32 > 100);
    for (size_t part = 1; part < COUNT; part += 501) {
        dcn_tally t = tally(DECANT_F64, bits, COUNT, part, UINT64_MAX, NULL);

        CHECK(t.values.nans == nans && t.values.infinities == infinities && t.values.first == 0);
        t = tally(DECANT_F32, half, 2 * COUNT, part, UINT64_MAX, NULL);
        CHECK(t.values.nans == nans32 && t.values.infinities == infinities32);
        t = tally(DECANT_C64, half, COUNT, part, UINT64_MAX, NULL); /* either half */
        CHECK(t.values.nans == nans32 && t.values.infinities == infinities32 && t.values.total == COUNT);
    }
}

TEST(values__booleans_that_are_neither_are_counted)
{
    static const uint8_t bytes[] = {0, 1, 2, 255, 1, 0, 0, 1};
    bool told;

    CHECK_EQ(tally(DECANT_BOOL, bytes, 8, 3, UINT64_MAX, &told).values.neither, 2);
    CHECK(told);
    CHECK_EQ(tally(DECANT_BOOL_U32, bytes, 2, 1, UINT64_MAX, NULL).values.neither, 2);
    CHECK_EQ(tally(DECANT_BOOL_U8, bytes, 2, 1, UINT64_MAX, &told).values.neither, 0);
    CHECK(!told);
}

/* The longest run of zeros, one byte after the other. */
static uint64_t longest_run(const uint8_t *data, size_t len, uint64_t *begin)
{
    uint64_t longest = 0, run = 0;

    for (size_t i = 0; i < len; i++) {
        run = data[i] ? 0 : run + 1;
        if (run > longest) {
            longest = run;
            *begin = i + 1 - run;
        }
    }
    return longest;
}

TEST(values__the_longest_run_of_zeros_is_found_wherever_parts_end)
{
    enum { LEN = 600 };
    uint8_t data[LEN];
    uint64_t random = 11, found = 0;

    for (unsigned round = 0; round < 5000; round++) {
        size_t part = 1 + test_random(&random) % LEN;
        uint64_t begin = 0, longest;
        bool told;
        dcn_tally t;

        for (size_t i = 0; i < LEN;) {
            size_t len = test_random(&random) % 60;
            uint8_t fill = test_random(&random) % 2 ? 0 : (uint8_t)test_random(&random);

            for (; len-- && i < LEN; i++)
                data[i] = fill;
        }
        longest = longest_run(data, LEN, &begin);
        t = tally(DECANT_U8, data, LEN, part, 20, &told);
        CHECK_EQ(told, longest >= 20);
        CHECK_EQ(t.values.zeros, told ? longest : 0);
        CHECK_EQ(t.values.zeros_begin, told ? begin : 0);
        found += told;
    }
    CHECK(found > 1000 && found < 5000);
}

TEST(values__a_tensor_of_zeros_is_told_however_short_and_an_empty_one_is_not)
{
    static const uint8_t zeros[3] = {0};
    bool told;

    CHECK_EQ(tally(DECANT_U8, zeros, 3, 2, 1000, &told).values.zeros, 3);
    CHECK(told);
    tally(DECANT_U8, zeros, 0, 1, 1000, &told);
    CHECK(!told);
}
