/*
 * Plans: an output as pieces at final offsets, made from lengths alone. Pure: touches no file and asks no provider.
 * (Sums, pieces that hold a checksum of others, come with the first format that has one.)
 */
#ifndef DCN_PLAN_H
#define DCN_PLAN_H

#include <decant/save.h>

#include "base/buf.h"
#include "base/chunk.h"
#include "model/model.h"

/* `at` in the output; what stands there is literal `index`, or the data of entry `index`. 16 bytes. */
typedef struct dcn_piece {
    uint64_t at;
    uint32_t index;
    uint32_t literal; /* 0: an entry */
} dcn_piece;

/* One output. Pieces rise and do not overlap; gaps between them are zeros. */
typedef struct dcn_plan {
    const decant_model *model; /* [lent] */
    char *name;                /* owned: of the file, bare; NULL: the one that was asked for */
    dcn_piece *pieces;
    size_t count, cap;
    dcn_chunk literals[4]; /* owned; more than a header and a trailer no format needs so far */
    size_t literal_count;
    uint64_t total; /* bytes of the output */
    uint64_t data;  /* bytes of entries in it */
    uint64_t held;  /* bytes at the front that are written last, so that what is half done opens nowhere */
} dcn_plan;

/* Something the output has no place for. */
typedef struct dcn_loss {
    char text[160]; /* "3 param ids, first of 'x'" */
    size_t brief;   /* bytes of it that say how many of what */
} dcn_loss;

enum { DCN_LOSSES = 32, DCN_GAINS = 4 };

/* What emit makes: the outputs of one save in the order of their publication. */
typedef struct dcn_plans {
    dcn_plan *items;
    size_t count;
    dcn_loss losses[DCN_LOSSES];
    size_t loss_count;
    const char *gains[DCN_GAINS]; /* what the output has and the model does not; literals */
    size_t gain_count;
    const char *layout;  /* how data lies, and why not as asked where that could not be; a literal */
    dcn_openers openers; /* of each output */
} dcn_plans;

/* How a format lays its output out. */
typedef struct dcn_layout {
    unsigned allow; /* DECANT_ALLOW_* */
    decant_layout layout;
    uint64_t align;      /* of DECANT_LAYOUT_ALIGNED */
    uint64_t max_shard;  /* bytes of tensors in a file, for formats that have sets; 0: one file */
    const char *name;    /* bare, of the output; what the files of a set are named for. Never NULL with max_shard */
    bool loaders_format; /* safetensors: a file made from another format says format = pt, as its loaders want */
} dcn_layout;

/* Adds an empty plan over `model`. @param out [lent] by plans, until the next is added */
decant_status dcn_plans_add(dcn_plans *plans, const decant_model *model, dcn_plan **out, decant_error *err);
void dcn_plans_close(dcn_plans *plans);

/* Room for `count` pieces in all. */
decant_status dcn_plan_reserve(dcn_plan *plan, size_t count, decant_error *err);

/* Appends bytes: takes over the content of `buf` on success and leaves it empty. */
decant_status dcn_plan_literal(dcn_plan *plan, uint64_t at, dcn_buf *buf, decant_error *err);

/* Appends the data of an entry. */
decant_status dcn_plan_entry(dcn_plan *plan, uint64_t at, size_t index, decant_error *err);

/* Ends the plan: the output has `total` bytes. Asserts that pieces rise, do not overlap, and fit. */
void dcn_plan_finish(dcn_plan *plan, uint64_t total);

/*
 * Adds a plan of nothing but data: that of all entries, in their order, for who looks at it. Each begins at a multiple of
 * DCN_DATA_ALIGN, so that no slot cuts an element.
 */
enum { DCN_DATA_ALIGN = 16 };
decant_status dcn_plans_data(dcn_plans *plans, const decant_model *model, decant_error *err);

/* Bytes of piece `i`. */
static inline uint64_t dcn_plan_piece_len(const dcn_plan *plan, size_t i)
{
    const dcn_piece *piece = &plan->pieces[i];

    return piece->literal ? plan->literals[piece->index].len : plan->model->entries[piece->index].data.len;
}

/* Notes a loss: `count` times `what` (singular; the plural gets an s), the first at the entry or key `name` (may be NULL). */
void dcn_plans_lose(dcn_plans *plans, uint64_t count, const char *what, const char *name, size_t name_len);

/* DECANT_LOSS, naming all of them, unless there is none or `allow` has DECANT_ALLOW_LOSS. */
decant_status dcn_plans_check_losses(const dcn_plans *plans, const char *format, unsigned allow, decant_error *err);

/* Notes something that the output gets: "metadata format = pt". */
void dcn_plans_gain(dcn_plans *plans, const char *what);

/*
 * What must hold of every model before any format plans it: each entry's length is what its dtype and shape need (types
 * without bits per element are their format's matter), and each provider stands in one piece only.
 *
 * @return DECANT_MISMATCH with tensor, found and expected; DECANT_BAD_CALL for a provider used twice
 */
decant_status dcn_plan_check_model(const decant_model *model, decant_error *err);

#endif
