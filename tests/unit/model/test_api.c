/* The public face of models: building by hand and looking at what is there. */
#include "support/test.h"

#include "model/model.h"
#include "support/alloc.h"

static decant_error err;

static decant_model *create(void)
{
    decant_model *model = NULL;

    CHECK_OK(decant_model_create(&model, &err), &err);
    return model;
}

static decant_bytes *wrap(const char *text)
{
    decant_bytes *bytes = NULL;

    CHECK_OK(decant_bytes_wrap(text, strlen(text), NULL, NULL, &bytes, &err), &err);
    return bytes;
}

static const uint64_t shape[] = {2, 3};

static decant_tensor tensor_of(const char *name)
{
    decant_tensor tensor = DECANT_TENSOR_INIT;

    tensor.name = name;
    tensor.dtype = DECANT_U8;
    tensor.rank = 2;
    tensor.shape = shape;
    return tensor;
}

TEST(a_tensor__comes_back_as_it_was_added)
{
    decant_model *model = create();
    decant_bytes *bytes = wrap("abcdef"), *out = NULL;
    decant_tensor tensor = tensor_of("w"), seen = DECANT_TENSOR_INIT;
    size_t index = 99;

    tensor.has_id = 1;
    tensor.id = UINT64_MAX;
    CHECK_OK(decant_model_add(model, &tensor, bytes, &err), &err);
    tensor = tensor_of("name and more");
    tensor.name_len = 4;
    tensor.rank = 0;
    CHECK_OK(decant_model_add(model, &tensor, bytes, &err), &err);

    CHECK_EQ(decant_model_count(model), 2);
    decant_model_tensor(model, 0, &seen);
    CHECK_BYTES(seen.name, seen.name_len, "w", 1);
    CHECK(seen.dtype == DECANT_U8 && seen.rank == 2 && seen.shape[0] == 2 && seen.shape[1] == 3);
    CHECK(seen.shape != shape && seen.len == 6 && seen.has_id && seen.id == UINT64_MAX && !seen.quant);
    CHECK_EQ(seen.size, sizeof seen);
    CHECK_OK(decant_model_find(model, "name", 4, &index, &err), &err);
    CHECK_EQ(index, 1);
    CHECK_FAILS(decant_model_find(model, "nome", 4, &index, &err), DECANT_NOT_FOUND, &err);
    CHECK_TEXT(err.tensor, "nome");
    CHECK_TEXT(err.path, "");

    CHECK_OK(decant_model_bytes(model, 0, &out, &err), &err);
    CHECK(out == bytes); /* whole: the handle itself, so that what is kept of it serves the model too */
    decant_bytes_unref(&bytes);
    decant_model_close(&model);
    CHECK_EQ(decant_bytes_len(out), 6); /* bytes outlive the model */
    decant_bytes_unref(&out);
}

TEST(the_bytes__of_a_part_of_a_file_are_a_slice)
{
    decant_model *model = create();
    decant_bytes *bytes = wrap("abcdef"), *out = NULL;
    dcn_draft draft = {.name = "w", .name_len = 1, .dtype = DECANT_U8, .data = {bytes, 2, 3}};
    char text[4] = {0};

    CHECK_OK(dcn_model_add(model, &draft, &err), &err);
    CHECK_OK(decant_model_bytes(model, 0, &out, &err), &err);
    CHECK_EQ(decant_bytes_len(out), 3);
    CHECK_OK(decant_bytes_read(out, 0, text, 3, &err), &err);
    CHECK_TEXT(text, "cde");
    decant_bytes_unref(&out);
    CHECK_FAILS(decant_model_bytes(model, 1, &out, &err), DECANT_BAD_CALL, &err);
    decant_bytes_unref(&bytes);
    decant_model_close(&model);
}

TEST(a_quantization_scheme__travels_with_its_tensor)
{
    decant_model *model = create();
    decant_bytes *bytes = wrap("abcdef");
    decant_tensor tensor = tensor_of("w"), seen = DECANT_TENSOR_INIT;
    decant_quant quant = {.size = sizeof quant, .value = DECANT_Q8S, .tensor_scale = DECANT_SCALE_F32};

    tensor.quant = &quant;
    CHECK_FAILS(decant_model_add(model, &tensor, bytes, &err), DECANT_BAD_CALL, &err);
    CHECK_HAS(err.message, "DECANT_QFLOAT");
    tensor.dtype = DECANT_QFLOAT;
    CHECK_OK(decant_model_add(model, &tensor, bytes, &err), &err);
    decant_model_tensor(model, 0, &seen);
    CHECK(seen.quant && seen.quant != &quant && seen.quant->value == DECANT_Q8S);
    CHECK_EQ(seen.quant->tensor_scale, DECANT_SCALE_F32);

    tensor.name = "v";
    quant.value = (decant_quant_value)99;
    CHECK_FAILS(decant_model_add(model, &tensor, bytes, &err), DECANT_BAD_CALL, &err);
    tensor.quant = NULL;
    CHECK_FAILS(decant_model_add(model, &tensor, bytes, &err), DECANT_BAD_CALL, &err);
    decant_bytes_unref(&bytes);
    decant_model_close(&model);
}

