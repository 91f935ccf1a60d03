/*
 * Lanes of tasks, each lane in order. The thread that called decant fills slots and runs every callback; tasks write, sync,
 * mark and free, and run no code of the caller's. An inline crew runs a task when it is given; one with threads leaves it to
 * helpers, and tasks of different lanes overlap; a seeded one, for tests, runs it at random moments that its seed decides.
 *
 * Threads: one at a time, that which called decant.
 */
#ifndef DCN_CREW_H
#define DCN_CREW_H

#include <stdint.h>

#include "base/error.h"

typedef struct dcn_crew dcn_crew;

/* What a task does; it runs once. Its error is kept with its ticket's order: dcn_crew_wait() gives the first. */
typedef struct dcn_task {
    decant_status (*run)(void *ctx, decant_error *err);
    void *ctx; /* [lent] until the task is done */
} dcn_task;

enum { DCN_LANES = 4, DCN_LANE_DEPTH = 16 };

/* A crew that runs tasks when they are given. @param out [owned] */
decant_status dcn_crew_inline(dcn_crew **out, decant_error *err);

/*
 * A crew of so many threads, the caller's among them: 1 is an inline one. A helper is started when the first task is given that
 * it is for, and ends with the crew. Where the system has no thread to give, those that there are do it all, the caller's at
 * last, which changes nothing but the time it takes.
 */
decant_status dcn_crew_threads(unsigned threads, dcn_crew **out, decant_error *err);

/* A crew that runs them later, in an order within the rules that `seed`, not 0, decides. */
decant_status dcn_crew_seeded(uint64_t seed, dcn_crew **out, decant_error *err);

/* Gives a task to a lane. After a failure in a lane its later tasks are not run. May run tasks of any lane, or wait for them. */
void dcn_crew_give(dcn_crew *crew, unsigned lane, dcn_task task);

/* Until at most `left` tasks of the lane are not done. @return the first failure of the lane, with its error */
decant_status dcn_crew_wait(dcn_crew *crew, unsigned lane, unsigned left, decant_error *err);

/* How many tasks of the lane are not done. */
unsigned dcn_crew_left(dcn_crew *crew, unsigned lane);

/* Forgets failures and tasks not run; waits for one that is being run. A crew serves one job after the other. */
void dcn_crew_reset(dcn_crew *crew);

/* As dcn_crew_reset(), and helpers end. */
void dcn_crew_close(dcn_crew **crew);

#endif
