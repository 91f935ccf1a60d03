/* Sources: one inode, its identity, and many small ranges in few calls. */
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>

#include "bytes/source.h"
#include "support/alloc.h"
#include "support/gates.h"
#include "support/simdisk.h"

enum { SIZE = 100000 };

static decant_error err;
static uint8_t content[SIZE];

typedef struct opened {
    simdisk *disk;
    gates gates;
    dcn_source *source;
} opened;

static void begin(opened *o)
{
    *o = (opened){.disk = simdisk_new()};
    test_stream(3, content, SIZE);
    simdisk_put(o->disk, "model", content, SIZE);
    gates_up(&o->gates, &o->disk->io);
    CHECK_OK(dcn_source_open(&o->disk->io, "model", &o->source, &err), &err);
}

static void end(opened *o)
{
    dcn_source_unref(&o->source);
    gates_down(&o->gates);
    simdisk_free(&o->disk);
}

TEST(a_source__knows_its_file_as_it_was_when_opened)
{
    opened o;
    dcn_source *more;

    begin(&o);
    CHECK_EQ(dcn_source_size(o.source), SIZE);
    CHECK_TEXT(dcn_source_path(o.source), "model");
    CHECK_EQ(dcn_source_facts(o.source)->size, SIZE);
    CHECK_EQ(dcn_source_facts(o.source)->kind, DCN_KIND_REGULAR);
    CHECK_OK(dcn_source_check(o.source, &err), &err);
    simdisk_touch(o.disk, "model");
    CHECK_FAILS(dcn_source_check(o.source, &err), DECANT_CHANGED, &err);
    CHECK(err.found[0] && err.expected[0] && err.hint[0]);
    CHECK_TEXT(err.path, "model");

    more = dcn_source_ref(o.source);
    dcn_source_unref(&more);
    CHECK(!more);
    dcn_source_unref(&more);
    CHECK_EQ(o.disk->open_files, 1);
    dcn_source_unref(&o.source);
    CHECK_EQ(o.disk->open_files, 0);
    end(&o);
}

TEST(a_source_that_grew__has_changed)
{
    opened o;
    dcn_file *file = NULL;

    begin(&o);
    CHECK_OK(dcn_io_open(&o.disk->io, "model", DCN_WRITE, &file, &err), &err);
    CHECK_OK(dcn_file_resize(file, SIZE + 1, &err), &err);
    dcn_file_close(&file);
    CHECK_FAILS(dcn_source_check(o.source, &err), DECANT_CHANGED, &err);
    CHECK_TEXT(err.found, "100001 bytes");
    CHECK_TEXT(err.expected, "100000");
    end(&o);
}

TEST(only_files__are_sources)
{
    simdisk *disk = simdisk_new();
    dcn_source *source = NULL;

    simdisk_folder(disk, "folder");
    simdisk_make(disk, "pipe", DCN_KIND_OTHER, NULL);
    simdisk_put_text(disk, "file", "x");
    simdisk_make(disk, "link", DCN_KIND_LINK, "file");
    CHECK(dcn_source_open(&disk->io, "folder", &source, &err) != DECANT_OK);
    CHECK_HAS(decant_error_text(&err), "folder");
    CHECK_FAILS(dcn_source_open(&disk->io, "pipe", &source, &err), DECANT_UNSUPPORTED, &err);
    CHECK_HAS(err.message, "pipe");
    CHECK_TEXT(err.path, "pipe");
    CHECK(err.hint[0]);
    CHECK_EQ(err.side, DECANT_SIDE_INPUT);
    CHECK_FAILS(dcn_source_open(&disk->io, "none", &source, &err), DECANT_NOT_FOUND, &err);
    CHECK_EQ(disk->open_files, 0);
    CHECK_OK(dcn_source_open(&disk->io, "link", &source, &err), &err);
    dcn_source_unref(&source);
    simdisk_free(&disk);
}

