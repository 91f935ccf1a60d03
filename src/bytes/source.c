#include "bytes/source.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/ckd.h"
#include "base/sort.h"
#include "base/text.h"
#include "base/thread.h"
#include "bytes/bytes.h"
#include "bytes/moving.h"

struct dcn_source {
    dcn_refs refs;
    char *path;
    uint64_t size;
    dcn_file *file; /* NULL: a reader */
    dcn_facts facts;
    decant_reader reader;
    dcn_mutex turn;    /* one call of the reader at a time */
    dcn_access access; /* to `file` and `state`: who reads shares it */
    enum { HERE, GIVING, GONE } state;
    char moved_to[512];  /* since it is GONE */
    decant_reader moved; /* likewise; without `read`: nothing */
    bool owned;
    dcn_claim *claims;
    size_t claim_count, claim_cap;
    dcn_arena memory; /* names of claims */
};

enum {
    GAP = 4096,  /* up to here it costs less to read a gap and throw it away than to call again */
    BATCH = 256, /* ranges given to the system at a time */
};

/* The error of a source names it. */
static decant_status blame(const char *path, decant_status rc, decant_error *err)
{
    if (rc) {
        dcn_error_path(err, path);
        dcn_error_side(err, rc == DECANT_NOMEM ? DECANT_SIDE_NONE : DECANT_SIDE_INPUT);
    }
    return rc;
}

/* What a file's own calls say is about the name it was opened under, wherever links led. */
static decant_status blame_file(const dcn_source *source, decant_status rc, decant_error *err)
{
    if (rc && err && source->file)
        err->path[0] = '\0';
    return blame(source->path, rc, err);
}

static dcn_source *create(const char *path)
{
    dcn_source *source = dcn_alloc(1, sizeof *source);

    if (!source)
        return NULL;
    source->path = dcn_strndup(path, strlen(path));
    if (!source->path) {
        dcn_free(&source);
        return NULL;
    }
    atomic_init(&source->refs, 1);
    dcn_mutex_init(&source->turn);
    dcn_access_init(&source->access);
    return source;
}

decant_status dcn_source_refuse(dcn_kind kind, decant_error *err)
{
    decant_error_set(err, DECANT_UNSUPPORTED, "is a %s, not a file",
                     kind == DCN_KIND_FOLDER ? "folder" : "pipe or device");
    dcn_error_hint(err, kind == DCN_KIND_FOLDER ? "name a file in it" : "copy what it gives into a file first");
    return DECANT_UNSUPPORTED;
}

/* --- those that are given up --------------------------------------------------------------------------------------- */

/* What it is, a note on it says: where the journal is of who gives it up. @param rc  of reading it */
static decant_status refuse_given(decant_status rc, const char *journal, decant_error *err)
{
    char word[DCN_WORD];

    if (rc)
        return rc == DECANT_NOT_FOUND || rc == DECANT_UNSUPPORTED ? DECANT_OK : rc;
    decant_error_set(err, DECANT_INTERRUPTED,
                     "it may be incomplete: a save that gives it up is under way, or was interrupted");
    dcn_error_hint(err, "decant recover %s shows it", dcn_text_word(word, journal));
    return DECANT_INTERRUPTED;
}

decant_status dcn_source_check_given(dcn_dir *dir, const char *name, decant_status rc, decant_error *err)
{
    char journal[DCN_MOVING_NOTE], *moving = NULL;
    dcn_file *file = NULL;
    decant_status given = DECANT_OK;

    if (rc == DECANT_NOT_FOUND)
        given = dcn_moving_name(name, &moving, err);
    else if (rc || !dcn_moving_base(name))
        return rc;
    if (given == DECANT_OK &&
        dcn_dir_open(dir, moving ? moving : name, DCN_READ | DCN_NO_FOLLOW, 0, &file, NULL) == DECANT_OK)
        given = refuse_given(dcn_moving_read_note(dir, moving ? moving : name, file, journal, err), journal, err);
    dcn_file_close(&file);
    dcn_free(&moving);
    return given ? given : rc;
}

/* --- opening ------------------------------------------------------------------------------------------------------- */

