#include "support/salvage.h"

#include <stdio.h>

#include "support/gates.h"

decant_status salvage(simdisk *disk, decant_error *err)
{
    dcn_buf journals = {0}, parts = {0};
    dcn_dir *dir = NULL;
    decant_status rc = dcn_io_open_dir(&disk->io, ".", &dir, err);

    if (rc || (rc = dcn_leftovers_list(dir, &journals, &parts, err)))
        goto done;
    for (size_t i = 0; i < journals.len && rc == DECANT_OK; i += strlen((char *)journals.data + i) + 1) {
        dcn_leftover l;

        rc = dcn_leftover_open(&l, dir, (char *)journals.data + i, true, err);
        if (rc == DECANT_OK)
            rc = l.stage == DCN_STAGE_COMMITTED ? dcn_leftover_finish(&l, err) : dcn_leftover_undo(&l, err);
        dcn_leftover_close(&l);
    }
done:
    dcn_buf_close(&journals);
    dcn_buf_close(&parts);
    dcn_dir_close(&dir);
    return rc;
}

const char *salvage_journal(simdisk *disk)
{
    static char name[256];
    const char *all = simdisk_names(disk, "."), *found = strstr(all, ".decant-journal"), *start = found;

    if (!found)
        return NULL;
    while (start > all && start[-1] != ' ')
        start--;
    snprintf(name, sizeof name, "%.*s", (int)(found - start) + (int)strlen(".decant-journal"), start);
    return name;
}

dcn_stage salvage_stage(simdisk *disk)
{
    dcn_leftover l;
    dcn_dir *dir = NULL;
    dcn_stage stage = DCN_STAGE_LIVE;
    decant_error err;

    if (!salvage_journal(disk))
        return stage;
    CHECK_OK(dcn_io_open_dir(&disk->io, ".", &dir, &err), &err);
    CHECK_OK(dcn_leftover_open(&l, dir, salvage_journal(disk), false, &err), &err);
    stage = l.stage;
    dcn_leftover_close(&l);
    dcn_dir_close(&dir);
    return stage;
}

static void recover_and_check(simdisk *disk, const salvage_law *law)
{
    decant_error err;

    CHECK_OK(salvage(disk, &err), &err);
    law->check(law->ctx, disk, true);
}

void salvage_after_cuts(const simdisk *disk, size_t seed, const salvage_law *law)
{
    size_t cuts = simdisk_crash_count(disk);

    for (size_t k = 0; k < cuts; k += law->most ? 1 + cuts / law->most : 1) {
        simdisk *after = simdisk_clone(disk);

        simdisk_crash_nth(after, k, seed + k);
        law->check(law->ctx, after, false);
        recover_and_check(after, law);
        simdisk_free(&after);
    }
}

void salvage_interrupted(const simdisk *disk, const salvage_law *law)
{
    bool stopped = true;

    for (size_t n = 0; stopped; n++) {
        simdisk *killed = simdisk_clone(disk);
        gates g;
        decant_error err;

        gates_up(&g, &killed->io);
        gates_crash(&g, n);
        (void)!salvage(killed, &err);
        stopped = g.fired;
        gates_down(&g);
        salvage_after_cuts(killed, n, law);
        recover_and_check(killed, law);
        simdisk_free(&killed);
    }
}
