#include "format/burnpack/index.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/ckd.h"
#include "base/dtype.h"
#include "base/endian.h"
#include "format/burnpack/layout.h"
#include "format/burnpack/quant.h"
#include "format/limit.h"

static dcn_bpk_keys keys_of(const dcn_bpk_carried *c)
{
    return (dcn_bpk_keys){c->count, {c->pairs.data, c->pairs.len}};
}

/* --- tensors ------------------------------------------------------------------------------------------------------ */

/* A descriptor, as far as it is read. */
typedef struct descriptor {
    dcn_draft draft;
    uint64_t begin, end;
    decant_quant quant; /* of QFLOAT */
    bool old_quant;     /* as Burn 0.19 to 0.21 wrote it */
} descriptor;

static decant_status read_dtype(dcn_bpk_header *h, void *into)
{
    descriptor *d = into;
    dcn_draft *draft = &d->draft;
    dcn_bpk_variant v;
    unsigned store = 0;
    const char *last = decant_dtype_name((decant_dtype)dcn_bpk_dtypes[h->dtype]);
    decant_status rc;

    if (dcn_cbor_is_text(&h->cbor, last, strlen(last))) {
        draft->dtype = (decant_dtype)dcn_bpk_dtypes[h->dtype];
        return DECANT_OK;
    }
    if ((rc = dcn_bpk_begin_variant(h, &v)))
        return rc;
    if (v.has_value) {
        if (dcn_chunk_is(v.name, DCN_BPK_QFLOAT)) {
            draft->dtype = DECANT_QFLOAT;
            rc = dcn_bpk_read_scheme(h, &d->quant, &d->old_quant);
        } else if (!dcn_chunk_is(v.name, DCN_BPK_BOOL))
            rc = dcn_bpk_unknown(h, "dtype", v.name);
        else if (!(rc = dcn_bpk_read_name(h, "store of Bool", dcn_bpk_bools, DCN_BPK_BOOLS, &store)))
            draft->dtype = (decant_dtype)(DECANT_BOOL + store);
        return rc ? rc : dcn_bpk_end_variant(h, &v);
    }
    if (dcn_chunk_is(v.name, DCN_BPK_BOOL)) {
        draft->dtype = DECANT_BOOL;
        h->old.bools++;
        return DECANT_OK;
    }
    for (unsigned i = 0; i < DCN_BPK_DTYPES; i++) {
        if (dcn_chunk_is(v.name, decant_dtype_name((decant_dtype)dcn_bpk_dtypes[i]))) {
            draft->dtype = (decant_dtype)dcn_bpk_dtypes[i];
            h->dtype = i;
            return DECANT_OK;
        }
    }
    return dcn_bpk_unknown(h, "dtype", v.name);
}

static decant_status read_shape(dcn_bpk_header *h, void *into)
{
    dcn_draft *draft = &((descriptor *)into)->draft;

    if (!dcn_cbor_u64s(&h->cbor, h->shape, h->shape_cap, &draft->rank))
        return h->cbor.status;
    if (draft->rank > h->shape_cap)
        return dcn_past_limit("the rank", draft->rank, h->shape_cap, h->err);
    draft->shape = h->shape;
    return DECANT_OK;
}

static decant_status read_offsets(dcn_bpk_header *h, void *into)
{
    descriptor *d = into;
    uint64_t offsets[2];
    size_t count;

    if (!dcn_cbor_u64s(&h->cbor, offsets, 2, &count))
        return h->cbor.status;
    if (count != 2)
        return dcn_bpk_malformed(h, "not two numbers");
    d->begin = offsets[0];
    d->end = offsets[1];
    return DECANT_OK;
}

static decant_status read_id(dcn_bpk_header *h, void *into)
{
    dcn_draft *draft = &((descriptor *)into)->draft;

    draft->has_id = !dcn_cbor_null(&h->cbor) && dcn_cbor_u64(&h->cbor, &draft->id);
    return h->cbor.status;
}

