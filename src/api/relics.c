#include "api/relics.h"

#include <string.h>

#include "base/alloc.h"
#include "base/sort.h"

typedef struct search {
    dcn_relics *relics;
    dcn_dir *dir;
    const dcn_format *format;
    const char *name;
    const dcn_landing *landings;
    size_t landing_count;
    dcn_source *const *sources;
    size_t source_count;
    bool no_memory;
} search;

static bool is_output(const search *s, const char *name)
{
    for (size_t i = 0; i < s->landing_count; i++)
        if (strcmp(s->landings[i].name, name) == 0)
            return true;
    return false;
}

static bool is_source(const search *s, const dcn_facts *facts)
{
    for (size_t i = 0; i < s->source_count; i++) {
        const dcn_facts *source = dcn_source_facts(s->sources[i]);

        if (source && dcn_facts_same_file(source, facts))
            return true;
    }
    return false;
}

static bool add(search *s, const char *name, const dcn_facts *facts)
{
    dcn_relics *r = s->relics;
    dcn_relic *items;
    char *path = dcn_io_join(s->dir->path, name);

    if (!path || dcn_arena_adopt(&r->memory, path)) {
        dcn_free(&path);
        return false;
    }
    if (!(items = dcn_grown(r->items, r->count, &r->cap, sizeof *items)))
        return false;
    r->items = items;
    r->name_at = strlen(path) - strlen(name);
    r->items[r->count++] = (dcn_relic){
        .path = path,
        .kept = facts->kind != DCN_KIND_REGULAR ? "it is a link"
                : is_source(s, facts)           ? "it is an input"
                                                : NULL,
        .file = dcn_identity_of(facts),
        .mtime = facts->mtime,
    };
    return true;
}

static int note(void *ctx, const char *name)
{
    search *s = ctx;
    dcn_facts facts;

    if (!s->format->supersedes(s->name, name) || is_output(s, name) || dcn_dir_stat(s->dir, name, &facts, NULL) ||
        (facts.kind != DCN_KIND_REGULAR && facts.kind != DCN_KIND_LINK))
        return 0;
    s->no_memory = !add(s, name, &facts);
    return s->no_memory;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const dcn_relic *)a)->path, ((const dcn_relic *)b)->path);
}

decant_status dcn_relics_find(dcn_relics *out, dcn_dir *dir, const dcn_format *format, const char *name,
                              const dcn_landing *landings, size_t landing_count, dcn_source *const *sources,
                              size_t source_count, decant_error *err)
{
    search s = {out, dir, format, name, landings, landing_count, sources, source_count, false};
    decant_status rc;

    if (!format->supersedes)
        return DECANT_OK;
    rc = dcn_dir_list(dir, note, &s, err);
    if (s.no_memory || !(out->removals = dcn_alloc(out->count, sizeof *out->removals)))
        return dcn_error_nomem(err);
    if (rc == DECANT_DENIED)
        return DECANT_OK;
    if (rc) {
        dcn_error_side(err, DECANT_SIDE_OUTPUT);
        return rc;
    }
    dcn_sort(out->items, out->count, sizeof *out->items, by_path);
    for (size_t i = 0; i < out->count; i++)
        if (!out->items[i].kept)
            out->removals[out->removal_count++] =
                (dcn_removal){out->items[i].path + out->name_at, out->items[i].file, out->items[i].mtime, DCN_HOME};
    return DECANT_OK;
}

void dcn_relics_leave_out(dcn_relics *relics, const dcn_giving *giving)
{
    size_t left = 0;

    for (size_t i = 0; i < relics->count; i++) {
        bool given = false;

        for (size_t k = 0; k < giving->count && !given; k++)
            given = giving->items[k].file.ino == relics->items[i].file.ino &&
                    giving->items[k].file.dev == relics->items[i].file.dev;
        if (!given)
            relics->items[left++] = relics->items[i];
    }
    relics->count = left;
}

void dcn_relics_look(dcn_relics *relics, dcn_dir *dir)
{
    dcn_facts facts;

    for (size_t i = 0; i < relics->count; i++)
        relics->items[i].removed =
            dcn_dir_stat(dir, relics->items[i].path + relics->name_at, &facts, NULL) == DECANT_NOT_FOUND;
}

void dcn_relics_close(dcn_relics *relics)
{
    dcn_free(&relics->removals);
    dcn_free(&relics->items);
    dcn_arena_close(&relics->memory);
}
