#include "support/caravan.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "support/salvage.h"

#define INDEX "s/index"
static const char old_text[] = "an old file of that name, which is to be replaced";

#define SRC(source, from, len)  \
    {                           \
        (source), (from), (len) \
    }
#define LIT(len)     \
    {                \
        -1, 0, (len) \
    }
#define ZERO(len)    \
    {                \
        -2, 0, (len) \
    }

const caravan_scene caravan_scenes[] = {
    {.name = "basic",
     .sources = {{"a", 900, false, 500, 40}},
     .outputs = {{"p", 16, true, true, {LIT(50), SRC(0, 10, 480), SRC(0, 540, 200), ZERO(9), SRC(0, 745, 150)}}},
     .batch = 128,
     .unit = 64},
    {.name = "rope",
     .sources = {{"a", 500, false, 0, 0}, {"b", 300, false, 0, 0}},
     .outputs = {{"p", 16, false, false, {SRC(0, 0, 500), SRC(1, 0, 300)}}},
     .batch = 128,
     .unit = 64},
    {.name = "interleaved",
     .sources = {{"a", 400, false, 0, 0}, {"b", 400, false, 0, 0}},
     .outputs = {{"p",
                  16,
                  false,
                  false,
                  {LIT(20), SRC(0, 0, 40), SRC(1, 0, 40), SRC(0, 40, 40), SRC(1, 40, 40), SRC(0, 80, 120),
                   SRC(1, 80, 120), SRC(0, 200, 200), SRC(1, 200, 200)}}},
     .batch = 160,
     .unit = 64},
    {.name = "two outputs",
     .sources = {{"a", 600, false, 300, 30}, {"c", 200, true, 0, 0}},
     .outputs = {{"q", 8, true, true, {LIT(10), SRC(0, 330, 100), SRC(1, 20, 60), SRC(0, 450, 150)}},
                 {"p", 16, true, true, {LIT(60), SRC(0, 0, 300), SRC(1, 0, 200)}}},
     .removal = true,
     .batch = 128,
     .unit = 64},
    {.name = "backwards",
     .sources = {{"a", 700, false, 0, 0}},
     .outputs = {{"q", 8, false, false, {SRC(0, 420, 280), SRC(0, 230, 190), SRC(0, 0, 230)}},
                 {"p", 16, false, false, {LIT(70)}}},
     .batch = 128,
     .unit = 64},
    {.name = "twice",
     .sources = {{"a", 400, false, 0, 0}},
     .outputs = {{"q", 8, false, false, {LIT(20), SRC(0, 0, 400)}},
                 {"p", 16, false, false, {LIT(33), SRC(0, 100, 200), SRC(0, 50, 100)}}},
     .batch = 100,
     .unit = 64},
    {.name = "zeros in front",
     .sources = {{"a", 400, false, 0, 130}},
     .outputs = {{"q", 16, false, false, {SRC(0, 0, 400)}}, {"p", 16, false, false, {LIT(40)}}},
     .batch = 128,
     .unit = 64},
    {.name = "copied, several outputs",
     .sources = {{"a", 200, true, 0, 0}, {"b", 150, true, 0, 0}},
     .outputs = {{"q", 8, true, true, {LIT(30), SRC(0, 0, 200)}}, {"p", 8, false, false, {LIT(30), SRC(1, 0, 150)}}},
     .removal = true,
     .unit = 64},
    {.name = "copied, one output",
     .sources = {{"a", 200, true, 0, 0}},
     .outputs = {{"p", 8, true, true, {LIT(30), SRC(0, 0, 200)}}},
     .unit = 64},
};
const size_t caravan_scene_count = sizeof caravan_scenes / sizeof *caravan_scenes;

static const char *source_path(const caravan *c, size_t i)
{
    static char path[CARAVAN_SOURCES][32];

    snprintf(path[i], sizeof path[i], "s/%s", c->scene->sources[i].name);
    return path[i];
}

void caravan_load(caravan *c, const caravan_scene *scene)
{
    *c = (caravan){.scene = scene};
    for (size_t i = 0; i < CARAVAN_SOURCES && scene->sources[i].name; i++, c->source_count++) {
        c->sources[i] = malloc(scene->sources[i].len);
        CHECK(c->sources[i] != NULL);
        test_stream(10 + i, c->sources[i], scene->sources[i].len);
        for (size_t k = 0; k < scene->sources[i].len; k++)
            c->sources[i][k] |= 1; /* no zeros but those that are asked for */
        memset(c->sources[i] + scene->sources[i].zero_at, 0, scene->sources[i].zeros);
    }
    for (size_t i = 0; i < CARAVAN_OUTPUTS && scene->outputs[i].name; i++, c->output_count++) {
        c->outputs[i] = calloc(1, 4096);
        CHECK(c->outputs[i] != NULL);
        for (const caravan_piece *p = scene->outputs[i].pieces; p->len; p++) {
            uint8_t *to = c->outputs[i] + c->totals[i];

            if (p->source >= 0)
                memcpy(to, c->sources[p->source] + p->from, p->len);
            else if (p->source == -1)
                test_stream(100 + i, to, p->len);
            c->totals[i] += p->len;
        }
    }
}

