/*
 * What a format may look at: the bytes of a file, and a door to the files beside it. A name that comes out of a file opens
 * nothing but a file of that bare name in the folder of the file that says it.
 */
#ifndef DCN_FORMAT_INPUT_H
#define DCN_FORMAT_INPUT_H

#include "bytes/bytes.h"
#include "format/findings.h"

typedef struct dcn_input dcn_input;
struct dcn_input {
    decant_bytes *bytes; /* [lent] the whole file, buffer or range */
    const char *name;    /* as the caller wrote it: for messages */
    /* a file beside it; NULL: nothing is. Called through dcn_input_sibling(), which checks the name */
    decant_status (*sibling)(dcn_input *in, const char *name, dcn_input **out, decant_error *err);
    void (*close)(dcn_input *in); /* NULL: it is somebody's who closes it himself */
    struct dcn_beside *beside;    /* what else lies in the folder that was opened, if one was; set.h */
    char *part;                   /* the first part that was named where this is its index; else NULL */
    const dcn_findings *findings; /* [lent] who lists all faults; NULL: the first one is the failure to open it */
};

/* The last component of its name; "" if it has none. */
const char *dcn_input_base(const dcn_input *in);

/* Whether no character of it keeps a name of a file from being a bare one, on every system. */
bool dcn_input_name_is_plain(const char *name, size_t len);

/*
 * Opens a file beside `in`. Links: the name is looked up as it is, then followed, if what it leads to lies in the folder of
 * `in` or, where `in` is a link itself, in the folder where that ends; so the cache of the Hugging Face Hub, whose files are
 * links into one folder, opens, and nothing else does. A sibling has no siblings.
 *
 * @param name  a file's word, `len` bytes, followed by a NUL
 * @param out   [owned] close it; its bytes live on in what refers to them
 * @return DECANT_MALFORMED for what is no bare name, DECANT_NOT_FOUND, DECANT_DENIED for a link that leads elsewhere,
 *         DECANT_UNSUPPORTED if nothing is beside it, or no file, DECANT_LIMIT for too many open files; the error names
 *         the sibling, or `in` if there can be none
 */
decant_status dcn_input_sibling(dcn_input *in, const char *name, size_t len, dcn_input **out, decant_error *err);

/*
 * The file `name` in `dir`, links followed, with the files of `dir` beside it.
 *
 * @param dir   taken over on success
 * @param path  what the caller calls it; NULL: the folder's path and the name
 */
decant_status dcn_input_open(dcn_dir **dir, const char *name, const char *path, dcn_input **out, decant_error *err);

void dcn_beside_close(struct dcn_beside **beside);

/* Accepts a pointer to NULL. */
void dcn_input_close(dcn_input **in);

#endif
