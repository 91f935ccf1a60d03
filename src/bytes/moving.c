#include "bytes/moving.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/chunk.h"
#include "base/ckd.h"

#define ENDING ".moving"
#define NOTE_ENDING ".decant"
#define MAGIC "DCNTNOTE" /* of a note in a file; then the path of the journal with its NUL */

enum { HEAD = sizeof MAGIC - 1 };

static decant_status put_ending(const char *name, const char *ending, char **out, decant_error *err)
{
    size_t len = strlen(name), most = DCN_NAME_MOST - strlen(ending);
    dcn_buf text = {0};
    decant_status rc;

    if (len > most) {
        name += len - most;
        while (((uint8_t)*name & 0xC0) == 0x80)
            name++;
    }
    dcn_buf_text(&text, name);
    dcn_buf_put(&text, ending, strlen(ending) + 1);
    if ((rc = dcn_buf_check(&text, err)))
        dcn_buf_close(&text);
    else
        *out = (char *)text.data;
    return rc;
}

decant_status dcn_moving_name(const char *name, char **out, decant_error *err)
{
    return put_ending(name, ENDING, out, err);
}

size_t dcn_moving_base(const char *name)
{
    size_t len = strlen(name), end = sizeof ENDING - 1;

    return len > end && strcmp(name + len - end, ENDING) == 0 ? len - end : 0;
}

/* --- the file beside it ---------------------------------------------------------------------------------------------- */

/* What is there under its name. A crash may have left it empty, or full of zeros. @param text  NUL-terminated */
static decant_status look_beside(dcn_dir *dir, const char *name, bool *ours, char text[DCN_MOVING_NOTE],
                                 decant_error *err)
{
    uint8_t head[HEAD] = {0};
    dcn_file *file = NULL;
    dcn_facts facts;
    dcn_range ranges[2];
    decant_status rc = dcn_dir_stat(dir, name, &facts, err);

    *ours = false;
    memset(text, 0, DCN_MOVING_NOTE);
    if (rc || facts.kind != DCN_KIND_REGULAR || !facts.mine || facts.size > HEAD + DCN_MOVING_NOTE)
        return rc;
    ranges[0] = (dcn_range){0, head, (size_t)dcn_min(facts.size, HEAD)};
    ranges[1] = (dcn_range){HEAD, text, (size_t)facts.size - ranges[0].len};
    if ((rc = dcn_dir_open(dir, name, DCN_READ | DCN_NO_FOLLOW, 0, &file, err)) == DECANT_OK)
        rc = dcn_file_read(file, ranges, facts.size > HEAD ? 2 : 1, err);
    dcn_file_close(&file);
    text[DCN_MOVING_NOTE - 1] = '\0';
    *ours = rc == DECANT_OK && (dcn_is_zero(head, HEAD) || memcmp(head, MAGIC, HEAD) == 0);
    return rc;
}

static decant_status drop_beside(dcn_dir *dir, const char *name, decant_error *err)
{
    char text[DCN_MOVING_NOTE];
    bool ours;
    decant_status rc = look_beside(dir, name, &ours, text, err);

    if (rc == DECANT_OK && ours)
        rc = dcn_dir_remove(dir, name, err);
    return rc == DECANT_NOT_FOUND ? DECANT_OK : rc;
}

/* A file of somebody else's stays. */
static void try_beside(dcn_dir *dir, const char *name, const char *journal)
{
    dcn_chunk chunks[] = {{MAGIC, HEAD}, {journal, strlen(journal) + 1}};
    dcn_file *file = NULL;
    bool whole;

    if (drop_beside(dir, name, NULL) ||
        dcn_dir_open(dir, name, DCN_WRITE | DCN_CREATE_NEW | DCN_NO_FOLLOW, 0600, &file, NULL))
        return;
    whole = dcn_file_write(file, 0, chunks, 2, NULL) == DECANT_OK;
    dcn_file_close(&file);
    if (!whole)
        dcn_dir_discard(dir, name);
}

/* --- the note ---------------------------------------------------------------------------------------------------------- */

bool dcn_moving_note(dcn_dir *dir, const char *moving, dcn_file *file, const char *journal)
{
    char *name = NULL;

    if (strlen(journal) >= DCN_MOVING_NOTE)
        return false;
    if (dcn_file_note(file, journal, NULL) == DECANT_OK)
        return true;
    if (put_ending(moving, NOTE_ENDING, &name, NULL) == DECANT_OK)
        try_beside(dir, name, journal);
    dcn_free(&name);
    return false;
}

decant_status dcn_moving_drop_note(dcn_dir *dir, const char *moving, dcn_file *file, decant_error *err)
{
    char *name = NULL;
    decant_status rc = file ? dcn_file_note(file, NULL, err) : DECANT_OK;

    if ((rc && rc != DECANT_UNSUPPORTED) || (rc = put_ending(moving, NOTE_ENDING, &name, err)))
        return rc;
    rc = drop_beside(dir, name, err);
    dcn_free(&name);
    return rc;
}

decant_status dcn_moving_read_note(dcn_dir *dir, const char *moving, dcn_file *file, char out[DCN_MOVING_NOTE],
                                   decant_error *err)
{
    char *name = NULL;
    bool ours = false;
    decant_status rc = dcn_file_read_note(file, out, DCN_MOVING_NOTE, err);

    if (rc != DECANT_NOT_FOUND && rc != DECANT_UNSUPPORTED)
        return rc;
    if ((rc = put_ending(moving, NOTE_ENDING, &name, err)))
        return rc;
    rc = look_beside(dir, name, &ours, out, err);
    dcn_free(&name);
    return rc == DECANT_OK && (!ours || !out[0]) ? decant_error_set(err, DECANT_NOT_FOUND, "nothing is noted on it")
                                                 : rc;
}
