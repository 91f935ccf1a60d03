/* Models as `*.spec.json` describes them (tests/data/README.md), made through the public interface alone. */
#ifndef TEST_SPEC_H
#define TEST_SPEC_H

#include <jansson.h>

#include <decant/decant.h>

/* How many bytes of the stream a tensor takes whose spec names a seed. */
typedef uint64_t spec_len(const json_t *spec, const decant_tensor *tensor);

/* @param out  [owned] */
decant_status spec_model(const json_t *spec, spec_len *len_of, decant_model **out, decant_error *err);

#endif
