/*
 * Files that are given up, on their way into the outputs, and back.
 *
 *     ready    every part durable, with all that is not drained, and the journal says so
 *     drain    batch by batch: read, written to each of its places, every part synced, marked, freed
 *     undo     batch by batch from the last mark downwards: read from the parts, written, synced, marked, freed there
 *     restore  their names and times; or, once the outputs are in place, `remove`
 *
 * The same code drains for a save and for recovery, which find the files in different ways.
 */
#ifndef DCN_DRAIN_H
#define DCN_DRAIN_H

#include "pour/crew.h"
#include "pour/given.h"
#include "pour/journal.h"
#include "pour/route.h"

typedef struct dcn_batch dcn_batch;

typedef struct dcn_drain {
    dcn_intent *intent;         /* [lent] */
    dcn_journal *journal;       /* [lent] */
    dcn_output *const *outputs; /* [lent] begun, or reopened; NULL where nothing is to be put back from it */
    dcn_crew *crew;             /* [lent] */
    size_t slot;                /* bytes read at a time, a power of two */
    bool same_boot;             /* since the intent was made */
    dcn_routes *routes;         /* [lent] told how much room is taken; NULL: nobody asks */
    bool proves;                /* each batch is read back from the disk and compared before it is freed */
    decant_status (*progress)(void *ctx, uint64_t more, decant_error *err); /* NULL: nobody asks */
    void *progress_ctx;

    dcn_dir **dirs; /* the folders of the intent; that of DCN_HOME is lent; NULL: it is gone */
    dcn_given *given;
    char *note;     /* where the journal is */
    bool ready;     /* the journal says READY */
    bool committed; /* it says COMMIT */
    bool aborted;   /* it says ABORT: there is only one way, back */
    bool in_doubt;  /* something failed after which nobody knows what is on the disk: nothing more is done here */

    dcn_batch *batches;
    uint64_t cells_back; /* of the journal, that marks leave for the way back */
    uint8_t *memory;     /* a slot */
    void *summing;       /* XXH3's state */
    uint32_t source;     /* that is being read */
    uint64_t at;         /* in it */
} dcn_drain;             /* what is not said to be set is zero */

/*
 * Describes the files of an intent and opens their folders; no file is opened yet. Closed by the caller also on failure.
 *
 * @param home  [lent] the folder of the journal
 */
decant_status dcn_drain_begin(dcn_drain *d, dcn_dir *home, decant_error *err);

/* All folders of the intent that are there: names in them last. */
decant_status dcn_drain_sync_folders(const dcn_drain *d, decant_error *err);

/* Whether anything is emptied, so that READY is needed and what follows. */
bool dcn_drain_any(const dcn_drain *d);

/* Everything that is not drained is where it belongs: makes that durable, and says so. */
decant_status dcn_drain_ready(dcn_drain *d, decant_error *err);

/* Drains what is left, from the marks on. The given files that are drained are open. */
decant_status dcn_drain_run(dcn_drain *d, decant_error *err);

/*
 * That the last batch of each is what the parts hold, past the cache; one of which the file itself still has it is drained
 * again. For who goes on after a crash.
 *
 * @return DECANT_CHANGED: neither has it
 */
decant_status dcn_drain_prove(dcn_drain *d, decant_error *err);

/* Puts everything back: the files are what they were, by name, time and content, durably. Parts and journal remain. */
decant_status dcn_drain_undo(dcn_drain *d, decant_error *err);

/*
 * All outputs are sealed: from here on they get their names, whatever happens. A failure leaves it in doubt whether the journal
 * says so.
 */
decant_status dcn_drain_commit(dcn_drain *d, decant_error *err);

/* The outputs are in place: removes all that was given up. @param spare_whole  what was not drained stays */
decant_status dcn_drain_remove(dcn_drain *d, bool spare_whole, decant_error *err);

void dcn_drain_close(dcn_drain *d);

/* --- between drain.c and undo.c ------------------------------------------------------------------------------------- */

/* Appends a mark of the kind MOVED, UNMOVED or ABORT (NULL). It is durable after the next sync of the journal. */
decant_status dcn_drain_mark(dcn_drain *d, dcn_record_type type, const dcn_mark *mark, decant_error *err);

/* Reads bytes of runs of a source from where they are in the outputs. */
decant_status dcn_drain_read_back(dcn_drain *d, uint32_t source, uint64_t at, uint64_t len, uint8_t *dst,
                                  decant_error *err);

#endif
