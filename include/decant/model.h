/**
 * Models: named tensors and values, opened from a file or built by hand. One type for both.
 */
#ifndef DECANT_MODEL_H
#define DECANT_MODEL_H

#include <decant/bytes.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Element types. The numbers are stable; new ones are added at the end. */
typedef enum decant_dtype {
    DECANT_DTYPE_NONE = 0, /* a blob */
    DECANT_F64,
    DECANT_F32,
    DECANT_F16,
    DECANT_BF16,
    DECANT_I64,
    DECANT_I32,
    DECANT_I16,
    DECANT_I8,
    DECANT_U64,
    DECANT_U32,
    DECANT_U16,
    DECANT_U8,
    DECANT_BOOL,     /* one byte, 0 or 1 */
    DECANT_BOOL_U8,  /* Burn's Bool(U8): one byte */
    DECANT_BOOL_U32, /* Burn's Bool(U32): four bytes */
    DECANT_FLEX32,   /* Burn's Flex32: stored as F32 */
    DECANT_C64,      /* complex of two F32 */
    DECANT_F8_E4M3,
    DECANT_F8_E5M2,
    DECANT_F8_E4M3FNUZ,
    DECANT_F8_E5M2FNUZ,
    DECANT_F8_E8M0,
    DECANT_F6_E2M3, /* packed, six bits an element */
    DECANT_F6_E3M2,
    DECANT_F4,    /* packed, four bits an element */
    DECANT_QFLOAT /* Burn's quantized tensors: see decant_quant */
} decant_dtype;

/** The name of a dtype, as in `ls`: "BF16". Never NULL. */
DECANT_API const char *decant_dtype_name(decant_dtype dtype);

/** How many dimensions a tensor may have unless limits are lifted. */
#define DECANT_MAX_RANK 32

/* Parameters of DECANT_QFLOAT, as Burn names them (burn-std, quantization scheme). */
typedef enum decant_quant_value {
    DECANT_Q8F,
    DECANT_E5M2,
    DECANT_E4M3,
    DECANT_Q4F,
    DECANT_E2M1,
    DECANT_Q2F,
    DECANT_Q8S,
    DECANT_Q4S,
    DECANT_Q2S
} decant_quant_value;
typedef enum decant_quant_store {
    DECANT_STORE_NATIVE,
    DECANT_STORE_PACKED_NATIVE,
    DECANT_STORE_PACKED_U32
} decant_quant_store;
typedef enum decant_quant_mode { DECANT_QUANT_SYMMETRIC, DECANT_QUANT_LOOKUP } decant_quant_mode;
typedef enum decant_scale {
    DECANT_SCALE_NONE = 0,
    DECANT_SCALE_F32,
    DECANT_SCALE_F16,
    DECANT_SCALE_BF16,
    DECANT_SCALE_UE8M0,
    DECANT_SCALE_UE4M3
} decant_scale;

/** How a QFLOAT tensor is quantized. Its bytes: packed values, then block (or the tensor's) scales, then a global scale. */
typedef struct decant_quant {
    size_t             size; /* of this struct */
    decant_quant_value value;
    decant_quant_store store;
    uint64_t           packed_dim; /* of the packed stores: counted from the innermost, 0 = last */
    decant_quant_mode  mode;
    decant_scale       tensor_scale; /* NONE: absent */
    decant_scale       block_scale;  /* NONE: no blocks */
    uint8_t            block[5];     /* extents, outermost first, no leading 1s */
    uint8_t            block_rank;   /* 0 to 5 */
} decant_quant;

/**
 * A tensor to add, or one that is there. Names and shapes are counted, so a name may hold any UTF-8; they are lent: by the
 * caller for decant_model_add(), by the model for decant_model_tensor() until it is closed or changed.
 */
typedef struct decant_tensor {
    size_t              size; /* of this struct: DECANT_TENSOR_INIT */
    const char         *name;
    size_t              name_len; /* bytes; 0 with a name that is not NULL: strlen */
    decant_dtype        dtype;
    size_t              rank;
    const uint64_t     *shape; /* rank extents, outermost first, row-major; NULL if rank is 0 */
    uint64_t            len;   /* bytes of data. Read only: for add, the length of `bytes` counts */
    int                 has_id;
    uint64_t            id;    /* Burn's param id */
    const decant_quant *quant; /* QFLOAT only */
} decant_tensor;

#define DECANT_TENSOR_INIT                                               \
    {                                                                    \
        sizeof(decant_tensor), 0, 0, DECANT_DTYPE_NONE, 0, 0, 0, 0, 0, 0 \
    }

