/*
 * All numbers are little-endian.
 *
 *     BEGIN    u32 outputs | u32 files to remove afterwards | each output | each such file
 *     file     u16 bytes of the name | name | identity | u64 time of its last change
 *     output   u16 bytes of the name | name | u8 flags | u64 size | u64 held back | if it replaces: identity
 *     COMMIT   identity of each part
 *     identity u64 device | u64 inode | u64 birth | u64 size
 */
#include "pour/intent.h"

#include <string.h>

#include "base/alloc.h"
#include "base/ckd.h"
#include "base/endian.h"
#include "base/reader.h"

enum {
    REPLACE = 1 << 0,
    HAS_OLD = 1 << 1,
    FLAGS = REPLACE | HAS_OLD,
    IDENTITY = 32,                        /* bytes */
    OUTPUT_LEAST = 20,                    /* bytes of an output in BEGIN */
    REMOVAL_LEAST = 2 + 1 + IDENTITY + 8, /* of a file to remove */
    NAME_MOST = 255
};

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

static decant_status take_outputs(dcn_intent *intent, size_t count, decant_error *err)
{
    intent->outputs = dcn_alloc(count, sizeof *intent->outputs);
    if (!intent->outputs)
        return dcn_error_nomem(err);
    intent->count = count;
    return DECANT_OK;
}

static decant_status take_removals(dcn_intent *intent, size_t count, decant_error *err)
{
    intent->removals = dcn_alloc(count, sizeof *intent->removals);
    if (!intent->removals)
        return dcn_error_nomem(err);
    intent->removal_count = count;
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

static decant_status check_name(const dcn_promise *p, const dcn_output *o, decant_error *err)
{
    dcn_facts now;
    decant_status rc = dcn_dir_stat(o->dir, o->name, &now, err);

    if (rc == DECANT_NOT_FOUND)
        return DECANT_OK;
    if (rc == DECANT_OK && !p->replace)
        rc = dcn_output_exists(err);
    else if (rc == DECANT_OK && !(p->has_old && dcn_identity_fits(&p->old, &now, true))) {
        rc = decant_error_set(err, DECANT_CHANGED, "another file has come to this name while it was written");
        dcn_error_hint(err, "see what it is, and save again");
    }
    if (rc)
        dcn_error_path(err, o->path);
    return rc;
}

decant_status dcn_intent_check(const dcn_intent *intent, dcn_output *const *outputs, decant_error *err)
{
    decant_status rc = DECANT_OK;

    for (size_t i = 0; i < intent->count && rc == DECANT_OK; i++)
        rc = check_name(&intent->outputs[i], outputs[i], err);
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

decant_status dcn_removals_carry_out(dcn_dir *dir, const dcn_removal *removals, size_t count, bool same_boot,
                                     decant_error *err)
{
    decant_status rc = DECANT_OK;

    for (size_t i = 0; i < count && rc == DECANT_OK; i++)
        rc = carry_out(dir, &removals[i], same_boot, err);
    return rc || !count ? rc : dcn_dir_sync(dir, err);
}

void dcn_intent_close(dcn_intent *intent)
{
    dcn_free(&intent->removals);
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

void dcn_intent_put_begin(const dcn_intent *intent, dcn_buf *out)
{
    put_number(out, intent->count, 4);
    put_number(out, intent->removal_count, 4);
    for (size_t i = 0; i < intent->count; i++) {
        const dcn_promise *p = &intent->outputs[i];

        put_number(out, strlen(p->name), 2);
        dcn_buf_text(out, p->name);
        put_number(out, (p->replace ? REPLACE : 0) | (p->has_old ? HAS_OLD : 0), 1);
        put_number(out, p->size, 8);
        put_number(out, p->held, 8);
        if (p->has_old)
            put_identity(out, &p->old);
    }
    for (size_t i = 0; i < intent->removal_count; i++) {
        const dcn_removal *r = &intent->removals[i];

        put_number(out, strlen(r->name), 2);
        dcn_buf_text(out, r->name);
        put_identity(out, &r->file);
        put_number(out, (uint64_t)r->mtime, 8);
    }
}

void dcn_intent_put_commit(const dcn_intent *intent, dcn_buf *out)
{
    for (size_t i = 0; i < intent->count; i++)
        put_identity(out, &intent->outputs[i].part);
}

size_t dcn_intent_commit_len(const dcn_intent *intent)
{
    return intent->count * IDENTITY;
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
    return name && len && len <= NAME_MOST && !memchr(name, '/', len) && !memchr(name, '\0', len) &&
           !(name[0] == '.' && (len == 1 || (len == 2 && name[1] == '.')));
}

static decant_status take_name(dcn_intent *intent, dcn_reader *r, const char **out, decant_error *err)
{
    size_t len = (size_t)take_number(r, 2);
    const uint8_t *name = dcn_reader_take(r, len);
    char *copy;

    if (!is_bare(name, len))
        return from_later(err, "a file that is not in its folder");
    if (!(copy = dcn_arena_take(&intent->memory, len + 1)))
        return dcn_error_nomem(err);
    memcpy(copy, name, len);
    copy[len] = '\0';
    *out = copy;
    return DECANT_OK;
}

static decant_status take_output(dcn_intent *intent, dcn_reader *r, dcn_promise *p, decant_error *err)
{
    uint64_t flags;
    decant_status rc = take_name(intent, r, &p->name, err);

    if (rc)
        return rc;
    flags = take_number(r, 1);
    p->size = take_number(r, 8);
    p->held = take_number(r, 8);
    if (r->failed || flags & ~(uint64_t)FLAGS)
        return from_later(err, "an output of a kind that is not known");
    p->replace = flags & REPLACE;
    p->has_old = flags & HAS_OLD;
    if (p->has_old)
        p->old = take_identity(r);
    return DECANT_OK;
}

decant_status dcn_intent_read_begin(dcn_intent *intent, const uint8_t *data, size_t len, decant_error *err)
{
    dcn_reader r = dcn_reader_on(data, len);
    uint64_t count = take_number(&r, 4), removals = take_number(&r, 4);
    decant_status rc;

    if (!count || count > len / OUTPUT_LEAST || removals > len / REMOVAL_LEAST)
        return from_later(err, "it begins with more than outputs");
    if ((rc = take_outputs(intent, (size_t)count, err)) || (rc = take_removals(intent, (size_t)removals, err)))
        return rc;
    for (size_t i = 0; i < intent->count; i++)
        if ((rc = take_output(intent, &r, &intent->outputs[i], err)))
            return rc;
    for (size_t i = 0; i < intent->removal_count; i++) {
        dcn_removal *removal = &intent->removals[i];

        if ((rc = take_name(intent, &r, &removal->name, err)))
            return rc;
        removal->file = take_identity(&r);
        removal->mtime = (int64_t)take_number(&r, 8);
    }
    return r.failed || dcn_reader_left(&r) ? from_later(err, "it begins with more than outputs") : DECANT_OK;
}

decant_status dcn_intent_read_commit(dcn_intent *intent, const uint8_t *data, size_t len, decant_error *err)
{
    dcn_reader r = dcn_reader_on(data, len);

    for (size_t i = 0; i < intent->count; i++)
        intent->outputs[i].part = take_identity(&r);
    return r.failed || dcn_reader_left(&r) ? from_later(err, "it ends with more than outputs") : DECANT_OK;
}
