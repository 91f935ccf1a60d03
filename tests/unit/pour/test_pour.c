#include <stdio.h>
#include <stdlib.h>

#include "support/alloc.h"
#include "support/cargo.h"
#include "support/gates.h"

static const dcn_cut cuts[] = {
    {.slot = 64, .slots = 1, .direct = 48},           {.slot = 64, .slots = 3, .direct = 1000},
    {.slot = 256, .slots = 2, .direct = 256},         {.slot = 1 << 12, .slots = 4, .direct = 128},
    {.slot = 1 << 20, .slots = 2, .direct = 1 << 18},
};

enum { CUTS = sizeof cuts / sizeof *cuts };

TEST(pour__brings_bytes_of_every_kind_into_every_vessel_in_slots_of_any_size)
{
    for (unsigned kind = 0; kind < VESSELS; kind++)
        for (unsigned cut = 0; cut < CUTS; cut++)
            for (uint64_t seed = 0; seed < 6; seed++) {
                simdisk *disk = simdisk_new();
                vessel v = {.kind = (vessel_kind)kind, .disk = disk, .replace = seed % 2};
                dcn_job how = {.cut = cuts[cut]};
                cargo c;
                decant_error err;

                if (seed % 2)
                    simdisk_put_text(disk, "out.bin", "an old file");
                cargo_load(&c, disk, CARGO_ALL, 30, 700, seed);
                CHECK_OK(vessel_pour(&v, &c, &how, seed, &err), &err);
                vessel_check(&v, &c);
                CHECK(v.published);
                CHECK_EQ(v.durable, kind == TO_FILE);
                vessel_close(&v);
                cargo_close(&c);
                simdisk_free(&disk);
            }
}

TEST(pour__pours_a_model_without_tensors)
{
    for (unsigned kind = 0; kind < VESSELS; kind++) {
        simdisk *disk = simdisk_new();
        vessel v = {.kind = (vessel_kind)kind, .disk = disk};
        dcn_job how = {.cut = cuts[0]};
        cargo c;
        decant_error err;

        cargo_load(&c, disk, CARGO_MEMORY, 0, 0, 1);
        CHECK_OK(vessel_pour(&v, &c, &how, 0, &err), &err);
        vessel_check(&v, &c);
        vessel_close(&v);
        cargo_close(&c);
        simdisk_free(&disk);
    }
}

typedef struct watch {
    uint64_t last, total;
    size_t calls, stop_at; /* 0: never */
    size_t again;          /* calls that had no more to tell than the one before */
} watch;

static int look(void *ctx, uint64_t done, uint64_t total)
{
    watch *w = ctx;

    CHECK(done > w->last || done == total);
    CHECK(done <= total);
    w->again += done == w->last;
    w->last = done;
    w->total = total;
    return ++w->calls == w->stop_at;
}

TEST(pour__tells_of_its_progress_up_to_the_last_byte_and_once_more_before_a_file_has_its_name)
{
    for (unsigned kind = 0; kind < VESSELS; kind++) {
        simdisk *disk = simdisk_new();
        vessel v = {.kind = (vessel_kind)kind, .disk = disk};
        watch w = {0};
        dcn_job how = {.cut = cuts[0], .progress = look, .progress_ctx = &w};
        cargo c;
        decant_error err;

        cargo_load(&c, disk, CARGO_ALL, 20, 300, 9);
        CHECK_OK(vessel_pour(&v, &c, &how, 0, &err), &err);
        CHECK_EQ(w.last, c.total);
        CHECK_EQ(w.total, c.total);
        CHECK(w.calls >= c.total / cuts[0].slot);
        CHECK_EQ(w.again, kind == TO_FILE);
        vessel_close(&v);
        cargo_close(&c);
        simdisk_free(&disk);
    }
}

typedef struct stream_watch {
    const vessel *v;
    size_t calls;
} stream_watch;

static int compare(void *ctx, uint64_t done, uint64_t total)
{
    stream_watch *w = ctx;

    (void)total;
    w->calls++;
    CHECK_EQ(w->v->got_len, done);
    return 0;
}

