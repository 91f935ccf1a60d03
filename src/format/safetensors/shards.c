/*
 * A model in several files. An index maps every tensor to a file beside it:
 *
 *     {"metadata": {"total_size": 16060522496}, "weight_map": {"lm_head.weight": "model-00004-of-00004.safetensors", ...}}
 *
 * Or there is none, and the names of the files say how many there are: model-00001-of-00004.safetensors. Each is a whole
 * file, indexed as one; none is read but through the door of its input.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/ckd.h"
#include "base/endian.h"
#include "base/sort.h"
#include "base/text.h"
#include "codec/json.h"
#include "format/limit.h"
#include "format/safetensors/keep.h"
#include "format/safetensors/layout.h"

/* A member of the map; both texts lie in that of the index. */
typedef struct mapping {
    const char *tensor, *file; /* the file is followed by a NUL */
    uint32_t tensor_len, file_len;
} mapping;

typedef struct shard {
    const char *name; /* bare */
    size_t name_len;
    size_t from, to; /* its tensors in the map; none where there is no index */
    size_t end;      /* of its entries in the model, once it is in */
} shard;

typedef struct set {
    dcn_input *in; /* the index, or the first shard */
    const dcn_limits *limits;
    unsigned lenient; /* DECANT_LENIENT_* */
    decant_model *model;
    decant_error *err;

    bool indexed;
    char *text;   /* of the index; or the names of the shards, where there is none */
    mapping *map; /* sorted by file, then by tensor */
    size_t map_count, map_cap;
    uint64_t total; /* bytes of all tensors, as the index says */
    bool has_total;

    shard *shards; /* sorted by name */
    size_t count;

    decant_model *values; /* of all shards so far */
    uint64_t plain;       /* of them that are no keys of decant's own */
    bool *differ;         /* by value: not all shards have the same */
    size_t differ_cap;
    uint64_t unmapped; /* tensors that leniency let in */
    size_t told;       /* faults of names */
} set;

enum { MOST_TOLD = 1000 }; /* one after that in each shard */

static int by_tensor(const void *a, const void *b)
{
    const mapping *x = a, *y = b;

    return dcn_text_compare(x->tensor, x->tensor_len, y->tensor, y->tensor_len);
}

static int by_file(const void *a, const void *b)
{
    const mapping *x = a, *y = b;
    int order = dcn_text_compare(x->file, x->file_len, y->file, y->file_len);

    return order ? order : by_tensor(a, b);
}

/* --- the index --------------------------------------------------------------------------------------------------- */

/* Some write the size as 1.6e10 or 16060522496.0. One that is no plain integer is not compared: it is for people. */
static decant_status read_total(set *s, dcn_json *json)
{
    char first = dcn_json_peek(json);
    const char *at = json->at;

    s->has_total = first >= '0' && first <= '9';
    s->total = 0;
    if (!dcn_json_skip(json, s->limits->depth))
        return json->status;
    for (; s->has_total && at < json->at; at++)
        s->has_total = *at >= '0' && *at <= '9' && !dcn_ckd_mul(&s->total, s->total, 10) &&
                       !dcn_ckd_add(&s->total, s->total, *at - '0');
    return DECANT_OK;
}

static decant_status read_metadata(set *s, dcn_json *json)
{
    static const char total[] = "total_size";
    dcn_chunk key;
    decant_status rc;

    if (dcn_json_peek(json) != '{') {
        dcn_json_skip(json, s->limits->depth);
        return json->status;
    }
    dcn_json_object(json);
    while (dcn_json_key(json, &key)) {
        if (key.len == sizeof total - 1 && memcmp(key.data, total, key.len) == 0) {
            if ((rc = read_total(s, json)))
                return rc;
        } else {
            dcn_json_skip(json, s->limits->depth);
        }
    }
    return json->status;
}

static decant_status grow_map(set *s)
{
    mapping *map = dcn_grown(s->map, s->map_count, &s->map_cap, sizeof *map);

    if (!map)
        return dcn_error_nomem(s->err);
    s->map = map;
    return DECANT_OK;
}

