/* The allocation seam of the tests: counts, and makes the n-th allocation fail. */
#ifndef TEST_ALLOC_H
#define TEST_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

/* From now on, fail the n-th allocation (the first is 0), once. */
void test_alloc_fail(size_t n);
void test_alloc_disarm(void);

/* Whether the failure has happened since it was armed. */
bool test_alloc_fired(void);

/* Allocations that are not freed. */
size_t test_alloc_live(void);
void test_alloc_forget(void);

/* Bytes: now, and the most at once since the last reset. */
size_t test_alloc_bytes(void);
size_t test_alloc_peak(void);
void test_alloc_reset_peak(void);

#endif
