/* What one element, or one value, looks like to people. */
#ifndef DCN_ELEMENT_H
#define DCN_ELEMENT_H

#include <decant/model.h>

enum { DCN_ELEMENT_TEXT = 128 }; /* bytes of each text below */

/* How many bytes make an element; 0 where elements are no whole bytes, or their number is not what the shape says. */
size_t dcn_whole_bytes(const decant_tensor *tensor);

/* The element at `at`, of a dtype whose elements are whole bytes: "0.0123", "-7", "true", "0x3c" where there is no other way. */
void dcn_element_text(char out[DCN_ELEMENT_TEXT], decant_dtype dtype, const void *at);

/* The bits of `len` bytes at `at`, at most 8: "0x7fc00001", the highest digit first. */
void dcn_element_bits(char out[DCN_ELEMENT_TEXT], const void *at, size_t len);

/* A dtype with all that makes it one: "F32", "QFloat(Q8S, U32, F32, block [32])". */
void dcn_dtype_text(char out[DCN_ELEMENT_TEXT], const decant_tensor *tensor);

/* Metadata or a scalar, cut where it is too long. */
void dcn_value_text(char out[DCN_ELEMENT_TEXT], const decant_value *value);

#endif
