/* Sorting without memory of its own and without recursion. */
#ifndef DCN_BASE_SORT_H
#define DCN_BASE_SORT_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Sorts `count` items of `size` bytes, which is at most 64. Not stable: `compare` tells apart what has an order. What is
 * sorted already costs one comparison an item, anything else O(n log n).
 *
 * @param compare  as for qsort
 */
void dcn_sort(void *items, size_t count, size_t size, int (*compare)(const void *a, const void *b));

/* Whether they are in order. */
bool dcn_sorted(const void *items, size_t count, size_t size, int (*compare)(const void *a, const void *b));

#endif
