#include <stdio.h>
#include <stdlib.h>

#include "pour/runs.h"
#include "support/test.h"

/* Runs against a byte at a time: where each byte of the sources goes. */
enum { SOURCES = 3, OUTPUTS = 2, SIZE = 120, PLACES = 16 };

typedef struct table {
    dcn_runs runs;
    size_t count[SOURCES][SIZE]; /* places of each byte */
    struct {
        uint32_t output;
        uint64_t to;
    } places[SOURCES][SIZE][PLACES];
} table;

static void add(table *t, uint32_t source, uint64_t from, uint32_t output, uint64_t to, uint64_t len)
{
    dcn_run run = {.from = from, .to = to, .len = len, .source = source, .output = output};
    decant_error err;

    CHECK_OK(dcn_runs_add(&t->runs, &run, &err), &err);
    for (uint64_t k = 0; k < len; k++) {
        size_t *count = &t->count[source][from + k];

        CHECK(*count < PLACES);
        t->places[source][from + k][*count].output = output;
        t->places[source][from + k][(*count)++].to = to + k;
    }
}

/* Runs of any length, in any order, some of which lie on others, and neighbours among them. */
static void fill(table *t, uint64_t seed)
{
    decant_error err;

    *t = (table){0};
    for (uint64_t i = test_random(&seed) % 14; i > 0; i--) {
        uint32_t source = (uint32_t)(test_random(&seed) % SOURCES), output = (uint32_t)(test_random(&seed) % OUTPUTS);
        uint64_t from = test_random(&seed) % SIZE, len = 1 + test_random(&seed) % (SIZE - from);
        uint64_t to = test_random(&seed) % 1000, cut = len / 2;

        if (test_random(&seed) % 2 && cut) {
            add(t, source, from + cut, output, to + cut, len - cut);
            len = cut;
        }
        add(t, source, from, output, to, len);
    }
    CHECK_OK(dcn_runs_finish(&t->runs, SOURCES, &err), &err);
}

/* The first byte at or behind `at` that is in a run. */
static uint64_t first_in(const table *t, uint32_t source, uint64_t at)
{
    while (at < SIZE && !t->count[source][at])
        at++;
    return at;
}

static void check_cover(const table *t, uint32_t source, uint64_t at, uint64_t limit, uint64_t most)
{
    uint64_t from = 0, upto = 0, wanted = first_in(t, source, at), end = wanted;
    bool found = dcn_runs_cover(&t->runs, source, at, limit, most, &from, &upto);

    CHECK_EQ(found, wanted < limit && wanted < SIZE);
    if (!found)
        return;
    while (end < SIZE && end < limit && end - wanted < most && t->count[source][end])
        end++;
    CHECK_EQ(from, wanted);
    CHECK_EQ(upto, end);
}

/* Each byte of [at, upto) is at each of its places, as often as it was put there, and nothing else is. */
static void check_places(const table *t, uint32_t source, uint64_t at, uint64_t upto)
{
    dcn_places places = dcn_places_of(&t->runs, source, at, upto);
    size_t seen = 0, wanted = 0;
    dcn_placing p;

    while (dcn_places_next(&places, &p)) {
        CHECK(p.len > 0 && p.from >= at && p.from + p.len <= upto);
        for (uint64_t k = 0; k < p.len; k++, seen++) {
            size_t i = 0;

            while (i < t->count[source][p.from + k] && (t->places[source][p.from + k][i].output != p.output ||
                                                        t->places[source][p.from + k][i].to != p.to + k))
                i++;
            CHECK(i < t->count[source][p.from + k]);
        }
    }
    for (uint64_t k = at; k < upto; k++)
        wanted += t->count[source][k];
    CHECK_EQ(seen, wanted);
}

TEST(runs__say_of_each_byte_whether_it_goes_and_where_to)
{
    table *t = malloc(sizeof *t);

    CHECK(t != NULL);
    for (uint64_t seed = 1; seed < 300; seed++) {
        uint64_t state = seed;

        fill(t, seed);
        for (uint32_t source = 0; source < SOURCES; source++) {
            uint64_t end = SIZE;

            while (end && !t->count[source][end - 1])
                end--;
            CHECK_EQ(dcn_runs_end(&t->runs, source), end);
            for (unsigned i = 0; i < 40; i++) {
                uint64_t at = test_random(&state) % (SIZE + 1), upto = at + test_random(&state) % (SIZE + 1 - at);

                check_cover(t, source, at, upto, 1 + test_random(&state) % 50);
                check_cover(t, source, at, UINT64_MAX, UINT64_MAX);
                check_places(t, source, at, upto);
            }
        }
        for (size_t i = 1; i < t->runs.count; i++)
            CHECK(t->runs.items[i].source > t->runs.items[i - 1].source ||
                  t->runs.items[i].from >= t->runs.items[i - 1].from);
        dcn_runs_close(&t->runs);
    }
    free(t);
}

TEST(runs__are_joined_where_one_goes_on_where_another_ends)
{
    dcn_runs runs = {0};
    dcn_run parts[] = {{.from = 20, .to = 120, .len = 10},
                       {.from = 0, .to = 100, .len = 10},
                       {.from = 10, .to = 110, .len = 10},
                       {.from = 30, .to = 131, .len = 10},
                       {.from = 40, .to = 141, .len = 10, .output = 1}};
    decant_error err;

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        CHECK_OK(dcn_runs_add(&runs, &parts[i], &err), &err);
    CHECK_OK(dcn_runs_finish(&runs, 1, &err), &err);
    CHECK_EQ(runs.count, 3);
    CHECK_EQ(runs.items[0].len, 30);
    for (size_t i = 1; i < runs.count; i++)
        CHECK(dcn_run_follows(&runs.items[i - 1], &runs.items[i]));
    CHECK(!dcn_run_follows(&runs.items[1], &runs.items[0]));
    CHECK(!dcn_run_follows(&parts[1], &parts[2])); /* what belongs together stands in one */
    dcn_runs_close(&runs);
}
