/* Bytes are shared freely: real threads, so that a thread sanitizer has something to look at. */
#include "support/test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "bytes/bytes.h"

enum { THREADS = 8, ROUNDS = 50, LEN = 4096 };

static uint8_t content[LEN];

/* A provider that says when calls of it overlap. */
typedef struct script {
    atomic_int inside, calls, overlaps, released;
    atomic_int fails; /* calls that fail before the first that succeeds */
    decant_bytes *bytes;
} script;

/* Long enough inside for others to come, if they could. */
static void linger(long microseconds)
{
    struct timespec pause = {.tv_nsec = microseconds * 1000};

    nanosleep(&pause, NULL);
}

static decant_status read_content(void *ctx, uint64_t offset, void *dst, size_t len, decant_error *err)
{
    script *s = ctx;

    if (atomic_fetch_add(&s->inside, 1) != 0)
        atomic_fetch_add(&s->overlaps, 1);
    atomic_fetch_add(&s->calls, 1);
    linger(20);
    memcpy(dst, content + offset, len);
    atomic_fetch_sub(&s->inside, 1);
    if (atomic_fetch_sub(&s->fails, 1) > 0)
        return decant_error_set(err, DECANT_IO, "not yet");
    return DECANT_OK;
}

static decant_status produce_content(void *ctx, decant_view *out, decant_error *err)
{
    script *s = ctx;

    (void)err;
    if (atomic_fetch_add(&s->inside, 1) != 0)
        atomic_fetch_add(&s->overlaps, 1);
    linger(20);
    out->data = content;
    out->len = LEN;
    return DECANT_OK;
}

static void discard_content(void *ctx, decant_view *view)
{
    script *s = ctx;

    (void)view;
    atomic_fetch_sub(&s->inside, 1);
}

static void release(void *ctx)
{
    atomic_fetch_add(&((script *)ctx)->released, 1);
}

static decant_bytes *defer(script *s, bool by_range)
{
    decant_provider calls = DECANT_PROVIDER_INIT;
    decant_error err = {0};
    decant_bytes *bytes = NULL;

    if (by_range) {
        calls.read = read_content;
    } else {
        calls.produce = produce_content;
        calls.discard = discard_content;
    }
    calls.release = release;
    calls.ctx = s;
    test_stream(1, content, LEN);
    CHECK_OK(decant_bytes_defer(LEN, &calls, &bytes, &err), &err);
    return bytes;
}

/* Runs `work` on all threads at once. @return how many of them gave NULL, which means that all was well */
static int run(void *(*work)(void *), void *arg)
{
    pthread_t threads[THREADS];
    int well = 0;

    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, work, arg), 0);
    for (int i = 0; i < THREADS; i++) {
        void *complaint;

        CHECK_EQ(pthread_join(threads[i], &complaint), 0);
        if (complaint)
            fprintf(stderr, "%s\n", (const char *)complaint);
        well += !complaint;
    }
    return well;
}

/* Everything that may be done to shared bytes, in turns. */
static void *use(void *arg)
{
    decant_bytes *bytes = decant_bytes_ref(((script *)arg)->bytes), *part = NULL;
    static char keep_failed[] = "keep failed", wrong[] = "wrong bytes", pin_failed[] = "pin failed";
    char *complaint = NULL;

    for (int i = 0; i < ROUNDS && !complaint; i++) {
        decant_view view = {0};
        uint8_t own[16];

        if (decant_bytes_keep(bytes, NULL))
            complaint = keep_failed;
        if (decant_bytes_slice(bytes, 16, 64, &part, NULL) || decant_bytes_pin(part, 8, 40, 0, &view, NULL))
            complaint = pin_failed;
        else if (memcmp(view.data, content + 24, 40) != 0)
            complaint = wrong;
        if (i % 3 == 0)
            decant_bytes_drop(bytes);
        if (view.data && memcmp(view.data, content + 24, 40) != 0)
            complaint = wrong;
        if (decant_bytes_read(bytes, 100, own, sizeof own, NULL) || memcmp(own, content + 100, sizeof own) != 0)
            complaint = wrong;
        decant_view_release(&view);
        decant_bytes_unref(&part);
    }
    decant_bytes_unref(&bytes);
    return complaint;
}

