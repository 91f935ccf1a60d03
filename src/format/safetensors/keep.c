#include "format/safetensors/keep.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/chunk.h"
#include "base/ckd.h"
#include "base/sort.h"
#include "base/text.h"
#include "codec/json.h"
#include "format/findings.h"
#include "format/safetensors/layout.h"

typedef enum kind { PLAIN, ADDED, DTYPE, ID, ORDER, SCALAR, TEXT, KINDS } kind;

/* What keys begin with; a key that has nothing to go on with is all of it. */
static const struct {
    const char *prefix;
    bool has_more;
} keys[KINDS] = {
    [PLAIN] = {"", true},
    [ADDED] = {"decant.added", false},
    [DTYPE] = {"decant.dtype.", true},
    [ID] = {"decant.id.", true},
    [ORDER] = {"decant.order", false},
    [SCALAR] = {"decant.scalar.", true},
    [TEXT] = {"decant.text.", true},
};

static const char format_key[] = "format", format_text[] = "pt";

/* Dtypes that are kept, by how their bytes are stored. */
static const struct {
    decant_dtype dtype, stored;
} stores[] = {
    {DECANT_FLEX32, DECANT_F32},
    {DECANT_BOOL_U8, DECANT_U8},
    {DECANT_BOOL_U32, DECANT_U32},
};
enum { STORES = sizeof stores / sizeof *stores };

/* Scalars by their names. */
static const struct {
    const char *name;
    decant_value_type type;
} scalars[] = {
    {"bool", DECANT_VALUE_BOOL},
    {"i64", DECANT_VALUE_I64},
    {"u64", DECANT_VALUE_U64},
    {"f64", DECANT_VALUE_F64},
};
enum { SCALARS = sizeof scalars / sizeof *scalars };

decant_dtype dcn_st_stored(decant_dtype dtype)
{
    for (size_t i = 0; i < STORES; i++)
        if (stores[i].dtype == dtype)
            return stores[i].stored;
    return dtype;
}

/* Of which kind a key is, and what it goes on with. */
static kind kind_of(const char *key, size_t len, dcn_chunk *rest)
{
    for (kind k = PLAIN + 1; k < KINDS; k++) {
        size_t prefix = strlen(keys[k].prefix);

        if (len >= prefix && memcmp(key, keys[k].prefix, prefix) == 0 && (keys[k].has_more || len == prefix)) {
            *rest = (dcn_chunk){key + prefix, len - prefix};
            return k;
        }
    }
    *rest = (dcn_chunk){key, len};
    return PLAIN;
}

bool dcn_st_is_kept(const char *key, size_t len)
{
    dcn_chunk rest;

    return kind_of(key, len, &rest) != PLAIN;
}

/* --- keeping ------------------------------------------------------------------------------------------------------ */

/* A pair to put: what its key begins and goes on with, and what it is of. */
typedef struct pair {
    kind kind;
    uint32_t more_len;
    const char *more;
    const void *of; /* a dcn_entry or a dcn_value; NULL: neither */
} pair;

typedef struct pairs {
    pair *items;
    size_t count;
} pairs;

static char key_byte(const pair *p, size_t at)
{
    size_t prefix = strlen(keys[p->kind].prefix);

    return at < prefix ? keys[p->kind].prefix[at] : p->more[at - prefix];
}

static int by_key(const void *a, const void *b)
{
    const pair *x = a, *y = b;
    size_t x_len = strlen(keys[x->kind].prefix) + x->more_len, y_len = strlen(keys[y->kind].prefix) + y->more_len;
    size_t at = 0;

    if (x->kind == y->kind)
        return dcn_text_compare(x->more, x->more_len, y->more, y->more_len);
    while (at < x_len && at < y_len && key_byte(x, at) == key_byte(y, at))
        at++;
    if (at == x_len || at == y_len)
        return x_len < y_len ? -1 : x_len > y_len;
    return (unsigned char)key_byte(x, at) < (unsigned char)key_byte(y, at) ? -1 : 1;
}

static void add(pairs *p, kind k, const char *more, size_t more_len, const void *of)
{
    p->items[p->count++] = (pair){k, (uint32_t)more_len, more, of};
}

