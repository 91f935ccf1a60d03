/* What decant digest printed, read again. */
#ifndef CLI_MANIFEST_H
#define CLI_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <decant/decant.h>

/* A tensor's line: "sha256  HEX  FILE:NAME". */
typedef struct cli_line {
    char *name; /* counted: it may hold anything */
    size_t name_len;
    size_t section;
    char hex[DECANT_DIGEST];
    bool wanted, seen; /* marks of who compares */
} cli_line;

/* What was said of one file; its last line is "model  HEX  FILE". */
typedef struct cli_section {
    char *file;
    char hex[DECANT_DIGEST];
} cli_section;

typedef struct cli_manifest {
    cli_line *lines; /* sorted by name */
    size_t count, cap;
    cli_section *sections;
    size_t section_count;
} cli_manifest;

/*
 * Reads a manifest; "-" is standard input.
 *
 * @return DECANT_MALFORMED for what digest did not print, or not to its end; a failure to read it
 */
decant_status cli_manifest_read(cli_manifest *m, const char *path, decant_error *err);

/* The first line of this name and how many there are; NULL: none. */
cli_line *cli_manifest_find(const cli_manifest *m, const char *name, size_t name_len, size_t *count);

/* The section that speaks of the file, by its path or else by its last component alone. NULL: none, or several. */
const cli_section *cli_manifest_section(const cli_manifest *m, const char *path);

void cli_manifest_close(cli_manifest *m);

/* Prints text so that it can be read back: as cli_put_text(), and a backslash twice. */
void cli_put_exact(FILE *out, const char *text, size_t len);

#endif
