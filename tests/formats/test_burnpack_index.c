/*
 * What is taken and what is refused, beside what burn-pack 0.23.0-pre.1 does with the same bytes. Where it is said that Burn
 * does otherwise, that is on purpose.
 */
#include "support/alloc.h"
#include "support/burnpack.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/endian.h"
#include "format/burnpack/quant.h"

static decant_model *model;
static decant_error err;

/* The usual descriptor: F32 [2, 2] in the first 16 bytes. */
#define W "a3 'dtype' 'F32' 'shape' 820202 'data_offsets' 820010"
/* A tensor with these bytes for its descriptor, alone in its file. */
#define ALONE(descriptor) "a1 'tensors' a1 'w' " descriptor
/* Beside a good tensor, in the top map. */
#define BESIDE(pairs) "a2 'tensors' a1 'w' " W pairs

static void close_model(void)
{
    decant_model_close(&model);
}

static void takes(const char *metadata, size_t data, bool lenient)
{
    decant_status rc = bpk_open(metadata, data, lenient, &model, &err);

    if (rc)
        test_fail(__FILE__, __LINE__, "%s\n  was refused: %s", metadata, decant_error_text(&err));
}

/* That it opens, as one tensor 'w' of F32 [2, 2]. */
static void takes_w(const char *metadata)
{
    takes(metadata, 16, false);
    CHECK_EQ(model->count, 1);
    CHECK_EQ(model->entries[0].name_len, 1);
    CHECK_EQ(model->entries[0].name[0], 'w');
    CHECK_EQ(model->entries[0].dtype, DECANT_F32);
    CHECK_EQ(model->entries[0].rank, 2);
    CHECK(model->entries[0].shape[0] == 2 && model->entries[0].shape[1] == 2);
    CHECK_EQ(model->entries[0].data.offset % 256, 0);
    CHECK_EQ(model->entries[0].data.len, 16);
    close_model();
}

/* That it is refused; the text of the error. */
static const char *refused(const char *metadata, size_t data, bool lenient, decant_status wanted)
{
    decant_status rc = bpk_open(metadata, data, lenient, &model, &err);

    if (rc != wanted)
        test_fail(__FILE__, __LINE__, "%s\n  gave %s, wanted %s: %s", metadata, decant_status_name(rc),
                  decant_status_name(wanted), decant_error_text(&err));
    CHECK_EQ(err.status, rc);
    CHECK(!model);
    return decant_error_text(&err);
}

static const char *malformed(const char *metadata)
{
    return refused(metadata, 16, false, DECANT_MALFORMED);
}

static const char *note(const char *key)
{
    for (size_t i = 0; i < model->note_count; i++)
        if (strcmp(model->notes[i].key, key) == 0)
            return model->notes[i].text;
    return "(none)";
}

/* --- forms that are taken, as Burn takes them --------------------------------------------------------------------- */

TEST(index__takes_a_tensor_written_canonically)
{
    takes_w(ALONE(W));
}

TEST(index__takes_open_maps_and_arrays)
{
    takes_w("bf 'tensors' a1 'w' " W "ff");
    takes_w("a1 'tensors' bf 'w' " W "ff");
    takes_w(ALONE("bf 'dtype' 'F32' 'shape' 820202 'data_offsets' 820010 ff"));
    takes_w(ALONE("a3 'dtype' 'F32' 'shape' 9f0202ff 'data_offsets' 820010"));
    takes_w(ALONE("a3 'dtype' 'F32' 'shape' 820202 'data_offsets' 9f0010ff")); /* Burn leaves the break behind */
    takes(BESIDE("'metadata' bf 'a' 'b' ff"), 16, false);
    CHECK_EQ(model->value_count, 1);
    close_model();
    takes(BESIDE("'scalars' bf 'a' a1 'Int' 01 ff"), 16, false);
    CHECK_EQ(model->values[0].value.as.i64, 1);
    close_model();
}

TEST(index__takes_heads_of_any_width_and_tags)
{
    takes_w("b90001 'tensors' ba00000001 7b000000000000000177 b803 'dtype' 'F32' 'shape' 9b0000000000000002 1802 190002"
            "'data_offsets' 820010");
    takes_w(
        "d9d9f7 a1 d9d9f7 'tensors' a1 'w' c1a3 c1'dtype' c1'F32' 'shape' c182 02 c102 'data_offsets' 82 00 d820 10");
    takes_w(ALONE("a3 'dtype' 'F32' 'shape' 82 c24102 c2430000 02 'data_offsets' 820010"));
}