/** A typed value beside the tensors. Text is metadata; the others are what Burn calls scalars. */
typedef enum decant_value_type {
    DECANT_VALUE_BOOL = 1,
    DECANT_VALUE_I64,
    DECANT_VALUE_U64,
    DECANT_VALUE_F64,
    DECANT_VALUE_TEXT
} decant_value_type;

typedef struct decant_value {
    decant_value_type type;
    union {
        int      boolean;
        int64_t  i64;
        uint64_t u64;
        uint64_t f64_bits; /* the 64 bits, so that NaN payloads survive */
        struct {
            const char *data; /* UTF-8 */
            size_t      len;  /* bytes */
        } text;
    } as;
} decant_value;

/**
 * Tensors in order, and values. Bytes stay unread.
 *
 * Threads: one at a time while it is being built; share freely afterwards.
 */
typedef struct decant_model decant_model;

/** An empty model, to be built by hand. */
DECANT_API DECANT_MUST_CHECK decant_status decant_model_create(decant_model **out, decant_error *err);

/**
 * Append a tensor. Order is kept by formats that have one.
 *
 * @param tensor  [lent] copied. The length of `bytes` is checked against dtype and shape when a save is planned
 * @param bytes   [lent] gains a reference
 * @return DECANT_DUPLICATE for a name that is there, DECANT_MALFORMED for one that is not UTF-8 or holds a NUL,
 *         DECANT_NOMEM
 */
DECANT_API DECANT_MUST_CHECK decant_status decant_model_add(decant_model *model, const decant_tensor *tensor,
                                                            decant_bytes *bytes, decant_error *err);

/** Set metadata (text) or a scalar (other types). A key that is there among its kind is replaced. */
DECANT_API DECANT_MUST_CHECK decant_status decant_model_set(decant_model *model, const char *key, size_t key_len,
                                                            const decant_value *value, decant_error *err);

/** How many tensors. */
DECANT_API size_t decant_model_count(const decant_model *model);

/** Describe the tensor at `index` < count. `out->size` must be set. */
DECANT_API void decant_model_tensor(const decant_model *model, size_t index, decant_tensor *out);

/** Find a tensor by name. @return DECANT_NOT_FOUND, with the path that was opened. The first call builds an index of the names: O(count). */
DECANT_API DECANT_MUST_CHECK decant_status decant_model_find(const decant_model *model, const char *name,
                                                             size_t name_len, size_t *index, decant_error *err);

/** The bytes of a tensor, unread. @param out [owned] */
DECANT_API DECANT_MUST_CHECK decant_status decant_model_bytes(const decant_model *model, size_t index,
                                                              decant_bytes **out, decant_error *err);

/** How many values, metadata and scalars together. */
DECANT_API size_t decant_model_value_count(const decant_model *model);

/** The value at `index`; sorted by key in models opened from files. Key and text are lent by the model. */
DECANT_API void decant_model_value(const decant_model *model, size_t index, const char **key, size_t *key_len,
                                   decant_value *out);

/** The path it was opened from, the name of an open without one, or NULL if it was built by hand. Of a set the index, or the first part. */
DECANT_API const char *decant_model_path(const decant_model *model);

/**
 * The files that its data lies in, in the order of their tensors: one, or the parts of a set.
 *
 * @param path  may be NULL. `*path` is lent by the model; NULL if it was opened without a name
 * @param size  may be NULL. Bytes of the file
 * @return 0 past the last, and for a model that was built by hand
 */
DECANT_API int decant_model_file(const decant_model *model, size_t index, const char **path, uint64_t *size);

/** The name of the format it was opened from ("safetensors"), or NULL if it was built by hand. */
DECANT_API const char *decant_model_format(const decant_model *model);

/**
 * What its format has to tell about the file, for people: pairs such as "layout", "aligned to 8, no gaps".
 *
 * @return DECANT_NOT_FOUND past the last; key and text are lent by the model
 */
DECANT_API DECANT_MUST_CHECK decant_status decant_model_note(const decant_model *model, size_t index, const char **key,
                                                             const char **text);

/**
 * Who can open the file: a program, and why it does not open this one, NULL where it does: "transformers" and "no metadata
 * format = pt".
 *
 * @return 0 past the last, and for a model that was not opened from a file
 */
DECANT_API int decant_model_reader(const decant_model *model, size_t index, const char **program, const char **why_not);

/** Close a model and set the pointer to NULL. Bytes handed out live on. Accepts a pointer to NULL. */
DECANT_API void decant_model_close(decant_model **model);

