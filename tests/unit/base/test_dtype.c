#include "support/test.h"

#include "base/dtype.h"

static decant_error err;

TEST(every_dtype__has_a_row_of_its_own)
{
    CHECK_EQ(dcn_dtype_count(), DECANT_QFLOAT + 1);
    for (size_t i = 0; i < dcn_dtype_count(); i++) {
        const dcn_dtype_row *row = dcn_dtype((decant_dtype)i);

        CHECK(row->name && row->name[0]);
        CHECK((row->bits == 0) == (i == DECANT_DTYPE_NONE || i == DECANT_QFLOAT));
        CHECK_TEXT(decant_dtype_name((decant_dtype)i), row->name);
        for (size_t k = 0; k < i; k++)
            CHECK(strcmp(row->name, dcn_dtype((decant_dtype)k)->name) != 0);
    }
    CHECK_TEXT(decant_dtype_name((decant_dtype)dcn_dtype_count()), "unknown");
    CHECK_EQ(dcn_dtype((decant_dtype)-1)->bits, 0);
}

TEST(the_length__of_a_tensor_is_its_elements_times_bits)
{
    static const struct {
        decant_dtype dtype;
        uint64_t wanted; /* of [2, 3, 4] */
    } rows[] = {{DECANT_F64, 192},     {DECANT_C64, 192},        {DECANT_F32, 96},     {DECANT_FLEX32, 96},
                {DECANT_BOOL_U32, 96}, {DECANT_BF16, 48},        {DECANT_I16, 48},     {DECANT_BOOL, 24},
                {DECANT_BOOL_U8, 24},  {DECANT_F8_E4M3, 24},     {DECANT_F8_E8M0, 24}, {DECANT_F6_E2M3, 18},
                {DECANT_F6_E3M2, 18},  {DECANT_F8_E5M2FNUZ, 24}, {DECANT_F4, 12}};
    static const uint64_t shape[] = {2, 3, 4};
    uint64_t len;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CHECK_OK(dcn_dtype_len(rows[i].dtype, shape, 3, &len, &err), &err);
        CHECK_EQ(len, rows[i].wanted);
    }
    CHECK_OK(dcn_dtype_len(DECANT_F32, NULL, 0, &len, &err), &err); /* a scalar */
    CHECK_EQ(len, 4);
}

TEST(a_zero_extent__makes_nothing_of_any_shape)
{
    static const uint64_t shape[] = {UINT64_MAX, UINT64_MAX, 0};
    uint64_t count, len;

    CHECK(!dcn_shape_count(&count, shape, 3));
    CHECK_EQ(count, 0);
    CHECK_OK(dcn_dtype_len(DECANT_F64, shape, 3, &len, &err), &err);
    CHECK_EQ(len, 0);
}

TEST(a_length__that_overflows_or_ends_inside_a_byte_is_malformed)
{
    static const uint64_t huge[] = {UINT64_C(1) << 32, UINT64_C(1) << 32}, bits[] = {UINT64_C(1) << 60}, odd[] = {3};
    uint64_t count, len = 7;

    CHECK(dcn_shape_count(&count, huge, 2));
    CHECK_FAILS(dcn_dtype_len(DECANT_U8, huge, 2, &len, &err), DECANT_MALFORMED, &err);
    CHECK_HAS(err.message, "[4294967296, 4294967296]");
    CHECK_FAILS(dcn_dtype_len(DECANT_F64, bits, 1, &len, &err), DECANT_MALFORMED, &err);
    CHECK_FAILS(dcn_dtype_len(DECANT_F4, odd, 1, &len, &err), DECANT_MALFORMED, &err);
    CHECK_HAS(err.message, "3 elements of F4");
    CHECK_FAILS(dcn_dtype_len(DECANT_F6_E2M3, odd, 1, &len, &err), DECANT_MALFORMED, &err);
    CHECK_EQ(len, 7);
}

TEST(shapes__are_printed_and_cut_to_fit)
{
    uint64_t shape[40];
    char out[64];

    for (size_t i = 0; i < 40; i++)
        shape[i] = UINT64_MAX;
    dcn_shape_text(out, sizeof out, NULL, 0);
    CHECK_TEXT(out, "[]");
    dcn_shape_text(out, sizeof out, (const uint64_t[]){2, 3}, 2);
    CHECK_TEXT(out, "[2, 3]");
    for (size_t size = 8; size <= sizeof out; size++) {
        memset(out, '#', sizeof out);
        dcn_shape_text(out, size, shape, 40);
        CHECK(strlen(out) < size);
        CHECK_TEXT(out + strlen(out) - 4, "...]");
    }
}
