/**
 * Proofs: checking files, comparing models, and digests of what they hold.
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
    size_t   exact;       /* of `tensors`, with `close`: of types that are compared bit for bit all the same */
} decant_diff_totals;

/** Options of decant_diff(). NULL or all zero: the defaults. */
typedef struct decant_diff_options {
    size_t size;       /* of this struct */
    int    close;      /* numbers need only be close: |a - b| <= atol + rtol * |b|; default: the same bits */
    double rtol, atol; /* not negative */
} decant_diff_options;

/**
 * Compare tensors by name: dtype, shape, and data bit for bit. Order, container and layout do not count.
 *
 * With `close`, numbers of floating point types are compared as numpy.isclose() does with equal_nan=False, in double precision:
 * an infinity is close to itself, what is no number to nothing. Other types, and those whose elements are no whole bytes,
 * are compared bit for bit all the same.
 *
 * @param found   called for each difference, in order of name; may be NULL
 * @param totals  may be NULL; differences 0 means the same
 * @return DECANT_OK also when they differ; the status of a failed read; DECANT_CHANGED; DECANT_CANCELLED
 *
 * Memory: two slots of 1 MiB and 24 bytes a tensor.
 */
DECANT_API DECANT_MUST_CHECK decant_status decant_diff(const decant_model *a, const decant_model *b,
                                                       const decant_diff_options *options, decant_on_difference found,
                                                       void *ctx, decant_diff_totals *totals, decant_error *err);

/** What a check tells of. */
typedef enum decant_finding_kind {
    DECANT_FAULT = 1, /* the file is not whole, or breaks the rules of its format */
    DECANT_WARNING,   /* odd, and no fault */
    DECANT_VALUES     /* of a deep check: a tensor whose values are worth a look; no fault */
} decant_finding_kind;

/** What a deep check saw in one tensor. */
typedef struct decant_values {
    const decant_tensor *tensor;
    uint64_t             total;       /* elements; bytes where elements are no whole bytes (packed, quantized) */
    uint64_t             nans;        /* elements that are no numbers */
    uint64_t             infinities;  /* elements that are infinite */
    uint64_t             first;       /* row-major index of the first of these */
    uint64_t             neither;     /* booleans that are not 0 or 1 */
    uint64_t             zeros;       /* the longest run of zero bytes, if it is long; or all there are */
    uint64_t             zeros_begin; /* where it begins, in bytes */
} decant_values;

/** Something found. Everything is lent for the time of the callback. */
typedef struct decant_finding {
    decant_finding_kind  kind;
    const char          *text;  /* in one line, safe to print: "tensor 'x': what is wrong, found A, expected B; hint" */
    const decant_error  *error; /* of a fault: what opening the file leniently or not would fail with; else NULL */
    const decant_values *values; /* of values; else NULL */
} decant_finding;

/** @return not 0 to stop */
typedef int (*decant_on_finding)(void *ctx, const decant_finding *finding);

/** Options of decant_check(). NULL or all zero: the defaults. */
typedef struct decant_check_options {
    size_t                     size; /* of this struct */
    const decant_open_options *open; /* [lent] what is let pass; NULL: the defaults */
    int                        deep; /* read all values too */
    decant_progress            progress;
    void                      *progress_ctx;
} decant_check_options;

typedef struct decant_check_totals {
    size_t      faults, warnings;
    size_t      tensors; /* that were looked at */
    uint64_t    bytes;   /* of their data that were read: of a deep check of a file without faults all, else none */
    const char *format;  /* literals, as the two below */
    const char *covered; /* "header, ranges and size agree" */
    const char *lacking; /* what the format cannot show: "this format carries no checksums" */
} decant_check_totals;

/**
 * Check that a file is whole and well formed. Several faults are told, not only the first, where reading can go on without
 * guessing. A deep check reads all values, of a file without faults.
 *
 * @param found   called for each finding; may be NULL
 * @param totals  may be NULL; faults 0 means sound
 * @return DECANT_OK also when faults were found; where nothing could be read or recognised, or a limit kept from it, the
 *         status that decant_open() would fail with; DECANT_CANCELLED
 *
 * Memory: as decant_open(); of a deep check 1 MiB more.
 */
DECANT_API DECANT_MUST_CHECK decant_status decant_check(const char *path, const decant_check_options *options,
                                                        decant_on_finding found, void *ctx, decant_check_totals *totals,
                                                        decant_error *err);

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
