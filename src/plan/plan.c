#include "plan/plan.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/ckd.h"
#include "base/dtype.h"
#include "base/sort.h"
#include "base/text.h"

/* --- pieces ------------------------------------------------------------------------------------------------------ */

decant_status dcn_plans_add(dcn_plans *plans, const decant_model *model, dcn_plan **out, decant_error *err)
{
    dcn_plan *items = dcn_realloc(plans->items, plans->count + 1, sizeof *items);

    if (!items)
        return dcn_error_nomem(err);
    plans->items = items;
    *out = &items[plans->count++];
    **out = (dcn_plan){.model = model};
    return DECANT_OK;
}

void dcn_plans_close(dcn_plans *plans)
{
    for (size_t i = 0; i < plans->count; i++) {
        dcn_plan *plan = &plans->items[i];

        for (size_t k = 0; k < plan->literal_count; k++)
            dcn_free_raw((void *)(uintptr_t)plan->literals[k].data); /* ours, though a chunk is read only */
        dcn_free(&plan->pieces);
        dcn_free(&plan->name);
    }
    dcn_free(&plans->items);
    *plans = (dcn_plans){0};
}

decant_status dcn_plan_reserve(dcn_plan *plan, size_t count, decant_error *err)
{
    dcn_piece *pieces;

    if (count <= plan->cap)
        return DECANT_OK;
    pieces = dcn_realloc(plan->pieces, count, sizeof *pieces);
    if (!pieces)
        return dcn_error_nomem(err);
    plan->pieces = pieces;
    plan->cap = count;
    return DECANT_OK;
}

static decant_status append(dcn_plan *plan, dcn_piece piece, decant_error *err)
{
    decant_status rc;

    if (plan->count == plan->cap && (rc = dcn_plan_reserve(plan, plan->cap + plan->cap / 2 + 8, err)))
        return rc;
    plan->pieces[plan->count++] = piece;
    return DECANT_OK;
}

decant_status dcn_plan_literal(dcn_plan *plan, uint64_t at, dcn_buf *buf, decant_error *err)
{
    decant_status rc;

    assert(plan->literal_count < sizeof plan->literals / sizeof *plan->literals);
    if ((rc = dcn_buf_check(buf, err)) ||
        (rc = append(plan, (dcn_piece){.at = at, .index = (uint32_t)plan->literal_count, .literal = 1}, err)))
        return rc;
    plan->literals[plan->literal_count++] = (dcn_chunk){buf->data, buf->len};
    *buf = (dcn_buf){0};
    return DECANT_OK;
}

decant_status dcn_plan_entry(dcn_plan *plan, uint64_t at, size_t index, decant_error *err)
{
    decant_status rc = append(plan, (dcn_piece){.at = at, .index = (uint32_t)index}, err);

    assert(index < plan->model->count);
    if (rc == DECANT_OK)
        plan->data += plan->model->entries[index].data.len;
    return rc;
}

void dcn_plan_finish(dcn_plan *plan, uint64_t total)
{
    uint64_t end = 0;

    for (size_t i = 0; i < plan->count; i++) {
        assert(plan->pieces[i].at >= end);
        assert(!dcn_outside(plan->pieces[i].at, dcn_plan_piece_len(plan, i), total));
        end = plan->pieces[i].at + dcn_plan_piece_len(plan, i);
    }
    (void)end;
    plan->total = total;
}

decant_status dcn_plans_data(dcn_plans *plans, const decant_model *model, decant_error *err)
{
    dcn_plan *plan;
    uint64_t at = 0, end = 0;
    decant_status rc;

    if ((rc = dcn_plans_add(plans, model, &plan, err)) || (rc = dcn_plan_reserve(plan, model->count, err)))
        return rc;
    for (size_t i = 0; i < model->count; i++) {
        if ((rc = dcn_plan_entry(plan, at, i, err)))
            return rc;
        if (dcn_ckd_add(&end, at, model->entries[i].data.len) || dcn_ckd_add(&at, end, -end % DCN_DATA_ALIGN))
            return decant_error_set(err, DECANT_LIMIT, "all data together is longer than 64 bits can say");
    }
    dcn_plan_finish(plan, end);
    return DECANT_OK;
}

/* --- what is lost and gained ------------------------------------------------------------------------------------- */

void dcn_plans_lose(dcn_plans *plans, uint64_t count, const char *what, const char *name, size_t name_len)
{
    dcn_loss *loss;
    int used;

    if (count == 0)
        return;
    if (plans->loss_count == DCN_LOSSES) {
        loss = &plans->losses[DCN_LOSSES - 1];
        loss->brief = (size_t)snprintf(loss->text, sizeof loss->text, "more");
        return;
    }
    loss = &plans->losses[plans->loss_count++];
    used = snprintf(loss->text, sizeof loss->text, "%" PRIu64 " %s%s", count, what, count == 1 ? "" : "s");
    assert(used > 0 && (size_t)used < sizeof loss->text);
    loss->brief = (size_t)used;
    if (name) {
        char safe[96];

        dcn_text_escape(safe, sizeof safe, name, name_len);
        snprintf(loss->text + used, sizeof loss->text - (size_t)used, ", first of '%s'", safe);
    }
}

