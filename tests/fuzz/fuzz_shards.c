/*
 * Any bytes as a set: a byte that says how many files there are and how they are named, two of length for each, then the
 * files. The first is the index, or the first part; the others lie beside it as "1", "2", ... What opens is one model.
 */
#include "base/endian.h"
#include "support/models.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FILES = 5, NO_INDEX = 0x80, LENIENT = 0x40, LISTED = 0x20 }; /* LISTED: all faults, as verify has them */

typedef struct folder {
    dcn_input in;
    const uint8_t *files[FILES];
    size_t lens[FILES], count;
    bool indexed;
} folder;

typedef struct file {
    dcn_input in;
    char name[64];
} file;

static void count_fault(void *ctx, const decant_error *fault)
{
    CHECK(fault->status && fault->message[0]);
    ++*(size_t *)ctx;
}

static void close_file(dcn_input *in)
{
    decant_bytes_unref(&in->bytes);
    free(in);
}

/* A copy, in memory that ends where it does. */
static decant_bytes *bytes_of(const folder *f, size_t i)
{
    decant_bytes *bytes = NULL;
    decant_error err;

    CHECK_OK(decant_bytes_copy(f->files[i], f->lens[i], &bytes, &err), &err);
    return bytes;
}

static decant_status open_beside(dcn_input *in, const char *name, dcn_input **out, decant_error *err)
{
    folder *f = (folder *)in;

    for (size_t i = 0; i < f->count; i++) {
        char wanted[64];
        file *made;

        if (f->indexed)
            snprintf(wanted, sizeof wanted, "%zu", i);
        else
            snprintf(wanted, sizeof wanted, "m-%zu-of-%zu", i + 1, f->count);
        if (strcmp(wanted, name) != 0)
            continue;
        made = calloc(1, sizeof *made);
        CHECK(made);
        strcpy(made->name, wanted);
        made->in = (dcn_input){.bytes = bytes_of(f, i), .name = made->name, .close = close_file};
        *out = &made->in;
        return DECANT_OK;
    }
    return decant_error_set(err, DECANT_NOT_FOUND, "no such file");
}

/* In the order of files and places, each name once, each tensor in one of the files. */
static void check_set(const decant_model *model)
{
    uint64_t sizes = 0, bytes = 0, size;
    size_t index;

    for (size_t i = 0; decant_model_file(model, i, NULL, &size); i++)
        sizes += size;
    for (size_t i = 0; i < model->count; i++) {
        const dcn_entry *e = &model->entries[i];
        uint8_t *data = entry_bytes(e);

        CHECK(dcn_model_find(model, e->name, e->name_len, &index));
        CHECK_EQ(index, i);
        bytes += e->data.len;
        CHECK(i == 0 || e->data.backing != e[-1].data.backing || e->data.offset >= e[-1].data.offset);
        free(data);
    }
    CHECK(bytes <= 2 * sizes); /* tied tensors may be in it twice */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    folder f = {.in = {.name = "i.json", .sibling = open_beside}};
    dcn_limits limits = dcn_limits_of(false);
    size_t at = 1;
    char first[64];
    unsigned flags = size ? data[0] : 0;
    size_t faults = 0;
    const dcn_findings findings = {count_fault, &faults};
    decant_model *model = NULL;
    decant_error err = {0};
    decant_status rc;

    f.count = (flags & 7) % FILES + 1;
    if (size < 1 + 2 * f.count)
        return 0;
    at += 2 * f.count;
    for (size_t i = 0; i < f.count; i++) {
        size_t len = (size_t)data[1 + 2 * i] | (size_t)data[2 + 2 * i] << 8;

        f.lens[i] = len < size - at ? len : size - at;
        f.files[i] = data + at;
        at += f.lens[i];
    }
    limits.shards = 8;
    f.indexed = !(flags & NO_INDEX);
    if (!f.indexed) {
        snprintf(first, sizeof first, "m-1-of-%zu", f.count);
        f.in.name = first;
    }
    f.in.bytes = bytes_of(&f, 0);
    f.in.findings = flags & LISTED ? &findings : NULL;
    rc = dcn_format_open(&f.in, &dcn_safetensors, &limits, flags & LENIENT ? DECANT_LENIENT_ALL : 0, &model, &err);
    decant_bytes_unref(&f.in.bytes);
    CHECK(faults || err.status == rc);
    CHECK(rc ? !model && err.message[0] : model != NULL);
    if (model && !faults) { /* what is left of it with faults counts for nothing */
        check_set(model);
        if (model->count || model->value_count)
            check_comes_back(&dcn_safetensors, model, true);
    }
    decant_model_close(&model);
    return 0;
}
