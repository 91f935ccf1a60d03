/* Memory that is read: what is gathered into a write. */
#ifndef DCN_BASE_CHUNK_H
#define DCN_BASE_CHUNK_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

typedef struct dcn_chunk {
    const void *data; /* lent */
    size_t len;       /* bytes */
} dcn_chunk;

static inline bool dcn_chunk_is(dcn_chunk chunk, const char *text)
{
    return chunk.len == strlen(text) && memcmp(chunk.data, text, chunk.len) == 0;
}

static inline bool dcn_is_zero(const void *data, size_t len)
{
    const unsigned char *bytes = data;

    return !len || (!bytes[0] && memcmp(bytes, bytes + 1, len - 1) == 0);
}

#endif
