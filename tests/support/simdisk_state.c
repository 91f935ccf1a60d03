#include "simdisk_state.h"

#include <stdlib.h>

void *sim_take(size_t size)
{
    void *memory = calloc(1, size ? size : 1);

    if (!memory)
        abort();
    return memory;
}

void *sim_grow(void *old, size_t count, size_t *cap, size_t size)
{
    if (count < *cap)
        return old;
    *cap = *cap ? *cap * 2 : 8;
    old = realloc(old, *cap * size);
    if (!old)
        abort();
    return old;
}

char *sim_copy_text(const char *text)
{
    return text ? strcpy(sim_take(strlen(text) + 1), text) : NULL;
}

blob *sim_blob_ref(blob *b)
{
    if (b)
        b->refs++;
    return b;
}

void sim_blob_unref(blob **b)
{
    if (*b && --(*b)->refs == 0)
        free(*b);
    *b = NULL;
}

size_t sim_blob_len(const blob *b)
{
    return b ? b->len : 0;
}

/* Makes it `len` bytes, zeros added, and one's own. */
void sim_blob_resize(blob **b, size_t len)
{
    size_t old = sim_blob_len(*b);

    if (!*b || (*b)->refs > 1 || len > (*b)->cap) {
        size_t cap = len > old ? len + len / 2 : len;
        blob *own = sim_take(sizeof *own + cap);

        own->refs = 1;
        own->cap = cap;
        if (*b)
            memcpy(own->bytes, (*b)->bytes, old < len ? old : len);
        sim_blob_unref(b);
        *b = own;
    } else if (len > old) {
        memset((*b)->bytes + old, 0, len - old);
    }
    (*b)->len = len;
}

void sim_blob_write(blob **b, size_t at, const void *data, size_t len)
{
    if (len == 0)
        return;
    sim_blob_resize(b, at + len > sim_blob_len(*b) ? at + len : sim_blob_len(*b));
    memcpy((*b)->bytes + at, data, len);
}

static void change_unref(change *c)
{
    if (--c->refs == 0) {
        free(c->name);
        free(c->to);
        free(c);
    }
}

change *sim_changes_add(changes *list, simdisk_change what, size_t len)
{
    change *c = sim_take(sizeof *c + len);

    *c = (change){.refs = 1, .what = what, .len = len};
    list->items = sim_grow(list->items, list->count, &list->cap, sizeof *list->items);
    list->items[list->count++] = (pending){.change = c};
    return c;
}

void sim_changes_clear(changes *list)
{
    for (size_t i = 0; i < list->count; i++)
        change_unref(list->items[i].change);
    free(list->items);
    *list = (changes){0};
}

void sim_changes_drop_lost(changes *list)
{
    size_t kept = 0;

    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].lost &&
            (list->items[i].change->what == SIMDISK_WRITE || list->items[i].change->what == SIMDISK_RESIZE))
            change_unref(list->items[i].change);
        else
            list->items[kept++] = list->items[i];
    list->count = kept;
}

changes sim_changes_copy(const changes *list)
{
    changes copy = {.items = sim_take(list->count * sizeof *copy.items), .count = list->count, .cap = list->count};

    for (size_t i = 0; i < list->count; i++) {
        copy.items[i] = list->items[i];
        copy.items[i].change->refs++;
    }
    return copy;
}

name *sim_names_find(const names *list, const char *text)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].text, text) == 0)
            return &list->items[i];
    return NULL;
}

void sim_names_set(names *list, const char *text, size_t number)
{
    name *found = sim_names_find(list, text);

    if (found) {
        found->inode = number;
        return;
    }
    list->items = sim_grow(list->items, list->count, &list->cap, sizeof *list->items);
    list->items[list->count++] = (name){.text = sim_copy_text(text), .inode = number};
}

void sim_names_drop(names *list, const char *text)
{
    name *found = sim_names_find(list, text);

    if (found) {
        free(found->text);
        *found = list->items[--list->count];
    }
}

void sim_names_clear(names *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i].text);
    free(list->items);
    *list = (names){0};
}

names sim_names_copy(const names *list)
{
    names copy = {.items = sim_take(list->cap * sizeof *copy.items), .count = list->count, .cap = list->cap};

    for (size_t i = 0; i < list->count; i++)
        copy.items[i] = (name){.text = sim_copy_text(list->items[i].text), .inode = list->items[i].inode};
    return copy;
}

folder *sim_find_folder(const simdisk_state *s, const char *path, size_t len)
{
    for (; len && *path == '/'; len--)
        path++;
    if (len == 0)
        return &s->folders[0];
    for (size_t i = 0; i < s->folder_count; i++)
        if (strlen(s->folders[i].path) == len && memcmp(s->folders[i].path, path, len) == 0)
            return &s->folders[i];
    return NULL;
}

/* Splits "folder/name"; NULL if there is no such folder. */
folder *sim_folder_at(const simdisk_state *s, const char *path, const char **last)
{
    const char *slash = strrchr(path, '/');

    *last = slash ? slash + 1 : path;
    return slash ? sim_find_folder(s, path, (size_t)(slash - path)) : sim_find_folder(s, ".", 1);
}

inode *sim_inode_at(const simdisk_state *s, const char *path)
{
    const char *last;
    folder *f = sim_folder_at(s, path, &last);
    name *found = f ? sim_names_find(&f->now, last) : NULL;

    return found ? &s->inodes[found->inode] : NULL;
}

size_t sim_inode_new(simdisk_state *s, dcn_kind kind, uint32_t mode, size_t system)
{
    image fresh = {.attributes = {.mode = mode, .uid = SIM_USER, .gid = SIM_USER}, .mtime = ++s->clock};

    s->inodes = sim_grow(s->inodes, s->inode_count, &s->inode_cap, sizeof *s->inodes);
    s->inodes[s->inode_count] = (inode){.kind = kind, .now = fresh, .safe = fresh, .birth = s->clock, .system = system};
    return s->inode_count++;
}

void sim_inode_clear(inode *i)
{
    sim_image_clear(&i->now);
    sim_image_clear(&i->safe);
    sim_changes_clear(&i->changes);
}

uint64_t simdisk_used(const simdisk *disk)
{
    uint64_t used = 0;

    for (size_t i = 0; i < disk->state->inode_count; i++)
        if (!disk->state->inodes[i].system && (disk->state->inodes[i].links || disk->state->inodes[i].opens))
            used += sim_blocks_taken(&disk->state->inodes[i].now);
    return used * disk->block;
}

uint64_t sim_free_room(const simdisk *disk)
{
    uint64_t used = simdisk_used(disk);

    return disk->capacity > used ? disk->capacity - used : 0;
}
