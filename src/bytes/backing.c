#include "bytes/bytes.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "base/alloc.h"
#include "base/ckd.h"

/* --- memory of our own: what keep() holds, what pin() read ------------------------------------------------------- */

struct dcn_kept {
    dcn_hold hold; /* first: a view's hold is the whole */
    dcn_refs refs;
    _Alignas(max_align_t) uint8_t data[];
};

static void release_kept(dcn_hold *hold)
{
    struct dcn_kept *kept = (struct dcn_kept *)hold;

    if (dcn_refs_down(&kept->refs))
        dcn_free(&kept);
}

/* What is kept of `b`, with a reference; NULL: nothing. */
static struct dcn_kept *kept_of(dcn_backing *b)
{
    struct dcn_kept *kept;

    if (!atomic_load_explicit(&b->kept, memory_order_relaxed))
        return NULL;
    dcn_lock(&b->lock);
    kept = b->kept;
    if (kept)
        dcn_refs_up(&kept->refs);
    dcn_unlock(&b->lock);
    return kept;
}

bool dcn_backing_is_kept(dcn_backing *b)
{
    struct dcn_kept *kept = kept_of(b);

    if (kept)
        release_kept(&kept->hold);
    return kept != NULL;
}

/* Reads a range into new memory. */
static decant_status load(dcn_backing *b, uint64_t at, uint64_t len, struct dcn_kept **out, decant_error *err)
{
    dcn_fetch fetch = {.at = at, .len = (size_t)len};
    struct dcn_kept *kept = len <= SIZE_MAX - sizeof *kept ? dcn_alloc(1, sizeof *kept + (size_t)len) : NULL;
    decant_status rc;

    if (!kept)
        return dcn_error_nomem(err);
    kept->hold.release = release_kept;
    atomic_init(&kept->refs, 1);
    fetch.dst = kept->data;
    if ((rc = dcn_backing_fetch(b, &fetch, 1, err))) {
        release_kept(&kept->hold);
        return rc;
    }
    *out = kept;
    return DECANT_OK;
}

/* --- the common part --------------------------------------------------------------------------------------------- */

void dcn_backing_init(dcn_backing *b, const dcn_backing_ops *ops, uint64_t len)
{
    *b = (dcn_backing){.ops = ops, .len = len};
    atomic_init(&b->refs, 1);
    dcn_mutex_init(&b->lock);
}

decant_bytes *decant_bytes_ref(decant_bytes *bytes)
{
    dcn_refs_up(&bytes->refs);
    return bytes;
}

void decant_bytes_unref(decant_bytes **bytes)
{
    dcn_backing *b = *bytes;

    *bytes = NULL;
    while (b && dcn_refs_down(&b->refs)) {
        decant_bytes_drop(b);
        dcn_mutex_close(&b->lock);
        b = b->ops->close(b);
    }
}

uint64_t decant_bytes_len(const decant_bytes *bytes)
{
    return bytes->len;
}

void decant_view_release(decant_view *view)
{
    dcn_hold *hold = view->hold;

    *view = (decant_view){0};
    if (hold)
        hold->release(hold);
}

/* --- where bytes are --------------------------------------------------------------------------------------------- */

/* What answers for an offset, and for `len` bytes from there. */
typedef struct spot {
    dcn_backing *b;
    uint64_t at, len;
    struct dcn_kept *kept; /* held: what is kept of `b`; NULL: `b` is asked */
} spot;

/* `at` < b->len. As deep as slices and ropes are stacked, in a loop. */
static spot find(dcn_backing *b, uint64_t at)
{
    spot s = {.b = b, .at = at, .len = b->len - at};

    while (!(s.kept = kept_of(s.b)) && s.b->ops->under) {
        uint64_t offset, upto;
        dcn_backing *below = s.b->ops->under(s.b, s.at, &offset, &upto);

        s.len = dcn_min(s.len, upto - s.at);
        s.b = below;
        s.at = offset;
    }
    return s;
}

static void leave(spot *s)
{
    if (s->kept)
        release_kept(&s->kept->hold);
}

dcn_backing *dcn_backing_leaf(dcn_backing *b, uint64_t at, uint64_t *offset, uint64_t *upto)
{
    spot s = {.b = b, .at = at};

    if (at < b->len) {
        s = find(b, at);
        leave(&s);
    }
    *offset = s.at;
    *upto = at + s.len;
    return s.b;
}

bool dcn_backing_place(dcn_backing *b, uint64_t at, dcn_place *out)
{
    spot s;
    bool known;

    if (at >= b->len)
        return false;
    s = find(b, at);
    known = !s.kept && s.b->ops->place && s.b->ops->place(s.b, s.at, out);
    if (known)
        out->upto = at + dcn_min(s.len, out->upto - s.at);
    leave(&s);
    return known;
}

bool dcn_finder_ask(dcn_finder *finder, dcn_backing *b, uint64_t at)
{
    bool known = dcn_backing_place(b, at, &finder->place);

    finder->b = known ? b : NULL;
    finder->at = at;
    return known;
}

