/* Models in several files: by an index, and by the names of the parts. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/env.h"
#include "format/safetensors/layout.h"
#include "support/alloc.h"
#include "support/gates.h"
#include "support/models.h"
#include "support/safetensors.h"
#include "support/simdisk.h"

#define INDEX "model.safetensors.index.json"
#define PART(n, of) "model-0000" #n "-of-0000" #of ".safetensors"

static decant_error err;

/* A file of tensors of bytes: "a4 b2" are two, `a` of 4 bytes and `b` of 2. `metadata` is JSON, or NULL. */
static void put_shard(simdisk *disk, const char *name, const char *tensors, const char *metadata)
{
    char header[4096] = "{";
    size_t used = 1, at = 0, len;
    uint8_t *file;

    if (metadata)
        used += (size_t)sprintf(header + used, "\"__metadata__\":%s", metadata);
    for (const char *t = tensors; *t; t += strcspn(t, " "), t += strspn(t, " ")) {
        size_t size = strtoul(t + 1, NULL, 10);

        used += (size_t)sprintf(header + used, "%s\"%c\":{\"dtype\":\"U8\",\"shape\":[%zu],\"data_offsets\":[%zu,%zu]}",
                                used > 1 ? "," : "", *t, size, at, at + size);
        at += size;
    }
    strcpy(header + used, "}");
    file = st_file(header, at, &len);
    for (size_t i = 0; i < at; i++)
        file[len - at + i] = (uint8_t)(name[strlen(name) - 1] + i + (uint8_t)tensors[0]);
    simdisk_put(disk, name, file, len);
    free(file);
}

/* Two shards of two tensors and one, and their index, in the folder that the prefix names. */
static void put_parts(simdisk *disk)
{
    put_shard(disk, PART(1, 2), "d4 a3", "{\"format\":\"pt\"}");
    put_shard(disk, PART(2, 2), "b2", "{\"format\":\"pt\"}");
}

static void put_set(simdisk *disk)
{
    put_parts(disk);
    simdisk_put_text(disk, INDEX,
                     "{\"metadata\":{\"total_size\":9},\"weight_map\":{\"a\":\"" PART(1, 2) "\",\"b\":\"" PART(
                         2, 2) "\",\"d\":\"" PART(1, 2) "\"}}");
}

static decant_status open_set(simdisk *disk, const char *path, unsigned lenient, decant_model **out)
{
    dcn_env env = {.io = &disk->io, .cut = dcn_cut_default};
    decant_open_options options = {.size = sizeof options, .lenient = lenient};
    decant_status rc = dcn_open(&env, path, &options, out, &err);

    CHECK_EQ(disk->open_dirs, 0);
    if (rc) {
        CHECK_EQ(disk->open_files, 0);
        CHECK(rc == DECANT_NOMEM || err.side == DECANT_SIDE_INPUT);
    }
    return rc;
}

/* "d a b" */
static const char *names_of(const decant_model *model)
{
    static char text[256];
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < model->count; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%.*s", i ? " " : "",
                                 (int)model->entries[i].name_len, model->entries[i].name);
    return text;
}

/* All notes of a kind, one after the other. */
static const char *notes_of(const decant_model *model, const char *kind)
{
    static char text[1024];
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < model->note_count; i++)
        if (strcmp(model->notes[i].key, kind) == 0)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", used ? "; " : "", model->notes[i].text);
    return text;
}

static void check_set(decant_model **model)
{
    const char *path = NULL;
    uint64_t size = 0;
    uint8_t *bytes;

    CHECK_TEXT(names_of(*model), "d a b");
    bytes = entry_bytes(&(*model)->entries[1]);
    CHECK_EQ(bytes[0], 's' + 4 + 'd');
    free(bytes);
    bytes = entry_bytes(&(*model)->entries[2]);
    CHECK_EQ(bytes[1], 's' + 1 + 'b');
    free(bytes);
    CHECK_EQ((*model)->value_count, 1);
    CHECK_TEXT(dcn_model_text(*model, "format")->value.as.text.data, "pt");
    CHECK_EQ(decant_model_file(*model, 1, &path, &size), 1);
    CHECK_TEXT(path, PART(2, 2));
    CHECK(size > 2);
    CHECK_EQ(decant_model_file(*model, 2, &path, &size), 0);
    CHECK_TEXT(notes_of(*model, "odd"), "");
    CHECK_HAS(notes_of(*model, "layout"), "no gaps");
    decant_model_close(model);
}

