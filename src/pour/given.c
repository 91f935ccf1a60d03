/*
 *  (1) Its other name comes before its first mark, durably: whatever opens under its own is whole (I11).
 *  (2) A unit goes only if each of its bytes is durable elsewhere, or zero. That is seen on the file as it is, so that after a
 *      crash the same rule gives the same units or fewer (I1).
 *  (3) Two names are a rename that a crash has left half done: rename() would do nothing, so the wrong one is removed (I8).
 */
#include "pour/given.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/chunk.h"
#include "base/ckd.h"

enum { LOOK = 4096 /* bytes that are looked at together */ };

decant_status dcn_given_describe(dcn_given *g, const dcn_owned *owned, dcn_dir *dir, const char *folder, bool same_boot,
                                 decant_error *err)
{
    *g = (dcn_given){.owned = owned, .dir = dir, .folder = folder, .same_boot = same_boot, .mtime = owned->mtime};
    return dcn_moving_name(owned->name, &g->moving, err);
}

static decant_status blame(const dcn_given *g, const char *name, decant_status rc, decant_error *err)
{
    char *path = rc == DECANT_OK || rc == DECANT_NOMEM ? NULL : dcn_io_join(g->folder, name);

    if (path)
        dcn_error_repath(err, path);
    dcn_free(&path);
    if (rc && rc != DECANT_NOMEM)
        dcn_error_side(err, DECANT_SIDE_INPUT);
    return rc;
}

void dcn_given_close_file(dcn_given *g)
{
    if (g->lent)
        g->file = NULL;
    dcn_file_close(&g->file);
}

/* --- opening ----------------------------------------------------------------------------------------------------- */

static decant_status changed(const dcn_given *g, const dcn_facts *now, decant_error *err)
{
    const dcn_identity *was = &g->owned->file;

    decant_error_set(err, DECANT_CHANGED, "this is not the file that is given up");
    if (now->size != was->size) {
        dcn_error_found(err, "%" PRIu64 " bytes", now->size);
        dcn_error_expected(err, "%" PRIu64, was->size);
    } else if (now->ino != was->ino) {
        dcn_error_found(err, "inode %" PRIu64, now->ino);
        dcn_error_expected(err, "%" PRIu64, was->ino);
    } else {
        dcn_error_found(err, "time %" PRId64 " ns", now->mtime);
        dcn_error_expected(err, "%" PRId64, g->mtime);
    }
    dcn_error_hint(err, "nothing was touched; put back what was there, or move away what was not, and try again");
    return DECANT_CHANGED;
}

static decant_status missing(decant_error *err)
{
    decant_error_set(err, DECANT_NOT_FOUND, "a file that is given up is not there");
    dcn_error_hint(err, "nothing was touched; put it back, and try again");
    return DECANT_NOT_FOUND;
}

/* What is at one of its names. @param fits  it is the file */
static decant_status look(const dcn_given *g, const char *name, dcn_facts *now, bool *there, bool *fits,
                          decant_error *err)
{
    decant_status rc = g->dir ? dcn_dir_stat(g->dir, name, now, err) : DECANT_NOT_FOUND;

    *there = rc == DECANT_OK;
    *fits = *there && now->kind == DCN_KIND_REGULAR && dcn_identity_fits(&g->owned->file, now, g->same_boot);
    return rc == DECANT_NOT_FOUND ? DECANT_OK : rc;
}

static decant_status open_as(dcn_given *g, const char *name, const dcn_facts *expected, decant_error *err)
{
    dcn_extents extents;
    dcn_facts now;
    decant_status rc;

    if ((rc = dcn_dir_open(g->dir, name, DCN_READ | DCN_WRITE | DCN_NO_FOLLOW, 0, &g->file, err)) ||
        (rc = dcn_file_facts(g->file, &now, err)))
        return rc;
    if (!dcn_facts_same_file(&now, expected))
        return changed(g, &now, err);
    g->has_holes = now.blocks < now.size;
    g->whole_extents = dcn_file_extents(g->file, &extents, NULL) == DECANT_OK && extents.largest;
    g->mtime = now.mtime;
    return DECANT_OK;
}

decant_status dcn_given_open(dcn_given *g, decant_error *err)
{
    dcn_facts own, other;
    bool own_there, own_fits, other_there, other_fits;
    const char *name = g->owned->name;
    decant_status rc;

    if ((rc = look(g, name, &own, &own_there, &own_fits, err)) ||
        (rc = look(g, g->moving, &other, &other_there, &other_fits, err)))
        return blame(g, name, rc, err);
    g->is_moving = other_fits;
    if (own_there && (!own_fits || (!g->has_begun && !other_fits && own.mtime != g->owned->mtime)))
        rc = changed(g, &own, err);
    else if (!g->has_begun && other_there && !other_fits)
        rc = blame(g, name = g->moving, decant_error_set(err, DECANT_EXISTS, "the name is taken that it would have"),
                   err);
    else if (!own_fits && !other_fits)
        rc = missing(err);
    else if (other_fits)
        rc = open_as(g, name = g->moving, &other, err);
    else
        rc = open_as(g, name, &own, err);
    return blame(g, name, rc, err);
}

