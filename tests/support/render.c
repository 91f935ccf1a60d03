#include "render.h"

#include <stdlib.h>

#include "base/ckd.h"

uint8_t *render_plan(const dcn_plan *plan, size_t *len)
{
    uint8_t *out = calloc(plan->total ? plan->total : 1, 1);

    CHECK(out);
    for (size_t i = 0; i < plan->count; i++) {
        const dcn_piece *piece = &plan->pieces[i];
        uint64_t piece_len = dcn_plan_piece_len(plan, i);

        CHECK(!dcn_outside(piece->at, piece_len, plan->total));
        if (piece->literal) {
            memcpy(out + piece->at, plan->literals[piece->index].data, piece_len);
        } else {
            const dcn_span *span = &plan->model->entries[piece->index].data;
            dcn_fetch fetch = {span->offset, out + piece->at, piece_len};
            decant_error err = {0};

            CHECK_EQ(span->len, piece_len);
            if (piece_len)
                CHECK_OK(dcn_backing_fetch(span->backing, &fetch, 1, &err), &err);
        }
    }
    *len = plan->total;
    return out;
}
