/*
 * Side by side: decant and its peers on the same work, in interleaved rounds.
 *
 *     decant-bench [--rounds N] [--filter TEXT] [--json FILE] [--tmpfs DIR] [--disk DIR] [--quick]
 *
 * Contestants of a case run in turn, in another order each round, each in a process of its own, after the disk has come to
 * rest. What counts is the median over the rounds of the ratio within a round. Outputs are compared with their input after
 * the clock has stopped: an output that is wrong has no speed. A case is marked noisy where the machine waited for its
 * disk or memory for more than a fifth of the time, or times differ by more than two; nothing is hidden.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "limits.h"
#include "run.h"

enum { MOST_ROUNDS = 31, MOST_CONTESTANTS = 4, MOST_PATH = 1024 };

/* One comparison: contestant 0 is decant, 1 the peer, the others are for the record. */
typedef struct bench_case {
    const char *name;
    const char *what;
    contestant who[MOST_CONTESTANTS];
    size_t count;
    double aim;     /* of time(1) / time(0): at least this */
    uint64_t bytes; /* that are moved; 0: no rate is shown */
} bench_case;

typedef struct setup {
    int rounds;
    const char *filter, *json;
    char tmpfs[MOST_PATH], disk[MOST_PATH], tools[MOST_PATH]; /* folders */
    char decant[MOST_PATH], peers[MOST_PATH];                 /* programs; peers "" if they are not built */
    bool quick;
} setup;

/* --- numbers --- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(const double *values, int count)
{
    double sorted[MOST_ROUNDS];

    memcpy(sorted, values, (size_t)count * sizeof *values);
    qsort(sorted, (size_t)count, sizeof *sorted, by_value);
    return count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

/* --- one case --- */

typedef struct outcome {
    sample samples[MOST_CONTESTANTS][MOST_ROUNDS];
    double seconds[MOST_CONTESTANTS]; /* medians */
    double low[MOST_CONTESTANTS], high[MOST_CONTESTANTS];
    double ratio; /* median of the paired ratios */
    bool failed, noisy;
} outcome;

static void run_case(const bench_case *c, int rounds, outcome *o)
{
    double values[MOST_ROUNDS];

    memset(o, 0, sizeof *o);
    for (int round = 0; round < rounds; round++)
        for (size_t turn = 0; turn < c->count; turn++) {
            size_t k = (turn + (size_t)round) % c->count;
            const contestant *who = &c->who[k];
            sample *s = &o->samples[k][round];

            *s = run_once(who);
            if (!s->failed && who->verify[0])
                s->failed = run_quietly(who->verify) != 0;
            if (s->failed) {
                fprintf(stderr, "decant-bench: %s: %s failed or wrote something else\n", c->name, who->name);
                o->failed = true;
                return;
            }
            if (who->out)
                unlink(who->out);
            o->noisy |= s->io_stall > 0.2 || s->memory_stall > 0.2;
        }
    for (size_t k = 0; k < c->count; k++) {
        for (int round = 0; round < rounds; round++)
            values[round] = o->samples[k][round].seconds;
        o->seconds[k] = median(values, rounds);
        qsort(values, (size_t)rounds, sizeof *values, by_value);
        o->low[k] = values[0];
        o->high[k] = values[rounds - 1];
        o->noisy |= o->high[k] > 2 * o->low[k];
    }
    for (int round = 0; round < rounds; round++)
        values[round] = o->samples[1][round].seconds / o->samples[0][round].seconds;
    o->ratio = median(values, rounds);
}

static uint64_t peak_rss(const outcome *o, size_t k, int rounds)
{
    uint64_t peak = 0;

    for (int round = 0; round < rounds; round++)
        peak = o->samples[k][round].rss > peak ? o->samples[k][round].rss : peak;
    return peak;
}

static void print_case(const bench_case *c, const outcome *o, int rounds)
{
    printf("\n%s: %s\n", c->name, c->what);
    printf("  %-28s %10s %10s %10s %8s %9s\n", "", "median s", "least", "most", "MB/s", "peak MiB");
    for (size_t k = 0; k < c->count; k++) {
        printf("  %-28s %10.4f %10.4f %10.4f ", c->who[k].name, o->seconds[k], o->low[k], o->high[k]);
        if (c->bytes)
            printf("%8.0f ", (double)c->bytes / 1e6 / o->seconds[k]);
        else
            printf("%8s ", "-");
        printf("%9.1f\n", (double)peak_rss(o, k, rounds) / (1 << 20));
    }
    printf("  ratio %s / decant %.2f, aim at least %.2f: %s%s\n", c->who[1].name, o->ratio, c->aim,
           o->ratio >= c->aim ? "reached" : "MISSED", o->noisy ? " (noisy)" : "");
    fflush(stdout);
}

