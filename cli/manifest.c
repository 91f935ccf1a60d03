#include "manifest.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "out.h"

enum { HEX = DECANT_DIGEST - 1 };

/* --- exact text ------------------------------------------------------------------------------------------------------ */

void cli_put_exact(FILE *out, const char *text, size_t len)
{
    for (const char *at = text, *end = text + len, *stop; at < end; at = stop) {
        stop = memchr(at, '\\', (size_t)(end - at));
        stop = stop ? stop : end;
        cli_put_text(out, at, (size_t)(stop - at), SIZE_MAX);
        if (stop < end) {
            fputs("\\\\", out);
            stop++;
        }
    }
}

static size_t put_utf8(char *out, unsigned long code)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xC0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3F));
        return 2;
    }
    out[0] = (char)(0xE0 | code >> 12);
    out[1] = (char)(0x80 | (code >> 6 & 0x3F));
    out[2] = (char)(0x80 | (code & 0x3F));
    return 3;
}

/* What one escape stands for: "\\", "\xNN", "\u{NNNN}". Gives its end, NULL if it is none. */
static const char *read_escape(const char *at, char *out, size_t *len)
{
    char *end;
    unsigned long code;
    char two[3] = {0};

    if (at[1] == '\\') {
        *len = 1;
        *out = '\\';
        return at + 2;
    }
    if (at[1] == 'x') {
        memcpy(two, at + 2, strnlen(at + 2, 2));
        code = strtoul(two, &end, 16);
        *out = (char)code;
        *len = 1;
        return end == two + 2 ? at + 4 : NULL;
    }
    if (at[1] != 'u' || at[2] != '{')
        return NULL;
    code = strtoul(at + 3, &end, 16);
    if (*end != '}' || code > 0xFFFF)
        return NULL;
    *len = put_utf8(out, code);
    return end + 1;
}

/* Undoes cli_put_exact(), where it stands. False if that never printed this. */
static bool take_exact(char *text, size_t *len)
{
    char *to = text;

    for (const char *at = text; *at;) {
        size_t n = 1;

        if (*at != '\\') {
            *to++ = *at++;
            continue;
        }
        at = read_escape(at, to, &n);
        if (!at)
            return false;
        to += n;
    }
    *to = '\0';
    *len = (size_t)(to - text);
    return true;
}

/* --- lines ----------------------------------------------------------------------------------------------------------- */

/* "WORD  HEX  ": what comes behind, NULL if it does not begin so. */
static char *after_hex(char *line, const char *word, char hex[DECANT_DIGEST])
{
    size_t len = strlen(word);

    if (strncmp(line, word, len) != 0 || strspn(line + len, "0123456789abcdef") != HEX ||
        strncmp(line + len + HEX, "  ", 2) != 0)
        return NULL;
    memcpy(hex, line + len, HEX);
    hex[HEX] = '\0';
    return line + len + HEX + 2;
}

static decant_status no_memory(decant_error *err)
{
    return decant_error_set(err, DECANT_NOMEM, "out of memory");
}

/* Its name still has the file in front, as it was printed. */
static decant_status add_line(cli_manifest *m, const char *hex, const char *text, decant_error *err)
{
    cli_line line = {.section = m->section_count};

    if (m->count == m->cap) {
        size_t cap = 2 * m->cap + 64;
        cli_line *lines = realloc(m->lines, cap * sizeof *lines);

        if (!lines)
            return no_memory(err);
        m->lines = lines;
        m->cap = cap;
    }
    memcpy(line.hex, hex, sizeof line.hex);
    if (!(line.name = strdup(text)))
        return no_memory(err);
    m->lines[m->count++] = line;
    return DECANT_OK;
}

/* The last line of a section: now it is known where the file ends in those before it and the name begins. */
static decant_status end_section(cli_manifest *m, const char *hex, const char *text, decant_error *err)
{
    cli_section *sections = realloc(m->sections, (m->section_count + 1) * sizeof *sections), *section;
    size_t len = strlen(text), file_len;

    if (!sections)
        return no_memory(err);
    m->sections = sections;
    section = &sections[m->section_count];
    memcpy(section->hex, hex, sizeof section->hex);
    if (!(section->file = strdup(text)))
        return no_memory(err);
    for (size_t i = m->count; i-- > 0 && m->lines[i].section == m->section_count;) {
        cli_line *line = &m->lines[i];

        if (strncmp(line->name, text, len) != 0 || line->name[len] != ':') {
            m->section_count++;
            return decant_error_set(err, DECANT_MALFORMED, "a tensor's line names another file than its model's");
        }
        memmove(line->name, line->name + len + 1, strlen(line->name) - len);
        if (!take_exact(line->name, &line->name_len)) {
            m->section_count++;
            return decant_error_set(err, DECANT_MALFORMED, "a name with an escape that digest does not print");
        }
    }
    m->section_count++;
    if (!take_exact(section->file, &file_len) || strlen(section->file) != file_len)
        return decant_error_set(err, DECANT_MALFORMED, "a file with an escape that digest does not print");
    return DECANT_OK;
}

