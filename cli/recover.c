#include "cli.h"
#include "out.h"

#include <string.h>

static const char *const stages[] = {
    [DECANT_STAGE_LIVE] = "live",     [DECANT_STAGE_BEGUN] = "begun",     [DECANT_STAGE_COMPLETE] = "complete",
    [DECANT_STAGE_MOVING] = "moving", [DECANT_STAGE_UNDOING] = "undoing",
};

static size_t count_published(const decant_recovery *recovery, size_t save)
{
    const char *path;
    uint64_t bytes;
    size_t count = 0;
    int published;

    for (size_t i = 0; decant_recovery_file(recovery, save, i, &path, &bytes, &published); i++)
        count += published != 0;
    return count;
}

static void put_json(cli_json *j, const decant_recovery *recovery)
{
    decant_recovered save = {.size = sizeof save};
    const char *path;
    uint64_t bytes;
    int published;

    cli_json_open(j, "saves", '[');
    for (size_t i = 0; decant_recovery_save(recovery, i, &save); i++) {
        cli_json_open(j, NULL, '{');
        cli_json_text(j, "file", save.path);
        cli_json_text(j, "stage", stages[save.stage]);
        cli_json_bool(j, "done", save.done);
        cli_json_bytes(j, "bytes", save.bytes);
        cli_json_bytes(j, "moved", save.moved);
        cli_json_bytes(j, "to_move", save.to_move);
        cli_json_count(j, "given", save.given_count);
        cli_json_count(j, "incomplete", save.incomplete_count);
        cli_json_bytes(j, "finish_room", save.finish_room);
        cli_json_bytes(j, "undo_room", save.undo_room);
        cli_json_open(j, "files", '[');
        for (size_t k = 0; decant_recovery_file(recovery, i, k, &path, &bytes, &published); k++) {
            cli_json_open(j, NULL, '{');
            cli_json_text(j, "file", path);
            cli_json_bytes(j, "size", bytes);
            cli_json_bool(j, "published", published);
            cli_json_close(j, '}');
        }
        cli_json_close(j, ']');
        cli_json_close(j, '}');
    }
    cli_json_close(j, ']');
}

static void put_command(const char *label, const char *flag, const char *path, const char *then)
{
    printf("  %-8s decant recover %s ", label, flag);
    cli_put_word(stdout, path);
    printf("     %s\n", then);
}

static void put_room(char out[64], uint64_t room, const char *then)
{
    char number[CLI_NUMBER];

    snprintf(out, 64, "about %s needed%s", cli_size(number, room), then);
}

/* Both ways, and what is not to be used meanwhile. */
static void show_moving(const decant_recovered *save)
{
    char moved[CLI_NUMBER], all[CLI_NUMBER], then[64];

    if (save->stage == DECANT_STAGE_MOVING) {
        printf(": interrupted, %s of %s moved, nothing is lost\n", cli_size(moved, save->moved),
               cli_size(all, save->to_move));
        put_room(then, save->finish_room, "");
        put_command("finish", "--resume", save->path, then);
    } else {
        printf(": interrupted while it was undone, %s of %s still to be put back, nothing is lost\n",
               cli_size(moved, save->moved), cli_size(all, save->to_move));
    }
    put_room(then, save->undo_room, ", inputs as before");
    put_command("undo", "--undo", save->path, then);
}

