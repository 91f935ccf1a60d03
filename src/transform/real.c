/*
 * Two ways to cast a number. Most numbers are zero or normal in both layouts: rounding and a shift of the exponent do for
 * those, without a branch, a block at a time, which compilers turn into vectors. The few others are done again, one by one,
 * by the way that knows everything.
 */
#include "transform/real.h"

#include <assert.h>
#include <string.h>

#include "base/compiler.h"
#include "base/endian.h"

/* How the bits of a number are used, from the lowest on: fraction, exponent, sign. */
typedef struct layout {
    unsigned bytes, fraction, exponent;
    bool finite; /* E4M3: the largest exponent is one like the others, and all ones are NaN */
} layout;

#define F64 ((layout){8, 52, 11, false})
#define F32 ((layout){4, 23, 8, false})
#define F16 ((layout){2, 10, 5, false})
#define BF16 ((layout){2, 7, 8, false})
#define E4M3 ((layout){1, 3, 4, true})
#define E5M2 ((layout){1, 2, 5, false})

static DCN_INLINE uint64_t top_of(layout l)
{
    return (UINT64_C(1) << l.exponent) - 1;
}

static DCN_INLINE int bias_of(layout l)
{
    return (int)(top_of(l) >> 1);
}

static DCN_INLINE uint64_t infinity_of(layout l)
{
    return top_of(l) << l.fraction;
}

static DCN_INLINE uint64_t magnitude_of(layout l)
{
    return UINT64_MAX >> (65 - 8 * l.bytes);
}

static DCN_INLINE uint64_t load(const uint8_t *at, unsigned bytes)
{
    return bytes == 8 ? dcn_le64(at) : bytes == 4 ? dcn_le32(at) : bytes == 2 ? dcn_le16(at) : *at;
}

/* Whole where the machine keeps numbers as files do: stores byte by byte would not become vectors. */
static DCN_INLINE void store(uint8_t *at, uint64_t value, unsigned bytes)
{
    uint32_t half = (uint32_t)value;
    uint16_t quarter = (uint16_t)value;

    if (!DCN_LITTLE_ENDIAN)
        dcn_put_le(at, value, bytes);
    else if (bytes == 8)
        memcpy(at, &value, 8);
    else if (bytes == 4)
        memcpy(at, &half, 4);
    else
        memcpy(at, &quarter, 2);
}

/* --- one number, whatever it is ---------------------------------------------------------------------------------- */

static bool is_nan(uint64_t magnitude, layout l)
{
    return l.finite ? magnitude == magnitude_of(l) : magnitude > infinity_of(l);
}

static uint64_t cast_nan(uint64_t magnitude, layout from, layout to)
{
    uint64_t payload = magnitude & ((UINT64_C(1) << from.fraction) - 1), quiet = UINT64_C(1) << (to.fraction - 1);

    if (from.bytes == 1)
        return infinity_of(to) | quiet;
    payload = from.fraction > to.fraction ? payload >> (from.fraction - to.fraction)
                                          : payload << (to.fraction - from.fraction);
    return infinity_of(to) | quiet | payload;
}

/* What is not zero, infinite or NaN. May give infinity. */
static uint64_t cast_finite(uint64_t magnitude, layout from, layout to)
{
    int exponent = (int)(magnitude >> from.fraction), drop = (int)from.fraction - (int)to.fraction;
    uint64_t number = magnitude & ((UINT64_C(1) << from.fraction) - 1), half;

    if (exponent)
        number |= UINT64_C(1) << from.fraction;
    for (exponent += !exponent; !(number >> from.fraction); exponent--)
        number <<= 1;
    exponent += bias_of(to) - bias_of(from); /* number × 2^(exponent - bias) is what it is, in the exponents of `to` */
    if (exponent < 1) {                      /* subnormal there: it loses the more bits, the smaller it is */
        drop += 1 - exponent;
        exponent = 1;
    }
    if (exponent >= (int)top_of(to))
        return infinity_of(to);
    if (drop > (int)from.fraction + 1)
        return 0;
    if (drop <= 0) {
        number <<= -drop;
    } else {
        half = UINT64_C(1) << (drop - 1);
        number = (number + half - 1 + (number >> drop & 1)) >> drop;
    }
    /* the bit above the fraction, if there is one, counts as one more of the exponent: also where rounding made it */
    return ((uint64_t)(exponent - 1) << to.fraction) + number;
}

static double value_of(uint64_t x, layout from)
{
    uint64_t sign, magnitude;
    double value;

    assert(from.bytes);
    magnitude = x & magnitude_of(from);
    sign = x >> (8 * from.bytes - 1) << 63;
    magnitude = sign | (from.bytes == 8 ? magnitude : cast_finite(magnitude, from, F64));
    memcpy(&value, &magnitude, sizeof value);
    return value;
}