decant_status dcn_given_lock(dcn_given *g, decant_error *err)
{
    return blame(g, g->is_moving ? g->moving : g->owned->name, dcn_file_lock(g->file, err), err);
}

decant_status dcn_given_check_whole(const dcn_given *g, decant_error *err)
{
    dcn_facts now;
    bool there, fits;
    decant_status rc = look(g, g->owned->name, &now, &there, &fits, err);

    if (rc == DECANT_OK && !there)
        rc = missing(err);
    else if (rc == DECANT_OK && (!fits || now.mtime != g->owned->mtime))
        rc = changed(g, &now, err);
    return blame(g, g->owned->name, rc, err);
}

decant_status dcn_given_check(dcn_given *g, decant_error *err)
{
    dcn_facts now;
    decant_status rc = dcn_file_facts(g->file, &now, err);

    if (rc == DECANT_OK && (now.size != g->owned->file.size || now.mtime != g->mtime))
        rc = changed(g, &now, err);
    if (rc == DECANT_OK && (rc = dcn_file_alone(g->file, err)) == DECANT_UNSUPPORTED)
        rc = DECANT_OK; /* it cannot be told */
    return blame(g, g->is_moving ? g->moving : g->owned->name, rc, err);
}

/* A sync that fails leaves it open what is on the disk. */
static decant_status sync_file(dcn_given *g, decant_error *err)
{
    decant_status rc = dcn_file_sync(g->file, err);

    g->in_doubt = g->in_doubt || rc;
    return blame(g, g->is_moving ? g->moving : g->owned->name, rc, err);
}

/* --- names ------------------------------------------------------------------------------------------------------- */

/* Never replaces: where the system cannot promise that, what is there is looked at first. */
static decant_status give_name(dcn_given *g, const char *from, const char *to, decant_error *err)
{
    dcn_facts other;
    decant_status rc = dcn_dir_rename(g->dir, from, to, DCN_NO_REPLACE, err);

    if (rc != DECANT_UNSUPPORTED)
        return rc;
    if (dcn_dir_stat(g->dir, to, &other, NULL) != DECANT_NOT_FOUND)
        return decant_error_set(err, DECANT_EXISTS, "the name is taken that it would have");
    return dcn_dir_rename(g->dir, from, to, 0, err);
}

/* keeps (1), (3) */
decant_status dcn_given_set_aside(dcn_given *g, const char *note, decant_error *err)
{
    const char *name = g->owned->name;
    dcn_facts own;
    bool there, fits;
    decant_status rc;

    if (g->is_aside)
        return DECANT_OK;
    rc = look(g, name, &own, &there, &fits, err);
    if (rc == DECANT_OK && !g->is_moving)
        rc = give_name(g, name, g->moving, err);
    else if (rc == DECANT_OK && fits)
        rc = dcn_dir_remove(g->dir, name, err);
    if (rc)
        return blame(g, name, rc, err);
    g->is_moving = true;
    if (note && dcn_moving_note(g->dir, g->moving, g->file, note) && (rc = sync_file(g, err)))
        return rc;
    rc = dcn_dir_sync(g->dir, err);
    g->is_aside = rc == DECANT_OK;
    g->in_doubt = g->in_doubt || rc;
    return blame(g, g->moving, rc, err);
}

/* keeps I12 */
decant_status dcn_given_restore(dcn_given *g, decant_error *err)
{
    dcn_facts own;
    bool there, fits;
    decant_status rc = dcn_moving_drop_note(g->dir, g->moving, g->file, err);

    if (rc)
        return blame(g, g->moving, rc, err);
    rc = g->has_begun ? dcn_file_set_mtime(g->file, g->owned->mtime, err) : DECANT_OK;
    if (rc && rc != DECANT_UNSUPPORTED && rc != DECANT_DENIED) /* of another's file, it is not ours to set */
        return blame(g, g->moving, rc, err);
    if ((rc = sync_file(g, err)))
        return rc;
    if (!g->is_moving)
        return DECANT_OK;
    if ((rc = look(g, g->owned->name, &own, &there, &fits, err)))
        return blame(g, g->owned->name, rc, err);
    if (fits) /* keeps (3) */
        rc = dcn_dir_remove(g->dir, g->moving, err);
    else
        rc = there ? changed(g, &own, err) : give_name(g, g->moving, g->owned->name, err);
    g->is_moving = g->is_aside = rc != DECANT_OK;
    return blame(g, g->owned->name, rc, err);
}

