#include "support/cargo.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/dtype.h"
#include "transform/cast.h"

static const char header[] = "HEADER: what is poured, where";
static const char trailer[] = "the end";

enum { ALIGN = 16, TAIL = 3 /* bytes after the trailer */ };

/* "in.bin": the contents of all tensors in files, a gap after each. @return where each begins */
static void put_file(cargo *c, simdisk *disk, const size_t *lens, size_t count, uint64_t *at)
{
    size_t total = 0;
    uint8_t *all;
    decant_error err;

    for (size_t i = 0; i < count; i++) {
        at[i] = total;
        total += lens[i] + i % 5;
    }
    all = calloc(total + 1, 1);
    CHECK(all != NULL);
    for (size_t i = 0; i < count; i++)
        test_stream(i, all + at[i], lens[i]);
    if (!simdisk_get(disk, "in.bin", &(size_t){0}))
        simdisk_put(disk, "in.bin", all, total);
    free(all);
    CHECK_OK(dcn_source_open(&disk->io, "in.bin", &c->source, &err), &err);
}

static decant_bytes *bytes_of_file(cargo *c, uint64_t at, uint64_t len)
{
    decant_bytes *whole = NULL, *part = NULL;
    decant_error err;

    CHECK_OK(dcn_bytes_from_source(dcn_source_ref(c->source), &whole, &err), &err);
    CHECK_OK(decant_bytes_slice(whole, at, len, &part, &err), &err);
    decant_bytes_unref(&whole);
    return part;
}

static decant_bytes *bytes_of_memory(uint64_t who, size_t from, size_t len)
{
    uint8_t *content = malloc(from + len + 1);
    decant_bytes *bytes = NULL;
    decant_error err;

    CHECK(content != NULL);
    test_stream(who, content, from + len);
    CHECK_OK(decant_bytes_copy(content + from, len, &bytes, &err), &err);
    free(content);
    return bytes;
}

static decant_bytes *rope(cargo *c, uint64_t who, uint64_t file_at, size_t len)
{
    size_t a = len / 3, b = len / 3;
    decant_bytes *parts[] = {
        bytes_of_memory(who, 0, a),
        bytes_of_file(c, file_at + a, b),
        bytes_of_memory(who, a + b, len - a - b),
    };
    decant_bytes *joined = NULL;
    decant_error err;

    CHECK_OK(decant_bytes_join(parts, 3, &joined, &err), &err);
    for (size_t i = 0; i < 3; i++)
        decant_bytes_unref(&parts[i]);
    return joined;
}

static decant_bytes *bytes_of(cargo *c, unsigned kind, size_t who, uint64_t file_at, size_t len)
{
    decant_bytes *bytes;
    decant_error err;

    switch (kind) {
    case CARGO_FILE:
        return bytes_of_file(c, file_at, len);
    case CARGO_RANGE:
    case CARGO_WHOLE:
        c->lens[who] = len;
        return recorder_bytes(&c->rec, (unsigned)who, len, kind == CARGO_WHOLE);
    case CARGO_KEPT:
        bytes = bytes_of_file(c, file_at, len);
        CHECK_OK(decant_bytes_keep(bytes, &err), &err);
        return bytes;
    case CARGO_ROPE:
        return rope(c, who, file_at, len);
    default:
        return bytes_of_memory(who, 0, len);
    }
}

/* What the `n`-th tensor is cast from, and to. */
static const decant_dtype casts[][2] = {
    {DECANT_BF16, DECANT_F32}, {DECANT_F64, DECANT_F16},  {DECANT_F8_E4M3, DECANT_BF16},
    {DECANT_F32, DECANT_F64},  {DECANT_F16, DECANT_BF16},
};

static const decant_dtype *nth_cast(size_t n)
{
    return casts[n % (sizeof casts / sizeof *casts)];
}

static size_t width(decant_dtype dtype)
{
    return dcn_dtype(dtype)->bits / 8;
}

