#include "support/caravan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/ckd.h"
#include "base/thread.h"
#include "support/gates.h"
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
     .sources = {{.name = "s/a", .len = 900, .zero_at = 500, .zeros = 40}},
     .outputs = {{"p", 16, true, true, {LIT(50), SRC(0, 10, 480), SRC(0, 540, 200), ZERO(9), SRC(0, 745, 150)}}},
     .batch = 128,
     .unit = 64},
    {.name = "rope",
     .sources = {{.name = "s/a", .len = 500}, {.name = "s/b", .len = 300}},
     .outputs = {{"p", 16, false, false, {SRC(0, 0, 500), SRC(1, 0, 300)}}},
     .batch = 128,
     .unit = 64},
    {.name = "interleaved",
     .sources = {{.name = "s/a", .len = 400}, {.name = "s/b", .len = 400}},
     .outputs = {{"p",
                  16,
                  false,
                  false,
                  {LIT(20), SRC(0, 0, 40), SRC(1, 0, 40), SRC(0, 40, 40), SRC(1, 40, 40), SRC(0, 80, 120),
                   SRC(1, 80, 120), SRC(0, 200, 200), SRC(1, 200, 200)}}},
     .batch = 160,
     .unit = 64},
    {.name = "two outputs",
     .sources = {{.name = "s/a", .len = 600, .zero_at = 300, .zeros = 30}, {.name = "s/c", .len = 200, .copied = true}},
     .outputs = {{"q", 8, true, true, {LIT(10), SRC(0, 330, 100), SRC(1, 20, 60), SRC(0, 450, 150)}},
                 {"p", 16, true, true, {LIT(60), SRC(0, 0, 300), SRC(1, 0, 200)}}},
     .removal = true,
     .batch = 128,
     .unit = 64},
    {.name = "backwards",
     .sources = {{.name = "s/a", .len = 700}},
     .outputs = {{"q", 8, false, false, {SRC(0, 420, 280), SRC(0, 230, 190), SRC(0, 0, 230)}},
                 {"p", 16, false, false, {LIT(70)}}},
     .batch = 128,
     .unit = 64},
    {.name = "twice",
     .sources = {{.name = "s/a", .len = 400}},
     .outputs = {{"q", 8, false, false, {LIT(20), SRC(0, 0, 400)}},
                 {"p", 16, false, false, {LIT(33), SRC(0, 100, 200), SRC(0, 50, 100)}}},
     .batch = 100,
     .unit = 64},
    {.name = "zeros in front",
     .sources = {{.name = "s/a", .len = 400, .zero_at = 0, .zeros = 130}},
     .outputs = {{"q", 16, false, false, {SRC(0, 0, 400)}}, {"p", 16, false, false, {LIT(40)}}},
     .batch = 128,
     .unit = 64},
    {.name = "copied, several outputs",
     .sources = {{.name = "s/a", .len = 200, .copied = true}, {.name = "s/b", .len = 150, .copied = true}},
     .outputs = {{"q", 8, true, true, {LIT(30), SRC(0, 0, 200)}}, {"p", 8, false, false, {LIT(30), SRC(1, 0, 150)}}},
     .removal = true,
     .unit = 64},
    {.name = "copied, one output",
     .sources = {{.name = "s/a", .len = 200, .copied = true}},
     .outputs = {{"p", 8, true, true, {LIT(30), SRC(0, 0, 200)}}},
     .unit = 64},
};
const size_t caravan_scene_count = sizeof caravan_scenes / sizeof *caravan_scenes;

/* --- made up --------------------------------------------------------------------------------------------------------- */

static bool one_in(uint64_t *state, unsigned n)
{
    return test_random(state) % n == 0;
}

/* One of [least, most]. */
static size_t any(uint64_t *state, size_t least, size_t most)
{
    return least + (size_t)(test_random(state) % (most - least + 1));
}

/* Short ones, and such that are a unit and a byte more or less, are as many as long ones. */
static size_t any_len(uint64_t *state, size_t unit, size_t most)
{
    switch (any(state, 0, 3)) {
    case 0:
        return any(state, 1, 20);
    case 1:
        return dcn_min(most, unit * any(state, 1, 3) + any(state, 0, 2) - 1);
    default:
        return any(state, 1, most);
    }
}

