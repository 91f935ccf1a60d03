#include "cli.h"
#include "inputs.h"
#include "save.h"

#include <string.h>

static decant_status save(const cli *c, void *ctx, const decant_save_options *options, bool plan_only,
                          decant_report **report, decant_error *err)
{
    decant_save_options own = *options;

    own.layout = DECANT_LAYOUT_CONGRUENT; /* what stays where it was is shared with the old file, where that can be */
    return (plan_only ? decant_plan : decant_save)(cli_inputs_model(ctx), c->args.output, &own, report, err);
}

/* A set would become a file of another kind in its place. */
static int check_single(cli *c, const decant_model *model)
{
    decant_error err = {0};

    if (!decant_model_file(model, 1, NULL, NULL))
        return CLI_DONE;
    (void)decant_error_set(&err, DECANT_UNSUPPORTED, "is a set of several files, and one is edited at a time");
    snprintf(err.hint, sizeof err.hint,
             "convert it with the same flags, or name one of its files, other than the first, which stands for all");
    return cli_fail(c, &err, DECANT_SIDE_INPUT, c->args.files[0]);
}

static int run(cli *c)
{
    const cli_args *a = &c->args;
    bool replaces = !a->output; /* then the format stays; else the extension of OUT picks it */
    cli_inputs in = {0};
    cli_saving saving = {.run = save, .in = &in, .ctx = &in};
    int status;

    if (!(a->rename.count || a->set.count || a->unset.count || a->put.count || a->drop.count))
        return cli_misuse(c, "say it with --set, --unset, --rename, --put or --drop", "nothing to change");
    if (a->consume && !a->put.count)
        return cli_misuse(c, "put something in with --put NAME=FILE, or leave --consume out",
                          "--consume gives up the files that are put in, and there are none");
    if (a->output && !a->output[0])
        return cli_misuse(c, "name it with -o OUT", "the name of the output is empty");
    if (a->output && strcmp(a->output, "-") == 0)
        return cli_misuse(c, "name a file with -o OUT", "a file is edited into a file");
    if (strcmp(a->files[0], "-") == 0)
        return cli_misuse(c, "name the file", "standard input is no file that can be replaced");
    if (replaces) {
        c->args.output = a->files[0];
        c->args.force = true;
    }
    if ((status = cli_inputs_open(c, 1, &in)))
        return status;
    if ((status = check_single(c, in.items[0].model)) == CLI_DONE)
        status = cli_save(c, &saving, replaces ? decant_model_format(in.items[0].model) : NULL, a->dry_run);
    cli_inputs_close(&in);
    return status;
}

const cli_command cli_edit = {
    .name = "edit",
    .usage = "FILE",
    .summary = "metadata, names and single tensors of one file",
    .examples = "  decant edit model.safetensors --set format=pt\n"
                "  decant edit model.bpk --rename 's/^old\\./new./' -o renamed.bpk\n"
                "  decant edit model.safetensors --put lm_head.bias=bias.bin --drop unused\n",
    .bit = CLI_EDIT,
    .min_files = 1,
    .max_files = 1,
    .run = run,
};
