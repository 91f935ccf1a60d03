/* Lengths as burn_std::quantized_data_len of 0.23.0-pre.1 gives them. */
#include "support/alloc.h"
#include "support/test.h"

#include "format/burnpack/quant.h"

#define NONE UINT64_MAX /* has no length */

static decant_quant scheme(decant_quant_value value, decant_quant_store store, uint64_t packed_dim)
{
    return (decant_quant){.size = sizeof(decant_quant), .value = value, .store = store, .packed_dim = packed_dim};
}

static decant_quant blocks(decant_quant quant, decant_scale scale, uint8_t outer, uint8_t inner)
{
    quant.block_scale = scale;
    quant.block_rank = outer ? 2 : 1;
    quant.block[0] = outer ? outer : inner;
    quant.block[1] = outer ? inner : 0;
    return quant;
}

static decant_quant global(decant_quant quant, decant_scale scale)
{
    quant.tensor_scale = scale;
    return quant;
}

static uint64_t len_of(decant_quant quant, size_t rank, const uint64_t *shape)
{
    uint64_t len;

    return dcn_quant_len(&quant, shape, rank, &len) ? len : NONE;
}

#define LEN(quant, ...) \
    len_of(quant, sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), (const uint64_t[]){__VA_ARGS__})

TEST(length__is_packed_values_then_scales)
{
    decant_quant plain = scheme(DECANT_Q8F, DECANT_STORE_PACKED_U32, 0);
    decant_quant q4 = scheme(DECANT_Q4S, DECANT_STORE_NATIVE, 0);

    CHECK_EQ(LEN(plain, 512, 512), 262144 + 4);
    CHECK_EQ(LEN(plain, 2, 4), 8 + 4);
    CHECK_EQ(LEN(global(plain, DECANT_SCALE_BF16), 2, 4), 8 + 2);
    CHECK_EQ(LEN(scheme(DECANT_Q4F, DECANT_STORE_PACKED_U32, 0), 3, 3), 3 * 4 + 4);
    CHECK_EQ(LEN(scheme(DECANT_Q4F, DECANT_STORE_PACKED_U32, 1), 16, 3), 2 * 3 * 4 + 4);
    CHECK_EQ(LEN(scheme(DECANT_Q2F, DECANT_STORE_PACKED_U32, 0), 17), 2 * 4 + 4);
    CHECK_EQ(LEN(q4, 3, 3), 9 + 4);
    CHECK_EQ(LEN(global(scheme(DECANT_Q8S, DECANT_STORE_NATIVE, 0), DECANT_SCALE_BF16), 3, 3), 9 + 2);
    CHECK_EQ(LEN(scheme(DECANT_E2M1, DECANT_STORE_PACKED_NATIVE, 0), 2, 5), 2 * 3 + 4);
    CHECK_EQ(LEN(scheme(DECANT_Q8S, DECANT_STORE_PACKED_NATIVE, 0), 2, 5), 10 + 4);
    CHECK_EQ(LEN(blocks(q4, DECANT_SCALE_UE4M3, 0, 32), 2, 64), 128 + 4);
    CHECK_EQ(LEN(blocks(q4, DECANT_SCALE_BF16, 2, 4), 3, 9), 27 + 2 * 3 * 2);
    CHECK_EQ(LEN(global(blocks(q4, DECANT_SCALE_UE4M3, 0, 32), DECANT_SCALE_F32), 2, 64), 128 + 4 + 4);
    CHECK_EQ(LEN(global(blocks(q4, DECANT_SCALE_UE4M3, 0, 32), DECANT_SCALE_F16), 2, 64), 128 + 4 + 2);
}

TEST(length__takes_scalars_and_empty_tensors)
{
    decant_quant plain = scheme(DECANT_Q8F, DECANT_STORE_PACKED_U32, 0);

    CHECK_EQ(len_of(plain, 0, NULL), 4 + 4);
    CHECK_EQ(len_of(scheme(DECANT_Q8F, DECANT_STORE_NATIVE, 0), 0, NULL), 1 + 4);
    CHECK_EQ(LEN(plain, 0, 3), 4);
    CHECK_EQ(LEN(plain, UINT64_MAX, 0, UINT64_MAX), 4);
    CHECK_EQ(LEN(blocks(plain, DECANT_SCALE_F32, 0, 32), 4, 0), 0);
}

TEST(length__is_refused_where_there_is_none)
{
    decant_quant plain = scheme(DECANT_Q8F, DECANT_STORE_PACKED_U32, 0);

    CHECK_EQ(LEN(plain, UINT64_MAX, 2), NONE);
    CHECK_EQ(LEN(plain, UINT64_MAX), NONE);
    CHECK_EQ(LEN(scheme(DECANT_Q8F, DECANT_STORE_PACKED_U32, 2), 4, 4), NONE);
    CHECK_EQ(LEN(scheme(DECANT_Q8F, DECANT_STORE_PACKED_NATIVE, UINT64_MAX), 4, 4), NONE);
    CHECK_EQ(len_of(scheme(DECANT_Q8F, DECANT_STORE_PACKED_U32, 1), 0, NULL), NONE);
    CHECK_EQ(LEN(blocks(plain, DECANT_SCALE_F32, 2, 4), 8), NONE);
}

TEST(extra__holds_the_scheme_in_its_canonical_form)
{
    decant_quant given =
        global(blocks(scheme(DECANT_E2M1, DECANT_STORE_PACKED_NATIVE, 1), DECANT_SCALE_UE8M0, 1, 16), DECANT_SCALE_F32);
    decant_quant short_form = given;
    dcn_extra *extra = NULL, *other = NULL;
    decant_error err;

    short_form.block_rank = 1;
    short_form.block[0] = 16;
    CHECK(!dcn_quant_equal(&given, &short_form));
    CHECK_OK(dcn_quant_extra(&given, &extra, &err), &err);
    CHECK_OK(dcn_quant_extra(&short_form, &other, &err), &err);
    CHECK_EQ(dcn_quant_of(extra)->block_rank, 1);
    CHECK_EQ(dcn_quant_of(extra)->block[0], 16);
    CHECK_EQ(dcn_quant_of(extra)->packed_dim, 1);
    CHECK(dcn_quant_equal(dcn_quant_of(extra), dcn_quant_of(other)));
    extra->ops->close(extra);
    other->ops->close(other);
}

TEST(extra__is_none_of_another_format)
{
    static const dcn_extra_ops foreign = {.format = "other", .what = "thing"};
    dcn_extra extra = {.ops = &foreign};

    CHECK(!dcn_quant_of(&extra));
    CHECK(!dcn_quant_of(NULL));
}

TEST(extra__refuses_parameters_that_are_none)
{
    decant_quant good = blocks(scheme(DECANT_Q4S, DECANT_STORE_NATIVE, 0), DECANT_SCALE_F32, 2, 4), bad[7];
    dcn_extra *extra = NULL;
    decant_error err;

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        bad[i] = good;
    bad[0].size = sizeof good - 1;
    bad[1].value = (decant_quant_value)9;
    bad[2].store = (decant_quant_store)-1;
    bad[3].block_rank = 6;
    bad[4].block[1] = 0;
    bad[5].block_scale = DECANT_SCALE_NONE;
    bad[6].tensor_scale = (decant_scale)6;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_FAILS(dcn_quant_extra(&bad[i], &extra, &err), DECANT_BAD_CALL, &err);

    test_alloc_fail(0);
    CHECK_FAILS(dcn_quant_extra(&good, &extra, &err), DECANT_NOMEM, &err);
    CHECK(!extra);
}
