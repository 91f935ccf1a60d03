/*
 *  (1) Everything is looked at before anything is touched: where a file that is needed is not the one that the journal
 *      knows, recovery stops and says what was expected and found.
 *  (2) What a killed process has left in the cache alone may still be lost: journal and folder are synced before anything is
 *      built upon them.
 *  (3) Whichever way, the journal goes last, and after what it speaks of is durable: until then it can all be done again (I8).
 */
#include "pour/recover.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/ckd.h"
#include "base/sort.h"
#include "base/text.h"
#include "pour/pour.h"

/* --- reading ----------------------------------------------------------------------------------------------------- */

static decant_status unknown_record(unsigned type, decant_error *err)
{
    decant_error_set(err, DECANT_UNSUPPORTED, "a later version of decant has written this journal");
    dcn_error_found(err, "a record of type %u", type);
    dcn_error_hint(err, "recover with that version");
    return DECANT_UNSUPPORTED;
}

/* Until BEGIN lasts, and the journal has its size, no part is made: where there is one, there was more to be read. */
static decant_status check_unmade(const dcn_leftover *l, decant_error *err)
{
    dcn_buf journals = {0}, parts = {0};
    char *end = NULL;
    decant_status rc = dcn_leftovers_list(l->dir, &journals, &parts, err);

    if (rc || (rc = dcn_part_name("", l->journal.transaction, true, &end, err)))
        goto done;
    for (size_t i = 0; i < parts.len && rc == DECANT_OK; i += strlen((char *)parts.data + i) + 1) {
        const char *part = (char *)parts.data + i;

        if (strlen(part) > strlen(end) && strcmp(part + strlen(part) - strlen(end), end) == 0)
            rc = dcn_journal_damaged(err, l->journal.cut ? "its end is missing" : "what it begins with does not fit");
    }
done:
    dcn_free(&end);
    dcn_buf_close(&parts);
    dcn_buf_close(&journals);
    return rc;
}

static decant_status take_begin(dcn_leftover *l, const dcn_record *record, decant_error *err)
{
    decant_status rc = dcn_intent_read_begin(&l->intent, record->data, record->len, err);

    if (rc)
        return rc;
    l->stage = DCN_STAGE_BEGUN;
    l->marks = dcn_alloc(l->intent.giving.count, sizeof *l->marks);
    l->begun = dcn_alloc(l->intent.giving.count, sizeof *l->begun);
    return l->marks && l->begun ? DECANT_OK : dcn_error_nomem(err);
}

static decant_status take_mark(dcn_leftover *l, const dcn_record *record, decant_error *err)
{
    dcn_mark mark;
    decant_status rc = dcn_mark_read(&mark, &l->intent, record->data, record->len, err);

    if (rc)
        return rc;
    l->marks[mark.source] = mark;
    l->begun[mark.source] = true;
    return DECANT_OK;
}

static decant_status out_of_order(unsigned type, decant_error *err)
{
    decant_error_set(err, DECANT_MALFORMED, "a record of type %u stands where none can be", type);
    dcn_error_hint(err, "nothing was touched; keep the journal and its files, and ask for help");
    return DECANT_MALFORMED;
}

static decant_status take_record(dcn_leftover *l, const dcn_record *record, decant_error *err)
{
    switch (record->type) {
    case DCN_RECORD_READY:
        if (l->stage != DCN_STAGE_BEGUN || !l->intent.giving.runs.count)
            return out_of_order(record->type, err);
        l->stage = DCN_STAGE_READY;
        return dcn_intent_read_ready(&l->intent, record->data, record->len, &l->held, err);
    case DCN_RECORD_MOVED:
        return l->stage == DCN_STAGE_READY ? take_mark(l, record, err) : out_of_order(record->type, err);
    case DCN_RECORD_ABORT:
        if (l->stage != DCN_STAGE_READY)
            return out_of_order(record->type, err);
        l->stage = DCN_STAGE_ABORTED;
        return DECANT_OK;
    case DCN_RECORD_UNMOVED:
        return l->stage == DCN_STAGE_ABORTED ? take_mark(l, record, err) : out_of_order(record->type, err);
    case DCN_RECORD_COMMIT:
        if (l->stage == DCN_STAGE_ABORTED || (l->stage == DCN_STAGE_BEGUN && l->intent.giving.runs.count))
            return out_of_order(record->type, err);
        l->stage = DCN_STAGE_COMMITTED;
        return dcn_intent_read_commit(&l->intent, record->data, record->len, err);
    default:
        return unknown_record(record->type, err);
    }
}