void caravan_close(caravan *c)
{
    for (size_t i = 0; i < CARAVAN_SOURCES; i++)
        free(c->sources[i]);
    for (size_t i = 0; i < CARAVAN_OUTPUTS; i++)
        free(c->outputs[i]);
    *c = (caravan){0};
}

simdisk *caravan_disk(const caravan *c)
{
    simdisk *disk = simdisk_new();

    disk->unit = disk->block = c->scene->unit;
    for (size_t i = 0; i < c->source_count; i++)
        simdisk_put(disk, source_path(c, i), c->sources[i], c->scene->sources[i].len);
    for (size_t i = 0; i < c->output_count; i++)
        if (c->scene->outputs[i].old)
            simdisk_put_text(disk, c->scene->outputs[i].name, old_text);
    if (c->scene->removal)
        simdisk_put_text(disk, INDEX, old_text);
    return disk;
}

/* --- pouring --------------------------------------------------------------------------------------------------------- */

/* The disk and its gates serve one thread at a time: who calls meanwhile waits. */
typedef struct turnstile {
    dcn_gate gate;
    const dcn_gate *next;
    dcn_mutex mutex;
} turnstile;

static decant_status enter(void *ctx, const dcn_call *call, decant_error *err)
{
    turnstile *t = ctx;
    decant_status rc;

    dcn_lock(&t->mutex);
    rc = t->next ? t->next->before(t->next->ctx, call, err) : DECANT_OK;
    if (rc)
        dcn_unlock(&t->mutex);
    return rc;
}

static void leave(void *ctx, const dcn_call *call, decant_status status)
{
    turnstile *t = ctx;

    if (t->next && t->next->after)
        t->next->after(t->next->ctx, call, status);
    dcn_unlock(&t->mutex);
}

static decant_status pour_one_call_at_a_time(const dcn_job *job, dcn_io *io, decant_error *err)
{
    turnstile t = {.gate = {.before = enter, .after = leave, .ctx = &t}, .next = io->gate};
    decant_status rc;

    dcn_mutex_init(&t.mutex);
    io->gate = &t.gate;
    rc = dcn_pour(job, err);
    io->gate = t.next;
    dcn_mutex_close(&t.mutex);
    return rc;
}

/* What a pour of it needs. */
typedef struct journey {
    const caravan *c;
    simdisk *disk;
    decant_model *model;
    dcn_plans plans;
    dcn_source *sources[CARAVAN_SOURCES];
    decant_bytes *bytes[CARAVAN_SOURCES];
    dcn_output *outputs[CARAVAN_OUTPUTS];
    dcn_route routes[CARAVAN_SOURCES];
    dcn_intent intent;
    dcn_removal removal;
    dcn_dir *home, *folder;
    dcn_journal journal;
    dcn_crew *crew;
} journey;

static void add_piece(journey *j, dcn_plan *plan, size_t output, const caravan_piece *p, uint64_t at, decant_error *err)
{
    size_t number = decant_model_count(j->model);
    uint64_t shape[] = {p->len};
    decant_tensor tensor = DECANT_TENSOR_INIT;
    decant_bytes *bytes = NULL;
    char name[16];

    if (p->source == -2)
        return;
    snprintf(name, sizeof name, "t%zu", number);
    tensor.name = name;
    tensor.dtype = DECANT_U8;
    tensor.rank = 1;
    tensor.shape = shape;
    if (p->source >= 0)
        CHECK_OK(decant_bytes_slice(j->bytes[p->source], p->from, p->len, &bytes, err), err);
    else
        CHECK_OK(decant_bytes_copy(j->c->outputs[output] + at, p->len, &bytes, err), err);
    CHECK_OK(decant_model_add(j->model, &tensor, bytes, err), err);
    decant_bytes_unref(&bytes);
    CHECK_OK(dcn_plan_entry(plan, at, number, err), err);
}

