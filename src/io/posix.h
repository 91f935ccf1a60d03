/*
 * What the files share that speak to the system the program runs on: posix.c (failures, and the system as a whole),
 * posix_dir.c (folders and names), posix_file.c (bytes), posix_space.c (blocks) and posix_facts.c (what a file is, and whose).
 * They alone know errno: a failing call becomes a status, the system's own words, and the code, here and nowhere else. Every loop over
 * short transfers and interruptions is here too; the tests put their own functions in the place of the system's when they
 * link, and so make both happen. Included first: it says which of the system's functions are wanted.
 */
#ifndef DCN_IO_POSIX_H
#define DCN_IO_POSIX_H

#define _GNU_SOURCE
#define _DARWIN_C_SOURCE
#if !defined(__LP64__)
#define _FILE_OFFSET_BITS 64
#endif

#include "io/io.h"

#include <errno.h>
#include <stdatomic.h>

#include "base/ckd.h"

typedef struct dcn_posix_file {
    dcn_file base;
    int fd;
    bool attributes;      /* mode, owner, times and the like wait for a full sync */
    atomic_bool uncached; /* try RWF_DONTCACHE; cleared by the first refusal, and nothing depends on its order */
    bool once;
} dcn_posix_file;

static inline dcn_posix_file *dcn_posix_file_of(dcn_file *f)
{
    return (dcn_posix_file *)f;
}

/* What a code of the system's means for a call. */
decant_status dcn_posix_status(dcn_verb verb, int code);

/* The failure of the call just made, from errno. */
decant_status dcn_posix_failed(dcn_verb verb, decant_error *err);

/* Likewise, if `result` is not 0. */
decant_status dcn_posix_outcome(dcn_verb verb, int result, decant_error *err);

/* Files cannot be longer than this; the system's offsets are signed. */
static inline bool dcn_posix_too_far(uint64_t at, uint64_t len)
{
    return dcn_outside(at, len, INT64_MAX);
}

/* The failure of a call that was not made, since it goes too far. */
decant_status dcn_posix_refuse_far(dcn_verb verb, decant_error *err);

/* Which file system a file or folder is on: its magic number, as in linux/magic.h. 0: not known. */
unsigned dcn_posix_system(int fd);

/* Data and all attributes of a file or folder, down to the medium. 0, or -1 and errno. */
int dcn_posix_sync_all(int fd);

/* Of the open file itself if `name` is empty. 0, or -1 and errno. */
int dcn_posix_look(int fd, const char *name, dcn_facts *out);

/* Slots of dcn_file_ops. */
decant_status dcn_posix_resemble(dcn_file *file, dcn_file *old, decant_error *err);
decant_status dcn_posix_note(dcn_file *file, const char *text, decant_error *err);
decant_status dcn_posix_read_note(dcn_file *file, char *out, size_t size, decant_error *err);
decant_status dcn_posix_set_mtime(dcn_file *file, int64_t ns, decant_error *err);
decant_status dcn_posix_alone(dcn_file *file, decant_error *err);
decant_status dcn_posix_reserve(dcn_file *file, uint64_t at, uint64_t len, decant_error *err);
decant_status dcn_posix_clone(dcn_file *file, uint64_t at, dcn_file *source, uint64_t source_at, uint64_t len,
                              decant_error *err);
decant_status dcn_posix_punch(dcn_file *file, uint64_t at, uint64_t len, decant_error *err);
decant_status dcn_posix_extents(dcn_file *file, dcn_extents *out, decant_error *err);
decant_status dcn_posix_data(dcn_file *file, uint64_t at, uint64_t *begin, uint64_t *end, decant_error *err);

/* An open file. Takes over `fd` and `path`, also on failure. @param out [owned] */
decant_status dcn_posix_file_new(dcn_io *io, int fd, char *path, unsigned flags, dcn_file **out, decant_error *err);

/* dcn_io_ops.open_dir */
decant_status dcn_posix_open_dir(dcn_io *io, const char *path, dcn_dir **out, decant_error *err);

#endif
