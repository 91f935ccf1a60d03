#include "simdisk_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/ckd.h"

enum { UMASK = 022, DEVICE = 7 };

typedef struct sim_dir {
    dcn_dir base;
    size_t folder;
} sim_dir;

typedef struct sim_file {
    dcn_file base;
    size_t inode;
    unsigned flags;
    bool locked;
} sim_file;

static simdisk *disk_of(dcn_io *io)
{
    return (simdisk *)io;
}

static folder *folder_of(dcn_dir *d)
{
    return &disk_of(d->io)->state->folders[((sim_dir *)d)->folder];
}

static inode *inode_of(dcn_file *f)
{
    return &disk_of(f->io)->state->inodes[((sim_file *)f)->inode];
}

/* Whether this sync is the one that lies: then what is pending is lost. */
static bool lies(simdisk *disk, changes *list)
{
    if (!disk->lie_at || --disk->lie_at)
        return false;
    for (size_t i = 0; i < list->count; i++)
        list->items[i].lost |= !list->items[i].safe;
    disk->lied = true;
    return true;
}

/* True if what was lost stands in the way: then the rest waits, safe, behind it. */
static bool wait_behind_lost(changes *list)
{
    bool lost = false;

    for (size_t i = 0; i < list->count; i++) {
        lost |= list->items[i].lost;
        list->items[i].safe = !list->items[i].lost;
    }
    return lost;
}

/* --- calls ------------------------------------------------------------------------------------------------------- */

static decant_status failed(decant_status status, int code, decant_error *err)
{
    decant_error_set(err, status, "simulated: %s", strerror(code));
    if (err)
        err->os_code = code;
    return status;
}

static bool lacks(const simdisk *disk, dcn_verb verb)
{
    return disk->lacks & 1u << verb;
}

static decant_status sim_read(dcn_file *f, const dcn_range *r, size_t count, decant_error *err)
{
    inode *i = inode_of(f);
    size_t size = sim_blob_len(i->data);

    if (((sim_file *)f)->flags & DCN_WRITE && !(((sim_file *)f)->flags & DCN_READ))
        return failed(DECANT_BAD_CALL, EBADF, err);
    if (i->kind == DCN_KIND_FOLDER)
        return failed(DECANT_DENIED, EISDIR, err);
    for (size_t k = 0; k < count; k++) {
        if (r[k].len && dcn_outside(r[k].at, r[k].len, size)) {
            decant_error_set(err, DECANT_TRUNCATED, "file is too short");
            dcn_error_offset(err, size);
            return DECANT_TRUNCATED;
        }
        if (r[k].len)
            memcpy(r[k].dst, i->data->bytes + r[k].at, r[k].len);
    }
    return DECANT_OK;
}

static decant_status check_writable(dcn_file *f, uint64_t end, decant_error *err)
{
    if (!(((sim_file *)f)->flags & DCN_WRITE))
        return failed(DECANT_BAD_CALL, EBADF, err);
    if (end > disk_of(f->io)->limit)
        return failed(DECANT_NO_SPACE, EFBIG, err);
    return DECANT_OK;
}

static void set_size(inode *i, uint64_t len)
{
    change *c = sim_changes_add(&i->changes, SIMDISK_RESIZE, 0);

    c->at = len;
    sim_blob_resize(&i->data, (size_t)len);
}

static decant_status sim_write(dcn_file *f, uint64_t at, const dcn_chunk *c, size_t count, decant_error *err)
{
    simdisk *disk = disk_of(f->io);
    inode *i = inode_of(f);
    decant_status rc = DECANT_OK;

    for (size_t k = 0; k < count; k++) {
        if ((rc = check_writable(f, at + c[k].len, err)))
            return rc;
        if (c[k].len == 0)
            continue;
        if (!sim_allocate(disk, i, at, c[k].len))
            return failed(DECANT_NO_SPACE, ENOSPC, err);
        if (at + c[k].len > sim_blob_len(i->data))
            set_size(i, at + c[k].len);
        sim_blob_write(&i->data, (size_t)at, c[k].data, c[k].len);
        change *w = sim_changes_add(&i->changes, SIMDISK_WRITE, c[k].len);
        w->at = at;
        memcpy(w->data, c[k].data, c[k].len);
        at += c[k].len;
        i->mtime = ++disk->state->clock;
    }
    return rc;
}

