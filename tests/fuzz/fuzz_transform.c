/*
 * Any text as a pattern, a substitution, a rule of dtypes and a setting, and any name for them: what is accepted gives names
 * that are UTF-8, and a substitution that matched nothing leaves the name alone.
 */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "model/model.h"
#include "transform/pattern.h"
#include "transform/rename.h"
#include "transform/transform.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

/* Memory that ends where the text does, so that a sanitizer sees one byte too far. */
static char *copy_of(const void *data, size_t size)
{
    char *copy = malloc(size + 1);

    require(copy);
    memcpy(copy, data, size);
    copy[size] = '\0';
    return copy;
}

static void check_pattern(const char *text, const char *name, size_t len)
{
    dcn_pattern pattern = {0};
    decant_error err = {0};
    decant_status rc;
    bool yes = false;

    if (dcn_pattern_open(text, strlen(text), &pattern, &err)) {
        require(err.hint[0] || err.status == DECANT_NOMEM);
        return;
    }
    rc = dcn_pattern_match(&pattern, name, len, &yes, &err);
    require(rc == DECANT_OK ? pattern.matched == yes : rc == DECANT_LIMIT);
    if (dcn_pattern_is_name(&pattern) && !strchr(text, '\\'))
        require(yes == (strlen(text) == len && memcmp(text, name, len) == 0));
    dcn_pattern_close(&pattern);
}

static void check_rename(const char *text, const char *name, size_t len)
{
    dcn_rename rename = {0};
    decant_error err = {0};
    dcn_buf out = {0};
    decant_status rc;

    if (dcn_rename_open(text, &rename, &err)) {
        require(err.hint[0] || err.status == DECANT_NOMEM);
        return;
    }
    rc = dcn_rename_apply(&rename, name, len, &out, &err);
    require(rc == DECANT_OK || rc == DECANT_LIMIT);
    if (rc == DECANT_OK) {
        require(dcn_utf8_valid(out.data, out.len));
        require(rename.matched || (out.len == len && memcmp(out.data, name, len) == 0));
    }
    dcn_buf_close(&out);
    dcn_rename_close(&rename);
}

/* As the value of each flag, for a model with this one tensor. */
static void check_transform(const char *text, const char *name, size_t len)
{
    const char *const list[] = {text};
    const decant_setting set = {text, NULL, 0};
    const decant_transform_options all[] = {
        {.rename = list, .rename_count = 1},
        {.dtype = list, .dtype_count = 1},
        {.set = &set, .set_count = 1},
        {.include = list, .include_count = 1, .unset = list, .unset_count = 1},
    };
    const uint64_t shape[] = {2};
    decant_model *model = NULL, *made = NULL;
    decant_bytes *bytes = NULL;
    decant_error err = {0};

    require(dcn_model_create(1, &model, &err) == DECANT_OK &&
            decant_bytes_wrap("12345678", 8, NULL, NULL, &bytes, &err) == DECANT_OK);
    if (dcn_model_add(
            model,
            &(dcn_draft){
                .name = name, .name_len = len, .shape = shape, .rank = 1, .dtype = DECANT_F32, .data = {bytes, 0, 8}},
            &err) == DECANT_OK)
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
            if (dcn_transform((const decant_model *const *)&model, NULL, 1, &all[i], &made, &err))
                require(err.hint[0]);
            decant_model_close(&made);
        }
    decant_bytes_unref(&bytes);
    decant_model_close(&model);
}

/* The first line is the text, the rest is the name. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *line = size ? memchr(data, '\n', size) : NULL;
    size_t text_len = line ? (size_t)(line - data) : size, name_len = line ? size - text_len - 1 : 0;
    char *text = copy_of(data, text_len), *name = copy_of(line ? line + 1 : data, name_len);

    if (name_len <= 4096 && dcn_utf8_valid(name, name_len)) {
        check_pattern(text, name, name_len);
        check_rename(text, name, name_len);
        check_transform(text, name, name_len);
    }
    free(name);
    free(text);
    return 0;
}