decant_status dcn_source_from_file(dcn_file **file, const char *path, dcn_source **out, decant_error *err)
{
    char journal[DCN_MOVING_NOTE];
    dcn_source *source;
    dcn_facts facts;
    decant_status rc = dcn_file_facts(*file, &facts, err);

    if (rc == DECANT_OK && facts.kind != DCN_KIND_REGULAR)
        rc = dcn_source_refuse(facts.kind, err);
    if (rc || (rc = refuse_given(dcn_file_read_note(*file, journal, sizeof journal, err), journal, err)))
        return blame(path, rc, err);
    source = create(path);
    if (!source)
        return dcn_error_nomem(err);
    source->size = facts.size;
    source->facts = facts;
    source->file = *file;
    *file = NULL;
    *out = source;
    return DECANT_OK;
}

decant_status dcn_source_open(dcn_io *io, const char *path, dcn_source **out, decant_error *err)
{
    dcn_file *file = NULL;
    dcn_dir *dir = NULL;
    char *name = NULL;
    decant_status rc = dcn_io_open(io, path, DCN_READ, &file, err);

    if ((rc == DECANT_NOT_FOUND || (rc == DECANT_OK && dcn_moving_base(path))) &&
        dcn_io_split(io, path, &dir, &name, NULL) == DECANT_OK)
        rc = dcn_source_check_given(dir, name, rc, err);
    if (rc == DECANT_OK)
        rc = dcn_source_from_file(&file, file->path, out, err);
    dcn_free(&name);
    dcn_dir_close(&dir);
    dcn_file_close(&file);
    return blame(path, rc, err);
}

decant_status dcn_source_from_reader(const decant_reader *reader, const char *name, dcn_source **out, decant_error *err)
{
    dcn_source *source = create(name ? name : "reader");

    if (!source)
        return dcn_error_nomem(err);
    source->size = reader->len;
    source->reader = *reader;
    *out = source;
    return DECANT_OK;
}

dcn_source *dcn_source_ref(dcn_source *source)
{
    dcn_refs_up(&source->refs);
    return source;
}

void dcn_source_unref(dcn_source **source)
{
    dcn_source *s = *source;

    *source = NULL;
    if (!s || !dcn_refs_down(&s->refs))
        return;
    if (s->reader.release)
        s->reader.release(s->reader.ctx);
    if (s->moved.release)
        s->moved.release(s->moved.ctx);
    dcn_file_close(&s->file);
    dcn_mutex_close(&s->turn);
    dcn_access_close(&s->access);
    dcn_free(&s->claims);
    dcn_arena_close(&s->memory);
    dcn_free(&s->path);
    dcn_free(&s);
}

uint64_t dcn_source_size(const dcn_source *source)
{
    return source->size;
}

const char *dcn_source_path(const dcn_source *source)
{
    return source->path;
}

const dcn_facts *dcn_source_facts(const dcn_source *source)
{
    return source->reader.read ? NULL : &source->facts;
}

/* --- giving it up ------------------------------------------------------------------------------------------------ */

void dcn_source_own(dcn_source *source)
{
    source->owned = true;
}

bool dcn_source_is_owned(const dcn_source *source)
{
    return source->owned;
}

decant_status dcn_source_claim(dcn_source *source, const dcn_claim *claim, decant_error *err)
{
    dcn_claim *claims = dcn_grown(source->claims, source->claim_count, &source->claim_cap, sizeof *claims);
    const char *name;

    if (claims)
        source->claims = claims;
    if (!claims || !(name = dcn_arena_copy(&source->memory, claim->name, claim->name_len)))
        return dcn_error_nomem(err);
    claims[source->claim_count] = *claim;
    claims[source->claim_count++].name = name;
    return DECANT_OK;
}

size_t dcn_source_claims(const dcn_source *source, const dcn_claim **out)
{
    *out = source->claims;
    return source->claim_count;
}

void dcn_source_swap(dcn_source *source, dcn_file **file)
{
    dcn_access_take(&source->access);
    dcn_file_close(&source->file);
    source->file = *file;
    *file = NULL;
    dcn_access_give(&source->access);
}

void dcn_source_give(dcn_source *source)
{
    dcn_access_take(&source->access);
    source->state = GIVING;
    dcn_access_give(&source->access);
}

void dcn_source_keep(dcn_source *source)
{
    dcn_access_take(&source->access);
    source->state = HERE;
    dcn_access_give(&source->access);
}

