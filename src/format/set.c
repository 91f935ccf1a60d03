#include "format/set.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/sort.h"
#include "base/text.h"
#include "bytes/moving.h"
#include "format/format.h"
#include "format/limit.h"
#include "format/split.h"

enum { SHOWN = 3 }; /* names of a kind that people are told; of more, one less and their number */

/* The least names of so many. */
typedef struct sample {
    const char *names[SHOWN]; /* sorted; in the memory of the folder */
    size_t count;             /* in all */
} sample;

struct dcn_beside {
    dcn_arena memory;
    const char **models; /* files of formats that are read, by their names; sorted */
    size_t model_count, model_cap;
    sample indexes, foreign, others; /* indexes of such; models of other formats; everything else */
    const dcn_limits *limits;        /* while the folder is listed, as what follows */
    decant_status status;
    decant_error *err;
};

/* --- names ------------------------------------------------------------------------------------------------------- */

static bool ends_in(const char *name, size_t len, const char *end)
{
    size_t end_len = strlen(end);

    return len > end_len && memcmp(name + len - end_len, end, end_len) == 0;
}

/* "model.safetensors.index.json", "model.safetensors.index.fp16.json": an index, by the name, of a format that is read. */
static bool is_index(const char *name)
{
    static const char index[] = ".index.";
    const char *at = strstr(name, index);
    char model[256];

    if (!at || !ends_in(name, strlen(name), ".json") || (size_t)(at - name) >= sizeof model)
        return false;
    snprintf(model, sizeof model, "%.*s", (int)(at - name), name);
    return dcn_format_for_path(model) != NULL;
}

/* Models, by their names, that are not read: what a folder holds as well, in other forms. */
static bool is_foreign(const char *name)
{
    static const char *const ends[] = {".bin", ".pt",  ".pth", ".ckpt", ".gguf",   ".onnx",
                                       ".h5",  ".npz", ".pte", ".ptd",  ".msgpack"};

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (ends_in(name, strlen(name), ends[i]))
            return true;
    return strstr(name, ".bin.index.") != NULL;
}

/* --- what lies in a folder ---------------------------------------------------------------------------------------- */

static bool add_sample(struct dcn_beside *b, sample *s, const char *name)
{
    size_t shown = s->count < SHOWN ? s->count : SHOWN, at = shown;
    const char *own;

    s->count++;
    while (at > 0 && strcmp(s->names[at - 1], name) > 0)
        at--;
    if (at == SHOWN)
        return true;
    if (!(own = dcn_arena_copy(&b->memory, name, strlen(name) + 1)))
        return false;
    for (size_t i = shown < SHOWN ? shown : SHOWN - 1; i > at; i--)
        s->names[i] = s->names[i - 1];
    s->names[at] = own;
    return true;
}

static bool add_model(struct dcn_beside *b, const char *name)
{
    const char *own = dcn_arena_copy(&b->memory, name, strlen(name) + 1);
    const char **models = dcn_grown(b->models, b->model_count, &b->model_cap, sizeof *models);

    if (models)
        b->models = models;
    if (!own || !models)
        return false;
    models[b->model_count++] = own;
    return true;
}

/* What a model is called that is being given up: it is missed, not left out. */
static const char *name_of_moving(const char *name, char own[DCN_NAME_MOST + 1])
{
    size_t len = dcn_moving_base(name);

    if (!len || len > DCN_NAME_MOST)
        return name;
    memcpy(own, name, len);
    own[len] = '\0';
    return dcn_format_for_path(own) ? own : name;
}

