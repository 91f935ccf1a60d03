/*
 * What giving files up promises, which code elsewhere cites by these numbers:
 *
 *  I1   Each byte of each source is at any time, and after any crash, in the source, durably in a part, or (what is held back)
 *       in READY; journal and files say which.
 *  I2   The name of an output holds the old file, the new one, or nothing if nothing was there: whole.
 *  I3   The outputs of one save change together.
 *  I4   No source is opened for writing, renamed or changed before every check has passed and BEGIN lasts.
 *  I5   What is not owned is never touched, nor what is behind a link or has a second name.
 *  I6   A part is not taken for a model: by its name, and as its first bytes are written last.
 *  I7   An error ends in "undone, all as before" or in "interrupted, can go on"; the status says which.
 *  I8   Recovery may be interrupted any number of times, at any call.
 *  I9   The space used beyond the inputs never exceeds what the plan has said.
 *  I10  Nothing is silent: what was done with each source, and why nothing better, is told.
 *  I11  A source that has begun to give up bytes opens under no name that a loader would try.
 *  I12  Undoing restores every source bit for bit, with its name, mode and time, at any moment before COMMIT.
 *
 * The records, and what follows each of them where the save ends there:
 *
 *     BEGIN ---> READY ---> MOVED ... ---> COMMIT ---> outputs get their names, sources go
 *       |          |          |
 *       |          +----------+---> ABORT ---> UNMOVED ... ---> sources have their bytes and names, parts go
 *       +---> parts go
 *
 * and the journal goes last. Without sources that are drained there is no READY, and COMMIT follows BEGIN.
 *
 *  (1) The file has its final size, and header and BEGIN are durable, before anything that BEGIN names exists: no later
 *      record needs room, and without a BEGIN that fits nothing has been changed.
 *  (2) A cell is one sector, which is there or is not. Each is chained to the one before it by its checksum; reading ends at
 *      the first that does not fit. (A read that fails is a failure, not an end; nor is a cell that no crash leaves.)
 *  (3) After a write or a sync that failed nothing more is put into it: a record behind a lost one would never be read.
 *  (4) A journal is a licence to rename and delete. It is believed only if it is a regular file with one name, reached
 *      without a link, owned by the caller and writable by nobody else, in a folder where nobody else can put it.
 *
 * All numbers are little-endian.
 *
 *     header   "DCNTJRN1" | u32 version | u32 0 | transaction 16 | boot 16 | u64 process | u64 cells | u64 checksum | zeros
 *     cell     u32 type | u32 cell | u64 bytes of the record | u64 of which these begin at | u64 checksum | 480 of them
 *
 * A checksum is XXH3 of the transaction, the checksum of the cell before, and the cell without its own.
 */
#include "pour/journal.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/alloc.h"
#include "base/chunk.h"
#include "base/ckd.h"
#include "base/endian.h"
#include "base/text.h"

#define MAGIC "DCNTJRN1"
#define ENDING ".decant-journal"

enum {
    VERSION = 1,
    CELL = DCN_JOURNAL_CELL,
    HEAD = 32, /* of a cell */
    LOAD = CELL - HEAD,
    CHECKSUM_AT = 24,  /* in a cell */
    HEADER_SIZE = 64,  /* what the checksum of the header covers stands before it */
    PIECE = 512,       /* cells */
    OTHERS_WRITE = 022 /* of a mode */
};

#define LARGEST (UINT64_C(256) << 20) /* bytes of a journal that is read */

/* --- names ------------------------------------------------------------------------------------------------------- */

decant_status dcn_journal_name(const char *name, char **out, decant_error *err)
{
    dcn_buf text = {0};
    decant_status rc;

    dcn_buf_put(&text, name, dcn_utf8_cut(name, strlen(name), DCN_NAME_MOST - (sizeof ENDING - 1)));
    dcn_buf_put(&text, ENDING, sizeof ENDING);
    if ((rc = dcn_buf_check(&text, err)))
        dcn_buf_close(&text);
    else
        *out = (char *)text.data;
    return rc;
}

bool dcn_journal_is_name(const char *name)
{
    size_t len = strlen(name), end = sizeof ENDING - 1;

    return len > end && strcmp(name + len - end, ENDING) == 0;
}

/* --- checksums --------------------------------------------------------------------------------------------------- */

static uint64_t checksum_of_header(const uint8_t *header)
{
    return XXH3_64bits(header, HEADER_SIZE);
}