/* The answer: what is there, and what can be done. */
static void show(const decant_recovery *recovery, size_t index, const decant_recovered *save)
{
    char number[CLI_NUMBER];

    cli_put_text(stdout, save->path, strlen(save->path), SIZE_MAX);
    switch (save->stage) {
    case DECANT_STAGE_LIVE:
        puts(": is being written now");
        break;
    case DECANT_STAGE_BEGUN:
        if (!save->file_count)
            puts(": interrupted before anything was written; nothing is lost");
        else
            printf(": interrupted before all of its %zu file%s, %s, %s written; nothing is lost\n", save->file_count,
                   cli_plural(save->file_count), cli_size(number, save->bytes), save->file_count == 1 ? "was" : "were");
        put_command("undo", "--undo", save->path, "as before; then save again");
        break;
    case DECANT_STAGE_MOVING:
    case DECANT_STAGE_UNDOING:
        show_moving(save);
        break;
    case DECANT_STAGE_COMPLETE:
        printf(": interrupted when all was written, %zu of %zu file%s in place; nothing is lost\n",
               count_published(recovery, index), save->file_count, cli_plural(save->file_count));
        put_command("finish", "--resume", save->path, "all in place");
        break;
    }
    if (save->incomplete_count)
        printf("  until then %zu input%s incomplete and end%s in .moving\n", save->incomplete_count,
               save->incomplete_count == 1 ? " is" : "s are", save->incomplete_count == 1 ? "s" : "");
}

/* What was done, on standard error: it is no answer. */
static void tell(const cli *c, const decant_recovery *recovery, size_t index, const decant_recovered *save)
{
    size_t published = count_published(recovery, index);

    cli_put_text(stderr, save->path, strlen(save->path), SIZE_MAX);
    if (c->args.resume && published == save->file_count)
        fprintf(stderr, published == 1 ? ": finished, it is in place" : ": finished, all %zu files are in place",
                published);
    else if (c->args.resume)
        fprintf(stderr, ": finished, %zu of %zu files are in place; the others were replaced or moved away since",
                published, save->file_count);
    else
        fputs(": undone, all is as it was before", stderr);
    if (c->args.resume && save->given_count)
        fprintf(stderr, "; %zu input%s gone", save->given_count, save->given_count == 1 ? " is" : "s are");
    fputc('\n', stderr);
}

static int run(cli *c)
{
    const char *path = c->args.file_count ? c->args.files[0] : ".";
    decant_recover_options options = DECANT_RECOVER_OPTIONS_INIT;
    decant_recovered save = {.size = sizeof save};
    decant_recovery *recovery = NULL;
    decant_error err = {0};
    int status = CLI_DONE;

    if (c->args.resume && c->args.undo)
        return cli_misuse(c, "give one of them, or none to see what there is",
                          "--resume and --undo exclude each other");
    options.direction = c->args.resume ? DECANT_RECOVER_RESUME
                        : c->args.undo ? DECANT_RECOVER_UNDO
                                       : DECANT_RECOVER_SHOW;
    if (decant_recover(path, &options, &recovery, &err))
        status = cli_fail(c, &err, DECANT_SIDE_OUTPUT, path);
    if (recovery && c->args.json)
        put_json(&c->json, recovery);
    for (size_t i = 0; recovery && decant_recovery_save(recovery, i, &save); i++) {
        if (options.direction == DECANT_RECOVER_SHOW && save.stage != DECANT_STAGE_LIVE && status < CLI_INTERRUPTED)
            status = CLI_INTERRUPTED;
        if (c->args.json)
            continue;
        if (options.direction == DECANT_RECOVER_SHOW)
            show(recovery, i, &save);
        else if (save.done && !c->args.quiet)
            tell(c, recovery, i, &save);
    }
    if (status == CLI_DONE && !decant_recovery_save(recovery, 0, &save) && !c->args.json && !c->args.quiet) {
        fputs("nothing is interrupted ", stderr);
        fputs(c->args.file_count ? "at " : "here", stderr);
        cli_put_text(stderr, path, c->args.file_count ? strlen(path) : 0, SIZE_MAX);
        fputc('\n', stderr);
    }
    decant_recovery_close(&recovery);
    return status;
}

const cli_command cli_recover = {
    .name = "recover",
    .usage = "[PATH]",
    .summary = "show, finish or undo an interrupted --consume or set of files",
    .examples = "  decant recover                                        # what is interrupted in this folder?\n"
                "  decant recover --resume model.safetensors.index.json\n"
                "  decant recover --undo llama-70b.safetensors\n",
    .bit = CLI_RECOVER,
    .max_files = 1,
    .run = run,
};
