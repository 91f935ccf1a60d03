#include "support/salvage.h"

#include <stdio.h>

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
