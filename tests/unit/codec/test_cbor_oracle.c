/*
 * Against libcbor, on bytes that are nearly CBOR. Random, but the same every time. Not for text that is not UTF-8, which
 * libcbor takes, nor for half NaNs and subnormals, which it writes wrong.
 */
#include "support/test.h"

#include <stdlib.h>

#include <cbor.h>

#include "codec/cbor.h"

enum { ITEMS = 60000, SIZE = 400 };

static uint64_t state;

static unsigned pick(unsigned below)
{
    return (unsigned)(test_random(&state) % below);
}

typedef struct bytes {
    uint8_t data[SIZE];
    size_t len;
} bytes;

static void add(bytes *b, unsigned byte)
{
    if (b->len < SIZE)
        b->data[b->len++] = (uint8_t)byte;
}

/* A head of any width that holds the value. */
static void add_head(bytes *b, unsigned type, uint64_t value)
{
    unsigned least = value < 24 ? 0 : value < 256 ? 1 : value < 65536 ? 2 : 3, width = least + pick(5 - least);

    if (width == 0) {
        add(b, type << 5 | (unsigned)value);
        return;
    }
    add(b, type << 5 | (23 + width));
    for (unsigned i = 1u << (width - 1); i-- > 0;)
        add(b, i < 8 ? (unsigned)(value >> 8 * i) & 0xFF : 0);
}

static void add_string(bytes *b, unsigned type, unsigned len)
{
    add_head(b, type, len);
    while (len--)
        add(b, 'a' + pick(26));
}

/* An item. Nested as deep as `depth`. */
static void add_item(bytes *b, unsigned depth)
{
    unsigned kind = pick(depth ? 10 : 6), count = pick(4);

    if (pick(12) == 0)
        add_head(b, 6, pick(100));
    switch (kind) {
    case 0:
    case 1:
        add_head(b, kind, pick(3) ? pick(300) : pick(70000));
        break;
    case 2:
    case 3:
        if (pick(4)) {
            add_string(b, kind, pick(30));
        } else {
            add(b, kind << 5 | 31);
            while (count--)
                add_string(b, kind, pick(5));
            add(b, 0xFF);
        }
        break;
    case 4:
        add(b, 0xF4 + pick(4));
        break;
    case 5:
        add(b, 0xFA);
        for (unsigned i = 0; i < 4; i++)
            add(b, pick(256));
        break;
    default: {
        unsigned type = 4 + kind % 2, left = count * (type == 5 ? 2 : 1);
        bool open = pick(2);

        if (open)
            add(b, type << 5 | 31);
        else
            add_head(b, type, count);
        while (left--)
            add_item(b, depth - 1);
        if (open)
            add(b, 0xFF);
    }
    }
}

static void spoil(bytes *b)
{
    unsigned at = pick((unsigned)b->len);

    switch (pick(3)) {
    case 0:
        b->data[at] = (uint8_t)pick(256);
        break;
    case 1:
        b->len = at;
        break;
    default:
        b->data[at] ^= (uint8_t)(1u << pick(8));
    }
}

/* libcbor 0.8 refuses short tags that had no meaning when it was written. */
static bool is_unassigned_tag(const bytes *b, size_t at)
{
    return at < b->len && b->data[at] >= 0xC6 && b->data[at] <= 0xD4;
}

TEST(cbor_oracle__accepts_what_libcbor_does)
{
    unsigned good = 0, bad = 0;

    state = 7;
    for (unsigned i = 0; i < ITEMS; i++) {
        struct cbor_load_result result;
        cbor_item_t *item = NULL;
        bytes b = {.len = 0};
        uint8_t *copy;
        dcn_cbor cbor;
        decant_error err;

        add_item(&b, 4);
        if (pick(2))
            spoil(&b);
        copy = malloc(b.len ? b.len : 1);
        CHECK(copy);
        memcpy(copy, b.data, b.len);
        cbor = dcn_cbor_on(copy, b.len, 0, &err);
        if (dcn_cbor_skip(&cbor)) {
            item = cbor_load(b.data, b.len, &result);
            CHECK(item || is_unassigned_tag(&b, result.error.position));
            CHECK(!item || (size_t)(cbor.at - cbor.start) == result.read);
            good++;
        } else if (!strstr(err.message, "longer than") && !strstr(err.message, "UTF-8") &&
                   !strstr(err.message, "simple value")) {
            item = cbor_load(b.data, b.len, &result); /* which allocates what a length claims: not asked about those */
            CHECK(!item);
            bad++;
        }
        if (item)
            cbor_decref(&item);
        free(copy);
    }
    CHECK(good > ITEMS / 3 && bad > ITEMS / 50);
}

TEST(cbor_oracle__writes_the_heads_that_libcbor_does)
{
    state = 8;
    for (unsigned i = 0; i < 5000; i++) {
        uint64_t value = test_random(&state) >> pick(64);
        uint8_t wanted[9];
        dcn_buf buf = {0};

        dcn_cbor_put(&buf, DCN_CBOR_UINT, value);
        CHECK_BYTES(buf.data, buf.len, wanted, cbor_encode_uint(value, wanted, sizeof wanted));
        buf.len = 0;
        dcn_cbor_put(&buf, DCN_CBOR_NEGATIVE, value);
        CHECK_BYTES(buf.data, buf.len, wanted, cbor_encode_negint(value, wanted, sizeof wanted));
        buf.len = 0;
        dcn_cbor_put(&buf, DCN_CBOR_MAP, value);
        CHECK_BYTES(buf.data, buf.len, wanted, cbor_encode_map_start((size_t)value, wanted, sizeof wanted));
        buf.len = 0;
        dcn_cbor_put_bool(&buf, value & 1);
        CHECK_BYTES(buf.data, buf.len, wanted, cbor_encode_bool(value & 1, wanted, sizeof wanted));
        dcn_buf_close(&buf);
    }
}