TEST(values__come_back_as_they_were_set_and_keys_are_replaced)
{
    decant_model *model = create();
    decant_value value = {.type = DECANT_VALUE_F64}, seen;
    const char *key;
    size_t key_len;

    value.as.f64_bits = UINT64_C(0x7FF8000000000123); /* a NaN with a payload */
    CHECK_OK(decant_model_set(model, "loss", 4, &value, &err), &err);
    value.type = DECANT_VALUE_TEXT;
    value.as.text.data = NULL;
    value.as.text.len = 0;
    CHECK_OK(decant_model_set(model, NULL, 0, &value, &err), &err);
    value = (decant_value){.type = DECANT_VALUE_BOOL};
    value.as.boolean = 1;
    CHECK_OK(decant_model_set(model, "loss", 4, &value, &err), &err); /* another type, but both are scalars */

    CHECK_EQ(decant_model_value_count(model), 2);
    decant_model_value(model, 0, &key, &key_len, &seen);
    CHECK_BYTES(key, key_len, "loss", 4);
    CHECK(seen.type == DECANT_VALUE_BOOL && seen.as.boolean == 1);
    decant_model_value(model, 1, &key, &key_len, &seen);
    CHECK(key_len == 0 && seen.type == DECANT_VALUE_TEXT && seen.as.text.len == 0);
    CHECK(!decant_model_format(model));
    decant_model_close(&model);
}

TEST(notes__end_where_they_end)
{
    decant_model *model = create();
    const char *key, *text;

    CHECK_EQ(decant_model_note(model, 0, &key, &text), DECANT_NOT_FOUND);
    CHECK_OK(dcn_model_note(model, "layout", &err, "aligned to %d", 8), &err);
    CHECK_EQ(decant_model_note(model, 0, &key, &text), DECANT_OK);
    CHECK_TEXT(text, "aligned to 8");
    CHECK_EQ(decant_model_note(model, 1, &key, &text), DECANT_NOT_FOUND);
    decant_model_close(&model);
    decant_model_close(&model);
}

TEST(wrong_calls__are_refused_with_the_fix)
{
    decant_model *model = create();
    decant_bytes *bytes = wrap("abcdef");
    decant_tensor tensor = tensor_of("w");
    decant_value value = {0};

    CHECK_FAILS(decant_model_add(model, &tensor, NULL, &err), DECANT_BAD_CALL, &err);
    tensor.size = 0;
    CHECK_FAILS(decant_model_add(model, &tensor, bytes, &err), DECANT_BAD_CALL, &err);
    CHECK_HAS(err.message, "DECANT_TENSOR_INIT");
    tensor = tensor_of(NULL);
    CHECK_FAILS(decant_model_add(model, &tensor, bytes, &err), DECANT_BAD_CALL, &err);
    tensor = tensor_of("w");
    tensor.shape = NULL;
    CHECK_FAILS(decant_model_add(model, &tensor, bytes, &err), DECANT_BAD_CALL, &err);
    tensor = tensor_of("w");
    tensor.dtype = (decant_dtype)1000;
    CHECK_FAILS(decant_model_add(model, &tensor, bytes, &err), DECANT_BAD_CALL, &err);
    CHECK_FAILS(decant_model_set(model, "k", 1, &value, &err), DECANT_BAD_CALL, &err);
    value.type = (decant_value_type)(DECANT_VALUE_TEXT + 1);
    CHECK_FAILS(decant_model_set(model, "k", 1, &value, &err), DECANT_BAD_CALL, &err);
    value.type = DECANT_VALUE_BOOL;
    CHECK_FAILS(decant_model_set(model, NULL, 1, &value, &err), DECANT_BAD_CALL, &err);
    value.type = DECANT_VALUE_TEXT;
    value.as.text.data = NULL;
    value.as.text.len = 1;
    CHECK_FAILS(decant_model_set(model, "k", 1, &value, &err), DECANT_BAD_CALL, &err);
    CHECK(decant_model_count(model) == 0 && decant_model_value_count(model) == 0);
    decant_bytes_unref(&bytes);
    decant_model_close(&model);
}

TEST(a_tensor__is_added_or_refused_whichever_allocation_fails)
{
    decant_bytes *bytes = wrap("abcdef");

    for (size_t n = 0;; n++) {
        decant_model *model = create();
        decant_tensor tensor = tensor_of("w");
        decant_quant quant = {.size = sizeof quant, .tensor_scale = DECANT_SCALE_F32};
        decant_status rc;

        tensor.dtype = DECANT_QFLOAT;
        tensor.quant = &quant;
        test_alloc_fail(n);
        rc = decant_model_add(model, &tensor, bytes, &err);
        test_alloc_disarm();
        CHECK_EQ(rc, test_alloc_fired() ? DECANT_NOMEM : DECANT_OK);
        CHECK_EQ(decant_model_count(model), rc == DECANT_OK);
        decant_model_close(&model);
        if (rc == DECANT_OK)
            break;
    }
    decant_bytes_unref(&bytes);
}
