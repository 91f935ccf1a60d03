#include <string.h>

#include "api/env.h"
#include "base/text.h"

/* How much of a path says the folder: up to the last slash, and with it. */
static size_t folder_len(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? (size_t)(slash - path) + 1 : 0;
}

static decant_status check_file(const decant_file *file, const decant_file *last, decant_error *err)
{
    size_t len;

    if (!file->path)
        return decant_error_set(err, DECANT_BAD_CALL, "the path is NULL: name a file to write to");
    if (!file->bytes) {
        decant_error_set(err, DECANT_BAD_CALL, "the file has no bytes: wrap, copy, join or defer some");
        dcn_error_path(err, file->path);
        return DECANT_BAD_CALL;
    }
    len = folder_len(file->path);
    if (!file->path[len]) {
        decant_error_set(err, DECANT_BAD_CALL, "the path does not end in the name of a file");
        dcn_error_hint(err, "name a file");
        dcn_error_path(err, file->path);
        return DECANT_BAD_CALL;
    }
    if (len == folder_len(last->path) && memcmp(file->path, last->path, len) == 0)
        return DECANT_OK;
    decant_error_set(err, DECANT_UNSUPPORTED, "files of one save lie in one folder");
    dcn_error_found(err, "'%.*s'", (int)len, file->path);
    dcn_error_expected(err, "'%.*s'", (int)folder_len(last->path), last->path);
    dcn_error_hint(err, "spell it alike for all of them, or write them one by one");
    dcn_error_path(err, file->path);
    return DECANT_UNSUPPORTED;
}

/* The files as a model of blobs, each with the bare name of its file. */
static decant_status make_model(const decant_file *files, size_t count, decant_model **out, decant_error *err)
{
    decant_model *model = NULL;
    decant_status rc = decant_model_create(&model, err);

    for (size_t i = 0; i < count && rc == DECANT_OK; i++) {
        decant_tensor blob = DECANT_TENSOR_INIT;

        blob.name = files[i].path + folder_len(files[i].path);
        rc = decant_model_add(model, &blob, files[i].bytes, err);
        if (rc == DECANT_DUPLICATE) {
            decant_error_set(err, rc = DECANT_BAD_CALL, "two files have this path");
            dcn_error_hint(err, "give each one of its own");
            dcn_error_path(err, files[i].path);
        }
    }
    if (rc)
        decant_model_close(&model);
    *out = model;
    return rc;
}

decant_status dcn_write(const dcn_env *env, const decant_file *files, size_t count, const decant_save_options *options,
                        bool plan_only, decant_report **report, decant_error *err)
{
    dcn_target target = {.kind = DCN_TO_FILE, .format = &dcn_raw};
    decant_model *model = NULL;
    decant_status rc = DECANT_OK;

    if (!count)
        return decant_error_set(err, DECANT_BAD_CALL, "no files to write");
    for (size_t i = count; i-- > 0 && rc == DECANT_OK;) /* the last one first: it says which folder */
        rc = check_file(&files[i], &files[count - 1], err);
    if (rc || (rc = make_model(files, count, &model, err)))
        return rc;
    target.path = files[count - 1].path;
    rc = dcn_save(env, model, &target, options, plan_only, report, err);
    decant_model_close(&model);
    return rc;
}

decant_status decant_write(const decant_file *files, size_t count, const decant_save_options *options,
                           decant_report **report, decant_error *err)
{
    dcn_env env = dcn_env_default();

    return dcn_write(&env, files, count, options, false, report, err);
}

decant_status decant_plan_write(const decant_file *files, size_t count, const decant_save_options *options,
                                decant_report **report, decant_error *err)
{
    dcn_env env = dcn_env_default();

    return dcn_write(&env, files, count, options, true, report, err);
}
