/* The models that a command works on, opened and changed as the flags say. */
#ifndef CLI_INPUTS_H
#define CLI_INPUTS_H

#include "cli.h"

/* A file, or a set of files. */
typedef struct cli_input {
    const char *path;    /* as it was typed */
    const char *prefix;  /* for its names; NULL: none */
    decant_model *model; /* as it is there */
} cli_input;

typedef struct cli_inputs {
    cli_input *items; /* parts of a set that are named besides it are none */
    size_t count;
    decant_model *made; /* of them, by the flags; NULL: there is one model, and it stays as it is */
} cli_inputs;           /* {0} is closed */

/* Opens the first `count` files. A failure is reported already; gives the exit status. */
int cli_inputs_open(cli *c, size_t count, cli_inputs *out);

/* Where the tensor is that the user calls `name`. A failure is reported already; gives the exit status. */
int cli_find_tensor(cli *c, const decant_model *model, const char *name, size_t *index);

/* What is to be saved or compared. */
const decant_model *cli_inputs_model(const cli_inputs *in);

/* The files with what they hold, for people: "from", a row each. */
void cli_inputs_show(const cli *c, const cli_inputs *in);

/*
 * What is changed, for people: "leaves", "puts", "casts", "renames", "sets" and "unsets", rows behind `indent`; of many names the
 * first, without -v.
 */
void cli_inputs_show_changes(FILE *out, const char *indent, const cli *c, const cli_inputs *in);

/* The same as fields: "omitted", "puts", "changes", "sets" and "unsets". */
void cli_inputs_json(cli *c, const cli_inputs *in);

/* What is odd about them, as a field. */
void cli_inputs_json_odd(cli *c, const cli_inputs *in);

/*
 * Whether standard output leads into a file of the model: bytes that are put behind those of an input damage it. (What ">"
 * has emptied is told for what it is when it is opened.) Gives the exit status.
 */
int cli_check_stdout(cli *c, const decant_model *model);

void cli_inputs_close(cli_inputs *in);

#endif
