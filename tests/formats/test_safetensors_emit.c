/* What emit writes, and what it refuses to lose. */
#include "support/safetensors.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/dtype.h"
#include "base/endian.h"
#include "support/models.h"

static const dcn_layout plain, allow_loss = {.allow = DECANT_ALLOW_LOSS}, for_loaders = {.loaders_format = true};
static const uint64_t four[] = {4};

static decant_error err;

static decant_model *empty(void)
{
    decant_model *model = NULL;

    CHECK_OK(decant_model_create(&model, &err), &err);
    return model;
}

/* That the model's header is this text, less its padding. */
static void writes_header(const decant_model *model, const dcn_layout *how, const char *wanted)
{
    uint8_t *file = NULL;
    size_t len, padded = (strlen(wanted) + 7) / 8 * 8;

    CHECK_OK(model_render(&dcn_safetensors, model, how, &file, &len, &err), &err);
    CHECK_EQ(dcn_le64(file), padded);
    CHECK_BYTES(file + 8, strlen(wanted), wanted, strlen(wanted));
    for (size_t i = strlen(wanted); i < padded; i++)
        CHECK_EQ(file[8 + i], ' ');
    free(file);
}

/* Whether a plan lists these words among its losses. */
static bool lists_loss(const dcn_plans *plans, const char *words)
{
    for (size_t i = 0; i < plans->loss_count; i++)
        if (strstr(plans->losses[i].text, words))
            return true;
    return false;
}

static void refuses(const decant_model *model, const dcn_layout *how, decant_status wanted, const char *words)
{
    uint8_t *file = NULL;
    size_t len;

    err = (decant_error){0};
    CHECK_FAILS(model_render(&dcn_safetensors, model, how, &file, &len, &err), wanted, &err);
    CHECK_HAS(decant_error_text(&err), words);
}

/* Four elements of a dtype that may be another format's. */
static void add_four(decant_model *model, const char *name, decant_dtype dtype, bool has_id)
{
    static const uint8_t zeros[32];
    static const decant_quant quant = {.size = sizeof quant, .value = DECANT_Q8S, .tensor_scale = DECANT_SCALE_F32};
    decant_tensor tensor = DECANT_TENSOR_INIT;
    decant_bytes *bytes = NULL;
    size_t len = dtype == DECANT_QFLOAT ? 8 : dcn_dtype(dtype)->bits / 2;

    CHECK_OK(decant_bytes_wrap(zeros, len, NULL, NULL, &bytes, &err), &err);
    tensor.name = name;
    tensor.dtype = dtype;
    tensor.rank = 1;
    tensor.shape = four;
    tensor.has_id = has_id;
    tensor.id = 7;
    tensor.quant = dtype == DECANT_QFLOAT ? &quant : NULL;
    CHECK_OK(decant_model_add(model, &tensor, bytes, &err), &err);
    decant_bytes_unref(&bytes);
}

TEST(safetensors_emit__orders_by_dtype_then_by_the_bytes_of_names)
{
    decant_model *model = empty();

    model_add_stream(model, "b", DECANT_U8, 1, four, 1);
    model_add_stream(model, "z", DECANT_F32, 1, four, 2);
    model_add_stream(model, "\xc3\xa9", DECANT_F32, 0, NULL, 3);
    model_add_stream(model, "zz", DECANT_F32, 1, (uint64_t[]){0}, 4);
    model_add_stream(model, "a", DECANT_U8, 1, four, 5);
    model_add_stream(model, "m", DECANT_U64, 2, (uint64_t[]){1, 2}, 6);
    model_add_stream(model, "", DECANT_BOOL, 1, four, 7);
    writes_header(model, &plain,
                  "{\"m\":{\"dtype\":\"U64\",\"shape\":[1,2],\"data_offsets\":[0,16]},"
                  "\"z\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[16,32]},"
                  "\"zz\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[32,32]},"
                  "\"\xc3\xa9\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[32,36]},"
                  "\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[36,40]},"
                  "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[40,44]},"
                  "\"\":{\"dtype\":\"BOOL\",\"shape\":[4],\"data_offsets\":[44,48]}}");
    decant_model_close(&model);
}