TEST(index__takes_bytes_for_numbers_and_for_known_keys)
{
    takes_w(ALONE("a3 'dtype' 'F32' 'shape' 420202 'data_offsets' 420010"));
    takes_w("a1 4774656e736f7273 a1 'w' " W);
    takes_w(ALONE("a3 456474797065 'F32' 'shape' 820202 'data_offsets' 820010"));
}

TEST(index__takes_names_in_chunks)
{
    takes_w("a1 'tensors' a1 7f 60 'w' ff " W);
    takes("a1 'tensors' a1 7f 'ab' 'c' 60 'd' ff " W, 16, false);
    CHECK_BYTES(model->entries[0].name, model->entries[0].name_len, "abcd", 4);
    close_model();
    malformed("a1 'tensors' a1 7f 61c3 61bc ff " W);
}

TEST(index__takes_fields_in_any_order_and_passes_over_unknown_ones)
{
    takes_w(ALONE("a3 'data_offsets' 820010 'shape' 820202 'dtype' 'F32'"));
    takes_w("a3 'scalars' a0 'metadata' a0 'tensors' a1 'w' " W);
    takes_w("a3 'x' 9f01bf0203ffff 'x' a10102 'tensors' a1 'w' " W);
    takes_w(ALONE("a5 'dtype' 'F32' 'later' f5 'shape' 820202 '' 5f4100ff 'data_offsets' 820010"));
    takes_w("a2 4178 00 'tensors' a1 'w' " W);
    takes(ALONE("a5 'dtype' 'F32' 'later' f5 'shape' 820202 '' f6 'data_offsets' 820010"), 16, false);
    CHECK_TEXT(note("odd"), "2 unknown keys, first 'later'");
    close_model();
}

TEST(index__takes_odd_names)
{
    takes("a1 'tensors' a3 '' " W "'a/b' a3 'dtype' 'U8' 'shape' 8100 'data_offsets' 821010"
          "62c3bc a3 'dtype' 'U8' 'shape' 8100 'data_offsets' 821010",
          16, false);
    CHECK_EQ(model->count, 3);
    close_model();
    malformed("a1 'tensors' a1 61ff " W);
    malformed("a1 'tensors' a1 63eda080 " W);
    CHECK_HAS(malformed("a1 'tensors' a1 63610062 " W), "holds a NUL"); /* C callers would cut it */
    takes("a1 'tensors' a1 63610062 " W, 16, true);
    CHECK_BYTES(model->entries[0].name, model->entries[0].name_len, "a\0b", 3);
    CHECK_TEXT(note("odd"), "1 name with a NUL in it");
    close_model();
}

TEST(index__takes_ids_of_64_bits_or_none)
{
    takes(ALONE("a4 'dtype' 'F32' 'shape' 820202 'data_offsets' 820010 'param_id' 1bffffffffffffffff"), 16, false);
    CHECK(model->entries[0].has_id && model->entries[0].id == UINT64_MAX);
    close_model();
    takes(ALONE("a4 'param_id' f6 'dtype' 'F32' 'shape' 820202 'data_offsets' 820010"), 16, false);
    CHECK(!model->entries[0].has_id);
    close_model();
    takes(ALONE("a4 'param_id' f7 'dtype' 'F32' 'shape' 820202 'data_offsets' 820010"), 16, false);
    CHECK(!model->entries[0].has_id);
    close_model();
    malformed(ALONE("a4 'dtype' 'F32' 'shape' 820202 'data_offsets' 820010 'param_id' 20"));
    malformed(ALONE("a4 'dtype' 'F32' 'shape' 820202 'data_offsets' 820010 'param_id' f90000"));
    malformed(ALONE("a4 'dtype' 'F32' 'shape' 820202 'data_offsets' 820010 'param_id' c1f6"));
    malformed(ALONE("a4 'dtype' 'F32' 'shape' 820202 'data_offsets' 820010 'param_id' c249010000000000000000"));
}

