/* What safetensors has no place for is kept in its metadata and comes back; what does not fit there is refused by name. */
#include "support/alloc.h"
#include "support/burnpack.h"
#include "support/safetensors.h"
#include "support/sha256.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/endian.h"
#include "transform/transform.h"

static decant_model *model;
static decant_error err;

static const dcn_layout plain = {0}, converted = {.loaders_format = true};

static void close_model(void)
{
    decant_model_close(&model);
}

static const char *note(const char *key)
{
    for (size_t i = 0; i < model->note_count; i++)
        if (strcmp(model->notes[i].key, key) == 0)
            return model->notes[i].text;
    return "(none)";
}

/* One file as another: rendered as it is when a file of one format is made of one of another. Freed by the caller. */
static uint8_t *convert(const void *bytes, size_t len, unsigned lenient, const dcn_format *to, size_t *out_len)
{
    decant_model *opened = NULL;
    uint8_t *out = NULL;

    CHECK_OK(model_open(NULL, bytes, len, NULL, lenient, &opened, &err), &err);
    CHECK_OK(model_render(to, opened, opened->format == to->name ? &plain : &converted, &out, out_len, &err), &err);
    decant_model_close(&opened);
    return out;
}

/* The header of a safetensors file, without its padding. Lent until the next call. */
static const char *header_of(const uint8_t *file)
{
    static char text[8192];
    size_t len = dcn_le64(file);

    CHECK(len < sizeof text);
    memcpy(text, file + 8, len);
    while (len && text[len - 1] == ' ')
        len--;
    text[len] = '\0';
    return text;
}

/* --- there and back ----------------------------------------------------------------------------------------------- */

/* Those that Burn's crate wrote, but for quantized tensors. */
static const char *const names[] = {
    "empty",
    "one-f32",
    "dtypes-all",
    "ranks-0-to-8",
    "zero-size",
    "names-unicode",
    "names-long-heads",
    "three-in-caller-order",
    "param-ids",
    "metadata-strings",
    "sizes-around-256",
    "forty",
    "scalars-each-kind",
};

TEST(burnpack__comes_back_to_the_byte)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[128];
        size_t len, st_len, same_len, back_len;
        uint8_t *file, *st, *same, *back;

        snprintf(path, sizeof path, "%s.bpk", names[i]);
        file = test_data(path, &len);
        st = convert(file, len, 0, &dcn_safetensors, &st_len);
        same = convert(st, st_len, 0, &dcn_safetensors, &same_len);
        back = convert(same, same_len, 0, &dcn_burnpack, &back_len);
        CHECK_BYTES(same, same_len, st, st_len);
        CHECK_BYTES(back, back_len, file, len);
        free(back);
        free(same);
        free(st);
        free(file);
    }
}

TEST(what_is_kept__is_text_that_people_can_read)
{
    static const char metadata[] =
        "a3 'tensors' a4 'z' a4 'dtype' 'Flex32' 'shape' 8101 'data_offsets' 820004 'param_id' 1bffffffffffffffff"
        "'y' a3 'dtype' a1 'Bool' 'U8' 'shape' 8101 'data_offsets' 82190100190101"
        "'x' a4 'dtype' a1 'Bool' 'U32' 'shape' 8101 'data_offsets' 82190200190204 'param_id' 00"
        "'n' a3 'dtype' a1 'Bool' 'Native' 'shape' 8101 'data_offsets' 82190300190301"
        "'metadata' a3 'decant.id.z' 'mine' 'decant.other' 'plain' 'note' 'a'"
        "'scalars' a5 'b' a1 'Bool' f5 'f' a1 'Float' fb7ff0000000000001 'i' a1 'Int' 3b7fffffffffffffff"
        "'note' a1 'UInt' 1bffffffffffffffff 'zero' a1 'Float' f98000";
    size_t len, st_len, back_len;
    uint8_t *file = bpk_file(metadata, 769, &len), *st, *back, *again;

    again = convert(file, len, 0, &dcn_burnpack, &back_len); /* gaps are zeros: the file as it is written */
    st = convert(again, back_len, 0, &dcn_safetensors, &st_len);
    CHECK_TEXT(header_of(st),
               "{\"__metadata__\":{"
               "\"decant.added\":\"format\","
               "\"decant.dtype.x\":\"Bool(U32)\",\"decant.dtype.y\":\"Bool(U8)\",\"decant.dtype.z\":\"Flex32\","
               "\"decant.id.x\":\"0\",\"decant.id.z\":\"18446744073709551615\","
               "\"decant.order\":\"3,2,1,0\","
               "\"decant.other\":\"plain\","
               "\"decant.scalar.b\":\"bool true\",\"decant.scalar.f\":\"f64 7ff0000000000001\","
               "\"decant.scalar.i\":\"i64 -9223372036854775808\",\"decant.scalar.note\":\"u64 18446744073709551615\","
               "\"decant.scalar.zero\":\"f64 8000000000000000\","
               "\"decant.text.decant.id.z\":\"mine\","
               "\"format\":\"pt\",\"note\":\"a\"},"
               "\"z\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
               "\"x\":{\"dtype\":\"U32\",\"shape\":[1],\"data_offsets\":[4,8]},"
               "\"y\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[8,9]},"
               "\"n\":{\"dtype\":\"BOOL\",\"shape\":[1],\"data_offsets\":[9,10]}}");

    back = convert(st, st_len, 0, &dcn_burnpack, &len);
    CHECK_BYTES(back, len, again, back_len);

    CHECK_OK(model_open(NULL, st, st_len, NULL, 0, &model, &err), &err);
    CHECK_EQ(model->value_count, 4 + 5);
    CHECK_EQ(model->entries[0].dtype, DECANT_FLEX32);
    CHECK_TEXT(note("odd"), "(none)");
    CHECK_TEXT(openers_text(&model->openers), "safetensors; transformers");
    close_model();
    free(again);
    free(back);
    free(st);
    free(file);
}

