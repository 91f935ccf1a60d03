/* Models in tests: read from memory, built from the specs of golden files, compared. */
#ifndef TEST_MODELS_H
#define TEST_MODELS_H

#include "format/format.h"
#include "support/test.h"

/*
 * Opens a copy of these bytes, in memory that ends where they do. The model is closed by the caller.
 *
 * @param format  NULL: by content
 * @param limits  NULL: the defaults
 */
decant_status model_open(const dcn_format *format, const void *bytes, size_t len, const dcn_limits *limits,
                         unsigned lenient, decant_model **out, decant_error *err);

/* Ends the test unless opening fails and leaves nothing, whichever allocation fails. The file itself is sound. */
void check_opens_or_leaves_nothing(const dcn_format *format, const void *bytes, size_t len, unsigned lenient);

/* Plans a model and renders it. `*bytes` is freed by the caller. */
decant_status model_render(const dcn_format *format, const decant_model *model, const dcn_layout *how, uint8_t **bytes,
                           size_t *len, decant_error *err);

/* The model from which golden file NAME was written: tests/data/NAME.spec.json. Closed by the caller. */
decant_model *model_of_spec(const char *name);

/* Ends the test unless the model holds what the reference found in golden file FILE: tests/data/read.jsonl. */
void check_read_as_reported(const decant_model *model, const char *file);

/* Adds a tensor with a copy of these bytes; `scheme` for QFLOAT only. Ends the test if it cannot. */
void model_add(decant_model *model, const char *name, decant_dtype dtype, size_t rank, const uint64_t *shape,
               const decant_quant *scheme, const void *bytes, size_t len);

/* The same with bytes of the stream of `seed`, as many as it takes. */
void model_add_stream(decant_model *model, const char *name, decant_dtype dtype, size_t rank, const uint64_t *shape,
                      uint64_t seed);

void model_set_text(decant_model *model, const char *key, const char *text);

/* Who opens a file: "safetensors; transformers: no metadata format = pt". Lent until the next call. */
const char *openers_text(const dcn_openers *openers);

/* All bytes of an entry. Freed by the caller. */
uint8_t *entry_bytes(const dcn_entry *entry);

/* Ends the test unless both hold the same, in whatever order. */
void check_same_models(const decant_model *actual, const decant_model *wanted);

/* Ends the test unless the model, written and opened again (leniently, if it must be), is the same and gives the same bytes. */
void check_comes_back(const dcn_format *format, const decant_model *model, bool lenient);

/* Takes any bytes for a file of this format, leniently if not strictly. What opens must come back; what does not says why. */
void check_any_file(const dcn_format *format, const void *bytes, size_t len, bool lenient);

#endif