/* A quantized tensor whose length its scheme does not explain. */
static decant_status unexplained(dcn_bpk_header *h, const descriptor *d, const uint64_t *len)
{
    char shape[96];

    dcn_shape_text(shape, sizeof shape, d->draft.shape, d->draft.rank);
    if (len) {
        decant_error_set(h->err, DECANT_MALFORMED, "data_offsets do not hold shape %s of this QFloat", shape);
        dcn_error_found(h->err, "%" PRIu64 " bytes", d->end - d->begin);
        dcn_error_expected(h->err, "%" PRIu64, *len);
    } else {
        decant_error_set(h->err, DECANT_MALFORMED, "its quantization scheme does not fit shape %s", shape);
    }
    dcn_error_hint(h->err, "open it leniently (--lenient) to take its bytes as they are");
    return DECANT_MALFORMED;
}

/* The length that a scheme calls for, then or today; Burn takes any. The scheme becomes the draft's. */
static decant_status check_quantized(dcn_bpk_header *h, descriptor *d)
{
    dcn_draft *draft = &d->draft;
    uint64_t len, found = d->end - d->begin;
    bool has_len = dcn_quant_len(&d->quant, draft->shape, draft->rank, &len);
    bool has_order = !d->old_quant || dcn_bpk_old_has_order(&d->quant);

    if (d->old_quant && dcn_bpk_old_len(&d->quant, draft, found))
        return dcn_bpk_hold_scheme(h, &d->quant, true, &draft->extra);
    if (!has_len || len != found || !has_order) {
        if (!(h->lenient & DECANT_LENIENT_QUANT_LENGTHS))
            return has_order ? unexplained(h, d, has_len ? &len : NULL) : dcn_bpk_old_orderless(h);
        h->odd.quantized++;
    }
    return dcn_bpk_hold_scheme(h, &d->quant, false, &draft->extra);
}

/* What one tensor claims, against itself. */
static decant_status check_claims(dcn_bpk_header *h, descriptor *d)
{
    const dcn_draft *draft = &d->draft;
    char shape[96];
    uint64_t len, end;
    decant_status rc;

    if (d->begin > d->end) {
        decant_error_set(h->err, DECANT_MALFORMED, "data_offsets run backwards");
        dcn_error_found(h->err, "[%" PRIu64 ", %" PRIu64 "]", d->begin, d->end);
        return DECANT_MALFORMED;
    }
    if (dcn_ckd_add(&end, h->data, d->end)) {
        decant_error_set(h->err, DECANT_MALFORMED, "data_offsets leave 64 bits");
        dcn_error_found(h->err, "[%" PRIu64 ", %" PRIu64 "]", d->begin, d->end);
        return DECANT_MALFORMED;
    }
    if (draft->dtype == DECANT_QFLOAT)
        return check_quantized(h, d);
    if ((rc = dcn_dtype_len(draft->dtype, draft->shape, draft->rank, &len, h->err)))
        return rc;
    if (len != d->end - d->begin) {
        dcn_shape_text(shape, sizeof shape, draft->shape, draft->rank);
        decant_error_set(h->err, DECANT_MALFORMED, "data_offsets do not hold shape %s of %s", shape,
                         decant_dtype_name(draft->dtype));
        dcn_error_found(h->err, "%" PRIu64 " bytes", d->end - d->begin);
        dcn_error_expected(h->err, "%" PRIu64, len);
        return DECANT_MALFORMED;
    }
    return DECANT_OK;
}

