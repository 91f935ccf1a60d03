#include "codec/cbor.h"

#include <string.h>

#include "base/endian.h"
#include "base/text.h"

/* The low five bits of an initial byte that mean more than a value. */
enum { ONE_BYTE = 24, EIGHT_BYTES = 27, INDEFINITE = 31 };

/* Of the last major type. */
enum { FALSE = 20, TRUE = 21, NIL = 22, UNDEFINED = 23, HALF = 25, SINGLE = 26, DOUBLE = 27, BREAK = 0xFF };

enum { TAG_BIGNUM = 2, TAG_NEGATIVE_BIGNUM = 3, NO_TAG = 0 };

typedef struct head {
    uint8_t *at;
    uint64_t value;
    uint64_t tag; /* the last one in front of it */
    dcn_cbor_type type;
    unsigned info; /* the low five bits */
} head;

dcn_cbor dcn_cbor_on(void *data, size_t len, uint64_t offset, decant_error *err)
{
    uint8_t *start = data;

    return (dcn_cbor){.start = start, .at = start, .end = start + len, .offset = offset, .err = err};
}

uint64_t dcn_cbor_offset(const dcn_cbor *cbor)
{
    return cbor->offset + (uint64_t)(cbor->at - cbor->start);
}

/* --- failures ----------------------------------------------------------------------------------------------------- */

static bool fail_at(dcn_cbor *cbor, const uint8_t *at, decant_status status, const char *what)
{
    uint64_t offset = cbor->offset + (uint64_t)(at - cbor->start);

    if (!cbor->status) {
        cbor->status = decant_error_set(cbor->err, status, "%s", what);
        dcn_error_at(cbor->err, offset);
    }
    return false;
}

void dcn_cbor_fail(dcn_cbor *cbor, decant_status status, const char *what)
{
    fail_at(cbor, cbor->at, status, what);
}

static bool too_short(dcn_cbor *cbor, const uint8_t *at)
{
    return fail_at(cbor, at, DECANT_MALFORMED, "CBOR item is longer than what is left of the metadata");
}

static const char *name_of(const head *h)
{
    static const char *const names[] = {
        [DCN_CBOR_UINT] = "an integer", [DCN_CBOR_NEGATIVE] = "a negative integer",
        [DCN_CBOR_BYTES] = "bytes",     [DCN_CBOR_TEXT] = "text",
        [DCN_CBOR_ARRAY] = "an array",  [DCN_CBOR_MAP] = "a map",
        [DCN_CBOR_TAG] = "a tag",
    };

    if (h->type != DCN_CBOR_OTHER)
        return names[h->type];
    switch (h->info) {
    case FALSE:
    case TRUE:
        return "a boolean";
    case NIL:
    case UNDEFINED:
        return "null";
    case HALF:
    case SINGLE:
    case DOUBLE:
        return "a float";
    default:
        return "a simple value";
    }
}

static bool unexpected(dcn_cbor *cbor, const head *h, const char *expected)
{
    if (!cbor->status) {
        fail_at(cbor, h->at, DECANT_MALFORMED, "wrong type");
        dcn_error_found(cbor->err, "%s", name_of(h));
        dcn_error_expected(cbor->err, "%s", expected);
    }
    return false;
}

/* --- heads -------------------------------------------------------------------------------------------------------- */

/* A head of more than one byte, or none. */
static bool take_long_head(dcn_cbor *cbor, head *h)
{
    size_t left = (size_t)(cbor->end - cbor->at), more;

    if (cbor->status)
        return false;
    if (left == 0)
        return fail_at(cbor, cbor->at, DECANT_MALFORMED, "metadata ends where an item should stand");
    if (h->info == INDEFINITE) {
        if (h->type < DCN_CBOR_BYTES || h->type == DCN_CBOR_TAG)
            return fail_at(cbor, h->at, DECANT_MALFORMED, "reserved CBOR head");
        cbor->at++;
        return true;
    }
    if (h->info > EIGHT_BYTES)
        return fail_at(cbor, h->at, DECANT_MALFORMED, "reserved CBOR head");
    more = (size_t)1 << (h->info & 3); /* 24 to 27 */
    if (more >= left)
        return too_short(cbor, h->at);
    switch (more) {
    case 1:
        h->value = cbor->at[1];
        break;
    case 2:
        h->value = (uint64_t)cbor->at[1] << 8 | cbor->at[2];
        break;
    case 4:
        h->value = dcn_be32(cbor->at + 1);
        break;
    default:
        h->value = dcn_be64(cbor->at + 1);
    }
    cbor->at += 1 + more;
    return true;
}

