/* Arenas, buffers, readers, arithmetic and byte order. */
#include "support/test.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/ckd.h"
#include "base/endian.h"
#include "base/reader.h"
#include "support/alloc.h"

static decant_error err;

/* --- arenas ------------------------------------------------------------------------------------------------------ */

TEST(an_arena__gives_pieces_that_do_not_meet_and_all_of_them_back)
{
    enum { COUNT = 3000 };
    dcn_arena arena = {0};
    uint8_t *pieces[COUNT];

    for (size_t i = 0; i < COUNT; i++) {
        pieces[i] = dcn_arena_take(&arena, i % 97);
        CHECK(pieces[i] && (uintptr_t)pieces[i] % 8 == 0);
        memset(pieces[i], (int)(i % 251), i % 97);
    }
    for (size_t i = 0; i < COUNT; i++)
        for (size_t k = 0; k < i % 97; k++)
            CHECK_EQ(pieces[i][k], i % 251);
    CHECK(test_alloc_live() < 20);
    dcn_arena_close(&arena);
    CHECK_EQ(test_alloc_live(), 0);
    CHECK(!arena.blocks);
    dcn_arena_close(&arena);
}

TEST(an_arena__takes_what_is_larger_than_its_blocks_and_nothing_at_all)
{
    dcn_arena arena = {0};
    uint8_t *none, *large;

    none = dcn_arena_take(&arena, 0); /* the first thing taken, too */
    CHECK(none);
    large = dcn_arena_take(&arena, 5 << 20);
    CHECK(large);
    memset(large, 1, 5 << 20);
    CHECK(dcn_arena_copy(&arena, "text", 5));
    CHECK(!dcn_arena_take(&arena, SIZE_MAX));
    CHECK(!dcn_arena_take(&arena, SIZE_MAX - 64));
    dcn_arena_close(&arena);
}

TEST(an_arena__takes_over_what_another_holds_and_goes_on_in_the_room_it_has)
{
    for (int i = 0; i < 4; i++) {
        dcn_arena arena = {0}, other = {0};
        char *a = i & 1 ? dcn_arena_copy(&arena, "a", 2) : NULL, *b = i & 2 ? dcn_arena_copy(&other, "b", 2) : NULL, *c;
        size_t live;

        if (b)
            CHECK(dcn_arena_take(&other, 5 << 20)); /* a second block */
        dcn_arena_join(&arena, &other);
        CHECK(!other.blocks);
        live = test_alloc_live();
        c = dcn_arena_copy(&arena, "c", 2);
        CHECK_EQ(test_alloc_live() - live, !a); /* from its own block, or from a new one */
        CHECK(!a || strcmp(a, "a") == 0);
        CHECK(!b || strcmp(b, "b") == 0);
        CHECK_TEXT(c, "c");
        dcn_arena_close(&other);
        dcn_arena_close(&arena);
    }
}

TEST(an_arena__keeps_what_was_taken_when_memory_runs_out)
{
    dcn_arena arena = {0};
    char *text = dcn_arena_copy(&arena, "text", 5);

    test_alloc_fail(0);
    CHECK(!dcn_arena_take(&arena, 100000));
    CHECK_TEXT(text, "text");
    CHECK(dcn_arena_copy(&arena, "more", 5));
    dcn_arena_close(&arena);
}

TEST(an_arena__adopts_memory_or_leaves_it_to_the_caller)
{
    dcn_arena arena = {0};
    char *text = dcn_strndup("adopted", 7), *before = dcn_arena_copy(&arena, "before", 7), *after;

    test_alloc_fail(0);
    CHECK_EQ(dcn_arena_adopt(&arena, text), -1);
    test_alloc_disarm();
    CHECK_EQ(dcn_arena_adopt(&arena, text), 0);
    after = dcn_arena_copy(&arena, "after", 6);
    CHECK_TEXT(text, "adopted");
    CHECK_TEXT(before, "before");
    CHECK_TEXT(after, "after");
    dcn_arena_close(&arena);
    CHECK_EQ(test_alloc_live(), 0);
}

/* --- buffers ----------------------------------------------------------------------------------------------------- */

TEST(a_buffer__holds_what_was_put_in_order)
{
    dcn_buf buf = {0};
    uint8_t *room;

    dcn_buf_put(&buf, NULL, 0);
    dcn_buf_text(&buf, "ab");
    dcn_buf_byte(&buf, 'c');
    dcn_buf_fill(&buf, 'd', 3);
    dcn_buf_format(&buf, "%d-%s", 7, "e");
    room = dcn_buf_reserve(&buf, 2);
    CHECK(room);
    memcpy(room, "fg", 2);
    dcn_buf_advance(&buf, 2);
    CHECK_OK(dcn_buf_check(&buf, &err), &err);
    CHECK_BYTES(buf.data, buf.len, "abcddd7-efg", 11);
    dcn_buf_close(&buf);
    CHECK(!buf.data && !buf.len && !buf.cap);
}

TEST(a_buffer__grows_without_losing_anything)
{
    dcn_buf buf = {0};

    for (unsigned i = 0; i < 100000; i++)
        dcn_buf_byte(&buf, (uint8_t)(i * 31));
    CHECK_OK(dcn_buf_check(&buf, &err), &err);
    CHECK_EQ(buf.len, 100000);
    for (unsigned i = 0; i < 100000; i++)
        CHECK_EQ(buf.data[i], (uint8_t)(i * 31));
    dcn_buf_close(&buf);
}

