/* A bar on the terminal: how far, how fast, how long still. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct cli_progress {
    const char *name; /* what is being written */
    bool shown;       /* whether there is a terminal to draw on */
    bool colour;
    bool drawn;         /* something is on the line */
    double start, last; /* seconds */
} cli_progress;

/* Seconds of a clock that only goes forward. */
double cli_clock(void);

void cli_progress_start(cli_progress *p, const char *name, bool quiet);

/* A decant_progress: draws at most ten times a second, and stops the save when a signal was caught. */
int cli_progress_step(void *progress, uint64_t done, uint64_t total);

/* Clears the line. */
void cli_progress_end(cli_progress *p);

#endif