TEST(safetensors_emit__sorts_whatever_the_number_of_tensors)
{
    static const decant_dtype dtypes[] = {DECANT_U8, DECANT_F64, DECANT_F16};

    for (unsigned count = 0; count < 70; count += 1 + count / 9) {
        decant_model *model = empty(), *again = NULL;
        uint64_t state = count;
        uint8_t *file = NULL;
        size_t len;
        dcn_plans plans = {0};

        for (unsigned i = 0; i < count; i++) {
            char name[16];

            snprintf(name, sizeof name, "%u.%u", (unsigned)(test_random(&state) % 50), i);
            model_add_stream(model, name, dtypes[test_random(&state) % 3], 1, (uint64_t[]){test_random(&state) % 4}, i);
        }
        CHECK_OK(dcn_safetensors.emit(model, &plain, &plans, &err), &err);
        for (size_t i = 2; i < plans.items[0].count; i++) { /* piece 0 is the header */
            const dcn_entry *a = &model->entries[plans.items[0].pieces[i - 1].index];
            const dcn_entry *b = &model->entries[plans.items[0].pieces[i].index];
            unsigned a_bits = dcn_dtype((decant_dtype)a->dtype)->bits, b_bits = dcn_dtype((decant_dtype)b->dtype)->bits;
            int order = memcmp(a->name, b->name, a->name_len < b->name_len ? a->name_len : b->name_len);

            CHECK(a_bits > b_bits || (a_bits == b_bits && (order < 0 || (order == 0 && a->name_len < b->name_len))));
        }
        dcn_plans_close(&plans);

        /* what was written reads as the same model, and writes the same again */
        CHECK_OK(model_render(&dcn_safetensors, model, &plain, &file, &len, &err), &err);
        CHECK_OK(model_open(NULL, file, len, NULL, false, &again, &err), &err);
        CHECK_EQ(decant_model_count(again), count);
        for (size_t i = 0; i < count; i++) {
            decant_bytes *one = NULL, *two = NULL;
            uint8_t a[32], b[32];
            size_t index;

            CHECK(dcn_model_find(again, model->entries[i].name, model->entries[i].name_len, &index));
            CHECK_EQ(again->entries[index].dtype, model->entries[i].dtype);
            CHECK_EQ(again->entries[index].data.len, model->entries[i].data.len);
            CHECK_OK(decant_model_bytes(model, i, &one, &err), &err);
            CHECK_OK(decant_model_bytes(again, index, &two, &err), &err);
            CHECK_OK(decant_bytes_read(one, 0, a, model->entries[i].data.len, &err), &err);
            CHECK_OK(decant_bytes_read(two, 0, b, model->entries[i].data.len, &err), &err);
            CHECK_BYTES(b, model->entries[i].data.len, a, model->entries[i].data.len);
            decant_bytes_unref(&one);
            decant_bytes_unref(&two);
        }
        free(file);
        decant_model_close(&again);
        decant_model_close(&model);
    }
}

/* FW-01: the reference writes what no reader takes when there is metadata and nothing else. */
TEST(safetensors_emit__FW_01_metadata_alone_is_a_file)
{
    decant_model *model = empty(), *again = NULL;
    uint8_t *file = NULL;
    size_t len;

    writes_header(model, &plain, "{}");
    model_set_text(model, "key", "value");
    writes_header(model, &plain, "{\"__metadata__\":{\"key\":\"value\"}}");
    CHECK_OK(model_render(&dcn_safetensors, model, &plain, &file, &len, &err), &err);
    CHECK_OK(model_open(NULL, file, len, NULL, false, &again, &err), &err);
    CHECK(dcn_model_text(again, "key"));
    free(file);
    decant_model_close(&again);
    decant_model_close(&model);
}

/* FW-02 */
TEST(safetensors_emit__FW_02_metadata_is_sorted_by_the_bytes_of_its_keys)
{
    decant_model *model = empty();

    model_set_text(model, "b", "\"q\" \\ / \xc3\xa9");
    model_set_text(model, "\xc3\xa9", "\n\x01");
    model_set_text(model, "", "");
    model_set_text(model, "aa", "1");
    model_set_text(model, "a", "2");
    writes_header(model, &plain,
                  "{\"__metadata__\":{\"\":\"\",\"a\":\"2\",\"aa\":\"1\",\"b\":\"\\\"q\\\" \\\\ / \xc3\xa9\","
                  "\"\xc3\xa9\":\"\\n\\u0001\"}}");
    decant_model_close(&model);
}

