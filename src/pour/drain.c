/*
 *  (1) A mark covers only bytes that were written before the sync began on which it rests (I1).
 *  (2) Nothing below a mark is freed before the mark is durable (I1).
 *  (3) A sync that failed is never repeated and believed. Of a part: there is no mark, nothing is freed, and all can be put
 *      back. Of the journal, a folder or a source: nobody knows what is on the disk; it is left to recovery, which looks (I7).
 *  (4) What is written twice is written twice before any of it is freed: a range goes to each of its places (I1).
 */
#include "pour/drain.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/alloc.h"
#include "base/chunk.h"
#include "base/ckd.h"

enum {
    LANE = 1,    /* of syncing, marking and freeing */
    UNFREED = 2, /* batches, no more than the plan has room for (I9) */
    GAP = 4096   /* up to here it costs less to read a gap and throw it away than to read again */
};

/* What is between two syncs. */
struct dcn_batch {
    dcn_drain *drain;
    dcn_mark *marks; /* one a source that it has bytes of */
    size_t count;
    bool *touched; /* per output: it was written to */
};

/* --- beginning and ending ------------------------------------------------------------------------------------------ */

static decant_status open_folders(dcn_drain *d, dcn_dir *home, decant_error *err)
{
    size_t count = d->intent->folder_count ? d->intent->folder_count : 1;
    decant_status rc = DECANT_OK;

    if (!(d->dirs = dcn_alloc(count, sizeof(dcn_dir *))))
        return dcn_error_nomem(err);
    d->dirs[DCN_HOME] = home;
    for (size_t i = DCN_HOME + 1; i < count && rc == DECANT_OK; i++) {
        rc = dcn_io_open_dir(home->io, d->intent->folders[i], &d->dirs[i], err);
        rc = rc == DECANT_NOT_FOUND ? DECANT_OK : rc; /* so are its files: whoever needs one says so */
    }
    return rc;
}

decant_status dcn_drain_sync_folders(const dcn_drain *d, decant_error *err)
{
    size_t count = d->intent->folder_count ? d->intent->folder_count : 1;
    decant_status rc = DECANT_OK;

    for (size_t i = 0; i < count && rc == DECANT_OK; i++)
        if (d->dirs[i])
            rc = dcn_dir_sync(d->dirs[i], err);
    return rc;
}

/* The absolute path of the journal, for the notes. */
static decant_status make_note(dcn_drain *d, dcn_dir *home, decant_error *err)
{
    char folder[4096];
    decant_status rc =
        d->journal && d->journal->name ? dcn_dir_where(home, folder, sizeof folder, err) : DECANT_UNSUPPORTED;

    if (rc)
        return rc == DECANT_UNSUPPORTED ? DECANT_OK : rc;
    d->note = dcn_io_join(folder, d->journal->name);
    return d->note ? DECANT_OK : dcn_error_nomem(err);
}

decant_status dcn_drain_begin(dcn_drain *d, dcn_dir *home, decant_error *err)
{
    const dcn_giving *giving = &d->intent->giving;
    decant_status rc;

    if ((rc = open_folders(d, home, err)) || (rc = make_note(d, home, err)))
        return rc;
    if (!(d->given = dcn_alloc(giving->count, sizeof *d->given)))
        return dcn_error_nomem(err);
    for (size_t i = 0; i < giving->count && rc == DECANT_OK; i++) {
        const dcn_owned *owned = &giving->items[i];
        const char *folder = owned->folder == DCN_HOME ? home->path : d->intent->folders[owned->folder];

        rc = dcn_given_describe(&d->given[i], owned, d->dirs[owned->folder], folder, d->same_boot, err);
    }
    return rc;
}

bool dcn_drain_any(const dcn_drain *d)
{
    return d->intent->giving.runs.count > 0;
}

void dcn_drain_close(dcn_drain *d)
{
    size_t folders = d->dirs && d->intent->folder_count ? d->intent->folder_count : 1;

    for (size_t i = 0; d->given && i < d->intent->giving.count; i++)
        dcn_given_close(&d->given[i]);
    dcn_free(&d->given);
    for (size_t i = DCN_HOME + 1; d->dirs && i < folders; i++)
        dcn_dir_close(&d->dirs[i]);
    dcn_free(&d->dirs);
    dcn_free(&d->note);
}

/* --- the journal --------------------------------------------------------------------------------------------------- */

