#include "model/model.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/alloc.h"
#include "base/chunk.h"
#include "base/ckd.h"
#include "base/compiler.h"
#include "base/sort.h"
#include "base/text.h"

static_assert(sizeof(void *) != 8 || sizeof(dcn_entry) == 64, "a million of them are in memory at once");

/* --- extras ------------------------------------------------------------------------------------------------------ */

dcn_extra *dcn_extra_ref(dcn_extra *extra)
{
    if (extra)
        dcn_refs_up(&extra->refs);
    return extra;
}

void dcn_extra_unref(dcn_extra **extra)
{
    dcn_extra *x = *extra;

    *extra = NULL;
    if (x && dcn_refs_down(&x->refs))
        x->ops->close(x);
}

/* --- names ------------------------------------------------------------------------------------------------------- */

enum { FIRST_NAMES = 16 };

/* More would need indices of more than 32 bits. */
static const size_t most_names = (size_t)1 << 31;

/* How many items a table of `size` slots takes: two thirds, which keeps searches short. */
static size_t names_room(size_t size)
{
    return size / 3 * 2;
}

/* Files an index. Behind the bits that hold it stand some of the hash, so that names are rarely compared in vain. */
static void file_name(dcn_names *names, uint64_t hash, size_t index)
{
    size_t mask = names->size - 1, slot = hash & mask;

    while (names->slots[slot])
        slot = (slot + 1) & mask;
    names->slots[slot] = (uint32_t)(index + 1) | ((uint32_t)(hash >> 32) & ~(uint32_t)mask);
}

/* A search for what is filed under a hash. */
typedef struct search {
    const dcn_names *names;
    uint64_t hash;
    size_t slot;
} search;

static search search_for(const dcn_names *names, uint64_t hash)
{
    return (search){names, hash, hash};
}

/* The next index that may be it; false past the last. */
static bool next_name(search *s, size_t *index)
{
    size_t mask = s->names->size - 1;
    uint32_t slot;

    if (!s->names->size)
        return false;
    while ((slot = s->names->slots[s->slot++ & mask]))
        if (((slot ^ (uint32_t)(s->hash >> 32)) & ~(uint32_t)mask) == 0) {
            *index = (slot & mask) - 1;
            return true;
        }
    return false;
}

/* A larger table if `count` items do not fit, empty. */
static decant_status grow_names(const dcn_names *names, size_t count, dcn_names *out, decant_error *err)
{
    *out = *names;
    if (count <= names_room(names->size))
        return DECANT_OK;
    out->size = names->size ? names->size : FIRST_NAMES;
    while (names_room(out->size) < count && out->size < most_names)
        out->size *= 2;
    if (names_room(out->size) < count)
        return decant_error_set(err, DECANT_LIMIT, "more names than a model can hold");
    out->slots = dcn_alloc(out->size, sizeof *out->slots);
    return out->slots ? DECANT_OK : dcn_error_nomem(err);
}

static uint64_t hash_entry(const decant_model *model, const char *name, size_t len)
{
    return XXH3_64bits_withSeed(name, len, model->seed);
}

static bool is_text(const decant_value *value)
{
    return value->type == DECANT_VALUE_TEXT;
}

static uint64_t hash_value(const decant_model *model, const char *key, size_t len, bool text)
{
    return XXH3_64bits_withSeed(key, len, model->seed + text); /* metadata and scalars are two spaces of keys */
}

static void file_entries(decant_model *model)
{
    for (size_t i = 0; i < model->count; i++)
        file_name(&model->names, hash_entry(model, model->entries[i].name, model->entries[i].name_len), i);
}

static void file_values(decant_model *model)
{
    for (size_t i = 0; i < model->value_count; i++) {
        const dcn_value *v = &model->values[i];

        file_name(&model->keys, hash_value(model, v->key, v->key_len, is_text(&v->value)), i);
    }
}

/* --- a model ----------------------------------------------------------------------------------------------------- */

