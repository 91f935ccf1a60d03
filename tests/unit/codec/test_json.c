#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>

#include "codec/json.h"

/* A text is parsed where it ends with its memory, so that a sanitizer sees one byte too far. It stands at byte 8. */
static char *text;
static dcn_json json;
static decant_error err;

static void on_bytes(const char *bytes, size_t len)
{
    free(text);
    text = malloc(len ? len : 1);
    CHECK(text);
    if (len)
        memcpy(text, bytes, len);
    err = (decant_error){0};
    json = dcn_json_on(text, len, 8, &err);
}

static void on(const char *bytes)
{
    on_bytes(bytes, strlen(bytes));
}

/* Whether it is JSON, of any kind. */
static decant_status check(const char *bytes)
{
    on(bytes);
    dcn_json_skip(&json, DCN_JSON_DEPTH);
    return dcn_json_end(&json);
}

static const char *string_of(const char *bytes)
{
    static dcn_chunk out;

    on(bytes);
    CHECK_OK((dcn_json_string(&json, &out), dcn_json_end(&json)), &err);
    CHECK_EQ(strlen(out.data), out.len);
    return out.data;
}

static decant_status u64_of(const char *bytes, uint64_t *out)
{
    on(bytes);
    dcn_json_u64(&json, out);
    return dcn_json_end(&json);
}

static void put_string(const char *bytes, size_t len, const char *wanted)
{
    dcn_buf buf = {0};

    dcn_json_put_string(&buf, bytes, len);
    CHECK_OK(dcn_buf_check(&buf, &err), &err);
    CHECK_BYTES(buf.data, buf.len, wanted, strlen(wanted));
    dcn_buf_close(&buf);
}

TEST(peek__tells_what_the_next_token_starts_with_and_leaves_it)
{
    dcn_chunk key;
    uint64_t number;

    on(" { \"a\" : \n7 } ");
    CHECK_EQ(dcn_json_peek(&json), '{');
    CHECK(dcn_json_object(&json) && dcn_json_key(&json, &key));
    CHECK_EQ(dcn_json_peek(&json), '7');
    CHECK_EQ(*json.at, '7');
    CHECK(dcn_json_u64(&json, &number) && number == 7 && !dcn_json_key(&json, &key));
    CHECK_EQ(dcn_json_peek(&json), '\0');
    CHECK_EQ(dcn_json_end(&json), DECANT_OK);
    CHECK(!dcn_json_object(&json));
    CHECK_EQ(dcn_json_peek(&json), '\0');
}

TEST(json__walks_objects_and_arrays)
{
    dcn_chunk key, value;
    uint64_t number;

    on(" { \"a\" : [ 1 , [ ] , {\"b\":null} ] ,\t\"c\":\"d\"\r\n} ");
    CHECK(dcn_json_object(&json));
    CHECK(dcn_json_key(&json, &key));
    CHECK_BYTES(key.data, key.len, "a", 1);
    CHECK(dcn_json_array(&json));
    CHECK(dcn_json_item(&json) && dcn_json_u64(&json, &number));
    CHECK_EQ(number, 1);
    CHECK(dcn_json_item(&json) && dcn_json_array(&json) && !dcn_json_item(&json));
    CHECK(dcn_json_item(&json) && !dcn_json_null(&json) && dcn_json_object(&json));
    CHECK(dcn_json_key(&json, &key) && dcn_json_null(&json) && !dcn_json_key(&json, &key));
    CHECK(!dcn_json_item(&json));
    CHECK(dcn_json_key(&json, &key) && dcn_json_string(&json, &value));
    CHECK_BYTES(value.data, value.len, "d", 1);
    CHECK(!dcn_json_key(&json, &key));
    CHECK_EQ(json.depth, 0);
    CHECK_OK(dcn_json_end(&json), &err);
}

TEST(json__takes_the_key_that_is_expected_or_nothing)
{
    static const char a[] = "\"a\":", longer[] = "\"a\":1,\"b\":2}";
    dcn_chunk key;
    uint64_t n;

    on("{\"a\":1,\"b\" :2,\"a\":3}");
    CHECK(dcn_json_object(&json));
    CHECK(!dcn_json_is_key(&json, "\"b\":", 4));
    CHECK(dcn_json_is_key(&json, a, 4) && dcn_json_u64(&json, &n) && n == 1);
    CHECK(!dcn_json_is_key(&json, a, 4));        /* another key */
    CHECK(!dcn_json_is_key(&json, "\"b\":", 4)); /* a space */
    CHECK(dcn_json_key(&json, &key) && dcn_json_u64(&json, &n) && n == 2);
    CHECK(dcn_json_is_key(&json, a, 4) && dcn_json_u64(&json, &n) && n == 3);
    CHECK(!dcn_json_is_key(&json, a, 4));
    CHECK(!dcn_json_key(&json, &key));
    CHECK_OK(dcn_json_end(&json), &err);

    on("{\"a\":1");
    CHECK(dcn_json_object(&json));
    CHECK(!dcn_json_is_key(&json, longer, sizeof longer - 1)); /* past the end */
    CHECK(!dcn_json_is_key(&json, "a", 1));
    CHECK(!dcn_json_u64(&json, &n));
    CHECK(!dcn_json_is_key(&json, a, 4)); /* it has failed */
}