static decant_status read_tensor(dcn_bpk_header *h, dcn_chunk name)
{
    static const dcn_bpk_field fields[] = {
        DCN_BPK_FIELD(DCN_BPK_DTYPE, read_dtype, true),
        DCN_BPK_FIELD(DCN_BPK_SHAPE, read_shape, true),
        DCN_BPK_FIELD(DCN_BPK_OFFSETS, read_offsets, true),
        DCN_BPK_FIELD(DCN_BPK_ID, read_id, false),
    };
    descriptor d = {.draft = {.name = name.data, .name_len = name.len, .stays = true}};
    dcn_extra *own = NULL;
    size_t index;
    decant_status rc;

    d.draft.any_name = h->lenient & DECANT_LENIENT_NUL_IN_NAMES;
    if (name.len > h->limits->name)
        return dcn_past_limit("the length of its name", name.len, h->limits->name, h->err);
    h->keys.pairs.len = 0;
    h->keys.count = 0;
    if ((rc = dcn_bpk_read_fields(h, fields, sizeof fields / sizeof *fields, &d, &h->keys)))
        return rc;
    h->whole = true;
    if ((rc = check_claims(h, &d)))
        return rc;
    h->odd.nuls += d.draft.any_name && memchr(name.data, 0, name.len);
    d.draft.data = (dcn_span){h->bytes, h->data + d.begin, d.end - d.begin};
    if (d.draft.data.len > h->largest)
        h->largest = d.draft.data.len;
    if (h->keys.count) {
        if ((rc = dcn_bpk_extra(dcn_quant_of(d.draft.extra), dcn_bpk_is_then(d.draft.extra), keys_of(&h->keys), &own,
                                h->err)))
            return rc;
        d.draft.extra = own;
    }
    if (h->lenient & DECANT_LENIENT_REPEATED_NAMES && dcn_model_find(h->model, name.data, name.len, &index)) {
        h->odd.repeated++;
        rc = dcn_model_replace(h->model, index, &d.draft, h->err);
    } else if (h->model->count == h->limits->tensors) {
        rc = dcn_past_limit("the number of tensors", (uint64_t)h->model->count + 1, h->limits->tensors, h->err);
    } else {
        rc = dcn_model_add(h->model, &d.draft, h->err);
    }
    dcn_extra_unref(&own);
    return rc;
}

static decant_status read_tensors(dcn_bpk_header *h, void *into)
{
    dcn_cbor_run run;
    dcn_chunk name;
    uint64_t most;
    decant_status rc;

    (void)into;
    if (!dcn_cbor_map(&h->cbor, &run))
        return h->cbor.status;
    if (!run.open && run.left > h->limits->tensors && !(h->lenient & DECANT_LENIENT_REPEATED_NAMES))
        return dcn_past_limit("the number of tensors", run.left, h->limits->tensors, h->err);
    most = (uint64_t)(h->cbor.end - h->cbor.at) / DCN_BPK_TENSOR;
    if (!run.open && (rc = dcn_model_reserve(h->model, (size_t)dcn_min(run.left, most), h->err)))
        return rc;

    while (dcn_cbor_more(&h->cbor, &run) && dcn_cbor_text(&h->cbor, &name)) {
        h->whole = false;
        if (!(rc = read_tensor(h, name)))
            continue;
        dcn_error_tensor(h->err, name.data, name.len);
        if (!h->whole || (rc = dcn_fault(h->findings, rc, h->err)))
            return rc;
        h->unplaced = true; /* it is told and left out, where all faults are listed */
    }
    return h->cbor.status;
}

/* --- values ------------------------------------------------------------------------------------------------------- */

static decant_status set(dcn_bpk_header *h, dcn_chunk key, const decant_value *value)
{
    size_t count = h->model->value_count;
    uint64_t len = value->type == DECANT_VALUE_TEXT ? value->as.text.len : 0;
    decant_status rc;

    if (count == h->limits->values)
        return dcn_past_limit("the number of values", (uint64_t)count + 1, h->limits->values, h->err);
    if (key.len > h->limits->value || len > h->limits->value)
        return dcn_past_limit("the length of a value", key.len > len ? key.len : len, h->limits->value, h->err);
    if ((rc = dcn_model_set(h->model, key.data, key.len, value, h->lenient & DECANT_LENIENT_REPEATED_KEYS, h->err)))
        return rc;
    h->odd.repeated += h->model->value_count == count;
    return DECANT_OK;
}

