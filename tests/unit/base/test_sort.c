#include "support/test.h"

#include <stdlib.h>

#include "base/sort.h"
#include "support/alloc.h"

static size_t compared;

static int by_number(const void *a, const void *b)
{
    uint32_t x, y;

    compared++;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

TEST(sorting__agrees_with_qsort_for_every_count_and_size)
{
    static const size_t sizes[] = {4, 12, 24, 64};
    static uint8_t ours[64 * 300], theirs[64 * 300];
    uint64_t state = 5;

    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (size_t count = 0; count < 300; count = count < 20 ? count + 1 : count * 2) {
            size_t size = sizes[s];

            for (size_t i = 0; i < count; i++) { /* with equal ones, which are alike in all their bytes */
                uint32_t number = (uint32_t)(test_random(&state) % (count + 1));

                memset(ours + i * size, (int)number, size);
                memcpy(ours + i * size, &number, sizeof number);
            }
            memcpy(theirs, ours, count * size);
            dcn_sort(ours, count, size, by_number);
            qsort(theirs, count, size, by_number);
            CHECK_BYTES(ours, count * size, theirs, count * size);
            CHECK(dcn_sorted(ours, count, size, by_number));
        }
}

TEST(sorting__no_order_of_the_items_makes_it_slow)
{
    enum { COUNT = 1 << 14, LOG = 14 };
    static uint32_t numbers[COUNT];
    uint64_t state = 9;

    for (int order = 0; order < 6; order++) {
        for (uint32_t i = 0; i < COUNT; i++)
            numbers[i] = order == 0   ? (uint32_t)test_random(&state)
                         : order == 1 ? COUNT - i
                         : order == 2 ? i % 3
                         : order == 3 ? (i < COUNT / 2 ? i : COUNT - i)
                         : order == 4 ? i * 7919 % COUNT
                                      : i ^ 1;
        compared = 0;
        dcn_sort(numbers, COUNT, sizeof *numbers, by_number);
        CHECK(compared <= 4 * COUNT * LOG);
        CHECK(dcn_sorted(numbers, COUNT, sizeof *numbers, by_number));
    }
}

TEST(sorting__what_is_sorted_costs_one_comparison_an_item)
{
    uint32_t numbers[1000];

    for (uint32_t i = 0; i < 1000; i++)
        numbers[i] = i / 2;
    compared = 0;
    dcn_sort(numbers, 1000, sizeof *numbers, by_number);
    CHECK_EQ(compared, 999);
    numbers[999] = 0;
    CHECK(!dcn_sorted(numbers, 1000, sizeof *numbers, by_number));
    test_alloc_fail(0);
    dcn_sort(numbers, 1000, sizeof *numbers, by_number);
    CHECK(!test_alloc_fired());
    CHECK_EQ(numbers[1], 0);
    CHECK_EQ(numbers[999], 499);
}
