/*
 * Files of Burn 0.19, 0.20 and 0.21, which today's Burn refuses or misreads: read as their specs say, told, and saved in the
 * form of today.
 */
#include "support/alloc.h"
#include "support/burnpack.h"
#include "support/simdisk.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>

#include "api/env.h"
#include "base/endian.h"
#include "format/burnpack/quant.h"

static decant_model *model;
static decant_error err;

static const char *note(const char *key, size_t index)
{
    for (size_t i = 0; i < model->note_count; i++)
        if (strcmp(model->notes[i].key, key) == 0 && index-- == 0)
            return model->notes[i].text;
    return "(none)";
}

static void close_model(void)
{
    decant_model_close(&model);
}

/* --- golden files ------------------------------------------------------------------------------------------------- */

typedef struct golden {
    const char *name, *odd, *opens_in;
    bool stamped; /* BurnpackStore of 0.19 added three entries of metadata */
} golden;

static const golden files[] = {
    {"legacy-0.19-bool", "data right behind the metadata, as Burn 0.19 wrote it: Burn of today calls it truncated",
     "Burn: not the layout of 0.19, which it calls truncated", true},
    {"legacy-0.19-plain", "data right behind the metadata, as Burn 0.19 wrote it: Burn of today calls it truncated",
     "Burn: not the layout of 0.19, which it calls truncated", true},
    {"legacy-0.20-plain", "1 Bool tensor as Burn 0.19 and 0.20 wrote them: Burn of today refuses them",
     "Burn: not Bool as 0.19 and 0.20 wrote it", false},
    {"legacy-0.20-quant", "2 quantization schemes as Burn 0.19 to 0.21 wrote them: Burn of today misreads them",
     "Burn: it misreads quantization schemes of 0.19 to 0.21", false},
    {"legacy-0.21-quant", "2 quantization schemes as Burn 0.19 to 0.21 wrote them: Burn of today misreads them",
     "Burn: it misreads quantization schemes of 0.19 to 0.21", false},
};
enum { FILES = sizeof files / sizeof *files };

static uint8_t *load(const char *name, size_t *len)
{
    char path[128];

    snprintf(path, sizeof path, "%s.bpk", name);
    return test_data(path, len);
}

/* What the file was written from, in the terms of today. */
static decant_model *wanted_of(const golden *file)
{
    decant_model *wanted = model_of_spec(file->name);

    if (file->stamped) {
        model_set_text(wanted, "format", "burnpack");
        model_set_text(wanted, "producer", "burn");
        model_set_text(wanted, "version", "0.19.0");
    }
    return wanted;
}

TEST(legacy__files_are_read_as_they_were_meant_and_told)
{
    for (size_t i = 0; i < FILES; i++) {
        size_t len;
        uint8_t *file = load(files[i].name, &len);
        decant_model *wanted = wanted_of(&files[i]);

        CHECK_OK(model_open(&dcn_burnpack, file, len, NULL, 0, &model, &err), &err);
        check_same_models(model, wanted);
        CHECK_TEXT(note("odd", 0), files[i].odd);
        CHECK_TEXT(openers_text(&model->openers), files[i].opens_in);
        close_model();
        decant_model_close(&wanted);
        free(file);
    }
}

TEST(legacy__files_are_saved_in_the_form_of_today)
{
    for (size_t i = 0; i < FILES; i++) {
        size_t len, actual_len, wanted_len;
        uint8_t *file = load(files[i].name, &len), *actual, *written;
        decant_model *wanted = wanted_of(&files[i]);

        CHECK_OK(model_open(&dcn_burnpack, file, len, NULL, 0, &model, &err), &err);
        CHECK_OK(model_render(&dcn_burnpack, model, NULL, &actual, &actual_len, &err), &err);
        CHECK_OK(model_render(&dcn_burnpack, wanted, NULL, &written, &wanted_len, &err), &err);
        CHECK_BYTES(actual, actual_len, written, wanted_len);
        close_model();

        CHECK_OK(model_open(&dcn_burnpack, actual, actual_len, NULL, 0, &model, &err), &err);
        CHECK_TEXT(note("odd", 0), "(none)");
        CHECK_TEXT(openers_text(&model->openers), "Burn");
        close_model();
        decant_model_close(&wanted);
        free(written);
        free(actual);
        free(file);
    }
}

