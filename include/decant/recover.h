/**
 * Recovery: what an interrupted save has left (of several files, or of one that inputs were given up for), finishing it, and
 * undoing it.
 */
#ifndef DECANT_RECOVER_H
#define DECANT_RECOVER_H

#include <decant/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What recovery is to do. */
typedef enum decant_direction {
    DECANT_RECOVER_SHOW = 0, /* touch nothing */
    DECANT_RECOVER_RESUME,   /* finish it: all of its files get their names */
    DECANT_RECOVER_UNDO      /* undo it: all is as it was before */
} decant_direction;

/** How far a save has come. */
typedef enum decant_stage {
    DECANT_STAGE_LIVE = 0, /* its process is at work: neither way can be taken */
    DECANT_STAGE_BEGUN,    /* stopped before all was written: it can be undone */
    DECANT_STAGE_COMPLETE, /* all is written and not all is in place: it can be finished */
    DECANT_STAGE_MOVING,   /* stopped while inputs were given up: it can be finished, and undone */
    DECANT_STAGE_UNDOING   /* stopped while they were put back: that can be gone on with */
} decant_stage;

/** Options of decant_recover(). NULL or all zero: the defaults. */
typedef struct decant_recover_options {
    size_t           size; /* of this struct: DECANT_RECOVER_OPTIONS_INIT */
    decant_direction direction;
} decant_recover_options;

#define DECANT_RECOVER_OPTIONS_INIT                         \
    {                                                       \
        sizeof(decant_recover_options), DECANT_RECOVER_SHOW \
    }

/** A save that was found. Texts are lent by the recovery. */
typedef struct decant_recovered {
    size_t       size;  /* of this struct */
    const char  *path;  /* of the output that gets its name last */
    decant_stage stage; /* when it was found */
    int          done;  /* it is finished, or undone, as was asked for */
    size_t       file_count;
    uint64_t     bytes;          /* of all its files */
    uint64_t     moved, to_move; /* bytes of inputs that the files have by now, and of how many */
    size_t       given_count;    /* inputs that it gives up */
    size_t
        incomplete_count; /* of them that are under another name, which ends in .moving, until they are whole or gone */
    uint64_t finish_room, undo_room; /* bytes of disk that it takes meanwhile, at most */
} decant_recovered;

/**
 * What was found.
 *
 * Threads: immutable, share freely.
 */
typedef struct decant_recovery decant_recovery;

/**
 * Look for interrupted saves, and finish or undo them. Nothing is lost meanwhile, and it may itself be interrupted any
 * number of times, at any moment: then it is called again.
 *
 * @param path  that of the save, or any output of it, whether it is there or not, one of its scratch files, its journal, an
 *              input that it gives up, under either name, or a folder, which stands for all that were interrupted in it, or
 *              have inputs in it that are incomplete; NULL: this folder
 * @param out   [owned] release with decant_recovery_close(). Nothing found is no failure. Written also where one of several
 *              could not be recovered
 * @return DECANT_BUSY (a save is under way), DECANT_BAD_CALL (it cannot go that way), DECANT_CHANGED (a file that is needed
 *         is another one since; nothing was touched), DECANT_DENIED (the journal is not to be believed), DECANT_INTERRUPTED
 *         or DECANT_PUBLISH_PENDING (it could not be brought to its end; call again), DECANT_UNSUPPORTED (a later version
 *         has to do it), DECANT_MALFORMED, DECANT_NOT_FOUND (no such folder)
 */
DECANT_API DECANT_MUST_CHECK decant_status decant_recover(const char *path, const decant_recover_options *options,
                                                          decant_recovery **out, decant_error *err);

/** The save at `index`; `out->size` must be set. 0 past the last. */
DECANT_API int decant_recovery_save(const decant_recovery *recovery, size_t index, decant_recovered *out);

/** A file of the save at `save`, as it was found: whether it was in place. 0 past the last. */
DECANT_API int  decant_recovery_file(const decant_recovery *recovery, size_t save, size_t index, const char **path,
                                     uint64_t *bytes, int *published);
DECANT_API void decant_recovery_close(decant_recovery **recovery);

#ifdef __cplusplus
}
#endif
#endif
