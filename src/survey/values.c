#include "survey/values.h"

#include "base/compiler.h"
#include "base/endian.h"
#include "survey/element.h"

/* --- zeros ----------------------------------------------------------------------------------------------------------- */

/* The run of zeros that is open ended at `at`. */
static void end_run(dcn_tally *t, uint64_t at)
{
    if (t->run > t->values.zeros) {
        t->values.zeros = t->run;
        t->values.zeros_begin = at - t->run;
    }
}

/* Runs of eight bytes and more are found exactly; shorter ones inside a word are passed over. */
static void count_zeros(dcn_tally *t, const uint8_t *data, size_t len)
{
    size_t i = 0;

    for (; len - i >= 8; i += 8) {
        uint64_t word = dcn_le64(data + i);

        if (word == 0) {
            t->run += 8;
            continue;
        }
        t->run += dcn_zeros_below(word) / 8;
        end_run(t, t->at + i + dcn_zeros_below(word) / 8);
        t->run = 0;
        for (; !(word >> 56); word <<= 8)
            t->run++;
    }
    for (; i < len; i++) {
        if (data[i] == 0) {
            t->run++;
            continue;
        }
        end_run(t, t->at + i);
        t->run = 0;
    }
}

/* --- numbers --------------------------------------------------------------------------------------------------------- */

/* How the bits of an element say that it is no number, or infinite. */
typedef struct kind {
    size_t width;      /* bytes of a number; 0: all bits are numbers */
    uint64_t infinite; /* the bits of an infinity, without its sign */
    uint64_t above;    /* without the sign, more than this is no number */
    uint64_t sole;     /* these bits, sign and all, are no number */
} kind;

#define NONE UINT64_MAX /* bits that no element has */

static kind kind_of(decant_dtype dtype)
{
    switch (dtype) {
    case DECANT_F64:
        return (kind){8, UINT64_C(0x7FF) << 52, UINT64_C(0x7FF) << 52, NONE};
    case DECANT_F32:
    case DECANT_FLEX32:
    case DECANT_C64: /* two of them */
        return (kind){4, 0x7F800000, 0x7F800000, NONE};
    case DECANT_F16:
        return (kind){2, 0x7C00, 0x7C00, NONE};
    case DECANT_BF16:
        return (kind){2, 0x7F80, 0x7F80, NONE};
    case DECANT_F8_E5M2:
        return (kind){1, 0x7C, 0x7C, NONE};
    case DECANT_F8_E4M3:
        return (kind){1, NONE, 0x7E, NONE};
    case DECANT_F8_E4M3FNUZ:
    case DECANT_F8_E5M2FNUZ:
        return (kind){1, NONE, NONE, 0x80};
    case DECANT_F8_E8M0:
        return (kind){1, NONE, NONE, 0xFF};
    default:
        return (kind){0};
    }
}

static inline uint64_t load(const uint8_t *at, size_t width)
{
    return width == 8 ? dcn_le64(at) : width == 4 ? dcn_le32(at) : width == 2 ? dcn_le16(at) : *at;
}

/* Without branches, so that it is as fast as memory for each width that is known where this is called; then once for the first. */
static inline void count_kinds(dcn_tally *t, kind k, const uint8_t *data, size_t len, size_t width)
{
    const uint64_t magnitude = UINT64_MAX >> (65 - 8 * width);
    bool is_first = !(t->values.nans + t->values.infinities);
    uint64_t nans = 0, infinities = 0;

    for (size_t i = 0; i < len; i += width) {
        uint64_t word = load(data + i, width), size = word & magnitude;

        nans += (size > k.above) | (word == k.sole);
        infinities += size == k.infinite;
    }
    t->values.nans += nans;
    t->values.infinities += infinities;
    for (size_t i = 0; is_first && nans + infinities; i += width) {
        uint64_t word = load(data + i, width), size = word & magnitude;

        is_first = size <= k.above && word != k.sole && size != k.infinite;
        t->values.first = (t->at + i) / t->unit;
    }
}

static void count_numbers(dcn_tally *t, const uint8_t *data, size_t len)
{
    kind k = kind_of(t->values.tensor->dtype);

    switch (k.width) {
    case 8:
        count_kinds(t, k, data, len, 8);
        break;
    case 4:
        count_kinds(t, k, data, len, 4);
        break;
    case 2:
        count_kinds(t, k, data, len, 2);
        break;
    case 1:
        count_kinds(t, k, data, len, 1);
        break;
    default: /* all bits are numbers */
        break;
    }
}

static void count_booleans(dcn_tally *t, const uint8_t *data, size_t len)
{
    size_t width = t->values.tensor->dtype == DECANT_BOOL_U32 ? 4 : 1;

    for (size_t i = 0; i < len; i += width)
        t->values.neither += load(data + i, width) > 1;
}

/* --- one tensor ------------------------------------------------------------------------------------------------------ */

void dcn_tally_begin(dcn_tally *t, const decant_tensor *tensor)
{
    size_t unit = dcn_whole_bytes(tensor);

    *t = (dcn_tally){.values = {.tensor = tensor, .total = tensor->len / (unit ? unit : 1)}, .unit = unit ? unit : 1};
    t->is_whole = unit != 0;
}

void dcn_tally_put(dcn_tally *t, const uint8_t *data, size_t len)
{
    decant_dtype dtype = t->values.tensor->dtype;

    count_zeros(t, data, len);
    if (t->is_whole && (dtype == DECANT_BOOL || dtype == DECANT_BOOL_U8 || dtype == DECANT_BOOL_U32))
        count_booleans(t, data, len);
    else if (t->is_whole)
        count_numbers(t, data, len);
    t->at += len;
}

bool dcn_tally_end(dcn_tally *t, uint64_t longest)
{
    decant_values *v = &t->values;

    end_run(t, t->at);
    if (v->zeros < longest && v->zeros < t->at)
        v->zeros = v->zeros_begin = 0;
    return v->nans || v->infinities || v->neither || v->zeros;
}
