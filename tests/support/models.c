#include "models.h"

#include <stdio.h>
#include <stdlib.h>

#include "alloc.h"
#include "base/dtype.h"
#include "format/burnpack/quant.h"
#include "render.h"
#include "sha256.h"
#include "spec.h"

decant_status model_open(const dcn_format *format, const void *bytes, size_t len, const dcn_limits *limits,
                         unsigned lenient, decant_model **out, decant_error *err)
{
    dcn_limits defaults = dcn_limits_of(false);
    dcn_input in = {.name = "memory"};
    void *copy = malloc(len ? len : 1);
    decant_status rc;

    CHECK(copy);
    if (len)
        memcpy(copy, bytes, len);
    if ((rc = decant_bytes_wrap(copy, len, free, copy, &in.bytes, err))) {
        free(copy);
        return rc;
    }
    rc = dcn_format_open(&in, format, limits ? limits : &defaults, lenient, out, err);
    decant_bytes_unref(&in.bytes);
    return rc;
}

void check_opens_or_leaves_nothing(const dcn_format *format, const void *bytes, size_t len, unsigned lenient)
{
    size_t n = 0;

    for (bool fired = true; fired; n++) {
        decant_model *model = NULL;
        decant_error err;
        decant_status rc;

        test_alloc_fail(n);
        rc = model_open(format, bytes, len, NULL, lenient, &model, &err);
        fired = test_alloc_fired();
        test_alloc_disarm();
        CHECK_EQ(rc, fired ? DECANT_NOMEM : DECANT_OK);
        decant_model_close(&model);
        CHECK_EQ(test_alloc_live(), 0);
    }
    CHECK(n > 8);
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

void model_add_stream(decant_model *model, const char *name, decant_dtype dtype, size_t rank, const uint64_t *shape,
                      uint64_t seed)
{
    decant_error err = {0};
    uint64_t len;
    void *bytes;

    CHECK_OK(dcn_dtype_len(dtype, shape, rank, &len, &err), &err);
    bytes = malloc(len ? len : 1);
    CHECK(bytes);
    test_stream(seed, bytes, len);
    model_add(model, name, dtype, rank, shape, NULL, bytes, len);
    free(bytes);
}

void model_set_text(decant_model *model, const char *key, const char *text)
{
    decant_value value = {.type = DECANT_VALUE_TEXT, .as.text = {text, strlen(text)}};
    decant_error err = {0};

    CHECK_OK(decant_model_set(model, key, strlen(key), &value, &err), &err);
}

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

/* --- specs -------------------------------------------------------------------------------------------------------- */

static uint64_t len_of(const json_t *spec, const decant_tensor *tensor)
{
    uint64_t len = 0;
    decant_error err = {0};

    (void)spec;
    if (tensor->dtype == DECANT_QFLOAT)
        CHECK(dcn_quant_len(tensor->quant, tensor->shape, tensor->rank, &len));
    else
        CHECK_OK(dcn_dtype_len(tensor->dtype, tensor->shape, tensor->rank, &len, &err), &err);
    return len;
}

decant_model *model_of_spec(const char *name)
{
    char path[4096];
    json_error_t why;
    json_t *spec;
    decant_model *model = NULL;
    decant_error err = {0};

    snprintf(path, sizeof path, "%s/%s.spec.json", TEST_DATA, name);
    spec = json_load_file(path, JSON_ALLOW_NUL, &why);
    if (!spec)
        test_fail(__FILE__, __LINE__, "%s: %s", path, why.text);
    CHECK_OK(spec_model(spec, len_of, &model, &err), &err);
    json_decref(spec);
    return model;
}

const char *openers_text(const dcn_openers *openers)
{
    static char text[256];
    const char *by, *why_not;
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; dcn_openers_get(openers, i, &by, &why_not); i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s%s%s", i ? "; " : "", by, why_not ? ": " : "",
                                 why_not ? why_not : "");
    return text;
}

/* --- reports ------------------------------------------------------------------------------------------------------ */

/* The line of read.jsonl about a golden file. */
static json_t *report_of(const char *file)
{
    size_t len;
    char *lines = (char *)test_data("read.jsonl", &len), *rest = lines, *line;
    json_t *report = NULL;

    lines[len - 1] = '\0';
    while ((line = strtok_r(rest, "\n", &rest))) {
        const char *about;

        report = json_loads(line, JSON_ALLOW_NUL, NULL);
        about = json_string_value(json_object_get(report, "file"));
        if (about && strcmp(about, file) == 0)
            break;
        json_decref(report);
        report = NULL;
    }
    free(lines);
    if (!report)
        test_fail(__FILE__, __LINE__, "read.jsonl does not know %s", file);
    return report;
}

