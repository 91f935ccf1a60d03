#include <assert.h>

#include "format/format.h"

/* A model of one tensor: its bytes and nothing else. */
static decant_status emit(const decant_model *model, const dcn_layout *how, dcn_plans *out, decant_error *err)
{
    (void)how;
    assert(model->count == 1);
    return dcn_plans_data(out, model, err);
}

static const char *const extensions[] = {"bin", NULL};

const dcn_format dcn_raw = {.name = "raw", .extensions = extensions, .emit = emit};
