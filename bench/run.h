/* Running one contestant once, in a process of its own, and what it cost. */
#ifndef BENCH_RUN_H
#define BENCH_RUN_H

#include <stdbool.h>
#include <stdint.h>

enum { MOST_ARGS = 12 };

/* What is timed. Exactly one of `argv` and `function` is set. */
typedef struct contestant {
    const char *name;
    const char *argv[MOST_ARGS];                      /* NULL ends */
    int (*function)(const char *in, const char *out); /* run in a child; its exit status */
    bool syncs_output;              /* fsync `out` and its folder in the timer: what a careful user of `cp` would do */
    bool reports_ns;                /* prints {"open_ns":{"median":N}}: that is its time */
    const char *in, *out;           /* out NULL: writes nothing */
    const char *prepare[MOST_ARGS]; /* a command that is run first, out of the timer: it makes `in`; [0] NULL: none */
    const char *verify[MOST_ARGS];  /* a command that succeeds if `out` is right; [0] NULL: none */
} contestant;

typedef struct sample {
    double seconds; /* wall, or what it reported */
    double user, sys;
    uint64_t rss;                  /* peak, bytes */
    uint64_t faults;               /* minor and major */
    uint64_t read, written;        /* bytes that passed through system calls */
    uint64_t cache;                /* growth of the page cache, bytes */
    double io_stall, memory_stall; /* share of the time in which some task of the machine waited, 0 to 1 */
    bool failed;
} sample;

/* Removes `out`, prepares, waits until the disk is still, runs, measures. */
sample run_once(const contestant *who);

/* Runs a command to its end with its output hidden. @return its exit status, -1 if it did not start */
int run_quietly(const char *const *argv);

/* Seconds since some fixed time. */
double now(void);

#endif
