/* Printing for people: names made safe, sizes made readable. */
#ifndef CLI_OUT_H
#define CLI_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <decant/decant.h>

/* Room for any number or size below. */
enum { CLI_NUMBER = 32 };

/* "16,060,522,496" */
const char *cli_thousands(char out[CLI_NUMBER], uint64_t value);

/* "1.05 GB", "312 bytes": powers of 1000 */
const char *cli_size(char out[CLI_NUMBER], uint64_t bytes);

/* "0.31 s", "41 s", "12 min" */
const char *cli_duration(char out[CLI_NUMBER], double seconds);

/* The length of the UTF-8 character that `text` begins with; 0 if there is none in `left` bytes. `point` may be NULL. */
size_t cli_utf8(const char *text, size_t left, uint32_t *point);

/*
 * Prints text with what would move the cursor, break the line or reorder its surroundings escaped, as \xNN or \u{NNNN}. More
 * than `most` columns are cut, with "..." at the end. Gives the columns. `out` may be NULL: only measures.
 */
size_t cli_put_text(FILE *out, const char *text, size_t len, size_t most);

/* The same into `out` of `size` bytes, cut to fit. */
void cli_escape(char *out, size_t size, const char *text);

/* Prints a path as a shell takes it: in quotes where it wants them. */
void cli_put_word(FILE *out, const char *text);

/* Prints "[2, 3]". Gives the columns. `out` may be NULL. */
size_t cli_put_shape(FILE *out, const uint64_t *shape, size_t rank);

/* "[7, 12]": the place of an element in its tensor, of its index row by row. */
void cli_put_place(FILE *out, const decant_tensor *tensor, uint64_t index);

/* Prints who opens a file, or why not, as one of a list: "safetensors; transformers: no metadata format = pt". */
void cli_put_reader(FILE *out, size_t index, const char *program, const char *why_not);

void cli_put_spaces(FILE *out, size_t count);

/* Writes to standard output, at once: the callback of a stream. */
decant_status cli_write_out(void *ctx, const void *data, size_t len, decant_error *err);

/* "s", or "" after one. */
const char *cli_plural(uint64_t count);

#endif
