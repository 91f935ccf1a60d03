#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/ckd.h"
#include "base/dtype.h"
#include "base/endian.h"
#include "base/sort.h"
#include "base/text.h"
#include "codec/json.h"
#include "format/loss.h"
#include "format/place.h"
#include "format/safetensors/layout.h"

enum {
    NO_RANK = -1,
    KINDS = 8 /* of extras; there are fewer */
};

/* A dtype's place in the format's order; NO_RANK if it has none. */
static int rank_of(unsigned dtype)
{
    int rank = DCN_ST_DTYPES;

    while (--rank > NO_RANK && dcn_st_dtypes[rank] != dtype)
        ;
    return rank;
}

/* --- what is lost ------------------------------------------------------------------------------------------------ */

static bool has_place(decant_dtype dtype)
{
    return rank_of(dtype) != NO_RANK;
}

static void lose_ids_and_scalars(const decant_model *model, dcn_plans *plans)
{
    const dcn_entry *entry = NULL;
    const dcn_value *scalar = NULL;
    uint64_t ids = 0, scalars = 0;

    for (size_t i = 0; i < model->count; i++)
        if (model->entries[i].has_id && ids++ == 0)
            entry = &model->entries[i];
    if (ids)
        dcn_plans_lose(plans, ids, "param id", entry->name, entry->name_len);
    for (size_t i = 0; i < model->value_count; i++)
        if (model->values[i].value.type != DECANT_VALUE_TEXT && scalars++ == 0)
            scalar = &model->values[i];
    if (scalars)
        dcn_plans_lose(plans, scalars, "scalar", scalar->key, scalar->key_len);
}

static decant_status check_losses(const decant_model *model, const dcn_layout *how, dcn_plans *plans, decant_error *err)
{
    bool dtypes = dcn_lose_dtypes(model, has_place, plans);
    size_t reserved;
    decant_status rc;

    lose_ids_and_scalars(model, plans);
    dcn_lose_extras(model, dcn_safetensors.name, has_place, plans);
    rc = dcn_check_losses(plans, dcn_safetensors.name, dtypes, how->allow, err);
    if (!rc && dcn_model_find(model, DCN_ST_METADATA, strlen(DCN_ST_METADATA), &reserved)) {
        rc = decant_error_set(err, DECANT_LOSS, "safetensors keeps this name for its metadata");
        dcn_error_hint(err, "rename the tensor");
        dcn_error_tensor(err, DCN_ST_METADATA, strlen(DCN_ST_METADATA));
    }
    return rc;
}

/* --- order ------------------------------------------------------------------------------------------------------- */

static int by_dtype_and_name(const void *a, const void *b)
{
    const dcn_entry *x = *(const dcn_entry *const *)a, *y = *(const dcn_entry *const *)b;

    if (x->dtype != y->dtype)
        return rank_of(y->dtype) - rank_of(x->dtype);
    return dcn_text_compare(x->name, x->name_len, y->name, y->name_len);
}

static int by_key(const void *a, const void *b)
{
    const dcn_value *x = *(const dcn_value *const *)a, *y = *(const dcn_value *const *)b;

    return dcn_text_compare(x->key, x->key_len, y->key, y->key_len);
}

/* The texts among the values, by key: the reference leaves their order to its hash map. */
static const dcn_value **order_texts(const decant_model *model, size_t *count)
{
    const dcn_value **order = dcn_alloc(model->value_count, sizeof(const dcn_value *));

    *count = 0;
    if (!order)
        return NULL;
    for (size_t i = 0; i < model->value_count; i++)
        if (model->values[i].value.type == DECANT_VALUE_TEXT)
            order[(*count)++] = &model->values[i];
    dcn_sort(order, *count, sizeof(const dcn_value *), by_key);
    return order;
}

/* --- the header -------------------------------------------------------------------------------------------------- */

static void put_pair(dcn_buf *buf, bool *first, const char *key, size_t key_len, const char *text, size_t text_len)
{
    if (!*first)
        dcn_buf_byte(buf, ',');
    *first = false;
    dcn_json_put_string(buf, key, key_len);
    dcn_buf_byte(buf, ':');
    dcn_json_put_string(buf, text, text_len);
}

