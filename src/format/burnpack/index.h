/*
 * What the files share that read a Burnpack: index.c (the whole), fields.c (maps and enums as serde writes them), scheme.c
 * (quantization schemes) and legacy.c (all that only an older Burn wrote).
 */
#ifndef DCN_BURNPACK_INDEX_H
#define DCN_BURNPACK_INDEX_H

#include "codec/cbor.h"
#include "format/burnpack/extra.h"
#include "format/format.h"

/* What is told of a file that opens all the same. */
typedef struct dcn_bpk_oddities {
    dcn_chunk unknown;       /* the first key that no reader knows, and that is carried */
    uint64_t unknowns;       /* how many of them */
    uint64_t dropped;        /* keys that no reader knows, in a scheme */
    uint64_t repeated;       /* names and keys that came again: the last counts */
    uint64_t nuls;           /* names that hold one */
    uint64_t quantized;      /* tensors of another length than their scheme calls for: Burn takes any */
    uint64_t shared;         /* tensors on exactly the bytes of another */
    uint64_t overlaps;       /* tensors on bytes of others */
    uint64_t after_metadata; /* bytes */
    uint64_t after_data;     /* bytes */
} dcn_bpk_oddities;

/* Forms that Burn once wrote under today's magic and version, and its readers of today refuse or misread. Told as well. */
typedef struct dcn_bpk_legacies {
    bool layout;      /* 0.19: data right behind the metadata, end to end */
    uint64_t bools;   /* 0.19, 0.20: a name without a store */
    uint64_t schemes; /* 0.19 to 0.21: `level` and `param` */
} dcn_bpk_legacies;

/* Keys of a map that no reader knows, with their values, as they will be written again. */
typedef struct dcn_bpk_carried {
    dcn_buf pairs;
    uint64_t count;
} dcn_bpk_carried;

/* A file, as far as it is read. */
typedef struct dcn_bpk_header {
    dcn_cbor cbor;
    decant_model *model;
    dcn_backing *bytes;
    const dcn_limits *limits;
    decant_error *err;
    uint64_t size;     /* of the file */
    uint64_t metadata; /* bytes of it */
    uint64_t data;     /* where it starts in the file */
    uint64_t gaps;     /* bytes between tensors */
    uint64_t largest;  /* bytes of a tensor */
    uint64_t *shape;   /* of the tensor at hand; room for all that limits allow */
    size_t shape_cap;
    unsigned dtype;               /* of the last tensor, in the order of the format: mostly that of the next */
    decant_quant scheme;          /* likewise, as it was written */
    dcn_extra *quant;             /* and as it is held */
    bool then;                    /* of a tensor that is laid out as Burn 0.21 did */
    dcn_bpk_carried keys;         /* of the tensor at hand */
    unsigned lenient;             /* DECANT_LENIENT_* */
    const dcn_findings *findings; /* NULL: the first fault ends it */
    bool whole;                   /* of the tensor at hand everything is read */
    bool unplaced;                /* a fault left out a tensor: what it has in the file is not known */
    dcn_bpk_oddities odd;
    dcn_bpk_legacies old;
} dcn_bpk_header;

/* --- maps and enums as serde writes them -------------------------------------------------------------------------- */

/* A fault at what was read last. @return DECANT_MALFORMED */
decant_status dcn_bpk_malformed(dcn_bpk_header *h, const char *what);

/* A name that may mean something to a newer reader. @return DECANT_UNSUPPORTED */
decant_status dcn_bpk_unknown(dcn_bpk_header *h, const char *what, dcn_chunk name);

/* The place of a text among `count` names; `count` if it is none of them. */
size_t dcn_bpk_find(dcn_chunk text, const char *const *names, size_t count);

typedef struct dcn_bpk_field {
    const char *key;
    size_t key_len;
    decant_status (*read)(dcn_bpk_header *h, void *into);
    bool required;
} dcn_bpk_field;

#define DCN_BPK_FIELD(key, read, required)       \
    {                                            \
        key, sizeof(key) - 1, (read), (required) \
    }

/*
 * A struct as serde reads it: keys in any order, each known one at most once. Failures carry the key.
 *
 * @param unknown  gains the unknown ones; NULL: there must be none
 */
