/* Handles on bytes of every kind: what they cost, what they lend, how long they live. */
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "bytes/bytes.h"
#include "support/alloc.h"
#include "support/gates.h"
#include "support/simdisk.h"

static decant_error err;

static decant_bytes *copy_of(const char *text)
{
    decant_bytes *bytes = NULL;

    CHECK_OK(decant_bytes_copy(text, strlen(text), &bytes, &err), &err);
    return bytes;
}

static decant_bytes *slice_of(decant_bytes *bytes, uint64_t offset, uint64_t len)
{
    decant_bytes *slice = NULL;

    CHECK_OK(decant_bytes_slice(bytes, offset, len, &slice, &err), &err);
    return slice;
}

static decant_bytes *join(decant_bytes *a, decant_bytes *b)
{
    decant_bytes *parts[] = {a, b}, *rope = NULL;

    CHECK_OK(decant_bytes_join(parts, 2, &rope, &err), &err);
    return rope;
}

/* What all of it reads as. */
static const char *read_all(decant_bytes *bytes)
{
    static char text[256];

    CHECK(decant_bytes_len(bytes) < sizeof text);
    memset(text, 0, sizeof text);
    CHECK_OK(decant_bytes_read(bytes, 0, text, decant_bytes_len(bytes), &err), &err);
    return text;
}

static void count_release(void *ctx)
{
    ++*(int *)ctx;
}

/* A file "f" of a disk that counts reads. */
typedef struct filed {
    simdisk *disk;
    gates gates;
    decant_bytes *bytes;
} filed;

static void file_begin(filed *f, const char *text)
{
    dcn_source *source = NULL;

    f->disk = simdisk_new();
    f->bytes = NULL;
    simdisk_put_text(f->disk, "f", text);
    gates_up(&f->gates, &f->disk->io);
    CHECK_OK(dcn_source_open(&f->disk->io, "f", &source, &err), &err);
    CHECK_OK(dcn_bytes_from_source(source, &f->bytes, &err), &err);
}

static void file_end(filed *f)
{
    decant_bytes_unref(&f->bytes);
    gates_down(&f->gates);
    simdisk_free(&f->disk);
}

/* --- memory ------------------------------------------------------------------------------------------------------ */

TEST(wrapped_memory__is_lent_as_it_lies_and_released_once_at_the_end)
{
    static const char text[] = "in memory";
    decant_bytes *bytes = NULL, *more;
    decant_view view = {0};
    int released = 0;

    CHECK_OK(decant_bytes_wrap(text, 9, count_release, &released, &bytes, &err), &err);
    CHECK_EQ(decant_bytes_len(bytes), 9);
    more = decant_bytes_ref(bytes);
    CHECK_OK(decant_bytes_pin(bytes, 3, 6, DECANT_NO_COPY, &view, &err), &err);
    CHECK(view.data == text + 3 && view.len == 6);
    decant_bytes_unref(&bytes);
    CHECK(!bytes);
    decant_bytes_unref(&bytes);
    decant_bytes_unref(&more);
    CHECK_EQ(released, 0); /* the view holds it */
    decant_view_release(&view);
    CHECK_EQ(released, 1);
    CHECK(!view.data && !view.len && !view.hold);
    decant_view_release(&view);
    CHECK_EQ(released, 1);
}

TEST(a_copy__is_its_own_and_costs_one_allocation)
{
    char text[] = "mine";
    size_t live = test_alloc_live();
    decant_bytes *bytes = copy_of(text);

    CHECK_EQ(test_alloc_live(), live + 1);
    memset(text, 'x', 4);
    CHECK_TEXT(read_all(bytes), "mine");
    decant_bytes_unref(&bytes);
}

