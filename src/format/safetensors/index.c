#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/ckd.h"
#include "base/dtype.h"
#include "base/endian.h"
#include "base/text.h"
#include "codec/json.h"
#include "format/limit.h"
#include "format/safetensors/keep.h"
#include "format/safetensors/layout.h"

/* What leniency let pass, counted: it is told, never silent. */
typedef struct oddities {
    uint64_t fields;   /* that no reader knows */
    uint64_t keys;     /* of metadata that came again: the last counts */
    uint64_t names;    /* of tensors, likewise */
    uint64_t nuls;     /* names that hold one */
    uint64_t shared;   /* tensors on exactly the bytes of another */
    uint64_t trailing; /* bytes behind the data */
} oddities;

typedef struct header {
    dcn_json json;
    decant_model *model;
    dcn_backing *bytes;
    const dcn_limits *limits;
    decant_error *err;
    uint64_t data;    /* where it starts in the file */
    uint64_t size;    /* of the file */
    dcn_buf shape;    /* of the tensor at hand, u64 by u64 */
    unsigned dtype;   /* of the last tensor, in the order of the format: mostly that of the next */
    unsigned lenient; /* DECANT_LENIENT_* */
    bool has_metadata;
    const dcn_findings *findings; /* NULL: the first fault ends it */
    bool unplaced;                /* a fault left out a tensor: what it has in the file is not known */
    size_t plain; /* entries of metadata that are no keys of decant's own: there may be as many of those as tensors */
    oddities odd;
} header;

/* Says where, of an error of what was read last. */
static decant_status placed(header *h, decant_status rc)
{
    dcn_error_at(h->err, dcn_json_offset(&h->json));
    return rc;
}

/* --- metadata ---------------------------------------------------------------------------------------------------- */

static void close_extra(dcn_extra *extra)
{
    dcn_free(&extra);
}

const dcn_extra_ops dcn_st_empty_metadata = {.format = "safetensors", .close = close_extra};

static decant_status note_empty_metadata(header *h)
{
    dcn_extra *extra = dcn_alloc(1, sizeof *extra);

    if (!extra)
        return dcn_error_nomem(h->err);
    extra->ops = &dcn_st_empty_metadata;
    dcn_refs_up(&extra->refs);
    h->model->extra = extra;
    return DECANT_OK;
}

static decant_status check_plain(header *h, dcn_chunk key, dcn_chunk text)
{
    uint64_t longest = key.len > text.len ? key.len : text.len;

    if (h->plain == h->limits->values)
        return dcn_past_limit("the number of metadata entries", (uint64_t)h->plain + 1, h->limits->values, h->err);
    h->plain++;
    return longest > h->limits->value
               ? dcn_past_limit("the length of a metadata entry", longest, h->limits->value, h->err)
               : DECANT_OK;
}

/* Names the key whose value is wrong. Numbers are what programs put there most. */
static decant_status about_key(header *h, dcn_chunk key)
{
    char safe[96], what[128];

    if (h->json.status != DECANT_MALFORMED)
        return h->json.status;
    dcn_text_escape(safe, sizeof safe, key.data, key.len);
    snprintf(what, sizeof what, "metadata '%s'", safe);
    dcn_error_recast(h->err, DECANT_MALFORMED, what);
    if (h->err && strcmp(h->err->expected, "a string") == 0)
        dcn_error_hint(h->err, "metadata of safetensors is text alone: write the value as a string");
    return DECANT_MALFORMED;
}

static decant_status read_metadata(header *h)
{
    decant_model *model = h->model;
    decant_status rc;
    dcn_chunk key, text;

    if (h->has_metadata)
        return placed(h, decant_error_set(h->err, DECANT_DUPLICATE, "duplicate key '" DCN_ST_METADATA "'"));
    h->has_metadata = true;
    if (dcn_json_null(&h->json)) /* as good as none */
        return DECANT_OK;
    if (!dcn_json_object(&h->json))
        return h->json.status == DECANT_MALFORMED ? dcn_error_recast(h->err, DECANT_MALFORMED, "'" DCN_ST_METADATA "'")
                                                  : h->json.status;

    while (dcn_json_key(&h->json, &key)) {
        decant_value value = {.type = DECANT_VALUE_TEXT};
        size_t count = model->value_count;

        if (!dcn_json_string(&h->json, &text))
            return about_key(h, key);
        value.as.text.data = text.data;
        value.as.text.len = text.len;
        if (!dcn_st_is_kept(key.data, key.len) && (rc = check_plain(h, key, text)))
            return rc;
        if ((rc = dcn_model_set(model, key.data, key.len, &value, h->lenient & DECANT_LENIENT_REPEATED_KEYS, h->err)))
            return rc;
        h->odd.keys += model->value_count == count;
    }
    if (h->json.status)
        return h->json.status;
    return model->value_count == 0 ? note_empty_metadata(h) : DECANT_OK;
}