static void note_overflow(uint64_t x, layout from, uint64_t index, dcn_overflow *over)
{
    double value = value_of(x, from), magnitude = value < 0 ? -value : value;

    assert(over); /* whoever passes none casts to a type that has room for all */
    if (over->count++ == 0) {
        over->first = index;
        over->first_value = value;
    }
    if (magnitude > over->most)
        over->most = magnitude;
}

static uint64_t cast_one(uint64_t x, layout from, layout to, uint64_t index, dcn_overflow *over)
{
    uint64_t sign = x >> (8 * from.bytes - 1) << (8 * to.bytes - 1), magnitude = x & magnitude_of(from), result;

    if (magnitude == 0)
        return sign;
    if (is_nan(magnitude, from))
        return sign | cast_nan(magnitude, from, to);
    if (!from.finite && magnitude == infinity_of(from))
        return sign | infinity_of(to);
    result = cast_finite(magnitude, from, to);
    if (result == infinity_of(to))
        note_overflow(x, from, index, over);
    return sign | result;
}

/* --- blocks of mostly usual ones --------------------------------------------------------------------------------- */

enum { BLOCK = 64 };

/* The least and the largest magnitude of `from` that is normal in it and becomes a normal number of `to`. */
static DCN_INLINE uint64_t least_usual(layout from, layout to)
{
    int exponent = bias_of(from) > bias_of(to) ? bias_of(from) - bias_of(to) + 1 : 1;

    return (uint64_t)exponent << from.fraction;
}

static DCN_INLINE uint64_t most_usual(layout from, layout to)
{
    int top = (int)top_of(to) + bias_of(from) - bias_of(to);
    uint64_t rounds_up = from.fraction > to.fraction ? UINT64_C(1) << (from.fraction - to.fraction - 1) : 0;

    return top > (int)top_of(from) ? infinity_of(from) - 1 : ((uint64_t)top << from.fraction) - rounds_up - 1;
}

/* NOLINTBEGIN(bugprone-macro-parentheses): the arguments are types and names. */

/* A block as if all were usual, in words as wide as the wider of the two. @return whether one is not */
#define DEFINE_BLOCK(word)                                                                                         \
    static DCN_INLINE bool word##_block(const word *in, word *out, layout from, layout to)                         \
    {                                                                                                              \
        const word least = (word)least_usual(from, to), most = (word)most_usual(from, to);                         \
        const word rebias = (word)(((word)bias_of(to) - (word)bias_of(from)) << to.fraction);                      \
        const unsigned drop = from.fraction > to.fraction ? from.fraction - to.fraction : 0;                       \
        const unsigned grow = to.fraction > from.fraction ? to.fraction - from.fraction : 0;                       \
        word unusual = 0;                                                                                          \
                                                                                                                   \
        for (size_t i = 0; i < BLOCK; i++) {                                                                       \
            word sign = in[i] >> (8 * from.bytes - 1) << (8 * to.bytes - 1), x = in[i] & (word)magnitude_of(from); \
            word rounded = drop ? (x + ((word)1 << (drop - 1) % 64) - 1 + (x >> drop & 1)) >> drop : x << grow;    \
                                                                                                                   \
            unusual |= (word)((x != 0) & ((x < least) | (x > most)));                                              \
            out[i] = sign | (x ? rounded + rebias : 0);                                                            \
        }                                                                                                          \
        return unusual != 0;                                                                                       \
    }

DEFINE_BLOCK(uint32_t)
DEFINE_BLOCK(uint64_t)

/* A block from bytes to bytes. */
#define DEFINE_CAST(from, to, word)                               \
    static bool from##_to_##to(const uint8_t *src, uint8_t *dst)  \
    {                                                             \
        word in[BLOCK], out[BLOCK];                               \
        bool unusual;                                             \
                                                                  \
        for (size_t i = 0; i < BLOCK; i++)                        \
            in[i] = (word)load(src + i * from.bytes, from.bytes); \
        unusual = word##_block(in, out, from, to);                \
        for (size_t i = 0; i < BLOCK; i++)                        \
            store(dst + i * to.bytes, out[i], to.bytes);          \
        return unusual;                                           \
    }

DEFINE_CAST(F64, F32, uint64_t)
DEFINE_CAST(F64, F16, uint64_t)
DEFINE_CAST(F64, BF16, uint64_t)
DEFINE_CAST(F32, F64, uint64_t)
DEFINE_CAST(F32, F16, uint32_t)
DEFINE_CAST(F32, BF16, uint32_t)
DEFINE_CAST(F16, F64, uint64_t)
DEFINE_CAST(F16, F32, uint32_t)
DEFINE_CAST(F16, BF16, uint32_t)
DEFINE_CAST(BF16, F64, uint64_t)
DEFINE_CAST(BF16, F32, uint32_t)
DEFINE_CAST(BF16, F16, uint32_t)

