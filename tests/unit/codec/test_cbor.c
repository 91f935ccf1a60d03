#include "support/alloc.h"
#include "support/test.h"

#include <stdlib.h>

#include "codec/cbor.h"

/* Bytes are parsed where they end with their memory, so that a sanitizer sees one byte too far. They stand at byte 10. */
static uint8_t *data;
static dcn_cbor cbor;
static decant_error err;

static void on_bytes(const void *bytes, size_t len)
{
    free(data);
    data = malloc(len ? len : 1);
    CHECK(data);
    if (len)
        memcpy(data, bytes, len);
    err = (decant_error){0};
    cbor = dcn_cbor_on(data, len, 10, &err);
}

static size_t from_hex(const char *hex, uint8_t *out)
{
    size_t len = 0;
    char digits[3] = {0};

    for (; *hex; hex += 2) {
        memcpy(digits, hex, 2);
        out[len++] = (uint8_t)strtoul(digits, NULL, 16);
    }
    return len;
}

static void on(const char *hex)
{
    uint8_t bytes[256];

    on_bytes(bytes, from_hex(hex, bytes));
}

/* Skips what the hex says: the status of it, which must have taken all. */
static decant_status skipped(const char *hex)
{
    on(hex);
    if (dcn_cbor_skip(&cbor))
        CHECK(cbor.at == cbor.end);
    CHECK_EQ(cbor.status, err.status);
    return cbor.status;
}

static const char *text_of(const char *hex)
{
    static char copy[256];
    dcn_chunk out;

    on(hex);
    if (!dcn_cbor_text(&cbor, &out))
        return "(none)";
    memcpy(copy, out.data, out.len);
    copy[out.len] = '\0';
    return copy;
}

static uint64_t u64_of(const char *hex)
{
    uint64_t out = 0;

    on(hex);
    CHECK_EQ(dcn_cbor_u64(&cbor, &out), cbor.status == DECANT_OK);
    return out;
}

static int64_t i64_of(const char *hex)
{
    int64_t out = 0;

    on(hex);
    CHECK_EQ(dcn_cbor_i64(&cbor, &out), cbor.status == DECANT_OK);
    return out;
}

static uint64_t bits_of(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* --- floats ------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *hex;
    double value;
    uint64_t bits; /* of the NaNs */
} floats[] = {
    {"f90000", 0.0, 0},
    {"f98000", -0.0, 0},
    {"f93c00", 1.0, 0},
    {"f93e00", 1.5, 0},
    {"fb3fb999999999999a", 0.1, 0},
    {"fa3dcccccd", (double)0.1f, 0},
    {"fb3f50624dd2f1a9fc", 0.001, 0},
    {"fb7e37e43c8800759c", 1e300, 0},
    {"fb0000000000000001", 5e-324, 0},
    {"f97bff", 65504.0, 0},
    {"fa477fe100", 65505.0, 0},
    {"fa477ff000", 65520.0, 0},
    {"fa47800000", 65536.0, 0},
    {"fa45001000", 2049.0, 0},
    {"fb4170000010000000", 16777217.0, 0},
    {"f90001", 0x1p-24, 0},
    {"fa33000000", 0x1p-25, 0},
    {"f903ff", 0x1p-14 - 0x1p-24, 0},
    {"f90400", 0x1p-14, 0},
    {"fa00000001", 0x1p-149, 0},
    {"fb3690000000000000", 0x1p-150, 0},
    {"fa7f7fffff", 0x1.fffffep127, 0},
    {"fb47f0000000000000", 0x1p128, 0},
    {"f97c00", 0, UINT64_C(0x7FF0000000000000)},
    {"f9fc00", 0, UINT64_C(0xFFF0000000000000)},
    {"f97e00", 0, UINT64_C(0x7FF8000000000000)},
    {"f9fe00", 0, UINT64_C(0xFFF8000000000000)},
    {"f97f00", 0, UINT64_C(0x7FFC000000000000)},
    {"fa7fc00001", 0, UINT64_C(0x7FF8000020000000)},
    {"fb7ff8000000000001", 0, UINT64_C(0x7FF8000000000001)},
    {"fb7ff0000000000001", 0, UINT64_C(0x7FF0000000000001)},
    {"fb7ff4000000000000", 0, UINT64_C(0x7FF4000000000000)},
};

