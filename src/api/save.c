#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/relics.h"
#include "api/report.h"
#include "base/alloc.h"
#include "base/arena.h"
#include "base/ckd.h"
#include "base/text.h"
#include "format/format.h"
#include "pour/give.h"
#include "pour/recover.h"
#include "survey/digest.h"

enum { DEFAULT_ALIGN = 4096, LEAST_ALIGN = 256, MOST_ALIGN = 1 << 30 };

/* A save under way. */
typedef struct saving {
    const dcn_env *env;
    const decant_model *model;
    const dcn_target *target;
    decant_save_options options;
    const dcn_format *format;
    char *path; /* of a file, with its extension */
    dcn_dir *dir;
    char *name;
    dcn_plans plans;
    dcn_routes routes;
    dcn_source **sources;  /* those of the routes */
    dcn_arena memory;      /* paths of landings */
    dcn_landing *landings; /* one a plan */
    dcn_output **outputs;  /* likewise; NULL: not made yet */
    dcn_journal journal;   /* of several files, and where files are drained */
    dcn_source **owned;    /* that may be given up */
    size_t owned_count;
    dcn_give give;              /* what is */
    char digest[DECANT_DIGEST]; /* of what was read back; "": not known */
    dcn_relics relics;          /* what the outputs supersede */
} saving;

static bool is_file(const saving *s)
{
    return s->target->path != NULL;
}

/* "burnpack, safetensors" or ".bpk, .safetensors": what can be written. */
static void list_formats(char *out, size_t size, bool extensions)
{
    size_t used = 0;
    const dcn_format *format;

    out[0] = '\0';
    for (size_t i = 0; (format = dcn_format_at(i)) && used < size; i++)
        if (format->emit)
            used += (size_t)snprintf(out + used, size - used, "%s%s%s", used ? ", " : "", extensions ? "." : "",
                                     extensions ? format->extensions[0] : format->name);
}

static decant_status choose_format(saving *s, decant_error *err)
{
    const char *wanted = s->options.format;
    char known[128];
    decant_status rc = DECANT_OK;

    s->format = wanted ? dcn_format_named(wanted) : is_file(s) ? dcn_format_for_path(s->target->path) : NULL;
    if (s->target->format)
        s->format = s->target->format;
    if (!s->format && wanted)
        rc = decant_error_set(err, DECANT_UNSUPPORTED, "no format is called '%s'", wanted);
    else if (!s->format)
        rc = decant_error_set(err, DECANT_UNSUPPORTED, "%s does not say which format is wanted",
                              is_file(s) ? "the extension" : "this output");
    else if (!s->format->emit)
        rc = decant_error_set(err, DECANT_UNSUPPORTED, "%s is read, not written", s->format->name);
    if (rc) {
        bool by_extension = is_file(s) && !wanted;

        list_formats(known, sizeof known, by_extension);
        dcn_error_hint(err, by_extension ? "let its name end in one of %s" : "name one of %s", known);
        dcn_error_side(err, DECANT_SIDE_OUTPUT);
    }
    return rc;
}

/*
 * Where an extension is to be put: burn-pack's rule (0.23.0-pre.1, src/writer.rs, after Rust's Path). ".hidden" has none,
 * "v1.0" and "model." have one; slashes and "/." at the end go. NULL: it has one, or no last component to take one.
 */
static const char *bare_end(const char *path)
{
    const char *end = path + strlen(path), *last;

    while (end - path > 1 && (end[-1] == '/' || (end[-1] == '.' && end[-2] == '/')))
        end--;
    for (last = end; last > path && last[-1] != '/'; last--)
        ;
    if (last == end || (end - last == 1 && *last == '.') || memchr(last + 1, '.', (size_t)(end - last - 1)))
        return NULL;
    return end;
}