static decant_status read_metadata(dcn_bpk_header *h, void *into)
{
    dcn_cbor_run run;
    dcn_chunk key, text;
    decant_status rc;

    (void)into;
    if (!dcn_cbor_map(&h->cbor, &run))
        return h->cbor.status;
    while (dcn_cbor_more(&h->cbor, &run) && dcn_cbor_text(&h->cbor, &key) && dcn_cbor_text(&h->cbor, &text)) {
        decant_value value = {.type = DECANT_VALUE_TEXT, .as.text = {text.data, text.len}};

        if ((rc = set(h, key, &value)))
            return rc;
    }
    return h->cbor.status;
}

static decant_status read_scalar(dcn_bpk_header *h, dcn_chunk key)
{
    decant_value value = {0};
    dcn_bpk_variant v;
    bool flag = false;
    decant_status rc;

    if ((rc = dcn_bpk_begin_variant(h, &v)))
        return rc;
    for (size_t i = 0; i < DCN_BPK_SCALAR_TYPES && v.has_value; i++)
        if (dcn_chunk_is(v.name, dcn_bpk_scalars[i].name))
            value.type = dcn_bpk_scalars[i].type;
    switch (value.type) {
    case DECANT_VALUE_I64:
        dcn_cbor_i64(&h->cbor, &value.as.i64);
        break;
    case DECANT_VALUE_U64:
        dcn_cbor_u64(&h->cbor, &value.as.u64);
        break;
    case DECANT_VALUE_F64:
        dcn_cbor_f64(&h->cbor, &value.as.f64_bits);
        break;
    case DECANT_VALUE_BOOL:
        dcn_cbor_bool(&h->cbor, &flag);
        value.as.boolean = flag;
        break;
    default:
        decant_error_set(h->err, DECANT_UNSUPPORTED, "scalar '%.*s' is of the unknown type '%.*s'",
                         (int)dcn_min(key.len, 64), (const char *)key.data, (int)dcn_min(v.name.len, 64),
                         (const char *)v.name.data);
        return dcn_unknown_at(dcn_cbor_offset(&h->cbor), h->err);
    }
    rc = dcn_bpk_end_variant(h, &v);
    return rc ? rc : set(h, key, &value);
}

static decant_status read_scalars(dcn_bpk_header *h, void *into)
{
    dcn_cbor_run run;
    dcn_chunk key;
    decant_status rc;

    (void)into;
    if (!dcn_cbor_map(&h->cbor, &run))
        return h->cbor.status;
    while (dcn_cbor_more(&h->cbor, &run) && dcn_cbor_text(&h->cbor, &key))
        if ((rc = read_scalar(h, key)))
            return rc;
    return h->cbor.status;
}

/* The whole of the metadata. */
static decant_status read_top(dcn_bpk_header *h)
{
    static const dcn_bpk_field fields[] = {
        DCN_BPK_FIELD(DCN_BPK_TENSORS, read_tensors, true),
        DCN_BPK_FIELD(DCN_BPK_METADATA, read_metadata, false),
        DCN_BPK_FIELD(DCN_BPK_SCALARS, read_scalars, false),
    };
    dcn_bpk_carried keys = {0};
    decant_status rc = dcn_bpk_read_fields(h, fields, sizeof fields / sizeof *fields, NULL, &keys);

    if (rc == DECANT_OK && keys.count)
        rc = dcn_bpk_model_extra(keys_of(&keys), &h->model->extra, h->err);
    dcn_buf_close(&keys.pairs);
    if (rc)
        return rc;
    h->odd.after_metadata = (uint64_t)(h->cbor.end - h->cbor.at);
    if (h->odd.after_metadata && !(h->lenient & DECANT_LENIENT_AFTER_METADATA)) {
        decant_error_set(h->err, DECANT_MALFORMED, "%" PRIu64 " unexpected byte%s in the metadata, after its map",
                         h->odd.after_metadata, h->odd.after_metadata == 1 ? "" : "s");
        dcn_error_hint(h->err, "open it leniently (--lenient) to leave them out");
        dcn_error_at(h->err, dcn_cbor_offset(&h->cbor));
        return dcn_fault(h->findings, DECANT_MALFORMED, h->err);
    }
    return DECANT_OK;
}

