#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/ckd.h"
#include "base/dtype.h"
#include "base/endian.h"
#include "base/sort.h"
#include "base/text.h"
#include "codec/cbor.h"
#include "format/burnpack/extra.h"
#include "format/burnpack/layout.h"
#include "format/burnpack/quant.h"
#include "format/loss.h"
#include "format/place.h"

enum { HELD = 4096 }; /* the front that is written last: one page, which has the magic */

/* --- the limits of Burn's reader ---------------------------------------------------------------------------------- */

enum { METADATA_SIZE, TENSOR_COUNT, TENSOR_SIZE, FILE_SIZE, NO_LIMIT };

static const struct {
    uint64_t most;
    const char *unit;      /* of the number that passes it */
    const char *otherwise; /* of what, and what changes it */
    const char *why_not;   /* Burn does not open a file that passes it */
} limits[NO_LIMIT] = {
    [METADATA_SIZE] = {104857600, " bytes of metadata", "", "no more than 100 MiB of metadata"},
    [TENSOR_COUNT] = {100000, " tensors", "", "no more than 100,000 tensors"},
    [TENSOR_SIZE] = {10737418240, " bytes", " a tensor unless told otherwise",
                     "not before its limit of 10 GiB a tensor is raised"},
    [FILE_SIZE] = {536870912000, " bytes", " unless told otherwise", "not before its limit of 500 GiB is raised"},
};

/* The first limit that is passed, and by what. */
static size_t past_limit(const dcn_bpk_sizes *sizes, uint64_t *found)
{
    const uint64_t all[NO_LIMIT] = {[METADATA_SIZE] = sizes->metadata,
                                    [TENSOR_COUNT] = sizes->tensors,
                                    [TENSOR_SIZE] = sizes->largest,
                                    [FILE_SIZE] = sizes->total};
    size_t i = 0;

    while (i < NO_LIMIT && all[i] <= limits[i].most)
        i++;
    *found = i < NO_LIMIT ? all[i] : 0;
    return i;
}

void dcn_bpk_openers(const dcn_bpk_sizes *sizes, dcn_openers *out)
{
    uint64_t found;
    size_t i = past_limit(sizes, &found);

    dcn_openers_add(out, "Burn", i < NO_LIMIT ? limits[i].why_not : NULL);
}

/* "1,234,567" */
static void group_digits(char *out, size_t size, uint64_t number)
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%" PRIu64, number);
    size_t used = 0;

    for (int i = 0; i < len && used + 2 < size; i++) {
        if (i && (len - i) % 3 == 0)
            out[used++] = ',';
        out[used++] = digits[i];
    }
    out[used] = '\0';
}

static decant_status check_limits(const decant_model *model, const dcn_bpk_sizes *sizes, unsigned allow,
                                  decant_error *err)
{
    char number[32], most[32];
    uint64_t found;
    size_t i = past_limit(sizes, &found);

    if (i == NO_LIMIT || (allow & DECANT_ALLOW_LIMITS))
        return DECANT_OK;
    group_digits(number, sizeof number, found);
    group_digits(most, sizeof most, limits[i].most);
    decant_error_set(err, DECANT_LIMIT, "%s%s, but Burn's reader opens at most %s%s", number, limits[i].unit, most,
                     limits[i].otherwise);
    for (size_t t = 0; i == TENSOR_SIZE && t < model->count; t++)
        if (model->entries[t].data.len == found)
            dcn_error_tensor(err, model->entries[t].name, model->entries[t].name_len);
    dcn_error_hint(err, "choose another format, or --allow limits");
    dcn_error_side(err, DECANT_SIDE_OUTPUT);
    return DECANT_LIMIT;
}

/* --- what is lost ------------------------------------------------------------------------------------------------- */

static bool is_bool(unsigned dtype)
{
    return dtype >= DECANT_BOOL && dtype < DECANT_BOOL + DCN_BPK_BOOLS;
}

static bool has_place(decant_dtype dtype)
{
    if (dtype == DECANT_QFLOAT || is_bool(dtype))
        return true;
    for (size_t i = 0; i < DCN_BPK_DTYPES; i++)
        if (dcn_bpk_dtypes[i] == (uint8_t)dtype)
            return true;
    return false;
}

