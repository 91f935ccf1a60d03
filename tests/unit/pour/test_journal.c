#include <stdio.h>

#include "pour/journal.h"
#include "support/alloc.h"
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
