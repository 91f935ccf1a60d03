/**
 * Bytes of known length whose content may not exist yet.
 */
#ifndef DECANT_BYTES_H
#define DECANT_BYTES_H

#include <decant/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Bytes of known length whose content may not exist yet: in host memory, in a span of a file, or behind a callback. Or a
 * slice of such, or several joined. Content never changes.
 *
 * Threads: immutable, share freely. The last unref releases on its own thread.
 */
typedef struct decant_bytes decant_bytes;

/** Host memory lent by a decant_bytes. `{0}` is empty. Threads: one at a time. */
typedef struct decant_view {
    const void *data; /* borrowed until decant_view_release() */
    size_t      len;  /* bytes */
    void       *hold; /* private; a provider may use it between produce and discard */
} decant_view;

/**
 * Produces content on demand: `read` by range, or `produce`/`discard` as a whole; exactly one of `read` and `produce` is
 * set. Copied by value.
 *
 * A save asks for each byte at most once, at rising offsets, and never before everything asked of the provider before has
 * been taken. Callbacks run on the thread that called decant. They must return: leaving one by longjmp or by a C++
 * exception is forbidden, and would strand the output's scratch file. A callback reports its own error through
 * decant_error_set(); failing without one is reported as DECANT_CALLBACK.
 */
typedef struct decant_provider {
    size_t size; /* of this struct: DECANT_PROVIDER_INIT */
    /* fills all of `len` bytes at `dst`, or fails */
    decant_status (*read)(void *ctx, uint64_t offset, void *dst, size_t len, decant_error *err);
    /* the content whole: `out->data` and `out->len` are lent until `discard` */
    decant_status (*produce)(void *ctx, decant_view *out, decant_error *err);
    /* once per produce that succeeded, also when the save fails, before anybody else's turn; may be NULL */
    void (*discard)(void *ctx, decant_view *view);
    /* exactly once, when the last reference goes; may be NULL */
    void (*release)(void *ctx);
    void *ctx;
} decant_provider;

#define DECANT_PROVIDER_INIT                   \
    {                                          \
        sizeof(decant_provider), 0, 0, 0, 0, 0 \
    }

/**
 * Describe bytes that a callback will produce. Costs one small allocation.
 *
 * @param len       bytes the provider yields in total; a promise, checked later
 * @param provider  [lent] copied; the caller's struct may go away
 * @param out       [owned] one reference; untouched on failure (and `release` not called)
 * @param err       filled on failure; may be NULL, as everywhere
 * @return DECANT_OK, DECANT_NOMEM, or DECANT_BAD_CALL (neither or both of read and produce)
 *
 * Threads: any. Calls to one provider never overlap.
 */
DECANT_API DECANT_MUST_CHECK decant_status decant_bytes_defer(uint64_t len, const decant_provider *provider,
                                                              decant_bytes **out, decant_error *err);

/**
 * Describe host memory without copying it.
 *
 * @param data     [lent] must stay unchanged until `release` is called; may be NULL if len is 0
 * @param release  called exactly once with `ctx` when the last reference goes; NULL: the memory outlives the bytes
 * @param out      [owned] one reference
 */
DECANT_API DECANT_MUST_CHECK decant_status decant_bytes_wrap(const void *data, size_t len, void (*release)(void *ctx),
                                                             void *ctx, decant_bytes **out, decant_error *err);

/** Copy host memory. The copy is `out`'s own; costs one allocation of `len` bytes. */
DECANT_API DECANT_MUST_CHECK decant_status decant_bytes_copy(const void *data, size_t len, decant_bytes **out,
                                                             decant_error *err);

/** As a length: up to the end of the file. */
#define DECANT_TO_END UINT64_MAX

/**
 * Describe a range of a file. The file is opened now, once, and read when asked; `[offset, offset + len)` must lie in it.
 *
 * @param len  bytes, or DECANT_TO_END
 * @return also DECANT_NOT_FOUND, DECANT_DENIED, DECANT_IO, DECANT_TRUNCATED
 */
DECANT_API DECANT_MUST_CHECK decant_status decant_bytes_file(const char *path, uint64_t offset, uint64_t len,
                                                             decant_bytes **out, decant_error *err);

/**
 * Say that the files these bytes lie in may be given up by a save that is asked to: decant_save_options.consume is the second key.
 * What is given up must be in the output, every byte of these files unchanged, in whatever order and pieces.
 *
 * @return DECANT_BAD_CALL: some of them are not a file's own; own parts before they are joined
 */
DECANT_API DECANT_MUST_CHECK decant_status decant_bytes_own(decant_bytes *bytes, decant_error *err);

/**
 * A part of other bytes. Reads nothing; costs one small allocation. `bytes` gains a reference that the slice holds.
 *
 * @return DECANT_BAD_CALL if the range leaves `bytes`
 */
DECANT_API DECANT_MUST_CHECK decant_status decant_bytes_slice(decant_bytes *bytes, uint64_t offset, uint64_t len,
                                                              decant_bytes **out, decant_error *err);

/**
 * A rope: parts one after the other. Reads nothing. Every part gains a reference.
 *
 * @param parts  [lent] `count` pointers
 */
DECANT_API DECANT_MUST_CHECK decant_status decant_bytes_join(decant_bytes *const *parts, size_t count,
                                                             decant_bytes **out, decant_error *err);

/** Bytes in total. Known without reading. */
DECANT_API uint64_t decant_bytes_len(const decant_bytes *bytes);

/** Read a range into `dst`. Never caches. May read a file or call a provider. */
DECANT_API DECANT_MUST_CHECK decant_status decant_bytes_read(decant_bytes *bytes, uint64_t offset, void *dst,
                                                             size_t len, decant_error *err);

/** Flags of decant_bytes_pin(). */
#define DECANT_NO_COPY 1u /* permit only what is in memory already, through any depth of slices */

/**
 * Make `[offset, offset + len)` readable as memory. May read a file or a provider into an allocation of `len` bytes, which
 * goes with the view. Where the range is in memory already, nothing is copied, and it stands at whatever address it has:
 * copy elements wider than a byte out of a view before they are used as numbers.
 *
 * @param flags  0, or DECANT_NO_COPY: then DECANT_WOULD_COPY where the range is not in memory, without touching the file
 *               or the provider
 * @param out    [owned] give it back with decant_view_release(), on any thread
 */
DECANT_API DECANT_MUST_CHECK decant_status decant_bytes_pin(decant_bytes *bytes, uint64_t offset, uint64_t len,
                                                            unsigned flags, decant_view *out, decant_error *err);

/** Give a view back. Does nothing to an empty one, and leaves it empty. */
DECANT_API void decant_view_release(decant_view *view);

/**
 * Read the content of this handle once, exactly its range, and hold it: later reads, pins and slices of it are served from
 * memory. Callers who come meanwhile wait for that attempt and share its outcome; a failed attempt can be repeated.
 */
DECANT_API DECANT_MUST_CHECK decant_status decant_bytes_keep(decant_bytes *bytes, decant_error *err);

/** Let go what keep() holds, once the views on it are given back. Does nothing if nothing is held. */
DECANT_API void decant_bytes_drop(decant_bytes *bytes);

/** One more reference. @return bytes */
DECANT_API decant_bytes *decant_bytes_ref(decant_bytes *bytes);

/** Give one reference back and set the pointer to NULL. Accepts a pointer to NULL. */
DECANT_API void decant_bytes_unref(decant_bytes **bytes);

#ifdef __cplusplus
}
#endif
#endif