/* Nothing is added where there is nothing to keep. */
TEST(nothing__is_kept_of_what_has_its_place)
{
    static const char metadata[] = "a2 'tensors' a2 'a' a3 'dtype' 'F32' 'shape' 8101 'data_offsets' 820004"
                                   "'b' a3 'dtype' 'U8' 'shape' 8101 'data_offsets' 82190100190101 "
                                   "'metadata' a1 'format' 'pt'";
    size_t len, st_len;
    uint8_t *file = bpk_file(metadata, 257, &len), *st = convert(file, len, 0, &dcn_safetensors, &st_len);

    CHECK_TEXT(header_of(st), "{\"__metadata__\":{\"format\":\"pt\"},"
                              "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
                              "\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[4,5]}}");
    free(st);
    free(file);
}

/* A model that was made of it still knows; metadata that is set is the caller's. */
TEST(what_was_added__is_known_through_transforms_until_it_is_set)
{
    static const char *const no_prefix[] = {NULL};
    static const decant_setting setting = {.text = "format=pt"};
    decant_transform_options options = DECANT_TRANSFORM_OPTIONS_INIT;
    decant_model *made = NULL;
    size_t len, st_len, back_len;
    uint8_t *file = test_data("three-in-caller-order.bpk", &len), *st, *back;

    st = convert(file, len, 0, &dcn_safetensors, &st_len);
    CHECK_OK(model_open(NULL, st, st_len, NULL, 0, &model, &err), &err);
    CHECK_OK(dcn_transform((const decant_model *const *)&model, no_prefix, 1, &options, &made, &err), &err);
    CHECK_OK(model_render(&dcn_burnpack, made, &converted, &back, &back_len, &err), &err);
    CHECK_BYTES(back, back_len, file, len);
    decant_model_close(&made);
    free(back);

    options.set = &setting;
    options.set_count = 1;
    CHECK_OK(dcn_transform((const decant_model *const *)&model, no_prefix, 1, &options, &made, &err), &err);
    CHECK(!made->for_loaders && made->ordered);
    decant_model_close(&made);
    close_model();
    free(st);
    free(file);
}

/* Empty tensors of several dtypes lie in one place, and are found there by their names. */
TEST(order__of_empty_tensors_comes_back)
{
    static const char metadata[] = "a1 'tensors' a4 'a' a3 'dtype' 'U8' 'shape' 8100 'data_offsets' 82190100190100"
                                   "'b' a3 'dtype' 'F32' 'shape' 8101 'data_offsets' 82190100190104"
                                   "'z' a3 'dtype' 'F32' 'shape' 8100 'data_offsets' 820000"
                                   "'y' a3 'dtype' 'U8' 'shape' 8100 'data_offsets' 82190200190200";
    size_t len, written_len, st_len, back_len;
    uint8_t *file = bpk_file(metadata, 512, &len), *written = convert(file, len, 0, &dcn_burnpack, &written_len);
    uint8_t *st = convert(written, written_len, 0, &dcn_safetensors, &st_len);
    uint8_t *back = convert(st, st_len, 0, &dcn_burnpack, &back_len);

    CHECK_BYTES(back, back_len, written, written_len);
    free(back);
    free(st);
    free(written);
    free(file);
}