static void invent_sources(caravan_scene *s, uint64_t *state)
{
    static const char *const names[3][CARAVAN_SOURCES] = {
        {"s/a", "s/b", "s/c", "s/d"}, {"./a", "./b", "./c", "./d"}, {"s/a", "t/a", "s/b", "./b"}};
    size_t count = any(state, 1, CARAVAN_SOURCES), folders = any(state, 0, 2);

    for (size_t i = 0; i < count; i++) {
        size_t len = any_len(state, s->unit, 600);

        s->sources[i].name = names[folders][i];
        s->sources[i].len = one_in(state, 20) ? 0 : len;
        s->sources[i].copied = one_in(state, 4);
        if (len > 1 && s->sources[i].len && one_in(state, 2)) {
            s->sources[i].zero_at = any(state, 0, len - 1);
            s->sources[i].zeros = any(state, 1, len - s->sources[i].zero_at);
            s->sources[i].sparse = one_in(state, 2);
        }
    }
}

static void invent_piece(caravan_scene *s, size_t output, caravan_piece piece)
{
    caravan_piece *p = s->outputs[output].pieces;

    while (p->len)
        p++;
    if (piece.len && p < s->outputs[output].pieces + CARAVAN_PIECES - 1)
        *p = piece;
}

/* What is in no output is lost by the save; what is in two places is moved to both. */
static void invent_pieces(caravan_scene *s, size_t outputs, uint64_t *state)
{
    size_t at[CARAVAN_SOURCES] = {0}, left = 0;

    for (size_t i = 0; i < CARAVAN_SOURCES; i++)
        left += s->sources[i].len;
    while (left) {
        size_t i = any(state, 0, CARAVAN_SOURCES - 1), len;

        if (at[i] == s->sources[i].len)
            continue;
        len = dcn_min(any_len(state, s->unit, 300), s->sources[i].len - at[i]);
        if (!one_in(state, 8))
            invent_piece(s, any(state, 0, outputs - 1), (caravan_piece){(int)i, at[i], len});
        if (one_in(state, 8))
            invent_piece(s, any(state, 0, outputs - 1), (caravan_piece){(int)i, at[i] + len / 3, len - len / 3});
        if (one_in(state, 4))
            invent_piece(s, any(state, 0, outputs - 1), (caravan_piece){-1 - one_in(state, 3), 0, any(state, 1, 60)});
        at[i] += len;
        left -= len;
    }
}

static void shuffle(caravan_piece *pieces, uint64_t *state)
{
    size_t count = 0;

    while (pieces[count].len)
        count++;
    for (size_t i = count; i > 1; i--) {
        size_t k = any(state, 0, i - 1);
        caravan_piece p = pieces[i - 1];

        pieces[i - 1] = pieces[k];
        pieces[k] = p;
    }
}

static void invent_outputs(caravan_scene *s, uint64_t *state)
{
    static const char *const names[CARAVAN_OUTPUTS] = {"r", "q", "p"};
    size_t count = any(state, 1, CARAVAN_OUTPUTS), total;
    bool replace = one_in(state, 2), mixed = one_in(state, 2);

    for (size_t i = 0; i < count; i++) {
        s->outputs[i].name = names[CARAVAN_OUTPUTS - count + i];
        s->outputs[i].replace = replace;
        s->outputs[i].old = replace && !one_in(state, 3);
        if (one_in(state, 2))
            invent_piece(s, i, (caravan_piece){-1, 0, any(state, 1, 60)});
    }
    invent_pieces(s, count, state);
    for (size_t i = 0; i < count; i++) {
        if (!s->outputs[i].pieces[0].len)
            invent_piece(s, i, (caravan_piece){-1, 0, any(state, 1, 60)});
        if (mixed)
            shuffle(s->outputs[i].pieces, state);
        total = 0;
        for (const caravan_piece *p = s->outputs[i].pieces; p->len; p++)
            total += p->len;
        s->outputs[i].held = one_in(state, 6) ? 0 : any(state, 1, dcn_min(total, 40));
    }
}

