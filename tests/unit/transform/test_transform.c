#include "support/test.h"

#include <stdio.h>

#include "model/model.h"
#include "support/alloc.h"
#include "support/models.h"

static decant_error err;

enum { MOST = 4 };

/* What is asked for; {0} is nothing. Lists end with NULL. */
typedef struct wish {
    const char *prefix[MOST + 1], *include[MOST + 1], *exclude[MOST + 1], *rename[MOST + 1], *dtype[MOST + 1],
        *set[MOST + 1], *unset[MOST + 1];
    unsigned allow;
} wish;

static size_t count_of(const char *const *list)
{
    size_t count = 0;

    while (list[count])
        count++;
    return count;
}

/* Two models: "a" F32 and "b" I64; "c" F32 and "d" F16. Of the second `metadata` has this value of key "k", if not NULL. */
static void make(decant_model *models[2], const char *first, const char *second)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    static const decant_dtype dtypes[] = {DECANT_F32, DECANT_I64, DECANT_F32, DECANT_F16};
    const uint64_t shape[] = {3};

    for (size_t i = 0; i < 2; i++) {
        models[i] = NULL;
        CHECK_OK(decant_model_create(&models[i], &err), &err);
        models[i]->path = i ? "two.safetensors" : "one.safetensors";
        models[i]->format = i ? "burnpack" : "safetensors";
    }
    for (size_t i = 0; i < 4; i++)
        model_add_stream(models[i / 2], names[i], dtypes[i], 1, shape, i);
    if (first)
        model_set_text(models[0], "k", first);
    if (second)
        model_set_text(models[1], "k", second);
}

static decant_status transform(decant_model *const *models, size_t count, const wish *w, decant_model **out)
{
    const decant_model *lent[2] = {models[0], models[1]};
    decant_setting settings[MOST];
    decant_transform_options o = DECANT_TRANSFORM_OPTIONS_INIT;

    o.include = w->include;
    o.include_count = count_of(w->include);
    o.exclude = w->exclude;
    o.exclude_count = count_of(w->exclude);
    o.rename = w->rename;
    o.rename_count = count_of(w->rename);
    o.dtype = w->dtype;
    o.dtype_count = count_of(w->dtype);
    o.set = settings;
    o.set_count = count_of(w->set);
    for (size_t i = 0; i < o.set_count; i++)
        settings[i] = (decant_setting){w->set[i], NULL, 0};
    o.unset = w->unset;
    o.unset_count = count_of(w->unset);
    o.allow = w->allow;
    return decant_transform(lent, w->prefix, count, &o, out, &err);
}

/* "a:F32 b:I64 | k=v": what a model holds. */
static void check_holds(const decant_model *model, const char *wanted)
{
    char text[512] = "";
    size_t used = 0;

    for (size_t i = 0; i < model->count; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%.*s:%s", i ? " " : "",
                                 (int)model->entries[i].name_len, model->entries[i].name,
                                 decant_dtype_name((decant_dtype)model->entries[i].dtype));
    for (size_t i = 0; i < model->value_count; i++)
        if (model->values[i].value.type == DECANT_VALUE_TEXT)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%.*s=%.*s", i ? " " : " | ",
                                     (int)model->values[i].key_len, model->values[i].key,
                                     (int)model->values[i].value.as.text.len, model->values[i].value.as.text.data);
        else
            used +=
                (size_t)snprintf(text + used, sizeof text - used, "%s%.*s=%d:%llx", i ? " " : " | ",
                                 (int)model->values[i].key_len, model->values[i].key, (int)model->values[i].value.type,
                                 (unsigned long long)model->values[i].value.as.u64);
    CHECK_TEXT(text, wanted);
}

/* Both models as `w` says. */
static void check_gives(const wish *w, const char *wanted)
{
    decant_model *models[2], *out = NULL;

    make(models, "v", NULL);
    CHECK_OK(transform(models, 2, w, &out), &err);
    decant_model_close(&models[0]);
    decant_model_close(&models[1]); /* the new one lives on alone */
    check_holds(out, wanted);
    decant_model_close(&out);
}

