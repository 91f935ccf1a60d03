#include "pour/crew.h"

#include <assert.h>
#include <stdbool.h>

#include "base/alloc.h"

/* A ring of tasks that are not done. */
typedef struct lane {
    dcn_task tasks[DCN_LANE_DEPTH];
    unsigned first, count;
    decant_status status; /* the first failure: nothing runs after it */
    decant_error error;
} lane;

struct dcn_crew {
    bool seeded;
    uint64_t state; /* of the random numbers */
    lane lanes[DCN_LANES];
};

static void run_first(lane *l)
{
    dcn_task task = l->tasks[l->first];

    l->first = (l->first + 1) % DCN_LANE_DEPTH;
    l->count--;
    if (l->status == DECANT_OK)
        l->status = task.run(task.ctx, &l->error);
}

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
            run_first(l);
    }
}

void dcn_crew_give(dcn_crew *crew, unsigned lane_index, dcn_task task)
{
    lane *l = &crew->lanes[lane_index];

    if (l->count == DCN_LANE_DEPTH)
        run_first(l);
    l->tasks[(l->first + l->count++) % DCN_LANE_DEPTH] = task;
    if (crew->seeded)
        run_some(crew);
    else
        run_first(l);
}

decant_status dcn_crew_wait(dcn_crew *crew, unsigned lane_index, unsigned left, decant_error *err)
{
    lane *l = &crew->lanes[lane_index];

    if (crew->seeded)
        run_some(crew);
    while (l->count > left)
        run_first(l);
    if (l->status && err)
        *err = l->error;
    return l->status;
}

unsigned dcn_crew_left(const dcn_crew *crew, unsigned lane_index)
{
    return crew->lanes[lane_index].count;
}

void dcn_crew_reset(dcn_crew *crew)
{
    for (unsigned i = 0; i < DCN_LANES; i++)
        crew->lanes[i].first = crew->lanes[i].count = crew->lanes[i].status = 0;
}

static decant_status create(bool seeded, uint64_t seed, dcn_crew **out, decant_error *err)
{
    dcn_crew *crew = dcn_alloc(1, sizeof *crew);

    if (!crew)
        return dcn_error_nomem(err);
    crew->seeded = seeded;
    crew->state = seed;
    *out = crew;
    return DECANT_OK;
}

decant_status dcn_crew_inline(dcn_crew **out, decant_error *err)
{
    return create(false, 0, out, err);
}

decant_status dcn_crew_seeded(uint64_t seed, dcn_crew **out, decant_error *err)
{
    assert(seed != 0); /* from which xorshift never leaves */
    return create(true, seed, out, err);
}

void dcn_crew_close(dcn_crew **crew)
{
    dcn_free(crew);
}
