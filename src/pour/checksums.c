#include "pour/checksums.h"

#include <assert.h>

#include "base/alloc.h"
#include "base/ckd.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

decant_status dcn_checksums_begin(dcn_checksums *c, uint64_t total, size_t slot, decant_error *err)
{
    *c = (dcn_checksums){.slot = slot, .total = total};
    c->sums = dcn_alloc((size_t)(total / slot + 1), sizeof *c->sums);
    c->state = dcn_alloc_pages(sizeof(XXH3_state_t)); /* it wants to be aligned to 64 */
    if (!c->sums || !c->state) {
        dcn_checksums_close(c);
        return dcn_error_nomem(err);
    }
    XXH3_64bits_reset(c->state);
    return DECANT_OK;
}

void dcn_checksums_put(dcn_checksums *c, const void *data, size_t len)
{
    const uint8_t *at = data;

    assert(len <= c->total - c->at);
    while (len) {
        size_t n = (size_t)dcn_min(c->slot - c->at % c->slot, len);

        XXH3_64bits_update(c->state, at, n);
        at += n;
        len -= n;
        c->at += n;
        if (c->at % c->slot == 0 || c->at == c->total) {
            c->sums[(c->at - 1) / c->slot] = XXH3_64bits_digest(c->state);
            XXH3_64bits_reset(c->state);
        }
    }
}

bool dcn_checksums_match(const dcn_checksums *c, uint64_t at, const void *data, size_t len)
{
    assert(at % c->slot == 0 && c->at == c->total);
    return XXH3_64bits(data, len) == c->sums[at / c->slot];
}

void dcn_checksums_close(dcn_checksums *c)
{
    dcn_free(&c->sums);
    dcn_free(&c->state);
}
