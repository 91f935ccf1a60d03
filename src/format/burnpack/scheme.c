#include "format/burnpack/index.h"
#include "format/burnpack/layout.h"
#include "format/burnpack/quant.h"

static decant_status read_value(dcn_bpk_header *h, void *into)
{
    decant_quant *quant = &((dcn_bpk_scheme *)into)->quant;
    unsigned i = 0;
    decant_status rc = dcn_bpk_read_name(h, "quantized value", dcn_bpk_values, DCN_BPK_VALUES, &i);

    quant->value = (decant_quant_value)i;
    return rc;
}

static decant_status read_store(dcn_bpk_header *h, void *into)
{
    dcn_bpk_scheme *s = into;
    dcn_bpk_variant v;
    size_t i;
    decant_status rc;

    if ((rc = dcn_bpk_begin_variant(h, &v)))
        return rc;
    if (dcn_bpk_old_store(&v, s))
        return DECANT_OK;
    i = dcn_bpk_find(v.name, dcn_bpk_stores, DCN_BPK_STORES);
    if (i == DCN_BPK_STORES || v.has_value != (i != DECANT_STORE_NATIVE))
        return dcn_bpk_unknown(h, "quantized store", v.name);
    s->quant.store = (decant_quant_store)i;
    if (v.has_value && !dcn_cbor_u64(&h->cbor, &s->quant.packed_dim))
        return h->cbor.status;
    return dcn_bpk_end_variant(h, &v);
}

static decant_status read_mode(dcn_bpk_header *h, void *into)
{
    decant_quant *quant = &((dcn_bpk_scheme *)into)->quant;
    unsigned i = 0;
    decant_status rc = dcn_bpk_read_name(h, "quantization mode", dcn_bpk_modes, DCN_BPK_MODES, &i);

    quant->mode = (decant_quant_mode)i;
    return rc;
}

decant_status dcn_bpk_read_scale(dcn_bpk_header *h, decant_scale *out)
{
    unsigned i = 0;
    decant_status rc = dcn_bpk_read_name(h, "scale dtype", dcn_bpk_scales, DCN_BPK_SCALES, &i);

    *out = (decant_scale)(i + DECANT_SCALE_F32);
    return rc;
}

static decant_status read_tensor_scale(dcn_bpk_header *h, void *into)
{
    dcn_bpk_scheme *s = into;

    s->today = true;
    return dcn_cbor_null(&h->cbor) ? DECANT_OK : dcn_bpk_read_scale(h, &s->quant.tensor_scale);
}

static decant_status read_block_scale(dcn_bpk_header *h, void *into)
{
    return dcn_bpk_read_scale(h, &((dcn_bpk_scheme *)into)->quant.block_scale);
}

static decant_status read_storage(dcn_bpk_header *h, void *into)
{
    decant_quant *quant = &((dcn_bpk_scheme *)into)->quant;
    uint64_t extents[DCN_QUANT_DIMS];
    size_t count;

    if (!dcn_cbor_u64s(&h->cbor, extents, DCN_QUANT_DIMS, &count))
        return h->cbor.status;
    if (count != DCN_QUANT_DIMS)
        return dcn_bpk_malformed(h, "a block is not of five extents");
    for (size_t i = 0; i < DCN_QUANT_DIMS; i++) {
        if (extents[i] > UINT8_MAX)
            return dcn_bpk_malformed(h, "an extent of a block is larger than 255");
        quant->block[i] = (uint8_t)extents[i];
    }
    return DECANT_OK;
}

static decant_status read_block_rank(dcn_bpk_header *h, void *into)
{
    decant_quant *quant = &((dcn_bpk_scheme *)into)->quant;
    uint64_t rank;

    if (!dcn_cbor_u64(&h->cbor, &rank))
        return h->cbor.status;
    if (rank > DCN_QUANT_DIMS)
        return dcn_bpk_malformed(h, "a block of more than five dimensions");
    quant->block_rank = (uint8_t)rank;
    return DECANT_OK;
}

/* Burn opens blocks with extents of 0, and fails when it uses them. */
decant_status dcn_bpk_read_block_size(dcn_bpk_header *h, void *into)
{
    static const dcn_bpk_field fields[] = {DCN_BPK_FIELD("storage", read_storage, true),
                                           DCN_BPK_FIELD("len", read_block_rank, true)};
    const decant_quant *quant = &((dcn_bpk_scheme *)into)->quant;
    decant_status rc = dcn_bpk_read_fields(h, fields, sizeof fields / sizeof *fields, into, NULL);

    for (size_t i = 0; !rc && i < quant->block_rank; i++)
        if (quant->block[i] == 0)
            rc = dcn_bpk_malformed(h, "an extent of a block is 0");
    return rc;
}

static decant_status read_block(dcn_bpk_header *h, void *into)
{
    static const dcn_bpk_field fields[] = {DCN_BPK_FIELD("size", dcn_bpk_read_block_size, true),
                                           DCN_BPK_FIELD("dtype", read_block_scale, true)};

    ((dcn_bpk_scheme *)into)->today = true;
    return dcn_cbor_null(&h->cbor) ? DECANT_OK
                                   : dcn_bpk_read_fields(h, fields, sizeof fields / sizeof *fields, into, NULL);
}

decant_status dcn_bpk_read_scheme(dcn_bpk_header *h, decant_quant *out, bool *old)
{
    static const dcn_bpk_field fields[] = {
        DCN_BPK_FIELD("value", read_value, true),         DCN_BPK_FIELD("store", read_store, true),
        DCN_BPK_FIELD("mode", read_mode, true),           DCN_BPK_FIELD("tensor", read_tensor_scale, false),
        DCN_BPK_FIELD("block", read_block, false),        DCN_BPK_FIELD("param", dcn_bpk_old_param, false),
        DCN_BPK_FIELD("level", dcn_bpk_old_level, false),
    };
    dcn_bpk_scheme s = {.quant = {.size = sizeof s.quant}};
    decant_status rc = dcn_bpk_read_fields(h, fields, sizeof fields / sizeof *fields, &s, NULL);

    *old = dcn_bpk_is_old_scheme(&s);
    if (!rc && *old)
        rc = dcn_bpk_old_scheme(h, &s);
    *out = s.quant;
    return rc;
}

decant_status dcn_bpk_hold_scheme(dcn_bpk_header *h, const decant_quant *quant, bool then, dcn_extra **out)
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
