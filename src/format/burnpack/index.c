#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/ckd.h"
#include "base/dtype.h"
#include "base/endian.h"
#include "base/text.h"
#include "codec/cbor.h"
#include "format/burnpack/extra.h"
#include "format/burnpack/layout.h"
#include "format/burnpack/quant.h"
#include "format/limit.h"

/* What is told of a file that opens all the same. */
typedef struct oddities {
    dcn_chunk unknown;       /* the first key that no reader knows, and that is carried */
    uint64_t unknowns;       /* how many of them */
    uint64_t dropped;        /* keys that no reader knows, in a scheme */
    uint64_t repeated;       /* names and keys that came again: the last counts */
    uint64_t nuls;           /* names that hold one */
    uint64_t quantized;      /* tensors of another length than their scheme calls for: Burn takes any */
    uint64_t shared;         /* tensors on exactly the bytes of another */
    uint64_t overlaps;       /* tensors on bytes of others */
    uint64_t after_metadata; /* bytes */
    uint64_t after_data;     /* bytes */
} oddities;

/* Forms that Burn once wrote under today's magic and version, and its readers of today refuse or misread. Told as well. */
typedef struct legacies {
    bool layout;      /* 0.19: data right behind the metadata, end to end */
    uint64_t bools;   /* 0.19, 0.20: a name without a store */
    uint64_t schemes; /* 0.19 to 0.21: `level` and `param` */
} legacies;

/* Keys of a map that no reader knows, with their values, as they will be written again. */
typedef struct carried {
    dcn_buf pairs;
    uint64_t count;
} carried;

typedef struct header {
    dcn_cbor cbor;
    decant_model *model;
    dcn_backing *bytes;
    const dcn_limits *limits;
    decant_error *err;
    uint64_t size;     /* of the file */
    uint64_t metadata; /* bytes of it */
    uint64_t data;     /* where it starts in the file */
    uint64_t gaps;     /* bytes between tensors */
    uint64_t largest;  /* bytes of a tensor */
    uint64_t *shape;   /* of the tensor at hand; room for all that limits allow */
    size_t shape_cap;
    unsigned dtype;               /* of the last tensor, in the order of the format: mostly that of the next */
    decant_quant scheme;          /* likewise, as it was written */
    dcn_extra *quant;             /* and as it is held */
    bool then;                    /* of a tensor that is laid out as Burn 0.21 did */
    carried keys;                 /* of the tensor at hand */
    unsigned lenient;             /* DECANT_LENIENT_* */
    const dcn_findings *findings; /* NULL: the first fault ends it */
    bool whole;                   /* of the tensor at hand everything is read */
    bool unplaced;                /* a fault left out a tensor: what it has in the file is not known */
    oddities odd;
    legacies old;
} header;

/* The place of a text among `count` names; `count` if it is none of them. */
static size_t find(dcn_chunk text, const char *const *names, size_t count)
{
    size_t i = 0;

    while (i < count && !dcn_chunk_is(text, names[i]))
        i++;
    return i;
}

static decant_status unknown(header *h, const char *what, dcn_chunk name)
{
    decant_error_set(h->err, DECANT_UNSUPPORTED, "unknown %s '%.*s'", what, (int)dcn_min(name.len, 64),
                     (const char *)name.data);
    return dcn_unknown_at(dcn_cbor_offset(&h->cbor), h->err);
}

static decant_status malformed(header *h, const char *what)
{
    decant_error_set(h->err, DECANT_MALFORMED, "%s", what);
    dcn_error_at(h->err, dcn_cbor_offset(&h->cbor));
    return DECANT_MALFORMED;
}

static dcn_bpk_keys keys_of(const carried *c)
{
    return (dcn_bpk_keys){c->count, {c->pairs.data, c->pairs.len}};
}

/* An unknown key where none is carried, as it may change what the known ones mean. */
static decant_status refuse_unknown(header *h, dcn_chunk key)
{
    if (h->lenient & DECANT_LENIENT_UNKNOWN_FIELDS) {
        h->odd.dropped++;
        dcn_cbor_skip(&h->cbor);
        return h->cbor.status;
    }
    unknown(h, "key", key);
    dcn_error_hint(h->err, "a newer decant may know it; open it leniently (--lenient) to ignore it");
    return DECANT_UNSUPPORTED;
}