/* Code of the caller's is not put off, whatever the crew does. */
TEST(pour__gives_a_stream_its_bytes_before_it_says_so)
{
    for (uint64_t seed = 0; seed < 8; seed++) {
        simdisk *disk = simdisk_new();
        vessel v = {.kind = TO_STREAM};
        stream_watch w = {.v = &v};
        dcn_job how = {.cut = cuts[1], .progress = compare, .progress_ctx = &w};
        cargo c;
        decant_error err;

        cargo_load(&c, disk, CARGO_ALL, 20, 300, 9);
        CHECK_OK(vessel_pour(&v, &c, &how, seed, &err), &err);
        CHECK(w.calls > 10);
        vessel_check(&v, &c);
        vessel_close(&v);
        cargo_close(&c);
        simdisk_free(&disk);
    }
}

TEST(pour__stops_when_progress_says_so_and_leaves_nothing)
{
    bool stopped = true;

    for (size_t n = 1; stopped; n++) {
        simdisk *disk = simdisk_new();
        vessel v = {.kind = TO_FILE, .disk = disk, .replace = true};
        watch w = {.stop_at = n};
        dcn_job how = {.cut = cuts[1], .progress = look, .progress_ctx = &w};
        decant_status rc;
        cargo c;
        decant_error err;

        simdisk_put_text(disk, "out.bin", "an old file");
        cargo_load(&c, disk, CARGO_ALL, 12, 100, 3);
        rc = vessel_pour(&v, &c, &how, n % 3, &err);
        stopped = w.calls >= n;
        if (stopped) {
            CHECK_EQ(rc, DECANT_CANCELLED);
            CHECK_EQ(err.status, DECANT_CANCELLED);
            CHECK_FILE(disk, "out.bin", "an old file");
        } else {
            CHECK_EQ(rc, DECANT_OK);
        }
        CHECK_TEXT(simdisk_names(disk, "."), "in.bin out.bin");
        vessel_close(&v);
        cargo_close(&c);
        simdisk_free(&disk);
    }
}

TEST(pour__names_the_tensor_of_a_provider_that_fails_and_keeps_its_words)
{
    static const unsigned forms[] = {CARGO_RANGE, CARGO_WHOLE};

    for (size_t form = 0; form < 2; form++)
        for (int silent = 0; silent < 2; silent++) {
            simdisk *disk = simdisk_new();
            vessel v = {.kind = TO_FILE, .disk = disk};
            dcn_job how = {.cut = cuts[4]};
            cargo c;
            decant_error err;

            cargo_load(&c, disk, forms[form], 6, 100, 21);
            c.rec.fail_at = 3;
            c.rec.silent = silent;
            CHECK_FAILS(vessel_pour(&v, &c, &how, 0, &err), silent ? DECANT_CALLBACK : DECANT_IO, &err);
            CHECK_EQ(err.side, DECANT_SIDE_CALLER);
            CHECK_EQ(err.tensor[0], 't');
            CHECK_EQ(err.callback_code, silent ? 0 : 77);
            if (!silent) {
                char wanted[128];

                CHECK_HAS(err.message, "is angry");
                snprintf(wanted, sizeof wanted, "provider %.64s is angry", err.tensor + 1);
                CHECK_TEXT(err.message, wanted);
            }
            CHECK_TEXT(simdisk_names(disk, "."), "");
            vessel_close(&v);
            cargo_close(&c);
            simdisk_free(&disk);
        }
}

