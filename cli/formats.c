#include "cli.h"
#include "out.h"

#include <unistd.h>

static int run(cli *c)
{
    decant_format_info info = {.size = sizeof info};
    bool people = isatty(STDOUT_FILENO);

    if (c->args.json)
        cli_json_open(&c->json, "formats", '[');
    else if (people)
        puts("format        extension      reads  writes");
    for (size_t i = 0; decant_format(i, &info); i++) {
        if (c->args.json) {
            cli_json_open(&c->json, NULL, '{');
            cli_json_text(&c->json, "format", info.name);
            cli_json_text(&c->json, "extension", info.extension);
            cli_json_bool(&c->json, "reads", info.reads);
            cli_json_bool(&c->json, "writes", info.writes);
            cli_json_close(&c->json, '}');
        } else {
            printf(people ? "%-13s .%-13s %-6s %s\n" : "%s\t.%s\t%s\t%s\n", info.name, info.extension,
                   info.reads ? "yes" : "no", info.writes ? "yes" : "no");
        }
    }
    if (c->args.json)
        cli_json_close(&c->json, ']');
    return CLI_DONE;
}

const cli_command cli_formats = {
    .name = "formats",
    .usage = "",
    .summary = "what this build reads and writes",
    .examples = "  decant formats\n",
    .bit = CLI_FORMATS,
    .max_files = 0,
    .run = run,
};
