#include <stdio.h>
#include <stdlib.h>

#include "api/env.h"
#include "base/endian.h"
#include "format/format.h"
#include "format/place.h"
#include "support/models.h"
#include "support/simdisk.h"

/* Where tensors lie in the layouts that are not the reference writer's. */

enum { TENSORS = 40 };

static const dcn_format *const formats[] = {&dcn_burnpack, &dcn_safetensors};

enum { FORMATS = sizeof formats / sizeof *formats };

/* A safetensors file on a disk, of tensors of many lengths, some empty; opened. With `pad` spaces in its header. */
static decant_model *opened(simdisk *disk, const char *path, size_t pad, uint64_t seed)
{
    dcn_env env = {.io = &disk->io, .cut = dcn_cut_default};
    decant_model *model = NULL;
    uint8_t *file = NULL, *padded;
    size_t len, header;
    decant_error err;

    CHECK_OK(decant_model_create(&model, &err), &err);
    for (unsigned i = 0; i < TENSORS; i++) {
        char name[16];

        snprintf(name, sizeof name, "%c%02u", (char)('a' + seed), i);
        model_add_stream(model, name, DECANT_U8, 1, (const uint64_t[]){i % 7 ? (i * 397 + seed) % 9000 : 0}, i);
    }
    CHECK_OK(model_render(&dcn_safetensors, model, NULL, &file, &len, &err), &err);
    decant_model_close(&model);
    header = 8 + (size_t)dcn_le64(file);
    padded = calloc(len + pad, 1);
    CHECK(padded != NULL);
    memcpy(padded, file, header);
    memset(padded + header, ' ', pad);
    memcpy(padded + header + pad, file + header, len - header);
    dcn_put_le(padded, header - 8 + pad, 8);
    simdisk_put(disk, path, padded, len + pad);
    free(padded);
    free(file);
    CHECK_OK(dcn_open(&env, path, NULL, &model, &err), &err);
    return model;
}

/* The plan of one output, which opens as what it was made of. */
static void lay_out(const dcn_format *format, const decant_model *model, decant_layout layout, uint64_t align,
                    dcn_plans *plans)
{
    const dcn_layout how = {.layout = layout, .align = align, .allow = DECANT_ALLOW_LOSS};
    uint8_t *bytes = NULL;
    size_t len;
    decant_model *again = NULL;
    decant_diff_totals totals;
    decant_error err;

    *plans = (dcn_plans){0};
    CHECK_OK(format->emit(model, &how, plans, &err), &err);
    CHECK_OK(model_render(format, model, &how, &bytes, &len, &err), &err);
    CHECK_EQ(len, plans->items[0].total);
    CHECK_OK(model_open(format, bytes, len, NULL, 0, &again, &err), &err);
    CHECK_OK(decant_diff(model, again, NULL, NULL, NULL, &totals, &err), &err);
    CHECK(totals.tensors == model->count && totals.differences == 0);
    decant_model_close(&again);
    free(bytes);
}

TEST(aligned__puts_each_tensor_at_a_multiple_where_gaps_are_allowed)
{
    static const uint64_t aligns[] = {256, 4096, 65536};
    simdisk *disk = simdisk_new();
    decant_model *model = opened(disk, "in.safetensors", 0, 0);

    for (size_t f = 0; f < FORMATS; f++)
        for (size_t a = 0; a < sizeof aligns / sizeof *aligns; a++) {
            size_t first = SIZE_MAX;
            dcn_plans plans;

            lay_out(formats[f], model, DECANT_LAYOUT_ALIGNED, aligns[a], &plans);
            CHECK_TEXT(plans.layout, "aligned");
            for (size_t i = 0; i < plans.items[0].count; i++) {
                const dcn_piece *piece = &plans.items[0].pieces[i];

                if (piece->literal)
                    continue;
                if (formats[f] == &dcn_burnpack || first == SIZE_MAX)
                    CHECK_EQ(piece->at % aligns[a], 0);
                first = i;
            }
            dcn_plans_close(&plans);
        }
    decant_model_close(&model);
    simdisk_free(&disk);
}

/* How many bytes of tensors keep their rest modulo 4096. */
static uint64_t congruent_bytes(const dcn_plan *plan)
{
    uint64_t bytes = 0, offset;

    for (size_t i = 0; i < plan->count; i++) {
        const dcn_piece *piece = &plan->pieces[i];
        const dcn_entry *entry = piece->literal ? NULL : &plan->model->entries[piece->index];

        if (entry && dcn_place_in_file(entry, &offset) && (piece->at - offset) % DCN_CONGRUENT == 0)
            bytes += entry->data.len;
    }
    return bytes;
}

