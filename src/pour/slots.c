#include "pour/slots.h"

#include "base/alloc.h"
#include "base/ckd.h"

static decant_status deliver(void *ctx, decant_error *err)
{
    dcn_parcel *p = ctx;

    if (p->sums)
        dcn_checksums_put(p->sums, p->chunk.data, p->chunk.len);
    return dcn_output_write(p->out, p->at, &p->chunk, 1, err);
}

decant_status dcn_pouring_send(dcn_pouring *p, dcn_parcel *load, decant_error *err)
{
    if (p->out->ops->can & DCN_RUNS_USER_CODE)
        return deliver(load, err);
    dcn_crew_give(p->job->crew, DCN_LANE_WRITES, (dcn_task){deliver, load});
    return DECANT_OK;
}

decant_status dcn_pouring_progress(dcn_pouring *p, uint64_t more, decant_error *err)
{
    int said;

    p->done += more;
    said = p->job->progress ? p->job->progress(p->job->progress_ctx, p->done, p->total) : 0;

    p->keeps = said == DECANT_STOP_AND_KEEP;
    if (said)
        return decant_error_set(err, DECANT_CANCELLED, "stopped by the progress callback");
    return DECANT_OK;
}

decant_status dcn_pouring_blame(const dcn_pouring *p, uint64_t at, decant_side side, decant_status rc,
                                decant_error *err)
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

uint64_t dcn_pouring_at(const dcn_pouring *p, const uint8_t *dst)
{
    for (size_t i = p->making_count; i-- > 0;)
        if (dst >= p->makings[i].raw && dst < p->raw + p->raw_len)
            return p->base + (uint64_t)(p->makings[i].dst - p->dst);
    return p->base + (uint64_t)(dst - p->dst);
}

/* Moves the ranges of the first one's source to the front. @return how many they are */
static size_t gather(dcn_pouring *p, size_t from)
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

decant_status dcn_pouring_read(dcn_pouring *p, decant_error *err)
{
    decant_status rc = DECANT_OK;
    size_t count;

    for (size_t i = 0; i < p->wanted && rc == DECANT_OK; i += count) {
        count = gather(p, i);
        rc = dcn_source_read(p->from[i], p->ranges + i, count, err);
        if (rc)
            dcn_pouring_blame(p, dcn_pouring_at(p, failed_at(p->ranges + i, count, err)), DECANT_SIDE_INPUT, rc, err);
    }
    p->wanted = 0;
    return rc;
}

decant_status dcn_pouring_fetch(dcn_pouring *p, decant_error *err)
{
    decant_status rc = dcn_pouring_read(p, err);

    for (size_t i = 0; i < p->making_count && rc == DECANT_OK; i++) {
        const dcn_making *m = &p->makings[i];

        rc = dcn_backing_make(m->leaf, m->at, m->len, m->raw, m->dst, err);
        if (rc)
            dcn_pouring_blame(p, p->base + (uint64_t)(m->dst - p->dst), DECANT_SIDE_INPUT, rc, err);
    }
    p->making_count = 0;
    p->raw_len = 0;
    return rc;
}

decant_status dcn_pouring_flush(dcn_pouring *p, decant_error *err)
{
    uint64_t len = p->at - p->base;
    decant_status rc = dcn_pouring_fetch(p, err);

    if (rc == DECANT_OK && len && !(p->out->ops->can & DCN_CAN_LEND)) {
        dcn_parcel *load = &p->slots[p->current].parcel;

        *load = (dcn_parcel){p->out, p->base, {p->dst, (size_t)len}, p->sum};
        rc = dcn_pouring_send(p, load, err);
    }
    p->base = p->end = p->at;
    return rc || !len ? rc : dcn_pouring_progress(p, len, err);
}

/* The memory of the next slot: the first one over and over where nothing is under way, so that it stays in the cache. */
static decant_status next_slot(dcn_pouring *p, decant_error *err)
{
    unsigned slots = p->job->cut.slots;
    dcn_slot *s;
    decant_status rc = dcn_crew_wait(p->job->crew, DCN_LANE_WRITES, slots - 1, err);

    if (rc)
        return rc;
    p->current = dcn_crew_left(p->job->crew, DCN_LANE_WRITES) ? (p->current + 1) % slots : 0;
    s = &p->slots[p->current];
    if (!s->memory && !(s->memory = dcn_alloc_pages(p->job->cut.slot)))
        return dcn_error_nomem(err);
    p->dst = s->memory;
    return DECANT_OK;
}

decant_status dcn_pouring_room(dcn_pouring *p, uint64_t want, uint8_t **dst, size_t *len, decant_error *err)
{
    size_t size = p->job->cut.slot;
    decant_status rc;

    if (p->at == p->end) {
        if ((rc = dcn_pouring_flush(p, err)))
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