static decant_status check_losses(const decant_model *model, unsigned allow, dcn_plans *plans, decant_error *err)
{
    bool dtypes = dcn_lose_dtypes(model, has_place, plans);

    dcn_lose_extras(model, dcn_burnpack.name, has_place, plans);
    dcn_lose_disputed(model, plans);
    return dcn_check_losses(model, plans, dcn_burnpack.name, dtypes, allow, err);
}

/* --- order -------------------------------------------------------------------------------------------------------- */

/* What the maps hold, by the bytes of their keys. */
typedef struct order {
    const dcn_entry **tensors;
    const dcn_value **values;
    size_t value_count;
} order;

static int by_name(const void *a, const void *b)
{
    const dcn_entry *x = *(const dcn_entry *const *)a, *y = *(const dcn_entry *const *)b;

    return dcn_text_compare(x->name, x->name_len, y->name, y->name_len);
}

static int by_key(const void *a, const void *b)
{
    const dcn_value *x = *(const dcn_value *const *)a, *y = *(const dcn_value *const *)b;

    return dcn_text_compare(x->key, x->key_len, y->key, y->key_len);
}

static decant_status make_order(const decant_model *model, order *o, decant_error *err)
{
    o->tensors = dcn_alloc(model->count, sizeof(const dcn_entry *));
    o->values = dcn_alloc(model->value_count, sizeof(const dcn_value *));
    if (!o->tensors || !o->values)
        return dcn_error_nomem(err);
    for (size_t i = 0; i < model->count; i++)
        o->tensors[i] = &model->entries[i];
    for (size_t i = 0; i < model->value_count; i++)
        if (!dcn_model_is_for_loaders(model, &model->values[i]))
            o->values[o->value_count++] = &model->values[i];
    dcn_sort(o->tensors, model->count, sizeof(const dcn_entry *), by_name);
    dcn_sort(o->values, o->value_count, sizeof(const dcn_value *), by_key);
    return DECANT_OK;
}

/* --- the metadata ------------------------------------------------------------------------------------------------- */

static inline void put_key(dcn_buf *buf, const char *key)
{
    dcn_cbor_put_text(buf, key, strlen(key));
}

/* The head of an enum's value. */
static void put_variant(dcn_buf *buf, const char *name)
{
    dcn_cbor_put(buf, DCN_CBOR_MAP, 1);
    put_key(buf, name);
}

static void put_scale(dcn_buf *buf, decant_scale scale)
{
    if (scale)
        put_key(buf, dcn_bpk_scales[scale - DECANT_SCALE_F32]);
    else
        dcn_cbor_put_null(buf);
}

static void put_block(dcn_buf *buf, const decant_quant *quant)
{
    if (!quant->block_scale) {
        dcn_cbor_put_null(buf);
        return;
    }
    dcn_cbor_put(buf, DCN_CBOR_MAP, 2);
    put_key(buf, "size");
    dcn_cbor_put(buf, DCN_CBOR_MAP, 2);
    put_key(buf, "storage");
    dcn_cbor_put(buf, DCN_CBOR_ARRAY, DCN_QUANT_DIMS);
    for (size_t i = 0; i < DCN_QUANT_DIMS; i++)
        dcn_cbor_put(buf, DCN_CBOR_UINT, i < quant->block_rank ? quant->block[i] : 1);
    put_key(buf, "len");
    dcn_cbor_put(buf, DCN_CBOR_UINT, quant->block_rank);
    put_key(buf, "dtype");
    put_scale(buf, quant->block_scale);
}

static void put_scheme(dcn_buf *buf, const decant_quant *quant)
{
    dcn_cbor_put(buf, DCN_CBOR_MAP, 5);
    put_key(buf, "value");
    put_key(buf, dcn_bpk_values[quant->value]);
    put_key(buf, "store");
    if (quant->store == DECANT_STORE_NATIVE) {
        put_key(buf, dcn_bpk_stores[quant->store]);
    } else {
        put_variant(buf, dcn_bpk_stores[quant->store]);
        dcn_cbor_put(buf, DCN_CBOR_UINT, quant->packed_dim);
    }
    put_key(buf, "mode");
    put_key(buf, dcn_bpk_modes[quant->mode]);
    put_key(buf, "tensor");
    put_scale(buf, quant->tensor_scale);
    put_key(buf, "block");
    put_block(buf, quant);
}

