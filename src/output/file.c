/*
 * Files: atomically, and in place.
 *
 *  (1) Atomic: until the rename nothing but the part carries a byte of the save; the rename comes after the one sync.
 *  (2) The part is locked from its birth to its end, so that a part whose lock is free is a dead save's.
 *  (3) A sync that failed is never repeated: the kernel reports lost pages once and calls them clean afterwards.
 *  (4) The first bytes of the plan (`held`) are written last, so that a part or a half-written file opens nowhere. In place
 *      they are zeroed before anything else is touched, so that the old file does not pass for whole either; then the file
 *      gets its new length, which drops what the old one had behind it.
 *  (5) Under a journal the part has an ending of its own, and nobody but the journal's recovery removes it. Where there is
 *      room in what is held back, a stamp names the journal until the part is sealed, for who finds one without the other.
 */
#include "output/output.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/ckd.h"
#include "base/text.h"

#define PART_MIDDLE ".decant-"
#define PART_END ".part"
#define JPART_END ".jpart"
#define STAMP "DCNTPART" /* then the transaction, then the journal's name with its NUL */

enum {
    HEX = 16,
    TRIES = 16, /* names for a part, before something must be wrong */
    ID = 16,    /* bytes of a transaction */
    STAMP_MOST = sizeof STAMP - 1 + ID + DCN_PART_JOURNAL
};

typedef struct file_output {
    dcn_output out;
    dcn_file *file;
    bool forgotten; /* by the page cache */
    bool made;      /* the file is of our making, and goes with us */
    bool old;       /* a regular file is to be replaced */
    uint8_t *held;
    size_t held_len;
    dcn_source *const *sources;
    size_t source_count;
} file_output;

decant_status dcn_output_exists(decant_error *err)
{
    decant_status rc = decant_error_set(err, DECANT_EXISTS, "the output exists");

    dcn_error_hint(err, "--force replaces it when the new one is complete");
    return rc;
}

/* Where the system cannot, the room is taken as it is written to. */
static decant_status reserve(dcn_output *o, uint64_t at, uint64_t len, decant_error *err)
{
    decant_status rc = dcn_file_reserve(((file_output *)o)->file, at, len, err);

    return rc == DECANT_UNSUPPORTED ? DECANT_OK : rc;
}

/* What can be made longer only by writing to it grows on its own: all of a plan is written. */
static decant_status set_size(file_output *f, const dcn_plan *plan, decant_error *err)
{
    decant_status rc = dcn_file_resize(f->file, plan->total, err);

    return rc == DECANT_UNSUPPORTED && plan->total >= f->out.facts.size ? DECANT_OK : rc;
}

static decant_status hold(file_output *f, const dcn_plan *plan, decant_error *err)
{
    f->held_len = (size_t)plan->held;
    f->held = dcn_alloc(f->held_len, 1);
    return f->held ? DECANT_OK : dcn_error_nomem(err);
}

/*
 * What is left of the name in that of its part. It loses its beginning, since the files of a set, whose parts have one id,
 * differ at the end.
 */
static const char *kept_of(const char *name, const char *end)
{
    size_t len = strlen(name), most = DCN_NAME_MOST - (sizeof PART_MIDDLE - 1) - HEX - strlen(end);

    if (len <= most)
        return name;
    name += len - most;
    while (((uint8_t)*name & 0xC0) == 0x80)
        name++;
    return name;
}

decant_status dcn_part_name(const char *name, const uint8_t *id, bool has_journal, char **out, decant_error *err)
{
    const char *end = has_journal ? JPART_END : PART_END;
    dcn_buf text = {0};
    decant_status rc;

    dcn_buf_text(&text, kept_of(name, end));
    dcn_buf_text(&text, PART_MIDDLE);
    for (size_t i = 0; i < HEX / 2; i++)
        dcn_buf_format(&text, "%02x", id[i]);
    dcn_buf_put(&text, end, strlen(end) + 1);
    if ((rc = dcn_buf_check(&text, err)))
        dcn_buf_close(&text);
    else
        *out = (char *)text.data;
    return rc;
}

