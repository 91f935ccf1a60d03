/* What an output has no place for, counted by kind. */
#ifndef DCN_FORMAT_LOSS_H
#define DCN_FORMAT_LOSS_H

#include "plan/plan.h"

/* Whether a format has a place for tensors of a dtype. */
typedef bool dcn_has_place(decant_dtype dtype);

/* Notes tensors whose dtype has no place, per dtype. True if there are any: nothing allows dropping those. */
bool dcn_lose_dtypes(const decant_model *model, dcn_has_place *has_place, dcn_plans *plans);

/* Notes the extras of model and entries that are not of `format`, except on tensors that are lost with all they have. */
void dcn_lose_extras(const decant_model *model, const char *format, dcn_has_place *has_place, dcn_plans *plans);

/* Notes the keys of which the files of a set say different things. */
void dcn_lose_disputed(const decant_model *model, dcn_plans *plans);

/* DECANT_LOSS unless nothing is lost, or all that is may be. `dtypes`: what dcn_lose_dtypes() said. */
decant_status dcn_check_losses(const decant_model *model, const dcn_plans *plans, const char *format, bool dtypes,
                               unsigned allow, decant_error *err);

#endif
