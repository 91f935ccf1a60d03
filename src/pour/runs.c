#include "pour/runs.h"

#include "base/alloc.h"
#include "base/ckd.h"
#include "base/sort.h"
#include "base/thread.h"

struct dcn_sharers {
    dcn_refs refs;
};

static bool goes_on(const dcn_run *last, const dcn_run *run)
{
    return last->source == run->source && last->output == run->output && last->from + last->len == run->from &&
           last->to + last->len == run->to;
}

decant_status dcn_runs_add(dcn_runs *runs, const dcn_run *run, decant_error *err)
{
    dcn_run *items;

    if (runs->count && goes_on(&runs->items[runs->count - 1], run)) {
        runs->items[runs->count - 1].len += run->len;
        return DECANT_OK;
    }
    if (!(items = dcn_grown(runs->items, runs->count, &runs->cap, sizeof *items)))
        return dcn_error_nomem(err);
    runs->items = items;
    runs->items[runs->count++] = *run;
    return DECANT_OK;
}

static int by_source(const void *a, const void *b)
{
    const dcn_run *x = a, *y = b;

    if (x->source != y->source)
        return x->source < y->source ? -1 : 1;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    if (x->output != y->output)
        return x->output < y->output ? -1 : 1;
    return (x->to > y->to) - (x->to < y->to);
}

bool dcn_run_follows(const dcn_run *a, const dcn_run *b)
{
    return by_source(a, b) < 0 && !goes_on(a, b);
}

static void join_neighbours(dcn_runs *runs)
{
    size_t kept = 0;

    for (size_t i = 0; i < runs->count; i++)
        if (kept && goes_on(&runs->items[kept - 1], &runs->items[i]))
            runs->items[kept - 1].len += runs->items[i].len;
        else
            runs->items[kept++] = runs->items[i];
    runs->count = kept;
}

decant_status dcn_runs_finish(dcn_runs *runs, size_t sources, decant_error *err)
{
    size_t at = 0;

    if (!(runs->begins = dcn_alloc(sources + 1, sizeof *runs->begins)))
        return dcn_error_nomem(err);
    runs->sources = sources;
    dcn_sort(runs->items, runs->count, sizeof *runs->items, by_source);
    join_neighbours(runs);
    for (size_t source = 0; source < sources; source++) {
        uint64_t reach = 0;

        runs->begins[source] = at;
        for (; at < runs->count && runs->items[at].source == source; at++) {
            dcn_run *run = &runs->items[at];

            if (run->from + run->len > reach)
                reach = run->from + run->len;
            run->reach = reach;
        }
    }
    runs->begins[sources] = at;
    return DECANT_OK;
}

/* The first run of a source that may end behind `at`. */
static size_t find(const dcn_runs *runs, uint32_t source, uint64_t at)
{
    size_t low = runs->begins[source], high = runs->begins[source + 1];

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (runs->items[middle].reach <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool dcn_runs_cover(const dcn_runs *runs, uint32_t source, uint64_t at, uint64_t limit, uint64_t most, uint64_t *from,
                    uint64_t *upto)
{
    size_t i = find(runs, source, at), end = runs->begins[source + 1];

    if (i == end || runs->items[i].from >= limit || at >= limit)
        return false;
    *from = runs->items[i].from > at ? runs->items[i].from : at;
    limit = *from + dcn_min(most, limit - *from);
    *upto = runs->items[i].reach;
    while (*upto < limit && ++i < end && runs->items[i].from <= *upto)
        *upto = runs->items[i].reach;
    *upto = dcn_min(*upto, limit);
    return true;
}

uint64_t dcn_runs_end(const dcn_runs *runs, uint32_t source)
{
    size_t end = runs->begins[source + 1];

    return end == runs->begins[source] ? 0 : runs->items[end - 1].reach;
}

dcn_places dcn_places_of(const dcn_runs *runs, uint32_t source, uint64_t at, uint64_t upto)
{
    return (dcn_places){runs, at, upto, find(runs, source, at), runs->begins[source + 1]};
}

bool dcn_places_next(dcn_places *places, dcn_placing *out)
{
    while (places->next < places->end) {
        const dcn_run *run = &places->runs->items[places->next];
        uint64_t from = run->from > places->at ? run->from : places->at, upto;

        if (run->from >= places->upto)
            return false;
        places->next++;
        upto = dcn_min(run->from + run->len, places->upto);
        if (from >= upto)
            continue;
        *out = (dcn_placing){from, run->to + (from - run->from), upto - from, run->output};
        return true;
    }
    return false;
}

decant_status dcn_runs_share(dcn_runs *runs, dcn_runs *out, decant_error *err)
{
    *out = (dcn_runs){0};
    if (!runs->begins)
        return DECANT_OK; /* there are none */
    if (!runs->sharers) {
        if (!(runs->sharers = dcn_alloc(1, sizeof *runs->sharers)))
            return dcn_error_nomem(err);
        atomic_init(&runs->sharers->refs, 1);
    }
    dcn_refs_up(&runs->sharers->refs);
    *out = *runs;
    return DECANT_OK;
}

void dcn_runs_close(dcn_runs *runs)
{
    if (!runs->sharers || dcn_refs_down(&runs->sharers->refs)) {
        dcn_free(&runs->items);
        dcn_free(&runs->begins);
        dcn_free(&runs->sharers);
    }
    *runs = (dcn_runs){0};
}