TEST(index__keeps_scalars_apart_by_type)
{
    takes(BESIDE("'scalars' a5 'a' a1 'Int' 3b7fffffffffffffff 'b' a1 'UInt' 1bffffffffffffffff 'c' a1 'Float' f93c00"
                 "'d' a1 'Float' fb7ff0000000000001 'e' a1 44426f6f6c f5"),
          16, false);
    CHECK_EQ(model->value_count, 5);
    CHECK(model->values[0].value.type == DECANT_VALUE_I64 && model->values[0].value.as.i64 == INT64_MIN);
    CHECK(model->values[1].value.type == DECANT_VALUE_U64 && model->values[1].value.as.u64 == UINT64_MAX);
    CHECK_EQ(model->values[2].value.as.f64_bits, UINT64_C(0x3FF0000000000000));
    CHECK_EQ(model->values[3].value.as.f64_bits, UINT64_C(0x7FF0000000000001));
    CHECK(model->values[4].value.type == DECANT_VALUE_BOOL && model->values[4].value.as.boolean);
    close_model();

    malformed(BESIDE("'scalars' a1 'a' a1 'Int' 1b8000000000000000"));
    malformed(BESIDE("'scalars' a1 'a' a1 'UInt' 20"));
    malformed(BESIDE("'scalars' a1 'a' a1 'Float' 01"));
    malformed(BESIDE("'scalars' a1 'a' a1 'Int' f90000"));
    malformed(BESIDE("'scalars' a1 'a' a1 'Bool' f814")); /* Burn reads these two as booleans; RFC 8949 forbids them */
    malformed(BESIDE("'scalars' a1 'a' a2 'Int' 01 'Int' 02"));
    CHECK_HAS(refused(BESIDE("'scalars' a1 'a' a1 'Complex' 01"), 16, false, DECANT_UNSUPPORTED),
              "scalar 'a' is of the unknown type 'Complex' at byte ");
    malformed(BESIDE("'scalars' a1 'a' a0"));
    malformed(BESIDE("'scalars' a1 'a' 01"));
    malformed(BESIDE("'scalars' a1 01 a1 'Int' 01"));
    refused(BESIDE("'scalars' a1 'a' a1 'Text' 'b'"), 16, false, DECANT_UNSUPPORTED);
    refused(BESIDE("'scalars' a1 'a' 'Int'"), 16, false, DECANT_UNSUPPORTED);
}

/* --- forms that are refused, as Burn refuses them ----------------------------------------------------------------- */

TEST(index__refuses_offsets_that_are_not_two)
{
    CHECK_HAS(malformed(ALONE("a3 'dtype' 'F32' 'shape' 820202 'data_offsets' 8100")), "data_offsets: not two numbers");
    malformed(ALONE("a3 'dtype' 'F32' 'shape' 820202 'data_offsets' 80"));
    malformed(ALONE("a3 'dtype' 'F32' 'shape' 820202 'data_offsets' 83001000")); /* Burn, if nothing follows */
}

TEST(index__refuses_other_types_and_says_where)
{
    CHECK_HAS(malformed("81a0"), "wrong type at byte 10, found an array, expected a map");
    malformed("f6");
    malformed("a1 'tensors' f6");
    malformed("a1 'tensors' 80");
    malformed("a2 'tensors' a0 'metadata' f6");
    malformed("a2 'tensors' a0 'metadata' a1 'a' 01");
    malformed("a2 'tensors' a0 'metadata' a1 4161 'b'");
    malformed("a1 01 02");
    malformed("a1 'tensors' a1 4177 " W);
    malformed("a1 'tensors' a1 00 " W);
    malformed(ALONE("83 'F32' 820202 820010"));
    malformed(ALONE("a3 'dtype' 00 'shape' 820202 'data_offsets' 820010"));
    malformed(ALONE("a3 'dtype' 43463332 'shape' 820202 'data_offsets' 820010"));
    malformed(ALONE("a3 'dtype' 'F32' 'shape' f6 'data_offsets' 820010"));
    malformed(ALONE("a3 'dtype' 'F32' 'shape' 822102 'data_offsets' 820010"));
    malformed(ALONE("a3 'dtype' 'F32' 'shape' 82f9400002 'data_offsets' 820010"));
    CHECK_HAS(malformed(ALONE("a3 'dtype' 'F32' 'shape' a0 'data_offsets' 820010")),
              "tensor 'w': shape: wrong type at byte 39, found a map, expected an array");
}

