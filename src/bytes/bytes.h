/*
 * What stands behind a decant_bytes. A backing and a handle are one thing: file, host memory, provider, slice and rope are
 * decant_bytes with a table each, and a span is a range of one, stored as a value.
 */
#ifndef DCN_BYTES_H
#define DCN_BYTES_H

#include <decant/bytes.h>

#include <stdbool.h>

#include "base/thread.h"
#include "bytes/source.h"

typedef struct decant_bytes dcn_backing;

/* A range of a backing, 24 bytes. Who stores one holds a reference on its backing. */
typedef struct dcn_span {
    dcn_backing *backing;
    uint64_t offset, len;
} dcn_span;

/* Where a range lies, as far as it lies in one place: until `upto` (relative to the backing), at `at` in `source`. */
typedef struct dcn_place {
    dcn_source *source;
    uint64_t at, upto;
} dcn_place;

/* One range wanted. */
typedef struct dcn_fetch {
    uint64_t at; /* in the backing */
    void *dst;
    size_t len;
} dcn_fetch;

/*
 * What bytes are that are made of others: unit by unit, `to` bytes of each `from` of the input. A cast's unit is a number.
 */
typedef struct dcn_recipe {
    dcn_span input; /* its backing is held */
    unsigned from, to;
} dcn_recipe;

/* What a model's bytes are when somebody asks. Called through the functions below only. */
typedef struct dcn_backing_ops {
    const char *kind; /* "file": reports */
    bool takes_turns; /* a provider: rising offsets, once, one at a time */
    /* fills every fetch, or fails. begin may only start the work (a device copy); finish, if there is one, waits */
    decant_status (*begin)(dcn_backing *b, dcn_fetch *f, size_t count, decant_error *err);
    decant_status (*finish)(dcn_backing *b, dcn_fetch *f, size_t count, decant_error *err);
    /* optional: memory that holds the range, until the view is released; DECANT_UNSUPPORTED: not this range */
    decant_status (*lend)(dcn_backing *b, uint64_t at, uint64_t len, decant_view *out, decant_error *err);
    /* optional: where in which source; false: in none */
    bool (*place)(dcn_backing *b, uint64_t at, dcn_place *out);
    /* optional: the backing that holds `at`, with the offset there and how far it goes: slices and ropes */
    dcn_backing *(*under)(dcn_backing *b, uint64_t at, uint64_t *offset, uint64_t *upto);
    /* optional: of what and how these bytes are made */
    const dcn_recipe *(*recipe)(dcn_backing *b);
    /* optional, without recipe: the bytes that it reads to give its own, so that their source is known */
    const dcn_span *(*raw)(dcn_backing *b);
    /* with recipe: makes `count` units, from the one at index `unit` on. `dst` is apart from `raw` */
    decant_status (*make)(dcn_backing *b, uint64_t unit, size_t count, const uint8_t *raw, uint8_t *dst,
                          decant_error *err);
    /*
     * The last reference is gone: release everything, the backing itself too. What is returned is unreferenced next, so
     * that a long chain of slices goes without recursion.
     */
    dcn_backing *(*close)(dcn_backing *b);
} dcn_backing_ops;

struct decant_bytes {
    const dcn_backing_ops *ops;
    dcn_refs refs;
    uint64_t len;
    unsigned depth; /* ropes and casts below it: bounded, so that reading never recurses further */
    dcn_mutex lock; /* guards what follows */
    _Atomic(struct dcn_kept *)
        kept; /* memory that keep() filled, counted; NULL: none, which may be seen without the lock */
    struct dcn_attempt *attempt; /* the keep() that is reading now; NULL: none */
};

/* What a view's `hold` points to: a part of whatever is given back with the view. NULL: nothing is. */
typedef struct dcn_hold dcn_hold;
struct dcn_hold {
    void (*release)(dcn_hold *hold);
};

/*
 * The rest of the public functions, without the checks of arguments that api/bytes.c makes first. (Those that need no check,
 * to count references and give views back, are in backing.c.)
 */
decant_status dcn_bytes_wrap(const void *data, size_t len, void (*release)(void *ctx), void *ctx, decant_bytes **out,
                             decant_error *err);
