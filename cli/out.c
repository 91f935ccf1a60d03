#include "out.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

const char *cli_thousands(char out[CLI_NUMBER], uint64_t value)
{
    char digits[CLI_NUMBER];
    int len = snprintf(digits, sizeof digits, "%" PRIu64, value), used = 0;

    for (int i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0)
            out[used++] = ',';
        out[used++] = digits[i];
    }
    out[used] = '\0';
    return out;
}

const char *cli_size(char out[CLI_NUMBER], uint64_t bytes)
{
    static const char *const units[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
    double value = (double)bytes / 1000;
    size_t unit = 0;

    if (bytes < 1000) {
        snprintf(out, CLI_NUMBER, "%" PRIu64 " byte%s", bytes, cli_plural(bytes));
        return out;
    }
    while (value >= 999.95 && unit + 1 < sizeof units / sizeof *units) {
        value /= 1000;
        unit++;
    }
    snprintf(out, CLI_NUMBER, "%.*f", value < 9.995 ? 2 : 1, value);
    while (strchr(out, '.') && (out[strlen(out) - 1] == '0' || out[strlen(out) - 1] == '.'))
        out[strlen(out) - 1] = '\0';
    snprintf(out + strlen(out), CLI_NUMBER - strlen(out), " %s", units[unit]);
    return out;
}

const char *cli_duration(char out[CLI_NUMBER], double seconds)
{
    if (seconds < 9.95)
        snprintf(out, CLI_NUMBER, "%.*f s", seconds < 1 ? 2 : 1, seconds);
    else if (seconds < 119.5)
        snprintf(out, CLI_NUMBER, "%.0f s", seconds);
    else
        snprintf(out, CLI_NUMBER, "%.0f min", seconds / 60);
    return out;
}

size_t cli_utf8(const char *text, size_t left, uint32_t *point)
{
    const unsigned char *p = (const unsigned char *)text;
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t len = p[0] < 0x80 ? 1 : p[0] >= 0xF0 ? 4 : p[0] >= 0xE0 ? 3 : p[0] >= 0xC0 ? 2 : 0;
    uint32_t code;

    if (len == 0 || len > left || p[0] > 0xF4)
        return 0;
    code = len == 1 ? p[0] : p[0] & (0x7Fu >> len);
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xC0) != 0x80)
            return 0;
        code = code << 6 | (p[i] & 0x3F);
    }
    if (code < least[len] || (code >= 0xD800 && code < 0xE000) || code > 0x10FFFF)
        return 0;
    if (point)
        *point = code;
    return len;
}

static bool is_unsafe(uint32_t code)
{
    return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x061C || code == 0x200E || code == 0x200F ||
           (code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069) || code == 0xFEFF;
}

/* One character made safe. Gives the bytes it takes of the text. */
static size_t safe_piece(const char *p, size_t left, char piece[16], size_t *bytes, size_t *columns)
{
    uint32_t code = 0;
    size_t step = cli_utf8(p, left, &code);

    if (step > 0 && !is_unsafe(code)) {
        memcpy(piece, p, step);
        *bytes = step;
        *columns = 1;
        return step;
    }
    *bytes = (size_t)(step <= 1 ? snprintf(piece, 16, "\\x%02x", (unsigned char)p[0])
                                : snprintf(piece, 16, "\\u{%04" PRIx32 "}", code));
    *columns = *bytes;
    return step ? step : 1;
}

static bool is_plain(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] < 0x20 || (unsigned char)text[i] >= 0x7F)
            return false;
    return true;
}

size_t cli_put_text(FILE *out, const char *text, size_t len, size_t most)
{
    const char *p = text, *end = text + len;
    size_t total = 0, used = 0, bytes, columns;
    char piece[16];

    if (len <= most && is_plain(text, len)) { /* as nearly all names are */
        if (out)
            fwrite(text, 1, len, out);
        return len;
    }
    for (const char *q = p; q < end && total <= most; total += columns)
        q += safe_piece(q, (size_t)(end - q), piece, &bytes, &columns);
    if (!out)
        return total <= most ? total : most;
    while (p < end) {
        p += safe_piece(p, (size_t)(end - p), piece, &bytes, &columns);
        if (total > most && used + columns + 3 > most) {
            fputs("...", out);
            return used + 3;
        }
        fwrite(piece, 1, bytes, out);
        used += columns;
    }
    return used;
}

void cli_escape(char *out, size_t size, const char *text)
{
    FILE *stream = fmemopen(out, size, "w");

    out[0] = '\0';
    if (!stream)
        return;
    cli_put_text(stream, text, strlen(text), size / 4 - 1); /* a column is at most four bytes */
    fclose(stream);
}

void cli_put_word(FILE *out, const char *text)
{
    const char *dash = *text == '-' ? "./" : ""; /* or it is taken for a flag */

    if (!strpbrk(text, " \t\n\\'\"`$&|;<>()*?[]{}#~!")) {
        fputs(dash, out);
        cli_put_text(out, text, strlen(text), SIZE_MAX);
        return;
    }
    fprintf(out, "'%s", dash);
    for (size_t len; *text; text += len) {
        len = strcspn(text, "'");
        cli_put_text(out, text, len, SIZE_MAX);
        if (text[len]) {
            fputs("'\\''", out);
            len++;
        }
    }
    fputc('\'', out);
}

size_t cli_put_shape(FILE *out, const uint64_t *shape, size_t rank)
{
    char number[CLI_NUMBER];
    size_t used = 2;

    if (out)
        fputc('[', out);
    for (size_t i = 0; i < rank; i++) {
        used += (size_t)snprintf(number, sizeof number, "%s%" PRIu64, i ? ", " : "", shape[i]);
        if (out)
            fputs(number, out);
    }
    if (out)
        fputc(']', out);
    return used;
}

void cli_put_place(FILE *out, const decant_tensor *tensor, uint64_t index)
{
    uint64_t place[DECANT_MAX_RANK], rest = index;

    if (tensor->rank > DECANT_MAX_RANK) {
        fprintf(out, "%" PRIu64, index);
        return;
    }
    for (size_t i = tensor->rank; i-- > 0; rest /= tensor->shape[i])
        place[i] = rest % tensor->shape[i];
    cli_put_shape(out, place, tensor->rank);
}

void cli_put_reader(FILE *out, size_t index, const char *program, const char *why_not)
{
    fprintf(out, "%s%s", index == 0 ? "" : why_not ? "; " : ", ", program);
    if (why_not)
        fprintf(out, ": %s", why_not);
}

void cli_put_spaces(FILE *out, size_t count)
{
    fprintf(out, "%*s", (int)count, "");
}

const char *cli_plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

decant_status cli_write_out(void *ctx, const void *data, size_t len, decant_error *err)
{
    const char *at = data, *end = at + len;

    (void)ctx;
    while (at < end) {
        ssize_t written = write(STDOUT_FILENO, at, (size_t)(end - at));

        if (written > 0)
            at += written;
        else if (written == 0 || errno != EINTR)
            return decant_error_set(err, DECANT_IO, "could not be written: %s", strerror(errno));
    }
    return DECANT_OK;
}
