/* Which names are meant: a glob for the whole name, or after "re:" a regular expression for some part of it. */
#ifndef DCN_PATTERN_H
#define DCN_PATTERN_H

#include "transform/regex.h"

typedef struct dcn_pattern {
    char *text;       /* as it was given, without "re:"; owned */
    dcn_regex *regex; /* NULL: a glob */
    bool matched;     /* some name so far */
} dcn_pattern;        /* {0} is closed */

/* @param len  bytes of `text`, which must be UTF-8 */
decant_status dcn_pattern_open(const char *text, size_t len, dcn_pattern *out, decant_error *err);

/* Whether a name is meant. Keeps in `matched` that one was. */
decant_status dcn_pattern_match(dcn_pattern *pattern, const char *name, size_t len, bool *yes, decant_error *err);

/* Whether it can mean one name only. */
bool dcn_pattern_is_name(const dcn_pattern *pattern);

void dcn_pattern_close(dcn_pattern *pattern);

#endif
