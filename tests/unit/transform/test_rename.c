#include "support/test.h"

#include <stdio.h>

#include "support/alloc.h"
#include "transform/rename.h"

/* What `name` becomes; "(...)" if the substitution is refused. Lent until the next call. */
static const char *becomes(const char *text, const char *name)
{
    static char out[512];
    dcn_rename r = {0};
    dcn_buf buf = {0};
    decant_error err;

    if (dcn_rename_open(text, &r, &err)) {
        CHECK(err.hint[0]);
        snprintf(out, sizeof out, "(%s)", err.message);
        return out;
    }
    CHECK_OK(dcn_rename_apply(&r, name, strlen(name), &buf, &err), &err);
    snprintf(out, sizeof out, "%.*s", (int)buf.len, (const char *)buf.data);
    CHECK(r.matched || strcmp(out, name) == 0);
    dcn_buf_close(&buf);
    dcn_rename_close(&r);
    return out;
}

/* Each result is what GNU sed -E 4.9 says. */
TEST(rename__does_what_sed_does)
{
    static const char *const all[][3] = {
        {"s/a/b/", "aaa", "baa"},
        {"s/a/b/g", "aaa", "bbb"},
        {"s/^/model./", "w", "model.w"},
        {"s/$/.w/", "a", "a.w"},
        {"s/x*/-/g", "abc", "-a-b-c-"},
        {"s/a*/x/g", "baaac", "xbxcx"},
        {"s/(a)(b)?/[\\1\\2]/g", "abaa", "[ab][a][a]"},
        {"s/a.c/<&>/", "xabcx", "x<abc>x"},
        {"s/a/\\&/", "a", "&"},
        {"s,a/b,c/d,", "a/b", "c/d"},
        {"s,a\\,b,c\\,d,", "a,b", "c,d"},
        {"s/[/]/x/", "a/b", "axb"},
        {"s/[]/]/x/g", "a]/b", "axxb"},
        {"s/[^/]*$/x/", "a/b", "a/x"},
        {"s/[[:digit:]/]/x/g", "1/b", "xxb"},
        {"sxaxbx", "a", "b"},
        {"s/A/b/i", "a", "b"},
        {"s/none/b/", "a", "a"},
    };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        CHECK_TEXT(becomes(all[i][0], all[i][1]), all[i][2]);
}

/* Here GNU sed 4.9 takes the quoted delimiter for an operator, or wants a single byte; POSIX says what is done here. */
TEST(rename__takes_any_character_for_a_delimiter_and_quotes_it_as_itself)
{
    CHECK_TEXT(becomes("s|a\\|b|X|", "a|b"), "X");
    CHECK_TEXT(becomes("s.a\\.b.X.", "axb"), "axb");
    CHECK_TEXT(becomes("s\xC3\xA4"
                       "a\xC3\xA4"
                       "b\xC3\xA4",
                       "a"),
               "b");
    CHECK_TEXT(becomes("s/b*/x/g", "\xC3\xA4"), "x\xC3\xA4x");
}

TEST(rename__takes_groups_with_a_dollar_too)
{
    CHECK_TEXT(becomes("s/(a)(b)/$2$1$0\\0/", "ab"), "baabab");
    CHECK_TEXT(becomes("s/a/\\$1/", "a"), "$1");
    CHECK_TEXT(becomes("s/a/$/", "a"), "$");
    CHECK_TEXT(becomes("s/a/$x/", "a"), "$x");
    CHECK_TEXT(becomes("s/layers\\.(\\d+)\\./blk.$1./", "model.layers.12.w"), "model.blk.12.w");
}

TEST(rename__that_is_none_is_refused)
{
    static const char *const wrong[] = {
        "",       "s",        "x/a/b/",  "s/a",      "s/a/b",     "s/a/b\\", "s//b/",   "s/a/b/x",   "s/a/b/gg2",
        "s/(/b/", "s/a/\\1/", "s/a/$1/", "s/a/\\n/", "s\\a\\b\\", "s/a\\/b", "s/[a/b/", "s/a/\xFF/", "s\na\nb\n",
    };

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK(becomes(wrong[i], "a")[0] == '(');
}

TEST(rename__reports_every_allocation_that_fails)
{
    size_t live = test_alloc_live();

    for (size_t n = 0;; n++) {
        dcn_rename r = {0};
        dcn_buf buf = {0};
        decant_error err;
        decant_status rc;
        bool fired;

        test_alloc_fail(n);
        rc = dcn_rename_open("s/(a+)b/x\\1y&z/g", &r, &err);
        if (rc == DECANT_OK)
            rc = dcn_rename_apply(&r, "aabaab", 6, &buf, &err);
        fired = test_alloc_fired();
        test_alloc_disarm();
        CHECK_EQ(rc, fired ? DECANT_NOMEM : DECANT_OK);
        dcn_buf_close(&buf);
        dcn_rename_close(&r);
        CHECK_EQ(test_alloc_live(), live);
        if (!fired)
            break;
    }
}
