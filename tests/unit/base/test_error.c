/* Errors: composed, safe to print, cut at characters, and never losing the cause. */
#include "support/test.h"

#include <stdio.h>

#include "base/error.h"
#include "base/text.h"

static decant_error err;

/* Whether a text of the error is whole characters, safe, and ends in its array. */
#define CHECK_SAFE(field)                                   \
    do {                                                    \
        CHECK(memchr((field), 0, sizeof(field)));           \
        CHECK(dcn_utf8_valid((field), strlen(field)));      \
        for (const char *p = (field); *p; p++)              \
            CHECK((unsigned char)*p >= 0x20 && *p != 0x7F); \
    } while (0)

TEST(an_error__is_composed_in_one_line)
{
    err = (decant_error){0};
    CHECK_TEXT(decant_error_text(&err), "");
    CHECK_TEXT(decant_error_text(NULL), "");
    CHECK_EQ(decant_error_set(&err, DECANT_TRUNCATED, "data range ends at %d", 4096), DECANT_TRUNCATED);
    CHECK_TEXT(decant_error_text(&err), "data range ends at 4096");
    dcn_error_path(&err, "a/b.bpk");
    dcn_error_tensor(&err, "w", 1);
    dcn_error_found(&err, "%d bytes", 1024);
    dcn_error_expected(&err, "%d", 4096);
    dcn_error_hint(&err, "download it again");
    CHECK_TEXT(decant_error_text(&err),
               "a/b.bpk: tensor 'w': data range ends at 4096, found 1024 bytes, expected 4096; "
               "download it again");
    CHECK_EQ(err.status, DECANT_TRUNCATED);
    CHECK_EQ(err.offset, DECANT_NO_OFFSET);
}

TEST(setting__clears_what_an_earlier_failure_left)
{
    decant_error_set(&err, DECANT_IO, "first");
    dcn_error_found(&err, "f");
    dcn_error_expected(&err, "e");
    dcn_error_hint(&err, "h");
    dcn_error_path(&err, "p");
    dcn_error_tensor(&err, "t", 1);
    dcn_error_side(&err, DECANT_SIDE_OUTPUT);
    dcn_error_offset(&err, 7);
    err.os_code = 5;
    decant_error_set(&err, DECANT_LIMIT, "second");
    CHECK_TEXT(decant_error_text(&err), "second");
    CHECK(err.status == DECANT_LIMIT && err.side == DECANT_SIDE_NONE && err.os_code == 0);
    CHECK_EQ(err.offset, DECANT_NO_OFFSET);
}

TEST(the_innermost__that_knows_tensor_path_side_and_offset_wins)
{
    decant_error_set(&err, DECANT_IO, "m");
    dcn_error_tensor(&err, "inner", 5);
    dcn_error_tensor(&err, "outer", 5);
    dcn_error_path(&err, NULL);
    dcn_error_path(&err, "inner");
    dcn_error_path(&err, "outer");
    dcn_error_side(&err, DECANT_SIDE_CALLER);
    dcn_error_side(&err, DECANT_SIDE_INPUT);
    dcn_error_offset(&err, 0);
    dcn_error_offset(&err, 9);
    CHECK_TEXT(err.tensor, "inner");
    CHECK_TEXT(err.path, "inner");
    CHECK_EQ(err.side, DECANT_SIDE_CALLER);
    CHECK_EQ(err.offset, 0);
}

TEST(a_place__is_said_once_and_by_the_innermost)
{
    decant_error_set(&err, DECANT_MALFORMED, "wrong type");
    dcn_error_at(&err, 42);
    dcn_error_at(&err, 43);
    CHECK_TEXT(decant_error_text(&err), "wrong type at byte 42");
    CHECK_EQ(err.offset, 42);
}

TEST(recasting__puts_the_meaning_in_front_and_keeps_the_cause)
{
    decant_error_set(&err, DECANT_IO, "cannot sync");
    err.os_code = 5;
    dcn_error_path(&err, "p");
    CHECK_EQ(dcn_error_recast(&err, DECANT_NOT_DURABLE, "saved, but power loss may undo it"), DECANT_NOT_DURABLE);
    CHECK_TEXT(decant_error_text(&err), "p: saved, but power loss may undo it: cannot sync");
    CHECK(err.status == DECANT_NOT_DURABLE && err.os_code == 5);
    CHECK_EQ(dcn_error_recast(NULL, DECANT_IO, "m"), DECANT_IO);
}

