#include "format/burnpack/quant.h"

#include <string.h>

#include "base/ckd.h"
#include "base/dtype.h"

bool dcn_quant_is_valid(const decant_quant *quant)
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

/* Bits of what is stored at a time: of one value, or of as many as are packed. */
static unsigned stored_bits(const decant_quant *quant)
{
    unsigned bits = value_bits(quant->value);

    if (quant->store == DECANT_STORE_PACKED_U32)
        return 32;
    return quant->store == DECANT_STORE_PACKED_NATIVE && quant->value == DECANT_E2M1 ? 2 * bits : bits;
}

/* Bytes of the scales of the blocks, or of the one of the tensor. True if there is no such number. */
static bool count_scales(uint64_t *len, const decant_quant *quant, const uint64_t *shape, size_t rank)
{
    decant_scale scale = quant->tensor_scale ? quant->tensor_scale : DECANT_SCALE_F32;

    *len = 1;
    if (quant->block_scale) {
        if (quant->block_rank > rank ||
            count_blocks(len, shape, rank, rank - quant->block_rank, quant->block, quant->block_rank))
            return true;
        scale = quant->block_scale;
    }
    return dcn_ckd_mul(len, *len, scale_len(scale));
}

bool dcn_quant_len(const decant_quant *quant, const uint64_t *shape, size_t rank, uint64_t *len)
{
    unsigned stored = stored_bits(quant);
    uint64_t values, scales, global = 0;

    if (quant->block_scale)
        global = scale_len(quant->tensor_scale); /* two levels: one more scale over all blocks */
    return !count_scales(&scales, quant, shape, rank) &&
           !count_values(&values, quant, stored / value_bits(quant->value), shape, rank) &&
           !dcn_ckd_mul(&values, values, (stored + 7) / 8) && !dcn_ckd_add(len, values, scales) &&
           !dcn_ckd_add(len, *len, global);
}

/* --- as Burn 0.20 and 0.21 laid them out -------------------------------------------------------------------------- */

/* The values of all lines in one row, then zeros to a multiple of 4, then the scales. */
bool dcn_quant_old_of(const decant_quant *quant, const uint64_t *shape, size_t rank, dcn_quant_old *out)
{
    unsigned bits = value_bits(quant->value), stored = stored_bits(quant), each = stored / bits;
    uint64_t count, width = rank ? shape[rank - 1] : 1, all, scales;

    if (stored % 8 || quant->packed_dim || (quant->block_scale && quant->tensor_scale) ||
        dcn_shape_count(&count, shape, rank) || dcn_ckd_mul(&all, count, bits) ||
        count_scales(&scales, quant, shape, rank) || !dcn_quant_len(quant, shape, rank, &out->len_now))
        return false;
    if (count == 0)
        width = 0;
    out->line = width * bits;
    out->line_now = ceil_div(width, each) * (stored / 8);
    out->values_now = count ? count / width * out->line_now : 0;
    return !dcn_ckd_align(&out->scales, ceil_div(count, each) * (stored / 8), 4) &&
           !dcn_ckd_add(&out->len, out->scales, scales);
}

bool dcn_quant_old_lines_stay(const dcn_quant_old *old)
{
    return old->line == old->line_now * 8 || old->values_now == old->line_now;
}

bool dcn_quant_old_is_new(const dcn_quant_old *old)
{
    return old->len == old->len_now && dcn_quant_old_lines_stay(old);
}
