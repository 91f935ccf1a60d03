#include "transform/regex.h"

#include <assert.h>
#include <stddef.h>

#include "base/alloc.h"

#ifdef DCN_HAS_PCRE2

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

/* What one search may cost: steps of matching, nested choices, and KiB of memory to remember them in. */
enum { MOST_STEPS = 1000000, MOST_DEPTH = 10000, MOST_KIB = 16 << 10 };

struct dcn_regex {
    pcre2_general_context *memory;
    pcre2_compile_context *reading;
    pcre2_match_context *limits;
    pcre2_code *code;
    pcre2_match_data *match;
    size_t groups;
};

static_assert(sizeof(dcn_group) == 2 * sizeof(PCRE2_SIZE) && offsetof(dcn_group, end) == sizeof(PCRE2_SIZE) &&
                  PCRE2_UNSET == SIZE_MAX,
              "PCRE2 counts as dcn_group does");

static void *take(PCRE2_SIZE size, void *unused)
{
    (void)unused;
    return dcn_alloc(size, 1);
}

static void give(void *memory, void *unused)
{
    (void)unused;
    dcn_free_raw(memory);
}

static decant_status refuse(int code, size_t at, decant_error *err)
{
    char why[128] = "";

    if (code == PCRE2_ERROR_HEAP_FAILED)
        return dcn_error_nomem(err);
    pcre2_get_error_message(code, (PCRE2_UCHAR *)why, sizeof why);
    decant_error_set(err, DECANT_BAD_CALL, "no regular expression: %s, at character %zu", why, at);
    dcn_error_hint(err, "see pcre2pattern(3) for what can be written");
    return DECANT_BAD_CALL;
}

decant_status dcn_regex_compile(const char *pattern, size_t len, bool ignore_case, dcn_regex **out, decant_error *err)
{
    uint32_t options = PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C | (ignore_case ? PCRE2_CASELESS : 0), groups = 0;
    dcn_regex *r = dcn_alloc(1, sizeof *r);
    PCRE2_SIZE wrong;
    int code;
    decant_status rc = DECANT_NOMEM;

    if (!r || !(r->memory = pcre2_general_context_create(take, give, NULL)) ||
        !(r->reading = pcre2_compile_context_create(r->memory)) ||
        !(r->limits = pcre2_match_context_create(r->memory))) {
        rc = dcn_error_nomem(err);
        goto done;
    }
    pcre2_set_match_limit(r->limits, MOST_STEPS);
    pcre2_set_depth_limit(r->limits, MOST_DEPTH);
    pcre2_set_heap_limit(r->limits, MOST_KIB);
    r->code = pcre2_compile((PCRE2_SPTR)pattern, len, options, &code, &wrong, r->reading);
    if (!r->code) {
        rc = refuse(code, wrong, err);
        goto done;
    }
    pcre2_pattern_info(r->code, PCRE2_INFO_CAPTURECOUNT, &groups);
    r->groups = groups;
    if (!(r->match = pcre2_match_data_create_from_pattern(r->code, r->memory))) {
        rc = dcn_error_nomem(err);
        goto done;
    }
    *out = r;
    return DECANT_OK;
done:
    dcn_regex_close(&r);
    return rc;
}

size_t dcn_regex_groups(const dcn_regex *regex)
{
    return regex->groups;
}

decant_status dcn_regex_search(dcn_regex *regex, const char *text, size_t len, size_t at, bool *found,
                               const dcn_group **groups, decant_error *err)
{
    int code = pcre2_match(regex->code, (PCRE2_SPTR)text, len, at, PCRE2_NO_UTF_CHECK, regex->match, regex->limits);

    *found = code > 0;
    *groups = (const dcn_group *)(const void *)pcre2_get_ovector_pointer(regex->match);
    if (code > 0 || code == PCRE2_ERROR_NOMATCH)
        return DECANT_OK;
    if (code == PCRE2_ERROR_NOMEMORY)
        return dcn_error_nomem(err);
    decant_error_set(err, DECANT_LIMIT, "the regular expression takes too long for this name");
    dcn_error_hint(err, "write it so that there are fewer ways to match, without a repetition in a repetition");
    return DECANT_LIMIT;
}

void dcn_regex_close(dcn_regex **regex)
{
    dcn_regex *r = *regex;

    *regex = NULL;
    if (!r)
        return;
    pcre2_match_data_free(r->match);
    pcre2_code_free(r->code);
    pcre2_match_context_free(r->limits);
    pcre2_compile_context_free(r->reading);
    pcre2_general_context_free(r->memory);
    dcn_free(&r);
}

#else

decant_status dcn_regex_compile(const char *pattern, size_t len, bool ignore_case, dcn_regex **out, decant_error *err)
{
    (void)pattern, (void)len, (void)ignore_case, (void)out;
    decant_error_set(err, DECANT_UNSUPPORTED, "this build has no regular expressions");
    dcn_error_hint(err, "use a build with PCRE2 (libpcre2-8)");
    return DECANT_UNSUPPORTED;
}

/* There is none to be asked. */
size_t dcn_regex_groups(const dcn_regex *regex)
{
    (void)regex;
    return 0;
}

decant_status dcn_regex_search(dcn_regex *regex, const char *text, size_t len, size_t at, bool *found,
                               const dcn_group **groups, decant_error *err)
{
    (void)regex, (void)text, (void)len, (void)at, (void)found, (void)groups, (void)err;
    return DECANT_UNSUPPORTED;
}

void dcn_regex_close(dcn_regex **regex)
{
    *regex = NULL;
}

#endif
