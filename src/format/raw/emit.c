#include "base/alloc.h"
#include "base/ckd.h"
#include "format/format.h"

enum { HELD = 4096 }; /* the front that is written last, so that what is half done is taken for nothing */

/* Each entry is a file of its own, with its name; the last has the one that was asked for. */
static decant_status emit(const decant_model *model, const dcn_layout *how, dcn_plans *out, decant_error *err)
{
    (void)how;
    for (size_t i = 0; i < model->count; i++) {
        const dcn_entry *entry = &model->entries[i];
        dcn_plan *plan = NULL;
        decant_status rc;

        if ((rc = dcn_plans_add(out, model, &plan, err)) || (rc = dcn_plan_entry(plan, 0, i, err)))
            return rc;
        if (i + 1 < model->count && !(plan->name = dcn_strndup(entry->name, entry->name_len)))
            return dcn_error_nomem(err);
        dcn_plan_finish(plan, entry->data.len);
        plan->held = dcn_min(HELD, entry->data.len);
    }
    out->layout = "raw";
    return DECANT_OK;
}

static const char *const extensions[] = {"bin", NULL};

const dcn_format dcn_raw = {.name = "raw", .extensions = extensions, .emit = emit};