TEST(legacy__any_byte_changed_or_cut_is_refused_or_read_soundly)
{
    for (size_t f = 0; f < FILES; f++) {
        size_t len, metadata;
        uint8_t *file = load(files[f].name, &len);

        metadata = 10 + dcn_le32(file + 6);
        for (size_t i = 0; i < metadata; i++) {
            uint8_t was = file[i];

            for (unsigned k = 0; k < 8; k++) {
                file[i] = (uint8_t)(was ^ 1u << k);
                check_any_file(&dcn_burnpack, file, len, true);
            }
            file[i] = was;
        }
        for (size_t cut = 0; cut < len; cut++)
            check_any_file(&dcn_burnpack, file, cut, true);
        free(file);
    }
}

/* --- 0.19: where data lies ---------------------------------------------------------------------------------------- */

#define ID "'param_id' 07"

/* A file of which the padding is gone: data right behind the metadata. Freed by the caller. */
static uint8_t *packed_file(const char *metadata, size_t data, size_t *len)
{
    uint8_t *file = bpk_file(metadata, data, len);
    size_t end = 10 + dcn_le32(file + 6), start = (end + 255) / 256 * 256;

    memmove(file + end, file + start, data);
    *len = end + data;
    return file;
}

static decant_status open_packed(const char *metadata, size_t data, bool zeros)
{
    size_t len;
    uint8_t *file = packed_file(metadata, data, &len);
    decant_status rc;

    if (zeros)
        memset(file + len - data, 0, data);
    rc = model_open(&dcn_burnpack, file, len, NULL, 0, &model, &err);
    free(file);
    return rc;
}

#define ONE(more) "a1 'tensors' a1 'w' a" more " 'dtype' 'F32' 'shape' 820202 'data_offsets' 820010"
#define TWO                                                                      \
    "a1 'tensors' a2 'v' a4 'dtype' 'U8' 'shape' 8103 'data_offsets' 820003 " ID \
    "'w' a4 'dtype' 'F32' 'shape' 8102 'data_offsets' 82030b " ID

TEST(layout__of_0_19_is_taken_on_evidence_alone)
{
    static const char stamped[] = "a2 'tensors' a1 'w' a4 'dtype' 'F32' 'shape' 820202 'data_offsets' 820010 " ID
                                  "'metadata' a1 'version' '0.19.0'";
    uint8_t *bytes;

    /* a byte that is set where there would be padding; a place that padding forbids; the version */
    CHECK_OK(open_packed(ONE("4") ID, 16, false), &err);
    bytes = entry_bytes(&model->entries[0]);
    CHECK_EQ(model->entries[0].data.offset, 10 + 58);
    CHECK_EQ(bytes[0], 0xc1);
    free(bytes);
    close_model();
    CHECK_OK(open_packed(TWO, 11, true), &err);
    CHECK_EQ(model->entries[1].data.offset, model->entries[0].data.offset + 3);
    close_model();
    CHECK_OK(open_packed(stamped, 16, true), &err);
    close_model();

    /* zeros may be the padding of a file that was cut short */
    CHECK_FAILS(open_packed(ONE("4") ID, 16, true), DECANT_TRUNCATED, &err);
    /* 0.19 gave each tensor an id, had no scalars and left no gaps */
    CHECK_FAILS(open_packed(ONE("3"), 16, false), DECANT_TRUNCATED, &err);
    CHECK_FAILS(open_packed("a2 'tensors' a1 'w' a4 'dtype' 'F32' 'shape' 820202 'data_offsets' 820010 " ID
                            "'scalars' a1 's' a1 'Int' 01",
                            16, false),
                DECANT_TRUNCATED, &err);
    CHECK_FAILS(open_packed("a1 'tensors' a1 'w' a4 'dtype' 'F32' 'shape' 820202 'data_offsets' 820111 " ID, 17, false),
                DECANT_TRUNCATED, &err);
}

/* --- 0.20 and 0.21: schemes --------------------------------------------------------------------------------------- */

