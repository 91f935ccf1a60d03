/* Fills slots: literals, files, memory, providers, and what is made of others. */
#include "pour/slots.h"

#include <string.h>

#include "base/alloc.h"
#include "base/ckd.h"

/* Copies memory into slots; zeros if `data` is NULL. */
static decant_status put(dcn_pouring *p, const uint8_t *data, uint64_t len, decant_error *err)
{
    while (len) {
        uint8_t *dst;
        size_t n;
        decant_status rc = dcn_pouring_room(p, len, &dst, &n, err);

        if (rc)
            return rc;
        if (data) {
            memcpy(dst, data, n);
            data += n;
        } else {
            memset(dst, 0, n);
        }
        p->at += n;
        len -= n;
    }
    return DECANT_OK;
}

/* Writes lent memory from where it lies, a slot's length at a time so that progress goes on; all of it when this returns. */
static decant_status put_direct(dcn_pouring *p, const uint8_t *data, uint64_t len, decant_error *err)
{
    decant_status rc = dcn_pouring_flush(p, err);

    while (len && rc == DECANT_OK) {
        size_t n = (size_t)dcn_min(len, p->job->cut.slot - p->at % p->job->cut.slot);
        dcn_parcel load = {p->out, p->at, {data, n}, p->sum};

        if ((rc = dcn_pouring_send(p, &load, err)) || (rc = dcn_crew_wait(p->job->crew, DCN_LANE_WRITES, 0, err)))
            break;
        data += n;
        len -= n;
        p->base = p->end = p->at += n;
        rc = dcn_pouring_progress(p, n, err);
    }
    return rc;
}

/* Puts memory that holds still until this returns. */
static decant_status put_memory(dcn_pouring *p, const uint8_t *data, uint64_t len, decant_error *err)
{
    if (len >= p->job->cut.direct && !(p->out->ops->can & DCN_CAN_LEND))
        return put_direct(p, data, len, err);
    return put(p, data, len, err);
}

/* Wants bytes of a file: they are read when the slot is full, or the list is. */
static decant_status want(dcn_pouring *p, dcn_source *from, uint64_t at, uint64_t len, decant_error *err)
{
    while (len) {
        uint8_t *dst;
        size_t n;
        decant_status rc = dcn_pouring_room(p, len, &dst, &n, err);

        if (rc || (p->wanted == p->most && (rc = dcn_pouring_fetch(p, err))))
            return rc;
        p->from[p->wanted] = from;
        p->ranges[p->wanted++] = (dcn_range){at, dst, n};
        p->at += n;
        at += n;
        len -= n;
    }
    return DECANT_OK;
}

/*
 * Lets the system copy from file to file, a slot's length at a time so that progress goes on. Stops where it does not: what
 * is left is to be read. Adds what is copied to `done`.
 */
static decant_status copy_direct(dcn_pouring *p, dcn_source *from, uint64_t at, uint64_t len, uint64_t *done,
                                 decant_error *err)
{
    decant_status rc = dcn_pouring_flush(p, err);

    for (uint64_t end = at + len; at < end && rc == DECANT_OK;) {
        size_t n = (size_t)dcn_min(end - at, p->job->cut.slot - p->at % p->job->cut.slot);

        if ((rc = dcn_crew_wait(p->job->crew, DCN_LANE_WRITES, p->job->cut.slots,
                                err))) /* waits for none: has a write failed? */
            break;
        rc = dcn_output_copy(p->out, p->at, from, at, n, err);
        if (rc == DECANT_UNSUPPORTED) {
            p->read = from;
            return DECANT_OK;
        }
        if (rc == DECANT_OK) {
            *done += n;
            at += n;
            p->base = p->end = p->at += n;
            rc = dcn_pouring_progress(p, n, err);
        }
    }
    return rc;
}

/*
 * Bytes of a file. The first slot goes through memory: what is held back is in it, and whether the system copies to a file
 * shows when that is written to.
 */
static decant_status put_file(dcn_pouring *p, dcn_source *from, uint64_t at, uint64_t len, decant_error *err)
{
    uint64_t first = p->plan->held > p->job->cut.slot ? p->plan->held : p->job->cut.slot, done = 0;
    decant_status rc;

    if (len >= p->job->cut.direct && p->out->ops->copy && from != p->read && !p->sum) {
        done = p->at < first ? dcn_min(len, first - p->at) : 0;
        if ((rc = want(p, from, at, done, err)) ||
            (done < len && (rc = copy_direct(p, from, at + done, len - done, &done, err))))
            return rc;
    }
    return want(p, from, at + done, len - done, err);
}

