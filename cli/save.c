#include "save.h"

#include <string.h>
#include <sys/resource.h>

#include "out.h"
#include "progress.h"
#include "signals.h"

/* --- what is said --------------------------------------------------------------------------------------------------- */

/* The most memory this program held, in bytes. getrusage() would count what ran before exec. */
static uint64_t peak_memory(void)
{
    FILE *status = fopen("/proc/self/status", "r");
    struct rusage usage;
    unsigned long long kib = 0;
    char line[256];

    while (status && kib == 0 && fgets(line, sizeof line, status))
        if (sscanf(line, "VmHWM: %llu", &kib) != 1)
            kib = 0;
    if (status)
        fclose(status);
    if (kib == 0 && getrusage(RUSAGE_SELF, &usage) == 0)
        kib = (unsigned long long)usage.ru_maxrss;
    return (uint64_t)kib * 1024;
}

static void put_row(const char *label, const char *text)
{
    printf("%-9s %s\n", label, text);
}

/* What is written to, for people. */
static const char *name_of(const cli *c)
{
    return strcmp(c->args.output, "-") == 0 ? "standard output" : c->args.output;
}

/* What is written: the file, or the one that stands for the others. */
static void put_output(FILE *out, const cli *c, const decant_report *report)
{
    const char *path = name_of(c), *found;
    char number[CLI_NUMBER];
    uint64_t bytes;
    int published, durable;
    size_t count = 0;

    for (; decant_report_output(report, count, &found, &bytes, &published, &durable); count++)
        path = count ? found : path;
    cli_put_text(out, path, strlen(path), SIZE_MAX);
    if (count > 1)
        fprintf(out, " and %s more file%s", cli_thousands(number, count - 1), cli_plural(count - 1));
}

/* The files, where it is not one alone. */
static void show_outputs(FILE *out, const char *margin, const decant_report *report)
{
    const char *path;
    char number[CLI_NUMBER];
    uint64_t bytes;
    int published, durable;

    if (!decant_report_output(report, 1, &path, &bytes, &published, &durable))
        return;
    for (size_t i = 0; decant_report_output(report, i, &path, &bytes, &published, &durable); i++) {
        fputs(margin, out);
        cli_put_text(out, path, strlen(path), SIZE_MAX);
        fprintf(out, "   %s bytes\n", cli_thousands(number, bytes));
    }
}

/* Files of an earlier save to OUT, which a loader may take for it. */
static void show_superseded(FILE *out, const cli *c, const decant_report *report, const char *margin, bool planned)
{
    const char *path, *kept;
    int removed;

    for (size_t i = 0; decant_report_superseded(report, i, &path, &kept, &removed); i++) {
        fputs(margin, out);
        cli_put_text(out, path, strlen(path), SIZE_MAX);
        if (kept)
            fprintf(out, " is of an earlier save, and stays: %s\n", kept);
        else if (removed || (planned && c->args.prune))
            fprintf(out, " is of an earlier save, and %s removed\n", planned ? "will be" : "was");
        else
            fputs(" is of an earlier save, and may be loaded instead; --prune removes it\n", out);
    }
}

/* Of how many sources from `index` on the same can be said. */
static size_t count_alike(const decant_report *report, size_t index)
{
    const char *path, *route, *reason, *next_route, *next_reason;
    uint64_t bytes;
    size_t count = 1;

    decant_report_source(report, index, &path, &bytes, &route, &reason);
    while (!decant_report_shared(report, index) &&
           decant_report_source(report, index + count, &path, &bytes, &next_route, &next_reason) &&
           !decant_report_shared(report, index + count) && strcmp(route, next_route) == 0 &&
           strcmp(reason, next_reason) == 0 &&
           !decant_report_given(report, index) == !decant_report_given(report, index + count))
        count++;
    return count;
}

/* What is done with the inputs: those that are treated alike in one row. */
static void show_routes(const decant_report *report)
{
    const char *path, *route, *reason, *then;
    char line[256], number[CLI_NUMBER], other[CLI_NUMBER];
    uint64_t bytes;

    for (size_t i = 0, alike; decant_report_source(report, i, &path, &bytes, &route, &reason); i += alike) {
        uint64_t shared = decant_report_shared(report, i);

        alike = count_alike(report, i);
        then = decant_report_given(report, i) ? "gone" : "kept";
        if (shared)
            snprintf(line, sizeof line, "%s of %s share blocks, %s afterwards (expected%s%s)", cli_size(number, shared),
                     cli_size(other, bytes), then, *reason ? ": " : "", reason);
        else if (strcmp(route, "drain") == 0)
            snprintf(line, sizeof line, "%s moved (expected: %s), gone afterwards; about the time of a durable copy",
                     cli_thousands(number, alike), reason);
        else if (strcmp(route, "remove") == 0)
            snprintf(line, sizeof line, "%s gone afterwards (%s)", cli_thousands(number, alike), reason);
        else
            snprintf(line, sizeof line, "%s%scopied, %s afterwards (%s)", alike > 1 ? cli_thousands(number, alike) : "",
                     alike > 1 ? " " : "", then, reason);
        put_row(i ? "" : "inputs", line);
    }
}