decant_status dcn_plans_check_losses(const dcn_plans *plans, const char *format, unsigned allow, decant_error *err)
{
    dcn_buf list = {0};
    decant_status rc;

    if (plans->loss_count == 0 || allow & DECANT_ALLOW_LOSS)
        return DECANT_OK;
    for (size_t i = 0; i < plans->loss_count; i++) {
        if (i)
            dcn_buf_text(&list, i + 1 == plans->loss_count ? " and " : ", ");
        dcn_buf_put(&list, plans->losses[i].text,
                    plans->loss_count == 1 ? strlen(plans->losses[i].text) : plans->losses[i].brief);
    }
    if ((rc = dcn_buf_check(&list, err)))
        goto done;
    rc = decant_error_set(err, DECANT_LOSS, "%s has no place for %.*s", format, (int)list.len, (char *)list.data);
    dcn_error_hint(err, "--allow loss drops them");
done:
    dcn_buf_close(&list);
    return rc;
}

void dcn_plans_gain(dcn_plans *plans, const char *what)
{
    assert(plans->gain_count < DCN_GAINS);
    plans->gains[plans->gain_count++] = what;
}

/* --- what must hold of every model ------------------------------------------------------------------------------- */

static decant_status check_len(const dcn_entry *entry, decant_error *err)
{
    char shape[64];
    uint64_t len;
    decant_status rc;

    if (dcn_dtype(entry->dtype)->bits == 0)
        return DECANT_OK;
    if ((rc = dcn_dtype_len(entry->dtype, entry->shape, entry->rank, &len, err)) || len == entry->data.len)
        return rc;
    dcn_shape_text(shape, sizeof shape, entry->shape, entry->rank);
    rc = decant_error_set(err, DECANT_MISMATCH, "the length of its bytes does not fit its dtype and shape");
    dcn_error_found(err, "%" PRIu64 " bytes", entry->data.len);
    dcn_error_expected(err, "%" PRIu64 " for %s %s", len, decant_dtype_name(entry->dtype), shape);
    return rc;
}

/* A provider, and an entry in which it stands. */
typedef struct use {
    const dcn_backing *provider;
    size_t entry;
} use;

typedef struct uses {
    use *items;
    size_t count, cap;
    dcn_finder finder; /* what lies in a file has none */
} uses;

static decant_status note_use(uses *all, const dcn_backing *provider, size_t entry, decant_error *err)
{
    use *items = dcn_grown(all->items, all->count, &all->cap, sizeof *items);

    if (!items)
        return dcn_error_nomem(err);
    all->items = items;
    items[all->count++] = (use){provider, entry};
    return DECANT_OK;
}

/* The providers in a span, and in what is made for it: as deep as DCN_ROPE_DEPTH. */
static decant_status collect(uses *all, const dcn_span *data, size_t entry, decant_error *err)
{
    uint64_t end = data->offset + data->len, upto;
    decant_status rc = DECANT_OK;

    for (uint64_t at = data->offset; at < end && rc == DECANT_OK; at = upto) {
        const dcn_recipe *recipe;
        dcn_backing *leaf;
        dcn_place place;
        uint64_t offset;

        if (dcn_find_place(&all->finder, data->backing, at, &place)) {
            upto = place.upto;
            continue;
        }
        leaf = dcn_backing_leaf(data->backing, at, &offset, &upto);
        recipe = dcn_backing_recipe(leaf);
        if (recipe) {
            dcn_span raw = dcn_recipe_raw(recipe, offset, dcn_min(upto, end) - at);

            rc = collect(all, &raw, entry, err);
        } else if (leaf->ops->takes_turns && !dcn_backing_is_kept(leaf)) {
            rc = note_use(all, leaf, entry, err);
        }
    }
    return rc;
}

static int by_provider(const void *a, const void *b)
{
    const use *x = a, *y = b;

    if (x->provider != y->provider)
        return (uintptr_t)x->provider < (uintptr_t)y->provider ? -1 : 1;
    return (x->entry > y->entry) - (x->entry < y->entry);
}

/* The second use of a provider, that of the earliest entry, so that the message does not depend on addresses. */
static decant_status check_uses(const decant_model *model, uses *all, decant_error *err)
{
    const dcn_entry *first, *again;
    const use *found = NULL;
    char name[96];

    dcn_sort(all->items, all->count, sizeof *all->items, by_provider);
    for (size_t i = 1; i < all->count; i++)
        if (all->items[i].provider == all->items[i - 1].provider && (!found || all->items[i].entry < found->entry))
            found = &all->items[i];
    if (!found)
        return DECANT_OK;

    again = &model->entries[found->entry];
    first = &model->entries[found[-1].entry];
    dcn_text_escape(name, sizeof name, first->name, first->name_len);
    decant_error_set(err, DECANT_BAD_CALL, "its provider stands in %s'%s' too",
                     first == again ? "another place of " : "", name);
    dcn_error_hint(err, "a provider is asked once: keep its bytes first, or defer them once for each use");
    dcn_error_tensor(err, again->name, again->name_len);
    return DECANT_BAD_CALL;
}

decant_status dcn_plan_check_model(const decant_model *model, decant_error *err)
{
    uses all = {0};
    decant_status rc = DECANT_OK;

    for (size_t i = 0; i < model->count; i++) {
        const dcn_entry *entry = &model->entries[i];

        if ((rc = check_len(entry, err)) || (rc = collect(&all, &entry->data, i, err))) {
            if (rc != DECANT_NOMEM)
                dcn_error_tensor(err, entry->name, entry->name_len);
            goto done;
        }
    }
    rc = check_uses(model, &all, err);
done:
    dcn_free(&all.items);
    return rc;
}
