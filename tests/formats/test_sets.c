/* What a path stands for: files, folders, first parts. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/env.h"
#include "format/set.h"
#include "support/gates.h"
#include "support/models.h"
#include "support/safetensors.h"
#include "support/simdisk.h"

static decant_error err;

/* A file with one tensor, and an index that names files of such. */
static void put_file(simdisk *disk, const char *path, const char *tensor)
{
    char header[128];
    uint8_t *file;
    size_t len;

    snprintf(header, sizeof header, "{\"%s\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", tensor);
    file = st_file(header, 1, &len);
    simdisk_put(disk, path, file, len);
    free(file);
}

static void put_pair(simdisk *disk, const char *first, const char *second)
{
    put_file(disk, first, "a");
    put_file(disk, second, "b");
}

static void put_index(simdisk *disk, const char *path, const char *first, const char *second)
{
    char index[512];

    snprintf(index, sizeof index, "{\"weight_map\":{\"a\":\"%s\",\"b\":\"%s\"}}", first, second);
    simdisk_put_text(disk, path, index);
}

static decant_status open_path(simdisk *disk, const char *path, decant_model **out)
{
    dcn_env env = {.io = &disk->io, .cut = dcn_cut_default};
    decant_status rc = dcn_open(&env, path, NULL, out, &err);

    CHECK_EQ(disk->open_dirs, 0);
    CHECK(!rc || (disk->open_files == 0 && err.side == DECANT_SIDE_INPUT && err.path[0]));
    return rc;
}

/* Opens, and has this many tensors, from this file; what is odd and what is beside it, as told. */
static void opens(simdisk *disk, const char *path, size_t tensors, const char *file, const char *odd,
                  const char *beside)
{
    const char *key, *text, *said[2] = {"", ""};
    decant_model *model = NULL;

    CHECK_OK(open_path(disk, path, &model), &err);
    CHECK_EQ(decant_model_count(model), tensors);
    CHECK_TEXT(decant_model_path(model), file);
    for (size_t i = 0; decant_model_note(model, i, &key, &text) == DECANT_OK; i++)
        if (strcmp(key, "layout") != 0)
            said[strcmp(key, "odd") != 0] = text;
    CHECK_TEXT(said[0], odd);
    CHECK_TEXT(said[1], beside);
    decant_model_close(&model);
}

static void refused(simdisk *disk, const char *path, decant_status wanted, const char *words)
{
    decant_model *model = NULL;

    CHECK_FAILS(open_path(disk, path, &model), wanted, &err);
    CHECK_HAS(decant_error_text(&err), words);
    CHECK(err.hint[0]);
}

TEST(a_folder__stands_for_the_index_in_it)
{
    simdisk *disk = simdisk_new();

    put_pair(disk, "m/x-00001-of-00002.safetensors", "m/x-00002-of-00002.safetensors");
    put_index(disk, "m/x.safetensors.index.json", "x-00001-of-00002.safetensors", "x-00002-of-00002.safetensors");
    opens(disk, "m", 2, "m/x.safetensors.index.json", "", "");
    simdisk_put_text(disk, "m/config.json", "{}");
    simdisk_put_text(disk, "m/.gitattributes", "");
    opens(disk, "m", 2, "m/x.safetensors.index.json", "", "config.json: not weights");
    simdisk_put_text(disk, "m/tokenizer.json", "{}");
    simdisk_put_text(disk, "m/tokenizer_config.json", "{}");
    opens(disk, "m", 2, "m/x.safetensors.index.json", "",
          "config.json, tokenizer.json, tokenizer_config.json: not weights");
    simdisk_put_text(disk, "m/README.md", "");
    opens(disk, "m", 2, "m/x.safetensors.index.json", "", "README.md, config.json and 2 more: not weights");
    simdisk_free(&disk);
}

TEST(a_folder__stands_for_the_one_model_in_it)
{
    simdisk *disk = simdisk_new();
    uint8_t *file;
    size_t len;

    put_file(disk, "m/weights.safetensors", "a");
    simdisk_put_text(disk, "m/config.json", "{}");
    opens(disk, "m", 1, "m/weights.safetensors", "", "config.json: not weights");
    file = test_data("param-ids.bpk", &len);
    simdisk_put(disk, "b/model.bpk", file, len);
    free(file);
    opens(disk, "b", 13, "b/model.bpk", "", "");
    put_file(disk, "here.safetensors", "a");
    opens(disk, ".", 1, "here.safetensors", "", "");
    simdisk_free(&disk);
}

