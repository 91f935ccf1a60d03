/* The gate that all fault tests stand on. */
#include "support/gates.h"
#include "support/simdisk.h"

#include <errno.h>

static decant_error err;

/* A little of everything; the first failure ends it. */
static decant_status script(dcn_io *io, decant_error *e)
{
    dcn_dir *dir = NULL;
    dcn_file *file = NULL;
    const dcn_chunk chunk = {"12345", 5};
    decant_status rc;

    if ((rc = dcn_io_open_dir(io, ".", &dir, e)) ||
        (rc = dcn_dir_open(dir, "a.part", DCN_WRITE | DCN_CREATE_NEW, 0666, &file, e)) ||
        (rc = dcn_file_write(file, 7, &chunk, 1, e)) || (rc = dcn_file_sync(file, e)) ||
        (rc = dcn_dir_rename(dir, "a.part", "a", 0, e)))
        goto done;
    rc = dcn_dir_sync(dir, e);
done:
    dcn_file_close(&file);
    dcn_dir_close(&dir);
    return rc;
}

TEST(gates__see_every_call)
{
    simdisk *disk = simdisk_new();
    gates g;

    gates_up(&g, &disk->io);
    CHECK_OK(script(&disk->io, &err), &err);
    CHECK_EQ(g.total, 6);
    CHECK_EQ(g.count[DCN_DO_WRITE], 1);
    CHECK_EQ(g.bytes[DCN_DO_WRITE], 5);
    CHECK_TEXT(gates_trace(&g), "open_dir .\n"
                                "open a.part\n"
                                "write a.part 7+5\n"
                                "sync a.part\n"
                                "rename a.part a\n"
                                "sync_dir .\n");
    gates_down(&g);
    simdisk_free(&disk);
}

TEST(gates__make_the_nth_call_fail_and_no_other)
{
    for (size_t n = 0; n <= 6; n++) {
        simdisk *disk = simdisk_new();
        gates g;
        decant_status rc;

        gates_up(&g, &disk->io);
        gates_fail(&g, (gates_fault){.nth = n, .status = DECANT_NO_SPACE, .os_code = ENOSPC});
        rc = script(&disk->io, &err);
        CHECK_EQ(g.fired, n < 6);
        CHECK_EQ(rc, n < 6 ? DECANT_NO_SPACE : DECANT_OK);
        if (rc) {
            CHECK_EQ(err.os_code, ENOSPC);
            CHECK_EQ(g.total, n + 1);
            CHECK_HAS(gates_trace(&g), " = no_space\n");
        }
        gates_down(&g);
        simdisk_free(&disk);
    }
}

TEST(gates__can_aim_at_a_verb_and_a_name)
{
    simdisk *disk = simdisk_new();
    gates g;

    gates_up(&g, &disk->io);
    gates_fail(&g, (gates_fault){.one_verb = true, .verb = DCN_DO_SYNC, .status = DECANT_IO});
    CHECK_FAILS(script(&disk->io, &err), DECANT_IO, &err);
    CHECK_TEXT(err.path, "a.part");
    CHECK_EQ(g.total, 4);
    CHECK_OK(dcn_io_random(&disk->io, &(char){0}, 1, &err), &err);

    gates_fail(&g, (gates_fault){.name = "part", .nth = 1, .status = DECANT_DENIED});
    CHECK_FAILS(script(&disk->io, &err), DECANT_EXISTS, &err); /* a.part is left from before */
    CHECK(!g.fired);
    CHECK_FAILS(script(&disk->io, &err), DECANT_DENIED, &err);
    CHECK(g.fired);
    gates_down(&g);
    simdisk_free(&disk);
}

TEST(gates__let_nothing_through_after_a_crash)
{
    for (size_t n = 0; n < 6; n++) {
        simdisk *disk = simdisk_new();
        dcn_dir *dir = NULL;
        gates g;

        simdisk_put_text(disk, "b", "");
        gates_up(&g, &disk->io);
        gates_crash(&g, n);
        CHECK_FAILS(script(&disk->io, &err), DECANT_IO, &err);
        CHECK_FAILS(dcn_io_open_dir(&disk->io, ".", &dir, &err), DECANT_IO, &err);
        gates_down(&g);
        CHECK_TEXT(simdisk_names(disk, "."), n < 2 ? "b" : n < 5 ? "a.part b" : "a b");
        simdisk_free(&disk);
    }
}

TEST(gates__stand_one_behind_the_other)
{
    simdisk *disk = simdisk_new();
    gates inner, outer;

    gates_up(&inner, &disk->io);
    gates_up(&outer, &disk->io);
    gates_fail(&outer, (gates_fault){.one_verb = true, .verb = DCN_DO_RENAME, .status = DECANT_IO});
    CHECK_FAILS(script(&disk->io, &err), DECANT_IO, &err);
    CHECK_EQ(outer.total, 5);
    CHECK_EQ(inner.total, 4); /* the failing call did not reach it */
    gates_down(&outer);
    CHECK_OK(dcn_io_random(&disk->io, &(char){0}, 1, &err), &err);
    CHECK_EQ(inner.total, 5);
    gates_down(&inner);
    simdisk_free(&disk);
}
