/* A new model from one or more: names filtered and changed, dtypes cast, values merged and set. Touches no byte. */
#ifndef DCN_TRANSFORM_H
#define DCN_TRANSFORM_H

#include <decant/transform.h>

#include "model/model.h"

/* As decant_transform(); all fields of `options` are set, and arguments are checked. */
decant_status dcn_transform(const decant_model *const *models, const char *const *prefixes, size_t count,
                            const decant_transform_options *options, decant_model **out, decant_error *err);

/*
 * Gives `out` the values of the inputs but those that are unset, and those that are set.
 *
 * @return DECANT_MISMATCH, DECANT_NOT_FOUND (a key to unset that is in no input), DECANT_BAD_CALL, DECANT_NOMEM
 */
decant_status dcn_transform_values(const decant_model *const *models, size_t count,
                                   const decant_transform_options *options, decant_model *out, decant_error *err);

#endif
