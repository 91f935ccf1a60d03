#include <stdio.h>
#include <string.h>

#include "base/ckd.h"
#include "base/endian.h"
#include "base/text.h"
#include "format/format.h"
#include "format/set.h"

static const dcn_format *const formats[] = {&dcn_burnpack, &dcn_safetensors, NULL};

const dcn_format *dcn_format_at(size_t index)
{
    size_t i = 0;

    while (formats[i] && i < index)
        i++;
    return formats[i];
}

const dcn_format *dcn_format_named(const char *name)
{
    const dcn_format *format;

    for (size_t i = 0; (format = dcn_format_at(i)); i++)
        if (strcmp(format->name, name) == 0)
            return format;
    return NULL;
}

/* --- extensions -------------------------------------------------------------------------------------------------- */

/* What stands behind the last dot of the last component; NULL if there is nothing, or nothing in front of it. */
static const char *extension_of(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');

    return dot && dot > name && dot[1] ? dot + 1 : NULL;
}

static char lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
}

static bool same_ignoring_case(const char *a, const char *b, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (lower(a[i]) != lower(b[i]))
            return false;
    return true;
}

static bool has_extension(const dcn_format *format, const char *extension)
{
    for (const char *const *e = format->extensions; *e; e++)
        if (strlen(*e) == strlen(extension) && same_ignoring_case(*e, extension, strlen(extension)))
            return true;
    return false;
}

const dcn_format *dcn_format_for_path(const char *path)
{
    const char *extension = extension_of(path);
    const dcn_format *format;

    for (size_t i = 0; extension && (format = dcn_format_at(i)); i++)
        if (has_extension(format, extension))
            return format;
    return NULL;
}

/* --- what is no model of ours ------------------------------------------------------------------------------------ */

enum { LEAST = 10 }; /* bytes of the smallest model: safetensors with an empty object for a header */

static const char again[] = "the download failed: fetch it again";
static const char resave[] = "save the tensors as safetensors";
static const char choose_other[] = "choose a safetensors or Burnpack file of the model";

/* Files of other kinds by the bytes that stand `at` an offset. */
static const struct {
    size_t at;
    const char *magic, *what, *hint;
} others[] = {
    {0, "\x80\x02\x8a\x0al\xfc\x9c\x46\xf9 j\xa8P\x19", "a PyTorch file of before version 1.6, which is not read",
     resave},
    {0, "\x80\x02", "a Python pickle, which is not read", resave},
    {0, "\x80\x03", "a Python pickle, which is not read", resave},
    {0, "\x80\x04", "a Python pickle, which is not read", resave},
    {0, "\x80\x05", "a Python pickle, which is not read", resave},
    {0, "\x82\xa8metadata", "a record of Burn in MessagePack (.mpk), which is not read", resave},
    {0, "GGUF", "a GGUF model, which is not read yet", choose_other},
    {4, "ET12", "an ExecuTorch program, which is not read yet", choose_other},
    {4, "FT01", "an ExecuTorch file of tensors, which is not read yet", choose_other},
    {0, "\x93NUMPY", "a NumPy array, which is not read yet", "save the array as safetensors"},
    {0, "\x89HDF", "an HDF5 file, as Keras writes them, which is not read", resave},
    {4, "TFL3", "a TensorFlow Lite model, which is not read", choose_other},
    {0, "tjgg", "a GGML model of before GGUF, which is not read", choose_other},
    {0, "lmgg", "a GGML model of before GGUF, which is not read", choose_other},
    {0, "\x1f\x8b", "compressed by gzip", "decompress it"},
    {0, "\x28\xb5\x2f\xfd", "compressed by zstd", "decompress it"},
    {0, "\xfd\x37zXZ", "compressed by xz", "decompress it"},
    {0, "BZh", "compressed by bzip2", "decompress it"},
    {257, "ustar", "a tar archive", "unpack it"},
};

static bool has_bytes(const dcn_clue *clue, size_t at, const char *bytes)
{
    size_t len = strlen(bytes);

    return clue->head_len >= at + len && memcmp(clue->head + at, bytes, len) == 0;
}

/* ModelProto (onnx.proto3): a version of the IR, then the producer's name, the graph or the operator sets. */
static bool is_onnx(const dcn_clue *clue)
{
    return clue->head_len >= 4 && clue->head[0] == 0x08 && clue->head[1] < 32 &&
           memchr("\x12\x3a\x42", clue->head[2], 3);
}

/* Whether it begins with characters that people read. */
static bool is_text(const dcn_clue *clue)
{
    size_t len = dcn_utf8_cut((const char *)clue->head, clue->head_len, 256);

    for (size_t i = 0; i < len; i++)
        if ((clue->head[i] < ' ' && !memchr("\t\n\f\r", clue->head[i], 4)) || clue->head[i] == 0x7f)
            return false;
    return dcn_utf8_valid(clue->head, len);
}

static bool has_text(const dcn_clue *clue, size_t at, const char *text)
{
    size_t len = strlen(text);

    return len <= clue->head_len - at && same_ignoring_case((const char *)clue->head + at, text, len);
}