TEST(no_bytes__can_be_made_pinned_kept_and_joined)
{
    decant_bytes *none = NULL, *rope;
    decant_view view = {0};

    CHECK_OK(decant_bytes_wrap(NULL, 0, NULL, NULL, &none, &err), &err);
    CHECK_OK(decant_bytes_pin(none, 0, 0, DECANT_NO_COPY, &view, &err), &err);
    CHECK(view.data && view.len == 0);
    decant_view_release(&view);
    CHECK_OK(decant_bytes_keep(none, &err), &err);
    rope = join(none, none);
    CHECK_EQ(decant_bytes_len(rope), 0);
    CHECK_OK(decant_bytes_read(rope, 0, NULL, 0, &err), &err);
    decant_bytes_unref(&rope);
    CHECK_OK(decant_bytes_join(NULL, 0, &rope, &err), &err);
    CHECK_EQ(decant_bytes_len(rope), 0);
    decant_bytes_unref(&rope);
    decant_bytes_unref(&none);
}

/* --- parts ------------------------------------------------------------------------------------------------------- */

TEST(slices_and_ropes__read_as_what_they_stand_for)
{
    decant_bytes *ab = copy_of("abcdef"), *empty = copy_of(""), *xy = copy_of("uvwxyz");
    decant_bytes *cd = slice_of(ab, 2, 2), *vwx = slice_of(xy, 1, 3);
    decant_bytes *parts[] = {cd, empty, vwx, empty, empty, ab}, *rope = NULL, *middle, *twice;
    char text[16] = {0};

    CHECK_OK(decant_bytes_join(parts, 6, &rope, &err), &err);
    CHECK_TEXT(read_all(rope), "cdvwxabcdef");
    middle = slice_of(rope, 1, 6);
    CHECK_TEXT(read_all(middle), "dvwxab");
    twice = join(middle, rope);
    CHECK_TEXT(read_all(twice), "dvwxabcdvwxabcdef");
    for (size_t at = 0; at < 17; at++)
        for (size_t len = 0; len <= 17 - at; len++) {
            CHECK_OK(decant_bytes_read(twice, at, text, len, &err), &err);
            CHECK_BYTES(text, len, &"dvwxabcdvwxabcdef"[at], len);
            if (len == 15)
                break;
        }

    decant_bytes_unref(&ab);
    decant_bytes_unref(&empty);
    decant_bytes_unref(&xy);
    decant_bytes_unref(&cd);
    decant_bytes_unref(&vwx);
    decant_bytes_unref(&rope);
    decant_bytes_unref(&middle);
    CHECK_TEXT(read_all(twice), "dvwxabcdvwxabcdef"); /* parts hold what they are parts of */
    decant_bytes_unref(&twice);
}

TEST(a_range__that_lies_in_one_memory_is_lent_through_any_depth)
{
    decant_bytes *a = copy_of("0123"), *b = copy_of("456789"), *rope = join(a, b), *deep = decant_bytes_ref(rope);
    decant_view view = {0}, own = {0};

    for (int i = 0; i < 100000; i++) {
        decant_bytes *next = slice_of(deep, 0, 10);

        decant_bytes_unref(&deep);
        deep = next;
    }
    CHECK_OK(decant_bytes_pin(b, 0, 6, DECANT_NO_COPY, &own, &err), &err);
    CHECK_OK(decant_bytes_pin(deep, 5, 4, DECANT_NO_COPY, &view, &err), &err);
    CHECK(view.data == (const char *)own.data + 1 && view.len == 4);
    decant_view_release(&view);
    decant_view_release(&own);

    CHECK_FAILS(decant_bytes_pin(deep, 3, 2, DECANT_NO_COPY, &view, &err), DECANT_WOULD_COPY, &err);
    CHECK(err.hint[0]);
    CHECK(!view.data);
    CHECK_OK(decant_bytes_pin(deep, 3, 2, 0, &view, &err), &err);
    CHECK_BYTES(view.data, view.len, "34", 2);
    decant_bytes_unref(&a);
    decant_bytes_unref(&b);
    decant_bytes_unref(&rope);
    decant_bytes_unref(&deep); /* and so deep a chain is taken down */
    CHECK_BYTES(view.data, view.len, "34", 2);
    decant_view_release(&view);
}

