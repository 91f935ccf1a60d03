/* Where layouts put the data of an entry, for formats that may leave gaps. */
#ifndef DCN_FORMAT_PLACE_H
#define DCN_FORMAT_PLACE_H

#include "plan/plan.h"

enum {
    DCN_CONGRUENT = 4096
}; /* offsets that agree modulo this many bytes can share blocks on every file system we know */

/*
 * The first offset of the output, from `end` on, at which the data of `entry` may begin: a multiple of how->align, or what
 * is congruent to where it begins in its file. What lies in no file begins at a multiple of `own`, the format's alignment.
 *
 * @return true if it does not fit
 */
bool dcn_place_entry(const dcn_layout *how, const dcn_entry *entry, uint64_t own, uint64_t end, uint64_t *at);

/* "canonical", "aligned", "congruent" */
const char *dcn_layout_name(decant_layout layout);

/* Where the data of an entry begins in its file; false if it has none or lies in none. */
bool dcn_place_in_file(const dcn_entry *entry, uint64_t *offset);

#endif