static decant_status sim_resize(dcn_file *f, uint64_t len, decant_error *err)
{
    simdisk *disk = disk_of(f->io);
    inode *i = inode_of(f);
    decant_status rc = check_writable(f, len, err);

    if (rc)
        return rc;
    if (len > sim_blob_len(i->data) && lacks(disk, DCN_DO_RESIZE))
        return failed(DECANT_UNSUPPORTED, EPERM, err);
    if (len < sim_blob_len(i->data) && sim_blocks_of(disk, len) < sim_blob_len(i->blocks))
        sim_blob_resize(&i->blocks, sim_blocks_of(disk, len));
    if (len != sim_blob_len(i->data))
        set_size(i, len);
    i->mtime = ++disk->state->clock;
    return DECANT_OK;
}

static decant_status sim_sync(dcn_file *f, decant_error *err)
{
    inode *i = inode_of(f);

    if (lies(disk_of(f->io), &i->changes))
        return failed(DECANT_IO, EIO, err);
    if (wait_behind_lost(&i->changes))
        return DECANT_OK;
    sim_changes_clear(&i->changes);
    sim_blob_unref(&i->safe_data);
    i->safe_data = sim_blob_ref(i->data);
    i->safe = i->now;
    return DECANT_OK;
}

static void facts_of(const simdisk *disk, size_t number, dcn_facts *out)
{
    const inode *i = &disk->state->inodes[number];

    *out = (dcn_facts){
        .dev = DEVICE + disk->state->boots,
        .ino = number + 1,
        .birth = i->birth,
        .mtime = i->mtime,
        .size = sim_blob_len(i->data),
        .blocks = sim_blocks_used(i) * disk->block,
        .links = i->links,
        .mode = i->now.mode,
        .uid = i->now.uid,
        .gid = i->now.gid,
        .ours = i->now.uid == SIM_USER,
        .mine = i->now.uid == SIM_USER,
        .kind = i->kind,
    };
}

static decant_status sim_facts(dcn_file *f, dcn_facts *out, decant_error *err)
{
    (void)err;
    facts_of(disk_of(f->io), ((sim_file *)f)->inode, out);
    return DECANT_OK;
}

static decant_status sim_reserve(dcn_file *f, uint64_t at, uint64_t len, decant_error *err)
{
    if (lacks(disk_of(f->io), DCN_DO_RESERVE))
        return failed(DECANT_UNSUPPORTED, EOPNOTSUPP, err);
    if (!sim_allocate(disk_of(f->io), inode_of(f), at, len))
        return failed(DECANT_NO_SPACE, ENOSPC, err);
    return DECANT_OK;
}

static decant_status sim_lock(dcn_file *f, decant_error *err)
{
    sim_file *file = (sim_file *)f;
    inode *i = inode_of(f);

    if (lacks(disk_of(f->io), DCN_DO_LOCK))
        return failed(DECANT_UNSUPPORTED, ENOLCK, err);
    if (i->held || (i->locked && !file->locked))
        return failed(DECANT_BUSY, EWOULDBLOCK, err);
    i->locked = file->locked = true;
    return DECANT_OK;
}

static decant_status sim_resemble(dcn_file *f, dcn_file *old, decant_error *err)
{
    inode *i = inode_of(f);

    if (lacks(disk_of(f->io), DCN_DO_RESEMBLE))
        return failed(DECANT_UNSUPPORTED, EOPNOTSUPP, err);
    i->now = inode_of(old)->now;
    sim_changes_add(&i->changes, SIMDISK_ATTRIBUTES, 0)->attributes = i->now;
    return DECANT_OK;
}