static decant_status read_map(set *s, dcn_json *json)
{
    dcn_chunk tensor, file;
    decant_status rc;

    dcn_json_object(json);
    while (dcn_json_key(json, &tensor) && dcn_json_string(json, &file)) {
        if (s->map_count == s->limits->tensors)
            return dcn_past_limit("the number of tensors", (uint64_t)s->map_count + 1, s->limits->tensors, s->err);
        if (tensor.len > UINT32_MAX || file.len > UINT32_MAX)
            return decant_error_set(s->err, DECANT_LIMIT, "a name is longer than any model can hold");
        if ((rc = grow_map(s)))
            return rc;
        s->map[s->map_count++] = (mapping){tensor.data, file.data, (uint32_t)tensor.len, (uint32_t)file.len};
    }
    return json->status;
}

/* Which of two files a tensor is in must not hang on who reads the index. */
static decant_status check_map(set *s)
{
    dcn_sort(s->map, s->map_count, sizeof *s->map, by_tensor);
    for (size_t i = 1; i < s->map_count; i++) {
        const mapping *a = &s->map[i - 1], *b = &s->map[i];

        if (by_tensor(a, b) != 0)
            continue;
        decant_error_set(s->err, DECANT_DUPLICATE, "the index maps it twice");
        dcn_error_found(s->err, "'%.*s' and '%.*s'", (int)dcn_min(a->file_len, 48), a->file,
                        (int)dcn_min(b->file_len, 48), b->file);
        dcn_error_tensor(s->err, a->tensor, a->tensor_len);
        dcn_error_hint(s->err, "write the index again with the program that made it");
        return DECANT_DUPLICATE;
    }
    dcn_sort(s->map, s->map_count, sizeof *s->map, by_file);
    return DECANT_OK;
}

static decant_status read_members(set *s, dcn_json *json)
{
    enum { METADATA, MAP, MEMBERS };
    static const char *const members[] = {"metadata", "weight_map"};
    bool seen[MEMBERS] = {false};
    dcn_chunk key;
    int member;
    decant_status rc = DECANT_OK;

    dcn_json_object(json);
    while (rc == DECANT_OK && dcn_json_key(json, &key)) {
        for (member = METADATA; member < MEMBERS; member++)
            if (dcn_chunk_is(key, members[member]))
                break;
        if (member == MEMBERS) {
            dcn_json_skip(json, s->limits->depth);
            continue;
        }
        if (seen[member]) {
            decant_error_set(s->err, DECANT_DUPLICATE, "two members are called '%s'", members[member]);
            dcn_error_at(s->err, dcn_json_offset(json));
            dcn_error_hint(s->err, "write the index again with the program that made it");
            return DECANT_DUPLICATE;
        }
        seen[member] = true;
        rc = member == MAP ? read_map(s, json) : read_metadata(s, json);
    }
    if (rc || (rc = dcn_json_end(json)))
        return rc;
    if (seen[MAP])
        return check_map(s);
    decant_error_set(s->err, DECANT_MALFORMED, "no 'weight_map', which says which tensor is in which file");
    dcn_error_hint(s->err, "name the file that holds the tensors");
    return DECANT_MALFORMED;
}

static decant_status read_index(set *s)
{
    uint64_t size = s->in->bytes->len;
    dcn_fetch fetch = {0, NULL, (size_t)size};
    dcn_json json;
    decant_status rc;

    if (size > s->limits->index)
        return dcn_past_limit("the length of the index", size, s->limits->index, s->err);
    if (!(s->text = dcn_alloc((size_t)size, 1)))
        return dcn_error_nomem(s->err);
    fetch.dst = s->text;
    if ((rc = dcn_backing_fetch(s->in->bytes, &fetch, 1, s->err)))
        return rc;
    json = dcn_json_on(s->text, (size_t)size, 0, s->err);
    return read_members(s, &json);
}

/* --- values ------------------------------------------------------------------------------------------------------ */

static bool same_text(const dcn_value *a, const dcn_value *b)
{
    return a->value.as.text.len == b->value.as.text.len &&
           memcmp(a->value.as.text.data, b->value.as.text.data, a->value.as.text.len) == 0;
}

static decant_status add_value(set *s, const dcn_value *value)
{
    bool *differ;

    if (!dcn_st_is_kept(value->key, value->key_len) && s->plain++ == s->limits->values)
        return dcn_past_limit("the number of metadata entries", s->plain, s->limits->values, s->err);
    if (!(differ = dcn_grown(s->differ, s->values->value_count, &s->differ_cap, sizeof *differ)))
        return dcn_error_nomem(s->err);
    s->differ = differ;
    differ[s->values->value_count] = false;
    return dcn_model_set(s->values, value->key, value->key_len, &value->value, false, s->err);
}