/* The next head, whatever it is. */
static inline bool take_head(dcn_cbor *cbor, head *h)
{
    unsigned byte = cbor->at < cbor->end ? *cbor->at : 0u;

    *h = (head){.at = cbor->at, .value = byte & 31u, .type = (dcn_cbor_type)(byte >> 5), .info = byte & 31u};
    if (h->info >= ONE_BYTE || cbor->status || cbor->at == cbor->end)
        return take_long_head(cbor, h);
    cbor->at++;
    return true;
}

/* The next item's own head, past its tags. */
static inline bool take_item(dcn_cbor *cbor, head *h)
{
    uint64_t tag = NO_TAG;

    while (take_head(cbor, h)) {
        if (h->type == DCN_CBOR_TAG) {
            tag = h->value;
            continue;
        }
        if (*h->at == BREAK)
            return fail_at(cbor, h->at, DECANT_MALFORMED, "break where an item should stand");
        h->tag = tag;
        return true;
    }
    return false;
}

dcn_cbor_type dcn_cbor_peek(const dcn_cbor *cbor)
{
    dcn_cbor look = *cbor;
    head h;

    look.err = NULL;
    return take_item(&look, &h) ? h.type : DCN_CBOR_TAG;
}

/* --- containers --------------------------------------------------------------------------------------------------- */

/* Enters the map or array of which `h` is the head. */
static bool enter(dcn_cbor *cbor, const head *h, dcn_cbor_run *run)
{
    uint64_t each = h->type == DCN_CBOR_MAP ? 2 : 1; /* bytes that an item, or a pair, has at least */

    *run = (dcn_cbor_run){.left = h->value, .open = h->info == INDEFINITE};
    if (cbor->depth == DCN_CBOR_DEPTH) { /* as in the reference, and nothing lifts it */
        fail_at(cbor, h->at, DECANT_LIMIT, "CBOR nested more than 128 deep");
        dcn_error_hint(cbor->err, "write the file again with less nesting");
        return false;
    }
    if (!run->open && run->left > (uint64_t)(cbor->end - cbor->at) / each)
        return too_short(cbor, h->at);
    cbor->depth++;
    return true;
}

bool dcn_cbor_map(dcn_cbor *cbor, dcn_cbor_run *run)
{
    head h;

    *run = (dcn_cbor_run){0};
    return take_item(cbor, &h) && (h.type == DCN_CBOR_MAP ? enter(cbor, &h, run) : unexpected(cbor, &h, "a map"));
}

bool dcn_cbor_more(dcn_cbor *cbor, dcn_cbor_run *run)
{
    if (cbor->status)
        return false;
    if (run->open && cbor->at < cbor->end && *cbor->at == BREAK) {
        cbor->at++;
        cbor->depth--;
        return false;
    }
    if (!run->open && run->left == 0) {
        cbor->depth--;
        return false;
    }
    run->left--;
    return true;
}

/* --- strings ------------------------------------------------------------------------------------------------------ */

/* The content of one chunk of text or bytes. */
static bool take_chunk(dcn_cbor *cbor, const head *h, dcn_chunk *out)
{
    if (h->value > (uint64_t)(cbor->end - cbor->at))
        return too_short(cbor, h->at);
    *out = (dcn_chunk){cbor->at, (size_t)h->value};
    cbor->at += out->len;
    return h->type != DCN_CBOR_TEXT || dcn_utf8_valid(out->data, out->len) ||
           fail_at(cbor, h->at, DECANT_MALFORMED, "text that is not UTF-8");
}

