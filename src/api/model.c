#include "model/model.h"

#include <assert.h>
#include <string.h>

#include "base/dtype.h"
#include "format/format.h"

decant_status decant_model_create(decant_model **out, decant_error *err)
{
    uint64_t seed;
    decant_status rc = dcn_io_random(dcn_io_posix(), &seed, sizeof seed, err);

    return rc ? rc : dcn_model_create(seed, out, err);
}

static decant_status check_tensor(const decant_tensor *tensor, const decant_bytes *bytes, decant_error *err)
{
    if (tensor->size < sizeof *tensor)
        return decant_error_set(err, DECANT_BAD_CALL, "the tensor has no size: begin with DECANT_TENSOR_INIT");
    if (!tensor->name)
        return decant_error_set(err, DECANT_BAD_CALL, "the tensor has no name");
    if (!bytes)
        return decant_error_set(err, DECANT_BAD_CALL, "the tensor has no bytes: wrap, copy or defer some");
    if ((size_t)tensor->dtype >= dcn_dtype_count())
        return decant_error_set(err, DECANT_BAD_CALL, "dtype %d is none of decant_dtype", (int)tensor->dtype);
    if (tensor->rank && !tensor->shape)
        return decant_error_set(err, DECANT_BAD_CALL, "the tensor has rank %zu and no shape", tensor->rank);
    if ((tensor->dtype == DECANT_QFLOAT) != (tensor->quant != NULL))
        return decant_error_set(err, DECANT_BAD_CALL, "set quant for DECANT_QFLOAT, and for no other dtype");
    return DECANT_OK;
}

decant_status decant_model_add(decant_model *model, const decant_tensor *tensor, decant_bytes *bytes, decant_error *err)
{
    dcn_draft draft;
    dcn_extra *scheme = NULL;
    decant_status rc;

    if ((rc = check_tensor(tensor, bytes, err)) ||
        (tensor->quant && (rc = dcn_quant_extra(tensor->quant, &scheme, err))))
        return rc;
    draft = (dcn_draft){
        .name = tensor->name,
        .name_len = tensor->name_len ? tensor->name_len : strlen(tensor->name),
        .shape = tensor->shape,
        .rank = tensor->rank,
        .dtype = tensor->dtype,
        .has_id = tensor->has_id,
        .id = tensor->id,
        .data = {bytes, 0, bytes->len},
        .extra = scheme,
    };
    rc = dcn_model_add(model, &draft, err);
    dcn_extra_unref(&scheme);
    return rc;
}

decant_status decant_model_set(decant_model *model, const char *key, size_t key_len, const decant_value *value,
                               decant_error *err)
{
    decant_value own = *value;

    if ((unsigned)value->type - DECANT_VALUE_BOOL > DECANT_VALUE_TEXT - DECANT_VALUE_BOOL)
        return decant_error_set(err, DECANT_BAD_CALL, "value type %d is none of decant_value_type", (int)value->type);
    if (!key && key_len)
        return decant_error_set(err, DECANT_BAD_CALL, "the key is NULL, its length %zu", key_len);
    if (value->type == DECANT_VALUE_TEXT && !value->as.text.data) {
        if (value->as.text.len)
            return decant_error_set(err, DECANT_BAD_CALL, "the text is NULL, its length %zu", value->as.text.len);
        own.as.text.data = "";
    }
    return dcn_model_set(model, key ? key : "", key_len, &own, true, err);
}

size_t decant_model_count(const decant_model *model)
{
    return model->count;
}

void decant_model_tensor(const decant_model *model, size_t index, decant_tensor *out)
{
    const dcn_entry *entry = &model->entries[index];

    assert(index < model->count && out->size >= sizeof *out);
    *out = (decant_tensor){
        .size = out->size,
        .name = entry->name,
        .name_len = entry->name_len,
        .dtype = entry->dtype,
        .rank = entry->rank,
        .shape = entry->shape,
        .len = entry->data.len,
        .has_id = entry->has_id,
        .id = entry->id,
        .quant = dcn_quant_of(entry->extra),
    };
}

decant_status decant_model_find(const decant_model *model, const char *name, size_t name_len, size_t *index,
                                decant_error *err)
{
    if (dcn_model_find(model, name, name_len, index))
        return DECANT_OK;
    decant_error_set(err, DECANT_NOT_FOUND, "no tensor has this name");
    dcn_error_tensor(err, name, name_len);
    dcn_error_path(err, model->path);
    return DECANT_NOT_FOUND;
}

decant_status decant_model_bytes(const decant_model *model, size_t index, decant_bytes **out, decant_error *err)
{
    const dcn_span *data = &model->entries[index].data;

    if (index >= model->count)
        return decant_error_set(err, DECANT_BAD_CALL, "index %zu is past the last of %zu tensors", index, model->count);
    if (data->len != data->backing->len)
        return dcn_bytes_slice(data->backing, data->offset, data->len, out, err);
    *out = decant_bytes_ref(data->backing);
    return DECANT_OK;
}

size_t decant_model_value_count(const decant_model *model)
{
    return model->value_count;
}

void decant_model_value(const decant_model *model, size_t index, const char **key, size_t *key_len, decant_value *out)
{
    const dcn_value *value = &model->values[index];

    assert(index < model->value_count);
    *key = value->key;
    *key_len = value->key_len;
    *out = value->value;
}

const char *decant_model_path(const decant_model *model)
{
    return model->path;
}

int decant_model_file(const decant_model *model, size_t index, const char **path, uint64_t *size)
{
    if (index >= model->file_count)
        return 0;
    if (path)
        *path = model->files[index].path;
    if (size)
        *size = model->files[index].size;
    return 1;
}

const char *decant_model_format(const decant_model *model)
{
    return model->format;
}

int decant_model_reader(const decant_model *model, size_t index, const char **program, const char **why_not)
{
    return dcn_openers_get(&model->openers, index, program, why_not);
}

decant_status decant_model_note(const decant_model *model, size_t index, const char **key, const char **text)
{
    if (index >= model->note_count)
        return DECANT_NOT_FOUND;
    *key = model->notes[index].key;
    *text = model->notes[index].text;
    return DECANT_OK;
}
