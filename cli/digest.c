#include "cli.h"
#include "manifest.h"
#include "out.h"
#include "progress.h"

#include <string.h>

/* One run: files digested one after the other, and what they are compared with. */
typedef struct digesting {
    cli *c;
    const char *path;
    cli_manifest manifest;      /* empty: nothing is compared */
    const cli_section *section; /* that speaks of the file; NULL: any may */
    size_t tensors, differences;
    bool by_bytes; /* a file was compared without its model's line, which has dtypes and shapes */
} digesting;

/* --- without a manifest ---------------------------------------------------------------------------------------------- */

static int show_line(void *ctx, const decant_tensor *tensor, const char *hex)
{
    const digesting *d = ctx;
    cli_json *j = &d->c->json;

    if (!d->c->args.json) {
        printf("sha256  %s  ", hex);
        cli_put_exact(stdout, d->path, strlen(d->path));
        fputc(':', stdout);
        cli_put_exact(stdout, tensor->name, tensor->name_len);
        fputc('\n', stdout);
        return 0;
    }
    cli_json_open(j, NULL, '{');
    cli_json_counted(j, "name", tensor->name, tensor->name_len);
    cli_json_text(j, "dtype", decant_dtype_name(tensor->dtype));
    cli_json_shape(j, "shape", tensor->shape, tensor->rank);
    cli_json_bytes(j, "bytes", tensor->len);
    cli_json_text(j, "sha256", hex);
    cli_json_close(j, '}');
    return 0;
}

static decant_status digest(cli *c, const char *path, const decant_model *model, decant_on_digest found, void *ctx,
                            char hex[DECANT_DIGEST], decant_error *err)
{
    cli_progress progress;
    decant_digest_options options = {.size = sizeof options, .progress = cli_progress_step, .progress_ctx = &progress};
    decant_status rc;

    cli_progress_start(&progress, path, c->args.quiet || c->args.json || found == show_line);
    rc = decant_digest(model, &options, found, ctx, hex, err);
    cli_progress_end(&progress);
    return rc;
}

static void show(cli *c, const char *path, const decant_model *model)
{
    digesting d = {.c = c, .path = path};
    char hex[DECANT_DIGEST];
    decant_error err = {0};
    decant_status rc;

    if (c->args.json) {
        cli_json_text(&c->json, "format", decant_model_format(model));
        cli_json_odd(&c->json, "odd", model);
        cli_json_open(&c->json, "tensors", '[');
    }
    rc = digest(c, path, model, show_line, &d, hex, &err);
    if (c->args.json)
        cli_json_close(&c->json, ']');
    if (rc) {
        (void)cli_fail(c, &err, DECANT_SIDE_INPUT, path);
        return;
    }
    if (c->args.json) {
        cli_json_text(&c->json, "model", hex);
        return;
    }
    printf("model  %s  ", hex);
    cli_put_exact(stdout, path, strlen(path));
    fputc('\n', stdout);
}

/* --- with one -------------------------------------------------------------------------------------------------------- */

static void differ(digesting *d, const char *kind, const char *name, size_t name_len, const char *found,
                   const char *expected)
{
    cli_json *j = &d->c->json;

    d->differences++;
    if (d->c->args.json) {
        cli_json_open(j, NULL, '{');
        cli_json_text(j, "kind", kind);
        cli_json_counted(j, "name", name, name_len);
        cli_json_text(j, "found", found);
        cli_json_text(j, "expected", expected);
        cli_json_close(j, '}');
        return;
    }
    printf("%-10s ", kind);
    cli_put_exact(stdout, name, name_len);
    if (found && expected)
        printf("   %s, expected %s", found, expected);
    fputc('\n', stdout);
}

/* Whether a line speaks of the file at hand: that of its section does, or where there is none, any. */
static bool concerns(const digesting *d, const cli_line *line)
{
    return !d->section || line->section == (size_t)(d->section - d->manifest.sections);
}

