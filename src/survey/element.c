#include "survey/element.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/endian.h"
#include "base/text.h"

size_t dcn_whole_bytes(const decant_tensor *tensor)
{
    size_t unit = dcn_dtype(tensor->dtype)->bits / 8;
    uint64_t count;

    if (dcn_dtype(tensor->dtype)->bits % 8 || unit == 0 || dcn_shape_count(&count, tensor->shape, tensor->rank) ||
        count != tensor->len / unit || tensor->len % unit)
        return 0;
    return unit;
}

static float f32_of(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static double f64_of(uint64_t bits)
{
    double value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

/* IEEE 754 binary16 widened: sign, five bits of exponent, ten of fraction. */
static float f16_of(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16, exponent = bits >> 10 & 0x1F, fraction = bits & 0x3FF;

    if (exponent == 0x1F)
        return f32_of(sign | 0x7F800000 | fraction << 13);
    if (exponent == 0) {
        float small = (float)fraction / (1 << 24);

        return sign ? -small : small;
    }
    return f32_of(sign | (exponent + 127 - 15) << 23 | fraction << 13);
}

/* The fewest digits that read back as the same number of `digits` significant ones. */
static void put_real(char *out, size_t size, double value, int digits)
{
    for (int n = 1; n <= digits; n++) {
        snprintf(out, size, "%.*g", n, value);
        if (digits > 9 ? strtod(out, NULL) == value : strtof(out, NULL) == (float)value)
            return;
    }
}

void dcn_element_bits(char out[DCN_ELEMENT_TEXT], const void *at, size_t len)
{
    const uint8_t *bytes = at;

    snprintf(out, DCN_ELEMENT_TEXT, "0x");
    for (size_t i = 0; i < len && i < 8; i++)
        snprintf(out + 2 + 2 * i, DCN_ELEMENT_TEXT - 2 - 2 * i, "%02x", bytes[len - 1 - i]);
}

static void put_bool(char out[DCN_ELEMENT_TEXT], const void *at, size_t len, uint64_t value)
{
    if (value > 1)
        dcn_element_bits(out, at, len);
    else
        snprintf(out, DCN_ELEMENT_TEXT, "%s", value ? "true" : "false");
}

void dcn_element_text(char out[DCN_ELEMENT_TEXT], decant_dtype dtype, const void *at)
{
    const uint8_t *p = at;
    size_t used;

    switch (dtype) {
    case DECANT_F64:
        put_real(out, DCN_ELEMENT_TEXT, f64_of(dcn_le64(p)), 17);
        break;
    case DECANT_F32:
    case DECANT_FLEX32:
        put_real(out, DCN_ELEMENT_TEXT, (double)f32_of(dcn_le32(p)), 9);
        break;
    case DECANT_F16:
        put_real(out, DCN_ELEMENT_TEXT, (double)f16_of(dcn_le16(p)), 9);
        break;
    case DECANT_BF16:
        put_real(out, DCN_ELEMENT_TEXT, (double)f32_of((uint32_t)dcn_le16(p) << 16), 9);
        break;
    case DECANT_C64:
        put_real(out, DCN_ELEMENT_TEXT, (double)f32_of(dcn_le32(p)), 9);
        used = strlen(out);
        snprintf(out + used, DCN_ELEMENT_TEXT - used, "%s", signbit(f32_of(dcn_le32(p + 4))) ? "" : "+");
        used = strlen(out);
        put_real(out + used, DCN_ELEMENT_TEXT - used, (double)f32_of(dcn_le32(p + 4)), 9);
        used = strlen(out);
        snprintf(out + used, DCN_ELEMENT_TEXT - used, "i");
        break;
    case DECANT_I64:
        snprintf(out, DCN_ELEMENT_TEXT, "%" PRId64, (int64_t)dcn_le64(p));
        break;
    case DECANT_I32:
        snprintf(out, DCN_ELEMENT_TEXT, "%" PRId32, (int32_t)dcn_le32(p));
        break;
    case DECANT_I16:
        snprintf(out, DCN_ELEMENT_TEXT, "%d", (int16_t)dcn_le16(p));
        break;
    case DECANT_I8:
        snprintf(out, DCN_ELEMENT_TEXT, "%d", (int8_t)p[0]);
        break;
    case DECANT_U64:
        snprintf(out, DCN_ELEMENT_TEXT, "%" PRIu64, dcn_le64(p));
        break;
    case DECANT_U32:
        snprintf(out, DCN_ELEMENT_TEXT, "%" PRIu32, dcn_le32(p));
        break;
    case DECANT_U16:
        snprintf(out, DCN_ELEMENT_TEXT, "%u", dcn_le16(p));
        break;
    case DECANT_U8:
        snprintf(out, DCN_ELEMENT_TEXT, "%u", p[0]);
        break;
    case DECANT_BOOL:
    case DECANT_BOOL_U8:
        put_bool(out, p, 1, p[0]);
        break;
    case DECANT_BOOL_U32:
        put_bool(out, p, 4, dcn_le32(p));
        break;
    default:
        dcn_element_bits(out, p, dcn_dtype(dtype)->bits < 8 ? 1 : dcn_dtype(dtype)->bits / 8);
    }
}

void dcn_dtype_text(char out[DCN_ELEMENT_TEXT], const decant_tensor *tensor)
{
    static const char *const values[] = {"Q8F", "E5M2", "E4M3", "Q4F", "E2M1", "Q2F", "Q8S", "Q4S", "Q2S"};
    static const char *const scales[] = {"no", "F32", "F16", "BF16", "UE8M0", "UE4M3"};
    static const char *const stores[] = {"native", "packed native", "packed U32"};
    const decant_quant *q = tensor->quant;
    size_t used;

    if (!q) {
        snprintf(out, DCN_ELEMENT_TEXT, "%s", decant_dtype_name(tensor->dtype));
        return;
    }
    snprintf(out, DCN_ELEMENT_TEXT, "%s(%s%s, %s along %" PRIu64 ", %s scales", decant_dtype_name(tensor->dtype),
             values[q->value], q->mode == DECANT_QUANT_LOOKUP ? " by table" : "", stores[q->store], q->packed_dim,
             scales[q->tensor_scale]);
    if (q->block_scale != DECANT_SCALE_NONE) {
        used = strlen(out);
        snprintf(out + used, DCN_ELEMENT_TEXT - used, ", %s a block of", scales[q->block_scale]);
        for (size_t i = 0; i < q->block_rank; i++) {
            used = strlen(out);
            snprintf(out + used, DCN_ELEMENT_TEXT - used, "%s%u", i ? "x" : " ", q->block[i]);
        }
    }
    used = strlen(out);
    snprintf(out + used, DCN_ELEMENT_TEXT - used, ")");
}

void dcn_value_text(char out[DCN_ELEMENT_TEXT], const decant_value *value)
{
    switch (value->type) {
    case DECANT_VALUE_BOOL:
        snprintf(out, DCN_ELEMENT_TEXT, "%s", value->as.boolean ? "true" : "false");
        break;
    case DECANT_VALUE_I64:
        snprintf(out, DCN_ELEMENT_TEXT, "%" PRId64, value->as.i64);
        break;
    case DECANT_VALUE_U64:
        snprintf(out, DCN_ELEMENT_TEXT, "%" PRIu64, value->as.u64);
        break;
    case DECANT_VALUE_F64:
        put_real(out, DCN_ELEMENT_TEXT, f64_of(value->as.f64_bits), 17);
        break;
    case DECANT_VALUE_TEXT:
        dcn_text_escape(out, DCN_ELEMENT_TEXT, value->as.text.data, value->as.text.len);
        break;
    }
}
