#include <stdio.h>
#include <stdlib.h>

#include "support/convoy.h"
#include "support/gates.h"
#include "support/salvage.h"

/* Saves that were stopped, and what recovery makes of them when somebody has been there meanwhile. */
enum { FILES = 3 };

static const char journal[] = "c.bin.decant-journal";

typedef struct wreck {
    simdisk *disk;
    convoy c;
    dcn_dir *dir;
    char part[256]; /* of the first file; "": it has its name */
} wreck;

static int stop_at_the_end(void *ctx, uint64_t done, uint64_t total)
{
    size_t *ends = ctx;

    return done == total && ++*ends == 2;
}

/* The first part there is. */
static void find_part(wreck *w)
{
    const char *names = simdisk_names(w->disk, "."), *at = strstr(names, "a.bin.decant-");

    w->part[0] = '\0';
    if (at)
        snprintf(w->part, sizeof w->part, "%.*s", (int)strcspn(at, " "), at);
}

/* Stopped when this name was going to be renamed; NULL: before COMMIT, when it could not even be undone. */
static void strand(wreck *w, const char *renaming, bool replace)
{
    gates g;
    size_t ends = 0;
    decant_error err;
    convoy_voyage how = {.replace = replace, .journal = true};

    *w = (wreck){.disk = simdisk_new()};
    how.disk = w->disk;
    for (size_t i = 0; replace && i < FILES; i++)
        simdisk_put_text(w->disk, convoy_name(i), "old");
    convoy_load(&w->c, FILES, 1);
    gates_up(&g, &w->disk->io);
    if (renaming) {
        gates_fail(&g, (gates_fault){.one_verb = true, .verb = DCN_DO_RENAME, .name = renaming, .status = DECANT_IO});
        CHECK_FAILS(convoy_pour(&w->c, &how, &err), DECANT_PUBLISH_PENDING, &err);
    } else {
        how.progress = stop_at_the_end;
        how.progress_ctx = &ends;
        gates_fail(
            &g, (gates_fault){
                    .one_verb = true, .verb = DCN_DO_REMOVE, .name = ".jpart", .status = DECANT_IO, .forever = true});
        CHECK_FAILS(convoy_pour(&w->c, &how, &err), DECANT_CANCELLED, &err);
    }
    gates_down(&g);
    find_part(w);
    CHECK_OK(dcn_io_open_dir(&w->disk->io, ".", &w->dir, &err), &err);
}

static void clear_away(wreck *w)
{
    dcn_dir_close(&w->dir);
    convoy_close(&w->c);
    simdisk_free(&w->disk);
}

static decant_status act(const wreck *w, bool finish, decant_error *err)
{
    dcn_leftover l;
    decant_status rc = dcn_leftover_open(&l, w->dir, journal, true, err);

    if (rc == DECANT_OK)
        rc = finish ? dcn_leftover_finish(&l, err) : dcn_leftover_undo(&l, err);
    dcn_leftover_close(&l);
    return rc;
}

/* Both ways are refused, and every name stays. */
static void check_stuck(const wreck *w, decant_status finishing, decant_status undoing)
{
    char *before = strdup(simdisk_names(w->disk, "."));
    decant_error err;

    CHECK_FAILS(act(w, true, &err), finishing, &err);
    CHECK(err.hint[0]);
    CHECK_FAILS(act(w, false, &err), undoing, &err);
    CHECK(err.hint[0]);
    CHECK_TEXT(simdisk_names(w->disk, "."), before);
    free(before);
}

TEST(recover__goes_the_one_way_that_is_open_and_refuses_the_other)
{
    wreck w;
    decant_error err;

    strand(&w, NULL, false);
    CHECK_FAILS(act(&w, true, &err), DECANT_BAD_CALL, &err);
    CHECK_HAS(err.hint, "--undo");
    CHECK_OK(act(&w, false, &err), &err);
    CHECK_TEXT(simdisk_names(w.disk, "."), "");
    clear_away(&w);

    strand(&w, "b.bin", false);
    CHECK_FAILS(act(&w, false, &err), DECANT_BAD_CALL, &err);
    CHECK_HAS(err.hint, "--resume");
    CHECK_OK(act(&w, true, &err), &err);
    CHECK_TEXT(simdisk_names(w.disk, "."), "a.bin b.bin c.bin");
    for (size_t i = 0; i < FILES; i++)
        CHECK(convoy_landed(&w.c, w.disk, i));
    clear_away(&w);
}

