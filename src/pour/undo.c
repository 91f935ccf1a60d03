/*
 *  (1) ABORT is durable before the first byte is put back, and before a part is removed: from there on a part may have lost
 *      what it was given, so that the only way is back (I8).
 *  (2) Bytes are freed in the parts when they are durable in their source, and the journal says so (I1).
 *  (3) What is put back takes room before the parts give any: one batch of it is reserved while there still is the other way
 *      (I9).
 */
#include "pour/drain.h"

#include <string.h>

#include "base/alloc.h"
#include "base/chunk.h"
#include "base/ckd.h"

/* How much of each unit of an output is still to be put back. */
typedef struct ledger {
    uint32_t *left; /* bytes */
    size_t units;
    uint64_t size; /* of the output */
} ledger;

typedef struct undoing {
    dcn_drain *d;
    ledger *ledgers; /* one an output */
    uint64_t unit;
    uint64_t *begins; /* where the batches of the source at hand begin */
    size_t count, cap;
    uint8_t *memory; /* a slot */
} undoing;

/* --- what the parts still hold --------------------------------------------------------------------------------------- */

static decant_status make_ledgers(undoing *u, decant_error *err)
{
    const dcn_intent *intent = u->d->intent;
    enum { MOST_UNITS = 1 << 20, MOST_UNIT = 1 << 30 }; /* 4 MiB; and no more than its counter takes */
    uint64_t total = 0;

    for (size_t i = 0; i < intent->count; i++)
        total += intent->outputs[i].size;
    for (u->unit = intent->giving.unit; total / u->unit > MOST_UNITS && u->unit < MOST_UNIT;)
        u->unit *= 2; /* what is large is freed in larger pieces */
    if (!(u->ledgers = dcn_alloc(intent->count, sizeof *u->ledgers)))
        return dcn_error_nomem(err);
    for (size_t i = 0; i < intent->count; i++) {
        ledger *l = &u->ledgers[i];

        l->size = intent->outputs[i].size;
        l->units = (size_t)(l->size / u->unit + 1);
        if (!(l->left = dcn_alloc(l->units, sizeof *l->left)))
            return dcn_error_nomem(err);
    }
    return DECANT_OK;
}

/* Adds bytes [at, at + len) of an output to what its units hold, or takes them away. */
static void count(const undoing *u, ledger *l, uint64_t at, uint64_t len, bool add)
{
    while (len) {
        uint64_t part = dcn_min(len, u->unit - at % u->unit);

        l->left[at / u->unit] += add ? (uint32_t)part : -(uint32_t)part;
        at += part;
        len -= part;
    }
}

/* Counts the runs of bytes [from, upto) of a source. */
static void count_source(undoing *u, uint32_t source, uint64_t from, uint64_t upto, bool add)
{
    dcn_places places = dcn_places_of(&u->d->intent->giving.runs, source, from, upto);
    dcn_placing p;

    while (dcn_places_next(&places, &p))
        count(u, &u->ledgers[p.output], p.to, p.len, add);
}

/* Room that is not got back now is got back when the part goes. */
static void punch(const undoing *u, size_t output, size_t from, size_t upto)
{
    if (from < upto)
        dcn_file_punch(dcn_output_part(u->d->outputs[output]), from * u->unit, (upto - from) * u->unit, NULL);
}

/* Frees the units of the parts of which all bytes are counted, or none. */
static void free_units(const undoing *u, bool all)
{
    for (size_t i = 0; i < u->d->intent->count; i++) {
        const ledger *l = &u->ledgers[i];
        size_t hull = 0, k = 0;

        for (; k * u->unit < l->size; k++)
            if (l->left[k] != (all ? dcn_min(u->unit, l->size - k * u->unit) : 0)) {
                punch(u, i, hull, k);
                hull = k + 1;
            }
        punch(u, i, hull, k);
    }
}