/* That nothing stood behind the last record that was read. */
static decant_status check_whole(const dcn_leftover *l, decant_error *err)
{
    size_t given = l->intent.giving.count;
    decant_status rc = dcn_journal_check_end(&l->journal, given ? given : 1, err);

    if (rc == DECANT_OK && l->journal.cut && l->stage != DCN_STAGE_COMMITTED)
        rc = l->stage == DCN_STAGE_BEGUN ? check_unmade(l, err) : dcn_journal_damaged(err, "its end is missing");
    if (rc == DECANT_MALFORMED && l->intent.giving.runs.count)
        dcn_error_hint(err,
                       "nothing was touched; keep it and its files, which end in .jpart and .moving, and ask for help");
    return rc;
}

static decant_status read_records(dcn_leftover *l, decant_error *err)
{
    dcn_record record;
    decant_status rc = dcn_journal_next(&l->journal, &record, err);

    if (rc)
        return rc;
    if (record.type == DCN_RECORD_NONE) {
        l->stage = DCN_STAGE_NOTHING;
        return (rc = dcn_journal_check_unbegun(&l->journal, err)) ? rc : check_unmade(l, err);
    }
    if (record.type != DCN_RECORD_BEGIN)
        return unknown_record(record.type, err);
    if ((rc = take_begin(l, &record, err)))
        return rc;
    while ((rc = dcn_journal_next(&l->journal, &record, err)) == DECANT_OK && record.type != DCN_RECORD_NONE)
        if ((rc = take_record(l, &record, err)))
            return rc;
    return rc ? rc : check_whole(l, err);
}

uint64_t dcn_leftover_moved(const dcn_leftover *l, uint64_t *total)
{
    const dcn_runs *runs = &l->intent.giving.runs;
    uint64_t moved = 0;

    *total = 0;
    for (size_t i = 0; i < runs->count; i++) {
        const dcn_run *run = &runs->items[i];
        uint64_t upto = l->marks[run->source].upto;

        *total += run->len;
        moved += upto > run->from ? dcn_min(run->len, upto - run->from) : 0;
    }
    return moved;
}

static bool is_same_boot(const dcn_self *a, const dcn_self *b)
{
    static const uint8_t unknown[sizeof a->boot];

    return memcmp(a->boot, unknown, sizeof unknown) != 0 && memcmp(a->boot, b->boot, sizeof a->boot) == 0;
}

/* What is wrong with a journal is told of the journal: its hint may be to move it away. */
static decant_status blame_journal(const dcn_dir *dir, const char *name, decant_status rc, decant_error *err)
{
    char *path = rc == DECANT_OK || rc == DECANT_NOMEM ? NULL : dcn_io_join(dir->path, name);

    if (path)
        dcn_error_repath(err, path);
    dcn_free(&path);
    return rc;
}

/* A file system that is mounted anew may get another number within one boot. The parts lie where the journal does. */
static decant_status check_mount(dcn_leftover *l, decant_error *err)
{
    dcn_facts facts;
    decant_status rc = dcn_file_facts(l->journal.file, &facts, err);

    if (rc == DECANT_OK && l->stage >= DCN_STAGE_READY && l->intent.outputs[0].part.dev != facts.dev)
        l->same_boot = false;
    return rc;
}

