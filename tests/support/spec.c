#include "support/spec.h"

#include <stdlib.h>
#include <string.h>

#include "support/test.h"

static decant_status wrong(decant_error *err, const char *what, const json_t *found)
{
    char *text = json_dumps(found, JSON_ENCODE_ANY);
    decant_status rc = decant_error_set(err, DECANT_MALFORMED, "a spec has no %s like %s", what, text ? text : "none");

    free(text);
    return rc;
}

/* @return whether `text` is one of the names; `*index` says which */
static bool one_of(const json_t *text, const char *const *names, unsigned count, unsigned *index)
{
    for (*index = 0; *index < count; ++*index)
        if (json_is_string(text) && strcmp(json_string_value(text), names[*index]) == 0)
            return true;
    return false;
}

static decant_status scale_of(const json_t *text, decant_scale *out, decant_error *err)
{
    static const char *const names[] = {"F32", "F16", "BF16", "UE8M0", "UE4M3"};
    unsigned index;

    *out = DECANT_SCALE_NONE;
    if (json_is_null(text))
        return DECANT_OK;
    if (!one_of(text, names, 5, &index))
        return wrong(err, "scale", text);
    *out = (decant_scale)(DECANT_SCALE_F32 + index);
    return DECANT_OK;
}

static decant_status block_of(const json_t *block, decant_quant *quant, decant_error *err)
{
    const json_t *size = json_object_get(block, "size"), *extent;
    size_t i;

    if (json_is_null(block))
        return DECANT_OK;
    if (json_array_size(size) > sizeof quant->block)
        return wrong(err, "block", block);
    quant->block_rank = (uint8_t)json_array_size(size);
    json_array_foreach(size, i, extent) quant->block[i] = (uint8_t)json_integer_value(extent);
    return scale_of(json_object_get(block, "dtype"), &quant->block_scale, err);
}

/* The scales of a scheme as Burn 0.20 and 0.21 had it. */
static decant_status old_scales_of(const json_t *spec, decant_quant *quant, decant_error *err)
{
    const json_t *param = json_object_get(spec, "param"), *extent;
    const json_t *block = json_object_get(json_object_get(spec, "level"), "Block");
    size_t i;

    if (!block)
        return scale_of(param, &quant->tensor_scale, err);
    quant->block_rank = (uint8_t)json_integer_value(json_object_get(block, "len"));
    json_array_foreach(json_object_get(block, "storage"), i, extent) quant->block[i] =
        (uint8_t)json_integer_value(extent);
    return scale_of(param, &quant->block_scale, err);
}

static decant_status scheme_of(const json_t *spec, decant_quant *quant, decant_error *err)
{
    static const char *const values[] = {"Q8F", "E5M2", "E4M3", "Q4F", "E2M1", "Q2F", "Q8S", "Q4S", "Q2S"};
    static const char *const modes[] = {"Symmetric", "Lookup"};
    const json_t *store = json_object_get(spec, "store"), *packed;
    unsigned value, mode;
    decant_status rc;

    if (!one_of(json_object_get(spec, "value"), values, 9, &value) ||
        !one_of(json_object_get(spec, "mode"), modes, 2, &mode))
        return wrong(err, "scheme", spec);
    *quant = (decant_quant){.size = sizeof *quant, .value = (decant_quant_value)value, .mode = (decant_quant_mode)mode};
    if ((packed = json_object_get(store, "PackedU32")))
        quant->store = DECANT_STORE_PACKED_U32;
    else if ((packed = json_object_get(store, "PackedNative")))
        quant->store = DECANT_STORE_PACKED_NATIVE;
    quant->packed_dim = (uint64_t)json_integer_value(packed);
    if (json_object_get(spec, "level"))
        return old_scales_of(spec, quant, err);
    if ((rc = scale_of(json_object_get(spec, "tensor"), &quant->tensor_scale, err)))
        return rc;
    return block_of(json_object_get(spec, "block"), quant, err);
}

static decant_status dtype_of(const json_t *spec, decant_tensor *tensor, decant_quant *scheme, decant_error *err)
{
    static const char *const bools[] = {"Native", "U8", "U32"}, *const bool_alone = "Bool";
    const json_t *quantized = json_object_get(spec, "QFloat");
    unsigned index;

    if (quantized) {
        tensor->dtype = DECANT_QFLOAT;
        tensor->quant = scheme;
        return scheme_of(quantized, scheme, err);
    }
    if (one_of(spec, &bool_alone, 1, &index)) { /* Burn 0.19 and 0.20 */
        tensor->dtype = DECANT_BOOL;
        return DECANT_OK;
    }
    if (one_of(json_object_get(spec, "Bool"), bools, 3, &index)) {
        tensor->dtype = (decant_dtype)(DECANT_BOOL + index);
        return DECANT_OK;
    }
    for (unsigned dtype = DECANT_F64; json_is_string(spec) && dtype < DECANT_QFLOAT; dtype++)
        if (strcmp(decant_dtype_name((decant_dtype)dtype), json_string_value(spec)) == 0) {
            tensor->dtype = (decant_dtype)dtype;
            return DECANT_OK;
        }
    return wrong(err, "dtype", spec);
}

