/*
 * The data of a model's tensors as it passes by, once, in slots: what digest and a deep check look at. A plan of nothing but
 * tensors is poured into a sink that cuts what it gets into tensors again.
 */
#ifndef DCN_SCAN_H
#define DCN_SCAN_H

#include "pour/pour.h"

/* Who looks: at one tensor after the other. */
typedef struct dcn_viewer {
    /* its data, in as many parts as it comes in; none of a tensor without data */
    decant_status (*part)(void *ctx, const dcn_entry *entry, const uint8_t *data, size_t len, decant_error *err);
    decant_status (*end)(void *ctx, const dcn_entry *entry, decant_error *err); /* that was all of it */
    void *ctx;
} dcn_viewer;

/* A plan's bytes, front to back, cut into tensors. */
typedef struct dcn_scan {
    const dcn_plan *plan; /* [lent] */
    const dcn_viewer *viewer;
    size_t piece;  /* the next one, or the one that is open */
    uint64_t seen; /* of that one, bytes */
} dcn_scan;

/* Bytes at `at` of the plan's output, where those before them ended. */
decant_status dcn_scan_take(dcn_scan *scan, uint64_t at, const uint8_t *data, size_t len, decant_error *err);

/* All bytes were taken: what is left are tensors without data. */
decant_status dcn_scan_end(dcn_scan *scan, decant_error *err);

/* Shows all data of a model, in its order. Providers are asked as by a save. */
decant_status dcn_scan_model(const decant_model *model, const dcn_cut *cut, decant_progress progress, void *ctx,
                             const dcn_viewer *viewer, decant_error *err);

/* For who looks without a pour: that no file in which data lies has changed since it was opened. */
decant_status dcn_scan_check(const decant_model *model, decant_error *err);

#endif
