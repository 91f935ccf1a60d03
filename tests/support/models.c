#include "models.h"

#include <stdio.h>
#include <stdlib.h>

#include <jansson.h>

#include "base/dtype.h"
#include "format/burnpack/quant.h"
#include "render.h"

decant_status model_open(const dcn_format *format, const void *bytes, size_t len, const dcn_limits *limits,
                         bool lenient, decant_model **out, decant_error *err)
{
    dcn_limits defaults = dcn_limits_of(false);
    dcn_input in = {.name = "memory"};
    decant_model *model = NULL;
    void *copy = malloc(len ? len : 1);
    decant_status rc;

    CHECK(copy);
    if (len)
        memcpy(copy, bytes, len);
    if ((rc = dcn_bytes_wrap(copy, len, free, copy, &in.bytes, err))) {
        free(copy);
        return rc;
    }
    if ((rc = dcn_model_create(1, &model, err)) ||
        (rc = format->index(&in, limits ? limits : &defaults, lenient, model, err)) ||
        (rc = dcn_model_sort(model, err)))
        goto done;
    *out = model;
    model = NULL;
done:
    decant_model_close(&model);
    decant_bytes_unref(&in.bytes);
    return rc;
}

decant_status model_render(const dcn_format *format, const decant_model *model, const dcn_layout *how, uint8_t **bytes,
                           size_t *len, decant_error *err)
{
    static const dcn_layout plain = {0};
    dcn_plans plans = {0};
    decant_status rc = format->emit(model, how ? how : &plain, &plans, err);

    if (!rc)
        *bytes = render_plan(&plans.items[0], len);
    dcn_plans_close(&plans);
    return rc;
}

void model_add(decant_model *model, const char *name, decant_dtype dtype, size_t rank, const uint64_t *shape,
               const decant_quant *scheme, const void *bytes, size_t len)
{
    decant_tensor tensor = DECANT_TENSOR_INIT;
    decant_bytes *data = NULL;
    decant_error err = {0};

    tensor.name = name;
    tensor.dtype = dtype;
    tensor.rank = rank;
    tensor.shape = shape;
    tensor.quant = scheme;
    CHECK_OK(decant_bytes_copy(bytes, len, &data, &err), &err);
    CHECK_OK(decant_model_add(model, &tensor, data, &err), &err);
    decant_bytes_unref(&data);
}

void model_set_text(decant_model *model, const char *key, const char *text)
{
    decant_value value = {.type = DECANT_VALUE_TEXT, .as.text = {text, strlen(text)}};
    decant_error err = {0};

    CHECK_OK(decant_model_set(model, key, strlen(key), &value, &err), &err);
}

/* --- specs -------------------------------------------------------------------------------------------------------- */

static unsigned index_of(const json_t *text, const char *const *names, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (json_is_string(text) && strcmp(json_string_value(text), names[i]) == 0)
            return i;
    test_fail(__FILE__, __LINE__, "a spec has an unknown name");
}

static decant_scale scale_of(const json_t *text)
{
    static const char *const names[] = {"F32", "F16", "BF16", "UE8M0", "UE4M3"};

    return json_is_null(text) ? DECANT_SCALE_NONE : (decant_scale)(DECANT_SCALE_F32 + index_of(text, names, 5));
}

static decant_quant scheme_of(const json_t *spec)
{
    static const char *const values[] = {"Q8F", "E5M2", "E4M3", "Q4F", "E2M1", "Q2F", "Q8S", "Q4S", "Q2S"};
    static const char *const modes[] = {"Symmetric", "Lookup"};
    const json_t *store = json_object_get(spec, "store"), *block = json_object_get(spec, "block");
    const json_t *size = json_object_get(block, "size"), *packed;
    decant_quant quant = {.size = sizeof quant};

    quant.value = (decant_quant_value)index_of(json_object_get(spec, "value"), values, 9);
    quant.mode = (decant_quant_mode)index_of(json_object_get(spec, "mode"), modes, 2);
    quant.tensor_scale = scale_of(json_object_get(spec, "tensor"));
    if ((packed = json_object_get(store, "PackedU32")))
        quant.store = DECANT_STORE_PACKED_U32;
    else if ((packed = json_object_get(store, "PackedNative")))
        quant.store = DECANT_STORE_PACKED_NATIVE;
    quant.packed_dim = (uint64_t)json_integer_value(packed);
    if (json_is_object(block)) {
        quant.block_scale = scale_of(json_object_get(block, "dtype"));
        quant.block_rank = (uint8_t)json_array_size(size);
        for (size_t i = 0; i < quant.block_rank; i++)
            quant.block[i] = (uint8_t)json_integer_value(json_array_get(size, i));
    }
    return quant;
}