decant_status dcn_drain_mark(dcn_drain *d, dcn_record_type type, const dcn_mark *mark, decant_error *err)
{
    dcn_buf data = {0};
    decant_status rc;

    if (mark)
        dcn_mark_put(mark, &data);
    rc = dcn_journal_put(d->journal, type, &data, err);
    dcn_buf_close(&data);
    return rc;
}

static decant_status sync_parts(dcn_drain *d, const bool *touched, decant_error *err)
{
    decant_status rc = DECANT_OK;

    for (size_t i = 0; i < d->intent->count && rc == DECANT_OK; i++)
        if (!touched || touched[i])
            rc = dcn_file_sync(dcn_output_part(d->outputs[i]), err);
    if (rc && rc != DECANT_NOMEM)
        dcn_error_side(err, DECANT_SIDE_OUTPUT);
    return rc;
}

decant_status dcn_drain_ready(dcn_drain *d, decant_error *err)
{
    dcn_buf parts = {0};
    decant_status rc;

    if ((rc = sync_parts(d, NULL, err)) || (rc = dcn_outputs_settle(d->outputs, d->intent->count, err)))
        return rc;
    dcn_intent_put_ready(d->intent, d->outputs, &parts);
    if ((rc = dcn_journal_put(d->journal, DCN_RECORD_READY, &parts, err)) == DECANT_OK)
        rc = dcn_journal_sync(d->journal, err);
    d->in_doubt = d->journal->broken;
    d->ready = rc == DECANT_OK || d->in_doubt;
    dcn_buf_close(&parts);
    return rc;
}

/* For sums, on a boundary of 64 bytes, which it wants. NULL: no memory. Freed by dcn_free(). */
static XXH3_state_t *make_state(void)
{
    return dcn_alloc_pages(sizeof(XXH3_state_t));
}

/* --- a batch: filling it ------------------------------------------------------------------------------------------- */

/* What an output holds back is not in its part yet: READY has it. */
static void skip_held(const dcn_drain *d, dcn_placing *p)
{
    uint64_t held = d->intent->outputs[p->output].held;
    uint64_t skip = p->to < held ? dcn_min(held - p->to, p->len) : 0;

    p->from += skip;
    p->to += skip;
    p->len -= skip;
}

/* keeps (4) */
static decant_status write_places(dcn_drain *d, dcn_batch *b, uint64_t at, const uint8_t *data, uint64_t len,
                                  decant_error *err)
{
    dcn_places places = dcn_places_of(&d->intent->giving.runs, d->source, at, at + len);
    bool has_holes = d->given[d->source].has_holes;
    dcn_placing p;

    while (dcn_places_next(&places, &p)) {
        dcn_chunk chunk;
        decant_status rc;

        skip_held(d, &p);
        chunk = (dcn_chunk){data + (p.from - at), (size_t)p.len};
        /* a new part reads as zero: a hole stays one */
        if (!p.len || (has_holes && dcn_is_zero(chunk.data, chunk.len)))
            continue;
        b->touched[p.output] = true;
        if ((rc = dcn_file_write(dcn_output_part(d->outputs[p.output]), p.to, &chunk, 1, err))) {
            if (rc != DECANT_NOMEM)
                dcn_error_side(err, DECANT_SIDE_OUTPUT);
            return rc;
        }
    }
    return DECANT_OK;
}

/* The next bytes of the source that are read together: whole runs with small gaps, at most a slot of them. */
static bool next_window(const dcn_drain *d, uint64_t room, uint64_t *from, uint64_t *upto)
{
    const dcn_runs *runs = &d->intent->giving.runs;
    uint64_t limit, begin, end;

    if (!dcn_runs_cover(runs, d->source, d->at, UINT64_MAX, dcn_min(room, d->slot), from, upto))
        return false;
    limit = *from + d->slot;
    room -= *upto - *from;
    while (room && dcn_runs_cover(runs, d->source, *upto, limit, room, &begin, &end) && begin - *upto <= GAP) {
        room -= end - begin;
        *upto = end;
    }
    return true;
}

