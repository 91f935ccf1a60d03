/*
 * Converts a model, shows how far it is, and says what was done: save_progress IN OUT [LIMIT]. With LIMIT it stops after so
 * many bytes, and leaves nothing.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <decant/decant.h>

/* Called between two slots, and before the file gets its name. Whatever is not 0 stops the save, which then undoes itself. */
static int on_progress(void *ctx, uint64_t done, uint64_t total)
{
    const uint64_t *limit = ctx;

    printf("%" PRIu64 " of %" PRIu64 "\n", done, total);
    return *limit && done > *limit;
}

static void print_report(const decant_report *report)
{
    const char *path, *route, *reason, *text, *program, *why_not;
    uint64_t bytes;

    printf("saved %s: %zu tensors, %" PRIu64 " bytes, %s\n", decant_report_path(report), decant_report_tensors(report),
           decant_report_size(report), decant_report_durable(report) ? "durable" : "not durable");
    for (size_t i = 0; decant_report_source(report, i, &path, &bytes, &route, &reason); i++)
        printf("%s: %" PRIu64 " bytes, %s (%s)\n", path, bytes, route, reason);
    for (size_t i = 0; (text = decant_report_loss(report, i)); i++)
        printf("lost: %s\n", text);
    for (size_t i = 0; (text = decant_report_gain(report, i)); i++)
        printf("gained: %s\n", text);
    for (size_t i = 0; decant_report_reader(report, i, &program, &why_not); i++)
        printf("opens in: %s%s%s\n", program, why_not ? ": not, " : "", why_not ? why_not : "");
}

int main(int argc, char **argv)
{
    decant_save_options options = DECANT_SAVE_OPTIONS_INIT;
    decant_model *model = NULL;
    decant_report *report = NULL;
    decant_error err;
    uint64_t limit;
    int failed;

    if (argc != 3 && argc != 4) {
        fprintf(stderr, "usage: save_progress IN OUT [LIMIT]\n");
        return 2;
    }
    limit = argc == 4 ? strtoull(argv[3], NULL, 10) : 0;
    options.replace = 1;
    options.progress = on_progress;
    options.progress_ctx = &limit;

    failed = decant_open(argv[1], NULL, &model, &err) || decant_save(model, argv[2], &options, &report, &err);
    if (failed)
        fprintf(stderr, "%s\n", decant_error_text(&err));
    else
        print_report(report);
    decant_report_close(&report);
    decant_model_close(&model);
    return failed;
}
