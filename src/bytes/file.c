#include "bytes/bytes.h"

#include "base/alloc.h"

/* All of a source. Parts of it are slices. */
typedef struct file {
    dcn_backing base;
    dcn_source *source; /* held */
} file;

static decant_status read_file(dcn_backing *b, dcn_fetch *f, size_t count, decant_error *err)
{
    enum { AT_ONCE = 64 };
    dcn_range ranges[AT_ONCE];
    decant_status rc = DECANT_OK;

    for (size_t done = 0, n; done < count && rc == DECANT_OK; done += n) {
        n = count - done < AT_ONCE ? count - done : AT_ONCE;
        for (size_t i = 0; i < n; i++)
            ranges[i] = (dcn_range){f[done + i].at, f[done + i].dst, f[done + i].len};
        rc = dcn_source_read(((file *)b)->source, ranges, n, err);
    }
    return rc;
}

static bool place_file(dcn_backing *b, uint64_t at, dcn_place *out)
{
    *out = (dcn_place){((file *)b)->source, at, b->len};
    return true;
}

static dcn_backing *close_file(dcn_backing *b)
{
    file *f = (file *)b;

    dcn_source_unref(&f->source);
    dcn_free(&f);
    return NULL;
}

static const dcn_backing_ops ops = {.kind = "file", .begin = read_file, .place = place_file, .close = close_file};

decant_status dcn_bytes_from_source(dcn_source *source, decant_bytes **out, decant_error *err)
{
    file *f = dcn_alloc(1, sizeof *f);

    if (!f)
        return dcn_error_nomem(err);
    dcn_backing_init(&f->base, &ops, dcn_source_size(source));
    f->source = source;
    *out = &f->base;
    return DECANT_OK;
}
