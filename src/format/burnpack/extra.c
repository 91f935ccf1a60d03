#include "format/burnpack/extra.h"

#include <string.h>

#include "base/alloc.h"
#include "format/burnpack/quant.h"

typedef struct bpk_extra {
    dcn_extra extra;
    decant_quant quant; /* canonical; of `scheme_ops` only */
    bool then;
    uint64_t key_count;
    size_t len; /* of pairs */
    uint8_t pairs[];
} bpk_extra;

static void close_extra(dcn_extra *extra)
{
    dcn_free(&extra);
}

static uint64_t count_keys(const dcn_extra *extra)
{
    return ((const bpk_extra *)extra)->key_count;
}

static const dcn_extra_ops scheme_ops = {
    .format = "burnpack",
    .what = "quantization scheme",
    .close = close_extra,
};
static const dcn_extra_ops keys_ops = {
    .format = "burnpack",
    .what = "unknown key",
    .count = count_keys,
    .close = close_extra,
};
static const dcn_extra_ops top_ops = {
    .format = "burnpack",
    .what = "unknown top-level key",
    .count = count_keys,
    .close = close_extra,
};

static decant_status create(const dcn_extra_ops *ops, dcn_bpk_keys keys, bpk_extra **out, decant_error *err)
{
    bpk_extra *made = dcn_alloc(1, sizeof *made + keys.pairs.len); /* keys have been in memory: no overflow */

    if (!made)
        return dcn_error_nomem(err);
    made->extra.ops = ops;
    atomic_init(&made->extra.refs, 1);
    made->key_count = keys.count;
    made->len = keys.pairs.len;
    if (made->len)
        memcpy(made->pairs, keys.pairs.data, made->len);
    *out = made;
    return DECANT_OK;
}

/* Leading 1s of a block are dropped. */
static void set_scheme(bpk_extra *extra, const decant_quant *quant)
{
    size_t ones = 0;

    while (ones < quant->block_rank && quant->block[ones] == 1)
        ones++;
    extra->quant = *quant;
    extra->quant.size = sizeof *quant;
    extra->quant.block_rank = (uint8_t)(quant->block_rank - ones);
    memset(extra->quant.block, 0, sizeof extra->quant.block);
    memcpy(extra->quant.block, quant->block + ones, extra->quant.block_rank);
    if (quant->store == DECANT_STORE_NATIVE)
        extra->quant.packed_dim = 0;
}

decant_status dcn_bpk_extra(const decant_quant *quant, bool then, dcn_bpk_keys keys, dcn_extra **out, decant_error *err)
{
    bpk_extra *made = NULL;
    decant_status rc = create(quant ? &scheme_ops : &keys_ops, keys, &made, err);

    if (rc)
        return rc;
    if (quant)
        set_scheme(made, quant);
    made->then = then;
    *out = &made->extra;
    return DECANT_OK;
}

decant_status dcn_bpk_model_extra(dcn_bpk_keys keys, dcn_extra **out, decant_error *err)
{
    bpk_extra *made = NULL;
    decant_status rc = create(&top_ops, keys, &made, err);

    if (rc == DECANT_OK)
        *out = &made->extra;
    return rc;
}

decant_status dcn_quant_extra(const decant_quant *quant, dcn_extra **out, decant_error *err)
{
    if (!quant || !dcn_quant_is_valid(quant))
        return decant_error_set(err, DECANT_BAD_CALL, "a quantization scheme that is none");
    return dcn_bpk_extra(quant, false, (dcn_bpk_keys){0}, out, err);
}

const decant_quant *dcn_quant_of(const dcn_extra *extra)
{
    return extra && extra->ops == &scheme_ops ? &((const bpk_extra *)extra)->quant : NULL;
}

dcn_bpk_keys dcn_bpk_keys_of(const dcn_extra *extra)
{
    const bpk_extra *e = (const bpk_extra *)extra;

    if (!extra || (extra->ops != &scheme_ops && extra->ops != &keys_ops && extra->ops != &top_ops))
        return (dcn_bpk_keys){0};
    return (dcn_bpk_keys){e->key_count, {e->pairs, e->len}};
}

bool dcn_bpk_is_then(const dcn_extra *extra)
{
    return dcn_quant_of(extra) && ((const bpk_extra *)extra)->then;
}