static uint64_t data_of(const decant_model *model)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < model->count; i++)
        bytes += model->entries[i].data.len;
    return bytes;
}

/* Whatever rest the data of the input starts at; what lies end to end there does so here, so there is one gap at most. */
TEST(congruent__keeps_the_place_of_every_tensor_of_one_file)
{
    static const size_t pads[] = {0, 1, 8, 1000, 4095, 4096};

    for (size_t f = 0; f < FORMATS; f++)
        for (size_t k = 0; k < sizeof pads / sizeof *pads; k++) {
            simdisk *disk = simdisk_new();
            decant_model *model = opened(disk, "in.safetensors", pads[k], 0);
            dcn_plans plans;
            uint64_t used = 0;

            lay_out(formats[f], model, DECANT_LAYOUT_CONGRUENT, 0, &plans);
            CHECK_TEXT(plans.layout, "congruent");
            CHECK_EQ(congruent_bytes(&plans.items[0]), data_of(model));
            for (size_t i = 0; i < plans.items[0].count; i++)
                used += dcn_plan_piece_len(&plans.items[0], i);
            CHECK(plans.items[0].total - used < DCN_CONGRUENT + 256);
            dcn_plans_close(&plans);
            decant_model_close(&model);
            simdisk_free(&disk);
        }
}

/* Of two files Burnpack keeps all; safetensors, without gaps, the larger part of one. What is in memory goes anywhere. */
TEST(congruent__keeps_what_the_format_allows_of_several_files)
{
    simdisk *disk = simdisk_new();
    decant_model *a = opened(disk, "a.safetensors", 0, 0), *b = opened(disk, "b.safetensors", 123, 1), *both = NULL;
    dcn_plans plans;
    decant_error err;

    CHECK_OK(decant_model_create(&both, &err), &err);
    for (size_t i = 0; i < TENSORS; i++)
        for (unsigned k = 0; k < 2; k++) {
            decant_tensor tensor = DECANT_TENSOR_INIT;
            decant_bytes *bytes = NULL;

            decant_model_tensor(k ? b : a, i, &tensor);
            CHECK_OK(decant_model_bytes(k ? b : a, i, &bytes, &err), &err);
            CHECK_OK(decant_model_add(both, &tensor, bytes, &err), &err);
            decant_bytes_unref(&bytes);
        }
    model_add_stream(both, "memory", DECANT_U8, 1, (const uint64_t[]){777}, 1);

    lay_out(&dcn_burnpack, both, DECANT_LAYOUT_CONGRUENT, 0, &plans);
    CHECK_EQ(congruent_bytes(&plans.items[0]), data_of(both) - 777);
    dcn_plans_close(&plans);
    lay_out(&dcn_safetensors, both, DECANT_LAYOUT_CONGRUENT, 0, &plans);
    CHECK(congruent_bytes(&plans.items[0]) >= data_of(a));
    dcn_plans_close(&plans);
    decant_model_close(&both);
    decant_model_close(&b);
    decant_model_close(&a);
    simdisk_free(&disk);
}

/* Offsets that make the header longer, which moves the data, which makes them other offsets: settled in a few tries. */
TEST(congruent__settles_where_the_header_grows_with_its_own_offsets)
{
    for (uint64_t near = 65536 - 40; near < 65536 + 8; near += 4) {
        simdisk *disk = simdisk_new();
        dcn_env env = {.io = &disk->io, .cut = dcn_cut_default};
        decant_model *model = NULL;
        uint8_t *file = NULL;
        size_t len;
        dcn_plans plans;
        decant_error err;

        CHECK_OK(decant_model_create(&model, &err), &err);
        model_add_stream(model, "a", DECANT_U8, 1, (const uint64_t[]){near}, 1);
        for (unsigned i = 0; i < 30; i++) {
            char name[8];

            snprintf(name, sizeof name, "b%02u", i);
            model_add_stream(model, name, DECANT_U8, 1, (const uint64_t[]){1}, i);
        }
        CHECK_OK(model_render(&dcn_safetensors, model, NULL, &file, &len, &err), &err);
        simdisk_put(disk, "in.safetensors", file, len);
        free(file);
        decant_model_close(&model);
        CHECK_OK(dcn_open(&env, "in.safetensors", NULL, &model, &err), &err);
        lay_out(&dcn_burnpack, model, DECANT_LAYOUT_CONGRUENT, 0, &plans);
        CHECK_TEXT(plans.layout, "congruent");
        CHECK_EQ(congruent_bytes(&plans.items[0]), data_of(model));
        dcn_plans_close(&plans);
        decant_model_close(&model);
        simdisk_free(&disk);
    }
}
