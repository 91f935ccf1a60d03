#include "transform/rename.h"

#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

/* --- reading it --------------------------------------------------------------------------------------------------- */

/* Text that is being read, up to its NUL, and the character between its parts. */
typedef struct script {
    const char *at;
    const char *delimiter;
    size_t delimiter_len;
} script;

static decant_status refuse(decant_error *err, const char *what)
{
    decant_error_set(err, DECANT_BAD_CALL, "%s", what);
    dcn_error_hint(err, "write s/RE/TO/, or s/RE/TO/g for every match");
    return DECANT_BAD_CALL;
}

static bool at_delimiter(const script *s)
{
    return strncmp(s->at, s->delimiter, s->delimiter_len) == 0;
}

static bool is_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* A character, with its backslash if it has one. The delimiter that a backslash quotes stands for itself. */
static void take_quoted(script *s, dcn_buf *out)
{
    const char *begin = s->at;

    if (*s->at == '\\' && s->at[1]) {
        s->at++;
        begin += at_delimiter(s) && is_word(*s->at); /* \/ means / to PCRE2 as well, but \d means more than d */
    }
    dcn_utf8_take(&s->at);
    dcn_buf_put(out, begin, (size_t)(s->at - begin));
}

/* [...], where a delimiter is a member like others. */
static void take_set(script *s, dcn_buf *out)
{
    const char *begin = s->at++;

    s->at += *s->at == '^';
    s->at += *s->at == ']';
    while (*s->at && *s->at != ']') {
        const char *close = *s->at == '[' && s->at[1] == ':' ? strstr(s->at + 2, ":]") : NULL;

        s->at = close ? close + 2 : s->at + (*s->at == '\\' && s->at[1] ? 2 : 1);
    }
    s->at += *s->at == ']';
    dcn_buf_put(out, begin, (size_t)(s->at - begin));
}

static decant_status take_regex(script *s, dcn_buf *out, decant_error *err)
{
    while (*s->at && !at_delimiter(s)) {
        if (*s->at == '[')
            take_set(s, out);
        else
            take_quoted(s, out);
    }
    if (!*s->at)
        return refuse(err, "a substitution that has no end");
    s->at += s->delimiter_len;
    return out->len || out->failed ? DECANT_OK : refuse(err, "a substitution of nothing");
}

static decant_status add_part(dcn_rename *r, size_t group, const char *text, size_t len, decant_error *err)
{
    dcn_becomes *last = r->count ? &r->parts[r->count - 1] : NULL, *parts;

    if (group == SIZE_MAX && last && last->group == SIZE_MAX) {
        last->len += len;
    } else {
        if (!(parts = dcn_realloc(r->parts, r->count + 1, sizeof *parts)))
            return dcn_error_nomem(err);
        r->parts = parts;
        r->parts[r->count++] = (dcn_becomes){r->text.len, len, group};
    }
    dcn_buf_put(&r->text, text, len);
    return dcn_buf_check(&r->text, err);
}

/* \0 to \9, $0 to $9 and &, text, and quoted text. */
static decant_status take_part(script *s, dcn_rename *r, decant_error *err)
{
    const char *begin = s->at;
    bool quoted = *s->at == '\\';

    if (*s->at == '&') {
        s->at++;
        return add_part(r, 0, "", 0, err);
    }
    if ((quoted || *s->at == '$') && s->at[1] >= '0' && s->at[1] <= '9') {
        size_t group = (size_t)(s->at[1] - '0');

        s->at += 2;
        if (group > dcn_regex_groups(r->regex)) {
            decant_error_set(err, DECANT_BAD_CALL, "there is no group %zu", group);
            dcn_error_hint(err, "a group is what stands in ( ): there are %zu", dcn_regex_groups(r->regex));
            return DECANT_BAD_CALL;
        }
        return add_part(r, group, "", 0, err);
    }
    if (quoted) {
        begin = ++s->at;
        if (is_word(*s->at) && !at_delimiter(s))
            return refuse(err, "a backslash before a letter means nothing in what is put in");
    }
    dcn_utf8_take(&s->at);
    return add_part(r, SIZE_MAX, begin, (size_t)(s->at - begin), err);
}

