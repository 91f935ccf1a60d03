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

void dcn_sort(void *items, size_t count, size_t size, int (*compare)(const void *a, const void *b))
{
    const sorting s = {items, size, compare};
    _Alignas(max_align_t) char held[LARGEST];

    assert(size <= LARGEST);
    if (dcn_sorted(items, count, size, compare))
        return;
    for (size_t root = count / 2; root-- > 0;) {
        memcpy(held, item(&s, root), size);
        sink(&s, root, count, held);
    }
    for (size_t end = count - 1; end > 0; end--) {
        memcpy(held, item(&s, end), size);
        memcpy(item(&s, end), item(&s, 0), size);
        sink(&s, 0, end, held);
    }
}

/* Merges two neighbours, each in order, of `left` and `right` items. */
static void merge(const sorting *s, const char *in, char *out, size_t left, size_t right)
{
    const char *a = in, *middle = in + left * s->size, *b = middle, *end = middle + right * s->size;

    if (right == 0 || s->compare(middle - s->size, middle) <= 0) {
        memcpy(out, in, (size_t)(end - in));
        return;
    }
    while (a < middle && b < end) {
        const char **least = s->compare(b, a) < 0 ? &b : &a;

        memcpy(out, *least, s->size);
        *least += s->size;
        out += s->size;
    }
    memcpy(out, a, (size_t)(middle - a));
    memcpy(out + (middle - a), b, (size_t)(end - b));
}

void dcn_sort_merging(void *items, void *spare, size_t count, size_t size, int (*compare)(const void *a, const void *b))
{
    const sorting s = {items, size, compare};
    char *in = items, *out = spare;

    if (dcn_sorted(items, count, size, compare))
        return;
    for (size_t run = 1; run < count; run *= 2) {
        char *filled = out;

        for (size_t from = 0; from < count; from += 2 * run) {
            size_t left = run < count - from ? run : count - from;
            size_t right = run < count - from - left ? run : count - from - left;

            merge(&s, in + from * size, out + from * size, left, right);
        }
        out = in;
        in = filled;
    }
    if (in != items)
        memcpy(items, in, count * size);
}
