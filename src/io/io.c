#include "io/io.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

static decant_status before(const dcn_io *io, const dcn_call *call, decant_error *err)
{
    return io->gate ? io->gate->before(io->gate->ctx, call, err) : DECANT_OK;
}

static decant_status after(const dcn_io *io, const dcn_call *call, decant_status rc)
{
    if (io->gate && io->gate->after)
        io->gate->after(io->gate->ctx, call, rc);
    return rc;
}

static decant_status unsupported(decant_error *err)
{
    return decant_error_set(err, DECANT_UNSUPPORTED, "not possible here");
}

/* A failure of a call on a name in a folder. */
static decant_status in_dir(const dcn_dir *d, const char *name, decant_status rc, decant_error *err)
{
    bool is_folder = strcmp(name, ".") == 0;
    char *path = NULL;

    if (rc && err) {
        path = is_folder ? NULL : dcn_io_join(d->path, name);
        dcn_error_path(err, path ? path : is_folder ? d->path : name);
        dcn_free(&path);
    }
    return rc;
}

static decant_status at_path(const char *path, decant_status rc, decant_error *err)
{
    if (rc)
        dcn_error_path(err, path);
    return rc;
}

static inline bool is_bare(const char *name)
{
    return name[0] && !strchr(name, '/');
}

char *dcn_io_join(const char *folder, const char *name)
{
    size_t folder_len = strcmp(folder, ".") == 0 ? 0 : strlen(folder), name_len = strlen(name);
    size_t slash = folder_len && folder[folder_len - 1] != '/';
    char *path = dcn_alloc(folder_len + slash + name_len + 1, 1);

    if (path) {
        memcpy(path, folder, folder_len);
        memcpy(path + folder_len, "/", slash);
        memcpy(path + folder_len + slash, name, name_len);
    }
    return path;
}

decant_status dcn_io_split(dcn_io *io, const char *path, dcn_dir **dir, char **name, decant_error *err)
{
    const char *slash = strrchr(path, '/'), *last = slash ? slash + 1 : path;
    size_t folder_len = slash ? (size_t)(slash - path) : 0;
    char *folder = NULL, *copy = NULL;
    decant_status rc;

    if (!last[0] || strcmp(last, ".") == 0 || strcmp(last, "..") == 0) {
        rc = at_path(path,
                     decant_error_set(err, DECANT_BAD_CALL, "%s",
                                      path[0] ? "path does not end in the name of a file" : "the path is empty"),
                     err);
        dcn_error_hint(err, "name a file");
        goto done;
    }
    while (folder_len && path[folder_len - 1] == '/')
        folder_len--;
    folder = folder_len ? dcn_strndup(path, folder_len) : dcn_strndup(slash ? "/" : ".", 1);
    copy = dcn_strndup(last, strlen(last));
    if (!folder || !copy) {
        rc = dcn_error_nomem(err);
        goto done;
    }
    if ((rc = dcn_io_open_dir(io, folder, dir, err)))
        goto done;
    *name = copy;
    copy = NULL;
done:
    dcn_free(&copy);
    dcn_free(&folder);
    return rc;
}

decant_status dcn_io_open(dcn_io *io, const char *path, unsigned flags, dcn_file **out, decant_error *err)
{
    dcn_dir *dir = NULL;
    char *name = NULL;
    decant_status rc;

    if ((rc = dcn_io_split(io, path, &dir, &name, err)))
        goto done;
    rc = dcn_dir_open(dir, name, flags, 0666, out, err);
done:
    dcn_free(&name);
    dcn_dir_close(&dir);
    return rc;
}

decant_status dcn_io_open_dir(dcn_io *io, const char *path, dcn_dir **out, decant_error *err)
{
    const dcn_call call = {.verb = DCN_DO_OPEN_DIR, .name = path};
    decant_status rc = before(io, &call, err);

    if (!rc)
        rc = after(io, &call, io->ops->open_dir(io, path, out, err));
    return at_path(path, rc, err);
}

decant_status dcn_io_random(dcn_io *io, void *dst, size_t len, decant_error *err)
{
    const dcn_call call = {.verb = DCN_DO_RANDOM, .len = len};
    decant_status rc = before(io, &call, err);

    return rc ? rc : after(io, &call, io->ops->random(io, dst, len, err));
}

