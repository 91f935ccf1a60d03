#include <decant/check.h>

#include "api/env.h"
#include "survey/diff.h"
#include "survey/digest.h"

/* Large enough that a disk streams, small enough that two of them stay in a cache. */
#define SLOT ((size_t)1 << 20)

decant_status decant_diff(const decant_model *a, const decant_model *b, decant_on_difference found, void *ctx,
                          decant_diff_totals *totals, decant_error *err)
{
    if (!a || !b)
        return decant_error_set(err, DECANT_BAD_CALL, "a model is NULL");
    return dcn_diff(a, b, SLOT, found, ctx, totals, err);
}

decant_status decant_digest(const decant_model *model, const decant_digest_options *options, decant_on_digest found,
                            void *ctx, char *hex, decant_error *err)
{
    dcn_env env = dcn_env_default();
    decant_digest_options own = {0};

    if (!model || !hex)
        return decant_error_set(err, DECANT_BAD_CALL, !model ? "the model is NULL" : "there is no room for the digest");
    dcn_options_take(&own, sizeof own, options);
    return dcn_digest(model, &env.cut, &own, found, ctx, hex, err);
}
