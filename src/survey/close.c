#include "survey/close.h"

#include <float.h>
#include <string.h>

#include "base/ckd.h"
#include "base/dtype.h"
#include "base/endian.h"
#include "transform/real.h"

/* --- numbers --------------------------------------------------------------------------------------------------------- */

static double double_of(uint64_t bits)
{
    double value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

#define NOT_A_NUMBER double_of(UINT64_C(0x7FF8) << 48)

/* 2 to the power of `exponent`, which is one of a normal number. */
static double power_of_two(int exponent)
{
    return double_of((uint64_t)(exponent + 1023) << 52);
}

/* The layouts without infinities and a negative zero, whose bits are the one NaN: ONNX and MLIR call them FNUZ. */
static double fnuz(uint8_t bits, unsigned fraction, int bias)
{
    int exponent = (bits & 0x7F) >> fraction, step = bits & ((1 << fraction) - 1);
    double value = exponent ? (double)(step | 1 << fraction) * power_of_two(exponent - bias - (int)fraction)
                            : (double)step * power_of_two(1 - bias - (int)fraction);

    return bits == 0x80 ? NOT_A_NUMBER : bits & 0x80 ? -value : value;
}

static double byte_of(decant_dtype dtype, uint8_t bits)
{
    if (dtype == DECANT_F8_E8M0) /* OCP Microscaling Formats 1.0, 5.4.1: an exponent, biased by 127 */
        return bits == 0xFF ? NOT_A_NUMBER : power_of_two(bits - 127);
    return dtype == DECANT_F8_E4M3FNUZ ? fnuz(bits, 3, 8) : fnuz(bits, 2, 16);
}

/* The layout whose numbers make up an element: F32 of a complex one. */
static decant_dtype part_of(decant_dtype dtype)
{
    return dtype == DECANT_FLEX32 || dtype == DECANT_C64 ? DECANT_F32 : dtype;
}

static void load(decant_dtype part, const uint8_t *from, double *to, size_t count)
{
    dcn_overflow none = {0};

    if (part == DECANT_F64)
        for (size_t i = 0; i < count; i++)
            to[i] = double_of(dcn_le64(from + 8 * i));
    else if (dcn_real_from(part))
        dcn_real_cast(part, DECANT_F64, from, to, count, 0, &none);
    else
        for (size_t i = 0; i < count; i++)
            to[i] = byte_of(part, from[i]);
}

bool dcn_close_takes(decant_dtype dtype)
{
    return dtype == DECANT_FLEX32 || dtype == DECANT_C64 || dtype == DECANT_F8_E4M3FNUZ ||
           dtype == DECANT_F8_E5M2FNUZ || dtype == DECANT_F8_E8M0 || dcn_real_from(dtype);
}

/* --- distances ------------------------------------------------------------------------------------------------------- */

static bool is_finite(double x)
{
    return x >= -DBL_MAX && x <= DBL_MAX;
}

static double magnitude_of(double x)
{
    return x < 0 ? -x : x;
}

static bool is_close(const dcn_tolerance *t, double a, double b)
{
    return a == b || (is_finite(b) && magnitude_of(a - b) <= t->atol + t->rtol * magnitude_of(b));
}

/*
 * With |a - b| and |b| as roots of D and B: sqrt(D) <= atol + rtol * sqrt(B), squared twice, so that no root is taken. Numbers
 * of 32 bits leave room for that.
 */
static bool is_close_complex(const dcn_tolerance *t, const double *a, const double *b)
{
    double re = a[0] - b[0], im = a[1] - b[1], distance = re * re + im * im, size = b[0] * b[0] + b[1] * b[1];
    double rest = distance - t->atol * t->atol - t->rtol * t->rtol * size;

    if (a[0] == b[0] && a[1] == b[1])
        return true;
    if (!is_finite(b[0]) || !is_finite(b[1]) || !(distance <= DBL_MAX))
        return false;
    return rest <= 0 || rest * rest <= 4 * t->atol * t->atol * t->rtol * t->rtol * size;
}

size_t dcn_close_count(const dcn_tolerance *t, decant_dtype dtype, const uint8_t *a, const uint8_t *b, size_t count,
                       size_t *first)
{
    enum { BLOCK = 256 };
    decant_dtype part = part_of(dtype);
    size_t parts = dcn_dtype(dtype)->bits / dcn_dtype(part)->bits, width = dcn_dtype(dtype)->bits / 8, far = 0;
    double x[BLOCK] = {0}, y[BLOCK] = {0};

    for (size_t at = 0; at < count;) {
        size_t n = (size_t)dcn_min(count - at, BLOCK / parts);

        load(part, a + at * width, x, n * parts);
        load(part, b + at * width, y, n * parts);
        for (size_t i = 0; i < n; i++)
            if (!(parts == 1 ? is_close(t, x[i], y[i]) : is_close_complex(t, x + 2 * i, y + 2 * i)) && far++ == 0)
                *first = at + i;
        at += n;
    }
    return far;
}
