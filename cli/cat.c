#include "cli.h"
#include "out.h"
#include "save.h"

#include <stdlib.h>
#include <string.h>

/* The files, opened, and joined. */
typedef struct parts {
    decant_bytes **items;
    size_t count;
    decant_bytes *joined;
} parts;

static void close_parts(parts *p)
{
    decant_bytes_unref(&p->joined);
    for (size_t i = 0; i < p->count; i++)
        decant_bytes_unref(&p->items[i]);
    free(p->items);
}

/* A failure is reported already; gives the exit status. */
static int open_parts(cli *c, parts *p)
{
    decant_error err = {0};

    if (!(p->items = calloc(c->args.file_count, sizeof *p->items)))
        return cli_fail_nomem(c);
    for (; p->count < c->args.file_count; p->count++) {
        const char *path = cli_input_path(c->args.files[p->count]);

        if (decant_bytes_file(path, 0, DECANT_TO_END, &p->items[p->count], &err))
            return cli_fail(c, &err, DECANT_SIDE_INPUT, path);
        if (c->args.consume && decant_bytes_own(p->items[p->count], &err)) {
            p->count++;
            return cli_fail(c, &err, DECANT_SIDE_INPUT, path);
        }
    }
    if (decant_bytes_join(p->items, p->count, &p->joined, &err))
        return cli_fail(c, &err, DECANT_SIDE_INPUT, NULL);
    return CLI_DONE;
}

static decant_status save(const cli *c, void *ctx, const decant_save_options *options, bool plan_only,
                          decant_report **report, decant_error *err)
{
    const decant_file file = {c->args.output, ((parts *)ctx)->joined};

    return (plan_only ? decant_plan_write : decant_write)(&file, 1, options, report, err);
}

static void show(const cli *c, void *ctx)
{
    const parts *p = ctx;
    char number[CLI_NUMBER];

    for (size_t i = 0; i < p->count; i++) {
        fputs(i ? "          " : "from      ", stdout);
        cli_put_text(stdout, c->args.files[i], strlen(c->args.files[i]), SIZE_MAX);
        printf("   %s bytes\n", cli_thousands(number, decant_bytes_len(p->items[i])));
    }
}

static int run(cli *c)
{
    parts p = {0};
    cli_saving saving = {.run = save, .show = show, .parts = c->args.file_count, .ctx = &p};
    int status;

    if (!c->args.output || !c->args.output[0])
        return cli_misuse(c, "name it with -o OUT", "no output given");
    if (strcmp(c->args.output, "-") == 0)
        return cli_misuse(c, "name a file with -o OUT", "to standard output cat(1) joins as well");
    if ((status = open_parts(c, &p)) == CLI_DONE)
        status = cli_save(c, &saving, NULL, c->args.dry_run);
    close_parts(&p);
    return status;
}

const cli_command cli_cat = {
    .name = "cat",
    .usage = "IN... -o OUT",
    .summary = "join files byte for byte: a download that came in parts",
    .examples = "  decant cat model.gguf.part1 model.gguf.part2 -o model.gguf\n"
                "  decant cat model.safetensors.* -o model.safetensors --verify\n"
                "  decant cat model.gguf.part* -o model.gguf --consume    # the parts are gone\n",
    .bit = CLI_CAT,
    .min_files = 1,
    .max_files = SIZE_MAX,
    .run = run,
};
