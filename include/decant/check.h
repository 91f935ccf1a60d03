/**
 * Proofs: comparing models, and digests of what they hold.
 */
#ifndef DECANT_CHECK_H
#define DECANT_CHECK_H

#include <decant/save.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How two models differ in one place. */
typedef enum decant_difference_kind {
    DECANT_ONLY_IN_A = 1,
    DECANT_ONLY_IN_B,
    DECANT_DTYPE_DIFFERS,
    DECANT_SHAPE_DIFFERS,
    DECANT_VALUES_DIFFER,
    DECANT_METADATA_DIFFERS /* shown, does not count */
} decant_difference_kind;

/** One difference. Everything is lent for the time of the callback. */
typedef struct decant_difference {
    decant_difference_kind kind;
    const char            *name; /* of the tensor, or the metadata key */
    size_t                 name_len;
    const decant_tensor   *a, *b;    /* NULL where absent */
    uint64_t               elements; /* VALUES: how many differ, of `total` */
    uint64_t               total;
    uint64_t               first; /* VALUES: row-major index of the first element that differs */
    int in_bytes;                 /* VALUES: elements are no whole bytes (packed, quantized): these three count bytes */
    /* what differs, for people, safe to print: the dtype, the shape, that element, the value; "" where absent */
    const char *a_text, *b_text;
} decant_difference;

/** @return not 0 to stop comparing */
typedef int (*decant_on_difference)(void *ctx, const decant_difference *difference);

typedef struct decant_diff_totals {
    size_t   tensors;     /* compared */
    uint64_t bytes;       /* compared */
    size_t   differences; /* that count */
} decant_diff_totals;

/**
 * Compare tensors by name: dtype, shape, and data bit for bit. Order, container and layout do not count.
 *
 * @param found   called for each difference, in order of name; may be NULL
 * @param totals  may be NULL; differences 0 means the same
 * @return DECANT_OK also when they differ; the status of a failed read; DECANT_CANCELLED
 *
 * Memory: two slots of 1 MiB and 8 bytes a tensor.
 */
DECANT_API DECANT_MUST_CHECK decant_status decant_diff(const decant_model *a, const decant_model *b,
                                                       decant_on_difference found, void *ctx,
                                                       decant_diff_totals *totals, decant_error *err);

/** Room for a digest: the 64 digits of a SHA-256 in lower case, and a NUL. */
#define DECANT_DIGEST 65

/** Options of decant_digest(). NULL or all zero: the defaults. */
typedef struct decant_digest_options {
    size_t          size;     /* of this struct */
    decant_progress progress; /* told of bytes read */
    void           *progress_ctx;
} decant_digest_options;

/**
 * Called for each tensor when its data has been read, in the model's order. Everything is lent for the time of the callback.
 *
 * @param hex  the SHA-256 of its packed little-endian bytes in row-major order; of a quantized type its bytes as they are
 * @return not 0 to stop
 */
typedef int (*decant_on_digest)(void *ctx, const decant_tensor *tensor, const char *hex);

/**
 * The digest of a model: the SHA-256 of the lines `HEX DTYPE SHAPE NAME`, sorted by bytes, each ended by a newline. HEX is
 * the tensor's digest, DTYPE as decant_dtype_name() has it, SHAPE like `[2,3]`, NAME a JSON string with the fewest escapes.
 * Order, container and metadata do not count, and anyone can compute it again.
 *
 * @param found  may be NULL
 * @param hex    of DECANT_DIGEST bytes
 * @return DECANT_UNSUPPORTED in a build without libcrypto; DECANT_MISMATCH, DECANT_BAD_CALL for models that no save would
 *         take; that of a failed read; DECANT_CANCELLED
 *
 * All data is read once, providers are asked as by a save. Memory: a slot of 1 MiB, and 56 bytes a tensor.
 */
DECANT_API DECANT_MUST_CHECK decant_status decant_digest(const decant_model          *model,
                                                         const decant_digest_options *options, decant_on_digest found,
                                                         void *ctx, char *hex, decant_error *err);

#ifdef __cplusplus
}
#endif
#endif
