#include "pour/steps.h"

#include "base/ckd.h"

/* Goes on behind `len` bytes of the piece, to the next one that has any. */
static void pass(dcn_steps *steps, uint64_t len)
{
    const dcn_plan *plan = steps->plan;

    steps->done += len;
    while (steps->piece < plan->count && steps->done == dcn_plan_piece_len(plan, steps->piece)) {
        steps->piece++;
        steps->done = 0;
    }
}

dcn_steps dcn_steps_of(const dcn_plan *plan)
{
    dcn_steps steps = {.plan = plan};

    pass(&steps, 0);
    return steps;
}

/* What fills an entry from `at` of its backing on, as far as one file or backing goes. */
static void find(dcn_steps *steps, const dcn_span *data, uint64_t at, dcn_step *out)
{
    uint64_t end = data->offset + data->len, upto;
    dcn_place place;

    if (dcn_find_place(&steps->finder, data->backing, at, &place)) {
        *out = (dcn_step){.kind = DCN_STEP_RUN, .source = place.source, .from = place.at};
        upto = place.upto;
    } else {
        *out = (dcn_step){.kind = DCN_STEP_LEAF};
        out->leaf = dcn_backing_leaf(data->backing, at, &out->from, &upto);
    }
    out->len = dcn_min(upto, end) - at;
}

/* Adds to a run what lies behind it both in the output and in its file. @return whether there was any */
static bool extend(dcn_steps *steps, dcn_step *run)
{
    const dcn_plan *plan = steps->plan;
    const dcn_piece *piece = plan->pieces + steps->piece; /* there was one before it */
    const dcn_span *data;
    dcn_place place;
    uint64_t at, len;

    if (steps->piece == plan->count || piece->literal || piece->at + steps->done != run->at + run->len)
        return false;
    data = &plan->model->entries[piece->index].data;
    at = data->offset + steps->done;
    if (!dcn_find_place(&steps->finder, data->backing, at, &place) || place.source != run->source ||
        place.at != run->from + run->len)
        return false;
    len = dcn_min(place.upto, data->offset + data->len) - at;
    run->len += len;
    pass(steps, len);
    return true;
}

bool dcn_steps_next(dcn_steps *steps, dcn_step *out)
{
    const dcn_plan *plan = steps->plan;
    const dcn_piece *piece;

    if (steps->piece == plan->count)
        return false;
    piece = &plan->pieces[steps->piece];
    if (piece->literal) {
        const dcn_chunk *text = &plan->literals[piece->index];

        *out = (dcn_step){.kind = DCN_STEP_TEXT, .text = text->data, .len = text->len};
    } else {
        const dcn_span *data = &plan->model->entries[piece->index].data;

        find(steps, data, data->offset + steps->done, out);
    }
    out->at = piece->at + steps->done;
    pass(steps, out->len);
    while (out->kind == DCN_STEP_RUN && extend(steps, out))
        ;
    return true;
}

uint64_t dcn_step_blocks(const dcn_step *run, uint64_t held, uint64_t least, uint64_t *at)
{
    enum { BLOCK = 4096 };
    uint64_t end = run->at + run->len, begin = run->at > held ? run->at : held;

    if (run->kind != DCN_STEP_RUN || (run->at - run->from) % BLOCK || dcn_ckd_align(at, begin, BLOCK))
        return 0;
    end -= end % BLOCK;
    return end > *at && end - *at >= least ? end - *at : 0;
}

uint64_t dcn_step_behind(const dcn_step *step, uint64_t held, uint64_t *at)
{
    *at = step->at > held ? step->at : held;
    return step->at + step->len > *at ? step->at + step->len - *at : 0;
}
