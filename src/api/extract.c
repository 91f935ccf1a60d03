#include <decant/extract.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/env.h"
#include "base/text.h"
#include "format/format.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

/* NULL: none is called so. */
static const dcn_format *format_of(const dcn_entry *entry, const char *name)
{
    if (!name)
        return dcn_npy_takes((decant_dtype)entry->dtype, entry->rank) ? &dcn_npy : &dcn_raw;
    return strcmp(name, dcn_npy.name) == 0 ? &dcn_npy : strcmp(name, dcn_raw.name) == 0 ? &dcn_raw : NULL;
}

static bool is_plain(char c, bool is_first)
{
    return (unsigned char)c >= ' ' && c != 0x7f && c != '/' && c != '\\' && c != '%' && !(is_first && c == '.');
}

void decant_extract_name(const decant_model *model, size_t index, const char *format, int distinct, char *out)
{
    enum { SUM = 2 + 16 }; /* "%~" and the digits of the checksum */
    const dcn_entry *entry = &model->entries[index];
    const dcn_format *as = format_of(entry, format);
    const char *extension = as ? as->extensions[0] : "bin";
    size_t most = DECANT_FILE_NAME - 2 - strlen(extension), used = 0, whole = 0, i = 0;

    /* `whole` is where it is cut: behind a character, with room for the checksum */
    for (; i < entry->name_len && used + 3 <= most; i++) {
        bool plain = is_plain(entry->name[i], i == 0);

        if (((unsigned char)entry->name[i] & 0xC0) != 0x80 && used <= most - SUM)
            whole = used;
        used += (size_t)snprintf(out + used, DECANT_FILE_NAME - used, plain ? "%c" : "%%%02X",
                                 (unsigned char)entry->name[i]);
    }
    if (i == 0)
        used = (size_t)snprintf(out, DECANT_FILE_NAME, "%%");
    if (i < entry->name_len || distinct) {
        used = i < entry->name_len || used > most - SUM ? whole : used;
        used += (size_t)snprintf(out + used, DECANT_FILE_NAME - used, "%%~%016" PRIx64,
                                 XXH3_64bits(entry->name, entry->name_len));
    }
    snprintf(out + used, DECANT_FILE_NAME - used, ".%s", extension);
}

/* A model of one tensor of another. */
static decant_status pick(const decant_model *model, size_t index, decant_model **out, decant_error *err)
{
    const dcn_entry *entry = &model->entries[index];
    const dcn_draft draft = {
        .name = entry->name,
        .name_len = entry->name_len,
        .shape = entry->shape,
        .rank = entry->rank,
        .dtype = (decant_dtype)entry->dtype,
        .any_name = true,
        .data = entry->data,
    };
    decant_model *one = NULL;
    decant_status rc;

    if ((rc = decant_model_create(&one, err)) == DECANT_OK && (rc = dcn_model_add(one, &draft, err)) == DECANT_OK) {
        *out = one;
        one = NULL;
    }
    decant_model_close(&one);
    return rc;
}

static decant_status extract(const decant_model *model, size_t index, dcn_target *target,
                             const decant_extract_options *options, decant_error *err)
{
    dcn_env env = dcn_env_default();
    decant_save_options how = DECANT_SAVE_OPTIONS_INIT;
    decant_extract_options own = {0};
    decant_model *one = NULL;
    decant_status rc;

    if (!model)
        return decant_error_set(err, DECANT_BAD_CALL, "the model is NULL");
    if (index >= model->count)
        return decant_error_set(err, DECANT_BAD_CALL, "index %zu is past the last of %zu tensors", index, model->count);
    dcn_options_take(&own, sizeof own, options);
    if (!(target->format = format_of(&model->entries[index], own.format)))
        return decant_error_set(err, DECANT_BAD_CALL, "a tensor is extracted as npy or raw, not as '%s'", own.format);
    how.replace = own.replace;
    how.progress = own.progress;
    how.progress_ctx = own.progress_ctx;
    if ((rc = pick(model, index, &one, err)) == DECANT_OK)
        rc = dcn_save(&env, one, target, &how, own.plan_only, NULL, err);
    decant_model_close(&one);
    return rc;
}

decant_status decant_extract(const decant_model *model, size_t index, const char *path,
                             const decant_extract_options *options, decant_error *err)
{
    dcn_target target = {.kind = DCN_TO_FILE, .path = path};

    if (!path)
        return decant_error_set(err, DECANT_BAD_CALL, "the path is NULL: name a file to save to");
    return extract(model, index, &target, options, err);
}

decant_status decant_extract_stream(const decant_model *model, size_t index, const decant_stream *stream,
                                    const decant_extract_options *options, decant_error *err)
{
    dcn_target target = {.kind = DCN_TO_STREAM};

    if (!stream || stream->size < sizeof *stream || !stream->write)
        return decant_error_set(err, DECANT_BAD_CALL, "set the stream's size, to sizeof(decant_stream), and its write");
    target.stream = *stream;
    return extract(model, index, &target, options, err);
}
