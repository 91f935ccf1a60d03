/* Writing JSON. Commas are put by the writer; a NULL key stands in arrays. Text that is no UTF-8 is made UTF-8. */
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct cli_json {
    FILE *out;  /* NULL: --json was not asked for */
    bool comma; /* before what comes next */
} cli_json;

void cli_json_open(cli_json *j, const char *key, char bracket);     /* '{' or '[' */
void cli_json_close(cli_json *j, char bracket);                     /* '}' or ']' */
void cli_json_text(cli_json *j, const char *key, const char *text); /* NULL or "": null */
void cli_json_counted(cli_json *j, const char *key, const char *text, size_t len);
void cli_json_count(cli_json *j, const char *key, uint64_t count); /* a number, for what stays below 2^53 */
void cli_json_bytes(cli_json *j, const char *key, uint64_t bytes); /* text, for what may pass it */
void cli_json_real(cli_json *j, const char *key, double value);
void cli_json_bool(cli_json *j, const char *key, bool value);
void cli_json_shape(cli_json *j, const char *key, const uint64_t *shape, size_t rank);
void cli_json_reader(cli_json *j, const char *program, const char *why_not); /* of "opens_in" */

#endif
