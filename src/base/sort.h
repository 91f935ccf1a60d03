/* Sorting without memory of its own and without recursion. */
#ifndef DCN_BASE_SORT_H
#define DCN_BASE_SORT_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Sorts `count` items of `size` bytes, which is at most 64. Not stable: `compare` tells apart what has an order. What is
 * sorted already costs one comparison an item.
 *
 * @param compare  as for qsort
 */
void dcn_sort(void *items, size_t count, size_t size, int (*compare)(const void *a, const void *b));

/*
 * As dcn_sort(), and stable. Takes half of its time or less, and far less where items come in runs that are in order,
 * for as much memory again.
 *
 * @param spare  [lent] room for `count` items; what is in it afterwards is undefined
 */
void dcn_sort_merging(void *items, void *spare, size_t count, size_t size,
                      int (*compare)(const void *a, const void *b));

/* Whether they are in order. */
bool dcn_sorted(const void *items, size_t count, size_t size, int (*compare)(const void *a, const void *b));

#endif