/* Puts nothing if there is no metadata; what is there and empty is put. */
static decant_status put_metadata(dcn_buf *buf, const decant_model *model, bool add_format, bool *put,
                                  decant_error *err)
{
    static const char format[] = "format";
    size_t count;
    const dcn_value **texts = order_texts(model, &count);
    bool first = true;

    if (!texts)
        return dcn_error_nomem(err);
    *put = count || add_format || (model->extra && model->extra->ops == &dcn_st_empty_metadata);
    if (!*put)
        goto done;
    dcn_buf_text(buf, "\"" DCN_ST_METADATA "\":{");
    for (size_t i = 0; i < count; i++) {
        const dcn_value *value = texts[i];

        if (add_format && dcn_text_compare(value->key, value->key_len, format, sizeof format - 1) > 0) {
            put_pair(buf, &first, format, sizeof format - 1, "pt", 2);
            add_format = false;
        }
        put_pair(buf, &first, value->key, value->key_len, value->value.as.text.data, value->value.as.text.len);
    }
    if (add_format)
        put_pair(buf, &first, format, sizeof format - 1, "pt", 2);
    dcn_buf_byte(buf, '}');
done:
    dcn_free(&texts);
    return DECANT_OK;
}

static void put_tensor(dcn_buf *buf, const dcn_entry *entry, uint64_t begin)
{
    dcn_json_put_string(buf, entry->name, entry->name_len);
    dcn_buf_text(buf, ":{\"dtype\":\"");
    dcn_buf_text(buf, decant_dtype_name((decant_dtype)entry->dtype));
    dcn_buf_text(buf, "\",\"shape\":[");
    for (size_t i = 0; i < entry->rank; i++) {
        if (i)
            dcn_buf_byte(buf, ',');
        dcn_json_put_u64(buf, entry->shape[i]);
    }
    dcn_buf_text(buf, "],\"data_offsets\":[");
    dcn_json_put_u64(buf, begin);
    dcn_buf_byte(buf, ',');
    dcn_json_put_u64(buf, begin + entry->data.len);
    dcn_buf_text(buf, "]}");
}

static decant_status too_long(decant_error *err)
{
    decant_error_set(err, DECANT_LIMIT, "the output is longer than 64 bits can say");
    dcn_error_side(err, DECANT_SIDE_OUTPUT);
    return DECANT_LIMIT;
}

/*
 * There are no gaps: which multiple of DCN_CONGRUENT and what rest data must start at, for the most bytes to lie congruent
 * to where they are in their files.
 */
static decant_status best_rest(const dcn_entry *const *tensors, size_t count, uint64_t *rest, decant_error *err)
{
    uint64_t *bytes = dcn_alloc(DCN_CONGRUENT, sizeof *bytes), begin = 0, offset;

    if (!bytes)
        return dcn_error_nomem(err);
    for (size_t i = 0; i < count; begin += tensors[i++]->data.len)
        if (dcn_place_in_file(tensors[i], &offset))
            bytes[(offset - begin) % DCN_CONGRUENT] += tensors[i]->data.len;
    *rest = 0;
    for (uint64_t i = 1; i < DCN_CONGRUENT; i++)
        if (bytes[i] > bytes[*rest])
            *rest = i;
    dcn_free(&bytes);
    return DECANT_OK;
}

/* Spaces behind the header, which is where the format allows any number: at least up to a multiple of 8. */
static decant_status pad_header(const dcn_entry *const *tensors, size_t count, const dcn_layout *how, dcn_buf *buf,
                                decant_error *err)
{
    uint64_t rest = 0;
    decant_status rc;

    dcn_buf_fill(buf, ' ', -buf->len % DCN_ST_PREFIX);
    if (how->layout == DECANT_LAYOUT_ALIGNED) {
        dcn_buf_fill(buf, ' ', (size_t)(-(uint64_t)buf->len % how->align));
    } else if (how->layout == DECANT_LAYOUT_CONGRUENT) {
        if ((rc = best_rest(tensors, count, &rest, err)))
            return rc;
        dcn_buf_fill(buf, ' ', (size_t)((rest - buf->len) % DCN_CONGRUENT));
    }
    return dcn_buf_check(buf, err);
}

/* The length and the header, padded. `data` is where data starts, `end` where it ends. */
static decant_status build_header(const decant_model *model, const dcn_entry *const *tensors, size_t count,
                                  const dcn_layout *how, bool add_format, dcn_buf *buf, uint64_t *data, uint64_t *end,
                                  decant_error *err)
{
    uint64_t begin = 0, next;
    bool comma = false;
    decant_status rc;

    dcn_buf_fill(buf, 0, DCN_ST_PREFIX);
    dcn_buf_byte(buf, '{');
    if ((rc = put_metadata(buf, model, add_format, &comma, err)))
        return rc;
    for (size_t i = 0; i < count; i++) {
        if (dcn_ckd_add(&next, begin, tensors[i]->data.len))
            return too_long(err);
        if (comma)
            dcn_buf_byte(buf, ',');
        put_tensor(buf, tensors[i], begin);
        comma = true;
        begin = next;
    }
    dcn_buf_byte(buf, '}');
    if ((rc = pad_header(tensors, count, how, buf, err)))
        return rc;
    dcn_put_le(buf->data, buf->len - DCN_ST_PREFIX, DCN_ST_PREFIX);
    *data = buf->len;
    return dcn_ckd_add(end, *data, begin) ? too_long(err) : DECANT_OK;
}

