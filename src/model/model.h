/* The inside of a model: a table of entries, values, and the extras that only their own format understands. */
#ifndef DCN_MODEL_H
#define DCN_MODEL_H

#include <decant/model.h>

#include "base/arena.h"
#include "bytes/bytes.h"

/*
 * One immutable counted thing that a format hangs on a model or an entry. Only the same format reads it; emit asks for its
 * own and reports all others as dropped, by the name they give.
 */
typedef struct dcn_extra dcn_extra;
typedef struct dcn_extra_ops {
    const char *format; /* whose it is */
    const char *what;   /* what is lost without it, in the singular: "quantization scheme"; NULL: nothing */
    uint64_t (*count)(const dcn_extra *extra); /* how many of them it holds; NULL: one */
    void (*close)(dcn_extra *extra);
} dcn_extra_ops;
struct dcn_extra {
    const dcn_extra_ops *ops;
    dcn_refs refs;
};
dcn_extra *dcn_extra_ref(dcn_extra *extra); /* NULL gives NULL */
void dcn_extra_unref(dcn_extra **extra);

/* A tensor, 64 bytes: a model of a million has little else. Name and shape live in the model's memory. */
typedef struct dcn_entry {
    const char *name;
    const uint64_t *shape; /* NULL if rank is 0 */
    dcn_extra *extra;      /* held; NULL: none */
    dcn_span data;         /* its backing is held */
    uint64_t id;
    uint32_t name_len;
    uint16_t rank;
    uint8_t dtype;
    bool has_id;
} dcn_entry;

typedef struct dcn_value {
    const char *key;
    size_t key_len;
    decant_value value; /* text lives in the model's memory */
} dcn_value;

typedef struct dcn_note {
    const char *key, *text;
} dcn_note;

/* What an entry was in a model that this one was made of. */
typedef struct dcn_origin {
    const char *name; /* in the memory of the new model */
    uint32_t name_len, input;
    uint8_t dtype;
} dcn_origin;

/* A file that entries lie in. */
typedef struct dcn_model_file {
    const char *path; /* NULL: it has none */
    uint64_t size;    /* bytes */
} dcn_model_file;

/* Who can open a file, in the order in which people are told. Texts are literals. */
typedef struct dcn_openers {
    struct {
        const char *by;      /* a program */
        const char *why_not; /* it does not open it as it is; NULL: it does */
    } items[4];
    size_t count;
} dcn_openers;

/* Finds indices by hash: open addressing in at most 12 bytes an item. {0} is empty. */
typedef struct dcn_names {
    uint32_t *slots; /* 0: free; else an index + 1 in the bits that count slots, the hash's in the others */
    size_t size;     /* a power of two */
} dcn_names;

struct decant_model {
    dcn_arena memory; /* names, shapes, keys, texts, notes */
    dcn_entry *entries;
    size_t count, cap;
    dcn_names names;
    uint64_t seed; /* of the hashes */
    dcn_value *values;
    size_t value_count, value_cap;
    dcn_names keys;      /* of the values */
    dcn_chunk *disputed; /* keys that it does not have, as the files it lies in say different things */
    size_t disputed_count, disputed_cap;
    dcn_note *notes;
    size_t note_count;
    dcn_openers openers; /* of the file it was opened from */
    dcn_extra *extra;    /* of the model */
    const char *format;  /* it was opened from; NULL: built by hand */
    const char *path;    /* it was opened from, for messages; NULL */
    dcn_source **owned;  /* held: files that may be given up, those of its tensors and indexes of sets */
    size_t owned_count, owned_cap;
    dcn_model_file *files; /* that it lies in, in the order of their entries: one, unless it is a set */
    size_t file_count;
    dcn_origin *origins; /* of the entries, if it was made of other models; else NULL */
    bool no_format;      /* metadata "format" was taken from it, so none is added when it is saved */
    bool ordered;        /* its order is worth keeping where a format has another: it comes from one that has none */
    bool for_loaders;    /* its metadata format = pt was added for loaders of the format that it comes from */
    bool was_kept;       /* what its format has no place for was kept in its metadata already */
};

/* What a file may make decant allocate or walk. Hard errors name the limit. */
typedef struct dcn_limits {
    uint64_t header; /* bytes of metadata read into memory */
    uint64_t tensors;
    uint64_t rank;
    uint64_t index;  /* bytes of a file that names others */
    uint64_t shards; /* files of a set */
    uint64_t name;   /* bytes */
    uint64_t values; /* metadata entries */
    uint64_t value;  /* bytes of one */
    unsigned depth;  /* nesting of what is skipped */
} dcn_limits;

/* Notes a key without a value, for which no single one can stand. It is lost when the model is saved. */
decant_status dcn_model_dispute(decant_model *model, const char *key, size_t key_len, decant_error *err);

