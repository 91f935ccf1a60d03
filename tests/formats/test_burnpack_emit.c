/* Plans: what is refused, what is said of who opens them, and where things stand. */
#include "support/alloc.h"
#include "support/models.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>

#include "format/burnpack/layout.h"

static decant_model *model;
static dcn_plans plans;
static decant_error err;

static void start(void)
{
    dcn_plans_close(&plans);
    decant_model_close(&model);
    CHECK_OK(decant_model_create(&model, &err), &err);
}

static void stop(void)
{
    dcn_plans_close(&plans);
    decant_model_close(&model);
}

static decant_status emit(unsigned allow)
{
    dcn_layout how = {.allow = allow};

    dcn_plans_close(&plans);
    return dcn_burnpack.emit(model, &how, &plans, &err);
}

static decant_status read_nothing(void *ctx, uint64_t offset, void *dst, size_t len, decant_error *e)
{
    (void)ctx;
    (void)offset;
    (void)dst;
    (void)len;
    return decant_error_set(e, DECANT_CALLBACK, "a plan must not read");
}

/* A tensor of this many bytes, which nobody may ask for. */
static void add_huge(const char *name, uint64_t len)
{
    decant_provider provider = DECANT_PROVIDER_INIT;
    decant_tensor tensor = DECANT_TENSOR_INIT;
    decant_bytes *bytes = NULL;

    provider.read = read_nothing;
    CHECK_OK(decant_bytes_defer(len, &provider, &bytes, &err), &err);
    tensor.name = name;
    tensor.dtype = DECANT_U8;
    tensor.rank = 1;
    tensor.shape = &len;
    CHECK_OK(decant_model_add(model, &tensor, bytes, &err), &err);
    decant_bytes_unref(&bytes);
}

static void add_small(const char *name, decant_dtype dtype, const void *bytes, size_t len)
{
    uint64_t extent = len;

    model_add(model, name, dtype, 1, &extent, NULL, bytes, len);
}

/* --- where things stand ------------------------------------------------------------------------------------------- */

TEST(plan__lays_data_in_the_order_of_the_model_each_at_256)
{
    const dcn_plan *plan;

    start();
    add_huge("z", 300);
    add_huge("a", 0);
    add_huge("m", 1);
    CHECK_OK(emit(0), &err);
    CHECK_EQ(plans.count, 1);
    plan = &plans.items[0];
    CHECK_EQ(plan->count, 4);
    CHECK(plan->pieces[0].literal && plan->pieces[0].at == 0);
    for (unsigned i = 0; i < 3; i++)
        CHECK(!plan->pieces[1 + i].literal && plan->pieces[1 + i].index == i && plan->pieces[1 + i].at % 256 == 0);
    CHECK_EQ(plan->pieces[2].at - plan->pieces[1].at, 512);
    CHECK_EQ(plan->pieces[3].at, plan->pieces[2].at); /* nothing lies between */
    CHECK_EQ(plan->total, plan->pieces[3].at + 1);
    CHECK_EQ(plan->data, 301);
    CHECK_EQ(plan->held, plan->total);
    CHECK_TEXT(openers_text(&plans.openers), "Burn");

    start();
    add_huge("z", 100000);
    CHECK_OK(emit(0), &err);
    CHECK_EQ(plans.items[0].held, 4096);
    stop();
}

/* Names by their bytes, a prefix first, whatever the order of the model. */
TEST(plan__sorts_the_map_by_bytes)
{
    static const char *const names[] = {"b", "aa", "\xC3\xA9", "a", "Z", "ab", "", "\xF0\x9F\x98\x80", "\xEF\xBF\xBD"};
    static const char *const wanted[] = {"", "Z", "a", "aa", "ab", "b", "\xC3\xA9", "\xEF\xBF\xBD", "\xF0\x9F\x98\x80"};
    const uint8_t *at, *end;

    start();
    for (size_t i = 0; i < 9; i++)
        add_huge(names[i], i);
    CHECK_OK(emit(0), &err);
    at = plans.items[0].literals[0].data;
    end = at + plans.items[0].literals[0].len;
    for (size_t i = 0; i < 9; i++) {
        uint8_t head[32];
        size_t len = strlen(wanted[i]);

        head[0] = (uint8_t)(0x60 | len);
        memcpy(head + 1, wanted[i], len);
        memcpy(head + 1 + len,
               "\xA3\x65"
               "dtype",
               7);
        at = memmem(at, (size_t)(end - at), head, len + 8);
        if (!at)
            test_fail(__FILE__, __LINE__, "name %zu is not where it should be", i);
        at += len + 8;
    }
    stop();
}

/* --- what has no place -------------------------------------------------------------------------------------------- */