static decant_status choose_path(saving *s, decant_error *err)
{
    const char *path = s->target->path, *end = s->options.append_extension ? bare_end(path) : NULL;
    dcn_buf out = {0};
    decant_status rc;

    dcn_buf_put(&out, path, end ? (size_t)(end - path) : strlen(path));
    if (end) {
        dcn_buf_byte(&out, '.');
        dcn_buf_text(&out, s->format->extensions[0]);
    }
    dcn_buf_byte(&out, '\0');
    if ((rc = dcn_buf_check(&out, err)))
        dcn_buf_close(&out);
    else
        s->path = (char *)out.data;
    return rc;
}

static decant_status check_layout(const decant_save_options *options, decant_error *err)
{
    uint64_t align = options->align;

    if ((unsigned)options->layout > DECANT_LAYOUT_CONGRUENT)
        return decant_error_set(err, DECANT_BAD_CALL, "layout %d is none of decant_layout", (int)options->layout);
    if (!align)
        return DECANT_OK;
    if (options->layout != DECANT_LAYOUT_ALIGNED)
        return decant_error_set(err, DECANT_BAD_CALL, "an alignment without the aligned layout");
    if (align < LEAST_ALIGN || align > MOST_ALIGN || align & (align - 1)) {
        decant_error_set(err, DECANT_BAD_CALL, "no alignment");
        dcn_error_found(err, "%" PRIu64 " bytes", align);
        dcn_error_expected(err, "a power of two from %d to %d", LEAST_ALIGN, MOST_ALIGN);
        return DECANT_BAD_CALL;
    }
    return DECANT_OK;
}

static decant_status check_set(const saving *s, decant_error *err)
{
    if (!s->options.max_shard || s->format->has_sets)
        return DECANT_OK;
    decant_error_set(err, DECANT_UNSUPPORTED, "%s has no sets of several files", s->format->name);
    dcn_error_hint(err, "leave --max-shard-size out, or choose safetensors");
    dcn_error_side(err, DECANT_SIDE_OUTPUT);
    return DECANT_UNSUPPORTED;
}

/* The last component of a path, or what a set is named for where there is no path. */
static const char *bare_name(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;

    return slash ? slash + 1 : path ? path : "model";
}

static decant_status emit(saving *s, decant_error *err)
{
    const char *from = s->model->format;
    dcn_layout how = {
        .allow = s->options.allow,
        .layout = s->options.layout,
        .align = s->options.align ? s->options.align : DEFAULT_ALIGN,
        .max_shard = s->options.max_shard,
        .name = bare_name(s->path),
        .loaders_format = from && strcmp(from, s->format->name) != 0 && !s->model->no_format,
    };
    decant_status rc;

    if ((rc = check_layout(&s->options, err)) || (rc = check_set(s, err)) ||
        (rc = dcn_plan_check_model(s->model, err)) || (rc = s->format->emit(s->model, &how, &s->plans, err)))
        return rc;
    return dcn_plans_check_losses(&s->plans, s->format->name, s->options.allow, err);
}

typedef struct guess {
    dcn_dir *dir;
    const char *wanted;
    char best[256];
    size_t distance; /* 0: what is wanted is there, and is no folder */
} guess;

static bool may_be_folder(dcn_dir *dir, const char *name)
{
    dcn_facts facts;

    return dcn_dir_stat(dir, name, &facts, NULL) == DECANT_OK &&
           (facts.kind == DCN_KIND_FOLDER || facts.kind == DCN_KIND_LINK);
}

static int compare_name(void *ctx, const char *name)
{
    guess *g = ctx;
    size_t d = dcn_text_distance(name, strlen(name), g->wanted, strlen(g->wanted), g->distance);

    if (d < g->distance && (d == 0 || may_be_folder(g->dir, name))) {
        g->distance = d;
        memcpy(g->best, name, strlen(name) + 1); /* fits: longer names are far from everything */
    }
    return 0;
}

