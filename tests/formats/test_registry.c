/* Which format a file has, decided by what is in it, and what is said of files that have none. */
#include "support/models.h"

#include <stdio.h>
#include <stdlib.h>

static decant_error err;

#define SAFE "\x38\0\0\0\0\0\0\0{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}   \1\2"

static decant_status open_named(const void *bytes, size_t len, const char *name, const dcn_format *format,
                                decant_model **model)
{
    dcn_limits limits = dcn_limits_of(false);
    dcn_input in = {.name = name};
    decant_status rc;

    err = (decant_error){0};
    CHECK_OK(decant_bytes_wrap(bytes, len, NULL, NULL, &in.bytes, &err), &err);
    rc = dcn_format_open(&in, format, &limits, false, model, &err);
    decant_bytes_unref(&in.bytes);
    return rc;
}

/* That these bytes are refused in these words, whatever the format asked for and whatever the name. */
static void refuses(const char *bytes, size_t len, decant_status wanted, const char *words)
{
    static const char *const names[] = {"m.safetensors", "m.gguf", "m.bpk", "m.pt", "m.bin",
                                        "m.npz",         "m.onnx", "m.tar", "m"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        decant_model *model = NULL;
        const dcn_format *format;

        CHECK_FAILS(open_named(bytes, len, names[i], NULL, &model), wanted, &err);
        CHECK_HAS(decant_error_text(&err), words);
        CHECK_EQ(err.side, DECANT_SIDE_INPUT);
        CHECK_TEXT(err.path, names[i]);
        CHECK(err.hint[0]);
        CHECK(!strstr(decant_error_text(&err), "header"));
        for (size_t f = 0; (format = dcn_format_at(f)); f++) {
            CHECK_FAILS(open_named(bytes, len, names[i], format, &model), wanted, &err);
            CHECK_HAS(decant_error_text(&err), words);
        }
        CHECK(!model);
    }
}

static void refuses_text(const char *text, decant_status wanted, const char *words)
{
    refuses(text, strlen(text), wanted, words);
}

TEST(registry__finds_formats_by_name_and_by_extension)
{
    const dcn_format *format;

    CHECK(dcn_format_named("safetensors") == &dcn_safetensors);
    CHECK(!dcn_format_named("Safetensors") && !dcn_format_named("") && !dcn_format_named("tensorflow"));
    for (size_t i = 0; (format = dcn_format_at(i)); i++) {
        CHECK(dcn_format_named(format->name) == format);
        for (const char *const *e = format->extensions; *e; e++) {
            char path[64];

            snprintf(path, sizeof path, "some.where/model.%s", *e);
            CHECK(dcn_format_for_path(path) == format);
        }
    }
    CHECK(dcn_format_for_path("MODEL.SafeTensors") == &dcn_safetensors);
    CHECK(dcn_format_for_path("a.bpk.safetensors") == &dcn_safetensors);
    CHECK(!dcn_format_for_path("a.safetensors/model"));
    CHECK(!dcn_format_for_path("a.safetensors.tmp"));
    CHECK(!dcn_format_for_path("safetensors"));
    CHECK(!dcn_format_for_path(".safetensors")); /* a hidden file without an extension */
    CHECK(!dcn_format_for_path("dir/.safetensors"));
    CHECK(!dcn_format_for_path("model.") && !dcn_format_for_path("") && !dcn_format_for_path("a/"));
}

/* FR-01 */
TEST(registry__FR_01_names_a_git_lfs_pointer)
{
    refuses_text("version https://git-lfs.github.com/spec/v1\n"
                 "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 4976698672\n",
                 DECANT_UNSUPPORTED,
                 "Git-LFS pointer to a file of 4,976,698,672 bytes; the data was never fetched; run git lfs pull");
    refuses_text("version https://git-lfs.github.com/spec/v1\nsize 12\n", DECANT_UNSUPPORTED, "a file of 12 bytes");
    refuses_text("version https://git-lfs.github.com/spec/v1\nsize 123456\n", DECANT_UNSUPPORTED, "of 123,456 bytes");
    refuses_text("version https://git-lfs.github.com/spec/v1\nsize ", DECANT_UNSUPPORTED, "a file of unknown size");
    refuses_text("version https://git-lfs.github.com/spec/v1\n", DECANT_UNSUPPORTED, "a file of unknown size");
}

