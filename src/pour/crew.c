#include "pour/crew.h"

#include <assert.h>
#include <stdbool.h>

#include "base/alloc.h"
#include "base/ckd.h"
#include "base/thread.h"

/* A ring of tasks that are not done. The one that is being run is the first of them until it is. */
typedef struct lane {
    dcn_task tasks[DCN_LANE_DEPTH];
    unsigned first, count;
    bool running;
    decant_status status; /* the first failure: nothing runs after it */
    decant_error error;
} lane;

struct dcn_crew {
    bool seeded;
    uint64_t state;  /* of the random numbers */
    dcn_mutex mutex; /* of all that follows; nobody has it while a task runs */
    dcn_change change;
    lane lanes[DCN_LANES];
    dcn_thread helpers[DCN_LANES];
    unsigned helper_count, most; /* that are there, and that may be */
    bool ending;
};

static void run_first(dcn_crew *crew, lane *l)
{
    if (l->status == DECANT_OK) {
        dcn_task task = l->tasks[l->first];
        decant_status rc;

        l->running = true;
        dcn_unlock(&crew->mutex);
        rc = task.run(task.ctx, &l->error);
        dcn_lock(&crew->mutex);
        l->running = false;
        l->status = rc;
    }
    l->first = (l->first + 1) % DCN_LANE_DEPTH;
    l->count--;
    dcn_change_tell(&crew->change);
}

/* Until at most `left` tasks of a lane are not done. Without helpers they are run here. */
static void finish(dcn_crew *crew, lane *l, unsigned left)
{
    while (l->count > left)
        if (crew->helper_count)
            dcn_change_await(&crew->change, &crew->mutex);
        else
            run_first(crew, l);
}

/* --- helpers ----------------------------------------------------------------------------------------------------- */

/* One whose first task nobody runs yet; NULL: there is none. */
static lane *waiting_lane(dcn_crew *crew)
{
    for (unsigned i = 0; i < DCN_LANES; i++)
        if (crew->lanes[i].count && !crew->lanes[i].running)
            return &crew->lanes[i];
    return NULL;
}

static void *help(void *ctx)
{
    dcn_crew *crew = ctx;
    lane *l;

    dcn_lock(&crew->mutex);
    while (!crew->ending)
        if ((l = waiting_lane(crew)))
            run_first(crew, l);
        else
            dcn_change_await(&crew->change, &crew->mutex);
    dcn_unlock(&crew->mutex);
    return NULL;
}

/* One for each lane that has tasks, as far as there may be so many. Where the system has no more, none is asked for again. */
static void call_helper(dcn_crew *crew)
{
    unsigned wanted = 0;

    for (unsigned i = 0; i < DCN_LANES; i++)
        wanted += crew->lanes[i].count > 0;
    if (crew->helper_count >= dcn_min(wanted, crew->most))
        return;
    if (dcn_thread_start(&crew->helpers[crew->helper_count], help, crew))
        crew->helper_count++;
    else
        crew->most = crew->helper_count;
}

/* --- chance ------------------------------------------------------------------------------------------------------ */

/* xorshift64: any sequence does that a seed gives again. */
static unsigned below(dcn_crew *crew, unsigned bound)
{
    crew->state ^= crew->state << 13;
    crew->state ^= crew->state >> 7;
    crew->state ^= crew->state << 17;
    return (unsigned)(crew->state >> 32) % bound;
}

/* None, some or many tasks, of any lanes. */
static void run_some(dcn_crew *crew)
{
    for (unsigned n = below(crew, 2 * DCN_LANES); n > 0; n--) {
        lane *l = &crew->lanes[below(crew, DCN_LANES)];

        if (l->count)
            run_first(crew, l);
    }
}

/* --- what is asked of it ----------------------------------------------------------------------------------------- */

void dcn_crew_give(dcn_crew *crew, unsigned lane_index, dcn_task task)
{
    lane *l = &crew->lanes[lane_index];

    dcn_lock(&crew->mutex);
    finish(crew, l, DCN_LANE_DEPTH - 1);
    l->tasks[(l->first + l->count++) % DCN_LANE_DEPTH] = task;
    call_helper(crew);
    if (crew->helper_count)
        dcn_change_tell(&crew->change);
    else if (crew->seeded)
        run_some(crew);
    else
        run_first(crew, l);
    dcn_unlock(&crew->mutex);
}

decant_status dcn_crew_wait(dcn_crew *crew, unsigned lane_index, unsigned left, decant_error *err)
{
    lane *l = &crew->lanes[lane_index];
    decant_status rc;

    dcn_lock(&crew->mutex);
    if (crew->seeded)
        run_some(crew);
    finish(crew, l, left);
    rc = l->status;
    if (rc && err)
        *err = l->error;
    dcn_unlock(&crew->mutex);
    return rc;
}

unsigned dcn_crew_left(dcn_crew *crew, unsigned lane_index)
{
    unsigned left;

    dcn_lock(&crew->mutex);
    left = crew->lanes[lane_index].count;
    dcn_unlock(&crew->mutex);
    return left;
}

void dcn_crew_reset(dcn_crew *crew)
{
    dcn_lock(&crew->mutex);
    for (unsigned i = 0; i < DCN_LANES; i++)
        crew->lanes[i].count = crew->lanes[i].running;
    for (unsigned i = 0; i < DCN_LANES; i++) {
        finish(crew, &crew->lanes[i], 0);
        crew->lanes[i].status = DECANT_OK;
    }
    dcn_unlock(&crew->mutex);
}

/* --- making and ending it ---------------------------------------------------------------------------------------- */

static decant_status create(unsigned helpers, uint64_t seed, dcn_crew **out, decant_error *err)
{
    dcn_crew *crew = dcn_alloc(1, sizeof *crew);

    if (!crew)
        return dcn_error_nomem(err);
    dcn_mutex_init(&crew->mutex);
    dcn_change_init(&crew->change);
    crew->most = (unsigned)dcn_min(helpers, DCN_LANES);
    crew->seeded = seed != 0;
    crew->state = seed;
    *out = crew;
    return DECANT_OK;
}

decant_status dcn_crew_inline(dcn_crew **out, decant_error *err)
{
    return create(0, 0, out, err);
}

decant_status dcn_crew_threads(unsigned threads, dcn_crew **out, decant_error *err)
{
    assert(threads != 0);
    return create(threads - 1, 0, out, err);
}

decant_status dcn_crew_seeded(uint64_t seed, dcn_crew **out, decant_error *err)
{
    assert(seed != 0); /* from which xorshift never leaves */
    return create(0, seed, out, err);
}

void dcn_crew_close(dcn_crew **crew)
{
    dcn_crew *c = *crew;

    if (!c)
        return;
    dcn_lock(&c->mutex);
    c->ending = true;
    dcn_change_tell(&c->change);
    dcn_unlock(&c->mutex);
    for (unsigned i = 0; i < c->helper_count; i++)
        dcn_thread_join(c->helpers[i]);
    dcn_change_close(&c->change);
    dcn_mutex_close(&c->mutex);
    dcn_free(crew);
}