dcn_limits dcn_limits_of(bool lifted)
{
    if (lifted)
        return (dcn_limits){
            .header = SIZE_MAX / 2,
            .tensors = names_room(most_names),
            .rank = UINT16_MAX,
            .index = SIZE_MAX / 2,
            .shards = UINT32_MAX,
            .name = UINT32_MAX,
            .values = names_room(most_names),
            .value = UINT32_MAX,
            .depth = 128,
        };
    return (dcn_limits){
        .header = UINT64_C(512) << 20,
        .tensors = UINT64_C(1) << 22,
        .rank = DECANT_MAX_RANK,
        .index = UINT64_C(64) << 20,
        .shards = 65535,
        .name = 4096,
        .values = 65536,
        .value = UINT64_C(16) << 20,
        .depth = 128,
    };
}

decant_status dcn_model_create(uint64_t seed, decant_model **out, decant_error *err)
{
    decant_model *model = dcn_alloc(1, sizeof *model);

    if (!model)
        return dcn_error_nomem(err);
    model->seed = seed;
    *out = model;
    return DECANT_OK;
}

void decant_model_close(decant_model **model)
{
    decant_model *m = *model;

    *model = NULL;
    if (!m)
        return;
    for (size_t i = 0; i < m->count; i++) {
        decant_bytes_unref(&m->entries[i].data.backing);
        dcn_extra_unref(&m->entries[i].extra);
    }
    dcn_extra_unref(&m->extra);
    dcn_free(&m->entries);
    dcn_free(&m->names.slots);
    dcn_free(&m->values);
    dcn_free(&m->keys.slots);
    dcn_free(&m->disputed);
    dcn_free(&m->notes);
    dcn_free(&m->origins);
    for (size_t i = 0; i < m->owned_count; i++)
        dcn_source_unref(&m->owned[i]);
    dcn_free(&m->owned);
    dcn_free(&m->files);
    dcn_arena_close(&m->memory);
    dcn_free(&m);
}

/* --- entries ----------------------------------------------------------------------------------------------------- */

decant_status dcn_model_reserve(decant_model *model, size_t count, decant_error *err)
{
    dcn_names names;
    dcn_entry *entries;
    decant_status rc;

    /* names first: there is room for as many as there is for entries, also after a failure */
    if ((rc = grow_names(&model->names, count, &names, err)))
        return rc;
    if (names.size != model->names.size) {
        dcn_free(&model->names.slots);
        model->names = names;
        file_entries(model);
    }
    if (count <= model->cap)
        return DECANT_OK;
    entries = dcn_realloc(model->entries, count, sizeof *entries);
    if (!entries)
        return dcn_error_nomem(err);
    model->entries = entries;
    model->cap = count;
    return DECANT_OK;
}

static bool find_entry(const decant_model *model, uint64_t hash, const char *name, size_t name_len, size_t *index)
{
    search s = search_for(&model->names, hash);
    size_t i;

    while (next_name(&s, &i))
        if (model->entries[i].name_len == name_len && memcmp(model->entries[i].name, name, name_len) == 0) {
            *index = i;
            return true;
        }
    return false;
}

bool dcn_model_find(const decant_model *model, const char *name, size_t name_len, size_t *index)
{
    return find_entry(model, hash_entry(model, name, name_len), name, name_len, index);
}

static decant_status check_draft(const decant_model *model, const dcn_draft *draft, uint64_t hash, decant_error *err)
{
    size_t there;

    if (draft->name_len > UINT32_MAX || draft->rank > UINT16_MAX)
        return decant_error_set(err, DECANT_LIMIT, "its name or its rank is larger than any model can hold");
    if (!draft->stays && !dcn_utf8_valid(draft->name, draft->name_len))
        return decant_error_set(err, DECANT_MALFORMED, "its name is not UTF-8");
    if (!draft->any_name && memchr(draft->name, 0, draft->name_len))
        return decant_error_set(err, DECANT_MALFORMED, "its name holds a NUL");
    if (find_entry(model, hash, draft->name, draft->name_len, &there)) {
        decant_error_set(err, DECANT_DUPLICATE, "two tensors have this name");
        dcn_error_found(err, "tensors %zu and %zu", there, model->count);
        dcn_error_expected(err, "one tensor a name");
        return DECANT_DUPLICATE;
    }
    return DECANT_OK;
}

