/*
 * Any bytes as a safetensors file, leniently if not strictly. What opens is planned, rendered and opened again: it is the
 * same model, and the second time the same bytes.
 */
#include <stdlib.h>
#include <string.h>

#include "format/format.h"
#include "support/render.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static decant_model *open_bytes(const uint8_t *data, size_t size, bool lenient)
{
    dcn_limits limits = dcn_limits_of(false);
    dcn_input in = {.name = "fuzz.safetensors"};
    decant_model *model = NULL;
    decant_error err = {0};
    decant_status rc;

    require(decant_bytes_wrap(data, size, NULL, NULL, &in.bytes, &err) == DECANT_OK);
    rc = dcn_format_open(&in, &dcn_safetensors, &limits, lenient, &model, &err);
    require(rc == err.status && (rc == DECANT_OK) == (model != NULL));
    decant_bytes_unref(&in.bytes);
    return model;
}

static uint8_t *save(const decant_model *model, size_t *len)
{
    dcn_layout how = {0};
    dcn_plans plans = {0};
    uint8_t *file;

    require(dcn_safetensors.emit(model, &how, &plans, NULL) == DECANT_OK);
    file = render_plan(&plans.items[0], len);
    dcn_plans_close(&plans);
    return file;
}

static void compare(const decant_model *a, const decant_model *b)
{
    require(a->count == b->count && a->value_count == b->value_count);
    for (size_t i = 0; i < a->count; i++) {
        const dcn_entry *one = &a->entries[i], *two;
        size_t index;

        require(dcn_model_find(b, one->name, one->name_len, &index));
        two = &b->entries[index];
        require(one->dtype == two->dtype && one->rank == two->rank && one->data.len == two->data.len);
        require(!one->rank || memcmp(one->shape, two->shape, one->rank * sizeof *one->shape) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    decant_model *model = open_bytes(data, size, false), *again;
    uint8_t *file, *file_again;
    size_t len, len_again;

    if (!model)
        model = open_bytes(data, size, true);
    if (!model)
        return 0;
    file = save(model, &len);
    again = open_bytes(file, len, false);
    require(again);
    compare(model, again);
    file_again = save(again, &len_again);
    require(len == len_again && memcmp(file, file_again, len) == 0);
    free(file_again);
    decant_model_close(&again);
    free(file);
    decant_model_close(&model);
    return 0;
}