/* --- reading ----------------------------------------------------------------------------------------------------- */

enum { MOST_AT_ONCE = 64 };

/* Ranges of one leaf that are asked for together. */
typedef struct batch {
    dcn_backing *leaf;
    size_t count;
    dcn_fetch items[MOST_AT_ONCE];
} batch;

static decant_status flush(batch *ask, decant_error *err)
{
    decant_status rc = DECANT_OK;

    if (ask->count) {
        rc = ask->leaf->ops->begin(ask->leaf, ask->items, ask->count, err);
        if (rc == DECANT_OK && ask->leaf->ops->finish)
            rc = ask->leaf->ops->finish(ask->leaf, ask->items, ask->count, err);
    }
    ask->count = 0;
    return rc;
}

decant_status dcn_backing_fetch(dcn_backing *b, dcn_fetch *f, size_t count, decant_error *err)
{
    batch ask;
    decant_status rc;

    ask.count = 0;
    for (size_t i = 0; i < count; i++) {
        assert(!dcn_outside(f[i].at, f[i].len, b->len));
        for (size_t done = 0; done < f[i].len;) {
            spot s = find(b, f[i].at + done);
            size_t len = (size_t)dcn_min(s.len, f[i].len - done);
            uint8_t *dst = (uint8_t *)f[i].dst + done;

            done += len;
            if (s.kept) {
                memcpy(dst, s.kept->data + s.at, len);
                leave(&s);
                continue;
            }
            if ((ask.count == MOST_AT_ONCE || (ask.count && ask.leaf != s.b)) && (rc = flush(&ask, err)))
                return rc;
            ask.leaf = s.b;
            ask.items[ask.count++] = (dcn_fetch){s.at, dst, len};
        }
    }
    return flush(&ask, err);
}

decant_status dcn_backing_lend(dcn_backing *b, uint64_t at, uint64_t len, bool may_produce, decant_view *out,
                               decant_error *err)
{
    decant_status rc = DECANT_UNSUPPORTED;
    spot s;

    assert(!dcn_outside(at, len, b->len));
    if (len == 0) {
        *out = (decant_view){.data = ""};
        return DECANT_OK;
    }
    s = find(b, at);
    if (len > s.len || len > SIZE_MAX) {
        leave(&s);
    } else if (s.kept) {
        *out = (decant_view){s.kept->data + s.at, (size_t)len, &s.kept->hold}; /* our reference goes with it */
        rc = DECANT_OK;
    } else if (s.b->ops->lend && (may_produce || !s.b->ops->takes_turns)) {
        rc = s.b->ops->lend(s.b, s.at, len, out, err);
    }
    return rc;
}

decant_status dcn_bytes_pin(decant_bytes *bytes, uint64_t offset, uint64_t len, unsigned flags, decant_view *out,
                            decant_error *err)
{
    decant_status rc = dcn_backing_lend(bytes, offset, len, false, out, err);
    struct dcn_kept *copy;

    if (rc != DECANT_UNSUPPORTED)
        return rc;
    if (flags & DECANT_NO_COPY) {
        rc = decant_error_set(err, DECANT_WOULD_COPY, "the bytes are not in memory in one piece");
        dcn_error_hint(err, "keep them first, or pin without DECANT_NO_COPY");
        return rc;
    }
    if ((rc = load(bytes, offset, len, &copy, err)))
        return rc;
    *out = (decant_view){copy->data, (size_t)len, &copy->hold};
    return DECANT_OK;
}

/* --- keeping ----------------------------------------------------------------------------------------------------- */

/*
 * One attempt to read what will be kept, on the stack of the thread that reads. Those who come meanwhile wait for `done`
 * and take the outcome from here; the reader leaves when the last of them has. All under the handle's lock.
 */
struct dcn_attempt {
    dcn_change change; /* of done, or of waiting to 0 */
    bool done;
    unsigned waiting;
    decant_status outcome;
    decant_error error;
};

static decant_status share(decant_bytes *bytes, struct dcn_attempt *attempt, decant_error *err)
{
    decant_status rc;

    attempt->waiting++;
    while (!attempt->done)
        dcn_change_await(&attempt->change, &bytes->lock);
    rc = attempt->outcome;
    if (rc && err)
        *err = attempt->error;
    if (--attempt->waiting == 0)
        dcn_change_tell(&attempt->change);
    return rc;
}

/* Reads without the lock, which it finds held and leaves held. */
static decant_status lead(decant_bytes *bytes, decant_error *err)
{
    struct dcn_attempt attempt = {0};
    struct dcn_kept *kept = NULL;

    dcn_change_init(&attempt.change);
    bytes->attempt = &attempt;
    dcn_unlock(&bytes->lock);
    attempt.outcome = load(bytes, 0, bytes->len, &kept, &attempt.error);
    dcn_lock(&bytes->lock);

    bytes->kept = kept;
    bytes->attempt = NULL;
    attempt.done = true;
    dcn_change_tell(&attempt.change);
    while (attempt.waiting)
        dcn_change_await(&attempt.change, &bytes->lock);
    dcn_change_close(&attempt.change);
    if (attempt.outcome && err)
        *err = attempt.error;
    return attempt.outcome;
}