TEST(index__refuses_what_is_missing_or_comes_twice)
{
    CHECK_HAS(malformed("a0"), "a key is missing at byte 11, expected 'tensors'");
    CHECK_HAS(malformed(ALONE("a2 'shape' 820202 'data_offsets' 820010")), "expected 'dtype'");
    CHECK_HAS(malformed(ALONE("a2 'dtype' 'F32' 'data_offsets' 820010")), "expected 'shape'");
    CHECK_HAS(malformed(ALONE("a2 'dtype' 'F32' 'shape' 820202")), "expected 'data_offsets'");
    refused("a2 'tensors' a0 'tensors' a0", 0, true, DECANT_DUPLICATE);
    refused("a3 'tensors' a0 'metadata' a0 'metadata' a0", 0, true, DECANT_DUPLICATE);
    CHECK_HAS(refused(ALONE("a4 'dtype' 'F32' 'dtype' 'F32' 'shape' 820202 'data_offsets' 820010"), 16, true,
                      DECANT_DUPLICATE),
              "tensor 'w': duplicate key 'dtype' at byte 39");
}

TEST(index__refuses_unknown_dtypes_by_name)
{
    CHECK_HAS(refused(ALONE("a3 'dtype' 'f32' 'shape' 820202 'data_offsets' 820010"), 16, false, DECANT_UNSUPPORTED),
              "tensor 'w': unknown dtype 'f32' at byte 33; fetch the file again; if it is not damaged, a newer decant");
    refused(ALONE("a3 'dtype' a1 'F32' f6 'shape' 820202 'data_offsets' 820010"), 16, false, DECANT_UNSUPPORTED);
    refused(ALONE("a3 'dtype' a1 'Bool' 'U16' 'shape' 820202 'data_offsets' 820010"), 16, false, DECANT_UNSUPPORTED);
    refused(ALONE("a3 'dtype' 'QFloat' 'shape' 820202 'data_offsets' 820010"), 16, false, DECANT_UNSUPPORTED);
    malformed(ALONE("a3 'dtype' a2 'Bool' 'U8' 'Bool' 'U8' 'shape' 820202 'data_offsets' 820010"));
    malformed(ALONE("a3 'dtype' a1 'Bool' f6 'shape' 820202 'data_offsets' 820010"));
}

TEST(index__refuses_what_is_no_cbor)
{
    malformed("");
    malformed("1c");
    malformed("a1 'tensors' bbffffffffffffffff");
    malformed("a1 'tensors' a1 7bffffffffffffffff 61");
    malformed("a1 'tensors' ba7fffffff 'w' " W);
    malformed(ALONE("a3 'dtype' 'F32' 'shape' 9b1fffffffffffffff 02"));
    malformed("a2 'x' 61ff 'tensors' a0");
    malformed("a2 'x' e0 'tensors' a0");
    malformed("a2 'tensors' a0 'x'");
}

/* An unknown key of which the value is arrays in arrays. */
static decant_status nested(bool in_descriptor, size_t depth)
{
    char text[1024];
    size_t used = (size_t)snprintf(text, sizeof text, "%s", in_descriptor ? ALONE("a4 'x' ") : "a2 'x' ");
    decant_status rc;

    for (size_t i = 0; i < depth; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "81");
    snprintf(text + used, sizeof text - used, "00 %s",
             in_descriptor ? "'dtype' 'F32' 'shape' 820202 'data_offsets' 820010" : "'tensors' a1 'w' " W);
    rc = bpk_open(text, 16, false, &model, &err);
    close_model();
    return rc;
}

TEST(index__nests_as_deep_as_burn_does)
{
    CHECK_EQ(nested(false, 127), DECANT_OK);
    CHECK_EQ(nested(false, 128), DECANT_LIMIT);
    CHECK_EQ(nested(true, 125), DECANT_OK);
    CHECK_EQ(nested(true, 126), DECANT_LIMIT);
}

/* --- where Burn decides in silence -------------------------------------------------------------------------------- */

/* FR-08 */
TEST(names_that_come_twice__are_refused_or_the_last_counts_and_it_is_told)
{
    static const char tensors[] = "a1 'tensors' a2 'w' " W "'w' a3 'dtype' 'U8' 'shape' 8103 'data_offsets' 820003";
    static const char texts[] = "a2 'tensors' a0 'metadata' a2 'k' 'one' 'k' 'two'";
    static const char scalars[] = "a2 'tensors' a0 'scalars' a2 'k' a1 'Int' 01 'k' a1 'UInt' 02";

    CHECK_HAS(refused(tensors, 16, false, DECANT_DUPLICATE), "tensor 'w'");
    refused(texts, 0, false, DECANT_DUPLICATE);
    refused(scalars, 0, false, DECANT_DUPLICATE);

    takes(tensors, 3, true);
    CHECK_EQ(model->count, 1);
    CHECK_EQ(model->entries[0].dtype, DECANT_U8);
    CHECK_EQ(model->entries[0].data.len, 3);
    CHECK_EQ(model->entries[0].shape[0], 3);
    CHECK_HAS(note("odd"), "1 repeated name");
    close_model();
    takes(texts, 0, true);
    CHECK_EQ(model->value_count, 1);
    CHECK_BYTES(model->values[0].value.as.text.data, model->values[0].value.as.text.len, "two", 3);
    close_model();
    takes(scalars, 0, true);
    CHECK_EQ(model->values[0].value.type, DECANT_VALUE_U64);
    close_model();

    takes("a3 'tensors' a0 'metadata' a1 'k' 'v' 'scalars' a1 'k' a1 'Int' 01", 0, false); /* two maps, no clash */
    CHECK_EQ(model->value_count, 2);
    close_model();
}