/* --- the data as a whole ------------------------------------------------------------------------------------------ */

static decant_status truncated(dcn_bpk_header *h, const dcn_entry *last)
{
    decant_error_set(h->err, DECANT_TRUNCATED, "the file has %" PRIu64 " bytes, this tensor ends at byte %" PRIu64,
                     h->size, last->data.offset + last->data.len);
    dcn_error_hint(h->err, "fetch the rest");
    dcn_error_tensor(h->err, last->name, last->name_len);
    return DECANT_TRUNCATED;
}

/* Counts a tensor on bytes of one before it, where that is let pass. */
static decant_status take_overlap(dcn_bpk_header *h, const dcn_entry *e, const dcn_entry *before)
{
    bool shared = e->data.offset == before->data.offset && e->data.len == before->data.len;

    if (h->lenient & (shared ? DECANT_LENIENT_SHARED_DATA : DECANT_LENIENT_OVERLAPS)) {
        ++*(shared ? &h->odd.shared : &h->odd.overlaps);
        return DECANT_OK;
    }
    decant_error_set(h->err, DECANT_MALFORMED, "its data overlaps that of tensor '%.*s'",
                     (int)dcn_min(before->name_len, 96), before->name);
    dcn_error_found(h->err, "offset %" PRIu64, e->data.offset - h->data);
    dcn_error_expected(h->err, "at least %" PRIu64, before->data.offset + before->data.len - h->data);
    dcn_error_hint(h->err, "open it leniently (--lenient) to take it all the same");
    dcn_error_tensor(h->err, e->name, e->name_len);
    dcn_error_offset(h->err, e->data.offset);
    return DECANT_MALFORMED;
}

/* Tensors may leave gaps but not overlap, and nothing follows them. */
static decant_status check_ranges(dcn_bpk_header *h)
{
    decant_model *model = h->model;
    const dcn_entry *last = NULL, *furthest = NULL; /* with data; with or without */
    uint64_t end = h->data;
    bool old;
    decant_status rc;

    if ((rc = dcn_model_sort(model, h->err)))
        return rc;
    for (size_t i = 0; i < model->count; i++) {
        const dcn_entry *e = &model->entries[i];

        if (last && e->data.len && e->data.offset < last->data.offset + last->data.len &&
            (rc = dcn_fault(h->findings, take_overlap(h, e, last), h->err)))
            return rc;
        if (e->data.offset > end)
            h->gaps += e->data.offset - end;
        if (!furthest || e->data.offset + e->data.len >= end) {
            furthest = e;
            end = e->data.offset + e->data.len;
        }
        if (e->data.len && e == furthest)
            last = e;
    }
    if (furthest && end > h->size) {
        if ((rc = dcn_bpk_old_layout(h, end, &old)) || !old)
            return rc ? rc : truncated(h, furthest);
        end = h->size;
    }
    h->odd.after_data =
        h->size > end ? h->size - end : 0; /* without tensors a file may stop short of where data starts */
    if (h->odd.after_data && !(h->lenient & DECANT_LENIENT_AFTER_DATA)) {
        decant_error_set(h->err, DECANT_MALFORMED, "%" PRIu64 " unexpected byte%s after tensor data at offset %" PRIu64,
                         h->odd.after_data, h->odd.after_data == 1 ? "" : "s", end);
        dcn_error_hint(h->err, "open it leniently (--lenient) to leave them out");
        dcn_error_offset(h->err, end);
        return dcn_fault(h->findings, DECANT_MALFORMED, h->err);
    }
    return DECANT_OK;
}