/* Hidden files are nobody's model: folders that are copied between systems are full of them. */
static int see_name(void *ctx, const char *name)
{
    struct dcn_beside *b = ctx;
    char own[DCN_NAME_MOST + 1];
    bool fits;

    if (name[0] == '.')
        return 0;
    name = name_of_moving(name, own);
    if (b->model_count == b->limits->shards && dcn_format_for_path(name)) {
        b->status = dcn_past_limit("the number of models in the folder", (uint64_t)b->model_count + 1,
                                   b->limits->shards, b->err);
        return 1;
    }
    fits = is_index(name)              ? add_sample(b, &b->indexes, name)
           : dcn_format_for_path(name) ? add_model(b, name)
                                       : add_sample(b, is_foreign(name) ? &b->foreign : &b->others, name);
    if (!fits)
        b->status = dcn_error_nomem(b->err);
    return !fits;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static decant_status list_folder(dcn_dir *dir, const dcn_limits *limits, struct dcn_beside **out, decant_error *err)
{
    struct dcn_beside *b = dcn_alloc(1, sizeof *b);
    decant_status rc;

    if (!b)
        return dcn_error_nomem(err);
    b->limits = limits;
    b->err = err;
    if ((rc = dcn_dir_list(dir, see_name, b, err)) || (rc = b->status)) {
        dcn_beside_close(&b);
        return rc;
    }
    dcn_sort(b->models, b->model_count, sizeof *b->models, by_name);
    *out = b;
    return DECANT_OK;
}

void dcn_beside_close(struct dcn_beside **beside)
{
    if (*beside) {
        dcn_arena_close(&(*beside)->memory);
        dcn_free(&(*beside)->models);
    }
    dcn_free(beside);
}

/* "a, b and 3 more" */
static const char *sample_text(const sample *s, char *out, size_t size)
{
    size_t shown = s->count <= SHOWN ? s->count : SHOWN - 1, used = 0;

    out[0] = '\0';
    for (size_t i = 0; i < shown && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%s", i ? ", " : "", s->names[i]);
    if (shown < s->count && used < size)
        snprintf(out + used, size - used, " and %zu more", s->count - shown);
    return out;
}

/* --- choosing ----------------------------------------------------------------------------------------------------- */

static bool same_set(const char *a, const char *b)
{
    dcn_split x, y;

    if (strcmp(a, b) == 0) /* one that is given up, and another that has its name since */
        return true;
    return dcn_split_parse(a, &x) && dcn_split_parse(b, &y) && x.count > 1 && x.stem_len == y.stem_len &&
           x.count == y.count && memcmp(a, b, x.stem_len) == 0 && strcmp(a + x.tail_at, b + y.tail_at) == 0;
}

static decant_status refuse_folder(const struct dcn_beside *b, const sample *several, const char *what,
                                   decant_error *err)
{
    char names[sizeof err->found];

    if (several->count) {
        decant_error_set(err, DECANT_UNSUPPORTED, "a folder with several %s, of which none is said to be meant", what);
        dcn_error_found(err, "%s", sample_text(several, names, sizeof names));
        dcn_error_hint(err, "name one of them");
        return DECANT_UNSUPPORTED;
    }
    decant_error_set(err, DECANT_UNSUPPORTED, "a folder without a model that is read here");
    if (b->foreign.count)
        dcn_error_found(err, "%s", sample_text(&b->foreign, names, sizeof names));
    dcn_error_hint(err, "name the file that holds the tensors");
    return DECANT_UNSUPPORTED;
}

/* The file of a folder that stands for the model in it. @param name  of 256 bytes */
static decant_status choose(struct dcn_beside *b, char *name, decant_error *err)
{
    sample models = {{0}, 0};
    dcn_split split;

    if (b->indexes.count == 1) {
        snprintf(name, 256, "%s", b->indexes.names[0]);
        return DECANT_OK;
    }
    if (b->indexes.count > 1)
        return refuse_folder(b, &b->indexes, "indexes", err);
    for (size_t i = 0; i < b->model_count; i++) /* sorted: parts of a set stand together */
        if ((i == 0 || !same_set(b->models[i - 1], b->models[i])) && models.count++ < SHOWN)
            models.names[models.count - 1] = b->models[i];
    if (models.count != 1)
        return refuse_folder(b, &models, "models", err);
    snprintf(name, 256, "%s", b->models[0]);
    if (dcn_split_parse(b->models[0], &split) && split.count > 1)
        dcn_split_name(name, 256, b->models[0], &split, 1);
    return DECANT_OK;
}

static decant_status open_folder(dcn_dir **dir, const dcn_limits *limits, dcn_input **out, decant_error *err)
{
    struct dcn_beside *beside = NULL;
    char name[256];
    decant_status rc;

    if ((rc = list_folder(*dir, limits, &beside, err)) || (rc = choose(beside, name, err)))
        goto done;
    rc = dcn_input_open(dir, name, NULL, out, err);
    if (rc == DECANT_NOT_FOUND)
        dcn_error_hint(err, "fetch it, or name the file that holds the tensors");
    if (rc == DECANT_OK) {
        (*out)->beside = beside;
        beside = NULL;
    }
done:
    if (rc && *dir)
        dcn_error_path(err, (*dir)->path);
    dcn_beside_close(&beside);
    return rc;
}

/*
 * What the index of a first part may be called: "model.safetensors.index.json", and with the variant, wherever it stands in
 * the names of the parts ("model.fp16-00001-of-…", "model-00001-of-00002.fp16…"), "model.safetensors.index.fp16.json".
 */
static bool index_name(char *out, size_t size, const char *part, const dcn_split *split, int way)
{
    const char *rest = part + split->rest_at, *extension = strrchr(rest, '.');
    size_t stem_len = split->stem_len;
    int variant_len;
    const char *variant = rest;

    if (!extension)
        return false;
    variant_len = (int)(extension - rest);
    if (way) { /* the variant is the end of the stem */
        while (stem_len > 0 && part[stem_len - 1] != '.')
            stem_len--;
        if (variant_len || stem_len < 2)
            return false;
        stem_len--;
        variant = part + stem_len;
        variant_len = (int)(split->stem_len - stem_len);
    }
    return (size_t)snprintf(out, size, "%.*s%s.index%.*s.json", (int)stem_len, part, extension, variant_len, variant) <
           size;
}

/* Opens the index of which `name` is the first part, if there is one; *out stays NULL otherwise. */
static decant_status open_index(dcn_dir **dir, const char *name, dcn_input **out, decant_error *err)
{
    dcn_split split;
    dcn_facts facts;
    char index[256];
    decant_status rc;

    if (!dcn_split_parse(name, &split) || split.number != 1 || split.count < 2 || !dcn_format_for_path(name))
        return DECANT_OK;
    for (int way = 0; way < 2; way++) {
        if (!index_name(index, sizeof index, name, &split, way))
            continue;
        rc = dcn_dir_stat(*dir, index, &facts, err);
        if (rc == DECANT_OK && (facts.kind == DCN_KIND_REGULAR || facts.kind == DCN_KIND_LINK))
            return dcn_input_open(dir, index, NULL, out, err);
        if (rc && rc != DECANT_NOT_FOUND)
            return rc;
    }
    return DECANT_OK;
}

static decant_status open_file(dcn_dir **dir, const char *name, const char *path, dcn_input **out, decant_error *err)
{
    decant_status rc = open_index(dir, name, out, err);

    if (rc)
        return rc;
    if (!*out)
        return dcn_input_open(dir, name, path, out, err);
    if (!((*out)->part = dcn_strndup(name, strlen(name)))) {
        dcn_input_close(out);
        return dcn_error_nomem(err);
    }
    return DECANT_OK;
}

/* Opens it if it is a folder, also by a link; *out stays NULL otherwise. What is not there or not permitted, opening says. */
static decant_status open_if_folder(dcn_dir *dir, const char *name, const char *path, dcn_dir **out, decant_error *err)
{
    dcn_facts facts;
    decant_status rc = dcn_dir_stat(dir, name, &facts, err);

    if (rc == DECANT_OK && (facts.kind == DCN_KIND_FOLDER || facts.kind == DCN_KIND_LINK))
        rc = dcn_io_open_dir(dir->io, path, out, err);
    return rc == DECANT_NOT_FOUND || rc == DECANT_DENIED ? DECANT_OK : rc;
}

decant_status dcn_set_open(dcn_io *io, const char *path, const dcn_limits *limits, dcn_input **out, decant_error *err)
{
    dcn_dir *dir = NULL, *folder = NULL;
    dcn_input *in = NULL;
    char *name = NULL;
    decant_status rc = dcn_io_split(io, path, &dir, &name, err);

    if (rc == DECANT_BAD_CALL && path[0]) { /* it ends in no name of a file */
        rc = dcn_io_open_dir(io, path, &folder, err);
        if (rc == DECANT_NOT_FOUND)
            rc = dcn_io_split(io, path, &dir, &name, err); /* says so again */
    } else if (rc == DECANT_OK)
        rc = open_if_folder(dir, name, path, &folder, err);
    if (rc)
        goto done;
    rc = folder ? open_folder(&folder, limits, &in, err) : open_file(&dir, name, path, &in, err);
    if (rc == DECANT_OK)
        *out = in;
done:
    dcn_free(&name);
    dcn_dir_close(&folder);
    dcn_dir_close(&dir);
    return rc;
}

/* --- what was passed over ----------------------------------------------------------------------------------------- */

static const char *base_of(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;

    return slash ? slash + 1 : path ? path : "";
}

static int by_text(const void *a, const void *b)
{
    return strcmp(base_of(((const dcn_model_file *)a)->path), *(const char *const *)b);
}

/* Models of the folder that are not in this one. Both are sorted. */
static sample passed_over(const struct dcn_beside *b, const decant_model *model)
{
    sample over = {{0}, 0};
    size_t at = 0;

    for (size_t i = 0; i < b->model_count; i++) {
        while (at < model->file_count && by_text(&model->files[at], &b->models[i]) < 0)
            at++;
        if (at < model->file_count && by_text(&model->files[at], &b->models[i]) == 0)
            continue;
        if (over.count++ < SHOWN)
            over.names[over.count - 1] = b->models[i];
    }
    return over;
}

static decant_status check_part(const dcn_input *in, const decant_model *model, decant_error *err)
{
    for (size_t i = 0; i < model->file_count; i++)
        if (strcmp(base_of(model->files[i].path), in->part) == 0)
            return DECANT_OK;
    decant_error_set(err, DECANT_MALFORMED, "is the index of '%s' by its name, and does not name it", in->part);
    dcn_error_hint(err, "name the index to open what it stands for, or move it away");
    return DECANT_MALFORMED;
}

decant_status dcn_set_note(const dcn_input *in, decant_model *model, decant_error *err)
{
    const struct dcn_beside *b = in->beside;
    char names[320];
    sample over;
    decant_status rc;

    if (in->part && (rc = check_part(in, model, err)))
        return rc;
    if (!b)
        return DECANT_OK;
    over = passed_over(b, model);
    if (over.count && (rc = dcn_model_note(model, "odd", err, "ignored, since it is not in the set: %s",
                                           sample_text(&over, names, sizeof names))))
        return rc;
    if (b->foreign.count && (rc = dcn_model_note(model, "odd", err, "ignored, since it is not read here: %s",
                                                 sample_text(&b->foreign, names, sizeof names))))
        return rc;
    return b->others.count ? dcn_model_note(model, "beside it", err, "%s: not weights",
                                            sample_text(&b->others, names, sizeof names))
                           : DECANT_OK;
}