static decant_status carry_unknown(header *h, dcn_chunk key, carried *c)
{
    const uint8_t *value = h->cbor.at;

    if (h->odd.unknowns++ == 0)
        h->odd.unknown = key;
    if (!dcn_cbor_skip(&h->cbor))
        return h->cbor.status;
    dcn_cbor_put(&c->pairs, dcn_utf8_valid(key.data, key.len) ? DCN_CBOR_TEXT : DCN_CBOR_BYTES, key.len);
    dcn_buf_put(&c->pairs, key.data, key.len);
    dcn_buf_put(&c->pairs, value, (size_t)(h->cbor.at - value));
    c->count++;
    return dcn_buf_check(&c->pairs, h->err);
}

/* --- maps with known keys ----------------------------------------------------------------------------------------- */

typedef decant_status read_field(header *h, void *into);

typedef struct field {
    const char *key;
    size_t key_len;
    read_field *read;
    bool required;
} field;

#define FIELD(key, read, required)               \
    {                                            \
        key, sizeof(key) - 1, (read), (required) \
    }

/* The next key: `guess` if keys come in the order in which they are written, `count` if it is none of them. */
static size_t next_field(header *h, const field *fields, size_t count, size_t guess, dcn_chunk *key)
{
    size_t i = 0;

    if (guess < count && dcn_cbor_is_text(&h->cbor, fields[guess].key, fields[guess].key_len))
        return guess;
    if (!dcn_cbor_key(&h->cbor, key))
        return count;
    while (i < count && (key->len != fields[i].key_len || memcmp(key->data, fields[i].key, key->len) != 0))
        i++;
    return i;
}

/*
 * A struct as serde reads it: keys in any order, each known one at most once. Failures carry the key.
 *
 * @param unknown  gains the unknown ones; NULL: there must be none
 */
static decant_status read_fields(header *h, const field *fields, size_t count, void *into, carried *unknown)
{
    dcn_cbor_run run;
    dcn_chunk key;
    unsigned seen = 0;
    decant_status rc;
    size_t i, guess = 0;

    if (!dcn_cbor_map(&h->cbor, &run))
        return h->cbor.status;
    while (dcn_cbor_more(&h->cbor, &run)) {
        i = next_field(h, fields, count, guess, &key);
        if (h->cbor.status)
            break;
        if (i == count) {
            if ((rc = unknown ? carry_unknown(h, key, unknown) : refuse_unknown(h, key)))
                return rc;
            continue;
        }
        if (seen & 1u << i) {
            decant_error_set(h->err, DECANT_DUPLICATE, "duplicate key '%s'", fields[i].key);
            dcn_error_at(h->err, dcn_cbor_offset(&h->cbor));
            return DECANT_DUPLICATE;
        }
        seen |= 1u << i;
        guess = i + 1;
        if ((rc = fields[i].read(h, into))) {
            bool placed =
                rc != DECANT_MALFORMED || (h->err && h->err->tensor[0]); /* by a tensor: no need to say where */

            return placed ? rc : dcn_error_recast(h->err, rc, fields[i].key);
        }
    }
    if (h->cbor.status)
        return h->cbor.status;
    for (i = 0; i < count; i++) {
        if (fields[i].required && !(seen & 1u << i)) {
            malformed(h, "a key is missing");
            dcn_error_expected(h->err, "'%s'", fields[i].key);
            return DECANT_MALFORMED;
        }
    }
    return DECANT_OK;
}

/* An enum as serde writes it: a name, or a map of one name to a value, which then stands next. */
typedef struct variant {
    dcn_chunk name;
    dcn_cbor_run run;
    bool has_value;
} variant;

static decant_status begin_variant(header *h, variant *v)
{
    dcn_cbor *cbor = &h->cbor;

    v->has_value = dcn_cbor_peek(cbor) == DCN_CBOR_MAP;
    if (!v->has_value)
        dcn_cbor_text(cbor, &v->name);
    else if (dcn_cbor_map(cbor, &v->run) && !dcn_cbor_more(cbor, &v->run))
        dcn_cbor_fail(cbor, DECANT_MALFORMED, "empty map");
    else
        dcn_cbor_key(cbor, &v->name);
    return cbor->status;
}

/* After its value. */
static decant_status end_variant(header *h, variant *v)
{
    if (v->has_value && dcn_cbor_more(&h->cbor, &v->run))
        dcn_cbor_fail(&h->cbor, DECANT_MALFORMED, "map of more than one pair");
    return h->cbor.status;
}

