#include "simdisk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/ckd.h"

enum { SECTOR = 512, UMASK = 022 };

/* --- memory ------------------------------------------------------------------------------------------------------ */

static void *take(size_t size)
{
    void *memory = calloc(1, size ? size : 1);

    if (!memory)
        abort();
    return memory;
}

static void *grow(void *old, size_t count, size_t *cap, size_t size)
{
    if (count < *cap)
        return old;
    *cap = *cap ? *cap * 2 : 8;
    old = realloc(old, *cap * size);
    if (!old)
        abort();
    return old;
}

static char *copy_text(const char *text)
{
    return text ? strcpy(take(strlen(text) + 1), text) : NULL;
}

/* Bytes that clones share until one of them changes them. */
typedef struct blob {
    size_t refs, len, cap;
    uint8_t bytes[];
} blob;

static blob *blob_ref(blob *b)
{
    if (b)
        b->refs++;
    return b;
}

static void blob_unref(blob **b)
{
    if (*b && --(*b)->refs == 0)
        free(*b);
    *b = NULL;
}

static size_t blob_len(const blob *b)
{
    return b ? b->len : 0;
}

/* Makes it `len` bytes, zeros added, and one's own. */
static void blob_resize(blob **b, size_t len)
{
    size_t old = blob_len(*b);

    if (!*b || (*b)->refs > 1 || len > (*b)->cap) {
        size_t cap = len > old ? len + len / 2 : len;
        blob *own = take(sizeof *own + cap);

        own->refs = 1;
        own->cap = cap;
        if (*b)
            memcpy(own->bytes, (*b)->bytes, old < len ? old : len);
        blob_unref(b);
        *b = own;
    } else if (len > old) {
        memset((*b)->bytes + old, 0, len - old);
    }
    (*b)->len = len;
}

static void blob_write(blob **b, size_t at, const void *data, size_t len)
{
    if (len == 0)
        return;
    blob_resize(b, at + len > blob_len(*b) ? at + len : blob_len(*b));
    memcpy((*b)->bytes + at, data, len);
}

/* --- state ------------------------------------------------------------------------------------------------------- */

typedef struct attributes {
    uint32_t mode, uid, gid;
} attributes;

/* A change, shared by clones. */
typedef struct change {
    size_t refs;
    simdisk_change what;
    uint64_t at;
    size_t len, inode;
    attributes attributes;
    char *name, *to;
    uint8_t data[];
} change;

typedef struct pending {
    change *change;
    bool safe; /* synced, but after a change that was lost: kept in order with it */
    bool lost; /* a failed sync was to make it safe: no other will (A5) */
} pending;

typedef struct changes {
    pending *items;
    size_t count, cap;
} changes;

typedef struct inode {
    dcn_kind kind;
    attributes now, safe;
    blob *data, *safe_data;
    blob *blocks; /* a byte for each: allocated */
    changes changes;
    int64_t birth, mtime;
    size_t links, opens;
    bool locked, held; /* by a handle; by another process */
} inode;

typedef struct name {
    char *text;
    size_t inode;
} name;

typedef struct names {
    name *items;
    size_t count, cap;
} names;

typedef struct folder {
    char *path;
    names now, safe;
    changes changes;
} folder;

struct simdisk_state {
    inode *inodes; /* never removed before a crash: the number is the identity */
    size_t inode_count, inode_cap;
    folder *folders;
    size_t folder_count, folder_cap;
    int64_t clock;
    char *listing;
};

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

static void change_unref(change *c)
{
    if (--c->refs == 0) {
        free(c->name);
        free(c->to);
        free(c);
    }
}

static change *changes_add(changes *list, simdisk_change what, size_t data_len)
{
    change *c = take(sizeof *c + data_len);

    *c = (change){.refs = 1, .what = what, .len = data_len};
    list->items = grow(list->items, list->count, &list->cap, sizeof *list->items);
    list->items[list->count++] = (pending){.change = c};
    return c;
}

