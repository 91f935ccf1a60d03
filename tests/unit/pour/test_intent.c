#include "base/endian.h"
#include "pour/intent.h"
#include "support/test.h"

/*
 * What a journal says fits its checksums, and still is not believed: each name, number and place of it is looked at, since files
 * are freed, renamed and removed by it.
 */

enum {
    SIZE = 319, /* bytes of the BEGIN below */
    HEAD = 36,  /* of it: counts, batch and unit */
    NAME_MOST = 255,
    PATH_MOST = 4096,
    HELD_MOST = 64 << 10,
    PART = 32 /* of COMMIT, an identity */
};

static const dcn_promise first = {.name = "p", .size = 600, .held = 100};

/* Of two outputs the second replaces a file; of two sources the first is drained, into both. */
static void put_begin(const dcn_promise *output, const char *folder, dcn_buf *out)
{
    static const dcn_identity file = {1, 2, 1000, 3};
    dcn_intent intent = {0};
    dcn_promise promises[] = {*output, {.name = "q", .size = 600, .replace = true, .has_old = true, .old = file}};
    const char *folders[] = {NULL, folder};
    dcn_removal removal = {.name = "i", .file = file, .mtime = 4, .folder = 1};
    dcn_owned owned[] = {{.name = "a", .file = file, .mtime = 5, .drained = true},
                         {.name = "b", .file = file, .mtime = 6, .folder = 1}};
    dcn_run runs[] = {{.from = 10, .to = 100, .len = 490}, {.from = 500, .to = 0, .len = 500, .output = 1}};

    intent.outputs = promises;
    intent.count = 2;
    intent.folders = folders;
    intent.folder_count = 2;
    intent.removals = &removal;
    intent.removal_count = 1;
    intent.giving = (dcn_giving){.items = owned, .count = 2, .batch = 512, .unit = 64};
    intent.giving.runs.items = runs;
    intent.giving.runs.count = 2;
    out->len = 0;
    dcn_intent_put_begin(&intent, out);
    CHECK(!out->failed);
}

/* @param says  in its message; NULL: it is read */
static void check_begin(const dcn_buf *begin, const char *what, const char *says)
{
    dcn_intent intent = {0};
    decant_error err = {0};
    decant_status rc = dcn_intent_read_begin(&intent, begin->data, begin->len, &err);

    if (rc != (says ? DECANT_UNSUPPORTED : DECANT_OK))
        test_fail(__FILE__, __LINE__, "%s: %s", what, rc ? decant_error_text(&err) : "it is read");
    if (says) {
        CHECK_HAS(err.message, "a later version of decant has written this journal");
        CHECK_HAS(err.message, says);
        CHECK_TEXT(err.hint, "recover with that version");
    }
    dcn_intent_close(&intent);
}

