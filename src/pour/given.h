/*
 * A file that gives up its bytes while the outputs get them: under another name, `<name>.moving`, from before its first byte
 * goes until it is whole again or gone, so that nothing opens it half.
 */
#ifndef DCN_GIVEN_H
#define DCN_GIVEN_H

#include "bytes/moving.h"
#include "pour/intent.h"

typedef struct dcn_given {
    const dcn_owned *owned; /* [lent] */
    dcn_dir *dir;           /* [lent] */
    const char *folder;     /* [lent] what that is called, for messages */
    char *moving;           /* its other name */
    dcn_file *file;         /* for reading and writing, locked */
    bool lent;              /* by a source that reads from it */
    bool same_boot;         /* since its identity was taken */
    bool is_moving;         /* it has that name */
    bool is_aside;          /* and no other, durably */
    bool has_holes;         /* it has fewer blocks than bytes */
    bool whole_extents;     /* what it gives up is free when whole extents are */
    bool in_doubt;          /* a sync of it or of its folder failed */
    bool has_begun;         /* there has been a mark: its time is of our own doing */
    bool kept;              /* it still has what its last mark covers, and the parts do not: `mark` is the one before */
    int64_t mtime;          /* since our own last change */
    dcn_mark mark;          /* its last one; upto 0: it has none, or all is back */
} dcn_given;

/*
 * Describes one; nothing is opened.
 *
 * @param dir     [lent] outlives it; NULL: it is gone, and the file with it
 * @param folder  [lent] the same, by its path
 */
decant_status dcn_given_describe(dcn_given *g, const dcn_owned *owned, dcn_dir *dir, const char *folder, bool same_boot,
                                 decant_error *err);

/*
 * Opens it under the one or the other name. One that has begun may be under both, and its time says nothing.
 *
 * @return DECANT_NOT_FOUND; DECANT_CHANGED, with what was expected and found
 */
decant_status dcn_given_open(dcn_given *g, decant_error *err);

/* @return DECANT_BUSY: another has the lock; DECANT_UNSUPPORTED: there are no locks */
decant_status dcn_given_lock(dcn_given *g, decant_error *err);

/* Of one that is not drained: that it is there, as it was. @return DECANT_NOT_FOUND, DECANT_CHANGED */
decant_status dcn_given_check_whole(const dcn_given *g, decant_error *err);

/* That it is what it was after our own last change, and nobody else has it open. @return DECANT_CHANGED, DECANT_BUSY */
decant_status dcn_given_check(dcn_given *g, decant_error *err);

/* Gives it its other name, durably, with a note that names the journal. Does nothing where it has it. */
decant_status dcn_given_set_aside(dcn_given *g, const char *note, decant_error *err);

enum { DCN_RENEWED_MOST = 1 << 20 /* bytes that are written anew so that the extents around them can go */ };

/*
 * Frees what it no longer needs to hold: the units in [from, upto) of which each byte is in a run below `upto`, or reads as
 * zero. Whole hulls, since piece by piece frees nothing. Where only whole extents are free, what stays between two hulls is
 * written anew, as it is: it would keep the extent that it shares with them.
 */
decant_status dcn_given_free(dcn_given *g, const dcn_giving *giving, uint64_t from, uint64_t upto, decant_error *err);

/* It is whole again: no note, its own time if we have moved that, durable; then its own name, which is durable when its folder is. */
decant_status dcn_given_restore(dcn_given *g, decant_error *err);

/* Its file is the source's from now on, which reads from it. */
void dcn_given_lend(dcn_given *g, dcn_source *source);

/* Removes it; the folder is to be synced. One that is not there, or not what it was, is left alone. */
decant_status dcn_given_remove(dcn_given *g, decant_error *err);

void dcn_given_close_file(dcn_given *g);
void dcn_given_close(dcn_given *g);

#endif
