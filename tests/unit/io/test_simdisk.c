/* The laws of the disk that all crash tests stand on. */
#include "support/gates.h"
#include "support/simdisk.h"

static decant_error err;

static dcn_dir *folder(simdisk *disk)
{
    dcn_dir *dir = NULL;

    CHECK_OK(dcn_io_open_dir(&disk->io, ".", &dir, &err), &err);
    return dir;
}

static dcn_file *create(dcn_dir *dir, const char *name)
{
    dcn_file *file = NULL;

    CHECK_OK(dcn_dir_open(dir, name, DCN_READ | DCN_WRITE | DCN_CREATE_NEW, 0666, &file, &err), &err);
    return file;
}

static void put(dcn_file *file, uint64_t at, const char *text)
{
    const dcn_chunk chunk = {text, strlen(text)};

    CHECK_OK(dcn_file_write(file, at, &chunk, 1, &err), &err);
}

static uint64_t all(void *ctx, const simdisk_op *op)
{
    (void)ctx, (void)op;
    return UINT64_MAX;
}

static uint64_t none(void *ctx, const simdisk_op *op)
{
    (void)ctx, (void)op;
    return 0;
}

/* Keeps those whose bit is set in *ctx. */
static uint64_t by_bit(void *ctx, const simdisk_op *op)
{
    const uint64_t *bits = ctx;

    return *bits >> op->index & 1 ? UINT64_MAX : 0;
}

TEST(simdisk__content_and_name_become_safe_by_a_sync_each)
{
    for (int syncs = 0; syncs < 4; syncs++) {
        simdisk *disk = simdisk_new();
        dcn_dir *dir = folder(disk);
        dcn_file *file = create(dir, "a");

        put(file, 0, "hello");
        if (syncs & 1)
            CHECK_OK(dcn_file_sync(file, &err), &err);
        if (syncs & 2)
            CHECK_OK(dcn_dir_sync(dir, &err), &err);
        dcn_file_close(&file);
        dcn_dir_close(&dir);
        CHECK_FILE(disk, "a", "hello");

        simdisk_crash(disk, none, NULL);
        CHECK_FILE(disk, "a", syncs == 3 ? "hello" : syncs == 2 ? "" : NULL);
        simdisk_free(&disk);
    }
}

TEST(simdisk__everything_pending_may_also_survive)
{
    simdisk *disk = simdisk_new();
    dcn_dir *dir = folder(disk);
    dcn_file *file = create(dir, "a");

    put(file, 3, "lo");
    put(file, 0, "hel");
    dcn_file_close(&file);
    dcn_dir_close(&dir);
    simdisk_crash(disk, all, NULL);
    CHECK_FILE(disk, "a", "hello");
    CHECK_EQ(simdisk_pending(disk), 0);
    simdisk_free(&disk);
}

TEST(simdisk__a_size_may_survive_without_its_data)
{
    simdisk *disk = simdisk_new();
    dcn_dir *dir = folder(disk);
    dcn_file *file = create(dir, "a");
    uint64_t only_sizes = 1 | 4; /* the write made two changes: size, bytes; then the name */
    const uint8_t *data;
    size_t len;

    put(file, 0, "hello");
    dcn_file_close(&file);
    dcn_dir_close(&dir);
    CHECK_EQ(simdisk_pending(disk), 3);
    simdisk_crash(disk, by_bit, &only_sizes);
    data = simdisk_get(disk, "a", &len);
    CHECK(data);
    CHECK_BYTES(data, len, "\0\0\0\0\0", 5);
    simdisk_free(&disk);
}

/* Sectors 0 and 2 of a write. */
static uint64_t tear(void *ctx, const simdisk_op *op)
{
    (void)ctx;
    return op->change == SIMDISK_WRITE ? 5 : UINT64_MAX;
}