#define OLD(store, level, param)                                                                                     \
    "a1 'tensors' a1 'q' a3 'dtype' a1 'QFloat' a5 'value' 'Q8S' 'param' " param " 'store' " store " 'level' " level \
    " 'mode' 'Symmetric' 'shape' 820208 'data_offsets' 8200"
#define BLOCK "a2 'storage' 8501080101 01 'len' 02"

static const decant_quant *opened(const char *metadata, size_t data)
{
    CHECK_OK(bpk_open(metadata, data, false, &model, &err), &err);
    return dcn_quant_of(model->entries[0].extra);
}

TEST(scheme__of_an_older_version_has_its_scales_where_today_has_them)
{
    const decant_quant *quant = opened(OLD("'Native'", "'Tensor'", "'BF16'") "12", 18);

    CHECK(quant->tensor_scale == DECANT_SCALE_BF16 && quant->block_scale == DECANT_SCALE_NONE);
    CHECK_EQ(quant->store, DECANT_STORE_NATIVE);
    close_model();

    quant = opened(OLD("'U32'", "'Tensor'", "'F32'") "14", 20); /* 0.19 */
    CHECK(quant->store == DECANT_STORE_PACKED_U32 && quant->packed_dim == 0);
    close_model();

    quant = opened(OLD("a1 'PackedU32' 00", "a1 'Block' " BLOCK, "'F16'") "14", 20);
    CHECK(quant->tensor_scale == DECANT_SCALE_NONE && quant->block_scale == DECANT_SCALE_F16);
    CHECK(quant->block_rank == 1 && quant->block[0] == 8); /* [1, 8] meant [8] */
    close_model();

    quant = opened(OLD("'Native'", "a1 'BlockTensor' a2 'block' " BLOCK " 'global' 'F32'", "'UE4M3'") "16", 22);
    CHECK(quant->tensor_scale == DECANT_SCALE_F32 && quant->block_scale == DECANT_SCALE_UE4M3);
    close_model();
}

static const char *refused(const char *metadata, size_t data, decant_status wanted)
{
    CHECK_FAILS(bpk_open(metadata, data, false, &model, &err), wanted, &err);
    return decant_error_text(&err);
}

TEST(scheme__that_mixes_or_misses_keys_is_refused)
{
    static const char head[] = "a1 'tensors' a1 'q' a3 'shape' 820208 'data_offsets' 820012 'dtype' a1 'QFloat' ";
    static const struct {
        const char *scheme, *words;
    } bad[] = {
        {"a4 'value' 'Q8S' 'store' 'Native' 'level' 'Tensor' 'mode' 'Symmetric'", "without 'param'"},
        {"a4 'value' 'Q8S' 'store' 'Native' 'param' 'F32' 'mode' 'Symmetric'", "without 'level'"},
        {"a3 'value' 'Q8S' 'store' 'U32' 'mode' 'Symmetric'", "without 'level'"},
        {"a6 'value' 'Q8S' 'store' 'Native' 'param' 'F32' 'level' 'Tensor' 'tensor' f6 'mode' 'Symmetric'",
         "keys of today's schemes beside those of Burn 0.21"},
        {"a5 'value' 'Q8S' 'store' 'Native' 'param' 'F32' 'level' a1 'Tensor' f6 'mode' 'Symmetric'",
         "unknown level of a quantization scheme 'Tensor'"},
        {"a5 'value' 'Q8S' 'store' 'Native' 'param' 'F32' 'level' 'Block' 'mode' 'Symmetric'", "'Block'"},
        {"a5 'value' 'Q8S' 'store' 'Native' 'param' 'F32' 'level' a1 'Row' f6 'mode' 'Symmetric'", "'Row'"},
        {"a5 'value' 'Q8S' 'store' 'Native' 'param' f6 'level' 'Tensor' 'mode' 'Symmetric'", "wrong type"},
        {"a5 'value' 'Q8S' 'store' 'Native' 'param' 'F32' 'level' a1 'Block' a2 'storage' 850800010101 'len' 02 'mode' "
         "'Symmetric'",
         "an extent of a block is 0"},
    };

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[512];

        snprintf(text, sizeof text, "%s%s", head, bad[i].scheme);
        CHECK(bpk_open(text, 18, false, &model, &err));
        CHECK_HAS(decant_error_text(&err), "tensor 'q'");
        CHECK_HAS(decant_error_text(&err), bad[i].words);
    }
}

