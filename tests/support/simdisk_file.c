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
    _Static_assert(DCN_VERB_COUNT <= 8 * sizeof disk->lacks, "a bit for each verb");
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

uint64_t sim_device(const simdisk *disk, size_t system)
{
    return SIM_DEVICE + disk->state->boots + (uint64_t)system * 1000;
}

void sim_facts_of(const simdisk *disk, size_t number, dcn_facts *out)
{
    const inode *i = &disk->state->inodes[number];

    *out = (dcn_facts){
        .dev = sim_device(disk, i->system),
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
        .fixed = i->fixed,
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

    if (sim_lacks(disk_of(f), DCN_DO_COPY) || inode_of(f)->system != inode_of(from)->system ||
        dcn_outside(from_at, len, sim_blob_len(data)))
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

static decant_status sim_punch(dcn_file *f, uint64_t at, uint64_t len, decant_error *err)
{
    decant_status rc = check_writable(f, 0, err);
    change *c;

    if (rc)
        return rc;
    if (sim_lacks(disk_of(f), DCN_DO_PUNCH))
        return sim_failed(DECANT_UNSUPPORTED, EOPNOTSUPP, err);
    c = sim_changes_add(&inode_of(f)->changes, SIMDISK_PUNCH, 0);
    c->at = at;
    c->len = len;
    make(disk_of(f), inode_of(f), c);
    return DECANT_OK;
}

static decant_status sim_extents(dcn_file *f, dcn_extents *out, decant_error *err)
{
    const image *now = &inode_of(f)->now;

    if (sim_lacks(disk_of(f), DCN_DO_EXTENTS))
        return sim_failed(DECANT_UNSUPPORTED, EOPNOTSUPP, err);
    *out = (dcn_extents){.shared = now->shared,
                         .largest = dcn_min(disk_of(f)->extent, sim_blob_len(now->blocks) * disk_of(f)->block)};
    return DECANT_OK;
}

/* Whether a block is data, as far as this disk tells. */
static bool is_data(const simdisk *disk, const inode *i, size_t block)
{
    uint64_t at = block * disk->block;

    if (disk->holes == SIMDISK_NO_HOLES)
        return true;
    for (size_t n = 0; disk->holes == SIMDISK_DIRTY_HOLES && n < i->changes.count; n++) {
        const change *c = i->changes.items[n].change;

        if (c->what == SIMDISK_WRITE && c->at < at + disk->block && at < c->at + c->len)
            return false;
    }
    return block < sim_blob_len(i->now.blocks) && i->now.blocks->bytes[block] & SIM_WRITTEN;
}

static decant_status sim_data(dcn_file *f, uint64_t at, uint64_t *begin, uint64_t *end, decant_error *err)
{
    const simdisk *disk = disk_of(f);
    const inode *i = inode_of(f);
    uint64_t size = sim_blob_len(i->now.data), from = dcn_min(at, size), to;

    if (sim_lacks(disk, DCN_DO_DATA))
        return sim_failed(DECANT_UNSUPPORTED, EINVAL, err);
    while (from < size && !is_data(disk, i, (size_t)(from / disk->block)))
        from = dcn_min(size, (from / disk->block + 1) * disk->block);
    for (to = from; to < size && is_data(disk, i, (size_t)(to / disk->block));)
        to = dcn_min(size, (to / disk->block + 1) * disk->block);
    *begin = from;
    *end = to;
    return DECANT_OK;
}

static decant_status sim_alone(dcn_file *f, decant_error *err)
{
    const inode *i = inode_of(f);

    if (sim_lacks(disk_of(f), DCN_DO_ALONE))
        return sim_failed(DECANT_UNSUPPORTED, EINVAL, err);
    if (i->now.attributes.uid != SIM_USER)
        return sim_failed(DECANT_UNSUPPORTED, EACCES, err);
    return i->someone || i->opens > 1 ? sim_failed(DECANT_BUSY, EAGAIN, err) : DECANT_OK;
}

static decant_status sim_note(dcn_file *f, const char *text, decant_error *err)
{
    inode *i = inode_of(f);
    change *c;

    if (sim_lacks(disk_of(f), DCN_DO_NOTE))
        return sim_failed(DECANT_UNSUPPORTED, EOPNOTSUPP, err);
    c = sim_changes_add(&i->changes, SIMDISK_NOTE, 0);
    c->name = sim_copy_text(text);
    sim_apply(disk_of(f), &i->now, c, UINT64_MAX);
    return DECANT_OK;
}

static decant_status sim_read_note(dcn_file *f, char *out, size_t size, decant_error *err)
{
    const blob *note = inode_of(f)->now.note;

    if (sim_lacks(disk_of(f), DCN_DO_READ_NOTE))
        return sim_failed(DECANT_UNSUPPORTED, EOPNOTSUPP, err);
    if (!note)
        return sim_failed(DECANT_NOT_FOUND, ENODATA, err);
    if (note->len > size)
        return sim_failed(DECANT_UNSUPPORTED, ERANGE, err);
    memcpy(out, note->bytes, note->len);
    return DECANT_OK;
}

static decant_status sim_set_mtime(dcn_file *f, int64_t ns, decant_error *err)
{
    inode *i = inode_of(f);
    change *c;

    if (sim_lacks(disk_of(f), DCN_DO_SET_MTIME))
        return sim_failed(DECANT_UNSUPPORTED, EOPNOTSUPP, err);
    if (i->now.attributes.uid != SIM_USER)
        return sim_failed(DECANT_DENIED, EPERM, err);
    c = sim_changes_add(&i->changes, SIMDISK_TIME, 0);
    c->mtime = ns;
    sim_apply(disk_of(f), &i->now, c, UINT64_MAX);
    return DECANT_OK;
}

static void sim_close(dcn_file *f)
{
    sim_file *file = (sim_file *)f;
    inode *i = inode_of(f);

    if (file->locked)
        i->locked = false;
    i->opens--;
    if (i->nameless)
        sim_inode_clear(i);
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
    .punch = sim_punch,
    .extents = sim_extents,
    .data = sim_data,
    .alone = sim_alone,
    .note = sim_note,
    .read_note = sim_read_note,
    .set_mtime = sim_set_mtime,
};

dcn_file *sim_file_new(dcn_dir *d, const char *text, size_t number, unsigned flags)
{
    sim_file *file = sim_take(sizeof *file);

    file->base = (dcn_file){.ops = &file_ops, .io = d->io};
    if (strcmp(d->path, ".") == 0 || !text[0]) {
        file->base.path = sim_copy_text(text[0] ? text : d->path);
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
