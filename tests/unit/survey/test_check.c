#include "survey/check.h"

#include <stdio.h>
#include <stdlib.h>

#include "support/alloc.h"
#include "support/models.h"

static const dcn_cut cut = {.slot = 64, .slots = 2, .direct = 1000};
static decant_check_totals totals;
static char told[8192];
static size_t told_most, told_count;
static decant_error err;

static int tell(void *ctx, const decant_finding *f)
{
    size_t used = strlen(told);

    (void)ctx;
    CHECK((f->kind == DECANT_FAULT) == (f->error != NULL) && (f->kind == DECANT_VALUES) == (f->values != NULL));
    snprintf(told + used, sizeof told - used, "%d %s\n", (int)f->kind, f->text);
    return ++told_count == told_most;
}

static decant_status check_bytes(const void *bytes, size_t len, unsigned lenient, bool deep)
{
    dcn_input in = {.name = "memory"};
    dcn_reading how = {.limits = dcn_limits_of(false), .lenient = lenient};
    decant_check_options options = {.deep = deep};
    decant_status rc;

    told[0] = '\0';
    told_count = 0;
    totals = (decant_check_totals){0};
    CHECK_OK(decant_bytes_copy(bytes, len, &in.bytes, &err), &err);
    rc = dcn_check(&in, &how, &cut, 100, &options, tell, NULL, &totals, &err);
    decant_bytes_unref(&in.bytes);
    return rc;
}

/* A safetensors file: the header, and so many bytes behind it. */
static decant_status check_header(const char *header, size_t data, unsigned lenient)
{
    size_t len = strlen(header);
    uint8_t *file = calloc(8 + len + data + 1, 1);
    decant_status rc;

    CHECK(file);
    file[0] = (uint8_t)len;
    file[1] = (uint8_t)(len >> 8);
    memcpy(file + 8, header, len);
    rc = check_bytes(file, 8 + len + data, lenient, false);
    free(file);
    return rc;
}

TEST(check__lists_every_tensor_with_a_fault)
{
    CHECK_OK(check_header("{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
                          "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,9]},"
                          "\"c\":{\"dtype\":\"X\",\"shape\":[\"]\"],\"data_offsets\":[8,12]},"
                          "\"d\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[8,12],\"more\":[{}]},"
                          "\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[8,12]},"
                          "\"e\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[20,24]}}",
                          12, 0),
             &err);
    CHECK_EQ(totals.faults, 5);
    CHECK_HAS(told, "1 tensor 'b': data_offsets do not hold shape [4]");
    CHECK_HAS(told, "1 tensor 'c': unknown dtype 'X'");
    CHECK_HAS(told, "1 tensor 'd': unknown field 'more'");
    CHECK_HAS(told, "1 tensor 'a': ");
    CHECK_HAS(told, "1 tensor 'e': the file has");
}

TEST(check__FR_11_lists_every_hole_and_overlap)
{
    CHECK_OK(check_header("{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
                          "\"c\":{\"dtype\":\"U8\",\"shape\":[6],\"data_offsets\":[8,14]},"
                          "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[6,10]},"
                          "\"d\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[14,16]},"
                          "\"e\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[14,16]}}",
                          20, 0),
             &err);
    CHECK_EQ(totals.faults, 4);
    CHECK_HAS(told, "1 tensor 'b': a hole before the data, found offset 6, expected 4, where tensor 'a' ends\n");
    CHECK_HAS(told, "1 tensor 'c': the data overlaps, found offset 8, expected 10, where tensor 'b' ends\n");
    CHECK_HAS(told, "1 tensor 'e': lies on the data of tensor 'd'");
    CHECK_HAS(told, "1 4 unexpected bytes after tensor data");
}

TEST(check__what_is_let_pass_is_a_warning)
{
    CHECK_OK(check_header("{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4],\"more\":1}}", 5,
                          DECANT_LENIENT_ALL),
             &err);
    CHECK_EQ(totals.faults, 0);
    CHECK_EQ(totals.warnings, 2);
    CHECK_TEXT(told, "2 1 unknown field\n2 1 byte after the data\n");
}

TEST(check__warns_of_names_and_places_that_make_trouble)
{
    CHECK_OK(check_header("{\"\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                          "\"a\\n\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[1,5]},"
                          "\"b\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[5,13]}}",
                          13, 0),
             &err);
    CHECK_EQ(totals.faults, 0);
    CHECK_HAS(told, "2 2 names are empty or have characters that do not show, first ''\n");
    CHECK_HAS(told, "2 2 tensors do not lie at multiples of their elements' size, first 'a\\x0a'\n");
}

