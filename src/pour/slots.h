/*
 * A pour under way, and its slots (slots.c): aligned ranges of the output, each filled, read and handed to the crew in turn.
 * copy.c fills them; clone.c shares blocks instead; pour.c says when.
 */
#ifndef DCN_SLOTS_H
#define DCN_SLOTS_H

#include "pour/checksums.h"
#include "pour/pour.h"
#include "pour/steps.h"

enum { DCN_LANE_WRITES = 0 }; /* the crew's lane of all writes: in the order of the output */

/* Memory on its way to an output; a task of the crew's. */
typedef struct dcn_parcel {
    dcn_output *out;
    uint64_t at;
    dcn_chunk chunk;
    dcn_checksums *sums; /* NULL: nobody asks */
} dcn_parcel;

typedef struct dcn_slot {
    dcn_parcel parcel;
    uint8_t *memory;
} dcn_slot;

/* Bytes of the open slot that are to be made, once what they are made of is read. */
typedef struct dcn_making {
    dcn_backing *leaf;
    uint64_t at; /* in the leaf */
    size_t len;
    const uint8_t *raw;
    uint8_t *dst;
} dcn_making;

/* A pour under way. The open slot is [base, end) of the output; it is filled, or will be by what is wanted, up to `at`. */
typedef struct dcn_pouring {
    const dcn_job *job;
    const dcn_plan *plan;
    dcn_output *out;
    uint64_t at, base, end; /* in the output; base == end: no slot is open */
    uint8_t *dst;           /* of the open slot */
    size_t route;           /* the last one found */
    const dcn_source *read; /* the system does not copy from this one: it is not asked again, and slots stay whole */
    dcn_slot *slots;
    unsigned current;
    dcn_range *ranges; /* wanted from files for the open slot */
    dcn_source **from; /* whose they are */
    size_t wanted, most;
    uint8_t *raw; /* as long as a slot: what bytes are made of; NULL until some are */
    size_t raw_len;
    dcn_making *makings; /* in the order of the output, at most `most`; NULL likewise */
    size_t making_count;
    uint64_t done, total; /* bytes, of all plans */
    dcn_checksums *sums;  /* one a plan; NULL: nothing is read back */
    dcn_checksums *sum;   /* of the plan at hand */
    dcn_intent own;       /* intent, where the job has none */
    dcn_drain drain;      /* of the intent */
    bool keeps;           /* the caller stops it, and goes on another time */
} dcn_pouring;

/* --- slots.c ------------------------------------------------------------------------------------------------------ */

/* Where the output goes on: at least one and at most `want` bytes of an open slot. */
decant_status dcn_pouring_room(dcn_pouring *p, uint64_t want, uint8_t **dst, size_t *len, decant_error *err);

/* Ends the open slot: what it wants is read, and it is written. */
decant_status dcn_pouring_flush(dcn_pouring *p, decant_error *err);

/* Reads what is wanted, each source's ranges together. */
decant_status dcn_pouring_read(dcn_pouring *p, decant_error *err);

/* Reads what is wanted, and makes of it what is to be made. */
decant_status dcn_pouring_fetch(dcn_pouring *p, decant_error *err);

/* Where in the output memory belongs that is read into: a slot's, or what is made for one. */
uint64_t dcn_pouring_at(const dcn_pouring *p, const uint8_t *dst);

/* Hands memory to the output. A callback of the caller's is run by the thread that has called; all else is the crew's. */
decant_status dcn_pouring_send(dcn_pouring *p, dcn_parcel *load, decant_error *err);

/* So many more bytes are done; the caller may stop it all. */
decant_status dcn_pouring_progress(dcn_pouring *p, uint64_t more, decant_error *err);

/* Says of a failure to get bytes whose it is, and which tensor's: the one that stands at `at` of the output. */
decant_status dcn_pouring_blame(const dcn_pouring *p, uint64_t at, decant_side side, decant_status rc,
                                decant_error *err);

/* --- copy.c ------------------------------------------------------------------------------------------------------- */

/* Fills the output at hand, in its order. */
decant_status dcn_pouring_copy(dcn_pouring *p, decant_error *err);

/* --- clone.c ------------------------------------------------------------------------------------------------------ */

/* Shares the blocks that can be. */
decant_status dcn_pouring_share(dcn_pouring *p, decant_error *err);

/* Room for all that is copied. */
decant_status dcn_pouring_reserve(dcn_pouring *p, decant_error *err);

/* The route of a step of which part is not copied, and that part: blocks that are shared, bytes that are drained. NULL: all is. */
dcn_route *dcn_pouring_passed(dcn_pouring *p, const dcn_step *step, uint64_t *at, uint64_t *len);

#endif