static void make_plans(journey *j, decant_error *err)
{
    CHECK_OK(decant_model_create(&j->model, err), err);
    for (size_t i = 0; i < j->c->output_count; i++) {
        const char *name = j->c->scene->outputs[i].name;
        dcn_plan *plan = NULL;
        uint64_t at = 0;

        CHECK_OK(dcn_plans_add(&j->plans, j->model, &plan, err), err);
        plan->name = dcn_strndup(name, strlen(name));
        CHECK(plan->name != NULL);
        for (const caravan_piece *p = j->c->scene->outputs[i].pieces; p->len; at += p++->len)
            add_piece(j, plan, i, p, at, err);
        plan->held = j->c->scene->outputs[i].held;
        dcn_plan_finish(plan, at);
    }
}

static void make_runs(journey *j, decant_error *err)
{
    dcn_giving *giving = &j->intent.giving;

    for (size_t i = 0; i < j->c->output_count; i++) {
        uint64_t at = 0;

        for (const caravan_piece *p = j->c->scene->outputs[i].pieces; p->len; at += p++->len) {
            dcn_run run = {
                .from = p->from, .to = at, .len = p->len, .source = (uint32_t)p->source, .output = (uint32_t)i};

            if (p->source >= 0 && giving->items[p->source].drained)
                CHECK_OK(dcn_runs_add(&giving->runs, &run, err), err);
        }
    }
    CHECK_OK(dcn_runs_finish(&giving->runs, giving->count, err), err);
    giving->batch = j->c->scene->batch;
    giving->unit = j->c->scene->unit;
}

static void make_intent(journey *j, decant_error *err)
{
    dcn_giving *giving = &j->intent.giving;
    uint32_t folder = 0;

    CHECK_OK(dcn_intent_folder(&j->intent, "/s", &folder, err), err);
    giving->items = dcn_alloc(j->c->source_count, sizeof *giving->items);
    CHECK(giving->items != NULL);
    giving->count = j->c->source_count;
    for (size_t i = 0; i < giving->count; i++) {
        const dcn_facts *facts = dcn_source_facts(j->sources[i]);
        bool copied = j->c->scene->sources[i].copied;

        giving->items[i] = (dcn_owned){.name = j->c->scene->sources[i].name,
                                       .file = dcn_identity_of(facts),
                                       .mtime = facts->mtime,
                                       .folder = folder,
                                       .drained = !copied};
        j->routes[i] = (dcn_route){.source = j->sources[i], .way = copied ? DCN_COPY : DCN_DRAIN};
    }
    make_runs(j, err);
    if (j->c->scene->removal) {
        dcn_facts facts;

        CHECK_OK(dcn_dir_stat(j->folder, "index", &facts, err), err);
        j->removal = (dcn_removal){"index", dcn_identity_of(&facts), facts.mtime, folder};
    }
}

static void end(journey *j)
{
    for (size_t i = 0; i < j->c->output_count; i++)
        dcn_output_close(&j->outputs[i]);
    dcn_journal_close(&j->journal);
    dcn_intent_close(&j->intent);
    dcn_plans_close(&j->plans);
    decant_model_close(&j->model);
    for (size_t i = 0; i < j->c->source_count; i++) {
        decant_bytes_unref(&j->bytes[i]);
        dcn_source_unref(&j->sources[i]);
    }
    dcn_crew_close(&j->crew);
    dcn_dir_close(&j->folder);
    dcn_dir_close(&j->home);
}

/* Opening and planning pass no gate: what is tested is the pour. */
static void prepare(journey *j, const caravan_how *how, decant_error *err)
{
    const dcn_gate *gate = j->disk->io.gate;

    j->disk->io.gate = NULL;
    CHECK_OK(dcn_io_open_dir(&j->disk->io, ".", &j->home, err), err);
    CHECK_OK(dcn_io_open_dir(&j->disk->io, "s", &j->folder, err), err);
    for (size_t i = 0; i < j->c->source_count; i++) {
        CHECK_OK(dcn_source_open(&j->disk->io, source_path(j->c, i), &j->sources[i], err), err);
        CHECK_OK(dcn_bytes_from_source(dcn_source_ref(j->sources[i]), &j->bytes[i], err), err);
    }
    make_plans(j, err);
    make_intent(j, err);
    for (size_t i = 0; i < j->c->output_count; i++)
        CHECK_OK(dcn_output_file(j->home, j->plans.items[i].name, j->plans.items[i].name,
                                 j->c->scene->outputs[i].replace, &j->outputs[i], err),
                 err);
    CHECK_OK(how->seed ? dcn_crew_seeded(how->seed, &j->crew, err)
                       : dcn_crew_threads(how->threads ? how->threads : 1, &j->crew, err),
             err);
    j->disk->io.gate = gate;
}

