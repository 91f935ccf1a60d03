#include "pour/crew.h"

#include "support/test.h"

/* Tasks that note when they ran. */
typedef struct note {
    unsigned *log, *count, id;
    decant_status outcome;
} note;

static decant_status run(void *ctx, decant_error *err)
{
    note *n = ctx;

    n->log[(*n->count)++] = n->id;
    return n->outcome ? decant_error_set(err, n->outcome, "task %u failed", n->id) : DECANT_OK;
}

TEST(crew__inline_runs_a_task_when_it_is_given)
{
    unsigned log[1], count = 0;
    note n = {log, &count, 7, DECANT_OK};
    dcn_crew *crew = NULL;
    decant_error err;

    CHECK_OK(dcn_crew_inline(&crew, &err), &err);
    dcn_crew_give(crew, 0, (dcn_task){run, &n});
    CHECK_EQ(count, 1);
    CHECK_EQ(dcn_crew_left(crew, 0), 0);
    CHECK_OK(dcn_crew_wait(crew, 0, 0, &err), &err);
    dcn_crew_close(&crew);
}

/* Whatever the seed, each lane is in order and complete; over many seeds lanes overtake each other, and tasks wait. */
TEST(crew__seeded_keeps_each_lane_in_order_and_nothing_else)
{
    enum { TASKS = 40 };
    bool waited = false, overtaken = false;

    for (uint64_t seed = 1; seed <= 50; seed++) {
        unsigned log[2 * TASKS], count = 0, last[2] = {0, 0};
        note notes[2 * TASKS];
        dcn_crew *crew = NULL;
        decant_error err;

        CHECK_OK(dcn_crew_seeded(seed, &crew, &err), &err);
        for (unsigned i = 0; i < 2 * TASKS; i++) {
            notes[i] = (note){log, &count, i + 1, DECANT_OK};
            dcn_crew_give(crew, i % 2, (dcn_task){run, &notes[i]});
            waited |= dcn_crew_left(crew, i % 2) > 0;
        }
        for (unsigned lane = 0; lane < 2; lane++) {
            CHECK_OK(dcn_crew_wait(crew, lane, 0, &err), &err);
            CHECK_EQ(dcn_crew_left(crew, lane), 0);
        }
        CHECK_EQ(count, 2 * TASKS);
        for (unsigned i = 0; i < count; i++) {
            unsigned lane = (log[i] - 1) % 2;

            CHECK(log[i] > last[lane]);
            last[lane] = log[i];
            overtaken |= i && log[i] < log[i - 1];
        }
        dcn_crew_close(&crew);
    }
    CHECK(waited && overtaken);
}

TEST(crew__same_seed_gives_the_same_order)
{
    enum { TASKS = 60 };
    unsigned logs[2][TASKS];

    for (unsigned turn = 0; turn < 2; turn++) {
        note notes[TASKS];
        unsigned count = 0;
        dcn_crew *crew = NULL;
        decant_error err;

        CHECK_OK(dcn_crew_seeded(5, &crew, &err), &err);
        for (unsigned i = 0; i < TASKS; i++) {
            notes[i] = (note){logs[turn], &count, i, DECANT_OK};
            dcn_crew_give(crew, i % DCN_LANES, (dcn_task){run, &notes[i]});
        }
        for (unsigned lane = 0; lane < DCN_LANES; lane++)
            CHECK_OK(dcn_crew_wait(crew, lane, 0, &err), &err);
        dcn_crew_close(&crew);
    }
    CHECK_BYTES(logs[0], sizeof logs[0], logs[1], sizeof logs[1]);
}

TEST(crew__a_lane_stops_at_its_first_failure_and_tells_of_it)
{
    for (uint64_t seed = 0; seed <= 20; seed++) {
        unsigned log[8], count = 0;
        note notes[8];
        dcn_crew *crew = NULL;
        decant_error err;

        if (seed)
            CHECK_OK(dcn_crew_seeded(seed, &crew, &err), &err);
        else
            CHECK_OK(dcn_crew_inline(&crew, &err), &err);
        for (unsigned i = 0; i < 8; i++) {
            notes[i] = (note){log, &count, i, i == 3 || i == 5 ? DECANT_IO : DECANT_OK};
            dcn_crew_give(crew, 1, (dcn_task){run, &notes[i]});
        }
        CHECK_FAILS(dcn_crew_wait(crew, 1, 0, &err), DECANT_IO, &err);
        CHECK_TEXT(err.message, "task 3 failed");
        CHECK_EQ(count, 4);
        CHECK_OK(dcn_crew_wait(crew, 0, 0, &err), &err); /* other lanes know nothing of it */

        dcn_crew_reset(crew);
        notes[0].outcome = DECANT_OK;
        dcn_crew_give(crew, 1, (dcn_task){run, &notes[0]});
        CHECK_OK(dcn_crew_wait(crew, 1, 0, &err), &err);
        CHECK_EQ(count, 5);
        dcn_crew_close(&crew);
    }
}
