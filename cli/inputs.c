#include "inputs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "out.h"

enum { SHOWN = 20 /* lines of a list without -v */, WIDE = 100 /* columns of a word without -v */ };

/* --- --set ---------------------------------------------------------------------------------------------------------- */

/* The content of a file, at most of the length that a value can have. Gives the exit status. */
static int read_value(cli *c, const char *path, char **data, size_t *len)
{
    enum { MOST = 16 << 20 };
    FILE *file = fopen(path, "rb");
    char *content = NULL;
    decant_error err = {0};
    int failed = file ? 0 : errno;

    if (file && !(content = malloc(MOST + 1)))
        failed = ENOMEM;
    if (content) {
        *len = fread(content, 1, MOST + 1, file);
        failed = ferror(file) ? errno : *len > MOST ? EFBIG : 0;
    }
    if (file)
        fclose(file);
    if (!failed) {
        *data = content;
        return CLI_DONE;
    }
    free(content);
    (void)decant_error_set(&err,
                           failed == ENOENT   ? DECANT_NOT_FOUND
                           : failed == ENOMEM ? DECANT_NOMEM
                                              : DECANT_IO,
                           "the value cannot be read: %s", strerror(failed));
    snprintf(err.hint, sizeof err.hint, "after @ comes a file that holds the value, of at most 16 MiB");
    return cli_fail(c, &err, DECANT_SIDE_INPUT, path);
}

static void close_settings(const cli *c, decant_setting *settings)
{
    for (size_t i = 0; settings && i < c->args.set.count; i++)
        free((char *)(uintptr_t)settings[i].data); /* ours, though a setting only lends it */
    free(settings);
}

/* What --set says. Gives the exit status. */
static int open_settings(cli *c, decant_setting **out)
{
    decant_setting *settings = calloc(c->args.set.count + 1, sizeof *settings);
    int status = CLI_DONE;

    if (!settings)
        return cli_fail_nomem(c);
    for (size_t i = 0; i < c->args.set.count && status == CLI_DONE; i++) {
        const char *text = c->args.set.items[i], *equals = strchr(text, '=');
        char *data = NULL;

        settings[i].text = text;
        if (equals && equals[1] == '@') {
            status = read_value(c, equals + 2, &data, &settings[i].len);
            settings[i].data = data;
        }
    }
    if (status)
        close_settings(c, settings);
    else
        *out = settings;
    return status;
}

/* --- a tensor by its name -------------------------------------------------------------------------------------------- */

/* The tensor whose name is meant where none is called `name`: NULL if none comes near. Its name is lent by the model. */
static const char *guess(const decant_model *model, const char *name)
{
    const char *best = NULL;
    size_t len = strlen(name), least = len < 4 ? len : 4;

    for (size_t i = 0; i < decant_model_count(model); i++) {
        decant_tensor tensor = DECANT_TENSOR_INIT;
        size_t distance;

        decant_model_tensor(model, i, &tensor);
        if (strlen(tensor.name) != tensor.name_len)
            continue;
        distance = cli_distance(name, tensor.name);
        if (distance < least) {
            least = distance;
            best = tensor.name;
        }
    }
    return best;
}

int cli_find_tensor(cli *c, const decant_model *model, const char *name, size_t *index)
{
    decant_error err = {0};
    const char *close;
    char safe[128];

    if (decant_model_find(model, name, strlen(name), index, &err) == DECANT_OK)
        return CLI_DONE;
    if ((close = guess(model, name))) {
        cli_escape(safe, sizeof safe, close);
        snprintf(err.hint, sizeof err.hint, "did you mean '%s'?", safe);
    } else {
        snprintf(err.hint, sizeof err.hint, "decant ls shows what there is");
    }
    return cli_fail(c, &err, DECANT_SIDE_INPUT, decant_model_path(model));
}

/* --- opening -------------------------------------------------------------------------------------------------------- */

static bool asks_for_changes(const cli_args *a)
{
    return a->prefixes || a->include.count || a->exclude.count || a->rename.count || a->dtype.count || a->set.count ||
           a->unset.count || a->put.count || a->drop.count;
}

/* A file, whatever its names are, and an input that lies in it. */
typedef struct lying {
    dev_t dev;
    ino_t ino;
    size_t input;
} lying;

static int by_file_and_input(const void *a, const void *b)
{
    const lying *x = a, *y = b;

    if (x->dev != y->dev)
        return x->dev < y->dev ? -1 : 1;
    if (x->ino != y->ino)
        return x->ino < y->ino ? -1 : 1;
    return (x->input > y->input) - (x->input < y->input);
}