static decant_status data_of(const json_t *spec, const decant_tensor *tensor, spec_len *len_of, decant_bytes **out,
                             decant_error *err)
{
    static const char seed[] = "seed:";
    const char *text = json_string_value(json_object_get(spec, "data"));
    bool streams = text && strncmp(text, seed, sizeof seed - 1) == 0;
    size_t len = streams ? (size_t)len_of(spec, tensor) : text ? strlen(text) / 2 : 0;
    uint8_t *data = malloc(len ? len : 1);
    decant_status rc;

    if (!text || !data) {
        rc = wrong(err, "data", spec);
        goto done;
    }
    if (streams)
        test_stream(strtoull(text + sizeof seed - 1, NULL, 10), data, len);
    for (size_t i = 0; i < len && !streams; i++) {
        char digits[3] = {text[2 * i], text[2 * i + 1]};

        data[i] = (uint8_t)strtoul(digits, NULL, 16);
    }
    if (!(rc = decant_bytes_wrap(data, len, free, data, out, err)))
        data = NULL;
done:
    free(data);
    return rc;
}

static decant_status add(decant_model *model, const json_t *spec, spec_len *len_of, decant_error *err)
{
    const json_t *name = json_object_get(spec, "name"), *shape = json_object_get(spec, "shape"), *extent;
    const json_t *id = json_object_get(spec, "param_id");
    decant_tensor tensor = DECANT_TENSOR_INIT;
    uint64_t extents[DECANT_MAX_RANK];
    decant_quant scheme;
    decant_bytes *bytes = NULL;
    decant_status rc;
    size_t i;

    if (!json_is_string(name) || json_array_size(shape) > DECANT_MAX_RANK)
        return wrong(err, "tensor", spec);
    json_array_foreach(shape, i, extent) extents[i] = (uint64_t)json_integer_value(extent);
    tensor.name = json_string_value(name);
    tensor.name_len = json_string_length(name);
    tensor.rank = json_array_size(shape);
    tensor.shape = extents;
    if (json_is_string(id)) {
        tensor.has_id = 1;
        tensor.id = strtoull(json_string_value(id), NULL, 10);
    }
    if (!(rc = dtype_of(json_object_get(spec, "dtype"), &tensor, &scheme, err)) &&
        !(rc = data_of(spec, &tensor, len_of, &bytes, err)))
        rc = decant_model_add(model, &tensor, bytes, err);
    decant_bytes_unref(&bytes);
    return rc;
}

static decant_status value_of(const json_t *spec, decant_value *value, decant_error *err)
{
    const json_t *content;

    if (json_is_string(spec)) {
        value->type = DECANT_VALUE_TEXT;
        value->as.text.data = json_string_value(spec);
        value->as.text.len = json_string_length(spec);
    } else if ((content = json_object_get(spec, "Int"))) {
        value->type = DECANT_VALUE_I64;
        value->as.i64 = strtoll(json_string_value(content), NULL, 10);
    } else if ((content = json_object_get(spec, "UInt"))) {
        value->type = DECANT_VALUE_U64;
        value->as.u64 = strtoull(json_string_value(content), NULL, 10);
    } else if ((content = json_object_get(spec, "Float"))) {
        value->type = DECANT_VALUE_F64;
        value->as.f64_bits = strtoull(json_string_value(content), NULL, 16);
    } else if ((content = json_object_get(spec, "Bool"))) {
        value->type = DECANT_VALUE_BOOL;
        value->as.boolean = json_is_true(content);
    } else {
        return wrong(err, "value", spec);
    }
    return DECANT_OK;
}

static decant_status set(decant_model *model, json_t *values, decant_error *err)
{
    const char *key;
    json_t *item;
    decant_status rc;

    json_object_foreach(values, key, item)
    {
        decant_value value = {0};

        if ((rc = value_of(item, &value, err)) || (rc = decant_model_set(model, key, strlen(key), &value, err)))
            return rc;
    }
    return DECANT_OK;
}

decant_status spec_model(const json_t *spec, spec_len *len_of, decant_model **out, decant_error *err)
{
    decant_model *model = NULL;
    json_t *tensor;
    decant_status rc;
    size_t i;

    if ((rc = decant_model_create(&model, err)))
        goto done;
    json_array_foreach(json_object_get(spec, "tensors"), i, tensor)
    {
        if ((rc = add(model, tensor, len_of, err)))
            goto done;
    }
    if ((rc = set(model, json_object_get(spec, "metadata"), err)) ||
        (rc = set(model, json_object_get(spec, "scalars"), err)))
        goto done;
    *out = model;
    model = NULL;
done:
    decant_model_close(&model);
    return rc;
}
