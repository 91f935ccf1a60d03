/*
 * Any bytes as a manifest of decant digest: what is taken is printed and taken again, and is the same. And any bytes as the
 * name of a tensor: printed and read back, they are what they were.
 */
#include <stdlib.h>

#include "../../cli/manifest.c"
#include "../../cli/out.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static decant_status take(cli_manifest *m, const void *data, size_t size)
{
    FILE *in = size ? fmemopen((void *)(uintptr_t)data, size, "r") : NULL;
    decant_error err = {0};
    decant_status rc;

    if (!in)
        return DECANT_MALFORMED;
    rc = read_lines(m, in, &err);
    require(rc == err.status);
    fclose(in);
    return rc;
}

/* As decant digest would have printed it. */
static void print(const cli_manifest *m, FILE *out)
{
    for (size_t s = 0; s < m->section_count; s++) {
        for (size_t i = 0; i < m->count; i++) {
            if (m->lines[i].section != s)
                continue;
            fprintf(out, "sha256  %s  ", m->lines[i].hex);
            cli_put_exact(out, m->sections[s].file, strlen(m->sections[s].file));
            fputc(':', out);
            cli_put_exact(out, m->lines[i].name, m->lines[i].name_len);
            fputc('\n', out);
        }
        fprintf(out, "model  %s  ", m->sections[s].hex);
        cli_put_exact(out, m->sections[s].file, strlen(m->sections[s].file));
        fputc('\n', out);
    }
}

static void check_same(const cli_manifest *a, const cli_manifest *b)
{
    require(a->count == b->count && a->section_count == b->section_count);
    for (size_t i = 0; i < a->section_count; i++)
        require(strcmp(a->sections[i].file, b->sections[i].file) == 0);
    for (size_t i = 0; i < a->count; i++) {
        size_t count;
        cli_line *found = cli_manifest_find(b, a->lines[i].name, a->lines[i].name_len, &count);

        require(found && count >= 1);
    }
}

static void check_name(const uint8_t *data, size_t size)
{
    char *text = NULL;
    size_t len = 0, again;
    FILE *out = open_memstream(&text, &len);

    require(out != NULL);
    cli_put_exact(out, (const char *)data, size);
    require(fclose(out) == 0 && strlen(text) == len && !strchr(text, '\n'));
    require(take_exact(text, &again) && again == size && memcmp(text, data, size) == 0);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cli_manifest m = {0}, again = {0};
    char *text = NULL;
    size_t len = 0;
    FILE *out;

    check_name(data, size);
    if (take(&m, data, size) == DECANT_OK) {
        out = open_memstream(&text, &len);
        require(out != NULL);
        print(&m, out);
        require(fclose(out) == 0 && take(&again, text, len) == DECANT_OK);
        check_same(&m, &again);
        free(text);
    }
    cli_manifest_close(&again);
    cli_manifest_close(&m);
    return 0;
}
