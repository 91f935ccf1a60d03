#include "pour/give.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/ckd.h"
#include "base/sort.h"
#include "base/text.h"
#include "pour/given.h"
#include "pour/probe.h"

enum { WRITE_BITS = 0222, ALL_WRITE = 02, STICKY = 01000, ASSUMED_UNIT = 64 << 10 };

bool dcn_give_any(const dcn_give *give)
{
    return give->intent.giving.count > 0;
}

bool dcn_give_drains(const dcn_give *give)
{
    return give->intent.giving.runs.count > 0;
}

void dcn_give_close(dcn_give *give)
{
    dcn_intent_close(&give->intent);
    dcn_runs_close(&give->whole);
    dcn_free(&give->sources);
}

static decant_status blame(const dcn_source *source, decant_status rc, decant_error *err)
{
    if (rc && rc != DECANT_NOMEM) {
        dcn_error_repath(err, dcn_source_path(source));
        dcn_error_side(err, DECANT_SIDE_INPUT);
    }
    return rc;
}

static decant_status refuse(decant_error *err, decant_status rc, const char *message, const char *remedy)
{
    decant_error_set(err, rc, "%s, so it cannot be given up", message);
    dcn_error_hint(err, "%s", remedy);
    return rc;
}

/* --- whose it is ----------------------------------------------------------------------------------------------------- */

/* The file as it is found by its name, without following a link at the end. */
static decant_status check_file(const dcn_facts *named, const dcn_facts *folder, const dcn_facts *facts,
                                decant_error *err)
{
    if (named->kind == DCN_KIND_LINK)
        return refuse(err, DECANT_DENIED, "this is a link, and what it leads to may be others' too",
                      "name the file itself, or copy it first (cp -L)");
    if (named->kind != DCN_KIND_REGULAR || !dcn_facts_same_file(named, facts))
        return refuse(err, DECANT_CHANGED, "another file has this name since it was opened", "start again");
    if (facts->links != 1)
        return refuse(err, DECANT_DENIED, "the file has another name too, which would lose its content",
                      "copy it first (cp), and give the copy up");
    if (facts->fixed)
        return refuse(err, DECANT_DENIED, "the file is protected against changes (immutable, append-only or sealed)",
                      "take that from it first (chattr -i -a)");
    if (!(facts->mode & WRITE_BITS))
        return refuse(err, DECANT_DENIED, "the file is read-only",
                      "allow writing to it (chmod u+w), or leave --consume out");
    if (!(folder->mode & WRITE_BITS))
        return refuse(err, DECANT_DENIED, "its folder is read-only", "allow writing to the folder (chmod u+w)");
    if (!facts->ours || (folder->mode & STICKY && !folder->ours && !facts->mine))
        return refuse(err, DECANT_DENIED, "the file is another user's", "copy it first (cp), and give the copy up");
    return DECANT_OK;
}

static decant_status check_alone(dcn_give *give, dcn_source *source, decant_error *err)
{
    decant_status rc = dcn_source_alone(source, err);

    if (rc == DECANT_BUSY)
        return refuse(err, DECANT_BUSY, "somebody has the file open",
                      "end what reads it, and try again (lsof shows it)");
    give->unsure = give->unsure || rc == DECANT_UNSUPPORTED;
    return rc == DECANT_UNSUPPORTED ? DECANT_OK : rc;
}

/* Who else gives it up has it locked, and so have we from now on. Where there are no locks it is only copied. */
static decant_status check_lock(dcn_source *source, decant_error *err)
{
    decant_status rc = dcn_source_lock(source, err);

    if (rc == DECANT_BUSY)
        return refuse(err, DECANT_BUSY, "another process has locked it, perhaps to give it up too",
                      "wait until that is done, and start again");
    return rc == DECANT_UNSUPPORTED ? DECANT_OK : rc;
}