/* Of a model that was built by hand ids are kept, and its order is that of the format. */
TEST(a_model_built_by_hand__has_no_order_to_keep)
{
    static const uint64_t shape[] = {1};
    static const decant_value step = {.type = DECANT_VALUE_U64, .as.u64 = 3};
    size_t len;
    uint8_t *file;

    CHECK_OK(decant_model_create(&model, &err), &err);
    model_add(model, "b", DECANT_U8, 1, shape, NULL, "x", 1);
    model_add(model, "a", DECANT_F32, 1, shape, NULL, "abcd", 4);
    model->entries[0].has_id = true;
    model->entries[0].id = 7;
    CHECK_OK(decant_model_set(model, "step", 4, &step, &err), &err);
    CHECK_OK(model_render(&dcn_safetensors, model, &plain, &file, &len, &err), &err);
    CHECK_TEXT(header_of(file), "{\"__metadata__\":{\"decant.id.b\":\"7\",\"decant.scalar.step\":\"u64 3\"},"
                                "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
                                "\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[4,5]}}");
    close_model();
    free(file);
}

/* --- what does not fit -------------------------------------------------------------------------------------------- */

#define TWO                                                           \
    "\"t\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}," \
    "\"u\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[4,5]}"

static const struct {
    const char *key, *text, *words;
} wrong[] = {
    {"decant.id.x", "1", "is of a tensor that is not there"},
    {"decant.id.", "1", "is of a tensor that is not there"},
    {"decant.id.t", "", "is no number of 64 bits, found ''"},
    {"decant.id.t", "-1", "is no number of 64 bits, found '-1'"},
    {"decant.id.t", "+1", "is no number"},
    {"decant.id.t", " 1", "is no number"},
    {"decant.id.t", "01", "is no number"},
    {"decant.id.t", "1.0", "is no number"},
    {"decant.id.t", "0x1", "is no number"},
    {"decant.id.t", "18446744073709551616", "is no number"},
    {"decant.dtype.x", "Flex32", "is of a tensor that is not there"},
    {"decant.dtype.t", "F16", "names no dtype that is kept so, found 'F16'"},
    {"decant.dtype.t", "QFloat", "names no dtype"},
    {"decant.dtype.t", "flex32", "names no dtype"},
    {"decant.dtype.t", "Bool(U8)", "stands for bytes of U8, and the tensor is of F32"},
    {"decant.dtype.u", "Flex32", "stands for bytes of F32, and the tensor is of U8"},
    {"decant.dtype.u", "Bool(U32)", "stands for bytes of U32"},
    {"decant.scalar.s", "", "is no scalar"},
    {"decant.scalar.s", "bool", "is no scalar"},
    {"decant.scalar.s", "bool yes", "is no scalar"},
    {"decant.scalar.s", "i64 9223372036854775808", "is no scalar"},
    {"decant.scalar.s", "i64 -9223372036854775809", "is no scalar"},
    {"decant.scalar.s", "i64 -0", "is no scalar"},
    {"decant.scalar.s", "i64 -", "is no scalar"},
    {"decant.scalar.s", "u64 -1", "is no scalar"},
    {"decant.scalar.s", "u64  1", "is no scalar"},
    {"decant.scalar.s", "f64 1.0", "is no scalar"},
    {"decant.scalar.s", "f64 3FF0000000000000", "is no scalar"},
    {"decant.scalar.s", "f64 3ff000000000000", "is no scalar"},
    {"decant.scalar.s", "f64 3ff00000000000000", "is no scalar"},
    {"decant.scalar.s", "text a", "is no scalar"},
    {"decant.text.note", "a", "is of metadata that needs no keeping"},
    {"decant.text.", "a", "is of metadata that needs no keeping"},
    {"decant.order", "", "is no order of the tensors that there are"},
    {"decant.order", "0", "is no order"},
    {"decant.order", "0,0", "is no order"},
    {"decant.order", "0,2", "is no order"},
    {"decant.order", "1,0,", "is no order"},
    {"decant.order", "1,0,2", "is no order"},
    {"decant.order", "1;0", "is no order"},
    {"decant.order", "1,,0", "is no order"},
    {"decant.added", "format", "says that format = pt was added, and it is not there"},
    {"decant.added", "note", "names no metadata that is added"},
};

