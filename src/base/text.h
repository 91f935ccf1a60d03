/* UTF-8: checking it, and making it safe to print and to paste. */
#ifndef DCN_BASE_TEXT_H
#define DCN_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* Whether all of it is well-formed UTF-8 (no overlong forms, no surrogates, at most U+10FFFF). NUL is a character. */
bool dcn_utf8_valid(const void *data, size_t len);

/* The code point that begins at `*at`, which is passed. The text must be well-formed, and not at its end. */
uint32_t dcn_utf8_take(const char **at);

/*
 * How many bytes must change, come or go to make one text of the other, if that is less than `most`; else `most`.
 * Texts of more than 255 bytes are far from everything.
 */
size_t dcn_text_distance(const char *a, size_t a_len, const char *b, size_t b_len, size_t most);

/* The order of bytes, which is that of code points: as memcmp; of two that begin alike the shorter is first. */
int dcn_text_compare(const char *a, size_t a_len, const char *b, size_t b_len);

/* The length of the longest prefix of at most `max` bytes that does not cut a character. */
size_t dcn_utf8_cut(const char *text, size_t len, size_t max);

/*
 * Copies `text` for people into `out` of `size` bytes, NUL-terminated: control characters (C0, DEL, C1, bidi and line
 * separators) become \xNN or \u{NNNN}, bytes that are no UTF-8 become \xNN; cut to fit with "..." at the end.
 */
void dcn_text_escape(char *out, size_t size, const char *text, size_t len);

enum { DCN_WORD = 220 }; /* two of them fit in a hint */

/* A path as a shell takes it, in quotes where it needs them; "..." where that does not fit. @return out */
const char *dcn_text_word(char out[DCN_WORD], const char *path);

#endif
