/* Casts as bytes: read, pinned, kept, shared, refused. */
#include "support/test.h"

#include <math.h>

#include "base/endian.h"
#include "plan/plan.h"
#include "support/models.h"
#include "support/recorder.h"
#include "transform/cast.h"

static decant_error err;

static decant_bytes *cast_of(decant_bytes *input, decant_dtype from, decant_dtype to, bool allow)
{
    decant_bytes *out = NULL;

    CHECK_OK(dcn_cast(&(dcn_span){input, 0, input->len}, from, to, allow, &out, &err), &err);
    decant_bytes_unref(&input);
    return out;
}

static decant_bytes *floats(const float *values, size_t count)
{
    uint8_t bytes[64];
    decant_bytes *out = NULL;
    uint32_t word;

    CHECK(count <= 16);
    for (size_t i = 0; i < count; i++) {
        memcpy(&word, &values[i], 4);
        dcn_put_le(bytes + 4 * i, word, 4);
    }
    CHECK_OK(decant_bytes_copy(bytes, 4 * count, &out, &err), &err);
    return out;
}

TEST(cast__gives_any_range_also_one_that_begins_and_ends_inside_of_a_number)
{
    const float values[] = {1, 2, -3, 4};
    const uint8_t all[] = {0x80, 0x3F, 0x00, 0x40, 0x40, 0xC0, 0x80, 0x40};
    decant_bytes *cast = cast_of(floats(values, 4), DECANT_F32, DECANT_BF16, false);

    CHECK_EQ(decant_bytes_len(cast), 8);
    for (size_t at = 0; at <= 8; at++)
        for (size_t len = 0; at + len <= 8; len++) {
            uint8_t got[8];

            CHECK_OK(decant_bytes_read(cast, at, got, len, &err), &err);
            CHECK(memcmp(got, all + at, len) == 0);
        }
    decant_bytes_unref(&cast);
}

TEST(cast__is_in_memory_only_once_it_is_kept)
{
    const float values[] = {1};
    decant_bytes *cast = cast_of(floats(values, 1), DECANT_F32, DECANT_F64, false);
    decant_view view = {0};

    CHECK_EQ(decant_bytes_pin(cast, 0, 8, DECANT_NO_COPY, &view, &err), DECANT_WOULD_COPY);
    CHECK_OK(decant_bytes_keep(cast, &err), &err);
    CHECK_OK(decant_bytes_pin(cast, 0, 8, DECANT_NO_COPY, &view, &err), &err);
    CHECK_EQ(dcn_le64(view.data), 0x3FF0000000000000);
    decant_view_release(&view);
    decant_bytes_unref(&cast);
}

TEST(cast__refuses_what_is_too_large_and_says_how_many_and_how_large)
{
    const float values[] = {1, 70000, -1e5F, INFINITY, NAN};
    decant_bytes *cast = cast_of(floats(values, 5), DECANT_F32, DECANT_F16, false);
    uint8_t got[10];

    CHECK_EQ(decant_bytes_read(cast, 0, got, 10, &err), DECANT_LOSS);
    CHECK_TEXT(err.found, "2 so far, the first 70000 at index 1, the largest 100000");
    CHECK_TEXT(err.expected, "at most 65504");
    CHECK(strstr(err.hint, "--allow overflow"));
    decant_bytes_unref(&cast);
}

TEST(cast__counts_what_became_infinite_since_it_was_read_from_its_beginning)
{
    const float values[] = {1, 70000, -1e5F};
    decant_bytes *cast = cast_of(floats(values, 3), DECANT_F32, DECANT_F16, true);
    uint8_t got[6];
    dcn_overflow over;
    decant_dtype to;

    for (size_t again = 0; again < 2; again++) {
        CHECK_OK(decant_bytes_read(cast, 0, got, 4, &err), &err);
        CHECK_OK(decant_bytes_read(cast, 4, got + 4, 2, &err), &err);
        CHECK(dcn_cast_overflow(cast, &over, &to));
        CHECK(over.count == 2 && over.first == 1 && over.most == 1e5 && to == DECANT_F16);
    }
    CHECK_EQ(dcn_le16(got + 2), 0x7C00);
    CHECK_EQ(dcn_le16(got + 4), 0xFC00);
    decant_bytes_unref(&cast);
}