/* One of `count` names, as an enum without a value. */
static decant_status read_name(header *h, const char *what, const char *const *names, size_t count, unsigned *out)
{
    dcn_chunk text;
    size_t i;

    if (!dcn_cbor_text(&h->cbor, &text))
        return h->cbor.status;
    i = find(text, names, count);
    if (i == count)
        return unknown(h, what, text);
    *out = (unsigned)i;
    return DECANT_OK;
}

/* --- quantization schemes ----------------------------------------------------------------------------------------- */

/* A scheme, as far as it is read. */
typedef struct scheme {
    decant_quant quant;
    bool today;                     /* it has a key that only today's form has */
    bool u32, has_level, has_param; /* what only the form of Burn 0.19 to 0.21 has */
    decant_scale param;             /* of the innermost scales */
} scheme;

static decant_status read_value(header *h, void *into)
{
    decant_quant *quant = &((scheme *)into)->quant;
    unsigned i = 0;
    decant_status rc = read_name(h, "quantized value", dcn_bpk_values, DCN_BPK_VALUES, &i);

    quant->value = (decant_quant_value)i;
    return rc;
}

static decant_status read_store(header *h, void *into)
{
    scheme *s = into;
    variant v;
    size_t i;
    decant_status rc;

    if ((rc = begin_variant(h, &v)))
        return rc;
    if (!v.has_value && dcn_chunk_is(v.name, DCN_BPK_OLD_U32)) {
        s->u32 = true;
        s->quant.store = DECANT_STORE_PACKED_U32;
        return DECANT_OK;
    }
    i = find(v.name, dcn_bpk_stores, DCN_BPK_STORES);
    if (i == DCN_BPK_STORES || v.has_value != (i != DECANT_STORE_NATIVE))
        return unknown(h, "quantized store", v.name);
    s->quant.store = (decant_quant_store)i;
    if (v.has_value && !dcn_cbor_u64(&h->cbor, &s->quant.packed_dim))
        return h->cbor.status;
    return end_variant(h, &v);
}

static decant_status read_mode(header *h, void *into)
{
    decant_quant *quant = &((scheme *)into)->quant;
    unsigned i = 0;
    decant_status rc = read_name(h, "quantization mode", dcn_bpk_modes, DCN_BPK_MODES, &i);

    quant->mode = (decant_quant_mode)i;
    return rc;
}

static decant_status read_scale(header *h, decant_scale *out)
{
    unsigned i = 0;
    decant_status rc = read_name(h, "scale dtype", dcn_bpk_scales, DCN_BPK_SCALES, &i);

    *out = (decant_scale)(i + DECANT_SCALE_F32);
    return rc;
}

static decant_status read_tensor_scale(header *h, void *into)
{
    scheme *s = into;

    s->today = true;
    return dcn_cbor_null(&h->cbor) ? DECANT_OK : read_scale(h, &s->quant.tensor_scale);
}

static decant_status read_block_scale(header *h, void *into)
{
    return read_scale(h, &((scheme *)into)->quant.block_scale);
}

static decant_status read_storage(header *h, void *into)
{
    decant_quant *quant = &((scheme *)into)->quant;
    uint64_t extents[DCN_QUANT_DIMS];
    size_t count;

    if (!dcn_cbor_u64s(&h->cbor, extents, DCN_QUANT_DIMS, &count))
        return h->cbor.status;
    if (count != DCN_QUANT_DIMS)
        return malformed(h, "a block is not of five extents");
    for (size_t i = 0; i < DCN_QUANT_DIMS; i++) {
        if (extents[i] > UINT8_MAX)
            return malformed(h, "an extent of a block is larger than 255");
        quant->block[i] = (uint8_t)extents[i];
    }
    return DECANT_OK;
}

static decant_status read_block_rank(header *h, void *into)
{
    decant_quant *quant = &((scheme *)into)->quant;
    uint64_t rank;

    if (!dcn_cbor_u64(&h->cbor, &rank))
        return h->cbor.status;
    if (rank > DCN_QUANT_DIMS)
        return malformed(h, "a block of more than five dimensions");
    quant->block_rank = (uint8_t)rank;
    return DECANT_OK;
}

