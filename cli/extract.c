#include "cli.h"
#include "inputs.h"
#include "out.h"
#include "progress.h"
#include "signals.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* A tensor on its way out. */
typedef struct item {
    size_t index; /* in the model */
    char *path;   /* with its folder */
} item;

typedef struct extracting {
    cli *c;
    decant_model *model;
    item *items; /* in the order in which they are written */
    size_t count;
    const char *folder; /* NULL: -o names the one file */
    bool to_stdout;     /* which is "-" */
    const char *format; /* NULL: by dtype */
} extracting;

/* --- which ----------------------------------------------------------------------------------------------------------- */

/* Those that are named, each once, or all. */
static int choose(extracting *e)
{
    const cli_args *args = &e->c->args;
    size_t total = decant_model_count(e->model), named = args->file_count - 1;
    bool *taken = calloc(total + 1, sizeof *taken);
    int status = CLI_DONE;

    e->items = calloc((named ? named : total) + 1, sizeof *e->items);
    if (!taken || !e->items) {
        free(taken);
        return cli_fail_nomem(e->c);
    }
    for (size_t i = 0; status == CLI_DONE && i < (named ? named : total); i++) {
        size_t index = i;

        if (named && (status = cli_find_tensor(e->c, e->model, args->files[1 + i], &index)))
            break;
        if (!taken[index])
            e->items[e->count++].index = index;
        taken[index] = true;
    }
    free(taken);
    return status;
}

/* --- where ----------------------------------------------------------------------------------------------------------- */