/* Name and shape are the model's; what else it holds gains a reference. */
static dcn_entry entry_of(const dcn_draft *draft, const char *name, const uint64_t *shape)
{
    return (dcn_entry){
        .name = name,
        .shape = shape,
        .extra = dcn_extra_ref(draft->extra),
        .data = {decant_bytes_ref(draft->data.backing), draft->data.offset, draft->data.len},
        .id = draft->id,
        .name_len = (uint32_t)draft->name_len,
        .rank = (uint16_t)draft->rank,
        .dtype = (uint8_t)draft->dtype,
        .has_id = draft->has_id,
    };
}

decant_status dcn_model_add(decant_model *model, const dcn_draft *draft, decant_error *err)
{
    const char *name = draft->name;
    const uint64_t *shape = NULL;
    uint64_t hash = hash_entry(model, draft->name, draft->name_len);
    decant_status rc;

    if (model->names.size)
        dcn_expect(&model->names.slots[hash & (model->names.size - 1)]);
    if ((rc = check_draft(model, draft, hash, err))) {
        dcn_error_tensor(err, draft->name, draft->name_len);
        return rc;
    }
    if (model->count == model->cap && (rc = dcn_model_reserve(model, model->cap + model->cap / 2 + 8, err)))
        return rc;
    if (!draft->stays && !(name = dcn_arena_copy(&model->memory, draft->name, draft->name_len)))
        return dcn_error_nomem(err);
    if (draft->rank && !(shape = dcn_arena_copy(&model->memory, draft->shape, draft->rank * sizeof *shape)))
        return dcn_error_nomem(err);

    file_name(&model->names, hash, model->count);
    model->entries[model->count++] = entry_of(draft, name, shape);
    return DECANT_OK;
}

decant_status dcn_model_replace(decant_model *model, size_t index, const dcn_draft *draft, decant_error *err)
{
    dcn_entry *entry = &model->entries[index], was = *entry;
    const uint64_t *shape = NULL;

    if (draft->rank && !(shape = dcn_arena_copy(&model->memory, draft->shape, draft->rank * sizeof *shape)))
        return dcn_error_nomem(err);
    *entry = entry_of(draft, was.name, shape);
    decant_bytes_unref(&was.data.backing);
    dcn_extra_unref(&was.extra);
    return DECANT_OK;
}

decant_status dcn_model_absorb(decant_model *model, decant_model *part, decant_error *err)
{
    size_t all = model->count + part->count, half_more = model->cap + model->cap / 2;
    decant_status rc;

    if (all > model->cap && (rc = dcn_model_reserve(model, all > half_more ? all : half_more, err)))
        return rc;
    dcn_arena_join(&model->memory, &part->memory);
    for (size_t i = 0; i < part->count; i++) {
        const dcn_entry *entry = &part->entries[i];

        file_name(&model->names, hash_entry(model, entry->name, entry->name_len), model->count);
        model->entries[model->count++] = *entry;
    }
    if (part->names.size)
        memset(part->names.slots, 0, part->names.size * sizeof *part->names.slots);
    part->count = 0;
    return DECANT_OK;
}

/* --- order ------------------------------------------------------------------------------------------------------- */

/* What entries are sorted by: small, and seldom with a look at the entry itself. */
typedef struct place_key {
    const dcn_entry *entry;
    size_t run; /* of entries with one backing: files stay in their order */
    uint64_t offset;
} place_key;