TEST(cast__asks_a_provider_that_lends_its_tensor_once_for_a_range)
{
    recorder rec = {0};
    decant_bytes *cast = cast_of(recorder_bytes(&rec, 1, 1 << 17, true), DECANT_F32, DECANT_F64, false);

    CHECK_OK(decant_bytes_keep(cast, &err), &err);
    CHECK_EQ(recorder_count(&rec, ASKED_WHOLE), 1);
    decant_bytes_unref(&cast);
    recorder_close(&rec);
}

TEST(cast__of_bytes_that_could_not_be_asked_for_once_is_refused)
{
    recorder rec = {0};
    decant_bytes *parts[] = {recorder_bytes(&rec, 1, 8, true), recorder_bytes(&rec, 2, 8, true)};
    decant_bytes *joined = NULL, *cast = NULL, *once;

    CHECK_OK(decant_bytes_join(parts, 2, &joined, &err), &err);
    CHECK_EQ(dcn_cast(&(dcn_span){joined, 0, 16}, DECANT_F32, DECANT_F16, false, &cast, &err), DECANT_BAD_CALL);
    CHECK(err.hint[0]);
    CHECK_OK(dcn_cast(&(dcn_span){joined, 8, 8}, DECANT_F32, DECANT_F16, false, &cast, &err), &err);
    decant_bytes_unref(&cast);
    once = cast_of(decant_bytes_ref(parts[0]), DECANT_F32, DECANT_F16, false);
    CHECK_EQ(dcn_cast(&(dcn_span){once, 0, 4}, DECANT_F16, DECANT_F32, false, &cast, &err), DECANT_BAD_CALL);
    decant_bytes_unref(&once);
    for (size_t i = 0; i < 2; i++)
        decant_bytes_unref(&parts[i]);
    decant_bytes_unref(&joined);
    recorder_close(&rec);
}

TEST(cast__nests_as_deep_as_ropes)
{
    const float values[] = {1};
    decant_bytes *cast = floats(values, 1), *more = NULL;
    uint8_t got[8];

    for (unsigned i = 0; i < DCN_ROPE_DEPTH; i++)
        cast = cast_of(cast, i % 2 ? DECANT_F64 : DECANT_F32, i % 2 ? DECANT_F32 : DECANT_F64, false);
    CHECK_OK(decant_bytes_read(cast, 0, got, 4, &err), &err);
    CHECK_EQ(dcn_le32(got), 0x3F800000);
    CHECK_EQ(dcn_cast(&(dcn_span){cast, 0, 4}, DECANT_F32, DECANT_F64, false, &more, &err), DECANT_BAD_CALL);
    decant_bytes_unref(&cast);
}

TEST(plan__sees_a_provider_that_stands_in_two_casts)
{
    recorder rec = {0};
    decant_bytes *input = recorder_bytes(&rec, 1, 8, false), *one, *two;
    const uint64_t shape[] = {2};
    decant_tensor tensor = DECANT_TENSOR_INIT;
    decant_model *model = NULL;

    CHECK_OK(decant_model_create(&model, &err), &err);
    tensor.name = "one";
    tensor.dtype = DECANT_F16;
    tensor.rank = 1;
    tensor.shape = shape;
    one = cast_of(decant_bytes_ref(input), DECANT_F32, DECANT_F16, false);
    CHECK_OK(decant_model_add(model, &tensor, one, &err), &err);
    CHECK_OK(dcn_plan_check_model(model, &err), &err);
    two = cast_of(input, DECANT_F32, DECANT_F16, false);
    tensor.name = "two";
    CHECK_OK(decant_model_add(model, &tensor, two, &err), &err);
    CHECK_EQ(dcn_plan_check_model(model, &err), DECANT_BAD_CALL);
    CHECK_TEXT(err.tensor, "two");
    decant_model_close(&model);
    decant_bytes_unref(&one);
    decant_bytes_unref(&two);
    recorder_close(&rec);
}