TEST(simdisk__writes_tear_at_sectors_of_the_file)
{
    simdisk *disk = simdisk_new();
    dcn_dir *dir = folder(disk);
    dcn_file *file = NULL;
    char old[2048], new[1300], wanted[2048];
    const uint8_t *data;
    size_t len;

    memset(old, 'o', sizeof old);
    memset(new, 'n', sizeof new);
    simdisk_put(disk, "a", old, sizeof old);
    CHECK_OK(dcn_dir_open(dir, "a", DCN_WRITE, 0, &file, &err), &err);
    CHECK_OK(dcn_file_write(file, 100, &(dcn_chunk){new, sizeof new}, 1, &err), &err);
    dcn_file_close(&file);
    dcn_dir_close(&dir);
    simdisk_crash(disk, tear, NULL);

    memset(wanted, 'o', sizeof wanted);
    memset(wanted + 100, 'n', 412);  /* the first sector it touches */
    memset(wanted + 1024, 'n', 376); /* the third */
    data = simdisk_get(disk, "a", &len);
    CHECK_BYTES(data, len, wanted, sizeof wanted);
    simdisk_free(&disk);
}

/* The rename as *ctx says, all else kept. */
static uint64_t rename_as(void *ctx, const simdisk_op *op)
{
    return op->change == SIMDISK_RENAME ? *(uint64_t *)ctx : UINT64_MAX;
}

TEST(simdisk__a_rename_before_the_folders_sync_leaves_old_new_or_both)
{
    static const struct {
        uint64_t bits;
        const char *names, *b;
    } cases[] = {{0, "a b", "old"}, {1, "a b", "new"}, {2, "a b", "old"}, {3, "b", "new"}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        simdisk *disk = simdisk_new();
        dcn_dir *dir = folder(disk);
        uint64_t bits = cases[i].bits;

        simdisk_put_text(disk, "a", "new");
        simdisk_put_text(disk, "b", "old");
        CHECK_OK(dcn_dir_rename(dir, "a", "b", 0, &err), &err);
        CHECK_TEXT(simdisk_names(disk, "."), "b");
        dcn_dir_close(&dir);
        simdisk_crash(disk, rename_as, &bits);
        CHECK_TEXT(simdisk_names(disk, "."), cases[i].names);
        CHECK_FILE(disk, "b", cases[i].b);
        simdisk_free(&disk);
    }
}

TEST(simdisk__a_rename_is_safe_after_the_folders_sync)
{
    simdisk *disk = simdisk_new();
    dcn_dir *dir = folder(disk);

    simdisk_put_text(disk, "a", "new");
    simdisk_put_text(disk, "b", "old");
    CHECK_OK(dcn_dir_rename(dir, "a", "b", 0, &err), &err);
    CHECK_OK(dcn_dir_sync(dir, &err), &err);
    dcn_dir_close(&dir);
    simdisk_crash(disk, none, NULL);
    CHECK_TEXT(simdisk_names(disk, "."), "b");
    CHECK_FILE(disk, "b", "new");
    simdisk_free(&disk);
}

TEST(simdisk__a_removed_file_may_come_back)
{
    simdisk *disk = simdisk_new();
    dcn_dir *dir = folder(disk);

    simdisk_put_text(disk, "a", "old");
    CHECK_OK(dcn_dir_remove(dir, "a", &err), &err);
    CHECK_FILE(disk, "a", NULL);
    dcn_dir_close(&dir);
    simdisk_crash(disk, none, NULL);
    CHECK_FILE(disk, "a", "old");
    simdisk_free(&disk);
}

TEST(simdisk__syncing_one_file_does_nothing_for_another)
{
    simdisk *disk = simdisk_new();
    dcn_dir *dir = folder(disk);
    dcn_file *a = create(dir, "a"), *b = create(dir, "b");

    CHECK_OK(dcn_dir_sync(dir, &err), &err);
    put(a, 0, "A");
    put(b, 0, "B");
    CHECK_OK(dcn_file_sync(b, &err), &err);
    dcn_file_close(&a);
    dcn_file_close(&b);
    dcn_dir_close(&dir);
    simdisk_crash(disk, none, NULL);
    CHECK_FILE(disk, "a", "");
    CHECK_FILE(disk, "b", "B");
    simdisk_free(&disk);
}