TEST(safetensors_emit__FW_02_the_order_of_setting_leaves_no_trace)
{
    uint8_t *first = NULL, *file = NULL;
    size_t first_len = 0, len;

    for (unsigned round = 0; round < 20; round++) {
        decant_model *model = empty();

        for (unsigned i = 0; i < 16; i++) {
            char key[8];

            snprintf(key, sizeof key, "k%u", (i * 5 + round) % 16);
            model_set_text(model, key, key);
        }
        CHECK_OK(model_render(&dcn_safetensors, model, &plain, &file, &len, &err), &err);
        if (round == 0) {
            first = file;
            first_len = len;
        } else {
            CHECK_BYTES(file, len, first, first_len);
            free(file);
        }
        decant_model_close(&model);
    }
    free(first);
}

TEST(safetensors_emit__keeps_metadata_that_is_there_and_empty)
{
    static const char *const headers[] = {
        "{\"__metadata__\":{}}     ",
        "{\"__metadata__\":{},\"t\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}} ",
    };

    for (size_t i = 0; i < 2; i++) {
        decant_model *model = NULL;
        uint8_t *file = st_file(headers[i], 4 * i, &(size_t){0}), *saved = NULL;
        dcn_plans plans = {0};
        size_t len;

        CHECK_OK(model_open(NULL, file, 8 + strlen(headers[i]) + 4 * i, NULL, false, &model, &err), &err);
        CHECK_OK(model_render(&dcn_safetensors, model, &plain, &saved, &len, &err), &err);
        CHECK_BYTES(saved, len, file, 8 + strlen(headers[i]) + 4 * i);

        /* to another format it is worth nothing, and no loss */
        CHECK_OK(dcn_burnpack.emit(model, &plain, &plans, &err), &err);
        CHECK_EQ(plans.loss_count, 0);
        dcn_plans_close(&plans);
        free(saved);
        free(file);

        model_set_text(model, "k", "v");
        CHECK_OK(model_render(&dcn_safetensors, model, &plain, &saved, &len, &err), &err);
        CHECK(memcmp(saved + 8, "{\"__metadata__\":{\"k\":\"v\"}", 25) == 0);
        free(saved);
        decant_model_close(&model);
    }
}

/* Two files of one content are one file when they are saved. */
TEST(safetensors_emit__writes_one_form_whatever_the_form_it_was_read_from)
{
    decant_model *model = NULL;

    CHECK_OK(st_open(" \n{\"b\":{\"shape\":[ ],\"dtype\":\"U8\",\"data_offsets\":[4,5]} , "
                     "\"\\u0061\":{\"data_offsets\":[0,4],\"dtype\":\"F32\",\"shape\":[1]},\"__metadata__\":{\"k\":"
                     "\"\\u000A\"}}\n",
                     5, false, &model, &err),
             &err);
    writes_header(model, &plain,
                  "{\"__metadata__\":{\"k\":\"\\n\"},\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
                  "\"b\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[4,5]}}");
    decant_model_close(&model);
}

TEST(safetensors_emit__adds_the_format_that_loaders_want_if_there_is_none)
{
    decant_model *model = empty();

    writes_header(model, &for_loaders, "{\"__metadata__\":{\"format\":\"pt\"}}");
    model_set_text(model, "z", "1");
    model_set_text(model, "a", "2");
    writes_header(model, &for_loaders, "{\"__metadata__\":{\"a\":\"2\",\"format\":\"pt\",\"z\":\"1\"}}");
    writes_header(model, &plain, "{\"__metadata__\":{\"a\":\"2\",\"z\":\"1\"}}");
    model_set_text(model, "format", "np");
    writes_header(model, &for_loaders, "{\"__metadata__\":{\"a\":\"2\",\"format\":\"np\",\"z\":\"1\"}}");
    decant_model_close(&model);
}

TEST(safetensors_emit__says_who_can_open_it_and_what_it_adds_for_them)
{
    decant_model *model = empty();
    dcn_plans plans = {0};

    CHECK_OK(dcn_safetensors.emit(model, &plain, &plans, &err), &err);
    CHECK_TEXT(openers_text(&plans.openers), "safetensors; transformers: no metadata format = pt");
    CHECK_EQ(plans.gain_count, 0);
    dcn_plans_close(&plans);
    plans = (dcn_plans){0};
    CHECK_OK(dcn_safetensors.emit(model, &for_loaders, &plans, &err), &err);
    CHECK_TEXT(openers_text(&plans.openers), "safetensors; transformers");
    CHECK_EQ(plans.gain_count, 1);
    CHECK_TEXT(plans.gains[0], "metadata format = pt");
    dcn_plans_close(&plans);
    decant_model_close(&model);
}

