/*
 * A growing buffer. Remembers its first failure (no memory), ignores what comes after it, so that building code runs
 * straight to one check at the end.
 */
#ifndef DCN_BASE_BUF_H
#define DCN_BASE_BUF_H

#include <stdbool.h>

#include "base/error.h"

typedef struct dcn_buf {
    uint8_t *data;
    size_t len, cap; /* bytes */
    bool failed;
} dcn_buf; /* {0} is empty */

/* Room for `len` more bytes, which the caller fills and counts with dcn_buf_advance(). NULL once failed. */
uint8_t *dcn_buf_reserve(dcn_buf *buf, size_t len);
void dcn_buf_advance(dcn_buf *buf, size_t len);

void dcn_buf_put(dcn_buf *buf, const void *data, size_t len);
void dcn_buf_byte(dcn_buf *buf, uint8_t byte);
void dcn_buf_fill(dcn_buf *buf, uint8_t byte, size_t count);
void dcn_buf_text(dcn_buf *buf, const char *text);                              /* without its NUL */
void dcn_buf_format(dcn_buf *buf, const char *format, ...) DECANT_PRINTF(2, 3); /* at most 512 bytes at a time */

/* DECANT_OK, or DECANT_NOMEM if something did not fit. */
decant_status dcn_buf_check(const dcn_buf *buf, decant_error *err);

void dcn_buf_close(dcn_buf *buf);

#endif
