/* Converts a model file: convert IN OUT. The extension of OUT picks the format. */
#include <stdio.h>

#include <decant/decant.h>

int main(int argc, char **argv)
{
    decant_model *model = NULL;
    decant_error err;
    int failed;

    if (argc != 3) {
        fprintf(stderr, "usage: convert IN OUT\n");
        return 2;
    }
    failed = decant_open(argv[1], NULL, &model, &err) || decant_save(model, argv[2], NULL, NULL, &err);
    if (failed)
        fprintf(stderr, "%s\n", decant_error_text(&err));
    decant_model_close(&model);
    return failed;
}
