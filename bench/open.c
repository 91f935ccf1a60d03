/*
 * How long the library takes to open a file and list its tensors, with `find` also to find each by its name, taken inside
 * the process:
 *
 *     decant-open FILE ROUNDS [find]
 *
 * prints {"open_ns":{"rounds":[NS,...],"median":NS}}, as the peers do. The first opening is not counted: it brings the header into the page cache.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <decant/decant.h>

enum { MOST_ROUNDS = 1000 };

static volatile uint64_t total; /* of the last opening, so that listing is not optimised away */

static uint64_t now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* What the peers do: list, or look every name up. */
static decant_status open_once(const char *path, bool finds, uint64_t *ns, decant_error *err)
{
    decant_open_options options = {.size = sizeof options, .allow = DECANT_ALLOW_LIMITS};
    decant_model *model = NULL;
    uint64_t start = now(), bytes = 0;
    decant_status rc = decant_open(path, &options, &model, err);

    for (size_t i = 0; !rc && i < decant_model_count(model); i++) {
        decant_tensor tensor = DECANT_TENSOR_INIT;
        size_t found;

        decant_model_tensor(model, i, &tensor);
        bytes += tensor.len;
        if (!finds)
            continue;
        rc = decant_model_find(model, tensor.name, tensor.name_len, &found, err);
        if (!rc && found != i)
            rc = decant_error_set(err, DECANT_MISMATCH, "tensor %zu is found at %zu", i, found);
    }
    *ns = now() - start;
    total = bytes;
    decant_model_close(&model);
    return rc;
}

int main(int argc, char **argv)
{
    static uint64_t times[MOST_ROUNDS];
    bool finds = argc == 4 && strcmp(argv[3], "find") == 0;
    int rounds = argc == 3 || finds ? atoi(argv[2]) : 0;
    decant_error err = {0};

    if (rounds < 1 || rounds > MOST_ROUNDS) {
        fputs("usage: decant-open FILE ROUNDS [find] (1 to 1000 rounds)\n", stderr);
        return 2;
    }
    for (int i = -1; i < rounds; i++) {
        uint64_t ns;

        if (open_once(argv[1], finds, &ns, &err)) {
            fprintf(stderr, "decant-open: %s\n", decant_error_text(&err));
            return 1;
        }
        if (i >= 0)
            times[i] = ns;
    }
    fputs("{\"open_ns\":{\"rounds\":[", stdout);
    for (int i = 0; i < rounds; i++)
        printf("%s%" PRIu64, i ? "," : "", times[i]);
    qsort(times, (size_t)rounds, sizeof *times, by_value);
    printf("],\"median\":%" PRIu64 "}}\n", times[rounds / 2]);
    return 0;
}
