/*
 * One array, as NumPy 2.2 writes it (numpy/lib/format.py):
 *
 *     "\x93NUMPY" | u8 1 | u8 0 | u16 length of the header, little-endian | header | data, row by row
 *
 * The header is a Python dict, padded with spaces and a newline to a multiple of 64: at first by as many spaces as the first
 * extent may still grow, to 21 digits; then, also where it fits, by at least one.
 */
#ifndef DCN_NUMPY_LAYOUT_H
#define DCN_NUMPY_LAYOUT_H

#include "format/format.h"

#define DCN_NPY_MAGIC "\x93NUMPY\x01" /* and a 0 */
enum { DCN_NPY_PREFIX = 10, DCN_NPY_ALIGN = 64, DCN_NPY_GROWTH = 21, DCN_NPY_RANK = 32 /* of NumPy 1; 64 since 2.0 */ };

#endif