static uint64_t checksum_of_cell(const dcn_journal *j, const uint8_t *cell)
{
    uint8_t all[DCN_TRANSACTION + 8 + CELL - 8];

    memcpy(all, j->transaction, DCN_TRANSACTION);
    dcn_put_le(all + DCN_TRANSACTION, j->chain, 8);
    memcpy(all + DCN_TRANSACTION + 8, cell, CHECKSUM_AT);
    memcpy(all + DCN_TRANSACTION + 8 + CHECKSUM_AT, cell + HEAD, LOAD);
    return XXH3_64bits(all, sizeof all);
}

/* --- belief ------------------------------------------------------------------------------------------------------ */

static decant_status doubt(decant_error *err, const char *why)
{
    decant_error_set(err, DECANT_DENIED, "a journal is not to be believed: %s", why);
    dcn_error_hint(err, "find out who put it there, and remove it if it is not yours");
    return DECANT_DENIED;
}

/* keeps (4) */
static decant_status believe(dcn_dir *dir, const dcn_facts *facts, decant_error *err)
{
    enum { ALL_WRITE = 02, STICKY = 01000 };
    dcn_facts folder;
    decant_status rc = dcn_dir_stat(dir, ".", &folder, err);

    if (rc)
        return rc;
    if (folder.mode & ALL_WRITE && !(folder.mode & STICKY))
        return doubt(err, "everybody may write to its folder");
    if (facts->kind != DCN_KIND_REGULAR)
        return doubt(err, "it is no regular file");
    if (!facts->mine)
        return doubt(err, "it is another user's");
    if (facts->mode & OTHERS_WRITE)
        return doubt(err, "others may write to it");
    if (facts->links != 1)
        return doubt(err, "it has another name too");
    return DECANT_OK;
}

/* Whether the name still is the file that is open. */
static decant_status check_name(const dcn_journal *j, const dcn_facts *facts, decant_error *err)
{
    dcn_facts named;
    decant_status rc = dcn_dir_stat(j->dir, j->name, &named, err);

    if (rc == DECANT_OK && !dcn_facts_same_file(&named, facts))
        rc = decant_error_set(err, DECANT_NOT_FOUND, "the journal is another one now");
    return rc;
}

uint64_t dcn_journal_cells(size_t len)
{
    return len / LOAD + (len % LOAD != 0 || len == 0);
}

/* --- writing ----------------------------------------------------------------------------------------------------- */

decant_status dcn_journal_create(dcn_journal *j, dcn_dir *dir, const char *last, decant_error *err)
{
    decant_status rc;

    *j = (dcn_journal){.dir = dir, .piece = PIECE};
    if ((rc = dcn_io_random(dir->io, j->transaction, sizeof j->transaction, err)))
        return rc;
    return dcn_journal_name(last, &j->name, err);
}

/* Cells on their way into the file, a piece of it at a time: a journal may be much longer than what is worth memory. */
typedef struct stream {
    dcn_journal *j;
    uint64_t at; /* the cell where the piece at hand begins */
    dcn_buf cells;
} stream;

/* All memory is had before the chain goes on. @param count  of cells that follow */
static decant_status begin_stream(stream *s, dcn_journal *j, uint64_t at, uint64_t count, decant_error *err)
{
    *s = (stream){.j = j, .at = at};
    dcn_buf_reserve(&s->cells, (size_t)dcn_min(count, j->piece) * CELL);
    return dcn_buf_check(&s->cells, err);
}

static decant_status flush(stream *s, decant_error *err)
{
    dcn_chunk chunk = {s->cells.data, s->cells.len};
    decant_status rc;

    if (!chunk.len)
        return DECANT_OK;
    assert(!s->j->broken); /* keeps (3) */
    rc = dcn_file_write(s->j->file, s->at * CELL, &chunk, 1, err);
    s->j->broken = rc != DECANT_OK;
    s->at += chunk.len / CELL;
    s->cells.len = 0;
    return rc;
}

static decant_status put_cell(stream *s, const uint8_t *cell, decant_error *err)
{
    dcn_buf_put(&s->cells, cell, CELL);
    return s->cells.len / CELL >= s->j->piece ? flush(s, err) : DECANT_OK;
}

static decant_status put_header(stream *s, decant_error *err)
{
    uint8_t header[CELL] = MAGIC;
    dcn_journal *j = s->j;

    dcn_put_le(header + 8, VERSION, 4);
    memcpy(header + 16, j->transaction, sizeof j->transaction);
    memcpy(header + 32, j->by.boot, sizeof j->by.boot);
    dcn_put_le(header + 48, j->by.process, 8);
    dcn_put_le(header + 56, j->cells, 8);
    j->chain = checksum_of_header(header);
    dcn_put_le(header + HEADER_SIZE, j->chain, 8);
    j->next = 1;
    return put_cell(s, header, err);
}

