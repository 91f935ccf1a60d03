/* Files that are wrong in one place, tried everywhere; and memory that ends anywhere. */
#include "support/safetensors.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/endian.h"
#include "support/alloc.h"

static const char sample[] = "{\"__metadata__\":{\"format\":\"pt\",\"a\":\"\\u00e9\"},"
                             "\"w\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]},"
                             "\"b\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[16,19]},"
                             "\"e\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[19,19]}}";
enum { SAMPLE_DATA = 19 };

static decant_error err;

/* Opens a file that may be anything; what opens must be consistent, and come back. */
static decant_status try(const uint8_t *file, size_t len, bool lenient)
{
    decant_model *model = NULL;
    decant_status rc;

    err = (decant_error){0};
    rc = model_open(&dcn_safetensors, file, len, NULL, lenient ? DECANT_LENIENT_ALL : 0, &model, &err);
    CHECK_EQ(err.status, rc);
    CHECK(rc == DECANT_OK || (!model && err.message[0]));
    if (rc)
        return rc;
    for (size_t i = 0; i < model->count; i++) {
        const dcn_span *span = &model->entries[i].data;

        CHECK(span->offset <= len && span->len <= len - span->offset);
    }
    check_comes_back(&dcn_safetensors, model, false);
    decant_model_close(&model);
    return DECANT_OK;
}

TEST(safetensors_hostile__every_prefix_is_refused)
{
    size_t len;
    uint8_t *file = st_file(sample, SAMPLE_DATA, &len);

    CHECK_OK(try(file, len, false), &err);
    for (size_t cut = 0; cut < len; cut++) {
        decant_model *model = NULL;

        CHECK_EQ(try(file, cut, false), DECANT_TRUNCATED);
        CHECK_EQ(try(file, cut, true), DECANT_TRUNCATED);
        CHECK(model_open(NULL, file, cut, NULL, false, &model, &err) != DECANT_OK);
    }
    free(file);
}

/* A file that is cut behind its first bytes is still known for what it was. */
TEST(safetensors_hostile__a_cut_file_is_detected_and_called_so)
{
    size_t len;
    uint8_t *file = st_file(sample, SAMPLE_DATA, &len);

    for (size_t cut = 10; cut < len; cut++) {
        decant_model *model = NULL;

        CHECK_FAILS(model_open(NULL, file, cut, NULL, false, &model, &err), DECANT_TRUNCATED, &err);
    }
    free(file);
}

TEST(safetensors_hostile__every_byte_can_be_anything)
{
    size_t len;
    uint8_t *file = st_file(sample, SAMPLE_DATA, &len);

    for (size_t at = 0; at < 8 + strlen(sample); at++) {
        uint8_t kept = file[at];

        for (unsigned byte = 0; byte < 256; byte++) {
            file[at] = (uint8_t)byte;
            (void)try(file, len, byte & 1);
        }
        file[at] = kept;
    }
    free(file);
}

TEST(safetensors_hostile__the_length_of_the_header_is_exact)
{
    static const uint64_t lengths[] = {0, 1, UINT32_MAX, UINT64_MAX};
    size_t len;
    uint8_t *file = st_file(sample, SAMPLE_DATA, &len);
    uint64_t right = dcn_le64(file);

    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        dcn_put_le(file, lengths[i], 8);
        CHECK(try(file, len, false) != DECANT_OK);
    }
    dcn_put_le(file, right - 1, 8);
    CHECK_EQ(try(file, len, false), DECANT_MALFORMED);
    dcn_put_le(file, right + 1, 8);
    CHECK(try(file, len, false) != DECANT_OK);
    free(file);
}

/* Each number of the header in turn becomes 0, 1, one less, one more, and the largest there are. */
TEST(safetensors_hostile__every_number_is_exact)
{
    unsigned numbers = 0;

    for (const char *at = strchr(sample, '['); at && *at; at++) {
        size_t digits = strspn(at, "0123456789"), before = (size_t)(at - sample);
        unsigned long long right = strtoull(at, NULL, 10);
        unsigned long long others[] = {0, 1, right - 1, right + 1, UINT32_MAX, UINT64_MAX, UINT64_MAX / 2 + 1};

        if (digits == 0 || strchr("[,", at[-1]) == NULL)
            continue;
        for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
            char header[sizeof sample + 32];
            size_t len;
            uint8_t *file;

            if (others[i] == right)
                continue;
            snprintf(header, sizeof header, "%.*s%llu%s", (int)before, sample, others[i], at + digits);
            file = st_file(header, SAMPLE_DATA, &len);
            if (try(file, len, false) == DECANT_OK)
                test_fail(__FILE__, __LINE__, "taken: %s", header);
            free(file);
        }
        numbers++;
        at += digits - 1;
    }
    CHECK_EQ(numbers, 10);
}

TEST(safetensors_hostile__every_allocation_may_fail_while_opening)
{
    size_t len;
    uint8_t *file = st_file(sample, SAMPLE_DATA, &len);

    for (size_t n = 0;; n++) {
        decant_model *model = NULL;
        size_t live = test_alloc_live();
        decant_status rc;

        test_alloc_fail(n);
        err = (decant_error){0};
        rc = model_open(NULL, file, len, NULL, false, &model, &err);
        test_alloc_disarm();
        CHECK_EQ(rc, test_alloc_fired() ? DECANT_NOMEM : DECANT_OK);
        decant_model_close(&model);
        CHECK_EQ(test_alloc_live(), live);
        if (!test_alloc_fired())
            break;
    }
    free(file);
}

TEST(safetensors_hostile__every_allocation_may_fail_while_planning)
{
    static const dcn_layout how = {.loaders_format = true};
    decant_model *model = NULL;

    CHECK_OK(decant_model_create(&model, &err), &err);
    model_set_text(model, "z", "1");
    model_set_text(model, "a", "2");
    model_add_stream(model, "a", DECANT_U8, 0, NULL, 1); /* not in order: sorting needs memory too */
    model_add_stream(model, "b", DECANT_F32, 0, NULL, 2);
    for (size_t n = 0;; n++) {
        dcn_plans plans = {0};
        size_t live = test_alloc_live();
        decant_status rc;

        test_alloc_fail(n);
        rc = dcn_safetensors.emit(model, &how, &plans, &err);
        test_alloc_disarm();
        CHECK_EQ(rc, test_alloc_fired() ? DECANT_NOMEM : DECANT_OK);
        dcn_plans_close(&plans);
        CHECK_EQ(test_alloc_live(), live);
        if (!test_alloc_fired())
            break;
    }
    decant_model_close(&model);
}
