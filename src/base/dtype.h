/* The element types, a row each. */
#ifndef DCN_BASE_DTYPE_H
#define DCN_BASE_DTYPE_H

#include <decant/model.h>

#include <stdbool.h>

#include "base/ckd.h"

typedef struct dcn_dtype_row {
    const char *name; /* as printed; the safetensors spelling where that format has the type */
    unsigned bits;    /* per element; 0: the length comes from parameters (QFLOAT) or there are no elements (blobs) */
} dcn_dtype_row;

/* The row of a dtype; a row of bits 0 for a value that is none. */
const dcn_dtype_row *dcn_dtype(decant_dtype dtype);

/* How many dtypes there are; valid ones are below. */
size_t dcn_dtype_count(void);

/*
 * Elements of a shape: any zero extent makes it 0, whatever the others are. True if it does not fit 64 bits.
 */
static inline bool dcn_shape_count(uint64_t *count, const uint64_t *shape, size_t rank)
{
    bool overflows = false;

    *count = 1;
    for (size_t i = 0; i < rank; i++) {
        if (shape[i] == 0) {
            *count = 0;
            return false;
        }
        overflows |= dcn_ckd_mul(count, *count, shape[i]);
    }
    return overflows;
}

/*
 * Packed bytes of a tensor: product of the shape × bits / 8. Types without bits are the caller's matter.
 *
 * @return DECANT_OK; DECANT_MALFORMED if it overflows, or ends inside a byte
 */
decant_status dcn_dtype_len(decant_dtype dtype, const uint64_t *shape, size_t rank, uint64_t *len, decant_error *err);

/* "[2, 3]" into `out` of at least 8 bytes, cut with "...]" where it is too long. */
void dcn_shape_text(char *out, size_t size, const uint64_t *shape, size_t rank);

#endif