static bool is_folder(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static bool ends_in(const char *text, const char *end)
{
    size_t len = strlen(text), end_len = strlen(end);

    return len > end_len && strcasecmp(text + len - end_len, end) == 0;
}

/* What -o and --to say. */
static int choose_place(extracting *e)
{
    const cli_args *args = &e->c->args;
    const char *out = args->output;
    decant_error err = {0};

    e->format = args->to;
    if (e->format && strcmp(e->format, "npy") != 0 && strcmp(e->format, "raw") != 0)
        return cli_misuse(e->c, "the formats are: npy, raw", "--to: nothing is extracted as '%s'", e->format);
    e->folder = out ? out : ".";
    if (!out || is_folder(out))
        return CLI_DONE;
    if (!out[0])
        return cli_misuse(e->c, "name it with -o OUT", "the name of the output is empty");
    e->to_stdout = strcmp(out, "-") == 0;
    if (e->to_stdout && (args->file_count != 2 || args->json))
        return cli_misuse(e->c, "name a folder or a file with -o OUT",
                          "standard output takes one tensor, and no --json beside it");
    if (args->file_count != 2) {
        (void)decant_error_set(&err, DECANT_NOT_FOUND, "there is no such folder, and several files need one");
        snprintf(err.hint, sizeof err.hint, "make it first, or name one tensor");
        return cli_fail(e->c, &err, DECANT_SIDE_OUTPUT, out);
    }
    e->folder = NULL;
    if (!e->format && ends_in(out, ".npy"))
        e->format = "npy";
    if (!e->format && (ends_in(out, ".bin") || ends_in(out, ".raw")))
        e->format = "raw";
    return CLI_DONE;
}

static char *join(const char *folder, const char *name)
{
    size_t size = strlen(folder) + strlen(name) + 2;
    char *path = malloc(size);

    if (path && strcmp(folder, ".") == 0)
        snprintf(path, size, "%s", name);
    else if (path)
        snprintf(path, size, "%s%s%s", folder, folder[strlen(folder) - 1] == '/' ? "" : "/", name);
    return path;
}

static bool name_file(const extracting *e, item *it, bool distinct)
{
    char name[DECANT_FILE_NAME];

    free(it->path);
    if (!e->folder) {
        it->path = strdup(e->c->args.output);
    } else {
        decant_extract_name(e->model, it->index, e->format, distinct, name);
        it->path = join(e->folder, name);
    }
    return it->path != NULL;
}

static int by_name_without_case(const void *a, const void *b)
{
    const item *const *x = a, *const *y = b;
    int order = strcasecmp((*x)->path, (*y)->path);

    return order ? order : (*x)->index < (*y)->index ? -1 : 1;
}

static void tell_of_case(const extracting *e, const item *first, const item *other)
{
    if (e->c->args.quiet || e->c->args.json)
        return;
    fputs("decant: ", stderr);
    cli_put_text(stderr, first->path, strlen(first->path), SIZE_MAX);
    fputs(": odd: another name differs from it in case alone, and goes to ", stderr);
    cli_put_text(stderr, other->path, strlen(other->path), SIZE_MAX);
    fputc('\n', stderr);
}

/* On some file systems names that differ in case alone are one: all but the first become distinct. */
static bool part_cases(extracting *e)
{
    const item **sorted = calloc(e->count + 1, sizeof *sorted), *first = NULL;
    bool whole = sorted != NULL;

    for (size_t i = 0; whole && i < e->count; i++)
        sorted[i] = &e->items[i];
    if (whole)
        qsort(sorted, e->count, sizeof *sorted, by_name_without_case);
    for (size_t i = 0; whole && i < e->count; i++) {
        if (!first || strcasecmp(first->path, sorted[i]->path) != 0) {
            first = sorted[i];
            continue;
        }
        whole = name_file(e, &e->items[sorted[i] - e->items], true);
        if (whole)
            tell_of_case(e, first, sorted[i]);
    }
    free(sorted);
    return whole;
}

static int name_files(extracting *e)
{
    for (size_t i = 0; i < e->count; i++)
        if (!name_file(e, &e->items[i], false))
            return cli_fail_nomem(e->c);
    return part_cases(e) ? CLI_DONE : cli_fail_nomem(e->c);
}

/* --- doing it -------------------------------------------------------------------------------------------------------- */

static void show(const extracting *e, const item *it)
{
    cli_json *j = &e->c->json;
    decant_tensor tensor = DECANT_TENSOR_INIT;

    assert(it->path);
    decant_model_tensor(e->model, it->index, &tensor);
    if (e->c->args.json) {
        cli_json_open(j, NULL, '{');
        cli_json_text(j, "file", it->path);
        cli_json_counted(j, "name", tensor.name, tensor.name_len);
        cli_json_bytes(j, "bytes", tensor.len);
        cli_json_close(j, '}');
        return;
    }
    cli_put_text(stdout, it->path, strlen(it->path), SIZE_MAX);
    fputc('\t', stdout);
    cli_put_text(stdout, tensor.name, tensor.name_len, SIZE_MAX);
    fputc('\n', stdout);
}

static int extract(const extracting *e, const item *it, bool plan_only)
{
    cli *c = e->c;
    cli_progress progress;
    const decant_stream out = {sizeof out, cli_write_out, NULL};
    decant_extract_options options = {.size = sizeof options, .format = e->format, .plan_only = plan_only};
    decant_error err = {0};
    decant_status rc;

    options.replace = c->args.force;
    options.progress = cli_progress_step;
    options.progress_ctx = &progress;
    cli_progress_start(&progress, it->path, c->args.quiet || c->args.json || plan_only);
    rc = e->to_stdout ? decant_extract_stream(e->model, it->index, &out, &options, &err)
                      : decant_extract(e->model, it->index, it->path, &options, &err);
    cli_progress_end(&progress);
    if (rc == DECANT_CANCELLED)
        (void)decant_error_set(&err, rc, "stopped by a signal");
    return rc ? cli_fail(c, &err, DECANT_SIDE_OUTPUT, e->to_stdout ? "standard output" : it->path) : CLI_DONE;
}

/* All that can be refused is, before the first file is written. */
static int extract_all(extracting *e)
{
    int status = CLI_DONE;

    for (size_t i = 0; i < e->count && status == CLI_DONE; i++)
        status = extract(e, &e->items[i], true);
    if (e->c->args.json) {
        cli_json_odd(&e->c->json, "odd", e->model);
        cli_json_open(&e->c->json, "extracted", '[');
    }
    cli_signals_hold(!e->c->args.dry_run);
    for (size_t i = 0; i < e->count && status == CLI_DONE; i++) {
        if (!e->c->args.dry_run)
            status = extract(e, &e->items[i], false);
        if ((status == CLI_DONE || status == CLI_RESERVED) && !e->to_stdout)
            show(e, &e->items[i]);
    }
    cli_signals_hold(false);
    if (e->c->args.json)
        cli_json_close(&e->c->json, ']');
    return status;
}

static int run(cli *c)
{
    extracting e = {.c = c};
    int status;

    if ((status = choose_place(&e)) == CLI_DONE && (status = cli_open(c, c->args.files[0], &e.model)) == CLI_DONE &&
        (!e.to_stdout || c->args.dry_run || (status = cli_check_stdout(c, e.model)) == CLI_DONE) &&
        (status = choose(&e)) == CLI_DONE && (status = name_files(&e)) == CLI_DONE)
        status = extract_all(&e);
    for (size_t i = 0; i < e.count; i++)
        free(e.items[i].path);
    free(e.items);
    decant_model_close(&e.model);
    return status;
}

const cli_command cli_extract = {
    .name = "extract",
    .usage = "FILE NAME...",
    .summary = "tensors out, as .npy or raw bytes; all if none is named",
    .examples = "  decant extract model.safetensors lm_head.weight\n"
                "  decant extract model.safetensors lm_head.weight -o head.npy\n"
                "  decant extract model.safetensors lm_head.weight -o - --to raw | sha256sum\n"
                "  decant extract model.safetensors -o tensors --to raw    # all of them, into a folder\n",
    .bit = CLI_EXTRACT,
    .min_files = 1,
    .max_files = SIZE_MAX,
    .run = run,
};
