/* The values of several models as those of one, and setting and unsetting some. */
#include "transform/transform.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/chunk.h"
#include "base/text.h"

/* --- one value from text ------------------------------------------------------------------------------------------ */

/* What a value can be said to be. */
static const struct type {
    const char *name;
    decant_value_type type;
    int64_t least; /* of I64 */
    uint64_t most; /* of I64 and U64 */
} types[] = {
    {"text", DECANT_VALUE_TEXT, 0, 0},
    {"bool", DECANT_VALUE_BOOL, 0, 0},
    {"i64", DECANT_VALUE_I64, INT64_MIN, INT64_MAX}, /* the widest first: what a value is that is there already */
    {"u64", DECANT_VALUE_U64, 0, UINT64_MAX},
    {"f64", DECANT_VALUE_F64, 0, 0},
    {"i8", DECANT_VALUE_I64, INT8_MIN, INT8_MAX},
    {"i16", DECANT_VALUE_I64, INT16_MIN, INT16_MAX},
    {"i32", DECANT_VALUE_I64, INT32_MIN, INT32_MAX},
    {"u8", DECANT_VALUE_U64, 0, UINT8_MAX},
    {"u16", DECANT_VALUE_U64, 0, UINT16_MAX},
    {"u32", DECANT_VALUE_U64, 0, UINT32_MAX},
    {"f32", DECANT_VALUE_F64, 0, 0},
};

enum { TYPES = sizeof types / sizeof *types };

static const struct type *type_named(const char *name, size_t len)
{
    for (size_t i = 0; i < TYPES; i++)
        if (dcn_chunk_is((dcn_chunk){name, len}, types[i].name))
            return &types[i];
    return NULL;
}

static const struct type *type_like(decant_value_type type)
{
    size_t i = 0;

    while (types[i].type != type)
        i++;
    return &types[i];
}

static bool read_integer(const struct type *type, const char *text, char **end, decant_value *out)
{
    errno = 0;
    if (type->type == DECANT_VALUE_U64) {
        out->as.u64 = strtoull(text, end, 10);
        return !errno && !strchr(text, '-') && out->as.u64 <= type->most;
    }
    out->as.i64 = strtoll(text, end, 10);
    return !errno && out->as.i64 >= type->least && (out->as.i64 < 0 || (uint64_t)out->as.i64 <= type->most);
}

static bool read_real(const struct type *type, const char *text, char **end, decant_value *out)
{
    double value;

    errno = 0;
    value = strcmp(type->name, "f32") == 0 ? (double)strtof(text, end) : strtod(text, end);
    memcpy(&out->as.f64_bits, &value, sizeof value);
    return !errno || (value > -1 && value < 1); /* too small to be exact is no failure */
}

/* A scalar that is all of `text`, but for a newline at its end. */
static bool read_scalar(const struct type *type, const char *text, decant_value *out)
{
    char *end = NULL;

    switch (type->type) {
    case DECANT_VALUE_BOOL:
        out->as.boolean = text[0] == 't';
        end = (char *)(uintptr_t)text + (strncmp(text, "true", 4) == 0 ? 4 : strncmp(text, "false", 5) == 0 ? 5 : 0);
        break;
    case DECANT_VALUE_F64:
        if (!read_real(type, text, &end, out))
            return false;
        break;
    default:
        if (!read_integer(type, text, &end, out))
            return false;
    }
    return end != text && end[*end == '\n'] == '\0' && text[strspn(text, " \t\n")] == text[0];
}

/* --- what is asked for -------------------------------------------------------------------------------------------- */

/* A setting, taken apart. */
typedef struct setting {
    const char *key;
    size_t key_len;
    const struct type *type; /* NULL: as it is, or text */
    const char *value;
    size_t len;
} setting;

static decant_status take_apart(const decant_setting *given, setting *out, decant_error *err)
{
    const char *equals = strchr(given->text, '='), *end = equals ? equals : given->text, *colon = NULL;

    *out = (setting){.key = given->text, .key_len = (size_t)(end - given->text)};
    for (const char *at = given->text; at < end; at++)
        if (*at == ':')
            colon = at;
    if (colon && (out->type = type_named(colon + 1, (size_t)(end - colon) - 1)))
        out->key_len = (size_t)(colon - given->text);
    if (!out->key_len) {
        decant_error_set(err, DECANT_BAD_CALL, "'%s' sets nothing", given->text);
        dcn_error_hint(err, "write KEY=VALUE, or KEY:TYPE=VALUE");
        return DECANT_BAD_CALL;
    }
    out->value = given->data ? given->data : equals + 1;
    out->len = given->data ? given->len : strlen(equals + 1);
    if (!dcn_utf8_valid(out->key, out->key_len) || !dcn_utf8_valid(out->value, out->len)) {
        decant_error_set(err, DECANT_BAD_CALL, "a key and its value are UTF-8, and '%s' is not", given->text);
        dcn_error_hint(err, "write it in UTF-8, whatever the locale is");
        return DECANT_BAD_CALL;
    }
    return DECANT_OK;
}

