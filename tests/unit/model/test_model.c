#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "model/model.h"
#include "support/alloc.h"

static const uint8_t memory[64];

/* All entries of these models lie in `memory`. */
static decant_bytes *wrap(void)
{
    decant_error err = {0};
    decant_bytes *bytes = NULL;

    CHECK_OK(decant_bytes_wrap(memory, sizeof memory, NULL, NULL, &bytes, &err), &err);
    return bytes;
}

static decant_model *create(void)
{
    decant_error err = {0};
    decant_model *model = NULL;

    CHECK_OK(dcn_model_create(42, &model, &err), &err);
    return model;
}

static decant_status add_at(decant_model *model, const char *name, decant_bytes *bytes, uint64_t offset,
                            decant_error *err)
{
    static const uint64_t shape[] = {1, 1};
    dcn_draft draft = {
        .name = name,
        .name_len = strlen(name),
        .shape = shape,
        .rank = 2,
        .dtype = DECANT_F32,
        .data = {bytes, offset, 4},
    };

    return dcn_model_add(model, &draft, err);
}

static decant_value text_of(const char *text)
{
    decant_value value = {.type = DECANT_VALUE_TEXT};

    value.as.text.data = text;
    value.as.text.len = strlen(text);
    return value;
}

static decant_value number(int64_t i64)
{
    decant_value value = {.type = DECANT_VALUE_I64};

    value.as.i64 = i64;
    return value;
}

TEST(a_model__keeps_what_was_added_and_finds_it_by_name)
{
    decant_error err = {0};
    decant_bytes *bytes = wrap();
    decant_model *model = create();
    enum { COUNT = 5000 };
    char name[32];
    size_t index;

    for (size_t i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "layer.%zu", i);
        CHECK_OK(add_at(model, name, bytes, i % 16, &err), &err);
    }
    CHECK_EQ(model->count, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "layer.%zu", i);
        CHECK(dcn_model_find(model, name, strlen(name), &index));
        CHECK_EQ(index, i);
        CHECK_EQ(model->entries[i].data.offset, i % 16);
        CHECK_BYTES(model->entries[i].name, model->entries[i].name_len, name, strlen(name));
    }
    CHECK(!dcn_model_find(model, "layer.", 6, &index));
    CHECK(!dcn_model_find(model, "layer.5000", 10, &index));
    decant_bytes_unref(&bytes);
    decant_model_close(&model);
    CHECK(!model);
}

TEST(a_model__names_both_tensors_of_one_name_and_stays_as_it_was)
{
    decant_error err = {0};
    decant_bytes *bytes = wrap();
    decant_model *model = create();

    CHECK_OK(add_at(model, "a", bytes, 0, &err), &err);
    CHECK_OK(add_at(model, "b", bytes, 4, &err), &err);
    CHECK_FAILS(add_at(model, "a", bytes, 8, &err), DECANT_DUPLICATE, &err);
    CHECK_TEXT(decant_error_text(&err),
               "tensor 'a': two tensors have this name, found tensors 0 and 2, expected one tensor a name");
    CHECK_EQ(model->count, 2);
    CHECK_OK(add_at(model, "c", bytes, 8, &err), &err);
    decant_bytes_unref(&bytes);
    decant_model_close(&model);
}

TEST(a_model__refuses_names_that_are_not_utf8_or_hold_a_nul)
{
    decant_error err = {0};
    decant_bytes *bytes = wrap();
    decant_model *model = create();
    dcn_draft draft = {.name = "a\0b", .name_len = 3, .data = {bytes, 0, 4}};

    CHECK_FAILS(dcn_model_add(model, &draft, &err), DECANT_MALFORMED, &err);
    CHECK_TEXT(err.tensor, "a\\x00b");
    CHECK_FAILS(add_at(model, "\xC0\x80", bytes, 0, &err), DECANT_MALFORMED, &err);
    CHECK_HAS(err.message, "UTF-8");
    CHECK_OK(add_at(model, "", bytes, 0, &err), &err);
    CHECK_EQ(model->count, 1);
    decant_bytes_unref(&bytes);
    decant_model_close(&model);
}