/* Burn opens blocks with extents of 0, and fails when it uses them. */
static decant_status read_block_size(header *h, void *into)
{
    static const field fields[] = {FIELD("storage", read_storage, true), FIELD("len", read_block_rank, true)};
    const decant_quant *quant = &((scheme *)into)->quant;
    decant_status rc = read_fields(h, fields, sizeof fields / sizeof *fields, into, NULL);

    for (size_t i = 0; !rc && i < quant->block_rank; i++)
        if (quant->block[i] == 0)
            rc = malformed(h, "an extent of a block is 0");
    return rc;
}

static decant_status read_block(header *h, void *into)
{
    static const field fields[] = {FIELD("size", read_block_size, true), FIELD("dtype", read_block_scale, true)};

    ((scheme *)into)->today = true;
    return dcn_cbor_null(&h->cbor) ? DECANT_OK : read_fields(h, fields, sizeof fields / sizeof *fields, into, NULL);
}

static decant_status read_param(header *h, void *into)
{
    scheme *s = into;

    s->has_param = true;
    return read_scale(h, &s->param);
}

static decant_status read_global(header *h, void *into)
{
    return read_scale(h, &((scheme *)into)->quant.tensor_scale);
}

/* What has scales of its own: the tensor, blocks, or blocks under one more scale of the tensor (0.22.0-pre.2 alone). */
static decant_status read_level(header *h, void *into)
{
    static const char *const names[] = {"Tensor", "Block", "BlockTensor"};
    static const field two[] = {FIELD("block", read_block_size, true), FIELD("global", read_global, true)};
    enum { TENSOR, BLOCK, BLOCK_TENSOR, LEVELS };
    scheme *s = into;
    variant v;
    size_t level;
    decant_status rc;

    s->has_level = true;
    if ((rc = begin_variant(h, &v)))
        return rc;
    level = find(v.name, names, LEVELS);
    if (level == LEVELS || v.has_value != (level != TENSOR))
        return unknown(h, "level of a quantization scheme", v.name);
    if (level == TENSOR)
        return DECANT_OK;
    s->quant.block_scale = DECANT_SCALE_F32; /* until `param` is known */
    rc = level == BLOCK ? read_block_size(h, s) : read_fields(h, two, sizeof two / sizeof *two, s, NULL);
    return rc ? rc : end_variant(h, &v);
}

/* A scheme of an older Burn in the terms of today's. Readers of today drop both of its keys without a word. */
static decant_status translate(header *h, scheme *s)
{
    if (s->today)
        return malformed(h, "keys of today's schemes beside those of Burn 0.21");
    if (!s->has_level || !s->has_param)
        return malformed(h, s->has_level ? "a scheme of Burn 0.19 to 0.21 without 'param'"
                                         : "a scheme of Burn 0.19 to 0.21 without 'level'");
    if (s->quant.block_scale)
        s->quant.block_scale = s->param;
    else
        s->quant.tensor_scale = s->param;
    h->old.schemes++;
    return DECANT_OK;
}

static decant_status read_scheme(header *h, decant_quant *out, bool *old)
{
    static const field fields[] = {
        FIELD("value", read_value, true),          FIELD("store", read_store, true),  FIELD("mode", read_mode, true),
        FIELD("tensor", read_tensor_scale, false), FIELD("block", read_block, false), FIELD("param", read_param, false),
        FIELD("level", read_level, false),
    };
    scheme s = {.quant = {.size = sizeof s.quant}};
    decant_status rc = read_fields(h, fields, sizeof fields / sizeof *fields, &s, NULL);

    *old = s.u32 || s.has_level || s.has_param;
    if (!rc && *old)
        rc = translate(h, &s);
    *out = s.quant;
    return rc;
}

/* The extra of a scheme, lent: one for all tensors in a row that share it. `then`: of a tensor that is laid out as it was. */
static decant_status hold_scheme(header *h, const decant_quant *quant, bool then, dcn_extra **out)
{
    dcn_extra *extra = NULL;
    decant_status rc;

    if (!h->quant || h->then != then || !dcn_quant_equal(quant, &h->scheme)) {
        if ((rc = dcn_bpk_extra(quant, then, (dcn_bpk_keys){0}, &extra, h->err)))
            return rc;
        dcn_extra_unref(&h->quant);
        h->quant = extra;
        h->scheme = *quant;
        h->then = then;
    }
    *out = h->quant;
    return DECANT_OK;
}

/* --- tensors ------------------------------------------------------------------------------------------------------ */