/* What stands in its place in the index is refused in these words, naming this file and tensor. */
static void refused(simdisk *disk, const char *path, decant_status wanted, const char *file, const char *tensor,
                    const char *words)
{
    decant_model *model = NULL;

    CHECK_FAILS(open_set(disk, path, 0, &model), wanted, &err);
    CHECK_TEXT(err.path, file);
    CHECK_TEXT(err.tensor, tensor);
    CHECK_HAS(decant_error_text(&err), words);
    CHECK(err.hint[0] || wanted == DECANT_MALFORMED); /* of JSON the command line says what to do */
}

TEST(shards__are_one_model_by_their_index)
{
    simdisk *disk = simdisk_new();
    decant_model *model = NULL;

    put_set(disk);
    CHECK_OK(open_set(disk, INDEX, 0, &model), &err);
    CHECK_TEXT(decant_model_path(model), INDEX);
    CHECK_TEXT(decant_model_format(model), "safetensors");
    CHECK_TEXT(openers_text(&model->openers), "safetensors; transformers");
    check_set(&model);
    simdisk_free(&disk);
}

TEST(shards__stand_in_the_order_of_their_names_whatever_the_order_of_the_map)
{
    simdisk *disk = simdisk_new();
    decant_model *model = NULL;

    put_shard(disk, "x", "z1 y1", NULL);
    put_shard(disk, "w", "c1 b0 a1", NULL);
    put_shard(disk, "v", "m1", NULL);
    simdisk_put_text(disk, INDEX,
                     "{\"weight_map\":{\"z\":\"x\",\"m\":\"v\",\"a\":\"w\",\"y\":\"x\",\"b\":\"w\",\"c\":\"w\"}}");
    CHECK_OK(open_set(disk, INDEX, 0, &model), &err);
    CHECK_TEXT(names_of(model), "m c b a z y");
    CHECK_TEXT(openers_text(&model->openers), "safetensors; transformers: no metadata format = pt");
    decant_model_close(&model);
    simdisk_free(&disk);
}

/* SE-01 */
TEST(shards__are_files_beside_the_index_and_nothing_else__SE_01)
{
    static const char *const names[] = {
        "../x", "/etc/hostname", "a/../../x",        "C:\\\\x",  "",       "x\\u0000y", ".", "..", "./x",
        "x/",   "..\\\\x",       "\\u002e\\u002e/x", "x\\u000a", "\\u002e"};
    simdisk *disk = simdisk_new();
    char index[256];
    gates g;

    simdisk_put_text(disk, "x", "secret");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(index, sizeof index, "{\"weight_map\":{\"w\":\"%s\"}}", names[i]);
        simdisk_put_text(disk, "d/" INDEX, index);
        gates_up(&g, &disk->io);
        refused(disk, "d/" INDEX, DECANT_MALFORMED, "d/" INDEX, "", "names a file that is not beside it, found '");
        CHECK_EQ(g.count[DCN_DO_OPEN], 1);
        gates_down(&g);
    }
    CHECK_HAS(err.expected, "bare name");
    simdisk_free(&disk);
}

TEST(shards__that_are_missing_are_named_and_counted)
{
    simdisk *disk = simdisk_new();

    put_set(disk);
    simdisk_put_text(disk, "index.json",
                     "{\"weight_map\":{\"a\":\"" PART(1, 2) "\",\"d\":\"" PART(1, 2) "\",\"b\":\"gone\"}}");
    refused(disk, "index.json", DECANT_NOT_FOUND, "gone", "", "found the other 1 shard; fetch it");
    simdisk_put_text(
        disk, "index.json",
        "{\"weight_map\":{\"a\":\"" PART(1, 2) "\",\"d\":\"" PART(1, 2) "\",\"b\":\"gone\",\"c\":\"lost\"}}");
    refused(disk, "index.json", DECANT_NOT_FOUND, "gone", "",
            "found 2 of 3 shards missing, this one first; fetch them");
    simdisk_free(&disk);
}

