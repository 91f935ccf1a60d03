/*
 * Where the bytes of files are that were given up: in the outputs, which are read in their place, so that whoever kept a handle
 * goes on reading.
 */
#ifndef DCN_MOVED_H
#define DCN_MOVED_H

#include "pour/drain.h"

/*
 * Ends the sources of a giving: those that were drained are read through the outputs from now on, which are in place; of those
 * that were not the file is still open and is read as before. Takes the runs of the giving. What cannot be opened is no failure
 * of the save: who reads it is told where its bytes are.
 *
 * @param sources  an item of the giving each
 */
void dcn_moved_end(dcn_giving *giving, dcn_source *const *sources, dcn_output *const *outputs, size_t count);

#endif