bool dcn_part_is_of(const char *entry, const char *name, bool has_journal, uint8_t *id)
{
    static const char digits[] = "0123456789abcdef";
    const char *end = has_journal ? JPART_END : PART_END;
    const char *left = kept_of(name, end);
    size_t kept = strlen(left), middle = sizeof PART_MIDDLE - 1;
    const char *hex = entry + kept + middle;

    if (strlen(entry) != kept + middle + HEX + strlen(end) || memcmp(entry, left, kept) != 0 ||
        memcmp(entry + kept, PART_MIDDLE, middle) != 0 || strspn(hex, digits) < HEX || strcmp(hex + HEX, end) != 0)
        return false;
    for (size_t i = 0; id && i < HEX / 2; i++)
        id[i] = (uint8_t)((strchr(digits, hex[2 * i]) - digits) << 4 | (strchr(digits, hex[2 * i + 1]) - digits));
    return true;
}

bool dcn_part_has_journal(const char *entry)
{
    size_t len = strlen(entry), end = sizeof JPART_END - 1;

    return len > end && strcmp(entry + len - end, JPART_END) == 0;
}

static decant_status name_part(file_output *f, decant_error *err)
{
    uint8_t random[HEX / 2];
    const uint8_t *id = f->out.transaction ? f->out.transaction : random;
    char *part = NULL;
    decant_status rc = f->out.transaction ? DECANT_OK : dcn_io_random(f->out.dir->io, random, sizeof random, err);

    if (rc || (rc = dcn_part_name(f->out.name, id, f->out.transaction, &part, err)))
        return rc;
    dcn_free(&f->out.part);
    f->out.part = part;
    return DECANT_OK;
}

/*
 * Creates a part and locks it. Between the two a sweep of another save may take it for a dead one and remove it: then the
 * name is gone, or the lock is the other's, and another name is tried. DECANT_EXISTS and DECANT_BUSY say so. keeps (2)
 */
static decant_status create_part(file_output *f, uint32_t mode, decant_error *err)
{
    unsigned flags = DCN_READ | DCN_WRITE | DCN_CREATE_NEW | DCN_NO_FOLLOW | DCN_ONCE;
    dcn_facts named;
    decant_status rc;

    if ((rc = name_part(f, err)) || (rc = dcn_dir_open(f->out.dir, f->out.part, flags, mode, &f->file, err)))
        return rc;
    f->made = true;
    if ((rc = dcn_file_facts(f->file, &f->out.facts, err)))
        return rc;
    rc = dcn_file_lock(f->file, err);
    if (rc && rc != DECANT_UNSUPPORTED)
        return rc;
    rc = dcn_dir_stat(f->out.dir, f->out.part, &named, err);
    if (rc == DECANT_NOT_FOUND || (rc == DECANT_OK && !dcn_facts_same_file(&named, &f->out.facts)))
        rc = decant_error_set(err, DECANT_BUSY, "the scratch file was taken away");
    return rc;
}

/* keeps (5) */
static decant_status stamp(file_output *f, decant_error *err)
{
    uint8_t bytes[STAMP_MOST];
    size_t len = f->out.journal ? strlen(f->out.journal) + 1 : 0;
    dcn_chunk chunk = {bytes, sizeof STAMP - 1 + ID + len};

    if (!len || chunk.len > f->held_len)
        return DECANT_OK;
    memcpy(bytes, STAMP, sizeof STAMP - 1);
    memcpy(bytes + sizeof STAMP - 1, f->out.transaction, ID);
    memcpy(bytes + sizeof STAMP - 1 + ID, f->out.journal, len);
    return dcn_file_write(f->file, 0, &chunk, 1, err);
}

decant_status dcn_part_journal(dcn_dir *dir, const char *part, char out[DCN_PART_JOURNAL], decant_error *err)
{
    char bytes[STAMP_MOST] = {0};
    dcn_range range = {0, bytes, STAMP_MOST - 1};
    dcn_file *file = NULL;
    dcn_facts facts;
    decant_status rc;

    out[0] = '\0';
    if ((rc = dcn_dir_open(dir, part, DCN_READ | DCN_NO_FOLLOW, 0, &file, err)) ||
        (rc = dcn_file_facts(file, &facts, err)))
        goto done;
    range.len = (size_t)dcn_min(facts.size, range.len);
    if ((rc = dcn_file_read(file, &range, 1, err)) == DECANT_OK && memcmp(bytes, STAMP, sizeof STAMP - 1) == 0)
        memcpy(out, bytes + sizeof STAMP - 1 + ID, DCN_PART_JOURNAL);
done:
    dcn_file_close(&file);
    return rc;
}

