/* What the index takes and what it refuses: all that the reference checks, and where it is laxer than it should be. */
#include "support/safetensors.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/endian.h"
#include "support/alloc.h"

#define ONE "{\"t\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}"

static decant_error err;

/* That a header over `data` bytes opens with so many tensors. */
static void takes(const char *header, size_t data, size_t tensors)
{
    decant_model *model = NULL;

    err = (decant_error){0};
    CHECK_OK(st_open(header, data, false, &model, &err), &err);
    CHECK_EQ(decant_model_count(model), tensors);
    decant_model_close(&model);
}

/* That it is refused in these words. */
static void refuses(const char *header, size_t data, decant_status wanted, const char *words)
{
    decant_model *model = NULL;

    err = (decant_error){0};
    CHECK_FAILS(st_open(header, data, false, &model, &err), wanted, &err);
    CHECK(!model);
    CHECK_HAS(decant_error_text(&err), words);
    CHECK_EQ(err.side, DECANT_SIDE_INPUT);
    CHECK_TEXT(err.path, "memory");
}

/* That only leniency takes it, and says so in a note. */
static void takes_leniently(const char *header, size_t data, size_t tensors, const char *words)
{
    decant_model *model = NULL;
    const char *key, *text;

    CHECK(st_open(header, data, false, &model, &err) != DECANT_OK);
    CHECK_OK(st_open(header, data, true, &model, &err), &err);
    CHECK_EQ(decant_model_count(model), tensors);
    for (size_t i = 0;; i++) {
        CHECK_OK(decant_model_note(model, i, &key, &text), &err);
        if (strcmp(key, "odd") == 0 && strcmp(text, words) == 0)
            break;
    }
    decant_model_close(&model);
}

static void refuses_file(const void *file, size_t len, decant_status wanted, const char *words)
{
    decant_model *model = NULL;

    err = (decant_error){0};
    CHECK_FAILS(model_open(&dcn_safetensors, file, len, NULL, false, &model, &err), wanted, &err);
    CHECK_HAS(decant_error_text(&err), words);
}

static const char *note_of(const char *header, size_t data, const char *wanted)
{
    static char copy[256];
    decant_model *model = NULL;
    const char *key, *text = NULL;

    CHECK_OK(st_open(header, data, false, &model, &err), &err);
    for (size_t i = 0; decant_model_note(model, i, &key, &text) == DECANT_OK && strcmp(key, wanted) != 0; i++)
        text = NULL;
    snprintf(copy, sizeof copy, "%s", text ? text : "(none)");
    decant_model_close(&model);
    return copy;
}

TEST(safetensors_index__reads_names_shapes_and_places)
{
    const char header[] = "{\"b\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[4,12]},"
                          "\"__metadata__\":{\"k\":\"v\\n\"},"
                          "\"\\u0061\":{\"data_offsets\":[0,4],\"shape\":[],\"dtype\":\"I32\"}}  ";
    decant_model *model = NULL;
    decant_tensor tensor = DECANT_TENSOR_INIT;
    decant_bytes *bytes = NULL;
    decant_value value;
    const char *key;
    uint8_t data[12], wanted[12];
    size_t key_len, index;

    CHECK_OK(st_open(header, 12, false, &model, &err), &err);
    CHECK_EQ(decant_model_count(model), 2);
    CHECK_TEXT(decant_model_format(model), "safetensors");

    /* in the order of the data */
    decant_model_tensor(model, 0, &tensor);
    CHECK_BYTES(tensor.name, tensor.name_len, "a", 1);
    CHECK_EQ(tensor.dtype, DECANT_I32);
    CHECK_EQ(tensor.rank, 0);
    CHECK_EQ(tensor.len, 4);
    decant_model_tensor(model, 1, &tensor);
    CHECK_BYTES(tensor.name, tensor.name_len, "b", 1);
    CHECK_EQ(tensor.dtype, DECANT_F32);
    CHECK_EQ(tensor.rank, 2);
    CHECK_EQ(tensor.shape[0], 2);
    CHECK_EQ(tensor.shape[1], 1);
    CHECK(!tensor.has_id);
    CHECK_OK(decant_model_find(model, "b", 1, &index, &err), &err);
    CHECK_EQ(index, 1);

    CHECK_OK(decant_model_bytes(model, 1, &bytes, &err), &err);
    CHECK_OK(decant_bytes_read(bytes, 0, data, 8, &err), &err);
    test_stream(1, wanted, sizeof wanted);
    CHECK_BYTES(data, 8, wanted + 4, 8);
    decant_bytes_unref(&bytes);

    CHECK_EQ(decant_model_value_count(model), 1);
    decant_model_value(model, 0, &key, &key_len, &value);
    CHECK_BYTES(key, key_len, "k", 1);
    CHECK_EQ(value.type, DECANT_VALUE_TEXT);
    CHECK_BYTES(value.as.text.data, value.as.text.len, "v\n", 2);
    decant_model_close(&model);
}

