/*
 * Where a plan lands, in phases: begin, write (or lend), seal, publish; abandon from any of them. An output never knows
 * where bytes come from. One file a kind: file.c (atomic, and in place), memory.c, stream.c, sink.c.
 */
#ifndef DCN_OUTPUT_H
#define DCN_OUTPUT_H

#include "plan/plan.h"

typedef struct dcn_output dcn_output;

/* What an output can do. */
enum {
    DCN_CAN_LEND = 1 << 0,      /* slots are views of it */
    DCN_RUNS_USER_CODE = 1 << 1 /* its write is a callback: on the caller's thread, in order */
};

/* Phases in this order, each at most once; abandon from any of them. */
typedef struct dcn_output_ops {
    const char *kind;
    unsigned can;
    decant_status (*begin)(dcn_output *o, const dcn_plan *plan, decant_error *err); /* optional: sized */
    /* optional: whole blocks of a source, shared with it; before anything is written. DECANT_UNSUPPORTED: nothing was done */
    decant_status (*clone)(dcn_output *o, uint64_t at, dcn_source *from, uint64_t from_at, uint64_t len,
                           decant_error *err);
    decant_status (*reserve)(dcn_output *o, uint64_t at, uint64_t len,
                             decant_error *err); /* optional: room for a range */
    /* what can lend has no write: memory that is [at, at + len) of the output, to be filled */
    void *(*lend)(dcn_output *o, uint64_t at, size_t len);
    decant_status (*write)(dcn_output *o, uint64_t at, const dcn_chunk *c, size_t count, decant_error *err);
    /* optional: bytes of a source, none of them held back, without a slot. DECANT_UNSUPPORTED: write them instead */
    decant_status (*copy)(dcn_output *o, uint64_t at, dcn_source *from, uint64_t from_at, uint64_t len,
                          decant_error *err);
    /* optional: what is held back goes in, mode and owner; all of it durable where the output can be */
    decant_status (*seal)(dcn_output *o, decant_error *err);
    /* optional: bytes as they are on the medium, once it is sealed, as far as the system lets that be known */
    decant_status (*reread)(dcn_output *o, uint64_t at, void *dst, size_t len, decant_error *err);
    /* optional: what is written, and what is held back of it, for who frees what it is made of */
    dcn_file *(*part)(dcn_output *o, const uint8_t **held);
    decant_status (*reopen)(dcn_output *o, const dcn_facts *part, const uint8_t *held, size_t len,
                            decant_error *err); /* optional: in place of begin, half written */
    decant_status (*rejoin)(dcn_output *o, const dcn_facts *part,
                            decant_error *err);                 /* optional: in place of begin to seal */
    decant_status (*publish)(dcn_output *o, decant_error *err); /* optional: it gets its name */
    decant_status (*settle)(dcn_output *o, decant_error *err);  /* optional: names in its folder survive power loss */
    void (*abandon)(dcn_output *o); /* optional: leaves nothing that begin made, also where begin failed */
    void (*close)(dcn_output *o);   /* frees; what is not published is abandoned by then */
} dcn_output_ops;

typedef enum dcn_phase { DCN_NEW, DCN_BEGUN, DCN_SEALED, DCN_PUBLISHED, DCN_ABANDONED } dcn_phase;

struct dcn_output {
    const dcn_output_ops *ops;
    dcn_phase phase;
    bool published; /* in place */
    bool durable;   /* and survives power loss */

    /* of files; else NULL */
    dcn_dir *dir;     /* [lent] */
    const char *path; /* [lent] for messages: what the caller knows it by; may be NULL */
    char *name;
    bool replace;
    const uint8_t *transaction; /* [lent] of the journal that the save has; NULL: none. Set before begin */
    const char *journal;        /* [lent] its name; NULL: no part names it. Likewise */
    char *part;                 /* what it is called until it has its name; NULL before begin, and in place */
    dcn_facts facts;            /* since begin */
};

/* The wrappers, which hold the assertions on the order of phases, and say of a failure that it is the output's. */
decant_status dcn_output_begin(dcn_output *o, const dcn_plan *plan, decant_error *err);
void *dcn_output_lend(dcn_output *o, uint64_t at, size_t len);
decant_status dcn_output_write(dcn_output *o, uint64_t at, const dcn_chunk *c, size_t count, decant_error *err);
decant_status dcn_output_copy(dcn_output *o, uint64_t at, dcn_source *from, uint64_t from_at, uint64_t len,
                              decant_error *err);
decant_status dcn_output_clone(dcn_output *o, uint64_t at, dcn_source *from, uint64_t from_at, uint64_t len,
                               decant_error *err);