TEST(bytes_that_nothing_names__are_refused_or_told)
{
    CHECK_HAS(malformed(ALONE(W) "00ff"), "2 unexpected bytes in the metadata");
    takes(ALONE(W) "00ff", 16, true);
    CHECK_TEXT(note("odd"), "2 bytes after the metadata");
    close_model();

    CHECK_HAS(refused(ALONE(W), 17, false, DECANT_MALFORMED), "1 unexpected byte after tensor data at offset 272");
    CHECK_EQ(err.offset, 272);
    takes(ALONE(W), 17, true);
    CHECK_TEXT(note("odd"), "1 byte after the data");
    close_model();
    refused("a1 'tensors' a0", 1, false, DECANT_MALFORMED);
}

TEST(data_that_overlaps__is_refused_or_told)
{
    static const char metadata[] = "a1 'tensors' a3 'a' a3 'dtype' 'U8' 'shape' 8108 'data_offsets' 820008"
                                   "'c' a3 'dtype' 'U8' 'shape' 8104 'data_offsets' 820206"
                                   "'b' a3 'dtype' 'U8' 'shape' 8104 'data_offsets' 82080c";
    const char *text = refused(metadata, 12, false, DECANT_MALFORMED);

    CHECK_HAS(text, "tensor 'c': its data overlaps that of tensor 'a', found offset 2, expected at least 8");
    takes(metadata, 12, true);
    CHECK_EQ(model->count, 3);
    CHECK_TEXT(note("odd"), "1 tensor on some of the data of others");
    close_model();

    /* one range under two names, and one with nothing in it */
    refused("a1 'tensors' a2 'a' " W "'b' " W, 16, false, DECANT_MALFORMED);
    takes("a1 'tensors' a2 'a' " W "'b' a3 'dtype' 'U8' 'shape' 8100 'data_offsets' 820404", 16, false);
    close_model();
}

/* --- lengths and places ------------------------------------------------------------------------------------------- */

TEST(ranges__must_hold_what_shape_and_dtype_need)
{
    CHECK_HAS(malformed(ALONE("a3 'dtype' 'F32' 'shape' 820202 'data_offsets' 82000f")),
              "tensor 'w': data_offsets do not hold shape [2, 2] of F32, found 15 bytes, expected 16");
    malformed(ALONE("a3 'dtype' 'F32' 'shape' 820202 'data_offsets' 820011"));
    malformed(ALONE("a3 'dtype' 'F32' 'shape' 80 'data_offsets' 820000"));
    CHECK_HAS(malformed(ALONE("a3 'dtype' 'U8' 'shape' 8102 'data_offsets' 820402")), "run backwards");
    malformed(ALONE("a3 'dtype' 'U8' 'shape' 8102 'data_offsets' 821bfffffffffffffffd1bffffffffffffffff"));
    CHECK_HAS(malformed(ALONE("a3 'dtype' 'U8' 'shape' 821bffffffffffffffff02 'data_offsets' 820002")), "overflows");
    malformed(ALONE("a3 'dtype' 'F32' 'shape' 811b4000000000000000 'data_offsets' 820000"));
}

TEST(ranges__of_empty_tensors_are_empty_whatever_the_other_extents)
{
    takes(ALONE("a3 'dtype' 'F32' 'shape' 83001bffffffffffffffff02 'data_offsets' 820000"), 0, false);
    close_model();
    takes(ALONE("a3 'dtype' 'F32' 'shape' 831bffffffffffffffff0200 'data_offsets' 820000"), 0, false); /* not in Burn */
    close_model();
}

