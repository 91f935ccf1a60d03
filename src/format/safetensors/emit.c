#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/ckd.h"
#include "base/dtype.h"
#include "base/endian.h"
#include "base/sort.h"
#include "base/text.h"
#include "codec/json.h"
#include "format/input.h"
#include "format/loss.h"
#include "format/place.h"
#include "format/safetensors/keep.h"
#include "format/safetensors/layout.h"

enum { NO_RANK = -1 };

/* A model on its way to one file or several. */
typedef struct emitting {
    const decant_model *model;
    const dcn_layout *how;
    dcn_plans *out;
    decant_error *err;
    bool add_format;     /* metadata format = pt */
    bool keeps;          /* metadata has what has no other place */
    uint64_t header_len; /* of the file with the longest header so far */
} emitting;

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
    return rank_of(dcn_st_stored(dtype)) != NO_RANK;
}

static decant_status check_losses(const decant_model *model, const dcn_layout *how, dcn_plans *plans, decant_error *err)
{
    bool dtypes = dcn_lose_dtypes(model, has_place, plans);
    size_t reserved;
    decant_status rc;

    dcn_lose_extras(model, dcn_safetensors.name, has_place, plans);
    dcn_lose_disputed(model, plans);
    rc = dcn_check_losses(model, plans, dcn_safetensors.name, dtypes, how->allow, err);
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
    decant_dtype x_dtype = dcn_st_stored(x->dtype), y_dtype = dcn_st_stored(y->dtype);

    if (x_dtype != y_dtype)
        return rank_of(y_dtype) - rank_of(x_dtype);
    return dcn_text_compare(x->name, x->name_len, y->name, y->name_len);
}

/* --- the header -------------------------------------------------------------------------------------------------- */

static void put_tensor(dcn_buf *buf, const dcn_entry *entry, uint64_t begin)
{
    dcn_json_put_string(buf, entry->name, entry->name_len);
    dcn_buf_text(buf, ":{\"dtype\":\"");
    dcn_buf_text(buf, decant_dtype_name(dcn_st_stored((decant_dtype)entry->dtype)));
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
static decant_status build_header(emitting *e, const dcn_st_part *part, dcn_buf *buf, uint64_t *data, uint64_t *end)
{
    uint64_t begin = 0, next;
    bool comma = false;
    decant_status rc;

    dcn_buf_fill(buf, 0, DCN_ST_PREFIX);
    dcn_buf_byte(buf, '{');
    if ((rc = dcn_st_put_metadata(buf, e->model, part, e->add_format, &comma, &e->keeps, e->err)))
        return rc;
    for (size_t i = 0; i < part->count; i++) {
        if (dcn_ckd_add(&next, begin, part->tensors[i]->data.len))
            return too_long(e->err);
        if (comma)
            dcn_buf_byte(buf, ',');
        put_tensor(buf, part->tensors[i], begin);
        comma = true;
        begin = next;
    }
    dcn_buf_byte(buf, '}');
    if ((rc = pad_header(part->tensors, part->count, e->how, buf, e->err)))
        return rc;
    dcn_put_le(buf->data, buf->len - DCN_ST_PREFIX, DCN_ST_PREFIX);
    *data = buf->len;
    return dcn_ckd_add(end, *data, begin) ? too_long(e->err) : DECANT_OK;
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
 * A file of these tensors: in the canonical layout byte for byte what safetensors 0.8.0 writes, by dtype, the widest first,
 * then by the bytes of the names.
 */
static decant_status emit_file(emitting *e, const dcn_entry **tensors, size_t count, bool first)
{
    const dcn_st_part part = {tensors, count, first};
    dcn_buf header = {0};
    dcn_plan *plan = NULL;
    uint64_t at, end;
    decant_status rc;

    dcn_sort(tensors, count, sizeof(const dcn_entry *), by_dtype_and_name);
    if ((rc = build_header(e, &part, &header, &at, &end)) || (rc = check_readers(at - DCN_ST_PREFIX, e->how, e->err)) ||
        (rc = dcn_plans_add(e->out, e->model, &plan, e->err)) || (rc = dcn_plan_reserve(plan, count + 1, e->err)) ||
        (rc = dcn_plan_literal(plan, 0, &header, e->err)))
        goto done;
    e->header_len = at - DCN_ST_PREFIX > e->header_len ? at - DCN_ST_PREFIX : e->header_len;
    for (size_t i = 0; i < count; i++) {
        if ((rc = dcn_plan_entry(plan, at, (size_t)(tensors[i] - e->model->entries), e->err)))
            goto done;
        at += tensors[i]->data.len;
    }
    dcn_plan_finish(plan, end);
    plan->held = dcn_min(DCN_ST_HELD, end);
done:
    dcn_buf_close(&header);
    return rc;
}

/* What stands in an index is UTF-8, and is opened only if it is the bare name of a file. */
static decant_status check_set_name(const char *name, decant_error *err)
{
    if (dcn_utf8_valid(name, strlen(name)) && dcn_input_name_is_plain(name, strlen(name)))
        return DECANT_OK;
    decant_error_set(err, DECANT_UNSUPPORTED, "an index cannot name files that are called so");
    dcn_error_expected(err, "UTF-8 without control characters, backslashes and a drive");
    dcn_error_hint(err, "choose another name, or leave --max-shard-size out");
    dcn_error_side(err, DECANT_SIDE_OUTPUT);
    return DECANT_UNSUPPORTED;
}

static decant_status emit_set(emitting *e, const dcn_st_hands *hands)
{
    decant_status rc = check_set_name(e->how->name, e->err);

    if (rc)
        return rc;
    for (size_t k = 0, from = 0; k < hands->count; from = hands->ends[k++])
        if ((rc = emit_file(e, hands->tensors + from, hands->ends[k] - from, k == 0)) ||
            (rc = dcn_st_shard_name(e->how->name, k + 1, hands->count, &e->out->items[k].name, e->err)))
            return rc;
    return dcn_st_emit_map(e->model, hands, e->how->name, e->out, e->err);
}

decant_status dcn_st_emit(const decant_model *model, const dcn_layout *how, dcn_plans *out, decant_error *err)
{
    emitting e = {.model = model, .how = how, .out = out, .err = err};
    dcn_st_hands hands = {0};
    decant_status rc;

    e.add_format = how->loaders_format && !dcn_model_text(model, "format");
    if ((rc = check_losses(model, how, out, err)) ||
        (rc = dcn_st_deal(model, how->max_shard ? how->max_shard : UINT64_MAX, &hands, err)))
        goto done;
    if ((rc = hands.count > 1 ? emit_set(&e, &hands) : emit_file(&e, hands.tensors, model->count, true)))
        goto done;
    if (e.add_format)
        dcn_plans_gain(out, "metadata format = pt");
    if (e.keeps && !model->was_kept)
        dcn_plans_gain(out, "metadata under 'decant.': ids, scalars, dtypes and order, for the way back");
    dcn_st_openers(e.header_len, e.add_format || dcn_st_for_loaders(model), &out->openers);
    out->layout = dcn_layout_name(how->layout);
done:
    dcn_st_hands_close(&hands);
    return rc;
}