/* The files of all inputs, sorted. */
typedef struct places {
    lying *items;
    size_t count;
} places;

static bool find_file(const decant_model *model, size_t index, lying *out)
{
    const char *path;
    struct stat status;

    if (!decant_model_file(model, index, &path, NULL) || !path || stat(path, &status))
        return false;
    *out = (lying){.dev = status.st_dev, .ino = status.st_ino};
    return true;
}

static bool find_places(const cli_inputs *in, places *out)
{
    size_t count = 0;

    for (size_t i = 0; i < in->count; i++)
        for (size_t k = 0; decant_model_file(in->items[i].model, k, NULL, NULL); k++)
            count++;
    *out = (places){.items = calloc(count + 1, sizeof *out->items)};
    for (size_t i = 0; out->items && i < in->count; i++)
        for (size_t k = 0; decant_model_file(in->items[i].model, k, NULL, NULL); k++)
            if (find_file(in->items[i].model, k, &out->items[out->count]))
                out->items[out->count++].input = i;
    if (out->items)
        qsort(out->items, out->count, sizeof *out->items, by_file_and_input);
    return out->items != NULL;
}

/* Whether all files of an input are those, or some of those, of another one. */
static bool is_part_of(const cli_inputs *in, const places *all, size_t part, size_t set)
{
    const cli_input *of = &in->items[set];
    lying file;
    size_t i = 0;

    if (of->prefix && !decant_model_file(of->model, 1, NULL, NULL))
        return false; /* a file is wanted under other names too; of a set the prefix is for all of the parts that a glob names */
    for (; decant_model_file(in->items[part].model, i, NULL, NULL); i++) {
        if (!find_file(in->items[part].model, i, &file))
            return false;
        file.input = set;
        if (!bsearch(&file, all->items, all->count, sizeof file, by_file_and_input))
            return false;
    }
    return i > 0;
}

/* Whether an input is a part of another that stays. Only one that has its first file, too, can be. */
static bool is_named_again(const cli_inputs *in, const places *all, size_t input)
{
    lying first;
    size_t low = 0, high = all->count;

    if (in->items[input].prefix || !find_file(in->items[input].model, 0, &first))
        return false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (by_file_and_input(&all->items[middle], &first) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < all->count && all->items[low].dev == first.dev && all->items[low].ino == first.ino; low++) {
        size_t set = all->items[low].input;

        if (set != input && in->items[set].model && is_part_of(in, all, input, set) &&
            (set < input || !is_part_of(in, all, set, input)))
            return true;
    }
    return false;
}

/* What is named twice counts once, whether as a file, a part of a set or its folder: a glob names all of them. */
static bool drop_parts(cli_inputs *in)
{
    places all;
    size_t kept = 0;

    if (in->count < 2)
        return true;
    if (!find_places(in, &all))
        return false;
    for (size_t i = 0; i < in->count; i++)
        if (is_named_again(in, &all, i))
            decant_model_close(&in->items[i].model);
    free(all.items);
    for (size_t i = 0; i < in->count; i++)
        if (in->items[i].model)
            in->items[kept++] = in->items[i];
    in->count = kept;
    return true;
}

/* --- --put and --drop ------------------------------------------------------------------------------------------------- */

/* Where NAME ends in "NAME=FILE": at the first "=" behind a name that is there, else at the first. NULL: there is none. */
static const char *end_of_name(const decant_model *model, const char *text)
{
    size_t index;

    for (const char *at = strchr(text, '='); at; at = strchr(at + 1, '='))
        if (at > text && decant_model_find(model, text, (size_t)(at - text), &index, NULL) == DECANT_OK)
            return at;
    return strchr(text, '=');
}

static void close_contents(const cli *c, decant_content *contents)
{
    for (size_t i = 0; contents && i < c->args.put.count; i++) {
        free((char *)(uintptr_t)contents[i].name); /* ours, though a content only lends it */
        decant_bytes_unref(&contents[i].bytes);
    }
    free(contents);
}

