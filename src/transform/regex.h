/* Regular expressions: PCRE2 where decant is built with it (DCN_HAS_PCRE2), bounded in what a match may cost. */
#ifndef DCN_REGEX_H
#define DCN_REGEX_H

#include <stdbool.h>

#include "base/error.h"

typedef struct dcn_regex dcn_regex;

/* Where a match, or a group of it, lies in the text. */
typedef struct dcn_group {
    size_t begin, end; /* SIZE_MAX: this group took no part */
} dcn_group;

/*
 * @param out  [owned]
 * @return DECANT_BAD_CALL, with where it is wrong; DECANT_UNSUPPORTED in a build without PCRE2; DECANT_NOMEM
 */
decant_status dcn_regex_compile(const char *pattern, size_t len, bool ignore_case, dcn_regex **out, decant_error *err);

/* How many groups it has, besides the whole. */
size_t dcn_regex_groups(const dcn_regex *regex);

/*
 * Searches UTF-8 text from `at` on.
 *
 * @param found   whether there is a match
 * @param groups  [lent] the match, then its groups; until the next search
 * @return DECANT_LIMIT where it takes too long
 */
decant_status dcn_regex_search(dcn_regex *regex, const char *text, size_t len, size_t at, bool *found,
                               const dcn_group **groups, decant_error *err);

void dcn_regex_close(dcn_regex **regex);

#endif
