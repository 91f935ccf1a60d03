/*
 * A file while it gives up its bytes: its other name, so that nobody takes it for what it was, and a note that says where the
 * journal is of who gives it up. The note is an attribute, or where files have none, a file beside it. It is for people who
 * look for the journal: nothing else depends on it.
 */
#ifndef DCN_MOVING_H
#define DCN_MOVING_H

#include "io/io.h"

enum { DCN_MOVING_NOTE = 4096 /* bytes of the journal's path, with its NUL */ };

/* "<name>.moving", cut at its beginning where that is too long. @param out [owned] */
decant_status dcn_moving_name(const char *name, char **out, decant_error *err);

/* Bytes of the name that it had, of which they are the beginning; 0: the name does not end like that. */
size_t dcn_moving_base(const char *name);

/*
 * Notes the path of a journal, if there is a way to.
 *
 * @param dir     [lent] where the file is
 * @param moving  its other name
 * @return whether there is something to sync about the file itself; what is beside it is only for as long as nothing crashes
 */
bool dcn_moving_note(dcn_dir *dir, const char *moving, dcn_file *file, const char *journal);

/* There is no note any more, also none that a crash has left half written. @param file  NULL: it is gone */
decant_status dcn_moving_drop_note(dcn_dir *dir, const char *moving, dcn_file *file, decant_error *err);

/* @return DECANT_NOT_FOUND: there is none, as far as can be told */
decant_status dcn_moving_read_note(dcn_dir *dir, const char *moving, dcn_file *file, char out[DCN_MOVING_NOTE],
                                   decant_error *err);

#endif
