/* Safetensors files made of a header's text. */
#ifndef TEST_SAFETENSORS_H
#define TEST_SAFETENSORS_H

#include "support/models.h"

/* A file with this header, as it is, and `data` bytes of the stream behind it. Freed by the caller. */
uint8_t *st_file(const char *header, size_t data, size_t *len);

/* Opens a file with this header, with no leniency or with all of it. */
decant_status st_open(const char *header, size_t data, bool lenient, decant_model **out, decant_error *err);

#endif
