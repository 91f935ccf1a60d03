/* Files that burn-pack 0.23.0-pre.1 wrote: read as it reads them, written as it wrote them. */
#include "support/models.h"
#include "support/sha256.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/endian.h"

static const char *const names[] = {
    "empty",
    "one-f32",
    "dtypes-all",
    "ranks-0-to-8",
    "zero-size",
    "three-in-caller-order",
    "names-unicode",
    "names-long-heads",
    "metadata-strings",
    "param-ids",
    "quant-per-tensor",
    "quant-blocks",
    "sizes-around-256",
    "forty",
    "scalars-each-kind",
};
enum { NAMES = sizeof names / sizeof *names };

static uint8_t *file_of(const char *name, size_t *len)
{
    char path[128];

    snprintf(path, sizeof path, "%s.bpk", name);
    return test_data(path, len);
}

static decant_model *open_golden(const char *name)
{
    decant_model *model = NULL;
    decant_error err = {0};
    size_t len;
    uint8_t *file = file_of(name, &len);

    CHECK_OK(model_open(&dcn_burnpack, file, len, NULL, false, &model, &err), &err);
    free(file);
    return model;
}

static void check_renders_as(const decant_model *model, const char *name)
{
    decant_error err = {0};
    uint8_t *wanted, *actual = NULL;
    size_t wanted_len, actual_len;

    wanted = file_of(name, &wanted_len);
    CHECK_OK(model_render(&dcn_burnpack, model, NULL, &actual, &actual_len, &err), &err);
    CHECK_BYTES(actual, actual_len, wanted, wanted_len);
    free(actual);
    free(wanted);
}

TEST(golden__is_read_as_it_was_meant)
{
    for (size_t i = 0; i < NAMES; i++) {
        decant_model *wanted = model_of_spec(names[i]), *actual = open_golden(names[i]);

        check_same_models(actual, wanted);
        decant_model_close(&actual);
        decant_model_close(&wanted);
    }
}

TEST(golden__is_written_byte_for_byte)
{
    for (size_t i = 0; i < NAMES; i++) {
        decant_model *model = model_of_spec(names[i]);

        check_renders_as(model, names[i]);
        decant_model_close(&model);
    }
}

/* Whose order in the file says all that there is to know of the order in which they were written. */
TEST(golden__once_opened_is_written_byte_for_byte_again)
{
    for (size_t i = 0; i < NAMES; i++) {
        decant_model *model = open_golden(names[i]);

        check_renders_as(model, names[i]);
        decant_model_close(&model);
    }
}

TEST(golden__is_read_as_burn_pack_reads_it)
{
    for (size_t i = 0; i < NAMES; i++) {
        decant_model *model = open_golden(names[i]);
        char file[128];

        snprintf(file, sizeof file, "%s.bpk", names[i]);
        check_read_as_reported(model, file);
        decant_model_close(&model);
    }
}

/* --- worked by hand ----------------------------------------------------------------------------------------------- */

static const float floats[] = {1, 2, 3, 4};

static void add_f32(decant_model *model, const char *name, size_t rank, const uint64_t *shape, const float *values,
                    size_t count)
{
    uint8_t bytes[16];

    for (size_t i = 0; i < count; i++) {
        uint32_t bits;

        memcpy(&bits, &values[i], sizeof bits);
        dcn_put_le(bytes + 4 * i, bits, 4);
    }
    model_add(model, name, DECANT_F32, rank, shape, NULL, bytes, 4 * count);
}

/* Renders and closes it; compares the sum of the whole file. */
static void check_sum(decant_model *model, size_t wanted_len, const char *sum)
{
    decant_error err = {0};
    uint8_t *bytes = NULL;
    size_t len;

    CHECK_OK(model_render(&dcn_burnpack, model, NULL, &bytes, &len, &err), &err);
    CHECK_EQ(len, wanted_len);
    CHECK_TEXT(sha256_hex(bytes, len), sum);
    free(bytes);
    decant_model_close(&model);
}

static decant_model *empty(void)
{
    decant_model *model = NULL;
    decant_error err = {0};

    CHECK_OK(decant_model_create(&model, &err), &err);
    return model;
}

/* V2 to V4 build on each other. */
static decant_model *weight(bool with_id)
{
    static const uint64_t shape[] = {2, 2};
    decant_model *model = empty();

    add_f32(model, "weight", 2, shape, floats, 4);
    model->entries[0].has_id = with_id;
    model->entries[0].id = with_id ? 7 : 0;
    return model;
}

TEST(vectors__come_out_to_the_byte)
{
    static const uint64_t three[] = {3}, none[] = {0, 3}, two_by_four[] = {2, 4};
    static const uint8_t bools[] = {1, 0, 1}, payload[] = {1, 2, 3, 4, 0xFF, 0xFE, 0xFD, 0xFC, 0, 0, 0, 0x3F};
    static const decant_quant plain = {.size = sizeof plain, .value = DECANT_Q8F, .store = DECANT_STORE_PACKED_U32};
    static const decant_value rate = {.type = DECANT_VALUE_F64, .as.f64_bits = UINT64_C(0x3F50624DD2F1A9FC)};
    static const decant_value step = {.type = DECANT_VALUE_U64, .as.u64 = 42};
    decant_model *model = empty();
    decant_error err = {0};

    check_sum(model, 256, "d51cafc1a9901c1d26d289a9e29457bb4bb041f704ee783577e890d516927813");
    check_sum(weight(false), 272, "614e6662dfff771eb23be2648c5dc99afcb7126274d6887d21b35e6763d518dc");
    check_sum(weight(true), 272, "b9fbbe259a878cd6ead568e05235861664e9bec96f55b116d42f8bdd1de9692d");

    model = weight(true);
    model_set_text(model, "producer", "x");
    CHECK_OK(decant_model_set(model, "step", 4, &step, &err), &err);
    CHECK_OK(decant_model_set(model, "lr", 2, &rate, &err), &err);
    check_sum(model, 272, "f5f13e9dffb71d2a56ed0da45e67b37b2ff84b38dd41b819c70cd4ad558cd96c");

    model = empty();
    add_f32(model, "b", 1, three, floats, 3);
    add_f32(model, "a", 0, NULL, floats + 3, 1);
    model->entries[1].has_id = true;
    model->entries[1].id = 1;
    model_add(model, "e", DECANT_U8, 2, none, NULL, "", 0);
    check_sum(model, 768, "efad8e18427313f4ba3e80705011d4afff11e3cbfcd2b74667aac90aeed6e8e0");

    model = empty();
    model_add(model, "m", DECANT_BOOL, 1, three, NULL, bools, sizeof bools);
    check_sum(model, 259, "88615f4394efea905a7f1c122e2843716da75f256db0aa68ceb8e2bf3ad8a65f");

    model = empty();
    model_add(model, "q", DECANT_QFLOAT, 2, two_by_four, &plain, payload, sizeof payload);
    check_sum(model, 268, "8fbee597a9709d610f2c82fcfdd3acf74f82f1949a451dd3398b0cd53cfc959c");
}