/* CV-01: the weights are there twice, in one file and in several, and in another container. */
TEST(a_folder__with_the_weights_twice_stands_for_the_index_and_tells_what_is_ignored__CV_01)
{
    simdisk *disk = simdisk_new();

    put_pair(disk, "m/model-00001-of-00002.safetensors", "m/model-00002-of-00002.safetensors");
    put_index(disk, "m/model.safetensors.index.json", "model-00001-of-00002.safetensors",
              "model-00002-of-00002.safetensors");
    put_file(disk, "m/consolidated.safetensors", "a");
    opens(disk, "m", 2, "m/model.safetensors.index.json",
          "ignored, since it is not in the set: consolidated.safetensors", "");
    opens(disk, "m/consolidated.safetensors", 1, "m/consolidated.safetensors", "", ""); /* naming a file chooses it */
    put_file(disk, "m/model.safetensors", "a");
    put_file(disk, "m/z.bpk", "a");
    put_file(disk, "m/model-00003-of-00003.safetensors", "a");
    opens(disk, "m", 2, "m/model.safetensors.index.json",
          "ignored, since it is not in the set: consolidated.safetensors, model-00003-of-00003.safetensors and 2 more",
          "");
    simdisk_free(&disk);
}

TEST(a_folder__with_a_model_in_other_containers_too_tells_of_them__CV_01)
{
    simdisk *disk = simdisk_new();

    put_file(disk, "m/model.safetensors", "a");
    simdisk_put_text(disk, "m/pytorch_model.bin", "PK\3\4");
    simdisk_put_text(disk, "m/pytorch_model.bin.index.json", "{}");
    opens(disk, "m", 1, "m/model.safetensors",
          "ignored, since it is not read here: pytorch_model.bin, pytorch_model.bin.index.json", "");
    simdisk_free(&disk);
}

/* FW-08: sets of several variants lie in one folder. */
TEST(a_folder__with_several_models_is_refused_naming_them__FW_08)
{
    simdisk *disk = simdisk_new();

    put_file(disk, "m/a.safetensors", "a");
    put_file(disk, "m/b.bpk", "a");
    refused(disk, "m", DECANT_UNSUPPORTED,
            "m: a folder with several models, of which none is said to be meant, found "
            "a.safetensors, b.bpk; name one of them");
    put_pair(disk, "s/model-00001-of-00002.safetensors", "s/model-00002-of-00002.safetensors");
    put_pair(disk, "s/model.ema-00001-of-00002.safetensors", "s/model.ema-00002-of-00002.safetensors");
    refused(disk, "s", DECANT_UNSUPPORTED,
            "found model-00001-of-00002.safetensors, model.ema-00001-of-00002.safetensors;");
    put_index(disk, "s/model.safetensors.index.ema.json", "model.ema-00001-of-00002.safetensors",
              "model.ema-00002-of-00002.safetensors");
    opens(disk, "s", 2, "s/model.safetensors.index.ema.json",
          "ignored, since it is not in the set: model-00001-of-00002.safetensors, model-00002-of-00002.safetensors",
          "");
    put_index(disk, "s/model.safetensors.index.json", "model-00001-of-00002.safetensors",
              "model-00002-of-00002.safetensors");
    refused(disk, "s", DECANT_UNSUPPORTED,
            "several indexes, of which none is said to be meant, found "
            "model.safetensors.index.ema.json, model.safetensors.index.json;");
    opens(disk, "s/model.safetensors.index.json", 2, "s/model.safetensors.index.json", "", "");
    simdisk_free(&disk);
}

TEST(a_folder__without_a_model_says_what_it_has)
{
    simdisk *disk = simdisk_new();

    simdisk_folder(disk, "empty");
    refused(disk, "empty", DECANT_UNSUPPORTED, "empty: a folder without a model that is read here; name the file");
    simdisk_put_text(disk, "t/pytorch_model.bin", "PK\3\4");
    simdisk_put_text(disk, "t/config.json", "{}");
    simdisk_put_text(disk, "t/.hidden.safetensors", "{}");
    refused(disk, "t", DECANT_UNSUPPORTED, "a folder without a model that is read here, found pytorch_model.bin;");
    simdisk_free(&disk);
}

TEST(a_folder__of_parts_without_an_index_stands_for_their_set)
{
    simdisk *disk = simdisk_new();

    put_pair(disk, "m/x-00001-of-00002.safetensors", "m/x-00002-of-00002.safetensors");
    opens(disk, "m", 2, "m/x-00001-of-00002.safetensors", "", "");
    put_file(disk, "m/x-00003-of-00002.safetensors", "c"); /* an extra one */
    opens(disk, "m", 2, "m/x-00001-of-00002.safetensors",
          "ignored, since it is not in the set: x-00003-of-00002.safetensors", "");
    put_file(disk, "n/x-00002-of-00002.safetensors", "c");
    refused(disk, "n", DECANT_NOT_FOUND, "n/x-00001-of-00002.safetensors: ");
    CHECK_HAS(err.hint, "fetch it");
    put_file(disk, "m/x-00001-of-00003.safetensors", "c"); /* of another set */
    refused(disk, "m", DECANT_UNSUPPORTED, "several models");
    simdisk_free(&disk);
}

