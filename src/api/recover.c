#include "pour/recover.h"

#include <string.h>

#include "api/env.h"
#include "base/alloc.h"
#include "base/ckd.h"
#include "format/format.h"

typedef struct file {
    const char *path;
    uint64_t bytes;
    bool published;
} file;

typedef struct save {
    decant_recovered what;
    file *files;
} save;

struct decant_recovery {
    dcn_arena memory; /* paths and files */
    save *saves;
    size_t count, cap;
};

/* A search under way. */
typedef struct search {
    const dcn_env *env;
    dcn_dir *dir;
    const char *name; /* of a file that was asked for; NULL: all of the folder */
    decant_direction direction;
    decant_recovery *found;
    dcn_buf transactions; /* of the journals that are there */
    dcn_buf followed;     /* paths of journals elsewhere that inputs have led to, each with its NUL */
} search;

static const char *join(search *s, const char *name)
{
    char *path = dcn_io_join(s->dir->path, name);

    if (path && dcn_arena_adopt(&s->found->memory, path))
        dcn_free(&path);
    return path;
}

/* Whether a save to NAME makes several files of which `output` is one: the set that it is the name of. */
static bool stands_for(const char *name, const char *output)
{
    const dcn_format *format;

    for (size_t i = 0; (format = dcn_format_at(i)); i++)
        if (format->supersedes && format->supersedes(name, output))
            return true;
    return false;
}

/* Whether an input that a save gives up was asked for, under its own name or the other one. */
static bool gives(const search *s, const dcn_leftover *l, decant_status *rc, decant_error *err)
{
    const dcn_giving *giving = &l->intent.giving;
    bool same = false;

    for (size_t i = 0; i < giving->count && !same; i++) {
        const dcn_owned *owned = &giving->items[i];
        char *moving = NULL;

        if (owned->folder != DCN_HOME)
            continue;
        if ((*rc = dcn_moving_name(owned->name, &moving, err)))
            return false;
        same = strcmp(owned->name, s->name) == 0 || strcmp(moving, s->name) == 0;
        dcn_free(&moving);
    }
    return same;
}

/* Whether the file that was asked for belongs to this save. */
static bool concerns(const search *s, const dcn_leftover *l, const char *journal, decant_status *rc, decant_error *err)
{
    char *own = NULL;
    bool same;
    uint8_t id[8];

    if (!s->name || strcmp(s->name, journal) == 0)
        return true;
    for (size_t i = 0; i < l->intent.count; i++) {
        const char *output = l->intent.outputs[i].name;

        if (output &&
            (stands_for(s->name, output) || strcmp(output, s->name) == 0 ||
             (dcn_part_is_of(s->name, output, true, id) && memcmp(id, l->journal.transaction, sizeof id) == 0)))
            return true;
    }
    if (l->intent.count)
        return gives(s, l, rc, err);
    if ((*rc = dcn_journal_name(s->name, &own, err)))
        return false;
    same = strcmp(own, journal) == 0;
    dcn_free(&own);
    return same;
}

/* Inputs that have their other name. One that cannot be looked at is not counted. */
static size_t count_incomplete(const dcn_leftover *l)
{
    const dcn_giving *giving = &l->intent.giving;
    size_t count = 0;

    for (size_t i = 0; i < giving->count; i++) {
        const dcn_owned *owned = &giving->items[i];
        dcn_dir *other = NULL;
        char *moving = NULL;
        dcn_facts facts;
        bool reached = owned->folder == DCN_HOME ||
                       dcn_io_open_dir(l->dir->io, l->intent.folders[owned->folder], &other, NULL) == DECANT_OK;

        if (reached && dcn_moving_name(owned->name, &moving, NULL) == DECANT_OK)
            count += dcn_dir_stat(other ? other : l->dir, moving, &facts, NULL) == DECANT_OK &&
                     dcn_identity_fits(&owned->file, &facts, l->same_boot);
        dcn_free(&moving);
        dcn_dir_close(&other);
    }
    return count;
}

/* How far the giving up is, and what it takes to go either way. */
static void count_given(decant_recovered *to, const dcn_leftover *l)
{
    enum { UNFREED = 2, SPARE = 2 }; /* batches, units */
    const dcn_giving *giving = &l->intent.giving;

    if (!l->marks) /* it cannot be read that far */
        return;
    to->moved = dcn_leftover_moved(l, &to->to_move);
    to->given_count = giving->count;
    to->incomplete_count = count_incomplete(l);
    if (l->stage == DCN_STAGE_READY)
        to->finish_room = dcn_min(UNFREED * giving->batch, to->to_move - to->moved) + SPARE * giving->unit;
    if (l->stage == DCN_STAGE_READY || l->stage == DCN_STAGE_ABORTED)
        to->undo_room = dcn_min(giving->batch, to->moved) + SPARE * giving->unit;
}

