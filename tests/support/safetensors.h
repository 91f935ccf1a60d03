/* Safetensors files made of a header's text, and the way from memory to a model and back. */
#ifndef TEST_SAFETENSORS_H
#define TEST_SAFETENSORS_H

#include "format/format.h"
#include "support/test.h"

/* A file with this header, as it is, and `data` bytes of the stream behind it. Freed by the caller. */
uint8_t *st_file(const char *header, size_t data, size_t *len);

/*
 * Opens a copy of these bytes, which ends where its memory does. The model is closed by the caller.
 *
 * @param format  NULL: by content
 */
decant_status open_copy(const void *bytes, size_t len, const dcn_format *format, bool lenient, decant_model **out,
                        decant_error *err);

/* Opens a file with this header. */
decant_status st_open(const char *header, size_t data, bool lenient, decant_model **out, decant_error *err);

/* Plans a model as safetensors and renders the plan. `*bytes` is freed by the caller. */
decant_status st_save(const decant_model *model, const dcn_layout *how, uint8_t **bytes, size_t *len,
                      decant_error *err);

/* Adds a tensor to a model built by hand: `len` bytes of the stream of `seed`. */
void add_tensor(decant_model *model, const char *name, decant_dtype dtype, size_t rank, const uint64_t *shape,
                uint64_t seed);

void set_text(decant_model *model, const char *key, const char *text);

#endif