decant_status dcn_leftover_open(dcn_leftover *l, dcn_dir *dir, const char *name, bool to_act, decant_error *err)
{
    dcn_self self;
    bool live;
    decant_status rc;

    *l = (dcn_leftover){.dir = dir, .slot = dcn_cut_default.slot};
    if ((rc = dcn_journal_open(&l->journal, dir, name, to_act, &live, err)) || (rc = dcn_io_who(dir->io, &self, err)))
        return blame_journal(dir, name, rc, err);
    l->same_boot = is_same_boot(&self, &l->journal.by);
    rc = read_records(l, err);
    if (live) { /* what cannot be read yet may be on its way */
        l->stage = DCN_STAGE_LIVE;
        return rc == DECANT_NOMEM ? rc : DECANT_OK;
    }
    if (rc || (rc = check_mount(l, err)))
        return blame_journal(dir, name, rc, err);
    if (to_act && (rc = dcn_dir_sync(dir, err)) == DECANT_OK) /* keeps (2) */
        rc = dcn_journal_trim(&l->journal, err);
    return rc;
}

void dcn_leftover_close(dcn_leftover *l)
{
    dcn_free(&l->marks);
    dcn_free(&l->begun);
    dcn_buf_close(&l->held);
    dcn_journal_close(&l->journal);
    dcn_intent_close(&l->intent);
}

static decant_status busy(decant_error *err)
{
    decant_error_set(err, DECANT_BUSY, "a save of it is under way");
    dcn_error_hint(err, "wait until it is done");
    return DECANT_BUSY;
}

/* A part of this save, and what is there under its name. */
static decant_status look_at_part(const dcn_leftover *l, const dcn_promise *p, char **part, dcn_facts *facts,
                                  bool *there, decant_error *err)
{
    decant_status rc = dcn_part_name(p->name, l->journal.transaction, true, part, err);

    if (rc)
        return rc;
    rc = dcn_dir_stat(l->dir, *part, facts, err);
    *there = rc == DECANT_OK;
    return rc == DECANT_NOT_FOUND ? DECANT_OK : rc;
}

/* --- undoing ----------------------------------------------------------------------------------------------------- */

decant_status dcn_leftover_misfit(const dcn_leftover *l, const char *name, decant_error *err, const char *message)
{
    char *path = dcn_io_join(l->dir->path, name);

    decant_error_set(err, DECANT_CHANGED, "%s", message);
    dcn_error_hint(err, "nothing was touched; put back what was there, or move away what was not, and recover again");
    dcn_error_path(err, path ? path : name);
    dcn_free(&path);
    return DECANT_CHANGED;
}

/* Removes a part; with `look_only` sees that it can. */
static decant_status drop_part(const dcn_leftover *l, const dcn_promise *p, bool look_only, decant_error *err)
{
    char *part = NULL;
    dcn_facts facts;
    bool there = false;
    decant_status rc = look_at_part(l, p, &part, &facts, &there, err);

    if (rc || !there)
        goto done;
    if (facts.kind != DCN_KIND_REGULAR || !facts.mine)
        rc = dcn_leftover_misfit(l, part, err, "this is not the scratch file of the interrupted save");
    else if (!look_only)
        rc = dcn_dir_remove(l->dir, part, err);
done:
    dcn_free(&part);
    return rc;
}

static decant_status drop_parts(const dcn_leftover *l, bool look_only, decant_error *err)
{
    decant_status rc = DECANT_OK;

    for (size_t i = 0; i < l->intent.count && rc == DECANT_OK; i++)
        rc = drop_part(l, &l->intent.outputs[i], look_only, err);
    return rc;
}