TEST(a_model__refuses_what_its_entries_cannot_hold)
{
    decant_error err = {0};
    decant_bytes *bytes = wrap();
    decant_model *model = create();
    dcn_draft draft = {.name = "a", .name_len = 1, .rank = UINT16_MAX + (size_t)1, .data = {bytes, 0, 4}};

    CHECK_FAILS(dcn_model_add(model, &draft, &err), DECANT_LIMIT, &err);
    decant_bytes_unref(&bytes);
    decant_model_close(&model);
}

TEST(names_that_stay__are_not_copied)
{
    decant_error err = {0};
    decant_bytes *bytes = wrap();
    decant_model *model = create();
    const char *name = dcn_arena_copy(&model->memory, "stays", 5);
    dcn_draft draft = {.name = name, .name_len = 5, .stays = true, .data = {bytes, 0, 4}};

    CHECK_OK(dcn_model_add(model, &draft, &err), &err);
    CHECK(model->entries[0].name == name);
    CHECK(!model->entries[0].shape);
    decant_bytes_unref(&bytes);
    decant_model_close(&model);
}

TEST(sorting__orders_by_place_then_empty_ones_then_name_and_everything_is_still_found)
{
    static const char *const order[] = {"late", "zz", "a", "z", "last"};
    decant_error err = {0};
    decant_bytes *bytes = wrap();
    decant_model *model = create();
    dcn_draft empty = {.name = "zz", .name_len = 2, .data = {bytes, 8, 0}};
    size_t index;

    CHECK_OK(add_at(model, "z", bytes, 8, &err), &err);
    CHECK_OK(add_at(model, "last", bytes, 12, &err), &err);
    CHECK_OK(add_at(model, "late", bytes, 0, &err), &err);
    CHECK_OK(add_at(model, "a", bytes, 8, &err), &err);
    CHECK_OK(dcn_model_add(model, &empty, &err), &err);
    CHECK_OK(dcn_model_sort(model, &err), &err);
    for (size_t i = 0; i < 5; i++) {
        CHECK_BYTES(model->entries[i].name, model->entries[i].name_len, order[i], strlen(order[i]));
        CHECK(dcn_model_find(model, order[i], strlen(order[i]), &index));
        CHECK_EQ(index, i);
    }
    decant_bytes_unref(&bytes);
    decant_model_close(&model);
}

TEST(sorting__leaves_many_entries_findable_whatever_their_order)
{
    enum { COUNT = 3000 };
    decant_error err = {0};
    decant_bytes *bytes = NULL;
    decant_model *model = create();
    uint64_t state = 11;
    char name[16];
    size_t index;

    CHECK_OK(decant_bytes_wrap(NULL, 0, NULL, NULL, &bytes, &err), &err);
    for (unsigned i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "t%u", i);
        CHECK_OK(add_at(model, name, bytes, test_random(&state) % (COUNT / 2), &err), &err);
    }
    CHECK_OK(dcn_model_sort(model, &err), &err);
    for (unsigned i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "t%u", i);
        CHECK(dcn_model_find(model, name, strlen(name), &index));
        CHECK_BYTES(model->entries[index].name, model->entries[index].name_len, name, strlen(name));
        CHECK(!i || model->entries[i - 1].data.offset <= model->entries[i].data.offset);
    }
    decant_bytes_unref(&bytes);
    decant_model_close(&model);
}

TEST(sorting__orders_values_by_key_metadata_before_scalars)
{
    decant_error err = {0};
    decant_model *model = create();
    decant_value text = text_of("x"), one = number(1);

    CHECK_OK(dcn_model_set(model, "b", 1, &one, false, &err), &err);
    CHECK_OK(dcn_model_set(model, "b", 1, &text, false, &err), &err);
    CHECK_OK(dcn_model_set(model, "a", 1, &text, false, &err), &err);
    CHECK_OK(dcn_model_sort(model, &err), &err);
    CHECK_BYTES(model->values[0].key, model->values[0].key_len, "a", 1);
    CHECK_EQ(model->values[1].value.type, DECANT_VALUE_TEXT);
    CHECK_EQ(model->values[2].value.type, DECANT_VALUE_I64);
    CHECK(dcn_model_text(model, "b") == &model->values[1]);
    decant_model_close(&model);
}