/* As ciborium 0.2.2 writes them for burn-pack. */
TEST(floats__shrink_only_where_every_bit_comes_back)
{
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
        uint64_t bits = floats[i].bits ? floats[i].bits : bits_of(floats[i].value), back = 0;
        uint8_t wanted[9];
        size_t len = from_hex(floats[i].hex, wanted);
        dcn_buf buf = {0};

        dcn_cbor_put_f64(&buf, bits);
        CHECK_BYTES(buf.data, buf.len, wanted, len);
        dcn_buf_close(&buf);

        on(floats[i].hex);
        CHECK(dcn_cbor_f64(&cbor, &back));
        CHECK_EQ(back, bits);
    }
}

/* The host's own conversions agree for every half and for many singles; NaNs by their rule alone. */
TEST(floats__widen_as_the_hardware_does)
{
    uint64_t state = 1;

    for (uint32_t i = 0; i < 200000; i++) {
        uint32_t word = i < 0x800000 / 64 ? i * 64 + 1 : (uint32_t)test_random(&state);
        uint8_t bytes[5] = {0xFA, (uint8_t)(word >> 24), (uint8_t)(word >> 16), (uint8_t)(word >> 8), (uint8_t)word};
        uint64_t bits = 0;
        float single;

        on_bytes(bytes, sizeof bytes);
        CHECK(dcn_cbor_f64(&cbor, &bits));
        memcpy(&single, &word, sizeof single);
        if (single == single)
            CHECK_EQ(bits, bits_of(single));
    }
    for (uint32_t h = 0; h < 0x7C00; h++) {
        uint8_t bytes[3] = {0xF9, (uint8_t)(h >> 8), (uint8_t)h};
        uint32_t exponent = h >> 10;
        double value = exponent ? (double)(0x400 | (h & 0x3FF)) : (double)h;
        uint64_t bits = 0;

        for (uint32_t e = exponent ? exponent : 1; e > 1; e--)
            value *= 2;
        on_bytes(bytes, sizeof bytes);
        CHECK(dcn_cbor_f64(&cbor, &bits));
        CHECK_EQ(bits, bits_of(value * 0x1p-24));
    }
}

TEST(floats__of_signalling_nans_become_quiet)
{
    uint64_t bits = 0;

    on("f97d00");
    CHECK(dcn_cbor_f64(&cbor, &bits));
    CHECK_EQ(bits, UINT64_C(0x7FFC000000000000));
    on("faff800001");
    CHECK(dcn_cbor_f64(&cbor, &bits));
    CHECK_EQ(bits, UINT64_C(0xFFF8000020000000));
}

/* --- integers ----------------------------------------------------------------------------------------------------- */

TEST(integers__are_written_shortest_and_read_at_any_width)
{
    static const struct {
        const char *hex;
        int64_t value;
    } cases[] = {
        {"00", 0},
        {"17", 23},
        {"1818", 24},
        {"18ff", 255},
        {"190100", 256},
        {"19ffff", 65535},
        {"1a00010000", 65536},
        {"1affffffff", UINT32_MAX},
        {"1b0000000100000000", INT64_C(1) << 32},
        {"1b7fffffffffffffff", INT64_MAX},
        {"20", -1},
        {"37", -24},
        {"3818", -25},
        {"38ff", -256},
        {"390100", -257},
        {"3b7fffffffffffffff", INT64_MIN},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t wanted[9];
        size_t len = from_hex(cases[i].hex, wanted);
        dcn_buf buf = {0};

        dcn_cbor_put_i64(&buf, cases[i].value);
        CHECK_BYTES(buf.data, buf.len, wanted, len);
        CHECK_EQ(dcn_cbor_head_len((uint64_t)(cases[i].value < 0 ? -1 - cases[i].value : cases[i].value)), len);
        dcn_buf_close(&buf);
        CHECK_EQ(i64_of(cases[i].hex), cases[i].value);
    }
    CHECK_EQ(u64_of("1bffffffffffffffff"), UINT64_MAX);
    CHECK_EQ(u64_of("1805"), 5);
    CHECK_EQ(u64_of("1b0000000000000005"), 5);
    CHECK_EQ(i64_of("3b0000000000000005"), -6);
}

