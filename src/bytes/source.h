/*
 * A source: one inode that is read, opened once, with the identity it had then. The one place where model files are read,
 * unless they are on their way into an output (pour/given.h): then nobody else reads them.
 */
#ifndef DCN_SOURCE_H
#define DCN_SOURCE_H

#include <decant/model.h>

#include "io/io.h"

typedef struct dcn_source dcn_source;

/*
 * Opens a file for reading, links followed. A folder, FIFO or device is refused by name.
 *
 * @param io   [lent] outlives the source
 * @param out  [owned] one reference
 */
decant_status dcn_source_open(dcn_io *io, const char *path, dcn_source **out, decant_error *err);

/* A file that is open already, known by `path`. Takes it over on success. */
decant_status dcn_source_from_file(dcn_file **file, const char *path, dcn_source **out, decant_error *err);

/* The refusal of what is no regular file: DECANT_UNSUPPORTED. */
decant_status dcn_source_refuse(dcn_kind kind, decant_error *err);

/* A reader of the caller's, copied. `name` is for messages. */
decant_status dcn_source_from_reader(const decant_reader *reader, const char *name, dcn_source **out,
                                     decant_error *err);

/*
 * Reads ranges, all or none. Neighbours are read together: ranges are sorted, and gaps of up to a few KiB between them are
 * read and thrown away, so that many small ranges cost few calls. A range past the end is TRUNCATED.
 *
 * @param ranges  sorted in place
 */
decant_status dcn_source_read(dcn_source *source, dcn_range *ranges, size_t count, decant_error *err);

/*
 * Copies a range to a file without a detour through the process, if the system can.
 *
 * @return DECANT_UNSUPPORTED: read all of it and write it instead; or a failure of the target's
 */
decant_status dcn_source_copy(dcn_source *source, uint64_t at, uint64_t len, dcn_file *to, uint64_t to_at,
                              decant_error *err);

/* Shares whole blocks with a file. @return DECANT_UNSUPPORTED: nothing was done; or a failure of the target's */
decant_status dcn_source_clone(dcn_source *source, uint64_t at, uint64_t len, dcn_file *to, uint64_t to_at,
                               decant_error *err);

/* Bytes, as of opening. */
uint64_t dcn_source_size(const dcn_source *source);

/* The path or name it was opened with, for messages and reports. */
const char *dcn_source_path(const dcn_source *source);

/* Facts as of opening; NULL if it is a reader and has none. */
const dcn_facts *dcn_source_facts(const dcn_source *source);

/* DECANT_CHANGED, with found and expected, if size or time are not what they were at opening. */
decant_status dcn_source_check(dcn_source *source, decant_error *err);

/* Each of several. */
decant_status dcn_sources_check(dcn_source *const *sources, size_t count, decant_error *err);

/* What a file holds that must not be lost when it is given up. */
typedef struct dcn_claim {
    enum { DCN_CLAIM_TENSOR, DCN_CLAIM_TEXT, DCN_CLAIM_SCALAR, DCN_CLAIM_SKIPPED } kind; /* SKIPPED: in no model */
    const char *name; /* of a tensor, the key of a value, or what was skipped; in the source's memory */
    size_t name_len;
    union {
        struct {
            uint64_t at, len; /* of a tensor, in the source; 0: it is empty */
        };
        uint64_t print; /* of a value: dcn_value_print() */
    };
} dcn_claim;

/*
 * The caller has said that it may be given up: the first of two keys. And what it holds then; of what is found through it, as
 * the shards of a set are, the same is said.
 */
void dcn_source_own(dcn_source *source);
bool dcn_source_is_owned(const dcn_source *source);
decant_status dcn_source_claim(dcn_source *source, const dcn_claim *claim, decant_error *err); /* the name is copied */
size_t dcn_source_claims(const dcn_source *source, const dcn_claim **out);                     /* [lent] */

/*
 * Whether its blocks are another file's too, and how long they are; whether nobody else has it open; its lock, until its file is
 * closed. As of files.
 */
decant_status dcn_source_extents(dcn_source *source, dcn_extents *out, decant_error *err);
decant_status dcn_source_alone(dcn_source *source, decant_error *err);
decant_status dcn_source_lock(dcn_source *source, decant_error *err);

/* It is read through this file from now on, which is the same inode and is taken over; the one that it had is closed. */
void dcn_source_swap(dcn_source *source, dcn_file **file);

/* It gives up its bytes: who reads it meanwhile is refused with DECANT_BUSY. And it is whole again. */
void dcn_source_give(dcn_source *source);
void dcn_source_keep(dcn_source *source);

/*
 * It is no more: its file is closed.
 *
 * @param path   of what has its bytes; copied; NULL: not known
 * @param moved  reads these from where they are now; copied and released with the source. NULL: who reads it is told the path
 */
void dcn_source_end(dcn_source *source, const char *path, const decant_reader *moved);

/* Since then: the path, or "". NULL: it is still there. */
const char *dcn_source_moved_to(const dcn_source *source);

/*
 * Of a file that was opened by its name in `dir`, or looked at, with `rc`: that it is not given up. Where there is none it may
 * have its other name; where it has that, a note may be beside it.
 *
 * @return DECANT_INTERRUPTED: it may be incomplete; else `rc`
 */
decant_status dcn_source_check_given(dcn_dir *dir, const char *name, decant_status rc, decant_error *err);

dcn_source *dcn_source_ref(dcn_source *source);
void dcn_source_unref(dcn_source **source);

#endif
