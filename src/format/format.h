/*
 * One container format: a folder with layout.h (magics, offsets, limits, each with its source), index.c (input → model)
 * and emit.c (model → plans), and a line in registry.c. Formats never write, never see a device, never think about crashes.
 * Indexing is the check too: in->findings lists all faults, and what it then leaves in the model counts for nothing.
 */
#ifndef DCN_FORMAT_H
#define DCN_FORMAT_H

#include "format/input.h"
#include "model/model.h"
#include "plan/plan.h"

/* What is known of a file before anybody claims it. */
typedef struct dcn_clue {
    const uint8_t *head; /* the first bytes */
    size_t head_len;
    uint64_t size; /* of the whole */
} dcn_clue;

enum { DCN_HEAD = 4096 }; /* bytes of a clue's head, fewer if the file is shorter */

typedef struct dcn_format {
    const char *name;                   /* "safetensors": options, errors, CLI */
    const char *const *extensions;      /* no dot, canonical first, NULL ends */
    int (*probe)(const dcn_clue *clue); /* 0 not mine, 100 certain; pure */
    /* metadata becomes a model, sorted (dcn_model_sort) and noted; lenient: DECANT_LENIENT_* */
    decant_status (*index)(dcn_input *in, const dcn_limits *limits, unsigned lenient, decant_model *model,
                           decant_error *err);
    decant_status (*emit)(const decant_model *model, const dcn_layout *how, dcn_plans *out, decant_error *err);
    bool has_sets; /* a model may be several files */
    /* optional: whether the file NAME in the folder of OUT is what an earlier save to OUT may have made; both are bare */
    bool (*supersedes)(const char *out, const char *name);
    const char *covers; /* what agrees in a file that opens: "header, ranges and size" */
    const char *lacks;  /* what the format cannot show: "this format carries no checksums" */
} dcn_format;

/* The format at `index`; NULL past the last. */
const dcn_format *dcn_format_at(size_t index);

/* By name, or NULL. */
const dcn_format *dcn_format_named(const char *name);

/* By the extension of a path, case ignored; NULL if none has it. */
const dcn_format *dcn_format_for_path(const char *path);

/* What is known of a file: reads the head, of DCN_HEAD bytes at most, into `head`. */
decant_status dcn_format_look(dcn_input *in, uint8_t *head, dcn_clue *clue, decant_error *err);

/*
 * By content, never by name: reads the head once, and of what it names the tail where that tells more. What is recognised but is no model of ours (a Git-LFS pointer, a web
 * page, nothing at all) is named for what it is.
 *
 * @return DECANT_UNSUPPORTED, DECANT_TRUNCATED (empty), or that of a failed read
 */
decant_status dcn_format_detect(dcn_input *in, const dcn_format **out, decant_error *err);

/* How a file is opened. */
typedef struct dcn_reading {
    const dcn_format *format; /* NULL: by content */
    dcn_limits limits;
    unsigned lenient; /* DECANT_LENIENT_* */
    bool owned;       /* its files may be given up */
} dcn_reading;

/* The whole of the opening: detect (or the format named), index, noted. @param out [owned] */
decant_status dcn_format_open(dcn_input *in, const dcn_format *format, const dcn_limits *limits, unsigned lenient,
                              decant_model **out, decant_error *err);

/*
 * A scheme of quantization as an extra, in its canonical form: leading 1s of a block are dropped. One may hang on any number of entries.
 *
 * @param out  [owned] one reference
 * @return DECANT_BAD_CALL for parameters that are none, DECANT_NOMEM
 */
decant_status dcn_quant_extra(const decant_quant *quant, dcn_extra **out, decant_error *err);

/* The scheme in an extra, lent by it; NULL if the extra is NULL or another's. */
const decant_quant *dcn_quant_of(const dcn_extra *extra);

extern const dcn_format dcn_burnpack;
extern const dcn_format dcn_safetensors;

/* Written, and for models of one tensor alone; not in the registry. */
extern const dcn_format dcn_npy;
extern const dcn_format dcn_raw;

/* Whether NumPy has such arrays. */
bool dcn_npy_takes(decant_dtype dtype, size_t rank);

#endif