/* Whether the order of the output is that of the model, and is found again: of empty tensors in one place, by their names. */
static bool comes_back_in_order(const decant_model *model, const dcn_st_part *part)
{
    for (size_t i = 0; i < part->count; i++) {
        const dcn_entry *e = part->tensors[i], *before = i ? part->tensors[i - 1] : NULL;

        if (e != &model->entries[i])
            return false;
        if (before && !before->data.len && !e->data.len &&
            dcn_text_compare(before->name, before->name_len, e->name, e->name_len) > 0)
            return false;
    }
    return part->count == model->count;
}

static bool was_added(const decant_model *model)
{
    const dcn_value *format = dcn_model_text(model, format_key);

    return format && dcn_model_is_for_loaders(model, format);
}

/* Everything that is put, sorted. */
static decant_status collect(const decant_model *model, const dcn_st_part *part, bool add_format, pairs *out,
                             decant_error *err)
{
    enum { MORE = 3 }; /* format, order, added */
    size_t most = model->value_count + MORE;
    dcn_chunk rest;

    for (size_t i = 0; i < part->count; i++)
        most += part->tensors[i]->has_id + (dcn_st_stored(part->tensors[i]->dtype) != part->tensors[i]->dtype);
    if (!(out->items = dcn_alloc(most, sizeof *out->items)))
        return dcn_error_nomem(err);

    for (size_t i = 0; i < model->value_count; i++) {
        const dcn_value *v = &model->values[i];

        if (v->value.type != DECANT_VALUE_TEXT)
            add(out, SCALAR, v->key, v->key_len, v);
        else
            add(out, kind_of(v->key, v->key_len, &rest) == PLAIN ? PLAIN : TEXT, v->key, v->key_len, v);
    }
    for (size_t i = 0; i < part->count; i++) {
        const dcn_entry *e = part->tensors[i];

        if (e->has_id)
            add(out, ID, e->name, e->name_len, e);
        if (dcn_st_stored(e->dtype) != e->dtype)
            add(out, DTYPE, e->name, e->name_len, e);
    }
    if (add_format)
        add(out, PLAIN, format_key, strlen(format_key), NULL);
    if ((add_format && model->ordered) || was_added(model))
        add(out, ADDED, "", 0, NULL);
    if (model->ordered && part->first && !comes_back_in_order(model, part))
        add(out, ORDER, "", 0, NULL);
    dcn_sort(out->items, out->count, sizeof *out->items, by_key);
    return DECANT_OK;
}

static int by_name(const void *a, const void *b)
{
    const dcn_entry *x = *(const dcn_entry *const *)a, *y = *(const dcn_entry *const *)b;

    return dcn_text_compare(x->name, x->name_len, y->name, y->name_len);
}

/* The places of all names among them sorted, in the order of the entries. NULL without memory. */
static uint32_t *rank_names(const decant_model *model)
{
    const dcn_entry **sorted = dcn_alloc(model->count, sizeof(const dcn_entry *));
    uint32_t *ranks = dcn_alloc(model->count, sizeof *ranks);

    if (sorted && ranks) {
        for (size_t i = 0; i < model->count; i++)
            sorted[i] = &model->entries[i];
        dcn_sort(sorted, model->count, sizeof(const dcn_entry *), by_name);
        for (size_t i = 0; i < model->count; i++)
            ranks[sorted[i] - model->entries] = (uint32_t)i;
    } else {
        dcn_free(&ranks);
    }
    dcn_free(&sorted);
    return ranks;
}

static decant_status put_order(dcn_buf *buf, const decant_model *model, decant_error *err)
{
    uint32_t *ranks = rank_names(model);

    if (!ranks)
        return dcn_error_nomem(err);
    dcn_buf_byte(buf, '"');
    for (size_t i = 0; i < model->count; i++) {
        if (i)
            dcn_buf_byte(buf, ',');
        dcn_json_put_u64(buf, ranks[i]);
    }
    dcn_buf_byte(buf, '"');
    dcn_free(&ranks);
    return DECANT_OK;
}

