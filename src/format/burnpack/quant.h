/*
 * Burn's quantization schemes: the parameters of a QFLOAT entry, which travel as its extra, and the bytes that they call for.
 * (What everybody may know of them is in format.h.)
 * (burn-std 0.23.0-pre.1, src/tensor/quantization.rs; cubecl-common 0.12.0-pre.1, src/quant/scheme.rs.)
 */
#ifndef DCN_BURNPACK_QUANT_H
#define DCN_BURNPACK_QUANT_H

#include "format/format.h"

/* Dimensions of a block (cubecl-common 0.12.0-pre.1, MAX_DIMS). */
enum { DCN_QUANT_DIMS = 5 };

/* Whether two schemes, both canonical, are the same. */
bool dcn_quant_equal(const decant_quant *a, const decant_quant *b);

/* Bytes of a tensor. False where there is no length: it overflows, or the scheme does not fit the shape. */
bool dcn_quant_len(const decant_quant *quant, const uint64_t *shape, size_t rank, uint64_t *len);

#endif