static void check_refuses(const wish *w, decant_status status, const char *text)
{
    decant_model *models[2], *out = NULL;

    make(models, "v", NULL);
    CHECK_EQ(transform(models, 2, w, &out), status);
    CHECK(out == NULL);
    CHECK(err.hint[0]);
    if (!strstr(decant_error_text(&err), text))
        test_fail(__FILE__, __LINE__, "'%s' is not in '%s'", text, decant_error_text(&err));
    decant_model_close(&models[0]);
    decant_model_close(&models[1]);
}

TEST(transform__merges_in_the_order_of_the_inputs)
{
    check_gives(&(wish){0}, "a:F32 b:I64 c:F32 d:F16 | k=v");
}

TEST(transform__puts_prefixes_then_filters_then_renames_then_casts)
{
    wish w = {.prefix = {"x.", "y."},
              .include = {"?.[acd]"},
              .exclude = {"re:c$"},
              .rename = {"s/^(.)\\.(.)/$2.\\1/", "s/^d/e/"},
              .dtype = {"f16", "a.*=bf16"}};

    check_gives(&w, "a.x:BF16 e.y:F16 | k=v");
}

TEST(transform__casts_what_is_real_by_a_rule_for_all_and_takes_the_last_that_matches)
{
    check_gives(&(wish){.dtype = {"bf16"}}, "a:BF16 b:I64 c:BF16 d:BF16 | k=v");
    check_gives(&(wish){.dtype = {"[ab]=f64", "F16", "re:c|d=f32"}}, "a:F16 b:I64 c:F32 d:F32 | k=v");
    check_gives(&(wish){.dtype = {"*=f32"}}, "a:F32 b:I64 c:F32 d:F32 | k=v");
}

TEST(transform__refuses_a_cast_of_what_cannot_be_cast_where_it_is_named)
{
    check_refuses(&(wish){.dtype = {"b=f32"}}, DECANT_UNSUPPORTED, "one.safetensors: tensor 'b': I64 cannot be cast");
    check_refuses(&(wish){.dtype = {"f8"}}, DECANT_BAD_CALL, "nothing can be cast to 'f8'");
    check_refuses(&(wish){.dtype = {"a="}}, DECANT_BAD_CALL, "nothing can be cast to ''");
}

TEST(transform__refuses_what_matches_nothing_and_says_what_may_be_meant)
{
    check_refuses(&(wish){.prefix = {"encoder.", "decoder."}, .include = {"encodr.a"}}, DECANT_NOT_FOUND,
                  "--include encodr.a matches no tensor; did you mean 'encoder.a'?");
    check_refuses(&(wish){.exclude = {"z"}}, DECANT_NOT_FOUND, "--exclude z matches no tensor");
    check_refuses(&(wish){.rename = {"s/z/y/"}}, DECANT_NOT_FOUND, "--rename s/z/y/ matches no tensor");
    check_refuses(&(wish){.rename = {"s/a/aa/"}, .dtype = {"ab=f32"}}, DECANT_NOT_FOUND, "did you mean 'aa'?");
    check_refuses(&(wish){.include = {"a"}, .rename = {"s/c/x/"}}, DECANT_NOT_FOUND, "--rename s/c/x/");
    check_refuses(&(wish){.unset = {"kk"}}, DECANT_NOT_FOUND, "did you mean 'k'?");
}

TEST(transform__refuses_two_tensors_of_one_name_and_names_both_files)
{
    check_refuses(&(wish){.rename = {"s/c/a/"}}, DECANT_DUPLICATE,
                  "tensor 'a': two tensors would have this name: 'a' of one.safetensors and 'c' of two.safetensors;");
    check_refuses(&(wish){.rename = {"s/.*/w/"}}, DECANT_DUPLICATE,
                  "'a' of one.safetensors and 'b' of one.safetensors;");
    CHECK(strstr(err.hint, "--rename"));
}

