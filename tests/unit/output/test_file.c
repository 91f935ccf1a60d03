#include "support/cargo.h"
#include "support/gates.h"

static const dcn_cut cut = {.slot = 256, .slots = 1, .direct = 200};

/* Pours the same small cargo into "out.bin" of a disk. */
static decant_status save(simdisk *disk, vessel_kind kind, bool replace, decant_error *err)
{
    vessel v = {.kind = kind, .disk = disk, .replace = replace};
    cargo c;
    decant_status rc;

    if (kind == TO_FILE_IN_PLACE && simdisk_get(disk, "far.bin", &(size_t){0}))
        v.lands = "far.bin"; /* which "out.bin" leads to */
    cargo_load(&c, disk, CARGO_MEMORY, 4, 300, 11);
    rc = vessel_pour(&v, &c, &(dcn_job){.cut = cut}, 0, err);
    if (rc == DECANT_OK)
        vessel_check(&v, &c);
    CHECK(rc == DECANT_NOT_DURABLE || v.durable == (rc == DECANT_OK && kind == TO_FILE));
    CHECK_EQ(v.published, rc == DECANT_OK || rc == DECANT_NOT_DURABLE);
    vessel_close(&v);
    cargo_close(&c);
    return rc;
}

TEST(file__costs_one_sync_one_rename_and_one_sync_of_the_folder)
{
    for (int replace = 0; replace < 2; replace++) {
        simdisk *disk = simdisk_new();
        gates g;
        decant_error err;

        if (replace)
            simdisk_put_text(disk, "out.bin", "old");
        gates_up(&g, &disk->io);
        CHECK_OK(save(disk, TO_FILE, replace, &err), &err);
        CHECK_EQ(g.count[DCN_DO_SYNC], 1);
        CHECK_EQ(g.count[DCN_DO_RENAME], 1);
        CHECK_EQ(g.count[DCN_DO_SYNC_DIR], 1);
        CHECK_EQ(g.count[DCN_DO_RESERVE], 1);
        CHECK_EQ(g.count[DCN_DO_LINK] + g.count[DCN_DO_REMOVE] + g.count[DCN_DO_READ], 0);
        gates_down(&g);
        simdisk_free(&disk);
    }
}

TEST(file__writes_its_first_bytes_last)
{
    simdisk *disk = simdisk_new();
    gates g;
    const char *first, *last;
    decant_error err;

    gates_up(&g, &disk->io);
    CHECK_OK(save(disk, TO_FILE, false, &err), &err);
    first = strstr(gates_trace(&g), " 0+8");
    CHECK(first != NULL);
    for (last = first; strstr(last + 1, "write "); last = strstr(last + 1, "write "))
        ;
    CHECK(last == first);
    CHECK(strstr(first, "sync") != NULL);
    gates_down(&g);
    simdisk_free(&disk);
}

TEST(file__refuses_a_name_that_is_taken_before_it_asks_anybody)
{
    simdisk *disk = simdisk_new();
    gates g;
    decant_error err;

    simdisk_put_text(disk, "out.bin", "old");
    gates_up(&g, &disk->io);
    CHECK_FAILS(save(disk, TO_FILE, false, &err), DECANT_EXISTS, &err);
    CHECK_HAS(err.hint, "--force");
    CHECK_EQ(err.side, DECANT_SIDE_OUTPUT);
    CHECK_EQ(g.count[DCN_DO_OPEN], 0);
    gates_down(&g);
    CHECK_FILE(disk, "out.bin", "old");
    simdisk_free(&disk);
}

/* Another process, at the moment when a call is about to be made. */
typedef struct other {
    dcn_gate gate;
    simdisk *disk;
    dcn_verb verb;
    size_t countdown;
    void (*act)(struct other *o, const dcn_call *call);
    decant_status says; /* what the call then reports */
} other;

static decant_status before(void *ctx, const dcn_call *call, decant_error *err)
{
    other *o = ctx;

    if (call->verb != o->verb || o->countdown-- != 0)
        return DECANT_OK;
    o->disk->io.gate = NULL;
    o->act(o, call);
    return o->says ? decant_error_set(err, o->says, "as told") : DECANT_OK;
}

