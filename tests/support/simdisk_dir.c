#include "simdisk_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { UMASK = 022 };

typedef struct sim_dir {
    dcn_dir base;
    size_t folder;
} sim_dir;

static simdisk *disk_of(dcn_io *io)
{
    return (simdisk *)io;
}

static folder *folder_of(dcn_dir *d)
{
    return &disk_of(d->io)->state->folders[((sim_dir *)d)->folder];
}

/* Where the links at a name end (at a bare name, there or not); false if they never do. */
static bool follow(const simdisk_state *s, const folder *f, const char *text, char last[256])
{
    snprintf(last, 256, "%s", text);
    for (int hops = 0; hops < 40; hops++) {
        const name *found = sim_names_find(&f->now, last);

        if (!found || s->inodes[found->inode].kind != DCN_KIND_LINK)
            return true;
        const blob *b = s->inodes[found->inode].now.data;
        snprintf(last, 256, "%.*s", (int)b->len, (const char *)b->bytes);
    }
    return false;
}

static decant_status open_nameless(dcn_dir *d, unsigned flags, uint32_t mode, dcn_file **out, decant_error *err)
{
    simdisk *disk = disk_of(d->io);
    size_t number;

    if (sim_lacks(disk, DCN_DO_OPEN))
        return sim_failed(DECANT_UNSUPPORTED, EOPNOTSUPP, err);
    number = sim_inode_new(disk->state, DCN_KIND_REGULAR, mode & ~(uint32_t)UMASK, folder_of(d)->system);
    disk->state->inodes[number].nameless = true;
    *out = sim_file_new(d, "", number, flags);
    return DECANT_OK;
}

static decant_status sim_open(dcn_dir *d, const char *text, unsigned flags, uint32_t mode, dcn_file **out,
                              decant_error *err)
{
    simdisk *disk = disk_of(d->io);
    folder *f = folder_of(d);
    name *there = sim_names_find(&f->now, text), *found;
    char last[256];
    size_t number;

    if (flags & DCN_NAMELESS)
        return open_nameless(d, flags, mode, out, err);
    if (strlen(text) > 255)
        return sim_failed(DECANT_BAD_CALL, ENAMETOOLONG, err);
    if (there && flags & DCN_CREATE_NEW)
        return sim_failed(DECANT_EXISTS, EEXIST, err);
    if (there && flags & DCN_NO_FOLLOW && disk->state->inodes[there->inode].kind == DCN_KIND_LINK)
        return sim_failed(DECANT_DENIED, ELOOP, err);
    if (!follow(disk->state, f, text, last))
        return sim_failed(DECANT_DENIED, ELOOP, err);
    found = sim_names_find(&f->now, last);
    if (!found && !(flags & (DCN_CREATE | DCN_CREATE_NEW)))
        return sim_failed(DECANT_NOT_FOUND, ENOENT, err);
    if (found && flags & DCN_WRITE && disk->state->inodes[found->inode].kind == DCN_KIND_FOLDER)
        return sim_failed(DECANT_DENIED, EISDIR, err);
    if (found && flags & DCN_WRITE && disk->state->inodes[found->inode].fixed)
        return sim_failed(DECANT_DENIED, EPERM, err);

    if (found) {
        number = found->inode;
    } else {
        change *c = sim_changes_add(&f->changes, SIMDISK_ADD_NAME, 0);

        number = sim_inode_new(disk->state, DCN_KIND_REGULAR, mode & ~(uint32_t)UMASK, f->system);
        sim_names_set(&f->now, last, number);
        disk->state->inodes[number].links = 1;
        c->name = sim_copy_text(last);
        c->inode = number;
    }
    if (flags & DCN_TRUNCATE && sim_blob_len(disk->state->inodes[number].now.data))
        sim_set_size(disk, &disk->state->inodes[number], 0);
    *out = sim_file_new(d, text, number, flags);
    return DECANT_OK;
}

static decant_status sim_stat(dcn_dir *d, const char *text, dcn_facts *out, decant_error *err)
{
    name *found = sim_names_find(&folder_of(d)->now, text);
    const folder *below = strcmp(d->path, ".") == 0 ? sim_find_folder(disk_of(d->io)->state, text, strlen(text)) : NULL;
    bool is_tmp = disk_of(d->io)->is_tmp;

    if (strcmp(text, ".") == 0)
        *out = (dcn_facts){.dev = sim_device(disk_of(d->io), folder_of(d)->system),
                           .ino = UINT64_MAX - ((sim_dir *)d)->folder,
                           .kind = DCN_KIND_FOLDER,
                           .mode = is_tmp ? 01777 : disk_of(d->io)->folder_mode,
                           .links = 2,
                           .ours = !is_tmp};
    else if (found)
        sim_facts_of(disk_of(d->io), found->inode, out);
    else if (below)
        *out = (dcn_facts){.dev = sim_device(disk_of(d->io), below->system),
                           .ino = UINT64_MAX - (uint64_t)(below - disk_of(d->io)->state->folders),
                           .kind = DCN_KIND_FOLDER,
                           .mode = 0755,
                           .links = 2};
    else
        return sim_failed(DECANT_NOT_FOUND, ENOENT, err);
    return DECANT_OK;
}