static decant_dtype dtype_of(const json_t *spec)
{
    static const char *const bools[] = {"Native", "U8", "U32"};

    if (json_object_get(spec, "QFloat"))
        return DECANT_QFLOAT;
    if (json_is_object(spec))
        return (decant_dtype)(DECANT_BOOL + index_of(json_object_get(spec, "Bool"), bools, 3));
    for (unsigned i = 0; i < dcn_dtype_count(); i++)
        if (strcmp(decant_dtype_name((decant_dtype)i), json_string_value(spec)) == 0)
            return (decant_dtype)i;
    test_fail(__FILE__, __LINE__, "unknown dtype %s in a spec", json_string_value(spec));
}

static uint8_t *data_of(const json_t *spec, size_t len)
{
    const char *text = json_string_value(json_object_get(spec, "data"));
    uint8_t *data = malloc(len ? len : 1);

    CHECK(data && text);
    if (strncmp(text, "seed:", 5) == 0) {
        test_stream(strtoull(text + 5, NULL, 10), data, len);
        return data;
    }
    CHECK_EQ(strlen(text), 2 * len);
    for (size_t i = 0; i < len; i++) {
        char digits[3] = {text[2 * i], text[2 * i + 1]};

        data[i] = (uint8_t)strtoul(digits, NULL, 16);
    }
    return data;
}

static void add_spec(decant_model *model, const json_t *spec)
{
    const json_t *shape = json_object_get(spec, "shape"), *id = json_object_get(spec, "param_id"), *extent;
    const json_t *name = json_object_get(spec, "name"), *dtype = json_object_get(spec, "dtype");
    decant_tensor tensor = DECANT_TENSOR_INIT;
    decant_quant scheme;
    decant_bytes *bytes = NULL;
    decant_error err = {0};
    uint64_t extents[16], len = 0;
    uint8_t *data;
    size_t i;

    json_array_foreach(shape, i, extent) extents[i] = (uint64_t)json_integer_value(extent);
    tensor.name = json_string_value(name);
    tensor.name_len = json_string_length(name);
    tensor.dtype = dtype_of(dtype);
    tensor.rank = json_array_size(shape);
    tensor.shape = extents;
    if (json_is_string(id)) {
        tensor.has_id = 1;
        tensor.id = strtoull(json_string_value(id), NULL, 10);
    }
    if (tensor.dtype == DECANT_QFLOAT) {
        scheme = scheme_of(json_object_get(dtype, "QFloat"));
        tensor.quant = &scheme;
        CHECK(dcn_quant_len(&scheme, extents, tensor.rank, &len));
    } else {
        CHECK_OK(dcn_dtype_len(tensor.dtype, extents, tensor.rank, &len, &err), &err);
    }
    data = data_of(spec, (size_t)len);
    CHECK_OK(decant_bytes_copy(data, (size_t)len, &bytes, &err), &err);
    free(data);
    CHECK_OK(decant_model_add(model, &tensor, bytes, &err), &err);
    decant_bytes_unref(&bytes);
}

static decant_value scalar_of(const json_t *spec)
{
    decant_value value = {0};
    const json_t *content;

    if ((content = json_object_get(spec, "Int"))) {
        value.type = DECANT_VALUE_I64;
        value.as.i64 = strtoll(json_string_value(content), NULL, 10);
    } else if ((content = json_object_get(spec, "UInt"))) {
        value.type = DECANT_VALUE_U64;
        value.as.u64 = strtoull(json_string_value(content), NULL, 10);
    } else if ((content = json_object_get(spec, "Float"))) {
        value.type = DECANT_VALUE_F64;
        value.as.f64_bits = strtoull(json_string_value(content), NULL, 16);
    } else {
        content = json_object_get(spec, "Bool");
        CHECK(json_is_boolean(content));
        value.type = DECANT_VALUE_BOOL;
        value.as.boolean = json_is_true(content);
    }
    return value;
}

