/* Makes one model of several, in half precision: cast_and_merge OUT IN... The tensors of each are called after its place. */
#include <stdio.h>

#include <decant/decant.h>

enum { MOST = 100 };

/* Opens the files. On failure those that are open are closed by the caller all the same. */
static int open_all(char **paths, size_t count, decant_model **models, decant_error *err)
{
    for (size_t i = 0; i < count; i++)
        if (decant_open(paths[i], NULL, &models[i], err))
            return 1;
    return 0;
}

/* What became infinite in the cast, which was allowed below. */
static void tell(const decant_report *report)
{
    const char *text;

    for (size_t i = 0; (text = decant_report_overflow(report, i)) != NULL; i++)
        printf("%s\n", text);
    printf("%zu tensors, %llu bytes\n", decant_report_tensors(report), (unsigned long long)decant_report_size(report));
}

int main(int argc, char **argv)
{
    static const char *const dtype[] = {"f16"}, *const unset[] = {"format"};
    decant_transform_options options = DECANT_TRANSFORM_OPTIONS_INIT;
    decant_model *models[MOST] = {NULL}, *merged = NULL;
    const char *prefixes[MOST];
    char texts[MOST][16];
    size_t count = (size_t)argc - 2;
    decant_report *report = NULL;
    decant_error err;
    int failed;

    if (argc < 3 || count > MOST) {
        fprintf(stderr, "usage: cast_and_merge OUT IN...\n");
        return 2;
    }
    for (size_t i = 0; i < count; i++) {
        snprintf(texts[i], sizeof texts[i], "part%zu.", i);
        prefixes[i] = texts[i];
    }
    options.dtype = dtype; /* as after --dtype: all real numbers */
    options.dtype_count = 1;
    options.unset = unset; /* of which the inputs may have different ones */
    options.unset_count = 1;
    options.allow = DECANT_ALLOW_OVERFLOW;

    /* Nothing is read by the transform: the save reads and casts, slot by slot. */
    failed = open_all(argv + 2, count, models, &err) ||
             decant_transform((const decant_model *const *)models, prefixes, count, &options, &merged, &err) ||
             decant_save(merged, argv[1], NULL, &report, &err);
    if (failed)
        fprintf(stderr, "%s\n", decant_error_text(&err));
    else
        tell(report);
    decant_report_close(&report);
    decant_model_close(&merged);
    for (size_t i = 0; i < count; i++)
        decant_model_close(&models[i]);
    return failed;
}