static void drop_part(file_output *f)
{
    dcn_file_close(&f->file);
    if (f->made)
        dcn_dir_discard(f->out.dir, f->out.part);
    f->made = false;
}

typedef struct sweep {
    const dcn_output *out;
    dcn_buf names; /* each with its NUL */
    bool others;   /* a part of another save that has a journal */
} sweep;

static int note_part(void *ctx, const char *name)
{
    sweep *s = ctx;

    if (strcmp(name, s->out->part) == 0)
        return 0;
    if (dcn_part_is_of(name, s->out->name, false, NULL))
        dcn_buf_put(&s->names, name, strlen(name) + 1);
    else if (dcn_part_is_of(name, s->out->name, true, NULL))
        s->others = true;
    return s->names.failed;
}

/* Gone already, another user's, of a live save, or not to be told apart from one: none of it is this save's failure. */
static decant_status unless_ours(decant_status rc)
{
    return rc == DECANT_NOT_FOUND || rc == DECANT_DENIED || rc == DECANT_BUSY || rc == DECANT_UNSUPPORTED ? DECANT_OK
                                                                                                          : rc;
}

/* Removes a part if it is the caller's and no live save has it locked: a plain save never holds the only copy. */
static decant_status remove_dead(const file_output *f, const char *name, decant_error *err)
{
    dcn_file *file = NULL;
    dcn_facts facts;
    decant_status rc;

    if ((rc = dcn_dir_stat(f->out.dir, name, &facts, err)) || facts.kind != DCN_KIND_REGULAR ||
        facts.uid != f->out.facts.uid)
        return unless_ours(rc);
    if ((rc = dcn_dir_open(f->out.dir, name, DCN_WRITE | DCN_NO_FOLLOW, 0, &file, err)) ||
        (rc = dcn_file_lock(file, err)))
        goto done;
    rc = dcn_dir_remove(f->out.dir, name, err);
done:
    dcn_file_close(&file);
    return unless_ours(rc);
}

/* Two that begin at once both see the other's part, and both give way. keeps (5) */
static decant_status give_way(decant_error *err)
{
    decant_status rc = decant_error_set(err, DECANT_BUSY, "another save of it has begun");

    dcn_error_hint(err, "wait for it, or see decant recover");
    return rc;
}

/* Parts that dead saves of this name have left. */
static decant_status sweep_parts(const file_output *f, decant_error *err)
{
    sweep s = {.out = &f->out};
    decant_status rc;

    if ((rc = unless_ours(dcn_dir_list(f->out.dir, note_part, &s, err))) || (rc = dcn_buf_check(&s.names, err)))
        goto done;
    for (size_t i = 0; i < s.names.len && rc == DECANT_OK; i += strlen((char *)s.names.data + i) + 1)
        rc = remove_dead(f, (char *)s.names.data + i, err);
    if (rc == DECANT_OK && s.others)
        rc = give_way(err);
done:
    dcn_buf_close(&s.names);
    return rc;
}

static decant_status begin(dcn_output *o, const dcn_plan *plan, decant_error *err)
{
    file_output *f = (file_output *)o;
    dcn_facts old;
    uint32_t mode = 0666;
    decant_status rc = dcn_dir_stat(f->out.dir, f->out.name, &old, err);

    if (rc && rc != DECANT_NOT_FOUND)
        return rc;
    if (rc == DECANT_OK && !f->out.replace)
        return dcn_output_exists(err);
    f->old = rc == DECANT_OK && old.kind == DCN_KIND_REGULAR;

    /*
     * Never wider to others than the file will be in the end: it is given the old one's mode and group before it is
     * published, and until then the group that it happens to have may do what all may. Its owner may write to it, or could
     * neither give it attributes nor sweep it.
     */
    if (f->old)
        mode = 0600 | (old.mode & 06) << 3 | (old.mode & 06);
    for (unsigned i = 0; i < TRIES; i++) {
        rc = create_part(f, mode, err);
        if (rc != DECANT_EXISTS && rc != DECANT_BUSY)
            break;
        drop_part(f);
    }
    if (rc || (rc = sweep_parts(f, err)) || (rc = hold(f, plan, err)) || (rc = stamp(f, err)))
        return rc;
    return set_size(f, plan, err);
}

