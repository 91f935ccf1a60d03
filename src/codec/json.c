#include "codec/json.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/endian.h"
#include "base/text.h"

#define ONES UINT64_C(0x0101010101010101)
#define HIGHS UINT64_C(0x8080808080808080)

dcn_json dcn_json_on(char *text, size_t len, uint64_t offset, decant_error *err)
{
    return (dcn_json){.start = text, .at = text, .end = text + len, .offset = offset, .err = err};
}

/* --- failures ---------------------------------------------------------------------------------------------------- */

/* Sets the error once, at a place in the text, which from now on has no more tokens. */
static DCN_SELDOM bool fail_at(dcn_json *json, const char *at, decant_status status, const char *what)
{
    uint64_t offset = json->offset + (uint64_t)(at - json->start);

    if (!json->status) {
        json->status = decant_error_set(json->err, status, "%s", what);
        dcn_error_at(json->err, offset);
    }
    json->end = json->at;
    return false;
}

/* What stands at `at` is not what the grammar wants there. */
static DCN_SELDOM bool unexpected(dcn_json *json, const char *at, const char *expected)
{
    bool at_end = at == json->end;

    if (json->status)
        return false;
    fail_at(json, at, DECANT_MALFORMED, "unexpected JSON");
    if (at_end)
        dcn_error_found(json->err, "the end of the text");
    else if (*at > ' ' && *at < 0x7F)
        dcn_error_found(json->err, "'%c'", *at);
    else
        dcn_error_found(json->err, "the byte 0x%02x", (unsigned)(uint8_t)*at);
    dcn_error_expected(json->err, "%s", expected);
    return false;
}

/* A limit that nothing lifts: the parsers of others have it too. */
static bool too_deep(dcn_json *json, const char *at, const char *what)
{
    fail_at(json, at, DECANT_LIMIT, what);
    dcn_error_hint(json->err, "write the file again with less nesting");
    return false;
}

uint64_t dcn_json_offset(const dcn_json *json)
{
    return json->offset + (uint64_t)(json->at - json->start);
}

/* --- tokens ------------------------------------------------------------------------------------------------------ */

static DCN_SELDOM char peek_past_space(dcn_json *json)
{
    while (json->at < json->end && (*json->at == ' ' || *json->at == '\n' || *json->at == '\r' || *json->at == '\t'))
        json->at++;
    return json->at < json->end ? *json->at : '\0';
}

/* The next byte that is no whitespace, not taken; 0 at the end (a NUL is no token either). */
static inline char peek(dcn_json *json)
{
    if (json->at != json->end && *json->at > ' ')
        return *json->at;
    return peek_past_space(json);
}

static bool take(dcn_json *json, char wanted, const char *expected)
{
    if (peek(json) != wanted)
        return unexpected(json, json->at, expected);
    json->at++;
    return true;
}

static bool open_container(dcn_json *json, char bracket, const char *expected)
{
    if (!take(json, bracket, expected))
        return false;
    if (json->depth == DCN_JSON_DEPTH)
        return too_deep(json, json->at - 1, "JSON nested more than 127 deep");
    json->depth++;
    json->first = true;
    return true;
}

/* Steps to the next element of a container; false at its end. */
static bool next(dcn_json *json, char bracket, const char *expected)
{
    bool first = json->first;
    char c = peek(json);

    json->first = false;
    if (c == bracket) {
        json->at++;
        json->depth--;
        return false;
    }
    if (first)
        return !json->status;
    if (c != ',')
        return unexpected(json, json->at, expected);
    json->at++;
    return true;
}

/* Four hexadecimal digits, or -1. */
static int32_t hex4(const char *at, const char *end)
{
    int32_t value = 0;

    if (end - at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        char c = at[i], low = (char)(c | 0x20);

        if (c >= '0' && c <= '9')
            value = value << 4 | (c - '0');
        else if (low >= 'a' && low <= 'f')
            value = value << 4 | (low - 'a' + 10);
        else
            return -1;
    }
    return value;
}

