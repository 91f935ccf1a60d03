/* Checked arithmetic on what files claim, named and shaped like C23's: true means that the result does not fit. */
#ifndef DCN_BASE_CKD_H
#define DCN_BASE_CKD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool dcn_ckd_add(uint64_t *sum, uint64_t a, uint64_t b)
{
    *sum = a + b;
    return *sum < a;
}

static inline bool dcn_ckd_mul(uint64_t *product, uint64_t a, uint64_t b)
{
    *product = a * b;
    return (a | b) >> 32 && a != 0 && *product / a != b; /* most are small: a division takes long */
}

/* `value` rounded up to a multiple of `align`, which is not 0. */
static inline bool dcn_ckd_align(uint64_t *aligned, uint64_t value, uint64_t align)
{
    uint64_t rest = value % align;

    return dcn_ckd_add(aligned, value, rest ? align - rest : 0);
}

/* Whether [offset, offset + len) leaves [0, size). */
static inline bool dcn_outside(uint64_t offset, uint64_t len, uint64_t size)
{
    return offset > size || len > size - offset;
}

static inline uint64_t dcn_min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

#endif
