#include "support/recorder.h"

#include <stdlib.h>

typedef struct provider {
    recorder *r;
    unsigned who;
    uint64_t len;
    uint8_t *all; /* what ranges are read from */
    uint8_t *lent;
    size_t lent_len;
} provider;

static void note(recorder *r, recorder_event event)
{
    if (r->count == r->cap) {
        r->cap = r->cap ? 2 * r->cap : 64;
        r->events = realloc(r->events, r->cap * sizeof *r->events);
        CHECK(r->events != NULL);
    }
    r->events[r->count++] = event;
}

static decant_status fails(recorder *r, unsigned who, decant_error *err)
{
    if (++r->asked != r->fail_at)
        return DECANT_OK;
    if (r->silent)
        return DECANT_CALLBACK;
    decant_error_set(err, DECANT_IO, "provider %u is angry", who);
    err->callback_code = 77;
    return DECANT_IO;
}

static decant_status read_range(void *ctx, uint64_t offset, void *dst, size_t len, decant_error *err)
{
    provider *p = ctx;

    note(p->r, (recorder_event){ASKED_RANGE, p->who, offset, len});
    CHECK(offset + len <= p->len);
    if (!p->all) {
        p->all = malloc(p->len + 1);
        CHECK(p->all != NULL);
        test_stream(p->who, p->all, p->len);
    }
    memcpy(dst, p->all + offset, len);
    return fails(p->r, p->who, err);
}

static decant_status produce(void *ctx, decant_view *out, decant_error *err)
{
    provider *p = ctx;
    decant_status rc;

    note(p->r, (recorder_event){ASKED_WHOLE, p->who, 0, p->len});
    CHECK(!p->lent);
    if ((rc = fails(p->r, p->who, err)))
        return rc;
    p->lent_len = (size_t)p->len + (p->who == p->r->longer_of ? (size_t)p->r->longer : 0);
    p->lent = malloc(p->lent_len + 1);
    CHECK(p->lent != NULL);
    test_stream(p->who, p->lent, p->lent_len);
    p->r->lent++;
    *out = (decant_view){.data = p->lent, .len = p->lent_len, .hold = p};
    return DECANT_OK;
}

static void discard(void *ctx, decant_view *view)
{
    provider *p = ctx;

    note(p->r, (recorder_event){GIVEN_BACK, p->who, 0, p->len});
    CHECK(p->lent && view->data == p->lent && view->hold == p);
    memset(p->lent, 0xDD, p->lent_len);
    free(p->lent);
    p->lent = NULL;
    p->r->lent--;
}

static void release(void *ctx)
{
    provider *p = ctx;

    note(p->r, (recorder_event){RELEASED, p->who, 0, 0});
    CHECK(!p->lent);
    free(p->all);
    free(p);
}

decant_bytes *recorder_bytes(recorder *r, unsigned who, uint64_t len, bool whole)
{
    provider *p = malloc(sizeof *p);
    decant_provider calls = DECANT_PROVIDER_INIT;
    decant_bytes *bytes = NULL;
    decant_error err;

    CHECK(p != NULL);
    *p = (provider){.r = r, .who = who, .len = len};
    if (whole) {
        calls.produce = produce;
        calls.discard = discard;
    } else {
        calls.read = read_range;
    }
    calls.release = release;
    calls.ctx = p;
    CHECK_OK(decant_bytes_defer(len, &calls, &bytes, &err), &err);
    return bytes;
}

void recorder_check(const recorder *r, const uint64_t *lens, size_t count)
{
    size_t i = 0;

    for (unsigned who = 0; who < count; who++) {
        if (i < r->count && lens[who] && r->events[i].what == ASKED_WHOLE) {
            CHECK_EQ(r->events[i++].who, who);
            CHECK(i < r->count);
            CHECK_EQ(r->events[i].what, GIVEN_BACK);
            CHECK_EQ(r->events[i++].who, who);
        } else {
            for (uint64_t at = 0; at < lens[who]; at += r->events[i++].len) {
                CHECK(i < r->count);
                CHECK_EQ(r->events[i].what, ASKED_RANGE);
                CHECK_EQ(r->events[i].who, who);
                CHECK_EQ(r->events[i].at, at);
                CHECK(r->events[i].len > 0);
            }
        }
    }
    for (; i < r->count; i++)
        CHECK_EQ(r->events[i].what, RELEASED);
}

size_t recorder_count(const recorder *r, recorder_what what)
{
    size_t n = 0;

    for (size_t i = 0; i < r->count; i++)
        n += r->events[i].what == what;
    return n;
}

void recorder_close(recorder *r)
{
    free(r->events);
    *r = (recorder){0};
}
