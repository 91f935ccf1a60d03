/*
 * A save that gives its inputs up: files in the folder "s" of a disk, and outputs in "." that hold their bytes. The scenes are
 * those of the specification's executable form.
 */
#ifndef TEST_CARAVAN_H
#define TEST_CARAVAN_H

#include "pour/pour.h"
#include "pour/recover.h"
#include "support/simdisk.h"

enum { CARAVAN_SOURCES = 4, CARAVAN_OUTPUTS = 3, CARAVAN_PIECES = 32, CARAVAN_SLOT = 64 };

/* Bytes of an output: `len` of them from a source at `from`, or made up. */
typedef struct caravan_piece {
    int source; /* -1: made up; -2: zeros */
    size_t from, len;
} caravan_piece;

typedef struct caravan_scene {
    const char *name;
    struct {
        const char *name; /* in "s" */
        size_t len;
        bool copied;            /* whole until the end; else drained */
        size_t zero_at, zeros;  /* bytes of it that are zero */
    } sources[CARAVAN_SOURCES]; /* up to the first without a name */
    struct {
        const char *name;
        size_t held;
        bool replace, old;                    /* a file is to be replaced */
        caravan_piece pieces[CARAVAN_PIECES]; /* up to the first without bytes */
    } outputs[CARAVAN_OUTPUTS];
    bool removal; /* "s/index" goes afterwards */
    size_t batch; /* bytes */
    size_t unit;  /* of the disk and the giving */
} caravan_scene;

extern const caravan_scene caravan_scenes[];
extern const size_t caravan_scene_count;

typedef struct caravan {
    const caravan_scene *scene;
    size_t source_count, output_count;
    uint8_t *sources[CARAVAN_SOURCES], *outputs[CARAVAN_OUTPUTS];
    size_t totals[CARAVAN_OUTPUTS];
} caravan;

void caravan_load(caravan *c, const caravan_scene *scene);
void caravan_close(caravan *c);

/* A disk with the sources, and the files that are to be replaced. */
simdisk *caravan_disk(const caravan *c);

typedef struct caravan_how {
    uint64_t seed;    /* of the crew; 0: none */
    unsigned threads; /* of the crew; 0: inline */
    decant_progress progress;
    void *progress_ctx;
} caravan_how;

decant_status caravan_pour(const caravan *c, simdisk *disk, const caravan_how *how, decant_error *err);

/* Recovery of what is in "."; nothing there is no failure. @param stage  that it was in, may be NULL */
decant_status caravan_recover(simdisk *disk, bool undo, decant_error *err);

/* Whether there is a journal; its stage. */
bool caravan_journal(simdisk *disk, dcn_stage *stage);

/* Everything is new: outputs whole, sources and the removal gone, nothing left over. */
bool caravan_is_new(const caravan *c, simdisk *disk);

/* Everything is as it was, times of sources too; nothing left over but perhaps parts without a journal, if `parts`. */
bool caravan_is_old(const caravan *c, simdisk *disk);

/* What must hold at every moment (I2, I11): ends the test if it does not. */
void caravan_check(const caravan *c, simdisk *disk, const char *when);

#endif
