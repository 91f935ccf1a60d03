#include "api/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/ckd.h"
#include "base/text.h"
#include "transform/cast.h"

typedef struct line {
    const char *path;
    uint64_t bytes, shared;
    const char *reason;
    dcn_way way;
    bool given;
    bool unused;     /* none of its bytes are in the outputs: an index of a set */
    uint32_t source; /* among those of the runs, where it is given */
} line;

typedef struct target {
    const char *path;
    uint64_t bytes;
    bool published, durable;
} target;

enum { OVERFLOWS = 100 }; /* lines; more than a screen */

struct decant_report {
    dcn_arena memory; /* texts, lines and targets */
    const char *path, *format, *layout;
    uint64_t size, data, padding, staging, room, taken, free;
    size_t tensors, undone;
    bool published, durable, verified, unsure;
    const char *survives;
    char digest[DECANT_DIGEST];
    dcn_loss losses[DCN_LOSSES];
    size_t loss_count;
    const char *gains[DCN_GAINS];
    size_t gain_count;
    const char *replaces[DCN_REPLACES];
    dcn_openers openers;
    line *lines; /* one a source */
    size_t line_count;
    dcn_runs drained, whole; /* of the sources that are given up */
    target *targets;         /* one an output */
    size_t target_count;
    char overflows[OVERFLOWS][192];
    size_t overflow_count; /* of tensors, for which there may be no lines */
    dcn_relic *relics;
    size_t relic_count;
};

static const char *const survivals[] = {
    [DCN_LASTS_UNKNOWN] = "unknown", [DCN_LASTS_PROCESS] = "process", [DCN_LASTS_POWER] = "power"};

static void count_plans(decant_report *r, const dcn_plans *plans)
{
    for (size_t i = 0; i < plans->count; i++) {
        r->size += plans->items[i].total;
        r->data += plans->items[i].data;
        r->padding += plans->items[i].total;
        for (size_t k = 0; k < plans->items[i].count; k++) {
            r->tensors += !plans->items[i].pieces[k].literal;
            r->padding -= dcn_plan_piece_len(&plans->items[i], k);
        }
    }
    r->layout = plans->layout;
    memcpy(r->losses, plans->losses, sizeof r->losses);
    r->loss_count = plans->loss_count;
    memcpy(r->gains, plans->gains, sizeof r->gains);
    r->gain_count = plans->gain_count;
    r->openers = plans->openers;
}

static const char *copy_text(decant_report *r, const char *text)
{
    return dcn_arena_copy(&r->memory, text, strlen(text) + 1);
}

static bool copy_landings(decant_report *r, const dcn_landing *landings, size_t count)
{
    r->targets = dcn_arena_take(&r->memory, count * sizeof *r->targets);
    if (!r->targets)
        return false;
    for (r->target_count = 0; r->target_count < count; r->target_count++) {
        target *to = &r->targets[r->target_count];

        *to = (target){.path = copy_text(r, landings[r->target_count].path), .bytes = landings[r->target_count].total};
        if (!to->path)
            return false;
    }
    return true;
}

static bool copy_relics(decant_report *r, const dcn_relics *relics)
{
    r->relics = dcn_arena_take(&r->memory, relics->count * sizeof *r->relics);
    if (!r->relics)
        return false;
    for (r->relic_count = 0; r->relic_count < relics->count; r->relic_count++) {
        dcn_relic *to = &r->relics[r->relic_count];

        *to = relics->items[r->relic_count];
        if (!(to->path = copy_text(r, to->path)))
            return false;
    }
    return true;
}

/* What is given up: its place among that; and what of it is not needed for the output. */
static bool copy_given(decant_report *r, const dcn_routes *routes, const dcn_give *give)
{
    size_t last = 0;

    for (uint32_t i = 0; i < give->intent.giving.count; i++) {
        line *to = &r->lines[r->line_count];
        const dcn_route *route = dcn_routes_find(routes, give->sources[i], &last);

        if (route) {
            r->lines[route - routes->items].source = i;
            continue;
        }
        *to = (line){.path = copy_text(r, dcn_source_path(give->sources[i])),
                     .reason = "none of its bytes are in the output",
                     .given = true,
                     .unused = true,
                     .source = i};
        if (!to->path)
            return false;
        r->line_count++;
    }
    return true;
}

