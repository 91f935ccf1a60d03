/* Checksums of what is written, slot by slot, for who reads it back. */
#ifndef DCN_CHECKSUMS_H
#define DCN_CHECKSUMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct dcn_checksums {
    uint64_t *sums; /* XXH3 of each slot */
    void *state;    /* of the one that is open */
    size_t slot;    /* bytes */
    uint64_t at, total;
} dcn_checksums; /* {0} is empty */

/* For `total` bytes in slots of `slot`: 8 bytes a slot. */
decant_status dcn_checksums_begin(dcn_checksums *c, uint64_t total, size_t slot, decant_error *err);

/* The next bytes, front to back. */
void dcn_checksums_put(dcn_checksums *c, const void *data, size_t len);

/* Whether the whole slot that begins at `at` is what was put. */
bool dcn_checksums_match(const dcn_checksums *c, uint64_t at, const void *data, size_t len);

void dcn_checksums_close(dcn_checksums *c);

#endif