TEST(values__are_copied_and_a_key_names_one_text_and_one_scalar)
{
    decant_error err = {0};
    decant_model *model = create();
    char scratch[] = "hello";
    decant_value text = text_of(scratch), one = number(1), two = number(2);

    CHECK_OK(dcn_model_set(model, "k", 1, &text, false, &err), &err);
    CHECK_OK(dcn_model_set(model, "k", 1, &one, false, &err), &err);
    memset(scratch, 'x', 5);
    CHECK_BYTES(dcn_model_text(model, "k")->value.as.text.data, 5, "hello", 5);
    CHECK_FAILS(dcn_model_set(model, "k", 1, &two, false, &err), DECANT_DUPLICATE, &err);
    CHECK_HAS(err.message, "'k'");
    CHECK_EQ(model->value_count, 2);
    CHECK_OK(dcn_model_set(model, "k", 1, &two, true, &err), &err);
    CHECK_EQ(model->value_count, 2);
    CHECK_EQ(model->values[1].value.as.i64, 2);
    CHECK(!dcn_model_text(model, "other"));
    decant_model_close(&model);
}

TEST(values__are_found_among_many)
{
    decant_error err = {0};
    decant_model *model = create();
    char key[32];

    for (int i = 0; i < 1000; i++) {
        decant_value value = text_of(key);

        value.as.text.len = (size_t)snprintf(key, sizeof key, "key %d", i);
        CHECK_OK(dcn_model_set(model, key, strlen(key), &value, false, &err), &err);
    }
    for (int i = 0; i < 1000; i++) {
        const dcn_value *value;

        snprintf(key, sizeof key, "key %d", i);
        value = dcn_model_text(model, key);
        CHECK(value);
        CHECK_BYTES(value->value.as.text.data, value->value.as.text.len, key, strlen(key));
    }
    decant_model_close(&model);
}

TEST(values__that_are_not_utf8_are_refused_by_key)
{
    decant_error err = {0};
    decant_model *model = create();
    decant_value bad = text_of("\xFF"), good = text_of("x");

    CHECK_FAILS(dcn_model_set(model, "k", 1, &bad, true, &err), DECANT_MALFORMED, &err);
    CHECK_HAS(err.message, "value of 'k'");
    CHECK_FAILS(dcn_model_set(model, "\xFF", 1, &good, true, &err), DECANT_MALFORMED, &err);
    CHECK_HAS(err.message, "'\\xff'");
    CHECK_EQ(model->value_count, 0);
    decant_model_close(&model);
}

TEST(a_model__takes_the_entries_of_another_with_their_names_and_finds_them)
{
    enum { COUNT = 100 };
    decant_error err = {0};
    decant_bytes *bytes = wrap();
    decant_model *model = create(), *part;
    char name[48];
    size_t index;

    for (int p = 0; p < 3; p++) {
        part = create();
        for (int i = 0; i < COUNT; i++) {
            snprintf(name, sizeof name, "%d.%d", p, i);
            CHECK_OK(add_at(part, name, bytes, (uint64_t)i % 16, &err), &err);
        }
        CHECK_OK(dcn_model_absorb(model, part, &err), &err);
        CHECK_EQ(part->count, 0);
        CHECK(!dcn_model_find(part, name, strlen(name), &index));
        CHECK_OK(add_at(part, name, bytes, 0, &err), &err); /* it goes on */
        decant_model_close(&part);
    }
    CHECK_EQ(model->count, 3 * COUNT);
    for (size_t i = 0; i < model->count; i++) {
        snprintf(name, sizeof name, "%zu.%zu", i / COUNT, i % COUNT);
        CHECK(dcn_model_find(model, name, strlen(name), &index));
        CHECK_EQ(index, i);
        CHECK_EQ(model->entries[i].shape[1], 1);
    }
    decant_bytes_unref(&bytes);
    decant_model_close(&model);
}

