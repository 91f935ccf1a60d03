#include "survey/scan.h"

#include "base/alloc.h"
#include "base/ckd.h"
#include "pour/route.h"

static decant_status end_piece(dcn_scan *scan, decant_error *err)
{
    const dcn_piece *piece = &scan->plan->pieces[scan->piece++];

    scan->seen = 0;
    if (piece->literal)
        return DECANT_OK;
    return scan->viewer->end(scan->viewer->ctx, &scan->plan->model->entries[piece->index], err);
}

decant_status dcn_scan_take(dcn_scan *scan, uint64_t at, const uint8_t *data, size_t len, decant_error *err)
{
    const dcn_plan *plan = scan->plan;
    decant_status rc;

    while (scan->piece < plan->count) {
        const dcn_piece *piece = &plan->pieces[scan->piece];
        uint64_t left = dcn_plan_piece_len(plan, scan->piece) - scan->seen;
        uint64_t gap = dcn_min(piece->at + scan->seen - at, len);
        size_t n = (size_t)dcn_min(left, len - gap);

        at += gap;
        data += gap;
        len -= (size_t)gap;
        if (n && !piece->literal &&
            (rc = scan->viewer->part(scan->viewer->ctx, &plan->model->entries[piece->index], data, n, err)))
            return rc;
        at += n;
        data += n;
        len -= n;
        scan->seen += n;
        if (n < left) /* of one without data the end is noticed as soon as the one before it ends */
            break;
        if ((rc = end_piece(scan, err)))
            return rc;
    }
    return DECANT_OK;
}

decant_status dcn_scan_end(dcn_scan *scan, decant_error *err)
{
    decant_status rc = DECANT_OK;

    while (rc == DECANT_OK && scan->piece < scan->plan->count)
        rc = end_piece(scan, err);
    return rc;
}

static decant_status see(void *ctx, uint64_t at, const dcn_chunk *chunk, decant_error *err)
{
    return dcn_scan_take(ctx, at, chunk->data, chunk->len, err);
}

/* The sources of the routes, as a job has them. NULL without memory. */
static dcn_source **sources_of(const dcn_routes *routes)
{
    dcn_source **sources = dcn_alloc(routes->count, sizeof(dcn_source *));

    for (size_t i = 0; sources && i < routes->count; i++)
        sources[i] = routes->items[i].source;
    return sources;
}

decant_status dcn_scan_model(const decant_model *model, const dcn_cut *cut, decant_progress progress, void *ctx,
                             const dcn_viewer *viewer, decant_error *err)
{
    dcn_plans plans = {0};
    dcn_routes routes = {0};
    dcn_source **sources = NULL;
    dcn_output *sink = NULL;
    dcn_crew *crew = NULL;
    dcn_scan scan = {.viewer = viewer};
    dcn_job job = {.plans = &plans, .cut = *cut, .progress = progress, .progress_ctx = ctx};
    decant_status rc;

    if ((rc = dcn_plan_check_model(model, err)) || (rc = dcn_plans_data(&plans, model, err)) ||
        (rc = dcn_routes_collect(&plans, cut->share, &routes, err)) || (rc = dcn_output_sink(see, &scan, &sink, err)) ||
        (rc = dcn_crew_inline(&crew, err)))
        goto done;
    if (!(sources = sources_of(&routes))) {
        rc = dcn_error_nomem(err);
        goto done;
    }
    scan.plan = &plans.items[0];
    job.outputs = &sink;
    job.sources = sources;
    job.source_count = routes.count;
    job.crew = crew;
    if ((rc = dcn_pour(&job, err)) == DECANT_OK)
        rc = dcn_scan_end(&scan, err);
done:
    dcn_crew_close(&crew);
    dcn_output_close(&sink);
    dcn_free(&sources);
    dcn_routes_close(&routes);
    dcn_plans_close(&plans);
    return rc;
}

decant_status dcn_scan_check(const decant_model *model, decant_error *err)
{
    dcn_plans plans = {0};
    dcn_routes routes = {0};
    decant_status rc = dcn_plans_data(&plans, model, err);

    if (rc == DECANT_OK)
        rc = dcn_routes_collect(&plans, UINT64_MAX, &routes, err);
    for (size_t i = 0; i < routes.count && rc == DECANT_OK; i++)
        rc = dcn_source_check(routes.items[i].source, err);
    dcn_routes_close(&routes);
    dcn_plans_close(&plans);
    return rc;
}
