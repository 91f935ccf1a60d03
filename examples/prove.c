/*
 * Converts a model file and proves that nothing was lost: prove IN OUT. The new file is read back before it gets its name;
 * its digest must be that of what was given.
 */
#include <stdio.h>
#include <string.h>

#include <decant/decant.h>

int main(int argc, char **argv)
{
    decant_save_options options = DECANT_SAVE_OPTIONS_INIT;
    decant_model *model = NULL;
    decant_report *report = NULL;
    decant_error err;
    char digest[DECANT_DIGEST];
    int failed;

    if (argc != 3) {
        fprintf(stderr, "usage: prove IN OUT\n");
        return 2;
    }
    options.verify = 1;
    failed = decant_open(argv[1], NULL, &model, &err) || decant_digest(model, NULL, NULL, NULL, digest, &err) ||
             decant_save(model, argv[2], &options, &report, &err);
    if (failed) {
        fprintf(stderr, "%s\n", decant_error_text(&err));
    } else {
        failed = strcmp(digest, decant_report_digest(report)) != 0;
        printf("%s  %s\n%s  %s, %s\n", digest, argv[1], decant_report_digest(report), argv[2],
               failed ? "which is another model" : "the same");
    }
    decant_report_close(&report);
    decant_model_close(&model);
    return failed;
}
