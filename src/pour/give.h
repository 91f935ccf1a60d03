/*
 * What a save gives up, and how: checked before anything is touched, the same for a plan and for a save. Doubts about whose a
 * file is refuse, with the remedy; what a system cannot do only changes the route.
 */
#ifndef DCN_GIVE_H
#define DCN_GIVE_H

#include "pour/pour.h"

typedef struct dcn_give {
    dcn_intent intent;    /* with what is given up, for the job */
    dcn_source **sources; /* [lent] an item of that each */
    dcn_runs whole;       /* of those that stay whole until the end; the intent has those of the others */
    bool unsure;          /* of some it cannot be told whether anybody else has them open */
} dcn_give;               /* {0}: nothing */

/* What is asked for. */
typedef struct dcn_give_terms {
    dcn_source *const *owned; /* [lent] that may be given up */
    size_t count;
    const dcn_landing *landings; /* [lent] of the outputs, none of which may be one of those */
    size_t landing_count;
    bool tries;     /* what the file system does is tried, not taken from its kind: for a save, which may write */
    bool require;   /* refuse rather than copy */
    bool lose;      /* what is in no output is destroyed with its file */
    uint64_t batch; /* bytes between two marks, at most */
    uint64_t least; /* and at least, where room is short */
} dcn_give_terms;

/*
 * Chooses the routes of sources that are given up, in `routes`, which has those of a plain save, and the room that it needs.
 *
 * @param plans  what is destroyed is added to their losses
 * @param home   [lent] the folder of the outputs
 * @param space  of it
 * @param give   closed by the caller also on failure
 * @return DECANT_LOSS, DECANT_DENIED, DECANT_BUSY, DECANT_SAME_FILE, DECANT_UNSUPPORTED (`require`)
 */
decant_status dcn_give_plan(dcn_give *give, const dcn_give_terms *terms, dcn_routes *routes, dcn_plans *plans,
                            dcn_dir *home, const dcn_space *space, decant_error *err);

/* Whether anything is given up, and whether anything is drained. */
bool dcn_give_any(const dcn_give *give);
bool dcn_give_drains(const dcn_give *give);

void dcn_give_close(dcn_give *give);

#endif
