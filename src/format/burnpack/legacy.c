/* Forms that Burn 0.19, 0.20 and 0.21 wrote under today's magic and version. */
#include "format/burnpack/index.h"

#include <inttypes.h>
#include <string.h>

#include "base/ckd.h"
#include "format/burnpack/layout.h"
#include "format/burnpack/quant.h"

/* --- schemes ------------------------------------------------------------------------------------------------------ */

bool dcn_bpk_old_store(const dcn_bpk_variant *v, dcn_bpk_scheme *s)
{
    if (v->has_value || !dcn_chunk_is(v->name, DCN_BPK_OLD_U32))
        return false;
    s->u32 = true;
    s->quant.store = DECANT_STORE_PACKED_U32;
    return true;
}

decant_status dcn_bpk_old_param(dcn_bpk_header *h, void *into)
{
    dcn_bpk_scheme *s = into;

    s->has_param = true;
    return dcn_bpk_read_scale(h, &s->param);
}

static decant_status read_global(dcn_bpk_header *h, void *into)
{
    return dcn_bpk_read_scale(h, &((dcn_bpk_scheme *)into)->quant.tensor_scale);
}

/* What has scales of its own: the tensor, blocks, or blocks under one more scale of the tensor (0.22.0-pre.2 alone). */
decant_status dcn_bpk_old_level(dcn_bpk_header *h, void *into)
{
    static const char *const names[] = {"Tensor", "Block", "BlockTensor"};
    static const dcn_bpk_field two[] = {DCN_BPK_FIELD("block", dcn_bpk_read_block_size, true),
                                        DCN_BPK_FIELD("global", read_global, true)};
    enum { TENSOR, BLOCK, BLOCK_TENSOR, LEVELS };
    dcn_bpk_scheme *s = into;
    dcn_bpk_variant v;
    size_t level;
    decant_status rc;

    s->has_level = true;
    if ((rc = dcn_bpk_begin_variant(h, &v)))
        return rc;
    level = dcn_bpk_find(v.name, names, LEVELS);
    if (level == LEVELS || v.has_value != (level != TENSOR))
        return dcn_bpk_unknown(h, "level of a quantization scheme", v.name);
    if (level == TENSOR)
        return DECANT_OK;
    s->quant.block_scale = DECANT_SCALE_F32; /* until `param` is known */
    rc =
        level == BLOCK ? dcn_bpk_read_block_size(h, s) : dcn_bpk_read_fields(h, two, sizeof two / sizeof *two, s, NULL);
    return rc ? rc : dcn_bpk_end_variant(h, &v);
}

bool dcn_bpk_is_old_scheme(const dcn_bpk_scheme *s)
{
    return s->u32 || s->has_level || s->has_param;
}

decant_status dcn_bpk_old_scheme(dcn_bpk_header *h, dcn_bpk_scheme *s)
{
    if (s->today)
        return dcn_bpk_malformed(h, "keys of today's schemes beside those of Burn 0.21");
    if (!s->has_level || !s->has_param)
        return dcn_bpk_malformed(h, s->has_level ? "a scheme of Burn 0.19 to 0.21 without 'param'"
                                                 : "a scheme of Burn 0.19 to 0.21 without 'level'");
    if (s->quant.block_scale)
        s->quant.block_scale = s->param;
    else
        s->quant.tensor_scale = s->param;
    h->old.schemes++;
    return DECANT_OK;
}

/* --- how quantized values lie ------------------------------------------------------------------------------------- */

bool dcn_bpk_old_len(const decant_quant *quant, const dcn_draft *draft, uint64_t found)
{
    dcn_quant_old old;

    return dcn_quant_old_of(quant, draft->shape, draft->rank, &old) && old.len == found;
}

bool dcn_bpk_old_has_order(const decant_quant *quant)
{
    return quant->store == DECANT_STORE_NATIVE || quant->packed_dim == 0;
}

decant_status dcn_bpk_old_orderless(dcn_bpk_header *h)
{
    decant_error_set(h->err, DECANT_UNSUPPORTED,
                     "values packed along another dimension than the last by Burn 0.20 or 0.21, in an unknown order");
    dcn_error_hint(h->err,
                   "have the Burn that wrote it save it dequantized, or open it leniently (--lenient) to take its "
                   "bytes as they are");
    return DECANT_UNSUPPORTED;
}

decant_status dcn_bpk_old_relay(dcn_bpk_header *h)
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

/* --- where data lies ---------------------------------------------------------------------------------------------- */

/* Whether any byte is set where today's layout has zeros, in front of its data. */
static decant_status look_at_padding(dcn_bpk_header *h, bool *data, decant_error *err)
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
static decant_status is_of_0_19(dcn_bpk_header *h, uint64_t end, bool *is)
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

decant_status dcn_bpk_old_layout(dcn_bpk_header *h, uint64_t end, bool *old)
{
    uint64_t shift = h->data - DCN_BPK_PREFIX - h->metadata;
    decant_status rc = is_of_0_19(h, end, old);

    if (rc || !*old)
        return rc;
    for (size_t i = 0; i < h->model->count; i++)
        h->model->entries[i].data.offset -= shift;
    h->data -= shift;
    h->old.layout = true;
    return DECANT_OK;
}

/* --- what is told ------------------------------------------------------------------------------------------------- */

decant_status dcn_bpk_old_notes(dcn_bpk_header *h)
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

const char *dcn_bpk_old_obstacle(const dcn_bpk_header *h)
{
    if (h->old.layout)
        return "not the layout of 0.19, which it calls truncated";
    if (h->old.bools)
        return "not Bool as 0.19 and 0.20 wrote it";
    return h->old.schemes ? "it misreads quantization schemes of 0.19 to 0.21" : NULL;
}