TEST(ranges__may_leave_gaps_and_start_anywhere)
{
    takes("a1 'tensors' a2 'a' a3 'dtype' 'U8' 'shape' 8101 'data_offsets' 820304"
          "'b' a3 'dtype' 'U8' 'shape' 8102 'data_offsets' 820507",
          7, false);
    CHECK_TEXT(note("layout"), "data aligned to 1, 4 bytes of gaps");
    CHECK_TEXT(openers_text(&model->openers), "Burn");
    close_model();
    takes(ALONE(W), 16, false);
    CHECK_TEXT(note("layout"), "data aligned to 256, no gaps");
    close_model();
}

TEST(truncation__names_the_tensor_and_where_it_ends)
{
    CHECK_HAS(refused(ALONE(W), 15, false, DECANT_TRUNCATED),
              "tensor 'w': the file has 271 bytes, this tensor ends at byte 272; fetch the rest");
    refused("a1 'tensors' a2 'a' " W "'b' a3 'dtype' 'U8' 'shape' 8101 'data_offsets' 82190100190101", 16, false,
            DECANT_TRUNCATED);
    CHECK_TEXT(err.tensor, "b");
    CHECK_HAS(err.message, "ends at byte 513");
}

static decant_status open_bytes(const void *bytes, size_t len)
{
    decant_status rc = model_open(&dcn_burnpack, bytes, len, NULL, false, &model, &err);

    close_model();
    return rc;
}

TEST(truncation__is_seen_at_every_length)
{
    size_t len;
    uint8_t *file = bpk_file(ALONE(W), 16, &len);

    for (size_t cut = 0; cut < len; cut++) {
        CHECK_EQ(open_bytes(file, cut), DECANT_TRUNCATED);
        CHECK_HAS(err.message, cut < 2 ? "the file " : " bytes, ");
    }
    CHECK_EQ(open_bytes(file, len), DECANT_OK);
    free(file);
}

/* As burn-pack, which looks for data only where there are tensors. */
TEST(files_without_tensors__may_stop_after_the_metadata)
{
    size_t len;
    uint8_t *file = bpk_file("a1 'tensors' a0", 0, &len);

    for (size_t cut = 20; cut <= len; cut++)
        CHECK_EQ(open_bytes(file, cut), DECANT_OK);
    free(file);
    file = bpk_file(ALONE("a3 'dtype' 'U8' 'shape' 8100 'data_offsets' 820000"), 0, &len);
    CHECK_EQ(open_bytes(file, len - 1), DECANT_TRUNCATED);
    CHECK_EQ(open_bytes(file, len), DECANT_OK);
    free(file);
}

/* --- the prefix --------------------------------------------------------------------------------------------------- */

TEST(prefix__is_checked_before_anything_is_allocated)
{
    size_t len;
    uint8_t *file = bpk_file(ALONE(W), 16, &len);

    dcn_put_le(file + 4, 0, 2);
    CHECK_EQ(open_bytes(file, len), DECANT_OK); /* as Burn takes it */
    dcn_put_le(file + 4, 2, 2);
    CHECK_EQ(open_bytes(file, len), DECANT_UNSUPPORTED);
    CHECK_TEXT(err.found, "version 2");
    dcn_put_le(file + 4, 1, 2);

    file[0] = 'B';
    CHECK_EQ(open_bytes(file, len), DECANT_MALFORMED);
    file[0] = 'N';

    test_alloc_reset_peak();
    dcn_put_le(file + 6, UINT32_MAX, 4);
    CHECK_EQ(open_bytes(file, len), DECANT_TRUNCATED);
    CHECK_HAS(err.message, "metadata ends at byte 4294967305");
    CHECK(test_alloc_peak() < 4096);
    free(file);
}

TEST(probe__knows_the_magic)
{
    static const uint8_t head[] = {'N', 'R', 'U', 'B', 2};
    dcn_clue clue = {head, 5, 5};

    CHECK_EQ(dcn_burnpack.probe(&clue), 100);
    clue.head_len = 3;
    CHECK_EQ(dcn_burnpack.probe(&clue), 0);
    clue.head = (const uint8_t *)"BURN";
    clue.head_len = 4;
    CHECK_EQ(dcn_burnpack.probe(&clue), 0);
}

/* --- limits ------------------------------------------------------------------------------------------------------- */

static decant_status open_within(const char *metadata, size_t data, const dcn_limits *limits)
{
    size_t len;
    uint8_t *file = bpk_file(metadata, data, &len);
    decant_status rc = model_open(&dcn_burnpack, file, len, limits, false, &model, &err);

    free(file);
    close_model();
    return rc;
}

