#include "support/alloc.h"
#include "support/cargo.h"

TEST(memory__refuses_a_buffer_that_is_too_small_and_touches_nothing)
{
    uint8_t buffer[9] = "untouche";
    dcn_output *output = NULL;
    dcn_plan plan = {.total = 10};
    decant_error err;

    CHECK_OK(dcn_output_memory(buffer, sizeof buffer, &output, &err), &err);
    CHECK_FAILS(dcn_output_begin(output, &plan, &err), DECANT_NO_SPACE, &err);
    CHECK_TEXT(err.found, "9 bytes");
    CHECK_TEXT(err.expected, "10 bytes");
    dcn_output_close(&output);
    CHECK_TEXT((char *)buffer, "untouche");
}

TEST(new_memory__is_allocated_once_and_taken_without_a_copy)
{
    dcn_output *output = NULL;
    dcn_plan plan = {.total = 100000};
    decant_bytes *bytes = NULL;
    decant_view view;
    void *lent;
    size_t before;
    decant_error err;

    CHECK_OK(dcn_output_new(&output, &err), &err);
    before = test_alloc_live();
    CHECK_OK(dcn_output_begin(output, &plan, &err), &err);
    CHECK_EQ(test_alloc_live(), before + 1);
    lent = dcn_output_lend(output, 0, 100000);
    CHECK_OK(dcn_output_seal(output, &err), &err);
    CHECK_OK(dcn_output_publish(output, &err), &err);
    CHECK_OK(dcn_output_new_take(output, &bytes, &err), &err);
    dcn_output_close(&output);
    CHECK_OK(decant_bytes_pin(bytes, 0, 100000, DECANT_NO_COPY, &view, &err), &err);
    CHECK(view.data == lent);
    decant_view_release(&view);
    decant_bytes_unref(&bytes);
}

TEST(new_memory__that_cannot_be_addressed_or_had_is_refused)
{
    dcn_output *output = NULL;
    dcn_plan plan = {.total = UINT64_MAX};
    decant_error err;

    CHECK_OK(dcn_output_new(&output, &err), &err);
    CHECK_FAILS(dcn_output_begin(output, &plan, &err), DECANT_NOMEM, &err);
    dcn_output_close(&output);
}