/* A file of which every read is counted, and the furthest one kept. */
typedef struct watched {
    const uint8_t *file;
    unsigned reads;
    uint64_t furthest;
} watched;

static decant_status read_watched(void *ctx, uint64_t offset, void *dst, size_t len, decant_error *error)
{
    watched *w = ctx;

    (void)error;
    memcpy(dst, w->file + offset, len);
    w->reads++;
    w->furthest = offset + len > w->furthest ? offset + len : w->furthest;
    return DECANT_OK;
}

TEST(safetensors_index__takes_three_reads_and_leaves_data_alone)
{
    enum { DATA = 100000, HEADER = 5000 };
    char header[HEADER + 1];
    size_t len;
    uint8_t *file;
    watched w = {0};
    dcn_source *source = NULL;
    dcn_limits limits = dcn_limits_of(false);
    dcn_input in = {.name = "memory"};
    decant_model *model = NULL;

    snprintf(header, sizeof header, "%-*s", HEADER,
             "{\"t\":{\"dtype\":\"U8\",\"shape\":[100000],\"data_offsets\":[0,100000]}}");
    file = st_file(header, DATA, &len);
    w.file = file;
    CHECK_OK(dcn_source_from_reader(
                 &(decant_reader){.size = sizeof(decant_reader), .len = len, .read = read_watched, .ctx = &w}, "memory",
                 &source, &err),
             &err);
    CHECK_OK(dcn_bytes_from_source(source, &in.bytes, &err), &err);
    CHECK_OK(dcn_format_open(&in, NULL, &limits, false, &model, &err), &err);
    CHECK_EQ(decant_model_count(model), 1);
    CHECK(w.reads <= 3);
    CHECK_EQ(w.furthest, 8 + HEADER);
    decant_model_close(&model);
    decant_bytes_unref(&in.bytes);
    free(file);
}

TEST(safetensors_index__takes_every_form_that_the_format_allows)
{
    takes("{}", 0, 0);
    takes("{}      ", 0, 0);
    takes(" \t\r\n{}\n\r\t ", 0, 0); /* the reference takes whitespace in front, against its own text */
    takes(ONE, 4, 1);
    takes("{\"__metadata__\":null,"
          "\"t\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}",
          4, 1);
    takes("{\"t\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},\"__metadata__\":{}}", 4, 1);
    takes("{\"__metadata__\":{\"\":\"\",\"a\":\"b\"}}", 0, 0);
    takes("{\"\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}", 1, 1); /* a name may be empty */
    takes("{\"b\":{\"dtype\":\"F4\",\"shape\":[2],\"data_offsets\":[4,5]},"
          "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
          5, 2);
    takes("{\"t\":{\"dtype\":\"F6_E2M3\",\"shape\":[4],\"data_offsets\":[0,3]}}", 3, 1);
    /* empty tensors: at the start, in the middle, at the end, several at a place */
    takes("{\"z\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]},"
          "\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
          "\"b\":{\"dtype\":\"F32\",\"shape\":[3,0],\"data_offsets\":[2,2]},"
          "\"0\":{\"dtype\":\"F64\",\"shape\":[0],\"data_offsets\":[2,2]},"
          "\"c\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[2,3]},"
          "\"d\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[3,3]}}",
          3, 6);
    /* a shape with a zero is empty, however large the rest: the reference depends on the order */
    takes("{\"t\":{\"dtype\":\"F32\",\"shape\":[18446744073709551615,2,0],\"data_offsets\":[0,0]}}", 0, 1);
    takes("{\"t\":{\"dtype\":\"F32\",\"shape\":[0,18446744073709551615,2],\"data_offsets\":[0,0]}}", 0, 1);
}

