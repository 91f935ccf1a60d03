#include "alloc.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* Counters only: no order between them matters. */
static atomic_size_t live, bytes, peak;
static atomic_llong countdown = -1; /* allocations until the failure; negative: not armed */
static atomic_bool fired;

/* More than any machine has. The sanitizers end the process where the system would return NULL. */
#define TOO_MUCH ((size_t)1 << 40)

static bool fails(void)
{
    if (atomic_load(&countdown) < 0 || atomic_fetch_sub(&countdown, 1) != 0)
        return false;
    atomic_store(&fired, true);
    return true;
}

static void *count(void *memory)
{
    if (memory) {
        size_t now = atomic_fetch_add(&bytes, malloc_usable_size(memory)) + malloc_usable_size(memory);
        size_t seen = atomic_load(&peak);

        atomic_fetch_add(&live, 1);
        while (now > seen && !atomic_compare_exchange_weak(&peak, &seen, now))
            ;
    }
    return memory;
}

void *dcn_alloc(size_t items, size_t size)
{
    if (items == 0 || size == 0)
        items = size = 1;
    return items > TOO_MUCH / size || fails() ? NULL : count(calloc(items, size));
}

void *dcn_realloc(void *old, size_t items, size_t size)
{
    void *memory;

    if (items == 0 || size == 0)
        items = size = 1;
    if (items > TOO_MUCH / size || fails())
        return NULL;
    /* always another block, the new part dirty, so that nothing relies on luck */
    memory = malloc(items * size);
    if (!memory)
        return NULL;
    memset(memory, 0xA5, items * size);
    if (old) {
        size_t kept = malloc_usable_size(old);

        memcpy(memory, old, kept < items * size ? kept : items * size);
        dcn_free_raw(old);
    }
    return count(memory);
}

void *dcn_alloc_pages(size_t size)
{
    void *memory = size > TOO_MUCH || fails() ? NULL : aligned_alloc(4096, (size + 4096) / 4096 * 4096);

    if (memory)
        memset(memory, 0xA5, size);
    return count(memory);
}

char *dcn_strndup(const char *text, size_t len)
{
    char *copy = dcn_alloc(len + 1, 1);

    if (copy && len)
        memcpy(copy, text, len);
    return copy;
}

void dcn_free_raw(void *memory)
{
    if (memory) {
        atomic_fetch_sub(&live, 1);
        atomic_fetch_sub(&bytes, malloc_usable_size(memory));
        free(memory);
    }
}

void test_alloc_fail(size_t n)
{
    atomic_store(&fired, false);
    atomic_store(&countdown, (long long)n);
}

void test_alloc_disarm(void)
{
    atomic_store(&countdown, -1);
}

bool test_alloc_fired(void)
{
    return atomic_load(&fired);
}

size_t test_alloc_live(void)
{
    return atomic_load(&live);
}

void test_alloc_forget(void)
{
    atomic_store(&live, 0);
    atomic_store(&bytes, 0);
}

size_t test_alloc_bytes(void)
{
    return atomic_load(&bytes);
}

size_t test_alloc_peak(void)
{
    return atomic_load(&peak);
}

void test_alloc_reset_peak(void)
{
    atomic_store(&peak, atomic_load(&bytes));
}