/* Reads a window and writes what it has of runs. @param room  bytes that the batch still takes */
static decant_status move_window(dcn_drain *d, dcn_batch *b, uint64_t from, uint64_t upto, uint64_t *room,
                                 decant_error *err)
{
    dcn_range range = {from, d->memory, (size_t)(upto - from)};
    uint64_t begin, end;
    decant_status rc = dcn_file_read(d->given[d->source].file, &range, 1, err);

    if (rc) {
        if (rc != DECANT_NOMEM)
            dcn_error_side(err, DECANT_SIDE_INPUT);
        return rc;
    }
    for (uint64_t at = from; dcn_runs_cover(&d->intent->giving.runs, d->source, at, upto, UINT64_MAX, &begin, &end);
         at = end) {
        const uint8_t *data = d->memory + (begin - from);

        XXH3_64bits_update(d->summing, data, (size_t)(end - begin));
        if ((rc = write_places(d, b, begin, data, end - begin, err)))
            return rc;
        *room -= end - begin;
    }
    d->at = upto;
    return d->progress ? d->progress(d->progress_ctx, upto - from, err) : DECANT_OK;
}

/* The mark of the source at hand, of which this batch has its first bytes. */
static dcn_mark *open_mark(dcn_drain *d, dcn_batch *b)
{
    dcn_mark *mark = &b->marks[b->count++];

    *mark = (dcn_mark){.source = d->source, .from = d->at};
    XXH3_64bits_reset(d->summing);
    return mark;
}

/* As much as a batch takes, of one source after the other. An empty one: all is drained. */
static decant_status fill(dcn_drain *d, dcn_batch *b, decant_error *err)
{
    const dcn_giving *giving = &d->intent->giving;
    uint64_t room = giving->batch;

    b->count = 0;
    memset(b->touched, 0, d->intent->count);
    while (room && d->source < giving->count) {
        dcn_mark *mark = NULL;
        uint64_t from, upto;

        while (room && next_window(d, room, &from, &upto)) {
            decant_status rc;

            mark = mark ? mark : open_mark(d, b);
            if ((rc = move_window(d, b, from, upto, &room, err)))
                return rc;
        }
        if (d->at >= dcn_runs_end(&giving->runs, d->source))
            d->at = giving->items[d->source].file.size;
        if (mark) {
            mark->upto = d->at;
            mark->sum = XXH3_64bits_digest(d->summing);
        }
        if (room && ++d->source < giving->count)
            d->at = d->given[d->source].mark.upto;
    }
    return DECANT_OK;
}

/* --- a batch: making it safe, and freeing --------------------------------------------------------------------------- */

decant_status dcn_drain_read_back(dcn_drain *d, uint32_t source, uint64_t at, uint64_t len, uint8_t *dst,
                                  decant_error *err)
{
    dcn_places places = dcn_places_of(&d->intent->giving.runs, source, at, at + len);
    dcn_placing p;

    while (dcn_places_next(&places, &p)) {
        dcn_output *o = d->outputs[p.output];
        uint64_t held = d->intent->outputs[p.output].held, kept = p.to < held ? dcn_min(held - p.to, p.len) : 0;
        dcn_range rest = {p.to + kept, dst + (p.from - at) + kept, (size_t)(p.len - kept)};
        decant_status rc;

        if (kept)
            memcpy(dst + (p.from - at), dcn_output_held(o) + p.to, (size_t)kept);
        if (rest.len && (rc = dcn_file_read(dcn_output_part(o), &rest, 1, err))) {
            if (rc != DECANT_NOMEM)
                dcn_error_side(err, DECANT_SIDE_OUTPUT);
            return rc;
        }
    }
    return DECANT_OK;
}

typedef decant_status read_fn(dcn_drain *d, uint32_t source, uint64_t at, uint64_t len, uint8_t *dst,
                              decant_error *err);

static decant_status read_source(dcn_drain *d, uint32_t source, uint64_t at, uint64_t len, uint8_t *dst,
                                 decant_error *err)
{
    dcn_range range = {at, dst, (size_t)len};

    return dcn_file_read(d->given[source].file, &range, 1, err);
}

/* Whether what a mark covers is what is read. */
static decant_status compare(dcn_drain *d, const dcn_mark *mark, read_fn *read, bool *same, decant_error *err)
{
    XXH3_state_t *state = make_state();
    uint8_t *memory = dcn_alloc_pages(d->slot);
    uint64_t begin, end;
    decant_status rc = state && memory ? DECANT_OK : dcn_error_nomem(err);

    if (rc)
        goto done;
    XXH3_64bits_reset(state);
    for (uint64_t at = mark->from; rc == DECANT_OK && dcn_runs_cover(&d->intent->giving.runs, mark->source, at,
                                                                     mark->upto, d->slot, &begin, &end);
         at = end)
        if ((rc = read(d, mark->source, begin, end - begin, memory, err)) == DECANT_OK)
            XXH3_64bits_update(state, memory, (size_t)(end - begin));
    *same = XXH3_64bits_digest(state) == mark->sum;
done:
    dcn_free(&memory);
    dcn_free(&state);
    return rc;
}