/* A descriptor, as far as it is read. */
typedef struct descriptor {
    dcn_draft draft;
    uint64_t begin, end;
    decant_quant quant; /* of QFLOAT */
    bool old_quant;     /* as Burn 0.19 to 0.21 wrote it */
} descriptor;

static decant_status read_dtype(header *h, void *into)
{
    descriptor *d = into;
    dcn_draft *draft = &d->draft;
    variant v;
    unsigned store = 0;
    const char *last = decant_dtype_name((decant_dtype)dcn_bpk_dtypes[h->dtype]);
    decant_status rc;

    if (dcn_cbor_is_text(&h->cbor, last, strlen(last))) {
        draft->dtype = (decant_dtype)dcn_bpk_dtypes[h->dtype];
        return DECANT_OK;
    }
    if ((rc = begin_variant(h, &v)))
        return rc;
    if (v.has_value) {
        if (dcn_chunk_is(v.name, DCN_BPK_QFLOAT)) {
            draft->dtype = DECANT_QFLOAT;
            rc = read_scheme(h, &d->quant, &d->old_quant);
        } else if (!dcn_chunk_is(v.name, DCN_BPK_BOOL))
            rc = unknown(h, "dtype", v.name);
        else if (!(rc = read_name(h, "store of Bool", dcn_bpk_bools, DCN_BPK_BOOLS, &store)))
            draft->dtype = (decant_dtype)(DECANT_BOOL + store);
        return rc ? rc : end_variant(h, &v);
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
    return unknown(h, "dtype", v.name);
}

static decant_status read_shape(header *h, void *into)
{
    dcn_draft *draft = &((descriptor *)into)->draft;

    if (!dcn_cbor_u64s(&h->cbor, h->shape, h->shape_cap, &draft->rank))
        return h->cbor.status;
    if (draft->rank > h->shape_cap)
        return dcn_past_limit("the rank", draft->rank, h->shape_cap, h->err);
    draft->shape = h->shape;
    return DECANT_OK;
}

static decant_status read_offsets(header *h, void *into)
{
    descriptor *d = into;
    uint64_t offsets[2];
    size_t count;

    if (!dcn_cbor_u64s(&h->cbor, offsets, 2, &count))
        return h->cbor.status;
    if (count != 2)
        return malformed(h, "not two numbers");
    d->begin = offsets[0];
    d->end = offsets[1];
    return DECANT_OK;
}

static decant_status read_id(header *h, void *into)
{
    dcn_draft *draft = &((descriptor *)into)->draft;

    draft->has_id = !dcn_cbor_null(&h->cbor) && dcn_cbor_u64(&h->cbor, &draft->id);
    return h->cbor.status;
}

/* A quantized tensor whose length or layout its scheme does not explain. */
static decant_status unexplained(header *h, const descriptor *d, const uint64_t *len, bool order_known)
{
    char shape[96];

    dcn_shape_text(shape, sizeof shape, d->draft.shape, d->draft.rank);
    if (!order_known) {
        decant_error_set(
            h->err, DECANT_UNSUPPORTED,
            "values packed along another dimension than the last by Burn 0.20 or 0.21, in an unknown order");
    } else if (len) {
        decant_error_set(h->err, DECANT_MALFORMED, "data_offsets do not hold shape %s of this QFloat", shape);
        dcn_error_found(h->err, "%" PRIu64 " bytes", d->end - d->begin);
        dcn_error_expected(h->err, "%" PRIu64, *len);
    } else {
        decant_error_set(h->err, DECANT_MALFORMED, "its quantization scheme does not fit shape %s", shape);
    }
    dcn_error_hint(h->err, "open it leniently (--lenient) to take its bytes as they are");
    return order_known ? DECANT_MALFORMED : DECANT_UNSUPPORTED;
}

/* The length that a scheme calls for, then or today; Burn takes any. The scheme becomes the draft's. */
static decant_status check_quantized(header *h, descriptor *d)
{
    dcn_draft *draft = &d->draft;
    uint64_t len, found = d->end - d->begin;
    bool has_len = dcn_quant_len(&d->quant, draft->shape, draft->rank, &len);
    bool order_known = !d->old_quant || d->quant.store == DECANT_STORE_NATIVE || d->quant.packed_dim == 0;
    dcn_quant_old old;

    if (d->old_quant && dcn_quant_old_of(&d->quant, draft->shape, draft->rank, &old) && old.len == found)
        return hold_scheme(h, &d->quant, true, &draft->extra);
    if (!has_len || len != found || !order_known) {
        if (!(h->lenient & DECANT_LENIENT_QUANT_LENGTHS))
            return unexplained(h, d, has_len ? &len : NULL, order_known);
        h->odd.quantized++;
    }
    return hold_scheme(h, &d->quant, false, &draft->extra);
}

/* What one tensor claims, against itself. */
static decant_status check_claims(header *h, descriptor *d)
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

static decant_status read_tensor(header *h, dcn_chunk name)
{
    static const field fields[] = {
        FIELD(DCN_BPK_DTYPE, read_dtype, true),
        FIELD(DCN_BPK_SHAPE, read_shape, true),
        FIELD(DCN_BPK_OFFSETS, read_offsets, true),
        FIELD(DCN_BPK_ID, read_id, false),
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
    if ((rc = read_fields(h, fields, sizeof fields / sizeof *fields, &d, &h->keys)))
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

static decant_status read_tensors(header *h, void *into)
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

static decant_status set(header *h, dcn_chunk key, const decant_value *value)
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

static decant_status read_metadata(header *h, void *into)
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

static decant_status read_scalar(header *h, dcn_chunk key)
{
    decant_value value = {0};
    variant v;
    bool flag = false;
    decant_status rc;

    if ((rc = begin_variant(h, &v)))
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
    rc = end_variant(h, &v);
    return rc ? rc : set(h, key, &value);
}

static decant_status read_scalars(header *h, void *into)
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
static decant_status read_top(header *h)
{
    static const field fields[] = {
        FIELD(DCN_BPK_TENSORS, read_tensors, true),
        FIELD(DCN_BPK_METADATA, read_metadata, false),
        FIELD(DCN_BPK_SCALARS, read_scalars, false),
    };
    carried keys = {0};
    decant_status rc = read_fields(h, fields, sizeof fields / sizeof *fields, NULL, &keys);

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

static decant_status truncated(header *h, const dcn_entry *last)
{
    decant_error_set(h->err, DECANT_TRUNCATED, "the file has %" PRIu64 " bytes, this tensor ends at byte %" PRIu64,
                     h->size, last->data.offset + last->data.len);
    dcn_error_hint(h->err, "fetch the rest");
    dcn_error_tensor(h->err, last->name, last->name_len);
    return DECANT_TRUNCATED;
}

/* Whether any byte is set where today's layout has zeros, in front of its data. */
static decant_status look_at_padding(header *h, bool *data, decant_error *err)
{
    uint8_t padding[DCN_BPK_ALIGN];
    uint64_t at = DCN_BPK_PREFIX + h->metadata;
    size_t len = (size_t)(dcn_min(h->data, h->size) - at);
    decant_status rc = decant_bytes_read(h->bytes, at, padding, len, err);

    for (size_t i = 0; !rc && i < len; i++)
        *data |= padding[i] != 0;
    return rc;
}

/*
 * Burn 0.19 put data right behind the metadata, end to end, under today's magic and version, with an id for every tensor and
 * no scalars. A file that ends where such data does is one of its files, or one of today's that was cut short by as much: it
 * is taken for the former only on evidence.
 */
static decant_status is_of_0_19(header *h, uint64_t end, bool *is)
{
    const decant_model *model = h->model;
    const dcn_value *version = dcn_model_text(model, "version");
    uint64_t shift = h->data - DCN_BPK_PREFIX - h->metadata;
    bool evidence = version && version->value.as.text.len >= 4 && memcmp(version->value.as.text.data, "0.19", 4) == 0;

    *is = false;
    if (!shift || h->size != end - shift || h->gaps || h->odd.overlaps || h->odd.shared)
        return DECANT_OK;
    for (size_t i = 0; i < model->count; i++) {
        if (!model->entries[i].has_id)
            return DECANT_OK;
        evidence |= (model->entries[i].data.offset - h->data) % DCN_BPK_ALIGN != 0;
    }
    for (size_t i = 0; i < model->value_count; i++)
        if (model->values[i].value.type != DECANT_VALUE_TEXT)
            return DECANT_OK;
    *is = evidence;
    return evidence ? DECANT_OK : look_at_padding(h, is, h->err);
}

/* Moves all data to where Burn 0.19 put it. */
static void move_data(header *h)
{
    uint64_t shift = h->data - DCN_BPK_PREFIX - h->metadata;

    for (size_t i = 0; i < h->model->count; i++)
        h->model->entries[i].data.offset -= shift;
    h->data -= shift;
    h->old.layout = true;
}

/* Counts a tensor on bytes of one before it, where that is let pass. */
static decant_status take_overlap(header *h, const dcn_entry *e, const dcn_entry *before)
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
static decant_status check_ranges(header *h)
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
        if ((rc = is_of_0_19(h, end, &old)) || !old)
            return rc ? rc : truncated(h, furthest);
        move_data(h);
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

static decant_status note_odd(header *h, uint64_t count, const char *one, const char *many)
{
    return count ? dcn_model_note(h->model, "odd", h->err, "%" PRIu64 " %s", count, count == 1 ? one : many)
                 : DECANT_OK;
}

static decant_status note_layout(header *h)
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

static decant_status add_notes(header *h)
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

/* --- older forms -------------------------------------------------------------------------------------------------- */

/* Has quantized tensors of Burn 0.20 and 0.21 laid out as they are today. After all places are checked and told. */
static decant_status relay_quantized(header *h)
{
    for (size_t i = 0; h->old.schemes && i < h->model->count; i++) {
        dcn_entry *e = &h->model->entries[i];
        const decant_quant *quant = dcn_quant_of(e->extra);
        decant_bytes *bytes = NULL;
        dcn_extra *extra;
        dcn_quant_old old;
        decant_status rc;

        if (!dcn_bpk_is_then(e->extra))
            continue;
        dcn_quant_old_of(quant, e->shape, e->rank, &old); /* it has been asked before */
        if (!dcn_quant_old_is_new(&old)) {
            if ((rc = dcn_quant_relay(&old, &e->data, &bytes, h->err)))
                return rc;
            decant_bytes_unref(&e->data.backing);
            e->data = (dcn_span){bytes, 0, bytes->len};
        }
        if ((rc = dcn_bpk_extra(quant, false, dcn_bpk_keys_of(e->extra), &extra, h->err)))
            return rc;
        dcn_extra_unref(&e->extra);
        e->extra = extra;
    }
    return DECANT_OK;
}

static decant_status note_old(header *h)
{
    static const char why[] = "Burn of today";
    decant_status rc;

    if (h->old.layout &&
        (rc = dcn_model_note(h->model, "odd", h->err,
                             "data right behind the metadata, as Burn 0.19 wrote it: %s calls it truncated", why)))
        return rc;
    if (h->old.bools &&
        (rc = dcn_model_note(h->model, "odd", h->err,
                             "%" PRIu64 " Bool tensor%s as Burn 0.19 and 0.20 wrote them: %s refuses them",
                             h->old.bools, h->old.bools == 1 ? "" : "s", why)))
        return rc;
    if (h->old.schemes)
        return dcn_model_note(h->model, "odd", h->err,
                              "%" PRIu64 " quantization scheme%s as Burn 0.19 to 0.21 wrote them: %s misreads them",
                              h->old.schemes, h->old.schemes == 1 ? "" : "s", why);
    return DECANT_OK;
}

/* Who opens the file. */
static void find_openers(header *h)
{
    dcn_bpk_sizes sizes = {h->metadata, h->model->count, h->largest, h->size};

    if (h->old.layout)
        dcn_openers_add(&h->model->openers, "Burn", "not the layout of 0.19, which it calls truncated");
    else if (h->old.bools)
        dcn_openers_add(&h->model->openers, "Burn", "not Bool as 0.19 and 0.20 wrote it");
    else if (h->old.schemes)
        dcn_openers_add(&h->model->openers, "Burn", "it misreads quantization schemes of 0.19 to 0.21");
    else
        dcn_bpk_openers(&sizes, &h->model->openers);
}

/* --- the format --------------------------------------------------------------------------------------------------- */

/* Checks the prefix; leaves the sizes that it gives in `h`. */
static decant_status read_prefix(header *h)
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
    header h = {.model = model, .bytes = in->bytes, .limits = limits, .err = err, .lenient = lenient};
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

    if ((rc = read_top(&h)) || h.unplaced || (rc = check_ranges(&h)) || (rc = add_notes(&h)) || (rc = note_old(&h)))
        goto done;
    find_openers(&h);
    model->ordered = true; /* that of its data is the caller's: other formats have their own */
    rc = relay_quantized(&h);
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
