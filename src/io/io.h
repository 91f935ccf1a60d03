/*
 * Everything that touches the system, behind three small tables (system, folder, file). Every call passes a wrapper here
 * that describes it to the io's gate, before and after: faults, traces, counts and crash points are gates. posix*.c are the
 * implementation; the tests bring an in-memory disk of their own.
 *
 * Calls do all they were asked or fail. DECANT_UNSUPPORTED means: try another way. Errors name the file by its path.
 */
#ifndef DCN_IO_H
#define DCN_IO_H

#include <stdbool.h>

#include "base/chunk.h"
#include "base/error.h"

typedef struct dcn_io dcn_io;
typedef struct dcn_dir dcn_dir;
typedef struct dcn_file dcn_file;

typedef enum dcn_kind { DCN_KIND_REGULAR, DCN_KIND_FOLDER, DCN_KIND_LINK, DCN_KIND_OTHER } dcn_kind;

/* What the system says of a file. Two files are the same one if dev, ino and birth are equal. Times are ns since 1970. */
typedef struct dcn_facts {
    uint64_t dev, ino;
    int64_t birth, mtime; /* birth 0: not known */
    uint64_t size;        /* bytes */
    uint64_t blocks;      /* bytes allocated */
    uint64_t links;
    uint32_t mode; /* permission bits */
    uint32_t uid, gid;
    bool ours;    /* this user owns it, or may do what its owner may */
    bool mine;    /* this user owns it */
    bool mounted; /* something is mounted on the name, and it cannot be given to another file; false: or not known */
    bool fixed; /* immutable, append-only or sealed by fs-verity: nobody may change or remove it; false: or not known */
    dcn_kind kind;
} dcn_facts;

/* Bytes wanted from a file. */
typedef struct dcn_range {
    uint64_t at;
    void *dst;
    size_t len;
} dcn_range;

/* Who runs, and since when. */
typedef struct dcn_self {
    uint8_t boot[16]; /* another one after each start of the machine; zeros: not known */
    uint64_t process;
} dcn_self;

/* What a file outlives once it is synced. */
typedef enum dcn_lasts {
    DCN_LASTS_UNKNOWN, /* a network's, a program's: nobody here can tell */
    DCN_LASTS_PROCESS, /* the process, but not the machine: it is in memory */
    DCN_LASTS_POWER    /* a power cut */
} dcn_lasts;

typedef struct dcn_space {
    uint64_t free;  /* bytes that this user may still write */
    uint64_t block; /* bytes */
    uint64_t unit;  /* bytes that are allocated and freed at once, as far as that is known without trying: no fewer */
    uint64_t limit; /* of a file's size, for this process; UINT64_MAX: none */
    uint64_t files; /* that this process may have open; UINT64_MAX: any number */
    bool shares;    /* files on it can share blocks, as far as its kind tells */
    bool punches;   /* what is punched out of a file is free at once, as far as its kind tells */
    dcn_lasts lasts;
} dcn_space;

/* How a file's blocks lie. */
typedef struct dcn_extents {
    bool shared;      /* another file has some of them too, or a snapshot: to give them up here frees nothing */
    uint64_t largest; /* bytes of the largest extent, where only whole ones are freed (btrfs); else 0 */
} dcn_extents;

/* Flags of dcn_dir_open(). */
enum {
    DCN_READ = 1 << 0,
    DCN_WRITE = 1 << 1,
    DCN_CREATE = 1 << 2,     /* if it is not there */
    DCN_CREATE_NEW = 1 << 3, /* DECANT_EXISTS if it is; a link at the name counts */
    DCN_TRUNCATE = 1 << 4,
    DCN_NO_FOLLOW = 1 << 5, /* a link at the name is refused */
    DCN_ONCE = 1 << 6,      /* written once, front to back: need not stay in the page cache */
    DCN_NAMELESS = 1 << 7,  /* a new file in the folder, but without a name, which is ""; gone when it is closed */
    DCN_REWRITTEN = 1 << 8  /* a new file: what is written over again is to need no room, where that can be asked for */
};

/* Flags of dcn_dir_rename(). */
enum { DCN_NO_REPLACE = 1 << 0 }; /* DECANT_EXISTS, whatever is at the new name */

