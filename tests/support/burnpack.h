/* Burnpack files written down byte for byte, in a notation short enough to read. */
#ifndef TEST_BURNPACK_H
#define TEST_BURNPACK_H

#include "support/models.h"

/*
 * A file: prefix, metadata, zeros to a multiple of 256, and `data` bytes of the stream. Freed by the caller.
 *
 * @param metadata  CBOR: 'text' is a definite text, anything else pairs of hexadecimal digits; spaces do not count
 */
uint8_t *bpk_file(const char *metadata, size_t data, size_t *len);

/* The same with metadata as bytes. */
uint8_t *bpk_file_of(const uint8_t *metadata, size_t metadata_len, size_t data, size_t *len);

/* Opens such a file, with no leniency or with all of it. */
decant_status bpk_open(const char *metadata, size_t data, bool lenient, decant_model **out, decant_error *err);

#endif
