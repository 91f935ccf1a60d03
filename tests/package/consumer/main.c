/* A program somewhere else that uses decant as it was installed. */
#include <decant/decant.h>

#include <stdio.h>

int main(void)
{
    decant_model *model = NULL;
    decant_error err = {0};

    if (decant_model_create(&model, &err)) {
        fprintf(stderr, "%s\n", decant_error_text(&err));
        return 1;
    }
    decant_model_close(&model);
    puts(decant_version());
    return 0;
}
