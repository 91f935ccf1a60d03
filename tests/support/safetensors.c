#include "safetensors.h"

#include <stdlib.h>

#include "base/dtype.h"
#include "base/endian.h"
#include "render.h"

uint8_t *st_file(const char *header, size_t data, size_t *len)
{
    size_t header_len = strlen(header);
    uint8_t *file = malloc(8 + header_len + data);

    if (!file)
        test_fail(__FILE__, __LINE__, "no memory");
    dcn_put_le(file, header_len, 8);
    memcpy(file + 8, header, header_len);
    test_stream(1, file + 8 + header_len, data);
    *len = 8 + header_len + data;
    return file;
}

decant_status open_copy(const void *bytes, size_t len, const dcn_format *format, bool lenient, decant_model **out,
                        decant_error *err)
{
    dcn_limits limits = dcn_limits_of(false);
    dcn_input in = {.name = "memory"};
    void *copy = malloc(len ? len : 1);
    decant_status rc;

    if (!copy)
        test_fail(__FILE__, __LINE__, "no memory");
    if (len)
        memcpy(copy, bytes, len);
    rc = decant_bytes_wrap(copy, len, free, copy, &in.bytes, err);
    if (rc) {
        free(copy);
        return rc;
    }
    rc = dcn_format_open(&in, format, &limits, lenient, out, err);
    decant_bytes_unref(&in.bytes);
    return rc;
}

decant_status st_open(const char *header, size_t data, bool lenient, decant_model **out, decant_error *err)
{
    size_t len;
    uint8_t *file = st_file(header, data, &len);
    decant_status rc = open_copy(file, len, &dcn_safetensors, lenient, out, err);

    free(file);
    return rc;
}

decant_status st_save(const decant_model *model, const dcn_layout *how, uint8_t **bytes, size_t *len, decant_error *err)
{
    dcn_plans plans = {0};
    decant_status rc = dcn_safetensors.emit(model, how, &plans, err);

    if (!rc)
        *bytes = render_plan(&plans.items[0], len);
    dcn_plans_close(&plans);
    return rc;
}

void add_tensor(decant_model *model, const char *name, decant_dtype dtype, size_t rank, const uint64_t *shape,
                uint64_t seed)
{
    decant_tensor tensor = DECANT_TENSOR_INIT;
    decant_bytes *bytes = NULL;
    decant_error err = {0};
    uint64_t len;
    void *data;

    CHECK_OK(dcn_dtype_len(dtype, shape, rank, &len, &err), &err);
    data = malloc(len ? len : 1);
    CHECK(data);
    test_stream(seed, data, len);
    CHECK_OK(decant_bytes_wrap(data, len, free, data, &bytes, &err), &err);
    tensor.name = name;
    tensor.name_len = strlen(name);
    tensor.dtype = dtype;
    tensor.rank = rank;
    tensor.shape = shape;
    CHECK_OK(decant_model_add(model, &tensor, bytes, &err), &err);
    decant_bytes_unref(&bytes);
}

void set_text(decant_model *model, const char *key, const char *text)
{
    decant_value value = {.type = DECANT_VALUE_TEXT, .as.text = {text, strlen(text)}};
    decant_error err = {0};

    CHECK_OK(decant_model_set(model, key, strlen(key), &value, &err), &err);
}