/* The content of text or bytes; chunks are moved together over their own heads. `out` NULL: it is passed over as it is. */
static bool take_string(dcn_cbor *cbor, const head *h, dcn_chunk *out)
{
    uint8_t *to = cbor->at;
    dcn_chunk chunk;
    head part;

    if (h->info != INDEFINITE)
        return take_chunk(cbor, h, out ? out : &chunk);
    if (out)
        *out = (dcn_chunk){to, 0};
    while (take_head(cbor, &part)) {
        if (*part.at == BREAK)
            return true;
        if (part.type != h->type || part.info == INDEFINITE)
            return unexpected(cbor, &part, h->type == DCN_CBOR_TEXT ? "a chunk of text" : "a chunk of bytes");
        if (!take_chunk(cbor, &part, &chunk))
            return false;
        if (out) {
            memmove(to + out->len, chunk.data, chunk.len);
            out->len += chunk.len;
        }
    }
    return false;
}

bool dcn_cbor_text(dcn_cbor *cbor, dcn_chunk *out)
{
    head h;

    return take_item(cbor, &h) && (h.type == DCN_CBOR_TEXT ? take_string(cbor, &h, out) : unexpected(cbor, &h, "text"));
}

bool dcn_cbor_key(dcn_cbor *cbor, dcn_chunk *out)
{
    head h;

    return take_item(cbor, &h) &&
           (h.type == DCN_CBOR_TEXT || h.type == DCN_CBOR_BYTES ? take_string(cbor, &h, out)
                                                                : unexpected(cbor, &h, "a key that is text"));
}

bool dcn_cbor_is_text(dcn_cbor *cbor, const char *text, size_t len)
{
    const uint8_t *at = cbor->at;

    if (cbor->status || len >= (size_t)(cbor->end - at) || *at != (DCN_CBOR_TEXT << 5 | len) ||
        memcmp(at + 1, text, len) != 0)
        return false;
    cbor->at += 1 + len;
    return true;
}

/* --- numbers ------------------------------------------------------------------------------------------------------ */

/* An integer: `value`, or -1 - `value` if it is negative. */
static bool integer(dcn_cbor *cbor, bool *negative, uint64_t *value)
{
    dcn_chunk digits;
    head h;

    if (!take_item(cbor, &h))
        return false;
    if (h.type == DCN_CBOR_BYTES && (h.tag == TAG_BIGNUM || h.tag == TAG_NEGATIVE_BIGNUM)) {
        const uint8_t *at;

        if (!take_string(cbor, &h, &digits))
            return false;
        for (at = digits.data; digits.len && *at == 0; digits.len--)
            at++;
        if (digits.len > 8)
            return fail_at(cbor, h.at, DECANT_MALFORMED, "integer of more than 64 bits");
        *negative = h.tag == TAG_NEGATIVE_BIGNUM;
        *value = dcn_be(at, (unsigned)digits.len);
        return true;
    }
    *negative = h.type == DCN_CBOR_NEGATIVE;
    *value = h.value;
    return h.type <= DCN_CBOR_NEGATIVE || unexpected(cbor, &h, "an integer");
}

bool dcn_cbor_u64(dcn_cbor *cbor, uint64_t *out)
{
    const uint8_t *at = cbor->at;
    bool negative;

    if (at < cbor->end && *at < ONE_BYTE && !cbor->status) { /* most extents and many offsets */
        *out = *cbor->at++;
        return true;
    }
    return integer(cbor, &negative, out) &&
           (!negative || fail_at(cbor, at, DECANT_MALFORMED, "negative number where none may be"));
}

bool dcn_cbor_i64(dcn_cbor *cbor, int64_t *out)
{
    const uint8_t *at = cbor->at;
    uint64_t value;
    bool negative;

    if (!integer(cbor, &negative, &value))
        return false;
    if (value > INT64_MAX)
        return fail_at(cbor, at, DECANT_MALFORMED, "integer that does not fit 64 bits with a sign");
    *out = negative ? -1 - (int64_t)value : (int64_t)value;
    return true;
}

