#include "output/output.h"

#include "base/alloc.h"

typedef struct sink {
    dcn_output out;
    dcn_see *see; /* NULL: nobody looks */
    void *ctx;
} sink;

static decant_status show(dcn_output *o, uint64_t at, const dcn_chunk *c, size_t count, decant_error *err)
{
    sink *s = (sink *)o;
    decant_status rc = DECANT_OK;

    for (size_t i = 0; s->see && i < count && rc == DECANT_OK; i++) {
        rc = s->see(s->ctx, at, &c[i], err);
        at += c[i].len;
    }
    return rc;
}

static void close_sink(dcn_output *o)
{
    dcn_free(&o);
}

static const dcn_output_ops sink_ops = {
    .kind = "sink",
    .write = show,
    .close = close_sink,
};

decant_status dcn_output_sink(dcn_see *see, void *ctx, dcn_output **out, decant_error *err)
{
    sink *s = dcn_alloc(1, sizeof *s);

    if (!s)
        return dcn_error_nomem(err);
    s->out.ops = &sink_ops;
    s->see = see;
    s->ctx = ctx;
    *out = &s->out;
    return DECANT_OK;
}
