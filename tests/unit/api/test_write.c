#include <stdio.h>

#include "api/env.h"
#include "support/gates.h"
#include "support/recorder.h"
#include "support/simdisk.h"

/* Bytes of any kind as files: what a serializer with a layout of its own saves. */

static decant_error err;

static decant_bytes *text_of(const char *text)
{
    decant_bytes *bytes = NULL;

    CHECK_OK(decant_bytes_copy(text, strlen(text), &bytes, &err), &err);
    return bytes;
}

static decant_bytes *range_of(simdisk *disk, const char *name, uint64_t at, uint64_t len)
{
    dcn_source *source = NULL;
    decant_bytes *whole = NULL, *part = NULL;

    CHECK_OK(dcn_source_open(&disk->io, name, &source, &err), &err);
    CHECK_OK(dcn_bytes_from_source(source, &whole, &err), &err);
    CHECK_OK(decant_bytes_slice(whole, at, len, &part, &err), &err);
    decant_bytes_unref(&whole);
    return part;
}

typedef struct asked {
    unsigned calls, releases;
} asked;

static decant_status fill(void *ctx, uint64_t offset, void *dst, size_t len, decant_error *e)
{
    (void)e;
    ((asked *)ctx)->calls++;
    for (size_t i = 0; i < len; i++)
        ((char *)dst)[i] = (char)('0' + (offset + i) % 10);
    return DECANT_OK;
}

static void release(void *ctx)
{
    ((asked *)ctx)->releases++;
}

/* Memory, a range of a file, and what a callback fills, joined. */
static decant_bytes *rope(simdisk *disk, asked *who)
{
    decant_provider provider = DECANT_PROVIDER_INIT;
    decant_bytes *parts[3] = {text_of("head "), range_of(disk, "in", 2, 4), NULL}, *joined = NULL;

    provider.read = fill;
    provider.release = release;
    provider.ctx = who;
    CHECK_OK(decant_bytes_defer(12, &provider, &parts[2], &err), &err);
    CHECK_OK(decant_bytes_join(parts, 3, &joined, &err), &err);
    for (size_t i = 0; i < 3; i++)
        decant_bytes_unref(&parts[i]);
    return joined;
}

static decant_status write_on(simdisk *disk, const decant_file *files, size_t count, bool replace, bool plan_only)
{
    dcn_env env = {.io = &disk->io, .cut = {.slot = 8, .slots = 2, .direct = 64, .share = 4096}};
    decant_save_options options = DECANT_SAVE_OPTIONS_INIT;

    options.replace = replace;
    return dcn_write(&env, files, count, &options, plan_only, NULL, &err);
}

TEST(write__joins_memory_files_and_providers)
{
    simdisk *disk = simdisk_new();
    asked who = {0};
    decant_file file = {"out", NULL};

    simdisk_put_text(disk, "in", "abcdefgh");
    file.bytes = rope(disk, &who);
    CHECK_OK(write_on(disk, &file, 1, false, true), &err);
    CHECK_EQ(who.calls, 0); /* a plan asks nobody */
    CHECK_FILE(disk, "out", NULL);
    CHECK_OK(write_on(disk, &file, 1, false, false), &err);
    CHECK_FILE(disk, "out", "head cdef012345678901");
    CHECK(who.calls > 0);
    decant_bytes_unref(&file.bytes);
    CHECK_EQ(who.releases, 1);
    simdisk_free(&disk);
}

TEST(write__makes_an_empty_file_of_no_bytes)
{
    simdisk *disk = simdisk_new();
    decant_file file = {"out", text_of("")};

    CHECK_OK(write_on(disk, &file, 1, false, false), &err);
    CHECK_FILE(disk, "out", "");
    decant_bytes_unref(&file.bytes);
    simdisk_free(&disk);
}

/* Every call fails in turn: all the files are the old ones, or all are the new ones. */
TEST(write__publishes_several_files_together)
{
    bool fired = true;

    for (size_t n = 0; fired; n++) {
        simdisk *disk = simdisk_new();
        decant_file files[] = {{"sub/a.bin", text_of("new a")}, {"sub/index", text_of("new index")}};
        decant_status rc;
        gates g;

        simdisk_put_text(disk, "sub/a.bin", "old a");
        simdisk_put_text(disk, "sub/index", "old index");
        gates_up(&g, &disk->io);
        gates_fail(&g, (gates_fault){.nth = n, .status = DECANT_IO, .os_code = 5});
        rc = write_on(disk, files, 2, true, false);
        fired = g.fired;
        gates_down(&g);
        if (rc == DECANT_OK || rc == DECANT_NOT_DURABLE) {
            CHECK_FILE(disk, "sub/a.bin", "new a");
            CHECK_FILE(disk, "sub/index", "new index");
        } else if (rc != DECANT_PUBLISH_PENDING) { /* recovery is tested by itself */
            CHECK_FILE(disk, "sub/a.bin", "old a");
            CHECK_FILE(disk, "sub/index", "old index");
        }
        decant_bytes_unref(&files[0].bytes);
        decant_bytes_unref(&files[1].bytes);
        simdisk_free(&disk);
    }
}

TEST(write__refuses_what_cannot_be_one_save)
{
    simdisk *disk = simdisk_new();
    decant_bytes *bytes = text_of("x");
    const decant_file twice[] = {{"a", bytes}, {"a", bytes}}, apart[] = {{"a", bytes}, {"sub/b", bytes}},
                      nowhere = {NULL, bytes}, nothing = {"a", NULL}, folder = {"sub/", bytes};

    simdisk_folder(disk, "sub");
    CHECK_FAILS(write_on(disk, twice, 2, false, false), DECANT_BAD_CALL, &err);
    CHECK_HAS(err.message, "two files have this path");
    CHECK_FAILS(write_on(disk, apart, 2, false, false), DECANT_UNSUPPORTED, &err);
    CHECK_HAS(err.hint, "one by one");
    CHECK_FAILS(write_on(disk, &nowhere, 1, false, false), DECANT_BAD_CALL, &err);
    CHECK_FAILS(write_on(disk, &nothing, 1, false, false), DECANT_BAD_CALL, &err);
    CHECK_FAILS(write_on(disk, &folder, 1, false, false), DECANT_BAD_CALL, &err);
    CHECK_FAILS(write_on(disk, NULL, 0, false, false), DECANT_BAD_CALL, &err);
    CHECK_EQ(simdisk_file_count(disk), 0);
    decant_bytes_unref(&bytes);
    simdisk_free(&disk);
}