/* Nothing where nobody is known to. */
static void show_readers(FILE *out, const char *label, const decant_report *report)
{
    const char *program, *why_not;
    size_t count = 0;

    for (; decant_report_reader(report, count, &program, &why_not); count++) {
        fputs(count ? "" : label, out);
        cli_put_reader(out, count, program, why_not);
    }
    if (count)
        fputc('\n', out);
}

/* What the other layouts would cost, and save. */
static void show_prices(const cli *c, const cli_saving *s, const decant_save_options *options)
{
    static const char *const names[] = {"canonical", "aligned", "congruent"};
    const char *label = "instead";

    for (int layout = DECANT_LAYOUT_CANONICAL; layout <= DECANT_LAYOUT_CONGRUENT; layout++) {
        decant_save_options other = *options;
        decant_report *report = NULL;
        char line[128], size[CLI_NUMBER], room[CLI_NUMBER];
        decant_error err;

        other.layout = (decant_layout)layout;
        other.align = 0;
        if (layout == (int)options->layout || s->run(c, s->ctx, &other, true, &report, &err))
            continue; /* what speaks against it is said when it is asked for */
        snprintf(line, sizeof line, "%s: %s bytes, %s of room", names[layout],
                 cli_thousands(size, decant_report_size(report)), cli_size(room, decant_report_room(report)));
        put_row(label, line);
        label = "";
        decant_report_close(&report);
    }
}

static void show_plan(const cli *c, const cli_saving *s, const decant_save_options *options,
                      const decant_report *report)
{
    const char *text;
    char number[CLI_NUMBER], other[CLI_NUMBER], line[128];
    int used;

    if (s->in)
        cli_inputs_show(c, s->in);
    else
        s->show(c, s->ctx);
    fputs("to        ", stdout);
    put_output(stdout, c, report);
    printf("   %s, %s bytes\n", decant_report_format(report), cli_thousands(number, decant_report_size(report)));
    show_outputs(stdout, "          ", report);
    if (s->in)
        cli_inputs_show_changes(stdout, "", c, s->in);

    show_routes(report);
    if (decant_report_unsure(report))
        put_row("in use", "not known: who else has the inputs open cannot be told here; let no program read them");
    if (strcmp(decant_report_layout(report), "canonical") != 0 && strcmp(decant_report_layout(report), "raw") != 0) {
        snprintf(line, sizeof line, "%s, %s of gaps", decant_report_layout(report),
                 cli_size(number, decant_report_padding(report)));
        put_row("layout", line);
    }
    used = snprintf(line, sizeof line, decant_report_free(report) ? "%s needed, %s free" : "%s needed",
                    cli_size(number, decant_report_room(report)), cli_size(other, decant_report_free(report)));
    if (c->args.consume)
        snprintf(line + used, sizeof line - (size_t)used, "          a copy would need %s",
                 cli_size(number, decant_report_size(report)));
    put_row("room", line);
    if (c->args.verbose && c->command->bit & (CLI_CONVERT | CLI_PLAN)) /* the others have one layout */
        show_prices(c, s, options);
    snprintf(line, sizeof line, "%.0f MiB", (double)decant_report_memory(report) / (1 << 20));
    put_row("memory", line);
    if (decant_report_undone(report)) {
        snprintf(line, sizeof line, "%zu interrupted save%s of it, first of all", decant_report_undone(report),
                 cli_plural(decant_report_undone(report)));
        put_row("undoes", line);
    }
    for (size_t i = 0; (text = decant_report_loss(report, i)); i++)
        put_row(i ? "" : "loses", text);
    if (!decant_report_loss(report, 0))
        put_row("loses", c->args.consume ? "nothing; can be undone until it is finished" : "nothing");
    for (size_t i = 0; (text = decant_report_gain(report, i)); i++)
        put_row(i ? "" : "gains", text);
    for (size_t i = 0; (text = decant_report_replaces(report, i)); i++)
        put_row(i ? "" : "replaces", text);
    show_superseded(stdout, c, report, "old       ", true);
    show_readers(stdout, "opens in  ", report);
    puts("nothing was written");
}