/* There is no such folder: one beside it may have been meant. Not being able to look is no failure of its own. */
static decant_status miss_folder(dcn_io *io, const char *folder, decant_error *err)
{
    enum { CLOSE = 3 };
    guess g = {.distance = CLOSE};
    dcn_dir *parent = NULL;
    char *name = NULL;

    decant_error_set(err, DECANT_NOT_FOUND, "there is no folder '%s'", folder);
    if (dcn_io_split(io, folder, &parent, &name, NULL) == DECANT_OK) {
        g.dir = parent;
        g.wanted = name;
        dcn_dir_list(parent, compare_name, &g, NULL);
    }
    if (g.distance == 0)
        dcn_error_hint(err, "it is a file: name a folder");
    else if (g.best[0])
        dcn_error_hint(err, "did you mean '%s'?", g.best);
    else
        dcn_error_hint(err, "make it first");
    dcn_dir_close(&parent);
    dcn_free(&name);
    return DECANT_NOT_FOUND;
}

/* The folder that the output is to lie in. */
static decant_status open_folder(saving *s, decant_error *err)
{
    const char *slash = strrchr(s->path, '/');
    char *folder;
    decant_status rc = dcn_io_split(s->env->io, s->path, &s->dir, &s->name, err);

    if (rc == DECANT_NOT_FOUND && slash && slash > s->path &&
        (folder = dcn_strndup(s->path, (size_t)(slash - s->path)))) {
        rc = miss_folder(s->env->io, folder, err);
        dcn_free(&folder);
    }
    if (rc && rc != DECANT_NOMEM)
        dcn_error_side(err, DECANT_SIDE_OUTPUT);
    return rc;
}

static decant_status list_sources(saving *s, decant_error *err)
{
    s->sources = dcn_alloc(s->routes.count, sizeof(dcn_source *));
    if (!s->sources)
        return dcn_error_nomem(err);
    for (size_t i = 0; i < s->routes.count; i++)
        s->sources[i] = s->routes.items[i].source;
    return DECANT_OK;
}

/* Where each plan lands, and what people call that. */
static decant_status land(saving *s, decant_error *err)
{
    s->landings = dcn_alloc(s->plans.count, sizeof *s->landings);
    if (!s->landings)
        return dcn_error_nomem(err);
    for (size_t i = 0; i < s->plans.count; i++) {
        const dcn_plan *plan = &s->plans.items[i];
        dcn_landing *to = &s->landings[i];
        char *path = NULL;

        *to = (dcn_landing){plan->name ? plan->name : s->name, s->path ? s->path : "", plan->total};
        if (!plan->name)
            continue;
        path = s->dir ? dcn_io_join(s->dir->path, plan->name) : dcn_strndup(plan->name, strlen(plan->name));
        if (!path || dcn_arena_adopt(&s->memory, path)) {
            dcn_free(&path);
            return dcn_error_nomem(err);
        }
        to->path = path;
    }
    return DECANT_OK;
}

/* What is read back is a file that is not in place yet. */
static decant_status check_verify(const saving *s, decant_error *err)
{
    if (!s->options.verify || s->target->kind == DCN_TO_FILE || s->target->kind == DCN_TO_NOWHERE)
        return DECANT_OK;
    (void)decant_error_set(err, DECANT_BAD_CALL, "only a file that is saved as a whole is read back");
    dcn_error_hint(err, "save it to a path, or leave verify out");
    return DECANT_BAD_CALL;
}

/* One place holds one output. */
static decant_status check_count(const saving *s, decant_error *err)
{
    decant_status rc;

    if (s->plans.count == 1 || s->target->kind == DCN_TO_FILE || s->target->kind == DCN_TO_NOWHERE)
        return DECANT_OK;
    rc = decant_error_set(err, DECANT_UNSUPPORTED, "this place holds one output");
    dcn_error_found(err, "%zu", s->plans.count);
    dcn_error_expected(err, "1");
    dcn_error_hint(err, "save to a path, beside which the others can lie, or ask for one output");
    dcn_error_side(err, DECANT_SIDE_OUTPUT);
    return rc;
}

