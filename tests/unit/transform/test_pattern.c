#include "support/test.h"

#include "support/alloc.h"
#include "transform/pattern.h"

static bool matches(const char *text, const char *name)
{
    dcn_pattern p = {0};
    decant_error err;
    bool yes = false;

    CHECK_OK(dcn_pattern_open(text, strlen(text), &p, &err), &err);
    CHECK_OK(dcn_pattern_match(&p, name, strlen(name), &yes, &err), &err);
    CHECK_EQ(p.matched, yes);
    dcn_pattern_close(&p);
    return yes;
}

TEST(glob__means_the_whole_name_and_a_star_takes_dots)
{
    CHECK(matches("a.b", "a.b") && !matches("a.b", "a.bc") && !matches("a.b", "xa.b") && !matches("a.b", "axb"));
    CHECK(matches("*", "") && matches("*", "a.b.c") && matches("**", "x"));
    CHECK(matches("*.weight", "model.layers.0.weight") && !matches("*.weight", "weights"));
    CHECK(matches("model.*.weight", "model.0.q.weight") && !matches("model.*.weight", "model.weight"));
    CHECK(matches("*a*b*c", "xxaybzzbc") && !matches("*a*b*c", "xxaybzzb"));
    CHECK(matches("?", "x") && matches("?", "\xC3\xA4") && !matches("?", "") && !matches("?", "xy"));
}

TEST(glob__knows_sets_and_quotes)
{
    CHECK(matches("l.[0-3].w", "l.2.w") && !matches("l.[0-3].w", "l.4.w"));
    CHECK(matches("l.[!0-3].w", "l.4.w") && matches("[^a]", "b") && !matches("[!a]", "a"));
    CHECK(matches("[]x]", "]") && matches("[]x]", "x") && !matches("[]x]", "y"));
    CHECK(matches("[a-]", "-") && matches("[\xC3\xA4-\xC3\xBC]", "\xC3\xB6"));
    CHECK(matches("[abc", "[abc") && !matches("[abc", "a"));
    CHECK(matches("\\*", "*") && !matches("\\*", "x") && matches("[\\]a]", "]") && matches("a\\", "a\\"));
}

/* A star is tried again at most once for each character of the name. */
TEST(glob__is_not_led_astray_by_many_stars)
{
    char name[4097], pattern[2002];

    memset(name, 'a', 4096);
    name[4096] = '\0';
    for (size_t i = 0; i < 2000; i += 2)
        memcpy(pattern + i, "*a", 2);
    memcpy(pattern + 2000, "b", 2);
    CHECK(!matches(pattern, name));
}

TEST(pattern__that_cannot_match_is_refused)
{
    static const char *const wrong[] = {"", "re:", "\xFF", "re:\xFF", "re:a(", "re:[a", "re:*", "re:\\C"};

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        dcn_pattern p = {0};
        decant_error err;

        CHECK_EQ(dcn_pattern_open(wrong[i], strlen(wrong[i]), &p, &err), DECANT_BAD_CALL);
        CHECK(err.hint[0]);
    }
}

TEST(regex__is_found_in_any_part_of_the_name)
{
    CHECK(matches("re:layers\\.\\d+\\.", "model.layers.12.w") && !matches("re:^layers", "model.layers"));
    CHECK(matches("re:^.\\.w$", "\xC3\xA4.w") && matches("re:a|b", "xb"));
}

TEST(regex__that_takes_too_long_is_stopped)
{
    dcn_pattern p = {0};
    decant_error err;
    char name[4096];
    bool yes;

    memset(name, 'a', sizeof name);
    CHECK_OK(dcn_pattern_open("re:^(a+)+$", 10, &p, &err), &err);
    name[sizeof name - 1] = '!';
    CHECK_EQ(dcn_pattern_match(&p, name, sizeof name, &yes, &err), DECANT_LIMIT);
    CHECK(err.hint[0]);
    dcn_pattern_close(&p);
    CHECK_EQ(dcn_pattern_open("re:((a{1000}){1000}){1000}", 26, &p, &err), DECANT_BAD_CALL);
}

TEST(pattern__reports_every_allocation_that_fails)
{
    size_t live = test_alloc_live();

    for (size_t n = 0;; n++) {
        dcn_pattern p = {0};
        decant_error err;
        decant_status rc;
        bool fired, yes;

        test_alloc_fail(n);
        rc = dcn_pattern_open("re:(x+x+)+y", 11, &p, &err);
        if (rc == DECANT_OK)
            rc = dcn_pattern_match(&p, "xxxxxxxx", 8, &yes, &err);
        fired = test_alloc_fired();
        test_alloc_disarm();
        CHECK_EQ(rc, fired ? DECANT_NOMEM : DECANT_OK);
        dcn_pattern_close(&p);
        CHECK_EQ(test_alloc_live(), live);
        if (!fired)
            break;
    }
}

TEST(pattern__knows_whether_it_is_a_name)
{
    static const struct {
        const char *text;
        bool is_name;
    } all[] = {{"a.b", true}, {"a*", false}, {"a?", false}, {"[a]", false}, {"re:a", false}};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        dcn_pattern p = {0};
        decant_error err;

        CHECK_OK(dcn_pattern_open(all[i].text, strlen(all[i].text), &p, &err), &err);
        CHECK_EQ(dcn_pattern_is_name(&p), all[i].is_name);
        dcn_pattern_close(&p);
    }
}