/* The folder of a source, as the journal knows it. */
static decant_status find_folder(dcn_give *give, dcn_dir *dir, const dcn_facts *folder, dcn_dir *home, uint32_t *out,
                                 decant_error *err)
{
    dcn_facts own;
    char path[4096];
    decant_status rc = dcn_dir_stat(home, ".", &own, err);

    *out = DCN_HOME;
    if (rc || dcn_facts_same_file(&own, folder))
        return rc;
    if ((rc = dcn_dir_where(dir, path, sizeof path, err)))
        return rc;
    return dcn_intent_folder(&give->intent, path, out, err);
}

/* @param home  the source is in the folder of the outputs */
static decant_status check_moving(const dcn_give_terms *terms, dcn_dir *dir, bool home, const char *name,
                                  decant_error *err)
{
    char *moving = NULL;
    dcn_facts facts;
    decant_status rc = dcn_moving_name(name, &moving, err);

    if (rc)
        return rc;
    rc = dcn_dir_stat(dir, moving, &facts, err);
    if (rc == DECANT_OK) {
        rc = decant_error_set(err, DECANT_EXISTS, "there is a '%s', which is the name that it would have meanwhile",
                              moving);
        dcn_error_hint(err, "decant recover shows whether it is an interrupted save's; else move it away");
    }
    for (size_t i = 0; i < terms->landing_count && home && rc == DECANT_NOT_FOUND; i++)
        if (strcmp(terms->landings[i].name, moving) == 0) {
            rc = decant_error_set(err, DECANT_SAME_FILE, "the output has the name that it would have meanwhile");
            dcn_error_hint(err, "choose another name for the output");
        }
    dcn_free(&moving);
    return rc == DECANT_NOT_FOUND ? DECANT_OK : rc;
}

/* Checks a source and notes it as given up. */
static decant_status take(dcn_give *give, const dcn_give_terms *terms, dcn_source *source, dcn_dir *home,
                          decant_error *err)
{
    const dcn_facts *facts = dcn_source_facts(source);
    dcn_owned *owned = &give->intent.giving.items[give->intent.giving.count];
    dcn_dir *dir = NULL;
    char *name = NULL;
    dcn_facts named, folder;
    decant_status rc;

    if (!facts)
        return blame(source, refuse(err, DECANT_UNSUPPORTED, "it is no file", "leave --consume out"), err);
    if (dcn_source_moved_to(source)) {
        decant_error_set(err, DECANT_NOT_FOUND, "it was given up before, and its bytes are in another file");
        if (*dcn_source_moved_to(source))
            dcn_error_hint(err, "open '%s'", dcn_source_moved_to(source));
        return blame(source, DECANT_NOT_FOUND, err);
    }
    if ((rc = dcn_io_split(home->io, dcn_source_path(source), &dir, &name, err)) ||
        (rc = dcn_dir_stat(dir, name, &named, err)) || (rc = dcn_dir_stat(dir, ".", &folder, err)) ||
        (rc = check_file(&named, &folder, facts, err)) ||
        (rc = find_folder(give, dir, &folder, home, &owned->folder, err)) ||
        (rc = check_moving(terms, dir, owned->folder == DCN_HOME, name, err)) ||
        (rc = check_alone(give, source, err)) || (rc = check_lock(source, err)))
        goto done;
    owned->file = dcn_identity_of(facts);
    owned->mtime = facts->mtime;
    if (!(owned->name = dcn_arena_copy(&give->intent.memory, name, strlen(name) + 1))) {
        rc = dcn_error_nomem(err);
        goto done;
    }
    give->sources[give->intent.giving.count++] = source;
done:
    dcn_free(&name);
    dcn_dir_close(&dir);
    return blame(source, rc, err);
}