TEST(safetensors_index__knows_every_dtype_by_its_exact_name)
{
    static const struct {
        const char *name;
        decant_dtype dtype;
        unsigned bits;
    } dtypes[] = {
        {"BOOL", DECANT_BOOL, 8},
        {"F4", DECANT_F4, 4},
        {"F6_E2M3", DECANT_F6_E2M3, 6},
        {"F6_E3M2", DECANT_F6_E3M2, 6},
        {"U8", DECANT_U8, 8},
        {"I8", DECANT_I8, 8},
        {"F8_E5M2", DECANT_F8_E5M2, 8},
        {"F8_E4M3", DECANT_F8_E4M3, 8},
        {"F8_E8M0", DECANT_F8_E8M0, 8},
        {"F8_E4M3FNUZ", DECANT_F8_E4M3FNUZ, 8},
        {"F8_E5M2FNUZ", DECANT_F8_E5M2FNUZ, 8},
        {"I16", DECANT_I16, 16},
        {"U16", DECANT_U16, 16},
        {"F16", DECANT_F16, 16},
        {"BF16", DECANT_BF16, 16},
        {"I32", DECANT_I32, 32},
        {"U32", DECANT_U32, 32},
        {"F32", DECANT_F32, 32},
        {"C64", DECANT_C64, 64},
        {"F64", DECANT_F64, 64},
        {"I64", DECANT_I64, 64},
        {"U64", DECANT_U64, 64},
    };
    static const char *const unknown[] = {"I4",   "F128",   "f32",    "F32 ", "",
                                          "Bool", "QFloat", "Flex32", "F3",   "Bool(U8)"};
    char header[128], words[64];

    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        decant_model *model = NULL;
        decant_tensor tensor = DECANT_TENSOR_INIT;

        snprintf(header, sizeof header, "{\"t\":{\"dtype\":\"%s\",\"shape\":[4],\"data_offsets\":[0,%u]}}",
                 dtypes[i].name, dtypes[i].bits / 2);
        CHECK_OK(st_open(header, dtypes[i].bits / 2, false, &model, &err), &err);
        decant_model_tensor(model, 0, &tensor);
        CHECK_EQ(tensor.dtype, dtypes[i].dtype);
        decant_model_close(&model);
    }
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        snprintf(header, sizeof header, "{\"t\":{\"dtype\":\"%s\",\"shape\":[4],\"data_offsets\":[0,4]}}", unknown[i]);
        snprintf(words, sizeof words, "tensor 't': unknown dtype '%s'", unknown[i]);
        refuses(header, 4, DECANT_UNSUPPORTED, words);
    }
}

/* Reference: HeaderTooSmall, InvalidHeaderLength, HeaderTooLarge. */
TEST(safetensors_index__refuses_files_shorter_than_their_header)
{
    uint8_t file[64] = {0};

    refuses_file("", 0, DECANT_TRUNCATED, "the file is empty");
    refuses_file(file, 7, DECANT_TRUNCATED, "the file has 7 bytes");
    dcn_put_le(file, 57, 8);
    refuses_file(file, sizeof file, DECANT_TRUNCATED, "the file has 64 bytes, its header ends at byte 65");
}

/* SE-03, SE-04: a length is compared with what is there before anything is made of it. */
TEST(safetensors_index__SE_03_SE_04_no_length_is_believed)
{
    static const uint64_t lengths[] = {
        0, 1, 57, 64, 65, UINT64_C(1) << 31, UINT64_C(1) << 32, UINT64_MAX / 2, UINT64_MAX - 8, UINT64_MAX};
    uint8_t file[64] = {0};

    test_alloc_reset_peak();
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        decant_model *model = NULL;

        memset(file, ' ', sizeof file);
        file[8] = '{';
        dcn_put_le(file, lengths[i], 8);
        CHECK(model_open(&dcn_safetensors, file, sizeof file, NULL, false, &model, &err) != DECANT_OK);
        CHECK(model_open(NULL, file, sizeof file, NULL, false, &model, &err) != DECANT_OK);
    }
    CHECK(test_alloc_peak() < 64 << 10);
}