decant_status dcn_leftover_undo(dcn_leftover *l, decant_error *err)
{
    decant_status rc;

    if (l->stage == DCN_STAGE_LIVE)
        return busy(err);
    if (l->stage == DCN_STAGE_COMMITTED) {
        rc = decant_error_set(err, DECANT_BAD_CALL, "it is complete and cannot be undone");
        dcn_error_hint(err, "recover it with --resume, which finishes it");
        dcn_error_side(err, DECANT_SIDE_OUTPUT);
        return rc;
    }
    if ((rc = drop_parts(l, true, err))) /* keeps (1) */
        return rc;
    if (l->stage > DCN_STAGE_BEGUN && (rc = dcn_leftover_take_back(l, err)))
        return rc;
    if ((rc = drop_parts(l, false, err)) || (rc = dcn_dir_sync(l->dir, err)) ||
        (rc = dcn_journal_end(&l->journal, err))) /* keeps (3) */
        rc = rc == DECANT_NOMEM ? rc : dcn_error_recast(err, DECANT_INTERRUPTED, "not all is undone yet");
    return rc;
}

/* --- finishing --------------------------------------------------------------------------------------------------- */

/* What is to be done with an output. */
typedef enum action {
    LEAVE, /* it has its name */
    RENAME,
    DOUBLED /* it has its name, and still the other one too */
} action;

typedef struct finishing {
    dcn_leftover *l;
    action *actions; /* one an output */
    dcn_output **outputs;
    size_t count; /* of outputs that are to be renamed */
    bool gone;    /* one was replaced or moved away since */
} finishing;

static decant_status judge(finishing *f, size_t i, decant_error *err)
{
    const dcn_leftover *l = f->l;
    const dcn_promise *p = &l->intent.outputs[i];
    char *part = NULL;
    dcn_facts now, facts;
    bool there = false, taken, is_new, is_old;
    decant_status rc = look_at_part(l, p, &part, &facts, &there, err);

    if (rc)
        goto done;
    rc = dcn_dir_stat(l->dir, p->name, &now, err);
    taken = rc == DECANT_OK;
    if (rc && rc != DECANT_NOT_FOUND)
        goto done;
    rc = DECANT_OK;
    is_new = taken && dcn_identity_fits(&p->part, &now, l->same_boot);
    is_old = taken && p->has_old && dcn_identity_fits(&p->old, &now, l->same_boot);

    if (there && !dcn_identity_fits(&p->part, &facts, l->same_boot))
        rc = dcn_leftover_misfit(l, part, err, "this is not the file that was written");
    else if (there && is_new)
        f->actions[i] = DOUBLED;
    else if (there && taken && !is_old)
        rc = dcn_leftover_misfit(l, p->name, err, "another file has this name since");
    else if (there)
        f->actions[i] = RENAME;
    else if (is_old)
        rc = dcn_leftover_misfit(l, part, err, "the file that was written is gone");
    else {
        f->actions[i] = LEAVE; /* in place, or replaced or moved away since */
        f->gone = f->gone || !is_new;
    }
done:
    dcn_free(&part);
    return rc;
}

static decant_status drop_double(const dcn_leftover *l, const dcn_promise *p, decant_error *err)
{
    char *part = NULL;
    decant_status rc = dcn_part_name(p->name, l->journal.transaction, true, &part, err);

    if (rc == DECANT_OK)
        rc = dcn_dir_remove(l->dir, part, err);
    dcn_free(&part);
    return rc;
}

static decant_status rejoin(finishing *f, size_t i, decant_error *err)
{
    const dcn_leftover *l = f->l;
    const dcn_promise *p = &l->intent.outputs[i];
    dcn_output **out = &f->outputs[f->count];
    char *part = NULL;
    dcn_facts facts;
    bool there;
    decant_status rc;

    if ((rc = look_at_part(l, p, &part, &facts, &there, err)) ||
        (rc = dcn_output_file(l->dir, p->name, NULL, p->replace, out, err)))
        goto done;
    f->count++;
    (*out)->transaction = l->journal.transaction;
    rc = dcn_output_rejoin(*out, &facts, err);
done:
    dcn_free(&part);
    return rc;
}

