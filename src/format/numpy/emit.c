#include <assert.h>
#include <inttypes.h>

#include "base/dtype.h"
#include "base/endian.h"
#include "format/numpy/layout.h"

/* NumPy's name of a dtype; NULL if it has none. Burn's own types go by what their bytes are. */
static const char *descr_of(decant_dtype dtype)
{
    switch (dtype) {
    case DECANT_F64:
        return "<f8";
    case DECANT_F32:
    case DECANT_FLEX32:
        return "<f4";
    case DECANT_F16:
        return "<f2";
    case DECANT_C64:
        return "<c8";
    case DECANT_I64:
        return "<i8";
    case DECANT_I32:
        return "<i4";
    case DECANT_I16:
        return "<i2";
    case DECANT_I8:
        return "|i1";
    case DECANT_U64:
        return "<u8";
    case DECANT_U32:
    case DECANT_BOOL_U32:
        return "<u4";
    case DECANT_U16:
        return "<u2";
    case DECANT_U8:
    case DECANT_BOOL_U8:
        return "|u1";
    case DECANT_BOOL:
        return "|b1";
    default:
        return NULL;
    }
}

bool dcn_npy_takes(decant_dtype dtype, size_t rank)
{
    return descr_of(dtype) && rank <= DCN_NPY_RANK;
}

static void put_header(dcn_buf *buf, const dcn_entry *entry)
{
    size_t digits = DCN_NPY_GROWTH; /* of the first extent */

    dcn_buf_put(buf, DCN_NPY_MAGIC, sizeof DCN_NPY_MAGIC);
    dcn_buf_fill(buf, 0, DCN_NPY_PREFIX - buf->len);
    dcn_buf_format(buf, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr_of((decant_dtype)entry->dtype));
    for (size_t i = 0; i < entry->rank; i++) {
        size_t before = buf->len;

        dcn_buf_format(buf, i ? ", %" PRIu64 : "%" PRIu64, entry->shape[i]);
        if (i == 0)
            digits = buf->len - before;
    }
    dcn_buf_text(buf, entry->rank == 1 ? ",), }" : "), }");
    dcn_buf_fill(buf, ' ', DCN_NPY_GROWTH - digits);
    dcn_buf_fill(buf, ' ', DCN_NPY_ALIGN - (buf->len + 1) % DCN_NPY_ALIGN);
    dcn_buf_byte(buf, '\n');
}

/* A model of one tensor. */
static decant_status emit(const decant_model *model, const dcn_layout *how, dcn_plans *out, decant_error *err)
{
    const dcn_entry *entry = &model->entries[0];
    dcn_buf header = {0};
    dcn_plan *plan;
    uint64_t at;
    decant_status rc;

    (void)how;
    assert(model->count == 1);
    if (!dcn_npy_takes((decant_dtype)entry->dtype, entry->rank)) {
        rc = decant_error_set(err, DECANT_UNSUPPORTED, "NumPy has no %s of rank %u",
                              decant_dtype_name((decant_dtype)entry->dtype), entry->rank);
        dcn_error_hint(err, "take its bytes: --to raw");
        dcn_error_tensor(err, entry->name, entry->name_len);
        dcn_error_side(err, DECANT_SIDE_INPUT);
        return rc;
    }
    put_header(&header, entry);
    if ((rc = dcn_buf_check(&header, err)))
        goto done;
    at = header.len;
    dcn_put_le(header.data + DCN_NPY_PREFIX - 2, at - DCN_NPY_PREFIX, 2);
    if ((rc = dcn_plans_add(out, model, &plan, err)) || (rc = dcn_plan_literal(plan, 0, &header, err)) ||
        (rc = dcn_plan_entry(plan, at, 0, err)))
        goto done;
    dcn_plan_finish(plan, at + entry->data.len);
    plan->held = at;
done:
    dcn_buf_close(&header);
    return rc;
}

static const char *const extensions[] = {"npy", NULL};

const dcn_format dcn_npy = {.name = "npy", .extensions = extensions, .emit = emit};
