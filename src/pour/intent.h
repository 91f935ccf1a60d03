/*
 * What a save is going to do, as its journal has it: BEGIN says which files it makes and what they replace, and which it
 * gives up for them; READY and COMMIT which files under scratch names are to get theirs; marks how far the giving up is.
 */
#ifndef DCN_INTENT_H
#define DCN_INTENT_H

#include "base/arena.h"
#include "output/output.h"
#include "pour/runs.h"

/* What a file is known by. The device has another number after the machine was started again. */
typedef struct dcn_identity {
    uint64_t dev, ino, size;
    int64_t birth;
} dcn_identity;

typedef struct dcn_promise {
    const char *name; /* bare, in the folder of the journal */
    uint64_t size, held;
    bool replace;      /* whatever is there may go */
    bool has_old;      /* `old` is there */
    dcn_identity old;  /* is to be replaced */
    dcn_identity part; /* since COMMIT */
} dcn_promise;

enum { DCN_HOME = 0 }; /* the folder of the journal and the outputs, among those of an intent */

/* A file that the outputs supersede: it goes when they are in place, if it still is what it was. */
typedef struct dcn_removal {
    const char *name; /* bare */
    dcn_identity file;
    int64_t mtime;
    uint32_t folder; /* that it is in */
} dcn_removal;

/* A file that is given up for the outputs: it goes when they are in place. */
typedef struct dcn_owned {
    const char *name; /* bare, until it has begun to give up bytes */
    dcn_identity file;
    int64_t mtime;
    uint32_t folder;
    bool drained; /* it gives up its bytes on the way; else it stays whole until then */
} dcn_owned;

/* What is given up, and how. */
typedef struct dcn_giving {
    dcn_owned *items;
    size_t count;
    dcn_runs runs;  /* of what is drained; `source` is an index of items */
    uint64_t batch; /* bytes between two marks */
    uint64_t unit;  /* bytes that the file system frees at a time, a power of two */
} dcn_giving;

typedef struct dcn_intent {
    dcn_promise *outputs; /* in the order in which they get their names */
    size_t count;
    const char **folders; /* absolute paths; that of DCN_HOME is NULL */
    size_t folder_count;
    dcn_removal *removals;
    size_t removal_count;
    dcn_giving giving;
    dcn_arena memory;
} dcn_intent;

/* Up to where a source has given up its bytes: every run of it below `upto` is durable in the outputs. */
typedef struct dcn_mark {
    uint32_t source;
    uint64_t from, upto; /* from the end of the mark before it */
    uint64_t sum;        /* XXH3 of the bytes of its runs between the two, in their order */
} dcn_mark;

/* A folder by its absolute path, in which something is that goes. @param out  its number in the intent */
decant_status dcn_intent_folder(dcn_intent *intent, const char *path, uint32_t *out, decant_error *err);

/*
 * What the outputs are about to be, of their plans and of what is at their names now; and what is removed afterwards. What is
 * given up is in the intent by then.
 */
decant_status dcn_intent_make(dcn_intent *intent, const dcn_plans *plans, dcn_output *const *outputs,
                              const dcn_removal *removals, size_t removal_count, decant_error *err);

/*
 * That each name still is what it was: free, or the file that is to be replaced.
 *
 * @return DECANT_EXISTS, DECANT_CHANGED
 */
decant_status dcn_intent_check(const dcn_intent *intent, dcn_output *const *outputs, bool same_boot, decant_error *err);

/* The parts as they are, so that COMMIT can name them. */
void dcn_intent_name_parts(dcn_intent *intent, dcn_output *const *outputs);

/* The payloads of the records. READY has what the outputs hold back, too. */
void dcn_intent_put_begin(const dcn_intent *intent, dcn_buf *out);
void dcn_intent_put_ready(const dcn_intent *intent, dcn_output *const *outputs, dcn_buf *out);
void dcn_intent_put_commit(const dcn_intent *intent, dcn_buf *out);
void dcn_mark_put(const dcn_mark *mark, dcn_buf *out);

/* Cells of a journal that the records behind BEGIN take at most. */
uint64_t dcn_intent_cells(const dcn_intent *intent);

/* Of these what putting all back takes: ABORT, marks, and one for each file that still had what its last mark covers. */
uint64_t dcn_intent_cells_back(const dcn_intent *intent);

/*
 * @param held  of each output, what it holds back: added, one behind the other
 * @return DECANT_UNSUPPORTED for what a later version has written
 */
decant_status dcn_intent_read_begin(dcn_intent *intent, const uint8_t *data, size_t len, decant_error *err);
decant_status dcn_intent_read_ready(dcn_intent *intent, const uint8_t *data, size_t len, dcn_buf *held,
                                    decant_error *err);
decant_status dcn_intent_read_commit(dcn_intent *intent, const uint8_t *data, size_t len, decant_error *err);
decant_status dcn_mark_read(dcn_mark *mark, const dcn_intent *intent, const uint8_t *data, size_t len,
                            decant_error *err);

void dcn_intent_close(dcn_intent *intent);

/* What is known of a file now. */
dcn_identity dcn_identity_of(const dcn_facts *facts);

/*
 * Removes what is still the file that it was, and leaves the rest alone; the folders are synced.
 *
 * @param dirs  the folders of the intent
 */
decant_status dcn_removals_carry_out(dcn_dir *const *dirs, const dcn_removal *removals, size_t count, bool same_boot,
                                     decant_error *err);

/* Whether a file is the one that is known by this. The device counts if it is still the same boot. */
bool dcn_identity_fits(const dcn_identity *identity, const dcn_facts *facts, bool same_boot);

#endif
