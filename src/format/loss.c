#include "format/loss.h"

#include <stdio.h>
#include <string.h>

#include "base/dtype.h"

enum { KINDS = 8 }; /* of extras; there are fewer */

/* Things of one kind, counted; the first gives its name. */
typedef struct tally {
    const dcn_extra_ops *ops;
    uint64_t count;
    const dcn_entry *first;
} tally;

static void add(tally *t, uint64_t count, const dcn_entry *entry)
{
    if (t->count == 0)
        t->first = entry;
    t->count += count;
}

static uint64_t count_of(const dcn_extra *extra)
{
    return extra->ops->count ? extra->ops->count(extra) : 1;
}

bool dcn_lose_dtypes(const decant_model *model, dcn_has_place *has_place, dcn_plans *plans)
{
    tally dtypes[UINT8_MAX + 1] = {{0}};
    bool any = false;

    for (size_t i = 0; i < model->count; i++)
        add(&dtypes[model->entries[i].dtype], 1, &model->entries[i]);
    for (unsigned dtype = 0; dtype <= UINT8_MAX; dtype++) {
        const tally *t = &dtypes[dtype];
        char what[64];

        if (!t->count || has_place((decant_dtype)dtype))
            continue;
        snprintf(what, sizeof what, "%s tensor", decant_dtype_name((decant_dtype)dtype));
        dcn_plans_lose(plans, t->count, what, t->first->name, t->first->name_len);
        any = true;
    }
    return any;
}

void dcn_lose_extras(const decant_model *model, const char *format, dcn_has_place *has_place, dcn_plans *plans)
{
    tally kinds[KINDS] = {{0}};
    size_t count = 0;

    if (model->extra && model->extra->ops->what && strcmp(model->extra->ops->format, format) != 0)
        dcn_plans_lose(plans, count_of(model->extra), model->extra->ops->what, NULL, 0);
    for (size_t i = 0; i < model->count; i++) {
        const dcn_entry *e = &model->entries[i];
        size_t kind = 0;

        if (!e->extra || !e->extra->ops->what || !has_place((decant_dtype)e->dtype) ||
            strcmp(e->extra->ops->format, format) == 0)
            continue;
        while (kind < count && kinds[kind].ops != e->extra->ops)
            kind++;
        if (kind == count && count < KINDS)
            kinds[count++].ops = e->extra->ops;
        add(&kinds[kind < KINDS ? kind : KINDS - 1], count_of(e->extra), e);
    }
    for (size_t kind = 0; kind < count; kind++)
        dcn_plans_lose(plans, kinds[kind].count, kinds[kind].ops->what, kinds[kind].first->name,
                       kinds[kind].first->name_len);
}

void dcn_lose_disputed(const decant_model *model, dcn_plans *plans)
{
    const dcn_chunk *first = model->disputed;

    if (model->disputed_count)
        dcn_plans_lose(plans, model->disputed_count, "contradictory metadata key", first->data, first->len);
}

decant_status dcn_check_losses(const decant_model *model, const dcn_plans *plans, const char *format, bool dtypes,
                               unsigned allow, decant_error *err)
{
    decant_status rc = dcn_plans_check_losses(plans, format, dtypes ? 0 : allow, err);

    if (rc && dtypes)
        dcn_error_hint(err, "choose a format that has their dtype; none is dropped");
    else if (rc == DECANT_LOSS && model->disputed_count)
        dcn_error_hint(err, "--set KEY=VALUE chooses one, --unset KEY none; --allow loss drops all that has no place");
    return rc;
}
