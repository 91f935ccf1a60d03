/*
 * All numbers are little-endian.
 *
 *     BEGIN    u32 outputs | u32 folders but the journal's own | u32 files to remove afterwards | u32 sources | u32 runs |
 *              u64 batch | u64 unit | each output | each folder | each such file | each source | each run
 *     output   u16 bytes of the name | name | u8 flags | u64 size | u64 held back | if it replaces: identity
 *     folder   u16 bytes of the path | path
 *     file     u16 bytes of the name | name | u32 folder, 0: the journal's own | identity | u64 time of its last change
 *     source   file | u8 flags
 *     run      u32 source | u32 output | u64 from | u64 to | u64 bytes
 *     READY    identity of each part | the bytes that each output holds back
 *     COMMIT   identity of each part
 *     MOVED    u32 source | u64 from | u64 upto | u64 sum; UNMOVED the same, and covers nothing: `from` is `upto`
 *     identity u64 device | u64 inode | u64 birth | u64 size
 */
#include "pour/intent.h"

#include <string.h>

#include "base/alloc.h"
#include "base/ckd.h"
#include "base/endian.h"
#include "base/reader.h"
#include "pour/journal.h"

enum {
    REPLACE = 1 << 0,
    HAS_OLD = 1 << 1,
    FLAGS = REPLACE | HAS_OLD,
    DRAINED = 1 << 0,                      /* of a source */
    IDENTITY = 32,                         /* bytes */
    OUTPUT_LEAST = 20,                     /* bytes of an output in BEGIN */
    FOLDER_LEAST = 2 + 1,                  /* of a folder */
    FILE_LEAST = 2 + 1 + 4 + IDENTITY + 8, /* of a file to remove, and of a source */
    RUN = 4 + 4 + 8 + 8 + 8,               /* of a run */
    HELD_MOST = 64 << 10,                  /* of an output */
    PATH_MOST = 4096
};

/* The largest batch and unit that make sense; what is beyond them is not ours. */
#define BATCH_MOST (UINT64_C(1) << 40)
#define UNIT_MOST (UINT64_C(1) << 30)

/* --- making ------------------------------------------------------------------------------------------------------ */

dcn_identity dcn_identity_of(const dcn_facts *facts)
{
    return (dcn_identity){.dev = facts->dev, .ino = facts->ino, .size = facts->size, .birth = facts->birth};
}

bool dcn_identity_fits(const dcn_identity *identity, const dcn_facts *facts, bool same_boot)
{
    return identity->ino == facts->ino && identity->birth == facts->birth && identity->size == facts->size &&
           (!same_boot || identity->dev == facts->dev);
}

static decant_status no_memory_unless(const void *memory, decant_error *err)
{
    return memory ? DECANT_OK : dcn_error_nomem(err);
}

static decant_status take_outputs(dcn_intent *intent, size_t count, decant_error *err)
{
    intent->outputs = dcn_alloc(count, sizeof *intent->outputs);
    intent->count = intent->outputs ? count : 0;
    return no_memory_unless(intent->outputs, err);
}

static decant_status take_removals(dcn_intent *intent, size_t count, decant_error *err)
{
    intent->removals = dcn_alloc(count, sizeof *intent->removals);
    intent->removal_count = intent->removals ? count : 0;
    return no_memory_unless(intent->removals, err);
}

decant_status dcn_intent_folder(dcn_intent *intent, const char *path, uint32_t *out, decant_error *err)
{
    size_t count = intent->folder_count ? intent->folder_count : DCN_HOME + 1;
    const char **folders;

    for (size_t i = DCN_HOME + 1; i < count; i++)
        if (strcmp(intent->folders[i], path) == 0) {
            *out = (uint32_t)i;
            return DECANT_OK;
        }
    if (!(folders = dcn_realloc(intent->folders, count + 1, sizeof *folders)))
        return dcn_error_nomem(err);
    intent->folders = folders;
    folders[DCN_HOME] = NULL;
    if (!(folders[count] = dcn_arena_copy(&intent->memory, path, strlen(path) + 1)))
        return dcn_error_nomem(err);
    intent->folder_count = count + 1;
    *out = (uint32_t)count;
    return DECANT_OK;
}