/* The first place at or after `at` where the text stands; head_len if it does not. */
static size_t find_text(const dcn_clue *clue, size_t at, const char *text)
{
    while (at < clue->head_len && !has_text(clue, at, text))
        at++;
    return at;
}

/* Sets the error: what it is, how it begins, what to do. */
static decant_status other(const dcn_clue *clue, const char *what, const char *hint, decant_error *err)
{
    enum { SHOWN = 48 };
    char text[sizeof err->found - 2]; /* with its quotes it is not cut */
    size_t len =
        clue->head_len < SHOWN ? clue->head_len : dcn_utf8_cut((const char *)clue->head, clue->head_len, SHOWN);

    dcn_text_escape(text, sizeof text, (const char *)clue->head, len);
    decant_error_set(err, DECANT_UNSUPPORTED, "%s", what);
    dcn_error_found(err, "'%s'", text);
    dcn_error_hint(err, "%s", hint);
    return DECANT_UNSUPPORTED;
}

/* A pointer of Git-LFS (its specification 1) stands where the file was not fetched, and says how large that is. */
static decant_status lfs_pointer(const dcn_clue *clue, decant_error *err)
{
    size_t at = find_text(clue, 0, "\nsize ") + strlen("\nsize "), end = at, used = 0;
    char size[56];

    while (end < clue->head_len && clue->head[end] >= '0' && clue->head[end] <= '9')
        end++;
    for (; at < end && used + 10 < sizeof size; at++) {
        size[used++] = (char)clue->head[at];
        if (end - at > 1 && (end - at) % 3 == 1)
            size[used++] = ',';
    }
    snprintf(size + used, sizeof size - used, "%s", used ? " bytes" : "unknown size");
    decant_error_set(err, DECANT_UNSUPPORTED, "Git-LFS pointer to a file of %s; the data was never fetched", size);
    dcn_error_hint(err, "run git lfs pull");
    return DECANT_UNSUPPORTED;
}

/* A text is a page or a message of somebody who did not give the file. DECANT_OK: it is none. */
static decant_status name_text(const dcn_clue *clue, decant_error *err)
{
    size_t at = has_text(clue, 0, "\xef\xbb\xbf") ? 3 : 0;

    while (at < clue->head_len && memchr(" \t\r\n", clue->head[at], 4))
        at++;
    if (has_text(clue, at, "<") &&
        (find_text(clue, at, "<!doctype html") < clue->head_len || find_text(clue, at, "<html") < clue->head_len))
        return other(clue, "an HTML page, not a model", again, err);
    if (has_text(clue, at, "{") || has_text(clue, at, "[")) {
        if (find_text(clue, at, "\"error\"") < clue->head_len || find_text(clue, at, "\"message\"") < clue->head_len)
            return other(clue, "a JSON error body, not a model", again, err);
        return other(clue, "a JSON text, not a model", "name the file that holds the tensors", err);
    }
    if (clue->size < LEAST || !is_text(clue))
        return DECANT_OK;
    if (has_text(clue, at, "<"))
        return other(clue, "an XML text, not a model", again, err);
    return other(clue, "a text, not a model", "name the file that holds the tensors, or fetch it again", err);
}

static bool contains(const uint8_t *bytes, size_t len, const char *text)
{
    size_t text_len = strlen(text);

    for (size_t at = 0; at + text_len <= len; at++)
        if (memcmp(bytes + at, text, text_len) == 0)
            return true;
    return false;
}

/*
 * Zip archives (APPNOTE 6.3) end in a directory, which has the names of what is in them; without its end they were cut short.
 * Names of members tell who wrote it: TorchScript has constants beside its pickle, NumPy's members are arrays.
 */
