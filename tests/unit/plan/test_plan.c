/* Plans: pieces at final offsets, what is lost, and what must hold of every model. */
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>

#include "plan/plan.h"
#include "support/alloc.h"

static decant_error err;

static decant_model *create(void)
{
    decant_model *model = NULL;

    CHECK_OK(dcn_model_create(1, &model, &err), &err);
    return model;
}

/* Adds bytes [offset, offset + len) of `bytes`, as U8 of a shape of their length. */
static void add(decant_model *model, const char *name, decant_bytes *bytes, uint64_t offset, uint64_t len)
{
    dcn_draft draft = {
        .name = name,
        .name_len = strlen(name),
        .shape = &len,
        .rank = 1,
        .dtype = DECANT_U8,
        .data = {bytes, offset, len},
    };

    CHECK_OK(dcn_model_add(model, &draft, &err), &err);
}

static decant_bytes *memory(size_t len)
{
    static const uint8_t zeros[1024];
    decant_bytes *bytes = NULL;

    CHECK(len <= sizeof zeros);
    CHECK_OK(decant_bytes_wrap(zeros, len, NULL, NULL, &bytes, &err), &err);
    return bytes;
}

/* A provider that ends the test if it is asked, but for keep(). */
static bool may_ask;

static decant_status read_zeros(void *ctx, uint64_t offset, void *dst, size_t len, decant_error *e)
{
    (void)ctx;
    (void)offset;
    (void)e;
    CHECK(may_ask);
    memset(dst, 0, len);
    return DECANT_OK;
}

static decant_bytes *defer(uint64_t len)
{
    decant_provider calls = DECANT_PROVIDER_INIT;
    decant_bytes *bytes = NULL;

    calls.read = read_zeros;
    CHECK_OK(decant_bytes_defer(len, &calls, &bytes, &err), &err);
    return bytes;
}

static decant_bytes *slice_of(decant_bytes *bytes, uint64_t offset, uint64_t len)
{
    decant_bytes *slice = NULL;

    CHECK_OK(decant_bytes_slice(bytes, offset, len, &slice, &err), &err);
    return slice;
}

static decant_bytes *join(decant_bytes *a, decant_bytes *b)
{
    decant_bytes *parts[] = {a, b}, *rope = NULL;

    CHECK_OK(decant_bytes_join(parts, 2, &rope, &err), &err);
    return rope;
}

/* --- pieces ------------------------------------------------------------------------------------------------------ */

TEST(a_plan__says_where_every_byte_goes)
{
    decant_model *model = create();
    decant_bytes *bytes = memory(100);
    dcn_plans plans = {0};
    dcn_plan *plan = NULL;
    dcn_buf head = {0};

    add(model, "a", bytes, 0, 60);
    add(model, "b", bytes, 60, 40);
    CHECK_OK(dcn_plans_add(&plans, model, &plan, &err), &err);
    dcn_buf_text(&head, "header");
    CHECK_OK(dcn_plan_literal(plan, 0, &head, &err), &err);
    CHECK(!head.data && head.len == 0);
    CHECK_OK(dcn_plan_entry(plan, 8, 1, &err), &err);
    CHECK_OK(dcn_plan_entry(plan, 64, 0, &err), &err);
    dcn_plan_finish(plan, 128);

    CHECK(plans.count == 1 && &plans.items[0] == plan && plan->model == model);
    CHECK(plan->count == 3 && plan->total == 128 && plan->data == 100);
    CHECK(plan->pieces[0].literal && !plan->pieces[1].literal);
    CHECK_EQ(dcn_plan_piece_len(plan, 0), 6);
    CHECK_EQ(dcn_plan_piece_len(plan, 1), 40);
    CHECK_EQ(dcn_plan_piece_len(plan, 2), 60);
    CHECK_BYTES(plan->literals[0].data, plan->literals[0].len, "header", 6);
    dcn_plans_close(&plans);
    CHECK(!plans.items && !plans.count);
    dcn_plans_close(&plans);
    decant_bytes_unref(&bytes);
    decant_model_close(&model);
}

