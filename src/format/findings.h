/* Faults of a file, where all of them are to be listed and not only the first to be met. */
#ifndef DCN_FORMAT_FINDINGS_H
#define DCN_FORMAT_FINDINGS_H

#include "base/error.h"

typedef struct dcn_findings {
    void (*fault)(void *ctx, const decant_error *fault);
    void *ctx;
} dcn_findings;

/*
 * After a failure behind which reading can go on without guessing: tells the fault and gives DECANT_OK. What is none of the
 * file's faults, and everything where nobody lists them (NULL), is given back as it is.
 */
static inline decant_status dcn_fault(const dcn_findings *findings, decant_status rc, decant_error *err)
{
    if (!findings ||
        (rc != DECANT_MALFORMED && rc != DECANT_TRUNCATED && rc != DECANT_DUPLICATE && rc != DECANT_UNSUPPORTED))
        return rc;
    findings->fault(findings->ctx, err);
    return DECANT_OK;
}

#endif
