#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli.h"
#include "out.h"
#include "signals.h"

static const cli_command *const commands[] = {&cli_convert, &cli_plan,    &cli_inspect, &cli_ls,      &cli_diff,
                                              &cli_digest,  &cli_verify,  &cli_extract, &cli_recover, &cli_edit,
                                              &cli_cat,     &cli_formats, NULL};

/* --- help ----------------------------------------------------------------------------------------------------------- */

static void help_all(FILE *out)
{
    fputs("decant pours model weights from one file into another without spilling a byte.\n\n"
          "  decant inspect model.safetensors                  what is it?\n"
          "  decant plan    model.safetensors -o model.bpk     what would happen?\n"
          "  decant convert model.safetensors -o model.bpk     do it\n"
          "  decant diff    model.safetensors model.bpk        nothing lost?\n"
          "  decant digest  model.bpk > model.digest           keep the proof\n\n"
          "commands:\n",
          out);
    for (size_t i = 0; commands[i]; i++)
        fprintf(out, "  %-8s %-14s %s\n", commands[i]->name, commands[i]->usage, commands[i]->summary);
    fputs("  help     [COMMAND]      this, or how a command is used\n\n"
          "decant COMMAND --help and the man pages say more. decant --version prints the version.\n",
          out);
}

static void help_command(const cli_command *command)
{
    printf("decant %s: %s\n\n%s\nusage: decant %s [FLAGS] %s\n\n", command->name, command->summary, command->examples,
           command->name, command->usage);
    cli_args_help(stdout, command->bit);
}

/* --- failures ------------------------------------------------------------------------------------------------------- */

/* What to do next, where the error does not say. */
const char *cli_hint(decant_status status, bool input)
{
    switch (status) {
    case DECANT_NOMEM:
        return "close other programs, or lift a memory limit";
    case DECANT_NOT_FOUND:
        return input ? "check the path" : "make the folder first, or check the path";
    case DECANT_DENIED:
        return input ? "check the permissions of the file and its folder" : "check the permissions of the folder";
    case DECANT_IO:
        return "check the disk and try again";
    case DECANT_NO_SPACE:
        return "free some room, or choose another disk with -o";
    case DECANT_EXISTS:
        return "use -f to replace it, or choose another name";
    case DECANT_SAME_FILE:
        return "choose another name, or use -f to replace it";
    case DECANT_BUSY:
        return "wait for the other program, or choose another name";
    case DECANT_TRUNCATED:
        return "fetch or copy the file again";
    case DECANT_MALFORMED:
        return "fetch the file again, or write it again with the program that made it";
    case DECANT_LIMIT:
        return input ? "if you trust the file, --allow limits" : "choose another format, or --allow limits";
    case DECANT_UNSUPPORTED:
        return "see decant formats";
    case DECANT_DUPLICATE:
    case DECANT_MISMATCH:
        return "write the file again with the program that made it";
    case DECANT_LOSS:
        return "choose another format, or --allow loss";
    case DECANT_CHANGED:
        return "wait until nobody writes to it, and try again";
    case DECANT_CANCELLED:
        return "nothing was left over, run it again";
    case DECANT_NOT_DURABLE:
        return "run sync before you rely on it";
    case DECANT_NOT_REMOVED:
        return "remove it by hand, or it may be loaded in place of the new one";
    case DECANT_INTERRUPTED:
    case DECANT_PUBLISH_PENDING:
        return "decant recover shows what can be done";
    default:
        return "please report this as a bug of decant";
    }
}