/* What a gate is told. */
typedef enum dcn_verb {
    DCN_DO_OPEN_DIR,
    DCN_DO_RANDOM,
    DCN_DO_OPEN,
    DCN_DO_STAT,
    DCN_DO_READLINK,
    DCN_DO_LIST,
    DCN_DO_RENAME,
    DCN_DO_LINK,
    DCN_DO_REMOVE,
    DCN_DO_SYNC_DIR,
    DCN_DO_SPACE,
    DCN_DO_READ,
    DCN_DO_WRITE,
    DCN_DO_RESIZE,
    DCN_DO_RESERVE,
    DCN_DO_SYNC,
    DCN_DO_FACTS,
    DCN_DO_LOCK,
    DCN_DO_RESEMBLE,
    DCN_DO_COPY,
    DCN_DO_WHO,
    DCN_DO_FORGET,
    DCN_DO_CLONE,
    DCN_DO_WHERE,
    DCN_DO_PUNCH,
    DCN_DO_EXTENTS,
    DCN_DO_DATA,
    DCN_DO_ALONE,
    DCN_DO_NOTE,
    DCN_DO_READ_NOTE,
    DCN_DO_SET_MTIME,
    DCN_VERB_COUNT
} dcn_verb;

typedef struct dcn_call {
    dcn_verb verb;
    const char *name; /* of the file or folder; of the old name of a rename */
    const char *to;   /* the new name of a rename or link */
    uint64_t at, len; /* bytes, where it has any */
    unsigned flags;
} dcn_call;

/* Sees every call; `after` those that were made. Closing is not a call: nothing depends on its outcome. */
typedef struct dcn_gate {
    /* a failure is returned instead of making the call */
    decant_status (*before)(void *ctx, const dcn_call *call, decant_error *err);
    void (*after)(void *ctx, const dcn_call *call, decant_status status); /* may be NULL */
    void *ctx;
} dcn_gate;

/* The system. */
typedef struct dcn_io_ops {
    decant_status (*open_dir)(dcn_io *io, const char *path, dcn_dir **out, decant_error *err);
    decant_status (*random)(dcn_io *io, void *dst, size_t len, decant_error *err);
    decant_status (*who)(dcn_io *io, dcn_self *out, decant_error *err);
} dcn_io_ops;

struct dcn_io {
    const dcn_io_ops *ops;
    const dcn_gate *gate; /* NULL: none */
};

enum { DCN_NAME_MOST = 255 /* bytes of a name: NAME_MAX of every file system that Linux writes to */ };

/* A folder. Names are bare: no slash. */
typedef struct dcn_dir_ops {
    decant_status (*open)(dcn_dir *d, const char *name, unsigned flags, uint32_t mode, dcn_file **out,
                          decant_error *err);
    decant_status (*stat)(dcn_dir *d, const char *name, dcn_facts *out,
                          decant_error *err); /* a link itself; ".": the folder */
    /* where a link leads, ended by a NUL; one that does not fit is UNSUPPORTED */
    decant_status (*readlink)(dcn_dir *d, const char *name, char *out, size_t size, decant_error *err);
    /* calls `found` for each name but . and ..; not 0 from it stops the listing */
    decant_status (*list)(dcn_dir *d, int (*found)(void *ctx, const char *name), void *ctx, decant_error *err);
    decant_status (*rename)(dcn_dir *d, const char *name, const char *to, unsigned flags, decant_error *err);
    decant_status (*link)(dcn_dir *d, const char *name, const char *to, decant_error *err); /* a second name */
    decant_status (*remove)(dcn_dir *d, const char *name, decant_error *err);
    decant_status (*sync)(dcn_dir *d, decant_error *err);
    decant_status (*space)(dcn_dir *d, dcn_space *out, decant_error *err);
    void (*close)(dcn_dir *d);
    /* the folder's absolute path, ended by a NUL; UNSUPPORTED: it cannot be told, or does not fit */
    decant_status (*where)(dcn_dir *d, char *out, size_t size, decant_error *err);
} dcn_dir_ops;