/* Units that hold nothing but bytes above the marks: their sources have them, and resuming writes them again. */
static void free_above(undoing *u)
{
    const dcn_giving *giving = &u->d->intent->giving;

    for (uint32_t i = 0; i < giving->count; i++)
        if (giving->items[i].drained)
            count_source(u, i, u->d->given[i].mark.upto, giving->items[i].file.size, true);
    free_units(u, true);
    for (size_t i = 0; i < u->d->intent->count; i++)
        memset(u->ledgers[i].left, 0, u->ledgers[i].units * sizeof *u->ledgers[i].left);
}

/* Frees what bytes [from, upto) of a source, which are back in it, have left of units of which nothing else is wanted. */
static void free_behind(undoing *u, uint32_t source, uint64_t from, uint64_t upto)
{
    dcn_places places = dcn_places_of(&u->d->intent->giving.runs, source, from, upto);
    size_t output = SIZE_MAX, begin = 0, end = 0; /* the hull at hand */
    dcn_placing p;

    count_source(u, source, from, upto, false);
    while (dcn_places_next(&places, &p)) {
        const ledger *l = &u->ledgers[p.output];

        for (size_t k = (size_t)(p.to / u->unit); k <= (p.to + p.len - 1) / u->unit; k++) {
            if (l->left[k])
                continue;
            if (p.output == output && k == end - 1)
                continue;
            if (p.output != output || k != end) {
                if (output != SIZE_MAX)
                    punch(u, output, begin, end);
                output = p.output;
                begin = k;
            }
            end = k + 1;
        }
    }
    if (output != SIZE_MAX)
        punch(u, output, begin, end);
}

/* --- putting back ---------------------------------------------------------------------------------------------------- */

static decant_status note_begin(undoing *u, uint64_t at, decant_error *err)
{
    uint64_t *begins = dcn_grown(u->begins, u->count, &u->cap, sizeof *begins);

    if (!begins)
        return dcn_error_nomem(err);
    u->begins = begins;
    u->begins[u->count++] = at;
    return DECANT_OK;
}

/* Where the batches of a source begin, up to its mark. */
static decant_status cut(undoing *u, uint32_t source, decant_error *err)
{
    const dcn_giving *giving = &u->d->intent->giving;
    uint64_t upto = u->d->given[source].mark.upto, room = giving->batch, begin, end;
    decant_status rc;

    u->count = 0;
    if ((rc = note_begin(u, 0, err)))
        return rc;
    for (uint64_t at = 0; dcn_runs_cover(&giving->runs, source, at, upto, room, &begin, &end); at = end) {
        room -= end - begin;
        if (room)
            continue;
        room = giving->batch;
        if (end < upto && (rc = note_begin(u, end, err)))
            return rc;
    }
    return DECANT_OK;
}

/* What reads as zero need not be put back: a file that has lost it reads as zero there. */
static decant_status put_back(undoing *u, uint32_t source, uint64_t from, uint64_t upto, decant_error *err)
{
    dcn_drain *d = u->d;
    uint64_t begin, end;

    for (uint64_t at = from; dcn_runs_cover(&d->intent->giving.runs, source, at, upto, d->slot, &begin, &end);
         at = end) {
        dcn_chunk chunk = {u->memory, (size_t)(end - begin)};
        decant_status rc = dcn_drain_read_back(d, source, begin, end - begin, u->memory, err);

        if (rc)
            return rc;
        if (!dcn_is_zero(u->memory, chunk.len) && (rc = dcn_file_write(d->given[source].file, begin, &chunk, 1, err)))
            return rc;
    }
    return DECANT_OK;
}

/* From `upto` up everything is in the source again. */
static decant_status mark_back(dcn_drain *d, uint32_t source, uint64_t upto, decant_error *err)
{
    dcn_mark mark = {.source = source, .from = upto, .upto = upto};
    decant_status rc = dcn_drain_mark(d, DCN_RECORD_UNMOVED, &mark, err);

    if (rc == DECANT_OK)
        rc = dcn_journal_sync(d->journal, err);
    if (rc == DECANT_OK)
        d->given[source].mark = mark;
    return rc;
}