static decant_status put_record(stream *s, unsigned type, const dcn_buf *data, decant_error *err)
{
    dcn_journal *j = s->j;
    size_t at = 0;

    do {
        uint8_t cell[CELL] = {0};
        size_t part = (size_t)dcn_min(data->len - at, LOAD);
        decant_status rc;

        dcn_put_le(cell, type, 4);
        dcn_put_le(cell + 4, j->next++, 4);
        dcn_put_le(cell + 8, data->len, 8);
        dcn_put_le(cell + 16, at, 8);
        if (part)
            memcpy(cell + HEAD, data->data + at, part);
        j->chain = checksum_of_cell(j, cell);
        dcn_put_le(cell + CHECKSUM_AT, j->chain, 8);
        if ((rc = put_cell(s, cell, err)))
            return rc;
        at += part;
    } while (at < data->len);
    return DECANT_OK;
}

/* Room for what is put later. */
static decant_status put_zeros(stream *s, uint64_t count, decant_error *err)
{
    static const uint8_t zeros[CELL];
    decant_status rc = DECANT_OK;

    while (rc == DECANT_OK && count--)
        rc = put_cell(s, zeros, err);
    return rc;
}

static decant_status make_file(dcn_journal *j, decant_error *err)
{
    unsigned flags = DCN_READ | DCN_WRITE | DCN_CREATE_NEW | DCN_NO_FOLLOW | DCN_REWRITTEN;
    dcn_facts facts;
    decant_status rc = dcn_dir_open(j->dir, j->name, flags, 0600, &j->file, err);

    if (rc == DECANT_EXISTS) {
        rc = decant_error_set(err, DECANT_BUSY, "another save of it has begun");
        dcn_error_hint(err, "wait for it, or see decant recover");
    }
    if (rc)
        return rc;
    j->made = true;
    if ((rc = dcn_file_lock(j->file, err)) && rc != DECANT_UNSUPPORTED)
        return rc;
    if ((rc = dcn_file_facts(j->file, &facts, err)))
        return rc;
    if ((rc = check_name(j, &facts, err))) {
        j->made = rc != DECANT_NOT_FOUND; /* what has the name now is another's, and stays */
        return rc;
    }
    return believe(j->dir, &facts, err);
}

decant_status dcn_journal_begin(dcn_journal *j, const dcn_buf *begin, uint64_t more, decant_error *err)
{
    stream s = {0};
    decant_status rc;

    if ((rc = dcn_buf_check(begin, err)) || (rc = dcn_io_who(j->dir->io, &j->by, err)))
        return rc;
    j->cells = 1 + dcn_journal_cells(begin->len) + more;
    if ((rc = begin_stream(&s, j, 0, j->cells, err)) || (rc = make_file(j, err)))
        goto done;
    /* keeps (1) */
    if ((rc = put_header(&s, err)) || (rc = put_record(&s, DCN_RECORD_BEGIN, begin, err)) ||
        (rc = put_zeros(&s, more, err)) || (rc = flush(&s, err)) || (rc = dcn_journal_sync(j, err)))
        goto done;
    rc = dcn_dir_sync(j->dir, err);
done:
    dcn_buf_close(&s.cells);
    return rc;
}

decant_status dcn_journal_put(dcn_journal *j, dcn_record_type type, const dcn_buf *data, decant_error *err)
{
    stream s;
    decant_status rc;

    if ((rc = dcn_buf_check(data, err)))
        return rc;
    if (dcn_journal_cells(data->len) > j->cells - j->next)
        return decant_error_set(err, DECANT_NO_SPACE, "the journal is full");
    if ((rc = begin_stream(&s, j, j->next, dcn_journal_cells(data->len), err)) == DECANT_OK &&
        (rc = put_record(&s, type, data, err)) == DECANT_OK)
        rc = flush(&s, err);
    dcn_buf_close(&s.cells);
    return rc;
}

decant_status dcn_journal_sync(dcn_journal *j, decant_error *err)
{
    decant_status rc;

    assert(!j->broken); /* keeps (3) */
    rc = dcn_file_sync(j->file, err);
    j->broken = rc != DECANT_OK;
    return rc;
}

decant_status dcn_journal_end(dcn_journal *j, decant_error *err)
{
    decant_status rc;

    dcn_file_close(&j->file); /* before its name goes: NFS keeps open files under another one */
    rc = j->made ? dcn_dir_remove(j->dir, j->name, err) : DECANT_OK;
    j->made = false;
    return rc;
}

