#include "support/test.h"

#include <stdlib.h>

#include "base/sort.h"

/* What is sorted: by `key`; `place` tells where it stood. */
typedef struct pair {
    uint32_t key, place;
} pair;

static size_t comparisons;

static int by_key(const void *a, const void *b)
{
    const pair *x = a, *y = b;

    comparisons++;
    return (x->key > y->key) - (x->key < y->key);
}

static int by_key_and_place(const void *a, const void *b)
{
    const pair *x = a, *y = b;
    int order = by_key(a, b);

    return order ? order : (x->place > y->place) - (x->place < y->place);
}

static void fill(pair *items, size_t count, uint64_t seed, unsigned keys)
{
    for (size_t i = 0; i < count; i++)
        items[i] = (pair){(uint32_t)(test_random(&seed) % keys), (uint32_t)i};
}

enum { MOST = 70 };

/* Both give the one order there is, that of qsort, whatever the count. */
TEST(sort__gives_the_order_whatever_the_count)
{
    pair items[MOST], merged[MOST], spare[MOST], wanted[MOST];

    for (size_t count = 0; count <= MOST; count++) {
        fill(items, count, count, 9);
        memcpy(merged, items, sizeof merged);
        memcpy(wanted, items, sizeof wanted);
        dcn_sort(items, count, sizeof *items, by_key_and_place);
        dcn_sort_merging(merged, spare, count, sizeof *merged, by_key); /* stable: places rise by themselves */
        qsort(wanted, count, sizeof *wanted, by_key_and_place);
        CHECK_BYTES(items, count * sizeof *items, wanted, count * sizeof *wanted);
        CHECK_BYTES(merged, count * sizeof *merged, wanted, count * sizeof *wanted);
        CHECK(dcn_sorted(items, count, sizeof *items, by_key_and_place));
    }
}

TEST(sort__costs_one_comparison_an_item_where_there_is_nothing_to_do)
{
    pair items[MOST], spare[MOST];

    for (size_t i = 0; i < MOST; i++)
        items[i] = (pair){(uint32_t)i, 0};
    comparisons = 0;
    dcn_sort(items, MOST, sizeof *items, by_key);
    CHECK_EQ(comparisons, MOST - 1);
    dcn_sort_merging(items, spare, MOST, sizeof *items, by_key);
    CHECK_EQ(comparisons, 2 * (MOST - 1));
}

TEST(sort__merging_takes_few_comparisons_where_runs_are_in_order)
{
    enum { COUNT = 4096, RUN = 1024 };
    static pair items[COUNT], spare[COUNT];

    for (size_t i = 0; i < COUNT; i++) /* four runs, each in order */
        items[i] = (pair){(uint32_t)(i % RUN * 4 + i / RUN), 0};
    comparisons = 0;
    dcn_sort_merging(items, spare, COUNT, sizeof *items, by_key);
    CHECK(dcn_sorted(items, COUNT, sizeof *items, by_key));
    CHECK(comparisons < 6 * COUNT);
}
