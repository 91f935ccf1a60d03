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

#endif