TEST(room_for_pieces__once_made_costs_no_more)
{
    decant_model *model = create();
    decant_bytes *bytes = memory(1);
    dcn_plans plans = {0};
    dcn_plan *plan = NULL;

    add(model, "a", bytes, 0, 1);
    CHECK_OK(dcn_plans_add(&plans, model, &plan, &err), &err);
    CHECK_OK(dcn_plan_reserve(plan, 100, &err), &err);
    test_alloc_fail(0);
    for (size_t i = 0; i < 100; i++)
        CHECK_OK(dcn_plan_entry(plan, i, 0, &err), &err);
    CHECK(!test_alloc_fired());
    CHECK_FAILS(dcn_plan_entry(plan, 100, 0, &err), DECANT_NOMEM, &err);
    CHECK_EQ(plan->count, 100);
    CHECK_EQ(plan->data, 100);
    dcn_plans_close(&plans);
    decant_bytes_unref(&bytes);
    decant_model_close(&model);
}

TEST(a_literal__stays_the_callers_whichever_allocation_fails)
{
    decant_model *model = create();
    size_t n;

    for (n = 0;; n++) {
        dcn_plans plans = {0};
        dcn_plan *plan = NULL;
        dcn_buf head = {0};
        decant_status rc;

        test_alloc_fail(n);
        dcn_buf_text(&head, "header");
        if ((rc = dcn_plans_add(&plans, model, &plan, &err)) == DECANT_OK)
            rc = dcn_plan_literal(plan, 0, &head, &err);
        test_alloc_disarm();
        CHECK(test_alloc_fired() == (rc == DECANT_NOMEM));
        dcn_buf_close(&head);
        dcn_plans_close(&plans);
        CHECK_EQ(test_alloc_live(), 1); /* the model */
        if (rc == DECANT_OK)
            break;
    }
    CHECK_EQ(n, 3);
    decant_model_close(&model);
}

/* --- losses ------------------------------------------------------------------------------------------------------ */

TEST(losses__are_counted_by_kind_with_an_example)
{
    dcn_plans plans = {0};

    dcn_plans_lose(&plans, 0, "nothing", NULL, 0);
    CHECK_EQ(plans.loss_count, 0);
    CHECK_OK(dcn_plans_check_losses(&plans, "safetensors", 0, &err), &err);
    dcn_plans_lose(&plans, 3, "param id", "x\ny", 3);
    CHECK_TEXT(plans.losses[0].text, "3 param ids, first of 'x\\x0ay'");
    CHECK_FAILS(dcn_plans_check_losses(&plans, "safetensors", 0, &err), DECANT_LOSS, &err);
    CHECK_TEXT(err.message, "safetensors has no place for 3 param ids, first of 'x\\x0ay'");
    dcn_plans_lose(&plans, 1, "scalar", NULL, 0);
    CHECK_TEXT(plans.losses[1].text, "1 scalar");
    CHECK_FAILS(dcn_plans_check_losses(&plans, "safetensors", DECANT_ALLOW_LIMITS, &err), DECANT_LOSS, &err);
    CHECK_TEXT(err.message, "safetensors has no place for 3 param ids and 1 scalar");
    CHECK_HAS(err.hint, "--allow loss");
    dcn_plans_lose(&plans, 2, "F4 tensor", "q", 1);
    CHECK_FAILS(dcn_plans_check_losses(&plans, "x", 0, &err), DECANT_LOSS, &err);
    CHECK_TEXT(err.message, "x has no place for 3 param ids, 1 scalar and 2 F4 tensors");
    CHECK_OK(dcn_plans_check_losses(&plans, "x", DECANT_ALLOW_LOSS, &err), &err);
}

