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

/* Whether all parameters are in their ranges. */
bool dcn_quant_is_valid(const decant_quant *quant);

/* Whether two schemes, both canonical, are the same. */
bool dcn_quant_equal(const decant_quant *a, const decant_quant *b);

/* Bytes of a tensor. False where there is no length: it overflows, or the scheme does not fit the shape. */
bool dcn_quant_len(const decant_quant *quant, const uint64_t *shape, size_t rank, uint64_t *len);

/*
 * How Burn 0.20 and 0.21 laid out a quantized tensor, beside how it is laid out today: the values of all lines (of the
 * innermost dimension) end to end, zeros to a multiple of 4 bytes, scales. Today each line is padded, and nothing else.
 */
typedef struct dcn_quant_old {
    uint64_t len, len_now;   /* bytes in all */
    uint64_t scales;         /* where they began */
    uint64_t values_now;     /* bytes */
    uint64_t line, line_now; /* bits that a line took, bytes that it takes */
} dcn_quant_old;

/*
 * False where there is no such length, and where it does not say how the values lie: two levels of scales, values of less
 * than a byte that are not packed (of which those versions wrote none), values packed along another dimension than the last.
 */
bool dcn_quant_old_of(const decant_quant *quant, const uint64_t *shape, size_t rank, dcn_quant_old *out);

/* Whether the values lie as they do today, and only padding may stand behind them. */
bool dcn_quant_old_lines_stay(const dcn_quant_old *old);

/* Whether both layouts are the same to the byte. */
bool dcn_quant_old_is_new(const dcn_quant_old *old);

/* What was laid out so, as it is laid out today. Reading costs at most as many bytes. @param out [owned] */
decant_status dcn_quant_relay(const dcn_quant_old *old, const dcn_span *from, decant_bytes **out, decant_error *err);

#endif