/* --- notes -------------------------------------------------------------------------------------------------------- */

static decant_status note_odd(dcn_bpk_header *h, uint64_t count, const char *one, const char *many)
{
    return count ? dcn_model_note(h->model, "odd", h->err, "%" PRIu64 " %s", count, count == 1 ? one : many)
                 : DECANT_OK;
}

static decant_status note_layout(dcn_bpk_header *h)
{
    uint64_t offsets = DCN_BPK_ALIGN;

    if (h->model->count == 0)
        return DECANT_OK;
    for (size_t i = 0; i < h->model->count; i++)
        if (h->model->entries[i].data.len)
            offsets |= h->model->entries[i].data.offset;
    if (h->gaps == 0)
        return dcn_model_note(h->model, "layout", h->err, "data aligned to %" PRIu64 ", no gaps", offsets & -offsets);
    return dcn_model_note(h->model, "layout", h->err, "data aligned to %" PRIu64 ", %" PRIu64 " bytes of gaps",
                          offsets & -offsets, h->gaps);
}

static decant_status add_notes(dcn_bpk_header *h)
{
    decant_status rc;

    if ((rc = note_layout(h)))
        return rc;
    if (h->odd.unknowns &&
        (rc = dcn_model_note(h->model, "odd", h->err, "%" PRIu64 " unknown key%s, first '%.*s'", h->odd.unknowns,
                             h->odd.unknowns == 1 ? "" : "s", (int)dcn_min(h->odd.unknown.len, 64),
                             (const char *)h->odd.unknown.data)))
        return rc;
    if ((rc = note_odd(h, h->odd.dropped, "unknown key in a quantization scheme",
                       "unknown keys in quantization schemes")) ||
        (rc = note_odd(h, h->odd.repeated, "repeated name, of which the last counts",
                       "repeated names, of which the last count")) ||
        (rc = note_odd(h, h->odd.nuls, "name with a NUL in it", "names with a NUL in them")) ||
        (rc = note_odd(h, h->odd.quantized, "quantized tensor of another length than its scheme calls for",
                       "quantized tensors of other lengths than their schemes call for")) ||
        (rc = note_odd(h, h->odd.shared, "tensor on the data of another", "tensors on the data of others")) ||
        (rc = note_odd(h, h->odd.overlaps, "tensor on some of the data of others",
                       "tensors on some of the data of others")) ||
        (rc = note_odd(h, h->odd.after_metadata, "byte after the metadata", "bytes after the metadata")) ||
        (rc = note_odd(h, h->odd.after_data, "byte after the data", "bytes after the data")))
        return rc;
    return DECANT_OK;
}

/* Who opens the file. */
static void find_openers(dcn_bpk_header *h)
{
    dcn_bpk_sizes sizes = {h->metadata, h->model->count, h->largest, h->size};
    const char *old = dcn_bpk_old_obstacle(h);

    if (old)
        dcn_openers_add(&h->model->openers, "Burn", old);
    else
        dcn_bpk_openers(&sizes, &h->model->openers);
}

/* --- the format --------------------------------------------------------------------------------------------------- */

