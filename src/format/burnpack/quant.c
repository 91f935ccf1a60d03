#include "format/burnpack/quant.h"

#include <string.h>

#include "base/alloc.h"
#include "base/ckd.h"
#include "base/dtype.h"

typedef struct quant_extra {
    dcn_extra extra;
    decant_quant quant;
} quant_extra;

static void close_extra(dcn_extra *extra)
{
    dcn_free(&extra);
}

static const dcn_extra_ops quant_ops = {
    .format = "burnpack",
    .what = "quantization scheme",
    .close = close_extra,
};

static bool is_valid(const decant_quant *quant)
{
    if (quant->size < sizeof *quant || (unsigned)quant->value > DECANT_Q2S ||
        (unsigned)quant->store > DECANT_STORE_PACKED_U32 || (unsigned)quant->mode > DECANT_QUANT_LOOKUP ||
        (unsigned)quant->tensor_scale > DECANT_SCALE_UE4M3 || (unsigned)quant->block_scale > DECANT_SCALE_UE4M3 ||
        quant->block_rank > DCN_QUANT_DIMS || (quant->block_rank && quant->block_scale == DECANT_SCALE_NONE))
        return false;
    for (size_t i = 0; i < quant->block_rank; i++)
        if (quant->block[i] == 0)
            return false;
    return true;
}

decant_status dcn_quant_extra(const decant_quant *quant, dcn_extra **out, decant_error *err)
{
    quant_extra *made;
    size_t ones = 0;

    if (!quant || !is_valid(quant))
        return decant_error_set(err, DECANT_BAD_CALL, "a quantization scheme that is none");
    made = dcn_alloc(1, sizeof *made);
    if (!made)
        return dcn_error_nomem(err);

    while (ones < quant->block_rank && quant->block[ones] == 1)
        ones++;
    made->extra.ops = &quant_ops;
    atomic_init(&made->extra.refs, 1);
    made->quant = *quant;
    made->quant.size = sizeof *quant;
    made->quant.block_rank = (uint8_t)(quant->block_rank - ones);
    memset(made->quant.block, 0, sizeof made->quant.block);
    memcpy(made->quant.block, quant->block + ones, made->quant.block_rank);
    if (quant->store == DECANT_STORE_NATIVE)
        made->quant.packed_dim = 0;
    *out = &made->extra;
    return DECANT_OK;
}

const decant_quant *dcn_quant_of(const dcn_extra *extra)
{
    return extra && extra->ops == &quant_ops ? &((const quant_extra *)extra)->quant : NULL;
}

bool dcn_quant_equal(const decant_quant *a, const decant_quant *b)
{
    return a->value == b->value && a->store == b->store && a->packed_dim == b->packed_dim && a->mode == b->mode &&
           a->tensor_scale == b->tensor_scale && a->block_scale == b->block_scale && a->block_rank == b->block_rank &&
           memcmp(a->block, b->block, a->block_rank) == 0;
}

static uint64_t ceil_div(uint64_t value, uint64_t by)
{
    return value / by + (value % by != 0);
}

/*
 * The product of the extents, those from `first` on divided by as many parts of `block` and rounded up. As everywhere, an
 * extent of 0 makes it 0 whatever the others are. True if it does not fit.
 */
static bool count_blocks(uint64_t *count, const uint64_t *shape, size_t rank, size_t first, const uint8_t *block,
                         size_t block_rank)
{
    bool overflows = false;

    *count = 1;
    for (size_t i = 0; i < rank; i++) {
        bool divided = i >= first && i - first < block_rank;

        if (shape[i] == 0) {
            *count = 0;
            return false;
        }
        overflows |= dcn_ckd_mul(count, *count, divided ? ceil_div(shape[i], block[i - first]) : shape[i]);
    }
    return overflows;
}

/* Store elements: packed values fill whole ones along one dimension. */
static bool count_values(uint64_t *count, const decant_quant *quant, unsigned per_element, const uint64_t *shape,
                         size_t rank)
{
    static const uint64_t one = 1;
    const uint8_t block = (uint8_t)per_element;

    if (quant->store == DECANT_STORE_NATIVE)
        return dcn_shape_count(count, shape, rank);
    if (rank == 0) {
        shape = &one;
        rank = 1;
    }
    return quant->packed_dim >= rank ||
           count_blocks(count, shape, rank, rank - 1 - (size_t)quant->packed_dim, &block, 1);
}

static unsigned value_bits(decant_quant_value value)
{
    static const uint8_t bits[] = {
        [DECANT_Q8F] = 8, [DECANT_E5M2] = 8, [DECANT_E4M3] = 8, [DECANT_Q4F] = 4, [DECANT_E2M1] = 4,
        [DECANT_Q2F] = 2, [DECANT_Q8S] = 8,  [DECANT_Q4S] = 4,  [DECANT_Q2S] = 2,
    };

    return bits[value];
}

static uint64_t scale_len(decant_scale scale)
{
    static const uint8_t lens[] = {
        [DECANT_SCALE_NONE] = 0, [DECANT_SCALE_F32] = 4,   [DECANT_SCALE_F16] = 2,
        [DECANT_SCALE_BF16] = 2, [DECANT_SCALE_UE8M0] = 1, [DECANT_SCALE_UE4M3] = 1,
    };

    return lens[scale];
}

bool dcn_quant_len(const decant_quant *quant, const uint64_t *shape, size_t rank, uint64_t *len)
{
    unsigned bits = value_bits(quant->value), stored = bits;
    decant_scale scale = quant->tensor_scale ? quant->tensor_scale : DECANT_SCALE_F32;
    uint64_t values, scales = 1, global = 0;

    if (quant->store == DECANT_STORE_PACKED_NATIVE && quant->value == DECANT_E2M1)
        stored = 2 * bits;
    else if (quant->store == DECANT_STORE_PACKED_U32)
        stored = 32;

    if (quant->block_scale) {
        if (quant->block_rank > rank ||
            count_blocks(&scales, shape, rank, rank - quant->block_rank, quant->block, quant->block_rank))
            return false;
        scale = quant->block_scale;
        global = scale_len(quant->tensor_scale); /* two levels: one more scale over all blocks */
    }
    return !count_values(&values, quant, stored / bits, shape, rank) &&
           !dcn_ckd_mul(&values, values, (stored + 7) / 8) && !dcn_ckd_mul(&scales, scales, scale_len(scale)) &&
           !dcn_ckd_add(len, values, scales) && !dcn_ckd_add(len, *len, global);
}
