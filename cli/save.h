/* What all commands that write have in common: progress, signals, the plan or the summary, JSON, the exit status. */
#ifndef CLI_SAVE_H
#define CLI_SAVE_H

#include "cli.h"

/* What is written, and how it is told of. */
typedef struct cli_saving {
    /* plans or saves to c->args.output */
    decant_status (*run)(const cli *c, void *ctx, const decant_save_options *options, bool plan_only,
                         decant_report **report, decant_error *err);
    void (*show)(const cli *c, void *ctx); /* "from", a row each */
    /* what is changed on the way, a row each behind `indent`; NULL: nothing ever is */
    void (*show_changes)(FILE *out, const char *indent, const cli *c, void *ctx);
    void (*json)(cli *c, void *ctx); /* fields of the command's own; NULL: none */
    size_t parts;                    /* files that are joined; 0: it is tensors that are counted */
    void *ctx;
} cli_saving;

/* @param format  of the output; NULL: none is asked for. Gives the exit status */
int cli_save(cli *c, const cli_saving *s, const char *format, bool plan_only);

#endif
