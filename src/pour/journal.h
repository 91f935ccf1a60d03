/*
 * A save's memory across a crash: a file beside the output that gets its name last, of cells that are appended and never
 * changed. What the records mean is not its business: intent.h has BEGIN and COMMIT.
 *
 *     header | BEGIN | records | zeros
 */
#ifndef DCN_JOURNAL_H
#define DCN_JOURNAL_H

#include "base/buf.h"
#include "io/io.h"

/* In the order in which they may follow each other. Stable: they are on disks. */
typedef enum dcn_record_type {
    DCN_RECORD_NONE = 0, /* there is no more */
    DCN_RECORD_BEGIN = 1,
    DCN_RECORD_READY = 2,   /* all is written but what is drained */
    DCN_RECORD_MOVED = 3,   /* a source, up to here */
    DCN_RECORD_ABORT = 4,   /* from here on it goes back */
    DCN_RECORD_UNMOVED = 5, /* a source, down to here */
    DCN_RECORD_COMMIT = 6
} dcn_record_type;

enum {
    DCN_TRANSACTION = 16,  /* bytes that tell one save from all others */
    DCN_JOURNAL_CELL = 512 /* bytes of a cell: a sector */
};

typedef struct dcn_journal {
    dcn_dir *dir; /* [lent] */
    char *name;
    uint8_t transaction[DCN_TRANSACTION];
    dcn_self by; /* who wrote it */
    dcn_file *file;
    uint64_t cells;           /* in all, the header among them */
    uint64_t piece;           /* cells that are written together, at most */
    uint64_t next;            /* the cell that is written or read next */
    uint64_t chain;           /* checksum of the cell before it */
    uint64_t stopped;         /* the cell that ended the reading: it does not fit what stands before it */
    bool cut;                 /* shorter than it was made: what is behind its end is lost, if it ever was there */
    bool made;                /* by us, and goes with us */
    bool lockless;            /* the file system has no locks: whether a save is under way cannot be told */
    bool broken;              /* a write or sync failed: nothing more is put into it */
    dcn_buf content, payload; /* while it is read: all of it; of the last record */
} dcn_journal;

/* One record. */
typedef struct dcn_record {
    unsigned type;
    const uint8_t *data; /* [lent] until the next one is read */
    size_t len;
} dcn_record;

/* "<name>.decant-journal", the name cut where that is too long. @param out [owned] */
decant_status dcn_journal_name(const char *name, char **out, decant_error *err);

/* Whether a file may be a journal, by its name. */
bool dcn_journal_is_name(const char *name);

/*
 * A new journal, nothing of which exists yet, for outputs of which `last` gets its name last.
 *
 * @param dir  [lent] outlives it
 */
decant_status dcn_journal_create(dcn_journal *j, dcn_dir *dir, const char *last, decant_error *err);

/* Cells that a record of `len` bytes takes. */
uint64_t dcn_journal_cells(size_t len);

/*
 * Makes the file with header and BEGIN, and room for `more` cells behind them; all of it durable. Nothing that BEGIN names may
 * exist before.
 *
 * @return DECANT_BUSY if there is a journal of this name; DECANT_DENIED where nobody would believe it afterwards
 */
decant_status dcn_journal_begin(dcn_journal *j, const dcn_buf *begin, uint64_t more, decant_error *err);

/* Appends a record. It is durable after the next sync. Neither is repeated after a failure. */
decant_status dcn_journal_put(dcn_journal *j, dcn_record_type type, const dcn_buf *data, decant_error *err);
decant_status dcn_journal_sync(dcn_journal *j, decant_error *err);

/* The save is over, one way or the other: removes the file. */
decant_status dcn_journal_end(dcn_journal *j, decant_error *err);
void dcn_journal_discard(dcn_journal *j); /* the same; a failure is ignored */

/*
 * Reads a journal that another process, or another life, has written; from the medium, not from the cache. `to_act`: it is
 * going to be acted upon, and made durable first.
 *
 * @param live  the process that writes it is at work: what is read may be incomplete
 * @return DECANT_DENIED if it is not to be believed, DECANT_MALFORMED if it is none, DECANT_UNSUPPORTED if a later version
 *         of decant has written it, DECANT_NOT_FOUND
 */
decant_status dcn_journal_open(dcn_journal *j, dcn_dir *dir, const char *name, bool to_act, bool *live,
                               decant_error *err);

/* The next record; of type NONE where there is none that fits. One of which a cell is missing does not count. */
decant_status dcn_journal_next(dcn_journal *j, dcn_record *out, decant_error *err);

/*
 * Where BEGIN does not fit: that nothing but it was ever written, so that nothing has been changed.
 *
 * @return DECANT_MALFORMED
 */
decant_status dcn_journal_check_unbegun(const dcn_journal *j, decant_error *err);

/*
 * Where the last record behind BEGIN was read: that it is the last, and not the last that can be read.
 *
 * @param together  marks that one sync makes durable, at most: of these a power cut may leave any
 * @return DECANT_MALFORMED
 */
decant_status dcn_journal_check_end(const dcn_journal *j, uint64_t together, decant_error *err);

/* That a journal says less than it did. */
decant_status dcn_journal_damaged(decant_error *err, const char *why);

/*
 * Before anything is put behind the last record that was read: what is there (records behind one that a power cut has lost)
 * goes, so that it is never taken for something that belongs to what is put there.
 */
decant_status dcn_journal_trim(dcn_journal *j, decant_error *err);

void dcn_journal_close(dcn_journal *j);

#endif