static void put_scalar(dcn_buf *buf, const decant_value *value)
{
    switch (value->type) {
    case DECANT_VALUE_BOOL:
        dcn_buf_text(buf, value->as.boolean ? "\"bool true\"" : "\"bool false\"");
        break;
    case DECANT_VALUE_I64:
        dcn_buf_format(buf, "\"i64 %" PRId64 "\"", value->as.i64);
        break;
    case DECANT_VALUE_U64:
        dcn_buf_format(buf, "\"u64 %" PRIu64 "\"", value->as.u64);
        break;
    default:
        dcn_buf_format(buf, "\"f64 %016" PRIx64 "\"", value->as.f64_bits);
    }
}

static decant_status put_value(dcn_buf *buf, const pair *p, const decant_model *model, decant_error *err)
{
    const dcn_value *value = p->of;
    const dcn_entry *entry = p->of;

    switch (p->kind) {
    case ID:
        dcn_buf_format(buf, "\"%" PRIu64 "\"", entry->id);
        break;
    case DTYPE:
        dcn_buf_format(buf, "\"%s\"", decant_dtype_name((decant_dtype)entry->dtype));
        break;
    case SCALAR:
        put_scalar(buf, &value->value);
        break;
    case ADDED:
        dcn_json_put_string(buf, format_key, strlen(format_key));
        break;
    case ORDER:
        return put_order(buf, model, err);
    default:
        if (value)
            dcn_json_put_string(buf, value->value.as.text.data, value->value.as.text.len);
        else
            dcn_json_put_string(buf, format_text, strlen(format_text));
    }
    return DECANT_OK;
}

decant_status dcn_st_put_metadata(dcn_buf *buf, const decant_model *model, const dcn_st_part *part, bool add_format,
                                  bool *put, bool *keeps, decant_error *err)
{
    pairs all = {0};
    dcn_buf key = {0};
    decant_status rc;

    if ((rc = collect(model, part, add_format, &all, err)))
        goto done;
    *put = all.count || (model->extra && model->extra->ops == &dcn_st_empty_metadata);
    if (!*put)
        goto done;
    dcn_buf_text(buf, "\"" DCN_ST_METADATA "\":{");
    for (size_t i = 0; i < all.count; i++) {
        const pair *p = &all.items[i];

        *keeps |= p->kind != PLAIN;
        key.len = 0;
        dcn_buf_text(&key, keys[p->kind].prefix);
        dcn_buf_put(&key, p->more, p->more_len);
        if ((rc = dcn_buf_check(&key, err)))
            goto done;
        if (i)
            dcn_buf_byte(buf, ',');
        dcn_json_put_string(buf, (const char *)key.data, key.len);
        dcn_buf_byte(buf, ':');
        if ((rc = put_value(buf, p, model, err)))
            goto done;
    }
    dcn_buf_byte(buf, '}');
done:
    dcn_buf_close(&key);
    dcn_free(&all.items);
    return rc;
}

/* --- restoring ---------------------------------------------------------------------------------------------------- */

typedef struct restoring {
    decant_model *model;
    decant_error *err;
    const dcn_value *value; /* at hand */
    uint32_t *order;        /* places of the entries in the order that was kept; NULL: none was */
} restoring;

/* Says of the key at hand what is wrong with it. */
static decant_status unfit(const restoring *r, const char *what)
{
    char key[128], text[64];

    dcn_text_escape(key, sizeof key, r->value->key, r->value->key_len);
    dcn_text_escape(text, sizeof text, r->value->value.as.text.data,
                    dcn_utf8_cut(r->value->value.as.text.data, r->value->value.as.text.len, sizeof text - 4));
    decant_error_set(r->err, DECANT_MALFORMED, "metadata key '%s' %s", key, what);
    dcn_error_found(r->err, "'%s'", text);
    dcn_error_hint(r->err, "decant keeps such keys; open it leniently (--lenient) to take it as plain metadata");
    return DECANT_MALFORMED;
}

/* All of a text as a plain number: no sign, no zero in front. */
static bool read_u64(const char *text, size_t len, uint64_t *out)
{
    *out = 0;
    if (len == 0 || (len > 1 && text[0] == '0'))
        return false;
    for (size_t i = 0; i < len; i++)
        if (text[i] < '0' || text[i] > '9' || dcn_ckd_mul(out, *out, 10) ||
            dcn_ckd_add(out, *out, (uint64_t)(text[i] - '0')))
            return false;
    return true;
}