TEST(a_folder__may_hold_thousands_of_files_and_one_is_opened)
{
    enum { MANY = 5000 };
    simdisk *disk = simdisk_new();
    char name[64];
    gates g;

    put_file(disk, "m/model.safetensors", "a");
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "m/%05d.json", MANY - i);
        simdisk_make(disk, name, i % 3 ? DCN_KIND_REGULAR : DCN_KIND_OTHER, NULL);
    }
    gates_up(&g, &disk->io);
    opens(disk, "m", 1, "m/model.safetensors", "", "00001.json, 00002.json and 4998 more: not weights");
    CHECK_EQ(g.count[DCN_DO_OPEN], 1);
    CHECK_EQ(g.count[DCN_DO_LIST], 1);
    CHECK(g.count[DCN_DO_STAT] < 4);
    gates_down(&g);
    simdisk_free(&disk);
}

TEST(a_folder__has_at_most_so_many_models_as_a_set_has_shards)
{
    simdisk *disk = simdisk_new();
    dcn_limits limits = dcn_limits_of(false);
    dcn_input *in = NULL;

    put_pair(disk, "m/x-1-of-2.safetensors", "m/x-2-of-2.safetensors");
    limits.shards = 1;
    CHECK_FAILS(dcn_set_open(&disk->io, "m", &limits, &in, &err), DECANT_LIMIT, &err);
    CHECK_HAS(err.message, "the number of models in the folder");
    limits.shards = 2;
    CHECK_OK(dcn_set_open(&disk->io, "m", &limits, &in, &err), &err);
    dcn_input_close(&in);
    simdisk_free(&disk);
}

TEST(a_folder__may_be_named_by_a_link_and_with_a_slash_and_holds_what_does_not_block)
{
    decant_model *model = NULL;
    char path[4][4096];
    uint8_t *file;
    size_t len;
    FILE *out;

    file = st_file("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, &len);
    snprintf(path[0], sizeof path[0], "%s/m", test_folder());
    CHECK_EQ(mkdir(path[0], 0777), 0);
    snprintf(path[1], sizeof path[1], "%s/m/model.safetensors", test_folder());
    out = fopen(path[1], "wb");
    CHECK(out && fwrite(file, 1, len, out) == len && fclose(out) == 0);
    free(file);
    snprintf(path[1], sizeof path[1], "%s/m/fifo", test_folder());
    CHECK_EQ(mkfifo(path[1], 0666), 0);
    snprintf(path[1], sizeof path[1], "%s/m/", test_folder());
    snprintf(path[2], sizeof path[2], "%s/link", test_folder());
    CHECK_EQ(symlink("m", path[2]), 0);
    snprintf(path[3], sizeof path[3], "%s/link/.", test_folder());
    for (int i = 0; i < 4; i++) {
        CHECK_OK(decant_open(path[i], NULL, &model, &err), &err);
        CHECK_HAS(decant_model_path(model), "model.safetensors");
        CHECK(strncmp(decant_model_path(model), path[i], strlen(path[i])) == 0);
        decant_model_close(&model);
    }
    snprintf(path[1], sizeof path[1], "%s/m/pipe.safetensors", test_folder());
    CHECK_EQ(mkfifo(path[1], 0666), 0);
    CHECK(decant_open(path[0], NULL, &model, &err)); /* which one is meant is not for it to say */
    CHECK(decant_open(path[1], NULL, &model, &err));
}

/* --- first parts --------------------------------------------------------------------------------------------------- */

TEST(a_first_part__stands_for_the_index_beside_it_whatever_the_variant)
{
    static const struct {
        const char *first, *second, *index;
    } sets[] = {
        {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "model.safetensors.index.json"},
        {"model.fp16-00001-of-00002.safetensors", "model.fp16-00002-of-00002.safetensors",
         "model.safetensors.index.fp16.json"},
        {"diffusion_pytorch_model-00001-of-00002.fp16.safetensors",
         "diffusion_pytorch_model-00002-of-00002.fp16.safetensors",
         "diffusion_pytorch_model.safetensors.index.fp16.json"},
        {"v1.2-00001-of-00002.safetensors", "v1.2-00002-of-00002.safetensors", "v1.2.safetensors.index.json"},
    };
    simdisk *disk = simdisk_new();

    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        put_pair(disk, sets[i].first, sets[i].second);
        opens(disk, sets[i].first, 2, sets[i].first, "", "");
        put_index(disk, sets[i].index, sets[i].first, sets[i].second);
        opens(disk, sets[i].first, 2, sets[i].index, "", "");
        opens(disk, sets[i].second, 1, sets[i].second, "", "");
    }
    simdisk_free(&disk);
}

TEST(a_first_part__that_its_index_does_not_name_is_refused)
{
    simdisk *disk = simdisk_new();

    put_pair(disk, "x", "y");
    put_file(disk, "model-00001-of-00002.safetensors", "a");
    put_index(disk, "model.safetensors.index.json", "x", "y");
    refused(
        disk, "model-00001-of-00002.safetensors", DECANT_MALFORMED,
        "model.safetensors.index.json: is the index of 'model-00001-of-00002.safetensors' by its name, and does not "
        "name it; name the index");
    opens(disk, "model.safetensors.index.json", 2, "model.safetensors.index.json", "", "");
    simdisk_free(&disk);
}
