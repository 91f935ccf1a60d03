/*
 * Bytes by callback.
 *
 *  (1) Calls of one provider never overlap, and nothing is asked of it between produce and discard: whoever calls has the
 *      turn, and memory that is lent keeps it until the view is given back, on whatever thread.
 *  (2) discard follows every produce that succeeded, whatever comes after.
 */
#include "bytes/bytes.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/alloc.h"

typedef struct provider {
    dcn_backing base;
    decant_provider calls;
    dcn_mutex lock; /* guards busy */
    dcn_change change;
    bool busy;
    decant_view lent; /* what produce gave; with the turn */
    dcn_hold hold;    /* of the one view on it */
} provider;

static void take_turn(provider *p)
{
    dcn_lock(&p->lock);
    while (p->busy)
        dcn_change_await(&p->change, &p->lock);
    p->busy = true;
    dcn_unlock(&p->lock);
}

static void end_turn(provider *p)
{
    dcn_lock(&p->lock);
    p->busy = false;
    dcn_change_tell(&p->change);
    dcn_unlock(&p->lock);
}

static void discard(provider *p)
{
    if (p->calls.discard)
        p->calls.discard(p->calls.ctx, &p->lent);
    p->lent = (decant_view){0};
}

/* What is produced is what was promised, or discarded at once. */
static decant_status produce(provider *p, decant_error *err)
{
    decant_error said = {.offset = DECANT_NO_OFFSET};
    decant_status rc = p->calls.produce(p->calls.ctx, &p->lent, &said);

    if (rc)
        return dcn_callback_outcome(rc, &said, "provider", err);
    if (p->lent.len == p->base.len && (p->lent.data || p->lent.len == 0))
        return DECANT_OK;

    rc = decant_error_set(err, DECANT_MISMATCH, "the provider did not keep its promise of a length");
    if (p->lent.data)
        dcn_error_found(err, "%zu bytes", p->lent.len);
    else
        dcn_error_found(err, "no bytes");
    dcn_error_expected(err, "%" PRIu64, p->base.len);
    dcn_error_side(err, DECANT_SIDE_CALLER);
    discard(p); /* keeps (2) */
    return rc;
}

static decant_status read_ranges(provider *p, const dcn_fetch *f, size_t count, decant_error *err)
{
    decant_error said = {.offset = DECANT_NO_OFFSET};
    decant_status rc = DECANT_OK;

    for (size_t i = 0; i < count && rc == DECANT_OK; i++)
        rc = p->calls.read(p->calls.ctx, f[i].at, f[i].dst, f[i].len, &said);
    return dcn_callback_outcome(rc, &said, "provider", err);
}

static decant_status copy_ranges(provider *p, const dcn_fetch *f, size_t count, decant_error *err)
{
    decant_status rc = produce(p, err);

    if (rc)
        return rc;
    for (size_t i = 0; i < count && p->lent.data; i++) /* there is no data only where there are no bytes */
        memcpy(f[i].dst, (const uint8_t *)p->lent.data + f[i].at, f[i].len);
    discard(p);
    return DECANT_OK;
}

static decant_status read_provider(dcn_backing *b, dcn_fetch *f, size_t count, decant_error *err)
{
    provider *p = (provider *)b;
    decant_status rc;

    take_turn(p);
    rc = p->calls.read ? read_ranges(p, f, count, err) : copy_ranges(p, f, count, err);
    end_turn(p);
    return rc;
}

static decant_status lend_provider(dcn_backing *b, uint64_t at, uint64_t len, decant_view *out, decant_error *err)
{
    provider *p = (provider *)b;
    decant_status rc;

    if (!p->calls.produce)
        return DECANT_UNSUPPORTED;
    take_turn(p);
    if ((rc = produce(p, err))) {
        end_turn(p);
        return rc;
    }
    decant_bytes_ref(b);
    *out = (decant_view){(const uint8_t *)p->lent.data + at, (size_t)len, &p->hold};
    return DECANT_OK;
}

static void release_view(dcn_hold *hold)
{
    provider *p = (provider *)((char *)hold - offsetof(provider, hold));
    dcn_backing *b = &p->base;

    discard(p);
    end_turn(p);
    decant_bytes_unref(&b);
}

static dcn_backing *close_provider(dcn_backing *b)
{
    provider *p = (provider *)b;

    if (p->calls.release)
        p->calls.release(p->calls.ctx);
    dcn_change_close(&p->change);
    dcn_mutex_close(&p->lock);
    dcn_free(&p);
    return NULL;
}

static const dcn_backing_ops ops = {
    .kind = "provider",
    .takes_turns = true,
    .begin = read_provider,
    .lend = lend_provider,
    .close = close_provider,
};

decant_status dcn_bytes_defer(uint64_t len, const decant_provider *calls, decant_bytes **out, decant_error *err)
{
    provider *p = dcn_alloc(1, sizeof *p);

    if (!p)
        return dcn_error_nomem(err);
    dcn_backing_init(&p->base, &ops, len);
    p->calls = *calls;
    p->hold.release = release_view;
    dcn_mutex_init(&p->lock);
    dcn_change_init(&p->change);
    *out = &p->base;
    return DECANT_OK;
}