bool dcn_cbor_u64s(dcn_cbor *cbor, uint64_t *out, size_t cap, size_t *count)
{
    dcn_cbor_run run;
    dcn_chunk bytes;
    uint64_t value;
    head h;

    *count = 0;
    if (!take_item(cbor, &h))
        return false;
    if (h.type == DCN_CBOR_BYTES) {
        if (!take_string(cbor, &h, &bytes))
            return false;
        for (*count = 0; *count < bytes.len && *count < cap; ++*count)
            out[*count] = ((const uint8_t *)bytes.data)[*count];
        *count = bytes.len;
        return true;
    }
    if (h.type != DCN_CBOR_ARRAY)
        return unexpected(cbor, &h, "an array");
    if (!enter(cbor, &h, &run))
        return false;
    for (; dcn_cbor_more(cbor, &run); ++*count) {
        if (!dcn_cbor_u64(cbor, &value))
            return false;
        if (*count < cap)
            out[*count] = value;
    }
    return !cbor->status;
}

/* --- floats, by their bits: narrowing in hardware would quiet the NaNs that must be told apart -------------------- */

#define QUIET (UINT64_C(1) << 51)

typedef struct width {
    unsigned exponent, fraction; /* bits */
} width;

static const width half = {5, 10}, single = {8, 23};

static uint64_t widen(uint64_t bits, width from)
{
    uint64_t sign = bits >> (from.exponent + from.fraction) << 63;
    uint64_t fraction = bits & ((UINT64_C(1) << from.fraction) - 1);
    int top = (1 << from.exponent) - 1, exponent = (int)(bits >> from.fraction) & top, bias = top >> 1;
    unsigned shift = 52 - from.fraction;

    if (exponent == top)
        return sign | UINT64_C(0x7FF) << 52 | fraction << shift | (fraction ? QUIET : 0);
    if (exponent == 0) {
        if (fraction == 0)
            return sign;
        for (exponent = 1; !(fraction >> from.fraction); exponent--)
            fraction <<= 1;
        fraction &= (UINT64_C(1) << from.fraction) - 1;
    }
    return sign | (uint64_t)(exponent - bias + 1023) << 52 | fraction << shift;
}

/* Cuts to fewer bits. False if widening would not give the same back. */
static bool narrow(uint64_t bits, width to, uint64_t *out)
{
    uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1);
    int top = (1 << to.exponent) - 1, exponent = (int)(bits >> 52 & 0x7FF), narrowed = exponent - 1023 + (top >> 1);
    unsigned shift = 52 - to.fraction;

    *out = bits >> 63 << (to.exponent + to.fraction);
    if (exponent == 0x7FF)
        *out |= (uint64_t)top << to.fraction | fraction >> shift;
    else if (narrowed >= top)
        return false;
    else if (narrowed > 0)
        *out |= (uint64_t)narrowed << to.fraction | fraction >> shift;
    else if (narrowed > -(int)to.fraction) /* subnormal; below that it is a zero, or becomes one */
        *out |= (UINT64_C(1) << 52 | fraction) >> (shift + 1 - (unsigned)narrowed);
    return widen(*out, to) == bits;
}

bool dcn_cbor_f64(dcn_cbor *cbor, uint64_t *bits)
{
    head h;

    if (!take_item(cbor, &h))
        return false;
    if (h.type != DCN_CBOR_OTHER || h.info < HALF)
        return unexpected(cbor, &h, "a float");
    *bits = h.info == HALF ? widen(h.value, half) : h.info == SINGLE ? widen(h.value, single) : h.value;
    return true;
}

bool dcn_cbor_bool(dcn_cbor *cbor, bool *out)
{
    head h;

    if (!take_item(cbor, &h))
        return false;
    if (h.type != DCN_CBOR_OTHER || (h.info != FALSE && h.info != TRUE))
        return unexpected(cbor, &h, "a boolean");
    *out = h.info == TRUE;
    return true;
}

bool dcn_cbor_null(dcn_cbor *cbor)
{
    bool is_null = !cbor->status && cbor->at < cbor->end && *cbor->at >> 5 == DCN_CBOR_OTHER &&
                   ((*cbor->at & 31) == NIL || (*cbor->at & 31) == UNDEFINED);

    cbor->at += is_null;
    return is_null;
}

/* --- skipping ----------------------------------------------------------------------------------------------------- */