/* The key of entry `i`, in the run of the one before it or the next. */
static place_key key_of(const decant_model *model, size_t i, size_t run)
{
    const dcn_entry *entry = &model->entries[i];

    run += i && entry->data.backing != entry[-1].data.backing;
    return (place_key){entry, run, entry->data.offset};
}

static int by_place(const void *a, const void *b)
{
    const place_key *x = a, *y = b;

    if (x->run != y->run)
        return x->run < y->run ? -1 : 1;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    if (!x->entry->data.len != !y->entry->data.len)
        return x->entry->data.len ? 1 : -1; /* an empty one stood in front of what begins where it does */
    return dcn_text_compare(x->entry->name, x->entry->name_len, y->entry->name, y->entry->name_len);
}

static bool in_place(const decant_model *model)
{
    place_key before, here;

    for (size_t i = 0; i < model->count; i++, before = here) {
        here = key_of(model, i, i ? before.run : 0);
        if (i && by_place(&before, &here) > 0)
            return false;
    }
    return true;
}

/* Puts entries in their new order: `was` says where each one comes from, and is used up. */
static void permute(dcn_entry *entries, uint32_t *was, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        dcn_entry held = entries[i];
        size_t hole = i, from;

        while ((from = was[hole]) != i) {
            entries[hole] = entries[from];
            was[hole] = (uint32_t)hole;
            hole = from;
        }
        entries[hole] = held;
        was[hole] = (uint32_t)hole;
    }
}

/* Puts the new index into each slot of the names: `now` of the old one. The hash's bits stay, so no name is looked at. */
static void refile_entries(decant_model *model, const uint32_t *now)
{
    uint32_t mask = (uint32_t)model->names.size - 1;

    for (size_t i = 0; i < model->names.size; i++) {
        uint32_t slot = model->names.slots[i];

        if (slot)
            model->names.slots[i] = (now[(slot & mask) - 1] + 1) | (slot & ~mask);
    }
}

/*
 * Brings keys in the order of their offsets, a digit at a time and without comparing, so that the sort that follows finds
 * little to do. @return `keys` or `spare`, whichever holds the result
 */
static place_key *spread(place_key *keys, place_key *spare, size_t count)
{
    enum { BITS = 11, DIGITS = 1 << BITS };
    uint64_t all = 0;

    for (size_t i = 0; i < count; i++)
        all |= keys[i].offset;
    for (unsigned shift = 0; shift < 64 && all >> shift; shift += BITS) {
        size_t next[DIGITS] = {0}, start = 0;
        place_key *filled = spare;

        for (size_t i = 0; i < count; i++)
            next[keys[i].offset >> shift & (DIGITS - 1)]++;
        for (size_t digit = 0; digit < DIGITS; digit++) {
            size_t many = next[digit];

            next[digit] = start;
            start += many;
        }
        for (size_t i = 0; i < count; i++)
            spare[next[keys[i].offset >> shift & (DIGITS - 1)]++] = keys[i];
        spare = keys;
        keys = filled;
    }
    return keys;
}

static decant_status sort_entries(decant_model *model, decant_error *err)
{
    size_t count = model->count;
    place_key *keys = NULL, *spare = NULL, *sorted;
    uint32_t *was = NULL, *now = NULL;
    decant_status rc = DECANT_OK;

    if (in_place(model))
        return DECANT_OK;
    if (!(keys = dcn_alloc(count, sizeof *keys)) || !(spare = dcn_alloc(count, sizeof *spare)) ||
        !(was = dcn_alloc(count, sizeof *was)) || !(now = dcn_alloc(count, sizeof *now))) {
        rc = dcn_error_nomem(err);
        goto done;
    }
    for (size_t i = 0; i < count; i++)
        keys[i] = key_of(model, i, i ? keys[i - 1].run : 0);
    sorted = spread(keys, spare, count);
    dcn_sort(sorted, count, sizeof *sorted, by_place);
    for (size_t i = 0; i < count; i++) {
        was[i] = (uint32_t)(sorted[i].entry - model->entries);
        now[was[i]] = (uint32_t)i;
    }
    permute(model->entries, was, count);
    refile_entries(model, now);
done:
    dcn_free(&now);
    dcn_free(&was);
    dcn_free(&spare);
    dcn_free(&keys);
    return rc;
}