static decant_status take_line(cli_manifest *m, char *line, size_t number, decant_error *err)
{
    char hex[DECANT_DIGEST], *text;

    if ((text = after_hex(line, "sha256  ", hex)))
        return add_line(m, hex, text, err);
    if ((text = after_hex(line, "model  ", hex)))
        return end_section(m, hex, text, err);
    return decant_error_set(err, DECANT_MALFORMED, "line %zu is none that decant digest prints", number);
}

static int compare_name(const cli_line *line, const char *name, size_t len)
{
    int order = memcmp(line->name, name, line->name_len < len ? line->name_len : len);

    return order ? order : (line->name_len > len) - (line->name_len < len);
}

static int by_name(const void *a, const void *b)
{
    const cli_line *other = b;

    return compare_name(a, other->name, other->name_len);
}

static decant_status read_lines(cli_manifest *m, FILE *in, decant_error *err)
{
    char *line = NULL;
    size_t room = 0, number = 0;
    ssize_t len;
    decant_status rc = DECANT_OK;

    while (rc == DECANT_OK && (len = getline(&line, &room, in)) > 0) {
        number++;
        if (line[len - 1] != '\n' || strlen(line) != (size_t)len) {
            rc = decant_error_set(err, DECANT_MALFORMED, "line %zu is cut", number);
            break;
        }
        line[len - 1] = '\0';
        rc = take_line(m, line, number, err);
    }
    if (rc == DECANT_OK && ferror(in))
        rc = decant_error_set(err, DECANT_IO, "%s", strerror(errno));
    free(line);
    if (rc)
        return rc;
    if (m->section_count == 0 || (m->count && m->lines[m->count - 1].section == m->section_count))
        return decant_error_set(err, DECANT_TRUNCATED, "it does not end with a model's line");
    if (m->count)
        qsort(m->lines, m->count, sizeof *m->lines, by_name);
    return DECANT_OK;
}

decant_status cli_manifest_read(cli_manifest *m, const char *path, decant_error *err)
{
    FILE *in = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    int failed = errno;
    decant_status rc;

    if (!in)
        return decant_error_set(err,
                                failed == ENOENT   ? DECANT_NOT_FOUND
                                : failed == EACCES ? DECANT_DENIED
                                                   : DECANT_IO,
                                "%s", strerror(failed));
    rc = read_lines(m, in, err);
    if (in != stdin)
        fclose(in);
    if (rc == DECANT_MALFORMED || rc == DECANT_TRUNCATED)
        snprintf(err->hint, sizeof err->hint, "keep all that decant digest prints, or print it again");
    return rc;
}

/* --- asking ---------------------------------------------------------------------------------------------------------- */

cli_line *cli_manifest_find(const cli_manifest *m, const char *name, size_t name_len, size_t *count)
{
    size_t low = 0, high = m->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (compare_name(&m->lines[middle], name, name_len) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (*count = 0; low + *count < m->count && compare_name(&m->lines[low + *count], name, name_len) == 0; ++*count)
        ;
    return *count ? &m->lines[low] : NULL;
}

static const char *last_component(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

const cli_section *cli_manifest_section(const cli_manifest *m, const char *path)
{
    const cli_section *found = NULL;
    size_t count = 0;

    for (size_t i = 0; i < m->section_count; i++) {
        if (strcmp(m->sections[i].file, path) == 0)
            return &m->sections[i];
        if (strcmp(last_component(m->sections[i].file), last_component(path)) == 0) {
            found = &m->sections[i];
            count++;
        }
    }
    return count == 1 ? found : NULL;
}

void cli_manifest_close(cli_manifest *m)
{
    for (size_t i = 0; i < m->count; i++)
        free(m->lines[i].name);
    for (size_t i = 0; i < m->section_count; i++)
        free(m->sections[i].file);
    free(m->lines);
    free(m->sections);
    *m = (cli_manifest){0};
}