static int compare_tensor(void *ctx, const decant_tensor *tensor, const char *hex)
{
    digesting *d = ctx;
    size_t count;
    cli_line *line = cli_manifest_find(&d->manifest, tensor->name, tensor->name_len, &count), *other = NULL;
    bool same = false;

    for (size_t i = 0; i < count; i++)
        if (concerns(d, &line[i])) {
            other = &line[i];
            other->seen = true;
            same = same || strcmp(other->hex, hex) == 0;
        }
    d->tensors++;
    if (!other)
        differ(d, "not listed", tensor->name, tensor->name_len, hex, NULL);
    else if (!same)
        differ(d, "values", tensor->name, tensor->name_len, hex, other->hex);
    return 0;
}

/* What is listed of the files at hand and was in none of them; each is told once. */
static void find_missing(digesting *d)
{
    for (size_t i = 0; i < d->manifest.count; i++) {
        cli_line *line = &d->manifest.lines[i];

        if (line->wanted && !line->seen && concerns(d, line)) {
            line->seen = true;
            differ(d, "missing", line->name, line->name_len, NULL, line->hex);
        }
    }
}

static void compare_file(digesting *d, const decant_model *model)
{
    const cli_manifest *m = &d->manifest;
    const char *expected;
    char hex[DECANT_DIGEST];
    size_t before = d->differences;
    decant_error err = {0};

    d->section = cli_manifest_section(m, d->path);
    for (size_t i = 0; i < m->count; i++)
        m->lines[i].wanted |= concerns(d, &m->lines[i]);
    if (digest(d->c, d->path, model, compare_tensor, d, hex, &err)) {
        (void)cli_fail(d->c, &err, DECANT_SIDE_INPUT, d->path);
        return;
    }
    if (!d->section && (m->section_count > 1 || d->c->args.file_count > 1)) {
        d->by_bytes = true;
        return;
    }
    /* it differs if any tensor does, and is told where none of them was: by a dtype or a shape */
    find_missing(d);
    expected = d->section ? d->section->hex : m->sections[0].hex;
    if (strcmp(hex, expected) != 0 && d->differences == before)
        differ(d, "model", d->path, strlen(d->path), hex, expected);
}

static void compare(digesting *d)
{
    cli *c = d->c;

    for (size_t i = 0; i < c->args.file_count; i++) {
        decant_model *model = NULL;

        d->path = c->args.files[i];
        if (cli_open(c, d->path, &model) == CLI_DONE)
            compare_file(d, model);
        decant_model_close(&model);
    }
    d->section = NULL;
    if (c->exit == CLI_DONE)
        find_missing(d);
}

static int check(cli *c)
{
    digesting d = {.c = c};
    decant_error err = {0};
    char number[CLI_NUMBER];
    int status = CLI_DONE;

    if (!c->args.check[0])
        return cli_misuse(c, "name it with -c FILE", "the name of the manifest is empty");
    if (cli_manifest_read(&d.manifest, c->args.check, &err)) {
        status = cli_fail(c, &err, DECANT_SIDE_INPUT, c->args.check);
        goto done;
    }
    if (c->args.json)
        cli_json_open(&c->json, "differences", '[');
    compare(&d);
    if (c->args.json)
        cli_json_close(&c->json, ']');
    if (d.differences)
        status = CLI_NO;
    if (c->exit != CLI_DONE) /* a file was not compared */
        goto done;
    if (c->args.json) {
        cli_json_bool(&c->json, "same", d.differences == 0);
        cli_json_count(&c->json, "tensor_count", d.tensors);
    } else if (d.differences == 0) {
        printf("same: %s tensor%s as in ", cli_thousands(number, d.tensors), cli_plural(d.tensors));
        cli_put_text(stdout, c->args.check, strlen(c->args.check), SIZE_MAX);
        puts(d.by_bytes ? ", by their bytes: it lists several files, and dtypes and shapes of each alone" : "");
    }
done:
    cli_manifest_close(&d.manifest);
    return status;
}

static int run(cli *c)
{
    return c->args.check ? check(c) : cli_each_file(c, show);
}

const cli_command cli_digest = {
    .name = "digest",
    .usage = "FILE...",
    .summary = "checksums of the tensors and of the model; -c compares",
    .examples = "  decant digest model.safetensors > model.digest    # keep the proof\n"
                "  decant digest -c model.digest model.bpk           # exit status 0: the same tensors\n",
    .bit = CLI_DIGEST,
    .min_files = 1,
    .max_files = SIZE_MAX,
    .run = run,
};