/* Sources may be gone when the report is read. */
static bool copy_routes(decant_report *r, const dcn_routes *routes, const dcn_give *give)
{
    r->lines = dcn_arena_take(&r->memory, (routes->count + give->intent.giving.count) * sizeof *r->lines);
    if (!r->lines)
        return false;
    for (r->line_count = 0; r->line_count < routes->count; r->line_count++) {
        const dcn_route *from = &routes->items[r->line_count];
        line *to = &r->lines[r->line_count];

        *to = (line){.path = copy_text(r, dcn_source_path(from->source)),
                     .bytes = from->bytes,
                     .shared = from->shared,
                     .reason = from->reason,
                     .way = from->way,
                     .given = from->given};
        if (!to->path)
            return false;
    }
    return copy_given(r, routes, give);
}

decant_status dcn_report_create(const dcn_plans *plans, const dcn_landing *landings, const dcn_relics *relics,
                                const dcn_routes *routes, dcn_give *give, const dcn_cut *cut, const char *path,
                                const char *format, decant_report **out, decant_error *err)
{
    decant_report *r = dcn_alloc(1, sizeof *r);

    if (!r || !(r->path = copy_text(r, path ? path : "")) || !copy_routes(r, routes, give) ||
        !copy_landings(r, landings, plans->count) || !copy_relics(r, relics) ||
        dcn_runs_share(&give->intent.giving.runs, &r->drained, err) || dcn_runs_share(&give->whole, &r->whole, err)) {
        decant_report_close(&r);
        return dcn_error_nomem(err);
    }
    count_plans(r, plans);
    r->format = format;
    r->staging = (uint64_t)cut->slot * (cut->slots + routes->makes);
    r->room = routes->room;
    r->free = routes->free;
    r->survives = survivals[routes->lasts];
    r->undone = routes->undone;
    r->unsure = give->unsure;
    memcpy(r->replaces, routes->replaces, sizeof r->replaces);
    *out = r;
    return DECANT_OK;
}

void dcn_report_relics(decant_report *report, const dcn_relics *relics)
{
    for (size_t i = 0; i < report->relic_count; i++)
        report->relics[i].removed = relics->items[i].removed;
}

/* One more tensor of which something overflowed; the last line counts all for which there is none. */
static void add_overflow(decant_report *r, const dcn_entry *entry, const dcn_overflow *over, decant_dtype to)
{
    size_t at = (size_t)dcn_min(r->overflow_count++, OVERFLOWS - 1);
    char name[96];

    if (at == OVERFLOWS - 1) {
        snprintf(r->overflows[at], sizeof r->overflows[at], "values in more tensors: %zu", r->overflow_count - at);
        return;
    }
    dcn_text_escape(name, sizeof name, entry->name, entry->name_len);
    snprintf(r->overflows[at], sizeof r->overflows[at],
             "%" PRIu64 " value%s in '%s' exceed%s the range of %s, the largest %.9g", over->count,
             over->count == 1 ? "" : "s", name, over->count == 1 ? "s" : "", decant_dtype_name(to), over->most);
}

void dcn_report_overflows(decant_report *r, const dcn_plans *plans)
{
    for (size_t i = 0; i < plans->count; i++)
        for (size_t k = 0; k < plans->items[i].count; k++) {
            const dcn_piece *piece = &plans->items[i].pieces[k];
            const dcn_entry *entry = piece->literal ? NULL : &plans->items[i].model->entries[piece->index];
            uint64_t offset, upto;
            dcn_overflow over;
            decant_dtype to;

            if (entry && entry->data.len &&
                dcn_cast_overflow(dcn_backing_leaf(entry->data.backing, entry->data.offset, &offset, &upto), &over,
                                  &to) &&
                over.count)
                add_overflow(r, entry, &over, to);
        }
}

void dcn_report_outcome(decant_report *report, dcn_output *const *outputs, const dcn_routes *routes, const char *proof)
{
    report->verified = proof != NULL;
    snprintf(report->digest, sizeof report->digest, "%s", proof ? proof : "");
    for (size_t i = 0; i < routes->count; i++) {
        report->lines[i].shared = routes->items[i].shared;
        report->lines[i].reason = routes->items[i].reason;
    }
    report->taken = routes->taken;
    report->published = report->durable = true;
    for (size_t i = 0; i < report->target_count; i++) {
        const dcn_output *o = outputs[i];

        report->published &= report->targets[i].published = o && o->published;
        report->durable &= report->targets[i].durable = o && o->durable;
    }
}