/* --- tensors ----------------------------------------------------------------------------------------------------- */

static decant_status read_dtype(header *h, dcn_draft *draft)
{
    dcn_chunk name;

    if (!dcn_json_string(&h->json, &name))
        return h->json.status;
    for (unsigned i = 0; i < DCN_ST_DTYPES; i++) {
        unsigned at = (h->dtype + i) % DCN_ST_DTYPES;

        if (dcn_chunk_is(name, decant_dtype_name((decant_dtype)dcn_st_dtypes[at]))) {
            draft->dtype = (decant_dtype)dcn_st_dtypes[at];
            h->dtype = at;
            return DECANT_OK;
        }
    }
    decant_error_set(h->err, DECANT_UNSUPPORTED, "unknown dtype '%.*s'", (int)dcn_min(name.len, 64),
                     (const char *)name.data);
    return dcn_unknown_at(dcn_json_offset(&h->json), h->err);
}

static decant_status read_shape(header *h, dcn_draft *draft)
{
    uint64_t extent;

    h->shape.len = 0;
    if (!dcn_json_array(&h->json))
        return h->json.status;
    while (dcn_json_item(&h->json) && dcn_json_u64(&h->json, &extent)) {
        if (draft->rank == h->limits->rank)
            return dcn_past_limit("the rank", (uint64_t)draft->rank + 1, h->limits->rank, h->err);
        dcn_buf_put(&h->shape, &extent, sizeof extent);
        draft->rank++;
    }
    if (h->json.status)
        return h->json.status;
    draft->shape = (const uint64_t *)(const void *)h->shape.data; /* an allocation: aligned for anything */
    return dcn_buf_check(&h->shape, h->err);
}

static decant_status read_offsets(header *h, uint64_t *begin, uint64_t *end)
{
    dcn_json *json = &h->json;
    bool two = dcn_json_array(json) && dcn_json_item(json) && dcn_json_u64(json, begin) && dcn_json_item(json) &&
               dcn_json_u64(json, end) && !dcn_json_item(json);

    if (json->status)
        return json->status;
    return two ? DECANT_OK : placed(h, decant_error_set(h->err, DECANT_MALFORMED, "data_offsets are not two numbers"));
}

enum field { DTYPE, SHAPE, OFFSETS, FIELDS };

static const char *const fields[] = {"dtype", "shape", "data_offsets"};

/* The next member of a tensor's entry; most files have them in one order. FIELDS: one that is not known, at `key`. */
static bool next_field(header *h, enum field likely, enum field *field, dcn_chunk *key)
{
    dcn_json *json = &h->json;

    *field = likely;
    if ((likely == DTYPE && dcn_json_is_key(json, "\"dtype\":", 8)) ||
        (likely == SHAPE && dcn_json_is_key(json, "\"shape\":", 8)) ||
        (likely == OFFSETS && dcn_json_is_key(json, "\"data_offsets\":", 15)))
        return true;
    if (!dcn_json_key(&h->json, key))
        return false;
    for (*field = DTYPE; *field < FIELDS && !dcn_chunk_is(*key, fields[*field]); ++*field)
        ;
    return true;
}