TEST(shards__hold_what_the_index_says)
{
    simdisk *disk = simdisk_new();

    put_set(disk);
    simdisk_put_text(disk, INDEX,
                     "{\"weight_map\":{\"a\":\"" PART(1, 2) "\",\"b\":\"" PART(2, 2) "\",\"c\":\"" PART(
                         2, 2) "\",\"d\":\"" PART(1, 2) "\"}}");
    refused(disk, INDEX, DECANT_MALFORMED, PART(2, 2), "c", "which does not hold it; fetch");
    simdisk_put_text(disk, INDEX, "{\"weight_map\":{\"a\":\"" PART(1, 2) "\",\"b\":\"" PART(2, 2) "\"}}");
    refused(disk, INDEX, DECANT_MALFORMED, PART(1, 2), "d", "and not in the index; open it leniently");
    simdisk_put_text(disk, INDEX,
                     "{\"weight_map\":{\"a\":\"" PART(1, 2) "\",\"b\":\"" PART(2, 2) "\",\"d\":\"" PART(2, 2) "\"}}");
    refused(disk, INDEX, DECANT_MALFORMED, PART(1, 2), "d", "is in this file, and by the index in '" PART(2, 2) "'");
    simdisk_free(&disk);
}

TEST(shards__may_hold_more_than_the_index_says_if_that_leniency_is_given_and_it_is_told)
{
    simdisk *disk = simdisk_new();
    decant_model *model = NULL;

    put_set(disk);
    simdisk_put_text(disk, INDEX, "{\"weight_map\":{\"a\":\"" PART(1, 2) "\",\"b\":\"" PART(2, 2) "\"}}");
    CHECK_FAILS(open_set(disk, INDEX, DECANT_LENIENT_ALL & ~DECANT_LENIENT_UNMAPPED, &model), DECANT_MALFORMED, &err);
    CHECK_OK(open_set(disk, INDEX, DECANT_LENIENT_UNMAPPED, &model), &err);
    CHECK_TEXT(names_of(model), "d a b");
    CHECK_TEXT(notes_of(model, "odd"), "1 tensor that the index does not name");
    decant_model_close(&model);
    simdisk_free(&disk);
}

/* FR-07, FR-08: the map is read as strictly as a header, since a key that comes twice points a tensor elsewhere. */
TEST(shards__and_tensors_stand_in_the_index_once__FR_07_FR_08)
{
    simdisk *disk = simdisk_new();

    put_set(disk);
    simdisk_put_text(disk, INDEX,
                     "{\"weight_map\":{\"a\":\"" PART(1, 2) "\",\"b\":\"" PART(2, 2) "\",\"\\u0061\":\"" PART(
                         2, 2) "\",\"d\":\"" PART(1, 2) "\"}}");
    refused(disk, INDEX, DECANT_DUPLICATE, INDEX, "a", "the index maps it twice, found '");
    CHECK_HAS(err.found, PART(1, 2));
    CHECK_HAS(err.found, PART(2, 2));
    simdisk_put_text(disk, INDEX, "{\"weight_map\":{},\"weight_map\":{}}");
    refused(disk, INDEX, DECANT_DUPLICATE, INDEX, "", "two members are called 'weight_map'");

    put_shard(disk, PART(2, 2), "b2 a4", NULL);
    simdisk_put_text(disk, INDEX,
                     "{\"weight_map\":{\"a\":\"" PART(1, 2) "\",\"b\":\"" PART(2, 2) "\",\"d\":\"" PART(1, 2) "\"}}");
    refused(disk, INDEX, DECANT_DUPLICATE, PART(2, 2), "a", "is in this file, and in '" PART(1, 2) "' too");
    simdisk_free(&disk);
}

