#include "simdisk_state.h"

static void apply_to_folder(folder *f, const change *c, uint64_t bits)
{
    if (!(bits & 1))
        return;
    switch (c->what) {
    case SIMDISK_ADD_NAME:
        sim_names_set(&f->safe, c->name, c->inode);
        break;
    case SIMDISK_DROP_NAME:
        sim_names_drop(&f->safe, c->name);
        break;
    default:
        sim_names_set(&f->safe, c->to, c->inode);
        if (bits & 2)
            sim_names_drop(&f->safe, c->name);
        break;
    }
}

/* What survives of the changes of a list; `index` runs through all that are open to choice. */
static uint64_t survives(const pending *p, size_t *index, uint64_t (*choose)(void *ctx, const simdisk_op *op),
                         void *ctx)
{
    const change *c = p->change;

    if (p->safe)
        return UINT64_MAX;
    return choose(
        ctx, &(simdisk_op){
                 .change = c->what, .index = (*index)++, .name = c->name, .to = c->to, .at = c->at, .len = c->len});
}

void simdisk_crash(simdisk *disk, uint64_t (*choose)(void *ctx, const simdisk_op *op), void *ctx)
{
    simdisk_state *s = disk->state;
    size_t index = 0;

    CHECK_EQ(disk->open_files, 0);
    s->boots++;
    for (size_t k = 0; k < s->inode_count; k++) {
        inode *i = &s->inodes[k];

        for (size_t n = 0; n < i->changes.count; n++)
            sim_apply(disk, &i->safe, i->changes.items[n].change, survives(&i->changes.items[n], &index, choose, ctx));
        sim_changes_clear(&i->changes);
        sim_image_become(&i->now, &i->safe);
        i->links = 0;
        i->locked = i->held = i->someone = false;
    }
    for (size_t k = 0; k < s->folder_count; k++) {
        folder *f = &s->folders[k];

        for (size_t n = 0; n < f->changes.count; n++)
            apply_to_folder(f, f->changes.items[n].change, survives(&f->changes.items[n], &index, choose, ctx));
        sim_changes_clear(&f->changes);
        sim_names_clear(&f->now);
        f->now = sim_names_copy(&f->safe);
        for (size_t n = 0; n < f->now.count; n++)
            s->inodes[f->now.items[n].inode].links++;
    }
    for (size_t k = 0; k < s->inode_count; k++)
        if (!s->inodes[k].links)
            sim_inode_clear(&s->inodes[k]);
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