/* The members of a tensor's entry, each once, in any order. */
static decant_status read_fields(header *h, dcn_draft *draft, uint64_t *begin, uint64_t *end)
{
    bool seen[FIELDS] = {false};
    decant_status rc = DECANT_OK;
    enum field field, likely = DTYPE;
    dcn_chunk key;

    if (!dcn_json_object(&h->json))
        return h->json.status;
    for (; next_field(h, likely, &field, &key); likely = field + 1) {
        if (field < FIELDS && seen[field])
            return placed(h, decant_error_set(h->err, DECANT_DUPLICATE, "duplicate field '%s'", fields[field]));
        switch (field) {
        case DTYPE:
            rc = read_dtype(h, draft);
            break;
        case SHAPE:
            rc = read_shape(h, draft);
            break;
        case OFFSETS:
            rc = read_offsets(h, begin, end);
            break;
        case FIELDS:
            if (!(h->lenient & DECANT_LENIENT_UNKNOWN_FIELDS)) {
                decant_error_set(h->err, DECANT_MALFORMED, "unknown field '%.*s'", (int)dcn_min(key.len, 64),
                                 (const char *)key.data);
                dcn_error_at(h->err, dcn_json_offset(&h->json));
                dcn_error_hint(h->err, "open it leniently (--lenient) to ignore it");
                return DECANT_MALFORMED;
            }
            h->odd.fields++;
            dcn_json_skip(&h->json, h->limits->depth);
            rc = h->json.status;
        }
        if (rc)
            return rc;
        if (field < FIELDS)
            seen[field] = true;
    }
    if (h->json.status)
        return h->json.status;
    for (field = DTYPE; field < FIELDS; field++)
        if (!seen[field])
            return placed(h, decant_error_set(h->err, DECANT_MALFORMED, "no field '%s'", fields[field]));
    return DECANT_OK;
}

/* What one tensor claims, against itself and the file. Ranges of different tensors are compared when all are known. */
static decant_status check_claims(header *h, const dcn_draft *draft, uint64_t begin, uint64_t end)
{
    char shape[96];
    uint64_t len;
    decant_status rc;

    if (begin > end) {
        decant_error_set(h->err, DECANT_MALFORMED, "data_offsets run backwards");
        dcn_error_found(h->err, "[%" PRIu64 ", %" PRIu64 "]", begin, end);
        return DECANT_MALFORMED;
    }
    if ((rc = dcn_dtype_len(draft->dtype, draft->shape, draft->rank, &len, h->err)))
        return rc;
    if (len != end - begin) {
        dcn_shape_text(shape, sizeof shape, draft->shape, draft->rank);
        decant_error_set(h->err, DECANT_MALFORMED, "data_offsets do not hold shape %s of %s", shape,
                         decant_dtype_name(draft->dtype));
        dcn_error_found(h->err, "%" PRIu64 " bytes", end - begin);
        dcn_error_expected(h->err, "%" PRIu64, len);
        return DECANT_MALFORMED;
    }
    if (end > h->size - h->data) {
        uint64_t end_in_file;

        decant_error_set(h->err, DECANT_TRUNCATED, "the file has %" PRIu64 " bytes, this tensor ends at byte %" PRIu64,
                         h->size, dcn_ckd_add(&end_in_file, h->data, end) ? UINT64_MAX : end_in_file);
        dcn_error_hint(h->err, "fetch the rest");
        return DECANT_TRUNCATED;
    }
    return DECANT_OK;
}

/* Room for as many tensors as the header will hold if the rest is like its beginning: no file's word, and cheap if wrong. */
static decant_status reserve_entries(header *h)
{
    enum { SAMPLE = 64 };
    uint64_t seen = (uint64_t)(h->json.at - h->json.start), all = (uint64_t)(h->json.end - h->json.start);

    if (h->model->count != SAMPLE)
        return DECANT_OK;
    return dcn_model_reserve(h->model, (size_t)dcn_min(all / (seen / SAMPLE) + SAMPLE, h->limits->tensors), h->err);
}

static decant_status read_tensor(header *h, dcn_chunk name)
{
    dcn_draft draft = {
        .name = name.data, .name_len = name.len, .stays = true, .any_name = h->lenient & DECANT_LENIENT_NUL_IN_NAMES};
    uint64_t begin, end;
    size_t index;
    decant_status rc;

    if (h->model->count == h->limits->tensors)
        return dcn_past_limit("the number of tensors", (uint64_t)h->model->count + 1, h->limits->tensors, h->err);
    if (name.len > h->limits->name)
        return dcn_past_limit("the length of its name", name.len, h->limits->name, h->err);
    if ((rc = read_fields(h, &draft, &begin, &end)) || (rc = check_claims(h, &draft, begin, end)) ||
        (rc = reserve_entries(h)))
        return rc;
    draft.data = (dcn_span){h->bytes, h->data + begin, end - begin};
    h->odd.nuls += draft.any_name && memchr(name.data, 0, name.len);
    if (h->lenient & DECANT_LENIENT_REPEATED_NAMES && dcn_model_find(h->model, name.data, name.len, &index)) {
        h->odd.names++;
        return dcn_model_replace(h->model, index, &draft, h->err);
    }
    return dcn_model_add(h->model, &draft, h->err);
}