TEST(integers__may_be_bignums_that_fit)
{
    CHECK_EQ(u64_of("c241ff"), 255);
    CHECK_EQ(u64_of("c240"), 0);
    CHECK_EQ(u64_of("c24a0000ffffffffffffffff"), UINT64_MAX);
    CHECK_EQ(u64_of("c25f41014102ff"), 258);
    CHECK_EQ(i64_of("c34105"), -6);
    u64_of("c249010000000000000000");
    CHECK_HAS(err.message, "integer of more than 64 bits at byte 11");
    u64_of("c34105");
    CHECK_HAS(err.message, "negative number");
    u64_of("4105");
    CHECK_TEXT(err.found, "bytes");
}

TEST(integers__are_refused_where_they_do_not_fit)
{
    u64_of("20");
    CHECK_EQ(err.status, DECANT_MALFORMED);
    CHECK_EQ(err.offset, 10);
    i64_of("1b8000000000000000");
    CHECK_EQ(err.status, DECANT_MALFORMED);
    i64_of("3b8000000000000000");
    CHECK_EQ(err.status, DECANT_MALFORMED);
    u64_of("f93c00");
    CHECK_TEXT(err.found, "a float");
    CHECK_TEXT(err.expected, "an integer");
}

/* --- text --------------------------------------------------------------------------------------------------------- */

TEST(text__is_taken_whole_or_in_chunks)
{
    CHECK_TEXT(text_of("60"), "");
    CHECK_TEXT(text_of("63616263"), "abc");
    CHECK_TEXT(text_of("7803616263"), "abc");
    CHECK_TEXT(text_of("7b0000000000000003616263"), "abc");
    CHECK_TEXT(text_of("7f616162626360616478016580ff"), "(none)");
    CHECK_TEXT(text_of("7f6161626263606164780165ff"), "abcde");
    CHECK_TEXT(text_of("7fff"), "");
    CHECK_TEXT(text_of("c1d9d9f763616263"), "abc");
    CHECK_TEXT(text_of("62c3bc"), "\xC3\xBC");
}

TEST(text__is_refused_if_it_is_not_utf8_or_not_text)
{
    CHECK_TEXT(text_of("61ff"), "(none)");
    CHECK_HAS(err.message, "not UTF-8 at byte 10");
    CHECK_TEXT(text_of("63eda080"), "(none)");
    CHECK_TEXT(text_of("7f61c361bcff"), "(none)"); /* a character across chunks */
    CHECK_TEXT(text_of("7f7f6161ffff"), "(none)"); /* chunks of chunks */
    CHECK_TEXT(text_of("7f4161ff"), "(none)");
    CHECK_TEXT(err.found, "bytes");
    CHECK_TEXT(err.expected, "a chunk of text");
    CHECK_TEXT(text_of("4161"), "(none)");
    CHECK_TEXT(err.expected, "text");
    CHECK_TEXT(text_of("7f6161"), "(none)");
    CHECK_TEXT(text_of("626162"), "ab");
    CHECK_TEXT(text_of("636162"), "(none)");
    CHECK_HAS(err.message, "longer than what is left");
    CHECK_TEXT(text_of("7bffffffffffffffff61"), "(none)");
}

TEST(keys__are_text_or_bytes)
{
    dcn_chunk key;

    on("4161");
    CHECK(dcn_cbor_key(&cbor, &key));
    CHECK_BYTES(key.data, key.len, "a", 1);
    on("6161");
    CHECK(dcn_cbor_key(&cbor, &key));
    on("01");
    CHECK(!dcn_cbor_key(&cbor, &key));
    CHECK_TEXT(err.found, "an integer");
}

/* --- containers --------------------------------------------------------------------------------------------------- */

