#include "pour/route.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/ckd.h"
#include "base/sort.h"
#include "output/output.h"

enum {
    ALL_WRITE = 02, /* of a folder's mode */
    STICKY = 01000
};

dcn_route *dcn_routes_find(const dcn_routes *routes, const dcn_source *source, size_t *last)
{
    if (*last < routes->count && routes->items[*last].source == source)
        return &routes->items[*last];
    for (*last = 0; *last < routes->count; ++*last)
        if (routes->items[*last].source == source)
            return &routes->items[*last];
    return NULL;
}

void dcn_route_copy(dcn_route *route)
{
    route->way = DCN_COPY;
    route->shared = 0;
    route->reason = "the system did not share its blocks";
}

/* The route of a source, made if there is none yet. */
static decant_status find_route(dcn_routes *routes, dcn_source *source, size_t *last, dcn_route **out,
                                decant_error *err)
{
    dcn_route *items;

    if ((*out = dcn_routes_find(routes, source, last)))
        return DECANT_OK;
    if (!(items = dcn_grown(routes->items, routes->count, &routes->cap, sizeof *items)))
        return dcn_error_nomem(err);
    routes->items = items;
    *out = &routes->items[routes->count++];
    **out = (dcn_route){.source = dcn_source_ref(source), .reason = "plain save"};
    return DECANT_OK;
}

/* `len` bytes of a source are used. */
static decant_status use(dcn_routes *routes, dcn_source *source, uint64_t len, size_t *last, decant_error *err)
{
    dcn_route *route;
    decant_status rc = find_route(routes, source, last, &route, err);

    if (rc == DECANT_OK)
        route->bytes += len;
    return rc;
}

/* What bytes [at, at + len) of a leaf are made of. As deep as DCN_ROPE_DEPTH. */
static decant_status use_made(dcn_routes *routes, dcn_backing *leaf, uint64_t at, uint64_t len, size_t *last,
                              decant_error *err)
{
    const dcn_recipe *recipe = dcn_backing_recipe(leaf);
    dcn_span raw = recipe ? dcn_recipe_raw(recipe, at, len) : leaf->ops->raw ? *leaf->ops->raw(leaf) : (dcn_span){0};
    decant_status rc = DECANT_OK;

    routes->makes |= recipe != NULL;
    for (uint64_t upto = raw.offset, end = raw.offset + raw.len; upto < end && rc == DECANT_OK;) {
        uint64_t from = upto, offset;
        dcn_place place;

        if (dcn_backing_place(raw.backing, from, &place)) {
            upto = dcn_min(place.upto, end);
            rc = use(routes, place.source, upto - from, last, err);
        } else {
            dcn_backing *below = dcn_backing_leaf(raw.backing, from, &offset, &upto);

            upto = dcn_min(upto, end);
            rc = use_made(routes, below, offset, upto - from, last, err);
        }
    }
    return rc;
}

decant_status dcn_routes_collect(const dcn_plans *plans, uint64_t share, dcn_routes *out, decant_error *err)
{
    size_t last = 0;
    decant_status rc = DECANT_OK;

    for (size_t i = 0; i < plans->count; i++) {
        dcn_steps steps = dcn_steps_of(&plans->items[i]);
        dcn_step step;

        while (rc == DECANT_OK && dcn_steps_next(&steps, &step)) {
            uint64_t at;

            if (step.kind == DCN_STEP_LEAF)
                rc = use_made(out, step.leaf, step.from, step.len, &last, err);
            if (step.kind != DCN_STEP_RUN || (rc = use(out, step.source, step.len, &last, err)))
                continue;
            out->items[last].shared += dcn_step_blocks(&step, plans->items[i].held, share, &at);
        }
    }
    return rc;
}

/* What is at the name may go. */
static decant_status check_name(const dcn_routes *routes, const dcn_facts *old, bool replace, decant_error *err)
{
    decant_status rc;

    if (old->kind != DCN_KIND_REGULAR && old->kind != DCN_KIND_LINK) {
        rc = decant_error_set(err, DECANT_EXISTS, "%s is no place for a model",
                              old->kind == DCN_KIND_FOLDER ? "a folder" : "a device, pipe or socket");
        dcn_error_hint(err, "name a file");
        return rc;
    }
    if (old->mounted) {
        rc = decant_error_set(err, DECANT_BUSY, "a file that is mounted here has this name, and no other can take it");
        dcn_error_hint(err, "choose another name");
        return rc;
    }
    if (replace)
        return DECANT_OK;
    for (size_t i = 0; i < routes->count; i++) {
        const dcn_facts *source = dcn_source_facts(routes->items[i].source);

        if (source && dcn_facts_same_file(source, old)) {
            rc = decant_error_set(err, DECANT_SAME_FILE, "the output is one of the inputs");
            dcn_error_hint(err, "--force replaces it when the new one is complete");
            return rc;
        }
    }
    return dcn_output_exists(err);
}