static const decant_stage stages[] = {
    [DCN_STAGE_LIVE] = DECANT_STAGE_LIVE,       [DCN_STAGE_NOTHING] = DECANT_STAGE_BEGUN,
    [DCN_STAGE_BEGUN] = DECANT_STAGE_BEGUN,     [DCN_STAGE_READY] = DECANT_STAGE_MOVING,
    [DCN_STAGE_ABORTED] = DECANT_STAGE_UNDOING, [DCN_STAGE_COMMITTED] = DECANT_STAGE_COMPLETE,
};

static decant_status add_save(search *s, const dcn_leftover *l, const char *journal, save **out, decant_error *err)
{
    decant_recovery *r = s->found;
    size_t count = l->intent.count;
    save *to, *saves = dcn_grown(r->saves, r->count, &r->cap, sizeof *saves);

    if (!saves)
        return dcn_error_nomem(err);
    r->saves = saves;
    to = &saves[r->count];
    *to = (save){.what = {.stage = stages[l->stage]}};
    to->what.path = join(s, count ? l->intent.outputs[count - 1].name : journal);
    to->files = dcn_arena_take(&r->memory, count * sizeof *to->files);
    if (!to->what.path || !to->files)
        return dcn_error_nomem(err);
    for (size_t i = 0; i < count; i++) {
        const dcn_promise *p = &l->intent.outputs[i];

        to->files[i] = (file){.path = join(s, p->name), .bytes = p->size};
        if (!to->files[i].path)
            return dcn_error_nomem(err);
        to->what.bytes += p->size;
    }
    to->what.file_count = count;
    count_given(&to->what, l);
    r->count++;
    *out = to;
    return DECANT_OK;
}

static decant_status finish(const search *s, dcn_leftover *l, decant_error *err)
{
    decant_status rc = dcn_env_crew(s->env, l->stage == DCN_STAGE_READY, &l->crew, err);

    if (rc == DECANT_OK)
        rc = dcn_leftover_finish(l, err);
    dcn_crew_close(&l->crew);
    return rc;
}

static decant_status go(const search *s, dcn_leftover *l, decant_error *err)
{
    switch (s->direction) {
    case DECANT_RECOVER_RESUME:
        return finish(s, l, err);
    case DECANT_RECOVER_UNDO:
        return dcn_leftover_undo(l, err);
    default:
        return DECANT_OK;
    }
}

/* One journal of the folder: looked at, and if it is the right one acted upon. */
static decant_status look_at(search *s, const char *journal, decant_error *err)
{
    bool to_act = s->direction != DECANT_RECOVER_SHOW, ours;
    decant_status problem = DECANT_OK, rc;
    dcn_leftover l;
    save *found = NULL;

    rc = dcn_leftover_open(&l, s->dir, journal, false, err);
    if (rc == DECANT_OK)
        dcn_buf_put(&s->transactions, l.journal.transaction, sizeof l.journal.transaction);
    ours = rc != DECANT_NOT_FOUND && rc != DECANT_NOMEM && concerns(s, &l, journal, &problem, err);
    if (problem || !ours) {
        rc = problem || rc == DECANT_NOMEM ? dcn_error_nomem(err) : DECANT_OK;
        goto done;
    }
    if (rc)
        goto done;
    if (to_act && l.stage != DCN_STAGE_LIVE) {
        dcn_leftover_close(&l);
        if ((rc = dcn_leftover_open(&l, s->dir, journal, true, err)))
            goto done;
    }
    if ((rc = add_save(s, &l, journal, &found, err)))
        goto done;
    rc = go(s, &l, err);
    found->what.done = to_act && rc == DECANT_OK;
    for (size_t i = 0; i < found->what.file_count; i++) /* now: one may have been moved away before */
        found->files[i].published = dcn_leftover_has_landed(&l, i);
    if (rc && rc != DECANT_NOMEM && !err->path[0] && found->what.file_count)
        dcn_error_path(err, found->what.path);
done:
    dcn_leftover_close(&l);
    return rc;
}

