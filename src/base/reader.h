/*
 * A cursor that cannot leave its bytes. Remembers its first failure: reads past the end give zeros and set `failed`.
 */
#ifndef DCN_BASE_READER_H
#define DCN_BASE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct dcn_reader {
    const uint8_t *start, *at, *end;
    bool failed;
} dcn_reader;

static inline dcn_reader dcn_reader_on(const void *data, size_t len)
{
    const uint8_t *start = data;

    return (dcn_reader){start, start, start + len, false};
}

static inline size_t dcn_reader_left(const dcn_reader *r)
{
    return (size_t)(r->end - r->at);
}

static inline size_t dcn_reader_offset(const dcn_reader *r)
{
    return (size_t)(r->at - r->start);
}

/* The next `len` bytes, which are then behind. NULL, and failed, if there are fewer. */
static inline const uint8_t *dcn_reader_take(dcn_reader *r, size_t len)
{
    const uint8_t *taken = r->at;

    if (r->failed || len > dcn_reader_left(r)) {
        r->failed = true;
        return NULL;
    }
    r->at += len;
    return taken;
}

/* The next byte, or 0 and failed. */
static inline uint8_t dcn_reader_byte(dcn_reader *r)
{
    const uint8_t *at = dcn_reader_take(r, 1);

    return at ? *at : 0;
}

/* The next byte without taking it, or -1 at the end. */
static inline int dcn_reader_peek(const dcn_reader *r)
{
    return r->at < r->end && !r->failed ? *r->at : -1;
}

#endif