TEST(simdisk__a_sync_that_lied_once_has_lost_the_data_for_ever)
{
    for (int kept = 0; kept < 2; kept++) {
        simdisk *disk = simdisk_new();
        dcn_dir *dir = folder(disk);
        dcn_file *file = create(dir, "a");

        CHECK_OK(dcn_dir_sync(dir, &err), &err);
        disk->lie_at = 1;
        put(file, 0, "one");
        CHECK_FAILS(dcn_file_sync(file, &err), DECANT_IO, &err);
        CHECK(disk->lied);
        put(file, 3, "two");
        CHECK_OK(dcn_file_sync(file, &err), &err); /* says so */
        dcn_file_close(&file);
        dcn_dir_close(&dir);
        CHECK_FILE(disk, "a", "onetwo"); /* the cache says so too */

        simdisk_crash(disk, kept ? all : none, NULL);
        if (kept) {
            CHECK_FILE(disk, "a", "onetwo");
        } else {
            size_t len;
            const uint8_t *data = simdisk_get(disk, "a", &len);

            CHECK_BYTES(data, len, "\0\0\0two", 6);
        }
        simdisk_free(&disk);
    }
}

TEST(simdisk__what_a_lying_sync_lost_does_not_come_over_later_writes)
{
    simdisk *disk = simdisk_new();
    dcn_dir *dir = folder(disk);
    dcn_file *file = create(dir, "a");

    CHECK_OK(dcn_dir_sync(dir, &err), &err);
    disk->lie_at = 1;
    put(file, 0, "old");
    CHECK_FAILS(dcn_file_sync(file, &err), DECANT_IO, &err);
    put(file, 0, "new");
    CHECK_OK(dcn_file_sync(file, &err), &err);
    dcn_file_close(&file);
    dcn_dir_close(&dir);
    simdisk_crash(disk, all, NULL);
    CHECK_FILE(disk, "a", "new");
    simdisk_free(&disk);
}

TEST(simdisk__a_clone_lives_its_own_life)
{
    simdisk *disk = simdisk_new(), *copy;
    dcn_dir *dir = folder(disk);
    dcn_file *file = create(dir, "a");

    put(file, 0, "first");
    copy = simdisk_clone(disk);
    put(file, 0, "later");
    CHECK_OK(dcn_dir_rename(dir, "a", "b", 0, &err), &err);
    dcn_file_close(&file);
    dcn_dir_close(&dir);

    CHECK_FILE(copy, "a", "first");
    simdisk_crash(copy, all, NULL);
    CHECK_FILE(copy, "a", "first");
    CHECK_FILE(disk, "b", "later");
    simdisk_free(&copy);
    simdisk_free(&disk);
}

TEST(simdisk__a_full_disk_refuses_and_keeps_what_is_there)
{
    simdisk *disk = simdisk_new();
    dcn_dir *dir = folder(disk);
    dcn_file *file = create(dir, "a");
    dcn_space space;
    static char block[1024];

    disk->capacity = 1536;
    CHECK_OK(dcn_file_write(file, 0, &(dcn_chunk){block, 1024}, 1, &err), &err);
    CHECK_FAILS(dcn_file_write(file, 1024, &(dcn_chunk){block, 1024}, 1, &err), DECANT_NO_SPACE, &err);
    CHECK_FAILS(dcn_file_reserve(file, 0, 2048, &err), DECANT_NO_SPACE, &err);
    CHECK_OK(dcn_dir_space(dir, &space, &err), &err);
    CHECK_EQ(space.free, 512);
    CHECK_OK(dcn_file_resize(file, 100000, &err), &err); /* a hole */
    CHECK_OK(dcn_file_reserve(file, 0, 1536, &err), &err);
    CHECK_EQ(simdisk_used(disk), 1536);

    CHECK_OK(dcn_dir_remove(dir, "a", &err), &err);
    CHECK_EQ(simdisk_used(disk), 1536); /* it is open */
    dcn_file_close(&file);
    CHECK_EQ(simdisk_used(disk), 0);
    dcn_dir_close(&dir);
    simdisk_free(&disk);
}

