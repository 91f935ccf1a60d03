#include "support/convoy.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"

enum { TENSORS = 2, HELD = 8 };

const char *convoy_name(size_t i)
{
    static const char *const names[CONVOY_MOST] = {"a.bin", "b.bin", "c.bin", "d.bin",
                                                   "e.bin", "f.bin", "g.bin", "h.bin"};

    CHECK(i < CONVOY_MOST);
    return names[i];
}

static void add_tensor(convoy *c, dcn_plan *plan, size_t file, size_t k, uint64_t *at, uint64_t *seed)
{
    uint8_t content[600];
    uint64_t shape[] = {100 + test_random(seed) % 500};
    decant_tensor tensor = DECANT_TENSOR_INIT;
    decant_bytes *bytes = NULL;
    char name[32];
    decant_error err;

    snprintf(name, sizeof name, "t%zu.%zu", file, k);
    tensor.name = name;
    tensor.dtype = DECANT_U8;
    tensor.rank = 1;
    tensor.shape = shape;
    test_stream(test_random(seed), content, (size_t)shape[0]);
    CHECK_OK(decant_bytes_copy(content, (size_t)shape[0], &bytes, &err), &err);
    CHECK_OK(decant_model_add(c->model, &tensor, bytes, &err), &err);
    decant_bytes_unref(&bytes);
    CHECK_OK(dcn_plan_entry(plan, *at, decant_model_count(c->model) - 1, &err), &err);
    memcpy(c->wanted[file] + *at, content, (size_t)shape[0]);
    *at += shape[0];
}

void convoy_load(convoy *c, size_t count, uint64_t seed)
{
    decant_error err;

    CHECK(count <= CONVOY_MOST);
    *c = (convoy){0};
    CHECK_OK(decant_model_create(&c->model, &err), &err);
    for (size_t i = 0; i < count; i++) {
        dcn_plan *plan = NULL;
        dcn_buf head = {0};
        uint64_t at;

        c->wanted[i] = calloc(1, 4096);
        CHECK(c->wanted[i] != NULL);
        CHECK_OK(dcn_plans_add(&c->plans, c->model, &plan, &err), &err);
        plan->name = dcn_strndup(convoy_name(i), strlen(convoy_name(i)));
        CHECK(plan->name != NULL);
        dcn_buf_format(&head, "HEADER of %s, which is file %zu; ", convoy_name(i), i);
        at = head.len;
        memcpy(c->wanted[i], head.data, head.len);
        CHECK_OK(dcn_plan_literal(plan, 0, &head, &err), &err);
        for (size_t k = 0; k < TENSORS && i + 1 < count; k++)
            add_tensor(c, plan, i, k, &at, &seed);
        plan->held = HELD;
        dcn_plan_finish(plan, at);
        c->totals[i] = (size_t)at;
    }
}

void convoy_close(convoy *c)
{
    dcn_plans_close(&c->plans);
    decant_model_close(&c->model);
    for (size_t i = 0; i < CONVOY_MOST; i++)
        free(c->wanted[i]);
    *c = (convoy){0};
}

decant_status convoy_pour(convoy *c, const convoy_voyage *how, decant_error *err)
{
    dcn_output *outputs[CONVOY_MOST] = {0};
    dcn_crew *crew = NULL;
    dcn_dir *dir = NULL;
    dcn_journal journal = {0};
    dcn_job job = {
        .plans = &c->plans,
        .outputs = outputs,
        .cut = {.slot = 256, .slots = 2, .direct = 200},
        .progress = how->progress,
        .progress_ctx = how->progress_ctx,
    };
    dcn_removal old = {.name = CONVOY_OLD};
    dcn_facts facts;
    decant_status rc;

    if ((rc = how->seed ? dcn_crew_seeded(how->seed, &crew, err) : dcn_crew_inline(&crew, err)) ||
        (rc = dcn_io_open_dir(&how->disk->io, ".", &dir, err)))
        goto done;
    for (size_t i = 0; i < c->plans.count; i++)
        if ((rc = dcn_output_file(dir, c->plans.items[i].name, c->plans.items[i].name, how->replace, &outputs[i], err)))
            goto done;
    if (how->prune) {
        if ((rc = dcn_dir_stat(dir, CONVOY_OLD, &facts, err)))
            goto done;
        old.file = dcn_identity_of(&facts);
        old.mtime = facts.mtime;
        job.removals = &old;
        job.removal_count = 1;
    }
    if (how->journal && (rc = dcn_journal_create(&journal, dir, convoy_name(c->plans.count - 1), err)))
        goto done;
    job.journal = how->journal ? &journal : NULL;
    job.crew = crew;
    rc = dcn_pour(&job, err);
    for (size_t i = 0; i < c->plans.count; i++) {
        c->published[i] = outputs[i]->published;
        c->durable[i] = outputs[i]->durable;
    }
done:
    for (size_t i = 0; i < c->plans.count; i++)
        dcn_output_close(&outputs[i]);
    dcn_journal_close(&journal);
    dcn_dir_close(&dir);
    dcn_crew_close(&crew);
    return rc;
}

bool convoy_landed(const convoy *c, const simdisk *disk, size_t i)
{
    size_t len = 0;
    const uint8_t *got = simdisk_get(disk, convoy_name(i), &len);

    return got && len == c->totals[i] && memcmp(got, c->wanted[i], len) == 0;
}