TEST(json__keeps_all_64_bits_of_an_integer)
{
    uint64_t value;

    CHECK_OK(u64_of("18446744073709551615", &value), &err);
    CHECK(value == UINT64_MAX);
    CHECK_OK(u64_of(" 9007199254740993 ", &value), &err);
    CHECK_EQ(value, 9007199254740993);
    CHECK_OK(u64_of("0", &value), &err);
    CHECK_EQ(value, 0);
}

TEST(json__refuses_integers_that_are_not_plain)
{
    static const char *const refused[] = {"18446744073709551616",
                                          "99999999999999999999",
                                          "1.0",
                                          "1e0",
                                          "1E5",
                                          "-1",
                                          "-0",
                                          "+1",
                                          "01",
                                          "00",
                                          "1e400",
                                          "0x10",
                                          "NaN",
                                          "",
                                          " ",
                                          "\"1\"",
                                          "1.",
                                          "1 1"};
    uint64_t value;

    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (u64_of(refused[i], &value) != DECANT_MALFORMED)
            test_fail(__FILE__, __LINE__, "%s is taken for an integer", refused[i]);
    CHECK_FAILS(u64_of(" 1e400", &value), DECANT_MALFORMED, &err);
    CHECK_TEXT(err.found, "1e400");
    CHECK_EQ(err.offset, 9);
}

TEST(json__unescapes_strings_where_they_lie)
{
    CHECK_TEXT(string_of("\"\""), "");
    CHECK_TEXT(string_of("\"plain\""), "plain");
    CHECK_TEXT(string_of("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""), "\"\\/\b\f\n\r\t");
    CHECK_TEXT(string_of("\"\\u0061\\u00e9\\u6c34\\uD834\\udd1e\""), "a\xc3\xa9\xe6\xb0\xb4\xf0\x9d\x84\x9e");
    CHECK_TEXT(string_of("\"\xc3\xa9\\n\xe6\xb0\xb4 and a long plain tail \xf0\x9d\x84\x9e\\u0021.\""),
               "\xc3\xa9\n\xe6\xb0\xb4 and a long plain tail \xf0\x9d\x84\x9e!.");
    CHECK_TEXT(string_of("\"\x7f\""), "\x7f");
}

TEST(json__counts_strings_that_hold_a_nul)
{
    dcn_chunk out;

    on("\"a\\u0000b\"");
    CHECK(dcn_json_string(&json, &out));
    CHECK_BYTES(out.data, out.len, "a\0b", 3);
}

/* Every place of a special byte in a word, since words are looked at whole. */
TEST(json__finds_the_end_of_a_string_at_every_place_of_a_word)
{
    static const char specials[] = {'"', '\\', '\n', '\x1f', '\xc3', '\x80'};

    for (size_t place = 0; place < 24; place++) {
        for (size_t s = 0; s < sizeof specials; s++) {
            char bytes[40];
            dcn_chunk out;

            memset(bytes, '#', sizeof bytes);
            bytes[0] = bytes[39] = '"';
            bytes[1 + place] = specials[s];
            on_bytes(bytes, sizeof bytes);
            if (specials[s] == '"') {
                CHECK(dcn_json_string(&json, &out));
                CHECK_EQ(out.len, place);
            } else {
                CHECK(!dcn_json_string(&json, &out));
                CHECK_EQ(err.offset, 8 + 1 + place + (specials[s] == '\\'));
            }
        }
    }
}

TEST(json__refuses_what_is_no_text)
{
    static const struct {
        const char *bytes;
        unsigned at; /* in the text */
    } refused[] = {
        {"\"\xff\"", 1},
        {"\"\xc0\xaf\"", 1},         /* overlong */
        {"\"\xe0\x80\xaf\"", 1},     /* overlong */
        {"\"ab\xed\xa0\x80\"", 3},   /* a surrogate */
        {"\"\xf4\x90\x80\x80\"", 1}, /* past U+10FFFF */
        {"\"\xc3\xa9\xc3\"", 3},     /* cut */
        {"\"\\u0041\xc3\"", 7},      /* cut, after an escape */
        {"\"\xc3\\u0041\"", 1},      /* cut, before an escape */
        {"\"\\ud800\"", 1},          /* half a pair */
        {"\"\\udc00\"", 1},          /* the other half */
        {"\"\\ud800\\u0041\"", 1},   /* half a pair and something else */
        {"\"\\ud800\\ud800\"", 1},   /* two halves of a kind */
        {"\"\\u12g4\"", 2},
        {"\"\\u12\"", 2},
        {"\"\\x41\"", 2},
        {"\"\\U0041\"", 2},
        {"\"a\tb\"", 2}, /* a raw control */
        {"\"a\nb\"", 2},
        {"\"abc", 4}, /* no end */
        {"\"abc\\", 5},
        {"\xef\xbb\xbf\"a\"", 0}, /* a byte order mark */
        {"'a'", 0},
    };

    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        dcn_chunk out;

        on(refused[i].bytes);
        if (dcn_json_string(&json, &out))
            test_fail(__FILE__, __LINE__, "%s is taken for a string", refused[i].bytes);
        if (err.offset != 8 + refused[i].at)
            test_fail(__FILE__, __LINE__, "%s: at %llu, wanted %u", refused[i].bytes, (unsigned long long)err.offset,
                      8 + refused[i].at);
    }
}

