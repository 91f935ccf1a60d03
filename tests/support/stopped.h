/* Saves that give their inputs up, killed, and what is left of them. */
#ifndef SUPPORT_STOPPED_H
#define SUPPORT_STOPPED_H

#include "support/caravan.h"
#include "support/gates.h"

enum { STOPPED_NAME = 64 };

extern const char stopped_journal[]; /* the name of the journal */

/* A scene in which batches begin where units do. */
extern const caravan_scene stopped_even;

/* The save is killed at the n-th of the calls of a verb, or of any, on a name that holds a text. NULL: there are no so many. */
simdisk *stopped_before(caravan *c, bool any, dcn_verb verb, const char *name, size_t n);

/* Each scene, and each of its states that has something of the sort. */
typedef void stopped_act(caravan *c, simdisk *disk, const char *when);
void stopped_everywhere(stopped_act *act, size_t stride);

bool stopped_has(const simdisk *disk, const char *path);

/* The first name in "." that ends so; "": none. */
void stopped_find(simdisk *disk, const char *ending, char out[STOPPED_NAME]);

void stopped_overwrite(simdisk *disk, const char *path, uint64_t at, const void *data, size_t len);

#endif