/* SE-04: what the parser must survive. Reference: InvalidHeader, InvalidHeaderDeserialization. */
TEST(safetensors_index__SE_04_refuses_headers_that_are_no_json_object)
{
    static const char *const headers[] = {
        "",
        " ",
        "        ",
        "[]",
        "null",
        "{",
        "}",
        "{}x",
        "{},",
        "\xef\xbb\xbf{}",
        "{/**/}",
        "{\"a\":1,}",
        "{}{}",
        "\"a\"",
        "{\"\xff\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}",
        "{\"\\ud800\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}",
        "{\"a\nb\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}",
        "{\"t\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},}",
        "{\"t\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4],}}",
        "{\"t\":{\"dtype\":\"U8\",\"shape\":[4,],\"data_offsets\":[0,4]}}",
        "{\"t\":1}",
        "{\"t\":null}",
        "{\"t\":\"U8\"}",
        "{\"t\":[\"U8\",[4],[0,4]]}", /* taken by the reference */
        "{\"t\":[\"U8\",[4],[0,4],0]}",
        "{\"t\":{\"dtype\":{\"U8\":null},\"shape\":[4],\"data_offsets\":[0,4]}}", /* taken by the reference */
        "{\"t\":{\"dtype\":null,\"shape\":[4],\"data_offsets\":[0,4]}}",
        "{\"t\":{\"dtype\":\"U8\",\"shape\":4,\"data_offsets\":[0,4]}}",
        "{\"t\":{\"dtype\":\"U8\",\"shape\":[[4]],\"data_offsets\":[0,4]}}",
        "{\"t\":{\"dtype\":\"U8\",\"shape\":[\"4\"],\"data_offsets\":[0,4]}}",
        "{\"t\":{\"dtype\":\"U8\",\"shape\":[4.0],\"data_offsets\":[0,4]}}",
        "{\"t\":{\"dtype\":\"U8\",\"shape\":[4e0],\"data_offsets\":[0,4]}}",
        "{\"t\":{\"dtype\":\"U8\",\"shape\":[-4],\"data_offsets\":[0,4]}}",
        "{\"t\":{\"dtype\":\"U8\",\"shape\":[04],\"data_offsets\":[0,4]}}",
        "{\"t\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[-0,4]}}",
        "{\"t\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,1e400]}}",
        "{\"t\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,18446744073709551616]}}",
        "{\"t\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":null}}",
        "{\"__metadata__\":[]}",
        "{\"__metadata__\":\"x\"}",
        "{\"__metadata__\":{\"a\":1}}",
        "{\"__metadata__\":{\"a\":null}}",
        "{\"__metadata__\":{\"a\":{}}}",
    };

    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        decant_model *model = NULL;

        if (st_open(headers[i], 4, false, &model, &err) != DECANT_MALFORMED)
            test_fail(__FILE__, __LINE__, "%s gives: %s", headers[i], model ? "a model" : decant_error_text(&err));
        if (st_open(headers[i], 4, true, &model, &err) == DECANT_OK)
            test_fail(__FILE__, __LINE__, "%s is taken leniently", headers[i]);
    }
    refuses_file("\4\0\0\0\0\0\0\0{}\0 ", 12, DECANT_MALFORMED, "unexpected JSON at byte 10, found the byte 0x00");
}

TEST(safetensors_index__SE_04_nesting_is_bounded)
{
    enum { DEEP = 100000 };
    static const char head[] = "{\"t\":{\"x\":";
    char *header = malloc(sizeof head + 2 * DEEP);
    decant_model *model = NULL;

    CHECK(header);
    memcpy(header, head, sizeof head);
    memset(header + sizeof head - 1, '[', DEEP);
    header[sizeof head - 1 + DEEP] = '\0';
    CHECK_FAILS(st_open(header, 0, true, &model, &err), DECANT_LIMIT, &err);
    CHECK_FAILS(st_open(header, 0, false, &model, &err), DECANT_MALFORMED, &err);
    free(header);
}

TEST(safetensors_index__says_where_json_breaks)
{
    refuses("{\"a\":1}", 0, DECANT_MALFORMED,
            "memory: tensor 'a': unexpected JSON at byte 13, found '1', expected an object");
    CHECK_EQ(err.offset, 13);
}

