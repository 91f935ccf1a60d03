/* Memory that is read: what is gathered into a write. */
#ifndef DCN_BASE_CHUNK_H
#define DCN_BASE_CHUNK_H

#include <stddef.h>

typedef struct dcn_chunk {
    const void *data; /* lent */
    size_t len;       /* bytes */
} dcn_chunk;

#endif
