#include <decant/check.h>

#include "base/error.h"
#include "survey/diff.h"

/* Large enough that a disk streams, small enough that two of them stay in a cache. */
#define SLOT ((size_t)1 << 20)

decant_status decant_diff(const decant_model *a, const decant_model *b, decant_on_difference found, void *ctx,
                          decant_diff_totals *totals, decant_error *err)
{
    if (!a || !b)
        return decant_error_set(err, DECANT_BAD_CALL, "a model is NULL");
    return dcn_diff(a, b, SLOT, found, ctx, totals, err);
}