/* Checks the prefix; leaves the sizes that it gives in `h`. */
static decant_status read_prefix(dcn_bpk_header *h)
{
    uint8_t prefix[DCN_BPK_PREFIX];
    unsigned version;
    decant_status rc;

    if (h->size < DCN_BPK_PREFIX)
        return decant_error_set(h->err, DECANT_TRUNCATED,
                                "the file has %" PRIu64 " bytes, its first header alone takes %d", h->size,
                                DCN_BPK_PREFIX);
    if ((rc = decant_bytes_read(h->bytes, 0, prefix, sizeof prefix, h->err)))
        return rc;
    if (dcn_le32(prefix) != DCN_BPK_MAGIC) {
        decant_error_set(h->err, DECANT_MALFORMED, "no Burnpack file: it begins otherwise");
        dcn_error_found(h->err, "0x%08" PRIx32, dcn_le32(prefix));
        dcn_error_expected(h->err, "0x%08" PRIx32, DCN_BPK_MAGIC);
        return DECANT_MALFORMED;
    }
    version = dcn_le16(prefix + 4);
    if (version > DCN_BPK_VERSION) {
        decant_error_set(h->err, DECANT_UNSUPPORTED, "Burnpack of a version that is not known here");
        dcn_error_found(h->err, "version %u", version);
        dcn_error_expected(h->err, "at most %d", DCN_BPK_VERSION);
        dcn_error_hint(h->err, "fetch the file again; if it is not damaged, a newer decant may know it");
        return DECANT_UNSUPPORTED;
    }
    h->metadata = dcn_le32(prefix + 6);
    h->data = (DCN_BPK_PREFIX + h->metadata + DCN_BPK_ALIGN - 1) / DCN_BPK_ALIGN * DCN_BPK_ALIGN;
    if (h->metadata > h->size - DCN_BPK_PREFIX) {
        decant_error_set(h->err, DECANT_TRUNCATED, "the file has %" PRIu64 " bytes, its metadata ends at byte %" PRIu64,
                         h->size, DCN_BPK_PREFIX + h->metadata);
        dcn_error_hint(h->err, "fetch the rest");
        return DECANT_TRUNCATED;
    }
    if (h->metadata > h->limits->header)
        return dcn_past_limit("the length of the metadata", h->metadata, h->limits->header, h->err);
    return DECANT_OK;
}

/* Two reads. The metadata stays in the model's memory: names are used where they lie. */
static decant_status index_file(dcn_input *in, const dcn_limits *limits, unsigned lenient, decant_model *model,
                                decant_error *err)
{
    dcn_bpk_header h = {.model = model, .bytes = in->bytes, .limits = limits, .err = err, .lenient = lenient};
    uint8_t *metadata = NULL;
    decant_status rc;

    h.findings = in->findings;
    h.size = decant_bytes_len(in->bytes);
    if ((rc = read_prefix(&h)))
        return rc;
    h.shape_cap = (size_t)dcn_min(dcn_min(limits->rank, UINT16_MAX), h.metadata);
    h.shape = dcn_alloc(h.shape_cap, sizeof *h.shape);
    metadata = dcn_alloc((size_t)h.metadata, 1);
    if (!h.shape || !metadata || dcn_arena_adopt(&model->memory, metadata)) {
        dcn_free(&metadata);
        rc = dcn_error_nomem(err);
        goto done;
    }
    if ((rc = decant_bytes_read(in->bytes, DCN_BPK_PREFIX, metadata, (size_t)h.metadata, err)))
        goto done;
    h.cbor = dcn_cbor_on(metadata, (size_t)h.metadata, DCN_BPK_PREFIX, err);

    if ((rc = read_top(&h)) || h.unplaced || (rc = check_ranges(&h)) || (rc = add_notes(&h)) ||
        (rc = dcn_bpk_old_notes(&h)))
        goto done;
    find_openers(&h);
    model->ordered = true; /* that of its data is the caller's: other formats have their own */
    rc = dcn_bpk_old_relay(&h);
done:
    dcn_extra_unref(&h.quant);
    dcn_buf_close(&h.keys.pairs);
    dcn_free(&h.shape);
    return rc;
}

static int probe(const dcn_clue *clue)
{
    return clue->head_len >= 4 && dcn_le32(clue->head) == DCN_BPK_MAGIC ? 100 : 0;
}

static const char *const extensions[] = {"bpk", NULL};

const dcn_format dcn_burnpack = {
    .name = "burnpack",
    .extensions = extensions,
    .probe = probe,
    .index = index_file,
    .emit = dcn_bpk_emit,
    .covers = "metadata, ranges and size",
    .lacks = "this format carries no checksums",
};
