/*
 * What a save is going to do, as its journal has it: BEGIN says which files it makes and what they replace, COMMIT which
 * files under scratch names are to get theirs.
 */
#ifndef DCN_INTENT_H
#define DCN_INTENT_H

#include "base/arena.h"
#include "output/output.h"

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

/* A file that the outputs supersede: it goes when they are in place, if it still is what it was. */
typedef struct dcn_removal {
    const char *name; /* bare, in the folder of the outputs */
    dcn_identity file;
    int64_t mtime;
} dcn_removal;

typedef struct dcn_intent {
    dcn_promise *outputs; /* in the order in which they get their names */
    size_t count;
    dcn_removal *removals;
    size_t removal_count;
    dcn_arena memory;
} dcn_intent;

/* What the outputs are about to be, of their plans and of what is at their names now; and what is removed afterwards. */
decant_status dcn_intent_make(dcn_intent *intent, const dcn_plans *plans, dcn_output *const *outputs,
                              const dcn_removal *removals, size_t removal_count, decant_error *err);

/*
 * That each name still is what it was: free, or the file that is to be replaced.
 *
 * @return DECANT_EXISTS, DECANT_CHANGED
 */
decant_status dcn_intent_check(const dcn_intent *intent, dcn_output *const *outputs, decant_error *err);

/* The parts as they are, so that COMMIT can name them. */
void dcn_intent_name_parts(dcn_intent *intent, dcn_output *const *outputs);

/* The payloads of the records; and how long the second will be. */
void dcn_intent_put_begin(const dcn_intent *intent, dcn_buf *out);
void dcn_intent_put_commit(const dcn_intent *intent, dcn_buf *out);
size_t dcn_intent_commit_len(const dcn_intent *intent);

/* @return DECANT_UNSUPPORTED for what a later version has written */
decant_status dcn_intent_read_begin(dcn_intent *intent, const uint8_t *data, size_t len, decant_error *err);
decant_status dcn_intent_read_commit(dcn_intent *intent, const uint8_t *data, size_t len, decant_error *err);

void dcn_intent_close(dcn_intent *intent);

/* What is known of a file now. */
dcn_identity dcn_identity_of(const dcn_facts *facts);

/* Removes what is still the file that it was, and leaves the rest alone; the folder is synced. */
decant_status dcn_removals_carry_out(dcn_dir *dir, const dcn_removal *removals, size_t count, bool same_boot,
                                     decant_error *err);

/* Whether a file is the one that is known by this. The device counts if it is still the same boot. */
bool dcn_identity_fits(const dcn_identity *identity, const dcn_facts *facts, bool same_boot);

#endif
