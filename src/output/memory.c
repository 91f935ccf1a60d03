#include "output/output.h"

#include "base/alloc.h"

typedef struct memory {
    dcn_output out;
    uint8_t *dst;
    size_t len;
    bool ours; /* allocated by begin */
} memory;

static decant_status begin(dcn_output *o, const dcn_plan *plan, decant_error *err)
{
    memory *m = (memory *)o;
    decant_status rc;

    if (plan->total <= m->len)
        return DECANT_OK;
    rc = decant_error_set(err, DECANT_NO_SPACE, "the memory is too small");
    dcn_error_found(err, "%zu bytes", m->len);
    dcn_error_expected(err, "%llu bytes", (unsigned long long)plan->total);
    dcn_error_hint(err, "decant_size() says how much is needed");
    return rc;
}

static decant_status begin_new(dcn_output *o, const dcn_plan *plan, decant_error *err)
{
    memory *m = (memory *)o;

    if (plan->total > SIZE_MAX)
        return dcn_error_nomem(err);
    m->dst = dcn_alloc_pages((size_t)plan->total);
    m->len = (size_t)plan->total;
    return m->dst ? DECANT_OK : dcn_error_nomem(err);
}

static void *lend(dcn_output *o, uint64_t at, size_t len)
{
    (void)len;
    return ((memory *)o)->dst + at;
}

static void close_memory(dcn_output *o)
{
    memory *m = (memory *)o;

    if (m->ours)
        dcn_free(&m->dst);
    dcn_free(&m);
}

static const dcn_output_ops memory_ops = {
    .kind = "memory",
    .can = DCN_CAN_LEND,
    .begin = begin,
    .lend = lend,
    .close = close_memory,
};

static const dcn_output_ops new_ops = {
    .kind = "new memory",
    .can = DCN_CAN_LEND,
    .begin = begin_new,
    .lend = lend,
    .close = close_memory,
};

static decant_status create(const dcn_output_ops *ops, void *dst, size_t len, dcn_output **out, decant_error *err)
{
    memory *m = dcn_alloc(1, sizeof *m);

    if (!m)
        return dcn_error_nomem(err);
    m->out.ops = ops;
    m->dst = dst;
    m->len = len;
    m->ours = ops == &new_ops;
    *out = &m->out;
    return DECANT_OK;
}

decant_status dcn_output_memory(void *dst, size_t len, dcn_output **out, decant_error *err)
{
    return create(&memory_ops, dst, len, out, err);
}

decant_status dcn_output_new(dcn_output **out, decant_error *err)
{
    return create(&new_ops, NULL, 0, out, err);
}

decant_status dcn_output_new_take(dcn_output *o, decant_bytes **out, decant_error *err)
{
    memory *m = (memory *)o;
    decant_status rc = dcn_bytes_wrap(m->dst, m->len, dcn_free_raw, m->dst, out, err);

    if (rc == DECANT_OK)
        m->ours = false;
    return rc;
}