static decant_status undo_source(undoing *u, uint32_t source, decant_error *err)
{
    dcn_drain *d = u->d;
    dcn_given *g = &d->given[source];
    decant_status rc = g->kept ? mark_back(d, source, g->mark.upto, err) : DECANT_OK;

    if (rc || !g->mark.upto || (rc = cut(u, source, err)))
        return rc;
    while (rc == DECANT_OK && u->count) {
        uint64_t from = u->begins[--u->count], upto = g->mark.upto;

        if ((rc = put_back(u, source, from, upto, err)) || (rc = dcn_file_sync(g->file, err)) ||
            (rc = mark_back(d, source, from, err)))
            break;
        free_behind(u, source, from, upto); /* keeps (2) */
    }
    return rc;
}

/* What is put back first is the last batch of the last one that has any. keeps (3) */
static decant_status reserve(undoing *u, decant_error *err)
{
    dcn_drain *d = u->d;
    uint32_t last = (uint32_t)d->intent->giving.count - 1;
    uint64_t from;
    decant_status rc;

    while (last && !d->given[last].mark.upto)
        last--;
    if (!d->given[last].mark.upto)
        return DECANT_OK;
    if ((rc = cut(u, last, err)))
        return rc;
    from = u->begins[u->count - 1];
    rc = dcn_file_reserve(d->given[last].file, from, d->given[last].mark.upto - from, err);
    rc = rc == DECANT_UNSUPPORTED ? DECANT_OK : rc;
    for (uint32_t i = 0; i <= last && rc == DECANT_OK; i++) /* or a crash takes it back, and what was freed */
        if (d->given[i].mark.upto)
            rc = dcn_file_sync(d->given[i].file, err);
    return rc;
}

/* keeps (1) */
static decant_status abort_drain(dcn_drain *d, decant_error *err)
{
    decant_status rc;

    if (d->aborted)
        return DECANT_OK;
    if ((rc = dcn_drain_mark(d, DCN_RECORD_ABORT, NULL, err)) == DECANT_OK)
        rc = dcn_journal_sync(d->journal, err);
    d->aborted = rc == DECANT_OK;
    return rc;
}

static bool any_moved(const dcn_drain *d)
{
    for (size_t i = 0; i < d->intent->giving.count; i++)
        if (d->given[i].mark.upto)
            return true;
    return false;
}

static decant_status take_back(undoing *u, decant_error *err)
{
    dcn_drain *d = u->d;
    uint32_t count_all = (uint32_t)d->intent->giving.count;
    decant_status rc;

    if (!any_moved(d))
        return abort_drain(d, err);
    if (!(u->memory = dcn_alloc_pages(d->slot)))
        return dcn_error_nomem(err);
    if ((rc = make_ledgers(u, err)) || (rc = dcn_drain_prove(d, err)))
        return rc;
    if (!d->aborted) {
        free_above(u);
        if ((rc = reserve(u, err)) || (rc = abort_drain(d, err)))
            return rc;
    }
    for (uint32_t i = 0; i < count_all; i++)
        if (d->given[i].mark.upto)
            count_source(u, i, 0, d->given[i].mark.upto, true);
    free_units(u, false); /* there is only one way now; and a crash may have brought back what was freed */
    for (uint32_t i = count_all; i-- > 0 && rc == DECANT_OK;)
        rc = undo_source(u, i, err);
    return rc;
}

/* Names, notes and times; also of what has given up nothing yet, and was on its way to. */
static decant_status restore(dcn_drain *d, decant_error *err)
{
    decant_status rc = DECANT_OK;

    for (size_t i = 0; i < d->intent->giving.count && rc == DECANT_OK; i++)
        if (d->given[i].owned->drained && d->given[i].file)
            rc = dcn_given_restore(&d->given[i], err);
    return rc ? rc : dcn_drain_sync_folders(d, err);
}

decant_status dcn_drain_undo(dcn_drain *d, decant_error *err)
{
    undoing u = {.d = d};
    decant_status rc = take_back(&u, err);

    if (rc == DECANT_OK)
        rc = restore(d, err);
    for (size_t i = 0; u.ledgers && i < d->intent->count; i++)
        dcn_free(&u.ledgers[i].left);
    dcn_free(&u.ledgers);
    dcn_free(&u.begins);
    dcn_free(&u.memory);
    return rc;
}
