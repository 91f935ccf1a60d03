#include "cli.h"
#include "out.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

/* Names longer than this are not made room for. */
enum { WIDEST_NAME = 64 };

static void show_json(cli_json *j, const decant_model *model)
{
    size_t count = decant_model_count(model);

    cli_json_text(j, "format", decant_model_format(model));
    cli_json_odd(j, "odd", model);
    cli_json_open(j, "tensors", '[');
    for (size_t i = 0; i < count; i++) {
        decant_tensor tensor = DECANT_TENSOR_INIT;

        decant_model_tensor(model, i, &tensor);
        cli_json_open(j, NULL, '{');
        cli_json_counted(j, "name", tensor.name, tensor.name_len);
        cli_json_text(j, "dtype", decant_dtype_name(tensor.dtype));
        cli_json_shape(j, "shape", tensor.shape, tensor.rank);
        cli_json_bytes(j, "bytes", tensor.len);
        if (tensor.has_id)
            cli_json_bytes(j, "id", tensor.id);
        cli_json_close(j, '}');
    }
    cli_json_close(j, ']');
}

/* For programs: a tab between columns, plain digits. */
static void show_tabs(const decant_model *model)
{
    size_t count = decant_model_count(model);

    for (size_t i = 0; i < count; i++) {
        decant_tensor tensor = DECANT_TENSOR_INIT;

        decant_model_tensor(model, i, &tensor);
        cli_put_text(stdout, tensor.name, tensor.name_len, SIZE_MAX);
        printf("\t%s\t", decant_dtype_name(tensor.dtype));
        cli_put_shape(stdout, tensor.shape, tensor.rank);
        printf("\t%" PRIu64 "\n", tensor.len);
    }
}

/* For people: columns that stand under each other. */
static void show_columns(const decant_model *model)
{
    size_t count = decant_model_count(model), name_width = 0, dtype_width = 0, shape_width = 0, bytes_width = 0;
    char bytes[CLI_NUMBER];

    for (size_t i = 0; i < count; i++) {
        decant_tensor tensor = DECANT_TENSOR_INIT;
        size_t width;

        decant_model_tensor(model, i, &tensor);
        width = cli_put_text(NULL, tensor.name, tensor.name_len, WIDEST_NAME);
        name_width = width > name_width ? width : name_width;
        width = strlen(decant_dtype_name(tensor.dtype));
        dtype_width = width > dtype_width ? width : dtype_width;
        width = cli_put_shape(NULL, tensor.shape, tensor.rank);
        shape_width = width > shape_width ? width : shape_width;
        width = strlen(cli_thousands(bytes, tensor.len));
        bytes_width = width > bytes_width ? width : bytes_width;
    }
    for (size_t i = 0; i < count; i++) {
        decant_tensor tensor = DECANT_TENSOR_INIT;
        size_t used;

        decant_model_tensor(model, i, &tensor);
        used = cli_put_text(stdout, tensor.name, tensor.name_len, SIZE_MAX);
        cli_put_spaces(stdout, used < name_width ? name_width - used : 0);
        printf("  %-*s  ", (int)dtype_width, decant_dtype_name(tensor.dtype));
        used = cli_put_shape(stdout, tensor.shape, tensor.rank);
        cli_put_spaces(stdout, shape_width - used);
        printf("  %*s\n", (int)bytes_width, cli_thousands(bytes, tensor.len));
    }
}

static void show(cli *c, const char *path, const decant_model *model)
{
    if (c->args.json) {
        show_json(&c->json, model);
        return;
    }
    if (c->args.file_count > 1) {
        printf("%s", path == c->args.files[0] ? "" : "\n");
        cli_put_text(stdout, path, strlen(path), SIZE_MAX);
        puts(":");
    }
    if (isatty(STDOUT_FILENO))
        show_columns(model);
    else
        show_tabs(model);
}

static int run(cli *c)
{
    return cli_each_file(c, show);
}

const cli_command cli_ls = {
    .name = "ls",
    .usage = "FILE...",
    .summary = "its tensors, one a line: name, dtype, shape, bytes",
    .examples = "  decant ls model.safetensors\n"
                "  decant ls model.bpk | cut -f 1\n"
                "  decant ls --json model.bpk\n",
    .bit = CLI_LS,
    .min_files = 1,
    .max_files = SIZE_MAX,
    .run = run,
};