TEST(ranges_in_any_order__are_filled_and_neighbours_share_reads)
{
    enum { COUNT = 1024, EACH = 16, STEP = 48 };
    opened o;
    dcn_range ranges[COUNT];
    uint8_t *got = calloc(COUNT, EACH);
    uint64_t state = 9;

    CHECK(got);
    begin(&o);
    for (size_t i = 0; i < COUNT; i++)
        ranges[i] = (dcn_range){STEP * i, got + EACH * i, EACH};
    for (size_t i = COUNT - 1; i > 0; i--) {
        size_t k = (size_t)(test_random(&state) % (i + 1));
        dcn_range swap = ranges[i];

        ranges[i] = ranges[k];
        ranges[k] = swap;
    }
    CHECK_OK(dcn_source_read(o.source, ranges, COUNT, &err), &err);
    for (size_t i = 0; i < COUNT; i++)
        CHECK_BYTES(got + EACH * i, EACH, content + STEP * i, EACH);
    CHECK(o.gates.count[DCN_DO_READ] <= 2 * COUNT / 256 + 1);
    /* all the gaps but those between two calls: each call goes front to back */
    CHECK_EQ(o.gates.bytes[DCN_DO_READ], COUNT * EACH + (COUNT - o.gates.count[DCN_DO_READ]) * (STEP - EACH));
    end(&o);
    free(got);
}

TEST(small_gaps__are_read_and_large_ones_are_not)
{
    opened o;
    uint8_t a[8], b[8], c[8];
    dcn_range ranges[] = {{100, a, 8}, {108 + 4096, b, 8}, {116 + 4096 + 4097, c, 8}};

    begin(&o);
    CHECK_OK(dcn_source_read(o.source, ranges, 3, &err), &err);
    CHECK_BYTES(a, 8, content + 100, 8);
    CHECK_BYTES(b, 8, content + 4204, 8);
    CHECK_BYTES(c, 8, content + 8309, 8);
    CHECK_EQ(o.gates.bytes[DCN_DO_READ], 3 * 8 + 4096);
    end(&o);
}

TEST(ranges_that_overlap_touch_or_are_empty__are_all_filled)
{
    opened o;
    uint8_t a[50], b[20], c[10], d[10];
    dcn_range ranges[] = {{0, a, 50}, {10, b, 20}, {SIZE, NULL, 0}, {50, c, 10}, {10, d, 10}};

    begin(&o);
    CHECK_OK(dcn_source_read(o.source, ranges, 5, &err), &err);
    CHECK_BYTES(a, 50, content, 50);
    CHECK_BYTES(b, 20, content + 10, 20);
    CHECK_BYTES(c, 10, content + 50, 10);
    CHECK_BYTES(d, 10, content + 10, 10);
    CHECK_OK(dcn_source_read(o.source, NULL, 0, &err), &err);
    end(&o);
}

TEST(reading__allocates_nothing)
{
    opened o;
    uint8_t a[64], b[64];
    dcn_range ranges[] = {{600, a, 64}, {200, b, 64}};

    begin(&o);
    test_alloc_fail(0);
    CHECK_OK(dcn_source_read(o.source, ranges, 2, &err), &err);
    CHECK(!test_alloc_fired());
    test_alloc_disarm();
    end(&o);
}

TEST(a_range_past_the_end__is_truncated_and_nothing_is_read)
{
    opened o;
    uint8_t a[8], b[8];
    dcn_range ranges[] = {{0, a, 8}, {SIZE - 7, b, 8}}, far = {UINT64_MAX - 3, a, 8};

    begin(&o);
    CHECK_FAILS(dcn_source_read(o.source, ranges, 2, &err), DECANT_TRUNCATED, &err);
    CHECK_TEXT(err.found, "100000 bytes");
    CHECK_EQ(err.offset, SIZE - 7);
    CHECK_TEXT(err.path, "model");
    CHECK_FAILS(dcn_source_read(o.source, &far, 1, &err), DECANT_TRUNCATED, &err);
    CHECK_EQ(o.gates.count[DCN_DO_READ], 0);
    end(&o);
}