/* FR-06, SE-07. Reference: TensorInvalidInfo, ValidationOverflow, MisalignedSlice. */
TEST(safetensors_index__FR_06_SE_07_refuses_shapes_that_are_not_what_the_offsets_hold)
{
    refuses("{\"t\":{\"dtype\":\"F32\",\"shape\":[1000,1000],\"data_offsets\":[0,4]}}", 4, DECANT_MALFORMED,
            "tensor 't': data_offsets do not hold shape [1000, 1000] of F32, found 4 bytes, expected 4000000");
    refuses("{\"t\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,4]}}", 8, DECANT_MALFORMED,
            "tensor 't': data_offsets run backwards, found [8, 4]");
    refuses("{\"t\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,4]}}", 4, DECANT_MALFORMED,
            "tensor 't': data_offsets are not two numbers");
    refuses("{\"t\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4]}}", 4, DECANT_MALFORMED, "not two numbers");
    refuses("{\"t\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[]}}", 4, DECANT_MALFORMED, "not two numbers");
    refuses("{\"t\":{\"dtype\":\"F32\",\"shape\":[8589934592,8589934592],\"data_offsets\":[0,4]}}", 4, DECANT_MALFORMED,
            "overflows 64 bits");
    refuses("{\"t\":{\"dtype\":\"F64\",\"shape\":[2305843009213693952],\"data_offsets\":[0,0]}}", 0, DECANT_MALFORMED,
            "overflows 64 bits");
    refuses("{\"t\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,2]}}", 2, DECANT_MALFORMED,
            "end inside a byte");
    refuses("{\"t\":{\"dtype\":\"F6_E3M2\",\"shape\":[2],\"data_offsets\":[0,2]}}", 2, DECANT_MALFORMED,
            "end inside a byte");
    refuses("{\"t\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,4]}}", 4, DECANT_MALFORMED,
            "found 4 bytes, expected 0");
    refuses("{\"t\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,0]}}", 0, DECANT_MALFORMED,
            "found 0 bytes, expected 1");
}

/* Reference: MetadataIncompleteBuffer. */
TEST(safetensors_index__names_the_tensor_that_a_cut_file_lacks)
{
    const char header[] = "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
                          "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,8]}}";
    char words[128];

    snprintf(words, sizeof words,
             "memory: tensor 'b': the file has %zu bytes, this tensor ends at byte %zu; fetch the rest",
             8 + strlen(header) + 7, 8 + strlen(header) + 8);
    refuses(header, 7, DECANT_TRUNCATED, words);
    snprintf(words, sizeof words, "tensor 'a': the file has %zu bytes, this tensor ends at byte",
             8 + strlen(header) + 3);
    refuses(header, 3, DECANT_TRUNCATED, words);
    refuses("{\"t\":{\"dtype\":\"U8\",\"shape\":[1152921504606846976],\"data_offsets\":[0,1152921504606846976]}}", 4,
            DECANT_TRUNCATED, "this tensor ends at byte 1152921504606847073");
    refuses("{\"t\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[5,5]}}", 4, DECANT_TRUNCATED, "tensor 't'");
}

/* Reference: InvalidOffset. */
TEST(safetensors_index__refuses_holes_and_overlaps)
{
    refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,8]}}", 8, DECANT_MALFORMED,
            "tensor 'a': a hole before the data, found offset 4, expected 0, where data starts");
    refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
            "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[3,5]}}",
            5, DECANT_MALFORMED,
            "tensor 'b': a hole before the data, found offset 3, expected 2, where tensor 'a' ends");
    refuses("{\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[2,6]},"
            "\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}",
            6, DECANT_MALFORMED, "tensor 'b': the data overlaps, found offset 2, expected 4");
    refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
            "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}",
            4, DECANT_MALFORMED, "the data overlaps");
    refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
            "\"b\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[2,2]}}",
            4, DECANT_MALFORMED, "tensor 'b': the data overlaps");
}

TEST(safetensors_index__takes_two_names_of_one_tensor_only_leniently)
{
    const char tied[] = "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
                        "\"c\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[4,5]},"
                        "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}";

    refuses(tied, 5, DECANT_MALFORMED, "tensor 'b': lies on the data of tensor 'a'; open it leniently");
    takes_leniently(tied, 5, 3, "1 tensor on the data of another");
}

