#include <stdio.h>
#include <stdlib.h>

#include "support/alloc.h"
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

/* --- journals by hand -------------------------------------------------------------------------------------------------- */

/* One whose BEGIN is about these outputs, of which the last gives it its name; of "s" some bytes are drained, or none are. */
static void write_journal(dcn_dir *dir, const char *const *names, size_t count, bool drains, const uint8_t *types)
{
    dcn_promise promises[FILES] = {{.size = 100}, {.size = 100}, {.size = 100}};
    dcn_owned owned = {.name = "s", .file = {.size = 100}, .drained = true};
    dcn_run run = {.len = 100};
    dcn_intent intent = {.outputs = promises, .count = count};
    dcn_journal j;
    dcn_buf begin = {0}, data = {0};
    decant_error err;

    for (size_t i = 0; i < count; i++)
        promises[i].name = names[i];
    if (drains) {
        intent.giving = (dcn_giving){.items = &owned, .count = 1, .batch = 100, .unit = 64};
        intent.giving.runs.items = &run;
        intent.giving.runs.count = 1;
    }
    CHECK_OK(dcn_journal_create(&j, dir, "c.bin", &err), &err);
    dcn_intent_put_begin(&intent, &begin);
    CHECK_OK(dcn_journal_begin(&j, &begin, 8, &err), &err);
    for (; *types; types++) {
        data.len = 0;
        if (*types == DCN_RECORD_READY || *types == DCN_RECORD_COMMIT)
            dcn_intent_put_commit(&intent, &data);
        if (*types == DCN_RECORD_MOVED || *types == DCN_RECORD_UNMOVED)
            dcn_mark_put(&(dcn_mark){.upto = 50}, &data);
        CHECK_OK(dcn_journal_put(&j, (dcn_record_type)*types, &data, &err), &err);
    }
    CHECK_OK(dcn_journal_sync(&j, &err), &err);
    dcn_buf_close(&data);
    dcn_buf_close(&begin);
    dcn_journal_close(&j);
}