TEST(ropes__nest_so_deep_and_no_deeper)
{
    decant_bytes *one = copy_of("x"), *rope = copy_of(""), *next = NULL;

    for (int i = 0; i < DCN_ROPE_DEPTH; i++) {
        decant_bytes *part = slice_of(rope, 0, decant_bytes_len(rope)); /* slices in between do not help */

        next = join(part, one);
        decant_bytes_unref(&part);
        decant_bytes_unref(&rope);
        rope = next;
    }
    CHECK_EQ(strlen(read_all(rope)), DCN_ROPE_DEPTH);
    next = NULL;
    CHECK_FAILS(decant_bytes_join(&rope, 1, &next, &err), DECANT_BAD_CALL, &err);
    CHECK(err.hint[0] && !next);
    decant_bytes_unref(&rope);
    decant_bytes_unref(&one);
}

TEST(ropes__longer_than_64_bits_are_refused)
{
    decant_provider calls = DECANT_PROVIDER_INIT;
    decant_bytes *huge = NULL, *rope = NULL, *parts[2];

    calls.read = (decant_status(*)(void *, uint64_t, void *, size_t, decant_error *))abort;
    CHECK_OK(decant_bytes_defer(UINT64_MAX, &calls, &huge, &err), &err);
    parts[0] = parts[1] = huge;
    CHECK_FAILS(decant_bytes_join(parts, 2, &rope, &err), DECANT_BAD_CALL, &err);
    decant_bytes_unref(&huge);
}

/* --- where bytes are --------------------------------------------------------------------------------------------- */

TEST(a_place__is_found_through_slices_and_ropes_and_is_none_for_memory)
{
    filed f;
    decant_bytes *part, *text = copy_of("mem"), *rope, *middle;
    dcn_place place = {0};
    uint64_t offset = 0, upto = 0;

    file_begin(&f, "0123456789");
    part = slice_of(f.bytes, 2, 6);
    rope = join(text, part); /* mem234567 */
    middle = slice_of(rope, 1, 6);

    CHECK(!dcn_backing_place(middle, 1, &place));
    CHECK(dcn_backing_place(middle, 3, &place));
    CHECK(place.source && place.at == 3 && place.upto == 6);
    CHECK(!dcn_backing_place(middle, 6, &place));
    CHECK(dcn_backing_leaf(middle, 1, &offset, &upto) == text);
    CHECK(offset == 2 && upto == 2);
    CHECK(dcn_backing_leaf(middle, 2, &offset, &upto) == f.bytes);
    CHECK(offset == 2 && upto == 6);

    CHECK_OK(decant_bytes_keep(part, &err), &err);
    CHECK(!dcn_backing_place(middle, 3, &place)); /* it is in memory now */
    CHECK(dcn_backing_leaf(middle, 3, &offset, &upto) == part);
    CHECK(offset == 1 && upto == 6);
    CHECK(dcn_backing_is_kept(part) && !dcn_backing_is_kept(f.bytes));
    decant_bytes_drop(part);
    CHECK(dcn_backing_place(middle, 3, &place));

    decant_bytes_unref(&part);
    decant_bytes_unref(&text);
    decant_bytes_unref(&rope);
    decant_bytes_unref(&middle);
    file_end(&f);
}

/* Every question in every order has the answer that dcn_backing_place() gives. */
TEST(a_finder__answers_as_if_it_had_no_memory)
{
    filed f;
    decant_bytes *head, *text = copy_of("--"), *whole, *parts[4];
    dcn_finder finder = {0};

    file_begin(&f, "0123456789");
    head = slice_of(f.bytes, 2, 3);
    parts[0] = parts[2] = head;
    parts[1] = text;
    parts[3] = f.bytes;
    CHECK_OK(decant_bytes_join(parts, 4, &whole, &err), &err); /* 234--2340123456789 */

    for (uint64_t i = 0; i < whole->len * whole->len; i++) {
        decant_bytes *asked = i % 3 ? whole : head;
        uint64_t at = (i % 2 ? i / whole->len : i % whole->len) % asked->len;
        dcn_place place = {0}, wanted = {0};
        bool found = dcn_find_place(&finder, asked, at, &place);

        CHECK_EQ(found, dcn_backing_place(asked, at, &wanted));
        if (found)
            CHECK(place.source == wanted.source && place.at == wanted.at && place.upto == wanted.upto);
    }

    decant_bytes_unref(&head);
    decant_bytes_unref(&text);
    decant_bytes_unref(&whole);
    file_end(&f);
}

