/* A save of several files: a model whose tensors are spread over plans, and the folder of a disk that they go to. */
#ifndef TEST_CONVOY_H
#define TEST_CONVOY_H

#include "output/output.h"
#include "pour/pour.h"
#include "support/simdisk.h"

enum { CONVOY_MOST = 8 };

/* A file that a save may remove: sorts behind the others. */
#define CONVOY_OLD "old.bin"

typedef struct convoy {
    decant_model *model;
    dcn_plans plans;              /* of "a.bin", "b.bin" ...; the last has no tensor, as an index */
    uint8_t *wanted[CONVOY_MOST]; /* the outputs */
    size_t totals[CONVOY_MOST];
    bool published[CONVOY_MOST], durable[CONVOY_MOST]; /* after a pour */
} convoy;

typedef struct convoy_voyage {
    simdisk *disk;
    bool replace;
    bool journal;
    bool prune;    /* CONVOY_OLD goes afterwards */
    uint64_t seed; /* of the crew; 0: inline */
    decant_progress progress;
    void *progress_ctx;
} convoy_voyage;

/* `count` files of some tensors each. The same arguments give the same. */
void convoy_load(convoy *c, size_t count, uint64_t seed);
void convoy_close(convoy *c);

/* The name of a file: a literal. */
const char *convoy_name(size_t i);

decant_status convoy_pour(convoy *c, const convoy_voyage *how, decant_error *err);

/* Whether the file is what it should be. */
bool convoy_landed(const convoy *c, const simdisk *disk, size_t i);

#endif
