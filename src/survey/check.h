/* Checking one file. */
#ifndef DCN_CHECK_H
#define DCN_CHECK_H

#include <decant/check.h>

#include "format/format.h"
#include "pour/pour.h"

/* As decant_check(), of an input that is read as `how` says, in slots as `cut` says. `longest` zeros are worth telling. */
decant_status dcn_check(dcn_input *in, const dcn_reading *how, const dcn_cut *cut, uint64_t longest,
                        const decant_check_options *options, decant_on_finding found, void *ctx,
                        decant_check_totals *totals, decant_error *err);

#endif
