/*
 * Writes models with decant as a program would: through the shared library and the public headers.
 *
 * Standard input has a model a line: its spec, its tensors' lengths as "len", and as "out" the path to write. The answer
 * is a line each: nothing, or what went wrong.
 */
#include <stdio.h>
#include <stdlib.h>

#include "support/spec.h"

static uint64_t len_of(const json_t *spec, const decant_tensor *tensor)
{
    (void)tensor;
    return (uint64_t)json_integer_value(json_object_get(spec, "len"));
}

static decant_status write_model(const json_t *spec, decant_error *err)
{
    const char *out = json_string_value(json_object_get(spec, "out"));
    decant_model *model = NULL;
    decant_status rc = spec_model(spec, len_of, &model, err);

    if (!rc)
        rc = decant_save_in_place(model, out, NULL, NULL, err); /* does not wait for the disk */
    decant_model_close(&model);
    return rc;
}

int main(void)
{
    char *line = NULL;
    size_t size = 0;

    while (getline(&line, &size, stdin) > 0) {
        decant_error err = {0};
        json_error_t why;
        json_t *spec = json_loads(line, 0, &why);

        if (!spec)
            puts(why.text);
        else
            puts(write_model(spec, &err) ? decant_error_text(&err) : "");
        fflush(stdout);
        json_decref(spec);
    }
    free(line);
    return 0;
}