TEST(what_files_put_into_an_error__is_safe_to_print)
{
    decant_error_set(&err, DECANT_IO, "key '%s'", "a\nb\x1b[31m\x7f\xc2\x85\xe2\x80\xae\xff");
    CHECK_TEXT(err.message, "key 'a\\x0ab\\x1b[31m\\x7f\\u{0085}\\u{202e}\\xff'");
    dcn_error_tensor(&err, "nul\0here", 8);
    CHECK_TEXT(err.tensor, "nul\\x00here");
    dcn_error_path(&err, "p\xfe");
    CHECK_TEXT(err.path, "p\\xfe");
}

TEST(texts_that_are_too_long__are_cut_at_a_character)
{
    char name[2000];

    /* three-byte characters, behind one, two, three others, so that each way of cutting them comes up */
    for (size_t shift = 0; shift < 3; shift++) {
        memset(name, 'x', shift);
        for (size_t i = shift; i + 3 <= sizeof name; i += 3)
            memcpy(name + i, "\xe2\x82\xac", 3);
        name[shift + (sizeof name - shift - 1) / 3 * 3] = '\0';

        decant_error_set(&err, DECANT_IO, "%s", name);
        dcn_error_found(&err, "%s", name);
        dcn_error_expected(&err, "%s", name);
        dcn_error_hint(&err, "%s", name);
        dcn_error_tensor(&err, name, strlen(name));
        dcn_error_path(&err, name);
        CHECK_SAFE(err.message);
        CHECK_SAFE(err.found);
        CHECK_SAFE(err.expected);
        CHECK_SAFE(err.hint);
        CHECK_SAFE(err.tensor);
        CHECK_SAFE(err.path);
        CHECK_HAS(err.tensor, "\xe2\x82\xac...");
        CHECK(strlen(err.tensor) > sizeof err.tensor - 6);
        CHECK_TEXT(decant_error_text(&err), err.text);
        CHECK_SAFE(err.text);
        CHECK_HAS(err.text, err.message);
    }
}

TEST(a_recast_message__that_is_too_long_is_cut_at_a_character)
{
    char long_name[400];

    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    decant_error_set(&err, DECANT_IO, "%s", long_name);
    dcn_error_recast(&err, DECANT_CHANGED, "meaning");
    CHECK_SAFE(err.message);
    CHECK(strncmp(err.message, "meaning: xxx", 12) == 0);
}

TEST(everything__accepts_that_nobody_wants_the_error)
{
    CHECK_EQ(decant_error_set(NULL, DECANT_IO, "m"), DECANT_IO);
    CHECK_EQ(dcn_error_nomem(NULL), DECANT_NOMEM);
    dcn_error_found(NULL, "f");
    dcn_error_expected(NULL, "e");
    dcn_error_hint(NULL, "h");
    dcn_error_tensor(NULL, "t", 1);
    dcn_error_path(NULL, "p");
    dcn_error_side(NULL, DECANT_SIDE_INPUT);
    dcn_error_offset(NULL, 1);
}

TEST(every_status__has_a_name_of_its_own)
{
    for (int i = 0; i <= DECANT_NOT_REMOVED; i++) {
        CHECK(decant_status_name((decant_status)i));
        CHECK(strcmp(decant_status_name((decant_status)i), "unknown") != 0);
        for (int k = 0; k < i; k++)
            CHECK(strcmp(decant_status_name((decant_status)i), decant_status_name((decant_status)k)) != 0);
    }
    CHECK_TEXT(decant_status_name((decant_status)(DECANT_NOT_REMOVED + 1)), "unknown");
    CHECK_TEXT(decant_status_name((decant_status)-1), "unknown");
}

TEST(the_version__is_that_of_the_header)
{
    int major, minor, patch;

    CHECK_EQ(sscanf(decant_version(), "%d.%d.%d", &major, &minor, &patch), 3);
    CHECK_EQ(major, DECANT_VERSION_MAJOR);
    CHECK_EQ(minor, DECANT_VERSION_MINOR);
    CHECK_EQ(patch, DECANT_VERSION_PATCH);
}