TEST(a_model__is_as_it_was_when_there_is_no_memory_for_the_entries_of_another)
{
    decant_error err = {0};
    decant_bytes *bytes = wrap();
    bool fired = true;

    for (size_t n = 0; fired; n++) {
        decant_model *model = create(), *part = create();
        decant_status rc;

        CHECK_OK(add_at(model, "a", bytes, 0, &err), &err);
        for (char name[] = "b"; name[0] <= 'z'; name[0]++)
            CHECK_OK(add_at(part, name, bytes, 0, &err), &err);
        test_alloc_fail(n);
        rc = dcn_model_absorb(model, part, &err);
        fired = test_alloc_fired();
        test_alloc_disarm();
        CHECK_EQ(rc, fired ? DECANT_NOMEM : DECANT_OK);
        CHECK_EQ(model->count, fired ? 1 : 26);
        CHECK_EQ(part->count, fired ? 25 : 0);
        decant_model_close(&part);
        decant_model_close(&model);
    }
    decant_bytes_unref(&bytes);
}

TEST(sorting__leaves_files_in_the_order_in_which_they_came)
{
    decant_error err = {0};
    decant_bytes *bytes[3];
    decant_model *model;
    char name[8];

    for (int i = 0; i < 3; i++)
        bytes[i] = wrap();
    for (int first = 0; first < 3; first++) { /* wherever they lie in memory */
        model = create();
        for (int f = 0; f < 3; f++)
            for (int i = 0; i < 3; i++) {
                snprintf(name, sizeof name, "%d.%d", f, 2 - i);
                CHECK_OK(add_at(model, name, bytes[(first + f) % 3], (uint64_t)(2 - i) * 4, &err), &err);
            }
        CHECK_OK(dcn_model_sort(model, &err), &err);
        for (size_t i = 0; i < 9; i++) {
            size_t index;

            snprintf(name, sizeof name, "%zu.%zu", i / 3, i % 3);
            CHECK_TEXT(model->entries[i].name, name);
            CHECK(dcn_model_find(model, name, 3, &index));
            CHECK_EQ(index, i);
        }
        decant_model_close(&model);
    }
    for (int i = 0; i < 3; i++)
        decant_bytes_unref(&bytes[i]);
}

TEST(notes__are_safe_to_print)
{
    decant_error err = {0};
    decant_model *model = create();

    CHECK_OK(dcn_model_note(model, "layout", &err, "%s", "one\ntwo"), &err);
    CHECK_TEXT(model->notes[0].key, "layout");
    CHECK_TEXT(model->notes[0].text, "one\\x0atwo");
    decant_model_close(&model);
}

TEST(a_million_tensors__cost_at_most_128_bytes_each)
{
    enum { COUNT = 1000000 };
    decant_error err = {0};
    decant_bytes *bytes = wrap();
    decant_model *model = create();
    char *names = dcn_alloc(COUNT, 8); /* stands for the header, in which names stay */

    CHECK(names);
    CHECK_EQ(dcn_arena_adopt(&model->memory, names), 0);
    test_alloc_reset_peak();
    for (size_t i = 0; i < COUNT; i++) {
        static const uint64_t shape[] = {4, 4};
        dcn_draft draft = {.name = names + 8 * i,
                           .name_len = 7,
                           .stays = true,
                           .shape = shape,
                           .rank = 2,
                           .dtype = DECANT_F32,
                           .data = {bytes, 0, 64}};

        snprintf(names + 8 * i, 8, "%07zu", i);
        CHECK_OK(dcn_model_add(model, &draft, &err), &err);
    }
    CHECK(test_alloc_bytes() <= (128 + 8) * (size_t)COUNT);
    decant_bytes_unref(&bytes);
    decant_model_close(&model);
}

/* Builds a model with one of everything, larger than the first size of each table. */
static decant_status build(decant_model **out, decant_bytes *bytes, decant_error *err)
{
    decant_model *model = NULL;
    decant_value text = text_of("text"), one = number(1);
    char name[16];
    decant_status rc;

    if ((rc = dcn_model_create(7, &model, err)))
        return rc;
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "%d", 99 - i);
        if ((rc = add_at(model, name, bytes, (uint64_t)(40 - i), err)) ||
            (rc = dcn_model_set(model, name, strlen(name), &text, true, err)) ||
            (rc = dcn_model_set(model, name, strlen(name), &one, true, err)))
            goto done;
    }
    if ((rc = dcn_model_reserve(model, 100, err)) || (rc = dcn_model_note(model, "a", err, "b")))
        goto done;
    if ((rc = dcn_model_sort(model, err)))
        goto done;
    *out = model;
    model = NULL;