TEST(shards__have_a_total_size_that_is_compared_where_it_can_be)
{
    static const struct {
        const char *metadata, *said;
    } cases[] = {
        {"{\"total_size\":9}", ""},
        {"{\"total_size\":9.0,\"total_parameters\":9}", ""},
        {"{\"total_size\":1e9}", ""},
        {"{\"total_size\":99999999999999999999999}", ""},
        {"{\"total_size\":\"8\"}", ""},
        {"{\"total_size\":null}", ""},
        {"{}", ""},
        {"null", ""},
        {"[8]", ""},
        {"{\"a\":{\"total_size\":8},\"total_size\":8}", "the index gives a total_size of 8, the tensors have 9 bytes"},
        {" {\n  \"total_size\": 9\n}", ""},
        {" {\n  \"total_size\": 8.0 }", ""},
        {" {\n  \"total_size\": 8\n}", "the index gives a total_size of 8, the tensors have 9 bytes"},
        {"{\"total_size\":18}", "the index gives a total_size of 18, the tensors have 9 bytes"},
    };
    simdisk *disk = simdisk_new();
    char index[512];

    put_set(disk);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        decant_model *model = NULL;

        snprintf(index, sizeof index,
                 "{\"metadata\":%s,\"weight_map\":{\"a\":\"" PART(1, 2) "\",\"b\":\"" PART(2, 2) "\",\"d\":\"" PART(
                     1, 2) "\"},\"more\":[1,{}]}",
                 cases[i].metadata);
        simdisk_put_text(disk, INDEX, index);
        CHECK_OK(open_set(disk, INDEX, 0, &model), &err);
        CHECK_TEXT(notes_of(model, "odd"), cases[i].said);
        decant_model_close(&model);
    }
    simdisk_free(&disk);
}

TEST(shards__have_the_metadata_that_they_agree_on)
{
    simdisk *disk = simdisk_new();
    decant_model *model = NULL;

    put_set(disk);
    put_shard(disk, PART(1, 2), "d4 a3", "{\"format\":\"pt\",\"part\":\"1\",\"one\":\"x\"}");
    put_shard(disk, PART(2, 2), "b2", "{\"part\":\"2\",\"format\":\"pt\",\"two\":\"y\"}");
    CHECK_OK(open_set(disk, INDEX, 0, &model), &err);
    CHECK_EQ(model->value_count, 3);
    CHECK(!dcn_model_text(model, "part") && dcn_model_text(model, "one") && dcn_model_text(model, "two"));
    CHECK_HAS(notes_of(model, "odd"), "1 metadata key, of which the shards say different things, left out: 'part'");
    CHECK_TEXT(openers_text(&model->openers), "safetensors; transformers");
    decant_model_close(&model);

    put_shard(disk, PART(2, 2), "b2", "{\"format\":\"np\",\"part\":\"2\"}");
    CHECK_OK(open_set(disk, INDEX, 0, &model), &err);
    CHECK_HAS(notes_of(model, "odd"), "2 metadata keys");
    CHECK_TEXT(openers_text(&model->openers), "safetensors; transformers: no metadata format = pt");
    decant_model_close(&model);

    put_shard(disk, PART(1, 2), "d4 a3", "{}"); /* there, and empty: stays so in a file that is made of it */
    put_shard(disk, PART(2, 2), "b2", NULL);
    CHECK_OK(open_set(disk, INDEX, 0, &model), &err);
    CHECK(model->extra && model->extra->ops == &dcn_st_empty_metadata);
    decant_model_close(&model);
    simdisk_free(&disk);
}