static void arrive(other *o, simdisk *disk)
{
    o->disk = disk;
    o->gate = (dcn_gate){.before = before, .ctx = o};
    disk->io.gate = &o->gate;
}

static void create_output(other *o, const dcn_call *call)
{
    (void)call;
    simdisk_put_text(o->disk, "out.bin", "another's");
}

TEST(file__does_not_replace_what_appears_at_the_last_moment)
{
    static const unsigned lacks[] = {0, 1u << DCN_DO_RENAME, 1u << DCN_DO_RENAME | 1u << DCN_DO_LINK};

    for (size_t i = 0; i < 3; i++) {
        simdisk *disk = simdisk_new();
        other o = {.verb = DCN_DO_RENAME, .act = create_output};
        decant_error err;

        disk->lacks = lacks[i];
        arrive(&o, disk);
        CHECK_FAILS(save(disk, TO_FILE, false, &err), DECANT_EXISTS, &err);
        CHECK_HAS(err.hint, "--force");
        CHECK_FILE(disk, "out.bin", "another's");
        CHECK_TEXT(simdisk_names(disk, "."), "out.bin");
        simdisk_free(&disk);
    }
}

TEST(file__is_published_without_an_exclusive_rename_and_without_links)
{
    static const unsigned lacks[] = {1u << DCN_DO_RENAME, 1u << DCN_DO_RENAME | 1u << DCN_DO_LINK};

    for (size_t i = 0; i < 2; i++) {
        simdisk *disk = simdisk_new();
        decant_error err;

        disk->lacks = lacks[i];
        CHECK_OK(save(disk, TO_FILE, false, &err), &err);
        CHECK_TEXT(simdisk_names(disk, "."), "out.bin");
        simdisk_free(&disk);
    }
}

static void do_it(other *o, const dcn_call *call)
{
    dcn_dir *dir = NULL;
    decant_error err;

    CHECK_OK(dcn_io_open_dir(&o->disk->io, ".", &dir, &err), &err);
    if (call->verb == DCN_DO_RENAME)
        CHECK_OK(dcn_dir_rename(dir, call->name, call->to, call->flags, &err), &err);
    else
        CHECK_OK(dcn_dir_link(dir, call->name, call->to, &err), &err);
    dcn_dir_close(&dir);
}

TEST(file__is_saved_if_its_publication_was_done_and_yet_reported_as_failed)
{
    for (int way = 0; way < 3; way++) {
        simdisk *disk = simdisk_new();
        other o = {.verb = way == 2 ? DCN_DO_LINK : DCN_DO_RENAME, .act = do_it, .says = DECANT_EXISTS};
        decant_error err;

        if (way == 1)
            simdisk_put_text(disk, "out.bin", "old");
        disk->lacks = way == 2 ? 1u << DCN_DO_RENAME : 0;
        arrive(&o, disk);
        CHECK_OK(save(disk, TO_FILE, way == 1, &err), &err);
        CHECK_TEXT(simdisk_names(disk, "."), "out.bin");
        simdisk_free(&disk);
    }
}

TEST(file__says_so_where_the_folder_cannot_be_synced_or_the_scratch_name_stays)
{
    static const dcn_verb verbs[] = {DCN_DO_SYNC_DIR, DCN_DO_REMOVE};

    for (size_t i = 0; i < 2; i++) {
        simdisk *disk = simdisk_new();
        gates g;
        decant_error err;

        disk->lacks = i ? 1u << DCN_DO_RENAME : 0;
        gates_up(&g, &disk->io);
        gates_fail(&g, (gates_fault){.one_verb = true, .verb = verbs[i], .status = DECANT_IO});
        CHECK_FAILS(save(disk, TO_FILE, false, &err), DECANT_NOT_DURABLE, &err);
        CHECK_HAS(err.message, i ? "scratch name is left" : "power loss may undo it");
        CHECK(simdisk_get(disk, "out.bin", &(size_t){0}) != NULL);
        gates_down(&g);
        simdisk_free(&disk);
    }
}