TEST(maps__end_by_count_or_by_break)
{
    static const char *const maps[] = {"a2616101616202", "bf616101616202ff", "b900026161016162c102",
                                       "d9d9f7a2616101616202"};

    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) {
        dcn_cbor_run run;
        dcn_chunk key;
        uint64_t value, sum = 0;

        on(maps[i]);
        CHECK(dcn_cbor_map(&cbor, &run));
        CHECK_EQ(cbor.depth, 1);
        while (dcn_cbor_more(&cbor, &run)) {
            CHECK(dcn_cbor_text(&cbor, &key) && key.len == 1);
            CHECK(dcn_cbor_u64(&cbor, &value));
            sum = sum * 10 + value;
        }
        CHECK_EQ(cbor.status, DECANT_OK);
        CHECK_EQ(sum, 12);
        CHECK_EQ(cbor.depth, 0);
        CHECK(cbor.at == cbor.end);
        CHECK_EQ(dcn_cbor_offset(&cbor), 10 + (uint64_t)(cbor.end - cbor.start));
    }
}

TEST(arrays_of_integers__may_be_bytes)
{
    uint64_t out[2] = {0};
    size_t count;

    on("820102");
    CHECK(dcn_cbor_u64s(&cbor, out, 2, &count) && count == 2 && out[0] == 1 && out[1] == 2);
    on("9f18801bffffffffffffffffff");
    CHECK(dcn_cbor_u64s(&cbor, out, 2, &count) && count == 2 && out[0] == 128 && out[1] == UINT64_MAX);
    on("420780");
    CHECK(dcn_cbor_u64s(&cbor, out, 2, &count) && count == 2 && out[0] == 7 && out[1] == 128);
    on("80");
    CHECK(dcn_cbor_u64s(&cbor, out, 2, &count) && count == 0);
    on("8301020f");
    out[1] = 9;
    CHECK(dcn_cbor_u64s(&cbor, out, 1, &count) && count == 3 && out[1] == 9);
    CHECK(cbor.at == cbor.end);
    on("43010203");
    CHECK(dcn_cbor_u64s(&cbor, out, 1, &count) && count == 3 && out[1] == 9);
    on("8120");
    CHECK(!dcn_cbor_u64s(&cbor, out, 2, &count));
    on("a0");
    CHECK(!dcn_cbor_u64s(&cbor, out, 2, &count));
    CHECK_TEXT(err.expected, "an array");
    on("9f01");
    CHECK(!dcn_cbor_u64s(&cbor, out, 2, &count));
}

TEST(counts__are_compared_with_the_bytes_that_are_there)
{
    CHECK_EQ(skipped("9bffffffffffffffff00"), DECANT_MALFORMED);
    CHECK_EQ(skipped("bb7fffffffffffffff00"), DECANT_MALFORMED);
    CHECK_EQ(skipped("a20001"), DECANT_MALFORMED);
    CHECK_HAS(err.message, "longer than what is left of the metadata at byte 10");
    CHECK_EQ(skipped("8301"), DECANT_MALFORMED);
}

TEST(peek__sees_past_tags_and_takes_nothing)
{
    on("c1a0");
    CHECK_EQ(dcn_cbor_peek(&cbor), DCN_CBOR_MAP);
    CHECK(cbor.at == cbor.start);
    on("");
    CHECK_EQ(dcn_cbor_peek(&cbor), DCN_CBOR_TAG);
    on("ff");
    CHECK_EQ(dcn_cbor_peek(&cbor), DCN_CBOR_TAG);
    CHECK_EQ(cbor.status, DECANT_OK);
    CHECK_EQ(err.status, DECANT_OK);
}

TEST(null__is_taken_only_if_it_is_one)
{
    bool flag;

    on("f6f7f5c1f6");
    CHECK(dcn_cbor_null(&cbor));
    CHECK(dcn_cbor_null(&cbor));
    CHECK(!dcn_cbor_null(&cbor));
    CHECK(dcn_cbor_bool(&cbor, &flag) && flag);
    CHECK(!dcn_cbor_null(&cbor)); /* a tagged one is none */
    CHECK(!dcn_cbor_bool(&cbor, &flag));
    CHECK_TEXT(err.found, "null");
    on("f8");
    CHECK(!dcn_cbor_null(&cbor));
    on("f815");
    CHECK(!dcn_cbor_bool(&cbor, &flag));
}