static int by_key(const void *a, const void *b)
{
    const dcn_value *x = a, *y = b;
    int order = dcn_text_compare(x->key, x->key_len, y->key, y->key_len);

    return order ? order : is_text(&y->value) - is_text(&x->value);
}

decant_status dcn_model_arrange(decant_model *model, uint32_t *order, decant_error *err)
{
    uint32_t *was = dcn_alloc(model->count, sizeof *was);

    if (!was)
        return dcn_error_nomem(err);
    for (size_t i = 0; i < model->count; i++)
        was[order[i]] = (uint32_t)i;
    permute(model->entries, was, model->count);
    refile_entries(model, order);
    dcn_free(&was);
    return DECANT_OK;
}

decant_status dcn_model_sort(decant_model *model, decant_error *err)
{
    if (!dcn_sorted(model->values, model->value_count, sizeof *model->values, by_key)) {
        dcn_sort(model->values, model->value_count, sizeof *model->values, by_key);
        memset(model->keys.slots, 0, model->keys.size * sizeof *model->keys.slots);
        file_values(model);
    }
    return sort_entries(model, err);
}

/* --- values ------------------------------------------------------------------------------------------------------ */

static bool find_value(const decant_model *model, const char *key, size_t key_len, bool text, size_t *index)
{
    search s = search_for(&model->keys, hash_value(model, key, key_len, text));
    size_t i;

    while (next_name(&s, &i))
        if (is_text(&model->values[i].value) == text && model->values[i].key_len == key_len &&
            memcmp(model->values[i].key, key, key_len) == 0) {
            *index = i;
            return true;
        }
    return false;
}

/* Room for one more. */
static decant_status grow_values(decant_model *model, decant_error *err)
{
    dcn_value *values = dcn_grown(model->values, model->value_count, &model->value_cap, sizeof *values);
    dcn_names keys;
    decant_status rc;

    if (!values)
        return dcn_error_nomem(err);
    model->values = values;
    if ((rc = grow_names(&model->keys, model->value_count + 1, &keys, err)))
        return rc;
    if (keys.size != model->keys.size) {
        dcn_free(&model->keys.slots);
        model->keys = keys;
        file_values(model);
    }
    return DECANT_OK;
}

static decant_status check_value(const char *key, size_t key_len, const decant_value *value, decant_error *err)
{
    char safe[128];
    bool good_key = dcn_utf8_valid(key, key_len);

    if (good_key && (!is_text(value) || dcn_utf8_valid(value->as.text.data, value->as.text.len)))
        return DECANT_OK;
    dcn_text_escape(safe, sizeof safe, key, key_len);
    return decant_error_set(err, DECANT_MALFORMED, "the %s '%s' is not UTF-8", good_key ? "value of" : "key", safe);
}

decant_status dcn_model_set(decant_model *model, const char *key, size_t key_len, const decant_value *value,
                            bool replace, decant_error *err)
{
    decant_value own = *value;
    const char *own_key;
    size_t there;
    bool known;
    decant_status rc;

    if ((rc = check_value(key, key_len, value, err)))
        return rc;
    known = find_value(model, key, key_len, is_text(value), &there);
    if (known && !replace) {
        char safe[128];

        dcn_text_escape(safe, sizeof safe, key, key_len);
        return decant_error_set(err, DECANT_DUPLICATE, "two %s have the key '%s'", is_text(value) ? "texts" : "scalars",
                                safe);
    }
    if (is_text(value) && !(own.as.text.data = dcn_arena_copy(&model->memory, value->as.text.data, own.as.text.len)))
        return dcn_error_nomem(err);
    if (known) {
        model->values[there].value = own;
        return DECANT_OK;
    }
    if ((rc = grow_values(model, err)))
        return rc;
    if (!(own_key = dcn_arena_copy(&model->memory, key, key_len)))
        return dcn_error_nomem(err);
    file_name(&model->keys, hash_value(model, own_key, key_len, is_text(value)), model->value_count);
    model->values[model->value_count++] = (dcn_value){own_key, key_len, own};
    return DECANT_OK;
}