decant_status dcn_bpk_read_fields(dcn_bpk_header *h, const dcn_bpk_field *fields, size_t count, void *into,
                                  dcn_bpk_carried *unknown);

/* An enum as serde writes it: a name, or a map of one name to a value, which then stands next. */
typedef struct dcn_bpk_variant {
    dcn_chunk name;
    dcn_cbor_run run;
    bool has_value;
} dcn_bpk_variant;

decant_status dcn_bpk_begin_variant(dcn_bpk_header *h, dcn_bpk_variant *v);

/* After its value. */
decant_status dcn_bpk_end_variant(dcn_bpk_header *h, dcn_bpk_variant *v);

/* One of `count` names, as an enum without a value. */
decant_status dcn_bpk_read_name(dcn_bpk_header *h, const char *what, const char *const *names, size_t count,
                                unsigned *out);

/* --- quantization schemes ----------------------------------------------------------------------------------------- */

/* A scheme, as far as it is read. */
typedef struct dcn_bpk_scheme {
    decant_quant quant;
    bool today;                     /* it has a key that only today's form has */
    bool u32, has_level, has_param; /* what only the form of Burn 0.19 to 0.21 has */
    decant_scale param;             /* of the innermost scales */
} dcn_bpk_scheme;

/* @param old  whether it is of the form of Burn 0.19 to 0.21 */
decant_status dcn_bpk_read_scheme(dcn_bpk_header *h, decant_quant *out, bool *old);

/* A dtype of scales. */
decant_status dcn_bpk_read_scale(dcn_bpk_header *h, decant_scale *out);

/* The extents of a block. @param into  a dcn_bpk_scheme */
decant_status dcn_bpk_read_block_size(dcn_bpk_header *h, void *into);

/* The extra of a scheme, lent: one for all tensors in a row that share it. `then`: of a tensor that is laid out as it was. */
decant_status dcn_bpk_hold_scheme(dcn_bpk_header *h, const decant_quant *quant, bool then, dcn_extra **out);

/* --- older forms: legacy.c ---------------------------------------------------------------------------------------- */

/* Whether a store is written as Burn 0.19 did; the scheme then has it. */
bool dcn_bpk_old_store(const dcn_bpk_variant *v, dcn_bpk_scheme *scheme);

/* The keys that only schemes of Burn 0.19 to 0.21 have. @param into  a dcn_bpk_scheme */
decant_status dcn_bpk_old_param(dcn_bpk_header *h, void *into);
decant_status dcn_bpk_old_level(dcn_bpk_header *h, void *into);

/* Whether anything in a scheme is of an older Burn. */
bool dcn_bpk_is_old_scheme(const dcn_bpk_scheme *scheme);

/* Puts such a scheme into the terms of today's. Readers of today drop both of its keys without a word. */
decant_status dcn_bpk_old_scheme(dcn_bpk_header *h, dcn_bpk_scheme *scheme);

/* Whether a tensor under such a scheme has the length that Burn 0.20 and 0.21 gave it. */
bool dcn_bpk_old_len(const decant_quant *quant, const dcn_draft *draft, uint64_t found);

/*
 * Whether it is known in which order the values lie under such a scheme. Along another dimension than the last the writers of
 * Burn 0.21.0 disagree: burn-cubecl lays out words row-major if the tensor was transposed, as if packed along the last if it
 * was made so; burn-ndarray writes a byte a value.
 */
bool dcn_bpk_old_has_order(const decant_quant *quant);

/* The fault where it is not. @return DECANT_UNSUPPORTED */
decant_status dcn_bpk_old_orderless(dcn_bpk_header *h);

/*
 * Moves all data to where Burn 0.19 put it, in a file that is one of its files.
 *
 * @param end  where the data would end in a file of today
 * @param old  whether it is one
 */
decant_status dcn_bpk_old_layout(dcn_bpk_header *h, uint64_t end, bool *old);

/* Has quantized tensors of Burn 0.20 and 0.21 laid out as they are today. After all places are checked and told. */
decant_status dcn_bpk_old_relay(dcn_bpk_header *h);

decant_status dcn_bpk_old_notes(dcn_bpk_header *h);

/* Why Burn of today does not open the file; NULL: nothing in it is older. */
const char *dcn_bpk_old_obstacle(const dcn_bpk_header *h);

#endif