void dcn_journal_discard(dcn_journal *j)
{
    dcn_journal_end(j, NULL);
}

/* --- reading ----------------------------------------------------------------------------------------------------- */

static decant_status no_journal(decant_error *err, const char *why)
{
    decant_error_set(err, DECANT_MALFORMED, "this is no journal of decant's: %s", why);
    dcn_error_hint(err, "if you know what it is, move it away");
    return DECANT_MALFORMED;
}

decant_status dcn_journal_damaged(decant_error *err, const char *why)
{
    decant_error_set(err, DECANT_MALFORMED, "this journal is damaged: %s", why);
    dcn_error_hint(err,
                   "nothing was touched: save again under another name, then remove it and its files, which end in "
                   ".jpart");
    return DECANT_MALFORMED;
}

/* All of it, from the medium. */
static decant_status read_content(dcn_journal *j, uint64_t size, decant_error *err)
{
    dcn_range range = {.at = 0, .len = (size_t)size};
    decant_status rc;

    if (size > LARGEST)
        return no_journal(err, "it is too long");
    range.dst = dcn_buf_reserve(&j->content, (size_t)size);
    if ((rc = dcn_buf_check(&j->content, err)))
        return rc;
    rc = dcn_file_forget(j->file, err);
    if (rc && rc != DECANT_UNSUPPORTED)
        return rc;
    if ((rc = dcn_file_read(j->file, &range, 1, err)))
        return rc;
    dcn_buf_advance(&j->content, (size_t)size);
    return DECANT_OK;
}

/* The header, if it was written at all: else there are no cells. */
static decant_status read_header(dcn_journal *j, decant_error *err)
{
    const uint8_t *header = j->content.data;
    uint32_t version;
    decant_status rc;

    j->next = 1;
    j->cells = 0;
    if (j->content.len < CELL)
        return dcn_is_zero(header, j->content.len) ? DECANT_OK : no_journal(err, "it is too short");
    if (dcn_is_zero(header, CELL))
        return DECANT_OK;
    if (memcmp(header, MAGIC, sizeof MAGIC - 1) != 0)
        return no_journal(err, "it begins with something else");
    version = dcn_le32(header + 8);
    if (version > VERSION) {
        rc = decant_error_set(err, DECANT_UNSUPPORTED, "a later version of decant has written this journal");
        dcn_error_found(err, "journal version %" PRIu32, version);
        dcn_error_expected(err, "at most %d", VERSION);
        dcn_error_hint(err, "recover with that version");
        return rc;
    }
    j->chain = checksum_of_header(header);
    if (dcn_le64(header + HEADER_SIZE) != j->chain)
        return no_journal(err, "its header is damaged");
    memcpy(j->transaction, header + 16, sizeof j->transaction);
    memcpy(j->by.boot, header + 32, sizeof j->by.boot);
    j->by.process = dcn_le64(header + 48);
    j->cells = dcn_min(dcn_le64(header + 56), j->content.len / CELL);
    j->cut = j->cells < dcn_le64(header + 56);
    return DECANT_OK;
}

decant_status dcn_journal_open(dcn_journal *j, dcn_dir *dir, const char *name, bool to_act, bool *live,
                               decant_error *err)
{
    dcn_facts facts;
    decant_status rc;

    *j = (dcn_journal){.dir = dir, .piece = PIECE};
    *live = false;
    if (!(j->name = dcn_strndup(name, strlen(name))))
        return dcn_error_nomem(err);
    /* looked at before it is opened, too: opening may wait, or do something, where it is no file */
    if ((rc = dcn_dir_stat(dir, name, &facts, err)) || (rc = believe(dir, &facts, err)) ||
        (rc = dcn_dir_open(dir, name, DCN_READ | (to_act ? DCN_WRITE : 0) | DCN_NO_FOLLOW, 0, &j->file, err)) ||
        (rc = dcn_file_facts(j->file, &facts, err)) || (rc = believe(dir, &facts, err)))
        return rc;
    rc = dcn_file_lock(j->file, err);
    *live = rc == DECANT_BUSY;
    j->lockless = rc == DECANT_UNSUPPORTED;
    if (rc && rc != DECANT_UNSUPPORTED && !*live)
        return rc;
    if ((rc = check_name(j, &facts, err)) || (rc = dcn_file_facts(j->file, &facts, err)) ||
        (rc = read_content(j, facts.size, err)) || (rc = read_header(j, err)))
        return rc;
    j->made = true;
    /* what a killed process has left in the cache alone is made true before anything is built upon it */
    return to_act && !*live && (rc = dcn_file_sync(j->file, err)) ? rc : DECANT_OK;
}