static decant_status zip_archive(dcn_input *in, const dcn_clue *clue, decant_error *err)
{
    static const struct {
        const char *member, *what, *hint;
    } kinds[] = {
        {"constants.pkl", "a TorchScript archive, which is not read", resave},
        {"data.pkl", "a PyTorch file (zip), which is not read yet", resave},
        {".npy", "a NumPy archive (.npz), which is not read yet", "save the arrays as safetensors"},
        {"model.weights.h5", "a Keras model (zip), which is not read", resave},
    };
    uint8_t tail[DCN_HEAD];
    size_t len = (size_t)dcn_min(in->bytes->len, sizeof tail);
    dcn_fetch fetch = {in->bytes->len - len, tail, len};
    decant_status rc = dcn_backing_fetch(in->bytes, &fetch, 1, err);

    if (rc)
        return rc;
    if (!contains(tail, len, "PK\x05\x06")) {
        rc = decant_error_set(err, DECANT_TRUNCATED,
                              "a zip archive, as PyTorch and NumPy write them, that is cut short");
        dcn_error_found(err, "%llu bytes, and no directory at their end", (unsigned long long)clue->size);
        dcn_error_hint(err, "fetch the rest, and save the tensors as safetensors");
        return rc;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (contains(tail, len, kinds[i].member) || contains(clue->head, clue->head_len, kinds[i].member))
            return other(clue, kinds[i].what, kinds[i].hint, err);
    return other(clue, "a zip archive", "unpack it, or save the tensors as safetensors", err);
}

/* Names what people mistake for models. DECANT_OK: it is nothing known. */
static decant_status name_other(dcn_input *in, const dcn_clue *clue, decant_error *err)
{
    decant_status rc;

    if (clue->size == 0) {
        decant_error_set(err, DECANT_TRUNCATED, "the file is empty");
        dcn_error_hint(err, "fetch it again");
        return DECANT_TRUNCATED;
    }
    if (has_text(clue, 0, "version https://git-lfs.github.com/spec/"))
        return lfs_pointer(clue, err);
    if (has_bytes(clue, 0, "PK\x03\x04") || has_bytes(clue, 0, "PK\x05\x06"))
        return zip_archive(in, clue, err);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (has_bytes(clue, others[i].at, others[i].magic))
            return other(clue, others[i].what, others[i].hint, err);
    if (is_onnx(clue))
        return other(clue, "an ONNX model, which is not read yet", choose_other, err);
    if ((rc = name_text(clue, err)))
        return rc;

    if (clue->size < LEAST) {
        decant_error_set(err, DECANT_TRUNCATED, "the file has %d byte%s, and no model has so few", (int)clue->size,
                         clue->size == 1 ? "" : "s");
        dcn_error_hint(err, "fetch it again");
        return DECANT_TRUNCATED;
    }
    if (dcn_le64(clue->head) == 0) {
        decant_error_set(err, DECANT_MALFORMED,
                         "the file begins with zeros: what fetched or saved it has not finished");
        dcn_error_hint(err, "fetch it or save it again");
        return DECANT_MALFORMED;
    }
    return DECANT_OK;
}

/* --- opening ----------------------------------------------------------------------------------------------------- */

decant_status dcn_format_look(dcn_input *in, uint8_t *head, dcn_clue *clue, decant_error *err)
{
    dcn_fetch fetch = {0, head, (size_t)dcn_min(in->bytes->len, DCN_HEAD)};

    *clue = (dcn_clue){head, fetch.len, in->bytes->len};
    return dcn_backing_fetch(in->bytes, &fetch, 1, err);
}

static decant_status recognise(dcn_input *in, const dcn_clue *clue, const dcn_format **out, decant_error *err)
{
    const dcn_format *format, *best = NULL;
    int most = 0, claim;
    decant_status rc;

    for (size_t i = 0; (format = dcn_format_at(i)); i++) {
        if ((claim = format->probe(clue)) > most) {
            most = claim;
            best = format;
        }
    }
    if (best) {
        *out = best;
        return DECANT_OK;
    }
    rc = name_other(in, clue, err);
    return rc ? rc : other(clue, "no format that is known here", "see decant formats", err);
}

decant_status dcn_format_detect(dcn_input *in, const dcn_format **out, decant_error *err)
{
    uint8_t head[DCN_HEAD];
    dcn_clue clue;
    decant_status rc = dcn_format_look(in, head, &clue, err);

    return rc ? rc : recognise(in, &clue, out, err);
}

/* The format asked for is taken at its word, unless the file is plainly no model. */
static decant_status choose(dcn_input *in, const dcn_format **format, decant_error *err)
{
    uint8_t head[DCN_HEAD];
    dcn_clue clue;
    decant_status rc;

    if (!*format)
        return dcn_format_detect(in, format, err);
    rc = dcn_format_look(in, head, &clue, err);
    return rc || (*format)->probe(&clue) ? rc : name_other(in, &clue, err);
}

/* What the model says of where it comes from. Content decides; a name that says otherwise is told. */
static decant_status note_origin(decant_model *model, const dcn_input *in, const dcn_format *format, decant_error *err)
{
    const char *extension = in->name ? extension_of(in->name) : NULL;
    decant_status rc;

    model->format = format->name;
    if (in->name && !(model->path = dcn_arena_copy(&model->memory, in->name, strlen(in->name) + 1)))
        return dcn_error_nomem(err);
    /* a set says itself what it is made of */
    if (model->file_count == 0 && ((rc = dcn_model_lies_in(model, in->name, in->bytes->len, err)) ||
                                   (extension && !has_extension(format, extension) &&
                                    (rc = dcn_model_note(model, "odd", err, "the name ends in .%s, the content is %s",
                                                         extension, format->name)))))
        return rc;
    return dcn_set_note(in, model, err);
}

decant_status dcn_format_open(dcn_input *in, const dcn_format *format, const dcn_limits *limits, unsigned lenient,
                              decant_model **out, decant_error *err)
{
    decant_model *model = NULL;
    decant_status rc;

    if ((rc = choose(in, &format, err)) || (rc = decant_model_create(&model, err)) ||
        (rc = format->index(in, limits, lenient, model, err)) || (rc = note_origin(model, in, format, err)))
        goto done;
    *out = model;
    model = NULL;
done:
    if (rc && rc != DECANT_NOMEM) {
        dcn_error_side(err, DECANT_SIDE_INPUT);
        dcn_error_path(err, in->name);
    }
    decant_model_close(&model);
    return rc;
}