/* Casts the bytes of tensor `n`, and what is wanted of it, which is there. @return bytes of that */
static size_t cast_tensor(decant_bytes **bytes, uint8_t *wanted, size_t n, size_t len)
{
    const decant_dtype *how = nth_cast(n);
    size_t count = len / width(how[0]);
    uint8_t *raw = malloc(len + 1);
    decant_bytes *cast = NULL;
    dcn_overflow over = {0};
    decant_error err;

    CHECK(raw != NULL);
    CHECK_OK(dcn_cast(&(dcn_span){*bytes, 0, len}, how[0], how[1], true, &cast, &err), &err);
    decant_bytes_unref(bytes);
    *bytes = cast;
    memcpy(raw, wanted, len);
    memset(wanted, 0, len);
    dcn_real_cast(how[0], how[1], raw, wanted, count, 0, &over);
    free(raw);
    return count * width(how[1]);
}

/* The `n`-th of the kinds, over and over. */
static unsigned nth_kind(unsigned kinds, size_t n)
{
    unsigned bit = 0;

    for (;; bit = (bit + 1) % 6)
        if (kinds & 1u << bit && n-- == 0)
            return 1u << bit;
}

static void put_literal(dcn_plan *plan, uint64_t at, const char *text)
{
    dcn_buf buf = {0};
    decant_error err;

    dcn_buf_text(&buf, text);
    CHECK_OK(dcn_plan_literal(plan, at, &buf, &err), &err);
}

void cargo_load(cargo *c, simdisk *disk, unsigned kinds, size_t count, size_t most, uint64_t seed)
{
    size_t lens[CARGO_MOST];
    uint64_t file_at[CARGO_MOST], at = sizeof header - 1;
    dcn_plan *plan = NULL;
    decant_error err;

    CHECK(count <= CARGO_MOST);
    *c = (cargo){0};
    for (size_t i = 0; i < count; i++)
        lens[i] = test_random(&seed) % 5 == 0 ? 0 : test_random(&seed) % (most + 1);
    for (size_t i = 0; i < count && kinds & CARGO_CAST; i++)
        lens[i] -= lens[i] % width(nth_cast(i)[0]);
    if (kinds & (CARGO_FILE | CARGO_KEPT | CARGO_ROPE))
        put_file(c, disk, lens, count, file_at);
    CHECK_OK(decant_model_create(&c->model, &err), &err);
    CHECK_OK(dcn_plans_add(&c->plans, c->model, &plan, &err), &err);
    put_literal(plan, 0, header);
    c->wanted = calloc(1, sizeof header + count * (2 * most + ALIGN) + sizeof trailer + ALIGN + TAIL);
    CHECK(c->wanted != NULL);
    memcpy(c->wanted, header, sizeof header - 1);

    for (size_t i = 0; i < count; i++) {
        char name[16];
        uint64_t shape[] = {lens[i]};
        decant_tensor tensor = DECANT_TENSOR_INIT;
        decant_bytes *bytes = bytes_of(c, nth_kind(kinds, i), i, file_at[i], lens[i]);

        at = (at + ALIGN - 1) / ALIGN * ALIGN + (kinds & CARGO_CAST ? i % 3 : 0);
        test_stream(i, c->wanted + at, lens[i]);
        if (kinds & CARGO_CAST) {
            shape[0] = lens[i] = cast_tensor(&bytes, c->wanted + at, i, lens[i]);
        }
        snprintf(name, sizeof name, "t%zu", i);
        tensor.name = name;
        tensor.dtype = DECANT_U8;
        tensor.rank = 1;
        tensor.shape = shape;
        CHECK_OK(decant_model_add(c->model, &tensor, bytes, &err), &err);
        decant_bytes_unref(&bytes);
        CHECK_OK(dcn_plan_entry(plan, at, i, &err), &err);
        at += lens[i];
    }

    at = (at + ALIGN - 1) / ALIGN * ALIGN;
    put_literal(plan, at, trailer);
    memcpy(c->wanted + at, trailer, sizeof trailer - 1);
    c->total = (size_t)at + sizeof trailer - 1 + TAIL;
    plan->held = CARGO_HELD;
    dcn_plan_finish(plan, c->total);
}

void cargo_close(cargo *c)
{
    dcn_plans_close(&c->plans);
    decant_model_close(&c->model);
    dcn_source_unref(&c->source);
    CHECK_EQ(c->rec.lent, 0);
    recorder_close(&c->rec);
    free(c->wanted);
    *c = (cargo){0};
}

