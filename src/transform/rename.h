/* s/RE/TO/: the substitution of sed, with the regular expressions of PCRE2. */
#ifndef DCN_RENAME_H
#define DCN_RENAME_H

#include "base/buf.h"
#include "transform/regex.h"

/* A part of what a match becomes. */
typedef struct dcn_becomes {
    size_t begin, len; /* of dcn_rename.text */
    size_t group;      /* SIZE_MAX: that text; else what this group matched, 0 the whole */
} dcn_becomes;

typedef struct dcn_rename {
    dcn_regex *regex;
    dcn_buf text;
    dcn_becomes *parts;
    size_t count;
    bool all;     /* every match, not the first only */
    bool matched; /* some name so far */
} dcn_rename;     /* {0} is closed */

/*
 * @param text  s/RE/TO/ and flags: any character may stand for "/"; g: every match, i: case does not count
 * @return DECANT_BAD_CALL with what is wrong; what dcn_regex_compile() says
 */
decant_status dcn_rename_open(const char *text, dcn_rename *out, decant_error *err);

/* Appends to `out` what a name becomes. Keeps in `matched` that one did match. */
decant_status dcn_rename_apply(dcn_rename *rename, const char *name, size_t len, dcn_buf *out, decant_error *err);

void dcn_rename_close(dcn_rename *rename);

#endif