/* Earlier saves that were interrupted. What is going to be removed may be of one, too, and all that there is of it. */
static decant_status clear_leftovers(saving *s, bool plan_only, decant_error *err)
{
    size_t removals = s->options.prune ? s->relics.removal_count : 0, count = s->plans.count;
    dcn_landing *all = dcn_alloc(count + removals, sizeof *all);
    decant_status rc;

    if (!all)
        return dcn_error_nomem(err);
    memcpy(all, s->landings, count * sizeof *all);
    for (size_t i = 0; i < removals; i++)
        all[count + i] = (dcn_landing){.name = s->relics.removals[i].name, .path = s->relics.removals[i].name};
    rc = dcn_leftovers_clear(s->dir, all, count + removals, plan_only, &s->routes.undone, err);
    dcn_free(&all);
    return rc;
}

/* All that may be given up: what is read, and what the model was opened through. */
static decant_status list_owned(saving *s, decant_error *err)
{
    size_t most = s->routes.count + s->model->owned_count;

    if (!(s->owned = dcn_alloc(most, sizeof(dcn_source *))))
        return dcn_error_nomem(err);
    for (size_t i = 0; i < s->routes.count; i++)
        if (dcn_source_is_owned(s->sources[i]))
            s->owned[s->owned_count++] = s->sources[i];
    for (size_t i = 0; i < s->model->owned_count; i++) {
        size_t last = 0;

        if (!dcn_routes_find(&s->routes, s->model->owned[i], &last))
            s->owned[s->owned_count++] = s->model->owned[i];
    }
    return DECANT_OK;
}

static decant_status give(saving *s, const dcn_space *space, bool plan_only, decant_error *err)
{
    dcn_give_terms terms = {
        .landings = s->landings,
        .landing_count = s->plans.count,
        .tries = !plan_only,
        .require = s->options.consume == DECANT_CONSUME_REQUIRE,
        .lose = s->options.allow & DECANT_ALLOW_LOSS,
        .batch = s->env->cut.batch,
        .least = s->env->cut.least_batch,
    };
    decant_status rc = list_owned(s, err);

    terms.owned = s->owned;
    terms.count = s->owned_count;
    if (rc || (rc = dcn_give_plan(&s->give, &terms, &s->routes, &s->plans, s->dir, space, err)))
        return rc;
    dcn_relics_leave_out(&s->relics, &s->give.intent.giving);
    return DECANT_OK;
}

/* Inputs are given up for files that are made as a whole. */
static decant_status check_consume(const saving *s, decant_error *err)
{
    if ((unsigned)s->options.consume > DECANT_CONSUME_REQUIRE)
        return decant_error_set(err, DECANT_BAD_CALL, "consume %d is none of decant_consume", (int)s->options.consume);
    if (!s->options.consume || s->target->kind == DCN_TO_FILE)
        return DECANT_OK;
    (void)decant_error_set(err, DECANT_BAD_CALL, "inputs are given up only for a file that is saved as a whole");
    dcn_error_hint(err, "save it to a path, or leave consume out");
    return DECANT_BAD_CALL;
}

/* What speaks against the place. An earlier save to it that was stopped half way is undone, or is going to be. */
static decant_status check_place(saving *s, bool plan_only, decant_error *err)
{
    bool in_place = s->target->kind == DCN_TO_FILE_IN_PLACE;
    dcn_space space;
    decant_status rc;

    if (!in_place && (rc = dcn_relics_find(&s->relics, s->dir, s->format, s->name, s->landings, s->plans.count,
                                           s->sources, s->routes.count, err)))
        return rc;
    if ((rc = clear_leftovers(s, plan_only, err)))
        return rc;
    if (in_place)
        return dcn_routes_check_in_place(s->dir, s->plans.items[0].total, err);
    if ((rc = dcn_routes_check_files(&s->routes, s->dir, s->landings, s->plans.count, s->options.replace, &space,
                                     err)) ||
        (s->options.consume && (rc = give(s, &space, plan_only, err))))
        return rc;
    return dcn_routes_check_room(&s->routes, s->dir, &space, err);
}