static void json_case(FILE *file, const bench_case *c, const outcome *o, int rounds)
{
    fprintf(file,
            "{\"case\":\"%s\",\"bytes\":\"%" PRIu64 "\",\"aim\":%.3f,\"ratio\":%.4f,\"noisy\":%s,\"contestants\":[",
            c->name, c->bytes, c->aim, o->ratio, o->noisy ? "true" : "false");
    for (size_t k = 0; k < c->count; k++) {
        fprintf(file, "%s{\"name\":\"%s\",\"median\":%.6f,\"rounds\":[", k ? "," : "", c->who[k].name, o->seconds[k]);
        for (int round = 0; round < rounds; round++) {
            const sample *s = &o->samples[k][round];

            fprintf(file,
                    "%s{\"seconds\":%.6f,\"user\":%.4f,\"sys\":%.4f,\"rss\":\"%" PRIu64 "\",\"faults\":%" PRIu64
                    ",\"read\":\"%" PRIu64 "\",\"written\":\"%" PRIu64 "\",\"cache\":\"%" PRIu64
                    "\",\"io_stall\":%.3f,\"memory_stall\":%.3f}",
                    round ? "," : "", s->seconds, s->user, s->sys, s->rss, s->faults, s->read, s->written, s->cache,
                    s->io_stall, s->memory_stall);
        }
        fputs("]}", file);
    }
    fputs("]}", file);
}

/* --- the cases --- */

/* Texts that live as long as the program. */
static char *text(const char *a, const char *b)
{
    char *joined = malloc(strlen(a) + strlen(b) + 1);

    if (!joined)
        abort();
    strcpy(joined, a);
    return strcat(joined, b);
}

static uint64_t file_size(const char *path)
{
    struct stat facts;

    return stat(path, &facts) ? 0 : (uint64_t)facts.st_size;
}

/* A model in `folder`, made once a run. */
static const char *model(const setup *s, const char *folder, const char *workload, const char *name)
{
    char *path = text(text(folder, "/"), name);
    const char *argv[] = {text(s->tools, "/decant-generate"), workload, path, NULL};

    if (file_size(path) == 0) {
        fprintf(stderr, "decant-bench: making %s\n", path);
        if (run_quietly(argv)) {
            fprintf(stderr, "decant-bench: cannot make %s\n", path);
            exit(1);
        }
    }
    return path;
}

static contestant convert(const setup *s, const char *in, const char *out)
{
    return (contestant){.name = "decant",
                        .argv = {s->decant, "convert", "-q", "--allow", "limits", in, "-o", out},
                        .in = in,
                        .out = out,
                        .verify = {s->decant, "diff", "-q", "--allow", "limits", in, out}};
}

static contestant copy(const char *name, const char *in, const char *out, bool syncs)
{
    return (contestant){.name = name,
                        .argv = {"cp", "--reflink=never", in, out},
                        .syncs_output = syncs,
                        .in = in,
                        .out = out,
                        .verify = {"cmp", in, out}};
}

static void convert_cached(const setup *s, bench_case *c)
{
    const char *in = model(s, s->tmpfs, s->quick ? "llama-7b/128" : "llama-7b/16", "llama.safetensors");

    c->what = "llama-7b/16, safetensors to Burnpack, cached, tmpfs to tmpfs";
    c->who[0] = convert(s, in, text(s->tmpfs, "/decant.bpk"));
    c->who[1] = copy("cp", in, text(s->tmpfs, "/cp"), false);
    c->who[2] = (contestant){
        .name = "limit: 1 MiB read, write", .function = limit_copy, .in = in, .out = text(s->tmpfs, "/limit")};
    c->count = 3;
    c->aim = 0.95;
    c->bytes = file_size(in);
}