/* Under its own name only what is whole is its own: a drained one that has begun has the other. keeps I5 */
static decant_status remove_as(dcn_given *g, const char *name, bool own, decant_error *err)
{
    dcn_facts now;
    bool there, fits;
    decant_status rc = look(g, name, &now, &there, &fits, err);

    if (rc || !fits || (own && now.mtime != g->owned->mtime))
        return rc;
    rc = dcn_dir_remove(g->dir, name, err);
    return rc == DECANT_NOT_FOUND ? DECANT_OK : rc;
}

decant_status dcn_given_remove(dcn_given *g, decant_error *err)
{
    decant_status rc;

    dcn_given_close_file(g); /* before its name goes: NFS keeps open files under another one */
    if ((rc = remove_as(g, g->owned->name, true, err)) == DECANT_OK && g->owned->drained &&
        (rc = remove_as(g, g->moving, false, err)) == DECANT_OK && g->dir)
        rc = dcn_moving_drop_note(g->dir, g->moving, NULL, err);
    return blame(g, g->owned->name, rc, err);
}

/* --- freeing ----------------------------------------------------------------------------------------------------- */

/* Whether [at, upto), at most two units, reads as zero. */
static decant_status is_zero(dcn_given *g, uint64_t at, uint64_t upto, bool *zero, decant_error *err)
{
    uint8_t seen[LOOK];

    for (*zero = true; at < upto && *zero;) {
        dcn_range range = {at, seen, (size_t)dcn_min(upto - at, LOOK)};
        decant_status rc = dcn_file_read(g->file, &range, 1, err);

        if (rc)
            return rc;
        *zero = dcn_is_zero(seen, range.len);
        at += range.len;
    }
    return DECANT_OK;
}

/* Whatever stops in the middle of it leaves the same bytes. */
static decant_status renew(dcn_given *g, uint64_t from, uint64_t upto, decant_error *err)
{
    uint8_t bytes[LOOK];
    decant_status rc = DECANT_OK;

    if (!g->whole_extents || upto - from > DCN_RENEWED_MOST)
        return DECANT_OK;
    for (uint64_t at = from; at < upto && rc == DECANT_OK; at += LOOK) {
        dcn_range range = {at, bytes, (size_t)dcn_min(upto - at, LOOK)};
        dcn_chunk chunk = {bytes, range.len};

        if ((rc = dcn_file_read(g->file, &range, 1, err)) == DECANT_OK)
            rc = dcn_file_write(g->file, at, &chunk, 1, err);
    }
    return rc;
}

static decant_status punch(dcn_given *g, uint64_t from, uint64_t upto, decant_error *err)
{
    return from < upto ? dcn_file_punch(g->file, from, upto - from, err) : DECANT_OK;
}

/* keeps (2) */
static decant_status free_units(dcn_given *g, const dcn_giving *giving, uint64_t from, uint64_t upto, decant_error *err)
{
    uint32_t source = (uint32_t)(g->owned - giving->items);
    uint64_t unit = giving->unit, size = g->owned->file.size;
    uint64_t hull = from / unit * unit, at = hull, end = (upto + unit - 1) / unit * unit;
    decant_status rc, renewed = DECANT_OK;

    /* [hull, at) may go */
    while (at < end) {
        uint64_t gap_end = end, next = end, kept = at / unit * unit;
        bool more = dcn_runs_cover(&giving->runs, source, at, dcn_min(upto, end), UINT64_MAX, &gap_end, &next);
        bool zero = false;

        if (gap_end - at <= 2 * unit && (rc = is_zero(g, at, dcn_min(gap_end, size), &zero, err)))
            return rc;
        if (gap_end > at && !zero) {
            if ((rc = punch(g, hull, kept, err)))
                return rc;
            hull = (gap_end + unit - 1) / unit * unit;
            if (renewed == DECANT_OK && (more || upto >= size)) /* else it goes with the next mark */
                renewed = renew(g, kept, dcn_min(hull, size), err);
        }
        at = next;
    }
    rc = punch(g, hull, end, err);
    return rc ? rc : renewed;
}

decant_status dcn_given_free(dcn_given *g, const dcn_giving *giving, uint64_t from, uint64_t upto, decant_error *err)
{
    decant_status rc = free_units(g, giving, from, upto, err), later;
    dcn_facts now;

    /* our own changes, also where it failed half way */
    if ((later = dcn_file_facts(g->file, &now, rc ? NULL : err)) == DECANT_OK)
        g->mtime = now.mtime;
    return blame(g, g->moving, rc ? rc : later, err);
}

void dcn_given_lend(dcn_given *g, dcn_source *source)
{
    dcn_file *file = g->file;

    dcn_source_swap(source, &file);
    g->lent = true;
}

void dcn_given_close(dcn_given *g)
{
    dcn_given_close_file(g);
    dcn_free(&g->moving);
}