decant_status dcn_intent_make(dcn_intent *intent, const dcn_plans *plans, dcn_output *const *outputs,
                              const dcn_removal *removals, size_t removal_count, decant_error *err)
{
    decant_status rc;

    if ((rc = take_outputs(intent, plans->count, err)) || (rc = take_removals(intent, removal_count, err)))
        return rc;
    for (size_t i = 0; i < removal_count; i++) {
        intent->removals[i] = removals[i];
        intent->removals[i].name = dcn_arena_copy(&intent->memory, removals[i].name, strlen(removals[i].name) + 1);
        if (!intent->removals[i].name)
            return dcn_error_nomem(err);
    }

    for (size_t i = 0; i < plans->count && rc == DECANT_OK; i++) {
        const dcn_output *o = outputs[i];
        dcn_promise *p = &intent->outputs[i];
        dcn_facts old;

        rc = dcn_dir_stat(o->dir, o->name, &old, err);
        *p = (dcn_promise){.name = dcn_arena_copy(&intent->memory, o->name, strlen(o->name) + 1),
                           .size = plans->items[i].total,
                           .held = plans->items[i].held,
                           .replace = o->replace,
                           .has_old = rc == DECANT_OK};
        if (p->has_old)
            p->old = dcn_identity_of(&old);
        if (rc == DECANT_NOT_FOUND)
            rc = DECANT_OK;
        if (!p->name)
            rc = dcn_error_nomem(err);
    }
    return rc;
}

static decant_status check_name(const dcn_promise *p, const dcn_output *o, bool same_boot, decant_error *err)
{
    dcn_facts now;
    decant_status rc = dcn_dir_stat(o->dir, o->name, &now, err);

    if (rc == DECANT_NOT_FOUND)
        return DECANT_OK;
    if (rc == DECANT_OK && !p->replace)
        rc = dcn_output_exists(err);
    else if (rc == DECANT_OK && !(p->has_old && dcn_identity_fits(&p->old, &now, same_boot))) {
        rc = decant_error_set(err, DECANT_CHANGED, "another file has come to this name while it was written");
        dcn_error_hint(err, "see what it is, and save again");
    }
    if (rc)
        dcn_error_path(err, o->path);
    return rc;
}

decant_status dcn_intent_check(const dcn_intent *intent, dcn_output *const *outputs, bool same_boot, decant_error *err)
{
    decant_status rc = DECANT_OK;

    for (size_t i = 0; i < intent->count && rc == DECANT_OK; i++)
        rc = check_name(&intent->outputs[i], outputs[i], same_boot, err);
    if (rc && rc != DECANT_NOMEM)
        dcn_error_side(err, DECANT_SIDE_OUTPUT);
    return rc;
}

void dcn_intent_name_parts(dcn_intent *intent, dcn_output *const *outputs)
{
    for (size_t i = 0; i < intent->count; i++) {
        intent->outputs[i].part = dcn_identity_of(&outputs[i]->facts);
        intent->outputs[i].part.size = intent->outputs[i].size; /* it had none when it was looked at */
    }
}

static decant_status carry_out(dcn_dir *dir, const dcn_removal *removal, bool same_boot, decant_error *err)
{
    dcn_facts now;
    decant_status rc = dcn_dir_stat(dir, removal->name, &now, err);

    if (rc == DECANT_OK && dcn_identity_fits(&removal->file, &now, same_boot) && now.mtime == removal->mtime)
        rc = dcn_dir_remove(dir, removal->name, err);
    return rc == DECANT_NOT_FOUND ? DECANT_OK : rc;
}

decant_status dcn_removals_carry_out(dcn_dir *const *dirs, const dcn_removal *removals, size_t count, bool same_boot,
                                     decant_error *err)
{
    decant_status rc = DECANT_OK;

    for (size_t i = 0; i < count && rc == DECANT_OK; i++)
        if (dirs[removals[i].folder])
            rc = carry_out(dirs[removals[i].folder], &removals[i], same_boot, err);
    for (size_t i = 0; i < count && rc == DECANT_OK; i++)
        if (dirs[removals[i].folder] && (i == 0 || removals[i].folder != removals[i - 1].folder))
            rc = dcn_dir_sync(dirs[removals[i].folder], err);
    return rc;
}

void dcn_intent_close(dcn_intent *intent)
{
    dcn_runs_close(&intent->giving.runs);
    dcn_free(&intent->giving.items);
    dcn_free(&intent->removals);
    dcn_free(&intent->folders);
    dcn_free(&intent->outputs);
    dcn_arena_close(&intent->memory);
    *intent = (dcn_intent){0};
}

/* --- writing ----------------------------------------------------------------------------------------------------- */

static void put_number(dcn_buf *out, uint64_t value, unsigned bytes)
{
    uint8_t text[8];

    dcn_put_le(text, value, bytes);
    dcn_buf_put(out, text, bytes);
}

static void put_identity(dcn_buf *out, const dcn_identity *identity)
{
    put_number(out, identity->dev, 8);
    put_number(out, identity->ino, 8);
    put_number(out, (uint64_t)identity->birth, 8);
    put_number(out, identity->size, 8);
}