const char *decant_report_path(const decant_report *report)
{
    return report->path;
}

const char *decant_report_format(const decant_report *report)
{
    return report->format;
}

uint64_t decant_report_size(const decant_report *report)
{
    return report->size;
}

uint64_t decant_report_data(const decant_report *report)
{
    return report->data;
}

size_t decant_report_tensors(const decant_report *report)
{
    return report->tensors;
}

uint64_t decant_report_memory(const decant_report *report)
{
    return report->staging;
}

uint64_t decant_report_room(const decant_report *report)
{
    return report->room;
}

uint64_t decant_report_taken(const decant_report *report)
{
    return report->taken;
}

uint64_t decant_report_free(const decant_report *report)
{
    return report->free;
}

int decant_report_published(const decant_report *report)
{
    return report->published;
}

int decant_report_durable(const decant_report *report)
{
    return report->durable;
}

const char *decant_report_survives(const decant_report *report)
{
    return report->survives;
}

size_t decant_report_undone(const decant_report *report)
{
    return report->undone;
}

const char *decant_report_layout(const decant_report *report)
{
    return report->layout;
}

uint64_t decant_report_padding(const decant_report *report)
{
    return report->padding;
}

int decant_report_verified(const decant_report *report)
{
    return report->verified;
}

const char *decant_report_digest(const decant_report *report)
{
    return report->digest;
}

const char *decant_report_loss(const decant_report *report, size_t index)
{
    return index < report->loss_count ? report->losses[index].text : NULL;
}

const char *decant_report_gain(const decant_report *report, size_t index)
{
    return index < report->gain_count ? report->gains[index] : NULL;
}

const char *decant_report_replaces(const decant_report *report, size_t index)
{
    return index < DCN_REPLACES ? report->replaces[index] : NULL;
}

int decant_report_reader(const decant_report *report, size_t index, const char **program, const char **why_not)
{
    return dcn_openers_get(&report->openers, index, program, why_not);
}

int decant_report_output(const decant_report *report, size_t index, const char **path, uint64_t *bytes, int *published,
                         int *durable)
{
    const target *t = report->targets + index;

    if (index >= report->target_count)
        return 0;
    *path = t->path;
    *bytes = t->bytes;
    *published = t->published;
    *durable = t->durable;
    return 1;
}

int decant_report_superseded(const decant_report *report, size_t index, const char **path, const char **kept,
                             int *removed)
{
    if (index >= report->relic_count)
        return 0;
    *path = report->relics[index].path;
    *kept = report->relics[index].kept;
    *removed = report->relics[index].removed;
    return 1;
}

int decant_report_source(const decant_report *report, size_t index, const char **path, uint64_t *bytes,
                         const char **route, const char **reason)
{
    const line *l = report->lines + index;

    if (index >= report->line_count)
        return 0;
    *path = l->path;
    *bytes = l->bytes;
    *route = l->unused ? "remove" : l->way == DCN_DRAIN ? "drain" : l->shared ? "clone" : "copy";
    *reason = l->reason;
    return 1;
}

int decant_report_given(const decant_report *report, size_t index)
{
    return index < report->line_count && report->lines[index].given;
}

int decant_report_unsure(const decant_report *report)
{
    return report->unsure;
}

uint64_t decant_report_shared(const decant_report *report, size_t index)
{
    return index < report->line_count ? report->lines[index].shared : 0;
}

int decant_report_range(const decant_report *report, size_t index, size_t range, uint64_t *from, uint64_t *len,
                        size_t *output, uint64_t *to)
{
    const line *l = report->lines + index;
    const dcn_runs *runs;
    const dcn_run *run;

    if (!decant_report_given(report, index))
        return 0;
    runs = l->way == DCN_DRAIN ? &report->drained : &report->whole;
    if (range >= runs->begins[l->source + 1] - runs->begins[l->source])
        return 0;
    run = &runs->items[runs->begins[l->source] + range];
    *from = run->from;
    *len = run->len;
    *output = run->output;
    *to = run->to;
    return 1;
}

void decant_report_close(decant_report **report)
{
    if (*report) {
        dcn_runs_close(&(*report)->drained);
        dcn_runs_close(&(*report)->whole);
        dcn_arena_close(&(*report)->memory);
    }
    dcn_free(report);
}

const char *decant_report_overflow(const decant_report *report, size_t index)
{
    return index < report->overflow_count && index < OVERFLOWS ? report->overflows[index] : NULL;
}