/* Parts carry the metadata of the whole, each a copy. */
static decant_status take_values(set *s, const decant_model *part)
{
    decant_status rc;

    for (size_t i = 0; i < part->value_count; i++) {
        const dcn_value *value = &part->values[i], *there;

        there = dcn_model_value(s->values, value->key, value->key_len, true);
        if (!there && (rc = add_value(s, value)))
            return rc;
        if (there && !same_text(there, value))
            s->differ[there - s->values->values] = true;
    }
    if (part->extra && !s->model->extra)
        s->model->extra = dcn_extra_ref(part->extra);
    return DECANT_OK;
}

/* What is the same in all parts that have it is the model's. The rest no one value can stand for: told, and lost. */
static decant_status keep_values(set *s)
{
    const dcn_value *first = NULL;
    size_t differing = 0;
    char key[96];
    decant_status rc;

    for (size_t i = 0; i < s->values->value_count; i++) {
        const dcn_value *value = &s->values->values[i];

        assert(s->values->values);
        if (s->differ[i]) {
            first = first ? first : value;
            differing++;
            if ((rc = dcn_model_dispute(s->model, value->key, value->key_len, s->err)))
                return rc;
        } else if ((rc = dcn_model_set(s->model, value->key, value->key_len, &value->value, false, s->err))) {
            return rc;
        }
    }
    if (s->model->value_count)
        dcn_extra_unref(&s->model->extra); /* it says that metadata is there and empty */
    if (!first)
        return DECANT_OK;
    dcn_text_escape(key, sizeof key, first->key, first->key_len);
    return dcn_model_note(s->model, "odd", s->err,
                          "%zu metadata key%s, of which the shards say different things, left out: '%s'%s", differing,
                          differing == 1 ? "" : "s", key, differing == 1 ? "" : " and others");
}

/* --- the shards -------------------------------------------------------------------------------------------------- */

static decant_status too_many_shards(const set *s, uint64_t count)
{
    return dcn_past_limit("the number of shards", count, s->limits->shards, s->err);
}

/* The files of the map, and what it says of each. */
static decant_status list_mapped(set *s)
{
    size_t files = 0;

    if (s->map_count == 0) {
        decant_error_set(s->err, DECANT_MALFORMED, "the index names no file");
        dcn_error_hint(s->err, "fetch it again");
        return DECANT_MALFORMED;
    }
    for (size_t i = 0; i < s->map_count; i++)
        files += i == 0 || s->map[i].file_len != s->map[i - 1].file_len ||
                 memcmp(s->map[i].file, s->map[i - 1].file, s->map[i].file_len) != 0;
    if (files > s->limits->shards)
        return too_many_shards(s, files);
    if (!(s->shards = dcn_alloc(files, sizeof *s->shards)))
        return dcn_error_nomem(s->err);
    for (size_t i = 0; i < s->map_count; i++) {
        const mapping *m = &s->map[i];
        shard *last = s->count ? &s->shards[s->count - 1] : NULL;

        if (!last || m->file_len != last->name_len || memcmp(m->file, last->name, last->name_len) != 0) {
            last = &s->shards[s->count++];
            *last = (shard){.name = m->file, .name_len = m->file_len, .from = i};
        }
        last->to = i + 1;
    }
    return DECANT_OK;
}

/* The names that the first one stands for. */
static decant_status list_named(set *s, const dcn_split *part)
{
    const char *base = dcn_input_base(s->in);
    size_t room = strlen(base) + DCN_SPLIT_LONGER + 1;

    if (part->count > s->limits->shards)
        return too_many_shards(s, part->count);
    s->text = dcn_alloc(part->count, room);
    s->shards = dcn_alloc(part->count, sizeof *s->shards);
    if (!s->text || !s->shards)
        return dcn_error_nomem(s->err);
    for (; s->count < part->count; s->count++) {
        char *name = s->text + s->count * room;

        dcn_split_name(name, room, base, part, (uint32_t)s->count + 1);
        s->shards[s->count] = (shard){.name = name, .name_len = strlen(name)};
    }
    return DECANT_OK;
}