/* What --put says. Gives the exit status. */
static int open_contents(cli *c, const decant_model *model, decant_content **out)
{
    decant_content *contents = calloc(c->args.put.count + 1, sizeof *contents);
    decant_error err = {0};
    int status = CLI_DONE;

    for (size_t i = 0; contents && i < c->args.put.count && status == CLI_DONE; i++) {
        const char *text = c->args.put.items[i], *equals = end_of_name(model, text);

        if (!equals || !equals[1])
            status = cli_misuse(c, "write --put NAME=FILE", "--put %s: which file?", text);
        else if (!(contents[i].name = strndup(text, (size_t)(equals - text))))
            status = cli_fail_nomem(c);
        else if (decant_bytes_file(equals + 1, 0, DECANT_TO_END, &contents[i].bytes, &err) ||
                 (c->args.consume && decant_bytes_own(contents[i].bytes, &err)))
            status = cli_fail(c, &err, DECANT_SIDE_INPUT, equals + 1);
    }
    if (!contents)
        status = cli_fail_nomem(c);
    if (status)
        close_contents(c, contents);
    else
        *out = contents;
    return status;
}

/* The pattern that matches this name alone. NULL without memory. */
static char *pattern_of(const char *name)
{
    char *pattern = malloc(2 * strlen(name) + 1), *to = pattern;

    for (; pattern && *name; name++) {
        if (to == pattern || strchr("*?[\\", *name)) /* "re:" would begin an expression */
            *to++ = '\\';
        *to++ = *name;
    }
    if (pattern)
        *to = '\0';
    return pattern;
}

/* What --drop says, behind what --exclude says. */
static char **open_drops(const cli *c)
{
    char **drops = calloc(c->args.drop.count + 1, sizeof *drops);

    for (size_t i = 0; drops && i < c->args.drop.count; i++)
        if (!(drops[i] = pattern_of(c->args.drop.items[i]))) {
            while (i-- > 0)
                free(drops[i]);
            free(drops);
            return NULL;
        }
    return drops;
}

static void close_drops(const cli *c, char **drops)
{
    for (size_t i = 0; drops && i < c->args.drop.count; i++)
        free(drops[i]);
    free(drops);
}

/* Makes one model of all. Gives the exit status. */
static int transform(cli *c, cli_inputs *in, const decant_model **models, const char **prefixes)
{
    const cli_args *a = &c->args;
    decant_transform_options options = DECANT_TRANSFORM_OPTIONS_INIT;
    decant_setting *settings = NULL;
    decant_content *contents = NULL;
    char **drops = open_drops(c);
    decant_error err = {0};
    int status = CLI_DONE;

    if (!drops)
        return cli_fail_nomem(c);
    for (size_t i = 0, index; i < a->drop.count; i++)
        if ((status = cli_find_tensor(c, in->items[0].model, a->drop.items[i], &index)))
            goto done;
    if ((status = open_settings(c, &settings)) || (status = open_contents(c, in->items[0].model, &contents)))
        goto done;
    for (size_t i = 0; i < in->count; i++) {
        models[i] = in->items[i].model;
        prefixes[i] = in->items[i].prefix;
    }
    options.include = a->include.items;
    options.include_count = a->include.count;
    /* no command takes both */
    options.exclude = a->drop.count ? (const char *const *)drops : a->exclude.items;
    options.exclude_count = a->drop.count ? a->drop.count : a->exclude.count;
    options.put = contents;
    options.put_count = a->put.count;
    options.rename = a->rename.items;
    options.rename_count = a->rename.count;
    options.dtype = a->dtype.items;
    options.dtype_count = a->dtype.count;
    options.set = settings;
    options.set_count = a->set.count;
    options.unset = a->unset.items;
    options.unset_count = a->unset.count;
    options.allow = a->allow;
    if (decant_transform(models, prefixes, in->count, &options, &in->made, &err))
        status = cli_fail(c, &err, err.status == DECANT_BAD_CALL ? DECANT_SIDE_NONE : DECANT_SIDE_INPUT, NULL);
done:
    close_contents(c, contents);
    close_settings(c, settings);
    close_drops(c, drops);
    return status;
}

int cli_inputs_open(cli *c, size_t count, cli_inputs *out)
{
    cli_inputs in = {.items = calloc(count, sizeof *in.items), .count = count};
    const decant_model **models = calloc(count, sizeof *models);
    const char **prefixes = calloc(count, sizeof *prefixes);
    int status = CLI_DONE;

    if (!in.items || !models || !prefixes) {
        status = cli_fail_nomem(c);
        goto done;
    }
    for (size_t i = 0; i < count && status == CLI_DONE; i++) {
        in.items[i].path = c->args.files[i];
        in.items[i].prefix = c->args.prefixes ? c->args.prefixes[i] : NULL;
        status = cli_open(c, c->args.files[i], &in.items[i].model);
    }
    if (status == CLI_DONE && !drop_parts(&in))
        status = cli_fail_nomem(c);
    if (status == CLI_DONE && (in.count > 1 || asks_for_changes(&c->args)))
        status = transform(c, &in, models, prefixes);
done:
    free(prefixes);
    free(models);
    if (status)
        cli_inputs_close(&in);
    else
        *out = in;
    return status;
}