TEST(scheme__whose_bytes_it_does_not_explain_is_refused_or_told)
{
    static const char across[] = OLD("a1 'PackedU32' 01", "'Tensor'", "'F32'") "14";

    CHECK_HAS(refused(across, 20, DECANT_UNSUPPORTED),
              "tensor 'q': values packed along another dimension than the last");
    CHECK_HAS(decant_error_text(&err), "; have the Burn that wrote it save it dequantized");
    CHECK_OK(bpk_open(across, 20, true, &model, &err), &err);
    CHECK_TEXT(note("odd", 0), "1 quantized tensor of another length than its scheme calls for");
    close_model();
    CHECK_HAS(refused(OLD("'Native'", "'Tensor'", "'F32'") "15", 21, DECANT_MALFORMED), "found 21 bytes, expected 20");
}

/* --- 0.20 and 0.21: how quantized values lie ---------------------------------------------------------------------- */

static void put_value(uint8_t *bytes, uint64_t bit, unsigned bits, unsigned value)
{
    for (unsigned b = 0; b < bits; b++)
        bytes[(bit + b) / 8] |= (uint8_t)((value >> b & 1) << (bit + b) % 8);
}

/* A tensor of random values, one a call: as it was written then, and as it is written today. */
static void check_relaid(const char *value, unsigned bits, const char *store, unsigned stored, uint64_t lines,
                         uint64_t width, uint64_t seed)
{
    uint64_t each = stored / bits, count = lines * width, word = stored / 8;
    uint64_t then = ((count + each - 1) / each * word + 3) / 4 * 4, line_now = (width + each - 1) / each * word;
    uint64_t now = lines * line_now, old_len = then + 4, new_len = now + 4, state = seed;
    uint8_t *old = calloc(old_len, 1), *wanted = calloc(new_len, 1), *file, *actual;
    char metadata[512];
    size_t len;

    CHECK(old && wanted);
    for (uint64_t i = 0; i < count; i++) {
        unsigned v = (unsigned)(test_random(&state) & ((1u << bits) - 1));

        put_value(old, i * bits, bits, v);
        put_value(wanted, i / width * line_now * 8 + i % width * bits, bits, v);
    }
    test_stream(seed, old + then, 4);
    memcpy(wanted + now, old + then, 4);

    snprintf(
        metadata, sizeof metadata,
        "a1 'tensors' a1 'q' a3 'dtype' a1 'QFloat' a5 'value' '%s' 'param' 'F32' 'store' %s 'level' 'Tensor' 'mode' "
        "'Symmetric' 'shape' 821b%016llx1b%016llx 'data_offsets' 821b00000000000000001b%016llx",
        value, store, (unsigned long long)lines, (unsigned long long)width, (unsigned long long)old_len);
    file = bpk_file(metadata, old_len, &len);
    memcpy(file + len - old_len, old, old_len);
    CHECK_OK(model_open(&dcn_burnpack, file, len, NULL, 0, &model, &err), &err);
    actual = entry_bytes(&model->entries[0]);
    CHECK_BYTES(actual, model->entries[0].data.len, wanted, new_len);

    for (int i = 0; i < 20; i++) { /* any part of it */
        uint64_t at = test_random(&state) % new_len, n = 1 + test_random(&state) % (new_len - at);
        dcn_fetch parts[2] = {{model->entries[0].data.offset + at, actual, (size_t)(n / 2)},
                              {model->entries[0].data.offset + at + n / 2, actual + n / 2, (size_t)(n - n / 2)}};

        memset(actual, 0xEE, n);
        CHECK_OK(dcn_backing_fetch(model->entries[0].data.backing, parts, 2, &err), &err);
        CHECK_BYTES(actual, n, wanted + at, n);
    }
    check_comes_back(&dcn_burnpack, model, false);
    close_model();
    free(actual);
    free(file);
    free(wanted);
    free(old);
}