/* At the limit it opens, one past it does not. */
#define CHECK_LIMIT(metadata, data, field, most)                       \
    do {                                                               \
        dcn_limits limits_ = dcn_limits_of(false);                     \
        limits_.field = (most);                                        \
        CHECK_EQ(open_within(metadata, data, &limits_), DECANT_OK);    \
        limits_.field = (most)-1;                                      \
        CHECK_EQ(open_within(metadata, data, &limits_), DECANT_LIMIT); \
        CHECK_HAS(err.hint, "--allow limits");                         \
    } while (0)

TEST(limits__hold_at_their_value_and_not_one_past_it)
{
    static const char two[] = "a1 'tensors' a2 'a' " W "'b' a3 'dtype' 'U8' 'shape' 8100 'data_offsets' 821010";
    static const char open_map[] = "a1 'tensors' bf 'a' " W "'b' a3 'dtype' 'U8' 'shape' 8100 'data_offsets' 821010 ff";

    CHECK_LIMIT(ALONE(W), 16, rank, 2);
    CHECK_LIMIT(ALONE(W), 16, header, 48);
    CHECK_LIMIT(two, 16, tensors, 2);
    CHECK_LIMIT(open_map, 16, tensors, 2);
    CHECK_LIMIT("a1 'tensors' a1 'abcde' " W, 16, name, 5);
    CHECK_LIMIT(BESIDE("'metadata' a2 'a' 'b' 'c' 'd'"), 16, values, 2);
    CHECK_LIMIT(BESIDE("'metadata' a1 'abc' 'b'"), 16, value, 3);
    CHECK_LIMIT(BESIDE("'metadata' a1 'a' 'bcd'"), 16, value, 3);
}

/* --- quantized tensors -------------------------------------------------------------------------------------------- */

#define QUANT(store, tensor, block)                                                                       \
    ALONE("a3 'dtype' a1 'QFloat' a5 'value' 'Q4S' 'store' " store " 'mode' 'Symmetric' 'tensor' " tensor \
          " 'block' " block " 'shape' 820208 'data_offsets' 820010")
#define BLOCK(size, rank) "a2 'size' a2 'storage' " size " 'len' " rank " 'dtype' 'UE4M3'"

TEST(schemes__are_read_with_all_their_parts)
{
    const decant_quant *quant;

    takes(QUANT("a1 'PackedU32' 01", "'F32'", BLOCK("85 01 04 08 01 01", "03")), 16, true);
    quant = dcn_quant_of(model->entries[0].extra);
    CHECK_EQ(quant->value, DECANT_Q4S);
    CHECK_EQ(quant->store, DECANT_STORE_PACKED_U32);
    CHECK_EQ(quant->packed_dim, 1);
    CHECK_EQ(quant->tensor_scale, DECANT_SCALE_F32);
    CHECK_EQ(quant->block_scale, DECANT_SCALE_UE4M3);
    CHECK_EQ(quant->block_rank, 2);
    CHECK(quant->block[0] == 4 && quant->block[1] == 8);
    close_model();

    takes(QUANT("'Native'", "f6", BLOCK("45 2001010101", "01")), 16, true);
    CHECK_EQ(dcn_quant_of(model->entries[0].extra)->block[0], 32);
    close_model();
    /* what is absent is none, as for serde */
    takes(ALONE("a3 'dtype' a1 'QFloat' a3 'value' 'Q8F' 'store' 'Native' 'mode' 'Lookup' 'shape' 8100"
                "'data_offsets' 820004"),
          4, false);
    CHECK_EQ(dcn_quant_of(model->entries[0].extra)->tensor_scale, DECANT_SCALE_NONE);
    close_model();
}

/* Burn takes any length; 4 values, packed into 4 bytes, and a scale of 4. */
TEST(schemes__that_call_for_another_length_are_refused_or_told)
{
#define QUANTIZED(end)                                                                                                \
    ALONE(                                                                                                            \
        "a3 'dtype' a1 'QFloat' a5 'value' 'Q8F' 'store' a1 'PackedU32' 00 'mode' 'Symmetric' 'tensor' f6 'block' f6" \
        "'shape' 8104 'data_offsets' 8200" end)
    takes(QUANTIZED("08"), 8, false);
    CHECK_TEXT(note("odd"), "(none)");
    close_model();
    CHECK_HAS(
        refused(QUANTIZED("09"), 9, false, DECANT_MALFORMED),
        "tensor 'w': data_offsets do not hold shape [4] of this QFloat, found 9 bytes, expected 8; open it leniently");
    takes(QUANTIZED("09"), 9, true);
    CHECK_TEXT(note("odd"), "1 quantized tensor of another length than its scheme calls for");
    close_model();
    CHECK_HAS(malformed(QUANT("a1 'PackedU32' 02", "f6", "f6")), "its quantization scheme does not fit shape [2, 8]");
    takes(QUANT("a1 'PackedU32' 02", "f6", "f6"), 16, true);
    close_model();
#undef QUANTIZED
}