/* What is given up is not replaced by what it is given up for. */
static decant_status check_outputs(const dcn_give_terms *terms, dcn_dir *home, decant_error *err)
{
    for (size_t i = 0; i < terms->landing_count; i++) {
        dcn_facts old;
        decant_status rc = dcn_dir_stat(home, terms->landings[i].name, &old, err);

        if (rc && rc != DECANT_NOT_FOUND)
            return rc;
        for (size_t k = 0; rc == DECANT_OK && k < terms->count; k++) {
            const dcn_facts *facts = dcn_source_facts(terms->owned[k]);

            if (!facts || !dcn_facts_same_file(facts, &old))
                continue;
            decant_error_set(err, DECANT_SAME_FILE, "the output is one of the inputs that are given up");
            dcn_error_hint(err, "choose another name; decant edit changes a file in its place");
            dcn_error_repath(err, terms->landings[i].path);
            dcn_error_side(err, DECANT_SIDE_OUTPUT);
            return DECANT_SAME_FILE;
        }
    }
    return DECANT_OK;
}

static decant_status take_all(dcn_give *give, const dcn_give_terms *terms, dcn_dir *home, decant_error *err)
{
    decant_status rc = DECANT_OK;

    give->intent.giving.items = dcn_alloc(terms->count, sizeof *give->intent.giving.items);
    give->sources = dcn_alloc(terms->count, sizeof(dcn_source *));
    if (!give->intent.giving.items || !give->sources)
        return dcn_error_nomem(err);
    for (size_t i = 0; i < terms->count && rc == DECANT_OK; i++)
        rc = take(give, terms, terms->owned[i], home, err);
    return rc;
}

/* Recovery has all of them open too, and so must be able to. */
static decant_status check_open(const dcn_give *give, const dcn_routes *routes, const dcn_plans *plans,
                                const dcn_space *space, decant_error *err)
{
    enum { KEPT = 64 }; /* for the journal, and what else the process has open */
    uint64_t needed = KEPT + (uint64_t)plans->count + routes->count + give->intent.folder_count;
    size_t last = 0;

    for (size_t i = 0; i < give->intent.giving.count; i++)
        needed += !dcn_routes_find(routes, give->sources[i], &last);
    if (needed <= space->files)
        return DECANT_OK;
    decant_error_set(err, DECANT_LIMIT, "giving the inputs up takes more open files than this process may have");
    dcn_error_found(err, "a limit of %" PRIu64 " for this process", space->files);
    dcn_error_expected(err, "at least %" PRIu64, needed);
    dcn_error_hint(err, "raise the limit with ulimit -n %" PRIu64 ", or give fewer up at once", needed);
    dcn_error_side(err, DECANT_SIDE_OUTPUT);
    return DECANT_LIMIT;
}

/* --- what is in the outputs -------------------------------------------------------------------------------------------- */

static size_t find_source(const dcn_give *give, const dcn_source *source, size_t *last)
{
    if (*last < give->intent.giving.count && give->sources[*last] == source)
        return *last;
    for (*last = 0; *last < give->intent.giving.count && give->sources[*last] != source; ++*last)
        ;
    return *last;
}

/* All bytes of what is given up that stand in outputs unchanged. */
static decant_status collect_runs(const dcn_give *give, const dcn_plans *plans, dcn_runs *runs, decant_error *err)
{
    size_t last = 0;
    decant_status rc = DECANT_OK;

    for (size_t i = 0; i < plans->count && rc == DECANT_OK; i++) {
        dcn_steps steps = dcn_steps_of(&plans->items[i]);
        dcn_step step;

        while (rc == DECANT_OK && dcn_steps_next(&steps, &step)) {
            size_t source = step.kind == DCN_STEP_RUN ? find_source(give, step.source, &last) : SIZE_MAX;

            if (source < give->intent.giving.count)
                rc = dcn_runs_add(runs,
                                  &(dcn_run){.from = step.from,
                                             .to = step.at,
                                             .len = step.len,
                                             .source = (uint32_t)source,
                                             .output = (uint32_t)i},
                                  err);
        }
    }
    return rc ? rc : dcn_runs_finish(runs, give->intent.giving.count, err);
}

