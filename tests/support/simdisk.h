/*
 * A disk in memory that knows what a power cut leaves. Each file and each folder has what everybody sees now, what is
 * safe on the medium, and the changes in between, still pending. The rules are the strictest that a caller may rely on:
 *
 *   A1  a sync makes the pending changes of that file, or that folder, safe; nothing else does, and it does no other's
 *   A2  before that, any subset of the writes may be there, each torn at sectors of 512 bytes; a size without its data
 *   A3  names come and go whole, in any combination; a renamed file may have both names
 *   A4  a new size, and what was punched out, may be there before or after anything else, of the latter also some units
 *   A5  after a sync that failed, what it was to make safe never is, though later syncs succeed and the cache shows it
 *
 * Not a dcn_alloc user: the library's allocations can be counted and failed while it works.
 */
#ifndef TEST_SIMDISK_H
#define TEST_SIMDISK_H

#include "io/io.h"
#include "test.h"

typedef struct simdisk_state simdisk_state;

/* What dcn_file_data() says. */
typedef enum simdisk_holes {
    SIMDISK_TELLS_HOLES,
    SIMDISK_NO_HOLES,   /* all of a file is data */
    SIMDISK_DIRTY_HOLES /* and what is not synced is a hole */
} simdisk_holes;

typedef struct simdisk {
    dcn_io io; /* give it a gate */

    /* what it is like; change at any time */
    uint64_t capacity; /* bytes, in blocks of `block`; UINT64_MAX: endless */
    uint64_t block;
    uint64_t unit;   /* blocks come and go in units of as many bytes; 0: of one block */
    uint64_t extent; /* what is punched out is free when a whole extent of as many bytes is, as on btrfs; 0: at once */
    simdisk_holes holes;
    uint64_t limit; /* of a file's size for the process; UINT64_MAX: none */
    /* 1u << verb: UNSUPPORTED; of DCN_DO_RENAME only with DCN_NO_REPLACE, of _RESIZE only to more, of _OPEN only with
     * DCN_NAMELESS */
    unsigned lacks;
    bool is_tmp;          /* folders are as /tmp is: another user's, and everybody replaces only his own files */
    uint32_t folder_mode; /* of every folder */
    uint64_t seed;        /* of its random bytes */
    size_t lie_at;        /* this sync from now on (1 is the next) fails and loses what it was to keep; 0: none */
    bool lied;            /* it happened */

    /* what it counts */
    size_t open_files, open_dirs;

    simdisk_state *state;
} simdisk;

/* An empty disk with the folder ".". Freed by simdisk_free(), which ends the test if anything is open. */
simdisk *simdisk_new(void);
void simdisk_free(simdisk **disk);

/* The same disk once more, with nothing open, no locks and no gate. Cheap: content is shared until it changes. */
simdisk *simdisk_clone(const simdisk *disk);

/* Paths are "name", "folder/name" or one of these behind a slash. All of this is safe on the medium at once, past the gate. */
void simdisk_folder(simdisk *disk, const char *path);
void simdisk_put(simdisk *disk, const char *path, const void *data, size_t len); /* makes the folder too */
void simdisk_put_text(simdisk *disk, const char *path, const char *text);
void simdisk_make(simdisk *disk, const char *path, dcn_kind kind,
                  const char *target); /* target: of a link, a bare name */
void simdisk_mode(simdisk *disk, const char *path, uint32_t mode);
void simdisk_give_away(simdisk *disk, const char *path);       /* to another user */
void simdisk_hold(simdisk *disk, const char *path, bool held); /* another process holds its lock */
void simdisk_touch(simdisk *disk, const char *path);           /* another process changes its time */
void simdisk_fix(simdisk *disk, const char *path, bool fixed); /* it cannot be changed, renamed or removed */
void simdisk_share(simdisk *disk, const char *path,
                   bool shared); /* its blocks are another file's too; clones say nothing */
void simdisk_someone_opens(simdisk *disk, const char *path, bool open); /* another process has it open */
void simdisk_other_fs(simdisk *disk,
                      const char *folder); /* the folder and its files are on another file system, an endless one */

/* What everybody sees now. NULL where there is nothing; lent until the next change. */
const uint8_t *simdisk_get(const simdisk *disk, const char *path, size_t *len);
uint32_t simdisk_mode_of(const simdisk *disk, const char *path);
int64_t simdisk_mtime_of(const simdisk *disk, const char *path);
bool simdisk_has_note(const simdisk *disk, const char *path);
size_t simdisk_file_count(const simdisk *disk); /* names, in all folders */
uint64_t simdisk_used(const simdisk *disk);     /* bytes in blocks */

/* The names in a folder, sorted, "a b c". Lent until the next call. */
const char *simdisk_names(simdisk *disk, const char *folder);

/* That a file holds this text now; NULL: that there is none. */
#define CHECK_FILE(disk, path, text)                                                                 \
    do {                                                                                             \
        const char *t_ = (text);                                                                     \
        size_t l_ = 0;                                                                               \
        const uint8_t *d_ = simdisk_get((disk), (path), &l_);                                        \
        if (!d_ != !t_)                                                                              \
            test_fail(__FILE__, __LINE__, "%s is %s", (path), d_ ? "there, unwanted" : "not there"); \
        if (t_)                                                                                      \
            test_check_bytes(__FILE__, __LINE__, (path), d_, l_, t_, strlen(t_));                    \
    } while (0)

/* A change that is not safe yet. */
typedef enum simdisk_change {
    SIMDISK_WRITE,
    SIMDISK_RESIZE,
    SIMDISK_PUNCH,
    SIMDISK_RESERVE,
    SIMDISK_ATTRIBUTES,
    SIMDISK_NOTE,
    SIMDISK_TIME,
    SIMDISK_ADD_NAME,
    SIMDISK_DROP_NAME,
    SIMDISK_RENAME
} simdisk_change;

typedef struct simdisk_op {
    simdisk_change change;
    size_t index;     /* among all that are pending; those of folders last */
    const char *name; /* of folders' changes: the (old) name; of a note its text; else NULL */
    const char *to;   /* the new name of a rename */
    uint64_t at, len; /* bytes written, punched, reserved; len also the new size */
} simdisk_op;

/* Changes that a crash may keep or lose. */
size_t simdisk_pending(const simdisk *disk);

/*
 * The power is cut: what everybody sees is now what the medium kept. `choose` says what survives of each pending change: bit
 * i (modulo 64) for sector i of a write, or unit i of a punch; bit 0 for anything else; of a rename bit 0 that the new name is
 * there, bit 1 that the old one is gone (not without bit 0). Everything must be closed.
 */
void simdisk_crash(simdisk *disk, uint64_t (*choose)(void *ctx, const simdisk_op *op), void *ctx);

/*
 * The ways to cut the power that are worth trying: every subset of at most ten changes and some torn ones; of more changes
 * none, all, each alone, all but each, and 64 at random, torn. A rename counts twice.
 *
 *     for (size_t n = 0; n < simdisk_crash_count(disk); n++) {
 *         simdisk *after = simdisk_clone(disk);
 *         simdisk_crash_nth(after, n, seed);
 */
size_t simdisk_crash_count(const simdisk *disk);
void simdisk_crash_nth(simdisk *disk, size_t n, uint64_t seed);

#endif
