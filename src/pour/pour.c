#include "pour/pour.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/ckd.h"
#include "pour/checksums.h"
#include "pour/steps.h"

const dcn_cut dcn_cut_default = {.slot = 1 << 20, .slots = 4, .direct = 256 << 10, .share = 64 << 10};

enum {
    LANE = 0,     /* of all writes: in the order of the output */
    WANTED = 4096 /* file ranges of a slot that are read together, at most */
};

/* Memory on its way to an output; a task of the crew's. */
typedef struct parcel {
    dcn_output *out;
    uint64_t at;
    dcn_chunk chunk;
    dcn_checksums *sums; /* NULL: nobody asks */
} parcel;

typedef struct slot {
    parcel parcel;
    uint8_t *memory;
} slot;

/* Bytes of the open slot that are to be made, once what they are made of is read. */
typedef struct making {
    dcn_backing *leaf;
    uint64_t at; /* in the leaf */
    size_t len;
    const uint8_t *raw;
    uint8_t *dst;
} making;

/* A pour under way. The open slot is [base, end) of the output; it is filled, or will be by what is wanted, up to `at`. */
typedef struct pouring {
    const dcn_job *job;
    const dcn_plan *plan;
    dcn_output *out;
    uint64_t at, base, end; /* in the output; base == end: no slot is open */
    uint8_t *dst;           /* of the open slot */
    size_t route;           /* the last one found */
    const dcn_source *read; /* the system does not copy from this one: it is not asked again, and slots stay whole */
    slot *slots;
    unsigned current;
    dcn_range *ranges; /* wanted from files for the open slot */
    dcn_source **from; /* whose they are */
    size_t wanted, most;
    uint8_t *raw; /* as long as a slot: what bytes are made of; NULL until some are */
    size_t raw_len;
    making *makings; /* in the order of the output, at most `most`; NULL likewise */
    size_t making_count;
    uint64_t done, total; /* bytes, of all plans */
    dcn_checksums *sums;  /* one a plan; NULL: nothing is read back */
    dcn_checksums *sum;   /* of the plan at hand */
    dcn_intent intent;    /* with a journal */
    bool in_doubt;        /* whether the journal says COMMIT */
} pouring;

static decant_status deliver(void *ctx, decant_error *err)
{
    parcel *p = ctx;

    if (p->sums)
        dcn_checksums_put(p->sums, p->chunk.data, p->chunk.len);
    return dcn_output_write(p->out, p->at, &p->chunk, 1, err);
}

/* A callback of the caller's is run by the thread that has called; all else is the crew's. */
static decant_status send(pouring *p, parcel *load, decant_error *err)
{
    if (p->out->ops->can & DCN_RUNS_USER_CODE)
        return deliver(load, err);
    dcn_crew_give(p->job->crew, LANE, (dcn_task){deliver, load});
    return DECANT_OK;
}

static decant_status progress(pouring *p, uint64_t more, decant_error *err)
{
    p->done += more;
    if (p->job->progress && p->job->progress(p->job->progress_ctx, p->done, p->total))
        return decant_error_set(err, DECANT_CANCELLED, "stopped by the progress callback");
    return DECANT_OK;
}

/* Says of a failure to get bytes whose it is, and which tensor's: the one that stands at `at` of the output. */
static decant_status blame(const pouring *p, uint64_t at, decant_side side, decant_status rc, decant_error *err)
{
    size_t low = 0, high = p->plan->count;
    const dcn_entry *entry;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;

        if (p->plan->pieces[middle].at <= at)
            low = middle;
        else
            high = middle;
    }
    /* of pieces without bytes several begin where the next one does: the last of them is the one that has bytes */
    entry = &p->plan->model->entries[p->plan->pieces[low].index];
    dcn_error_tensor(err, entry->name, entry->name_len);
    if (rc != DECANT_NOMEM)
        dcn_error_side(err, side);
    return rc;
}