/* The value of a key in the first input that has it, as metadata or else as a scalar. */
static const dcn_value *first_of(const decant_model *const *models, size_t count, const char *key, size_t key_len)
{
    for (int text = 1; text >= 0; text--)
        for (size_t i = 0; i < count; i++) {
            const dcn_value *found = dcn_model_value(models[i], key, key_len, text);

            if (found)
                return found;
        }
    return NULL;
}

static decant_status set_value(const decant_model *const *models, size_t count, setting *s, decant_model *out,
                               decant_error *err)
{
    const dcn_value *was = first_of(models, count, s->key, s->key_len);
    const struct type *type = s->type ? s->type : type_like(was ? was->value.type : DECANT_VALUE_TEXT);
    decant_value value = {.type = type->type};
    char text[64], safe[96];

    if (type->type == DECANT_VALUE_TEXT) {
        value.as.text.data = s->value;
        value.as.text.len = s->len;
    } else {
        snprintf(text, sizeof text, "%.*s", (int)(s->len < sizeof text ? s->len : sizeof text), s->value);
        if (s->len >= sizeof text || strlen(text) != s->len || !read_scalar(type, text, &value)) {
            dcn_text_escape(safe, sizeof safe, s->key, s->key_len);
            decant_error_set(err, DECANT_BAD_CALL, "'%s' of '%s' is no %s", text, safe, type->name);
            dcn_error_hint(
                err, s->type ? "give a value that is one" : "the key has this type: %s:text=... gives another", safe);
            return DECANT_BAD_CALL;
        }
    }
    return dcn_model_set(out, s->key, s->key_len, &value, true, err);
}

/* --- merging ------------------------------------------------------------------------------------------------------ */

static bool same(const decant_value *a, const decant_value *b)
{
    if (a->type != b->type)
        return false;
    if (a->type == DECANT_VALUE_TEXT)
        return dcn_text_compare(a->as.text.data, a->as.text.len, b->as.text.data, b->as.text.len) == 0;
    return a->type == DECANT_VALUE_BOOL ? !a->as.boolean == !b->as.boolean : a->as.u64 == b->as.u64;
}

/* "'pt' in a.safetensors" */
static void describe(char *out, size_t size, const decant_value *value, const char *path)
{
    char text[48];
    double real;

    switch (value->type) {
    case DECANT_VALUE_TEXT:
        dcn_text_escape(text, sizeof text, value->as.text.data, value->as.text.len);
        break;
    case DECANT_VALUE_BOOL:
        snprintf(text, sizeof text, "%s", value->as.boolean ? "true" : "false");
        break;
    case DECANT_VALUE_I64:
        snprintf(text, sizeof text, "%" PRId64, value->as.i64);
        break;
    case DECANT_VALUE_U64:
        snprintf(text, sizeof text, "%" PRIu64, value->as.u64);
        break;
    case DECANT_VALUE_F64:
        memcpy(&real, &value->as.f64_bits, sizeof real);
        snprintf(text, sizeof text, "%.17g", real);
        break;
    }
    snprintf(out, size, "'%s'%s%s", text, path ? " in " : "", path ? path : "");
}

static decant_status refuse_different(const decant_model *const *models, size_t at, const dcn_value *value,
                                      decant_error *err)
{
    bool is_text = value->value.type == DECANT_VALUE_TEXT;
    const dcn_value *earlier = NULL;
    char key[96], text[128];
    size_t i = 0;

    while (i < at && !(earlier = dcn_model_value(models[i], value->key, value->key_len, is_text)))
        i++;
    dcn_text_escape(key, sizeof key, value->key, value->key_len);
    decant_error_set(err, DECANT_MISMATCH, "the inputs have different values of '%s'", key);
    describe(text, sizeof text, &value->value, models[at]->path);
    dcn_error_found(err, "%s", text);
    if (earlier) {
        describe(text, sizeof text, &earlier->value, models[i]->path);
        dcn_error_expected(err, "%s", text);
    }
    dcn_error_hint(err, "choose one with --set %s=VALUE, or none with --unset %s", key, key);
    dcn_error_path(err, models[at]->path);
    dcn_error_side(err, DECANT_SIDE_INPUT);
    return DECANT_MISMATCH;
}

static bool is_unset(const decant_transform_options *o, const char *key, size_t key_len)
{
    for (size_t i = 0; i < o->unset_count; i++)
        if (dcn_chunk_is((dcn_chunk){key, key_len}, o->unset[i]))
            return true;
    return false;
}

/* Whether one of the first `count` settings is of this key. */
static bool is_set(const decant_transform_options *o, size_t count, const char *key, size_t key_len)
{
    setting s;

    for (size_t i = 0; i < count; i++)
        if (take_apart(&o->set[i], &s, NULL) == DECANT_OK && s.key_len == key_len && memcmp(s.key, key, key_len) == 0)
            return true;
    return false;
}