TEST(recover__leaves_a_save_that_is_under_way_alone)
{
    wreck w;

    strand(&w, "a.bin", false);
    simdisk_hold(w.disk, journal, true);
    check_stuck(&w, DECANT_BUSY, DECANT_BUSY);
    simdisk_hold(w.disk, journal, false);
    clear_away(&w);
}

TEST(recover__believes_no_journal_that_another_could_have_written)
{
    wreck w;
    decant_error err;

    strand(&w, "a.bin", false);
    simdisk_mode(w.disk, journal, 0620);
    check_stuck(&w, DECANT_DENIED, DECANT_DENIED);
    simdisk_mode(w.disk, journal, 0600);
    w.disk->folder_mode = 0777;
    check_stuck(&w, DECANT_DENIED, DECANT_DENIED);
    w.disk->folder_mode = 01777;
    CHECK_OK(dcn_dir_link(w.dir, journal, "another name", &err), &err);
    check_stuck(&w, DECANT_DENIED, DECANT_DENIED);
    CHECK_OK(dcn_dir_remove(w.dir, "another name", &err), &err);
    simdisk_give_away(w.disk, journal);
    check_stuck(&w, DECANT_DENIED, DECANT_DENIED);
    clear_away(&w);

    strand(&w, "a.bin", false);
    CHECK_OK(dcn_dir_rename(w.dir, journal, "far", 0, &err), &err);
    simdisk_make(w.disk, journal, DCN_KIND_LINK, "far");
    check_stuck(&w, DECANT_DENIED, DECANT_DENIED);
    clear_away(&w);
}

TEST(recover__touches_nothing_where_a_file_is_not_the_one_that_was_written)
{
    wreck w;
    decant_error err;

    strand(&w, "a.bin", true); /* another part */
    CHECK_OK(dcn_dir_remove(w.dir, w.part, &err), &err);
    simdisk_put_text(w.disk, w.part, "somebody's");
    check_stuck(&w, DECANT_CHANGED, DECANT_BAD_CALL);
    clear_away(&w);

    strand(&w, "a.bin", true); /* a part that is gone, and the old file is still there */
    CHECK_OK(dcn_dir_remove(w.dir, w.part, &err), &err);
    check_stuck(&w, DECANT_CHANGED, DECANT_BAD_CALL);
    clear_away(&w);

    for (int replace = 0; replace < 2; replace++) { /* another file at the name */
        strand(&w, "a.bin", replace);
        if (replace)
            CHECK_OK(dcn_dir_remove(w.dir, "a.bin", &err), &err);
        simdisk_put_text(w.disk, "a.bin", "somebody's");
        check_stuck(&w, DECANT_CHANGED, DECANT_BAD_CALL);
        CHECK_FILE(w.disk, "a.bin", "somebody's");
        clear_away(&w);
    }

    strand(&w, NULL, true); /* something else under the name of a part */
    CHECK_OK(dcn_dir_remove(w.dir, w.part, &err), &err);
    simdisk_make(w.disk, w.part, DCN_KIND_LINK, "a.bin");
    check_stuck(&w, DECANT_BAD_CALL, DECANT_CHANGED);
    clear_away(&w);
}

TEST(recover__goes_on_where_a_file_that_had_its_name_was_replaced_or_moved_away_since)
{
    wreck w;
    decant_error err;

    strand(&w, "c.bin", true);
    simdisk_put_text(w.disk, "new", "somebody's newer one");
    CHECK_OK(dcn_dir_rename(w.dir, "new", "a.bin", 0, &err), &err);
    CHECK_OK(dcn_dir_remove(w.dir, "b.bin", &err), &err);
    CHECK_OK(act(&w, true, &err), &err);
    CHECK_TEXT(simdisk_names(w.disk, "."), "a.bin c.bin");
    CHECK_FILE(w.disk, "a.bin", "somebody's newer one");
    CHECK(convoy_landed(&w.c, w.disk, 2));
    clear_away(&w);
}

/* Puts another value into the journal, and what follows from it into the checksums of the header alone. */
static void tamper(const wreck *w, size_t at, uint8_t value)
{
    size_t len;
    const uint8_t *bytes = simdisk_get(w->disk, journal, &len);
    uint8_t *copy = malloc(len);

    CHECK(copy != NULL && at < len);
    memcpy(copy, bytes, len);
    copy[at] = value;
    simdisk_put(w->disk, journal, copy, len);
    free(copy);
}

