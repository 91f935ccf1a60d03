#include "pour/steps.h"

#include "base/ckd.h"

dcn_steps dcn_steps_of(const dcn_plan *plan)
{
    return (dcn_steps){.plan = plan};
}

/* What fills an entry from `done` on, as far as one file or backing goes. */
static void find(dcn_steps *steps, const dcn_span *data, dcn_step *out)
{
    uint64_t at = data->offset + steps->done, end = data->offset + data->len, upto;
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

/* The next step, whether or not it goes on with the one before. Pieces without bytes are none. */
static bool take(dcn_steps *steps, dcn_step *out)
{
    const dcn_plan *plan = steps->plan;

    for (; steps->piece < plan->count; steps->piece++) {
        const dcn_piece *piece = &plan->pieces[steps->piece];
        uint64_t len = dcn_plan_piece_len(plan, steps->piece);

        if (!len)
            continue;
        if (piece->literal)
            *out = (dcn_step){.kind = DCN_STEP_TEXT, .text = plan->literals[piece->index].data, .len = len};
        else
            find(steps, &plan->model->entries[piece->index].data, out);
        out->at = piece->at + steps->done;
        steps->done += out->len;
        if (steps->done == len) {
            steps->piece++;
            steps->done = 0;
        }
        return true;
    }
    return false;
}

static bool goes_on(const dcn_step *run, const dcn_step *next)
{
    return run->kind == DCN_STEP_RUN && next->kind == DCN_STEP_RUN && next->source == run->source &&
           next->at == run->at + run->len && next->from == run->from + run->len;
}

bool dcn_steps_next(dcn_steps *steps, dcn_step *out)
{
    if (steps->ahead.len)
        *out = steps->ahead;
    else if (!take(steps, out))
        return false;
    steps->ahead.len = 0;
    while (out->kind == DCN_STEP_RUN && take(steps, &steps->ahead) && goes_on(out, &steps->ahead)) {
        out->len += steps->ahead.len;
        steps->ahead.len = 0;
    }
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