TEST(intent__is_believed_in_no_part_that_makes_no_sense)
{
    static const struct {
        const char *what;
        size_t at, bytes;
        uint64_t value;
        const char *says;
    } cases[] = {
        {"no outputs", 0, 4, 0, "more than it holds"},
        {"more outputs than there is room for", 0, 4, 1000, "more than it holds"},
        {"more folders", 4, 4, 1000, "more than it holds"},
        {"more removals", 8, 4, 1000, "more than it holds"},
        {"more sources", 12, 4, 1000, "more than it holds"},
        {"more runs", 16, 4, 1000, "more than it holds"},
        {"a run less", 16, 4, 1, "more than it holds"},
        {"no batch", 20, 8, 0, "batches of a size that is none"},
        {"a batch beyond all sense", 20, 8, (UINT64_C(1) << 40) + 1, "batches of a size that is none"},
        {"the largest batch", 20, 8, UINT64_C(1) << 40, NULL},
        {"no unit", 28, 8, 0, "batches of a size that is none"},
        {"a unit that is no power of two", 28, 8, 96, "batches of a size that is none"},
        {"a unit beyond all sense", 28, 8, UINT64_C(1) << 31, "batches of a size that is none"},
        {"the largest unit", 28, 8, UINT64_C(1) << 30, NULL},
        {"an output with a name of no bytes", HEAD, 2, 0, "not in its folder"},
        {"an output with a slash", HEAD + 2, 1, '/', "not in its folder"},
        {"an output with a NUL", HEAD + 2, 1, 0, "not in its folder"},
        {"an output that is its folder", HEAD + 2, 1, '.', "not in its folder"},
        {"an output of another kind", 39, 1, 4, "an output of a kind"},
        {"an output that holds back more than it has", 48, 8, 601, "an output of a kind"},
        {"a folder that begins elsewhere", 110, 1, 'f', "not in its folder"},
        {"a folder with a NUL", 111, 1, 0, "not in its folder"},
        {"a removal with a slash", 114, 1, '/', "not in its folder"},
        {"a removal in a folder that is not there", 115, 4, 2, "a folder that it does not name"},
        {"a source with a slash", 161, 1, '/', "not in its folder"},
        {"a source in a folder that is not there", 162, 4, 2, "a folder that it does not name"},
        {"a source of another kind", 206, 1, 2, "a source of a kind"},
        {"a source that is not drained and has runs", 206, 1, 0, "a run of bytes that is not there"},
        {"a run of a source that is not there", 255, 4, 2, "a run of bytes that is not there"},
        {"a run of a source that stays whole", 255, 4, 1, "a run of bytes that is not there"},
        {"a run in an output that is not there", 259, 4, 2, "a run of bytes that is not there"},
        {"a run that begins behind its source", 263, 8, 1001, "a run of bytes that is not there"},
        {"a run that ends behind its source", 263, 8, 511, "a run of bytes that is not there"},
        {"a run that ends behind its output", 271, 8, 111, "a run of bytes that is not there"},
        {"a run that ends behind all numbers", 279, 8, UINT64_MAX, "a run of bytes that is not there"},
        {"a run of nothing", 279, 8, 0, "a run of bytes that is not there"},
        {"runs out of order", 295, 8, 0, "runs out of order"},
    };
    dcn_buf begin = {0};

    put_begin(&first, "/f", &begin);
    CHECK_EQ(begin.len, SIZE);
    check_begin(&begin, "as it is", NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_begin(&first, "/f", &begin);
        for (size_t k = 0; k < cases[i].bytes; k++)
            begin.data[cases[i].at + k] = (uint8_t)(cases[i].value >> 8 * k);
        check_begin(&begin, cases[i].what, cases[i].says);
    }
    dcn_buf_close(&begin);
}

TEST(intent__of_which_a_byte_is_missing_or_too_many_is_not_believed)
{
    dcn_buf begin = {0};

    put_begin(&first, "/f", &begin);
    dcn_buf_fill(&begin, 0, 1);
    check_begin(&begin, "a byte more", "more than it holds");
    for (begin.len = 0; begin.len < SIZE; begin.len++)
        check_begin(&begin, "bytes less", "");
    dcn_buf_close(&begin);
}

/* `path` of `count` bytes, each of them `fill` behind the first. */
static const char *filled(char *path, char begin, char fill, size_t count)
{
    memset(path, fill, count);
    path[0] = begin;
    path[count] = '\0';
    return path;
}

TEST(intent__has_names_that_stay_in_their_folder_and_fit)
{
    static const struct {
        const char *name;
        bool fits;
    } cases[] = {{".", false}, {"..", false}, {".a", true}, {"...", true}, {"a/b", false}, {"a.", true}};
    dcn_promise p = first;
    dcn_buf begin = {0};
    char text[PATH_MOST + 1];

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        p.name = cases[i].name;
        put_begin(&p, "/f", &begin);
        check_begin(&begin, p.name, cases[i].fits ? NULL : "not in its folder");
    }
    for (size_t over = 0; over < 2; over++) {
        p.name = filled(text, 'n', 'n', NAME_MOST + over);
        put_begin(&p, "/f", &begin);
        check_begin(&begin, "a long name", over ? "not in its folder" : NULL);
        put_begin(&first, filled(text, '/', 'f', PATH_MOST - 1 + over), &begin);
        check_begin(&begin, "a long path", over ? "not in its folder" : NULL);
        p = first;
        p.held = HELD_MOST + over;
        p.size = UINT64_C(1) << 20;
        put_begin(&p, "/f", &begin);
        check_begin(&begin, "much held back", over ? "an output of a kind" : NULL);
        p = first;
    }
    put_begin(&first, "", &begin);
    check_begin(&begin, "no path", "not in its folder");
    dcn_buf_close(&begin);
}