/* Whether a key is one of these. */
bool dcn_model_disputes(const decant_model *model, const char *key);

/* The defaults; with `lifted` only what memory and the integers of this implementation bear. */
dcn_limits dcn_limits_of(bool lifted);

/* An entry to add: as dcn_entry, before the model owns it. Name and shape are lent. */
typedef struct dcn_draft {
    const char *name;
    size_t name_len;
    const uint64_t *shape;
    size_t rank;
    decant_dtype dtype;
    bool has_id;
    bool stays; /* the name is text of a codec's, so it is UTF-8, in the model's memory: neither checked nor copied */
    bool any_name; /* a NUL in the name is let pass: C callers must mind its length */
    uint64_t id;
    dcn_span data;    /* the model takes a reference of its own on the backing */
    dcn_extra *extra; /* likewise */
} dcn_draft;

/*
 * An empty model. decant_model_create() brings the seed.
 *
 * @param seed  random, so that nobody can prepare names that collide
 * @param out   [owned]
 */
decant_status dcn_model_create(uint64_t seed, decant_model **out, decant_error *err);

/*
 * Appends an entry. The name must be unique, UTF-8 and, unless the draft lets it pass, without a NUL.
 *
 * @return DECANT_DUPLICATE with found and expected, DECANT_MALFORMED, DECANT_NOMEM; the model is as it was
 */
decant_status dcn_model_add(decant_model *model, const dcn_draft *draft, decant_error *err);

/* Puts what the draft has in the place of the entry at `index`, which has its name. @return DECANT_NOMEM */
decant_status dcn_model_replace(decant_model *model, size_t index, const dcn_draft *draft, decant_error *err);

/* Room for `count` entries in all, so that adding them costs no reallocation. */
decant_status dcn_model_reserve(decant_model *model, size_t count, decant_error *err);

/* Finds an entry by name; false if there is none. */
bool dcn_model_find(const decant_model *model, const char *name, size_t name_len, size_t *index);

/*
 * Moves the entries of `part` behind those of `model`, with the memory that their names and shapes are in. No name may be
 * in both. Values and notes stay behind.
 *
 * @return DECANT_NOMEM, DECANT_LIMIT; both models are as they were
 */
decant_status dcn_model_absorb(decant_model *model, decant_model *part, decant_error *err);

/*
 * Sorts the entries by the place of their data (offset in their backing, empty ones first, then name; backings stay in
 * their order) and the values by key, and makes both findable again: the last step of every index. Costs little where they
 * are in order, else 56 bytes an entry for the while.
 */
decant_status dcn_model_sort(decant_model *model, decant_error *err);

/* Sets a value. `replace`: as decant_model_set(); else a key of the same kind is DECANT_DUPLICATE. Everything is copied. */
decant_status dcn_model_set(decant_model *model, const char *key, size_t key_len, const decant_value *value,
                            bool replace, decant_error *err);

/* The value of a key: metadata, or a scalar. NULL if there is none. */
const dcn_value *dcn_model_value(const decant_model *model, const char *key, size_t key_len, bool text);

/* Takes `count` values away, which are copies of some that are there, in their order. */
void dcn_model_forget(decant_model *model, const dcn_value *values, size_t count);

/* Brings the entries into an order: each at its place in `order`, a permutation, which is used up. */
decant_status dcn_model_arrange(decant_model *model, uint32_t *order, decant_error *err);

/* Whether a value is metadata format = pt that was added for loaders: who has other loaders leaves it out. */
bool dcn_model_is_for_loaders(const decant_model *model, const dcn_value *value);

/* The text of a metadata key; NULL if there is none. */
const dcn_value *dcn_model_text(const decant_model *model, const char *key);

/* A file that may be given up with the model: an index has no tensors of its own. */
decant_status dcn_model_own(decant_model *model, dcn_source *source, decant_error *err);

/*
 * All files that its entries lie in may be given up; what they hold is remembered, its values with the file that was named.
 *
 * @param named  [lent] that file, an index perhaps; NULL: it is none
 */
decant_status dcn_model_claim(decant_model *model, dcn_source *named, decant_error *err);

/* The same for the same values, and as good as never for others. */
uint64_t dcn_value_print(const decant_value *value);

/* Adds a file that it lies in; the path is copied, and may be NULL. */
decant_status dcn_model_lies_in(decant_model *model, const char *path, uint64_t size, decant_error *err);

/* Adds something to tell people; copied, sanitised. */
decant_status dcn_model_note(decant_model *model, const char *key, decant_error *err, const char *format, ...)
    DECANT_PRINTF(4, 5);

/* Adds a program that opens the file, or that does not because of `why_not`. */
void dcn_openers_add(dcn_openers *openers, const char *by, const char *why_not);

/* The one at `index`; false past the last. */
bool dcn_openers_get(const dcn_openers *openers, size_t index, const char **by, const char **why_not);

#endif