decant_status caravan_pour(const caravan *c, simdisk *disk, const caravan_how *how, decant_error *err)
{
    journey j = {.c = c, .disk = disk};
    dcn_routes routes = {.items = j.routes, .count = c->source_count};
    bool has_journal;
    dcn_job job;
    decant_status rc = DECANT_OK;

    prepare(&j, how, err);
    has_journal = c->output_count > 1 || j.intent.giving.runs.count;
    job = (dcn_job){
        .plans = &j.plans,
        .outputs = j.outputs,
        .sources = j.sources,
        .source_count = c->source_count,
        .routes = &routes,
        .intent = &j.intent,
        .given = j.sources,
        .removals = &j.removal,
        .removal_count = c->scene->removal,
        .journal = has_journal ? &j.journal : NULL,
        .crew = j.crew,
        .cut = {.slot = CARAVAN_SLOT, .slots = 2, .direct = CARAVAN_SLOT},
        .progress = how->progress,
        .progress_ctx = how->progress_ctx,
    };
    if (has_journal)
        rc = dcn_journal_create(&j.journal, j.home, c->scene->outputs[c->output_count - 1].name, err);
    if (rc == DECANT_OK)
        rc = pour_one_call_at_a_time(&job, &disk->io, err);
    end(&j);
    return rc;
}

/* --- afterwards ------------------------------------------------------------------------------------------------------ */

decant_status caravan_recover(simdisk *disk, bool undo, decant_error *err)
{
    dcn_buf journals = {0}, parts = {0};
    dcn_dir *dir = NULL;
    decant_status rc = dcn_io_open_dir(&disk->io, ".", &dir, err);

    if (rc || (rc = dcn_leftovers_list(dir, &journals, &parts, err)))
        goto done;
    for (size_t i = 0; i < journals.len && rc == DECANT_OK; i += strlen((char *)journals.data + i) + 1) {
        dcn_leftover l;

        rc = dcn_leftover_open(&l, dir, (char *)journals.data + i, true, err);
        l.slot = CARAVAN_SLOT;
        if (rc == DECANT_OK)
            rc = undo ? dcn_leftover_undo(&l, err) : dcn_leftover_finish(&l, err);
        dcn_leftover_close(&l);
    }
done:
    dcn_buf_close(&journals);
    dcn_buf_close(&parts);
    dcn_dir_close(&dir);
    return rc;
}

bool caravan_journal(simdisk *disk, dcn_stage *stage)
{
    if (!salvage_journal(disk))
        return false;
    *stage = salvage_stage(disk);
    return true;
}

static bool holds(const simdisk *disk, const char *path, const void *wanted, size_t len)
{
    size_t got_len = 0;
    const uint8_t *got = simdisk_get(disk, path, &got_len);

    return got && got_len == len && memcmp(got, wanted, len) == 0;
}

static bool is_there(const simdisk *disk, const char *path)
{
    size_t len;

    return simdisk_get(disk, path, &len) != NULL;
}

bool caravan_is_new(const caravan *c, simdisk *disk)
{
    for (size_t i = 0; i < c->output_count; i++)
        if (!holds(disk, c->scene->outputs[i].name, c->outputs[i], c->totals[i]))
            return false;
    return simdisk_file_count(disk) == c->output_count;
}

bool caravan_is_old(const caravan *c, simdisk *disk)
{
    size_t count = c->source_count + c->scene->removal;

    for (size_t i = 0; i < c->source_count; i++)
        if (!holds(disk, source_path(c, i), c->sources[i], c->scene->sources[i].len))
            return false;
    for (size_t i = 0; i < c->output_count; i++) {
        const char *name = c->scene->outputs[i].name;

        if (c->scene->outputs[i].old ? !holds(disk, name, old_text, strlen(old_text)) : is_there(disk, name))
            return false;
        count += c->scene->outputs[i].old;
    }
    return (!c->scene->removal || is_there(disk, INDEX)) && simdisk_file_count(disk) == count;
}

void caravan_check(const caravan *c, simdisk *disk, const char *when)
{
    for (size_t i = 0; i < c->output_count; i++) {
        const char *name = c->scene->outputs[i].name;

        if (is_there(disk, name) && !holds(disk, name, c->outputs[i], c->totals[i]) &&
            !(c->scene->outputs[i].old && holds(disk, name, old_text, strlen(old_text))))
            test_fail(__FILE__, __LINE__, "%s, %s: %s is neither old nor new (I2)", c->scene->name, when, name);
    }
    for (size_t i = 0; i < c->source_count; i++)
        if (is_there(disk, source_path(c, i)) &&
            !holds(disk, source_path(c, i), c->sources[i], c->scene->sources[i].len))
            test_fail(__FILE__, __LINE__, "%s, %s: %s opens and has given up bytes (I11)", c->scene->name, when,
                      source_path(c, i));
}
