#include "cli.h"
#include "out.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Without -v no more than so many metadata keys are shown, and no more columns of a value. */
enum { VALUES_SHOWN = 20, VALUE_COLUMNS = 100 };

/* What there is to say about a model's tensors. */
typedef struct summary {
    size_t count, ids;
    uint64_t bytes;
    size_t by_dtype[64]; /* the last row: dtypes of a later version */
    size_t largest;
} summary;

enum { DTYPES = sizeof((summary *)0)->by_dtype / sizeof(size_t) };

static summary summarise(const decant_model *model)
{
    summary s = {.count = decant_model_count(model)};
    uint64_t most = 0;

    for (size_t i = 0; i < s.count; i++) {
        decant_tensor tensor = DECANT_TENSOR_INIT;

        decant_model_tensor(model, i, &tensor);
        s.bytes += tensor.len;
        s.ids += tensor.has_id != 0;
        s.by_dtype[(size_t)tensor.dtype < DTYPES ? (size_t)tensor.dtype : DTYPES - 1]++;
        if (tensor.len > most) {
            most = tensor.len;
            s.largest = i;
        }
    }
    return s;
}

/* --- for people ----------------------------------------------------------------------------------------------------- */

static void show_tensors(const decant_model *model, const summary *s)
{
    decant_tensor largest = DECANT_TENSOR_INIT;
    char number[CLI_NUMBER];
    const char *before = s->count ? ", " : "";

    printf("  tensors    %s", cli_thousands(number, s->count));
    for (size_t i = 0; i < DTYPES; i++) {
        if (s->by_dtype[i] == 0)
            continue;
        if (s->by_dtype[i] == s->count)
            printf(", all %s", decant_dtype_name((decant_dtype)i));
        else
            printf("%s%s %s", before, cli_thousands(number, s->by_dtype[i]), decant_dtype_name((decant_dtype)i));
        before = ", ";
    }
    if (s->count) {
        decant_model_tensor(model, s->largest, &largest);
        fputs("; largest ", stdout);
        cli_put_text(stdout, largest.name, largest.name_len, SIZE_MAX);
        fputc(' ', stdout);
        cli_put_shape(stdout, largest.shape, largest.rank);
        printf(", %s", cli_size(number, largest.len));
    }
    if (s->ids)
        printf("; %s with a param id", cli_thousands(number, s->ids));
    fputc('\n', stdout);
}

/* A scalar as text, with the fewest digits that read back as the same number. */
static void scalar_text(char *out, size_t size, const decant_value *value)
{
    double real;

    switch (value->type) {
    case DECANT_VALUE_BOOL:
        snprintf(out, size, "%s", value->as.boolean ? "true" : "false");
        break;
    case DECANT_VALUE_I64:
        snprintf(out, size, "%" PRId64, value->as.i64);
        break;
    case DECANT_VALUE_F64:
        memcpy(&real, &value->as.f64_bits, sizeof real);
        for (int digits = 1; digits <= 17; digits++) {
            snprintf(out, size, "%.*g", digits, real);
            if (strtod(out, NULL) == real)
                break;
        }
        break;
    default:
        snprintf(out, size, "%" PRIu64, value->as.u64);
    }
}

/* Metadata is text, scalars are all else. */
static void show_values(const cli *c, const decant_model *model, bool texts)
{
    size_t count = decant_model_value_count(model), found = 0;
    char number[64];

    for (size_t i = 0; i < count; i++) {
        const char *key;
        size_t key_len;
        decant_value value;

        decant_model_value(model, i, &key, &key_len, &value);
        if ((value.type == DECANT_VALUE_TEXT) != texts || (found++ >= VALUES_SHOWN && !c->args.verbose))
            continue;
        printf("  %-10s ", found > 1 ? "" : texts ? "metadata" : "scalars");
        cli_put_text(stdout, key, key_len, SIZE_MAX);
        fputs(" = ", stdout);
        if (texts) {
            cli_put_text(stdout, value.as.text.data, value.as.text.len, c->args.verbose ? SIZE_MAX : VALUE_COLUMNS);
        } else {
            scalar_text(number, sizeof number, &value);
            fputs(number, stdout);
        }
        fputc('\n', stdout);
    }
    if (found > VALUES_SHOWN && !c->args.verbose)
        printf("  %-10s and %zu more; -v shows all\n", "", found - VALUES_SHOWN);
}

