#include "survey/close.h"

#include <complex.h>
#include <math.h>

#include "support/test.h"

/* The definition, in the words of the machine. */
static bool wanted(const dcn_tolerance *t, double a, double b)
{
    return a == b || (isfinite(b) && fabs(a - b) <= t->atol + t->rtol * fabs(b));
}

static const dcn_tolerance tolerances[] = {{0, 0}, {1e-5, 1e-8}, {0.1, 0}, {0, 0.5}, {0.3, 2}, {10, 1e300}};

enum { TOLERANCES = sizeof tolerances / sizeof *tolerances };

TEST(close__is_what_the_definition_says_of_doubles_and_floats)
{
    uint64_t random = 3, close = 0, far = 0;

    for (unsigned i = 0; i < 200000; i++) {
        const dcn_tolerance *t = &tolerances[i % TOLERANCES];
        uint64_t bits[2] = {test_random(&random), test_random(&random)};
        double d[2];
        float f[2];
        size_t first = 7;

        if (i % 3) /* neighbours, of all sizes */
            bits[1] = bits[0] + (test_random(&random) >> test_random(&random) % 64);
        memcpy(d, bits, sizeof d);
        CHECK_EQ(dcn_close_count(t, DECANT_F64, (uint8_t *)&d[0], (uint8_t *)&d[1], 1, &first), !wanted(t, d[0], d[1]));
        memcpy(&f[0], &bits[0], 4);
        memcpy(&f[1], &bits[1], 4);
        far += dcn_close_count(t, DECANT_F32, (uint8_t *)&f[0], (uint8_t *)&f[1], 1, &first) == 1;
        CHECK_EQ(dcn_close_count(t, DECANT_FLEX32, (uint8_t *)&f[0], (uint8_t *)&f[1], 1, &first),
                 !wanted(t, f[0], f[1]));
        close += wanted(t, f[0], f[1]);
    }
    CHECK_EQ(close + far, 200000);
    CHECK(close > 20000 && far > 20000);
}

TEST(close__of_complex_numbers_is_about_their_distance)
{
    uint64_t random = 3, close = 0;

    for (unsigned i = 0; i < 100000; i++) {
        const dcn_tolerance *t = &tolerances[i % TOLERANCES];
        float a[2], b[2];
        double distance, allowed;
        size_t first;

        for (unsigned k = 0; k < 2; k++) {
            a[k] = (float)(int64_t)test_random(&random) / 9e18f;
            b[k] = a[k] * (1 + (float)(int64_t)test_random(&random) / 9e18f / (float)(1 << i % 20));
        }
        distance = cabs((double complex)(a[0] - (double)b[0]) + (double complex)(a[1] - (double)b[1]) * I);
        allowed = t->atol + t->rtol * cabs(b[0] + b[1] * (double complex)I);
        if (fabs(distance - allowed) <= 1e-12 * allowed) /* rounding decides */
            continue;
        CHECK_EQ(dcn_close_count(t, DECANT_C64, (uint8_t *)a, (uint8_t *)b, 1, &first), !(distance <= allowed));
        close += distance <= allowed;
    }
    CHECK(close > 10000 && close < 90000);
}

/* Every code of a byte against the numbers that its layout stands for: OCP 8-bit and Microscaling formats, ONNX's FNUZ. */
TEST(close__knows_every_layout_of_eight_bits)
{
    static const struct {
        decant_dtype dtype;
        int fraction, bias;
        bool fnuz;
    } layouts[] = {
        {DECANT_F8_E4M3, 3, 7, false},
        {DECANT_F8_E5M2, 2, 15, false},
        {DECANT_F8_E4M3FNUZ, 3, 8, true},
        {DECANT_F8_E5M2FNUZ, 2, 16, true},
    };
    const dcn_tolerance same = {0, 0};

    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        for (unsigned x = 0; x < 256; x++)
            for (unsigned y = 0; y < 256; y++) {
                const unsigned codes[] = {x, y};
                uint8_t a = (uint8_t)x, b = (uint8_t)y;
                double v[2];
                size_t first;

                for (int k = 0; k < 2; k++) {
                    int m = layouts[i].fraction, e = (int)(codes[k] & 0x7F) >> m, f = (int)codes[k] & ((1 << m) - 1);

                    v[k] = e ? ldexp(1 + ldexp(f, -m), e - layouts[i].bias) : ldexp(f, 1 - m - layouts[i].bias);
                    if (layouts[i].dtype == DECANT_F8_E4M3 && (codes[k] & 0x7F) == 0x7F)
                        v[k] = NAN;
                    if (layouts[i].dtype == DECANT_F8_E5M2 && e == 31)
                        v[k] = f ? NAN : INFINITY;
                    v[k] = codes[k] & 0x80 ? -v[k] : v[k];
                    if (layouts[i].fnuz && codes[k] == 0x80)
                        v[k] = NAN;
                }
                CHECK_EQ(dcn_close_count(&same, layouts[i].dtype, &a, &b, 1, &first), !(v[0] == v[1]));
                CHECK_EQ(dcn_close_count(&tolerances[2], layouts[i].dtype, &a, &b, 1, &first),
                         !wanted(&tolerances[2], v[0], v[1]));
            }
    for (unsigned x = 0; x < 256; x++) { /* powers of two: each is twice the one before */
        const dcn_tolerance twice = {1, 0};
        uint8_t a = (uint8_t)(x + 1), b = (uint8_t)x;
        size_t first;

        CHECK_EQ(dcn_close_count(&twice, DECANT_F8_E8M0, &a, &b, 1, &first), x >= 254);
        CHECK_EQ(dcn_close_count(&tolerances[2], DECANT_F8_E8M0, &a, &b, 1, &first), 1);
    }
}

TEST(close__counts_and_places_across_blocks)
{
    float a[1000] = {0}, b[1000] = {0};
    size_t first = 0;

    for (size_t i = 300; i < 1000; i += 100)
        b[i] = 1;
    CHECK_EQ(dcn_close_count(&tolerances[1], DECANT_F32, (uint8_t *)a, (uint8_t *)b, 1000, &first), 7);
    CHECK_EQ(first, 300);
    CHECK_EQ(dcn_close_count(&tolerances[1], DECANT_C64, (uint8_t *)a, (uint8_t *)b, 500, &first), 7);
    CHECK_EQ(first, 150);
}

TEST(close__takes_no_whole_numbers_and_nothing_packed)
{
    static const decant_dtype none[] = {DECANT_I8,      DECANT_U64,    DECANT_BOOL,      DECANT_F4,
                                        DECANT_F6_E2M3, DECANT_QFLOAT, DECANT_DTYPE_NONE};
    static const decant_dtype all[] = {DECANT_F64,     DECANT_F32,     DECANT_F16,         DECANT_BF16,
                                       DECANT_F8_E4M3, DECANT_F8_E5M2, DECANT_F8_E4M3FNUZ, DECANT_F8_E5M2FNUZ,
                                       DECANT_F8_E8M0, DECANT_FLEX32,  DECANT_C64};

    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        CHECK(!dcn_close_takes(none[i]));
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        CHECK(dcn_close_takes(all[i]));
}