static void put_text(dcn_buf *out, const char *text)
{
    put_number(out, strlen(text), 2);
    dcn_buf_text(out, text);
}

static void put_file(dcn_buf *out, const char *name, uint32_t folder, const dcn_identity *file, int64_t mtime)
{
    put_text(out, name);
    put_number(out, folder, 4);
    put_identity(out, file);
    put_number(out, (uint64_t)mtime, 8);
}

static void put_output(dcn_buf *out, const dcn_promise *p)
{
    put_text(out, p->name);
    put_number(out, (p->replace ? REPLACE : 0) | (p->has_old ? HAS_OLD : 0), 1);
    put_number(out, p->size, 8);
    put_number(out, p->held, 8);
    if (p->has_old)
        put_identity(out, &p->old);
}

static void put_run(dcn_buf *out, const dcn_run *run)
{
    put_number(out, run->source, 4);
    put_number(out, run->output, 4);
    put_number(out, run->from, 8);
    put_number(out, run->to, 8);
    put_number(out, run->len, 8);
}

void dcn_intent_put_begin(const dcn_intent *intent, dcn_buf *out)
{
    const dcn_giving *giving = &intent->giving;
    size_t folders = intent->folder_count ? intent->folder_count - 1 : 0;

    put_number(out, intent->count, 4);
    put_number(out, folders, 4);
    put_number(out, intent->removal_count, 4);
    put_number(out, giving->count, 4);
    put_number(out, giving->runs.count, 4);
    put_number(out, giving->batch, 8);
    put_number(out, giving->unit, 8);
    for (size_t i = 0; i < intent->count; i++)
        put_output(out, &intent->outputs[i]);
    for (size_t i = 1; i <= folders; i++)
        put_text(out, intent->folders[i]);
    for (size_t i = 0; i < intent->removal_count; i++) {
        const dcn_removal *r = &intent->removals[i];

        put_file(out, r->name, r->folder, &r->file, r->mtime);
    }
    for (size_t i = 0; i < giving->count; i++) {
        const dcn_owned *o = &giving->items[i];

        put_file(out, o->name, o->folder, &o->file, o->mtime);
        put_number(out, o->drained ? DRAINED : 0, 1);
    }
    for (size_t i = 0; i < giving->runs.count; i++)
        put_run(out, &giving->runs.items[i]);
}

void dcn_intent_put_ready(const dcn_intent *intent, dcn_output *const *outputs, dcn_buf *out)
{
    dcn_intent_put_commit(intent, out);
    for (size_t i = 0; i < intent->count; i++)
        dcn_buf_put(out, dcn_output_held(outputs[i]), (size_t)intent->outputs[i].held);
}

void dcn_intent_put_commit(const dcn_intent *intent, dcn_buf *out)
{
    for (size_t i = 0; i < intent->count; i++)
        put_identity(out, &intent->outputs[i].part);
}

void dcn_mark_put(const dcn_mark *mark, dcn_buf *out)
{
    put_number(out, mark->source, 4);
    put_number(out, mark->from, 8);
    put_number(out, mark->upto, 8);
    put_number(out, mark->sum, 8);
}

static size_t commit_len(const dcn_intent *intent)
{
    return intent->count * IDENTITY;
}

static size_t ready_len(const dcn_intent *intent)
{
    size_t len = commit_len(intent);

    for (size_t i = 0; i < intent->count; i++)
        len += (size_t)intent->outputs[i].held;
    return len;
}

/* Marks: one each way for every batch and every source, since a batch ends where it is full and may span sources. */
/* One a batch, and one more where it goes from one source to the next. */
static uint64_t count_marks(const dcn_giving *giving)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < giving->runs.count; i++)
        bytes += giving->runs.items[i].len;
    return bytes / giving->batch + 1 + giving->count;
}

uint64_t dcn_intent_cells_back(const dcn_intent *intent)
{
    enum { ABORT = 1 };

    return ABORT + count_marks(&intent->giving) + intent->giving.count;
}

uint64_t dcn_intent_cells(const dcn_intent *intent)
{
    enum { SPARE = 64 }; /* for who has to drain the same batch again and again */
    uint64_t cells = dcn_journal_cells(commit_len(intent));

    if (!intent->giving.runs.count)
        return cells;
    return cells + dcn_journal_cells(ready_len(intent)) + count_marks(&intent->giving) + SPARE +
           dcn_intent_cells_back(intent);
}

/* --- reading ----------------------------------------------------------------------------------------------------- */