/* Whether a key is set or unset, so that what the inputs say of it does not count. */
static bool is_decided(const decant_transform_options *o, const char *key, size_t key_len)
{
    return is_unset(o, key, key_len) || is_set(o, o->set_count, key, key_len);
}

static decant_status merge(const decant_model *const *models, size_t count, const decant_transform_options *o,
                           decant_model *out, decant_error *err)
{
    for (size_t m = 0; m < count; m++)
        for (size_t i = 0; i < models[m]->value_count; i++) {
            const dcn_value *value = &models[m]->values[i], *there;
            decant_status rc;

            if (is_decided(o, value->key, value->key_len))
                continue;
            there = dcn_model_value(out, value->key, value->key_len, value->value.type == DECANT_VALUE_TEXT);
            if (there && !same(&there->value, &value->value))
                return refuse_different(models, m, value, err);
            if (!there && (rc = dcn_model_set(out, value->key, value->key_len, &value->value, true, err)))
                return rc;
        }
    return DECANT_OK;
}

/* What the files of an input could not agree on is as lost as before, unless it is decided now. */
static decant_status carry_disputes(const decant_model *model, const decant_transform_options *o, decant_model *out,
                                    decant_error *err)
{
    for (size_t i = 0; i < model->disputed_count; i++) {
        const dcn_chunk *key = &model->disputed[i];
        decant_status rc;

        if (!is_decided(o, key->data, key->len) && (rc = dcn_model_dispute(out, key->data, key->len, err)))
            return rc;
    }
    return DECANT_OK;
}

/* --- unsetting ---------------------------------------------------------------------------------------------------- */

static decant_status refuse_unknown(const decant_model *const *models, size_t count, const char *key, decant_error *err)
{
    const dcn_value *best = NULL;
    size_t least = 4; /* less than that is close */

    for (size_t m = 0; m < count; m++)
        for (size_t i = 0; i < models[m]->value_count; i++) {
            const dcn_value *v = &models[m]->values[i];
            size_t distance = dcn_text_distance(key, strlen(key), v->key, v->key_len, least);

            if (distance < least) {
                least = distance;
                best = v;
            }
        }
    decant_error_set(err, DECANT_NOT_FOUND, "there is no key '%s' to unset", key);
    if (count == 1)
        dcn_error_path(err, models[0]->path);
    if (best)
        dcn_error_hint(err, "did you mean '%.*s'?", (int)best->key_len, best->key);
    else
        dcn_error_hint(err, "see the keys with decant inspect");
    dcn_error_side(err, DECANT_SIDE_INPUT);
    return DECANT_NOT_FOUND;
}

static bool is_known(const decant_model *const *models, size_t count, const char *key)
{
    for (size_t m = 0; m < count; m++)
        if (dcn_model_disputes(models[m], key))
            return true;
    return first_of(models, count, key, strlen(key));
}

/* "format" need not be there: it is what is added to a safetensors file of another origin. */
static decant_status check_unset(const decant_model *const *models, size_t count, const decant_transform_options *o,
                                 decant_model *out, decant_error *err)
{
    for (size_t i = 0; i < o->unset_count; i++) {
        if (strcmp(o->unset[i], "format") == 0)
            out->no_format = true;
        else if (!is_known(models, count, o->unset[i]))
            return refuse_unknown(models, count, o->unset[i], err);
    }
    return DECANT_OK;
}

/* Of two that decide one key, neither is meant more than the other. */
static decant_status refuse_contradiction(const setting *s, const char *what, decant_error *err)
{
    char safe[96];

    dcn_text_escape(safe, sizeof safe, s->key, s->key_len);
    decant_error_set(err, DECANT_BAD_CALL, "the key '%s' is %s", safe, what);
    dcn_error_hint(err, "decide on one");
    return DECANT_BAD_CALL;
}

decant_status dcn_transform_values(const decant_model *const *models, size_t count,
                                   const decant_transform_options *options, decant_model *out, decant_error *err)
{
    decant_status rc;

    out->ordered = out->for_loaders = true;
    for (size_t m = 0; m < count; m++) {
        const dcn_value *format = dcn_model_text(models[m], "format");

        out->no_format |= models[m]->no_format;
        out->was_kept |= models[m]->was_kept;
        out->ordered &= models[m]->ordered;
        out->for_loaders &= models[m]->for_loaders && format && !is_decided(options, format->key, format->key_len);
    }
    if ((rc = check_unset(models, count, options, out, err)) || (rc = merge(models, count, options, out, err)))
        return rc;
    for (size_t m = 0; m < count; m++)
        if ((rc = carry_disputes(models[m], options, out, err)))
            return rc;
    for (size_t i = 0; i < options->set_count && rc == DECANT_OK; i++) {
        setting s;

        if ((rc = take_apart(&options->set[i], &s, err)))
            break;
        if (is_unset(options, s.key, s.key_len))
            rc = refuse_contradiction(&s, "both set and unset", err);
        else if (is_set(options, i, s.key, s.key_len))
            rc = refuse_contradiction(&s, "set twice", err);
        else
            rc = set_value(models, count, &s, out, err);
    }
    return rc;
}