static bool read_i64(const char *text, size_t len, int64_t *out)
{
    bool negative = len && text[0] == '-';
    uint64_t most = (uint64_t)INT64_MAX + negative, value;

    if (!read_u64(text + negative, len - negative, &value) || value > most || (negative && value == 0))
        return false;
    *out = negative ? (int64_t)(-value) : (int64_t)value;
    return true;
}

static bool read_bits(const char *text, size_t len, uint64_t *out)
{
    static const char digits[] = "0123456789abcdef";

    *out = 0;
    for (size_t i = 0; i < len; i++) {
        const char *digit = text[i] ? strchr(digits, text[i]) : NULL;

        if (!digit)
            return false;
        *out = *out << 4 | (uint64_t)(digit - digits);
    }
    return len == 16;
}

static bool read_scalar(const char *text, size_t len, decant_value *out)
{
    for (size_t i = 0; i < SCALARS; i++) {
        size_t name = strlen(scalars[i].name);
        const char *rest = text + name + 1;

        if (len <= name || memcmp(text, scalars[i].name, name) != 0 || text[name] != ' ')
            continue;
        len -= name + 1;
        out->type = scalars[i].type;
        switch (out->type) {
        case DECANT_VALUE_BOOL:
            out->as.boolean = dcn_chunk_is((dcn_chunk){rest, len}, "true");
            return out->as.boolean || dcn_chunk_is((dcn_chunk){rest, len}, "false");
        case DECANT_VALUE_I64:
            return read_i64(rest, len, &out->as.i64);
        case DECANT_VALUE_U64:
            return read_u64(rest, len, &out->as.u64);
        default:
            return read_bits(rest, len, &out->as.f64_bits);
        }
    }
    return false;
}

static decant_status restore_id(restoring *r, dcn_entry *entry, const char *text, size_t len)
{
    uint64_t id;

    if (!read_u64(text, len, &id))
        return unfit(r, "is no number of 64 bits");
    entry->has_id = true;
    entry->id = id;
    return DECANT_OK;
}

static decant_status restore_dtype(restoring *r, dcn_entry *entry, const char *text, size_t len)
{
    char what[96];

    for (size_t i = 0; i < STORES; i++) {
        if (!dcn_chunk_is((dcn_chunk){text, len}, decant_dtype_name(stores[i].dtype)))
            continue;
        if (entry->dtype == stores[i].stored) {
            entry->dtype = (uint8_t)stores[i].dtype;
            return DECANT_OK;
        }
        snprintf(what, sizeof what, "stands for bytes of %s, and the tensor is of %s",
                 decant_dtype_name(stores[i].stored), decant_dtype_name((decant_dtype)entry->dtype));
        return unfit(r, what);
    }
    return unfit(r, "names no dtype that is kept so");
}

/* A permutation of as many names as there are. */
static decant_status restore_order(restoring *r, const char *text, size_t len)
{
    size_t count = r->model->count, found = 0;
    uint32_t *ranks = rank_names(r->model), *by_rank = dcn_alloc(count, sizeof *by_rank);
    const char *at = text, *end = text + len;
    decant_status rc = DECANT_OK;

    r->order = dcn_alloc(count, sizeof *r->order);
    if (!ranks || !by_rank || !r->order) {
        rc = dcn_error_nomem(r->err);
        goto done;
    }
    for (size_t i = 0; i < count; i++) {
        by_rank[ranks[i]] = (uint32_t)i;
        r->order[i] = UINT32_MAX;
    }
    while (at < end && found < count) {
        const char *comma = memchr(at, ',', (size_t)(end - at)), *stop = comma ? comma : end;
        uint64_t rank;

        if (!read_u64(at, (size_t)(stop - at), &rank) || rank >= count || r->order[by_rank[rank]] != UINT32_MAX)
            break;
        r->order[by_rank[rank]] = (uint32_t)found++;
        at = stop < end ? stop + 1 : end;
    }
    if (found < count || at < end || (len && end[-1] == ',')) {
        rc = unfit(r, "is no order of the tensors that there are");
        dcn_free(&r->order);
    }
done:
    dcn_free(&by_rank);
    dcn_free(&ranks);
    return rc;
}

