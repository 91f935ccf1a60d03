#include "format/input.h"

#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

enum {
    LINK_MOST = 4096, /* bytes of a path that a link holds */
    HOPS = 40         /* links in a row, as Linux has it */
};

/* A file in a folder. */
typedef struct file_input {
    dcn_input base;
    char *path;    /* base.name */
    dcn_dir *dir;  /* where it lies by its name; NULL: a sibling, which has none */
    char *name;    /* in `dir` */
    dcn_dir *home; /* where the links at its name end; NULL: not known yet, or in `dir` */
    bool followed; /* it is known */
} file_input;

/* --- names ------------------------------------------------------------------------------------------------------- */

bool dcn_input_name_is_plain(const char *name, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)name[i] < ' ' || name[i] == 0x7f || name[i] == '/' || name[i] == '\\')
            return false;
    return len < 2 || name[1] != ':'; /* a drive */
}

/* Whether it names a file of a folder, and nothing else, on every system. */
static bool is_bare(const char *name, size_t len)
{
    return len > 0 && len <= DCN_NAME_MOST && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
           dcn_input_name_is_plain(name, len);
}

const char *dcn_input_base(const dcn_input *in)
{
    const char *slash = in->name ? strrchr(in->name, '/') : NULL;

    return slash ? slash + 1 : in->name ? in->name : "";
}

/* --- links ------------------------------------------------------------------------------------------------------- */

/* Opens the folder that a link in `dir` leads into. @param last [owned] the name there */
static decant_status step(const dcn_dir *dir, const char *to, dcn_dir **folder, char **last, decant_error *err)
{
    char *path = to[0] == '/' ? dcn_strndup(to, strlen(to)) : dcn_io_join(dir->path, to);
    decant_status rc = path ? dcn_io_split(dir->io, path, folder, last, err) : dcn_error_nomem(err);

    dcn_free(&path);
    return rc;
}

/*
 * The folder and the name where the links at `name` in `dir` end; there need not be a file. What is learned is only where
 * to look: the file is opened by its bare name in a folder that was compared, and as no link.
 *
 * @param folder  [owned] NULL if `name` is no link
 * @param last    [owned]
 */
static decant_status follow(dcn_dir *dir, const char *name, dcn_dir **folder, char **last, decant_error *err)
{
    dcn_dir *here = NULL, *next = NULL;
    char *at = dcn_strndup(name, strlen(name)), *next_at = NULL;
    char to[LINK_MOST];
    dcn_facts facts;
    decant_status rc = at ? DECANT_OK : dcn_error_nomem(err);

    for (int hops = 0; !rc; hops++) {
        dcn_dir *in = here ? here : dir;

        if ((rc = dcn_dir_stat(in, at, &facts, err)) || facts.kind != DCN_KIND_LINK)
            break;
        if (hops == HOPS) {
            rc = decant_error_set(err, DECANT_DENIED, "links lead to links without end");
            break;
        }
        if ((rc = dcn_dir_readlink(in, at, to, sizeof to, err)) || (rc = step(in, to, &next, &next_at, err)))
            break;
        dcn_dir_close(&here);
        dcn_free(&at);
        here = next;
        at = next_at;
        next = NULL;
        next_at = NULL;
    }
    if (rc == DECANT_OK) {
        *folder = here;
        *last = at;
        return DECANT_OK;
    }
    dcn_dir_close(&here);
    dcn_free(&at);
    return rc;
}

static decant_status same_folder(dcn_dir *a, dcn_dir *b, bool *same, decant_error *err)
{
    dcn_facts of_a, of_b;
    decant_status rc;

    if ((rc = dcn_dir_stat(a, ".", &of_a, err)) || (rc = dcn_dir_stat(b, ".", &of_b, err)))
        return rc;
    *same = dcn_facts_same_file(&of_a, &of_b);
    return DECANT_OK;
}

/* Whether a file in `folder` may stand for one beside `in`. */
static decant_status check_folder(file_input *in, dcn_dir *folder, decant_error *err)
{
    char *last = NULL;
    bool same = false;
    decant_status rc;

    if ((rc = same_folder(folder, in->dir, &same, err)) || same)
        return rc;
    if (!in->followed && (rc = follow(in->dir, in->name, &in->home, &last, err)))
        return rc;
    dcn_free(&last);
    in->followed = true;
    if (in->home && ((rc = same_folder(folder, in->home, &same, err)) || same))
        return rc;
    decant_error_set(err, DECANT_DENIED, "a link that leads out of its folder");
    dcn_error_found(err, "'%s'", folder->path);
    dcn_error_hint(err, "if you trust it, put the file in the place of the link");
    return DECANT_DENIED;
}

/* --- siblings ---------------------------------------------------------------------------------------------------- */

static void close_file(dcn_input *in)
{
    file_input *f = (file_input *)in;

    decant_bytes_unref(&f->base.bytes);
    dcn_beside_close(&f->base.beside);
    dcn_free(&f->base.part);
    dcn_dir_close(&f->dir);
    dcn_dir_close(&f->home);
    dcn_free(&f->name);
    dcn_free(&f->path);
    dcn_free(&f);
}