/* One that cannot be opened. How many are missing tells a download that stopped from a file that was lost. */
static decant_status lack_shard(set *s, shard *here, decant_status rc)
{
    const dcn_findings *findings = s->in->findings;
    size_t missing = 0;

    here->end = s->model->count;
    if (rc == DECANT_LIMIT)
        dcn_error_expected(s->err, "as many as there are shards, %zu, and some more", s->count);
    if (rc != DECANT_NOT_FOUND)
        return dcn_fault(findings, rc, s->err);
    dcn_error_recast(s->err, rc, "a shard is missing");
    if (findings) { /* each is told */
        dcn_error_hint(s->err, "fetch it");
        findings->fault(findings->ctx, s->err);
        return DECANT_OK;
    }
    for (size_t i = 0; i < s->count; i++) {
        dcn_input *in = NULL;

        missing += dcn_input_sibling(s->in, s->shards[i].name, s->shards[i].name_len, &in, NULL) == DECANT_NOT_FOUND;
        dcn_input_close(&in);
    }
    if (missing > 1)
        dcn_error_found(s->err, "%zu of %zu shards missing, this one first", missing, s->count);
    else
        dcn_error_found(s->err, "the other %zu shard%s", s->count - 1, s->count == 2 ? "" : "s");
    dcn_error_hint(s->err, missing > 1 ? "fetch them" : "fetch it");
    return rc;
}

/* It must be one file of tensors: content decides, and what it is instead is named. */
static decant_status check_kind(dcn_input *in, decant_error *err)
{
    uint8_t head[DCN_HEAD];
    dcn_clue clue;
    const dcn_format *format;
    decant_status rc;

    if ((rc = dcn_format_look(in, head, &clue, err)))
        return rc;
    if (dcn_st_is_index(&clue)) {
        decant_error_set(err, DECANT_MALFORMED, "is an index itself, and stands in one for a file of tensors");
        dcn_error_hint(err, "fetch the index again");
        return DECANT_MALFORMED;
    }
    if (dcn_safetensors.probe(&clue))
        return DECANT_OK;
    if ((rc = dcn_format_detect(in, &format, err)))
        return rc;
    decant_error_set(err, DECANT_UNSUPPORTED, "holds %s, and its set is of safetensors", format->name);
    dcn_error_hint(err, "fetch the set again");
    return DECANT_UNSUPPORTED;
}