static int exit_for(const decant_error *err)
{
    bool input = err->side == DECANT_SIDE_INPUT;

    switch (err->status) {
    case DECANT_OK:
        return CLI_DONE;
    case DECANT_BAD_CALL: /* by what was typed, unless the library says that it is about a file */
        return err->side == DECANT_SIDE_NONE ? CLI_USAGE : input ? CLI_INPUT : CLI_OUTPUT;
    case DECANT_NOT_DURABLE:
    case DECANT_NOT_REMOVED:
        return CLI_RESERVED;
    case DECANT_INTERRUPTED:
    case DECANT_PUBLISH_PENDING:
        return CLI_INTERRUPTED;
    case DECANT_CANCELLED:
        return cli_signals_caught() ? 128 + cli_signals_caught() : CLI_OUTPUT;
    case DECANT_NOMEM:
    case DECANT_EXISTS:
    case DECANT_SAME_FILE:
    case DECANT_BUSY:
    case DECANT_NO_SPACE:
        return CLI_OUTPUT;
    case DECANT_LOSS: /* the input cannot go there, whatever the place is like */
        return CLI_INPUT;
    default:
        return input ? CLI_INPUT : CLI_OUTPUT;
    }
}

int cli_fail(cli *c, decant_error *err, decant_side side, const char *file)
{
    int status;

    if (err->side != DECANT_SIDE_INPUT && err->side != DECANT_SIDE_OUTPUT)
        err->side = side;
    if (!err->path[0] && file)
        cli_escape(err->path, sizeof err->path, file);
    if (!err->hint[0])
        snprintf(err->hint, sizeof err->hint, "%s", cli_hint(err->status, err->side == DECANT_SIDE_INPUT));

    status = exit_for(err);
    c->last = *err;
    if (status > c->exit) {
        c->exit = status;
        c->error = *err;
    }
    if (!c->args.json)
        fprintf(stderr, "decant: %s\n", decant_error_text(err));
    return status;
}

int cli_fail_nomem(cli *c)
{
    decant_error err = {0};

    (void)decant_error_set(&err, DECANT_NOMEM, "out of memory");
    return cli_fail(c, &err, DECANT_SIDE_NONE, NULL);
}

int cli_misuse(cli *c, const char *hint, const char *format, ...)
{
    decant_error err = {0};
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    (void)decant_error_set(&err, DECANT_BAD_CALL, "%s", text);
    snprintf(err.hint, sizeof err.hint, "%s", hint);
    return cli_fail(c, &err, DECANT_SIDE_NONE, NULL);
}

void cli_json_error(cli_json *j, const decant_error *err, const char *file)
{
    bool usage = err->status == DECANT_BAD_CALL && err->side == DECANT_SIDE_NONE;

    cli_json_text(j, "code", usage ? "usage" : decant_status_name(err->status));
    cli_json_text(j, "message", err->message);
    cli_json_text(j, "file", file);
    cli_json_text(j, "tensor", err->tensor);
    cli_json_text(j, "found", err->found);
    cli_json_text(j, "expected", err->expected);
    cli_json_text(j, "hint", err->hint);
}

/* The field "error": null where there is none. */
static void put_json_error(cli_json *j, const decant_error *err)
{
    if (err->status == DECANT_OK) {
        cli_json_text(j, "error", NULL);
        return;
    }
    cli_json_open(j, "error", '{');
    cli_json_error(j, err, err->path);
    cli_json_close(j, '}');
}

/* --- inputs --------------------------------------------------------------------------------------------------------- */

/* What is odd about an input is never silent: leniency that was asked for, a name that misleads, keys that will be lost. */
static void say_what_was_odd(const cli *c, const char *path, const decant_model *model)
{
    const char *key, *text;

    if (c->command == &cli_inspect || c->args.quiet || c->args.json)
        return; /* inspect shows it as part of its answer, and so does every command under --json */
    for (size_t i = 0; decant_model_note(model, i, &key, &text) == DECANT_OK; i++) {
        if (strcmp(key, "odd") != 0)
            continue;
        fputs("decant: ", stderr);
        cli_put_text(stderr, path, strlen(path), SIZE_MAX);
        fprintf(stderr, ": odd: %s\n", text);
    }
}

