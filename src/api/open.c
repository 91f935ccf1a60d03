#include <stdio.h>
#include <string.h>

#include "api/env.h"
#include "base/alloc.h"
#include "format/format.h"
#include "format/set.h"

/* A failure to open is the input's. */
static decant_status blame(const char *name, decant_status rc, decant_error *err)
{
    if (rc) {
        dcn_error_path(err, name);
        if (rc != DECANT_NOMEM)
            dcn_error_side(err, DECANT_SIDE_INPUT);
    }
    return rc;
}

decant_status dcn_reading_take(dcn_reading *own, const decant_open_options *theirs, decant_error *err)
{
    decant_open_options options = {0};

    dcn_options_take(&options, sizeof options, theirs);
    *own = (dcn_reading){.limits = dcn_limits_of(options.allow & DECANT_ALLOW_LIMITS),
                         .lenient = options.lenient,
                         .owned = options.owned};
    if (options.format && !(own->format = dcn_format_named(options.format)))
        return decant_error_set(err, DECANT_UNSUPPORTED, "no format is called '%s'", options.format);
    return DECANT_OK;
}

static decant_status open_bytes(decant_bytes *bytes, const char *name, const decant_open_options *options,
                                decant_model **out, decant_error *err)
{
    dcn_input in = {.bytes = bytes, .name = name};
    dcn_reading how;
    decant_status rc = dcn_reading_take(&how, options, err);

    return rc ? rc : dcn_format_open(&in, how.format, &how.limits, how.lenient, out, err);
}

/* Takes over the source. Offset and length 0: all of it. */
static decant_status open_source(dcn_source *source, uint64_t offset, uint64_t len, const char *name,
                                 const decant_open_options *options, decant_model **out, decant_error *err)
{
    decant_bytes *bytes = NULL, *part = NULL;
    uint64_t size = dcn_source_size(source);
    decant_status rc;

    if ((rc = dcn_bytes_from_source(source, &bytes, err))) {
        dcn_source_unref(&source);
        goto done;
    }
    if (offset > size || len > size - offset) {
        rc = decant_error_set(err, DECANT_TRUNCATED, "the range does not lie in the file");
        dcn_error_found(err, "%llu bytes", (unsigned long long)size);
        goto done;
    }
    if ((offset || len) && (rc = decant_bytes_slice(bytes, offset, len ? len : size - offset, &part, err)))
        goto done;
    rc = open_bytes(part ? part : bytes, name, options, out, err);
done:
    decant_bytes_unref(&part);
    decant_bytes_unref(&bytes);
    return rc;
}

decant_status dcn_open_input(const dcn_env *env, const char *path, const dcn_reading *how, dcn_input **out,
                             decant_error *err)
{
    return blame(path, dcn_set_open(env->io, path, &how->limits, out, err), err);
}

/* What a leniency leaves out is lost with its file: whatever cannot be read without one that does. */
static decant_status claim_skipped(dcn_source *named, dcn_input *in, const dcn_reading *how, decant_error *err)
{
    const unsigned skips = DECANT_LENIENT_UNKNOWN_FIELDS | DECANT_LENIENT_REPEATED_KEYS |
                           DECANT_LENIENT_REPEATED_NAMES | DECANT_LENIENT_AFTER_METADATA | DECANT_LENIENT_AFTER_DATA;
    decant_model *strict = NULL;
    decant_error why = {0};
    dcn_claim claim = {.kind = DCN_CLAIM_SKIPPED, .name = why.message};
    decant_status rc;

    if (!(how->lenient & skips))
        return DECANT_OK;
    rc = dcn_format_open(in, how->format, &how->limits, how->lenient & ~skips, &strict, &why);
    decant_model_close(&strict);
    if (rc == DECANT_OK || rc == DECANT_NOMEM)
        return rc ? dcn_error_nomem(err) : rc;
    claim.name_len = strlen(why.message);
    return dcn_source_claim(named, &claim, err);
}

