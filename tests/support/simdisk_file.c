#include "simdisk_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/ckd.h"

typedef struct sim_file {
    dcn_file base;
    size_t inode;
    unsigned flags;
    bool locked;
} sim_file;

static simdisk *disk_of(dcn_file *f)
{
    return (simdisk *)f->io;
}

static inode *inode_of(dcn_file *f)
{
    return &disk_of(f)->state->inodes[((sim_file *)f)->inode];
}

decant_status sim_failed(decant_status status, int code, decant_error *err)
{
    decant_error_set(err, status, "simulated: %s", strerror(code));
    if (err)
        err->os_code = code;
    return status;
}

bool sim_lacks(const simdisk *disk, dcn_verb verb)
{
    return disk->lacks & 1u << verb;
}

bool sim_lies(simdisk *disk, changes *list)
{
    if (!disk->lie_at || --disk->lie_at)
        return false;
    for (size_t i = 0; i < list->count; i++)
        list->items[i].lost |= !list->items[i].safe;
    disk->lied = true;
    return true;
}

bool sim_wait_behind_lost(changes *list)
{
    bool lost = false;

    for (size_t i = 0; i < list->count; i++) {
        lost |= list->items[i].lost;
        list->items[i].safe = !list->items[i].lost;
    }
    return lost;
}

static decant_status sim_read(dcn_file *f, const dcn_range *r, size_t count, decant_error *err)
{
    inode *i = inode_of(f);
    size_t size = sim_blob_len(i->now.data);

    if (((sim_file *)f)->flags & DCN_WRITE && !(((sim_file *)f)->flags & DCN_READ))
        return sim_failed(DECANT_BAD_CALL, EBADF, err);
    if (i->kind == DCN_KIND_FOLDER)
        return sim_failed(DECANT_DENIED, EISDIR, err);
    for (size_t k = 0; k < count; k++) {
        if (r[k].len && dcn_outside(r[k].at, r[k].len, size)) {
            decant_error_set(err, DECANT_TRUNCATED, "file is too short");
            dcn_error_offset(err, size);
            return DECANT_TRUNCATED;
        }
        if (r[k].len)
            memcpy(r[k].dst, i->now.data->bytes + r[k].at, r[k].len);
    }
    return DECANT_OK;
}

static decant_status check_writable(dcn_file *f, uint64_t end, decant_error *err)
{
    if (!(((sim_file *)f)->flags & DCN_WRITE))
        return sim_failed(DECANT_BAD_CALL, EBADF, err);
    if (end > disk_of(f)->limit)
        return sim_failed(DECANT_NO_SPACE, EFBIG, err);
    return DECANT_OK;
}

/* A change that everybody sees from now on. */
static void make(simdisk *disk, inode *i, change *c)
{
    c->mtime = ++disk->state->clock;
    sim_apply(disk, &i->now, c, UINT64_MAX);
}

void sim_set_size(simdisk *disk, inode *i, uint64_t len)
{
    change *c = sim_changes_add(&i->changes, SIMDISK_RESIZE, 0);

    c->len = len;
    make(disk, i, c);
}

static decant_status sim_write(dcn_file *f, uint64_t at, const dcn_chunk *c, size_t count, decant_error *err)
{
    simdisk *disk = disk_of(f);
    inode *i = inode_of(f);
    decant_status rc = DECANT_OK;

    for (size_t k = 0; k < count; k++) {
        change *w;

        if ((rc = check_writable(f, at + c[k].len, err)))
            return rc;
        if (c[k].len == 0)
            continue;
        if (!sim_has_room(disk, i, at, c[k].len))
            return sim_failed(DECANT_NO_SPACE, ENOSPC, err);
        if (at + c[k].len > sim_blob_len(i->now.data))
            sim_set_size(disk, i, at + c[k].len);
        w = sim_changes_add(&i->changes, SIMDISK_WRITE, c[k].len);
        w->at = at;
        memcpy(w->data, c[k].data, c[k].len);
        make(disk, i, w);
        at += c[k].len;
    }
    return rc;
}

static decant_status sim_resize(dcn_file *f, uint64_t len, decant_error *err)
{
    decant_status rc = check_writable(f, len, err);

    if (rc)
        return rc;
    if (len > sim_blob_len(inode_of(f)->now.data) && sim_lacks(disk_of(f), DCN_DO_RESIZE))
        return sim_failed(DECANT_UNSUPPORTED, EPERM, err);
    sim_set_size(disk_of(f), inode_of(f), len);
    return DECANT_OK;
}

static decant_status sim_sync(dcn_file *f, decant_error *err)
{
    inode *i = inode_of(f);

    if (sim_lies(disk_of(f), &i->changes))
        return sim_failed(DECANT_IO, EIO, err);
    if (sim_wait_behind_lost(&i->changes))
        return DECANT_OK;
    sim_changes_clear(&i->changes);
    sim_image_become(&i->safe, &i->now);
    return DECANT_OK;
}

void sim_facts_of(const simdisk *disk, size_t number, dcn_facts *out)
{
    const inode *i = &disk->state->inodes[number];

    *out = (dcn_facts){
        .dev = SIM_DEVICE + disk->state->boots,
        .ino = number + 1,
        .birth = i->birth,
        .mtime = i->now.mtime,
        .size = sim_blob_len(i->now.data),
        .blocks = sim_blocks_used(&i->now) * disk->block,
        .links = i->links,
        .mode = i->now.attributes.mode,
        .uid = i->now.attributes.uid,
        .gid = i->now.attributes.gid,
        .ours = i->now.attributes.uid == SIM_USER,
        .mine = i->now.attributes.uid == SIM_USER,
        .kind = i->kind,
    };
}