/* Steps over what is in place already, or comes later. */
static decant_status pass(dcn_pouring *p, uint64_t len, bool done, decant_error *err)
{
    decant_status rc = dcn_pouring_flush(p, err);

    if (rc)
        return rc;
    p->base = p->end = p->at += len;
    return done ? dcn_pouring_progress(p, len, err) : DECANT_OK;
}

/* Zeros. Between what is drained they need no write: a new part reads as zero. */
static decant_status put_gap(dcn_pouring *p, uint64_t len, decant_error *err)
{
    bool between = dcn_drain_any(&p->drain) && p->at == p->base && p->at >= p->plan->held;

    return between && len ? pass(p, len, true, err) : put(p, NULL, len, err);
}

static decant_status put_run(dcn_pouring *p, const dcn_step *run, decant_error *err)
{
    uint64_t at, len, before;
    const dcn_route *route = dcn_pouring_passed(p, run, &at, &len);
    decant_status rc;

    if (!route)
        return put_file(p, run->source, run->from, run->len, err);
    before = at - run->at;
    if ((rc = put_file(p, run->source, run->from, before, err)) || (rc = pass(p, len, route->way == DCN_CLONE, err)))
        return rc;
    return put_file(p, run->source, run->from + before + len, run->len - before - len, err);
}

static decant_side side_of(dcn_backing *b)
{
    return dcn_backing_takes_turns(b) ? DECANT_SIDE_CALLER : DECANT_SIDE_INPUT;
}

/* Bytes that are asked for where they belong: of a provider that fills ranges, each once and in order. */
static decant_status ask(dcn_pouring *p, dcn_backing *b, uint64_t at, uint64_t len, decant_error *err)
{
    while (len) {
        dcn_fetch f = {.at = at};
        decant_status rc = dcn_pouring_room(p, len, (uint8_t **)&f.dst, &f.len, err);

        if (rc)
            return rc;
        if ((rc = dcn_backing_fetch(b, &f, 1, err)))
            return dcn_pouring_blame(p, p->at, side_of(b), rc, err);
        p->at += f.len;
        at += f.len;
        len -= f.len;
    }
    return DECANT_OK;
}

/* The part of an entry's bytes that one backing answers for. It is lent, or else asked for; given back before this returns. */
static decant_status put_leaf(dcn_pouring *p, dcn_backing *b, uint64_t at, uint64_t len, decant_error *err)
{
    decant_view view = {0};
    decant_status rc = dcn_backing_lend(b, at, len, true, &view, err);

    if (rc == DECANT_UNSUPPORTED)
        return ask(p, b, at, len, err);
    if (rc)
        return dcn_pouring_blame(p, p->at, side_of(b), rc, err);
    rc = put_memory(p, view.data, len, err);
    decant_view_release(&view);
    return rc;
}

/* Gets the raw bytes of the last making: of files when the slot is full, or the list is; of all else at once. */
static decant_status want_raw(dcn_pouring *p, dcn_span part, uint8_t *dst, decant_error *err)
{
    while (part.len) {
        dcn_place place;
        uint64_t offset, upto;
        size_t n;
        decant_status rc;

        if (dcn_backing_place(part.backing, part.offset, &place)) {
            n = (size_t)dcn_min(part.len, place.upto - part.offset);
            if (p->wanted == p->most && (rc = dcn_pouring_read(p, err)))
                return rc;
            p->from[p->wanted] = place.source;
            p->ranges[p->wanted++] = (dcn_range){place.at, dst, n};
        } else {
            dcn_backing *leaf = dcn_backing_leaf(part.backing, part.offset, &offset, &upto);
            dcn_fetch f = {part.offset, dst, n = (size_t)dcn_min(part.len, upto - part.offset)};

            if ((rc = dcn_backing_fetch(part.backing, &f, 1, err)))
                return dcn_pouring_blame(p, dcn_pouring_at(p, dst), side_of(leaf), rc, err);
        }
        part.offset += n;
        part.len -= n;
        dst += n;
    }
    return DECANT_OK;
}

