#define _DEFAULT_SOURCE /* madvise() */

#include "base/alloc.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096u

/*
 * Large blocks, headers of files and tables of their tensors, are used from end to end: in a huge page that takes one fault,
 * not 512. A hint, and nothing changes where it is not taken.
 */
static void *in_huge_pages(void *memory, size_t size)
{
#ifdef MADV_HUGEPAGE
    enum { LARGE = 4 << 20 };
    size_t before = (uintptr_t)memory % PAGE;

    if (memory && size >= LARGE)
        madvise((char *)memory - before, before + size, MADV_HUGEPAGE);
#else
    (void)size;
#endif
    return memory;
}

void *dcn_alloc(size_t count, size_t size)
{
    if (count == 0 || size == 0)
        count = size = 1;
    return in_huge_pages(calloc(count, size), count * size); /* calloc() checks the product */
}

void *dcn_realloc(void *old, size_t count, size_t size)
{
    if (count == 0 || size == 0)
        count = size = 1;
    if (count > SIZE_MAX / size)
        return NULL;
    return in_huge_pages(realloc(old, count * size), count * size);
}

void *dcn_alloc_pages(size_t size)
{
    if (size == 0)
        size = 1;
    if (size > SIZE_MAX - PAGE)
        return NULL;
    return aligned_alloc(PAGE, (size + PAGE - 1) / PAGE * PAGE);
}

char *dcn_strndup(const char *text, size_t len)
{
    char *copy = len < SIZE_MAX ? dcn_alloc(len + 1, 1) : NULL;

    if (copy && len)
        memcpy(copy, text, len);
    return copy;
}

void dcn_free_raw(void *memory)
{
    free(memory);
}