TEST(pour__refuses_what_is_produced_too_short_or_too_long)
{
    for (long by = -1; by <= 1; by += 2) {
        simdisk *disk = simdisk_new();
        vessel v = {.kind = TO_NEW};
        dcn_job how = {.cut = cuts[4]};
        cargo c;
        decant_error err;

        cargo_load(&c, disk, CARGO_WHOLE, 6, 100, 21);
        c.rec.longer = by;
        for (c.rec.longer_of = 2; c.lens[c.rec.longer_of] < 2; c.rec.longer_of++)
            ;
        CHECK_FAILS(vessel_pour(&v, &c, &how, 0, &err), DECANT_MISMATCH, &err);
        CHECK_EQ(err.side, DECANT_SIDE_CALLER);
        CHECK_EQ(err.tensor[1] - '0', c.rec.longer_of);
        vessel_close(&v);
        cargo_close(&c);
        simdisk_free(&disk);
    }
}

TEST(pour__tells_an_input_that_cannot_be_read_from_an_output_that_cannot_be_written)
{
    static const dcn_verb verbs[] = {DCN_DO_READ, DCN_DO_WRITE};

    for (size_t i = 0; i < 2; i++) {
        simdisk *disk = simdisk_new();
        vessel v = {.kind = TO_FILE, .disk = disk};
        dcn_job how = {.cut = cuts[2]};
        gates g;
        cargo c;
        decant_error err;

        cargo_load(&c, disk, CARGO_FILE, 6, 100, 4);
        gates_up(&g, &disk->io);
        gates_fail(&g, (gates_fault){.one_verb = true, .verb = verbs[i], .status = DECANT_IO, .os_code = 5});
        CHECK_FAILS(vessel_pour(&v, &c, &how, 0, &err), DECANT_IO, &err);
        CHECK_EQ(err.side, i ? DECANT_SIDE_OUTPUT : DECANT_SIDE_INPUT);
        CHECK_EQ(err.tensor[0], i ? '\0' : 't');
        CHECK_EQ(err.os_code, 5);
        CHECK_HAS(err.path, i ? "out.bin.decant-" : "in.bin");
        gates_down(&g);
        vessel_close(&v);
        cargo_close(&c);
        simdisk_free(&disk);
    }
}

TEST(pour__reports_a_stream_that_fails_as_the_callers)
{
    for (int silent = 0; silent < 2; silent++) {
        simdisk *disk = simdisk_new();
        vessel v = {.kind = TO_STREAM, .fail_at = 3, .silent = silent};
        dcn_job how = {.cut = cuts[0]};
        cargo c;
        decant_error err;

        cargo_load(&c, disk, CARGO_MEMORY, 6, 100, 4);
        CHECK_FAILS(vessel_pour(&v, &c, &how, 7, &err), silent ? DECANT_CALLBACK : DECANT_IO, &err);
        CHECK_EQ(err.side, DECANT_SIDE_CALLER);
        CHECK_EQ(v.calls, 3);
        CHECK_BYTES(v.got, v.got_len, c.wanted, v.got_len);
        vessel_close(&v);
        cargo_close(&c);
        simdisk_free(&disk);
    }
}

/* A write that the crew puts off fails after the provider of later bytes has: the error is that of the earlier bytes. */
TEST(pour__reports_the_failure_of_the_earliest_bytes)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        simdisk *disk = simdisk_new();
        vessel v = {.kind = TO_FILE, .disk = disk};
        dcn_job how = {.cut = {.slot = 64, .slots = 8, .direct = 1 << 20}};
        gates g;
        cargo c;
        decant_error err;

        cargo_load(&c, disk, CARGO_RANGE, 10, 100, 4);
        c.rec.fail_at = 4;
        gates_up(&g, &disk->io);
        gates_fail(&g, (gates_fault){.one_verb = true, .verb = DCN_DO_WRITE, .status = DECANT_NO_SPACE});
        CHECK_FAILS(vessel_pour(&v, &c, &how, seed, &err), DECANT_NO_SPACE, &err);
        gates_down(&g);
        vessel_close(&v);
        cargo_close(&c);
        simdisk_free(&disk);
    }
}