/* FR-02 */
TEST(registry__FR_02_names_web_pages_error_bodies_and_empty_files)
{
    refuses_text("<!DOCTYPE html><html>", DECANT_UNSUPPORTED,
                 "an HTML page, not a model, found '<!DOCTYPE html><html>'");
    refuses_text("\xef\xbb\xbf\r\n  <!doctype HTML>", DECANT_UNSUPPORTED, "an HTML page");
    refuses_text("<HTML>\x1b[31m", DECANT_UNSUPPORTED, "found '<HTML>\\x1b[31m'");
    refuses_text("{\"error\":\"Access denied\"}", DECANT_UNSUPPORTED,
                 "a JSON error body, not a model, found '{\"error\":\"Access denied\"}'");
    refuses_text(" {\n \"message\": \"Not Found\"}", DECANT_UNSUPPORTED, "a JSON error body");
    refuses_text("{\"model_type\":\"llama\"}", DECANT_UNSUPPORTED, "a JSON text, not a model");
    refuses_text("[]", DECANT_UNSUPPORTED, "a JSON text, not a model");
    refuses_text("<!-- moved --><html>", DECANT_UNSUPPORTED, "an HTML page");
    refuses_text("<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>", DECANT_UNSUPPORTED, "an XML text");
    refuses_text("Entry not found\n", DECANT_UNSUPPORTED, "a text, not a model, found 'Entry not found\\x0a'");
    refuses_text("\xc3\xa9t\xc3\xa9, pas de fichier", DECANT_UNSUPPORTED, "a text, not a model");
}

/* FR-02, DA-11: what never arrived, or stopped after a few bytes. */
TEST(registry__FR_02_names_files_that_hardly_begin)
{
    static const char zeros[5000];

    refuses("", 0, DECANT_TRUNCATED, "the file is empty");
    refuses("N", 1, DECANT_TRUNCATED, "the file has 1 byte, and no model has so few");
    refuses("\x38\0\0\0\0\0\0\0{", 9, DECANT_TRUNCATED, "the file has 9 bytes, and no model has so few");
    refuses(zeros, sizeof zeros, DECANT_MALFORMED, "the file begins with zeros");
    refuses("\0\0\0\0\0\0\0\0{\"a\":{}}", 16, DECANT_MALFORMED, "the file begins with zeros");
}

