#include "base/sort.h"

#include <assert.h>
#include <string.h>

enum { LARGEST = 64 };

typedef struct sorting {
    char *items;
    size_t size;
    int (*compare)(const void *a, const void *b);
} sorting;

static char *item(const sorting *s, size_t i)
{
    return s->items + i * s->size;
}

/* Lets `held` sink from the hole at `root` of a heap of `count` items: the largest child moves up each time. */
static void sink(const sorting *s, size_t root, size_t count, const char *held)
{
    size_t child;

    while ((child = 2 * root + 1) < count) {
        if (child + 1 < count && s->compare(item(s, child), item(s, child + 1)) < 0)
            child++;
        if (s->compare(held, item(s, child)) >= 0)
            break;
        memcpy(item(s, root), item(s, child), s->size);
        root = child;
    }
    memcpy(item(s, root), held, s->size);
}

bool dcn_sorted(const void *items, size_t count, size_t size, int (*compare)(const void *a, const void *b))
{
    const char *at = items;

    for (size_t i = 1; i < count; i++, at += size)
        if (compare(at, at + size) > 0)
            return false;
    return true;
}

/* Sorts a heap's way: never slow, but far from one item to the next. For runs on which quicksort does badly. */
static void heap_sort(const sorting *s, size_t count)
{
    _Alignas(max_align_t) char held[LARGEST];

    for (size_t root = count / 2; root-- > 0;) {
        memcpy(held, item(s, root), s->size);
        sink(s, root, count, held);
    }
    for (size_t end = count; end-- > 1;) {
        memcpy(held, item(s, end), s->size);
        memcpy(item(s, end), item(s, 0), s->size);
        sink(s, 0, end, held);
    }
}

static void insertion_sort(const sorting *s, size_t count)
{
    _Alignas(max_align_t) char held[LARGEST];

    for (size_t i = 1; i < count; i++) {
        size_t hole = i;

        memcpy(held, item(s, i), s->size);
        for (; hole > 0 && s->compare(item(s, hole - 1), held) > 0; hole--)
            memcpy(item(s, hole), item(s, hole - 1), s->size);
        memcpy(item(s, hole), held, s->size);
    }
}

static void swap(const sorting *s, size_t a, size_t b)
{
    _Alignas(max_align_t) char held[LARGEST];

    memcpy(held, item(s, a), s->size);
    memcpy(item(s, a), item(s, b), s->size);
    memcpy(item(s, b), held, s->size);
}

/* Parts a run at the median of its first, middle and last item. @return how many are in the left part: not all, not none */
static size_t part(const sorting *s, size_t count)
{
    size_t middle = count / 2, last = count - 1, low = 0, high = count;
    _Alignas(max_align_t) char pivot[LARGEST];

    if (s->compare(item(s, middle), item(s, 0)) < 0)
        swap(s, middle, 0);
    if (s->compare(item(s, last), item(s, 0)) < 0)
        swap(s, last, 0);
    if (s->compare(item(s, last), item(s, middle)) < 0)
        swap(s, last, middle);
    memcpy(pivot, item(s, middle), s->size);
    for (;; swap(s, low, high)) {
        while (s->compare(item(s, ++low), pivot) < 0)
            ;
        while (s->compare(item(s, --high), pivot) > 0)
            ;
        if (low >= high)
            return low;
    }
}

void dcn_sort(void *items, size_t count, size_t size, int (*compare)(const void *a, const void *b))
{
    enum { SHORT = 16 };
    struct {
        char *items;
        size_t count;
        unsigned left;                      /* partings before a heap takes over */
    } waiting[64], run = {items, count, 0}; /* the larger part waits, so fewer wait than a count has bits */
    size_t wait_count = 0;

    assert(size <= LARGEST);
    if (dcn_sorted(items, count, size, compare))
        return;
    for (size_t n = count; n; n /= 2)
        run.left += 2;
    for (;;) {
        sorting s = {run.items, size, compare};

        if (run.count > SHORT && run.left) {
            size_t left = part(&s, run.count), right = run.count - left;
            char *behind = run.items + left * size;

            run.left--;
            waiting[wait_count] = run;
            if (left < right) {
                waiting[wait_count].items = behind;
                waiting[wait_count].count = right;
                run.count = left;
            } else {
                waiting[wait_count].count = left;
                run.items = behind;
                run.count = right;
            }
            wait_count++;
            continue;
        }
        if (run.count > SHORT)
            heap_sort(&s, run.count);
        else
            insertion_sort(&s, run.count);
        if (!wait_count)
            return;
        run = waiting[--wait_count];
    }
}
