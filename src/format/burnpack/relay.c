/* Quantized tensors of Burn 0.20 and 0.21, handed out as they are laid out today. */
#include "base/alloc.h"
#include "base/ckd.h"
#include "format/burnpack/quant.h"

typedef struct relaid {
    dcn_backing base;
    dcn_span from; /* held */
    dcn_quant_old old;
} relaid;

/* Where bit `at * 8` of the values, as they are laid out today, lay then; padding lies where the next line begins. */
static uint64_t old_bit(const dcn_quant_old *old, uint64_t at)
{
    return at / old->line_now * old->line + dcn_min(at % old->line_now * 8, old->line);
}

/* Bytes of values, from `at` on in today's layout. */
static decant_status relay_values(relaid *r, uint64_t at, uint8_t *dst, size_t len, decant_error *err)
{
    enum { MOST = 4096 };
    uint8_t bytes[MOST + 2] = {0};

    while (len) {
        size_t n = (size_t)dcn_min(len, MOST);
        uint64_t first = old_bit(&r->old, at) / 8, end = old_bit(&r->old, at + n) / 8 + 1;
        dcn_fetch fetch = {r->from.offset + first, bytes, (size_t)(dcn_min(end, r->old.scales) - first)};
        decant_status rc = dcn_backing_fetch(r->from.backing, &fetch, 1, err);

        if (rc)
            return rc;
        for (size_t i = 0; i < n; i++, at++) {
            uint64_t in_line = at % r->old.line_now * 8, bit = old_bit(&r->old, at) - first * 8;
            uint64_t left = r->old.line - dcn_min(in_line, r->old.line);
            unsigned pair = bytes[bit / 8] | (unsigned)bytes[bit / 8 + 1] << 8;

            dst[i] = (uint8_t)(pair >> bit % 8 & (left < 8 ? (1u << left) - 1 : 0xFF));
        }
        dst += n;
        len -= n;
    }
    return DECANT_OK;
}

static decant_status read_relaid(dcn_backing *b, dcn_fetch *f, size_t count, decant_error *err)
{
    relaid *r = (relaid *)b;

    for (size_t i = 0; i < count; i++) {
        size_t values = f[i].at < r->old.values_now ? (size_t)dcn_min(f[i].len, r->old.values_now - f[i].at) : 0;
        dcn_fetch scales = {r->from.offset + r->old.scales + (f[i].at + values - r->old.values_now),
                            (uint8_t *)f[i].dst + values, f[i].len - values};
        decant_status rc = relay_values(r, f[i].at, f[i].dst, values, err);

        if (rc || (scales.len && (rc = dcn_backing_fetch(r->from.backing, &scales, 1, err))))
            return rc;
    }
    return DECANT_OK;
}

static const dcn_span *raw_of(dcn_backing *b)
{
    return &((relaid *)b)->from;
}

static dcn_backing *close_relaid(dcn_backing *b)
{
    relaid *r = (relaid *)b;
    dcn_backing *from = r->from.backing;

    dcn_free(&r);
    return from;
}

static const dcn_backing_ops relaid_ops = {
    .kind = "relaid", .begin = read_relaid, .raw = raw_of, .close = close_relaid};

/* Values, and scales right behind them: both stay bytes of the file. */
static decant_status leave_out_padding(const dcn_quant_old *old, const dcn_span *from, decant_bytes **out,
                                       decant_error *err)
{
    decant_bytes *parts[2] = {NULL};
    decant_status rc;

    if ((rc = dcn_bytes_slice(from->backing, from->offset, old->values_now, &parts[0], err)) ||
        (rc = dcn_bytes_slice(from->backing, from->offset + old->scales, old->len - old->scales, &parts[1], err)))
        goto done;
    rc = dcn_bytes_join(parts, 2, out, err);
done:
    decant_bytes_unref(&parts[0]);
    decant_bytes_unref(&parts[1]);
    return rc;
}

decant_status dcn_quant_relay(const dcn_quant_old *old, const dcn_span *from, decant_bytes **out, decant_error *err)
{
    relaid *r;

    if (dcn_quant_old_lines_stay(old))
        return leave_out_padding(old, from, out, err);
    if (!(r = dcn_alloc(1, sizeof *r)))
        return dcn_error_nomem(err);
    dcn_backing_init(&r->base, &relaid_ops, old->len_now);
    r->base.depth = from->backing->depth;
    r->from = (dcn_span){decant_bytes_ref(from->backing), from->offset, from->len};
    r->old = *old;
    *out = &r->base;
    return DECANT_OK;
}