/* All that can be refused before the first byte. */
static decant_status plan(saving *s, bool plan_only, decant_error *err)
{
    decant_status rc;

    if ((rc = choose_format(s, err)) || (is_file(s) && (rc = choose_path(s, err))) || (rc = emit(s, err)) ||
        (rc = check_count(s, err)) || (rc = check_verify(s, err)) || (rc = check_consume(s, err)) ||
        (is_file(s) && (rc = open_folder(s, err))) || (rc = land(s, err)) ||
        (rc = dcn_routes_collect(&s->plans, s->options.verify ? UINT64_MAX : s->env->cut.share, &s->routes, err)) ||
        (rc = list_sources(s, err)) || (rc = dcn_sources_check(s->sources, s->routes.count, err)))
        return rc;
    return is_file(s) ? check_place(s, plan_only, err) : DECANT_OK;
}

static decant_status create_output(saving *s, size_t i, decant_error *err)
{
    const dcn_target *t = s->target;
    const dcn_landing *to = &s->landings[i];
    dcn_output **out = &s->outputs[i];

    switch (t->kind) {
    case DCN_TO_FILE:
        return dcn_output_file(s->dir, to->name, to->path, s->options.replace, out, err);
    case DCN_TO_FILE_IN_PLACE:
        return dcn_output_in_place(s->dir, to->name, to->path, s->options.replace, s->sources, s->routes.count, out,
                                   err);
    case DCN_TO_MEMORY:
        return dcn_output_memory(t->dst, t->len, out, err);
    case DCN_TO_NEW:
        return dcn_output_new(out, err);
    case DCN_TO_STREAM:
        return dcn_output_stream(t->stream.write, t->stream.ctx, out, err);
    case DCN_TO_NOWHERE:
        break;
    }
    return dcn_output_sink(NULL, NULL, out, err);
}

static bool needs_journal(const saving *s)
{
    return s->plans.count > 1 || dcn_give_drains(&s->give);
}

static decant_status create_outputs(saving *s, decant_error *err)
{
    decant_status rc = DECANT_OK;

    s->outputs = dcn_alloc(s->plans.count, sizeof(dcn_output *));
    if (!s->outputs)
        return dcn_error_nomem(err);
    if (needs_journal(s))
        rc = dcn_journal_create(&s->journal, s->dir, s->landings[s->plans.count - 1].name, err);
    for (size_t i = 0; i < s->plans.count && rc == DECANT_OK; i++)
        rc = create_output(s, i, err);
    return rc;
}

/* --- what is read back ----------------------------------------------------------------------------------------------- */

/* The digest of what is read back, of all outputs together. */
typedef struct proving {
    const dcn_plans *plans;
    dcn_scan scan;          /* of the plan that passes */
    dcn_digester *digester; /* NULL: the build has no SHA-256 */
    char *hex;
} proving;

static decant_status begin_proof(proving *p, const dcn_plans *plans, char *hex, decant_error *err)
{
    size_t count = 0;
    decant_status rc;

    for (size_t i = 0; i < plans->count; i++)
        count += plans->items[i].count;
    p->plans = plans;
    p->hex = hex;
    rc = dcn_digester_create(count, NULL, NULL, NULL, &p->digester, err);
    return rc == DECANT_UNSUPPORTED ? DECANT_OK : rc;
}

