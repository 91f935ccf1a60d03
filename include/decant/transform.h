/**
 * Transforms: a new model from one or more, with other names, fewer tensors, other dtypes, other metadata.
 */
#ifndef DECANT_TRANSFORM_H
#define DECANT_TRANSFORM_H

#include <decant/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A value to set, as `--set` has it. */
typedef struct decant_setting {
    /*
     * "KEY=VALUE", or "KEY:TYPE=VALUE" with one of text, bool, i8 to i64, u8 to u64, f32, f64. Without a type a key that is
     * there keeps its own, and any other is text.
     */
    const char *text;
    const char *data; /* not NULL: stands for VALUE, of which "KEY=" has none; may hold a NUL */
    size_t      len;  /* of data, bytes */
} decant_setting;

/** Other content for a tensor, which is what all else is done with. */
typedef struct decant_content {
    const char   *name;  /* of the tensor, as it is in its file */
    decant_bytes *bytes; /* [lent] as many as the tensor has; in its dtype and shape */
} decant_content;

/**
 * What is done, in this order, after a prefix is put in front of each input's names: what the flags of `decant convert`
 * say, spelled as there. NULL or all zero: nothing.
 *
 * A pattern is a glob (`*`, `?`, `[...]`; a backslash quotes) for the whole name, in which `*` stands for dots too, or after
 * "re:" a regular expression for some part of it.
 */
typedef struct decant_transform_options {
    size_t                size;    /* of this struct: DECANT_TRANSFORM_OPTIONS_INIT */
    const char *const    *include; /* patterns: tensors that none of them matches are left out */
    size_t                include_count;
    const char *const    *exclude; /* patterns: tensors that one of them matches are left out */
    size_t                exclude_count;
    const char *const    *rename; /* "s/RE/TO/", "s/RE/TO/g": substitutions in names, one after the other */
    size_t                rename_count;
    const char *const    *dtype; /* "[PATTERN=]TYPE", TYPE one of f64, f32, f16, bf16; the last that matches counts */
    size_t                dtype_count;
    const decant_setting *set; /* values, each key once and none that is unset */
    size_t                set_count;
    const char *const    *unset; /* keys of values */
    size_t                unset_count;
    const decant_content *put; /* content, once for a tensor, and none for one that is left out */
    size_t                put_count;
    unsigned              allow; /* DECANT_ALLOW_LIMITS: longer names; _LOSS: extras of several inputs; _OVERFLOW */
} decant_transform_options;

#define DECANT_TRANSFORM_OPTIONS_INIT                                                 \
    {                                                                                 \
        sizeof(decant_transform_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 \
    }

/**
 * Make a model of others: the tensors of the first, then those of the second, and so on. Nothing is read: bytes are shared,
 * and those of a cast are made when they are asked for, a slot at a time.
 *
 * Casts go from F64, F32, F16, BF16, F8_E4M3 and F8_E5M2 to F64, F32, F16 and BF16, by one rounding to nearest, ties to even;
 * subnormals, signed zeros and infinities are right, and a NaN becomes a quiet one of the same sign and leading payload. A
 * finite number beyond the new range fails whoever reads it with DECANT_LOSS, unless DECANT_ALLOW_OVERFLOW is set: then it
 * becomes infinite, and the report of the save counts it. A dtype rule without a pattern is for all tensors of these
 * types and leaves others alone.
 *
 * The result has the format of the first input, and values of all of them.
 *
 * @param models    [lent] `count` of them, at least one; they may be closed when this has returned
 * @param prefixes  [lent] one for each, NULL: none; NULL: none at all
 * @param out       [owned]
 * @return DECANT_BAD_CALL (an option is wrong), DECANT_NOT_FOUND (a pattern, a substitution or a key matches nothing),
 *         DECANT_DUPLICATE (two tensors would have one name), DECANT_MISMATCH (a key has different values in two inputs),
 *         DECANT_LIMIT (a name is too long, or a regular expression takes too long), DECANT_UNSUPPORTED (a cast that is not
 *         done; a regular expression in a build without PCRE2), DECANT_LOSS, DECANT_NOMEM
 */
DECANT_API DECANT_MUST_CHECK decant_status decant_transform(const decant_model *const *models,
                                                            const char *const *prefixes, size_t count,
                                                            const decant_transform_options *options, decant_model **out,
                                                            decant_error *err);

/** What a tensor of a transformed model was before. */
typedef struct decant_origin {
    size_t       size;  /* of this struct */
    size_t       input; /* index of the model */
    const char  *name;  /* lent by the transformed model */
    size_t       name_len;
    decant_dtype dtype;
} decant_origin;

/** Where the tensor at `index` comes from. `out->size` must be set. @return 0 for a model that decant_transform() did not make */
DECANT_API int decant_model_origin(const decant_model *model, size_t index, decant_origin *out);

#ifdef __cplusplus
}
#endif
#endif
