#include "output/output.h"

#include <assert.h>

#include "base/alloc.h"

/* What others hold back goes out in its place here: a stream has no front to come back to. */
typedef struct stream {
    dcn_output out;
    decant_status (*write)(void *ctx, const void *data, size_t len, decant_error *err);
    void *ctx;
    uint64_t at; /* what comes next */
} stream;

static decant_status write_chunk(stream *s, const dcn_chunk *c, decant_error *err)
{
    decant_error said = {.offset = DECANT_NO_OFFSET};
    decant_status rc = s->write(s->ctx, c->data, c->len, &said);

    return dcn_callback_outcome(rc, &said, "stream", err);
}

static decant_status write_stream(dcn_output *o, uint64_t at, const dcn_chunk *c, size_t count, decant_error *err)
{
    stream *s = (stream *)o;
    decant_status rc;

    (void)at; /* where asserts are compiled out */
    assert(at == s->at);
    for (size_t i = 0; i < count; i++) {
        if ((rc = write_chunk(s, &c[i], err)))
            return rc;
        s->at += c[i].len;
    }
    return DECANT_OK;
}

static void close_stream(dcn_output *o)
{
    dcn_free(&o);
}

static const dcn_output_ops stream_ops = {
    .kind = "stream",
    .can = DCN_RUNS_USER_CODE,
    .write = write_stream,
    .close = close_stream,
};

decant_status dcn_output_stream(decant_status (*write)(void *ctx, const void *data, size_t len, decant_error *err),
                                void *ctx, dcn_output **out, decant_error *err)
{
    stream *s = dcn_alloc(1, sizeof *s);

    if (!s)
        return dcn_error_nomem(err);
    s->out.ops = &stream_ops;
    s->write = write;
    s->ctx = ctx;
    *out = &s->out;
    return DECANT_OK;
}
