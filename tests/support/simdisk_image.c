#include "simdisk_state.h"

#include "base/ckd.h"

void sim_image_become(image *img, const image *from)
{
    image copy = *from;

    sim_blob_ref(copy.data);
    sim_blob_ref(copy.blocks);
    sim_image_clear(img);
    *img = copy;
}

void sim_image_clear(image *img)
{
    sim_blob_unref(&img->data);
    sim_blob_unref(&img->blocks);
}

static size_t blocks_of(const simdisk *disk, uint64_t len)
{
    return (size_t)((len + disk->block - 1) / disk->block);
}

size_t sim_blocks_used(const image *img)
{
    size_t used = 0;

    for (size_t k = 0; k < sim_blob_len(img->blocks); k++)
        used += img->blocks->bytes[k];
    return used;
}

bool sim_has_room(const simdisk *disk, const inode *i, uint64_t at, uint64_t len)
{
    const blob *blocks = i->now.blocks;
    size_t wanted = 0;

    for (size_t k = (size_t)(at / disk->block); k < blocks_of(disk, at + len); k++)
        wanted += k >= sim_blob_len(blocks) || !blocks->bytes[k];
    return wanted == 0 || disk->capacity == UINT64_MAX || wanted * disk->block <= sim_free_room(disk);
}

static void allocate(const simdisk *disk, image *img, uint64_t at, uint64_t len)
{
    size_t first = (size_t)(at / disk->block), end = blocks_of(disk, at + len);

    if (first == end)
        return;
    sim_blob_resize(&img->blocks, end > sim_blob_len(img->blocks) ? end : sim_blob_len(img->blocks));
    memset(img->blocks->bytes + first, 1, end - first);
}

static void write_sectors(const simdisk *disk, image *img, const change *c, uint64_t sectors)
{
    for (uint64_t done = 0; done < c->len;) {
        uint64_t at = c->at + done, part = dcn_min(c->len - done, SIM_SECTOR - at % SIM_SECTOR);

        if (sectors >> (at / SIM_SECTOR - c->at / SIM_SECTOR) % 64 & 1) {
            sim_blob_write(&img->data, (size_t)at, c->data + done, (size_t)part);
            allocate(disk, img, at, part);
        }
        done += part;
    }
}

static void set_size(const simdisk *disk, image *img, uint64_t len)
{
    sim_blob_resize(&img->data, (size_t)len);
    if (blocks_of(disk, len) < sim_blob_len(img->blocks))
        sim_blob_resize(&img->blocks, blocks_of(disk, len));
}

void sim_apply(const simdisk *disk, image *img, const change *c, uint64_t sectors)
{
    if (c->what == SIMDISK_WRITE)
        write_sectors(disk, img, c, sectors);
    else if (!(sectors & 1))
        return;
    else if (c->what == SIMDISK_RESIZE)
        set_size(disk, img, c->len);
    else if (c->what == SIMDISK_RESERVE)
        allocate(disk, img, c->at, c->len);
    else if (c->what == SIMDISK_ATTRIBUTES)
        img->attributes = c->attributes;
    if (sectors && c->mtime)
        img->mtime = c->mtime;
}