TEST(check__what_cannot_be_recognised_is_no_finding)
{
    CHECK_FAILS(check_bytes("", 0, 0, false), DECANT_TRUNCATED, &err);
    CHECK_FAILS(check_bytes("hello, this is a text", 21, 0, false), DECANT_UNSUPPORTED, &err);
    CHECK_EQ(told_count, 0);
    CHECK_OK(check_header("{\"a\":", 0, 0), &err); /* safetensors, and broken */
    CHECK_EQ(totals.faults, 1);
    CHECK_HAS(told, ": unexpected JSON at byte");
}

static decant_status check_model(const dcn_format *format, const decant_model *model, bool deep)
{
    uint8_t *file = NULL;
    size_t len;
    decant_status rc;

    CHECK_OK(model_render(format, model, NULL, &file, &len, &err), &err);
    rc = check_bytes(file, len, 0, deep);
    free(file);
    return rc;
}

TEST(check__deep_tells_of_tensors_whose_values_are_worth_a_look)
{
    static const dcn_format *const formats[] = {&dcn_safetensors, &dcn_burnpack};
    static const float odd[] = {1, -1.0f / 0.0f, 0.0f / 0.0f};
    static const uint8_t zeros[300] = {0}, holed[300] = {[0] = 1, [150] = 2};

    for (size_t i = 0; i < 2; i++) {
        decant_model *model = NULL;

        CHECK_OK(decant_model_create(&model, &err), &err);
        model_add(model, "a", DECANT_F32, 1, (const uint64_t[]){3}, NULL, odd, sizeof odd);
        model_add(model, "b", DECANT_U8, 1, (const uint64_t[]){7}, NULL, "\1\2\3\4\5\6\7", 7);
        model_add(model, "c", DECANT_BOOL, 1, (const uint64_t[]){2}, NULL, "\1\7", 2);
        model_add(model, "d", DECANT_U8, 1, (const uint64_t[]){300}, NULL, holed, sizeof holed);
        model_add(model, "e", DECANT_U8, 1, (const uint64_t[]){300}, NULL, zeros, sizeof zeros);
        CHECK_OK(check_model(formats[i], model, true), &err);
        CHECK_EQ(totals.faults, 0);
        CHECK_EQ(totals.bytes, 12 + 7 + 2 + 300 + 300);
        CHECK_HAS(told, "3 tensor 'a': 1 NaN and 1 infinite of 3\n");
        CHECK_HAS(told, "3 tensor 'c': 1 booleans are neither 0 nor 1\n");
        CHECK_HAS(told, "3 tensor 'd': 149 zero bytes from byte 1 on\n");
        CHECK_HAS(told, "3 tensor 'e': 300 zero bytes from byte 0 on\n");
        CHECK(!strstr(told, "'b'"));
        if (formats[i] == &dcn_burnpack) /* data in this order */
            CHECK_HAS(told, "2 the last 449 bytes of the data are zeros, from byte 151 of tensor 'd' on");
        CHECK_OK(check_model(formats[i], model, false), &err);
        CHECK_EQ(told_count, 0);
        CHECK_EQ(totals.bytes, 0);
        decant_model_close(&model);
    }
}

TEST(check__stops_when_it_is_told_to)
{
    told_most = 1;
    CHECK_FAILS(check_header("{\"\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 3, DECANT_LENIENT_ALL),
                DECANT_CANCELLED, &err);
    CHECK_EQ(told_count, 1);
    told_most = 0;
}

TEST(check__leaves_nothing_whichever_allocation_fails)
{
    decant_model *model = NULL;
    uint8_t *file = NULL;
    size_t len, live;

    CHECK_OK(decant_model_create(&model, &err), &err);
    model_add_stream(model, "a", DECANT_F32, 1, (const uint64_t[]){30}, 1);
    CHECK_OK(model_render(&dcn_safetensors, model, NULL, &file, &len, &err), &err);
    live = test_alloc_live();
    for (size_t n = 1;; n++) { /* the first is the test's */
        decant_status rc;

        test_alloc_fail(n);
        rc = check_bytes(file, len, 0, true);
        test_alloc_disarm();
        CHECK_EQ(test_alloc_live(), live);
        CHECK_EQ(told_count, 0);
        if (!test_alloc_fired()) {
            CHECK_EQ(rc, DECANT_OK);
            CHECK(n > 5);
            break;
        }
        CHECK_EQ(rc, DECANT_NOMEM);
    }
    free(file);
    decant_model_close(&model);
}
