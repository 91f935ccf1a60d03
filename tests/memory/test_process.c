/*
 * What the program takes, seen from outside: peak memory of whole conversions. The models are sparse files, so that only
 * their size is large. The program is $DECANT; NIGHTLY=1 adds the sizes that take minutes.
 */
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)

/* The peak of the process that runs `argv` to success, in bytes. This process is small, so it sets no floor that matters. */
static uint64_t peak_of(const char *const *argv)
{
    char *copy[16] = {0};
    struct rusage usage;
    int status;
    pid_t child;

    for (size_t i = 0; argv[i]; i++) {
        CHECK(i + 1 < sizeof copy / sizeof *copy);
        memcpy(&copy[i], &argv[i], sizeof *copy);
    }
    fflush(NULL);
    child = fork();
    if (child == 0) {
        execv(copy[0], copy);
        _exit(127);
    }
    CHECK(child > 0 && wait4(child, &status, 0, &usage) == child);
    if (!WIFEXITED(status) || WEXITSTATUS(status))
        test_fail(__FILE__, __LINE__, "%s %s gave status 0x%x", argv[0], argv[1], status);
    return (uint64_t)usage.ru_maxrss * 1024;
}

static const char *program(void)
{
    const char *decant = getenv("DECANT");

    if (!decant || access(decant, X_OK))
        test_skip("DECANT names no program");
    return decant;
}

/* A sparse safetensors file of `count` U8 tensors of `len` bytes each. @return bytes of its header */
static uint64_t make_sparse(const char *path, uint64_t count, uint64_t len)
{
    FILE *file = fopen(path, "wb");
    uint8_t prefix[8] = {0};
    uint64_t header;

    CHECK(file && fwrite(prefix, 1, 8, file) == 8 && fputc('{', file) == '{');
    for (uint64_t i = 0; i < count; i++)
        CHECK(fprintf(file,
                      "%s\"model.layers.%07" PRIu64
                      ".self_attn.projection.weight\":{\"dtype\":\"U8\",\"shape\":[%" PRIu64
                      "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}",
                      i ? "," : "", i, len, i * len, (i + 1) * len) > 0);
    CHECK(fputc('}', file) == '}');
    header = (uint64_t)ftell(file) - 8;
    for (unsigned i = 0; i < 8; i++)
        prefix[i] = (uint8_t)(header >> 8 * i);
    CHECK(fseek(file, 0, SEEK_SET) == 0 && fwrite(prefix, 1, 8, file) == 8 && fclose(file) == 0);
    CHECK(truncate(path, (off_t)(8 + header + count * len)) == 0);
    return header;
}

/* Burnpack's metadata length stands at 6. */
static uint64_t burnpack_header(const char *path)
{
    uint8_t head[10];
    FILE *file = fopen(path, "rb");

    CHECK(file && fread(head, 1, 10, file) == 10);
    fclose(file);
    return head[6] | (uint64_t)head[7] << 8 | (uint64_t)head[8] << 16 | (uint64_t)head[9] << 24;
}

/* Converts a model of `count` × `len`. @return the peak; the sizes of both headers in `headers` */
static uint64_t peak_of_convert(uint64_t count, uint64_t len, uint64_t *headers)
{
    char in[4096], out[4096];
    const char *argv[] = {program(), "convert", "-q", "--allow", "limits", in, "-o", out, NULL};
    uint64_t peak;

    snprintf(in, sizeof in, "%s/in.safetensors", test_folder());
    snprintf(out, sizeof out, "%s/out.bpk", test_folder());
    *headers = make_sparse(in, count, len);
    peak = peak_of(argv);
    *headers += burnpack_header(out);
    unlink(out);
    fprintf(stderr, "%" PRIu64 " tensors of %" PRIu64 " bytes: peak %.1f MiB, headers %.1f MiB\n", count, len,
            (double)peak / MIB, (double)*headers / MIB);
    return peak;
}

static bool nightly(void)
{
    const char *value = getenv("NIGHTLY");

    return value && strcmp(value, "1") == 0;
}

/* PF-02, CL-06 */
TEST(convert__takes_the_same_memory_at_every_size)
{
    uint64_t headers, small = peak_of_convert(100, 1000000, &headers), large = peak_of_convert(100, 10000000, &headers);

    CHECK(small <= 32 * MIB);
    CHECK(large <= 32 * MIB);
    CHECK(large <= small + MIB && small <= large + MIB);
    if (nightly()) {
        uint64_t huge = peak_of_convert(100, 100000000, &headers);

        CHECK(huge <= small + MIB && small <= huge + MIB);
    }
}

/* 32 MiB, both headers, and 128 bytes a tensor. */
static void check_tensors(uint64_t count)
{
    uint64_t headers, peak = peak_of_convert(count, 16, &headers);

    CHECK(peak <= 32 * MIB + headers + 128 * count);
}

TEST(convert__takes_little_for_each_of_100000_tensors)
{
    check_tensors(100000);
}

TEST(convert__takes_little_for_each_of_a_million_tensors)
{
    check_tensors(1000000);
}