static void convert_durable(const setup *s, bench_case *c)
{
    const char *in = model(s, s->disk, s->quick ? "llama-7b/128" : "llama-7b/16", "llama.safetensors");

    c->what = "llama-7b/16, safetensors to Burnpack, cached source, disk to disk, durable";
    c->who[0] = convert(s, in, text(s->disk, "/decant.bpk"));
    c->who[1] = copy("cp + fsync", in, text(s->disk, "/cp"), true);
    c->who[2] = (contestant){
        .name = "limit: write, sync", .function = limit_durable_write, .in = in, .out = text(s->disk, "/limit")};
    c->count = 3;
    c->aim = 1.15;
    c->bytes = file_size(in);
}

static void small_tensors(const setup *s, bench_case *c)
{
    const char *small = model(s, s->tmpfs, s->quick ? "small-10000x1024" : "small-100000x1024", "small.safetensors");
    const char *huge = model(s, s->tmpfs, s->quick ? "one-huge:10240000" : "one-huge:102400000", "huge.safetensors");

    c->what = "100,000 tensors of 1 KiB against one tensor of the same bytes, cached, tmpfs to tmpfs";
    c->who[0] = convert(s, small, text(s->tmpfs, "/small.bpk"));
    c->who[0].name = "decant, many tensors";
    c->who[1] = convert(s, huge, text(s->tmpfs, "/huge.bpk"));
    c->who[1].name = "decant, one tensor";
    c->count = 2;
    c->aim = 0.5;
    c->bytes = file_size(huge);
}

/* Opening `in` against a peer that is at least `aim` times slower. `find` NULL: names are listed, not looked up. */
static void open_against(const setup *s, bench_case *c, const char *in, const char *find, const contestant *peer,
                         double aim)
{
    c->who[0] = (contestant){
        .name = "decant", .argv = {text(s->tools, "/decant-open"), in, "5", find}, .reports_ns = true, .in = in};
    c->who[1] = *peer;
    c->who[2] = (contestant){.name = "limit: read the whole file", .function = limit_read, .in = in};
    c->count = 3;
    c->aim = aim;
}

static void open_safetensors(const setup *s, bench_case *c)
{
    const char *in = model(s, s->tmpfs, "small-100000x64", "open.safetensors");
    contestant peer = {
        .name = "safetensors 0.8.0", .argv = {s->peers, "open-safetensors", in, "5"}, .reports_ns = true};

    c->what = "open 100,000 tensors and find each by name, safetensors";
    open_against(s, c, in, "find", &peer, 4);
}

static void open_burnpack(const setup *s, bench_case *c)
{
    const char *in = model(s, s->tmpfs, "small-100000x64", "open.bpk");
    contestant peer = {
        .name = "burn-pack 0.23.0-pre.1", .argv = {s->peers, "open-burnpack", in, "5"}, .reports_ns = true};

    c->what = "open 100,000 tensors and list them, Burnpack";
    open_against(s, c, in, NULL, &peer, 2);
}

static void clone_whole(const setup *s, bench_case *c)
{
    const char *in = model(s, s->disk, s->quick ? "llama-7b/128" : "llama-7b/13", "whole.safetensors");

    c->what = "llama-7b/13, safetensors to safetensors: blocks are shared instead of copied, durable, cached";
    c->who[0] = convert(s, in, text(s->disk, "/decant.safetensors"));
    c->who[1] = copy("cp + fsync", in, text(s->disk, "/cp"), true);
    c->count = 2;
    c->aim = 40;
    c->bytes = file_size(in);
}

/* --- inputs that are used up: each contestant gets its own, made anew each time --- */

#define COPY_IN "rm -rf \"$1\" && cp -r \"$0\" \"$1\" && find \"$1\" -type f -exec sync {} +"
#define DROP_CACHE " && find \"$1\" -type f -exec dd if={} iflag=nocache count=0 status=none \\;"

/* `in` becomes a copy of `original`, a file or a folder of files; in the page cache, or not. */
static void remake(contestant *c, const char *original, const char *in, bool cached)
{
    const char *const prepare[] = {"sh", "-c", cached ? COPY_IN : COPY_IN DROP_CACHE, original, in};

    memcpy(c->prepare, prepare, sizeof prepare);
    c->in = in;
}