static void put_dtype(dcn_buf *buf, const dcn_entry *entry)
{
    const decant_quant *quant = dcn_quant_of(entry->extra);

    if (entry->dtype == DECANT_QFLOAT) {
        put_variant(buf, DCN_BPK_QFLOAT);
        put_scheme(buf, quant);
    } else if (is_bool(entry->dtype)) {
        put_variant(buf, DCN_BPK_BOOL);
        put_key(buf, dcn_bpk_bools[entry->dtype - DECANT_BOOL]);
    } else {
        put_key(buf, decant_dtype_name((decant_dtype)entry->dtype));
    }
}

static void put_tensor(dcn_buf *buf, const dcn_entry *entry, uint64_t begin)
{
    dcn_bpk_keys unknown = dcn_bpk_keys_of(entry->extra);

    dcn_cbor_put_text(buf, entry->name, entry->name_len);
    dcn_cbor_put(buf, DCN_CBOR_MAP, (entry->has_id ? 4 : 3) + unknown.count);
    put_key(buf, DCN_BPK_DTYPE);
    put_dtype(buf, entry);
    put_key(buf, DCN_BPK_SHAPE);
    dcn_cbor_put(buf, DCN_CBOR_ARRAY, entry->rank);
    for (size_t i = 0; i < entry->rank; i++)
        dcn_cbor_put(buf, DCN_CBOR_UINT, entry->shape[i]);
    put_key(buf, DCN_BPK_OFFSETS);
    dcn_cbor_put(buf, DCN_CBOR_ARRAY, 2);
    dcn_cbor_put(buf, DCN_CBOR_UINT, begin);
    dcn_cbor_put(buf, DCN_CBOR_UINT, begin + entry->data.len);
    if (entry->has_id) {
        put_key(buf, DCN_BPK_ID);
        dcn_cbor_put(buf, DCN_CBOR_UINT, entry->id);
    }
    dcn_buf_put(buf, unknown.pairs.data, unknown.pairs.len);
}

static void put_scalar(dcn_buf *buf, const decant_value *value)
{
    for (size_t i = 0; i < DCN_BPK_SCALAR_TYPES; i++)
        if (dcn_bpk_scalars[i].type == value->type)
            put_variant(buf, dcn_bpk_scalars[i].name);
    switch (value->type) {
    case DECANT_VALUE_I64:
        dcn_cbor_put_i64(buf, value->as.i64);
        break;
    case DECANT_VALUE_U64:
        dcn_cbor_put(buf, DCN_CBOR_UINT, value->as.u64);
        break;
    case DECANT_VALUE_F64:
        dcn_cbor_put_f64(buf, value->as.f64_bits);
        break;
    default:
        dcn_cbor_put_bool(buf, value->as.boolean);
    }
}

static void put_value(dcn_buf *buf, const decant_value *value)
{
    if (value->type == DECANT_VALUE_TEXT)
        dcn_cbor_put_text(buf, value->as.text.data, value->as.text.len);
    else
        put_scalar(buf, value);
}

/* The `count` values that are texts, or that are not, in order. An empty map is left out. */
static void put_values(dcn_buf *buf, const char *key, const order *o, bool texts, size_t count)
{
    if (count == 0)
        return;
    put_key(buf, key);
    dcn_cbor_put(buf, DCN_CBOR_MAP, count);
    for (size_t i = 0; i < o->value_count; i++) {
        if ((o->values[i]->value.type == DECANT_VALUE_TEXT) != texts)
            continue;
        dcn_cbor_put_text(buf, o->values[i]->key, o->values[i]->key_len);
        put_value(buf, &o->values[i]->value);
    }
}

/* --- the header --------------------------------------------------------------------------------------------------- */

