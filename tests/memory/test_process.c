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

/* A sparse safetensors file of `count` tensors of `len` bytes each, numbered from `first`. @return bytes of its header */
static uint64_t make_part(const char *path, const char *dtype, uint64_t first, uint64_t count, uint64_t len)
{
    uint64_t elements = strcmp(dtype, "F32") == 0 ? len / 4 : len;
    FILE *file = fopen(path, "wb");
    uint8_t prefix[8] = {0};
    uint64_t header;

    CHECK(file && fwrite(prefix, 1, 8, file) == 8 && fputc('{', file) == '{');
    for (uint64_t i = 0; i < count; i++)
        CHECK(fprintf(file,
                      "%s\"model.layers.%07" PRIu64
                      ".self_attn.projection.weight\":{\"dtype\":\"%s\",\"shape\":[%" PRIu64
                      "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}",
                      i ? "," : "", first + i, dtype, elements, i * len, (i + 1) * len) > 0);
    CHECK(fputc('}', file) == '}');
    header = (uint64_t)ftell(file) - 8;
    for (unsigned i = 0; i < 8; i++)
        prefix[i] = (uint8_t)(header >> 8 * i);
    CHECK(fseek(file, 0, SEEK_SET) == 0 && fwrite(prefix, 1, 8, file) == 8 && fclose(file) == 0);
    CHECK(truncate(path, (off_t)(8 + header + count * len)) == 0);
    return header;
}

static uint64_t make_sparse(const char *path, const char *dtype, uint64_t count, uint64_t len)
{
    return make_part(path, dtype, 0, count, len);
}

