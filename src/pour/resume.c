/*
 *  (1) Everything that is needed is found, and is what the journal knows, before anything is touched (I5).
 *  (2) The last batch of each source is believed only when it was read from the disk, or the source still has it (I1).
 */
#include "pour/recover.h"

#include <string.h>

#include "base/alloc.h"

/* A recovery that moves bytes. */
typedef struct moving {
    dcn_leftover *l;
    dcn_drain drain;
    dcn_crew *own;        /* where none is lent */
    dcn_output **outputs; /* one each; NULL: it is not needed, and not there */
} moving;

static void end(moving *m)
{
    size_t count = m->outputs ? m->l->intent.count : 0;

    dcn_drain_close(&m->drain);
    for (size_t i = 0; i < count; i++) {
        if (m->outputs[i])
            dcn_output_leave(m->outputs[i]);
        dcn_output_close(&m->outputs[i]);
    }
    dcn_free(&m->outputs);
    dcn_crew_close(&m->own);
}

/* Folders are made true too: what a killed process has left in the cache alone must not be built upon. */
static decant_status begin(moving *m, dcn_leftover *l, decant_error *err)
{
    decant_status rc;

    *m = (moving){.l = l,
                  .drain = {.intent = &l->intent,
                            .journal = &l->journal,
                            .slot = l->slot,
                            .same_boot = l->same_boot,
                            .ready = true,
                            .aborted = l->stage == DCN_STAGE_ABORTED}};
    if (!l->crew && (rc = dcn_crew_inline(&m->own, err)))
        return rc;
    m->drain.crew = l->crew ? l->crew : m->own;
    if (!(m->outputs = dcn_alloc(l->intent.count, sizeof(dcn_output *))))
        return dcn_error_nomem(err);
    m->drain.outputs = m->outputs;
    if ((rc = dcn_drain_begin(&m->drain, l->dir, err)))
        return rc;
    return dcn_drain_sync_folders(&m->drain, err);
}

/* --- finding what is needed ------------------------------------------------------------------------------------------ */

static decant_status find_part(moving *m, size_t i, const uint8_t *held, decant_error *err)
{
    dcn_leftover *l = m->l;
    const dcn_promise *p = &l->intent.outputs[i];
    dcn_output **out = &m->outputs[i];
    char *part = NULL;
    dcn_facts facts;
    decant_status rc;

    if ((rc = dcn_part_name(p->name, l->journal.transaction, true, &part, err)))
        return rc;
    rc = dcn_dir_stat(l->dir, part, &facts, err);
    if (rc == DECANT_NOT_FOUND)
        rc = dcn_leftover_misfit(l, part, err, "what was written is gone");
    else if (rc == DECANT_OK && !dcn_identity_fits(&p->part, &facts, l->same_boot))
        rc = dcn_leftover_misfit(l, part, err, "this is not the file that was written");
    if (rc || (rc = dcn_output_file(l->dir, p->name, NULL, p->replace, out, err)))
        goto done;
    (*out)->transaction = l->journal.transaction;
    rc = dcn_output_reopen(*out, &facts, held, (size_t)p->held, err);
done:
    dcn_free(&part);
    return rc;
}

static decant_status find_parts(moving *m, decant_error *err)
{
    const uint8_t *held = m->l->held.data;
    decant_status rc = DECANT_OK;

    for (size_t i = 0; i < m->l->intent.count && rc == DECANT_OK; i++) {
        rc = find_part(m, i, held, err);
        held += m->l->intent.outputs[i].held;
    }
    return rc;
}

