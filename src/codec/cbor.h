/*
 * CBOR (RFC 8949), pulled: the caller asks for what its schema wants next and gets it, or an error with the place. No tree,
 * no allocation, no recursion. Lengths need not be the shortest nor definite, and tags are passed over; what is reserved
 * or does not end where it must is refused. Writing is the one shortest form.
 *
 * Remembers its first failure: after it, every call answers false and gives nothing.
 */
#ifndef DCN_CODEC_CBOR_H
#define DCN_CODEC_CBOR_H

#include "base/buf.h"
#include "base/chunk.h"

/* Containers that may be open at once: as ciborium 0.2.2 reads files for Burn (burn-pack 0.23.0-pre.1, src/base.rs). */
enum { DCN_CBOR_DEPTH = 128 };

typedef struct dcn_cbor {
    uint8_t *start, *at, *end;
    uint64_t offset;      /* of the bytes in their file, for errors */
    unsigned depth;       /* containers open */
    decant_status status; /* of the first failure */
    decant_error *err;
} dcn_cbor;

/* Items of an array, or pairs of a map, that are still to come. */
typedef struct dcn_cbor_run {
    uint64_t left; /* not counted if it is open */
    bool open;     /* ends with a break */
} dcn_cbor_run;

typedef enum dcn_cbor_type {
    DCN_CBOR_UINT,
    DCN_CBOR_NEGATIVE,
    DCN_CBOR_BYTES,
    DCN_CBOR_TEXT,
    DCN_CBOR_ARRAY,
    DCN_CBOR_MAP,
    DCN_CBOR_TAG,
    DCN_CBOR_OTHER
} dcn_cbor_type; /* the major types */

/*
 * @param data    [lent] writable: strings that come in chunks are joined where they lie, so it cannot be parsed twice
 * @param offset  of the data in its file
 */
dcn_cbor dcn_cbor_on(void *data, size_t len, uint64_t offset, decant_error *err);

/* Fails at the place where the item before ended, unless it has failed before. */
void dcn_cbor_fail(dcn_cbor *cbor, decant_status status, const char *what);

/* The type of the next item, after any tags; DCN_CBOR_TAG if there is none. Takes nothing and fails nothing. */
dcn_cbor_type dcn_cbor_peek(const dcn_cbor *cbor);

/* Enters a map. */
bool dcn_cbor_map(dcn_cbor *cbor, dcn_cbor_run *run);

/* Whether another item (of a map: a pair) stands next; false when the container ends, which is then behind, or has failed. */
bool dcn_cbor_more(dcn_cbor *cbor, dcn_cbor_run *run);

/* UTF-8 text, in one piece. Lent by the data. */
bool dcn_cbor_text(dcn_cbor *cbor, dcn_chunk *out);

/* A key of a struct: text, or (as serde takes them) bytes. */
bool dcn_cbor_key(dcn_cbor *cbor, dcn_chunk *out);

/* Takes this text of less than 24 bytes if it stands next, written the shortest way; false, and nothing taken, otherwise. */
bool dcn_cbor_is_text(dcn_cbor *cbor, const char *text, size_t len);

/* Integers; bignums too, as long as they fit. */
bool dcn_cbor_u64(dcn_cbor *cbor, uint64_t *out);
bool dcn_cbor_i64(dcn_cbor *cbor, int64_t *out);

/*
 * An array of unsigned integers, or (as serde takes them) a string of bytes. `count` is how many there are, which may be
 * more than the `cap` that fit `out`.
 */
bool dcn_cbor_u64s(dcn_cbor *cbor, uint64_t *out, size_t cap, size_t *count);

/* A float of any width, widened to 64 bits. A signalling NaN becomes quiet, as it does where the hardware widens. */
bool dcn_cbor_f64(dcn_cbor *cbor, uint64_t *bits);

bool dcn_cbor_bool(dcn_cbor *cbor, bool *out);

/* Takes a null or undefined if one stands next; false, and no failure, if something else does. */
bool dcn_cbor_null(dcn_cbor *cbor);

/* Any item, checked and thrown away. Simple values without a meaning are refused, as ciborium does. */
bool dcn_cbor_skip(dcn_cbor *cbor);

/* Where the next item starts, in the file. */
uint64_t dcn_cbor_offset(const dcn_cbor *cbor);

/* --- writing: always the shortest head ---------------------------------------------------------------------------- */

enum { DCN_CBOR_HEAD = 9 }; /* bytes of the longest head, for which there is to be room wherever one is written */

/* A head of more than one byte: what dcn_cbor_write() does with large values. */
unsigned dcn_cbor_write_long(uint8_t *at, dcn_cbor_type type, uint64_t value);

/* Writes a head: an integer, a length or a count. @return its bytes */
static inline unsigned dcn_cbor_write(uint8_t *at, dcn_cbor_type type, uint64_t value)
{
    if (value >= 24)
        return dcn_cbor_write_long(at, type, value);
    *at = (uint8_t)((uint64_t)type << 5 | value);
    return 1;
}

static inline void dcn_cbor_put(dcn_buf *buf, dcn_cbor_type type, uint64_t value)
{
    uint8_t *at = dcn_buf_reserve(buf, DCN_CBOR_HEAD);

    if (at)
        buf->len += dcn_cbor_write(at, type, value);
}

static inline void dcn_cbor_put_text(dcn_buf *buf, const char *text, size_t len)
{
    uint8_t *at = dcn_buf_reserve(buf, DCN_CBOR_HEAD + len);

    if (at) {
        unsigned head = dcn_cbor_write(at, DCN_CBOR_TEXT, len);

        memcpy(at + head, text, len);
        buf->len += head + len;
    }
}

void dcn_cbor_put_i64(dcn_buf *buf, int64_t value);
void dcn_cbor_put_bool(dcn_buf *buf, bool value);
void dcn_cbor_put_null(dcn_buf *buf);

/* The shortest of half, single and double that widens to the same 64 bits: zeros keep their sign and NaNs their payload. */
void dcn_cbor_put_f64(dcn_buf *buf, uint64_t bits);

/* Bytes that dcn_cbor_put() writes. */
unsigned dcn_cbor_head_len(uint64_t value);

#endif