/* It is complete before anything is published, so that it cannot fail afterwards. */
static decant_status see_proof(void *ctx, size_t plan, uint64_t at, const dcn_chunk *chunk, decant_error *err)
{
    proving *p = ctx;
    const dcn_plan *this = &p->plans->items[plan];
    decant_status rc;

    if (!p->digester)
        return DECANT_OK;
    if (at == 0)
        p->scan = (dcn_scan){.plan = this, .viewer = dcn_digester_viewer(p->digester)};
    if ((rc = dcn_scan_take(&p->scan, at, chunk->data, chunk->len, err)) || at + chunk->len < this->total)
        return rc;
    if ((rc = dcn_scan_end(&p->scan, err)) || plan + 1 < p->plans->count)
        return rc;
    return dcn_digester_end(p->digester, p->hex, err);
}

/* --- doing it -------------------------------------------------------------------------------------------------------- */

static decant_status pour(saving *s, decant_error *err)
{
    dcn_crew *crew = NULL;
    proving back = {0};
    const dcn_proof proof = {see_proof, &back};
    dcn_job job = {
        .plans = &s->plans,
        .sources = s->sources,
        .source_count = s->routes.count,
        .routes = &s->routes,
        .cut = s->env->cut,
        .progress = s->options.progress,
        .progress_ctx = s->options.progress_ctx,
    };
    decant_status rc = dcn_env_crew(s->env, dcn_give_drains(&s->give), &crew, err);

    if (rc || (rc = create_outputs(s, err)))
        goto done;
    if (s->options.verify) {
        if ((rc = begin_proof(&back, &s->plans, s->digest, err)))
            goto done;
        job.proof = &proof;
    }
    job.crew = crew;
    job.outputs = s->outputs;
    job.removals = s->relics.removals;
    job.removal_count = s->options.prune ? s->relics.removal_count : 0;
    job.journal = needs_journal(s) ? &s->journal : NULL;
    job.intent = dcn_give_any(&s->give) ? &s->give.intent : NULL;
    job.given = s->give.sources;
    if ((rc = dcn_pour(&job, err)) == DECANT_OK && s->target->kind == DCN_TO_NEW)
        rc = dcn_output_new_take(s->outputs[0], s->target->bytes, err);
done:
    dcn_digester_close(&back.digester);
    dcn_crew_close(&crew);
    return rc;
}

static void finish(saving *s)
{
    for (size_t i = 0; s->outputs && i < s->plans.count; i++)
        dcn_output_close(&s->outputs[i]);
    dcn_free(&s->outputs);
    dcn_journal_close(&s->journal);
    dcn_give_close(&s->give);
    dcn_free(&s->owned);
    dcn_relics_close(&s->relics);
    dcn_free(&s->landings);
    dcn_arena_close(&s->memory);
    dcn_free(&s->sources);
    dcn_routes_close(&s->routes);
    dcn_plans_close(&s->plans);
    dcn_free(&s->name);
    dcn_dir_close(&s->dir);
    dcn_free(&s->path);
}

decant_status dcn_save(const dcn_env *env, const decant_model *model, const dcn_target *target,
                       const decant_save_options *options, bool plan_only, decant_report **report, decant_error *err)
{
    saving s = {.env = env, .model = model, .target = target};
    decant_report *made = NULL;
    /* of its own, since what succeeds in a second way leaves none behind, and labels need one */
    decant_error failure = {.offset = DECANT_NO_OFFSET};
    decant_status rc;

    dcn_options_take(&s.options, sizeof s.options, options);
    if ((rc = plan(&s, plan_only, &failure)))
        goto done;
    if (report && (rc = dcn_report_create(&s.plans, s.landings, &s.relics, &s.routes, &s.give, &env->cut, s.path,
                                          s.format->name, &made, &failure)))
        goto done;
    if (!plan_only)
        rc = pour(&s, &failure);
done:
    if (made && s.outputs) {
        dcn_relics_look(&s.relics, s.dir);
        dcn_report_relics(made, &s.relics);
        dcn_report_outcome(made, s.outputs, &s.routes, s.options.verify ? s.digest : NULL);
        if (s.routes.makes)
            dcn_report_overflows(made, &s.plans);
    }
    if (made && (rc == DECANT_OK || rc == DECANT_NOT_DURABLE || rc == DECANT_NOT_REMOVED)) {
        *report = made;
        made = NULL;
    }
    if (rc) {
        if (failure.side == DECANT_SIDE_OUTPUT)
            dcn_error_path(&failure, s.path);
        if (err)
            *err = failure;
    }
    decant_report_close(&made);
    finish(&s);
    return rc;
}