TEST(files__are_not_touched_by_making_slicing_joining_and_no_copy)
{
    filed f;
    decant_bytes *part, *rope;
    decant_view view = {0};

    file_begin(&f, "0123456789");
    part = slice_of(f.bytes, 2, 6);
    rope = join(part, part);
    CHECK_EQ(decant_bytes_len(rope), 12);
    CHECK_FAILS(decant_bytes_pin(rope, 1, 2, DECANT_NO_COPY, &view, &err), DECANT_WOULD_COPY, &err);
    CHECK_EQ(f.gates.count[DCN_DO_READ], 0);
    CHECK_OK(decant_bytes_pin(rope, 4, 4, 0, &view, &err), &err);
    CHECK_BYTES(view.data, view.len, "6723", 4);
    decant_view_release(&view);
    decant_bytes_unref(&part);
    decant_bytes_unref(&rope);
    file_end(&f);
}

/* --- keeping ----------------------------------------------------------------------------------------------------- */

TEST(keep__reads_the_range_of_its_handle_once_and_serves_slices_from_it)
{
    filed f;
    decant_bytes *part, *before, *after;
    decant_view view = {0}, other = {0};

    file_begin(&f, "0123456789");
    part = slice_of(f.bytes, 2, 6);
    before = slice_of(part, 1, 3);
    CHECK_OK(decant_bytes_keep(part, &err), &err);
    CHECK_OK(decant_bytes_keep(part, &err), &err);
    CHECK_EQ(f.gates.count[DCN_DO_READ], 1);
    CHECK_EQ(f.gates.bytes[DCN_DO_READ], 6);
    after = slice_of(part, 1, 3);

    CHECK_TEXT(read_all(before), "345");
    CHECK_OK(decant_bytes_pin(after, 0, 3, DECANT_NO_COPY, &view, &err), &err);
    CHECK_BYTES(view.data, view.len, "345", 3);
    CHECK_OK(decant_bytes_pin(part, 0, 6, DECANT_NO_COPY, &other, &err), &err);
    CHECK(view.data == (const char *)other.data + 1);
    CHECK_EQ(f.gates.count[DCN_DO_READ], 1);

    decant_bytes_drop(part);
    CHECK_BYTES(view.data, view.len, "345", 3); /* views hold what they look at */
    CHECK_BYTES(other.data, other.len, "234567", 6);
    CHECK_FAILS(decant_bytes_pin(part, 0, 6, DECANT_NO_COPY, &(decant_view){0}, &err), DECANT_WOULD_COPY, &err);
    CHECK_TEXT(read_all(before), "345");
    CHECK_EQ(f.gates.count[DCN_DO_READ], 2);
    decant_bytes_drop(part);
    decant_view_release(&view);
    decant_view_release(&other);

    decant_bytes_unref(&before);
    decant_bytes_unref(&after);
    CHECK_OK(decant_bytes_keep(part, &err), &err);
    decant_bytes_unref(&part); /* frees what it keeps */
    file_end(&f);
}

TEST(keep__can_be_tried_again_after_it_failed)
{
    filed f;

    file_begin(&f, "0123456789");
    gates_fail(&f.gates, (gates_fault){.one_verb = true, .verb = DCN_DO_READ, .status = DECANT_IO});
    CHECK_FAILS(decant_bytes_keep(f.bytes, &err), DECANT_IO, &err);
    CHECK_HAS(err.path, "f");
    CHECK_EQ(err.side, DECANT_SIDE_INPUT);
    CHECK(!dcn_backing_is_kept(f.bytes));
    err = (decant_error){0};
    CHECK_OK(decant_bytes_keep(f.bytes, &err), &err);
    CHECK_EQ(err.status, DECANT_OK);
    CHECK(dcn_backing_is_kept(f.bytes));
    file_end(&f);
}

