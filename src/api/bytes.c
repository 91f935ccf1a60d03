#include "bytes/bytes.h"

#include <inttypes.h>

#include "base/ckd.h"

static decant_status check_range(const decant_bytes *bytes, uint64_t offset, uint64_t len, decant_error *err)
{
    if (!dcn_outside(offset, len, bytes->len))
        return DECANT_OK;
    decant_error_set(err, DECANT_BAD_CALL, "the range leaves the bytes");
    dcn_error_found(err, "%" PRIu64 " bytes at %" PRIu64, len, offset);
    dcn_error_expected(err, "a range in %" PRIu64, bytes->len);
    return DECANT_BAD_CALL;
}

decant_status decant_bytes_defer(uint64_t len, const decant_provider *provider, decant_bytes **out, decant_error *err)
{
    if (provider->size < sizeof *provider)
        return decant_error_set(err, DECANT_BAD_CALL, "the provider has no size: begin with DECANT_PROVIDER_INIT");
    if (!provider->read == !provider->produce)
        return decant_error_set(err, DECANT_BAD_CALL, "set one of the provider's read and produce, not %s",
                                provider->read ? "both" : "none");
    if (provider->read && provider->discard)
        return decant_error_set(err, DECANT_BAD_CALL,
                                "a provider that reads has nothing to discard: set produce, or no "
                                "discard");
    return dcn_bytes_defer(len, provider, out, err);
}

decant_status decant_bytes_wrap(const void *data, size_t len, void (*release)(void *ctx), void *ctx, decant_bytes **out,
                                decant_error *err)
{
    if (!data && len)
        return decant_error_set(err, DECANT_BAD_CALL, "no memory to wrap: data is NULL, len is %zu", len);
    return dcn_bytes_wrap(data, len, release, ctx, out, err);
}

decant_status decant_bytes_copy(const void *data, size_t len, decant_bytes **out, decant_error *err)
{
    if (!data && len)
        return decant_error_set(err, DECANT_BAD_CALL, "no memory to copy: data is NULL, len is %zu", len);
    return dcn_bytes_copy(data, len, out, err);
}

decant_status decant_bytes_file(const char *path, uint64_t offset, uint64_t len, decant_bytes **out, decant_error *err)
{
    dcn_source *source = NULL;
    decant_bytes *whole = NULL;
    decant_status rc;

    if ((rc = dcn_source_open(dcn_io_posix(), path, &source, err)))
        return rc;
    if (len == DECANT_TO_END && offset <= dcn_source_size(source))
        len = dcn_source_size(source) - offset;
    if (dcn_outside(offset, len, dcn_source_size(source))) {
        rc = decant_error_set(err, DECANT_TRUNCATED, "ends before %" PRIu64 " bytes at %" PRIu64, len, offset);
        dcn_error_found(err, "%" PRIu64 " bytes", dcn_source_size(source));
        dcn_error_side(err, DECANT_SIDE_INPUT);
        dcn_error_path(err, path);
        goto done;
    }
    if ((rc = dcn_bytes_from_source(source, &whole, err)))
        goto done;
    source = NULL;
    rc = dcn_bytes_slice(whole, offset, len, out, err);
done:
    decant_bytes_unref(&whole);
    dcn_source_unref(&source);
    return rc;
}

/* Nobody knows what the rest of the file is: all of it counts. */
static decant_status own(dcn_source *source, decant_error *err)
{
    dcn_claim whole = {.kind = DCN_CLAIM_TENSOR, .name = "", .len = dcn_source_size(source)};

    if (dcn_source_is_owned(source))
        return DECANT_OK;
    dcn_source_own(source);
    return dcn_source_claim(source, &whole, err);
}

decant_status decant_bytes_own(decant_bytes *bytes, decant_error *err)
{
    dcn_place place;
    decant_status rc = DECANT_OK;

    if (!bytes->len) {
        (void)decant_error_set(err, DECANT_BAD_CALL, "it is empty, and has no bytes that could be given up");
        dcn_error_hint(err, "leave it out, or do without giving up");
        return DECANT_BAD_CALL;
    }
    for (uint64_t at = 0; at < bytes->len; at = place.upto)
        if (!dcn_backing_place(bytes, at, &place)) {
            (void)decant_error_set(err, DECANT_BAD_CALL, "only a file's own bytes can be given up");
            dcn_error_hint(err, "own the parts that are of files, and join them then");
            return DECANT_BAD_CALL;
        }
    for (uint64_t at = 0; at < bytes->len && rc == DECANT_OK; at = place.upto)
        if (dcn_backing_place(bytes, at, &place))
            rc = own(place.source, err);
    return rc;
}

decant_status decant_bytes_slice(decant_bytes *bytes, uint64_t offset, uint64_t len, decant_bytes **out,
                                 decant_error *err)
{
    decant_status rc = check_range(bytes, offset, len, err);

    return rc ? rc : dcn_bytes_slice(bytes, offset, len, out, err);
}

decant_status decant_bytes_join(decant_bytes *const *parts, size_t count, decant_bytes **out, decant_error *err)
{
    for (size_t i = 0; i < count; i++)
        if (!parts[i])
            return decant_error_set(err, DECANT_BAD_CALL, "part %zu is NULL: join parts that were made", i);
    return dcn_bytes_join(parts, count, out, err);
}

decant_status decant_bytes_read(decant_bytes *bytes, uint64_t offset, void *dst, size_t len, decant_error *err)
{
    dcn_fetch fetch = {offset, dst, len};
    decant_status rc = check_range(bytes, offset, len, err);

    return rc ? rc : dcn_backing_fetch(bytes, &fetch, 1, err);
}

decant_status decant_bytes_pin(decant_bytes *bytes, uint64_t offset, uint64_t len, unsigned flags, decant_view *out,
                               decant_error *err)
{
    decant_status rc = check_range(bytes, offset, len, err);

    if (rc == DECANT_OK && flags & ~DECANT_NO_COPY)
        rc = decant_error_set(err, DECANT_BAD_CALL, "flags are 0x%x: DECANT_NO_COPY is all there is", flags);
    return rc ? rc : dcn_bytes_pin(bytes, offset, len, flags, out, err);
}

decant_status decant_bytes_keep(decant_bytes *bytes, decant_error *err)
{
    return dcn_bytes_keep(bytes, err);
}