static const mapping *find_mapping(const set *s, const shard *here, const dcn_entry *entry)
{
    size_t low = here->from, high = here->to;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const mapping *m = &s->map[middle];
        int order = dcn_text_compare(m->tensor, m->tensor_len, entry->name, entry->name_len);

        if (order == 0)
            return m;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* A tensor that the index does not have in this file: it has it in another, or not at all. */
static decant_status refuse_unmapped(const set *s, const dcn_entry *entry)
{
    for (size_t i = 0; i < s->map_count; i++) {
        const mapping *m = &s->map[i];

        if (m->tensor_len == entry->name_len && memcmp(m->tensor, entry->name, entry->name_len) == 0) {
            decant_error_set(s->err, DECANT_MALFORMED, "is in this file, and by the index in '%.*s'",
                             (int)dcn_min(m->file_len, 128), m->file);
            dcn_error_hint(s->err, "fetch the index and the shards again, all of one version");
            dcn_error_tensor(s->err, entry->name, entry->name_len);
            return DECANT_MALFORMED;
        }
    }
    decant_error_set(s->err, DECANT_MALFORMED, "is in this file, and not in the index");
    dcn_error_hint(s->err, "open it leniently (--lenient) to have it all the same");
    dcn_error_tensor(s->err, entry->name, entry->name_len);
    return DECANT_MALFORMED;
}

/* A fault of a name. Where all are listed it is told and the next is looked for: up to as many as anybody reads. */
static decant_status tell(set *s, const dcn_input *in, decant_status rc)
{
    return s->told++ < MOST_TOLD ? dcn_fault(in->findings, rc, s->err) : rc;
}

/* The file holds what the index says, all of it and nothing else. */
static decant_status check_mapped(set *s, const dcn_input *in, const shard *here, const decant_model *part)
{
    size_t index, missing = 0;
    decant_status rc;

    for (size_t i = here->from; i < here->to; i++) {
        const mapping *m = &s->map[i];

        if (dcn_model_find(part, m->tensor, m->tensor_len, &index))
            continue;
        decant_error_set(s->err, DECANT_MALFORMED, "by the index it is in this file, which does not hold it");
        dcn_error_hint(s->err, "fetch the index and the shards again, all of one version");
        dcn_error_tensor(s->err, m->tensor, m->tensor_len);
        if ((rc = tell(s, in, DECANT_MALFORMED)))
            return rc;
        missing++;
    }
    if (part->count == here->to - here->from - missing)
        return DECANT_OK;
    s->unmapped += part->count - (here->to - here->from - missing);
    for (size_t i = 0; i < part->count && !(s->lenient & DECANT_LENIENT_UNMAPPED); i++) {
        const dcn_entry *entry = &part->entries[i];

        if (!find_mapping(s, here, entry) && !dcn_model_find(s->model, entry->name, entry->name_len, &index) &&
            (rc = tell(s, in, refuse_unmapped(s, entry))))
            return rc;
    }
    return DECANT_OK;
}

/* No tensor is in two files. */
static decant_status check_names(set *s, const dcn_input *in, const decant_model *part)
{
    size_t index;

    for (size_t i = 0; i < part->count; i++) {
        const dcn_entry *entry = &part->entries[i];
        const shard *other = s->shards;
        decant_status rc;

        if (!dcn_model_find(s->model, entry->name, entry->name_len, &index))
            continue;
        while (other->end <= index)
            other++;
        decant_error_set(s->err, DECANT_DUPLICATE, "is in this file, and in '%.*s' too",
                         (int)dcn_min(other->name_len, 128), other->name);
        dcn_error_tensor(s->err, entry->name, entry->name_len);
        dcn_error_hint(s->err, "fetch the shards again, all of one version");
        if ((rc = tell(s, in, DECANT_DUPLICATE)))
            return rc;
    }
    if (s->model->count + part->count > s->limits->tensors)
        return dcn_past_limit("the number of tensors", (uint64_t)s->model->count + part->count, s->limits->tensors,
                              s->err);
    return DECANT_OK;
}

static decant_status take_notes(set *s, const char *name, const decant_model *part)
{
    decant_status rc = DECANT_OK;

    for (size_t i = 0; i < part->note_count && rc == DECANT_OK; i++)
        if (strcmp(part->notes[i].key, "odd") == 0)
            rc = dcn_model_note(s->model, "odd", s->err, "%s: %s", name, part->notes[i].text);
    return rc;
}

/* Who does not open one of them does not open the set; a header too large keeps everybody out. */
static void take_openers(set *s, const dcn_openers *part)
{
    dcn_openers *all = &s->model->openers;

    if (s->model->file_count == 0 || part->count < all->count)
        *all = *part;
    for (size_t i = 0; i < all->count && i < part->count; i++)
        if (!all->items[i].why_not)
            all->items[i].why_not = part->items[i].why_not;
}

/* Faults of a shard, where all are listed: each with the file it is in. */
typedef struct listing {
    dcn_findings findings;
    const dcn_findings *to;
    const char *path;
    size_t count;
} listing;

static void list_fault(void *ctx, const decant_error *fault)
{
    listing *l = ctx;
    decant_error copy = *fault;

    l->count++;
    dcn_error_path(&copy, l->path);
    l->to->fault(l->to->ctx, &copy);
}

static decant_status take_shard(set *s, shard *here, dcn_input *in)
{
    listing faults = {.findings = {list_fault, &faults}, .to = s->in->findings, .path = in->name};
    decant_model *part = NULL;
    bool doubled;
    decant_status rc;

    in->findings = faults.to ? &faults.findings : NULL;
    if ((rc = check_kind(in, s->err)) || (rc = dcn_model_create(s->model->seed, &part, s->err)) ||
        (rc = dcn_st_index(in, s->limits, s->lenient, part, s->err)) || faults.count || (rc = check_names(s, in, part)))
        goto done;
    doubled = faults.count; /* a model has a name once */
    if ((s->indexed && (rc = check_mapped(s, in, here, part))) || doubled || (rc = take_values(s, part)) ||
        (rc = take_notes(s, here->name, part)))
        goto done;
    take_openers(s, &part->openers);
    if ((rc = dcn_model_lies_in(s->model, in->name, in->bytes->len, s->err)) ||
        (rc = dcn_model_absorb(s->model, part, s->err)))
        goto done;
done:
    here->end = s->model->count;
    if (rc) {
        dcn_error_path(s->err, in->name);
        rc = dcn_fault(faults.to, rc, s->err);
    }
    in->findings = NULL;
    decant_model_close(&part);
    return rc;
}

static decant_status take_shards(set *s)
{
    dcn_input alone = {.bytes = s->in->bytes, .name = s->in->name}; /* without siblings it is one file */
    decant_status rc = DECANT_OK;

    for (size_t i = 0; i < s->count && rc == DECANT_OK; i++) {
        shard *here = &s->shards[i];
        dcn_input *in = NULL;

        if (i == 0 && !s->indexed)
            rc = take_shard(s, here, &alone);
        else if ((rc = dcn_input_sibling(s->in, here->name, here->name_len, &in, s->err)))
            rc = lack_shard(s, here, rc);
        else
            rc = take_shard(s, here, in);
        dcn_input_close(&in);
    }
    return rc;
}

/* --- the set ----------------------------------------------------------------------------------------------------- */

static decant_status note_set(set *s)
{
    uint64_t bytes = 0;
    decant_status rc;

    for (size_t i = 0; i < s->model->count; i++)
        bytes += s->model->entries[i].data.len;
    if (s->has_total && s->total != bytes &&
        (rc = dcn_model_note(s->model, "odd", s->err,
                             "the index gives a total_size of %" PRIu64 ", the tensors have %" PRIu64 " bytes",
                             s->total, bytes)))
        return rc;
    if (s->unmapped &&
        (rc = dcn_model_note(s->model, "odd", s->err, "%" PRIu64 " tensor%s that the index does not name", s->unmapped,
                             s->unmapped == 1 ? "" : "s")))
        return rc;
    return dcn_st_note_layout(s->model, s->err);
}

static decant_status index_set(set *s)
{
    decant_status rc;

    if ((rc = dcn_model_create(s->model->seed, &s->values, s->err)) || (rc = take_shards(s)) || (rc = keep_values(s)) ||
        (rc = dcn_model_sort(s->model, s->err)))
        return rc;
    return note_set(s);
}

static void close_set(set *s)
{
    decant_model_close(&s->values);
    dcn_free(&s->differ);
    dcn_free(&s->shards);
    dcn_free(&s->map);
    dcn_free(&s->text);
}

decant_status dcn_st_index_map(dcn_input *in, const dcn_limits *limits, unsigned lenient, decant_model *model,
                               decant_error *err)
{
    set s = {.in = in, .limits = limits, .lenient = lenient, .model = model, .err = err, .indexed = true};
    decant_status rc;

    if (!(rc = read_index(&s)) && !(rc = list_mapped(&s)))
        rc = index_set(&s);
    close_set(&s);
    return rc;
}

decant_status dcn_st_index_parts(dcn_input *in, const dcn_split *part, const dcn_limits *limits, unsigned lenient,
                                 decant_model *model, decant_error *err)
{
    set s = {.in = in, .limits = limits, .lenient = lenient, .model = model, .err = err};
    dcn_openers *openers = &model->openers;
    decant_status rc;

    if (!(rc = list_named(&s, part)))
        rc = index_set(&s);
    for (size_t i = 0; i < openers->count; i++) /* each opens one file, and knows sets by their index */
        if (!openers->items[i].why_not)
            openers->items[i].why_not = "no index file of the set";
    close_set(&s);
    return rc;
}

/* --- recognising one --------------------------------------------------------------------------------------------- */

static bool has_text(const dcn_clue *clue, size_t from, const char *text)
{
    size_t len = strlen(text);

    for (size_t at = from; at + len <= clue->head_len; at++)
        if (memcmp(clue->head + at, text, len) == 0)
            return true;
    return false;
}

/* An object with the map in its head, or with metadata that fills it: that comes first where keys are sorted. */
bool dcn_st_is_index(const dcn_clue *clue)
{
    static const char metadata[] = "\"metadata\"";
    size_t at = 0;

    if (clue->head_len < DCN_ST_PREFIX || dcn_le64(clue->head) <= clue->size)
        return false; /* the length of a header may begin like an object */
    while (at < clue->head_len && memchr(" \t\r\n", clue->head[at], 4))
        at++;
    if (at == clue->head_len || clue->head[at++] != '{')
        return false;
    if (has_text(clue, at, "\"weight_map\""))
        return true;
    while (at < clue->head_len && memchr(" \t\r\n", clue->head[at], 4))
        at++;
    return clue->size > clue->head_len && clue->head_len - at >= sizeof metadata &&
           memcmp(clue->head + at, metadata, sizeof metadata - 1) == 0;
}