TEST(transform__hints_at_a_prefix_where_two_inputs_have_the_same_names)
{
    decant_model *models[2], *out = NULL, *twice[2];

    make(models, NULL, NULL);
    twice[0] = twice[1] = models[0];
    CHECK_EQ(transform(twice, 2, &(wish){0}, &out), DECANT_DUPLICATE);
    CHECK(strstr(err.hint, "--prefix"));
    CHECK_OK(transform(twice, 2, &(wish){.prefix = {"x.", ""}}, &out), &err);
    check_holds(out, "x.a:F32 x.b:I64 a:F32 b:I64");
    decant_model_close(&out);
    decant_model_close(&models[0]);
    decant_model_close(&models[1]);
}

TEST(transform__refuses_names_of_no_length_and_of_too_much)
{
    char text[4200];

    check_refuses(&(wish){.rename = {"s/a//"}}, DECANT_BAD_CALL, "tensor 'a': nothing would be left of its name");
    memset(text, 'x', sizeof text);
    text[4096] = '\0';
    check_refuses(&(wish){.prefix = {text, NULL}}, DECANT_LIMIT, "found 4097 bytes, expected at most 4096");
    check_refuses(&(wish){.prefix = {"\xFF"}}, DECANT_BAD_CALL, "not UTF-8");
}

TEST(transform__leaves_names_of_the_longest_kind_alone)
{
    decant_model *models[2], *out = NULL;
    char name[4097];

    make(models, NULL, NULL);
    memset(name, 'n', 4096);
    name[4096] = '\0';
    model_add_stream(models[0], name, DECANT_F32, 0, NULL, 1);
    CHECK_OK(transform(models, 1, &(wish){.rename = {"s/^n/m/"}}, &out), &err);
    CHECK_EQ(out->entries[2].name_len, 4096);
    decant_model_close(&out);
    decant_model_close(&models[0]);
    decant_model_close(&models[1]);
}

TEST(transform__refuses_different_metadata_unless_one_is_chosen)
{
    decant_model *models[2], *out = NULL;

    make(models, "pt", "np");
    CHECK_EQ(transform(models, 2, &(wish){0}, &out), DECANT_MISMATCH);
    CHECK(strstr(err.found, "'np' in two.safetensors") && strstr(err.expected, "'pt' in one.safetensors"));
    CHECK(strstr(err.hint, "--set k=VALUE") && strstr(err.hint, "--unset k"));
    CHECK_OK(transform(models, 2, &(wish){.set = {"k=x", "new=a=b"}}, &out), &err);
    check_holds(out, "a:F32 b:I64 c:F32 d:F16 | k=x new=a=b");
    decant_model_close(&out);
    CHECK_OK(transform(models, 2, &(wish){.unset = {"k"}}, &out), &err);
    check_holds(out, "a:F32 b:I64 c:F32 d:F16");
    decant_model_close(&out);
    model_set_text(models[1], "k", "pt");
    CHECK_OK(transform(models, 2, &(wish){0}, &out), &err);
    check_holds(out, "a:F32 b:I64 c:F32 d:F16 | k=pt");
    decant_model_close(&out);
    decant_model_close(&models[0]);
    decant_model_close(&models[1]);
}

TEST(transform__sets_values_of_the_type_that_is_said_or_there)
{
    decant_model *models[2], *out = NULL;
    decant_value step = {.type = DECANT_VALUE_U64};

    make(models, NULL, NULL);
    step.as.u64 = 7;
    CHECK_OK(decant_model_set(models[0], "step", 4, &step, &err), &err);
    CHECK_OK(
        transform(models, 1, &(wish){.set = {"step=9", "n:i8=-128", "on:bool=true\n", "modelspec:title=x:y=z"}}, &out),
        &err);
    check_holds(out, "a:F32 b:I64 | step=3:9 n=2:ffffffffffffff80 on=1:1 modelspec:title=x:y=z");
    decant_model_close(&out);
    CHECK_OK(transform(models, 1, &(wish){.set = {"step:text=9", "x:f32=0.1", "y:f64=0.5"}}, &out), &err);
    check_holds(out, "a:F32 b:I64 | step=9 x=4:3fb99999a0000000 y=4:3fe0000000000000");
    decant_model_close(&out);

    CHECK_EQ(transform(models, 1, &(wish){.set = {"step=x"}}, &out), DECANT_BAD_CALL);
    CHECK(strstr(err.message, "'x' of 'step' is no u64") && strstr(err.hint, "step:text=..."));
    decant_model_close(&models[0]);
    decant_model_close(&models[1]);
}