/* Saves to a file at a path that the caller must give. */
static decant_status save_to_path(const decant_model *model, const char *path, dcn_target_kind kind,
                                  const decant_save_options *options, decant_report **report, decant_error *err)
{
    dcn_env env = dcn_env_default();
    dcn_target target = {.kind = kind, .path = path};

    if (!path)
        return decant_error_set(err, DECANT_BAD_CALL, "the path is NULL: name a file to save to");
    return dcn_save(&env, model, &target, options, false, report, err);
}

decant_status decant_plan(const decant_model *model, const char *path, const decant_save_options *options,
                          decant_report **report, decant_error *err)
{
    dcn_env env = dcn_env_default();
    dcn_target target = {.kind = path ? DCN_TO_FILE : DCN_TO_NOWHERE, .path = path};

    return dcn_save(&env, model, &target, options, true, report, err);
}

decant_status decant_save(const decant_model *model, const char *path, const decant_save_options *options,
                          decant_report **report, decant_error *err)
{
    return save_to_path(model, path, DCN_TO_FILE, options, report, err);
}

decant_status decant_save_in_place(const decant_model *model, const char *path, const decant_save_options *options,
                                   decant_report **report, decant_error *err)
{
    return save_to_path(model, path, DCN_TO_FILE_IN_PLACE, options, report, err);
}

decant_status decant_save_into(const decant_model *model, void *dst, size_t len, size_t *written,
                               const decant_save_options *options, decant_report **report, decant_error *err)
{
    dcn_env env = dcn_env_default();
    dcn_target target = {.kind = DCN_TO_MEMORY, .dst = dst, .len = len};
    decant_report *own = NULL;
    decant_status rc = dcn_save(&env, model, &target, options, false, &own, err);

    if (rc == DECANT_OK && written)
        *written = (size_t)decant_report_size(own);
    if (rc == DECANT_OK && report) {
        *report = own;
        own = NULL;
    }
    decant_report_close(&own);
    return rc;
}

decant_status decant_save_new(const decant_model *model, decant_bytes **out, const decant_save_options *options,
                              decant_report **report, decant_error *err)
{
    dcn_env env = dcn_env_default();
    dcn_target target = {.kind = DCN_TO_NEW, .bytes = out};

    return dcn_save(&env, model, &target, options, false, report, err);
}

decant_status decant_save_stream(const decant_model *model, const decant_stream *stream,
                                 const decant_save_options *options, decant_report **report, decant_error *err)
{
    dcn_env env = dcn_env_default();
    dcn_target target = {.kind = DCN_TO_STREAM};

    if (!stream || stream->size < sizeof *stream)
        return decant_error_set(err, DECANT_BAD_CALL, "the stream has no size: set it to sizeof(decant_stream)");
    if (!stream->write)
        return decant_error_set(err, DECANT_BAD_CALL, "set the stream's write");
    target.stream = *stream;
    return dcn_save(&env, model, &target, options, false, report, err);
}

decant_status decant_size(const decant_model *model, const decant_save_options *options, uint64_t *size,
                          decant_error *err)
{
    decant_report *report = NULL;
    decant_status rc = decant_plan(model, NULL, options, &report, err);

    if (rc == DECANT_OK)
        *size = decant_report_size(report);
    decant_report_close(&report);
    return rc;
}
