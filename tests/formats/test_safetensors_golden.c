/* Files of the reference (safetensors 0.8.0), read as its reader reports them and written again byte for byte. */
#include "support/models.h"

#include <stdio.h>
#include <stdlib.h>

#include <jansson.h>

#include "base/dtype.h"
#include "base/endian.h"

static const char *const names[] = {"st-empty",     "st-one",           "st-dtypes-all",           "st-ranks-0-to-8",
                                    "st-zero-size", "st-names-unicode", "st-three-sorted-by-dtype"};

enum { NAMES = sizeof names / sizeof *names };

static decant_error err;

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    if (!text)
        test_fail(__FILE__, __LINE__, "no text '%s'", key);
    return text;
}

static json_t *parse(const char *text, size_t len)
{
    json_error_t error;
    json_t *json = json_loadb(text, len, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);

    if (!json)
        test_fail(__FILE__, __LINE__, "%s", error.text);
    return json;
}

/* NAME.spec.json: the model that the file was written from. */
static json_t *spec_of(const char *name)
{
    char file[128];
    size_t len;
    uint8_t *text;
    json_t *spec;

    snprintf(file, sizeof file, "%s.spec.json", name);
    text = test_data(file, &len);
    spec = parse((char *)text, len);
    free(text);
    return spec;
}

/* The line of read.jsonl about a file: what the reference reads. */
static json_t *report_of(const char *file)
{
    size_t len;
    uint8_t *text = test_data("read.jsonl", &len);
    json_t *report = NULL;

    text[len] = '\0';
    for (char *line = strtok((char *)text, "\n"); line; line = strtok(NULL, "\n")) {
        report = parse(line, strlen(line));
        if (strcmp(text_of(report, "file"), file) == 0)
            break;
        json_decref(report);
        report = NULL;
    }
    free(text);
    CHECK(report);
    return report;
}

static decant_dtype dtype_of(const json_t *tensor)
{
    const char *name = text_of(tensor, "dtype");

    for (size_t i = 1; i < dcn_dtype_count(); i++)
        if (strcmp(decant_dtype_name((decant_dtype)i), name) == 0)
            return (decant_dtype)i;
    test_fail(__FILE__, __LINE__, "no dtype %s", name);
}

static size_t shape_of(const json_t *tensor, uint64_t shape[8])
{
    const json_t *array = json_object_get(tensor, "shape");

    CHECK(json_array_size(array) <= 8);
    for (size_t i = 0; i < json_array_size(array); i++)
        shape[i] = (uint64_t)json_integer_value(json_array_get(array, i));
    return json_array_size(array);
}

/* The bytes of a spec's tensor: hex, or the stream. Freed by the caller. */
static uint8_t *data_of(const json_t *tensor, size_t len)
{
    const char *text = text_of(tensor, "data");
    uint8_t *data = malloc(len ? len : 1);

    CHECK(data);
    if (strncmp(text, "seed:", 5) == 0) {
        test_stream(strtoull(text + 5, NULL, 10), data, len);
    } else {
        CHECK_EQ(strlen(text), 2 * len);
        for (size_t i = 0; i < len; i++) {
            unsigned byte;

            CHECK_EQ(sscanf(text + 2 * i, "%2x", &byte), 1);
            data[i] = (uint8_t)byte;
        }
    }
    return data;
}

static decant_model *model_of(const json_t *spec)
{
    decant_model *model = NULL;
    json_t *metadata = json_object_get(spec, "metadata"), *value, *tensor;
    const char *key;
    size_t i;

    CHECK_OK(decant_model_create(&model, &err), &err);
    json_array_foreach(json_object_get(spec, "tensors"), i, tensor)
    {
        decant_tensor add = DECANT_TENSOR_INIT;
        decant_bytes *bytes = NULL;
        uint64_t shape[8], len;
        uint8_t *data;

        add.name = text_of(tensor, "name");
        add.name_len = json_string_length(json_object_get(tensor, "name"));
        add.dtype = dtype_of(tensor);
        add.rank = shape_of(tensor, shape);
        add.shape = shape;
        CHECK_OK(dcn_dtype_len(add.dtype, shape, add.rank, &len, &err), &err);
        data = data_of(tensor, len);
        CHECK_OK(decant_bytes_wrap(data, len, free, data, &bytes, &err), &err);
        CHECK_OK(decant_model_add(model, &add, bytes, &err), &err);
        decant_bytes_unref(&bytes);
    }
    json_object_foreach(metadata, key, value) model_set_text(model, key, json_string_value(value));
    return model;
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
        char file[128];
        json_t *spec = spec_of(names[i]);
        decant_model *model = model_of(spec);
        uint8_t *wanted;
        size_t len;

        snprintf(file, sizeof file, "%s.safetensors", names[i]);
        wanted = test_data(file, &len);
        check_file(model, file, wanted, len);
        decant_model_close(&model);
        json_decref(spec);
        free(wanted);
    }
}

TEST(safetensors_golden__a_file_is_read_as_the_reference_reads_it)
{
    for (size_t i = 0; i < NAMES; i++) {
        char file[128];
        decant_model *model = NULL;
        json_t *report, *spec = spec_of(names[i]), *tensor, *specs = json_object_get(spec, "tensors");
        uint8_t *bytes;
        size_t len, t, s;
        uint64_t header_len;

        snprintf(file, sizeof file, "%s.safetensors", names[i]);
        bytes = test_data(file, &len);
        report = report_of(file);
        CHECK_OK(model_open(NULL, bytes, len, NULL, false, &model, &err), &err);
        header_len = dcn_le64(bytes);
        CHECK_EQ(header_len, json_integer_value(json_object_get(report, "header_len")));
        CHECK_EQ(decant_model_count(model), json_array_size(json_object_get(report, "tensors")));
        CHECK_EQ(decant_model_value_count(model), json_object_size(json_object_get(report, "metadata")));

        json_array_foreach(json_object_get(report, "tensors"), t, tensor)
        {
            const json_t *name = json_object_get(tensor, "name"), *offsets = json_object_get(tensor, "data_offsets");
            decant_tensor found = DECANT_TENSOR_INIT;
            decant_bytes *data = NULL;
            uint64_t shape[8];
            uint8_t *read, *wanted;
            size_t index;

            CHECK_OK(decant_model_find(model, json_string_value(name), json_string_length(name), &index, &err), &err);
            decant_model_tensor(model, index, &found);
            CHECK_TEXT(decant_dtype_name(found.dtype), text_of(tensor, "dtype"));
            CHECK_EQ(found.rank, shape_of(tensor, shape));
            for (size_t k = 0; k < found.rank; k++)
                CHECK_EQ(found.shape[k], shape[k]);
            CHECK_EQ(found.len, json_integer_value(json_object_get(tensor, "len")));
            CHECK_EQ(model->entries[index].data.offset,
                     8 + header_len + (uint64_t)json_integer_value(json_array_get(offsets, 0)));

            for (s = 0; s < json_array_size(specs); s++)
                if (json_equal(json_object_get(json_array_get(specs, s), "name"), name))
                    break;
            wanted = data_of(json_array_get(specs, s), found.len);
            read = malloc(found.len + 1);
            CHECK_OK(decant_model_bytes(model, index, &data, &err), &err);
            CHECK_OK(decant_bytes_read(data, 0, read, found.len, &err), &err);
            CHECK_BYTES(read, found.len, wanted, found.len);
            decant_bytes_unref(&data);
            free(read);
            free(wanted);
        }
        check_file(model, file, bytes, len);
        decant_model_close(&model);
        json_decref(report);
        json_decref(spec);
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