TEST(simdisk__what_it_lacks_is_unsupported)
{
    simdisk *disk = simdisk_new();
    dcn_dir *dir = folder(disk);
    dcn_file *file = create(dir, "a");

    disk->lacks = 1u << DCN_DO_RENAME | 1u << DCN_DO_RESERVE | 1u << DCN_DO_LOCK | 1u << DCN_DO_LINK;
    CHECK_FAILS(dcn_dir_rename(dir, "a", "b", DCN_NO_REPLACE, &err), DECANT_UNSUPPORTED, &err);
    CHECK_FAILS(dcn_dir_link(dir, "a", "b", &err), DECANT_UNSUPPORTED, &err);
    CHECK_FAILS(dcn_file_reserve(file, 0, 1, &err), DECANT_UNSUPPORTED, &err);
    CHECK_FAILS(dcn_file_lock(file, &err), DECANT_UNSUPPORTED, &err);
    CHECK_OK(dcn_dir_rename(dir, "a", "b", 0, &err), &err);
    CHECK_TEXT(simdisk_names(disk, "."), "b");
    dcn_file_close(&file);
    dcn_dir_close(&dir);
    simdisk_free(&disk);
}

TEST(simdisk__a_lock_keeps_others_out_until_it_is_closed)
{
    simdisk *disk = simdisk_new();
    dcn_dir *dir = folder(disk);
    dcn_file *a = create(dir, "a"), *again = NULL;

    CHECK_OK(dcn_dir_open(dir, "a", DCN_READ, 0, &again, &err), &err);
    CHECK_OK(dcn_file_lock(a, &err), &err);
    CHECK_OK(dcn_file_lock(a, &err), &err);
    CHECK_FAILS(dcn_file_lock(again, &err), DECANT_BUSY, &err);
    dcn_file_close(&a);
    CHECK_OK(dcn_file_lock(again, &err), &err);
    dcn_file_close(&again);

    simdisk_hold(disk, "a", true);
    CHECK_OK(dcn_dir_open(dir, "a", DCN_READ, 0, &again, &err), &err);
    CHECK_FAILS(dcn_file_lock(again, &err), DECANT_BUSY, &err);
    dcn_file_close(&again);
    dcn_dir_close(&dir);
    simdisk_free(&disk);
}

TEST(simdisk__attributes_wait_for_a_sync_too)
{
    for (int synced = 0; synced < 2; synced++) {
        simdisk *disk = simdisk_new();
        dcn_dir *dir = folder(disk);
        dcn_file *old = NULL, *new = create(dir, "b");

        simdisk_put_text(disk, "a", "old");
        simdisk_mode(disk, "a", 0600);
        CHECK_OK(dcn_dir_sync(dir, &err), &err);
        CHECK_OK(dcn_dir_open(dir, "a", DCN_READ, 0, &old, &err), &err);
        CHECK_OK(dcn_file_resemble(new, old, &err), &err);
        CHECK_EQ(simdisk_mode_of(disk, "b"), 0600);
        if (synced)
            CHECK_OK(dcn_file_sync(new, &err), &err);
        dcn_file_close(&old);
        dcn_file_close(&new);
        dcn_dir_close(&dir);
        simdisk_crash(disk, none, NULL);
        CHECK_EQ(simdisk_mode_of(disk, "b"), synced ? 0600 : 0644);
        simdisk_free(&disk);
    }
}

/* Every outcome of "write, then rename over the old, nothing synced" is met, and none that cannot be. */
TEST(simdisk__the_crashes_worth_trying_meet_every_outcome)
{
    simdisk *disk = simdisk_new();
    dcn_dir *dir = folder(disk);
    dcn_file *file = create(dir, "t");
    size_t old = 0, new = 0, empty = 0, zeros = 0, both = 0;

    simdisk_put_text(disk, "p", "old");
    put(file, 0, "new");
    dcn_file_close(&file);
    CHECK_OK(dcn_dir_rename(dir, "t", "p", 0, &err), &err);
    dcn_dir_close(&dir);

    for (size_t n = 0; n < simdisk_crash_count(disk); n++) {
        simdisk *after = simdisk_clone(disk);
        const uint8_t *data;
        size_t len;

        simdisk_crash_nth(after, n, 1);
        data = simdisk_get(after, "p", &len);
        CHECK(data);
        old += len == 3 && memcmp(data, "old", 3) == 0;
        new += len == 3 && memcmp(data, "new", 3) == 0;
        zeros += len == 3 && memcmp(data, "\0\0\0", 3) == 0;
        empty += len == 0;
        both += simdisk_file_count(after) == 2;
        simdisk_free(&after);
    }
    CHECK(old && new &&empty &&zeros &&both);
    CHECK_EQ(old + new + empty + zeros, simdisk_crash_count(disk));
    simdisk_free(&disk);
}

