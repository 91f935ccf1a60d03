/* What the commands share: who is called, with what, and how a run ends. */
#ifndef CLI_H
#define CLI_H

#include <decant/decant.h>

#include "args.h"
#include "json.h"

/* Exit status, as in decant(1). 128 and the number of a signal: the program dies by it, which a shell shows as that. */
enum {
    CLI_DONE = 0,
    CLI_NO = 1,          /* the answer is no */
    CLI_USAGE = 2,       /* wrong usage */
    CLI_INPUT = 3,       /* an input refused */
    CLI_OUTPUT = 4,      /* the output refused or failed */
    CLI_INTERRUPTED = 5, /* nothing is lost, and recover goes on or back */
    CLI_RESERVED = 6     /* saved, with a reservation that is printed */
};

typedef struct cli cli;

typedef struct cli_command {
    const char *name;
    const char *usage;    /* what follows the name */
    const char *summary;  /* one line, lower case */
    const char *examples; /* lines, each ended */
    unsigned bit;         /* CLI_CONVERT ...: which flags it takes */
    size_t min_files, max_files;
    int (*run)(cli *c); /* gives the exit status */
} cli_command;

/* One run. */
struct cli {
    const cli_command *command; /* NULL: none was named */
    cli_args args;
    cli_json json;      /* fields of the command under --json */
    decant_error last;  /* reported */
    decant_error error; /* the first of the highest exit status */
    bool saved;         /* an output is in place */
    int exit;           /* the highest so far */
};

extern const cli_command cli_convert, cli_plan, cli_inspect, cli_ls, cli_diff, cli_digest, cli_verify, cli_formats,
    cli_recover, cli_extract, cli_cat, cli_edit;

/*
 * Reports a failure: adds what the error lacks (the file, what to do next), prints it unless --json is set, keeps it for the
 * end, and gives its exit status.
 *
 * @param side  whose fault it is where the error does not say
 * @param file  it is about; NULL: none
 */
int cli_fail(cli *c, decant_error *err, decant_side side, const char *file);

/* Reports that there is no memory for the command's own lists. */
int cli_fail_nomem(cli *c);

/* The same for wrong usage; `hint` says what would be right. */
int cli_misuse(cli *c, const char *hint, const char *format, ...) DECANT_PRINTF(3, 4);

/* What to do next after a failure of an input, or of an output. */
const char *cli_hint(decant_status status, bool input);

/* The path of an input: "-" stands for the file that standard input comes from, which can be read from any place. */
const char *cli_input_path(const char *path);

/* Opens an input as the flags say. A failure is reported already; gives the exit status. */
int cli_open(cli *c, const char *path, decant_model **out);

/* How many files the data of a set lies in; 0: the model is one file. */
size_t cli_shards(const decant_model *model);

/* The fields of an error. `file`: whose it is */
void cli_json_error(cli_json *j, const decant_error *err, const char *file);

/* What is odd about an input, under --json: an array of texts; without a key the texts alone, for one that is open. */
void cli_json_odd(cli_json *j, const char *key, const decant_model *model);

/*
 * Leaves out of the files those that are named by others too: parts of a set that a folder, an index or the first part of it
 * stands for. (Inputs that are merged are compared when all are open: inputs.c.)
 */
void cli_count_once(cli *c);

/* Begins and ends what is said of a FILE: under --json an object of "files", with "file" and "error". */
void cli_file_begin(cli *c, const char *path);
void cli_file_end(cli *c);

/*
 * Opens one FILE after the other and shows it; one that fails does not stop the others. Under --json each is an object of
 * "files", with "file" and "error" written here. Gives the highest exit status.
 */
int cli_each_file(cli *c, void (*show)(cli *c, const char *path, const decant_model *model));

#endif