decant_status dcn_bytes_copy(const void *data, size_t len, decant_bytes **out, decant_error *err);
decant_status dcn_bytes_defer(uint64_t len, const decant_provider *provider, decant_bytes **out, decant_error *err);
decant_status dcn_bytes_slice(decant_bytes *bytes, uint64_t offset, uint64_t len, decant_bytes **out,
                              decant_error *err);
decant_status dcn_bytes_join(decant_bytes *const *parts, size_t count, decant_bytes **out, decant_error *err);
decant_status dcn_bytes_pin(decant_bytes *bytes, uint64_t offset, uint64_t len, unsigned flags, decant_view *out,
                            decant_error *err);
decant_status dcn_bytes_keep(decant_bytes *bytes, decant_error *err);

/*
 * What a callback of the caller's said, as decant's own failure. `said` is the error it was given, cleared before.
 *
 * @param rc    what it returned
 * @param what  "provider": for one that failed without a word
 */
decant_status dcn_callback_outcome(decant_status rc, decant_error *said, const char *what, decant_error *err);

/* Ropes and casts may nest this deep; deeper is DECANT_BAD_CALL. */
enum { DCN_ROPE_DEPTH = 32 };

/* Prepares the common part; the references are 1. */
void dcn_backing_init(dcn_backing *b, const dcn_backing_ops *ops, uint64_t len);

/* All of a source as bytes. Takes over the caller's reference on `source` on success. */
decant_status dcn_bytes_from_source(dcn_source *source, decant_bytes **out, decant_error *err);

/* Reads ranges of a span's backing (offsets count in the backing), whatever is behind it. Never caches. */
decant_status dcn_backing_fetch(dcn_backing *b, dcn_fetch *f, size_t count, decant_error *err);

/*
 * Memory that holds [at, at + len) already (host memory, kept bytes), or that a provider produces for the whole of it
 * (`may_produce`). DECANT_UNSUPPORTED, the error untouched, where there is none: fetch instead.
 */
decant_status dcn_backing_lend(dcn_backing *b, uint64_t at, uint64_t len, bool may_produce, decant_view *out,
                               decant_error *err);

/* Where `at` lies in which source, through slices and ropes; false where it is in none or in memory already. */
bool dcn_backing_place(dcn_backing *b, uint64_t at, dcn_place *out);

/* The last answer to that question: it is good for neighbours too. {0} at first; backings must live as long as it is used. */
typedef struct dcn_finder {
    const dcn_backing *b;
    uint64_t at; /* where in it `place` begins */
    dcn_place place;
} dcn_finder;

/* What dcn_find_place() does where the last answer is not good. */
bool dcn_finder_ask(dcn_finder *finder, dcn_backing *b, uint64_t at);

/* As dcn_backing_place(), for one span after the other. */
static inline bool dcn_find_place(dcn_finder *finder, dcn_backing *b, uint64_t at, dcn_place *out)
{
    if ((b != finder->b || at < finder->at || at >= finder->place.upto) && !dcn_finder_ask(finder, b, at))
        return false;
    *out = finder->place;
    out->at += at - finder->at;
    return true;
}

/*
 * The backing that answers for `at` in the end, after slices and ropes: a file, memory, a provider, or kept bytes
 * themselves. `upto` is how far that holds, relative to `b`; `offset` where `at` lies in the result.
 */
dcn_backing *dcn_backing_leaf(dcn_backing *b, uint64_t at, uint64_t *offset, uint64_t *upto);

/* Whether all of it is held by keep(). */
bool dcn_backing_is_kept(dcn_backing *b);

/* Of what and how a leaf's bytes are made; NULL if of nothing else, or if they are kept. */
const dcn_recipe *dcn_backing_recipe(dcn_backing *leaf);

/* Whether a leaf is a provider, or made of one in the end. */
bool dcn_backing_takes_turns(dcn_backing *leaf);

/* The part of a recipe's input from which bytes [at, at + len) are made: whole units. */
dcn_span dcn_recipe_raw(const dcn_recipe *recipe, uint64_t at, uint64_t len);

/* Makes bytes [at, at + len) of a leaf that has a recipe. @param raw  the bytes of dcn_recipe_raw() */
decant_status dcn_backing_make(dcn_backing *leaf, uint64_t at, size_t len, const void *raw, void *dst,
                               decant_error *err);

#endif
