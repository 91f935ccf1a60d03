#include "pour/moved.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "base/ckd.h"

/* What all sources of a giving share. */
typedef struct moved {
    dcn_refs refs; /* a source each */
    dcn_runs runs;
    dcn_file **files; /* the outputs; NULL: it could not be opened */
    size_t count;
} moved;

/* What one of them needs. */
typedef struct view {
    moved *moved;
    uint32_t source;
} view;

static void release_moved(moved *m)
{
    if (!dcn_refs_down(&m->refs))
        return;
    for (size_t i = 0; i < m->count; i++)
        dcn_file_close(&m->files[i]);
    dcn_free(&m->files);
    dcn_runs_close(&m->runs);
    dcn_free(&m);
}

static void release(void *ctx)
{
    view *v = ctx;

    release_moved(v->moved);
    dcn_free(&v);
}

static decant_status nowhere(uint64_t at, decant_error *err)
{
    decant_error_set(err, DECANT_NOT_FOUND, "it was given up, and its bytes at %" PRIu64 " are in no output", at);
    dcn_error_hint(err, "open the output: it has all that was kept");
    return DECANT_NOT_FOUND;
}

static decant_status read_moved(void *ctx, uint64_t offset, void *dst, size_t len, decant_error *err)
{
    const view *v = ctx;
    uint64_t at = offset, upto = offset + len, from, end;

    for (; at < upto; at = end) {
        dcn_places places;
        dcn_placing p;

        if (!dcn_runs_cover(&v->moved->runs, v->source, at, upto, UINT64_MAX, &from, &end) || from != at)
            return nowhere(at, err);
        places = dcn_places_of(&v->moved->runs, v->source, at, end);
        while (dcn_places_next(&places, &p)) {
            dcn_range range = {p.to, (uint8_t *)dst + (p.from - offset), (size_t)p.len};
            dcn_file *file = v->moved->files[p.output];
            decant_status rc = file ? dcn_file_read(file, &range, 1, err) : nowhere(p.from, err);

            if (rc)
                return rc;
        }
    }
    return DECANT_OK;
}

/* The output as it is in place, if it still is the one. */
static dcn_file *open_output(const dcn_output *o)
{
    dcn_file *file = NULL;
    dcn_facts facts;

    if (dcn_dir_open(o->dir, o->name, DCN_READ | DCN_NO_FOLLOW, 0, &file, NULL) || dcn_file_facts(file, &facts, NULL) ||
        !dcn_facts_same_file(&facts, &o->facts))
        dcn_file_close(&file);
    return file;
}

static moved *create(dcn_giving *giving, dcn_output *const *outputs, size_t count)
{
    moved *m = dcn_alloc(1, sizeof *m);

    if (!m || !(m->files = dcn_alloc(count, sizeof(dcn_file *)))) {
        dcn_free(&m);
        return NULL;
    }
    atomic_init(&m->refs, 1);
    m->runs = giving->runs;
    giving->runs = (dcn_runs){0};
    for (m->count = 0; m->count < count; m->count++)
        m->files[m->count] = open_output(outputs[m->count]);
    return m;
}

void dcn_moved_end(dcn_giving *giving, dcn_source *const *sources, dcn_output *const *outputs, size_t count)
{
    const char *path = outputs[count - 1]->path;
    moved *m = giving->runs.count ? create(giving, outputs, count) : NULL;

    for (uint32_t i = 0; i < giving->count; i++) {
        view *v = m && giving->items[i].drained ? dcn_alloc(1, sizeof *v) : NULL;

        if (!giving->items[i].drained)
            continue;
        if (v) {
            *v = (view){m, i};
            dcn_refs_up(&m->refs);
        }
        dcn_source_end(sources[i], path, v ? &(decant_reader){.read = read_moved, .release = release, .ctx = v} : NULL);
    }
    if (m)
        release_moved(m);
}