/* FW-08 */
TEST(file__sweeps_the_parts_of_dead_saves_of_its_name_and_no_others)
{
    static const char dead[] = "out.bin.decant-0123456789abcdef.part";
    static const char alive[] = "out.bin.decant-0000000000000000.part";
    static const char *const others[] = {
        "xout.bin.decant-0123456789abcdef.part",  "out.bin.decant-0123456789abcde.part",
        "out.bin.decant-0123456789ABCDEF.part",   "xout.bin.decant-0123456789abcdef.jpart",
        "out.bin.decant-0123456789abcdefg.part",  "out.bin2.decant-0123456789abcdef.part",
        "out.bin.decant-0123456789abcdef.part.x", "out.bin.decant-journal",
    };
    simdisk *disk = simdisk_new();
    decant_error err;

    simdisk_put_text(disk, dead, "half a model");
    simdisk_put_text(disk, alive, "half a model");
    simdisk_hold(disk, alive, true);
    simdisk_make(disk, "out.bin.decant-1111111111111111.part", DCN_KIND_LINK, "elsewhere");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        simdisk_put_text(disk, others[i], "not ours");
    CHECK_OK(save(disk, TO_FILE, false, &err), &err);
    CHECK_FILE(disk, dead, NULL);
    CHECK_FILE(disk, alive, "half a model");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        CHECK_FILE(disk, others[i], "not ours");
    CHECK_EQ(simdisk_file_count(disk), 3 + sizeof others / sizeof *others);
    simdisk_hold(disk, alive, false);
    simdisk_free(&disk);
}

TEST(file__gives_way_to_a_save_with_a_journal)
{
    static const char part[] = "out.bin.decant-0123456789abcdef.jpart";
    simdisk *disk = simdisk_new();
    decant_error err;

    simdisk_put_text(disk, part, "perhaps all there is");
    CHECK_FAILS(save(disk, TO_FILE, true, &err), DECANT_BUSY, &err);
    CHECK_HAS(err.hint, "recover");
    CHECK_TEXT(simdisk_names(disk, "."), part);
    simdisk_free(&disk);
}

/* Where there is room for that in what is held back. */
TEST(file__names_its_journal_in_its_part_until_it_is_sealed)
{
    static const uint8_t transaction[16] = {1, 2, 3}, zeros[64] = {0};
    static const char journal[] = "last.decant-journal";

    for (size_t held = 40; held <= sizeof zeros; held++) {
        bool fits = held >= 8 + sizeof transaction + sizeof journal;
        const dcn_plan plan = {.total = 100, .held = held};
        const dcn_chunk chunk = {zeros, held};
        simdisk *disk = simdisk_new();
        dcn_output *o = NULL;
        dcn_dir *dir = NULL;
        char named[DCN_PART_JOURNAL];
        decant_error err;

        CHECK_OK(dcn_io_open_dir(&disk->io, ".", &dir, &err), &err);
        CHECK_OK(dcn_output_file(dir, "out.bin", NULL, false, &o, &err), &err);
        o->transaction = transaction;
        o->journal = journal;
        CHECK_OK(dcn_output_begin(o, &plan, &err), &err);
        CHECK_OK(dcn_output_write(o, 0, &chunk, 1, &err), &err);
        CHECK_OK(dcn_part_journal(dir, o->part, named, &err), &err);
        CHECK_TEXT(named, fits ? journal : "");
        CHECK_OK(dcn_output_seal(o, &err), &err);
        CHECK_OK(dcn_part_journal(dir, o->part, named, &err), &err);
        CHECK_TEXT(named, "");
        CHECK_BYTES(simdisk_get(disk, o->part, &(size_t){0}), held, zeros, held);
        dcn_output_close(&o);
        dcn_dir_close(&dir);
        simdisk_free(&disk);
    }
}

