/* Memory that is taken in small pieces and given back all at once. */
#ifndef DCN_BASE_ARENA_H
#define DCN_BASE_ARENA_H

#include <stddef.h>

typedef struct dcn_arena_block dcn_arena_block;

typedef struct dcn_arena {
    dcn_arena_block *blocks; /* the current one first */
    size_t used, size;       /* of the current one, bytes */
} dcn_arena;                 /* {0} is empty */

/* `len` bytes, not zeroed, aligned to 8. NULL without memory; what was taken before stays. */
void *dcn_arena_take(dcn_arena *arena, size_t len);

/* A copy of `len` bytes. */
void *dcn_arena_copy(dcn_arena *arena, const void *data, size_t len);

/* Takes over memory that came from dcn_alloc and gives it back with the rest. 0, or -1 without memory: still the caller's. */
int dcn_arena_adopt(dcn_arena *arena, void *memory);

/* Takes over all that `other` holds, which is empty afterwards. */
void dcn_arena_join(dcn_arena *arena, dcn_arena *other);

void dcn_arena_close(dcn_arena *arena);

#endif
