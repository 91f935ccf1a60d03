#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/endian.h"
#include "pour/journal.h"
#include "support/alloc.h"
#include "support/gates.h"
#include "support/simdisk.h"

enum { CELL = 512, LONG = 1200 /* three cells */ };

static const char name[] = "p.decant-journal";

static void put(dcn_journal *j, dcn_record_type type, size_t len)
{
    dcn_buf data = {0};
    decant_error err;

    dcn_buf_fill(&data, (uint8_t)type, len);
    CHECK_OK(dcn_journal_put(j, type, &data, &err), &err);
    dcn_buf_close(&data);
}

/* A journal with BEGIN, and with `first`, `second` behind it. */
static simdisk *written(dcn_record_type first, size_t first_len, dcn_record_type second)
{
    simdisk *disk = simdisk_new();
    dcn_dir *dir = NULL;
    dcn_journal j = {0};
    dcn_buf begin = {0};
    decant_error err;

    CHECK_OK(dcn_io_open_dir(&disk->io, ".", &dir, &err), &err);
    CHECK_OK(dcn_journal_create(&j, dir, "p", &err), &err);
    dcn_buf_fill(&begin, 7, 100);
    CHECK_OK(dcn_journal_begin(&j, &begin, 10, &err), &err);
    put(&j, first, first_len);
    if (second)
        put(&j, second, 0);
    CHECK_OK(dcn_journal_sync(&j, &err), &err);
    dcn_buf_close(&begin);
    dcn_journal_close(&j);
    dcn_dir_close(&dir);
    return disk;
}

/* A cell that is lost is zeros. */
static void lose(simdisk *disk, size_t cell)
{
    uint8_t content[20 * CELL];
    size_t len = 0;
    const uint8_t *now = simdisk_get(disk, name, &len);

    CHECK(len <= sizeof content);
    memcpy(content, now, len);
    memset(content + cell * CELL, 0, CELL);
    simdisk_put(disk, name, content, len);
}

/* Reads all of it, and puts `more` behind. @return the types of the records, as text */
static const char *read_all(simdisk *disk, dcn_record_type more, decant_status end)
{
    static char types[32];
    dcn_dir *dir = NULL;
    dcn_journal j;
    dcn_record record;
    size_t count = 0;
    bool live;
    decant_error err;

    CHECK_OK(dcn_io_open_dir(&disk->io, ".", &dir, &err), &err);
    CHECK_OK(dcn_journal_open(&j, dir, name, true, &live, &err), &err);
    do {
        CHECK_OK(dcn_journal_next(&j, &record, &err), &err);
        types[count++] = (char)('0' + record.type);
    } while (record.type != DCN_RECORD_NONE);
    types[count - 1] = '\0';
    CHECK_EQ(dcn_journal_check_end(&j, 2, &err), end);
    if (more) {
        CHECK_OK(dcn_journal_trim(&j, &err), &err);
        put(&j, more, 0);
        CHECK_OK(dcn_journal_sync(&j, &err), &err);
    }
    dcn_journal_close(&j);
    dcn_dir_close(&dir);
    return types;
}

/* A record of several cells of which a power cut has kept some: what is put next is read, and the rest of it is gone. */
TEST(journal__goes_on_where_a_record_began_that_was_torn)
{
    for (size_t cell = 2; cell < 5; cell++) {
        simdisk *disk = written(DCN_RECORD_COMMIT, LONG, DCN_RECORD_NONE);

        lose(disk, cell);
        CHECK_TEXT(read_all(disk, DCN_RECORD_ABORT, DECANT_OK), "1");
        CHECK_TEXT(read_all(disk, DCN_RECORD_NONE, DECANT_OK), "14");
        simdisk_free(&disk);
    }
}

/* One sync comes between a record of several cells and the next one: both cannot be torn. */
TEST(journal__takes_a_missing_cell_for_damage_where_no_crash_leaves_that)
{
    simdisk *disk;

    for (size_t cell = 2; cell < 5; cell++) {
        disk = written(DCN_RECORD_READY, LONG, DCN_RECORD_MOVED);
        lose(disk, cell);
        CHECK_TEXT(read_all(disk, DCN_RECORD_NONE, DECANT_MALFORMED), "1");
        simdisk_free(&disk);
    }
    disk = written(DCN_RECORD_MOVED, 10, DCN_RECORD_COMMIT);
    lose(disk, 2);
    CHECK_TEXT(read_all(disk, DCN_RECORD_NONE, DECANT_MALFORMED), "1");
    simdisk_free(&disk);
}

