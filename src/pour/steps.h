/*
 * A plan as the steps that fill it, in the order of the output. What lies end to end both there and in its file is one run,
 * however many entries it belongs to. What no step fills are gaps, which are zeros.
 */
#ifndef DCN_STEPS_H
#define DCN_STEPS_H

#include "plan/plan.h"

typedef enum dcn_step_kind {
    DCN_STEP_TEXT, /* a literal */
    DCN_STEP_RUN,  /* bytes of a file */
    DCN_STEP_LEAF  /* what one backing answers for, and no file: memory, a provider */
} dcn_step_kind;

/* Bytes [at, at + len) of the output: there are some. Everything is lent by the plan. */
typedef struct dcn_step {
    dcn_step_kind kind;
    uint64_t at, len;
    dcn_source *source; /* of a run */
    dcn_backing *leaf;
    const uint8_t *text;
    uint64_t from; /* where it begins in the source, or in the leaf */
} dcn_step;

/* Where a walk is. Nothing of the plan may go meanwhile. */
typedef struct dcn_steps {
    const dcn_plan *plan;
    size_t piece;  /* the next one that has bytes */
    uint64_t done; /* bytes of it that are behind */
    dcn_finder finder;
} dcn_steps;

/* At the beginning of a plan. */
dcn_steps dcn_steps_of(const dcn_plan *plan);

/* The next step; false past the last. */
bool dcn_steps_next(dcn_steps *steps, dcn_step *out);

/*
 * Whole blocks of a run that it can share with its file, which takes that both offsets agree modulo the length of a block.
 *
 * @param held   bytes at the front of the output that are written last
 * @param least  bytes that are worth a call
 * @param at     where in the output they begin
 * @return their length; 0: there are none, or fewer than `least`
 */
uint64_t dcn_step_blocks(const dcn_step *run, uint64_t held, uint64_t least, uint64_t *at);

/* The bytes of a step behind the first `held` of the output. @param at  where they begin */
uint64_t dcn_step_behind(const dcn_step *step, uint64_t held, uint64_t *at);

#endif