/* At least the bytes that build_header() writes, and few more: they are to come in one allocation. */
static size_t header_room(const decant_model *model, uint64_t end)
{
    enum { TOP = 64, KEYS = 32, NAME = 7, BOOL = 13, SCHEME = 128, ID = 9, VALUE = 24 };
    size_t room = TOP + model->count * (KEYS + NAME + 2 * (size_t)dcn_cbor_head_len(end));

    room += dcn_bpk_keys_of(model->extra).pairs.len;

    for (size_t i = 0; i < model->count; i++) {
        const dcn_entry *entry = &model->entries[i];

        room += dcn_cbor_head_len(entry->name_len) + entry->name_len;
        room += is_bool(entry->dtype) ? BOOL : entry->dtype == DECANT_QFLOAT ? SCHEME : 0;
        room += entry->has_id ? ID + dcn_cbor_head_len(entry->id) : 0;
        room += dcn_bpk_keys_of(entry->extra).pairs.len;
        for (size_t k = 0; k < entry->rank; k++)
            room += dcn_cbor_head_len(entry->shape[k]);
    }
    for (size_t i = 0; i < model->value_count; i++) {
        const dcn_value *value = &model->values[i];

        room += VALUE + value->key_len + (value->value.type == DECANT_VALUE_TEXT ? value->value.as.text.len : 0);
    }
    return room;
}

static void build_header(const decant_model *model, const order *o, const uint64_t *begins, dcn_buf *buf)
{
    dcn_bpk_keys unknown = dcn_bpk_keys_of(model->extra);
    size_t texts = 0, others;

    for (size_t i = 0; i < o->value_count; i++)
        texts += o->values[i]->value.type == DECANT_VALUE_TEXT;
    others = o->value_count - texts;

    dcn_buf_fill(buf, 0, DCN_BPK_PREFIX);
    dcn_cbor_put(buf, DCN_CBOR_MAP, 1u + (texts > 0) + (others > 0) + unknown.count);
    put_key(buf, DCN_BPK_TENSORS);
    dcn_cbor_put(buf, DCN_CBOR_MAP, model->count);
    for (size_t i = 0; i < model->count; i++)
        put_tensor(buf, o->tensors[i], begins[o->tensors[i] - model->entries]);
    put_values(buf, DCN_BPK_METADATA, o, true, texts);
    put_values(buf, DCN_BPK_SCALARS, o, false, others);
    dcn_buf_put(buf, unknown.pairs.data, unknown.pairs.len);
}

static void finish_prefix(dcn_buf *buf)
{
    dcn_put_le(buf->data, DCN_BPK_MAGIC, 4);
    dcn_put_le(buf->data + 4, DCN_BPK_VERSION, 2);
    dcn_put_le(buf->data + 6, buf->len - DCN_BPK_PREFIX, 4);
}

/* --- the plan ----------------------------------------------------------------------------------------------------- */

static decant_status too_long(decant_error *err, const char *what)
{
    decant_error_set(err, DECANT_LIMIT, "%s", what);
    dcn_error_hint(err, "choose another format");
    dcn_error_side(err, DECANT_SIDE_OUTPUT);
    return DECANT_LIMIT;
}

/* An output being laid out. */
typedef struct draft {
    const decant_model *model;
    order order;
    uint64_t *begins; /* of each tensor in the model's order, counted from `data` */
    uint64_t data;    /* where data starts */
    dcn_buf header;
    dcn_bpk_sizes sizes;
} draft;

/*
 * What is built by hand has the length that its scheme calls for: Burn writes any, and what it opens decant would refuse.
 * What a file was let pass with stays as it is.
 */
static decant_status check_quantized(const decant_model *model, const dcn_entry *entry, decant_error *err)
{
    const decant_quant *quant = dcn_quant_of(entry->extra);
    char shape[96];
    uint64_t len;
    bool has_len;

    if (!quant) {
        decant_error_set(err, DECANT_BAD_CALL, "a quantized tensor without its scheme");
        dcn_error_tensor(err, entry->name, entry->name_len);
        return DECANT_BAD_CALL;
    }
    has_len = dcn_quant_len(quant, entry->shape, entry->rank, &len);
    if (model->format || (has_len && len == entry->data.len))
        return DECANT_OK;
    dcn_shape_text(shape, sizeof shape, entry->shape, entry->rank);
    decant_error_set(err, DECANT_MISMATCH, "the length of its bytes does not fit its quantization scheme and shape");
    dcn_error_found(err, "%" PRIu64 " bytes", entry->data.len);
    if (has_len)
        dcn_error_expected(err, "%" PRIu64 " for %s", len, shape);
    else
        dcn_error_expected(err, "a scheme that fits %s", shape);
    dcn_error_tensor(err, entry->name, entry->name_len);
    return DECANT_MISMATCH;
}

