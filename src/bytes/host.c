#include "bytes/bytes.h"

#include <stddef.h>
#include <string.h>

#include "base/alloc.h"

typedef struct host {
    dcn_backing base;
    dcn_hold hold; /* of views, each with a reference */
    const uint8_t *data;
    void (*release)(void *ctx); /* may be NULL */
    void *ctx;
    _Alignas(max_align_t) uint8_t own[]; /* copies */
} host;

static decant_status read_host(dcn_backing *b, dcn_fetch *f, size_t count, decant_error *err)
{
    const host *h = (host *)b;

    (void)err;
    for (size_t i = 0; i < count; i++)
        memcpy(f[i].dst, h->data + f[i].at, f[i].len);
    return DECANT_OK;
}

static decant_status lend_host(dcn_backing *b, uint64_t at, uint64_t len, decant_view *out, decant_error *err)
{
    host *h = (host *)b;

    (void)err;
    decant_bytes_ref(b);
    *out = (decant_view){h->data + at, (size_t)len, &h->hold};
    return DECANT_OK;
}

static void release_view(dcn_hold *hold)
{
    dcn_backing *b = (dcn_backing *)((char *)hold - offsetof(host, hold));

    decant_bytes_unref(&b);
}

static dcn_backing *close_host(dcn_backing *b)
{
    host *h = (host *)b;

    if (h->release)
        h->release(h->ctx);
    dcn_free(&h);
    return NULL;
}

static const dcn_backing_ops ops = {
    .kind = "memory",
    .begin = read_host,
    .lend = lend_host,
    .close = close_host,
};

/* With room for `own` bytes. NULL without memory. */
static host *create(uint64_t len, size_t own)
{
    host *h = own <= SIZE_MAX - sizeof *h ? dcn_alloc(1, sizeof *h + own) : NULL;

    if (h) {
        dcn_backing_init(&h->base, &ops, len);
        h->hold.release = release_view;
    }
    return h;
}

decant_status dcn_bytes_wrap(const void *data, size_t len, void (*release)(void *ctx), void *ctx, decant_bytes **out,
                             decant_error *err)
{
    host *h = create(len, 0);

    if (!h)
        return dcn_error_nomem(err);
    h->data = data;
    h->release = release;
    h->ctx = ctx;
    *out = &h->base;
    return DECANT_OK;
}

decant_status dcn_bytes_copy(const void *data, size_t len, decant_bytes **out, decant_error *err)
{
    host *h = create(len, len);

    if (!h)
        return dcn_error_nomem(err);
    if (len)
        memcpy(h->own, data, len);
    h->data = h->own;
    *out = &h->base;
    return DECANT_OK;
}