/* FR-01, FR-02: an index that was fetched, and pages and pointers in the place of its shards. */
TEST(shards__that_are_something_else_are_named_for_what_they_are__FR_01_FR_02)
{
    simdisk *disk = simdisk_new();
    size_t len;
    const uint8_t *whole;
    uint8_t part[512];

    put_set(disk);
    whole = simdisk_get(disk, PART(1, 2), &len);
    memcpy(part, whole, len);
    simdisk_put_text(disk, PART(2, 2), "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 4976698672\n");
    refused(disk, INDEX, DECANT_UNSUPPORTED, PART(2, 2), "", "Git-LFS pointer to a file of 4,976,698,672 bytes");
    simdisk_put_text(disk, PART(1, 2), "<!DOCTYPE html><html>");
    refused(disk, INDEX, DECANT_UNSUPPORTED, PART(1, 2), "", "an HTML page");
    simdisk_put_text(disk, PART(1, 2), "");
    refused(disk, INDEX, DECANT_TRUNCATED, PART(1, 2), "", "the file is empty");
    simdisk_put(disk, PART(1, 2), part, len - 1);
    refused(disk, INDEX, DECANT_TRUNCATED, PART(1, 2), "a", "this tensor ends at byte");
    simdisk_put_text(disk, PART(1, 2), "{\"weight_map\":{\"a\":\"" INDEX "\"}}");
    refused(disk, INDEX, DECANT_MALFORMED, PART(1, 2), "", "is an index itself");
    simdisk_put_text(disk, INDEX, "{\"weight_map\":{\"a\":\"" INDEX "\"}}");
    refused(disk, INDEX, DECANT_MALFORMED, INDEX, "", "is an index itself");
    simdisk_free(&disk);
}

TEST(shards__of_another_format_are_refused)
{
    simdisk *disk = simdisk_new();
    uint8_t *file;
    size_t len;

    put_set(disk);
    file = test_data("param-ids.bpk", &len);
    simdisk_put(disk, PART(2, 2), file, len);
    free(file);
    refused(disk, INDEX, DECANT_UNSUPPORTED, PART(2, 2), "", "holds burnpack");
    simdisk_free(&disk);
}

TEST(shards__index__is_strict_JSON)
{
    static const char *const bad[] = {
        "{\"weight_map\":{\"a\":1}}",
        "{\"weight_map\":{\"a\":null}}",
        "{\"weight_map\":[]}",
        "{\"weight_map\":{}}",
        "{\"metadata\":{},\"weight_map\":null}",
        "{\"weight_map\":{\"a\":\"x\"},}",
        "{\"weight_map\":{\"a\":\"x\"}} {}",
        "{\"weight_map\":{\"a\":\"x\"",
        "{\"weight_map\":{\"a\":\"\xff\"}}",
        "{\"weight_map\":{\"\xed\xa0\x80\":\"x\"}}",
        "{\"weight_map\":{\"a\":\"\\ud800\"}}",
        "{\"other\":{\"weight_map\":1}}",
        "{/**/\"weight_map\":{}}",
    };
    simdisk *disk = simdisk_new();

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        simdisk_put_text(disk, "i.json", bad[i]);
        refused(disk, "i.json", DECANT_MALFORMED, "i.json", "", "");
    }
    simdisk_free(&disk);
}

TEST(shards__index__of_great_depth_or_length_is_refused_before_it_costs_anything)
{
    enum { DEEP = 100000 };
    simdisk *disk = simdisk_new();
    dcn_limits limits = dcn_limits_of(false);
    char *deep = malloc(DEEP + 64);
    decant_model *model = NULL;
    size_t len;

    CHECK(deep);
    len = (size_t)sprintf(deep, "{\"weight_map\":{},\"x\":");
    memset(deep + len, '[', DEEP);
    simdisk_put(disk, "i.json", deep, len + DEEP);
    refused(disk, "i.json", DECANT_LIMIT, "i.json", "", "nested more than 127 deep");
    len = (size_t)sprintf(deep, "{\"metadata\":");
    memset(deep + len, '{', DEEP);
    simdisk_put(disk, "i.json", deep, len + DEEP);
    CHECK(open_set(disk, "i.json", 0, &model));
    free(deep);

    limits.index = 20;
    CHECK_FAILS(model_open(NULL, "{\"weight_map\":{\"a\":\"x\"}}", 24, &limits, 0, &model, &err), DECANT_LIMIT, &err);
    CHECK_HAS(err.message, "the length of the index");
    limits.index = 24;
    CHECK_FAILS(model_open(NULL, "{\"weight_map\":{\"a\":\"x\"}}", 24, &limits, 0, &model, &err), DECANT_UNSUPPORTED,
                &err);
    limits.tensors = 1;
    limits.index = 99;
    CHECK_FAILS(model_open(NULL, "{\"weight_map\":{\"a\":\"x\",\"b\":\"x\"}}", 32, &limits, 0, &model, &err),
                DECANT_LIMIT, &err);
    limits = dcn_limits_of(false);
    limits.shards = 1;
    CHECK_FAILS(model_open(NULL, "{\"weight_map\":{\"a\":\"x\",\"b\":\"y\"}}", 32, &limits, 0, &model, &err),
                DECANT_LIMIT, &err);
    CHECK_HAS(err.message, "the number of shards");
    simdisk_free(&disk);
}

