/* Bytes by callback, in both forms. */
#include "support/test.h"

#include <stdio.h>

#include "bytes/bytes.h"
#include "support/alloc.h"

static decant_error err;

/* A provider of the bytes of a text that writes down what is asked of it. */
typedef struct script {
    const char *text;
    size_t gives; /* bytes that produce gives; SIZE_MAX: those of the text */
    decant_status fails;
    bool silent; /* fails without a word */
    int code;
    size_t reads, produced, discarded, released;
    size_t out; /* produced and not yet discarded */
} script;

static decant_status failure(const script *s, decant_error *e)
{
    if (!s->silent)
        decant_error_set(e, s->fails, "the cable is out");
    e->callback_code = s->code;
    return s->fails;
}

static decant_status read_text(void *ctx, uint64_t offset, void *dst, size_t len, decant_error *e)
{
    script *s = ctx;

    s->reads++;
    if (s->fails)
        return failure(s, e);
    memcpy(dst, s->text + offset, len);
    return DECANT_OK;
}

static decant_status produce_text(void *ctx, decant_view *out, decant_error *e)
{
    script *s = ctx;

    CHECK_EQ(s->out, 0);
    s->produced++;
    if (s->fails)
        return failure(s, e);
    s->out++;
    out->data = s->text;
    out->len = s->gives == SIZE_MAX ? strlen(s->text) : s->gives;
    out->hold = s;
    return DECANT_OK;
}

static void discard_text(void *ctx, decant_view *view)
{
    script *s = ctx;

    CHECK(view->hold == s && view->data == s->text);
    s->out--;
    s->discarded++;
}

static void release_text(void *ctx)
{
    ((script *)ctx)->released++;
}

static decant_bytes *by_range(script *s)
{
    decant_provider calls = DECANT_PROVIDER_INIT;
    decant_bytes *bytes = NULL;

    calls.read = read_text;
    calls.release = release_text;
    calls.ctx = s;
    CHECK_OK(decant_bytes_defer(strlen(s->text), &calls, &bytes, &err), &err);
    return bytes;
}

static decant_bytes *whole(script *s)
{
    decant_provider calls = DECANT_PROVIDER_INIT;
    decant_bytes *bytes = NULL;

    s->gives = SIZE_MAX;
    calls.produce = produce_text;
    calls.discard = discard_text;
    calls.release = release_text;
    calls.ctx = s;
    CHECK_OK(decant_bytes_defer(strlen(s->text), &calls, &bytes, &err), &err);
    return bytes;
}

TEST(a_provider__is_not_asked_before_its_bytes_are)
{
    script s = {.text = "content"};
    decant_bytes *bytes = by_range(&s), *part = NULL;
    decant_view view = {0};

    CHECK_EQ(decant_bytes_len(bytes), 7);
    CHECK_OK(decant_bytes_slice(bytes, 1, 3, &part, &err), &err);
    CHECK_FAILS(decant_bytes_pin(part, 0, 3, DECANT_NO_COPY, &view, &err), DECANT_WOULD_COPY, &err);
    CHECK_EQ(s.reads, 0);
    CHECK_OK(decant_bytes_pin(part, 0, 3, 0, &view, &err), &err);
    CHECK_EQ(s.reads, 1);
    CHECK_BYTES(view.data, view.len, "ont", 3);
    decant_view_release(&view);
    decant_bytes_unref(&bytes);
    CHECK_EQ(s.released, 0);
    decant_bytes_unref(&part);
    CHECK_EQ(s.released, 1);
}

TEST(a_provider_that_produces__is_copied_from_and_discarded_at_once)
{
    script s = {.text = "content"};
    decant_bytes *bytes = whole(&s);
    decant_view view = {0};
    char text[4] = {0};

    CHECK_OK(decant_bytes_read(bytes, 3, text, 3, &err), &err);
    CHECK_TEXT(text, "ten");
    CHECK(s.produced == 1 && s.discarded == 1);
    CHECK_OK(decant_bytes_pin(bytes, 0, 7, 0, &view, &err), &err);
    CHECK(view.data != s.text);
    CHECK(s.produced == 2 && s.discarded == 2);
    decant_view_release(&view);
    decant_bytes_unref(&bytes);
    CHECK_EQ(s.released, 1);
}

