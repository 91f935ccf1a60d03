#include "pour/pour.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/ckd.h"
#include "base/text.h"
#include "pour/moved.h"
#include "pour/slots.h"

const dcn_cut dcn_cut_default = {
    .slot = 1 << 20, .slots = 4, .direct = 256 << 10, .batch = 64 << 20, .least_batch = 1 << 20, .share = 64 << 10};

enum { WANTED = 4096 }; /* file ranges of a slot that are read together, at most */

static void turn_to(dcn_pouring *p, size_t i)
{
    p->plan = &p->job->plans->items[i];
    p->out = p->job->outputs[i];
    p->sum = p->sums ? &p->sums[i] : NULL;
    p->at = p->base = p->end = 0;
}

/* Whether to stop is asked once more after the sync, which may be the longest wait: until it has its name a file can go. */
static decant_status last_chance(dcn_pouring *p, decant_error *err)
{
    for (size_t i = 0; i < p->job->plans->count; i++)
        if (!p->job->outputs[i]->ops->publish)
            return DECANT_OK;
    return dcn_pouring_progress(p, 0, err);
}

/* One plan, all of it written. Of several failures that of the earliest bytes counts: writes, then reads not yet done. */
static decant_status pour_one(dcn_pouring *p, decant_error *err)
{
    decant_status rc, earlier;

    if ((rc = dcn_pouring_copy(p, err)) == DECANT_OK)
        rc = dcn_pouring_flush(p, err);
    if ((earlier = dcn_crew_wait(p->job->crew, DCN_LANE_WRITES, 0, err)) || (earlier = dcn_pouring_fetch(p, err)))
        rc = earlier;
    return rc;
}

/* What is read back counts as much as what is written. */
static decant_status prepare_proof(dcn_pouring *p, decant_error *err)
{
    const dcn_plans *plans = p->job->plans;
    decant_status rc = DECANT_OK;

    p->total *= 2;
    if (p->job->intent && p->job->intent->giving.runs.count) /* each batch is compared before it is freed */
        return DECANT_OK;
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
static decant_status prove(dcn_pouring *p, size_t plan, decant_error *err)
{
    const dcn_proof *proof = p->job->proof;
    dcn_slot *s = &p->slots[0];
    dcn_chunk chunk = {0};
    decant_status rc;

    if (!s->memory && !(s->memory = dcn_alloc_pages(p->job->cut.slot)))
        return dcn_error_nomem(err);
    chunk.data = s->memory;
    for (uint64_t at = 0; at < p->plan->total; at += chunk.len) {
        chunk.len = (size_t)dcn_min(p->job->cut.slot, p->plan->total - at);
        if ((rc = dcn_output_reread(p->out, at, s->memory, chunk.len, err)))
            return rc;
        if (p->sum && !dcn_checksums_match(p->sum, at, s->memory, chunk.len))
            return misread(at, chunk.len, err);
        if ((rc = proof->see(proof->ctx, plan, at, &chunk, err)) || (rc = dcn_pouring_progress(p, chunk.len, err)))
            return rc;
    }
    return DECANT_OK;
}

static decant_status prepare(dcn_pouring *p, decant_error *err)
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

static void dispose(dcn_pouring *p)
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
    dcn_drain_close(&p->drain);
    dcn_intent_close(&p->own);
}

/* Before anything exists, and anything is opened for writing, the journal knows that it may. keeps I4 */
static decant_status promise(dcn_pouring *p, decant_error *err)
{
    const dcn_job *job = p->job;
    dcn_intent *intent = job->intent ? job->intent : &p->own;
    dcn_buf begin = {0};
    decant_status rc;

    for (size_t i = 0; i < job->plans->count; i++) {
        job->outputs[i]->transaction = job->journal->transaction;
        job->outputs[i]->journal = job->journal->name;
    }
    if ((rc = dcn_intent_make(intent, job->plans, job->outputs, job->removals, job->removal_count, err)))
        goto done;
    dcn_intent_put_begin(intent, &begin);
    rc = dcn_journal_begin(job->journal, &begin, dcn_intent_cells(intent), err);
done:
    dcn_buf_close(&begin);
    if (rc && rc != DECANT_NOMEM)
        dcn_error_side(err, DECANT_SIDE_OUTPUT);
    return rc;
}

static decant_status drained(void *ctx, uint64_t more, decant_error *err)
{
    return dcn_pouring_progress(ctx, more, err);
}

