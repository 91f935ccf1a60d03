#include "bytes/moving.h"

#include "base/alloc.h"
#include "support/gates.h"
#include "support/simdisk.h"

/* A file while it gives its bytes up: what it is called, and what is noted on it. */
static const char journal[] = "/models/out.bpk.decant-journal";

typedef struct place {
    simdisk *disk;
    dcn_dir *dir;
    dcn_file *file; /* "m.moving" */
} place;

static void come(place *p, bool has_attributes)
{
    decant_error err;

    p->disk = simdisk_new();
    p->disk->lacks = has_attributes ? 0 : 1u << DCN_DO_NOTE | 1u << DCN_DO_READ_NOTE;
    simdisk_put_text(p->disk, "m.moving", "half of a model");
    CHECK_OK(dcn_io_open_dir(&p->disk->io, ".", &p->dir, &err), &err);
    CHECK_OK(dcn_dir_open(p->dir, "m.moving", DCN_READ | DCN_WRITE, 0, &p->file, &err), &err);
}

static void go(place *p)
{
    dcn_file_close(&p->file);
    dcn_dir_close(&p->dir);
    simdisk_free(&p->disk);
}

TEST(moving__has_another_name_that_fits_and_says_what_it_is)
{
    char name[256], *moving = NULL;
    decant_error err;

    CHECK_OK(dcn_moving_name("model.safetensors", &moving, &err), &err);
    CHECK_TEXT(moving, "model.safetensors.moving");
    dcn_free(&moving);
    memset(name, 'x', 255);
    strcpy(name + 243, "\xC3\xA4-00001.pt");
    CHECK_OK(dcn_moving_name(name, &moving, &err), &err);
    CHECK(strlen(moving) <= 255);
    CHECK_HAS(moving, "\xC3\xA4-00001.pt.moving");
    dcn_free(&moving);
}

TEST(moving__is_noted_on_it_or_beside_it)
{
    for (unsigned has_attributes = 0; has_attributes < 2; has_attributes++) {
        char seen[DCN_MOVING_NOTE];
        place p;
        decant_error err;

        come(&p, has_attributes);
        CHECK_FAILS(dcn_moving_read_note(p.dir, "m.moving", p.file, seen, &err), DECANT_NOT_FOUND, &err);
        for (int twice = 0; twice < 2; twice++)
            CHECK_EQ(dcn_moving_note(p.dir, "m.moving", p.file, journal), has_attributes);
        CHECK_TEXT(simdisk_names(p.disk, "."), has_attributes ? "m.moving" : "m.moving m.moving.decant");
        CHECK_OK(dcn_moving_read_note(p.dir, "m.moving", p.file, seen, &err), &err);
        CHECK_TEXT(seen, journal);
        CHECK_OK(dcn_moving_drop_note(p.dir, "m.moving", p.file, &err), &err);
        CHECK_FAILS(dcn_moving_read_note(p.dir, "m.moving", p.file, seen, &err), DECANT_NOT_FOUND, &err);
        CHECK_TEXT(simdisk_names(p.disk, "."), "m.moving");
        go(&p);
    }
}

/* Nothing depends on it, and nothing of anybody else's is touched for it. */
TEST(moving__leaves_what_others_have_under_the_name_of_the_note)
{
    static const char *const theirs[] = {"mine, with text", "DCNT", "DCNTPART...."};

    for (size_t i = 0; i < sizeof theirs / sizeof *theirs; i++) {
        char seen[DCN_MOVING_NOTE];
        place p;
        decant_error err;

        come(&p, false);
        simdisk_put_text(p.disk, "m.moving.decant", theirs[i]);
        CHECK(!dcn_moving_note(p.dir, "m.moving", p.file, journal));
        CHECK_FAILS(dcn_moving_read_note(p.dir, "m.moving", p.file, seen, &err), DECANT_NOT_FOUND, &err);
        CHECK_OK(dcn_moving_drop_note(p.dir, "m.moving", p.file, &err), &err);
        CHECK_FILE(p.disk, "m.moving.decant", theirs[i]);
        go(&p);
    }
}

/* A crash leaves it empty, full of zeros, or whole: all of these go. One that cannot be written is not left half. */
TEST(moving__leaves_no_note_that_is_half_written)
{
    static const uint8_t zeros[39];
    static const size_t lengths[] = {0, 3, sizeof zeros};

    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        char seen[DCN_MOVING_NOTE];
        place p;
        decant_error err;

        come(&p, false);
        simdisk_put(p.disk, "m.moving.decant", zeros, lengths[i]);
        CHECK_FAILS(dcn_moving_read_note(p.dir, "m.moving", p.file, seen, &err), DECANT_NOT_FOUND, &err);
        CHECK_OK(dcn_moving_drop_note(p.dir, "m.moving", NULL, &err), &err);
        CHECK_TEXT(simdisk_names(p.disk, "."), "m.moving");
        go(&p);
    }
    for (size_t n = 0; n < 6; n++) {
        place p;
        gates g;

        come(&p, false);
        gates_up(&g, &p.disk->io);
        gates_fail(&g, (gates_fault){.nth = n, .status = DECANT_IO});
        CHECK(!dcn_moving_note(p.dir, "m.moving", p.file, journal));
        if (g.fired && n)
            CHECK_TEXT(simdisk_names(p.disk, "."), "m.moving");
        gates_down(&g);
        go(&p);
    }
}