/* What is in no output as it is, by kind. */
enum { TENSORS, VALUES, REMAINDERS, KINDS };

typedef struct losses {
    size_t count[KINDS];
    const dcn_claim *first[KINDS];
} losses;

/* What the outputs hold. */
typedef struct content {
    const dcn_runs *runs;
    const decant_model *model;
    dcn_chunk *empties; /* names, sorted, that empty tensors have in the inputs: no byte shows where they are */
    size_t empty_count;
} content;

static int by_name(const void *a, const void *b)
{
    const dcn_chunk *x = a, *y = b;
    int order = memcmp(x->data, y->data, dcn_min(x->len, y->len));

    return order ? order : (x->len > y->len) - (x->len < y->len);
}

static decant_status list_empties(content *all, decant_error *err)
{
    const decant_model *model = all->model;

    if (!(all->empties = dcn_alloc(model->count, sizeof *all->empties)))
        return dcn_error_nomem(err);
    for (size_t i = 0; i < model->count; i++)
        if (!model->entries[i].data.len)
            all->empties[all->empty_count++] = model->origins
                                                   ? (dcn_chunk){model->origins[i].name, model->origins[i].name_len}
                                                   : (dcn_chunk){model->entries[i].name, model->entries[i].name_len};
    dcn_sort(all->empties, all->empty_count, sizeof *all->empties, by_name);
    return DECANT_OK;
}

static bool is_covered(const dcn_claim *c, const content *all, uint32_t source)
{
    const dcn_value *value;
    uint64_t from, upto;

    if (c->kind == DCN_CLAIM_SKIPPED)
        return false;
    if (c->kind != DCN_CLAIM_TENSOR) {
        value = dcn_model_value(all->model, c->name, c->name_len, c->kind == DCN_CLAIM_TEXT);
        return value && dcn_value_print(&value->value) == c->print;
    }
    if (!c->len)
        return bsearch(&(dcn_chunk){c->name, c->name_len}, all->empties, all->empty_count, sizeof *all->empties,
                       by_name) != NULL;
    return dcn_runs_cover(all->runs, source, c->at, c->at + c->len, UINT64_MAX, &from, &upto) && from == c->at &&
           upto == c->at + c->len;
}

static void count_losses(const dcn_give *give, const content *all, uint32_t source, losses *lost)
{
    const dcn_claim *claims;
    size_t count = dcn_source_claims(give->sources[source], &claims);

    for (size_t i = 0; i < count; i++) {
        const dcn_claim *c = &claims[i];

        unsigned kind = c->kind == DCN_CLAIM_TENSOR ? TENSORS : c->kind == DCN_CLAIM_SKIPPED ? REMAINDERS : VALUES;

        if (!is_covered(c, all, source) && !lost->count[kind]++)
            lost->first[kind] = c;
    }
}

static decant_status destroys(const losses *lost, decant_error *err)
{
    size_t more = lost->count[TENSORS] + lost->count[VALUES] + lost->count[REMAINDERS] - 1;
    unsigned kind = 0;
    char name[200];

    while (!lost->count[kind])
        kind++;
    dcn_text_escape(name, sizeof name, lost->first[kind]->name, lost->first[kind]->name_len);
    if (kind == TENSORS)
        decant_error_set(err, DECANT_LOSS, "giving the file up would destroy what is in no output as it is");
    else if (kind == VALUES)
        decant_error_set(err, DECANT_LOSS,
                         "giving the file up would destroy its metadata '%s', which is in no output as it is", name);
    else
        decant_error_set(err, DECANT_LOSS, "giving the file up would destroy what was skipped in it (%s)", name);
    if (kind == TENSORS)
        dcn_error_tensor(err, lost->first[kind]->name, lost->first[kind]->name_len);
    if (more)
        dcn_error_found(err, "%zu more like it", more);
    dcn_error_hint(err, "leave --consume out, or --allow loss destroys it");
    return DECANT_LOSS;
}