TEST(shards__index__with_long_metadata_in_front_is_known)
{
    simdisk *disk = simdisk_new();
    decant_model *model = NULL;
    char *index = malloc(9000);

    CHECK(index);
    put_set(disk);
    sprintf(index,
            "\n {\n \"metadata\": {\"x\": \"%08000d\"}, \"weight_map\":{\"a\":\"" PART(1, 2) "\",\"b\":\"" PART(
                2, 2) "\",\"d\":\"" PART(1, 2) "\"}}",
            0);
    simdisk_put_text(disk, INDEX, index);
    CHECK_OK(open_set(disk, INDEX, 0, &model), &err);
    check_set(&model);
    free(index);
    simdisk_free(&disk);
}

TEST(shards__index__is_not_seen_in_a_file_whose_header_is_as_long_as_a_brace_says)
{
    static const char index[] = "{\"weight_map\":{\"weight_map\":\"x\"}}";
    simdisk *disk = simdisk_new();
    decant_model *model = NULL;
    char header[0x227b + 1]; /* so the file begins with {" and six NULs */
    uint8_t *file;
    size_t len;

    memset(header, ' ', sizeof header);
    header[sizeof header - 1] = '\0';
    memcpy(header, "{\"weight_map\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 62);
    file = st_file(header, 1, &len);
    CHECK_EQ(file[0], '{');
    simdisk_put(disk, "x", file, len);
    simdisk_put_text(disk, INDEX, index);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(open_set(disk, i ? INDEX : "x", 0, &model), &err);
        CHECK_TEXT(names_of(model), "weight_map");
        decant_model_close(&model);
    }
    free(file);
    simdisk_free(&disk);
}

TEST(shards__need_files_beside_the_index)
{
    decant_model *model = NULL;
    static const char index[] = "{\"weight_map\":{\"a\":\"x.safetensors\"}}";

    CHECK_FAILS(model_open(NULL, index, strlen(index), NULL, 0, &model, &err), DECANT_UNSUPPORTED, &err);
    CHECK_HAS(err.message, "'x.safetensors' beside it");
    CHECK_TEXT(err.hint, "open it by its path");
}

/* --- without an index --------------------------------------------------------------------------------------------- */

TEST(shards__are_one_model_by_their_names)
{
    simdisk *disk = simdisk_new();
    decant_model *model = NULL;

    put_parts(disk);
    CHECK_OK(open_set(disk, PART(1, 2), 0, &model), &err);
    CHECK_TEXT(decant_model_path(model), PART(1, 2));
    CHECK_TEXT(openers_text(&model->openers),
               "safetensors: no index file of the set; transformers: no index file of the set");
    check_set(&model);

    CHECK_OK(open_set(disk, PART(2, 2), 0, &model), &err); /* stands for itself */
    CHECK_TEXT(names_of(model), "b");
    decant_model_close(&model);
    put_shard(disk, PART(1, 1), "q1", NULL);
    CHECK_OK(open_set(disk, PART(1, 1), 0, &model), &err);
    CHECK_TEXT(names_of(model), "q");
    decant_model_close(&model);
    simdisk_free(&disk);
}

TEST(shards__may_be_numbered_without_zeros_in_front)
{
    simdisk *disk = simdisk_new();
    decant_model *model = NULL;
    char name[40], tensors[4] = "a1";

    for (int i = 1; i <= 10; i++, tensors[0]++) {
        snprintf(name, sizeof name, "m-%d-of-10.safetensors", i);
        put_shard(disk, name, tensors, NULL);
    }
    CHECK_OK(open_set(disk, "m-1-of-10.safetensors", 0, &model), &err);
    CHECK_TEXT(names_of(model), "a b c d e f g h i j");
    decant_model_close(&model);
    CHECK_OK(open_set(disk, ".", 0, &model), &err);
    CHECK_TEXT(names_of(model), "a b c d e f g h i j");
    decant_model_close(&model);
    simdisk_free(&disk);
}

