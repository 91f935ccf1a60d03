#include "cli.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A file, whatever its names are. */
typedef struct identity {
    dev_t dev;
    ino_t ino;
} identity;

/* What a word of the line stands for. */
typedef struct standing {
    identity *files; /* that are counted with it */
    size_t count;
} standing;

static bool identify(const char *path, identity *out)
{
    struct stat status;

    if (!path || stat(path, &status))
        return false;
    *out = (identity){status.st_dev, status.st_ino};
    return true;
}

static bool is_in(const standing *s, const identity *file)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->files[i].dev == file->dev && s->files[i].ino == file->ino)
            return true;
    return false;
}

/* Whether it may stand for more than the file that it names: a folder, an index, a first part. */
static bool may_stand(const char *path)
{
    size_t len = strlen(path);
    struct stat status;

    return strstr(path, "-of-") || (len > 5 && strcmp(path + len - 5, ".json") == 0) ||
           (stat(path, &status) == 0 && S_ISDIR(status.st_mode));
}

/* The files that a word stands for; none if it is a file alone, or cannot be opened, which is said when its turn comes. */
static standing look_at(const cli *c, const char *path)
{
    decant_open_options options = {.size = sizeof options, .allow = c->args.allow};
    standing s = {0};
    decant_model *model = NULL;
    const char *file = NULL;
    size_t count = 0;

    options.lenient = c->args.lenient ? DECANT_LENIENT_ALL : 0;
    if (!may_stand(path) || decant_open(path, &options, &model, NULL))
        return s;
    while (decant_model_file(model, count, NULL, NULL))
        count++;
    if ((s.files = malloc((count + 1) * sizeof *s.files))) {
        s.count += identify(decant_model_path(model), &s.files[0]);
        for (size_t i = 0; decant_model_file(model, i, &file, NULL); i++)
            s.count += identify(file, &s.files[s.count]);
    }
    decant_model_close(&model);
    return s;
}

size_t cli_shards(const decant_model *model)
{
    const char *first = NULL;
    size_t count = 0;

    while (decant_model_file(model, count, count ? NULL : &first, NULL))
        count++;
    return count > 1 || (first && strcmp(first, decant_model_path(model)) != 0) ? count : 0;
}

void cli_count_once(cli *c)
{
    char **files = c->args.files;
    size_t kept = 0;

    if (c->args.file_count < 2)
        return;
    for (size_t i = 0; i < c->args.file_count; i++) {
        standing s = files[i] ? look_at(c, files[i]) : (standing){0};

        for (size_t k = 0; k < c->args.file_count && s.count; k++) {
            identity file;

            if (k != i && files[k] &&
                ((identify(files[k], &file) && is_in(&s, &file)) || strcmp(files[k], files[i]) == 0))
                files[k] = NULL;
        }
        free(s.files);
    }
    for (size_t i = 0; i < c->args.file_count; i++)
        if (files[i])
            files[kept++] = files[i];
    c->args.file_count = kept;
}
