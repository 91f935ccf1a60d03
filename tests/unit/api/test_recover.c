#include <stdio.h>
#include <stdlib.h>

#include "api/env.h"
#include "support/convoy.h"
#include "support/gates.h"
#include "support/salvage.h"

enum { FILES = 3 };

/* A save in the folder "." that was stopped when its second file was going to get its name. */
static simdisk *stranded(convoy *c)
{
    simdisk *disk = simdisk_new();
    gates g;
    decant_error err;

    convoy_load(c, FILES, 1);
    gates_up(&g, &disk->io);
    gates_fail(&g, (gates_fault){.one_verb = true, .verb = DCN_DO_RENAME, .name = "b.bin", .status = DECANT_IO});
    CHECK_FAILS(convoy_pour(c, &(convoy_voyage){.disk = disk, .journal = true}, &err), DECANT_PUBLISH_PENDING, &err);
    gates_down(&g);
    return disk;
}

static decant_status recover(simdisk *disk, const char *path, decant_direction direction, decant_recovery **out,
                             decant_error *err)
{
    dcn_env env = {.io = &disk->io, .cut = dcn_cut_default};
    decant_recover_options options = DECANT_RECOVER_OPTIONS_INIT;

    options.direction = direction;
    return dcn_recover(&env, path, &options, out, err);
}

static size_t count_found(simdisk *disk, const char *path)
{
    decant_recovery *r = NULL;
    decant_recovered save = {.size = sizeof save};
    size_t count = 0;
    decant_error err;

    CHECK_OK(recover(disk, path, DECANT_RECOVER_SHOW, &r, &err), &err);
    while (decant_recovery_save(r, count, &save))
        count++;
    decant_recovery_close(&r);
    return count;
}

TEST(recover__finds_a_save_from_any_of_its_files_and_from_its_folder)
{
    convoy c;
    simdisk *disk = stranded(&c);
    char *names = strdup(simdisk_names(disk, ".")), *rest = names, *name;

    CHECK_EQ(count_found(disk, NULL), 1);
    CHECK_EQ(count_found(disk, "."), 1);
    while ((name = strtok_r(rest, " ", &rest)))
        CHECK_EQ(count_found(disk, name), 1);
    for (size_t i = 0; i < FILES; i++)
        CHECK_EQ(count_found(disk, convoy_name(i)), 1);
    CHECK_EQ(count_found(disk, "other.bin"), 0);
    simdisk_folder(disk, "elsewhere");
    CHECK_EQ(count_found(disk, "elsewhere"), 0);
    free(names);
    convoy_close(&c);
    simdisk_free(&disk);
}

TEST(recover__tells_what_there_is_and_touches_nothing_unless_it_is_told_to)
{
    convoy c;
    simdisk *disk = stranded(&c);
    char *before = strdup(simdisk_names(disk, "."));
    decant_recovery *r = NULL;
    decant_recovered save = {.size = sizeof save};
    const char *path;
    uint64_t bytes, sum = 0;
    int published;
    decant_error err;

    CHECK_OK(recover(disk, NULL, DECANT_RECOVER_SHOW, &r, &err), &err);
    CHECK(decant_recovery_save(r, 0, &save));
    CHECK_TEXT(save.path, "c.bin");
    CHECK_EQ(save.stage, DECANT_STAGE_COMPLETE);
    CHECK(!save.done);
    CHECK_EQ(save.file_count, FILES);
    for (size_t i = 0; i < FILES; i++) {
        CHECK(decant_recovery_file(r, 0, i, &path, &bytes, &published));
        CHECK_TEXT(path, convoy_name(i));
        CHECK_EQ(bytes, c.totals[i]);
        CHECK_EQ(published, i == 0);
        sum += bytes;
    }
    CHECK_EQ(save.bytes, sum);
    CHECK(!decant_recovery_file(r, 0, FILES, &path, &bytes, &published));
    CHECK(!decant_recovery_save(r, 1, &save));
    decant_recovery_close(&r);
    CHECK_TEXT(simdisk_names(disk, "."), before);

    CHECK_FAILS(recover(disk, "a.bin", DECANT_RECOVER_UNDO, &r, &err), DECANT_BAD_CALL, &err);
    CHECK_TEXT(err.path, "c.bin");
    CHECK(decant_recovery_save(r, 0, &save) && !save.done);
    decant_recovery_close(&r);
    CHECK_TEXT(simdisk_names(disk, "."), before);

    CHECK_OK(recover(disk, "a.bin", DECANT_RECOVER_RESUME, &r, &err), &err);
    CHECK(decant_recovery_save(r, 0, &save) && save.done);
    decant_recovery_close(&r);
    CHECK_TEXT(simdisk_names(disk, "."), "a.bin b.bin c.bin");
    CHECK_EQ(count_found(disk, NULL), 0);
    free(before);
    convoy_close(&c);
    simdisk_free(&disk);
}

TEST(recover__stops_at_a_scratch_file_whose_journal_is_missing)
{
    convoy c;
    simdisk *disk = stranded(&c);
    dcn_dir *dir = NULL;
    decant_recovery *r = NULL;
    char *before;
    decant_error err;

    CHECK_OK(dcn_io_open_dir(&disk->io, ".", &dir, &err), &err);
    CHECK_OK(dcn_dir_remove(dir, salvage_journal(disk), &err), &err);
    before = strdup(simdisk_names(disk, "."));
    for (int way = DECANT_RECOVER_SHOW; way <= DECANT_RECOVER_UNDO; way++) {
        CHECK_FAILS(recover(disk, NULL, (decant_direction)way, &r, &err), DECANT_INTERRUPTED, &err);
        CHECK(err.hint[0]);
        decant_recovery_close(&r);
    }
    CHECK_TEXT(simdisk_names(disk, "."), before);
    free(before);
    dcn_dir_close(&dir);
    convoy_close(&c);
    simdisk_free(&disk);
}

TEST(recover__refuses_a_folder_that_is_not_there)
{
    simdisk *disk = simdisk_new();
    decant_recovery *r = NULL;
    decant_error err;

    CHECK_FAILS(recover(disk, "none/a.bin", DECANT_RECOVER_SHOW, &r, &err), DECANT_NOT_FOUND, &err);
    CHECK(r == NULL);
    simdisk_free(&disk);
}