TEST(shards__without_an_index_are_all_there_and_disjoint)
{
    simdisk *disk = simdisk_new();

    put_shard(disk, PART(1, 3), "a1", NULL);
    refused(disk, PART(1, 3), DECANT_NOT_FOUND, PART(2, 3), "", "2 of 3 shards missing");
    put_shard(disk, PART(3, 3), "c1", NULL);
    refused(disk, PART(1, 3), DECANT_NOT_FOUND, PART(2, 3), "", "the other 2 shards; fetch it");
    put_shard(disk, PART(2, 3), "a1", NULL);
    refused(disk, PART(1, 3), DECANT_DUPLICATE, PART(2, 3), "a", "and in '" PART(1, 3) "' too");
    put_shard(disk, "m-1-of-999999.safetensors", "a1", NULL);
    refused(disk, "m-1-of-999999.safetensors", DECANT_LIMIT, "m-1-of-999999.safetensors", "", "the number of shards");
    simdisk_free(&disk);
}

/* --- what it costs ------------------------------------------------------------------------------------------------ */

/* Bytes of 30 shards with so much data each that are read to open them, and to plan their save as one file. */
static uint64_t read_to_plan(size_t data)
{
    enum { SHARDS = 30 };
    simdisk *disk = simdisk_new();
    dcn_env env = {.io = &disk->io, .cut = dcn_cut_default};
    dcn_target target = {.kind = DCN_TO_FILE, .path = "out.safetensors"};
    decant_model *model = NULL;
    char index[8192] = "{\"weight_map\":{", name[64], header[128];
    uint64_t bytes;
    gates g;

    for (int i = 0; i < SHARDS; i++) {
        size_t len;
        uint8_t *file;

        sprintf(header, "{\"t%d\":{\"dtype\":\"U8\",\"shape\":[%zu],\"data_offsets\":[0,%zu]}}", i, data, data);
        sprintf(name, "model-%05d-of-%05d.safetensors", i + 1, SHARDS);
        file = st_file(header, data, &len);
        simdisk_put(disk, name, file, len);
        free(file);
        sprintf(index + strlen(index), "%s\"t%d\":\"%s\"", i ? "," : "", i, name);
    }
    strcat(index, "}}");
    simdisk_put_text(disk, INDEX, index);
    gates_up(&g, &disk->io);
    CHECK_OK(open_set(disk, INDEX, 0, &model), &err);
    CHECK_OK(dcn_save(&env, model, &target, NULL, true, NULL, &err), &err);
    CHECK_EQ(disk->open_files, SHARDS); /* each inode once; the index is behind us */
    CHECK(g.count[DCN_DO_READ] <= 3 * (SHARDS + 1));
    bytes = g.bytes[DCN_DO_READ];
    gates_down(&g);
    decant_model_close(&model);
    simdisk_free(&disk);
    return bytes;
}

TEST(shards__headers_alone_are_read_to_plan_however_much_data_there_is)
{
    uint64_t some = read_to_plan(10000), more = read_to_plan(99999);

    CHECK_EQ(some, more);
    CHECK(some < 31 * (DCN_HEAD + 256));
}