static void changes_clear(changes *list)
{
    for (size_t i = 0; i < list->count; i++)
        change_unref(list->items[i].change);
    free(list->items);
    *list = (changes){0};
}

static name *names_find(const names *list, const char *text)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].text, text) == 0)
            return &list->items[i];
    return NULL;
}

static void names_set(names *list, const char *text, size_t number)
{
    name *found = names_find(list, text);

    if (found) {
        found->inode = number;
        return;
    }
    list->items = grow(list->items, list->count, &list->cap, sizeof *list->items);
    list->items[list->count++] = (name){.text = copy_text(text), .inode = number};
}

static void names_drop(names *list, const char *text)
{
    name *found = names_find(list, text);

    if (found) {
        free(found->text);
        *found = list->items[--list->count];
    }
}

static void names_clear(names *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i].text);
    free(list->items);
    *list = (names){0};
}

static names names_copy(const names *list)
{
    names copy = {.items = take(list->cap * sizeof *copy.items), .count = list->count, .cap = list->cap};

    for (size_t i = 0; i < list->count; i++)
        copy.items[i] = (name){.text = copy_text(list->items[i].text), .inode = list->items[i].inode};
    return copy;
}

static folder *find_folder(const simdisk_state *s, const char *path, size_t len)
{
    for (size_t i = 0; i < s->folder_count; i++)
        if (strlen(s->folders[i].path) == len && memcmp(s->folders[i].path, path, len) == 0)
            return &s->folders[i];
    return NULL;
}

/* Splits "folder/name"; NULL if there is no such folder. */
static folder *folder_at(const simdisk_state *s, const char *path, const char **last)
{
    const char *slash = strrchr(path, '/');

    *last = slash ? slash + 1 : path;
    return slash ? find_folder(s, path, (size_t)(slash - path)) : find_folder(s, ".", 1);
}

static inode *inode_at(const simdisk_state *s, const char *path)
{
    const char *last;
    folder *f = folder_at(s, path, &last);
    name *found = f ? names_find(&f->now, last) : NULL;

    return found ? &s->inodes[found->inode] : NULL;
}

static size_t inode_new(simdisk_state *s, dcn_kind kind, uint32_t mode)
{
    attributes a = {.mode = mode, .uid = 1000, .gid = 1000};

    s->inodes = grow(s->inodes, s->inode_count, &s->inode_cap, sizeof *s->inodes);
    s->clock++;
    s->inodes[s->inode_count] = (inode){.kind = kind, .now = a, .safe = a, .birth = s->clock, .mtime = s->clock};
    return s->inode_count++;
}

/* --- space ------------------------------------------------------------------------------------------------------- */

static size_t blocks_of(const simdisk *disk, uint64_t len)
{
    return (size_t)((len + disk->block - 1) / disk->block);
}

static size_t blocks_used(const inode *i)
{
    size_t used = 0;

    for (size_t k = 0; k < blob_len(i->blocks); k++)
        used += i->blocks->bytes[k];
    return used;
}

uint64_t simdisk_used(const simdisk *disk)
{
    uint64_t used = 0;

    for (size_t i = 0; i < disk->state->inode_count; i++)
        if (disk->state->inodes[i].links || disk->state->inodes[i].opens)
            used += blocks_used(&disk->state->inodes[i]);
    return used * disk->block;
}

static uint64_t free_room(const simdisk *disk)
{
    uint64_t used = simdisk_used(disk);

    return disk->capacity > used ? disk->capacity - used : 0;
}

/* Gives [at, at + len) blocks; false if there are too few, and then nothing has changed. */
static bool allocate(simdisk *disk, inode *i, uint64_t at, uint64_t len)
{
    size_t first = (size_t)(at / disk->block), end = blocks_of(disk, at + len), wanted = 0;

    for (size_t k = first; k < end; k++)
        wanted += k >= blob_len(i->blocks) || !i->blocks->bytes[k];
    if (wanted == 0)
        return true;
    if (disk->capacity != UINT64_MAX && wanted * disk->block > free_room(disk))
        return false;
    blob_resize(&i->blocks, end > blob_len(i->blocks) ? end : blob_len(i->blocks));
    memset(i->blocks->bytes + first, 1, end - first);
    return true;
}