static void show_text(const cli *c, const decant_model *model)
{
    summary s = summarise(model);
    char number[CLI_NUMBER];
    const char *path = decant_model_path(model), *key, *text, *program, *why_not;
    size_t shards = cli_shards(model);

    cli_put_text(stdout, path, strlen(path), SIZE_MAX);
    printf("   %s, ", decant_model_format(model));
    if (shards)
        printf("%s shard%s, ", cli_thousands(number, shards), cli_plural(shards));
    printf("%s bytes of data\n", cli_thousands(number, s.bytes));
    show_tensors(model, &s);
    show_values(c, model, true);
    show_values(c, model, false);
    for (size_t i = 0; decant_model_note(model, i, &key, &text) == DECANT_OK; i++)
        printf("  %-10s %s\n", key, text);
    printf("  %-10s ", "opens in");
    for (size_t i = 0; decant_model_reader(model, i, &program, &why_not); i++)
        cli_put_reader(stdout, i, program, why_not);
    fputc('\n', stdout);
}

/* --- JSON ----------------------------------------------------------------------------------------------------------- */

static void put_json_value(cli_json *j, const char *key, size_t key_len, const decant_value *value)
{
    static const char *const types[] = {
        [DECANT_VALUE_BOOL] = "bool", [DECANT_VALUE_I64] = "i64",   [DECANT_VALUE_U64] = "u64",
        [DECANT_VALUE_F64] = "f64",   [DECANT_VALUE_TEXT] = "text",
    };
    char number[64];

    cli_json_open(j, NULL, '{');
    cli_json_counted(j, "key", key, key_len);
    cli_json_text(j, "type", types[value->type]);
    if (value->type == DECANT_VALUE_TEXT) {
        cli_json_counted(j, "value", value->as.text.data, value->as.text.len);
    } else if (value->type == DECANT_VALUE_BOOL) {
        cli_json_bool(j, "value", value->as.boolean);
    } else { /* as text: JSON has no infinity, and readers of it no 64 bits */
        scalar_text(number, sizeof number, value);
        cli_json_text(j, "value", number);
    }
    cli_json_close(j, '}');
}

/* The files of a model; those of a set one by one, too. */
static void put_json_files(cli_json *j, const decant_model *model)
{
    const char *file;
    uint64_t bytes, size = 0;

    for (size_t i = 0; decant_model_file(model, i, NULL, &bytes); i++)
        size += bytes;
    cli_json_text(j, "path", decant_model_path(model));
    cli_json_bytes(j, "size", size);
    cli_json_open(j, "shards", '[');
    for (size_t i = 0; cli_shards(model) && decant_model_file(model, i, &file, &bytes); i++) {
        cli_json_open(j, NULL, '{');
        cli_json_text(j, "file", file);
        cli_json_bytes(j, "bytes", bytes);
        cli_json_close(j, '}');
    }
    cli_json_close(j, ']');
}

static void show_json(cli_json *j, const decant_model *model)
{
    summary s = summarise(model);
    const char *key, *text, *program, *why_not;

    cli_json_text(j, "format", decant_model_format(model));
    put_json_files(j, model);
    cli_json_bytes(j, "data", s.bytes);
    cli_json_count(j, "tensor_count", s.count);
    cli_json_open(j, "dtypes", '{');
    for (size_t i = 0; i < DTYPES; i++)
        if (s.by_dtype[i])
            cli_json_count(j, decant_dtype_name((decant_dtype)i), s.by_dtype[i]);
    cli_json_close(j, '}');
    cli_json_count(j, "param_ids", s.ids);

    cli_json_open(j, "values", '[');
    for (size_t i = 0; i < decant_model_value_count(model); i++) {
        size_t key_len;
        decant_value value;

        decant_model_value(model, i, &key, &key_len, &value);
        put_json_value(j, key, key_len, &value);
    }
    cli_json_close(j, ']');

    cli_json_open(j, "notes", '[');
    for (size_t i = 0; decant_model_note(model, i, &key, &text) == DECANT_OK; i++) {
        cli_json_open(j, NULL, '{');
        cli_json_text(j, "key", key);
        cli_json_text(j, "text", text);
        cli_json_close(j, '}');
    }
    cli_json_close(j, ']');

    cli_json_open(j, "opens_in", '[');
    for (size_t i = 0; decant_model_reader(model, i, &program, &why_not); i++)
        cli_json_reader(j, program, why_not);
    cli_json_close(j, ']');
}

static void show(cli *c, const char *path, const decant_model *model)
{
    (void)path; /* it may be a folder */
    if (c->args.json)
        show_json(&c->json, model);
    else
        show_text(c, model);
}

static int run(cli *c)
{
    return cli_each_file(c, show);
}

const cli_command cli_inspect = {
    .name = "inspect",
    .usage = "FILE...",
    .summary = "what a file is: format, dtypes, layout, metadata, who can open it",
    .examples = "  decant inspect model.safetensors\n"
                "  decant inspect -v --json *.bpk\n",
    .bit = CLI_INSPECT,
    .min_files = 1,
    .max_files = SIZE_MAX,
    .run = run,
};