static decant_status restore_added(restoring *r, const char *text, size_t len)
{
    if (!dcn_chunk_is((dcn_chunk){text, len}, format_key))
        return unfit(r, "names no metadata that is added");
    r->model->for_loaders = true;
    if (was_added(r->model))
        return DECANT_OK;
    r->model->for_loaders = false;
    return unfit(r, "says that format = pt was added, and it is not there");
}

/* What the value at hand stands for. `gone`: it is not metadata itself. */
static decant_status restore_one(restoring *r, bool *gone)
{
    const char *text = r->value->value.as.text.data;
    size_t len = r->value->value.as.text.len, index;
    decant_value scalar;
    dcn_chunk rest, more;
    kind k = kind_of(r->value->key, r->value->key_len, &rest);

    *gone = k != PLAIN;
    switch (k) {
    case ID:
    case DTYPE:
        if (!dcn_model_find(r->model, rest.data, rest.len, &index))
            return unfit(r, "is of a tensor that is not there");
        return k == ID ? restore_id(r, &r->model->entries[index], text, len)
                       : restore_dtype(r, &r->model->entries[index], text, len);
    case SCALAR:
        return read_scalar(text, len, &scalar) ? DECANT_OK : unfit(r, "is no scalar");
    case TEXT:
        return kind_of(rest.data, rest.len, &more) != PLAIN ? DECANT_OK
                                                            : unfit(r, "is of metadata that needs no keeping");
    case ORDER:
        return restore_order(r, text, len);
    case ADDED:
        return restore_added(r, text, len);
    default:
        return DECANT_OK;
    }
}

/* Adds the scalar or text that a value stood for. */
static decant_status add_kept(decant_model *model, const dcn_value *was, decant_error *err)
{
    decant_value value = was->value;
    dcn_chunk rest;

    switch (kind_of(was->key, was->key_len, &rest)) {
    case SCALAR:
        read_scalar(was->value.as.text.data, was->value.as.text.len, &value); /* it has been read before */
        break;
    case TEXT:
        break;
    default:
        return DECANT_OK;
    }
    return dcn_model_set(model, rest.data, rest.len, &value, false, err);
}

static bool any_kept(const decant_model *model)
{
    for (size_t i = 0; i < model->value_count; i++)
        if (dcn_st_is_kept(model->values[i].key, model->values[i].key_len))
            return true;
    return false;
}

decant_status dcn_st_restore(decant_model *model, unsigned lenient, const dcn_findings *findings, decant_error *err)
{
    decant_error misfit = {.offset = DECANT_NO_OFFSET}; /* what is let pass is no failure */
    restoring r = {.model = model, .err = &misfit};
    dcn_value *was = NULL;
    size_t count = model->value_count, kept = 0, plain = 0;
    decant_status rc = DECANT_OK;

    if (!any_kept(model))
        return DECANT_OK;
    if (!(was = dcn_alloc(count, sizeof *was))) {
        rc = dcn_error_nomem(err);
        goto done;
    }
    for (size_t i = 0; i < count; i++) {
        bool gone;

        r.value = &model->values[i];
        rc = restore_one(&r, &gone);
        if (rc == DECANT_MALFORMED && lenient & DECANT_LENIENT_KEPT_KEYS) {
            plain++;
            gone = false;
        } else if (rc) {
            gone = false;
            if ((rc = dcn_fault(findings, rc, &misfit))) {
                if (err)
                    *err = misfit;
                goto done;
            }
        }
        if (gone)
            was[kept++] = model->values[i];
    }
    dcn_model_forget(model, was, kept);
    for (size_t i = 0; i < kept; i++)
        if ((rc = add_kept(model, &was[i], err)))
            goto done;
    if ((rc = dcn_model_sort(model, err)) || (r.order && (rc = dcn_model_arrange(model, r.order, err))))
        goto done;
    model->ordered = r.order != NULL;
    model->was_kept = kept > 0;
    if (plain)
        rc = dcn_model_note(model, "odd", err,
                            "%zu metadata key%s of decant's that do%s not fit, taken as plain metadata", plain,
                            plain == 1 ? "" : "s", plain == 1 ? "es" : "");
done:
    dcn_free(&r.order);
    dcn_free(&was);
    return rc;
}
