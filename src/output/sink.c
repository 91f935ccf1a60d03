#include "output/output.h"

#include "base/alloc.h"

static decant_status swallow(dcn_output *o, uint64_t at, const dcn_chunk *c, size_t count, decant_error *err)
{
    (void)o;
    (void)at;
    (void)c;
    (void)count;
    (void)err;
    return DECANT_OK;
}

static void close_sink(dcn_output *o)
{
    dcn_free(&o);
}

static const dcn_output_ops sink_ops = {
    .kind = "sink",
    .write = swallow,
    .close = close_sink,
};

decant_status dcn_output_sink(dcn_output **out, decant_error *err)
{
    dcn_output *o = dcn_alloc(1, sizeof *o);

    if (!o)
        return dcn_error_nomem(err);
    o->ops = &sink_ops;
    *out = o;
    return DECANT_OK;
}