/* All that is in what is given up is in the outputs, bit for bit; what is not is told, or refused. */
static decant_status check_covered(const dcn_give *give, const dcn_give_terms *terms, const dcn_runs *runs,
                                   dcn_plans *plans, decant_error *err)
{
    static const char *const names[KINDS] = {"destroyed tensor", "destroyed value", "destroyed remainder"};
    content all = {.runs = runs, .model = plans->items[0].model};
    losses lost = {0};
    decant_status rc = list_empties(&all, err);

    for (uint32_t i = 0; i < give->intent.giving.count && rc == DECANT_OK; i++) {
        losses before = lost;

        count_losses(give, &all, i, &lost);
        if (!terms->lose && memcmp(before.count, lost.count, sizeof lost.count) != 0)
            rc = blame(give->sources[i], destroys(&lost, err), err);
    }
    for (unsigned k = 0; k < KINDS && rc == DECANT_OK; k++)
        if (lost.count[k])
            dcn_plans_lose(plans, lost.count[k], names[k], lost.first[k]->name, lost.first[k]->name_len);
    dcn_free(&all.empties);
    return rc;
}

/* --- routes ------------------------------------------------------------------------------------------------------------ */

/* What is known of the file system that the outputs come to. */
typedef struct ground {
    const dcn_facts *folder;
    const dcn_space *space; /* as its kind has it */
    bool frees;             /* what is punched out */
    uint64_t unit;          /* that is freed at once */
} ground;

/* What the file system does, where its kind promises something that is wanted of it. */
static decant_status try_out(dcn_give *give, dcn_routes *routes, dcn_dir *home, ground *g, decant_error *err)
{
    size_t last = 0;
    bool drains = false;
    dcn_probe probe;
    decant_status rc = dcn_probe_open(&probe, home, g->space, err);

    for (size_t i = 0; i < give->intent.giving.count && rc == DECANT_OK; i++) {
        dcn_route *route = dcn_routes_find(routes, give->sources[i], &last);
        bool clones = route && route->way == DCN_CLONE, shares = false;

        if (clones && (rc = dcn_probe_clone(&probe, give->sources[i], &shares, err)))
            break;
        drains = drains || (route && !shares);
        if (clones && !shares) {
            routes->shared -= route->shared;
            routes->room += route->shared;
            dcn_route_copy(route);
        }
    }
    if (rc == DECANT_OK && drains && g->frees)
        rc = dcn_probe_punch(&probe, &g->frees, &g->unit, err);
    dcn_probe_close(&probe);
    if (rc && rc != DECANT_NOMEM) {
        dcn_error_path(err, home->path);
        dcn_error_side(err, DECANT_SIDE_OUTPUT);
    }
    return rc;
}

/* Why a source cannot be drained; NULL: it can be, as far as can be told without trying. */
static const char *why_not(const dcn_give *give, size_t i, const dcn_runs *runs, const ground *g)
{
    dcn_extents extents;

    if (runs->count > DCN_RUNS_MOST)
        return "in too many pieces to be moved";
    if (give->intent.giving.items[i].file.dev != g->folder->dev)
        return "not on the file system of the output";
    if (!g->frees)
        return g->space->punches ? "a try showed that the file system does not free parts of a file"
                                 : "the file system cannot free parts of a file";
    if (!dcn_runs_end(runs, (uint32_t)i))
        return "none of its bytes stay as they are";
    if (dcn_source_extents(give->sources[i], &extents, NULL) == DECANT_OK && extents.shared)
        return "its blocks are another file's too, so moving them frees nothing";
    if (dcn_source_lock(give->sources[i], NULL) == DECANT_UNSUPPORTED)
        return "files cannot be locked there";
    return NULL;
}