TEST(pour__reads_neighbours_in_a_file_together)
{
    simdisk *disk = simdisk_new();
    vessel v = {.kind = TO_FILE, .disk = disk};
    dcn_job how = {.cut = {.slot = 4096, .slots = 1, .direct = 4096}};
    gates g;
    cargo c;
    decant_error err;

    cargo_load(&c, disk, CARGO_FILE, CARGO_MOST, 400, 8);
    gates_up(&g, &disk->io);
    CHECK_OK(vessel_pour(&v, &c, &how, 0, &err), &err);
    vessel_check(&v, &c);
    CHECK(g.count[DCN_DO_READ] <= c.total / 4096 + 1);
    CHECK(g.count[DCN_DO_WRITE] <= c.total / 4096 + 2); /* and the first bytes */
    gates_down(&g);
    vessel_close(&v);
    cargo_close(&c);
    simdisk_free(&disk);
}

/* PF-05: a request costs its time of a network, so long tensors share slots too where the system does not copy them. */
TEST(pour__reads_and_writes_whole_slots_where_the_system_copies_nothing)
{
    simdisk *disk = simdisk_new();
    vessel v = {.kind = TO_FILE, .disk = disk};
    dcn_job how = {.cut = {.slot = 4096, .slots = 1, .direct = 64}};
    gates g;
    cargo c;
    decant_error err;

    disk->lacks = 1u << DCN_DO_COPY;
    cargo_load(&c, disk, CARGO_FILE, CARGO_MOST, 400, 8);
    gates_up(&g, &disk->io);
    CHECK_OK(vessel_pour(&v, &c, &how, 0, &err), &err);
    vessel_check(&v, &c);
    CHECK(g.count[DCN_DO_COPY] <= 1);
    CHECK(g.count[DCN_DO_READ] <= c.total / 4096 + 1);
    CHECK(g.count[DCN_DO_WRITE] <= c.total / 4096 + 2); /* and the first bytes */
    gates_down(&g);
    vessel_close(&v);
    cargo_close(&c);
    simdisk_free(&disk);
}

/* Tensor "t<i>": a part of a file, which stands at `i * len` of the output. */
static void add_part(decant_model *model, dcn_plan *plan, unsigned i, decant_bytes *file, uint64_t at, uint64_t len)
{
    char name[16];
    decant_tensor tensor = DECANT_TENSOR_INIT;
    decant_bytes *part = NULL;
    decant_error err;

    snprintf(name, sizeof name, "t%u", i);
    tensor.name = name;
    tensor.dtype = DECANT_U8;
    tensor.rank = 1;
    tensor.shape = &len;
    CHECK_OK(decant_bytes_slice(file, at, len, &part, &err), &err);
    CHECK_OK(decant_model_add(model, &tensor, part, &err), &err);
    CHECK_OK(dcn_plan_entry(plan, i * len, i, &err), &err);
    decant_bytes_unref(&part);
}

/* Two files in turns: each is read by itself, and still in few calls. */
TEST(pour__reads_each_of_several_files_together)
{
    enum { PARTS = 32, LEN = 10 };
    simdisk *disk = simdisk_new();
    uint8_t content[2][PARTS * LEN], wanted[2 * PARTS * LEN], got[sizeof wanted];
    static const char *const names[] = {"a.bin", "b.bin"};
    decant_bytes *files[2] = {NULL, NULL};
    dcn_plans plans = {0};
    dcn_plan *plan;
    decant_model *model = NULL;
    dcn_output *output = NULL;
    dcn_crew *crew = NULL;
    gates g;
    decant_error err;

    CHECK_OK(decant_model_create(&model, &err), &err);
    CHECK_OK(dcn_plans_add(&plans, model, &plan, &err), &err);
    for (unsigned i = 0; i < 2; i++) {
        dcn_source *source = NULL;

        test_stream(i, content[i], sizeof content[i]);
        simdisk_put(disk, names[i], content[i], sizeof content[i]);
        CHECK_OK(dcn_source_open(&disk->io, names[i], &source, &err), &err);
        CHECK_OK(dcn_bytes_from_source(source, &files[i], &err), &err);
    }
    for (unsigned i = 0; i < 2 * PARTS; i++) {
        add_part(model, plan, i, files[i % 2], i / 2 * LEN, LEN);
        memcpy(wanted + (size_t)i * LEN, content[i % 2] + (size_t)(i / 2) * LEN, LEN);
    }
    dcn_plan_finish(plan, sizeof wanted);

    CHECK_OK(dcn_crew_inline(&crew, &err), &err);
    CHECK_OK(dcn_output_memory(got, sizeof got, &output, &err), &err);
    gates_up(&g, &disk->io);
    CHECK_OK(dcn_pour(&(dcn_job){.plans = &plans, .outputs = &output, .cut = dcn_cut_default, .crew = crew}, &err),
             &err);
    CHECK_BYTES(got, sizeof got, wanted, sizeof wanted);
    CHECK_EQ(g.count[DCN_DO_READ], 2);
    gates_down(&g);

    dcn_output_close(&output);
    dcn_crew_close(&crew);
    dcn_plans_close(&plans);
    decant_model_close(&model);
    decant_bytes_unref(&files[0]);
    decant_bytes_unref(&files[1]);
    simdisk_free(&disk);
}