void caravan_invent(caravan_scene *s, uint64_t seed)
{
    static const dcn_verb verbs[] = {DCN_DO_NOTE, DCN_DO_ALONE, DCN_DO_RESERVE,   DCN_DO_RENAME,   DCN_DO_FORGET,
                                     DCN_DO_LINK, DCN_DO_WHERE, DCN_DO_SET_MTIME, DCN_DO_RESEMBLE, DCN_DO_COPY};
    uint64_t state = seed;

    *s = (caravan_scene){.name = "made up", .unit = (size_t)16 << any(&state, 0, 5)};
    invent_sources(s, &state);
    invent_outputs(s, &state);
    s->batch = any(&state, 16, 400);
    s->removal = one_in(&state, 3);
    s->extent = one_in(&state, 6) ? s->unit << any(&state, 1, 4) : 0;
    s->holes = (simdisk_holes)any(&state, 0, 2);
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        s->lacks |= one_in(&state, 12) ? 1u << verbs[i] : 0;
    s->tight = !s->extent && !(s->lacks & 1u << DCN_DO_RESERVE) && one_in(&state, 3);
}

/* --- on a disk ------------------------------------------------------------------------------------------------------- */

static const char *source_path(const caravan *c, size_t i)
{
    return c->scene->sources[i].name;
}