/* NOLINTEND(bugprone-macro-parentheses) */

/* --- all of them -------------------------------------------------------------------------------------------------- */

/* A pair of layouts, and its way for blocks of usual numbers; NULL: none. */
typedef struct pair {
    layout from, to;
    bool (*block)(const uint8_t *src, uint8_t *dst);
} pair;

static layout layout_of(decant_dtype dtype)
{
    switch (dtype) {
    case DECANT_F64:
        return F64;
    case DECANT_F32:
        return F32;
    case DECANT_F16:
        return F16;
    case DECANT_BF16:
        return BF16;
    case DECANT_F8_E4M3:
        return E4M3;
    case DECANT_F8_E5M2:
        return E5M2;
    default:
        return (layout){0};
    }
}

bool dcn_real_from(decant_dtype from)
{
    return layout_of(from).bytes > 0;
}

bool dcn_real_to(decant_dtype to)
{
    return layout_of(to).bytes > 1;
}

double dcn_real_most(decant_dtype to)
{
    return value_of(infinity_of(layout_of(to)) - 1, layout_of(to));
}

static pair pair_of(decant_dtype from, decant_dtype to)
{
    static bool (*const blocks[DECANT_BF16 + 1][DECANT_BF16 + 1])(const uint8_t *src, uint8_t *dst) = {
        [DECANT_F64] = {[DECANT_F32] = F64_to_F32, [DECANT_F16] = F64_to_F16, [DECANT_BF16] = F64_to_BF16},
        [DECANT_F32] = {[DECANT_F64] = F32_to_F64, [DECANT_F16] = F32_to_F16, [DECANT_BF16] = F32_to_BF16},
        [DECANT_F16] = {[DECANT_F64] = F16_to_F64, [DECANT_F32] = F16_to_F32, [DECANT_BF16] = F16_to_BF16},
        [DECANT_BF16] = {[DECANT_F64] = BF16_to_F64, [DECANT_F32] = BF16_to_F32, [DECANT_F16] = BF16_to_F16},
    };

    return (pair){layout_of(from), layout_of(to), from <= DECANT_BF16 ? blocks[from][to] : NULL};
}

static void cast_each(const pair *p, const uint8_t *src, uint8_t *dst, size_t count, uint64_t index, dcn_overflow *over)
{
    for (size_t i = 0; i < count; i++)
        store(dst + i * p->to.bytes,
              cast_one(load(src + i * p->from.bytes, p->from.bytes), p->from, p->to, index + i, over), p->to.bytes);
}

/* The unusual numbers of a block, once more. */
static void mend_block(const pair *p, const uint8_t *src, uint8_t *dst, uint64_t index, dcn_overflow *over)
{
    uint64_t least = least_usual(p->from, p->to), most = most_usual(p->from, p->to);

    for (size_t i = 0; i < BLOCK; i++) {
        uint64_t x = load(src + i * p->from.bytes, p->from.bytes) & magnitude_of(p->from);

        if (x && (x < least || x > most))
            cast_each(p, src + i * p->from.bytes, dst + i * p->to.bytes, 1, index + i, over);
    }
}

/* The numbers of one byte, which nearly all come again and again. None of them overflows. */
static void cast_bytes(const pair *p, const uint8_t *src, uint8_t *dst, size_t count)
{
    uint64_t all[UINT8_MAX + 1];

    for (unsigned x = 0; x <= UINT8_MAX; x++)
        all[x] = cast_one(x, p->from, p->to, 0, NULL);
    for (size_t i = 0; i < count; i++)
        store(dst + i * p->to.bytes, all[src[i]], p->to.bytes);
}

void dcn_real_cast(decant_dtype from, decant_dtype to, const void *src, void *dst, size_t count, uint64_t index,
                   dcn_overflow *over)
{
    const pair p = pair_of(from, to);
    const uint8_t *in = src;
    uint8_t *out = dst;
    size_t i = 0;

    assert(dcn_real_from(from) && dcn_real_to(to) && from != to);
    if (!p.block && count > UINT8_MAX) {
        cast_bytes(&p, in, out, count);
        return;
    }
    for (; p.block && count - i >= BLOCK; i += BLOCK)
        if (p.block(in + i * p.from.bytes, out + i * p.to.bytes))
            mend_block(&p, in + i * p.from.bytes, out + i * p.to.bytes, index + i, over);
    cast_each(&p, in + i * p.from.bytes, out + i * p.to.bytes, count - i, index + i, over);
}
