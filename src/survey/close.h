/* Whether numbers are close, as numpy.isclose() has it with equal_nan=False: |a - b| <= atol + rtol * |b|. */
#ifndef DCN_CLOSE_H
#define DCN_CLOSE_H

#include <decant/model.h>

#include <stdbool.h>

typedef struct dcn_tolerance {
    double rtol, atol;
} dcn_tolerance;

/* Whether elements of the dtype are whole bytes and numbers with a fraction, so that being close means something. */
bool dcn_close_takes(decant_dtype dtype);

/*
 * Of `count` elements how many are not close. Infinities are close to themselves, what is no number to nothing. Computed in
 * double precision; of complex numbers the distance counts.
 *
 * @param first  index of the first that is not; untouched where there is none
 */
size_t dcn_close_count(const dcn_tolerance *t, decant_dtype dtype, const uint8_t *a, const uint8_t *b, size_t count,
                       size_t *first);

#endif