/* Opened by its name, which is kept whatever it leads to. */
static decant_status open_in_place(file_output *f, decant_error *err)
{
    unsigned flags = DCN_WRITE | DCN_CREATE_NEW;
    decant_status rc;

    if (f->out.replace) {
        rc = dcn_dir_stat(f->out.dir, f->out.name, &f->out.facts, err);
        if (rc && rc != DECANT_NOT_FOUND)
            return rc;
        if (rc == DECANT_OK)
            flags = DCN_WRITE | DCN_CREATE; /* a link may lead to nothing yet */
    }
    rc = dcn_dir_open(f->out.dir, f->out.name, flags, 0666, &f->file, err);
    if (rc == DECANT_EXISTS)
        return dcn_output_exists(err);
    f->made = rc == DECANT_OK && flags & DCN_CREATE_NEW;
    return rc ? rc : dcn_file_facts(f->file, &f->out.facts, err);
}

static decant_status begin_in_place(dcn_output *o, const dcn_plan *plan, decant_error *err)
{
    file_output *f = (file_output *)o;
    dcn_chunk zeros;
    decant_status rc = open_in_place(f, err);

    if (rc)
        return rc;
    if (f->out.facts.kind != DCN_KIND_REGULAR)
        return decant_error_set(err, DECANT_EXISTS, "only a regular file can be written in place");
    if (!(f->out.facts.mode & 0222))
        return decant_error_set(err, DECANT_DENIED, "the file is read-only");
    for (size_t i = 0; i < f->source_count; i++) {
        const dcn_facts *source = dcn_source_facts(f->sources[i]);

        if (source && dcn_facts_same_file(source, &f->out.facts)) {
            rc = decant_error_set(err, DECANT_SAME_FILE, "the output is one of the inputs and would be destroyed");
            dcn_error_hint(err, "save it as a whole new file, or under another name");
            return rc;
        }
    }

    /* Memory and room first, while the old file is whole: a reserve that fails may have lengthened it. */
    if ((rc = hold(f, plan, err)))
        return rc;
    if (plan->total && (rc = reserve(o, 0, plan->total, err))) {
        dcn_file_resize(f->file, f->out.facts.size, NULL);
        return rc;
    }

    /* keeps (4): what is held is still zeros */
    zeros = (dcn_chunk){f->held, (size_t)dcn_min(f->held_len, f->out.facts.size)};
    if (zeros.len && (rc = dcn_file_write(f->file, 0, &zeros, 1, err)))
        return rc;
    return set_size(f, plan, err);
}

static decant_status write_file(dcn_output *o, uint64_t at, const dcn_chunk *c, size_t count, decant_error *err)
{
    file_output *f = (file_output *)o;

    for (size_t i = 0; i < count; i++) {
        size_t kept = at < f->held_len ? (size_t)dcn_min(f->held_len - at, c[i].len) : 0;
        dcn_chunk rest = {(const uint8_t *)c[i].data + kept, c[i].len - kept};
        decant_status rc;

        if (kept)
            memcpy(f->held + at, c[i].data, kept);
        if (rest.len && (rc = dcn_file_write(f->file, at + kept, &rest, 1, err)))
            return rc;
        at += c[i].len;
    }
    return DECANT_OK;
}

static decant_status copy_file(dcn_output *o, uint64_t at, dcn_source *from, uint64_t from_at, uint64_t len,
                               decant_error *err)
{
    file_output *f = (file_output *)o;

    assert(at >= f->held_len); /* keeps (4) */
    return dcn_source_copy(from, from_at, len, f->file, at, err);
}

static decant_status clone_file(dcn_output *o, uint64_t at, dcn_source *from, uint64_t from_at, uint64_t len,
                                decant_error *err)
{
    file_output *f = (file_output *)o;

    assert(at >= f->held_len); /* keeps (4) */
    return dcn_source_clone(from, from_at, len, f->file, at, err);
}

