#include "cli.h"
#include "inputs.h"
#include "out.h"
#include "save.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* --- where it goes -------------------------------------------------------------------------------------------------- */

/* ".bpk, .safetensors" or "burnpack, safetensors": what this build writes. */
static void list_formats(char *out, size_t size, bool extensions)
{
    decant_format_info info = {.size = sizeof info};
    size_t used = 0;

    out[0] = '\0';
    for (size_t i = 0; decant_format(i, &info) && used < size; i++)
        if (info.writes)
            used += (size_t)snprintf(out + used, size - used, "%s%s%s", used ? ", " : "", extensions ? "." : "",
                                     extensions ? info.extension : info.name);
}

/* The format of OUT, by --to or by its extension. Gives the exit status. */
static int choose_format(cli *c, const char **format)
{
    const char *out = c->args.output, *to = c->args.to;
    decant_format_info info = {.size = sizeof info};
    char known[256], hint[300];
    size_t len = strlen(out);

    for (size_t i = 0; decant_format(i, &info); i++) {
        size_t ext = strlen(info.extension);
        bool by_name = to && strcmp(to, info.name) == 0;
        bool by_extension =
            !to && len > ext && out[len - ext - 1] == '.' && !strcasecmp(out + len - ext, info.extension);

        if (info.writes && (by_name || by_extension)) {
            *format = info.name;
            return CLI_DONE;
        }
    }
    list_formats(known, sizeof known, !to);
    if (to) {
        snprintf(hint, sizeof hint, "the formats are: %s", known);
        return cli_misuse(c, hint, "--to: no format is called '%s'", to);
    }
    snprintf(hint, sizeof hint, "choose one of %s, or --to FORMAT", known);
    return cli_misuse(c, hint, "%s: its extension names no format", out);
}

static bool is_stream(const cli *c)
{
    return c->args.output && strcmp(c->args.output, "-") == 0;
}

/* What is wrong with the place whatever is saved there is said before anything is read: a plan of nothing finds it. */
static int check_place(cli *c)
{
    decant_save_options options = DECANT_SAVE_OPTIONS_INIT;
    decant_model *nothing = NULL;
    decant_error err = {0};
    decant_status rc;

    if (is_stream(c))
        return CLI_DONE;
    options.format = "safetensors"; /* any does */
    options.replace = 1;            /* a file there is another matter */
    if ((rc = decant_model_create(&nothing, &err)) == DECANT_OK)
        rc = decant_plan(nothing, c->args.output, &options, NULL, &err);
    decant_model_close(&nothing);
    return rc ? cli_fail(c, &err, DECANT_SIDE_OUTPUT, c->args.output) : CLI_DONE;
}

enum { LEAST_ALIGN = 256, MOST_ALIGN = 1 << 30 }; /* what the library takes */

static int check_align(cli *c)
{
    uint64_t align = c->args.align;

    if (align && c->args.layout == DECANT_LAYOUT_CONGRUENT)
        return cli_misuse(c, "leave one of them out", "--align is for the aligned layout, not for the congruent one");
    if (align && (align < LEAST_ALIGN || align > MOST_ALIGN || align & (align - 1)))
        return cli_misuse(c, "give a power of two from 256 to 1GiB", "--align: %" PRIu64 " bytes are no alignment",
                          align);
    return CLI_DONE;
}

static int check_words(cli *c)
{
    bool writes = !c->args.dry_run && c->command != &cli_plan;
    int status = check_align(c);

    if (status)
        return status;
    if (c->args.file_count > 1 && !c->args.output)
        return cli_misuse(c, "name the output with -o OUT", "%zu inputs given, and no output", c->args.file_count);
    if (!c->args.output)
        return cli_misuse(c, "name it with -o OUT", "no output given");
    if (!c->args.output[0])
        return cli_misuse(c, "name it with -o OUT", "the name of the output is empty");
    if (!is_stream(c))
        return CLI_DONE;
    if (c->args.json)
        return cli_misuse(c, "leave --json out, or name a file", "standard output cannot hold a model and a document");
    if (c->args.consume)
        return cli_misuse(c, "name a file with -o OUT", "inputs are given up only for a file that is saved as a whole");
    if (c->args.prune)
        return cli_misuse(c, "leave --prune out", "standard output supersedes no file");
    if (!c->args.to)
        return cli_misuse(c, "say it with --to FORMAT", "standard output does not say which format is wanted");
    if (writes && !c->args.force && isatty(STDOUT_FILENO))
        return cli_misuse(c, "send it to a file or a program, or --force", "standard output is a terminal");
    return CLI_DONE;
}

/* --- doing it ------------------------------------------------------------------------------------------------------- */

static decant_status save(const cli *c, void *ctx, const decant_save_options *options, bool plan_only,
                          decant_report **report, decant_error *err)
{
    const decant_model *model = cli_inputs_model(ctx);
    const decant_stream out = {sizeof out, cli_write_out, NULL};

    if (is_stream(c) && !plan_only)
        return decant_save_stream(model, &out, options, report, err);
    return (plan_only ? decant_plan : decant_save)(model, is_stream(c) ? NULL : c->args.output, options, report, err);
}

static int run(cli *c)
{
    bool plan_only = c->args.dry_run || c->command == &cli_plan;
    const char *format = NULL;
    cli_inputs in = {0};
    cli_saving saving = {.run = save, .in = &in, .ctx = &in};
    int status;

    if ((status = check_words(c)) || (status = check_place(c)) || (status = choose_format(c, &format)) ||
        (status = cli_inputs_open(c, c->args.file_count, &in)))
        return status;
    for (size_t i = 0; i < in.count && status == CLI_DONE && is_stream(c) && !plan_only; i++)
        status = cli_check_stdout(c, in.items[i].model);
    if (status == CLI_DONE)
        status = cli_save(c, &saving, format, plan_only);
    cli_inputs_close(&in);
    return status;
}

const cli_command cli_convert = {
    .name = "convert",
    .usage = "IN... -o OUT",
    .summary = "model files in, one of any format out: convert, merge, cast, rename",
    .examples = "  decant convert model.safetensors -o model.bpk\n"
                "  decant convert model.bpk -o model --to safetensors\n"
                "  decant convert --dtype bf16 model.safetensors -o half.safetensors\n"
                "  decant convert --prefix text. a.bpk --prefix image. b.bpk -o both.bpk\n"
                "  decant convert model.safetensors -o model.bpk -f    # replaces model.bpk\n"
                "  decant convert shards/ -o model.safetensors --consume    # like mv: the shards are gone\n",
    .bit = CLI_CONVERT,
    .min_files = 1,
    .max_files = SIZE_MAX,
    .run = run,
};

const cli_command cli_plan = {
    .name = "plan",
    .usage = "IN... -o OUT",
    .summary = "exactly what convert would do; writes nothing",
    .examples = "  decant plan model.safetensors -o model.bpk\n"
                "  decant plan --rename 's/^model\\.//' model.safetensors -o model.bpk\n"
                "  decant plan shards/ -o model.safetensors --consume\n"
                "  decant plan --json model.safetensors -o model.bpk\n",
    .bit = CLI_PLAN,
    .min_files = 1,
    .max_files = SIZE_MAX,
    .run = run,
};
