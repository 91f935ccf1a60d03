/* Recovery of everything that lies in the folder of a disk. */
#ifndef TEST_SALVAGE_H
#define TEST_SALVAGE_H

#include "pour/recover.h"
#include "support/simdisk.h"

/* Finishes what is complete and undoes what is not, for every journal there is. */
decant_status salvage(simdisk *disk, decant_error *err);

/* The first journal there is; NULL: none. Lent until the next listing. */
const char *salvage_journal(simdisk *disk);

/* How far the save has come whose journal is there; LIVE if there is none. */
dcn_stage salvage_stage(simdisk *disk);

/* What must hold of a disk: after a cut of the power, and again once it is recovered. */
typedef struct salvage_law {
    void (*check)(void *ctx, simdisk *disk, bool recovered);
    void *ctx;
    size_t most; /* cuts that are tried at a place, about; 0: all */
} salvage_law;

/* Cuts the power in all ways that the disk may come back, and recovers. The disk itself stays. */
void salvage_after_cuts(const simdisk *disk, size_t seed, const salvage_law *law);

/* Stops recovery at each of its calls, by a kill and by a cut of the power, and recovers once more. The disk itself stays. */
void salvage_interrupted(const simdisk *disk, const salvage_law *law);

#endif