/* A tensor with a fault is told and left out, where all faults are listed. */
static decant_status leave_out(header *h, dcn_chunk name, decant_status rc)
{
    enum { ENTRIES = 1 }; /* containers open between two tensors */

    dcn_error_tensor(h->err, name.data, name.len);
    if (h->json.status || (rc = dcn_fault(h->findings, rc, h->err)))
        return rc;
    h->unplaced = true;
    dcn_json_leave(&h->json, ENTRIES);
    return h->json.status;
}

static decant_status read_entries(header *h)
{
    decant_status rc;
    dcn_chunk name;

    if (!dcn_json_object(&h->json))
        return h->json.status;
    while (dcn_json_key(&h->json, &name)) {
        if (dcn_chunk_is(name, DCN_ST_METADATA))
            rc = read_metadata(h);
        else if ((rc = read_tensor(h, name)))
            rc = leave_out(h, name, rc);
        if (rc)
            return rc;
    }
    return dcn_json_end(&h->json);
}

/* --- the data as a whole ----------------------------------------------------------------------------------------- */

/* A walk over the entries in their order: the data so far. */
typedef struct chain {
    size_t next;         /* entry */
    uint64_t begin, end; /* of the last tensor with data */
    uint64_t shared;     /* tensors on the data of another */
} chain;

/* The next entry that does not start where the data before it ends; NULL if all do. */
static const dcn_entry *follow(const header *h, chain *c)
{
    for (; c->next < h->model->count; c->next++) {
        const dcn_entry *entry = &h->model->entries[c->next];
        const dcn_span *span = &entry->data;

        if (span->offset == c->end) {
            c->begin = c->end;
            c->end += span->len;
        } else if (h->lenient & DECANT_LENIENT_SHARED_DATA && span->offset == c->begin &&
                   span->len == c->end - c->begin) {
            c->shared++;
        } else if (span->offset != c->begin || span->len != 0) { /* an empty one may share its place */
            return entry;
        }
    }
    return NULL;
}

/* Goes on behind an entry that is out of place. */
static void step_over(const header *h, chain *c)
{
    const dcn_span *span = &h->model->entries[c->next++].data;

    if (span->offset + span->len > c->end) {
        c->begin = span->offset;
        c->end = span->offset + span->len;
    }
}

static decant_status out_of_place(const header *h, const dcn_entry *e, uint64_t end)
{
    const dcn_entry *before = e > h->model->entries ? e - 1 : NULL;

    if (before && before->data.offset == e->data.offset && before->data.len == e->data.len) {
        decant_error_set(h->err, DECANT_MALFORMED, "lies on the data of tensor '%.*s'",
                         (int)dcn_min(before->name_len, 96), before->name);
        dcn_error_hint(h->err, "open it leniently (--lenient) to have it under both names");
    } else {
        decant_error_set(h->err, DECANT_MALFORMED,
                         e->data.offset > end ? "a hole before the data" : "the data overlaps");
        dcn_error_found(h->err, "offset %" PRIu64, e->data.offset - h->data);
        if (before)
            dcn_error_expected(h->err, "%" PRIu64 ", where tensor '%.*s' ends", end - h->data,
                               (int)dcn_min(before->name_len, 64), before->name);
        else
            dcn_error_expected(h->err, "%" PRIu64 ", where data starts", end - h->data);
    }
    dcn_error_tensor(h->err, e->name, e->name_len);
    dcn_error_offset(h->err, e->data.offset);
    return DECANT_MALFORMED;
}