static decant_status write_held(file_output *f, decant_error *err)
{
    dcn_chunk held = {f->held, f->held_len};

    return held.len ? dcn_file_write(f->file, 0, &held, 1, err) : DECANT_OK;
}

/* Mode, owner and attributes of the file that is replaced; of one that cannot be opened, what begin took over of its mode. */
static decant_status resemble(file_output *f, decant_error *err)
{
    dcn_file *old = NULL;
    decant_status rc = dcn_dir_open(f->out.dir, f->out.name, DCN_READ | DCN_NO_FOLLOW, 0, &old, err);

    if (rc == DECANT_OK)
        rc = dcn_file_resemble(f->file, old, err);
    dcn_file_close(&old);
    return unless_ours(rc);
}

static decant_status seal(dcn_output *o, decant_error *err)
{
    file_output *f = (file_output *)o;
    decant_status rc;

    if ((rc = write_held(f, err)) || (f->old && (rc = resemble(f, err))))
        return rc;
    return dcn_file_sync(f->file, err); /* keeps (3) */
}

static decant_status seal_in_place(dcn_output *o, decant_error *err)
{
    return write_held((file_output *)o, err);
}

/* Past the page cache, where the system lets go of what it has just been told to keep. */
static decant_status reread(dcn_output *o, uint64_t at, void *dst, size_t len, decant_error *err)
{
    file_output *f = (file_output *)o;
    dcn_range range = {at, dst, len};
    decant_status rc = f->forgotten ? DECANT_OK : dcn_file_forget(f->file, err);

    f->forgotten = true;
    return rc && rc != DECANT_UNSUPPORTED ? rc : dcn_file_read(f->file, &range, 1, err);
}

static dcn_file *part_of(dcn_output *o, const uint8_t **held)
{
    file_output *f = (file_output *)o;

    *held = f->held;
    return f->file;
}

/* Half written by another process: what is at its name now counts as begin would have seen it. */
static decant_status reopen(dcn_output *o, const dcn_facts *part, const uint8_t *held, size_t len, decant_error *err)
{
    file_output *f = (file_output *)o;
    dcn_facts old;
    decant_status rc;

    if ((rc = name_part(f, err)) ||
        (rc = dcn_dir_open(o->dir, o->part, DCN_READ | DCN_WRITE | DCN_NO_FOLLOW, 0, &f->file, err)) ||
        (rc = dcn_file_facts(f->file, &o->facts, err)))
        return rc;
    if (!dcn_facts_same_file(&o->facts, part))
        return decant_error_set(err, DECANT_CHANGED, "the scratch file is another one now");
    rc = dcn_file_lock(f->file, err);
    if (rc && rc != DECANT_UNSUPPORTED)
        return rc;
    rc = dcn_dir_stat(o->dir, o->name, &old, err);
    if (rc && rc != DECANT_NOT_FOUND)
        return rc;
    f->old = rc == DECANT_OK && old.kind == DCN_KIND_REGULAR;
    f->made = true;
    f->held_len = len;
    if (!(f->held = dcn_alloc(len, 1)))
        return dcn_error_nomem(err);
    if (len)
        memcpy(f->held, held, len);
    return DECANT_OK;
}

static decant_status rejoin(dcn_output *o, const dcn_facts *part, decant_error *err)
{
    file_output *f = (file_output *)o;

    o->facts = *part;
    f->made = true;
    return name_part(f, err);
}

/* Over NFS a rename that was sent twice can fail although it was done: what the name is tells. */
static bool landed(const file_output *f)
{
    dcn_facts now;

    return dcn_dir_stat(f->out.dir, f->out.name, &now, NULL) == DECANT_OK && dcn_facts_same_file(&now, &f->out.facts);
}

/* Without links either, the name is looked at and then taken: what comes in between is lost, and no call prevents it. */
static decant_status take_name(file_output *f, decant_error *err)
{
    dcn_facts now;
    decant_status rc = dcn_dir_stat(f->out.dir, f->out.name, &now, err);

    if (rc == DECANT_NOT_FOUND)
        return dcn_dir_rename(f->out.dir, f->out.part, f->out.name, 0, err);
    return rc ? rc : dcn_output_exists(err);
}

