/* Casts beside a second way to do them: exact scaling by powers of two, and nearbyint(). NumPy is asked by tests/oracle. */
#include "support/test.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/dtype.h"
#include "base/endian.h"
#include "transform/real.h"

typedef struct kind {
    decant_dtype dtype;
    int fraction, exponent; /* bits */
} kind;

static const kind kinds[] = {
    {DECANT_F64, 52, 11}, {DECANT_F32, 23, 8},    {DECANT_F16, 10, 5},
    {DECANT_BF16, 7, 8},  {DECANT_F8_E4M3, 3, 4}, {DECANT_F8_E5M2, 2, 5},
};

enum { KINDS = sizeof kinds / sizeof *kinds, TARGETS = 4 };

static unsigned bytes_of(const kind *k)
{
    return dcn_dtype(k->dtype)->bits / 8;
}

static int bias_of(const kind *k)
{
    return (1 << (k->exponent - 1)) - 1;
}

static uint64_t infinity_of(const kind *k)
{
    return ((UINT64_C(1) << k->exponent) - 1) << k->fraction;
}

static bool is_nan(const kind *k, uint64_t bits)
{
    uint64_t magnitude = bits & ((UINT64_C(1) << (8 * bytes_of(k) - 1)) - 1);

    return k->dtype == DECANT_F8_E4M3 ? magnitude == 0x7F : magnitude > infinity_of(k);
}

static double value_of(const kind *k, uint64_t bits)
{
    uint64_t magnitude = bits & ((UINT64_C(1) << (8 * bytes_of(k) - 1)) - 1);
    int exponent = (int)(magnitude >> k->fraction);
    double number = (double)(magnitude & ((UINT64_C(1) << k->fraction) - 1)), value;

    if (k->dtype != DECANT_F8_E4M3 && magnitude == infinity_of(k))
        value = INFINITY;
    else if (exponent == 0)
        value = ldexp(number, 1 - bias_of(k) - k->fraction);
    else
        value = ldexp(number + ldexp(1, k->fraction), exponent - bias_of(k) - k->fraction);
    return magnitude == bits ? value : -value;
}

/* The bits of the number of `k` that is nearest to `value`. */
static uint64_t nearest(const kind *k, double value)
{
    uint64_t sign = (uint64_t)(signbit(value) != 0) << (8 * bytes_of(k) - 1);
    int exponent, least = 1 - bias_of(k);
    double number;

    value = fabs(value);
    if (value == 0)
        return sign;
    if (isinf(value))
        return sign | infinity_of(k);
    exponent = ilogb(value) < least ? least : ilogb(value);
    number = nearbyint(ldexp(value, k->fraction - exponent)); /* of the last place */
    if (number >= ldexp(1, k->fraction + 1)) {
        number /= 2;
        exponent++;
    }
    if (exponent > bias_of(k))
        return sign | infinity_of(k);
    if (number < ldexp(1, k->fraction))
        return sign | (uint64_t)number;
    return sign | (((uint64_t)(exponent + bias_of(k) - 1) << k->fraction) + (uint64_t)number);
}

static uint64_t wanted(const kind *from, const kind *to, uint64_t bits)
{
    uint64_t sign = bits >> (8 * bytes_of(from) - 1) << (8 * bytes_of(to) - 1);
    uint64_t payload = bits & ((UINT64_C(1) << from->fraction) - 1);

    if (!is_nan(from, bits))
        return nearest(to, value_of(from, bits));
    if (bytes_of(from) == 1)
        payload = 0;
    payload = to->fraction > from->fraction ? payload << (to->fraction - from->fraction)
                                            : payload >> (from->fraction - to->fraction);
    return sign | infinity_of(to) | UINT64_C(1) << (to->fraction - 1) | payload;
}

/* Casts `count` numbers, in blocks and one by one, and compares. */
static void check(const kind *from, const kind *to, const uint64_t *bits, size_t count)
{
    unsigned in = bytes_of(from), out = bytes_of(to);
    uint8_t *src = malloc(count * in), *dst = malloc(count * out);
    dcn_overflow over = {0}, alone = {0};
    uint64_t infinite = 0;

    CHECK(src && dst);
    for (size_t i = 0; i < count; i++)
        dcn_put_le(src + i * in, bits[i], in);
    dcn_real_cast(from->dtype, to->dtype, src, dst, count, 7, &over);
    for (size_t i = 0; i < count; i++) {
        uint64_t got = 0, one = 0, want = wanted(from, to, bits[i]);
        uint8_t single[8];

        for (unsigned k = out; k-- > 0;)
            got = got << 8 | dst[i * out + k];
        if (got != want)
            test_fail(__FILE__, __LINE__, "%s to %s: 0x%" PRIx64 " became 0x%" PRIx64 ", wanted 0x%" PRIx64,
                      decant_dtype_name(from->dtype), decant_dtype_name(to->dtype), bits[i], got, want);
        dcn_real_cast(from->dtype, to->dtype, src + i * in, single, 1, 7 + i, &alone);
        for (unsigned k = out; k-- > 0;)
            one = one << 8 | single[k];
        CHECK_EQ(one, want);
        infinite += !is_nan(from, bits[i]) && isfinite(value_of(from, bits[i])) && isinf(value_of(to, want)) &&
                    !is_nan(to, want);
    }
    CHECK_EQ(over.count, infinite);
    CHECK_EQ(alone.count, infinite);
    CHECK_EQ(alone.first, over.first);
    CHECK(alone.most == over.most && alone.first_value == over.first_value);
    free(src);
    free(dst);
}

