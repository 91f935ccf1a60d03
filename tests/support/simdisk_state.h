/*
 * What the files of the disk in memory know of it: simdisk.c, the disk as a whole; simdisk_file.c and simdisk_dir.c, its
 * calls; simdisk_image.c, what a change does; simdisk_crash.c, its power cuts.
 */
#ifndef TEST_SIMDISK_STATE_H
#define TEST_SIMDISK_STATE_H

#include "simdisk.h"

enum { SIM_SECTOR = 512, SIM_USER = 1000, SIM_DEVICE = 7 };

/* Bytes that clones share until one of them changes them. */
typedef struct blob {
    size_t refs, len, cap;
    uint8_t bytes[];
} blob;

typedef struct attributes {
    uint32_t mode, uid, gid;
} attributes;

/* A change, shared by clones. */
typedef struct change {
    size_t refs;
    simdisk_change what;
    uint64_t at, len; /* len is also a new size */
    size_t inode;
    attributes attributes;
    int64_t mtime;   /* that it gives the file; 0: none */
    char *name, *to; /* name: also the text of a note */
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

/* A file as everybody sees it, or as it is on the medium. */
typedef struct image {
    attributes attributes;
    int64_t mtime;
    bool shared; /* with another file: its blocks are not free when it gives them up */
    blob *data;
    blob *blocks; /* a byte of flags for each */
    blob *note;   /* a text with its NUL */
} image;

enum {
    SIM_USED = 1,
    SIM_WRITTEN = 2, /* not only reserved: no hole */
    SIM_STUCK = 4    /* given up, but still taken until its extent is; may be used anew */
};

typedef struct inode {
    dcn_kind kind;
    image now, safe;
    changes changes; /* that lead from `safe` to `now` */
    int64_t birth;
    size_t links, opens;
    size_t system;     /* the number of its file system; 0: the one whose room is counted */
    bool locked, held; /* by a handle; by another process */
    bool someone;      /* another process has it open */
    bool fixed, nameless;
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
    size_t system;
    names now, safe;
    changes changes;
} folder;

struct simdisk_state {
    inode *inodes; /* never removed before a crash: the number is the identity */
    size_t inode_count, inode_cap;
    folder *folders;
    size_t folder_count, folder_cap;
    int64_t clock;
    uint64_t boots; /* power cuts so far */
    char *listing;
};

/* Memory: zeroed; one more item in a growing array; a text. None of it fails, the test ends instead. */
void *sim_take(size_t size);
void *sim_grow(void *old, size_t count, size_t *cap, size_t size);
char *sim_copy_text(const char *text);

/* A blob may be NULL, which is empty. Who changes one that is shared gets his own. */
blob *sim_blob_ref(blob *b);
void sim_blob_unref(blob **b);
size_t sim_blob_len(const blob *b);
void sim_blob_resize(blob **b, size_t len);
void sim_blob_write(blob **b, size_t at, const void *data, size_t len);

/* The change is yours to fill in; there is room for `len` bytes of data. */
change *sim_changes_add(changes *list, simdisk_change what, size_t len);
void sim_changes_clear(changes *list);
void sim_changes_drop_lost(changes *list); /* content that a sync has lost is not there, and will not be */
changes sim_changes_copy(const changes *list);

name *sim_names_find(const names *list, const char *text);
void sim_names_set(names *list, const char *text, size_t number);
void sim_names_drop(names *list, const char *text);
void sim_names_clear(names *list);
names sim_names_copy(const names *list);

/* A path may be absolute, which is from ".". */
folder *sim_find_folder(const simdisk_state *s, const char *path, size_t len);
folder *sim_folder_at(const simdisk_state *s, const char *path, const char **last);
inode *sim_inode_at(const simdisk_state *s, const char *path);
size_t sim_inode_new(simdisk_state *s, dcn_kind kind, uint32_t mode, size_t system);
void sim_inode_clear(inode *i);

/* An image becomes what another is, and shares its blobs until one of them changes. */
void sim_image_become(image *img, const image *from);
void sim_image_clear(image *img);

/* What a change does, and of one that may tear what those sectors or units of it do whose bits are set. */
void sim_apply(const simdisk *disk, image *img, const change *c, uint64_t sectors);

uint64_t sim_unit(const simdisk *disk);
size_t sim_blocks_used(const image *img);
size_t sim_blocks_taken(const image *img); /* with those that are stuck */
uint64_t sim_free_room(const simdisk *disk);
bool sim_has_room(const simdisk *disk, const inode *i, uint64_t at, uint64_t len); /* for blocks under [at, at + len) */

/* Calls. */
extern const dcn_io_ops sim_io_ops;
dcn_file *sim_file_new(dcn_dir *d, const char *text, size_t number, unsigned flags);
decant_status sim_failed(decant_status status, int code, decant_error *err);
bool sim_lacks(const simdisk *disk, dcn_verb verb);
bool sim_lies(simdisk *disk, changes *list); /* whether this sync does: then what is pending is lost */
bool sim_wait_behind_lost(changes *list); /* whether what was lost stands in the way: the rest waits, safe, behind it */
uint64_t sim_device(const simdisk *disk, size_t system);
void sim_facts_of(const simdisk *disk, size_t number, dcn_facts *out);
void sim_set_size(simdisk *disk, inode *i, uint64_t len);

#endif
