/* Against jansson, on texts that are nearly JSON. Random, but the same every time. */
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>

#include <jansson.h>

#include "codec/json.h"

enum { TEXTS = 60000, SIZE = 600 };

static uint64_t state;

static unsigned pick(unsigned below)
{
    return (unsigned)(test_random(&state) % below);
}

typedef struct text {
    char bytes[SIZE];
    size_t len;
} text;

static void add(text *t, const char *piece)
{
    size_t len = strlen(piece);

    if (t->len + len < SIZE) {
        memcpy(t->bytes + t->len, piece, len);
        t->len += len;
    }
}

static void add_string(text *t)
{
    static const char *const pieces[] = {"a",        "weight",       " ",
                                         "\\n",      "\\\"",         "\\\\",
                                         "\\/",      "\\u00e9",      "\\ud834\\udd1e",
                                         "\xc3\xa9", "\xe6\xb0\xb4", "\xf0\x9d\x84\x9e",
                                         "\\u0007",  "\x7f",         "0123456789abcdef"};
    /* seldom: what must be refused */
    static const char *const broken[] = {"\\ud800",      "\\udc00",          "\xff", "\xc0\x80", "\t", "\\x", "\\u12",
                                         "\xed\xa0\x80", "\xf5\x80\x80\x80", "\xc3", "\\u0000"};

    add(t, "\"");
    for (unsigned n = pick(5); n > 0; n--)
        add(t, pick(60) ? pieces[pick(sizeof pieces / sizeof *pieces)] : broken[pick(sizeof broken / sizeof *broken)]);
    add(t, "\"");
}

static void add_space(text *t)
{
    static const char *const spaces[] = {" ", "\n", "\t", "\r", "  "};

    if (pick(6) == 0)
        add(t, spaces[pick(5)]);
}

static void add_value(text *t, unsigned depth)
{
    static const char *const plain[] = {"null",
                                        "true",
                                        "false",
                                        "0",
                                        "1",
                                        "-1",
                                        "-0",
                                        "12.5",
                                        "1e3",
                                        "-2E-2",
                                        "9007199254740993",
                                        "9223372036854775807",
                                        "18446744073709551615",
                                        "0.5e+1"};
    unsigned kind = pick(depth < 4 ? 6 : 3);

    add_space(t);
    if (kind < 2) {
        add(t, plain[pick(sizeof plain / sizeof *plain)]);
    } else if (kind == 2) {
        add_string(t);
    } else {
        bool object = kind == 3;
        char key[16];

        add(t, object ? "{" : "[");
        for (unsigned i = 0, n = pick(4); i < n; i++) {
            if (i)
                add(t, ",");
            add_space(t);
            if (object) {
                snprintf(key, sizeof key, "\"%c%u\"", 'a' + (int)pick(26), i);
                if (pick(5))
                    add(t, key);
                else
                    add_string(t);
                add_space(t);
                add(t, ":");
            }
            add_value(t, depth + 1);
        }
        add_space(t);
        add(t, object ? "}" : "]");
    }
    add_space(t);
}

/* Cuts, doubles or changes a byte. */
static void damage(text *t)
{
    static const char bytes[] = "{}[],:\"\\0-+.eE \ntfn\x80\xff";
    size_t at;

    if (t->len == 0)
        return;
    at = pick((unsigned)t->len);
    switch (pick(3)) {
    case 0:
        memmove(t->bytes + at, t->bytes + at + 1, t->len - at - 1);
        t->len--;
        break;
    case 1:
        if (t->len < SIZE) {
            memmove(t->bytes + at + 1, t->bytes + at, t->len - at);
            t->len++;
        }
        break;
    default:
        t->bytes[at] = bytes[pick(sizeof bytes - 1)];
    }
}

/* Takes the value that stands next and compares it with jansson's. Nested as deep as add_value() goes. */
static void compare(dcn_json *json, const json_t *wanted)
{
    dcn_chunk chunk;
    uint64_t value;
    size_t i = 0;

    if (json_is_object(wanted)) {
        CHECK(dcn_json_object(json));
        while (dcn_json_key(json, &chunk)) {
            const json_t *member = json_object_getn(wanted, chunk.data, chunk.len);

            CHECK(member);
            compare(json, member);
            i++;
        }
        CHECK_EQ(i, json_object_size(wanted));
    } else if (json_is_array(wanted)) {
        CHECK(dcn_json_array(json));
        for (; dcn_json_item(json); i++)
            compare(json, json_array_get(wanted, i));
        CHECK_EQ(i, json_array_size(wanted));
    } else if (json_is_string(wanted)) {
        CHECK(dcn_json_string(json, &chunk));
        CHECK_BYTES(chunk.data, chunk.len, json_string_value(wanted), json_string_length(wanted));
    } else if (json_is_integer(wanted) && json_integer_value(wanted) > 0) {
        CHECK(dcn_json_u64(json, &value));
        CHECK_EQ(value, json_integer_value(wanted));
    } else if (json_is_null(wanted)) {
        CHECK(dcn_json_null(json));
    } else {
        CHECK(dcn_json_skip(json, 0));
    }
    CHECK_EQ(json->status, DECANT_OK);
}

TEST(json_oracle__accepts_and_understands_what_jansson_does)
{
    unsigned accepted = 0, refused = 0;

    state = 20;
    for (unsigned n = 0; n < TEXTS; n++) {
        text t = {.len = 0}, copy;
        json_error_t error;
        json_t *wanted;
        decant_error err = {0};
        dcn_json json;
        bool ours;

        add_value(&t, 0);
        for (unsigned damages = pick(3); damages > 0; damages--)
            damage(&t);
        copy = t;

        wanted = json_loadb(t.bytes, t.len, JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &error);
        json = dcn_json_on(t.bytes, t.len, 0, &err);
        dcn_json_skip(&json, DCN_JSON_DEPTH);
        ours = dcn_json_end(&json) == DECANT_OK;

        if (!wanted && ours) {
            enum json_error_code why = json_error_code(&error);

            /* jansson alone refuses integers past 2^63-1, huge reals, NUL in keys; duplicates are not ours to see */
            if (why == json_error_numeric_overflow || why == json_error_null_byte_in_key ||
                why == json_error_duplicate_key)
                continue;
        }
        if (ours != (wanted != NULL))
            test_fail(__FILE__, __LINE__, "text %u is %s by us: %.*s (%s)", n, ours ? "taken" : "refused",
                      (int)copy.len, copy.bytes, ours ? error.text : decant_error_text(&err));
        if (wanted) {
            json = dcn_json_on(copy.bytes, copy.len, 0, &err);
            compare(&json, wanted);
            CHECK_OK(dcn_json_end(&json), &err);
        }
        accepted += wanted != NULL;
        refused += wanted == NULL;
        json_decref(wanted);
    }
    /* both kinds, or the comparison says little */
    CHECK(accepted > TEXTS / 5 && refused > TEXTS / 5);
}