decant_status dcn_output_reserve(dcn_output *o, uint64_t at, uint64_t len, decant_error *err);
decant_status dcn_output_seal(dcn_output *o, decant_error *err);
decant_status dcn_output_reread(dcn_output *o, uint64_t at, void *dst, size_t len, decant_error *err);
decant_status dcn_output_reopen(dcn_output *o, const dcn_facts *part, const uint8_t *held, size_t len,
                                decant_error *err);
decant_status dcn_output_rejoin(dcn_output *o, const dcn_facts *part, decant_error *err);
decant_status dcn_output_publish(dcn_output *o, decant_error *err);
decant_status dcn_output_settle(dcn_output *o, decant_error *err);
dcn_file *dcn_output_part(dcn_output *o); /* [lent] of a file that has begun and is not published */
const uint8_t *
dcn_output_held(dcn_output *o); /* [lent] the first bytes of it, which are not in its part until it is sealed */
void dcn_output_abandon(dcn_output *o);
void dcn_output_leave(dcn_output *o); /* as it is: a journal knows what is to become of it */
void dcn_output_close(dcn_output **o);

/* Names in the folders of several outputs survive power loss from here on: each folder is synced once. */
decant_status dcn_outputs_settle(dcn_output *const *outputs, size_t count, decant_error *err);

/*
 * Several get their names, in this order, and these are made to last; the last one when all others have. DECANT_NOT_DURABLE:
 * all have them.
 */
decant_status dcn_outputs_publish(dcn_output *const *outputs, size_t count, decant_error *err);

/*
 * A file, atomically: written under `<name>.decant-<16 hex>.part` beside it, locked, its first bytes last; synced once,
 * renamed (not replacing unless `replace`), the folder synced. Scratch files of dead saves of the same name are swept.
 *
 * @param dir   [lent] outlives the output
 * @param path  [lent] for messages; outlives the output, and may be NULL
 */
decant_status dcn_output_file(dcn_dir *dir, const char *name, const char *path, bool replace, dcn_output **out,
                              decant_error *err);

/*
 * What the file NAME is called until it has its name: "<name>.decant-<id>.part", or .jpart under a journal, the name without
 * its beginning where that is too long.
 *
 * @param id  8 bytes; under a journal the first of its transaction
 */
decant_status dcn_part_name(const char *name, const uint8_t *id, bool has_journal, char **out, decant_error *err);

/* Whether `entry` is such a name of NAME. @param id  8 bytes, written if it is; may be NULL */
bool dcn_part_is_of(const char *entry, const char *name, bool has_journal, uint8_t *id);

/* Whether it is the part of something under a journal, by its ending. */
bool dcn_part_has_journal(const char *entry);

enum { DCN_PART_JOURNAL = 256 /* bytes of a journal's name, with its NUL */ };

/* The name of the journal of a part that is not sealed. @param out  "": it does not say, or is sealed */
decant_status dcn_part_journal(dcn_dir *dir, const char *part, char out[DCN_PART_JOURNAL], decant_error *err);

/*
 * A file in place: links followed, inode kept, not synced. Opened by begin: created new unless `replace`, and refused
 * (DECANT_SAME_FILE) if it is one of `sources`.
 */
decant_status dcn_output_in_place(dcn_dir *dir, const char *name, const char *path, bool replace,
                                  dcn_source *const *sources, size_t count, dcn_output **out, decant_error *err);

/* The refusal of an output whose name is taken: DECANT_EXISTS. */
decant_status dcn_output_exists(decant_error *err);

/* The caller's memory of `len` bytes; begin fails with DECANT_NO_SPACE if that is too few. */
decant_status dcn_output_memory(void *dst, size_t len, dcn_output **out, decant_error *err);

/* New memory, allocated once by begin. `take` it after seal, as bytes. */
decant_status dcn_output_new(dcn_output **out, decant_error *err);
decant_status dcn_output_new_take(dcn_output *o, decant_bytes **out, decant_error *err);

/* A stream of the caller's, front to back. */
decant_status dcn_output_stream(decant_status (*write)(void *ctx, const void *data, size_t len, decant_error *err),
                                void *ctx, dcn_output **out, decant_error *err);

/* Is shown bytes at `at` of an output. */
typedef decant_status dcn_see(void *ctx, uint64_t at, const dcn_chunk *chunk, decant_error *err);

/* Takes everything and keeps nothing; shows it to `see`, front to back, unless that is NULL. */
decant_status dcn_output_sink(dcn_see *see, void *ctx, dcn_output **out, decant_error *err);

#endif
