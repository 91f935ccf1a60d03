/*
 * The one loop that moves bytes. It knows no format and no device.
 *
 *     begin    the journal, if there is one, says what is going to be made; outputs sized
 *     place    blocks shared with their files; then room reserved for all else but what is drained
 *     copy     slot by slot, in the order of the output: literals, files, memory, providers; then no source has changed
 *     drain    with files that are given up: all of that made safe first, then batch by batch (drain.h)
 *     seal     held-back bytes, mode; the one sync of a plain save
 *     prove    if asked to: read back, compared with checksums made on the way
 *     commit   with a journal: from here on all outputs get their names, whatever happens
 *     publish  rename, folder sync; the last output when all others are safe; the journal goes
 *     abandon  on any failure before that, what was drained put back first; the journal last
 *
 * A slot is an aligned range of the output, in staging memory or (memory outputs) in place. Its file ranges are fetched
 * together, neighbours in one covering read. What lends its memory and is large is written from there, without a slot; what
 * is large (alone, or with what lies behind it in both files) and the system can copy from file to file never gets here.
 * Bytes that are made of others (a cast's) are made in the slot, of raw bytes that are read together with the slot's own.
 * Providers take turns: nothing of the next is asked before everything of the last is in a slot, or written and given back.
 */
#ifndef DCN_POUR_H
#define DCN_POUR_H

#include <decant/save.h>

#include "output/output.h"
#include "pour/drain.h"
#include "pour/route.h"

/* How a job is cut. Fields, so that tests pour models of a few KiB in many slots. */
typedef struct dcn_cut {
    size_t slot;          /* bytes of a slot, a power of two */
    unsigned slots;       /* how many are staged */
    size_t direct;        /* lent memory of at least this many bytes is written without a slot */
    uint64_t batch;       /* bytes that are drained between two marks, at most */
    uint64_t least_batch; /* and at least, where room is short */
    size_t share; /* as many bytes of blocks are shared with their file where they can be; copying fewer is faster */
} dcn_cut;

extern const dcn_cut dcn_cut_default; /* 1 MiB, 4, 256 KiB, 64 MiB, 1 MiB, 64 KiB */

/*
 * Outputs that are files are read back from the disk when all is sealed and nothing published, and compared with checksums
 * that were made on the way: everything passes memory, and no blocks are shared. What is read is shown.
 */
typedef struct dcn_proof {
    decant_status (*see)(void *ctx, size_t plan, uint64_t at, const dcn_chunk *chunk, decant_error *err);
    void *ctx;
} dcn_proof;

/* Everything a save needs, once planned and checked. */
typedef struct dcn_job {
    const dcn_plans *plans;     /* [lent] */
    dcn_output *const *outputs; /* [lent] one a plan, in the order of publication */
    dcn_source *const *sources; /* [lent] that the plans read */
    size_t source_count;
    dcn_journal
        *journal; /* [lent] created, and in the folder of the outputs, all files; NULL: a single output needs none */
    dcn_routes *routes;          /* [lent] of the sources; told what came of them. NULL: no blocks are shared */
    const dcn_removal *removals; /* [lent] files in the folder of the outputs that go when these are in place */
    size_t removal_count;
    dcn_intent *intent;       /* [lent] with what is given up, as route has chosen it; NULL: nothing is */
    dcn_source *const *given; /* [lent] an item of that each */
    dcn_cut cut;
    dcn_crew *crew;           /* [lent] */
    decant_progress progress; /* may be NULL */
    void *progress_ctx;
    const dcn_proof *proof; /* [lent] NULL: nothing is read back */
} dcn_job;

/*
 * Pours a job. On failure every output is abandoned and the error is the first in the order of the work, but
 *
 * @return DECANT_NOT_DURABLE, DECANT_NOT_REMOVED: all outputs are in place. With a journal, which then stays: DECANT_INTERRUPTED: it is not known
 *         whether they are to be; DECANT_PUBLISH_PENDING: they are to be, and recovery sees to it
 */
decant_status dcn_pour(const dcn_job *job, decant_error *err);

#endif