void cli_json_odd(cli_json *j, const char *key, const decant_model *model)
{
    const char *kind, *text;

    if (key)
        cli_json_open(j, key, '[');
    for (size_t i = 0; decant_model_note(model, i, &kind, &text) == DECANT_OK; i++)
        if (strcmp(kind, "odd") == 0)
            cli_json_text(j, NULL, text);
    if (key)
        cli_json_close(j, ']');
}

const char *cli_input_path(const char *path)
{
    return strcmp(path, "-") == 0 ? "/dev/stdin" : path;
}

int cli_open(cli *c, const char *path, decant_model **out)
{
    decant_open_options options = {.size = sizeof options, .allow = c->args.allow};
    decant_error err = {0};

    if (c->args.lenient)
        options.lenient = DECANT_LENIENT_ALL;
    options.owned = c->args.consume && !(c->command->bit & CLI_EDIT); /* which gives up what it puts in, not FILE */
    path = cli_input_path(path);
    if (decant_open(path, &options, out, &err))
        return cli_fail(c, &err, DECANT_SIDE_INPUT, path);
    say_what_was_odd(c, path, *out);
    return CLI_DONE;
}

void cli_file_begin(cli *c, const char *path)
{
    c->last = (decant_error){0};
    if (c->args.json) {
        cli_json_open(&c->json, NULL, '{');
        cli_json_text(&c->json, "file", path);
    }
}

void cli_file_end(cli *c)
{
    if (c->args.json) {
        put_json_error(&c->json, &c->last);
        cli_json_close(&c->json, '}');
    }
}

int cli_each_file(cli *c, void (*show)(cli *c, const char *path, const decant_model *model))
{
    cli_count_once(c);
    if (c->args.json)
        cli_json_open(&c->json, "files", '[');
    for (size_t i = 0; i < c->args.file_count; i++) {
        const char *path = c->args.files[i];
        decant_model *model = NULL;

        cli_file_begin(c, path);
        if (cli_open(c, path, &model) == CLI_DONE)
            show(c, path, model);
        cli_file_end(c);
        decant_model_close(&model);
    }
    if (c->args.json)
        cli_json_close(&c->json, ']');
    return c->exit;
}

/* --- one run -------------------------------------------------------------------------------------------------------- */

/* The document: its head, which knows how the run ended, then the fields that the command wrote. */
static void put_document(const cli *c, const char *command, const char *fields, size_t len)
{
    cli_json j = {.out = stdout};

    cli_json_open(&j, NULL, '{');
    cli_json_text(&j, "schema", "decant/1");
    cli_json_text(&j, "command", command);
    cli_json_bool(&j, "ok", c->exit == CLI_DONE);
    cli_json_count(&j, "exit", (uint64_t)c->exit);
    put_json_error(&j, &c->error);
    if (len) {
        fputc(',', stdout);
        fwrite(fields, 1, len, stdout);
    }
    fputs("}\n", stdout);
}

