/* A part of other bytes, and several one after the other. */
#include "bytes/bytes.h"

#include "base/alloc.h"
#include "base/ckd.h"

/* --- slices ------------------------------------------------------------------------------------------------------ */

/* Slices of slices stay that: what is in between may be kept one day, and then answers. */
typedef struct slice {
    dcn_backing base;
    dcn_backing *whole; /* held */
    uint64_t offset;
} slice;

static dcn_backing *under_slice(dcn_backing *b, uint64_t at, uint64_t *offset, uint64_t *upto)
{
    const slice *s = (slice *)b;

    *offset = s->offset + at;
    *upto = b->len;
    return s->whole;
}

static dcn_backing *close_slice(dcn_backing *b)
{
    slice *s = (slice *)b;
    dcn_backing *whole = s->whole;

    dcn_free(&s);
    return whole;
}

static const dcn_backing_ops slice_ops = {.kind = "slice", .under = under_slice, .close = close_slice};

decant_status dcn_bytes_slice(decant_bytes *bytes, uint64_t offset, uint64_t len, decant_bytes **out, decant_error *err)
{
    slice *s = dcn_alloc(1, sizeof *s);

    if (!s)
        return dcn_error_nomem(err);
    dcn_backing_init(&s->base, &slice_ops, len);
    s->base.depth = bytes->depth;
    s->whole = decant_bytes_ref(bytes);
    s->offset = offset;
    *out = &s->base;
    return DECANT_OK;
}

/* --- ropes ------------------------------------------------------------------------------------------------------- */

typedef struct part {
    dcn_backing *bytes; /* held */
    uint64_t end;       /* in the rope */
} part;

typedef struct rope {
    dcn_backing base;
    size_t count;
    part parts[];
} rope;

static dcn_backing *under_rope(dcn_backing *b, uint64_t at, uint64_t *offset, uint64_t *upto)
{
    const rope *r = (rope *)b;
    size_t low = 0, high = r->count - 1; /* the first part that ends behind `at`: empty ones are passed over */

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (r->parts[middle].end > at)
            high = middle;
        else
            low = middle + 1;
    }
    *offset = at - (low ? r->parts[low - 1].end : 0);
    *upto = r->parts[low].end;
    return r->parts[low].bytes;
}

static dcn_backing *close_rope(dcn_backing *b)
{
    rope *r = (rope *)b;

    for (size_t i = 0; i < r->count; i++)
        decant_bytes_unref(&r->parts[i].bytes); /* as deep as DCN_ROPE_DEPTH */
    dcn_free(&r);
    return NULL;
}

static const dcn_backing_ops rope_ops = {.kind = "rope", .under = under_rope, .close = close_rope};

decant_status dcn_bytes_join(decant_bytes *const *parts, size_t count, decant_bytes **out, decant_error *err)
{
    rope *r;
    uint64_t len = 0;
    unsigned depth = 0;

    for (size_t i = 0; i < count; i++) {
        if (dcn_ckd_add(&len, len, parts[i]->len))
            return decant_error_set(err, DECANT_BAD_CALL, "the parts are longer together than 64 bits count");
        depth = parts[i]->depth > depth ? parts[i]->depth : depth;
    }
    if (depth == DCN_ROPE_DEPTH) {
        decant_error_set(err, DECANT_BAD_CALL, "ropes of ropes go more than %d deep", DCN_ROPE_DEPTH);
        dcn_error_hint(err, "join all parts at once");
        return DECANT_BAD_CALL;
    }
    r = count <= (SIZE_MAX - sizeof *r) / sizeof(part) ? dcn_alloc(1, sizeof *r + count * sizeof(part)) : NULL;
    if (!r)
        return dcn_error_nomem(err);
    dcn_backing_init(&r->base, &rope_ops, len);
    r->base.depth = depth + 1;
    r->count = count;
    len = 0;
    for (size_t i = 0; i < count; i++) {
        len += parts[i]->len;
        r->parts[i] = (part){decant_bytes_ref(parts[i]), len};
    }
    *out = &r->base;
    return DECANT_OK;
}