/* Marks of one batch are synced together: any of them may be there. */
TEST(journal__ends_where_the_first_of_several_marks_was_lost)
{
    simdisk *disk = written(DCN_RECORD_MOVED, 10, DCN_RECORD_MOVED);

    lose(disk, 2);
    CHECK_TEXT(read_all(disk, DCN_RECORD_ABORT, DECANT_OK), "1");
    CHECK_TEXT(read_all(disk, DCN_RECORD_NONE, DECANT_OK), "14");
    simdisk_free(&disk);
}

/* However long it is, and its records are, it is written piece by piece. */
TEST(journal__takes_little_memory_of_its_own)
{
    enum { LARGE = 5 << 20, MOST = 300 << 10 };
    dcn_buf begin = {0}, ready = {0};
    simdisk *disk = simdisk_new();
    dcn_dir *dir = NULL;
    dcn_journal j;
    decant_error err;

    dcn_buf_fill(&begin, 7, LARGE);
    dcn_buf_fill(&ready, 8, LARGE);
    CHECK_OK(dcn_io_open_dir(&disk->io, ".", &dir, &err), &err);
    CHECK_OK(dcn_journal_create(&j, dir, "p", &err), &err);
    test_alloc_reset_peak();
    CHECK_OK(dcn_journal_begin(&j, &begin, dcn_journal_cells(LARGE) + 10, &err), &err);
    CHECK_OK(dcn_journal_put(&j, DCN_RECORD_READY, &ready, &err), &err);
    CHECK_OK(dcn_journal_sync(&j, &err), &err);
    CHECK(test_alloc_peak() <= 2 * LARGE + MOST);
    dcn_journal_close(&j);
    CHECK_TEXT(read_all(disk, DCN_RECORD_ABORT, DECANT_OK), "12");
    CHECK_TEXT(read_all(disk, DCN_RECORD_NONE, DECANT_OK), "124");
    dcn_dir_close(&dir);
    dcn_buf_close(&ready);
    dcn_buf_close(&begin);
    simdisk_free(&disk);
}

/* --- what fails --------------------------------------------------------------------------------------------------------- */

/* Calls of one verb fail, the n-th of them: whatever is begun, put and trimmed says so, and no more is put afterwards (3). */
static void fail_writes(dcn_verb verb)
{
    bool fired = true;

    for (size_t n = 0; fired; n++) {
        simdisk *disk = written(DCN_RECORD_COMMIT, LONG, DCN_RECORD_NONE);
        dcn_buf data = {0};
        dcn_dir *dir = NULL;
        dcn_journal j = {0}, torn = {0};
        dcn_record record;
        decant_status begun, put = DECANT_OK, trimmed;
        bool live;
        gates g;
        decant_error err;

        lose(disk, 3);
        dcn_buf_fill(&data, 7, LONG);
        CHECK_OK(dcn_io_open_dir(&disk->io, ".", &dir, &err), &err);
        CHECK_OK(dcn_journal_create(&j, dir, "q", &err), &err);
        CHECK_OK(dcn_journal_open(&torn, dir, name, true, &live, &err), &err);
        CHECK_OK(dcn_journal_next(&torn, &record, &err), &err);
        CHECK_OK(dcn_journal_next(&torn, &record, &err), &err);
        j.piece = torn.piece = 1; /* so that there are many */
        gates_up(&g, &disk->io);
        gates_fail(&g, (gates_fault){.nth = n, .one_verb = true, .verb = verb, .status = DECANT_IO});
        if ((begun = dcn_journal_begin(&j, &data, 4, &err)) == DECANT_OK)
            put = dcn_journal_put(&j, DCN_RECORD_COMMIT, &data, &err);
        trimmed = dcn_journal_trim(&torn, &err);
        fired = g.fired;
        CHECK_EQ((begun != DECANT_OK) + (put != DECANT_OK) + (trimmed != DECANT_OK), fired);
        CHECK_EQ(j.broken, begun || put);
        CHECK_EQ(torn.broken, trimmed != DECANT_OK);
        gates_down(&g);
        dcn_journal_discard(&j);
        CHECK_TEXT(simdisk_names(disk, "."), name);
        dcn_journal_close(&torn);
        dcn_journal_close(&j);
        dcn_buf_close(&data);
        dcn_dir_close(&dir);
        simdisk_free(&disk);
    }
}

