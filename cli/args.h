/* Flags, from one table that also makes the help. */
#ifndef CLI_ARGS_H
#define CLI_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <decant/decant.h>

enum {
    CLI_CONVERT = 1,
    CLI_PLAN = 2,
    CLI_INSPECT = 4,
    CLI_LS = 8,
    CLI_DIFF = 16,
    CLI_FORMATS = 32,
    CLI_DIGEST = 64,
    CLI_VERIFY = 128,
    CLI_RECOVER = 256,
    CLI_EXTRACT = 512,
    CLI_CAT = 1024,
    CLI_EDIT = 2048
};

/* What a flag that may be given often was given, in order. */
typedef struct cli_list {
    const char **items; /* owned */
    size_t count;
} cli_list;

typedef struct cli_args {
    uint64_t given; /* a bit a flag, in the order of their table */
    bool help, version, quiet, verbose, json;
    bool lenient, dry_run, force, deep, verify;
    bool resume, undo, prune, consume;
    unsigned allow; /* DECANT_ALLOW_* */
    decant_layout layout;
    uint64_t align;          /* bytes; 0: not given */
    uint64_t max_shard;      /* bytes; 0: not given */
    const char *output, *to; /* NULL: not given */
    const char *check, *rtol, *atol;
    cli_list include, exclude, rename, dtype, set, unset, put, drop;
    const char *prefix; /* for the next file */
    char **files;       /* the words that are no flags; in argv, which is reordered */
    size_t file_count;
    const char **prefixes; /* of the files, each may be NULL; NULL: of none. Owned */
} cli_args;

/*
 * Parses argv[0..count) for the commands in `bits`.
 *
 * @param hint  of 256 bytes: what would be right, when it fails
 * @return DECANT_BAD_CALL with its message, for wrong usage; DECANT_NOMEM
 */
decant_status cli_args_parse(cli_args *args, unsigned bits, int count, char **argv, char *hint, decant_error *err);

/* Gives back what parsing took. */
void cli_args_close(cli_args *args);

/* Whether --json is among them: known before anything else can be wrong. */
bool cli_args_json(int count, char **argv);

/* The flags of a command, a line each, for its help. */
void cli_args_help(FILE *out, unsigned bits);

/* The one of `words` (NULL ends) that `word` may be a misspelling of; NULL if none is close. */
const char *cli_closest(const char *word, const char *const *words);

/* How many letters must be put in, taken out or changed. Words of more than 63 bytes are far from everything. */
size_t cli_distance(const char *a, const char *b);

#endif