/* A model "t0", "t1", ... of tensors of `len` bytes that lie end to end in "in.bin", and a plan that leaves them so. */
typedef struct neighbours {
    decant_model *model;
    dcn_plans plans;
    dcn_source *source;
    dcn_crew *crew;
    uint8_t *content;
    size_t total;
} neighbours;

static void neighbours_load(neighbours *n, simdisk *disk, unsigned count, size_t len)
{
    decant_bytes *file = NULL;
    dcn_plan *plan;
    decant_error err;

    *n = (neighbours){.total = count * len};
    n->content = malloc(n->total);
    CHECK(n->content != NULL);
    test_stream(1, n->content, n->total);
    simdisk_put(disk, "in.bin", n->content, n->total);
    CHECK_OK(dcn_source_open(&disk->io, "in.bin", &n->source, &err), &err);
    CHECK_OK(dcn_bytes_from_source(dcn_source_ref(n->source), &file, &err), &err);
    CHECK_OK(decant_model_create(&n->model, &err), &err);
    CHECK_OK(dcn_plans_add(&n->plans, n->model, &plan, &err), &err);
    for (unsigned i = 0; i < count; i++)
        add_part(n->model, plan, i, file, i * len, len);
    dcn_plan_finish(plan, n->total);
    decant_bytes_unref(&file);
    CHECK_OK(dcn_crew_inline(&n->crew, &err), &err);
}

static decant_status neighbours_pour(neighbours *n, dcn_output **output, decant_error *err)
{
    decant_status rc = dcn_pour(
        &(dcn_job){
            .plans = &n->plans, .outputs = output, .cut = {.slot = 64, .slots = 1, .direct = 128}, .crew = n->crew},
        err);

    dcn_output_close(output);
    return rc;
}

static void neighbours_close(neighbours *n)
{
    dcn_crew_close(&n->crew);
    dcn_source_unref(&n->source);
    dcn_plans_close(&n->plans);
    decant_model_close(&n->model);
    free(n->content);
}

/* Each is too small to be copied by the system; together they are not. The first slot is what a file is asked with. */
TEST(pour__joins_what_lies_end_to_end_in_both_files)
{
    simdisk *disk = simdisk_new();
    dcn_dir *dir = NULL;
    dcn_output *output = NULL;
    neighbours n;
    gates g;
    const uint8_t *got;
    size_t len;
    decant_error err;

    neighbours_load(&n, disk, 32, 10);
    CHECK_OK(dcn_io_open_dir(&disk->io, ".", &dir, &err), &err);
    CHECK_OK(dcn_output_file(dir, "out.bin", NULL, false, &output, &err), &err);
    gates_up(&g, &disk->io);
    CHECK_OK(neighbours_pour(&n, &output, &err), &err);
    CHECK_EQ(g.count[DCN_DO_READ], 1);
    CHECK_EQ(g.count[DCN_DO_WRITE], 1);
    CHECK_EQ(g.count[DCN_DO_COPY], 320 / 64 - 1);
    gates_down(&g);
    got = simdisk_get(disk, "out.bin", &len);
    CHECK(got != NULL);
    CHECK_BYTES(got, len, n.content, n.total);
    dcn_dir_close(&dir);
    neighbours_close(&n);
    simdisk_free(&disk);
}

