#include "simdisk_state.h"

#include <stdlib.h>

simdisk *simdisk_new(void)
{
    simdisk *disk = sim_take(sizeof *disk);

    *disk = (simdisk){.io = {.ops = &sim_io_ops},
                      .folder_mode = 0755,
                      .capacity = UINT64_MAX,
                      .block = SIM_SECTOR,
                      .limit = UINT64_MAX};
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
        s->inodes[i].now = s->inodes[i].safe = (image){0};
        sim_image_become(&s->inodes[i].now, &from->now);
        sim_image_become(&s->inodes[i].safe, &from->safe);
        s->inodes[i].changes = sim_changes_copy(&from->changes);
        if (from->nameless)
            sim_inode_clear(&s->inodes[i]);
    }
    for (size_t i = 0; i < s->folder_count; i++) {
        const folder *from = &disk->state->folders[i];

        s->folders[i] = (folder){.path = sim_copy_text(from->path),
                                 .system = from->system,
                                 .now = sim_names_copy(&from->now),
                                 .safe = sim_names_copy(&from->safe),
                                 .changes = sim_changes_copy(&from->changes)};
    }
    return copy;
}

void simdisk_folder(simdisk *disk, const char *path)
{
    simdisk_state *s = disk->state;

    if (s->folder_count && sim_find_folder(s, path, strlen(path)))
        return;
    path += *path == '/';
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
    size_t number;
    inode *i;
    folder *f;

    if (slash)
        parent[slash - path] = '\0';
    simdisk_folder(disk, parent);
    free(parent);
    f = sim_folder_at(disk->state, path, &last);
    number = sim_inode_new(disk->state, kind, 0644, f->system);
    i = &disk->state->inodes[number];
    sim_names_set(&f->now, last, number);
    sim_names_set(&f->safe, last, number);
    i->links = 1;
    if (target)
        sim_blob_write(&i->now.data, 0, target, strlen(target));
    sim_image_become(&i->safe, &i->now);
}

void simdisk_put(simdisk *disk, const char *path, const void *data, size_t len)
{
    changes made = {0};
    change *c = sim_changes_add(&made, SIMDISK_WRITE, len);
    inode *i;

    if (!sim_inode_at(disk->state, path))
        simdisk_make(disk, path, DCN_KIND_REGULAR, NULL);
    i = wanted(disk, path);
    sim_inode_clear(i);
    if (!sim_has_room(disk, i, 0, len))
        test_fail(__FILE__, __LINE__, "no room for %s", path);
    if (len)
        memcpy(c->data, data, len);
    c->mtime = ++disk->state->clock;
    sim_apply(disk, &i->now, c, UINT64_MAX);
    sim_image_become(&i->safe, &i->now);
    sim_changes_clear(&made);
}

void simdisk_put_text(simdisk *disk, const char *path, const char *text)
{
    simdisk_put(disk, path, text, strlen(text));
}

void simdisk_mode(simdisk *disk, const char *path, uint32_t mode)
{
    inode *i = wanted(disk, path);

    i->now.attributes.mode = i->safe.attributes.mode = mode;
}

void simdisk_give_away(simdisk *disk, const char *path)
{
    inode *i = wanted(disk, path);

    i->now.attributes.uid = i->safe.attributes.uid = SIM_USER + 1;
}

void simdisk_hold(simdisk *disk, const char *path, bool held)
{
    wanted(disk, path)->held = held;
}

void simdisk_touch(simdisk *disk, const char *path)
{
    inode *i = wanted(disk, path);

    i->now.mtime = i->safe.mtime = ++disk->state->clock;
}

void simdisk_someone_opens(simdisk *disk, const char *path, bool open)
{
    wanted(disk, path)->someone = open;
}

void simdisk_fix(simdisk *disk, const char *path, bool fixed)
{
    wanted(disk, path)->fixed = fixed;
}

void simdisk_share(simdisk *disk, const char *path, bool shared)
{
    inode *i = wanted(disk, path);

    i->now.shared = i->safe.shared = shared;
}

void simdisk_other_fs(simdisk *disk, const char *path)
{
    folder *f;

    simdisk_folder(disk, path);
    f = sim_find_folder(disk->state, path, strlen(path));
    f->system = (size_t)(f - disk->state->folders);
    for (size_t n = 0; n < f->now.count; n++)
        disk->state->inodes[f->now.items[n].inode].system = f->system;
}

const uint8_t *simdisk_get(const simdisk *disk, const char *path, size_t *len)
{
    const inode *i = sim_inode_at(disk->state, path);

    if (!i)
        return NULL;
    *len = sim_blob_len(i->now.data);
    return *len ? i->now.data->bytes : (const uint8_t *)"";
}

uint32_t simdisk_mode_of(const simdisk *disk, const char *path)
{
    return wanted(disk, path)->now.attributes.mode;
}

int64_t simdisk_mtime_of(const simdisk *disk, const char *path)
{
    return wanted(disk, path)->now.mtime;
}

bool simdisk_has_note(const simdisk *disk, const char *path)
{
    return wanted(disk, path)->now.note != NULL;
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
