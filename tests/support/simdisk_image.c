#include "simdisk_state.h"

#include "base/ckd.h"

void sim_image_become(image *img, const image *from)
{
    image copy = *from;

    sim_blob_ref(copy.data);
    sim_blob_ref(copy.blocks);
    sim_blob_ref(copy.note);
    sim_image_clear(img);
    *img = copy;
}

void sim_image_clear(image *img)
{
    sim_blob_unref(&img->data);
    sim_blob_unref(&img->blocks);
    sim_blob_unref(&img->note);
}

uint64_t sim_unit(const simdisk *disk)
{
    return disk->unit ? disk->unit : disk->block;
}

/* The blocks of all units that [at, at + len) touches. */
static size_t first_block(const simdisk *disk, uint64_t at)
{
    return (size_t)(at / sim_unit(disk) * (sim_unit(disk) / disk->block));
}

static size_t end_block(const simdisk *disk, uint64_t end)
{
    return first_block(disk, end + sim_unit(disk) - 1);
}

size_t sim_blocks_used(const image *img)
{
    size_t used = 0;

    for (size_t k = 0; k < sim_blob_len(img->blocks); k++)
        used += (img->blocks->bytes[k] & SIM_USED) != 0;
    return used;
}

size_t sim_blocks_taken(const image *img)
{
    size_t taken = sim_blocks_used(img);

    for (size_t k = 0; k < sim_blob_len(img->blocks); k++)
        taken += (img->blocks->bytes[k] & SIM_STUCK) != 0;
    return taken;
}

bool sim_has_room(const simdisk *disk, const inode *i, uint64_t at, uint64_t len)
{
    const blob *blocks = i->now.blocks;
    size_t wanted = 0;

    for (size_t k = first_block(disk, at); k < end_block(disk, at + len); k++)
        wanted += k >= sim_blob_len(blocks) || !(blocks->bytes[k] & SIM_USED);
    return wanted == 0 || i->system || disk->capacity == UINT64_MAX || wanted * disk->block <= sim_free_room(disk);
}

static void free_extents(const simdisk *disk, image *img, size_t first, size_t end);

/* Where extents are free as a whole, a block that is written over is another one from now on: the old one is stuck. */
static void allocate(const simdisk *disk, image *img, uint64_t at, uint64_t len, unsigned flags)
{
    size_t first = first_block(disk, at), end = end_block(disk, at + len);

    if (len == 0)
        return;
    if (end > sim_blob_len(img->blocks))
        sim_blob_resize(&img->blocks, end);
    else
        sim_blob_resize(&img->blocks, sim_blob_len(img->blocks)); /* one's own */
    for (size_t k = first; k < end; k++) {
        uint8_t *b = &img->blocks->bytes[k];
        bool whole = k * disk->block >= at && (k + 1) * disk->block <= at + len;

        if (disk->extent && whole && *b & flags & SIM_WRITTEN)
            *b |= SIM_STUCK;
        *b |= (uint8_t)flags;
    }
    if (disk->extent && !img->shared)
        free_extents(disk, img, first, end);
}

/* Extents of which nothing is left are free: all of their blocks that were stuck. */
static void free_extents(const simdisk *disk, image *img, size_t first, size_t end)
{
    size_t each = (size_t)(disk->extent / disk->block), len = sim_blob_len(img->blocks);

    for (size_t at = first / each * each; at < end; at += each) {
        size_t stop = (size_t)dcn_min(at + each, len), k = at;

        while (k < stop && (img->blocks->bytes[k] & (SIM_USED | SIM_STUCK)) != SIM_USED)
            k++;
        for (size_t n = at; k == stop && n < stop; n++)
            img->blocks->bytes[n] &= (uint8_t)~SIM_STUCK;
    }
}

/* Gives up the whole units in [at, end). */
static void release(const simdisk *disk, image *img, uint64_t at, uint64_t end)
{
    size_t first = end_block(disk, at), stop = (size_t)dcn_min(first_block(disk, end), sim_blob_len(img->blocks));

    if (first >= stop)
        return;
    sim_blob_resize(&img->blocks, img->blocks->len); /* one's own */
    for (size_t k = first; k < stop; k++) {
        uint8_t *b = &img->blocks->bytes[k];

        *b = *b & SIM_STUCK || (*b & SIM_USED && (disk->extent || img->shared)) ? SIM_STUCK : 0;
    }
    if (disk->extent && !img->shared)
        free_extents(disk, img, first, stop);
}

static void write_sectors(const simdisk *disk, image *img, const change *c, uint64_t sectors)
{
    for (uint64_t done = 0; done < c->len;) {
        uint64_t at = c->at + done, part = dcn_min(c->len - done, SIM_SECTOR - at % SIM_SECTOR);

        if (sectors >> (at / SIM_SECTOR - c->at / SIM_SECTOR) % 64 & 1) {
            sim_blob_write(&img->data, (size_t)at, c->data + done, (size_t)part);
            allocate(disk, img, at, part, SIM_USED | SIM_WRITTEN);
        }
        done += part;
    }
}

static void punch_units(const simdisk *disk, image *img, const change *c, uint64_t units)
{
    uint64_t unit = sim_unit(disk), size = sim_blob_len(img->data), end = c->at + c->len, next;

    for (uint64_t at = c->at; at < end; at = next) {
        next = dcn_min(end, (at / unit + 1) * unit);
        if (!(units >> (at / unit - c->at / unit) % 64 & 1))
            continue;
        if (at < size) {
            sim_blob_resize(&img->data, (size_t)size); /* one's own */
            memset(img->data->bytes + at, 0, (size_t)(dcn_min(next, size) - at));
        }
        release(disk, img, at, next);
    }
}

static void set_size(const simdisk *disk, image *img, uint64_t len)
{
    if (len < sim_blob_len(img->data))
        release(disk, img, len, UINT64_MAX);
    sim_blob_resize(&img->data, (size_t)len);
}

static void set_note(image *img, const char *text)
{
    sim_blob_unref(&img->note);
    if (text)
        sim_blob_write(&img->note, 0, text, strlen(text) + 1);
}

void sim_apply(const simdisk *disk, image *img, const change *c, uint64_t sectors)
{
    if (c->what == SIMDISK_WRITE)
        write_sectors(disk, img, c, sectors);
    else if (c->what == SIMDISK_PUNCH)
        punch_units(disk, img, c, sectors);
    else if (!(sectors & 1))
        return;
    else if (c->what == SIMDISK_RESIZE)
        set_size(disk, img, c->len);
    else if (c->what == SIMDISK_RESERVE)
        allocate(disk, img, c->at, c->len, SIM_USED);
    else if (c->what == SIMDISK_ATTRIBUTES)
        img->attributes = c->attributes;
    else if (c->what == SIMDISK_NOTE)
        set_note(img, c->name);
    if (sectors && c->mtime)
        img->mtime = c->mtime;
}