TEST(dtypes_without_a_place__are_counted_and_never_dropped)
{
    start();
    model_add(model, "c", DECANT_C64, 0, NULL, NULL, "12345678", 8);
    add_small("e.1", DECANT_F8_E4M3, "123", 3);
    add_small("e.2", DECANT_F8_E4M3, "123", 3);
    add_small("u", DECANT_U8, "123", 3);
    for (unsigned allow = 0; allow < 4; allow++) {
        CHECK_FAILS(emit(allow), DECANT_LOSS, &err);
        CHECK_HAS(err.message, "burnpack has no place for 1 C64 tensor and 2 F8_E4M3 tensors");
        CHECK_HAS(err.hint, "choose a format");
        CHECK_HAS(plans.losses[1].text, "first of 'e.1'");
        CHECK_EQ(plans.count, 0);
    }
    stop();
}

TEST(dtypes_with_a_place__are_those_of_burn)
{
    unsigned good = 0;

    for (unsigned dtype = 0; dtype < DECANT_QFLOAT; dtype++) {
        start();
        model_add(model, "t", (decant_dtype)dtype, 1, (const uint64_t[]){0}, NULL, "", 0);
        if (emit(0) == DECANT_OK)
            good++;
        else
            CHECK_EQ(err.status, DECANT_LOSS);
    }
    CHECK_EQ(good, 13 + 3);
    stop();
}

static dcn_extra foreign_entry, foreign_model;

static void close_nothing(dcn_extra *extra)
{
    (void)extra;
}

TEST(extras_of_other_formats__are_lost_unless_that_is_allowed)
{
    static const dcn_extra_ops ops = {.format = "other", .what = "block scale", .close = close_nothing},
                               whole = {.format = "other", .what = "vocabulary", .close = close_nothing};

    foreign_entry = (dcn_extra){.ops = &ops, .refs = 3};
    foreign_model = (dcn_extra){.ops = &whole, .refs = 2};
    start();
    add_small("a", DECANT_U8, "1", 1);
    add_small("b", DECANT_U8, "1", 1);
    model->entries[0].extra = model->entries[1].extra = &foreign_entry;
    model->extra = &foreign_model;
    CHECK_FAILS(emit(DECANT_ALLOW_LIMITS), DECANT_LOSS, &err);
    CHECK_HAS(err.message, "1 vocabulary and 2 block scales");
    CHECK_OK(emit(DECANT_ALLOW_LOSS), &err);
    CHECK_EQ(plans.loss_count, 2);
    stop();
}

/* Burn's writer takes any; what it wrote then would be refused by decant's reader. */
TEST(quantized_tensors__that_are_built_have_the_length_of_their_scheme)
{
    static const uint64_t shape[] = {4};
    static const decant_quant native = {.size = sizeof native, .value = DECANT_Q8F, .store = DECANT_STORE_NATIVE};
    static const decant_quant across = {
        .size = sizeof across, .value = DECANT_Q8F, .store = DECANT_STORE_PACKED_U32, .packed_dim = 1};

    start();
    model_add(model, "q", DECANT_QFLOAT, 1, shape, &native, "12345678", 8);
    CHECK_OK(emit(0), &err);
    stop();
    start();
    model_add(model, "q", DECANT_QFLOAT, 1, shape, &native, "1234567", 7);
    CHECK_FAILS(emit(3), DECANT_MISMATCH, &err);
    CHECK_HAS(decant_error_text(&err),
              "tensor 'q': the length of its bytes does not fit its quantization scheme and shape, "
              "found 7 bytes, expected 8 for [4]");
    stop();
    start();
    model_add(model, "q", DECANT_QFLOAT, 1, shape, &across, "12345678", 8);
    CHECK_FAILS(emit(3), DECANT_MISMATCH, &err);
    CHECK_HAS(err.expected, "a scheme that fits [4]");
    stop();
}

TEST(quantized_tensors__need_their_scheme)
{
    dcn_draft draft = {.name = "q", .name_len = 1, .dtype = DECANT_QFLOAT};
    decant_bytes *bytes = NULL;

    start();
    CHECK_OK(decant_bytes_copy("1234", 4, &bytes, &err), &err);
    draft.data = (dcn_span){bytes, 0, 4};
    CHECK_OK(dcn_model_add(model, &draft, &err), &err);
    CHECK_FAILS(emit(3), DECANT_BAD_CALL, &err);
    CHECK_TEXT(err.tensor, "q");
    decant_bytes_unref(&bytes);
    stop();
}

/* --- the limits of Burn's reader ---------------------------------------------------------------------------------- */

/* The model as it stands passes a limit: refused, unless that is allowed; then it is said who does not open it. */
static void check_past_limit(const char *said, const char *opener)
{
    CHECK_FAILS(emit(DECANT_ALLOW_LOSS), DECANT_LIMIT, &err);
    CHECK_TEXT(err.message, said);
    CHECK_TEXT(err.hint, "choose another format, or --allow limits");
    CHECK_EQ(err.side, DECANT_SIDE_OUTPUT);
    CHECK_OK(emit(DECANT_ALLOW_LIMITS), &err);
    CHECK_TEXT(openers_text(&plans.openers), opener);
}