/* The file that was named, which may be an index of others, and all that its tensors lie in. */
static decant_status own(decant_model *model, dcn_input *in, const dcn_reading *how, decant_error *err)
{
    dcn_place place = {0};
    decant_status rc;

    if (in->bytes->len)
        dcn_backing_place(in->bytes, 0, &place);
    rc = dcn_model_claim(model, place.source, err);
    return rc || !place.source ? rc : claim_skipped(place.source, in, how, err);
}

decant_status dcn_open(const dcn_env *env, const char *path, const decant_open_options *options, decant_model **out,
                       decant_error *err)
{
    dcn_input *in = NULL;
    dcn_reading how;
    decant_status rc;

    if (!(rc = dcn_reading_take(&how, options, err)) && !(rc = dcn_open_input(env, path, &how, &in, err)))
        rc = dcn_format_open(in, how.format, &how.limits, how.lenient, out, err);
    if (rc == DECANT_OK && how.owned && (rc = own(*out, in, &how, err)))
        decant_model_close(out);
    dcn_input_close(&in);
    return blame(path, rc, err);
}

decant_status decant_open(const char *path, const decant_open_options *options, decant_model **out, decant_error *err)
{
    dcn_env env = dcn_env_default();

    if (!path)
        return decant_error_set(err, DECANT_BAD_CALL, "the path is NULL: name a file to open");
    return dcn_open(&env, path, options, out, err);
}

decant_status decant_open_fd(int fd, uint64_t offset, uint64_t len, const decant_open_options *options,
                             decant_model **out, decant_error *err)
{
    dcn_file *file = NULL;
    dcn_source *source = NULL;
    decant_status rc;
    char name[32];

    snprintf(name, sizeof name, "descriptor %d", fd);
    if ((rc = dcn_file_from_fd(fd, &file, err)) || (rc = dcn_source_from_file(&file, name, &source, err)))
        goto done;
    rc = open_source(source, offset, len, name, options, out, err);
done:
    dcn_file_close(&file);
    return blame(name, rc, err);
}

decant_status decant_open_bytes(decant_bytes *bytes, const char *name, const decant_open_options *options,
                                decant_model **out, decant_error *err)
{
    return blame(name, open_bytes(bytes, name, options, out, err), err);
}

/* A reader whose release is the caller's matter until opening has succeeded. */
typedef struct guest {
    decant_reader reader;
    bool ours;
} guest;

static decant_status read_guest(void *ctx, uint64_t offset, void *dst, size_t len, decant_error *err)
{
    guest *g = ctx;

    return g->reader.read(g->reader.ctx, offset, dst, len, err);
}

static void release_guest(void *ctx)
{
    guest *g = ctx;

    if (g->ours && g->reader.release)
        g->reader.release(g->reader.ctx);
    dcn_free(&g);
}

decant_status decant_open_reader(const decant_reader *reader, const char *name, const decant_open_options *options,
                                 decant_model **out, decant_error *err)
{
    decant_reader through = {sizeof through, 0, read_guest, release_guest, NULL};
    dcn_source *source = NULL;
    guest *g;
    decant_status rc;

    if (!reader || reader->size < sizeof *reader)
        return decant_error_set(err, DECANT_BAD_CALL, "the reader has no size: set it to sizeof(decant_reader)");
    if (!reader->read)
        return decant_error_set(err, DECANT_BAD_CALL, "set the reader's read");
    if (!(g = dcn_alloc(1, sizeof *g)))
        return dcn_error_nomem(err);
    through.len = reader->len;
    through.ctx = g;
    g->reader = *reader;
    if ((rc = dcn_source_from_reader(&through, name, &source, err))) {
        dcn_free(&g);
        return rc;
    }
    /* a reference of our own: a model without tensors keeps none, and the guest would be gone */
    rc = open_source(dcn_source_ref(source), 0, 0, name, options, out, err);
    g->ours = rc == DECANT_OK;
    dcn_source_unref(&source);
    return blame(name, rc, err);
}
