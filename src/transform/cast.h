/* Bytes cast from one dtype to another, as they are asked for. */
#ifndef DCN_CAST_H
#define DCN_CAST_H

#include "bytes/bytes.h"
#include "transform/real.h"

/*
 * Describes a cast. Reads nothing.
 *
 * @param input          a reference on its backing is taken; its length is a multiple of a number's
 * @param allow_overflow finite numbers beyond the range of `to` become infinite; default: DECANT_LOSS when they are met
 * @param out            [owned] one reference
 * @return DECANT_BAD_CALL where several providers share the input, or casts and ropes nest too deep; DECANT_NOMEM
 */
decant_status dcn_cast(const dcn_span *input, decant_dtype from, decant_dtype to, bool allow_overflow,
                       decant_bytes **out, decant_error *err);

/*
 * Looks at what became infinite since a cast was last read from its beginning.
 *
 * @param to  its dtype
 * @return false if `b` is no cast
 */
bool dcn_cast_overflow(dcn_backing *b, dcn_overflow *out, decant_dtype *to);

#endif