/* FR-10 */
TEST(safetensors_index__FR_10_refuses_bytes_after_the_data_unless_lenient)
{
    char words[128];

    snprintf(words, sizeof words, "memory: 16 unexpected bytes after tensor data at offset %zu; open it leniently",
             8 + strlen(ONE) + 4);
    refuses(ONE, 20, DECANT_MALFORMED, words);
    refuses("{}", 4096, DECANT_MALFORMED, "4096 unexpected bytes after tensor data at offset 10");
    takes_leniently(ONE, 20, 1, "16 bytes after the data");
    takes_leniently("{}", 1, 0, "1 byte after the data");
}

/* FR-07: two equal keys are told apart from bad offsets, however they are spelled. */
TEST(safetensors_index__FR_07_refuses_duplicate_keys)
{
    refuses("{\"k\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
            "\"k\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,8]}}",
            8, DECANT_DUPLICATE, "tensor 'k': two tensors have this name");
    refuses("{\"k\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
            "\"\\u006b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}",
            4, DECANT_DUPLICATE, "tensor 'k': two tensors have this name");
    refuses("{\"k\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},"
            "\"k\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}",
            4, DECANT_DUPLICATE, "tensor 'k': two tensors have this name");
    refuses("{\"__metadata__\":{},\"__metadata__\":{}}", 0, DECANT_DUPLICATE, "duplicate key '__metadata__'");
    refuses("{\"__metadata__\":null,\"__metad\\u0061ta__\":{}}", 0, DECANT_DUPLICATE, "duplicate key '__metadata__'");
    refuses("{\"t\":{\"dtype\":\"U8\",\"shape\":[4],\"dtype\":\"U8\",\"data_offsets\":[0,4]}}", 4, DECANT_DUPLICATE,
            "tensor 't': duplicate field 'dtype' at byte 47");
    refuses("{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}", 0, DECANT_DUPLICATE, "a");
    takes_leniently("{\"__metadata__\":{\"a\":\"1\",\"\\u0061\":\"2\"}}", 0, 0, "1 repeated metadata key");
}

TEST(safetensors_index__names_the_field_that_is_missing)
{
    refuses("{\"t\":{\"shape\":[4],\"data_offsets\":[0,4]}}", 4, DECANT_MALFORMED,
            "tensor 't': no field 'dtype' at byte 47");
    refuses("{\"t\":{\"dtype\":\"U8\",\"data_offsets\":[0,4]}}", 4, DECANT_MALFORMED, "tensor 't': no field 'shape'");
    refuses("{\"t\":{\"dtype\":\"U8\",\"shape\":[4]}}", 4, DECANT_MALFORMED, "tensor 't': no field 'data_offsets'");
    refuses("{\"t\":{}}", 0, DECANT_MALFORMED, "tensor 't': no field 'dtype'");
}

TEST(safetensors_index__takes_unknown_fields_only_leniently)
{
    const char header[] =
        "{\"t\":{\"dtype\":\"U8\",\"x\":[1,{\"y\":[null,-1.5e3,\"\\n\"]}],\"shape\":[4],\"data_offsets\":[0,4]}}";

    refuses(header, 4, DECANT_MALFORMED, "tensor 't': unknown field 'x' at byte 31; open it leniently");
    takes_leniently(header, 4, 1, "1 unknown field");
}

TEST(safetensors_index__refuses_names_that_hold_a_nul)
{
    refuses("{\"a\\u0000b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", 4, DECANT_MALFORMED, "NUL");
}

/* FR-09 */
TEST(safetensors_index__FR_09_reads_data_at_odd_offsets_and_says_so)
{
    /* a header of 1 modulo 8, and an F32 behind three F16 */
    char header[160];
    decant_model *model = NULL;
    decant_bytes *bytes = NULL;
    uint8_t data[16], wanted[22];

    snprintf(header, sizeof header, "%-137s",
             "{\"a\":{\"dtype\":\"F16\",\"shape\":[3],\"data_offsets\":[0,6]},"
             "\"b\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[6,22]}}");
    CHECK_EQ(strlen(header) % 8, 1);
    CHECK_TEXT(note_of(header, 22, "layout"), "aligned to 1, no gaps");
    CHECK_OK(st_open(header, 22, false, &model, &err), &err);
    CHECK_OK(decant_model_bytes(model, 1, &bytes, &err), &err);
    CHECK_OK(decant_bytes_read(bytes, 0, data, sizeof data, &err), &err);
    test_stream(1, wanted, sizeof wanted);
    CHECK_BYTES(data, sizeof data, wanted + 6, 16);
    decant_bytes_unref(&bytes);
    decant_model_close(&model);
}