static decant_status take_becomes(script *s, dcn_rename *r, decant_error *err)
{
    decant_status rc;

    while (*s->at && !at_delimiter(s)) {
        if (*s->at == '\\' && !s->at[1])
            break;
        if ((rc = take_part(s, r, err)))
            return rc;
    }
    if (!at_delimiter(s))
        return refuse(err, "a substitution that has no end");
    s->at += s->delimiter_len;
    return DECANT_OK;
}

static decant_status take_flags(const char *flags, dcn_rename *r, bool *ignore_case, decant_error *err)
{
    for (; *flags; flags++) {
        if (*flags == 'g')
            r->all = true;
        else if (*flags == 'i')
            *ignore_case = true;
        else
            return refuse(err, "a substitution may end in g and i, and nothing else");
    }
    return DECANT_OK;
}

/* The delimiter behind the "s". */
static decant_status take_head(script *s, decant_error *err)
{
    if (s->at[0] != 's' || !s->at[1] || s->at[1] == '\\' || s->at[1] == '\n')
        return refuse(err, "this is no substitution");
    s->delimiter = ++s->at;
    dcn_utf8_take(&s->at);
    s->delimiter_len = (size_t)(s->at - s->delimiter);
    return DECANT_OK;
}

decant_status dcn_rename_open(const char *text, dcn_rename *out, decant_error *err)
{
    script s = {.at = text}, ahead;
    dcn_buf regex = {0};
    dcn_rename r = {0};
    bool ignore_case = false;
    decant_status rc;

    if (!dcn_utf8_valid(text, strlen(text)))
        return refuse(err, "a substitution that is not UTF-8");
    if ((rc = take_head(&s, err)) || (rc = take_regex(&s, &regex, err)) || (rc = dcn_buf_check(&regex, err)))
        goto done;
    /* flags come last and are needed first */
    for (ahead = s; *ahead.at && !at_delimiter(&ahead);)
        ahead.at += *ahead.at == '\\' && ahead.at[1] ? 2 : 1;
    if (*ahead.at && (rc = take_flags(ahead.at + s.delimiter_len, &r, &ignore_case, err)))
        goto done;
    if ((rc = dcn_regex_compile((const char *)regex.data, regex.len, ignore_case, &r.regex, err)) ||
        (rc = take_becomes(&s, &r, err)))
        goto done;
    *out = r;
    r = (dcn_rename){0};
done:
    dcn_buf_close(&regex);
    dcn_rename_close(&r);
    return rc;
}

void dcn_rename_close(dcn_rename *rename)
{
    dcn_regex_close(&rename->regex);
    dcn_buf_close(&rename->text);
    dcn_free(&rename->parts);
}

/* --- doing it ----------------------------------------------------------------------------------------------------- */

static void put_becomes(const dcn_rename *r, const char *name, const dcn_group *groups, dcn_buf *out)
{
    for (size_t i = 0; i < r->count; i++) {
        const dcn_becomes *part = &r->parts[i];

        if (part->group == SIZE_MAX)
            dcn_buf_put(out, r->text.data + part->begin, part->len);
        else if (groups[part->group].begin != SIZE_MAX)
            dcn_buf_put(out, name + groups[part->group].begin, groups[part->group].end - groups[part->group].begin);
    }
}

/* As sed does: nothing can be found where the match before ends, though something can. */
decant_status dcn_rename_apply(dcn_rename *rename, const char *name, size_t len, dcn_buf *out, decant_error *err)
{
    size_t done = 0, at = 0, last_end = SIZE_MAX;
    decant_status rc;

    do {
        const dcn_group *groups;
        bool found, empty;

        if ((rc = dcn_regex_search(rename->regex, name, len, at, &found, &groups, err)))
            return rc;
        if (!found)
            break;
        empty = groups[0].begin >= groups[0].end;
        at = groups[0].end;
        if (!empty || groups[0].begin != last_end) {
            rename->matched = true;
            dcn_buf_put(out, name + done, groups[0].begin - done);
            put_becomes(rename, name, groups, out);
            done = last_end = at;
        }
        if (empty && at < len) {
            const char *next = name + at;

            dcn_utf8_take(&next);
            at = (size_t)(next - name);
        } else if (empty) {
            break;
        }
    } while (rename->all && at <= len);
    dcn_buf_put(out, name + done, len - done);
    return dcn_buf_check(out, err);
}