void dcn_source_end(dcn_source *source, const char *path, const decant_reader *moved)
{
    dcn_access_take(&source->access);
    dcn_file_close(&source->file);
    source->state = GONE;
    if (moved)
        source->moved = *moved;
    snprintf(source->moved_to, sizeof source->moved_to, "%s", path ? path : "");
    dcn_access_give(&source->access);
}

const char *dcn_source_moved_to(const dcn_source *source)
{
    return source->state == GONE ? source->moved_to : NULL;
}

/* Shares the lock until leave(). On failure there is nothing to leave. */
static decant_status enter(dcn_source *source, decant_error *err)
{
    decant_status rc = DECANT_OK;

    dcn_access_share(&source->access);
    if (source->state == GIVING) {
        rc = decant_error_set(err, DECANT_BUSY, "its bytes are being moved into another file");
        dcn_error_hint(err, "wait until that is done");
    } else if (source->state == GONE && !source->moved.read) {
        rc = decant_error_set(err, DECANT_NOT_FOUND, "it was given up: its bytes were moved into another file");
        if (source->moved_to[0])
            dcn_error_hint(err, "open '%s'", source->moved_to);
    }
    if (rc)
        dcn_access_unshare(&source->access);
    return blame(source->path, rc, err);
}

static decant_status leave(dcn_source *source, decant_status rc)
{
    dcn_access_unshare(&source->access);
    return rc;
}

/* For what takes the file itself. */
static decant_status enter_file(dcn_source *source, decant_error *err)
{
    decant_status rc = enter(source, err);

    if (rc == DECANT_OK && !source->file)
        rc = leave(source, decant_error_set(err, DECANT_UNSUPPORTED, "its bytes are in another file now"));
    return rc;
}

decant_status dcn_source_extents(dcn_source *source, dcn_extents *out, decant_error *err)
{
    decant_status rc = enter_file(source, err);

    return rc ? rc : leave(source, blame_file(source, dcn_file_extents(source->file, out, err), err));
}

decant_status dcn_source_alone(dcn_source *source, decant_error *err)
{
    decant_status rc = enter_file(source, err);

    return rc ? rc : leave(source, blame_file(source, dcn_file_alone(source->file, err), err));
}

decant_status dcn_source_lock(dcn_source *source, decant_error *err)
{
    decant_status rc = enter_file(source, err);

    return rc ? rc : leave(source, blame_file(source, dcn_file_lock(source->file, err), err));
}

/* --- looking at it ----------------------------------------------------------------------------------------------- */

static decant_status check(dcn_source *source, decant_error *err)
{
    dcn_facts now;
    decant_status rc;

    if (source->state == GONE)
        return DECANT_OK;
    if ((rc = dcn_file_facts(source->file, &now, err)))
        return blame_file(source, rc, err);
    if (now.size == source->size && now.mtime == source->facts.mtime)
        return DECANT_OK;
    rc = decant_error_set(err, DECANT_CHANGED, "was changed after it was opened");
    if (now.size != source->size) {
        dcn_error_found(err, "%" PRIu64 " bytes", now.size);
        dcn_error_expected(err, "%" PRIu64, source->size);
    } else {
        dcn_error_found(err, "time %" PRId64 " ns", now.mtime);
        dcn_error_expected(err, "%" PRId64, source->facts.mtime);
    }
    dcn_error_hint(err, "wait until nothing writes to it, and start again");
    return blame(source->path, rc, err);
}

decant_status dcn_source_check(dcn_source *source, decant_error *err)
{
    decant_status rc;

    if (source->reader.read)
        return DECANT_OK;
    rc = enter(source, err);
    return rc ? rc : leave(source, check(source, err));
}

decant_status dcn_sources_check(dcn_source *const *sources, size_t count, decant_error *err)
{
    decant_status rc = DECANT_OK;

    for (size_t i = 0; i < count && rc == DECANT_OK; i++)
        rc = dcn_source_check(sources[i], err);
    return rc;
}

/* --- reading ----------------------------------------------------------------------------------------------------- */

/* Ranges on their way to the system, with the gaps between them. */
typedef struct batch {
    size_t count;
    dcn_range ranges[BATCH];
    uint8_t gap[GAP]; /* where all gaps go */
} batch;