struct dcn_dir {
    const dcn_dir_ops *ops;
    dcn_io *io;
    const char *path; /* as the caller wrote it, owned by the implementation */
};

/* An open file. */
typedef struct dcn_file_ops {
    decant_status (*read)(dcn_file *f, const dcn_range *r, size_t count, decant_error *err); /* all, in any order */
    decant_status (*write)(dcn_file *f, uint64_t at, const dcn_chunk *c, size_t count, decant_error *err);
    decant_status (*resize)(dcn_file *f, uint64_t len, decant_error *err);
    decant_status (*sync)(dcn_file *f, decant_error *err); /* data, and what is needed to find it */
    decant_status (*facts)(dcn_file *f, dcn_facts *out, decant_error *err);
    void (*close)(dcn_file *f); /* reports nothing: what could fail was in sync() */
    decant_status (*reserve)(dcn_file *f, uint64_t at, uint64_t len,
                             decant_error *err); /* blocks, not size; UNSUPPORTED: goes on without */
    decant_status (*lock)(dcn_file *f,
                          decant_error *err); /* whole, exclusive, until closed; DECANT_BUSY: another has it */
    /* mode, owner and extended attributes of `old`, as far as permitted; what could not be is no error */
    decant_status (*resemble)(dcn_file *f, dcn_file *old, decant_error *err);
    /* bytes of `from` without a detour through the process. UNSUPPORTED, also half way and where it fails without
     * saying which of the two files is to blame: read and write all of it, which tells */
    decant_status (*copy)(dcn_file *f, uint64_t at, dcn_file *from, uint64_t from_at, uint64_t len, decant_error *err);
    /* what is read next comes from the medium: what is there of a write that a sync has lost, not what the cache shows */
    decant_status (*forget)(dcn_file *f, decant_error *err);
    /* whole blocks of `from`, shared from now on until one of the two files changes them. UNSUPPORTED: nothing was done */
    decant_status (*clone)(dcn_file *f, uint64_t at, dcn_file *from, uint64_t from_at, uint64_t len, decant_error *err);
    /* zeros from now on, and the blocks that lie wholly within are free; the size stays. A crash may leave part of it */
    decant_status (*punch)(dcn_file *f, uint64_t at, uint64_t len, decant_error *err);
    decant_status (*extents)(dcn_file *f, dcn_extents *out, decant_error *err); /* first writes back what is cached */
    /* the first range at or after `at` that is no hole; the end of the file twice if there is none. Not every file system
     * tells the truth while changes are not synced */
    decant_status (*data)(dcn_file *f, uint64_t at, uint64_t *begin, uint64_t *end, decant_error *err);
    /* DECANT_BUSY: somebody else has it open or mapped, and be it another open file of this process. True for an instant:
     * nothing keeps others out. UNSUPPORTED: it cannot be told */
    decant_status (*alone)(dcn_file *f, decant_error *err);
    /* a text that the file carries along under any name; NULL: none. A sync makes it safe */
    decant_status (*note)(dcn_file *f, const char *text, decant_error *err);
    /* ended by a NUL; DECANT_NOT_FOUND: there is none; UNSUPPORTED: also one that does not fit */
    decant_status (*read_note)(dcn_file *f, char *out, size_t size, decant_error *err);
    decant_status (*set_mtime)(dcn_file *f, int64_t ns, decant_error *err); /* a sync makes it safe */
} dcn_file_ops;

struct dcn_file {
    const dcn_file_ops *ops;
    dcn_io *io;
    const char *path; /* for messages, owned by the implementation */
    const char *name; /* the last component, for gates */
};

/* The system that the program runs on. Threads: locks inside (the kernel's). Never closed. */
dcn_io *dcn_io_posix(void);

/*
 * A folder and a bare name from a path: "a/b/c" is "c" in "a/b", "c" is "c" in ".". The folder is opened.
 *
 * @param name  [owned] free with dcn_free
 * @return DECANT_BAD_CALL for a path without a last component ("", "/", "a/", ".", "..")
 */
decant_status dcn_io_split(dcn_io *io, const char *path, dcn_dir **dir, char **name, decant_error *err);