/* A scratch file whose journal is not there: it may be all there is of something. */
static decant_status check_part(const search *s, const char *part, decant_error *err)
{
    const char *hex = part + strlen(part) - strlen(".jpart") - 16;
    uint8_t id[8];
    char *base, *path;
    bool known = true;
    decant_status rc;

    if (strlen(part) < strlen(".decant-.jpart") + 16)
        return DECANT_OK;
    base = dcn_strndup(part, (size_t)(hex - part) - strlen(".decant-"));
    if (!base)
        return dcn_error_nomem(err);
    if (dcn_part_is_of(part, base, true, id) &&
        (!s->name || strcmp(s->name, base) == 0 || strcmp(s->name, part) == 0)) {
        known = false;
        for (size_t at = 0; at < s->transactions.len; at += DCN_TRANSACTION)
            known |= memcmp(s->transactions.data + at, id, sizeof id) == 0;
    }
    dcn_free(&base);
    if (known)
        return DECANT_OK;
    if (!(path = dcn_io_join(s->dir->path, part)))
        return dcn_error_nomem(err);
    rc = dcn_leftovers_lone(s->dir, part, err);
    dcn_error_path(err, path);
    dcn_free(&path);
    return rc;
}

/* --- inputs, which may be in other folders than the journal -------------------------------------------------------- */

static decant_status orphaned(const search *s, const char *input, const char *journal, decant_error *err)
{
    char *path = dcn_io_join(s->dir->path, input);
    decant_status rc = decant_error_set(err, DECANT_INTERRUPTED,
                                        "this is an input of an interrupted save, and may be incomplete; its journal "
                                        "is not there");

    if (journal)
        dcn_error_hint(err, "put it back as '%s'; nothing was touched", journal);
    else
        dcn_error_hint(err, "look in the folder of the output for what ends in .decant-journal; nothing was touched");
    dcn_error_path(err, path ? path : input);
    dcn_free(&path);
    return rc;
}

/* What is noted on a file: where the journal is. @param out  "": nothing is */
static decant_status read_note(const search *s, const char *name, char out[DCN_MOVING_NOTE], bool *there,
                               decant_error *err)
{
    dcn_file *input = NULL;
    decant_status rc = dcn_dir_open(s->dir, name, DCN_READ | DCN_NO_FOLLOW, 0, &input, err);

    out[0] = '\0';
    *there = rc == DECANT_OK;
    if (rc == DECANT_OK)
        rc = dcn_moving_read_note(s->dir, name, input, out, err);
    dcn_file_close(&input);
    if (rc == DECANT_NOMEM)
        return rc;
    if (rc)
        out[0] = '\0'; /* whatever cannot be read is no input of ours, or cannot be told to be one */
    return DECANT_OK;
}

static bool was_followed(const search *s, const char *journal)
{
    for (size_t at = 0; at < s->followed.len; at += strlen((char *)s->followed.data + at) + 1)
        if (strcmp((char *)s->followed.data + at, journal) == 0)
            return true;
    return false;
}

/* A journal by the path that is noted on an input. Once it was found, its other inputs lead to it too. */
static decant_status follow(search *s, const char *input, const char *journal, decant_error *err)
{
    search there = *s;
    size_t before = s->found->count;
    char *name = NULL;
    dcn_facts own, facts;
    decant_status rc;

    if (was_followed(s, journal))
        return DECANT_OK;
    dcn_buf_put(&s->followed, journal, strlen(journal) + 1);
    there.dir = NULL;
    if ((rc = dcn_buf_check(&s->followed, err)) || (rc = dcn_io_split(s->dir->io, journal, &there.dir, &name, err)))
        goto done;
    there.name = name;
    if ((rc = dcn_dir_stat(there.dir, name, &facts, err)) || (rc = dcn_dir_stat(there.dir, ".", &facts, err)) ||
        (rc = dcn_dir_stat(s->dir, ".", &own, err)) || dcn_facts_same_file(&own, &facts))
        goto done; /* those in the folder that was asked for were looked at */
    rc = look_at(&there, name, err);
    s->transactions = there.transactions;
    if (rc == DECANT_OK && s->found->count == before)
        rc = DECANT_NOT_FOUND;
done:
    dcn_free(&name);
    dcn_dir_close(&there.dir);
    return rc == DECANT_NOT_FOUND ? orphaned(s, input, journal, err) : rc;
}

/* What an input leads to; `sought`: it was asked for. */
static decant_status look_at_input(search *s, const char *input, bool sought, decant_error *err)
{
    char journal[DCN_MOVING_NOTE];
    bool there;
    decant_status rc = read_note(s, input, journal, &there, err);

    if (rc == DECANT_OK && journal[0])
        return follow(s, input, journal, err);
    return rc == DECANT_OK && there && sought && !s->found->count ? orphaned(s, input, NULL, err) : rc;
}

static int note_input(void *ctx, const char *name)
{
    dcn_buf *inputs = ctx;

    if (dcn_moving_base(name))
        dcn_buf_put(inputs, name, strlen(name) + 1);
    return inputs->failed;
}