done:
    decant_model_close(&model);
    return rc;
}

TEST(a_model__is_built_or_refused_whichever_allocation_fails)
{
    decant_bytes *bytes = wrap();
    size_t n = 0;

    for (;; n++) {
        decant_error err = {0};
        decant_model *model = NULL;
        decant_status rc;

        test_alloc_fail(n);
        rc = build(&model, bytes, &err);
        test_alloc_disarm();
        CHECK(test_alloc_fired() == (rc != DECANT_OK));
        if (rc == DECANT_OK) {
            CHECK_EQ(model->count, 40);
            CHECK_EQ(model->value_count, 80);
            decant_model_close(&model);
            break;
        }
        CHECK_EQ(rc, DECANT_NOMEM);
        CHECK_EQ(err.status, DECANT_NOMEM);
        CHECK_EQ(test_alloc_live(), 1);
    }
    CHECK(n > 10);
    decant_bytes_unref(&bytes);
}

TEST(a_failed_add__leaves_the_model_as_it_was)
{
    decant_error err = {0};
    decant_bytes *bytes = wrap();

    for (size_t n = 0;; n++) {
        decant_model *model = create();
        decant_status rc = DECANT_OK;
        size_t index, added = 0;
        char name[16];

        test_alloc_fail(n);
        for (int i = 0; i < 40 && rc == DECANT_OK; i++) {
            snprintf(name, sizeof name, "%d", i);
            rc = add_at(model, name, bytes, 0, &err);
            added += rc == DECANT_OK;
        }
        test_alloc_disarm();
        CHECK_EQ(model->count, added);
        if (rc) {
            CHECK(!dcn_model_find(model, name, strlen(name), &index));
            CHECK_OK(add_at(model, name, bytes, 0, &err), &err);
            CHECK(dcn_model_find(model, name, strlen(name), &index));
        }
        decant_model_close(&model);
        if (!test_alloc_fired())
            break;
    }
    decant_bytes_unref(&bytes);
}

typedef struct counted {
    dcn_extra extra;
    int *closed;
} counted;

static void close_counted(dcn_extra *extra)
{
    ++*((counted *)extra)->closed;
}

TEST(extras__live_as_long_as_somebody_holds_them)
{
    static const dcn_extra_ops ops = {.format = "test", .what = "thing", .close = close_counted};
    decant_error err = {0};
    int closed = 0;
    counted own = {.extra = {.ops = &ops}, .closed = &closed};
    dcn_extra *extra = &own.extra;
    decant_bytes *bytes = wrap();
    decant_model *model = create();
    dcn_draft draft = {.name = "a", .name_len = 1, .data = {bytes, 0, 4}, .extra = extra};

    atomic_init(&own.extra.refs, 1);
    CHECK_OK(dcn_model_add(model, &draft, &err), &err);
    model->extra = dcn_extra_ref(extra);
    dcn_extra_unref(&extra);
    CHECK(!extra);
    CHECK_EQ(closed, 0);
    decant_model_close(&model);
    CHECK_EQ(closed, 1);
    CHECK(!dcn_extra_ref(NULL));
    dcn_extra_unref(&extra);
    decant_bytes_unref(&bytes);
}

TEST(lifted_limits__are_those_that_the_tables_bear)
{
    dcn_limits limits = dcn_limits_of(false), lifted = dcn_limits_of(true);

    CHECK_EQ(limits.rank, DECANT_MAX_RANK);
    CHECK_EQ(limits.tensors, 1 << 22);
    CHECK(lifted.header > limits.header && lifted.tensors > limits.tensors && lifted.values > limits.values);
    CHECK_EQ(lifted.rank, UINT16_MAX);
    CHECK(lifted.tensors < UINT32_MAX);
}
