/*
 * What an interrupted save has left, as its journal tells it; finishing it, and undoing it. Both may be interrupted any
 * number of times.
 */
#ifndef DCN_RECOVER_H
#define DCN_RECOVER_H

#include "pour/intent.h"
#include "pour/journal.h"
#include "pour/route.h"

typedef enum dcn_stage {
    DCN_STAGE_LIVE,     /* its process is at work */
    DCN_STAGE_NOTHING,  /* stopped before anything was made */
    DCN_STAGE_BEGUN,    /* stopped before all was written: it can be undone */
    DCN_STAGE_COMMITTED /* all is written, and not all of it has its name: it can be finished */
} dcn_stage;

typedef struct dcn_leftover {
    dcn_dir *dir; /* [lent] of the journal and the files */
    dcn_journal journal;
    dcn_intent intent; /* of NOTHING empty, and of LIVE perhaps */
    dcn_stage stage;
    bool same_boot;
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

/* All of its files are in place. @return DECANT_BUSY, or DECANT_BAD_CALL for one that is not complete */
decant_status dcn_leftover_finish(dcn_leftover *l, decant_error *err);

/* Whether output `i` of it has its name. */
bool dcn_leftover_has_landed(const dcn_leftover *l, size_t i);

void dcn_leftover_close(dcn_leftover *l);

/* Names in a folder of what a save with a journal may leave: each ends with its NUL. */
decant_status dcn_leftovers_list(dcn_dir *dir, dcn_buf *journals, dcn_buf *parts, decant_error *err);

/*
 * What stands in the way of a save to these names in `dir`: a save that is at work (DECANT_BUSY) or that was interrupted
 * when it was complete (DECANT_INTERRUPTED). One that was stopped earlier is undone, or with `look_only` would be.
 *
 * @param undone  counted up
 */
decant_status dcn_leftovers_clear(dcn_dir *dir, const dcn_landing *landings, size_t count, bool look_only,
                                  size_t *undone, decant_error *err);

#endif