decant_model *model_of_spec(const char *name)
{
    char path[4096];
    json_error_t why;
    json_t *spec, *item;
    decant_model *model = NULL;
    decant_error err = {0};
    const char *key;
    size_t i;

    snprintf(path, sizeof path, "%s/%s.spec.json", TEST_DATA, name);
    spec = json_load_file(path, JSON_ALLOW_NUL, &why);
    if (!spec)
        test_fail(__FILE__, __LINE__, "%s: %s", path, why.text);
    CHECK_OK(decant_model_create(&model, &err), &err);
    json_array_foreach(json_object_get(spec, "tensors"), i, item) add_spec(model, item);
    json_object_foreach(json_object_get(spec, "metadata"), key, item)
    {
        decant_value value = {.type = DECANT_VALUE_TEXT};

        value.as.text.data = json_string_value(item);
        value.as.text.len = json_string_length(item);
        CHECK_OK(decant_model_set(model, key, strlen(key), &value, &err), &err);
    }
    json_object_foreach(json_object_get(spec, "scalars"), key, item)
    {
        decant_value value = scalar_of(item);

        CHECK_OK(decant_model_set(model, key, strlen(key), &value, &err), &err);
    }
    json_decref(spec);
    return model;
}

/* --- comparing ---------------------------------------------------------------------------------------------------- */

uint8_t *entry_bytes(const dcn_entry *entry)
{
    uint8_t *bytes = malloc(entry->data.len ? entry->data.len : 1);
    dcn_fetch fetch = {entry->data.offset, bytes, entry->data.len};
    decant_error err = {0};

    CHECK(bytes);
    if (entry->data.len)
        CHECK_OK(dcn_backing_fetch(entry->data.backing, &fetch, 1, &err), &err);
    return bytes;
}

static void check_same_entries(const dcn_entry *a, const dcn_entry *w)
{
    const decant_quant *actual = dcn_quant_of(a->extra), *wanted = dcn_quant_of(w->extra);
    uint8_t *a_bytes = entry_bytes(a), *w_bytes = entry_bytes(w);

    CHECK_EQ(a->dtype, w->dtype);
    CHECK_EQ(a->rank, w->rank);
    for (size_t i = 0; i < a->rank; i++)
        CHECK_EQ(a->shape[i], w->shape[i]);
    CHECK_EQ(a->has_id, w->has_id);
    CHECK_EQ(a->id, w->id);
    CHECK_EQ(!actual, !wanted);
    CHECK(!actual || dcn_quant_equal(actual, wanted));
    CHECK_BYTES(a_bytes, a->data.len, w_bytes, w->data.len);
    free(a_bytes);
    free(w_bytes);
}

static const dcn_value *find_value(const decant_model *model, const dcn_value *like)
{
    for (size_t i = 0; i < model->value_count; i++) {
        const dcn_value *value = &model->values[i];

        if (value->key_len == like->key_len && memcmp(value->key, like->key, like->key_len) == 0 &&
            value->value.type == like->value.type)
            return value;
    }
    test_fail(__FILE__, __LINE__, "there is no value '%.*s'", (int)like->key_len, like->key);
}

static void check_same_values(const decant_value *a, const decant_value *w)
{
    switch (w->type) {
    case DECANT_VALUE_TEXT:
        CHECK_BYTES(a->as.text.data, a->as.text.len, w->as.text.data, w->as.text.len);
        break;
    case DECANT_VALUE_BOOL:
        CHECK_EQ(a->as.boolean, w->as.boolean);
        break;
    default:
        CHECK_EQ(a->as.u64, w->as.u64); /* all others are 64 bits */
    }
}

void check_same_models(const decant_model *actual, const decant_model *wanted)
{
    CHECK_EQ(actual->count, wanted->count);
    for (size_t i = 0; i < wanted->count; i++) {
        const dcn_entry *entry = &wanted->entries[i];
        size_t at;

        if (!dcn_model_find(actual, entry->name, entry->name_len, &at))
            test_fail(__FILE__, __LINE__, "there is no tensor '%.*s'", (int)entry->name_len, entry->name);
        check_same_entries(&actual->entries[at], entry);
    }
    CHECK_EQ(actual->value_count, wanted->value_count);
    for (size_t i = 0; i < wanted->value_count; i++)
        check_same_values(&find_value(actual, &wanted->values[i])->value, &wanted->values[i].value);
}