TEST(losses__beyond_the_last_place_are_not_forgotten)
{
    dcn_plans plans = {0};
    char long_name[500];

    memset(long_name, 'n', sizeof long_name);
    for (int i = 0; i < DCN_LOSSES + 5; i++)
        dcn_plans_lose(&plans, 1, "kind", long_name, sizeof long_name);
    CHECK_EQ(plans.loss_count, DCN_LOSSES);
    CHECK_TEXT(plans.losses[DCN_LOSSES - 1].text, "more");
    CHECK_HAS(plans.losses[0].text, "nnn...'");
    CHECK_FAILS(dcn_plans_check_losses(&plans, "x", 0, &err), DECANT_LOSS, &err);
}

TEST(losses__are_never_let_through_for_want_of_memory)
{
    dcn_plans plans = {0};

    dcn_plans_lose(&plans, 1, "scalar", NULL, 0);
    test_alloc_fail(0);
    CHECK(dcn_plans_check_losses(&plans, "x", 0, &err) != DECANT_OK);
    test_alloc_disarm();
}

TEST(gains__are_noted_as_they_come)
{
    dcn_plans plans = {0};

    dcn_plans_gain(&plans, "metadata format = pt");
    dcn_plans_gain(&plans, "more");
    CHECK_EQ(plans.gain_count, 2);
    CHECK_TEXT(plans.gains[0], "metadata format = pt");
    CHECK_TEXT(plans.gains[1], "more");
}

/* --- what must hold of every model ------------------------------------------------------------------------------- */

TEST(a_length__that_does_not_fit_dtype_and_shape_is_a_mismatch)
{
    static const uint64_t shape[] = {2, 3};
    decant_model *model = create();
    decant_bytes *bytes = memory(20);
    dcn_draft draft = {
        .name = "w", .name_len = 1, .shape = shape, .rank = 2, .dtype = DECANT_F32, .data = {bytes, 0, 20}};

    CHECK_OK(dcn_model_add(model, &draft, &err), &err);
    CHECK_FAILS(dcn_plan_check_model(model, &err), DECANT_MISMATCH, &err);
    CHECK_TEXT(decant_error_text(&err), "tensor 'w': the length of its bytes does not fit its dtype and shape, "
                                        "found 20 bytes, expected 24 for F32 [2, 3]");
    decant_model_close(&model);

    model = create();
    draft.dtype = DECANT_QFLOAT; /* its format knows */
    CHECK_OK(dcn_model_add(model, &draft, &err), &err);
    draft.name = "blob";
    draft.name_len = 4;
    draft.dtype = DECANT_DTYPE_NONE;
    CHECK_OK(dcn_model_add(model, &draft, &err), &err);
    CHECK_OK(dcn_plan_check_model(model, &err), &err);
    decant_bytes_unref(&bytes);
    decant_model_close(&model);
}

TEST(a_shape__that_overflows_or_ends_inside_a_byte_is_refused_by_name)
{
    static const uint64_t huge[] = {UINT64_MAX, 2}, odd[] = {3};
    decant_model *model = create();
    decant_bytes *bytes = memory(8);
    dcn_draft draft = {
        .name = "w", .name_len = 1, .shape = huge, .rank = 2, .dtype = DECANT_F32, .data = {bytes, 0, 8}};

    CHECK_OK(dcn_model_add(model, &draft, &err), &err);
    CHECK_FAILS(dcn_plan_check_model(model, &err), DECANT_MALFORMED, &err);
    CHECK_TEXT(err.tensor, "w");
    decant_model_close(&model);

    model = create();
    draft.shape = odd;
    draft.rank = 1;
    draft.dtype = DECANT_F4;
    CHECK_OK(dcn_model_add(model, &draft, &err), &err);
    CHECK_FAILS(dcn_plan_check_model(model, &err), DECANT_MALFORMED, &err);
    CHECK_TEXT(err.tensor, "w");
    decant_bytes_unref(&bytes);
    decant_model_close(&model);
}