/* Whether all of it is host memory, in one piece: there is nothing to gain. */
static bool is_memory(decant_bytes *bytes)
{
    uint64_t offset, upto;
    const dcn_backing *leaf = dcn_backing_leaf(bytes, 0, &offset, &upto);

    return upto == bytes->len && leaf->ops->lend && !leaf->ops->takes_turns;
}

decant_status dcn_bytes_keep(decant_bytes *bytes, decant_error *err)
{
    decant_status rc = DECANT_OK;

    if (bytes->len == 0 || is_memory(bytes))
        return DECANT_OK;
    dcn_lock(&bytes->lock);
    if (bytes->attempt)
        rc = share(bytes, bytes->attempt, err);
    else if (!bytes->kept)
        rc = lead(bytes, err);
    dcn_unlock(&bytes->lock);
    return rc;
}

void decant_bytes_drop(decant_bytes *bytes)
{
    struct dcn_kept *kept;

    dcn_lock(&bytes->lock);
    kept = bytes->kept;
    bytes->kept = NULL;
    dcn_unlock(&bytes->lock);
    if (kept)
        release_kept(&kept->hold);
}

/* --- bytes made of others ----------------------------------------------------------------------------------------- */

const dcn_recipe *dcn_backing_recipe(dcn_backing *leaf)
{
    return leaf->ops->recipe && !dcn_backing_is_kept(leaf) ? leaf->ops->recipe(leaf) : NULL;
}

bool dcn_backing_takes_turns(dcn_backing *leaf)
{
    const dcn_recipe *recipe;
    uint64_t offset, upto;

    while ((recipe = dcn_backing_recipe(leaf)) && recipe->input.len)
        leaf = dcn_backing_leaf(recipe->input.backing, recipe->input.offset, &offset, &upto);
    return leaf->ops->takes_turns;
}

dcn_span dcn_recipe_raw(const dcn_recipe *recipe, uint64_t at, uint64_t len)
{
    uint64_t first = at / recipe->to, end = (at + len + recipe->to - 1) / recipe->to;

    return (dcn_span){recipe->input.backing, recipe->input.offset + first * recipe->from, (end - first) * recipe->from};
}

/* `len` bytes of a unit, from `skip` on. */
static decant_status make_part(dcn_backing *leaf, uint64_t unit, size_t skip, size_t len, const uint8_t *raw,
                               uint8_t *dst, decant_error *err)
{
    uint8_t whole[16];
    decant_status rc;

    assert(leaf->ops->recipe(leaf)->to <= sizeof whole);
    if ((rc = leaf->ops->make(leaf, unit, 1, raw, whole, err)) == DECANT_OK)
        memcpy(dst, whole + skip, len);
    return rc;
}

decant_status dcn_backing_make(dcn_backing *leaf, uint64_t at, size_t len, const void *raw, void *dst,
                               decant_error *err)
{
    const dcn_recipe *recipe = leaf->ops->recipe(leaf);
    size_t skip = (size_t)(at % recipe->to), head = skip ? (size_t)dcn_min(recipe->to - skip, len) : 0;
    size_t whole = (len - head) / recipe->to, tail = (len - head) % recipe->to;
    uint64_t unit = at / recipe->to;
    const uint8_t *in = raw;
    uint8_t *out = dst;
    decant_status rc = DECANT_OK;

    if (head) {
        rc = make_part(leaf, unit++, skip, head, in, out, err);
        in += recipe->from;
        out += head;
    }
    if (rc == DECANT_OK && whole)
        rc = leaf->ops->make(leaf, unit, whole, in, out, err);
    if (rc == DECANT_OK && tail)
        rc = make_part(leaf, unit + whole, 0, tail, in + whole * recipe->from, out + whole * recipe->to, err);
    return rc;
}

/* --- callbacks --------------------------------------------------------------------------------------------------- */

decant_status dcn_callback_outcome(decant_status rc, decant_error *said, const char *what, decant_error *err)
{
    if (rc == DECANT_OK)
        return DECANT_OK;
    if (said->status == DECANT_OK) {
        int code = said->callback_code;

        decant_error_set(said, DECANT_CALLBACK, "the %s failed without saying why", what);
        said->callback_code = code;
    }
    /* Two codes mean something to decant itself: to try another way, and that the output is in place. */
    if (said->status == DECANT_UNSUPPORTED || said->status == DECANT_NOT_DURABLE)
        said->status = DECANT_CALLBACK;
    said->side = DECANT_SIDE_CALLER;
    if (err)
        *err = *said;
    return said->status;
}