TEST(a_tensor__has_at_most_10_gib_for_burn)
{
    start();
    add_huge("t", UINT64_C(10737418240));
    CHECK_OK(emit(0), &err);
    CHECK_TEXT(openers_text(&plans.openers), "Burn");
    start();
    add_huge("small", 1);
    add_huge("t", UINT64_C(10737418241));
    check_past_limit(
        "10,737,418,241 bytes, but Burn's reader opens at most 10,737,418,240 a tensor unless told otherwise",
        "Burn: not before its limit of 10 GiB a tensor is raised");
    CHECK_FAILS(emit(0), DECANT_LIMIT, &err);
    CHECK_TEXT(err.tensor, "t");
    stop();
}

TEST(a_file__has_at_most_500_gib_for_burn)
{
    char name[8];

    start();
    for (int i = 0; i < 50; i++) {
        snprintf(name, sizeof name, "%02d", i);
        add_huge(name, i < 49 ? UINT64_C(10737418240) : UINT64_C(10737000000));
    }
    CHECK_OK(emit(0), &err);
    model->entries[49].data.len += UINT64_C(536870912000) - plans.items[0].total; /* emit goes by lengths alone */
    CHECK_OK(emit(0), &err);
    CHECK_EQ(plans.items[0].total, UINT64_C(536870912000));
    CHECK_TEXT(openers_text(&plans.openers), "Burn");
    model->entries[49].data.len++;
    check_past_limit("536,870,912,001 bytes, but Burn's reader opens at most 536,870,912,000 unless told otherwise",
                     "Burn: not before its limit of 500 GiB is raised");
    stop();
}

TEST(a_model__has_at_most_100000_tensors_for_burn)
{
    char name[16];

    start();
    for (int i = 0; i < 100000; i++) {
        snprintf(name, sizeof name, "t%d", i);
        add_small(name, DECANT_U8, "", 0);
    }
    CHECK_OK(emit(0), &err);
    add_small("one more", DECANT_U8, "", 0);
    check_past_limit("100,001 tensors, but Burn's reader opens at most 100,000", "Burn: no more than 100,000 tensors");
    stop();
}

TEST(metadata__has_at_most_100_mib_for_burn)
{
    enum { MOST = 100 << 20 };
    char *text = malloc(MOST);
    decant_value value = {.type = DECANT_VALUE_TEXT, .as.text = {text, 0}};

    CHECK(text);
    memset(text, 'x', MOST);
    start();
    for (size_t extra = 0; extra < 2; extra++) {
        /* around it: a2 'tensors' a0 'metadata' a1 'k' 7a and four bytes */
        value.as.text.len = MOST - (1 + 8 + 1 + 9 + 1 + 2 + 5) + extra;
        CHECK_OK(decant_model_set(model, "k", 1, &value, &err), &err);
        if (extra == 0)
            CHECK_OK(emit(0), &err);
    }
    check_past_limit("104,857,601 bytes of metadata, but Burn's reader opens at most 104,857,600",
                     "Burn: no more than 100 MiB of metadata");
    free(text);
    stop();
}

TEST(lengths_past_64_bits__are_refused_whatever_is_allowed)
{
    start();
    add_huge("a", UINT64_MAX - 1000);
    add_huge("b", 1000);
    CHECK_FAILS(emit(DECANT_ALLOW_LIMITS), DECANT_LIMIT, &err);
    CHECK_HAS(err.message, "longer than 64 bits");
    start();
    add_huge("a", UINT64_MAX - 200);
    CHECK_FAILS(emit(DECANT_ALLOW_LIMITS), DECANT_LIMIT, &err);
    stop();
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

TEST(emit__without_memory_fails_and_leaves_nothing)
{
    static const decant_quant scheme = {.size = sizeof scheme, .value = DECANT_Q8F};
    static const uint64_t shape[] = {4};
    static const decant_value scalar = {.type = DECANT_VALUE_I64, .as.i64 = 5};
    size_t n = 0, live;

    start();
    model_add(model, "q", DECANT_QFLOAT, 1, shape, &scheme, "12345678", 8);
    add_small("b", DECANT_U8, "12", 2);
    add_small("a", DECANT_U8, "12", 2);
    model_set_text(model, "k", "v");
    CHECK_OK(decant_model_set(model, "s", 1, &scalar, &err), &err);
    live = test_alloc_live();
    for (bool fired = true; fired; n++) {
        decant_status rc;

        test_alloc_fail(n);
        rc = emit(0);
        fired = test_alloc_fired();
        test_alloc_disarm();
        CHECK_EQ(rc, fired ? DECANT_NOMEM : DECANT_OK);
        dcn_plans_close(&plans);
        CHECK_EQ(test_alloc_live(), live);
    }
    CHECK(n > 5);
    stop();
}

/* The header is built once, in one allocation that it nearly fills. */
TEST(emit__takes_little_more_than_the_header)
{
    enum { COUNT = 20000, EACH = 8 + 8 + 16 }; /* order, place, piece */
    char name[32];
    size_t before, header;

    start();
    for (int i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "layers.%d.weight", COUNT - i);
        add_small(name, DECANT_U8, "", 0);
    }
    before = test_alloc_bytes();
    test_alloc_reset_peak();
    CHECK_OK(emit(0), &err);
    header = plans.items[0].literals[0].len;
    CHECK(test_alloc_peak() - before < header + header / 3 + COUNT * EACH + 4096);
    stop();
}