/* Files that are given up are opened for writing, locked, and nobody else has them open. */
static decant_status take_given(dcn_pouring *p, decant_error *err)
{
    dcn_drain *d = &p->drain;
    decant_status rc = DECANT_OK;

    for (size_t i = 0; i < d->intent->giving.count && rc == DECANT_OK; i++) {
        dcn_given *g = &d->given[i];

        if (!g->owned->drained)
            continue;
        if ((rc = dcn_given_open(g, err)) == DECANT_OK) {
            dcn_given_lend(g, p->job->given[i]); /* which lets go of the lock that the source has */
            if ((rc = dcn_given_lock(g, err)) == DECANT_OK)
                rc = dcn_given_check(g, err);
        }
    }
    return rc;
}

static decant_status begin_drain(dcn_pouring *p, decant_error *err)
{
    const dcn_job *job = p->job;

    p->drain = (dcn_drain){
        .intent = job->intent ? job->intent : &p->own,
        .journal = job->journal,
        .outputs = job->outputs,
        .crew = job->crew,
        .slot = job->cut.slot,
        .same_boot = true,
        .routes = job->routes,
        .proves = job->proof,
        .progress = drained,
        .progress_ctx = p,
    };
    return job->journal || job->intent ? dcn_drain_begin(&p->drain, job->outputs[0]->dir, err) : DECANT_OK;
}

/* What stays in memory of what is given up is nobody's to read while it is given up. */
static decant_status drain(dcn_pouring *p, decant_error *err)
{
    const dcn_job *job = p->job;
    dcn_drain *d = &p->drain;
    decant_status rc;

    if (!dcn_drain_any(d))
        return DECANT_OK;
    dcn_intent_name_parts(job->intent, job->outputs);
    if ((rc = dcn_drain_ready(d, err)))
        return rc;
    for (size_t i = 0; i < d->intent->giving.count; i++)
        if (d->given[i].owned->drained)
            dcn_source_give(job->given[i]);
    return dcn_drain_run(d, err);
}

/* What was to be given up is whole again; or is recovery's, and then nobody reads it, nor holds its lock. */
static void end_given(dcn_pouring *p, bool whole)
{
    const dcn_job *job = p->job;

    for (size_t i = 0; job->intent && i < job->intent->giving.count; i++)
        if (whole)
            dcn_source_keep(job->given[i]);
        else if (job->intent->giving.items[i].drained)
            dcn_source_end(job->given[i], job->outputs[job->plans->count - 1]->path, NULL);
}

static decant_status publish(dcn_pouring *p, decant_error *err)
{
    const dcn_job *job = p->job;
    dcn_dir *home = job->outputs[0]->dir, *const *dirs = p->drain.dirs ? p->drain.dirs : &home;
    decant_status rc = dcn_outputs_publish(job->outputs, job->plans->count, err);

    if (rc)
        return rc;
    if (job->intent)
        dcn_moved_end(&job->intent->giving, job->given, job->outputs, job->plans->count);
    if ((job->intent && (rc = dcn_drain_remove(&p->drain, false, err))) ||
        (job->removal_count && (rc = dcn_removals_carry_out(dirs, job->removals, job->removal_count, true, err))))
        return job->journal && job->intent
                   ? rc
                   : dcn_error_recast(err, DECANT_NOT_REMOVED, "saved, but what it supersedes is not all removed");
    return job->journal ? dcn_journal_end(job->journal, err) : DECANT_OK;
}

/* What cannot be undone and is not done stays as it is, and its journal with it. keeps I7 */
static decant_status leave(const dcn_pouring *p, decant_error *err)
{
    const dcn_job *job = p->job;
    const dcn_output *last = job->outputs[job->plans->count - 1];
    char word[DCN_WORD];
    decant_status rc;

    if (p->drain.committed)
        rc = dcn_error_recast(err, DECANT_PUBLISH_PENDING, "all is written, but not all is in place");
    else if (p->drain.ready)
        rc = dcn_error_recast(err, DECANT_INTERRUPTED, "interrupted while inputs were given up; nothing is lost");
    else
        rc = dcn_error_recast(err, DECANT_INTERRUPTED, "interrupted when all was written");

    dcn_text_word(word, last->path ? last->path : last->name);
    if (p->drain.committed)
        dcn_error_hint(err, "decant recover --resume %s finishes it", word);
    else if (p->drain.aborted)
        dcn_error_hint(err, "decant recover --undo %s puts back what was given up", word);
    else if (p->drain.ready && !p->drain.in_doubt && !job->journal->broken)
        dcn_error_hint(err, "decant recover --resume %s finishes it, decant recover --undo %s undoes it", word, word);
    else /* the journal has to be read for it */
        dcn_error_hint(err, "decant recover %s shows whether it can be finished (--resume) or undone (--undo)", word);
    dcn_error_side(err, DECANT_SIDE_OUTPUT);
    return rc;
}