static decant_status sim_readlink(dcn_dir *d, const char *text, char *out, size_t size, decant_error *err)
{
    name *found = sim_names_find(&folder_of(d)->now, text);
    const inode *i = found ? &disk_of(d->io)->state->inodes[found->inode] : NULL;

    if (!i)
        return sim_failed(DECANT_NOT_FOUND, ENOENT, err);
    if (i->kind != DCN_KIND_LINK || i->now.data->len >= size)
        return sim_failed(DECANT_UNSUPPORTED, EINVAL, err);
    snprintf(out, size, "%.*s", (int)i->now.data->len, (const char *)i->now.data->bytes);
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

    if (flags & DCN_NO_REPLACE && sim_lacks(disk, DCN_DO_RENAME))
        return sim_failed(DECANT_UNSUPPORTED, EINVAL, err);
    if (!found)
        return sim_failed(DECANT_NOT_FOUND, ENOENT, err);
    number = found->inode;
    if (old && flags & DCN_NO_REPLACE)
        return sim_failed(DECANT_EXISTS, EEXIST, err);
    if (old && disk->state->inodes[old->inode].kind == DCN_KIND_FOLDER)
        return sim_failed(DECANT_DENIED, EISDIR, err);
    if (disk->state->inodes[number].fixed || (old && disk->state->inodes[old->inode].fixed))
        return sim_failed(DECANT_DENIED, EPERM, err);
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

    if (sim_lacks(disk_of(d->io), DCN_DO_LINK))
        return sim_failed(DECANT_UNSUPPORTED, EPERM, err);
    if (!found)
        return sim_failed(DECANT_NOT_FOUND, ENOENT, err);
    if (sim_names_find(&f->now, to))
        return sim_failed(DECANT_EXISTS, EEXIST, err);
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
        return sim_failed(DECANT_NOT_FOUND, ENOENT, err);
    if (s->inodes[found->inode].kind == DCN_KIND_FOLDER)
        return sim_failed(DECANT_DENIED, EISDIR, err);
    if (s->inodes[found->inode].fixed)
        return sim_failed(DECANT_DENIED, EPERM, err);
    s->inodes[found->inode].links--;
    sim_names_drop(&f->now, text);
    sim_changes_add(&f->changes, SIMDISK_DROP_NAME, 0)->name = sim_copy_text(text);
    return DECANT_OK;
}

static decant_status sim_sync_dir(dcn_dir *d, decant_error *err)
{
    folder *f = folder_of(d);

    if (sim_lies(disk_of(d->io), &f->changes))
        return sim_failed(DECANT_IO, EIO, err);
    if (sim_wait_behind_lost(&f->changes))
        return DECANT_OK;
    sim_changes_clear(&f->changes);
    sim_names_clear(&f->safe);
    f->safe = sim_names_copy(&f->now);
    return DECANT_OK;
}

static decant_status sim_space(dcn_dir *d, dcn_space *out, decant_error *err)
{
    const simdisk *disk = disk_of(d->io);

    if (sim_lacks(disk, DCN_DO_SPACE))
        return sim_failed(DECANT_UNSUPPORTED, ENOSYS, err);
    *out = (dcn_space){
        .free = disk->capacity == UINT64_MAX || folder_of(d)->system ? UINT64_MAX : sim_free_room(disk),
        .block = disk->block,
        .unit = sim_unit(disk),
        .limit = disk->limit,
        .files = UINT64_MAX,
        .shares = !sim_lacks(disk, DCN_DO_CLONE),
        .punches = !sim_lacks(disk, DCN_DO_PUNCH),
        .lasts = DCN_LASTS_POWER,
    };
    return DECANT_OK;
}

static decant_status sim_where(dcn_dir *d, char *out, size_t size, decant_error *err)
{
    const char *path = folder_of(d)->path;

    if (sim_lacks(disk_of(d->io), DCN_DO_WHERE))
        return sim_failed(DECANT_UNSUPPORTED, ENOENT, err);
    if (strlen(path) + 2 > size)
        return sim_failed(DECANT_UNSUPPORTED, ENAMETOOLONG, err);
    sprintf(out, "/%s", strcmp(path, ".") == 0 ? "" : path);
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
    .where = sim_where,
    .close = sim_close_dir,
};

static decant_status sim_open_dir(dcn_io *io, const char *path, dcn_dir **out, decant_error *err)
{
    simdisk *disk = disk_of(io);
    size_t len = strlen(path);
    folder *f = sim_find_folder(disk->state, path, len > 1 && path[len - 1] == '/' ? len - 1 : len);
    sim_dir *d;

    if (!f)
        return sim_failed(DECANT_NOT_FOUND, ENOENT, err);
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

const dcn_io_ops sim_io_ops = {.open_dir = sim_open_dir, .random = sim_random, .who = sim_who};
