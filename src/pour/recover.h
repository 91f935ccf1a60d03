/*
 * What an interrupted save has left, as its journal tells it; finishing it, and undoing it. Both may be interrupted any
 * number of times.
 */
#ifndef DCN_RECOVER_H
#define DCN_RECOVER_H

#include "pour/drain.h"
#include "pour/route.h"

typedef enum dcn_stage {
    DCN_STAGE_LIVE,     /* its process is at work */
    DCN_STAGE_NOTHING,  /* stopped before anything was made */
    DCN_STAGE_BEGUN,    /* stopped before all was written: it can be undone */
    DCN_STAGE_READY,    /* all is written but what is drained: it can be finished, and undone */
    DCN_STAGE_ABORTED,  /* stopped while it was undone: that can be gone on with */
    DCN_STAGE_COMMITTED /* all is written, and not all of it has its name: it can be finished */
} dcn_stage;

typedef struct dcn_leftover {
    dcn_dir *dir; /* [lent] of the journal and the files */
    dcn_journal journal;
    dcn_intent intent; /* of NOTHING empty, and of LIVE perhaps */
    dcn_stage stage;
    bool same_boot;  /* and the same mount, too: device numbers are what they were */
    dcn_mark *marks; /* the last one of each file that is given up */
    bool *begun;     /* of each: it has had one */
    dcn_buf held;    /* what the outputs hold back, one behind the other */
    size_t slot;     /* bytes moved at a time, a power of two; set by dcn_leftover_open() to what a save takes */
    dcn_crew *crew;  /* [lent] NULL, as dcn_leftover_open() leaves it: every task is done when it comes up */
} dcn_leftover;

/*
 * Reads the journal `name` in `dir`. Closed by the caller also on failure.
 *
 * @param dir     [lent] outlives it
 * @param to_act  it is going to be undone or finished: what was found is made durable first
 */
decant_status dcn_leftover_open(dcn_leftover *l, dcn_dir *dir, const char *name, bool to_act, decant_error *err);

/* All is as it was before that save. @return DECANT_BUSY, or DECANT_BAD_CALL for one that is complete */
decant_status dcn_leftover_undo(dcn_leftover *l, decant_error *err);

/* All of its files are in place. @return DECANT_BUSY, or DECANT_BAD_CALL for one that cannot be finished */
decant_status dcn_leftover_finish(dcn_leftover *l, decant_error *err);

/* Bytes that were moved, and of how many. */
uint64_t dcn_leftover_moved(const dcn_leftover *l, uint64_t *total);

/* --- between recover.c and resume.c --------------------------------------------------------------------------------- */

/* Of READY: drains what is left, and commits. The rest is that of a committed save. */
decant_status dcn_leftover_resume(dcn_leftover *l, decant_error *err);

/* Of READY and ABORTED: the files that were given up are whole again, under their names. */
decant_status dcn_leftover_take_back(dcn_leftover *l, decant_error *err);

/* Of COMMITTED: what was given up goes. @param gone  an output was replaced or moved away since: what is whole stays */
decant_status dcn_leftover_remove_given(dcn_leftover *l, bool gone, decant_error *err);

/* The refusal of a file that is not the one that is needed: DECANT_CHANGED. */
decant_status dcn_leftover_misfit(const dcn_leftover *l, const char *name, decant_error *err, const char *message);

/* Whether output `i` of it has its name. */
bool dcn_leftover_has_landed(const dcn_leftover *l, size_t i);

void dcn_leftover_close(dcn_leftover *l);

/* Names in a folder of what a save with a journal may leave: each ends with its NUL. */
decant_status dcn_leftovers_list(dcn_dir *dir, dcn_buf *journals, dcn_buf *parts, decant_error *err);

/* The refusal of a part that no journal speaks of, which is left alone: DECANT_INTERRUPTED. */
decant_status dcn_leftovers_lone(dcn_dir *dir, const char *part, decant_error *err);

/*
 * What stands in the way of a save to these names in `dir`: a save that is at work (DECANT_BUSY) or that was interrupted
 * when it was complete (DECANT_INTERRUPTED). One that was stopped earlier is undone, or with `look_only` would be.
 *
 * @param undone  counted up
 */
decant_status dcn_leftovers_clear(dcn_dir *dir, const dcn_landing *landings, size_t count, bool look_only,
                                  size_t *undone, decant_error *err);

#endif