TEST(journal__says_which_write_failed_and_takes_no_more)
{
    fail_writes(DCN_DO_WRITE);
    fail_writes(DCN_DO_SYNC);
}

TEST(journal__that_is_full_takes_no_more_and_keeps_what_it_has)
{
    simdisk *disk = simdisk_new();
    dcn_dir *dir = NULL;
    dcn_journal j = {0};
    dcn_buf data = {0}, mark = {0};
    decant_error err;

    dcn_buf_fill(&data, 1, LONG);
    dcn_buf_fill(&mark, 3, 10);
    CHECK_OK(dcn_io_open_dir(&disk->io, ".", &dir, &err), &err);
    CHECK_OK(dcn_journal_create(&j, dir, "p", &err), &err);
    CHECK_OK(dcn_journal_begin(&j, &mark, 2, &err), &err);
    CHECK_FAILS(dcn_journal_put(&j, DCN_RECORD_READY, &data, &err), DECANT_NO_SPACE, &err);
    put(&j, DCN_RECORD_MOVED, 10);
    put(&j, DCN_RECORD_MOVED, 10);
    CHECK_FAILS(dcn_journal_put(&j, DCN_RECORD_MOVED, &mark, &err), DECANT_NO_SPACE, &err);
    CHECK(!j.broken);
    CHECK_OK(dcn_journal_sync(&j, &err), &err);
    dcn_journal_close(&j);
    CHECK_TEXT(read_all(disk, DCN_RECORD_NONE, DECANT_OK), "133");
    dcn_buf_close(&mark);
    dcn_buf_close(&data);
    dcn_dir_close(&dir);
    simdisk_free(&disk);
}

/* --- what is there instead ------------------------------------------------------------------------------------------------ */

static void check_no_journal(dcn_io *io, const char *folder, decant_status wanted, const char *says)
{
    dcn_dir *dir = NULL;
    dcn_journal j;
    bool live;
    decant_error err;

    CHECK_OK(dcn_io_open_dir(io, folder, &dir, &err), &err);
    CHECK_FAILS(dcn_journal_open(&j, dir, name, true, &live, &err), wanted, &err);
    CHECK_HAS(err.message, says);
    dcn_journal_close(&j);
    dcn_dir_close(&dir);
}

TEST(journal__is_not_what_is_too_short_or_too_long)
{
    enum { LONGEST = 256 << 20 };
    static const uint8_t zeros[CELL];
    simdisk *disk = simdisk_new();
    char path[512];
    FILE *file;

    simdisk_put(disk, name, "DCNTJRN1", 8);
    simdisk_mode(disk, name, 0600);
    check_no_journal(&disk->io, ".", DECANT_MALFORMED, "it is too short");
    for (size_t len = 0; len <= CELL; len += CELL / 2) { /* a size that a crash has left of a new one */
        simdisk_put(disk, name, zeros, len);
        simdisk_mode(disk, name, 0600);
        CHECK_TEXT(read_all(disk, DCN_RECORD_NONE, DECANT_OK), "");
    }
    simdisk_free(&disk);

    snprintf(path, sizeof path, "%s/%s", test_folder(), name);
    file = fopen(path, "wb");
    CHECK(file && fchmod(fileno(file), 0600) == 0 && ftruncate(fileno(file), LONGEST + 1) == 0 && fclose(file) == 0);
    check_no_journal(dcn_io_posix(), test_folder(), DECANT_MALFORMED, "it is too long");
}

/* It is read from the medium: where what is cached cannot be dropped for a reason, nothing is believed; without one it is. */
TEST(journal__is_not_read_from_a_cache_that_cannot_be_dropped)
{
    simdisk *disk = written(DCN_RECORD_MOVED, 10, DCN_RECORD_NONE);
    gates g;

    gates_up(&g, &disk->io);
    gates_fail(&g, (gates_fault){.one_verb = true, .verb = DCN_DO_FORGET, .status = DECANT_IO});
    check_no_journal(&disk->io, ".", DECANT_IO, "");
    gates_down(&g);
    disk->lacks = 1u << DCN_DO_FORGET;
    CHECK_TEXT(read_all(disk, DCN_RECORD_NONE, DECANT_OK), "13");
    simdisk_free(&disk);
}

/* Somebody replaces the file before it is locked. */
typedef struct replacer {
    dcn_gate gate;
    dcn_dir *dir;
    bool done;
} replacer;

