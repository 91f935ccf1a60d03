#include "base/dtype.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/ckd.h"
#include "base/compiler.h"

static const dcn_dtype_row rows[] = {
    [DECANT_DTYPE_NONE] = {"blob", 0},
    [DECANT_F64] = {"F64", 64},
    [DECANT_F32] = {"F32", 32},
    [DECANT_F16] = {"F16", 16},
    [DECANT_BF16] = {"BF16", 16},
    [DECANT_I64] = {"I64", 64},
    [DECANT_I32] = {"I32", 32},
    [DECANT_I16] = {"I16", 16},
    [DECANT_I8] = {"I8", 8},
    [DECANT_U64] = {"U64", 64},
    [DECANT_U32] = {"U32", 32},
    [DECANT_U16] = {"U16", 16},
    [DECANT_U8] = {"U8", 8},
    [DECANT_BOOL] = {"BOOL", 8},
    [DECANT_BOOL_U8] = {"Bool(U8)", 8},
    [DECANT_BOOL_U32] = {"Bool(U32)", 32},
    [DECANT_FLEX32] = {"Flex32", 32},
    [DECANT_C64] = {"C64", 64},
    [DECANT_F8_E4M3] = {"F8_E4M3", 8},
    [DECANT_F8_E5M2] = {"F8_E5M2", 8},
    [DECANT_F8_E4M3FNUZ] = {"F8_E4M3FNUZ", 8},
    [DECANT_F8_E5M2FNUZ] = {"F8_E5M2FNUZ", 8},
    [DECANT_F8_E8M0] = {"F8_E8M0", 8},
    [DECANT_F6_E2M3] = {"F6_E2M3", 6},
    [DECANT_F6_E3M2] = {"F6_E3M2", 6},
    [DECANT_F4] = {"F4", 4},
    [DECANT_QFLOAT] = {"QFloat", 0},
};

size_t dcn_dtype_count(void)
{
    return sizeof rows / sizeof *rows;
}

const dcn_dtype_row *dcn_dtype(decant_dtype dtype)
{
    static const dcn_dtype_row none = {"unknown", 0};

    return (size_t)dtype < dcn_dtype_count() ? &rows[dtype] : &none;
}

const char *decant_dtype_name(decant_dtype dtype)
{
    return dcn_dtype(dtype)->name;
}

static DCN_SELDOM decant_status too_long(decant_dtype dtype, const uint64_t *shape, size_t rank, decant_error *err)
{
    char text[64];

    dcn_shape_text(text, sizeof text, shape, rank);
    return decant_error_set(err, DECANT_MALFORMED, "the length of shape %s, %s, overflows 64 bits", text,
                            decant_dtype_name(dtype));
}

decant_status dcn_dtype_len(decant_dtype dtype, const uint64_t *shape, size_t rank, uint64_t *len, decant_error *err)
{
    uint64_t count, bits;

    if (dcn_shape_count(&count, shape, rank) || dcn_ckd_mul(&bits, count, dcn_dtype(dtype)->bits))
        return too_long(dtype, shape, rank, err);
    if (bits % 8)
        return decant_error_set(err, DECANT_MALFORMED, "%" PRIu64 " elements of %s end inside a byte", count,
                                decant_dtype_name(dtype));
    *len = bits / 8;
    return DECANT_OK;
}

void dcn_shape_text(char *out, size_t size, const uint64_t *shape, size_t rank)
{
    enum { LONGEST = 22, END = 5 }; /* ", " and twenty digits; "...]" and the NUL */
    size_t used = (size_t)snprintf(out, size, "["), i = 0;

    for (; i < rank && used + LONGEST + END <= size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%" PRIu64, i ? ", " : "", shape[i]);
    snprintf(out + used, size - used, "%s]", i < rank ? "..." : "");
}