/* FR-03 */
TEST(registry__FR_03_names_files_of_other_kinds_whatever_their_extension)
{
    static char tar[512] = "model.bin";

    refuses("\x80\x02\x8a\x0al\xfc\x9c\x46\xf9 j\xa8P\x19.", 15, DECANT_UNSUPPORTED,
            "a PyTorch file of before version 1.6");
    refuses("\x80\x02}q\0.", 6, DECANT_UNSUPPORTED, "a Python pickle");
    refuses("\x80\x04\x95\0\0\0\0", 7, DECANT_UNSUPPORTED, "a Python pickle");
    refuses("GGUF\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24, DECANT_UNSUPPORTED, "a GGUF model");
    refuses("\x82\xa8metadata\x84\xa5", 12, DECANT_UNSUPPORTED, "a record of Burn in MessagePack (.mpk)");
    refuses("\x89HDF\r\n\x1a\n\0\0", 10, DECANT_UNSUPPORTED, "an HDF5 file");
    refuses("\x1c\0\0\0TFL3\x14\0", 10, DECANT_UNSUPPORTED, "a TensorFlow Lite model");
    refuses("tjgg\3\0\0\0\0\0", 10, DECANT_UNSUPPORTED, "a GGML model of before GGUF");
    refuses("\x1f\x8b\x08\0\0\0\0\0\0\3", 10, DECANT_UNSUPPORTED, "compressed by gzip");
    refuses("\x93NUMPY\1\0", 8, DECANT_UNSUPPORTED, "a NumPy array");
    refuses("\x08\x07\x12\x07pytorch:\x10", 13, DECANT_UNSUPPORTED, "an ONNX model");
    refuses("\x08\x03\x3a\x80\x80\x80\x80\x08", 8, DECANT_UNSUPPORTED, "an ONNX model");
    refuses("\x3c\0\0\0ET12eh00", 12, DECANT_UNSUPPORTED, "an ExecuTorch program");
    refuses("\x20\0\0\0FT01FH01", 12, DECANT_UNSUPPORTED, "an ExecuTorch file of tensors");
    refuses("\x28\xb5\x2f\xfd\4\0\1\0\0\0", 10, DECANT_UNSUPPORTED, "compressed by zstd");
    refuses("\xfd\x37zXZ\0\0\4\xe6\xd6", 10, DECANT_UNSUPPORTED, "compressed by xz");
    refuses("BZh91AY&SY\x1f", 11, DECANT_UNSUPPORTED, "compressed by bzip2");
    memcpy(tar + 257, "ustar", 5);
    refuses(tar, sizeof tar, DECANT_UNSUPPORTED, "a tar archive");
}

/* A zip archive of one member, with `filler` bytes in it. Freed by the caller. */
static uint8_t *zip_of(const char *member, size_t filler, size_t *len)
{
    size_t name = strlen(member);
    uint8_t *file;

    *len = 30 + name + filler + 46 + name + 22;
    CHECK((file = calloc(*len, 1)));
    memcpy(file, "PK\x03\x04", 4);
    memcpy(file + 30, member, name);
    memcpy(file + 30 + name + filler, "PK\x01\x02", 4);
    memcpy(file + 30 + name + filler + 46, member, name);
    memcpy(file + *len - 22, "PK\x05\x06", 4);
    return file;
}

/* FR-03: the directory at the end says what is in it, and that it is whole. */
TEST(registry__FR_03_names_zip_archives_by_who_wrote_them)
{
    static const struct {
        const char *member, *words;
    } kinds[] = {
        {"archive/data.pkl", "a PyTorch file (zip), which is not read yet, found"},
        {"model/constants.pkl", "a TorchScript archive"},
        {"arr_0.npy", "a NumPy archive (.npz)"},
        {"model.weights.h5", "a Keras model (zip)"},
        {"readme.txt", "a zip archive, found"},
    };

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t len;
        uint8_t *file = zip_of(kinds[i].member, 3 * DCN_HEAD, &len);

        refuses((const char *)file, len, DECANT_UNSUPPORTED, kinds[i].words);
        refuses((const char *)file, len - 23, DECANT_TRUNCATED,
                "a zip archive, as PyTorch and NumPy write them, that is cut");
        free(file);
    }
    refuses("PK\x03\x04\0\0\x08\x08\0\0", 10, DECANT_TRUNCATED, "found 10 bytes, and no directory at their end; fetch");
    refuses("PK\x05\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 22, DECANT_UNSUPPORTED, "a zip archive, found");
}

/* What is shown of a file ends in whole characters and in its quote. */
TEST(registry__FR_02_shows_how_a_file_begins_without_cutting_a_character)
{
    char noise[64];
    decant_model *model = NULL;
    size_t len;

    memset(noise, 0xfe, sizeof noise);
    CHECK_FAILS(open_named(noise, sizeof noise, "m.bpk", NULL, &model), DECANT_UNSUPPORTED, &err);
    len = strlen(err.found);
    CHECK_TEXT(err.found + len - 8, "\\xfe...'");
}

TEST(registry__says_so_when_it_knows_nothing_of_a_file)
{
    decant_model *model = NULL;

    CHECK_FAILS(open_named("\xe9hello, there", 13, "m.safetensors", NULL, &model), DECANT_UNSUPPORTED, &err);
    CHECK_TEXT(err.message, "no format that is known here");
    CHECK_TEXT(err.found, "'\\xe9hello, there'");
    CHECK_FAILS(open_named("\0\1\2\3\xff\0\0\0\0\0", 10, "m", NULL, &model), DECANT_UNSUPPORTED, &err);
    CHECK_TEXT(err.found, "'\\x00\\x01\\x02\\x03\\xff\\x00\\x00\\x00\\x00\\x00'");
}

/* FR-03: content decides, and a name that says otherwise is told. */
TEST(registry__FR_03_opens_a_file_by_its_content_and_notes_a_wrong_name)
{
    static const struct {
        const char *name, *note;
    } cases[] = {
        {"x.bin", "the name ends in .bin, the content is safetensors"},
        {"dir.d/x.bpk", "the name ends in .bpk, the content is safetensors"},
        {"x.safetensors", NULL},
        {"x.SAFETENSORS", NULL},
        {"x", NULL},
        {"dir.bin/x", NULL},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        decant_model *model = NULL;
        const char *key, *text, *odd = NULL;

        CHECK_OK(open_named(SAFE, sizeof SAFE - 1, cases[i].name, NULL, &model), &err);
        CHECK_TEXT(decant_model_format(model), "safetensors");
        CHECK_TEXT(model->path, cases[i].name);
        CHECK_EQ(model->file_count, 1);
        CHECK_TEXT(model->files[0].path, cases[i].name);
        CHECK_EQ(model->files[0].size, sizeof SAFE - 1);
        for (size_t n = 0; decant_model_note(model, n, &key, &text) == DECANT_OK; n++)
            if (strcmp(key, "odd") == 0)
                odd = text;
        CHECK_TEXT(odd ? odd : "", cases[i].note ? cases[i].note : "");
        decant_model_close(&model);
    }
}

TEST(registry__detects_safetensors_with_space_in_front)
{
    static const char file[] = "\x09\0\0\0\0\0\0\0 \t\r\n{}   ";
    decant_model *model = NULL;

    CHECK_OK(open_named(file, sizeof file - 1, "x", NULL, &model), &err);
    CHECK_TEXT(decant_model_format(model), "safetensors");
    decant_model_close(&model);
}
