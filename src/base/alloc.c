#include "base/alloc.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 4096u

void *dcn_alloc(size_t count, size_t size)
{
    if (count == 0 || size == 0)
        count = size = 1;
    return calloc(count, size); /* checks the product */
}

void *dcn_realloc(void *old, size_t count, size_t size)
{
    if (count == 0 || size == 0)
        count = size = 1;
    if (count > SIZE_MAX / size)
        return NULL;
    return realloc(old, count * size);
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