/* What fits its checksum and still makes no sense was not written by this version. */
static decant_status from_later(decant_error *err, const char *what)
{
    decant_error_set(err, DECANT_UNSUPPORTED, "a later version of decant has written this journal: %s", what);
    dcn_error_hint(err, "recover with that version");
    return DECANT_UNSUPPORTED;
}

static uint64_t take_number(dcn_reader *r, unsigned bytes)
{
    const uint8_t *at = dcn_reader_take(r, bytes);
    uint64_t value = 0;

    for (unsigned i = 0; at && i < bytes; i++)
        value |= (uint64_t)at[i] << 8 * i;
    return value;
}

static dcn_identity take_identity(dcn_reader *r)
{
    dcn_identity identity = {.dev = take_number(r, 8), .ino = take_number(r, 8)};

    identity.birth = (int64_t)take_number(r, 8);
    identity.size = take_number(r, 8);
    return identity;
}

/* A bare name: what is not one would lead out of the folder. */
static bool is_bare(const uint8_t *name, size_t len)
{
    return name && len && len <= DCN_NAME_MOST && !memchr(name, '/', len) && !memchr(name, '\0', len) &&
           !(name[0] == '.' && (len == 1 || (len == 2 && name[1] == '.')));
}

static bool is_absolute(const uint8_t *path, size_t len)
{
    return path && len && len < PATH_MOST && path[0] == '/' && !memchr(path, '\0', len);
}

static decant_status take_text(dcn_intent *intent, dcn_reader *r, bool (*is_right)(const uint8_t *text, size_t len),
                               const char **out, decant_error *err)
{
    size_t len = (size_t)take_number(r, 2);
    const uint8_t *text = dcn_reader_take(r, len);
    char *copy;

    if (!is_right(text, len))
        return from_later(err, "a file that is not in its folder");
    if (!(copy = dcn_arena_take(&intent->memory, len + 1)))
        return dcn_error_nomem(err);
    memcpy(copy, text, len);
    copy[len] = '\0';
    *out = copy;
    return DECANT_OK;
}

static decant_status take_file(dcn_intent *intent, dcn_reader *r, const char **name, uint32_t *folder,
                               dcn_identity *file, int64_t *mtime, decant_error *err)
{
    decant_status rc = take_text(intent, r, is_bare, name, err);

    if (rc)
        return rc;
    *folder = (uint32_t)take_number(r, 4);
    *file = take_identity(r);
    *mtime = (int64_t)take_number(r, 8);
    return *folder && *folder >= intent->folder_count ? from_later(err, "a folder that it does not name") : DECANT_OK;
}

static decant_status take_output(dcn_intent *intent, dcn_reader *r, dcn_promise *p, decant_error *err)
{
    uint64_t flags;
    decant_status rc = take_text(intent, r, is_bare, &p->name, err);

    if (rc)
        return rc;
    flags = take_number(r, 1);
    p->size = take_number(r, 8);
    p->held = take_number(r, 8);
    if (r->failed || flags & ~(uint64_t)FLAGS || p->held > HELD_MOST || p->held > p->size)
        return from_later(err, "an output of a kind that is not known");
    p->replace = flags & REPLACE;
    p->has_old = flags & HAS_OLD;
    if (p->has_old)
        p->old = take_identity(r);
    return DECANT_OK;
}

static decant_status take_owned(dcn_intent *intent, dcn_reader *r, dcn_owned *o, decant_error *err)
{
    uint64_t flags;
    decant_status rc = take_file(intent, r, &o->name, &o->folder, &o->file, &o->mtime, err);

    if (rc)
        return rc;
    flags = take_number(r, 1);
    o->drained = flags & DRAINED;
    return flags & ~(uint64_t)DRAINED ? from_later(err, "a source of a kind that is not known") : DECANT_OK;
}

/* A run lies within its source and its output: what is freed and what is put back follows from it. */
static decant_status take_run(dcn_intent *intent, dcn_reader *r, decant_error *err)
{
    const dcn_giving *giving = &intent->giving;
    dcn_run run = {.source = (uint32_t)take_number(r, 4), .output = (uint32_t)take_number(r, 4)};

    run.from = take_number(r, 8);
    run.to = take_number(r, 8);
    run.len = take_number(r, 8);
    if (r->failed || !run.len || run.source >= giving->count || !giving->items[run.source].drained ||
        run.output >= intent->count || dcn_outside(run.from, run.len, giving->items[run.source].file.size) ||
        dcn_outside(run.to, run.len, intent->outputs[run.output].size))
        return from_later(err, "a run of bytes that is not there");
    if (giving->runs.count && !dcn_run_follows(&giving->runs.items[giving->runs.count - 1], &run))
        return from_later(err, "runs out of order");
    return dcn_runs_add(&intent->giving.runs, &run, err);
}