/* What became of the inputs that were given up. */
static void show_given(const decant_report *report)
{
    static const struct {
        const char *route, *done;
    } ways[] = {{"drain", "moved"}, {"clone", "shared"}, {"copy", "copied"}, {"remove", "not needed"}};
    const char *path, *route, *reason, *comma = "  inputs   ";
    char number[CLI_NUMBER];
    uint64_t bytes;

    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        size_t count = 0;

        for (size_t i = 0; decant_report_source(report, i, &path, &bytes, &route, &reason); i++)
            count += decant_report_given(report, i) && strcmp(route, ways[w].route) == 0;
        if (count) {
            fprintf(stderr, "%s%s %s", comma, cli_thousands(number, count), ways[w].done);
            comma = ", ";
        }
    }
    if (comma[0] == ',')
        fputs(", gone\n", stderr);
}

/* What was done, on standard error: it is no answer. */
static void show_saved(const cli *c, const cli_saving *s, const decant_report *report, double seconds)
{
    const char *path, *route, *reason, *text;
    char number[CLI_NUMBER], counted[CLI_NUMBER], took[CLI_NUMBER];
    uint64_t bytes, count = s->parts ? s->parts : decant_report_tensors(report);

    fputs("saved ", stderr);
    put_output(stderr, c, report);
    fprintf(stderr, ": %s %s%s, %s bytes in %s, %.0f MiB of memory\n", cli_thousands(counted, count),
            s->parts ? "file" : "tensor", cli_plural(count), cli_thousands(number, decant_report_size(report)),
            cli_duration(took, seconds), (double)peak_memory() / (1 << 20));
    if (decant_report_undone(report))
        fprintf(stderr, "  undone   %zu interrupted save%s\n", decant_report_undone(report),
                cli_plural(decant_report_undone(report)));
    for (size_t i = 0; (text = decant_report_loss(report, i)); i++)
        fprintf(stderr, "  lost     %s\n", text);
    for (size_t i = 0; (text = decant_report_gain(report, i)); i++)
        fprintf(stderr, "  gained   %s\n", text);
    for (size_t i = 0; (text = decant_report_replaces(report, i)); i++)
        fprintf(stderr, "  replaced %s\n", text);
    show_superseded(stderr, c, report, "  old      ", false);
    text = s->parts ? "" : decant_report_digest(report);
    if (decant_report_verified(report))
        fprintf(stderr, *text ? "  model    %s, read back and equal\n" : "%s  read back and equal\n", text);
    for (size_t i = 0; (text = decant_report_overflow(report, i)); i++)
        fprintf(stderr, "  overflow %s\n", text);
    if (!c->args.verbose)
        return;
    if (s->in)
        cli_inputs_show_changes(stderr, "  ", c, s->in);
    show_outputs(stderr, "  wrote    ", report);
    show_given(report);
    if (decant_report_unsure(report))
        fputs("  in use   not known: who else had the inputs open could not be told\n", stderr);
    for (size_t i = 0; decant_report_source(report, i, &path, &bytes, &route, &reason); i++) {
        uint64_t shared = decant_report_shared(report, i);

        fprintf(stderr, "  %-8s %s bytes of ", route, cli_thousands(number, shared ? shared : bytes));
        cli_put_text(stderr, path, strlen(path), SIZE_MAX);
        fprintf(stderr, *reason ? " (%s)\n" : "%s\n", reason);
    }
    show_readers(stderr, "  opens in ", report);
}

/* --- JSON ----------------------------------------------------------------------------------------------------------- */

static void put_json_readers(cli_json *j, const decant_report *report)
{
    const char *program, *why_not;

    cli_json_open(j, "opens_in", '[');
    for (size_t i = 0; decant_report_reader(report, i, &program, &why_not); i++)
        cli_json_reader(j, program, why_not);
    cli_json_close(j, ']');
}

static void put_json_texts(cli_json *j, const char *key, const decant_report *report,
                           const char *(*get)(const decant_report *report, size_t index))
{
    const char *text;

    cli_json_open(j, key, '[');
    for (size_t i = 0; (text = get(report, i)); i++)
        cli_json_text(j, NULL, text);
    cli_json_close(j, ']');
}

static void put_json_outputs(cli_json *j, const decant_report *report)
{
    const char *path;
    uint64_t bytes;
    int published, durable;

    cli_json_open(j, "outputs", '[');
    for (size_t i = 0; decant_report_output(report, i, &path, &bytes, &published, &durable); i++) {
        cli_json_open(j, NULL, '{');
        cli_json_text(j, "file", path);
        cli_json_bytes(j, "size", bytes);
        cli_json_bool(j, "published", published);
        cli_json_bool(j, "durable", durable);
        cli_json_close(j, '}');
    }
    cli_json_close(j, ']');
}