static void shorten(const wreck *w, size_t to)
{
    size_t len;
    const uint8_t *bytes = simdisk_get(w->disk, journal, &len);
    uint8_t *copy = malloc(to);

    CHECK(copy != NULL && len > to);
    memcpy(copy, bytes, to);
    simdisk_put(w->disk, journal, copy, to);
    free(copy);
}

TEST(recover__refuses_a_journal_of_a_later_version_by_name)
{
    wreck w;
    decant_error err;

    strand(&w, "a.bin", false);
    tamper(&w, 8, 2);
    CHECK_FAILS(act(&w, true, &err), DECANT_UNSUPPORTED, &err);
    CHECK_HAS(err.found, "version 2");
    clear_away(&w);
}

TEST(recover__refuses_what_is_no_journal_and_one_that_is_damaged_at_its_beginning)
{
    wreck w;

    strand(&w, "a.bin", false);
    tamper(&w, 0, 'X');
    check_stuck(&w, DECANT_MALFORMED, DECANT_MALFORMED);
    tamper(&w, 0, 'D');
    tamper(&w, 20, 0xFF);
    check_stuck(&w, DECANT_MALFORMED, DECANT_MALFORMED);
    clear_away(&w);

    strand(&w, NULL, false); /* with nothing behind BEGIN, too */
    tamper(&w, 20, 0xFF);
    check_stuck(&w, DECANT_MALFORMED, DECANT_MALFORMED);
    clear_away(&w);

    strand(&w, "a.bin", false);
    tamper(&w, 512 + 40, 0xFF); /* BEGIN, and something follows it */
    check_stuck(&w, DECANT_MALFORMED, DECANT_MALFORMED);
    clear_away(&w);

    strand(&w, NULL, false); /* BEGIN, and parts that it must have spoken of */
    tamper(&w, 512 + 40, 0xFF);
    check_stuck(&w, DECANT_MALFORMED, DECANT_MALFORMED);
    clear_away(&w);
}

/* Undone as one that was never complete it would be new in part, with the rest thrown away. */
TEST(recover__takes_no_damaged_COMMIT_for_one_that_was_never_written)
{
    static const size_t places[] = {1024, 1024 + 4, 1024 + 8, 1024 + 16, 1024 + 24, 1024 + 32, 1024 + 511};
    wreck w;
    decant_error err;

    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        strand(&w, "b.bin", false);
        tamper(&w, places[i], 0xA5);
        check_stuck(&w, DECANT_MALFORMED, DECANT_MALFORMED);
        CHECK_FAILS(act(&w, false, &err), DECANT_MALFORMED, &err);
        CHECK_HAS(err.message, "damaged: a record");
        clear_away(&w);
    }
    strand(&w, "b.bin", false);
    shorten(&w, 1024);
    check_stuck(&w, DECANT_MALFORMED, DECANT_MALFORMED);
    CHECK_FAILS(act(&w, false, &err), DECANT_MALFORMED, &err);
    CHECK_HAS(err.message, "damaged: its end");
    clear_away(&w);
}

/* A journal by hand, with a record of a type that this version does not know. */
TEST(recover__refuses_a_record_of_a_later_version_by_name)
{
    simdisk *disk = simdisk_new();
    dcn_dir *dir = NULL;
    dcn_journal j;
    dcn_leftover l;
    dcn_buf begin = {0}, nothing = {0};
    dcn_promise one = {.name = "a"};
    decant_error err;

    CHECK_OK(dcn_io_open_dir(&disk->io, ".", &dir, &err), &err);
    CHECK_OK(dcn_journal_create(&j, dir, "c.bin", &err), &err);
    dcn_intent_put_begin(&(dcn_intent){.outputs = &one, .count = 1}, &begin);
    CHECK_OK(dcn_journal_begin(&j, &begin, 1, &err), &err);
    CHECK_OK(dcn_journal_put(&j, (dcn_record_type)9, &nothing, &err), &err);
    dcn_journal_close(&j);
    CHECK_FAILS(dcn_leftover_open(&l, dir, journal, true, &err), DECANT_UNSUPPORTED, &err);
    CHECK_HAS(err.found, "type 9");
    dcn_leftover_close(&l);
    dcn_buf_close(&begin);
    dcn_dir_close(&dir);
    simdisk_free(&disk);
}

