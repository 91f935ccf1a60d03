/* Files of the reference (safetensors 0.8.0), read as its reader reports them and written again byte for byte. */
#include "support/models.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const names[] = {"st-empty",     "st-one",           "st-dtypes-all",           "st-ranks-0-to-8",
                                    "st-zero-size", "st-names-unicode", "st-three-sorted-by-dtype"};

enum { NAMES = sizeof names / sizeof *names };

static decant_error err;

static uint8_t *file_of(const char *name, size_t *len)
{
    char path[128];

    snprintf(path, sizeof path, "%s.safetensors", name);
    return test_data(path, len);
}

static void check_file(const decant_model *model, const char *file, const uint8_t *wanted, size_t wanted_len)
{
    uint8_t *bytes = NULL;
    size_t len;

    CHECK_OK(model_render(&dcn_safetensors, model, NULL, &bytes, &len, &err), &err);
    test_check_bytes(__FILE__, __LINE__, file, bytes, len, wanted, wanted_len);
    free(bytes);
}

TEST(safetensors_golden__a_model_is_written_as_the_reference_writes_it)
{
    for (size_t i = 0; i < NAMES; i++) {
        decant_model *model = model_of_spec(names[i]);
        size_t len;
        uint8_t *wanted = file_of(names[i], &len);

        check_file(model, names[i], wanted, len);
        decant_model_close(&model);
        free(wanted);
    }
}

TEST(safetensors_golden__a_file_is_read_as_the_reference_reads_it_and_written_again)
{
    for (size_t i = 0; i < NAMES; i++) {
        decant_model *model = NULL, *wanted = model_of_spec(names[i]);
        char file[128];
        size_t len;
        uint8_t *bytes = file_of(names[i], &len);

        snprintf(file, sizeof file, "%s.safetensors", names[i]);
        CHECK_OK(model_open(NULL, bytes, len, NULL, false, &model, &err), &err);
        check_same_models(model, wanted);
        check_read_as_reported(model, file);
        check_file(model, file, bytes, len);
        decant_model_close(&model);
        decant_model_close(&wanted);
        free(bytes);
    }
}

/* The 66 and the 16 bytes that the format's own description shows. */
TEST(safetensors_golden__the_smallest_files_are_these_bytes)
{
    static const char one[] =
        "\x38\0\0\0\0\0\0\0{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}   \1\2";
    static const char none[] = "\x08\0\0\0\0\0\0\0{}      ";
    static const uint64_t shape[] = {2};
    decant_model *model = NULL;
    decant_tensor tensor = DECANT_TENSOR_INIT;
    decant_bytes *bytes = NULL;

    CHECK_OK(decant_model_create(&model, &err), &err);
    check_file(model, "an empty file", (const uint8_t *)none, sizeof none - 1);
    CHECK_EQ(sizeof none - 1, 16);

    CHECK_OK(decant_bytes_wrap("\1\2", 2, NULL, NULL, &bytes, &err), &err);
    tensor.name = "a";
    tensor.dtype = DECANT_U8;
    tensor.rank = 1;
    tensor.shape = shape;
    CHECK_OK(decant_model_add(model, &tensor, bytes, &err), &err);
    decant_bytes_unref(&bytes);
    check_file(model, "one tensor", (const uint8_t *)one, sizeof one - 1);
    CHECK_EQ(sizeof one - 1, 66);
    decant_model_close(&model);
}