static const char *openers_of(const char *header)
{
    decant_model *model = NULL;
    const char *text;

    CHECK_OK(st_open(header, 0, false, &model, &err), &err);
    text = openers_text(&model->openers);
    decant_model_close(&model);
    return text;
}

TEST(safetensors_index__notes_alignment_and_readers)
{
    char header[256];

    snprintf(header, sizeof header, "%-120s", ONE); /* data at 128 */
    CHECK_TEXT(note_of(header, 4, "layout"), "aligned to 128, no gaps");
    CHECK_TEXT(note_of("{}", 0, "layout"), "(none)");
    CHECK_TEXT(openers_of("{}"), "safetensors; transformers: no metadata format = pt");
    CHECK_TEXT(openers_of("{\"__metadata__\":{\"format\":\"pt\"}}"), "safetensors; transformers");
    CHECK_TEXT(openers_of("{\"__metadata__\":{\"format\":\"np\"}}"),
               "safetensors; transformers: no metadata format = pt");
}

TEST(safetensors_index__names_the_metadata_that_is_no_text)
{
    refuses("{\"__metadata__\":{\"a\":\"b\",\"epoch\":3}}", 0, DECANT_MALFORMED,
            "metadata 'epoch': unexpected JSON at byte 41, found '3', expected a string; metadata of safetensors is "
            "text alone");
    refuses("{\"__metadata__\":{\"e\":{\"a\":\"b\"}}}", 0, DECANT_MALFORMED, "metadata 'e': unexpected JSON");
    refuses("{\"__metadata__\":{\"e\":null}}", 0, DECANT_MALFORMED, "metadata 'e': unexpected JSON");
    refuses("{\"__metadata__\":{\"e\":[]}}", 0, DECANT_MALFORMED, "metadata 'e': unexpected JSON");
    refuses("{\"__metadata__\":{\"e\":\"\\x\"}}", 0, DECANT_MALFORMED, "metadata 'e': ");
    CHECK(!strstr(err.hint, "text alone"));
    refuses("{\"__metadata__\":[]}", 0, DECANT_MALFORMED, "'__metadata__': unexpected JSON at byte 24");
    refuses("{\"__metadata__\":\"a\"}", 0, DECANT_MALFORMED, "expected an object");
}

/* A header of a tensor with a name, and of metadata with so many keys and such a value. Freed by the caller. */
static char *header_with(size_t name, size_t keys, size_t value)
{
    size_t room = 256 + name + value + 24 * keys, used;
    char *text = malloc(room);

    CHECK(text);
    used = (size_t)snprintf(text, room, "{\"__metadata__\":{\"k\":\"");
    memset(text + used, 'v', value);
    used += value;
    text[used++] = '"';
    for (size_t i = 1; i < keys; i++)
        used += (size_t)snprintf(text + used, room - used, ",\"%zu\":\"\"", i);
    used += (size_t)snprintf(text + used, room - used, "},\"");
    memset(text + used, 'n', name);
    used += name;
    snprintf(text + used, room - used, "\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}");
    return text;
}

/* Each at its default, one past it, and that with limits lifted. */
TEST(safetensors_index__reads_up_to_its_limits)
{
    enum { NAME = 4096, KEYS = 65536, VALUE = 16 << 20 };
    static const struct {
        size_t name, keys, value;
        const char *words;
    } past[] = {
        {NAME + 1, KEYS, VALUE,
         "the length of its name is past a limit of decant's, found 4097, expected at most 4096"},
        {NAME, KEYS + 1, VALUE,
         "the number of metadata entries is past a limit of decant's, found 65537, expected at most 65536"},
        {NAME, KEYS, VALUE + 1,
         "the length of a metadata entry is past a limit of decant's, found 16777217, expected at most 16777216"},
    };
    dcn_limits lifted = dcn_limits_of(true);
    char *text = header_with(NAME, KEYS, VALUE);

    takes(text, 0, 1);
    free(text);
    for (size_t i = 0; i < sizeof past / sizeof *past; i++) {
        decant_model *model = NULL;
        size_t len;
        uint8_t *file;

        text = header_with(past[i].name, past[i].keys, past[i].value);
        refuses(text, 0, DECANT_LIMIT, past[i].words);
        CHECK_HAS(err.hint, "--allow limits");
        file = st_file(text, 0, &len);
        CHECK_OK(model_open(&dcn_safetensors, file, len, &lifted, 0, &model, &err), &err);
        decant_model_close(&model);
        free(file);
        free(text);
    }
}

