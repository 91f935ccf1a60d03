#include "cli.h"
#include "inputs.h"
#include "out.h"

#include <float.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *kind_name(decant_difference_kind kind)
{
    switch (kind) {
    case DECANT_ONLY_IN_A:
        return "only in a";
    case DECANT_ONLY_IN_B:
        return "only in b";
    case DECANT_DTYPE_DIFFERS:
        return "dtype";
    case DECANT_SHAPE_DIFFERS:
        return "shape";
    case DECANT_VALUES_DIFFER:
        return "values";
    case DECANT_METADATA_DIFFERS:
        return "metadata";
    }
    return "other";
}

static void put_values(const decant_difference *d)
{
    char differ[CLI_NUMBER], total[CLI_NUMBER];

    printf("%s of %s %sdiffer, first at ", cli_thousands(differ, d->elements), cli_thousands(total, d->total),
           d->in_bytes ? "bytes " : "");
    if (d->in_bytes)
        printf("%" PRIu64, d->first);
    else
        cli_put_place(stdout, d->a, d->first);
    printf(": %s, %s\n", d->a_text, d->b_text);
}

static void show_text(const decant_difference *d)
{
    const decant_tensor *only;

    printf("%-11s ", kind_name(d->kind));
    cli_put_text(stdout, d->name, d->name_len, SIZE_MAX);
    fputs("   ", stdout);
    switch (d->kind) {
    case DECANT_ONLY_IN_A:
    case DECANT_ONLY_IN_B:
        only = d->a ? d->a : d->b;
        printf("%s ", decant_dtype_name(only->dtype));
        cli_put_shape(stdout, only->shape, only->rank);
        fputc('\n', stdout);
        break;
    case DECANT_VALUES_DIFFER:
        put_values(d);
        break;
    default:
        printf("%s, %s\n", d->a_text, d->b_text);
    }
}

static void put_json_side(cli_json *j, const char *key, const decant_tensor *tensor)
{
    if (!tensor)
        return;
    cli_json_open(j, key, '{');
    cli_json_text(j, "dtype", decant_dtype_name(tensor->dtype));
    cli_json_shape(j, "shape", tensor->shape, tensor->rank);
    cli_json_bytes(j, "bytes", tensor->len);
    cli_json_close(j, '}');
}

static void show_json(cli_json *j, const decant_difference *d)
{
    cli_json_open(j, NULL, '{');
    cli_json_text(j, "kind", kind_name(d->kind));
    cli_json_counted(j, "name", d->name, d->name_len);
    put_json_side(j, "a", d->a);
    put_json_side(j, "b", d->b);
    if (d->kind == DECANT_VALUES_DIFFER) {
        cli_json_text(j, "unit", d->in_bytes ? "byte" : "element");
        cli_json_bytes(j, "differ", d->elements);
        cli_json_bytes(j, "of", d->total);
        cli_json_bytes(j, "first", d->first);
    }
    cli_json_text(j, "a_text", d->a_text);
    cli_json_text(j, "b_text", d->b_text);
    cli_json_close(j, '}');
}

static int on_difference(void *ctx, const decant_difference *difference)
{
    cli *c = ctx;

    if (c->args.json)
        show_json(&c->json, difference);
    else
        show_text(difference);
    return 0;
}

/* A tolerance as it was typed. Gives the exit status. */
static int take_tolerance(cli *c, const char *flag, const char *text, decant_diff_options *options, double *out)
{
    char *end;

    if (!text)
        return CLI_DONE;
    *out = strtod(text, &end);
    options->close = 1;
    if (end == text || *end || !(*out >= 0) || *out > DBL_MAX)
        return cli_misuse(c, "give a number such as 1e-5", "%s: '%s' is no tolerance", flag, text);
    return CLI_DONE;
}

static int compare(cli *c, const cli_inputs *a, const decant_model *b, const decant_diff_options *options)
{
    decant_diff_totals totals = {0};
    decant_error err = {0};
    char tensors[CLI_NUMBER], bytes[CLI_NUMBER];
    decant_status rc;

    if (c->args.json) {
        cli_json_odd(&c->json, "odd_a", a->items[0].model);
        cli_json_odd(&c->json, "odd_b", b);
        cli_json_open(&c->json, "differences", '[');
    }
    rc = decant_diff(cli_inputs_model(a), b, options, on_difference, c, &totals, &err);
    if (c->args.json)
        cli_json_close(&c->json, ']');
    if (rc)
        return cli_fail(c, &err, DECANT_SIDE_INPUT, NULL);
    if (c->args.json) {
        cli_json_bool(&c->json, "same", totals.differences == 0);
        cli_json_count(&c->json, "tensor_count", totals.tensors);
        cli_json_bytes(&c->json, "bytes", totals.bytes);
        cli_json_count(&c->json, "exact_count", totals.exact);
    } else if (totals.differences == 0) {
        printf("same: %s tensor%s, %s bytes, ", cli_thousands(tensors, totals.tensors), cli_plural(totals.tensors),
               cli_thousands(bytes, totals.bytes));
        if (options->close)
            printf("numbers within rtol %g and atol %g\n", options->rtol, options->atol);
        else
            puts("bit for bit");
    }
    if (!c->args.json && totals.exact)
        printf("  bit for bit all the same: %s tensor%s of whole numbers, booleans, packed or quantized values\n",
               cli_thousands(tensors, totals.exact), cli_plural(totals.exact));
    return totals.differences ? CLI_NO : CLI_DONE;
}

static int run(cli *c)
{
    decant_diff_options options = {.size = sizeof options};
    cli_inputs in = {0};
    decant_model *b = NULL;
    int status;

    if ((status = take_tolerance(c, "--rtol", c->args.rtol, &options, &options.rtol)) ||
        (status = take_tolerance(c, "--atol", c->args.atol, &options, &options.atol)))
        return status;
    if (c->args.prefixes && c->args.prefixes[1])
        return cli_misuse(c, "give it in front of A, which is what the flags change",
                          "--prefix %s: B is compared as it is", c->args.prefixes[1]);
    if ((status = cli_inputs_open(c, 1, &in)) == CLI_DONE && (status = cli_open(c, c->args.files[1], &b)) == CLI_DONE)
        status = compare(c, &in, b, &options);
    decant_model_close(&b);
    cli_inputs_close(&in);
    return status;
}

const cli_command cli_diff = {
    .name = "diff",
    .usage = "A B",
    .summary = "do two files hold the same weights? Exit status 0: yes, 1: no",
    .examples = "  decant diff model.safetensors model.bpk\n"
                "  decant diff -q a.bpk b.bpk && echo same\n"
                "  decant diff --rtol 1e-5 --atol 1e-8 a.bpk b.bpk    # as numpy.allclose\n"
                "  decant diff --dtype bf16 full.safetensors half.safetensors    # A converted with these flags\n",
    .bit = CLI_DIFF,
    .min_files = 2,
    .max_files = 2,
    .run = run,
};