static decant_status sim_copy(dcn_file *f, uint64_t at, dcn_file *from, uint64_t from_at, uint64_t len,
                              decant_error *err)
{
    const blob *data = inode_of(from)->data;
    dcn_chunk chunk = {0};

    if (lacks(disk_of(f->io), DCN_DO_COPY) || dcn_outside(from_at, len, sim_blob_len(data)))
        return failed(DECANT_UNSUPPORTED, ENOSYS, err);
    chunk = (dcn_chunk){len ? data->bytes + from_at : NULL, (size_t)len};
    return sim_write(f, at, &chunk, 1, err);
}

/* What failed syncs have lost is not on the medium; what waits for one is still in the cache, and stays. */
static decant_status sim_forget(dcn_file *f, decant_error *err)
{
    inode *i = inode_of(f);

    (void)err;
    sim_inode_forget(i);
    return DECANT_OK;
}

/* Content is copied: what a caller can tell apart is where it must begin and end. */
static decant_status sim_clone(dcn_file *f, uint64_t at, dcn_file *from, uint64_t from_at, uint64_t len,
                               decant_error *err)
{
    const simdisk *disk = disk_of(f->io);

    if (lacks(disk, DCN_DO_CLONE) || (at | from_at | len) % disk->block)
        return failed(DECANT_UNSUPPORTED, EOPNOTSUPP, err);
    return sim_copy(f, at, from, from_at, len, err);
}