static decant_status sim_facts(dcn_file *f, dcn_facts *out, decant_error *err)
{
    (void)err;
    sim_facts_of(disk_of(f), ((sim_file *)f)->inode, out);
    return DECANT_OK;
}

static decant_status sim_reserve(dcn_file *f, uint64_t at, uint64_t len, decant_error *err)
{
    inode *i = inode_of(f);
    change *c;

    if (sim_lacks(disk_of(f), DCN_DO_RESERVE))
        return sim_failed(DECANT_UNSUPPORTED, EOPNOTSUPP, err);
    if (!sim_has_room(disk_of(f), i, at, len))
        return sim_failed(DECANT_NO_SPACE, ENOSPC, err);
    c = sim_changes_add(&i->changes, SIMDISK_RESERVE, 0);
    c->at = at;
    c->len = len;
    sim_apply(disk_of(f), &i->now, c, UINT64_MAX);
    return DECANT_OK;
}

static decant_status sim_lock(dcn_file *f, decant_error *err)
{
    sim_file *file = (sim_file *)f;
    inode *i = inode_of(f);

    if (sim_lacks(disk_of(f), DCN_DO_LOCK))
        return sim_failed(DECANT_UNSUPPORTED, ENOLCK, err);
    if (i->held || (i->locked && !file->locked))
        return sim_failed(DECANT_BUSY, EWOULDBLOCK, err);
    i->locked = file->locked = true;
    return DECANT_OK;
}

static decant_status sim_resemble(dcn_file *f, dcn_file *old, decant_error *err)
{
    inode *i = inode_of(f);
    change *c;

    if (sim_lacks(disk_of(f), DCN_DO_RESEMBLE))
        return sim_failed(DECANT_UNSUPPORTED, EOPNOTSUPP, err);
    c = sim_changes_add(&i->changes, SIMDISK_ATTRIBUTES, 0);
    c->attributes = inode_of(old)->now.attributes;
    sim_apply(disk_of(f), &i->now, c, UINT64_MAX);
    return DECANT_OK;
}

static decant_status sim_copy(dcn_file *f, uint64_t at, dcn_file *from, uint64_t from_at, uint64_t len,
                              decant_error *err)
{
    const blob *data = inode_of(from)->now.data;
    dcn_chunk chunk = {0};

    if (sim_lacks(disk_of(f), DCN_DO_COPY) || dcn_outside(from_at, len, sim_blob_len(data)))
        return sim_failed(DECANT_UNSUPPORTED, ENOSYS, err);
    chunk = (dcn_chunk){len ? data->bytes + from_at : NULL, (size_t)len};
    return sim_write(f, at, &chunk, 1, err);
}

/* What failed syncs have lost is not on the medium; what waits for one is still in the cache, and stays. */
static decant_status sim_forget(dcn_file *f, decant_error *err)
{
    inode *i = inode_of(f);
    image fresh = {0};

    (void)err;
    sim_changes_drop_lost(&i->changes);
    sim_image_become(&fresh, &i->safe);
    for (size_t n = 0; n < i->changes.count; n++)
        sim_apply(disk_of(f), &fresh, i->changes.items[n].change, UINT64_MAX);
    sim_blob_unref(&i->now.data);
    i->now.data = sim_blob_ref(fresh.data);
    sim_image_clear(&fresh);
    return DECANT_OK;
}

/* Content is copied: what a caller can tell apart is where it must begin and end. */
static decant_status sim_clone(dcn_file *f, uint64_t at, dcn_file *from, uint64_t from_at, uint64_t len,
                               decant_error *err)
{
    const simdisk *disk = disk_of(f);

    if (sim_lacks(disk, DCN_DO_CLONE) || (at | from_at | len) % disk->block)
        return sim_failed(DECANT_UNSUPPORTED, EOPNOTSUPP, err);
    return sim_copy(f, at, from, from_at, len, err);
}

static void sim_close(dcn_file *f)
{
    sim_file *file = (sim_file *)f;
    inode *i = inode_of(f);

    if (file->locked)
        i->locked = false;
    i->opens--;
    disk_of(f)->open_files--;
    free((void *)(uintptr_t)f->path);
    free(file);
}

static const dcn_file_ops file_ops = {
    .read = sim_read,
    .write = sim_write,
    .resize = sim_resize,
    .sync = sim_sync,
    .facts = sim_facts,
    .close = sim_close,
    .reserve = sim_reserve,
    .lock = sim_lock,
    .resemble = sim_resemble,
    .copy = sim_copy,
    .forget = sim_forget,
    .clone = sim_clone,
};

dcn_file *sim_file_new(dcn_dir *d, const char *text, size_t number, unsigned flags)
{
    sim_file *file = sim_take(sizeof *file);

    file->base = (dcn_file){.ops = &file_ops, .io = d->io};
    if (strcmp(d->path, ".") == 0) {
        file->base.path = sim_copy_text(text);
    } else {
        char *path = sim_take(strlen(d->path) + strlen(text) + 2);

        sprintf(path, "%s/%s", d->path, text);
        file->base.path = path;
    }
    file->base.name = file->base.path + strlen(file->base.path) - strlen(text);
    file->inode = number;
    file->flags = flags;
    inode_of(&file->base)->opens++;
    disk_of(&file->base)->open_files++;
    return &file->base;
}