/* --- whatever comes ----------------------------------------------------------------------------------------------- */

TEST(skip__takes_any_item_that_is_well_formed)
{
    static const char *const good[] = {
        "00",
        "3bffffffffffffffff",
        "40",
        "5f41014102ff",
        "7f6161ff",
        "80",
        "9fff",
        "bfff",
        "a1818001",
        "f4",
        "f7",
        "f90000",
        "c1c100",
        "9f9f9fffffff",
        "bf00bf0000ffff",
        "fb0000000000000000",
        "a20102a0a10000",
    };

    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        CHECK_EQ(skipped(good[i]), DECANT_OK);
}

TEST(skip__refuses_what_is_not_well_formed)
{
    static const char *const bad[] = {
        "",     "18",   "1c",   "1f",     "3f",   "5f00ff", "5f6161ff", "61ff",   "7c",   "81",
        "9f",   "9f00", "a100", "bf00ff", "bf00", "c1",     "df00",     "e0",     "f3",   "f800",
        "f818", "f8ff", "fc",   "fe",     "ff",   "81ff",   "a1ff00",   "a100ff", "9f1c", "fb00",
    };

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK_EQ(skipped(bad[i]), DECANT_MALFORMED);
        CHECK(err.offset >= 10 && err.offset <= 10 + strlen(bad[i]) / 2);
    }
}

/* Arrays, `outer` of them opened by hand as maps, the rest skipped. */
static decant_status nested(unsigned outer, unsigned inner)
{
    uint8_t bytes[512];
    size_t len = 0;
    dcn_cbor_run run;
    dcn_chunk key;

    for (unsigned i = 0; i < outer; i++) {
        memcpy(bytes + len, "\xA1\x60", 2);
        len += 2;
    }
    for (unsigned i = 0; i < inner; i++)
        bytes[len++] = 0x81;
    bytes[len++] = 0xF6;
    on_bytes(bytes, len);
    for (unsigned i = 0; i < outer; i++)
        CHECK(dcn_cbor_map(&cbor, &run) && dcn_cbor_more(&cbor, &run) && dcn_cbor_text(&cbor, &key));
    dcn_cbor_skip(&cbor);
    return cbor.status;
}

TEST(depth__is_128_wherever_it_starts)
{
    CHECK_EQ(nested(0, 128), DECANT_OK);
    CHECK_EQ(nested(0, 129), DECANT_LIMIT);
    CHECK_EQ(nested(0, 300), DECANT_LIMIT);
    CHECK_EQ(nested(1, 127), DECANT_OK);
    CHECK_EQ(nested(1, 128), DECANT_LIMIT);
    CHECK_EQ(nested(3, 125), DECANT_OK);
    CHECK_EQ(nested(3, 126), DECANT_LIMIT);
    CHECK_HAS(err.message, "nested more than 128 deep");
    CHECK_TEXT(err.hint, "write the file again with less nesting"); /* not --allow limits, which does not lift it */
}

TEST(failure__is_the_first_and_stays)
{
    uint64_t value;
    dcn_chunk chunk;
    dcn_cbor_run run;

    on("2001");
    CHECK(!dcn_cbor_u64(&cbor, &value));
    CHECK(!dcn_cbor_u64(&cbor, &value));
    CHECK(!dcn_cbor_map(&cbor, &run));
    CHECK(!dcn_cbor_more(&cbor, &run));
    CHECK(!dcn_cbor_text(&cbor, &chunk));
    CHECK(!dcn_cbor_skip(&cbor));
    dcn_cbor_fail(&cbor, DECANT_LIMIT, "later");
    CHECK_EQ(cbor.status, DECANT_MALFORMED);
    CHECK_HAS(err.message, "negative number");
}

TEST(writing__without_memory_is_remembered)
{
    dcn_buf buf = {0};

    test_alloc_fail(0);
    dcn_cbor_put(&buf, DCN_CBOR_MAP, 1);
    dcn_cbor_put_text(&buf, "a", 1);
    dcn_cbor_put_null(&buf);
    CHECK_FAILS(dcn_buf_check(&buf, &err), DECANT_NOMEM, &err);
    CHECK_EQ(buf.len, 0);
}