/* Says it once, of however many outputs it is true. */
static void note(dcn_routes *routes, const char *what)
{
    size_t i = 0;

    while (routes->replaces[i] && strcmp(routes->replaces[i], what) != 0)
        i++;
    routes->replaces[i] = what;
}

/* What replacing it does that might not be expected. */
static void note_replaced(dcn_routes *routes, const dcn_facts *old)
{
    if (old->kind == DCN_KIND_LINK) {
        note(routes, "a symbolic link; what it leads to stays");
        return;
    }
    if (old->links > 1)
        note(routes, "a file with other names, which keep it");
    if (!old->ours)
        note(routes, "a file of another user; the new one is yours");
}

/*
 * The folder can be written at all. Mode bits count, also for root; the rest shows when the scratch file is made. Where a
 * folder is sticky, as /tmp is, who owns neither it nor the file would be refused at the rename, after all the work.
 *
 * @param old  is to be replaced; NULL: nothing is
 */
static decant_status check_folder(const dcn_facts *folder, const dcn_facts *old, bool has_journal, decant_error *err)
{
    decant_status rc = DECANT_OK;

    if (!(folder->mode & 0222)) {
        rc = decant_error_set(err, DECANT_DENIED, "the folder is read-only");
        dcn_error_hint(err, "allow writing to it (chmod u+w), or name another folder");
    } else if (old && folder->mode & STICKY && !folder->ours && !old->ours) {
        rc =
            decant_error_set(err, DECANT_DENIED, "the file is another user's, who alone may replace it in this folder");
        dcn_error_hint(err, "choose another name or folder");
    } else if (has_journal && folder->mode & ALL_WRITE && !(folder->mode & STICKY)) {
        rc =
            decant_error_set(err, DECANT_DENIED, "everybody may write to the folder, so a journal in it means nothing");
        dcn_error_hint(err, "choose another folder, or take that from the others (chmod o-w or +t)");
    }
    return rc;
}

static decant_status check_limit(const dcn_space *space, uint64_t total, decant_error *err)
{
    if (total <= space->limit)
        return DECANT_OK;
    decant_error_set(err, DECANT_NO_SPACE, "the output passes the limit of a file's size");
    dcn_error_found(err, "a limit of %" PRIu64 " bytes", space->limit);
    dcn_error_expected(err, "%" PRIu64, total);
    dcn_error_hint(err, "raise it with ulimit -f");
    return DECANT_NO_SPACE;
}

/* Whose blocks are expected to be shared: judged by the kind of the file system. The save finds out. */
static uint64_t choose_routes(dcn_routes *routes, const dcn_space *space, const dcn_facts *folder)
{
    uint64_t shared = 0;

    for (size_t i = 0; i < routes->count; i++) {
        dcn_route *route = &routes->items[i];
        const dcn_facts *facts = dcn_source_facts(route->source);

        route->way = DCN_COPY;
        if (!space->shares)
            route->reason = "the file system cannot share blocks";
        else if (!facts || facts->dev != folder->dev)
            route->reason = "not on the file system of the output";
        else if (!route->shared)
            route->reason = "no blocks of it line up with the output's";
        else
            route->way = DCN_CLONE;
        if (route->way == DCN_CLONE)
            route->reason = route->shared == route->bytes ? "" : "blocks at the ends are copied";
        else
            route->shared = 0;
        shared += route->shared;
    }
    return shared;
}

decant_status dcn_routes_check_room(dcn_routes *routes, const dcn_dir *dir, const dcn_space *space, decant_error *err)
{
    if (routes->room <= space->free)
        return DECANT_OK;
    decant_error_set(err, DECANT_NO_SPACE, "no room");
    dcn_error_found(err, "%" PRIu64 " bytes free in '%s'", space->free, dir->path);
    dcn_error_expected(err, "%" PRIu64, routes->room);
    dcn_error_hint(err, "make room for %" PRIu64 " more, or name another folder", routes->room - space->free);
    dcn_error_side(err, DECANT_SIDE_OUTPUT);
    return DECANT_NO_SPACE;
}