decant_status dcn_io_who(dcn_io *io, dcn_self *out, decant_error *err)
{
    const dcn_call call = {.verb = DCN_DO_WHO};
    decant_status rc = before(io, &call, err);

    return rc ? rc : after(io, &call, io->ops->who(io, out, err));
}

decant_status dcn_dir_open(dcn_dir *d, const char *name, unsigned flags, uint32_t mode, dcn_file **out,
                           decant_error *err)
{
    const dcn_call call = {.verb = DCN_DO_OPEN, .name = name, .flags = flags};
    decant_status rc = before(d->io, &call, err);

    assert(flags & DCN_NAMELESS ? !name[0] : is_bare(name));
    if (!rc)
        rc = after(d->io, &call, d->ops->open(d, name, flags, mode, out, err));
    return name[0] ? in_dir(d, name, rc, err) : at_path(d->path, rc, err);
}

decant_status dcn_dir_stat(dcn_dir *d, const char *name, dcn_facts *out, decant_error *err)
{
    const dcn_call call = {.verb = DCN_DO_STAT, .name = name};
    decant_status rc = before(d->io, &call, err);

    assert(is_bare(name));
    if (!rc)
        rc = after(d->io, &call, d->ops->stat(d, name, out, err));
    return in_dir(d, name, rc, err);
}

decant_status dcn_dir_readlink(dcn_dir *d, const char *name, char *out, size_t size, decant_error *err)
{
    const dcn_call call = {.verb = DCN_DO_READLINK, .name = name};
    decant_status rc = before(d->io, &call, err);

    assert(is_bare(name));
    if (!rc)
        rc = after(d->io, &call, d->ops->readlink(d, name, out, size, err));
    return in_dir(d, name, rc, err);
}

decant_status dcn_dir_list(dcn_dir *d, int (*found)(void *ctx, const char *name), void *ctx, decant_error *err)
{
    const dcn_call call = {.verb = DCN_DO_LIST, .name = d->path};
    decant_status rc = before(d->io, &call, err);

    if (!rc)
        rc = after(d->io, &call, d->ops->list(d, found, ctx, err));
    return at_path(d->path, rc, err);
}

decant_status dcn_dir_rename(dcn_dir *d, const char *name, const char *to, unsigned flags, decant_error *err)
{
    const dcn_call call = {.verb = DCN_DO_RENAME, .name = name, .to = to, .flags = flags};
    decant_status rc = before(d->io, &call, err);

    assert(is_bare(name) && is_bare(to));
    if (!rc)
        rc = after(d->io, &call, d->ops->rename(d, name, to, flags, err));
    return in_dir(d, to, rc, err);
}

decant_status dcn_dir_link(dcn_dir *d, const char *name, const char *to, decant_error *err)
{
    const dcn_call call = {.verb = DCN_DO_LINK, .name = name, .to = to};
    decant_status rc = before(d->io, &call, err);

    assert(is_bare(name) && is_bare(to));
    if (!rc)
        rc = after(d->io, &call, d->ops->link ? d->ops->link(d, name, to, err) : unsupported(err));
    return in_dir(d, to, rc, err);
}

decant_status dcn_dir_remove(dcn_dir *d, const char *name, decant_error *err)
{
    const dcn_call call = {.verb = DCN_DO_REMOVE, .name = name};
    decant_status rc = before(d->io, &call, err);

    assert(is_bare(name));
    if (!rc)
        rc = after(d->io, &call, d->ops->remove(d, name, err));
    return in_dir(d, name, rc, err);
}

void dcn_dir_discard(dcn_dir *d, const char *name)
{
    dcn_dir_remove(d, name, NULL);
}

decant_status dcn_dir_sync(dcn_dir *d, decant_error *err)
{
    const dcn_call call = {.verb = DCN_DO_SYNC_DIR, .name = d->path};
    decant_status rc = before(d->io, &call, err);

    if (!rc)
        rc = after(d->io, &call, d->ops->sync(d, err));
    return at_path(d->path, rc, err);
}

decant_status dcn_dir_space(dcn_dir *d, dcn_space *out, decant_error *err)
{
    const dcn_call call = {.verb = DCN_DO_SPACE, .name = d->path};
    decant_status rc = before(d->io, &call, err);

    if (!rc)
        rc = after(d->io, &call, d->ops->space(d, out, err));
    return at_path(d->path, rc, err);
}