const decant_model *cli_inputs_model(const cli_inputs *in)
{
    return in->made ? in->made : in->items[0].model;
}

int cli_check_stdout(cli *c, const decant_model *model)
{
    decant_error err = {0};
    struct stat out;
    lying file;
    size_t i = 0;

    if (fstat(STDOUT_FILENO, &out) || !S_ISREG(out.st_mode))
        return CLI_DONE;
    while (decant_model_file(model, i, NULL, NULL) &&
           (!find_file(model, i, &file) || file.dev != out.st_dev || file.ino != out.st_ino))
        i++;
    if (!decant_model_file(model, i, NULL, NULL))
        return CLI_DONE;
    (void)decant_error_set(&err, DECANT_SAME_FILE, "it is sent into one of the inputs");
    snprintf(err.hint, sizeof err.hint, "send it elsewhere, or name the file with -o OUT --force");
    return cli_fail(c, &err, DECANT_SIDE_OUTPUT, "standard output");
}

void cli_inputs_close(cli_inputs *in)
{
    decant_model_close(&in->made);
    for (size_t i = 0; in->items && i < in->count; i++)
        decant_model_close(&in->items[i].model);
    free(in->items);
    *in = (cli_inputs){0};
}

/* --- what is said --------------------------------------------------------------------------------------------------- */

/* A tensor, as it is and as it was. */
typedef struct change {
    decant_tensor now;
    decant_origin was;
} change;

/* The change of the tensor at `index`; false past the last, and where nothing is made. */
static bool get_change(const cli_inputs *in, size_t index, change *out)
{
    *out = (change){.now = DECANT_TENSOR_INIT, .was = {.size = sizeof out->was}};
    if (!in->made || index == decant_model_count(in->made))
        return false;
    decant_model_tensor(in->made, index, &out->now);
    return decant_model_origin(in->made, index, &out->was);
}

static bool is_renamed(const change *ch)
{
    return ch->now.name_len != ch->was.name_len || memcmp(ch->now.name, ch->was.name, ch->was.name_len) != 0;
}

static size_t left_out(const cli_inputs *in)
{
    size_t all = 0;

    for (size_t i = 0; i < in->count; i++)
        all += decant_model_count(in->items[i].model);
    return all - decant_model_count(cli_inputs_model(in));
}

void cli_inputs_show(const cli *c, const cli_inputs *in)
{
    size_t shown = c->args.verbose || in->count <= SHOWN ? in->count : SHOWN;
    char number[CLI_NUMBER], size[CLI_NUMBER];

    for (size_t i = 0; i < shown; i++) {
        const char *path = decant_model_path(in->items[i].model);
        size_t count = decant_model_count(in->items[i].model), shards = cli_shards(in->items[i].model);
        decant_tensor tensor = DECANT_TENSOR_INIT;
        uint64_t bytes = 0;

        for (size_t k = 0; k < count; k++) {
            decant_model_tensor(in->items[i].model, k, &tensor);
            bytes += tensor.len;
        }
        printf("%-9s ", i ? "" : "from");
        cli_put_text(stdout, path, strlen(path), SIZE_MAX);
        if (shards)
            printf(", %s shard%s", cli_thousands(number, shards), cli_plural(shards));
        printf(", %s tensor%s, %s\n", cli_thousands(number, count), cli_plural(count), cli_size(size, bytes));
    }
    if (shown < in->count)
        printf("%-9s and %s more (-v shows all)\n", "", cli_thousands(number, in->count - shown));
}

static void show_casts(FILE *out, const char *indent, const cli_inputs *in)
{
    enum { PAIRS = 32 }; /* there are fewer */
    struct {
        decant_dtype from, to;
        size_t count;
    } casts[PAIRS] = {{0}};
    size_t pairs = 0;
    char number[CLI_NUMBER];
    change ch;

    for (size_t i = 0, k; get_change(in, i, &ch); i++) {
        if (ch.now.dtype == ch.was.dtype)
            continue;
        for (k = 0; k < pairs && (casts[k].from != ch.was.dtype || casts[k].to != ch.now.dtype); k++)
            ;
        if (k == pairs && pairs < PAIRS - 1)
            pairs++;
        casts[k].from = ch.was.dtype;
        casts[k].to = ch.now.dtype;
        casts[k].count++;
    }
    for (size_t k = 0; k < pairs; k++)
        fprintf(out, "%s%-9s %s tensor%s, %s to %s\n", indent, k ? "" : "casts", cli_thousands(number, casts[k].count),
                cli_plural(casts[k].count), decant_dtype_name(casts[k].from), decant_dtype_name(casts[k].to));
}