typedef struct level {
    dcn_cbor_run run;
    bool is_map, wants_value;
} level;

/* Steps out of the containers that end here. Whether one is left, with an item next. */
static bool step(dcn_cbor *cbor, level *levels, size_t *open)
{
    while (*open) {
        level *top = &levels[*open - 1];

        if (top->wants_value) {
            top->wants_value = false;
            return true;
        }
        if (dcn_cbor_more(cbor, &top->run)) {
            top->wants_value = top->is_map;
            return true;
        }
        --*open;
    }
    return false;
}

bool dcn_cbor_skip(dcn_cbor *cbor)
{
    level levels[DCN_CBOR_DEPTH];
    size_t open = 0;
    dcn_cbor_run run;
    head h;

    do {
        if (!take_item(cbor, &h))
            return false;
        switch (h.type) {
        case DCN_CBOR_BYTES:
        case DCN_CBOR_TEXT:
            take_string(cbor, &h, NULL);
            break;
        case DCN_CBOR_ARRAY:
        case DCN_CBOR_MAP:
            if (enter(cbor, &h, &run)) /* bounds `open` too */
                levels[open++] = (level){.run = run, .is_map = h.type == DCN_CBOR_MAP};
            break;
        case DCN_CBOR_OTHER:
            if (h.info < FALSE || h.info == ONE_BYTE)
                fail_at(cbor, h.at, DECANT_MALFORMED, "simple value without a meaning");
            break;
        default:
            break;
        }
    } while (!cbor->status && step(cbor, levels, &open));
    return !cbor->status;
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

unsigned dcn_cbor_head_len(uint64_t value)
{
    return value < ONE_BYTE ? 1 : value <= UINT8_MAX ? 2 : value <= UINT16_MAX ? 3 : value <= UINT32_MAX ? 5 : 9;
}

/* An initial byte and 1 to 8 `bytes` more: eight are written, what is behind them is written over. @return how many in all */
static unsigned write_head(uint8_t *at, dcn_cbor_type type, unsigned info, uint64_t value, unsigned bytes)
{
    dcn_put_be64(at + 1, value << 8 * (8 - bytes));
    at[0] = (uint8_t)(type << 5 | info);
    return 1 + bytes;
}

unsigned dcn_cbor_write_long(uint8_t *at, dcn_cbor_type type, uint64_t value)
{
    if (value <= UINT8_MAX)
        return write_head(at, type, ONE_BYTE, value, 1);
    if (value <= UINT16_MAX)
        return write_head(at, type, ONE_BYTE + 1, value, 2);
    if (value <= UINT32_MAX)
        return write_head(at, type, ONE_BYTE + 2, value, 4);
    return write_head(at, type, EIGHT_BYTES, value, 8);
}

void dcn_cbor_put_i64(dcn_buf *buf, int64_t value)
{
    if (value < 0)
        dcn_cbor_put(buf, DCN_CBOR_NEGATIVE, (uint64_t)(-1 - value));
    else
        dcn_cbor_put(buf, DCN_CBOR_UINT, (uint64_t)value);
}

void dcn_cbor_put_bool(dcn_buf *buf, bool value)
{
    dcn_cbor_put(buf, DCN_CBOR_OTHER, value ? TRUE : FALSE);
}

void dcn_cbor_put_null(dcn_buf *buf)
{
    dcn_cbor_put(buf, DCN_CBOR_OTHER, NIL);
}

static void put_float(dcn_buf *buf, unsigned info, uint64_t bits, unsigned bytes)
{
    uint8_t *at = dcn_buf_reserve(buf, DCN_CBOR_HEAD);

    if (at)
        buf->len += write_head(at, DCN_CBOR_OTHER, info, bits, bytes);
}

void dcn_cbor_put_f64(dcn_buf *buf, uint64_t bits)
{
    uint64_t narrowed;

    if (narrow(bits, half, &narrowed))
        put_float(buf, HALF, narrowed, 2);
    else if (narrow(bits, single, &narrowed))
        put_float(buf, SINGLE, narrowed, 4);
    else
        put_float(buf, DOUBLE, bits, 8);
}