/* For file systems without an exclusive rename: the file gets its name as a second one, then the first one goes. */
static decant_status link_in(file_output *f, decant_error *err)
{
    decant_status rc = dcn_dir_link(f->out.dir, f->out.part, f->out.name, err);

    if (rc == DECANT_UNSUPPORTED)
        return take_name(f, err);
    if (rc && !landed(f))
        return rc;
    f->made = false;
    /* a journal has promised the file: until it has the new name for good the old one stays */
    if (f->out.transaction && dcn_dir_sync(f->out.dir, err))
        return dcn_error_recast(err, DECANT_NOT_DURABLE, "saved, but power loss may undo it");
    rc = dcn_dir_remove(f->out.dir, f->out.part, err);
    return rc ? dcn_error_recast(err, DECANT_NOT_DURABLE, "saved, but the scratch name is left") : DECANT_OK;
}

static decant_status publish(dcn_output *o, decant_error *err)
{
    file_output *f = (file_output *)o;
    decant_status rc;

    rc = dcn_dir_rename(f->out.dir, f->out.part, f->out.name, f->out.replace ? 0 : DCN_NO_REPLACE, err);
    if (rc == DECANT_UNSUPPORTED && !f->out.replace)
        rc = link_in(f, err);
    if (rc && rc != DECANT_NOT_DURABLE && !landed(f))
        return rc == DECANT_EXISTS ? dcn_output_exists(err) : rc;
    f->made = false;
    return rc == DECANT_NOT_DURABLE ? rc : DECANT_OK;
}

static decant_status settle(dcn_output *o, decant_error *err)
{
    return dcn_dir_sync(o->dir, err);
}

static void abandon(dcn_output *o)
{
    file_output *f = (file_output *)o;

    dcn_file_close(&f->file); /* before its name goes: NFS keeps open files under another one */
    if (f->made)
        dcn_dir_discard(f->out.dir, f->out.part ? f->out.part : f->out.name);
    f->made = false;
}

static void close_file(dcn_output *o)
{
    file_output *f = (file_output *)o;

    dcn_free(&f->held);
    dcn_file_close(&f->file);
    dcn_free(&f->out.part);
    dcn_free(&f->out.name);
    dcn_free(&f);
}

static const dcn_output_ops file_ops = {
    .kind = "file",
    .begin = begin,
    .write = write_file,
    .clone = clone_file,
    .reserve = reserve,
    .copy = copy_file,
    .seal = seal,
    .reread = reread,
    .part = part_of,
    .reopen = reopen,
    .rejoin = rejoin,
    .publish = publish,
    .settle = settle,
    .abandon = abandon,
    .close = close_file,
};

static const dcn_output_ops in_place_ops = {
    .kind = "file in place",
    .begin = begin_in_place,
    .write = write_file,
    .copy = copy_file,
    .seal = seal_in_place,
    .abandon = abandon,
    .close = close_file,
};

static decant_status create(const dcn_output_ops *ops, dcn_dir *dir, const char *name, const char *path, bool replace,
                            file_output **out, decant_error *err)
{
    file_output *f = dcn_alloc(1, sizeof *f);

    if (!f || !(f->out.name = dcn_strndup(name, strlen(name)))) {
        dcn_free(&f);
        return dcn_error_nomem(err);
    }
    f->out.ops = ops;
    f->out.dir = dir;
    f->out.path = path;
    f->out.replace = replace;
    *out = f;
    return DECANT_OK;
}

decant_status dcn_output_file(dcn_dir *dir, const char *name, const char *path, bool replace, dcn_output **out,
                              decant_error *err)
{
    file_output *f;
    decant_status rc = create(&file_ops, dir, name, path, replace, &f, err);

    if (rc == DECANT_OK)
        *out = &f->out;
    return rc;
}

decant_status dcn_output_in_place(dcn_dir *dir, const char *name, const char *path, bool replace,
                                  dcn_source *const *sources, size_t count, dcn_output **out, decant_error *err)
{
    file_output *f;
    decant_status rc = create(&in_place_ops, dir, name, path, replace, &f, err);

    if (rc == DECANT_OK) {
        f->sources = sources;
        f->source_count = count;
        *out = &f->out;
    }
    return rc;
}
