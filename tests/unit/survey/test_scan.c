#include "survey/scan.h"

#include "support/alloc.h"
#include "support/cargo.h"
#include "support/gates.h"

static const dcn_cut cuts[] = {
    {.slot = 64, .slots = 1, .direct = 48},
    {.slot = 256, .slots = 2, .direct = 1000},
    {.slot = 1 << 20, .slots = 4, .direct = 1 << 18},
};

/* Notes what comes by and holds it against the tensors' streams. */
typedef struct watcher {
    const decant_model *model;
    uint8_t got[1024];
    size_t len, ended;
    size_t stop_at; /* this part fails, counted from 1; 0: none */
    size_t parts;
} watcher;

static decant_status see_part(void *ctx, const dcn_entry *entry, const uint8_t *data, size_t len, decant_error *err)
{
    watcher *w = ctx;

    CHECK(len > 0 && w->len + len <= sizeof w->got);
    CHECK(entry == &w->model->entries[w->ended]);
    memcpy(w->got + w->len, data, len);
    w->len += len;
    return ++w->parts == w->stop_at ? decant_error_set(err, DECANT_CANCELLED, "enough") : DECANT_OK;
}

static decant_status see_end(void *ctx, const dcn_entry *entry, decant_error *err)
{
    watcher *w = ctx;
    uint8_t wanted[sizeof w->got];

    (void)err;
    CHECK(entry == &w->model->entries[w->ended]);
    test_stream(w->ended, wanted, entry->data.len);
    CHECK_BYTES(w->got, w->len, wanted, entry->data.len);
    w->len = 0;
    w->ended++;
    return DECANT_OK;
}

TEST(scan__shows_all_data_of_every_kind_once_and_in_order)
{
    for (size_t cut = 0; cut < sizeof cuts / sizeof *cuts; cut++)
        for (uint64_t seed = 0; seed < 20; seed++) {
            simdisk *disk = simdisk_new();
            cargo c;
            watcher w;
            dcn_viewer viewer = {see_part, see_end, &w};
            decant_error err;

            cargo_load(&c, disk, CARGO_ALL, seed % 7 ? 30 : 0, 700, seed);
            w = (watcher){.model = c.model};
            CHECK_OK(dcn_scan_model(c.model, &cuts[cut], NULL, NULL, &viewer, &err), &err);
            CHECK_EQ(w.ended, c.model->count);
            recorder_check(&c.rec, c.lens, c.model->count);
            cargo_close(&c);
            simdisk_free(&disk);
        }
}

/* The bytes of a whole output, literals and gaps among them, in parts of any length. */
TEST(scan__cuts_tensors_out_of_what_stands_around_them)
{
    uint64_t random = 1;

    for (uint64_t seed = 0; seed < 50; seed++) {
        simdisk *disk = simdisk_new();
        cargo c;
        watcher w;
        dcn_viewer viewer = {see_part, see_end, &w};
        dcn_scan scan = {.viewer = &viewer};
        decant_error err;

        cargo_load(&c, disk, CARGO_MEMORY, seed % 9, 100, seed);
        w = (watcher){.model = c.model};
        scan.plan = &c.plans.items[0];
        for (size_t at = 0, len; at < c.total; at += len) {
            len = test_random(&random) % 40;
            len = len < c.total - at ? len : c.total - at;
            CHECK_OK(dcn_scan_take(&scan, at, c.wanted + at, len, &err), &err);
        }
        CHECK_OK(dcn_scan_end(&scan, &err), &err);
        CHECK_EQ(w.ended, c.model->count);
        cargo_close(&c);
        simdisk_free(&disk);
    }
}

TEST(scan__stops_when_the_viewer_or_a_source_fails)
{
    simdisk *disk = simdisk_new();
    cargo c;
    watcher w;
    dcn_viewer viewer = {see_part, see_end, &w};
    gates g;
    decant_error err;

    cargo_load(&c, disk, CARGO_FILE, 10, 700, 3);
    w = (watcher){.model = c.model, .stop_at = 2};
    CHECK_FAILS(dcn_scan_model(c.model, &cuts[0], NULL, NULL, &viewer, &err), DECANT_CANCELLED, &err);
    CHECK_EQ(w.parts, 2);

    gates_up(&g, &disk->io);
    gates_fail(&g, (gates_fault){.one_verb = true, .verb = DCN_DO_READ, .nth = 3, .status = DECANT_IO});
    w = (watcher){.model = c.model};
    CHECK_FAILS(dcn_scan_model(c.model, &cuts[0], NULL, NULL, &viewer, &err), DECANT_IO, &err);
    CHECK_EQ(err.side, DECANT_SIDE_INPUT);
    CHECK(err.tensor[0] != '\0');
    gates_down(&g);

    simdisk_touch(disk, "in.bin");
    w = (watcher){.model = c.model};
    CHECK_FAILS(dcn_scan_model(c.model, &cuts[0], NULL, NULL, &viewer, &err), DECANT_CHANGED, &err);
    cargo_close(&c);
    simdisk_free(&disk);
}