static decant_status require_move(const dcn_source *source, const char *reason, decant_error *err)
{
    decant_error_set(err, DECANT_UNSUPPORTED, "it would be copied, not moved: %s", reason);
    dcn_error_hint(err, "let it be copied (DECANT_CONSUME), or have input and output where it can be moved");
    return blame(source, DECANT_UNSUPPORTED, err);
}

/* What shares blocks is not touched until the end; else what can be drained is. */
static decant_status choose_routes(dcn_give *give, const dcn_give_terms *terms, dcn_routes *routes,
                                   const dcn_runs *runs, const ground *g, decant_error *err)
{
    size_t last = 0;

    for (size_t i = 0; i < give->intent.giving.count; i++) {
        dcn_route *route = dcn_routes_find(routes, give->sources[i], &last);
        const char *reason;

        if (!route)
            continue;
        route->given = true;
        if (route->way == DCN_CLONE)
            continue;
        reason = why_not(give, i, runs, g);
        if (reason && terms->require)
            return require_move(give->sources[i], reason, err);
        route->way = reason ? DCN_COPY : DCN_DRAIN;
        if (reason) /* else why it is not shared */
            route->reason = reason;
        give->intent.giving.items[i].drained = !reason;
    }
    return DECANT_OK;
}

/* Parts the runs of what is drained from those of what stays whole until the end. */
static decant_status part_runs(dcn_give *give, decant_error *err)
{
    const dcn_giving *giving = &give->intent.giving;
    dcn_runs *runs = &give->intent.giving.runs;
    size_t kept = 0, drained = 0;
    decant_status rc = DECANT_OK;

    for (size_t i = 0; i < giving->count; i++)
        drained += giving->items[i].drained;
    if (!drained) {
        give->whole = *runs;
        *runs = (dcn_runs){0};
        return DECANT_OK;
    }
    for (size_t i = 0; i < runs->count && rc == DECANT_OK; i++)
        if (giving->items[runs->items[i].source].drained)
            runs->items[kept++] = runs->items[i];
        else
            rc = dcn_runs_add(&give->whole, &runs->items[i], err);
    runs->count = kept;
    dcn_free(&runs->begins);
    return rc || (rc = dcn_runs_finish(&give->whole, giving->count, err)) ? rc
                                                                          : dcn_runs_finish(runs, giving->count, err);
}

/* --- room -------------------------------------------------------------------------------------------------------------- */

/* A walk through the batches in units: what the parts hold, and what the sources have given. */
typedef struct walk {
    const dcn_giving *giving;
    const dcn_plans *plans;
    const dcn_run **by_output; /* the runs, by their places there */
    uint8_t **touched;         /* by output, a bit a unit: it counts */
    uint64_t held, top;        /* bytes of the parts; beyond the inputs, at the highest point */
    uint64_t room;             /* that the batch still takes */
    uint64_t freed, last, now; /* of the sources; what the batch before this one frees, and this one */
} walk;

static void touch(walk *w, uint32_t output, uint64_t from, uint64_t upto)
{
    uint64_t unit = w->giving->unit;

    for (uint64_t k = from / unit; from < upto && k <= (upto - 1) / unit; k++) {
        uint8_t *byte = &w->touched[output][k / 8], bit = (uint8_t)(1 << k % 8);

        w->held += *byte & bit ? 0 : unit;
        *byte |= bit;
    }
}

/* What is written before anything is drained: what is held back, and all that is in no run. */
static void touch_rest(walk *w)
{
    size_t next = 0;

    for (uint32_t i = 0; i < w->plans->count; i++) {
        uint64_t upto = 0;

        touch(w, i, 0, w->plans->items[i].held);
        for (; next < w->giving->runs.count && w->by_output[next]->output == i; next++) {
            touch(w, i, upto, w->by_output[next]->to);
            upto = w->by_output[next]->to + w->by_output[next]->len;
        }
        touch(w, i, upto, w->plans->items[i].total);
    }
}