TEST(transform__refuses_values_that_are_none)
{
    static const char *const wrong[] = {"k",        "k:u8=256", "k:u8=-1",     "k:i8=128", "k:bool=yes",   "k:u32=",
                                        "k:u32=1x", "k:f64=",   "k:f64=1e999", "k:i64= 1", "k:bool=truex", "\xFF=v",
                                        "k=\xFF",   "=v",       ":u8=1"};

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        check_refuses(&(wish){.set = {wrong[i]}}, DECANT_BAD_CALL, "");
}

TEST(transform__refuses_to_decide_a_key_twice)
{
    check_refuses(&(wish){.set = {"k=1", "n=1", "k:u8=2"}}, DECANT_BAD_CALL, "the key 'k' is set twice");
    check_refuses(&(wish){.set = {"k=1"}, .unset = {"k"}}, DECANT_BAD_CALL, "the key 'k' is both set and unset");
}

TEST(transform__tells_where_tensors_come_from)
{
    decant_model *models[2], *out = NULL;
    decant_origin origin = {.size = sizeof origin};

    make(models, NULL, NULL);
    CHECK(!decant_model_origin(models[0], 0, &origin));
    CHECK_OK(transform(models, 2, &(wish){.prefix = {"x."}, .exclude = {"x.a"}, .dtype = {"d=f32"}}, &out), &err);
    decant_model_close(&models[0]);
    decant_model_close(&models[1]);
    CHECK(decant_model_origin(out, 0, &origin));
    CHECK(origin.input == 0 && origin.name_len == 1 && origin.name[0] == 'b' && origin.dtype == DECANT_I64);
    CHECK(decant_model_origin(out, 2, &origin));
    CHECK(origin.input == 1 && origin.name_len == 1 && origin.name[0] == 'd' && origin.dtype == DECANT_F16);
    CHECK_TEXT(decant_model_format(out), "safetensors");
    decant_model_close(&out);
}

TEST(transform__reports_calls_without_models)
{
    const decant_model *none[] = {NULL};
    decant_model *out = NULL;

    CHECK_EQ(decant_transform(NULL, NULL, 0, NULL, &out, &err), DECANT_BAD_CALL);
    CHECK_EQ(decant_transform(none, NULL, 1, NULL, &out, &err), DECANT_BAD_CALL);
}

TEST(transform__reports_every_allocation_that_fails)
{
    const wish w = {.prefix = {"x.", "y."},
                    .include = {"re:."},
                    .rename = {"s/x/long name for x/"},
                    .dtype = {"bf16"},
                    .set = {"n=1"},
                    .allow = DECANT_ALLOW_OVERFLOW};
    decant_model *models[2];
    size_t live;

    make(models, "v", "v");
    live = test_alloc_live();
    for (size_t n = 0;; n++) {
        decant_model *out = NULL;
        decant_status rc;
        bool fired;

        test_alloc_fail(n);
        rc = transform(models, 2, &w, &out);
        fired = test_alloc_fired();
        test_alloc_disarm();
        CHECK_EQ(rc, fired ? DECANT_NOMEM : DECANT_OK);
        decant_model_close(&out);
        CHECK_EQ(test_alloc_live(), live);
        if (!fired)
            break;
    }
    decant_model_close(&models[0]);
    decant_model_close(&models[1]);
}