/* Burn takes these and fails when it uses them. */
TEST(schemes__with_blocks_that_are_none_are_refused)
{
    CHECK_HAS(malformed(QUANT("'Native'", "f6", BLOCK("85 1820 01 01 01 01", "06"))), "more than five dimensions");
    CHECK_HAS(malformed(QUANT("'Native'", "f6", BLOCK("85 1820 00 01 01 01", "02"))), "an extent of a block is 0");
    malformed(QUANT("'Native'", "f6", BLOCK("84 1820 01 01 01", "01")));
    malformed(QUANT("'Native'", "f6", BLOCK("86 1820 01 01 01 01 01", "01")));
    malformed(QUANT("'Native'", "f6", BLOCK("85 190100 01 01 01 01", "01")));
    malformed(QUANT("'Native'", "f6", "a1 'dtype' 'F32'"));
    takes(QUANT("'Native'", "f6", BLOCK("85 1820 00 00 00 00", "01")), 16,
          true); /* what is past the length is not used */
    close_model();
}

TEST(schemes__of_unknown_parts_are_refused)
{
    refused(QUANT("'PackedU32'", "f6", "f6"), 16, false, DECANT_UNSUPPORTED);
    refused(QUANT("a1 'Native' 00", "f6", "f6"), 16, false, DECANT_UNSUPPORTED);
    refused(QUANT("'Native'", "'F64'", "f6"), 16, false, DECANT_UNSUPPORTED);
    malformed(QUANT("a1 'PackedU32' 20", "f6", "f6"));
    malformed(QUANT("a2 'PackedU32' 00 'PackedU32' 00", "f6", "f6"));
    malformed(QUANT("'Native'", "00", "f6"));
}

/* A scheme is held once for all the tensors in a row that share it. */
TEST(schemes__that_are_the_same_are_held_once)
{
#define SCALAR                                                                                                      \
    "a3 'dtype' a1 'QFloat' a5 'value' 'Q8F' 'store' 'Native' 'mode' 'Symmetric' 'tensor' f6 'block' f6 'shape' 80" \
    "'data_offsets' 820000"

    takes("a1 'tensors' a3 'a' " SCALAR "'b' " SCALAR "'c' " SCALAR, 0, true);
    CHECK_EQ(model->count, 3);
    CHECK(model->entries[0].extra == model->entries[1].extra && model->entries[1].extra == model->entries[2].extra);
    close_model();
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

TEST(index__without_memory_fails_and_leaves_nothing)
{
    static const char metadata[] =
        "a3 'tensors' a2 'w' " W "'q' a3 'dtype' a1 'QFloat' a5 'value' 'Q8F' 'store' 'Native' 'mode' 'Symmetric'"
        "'tensor' f6 'block' f6 'shape' 8104 'data_offsets' 82190100190108 'metadata' a1 'k' 'v'"
        "'scalars' a1 's' a1 'Int' 01";
    size_t len;
    uint8_t *file = bpk_file(metadata, 264, &len);

    check_opens_or_leaves_nothing(&dcn_burnpack, file, len, 0);
    free(file);
}

TEST(index__takes_memory_in_proportion_to_the_metadata)
{
    size_t len;
    dcn_buf text = {0};
    uint8_t *file;
    size_t peak;

    dcn_buf_text(&text, "a1 'tensors' bf");
    for (int i = 0; i < 2000; i++)
        dcn_buf_format(&text, "'t%04d' a3 'dtype' 'U8' 'shape' 8100 'data_offsets' 820000", i);
    dcn_buf_text(&text, "ff");
    dcn_buf_byte(&text, 0);
    file = bpk_file((const char *)text.data, 0, &len);
    dcn_buf_close(&text);
    test_alloc_reset_peak();
    CHECK_EQ(open_bytes(file, len), DECANT_OK);
    peak = test_alloc_peak();
    CHECK(peak < len + 2000 * 128 + 65536);
    free(file);
}