static char *put_utf8(char *to, uint32_t code)
{
    if (code < 0x80) {
        *to++ = (char)code;
    } else if (code < 0x800) {
        *to++ = (char)(0xC0 | code >> 6);
        *to++ = (char)(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
        *to++ = (char)(0xE0 | code >> 12);
        *to++ = (char)(0x80 | (code >> 6 & 0x3F));
        *to++ = (char)(0x80 | (code & 0x3F));
    } else {
        *to++ = (char)(0xF0 | code >> 18);
        *to++ = (char)(0x80 | (code >> 12 & 0x3F));
        *to++ = (char)(0x80 | (code >> 6 & 0x3F));
        *to++ = (char)(0x80 | (code & 0x3F));
    }
    return to;
}

/* The escape at `*from`, behind its backslash, written to `*to`, which never passes what is read. */
static bool unescape(dcn_json *json, char **from, char **to)
{
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    const char *letter = *from < json->end && **from ? strchr(letters, **from) : NULL;
    int32_t code, low;

    if (letter) {
        *(*to)++ = meanings[letter - letters];
        (*from)++;
        return true;
    }
    if (*from == json->end || **from != 'u')
        return unexpected(json, *from, "an escape");
    code = hex4(*from + 1, json->end);
    if (code < 0)
        return unexpected(json, *from, "'u' and four hexadecimal digits");
    if (code >= 0xD800 && code < 0xE000) {
        bool pair = code < 0xDC00 && json->end - *from >= 11 && (*from)[5] == '\\' && (*from)[6] == 'u';

        low = pair ? hex4(*from + 7, json->end) : -1;
        if (low < 0xDC00 || low >= 0xE000)
            return fail_at(json, *from - 1, DECANT_MALFORMED, "invalid JSON: half a surrogate pair");
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        *from += 6;
    }
    *from += 5;
    *to = put_utf8(*to, (uint32_t)code);
    return true;
}

/* How many bytes from `at` on stand for themselves in a string: up to a quote, a backslash, a control or UTF-8. */
static size_t plain(const char *at, const char *end)
{
    const char *start = at;

    for (; end - at >= 8; at += 8) {
        /* with that bit turned, quotes and controls are the bytes of at most a space, and a space is none */
        uint64_t word = dcn_le64(at), turned = word ^ ONES * ('"' ^ ' '), slashes = word ^ ONES * '\\';
        /* borrows only reach bytes behind one that is special itself, so the first mark is right */
        uint64_t marks = (word | (turned - ONES * (' ' + 1)) | (slashes - ONES)) & HIGHS;

        if (marks)
            return (size_t)(at - start) + dcn_zeros_below(marks) / 8;
    }
    while (at < end && (uint8_t)*at >= ' ' && (uint8_t)*at < 0x80 && *at != '"' && *at != '\\')
        at++;
    return (size_t)(at - start);
}

/* Where well-formed UTF-8 ends: what stands there is none. */
static const char *utf8_end(const char *at, const char *end)
{
    size_t step;

    do {
        for (step = 1; step <= 4 && step <= (size_t)(end - at) && !dcn_utf8_valid(at, step); step++)
            ;
        if (step > 4 || step > (size_t)(end - at))
            return at;
        at += step;
    } while (at < end);
    return at;
}

static bool string(dcn_json *json, dcn_chunk *out, const char *expected)
{
    char *from, *to, *text;

    if (!take(json, '"', expected))
        return false;
    text = from = to = json->at;
    to += plain(text, json->end);
    if (to < json->end && *to == '"') { /* as most are */
        *to = '\0';
        json->at = to + 1;
        *out = (dcn_chunk){text, (size_t)(to - text)};
        return true;
    }
    to = text;
    for (;;) {
        bool ascii = true;
        char *run = from;

        /* up to a quote, an escape or a control; no character of UTF-8 spans one */
        while ((from += plain(from, json->end)) < json->end && (uint8_t)*from >= 0x80) {
            ascii = false;
            from++;
        }
        if (!ascii && !dcn_utf8_valid(run, (size_t)(from - run)))
            return fail_at(json, utf8_end(run, from), DECANT_MALFORMED, "invalid UTF-8");
        if (to != run)
            memmove(to, run, (size_t)(from - run));
        to += from - run;

        if (from == json->end || (uint8_t)*from < ' ')
            return unexpected(json, from, from == json->end ? "the quote that ends the string" : "it escaped");
        if (*from++ == '"')
            break;
        if (!unescape(json, &from, &to))
            return false;
    }
    *to = '\0';
    json->at = from;
    *out = (dcn_chunk){text, (size_t)(to - text)};
    return true;
}

/* Digits; whether there is one. */
static bool digits(char **at, const char *end)
{
    char *start = *at;

    while (*at < end && **at >= '0' && **at <= '9')
        (*at)++;
    return *at > start;
}

/* Any number of the grammar, thrown away. */
static bool number(dcn_json *json)
{
    char *at = json->at;
    bool zero;

    if (at < json->end && *at == '-')
        at++;
    zero = at < json->end && *at == '0';
    if (zero)
        at++;
    else if (!digits(&at, json->end))
        return unexpected(json, at, at == json->at ? "a value" : "a digit");
    if (at < json->end && *at == '.' && (at++, !digits(&at, json->end)))
        return unexpected(json, at, "a digit");
    if (at < json->end && (*at == 'e' || *at == 'E')) {
        at++;
        if (at < json->end && (*at == '+' || *at == '-'))
            at++;
        if (!digits(&at, json->end))
            return unexpected(json, at, "a digit");
    }
    json->at = at;
    return true;
}

static bool word(dcn_json *json, const char *wanted)
{
    size_t len = strlen(wanted);

    if (len > (size_t)(json->end - json->at) || memcmp(json->at, wanted, len) != 0)
        return unexpected(json, json->at, "a value");
    json->at += len;
    return true;
}

/* --- what callers ask for ---------------------------------------------------------------------------------------- */

bool dcn_json_object(dcn_json *json)
{
    return open_container(json, '{', "an object");
}

bool dcn_json_array(dcn_json *json)
{
    return open_container(json, '[', "an array");
}

bool dcn_json_key(dcn_json *json, dcn_chunk *key)
{
    bool first = json->first;

    return next(json, '}', "',' or '}'") && string(json, key, first ? "a key or '}'" : "a key") &&
           take(json, ':', "':'");
}

bool dcn_json_item(dcn_json *json)
{
    return next(json, ']', "',' or ']'");
}

bool dcn_json_string(dcn_json *json, dcn_chunk *out)
{
    return string(json, out, "a string");
}

/* What stands at `start` is another number, of which the digits end at `at`, or none. */
static DCN_SELDOM bool no_u64(dcn_json *json, const char *start, const char *at)
{
    static const char expected[] = "an integer from 0 to 18446744073709551615";

    if (at == start)
        return unexpected(json, start, expected);
    while (at < json->end && at - start < 24 && *at && strchr("0123456789.eE+-", *at))
        at++;
    fail_at(json, start, DECANT_MALFORMED, "a number that is no plain integer of 64 bits");
    dcn_error_found(json->err, "%.*s", (int)(at - start), start);
    dcn_error_expected(json->err, "%s", expected);
    return false;
}

bool dcn_json_u64(dcn_json *json, uint64_t *out)
{
    const uint64_t twenty_digits = UINT64_C(10000000000000000000);
    char first = peek(json), *start = json->at, *end = json->end, *at = start;
    uint64_t value = 0;
    uint8_t digit;
    size_t len;

    for (; at < end && (digit = (uint8_t)(*at - '0')) <= 9; at++)
        value = value * 10 + digit;
    len = (size_t)(at - start);
    /* twenty digits that start with 1 and do not fit wrap around to fewer */
    if (len == 0 || len > 20 || (len == 20 && (first != '1' || value < twenty_digits)) || (first == '0' && len > 1) ||
        (at < end && (*at == '.' || *at == 'e' || *at == 'E')))
        return no_u64(json, start, at);
    json->at = at;
    *out = value;
    return true;
}

bool dcn_json_null(dcn_json *json)
{
    return peek(json) == 'n' && word(json, "null");
}

bool dcn_json_skip(dcn_json *json, unsigned depth)
{
    uint64_t objects[(DCN_JSON_DEPTH + 63) / 64] = {0}; /* a bit per open container: it is an object */
    unsigned outside = json->depth, level;
    dcn_chunk ignored;

    do {
        char c = peek(json);

        if (c == '{' || c == '[') {
            if (json->depth - outside == depth)
                return too_deep(json, json->at, "JSON nested too deep");
            if (!open_container(json, c, "a value"))
                return false;
            level = json->depth - outside - 1;
            objects[level / 64] = (objects[level / 64] & ~(UINT64_C(1) << level % 64)) | (uint64_t)(c == '{')
                                                                                             << level % 64;
        } else if (!(c == '"'   ? dcn_json_string(json, &ignored)
                     : c == 't' ? word(json, "true")
                     : c == 'f' ? word(json, "false")
                     : c == 'n' ? word(json, "null")
                                : !json->status && number(json))) {
            return false;
        }
        /* close what ends here; another element of what is then open is the next value */
        while (json->depth > outside) {
            level = json->depth - outside - 1;
            if (objects[level / 64] >> level % 64 & 1 ? dcn_json_key(json, &ignored) : dcn_json_item(json))
                break;
            if (json->status)
                return false;
        }
    } while (json->depth > outside);
    return true;
}

bool dcn_json_leave(dcn_json *json, unsigned depth)
{
    dcn_chunk ignored;

    while (!json->status && json->depth > depth) {
        char c = peek(json);

        if (c == '"') {
            dcn_json_string(json, &ignored);
        } else if (json->at == json->end) {
            unexpected(json, json->at, "a closing bracket");
        } else {
            json->depth += c == '{' || c == '[';
            json->depth -= c == '}' || c == ']';
            json->at++;
        }
    }
    json->first = false;
    return !json->status;
}

char dcn_json_peek(dcn_json *json)
{
    return peek(json);
}

decant_status dcn_json_end(dcn_json *json)
{
    peek(json);
    if (!json->status && json->at < json->end)
        unexpected(json, json->at, "nothing after the document");
    return json->status;
}

/* --- writing ----------------------------------------------------------------------------------------------------- */

void dcn_json_put_string(dcn_buf *buf, const char *text, size_t len)
{
    static const char controls[] = "btn\0fr"; /* of 0x08 to 0x0d; 0x0b has no short form */
    const char *at = text, *end = text + len;

    dcn_buf_byte(buf, '"');
    while (at < end) {
        const char *run = at;

        while ((at += plain(at, end)) < end && (uint8_t)*at >= 0x80)
            at++;
        dcn_buf_put(buf, run, (size_t)(at - run));
        if (at == end)
            break;
        if ((uint8_t)*at >= ' ')
            dcn_buf_format(buf, "\\%c", *at);
        else if (*at >= '\b' && *at <= '\r' && *at != '\v')
            dcn_buf_format(buf, "\\%c", controls[*at - '\b']);
        else
            dcn_buf_format(buf, "\\u%04x", (unsigned)*at);
        at++;
    }
    dcn_buf_byte(buf, '"');
}

void dcn_json_put_u64(dcn_buf *buf, uint64_t value)
{
    char text[20], *at = text + sizeof text;

    do
        *--at = (char)('0' + value % 10);
    while (value /= 10);
    dcn_buf_put(buf, at, (size_t)(text + sizeof text - at));
}
