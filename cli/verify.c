#include "cli.h"
#include "out.h"
#include "progress.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Without -v no more than so many faults of a file are shown. */
enum { FAULTS_SHOWN = 20 };

/* One file being checked. */
typedef struct verifying {
    cli *c;
    const char *path;
    size_t faults;
    FILE *below; /* what stands below the answer, which comes last */
} verifying;

/* --- JSON ------------------------------------------------------------------------------------------------------------ */

static void put_json_values(cli_json *j, const decant_values *v)
{
    cli_json_counted(j, "name", v->tensor->name, v->tensor->name_len);
    cli_json_bytes(j, "of", v->total);
    cli_json_bytes(j, "nans", v->nans);
    cli_json_bytes(j, "infinities", v->infinities);
    cli_json_bytes(j, "first", v->first);
    cli_json_bytes(j, "neither", v->neither);
    cli_json_bytes(j, "zeros", v->zeros);
    cli_json_bytes(j, "zeros_begin", v->zeros_begin);
}

/* `fault` is the error of one; NULL: another finding. */
static void put_json_finding(cli_json *j, const decant_finding *finding, decant_error *fault)
{
    static const char *const kinds[] = {
        [DECANT_FAULT] = "fault", [DECANT_WARNING] = "warning", [DECANT_VALUES] = "values"};

    cli_json_open(j, NULL, '{');
    cli_json_text(j, "kind", kinds[finding->kind]);
    cli_json_text(j, "text", fault ? decant_error_text(fault) : finding->text);
    if (fault)
        cli_json_error(j, fault, finding->error->path);
    if (finding->values)
        put_json_values(j, finding->values);
    cli_json_close(j, '}');
}

/* --- for people ------------------------------------------------------------------------------------------------------ */

/* Begins the line of a tensor's values. */
static void put_name(FILE *out, const char *label, const decant_values *values)
{
    fprintf(out, "  %-8s ", label);
    cli_put_text(out, values->tensor->name, values->tensor->name_len, SIZE_MAX);
    fputs("   ", out);
}

static void put_values(FILE *out, const decant_values *values)
{
    char a[CLI_NUMBER], b[CLI_NUMBER], of[CLI_NUMBER];

    cli_thousands(of, values->total);
    if (values->nans || values->infinities) {
        put_name(out, "values", values);
        fprintf(out, "%s NaN, %s infinite of %s, first at ", cli_thousands(a, values->nans),
                cli_thousands(b, values->infinities), of);
        cli_put_place(out, values->tensor, values->first);
        fputc('\n', out);
    }
    if (values->neither) {
        put_name(out, "values", values);
        fprintf(out, "%s of %s neither 0 nor 1\n", cli_thousands(a, values->neither), of);
    }
    if (values->zeros && values->zeros == values->tensor->len) {
        put_name(out, "zeros", values);
        fprintf(out, "all %s byte%s\n", cli_thousands(a, values->zeros), cli_plural(values->zeros));
    } else if (values->zeros) {
        put_name(out, "zeros", values);
        fprintf(out, "%s bytes, from byte %s on\n", cli_thousands(a, values->zeros),
                cli_thousands(b, values->zeros_begin));
    }
}

static int on_finding(void *ctx, const decant_finding *finding)
{
    verifying *v = ctx;
    bool is_fault = finding->kind == DECANT_FAULT;
    decant_error fault = {0};
    char own[sizeof fault.path];

    if (is_fault) { /* the file stands in front already, unless it is another one of its set; what to do is always said */
        v->faults++;
        fault = *finding->error;
        cli_escape(own, sizeof own, v->path);
        if (strcmp(fault.path, own) == 0)
            fault.path[0] = '\0';
        if (!fault.hint[0])
            snprintf(fault.hint, sizeof fault.hint, "%s", cli_hint(fault.status, true));
    }
    if (v->c->args.json) {
        put_json_finding(&v->c->json, finding, is_fault ? &fault : NULL);
    } else if (is_fault && (v->faults <= FAULTS_SHOWN || v->c->args.verbose)) {
        cli_put_text(stdout, v->path, strlen(v->path), SIZE_MAX);
        printf(": %s\n", decant_error_text(&fault));
    } else if (finding->kind == DECANT_WARNING) {
        fprintf(v->below, "  odd      %s\n", finding->text);
    } else if (finding->kind == DECANT_VALUES) {
        put_values(v->below, finding->values);
    }
    return 0;
}

