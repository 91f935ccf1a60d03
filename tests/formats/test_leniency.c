/* Each leniency is one bit: it alone lets pass what it names, nothing else does, and what has passed is told. */
#include "support/burnpack.h"
#include "support/safetensors.h"

#include <stdlib.h>

#define W "a3 'dtype' 'F32' 'shape' 820202 'data_offsets' 820010"
#define Q "a1 'QFloat' a3 'value' 'Q8S' 'store' 'Native' 'mode' 'Symmetric'"

typedef struct oddity {
    unsigned bit;
    const char *metadata; /* safetensors: begins with a brace */
    size_t data;
    const char *note;
} oddity;

static const oddity oddities[] = {
    {DECANT_LENIENT_UNKNOWN_FIELDS, "{\"t\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4],\"x\":[]}}", 4,
     "1 unknown field"},
    {DECANT_LENIENT_REPEATED_KEYS, "{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}", 0, "1 repeated metadata key"},
    {DECANT_LENIENT_REPEATED_NAMES,
     "{\"t\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
     "\"\\u0074\":{\"dtype\":\"I8\",\"shape\":[4],\"data_offsets\":[0,4]}}",
     4, "1 repeated name, the last counts"},
    {DECANT_LENIENT_NUL_IN_NAMES, "{\"t\\u0000\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", 4,
     "1 name with a NUL in it"},
    {DECANT_LENIENT_SHARED_DATA,
     "{\"t\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
     "\"u\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}",
     4, "1 tensor on the data of another"},
    {DECANT_LENIENT_KEPT_KEYS, "{\"__metadata__\":{\"decant.id.t\":\"1\"}}", 0,
     "1 metadata key of decant's that does not fit, taken as plain metadata"},
    {DECANT_LENIENT_AFTER_DATA, "{\"t\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", 6,
     "2 bytes after the data"},

    {DECANT_LENIENT_REPEATED_KEYS, "a2 'tensors' a0 'metadata' a2 'k' 'one' 'k' 'two'", 0,
     "1 repeated name, of which the last counts"},
    {DECANT_LENIENT_REPEATED_KEYS, "a2 'tensors' a0 'scalars' a2 'k' a1 'Int' 01 'k' a1 'UInt' 02", 0,
     "1 repeated name, of which the last counts"},
    {DECANT_LENIENT_REPEATED_NAMES, "a1 'tensors' a2 'w' " W "'w' " W, 16, "1 repeated name, of which the last counts"},
    {DECANT_LENIENT_NUL_IN_NAMES, "a1 'tensors' a1 627700 " W, 16, "1 name with a NUL in it"},
    {DECANT_LENIENT_SHARED_DATA, "a1 'tensors' a2 'v' " W "'w' " W, 16, "1 tensor on the data of another"},
    {DECANT_LENIENT_OVERLAPS, "a1 'tensors' a2 'v' " W "'w' a3 'dtype' 'U8' 'shape' 8108 'data_offsets' 820c14", 20,
     "1 tensor on some of the data of others"},
    {DECANT_LENIENT_QUANT_LENGTHS, "a1 'tensors' a1 'q' a3 'dtype' " Q " 'shape' 8104 'data_offsets' 820009", 9,
     "1 quantized tensor of another length than its scheme calls for"},
    {DECANT_LENIENT_AFTER_METADATA, "a1 'tensors' a1 'w' " W "00", 16, "1 byte after the metadata"},
    {DECANT_LENIENT_AFTER_DATA, "a1 'tensors' a1 'w' " W, 18, "2 bytes after the data"},
};
enum { ODDITIES = sizeof oddities / sizeof *oddities };

static decant_status open_with(const oddity *o, unsigned lenient, decant_model **out, decant_error *err)
{
    bool safetensors = *o->metadata == '{';
    size_t len;
    uint8_t *file = safetensors ? st_file(o->metadata, o->data, &len) : bpk_file(o->metadata, o->data, &len);
    decant_status rc = model_open(safetensors ? &dcn_safetensors : &dcn_burnpack, file, len, NULL, lenient, out, err);

    free(file);
    return rc;
}

TEST(each_leniency__alone_lets_pass_what_it_names_and_tells_it)
{
    for (size_t i = 0; i < ODDITIES; i++) {
        decant_model *model = NULL;
        decant_error err = {0};
        const char *key = "(none)", *text = "(none)";

        CHECK_OK(open_with(&oddities[i], oddities[i].bit, &model, &err), &err);
        for (size_t n = 0; decant_model_note(model, n, &key, &text) == DECANT_OK && strcmp(key, "odd") != 0; n++)
            ;
        CHECK_TEXT(key, "odd");
        CHECK_TEXT(text, oddities[i].note);
        decant_model_close(&model);
    }
}

TEST(each_leniency__is_missed_whatever_others_there_are)
{
    for (size_t i = 0; i < ODDITIES; i++) {
        decant_model *model = NULL;
        decant_error err = {0};

        CHECK(open_with(&oddities[i], 0, &model, &err));
        CHECK(open_with(&oddities[i], DECANT_LENIENT_ALL & ~oddities[i].bit, &model, &err));
        CHECK(!model && err.message[0]);
    }
}

TEST(all_leniencies__are_those_there_are)
{
    unsigned all = DECANT_LENIENT_UNMAPPED; /* about sets: see test_safetensors_shards.c */

    for (size_t i = 0; i < ODDITIES; i++)
        all |= oddities[i].bit;
    CHECK_EQ(all, DECANT_LENIENT_ALL);
}