/* Bytes of a source that can go when its mark comes from `from` to `upto`, in whole units; the last may be a short one. */
static uint64_t count_freed(const dcn_giving *giving, uint32_t source, uint64_t from, uint64_t upto)
{
    uint64_t unit = giving->unit, size = giving->items[source].file.size, freed = 0, begin, end;

    for (uint64_t at = from / unit * unit; dcn_runs_cover(&giving->runs, source, at, upto, UINT64_MAX, &begin, &end);
         at = end) {
        uint64_t first = (begin + unit - 1) / unit * unit, last = end == size ? end : end / unit * unit;

        freed += last > first ? last - first : 0;
    }
    return freed;
}

static void end_batch(walk *w)
{
    if (w->held > w->freed && w->held - w->freed > w->top)
        w->top = w->held - w->freed;
    w->freed += w->last;
    w->last = w->now;
    w->now = 0;
    w->room = w->giving->batch;
}

static void walk_source(walk *w, uint32_t source)
{
    uint64_t begin, end;

    for (uint64_t at = 0; dcn_runs_cover(&w->giving->runs, source, at, UINT64_MAX, w->room, &begin, &end); at = end) {
        dcn_places places = dcn_places_of(&w->giving->runs, source, begin, end);
        dcn_placing p;

        while (dcn_places_next(&places, &p))
            touch(w, p.output, p.to, p.to + p.len);
        w->now += count_freed(w->giving, source, at, end);
        w->room -= end - begin;
        if (!w->room)
            end_batch(w);
    }
}

static int by_place(const void *a, const void *b)
{
    const dcn_run *x = *(const dcn_run *const *)a, *y = *(const dcn_run *const *)b;

    if (x->output != y->output)
        return x->output < y->output ? -1 : 1;
    return (x->to > y->to) - (x->to < y->to);
}

static decant_status begin_walk(walk *w, decant_error *err)
{
    const dcn_runs *runs = &w->giving->runs;

    w->by_output = dcn_alloc(runs->count, sizeof(const dcn_run *));
    w->touched = dcn_alloc(w->plans->count, sizeof(uint8_t *));
    if (!w->by_output || !w->touched)
        return dcn_error_nomem(err);
    for (size_t i = 0; i < runs->count; i++)
        w->by_output[i] = &runs->items[i];
    dcn_sort(w->by_output, runs->count, sizeof(const dcn_run *), by_place);
    for (size_t i = 0; i < w->plans->count; i++)
        if (!(w->touched[i] = dcn_alloc((size_t)(w->plans->items[i].total / w->giving->unit / 8 + 1), 1)))
            return dcn_error_nomem(err);
    return DECANT_OK;
}

/* Bytes beyond the inputs at the highest point, with this size of batches. */
static decant_status walk_all(const dcn_giving *giving, const dcn_plans *plans, uint64_t *top, decant_error *err)
{
    walk w = {.giving = giving, .plans = plans, .room = giving->batch};
    decant_status rc = begin_walk(&w, err);

    if (rc == DECANT_OK) {
        touch_rest(&w);
        w.top = w.held;
        for (uint32_t i = 0; i < giving->count; i++)
            if (giving->items[i].drained)
                walk_source(&w, i);
        end_batch(&w);
        *top = w.top;
    }
    for (size_t i = 0; w.touched && i < plans->count; i++)
        dcn_free(&w.touched[i]);
    dcn_free(&w.touched);
    dcn_free(&w.by_output);
    return rc;
}

/* Bytes of [from, upto), which is in no run, that are written anew; else the extents at both its ends stay. */
static uint64_t count_gap(uint64_t from, uint64_t upto, uint64_t unit, uint64_t extent)
{
    uint64_t kept = from < upto ? (upto + unit - 1) / unit * unit - from / unit * unit : 0;

    return kept > DCN_RENEWED_MOST ? 2 * extent : kept;
}

/*
 * What is not free although it is given up, where that are whole extents only: one that a mark divides, and what gaps keep.
 */
