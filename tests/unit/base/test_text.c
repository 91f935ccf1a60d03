#include "support/test.h"

#include "base/text.h"

#define VALID(bytes) dcn_utf8_valid((bytes), sizeof(bytes) - 1)

TEST(utf8__is_what_the_standard_says)
{
    CHECK(VALID(""));
    CHECK(VALID("plain"));
    CHECK(VALID("\0"));
    CHECK(VALID("\xc2\x80\xdf\xbf"));
    CHECK(VALID("\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf"));
    CHECK(VALID("\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"));

    CHECK(!VALID("\x80"));
    CHECK(!VALID("\xbf"));
    CHECK(!VALID("\xc0\x80")); /* overlong */
    CHECK(!VALID("\xc1\xbf"));
    CHECK(!VALID("\xe0\x9f\xbf"));
    CHECK(!VALID("\xf0\x8f\xbf\xbf"));
    CHECK(!VALID("\xed\xa0\x80")); /* surrogates */
    CHECK(!VALID("\xed\xbf\xbf"));
    CHECK(!VALID("\xf4\x90\x80\x80")); /* past the last */
    CHECK(!VALID("\xf5\x80\x80\x80"));
    CHECK(!VALID("\xff"));
    CHECK(!VALID("\xc2")); /* short */
    CHECK(!VALID("\xe2\x82"));
    CHECK(!VALID("\xf0\x90\x80"));
    CHECK(!VALID("\xe2\x82x"));
}

TEST(utf8__is_checked_wherever_the_bad_byte_stands)
{
    char text[40];

    for (size_t len = 1; len <= sizeof text; len++)
        for (size_t at = 0; at < len; at++) {
            memset(text, 'a', len);
            CHECK(dcn_utf8_valid(text, len));
            text[at] = '\x80';
            CHECK(!dcn_utf8_valid(text, len));
        }
}

/*
 * All sequences of two bytes, and those of three and four that meet each edge, by the table of the Unicode standard (3.9,
 * table 3-7).
 */
static bool in_table(const uint8_t *p, size_t len)
{
    uint8_t low = 0x80, high = 0xBF;

    if (len == 1)
        return p[0] < 0x80;
    if (p[0] == 0xE0)
        low = 0xA0;
    if (p[0] == 0xED)
        high = 0x9F;
    if (p[0] == 0xF0)
        low = 0x90;
    if (p[0] == 0xF4)
        high = 0x8F;
    if (len == 2 ? p[0] < 0xC2 || p[0] > 0xDF : len == 3 ? p[0] < 0xE0 || p[0] > 0xEF : p[0] < 0xF0 || p[0] > 0xF4)
        return false;
    if (p[1] < low || p[1] > high)
        return false;
    for (size_t i = 2; i < len; i++)
        if (p[i] < 0x80 || p[i] > 0xBF)
            return false;
    return true;
}

TEST(utf8__agrees_with_the_table_of_the_standard)
{
    for (unsigned first = 0x80; first < 256; first++)
        for (unsigned second = 0; second < 256; second++) {
            static const uint8_t ends[] = {0x00, 0x7F, 0x80, 0xA5, 0xBF, 0xC0};
            uint8_t text[4] = {(uint8_t)first, (uint8_t)second, 0, 0};

            if (second >= 0x80)
                CHECK_EQ(dcn_utf8_valid(text, 2), in_table(text, 2));
            for (size_t i = 0; i < sizeof ends; i++) {
                text[2] = ends[i];
                if (second >= 0x80 && text[2] >= 0x80)
                    CHECK_EQ(dcn_utf8_valid(text, 3), in_table(text, 3));
                for (size_t k = 0; k < sizeof ends; k++) {
                    bool pairs = false;

                    text[3] = ends[k];
                    if (second >= 0x80 && text[2] >= 0x80 && text[3] >= 0x80) {
                        pairs = in_table(text, 2) && in_table(text + 2, 2);
                        CHECK_EQ(dcn_utf8_valid(text, 4), in_table(text, 4) || pairs);
                    }
                }
            }
        }
}