static decant_status take_giving(dcn_intent *intent, dcn_reader *r, size_t count, size_t runs, decant_error *err)
{
    dcn_giving *giving = &intent->giving;
    bool sound = giving->unit && !(giving->unit & (giving->unit - 1)) && giving->unit <= UNIT_MOST && giving->batch &&
                 giving->batch <= BATCH_MOST;
    decant_status rc;

    if (runs && !sound)
        return from_later(err, "batches of a size that is none");
    if (!(giving->items = dcn_alloc(count, sizeof *giving->items)))
        return dcn_error_nomem(err);
    giving->count = count;
    for (size_t i = 0; i < count; i++)
        if ((rc = take_owned(intent, r, &giving->items[i], err)))
            return rc;
    for (size_t i = 0; i < runs; i++)
        if ((rc = take_run(intent, r, err)))
            return rc;
    return dcn_runs_finish(&giving->runs, count, err);
}

decant_status dcn_intent_read_begin(dcn_intent *intent, const uint8_t *data, size_t len, decant_error *err)
{
    dcn_reader r = dcn_reader_on(data, len);
    uint64_t count = take_number(&r, 4), folders = take_number(&r, 4), removals = take_number(&r, 4);
    uint64_t sources = take_number(&r, 4), runs = take_number(&r, 4);
    decant_status rc;

    intent->giving.batch = take_number(&r, 8);
    intent->giving.unit = take_number(&r, 8);
    if (!count || count > len / OUTPUT_LEAST || folders > len / FOLDER_LEAST || removals > len / FILE_LEAST ||
        sources > len / FILE_LEAST || runs > len / RUN)
        return from_later(err, "it begins with more than it holds");
    if ((rc = take_outputs(intent, (size_t)count, err)) || (rc = take_removals(intent, (size_t)removals, err)))
        return rc;
    for (size_t i = 0; i < intent->count; i++)
        if ((rc = take_output(intent, &r, &intent->outputs[i], err)))
            return rc;
    for (size_t i = 0; i < folders; i++) {
        const char *path = NULL;
        uint32_t number;

        if ((rc = take_text(intent, &r, is_absolute, &path, err)) ||
            (rc = dcn_intent_folder(intent, path, &number, err)))
            return rc;
        if (number != i + 1)
            return from_later(err, "a folder twice");
    }
    for (size_t i = 0; i < intent->removal_count; i++) {
        dcn_removal *m = &intent->removals[i];

        if ((rc = take_file(intent, &r, &m->name, &m->folder, &m->file, &m->mtime, err)))
            return rc;
    }
    if ((rc = take_giving(intent, &r, (size_t)sources, (size_t)runs, err)))
        return rc;
    return r.failed || dcn_reader_left(&r) ? from_later(err, "it begins with more than it holds") : DECANT_OK;
}

static void take_parts(dcn_intent *intent, dcn_reader *r)
{
    for (size_t i = 0; i < intent->count; i++)
        intent->outputs[i].part = take_identity(r);
}

decant_status dcn_intent_read_ready(dcn_intent *intent, const uint8_t *data, size_t len, dcn_buf *held,
                                    decant_error *err)
{
    dcn_reader r = dcn_reader_on(data, len);

    take_parts(intent, &r);
    if (r.failed || ready_len(intent) != len)
        return from_later(err, "it holds back something else");
    dcn_buf_put(held, data + dcn_reader_offset(&r), dcn_reader_left(&r));
    return dcn_buf_check(held, err);
}

decant_status dcn_intent_read_commit(dcn_intent *intent, const uint8_t *data, size_t len, decant_error *err)
{
    dcn_reader r = dcn_reader_on(data, len);

    take_parts(intent, &r);
    return r.failed || dcn_reader_left(&r) ? from_later(err, "it ends with more than outputs") : DECANT_OK;
}

decant_status dcn_mark_read(dcn_mark *mark, const dcn_intent *intent, const uint8_t *data, size_t len,
                            decant_error *err)
{
    dcn_reader r = dcn_reader_on(data, len);

    mark->source = (uint32_t)take_number(&r, 4);
    mark->from = take_number(&r, 8);
    mark->upto = take_number(&r, 8);
    mark->sum = take_number(&r, 8);
    if (r.failed || dcn_reader_left(&r) || mark->source >= intent->giving.count ||
        !intent->giving.items[mark->source].drained || mark->from > mark->upto ||
        mark->upto > intent->giving.items[mark->source].file.size)
        return from_later(err, "a mark that is none");
    return DECANT_OK;
}