TEST(values__are_laid_out_as_they_are_today)
{
    static const struct {
        const char *value, *store;
        unsigned bits, stored;
    } kinds[] = {
        {"Q8F", "'Native'", 8, 8},
        {"Q8S", "a1 'PackedU32' 00", 8, 32},
        {"Q4F", "a1 'PackedU32' 00", 4, 32},
        {"Q2S", "a1 'PackedU32' 00", 2, 32},
        {"E2M1", "a1 'PackedNative' 00", 4, 8},
    };

    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        for (uint64_t lines = 1; lines < 5; lines++)
            for (uint64_t width = 1; width < 36; width++)
                check_relaid(kinds[k].value, kinds[k].bits, kinds[k].store, kinds[k].stored, lines, width,
                             lines * 100 + width);
        check_relaid(kinds[k].value, kinds[k].bits, kinds[k].store, kinds[k].stored, 3, 9001,
                     5); /* more than is read at once */
        check_relaid(kinds[k].value, kinds[k].bits, kinds[k].store, kinds[k].stored, 9001, 3, 6);
    }
}

/* Whatever is done to its bytes on the way, the file that they come from is a source: it is not written over in place. */
TEST(values__that_move_still_come_from_their_file)
{
    static const char metadata[] =
        "a1 'tensors' a1 'q' a3 'dtype' a1 'QFloat' a5 'value' 'Q4F' 'param' 'F32' 'store' a1 "
        "'PackedU32' 00 'level' 'Tensor' 'mode' 'Symmetric' 'shape' 820303 'data_offsets' "
        "82000c";
    simdisk *disk = simdisk_new();
    dcn_env env = {.io = &disk->io, .cut = dcn_cut_default};
    dcn_target target = {.kind = DCN_TO_FILE_IN_PLACE, .path = "q.bpk"};
    decant_save_options options = DECANT_SAVE_OPTIONS_INIT;
    decant_model *opened = NULL;
    size_t len;
    uint8_t *file = bpk_file(metadata, 12, &len);

    simdisk_put(disk, "q.bpk", file, len);
    free(file);
    CHECK_OK(dcn_open(&env, "q.bpk", NULL, &opened, &err), &err);
    options.replace = 1;
    CHECK_FAILS(dcn_save(&env, opened, &target, &options, false, NULL, &err), DECANT_SAME_FILE, &err);
    decant_model_close(&opened);
    simdisk_free(&disk);
}

/* Measured with the published crates: [3, 3] Q8S Native BF16 took 14 bytes and takes 11, Q4F PackedU32(0) F32 12 and 16. */
TEST(lengths__are_those_that_the_crates_gave)
{
    static const uint64_t shape[] = {3, 3};
    decant_quant quant = {.size = sizeof quant, .value = DECANT_Q8S, .tensor_scale = DECANT_SCALE_BF16};
    dcn_quant_old old;

    CHECK(dcn_quant_old_of(&quant, shape, 2, &old));
    CHECK(old.len == 14 && old.len_now == 11 && !dcn_quant_old_is_new(&old));
    quant = (decant_quant){.size = sizeof quant, .value = DECANT_Q4F, .store = DECANT_STORE_PACKED_U32};
    CHECK(dcn_quant_old_of(&quant, shape, 2, &old));
    CHECK(old.len == 12 && old.len_now == 16 && !dcn_quant_old_is_new(&old));
    quant.store = DECANT_STORE_NATIVE; /* it wrote none of these values */
    CHECK(!dcn_quant_old_of(&quant, shape, 2, &old));
}

TEST(legacy__without_memory_fails_and_leaves_nothing)
{
    static const char padded[] = "a1 'tensors' a1 'q' a3 'shape' 820207 'data_offsets' 820014 'dtype' a1 'QFloat' a5 "
                                 "'value' 'Q8S' 'param' 'F32' 'store' 'Native' 'level' 'Tensor' 'mode' 'Symmetric'";
    size_t len;
    uint8_t *file = bpk_file(padded, 20, &len);

    check_opens_or_leaves_nothing(&dcn_burnpack, file, len, 0);
    CHECK_OK(model_open(&dcn_burnpack, file, len, NULL, 0, &model, &err), &err);
    CHECK_EQ(model->entries[0].data.len, 18);
    close_model();
    free(file);
}
