#include "pour/crew.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

#include "support/syscalls.h"
#include "support/test.h"

/* Every kind of crew there is: inline, of threads, with seeds. */
enum { MOST_THREADS = 6, KINDS = 50 };

static dcn_crew *crew_of_kind(unsigned kind)
{
    dcn_crew *crew = NULL;
    decant_error err;

    if (kind == 0)
        CHECK_OK(dcn_crew_inline(&crew, &err), &err);
    else if (kind <= MOST_THREADS)
        CHECK_OK(dcn_crew_threads(kind, &crew, &err), &err);
    else
        CHECK_OK(dcn_crew_seeded(kind, &crew, &err), &err);
    return crew;
}

/* Tasks that note when they ran. */
typedef struct note {
    unsigned *log;
    atomic_uint *count;
    unsigned id;
    decant_status outcome;
} note;

static decant_status run(void *ctx, decant_error *err)
{
    note *n = ctx;

    n->log[atomic_fetch_add(n->count, 1)] = n->id;
    return n->outcome ? decant_error_set(err, n->outcome, "task %u failed", n->id) : DECANT_OK;
}

TEST(crew__inline_runs_a_task_when_it_is_given)
{
    unsigned log[2];
    atomic_uint count = 0;
    note n = {log, &count, 7, DECANT_OK};

    for (unsigned kind = 0; kind <= 1; kind++) {
        dcn_crew *crew = crew_of_kind(kind);
        decant_error err;

        dcn_crew_give(crew, 0, (dcn_task){run, &n});
        CHECK_EQ(count, kind + 1);
        CHECK_EQ(dcn_crew_left(crew, 0), 0);
        CHECK_OK(dcn_crew_wait(crew, 0, 0, &err), &err);
        dcn_crew_close(&crew);
    }
}