TEST(cast__takes_every_number_of_one_and_two_bytes_where_it_belongs)
{
    uint64_t *all = calloc(65536, sizeof *all);

    CHECK(all != NULL);
    for (size_t i = 0; i < 65536; i++)
        all[i] = i;
    for (size_t f = 2; f < KINDS; f++)
        for (size_t t = 0; t < TARGETS; t++)
            if (f != t)
                check(&kinds[f], &kinds[t], all, bytes_of(&kinds[f]) == 1 ? 256 : 65536);
    free(all);
}

/* Every number of the narrower, the halfway points between them, and what lies next to those. */
TEST(cast__rounds_to_the_nearest_and_ties_to_even)
{
    uint64_t *bits = calloc(65536, sizeof *bits);

    CHECK(bits != NULL);
    for (size_t f = 0; f < 2; f++)
        for (size_t t = 1; t < TARGETS; t++) {
            const kind *from = &kinds[f], *to = &kinds[t];
            uint64_t below = UINT64_C(1) << (from->fraction - to->fraction) >> 1;
            size_t count = 0;

            if (f == t)
                continue;
            for (uint64_t seed = 1, i = 0; i < 65536 / 6; i++) {
                uint64_t number = to->dtype == DECANT_F32 ? test_random(&seed) & 0xFFFFFFFF : i * 6;
                uint64_t exact = nearest(from, is_nan(to, number) ? 0 : value_of(to, number));

                bits[count++] = exact;
                bits[count++] = exact + below;
                bits[count++] = exact + below - 1;
                bits[count++] = exact + below + 1;
                bits[count++] = exact + 1;
                bits[count++] = test_random(&seed) >> (64 - 8 * bytes_of(from));
            }
            check(from, to, bits, count);
        }
    free(bits);
}

TEST(cast__widens_numbers_exactly)
{
    uint64_t bits[4096], seed = 5;

    for (size_t i = 0; i < 4096; i++)
        bits[i] = i < 2048 ? test_random(&seed) & 0xFFFFFFFF : test_random(&seed) & 0x807FFFFF; /* subnormal */
    check(&kinds[1], &kinds[0], bits, 4096);
}

/* What CV-02 has: 65504, 65519.99, 65520, -1e5, 1e-8 and NaN. */
TEST(cast__knows_what_overflowed_CV_02)
{
    const float numbers[] = {65504, 65519.99F, 65520, -1e5F, 1e-8F, NAN};
    const uint16_t become[] = {0x7BFF, 0x7BFF, 0x7C00, 0xFC00, 0, 0x7E00};
    uint8_t src[sizeof numbers], dst[12];
    dcn_overflow over = {0};
    uint32_t word;

    for (size_t i = 0; i < 6; i++) {
        memcpy(&word, &numbers[i], 4);
        dcn_put_le(src + 4 * i, word, 4);
    }
    dcn_real_cast(DECANT_F32, DECANT_F16, src, dst, 6, 100, &over);
    for (size_t i = 0; i < 6; i++)
        CHECK_EQ(dcn_le16(dst + 2 * i), become[i]);
    CHECK_EQ(over.count, 2);
    CHECK_EQ(over.first, 102);
    CHECK(over.first_value == 65520 && over.most == 1e5);
    CHECK(dcn_real_most(DECANT_F16) == 65504);
}

TEST(cast__knows_what_can_be_cast)
{
    CHECK(dcn_real_from(DECANT_F8_E5M2) && dcn_real_from(DECANT_F64) && !dcn_real_from(DECANT_I64));
    CHECK(!dcn_real_from(DECANT_F8_E4M3FNUZ) && !dcn_real_from(DECANT_FLEX32) && !dcn_real_from(DECANT_QFLOAT));
    CHECK(dcn_real_to(DECANT_BF16) && !dcn_real_to(DECANT_F8_E4M3) && !dcn_real_to(DECANT_I8));
}
