/*
 * Which bytes of the files that are given up stand where in the outputs, unchanged. Pure. The same runs say what a drain
 * writes, what its marks cover, what can be freed after it, and where everything is when it is put back.
 */
#ifndef DCN_RUNS_H
#define DCN_RUNS_H

#include <stdbool.h>

#include "base/error.h"

/* Bytes [from, from + len) of a source are bytes [to, to + len) of an output. 40 bytes. */
typedef struct dcn_run {
    uint64_t from, to, len;
    uint64_t reach; /* of the source: where the furthest of its runs up to this one ends */
    uint32_t source, output;
} dcn_run;

enum { DCN_RUNS_MOST = 1 << 20 }; /* that are drained: a journal has them all */

/* Sorted by source and place in it, once finished. Runs of a source may overlap: what stands in two places has two runs. */
typedef struct dcn_runs {
    dcn_run *items;
    size_t count, cap;
    size_t *begins; /* of each source's runs; one more than there are sources, the last is `count` */
    size_t sources;
    struct dcn_sharers *sharers; /* NULL: there are none */
} dcn_runs;                      /* {0} is empty */

/* Adds a run; one that goes on where the last one ended makes that longer. */
decant_status dcn_runs_add(dcn_runs *runs, const dcn_run *run, decant_error *err);

/* Whether run `b` stands behind `a` once they are finished. */
bool dcn_run_follows(const dcn_run *a, const dcn_run *b);

/* No more come: sorts them, and joins neighbours. */
decant_status dcn_runs_finish(dcn_runs *runs, size_t sources, decant_error *err);

/*
 * The first bytes of a source in [at, limit) that are in a run, as far as they go without a gap, and at most `most` of them.
 *
 * @return false: there are none
 */
bool dcn_runs_cover(const dcn_runs *runs, uint32_t source, uint64_t at, uint64_t limit, uint64_t most, uint64_t *from,
                    uint64_t *upto);

/* Where the last run of a source ends; 0: it has none. */
uint64_t dcn_runs_end(const dcn_runs *runs, uint32_t source);

/* A walk over the places of bytes [at, upto) of a source. */
typedef struct dcn_places {
    const dcn_runs *runs;
    uint64_t at, upto;
    size_t next, end;
} dcn_places;

/* Bytes [from, from + len) of the source are at `to` of `output`. */
typedef struct dcn_placing {
    uint64_t from, to, len;
    uint32_t output;
} dcn_placing;

dcn_places dcn_places_of(const dcn_runs *runs, uint32_t source, uint64_t at, uint64_t upto);
bool dcn_places_next(dcn_places *places, dcn_placing *out);

/* The same ones, finished, for one more who closes them. @param out  {0} where that fails */
decant_status dcn_runs_share(dcn_runs *runs, dcn_runs *out, decant_error *err);

void dcn_runs_close(dcn_runs *runs);

#endif
