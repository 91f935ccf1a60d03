/*
 * Something to pour: a model whose tensors lie in every kind of place, a plan of it with literals and gaps, and what the
 * output must hold in the end. And the vessels that it is poured into.
 */
#ifndef TEST_CARGO_H
#define TEST_CARGO_H

#include "output/output.h"
#include "pour/pour.h"
#include "support/recorder.h"
#include "support/simdisk.h"

/* Where tensors lie; they take turns. */
enum {
    CARGO_MEMORY = 1 << 0,
    CARGO_FILE = 1 << 1,  /* "in.bin" of the disk, with little gaps */
    CARGO_RANGE = 1 << 2, /* a provider that fills ranges */
    CARGO_WHOLE = 1 << 3, /* a provider that produces its tensor whole */
    CARGO_KEPT = 1 << 4,  /* a file's, kept in memory */
    CARGO_ROPE = 1 << 5,  /* memory, a file's and memory, joined */
    CARGO_ALL = (1 << 6) - 1,
    CARGO_CAST = 1 << 6 /* each of them cast from one dtype to another, anywhere in the output */
};

enum { CARGO_MOST = 64, CARGO_HELD = 8 };

typedef struct cargo {
    decant_model *model;
    dcn_plans plans;
    dcn_source *source; /* NULL: no tensor is in a file */
    recorder rec;
    uint64_t lens[CARGO_MOST]; /* of tensors that a provider gives; of others 0 */
    uint8_t *wanted;           /* the output */
    size_t total;
} cargo;

/* A model of `count` tensors of 0 to `most` bytes. The same arguments give the same cargo. */
void cargo_load(cargo *c, simdisk *disk, unsigned kinds, size_t count, size_t most, uint64_t seed);
void cargo_close(cargo *c);

typedef enum vessel_kind { TO_FILE, TO_FILE_IN_PLACE, TO_MEMORY, TO_NEW, TO_STREAM, TO_SINK, VESSELS } vessel_kind;

typedef struct vessel {
    vessel_kind kind;
    simdisk *disk;     /* files: "out.bin" of it */
    bool replace;      /* likewise */
    const char *lands; /* where the file is found afterwards; NULL: "out.bin" */
    size_t fail_at;    /* streams: this call fails, counted from 1; 0: none */
    bool silent;       /* without saying why */
    /* what became of it */
    uint8_t *got; /* memory, new, stream */
    size_t got_len, calls;
    bool published, durable;
} vessel;

/* Pours: `how` has the cut and the progress callback. `seed` of the crew; 0: inline. */
decant_status vessel_pour(vessel *v, const cargo *c, const dcn_job *how, uint64_t seed, decant_error *err);

/* Ends the test unless the vessel holds what it should. */
void vessel_check(const vessel *v, const cargo *c);

void vessel_close(vessel *v);

#endif