TEST(keep__does_not_copy_what_is_memory_already)
{
    decant_bytes *text = copy_of("text"), *part = slice_of(text, 1, 2);
    size_t live = test_alloc_live();

    CHECK_OK(decant_bytes_keep(part, &err), &err);
    CHECK_EQ(test_alloc_live(), live);
    decant_bytes_unref(&part);
    decant_bytes_unref(&text);
}

TEST(keep__joins_memory_that_lies_in_pieces)
{
    decant_bytes *a = copy_of("ab"), *b = copy_of("cd"), *rope = join(a, b);
    decant_view view = {0};

    CHECK_OK(decant_bytes_keep(rope, &err), &err);
    CHECK_OK(decant_bytes_pin(rope, 1, 2, DECANT_NO_COPY, &view, &err), &err);
    CHECK_BYTES(view.data, view.len, "bc", 2);
    decant_view_release(&view);
    decant_bytes_unref(&a);
    decant_bytes_unref(&b);
    decant_bytes_unref(&rope);
}

/* --- many ranges at once ------------------------------------------------------------------------------------------ */

TEST(a_fetch__of_many_ranges_of_one_file_costs_few_reads)
{
    enum { COUNT = 200 };
    filed f;
    char text[COUNT * 2 + 1], got[COUNT];
    dcn_fetch fetches[COUNT];
    decant_bytes *part;

    for (size_t i = 0; i < COUNT * 2; i++)
        text[i] = (char)('a' + i % 23);
    text[COUNT * 2] = '\0';
    file_begin(&f, text);
    part = slice_of(f.bytes, 1, COUNT * 2 - 1);
    for (size_t i = 0; i < COUNT; i++)
        fetches[i] = (dcn_fetch){2 * i, &got[i], 1};
    CHECK_OK(dcn_backing_fetch(part, fetches, COUNT, &err), &err);
    for (size_t i = 0; i < COUNT; i++)
        CHECK_EQ(got[i], text[2 * i + 1]);
    CHECK(f.gates.count[DCN_DO_READ] <= 4);
    decant_bytes_unref(&part);
    file_end(&f);
}

/* --- calls that are wrong ----------------------------------------------------------------------------------------- */

TEST(wrong_calls__are_refused_with_the_fix)
{
    decant_provider calls = DECANT_PROVIDER_INIT;
    decant_bytes *bytes = copy_of("abc"), *none = NULL, *out = NULL;
    decant_view view = {0};
    char text[8];

    CHECK_FAILS(decant_bytes_slice(bytes, 1, 3, &out, &err), DECANT_BAD_CALL, &err);
    CHECK_TEXT(decant_error_text(&err), "the range leaves the bytes, found 3 bytes at 1, expected a range in 3");
    CHECK_FAILS(decant_bytes_slice(bytes, UINT64_MAX, 2, &out, &err), DECANT_BAD_CALL, &err);
    CHECK_FAILS(decant_bytes_read(bytes, 4, text, 0, &err), DECANT_BAD_CALL, &err);
    CHECK_FAILS(decant_bytes_pin(bytes, 0, 4, 0, &view, &err), DECANT_BAD_CALL, &err);
    CHECK_FAILS(decant_bytes_pin(bytes, 0, 3, 2, &view, &err), DECANT_BAD_CALL, &err);
    CHECK_HAS(err.message, "DECANT_NO_COPY");
    CHECK_FAILS(decant_bytes_join(&none, 1, &out, &err), DECANT_BAD_CALL, &err);
    CHECK_FAILS(decant_bytes_wrap(NULL, 1, NULL, NULL, &out, &err), DECANT_BAD_CALL, &err);
    CHECK_FAILS(decant_bytes_copy(NULL, 1, &out, &err), DECANT_BAD_CALL, &err);
    CHECK_FAILS(decant_bytes_defer(1, &calls, &out, &err), DECANT_BAD_CALL, &err);
    CHECK_HAS(err.message, "read and produce");
    calls.size = 0;
    CHECK_FAILS(decant_bytes_defer(1, &calls, &out, &err), DECANT_BAD_CALL, &err);
    CHECK_HAS(err.message, "DECANT_PROVIDER_INIT");
    CHECK(!out && !view.data);
    decant_bytes_unref(&bytes);
}