static decant_status replace(void *ctx, const dcn_call *call, decant_error *err)
{
    replacer *r = ctx;

    if (call->verb != DCN_DO_LOCK || r->done)
        return DECANT_OK;
    r->done = true;
    return dcn_dir_rename(r->dir, "other", call->name, 0, err);
}

TEST(journal__is_not_the_one_that_was_opened_when_its_name_is_another_s)
{
    for (int made = 0; made < 2; made++) {
        simdisk *disk = made ? simdisk_new() : written(DCN_RECORD_MOVED, 10, DCN_RECORD_NONE);
        dcn_buf begin = {0};
        dcn_journal j = {0};
        replacer r = {.gate = {.before = replace, .ctx = &r}};
        bool live;
        decant_error err;

        simdisk_put_text(disk, "other", "somebody's");
        dcn_buf_fill(&begin, 7, 100);
        CHECK_OK(dcn_io_open_dir(&disk->io, ".", &r.dir, &err), &err);
        disk->io.gate = &r.gate;
        if (made) {
            CHECK_OK(dcn_journal_create(&j, r.dir, "p", &err), &err);
            CHECK_FAILS(dcn_journal_begin(&j, &begin, 1, &err), DECANT_NOT_FOUND, &err);
        } else {
            CHECK_FAILS(dcn_journal_open(&j, r.dir, name, true, &live, &err), DECANT_NOT_FOUND, &err);
        }
        CHECK_HAS(err.message, "the journal is another one now");
        CHECK(r.done);
        disk->io.gate = NULL;
        dcn_journal_discard(&j);
        CHECK_FILE(disk, name, "somebody's");
        dcn_journal_close(&j);
        dcn_dir_close(&r.dir);
        dcn_buf_close(&begin);
        simdisk_free(&disk);
    }
}

/* --- cells that fit their checksum and nothing else ----------------------------------------------------------------------- */

/* Puts another number into a cell, and the checksum that it has then. */
static void forge(simdisk *disk, size_t cell, size_t at, uint64_t value, unsigned bytes)
{
    enum { TRANSACTION = 16, SUM_AT = 24, HEAD = 32, HEADER_SUM_AT = 64 };
    uint8_t content[20 * CELL], all[TRANSACTION + 8 + CELL - 8], *now = content + cell * CELL;
    size_t len = 0;
    const uint8_t *old = simdisk_get(disk, name, &len);

    CHECK(len <= sizeof content && cell > 0);
    memcpy(content, old, len);
    dcn_put_le(now + at, value, bytes);
    memcpy(all, content + 16, TRANSACTION);
    memcpy(all + TRANSACTION, cell == 1 ? content + HEADER_SUM_AT : now - CELL + SUM_AT, 8);
    memcpy(all + TRANSACTION + 8, now, SUM_AT);
    memcpy(all + TRANSACTION + 8 + SUM_AT, now + HEAD, CELL - HEAD);
    dcn_put_le(now + SUM_AT, XXH3_64bits(all, sizeof all), 8);
    simdisk_put(disk, name, content, len);
}

/* The second of the three cells of a record is another record's, or another part of it: the record is not read. */
TEST(journal__takes_no_record_of_cells_that_do_not_go_together)
{
    static const struct {
        size_t at;
        uint64_t value;
        unsigned bytes;
        decant_status end; /* a cell that no crash leaves is damage */
    } cases[] = {{0, DCN_RECORD_MOVED, 4, DECANT_MALFORMED},
                 {4, 9, 4, DECANT_OK},
                 {16, 0, 8, DECANT_MALFORMED},
                 {16, 960, 8, DECANT_OK},
                 {16, 481, 8, DECANT_MALFORMED}};
    simdisk *disk = written(DCN_RECORD_COMMIT, LONG, DCN_RECORD_NONE);

    forge(disk, 3, 16, 480, 8); /* as it is */
    CHECK_TEXT(read_all(disk, DCN_RECORD_NONE, DECANT_OK), "16");
    simdisk_free(&disk);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        disk = written(DCN_RECORD_COMMIT, LONG, DCN_RECORD_NONE);
        forge(disk, 3, cases[i].at, cases[i].value, cases[i].bytes);
        CHECK_TEXT(read_all(disk, DCN_RECORD_NONE, cases[i].end), "1");
        simdisk_free(&disk);
    }
}