decant_status dcn_dir_where(dcn_dir *d, char *out, size_t size, decant_error *err)
{
    const dcn_call call = {.verb = DCN_DO_WHERE, .name = d->path};
    decant_status rc = before(d->io, &call, err);

    if (!rc)
        rc = after(d->io, &call, d->ops->where ? d->ops->where(d, out, size, err) : unsupported(err));
    return at_path(d->path, rc, err);
}

void dcn_dir_close(dcn_dir **d)
{
    if (d && *d) {
        (*d)->ops->close(*d);
        *d = NULL;
    }
}

decant_status dcn_file_read(dcn_file *f, const dcn_range *r, size_t count, decant_error *err)
{
    dcn_call call = {.verb = DCN_DO_READ, .name = f->name, .at = count ? r->at : 0};
    decant_status rc;

    for (size_t i = 0; i < count; i++)
        call.len += r[i].len;
    rc = before(f->io, &call, err);
    if (!rc)
        rc = after(f->io, &call, f->ops->read(f, r, count, err));
    return at_path(f->path, rc, err);
}

decant_status dcn_file_write(dcn_file *f, uint64_t at, const dcn_chunk *c, size_t count, decant_error *err)
{
    dcn_call call = {.verb = DCN_DO_WRITE, .name = f->name, .at = at};
    decant_status rc;

    for (size_t i = 0; i < count; i++)
        call.len += c[i].len;
    rc = before(f->io, &call, err);
    if (!rc)
        rc = after(f->io, &call, f->ops->write(f, at, c, count, err));
    return at_path(f->path, rc, err);
}

decant_status dcn_file_resize(dcn_file *f, uint64_t len, decant_error *err)
{
    const dcn_call call = {.verb = DCN_DO_RESIZE, .name = f->name, .len = len};
    decant_status rc = before(f->io, &call, err);

    if (!rc)
        rc = after(f->io, &call, f->ops->resize(f, len, err));
    return at_path(f->path, rc, err);
}

decant_status dcn_file_sync(dcn_file *f, decant_error *err)
{
    const dcn_call call = {.verb = DCN_DO_SYNC, .name = f->name};
    decant_status rc = before(f->io, &call, err);

    if (!rc)
        rc = after(f->io, &call, f->ops->sync(f, err));
    return at_path(f->path, rc, err);
}

decant_status dcn_file_facts(dcn_file *f, dcn_facts *out, decant_error *err)
{
    const dcn_call call = {.verb = DCN_DO_FACTS, .name = f->name};
    decant_status rc = before(f->io, &call, err);

    if (!rc)
        rc = after(f->io, &call, f->ops->facts(f, out, err));
    return at_path(f->path, rc, err);
}

decant_status dcn_file_reserve(dcn_file *f, uint64_t at, uint64_t len, decant_error *err)
{
    const dcn_call call = {.verb = DCN_DO_RESERVE, .name = f->name, .at = at, .len = len};
    decant_status rc = before(f->io, &call, err);

    if (!rc)
        rc = after(f->io, &call, f->ops->reserve ? f->ops->reserve(f, at, len, err) : unsupported(err));
    return at_path(f->path, rc, err);
}

decant_status dcn_file_lock(dcn_file *f, decant_error *err)
{
    const dcn_call call = {.verb = DCN_DO_LOCK, .name = f->name};
    decant_status rc = before(f->io, &call, err);

    if (!rc)
        rc = after(f->io, &call, f->ops->lock ? f->ops->lock(f, err) : unsupported(err));
    return at_path(f->path, rc, err);
}

decant_status dcn_file_resemble(dcn_file *f, dcn_file *old, decant_error *err)
{
    const dcn_call call = {.verb = DCN_DO_RESEMBLE, .name = f->name};
    decant_status rc = before(f->io, &call, err);

    if (!rc)
        rc = after(f->io, &call, f->ops->resemble ? f->ops->resemble(f, old, err) : unsupported(err));
    return at_path(f->path, rc, err);
}

decant_status dcn_file_copy(dcn_file *f, uint64_t at, dcn_file *from, uint64_t from_at, uint64_t len, decant_error *err)
{
    const dcn_call call = {.verb = DCN_DO_COPY, .name = f->name, .at = at, .len = len};
    decant_status rc = before(f->io, &call, err);

    /* the implementation must know both files to copy between them */
    if (!rc)
        rc = after(f->io, &call,
                   f->ops->copy && f->ops == from->ops ? f->ops->copy(f, at, from, from_at, len, err)
                                                       : unsupported(err));
    return at_path(f->path, rc, err);
}