TEST(file__sweeps_nothing_where_the_dead_cannot_be_told_from_the_living)
{
    static const char part[] = "out.bin.decant-0123456789abcdef.part";
    simdisk *disk = simdisk_new();
    decant_error err;

    disk->lacks = 1u << DCN_DO_LOCK;
    simdisk_put_text(disk, part, "half a model");
    CHECK_OK(save(disk, TO_FILE, false, &err), &err);
    CHECK_FILE(disk, part, "half a model");
    simdisk_free(&disk);
}

static void take_part_away(other *o, const dcn_call *call)
{
    dcn_dir *dir = NULL;
    decant_error err;

    CHECK_OK(dcn_io_open_dir(&o->disk->io, ".", &dir, &err), &err);
    CHECK_OK(dcn_dir_remove(dir, call->name, &err), &err);
    dcn_dir_close(&dir);
}

/* Another save may sweep a part between its creation and its lock. */
TEST(file__makes_another_part_where_a_sweep_took_the_first)
{
    simdisk *disk = simdisk_new();
    other o = {.verb = DCN_DO_LOCK, .act = take_part_away};
    decant_error err;

    arrive(&o, disk);
    CHECK_OK(save(disk, TO_FILE, false, &err), &err);
    CHECK_TEXT(simdisk_names(disk, "."), "out.bin");
    simdisk_free(&disk);
}

static void hold_part(other *o, const dcn_call *call)
{
    simdisk_hold(o->disk, call->name, true);
}

TEST(file__makes_another_part_where_a_sweep_has_the_lock_of_the_first)
{
    simdisk *disk = simdisk_new();
    other o = {.verb = DCN_DO_LOCK, .act = hold_part};
    decant_error err;

    arrive(&o, disk);
    CHECK_OK(save(disk, TO_FILE, false, &err), &err);
    CHECK_TEXT(simdisk_names(disk, "."), "out.bin");
    simdisk_free(&disk);
}

static void try_lock(other *o, const dcn_call *call)
{
    dcn_file *file = NULL;
    decant_error err;

    CHECK_OK(dcn_io_open(&o->disk->io, call->name, DCN_WRITE, &file, &err), &err);
    CHECK_FAILS(dcn_file_lock(file, &err), DECANT_BUSY, &err);
    dcn_file_close(&file);
}

TEST(file__holds_the_lock_of_its_part_while_it_writes_and_publishes)
{
    static const dcn_verb verbs[] = {DCN_DO_RESIZE, DCN_DO_WRITE, DCN_DO_SYNC, DCN_DO_RENAME};

    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        simdisk *disk = simdisk_new();
        other o = {.verb = verbs[i], .act = try_lock};
        decant_error err;

        arrive(&o, disk);
        CHECK_OK(save(disk, TO_FILE, false, &err), &err);
        CHECK(o.disk->io.gate == NULL); /* it came */
        simdisk_free(&disk);
    }
}

static uint32_t mode_of_part;

static void look_at_mode(other *o, const dcn_call *call)
{
    mode_of_part = simdisk_mode_of(o->disk, call->name);
}

/* Its group is not yet that of the file, and may do what all may; its owner may always write to it. */
TEST(file__never_lets_more_people_read_its_part_than_the_file)
{
    static const uint32_t modes[][2] = {{0600, 0600}, {0660, 0600}, {0644, 0644}, {0664, 0644}, {0444, 0644}};

    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        simdisk *disk = simdisk_new();
        other o = {.verb = DCN_DO_RESIZE, .act = look_at_mode};
        decant_error err;

        simdisk_put_text(disk, "out.bin", "old");
        simdisk_mode(disk, "out.bin", modes[i][0]);
        arrive(&o, disk);
        CHECK_OK(save(disk, TO_FILE, true, &err), &err);
        CHECK(o.disk->io.gate == NULL);
        CHECK_EQ(mode_of_part, modes[i][1]);
        simdisk_free(&disk);
    }
}

