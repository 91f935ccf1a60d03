/*
 * A growing buffer. Remembers its first failure (no memory), ignores what comes after it, so that building code runs
 * straight to one check at the end.
 */
#ifndef DCN_BASE_BUF_H
#define DCN_BASE_BUF_H

#include <stdbool.h>
#include <string.h>

#include "base/error.h"

typedef struct dcn_buf {
    uint8_t *data;
    size_t len, cap; /* bytes */
    bool failed;
} dcn_buf; /* {0} is empty */

/* What dcn_buf_reserve() does when there is no room yet. */
uint8_t *dcn_buf_grow(dcn_buf *buf, size_t len);

/* Room for `len` more bytes, which the caller fills and counts with dcn_buf_advance(). NULL once failed. */
static inline uint8_t *dcn_buf_reserve(dcn_buf *buf, size_t len)
{
    return len < buf->cap - buf->len && !buf->failed ? buf->data + buf->len : dcn_buf_grow(buf, len);
}

static inline void dcn_buf_advance(dcn_buf *buf, size_t len)
{
    if (!buf->failed)
        buf->len += len;
}

static inline void dcn_buf_put(dcn_buf *buf, const void *data, size_t len)
{
    uint8_t *at = dcn_buf_reserve(buf, len);

    if (at && len) {
        memcpy(at, data, len);
        buf->len += len;
    }
}

static inline void dcn_buf_byte(dcn_buf *buf, uint8_t byte)
{
    dcn_buf_put(buf, &byte, 1);
}

void dcn_buf_fill(dcn_buf *buf, uint8_t byte, size_t count);
void dcn_buf_text(dcn_buf *buf, const char *text);                              /* without its NUL */
void dcn_buf_format(dcn_buf *buf, const char *format, ...) DECANT_PRINTF(2, 3); /* at most 512 bytes at a time */

/* DECANT_OK, or DECANT_NOMEM if something did not fit. */
decant_status dcn_buf_check(const dcn_buf *buf, decant_error *err);

void dcn_buf_close(dcn_buf *buf);

#endif