/* The inputs in the folder that are incomplete, or the one that was asked for. */
static decant_status look_at_inputs(search *s, decant_error *err)
{
    dcn_buf inputs = {0};
    char *moving = NULL;
    decant_status rc;

    if (s->name && (rc = dcn_moving_name(s->name, &moving, err)))
        return rc;
    if (s->name) {
        note_input(&inputs, s->name);
        note_input(&inputs, moving);
        rc = DECANT_OK;
    } else {
        rc = dcn_dir_list(s->dir, note_input, &inputs, err);
    }
    if (rc == DECANT_OK)
        rc = dcn_buf_check(&inputs, err);
    for (size_t i = 0; i < inputs.len && rc == DECANT_OK; i += strlen((char *)inputs.data + i) + 1)
        rc = look_at_input(s, (char *)inputs.data + i, s->name != NULL, err);
    dcn_free(&moving);
    dcn_buf_close(&inputs);
    return rc;
}

/* Of several failures the first is told; the others are tried all the same. */
static decant_status look_everywhere(search *s, decant_error *err)
{
    dcn_buf journals = {0}, parts = {0};
    decant_error later;
    decant_status first = dcn_leftovers_list(s->dir, &journals, &parts, err), rc;

    for (size_t i = 0; i < journals.len && first != DECANT_NOMEM; i += strlen((char *)journals.data + i) + 1) {
        rc = look_at(s, (char *)journals.data + i, first ? &later : err);
        first = first ? first : rc;
    }
    if (!first)
        first = dcn_buf_check(&s->transactions, err);
    for (size_t i = 0; i < parts.len && !first; i += strlen((char *)parts.data + i) + 1)
        first = check_part(s, (char *)parts.data + i, err);
    if (!first)
        first = look_at_inputs(s, err);
    dcn_buf_close(&parts);
    dcn_buf_close(&journals);
    return first;
}

/* A path is a folder, or a file in one. */
static decant_status open_place(dcn_io *io, const char *path, dcn_dir **dir, char **name, decant_error *err)
{
    decant_status rc = dcn_io_open_dir(io, path, dir, err);

    return rc == DECANT_NOT_FOUND ? dcn_io_split(io, path, dir, name, err) : rc;
}

decant_status dcn_recover(const dcn_env *env, const char *path, const decant_recover_options *options,
                          decant_recovery **out, decant_error *err)
{
    decant_recover_options chosen = {0};
    decant_error own = {.offset = DECANT_NO_OFFSET};
    search s = {.env = env};
    char *name = NULL;
    decant_status rc;

    dcn_options_take(&chosen, sizeof chosen, options);
    s.direction = chosen.direction;
    s.found = dcn_alloc(1, sizeof *s.found);
    if (!s.found) {
        rc = dcn_error_nomem(&own);
        goto done;
    }
    if ((rc = open_place(env->io, path ? path : ".", &s.dir, &name, &own)))
        goto done;
    s.name = name;
    rc = look_everywhere(&s, &own);
    if (rc != DECANT_NOMEM) {
        *out = s.found;
        s.found = NULL;
    }
done:
    if (rc && rc != DECANT_NOMEM)
        own.side =
            DECANT_SIDE_OUTPUT; /* also of an input that is not what it was: that stands in the way of its save */
    if (rc && err)
        *err = own;
    decant_recovery_close(&s.found);
    dcn_buf_close(&s.transactions);
    dcn_buf_close(&s.followed);
    dcn_dir_close(&s.dir);
    dcn_free(&name);
    return rc;
}

decant_status decant_recover(const char *path, const decant_recover_options *options, decant_recovery **out,
                             decant_error *err)
{
    dcn_env env = dcn_env_default();

    return dcn_recover(&env, path, options, out, err);
}

int decant_recovery_save(const decant_recovery *recovery, size_t index, decant_recovered *out)
{
    size_t size = out->size;

    if (index >= recovery->count)
        return 0;
    memcpy(out, &recovery->saves[index].what, size < sizeof *out ? size : sizeof *out);
    out->size = size;
    return 1;
}

int decant_recovery_file(const decant_recovery *recovery, size_t index, size_t nth, const char **path, uint64_t *bytes,
                         int *published)
{
    const file *f;

    if (index >= recovery->count || nth >= recovery->saves[index].what.file_count)
        return 0;
    f = &recovery->saves[index].files[nth];
    *path = f->path;
    *bytes = f->bytes;
    *published = f->published;
    return 1;
}

void decant_recovery_close(decant_recovery **recovery)
{
    if (*recovery) {
        dcn_arena_close(&(*recovery)->memory);
        dcn_free(&(*recovery)->saves);
    }
    dcn_free(recovery);
}