TEST(file__keeps_the_mode_of_the_file_that_it_replaces)
{
    static const uint32_t modes[] = {0600, 0644, 0755, 0444, 0640};

    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        simdisk *disk = simdisk_new();
        decant_error err;

        simdisk_put_text(disk, "out.bin", "old");
        simdisk_mode(disk, "out.bin", modes[i]);
        CHECK_OK(save(disk, TO_FILE, true, &err), &err);
        CHECK_EQ(simdisk_mode_of(disk, "out.bin"), modes[i]);
        simdisk_free(&disk);
    }
}

TEST(file__replaces_a_link_and_leaves_what_it_leads_to)
{
    for (int dangling = 0; dangling < 2; dangling++) {
        simdisk *disk = simdisk_new();
        decant_error err;

        if (!dangling)
            simdisk_put_text(disk, "far.bin", "precious");
        simdisk_make(disk, "out.bin", DCN_KIND_LINK, "far.bin");
        CHECK_OK(save(disk, TO_FILE, true, &err), &err);
        CHECK_FILE(disk, "far.bin", dangling ? NULL : "precious");
        simdisk_free(&disk);
    }
}

TEST(file_in_place__keeps_the_file_and_follows_links_and_syncs_nothing)
{
    simdisk *disk = simdisk_new();
    dcn_dir *dir = NULL;
    dcn_facts was, is;
    gates g;
    decant_error err;

    simdisk_put_text(disk, "far.bin", "an old file");
    simdisk_make(disk, "out.bin", DCN_KIND_LINK, "far.bin");
    CHECK_OK(dcn_io_open_dir(&disk->io, ".", &dir, &err), &err);
    CHECK_OK(dcn_dir_stat(dir, "far.bin", &was, &err), &err);
    gates_up(&g, &disk->io);
    CHECK_OK(save(disk, TO_FILE_IN_PLACE, true, &err), &err);
    CHECK_EQ(g.count[DCN_DO_SYNC] + g.count[DCN_DO_SYNC_DIR] + g.count[DCN_DO_RENAME], 0);
    gates_down(&g);
    CHECK_OK(dcn_dir_stat(dir, "far.bin", &is, &err), &err);
    CHECK(dcn_facts_same_file(&was, &is));
    CHECK_EQ(simdisk_file_count(disk), 2);
    dcn_dir_close(&dir);
    simdisk_free(&disk);
}

TEST(file_in_place__shrinks_a_longer_file_and_lengthens_a_shorter_one)
{
    static char longer[5000];

    for (int longest = 0; longest < 2; longest++) {
        simdisk *disk = simdisk_new();
        decant_error err;

        memset(longer, 'x', sizeof longer);
        simdisk_put(disk, "out.bin", longer, longest ? sizeof longer : 3);
        CHECK_OK(save(disk, TO_FILE_IN_PLACE, true, &err), &err);
        simdisk_free(&disk);
    }
}

/* What is longer and cannot be cut would have old bytes behind the new ones; what is shorter grows as it is written. */
TEST(file_in_place__fails_where_a_longer_file_cannot_be_cut)
{
    for (int longer = 0; longer < 2; longer++) {
        static const char old[5000];
        simdisk *disk = simdisk_new();
        gates g;
        decant_error err;

        simdisk_put(disk, "out.bin", old, longer ? sizeof old : 3);
        gates_up(&g, &disk->io);
        gates_fail(&g, (gates_fault){.one_verb = true, .verb = DCN_DO_RESIZE, .status = DECANT_UNSUPPORTED});
        CHECK_EQ(save(disk, TO_FILE_IN_PLACE, true, &err), longer ? DECANT_UNSUPPORTED : DECANT_OK);
        CHECK(g.fired);
        gates_down(&g);
        simdisk_free(&disk);
    }
}

/* The old header goes before anything else, the new one comes after everything. */
TEST(file_in_place__is_no_file_of_any_format_until_it_is_whole)
{
    bool failed = true;

    for (size_t n = 0; failed; n++) {
        static const uint8_t zeros[CARGO_HELD];
        simdisk *disk = simdisk_new();
        gates g;
        size_t len;
        decant_error err;

        simdisk_put_text(disk, "out.bin", "an old file of some length");
        gates_up(&g, &disk->io);
        gates_fail(&g, (gates_fault){.nth = n, .one_verb = true, .verb = DCN_DO_WRITE, .status = DECANT_IO});
        failed = save(disk, TO_FILE_IN_PLACE, true, &err) != DECANT_OK;
        CHECK_EQ(failed, g.fired);
        if (failed && n > 0)
            CHECK(memcmp(simdisk_get(disk, "out.bin", &len), zeros, CARGO_HELD) == 0);
        gates_down(&g);
        simdisk_free(&disk);
    }
}