/* Where ranges that could not be read belong: the offset that the error names, else the first of them in the output. */
static const uint8_t *failed_at(const dcn_range *ranges, size_t count, const decant_error *err)
{
    const uint8_t *dst = NULL;

    for (size_t i = 0; i < count; i++) {
        if (err && err->offset != DECANT_NO_OFFSET && err->offset >= ranges[i].at &&
            err->offset - ranges[i].at < ranges[i].len)
            return (uint8_t *)ranges[i].dst + (err->offset - ranges[i].at);
        if (!dst || (uint8_t *)ranges[i].dst < dst)
            dst = ranges[i].dst;
    }
    return dst;
}

/* Where in the output memory belongs that is read into: a slot's, or what is made for one. */
static uint64_t output_at(const pouring *p, const uint8_t *dst)
{
    for (size_t i = p->making_count; i-- > 0;)
        if (dst >= p->makings[i].raw && dst < p->raw + p->raw_len)
            return p->base + (uint64_t)(p->makings[i].dst - p->dst);
    return p->base + (uint64_t)(dst - p->dst);
}

/* Moves the ranges of the first one's source to the front. @return how many they are */
static size_t gather(pouring *p, size_t from)
{
    size_t end = from + 1;

    for (size_t i = end; i < p->wanted; i++)
        if (p->from[i] == p->from[from]) {
            dcn_range range = p->ranges[i];

            p->ranges[i] = p->ranges[end];
            p->from[i] = p->from[end];
            p->ranges[end] = range;
            p->from[end++] = p->from[from];
        }
    return end - from;
}

/* Reads what is wanted, each source's ranges together. */
static decant_status read_wanted(pouring *p, decant_error *err)
{
    decant_status rc = DECANT_OK;
    size_t count;

    for (size_t i = 0; i < p->wanted && rc == DECANT_OK; i += count) {
        count = gather(p, i);
        rc = dcn_source_read(p->from[i], p->ranges + i, count, err);
        if (rc)
            blame(p, output_at(p, failed_at(p->ranges + i, count, err)), DECANT_SIDE_INPUT, rc, err);
    }
    p->wanted = 0;
    return rc;
}

/* Reads what is wanted, and makes of it what is to be made. */
static decant_status fetch(pouring *p, decant_error *err)
{
    decant_status rc = read_wanted(p, err);

    for (size_t i = 0; i < p->making_count && rc == DECANT_OK; i++) {
        const making *m = &p->makings[i];

        rc = dcn_backing_make(m->leaf, m->at, m->len, m->raw, m->dst, err);
        if (rc)
            blame(p, p->base + (uint64_t)(m->dst - p->dst), DECANT_SIDE_INPUT, rc, err);
    }
    p->making_count = 0;
    p->raw_len = 0;
    return rc;
}

/* Ends the open slot: what it wants is read, and it is written. */
static decant_status flush(pouring *p, decant_error *err)
{
    uint64_t len = p->at - p->base;
    decant_status rc = fetch(p, err);

    if (rc == DECANT_OK && len && !(p->out->ops->can & DCN_CAN_LEND)) {
        parcel *load = &p->slots[p->current].parcel;

        *load = (parcel){p->out, p->base, {p->dst, (size_t)len}, p->sum};
        rc = send(p, load, err);
    }
    p->base = p->end = p->at;
    return rc || !len ? rc : progress(p, len, err);
}

/* The memory of the next slot: the first one over and over where nothing is under way, so that it stays in the cache. */
static decant_status next_slot(pouring *p, decant_error *err)
{
    unsigned slots = p->job->cut.slots;
    slot *s;
    decant_status rc = dcn_crew_wait(p->job->crew, LANE, slots - 1, err);

    if (rc)
        return rc;
    p->current = dcn_crew_left(p->job->crew, LANE) ? (p->current + 1) % slots : 0;
    s = &p->slots[p->current];
    if (!s->memory && !(s->memory = dcn_alloc_pages(p->job->cut.slot)))
        return dcn_error_nomem(err);
    p->dst = s->memory;
    return DECANT_OK;
}