static void put_json_report(cli_json *j, const char *out, const decant_report *report)
{
    const char *path, *route, *reason;
    int removed;
    uint64_t bytes;

    cli_json_open(j, "inputs", '[');
    for (size_t i = 0; decant_report_source(report, i, &path, &bytes, &route, &reason); i++) {
        cli_json_open(j, NULL, '{');
        cli_json_text(j, "file", path);
        cli_json_bytes(j, "bytes", bytes);
        cli_json_bytes(j, "shared", decant_report_shared(report, i));
        cli_json_text(j, "route", route);
        cli_json_text(j, "reason", reason);
        cli_json_bool(j, "given", decant_report_given(report, i));
        cli_json_close(j, '}');
    }
    cli_json_close(j, ']');
    cli_json_open(j, "output", '{');
    cli_json_text(j, "file", out);
    cli_json_text(j, "format", decant_report_format(report));
    cli_json_bytes(j, "size", decant_report_size(report));
    cli_json_bytes(j, "data", decant_report_data(report));
    cli_json_text(j, "layout", decant_report_layout(report));
    cli_json_bytes(j, "padding", decant_report_padding(report));
    cli_json_count(j, "tensor_count", decant_report_tensors(report));
    cli_json_bool(j, "published", decant_report_published(report));
    cli_json_bool(j, "durable", decant_report_durable(report));
    cli_json_bool(j, "verified", decant_report_verified(report));
    cli_json_text(j, "model", decant_report_digest(report));
    cli_json_text(j, "survives", decant_report_survives(report));
    put_json_readers(j, report);
    cli_json_close(j, '}');
    put_json_outputs(j, report);
    put_json_texts(j, "loses", report, decant_report_loss);
    put_json_texts(j, "gains", report, decant_report_gain);
    put_json_texts(j, "replaces", report, decant_report_replaces);
    cli_json_open(j, "supersedes", '[');
    for (size_t i = 0; decant_report_superseded(report, i, &path, &reason, &removed); i++) {
        cli_json_open(j, NULL, '{');
        cli_json_text(j, "file", path);
        cli_json_bool(j, "removed", removed);
        cli_json_text(j, "why_kept", reason);
        cli_json_close(j, '}');
    }
    cli_json_close(j, ']');
    cli_json_count(j, "undone", decant_report_undone(report));
    cli_json_bool(j, "unsure", decant_report_unsure(report));
    put_json_texts(j, "overflow", report, decant_report_overflow);
    cli_json_bytes(j, "room", decant_report_room(report));
    cli_json_bytes(j, "taken", decant_report_taken(report));
    cli_json_bytes(j, "free", decant_report_free(report));
    cli_json_bytes(j, "memory", decant_report_memory(report));
}

/* --- doing it ------------------------------------------------------------------------------------------------------- */

int cli_save(cli *c, const cli_saving *s, const char *format, bool plan_only)
{
    decant_save_options options = DECANT_SAVE_OPTIONS_INIT;
    decant_report *report = NULL;
    decant_error err = {0};
    cli_progress progress;
    decant_status rc;
    double seconds;
    int status = CLI_DONE;

    if (s->in && c->args.json)
        cli_inputs_json_odd(c, s->in);
    cli_progress_start(&progress, name_of(c), c->args.quiet || c->args.json || plan_only);
    options.format = format;
    options.allow = c->args.allow;
    options.replace = c->args.force;
    options.verify = c->args.verify;
    options.layout = c->args.align ? DECANT_LAYOUT_ALIGNED : c->args.layout;
    options.align = c->args.align;
    options.max_shard = c->args.max_shard;
    options.prune = c->args.prune;
    options.consume = c->args.consume ? DECANT_CONSUME : DECANT_CONSUME_NEVER;
    options.progress = cli_progress_step;
    options.progress_ctx = &progress;

    cli_signals_hold(!plan_only);
    rc = s->run(c, s->ctx, &options, plan_only, &report, &err);
    cli_signals_hold(false);
    cli_progress_end(&progress);
    seconds = cli_clock() - progress.start;
    c->saved = rc == DECANT_OK && !plan_only && strcmp(c->args.output, "-") != 0;

    if (report && c->args.json) {
        if (s->in)
            cli_inputs_json(c, s->in);
        put_json_report(&c->json, c->args.output, report);
        if (!plan_only) {
            cli_json_real(&c->json, "seconds", seconds);
            cli_json_bytes(&c->json, "peak_memory", peak_memory());
        }
    } else if (report && plan_only) {
        show_plan(c, s, &options, report);
    } else if (report && !c->args.quiet) {
        show_saved(c, s, report, seconds);
    }
    if (rc == DECANT_CANCELLED)
        (void)decant_error_set(&err, rc, "stopped by a signal");
    else if (rc == DECANT_INTERRUPTED && cli_signals_caught())
        snprintf(err.message, sizeof err.message, "stopped by a signal while inputs were given up; nothing is lost");
    if (rc)
        status = cli_fail(c, &err, DECANT_SIDE_OUTPUT, name_of(c));
    decant_report_close(&report);
    return status;
}
