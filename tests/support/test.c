#include "test.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "alloc.h"

static struct CMUnitTest *tests;
static size_t test_count;
static char folder[4096];

/* What cmocka calls: the test itself travels as the initial state. */
static void run_one(void **state)
{
    void (*run)(void);

    memcpy(&run, state, sizeof run);
    run();
}

static int remove_one(const char *path, const struct stat *facts, int type, struct FTW *walk)
{
    (void)facts;
    (void)type;
    (void)walk;
    return remove(path);
}

/* After every test: what it allocated is freed, what it made is removed. */
static int after_one(void **state)
{
    size_t left = test_alloc_live();

    (void)state;
    test_alloc_disarm();
    if (folder[0]) {
        nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
        folder[0] = '\0';
    }
    if (left) {
        fprintf(stderr, "%zu allocations are not freed\n", left);
        test_alloc_forget();
        return -1;
    }
    return 0;
}

void test_register(const char *name, void (*run)(void))
{
    struct CMUnitTest *more = realloc(tests, (test_count + 1) * sizeof *tests);

    if (!more)
        abort();
    tests = more;
    tests[test_count] = (struct CMUnitTest){.name = name, .test_func = run_one, .teardown_func = after_one};
    memcpy(&tests[test_count].initial_state, &run, sizeof run);
    test_count++;
}

/* Weak, since fuzz targets bring another and use what is in this file all the same. */
__attribute__((weak)) int main(void)
{
    const char *only = getenv("TEST_ONLY");
    size_t kept = 0;

    for (size_t i = 0; i < test_count; i++)
        if (!only || strstr(tests[i].name, only))
            tests[kept++] = tests[i];
    return _cmocka_run_group_tests("decant", tests, kept, NULL, NULL) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

void test_fail(const char *file, int line, const char *format, ...)
{
    va_list args;

    fprintf(stderr, "%s:%d: ", file, line);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    _fail(file, line);
    abort(); /* _fail does not return; cmocka does not say so to the compiler */
}

void test_skip(const char *why)
{
    fprintf(stderr, "skipped: %s\n", why);
    skip();
    abort();
}

void test_check_bytes(const char *file, int line, const char *what, const void *actual, size_t actual_len,
                      const void *wanted, size_t wanted_len)
{
    const uint8_t *a = actual, *w = wanted;
    size_t i = 0;

    while (i < actual_len && i < wanted_len && a[i] == w[i])
        i++;
    if (i < actual_len && i < wanted_len)
        test_fail(file, line, "%s differs at byte %zu: 0x%02x, wanted 0x%02x", what, i, a[i], w[i]);
    if (actual_len != wanted_len)
        test_fail(file, line, "%s has %zu bytes, wanted %zu", what, actual_len, wanted_len);
}

uint8_t *test_data(const char *name, size_t *len)
{
    char path[4096];
    FILE *file;
    uint8_t *data;
    long size;

    snprintf(path, sizeof path, "%s%s", name[0] == '/' ? "" : TEST_DATA "/", name);
    file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) || (size = ftell(file)) < 0 || fseek(file, 0, SEEK_SET))
        test_fail(__FILE__, __LINE__, "cannot read %s", path);
    data = malloc((size_t)size + 1);
    if (!data || fread(data, 1, (size_t)size, file) != (size_t)size)
        test_fail(__FILE__, __LINE__, "cannot read all of %s", path);
    fclose(file);
    *len = (size_t)size;
    return data;
}

const char *test_folder(void)
{
    if (!folder[0]) {
        snprintf(folder, sizeof folder, "%s/test-XXXXXX", TEST_SCRATCH);
        if (!mkdtemp(folder))
            test_fail(__FILE__, __LINE__, "cannot make %s", folder);
    }
    return folder;
}