TEST(shards__survive_the_failure_of_any_call_and_any_allocation)
{
    static const char *const paths[] = {"i/" INDEX, "p/" PART(1, 2), "i/" PART(1, 2), "i", "p/"};
    simdisk *disk = simdisk_new();

    for (int i = 0; i < 2; i++) {
        put_shard(disk, i ? "p/" PART(1, 2) : "i/" PART(1, 2), "d4 a3", "{\"format\":\"pt\",\"x\":\"1\"}");
        put_shard(disk, i ? "p/" PART(2, 2) : "i/" PART(2, 2), "b2", "{\"format\":\"pt\",\"x\":\"2\"}");
        simdisk_put_text(disk, i ? "p/config.json" : "i/readme.md", "{}");
        simdisk_put_text(disk, i ? "p/model.bin" : "i/consolidated.safetensors", "{}");
    }
    simdisk_put_text(disk, "i/" INDEX,
                     "{\"weight_map\":{\"a\":\"" PART(1, 2) "\",\"b\":\"" PART(2, 2) "\",\"d\":\"" PART(1, 2) "\"}}");
    for (size_t i = 0; i < 2 * sizeof paths / sizeof *paths; i++) {
        bool fired = true, calls = i % 2;

        for (size_t n = 0; fired; n++) {
            decant_model *model = NULL;
            decant_status rc;
            gates g;

            gates_up(&g, &disk->io);
            if (calls)
                gates_fail(&g, (gates_fault){.nth = n, .status = DECANT_IO, .os_code = EIO});
            else
                test_alloc_fail(n);
            rc = open_set(disk, paths[i / 2], 0, &model);
            fired = calls ? g.fired : test_alloc_fired();
            test_alloc_disarm();
            gates_down(&g);
            if (rc || !fired || calls) /* only the words of an error that nobody sees can do without memory */
                CHECK_EQ(rc, !fired ? DECANT_OK : calls ? DECANT_IO : DECANT_NOMEM);
            CHECK_EQ(model != NULL, !rc);
            decant_model_close(&model);
            CHECK_EQ(disk->open_files + disk->open_dirs, 0);
        }
    }
    simdisk_free(&disk);
}

TEST(shards__that_are_odd_are_named_where_that_is_told)
{
    simdisk *disk = simdisk_new();
    decant_model *model = NULL;
    uint8_t longer[512] = {0};
    const uint8_t *whole;
    size_t len;

    put_set(disk);
    whole = simdisk_get(disk, PART(2, 2), &len);
    memcpy(longer, whole, len);
    simdisk_put(disk, PART(2, 2), longer, len + 2);
    CHECK_FAILS(open_set(disk, INDEX, 0, &model), DECANT_MALFORMED, &err);
    CHECK_TEXT(err.path, PART(2, 2));
    CHECK_OK(open_set(disk, INDEX, DECANT_LENIENT_AFTER_DATA, &model), &err);
    CHECK_TEXT(notes_of(model, "odd"), PART(2, 2) ": 2 bytes after the data");
    decant_model_close(&model);
    simdisk_free(&disk);
}

TEST(shards__that_change_after_they_were_opened_are_named)
{
    simdisk *disk = simdisk_new();
    dcn_env env = {.io = &disk->io, .cut = dcn_cut_default};
    dcn_target target = {.kind = DCN_TO_FILE, .path = "out.safetensors"};

    put_set(disk);
    for (int i = 0; i < 2; i++) {
        decant_model *model = NULL;

        CHECK_OK(open_set(disk, INDEX, 0, &model), &err);
        simdisk_touch(disk, i ? PART(2, 2) : PART(1, 2));
        CHECK_FAILS(dcn_save(&env, model, &target, NULL, false, NULL, &err), DECANT_CHANGED, &err);
        CHECK_TEXT(err.path, i ? PART(2, 2) : PART(1, 2));
        decant_model_close(&model);
    }
    simdisk_free(&disk);
}

TEST(shards__past_the_limit_of_open_files_say_both_numbers)
{
    simdisk *disk = simdisk_new();
    decant_model *model = NULL;
    gates g;

    put_set(disk);
    gates_up(&g, &disk->io);
    gates_fail(
        &g, (gates_fault){.one_verb = true, .verb = DCN_DO_OPEN, .nth = 2, .status = DECANT_LIMIT, .os_code = EMFILE});
    CHECK_FAILS(open_set(disk, INDEX, 0, &model), DECANT_LIMIT, &err);
    CHECK_TEXT(err.path, PART(2, 2));
    CHECK_TEXT(err.expected, "as many as there are shards, 2, and some more");
    gates_down(&g);
    simdisk_free(&disk);
}
