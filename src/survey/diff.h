/* Comparing two models, tensor by tensor. */
#ifndef DCN_DIFF_H
#define DCN_DIFF_H

#include <decant/check.h>

/* As decant_diff(), in slots of `slot` bytes: a multiple of 8. */
decant_status dcn_diff(const decant_model *a, const decant_model *b, size_t slot, const decant_diff_options *options,
                       decant_on_difference found, void *ctx, decant_diff_totals *totals, decant_error *err);

#endif
