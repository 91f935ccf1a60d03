#include "base/arena.h"

#include <stdint.h>
#include <string.h>

#include "base/alloc.h"

enum { FIRST_BLOCK = 1 << 10, LARGEST_BLOCK = 1 << 20, ALIGN = 8 };

struct dcn_arena_block {
    dcn_arena_block *next;
    void *adopted; /* NULL: the block's own bytes are behind this head */
};

/* Puts a block of `size` bytes in front. */
static dcn_arena_block *add_block(dcn_arena *arena, size_t size)
{
    dcn_arena_block *block = size <= SIZE_MAX - sizeof *block ? dcn_alloc(1, sizeof *block + size) : NULL;

    if (block) {
        block->adopted = NULL;
        block->next = arena->blocks;
        arena->blocks = block;
    }
    return block;
}

void *dcn_arena_take(dcn_arena *arena, size_t len)
{
    size_t room = arena->size - arena->used;
    void *taken;

    if (len > SIZE_MAX - ALIGN)
        return NULL;
    len = (len + ALIGN - 1) / ALIGN * ALIGN;
    if (len > room || !arena->blocks) {
        size_t size = arena->size ? arena->size * 2 : FIRST_BLOCK;

        size = size > LARGEST_BLOCK ? LARGEST_BLOCK : size;
        size = size < len ? len : size;
        if (!add_block(arena, size))
            return NULL;
        arena->size = size;
        arena->used = 0;
    }
    taken = (char *)(arena->blocks + 1) + arena->used;
    arena->used += len;
    return taken;
}

void *dcn_arena_copy(dcn_arena *arena, const void *data, size_t len)
{
    void *copy = dcn_arena_take(arena, len);

    if (copy && len)
        memcpy(copy, data, len);
    return copy;
}

int dcn_arena_adopt(dcn_arena *arena, void *memory)
{
    dcn_arena_block *block = add_block(arena, 0);

    if (!block)
        return -1;
    block->adopted = memory;
    arena->size = arena->used = 0; /* the current block is full from now on */
    return 0;
}

void dcn_arena_join(dcn_arena *arena, dcn_arena *other)
{
    dcn_arena_block *last = other->blocks;

    if (!arena->blocks) {
        *arena = *other;
    } else if (last) { /* behind the current block, which keeps its room */
        while (last->next)
            last = last->next;
        last->next = arena->blocks->next;
        arena->blocks->next = other->blocks;
    }
    *other = (dcn_arena){0};
}

void dcn_arena_close(dcn_arena *arena)
{
    dcn_arena_block *next;

    for (dcn_arena_block *block = arena->blocks; block; block = next) {
        next = block->next;
        dcn_free(&block->adopted);
        dcn_free(&block);
    }
    *arena = (dcn_arena){0};
}