/* @param back  a file that has given up nothing may be gone, or another one: it is not needed */
static decant_status find_given(moving *m, bool back, decant_error *err)
{
    dcn_leftover *l = m->l;
    decant_status rc = DECANT_OK;

    for (size_t i = 0; i < l->intent.giving.count && rc == DECANT_OK; i++) {
        dcn_given *g = &m->drain.given[i];

        if (!g->owned->drained) {
            rc = back ? DECANT_OK : dcn_given_check_whole(g, err);
            continue;
        }
        g->has_begun = l->begun[i];
        g->mark = l->marks[i];
        if ((rc = dcn_given_open(g, err)) == DECANT_OK && (rc = dcn_given_lock(g, err)) == DECANT_UNSUPPORTED)
            rc = DECANT_OK; /* there were locks when this began */
        if (back && !g->mark.upto && !g->is_moving &&
            (rc == DECANT_NOT_FOUND || rc == DECANT_CHANGED || rc == DECANT_EXISTS)) {
            dcn_given_close_file(g);
            rc = DECANT_OK;
        }
    }
    return rc;
}

/* --- forwards ---------------------------------------------------------------------------------------------------------- */

/* What the marks cover may not all have been freed. */
static decant_status free_again(moving *m, decant_error *err)
{
    const dcn_giving *giving = &m->l->intent.giving;

    for (size_t i = 0; i < giving->count; i++) {
        dcn_given *g = &m->drain.given[i];
        decant_status rc;

        if (!g->mark.upto)
            continue;
        if ((rc = dcn_given_set_aside(g, m->drain.note, err)))
            return rc;
        if (dcn_given_free(g, giving, 0, g->mark.upto, err) == DECANT_NOMEM)
            return DECANT_NOMEM;
    }
    return DECANT_OK;
}

static decant_status go_on(moving *m, decant_error *err)
{
    dcn_leftover *l = m->l;
    dcn_drain *d = &m->drain;
    decant_status rc;

    if ((rc = find_parts(m, err)) || (rc = find_given(m, false, err)) ||
        (rc = dcn_intent_check(&l->intent, m->outputs, l->same_boot, err)) ||
        (rc = dcn_drain_prove(d, err))) /* keeps (1), (2) */
        return rc;
    if ((rc = free_again(m, err)) || (rc = dcn_drain_run(d, err)))
        goto done;
    for (size_t i = 0; i < l->intent.count && rc == DECANT_OK; i++)
        rc = dcn_output_seal(m->outputs[i], err);
    if (rc == DECANT_OK)
        rc = dcn_drain_commit(d, err);
    if (rc == DECANT_OK)
        l->stage = DCN_STAGE_COMMITTED;
done:
    return rc == DECANT_OK || rc == DECANT_NOMEM
               ? rc
               : dcn_error_recast(err, DECANT_INTERRUPTED, "not all is moved yet, and nothing is lost");
}

decant_status dcn_leftover_resume(dcn_leftover *l, decant_error *err)
{
    moving m;
    decant_status rc = begin(&m, l, err);

    if (rc == DECANT_OK)
        rc = go_on(&m, err);
    end(&m);
    return rc;
}

/* --- backwards --------------------------------------------------------------------------------------------------------- */

static bool any_moved(const dcn_leftover *l)
{
    for (size_t i = 0; i < l->intent.giving.count; i++)
        if (l->marks[i].upto)
            return true;
    return false;
}

decant_status dcn_leftover_take_back(dcn_leftover *l, decant_error *err)
{
    moving m;
    decant_status rc = begin(&m, l, err);

    if (rc || (any_moved(l) && (rc = find_parts(&m, err))) || (rc = find_given(&m, true, err))) /* keeps (1) */
        goto done;
    if ((rc = dcn_drain_undo(&m.drain, err)) && rc != DECANT_NOMEM && rc != DECANT_CHANGED)
        rc = dcn_error_recast(err, DECANT_INTERRUPTED, "not all is undone yet, and nothing is lost");
done:
    end(&m);
    return rc;
}

decant_status dcn_leftover_remove_given(dcn_leftover *l, bool gone, decant_error *err)
{
    dcn_drain d = {.intent = &l->intent, .journal = &l->journal, .same_boot = l->same_boot};
    decant_status rc = dcn_drain_begin(&d, l->dir, err);

    if (rc == DECANT_OK && (rc = dcn_drain_remove(&d, gone, err)) == DECANT_OK)
        rc = dcn_removals_carry_out(d.dirs, l->intent.removals, l->intent.removal_count, l->same_boot, err);
    dcn_drain_close(&d);
    return rc;
}