/* Where each tensor begins, if data starts where it is thought to; and where the last one ends. */
static decant_status lay_out(draft *d, const dcn_layout *how, uint64_t *end, decant_error *err)
{
    *end = d->data;
    for (size_t i = 0; i < d->model->count; i++) {
        const dcn_entry *entry = &d->model->entries[i];
        uint64_t at;
        decant_status rc;

        if (entry->dtype == DECANT_QFLOAT && (rc = check_quantized(d->model, entry, err)))
            return rc;
        if (dcn_place_entry(how, entry, DCN_BPK_ALIGN, *end, &at) || dcn_ckd_add(end, at, entry->data.len))
            return too_long(err, "the output is longer than 64 bits can say");
        d->begins[i] = at - d->data;
        if (entry->data.len > d->sizes.largest)
            d->sizes.largest = entry->data.len;
    }
    return DECANT_OK;
}

/* Everything once, for data that starts where it is thought to; then where it does. */
static decant_status draw(draft *d, const dcn_layout *how, decant_error *err)
{
    uint64_t end;
    decant_status rc = lay_out(d, how, &end, err);

    if (rc)
        return rc;
    d->header.len = 0;
    dcn_buf_reserve(&d->header, header_room(d->model, end));
    build_header(d->model, &d->order, d->begins, &d->header);
    if ((rc = dcn_buf_check(&d->header, err)))
        return rc;
    d->sizes.metadata = d->header.len - DCN_BPK_PREFIX;
    if (d->sizes.metadata > UINT32_MAX)
        return too_long(err, "the metadata is longer than the 32 bits of its length can say");
    end -= d->data;
    if (dcn_ckd_align(&d->data, d->header.len, DCN_BPK_ALIGN) || dcn_ckd_add(&d->sizes.total, d->data, end))
        return too_long(err, "the output is longer than 64 bits can say");
    return DECANT_OK;
}

/* Where tensors begin may depend on where data starts, and that on how long the numbers are that say where they begin. */
static decant_status settle(draft *d, const dcn_layout *how, const char **layout, decant_error *err)
{
    enum { TRIES = 4 };
    static const dcn_layout canonical = {.layout = DECANT_LAYOUT_CANONICAL};
    decant_status rc;

    for (unsigned i = 0; i < TRIES; i++) {
        uint64_t thought = d->data;

        if ((rc = draw(d, how, err)))
            return rc;
        *layout = dcn_layout_name(how->layout);
        if (d->data == thought || how->layout == DECANT_LAYOUT_CANONICAL)
            return DECANT_OK;
    }
    *layout = "canonical: where data starts did not settle";
    return draw(d, &canonical, err);
}

/*
 * In the canonical layout byte for byte what burn-pack 0.23.0-pre.1 writes: data in the model's order, maps by the bytes of
 * their keys.
 */
decant_status dcn_bpk_emit(const decant_model *model, const dcn_layout *how, dcn_plans *out, decant_error *err)
{
    draft d = {.model = model, .sizes.tensors = model->count};
    dcn_plan *plan = NULL;
    decant_status rc;

    if ((rc = check_losses(model, how->allow, out, err)))
        return rc;
    if (!(d.begins = dcn_alloc(model->count, sizeof *d.begins))) {
        rc = dcn_error_nomem(err);
        goto done;
    }
    if ((rc = make_order(model, &d.order, err)) || (rc = settle(&d, how, &out->layout, err)))
        goto done;
    finish_prefix(&d.header);

    if ((rc = check_limits(model, &d.sizes, how->allow, err)) || (rc = dcn_plans_add(out, model, &plan, err)) ||
        (rc = dcn_plan_reserve(plan, model->count + 1, err)) || (rc = dcn_plan_literal(plan, 0, &d.header, err)))
        goto done;
    for (size_t i = 0; i < model->count; i++)
        if ((rc = dcn_plan_entry(plan, d.data + d.begins[i], i, err)))
            goto done;
    dcn_plan_finish(plan, d.sizes.total);
    plan->held = dcn_min(HELD, d.sizes.total);
    dcn_bpk_openers(&d.sizes, &out->openers);
done:
    dcn_buf_close(&d.header);
    dcn_free(&d.order.values);
    dcn_free(&d.order.tensors);
    dcn_free(&d.begins);
    return rc;
}