TEST(a_buffer__remembers_its_first_failure)
{
    dcn_buf buf = {0};

    dcn_buf_text(&buf, "before");
    test_alloc_fail(0);
    dcn_buf_fill(&buf, 'x', 1000);
    test_alloc_disarm();
    dcn_buf_text(&buf, "after");
    dcn_buf_advance(&buf, 1);
    CHECK(!dcn_buf_reserve(&buf, 1));
    CHECK_BYTES(buf.data, buf.len, "before", 6);
    CHECK_FAILS(dcn_buf_check(&buf, &err), DECANT_NOMEM, &err);
    dcn_buf_close(&buf);

    dcn_buf_text(&buf, "x");
    CHECK(!dcn_buf_reserve(&buf, SIZE_MAX));
    CHECK_FAILS(dcn_buf_check(&buf, &err), DECANT_NOMEM, &err);
    dcn_buf_close(&buf);
}

/* --- readers ----------------------------------------------------------------------------------------------------- */

TEST(a_reader__cannot_leave_its_bytes)
{
    static const uint8_t bytes[] = {1, 2, 3, 4};
    dcn_reader r = dcn_reader_on(bytes, 4);

    CHECK_EQ(dcn_reader_peek(&r), 1);
    CHECK_EQ(dcn_reader_byte(&r), 1);
    CHECK(dcn_reader_take(&r, 2) == bytes + 1);
    CHECK_EQ(dcn_reader_offset(&r), 3);
    CHECK_EQ(dcn_reader_left(&r), 1);
    CHECK(dcn_reader_take(&r, 0) && !r.failed);
    CHECK(!dcn_reader_take(&r, SIZE_MAX) && r.failed);
    CHECK_EQ(dcn_reader_byte(&r), 0); /* once failed, always */
    CHECK_EQ(dcn_reader_peek(&r), -1);
    CHECK_EQ(dcn_reader_offset(&r), 3);

    r = dcn_reader_on(bytes, 1);
    dcn_reader_byte(&r);
    CHECK_EQ(dcn_reader_peek(&r), -1);
    CHECK(!r.failed);
    CHECK_EQ(dcn_reader_byte(&r), 0);
    CHECK(r.failed);
}

/* --- arithmetic -------------------------------------------------------------------------------------------------- */

TEST(checked_arithmetic__says_what_does_not_fit_64_bits)
{
    const uint64_t max = UINT64_MAX;
    uint64_t out;

    CHECK(!dcn_ckd_add(&out, max - 1, 1) && out == max);
    CHECK(dcn_ckd_add(&out, max, 1));
    CHECK(dcn_ckd_add(&out, max, max));
    CHECK(!dcn_ckd_mul(&out, 0, max) && out == 0);
    CHECK(!dcn_ckd_mul(&out, max, 0) && out == 0);
    CHECK(!dcn_ckd_mul(&out, max, 1) && out == max);
    CHECK(!dcn_ckd_mul(&out, UINT64_C(1) << 32, (UINT64_C(1) << 32) - 1));
    CHECK(dcn_ckd_mul(&out, UINT64_C(1) << 32, UINT64_C(1) << 32));
    CHECK(dcn_ckd_mul(&out, max, max));
    CHECK(!dcn_ckd_align(&out, 0, 256) && out == 0);
    CHECK(!dcn_ckd_align(&out, 257, 256) && out == 512);
    CHECK(!dcn_ckd_align(&out, 6, 3) && out == 6);
    CHECK(!dcn_ckd_align(&out, max - 255, 256) && out == max - 255);
    CHECK(dcn_ckd_align(&out, max - 254, 256));
}

TEST(a_range__is_outside_when_any_of_it_is)
{
    CHECK(!dcn_outside(0, 10, 10));
    CHECK(!dcn_outside(10, 0, 10));
    CHECK(dcn_outside(11, 0, 10));
    CHECK(dcn_outside(9, 2, 10));
    CHECK(dcn_outside(5, UINT64_MAX, 10));
    CHECK(dcn_outside(UINT64_MAX, 2, 10));
    CHECK_EQ(dcn_min(3, 4), 3);
    CHECK_EQ(dcn_min(UINT64_MAX, 4), 4);
}

TEST(integers__are_put_and_read_in_the_order_they_are_named_for)
{
    uint8_t bytes[8];

    dcn_put_le(bytes, UINT64_C(0x0102030405060708), 8);
    CHECK_BYTES(bytes, 8, "\x08\x07\x06\x05\x04\x03\x02\x01", 8);
    CHECK(dcn_le64(bytes) == UINT64_C(0x0102030405060708) && dcn_le32(bytes) == 0x05060708 &&
          dcn_le16(bytes) == 0x0708);
    dcn_put_be64(bytes, UINT64_C(0x0102030405060708));
    CHECK_BYTES(bytes, 8, "\x01\x02\x03\x04\x05\x06\x07\x08", 8);
    CHECK(dcn_be(bytes, 8) == UINT64_C(0x0102030405060708) && dcn_be(bytes, 2) == 0x0102 && dcn_be(bytes, 1) == 1);
    dcn_put_le(bytes, 0xFFFFFFFF, 4);
    CHECK_EQ(dcn_le32(bytes), UINT32_MAX);
}