static void sim_close(dcn_file *f)
{
    sim_file *file = (sim_file *)f;
    inode *i = inode_of(f);

    if (file->locked)
        i->locked = false;
    i->opens--;
    disk_of(f->io)->open_files--;
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

/* Where the links at a name end (at a bare name, there or not); false if they never do. */
static bool follow(const simdisk_state *s, const folder *f, const char *text, char last[256])
{
    snprintf(last, 256, "%s", text);
    for (int hops = 0; hops < 40; hops++) {
        const name *found = sim_names_find(&f->now, last);

        if (!found || s->inodes[found->inode].kind != DCN_KIND_LINK)
            return true;
        const blob *b = s->inodes[found->inode].data;
        snprintf(last, 256, "%.*s", (int)b->len, (const char *)b->bytes);
    }
    return false;
}

static decant_status sim_open(dcn_dir *d, const char *text, unsigned flags, uint32_t mode, dcn_file **out,
                              decant_error *err)
{
    simdisk *disk = disk_of(d->io);
    folder *f = folder_of(d);
    name *there = sim_names_find(&f->now, text), *found;
    char last[256];
    sim_file *file;
    size_t number;

    if (strlen(text) > 255)
        return failed(DECANT_BAD_CALL, ENAMETOOLONG, err);
    if (there && flags & DCN_CREATE_NEW)
        return failed(DECANT_EXISTS, EEXIST, err);
    if (there && flags & DCN_NO_FOLLOW && disk->state->inodes[there->inode].kind == DCN_KIND_LINK)
        return failed(DECANT_DENIED, ELOOP, err);
    if (!follow(disk->state, f, text, last))
        return failed(DECANT_DENIED, ELOOP, err);
    found = sim_names_find(&f->now, last);
    if (!found && !(flags & (DCN_CREATE | DCN_CREATE_NEW)))
        return failed(DECANT_NOT_FOUND, ENOENT, err);
    if (found && flags & DCN_WRITE && disk->state->inodes[found->inode].kind == DCN_KIND_FOLDER)
        return failed(DECANT_DENIED, EISDIR, err);

    if (found) {
        number = found->inode;
    } else {
        change *c = sim_changes_add(&f->changes, SIMDISK_ADD_NAME, 0);

        number = sim_inode_new(disk->state, DCN_KIND_REGULAR, mode & ~(uint32_t)UMASK);
        sim_names_set(&f->now, last, number);
        disk->state->inodes[number].links = 1;
        c->name = sim_copy_text(last);
        c->inode = number;
    }
    if (flags & DCN_TRUNCATE && sim_blob_len(disk->state->inodes[number].data)) {
        set_size(&disk->state->inodes[number], 0);
        sim_blob_resize(&disk->state->inodes[number].blocks, 0);
    }

    file = sim_take(sizeof *file);
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
    disk->state->inodes[number].opens++;
    disk->open_files++;
    *out = &file->base;
    return DECANT_OK;
}

static decant_status sim_stat(dcn_dir *d, const char *text, dcn_facts *out, decant_error *err)
{
    name *found = sim_names_find(&folder_of(d)->now, text);
    bool is_tmp = disk_of(d->io)->is_tmp;

    if (strcmp(text, ".") == 0)
        *out = (dcn_facts){.dev = DEVICE + disk_of(d->io)->state->boots,
                           .ino = UINT64_MAX - ((sim_dir *)d)->folder,
                           .kind = DCN_KIND_FOLDER,
                           .mode = is_tmp ? 01777 : disk_of(d->io)->folder_mode,
                           .links = 2,
                           .ours = !is_tmp};
    else if (found)
        facts_of(disk_of(d->io), found->inode, out);
    else if (strcmp(d->path, ".") == 0 && sim_find_folder(disk_of(d->io)->state, text, strlen(text)))
        *out = (dcn_facts){.dev = 7, .ino = UINT64_MAX - 1, .kind = DCN_KIND_FOLDER, .mode = 0755, .links = 2};
    else
        return failed(DECANT_NOT_FOUND, ENOENT, err);
    return DECANT_OK;
}

static decant_status sim_readlink(dcn_dir *d, const char *text, char *out, size_t size, decant_error *err)
{
    name *found = sim_names_find(&folder_of(d)->now, text);
    const inode *i = found ? &disk_of(d->io)->state->inodes[found->inode] : NULL;

    if (!i)
        return failed(DECANT_NOT_FOUND, ENOENT, err);
    if (i->kind != DCN_KIND_LINK || i->data->len >= size)
        return failed(DECANT_UNSUPPORTED, EINVAL, err);
    snprintf(out, size, "%.*s", (int)i->data->len, (const char *)i->data->bytes);
    return DECANT_OK;
}

static decant_status sim_list(dcn_dir *d, int (*each)(void *ctx, const char *name), void *ctx, decant_error *err)
{
    names copy = sim_names_copy(&folder_of(d)->now); /* `each` may change the folder */

    (void)err;
    for (size_t i = 0; i < copy.count; i++)
        if (each(ctx, copy.items[i].text))
            break;
    sim_names_clear(&copy);
    return DECANT_OK;
}

static decant_status sim_rename(dcn_dir *d, const char *text, const char *to, unsigned flags, decant_error *err)
{
    simdisk *disk = disk_of(d->io);
    folder *f = folder_of(d);
    name *found = sim_names_find(&f->now, text), *old = sim_names_find(&f->now, to);
    change *c;
    size_t number;

    if (flags & DCN_NO_REPLACE && lacks(disk, DCN_DO_RENAME))
        return failed(DECANT_UNSUPPORTED, EINVAL, err);
    if (!found)
        return failed(DECANT_NOT_FOUND, ENOENT, err);
    number = found->inode;
    if (old && flags & DCN_NO_REPLACE)
        return failed(DECANT_EXISTS, EEXIST, err);
    if (old && disk->state->inodes[old->inode].kind == DCN_KIND_FOLDER)
        return failed(DECANT_DENIED, EISDIR, err);
    if (old && old->inode == number)
        return DECANT_OK; /* two names of one file: POSIX leaves both */
    if (old)
        disk->state->inodes[old->inode].links--;
    sim_names_set(&f->now, to, number);
    sim_names_drop(&f->now, text);
    c = sim_changes_add(&f->changes, SIMDISK_RENAME, 0);
    c->name = sim_copy_text(text);
    c->to = sim_copy_text(to);
    c->inode = number;
    return DECANT_OK;
}

static decant_status sim_link(dcn_dir *d, const char *text, const char *to, decant_error *err)
{
    folder *f = folder_of(d);
    name *found = sim_names_find(&f->now, text);
    change *c;
    size_t number;

    if (lacks(disk_of(d->io), DCN_DO_LINK))
        return failed(DECANT_UNSUPPORTED, EPERM, err);
    if (!found)
        return failed(DECANT_NOT_FOUND, ENOENT, err);
    if (sim_names_find(&f->now, to))
        return failed(DECANT_EXISTS, EEXIST, err);
    number = found->inode;
    sim_names_set(&f->now, to, number);
    disk_of(d->io)->state->inodes[number].links++;
    c = sim_changes_add(&f->changes, SIMDISK_ADD_NAME, 0);
    c->name = sim_copy_text(to);
    c->inode = number;
    return DECANT_OK;
}

static decant_status sim_remove(dcn_dir *d, const char *text, decant_error *err)
{
    simdisk_state *s = disk_of(d->io)->state;
    folder *f = folder_of(d);
    name *found = sim_names_find(&f->now, text);

    if (!found)
        return failed(DECANT_NOT_FOUND, ENOENT, err);
    if (s->inodes[found->inode].kind == DCN_KIND_FOLDER)
        return failed(DECANT_DENIED, EISDIR, err);
    s->inodes[found->inode].links--;
    sim_names_drop(&f->now, text);
    sim_changes_add(&f->changes, SIMDISK_DROP_NAME, 0)->name = sim_copy_text(text);
    return DECANT_OK;
}

static decant_status sim_sync_dir(dcn_dir *d, decant_error *err)
{
    folder *f = folder_of(d);

    if (lies(disk_of(d->io), &f->changes))
        return failed(DECANT_IO, EIO, err);
    if (wait_behind_lost(&f->changes))
        return DECANT_OK;
    sim_changes_clear(&f->changes);
    sim_names_clear(&f->safe);
    f->safe = sim_names_copy(&f->now);
    return DECANT_OK;
}

static decant_status sim_space(dcn_dir *d, dcn_space *out, decant_error *err)
{
    const simdisk *disk = disk_of(d->io);

    if (lacks(disk, DCN_DO_SPACE))
        return failed(DECANT_UNSUPPORTED, ENOSYS, err);
    *out = (dcn_space){.free = disk->capacity == UINT64_MAX ? UINT64_MAX : sim_free_room(disk),
                       .block = disk->block,
                       .limit = disk->limit,
                       .shares = !lacks(disk, DCN_DO_CLONE)};
    return DECANT_OK;
}

static void sim_close_dir(dcn_dir *d)
{
    disk_of(d->io)->open_dirs--;
    free((void *)(uintptr_t)d->path);
    free(d);
}

static const dcn_dir_ops dir_ops = {
    .open = sim_open,
    .stat = sim_stat,
    .readlink = sim_readlink,
    .list = sim_list,
    .rename = sim_rename,
    .link = sim_link,
    .remove = sim_remove,
    .sync = sim_sync_dir,
    .space = sim_space,
    .close = sim_close_dir,
};

static decant_status sim_open_dir(dcn_io *io, const char *path, dcn_dir **out, decant_error *err)
{
    simdisk *disk = disk_of(io);
    size_t len = strlen(path);
    folder *f = sim_find_folder(disk->state, path, len > 1 && path[len - 1] == '/' ? len - 1 : len);
    sim_dir *d;

    if (!f)
        return failed(DECANT_NOT_FOUND, ENOENT, err);
    d = sim_take(sizeof *d);
    d->base = (dcn_dir){.ops = &dir_ops, .io = io, .path = sim_copy_text(path)};
    d->folder = (size_t)(f - disk->state->folders);
    disk->open_dirs++;
    *out = &d->base;
    return DECANT_OK;
}

static decant_status sim_random(dcn_io *io, void *dst, size_t len, decant_error *err)
{
    (void)err;
    test_stream(test_random(&disk_of(io)->seed), dst, len);
    return DECANT_OK;
}

static decant_status sim_who(dcn_io *io, dcn_self *out, decant_error *err)
{
    (void)err;
    *out = (dcn_self){.boot = {1, (uint8_t)disk_of(io)->state->boots}, .process = 1};
    return DECANT_OK;
}

static const dcn_io_ops io_ops = {.open_dir = sim_open_dir, .random = sim_random, .who = sim_who};

/* --- the disk as a whole ------------------------------------------------------------------------------------------ */

simdisk *simdisk_new(void)
{
    simdisk *disk = sim_take(sizeof *disk);

    *disk = (simdisk){
        .io = {.ops = &io_ops}, .folder_mode = 0755, .capacity = UINT64_MAX, .block = SIM_SECTOR, .limit = UINT64_MAX};
    disk->state = sim_take(sizeof *disk->state);
    disk->state->clock = INT64_C(1700000000000000000);
    simdisk_folder(disk, ".");
    return disk;
}

void simdisk_free(simdisk **disk)
{
    simdisk_state *s;

    if (!*disk)
        return;
    CHECK_EQ((*disk)->open_files, 0);
    CHECK_EQ((*disk)->open_dirs, 0);
    s = (*disk)->state;
    for (size_t i = 0; i < s->inode_count; i++)
        sim_inode_clear(&s->inodes[i]);
    for (size_t i = 0; i < s->folder_count; i++) {
        free(s->folders[i].path);
        sim_names_clear(&s->folders[i].now);
        sim_names_clear(&s->folders[i].safe);
        sim_changes_clear(&s->folders[i].changes);
    }
    free(s->inodes);
    free(s->folders);
    free(s->listing);
    free(s);
    free(*disk);
    *disk = NULL;
}

static changes changes_copy(const changes *list)
{
    changes copy = {.items = sim_take(list->count * sizeof *copy.items), .count = list->count, .cap = list->count};

    for (size_t i = 0; i < list->count; i++) {
        copy.items[i] = list->items[i];
        copy.items[i].change->refs++;
    }
    return copy;
}

simdisk *simdisk_clone(const simdisk *disk)
{
    simdisk *copy = sim_take(sizeof *copy);
    simdisk_state *s = sim_take(sizeof *s);

    *copy = *disk;
    copy->io.gate = NULL;
    copy->open_files = copy->open_dirs = 0;
    copy->state = s;
    *s = *disk->state;
    s->listing = NULL;
    s->inode_cap = s->inode_count;
    s->folder_cap = s->folder_count;
    s->inodes = sim_take(s->inode_count * sizeof *s->inodes);
    s->folders = sim_take(s->folder_count * sizeof *s->folders);
    for (size_t i = 0; i < s->inode_count; i++) {
        const inode *from = &disk->state->inodes[i];

        s->inodes[i] = *from;
        s->inodes[i].opens = 0;
        s->inodes[i].locked = false;
        sim_blob_ref(from->data);
        sim_blob_ref(from->safe_data);
        sim_blob_ref(from->blocks);
        s->inodes[i].changes = changes_copy(&from->changes);
    }
    for (size_t i = 0; i < s->folder_count; i++) {
        const folder *from = &disk->state->folders[i];

        s->folders[i] = (folder){.path = sim_copy_text(from->path),
                                 .now = sim_names_copy(&from->now),
                                 .safe = sim_names_copy(&from->safe),
                                 .changes = changes_copy(&from->changes)};
    }
    return copy;
}

void simdisk_folder(simdisk *disk, const char *path)
{
    simdisk_state *s = disk->state;

    if (sim_find_folder(s, path, strlen(path)))
        return;
    s->folders = sim_grow(s->folders, s->folder_count, &s->folder_cap, sizeof *s->folders);
    s->folders[s->folder_count++] = (folder){.path = sim_copy_text(path)};
}

static inode *wanted(const simdisk *disk, const char *path)
{
    inode *i = sim_inode_at(disk->state, path);

    if (!i)
        test_fail(__FILE__, __LINE__, "%s is not there", path);
    return i;
}

void simdisk_make(simdisk *disk, const char *path, dcn_kind kind, const char *target)
{
    const char *last, *slash = strrchr(path, '/');
    char *parent = slash ? sim_copy_text(path) : sim_copy_text(".");
    size_t number = sim_inode_new(disk->state, kind, 0644);
    inode *i = &disk->state->inodes[number];
    folder *f;

    if (slash)
        parent[slash - path] = '\0';
    simdisk_folder(disk, parent);
    free(parent);
    f = sim_folder_at(disk->state, path, &last);
    sim_names_set(&f->now, last, number);
    sim_names_set(&f->safe, last, number);
    i->links = 1;
    if (target)
        sim_blob_write(&i->data, 0, target, strlen(target));
    i->safe_data = sim_blob_ref(i->data);
}

void simdisk_put(simdisk *disk, const char *path, const void *data, size_t len)
{
    inode *i;

    if (!sim_inode_at(disk->state, path))
        simdisk_make(disk, path, DCN_KIND_REGULAR, NULL);
    i = wanted(disk, path);
    sim_inode_clear(i);
    sim_blob_write(&i->data, 0, data, len);
    i->safe_data = sim_blob_ref(i->data);
    if (!sim_allocate(disk, i, 0, len))
        test_fail(__FILE__, __LINE__, "no room for %s", path);
    i->mtime = ++disk->state->clock;
}

void simdisk_put_text(simdisk *disk, const char *path, const char *text)
{
    simdisk_put(disk, path, text, strlen(text));
}

void simdisk_mode(simdisk *disk, const char *path, uint32_t mode)
{
    inode *i = wanted(disk, path);

    i->now.mode = i->safe.mode = mode;
}

void simdisk_give_away(simdisk *disk, const char *path)
{
    inode *i = wanted(disk, path);

    i->now.uid = i->safe.uid = SIM_USER + 1;
}

void simdisk_hold(simdisk *disk, const char *path, bool held)
{
    wanted(disk, path)->held = held;
}

void simdisk_touch(simdisk *disk, const char *path)
{
    wanted(disk, path)->mtime = ++disk->state->clock;
}

const uint8_t *simdisk_get(const simdisk *disk, const char *path, size_t *len)
{
    const inode *i = sim_inode_at(disk->state, path);

    if (!i)
        return NULL;
    *len = sim_blob_len(i->data);
    return *len ? i->data->bytes : (const uint8_t *)"";
}

uint32_t simdisk_mode_of(const simdisk *disk, const char *path)
{
    return wanted(disk, path)->now.mode;
}

size_t simdisk_file_count(const simdisk *disk)
{
    size_t count = 0;

    for (size_t i = 0; i < disk->state->folder_count; i++)
        count += disk->state->folders[i].now.count;
    return count;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(((const name *)a)->text, ((const name *)b)->text);
}

const char *simdisk_names(simdisk *disk, const char *path)
{
    simdisk_state *s = disk->state;
    folder *f = sim_find_folder(s, path, strlen(path));
    size_t len = 1;

    if (!f)
        test_fail(__FILE__, __LINE__, "no folder %s", path);
    names sorted = sim_names_copy(&f->now);
    qsort(sorted.items, sorted.count, sizeof *sorted.items, by_text);
    for (size_t i = 0; i < sorted.count; i++)
        len += strlen(sorted.items[i].text) + 1;
    free(s->listing);
    s->listing = sim_take(len);
    for (size_t i = 0; i < sorted.count; i++) {
        strcat(s->listing, i ? " " : "");
        strcat(s->listing, sorted.items[i].text);
    }
    sim_names_clear(&sorted);
    return s->listing;
}