static decant_status carry_out(finishing *f, decant_error *err)
{
    dcn_leftover *l = f->l;
    size_t last = l->intent.count - 1;
    decant_status rc;

    for (size_t i = 0; i <= last; i++) {
        if (f->actions[i] == DOUBLED && (rc = drop_double(l, &l->intent.outputs[i], err)))
            return rc;
        if (f->actions[i] == RENAME && (rc = rejoin(f, i, err)))
            return rc;
    }
    return dcn_outputs_publish(f->outputs, f->count, err);
}

decant_status dcn_leftover_finish(dcn_leftover *l, decant_error *err)
{
    finishing f = {.l = l};
    decant_status rc = DECANT_OK;

    if (l->stage == DCN_STAGE_LIVE)
        return busy(err);
    if (l->stage == DCN_STAGE_ABORTED) {
        rc = decant_error_set(err, DECANT_BAD_CALL, "it is being undone, and cannot be finished any more");
        dcn_error_hint(err, "decant recover --undo goes on with that");
        dcn_error_side(err, DECANT_SIDE_OUTPUT);
        return rc;
    }
    if (l->stage == DCN_STAGE_READY && (rc = dcn_leftover_resume(l, err)))
        return rc;
    if (l->stage != DCN_STAGE_COMMITTED) {
        rc = decant_error_set(err, DECANT_BAD_CALL, "it was stopped before all was written, and cannot be finished");
        dcn_error_hint(err, "recover it with --undo, which removes what was begun; then save again");
        dcn_error_side(err, DECANT_SIDE_OUTPUT);
        return rc;
    }
    f.actions = dcn_alloc(l->intent.count, sizeof *f.actions);
    f.outputs = dcn_alloc(l->intent.count, sizeof(dcn_output *));
    if (!f.actions || !f.outputs) {
        rc = dcn_error_nomem(err);
        goto done;
    }
    for (size_t i = 0; i < l->intent.count && rc == DECANT_OK; i++) /* keeps (1) */
        rc = judge(&f, i, err);
    if (rc)
        goto done;
    if ((rc = carry_out(&f, err)) || (rc = dcn_dir_sync(l->dir, err)) ||
        (rc = dcn_leftover_remove_given(l, f.gone, err)) || (rc = dcn_journal_end(&l->journal, err))) /* keeps (3) */
        rc = rc == DECANT_NOMEM ? rc : dcn_error_recast(err, DECANT_PUBLISH_PENDING, "not all is in place yet");
done:
    for (size_t i = 0; i < f.count; i++) {
        dcn_output_leave(f.outputs[i]);
        dcn_output_close(&f.outputs[i]);
    }
    dcn_free(&f.outputs);
    dcn_free(&f.actions);
    return rc;
}

bool dcn_leftover_has_landed(const dcn_leftover *l, size_t i)
{
    const dcn_promise *p = &l->intent.outputs[i];
    dcn_facts now;

    return l->stage == DCN_STAGE_COMMITTED && dcn_dir_stat(l->dir, p->name, &now, NULL) == DECANT_OK &&
           dcn_identity_fits(&p->part, &now, l->same_boot);
}

/* --- what is in the way of a save -------------------------------------------------------------------------------- */

typedef struct listing {
    dcn_buf *journals, *parts;
} listing;

static int note_name(void *ctx, const char *name)
{
    listing *l = ctx;
    dcn_buf *to = dcn_journal_is_name(name) ? l->journals : dcn_part_has_journal(name) ? l->parts : NULL;

    if (to)
        dcn_buf_put(to, name, strlen(name) + 1);
    return to && to->failed;
}

decant_status dcn_leftovers_list(dcn_dir *dir, dcn_buf *journals, dcn_buf *parts, decant_error *err)
{
    listing l = {journals, parts};
    decant_status rc = dcn_dir_list(dir, note_name, &l, err);

    if (rc || (rc = dcn_buf_check(journals, err)))
        return rc;
    return dcn_buf_check(parts, err);
}