/* Data must lie end to end and fill the file, whatever the order of the header. */
static decant_status check_ranges(header *h)
{
    chain c = {.begin = h->data, .end = h->data};
    const dcn_entry *misplaced = follow(h, &c);
    decant_status rc;

    if (misplaced) {
        if ((rc = dcn_model_sort(h->model, h->err)))
            return rc;
        c = (chain){.begin = h->data, .end = h->data};
    }
    for (; (misplaced = follow(h, &c)); step_over(h, &c))
        if ((rc = dcn_fault(h->findings, out_of_place(h, misplaced, c.end), h->err)))
            return rc;
    h->odd.shared = c.shared;
    h->odd.trailing = h->size - c.end;
    if (h->odd.trailing && !(h->lenient & DECANT_LENIENT_AFTER_DATA)) {
        decant_error_set(h->err, DECANT_MALFORMED, "%" PRIu64 " unexpected byte%s after tensor data at offset %" PRIu64,
                         h->odd.trailing, h->odd.trailing == 1 ? "" : "s", c.end);
        dcn_error_hint(h->err, "open it leniently (--lenient) to leave them out");
        dcn_error_offset(h->err, c.end);
        return dcn_fault(h->findings, DECANT_MALFORMED, h->err);
    }
    return DECANT_OK;
}

/* --- notes ------------------------------------------------------------------------------------------------------- */

static decant_status note_odd(header *h, uint64_t count, const char *what, const char *where)
{
    return count ? dcn_model_note(h->model, "odd", h->err, "%" PRIu64 " %s%s%s", count, what, count == 1 ? "" : "s",
                                  where)
                 : DECANT_OK;
}

bool dcn_st_for_loaders(const decant_model *model)
{
    const dcn_value *format = dcn_model_text(model, "format");

    for (size_t i = 0; format && dcn_st_loaders[i]; i++)
        if (dcn_chunk_is((dcn_chunk){format->value.as.text.data, format->value.as.text.len}, dcn_st_loaders[i]))
            return true;
    return false;
}

void dcn_st_openers(uint64_t header_len, bool for_loaders, dcn_openers *out)
{
    if (header_len > DCN_ST_HEADER_MAX) {
        dcn_openers_add(out, "safetensors", "no header of more than 100,000,000 bytes");
        return;
    }
    dcn_openers_add(out, "safetensors", NULL);
    dcn_openers_add(out, "transformers", for_loaders ? NULL : "no metadata format = pt");
}

decant_status dcn_st_note_layout(decant_model *model, decant_error *err)
{
    uint64_t offsets = 0;

    for (size_t i = 0; i < model->count; i++)
        if (model->entries[i].data.len)
            offsets |= model->entries[i].data.offset;
    return offsets ? dcn_model_note(model, "layout", err, "aligned to %" PRIu64 ", no gaps", offsets & -offsets)
                   : DECANT_OK;
}

static decant_status add_notes(header *h)
{
    decant_status rc;

    if ((rc = dcn_st_note_layout(h->model, h->err)) || (rc = note_odd(h, h->odd.fields, "unknown field", "")) ||
        (rc = note_odd(h, h->odd.keys, "repeated metadata key", "")) ||
        (rc = note_odd(h, h->odd.names, "repeated name", ", the last counts")) ||
        (rc = note_odd(h, h->odd.nuls, "name", " with a NUL in it")) ||
        (rc = note_odd(h, h->odd.shared, "tensor", " on the data of another")) ||
        (rc = note_odd(h, h->odd.trailing, "byte", " after the data")))
        return rc;
    dcn_st_openers(h->data - DCN_ST_PREFIX, dcn_st_for_loaders(h->model), &h->model->openers);
    return DECANT_OK;
}

/* --- the format -------------------------------------------------------------------------------------------------- */

static decant_status read_at(dcn_input *in, uint64_t at, void *dst, size_t len, decant_error *err)
{
    dcn_fetch fetch = {at, dst, len};

    return dcn_backing_fetch(in->bytes, &fetch, 1, err);
}

/* As the length of a header, what an object of JSON begins with is more than any file has. */
static bool is_json(const uint8_t prefix[DCN_ST_PREFIX])
{
    size_t at = 0;

    while (at < DCN_ST_PREFIX && memchr(" \t\r\n", prefix[at], 4))
        at++;
    return at == DCN_ST_PREFIX || prefix[at] == '{';
}

