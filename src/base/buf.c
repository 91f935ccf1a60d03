#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

uint8_t *dcn_buf_grow(dcn_buf *buf, size_t len)
{
    size_t want, cap;
    uint8_t *data;

    if (buf->failed)
        return NULL;
    if (buf->data && len <= buf->cap - buf->len)
        return buf->data + buf->len;

    want = buf->len + len;
    cap = buf->cap + buf->cap / 2;
    if (cap < want)
        cap = want < 64 ? 64 : want;
    data = want < len || cap < want ? NULL : dcn_realloc(buf->data, cap, 1);
    if (!data) {
        buf->failed = true;
        return NULL;
    }
    buf->data = data;
    buf->cap = cap;
    return buf->data + buf->len;
}

void dcn_buf_fill(dcn_buf *buf, uint8_t byte, size_t count)
{
    uint8_t *at = dcn_buf_reserve(buf, count);

    if (at && count) {
        memset(at, byte, count);
        buf->len += count;
    }
}

void dcn_buf_text(dcn_buf *buf, const char *text)
{
    dcn_buf_put(buf, text, strlen(text));
}

void dcn_buf_format(dcn_buf *buf, const char *format, ...)
{
    char line[512];
    va_list args;
    int len;

    va_start(args, format);
    len = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (len > 0)
        dcn_buf_put(buf, line, (size_t)len < sizeof line ? (size_t)len : sizeof line - 1);
}

decant_status dcn_buf_check(const dcn_buf *buf, decant_error *err)
{
    return buf->failed ? dcn_error_nomem(err) : DECANT_OK;
}

void dcn_buf_close(dcn_buf *buf)
{
    dcn_free(&buf->data);
    *buf = (dcn_buf){0};
}