/* Reads and opens a file by its path, following links. */
decant_status dcn_io_open(dcn_io *io, const char *path, unsigned flags, dcn_file **out, decant_error *err);

/*
 * An open descriptor of the caller's as a file for reading; duplicated. Only the system that the program runs on has them.
 */
decant_status dcn_file_from_fd(int fd, dcn_file **out, decant_error *err);

/* The wrappers: through the gate to the implementation. Errors gain the path. Optional slots: DECANT_UNSUPPORTED. */
decant_status dcn_io_open_dir(dcn_io *io, const char *path, dcn_dir **out, decant_error *err);
decant_status dcn_io_random(dcn_io *io, void *dst, size_t len, decant_error *err);
decant_status dcn_io_who(dcn_io *io, dcn_self *out, decant_error *err);

decant_status dcn_dir_open(dcn_dir *d, const char *name, unsigned flags, uint32_t mode, dcn_file **out,
                           decant_error *err);
decant_status dcn_dir_stat(dcn_dir *d, const char *name, dcn_facts *out, decant_error *err);
decant_status dcn_dir_readlink(dcn_dir *d, const char *name, char *out, size_t size, decant_error *err);
decant_status dcn_dir_list(dcn_dir *d, int (*found)(void *ctx, const char *name), void *ctx, decant_error *err);
decant_status dcn_dir_rename(dcn_dir *d, const char *name, const char *to, unsigned flags, decant_error *err);
decant_status dcn_dir_link(dcn_dir *d, const char *name, const char *to, decant_error *err);
decant_status dcn_dir_remove(dcn_dir *d, const char *name, decant_error *err);
void dcn_dir_discard(dcn_dir *d, const char *name); /* removes; a failure is ignored */
decant_status dcn_dir_sync(dcn_dir *d, decant_error *err);
decant_status dcn_dir_space(dcn_dir *d, dcn_space *out, decant_error *err);
decant_status dcn_dir_where(dcn_dir *d, char *out, size_t size, decant_error *err);
void dcn_dir_close(dcn_dir **d);

decant_status dcn_file_read(dcn_file *f, const dcn_range *r, size_t count, decant_error *err);
decant_status dcn_file_write(dcn_file *f, uint64_t at, const dcn_chunk *c, size_t count, decant_error *err);
decant_status dcn_file_resize(dcn_file *f, uint64_t len, decant_error *err);
decant_status dcn_file_sync(dcn_file *f, decant_error *err);
decant_status dcn_file_facts(dcn_file *f, dcn_facts *out, decant_error *err);
decant_status dcn_file_reserve(dcn_file *f, uint64_t at, uint64_t len, decant_error *err);
decant_status dcn_file_lock(dcn_file *f, decant_error *err);
decant_status dcn_file_resemble(dcn_file *f, dcn_file *old, decant_error *err);
decant_status dcn_file_copy(dcn_file *f, uint64_t at, dcn_file *from, uint64_t from_at, uint64_t len,
                            decant_error *err);
decant_status dcn_file_forget(dcn_file *f, decant_error *err);
decant_status dcn_file_clone(dcn_file *f, uint64_t at, dcn_file *from, uint64_t from_at, uint64_t len,
                             decant_error *err);
decant_status dcn_file_punch(dcn_file *f, uint64_t at, uint64_t len, decant_error *err);
decant_status dcn_file_extents(dcn_file *f, dcn_extents *out, decant_error *err);
decant_status dcn_file_data(dcn_file *f, uint64_t at, uint64_t *begin, uint64_t *end, decant_error *err);
decant_status dcn_file_alone(dcn_file *f, decant_error *err);
decant_status dcn_file_note(dcn_file *f, const char *text, decant_error *err);
decant_status dcn_file_read_note(dcn_file *f, char *out, size_t size, decant_error *err);
decant_status dcn_file_set_mtime(dcn_file *f, int64_t ns, decant_error *err);
void dcn_file_close(dcn_file **f);

/* "folder/name" for messages, or the name alone in ".". @return [owned] free with dcn_free; NULL without memory */
char *dcn_io_join(const char *folder, const char *name);

/* Whether two facts are of one file. */
bool dcn_facts_same_file(const dcn_facts *a, const dcn_facts *b);

#endif