/* Wants what `m` is made of, and notes that it is to be made. */
static decant_status want_making(dcn_pouring *p, dcn_making m, const dcn_recipe *recipe, decant_error *err)
{
    dcn_span part = dcn_recipe_raw(recipe, m.at, m.len);
    decant_status rc;

    if ((!p->makings && !(p->makings = dcn_alloc(p->most, sizeof *p->makings))) ||
        (!p->raw && !(p->raw = dcn_alloc_pages(p->job->cut.slot))))
        return dcn_error_nomem(err);
    if ((p->making_count == p->most || part.len > p->job->cut.slot - p->raw_len) && (rc = dcn_pouring_fetch(p, err)))
        return rc;
    m.raw = p->raw + p->raw_len;
    p->makings[p->making_count++] = m;
    p->raw_len += (size_t)part.len;
    return want_raw(p, part, p->raw + p->raw_len - part.len, err);
}

/* A part of a unit, or one that ends in the next slot: made apart. */
static decant_status put_part(dcn_pouring *p, const dcn_making *m, const uint8_t *raw, decant_error *err)
{
    uint8_t part[16];
    decant_status rc = raw ? dcn_backing_make(m->leaf, m->at, m->len, raw, part, err)
                           : dcn_backing_fetch(m->leaf, &(dcn_fetch){m->at, part, m->len}, 1, err);

    return rc ? dcn_pouring_blame(p, p->at, side_of(m->leaf), rc, err) : put(p, part, m->len, err);
}

/*
 * Bytes that are made of others, whole units where they can be, so that each is made once.
 *
 * @param view  what they are made of; without data: it is read
 */
static decant_status make(dcn_pouring *p, dcn_backing *leaf, const dcn_recipe *recipe, uint64_t at, uint64_t len,
                          const decant_view *view, decant_error *err)
{
    uint64_t begin = dcn_recipe_raw(recipe, at, len).offset, most = p->job->cut.slot / recipe->from * recipe->to;
    decant_status rc;

    for (dcn_making m = {.leaf = leaf, .at = at}; len; m.at += m.len, len -= m.len) {
        uint64_t skip = dcn_recipe_raw(recipe, m.at, 1).offset - begin;
        const uint8_t *raw = view->data ? (const uint8_t *)view->data + skip : NULL;

        if ((rc = dcn_pouring_room(p, dcn_min(len, most), &m.dst, &m.len, err)))
            return rc;
        m.len = m.at % recipe->to ? 0 : m.len / recipe->to * recipe->to;
        if (!m.len) {
            m.len = (size_t)dcn_min(len, recipe->to - m.at % recipe->to);
            rc = put_part(p, &m, raw, err);
        } else {
            rc = raw ? dcn_backing_make(leaf, m.at, m.len, raw, m.dst, err) : want_making(p, m, recipe, err);
            if (rc && raw)
                dcn_pouring_blame(p, p->at, DECANT_SIDE_INPUT, rc, err);
            p->at += m.len;
        }
        if (rc)
            return rc;
    }
    return DECANT_OK;
}

/* Bytes that are made of others, which are lent whole, or else read. */
static decant_status put_made(dcn_pouring *p, dcn_backing *leaf, const dcn_recipe *recipe, uint64_t at, uint64_t len,
                              decant_error *err)
{
    dcn_span raw = dcn_recipe_raw(recipe, at, len);
    decant_view view = {0};
    decant_status rc = dcn_backing_lend(raw.backing, raw.offset, raw.len, true, &view, err);

    if (rc && rc != DECANT_UNSUPPORTED)
        return dcn_pouring_blame(p, p->at, side_of(leaf), rc, err);
    rc = make(p, leaf, recipe, at, len, &view, err);
    decant_view_release(&view);
    return rc;
}

static decant_status put_step(dcn_pouring *p, const dcn_step *step, decant_error *err)
{
    const dcn_recipe *recipe;

    switch (step->kind) {
    case DCN_STEP_TEXT:
        return put_memory(p, step->text, step->len, err);
    case DCN_STEP_RUN:
        return put_run(p, step, err);
    case DCN_STEP_LEAF:
        break;
    }
    recipe = dcn_backing_recipe(step->leaf);
    return recipe ? put_made(p, step->leaf, recipe, step->from, step->len, err)
                  : put_leaf(p, step->leaf, step->from, step->len, err);
}

decant_status dcn_pouring_copy(dcn_pouring *p, decant_error *err)
{
    dcn_steps steps = dcn_steps_of(p->plan);
    dcn_step step;
    decant_status rc;

    while (dcn_steps_next(&steps, &step))
        if ((rc = put_gap(p, step.at - p->at, err)) || (rc = put_step(p, &step, err)))
            return rc;
    return put_gap(p, p->plan->total - p->at, err);
}