TEST(file_in_place__is_refused_without_leave_to_replace)
{
    simdisk *disk = simdisk_new();
    decant_error err;

    simdisk_put_text(disk, "out.bin", "old");
    CHECK_FAILS(save(disk, TO_FILE_IN_PLACE, false, &err), DECANT_EXISTS, &err);
    CHECK_HAS(err.hint, "--force");
    CHECK_FILE(disk, "out.bin", "old");
    simdisk_free(&disk);
}

TEST(file_in_place__is_refused_where_the_file_is_read_only_whoever_asks)
{
    simdisk *disk = simdisk_new();
    decant_error err;

    simdisk_put_text(disk, "out.bin", "old");
    simdisk_mode(disk, "out.bin", 0444);
    CHECK_FAILS(save(disk, TO_FILE_IN_PLACE, true, &err), DECANT_DENIED, &err);
    CHECK_FILE(disk, "out.bin", "old");
    simdisk_free(&disk);
}

TEST(file_in_place__is_refused_where_the_file_is_a_source_under_whatever_name)
{
    for (int way = 0; way < 2; way++) {
        simdisk *disk = simdisk_new();
        vessel v = {.kind = TO_FILE_IN_PLACE, .disk = disk, .replace = true};
        dcn_dir *dir = NULL;
        size_t len, before;
        cargo c;
        decant_error err;

        cargo_load(&c, disk, CARGO_FILE, 5, 100, 1);
        CHECK_OK(dcn_io_open_dir(&disk->io, ".", &dir, &err), &err);
        if (way)
            CHECK_OK(dcn_dir_link(dir, "in.bin", "out.bin", &err), &err);
        else
            simdisk_make(disk, "out.bin", DCN_KIND_LINK, "in.bin");
        simdisk_get(disk, "in.bin", &before);
        CHECK_FAILS(vessel_pour(&v, &c, &(dcn_job){.cut = cut}, 0, &err), DECANT_SAME_FILE, &err);
        CHECK(err.hint[0]);
        simdisk_get(disk, "in.bin", &len);
        CHECK_EQ(len, before);
        dcn_dir_close(&dir);
        vessel_close(&v);
        cargo_close(&c);
        simdisk_free(&disk);
    }
}

/* A name of 255 bytes, the longest there is, of characters that must not be cut. */
TEST(file__finds_a_scratch_name_for_the_longest_of_names)
{
    simdisk *disk = simdisk_new();
    dcn_dir *dir = NULL;
    dcn_output *output = NULL;
    char name[256], *part;
    dcn_plan plan = {.total = 10};
    decant_error err;

    for (size_t i = 0; i < 85; i++)
        memcpy(name + 3 * i, "\xE2\x82\xAC", 3);
    name[255] = '\0';
    CHECK_OK(dcn_io_open_dir(&disk->io, ".", &dir, &err), &err);
    CHECK_OK(dcn_output_file(dir, name, NULL, false, &output, &err), &err);
    CHECK_OK(dcn_output_begin(output, &plan, &err), &err);
    part = (char *)(uintptr_t)simdisk_names(disk, ".");
    CHECK_EQ(strspn(part, "\xE2\x82\xAC"), 225);
    CHECK_EQ(strlen(part), 225 + strlen(".decant-0123456789abcdef.part"));
    CHECK_OK(dcn_output_seal(output, &err), &err);
    CHECK_OK(dcn_output_publish(output, &err), &err);
    dcn_output_close(&output);
    dcn_dir_close(&dir);
    CHECK_TEXT(simdisk_names(disk, "."), name);
    simdisk_free(&disk);
}