TEST(recover__takes_no_name_that_leads_out_of_the_folder)
{
    static const char *const names[] = {"a/b", "..", ".", "/a", ""};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        dcn_intent intent = {0};
        dcn_promise p = {.name = names[i]};
        dcn_buf begin = {0};
        decant_error err;

        dcn_intent_put_begin(&(dcn_intent){.outputs = &p, .count = 1}, &begin);
        CHECK_FAILS(dcn_intent_read_begin(&intent, begin.data, begin.len, &err), DECANT_UNSUPPORTED, &err);
        dcn_intent_close(&intent);
        dcn_buf_close(&begin);
    }
}

static decant_status clear(const wreck *w, const char *name, bool look_only, size_t *undone, decant_error *err)
{
    const dcn_landing landing = {name, name, 10};

    *undone = 0;
    return dcn_leftovers_clear(w->dir, &landing, 1, look_only, undone, err);
}

TEST(a_save__undoes_what_an_earlier_one_has_left_half_way_and_a_plan_only_says_so)
{
    wreck w;
    size_t undone;
    decant_error err;

    strand(&w, NULL, false);
    for (size_t i = 0; i < FILES; i++) {
        CHECK_OK(clear(&w, convoy_name(i), true, &undone, &err), &err);
        CHECK_EQ(undone, 1);
    }
    CHECK(salvage_journal(w.disk) != NULL);
    CHECK_OK(clear(&w, "other.bin", false, &undone, &err), &err);
    CHECK_EQ(undone, 0);
    CHECK(salvage_journal(w.disk) != NULL);
    CHECK_OK(clear(&w, "b.bin", false, &undone, &err), &err);
    CHECK_EQ(undone, 1);
    CHECK_TEXT(simdisk_names(w.disk, "."), "");
    clear_away(&w);
}

/* Without locks a save under way looks like one that was killed: undoing it is left to people. */
TEST(a_save__undoes_nothing_where_it_cannot_tell_whether_it_is_under_way)
{
    wreck w;
    size_t undone;
    decant_error err;

    strand(&w, NULL, false);
    w.disk->lacks = 1u << DCN_DO_LOCK;
    for (int look_only = 0; look_only < 2; look_only++) {
        CHECK_FAILS(clear(&w, "b.bin", look_only, &undone, &err), DECANT_BUSY, &err);
        CHECK_HAS(err.hint, "decant recover --undo");
    }
    CHECK_EQ(act(&w, false, &err), DECANT_OK);
    CHECK_OK(clear(&w, "b.bin", false, &undone, &err), &err);
    CHECK_EQ(undone, 0);
    clear_away(&w);
}

TEST(a_save__stops_before_one_that_is_complete_or_under_way_and_says_what_to_do)
{
    wreck w;
    size_t undone;
    decant_error err;

    strand(&w, "b.bin", false);
    for (size_t i = 0; i < FILES; i++) {
        CHECK_FAILS(clear(&w, convoy_name(i), false, &undone, &err), DECANT_INTERRUPTED, &err);
        CHECK_TEXT(err.path, convoy_name(i));
        CHECK_HAS(err.hint, "--resume");
    }
    CHECK_OK(clear(&w, "other.bin", false, &undone, &err), &err);
    simdisk_hold(w.disk, journal, true);
    CHECK_FAILS(clear(&w, "b.bin", false, &undone, &err), DECANT_BUSY, &err);
    simdisk_hold(w.disk, journal, false);

    simdisk_mode(w.disk, journal, 0666);
    CHECK_FAILS(clear(&w, "c.bin", false, &undone, &err), DECANT_DENIED, &err);
    CHECK(salvage_journal(w.disk) != NULL);
    CHECK_OK(dcn_dir_remove(w.dir, journal, &err), &err);
    CHECK_FAILS(clear(&w, "b.bin", false, &undone, &err), DECANT_INTERRUPTED, &err);
    CHECK_HAS(err.message, "without its journal");
    clear_away(&w);
}

/* Whoever holds the lock of the journal is at work on all of them; two that begin at once both give way. */
TEST(two_saves__to_the_same_files_at_once_do_not_disturb_each_other)
{
    simdisk *disk = simdisk_new();
    convoy c;
    decant_error err;

    simdisk_put_text(disk, journal, "of another process");
    convoy_load(&c, FILES, 1);
    CHECK_FAILS(convoy_pour(&c, &(convoy_voyage){.disk = disk, .journal = true}, &err), DECANT_BUSY, &err);
    CHECK_TEXT(simdisk_names(disk, "."), journal);
    CHECK_FILE(disk, journal, "of another process");
    convoy_close(&c);
    simdisk_free(&disk);
}