/*
 * The journal goes when all that it speaks of is gone for good. Where that cannot be seen to it stays, and the next save does;
 * but not if something was to be given up.
 */
static decant_status retreat(const dcn_pouring *p, decant_status rc, decant_error *err)
{
    const dcn_job *job = p->job;
    dcn_facts facts;

    for (size_t i = 0; i < job->plans->count; i++) {
        const dcn_output *o = job->outputs[i];

        if (o->part && dcn_dir_stat(o->dir, o->part, &facts, NULL) != DECANT_NOT_FOUND)
            return p->drain.ready ? leave(p, err) : rc;
    }
    if (dcn_dir_sync(job->journal->dir, NULL) == DECANT_OK && dcn_journal_end(job->journal, NULL) == DECANT_OK)
        return rc;
    return p->drain.ready ? leave(p, err) : rc;
}

/* What was given up is put back, if it can be: then nothing is left to be done but to remove what was made. */
static bool undo(dcn_pouring *p)
{
    decant_error err = {.offset = DECANT_NO_OFFSET};

    if (p->drain.committed || p->drain.in_doubt || (p->drain.ready && p->keeps))
        return false;
    dcn_crew_reset(p->job->crew);
    return !p->drain.ready || dcn_drain_undo(&p->drain, &err) == DECANT_OK;
}

static decant_status pour(dcn_pouring *p, decant_error *err)
{
    const dcn_job *job = p->job;
    size_t count = job->plans->count;
    decant_status rc;

    if ((rc = prepare(p, err)) || (rc = begin_drain(p, err)) || (job->journal && (rc = promise(p, err))) ||
        (dcn_drain_any(&p->drain) && (rc = take_given(p, err))))
        return rc;
    for (size_t i = 0; i < count; i++)
        if ((rc = dcn_output_begin(job->outputs[i], &job->plans->items[i], err)))
            return rc;
    for (size_t i = 0; i < count; i++) {
        turn_to(p, i);
        if ((rc = dcn_pouring_share(p, err)) || (rc = dcn_pouring_reserve(p, err)))
            return rc;
    }
    for (size_t i = 0; i < count; i++) {
        turn_to(p, i);
        if ((rc = pour_one(p, err)))
            return rc;
    }
    /* what was read while somebody wrote may be half old and half new */
    if ((rc = dcn_sources_check(job->sources, job->source_count, err)) || (rc = drain(p, err)))
        return rc;
    for (size_t i = 0; i < count; i++)
        if ((rc = dcn_output_seal(job->outputs[i], err)))
            return rc;
    if (job->routes && job->outputs[0]->dir)
        dcn_routes_look(job->routes, job->outputs[0]->dir);
    for (size_t i = 0; i < count && job->proof; i++) {
        turn_to(p, i);
        if ((rc = prove(p, i, err)))
            return rc;
    }
    if ((rc = last_chance(p, err)) || (job->journal && (rc = dcn_drain_commit(&p->drain, err))))
        return rc;
    return publish(p, err);
}

decant_status dcn_pour(const dcn_job *job, decant_error *err)
{
    dcn_pouring p = {.job = job};
    decant_status rc;

    dcn_crew_reset(job->crew);
    rc = pour(&p, err);
    if (rc && job->journal) {
        if (undo(&p)) {
            end_given(&p, true);
        } else {
            end_given(&p, false);
            for (size_t i = 0; i < job->plans->count; i++)
                dcn_output_leave(job->outputs[i]);
            rc = leave(&p, err);
        }
    }
    for (size_t i = 0; i < job->plans->count; i++)
        dcn_output_abandon(job->outputs[i]); /* does nothing to what is published or left */
    if (rc && job->journal && rc != DECANT_INTERRUPTED && rc != DECANT_PUBLISH_PENDING)
        rc = retreat(&p, rc, err);
    dcn_crew_reset(job->crew);
    dispose(&p);
    return rc;
}