static void check_reported(const dcn_entry *entry, const json_t *wanted, uint64_t data)
{
    const json_t *shape = json_object_get(wanted, "shape"), *id = json_object_get(wanted, "param_id");
    const json_t *dtype = json_object_get(wanted, "dtype"), *quantized = json_object_get(wanted, "quantized_len");
    const json_t *offsets = json_object_get(wanted, "data_offsets");
    uint8_t *bytes = entry_bytes(entry);
    uint64_t len;

    if (json_is_string(dtype))
        CHECK_TEXT(decant_dtype_name(entry->dtype), json_string_value(dtype));
    CHECK_EQ(entry->rank, json_array_size(shape));
    for (size_t i = 0; i < entry->rank; i++)
        CHECK_EQ(entry->shape[i], json_integer_value(json_array_get(shape, i)));
    CHECK_EQ(entry->has_id, json_is_string(id));
    if (entry->has_id)
        CHECK_EQ(entry->id, strtoull(json_string_value(id), NULL, 10));
    if (offsets)
        CHECK_EQ(entry->data.offset, data + (uint64_t)json_integer_value(json_array_get(offsets, 0)));
    CHECK_EQ(entry->data.len, json_integer_value(json_object_get(wanted, "len")));
    CHECK_TEXT(sha256_hex(bytes, entry->data.len), json_string_value(json_object_get(wanted, "sha256")));
    if (json_is_integer(quantized)) {
        CHECK(dcn_quant_len(dcn_quant_of(entry->extra), entry->shape, entry->rank, &len));
        CHECK_EQ(len, json_integer_value(quantized));
    }
    free(bytes);
}

void check_read_as_reported(const decant_model *model, const char *file)
{
    json_t *report = report_of(file), *tensors = json_object_get(report, "tensors"), *tensor;
    uint64_t data = 8 + (uint64_t)json_integer_value(json_object_get(report, "header_len")); /* of safetensors */
    size_t i, at;

    CHECK_EQ(model->count, json_array_size(tensors));
    CHECK_EQ(model->value_count, json_object_size(json_object_get(report, "metadata")) +
                                     json_object_size(json_object_get(report, "scalars")));
    json_array_foreach(tensors, i, tensor)
    {
        const json_t *name = json_object_get(tensor, "name");

        CHECK(dcn_model_find(model, json_string_value(name), json_string_length(name), &at));
        check_reported(&model->entries[at], tensor, data);
    }
    json_decref(report);
}

/* --- comparing ---------------------------------------------------------------------------------------------------- */

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

void check_comes_back(const dcn_format *format, const decant_model *model, bool lenient)
{
    enum { MOST = 1 << 24 }; /* of many names that share few bytes a small file may make a large one */
    dcn_layout how = {.allow = model->disputed_count ? DECANT_ALLOW_LOSS : 0};
    decant_model *again = NULL;
    dcn_plans plans = {0};
    decant_error err = {0};
    uint8_t *file, *file_again;
    size_t len, len_again;

    CHECK_OK(format->emit(model, &how, &plans, &err), &err);
    if (plans.items[0].total < MOST) {
        file = render_plan(&plans.items[0], &len);
        CHECK_OK(model_open(format, file, len, NULL, lenient ? DECANT_LENIENT_ALL : 0, &again, &err), &err);
        check_same_models(again, model);
        CHECK_OK(model_render(format, again, NULL, &file_again, &len_again, &err), &err);
        CHECK_BYTES(file_again, len_again, file, len);
        free(file_again);
        decant_model_close(&again);
        free(file);
    }
    dcn_plans_close(&plans);
}

static void count_fault(void *ctx, const decant_error *fault)
{
    CHECK(fault->status && fault->message[0]);
    ++*(size_t *)ctx;
}

/* What lists all faults finds some exactly where opening fails for one; and it never goes on into another failure. */
static void check_faults(const dcn_format *format, const void *bytes, size_t len, unsigned lenient,
                         decant_status opened)
{
    const dcn_limits limits = dcn_limits_of(false);
    size_t count = 0;
    const dcn_findings findings = {count_fault, &count};
    dcn_input in = {.name = "memory", .findings = &findings};
    decant_model *model = NULL;
    decant_error err = {0};
    decant_status rc;

    CHECK_OK(decant_bytes_copy(bytes, len, &in.bytes, &err), &err);
    rc = dcn_fault(&findings, dcn_format_open(&in, format, &limits, lenient, &model, &err), &err);
    if (opened == DECANT_OK)
        CHECK(rc == DECANT_OK && count == 0);
    if (opened == DECANT_MALFORMED || opened == DECANT_TRUNCATED || opened == DECANT_DUPLICATE ||
        opened == DECANT_UNSUPPORTED)
        CHECK(count > 0);
    decant_model_close(&model);
    decant_bytes_unref(&in.bytes);
}

void check_any_file(const dcn_format *format, const void *bytes, size_t len, bool lenient)
{
    decant_model *model = NULL;

    for (int way = 0; way < 2 && !model; way++) {
        decant_error err = {0};
        decant_status rc = model_open(format, bytes, len, NULL, way ? DECANT_LENIENT_ALL : 0, &model, &err);

        CHECK_EQ(err.status, rc);
        CHECK(rc ? !model && err.message[0] : model != NULL);
        check_faults(format, bytes, len, way ? DECANT_LENIENT_ALL : 0, rc);
    }
    if (model)
        check_comes_back(format, model, lenient);
    decant_model_close(&model);
}
