/* Blocks that outputs share with their sources. */
#include "pour/slots.h"

static bool all_copied(const dcn_pouring *p)
{
    for (size_t i = 0; p->job->routes && i < p->job->routes->count; i++)
        if (p->job->routes->items[i].way != DCN_COPY)
            return false;
    return true;
}

dcn_route *dcn_pouring_passed(dcn_pouring *p, const dcn_step *step, uint64_t *at, uint64_t *len)
{
    dcn_route *route = NULL;

    *len = 0;
    if (step->kind == DCN_STEP_RUN && p->job->routes && p->out->ops->clone)
        route = dcn_routes_find(p->job->routes, step->source, &p->route);
    if (route && route->way == DCN_CLONE && !p->sum)
        *len = dcn_step_blocks(step, p->plan->held, p->job->cut.share, at);
    if (route && route->way == DCN_DRAIN)
        *len = dcn_step_behind(step, p->plan->held, at);
    return *len ? route : NULL;
}

/*
 * Shares the blocks that can be. A source of which some cannot is copied as a whole: over what is shared already, which
 * costs time and changes nothing.
 */
decant_status dcn_pouring_share(dcn_pouring *p, decant_error *err)
{
    dcn_steps steps = dcn_steps_of(p->plan);
    dcn_step step;
    uint64_t at, len;

    if (all_copied(p))
        return DECANT_OK;
    while (dcn_steps_next(&steps, &step)) {
        dcn_route *route = dcn_pouring_passed(p, &step, &at, &len);
        decant_status rc;

        if (!route || route->way != DCN_CLONE)
            continue;
        rc = dcn_output_clone(p->out, at, step.source, step.from + (at - step.at), len, err);
        if (rc == DECANT_UNSUPPORTED)
            dcn_route_copy(route);
        else if (rc)
            return rc;
    }
    return DECANT_OK;
}

/* Room for all that is copied; for little between what is not it is not worth a call. */
decant_status dcn_pouring_reserve(dcn_pouring *p, decant_error *err)
{
    dcn_steps steps = dcn_steps_of(p->plan);
    uint64_t from = 0, at, len;
    bool passes = !all_copied(p);
    dcn_step step;
    decant_status rc;

    while (passes && dcn_steps_next(&steps, &step)) {
        if (!dcn_pouring_passed(p, &step, &at, &len))
            continue;
        if (at - from >= p->job->cut.slot && (rc = dcn_output_reserve(p->out, from, at - from, err)))
            return rc;
        from = at + len;
    }
    if (from && p->plan->total - from < p->job->cut.slot)
        return DECANT_OK;
    return dcn_output_reserve(p->out, from, p->plan->total - from, err);
}