TEST(comparing__orders_by_bytes_and_what_is_shorter_first)
{
    CHECK_EQ(dcn_text_compare("", 0, "", 0), 0);
    CHECK(dcn_text_compare("a", 1, "ab", 2) < 0);
    CHECK(dcn_text_compare("ab", 2, "a", 1) > 0);
    CHECK(dcn_text_compare("ab", 2, "ac", 2) < 0);
    CHECK(dcn_text_compare("z", 1, "\xc2\x80", 2) < 0); /* bytes count as unsigned */
    CHECK_EQ(dcn_text_compare("abc", 2, "abd", 2), 0);
}

TEST(cutting__never_cuts_a_character)
{
    const char text[] = "a\xe2\x82\xac\xf0\x9f\x98\x80z";
    static const size_t wanted[] = {0, 1, 1, 1, 4, 4, 4, 4, 8, 9, 9};

    for (size_t max = 0; max < sizeof wanted / sizeof *wanted; max++)
        CHECK_EQ(dcn_utf8_cut(text, 9, max), wanted[max]);
}

TEST(escaping__shows_what_cannot_be_seen_and_leaves_the_rest)
{
    char out[200];
    const char *text = "k\xc3\xa4se \t\x7f\xc2\x9f\xd8\x9c\xe2\x80\x8f\xe2\x80\xa8\xe2\x81\xa6\xef\xbb\xbf\xed\xa0\x80 "
                       "\xf0\x9f\x98\x80";

    dcn_text_escape(out, sizeof out, text, strlen(text));
    CHECK_TEXT(out, "k\xc3\xa4se \\x09\\x7f\\u{009f}\\u{061c}\\u{200f}\\u{2028}\\u{2066}\\u{feff}\\xed\\xa0\\x80 "
                    "\xf0\x9f\x98\x80");
    CHECK(dcn_utf8_valid(out, strlen(out)));
}

TEST(a_word__is_a_path_as_a_shell_takes_it_or_three_dots)
{
    char word[DCN_WORD], path[DCN_WORD + 1] = {0};

    CHECK_TEXT(dcn_text_word(word, "out/m-1.bpk"), "out/m-1.bpk");
    CHECK_TEXT(dcn_text_word(word, "-x"), "./-x");
    CHECK_TEXT(dcn_text_word(word, "-x y"), "'./-x y'");
    CHECK_TEXT(dcn_text_word(word, "a b/$c"), "'a b/$c'");
    CHECK_TEXT(dcn_text_word(word, "it's"), "'it'\\''s'");
    CHECK_TEXT(dcn_text_word(word, "''"), "''\\'''\\'''");
    for (size_t len = 0; len < DCN_WORD; len++) {
        size_t got = strlen(dcn_text_word(word, path));

        CHECK(got == len + 2 || (got == 3 && len > 200));
        path[len] = ' ';
    }
    CHECK_TEXT(dcn_text_word(word, path), "...");
}

TEST(escaping__fits_into_any_room_and_cuts_whole_pieces)
{
    const char *text = "ab\n\xe2\x82\xac\xff\xe2\x80\xae!";
    char whole[64], out[64];

    dcn_text_escape(whole, sizeof whole, text, strlen(text));
    for (size_t size = 0; size <= sizeof out; size++) {
        size_t len;

        memset(out, '#', sizeof out);
        dcn_text_escape(out, size, text, strlen(text));
        for (size_t i = size; i < sizeof out; i++)
            CHECK_EQ(out[i], '#');
        if (size == 0)
            continue;
        len = strlen(out);
        CHECK(len < size);
        CHECK(dcn_utf8_valid(out, len));
        if (size > strlen(whole)) {
            CHECK_TEXT(out, whole);
        } else if (size > 3) {
            CHECK_TEXT(out + len - 3, "...");
            CHECK(strncmp(out, whole, len - 3) == 0);
        }
    }
}