void caravan_load(caravan *c, const caravan_scene *scene)
{
    *c = (caravan){.scene = scene};
    for (size_t i = 0; i < CARAVAN_SOURCES && scene->sources[i].name; i++, c->source_count++) {
        c->sources[i] = malloc(scene->sources[i].len + 1);
        CHECK(c->sources[i] != NULL);
        test_stream(10 + i, c->sources[i], scene->sources[i].len);
        for (size_t k = 0; k < scene->sources[i].len; k++)
            c->sources[i][k] |= 1; /* no zeros but those that are asked for */
        memset(c->sources[i] + scene->sources[i].zero_at, 0, scene->sources[i].zeros);
    }
    for (size_t i = 0; i < CARAVAN_OUTPUTS && scene->outputs[i].name; i++, c->output_count++) {
        c->outputs[i] = calloc(1, 1 << 14);
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

/* Its zeros become a hole, past the gate. */
static void punch_zeros(const caravan *c, simdisk *disk, size_t i)
{
    dcn_file *file = NULL;
    decant_error err;

    CHECK_OK(dcn_io_open(&disk->io, source_path(c, i), DCN_READ | DCN_WRITE, &file, &err), &err);
    CHECK_OK(dcn_file_punch(file, c->scene->sources[i].zero_at, c->scene->sources[i].zeros, &err), &err);
    CHECK_OK(dcn_file_sync(file, &err), &err);
    dcn_file_close(&file);
}

static simdisk *load_disk(caravan *c)
{
    simdisk *disk = simdisk_new();

    disk->unit = disk->block = c->scene->unit;
    disk->extent = c->scene->extent;
    disk->holes = c->scene->holes;
    disk->lacks = c->scene->lacks;
    simdisk_folder(disk, "s");
    simdisk_folder(disk, "t");
    for (size_t i = 0; i < c->source_count; i++) {
        simdisk_put(disk, source_path(c, i), c->sources[i], c->scene->sources[i].len);
        if (c->scene->sources[i].sparse)
            punch_zeros(c, disk, i);
        c->times[i] = simdisk_mtime_of(disk, source_path(c, i));
    }
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
    dcn_dir *home;
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

/* The folder of a source, among those of the intent. */
static uint32_t folder_of(journey *j, const char *path, decant_error *err)
{
    char folder[] = "/?";
    uint32_t number = DCN_HOME;

    folder[1] = path[0];
    if (path[0] != '.')
        CHECK_OK(dcn_intent_folder(&j->intent, folder, &number, err), err);
    return number;
}

static void make_intent(journey *j, decant_error *err)
{
    dcn_giving *giving = &j->intent.giving;

    giving->items = dcn_alloc(j->c->source_count, sizeof *giving->items);
    CHECK(giving->items != NULL);
    giving->count = j->c->source_count;
    for (size_t i = 0; i < giving->count; i++) {
        const dcn_facts *facts = dcn_source_facts(j->sources[i]);
        bool copied = j->c->scene->sources[i].copied;

        giving->items[i] = (dcn_owned){.name = j->c->scene->sources[i].name + 2,
                                       .file = dcn_identity_of(facts),
                                       .mtime = facts->mtime,
                                       .folder = folder_of(j, j->c->scene->sources[i].name, err),
                                       .drained = !copied};
        j->routes[i] = (dcn_route){.source = j->sources[i], .way = copied ? DCN_COPY : DCN_DRAIN};
    }
    make_runs(j, err);
    if (j->c->scene->removal) {
        dcn_dir *dir = NULL;
        dcn_facts facts;

        CHECK_OK(dcn_io_open_dir(&j->disk->io, "s", &dir, err), err);
        CHECK_OK(dcn_dir_stat(dir, "index", &facts, err), err);
        j->removal = (dcn_removal){"index", dcn_identity_of(&facts), facts.mtime, folder_of(j, INDEX, err)};
        dcn_dir_close(&dir);
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
    dcn_dir_close(&j->home);
}

/* Opening and planning pass no gate: what is tested is the pour. */
static void prepare(journey *j, const caravan_how *how, decant_error *err)
{
    const dcn_gate *gate = j->disk->io.gate;

    j->disk->io.gate = NULL;
    CHECK_OK(dcn_io_open_dir(&j->disk->io, ".", &j->home, err), err);
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

caravan_how caravan_crew(uint64_t number)
{
    enum { INLINE, SEED, OTHER_SEED, THREADS, KINDS };
    unsigned kind = number % KINDS;

    return (caravan_how){.seed = kind < THREADS ? kind : 0, .threads = kind < THREADS ? 0 : 2};
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
        .proof = how->proof,
    };
    if (how->begins)
        how->begins(how->begins_ctx);
    if (has_journal)
        rc = dcn_journal_create(&j.journal, j.home, c->scene->outputs[c->output_count - 1].name, err);
    if (c->output_count > 1)
        j.journal.piece = 16; /* it is made in several writes */
    if (rc == DECANT_OK)
        rc = pour_one_call_at_a_time(&job, &disk->io, err);
    end(&j);
    return rc;
}

/* --- room ------------------------------------------------------------------------------------------------------------ */

/* How many units of a source are free once it is drained up to `upto`: each byte is in a run below that, or padding. */
static size_t count_freed(const caravan *c, const uint8_t *covered, size_t source, size_t upto)
{
    size_t unit = c->scene->unit, len = c->scene->sources[source].len, freed = 0, gap = 0;
    size_t end = dcn_min((upto + unit - 1) / unit * unit, len), hole_at = c->scene->sources[source].zero_at;
    size_t hole_end = c->scene->sources[source].sparse ? hole_at + c->scene->sources[source].zeros : 0;
    bool stays = false;

    for (size_t at = 0; at < end; at++) {
        bool moved = at < upto && covered[at];

        if (at % unit == 0)
            stays = gap > 0 && stays;
        gap = moved ? 0 : gap + 1;
        stays = stays || (!moved && (c->sources[source][at] || gap > unit));
        if ((at + 1) % unit == 0 || at + 1 == end)
            freed += !stays && !(at / unit * unit >= hole_at && at < hole_end);
    }
    return freed;
}

typedef struct walk {
    const caravan *c;
    uint8_t *covered[CARAVAN_SOURCES]; /* a byte of a source is in a run */
    bool touched[CARAVAN_OUTPUTS][1 << 10];
    size_t freed[CARAVAN_SOURCES], taken, most;
} walk;

static void touch(walk *w, size_t output, size_t at)
{
    bool *t = &w->touched[output][at / w->c->scene->unit];

    w->taken += !*t;
    *t = true;
}

static bool is_drained(const caravan *c, int source)
{
    return source >= 0 && !c->scene->sources[source].copied;
}

bool caravan_drains(const caravan *c)
{
    for (size_t i = 0; i < c->output_count; i++)
        for (const caravan_piece *p = c->scene->outputs[i].pieces; p->len; p++)
            if (is_drained(c, p->source))
                return true;
    return false;
}

/* Each byte that is not drained takes its unit from the beginning on. */
static void walk_begin(walk *w)
{
    const caravan *c = w->c;

    for (size_t i = 0; i < c->source_count; i++) {
        w->covered[i] = calloc(1, c->scene->sources[i].len + 1);
        CHECK(w->covered[i] != NULL);
    }
    for (size_t i = 0; i < c->output_count; i++) {
        size_t at = 0;

        touch(w, i, 0);
        for (const caravan_piece *p = c->scene->outputs[i].pieces; p->len; at += p++->len)
            for (size_t k = 0; k < p->len; k++)
                if (!is_drained(c, p->source) || at + k < c->scene->outputs[i].held)
                    touch(w, i, at + k);
                else
                    w->covered[p->source][p->from + k] = 1;
        for (const caravan_piece *p = c->scene->outputs[i].pieces; p->len; p++)
            for (size_t k = 0; k < p->len && is_drained(c, p->source); k++)
                w->covered[p->source][p->from + k] = 1;
    }
    w->most = w->taken;
}

static void walk_byte(walk *w, size_t source, size_t at)
{
    const caravan *c = w->c;

    for (size_t i = 0; i < c->output_count; i++) {
        size_t to = 0;

        for (const caravan_piece *p = c->scene->outputs[i].pieces; p->len; to += p++->len)
            if (p->source == (int)source && at >= p->from && at < p->from + p->len)
                touch(w, i, to + at - p->from);
    }
    w->most = w->taken > w->most ? w->taken : w->most;
}

static void walk_free(walk *w, size_t source, size_t upto)
{
    size_t freed = count_freed(w->c, w->covered[source], source, upto);

    w->taken -= dcn_min(w->taken, freed - dcn_min(freed, w->freed[source]));
    w->freed[source] = freed;
}

uint64_t caravan_room(const caravan *c)
{
    enum { SPARE = 2 };
    walk w = {.c = c};
    size_t room = c->scene->batch, before[CARAVAN_SOURCES] = {0}, now[CARAVAN_SOURCES] = {0};

    walk_begin(&w);
    for (size_t i = 0; i < c->source_count; i++)
        for (size_t at = 0; at < c->scene->sources[i].len && !c->scene->sources[i].copied; at++) {
            if (!w.covered[i][at])
                continue;
            walk_byte(&w, i, at);
            now[i] = at + 1;
            if (--room)
                continue;
            for (size_t k = 0; k < c->source_count; k++)
                walk_free(&w, k, before[k]); /* two batches wait */
            memcpy(before, now, sizeof now);
            room = c->scene->batch;
        }
    for (size_t i = 0; i < c->source_count; i++)
        free(w.covered[i]);
    return (w.most + SPARE) * c->scene->unit;
}

/* As the save makes it, on a disk that has room for it. */
static uint64_t journal_room(caravan *c)
{
    simdisk *disk = load_disk(c);
    uint64_t at, len, bytes = 0;
    decant_error err;
    gates g;

    gates_up(&g, &disk->io);
    CHECK_OK(caravan_pour(c, disk, &(caravan_how){0}, &err), &err);
    for (const char *call = gates_trace(&g); (call = strstr(call, "decant-journal ")); call++)
        if (sscanf(call, "decant-journal %" SCNu64 "+%" SCNu64, &at, &len) == 2 && at + len > bytes)
            bytes = at + len;
    gates_down(&g);
    simdisk_free(&disk);
    return (bytes + c->scene->unit - 1) / c->scene->unit * c->scene->unit;
}

simdisk *caravan_disk(caravan *c)
{
    simdisk *disk;

    if (c->scene->tight && !c->journal)
        c->journal = journal_room(c);
    disk = load_disk(c);
    if (c->scene->tight)
        disk->capacity = simdisk_used(disk) + caravan_room(c) + c->journal;
    return disk;
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

bool caravan_has_landed(const caravan *c, const simdisk *disk, size_t output)
{
    return holds(disk, c->scene->outputs[output].name, c->outputs[output], c->totals[output]);
}

bool caravan_is_new(const caravan *c, simdisk *disk)
{
    for (size_t i = 0; i < c->output_count; i++)
        if (!caravan_has_landed(c, disk, i))
            return false;
    return simdisk_file_count(disk) == c->output_count;
}

bool caravan_is_old(const caravan *c, simdisk *disk)
{
    size_t count = c->source_count + c->scene->removal;

    for (size_t i = 0; i < c->source_count; i++)
        if (!holds(disk, source_path(c, i), c->sources[i], c->scene->sources[i].len) ||
            simdisk_has_note(disk, source_path(c, i)) ||
            (simdisk_mtime_of(disk, source_path(c, i)) != c->times[i] && !(c->scene->lacks & 1u << DCN_DO_SET_MTIME)))
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

        if (is_there(disk, name) && !caravan_has_landed(c, disk, i) &&
            !(c->scene->outputs[i].old && holds(disk, name, old_text, strlen(old_text))))
            test_fail(__FILE__, __LINE__, "%s, %s: %s is neither old nor new (I2)", c->scene->name, when, name);
    }
    for (size_t i = 0; i < c->source_count; i++)
        if (is_there(disk, source_path(c, i)) &&
            !holds(disk, source_path(c, i), c->sources[i], c->scene->sources[i].len))
            test_fail(__FILE__, __LINE__, "%s, %s: %s opens and has given up bytes (I11)", c->scene->name, when,
                      source_path(c, i));
}

/* --- recovered ------------------------------------------------------------------------------------------------------- */

static void wrong(const caravan *c, simdisk *disk, const char *when, const char *what, decant_error *err)
{
    char here[1000];

    snprintf(here, sizeof here, "%s", simdisk_names(disk, "."));
    test_fail(__FILE__, __LINE__, "%s: scene '%s': %s%s%s\n    . %s\n    s %s", when, c->scene->name, what,
              err ? ": " : "", err ? decant_error_text(err) : "", here, simdisk_names(disk, "s"));
}

/* Parts that the next save sweeps may be left where nothing else is. */
static bool is_old_but_for_strays(const caravan *c, const simdisk *before)
{
    simdisk *disk = simdisk_clone(before);
    dcn_dir *dir = NULL;
    bool old;
    decant_error err;

    CHECK_OK(dcn_io_open_dir(&disk->io, ".", &dir, &err), &err);
    for (size_t i = 0; i < c->output_count; i++) {
        const char *found;
        char part[64];

        snprintf(part, sizeof part, "%s.decant-", c->scene->outputs[i].name);
        if (!(found = strstr(simdisk_names(disk, "."), part)))
            continue;
        snprintf(part, sizeof part, "%.*s", (int)strcspn(found, " "), found);
        if (strstr(part, ".part"))
            dcn_dir_discard(dir, part);
    }
    dcn_dir_close(&dir);
    old = caravan_is_old(c, disk);
    simdisk_free(&disk);
    return old;
}

/* A save without a journal has published, and not removed all that it was to. */
static bool is_new_but_for_sources(const caravan *c, const simdisk *disk)
{
    return c->output_count == 1 && !caravan_drains(c) && caravan_has_landed(c, disk, 0);
}

/* Where there is no journal nothing is left to be decided. */
static void check_decided(const caravan *c, simdisk *disk, bool must_be_new, const char *when)
{
    if (caravan_is_new(c, disk))
        return;
    if (must_be_new)
        wrong(c, disk, when, "it was said to be done", NULL);
    if (!is_old_but_for_strays(c, disk) && !is_new_but_for_sources(c, disk))
        wrong(c, disk, when, "neither old nor new, and no journal", NULL);
}

/* One way of recovery to its end. */
static void check_way(const caravan *c, const simdisk *before, bool undo, dcn_stage stage, bool may_lack_room,
                      const char *when)
{
    simdisk *disk = simdisk_clone(before);
    const char *what = undo ? "undo" : "resume";
    bool refused = undo ? stage == DCN_STAGE_COMMITTED : stage < DCN_STAGE_READY || stage == DCN_STAGE_ABORTED;
    decant_error err;
    decant_status rc = caravan_recover(disk, undo, &err);

    caravan_check(c, disk, when);
    if (rc == DECANT_INTERRUPTED && undo && may_lack_room)
        goto done;
    if (rc != (refused ? DECANT_BAD_CALL : DECANT_OK))
        wrong(c, disk, when, what, rc ? &err : NULL);
    if (!rc && !(undo ? caravan_is_old(c, disk) : caravan_is_new(c, disk)))
        wrong(c, disk, when, undo ? "undone, and is not as it was" : "resumed, and is not new", NULL);
done:
    simdisk_free(&disk);
}

bool caravan_check_recovers(const caravan *c, simdisk *disk, unsigned claims, const char *when, dcn_stage *stage)
{
    caravan_check(c, disk, when);
    if (!caravan_journal(disk, stage)) {
        check_decided(c, disk, claims & CARAVAN_SAID_NEW, when);
        return false;
    }
    if (claims & CARAVAN_SAID_NEW && *stage != DCN_STAGE_COMMITTED)
        wrong(c, disk, when, "it was said to be done, and is not decided", NULL);
    check_way(c, disk, false, *stage, claims & CARAVAN_MAY_LACK_ROOM, when);
    check_way(c, disk, true, *stage, claims & CARAVAN_MAY_LACK_ROOM, when);
    return true;
}