TEST(simdisk__many_changes_are_tried_alone_and_missing)
{
    simdisk *disk = simdisk_new();
    dcn_dir *dir = folder(disk);
    dcn_file *file = NULL;
    size_t alone = 0, missing = 0;

    simdisk_put_text(disk, "a", "............");
    CHECK_OK(dcn_dir_open(dir, "a", DCN_WRITE, 0, &file, &err), &err);
    for (uint64_t at = 0; at < 12; at++)
        put(file, at, "x");
    dcn_file_close(&file);
    dcn_dir_close(&dir);
    CHECK_EQ(simdisk_crash_count(disk), 2 + 2 * 12 + 64);
    for (size_t n = 0; n < 26; n++) {
        simdisk *after = simdisk_clone(disk);
        const uint8_t *data;
        size_t len, kept = 0;

        simdisk_crash_nth(after, n, 1);
        data = simdisk_get(after, "a", &len);
        for (size_t i = 0; i < len; i++)
            kept += data[i] == 'x';
        alone += kept == 1;
        missing += kept == 11;
        simdisk_free(&after);
    }
    CHECK_EQ(alone, 12);
    CHECK_EQ(missing, 12);
    simdisk_free(&disk);
}

/* Replacing a file the way that is right, or with a step left out or out of place. */
typedef enum manner { RIGHT, NO_SYNC, NO_FOLDER_SYNC, RENAME_FIRST, IN_PLACE, MANNERS } manner;

static decant_status replace(dcn_io *io, manner how, const char *text)
{
    dcn_dir *dir = NULL;
    dcn_file *file = NULL;
    const char *name = how == IN_PLACE ? "p" : "t";
    decant_status rc;

    if ((rc = dcn_io_open_dir(io, ".", &dir, NULL)) ||
        (rc = dcn_dir_open(dir, name, DCN_WRITE | DCN_CREATE | DCN_TRUNCATE, 0666, &file, NULL)) ||
        (rc = dcn_file_write(file, 0, &(dcn_chunk){text, strlen(text)}, 1, NULL)))
        goto done;
    if (how == RENAME_FIRST && (rc = dcn_dir_rename(dir, "t", "p", 0, NULL)))
        goto done;
    if (how != NO_SYNC && (rc = dcn_file_sync(file, NULL)))
        goto done;
    if (how != RENAME_FIRST && how != IN_PLACE && (rc = dcn_dir_rename(dir, "t", "p", 0, NULL)))
        goto done;
    if (how != NO_FOLDER_SYNC)
        rc = dcn_dir_sync(dir, NULL);
done:
    dcn_file_close(&file);
    dcn_dir_close(&dir);
    return rc;
}

/* States after which "p" is neither old nor new, or old although the save has succeeded. */
static size_t count_losses(manner how)
{
    char old[1500], new[1700];
    size_t losses = 0;
    decant_status rc = DECANT_IO;

    memset(old, 'o', sizeof old);
    memset(new, 'n', sizeof new);
    old[sizeof old - 1] = new[sizeof new - 1] = '\0';
    for (size_t n = 0; rc; n++) {
        simdisk *disk = simdisk_new();
        gates g;

        simdisk_put_text(disk, "p", old);
        gates_up(&g, &disk->io);
        gates_crash(&g, n);
        rc = replace(&disk->io, how, new);
        gates_down(&g);
        for (size_t k = 0; k < simdisk_crash_count(disk); k++) {
            simdisk *after = simdisk_clone(disk);
            size_t len = 0;
            const uint8_t *data;

            simdisk_crash_nth(after, k, n);
            data = simdisk_get(after, "p", &len);
            losses += !(data && len == strlen(new) && memcmp(data, new, len) == 0) &&
                      !(rc && data && len == strlen(old) && memcmp(data, old, len) == 0);
            simdisk_free(&after);
        }
        simdisk_free(&disk);
    }
    return losses;
}

TEST(simdisk__finds_what_is_wrong_with_a_save_and_nothing_with_a_right_one)
{
    CHECK_EQ(count_losses(RIGHT), 0);
    for (manner how = NO_SYNC; how < MANNERS; how++)
        if (count_losses(how) == 0)
            test_fail(__FILE__, __LINE__, "manner %d loses nothing", (int)how);
}