const dcn_value *dcn_model_value(const decant_model *model, const char *key, size_t key_len, bool text)
{
    size_t index;

    return find_value(model, key, key_len, text, &index) ? &model->values[index] : NULL;
}

void dcn_model_forget(decant_model *model, const dcn_value *values, size_t count)
{
    size_t left = 0, gone = 0;

    for (size_t i = 0; i < model->value_count; i++) {
        if (gone < count && values[gone].key == model->values[i].key)
            gone++;
        else
            model->values[left++] = model->values[i];
    }
    assert(gone == count);
    model->value_count = left;
    if (model->keys.size)
        memset(model->keys.slots, 0, model->keys.size * sizeof *model->keys.slots);
    file_values(model);
}

bool dcn_model_is_for_loaders(const decant_model *model, const dcn_value *value)
{
    return model->for_loaders && is_text(&value->value) &&
           dcn_chunk_is((dcn_chunk){value->key, value->key_len}, "format") &&
           dcn_chunk_is((dcn_chunk){value->value.as.text.data, value->value.as.text.len}, "pt");
}

const dcn_value *dcn_model_text(const decant_model *model, const char *key)
{
    return dcn_model_value(model, key, strlen(key), true);
}

decant_status dcn_model_dispute(decant_model *model, const char *key, size_t key_len, decant_error *err)
{
    dcn_chunk *disputed = dcn_grown(model->disputed, model->disputed_count, &model->disputed_cap, sizeof *disputed);
    const char *own = dcn_arena_copy(&model->memory, key, key_len);

    if (disputed)
        model->disputed = disputed;
    if (!disputed || !own)
        return dcn_error_nomem(err);
    disputed[model->disputed_count++] = (dcn_chunk){own, key_len};
    return DECANT_OK;
}

bool dcn_model_disputes(const decant_model *model, const char *key)
{
    for (size_t i = 0; i < model->disputed_count; i++)
        if (dcn_chunk_is(model->disputed[i], key))
            return true;
    return false;
}

/* --- files ------------------------------------------------------------------------------------------------------- */

decant_status dcn_model_lies_in(decant_model *model, const char *path, uint64_t size, decant_error *err)
{
    dcn_model_file *files = dcn_realloc(model->files, model->file_count + 1, sizeof *files);
    const char *own = NULL;

    if (!files)
        return dcn_error_nomem(err);
    model->files = files;
    if (path && !(own = dcn_arena_copy(&model->memory, path, strlen(path) + 1)))
        return dcn_error_nomem(err);
    files[model->file_count++] = (dcn_model_file){own, size};
    return DECANT_OK;
}

decant_status dcn_model_own(decant_model *model, dcn_source *source, decant_error *err)
{
    dcn_source **owned;

    for (size_t i = model->owned_count; i-- > 0;) /* the last one is mostly it */
        if (model->owned[i] == source)
            return DECANT_OK;
    if (!(owned = dcn_grown(model->owned, model->owned_count, &model->owned_cap, sizeof(dcn_source *))))
        return dcn_error_nomem(err);
    model->owned = owned;
    dcn_source_own(source);
    owned[model->owned_count++] = dcn_source_ref(source);
    return DECANT_OK;
}