static contestant consume(const setup *s, const char *original, const char *in, const char *out, bool cached)
{
    contestant c = {.name = "decant --consume",
                    .argv = {s->decant, "convert", "-q", "--consume", in, "-o", out},
                    .out = out,
                    .verify = {s->decant, "diff", "-q", original, out}};

    remake(&c, original, in, cached);
    return c;
}

/* What who has no decant does, durably. */
static contestant move(const setup *s, const char *original, const char *in, const char *out, bool cached)
{
    contestant c = {.name = "cp + fsync + rm",
                    .argv = {"sh", "-c",
                             "cp --reflink=never \"$0\" \"$1\" && sync \"$1\" \"$2\" && rm \"$0\" && sync \"$2\"", in,
                             out, s->disk},
                    .out = out,
                    .verify = {"cmp", original, out}};

    remake(&c, original, in, cached);
    return c;
}

static void drain(const setup *s, bench_case *c, bool cached)
{
    const char *original = model(s, s->tmpfs, s->quick ? "llama-7b/128" : "llama-7b/13", "original.safetensors");
    const char *in = text(s->disk, "/used-up.safetensors");

    c->who[0] = consume(s, original, in, text(s->disk, "/decant.bpk"), cached);
    c->who[1] = move(s, original, in, text(s->disk, "/cp"), cached);
    c->count = 2;
    c->bytes = file_size(original);
}

static void drain_cached(const setup *s, bench_case *c)
{
    drain(s, c, true);
    c->what = "llama-7b/13, safetensors to Burnpack, moved on one disk, durable, cached";
    c->aim = 1;
}

static void drain_cold(const setup *s, bench_case *c)
{
    drain(s, c, false);
    c->what = "the same, not cached";
    c->aim = 1 / 1.10;
}

static void drain_interleaved(const setup *s, bench_case *c)
{
    static const char generate[] =
        "mkdir \"$1\" && for i in $(seq -w 0 63); do \"$0\" part-$i:$2x1048576 \"$1\"/$i.safetensors || exit; done";
    static const char merge[] = "exec \"$0\" convert -q $3 \"$1\"/* -o \"$2\"";
    static const char cat[] = "cat \"$0\"/* >\"$1\" && sync \"$1\" \"$2\" && rm -r \"$0\" && sync \"$2\"";
    const char *original = text(s->tmpfs, "/parts"), *whole = text(s->tmpfs, "/whole.safetensors");
    const char *in = text(s->disk, "/parts"), *out = text(s->disk, "/decant.safetensors");
    const char *const make_parts[] = {
        "sh", "-c", generate, text(s->tools, "/decant-generate"), original, s->quick ? "1" : "16", NULL};
    const char *const make_whole[] = {"sh", "-c", merge, s->decant, original, whole, NULL};

    if (run_quietly(make_parts) || run_quietly(make_whole)) {
        fprintf(stderr, "decant-bench: cannot make %s\n", whole);
        exit(1);
    }
    c->what = "64 files of 16 MiB, whose tensors take turns in the output, moved on one disk, durable, cached";
    c->who[0] = (contestant){.name = "decant --consume",
                             .argv = {"sh", "-c", merge, s->decant, in, out, "--consume"},
                             .out = out,
                             .verify = {"cmp", whole, out}};
    c->who[1] = (contestant){.name = "cat + fsync + rm",
                             .argv = {"sh", "-c", cat, in, text(s->disk, "/cat"), s->disk},
                             .out = text(s->disk, "/cat")};
    remake(&c->who[0], original, in, true);
    remake(&c->who[1], original, in, true);
    c->count = 2;
    c->aim = 1 / 1.15;
    c->bytes = file_size(whole);
}

typedef enum need { NOTHING, PEERS, SHARED_BLOCKS } need;

static const struct {
    const char *name;
    void (*make)(const setup *s, bench_case *c);
    need needs;
} cases[] = {
    {"convert-cached", convert_cached, NOTHING},  {"convert-durable", convert_durable, NOTHING},
    {"small-100k", small_tensors, NOTHING},       {"drain-cached", drain_cached, NOTHING},
    {"drain-cold", drain_cold, NOTHING},          {"drain-interleaved", drain_interleaved, NOTHING},
    {"clone-whole", clone_whole, SHARED_BLOCKS},  {"open-100k-safetensors", open_safetensors, PEERS},
    {"open-100k-burnpack", open_burnpack, PEERS},
};