/** Reads any range any number of times: what a model can be opened from besides files. Copied by value. */
typedef struct decant_reader {
    size_t   size; /* of this struct */
    uint64_t len;  /* bytes in total */
    decant_status (*read)(void *ctx, uint64_t offset, void *dst, size_t len,
                          decant_error *err); /* fills len, or fails */
    void (*release)(void *ctx);               /* exactly once, when model and bytes are gone; may be NULL */
    void *ctx;
} decant_reader;

/** Refusals and limits that a caller may lift. */
#define DECANT_ALLOW_LIMITS 1u   /* decant's own limits on reading, and those of the target's reader on writing */
#define DECANT_ALLOW_LOSS 2u     /* drop what the output has no place for */
#define DECANT_ALLOW_OVERFLOW 4u /* casts make values infinite that are too large for the new type */

/**
 * Leniencies: what is refused unless its bit is set. What one lets pass is told in a note under "odd". A bit that does not
 * concern a format is ignored by it.
 */
#define DECANT_LENIENT_UNKNOWN_FIELDS 1u /* of a tensor (safetensors) or a quantization scheme (Burnpack): dropped */
#define DECANT_LENIENT_REPEATED_KEYS 2u  /* a key of metadata or scalars twice: the last counts */
#define DECANT_LENIENT_REPEATED_NAMES 4u /* a tensor's name twice: the last counts */
#define DECANT_LENIENT_NUL_IN_NAMES 8u   /* names that hold U+0000 */
#define DECANT_LENIENT_SHARED_DATA 16u   /* tensors on exactly the bytes of another: tied tensors */
#define DECANT_LENIENT_OVERLAPS 32u      /* Burnpack: tensors on some of the bytes of others */
#define DECANT_LENIENT_QUANT_LENGTHS 64u /* Burnpack: quantized data of another length than scheme and shape call for */
#define DECANT_LENIENT_AFTER_METADATA 128u /* Burnpack: bytes behind the map of the metadata, which are dropped */
#define DECANT_LENIENT_AFTER_DATA 256u     /* bytes behind the data, which are dropped */
#define DECANT_LENIENT_UNMAPPED 512u       /* tensors of a shard that the index of the set does not name */
#define DECANT_LENIENT_KEPT_KEYS 1024u     /* safetensors: metadata of decant's own that does not fit: plain metadata */
#define DECANT_LENIENT_ALL 2047u           /* all of these, as --lenient has it */

/** Options of the open functions. NULL or all zero: the defaults. */
typedef struct decant_open_options {
    size_t      size;    /* of this struct */
    const char *format;  /* by name; NULL: by content */
    unsigned    allow;   /* DECANT_ALLOW_LIMITS */
    unsigned    lenient; /* DECANT_LENIENT_* */
    int         owned;   /* the files may be given up by a save that is asked to: decant_save_options.consume */
} decant_open_options;

/**
 * Open a model from a file. Reads its metadata only.
 *
 * The path of an index file, of the first part of a split set, or of a folder with one index or one model in it stands for
 * the model in all of its files: each is opened once and held open, and errors name the one that they are about.
 *
 * Costs: at most four reads for the header, memory of about the header's size plus 128 bytes a tensor.
 *
 * @param path  symbolic links are followed
 * @param out   [owned]
 * @return DECANT_NOT_FOUND, DECANT_DENIED, DECANT_IO, DECANT_TRUNCATED, DECANT_MALFORMED, DECANT_DUPLICATE, DECANT_LIMIT,
 *         DECANT_UNSUPPORTED (no format knows it), DECANT_NOMEM
 */
DECANT_API DECANT_MUST_CHECK decant_status decant_open(const char *path, const decant_open_options *options,
                                                       decant_model **out, decant_error *err);

/** Open a model from `[offset, offset + len)` of a descriptor, which is duplicated. len 0: to the end. */
DECANT_API DECANT_MUST_CHECK decant_status decant_open_fd(int fd, uint64_t offset, uint64_t len,
                                                          const decant_open_options *options, decant_model **out,
                                                          decant_error *err);

/** Open a model from any bytes, such as decant_bytes_wrap() of memory; `name` stands for a path in messages. */
DECANT_API DECANT_MUST_CHECK decant_status decant_open_bytes(decant_bytes *bytes, const char *name,
                                                             const decant_open_options *options, decant_model **out,
                                                             decant_error *err);

/** Open a model from callbacks. `release` is not called on failure. */
DECANT_API DECANT_MUST_CHECK decant_status decant_open_reader(const decant_reader *reader, const char *name,
                                                              const decant_open_options *options, decant_model **out,
                                                              decant_error *err);

#ifdef __cplusplus
}
#endif
#endif