TEST(bytes__can_be_kept_dropped_pinned_and_unreferenced_by_many_threads)
{
    for (int by_range = 0; by_range < 2; by_range++) {
        script s = {0};

        s.bytes = defer(&s, by_range);
        CHECK_EQ(run(use, &s), THREADS);
        CHECK_EQ(s.overlaps, 0);
        CHECK_EQ(s.released, 0);
        decant_bytes_unref(&s.bytes);
        CHECK_EQ(s.released, 1);
    }
}

/* Each thread gives one reference back; the last of them releases, whoever it is. */
static void *give_back(void *arg)
{
    decant_bytes *bytes = arg;

    decant_bytes_unref(&bytes);
    return NULL;
}

TEST(the_last_unref__releases_once_on_whatever_thread)
{
    for (int i = 0; i < ROUNDS; i++) {
        script s = {0};
        decant_bytes *bytes = defer(&s, true);

        for (int k = 1; k < THREADS; k++)
            decant_bytes_ref(bytes);
        CHECK_EQ(run(give_back, bytes), THREADS);
        CHECK_EQ(s.released, 1);
    }
}

static void *keep_once(void *arg)
{
    static char differs[] = "status and error differ";
    decant_error err = {0};
    decant_status rc = decant_bytes_keep(((script *)arg)->bytes, &err);

    return rc == err.status && (rc == DECANT_OK || strcmp(err.message, "not yet") == 0) ? NULL : differs;
}

/* Waits in the callback until the others are at the lock, or have had the time to be. */
static decant_status read_slowly(void *ctx, uint64_t offset, void *dst, size_t len, decant_error *err)
{
    linger(20000);
    return read_content(ctx, offset, dst, len, err);
}

TEST(those_who_wait__share_the_outcome_of_the_attempt_and_read_nothing)
{
    for (int fails = 0; fails < 2; fails++) {
        script s = {0};
        decant_provider calls = DECANT_PROVIDER_INIT;
        decant_error err = {0};

        calls.read = read_slowly;
        calls.ctx = &s;
        atomic_store(&s.fails, fails);
        CHECK_OK(decant_bytes_defer(LEN, &calls, &s.bytes, &err), &err);
        CHECK_EQ(run(keep_once, &s), THREADS);
        CHECK(atomic_load(&s.calls) <= 1 + fails); /* those who came after a failed attempt made one more */
        CHECK_EQ(s.overlaps, 0);
        CHECK_OK(decant_bytes_keep(s.bytes, &err), &err);
        CHECK(atomic_load(&s.calls) <= 1 + fails);
        decant_bytes_unref(&s.bytes);
    }
}

/* Lends what is produced and gives it back on another thread: the turn goes with the view. */
static void *lend_and_read(void *arg)
{
    static char failed[] = "lend failed";
    decant_bytes *bytes = ((script *)arg)->bytes;

    for (int i = 0; i < ROUNDS; i++) {
        decant_view view = {0};
        uint8_t own[16];

        if (dcn_backing_lend(bytes, 0, LEN, true, &view, NULL))
            return failed;
        decant_view_release(&view);
        if (decant_bytes_read(bytes, 3, own, sizeof own, NULL) || memcmp(own, content + 3, sizeof own) != 0)
            return failed;
    }
    return NULL;
}

TEST(a_provider__is_not_asked_while_its_memory_is_lent)
{
    script s = {0};

    s.bytes = defer(&s, false);
    CHECK_EQ(run(lend_and_read, &s), THREADS);
    CHECK_EQ(s.overlaps, 0);
    decant_bytes_unref(&s.bytes);
}

static void *release_view(void *arg)
{
    decant_view_release(arg);
    return NULL;
}

TEST(a_view__may_be_given_back_on_any_thread)
{
    script s = {0};
    decant_error err = {0};
    decant_view view = {0};
    pthread_t thread;

    s.bytes = defer(&s, false);
    CHECK_OK(dcn_backing_lend(s.bytes, 0, LEN, true, &view, &err), &err);
    CHECK_EQ(pthread_create(&thread, NULL, release_view, &view), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(s.inside, 0);
    CHECK_OK(dcn_backing_lend(s.bytes, 0, LEN, true, &view, &err), &err);
    decant_view_release(&view);
    decant_bytes_unref(&s.bytes);
}