TEST(a_failed_read__names_the_file_as_input)
{
    opened o;
    uint8_t a[8];
    dcn_range range = {0, a, 8};

    begin(&o);
    gates_fail(&o.gates, (gates_fault){.one_verb = true, .verb = DCN_DO_READ, .status = DECANT_IO, .os_code = 5});
    CHECK_FAILS(dcn_source_read(o.source, &range, 1, &err), DECANT_IO, &err);
    CHECK_EQ(err.os_code, 5);
    CHECK_EQ(err.side, DECANT_SIDE_INPUT);
    CHECK_TEXT(err.path, "model");
    end(&o);
}

/* --- readers ------------------------------------------------------------------------------------------------------ */

typedef struct script {
    size_t reads, released;
    bool fails, silent;
} script;

static decant_status read_content(void *ctx, uint64_t offset, void *dst, size_t len, decant_error *e)
{
    script *s = ctx;

    s->reads++;
    if (s->fails)
        return s->silent ? DECANT_IO : decant_error_set(e, DECANT_IO, "no signal");
    memcpy(dst, content + offset, len);
    return DECANT_OK;
}

static void release_script(void *ctx)
{
    ((script *)ctx)->released++;
}

TEST(a_reader__is_a_source_without_facts)
{
    script s = {0};
    decant_reader reader = {sizeof reader, 1000, read_content, release_script, &s};
    dcn_source *source = NULL;
    uint8_t a[4], b[4];
    dcn_range ranges[] = {{996, a, 4}, {0, b, 4}, {10, NULL, 0}};

    test_stream(3, content, SIZE);
    CHECK_OK(dcn_source_from_reader(&reader, "cloud", &source, &err), &err);
    CHECK_EQ(dcn_source_size(source), 1000);
    CHECK_TEXT(dcn_source_path(source), "cloud");
    CHECK(!dcn_source_facts(source));
    CHECK_OK(dcn_source_check(source, &err), &err);
    CHECK_OK(dcn_source_read(source, ranges, 3, &err), &err);
    CHECK_EQ(s.reads, 2);
    CHECK_BYTES(a, 4, content + 996, 4);
    CHECK_BYTES(b, 4, content, 4);

    s.fails = true;
    ranges[0] = (dcn_range){0, a, 4};
    CHECK_FAILS(dcn_source_read(source, ranges, 1, &err), DECANT_IO, &err);
    CHECK_TEXT(err.message, "no signal");
    CHECK_EQ(err.side, DECANT_SIDE_CALLER);
    CHECK_TEXT(err.path, "cloud");
    s.silent = true;
    CHECK_FAILS(dcn_source_read(source, ranges, 1, &err), DECANT_CALLBACK, &err);
    CHECK_HAS(err.message, "reader");
    dcn_source_unref(&source);
    CHECK_EQ(s.released, 1);
}

TEST(a_source__is_opened_or_refused_whichever_allocation_fails)
{
    simdisk *disk = simdisk_new();
    script s = {0};
    decant_reader reader = {sizeof reader, 1000, read_content, release_script, &s};
    size_t n;

    simdisk_put_text(disk, "f", "x");
    for (n = 0;; n++) {
        dcn_source *source = NULL, *other = NULL;
        decant_status rc;

        test_alloc_fail(n);
        if ((rc = dcn_source_open(&disk->io, "f", &source, &err)) == DECANT_OK)
            rc = dcn_source_from_reader(&reader, "cloud", &other, &err);
        test_alloc_disarm();
        dcn_source_unref(&source);
        dcn_source_unref(&other);
        CHECK(test_alloc_fired() == (rc == DECANT_NOMEM));
        CHECK(disk->open_files == 0 && test_alloc_live() == 0);
        if (rc == DECANT_OK)
            break;
        CHECK_EQ(s.released, 0);
    }
    CHECK(n >= 4);
    simdisk_free(&disk);
}