/* The outputs of a save by name, for looking up. */
typedef struct lookup {
    const dcn_landing **items;
    size_t count;
} lookup;

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const dcn_landing *const *)a)->name, (*(const dcn_landing *const *)b)->name);
}

static const dcn_landing *find(const lookup *names, const char *name)
{
    size_t low = 0, high = names->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(names->items[middle]->name, name);

        if (order == 0)
            return names->items[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* The output of ours that a journal is about: by what it says, else by its own name. NULL: none. */
static const dcn_landing *concerned(const lookup *names, const dcn_leftover *l, const char *journal, decant_status *rc,
                                    decant_error *err)
{
    bool unread = l->intent.count == 0; /* or a part of it */

    for (size_t i = 0; i < l->intent.count; i++) {
        const char *name = l->intent.outputs[i].name;
        const dcn_landing *found = name ? find(names, name) : NULL;

        if (found)
            return found;
        unread = unread || !name;
    }
    for (size_t i = 0; i < names->count && unread; i++) {
        char *own = NULL;
        bool same;

        if ((*rc = dcn_journal_name(names->items[i]->name, &own, err)))
            return NULL;
        same = strcmp(own, journal) == 0;
        dcn_free(&own);
        if (same)
            return names->items[i];
    }
    return NULL;
}

static decant_status half_moved(const char *path, decant_error *err)
{
    char word[DCN_WORD];

    decant_error_set(err, DECANT_INTERRUPTED,
                     "an earlier save was interrupted while it gave its inputs up; nothing is lost");
    dcn_text_word(word, path);
    dcn_error_hint(err, "decant recover --resume %s finishes it, decant recover --undo %s undoes it", word, word);
    return DECANT_INTERRUPTED;
}

static decant_status interrupted(const char *path, decant_error *err)
{
    char word[DCN_WORD];

    decant_error_set(err, DECANT_INTERRUPTED, "an earlier save was interrupted when all of it was written");
    dcn_error_hint(err, "decant recover --resume %s finishes it", dcn_text_word(word, path));
    return DECANT_INTERRUPTED;
}

/* Undoing what another process is doing would destroy it: that is for people to decide. */
static decant_status undecided(const char *path, decant_error *err)
{
    char word[DCN_WORD];

    decant_error_set(err, DECANT_BUSY, "another save of it was begun, and without locks here it may be under way");
    dcn_error_hint(err, "wait until it is done; if it was killed, decant recover --undo %s", dcn_text_word(word, path));
    return DECANT_BUSY;
}

/* One journal in the folder. */
static decant_status clear_journal(dcn_dir *dir, const char *name, const lookup *names, bool look_only, dcn_buf *gone,
                                   size_t *undone, decant_error *err)
{
    dcn_leftover l;
    const dcn_landing *about;
    decant_status found = DECANT_OK, opened = dcn_leftover_open(&l, dir, name, false, err), rc = opened;

    about = rc == DECANT_NOMEM ? NULL : concerned(names, &l, name, &found, err);
    if (rc == DECANT_NOT_FOUND || (rc != DECANT_NOMEM && !about))
        rc = found; /* gone, or another's matter */
    else if (rc == DECANT_OK && l.stage == DCN_STAGE_LIVE)
        rc = busy(err);
    else if (rc == DECANT_OK && l.stage == DCN_STAGE_COMMITTED)
        rc = interrupted(about->path, err);
    else if (rc == DECANT_OK && l.stage >= DCN_STAGE_READY)
        rc = half_moved(about->path, err);
    else if (rc == DECANT_OK && l.journal.lockless)
        rc = undecided(about->path, err);
    else if (rc == DECANT_OK) {
        ++*undone;
        dcn_buf_put(gone, l.journal.transaction, DCN_TRANSACTION);
        dcn_leftover_close(&l);
        if (!look_only && (rc = dcn_leftover_open(&l, dir, name, true, err)) == DECANT_OK)
            rc = dcn_leftover_undo(&l, err);
    }
    if (rc && rc != DECANT_NOMEM && about && !opened)
        dcn_error_repath(err, about->path);
    dcn_leftover_close(&l);
    return rc;
}

static bool is_gone(const dcn_buf *gone, const uint8_t *id)
{
    for (size_t at = 0; at < gone->len; at += DCN_TRANSACTION)
        if (memcmp(gone->data + at, id, 8) == 0)
            return true;
    return false;
}

decant_status dcn_leftovers_lone(dcn_dir *dir, const char *part, decant_error *err)
{
    char journal[DCN_PART_JOURNAL];

    if (dcn_part_journal(dir, part, journal, NULL) == DECANT_NOMEM)
        return dcn_error_nomem(err);
    decant_error_set(err, DECANT_INTERRUPTED, "there is a file of an interrupted save, '%s', without its journal",
                     part);
    dcn_error_hint(err,
                   "put its journal back, %s%s%s; that file may hold all there is of inputs that end in .moving, so "
                   "remove it only where there are none",
                   journal[0] ? "'" : "", journal[0] ? journal : "whose name ends in .decant-journal",
                   journal[0] ? "'" : "");
    return DECANT_INTERRUPTED;
}

/* A part that no journal speaks of may be all there is of something: it is left alone, and so is its name. */
static decant_status check_part(dcn_dir *dir, const char *part, const lookup *names, const dcn_buf *gone,
                                decant_error *err)
{
    uint8_t id[8];
    dcn_facts facts;

    for (size_t i = 0; i < names->count; i++) {
        if (!dcn_part_is_of(part, names->items[i]->name, true, id) || is_gone(gone, id) ||
            dcn_dir_stat(dir, part, &facts, NULL) == DECANT_NOT_FOUND)
            continue;
        if (dcn_leftovers_lone(dir, part, err) == DECANT_NOMEM)
            return DECANT_NOMEM;
        dcn_error_path(err, names->items[i]->path);
        return DECANT_INTERRUPTED;
    }
    return DECANT_OK;
}

decant_status dcn_leftovers_clear(dcn_dir *dir, const dcn_landing *landings, size_t count, bool look_only,
                                  size_t *undone, decant_error *err)
{
    dcn_buf journals = {0}, parts = {0}, gone = {0};
    lookup names = {0};
    decant_status rc = dcn_leftovers_list(dir, &journals, &parts, err);

    if (rc == DECANT_DENIED) { /* a folder that cannot be listed can be saved to */
        rc = DECANT_OK;
        goto done;
    }
    if (rc || (!journals.len && !parts.len))
        goto done;
    names.items = dcn_alloc(count, sizeof(const dcn_landing *));
    if (!names.items) {
        rc = dcn_error_nomem(err);
        goto done;
    }
    for (; names.count < count; names.count++)
        names.items[names.count] = &landings[names.count];
    dcn_sort(names.items, count, sizeof(const dcn_landing *), by_name);

    for (size_t i = 0; i < journals.len && rc == DECANT_OK; i += strlen((char *)journals.data + i) + 1)
        rc = clear_journal(dir, (char *)journals.data + i, &names, look_only, &gone, undone, err);
    if (rc == DECANT_OK)
        rc = dcn_buf_check(&gone, err);
    for (size_t i = 0; i < parts.len && rc == DECANT_OK; i += strlen((char *)parts.data + i) + 1)
        rc = check_part(dir, (char *)parts.data + i, &names, &gone, err);
done:
    if (rc && rc != DECANT_NOMEM)
        dcn_error_side(err, DECANT_SIDE_OUTPUT);
    dcn_free(&names.items);
    dcn_buf_close(&gone);
    dcn_buf_close(&parts);
    dcn_buf_close(&journals);
    return rc;
}