/* --- the file system itself --------------------------------------------------------------------------------------- */

TEST(a_file_of_the_system__is_opened_once_and_its_range_checked)
{
    decant_bytes *bytes = NULL;
    char path[4200];
    FILE *file;

    snprintf(path, sizeof path, "%s/f", test_folder());
    file = fopen(path, "wb");
    CHECK(file && fputs("0123456789", file) >= 0 && fclose(file) == 0);

    CHECK_FAILS(decant_bytes_file(path, 8, 3, &bytes, &err), DECANT_TRUNCATED, &err);
    CHECK_TEXT(err.found, "10 bytes");
    CHECK_TEXT(err.path, path);
    CHECK_EQ(err.side, DECANT_SIDE_INPUT);
    CHECK(!bytes);
    CHECK_OK(decant_bytes_file(path, 2, 5, &bytes, &err), &err);
    CHECK(remove(path) == 0);
    CHECK_TEXT(read_all(bytes), "23456");
    decant_bytes_unref(&bytes);

    CHECK_FAILS(decant_bytes_file(path, 0, 0, &bytes, &err), DECANT_NOT_FOUND, &err);
    CHECK_TEXT(err.path, path);
    CHECK_FAILS(decant_bytes_file(test_folder(), 0, 0, &bytes, &err), DECANT_UNSUPPORTED, &err);
    CHECK_HAS(err.message, "folder");
    CHECK_FAILS(decant_bytes_file("/dev/null", 0, 0, &bytes, &err), DECANT_UNSUPPORTED, &err);
    CHECK(err.hint[0]);
}

TEST(a_fifo__is_refused_and_not_waited_for)
{
    decant_bytes *bytes = NULL;
    char path[4200];

    snprintf(path, sizeof path, "%s/fifo", test_folder());
    CHECK_EQ(mkfifo(path, 0600), 0);
    CHECK_FAILS(decant_bytes_file(path, 0, 0, &bytes, &err), DECANT_UNSUPPORTED, &err);
    CHECK_HAS(err.message, "pipe");
    CHECK_TEXT(err.path, path);
}

/* --- memory that runs out ------------------------------------------------------------------------------------------ */

static decant_status build(decant_bytes *file, decant_bytes **out, decant_error *e)
{
    decant_bytes *text = NULL, *part = NULL, *rope = NULL, *parts[2];
    decant_view view = {0};
    decant_status rc;

    if ((rc = decant_bytes_copy("abc", 3, &text, e)) || (rc = decant_bytes_slice(file, 1, 4, &part, e)))
        goto done;
    parts[0] = text;
    parts[1] = part;
    if ((rc = decant_bytes_join(parts, 2, &rope, e)) || (rc = decant_bytes_keep(part, e)) ||
        (rc = decant_bytes_pin(rope, 1, 4, 0, &view, e)) || (rc = decant_bytes_keep(rope, e)))
        goto done;
    *out = rope;
    rope = NULL;
done:
    decant_view_release(&view);
    decant_bytes_unref(&rope);
    decant_bytes_unref(&part);
    decant_bytes_unref(&text);
    return rc;
}

TEST(bytes__are_made_or_refused_whichever_allocation_fails)
{
    filed f;
    size_t n = 0, live;

    file_begin(&f, "0123456789");
    live = test_alloc_live();
    for (;; n++) {
        decant_bytes *out = NULL;
        decant_status rc;

        err = (decant_error){0};
        test_alloc_fail(n);
        rc = build(f.bytes, &out, &err);
        test_alloc_disarm();
        CHECK(test_alloc_fired() == (rc != DECANT_OK));
        if (rc == DECANT_OK) {
            CHECK_TEXT(read_all(out), "abc1234");
            decant_bytes_unref(&out);
            break;
        }
        CHECK(rc == DECANT_NOMEM && err.status == DECANT_NOMEM && !out);
        CHECK_EQ(test_alloc_live(), live);
    }
    CHECK_EQ(n, 6);
    file_end(&f);
}
