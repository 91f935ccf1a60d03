#include "support/alloc.h"
#include "support/cargo.h"

/*
 * PF-01. Planning asks no provider. Pouring asks each once, in the order of the output, and only when what the one before gave was
 * taken and given back: what is lent is spoilt at once, so bytes taken too late would not be the ones wanted.
 */
TEST(laziness__each_provider_is_asked_once_in_its_turn_after_the_last_was_given_back)
{
    static const unsigned forms[] = {CARGO_RANGE, CARGO_WHOLE, CARGO_RANGE | CARGO_WHOLE,
                                     CARGO_RANGE | CARGO_WHOLE | CARGO_MEMORY | CARGO_FILE};

    for (unsigned kind = 0; kind < VESSELS; kind++)
        for (size_t form = 0; form < sizeof forms / sizeof *forms; form++)
            for (size_t slot = 64; slot <= 4096; slot *= 4)
                for (uint64_t seed = 0; seed < 4; seed++) {
                    simdisk *disk = simdisk_new();
                    vessel v = {.kind = (vessel_kind)kind, .disk = disk};
                    dcn_job how = {.cut = {.slot = slot, .slots = 1 + (unsigned)seed, .direct = 200}};
                    cargo c;
                    decant_error err;

                    cargo_load(&c, disk, forms[form], 24, 900, seed);
                    CHECK_OK(dcn_plan_check_model(c.model, &err), &err);
                    CHECK_EQ(c.rec.count, 0);
                    CHECK_OK(vessel_pour(&v, &c, &how, seed, &err), &err);
                    vessel_check(&v, &c);
                    recorder_check(&c.rec, c.lens, 24);
                    vessel_close(&v);
                    cargo_close(&c);
                    simdisk_free(&disk);
                }
}

/* What a save of tensors of up to `most` bytes in these places allocates at most. */
static size_t peak_of(vessel_kind kind, unsigned places, size_t slot, size_t most)
{
    simdisk *disk = simdisk_new();
    vessel v = {.kind = kind, .disk = disk};
    dcn_job how = {.cut = {.slot = slot, .slots = 2, .direct = 1024}};
    size_t before, peak;
    cargo c;
    decant_error err;

    disk->lacks = 1u << DCN_DO_COPY; /* so that all of it goes through slots */
    cargo_load(&c, disk, places, 40, most, 6);
    test_alloc_reset_peak();
    before = test_alloc_bytes();
    CHECK_OK(vessel_pour(&v, &c, &how, 3, &err), &err);
    peak = test_alloc_peak() - before;
    vessel_close(&v);
    cargo_close(&c);
    simdisk_free(&disk);
    return peak;
}

/* PF-01, PF-04. The same for a little data and for twenty times as much. */
TEST(staging__peak_is_slots_and_lists_whatever_the_size_of_the_model)
{
    const size_t slot = 4096;
    const unsigned places = CARGO_FILE | CARGO_RANGE | CARGO_MEMORY | CARGO_ROPE;

    for (unsigned kind = 0; kind < VESSELS; kind++)
        for (int cast = 0; cast < 2; cast++) {
            unsigned all = places | (cast ? CARGO_CAST : 0);
            size_t small, large;

            if (kind == TO_NEW)
                continue; /* the output is in memory, which is what was asked for */
            small = peak_of((vessel_kind)kind, all, slot, 8000);
            large = peak_of((vessel_kind)kind, all, slot, 160000);
            /* blocks are counted as the system made them, which may be by one grain longer than was asked for */
            CHECK(large <= small + 64 && small <= large + 64);
            /* slots, the list of what is wanted of files, the crew with its errors, and little else */
            CHECK(large <= 2 * slot + slot * (sizeof(dcn_range) + sizeof(void *)) + (32 << 10) +
                               (cast ? slot + slot * 5 * sizeof(void *) : 0)); /* raw bytes, and the list of makings */
        }
}