static decant_status call_reader(dcn_source *source, const dcn_range *r, size_t count, decant_error *err)
{
    decant_error said = {.offset = DECANT_NO_OFFSET};
    decant_status rc = DECANT_OK;

    dcn_lock(&source->turn);
    for (size_t i = 0; i < count && rc == DECANT_OK; i++)
        if (r[i].len)
            rc = source->reader.read(source->reader.ctx, r[i].at, r[i].dst, r[i].len, &said);
    dcn_unlock(&source->turn);
    return dcn_callback_outcome(rc, &said, "reader", err);
}

/* Adds a range, and the gap before it that starts at `end`, if it is worth reading. */
static decant_status add(dcn_source *source, batch *b, uint64_t end, const dcn_range *range, decant_error *err)
{
    decant_status rc;

    if (b->count + 2 > BATCH) {
        if ((rc = dcn_file_read(source->file, b->ranges, b->count, err)))
            return rc;
        b->count = 0;
    }
    if (b->count && range->at > end && range->at - end <= GAP)
        b->ranges[b->count++] = (dcn_range){end, b->gap, (size_t)(range->at - end)};
    b->ranges[b->count++] = *range;
    return DECANT_OK;
}

static decant_status read_file(dcn_source *source, const dcn_range *ranges, size_t count, decant_error *err)
{
    batch b;
    uint64_t end = 0;
    decant_status rc;

    b.count = 0;
    for (size_t i = 0; i < count; i++) {
        if (ranges[i].len == 0)
            continue;
        if ((rc = add(source, &b, end, &ranges[i], err)))
            return rc;
        end = ranges[i].at + ranges[i].len;
    }
    return b.count ? dcn_file_read(source->file, b.ranges, b.count, err) : DECANT_OK;
}

static decant_status read_moved(dcn_source *source, const dcn_range *ranges, size_t count, decant_error *err)
{
    decant_status rc = DECANT_OK;

    for (size_t i = 0; i < count && rc == DECANT_OK; i++)
        if (ranges[i].len)
            rc = source->moved.read(source->moved.ctx, ranges[i].at, ranges[i].dst, ranges[i].len, err);
    return rc;
}

static int by_place(const void *a, const void *b)
{
    const dcn_range *x = a, *y = b;

    return (x->at > y->at) - (x->at < y->at);
}

decant_status dcn_source_read(dcn_source *source, dcn_range *ranges, size_t count, decant_error *err)
{
    decant_status rc;

    for (size_t i = 0; i < count; i++)
        if (dcn_outside(ranges[i].at, ranges[i].len, source->size)) {
            rc = decant_error_set(err, DECANT_TRUNCATED, "ends before %zu bytes at %" PRIu64, ranges[i].len,
                                  ranges[i].at);
            dcn_error_found(err, "%" PRIu64 " bytes", source->size);
            dcn_error_offset(err, ranges[i].at);
            return blame(source->path, rc, err);
        }
    dcn_sort(ranges, count, sizeof *ranges, by_place);
    if (source->reader.read)
        return blame(source->path, call_reader(source, ranges, count, err), err);
    if ((rc = enter(source, err)))
        return rc;
    rc = source->state == GONE ? read_moved(source, ranges, count, err) : read_file(source, ranges, count, err);
    return leave(source, blame_file(source, rc, err));
}

decant_status dcn_source_copy(dcn_source *source, uint64_t at, uint64_t len, dcn_file *to, uint64_t to_at,
                              decant_error *err)
{
    decant_status rc;

    if (source->reader.read || dcn_outside(at, len, source->size))
        return decant_error_set(err, DECANT_UNSUPPORTED, "only a file's own bytes can be copied");
    rc = enter_file(source, err);
    return rc ? rc : leave(source, dcn_file_copy(to, to_at, source->file, at, len, err));
}

decant_status dcn_source_clone(dcn_source *source, uint64_t at, uint64_t len, dcn_file *to, uint64_t to_at,
                               decant_error *err)
{
    decant_status rc;

    if (source->reader.read || dcn_outside(at, len, source->size))
        return decant_error_set(err, DECANT_UNSUPPORTED, "only a file's own blocks can be shared");
    rc = enter_file(source, err);
    return rc ? rc : leave(source, dcn_file_clone(to, to_at, source->file, at, len, err));
}