TEST(json__refuses_what_only_looks_like_json)
{
    static const char *const refused[] = {
        "",
        " ",
        "{",
        "[",
        "}",
        "]",
        "{]",
        "[}",
        "{\"a\"}",
        "{\"a\":",
        "{a:1}",
        "{\"a\":1,}",
        "[1,]",
        "[,1]",
        "{,}",
        "[1 2]",
        "{\"a\" 1}",
        "nul",
        "truE",
        "nullx",
        "true false",
        "[1]]",
        "{}{}",
        "// c\n1",
        "[1/* c */]",
        "NaN",
        "Infinity",
        "-",
        "-a",
        "1.",
        ".5",
        "1e",
        "1e+",
        "01",
        "-01",
        "0x1",
        "+1",
        "\v1",
        ("\xa0"
         "1"),
        "[\"a\":1]",
        "{\"a\",1}",
        "{1:2}",
        "{\"a\":1 \"b\":2}",
    };

    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (check(refused[i]) != DECANT_MALFORMED)
            test_fail(__FILE__, __LINE__, "%s is taken for JSON", refused[i]);
    on_bytes("{}\0", 3);
    dcn_json_skip(&json, DCN_JSON_DEPTH);
    CHECK_FAILS(dcn_json_end(&json), DECANT_MALFORMED, &err);
    CHECK_TEXT(err.found, "the byte 0x00");
}

TEST(json__skips_every_kind_of_value)
{
    CHECK_OK(check("[null,true,false,0,-0,-1.5e-3,1E+9,\"x\\n\",[],{},[[{}]],{\"a\":{\"b\":[1,{\"c\":2}]},\"a\":3}]"),
             &err);
}

TEST(json__says_where_and_what)
{
    CHECK_FAILS(check("{\"a\": ?}"), DECANT_MALFORMED, &err);
    CHECK_TEXT(decant_error_text(&err), "unexpected JSON at byte 14, found '?', expected a value");
    CHECK_FAILS(check("{\"a\" 1}"), DECANT_MALFORMED, &err);
    CHECK_TEXT(decant_error_text(&err), "unexpected JSON at byte 13, found '1', expected ':'");
    CHECK_FAILS(check("[1"), DECANT_MALFORMED, &err);
    CHECK_TEXT(decant_error_text(&err), "unexpected JSON at byte 10, found the end of the text, expected ',' or ']'");
    CHECK_FAILS(check("[1] x"), DECANT_MALFORMED, &err);
    CHECK_EQ(err.offset, 12);
}

TEST(json__keeps_its_first_failure)
{
    dcn_chunk key;
    uint64_t value;

    on("[1 {\"a\":2}]");
    CHECK(dcn_json_array(&json) && dcn_json_item(&json) && dcn_json_u64(&json, &value));
    CHECK(!dcn_json_item(&json));
    CHECK(!dcn_json_object(&json) && !dcn_json_key(&json, &key) && !dcn_json_string(&json, &key) &&
          !dcn_json_null(&json));
    CHECK(!dcn_json_u64(&json, &value) && !dcn_json_skip(&json, 9) && !dcn_json_array(&json));
    CHECK_FAILS(dcn_json_end(&json), DECANT_MALFORMED, &err);
    CHECK_EQ(err.offset, 11);
}