/* Bytes of an entry in files, each of which must not be lost with its file. */
static decant_status claim_entry(decant_model *model, const dcn_entry *entry, decant_error *err)
{
    uint64_t end = entry->data.offset + entry->data.len;
    decant_status rc = DECANT_OK;

    for (uint64_t at = entry->data.offset; at < end && rc == DECANT_OK;) {
        dcn_claim claim = {.name = entry->name, .name_len = entry->name_len};
        dcn_place place;

        if (!dcn_backing_place(entry->data.backing, at, &place))
            return DECANT_OK;
        claim.at = place.at;
        claim.len = dcn_min(place.upto, end) - at;
        at += claim.len;
        if ((rc = dcn_model_own(model, place.source, err)) == DECANT_OK)
            rc = dcn_source_claim(place.source, &claim, err);
    }
    return rc;
}

uint64_t dcn_value_print(const decant_value *value)
{
    uint64_t seed = (uint64_t)value->type, boolean = value->type == DECANT_VALUE_BOOL && value->as.boolean;

    if (is_text(value))
        return XXH3_64bits_withSeed(value->as.text.data, value->as.text.len, seed);
    return XXH3_64bits_withSeed(value->type == DECANT_VALUE_BOOL ? &boolean : &value->as.u64, sizeof(uint64_t), seed);
}

/* What was added for loaders is no part of the file's own. */
static decant_status claim_value(const decant_model *model, dcn_source *named, const dcn_value *value,
                                 decant_error *err)
{
    dcn_claim claim = {.kind = is_text(&value->value) ? DCN_CLAIM_TEXT : DCN_CLAIM_SCALAR,
                       .name = value->key,
                       .name_len = value->key_len,
                       .print = dcn_value_print(&value->value)};

    return dcn_model_is_for_loaders(model, value) ? DECANT_OK : dcn_source_claim(named, &claim, err);
}

decant_status dcn_model_claim(decant_model *model, dcn_source *named, decant_error *err)
{
    decant_status rc = named ? dcn_model_own(model, named, err) : DECANT_OK;

    for (size_t i = 0; i < model->count && rc == DECANT_OK; i++) {
        const dcn_entry *entry = &model->entries[i];

        if (entry->data.len)
            rc = claim_entry(model, entry, err);
        else if (named)
            rc = dcn_source_claim(named, &(dcn_claim){.name = entry->name, .name_len = entry->name_len}, err);
    }
    for (size_t i = 0; named && i < model->value_count && rc == DECANT_OK; i++)
        rc = claim_value(model, named, &model->values[i], err);
    return rc;
}

/* --- notes ------------------------------------------------------------------------------------------------------- */

decant_status dcn_model_note(decant_model *model, const char *key, decant_error *err, const char *format, ...)
{
    char raw[512], safe[512];
    dcn_note *notes = dcn_realloc(model->notes, model->note_count + 1, sizeof *notes);
    dcn_note note;
    va_list args;

    if (!notes)
        return dcn_error_nomem(err);
    model->notes = notes;
    va_start(args, format);
    vsnprintf(raw, sizeof raw, format, args);
    va_end(args);
    dcn_text_escape(safe, sizeof safe, raw, dcn_utf8_cut(raw, strlen(raw), sizeof raw));
    note.key = dcn_arena_copy(&model->memory, key, strlen(key) + 1);
    note.text = dcn_arena_copy(&model->memory, safe, strlen(safe) + 1);
    if (!note.key || !note.text)
        return dcn_error_nomem(err);
    notes[model->note_count++] = note;
    return DECANT_OK;
}

void dcn_openers_add(dcn_openers *openers, const char *by, const char *why_not)
{
    assert(openers->count < sizeof openers->items / sizeof *openers->items);
    openers->items[openers->count].by = by;
    openers->items[openers->count++].why_not = why_not;
}

bool dcn_openers_get(const dcn_openers *openers, size_t index, const char **by, const char **why_not)
{
    if (index >= openers->count)
        return false;
    *by = openers->items[index].by;
    *why_not = openers->items[index].why_not;
    return true;
}
