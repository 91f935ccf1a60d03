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

static const dcn_extra_ops then_ops = {.format = "burnpack", .close = close_extra};

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

static decant_status create(const dcn_extra_ops *ops, const decant_quant *quant, dcn_extra **out, decant_error *err)
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
    made->extra.ops = ops;
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

decant_status dcn_quant_extra(const decant_quant *quant, dcn_extra **out, decant_error *err)
{
    return create(&quant_ops, quant, out, err);
}

decant_status dcn_quant_extra_then(const decant_quant *quant, dcn_extra **out, decant_error *err)
{
    return create(&then_ops, quant, out, err);
}

const decant_quant *dcn_quant_of(const dcn_extra *extra)
{
    return extra && extra->ops == &quant_ops ? &((const quant_extra *)extra)->quant : NULL;
}

const decant_quant *dcn_quant_then(const dcn_extra *extra)
{
    return extra && extra->ops == &then_ops ? &((const quant_extra *)extra)->quant : NULL;
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

bool dcn_quant_old_is_new(const dcn_quant_old *old)
{
    bool no_gaps = old->line == old->line_now * 8 || old->values_now == old->line_now;

    return old->len == old->len_now && no_gaps;
}

/* What was laid out so, handed out as it is laid out today. */
typedef struct relaid {
    dcn_backing base;
    dcn_span from; /* held */
    dcn_quant_old old;
} relaid;

/* Where bit `at * 8` of the values, as they are laid out today, lay then; padding lies where the next line begins. */
static uint64_t old_bit(const dcn_quant_old *old, uint64_t at)
{
    return at / old->line_now * old->line + dcn_min(at % old->line_now * 8, old->line);
}

/* Bytes of values, from `at` on in today's layout. */
static decant_status relay_values(relaid *r, uint64_t at, uint8_t *dst, size_t len, decant_error *err)
{
    enum { MOST = 4096 };
    uint8_t bytes[MOST + 2] = {0};

    while (len) {
        size_t n = (size_t)dcn_min(len, MOST);
        uint64_t first = old_bit(&r->old, at) / 8, end = old_bit(&r->old, at + n) / 8 + 1;
        dcn_fetch fetch = {r->from.offset + first, bytes, (size_t)(dcn_min(end, r->old.scales) - first)};
        decant_status rc = dcn_backing_fetch(r->from.backing, &fetch, 1, err);

        if (rc)
            return rc;
        for (size_t i = 0; i < n; i++, at++) {
            uint64_t in_line = at % r->old.line_now * 8, bit = old_bit(&r->old, at) - first * 8;
            uint64_t left = r->old.line - dcn_min(in_line, r->old.line);
            unsigned pair = bytes[bit / 8] | (unsigned)bytes[bit / 8 + 1] << 8;

            dst[i] = (uint8_t)(pair >> bit % 8 & (left < 8 ? (1u << left) - 1 : 0xFF));
        }
        dst += n;
        len -= n;
    }
    return DECANT_OK;
}

static decant_status read_relaid(dcn_backing *b, dcn_fetch *f, size_t count, decant_error *err)
{
    relaid *r = (relaid *)b;

    for (size_t i = 0; i < count; i++) {
        size_t values = f[i].at < r->old.values_now ? (size_t)dcn_min(f[i].len, r->old.values_now - f[i].at) : 0;
        dcn_fetch scales = {r->from.offset + r->old.scales + (f[i].at + values - r->old.values_now),
                            (uint8_t *)f[i].dst + values, f[i].len - values};
        decant_status rc = relay_values(r, f[i].at, f[i].dst, values, err);

        if (rc || (scales.len && (rc = dcn_backing_fetch(r->from.backing, &scales, 1, err))))
            return rc;
    }
    return DECANT_OK;
}

static dcn_backing *close_relaid(dcn_backing *b)
{
    relaid *r = (relaid *)b;
    dcn_backing *from = r->from.backing;

    dcn_free(&r);
    return from;
}

static const dcn_backing_ops relaid_ops = {.kind = "relaid", .begin = read_relaid, .close = close_relaid};

decant_status dcn_quant_relay(const dcn_quant_old *old, const dcn_span *from, decant_bytes **out, decant_error *err)
{
    relaid *r = dcn_alloc(1, sizeof *r);

    if (!r)
        return dcn_error_nomem(err);
    dcn_backing_init(&r->base, &relaid_ops, old->len_now);
    r->base.depth = from->backing->depth;
    r->from = (dcn_span){decant_bytes_ref(from->backing), from->offset, from->len};
    r->old = *old;
    *out = &r->base;
    return DECANT_OK;
}