TEST(a_provider__that_stands_in_two_tensors_is_refused_naming_both)
{
    decant_model *model = create();
    decant_bytes *p = defer(100), *q = defer(100), *text = memory(10), *half = slice_of(p, 0, 50), *rope;

    rope = join(text, half);
    add(model, "q", q, 0, 100);
    add(model, "first", p, 50, 50);
    add(model, "again", rope, 0, 60);
    add(model, "text", text, 0, 10);
    add(model, "text too", text, 0, 10); /* memory may stand anywhere */
    CHECK_FAILS(dcn_plan_check_model(model, &err), DECANT_BAD_CALL, &err);
    CHECK_TEXT(err.tensor, "again");
    CHECK_HAS(err.message, "'first'");
    CHECK_HAS(err.hint, "keep");

    may_ask = true;
    CHECK_OK(decant_bytes_keep(half, &err), &err);
    may_ask = false;
    CHECK_OK(dcn_plan_check_model(model, &err), &err); /* one of the two is served from memory now */

    decant_bytes_unref(&p);
    decant_bytes_unref(&q);
    decant_bytes_unref(&text);
    decant_bytes_unref(&half);
    decant_bytes_unref(&rope);
    decant_model_close(&model);
}

TEST(a_kept_provider__may_stand_anywhere)
{
    decant_model *model = create();
    decant_bytes *p = defer(100);

    add(model, "a", p, 0, 100);
    add(model, "b", p, 0, 100);
    CHECK_FAILS(dcn_plan_check_model(model, &err), DECANT_BAD_CALL, &err);
    may_ask = true;
    CHECK_OK(decant_bytes_keep(p, &err), &err);
    may_ask = false;
    CHECK_OK(dcn_plan_check_model(model, &err), &err);
    decant_bytes_drop(p);
    CHECK_FAILS(dcn_plan_check_model(model, &err), DECANT_BAD_CALL, &err);
    decant_bytes_unref(&p);
    decant_model_close(&model);
}

TEST(a_provider__that_stands_twice_in_one_rope_is_refused)
{
    decant_model *model = create();
    decant_bytes *p = defer(10), *rope = join(p, p), *none;

    add(model, "rope", rope, 0, 20);
    CHECK_FAILS(dcn_plan_check_model(model, &err), DECANT_BAD_CALL, &err);
    CHECK_TEXT(err.tensor, "rope");
    decant_model_close(&model);

    model = create(); /* but a range of it that meets the provider once is fine, and no bytes are no use */
    none = slice_of(p, 0, 0);
    add(model, "half", rope, 10, 10);
    add(model, "none", none, 0, 0);
    CHECK_OK(dcn_plan_check_model(model, &err), &err);
    decant_bytes_unref(&none);
    decant_bytes_unref(&rope);
    decant_bytes_unref(&p);
    decant_model_close(&model);
}

TEST(of_many_second_uses__the_earliest_is_named_whatever_the_addresses)
{
    enum { COUNT = 40 };
    decant_model *model = create();
    decant_bytes *all[COUNT];
    char name[16];

    for (int i = 0; i < COUNT; i++) {
        all[i] = defer(1);
        snprintf(name, sizeof name, "a%d", i);
        add(model, name, all[i], 0, 1);
    }
    for (int i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "b%d", i);
        add(model, name, all[(i * 7 + 3) % COUNT], 0, 1);
    }
    CHECK_FAILS(dcn_plan_check_model(model, &err), DECANT_BAD_CALL, &err);
    CHECK_TEXT(err.tensor, "b0");
    CHECK_HAS(err.message, "'a3'");
    for (size_t n = 0;; n++) {
        decant_status rc;

        test_alloc_fail(n);
        rc = dcn_plan_check_model(model, &err);
        test_alloc_disarm();
        CHECK_EQ(rc, test_alloc_fired() ? DECANT_NOMEM : DECANT_BAD_CALL);
        if (!test_alloc_fired())
            break;
    }
    for (int i = 0; i < COUNT; i++)
        decant_bytes_unref(&all[i]);
    decant_model_close(&model);
}