/* SE-04: neither stack nor patience is at the mercy of a file. */
TEST(json__SE_04_nesting_is_bounded)
{
    enum { DEEP = 100000 };
    char *deep = malloc(2 * DEEP + 1);

    CHECK(deep);
    memset(deep, '[', DEEP);
    memset(deep + DEEP, ']', DEEP);
    deep[2 * DEEP] = '\0';
    CHECK_FAILS(check(deep), DECANT_LIMIT, &err);
    CHECK_EQ(err.offset, 8 + DCN_JSON_DEPTH);

    deep[DEEP + DCN_JSON_DEPTH] = '\0';
    CHECK_OK(check(deep + DEEP - DCN_JSON_DEPTH), &err);
    on("[[[]]]");
    CHECK(dcn_json_skip(&json, 3));
    on("[[[]]]");
    CHECK(!dcn_json_skip(&json, 2));
    CHECK_EQ(err.status, DECANT_LIMIT);
    free(deep);
}

TEST(json__writes_strings_with_the_fewest_escapes)
{
    put_string("", 0, "\"\"");
    put_string("a/b \x7f\xc3\xa9\xf0\x9d\x84\x9e", 13 - 2, "\"a/b \x7f\xc3\xa9\xf0\x9d\x84\x9e\"");
    put_string("\"\\\b\t\n\f\r", 7, "\"\\\"\\\\\\b\\t\\n\\f\\r\"");
    put_string("\0\x01\x0b\x0e\x1f", 5, "\"\\u0000\\u0001\\u000b\\u000e\\u001f\"");
}

TEST(json__reads_back_every_character_that_it_writes)
{
    for (uint32_t code = 0; code < 0x110000; code += code < 0x300 ? 1 : 0x3b) {
        char raw[4];
        size_t len;
        dcn_buf buf = {0};
        dcn_chunk out;

        if (code >= 0xD800 && code < 0xE000)
            continue;
        len = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
        for (size_t i = len; i-- > 1;)
            raw[i] = (char)(0x80 | (code >> 6 * (len - 1 - i) & 0x3F));
        raw[0] = (char)(len == 1 ? code : ((0xF00u >> len) & 0xFF) | code >> 6 * (len - 1));
        dcn_json_put_string(&buf, raw, len);
        CHECK_OK(dcn_buf_check(&buf, &err), &err);
        on_bytes((char *)buf.data, buf.len);
        CHECK(dcn_json_string(&json, &out));
        CHECK_BYTES(out.data, out.len, raw, len);
        dcn_buf_close(&buf);

        if (code < 0x10000) { /* and as an escape */
            char escape[9];

            snprintf(escape, sizeof escape, "\"\\u%04X\"", (unsigned)code);
            on(escape);
            CHECK(dcn_json_string(&json, &out));
            CHECK_BYTES(out.data, out.len, raw, len);
        }
    }
}

TEST(json__writes_integers)
{
    static const uint64_t values[] = {0, 9, 10, 1000000, UINT64_MAX};

    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char wanted[24];
        dcn_buf buf = {0};

        snprintf(wanted, sizeof wanted, "%llu", (unsigned long long)values[i]);
        dcn_json_put_u64(&buf, values[i]);
        CHECK_BYTES(buf.data, buf.len, wanted, strlen(wanted));
        dcn_buf_close(&buf);
    }
}

/* Whatever was begun, what comes behind it is found. */
TEST(json__goes_on_behind_what_it_does_not_take)
{
    static const char nested[] = "{\"a\": {\"x\": [1, {\"]\": \"}\\\"\"}, tru, -], \"y\": {}}, \"b\": 7}";
    dcn_chunk key;
    uint64_t number;

    for (unsigned taken = 1; taken < 4; taken++) {
        on(nested);
        CHECK(dcn_json_object(&json) && dcn_json_key(&json, &key) && dcn_json_object(&json));
        if (taken > 1)
            CHECK(dcn_json_key(&json, &key) && dcn_json_array(&json));
        if (taken > 2)
            CHECK(dcn_json_item(&json) && dcn_json_u64(&json, &number));
        CHECK(dcn_json_leave(&json, 1) && dcn_json_key(&json, &key));
        CHECK_BYTES(key.data, key.len, "b", 1);
        CHECK(dcn_json_u64(&json, &number));
        CHECK_EQ(number, 7);
        CHECK(!dcn_json_key(&json, &key));
        CHECK_OK(dcn_json_end(&json), &err);
    }
    on("[[\"]\"");
    CHECK(dcn_json_array(&json) && dcn_json_item(&json) && !dcn_json_leave(&json, 0));
    CHECK_EQ(err.status, DECANT_MALFORMED);
}