static void put_answer(const verifying *v, const decant_check_totals *totals, const char *below)
{
    char number[CLI_NUMBER];

    if (v->faults && (v->faults <= FAULTS_SHOWN || v->c->args.verbose))
        return;
    cli_put_text(stdout, v->path, strlen(v->path), SIZE_MAX);
    if (v->faults) {
        printf(": and %s more; -v shows all\n", cli_thousands(number, v->faults - FAULTS_SHOWN));
        return;
    }
    printf(": sound: %s tensor%s, %s agree", cli_thousands(number, totals->tensors), cli_plural(totals->tensors),
           totals->covered);
    if (v->c->args.deep)
        printf(", %s bytes of values read", cli_thousands(number, totals->bytes));
    printf("\n%s", below);
    if (totals->lacking)
        printf("  the data itself: %s; compare with digest\n", totals->lacking);
}

/* --- one file -------------------------------------------------------------------------------------------------------- */

static int check(verifying *v, decant_check_totals *totals)
{
    cli *c = v->c;
    cli_progress progress;
    decant_open_options how = {.size = sizeof how, .allow = c->args.allow};
    decant_check_options options = {.size = sizeof options, .open = &how, .deep = c->args.deep};
    decant_error err = {0};
    decant_status rc;

    how.lenient = c->args.lenient ? DECANT_LENIENT_ALL : 0;
    options.progress = cli_progress_step;
    options.progress_ctx = &progress;
    cli_progress_start(&progress, v->path, c->args.quiet || c->args.json);
    rc = decant_check(cli_input_path(v->path), &options, on_finding, v, totals, &err);
    cli_progress_end(&progress);
    return rc ? cli_fail(c, &err, DECANT_SIDE_INPUT, v->path) : CLI_DONE;
}

static int verify(cli *c, const char *path)
{
    verifying v = {.c = c, .path = path};
    decant_check_totals totals = {0};
    char *below = NULL;
    size_t len = 0;
    int status;

    if (!c->args.json && !(v.below = open_memstream(&below, &len)))
        return cli_fail_nomem(c);
    if (c->args.json)
        cli_json_open(&c->json, "findings", '[');
    status = check(&v, &totals);
    if (c->args.json)
        cli_json_close(&c->json, ']');
    if (v.below)
        fclose(v.below);
    if (status == CLI_DONE && c->args.json) {
        cli_json_text(&c->json, "format", totals.format);
        cli_json_bool(&c->json, "sound", totals.faults == 0);
        cli_json_count(&c->json, "tensor_count", totals.tensors);
        cli_json_text(&c->json, "covered", totals.covered);
        cli_json_text(&c->json, "lacking", totals.lacking);
        if (c->args.deep)
            cli_json_bytes(&c->json, "bytes", totals.bytes);
    } else if (status == CLI_DONE) {
        put_answer(&v, &totals, below);
    }
    free(below);
    return v.faults ? CLI_NO : status;
}

static int run(cli *c)
{
    int highest = CLI_DONE;

    if (c->args.json)
        cli_json_open(&c->json, "files", '[');
    cli_count_once(c);
    for (size_t i = 0; i < c->args.file_count; i++) {
        int status;

        cli_file_begin(c, c->args.files[i]);
        status = verify(c, c->args.files[i]);
        highest = status > highest ? status : highest;
        cli_file_end(c);
    }
    if (c->args.json)
        cli_json_close(&c->json, ']');
    return highest;
}

const cli_command cli_verify = {
    .name = "verify",
    .usage = "FILE...",
    .summary = "is it whole and well formed? Exit status 0: yes, 1: no",
    .examples = "  decant verify model.safetensors\n"
                "  decant verify --deep model.bpk        # reads all values too: NaN, infinity, runs of zeros\n",
    .bit = CLI_VERIFY,
    .min_files = 1,
    .max_files = SIZE_MAX,
    .run = run,
};