/* --- what becomes safe -------------------------------------------------------------------------------------------- */

static void apply_to_inode(inode *i, const change *c, uint64_t sectors)
{
    switch (c->what) {
    case SIMDISK_WRITE:
        for (size_t done = 0; done < c->len;) {
            uint64_t at = c->at + done;
            size_t part = (size_t)dcn_min(c->len - done, SECTOR - at % SECTOR);

            if (sectors >> (at / SECTOR - c->at / SECTOR) % 64 & 1)
                blob_write(&i->safe_data, (size_t)at, c->data + done, part);
            done += part;
        }
        break;
    case SIMDISK_RESIZE:
        if (sectors & 1)
            blob_resize(&i->safe_data, (size_t)c->at);
        break;
    default:
        if (sectors & 1)
            i->safe = c->attributes;
        break;
    }
}

static void apply_to_folder(folder *f, const change *c, uint64_t bits)
{
    if (!(bits & 1))
        return;
    switch (c->what) {
    case SIMDISK_ADD_NAME:
        names_set(&f->safe, c->name, c->inode);
        break;
    case SIMDISK_DROP_NAME:
        names_drop(&f->safe, c->name);
        break;
    default:
        names_set(&f->safe, c->to, c->inode);
        if (bits & 2)
            names_drop(&f->safe, c->name);
        break;
    }
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
    size_t size = blob_len(i->data);

    if (((sim_file *)f)->flags & DCN_WRITE && !(((sim_file *)f)->flags & DCN_READ))
        return failed(DECANT_BAD_CALL, EBADF, err);
    if (i->kind == DCN_KIND_FOLDER)
        return failed(DECANT_DENIED, EISDIR, err);
    for (size_t k = 0; k < count; k++) {
        if (r[k].len && dcn_outside(r[k].at, r[k].len, size))
            return decant_error_set(err, DECANT_TRUNCATED, "file is too short");
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
    change *c = changes_add(&i->changes, SIMDISK_RESIZE, 0);

    c->at = len;
    blob_resize(&i->data, (size_t)len);
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
        if (!allocate(disk, i, at, c[k].len))
            return failed(DECANT_NO_SPACE, ENOSPC, err);
        if (at + c[k].len > blob_len(i->data))
            set_size(i, at + c[k].len);
        blob_write(&i->data, (size_t)at, c[k].data, c[k].len);
        change *w = changes_add(&i->changes, SIMDISK_WRITE, c[k].len);
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
    if (len < blob_len(i->data) && blocks_of(disk, len) < blob_len(i->blocks))
        blob_resize(&i->blocks, blocks_of(disk, len));
    if (len != blob_len(i->data))
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
    changes_clear(&i->changes);
    blob_unref(&i->safe_data);
    i->safe_data = blob_ref(i->data);
    i->safe = i->now;
    return DECANT_OK;
}

static void facts_of(const simdisk *disk, size_t number, dcn_facts *out)
{
    const inode *i = &disk->state->inodes[number];

    *out = (dcn_facts){
        .dev = 7,
        .ino = number + 1,
        .birth = i->birth,
        .mtime = i->mtime,
        .size = blob_len(i->data),
        .blocks = blocks_used(i) * disk->block,
        .links = i->links,
        .mode = i->now.mode,
        .uid = i->now.uid,
        .gid = i->now.gid,
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
    if (!allocate(disk_of(f->io), inode_of(f), at, len))
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
    changes_add(&i->changes, SIMDISK_ATTRIBUTES, 0)->attributes = i->now;
    return DECANT_OK;
}

static decant_status sim_push(dcn_file *f, uint64_t at, uint64_t len, decant_error *err)
{
    (void)at, (void)len;
    return lacks(disk_of(f->io), DCN_DO_PUSH) ? failed(DECANT_UNSUPPORTED, ENOSYS, err) : DECANT_OK;
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
    .push = sim_push,
};

/* Where the links at a name end (at a bare name, there or not); false if they never do. */
static bool follow(const simdisk_state *s, const folder *f, const char *text, char last[256])
{
    snprintf(last, 256, "%s", text);
    for (int hops = 0; hops < 40; hops++) {
        const name *found = names_find(&f->now, last);

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
    name *there = names_find(&f->now, text), *found;
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
    found = names_find(&f->now, last);
    if (!found && !(flags & (DCN_CREATE | DCN_CREATE_NEW)))
        return failed(DECANT_NOT_FOUND, ENOENT, err);
    if (found && flags & DCN_WRITE && disk->state->inodes[found->inode].kind == DCN_KIND_FOLDER)
        return failed(DECANT_DENIED, EISDIR, err);

    if (found) {
        number = found->inode;
    } else {
        change *c = changes_add(&f->changes, SIMDISK_ADD_NAME, 0);

        number = inode_new(disk->state, DCN_KIND_REGULAR, mode & ~(uint32_t)UMASK);
        names_set(&f->now, last, number);
        disk->state->inodes[number].links = 1;
        c->name = copy_text(last);
        c->inode = number;
    }
    if (flags & DCN_TRUNCATE && blob_len(disk->state->inodes[number].data)) {
        set_size(&disk->state->inodes[number], 0);
        blob_resize(&disk->state->inodes[number].blocks, 0);
    }

    file = take(sizeof *file);
    file->base = (dcn_file){.ops = &file_ops, .io = d->io};
    if (strcmp(d->path, ".") == 0) {
        file->base.path = copy_text(text);
    } else {
        char *path = take(strlen(d->path) + strlen(text) + 2);

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
    name *found = names_find(&folder_of(d)->now, text);

    if (strcmp(text, ".") == 0)
        *out = (dcn_facts){.kind = DCN_KIND_FOLDER, .mode = 0755, .links = 2};
    else if (found)
        facts_of(disk_of(d->io), found->inode, out);
    else
        return failed(DECANT_NOT_FOUND, ENOENT, err);
    return DECANT_OK;
}

static decant_status sim_list(dcn_dir *d, int (*each)(void *ctx, const char *name), void *ctx, decant_error *err)
{
    names copy = names_copy(&folder_of(d)->now); /* `each` may change the folder */

    (void)err;
    for (size_t i = 0; i < copy.count; i++)
        if (each(ctx, copy.items[i].text))
            break;
    names_clear(&copy);
    return DECANT_OK;
}

static decant_status sim_rename(dcn_dir *d, const char *text, const char *to, unsigned flags, decant_error *err)
{
    simdisk *disk = disk_of(d->io);
    folder *f = folder_of(d);
    name *found = names_find(&f->now, text), *old = names_find(&f->now, to);
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
    names_set(&f->now, to, number);
    names_drop(&f->now, text);
    c = changes_add(&f->changes, SIMDISK_RENAME, 0);
    c->name = copy_text(text);
    c->to = copy_text(to);
    c->inode = number;
    return DECANT_OK;
}

static decant_status sim_link(dcn_dir *d, const char *text, const char *to, decant_error *err)
{
    folder *f = folder_of(d);
    name *found = names_find(&f->now, text);
    change *c;
    size_t number;

    if (lacks(disk_of(d->io), DCN_DO_LINK))
        return failed(DECANT_UNSUPPORTED, EPERM, err);
    if (!found)
        return failed(DECANT_NOT_FOUND, ENOENT, err);
    if (names_find(&f->now, to))
        return failed(DECANT_EXISTS, EEXIST, err);
    number = found->inode;
    names_set(&f->now, to, number);
    disk_of(d->io)->state->inodes[number].links++;
    c = changes_add(&f->changes, SIMDISK_ADD_NAME, 0);
    c->name = copy_text(to);
    c->inode = number;
    return DECANT_OK;
}

static decant_status sim_remove(dcn_dir *d, const char *text, decant_error *err)
{
    simdisk_state *s = disk_of(d->io)->state;
    folder *f = folder_of(d);
    name *found = names_find(&f->now, text);

    if (!found)
        return failed(DECANT_NOT_FOUND, ENOENT, err);
    if (s->inodes[found->inode].kind == DCN_KIND_FOLDER)
        return failed(DECANT_DENIED, EISDIR, err);
    s->inodes[found->inode].links--;
    names_drop(&f->now, text);
    changes_add(&f->changes, SIMDISK_DROP_NAME, 0)->name = copy_text(text);
    return DECANT_OK;
}

static decant_status sim_sync_dir(dcn_dir *d, decant_error *err)
{
    folder *f = folder_of(d);

    if (lies(disk_of(d->io), &f->changes))
        return failed(DECANT_IO, EIO, err);
    if (wait_behind_lost(&f->changes))
        return DECANT_OK;
    changes_clear(&f->changes);
    names_clear(&f->safe);
    f->safe = names_copy(&f->now);
    return DECANT_OK;
}

static decant_status sim_space(dcn_dir *d, dcn_space *out, decant_error *err)
{
    const simdisk *disk = disk_of(d->io);

    if (lacks(disk, DCN_DO_SPACE))
        return failed(DECANT_UNSUPPORTED, ENOSYS, err);
    *out = (dcn_space){.free = disk->capacity == UINT64_MAX ? UINT64_MAX : free_room(disk),
                       .block = disk->block,
                       .limit = disk->limit};
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
    folder *f = find_folder(disk->state, path, strlen(path));
    sim_dir *d;

    if (!f)
        return failed(DECANT_NOT_FOUND, ENOENT, err);
    d = take(sizeof *d);
    d->base = (dcn_dir){.ops = &dir_ops, .io = io, .path = copy_text(path)};
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

static const dcn_io_ops io_ops = {.open_dir = sim_open_dir, .random = sim_random};

/* --- the disk as a whole ------------------------------------------------------------------------------------------ */

simdisk *simdisk_new(void)
{
    simdisk *disk = take(sizeof *disk);

    *disk = (simdisk){.io = {.ops = &io_ops}, .capacity = UINT64_MAX, .block = SECTOR, .limit = UINT64_MAX};
    disk->state = take(sizeof *disk->state);
    disk->state->clock = INT64_C(1700000000000000000);
    simdisk_folder(disk, ".");
    return disk;
}

static void inode_clear(inode *i)
{
    blob_unref(&i->data);
    blob_unref(&i->safe_data);
    blob_unref(&i->blocks);
    changes_clear(&i->changes);
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
        inode_clear(&s->inodes[i]);
    for (size_t i = 0; i < s->folder_count; i++) {
        free(s->folders[i].path);
        names_clear(&s->folders[i].now);
        names_clear(&s->folders[i].safe);
        changes_clear(&s->folders[i].changes);
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
    changes copy = {.items = take(list->count * sizeof *copy.items), .count = list->count, .cap = list->count};

    for (size_t i = 0; i < list->count; i++) {
        copy.items[i] = list->items[i];
        copy.items[i].change->refs++;
    }
    return copy;
}

simdisk *simdisk_clone(const simdisk *disk)
{
    simdisk *copy = take(sizeof *copy);
    simdisk_state *s = take(sizeof *s);

    *copy = *disk;
    copy->io.gate = NULL;
    copy->open_files = copy->open_dirs = 0;
    copy->state = s;
    *s = *disk->state;
    s->listing = NULL;
    s->inode_cap = s->inode_count;
    s->folder_cap = s->folder_count;
    s->inodes = take(s->inode_count * sizeof *s->inodes);
    s->folders = take(s->folder_count * sizeof *s->folders);
    for (size_t i = 0; i < s->inode_count; i++) {
        const inode *from = &disk->state->inodes[i];

        s->inodes[i] = *from;
        s->inodes[i].opens = 0;
        s->inodes[i].locked = false;
        blob_ref(from->data);
        blob_ref(from->safe_data);
        blob_ref(from->blocks);
        s->inodes[i].changes = changes_copy(&from->changes);
    }
    for (size_t i = 0; i < s->folder_count; i++) {
        const folder *from = &disk->state->folders[i];

        s->folders[i] = (folder){.path = copy_text(from->path),
                                 .now = names_copy(&from->now),
                                 .safe = names_copy(&from->safe),
                                 .changes = changes_copy(&from->changes)};
    }
    return copy;
}

void simdisk_folder(simdisk *disk, const char *path)
{
    simdisk_state *s = disk->state;

    if (find_folder(s, path, strlen(path)))
        return;
    s->folders = grow(s->folders, s->folder_count, &s->folder_cap, sizeof *s->folders);
    s->folders[s->folder_count++] = (folder){.path = copy_text(path)};
}

static inode *wanted(const simdisk *disk, const char *path)
{
    inode *i = inode_at(disk->state, path);

    if (!i)
        test_fail(__FILE__, __LINE__, "%s is not there", path);
    return i;
}

void simdisk_make(simdisk *disk, const char *path, dcn_kind kind, const char *target)
{
    const char *last, *slash = strrchr(path, '/');
    char *parent = slash ? copy_text(path) : copy_text(".");
    size_t number = inode_new(disk->state, kind, 0644);
    inode *i = &disk->state->inodes[number];
    folder *f;

    if (slash)
        parent[slash - path] = '\0';
    simdisk_folder(disk, parent);
    free(parent);
    f = folder_at(disk->state, path, &last);
    names_set(&f->now, last, number);
    names_set(&f->safe, last, number);
    i->links = 1;
    if (target)
        blob_write(&i->data, 0, target, strlen(target));
    i->safe_data = blob_ref(i->data);
}

void simdisk_put(simdisk *disk, const char *path, const void *data, size_t len)
{
    inode *i;

    if (!inode_at(disk->state, path))
        simdisk_make(disk, path, DCN_KIND_REGULAR, NULL);
    i = wanted(disk, path);
    inode_clear(i);
    blob_write(&i->data, 0, data, len);
    i->safe_data = blob_ref(i->data);
    if (!allocate(disk, i, 0, len))
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
    const inode *i = inode_at(disk->state, path);

    if (!i)
        return NULL;
    *len = blob_len(i->data);
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
    folder *f = find_folder(s, path, strlen(path));
    size_t len = 1;

    if (!f)
        test_fail(__FILE__, __LINE__, "no folder %s", path);
    names sorted = names_copy(&f->now);
    qsort(sorted.items, sorted.count, sizeof *sorted.items, by_text);
    for (size_t i = 0; i < sorted.count; i++)
        len += strlen(sorted.items[i].text) + 1;
    free(s->listing);
    s->listing = take(len);
    for (size_t i = 0; i < sorted.count; i++) {
        strcat(s->listing, i ? " " : "");
        strcat(s->listing, sorted.items[i].text);
    }
    names_clear(&sorted);
    return s->listing;
}

/* --- power cuts ---------------------------------------------------------------------------------------------------- */

/* What survives of the changes of a list; `index` runs through all that are open to choice. */
static uint64_t survives(const pending *p, size_t *index, uint64_t (*choose)(void *ctx, const simdisk_op *op),
                         void *ctx)
{
    const change *c = p->change;

    if (p->safe)
        return UINT64_MAX;
    return choose(ctx, &(simdisk_op){.change = c->what,
                                     .index = (*index)++,
                                     .name = c->name,
                                     .to = c->to,
                                     .at = c->what == SIMDISK_RESIZE ? 0 : c->at,
                                     .len = c->what == SIMDISK_RESIZE ? c->at : c->len});
}

void simdisk_crash(simdisk *disk, uint64_t (*choose)(void *ctx, const simdisk_op *op), void *ctx)
{
    simdisk_state *s = disk->state;
    size_t index = 0;

    CHECK_EQ(disk->open_files, 0);
    for (size_t k = 0; k < s->inode_count; k++) {
        inode *i = &s->inodes[k];

        for (size_t n = 0; n < i->changes.count; n++)
            apply_to_inode(i, i->changes.items[n].change, survives(&i->changes.items[n], &index, choose, ctx));
        changes_clear(&i->changes);
        blob_unref(&i->data);
        blob_unref(&i->blocks);
        i->data = blob_ref(i->safe_data);
        i->now = i->safe;
        i->links = 0;
        i->locked = i->held = false;
    }
    for (size_t k = 0; k < s->folder_count; k++) {
        folder *f = &s->folders[k];

        for (size_t n = 0; n < f->changes.count; n++)
            apply_to_folder(f, f->changes.items[n].change, survives(&f->changes.items[n], &index, choose, ctx));
        changes_clear(&f->changes);
        names_clear(&f->now);
        f->now = names_copy(&f->safe);
        for (size_t n = 0; n < f->now.count; n++)
            s->inodes[f->now.items[n].inode].links++;
    }
    for (size_t k = 0; k < s->inode_count; k++) { /* holes are not kept: the full size counts */
        inode *i = &s->inodes[k];

        if (!i->links)
            inode_clear(i);
        blob_resize(&i->blocks, blocks_of(disk, blob_len(i->data)));
        memset(i->blocks->bytes, 1, i->blocks->len);
    }
}

/* Changes that a crash may keep or lose, and a second time those that have two halves. */
static size_t count_pending(const simdisk *disk, bool halves)
{
    const simdisk_state *s = disk->state;
    size_t count = 0;

    for (size_t i = 0; i < s->inode_count; i++)
        for (size_t n = 0; n < s->inodes[i].changes.count; n++)
            count += !s->inodes[i].changes.items[n].safe;
    for (size_t i = 0; i < s->folder_count; i++)
        for (size_t n = 0; n < s->folders[i].changes.count; n++) {
            const pending *p = &s->folders[i].changes.items[n];

            count += p->safe ? 0 : halves && p->change->what == SIMDISK_RENAME ? 2 : 1;
        }
    return count;
}

size_t simdisk_pending(const simdisk *disk)
{
    return count_pending(disk, false);
}

enum { SUBSETS_UP_TO = 10, TORN_FEW = 16, TORN_MANY = 64 };

typedef struct variant {
    size_t n, units, unit; /* which way, of how many halves and wholes, and the next of them */
    uint64_t state;
} variant;

size_t simdisk_crash_count(const simdisk *disk)
{
    size_t units = count_pending(disk, true);

    return units == 0 ? 1 : units <= SUBSETS_UP_TO ? ((size_t)1 << units) + TORN_FEW : 2 + 2 * units + TORN_MANY;
}

/* Whether the next unit is kept, where nothing is torn; -1 where chance decides. */
static int kept(variant *v)
{
    size_t n = v->n, unit = v->unit++;

    if (v->units <= SUBSETS_UP_TO)
        return n < (size_t)1 << v->units ? (int)(n >> unit & 1) : -1;
    if (n < 2)
        return n == 1;
    n -= 2;
    return n < v->units ? unit == n : n < 2 * v->units ? unit != n - v->units : -1;
}

static uint64_t choose_variant(void *ctx, const simdisk_op *op)
{
    variant *v = ctx;
    int first = kept(v), second = op->change == SIMDISK_RENAME ? kept(v) : first;
    uint64_t random = test_random(&v->state);

    if (first < 0)
        return random % 3 == 0 ? 0 : random % 3 == 1 ? UINT64_MAX : test_random(&v->state);
    if (op->change == SIMDISK_RENAME)
        return (uint64_t)first | (uint64_t)second << 1;
    return first ? UINT64_MAX : 0;
}

void simdisk_crash_nth(simdisk *disk, size_t n, uint64_t seed)
{
    variant v = {.n = n, .units = count_pending(disk, true), .state = seed ^ n * UINT64_C(0x9E3779B97F4A7C15)};

    simdisk_crash(disk, choose_variant, &v);
}