/* Tensors that a dtype was asked for and that stay as they are. NULL: none. */
static const char *kept(const cli_inputs *in)
{
    const char *key, *text;

    for (size_t i = 0; in->made && decant_model_note(in->made, i, &key, &text) == DECANT_OK; i++)
        if (strcmp(key, "keeps") == 0)
            return text;
    return NULL;
}

static void show_names(FILE *out, const char *indent, const cli *c, const cli_inputs *in)
{
    size_t renamed = 0;
    char number[CLI_NUMBER];
    change ch;

    for (size_t i = 0; get_change(in, i, &ch); i++) {
        if (!is_renamed(&ch))
            continue;
        if (renamed++ >= SHOWN && !c->args.verbose)
            continue;
        fprintf(out, "%s%-9s ", indent, renamed == 1 ? "renames" : "");
        cli_put_text(out, ch.was.name, ch.was.name_len, SIZE_MAX);
        fputs(" to ", out);
        cli_put_text(out, ch.now.name, ch.now.name_len, SIZE_MAX);
        fputc('\n', out);
    }
    if (renamed > SHOWN && !c->args.verbose)
        fprintf(out, "%s%-9s and %s more (-v shows all)\n", indent, "", cli_thousands(number, renamed - SHOWN));
}

/* What was asked for in these words, a row each. */
static void show_words(FILE *out, const char *indent, const char *label, const cli *c, const cli_list *words)
{
    for (size_t i = 0; i < words->count; i++) {
        fprintf(out, "%s%-9s ", indent, i ? "" : label);
        cli_put_text(out, words->items[i], strlen(words->items[i]), c->args.verbose ? SIZE_MAX : WIDE);
        fputc('\n', out);
    }
}

void cli_inputs_show_changes(FILE *out, const char *indent, const cli *c, const cli_inputs *in)
{
    size_t left = left_out(in);
    char number[CLI_NUMBER];

    if (left)
        fprintf(out, "%s%-9s %s tensor%s out\n", indent, "leaves", cli_thousands(number, left), cli_plural(left));
    show_words(out, indent, "puts", c, &c->args.put);
    show_casts(out, indent, in);
    if (kept(in))
        fprintf(out, "%s%-9s %s\n", indent, "keeps", kept(in));
    show_names(out, indent, c, in);
    show_words(out, indent, "sets", c, &c->args.set);
    show_words(out, indent, "unsets", c, &c->args.unset);
}

static void put_json_words(cli_json *j, const char *key, const cli_list *words)
{
    cli_json_open(j, key, '[');
    for (size_t i = 0; i < words->count; i++)
        cli_json_text(j, NULL, words->items[i]);
    cli_json_close(j, ']');
}

void cli_inputs_json_odd(cli *c, const cli_inputs *in)
{
    cli_json_open(&c->json, "odd", '[');
    for (size_t i = 0; i < in->count; i++)
        cli_json_odd(&c->json, NULL, in->items[i].model);
    cli_json_close(&c->json, ']');
}

void cli_inputs_json(cli *c, const cli_inputs *in)
{
    cli_json *j = &c->json;
    change ch;

    put_json_words(j, "puts", &c->args.put);
    put_json_words(j, "sets", &c->args.set);
    put_json_words(j, "unsets", &c->args.unset);
    cli_json_count(j, "omitted", left_out(in));
    if (kept(in))
        cli_json_text(j, "keeps", kept(in));
    cli_json_open(j, "changes", '[');
    for (size_t i = 0; get_change(in, i, &ch); i++) {
        if (!is_renamed(&ch) && ch.now.dtype == ch.was.dtype)
            continue;
        cli_json_open(j, NULL, '{');
        cli_json_text(j, "file", in->items[ch.was.input].path);
        cli_json_counted(j, "name", ch.was.name, ch.was.name_len);
        cli_json_text(j, "dtype", decant_dtype_name(ch.was.dtype));
        cli_json_counted(j, "to_name", ch.now.name, ch.now.name_len);
        cli_json_text(j, "to_dtype", decant_dtype_name(ch.now.dtype));
        cli_json_close(j, '}');
    }
    cli_json_close(j, ']');
}