/* --- the plan ---------------------------------------------------------------------------------------------------- */

static decant_status check_readers(uint64_t header, const dcn_layout *how, decant_error *err)
{
    if (header <= DCN_ST_HEADER_MAX || how->allow & DECANT_ALLOW_LIMITS)
        return DECANT_OK;
    decant_error_set(err, DECANT_LIMIT, "a header of %" PRIu64 " bytes, but readers open at most %d", header,
                     DCN_ST_HEADER_MAX);
    dcn_error_hint(err, "choose another format, or --allow limits");
    dcn_error_side(err, DECANT_SIDE_OUTPUT);
    return DECANT_LIMIT;
}

/*
 * A file of these tensors, which are sorted: in the canonical layout byte for byte what safetensors 0.8.0 writes, by dtype,
 * the widest first, then by the bytes of the names.
 *
 * @param header_len  of the file with the longest header so far
 */
static decant_status emit_file(const decant_model *model, const dcn_entry **tensors, size_t count,
                               const dcn_layout *how, bool add_format, uint64_t *header_len, dcn_plans *out,
                               decant_error *err)
{
    dcn_buf header = {0};
    dcn_plan *plan = NULL;
    uint64_t at, end;
    decant_status rc;

    dcn_sort(tensors, count, sizeof(const dcn_entry *), by_dtype_and_name);
    if ((rc = build_header(model, tensors, count, how, add_format, &header, &at, &end, err)) ||
        (rc = check_readers(at - DCN_ST_PREFIX, how, err)) || (rc = dcn_plans_add(out, model, &plan, err)) ||
        (rc = dcn_plan_reserve(plan, count + 1, err)) || (rc = dcn_plan_literal(plan, 0, &header, err)))
        goto done;
    *header_len = at - DCN_ST_PREFIX > *header_len ? at - DCN_ST_PREFIX : *header_len;
    for (size_t i = 0; i < count; i++) {
        if ((rc = dcn_plan_entry(plan, at, (size_t)(tensors[i] - model->entries), err)))
            goto done;
        at += tensors[i]->data.len;
    }
    dcn_plan_finish(plan, end);
    plan->held = dcn_min(DCN_ST_HELD, end);
done:
    dcn_buf_close(&header);
    return rc;
}

static decant_status emit_set(const decant_model *model, const dcn_st_hands *hands, const dcn_layout *how,
                              bool add_format, uint64_t *header_len, dcn_plans *out, decant_error *err)
{
    decant_status rc;

    for (size_t k = 0, from = 0; k < hands->count; from = hands->ends[k++])
        if ((rc = emit_file(model, hands->tensors + from, hands->ends[k] - from, how, add_format, header_len, out,
                            err)) ||
            (rc = dcn_st_shard_name(how->name, k + 1, hands->count, &out->items[k].name, err)))
            return rc;
    return dcn_st_emit_map(model, hands, how->name, out, err);
}

decant_status dcn_st_emit(const decant_model *model, const dcn_layout *how, dcn_plans *out, decant_error *err)
{
    bool add_format = how->loaders_format && !dcn_model_text(model, "format");
    dcn_st_hands hands = {0};
    uint64_t header_len = 0;
    decant_status rc;

    if ((rc = check_losses(model, how, out, err)) ||
        (rc = dcn_st_deal(model, how->max_shard ? how->max_shard : UINT64_MAX, &hands, err)))
        goto done;
    rc = hands.count > 1 ? emit_set(model, &hands, how, add_format, &header_len, out, err)
                         : emit_file(model, hands.tensors, model->count, how, add_format, &header_len, out, err);
    if (rc)
        goto done;
    if (add_format)
        dcn_plans_gain(out, "metadata format = pt");
    dcn_st_openers(header_len, add_format || dcn_st_for_loaders(model), &out->openers);
    out->layout = dcn_layout_name(how->layout);
done:
    dcn_st_hands_close(&hands);
    return rc;
}
