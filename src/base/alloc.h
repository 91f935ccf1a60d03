/*
 * Every allocation of the library. alloc.c is a link seam: tests put theirs in its place and make the n-th call fail.
 */
#ifndef DCN_BASE_ALLOC_H
#define DCN_BASE_ALLOC_H

#include "base/error.h"

/* `count` zeroed items of `size` bytes. NULL on overflow or without memory. count or size 0 gives a unique pointer. */
void *dcn_alloc(size_t count, size_t size);

/* Resizes to `count` items of `size` bytes, the new ones not zeroed. NULL leaves `old` as it was. */
void *dcn_realloc(void *old, size_t count, size_t size);

/*
 * A list of `count` items with room for one more: `items`, of which `*cap` fit, or what it has grown into by half. NULL leaves
 * both as they were.
 */
static inline void *dcn_grown(void *items, size_t count, size_t *cap, size_t size)
{
    size_t more = *cap + *cap / 2 + 8;
    void *grown = count < *cap ? items : dcn_realloc(items, more, size);

    if (grown && count == *cap)
        *cap = more;
    return grown;
}

/* As dcn_alloc, page-aligned and not zeroed: staging for direct I/O. Freed by dcn_free. */
void *dcn_alloc_pages(size_t size);

/* `len` bytes and a NUL. */
char *dcn_strndup(const char *text, size_t len);

/* Frees and sets the pointer to NULL: dcn_free(&buffer). */
#define dcn_free(pointer) (dcn_free_raw((void *)*(pointer)), *(pointer) = NULL)
void dcn_free_raw(void *memory);

#endif