static decant_status take_stream(void *ctx, const void *data, size_t len, decant_error *err)
{
    vessel *v = ctx;

    if (++v->calls == v->fail_at)
        return v->silent ? DECANT_CALLBACK : decant_error_set(err, DECANT_IO, "the pipe is closed");
    v->got = realloc(v->got, v->got_len + len + 1);
    CHECK(v->got != NULL);
    memcpy(v->got + v->got_len, data, len);
    v->got_len += len;
    return DECANT_OK;
}

static decant_status create(vessel *v, const cargo *c, dcn_dir **dir, dcn_output **out, decant_error *err)
{
    decant_status rc = DECANT_OK;

    if (v->kind == TO_FILE || v->kind == TO_FILE_IN_PLACE)
        rc = dcn_io_open_dir(&v->disk->io, ".", dir, err);
    if (rc)
        return rc;
    switch (v->kind) {
    case TO_FILE:
        rc = dcn_output_file(*dir, "out.bin", NULL, v->replace, out, err);
        break;
    case TO_FILE_IN_PLACE:
        rc = dcn_output_in_place(*dir, "out.bin", NULL, v->replace, &c->source, c->source ? 1 : 0, out, err);
        break;
    case TO_MEMORY:
        v->got_len = c->total + 5;
        v->got = malloc(v->got_len);
        CHECK(v->got != NULL);
        memset(v->got, 0xEE, v->got_len);
        rc = dcn_output_memory(v->got, v->got_len, out, err);
        break;
    case TO_NEW:
        rc = dcn_output_new(out, err);
        break;
    case TO_STREAM:
        rc = dcn_output_stream(take_stream, v, out, err);
        break;
    default:
        rc = dcn_output_sink(NULL, NULL, out, err);
    }
    return rc;
}

/* What new memory holds, copied for vessel_check(). */
static decant_status take_new(vessel *v, dcn_output *output, decant_error *err)
{
    decant_bytes *bytes = NULL;
    decant_status rc = dcn_output_new_take(output, &bytes, err);

    if (rc)
        return rc;
    v->got_len = (size_t)decant_bytes_len(bytes);
    v->got = malloc(v->got_len + 1);
    CHECK(v->got != NULL);
    rc = decant_bytes_read(bytes, 0, v->got, v->got_len, err);
    decant_bytes_unref(&bytes);
    return rc;
}

decant_status vessel_pour(vessel *v, const cargo *c, const dcn_job *how, uint64_t seed, decant_error *err)
{
    dcn_output *output = NULL;
    dcn_crew *crew = NULL;
    dcn_dir *dir = NULL;
    dcn_job job = *how;
    decant_status rc;

    if ((rc = seed ? dcn_crew_seeded(seed, &crew, err) : dcn_crew_inline(&crew, err)) ||
        (rc = create(v, c, &dir, &output, err)))
        goto done;
    job.plans = &c->plans;
    job.outputs = &output;
    job.crew = crew;
    rc = dcn_pour(&job, err);
    v->published = output->published;
    v->durable = output->durable;
    if (rc == DECANT_OK && v->kind == TO_NEW)
        rc = take_new(v, output, err);
done:
    dcn_output_close(&output);
    dcn_dir_close(&dir);
    dcn_crew_close(&crew);
    return rc;
}

void vessel_check(const vessel *v, const cargo *c)
{
    size_t len = v->got_len;
    const uint8_t *got = v->got;

    if (v->kind == TO_SINK)
        return;
    if (v->kind == TO_FILE || v->kind == TO_FILE_IN_PLACE) {
        got = simdisk_get(v->disk, v->lands ? v->lands : "out.bin", &len);
        CHECK(got != NULL);
    }
    if (v->kind == TO_MEMORY) {
        len = c->total;
        for (size_t i = len; i < v->got_len; i++) /* the tail keeps what it was */
            CHECK_EQ(got[i], 0xEE);
    }
    CHECK_BYTES(got, len, c->wanted, c->total);
}

void vessel_close(vessel *v)
{
    free(v->got);
    v->got = NULL;
    v->got_len = v->calls = 0;
}