TEST(pour__names_the_tensor_in_the_middle_of_a_run_that_cannot_be_read)
{
    simdisk *disk = simdisk_new();
    uint8_t got[60];
    dcn_output *output = NULL;
    neighbours n;
    decant_error err;

    neighbours_load(&n, disk, 6, 10);
    CHECK_OK(dcn_output_memory(got, sizeof got, &output, &err), &err);
    simdisk_put(disk, "in.bin", n.content, 45); /* of 60 bytes */
    CHECK_FAILS(neighbours_pour(&n, &output, &err), DECANT_TRUNCATED, &err);
    CHECK_TEXT(err.tensor, "t4");
    neighbours_close(&n);
    simdisk_free(&disk);
}

typedef struct seen {
    dcn_chunk memory; /* of the tensor, or of a header */
    size_t direct;    /* bytes that came from there */
    size_t longest;   /* write */
} seen;

static decant_status see(void *ctx, const void *data, size_t len, decant_error *err)
{
    seen *s = ctx;
    const uint8_t *at = data;

    (void)err;
    if (at >= (const uint8_t *)s->memory.data && at < (const uint8_t *)s->memory.data + s->memory.len)
        s->direct += len;
    if (len > s->longest)
        s->longest = len;
    return DECANT_OK;
}

/* A header, if there is one, begins the output; the tensor stands behind it, or at 100. */
static void check_direct(bool with_header)
{
    static uint8_t memory[5000];
    uint64_t shape[] = {sizeof memory};
    decant_tensor tensor = DECANT_TENSOR_INIT;
    seen s = {.memory = {memory, sizeof memory}};
    dcn_buf header = {0};
    decant_bytes *bytes = NULL;
    decant_model *model = NULL;
    dcn_plans plans = {0};
    dcn_plan *plan;
    dcn_output *output = NULL;
    dcn_crew *crew = NULL;
    decant_error err;

    tensor.name = "large";
    tensor.dtype = DECANT_U8;
    tensor.rank = 1;
    tensor.shape = shape;
    CHECK_OK(decant_bytes_wrap(memory, sizeof memory, NULL, NULL, &bytes, &err), &err);
    CHECK_OK(decant_model_create(&model, &err), &err);
    CHECK_OK(decant_model_add(model, &tensor, bytes, &err), &err);
    CHECK_OK(dcn_plans_add(&plans, model, &plan, &err), &err);
    if (with_header) {
        dcn_buf_fill(&header, 'h', 4500);
        CHECK_OK(dcn_plan_literal(plan, 0, &header, &err), &err);
        s.memory = plan->literals[0];
    }
    CHECK_OK(dcn_plan_entry(plan, with_header ? 4500 : 100, 0, &err), &err);
    dcn_plan_finish(plan, (with_header ? 4500 : 100) + sizeof memory);
    CHECK_OK(dcn_crew_inline(&crew, &err), &err);
    CHECK_OK(dcn_output_stream(see, &s, &output, &err), &err);
    CHECK_OK(dcn_pour(&(dcn_job){.plans = &plans,
                                 .outputs = &output,
                                 .cut = {.slot = 1024, .slots = 1, .direct = 4096},
                                 .crew = crew},
                      &err),
             &err);
    CHECK_EQ(s.direct, s.memory.len);
    CHECK(s.longest <= 1024); /* progress goes on meanwhile */

    dcn_output_close(&output);
    dcn_crew_close(&crew);
    dcn_plans_close(&plans);
    decant_model_close(&model);
    decant_bytes_unref(&bytes);
}

TEST(pour__writes_large_memory_from_where_it_lies)
{
    check_direct(false);
    check_direct(true);
}
