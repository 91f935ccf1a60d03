/*
 * Keys that no reader knows: Burn's passes over them and its writer loses them; here they are carried from Burnpack to
 * Burnpack, and are a loss to other formats.
 */
#include "support/alloc.h"
#include "support/burnpack.h"
#include "support/test.h"

#include <stdlib.h>

static decant_model *model;
static decant_error err;

#define W "'dtype' 'F32' 'shape' 820202 'data_offsets' 820010"
#define SCHEME(more) "a1 'QFloat' a" more " 'value' 'Q8F' 'store' 'Native' 'mode' 'Symmetric' 'tensor' f6 'block' f6"

static const char *note(const char *key)
{
    for (size_t i = 0; i < model->note_count; i++)
        if (strcmp(model->notes[i].key, key) == 0)
            return model->notes[i].text;
    return "(none)";
}

/* That what is written of one file is the other, to the byte; data is as long. */
static void becomes(const char *from, const char *to, size_t data)
{
    size_t from_len, to_len, len;
    uint8_t *in = bpk_file(from, data, &from_len), *wanted = bpk_file(to, data, &to_len), *out;

    CHECK_OK(model_open(&dcn_burnpack, in, from_len, NULL, 0, &model, &err), &err);
    CHECK_OK(model_render(&dcn_burnpack, model, NULL, &out, &len, &err), &err);
    CHECK_BYTES(out, len, wanted, to_len);
    decant_model_close(&model);
    free(out);
    free(wanted);
    free(in);
}

static void stays(const char *metadata, size_t data)
{
    becomes(metadata, metadata, data);
}

TEST(unknown_keys__stay_as_they_are)
{
    stays("a3 'tensors' a1 'w' a5 " W " 'note' 'kept' '' f6 'metadata' a1 'a' 'b' 'later' 9f01bf0203ffff", 16);
    stays("a1 'tensors' a1 'w' a6 " W " 'x' 1b0000000000000001 'y' 00 'y' 01", 16); /* twice, and no shortest head */
    stays("a2 'tensors' a1 'w' a5 " W " 'param_id' 07 'x' c1f5 'later' fb7ff8000000000001", 16);
    stays("a1 'tensors' a1 'q' a4 'dtype' " SCHEME("5") " 'shape' 8104 'data_offsets' 820008 'scale_hint' 8101", 8);
    stays("a1 'tensors' a1 'w' a4 " W " 'x' 7f6161 6162 ff", 16); /* a text in chunks */
}

TEST(unknown_keys__follow_those_that_are_known_and_are_written_as_text)
{
    becomes("a2 'later' 01 'tensors' a1 'w' a4 'x' 02 " W, "a2 'tensors' a1 'w' a4 " W " 'x' 02 'later' 01", 16);
    becomes("a1 'tensors' a1 'w' a4 " W " 4178 02", "a1 'tensors' a1 'w' a4 " W " 'x' 02", 16);
    stays("a1 'tensors' a1 'w' a4 " W " 41ff 02", 16); /* bytes that are no text stay bytes */
}

TEST(unknown_keys__are_told)
{
    CHECK_OK(bpk_open("a2 'tensors' a1 'w' a4 " W " 'x' 01 'later' f5", 16, false, &model, &err), &err);
    CHECK_TEXT(note("odd"), "2 unknown keys, first 'x'");
    decant_model_close(&model);
}

TEST(unknown_keys__are_a_loss_to_other_formats)
{
    dcn_layout lossy = {.allow = DECANT_ALLOW_LOSS};
    size_t len;
    uint8_t *out;

    CHECK_OK(bpk_open("a3 'tensors' a2 'v' a5 'dtype' 'U8' 'shape' 80 'data_offsets' 821011 'x' 01 'y' 02 'w' a4 " W
                      " 'x' 01 'later' f5 'z' f4",
                      17, false, &model, &err),
             &err);
    CHECK_FAILS(model_render(&dcn_safetensors, model, NULL, &out, &len, &err), DECANT_LOSS, &err);
    CHECK_HAS(err.message, "2 unknown top-level keys");
    CHECK_HAS(err.message, "3 unknown keys");
    CHECK_OK(model_render(&dcn_safetensors, model, &lossy, &out, &len, &err), &err);
    decant_model_close(&model);
    free(out);
}

/* There it could change what the others mean, as `level` did. */
TEST(an_unknown_key_in_a_scheme__is_refused_or_told)
{
    static const char metadata[] =
        "a1 'tensors' a1 'q' a3 'dtype' " SCHEME("6") " 'levels' 80 'shape' 8104 'data_offsets' 820008";

    CHECK_FAILS(bpk_open(metadata, 8, false, &model, &err), DECANT_UNSUPPORTED, &err);
    CHECK_HAS(decant_error_text(&err), "tensor 'q': unknown key 'levels'");
    CHECK_HAS(err.hint, "--lenient");
    CHECK_OK(bpk_open(metadata, 8, true, &model, &err), &err);
    CHECK_TEXT(note("odd"), "1 unknown key in a quantization scheme");
    decant_model_close(&model);
}

TEST(unknown_keys__without_memory_fail_and_leave_nothing)
{
    size_t len;
    uint8_t *file = bpk_file("a2 'tensors' a1 'q' a4 'dtype' " SCHEME("5") " 'shape' 8104 'data_offsets' 820008 'x' 01"
                                                                           "'later' 8102",
                             8, &len);

    check_opens_or_leaves_nothing(&dcn_burnpack, file, len, 0);
    free(file);
}