/* What is read next of the parts is what the disk has. */
static decant_status forget_parts(dcn_drain *d, decant_error *err)
{
    for (size_t i = 0; i < d->intent->count; i++) {
        decant_status rc = dcn_file_forget(dcn_output_part(d->outputs[i]), err);

        if (rc && rc != DECANT_UNSUPPORTED)
            return rc;
    }
    return DECANT_OK;
}

static decant_status misread(const dcn_drain *d, const dcn_mark *mark, decant_error *err)
{
    const dcn_given *g = &d->given[mark->source];

    decant_error_set(err, DECANT_CHANGED, "bytes %" PRIu64 " to %" PRIu64 " are not on the disk as they were moved",
                     mark->from, mark->upto);
    dcn_error_hint(err, "nothing more was touched: check the disk and the memory");
    dcn_error_path(err, g->owned->name);
    dcn_error_side(err, DECANT_SIDE_OUTPUT);
    return DECANT_CHANGED;
}

static decant_status prove_batch(dcn_drain *d, const dcn_batch *b, decant_error *err)
{
    decant_status rc = forget_parts(d, err);
    bool same = true;

    for (size_t i = 0; i < b->count && rc == DECANT_OK; i++)
        if ((rc = compare(d, &b->marks[i], dcn_drain_read_back, &same, err)) == DECANT_OK && !same)
            rc = misread(d, &b->marks[i], err);
    return rc;
}

decant_status dcn_drain_prove(dcn_drain *d, decant_error *err)
{
    decant_status rc = forget_parts(d, err);

    for (size_t i = 0; i < d->intent->giving.count && rc == DECANT_OK; i++) {
        dcn_mark *mark = &d->given[i].mark;
        bool same = true;

        if (mark->from == mark->upto || (rc = compare(d, mark, dcn_drain_read_back, &same, err)) || same)
            continue;
        if ((rc = compare(d, mark, read_source, &same, err)) == DECANT_OK && !same)
            rc = misread(d, mark, err);
        mark->upto = mark->from;
        d->given[i].kept = true;
        d->given[i].has_holes = false; /* nor do the parts read as zero there */
    }
    return rc;
}

/* A journal that marks have filled would leave no way back (I12). */
static decant_status check_cells(const dcn_drain *d, const dcn_batch *b, decant_error *err)
{
    if (d->journal->cells - d->journal->next >= b->count + d->cells_back)
        return DECANT_OK;
    decant_error_set(err, DECANT_NO_SPACE,
                     "the same bytes had to be moved too often, since the disk does not keep them");
    dcn_error_hint(err, "check the disk; what is left of the journal is for putting all back");
    return DECANT_NO_SPACE;
}

static decant_status mark_batch(dcn_drain *d, const dcn_batch *b, decant_error *err)
{
    decant_status rc = check_cells(d, b, err);

    for (size_t i = 0; i < b->count && rc == DECANT_OK; i++) {
        dcn_given *g = &d->given[b->marks[i].source];

        rc = dcn_given_set_aside(g, d->note, err);
        d->in_doubt = d->in_doubt || g->in_doubt;
    }
    for (size_t i = 0; i < b->count && rc == DECANT_OK; i++)
        if ((rc = dcn_drain_mark(d, DCN_RECORD_MOVED, &b->marks[i], err)) == DECANT_OK) {
            dcn_given *g = &d->given[b->marks[i].source];

            g->mark = b->marks[i]; /* it is true, and whoever goes back says that it is not */
            g->has_begun = true;
        }
    if (!d->journal->broken && !d->in_doubt) { /* also if not all are there: ABORT never shares a sync with them */
        decant_status later = dcn_journal_sync(d->journal, rc ? NULL : err);

        rc = rc ? rc : later;
    }
    d->in_doubt = d->in_doubt || d->journal->broken;
    return rc;
}