TEST(recover__refuses_records_that_stand_where_none_can_and_such_of_a_later_version)
{
    enum { BEGIN = DCN_RECORD_BEGIN, READY, MOVED, ABORT, UNMOVED, COMMIT, LATER = 9 };
    static const char *const names[] = {"c.bin"};
    static const struct {
        uint8_t types[5];
        bool drains;
        int says; /* the type of the record that is refused */
    } cases[] = {
        {{LATER}, false, LATER},
        {{BEGIN}, true, BEGIN},
        {{READY}, false, READY}, /* nothing is drained */
        {{READY, READY}, true, READY},
        {{READY, COMMIT, READY}, true, READY},
        {{MOVED}, true, MOVED},
        {{READY, ABORT, MOVED}, true, MOVED},
        {{READY, COMMIT, MOVED}, true, MOVED},
        {{ABORT}, true, ABORT},
        {{READY, ABORT, ABORT}, true, ABORT},
        {{READY, COMMIT, ABORT}, true, ABORT},
        {{READY, UNMOVED}, true, UNMOVED},
        {{COMMIT}, true, COMMIT},
        {{READY, ABORT, COMMIT}, true, COMMIT},
        {{COMMIT}, false, 0},
        {{READY, MOVED, MOVED}, true, 0},
        {{READY, MOVED, ABORT, UNMOVED}, true, 0},
        {{READY, MOVED, COMMIT}, true, 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool is_later = cases[i].says == LATER || cases[i].says == BEGIN;
        simdisk *disk = simdisk_new();
        dcn_dir *dir = NULL;
        dcn_leftover l;
        char type[16];
        decant_error err;

        CHECK_OK(dcn_io_open_dir(&disk->io, ".", &dir, &err), &err);
        write_journal(dir, names, 1, cases[i].drains, cases[i].types);
        if (!cases[i].says) {
            CHECK_OK(dcn_leftover_open(&l, dir, journal, true, &err), &err);
        } else {
            CHECK_FAILS(dcn_leftover_open(&l, dir, journal, true, &err),
                        is_later ? DECANT_UNSUPPORTED : DECANT_MALFORMED, &err);
            snprintf(type, sizeof type, "of type %d", cases[i].says);
            CHECK_HAS(is_later ? err.found : err.message, type);
            CHECK(err.hint[0]);
            CHECK_TEXT(err.path, journal);
        }
        dcn_leftover_close(&l);
        CHECK_TEXT(simdisk_names(disk, "."), journal);
        dcn_dir_close(&dir);
        simdisk_free(&disk);
    }
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

/* A journal that cannot be read is about the outputs that it names, and about that which it has its name from. */
TEST(a_save__stops_before_a_journal_of_its_own_that_it_cannot_read)
{
    static const char *const names[] = {"a.bin", "in/valid", "c.bin"};
    static const struct {
        const char *output;
        decant_status wanted;
    } cases[] = {{"a.bin", DECANT_UNSUPPORTED}, {"b.bin", DECANT_OK}, {"c.bin", DECANT_UNSUPPORTED}};
    wreck w = {.disk = simdisk_new()};
    decant_error err;

    CHECK_OK(dcn_io_open_dir(&w.disk->io, ".", &w.dir, &err), &err);
    write_journal(w.dir, names, 3, false, (const uint8_t[]){DCN_RECORD_NONE});
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t undone;
        decant_status rc = clear(&w, cases[i].output, false, &undone, &err);

        CHECK_EQ(rc, cases[i].wanted);
        if (rc)
            CHECK_HAS(err.hint, "recover with that version");
        CHECK_EQ(undone, 0);
        CHECK_TEXT(simdisk_names(w.disk, "."), journal);
    }
    dcn_dir_close(&w.dir);
    simdisk_free(&w.disk);
}

static decant_status clear_all(const wreck *w, size_t *undone, decant_error *err)
{
    dcn_landing landings[FILES + 1] = {{"z.bin", "z.bin", 10}};

    for (size_t i = 0; i < FILES; i++)
        landings[1 + i] = (dcn_landing){convoy_name(i), convoy_name(i), 10};
    *undone = 0;
    return dcn_leftovers_clear(w->dir, landings, FILES + 1, false, undone, err);
}

/* What a save undoes first, in any order of its outputs, can be tried again whatever fails of it. */
TEST(a_save__can_try_again_to_undo_an_earlier_one_whichever_call_or_allocation_fails)
{
    for (int memory = 0; memory < 2; memory++) {
        bool fired = true;

        for (size_t n = 0; fired; n++) {
            decant_status rc;
            size_t undone;
            gates g;
            wreck w;
            decant_error err;

            strand(&w, NULL, true);
            gates_up(&g, &w.disk->io);
            if (memory)
                test_alloc_fail(n);
            else
                gates_fail(&g, (gates_fault){.nth = n, .status = DECANT_IO});
            rc = clear_all(&w, &undone, &err);
            fired = memory ? test_alloc_fired() : g.fired;
            test_alloc_disarm();
            gates_down(&g);
            if (memory)
                CHECK_EQ(rc, fired ? DECANT_NOMEM : DECANT_OK);
            else
                CHECK(fired || rc == DECANT_OK);
            CHECK_OK(clear_all(&w, &undone, &err), &err);
            CHECK_TEXT(simdisk_names(w.disk, "."), "a.bin b.bin c.bin");
            for (size_t i = 0; i < FILES; i++)
                CHECK_FILE(w.disk, convoy_name(i), "old");
            clear_away(&w);
        }
    }
}

/* Of one that is complete, a file of which has both names: what is done with it. */
TEST(recover__can_be_tried_again_whichever_allocation_of_it_fails)
{
    bool fired = true;

    for (size_t n = 0; fired; n++) {
        decant_status rc;
        char part[256] = "";
        wreck w;
        decant_error err;

        strand(&w, "b.bin", true);
        sscanf(strstr(simdisk_names(w.disk, "."), "b.bin.decant-"), "%255s", part);
        part[0] = 'a';
        CHECK_OK(dcn_dir_link(w.dir, "a.bin", part, &err), &err);
        test_alloc_fail(n);
        rc = act(&w, true, &err);
        fired = test_alloc_fired();
        test_alloc_disarm();
        CHECK(rc == DECANT_OK || (fired && rc == DECANT_NOMEM));
        if (rc)
            CHECK_OK(act(&w, true, &err), &err);
        for (size_t i = 0; i < FILES; i++)
            CHECK(convoy_landed(&w.c, w.disk, i));
        CHECK_TEXT(simdisk_names(w.disk, "."), "a.bin b.bin c.bin");
        clear_away(&w);
    }
}

/* A part of ours that somebody else owns by now is not removed; nor one that no journal speaks of, which names the journal. */
TEST(a_save__leaves_parts_alone_that_are_no_more_its_own)
{
    static const char stray[] = "b.bin.decant-0123456789abcdef.jpart";
    size_t undone;
    wreck w;
    decant_error err;

    strand(&w, NULL, false);
    simdisk_give_away(w.disk, w.part);
    check_stuck(&w, DECANT_BAD_CALL, DECANT_CHANGED);
    clear_away(&w);

    strand(&w, NULL, false);
    simdisk_put_text(w.disk, stray, "the only copy");
    CHECK_FAILS(clear(&w, "b.bin", false, &undone, &err), DECANT_INTERRUPTED, &err);
    CHECK_HAS(err.message, stray);
    CHECK_HAS(err.hint, ".decant-journal");
    CHECK_TEXT(err.path, "b.bin");
    CHECK_EQ(undone, 1);
    CHECK_TEXT(simdisk_names(w.disk, "."), stray);
    CHECK_OK(clear(&w, "a.bin", false, &undone, &err), &err);
    clear_away(&w);
}

/* What another process does between two looks: a journal that was listed is gone, or a part. */
TEST(a_save__goes_on_where_what_was_in_its_way_has_gone_meanwhile)
{
    static const char *const gone[] = {journal, "a.bin.decant-"};

    for (size_t i = 0; i < 2; i++) {
        size_t undone;
        gates g;
        wreck w;
        decant_error err;

        strand(&w, "a.bin", false);
        if (i)
            CHECK_OK(dcn_dir_remove(w.dir, journal, &err), &err);
        gates_up(&g, &w.disk->io);
        gates_fail(
            &g,
            (gates_fault){
                .one_verb = true, .verb = DCN_DO_STAT, .name = gone[i], .status = DECANT_NOT_FOUND, .forever = true});
        CHECK_EQ(clear(&w, "a.bin", false, &undone, &err), i ? DECANT_OK : DECANT_INTERRUPTED);
        CHECK(g.fired);
        gates_down(&g);
        clear_away(&w);
    }
}