TEST(a_kept_provider__is_asked_once)
{
    script s = {.text = "content"};
    decant_bytes *bytes = whole(&s);
    char text[8] = {0};

    CHECK_OK(decant_bytes_keep(bytes, &err), &err);
    CHECK_OK(decant_bytes_read(bytes, 0, text, 7, &err), &err);
    CHECK_OK(decant_bytes_read(bytes, 2, text, 5, &err), &err);
    CHECK_EQ(s.produced, 1);
    decant_bytes_unref(&bytes);
}

TEST(what_is_produced__is_lent_to_a_save_until_it_is_given_back)
{
    script s = {.text = "content"};
    decant_bytes *bytes = whole(&s), *part = NULL;
    decant_view view = {0};

    CHECK_OK(decant_bytes_slice(bytes, 0, 7, &part, &err), &err);
    CHECK_EQ(dcn_backing_lend(part, 0, 7, false, &view, &err), DECANT_UNSUPPORTED);
    CHECK_EQ(s.produced, 0);
    CHECK_OK(dcn_backing_lend(part, 0, 7, true, &view, &err), &err);
    CHECK(view.data == s.text && view.len == 7);
    CHECK_EQ(s.discarded, 0);
    decant_bytes_unref(&bytes);
    decant_bytes_unref(&part);
    CHECK_EQ(s.released, 0);
    decant_view_release(&view);
    CHECK_EQ(s.discarded, 1);
    CHECK_EQ(s.released, 1);
}

TEST(a_provider_by_range__lends_nothing)
{
    script s = {.text = "content"};
    decant_bytes *bytes = by_range(&s);
    decant_view view = {0};

    err = (decant_error){0};
    CHECK_EQ(dcn_backing_lend(bytes, 0, 7, true, &view, &err), DECANT_UNSUPPORTED);
    CHECK_EQ(err.status, DECANT_OK); /* nobody failed */
    CHECK_EQ(s.reads, 0);
    decant_bytes_unref(&bytes);
}

TEST(a_promise_of_length__is_held_against_what_is_produced)
{
    static const size_t gives[] = {0, 6, 8};

    for (size_t i = 0; i < 3; i++) {
        script s = {.text = "content"};
        decant_bytes *bytes = whole(&s);
        decant_view view = {0};
        char text[8], found[16];

        s.gives = gives[i];
        snprintf(found, sizeof found, "%zu bytes", gives[i]);
        CHECK_FAILS(decant_bytes_read(bytes, 0, text, 7, &err), DECANT_MISMATCH, &err);
        CHECK_TEXT(err.found, found);
        CHECK_TEXT(err.expected, "7");
        CHECK_EQ(err.side, DECANT_SIDE_CALLER);
        CHECK_FAILS(dcn_backing_lend(bytes, 0, 7, true, &view, &err), DECANT_MISMATCH, &err);
        CHECK(s.produced == 2 && s.discarded == 2 && s.out == 0);
        s.gives = 7;
        CHECK_OK(decant_bytes_read(bytes, 0, text, 7, &err), &err); /* it is still its turn to be asked */
        decant_bytes_unref(&bytes);
    }
}

static decant_status produce_nothing(void *ctx, decant_view *out, decant_error *e)
{
    (void)ctx;
    (void)e;
    out->len = 7;
    return DECANT_OK;
}

TEST(a_length_without_bytes__is_no_promise_kept)
{
    decant_provider calls = DECANT_PROVIDER_INIT;
    decant_bytes *bytes = NULL;
    char text[8];

    calls.produce = produce_nothing;
    CHECK_OK(decant_bytes_defer(7, &calls, &bytes, &err), &err);
    CHECK_FAILS(decant_bytes_read(bytes, 0, text, 7, &err), DECANT_MISMATCH, &err);
    CHECK_TEXT(err.found, "no bytes");
    decant_bytes_unref(&bytes);
}

