/*
 * A save that gives its inputs up: files on a disk, and outputs in "." that hold their bytes. The scenes are those of the
 * specification's executable form, and any that a seed makes up.
 */
#ifndef TEST_CARAVAN_H
#define TEST_CARAVAN_H

#include "pour/pour.h"
#include "pour/recover.h"
#include "support/simdisk.h"

enum { CARAVAN_SOURCES = 4, CARAVAN_OUTPUTS = 3, CARAVAN_PIECES = 48, CARAVAN_SLOT = 64 };

/* Bytes of an output: `len` of them from a source at `from`, or made up. */
typedef struct caravan_piece {
    int source; /* -1: made up; -2: zeros */
    size_t from, len;
} caravan_piece;

typedef struct caravan_scene {
    const char *name;
    struct {
        const char *name; /* with its folder */
        size_t len;
        bool copied;            /* whole until the end; else drained */
        size_t zero_at, zeros;  /* bytes of it that are zero */
        bool sparse;            /* and a hole */
    } sources[CARAVAN_SOURCES]; /* up to the first without a name */
    struct {
        const char *name;
        size_t held;
        bool replace, old;                    /* a file is to be replaced */
        caravan_piece pieces[CARAVAN_PIECES]; /* up to the first without bytes */
    } outputs[CARAVAN_OUTPUTS];
    bool removal;        /* "s/index" goes afterwards */
    size_t batch;        /* bytes */
    size_t unit;         /* of the disk and the giving */
    size_t extent;       /* of the disk; 0: what is given up is free at once */
    simdisk_holes holes; /* as the disk tells them */
    unsigned lacks;      /* of the disk */
    bool tight;          /* the disk has the room that is needed, and no more */
} caravan_scene;

extern const caravan_scene caravan_scenes[];
extern const size_t caravan_scene_count;

/* Any scene: the same seed gives the same. */
void caravan_invent(caravan_scene *scene, uint64_t seed);

typedef struct caravan {
    const caravan_scene *scene;
    size_t source_count, output_count;
    uint8_t *sources[CARAVAN_SOURCES], *outputs[CARAVAN_OUTPUTS];
    size_t totals[CARAVAN_OUTPUTS];
    int64_t times[CARAVAN_SOURCES]; /* of the sources, since there is a disk */
    uint64_t journal;               /* bytes of it, once they are known */
} caravan;

void caravan_load(caravan *c, const caravan_scene *scene);
void caravan_close(caravan *c);

/* A disk with the sources, and the files that are to be replaced. */
simdisk *caravan_disk(caravan *c);

/* Bytes that the save takes beyond what is there, its journal apart: the highest point of a walk through its batches (I9). */
uint64_t caravan_room(const caravan *c);

typedef struct caravan_how {
    uint64_t seed;             /* of the crew; 0: none */
    unsigned threads;          /* of the crew; 0: inline */
    void (*begins)(void *ctx); /* NULL; all is planned, and the pour is what follows */
    void *begins_ctx;
    const dcn_proof *proof; /* NULL: nothing is read back */
    decant_progress progress;
    void *progress_ctx;
} caravan_how;

/* Every kind of crew in turn: inline, with seeds, and with threads, whose order is another one each time. */
caravan_how caravan_crew(uint64_t number);

decant_status caravan_pour(const caravan *c, simdisk *disk, const caravan_how *how, decant_error *err);

/* Recovery of what is in "."; nothing there is no failure. @param stage  that it was in, may be NULL */
decant_status caravan_recover(simdisk *disk, bool undo, decant_error *err);

/* Whether there is a journal; its stage. */
bool caravan_journal(simdisk *disk, dcn_stage *stage);

/* Whether anything is emptied on the way. */
bool caravan_drains(const caravan *c);

/* Whether an output is in place. */
bool caravan_has_landed(const caravan *c, const simdisk *disk, size_t output);

/* Everything is new: outputs whole, sources and the removal gone, nothing left over. */
bool caravan_is_new(const caravan *c, simdisk *disk);

/* Everything is as it was, times and notes of sources too; nothing left over. */
bool caravan_is_old(const caravan *c, simdisk *disk);

/* What the save, or a recovery, has said. */
enum { CARAVAN_SAID_NEW = 1 << 0, CARAVAN_MAY_LACK_ROOM = 1 << 1 /* for undoing it */ };

/*
 * What must hold whenever it was stopped: all is decided, or recovery decides it, the one way and the other. Ends the test with
 * `when` if not. The disk stays as it is.
 *
 * @return whether there is anything to recover; in which stage it is
 */
bool caravan_check_recovers(const caravan *c, simdisk *disk, unsigned claims, const char *when, dcn_stage *stage);

/* What must hold at every moment (I2, I11): ends the test if it does not. */
void caravan_check(const caravan *c, simdisk *disk, const char *when);

#endif