TEST(a_key_that_does_not_fit__is_refused_by_name_or_taken_as_it_is)
{
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char header[512], key[96];
        size_t len, out_len, again_len;
        uint8_t *file, *out, *again;

        snprintf(header, sizeof header, "{\"__metadata__\":{\"%s\":\"%s\"}," TWO "}", wrong[i].key, wrong[i].text);
        file = st_file(header, 5, &len);
        CHECK_FAILS(model_open(NULL, file, len, NULL, DECANT_LENIENT_ALL & ~DECANT_LENIENT_KEPT_KEYS, &model, &err),
                    DECANT_MALFORMED, &err);
        snprintf(key, sizeof key, "metadata key '%s' ", wrong[i].key);
        CHECK_HAS(decant_error_text(&err), key);
        CHECK_HAS(decant_error_text(&err), wrong[i].words);
        CHECK_HAS(err.hint, "--lenient");

        err = (decant_error){0};
        CHECK_OK(model_open(NULL, file, len, NULL, DECANT_LENIENT_KEPT_KEYS, &model, &err), &err);
        CHECK_EQ(err.status, DECANT_OK);
        CHECK(model->entries[0].id == 0 && !model->entries[0].has_id && model->entries[0].dtype == DECANT_F32);
        CHECK_TEXT(note("odd"), "1 metadata key of decant's that does not fit, taken as plain metadata");
        CHECK_EQ(model->value_count, 1);
        CHECK_BYTES(model->values[0].key, model->values[0].key_len, wrong[i].key, strlen(wrong[i].key));
        CHECK_BYTES(model->values[0].value.as.text.data, model->values[0].value.as.text.len, wrong[i].text,
                    strlen(wrong[i].text));
        close_model();

        /* written again it is kept as the metadata that it was taken for, and is not wrong any more */
        out = convert(file, len, DECANT_LENIENT_KEPT_KEYS, &dcn_safetensors, &out_len);
        CHECK_HAS(header_of(out), "\"decant.text.decant.");
        again = convert(out, out_len, 0, &dcn_safetensors, &again_len);
        CHECK_BYTES(again, again_len, out, out_len);
        free(again);
        free(out);
        free(file);
    }
}

TEST(what_was_added__is_left_out_only_while_it_is_what_was_added)
{
    static const char header[] = "{\"__metadata__\":{\"decant.added\":\"format\",\"format\":\"tf\"}," TWO "}";

    CHECK_FAILS(st_open(header, 5, false, &model, &err), DECANT_MALFORMED, &err);
    CHECK_OK(st_open(header, 5, true, &model, &err), &err);
    CHECK(!model->for_loaders);
    CHECK_EQ(model->value_count, 2);
    close_model();
}

/* There may be as many ids as tensors: what limits metadata does not limit them. */
TEST(ids__are_not_limited_as_metadata_is)
{
    static const char header[] = "{\"__metadata__\":{\"decant.id.t\":\"1\",\"decant.id.u\":\"2\",\"a\":\"b\"}," TWO "}";
    dcn_limits limits = dcn_limits_of(false);
    size_t len;
    uint8_t *file = st_file(header, 5, &len);

    limits.values = 1;
    CHECK_OK(model_open(NULL, file, len, &limits, 0, &model, &err), &err);
    CHECK(model->entries[0].id == 1 && model->entries[1].id == 2);
    close_model();
    limits.values = 0;
    CHECK_FAILS(model_open(NULL, file, len, &limits, 0, &model, &err), DECANT_LIMIT, &err);
    free(file);
}

TEST(restoring__without_memory_fails_and_leaves_nothing)
{
    static const char header[] =
        "{\"__metadata__\":{\"decant.dtype.t\":\"Flex32\",\"decant.id.t\":\"1\",\"decant.order\":\"1,0\","
        "\"decant.scalar.s\":\"u64 1\",\"decant.text.decant.order\":\"x\"}," TWO "}";
    size_t len;
    uint8_t *file = st_file(header, 5, &len);

    check_opens_or_leaves_nothing(&dcn_safetensors, file, len, DECANT_LENIENT_ALL);
    free(file);
}
