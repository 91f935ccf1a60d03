#include "transform/transform.h"

#include <assert.h>

#include "api/env.h"

decant_status decant_transform(const decant_model *const *models, const char *const *prefixes, size_t count,
                               const decant_transform_options *options, decant_model **out, decant_error *err)
{
    decant_transform_options own = DECANT_TRANSFORM_OPTIONS_INIT;

    if (!models || count == 0)
        return decant_error_set(err, DECANT_BAD_CALL, "no model to transform: give at least one");
    for (size_t i = 0; i < count; i++)
        if (!models[i])
            return decant_error_set(err, DECANT_BAD_CALL, "model %zu of %zu is NULL", i, count);
    dcn_options_take(&own, sizeof own, options);
    return dcn_transform(models, prefixes, count, &own, out, err);
}

int decant_model_origin(const decant_model *model, size_t index, decant_origin *out)
{
    const dcn_origin *origin;

    assert(index < model->count && out->size >= sizeof *out);
    if (!model->origins)
        return 0;
    origin = &model->origins[index];
    *out = (decant_origin){out->size, origin->input, origin->name, origin->name_len, (decant_dtype)origin->dtype};
    return 1;
}
