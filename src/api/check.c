#include <decant/check.h>

#include "api/env.h"
#include "survey/check.h"
#include "survey/diff.h"
#include "survey/digest.h"

/* Large enough that a disk streams, small enough that two of them stay in a cache. */
#define SLOT ((size_t)1 << 20)

/* Zeros in a row that are worth telling: more than the rows by which a vocabulary is padded. */
#define LONG_RUN (UINT64_C(1) << 20)

decant_status decant_diff(const decant_model *a, const decant_model *b, const decant_diff_options *options,
                          decant_on_difference found, void *ctx, decant_diff_totals *totals, decant_error *err)
{
    decant_diff_options own = {0};

    if (!a || !b)
        return decant_error_set(err, DECANT_BAD_CALL, "a model is NULL");
    dcn_options_take(&own, sizeof own, options);
    if (!(own.rtol >= 0) || !(own.atol >= 0))
        return decant_error_set(err, DECANT_BAD_CALL, "a tolerance is negative, or no number");
    return dcn_diff(a, b, SLOT, &own, found, ctx, totals, err);
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

decant_status decant_check(const char *path, const decant_check_options *options, decant_on_finding found, void *ctx,
                           decant_check_totals *totals, decant_error *err)
{
    dcn_env env = dcn_env_default();
    decant_check_options own = {0};
    dcn_reading how;
    dcn_input *in = NULL;
    decant_status rc;

    if (!path)
        return decant_error_set(err, DECANT_BAD_CALL, "the path is NULL: name a file to check");
    dcn_options_take(&own, sizeof own, options);
    if ((rc = dcn_reading_take(&how, own.open, err)) || (rc = dcn_open_input(&env, path, &how, &in, err)))
        return rc;
    rc = dcn_check(in, &how, &env.cut, LONG_RUN, &own, found, ctx, totals, err);
    dcn_input_close(&in);
    if (rc && rc != DECANT_NOMEM) {
        dcn_error_side(err, DECANT_SIDE_INPUT);
        dcn_error_path(err, path);
    }
    return rc;
}