/* A unit that cannot be freed costs room, and no more: it goes on while there is some. */
static decant_status free_batch(dcn_drain *d, const dcn_batch *b, decant_error *err)
{
    for (size_t i = 0; i < b->count; i++) {
        const dcn_mark *mark = &b->marks[i];
        dcn_given *g = &d->given[mark->source];
        decant_status rc;

        if ((rc = dcn_given_check(g, err)))
            return rc;
        if (dcn_given_free(g, &d->intent->giving, mark->from, mark->upto, err) == DECANT_NOMEM)
            return DECANT_NOMEM;
    }
    return DECANT_OK;
}

/* keeps (1), (2), (3) */
static decant_status complete(void *ctx, decant_error *err)
{
    dcn_batch *b = ctx;
    dcn_drain *d = b->drain;
    decant_status rc;

    if ((rc = sync_parts(d, b->touched, err)) || (d->proves && (rc = prove_batch(d, b, err))) ||
        (rc = mark_batch(d, b, err)))
        return rc;
    if (d->routes)
        dcn_routes_look(d->routes, d->dirs[DCN_HOME]);
    return free_batch(d, b, err);
}

/* --- all of them ---------------------------------------------------------------------------------------------------- */

static void free_batches(dcn_drain *d)
{
    for (size_t i = 0; d->batches && i < UNFREED; i++) {
        dcn_free(&d->batches[i].marks);
        dcn_free(&d->batches[i].touched);
    }
    dcn_free(&d->batches);
    dcn_free(&d->memory);
    dcn_free(&d->summing);
}

static decant_status make_batches(dcn_drain *d, decant_error *err)
{
    d->memory = dcn_alloc_pages(d->slot);
    d->summing = make_state();
    d->batches = dcn_alloc(UNFREED, sizeof *d->batches);
    d->cells_back = dcn_intent_cells_back(d->intent);
    if (!d->memory || !d->summing || !d->batches)
        return dcn_error_nomem(err);
    for (size_t i = 0; i < UNFREED; i++) {
        dcn_batch *b = &d->batches[i];

        b->drain = d;
        b->marks = dcn_alloc(d->intent->giving.count, sizeof *b->marks);
        b->touched = dcn_alloc(d->intent->count, sizeof *b->touched);
        if (!b->marks || !b->touched)
            return dcn_error_nomem(err);
    }
    return DECANT_OK;
}

decant_status dcn_drain_run(dcn_drain *d, decant_error *err)
{
    decant_status rc = make_batches(d, err), later;

    d->source = 0;
    d->at = d->given[0].mark.upto;
    for (size_t i = 0; rc == DECANT_OK; i++) {
        dcn_batch *b = &d->batches[i % UNFREED];

        if ((rc = dcn_crew_wait(d->crew, LANE, UNFREED - 1, err)) || (rc = fill(d, b, err)))
            break;
        if (!b->count)
            break;
        dcn_crew_give(d->crew, LANE, (dcn_task){complete, b});
    }
    if ((later = dcn_crew_wait(d->crew, LANE, 0, err)))
        rc = later;
    free_batches(d);
    return rc;
}

/* --- the end -------------------------------------------------------------------------------------------------------- */

decant_status dcn_drain_commit(dcn_drain *d, decant_error *err)
{
    size_t count = d->intent->count;
    dcn_buf parts = {0};
    decant_status rc;

    if ((rc = dcn_outputs_settle(d->outputs, count, err)) ||
        (rc = dcn_intent_check(d->intent, d->outputs, d->same_boot, err)))
        return rc;
    for (size_t i = 0; i < d->intent->giving.count; i++) {
        dcn_given *g = &d->given[i];

        if ((rc = g->file ? dcn_given_check(g, err) : dcn_given_check_whole(g, err)))
            return rc;
    }
    dcn_intent_name_parts(d->intent, d->outputs);
    dcn_intent_put_commit(d->intent, &parts);
    if ((rc = dcn_journal_put(d->journal, DCN_RECORD_COMMIT, &parts, err)) == DECANT_OK)
        rc = dcn_journal_sync(d->journal, err);
    d->in_doubt = d->journal->broken;
    d->committed = rc == DECANT_OK;
    dcn_buf_close(&parts);
    return rc;
}

decant_status dcn_drain_remove(dcn_drain *d, bool spare_whole, decant_error *err)
{
    const dcn_giving *giving = &d->intent->giving;
    decant_status rc = DECANT_OK;

    for (size_t i = 0; i < giving->count && rc == DECANT_OK; i++)
        if (giving->items[i].drained || !spare_whole)
            rc = dcn_given_remove(&d->given[i], err);
    return rc || !giving->count ? rc : dcn_drain_sync_folders(d, err);
}