/* An input of the file `name` in `dir`, which is known by `path`; takes over `path`, also on failure. */
static decant_status open_file(dcn_dir *dir, const char *name, unsigned flags, char *path, file_input **out,
                               decant_error *err)
{
    file_input *f = path ? dcn_alloc(1, sizeof *f) : NULL;
    dcn_file *file = NULL;
    dcn_source *source = NULL;
    decant_status rc;

    if (!f) {
        dcn_free(&path);
        return dcn_error_nomem(err);
    }
    f->path = path;
    f->base = (dcn_input){.name = path, .close = close_file};
    if ((rc = dcn_source_check_given(dir, name, dcn_dir_open(dir, name, DCN_READ | flags, 0, &file, err), err)) ||
        (rc = dcn_source_from_file(&file, path, &source, err)) ||
        (rc = dcn_bytes_from_source(source, &f->base.bytes, err)))
        goto done;
    source = NULL;
    *out = f;
    f = NULL;
done:
    dcn_source_unref(&source);
    dcn_file_close(&file);
    if (f)
        close_file(&f->base);
    return rc;
}

static decant_status open_sibling(dcn_input *in, const char *name, dcn_input **out, decant_error *err)
{
    file_input *f = (file_input *)in, *made = NULL;
    dcn_dir *folder = NULL;
    char *last = NULL;
    dcn_facts facts;
    decant_status rc;

    if ((rc = dcn_source_check_given(f->dir, name, dcn_dir_stat(f->dir, name, &facts, err), err)))
        goto done;
    if (facts.kind != DCN_KIND_REGULAR && facts.kind != DCN_KIND_LINK) {
        rc = dcn_source_refuse(facts.kind, err); /* opening a device may do things */
        goto done;
    }
    if (facts.kind == DCN_KIND_LINK &&
        ((rc = follow(f->dir, name, &folder, &last, err)) || (folder && (rc = check_folder(f, folder, err)))))
        goto done;
    rc = open_file(folder ? folder : f->dir, last ? last : name, DCN_NO_FOLLOW, dcn_io_join(f->dir->path, name), &made,
                   err);
    if (rc == DECANT_OK)
        *out = &made->base;
done:
    dcn_dir_close(&folder);
    dcn_free(&last);
    return rc;
}

/* An error about a sibling names it as the one who wants it does, wherever links led. */
static void name_sibling(const dcn_input *in, const char *name, decant_error *err)
{
    size_t folder_len = (size_t)(dcn_input_base(in) - (in->name ? in->name : dcn_input_base(in)));
    char *folder = folder_len ? dcn_strndup(in->name, folder_len) : NULL,
         *path = dcn_io_join(folder ? folder : ".", name);

    if (err) {
        err->path[0] = '\0';
        dcn_error_path(err, path ? path : name);
    }
    dcn_free(&path);
    dcn_free(&folder);
}

decant_status dcn_input_sibling(dcn_input *in, const char *name, size_t len, dcn_input **out, decant_error *err)
{
    char safe[96];
    decant_status rc;

    if (!is_bare(name, len)) {
        dcn_text_escape(safe, sizeof safe, name, len);
        decant_error_set(err, DECANT_MALFORMED, "names a file that is not beside it");
        dcn_error_found(err, "'%s'", safe);
        dcn_error_expected(err, "the bare name of a file in its folder");
        dcn_error_hint(err, "do not trust it, unless you know why it says so");
        dcn_error_path(err, in->name);
        return DECANT_MALFORMED;
    }
    if (!in->sibling) {
        decant_error_set(err, DECANT_UNSUPPORTED, "needs the file '%s' beside it, and this was opened by itself", name);
        dcn_error_hint(err, "open it by its path");
        dcn_error_path(err, in->name);
        return DECANT_UNSUPPORTED;
    }
    rc = in->sibling(in, name, out, err);
    if (rc)
        name_sibling(in, name, err);
    return rc;
}

decant_status dcn_input_open(dcn_dir **dir, const char *name, const char *path, dcn_input **out, decant_error *err)
{
    char *own = dcn_strndup(name, strlen(name)), *own_path = path ? dcn_strndup(path, strlen(path)) : NULL;
    file_input *f = NULL;
    decant_status rc;

    if (!path)
        own_path = dcn_io_join((*dir)->path, name);
    if (!own) {
        dcn_free(&own_path);
        return dcn_error_nomem(err);
    }
    if ((rc = open_file(*dir, name, 0, own_path, &f, err))) {
        dcn_free(&own);
        return rc;
    }
    f->base.sibling = open_sibling;
    f->dir = *dir;
    f->name = own;
    *dir = NULL;
    *out = &f->base;
    return DECANT_OK;
}

void dcn_input_close(dcn_input **in)
{
    if (*in && (*in)->close)
        (*in)->close(*in);
    *in = NULL;
}