decant_status dcn_file_forget(dcn_file *f, decant_error *err)
{
    const dcn_call call = {.verb = DCN_DO_FORGET, .name = f->name};
    decant_status rc = before(f->io, &call, err);

    if (!rc)
        rc = after(f->io, &call, f->ops->forget ? f->ops->forget(f, err) : unsupported(err));
    return at_path(f->path, rc, err);
}

decant_status dcn_file_clone(dcn_file *f, uint64_t at, dcn_file *from, uint64_t from_at, uint64_t len,
                             decant_error *err)
{
    const dcn_call call = {.verb = DCN_DO_CLONE, .name = f->name, .at = at, .len = len};
    decant_status rc = before(f->io, &call, err);

    if (!rc)
        rc = after(f->io, &call,
                   f->ops->clone && f->ops == from->ops ? f->ops->clone(f, at, from, from_at, len, err)
                                                        : unsupported(err));
    return at_path(f->path, rc, err);
}

decant_status dcn_file_punch(dcn_file *f, uint64_t at, uint64_t len, decant_error *err)
{
    const dcn_call call = {.verb = DCN_DO_PUNCH, .name = f->name, .at = at, .len = len};
    decant_status rc = before(f->io, &call, err);

    if (!rc)
        rc = after(f->io, &call, f->ops->punch ? f->ops->punch(f, at, len, err) : unsupported(err));
    return at_path(f->path, rc, err);
}

decant_status dcn_file_extents(dcn_file *f, dcn_extents *out, decant_error *err)
{
    const dcn_call call = {.verb = DCN_DO_EXTENTS, .name = f->name};
    decant_status rc = before(f->io, &call, err);

    if (!rc)
        rc = after(f->io, &call, f->ops->extents ? f->ops->extents(f, out, err) : unsupported(err));
    return at_path(f->path, rc, err);
}

decant_status dcn_file_data(dcn_file *f, uint64_t at, uint64_t *begin, uint64_t *end, decant_error *err)
{
    const dcn_call call = {.verb = DCN_DO_DATA, .name = f->name, .at = at};
    decant_status rc = before(f->io, &call, err);

    if (!rc)
        rc = after(f->io, &call, f->ops->data ? f->ops->data(f, at, begin, end, err) : unsupported(err));
    return at_path(f->path, rc, err);
}

decant_status dcn_file_alone(dcn_file *f, decant_error *err)
{
    const dcn_call call = {.verb = DCN_DO_ALONE, .name = f->name};
    decant_status rc = before(f->io, &call, err);

    if (!rc)
        rc = after(f->io, &call, f->ops->alone ? f->ops->alone(f, err) : unsupported(err));
    return at_path(f->path, rc, err);
}

decant_status dcn_file_note(dcn_file *f, const char *text, decant_error *err)
{
    const dcn_call call = {.verb = DCN_DO_NOTE, .name = f->name};
    decant_status rc = before(f->io, &call, err);

    if (!rc)
        rc = after(f->io, &call, f->ops->note ? f->ops->note(f, text, err) : unsupported(err));
    return at_path(f->path, rc, err);
}

decant_status dcn_file_read_note(dcn_file *f, char *out, size_t size, decant_error *err)
{
    const dcn_call call = {.verb = DCN_DO_READ_NOTE, .name = f->name};
    decant_status rc = before(f->io, &call, err);

    if (!rc)
        rc = after(f->io, &call, f->ops->read_note ? f->ops->read_note(f, out, size, err) : unsupported(err));
    return at_path(f->path, rc, err);
}

decant_status dcn_file_set_mtime(dcn_file *f, int64_t ns, decant_error *err)
{
    const dcn_call call = {.verb = DCN_DO_SET_MTIME, .name = f->name};
    decant_status rc = before(f->io, &call, err);

    if (!rc)
        rc = after(f->io, &call, f->ops->set_mtime ? f->ops->set_mtime(f, ns, err) : unsupported(err));
    return at_path(f->path, rc, err);
}

void dcn_file_close(dcn_file **f)
{
    if (f && *f) {
        (*f)->ops->close(*f);
        *f = NULL;
    }
}

bool dcn_facts_same_file(const dcn_facts *a, const dcn_facts *b)
{
    return a->dev == b->dev && a->ino == b->ino && a->birth == b->birth;
}
