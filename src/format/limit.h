/* Errors that formats have in common: decant's own limits on what a file may hold, and what is not known here. */
#ifndef DCN_FORMAT_LIMIT_H
#define DCN_FORMAT_LIMIT_H

#include <inttypes.h>

#include "base/error.h"

/* @return DECANT_LIMIT, for `what` ("the rank") */
static inline decant_status dcn_past_limit(const char *what, uint64_t found, uint64_t limit, decant_error *err)
{
    decant_error_set(err, DECANT_LIMIT, "%s is past a limit of decant's", what);
    dcn_error_found(err, "%" PRIu64, found);
    dcn_error_expected(err, "at most %" PRIu64, limit);
    dcn_error_hint(err, "--allow limits lifts it");
    return DECANT_LIMIT;
}

/* Where it stands and what to do, of a name that has just been called unknown. @return DECANT_UNSUPPORTED */
static inline decant_status dcn_unknown_at(uint64_t offset, decant_error *err)
{
    dcn_error_at(err, offset);
    dcn_error_hint(err, "fetch the file again; if it is not damaged, a newer decant may know this");
    return DECANT_UNSUPPORTED;
}

#endif