static uint64_t count_extents(const dcn_give *give)
{
    const dcn_giving *giving = &give->intent.giving;
    uint64_t divided = 0, kept = 0;
    dcn_extents extents;

    for (uint32_t i = 0; i < giving->count; i++) {
        uint64_t size = giving->items[i].file.size, at = 0, begin, end, all = 0;

        if (!giving->items[i].drained || dcn_source_extents(give->sources[i], &extents, NULL) || !extents.largest)
            continue;
        for (; dcn_runs_cover(&giving->runs, i, at, UINT64_MAX, UINT64_MAX, &begin, &end); at = end)
            all += count_gap(at, begin, giving->unit, extents.largest);
        all += count_gap(at, size, giving->unit, extents.largest);
        kept += dcn_min(all, size);
        divided = divided > extents.largest ? divided : extents.largest;
    }
    return divided + kept;
}

/* Smaller batches need less room and take longer. */
static decant_status find_room(dcn_give *give, const dcn_give_terms *terms, const dcn_plans *plans,
                               const dcn_space *space, dcn_routes *routes, decant_error *err)
{
    enum {
        SPARE = 2,    /* units */
        BEGIN = 4096, /* bytes of a journal without its cells and runs */
        ABOUT = 8192  /* of what is kept about a file: where its pieces lie, the note on one that is given up */
    };
    dcn_giving *giving = &give->intent.giving;
    uint64_t more = count_extents(give) + BEGIN + ABOUT * (giving->count + plans->count), top = 0;
    decant_status rc;

    for (giving->batch = terms->batch;; giving->batch /= 2) {
        if ((rc = walk_all(giving, plans, &top, err)))
            return rc;
        routes->room = top + SPARE * giving->unit + more + giving->runs.count * sizeof(dcn_run) +
                       dcn_intent_cells(&give->intent) * DCN_JOURNAL_CELL;
        routes->room -= dcn_min(routes->room, routes->shared);
        if (routes->room <= space->free || giving->batch / 2 < terms->least)
            return DECANT_OK;
    }
}

decant_status dcn_give_plan(dcn_give *give, const dcn_give_terms *terms, dcn_routes *routes, dcn_plans *plans,
                            dcn_dir *home, const dcn_space *space, decant_error *err)
{
    dcn_giving *giving = &give->intent.giving;
    dcn_runs *runs = &giving->runs;
    dcn_facts folder;
    ground g = {
        .folder = &folder, .space = space, .frees = space->punches, .unit = space->unit ? space->unit : ASSUMED_UNIT};
    decant_status rc;

    if (!terms->count)
        return DECANT_OK;
    if ((rc = dcn_dir_stat(home, ".", &folder, err)) || (rc = check_outputs(terms, home, err)) ||
        (rc = take_all(give, terms, home, err)) || (rc = check_open(give, routes, plans, space, err)) ||
        (rc = collect_runs(give, plans, runs, err)) || (rc = check_covered(give, terms, runs, plans, err)) ||
        (terms->tries && (rc = try_out(give, routes, home, &g, err))) ||
        (rc = choose_routes(give, terms, routes, runs, &g, err)) || (rc = part_runs(give, err)))
        return rc;
    if (dcn_give_drains(give) && folder.mode & ALL_WRITE && !(folder.mode & STICKY)) {
        decant_error_set(err, DECANT_DENIED, "everybody may write to the folder, so a journal in it means nothing");
        dcn_error_hint(err, "choose another folder, or take that from the others (chmod o-w or +t)");
        dcn_error_side(err, DECANT_SIDE_OUTPUT);
        return DECANT_DENIED;
    }
    /* the room is that of the plan, where the unit is no larger than it was taken for */
    giving->unit = g.unit > space->unit ? g.unit : space->unit;
    if (dcn_give_drains(give) && (rc = find_room(give, terms, plans, space, routes, err)))
        return rc;
    giving->unit = g.unit;
    return DECANT_OK;
}
