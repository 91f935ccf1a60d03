/* What all commands that write have in common: progress, signals, the plan or the summary, JSON, the exit status. */
#ifndef CLI_SAVE_H
#define CLI_SAVE_H

#include "inputs.h"

/* What is written, and how it is told of. */
typedef struct cli_saving {
    /* plans or saves to c->args.output */
    decant_status (*run)(const cli *c, void *ctx, const decant_save_options *options, bool plan_only,
                         decant_report **report, decant_error *err);
    const cli_inputs *in; /* the models, with what is changed on the way; NULL: it is files that are joined */
    size_t parts;         /* how many files */
    void (*show)(const cli *c, void *ctx); /* them: "from", a row each */
    void *ctx;
} cli_saving;

/* @param format  of the output; NULL: none is asked for. Gives the exit status */
int cli_save(cli *c, const cli_saving *s, const char *format, bool plan_only);

#endif
