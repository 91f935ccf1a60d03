#include "transform/pattern.h"

#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

/* --- globs -------------------------------------------------------------------------------------------------------- */

/* The end of the set that begins behind the "[" at `at`; NULL if there is none, and "[" is a character like others. */
static const char *set_end(const char *at, const char *end)
{
    at += at < end && (*at == '!' || *at == '^');
    at += at < end && *at == ']'; /* in front it is a member */
    while (at < end && *at != ']')
        at += *at == '\\' && at + 1 < end ? 2 : 1;
    return at < end ? at : NULL;
}

/* A member of a set, or an end of a range: a character, or what a backslash quotes. */
static uint32_t take_member(const char **at)
{
    *at += **at == '\\';
    return dcn_utf8_take(at);
}

static bool in_set(const char *at, const char *end, uint32_t point)
{
    bool inverted = *at == '!' || *at == '^', found = false;

    at += inverted;
    while (at < end) {
        uint32_t low = take_member(&at), high = low;

        if (at + 1 < end && *at == '-') {
            at++;
            high = take_member(&at);
        }
        found |= point >= low && point <= high;
    }
    return found != inverted;
}

/* Whether what the pattern goes on with means this character. Then it is passed. */
static bool match_one(const char **pattern, const char *end, uint32_t point)
{
    const char *at = *pattern, *close;
    bool yes;

    if (at == end)
        return false;
    if (*at == '?') {
        yes = true;
        at++;
    } else if (*at == '[' && (close = set_end(at + 1, end))) {
        yes = in_set(at + 1, close, point);
        at = close + 1;
    } else {
        at += *at == '\\' && at + 1 < end;
        yes = dcn_utf8_take(&at) == point;
    }
    if (yes)
        *pattern = at;
    return yes;
}

/* A star takes nothing first, and one character more each time when what follows it does not fit: the last star will do. */
static bool match_glob(const char *pattern, const char *name, size_t len)
{
    const char *end = pattern + strlen(pattern), *name_end = name + len, *star = NULL, *taken = NULL;

    while (name < name_end) {
        const char *next = name;
        uint32_t point = dcn_utf8_take(&next);

        if (pattern < end && *pattern == '*') {
            star = ++pattern;
            taken = name;
        } else if (match_one(&pattern, end, point)) {
            name = next;
        } else if (star) {
            pattern = star;
            dcn_utf8_take(&taken);
            name = taken;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return pattern == end;
}

/* --- both --------------------------------------------------------------------------------------------------------- */

decant_status dcn_pattern_open(const char *text, size_t len, dcn_pattern *out, decant_error *err)
{
    static const char mark[] = "re:";
    size_t skip = len >= sizeof mark - 1 && memcmp(text, mark, sizeof mark - 1) == 0 ? sizeof mark - 1 : 0;
    dcn_pattern made = {0};
    decant_status rc = DECANT_OK;

    if (!dcn_utf8_valid(text, len)) {
        rc = decant_error_set(err, DECANT_BAD_CALL, "a pattern that is not UTF-8 matches no name");
        dcn_error_hint(err, "names are UTF-8, whatever the locale is");
    } else if (len == skip) {
        rc = decant_error_set(err, DECANT_BAD_CALL, "an empty pattern matches no name");
        dcn_error_hint(err, "'*' matches all of them");
    } else if (!(made.text = dcn_strndup(text + skip, len - skip))) {
        rc = dcn_error_nomem(err);
    } else if (skip) {
        rc = dcn_regex_compile(made.text, len - skip, false, &made.regex, err);
    }
    if (rc)
        dcn_pattern_close(&made);
    else
        *out = made;
    return rc;
}

decant_status dcn_pattern_match(dcn_pattern *pattern, const char *name, size_t len, bool *yes, decant_error *err)
{
    const dcn_group *groups;
    decant_status rc = DECANT_OK;

    if (pattern->regex)
        rc = dcn_regex_search(pattern->regex, name, len, 0, yes, &groups, err);
    else
        *yes = match_glob(pattern->text, name, len);
    pattern->matched |= rc == DECANT_OK && *yes;
    return rc;
}

bool dcn_pattern_is_name(const dcn_pattern *pattern)
{
    return !pattern->regex && !strpbrk(pattern->text, "*?[");
}

void dcn_pattern_close(dcn_pattern *pattern)
{
    dcn_regex_close(&pattern->regex);
    dcn_free(&pattern->text);
}
