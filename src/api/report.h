/* What a report holds. */
#ifndef DCN_REPORT_H
#define DCN_REPORT_H

#include "api/env.h"
#include "api/relics.h"
#include "pour/give.h"

/* A report of what is planned. `path` may be NULL. @param out [owned] */
decant_status dcn_report_create(const dcn_plans *plans, const dcn_landing *landings, const dcn_relics *relics,
                                const dcn_routes *routes, dcn_give *give, const dcn_cut *cut, const char *path,
                                const char *format, decant_report **out, decant_error *err);

/* What came of it: one output a plan. @param proof  the digest of what was read back, "" where it has none; NULL: nothing was */
void dcn_report_outcome(decant_report *report, dcn_output *const *outputs, const dcn_routes *routes, const char *proof);

/* And what overflowed in the casts of it. */
void dcn_report_overflows(decant_report *report, const dcn_plans *plans);

/* And of what the outputs supersede. */
void dcn_report_relics(decant_report *report, const dcn_relics *relics);

#endif