/* The cell that is next, if it fits and goes on with `record`, of which there are `len` bytes. keeps (2) */
static const uint8_t *take_cell(dcn_journal *j, const dcn_record *record, size_t len)
{
    const uint8_t *cell = j->content.data + j->next * CELL;
    uint64_t sum;

    if (j->next >= j->cells || dcn_le32(cell) == DCN_RECORD_NONE || dcn_le32(cell + 4) != (uint32_t)j->next)
        return NULL;
    sum = checksum_of_cell(j, cell);
    if (dcn_le64(cell + CHECKSUM_AT) != sum)
        return NULL;
    if ((record->type && dcn_le32(cell) != record->type) || dcn_le64(cell + 16) != len)
        return NULL;
    j->chain = sum;
    j->next++;
    return cell;
}

decant_status dcn_journal_next(dcn_journal *j, dcn_record *out, decant_error *err)
{
    uint64_t len = 0, first = j->next, chain = j->chain;

    *out = (dcn_record){0};
    j->payload.len = 0;
    do {
        const uint8_t *cell = take_cell(j, out, j->payload.len);

        if (!cell) { /* what is put next stands where this record began, or would never be read */
            *out = (dcn_record){0};
            j->stopped = j->next;
            j->next = first;
            j->chain = chain;
            return DECANT_OK;
        }
        out->type = dcn_le32(cell);
        len = dcn_le64(cell + 8);
        dcn_buf_put(&j->payload, cell + HEAD, (size_t)dcn_min(len - j->payload.len, LOAD));
    } while (j->payload.len < len && !j->payload.failed);
    out->data = j->payload.data;
    out->len = j->payload.len;
    return dcn_buf_check(&j->payload, err);
}

decant_status dcn_journal_check_unbegun(const dcn_journal *j, decant_error *err)
{
    for (size_t at = CELL; at + CELL <= j->content.len; at += CELL) {
        uint32_t type = dcn_le32(j->content.data + at);

        if (type != DCN_RECORD_NONE && type != DCN_RECORD_BEGIN)
            return no_journal(err, "what it begins with is damaged, and something follows it");
    }
    return DECANT_OK;
}

/* Whether a crash leaves a cell behind the one at which reading has stopped: of the same record, or a mark of the same sync. */
static bool may_be_torn(const dcn_journal *j, uint64_t number, uint64_t together)
{
    uint32_t type = dcn_le32(j->content.data + number * CELL);

    if (type == DCN_RECORD_NONE)
        return true;
    if (j->stopped > j->next)
        return type == dcn_le32(j->content.data + j->next * CELL);
    return type == DCN_RECORD_MOVED ? number - j->stopped < together
                                    : dcn_le64(j->content.data + number * CELL + 16) > 0;
}

/*
 * Behind BEGIN there are zeros that last until they are written over: a crash leaves those, or the rest of a record whose
 * beginning is not there. Anything else was a record, and it may have been COMMIT.
 */
decant_status dcn_journal_check_end(const dcn_journal *j, uint64_t together, decant_error *err)
{
    const uint8_t *cell = j->content.data + j->stopped * CELL;
    uint64_t at;

    if (j->stopped >= j->cells)
        return DECANT_OK;
    at = dcn_le64(cell + 16);
    if (dcn_le32(cell) != DCN_RECORD_NONE && (!at || at % LOAD))
        return dcn_journal_damaged(err, "a record of it does not fit its checksum");
    for (uint64_t i = j->stopped; i < j->cells; i++)
        if (!may_be_torn(j, i, together))
            return dcn_journal_damaged(err, "a record of it is missing");
    return DECANT_OK;
}

decant_status dcn_journal_trim(dcn_journal *j, decant_error *err)
{
    size_t from = (size_t)j->next * CELL, len = j->cells > j->next ? (size_t)(j->cells - j->next) * CELL : 0;
    stream s;
    decant_status rc;

    if (!len || dcn_is_zero(j->content.data + from, len))
        return DECANT_OK;
    if ((rc = begin_stream(&s, j, j->next, j->cells - j->next, err)) == DECANT_OK &&
        (rc = put_zeros(&s, j->cells - j->next, err)) == DECANT_OK && (rc = flush(&s, err)) == DECANT_OK)
        rc = dcn_journal_sync(j, err);
    dcn_buf_close(&s.cells);
    return rc;
}

void dcn_journal_close(dcn_journal *j)
{
    dcn_file_close(&j->file);
    dcn_buf_close(&j->content);
    dcn_buf_close(&j->payload);
    dcn_free(&j->name);
}