static decant_status read_prefix_of_512_mib(void *ctx, uint64_t offset, void *dst, size_t len, decant_error *e)
{
    static const uint8_t prefix[] = {1, 0, 0, 0x20, 0, 0, 0, 0, '{', '}'};

    (void)e;
    *(bool *)ctx |= offset >= sizeof prefix; /* the header itself */
    memset(dst, ' ', len);
    for (size_t i = 0; i < len && offset + i < sizeof prefix; i++)
        ((uint8_t *)dst)[i] = prefix[offset + i];
    return DECANT_OK;
}

/* Past the largest header nothing of it is read. */
TEST(safetensors_index__refuses_a_header_of_more_than_512_mib_unread)
{
    bool header_read = false;
    decant_reader reader = {
        .size = sizeof reader, .len = UINT64_C(1) << 40, .read = read_prefix_of_512_mib, .ctx = &header_read};
    decant_open_options options = {.size = sizeof options, .format = "safetensors"};
    decant_model *model = NULL;

    CHECK_EQ(dcn_limits_of(false).header, 536870912);
    CHECK_FAILS(decant_open_reader(&reader, "memory", &options, &model, &err), DECANT_LIMIT, &err);
    CHECK_HAS(decant_error_text(&err),
              "the length of the header is past a limit of decant's, found 536870913, expected at most 536870912");
    CHECK(!header_read);
}

TEST(safetensors_index__names_the_limit_that_is_passed)
{
    dcn_limits limits = dcn_limits_of(false);
    char header[512];
    size_t used;

    /* the rank */
    used = (size_t)snprintf(header, sizeof header, "{\"t\":{\"dtype\":\"U8\",\"shape\":[");
    for (unsigned i = 0; i < DECANT_MAX_RANK; i++)
        used += (size_t)snprintf(header + used, sizeof header - used, "1,");
    snprintf(header + used, sizeof header - used, "1],\"data_offsets\":[0,1]}}");
    refuses(header, 1, DECANT_LIMIT, "tensor 't': the rank is past a limit of decant's, found 33, expected at most 32");
    CHECK_HAS(err.hint, "--allow limits");
    snprintf(header + used - 1, sizeof header - used, "],\"data_offsets\":[0,1]}}");
    takes(header, 1, 1);

    /* the others, made small */
    for (unsigned i = 0; i < 5; i++) {
        static const char text[] = "{\"__metadata__\":{\"a\":\"bc\",\"d\":\"e\"},"
                                   "\"t2\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                                   "\"t3\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}";
        static const char *const words[] = {"number of tensors", "length of its name", "number of metadata entries",
                                            "length of a metadata entry", "length of the header"};
        dcn_limits tight = limits;
        uint64_t *fields[] = {&tight.tensors, &tight.name, &tight.values, &tight.value, &tight.header};
        uint64_t enough[] = {2, 2, 2, 2, sizeof text - 1};

        for (unsigned less = 0; less < 2; less++) {
            size_t len;
            uint8_t *file = st_file(text, 2, &len);
            dcn_input in = {.name = "memory"};
            decant_model *model = NULL;

            CHECK_OK(decant_bytes_wrap(file, len, NULL, NULL, &in.bytes, &err), &err);
            *fields[i] = enough[i] - less;
            if (less) {
                CHECK_FAILS(dcn_format_open(&in, &dcn_safetensors, &tight, false, &model, &err), DECANT_LIMIT, &err);
                CHECK_HAS(err.message, words[i]);
            } else {
                CHECK_OK(dcn_format_open(&in, &dcn_safetensors, &tight, false, &model, &err), &err);
            }
            decant_model_close(&model);
            decant_bytes_unref(&in.bytes);
            free(file);
        }
    }
}