/* What a case lacks here; NULL: nothing. */
static const char *lacks(const setup *s, need needs)
{
    const char *one = text(s->disk, "/one-block"), *other = text(s->disk, "/other-block");
    const char *const share[] = {
        "sh", "-c",  "head -c 4096 /dev/zero >\"$0\" && cp --reflink=always \"$0\" \"$1\" 2>/dev/null",
        one,  other, NULL};

    if (needs == PEERS && !s->peers[0])
        return "the peers are not built (DECANT_PEERS)";
    if (needs == SHARED_BLOCKS && run_quietly(share))
        return "the disk's file system does not share blocks (--disk)";
    return NULL;
}

/* --- the run --- */

static void usage(void)
{
    fputs("usage: decant-bench [--rounds N] [--filter TEXT] [--json FILE] [--tmpfs DIR] [--disk DIR] [--quick]\n"
          "environment: DECANT, the program; DECANT_PEERS, the peers' program\n",
          stderr);
    exit(2);
}

/* A folder of our own in `parent`. */
static void make_folder(char *out, const char *parent)
{
    if (snprintf(out, MOST_PATH, "%s/decant-bench-XXXXXX", parent) >= MOST_PATH || !mkdtemp(out)) {
        fprintf(stderr, "decant-bench: cannot make a folder in %s: %s\n", parent, strerror(errno));
        exit(1);
    }
}

static void remove_folder(const char *folder)
{
    const char *argv[] = {"rm", "-rf", folder, NULL};

    run_quietly(argv);
}

static void find_tools(setup *s, const char *self)
{
    const char *decant = getenv("DECANT"), *peers = getenv("DECANT_PEERS");
    char *slash;

    snprintf(s->tools, sizeof s->tools, "%s", self);
    slash = strrchr(s->tools, '/');
    if (!slash)
        usage();
    *slash = '\0';
    snprintf(s->decant, sizeof s->decant, "%s", decant ? decant : text(s->tools, "/../decant"));
    snprintf(s->peers, sizeof s->peers, "%s", peers && access(peers, X_OK) == 0 ? peers : "");
}

int main(int argc, char **argv)
{
    setup s = {.rounds = 7};
    const char *tmpfs = "/dev/shm", *disk = ".";
    static outcome o;
    FILE *json = NULL;
    bool failed = false, first = true;

    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;

        if (strcmp(argv[i], "--quick") == 0) {
            s.quick = true;
            continue;
        }
        if (!value)
            usage();
        if (strcmp(argv[i], "--rounds") == 0)
            s.rounds = atoi(value);
        else if (strcmp(argv[i], "--filter") == 0)
            s.filter = value;
        else if (strcmp(argv[i], "--json") == 0)
            s.json = value;
        else if (strcmp(argv[i], "--tmpfs") == 0)
            tmpfs = value;
        else if (strcmp(argv[i], "--disk") == 0)
            disk = value;
        else
            usage();
        i++;
    }
    if (s.rounds < 1 || s.rounds > MOST_ROUNDS)
        usage();
    find_tools(&s, argv[0]);
    make_folder(s.tmpfs, tmpfs);
    make_folder(s.disk, disk);
    if (s.json && !(json = fopen(s.json, "w"))) {
        fprintf(stderr, "decant-bench: cannot write %s: %s\n", s.json, strerror(errno));
        return 1;
    }
    if (json)
        fprintf(json, "{\"rounds\":%d,\"cases\":[", s.rounds);

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bench_case c = {.name = cases[i].name};
        const char *lacking;

        if (s.filter && !strstr(cases[i].name, s.filter))
            continue;
        if ((lacking = lacks(&s, cases[i].needs))) {
            printf("\n%s: skipped, %s\n", cases[i].name, lacking);
            continue;
        }
        cases[i].make(&s, &c);
        run_case(&c, s.rounds, &o);
        if (o.failed) {
            failed = true;
            continue;
        }
        print_case(&c, &o, s.rounds);
        if (json) {
            fputs(first ? "" : ",", json);
            json_case(json, &c, &o, s.rounds);
        }
        first = false;
    }
    if (json) {
        fputs("]}\n", json);
        failed |= fclose(json) != 0;
    }
    remove_folder(s.tmpfs);
    remove_folder(s.disk);
    return failed;
}