TEST(safetensors_emit__holds_back_the_front_of_the_file)
{
    decant_model *model = empty();
    dcn_plans plans = {0};

    CHECK_OK(dcn_safetensors.emit(model, &plain, &plans, &err), &err);
    CHECK_EQ(plans.items[0].held, 16);
    CHECK_EQ(plans.items[0].total, 16);
    dcn_plans_close(&plans);
    plans = (dcn_plans){0};
    model_add_stream(model, "t", DECANT_U8, 1, (uint64_t[]){5000}, 1);
    CHECK_OK(dcn_safetensors.emit(model, &plain, &plans, &err), &err);
    CHECK_EQ(plans.items[0].held, 4096);
    CHECK_EQ(plans.items[0].data, 5000);
    dcn_plans_close(&plans);
    decant_model_close(&model);
}

static void close_nothing(dcn_extra *extra)
{
    (void)extra;
}

TEST(safetensors_emit__refuses_what_it_would_lose_and_counts_it)
{
    static const dcn_extra_ops ops = {.format = "other", .what = "block scale", .close = close_nothing};
    dcn_extra extra = {.ops = &ops, .refs = 3};
    decant_model *model = empty();
    dcn_plans plans = {0};

    add_four(model, "x", DECANT_F32, true);
    add_four(model, "y", DECANT_F32, true);
    add_four(model, "w", DECANT_F32, false);
    model->entries[0].extra = model->entries[1].extra = &extra;
    refuses(model, &plain, DECANT_LOSS, "2 block scales");

    CHECK_OK(dcn_safetensors.emit(model, &allow_loss, &plans, &err), &err);
    CHECK(lists_loss(&plans, "2 block scales, first of 'x'"));
    CHECK_EQ(plans.loss_count, 1);
    dcn_plans_close(&plans);
    decant_model_close(&model);
}

/* Dropping or re-typing a tensor is nothing that a flag allows. */
TEST(safetensors_emit__refuses_dtypes_without_a_place_whatever_is_allowed)
{
    static const decant_dtype dtypes[] = {DECANT_QFLOAT};

    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        decant_model *model = empty();
        char words[64];

        add_four(model, "good", DECANT_F32, false);
        add_four(model, "bad", dtypes[i], false);
        add_four(model, "worse", dtypes[i], false);
        snprintf(words, sizeof words, "2 %s tensors", decant_dtype_name(dtypes[i]));
        refuses(model, &plain, DECANT_LOSS, words);
        CHECK_HAS(decant_error_text(&err), "'bad'");
        refuses(model, &allow_loss, DECANT_LOSS, words);
        CHECK_HAS(err.hint, "choose a format");
        decant_model_close(&model);
    }
}

TEST(safetensors_emit__refuses_a_tensor_with_the_name_of_metadata)
{
    decant_model *model = empty();

    model_add_stream(model, "__metadata__", DECANT_U8, 1, four, 1);
    refuses(model, &allow_loss, DECANT_LOSS, "tensor '__metadata__': safetensors keeps this name for its metadata");
    decant_model_close(&model);
}

/* One tensor whose name fills the header to the last byte that readers take, and one more. */
TEST(safetensors_emit__refuses_headers_that_readers_refuse)
{
    enum { LARGEST = 100000000, REST = sizeof "{\"__metadata__\":{\"k\":\"\"}}" - 1 };
    static const dcn_layout allow_limits = {.allow = DECANT_ALLOW_LIMITS};

    for (unsigned over = 0; over < 2; over++) {
        decant_model *model = empty();
        size_t len = LARGEST - REST + over;
        char *text = malloc(len + 1);
        dcn_plans plans = {0};

        CHECK(text);
        memset(text, 'x', len);
        text[len] = '\0';
        model_set_text(model, "k", text);
        free(text);
        if (over) {
            CHECK_FAILS(dcn_safetensors.emit(model, &plain, &plans, &err), DECANT_LIMIT, &err);
            CHECK_HAS(err.message, "a header of 100000008 bytes, but readers open at most 100000000");
            CHECK_EQ(err.side, DECANT_SIDE_OUTPUT);
            dcn_plans_close(&plans);
            plans = (dcn_plans){0};
            CHECK_OK(dcn_safetensors.emit(model, &allow_limits, &plans, &err), &err);
            CHECK_TEXT(openers_text(&plans.openers), "safetensors: no header of more than 100,000,000 bytes");
        } else {
            CHECK_OK(dcn_safetensors.emit(model, &plain, &plans, &err), &err);
            CHECK_EQ(plans.items[0].total, 8 + LARGEST);
        }
        dcn_plans_close(&plans);
        decant_model_close(&model);
    }
}