/* Whatever the crew, each lane is in order and complete; over many seeds lanes overtake each other, and tasks wait. */
TEST(crew__keeps_each_lane_in_order_and_nothing_else)
{
    enum { TASKS = 40 };
    bool waited = false, overtaken = false;

    for (unsigned kind = 0; kind <= KINDS; kind++) {
        unsigned log[2 * TASKS], last[2] = {0, 0};
        atomic_uint count = 0;
        note notes[2 * TASKS];
        dcn_crew *crew = crew_of_kind(kind);
        decant_error err;

        for (unsigned i = 0; i < 2 * TASKS; i++) {
            notes[i] = (note){log, &count, i + 1, DECANT_OK};
            dcn_crew_give(crew, i % 2, (dcn_task){run, &notes[i]});
            waited |= kind > MOST_THREADS && dcn_crew_left(crew, i % 2) > 0;
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
            overtaken |= kind > MOST_THREADS && i && log[i] < log[i - 1];
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
        atomic_uint count = 0;
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
    for (unsigned kind = 0; kind <= KINDS; kind++) {
        unsigned log[8];
        atomic_uint count = 0;
        note notes[8];
        dcn_crew *crew = crew_of_kind(kind);
        decant_error err;

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

/* --- threads ------------------------------------------------------------------------------------------------------- */

/* Two tasks that are done when both have begun. */
typedef struct meeting {
    sem_t *arrives, *awaited;
} meeting;

static decant_status meet(void *ctx, decant_error *err)
{
    meeting *m = ctx;
    struct timespec end;

    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 60;
    sem_post(m->arrives);
    while (sem_timedwait(m->awaited, &end))
        if (errno != EINTR)
            return decant_error_set(err, DECANT_IO, "nobody came");
    return DECANT_OK;
}

TEST(crew__tasks_of_two_lanes_and_the_caller_overlap)
{
    sem_t a, b, c;
    meeting one = {&a, &b}, other = {&b, &c}, own = {&c, &a};
    dcn_crew *crew = crew_of_kind(3);
    decant_error err;

    CHECK(sem_init(&a, 0, 0) == 0 && sem_init(&b, 0, 0) == 0 && sem_init(&c, 0, 0) == 0);
    dcn_crew_give(crew, 0, (dcn_task){meet, &one});
    dcn_crew_give(crew, 3, (dcn_task){meet, &other});
    CHECK_OK(meet(&own, &err), &err);
    CHECK_OK(dcn_crew_wait(crew, 0, 0, &err), &err);
    CHECK_OK(dcn_crew_wait(crew, 3, 0, &err), &err);
    dcn_crew_close(&crew);
}

/* What a task sees of the thread that runs it. */
typedef struct sight {
    pthread_t thread;
    sigset_t blocked;
} sight;

static decant_status look(void *ctx, decant_error *err)
{
    sight *s = ctx;

    (void)err;
    s->thread = pthread_self();
    pthread_sigmask(SIG_BLOCK, NULL, &s->blocked);
    return DECANT_OK;
}

TEST(crew__helpers_are_not_the_caller_and_take_no_signals)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGALRM, SIGCHLD, SIGPIPE};
    dcn_crew *crew = crew_of_kind(2);
    sight theirs, before, after;
    decant_error err;

    look(&before, NULL);
    dcn_crew_give(crew, 1, (dcn_task){look, &theirs});
    CHECK_OK(dcn_crew_wait(crew, 1, 0, &err), &err);
    look(&after, NULL);
    CHECK(!pthread_equal(theirs.thread, pthread_self()));
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        CHECK(sigismember(&theirs.blocked, signals[i]));
        CHECK_EQ(sigismember(&after.blocked, signals[i]), sigismember(&before.blocked, signals[i]));
    }
    dcn_crew_close(&crew);
}

TEST(crew__starts_no_helper_before_there_is_work_for_it)
{
    unsigned log[32];
    atomic_uint count = 0;
    note n = {log, &count, 0, DECANT_OK};
    decant_error err;
    dcn_crew *crew;

    syscalls_begin();
    crew = crew_of_kind(3);
    CHECK_EQ(syscalls_count("pthread_create"), 0);
    for (unsigned i = 0; i < 10; i++)
        dcn_crew_give(crew, 0, (dcn_task){run, &n});
    CHECK_EQ(syscalls_count("pthread_create"), 1); /* a lane is one thread's work */
    for (unsigned i = 0; i < 4; i++) {
        dcn_crew_give(crew, 1, (dcn_task){run, &n});
        dcn_crew_give(crew, 2, (dcn_task){run, &n});
    }
    CHECK(syscalls_count("pthread_create") <= 2);
    syscalls_end();
    for (unsigned lane = 0; lane < 3; lane++)
        CHECK_OK(dcn_crew_wait(crew, lane, 0, &err), &err);
    CHECK_EQ(count, 18);
    dcn_crew_close(&crew);
}

TEST(crew__without_threads_to_have_the_caller_does_it_all)
{
    unsigned log[4];
    atomic_uint count = 0;
    note n = {log, &count, 0, DECANT_OK}, fails = {log, &count, 1, DECANT_IO};
    dcn_crew *crew = crew_of_kind(4);
    sight seen;
    decant_error err;

    syscalls_begin();
    syscalls_fail("pthread_create", 1, EAGAIN);
    dcn_crew_give(crew, 0, (dcn_task){look, &seen});
    CHECK(pthread_equal(seen.thread, pthread_self()));
    dcn_crew_give(crew, 1, (dcn_task){run, &n});
    dcn_crew_give(crew, 2, (dcn_task){run, &fails});
    CHECK_EQ(syscalls_count("pthread_create"), 1);
    syscalls_end();
    CHECK_EQ(count, 2);
    CHECK_OK(dcn_crew_wait(crew, 1, 0, &err), &err);
    CHECK_FAILS(dcn_crew_wait(crew, 2, 0, &err), DECANT_IO, &err);
    dcn_crew_close(&crew);
}

/* Tasks that take their time. */
typedef struct labour {
    atomic_uint begun, ended;
} labour;

static decant_status toil(void *ctx, decant_error *err)
{
    labour *l = ctx;

    (void)err;
    atomic_fetch_add(&l->begun, 1);
    nanosleep(&(struct timespec){.tv_nsec = 2 * 1000 * 1000}, NULL);
    atomic_fetch_add(&l->ended, 1);
    return DECANT_OK;
}

/* Whatever is under way is done when they return, and nothing begins afterwards. */
TEST(crew__reset_and_close_leave_no_task_running)
{
    for (unsigned turn = 0; turn < 20; turn++) {
        labour l = {0};
        dcn_crew *crew = crew_of_kind(2 + turn % 3);
        unsigned begun;
        decant_error err;

        for (unsigned i = 0; i < 8; i++)
            dcn_crew_give(crew, i % 3, (dcn_task){toil, &l});
        while (!atomic_load(&l.begun))
            nanosleep(&(struct timespec){.tv_nsec = 1000}, NULL);
        if (turn % 2) {
            dcn_crew_reset(crew);
            begun = atomic_load(&l.begun);
            CHECK_EQ(begun, atomic_load(&l.ended));
            for (unsigned lane = 0; lane < 3; lane++)
                CHECK_OK(dcn_crew_wait(crew, lane, 0, &err), &err);
            CHECK_EQ(begun, atomic_load(&l.begun));
        }
        dcn_crew_close(&crew);
        CHECK_EQ(atomic_load(&l.begun), atomic_load(&l.ended));
    }
}