TEST(a_providers_own_error__is_kept_word_for_word)
{
    script by = {.text = "content", .fails = DECANT_IO, .code = 77}, of = by;
    decant_bytes *range = by_range(&by), *all = whole(&of);
    char text[8];

    CHECK_FAILS(decant_bytes_read(range, 0, text, 7, &err), DECANT_IO, &err);
    CHECK_TEXT(err.message, "the cable is out");
    CHECK_EQ(err.callback_code, 77);
    CHECK_EQ(err.side, DECANT_SIDE_CALLER);
    CHECK_EQ(err.offset, DECANT_NO_OFFSET);
    CHECK_FAILS(decant_bytes_keep(all, &err), DECANT_IO, &err);
    CHECK_TEXT(err.message, "the cable is out");
    CHECK_EQ(err.callback_code, 77);
    CHECK_EQ(of.discarded, 0);
    CHECK_EQ(decant_bytes_read(range, 0, text, 7, NULL), DECANT_IO);
    decant_bytes_unref(&range);
    decant_bytes_unref(&all);
    CHECK(by.released == 1 && of.released == 1);
}

TEST(a_provider_that_fails_without_a_word__is_reported_as_a_callback)
{
    script s = {.text = "content", .fails = DECANT_NO_SPACE, .silent = true, .code = 5};
    decant_bytes *bytes = by_range(&s);
    char text[8];

    CHECK_FAILS(decant_bytes_read(bytes, 0, text, 7, &err), DECANT_CALLBACK, &err);
    CHECK_HAS(err.message, "provider");
    CHECK_EQ(err.callback_code, 5);
    CHECK_EQ(decant_bytes_read(bytes, 0, text, 7, NULL), DECANT_CALLBACK);
    decant_bytes_unref(&bytes);
}

TEST(a_provider__cannot_make_decant_try_another_way_or_believe_the_output_in_place)
{
    static const decant_status codes[] = {DECANT_UNSUPPORTED, DECANT_NOT_DURABLE};

    for (size_t i = 0; i < 2; i++) {
        script s = {.text = "content", .fails = codes[i]};
        decant_bytes *bytes = whole(&s);
        decant_view view = {0};

        CHECK_FAILS(dcn_backing_lend(bytes, 0, 7, true, &view, &err), DECANT_CALLBACK, &err);
        CHECK_TEXT(err.message, "the cable is out");
        decant_bytes_unref(&bytes);
    }
}

static decant_status read_and_grumble(void *ctx, uint64_t offset, void *dst, size_t len, decant_error *e)
{
    decant_error_set(e, DECANT_IO, "a first try failed");
    return read_text(ctx, offset, dst, len, e);
}

TEST(a_provider_that_succeeds__leaves_the_error_alone)
{
    script s = {.text = "content"};
    decant_provider calls = DECANT_PROVIDER_INIT;
    decant_bytes *bytes = NULL;
    char text[8];

    calls.read = read_and_grumble;
    calls.ctx = &s;
    err = (decant_error){0};
    CHECK_OK(decant_bytes_defer(7, &calls, &bytes, &err), &err);
    CHECK_OK(decant_bytes_read(bytes, 0, text, 7, &err), &err);
    CHECK_EQ(err.status, DECANT_OK);
    decant_bytes_unref(&bytes);
}

TEST(defer__does_not_release_what_it_could_not_take)
{
    script s = {.text = "content"};
    decant_provider calls = DECANT_PROVIDER_INIT;
    decant_bytes *bytes = NULL;

    calls.read = read_text;
    calls.release = release_text;
    calls.ctx = &s;
    test_alloc_fail(0);
    CHECK_FAILS(decant_bytes_defer(7, &calls, &bytes, &err), DECANT_NOMEM, &err);
    test_alloc_disarm();
    CHECK(!bytes && s.released == 0);
    calls.discard = discard_text;
    CHECK_FAILS(decant_bytes_defer(7, &calls, &bytes, &err), DECANT_BAD_CALL, &err);
    CHECK(!bytes && s.released == 0);
}