TEST(intent__names_each_folder_once)
{
    const char *folders[] = {NULL, "/f", "/f"};
    dcn_promise p = first;
    dcn_intent intent = {.outputs = &p, .count = 1, .folders = folders, .folder_count = 3};
    dcn_buf begin = {0};

    dcn_intent_put_begin(&intent, &begin);
    check_begin(&begin, "a folder twice", "a folder twice");
    begin.len = 0;
    folders[2] = "/g";
    dcn_intent_put_begin(&intent, &begin);
    check_begin(&begin, "two folders", NULL);
    dcn_buf_close(&begin);
}

TEST(intent__takes_marks_within_what_is_drained)
{
    static const struct {
        dcn_mark mark;
        bool fits;
    } cases[] = {
        {{.source = 0, .from = 0, .upto = 1000, .sum = 7}, true},
        {{.source = 0, .from = 1000, .upto = 1000}, true},
        {{.source = 0, .from = 0, .upto = 1001}, false},
        {{.source = 0, .from = 2, .upto = 1}, false},
        {{.source = 1, .from = 0, .upto = 1}, false}, /* it stays whole */
        {{.source = 2, .from = 0, .upto = 1}, false},
    };
    dcn_intent intent = {0};
    dcn_buf data = {0};
    dcn_mark mark;
    decant_error err;

    put_begin(&first, "/f", &data);
    CHECK_OK(dcn_intent_read_begin(&intent, data.data, data.len, &err), &err);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const dcn_mark *wanted = &cases[i].mark;

        data.len = 0;
        dcn_mark_put(wanted, &data);
        CHECK_EQ(dcn_mark_read(&mark, &intent, data.data, data.len, &err),
                 cases[i].fits ? DECANT_OK : DECANT_UNSUPPORTED);
        if (cases[i].fits)
            CHECK(mark.source == wanted->source && mark.from == wanted->from && mark.upto == wanted->upto &&
                  mark.sum == wanted->sum);
        else
            CHECK_HAS(err.message, "a mark that is none");
    }
    data.len = 0;
    dcn_mark_put(&cases[0].mark, &data);
    dcn_buf_fill(&data, 0, 1);
    CHECK_FAILS(dcn_mark_read(&mark, &intent, data.data, data.len, &err), DECANT_UNSUPPORTED, &err);
    CHECK_FAILS(dcn_mark_read(&mark, &intent, data.data, data.len - 2, &err), DECANT_UNSUPPORTED, &err);
    dcn_buf_close(&data);
    dcn_intent_close(&intent);
}

/* Two parts and 100 bytes that the first of them holds back: no byte more or less. */
TEST(intent__takes_parts_and_what_they_hold_back_in_full)
{
    enum { HELD = 100 };
    dcn_intent intent = {0};
    dcn_buf data = {0}, held = {0};
    decant_error err;

    put_begin(&first, "/f", &data);
    CHECK_OK(dcn_intent_read_begin(&intent, data.data, data.len, &err), &err);
    data.len = 0;
    dcn_buf_fill(&data, 3, 2 * PART);
    dcn_buf_fill(&data, 9, HELD + 1);
    for (size_t len = 0; len <= data.len; len++) {
        bool is_commit = len == 2 * PART, is_ready = len == 2 * PART + HELD;

        held.len = 0;
        CHECK_EQ(dcn_intent_read_commit(&intent, data.data, len, &err), is_commit ? DECANT_OK : DECANT_UNSUPPORTED);
        CHECK_EQ(dcn_intent_read_ready(&intent, data.data, len, &held, &err),
                 is_ready ? DECANT_OK : DECANT_UNSUPPORTED);
        CHECK(held.len == (is_ready ? HELD : 0));
    }
    CHECK_EQ(intent.outputs[1].part.ino, dcn_le64(data.data));
    dcn_buf_close(&held);
    dcn_buf_close(&data);
    dcn_intent_close(&intent);
}