/* The sparse parts of a set, without an index. @return bytes of their headers */
static uint64_t make_set(char *first, size_t size, uint64_t parts, uint64_t count, uint64_t len)
{
    char path[4096];
    uint64_t headers = 0;

    for (uint64_t i = parts; i > 0; i--) {
        snprintf(path, sizeof path, "%s/in-%05" PRIu64 "-of-%05" PRIu64 ".safetensors", test_folder(), i, parts);
        headers += make_part(path, "U8", (i - 1) * count, count, len);
    }
    snprintf(first, size, "%s", path);
    return headers;
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

/* Converts a model of `count` × `len`. @param flag  one more, or NULL. @return the peak; the sizes of both headers in `headers` */
static uint64_t peak_of_convert_with(const char *flag, uint64_t count, uint64_t len, uint64_t *headers)
{
    char in[4096], out[4096];
    const char *argv[] = {program(), "convert", "-q", "--allow", "limits", in, "-o", out, flag, NULL};
    uint64_t peak;

    snprintf(in, sizeof in, "%s/in.safetensors", test_folder());
    snprintf(out, sizeof out, "%s/out.bpk", test_folder());
    *headers = make_sparse(in, "U8", count, len);
    peak = peak_of(argv);
    *headers += burnpack_header(out);
    unlink(out);
    fprintf(stderr, "%" PRIu64 " tensors of %" PRIu64 " bytes: peak %.1f MiB, headers %.1f MiB\n", count, len,
            (double)peak / MIB, (double)*headers / MIB);
    return peak;
}

static uint64_t peak_of_convert(uint64_t count, uint64_t len, uint64_t *headers)
{
    return peak_of_convert_with(NULL, count, len, headers);
}

/* Casts a model of F32 to BF16, `count` × `len` of them. @return the peak */
static uint64_t peak_of_cast(uint64_t count, uint64_t len)
{
    char in[4096], out[4096];
    const char *argv[] = {program(), "convert", "-q", "--dtype", "bf16", in, "-o", out, NULL};
    uint64_t peak;

    snprintf(in, sizeof in, "%s/in.safetensors", test_folder());
    snprintf(out, sizeof out, "%s/out.safetensors", test_folder());
    make_sparse(in, "F32", count, len);
    peak = peak_of(argv);
    unlink(out);
    fprintf(stderr, "%" PRIu64 " tensors of %" PRIu64 " bytes, cast: peak %.1f MiB\n", count, len, (double)peak / MIB);
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

TEST(convert__that_gives_its_input_up_takes_the_same_memory_at_every_size)
{
    uint64_t headers, small = peak_of_convert_with("--consume", 100, 1000000, &headers),
                      large = peak_of_convert_with("--consume", 100, 10000000, &headers);

    CHECK(small <= 32 * MIB);
    CHECK(large <= small + MIB && small <= large + MIB);
    if (nightly()) {
        uint64_t huge = peak_of_convert_with("--consume", 100, 100000000, &headers);

        CHECK(huge <= small + MIB && small <= huge + MIB);
    }
}

/* 40 bytes a run, and what every save of it takes. */
TEST(convert__that_gives_its_input_up_takes_little_for_each_of_100000_tensors)
{
    uint64_t headers, count = 100000, peak = peak_of_convert_with("--consume", count, 16, &headers);

    CHECK(peak <= 32 * MIB + headers + (128 + 40) * count);
}

/* The peak of a command on a model of `count` × `len`; its output is thrown away. NULL ends the words; "FILE" is the model. */
static uint64_t peak_of_command(const char *const *words, uint64_t count, uint64_t len)
{
    char in[4096];
    const char *argv[16] = {program()};
    uint64_t peak;
    int out = open("/dev/null", O_WRONLY), kept = dup(STDOUT_FILENO);

    snprintf(in, sizeof in, "%s/in.safetensors", test_folder());
    make_sparse(in, "U8", count, len);
    for (size_t i = 0; words[i]; i++)
        argv[i + 1] = strcmp(words[i], "FILE") == 0 ? in : words[i];
    CHECK(out >= 0 && kept >= 0);
    fflush(stdout);
    dup2(out, STDOUT_FILENO);
    peak = peak_of(argv);
    dup2(kept, STDOUT_FILENO);
    close(kept);
    close(out);
    fprintf(stderr, "%s: %" PRIu64 " tensors of %" PRIu64 " bytes: peak %.1f MiB\n", words[0], count, len,
            (double)peak / MIB);
    return peak;
}

/* Whatever reads all data takes as much for 1 GB as for a hundredth of it. CL-06 */
static void check_reading(const char *const *words)
{
    uint64_t small = peak_of_command(words, 10, 1000000), large = peak_of_command(words, 10, 100000000);

    CHECK(small <= 32 * MIB && large <= 32 * MIB);
    CHECK(large <= small + MIB && small <= large + MIB);
}

TEST(digest__takes_the_same_memory_at_every_size)
{
    check_reading((const char *const[]){"digest", "FILE", NULL});
}

TEST(verify__takes_the_same_memory_at_every_size)
{
    check_reading((const char *const[]){"verify", "--deep", "FILE", NULL});
}

TEST(diff__takes_the_same_memory_at_every_size)
{
    check_reading((const char *const[]){"diff", "FILE", "FILE", NULL});
    check_reading((const char *const[]){"diff", "--rtol", "0.1", "FILE", "FILE", NULL});
}

/* PF-08: a tensor of any size goes to a file. */
TEST(extract__takes_the_same_memory_for_a_tensor_of_every_size)
{
    char out[4096];
    const char *const words[] = {"extract", "-f", "FILE", "model.layers.0000000.self_attn.projection.weight",
                                 "-o",      out,  NULL};
    uint64_t small, large;

    snprintf(out, sizeof out, "%s/out.npy", test_folder());
    small = peak_of_command(words, 1, 1000000);
    large = peak_of_command(words, 1, 400000000);
    CHECK(small <= 32 * MIB && large <= 32 * MIB);
    CHECK(large <= small + MIB && small <= large + MIB);
}

TEST(convert__that_reads_back_takes_the_same_memory_at_every_size)
{
    char out[4096];
    const char *const words[] = {"convert", "-qf", "--verify", "FILE", "-o", out, NULL};
    uint64_t small, large;

    snprintf(out, sizeof out, "%s/out.bpk", test_folder());
    small = peak_of_command(words, 10, 1000000);
    large = peak_of_command(words, 10, 30000000);
    CHECK(small <= 32 * MIB && large <= 32 * MIB);
    CHECK(large <= small + MIB && small <= large + MIB);
}

/* 56 bytes of sums, and what opening takes. */
TEST(digest__takes_little_for_each_of_100000_tensors)
{
    const uint64_t count = 100000;
    uint64_t peak = peak_of_command((const char *const[]){"digest", "FILE", NULL}, count, 16);

    CHECK(peak <= 32 * MIB + 120 * count /* the header */ + (128 + 56) * count);
}

/* A gigabyte of F32: the staging for what is read is one slot more. */
TEST(convert__casts_in_the_same_memory_at_every_size)
{
    uint64_t small = peak_of_cast(100, 1000000), large = peak_of_cast(100, 10000000);

    CHECK(small <= 32 * MIB);
    CHECK(large <= small + MIB && small <= large + MIB);
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

/* Converts a set of 30 files into one file or, if a file of it may have no more than `shard` bytes, into another set. */
static uint64_t peak_of_set(uint64_t count, uint64_t len, const char *shard, uint64_t *headers)
{
    enum { PARTS = 30 };
    char in[4096], out[4096];
    const char *argv[16] = {program(), "convert", "-qf", in, "-o", out, shard ? "--max-shard-size" : NULL, shard};
    uint64_t peak;

    snprintf(out, sizeof out, "%s/set.safetensors", test_folder());
    *headers = make_set(in, sizeof in, PARTS, count, len);
    peak = peak_of(argv);
    fprintf(stderr,
            "a set of %d with %" PRIu64 " tensors of %" PRIu64 " bytes, into %s: peak %.1f MiB, headers %.1f MiB\n",
            PARTS, PARTS * count, len, shard ? "a set" : "one", (double)peak / MIB, (double)*headers / MIB);
    return peak;
}

/* PF-02: into a set as well as into one file. */
TEST(convert__takes_the_same_memory_for_a_set_of_every_size)
{
    uint64_t headers, one = peak_of_set(10, 100000, NULL, &headers), small = peak_of_set(10, 100000, "1MB", &headers),
                      large = peak_of_set(10, 3000000, "30MB", &headers);

    CHECK(one <= 32 * MIB && small <= 32 * MIB && large <= 32 * MIB);
    CHECK(large <= small + MIB && small <= large + MIB);
    if (nightly()) {
        uint64_t huge = peak_of_set(10, 33000000, "330MB", &headers);

        CHECK(huge <= small + MIB && small <= huge + MIB);
    }
}

/* The headers of both sets, the index of one of them, which is no longer than its headers, and 128 bytes a tensor. */
TEST(convert__takes_little_for_each_of_100000_tensors_of_a_set)
{
    const uint64_t count = 100000 / 30;
    uint64_t headers, peak = peak_of_set(count, 16, "50kB", &headers);

    CHECK(peak <= 32 * MIB + 3 * headers + 128 * 30 * count);
    peak = peak_of_set(count, 16, NULL, &headers);
    CHECK(peak <= 32 * MIB + 2 * headers + 128 * 30 * count);
}
