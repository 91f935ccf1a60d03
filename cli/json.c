#include "json.h"

#include <inttypes.h>
#include <string.h>

#include "out.h"

static void put_string(FILE *out, const char *text, size_t len)
{
    fputc('"', out);
    for (size_t i = 0; i < len;) {
        size_t step = cli_utf8(text + i, len - i, NULL);
        unsigned char c = (unsigned char)text[i];

        if (step == 0)
            fputs("\\ufffd", out);
        else if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (c < 0x20 || c == 0x7F)
            fprintf(out, "\\u%04x", c);
        else
            fwrite(text + i, 1, step, out);
        i += step ? step : 1;
    }
    fputc('"', out);
}

/* What stands before every value. */
static void begin(cli_json *j, const char *key)
{
    if (j->comma)
        fputc(',', j->out);
    j->comma = true;
    if (key) {
        put_string(j->out, key, strlen(key));
        fputc(':', j->out);
    }
}

void cli_json_open(cli_json *j, const char *key, char bracket)
{
    begin(j, key);
    fputc(bracket, j->out);
    j->comma = false;
}

void cli_json_close(cli_json *j, char bracket)
{
    fputc(bracket, j->out);
    j->comma = true;
}

void cli_json_text(cli_json *j, const char *key, const char *text)
{
    if (text && text[0]) {
        cli_json_counted(j, key, text, strlen(text));
    } else {
        begin(j, key);
        fputs("null", j->out);
    }
}

void cli_json_counted(cli_json *j, const char *key, const char *text, size_t len)
{
    begin(j, key);
    put_string(j->out, text, len);
}

void cli_json_count(cli_json *j, const char *key, uint64_t count)
{
    begin(j, key);
    fprintf(j->out, "%" PRIu64, count);
}

void cli_json_bytes(cli_json *j, const char *key, uint64_t bytes)
{
    begin(j, key);
    fprintf(j->out, "\"%" PRIu64 "\"", bytes);
}

void cli_json_real(cli_json *j, const char *key, double value)
{
    begin(j, key);
    fprintf(j->out, "%.6f", value);
}

void cli_json_bool(cli_json *j, const char *key, bool value)
{
    begin(j, key);
    fputs(value ? "true" : "false", j->out);
}

void cli_json_shape(cli_json *j, const char *key, const uint64_t *shape, size_t rank)
{
    cli_json_open(j, key, '[');
    for (size_t i = 0; i < rank; i++)
        cli_json_count(j, NULL, shape[i]);
    cli_json_close(j, ']');
}

void cli_json_reader(cli_json *j, const char *program, const char *why_not)
{
    cli_json_open(j, NULL, '{');
    cli_json_text(j, "by", program);
    cli_json_text(j, "why_not", why_not);
    cli_json_close(j, '}');
}
