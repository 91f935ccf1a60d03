/* Pouring bytes that are made of others. */
#include "support/alloc.h"
#include "support/cargo.h"
#include "support/gates.h"

#include "base/dtype.h"
#include "pour/route.h"
#include "transform/cast.h"

static const dcn_cut cuts[] = {
    {.slot = 64, .slots = 1, .direct = 48},
    {.slot = 256, .slots = 3, .direct = 256},
    {.slot = 1 << 20, .slots = 2, .direct = 1 << 18},
};

enum { CUTS = sizeof cuts / sizeof *cuts };

TEST(pour__makes_casts_of_bytes_of_every_kind_into_every_vessel_in_slots_of_any_size)
{
    for (unsigned kind = 0; kind < VESSELS; kind++)
        for (unsigned cut = 0; cut < CUTS; cut++)
            for (uint64_t seed = 0; seed < 6; seed++) {
                simdisk *disk = simdisk_new();
                vessel v = {.kind = (vessel_kind)kind, .disk = disk};
                dcn_job how = {.cut = cuts[cut]};
                cargo c;
                decant_error err;

                cargo_load(&c, disk, CARGO_ALL | CARGO_CAST, 30, 700, seed);
                CHECK_OK(vessel_pour(&v, &c, &how, seed, &err), &err);
                vessel_check(&v, &c);
                vessel_close(&v);
                cargo_close(&c);
                simdisk_free(&disk);
            }
}

/* Also where a number begins in one slot and ends in the next. */
TEST(pour__asks_providers_beneath_casts_once_and_in_order)
{
    for (unsigned kinds = CARGO_RANGE; kinds <= CARGO_WHOLE; kinds *= 2)
        for (unsigned cut = 0; cut < CUTS; cut++)
            for (uint64_t seed = 0; seed < 4; seed++) {
                simdisk *disk = simdisk_new();
                vessel v = {.kind = TO_NEW};
                dcn_job how = {.cut = cuts[cut]};
                cargo c;
                decant_error err;

                cargo_load(&c, disk, kinds | CARGO_CAST, 20, 500, seed);
                CHECK_OK(vessel_pour(&v, &c, &how, 0, &err), &err);
                vessel_check(&v, &c);
                recorder_check(&c.rec, c.lens, 20);
                vessel_close(&v);
                cargo_close(&c);
                simdisk_free(&disk);
            }
}

TEST(pour__fails_as_the_provider_beneath_a_cast_does_and_names_the_tensor)
{
    for (unsigned kinds = CARGO_RANGE; kinds <= CARGO_WHOLE; kinds *= 2) {
        simdisk *disk = simdisk_new();
        vessel v = {.kind = TO_NEW};
        dcn_job how = {.cut = cuts[0]};
        cargo c;
        decant_error err;

        cargo_load(&c, disk, kinds | CARGO_CAST, 20, 500, 3);
        c.rec.fail_at = 5;
        CHECK(vessel_pour(&v, &c, &how, 0, &err) != DECANT_OK);
        CHECK_EQ(err.side, DECANT_SIDE_CALLER);
        CHECK(err.tensor[0] == 't');
        vessel_close(&v);
        cargo_close(&c);
        simdisk_free(&disk);
    }
}

/* Of neighbours in the file what they are made of is read together, a slot's length at a time. */
TEST(pour__reads_what_casts_are_made_of_in_few_calls)
{
    simdisk *disk = simdisk_new();
    vessel v = {.kind = TO_FILE, .disk = disk};
    dcn_job how = {.cut = {.slot = 4096, .slots = 1, .direct = 64}};
    uint64_t raw = 0;
    gates g;
    cargo c;
    decant_error err;

    cargo_load(&c, disk, CARGO_FILE | CARGO_CAST, CARGO_MOST, 400, 8);
    for (size_t i = 0; i < c.model->count; i++)
        raw += dcn_backing_recipe(c.model->entries[i].data.backing)->input.len;
    gates_up(&g, &disk->io);
    CHECK_OK(vessel_pour(&v, &c, &how, 0, &err), &err);
    vessel_check(&v, &c);
    /* a slot ends where its own length or that of the staging is used up; and a number may lie across its end */
    CHECK(g.count[DCN_DO_READ] <= 2 * (c.total / 4096 + raw / 4096 + 2));
    CHECK(g.count[DCN_DO_READ] < CARGO_MOST);
    gates_down(&g);
    vessel_close(&v);
    cargo_close(&c);
    simdisk_free(&disk);
}

TEST(pour__reports_every_allocation_that_fails_while_casting)
{
    size_t live = test_alloc_live();

    for (size_t n = 0;; n++) {
        simdisk *disk = simdisk_new();
        vessel v = {.kind = TO_NEW};
        dcn_job how = {.cut = cuts[1]};
        bool fired;
        cargo c;
        decant_error err;
        decant_status rc;

        cargo_load(&c, disk, CARGO_ALL | CARGO_CAST, 12, 500, 3);
        test_alloc_fail(n);
        rc = vessel_pour(&v, &c, &how, 0, &err);
        fired = test_alloc_fired();
        test_alloc_disarm();
        CHECK_EQ(rc, fired ? DECANT_NOMEM : DECANT_OK);
        vessel_close(&v);
        cargo_close(&c);
        simdisk_free(&disk);
        CHECK_EQ(test_alloc_live(), live);
        if (!fired)
            break;
    }
}

TEST(routes__see_the_file_beneath_casts_and_casts_of_casts)
{
    simdisk *disk = simdisk_new();
    dcn_routes routes = {0};
    dcn_plans plans = {0};
    dcn_plan *plan = NULL;
    decant_model *model = NULL;
    decant_bytes *once = NULL, *twice = NULL;
    decant_tensor tensor = DECANT_TENSOR_INIT;
    uint64_t shape[] = {25};
    cargo c;
    decant_error err;

    cargo_load(&c, disk, CARGO_FILE, 2, 300, 1);
    CHECK(c.model->entries[1].data.len >= 100);
    CHECK_OK(dcn_cast(&(dcn_span){c.model->entries[1].data.backing, 0, 100}, DECANT_F32, DECANT_F16, true, &once, &err),
             &err);
    CHECK_OK(dcn_cast(&(dcn_span){once, 0, 50}, DECANT_F16, DECANT_F64, true, &twice, &err), &err);
    CHECK_OK(decant_model_create(&model, &err), &err);
    tensor.name = "x";
    tensor.dtype = DECANT_F64;
    tensor.rank = 1;
    tensor.shape = shape;
    CHECK_OK(decant_model_add(model, &tensor, twice, &err), &err);
    CHECK_OK(dcn_plans_add(&plans, model, &plan, &err), &err);
    CHECK_OK(dcn_plan_entry(plan, 0, 0, &err), &err);
    dcn_plan_finish(plan, 200);

    CHECK_OK(dcn_routes_collect(&plans, dcn_cut_default.share, &routes, &err), &err);
    CHECK_EQ(routes.count, 1);
    CHECK(routes.items[0].source == c.source);
    CHECK_EQ(routes.items[0].bytes, 100);
    CHECK(routes.makes);
    dcn_routes_close(&routes);
    dcn_plans_close(&plans);
    decant_model_close(&model);
    decant_bytes_unref(&once);
    decant_bytes_unref(&twice);
    cargo_close(&c);
    simdisk_free(&disk);
}