/* Two reads. The header stays in the model's memory: names are used where they lie. */
decant_status dcn_st_index(dcn_input *in, const dcn_limits *limits, unsigned lenient, decant_model *model,
                           decant_error *err)
{
    header h = {.model = model, .bytes = in->bytes, .limits = limits, .err = err, .lenient = lenient};
    uint8_t prefix[DCN_ST_PREFIX];
    char *text = NULL;
    uint64_t len, end;
    dcn_split part;
    decant_status rc;

    if (in->sibling && dcn_split_parse(dcn_input_base(in), &part) && part.number == 1 && part.count > 1)
        return dcn_st_index_parts(in, &part, limits, lenient, model, err);
    h.findings = in->findings;
    h.size = in->bytes->len;
    if (h.size < DCN_ST_PREFIX)
        return decant_error_set(err, DECANT_TRUNCATED, "the file has %" PRIu64 " bytes, the length of a header takes 8",
                                h.size);
    if ((rc = read_at(in, 0, prefix, sizeof prefix, err)))
        return rc;
    len = dcn_le64(prefix);
    if (len > h.size - DCN_ST_PREFIX && is_json(prefix))
        return dcn_st_index_map(in, limits, lenient, model, err);
    if (len > h.size - DCN_ST_PREFIX) {
        decant_error_set(err, DECANT_TRUNCATED, "the file has %" PRIu64 " bytes, its header ends at byte %" PRIu64,
                         h.size, dcn_ckd_add(&end, DCN_ST_PREFIX, len) ? UINT64_MAX : end);
        dcn_error_hint(err, "fetch the rest, if it is safetensors at all");
        return DECANT_TRUNCATED;
    }
    if (len > limits->header)
        return dcn_past_limit("the length of the header", len, limits->header, err);
    h.data = DCN_ST_PREFIX + len;

    text = dcn_alloc((size_t)len, 1);
    if (!text || dcn_arena_adopt(&model->memory, text)) {
        dcn_free(&text);
        return dcn_error_nomem(err);
    }
    if ((rc = read_at(in, DCN_ST_PREFIX, text, (size_t)len, err)))
        return rc;
    h.json = dcn_json_on(text, (size_t)len, DCN_ST_PREFIX, err);

    if (!(rc = read_entries(&h)) && !h.unplaced && !(rc = check_ranges(&h)) && !(rc = dcn_model_sort(model, err)))
        rc = add_notes(&h);
    dcn_buf_close(&h.shape);
    return rc;
}

/* What stands in every entry of a header, and hardly elsewhere. */
static bool shows_entry(const dcn_clue *clue)
{
    static const char field[] = "\"data_offsets\":";
    size_t len = sizeof field - 1;

    for (size_t at = DCN_ST_PREFIX; at + len <= clue->head_len; at++)
        if (memcmp(clue->head + at, field, len) == 0)
            return true;
    return false;
}

/* What the file holds, and what it keeps of another. */
static decant_status index_and_restore(dcn_input *in, const dcn_limits *limits, unsigned lenient, decant_model *model,
                                       decant_error *err)
{
    decant_status rc = dcn_st_index(in, limits, lenient, model, err);

    if (rc || model->openers.count == 0) /* who opens it is found out last: there were faults, which are listed */
        return rc;
    return dcn_st_restore(model, lenient, in->findings, err);
}

/* There is no magic: a length that can be one, and behind it what a header starts with. */
static int probe(const dcn_clue *clue)
{
    uint64_t len;
    size_t at = DCN_ST_PREFIX;

    if (clue->head_len < DCN_ST_PREFIX + 2)
        return 0;
    if (dcn_st_is_index(clue))
        return 90;
    len = dcn_le64(clue->head);
    while (at < clue->head_len && memchr(" \t\r\n", clue->head[at], 4))
        at++;
    if (at == clue->head_len || clue->head[at] != '{' || len == 0)
        return 0;
    if (len >= 2 && len <= clue->size - DCN_ST_PREFIX)
        return 90;
    if (at == DCN_ST_PREFIX && len >= 2 && len <= UINT32_MAX)
        return 50;                     /* cut short */
    return shows_entry(clue) ? 40 : 0; /* the length is damaged */
}

static const char *const extensions[] = {"safetensors", NULL};

const dcn_format dcn_safetensors = {
    .name = "safetensors",
    .extensions = extensions,
    .probe = probe,
    .index = index_and_restore,
    .emit = dcn_st_emit,
    .has_sets = true,
    .supersedes = dcn_st_supersedes,
    .covers = "header, ranges and size",
    .lacks = "this format carries no checksums",
};