/* A system that does not tell its space lets everything pass. */
static decant_status ask_space(dcn_dir *dir, dcn_space *space, decant_error *err)
{
    decant_status rc = dcn_dir_space(dir, space, err);

    if (rc != DECANT_UNSUPPORTED)
        return rc;
    *space = (dcn_space){.free = UINT64_MAX, .limit = UINT64_MAX, .files = UINT64_MAX};
    return DECANT_OK;
}

static decant_status blame_output(decant_status rc, decant_error *err)
{
    if (rc && rc != DECANT_NOMEM)
        dcn_error_side(err, DECANT_SIDE_OUTPUT);
    return rc;
}

static decant_status check_landing(dcn_routes *routes, dcn_dir *dir, const dcn_facts *folder, const dcn_space *space,
                                   const dcn_landing *landing, bool replace, bool has_journal, decant_error *err)
{
    dcn_facts old;
    bool replaces;
    decant_status rc;

    if (strlen(landing->name) > DCN_NAME_MOST) {
        rc = decant_error_set(err, DECANT_BAD_CALL, "the name is too long");
        dcn_error_found(err, "%zu bytes", strlen(landing->name));
        dcn_error_expected(err, "at most %d", DCN_NAME_MOST);
        dcn_error_hint(err, "choose a shorter one");
        return rc;
    }
    rc = dcn_dir_stat(dir, landing->name, &old, err);
    replaces = rc == DECANT_OK;
    if (rc == DECANT_NOT_FOUND)
        rc = DECANT_OK;
    else if (replaces && !(rc = check_name(routes, &old, replace, err)))
        note_replaced(routes, &old);
    if (rc || (rc = check_folder(folder, replaces ? &old : NULL, has_journal, err)))
        return rc;
    return check_limit(space, landing->total, err);
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const dcn_landing *const *)a)->name, (*(const dcn_landing *const *)b)->name);
}

static decant_status check_names_differ(const dcn_landing *landings, size_t count, decant_error *err)
{
    const dcn_landing **order = dcn_alloc(count, sizeof(const dcn_landing *));
    decant_status rc = DECANT_OK;

    if (!order)
        return dcn_error_nomem(err);
    for (size_t i = 0; i < count; i++)
        order[i] = &landings[i];
    dcn_sort(order, count, sizeof(const dcn_landing *), by_name);
    for (size_t i = 1; i < count && rc == DECANT_OK; i++)
        if (strcmp(order[i]->name, order[i - 1]->name) == 0) {
            rc = decant_error_set(err, DECANT_SAME_FILE, "two outputs have this name");
            dcn_error_hint(err, "give each a name of its own");
            dcn_error_path(err, order[i]->path);
        }
    dcn_free(&order);
    return rc;
}

decant_status dcn_routes_check_files(dcn_routes *routes, dcn_dir *dir, const dcn_landing *landings, size_t count,
                                     bool replace, dcn_space *space, decant_error *err)
{
    dcn_facts folder;
    uint64_t total = 0;
    decant_status rc;

    if ((rc = check_names_differ(landings, count, err)) || (rc = ask_space(dir, space, err)) ||
        (rc = dcn_dir_stat(dir, ".", &folder, err)))
        goto done;
    for (size_t i = 0; i < count; i++) {
        uint64_t size;

        if ((rc = check_landing(routes, dir, &folder, space, &landings[i], replace, count > 1, err))) {
            dcn_error_repath(err, landings[i].path);
            goto done;
        }
        if (dcn_ckd_align(&size, landings[i].total, space->block ? space->block : 1) ||
            dcn_ckd_add(&total, total, size))
            total = UINT64_MAX;
    }
    routes->free = space->free == UINT64_MAX ? 0 : space->free;
    routes->lasts = space->lasts;
    routes->shared = choose_routes(routes, space, &folder);
    routes->room = total - routes->shared;
done:
    return blame_output(rc, err);
}

void dcn_routes_look(dcn_routes *routes, dcn_dir *dir)
{
    dcn_space space;

    if (routes->free && dcn_dir_space(dir, &space, NULL) == DECANT_OK && space.free < routes->free &&
        routes->taken < routes->free - space.free)
        routes->taken = routes->free - space.free;
}

decant_status dcn_routes_check_in_place(dcn_dir *dir, uint64_t total, decant_error *err)
{
    dcn_space space;
    decant_status rc = ask_space(dir, &space, err);

    return blame_output(rc ? rc : check_limit(&space, total, err), err);
}

void dcn_routes_close(dcn_routes *routes)
{
    for (size_t i = 0; i < routes->count; i++)
        dcn_source_unref(&routes->items[i].source);
    dcn_free(&routes->items);
    *routes = (dcn_routes){0};
}
