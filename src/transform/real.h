/* Real numbers from one layout to another: bits are moved, no floating point unit is asked, so every machine says the same. */
#ifndef DCN_REAL_H
#define DCN_REAL_H

#include <decant/model.h>

#include <stdbool.h>

/* What was finite and became infinite. */
typedef struct dcn_overflow {
    uint64_t count;
    uint64_t first;     /* index of the first of them */
    double first_value; /* what it was */
    double most;        /* the largest magnitude of all */
} dcn_overflow;

/* Whether dcn_real_cast() reads `from`: F64, F32, F16, BF16, F8_E4M3 and F8_E5M2. */
bool dcn_real_from(decant_dtype from);

/* Whether it writes `to`: F64, F32, F16 and BF16. */
bool dcn_real_to(decant_dtype to);

/* The largest finite number of a layout that is written. */
double dcn_real_most(decant_dtype to);

/*
 * Casts `count` numbers, little-endian both. Rounds once, to the nearest, ties to even. Signs are kept, of zeros and NaNs too.
 * A NaN becomes a quiet one with the leading bits of its payload; those of F8 have none.
 *
 * @param to     another than `from`
 * @param index  of the first number, for `over`
 * @param over   what overflows is added
 */
void dcn_real_cast(decant_dtype from, decant_dtype to, const void *src, void *dst, size_t count, uint64_t index,
                   dcn_overflow *over);

#endif
