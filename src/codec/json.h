/*
 * JSON (RFC 8259), pulled: the caller asks for what its schema wants next and gets it, or an error with the place. No
 * tree, no allocation, no recursion. Stricter than most: UTF-8 is checked, surrogates must pair, integers are plain and
 * keep all 64 bits, nothing may follow the document. Duplicate keys are the caller's matter: it knows where they go.
 *
 * Remembers its first failure: after it, every call answers false and gives nothing.
 */
#ifndef DCN_CODEC_JSON_H
#define DCN_CODEC_JSON_H

#include "base/buf.h"
#include "base/chunk.h"

/* Containers that may be open at once: serde_json refuses the 128th. */
enum { DCN_JSON_DEPTH = 127 };

typedef struct dcn_json {
    char *start, *at, *end;
    uint64_t offset;      /* of the text in its file, for errors */
    unsigned depth;       /* containers open */
    bool first;           /* a container was just opened: no comma yet */
    decant_status status; /* of the first failure */
    decant_error *err;
} dcn_json;

/*
 * @param text    [lent] writable: strings are unescaped where they lie, so it cannot be parsed twice
 * @param offset  of the text in its file
 */
dcn_json dcn_json_on(char *text, size_t len, uint64_t offset, decant_error *err);

/* Enters an object or array. */
bool dcn_json_object(dcn_json *json);
bool dcn_json_array(dcn_json *json);

/* The next member's key, its value to be taken next; false when the object ends, which is then behind, or fails. */
bool dcn_json_key(dcn_json *json, dcn_chunk *key);

/*
 * Takes the next member's key if `text`, a key in its quotes and a colon, is what stands next, without a space between;
 * false, and nothing taken, otherwise.
 */
static inline bool dcn_json_is_key(dcn_json *json, const char *text, size_t len)
{
    char *at = json->at;

    if ((size_t)(json->end - at) <= len || (!json->first && *at++ != ',') || memcmp(at, text, len) != 0)
        return false;
    json->at = at + len;
    json->first = false;
    return true;
}

/* Whether another item stands next; false when the array ends, which is then behind, or has failed. */
bool dcn_json_item(dcn_json *json);

/* A string, unescaped in place and followed by a NUL (it may hold others). Lent by the text. */
bool dcn_json_string(dcn_json *json, dcn_chunk *out);

/* An integer from 0 to 2^64-1, without sign, fraction or exponent. */
bool dcn_json_u64(dcn_json *json, uint64_t *out);

/* Takes a null if one stands next; false, and no failure, if something else does. */
bool dcn_json_null(dcn_json *json);

/* Any value, checked and thrown away. It may open `depth` containers in each other, and DCN_JSON_DEPTH in all. */
bool dcn_json_skip(dcn_json *json, unsigned depth);

/*
 * Leaves containers until `depth` are open, for who goes on behind content that he does not take. Of what is passed only
 * strings and brackets are looked at.
 */
bool dcn_json_leave(dcn_json *json, unsigned depth);

/* The byte that the next token starts with, which `json->at` then points to; NUL at the end and after a failure. */
char dcn_json_peek(dcn_json *json);

/* Where the next token starts, in the file. */
uint64_t dcn_json_offset(const dcn_json *json);

/* Nothing but whitespace is left. The status of the whole. */
decant_status dcn_json_end(dcn_json *json);

/*
 * Appends a string as serde_json writes it, which is also the shortest: escapes for quotes, backslashes and C0 controls
 * alone. The text is UTF-8.
 */
void dcn_json_put_string(dcn_buf *buf, const char *text, size_t len);
void dcn_json_put_u64(dcn_buf *buf, uint64_t value);

#endif