static const cli_command *find_command(const char *name)
{
    for (size_t i = 0; commands[i]; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

static int unknown_command(cli *c, const char *name)
{
    const char *names[sizeof commands / sizeof(void *)] = {0}, *close;
    char hint[256] = "decant --help shows what there is";

    for (size_t i = 0; commands[i]; i++)
        names[i] = commands[i]->name;
    close = cli_closest(name, names);
    if (close)
        snprintf(hint, sizeof hint, "did you mean decant %s?", close);
    return cli_misuse(c, hint, "unknown command '%s'", name);
}

static int run_command(cli *c, int count, char **argv)
{
    const cli_command *command = c->command;
    decant_error err = {0};
    char hint[256];

    snprintf(hint, sizeof hint, "see decant %s --help", command->name);
    if (cli_args_parse(&c->args, command->bit, count, argv, hint, &err))
        return err.status == DECANT_NOMEM ? cli_fail(c, &err, DECANT_SIDE_NONE, NULL)
                                          : cli_misuse(c, hint, "%s", err.message);
    if (c->args.help) {
        help_command(command);
        return CLI_DONE;
    }
    if (c->args.version) {
        printf("decant %s\n", decant_version());
        return CLI_DONE;
    }
    if (c->args.file_count < command->min_files || c->args.file_count > command->max_files)
        return cli_misuse(c, hint, "%s: %zu file%s given, expected %s", command->name, c->args.file_count,
                          cli_plural(c->args.file_count), command->usage[0] ? command->usage : "none");
    for (size_t i = 0; i < c->args.file_count && c->args.consume; i++)
        if (strcmp(c->args.files[i], "-") == 0)
            return cli_misuse(c, "name the file", "standard input cannot be given up: it has no name that could go");
    return command->run(c);
}

static int run(cli *c, int count, char **argv)
{
    const char *name = count > 0 ? argv[0] : NULL;

    if (!name) {
        help_all(stderr);
        return CLI_USAGE;
    }
    if (strcmp(name, "--version") == 0) {
        c->args.version = true;
        printf("decant %s\n", decant_version());
        return CLI_DONE;
    }
    if (strcmp(name, "help") == 0 && count > 1) {
        c->command = find_command(argv[1]);
        if (!c->command)
            return unknown_command(c, argv[1]);
        c->args.help = true;
        help_command(c->command);
        return CLI_DONE;
    }
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        c->args.help = true;
        help_all(stdout);
        return CLI_DONE;
    }
    if (name[0] == '-')
        return cli_misuse(c, "decant --help shows how", "a command comes first, not '%s'", name);
    c->command = find_command(name);
    return c->command ? run_command(c, count - 1, argv + 1) : unknown_command(c, name);
}

/* --- the streams ---------------------------------------------------------------------------------------------------- */

/*
 * A program started with a standard stream closed would get its number for a file it opens, and print into a model. What
 * stands there instead cannot be used: writing to it fails, and is noticed.
 */
static void occupy_closed_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF &&
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
            _exit(CLI_OUTPUT);
}

/* A set may have thousands of shards, each a descriptor. */
static void allow_many_files(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* An answer that could not be printed was not given; a file that was saved stays saved. */
static int flush_answer(cli *c, int status)
{
    decant_error err = {0};
    int failed = fflush(stdout) ? errno : 0;

    if (!failed && !ferror(stdout))
        return status;
    (void)decant_error_set(&err, DECANT_IO, "could not be written: %s", failed ? strerror(failed) : "write error");
    snprintf(err.hint, sizeof err.hint, "see where standard output goes");
    c->args.json = false; /* there is no other place left to say it */
    (void)cli_fail(c, &err, DECANT_SIDE_OUTPUT, "standard output");
    if (c->saved && status == CLI_DONE)
        return CLI_RESERVED;
    return status > CLI_OUTPUT ? status : CLI_OUTPUT;
}

int main(int argc, char **argv)
{
    cli c = {.exit = CLI_DONE};
    char *fields = NULL;
    size_t len = 0;
    int status;

    occupy_closed_streams();
    cli_signals_install();
    allow_many_files();

    c.args.json = cli_args_json(argc - 1, argv + 1);
    if (c.args.json && !(c.json.out = open_memstream(&fields, &len))) {
        fputs("decant: out of memory; close other programs\n", stderr);
        return CLI_OUTPUT;
    }
    status = run(&c, argc - 1, argv + 1);
    c.exit = status > c.exit ? status : c.exit;
    cli_args_close(&c.args);

    if (c.json.out) {
        bool whole = !ferror(c.json.out);

        if (fclose(c.json.out) || !whole) {
            c.exit = CLI_OUTPUT;
            (void)decant_error_set(&c.error, DECANT_NOMEM, "out of memory");
            len = 0;
        }
        if (!c.args.help && !c.args.version)
            put_document(&c, c.command ? c.command->name : argc > 1 ? argv[1] : NULL, fields, len);
        free(fields);
    }
    status = flush_answer(&c, c.exit);
    if (status == 128 + cli_signals_caught())
        cli_signals_die(cli_signals_caught());
    return status;
}