/* Where the output goes on: at least one and at most `want` bytes of an open slot. */
static decant_status ask_room(pouring *p, uint64_t want, uint8_t **dst, size_t *len, decant_error *err)
{
    size_t size = p->job->cut.slot;
    decant_status rc;

    if (p->at == p->end) {
        if ((rc = flush(p, err)))
            return rc;
        p->end = p->at + dcn_min(size - p->at % size, p->plan->total - p->at);
        if (p->out->ops->can & DCN_CAN_LEND)
            p->dst = dcn_output_lend(p->out, p->at, (size_t)(p->end - p->at));
        else if ((rc = next_slot(p, err)))
            return rc;
    }
    *dst = p->dst + (p->at - p->base);
    *len = (size_t)dcn_min(want, p->end - p->at);
    return DECANT_OK;
}

/* Copies memory into slots; zeros if `data` is NULL. */
static decant_status put(pouring *p, const uint8_t *data, uint64_t len, decant_error *err)
{
    while (len) {
        uint8_t *dst;
        size_t n;
        decant_status rc = ask_room(p, len, &dst, &n, err);

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
static decant_status put_direct(pouring *p, const uint8_t *data, uint64_t len, decant_error *err)
{
    decant_status rc = flush(p, err);

    while (len && rc == DECANT_OK) {
        size_t n = (size_t)dcn_min(len, p->job->cut.slot - p->at % p->job->cut.slot);
        parcel load = {p->out, p->at, {data, n}, p->sum};

        if ((rc = send(p, &load, err)) || (rc = dcn_crew_wait(p->job->crew, LANE, 0, err)))
            break;
        data += n;
        len -= n;
        p->base = p->end = p->at += n;
        rc = progress(p, n, err);
    }
    return rc;
}

/* Puts memory that holds still until this returns. */
static decant_status put_memory(pouring *p, const uint8_t *data, uint64_t len, decant_error *err)
{
    if (len >= p->job->cut.direct && !(p->out->ops->can & DCN_CAN_LEND))
        return put_direct(p, data, len, err);
    return put(p, data, len, err);
}

/* Wants bytes of a file: they are read when the slot is full, or the list is. */
static decant_status want(pouring *p, dcn_source *from, uint64_t at, uint64_t len, decant_error *err)
{
    while (len) {
        uint8_t *dst;
        size_t n;
        decant_status rc = ask_room(p, len, &dst, &n, err);

        if (rc || (p->wanted == p->most && (rc = fetch(p, err))))
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
static decant_status copy_direct(pouring *p, dcn_source *from, uint64_t at, uint64_t len, uint64_t *done,
                                 decant_error *err)
{
    decant_status rc = flush(p, err);

    for (uint64_t end = at + len; at < end && rc == DECANT_OK;) {
        size_t n = (size_t)dcn_min(end - at, p->job->cut.slot - p->at % p->job->cut.slot);

        if ((rc = dcn_crew_wait(p->job->crew, LANE, p->job->cut.slots, err))) /* waits for none: has a write failed? */
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
            rc = progress(p, n, err);
        }
    }
    return rc;
}

/*
 * Bytes of a file. The first slot goes through memory: what is held back is in it, and whether the system copies to a file
 * shows when that is written to.
 */
static decant_status put_file(pouring *p, dcn_source *from, uint64_t at, uint64_t len, decant_error *err)
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

/* Steps over what is in place already. */
static decant_status pass(pouring *p, uint64_t len, decant_error *err)
{
    decant_status rc = flush(p, err);

    if (rc)
        return rc;
    p->base = p->end = p->at += len;
    return progress(p, len, err);
}

static bool any_clones(const pouring *p)
{
    for (size_t i = 0; p->job->routes && i < p->job->routes->count; i++)
        if (p->job->routes->items[i].clones)
            return true;
    return false;
}

/* The route of a step whose blocks are shared, and those blocks; NULL: none are. */
static dcn_route *find_clone(pouring *p, const dcn_step *step, uint64_t *at, uint64_t *len)
{
    dcn_route *route = NULL;

    if (step->kind == DCN_STEP_RUN && p->job->routes && p->out->ops->clone && !p->sum)
        route = dcn_routes_find(p->job->routes, step->source, &p->route);
    *len = route && route->clones ? dcn_step_blocks(step, p->plan->held, p->job->cut.share, at) : 0;
    return *len ? route : NULL;
}

static decant_status put_run(pouring *p, const dcn_step *run, decant_error *err)
{
    uint64_t at, len, before;
    decant_status rc;

    if (!find_clone(p, run, &at, &len))
        return put_file(p, run->source, run->from, run->len, err);
    before = at - run->at;
    if ((rc = put_file(p, run->source, run->from, before, err)) || (rc = pass(p, len, err)))
        return rc;
    return put_file(p, run->source, run->from + before + len, run->len - before - len, err);
}

static decant_side side_of(dcn_backing *b)
{
    return dcn_backing_takes_turns(b) ? DECANT_SIDE_CALLER : DECANT_SIDE_INPUT;
}

/* Bytes that are asked for where they belong: of a provider that fills ranges, each once and in order. */
static decant_status ask(pouring *p, dcn_backing *b, uint64_t at, uint64_t len, decant_error *err)
{
    while (len) {
        dcn_fetch f = {.at = at};
        decant_status rc = ask_room(p, len, (uint8_t **)&f.dst, &f.len, err);

        if (rc)
            return rc;
        if ((rc = dcn_backing_fetch(b, &f, 1, err)))
            return blame(p, p->at, side_of(b), rc, err);
        p->at += f.len;
        at += f.len;
        len -= f.len;
    }
    return DECANT_OK;
}

/* The part of an entry's bytes that one backing answers for. It is lent, or else asked for; given back before this returns. */
static decant_status put_leaf(pouring *p, dcn_backing *b, uint64_t at, uint64_t len, decant_error *err)
{
    decant_view view = {0};
    decant_status rc = dcn_backing_lend(b, at, len, true, &view, err);

    if (rc == DECANT_UNSUPPORTED)
        return ask(p, b, at, len, err);
    if (rc)
        return blame(p, p->at, side_of(b), rc, err);
    rc = put_memory(p, view.data, len, err);
    decant_view_release(&view);
    return rc;
}

/* Gets the raw bytes of the last making: of files when the slot is full, or the list is; of all else at once. */
static decant_status want_raw(pouring *p, dcn_span part, uint8_t *dst, decant_error *err)
{
    while (part.len) {
        dcn_place place;
        uint64_t offset, upto;
        size_t n;
        decant_status rc;

        if (dcn_backing_place(part.backing, part.offset, &place)) {
            n = (size_t)dcn_min(part.len, place.upto - part.offset);
            if (p->wanted == p->most && (rc = read_wanted(p, err)))
                return rc;
            p->from[p->wanted] = place.source;
            p->ranges[p->wanted++] = (dcn_range){place.at, dst, n};
        } else {
            dcn_backing *leaf = dcn_backing_leaf(part.backing, part.offset, &offset, &upto);
            dcn_fetch f = {part.offset, dst, n = (size_t)dcn_min(part.len, upto - part.offset)};

            if ((rc = dcn_backing_fetch(part.backing, &f, 1, err)))
                return blame(p, output_at(p, dst), side_of(leaf), rc, err);
        }
        part.offset += n;
        part.len -= n;
        dst += n;
    }
    return DECANT_OK;
}

/* Wants what `m` is made of, and notes that it is to be made. */
static decant_status want_making(pouring *p, making m, const dcn_recipe *recipe, decant_error *err)
{
    dcn_span part = dcn_recipe_raw(recipe, m.at, m.len);
    decant_status rc;

    if ((!p->makings && !(p->makings = dcn_alloc(p->most, sizeof *p->makings))) ||
        (!p->raw && !(p->raw = dcn_alloc_pages(p->job->cut.slot))))
        return dcn_error_nomem(err);
    if ((p->making_count == p->most || part.len > p->job->cut.slot - p->raw_len) && (rc = fetch(p, err)))
        return rc;
    m.raw = p->raw + p->raw_len;
    p->makings[p->making_count++] = m;
    p->raw_len += (size_t)part.len;
    return want_raw(p, part, p->raw + p->raw_len - part.len, err);
}

/* A part of a unit, or one that ends in the next slot: made apart. */
static decant_status put_part(pouring *p, const making *m, const uint8_t *raw, decant_error *err)
{
    uint8_t part[16];
    decant_status rc = raw ? dcn_backing_make(m->leaf, m->at, m->len, raw, part, err)
                           : dcn_backing_fetch(m->leaf, &(dcn_fetch){m->at, part, m->len}, 1, err);

    return rc ? blame(p, p->at, side_of(m->leaf), rc, err) : put(p, part, m->len, err);
}

/*
 * Bytes that are made of others, whole units where they can be, so that each is made once.
 *
 * @param view  what they are made of; without data: it is read
 */
static decant_status make(pouring *p, dcn_backing *leaf, const dcn_recipe *recipe, uint64_t at, uint64_t len,
                          const decant_view *view, decant_error *err)
{
    uint64_t begin = dcn_recipe_raw(recipe, at, len).offset, most = p->job->cut.slot / recipe->from * recipe->to;
    decant_status rc;

    for (making m = {.leaf = leaf, .at = at}; len; m.at += m.len, len -= m.len) {
        uint64_t skip = dcn_recipe_raw(recipe, m.at, 1).offset - begin;
        const uint8_t *raw = view->data ? (const uint8_t *)view->data + skip : NULL;

        if ((rc = ask_room(p, dcn_min(len, most), &m.dst, &m.len, err)))
            return rc;
        m.len = m.at % recipe->to ? 0 : m.len / recipe->to * recipe->to;
        if (!m.len) {
            m.len = (size_t)dcn_min(len, recipe->to - m.at % recipe->to);
            rc = put_part(p, &m, raw, err);
        } else {
            rc = raw ? dcn_backing_make(leaf, m.at, m.len, raw, m.dst, err) : want_making(p, m, recipe, err);
            if (rc && raw)
                blame(p, p->at, DECANT_SIDE_INPUT, rc, err);
            p->at += m.len;
        }
        if (rc)
            return rc;
    }
    return DECANT_OK;
}

/* Bytes that are made of others, which are lent whole, or else read. */
static decant_status put_made(pouring *p, dcn_backing *leaf, const dcn_recipe *recipe, uint64_t at, uint64_t len,
                              decant_error *err)
{
    dcn_span raw = dcn_recipe_raw(recipe, at, len);
    decant_view view = {0};
    decant_status rc = dcn_backing_lend(raw.backing, raw.offset, raw.len, true, &view, err);

    if (rc && rc != DECANT_UNSUPPORTED)
        return blame(p, p->at, side_of(leaf), rc, err);
    rc = make(p, leaf, recipe, at, len, &view, err);
    decant_view_release(&view);
    return rc;
}

static decant_status put_step(pouring *p, const dcn_step *step, decant_error *err)
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

static decant_status copy(pouring *p, decant_error *err)
{
    dcn_steps steps = dcn_steps_of(p->plan);
    dcn_step step;
    decant_status rc;

    while (dcn_steps_next(&steps, &step))
        if ((rc = put(p, NULL, step.at - p->at, err)) || (rc = put_step(p, &step, err)))
            return rc;
    return put(p, NULL, p->plan->total - p->at, err);
}

/*
 * Shares the blocks that can be. A source of which some cannot is copied as a whole: over what is shared already, which
 * costs time and changes nothing.
 */
static decant_status place(pouring *p, decant_error *err)
{
    dcn_steps steps = dcn_steps_of(p->plan);
    dcn_step step;
    uint64_t at, len;

    if (!any_clones(p))
        return DECANT_OK;
    while (dcn_steps_next(&steps, &step)) {
        dcn_route *route = find_clone(p, &step, &at, &len);
        decant_status rc;

        if (!route)
            continue;
        rc = dcn_output_clone(p->out, at, step.source, step.from + (at - step.at), len, err);
        if (rc == DECANT_UNSUPPORTED)
            dcn_route_copy(route);
        else if (rc)
            return rc;
    }
    return DECANT_OK;
}

/* Room for all that is not shared; for little between shared blocks it is not worth a call. */
static decant_status reserve(pouring *p, decant_error *err)
{
    dcn_steps steps = dcn_steps_of(p->plan);
    uint64_t from = 0, at, len;
    bool clones = any_clones(p);
    dcn_step step;
    decant_status rc;

    while (clones && dcn_steps_next(&steps, &step)) {
        if (!find_clone(p, &step, &at, &len))
            continue;
        if (at - from >= p->job->cut.slot && (rc = dcn_output_reserve(p->out, from, at - from, err)))
            return rc;
        from = at + len;
    }
    if (from && p->plan->total - from < p->job->cut.slot)
        return DECANT_OK;
    return dcn_output_reserve(p->out, from, p->plan->total - from, err);
}

static void turn_to(pouring *p, size_t i)
{
    p->plan = &p->job->plans->items[i];
    p->out = p->job->outputs[i];
    p->sum = p->sums ? &p->sums[i] : NULL;
    p->at = p->base = p->end = 0;
}

/* Whether to stop is asked once more after the sync, which may be the longest wait: until it has its name a file can go. */
static decant_status last_chance(pouring *p, decant_error *err)
{
    for (size_t i = 0; i < p->job->plans->count; i++)
        if (!p->job->outputs[i]->ops->publish)
            return DECANT_OK;
    return progress(p, 0, err);
}

/* One plan, all of it written. Of several failures that of the earliest bytes counts: writes, then reads not yet done. */
static decant_status pour_one(pouring *p, decant_error *err)
{
    decant_status rc, earlier;

    if ((rc = copy(p, err)) == DECANT_OK)
        rc = flush(p, err);
    if ((earlier = dcn_crew_wait(p->job->crew, LANE, 0, err)) || (earlier = fetch(p, err)))
        rc = earlier;
    return rc;
}

/* What is read back counts as much as what is written. */
static decant_status prepare_proof(pouring *p, decant_error *err)
{
    const dcn_plans *plans = p->job->plans;
    decant_status rc = DECANT_OK;

    p->total *= 2;
    if (!(p->sums = dcn_alloc(plans->count, sizeof *p->sums)))
        return dcn_error_nomem(err);
    for (size_t i = 0; i < plans->count && rc == DECANT_OK; i++)
        rc = dcn_checksums_begin(&p->sums[i], plans->items[i].total, p->job->cut.slot, err);
    return rc;
}

static decant_status misread(uint64_t at, size_t len, decant_error *err)
{
    (void)decant_error_set(err, DECANT_IO,
                           "what was read back differs from what was written, in bytes %" PRIu64 " to %" PRIu64, at,
                           at + len - 1);
    dcn_error_hint(err, "nothing was published: check the disk and the memory, and save to another disk");
    dcn_error_side(err, DECANT_SIDE_OUTPUT);
    return DECANT_IO;
}

/* Reads the output at hand back and compares it with what was written. */
static decant_status prove(pouring *p, size_t plan, decant_error *err)
{
    const dcn_proof *proof = p->job->proof;
    slot *s = &p->slots[0];
    dcn_chunk chunk = {0};
    decant_status rc;

    if (!s->memory && !(s->memory = dcn_alloc_pages(p->job->cut.slot)))
        return dcn_error_nomem(err);
    chunk.data = s->memory;
    for (uint64_t at = 0; at < p->plan->total; at += chunk.len) {
        chunk.len = (size_t)dcn_min(p->job->cut.slot, p->plan->total - at);
        if ((rc = dcn_output_reread(p->out, at, s->memory, chunk.len, err)))
            return rc;
        if (!dcn_checksums_match(p->sum, at, s->memory, chunk.len))
            return misread(at, chunk.len, err);
        if ((rc = proof->see(proof->ctx, plan, at, &chunk, err)) || (rc = progress(p, chunk.len, err)))
            return rc;
    }
    return DECANT_OK;
}

static decant_status prepare(pouring *p, decant_error *err)
{
    const dcn_cut *cut = &p->job->cut;

    assert(cut->slot && !(cut->slot & (cut->slot - 1)) && cut->slots && cut->slots < DCN_LANE_DEPTH);
    p->most = (size_t)dcn_min(cut->slot, WANTED);
    p->slots = dcn_alloc(cut->slots, sizeof *p->slots);
    p->ranges = dcn_alloc(p->most, sizeof *p->ranges);
    p->from = dcn_alloc(p->most, sizeof(dcn_source *));
    for (size_t i = 0; i < p->job->plans->count; i++)
        p->total += p->job->plans->items[i].total;
    if (!p->slots || !p->ranges || !p->from)
        return dcn_error_nomem(err);
    return p->job->proof ? prepare_proof(p, err) : DECANT_OK;
}

static void dispose(pouring *p)
{
    for (unsigned i = 0; p->slots && i < p->job->cut.slots; i++)
        dcn_free(&p->slots[i].memory);
    dcn_free(&p->slots);
    dcn_free(&p->ranges);
    dcn_free(&p->from);
    dcn_free(&p->makings);
    dcn_free(&p->raw);
    for (size_t i = 0; p->sums && i < p->job->plans->count; i++)
        dcn_checksums_close(&p->sums[i]);
    dcn_free(&p->sums);
    dcn_intent_close(&p->intent);
}

/* Before anything exists the journal knows that it may. */
static decant_status promise(pouring *p, decant_error *err)
{
    const dcn_job *job = p->job;
    dcn_buf begin = {0};
    decant_status rc;

    for (size_t i = 0; i < job->plans->count; i++)
        job->outputs[i]->transaction = job->journal->transaction;
    if ((rc = dcn_intent_make(&p->intent, job->plans, job->outputs, job->removals, job->removal_count, err)))
        goto done;
    dcn_intent_put_begin(&p->intent, &begin);
    rc = dcn_journal_begin(job->journal, &begin, dcn_intent_commit_len(&p->intent), err);
done:
    dcn_buf_close(&begin);
    if (rc && rc != DECANT_NOMEM)
        dcn_error_side(err, DECANT_SIDE_OUTPUT);
    return rc;
}

/* All is written, and under names that survive: whatever happens from here on, all outputs get theirs. */
static decant_status commit(pouring *p, decant_error *err)
{
    const dcn_job *job = p->job;
    dcn_buf parts = {0};
    decant_status rc;

    if ((rc = dcn_outputs_settle(job->outputs, job->plans->count, err)) ||
        (rc = dcn_intent_check(&p->intent, job->outputs, err)))
        return rc;
    dcn_intent_name_parts(&p->intent, job->outputs);
    dcn_intent_put_commit(&p->intent, &parts);
    if ((rc = dcn_journal_put(job->journal, DCN_RECORD_COMMIT, &parts, err)) == DECANT_OK)
        rc = dcn_journal_sync(job->journal, err);
    p->in_doubt = rc && job->journal->broken;
    dcn_buf_close(&parts);
    return rc;
}

static decant_status publish(const dcn_job *job, decant_error *err)
{
    decant_status rc = dcn_outputs_publish(job->outputs, job->plans->count, err);

    if (rc)
        return rc;
    if (job->removal_count &&
        dcn_removals_carry_out(job->outputs[0]->dir, job->removals, job->removal_count, true, err))
        return dcn_error_recast(err, DECANT_NOT_REMOVED, "saved, but what it supersedes is not all removed");
    return job->journal ? dcn_journal_end(job->journal, err) : DECANT_OK;
}

/* What cannot be undone and is not done stays as it is, and its journal with it. */
static decant_status leave(const dcn_job *job, bool committed, decant_error *err)
{
    const dcn_output *last = job->outputs[job->plans->count - 1];
    const char *path = last->path ? last->path : last->name;
    decant_status rc;

    if (committed) {
        rc = dcn_error_recast(err, DECANT_PUBLISH_PENDING, "all is written, but not all is in place");
        dcn_error_hint(err, "decant recover --resume '%s' finishes it", path);
    } else {
        rc = dcn_error_recast(err, DECANT_INTERRUPTED, "interrupted when all was written");
        dcn_error_hint(err, "decant recover '%s' shows whether it can be finished (--resume) or undone (--undo)", path);
    }
    dcn_error_side(err, DECANT_SIDE_OUTPUT);
    return rc;
}

/* The journal goes when all that it speaks of is gone for good. Where that cannot be seen to it stays, and the next save does. */
static void retreat(const dcn_job *job)
{
    dcn_facts facts;

    for (size_t i = 0; i < job->plans->count; i++) {
        const dcn_output *o = job->outputs[i];

        if (o->part && dcn_dir_stat(o->dir, o->part, &facts, NULL) != DECANT_NOT_FOUND)
            return;
    }
    if (dcn_dir_sync(job->journal->dir, NULL) == DECANT_OK)
        dcn_journal_discard(job->journal);
}

decant_status dcn_pour(const dcn_job *job, decant_error *err)
{
    pouring p = {.job = job};
    size_t count = job->plans->count;
    bool committed = false;
    decant_status rc;

    dcn_crew_reset(job->crew);
    if ((rc = prepare(&p, err)) || (job->journal && (rc = promise(&p, err))))
        goto done;
    for (size_t i = 0; i < count; i++)
        if ((rc = dcn_output_begin(job->outputs[i], &job->plans->items[i], err)))
            goto done;
    for (size_t i = 0; i < count; i++) {
        turn_to(&p, i);
        if ((rc = place(&p, err)) || (rc = reserve(&p, err)))
            goto done;
    }
    for (size_t i = 0; i < count; i++) {
        turn_to(&p, i);
        if ((rc = pour_one(&p, err)))
            goto done;
    }
    /* what was read while somebody wrote may be half old and half new */
    if ((rc = dcn_sources_check(job->sources, job->source_count, err)))
        goto done;
    for (size_t i = 0; i < count; i++)
        if ((rc = dcn_output_seal(job->outputs[i], err)))
            goto done;
    for (size_t i = 0; i < count && p.sums; i++) {
        turn_to(&p, i);
        if ((rc = prove(&p, i, err)))
            goto done;
    }
    if ((rc = last_chance(&p, err)) || (job->journal && (rc = commit(&p, err))))
        goto done;
    committed = job->journal;
    rc = publish(job, err);
done:
    if (rc && (committed || p.in_doubt)) {
        for (size_t i = 0; i < count; i++)
            dcn_output_leave(job->outputs[i]);
        rc = leave(job, committed, err);
    }
    for (size_t i = 0; i < count; i++)
        dcn_output_abandon(job->outputs[i]); /* does nothing to what is published or left */
    if (rc && job->journal && !committed && !p.in_doubt)
        retreat(job);
    dcn_crew_reset(job->crew);
    dispose(&p);
    return rc;
}
