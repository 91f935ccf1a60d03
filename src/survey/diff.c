#include "survey/diff.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/ckd.h"
#include "base/dtype.h"
#include "base/sort.h"
#include "base/text.h"
#include "model/model.h"
#include "survey/close.h"
#include "survey/element.h"
#include "survey/scan.h"

/* Everything one comparison needs. */
typedef struct job {
    const decant_model *a, *b;
    const void **a_named, **b_named; /* entries, then values, by name */
    uint8_t *a_slot, *b_slot;
    size_t slot; /* bytes of each */
    const decant_diff_options *options;
    decant_on_difference found;
    void *ctx;
    decant_diff_totals totals;
    decant_error lending; /* of an attempt that may fail; here, so that it is not cleared for every tensor */
} job;

/* --- order ---------------------------------------------------------------------------------------------------------- */

/* Both are given pointers to elements of a_named or b_named. */
static int compare_entries(const void *a, const void *b)
{
    const dcn_entry *x = *(const dcn_entry *const *)a, *y = *(const dcn_entry *const *)b;

    return dcn_text_compare(x->name, x->name_len, y->name, y->name_len);
}

/* Metadata and scalars are kinds of their own: each may have the same key. */
static int compare_values(const void *a, const void *b)
{
    const dcn_value *x = *(const dcn_value *const *)a, *y = *(const dcn_value *const *)b;
    int order = dcn_text_compare(x->key, x->key_len, y->key, y->key_len);

    return order ? order : (x->value.type == DECANT_VALUE_TEXT) - (y->value.type == DECANT_VALUE_TEXT);
}

/* --- telling -------------------------------------------------------------------------------------------------------- */

static decant_status tell(job *j, const decant_difference *difference, decant_error *err)
{
    j->totals.differences += difference->kind != DECANT_METADATA_DIFFERS;
    if (j->found && j->found(j->ctx, difference))
        return decant_error_set(err, DECANT_CANCELLED, "stopped");
    return DECANT_OK;
}

static decant_status tell_tensor(job *j, decant_difference_kind kind, const decant_tensor *a, const decant_tensor *b,
                                 const char *a_text, const char *b_text, decant_error *err)
{
    const decant_tensor *named = a ? a : b;

    return tell(j,
                &(decant_difference){.kind = kind,
                                     .name = named->name,
                                     .name_len = named->name_len,
                                     .a = a,
                                     .b = b,
                                     .a_text = a_text,
                                     .b_text = b_text},
                err);
}

/* --- data ----------------------------------------------------------------------------------------------------------- */

/* The data of one tensor in one model. */
typedef struct side {
    const decant_model *model;
    const dcn_entry *entry;
    decant_view view;  /* of all of it, or of all it is made of, where that is in memory */
    dcn_backing *made; /* the leaf that is made of the view; NULL: the view is what is compared */
    uint64_t from;     /* where it begins in that */
    uint8_t *slot;
} side;

static decant_status side_failed(const side *s, decant_error *err, decant_status rc)
{
    dcn_error_tensor(err, s->entry->name, s->entry->name_len);
    dcn_error_path(err, s->model->path);
    dcn_error_side(err, DECANT_SIDE_INPUT);
    return rc;
}

/* A provider that lends its tensor whole is asked once for all that is made of it. */
static decant_status side_begin_made(job *j, side *s)
{
    const dcn_span *span = &s->entry->data;
    uint64_t upto;
    dcn_backing *leaf = dcn_backing_leaf(span->backing, span->offset, &s->from, &upto);
    const dcn_recipe *recipe = dcn_backing_recipe(leaf);
    dcn_span raw;
    decant_status rc;

    if (!recipe || upto < span->offset + span->len)
        return DECANT_UNSUPPORTED;
    raw = dcn_recipe_raw(recipe, s->from, span->len);
    rc = dcn_backing_lend(raw.backing, raw.offset, raw.len, true, &s->view, &j->lending);
    if (rc == DECANT_OK)
        s->made = leaf;
    return rc;
}

static decant_status side_begin(job *j, side *s, decant_error *err)
{
    const dcn_span *span = &s->entry->data;
    decant_status rc = dcn_backing_lend(span->backing, span->offset, span->len, true, &s->view, &j->lending);

    if (rc == DECANT_UNSUPPORTED)
        rc = side_begin_made(j, s);
    if (rc == DECANT_OK || rc == DECANT_UNSUPPORTED)
        return DECANT_OK;
    if (err)
        *err = j->lending;
    return side_failed(s, err, rc);
}

/* The bytes [at, at + len). */
static decant_status side_read(side *s, uint64_t at, size_t len, const uint8_t **out, decant_error *err)
{
    dcn_fetch fetch = {s->entry->data.offset + at, s->slot, len};
    decant_status rc;

    if (s->made) {
        const dcn_recipe *recipe = dcn_backing_recipe(s->made);
        uint64_t skip = dcn_recipe_raw(recipe, s->from + at, len).offset - dcn_recipe_raw(recipe, s->from, len).offset;

        *out = s->slot;
        rc = dcn_backing_make(s->made, s->from + at, len, (const uint8_t *)s->view.data + skip, s->slot, err);
        return rc ? side_failed(s, err, rc) : DECANT_OK;
    }
    if (s->view.data) {
        *out = (const uint8_t *)s->view.data + at;
        return DECANT_OK;
    }
    rc = dcn_backing_fetch(s->entry->data.backing, &fetch, 1, err);
    *out = s->slot;
    return rc ? side_failed(s, err, rc) : DECANT_OK;
}

/* What the comparison of two tensors' data has found so far. */
typedef struct findings {
    size_t unit; /* bytes counted as one */
    uint64_t differ, first;
    char a_text[DCN_ELEMENT_TEXT], b_text[DCN_ELEMENT_TEXT];
} findings;

/* How many units of `len` bytes are not the same, bit for bit, and which is the first. */
static size_t count_bits(size_t unit, const uint8_t *a, const uint8_t *b, size_t len, size_t *first)
{
    size_t differ = 0;

    if (memcmp(a, b, len) == 0)
        return 0;
    for (size_t i = 0; i < len; i += unit)
        if (memcmp(a + i, b + i, unit) != 0 && differ++ == 0)
            *first = i / unit;
    return differ;
}

/* Counts what differs in `len` bytes at `at` of the tensors. */
static void count_slot(const job *j, findings *f, decant_dtype dtype, uint64_t at, const uint8_t *a, const uint8_t *b,
                       size_t len)
{
    const dcn_tolerance tolerance = {j->options->rtol, j->options->atol};
    bool close = j->options->close && dcn_close_takes(dtype);
    size_t first = 0, differ = close ? dcn_close_count(&tolerance, dtype, a, b, len / f->unit, &first)
                                     : count_bits(f->unit, a, b, len, &first);

    f->differ += differ;
    if (f->differ > differ || differ == 0)
        return;
    f->first = at / f->unit + first;
    a += first * f->unit;
    b += first * f->unit;
    dcn_element_text(f->a_text, dtype, a);
    dcn_element_text(f->b_text, dtype, b);
    if (strcmp(f->a_text, f->b_text) == 0) { /* NaNs */
        dcn_element_bits(f->a_text, a, f->unit);
        dcn_element_bits(f->b_text, b, f->unit);
    }
}

static decant_status compare_data(job *j, side *a, side *b, const decant_tensor *a_tensor,
                                  const decant_tensor *b_tensor, decant_error *err)
{
    uint64_t both = dcn_min(a_tensor->len, b_tensor->len), longer = a_tensor->len + b_tensor->len - both;
    size_t unit = a_tensor->len == b_tensor->len ? dcn_whole_bytes(a_tensor) : 0;
    decant_dtype dtype = unit ? a_tensor->dtype : DECANT_DTYPE_NONE;
    findings f = {.unit = unit ? unit : 1};
    decant_status rc = DECANT_OK;

    if (both > 0 && ((rc = side_begin(j, a, err)) || (rc = side_begin(j, b, err))))
        goto done;
    for (uint64_t at = 0; at < both; at += j->slot) {
        size_t len = (size_t)dcn_min(both - at, j->slot);
        const uint8_t *a_data, *b_data;

        if ((rc = side_read(a, at, len, &a_data, err)) || (rc = side_read(b, at, len, &b_data, err)))
            goto done;
        count_slot(j, &f, dtype, at, a_data, b_data, len);
    }
    j->totals.tensors++;
    j->totals.exact += j->options->close && !dcn_close_takes(a_tensor->dtype);
    j->totals.bytes += both;

    if (both < longer) { /* quantized by another formula, or blobs */
        if (f.differ == 0) {
            f.first = both;
            dcn_text_escape(a_tensor->len == both ? f.a_text : f.b_text, DCN_ELEMENT_TEXT, "nothing", 7);
            dcn_text_escape(a_tensor->len == both ? f.b_text : f.a_text, DCN_ELEMENT_TEXT, "more", 4);
        }
        f.differ += longer - both;
    }
    if (f.differ)
        rc = tell(j,
                  &(decant_difference){.kind = DECANT_VALUES_DIFFER,
                                       .name = a_tensor->name,
                                       .name_len = a_tensor->name_len,
                                       .a = a_tensor,
                                       .b = b_tensor,
                                       .elements = f.differ,
                                       .total = longer / f.unit,
                                       .first = f.first,
                                       .in_bytes = unit == 0,
                                       .a_text = f.a_text,
                                       .b_text = f.b_text},
                  err);
done:
    decant_view_release(&b->view);
    decant_view_release(&a->view);
    return rc;
}

/* --- tensors -------------------------------------------------------------------------------------------------------- */

static bool same_shape(const decant_tensor *a, const decant_tensor *b)
{
    return a->rank == b->rank && (a->rank == 0 || memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0);
}

static decant_tensor tensor_of(const decant_model *model, const dcn_entry *entry)
{
    decant_tensor tensor = DECANT_TENSOR_INIT;

    decant_model_tensor(model, (size_t)(entry - model->entries), &tensor);
    return tensor;
}

static decant_status compare_tensors(job *j, const void *a_entry, const void *b_entry, decant_error *err)
{
    decant_tensor a = tensor_of(j->a, a_entry), b = tensor_of(j->b, b_entry);
    char a_text[DCN_ELEMENT_TEXT], b_text[DCN_ELEMENT_TEXT];
    bool alike = true;
    decant_status rc = DECANT_OK;

    if (a.dtype != b.dtype || a.quant || b.quant) {
        dcn_dtype_text(a_text, &a);
        dcn_dtype_text(b_text, &b);
        alike = strcmp(a_text, b_text) == 0;
        if (!alike)
            rc = tell_tensor(j, DECANT_DTYPE_DIFFERS, &a, &b, a_text, b_text, err);
    }
    if (rc == DECANT_OK && !same_shape(&a, &b)) {
        alike = false;
        dcn_shape_text(a_text, sizeof a_text, a.shape, a.rank);
        dcn_shape_text(b_text, sizeof b_text, b.shape, b.rank);
        rc = tell_tensor(j, DECANT_SHAPE_DIFFERS, &a, &b, a_text, b_text, err);
    }
    if (rc == DECANT_OK && alike)
        rc = compare_data(j, &(side){.model = j->a, .entry = a_entry, .slot = j->a_slot},
                          &(side){.model = j->b, .entry = b_entry, .slot = j->b_slot}, &a, &b, err);
    return rc;
}

static decant_status tensor_only_in(job *j, const decant_model *model, const void *entry, decant_error *err)
{
    decant_tensor tensor = tensor_of(model, entry);
    char text[DCN_ELEMENT_TEXT];

    dcn_dtype_text(text, &tensor);
    if (model == j->a)
        return tell_tensor(j, DECANT_ONLY_IN_A, &tensor, NULL, text, "", err);
    return tell_tensor(j, DECANT_ONLY_IN_B, NULL, &tensor, "", text, err);
}

/* --- values --------------------------------------------------------------------------------------------------------- */

static decant_status tell_value(job *j, const dcn_value *named, const char *a_text, const char *b_text,
                                decant_error *err)
{
    return tell(j,
                &(decant_difference){.kind = DECANT_METADATA_DIFFERS,
                                     .name = named->key,
                                     .name_len = named->key_len,
                                     .a_text = a_text,
                                     .b_text = b_text},
                err);
}

static bool same_value(const decant_value *a, const decant_value *b)
{
    if (a->type != b->type)
        return false;
    switch (a->type) {
    case DECANT_VALUE_BOOL:
        return !a->as.boolean == !b->as.boolean;
    case DECANT_VALUE_TEXT:
        return dcn_text_compare(a->as.text.data, a->as.text.len, b->as.text.data, b->as.text.len) == 0;
    default:
        return a->as.u64 == b->as.u64; /* 64 bits, whatever they are */
    }
}

static decant_status compare_two_values(job *j, const void *a_value, const void *b_value, decant_error *err)
{
    const dcn_value *a = a_value, *b = b_value;
    char a_text[DCN_ELEMENT_TEXT], b_text[DCN_ELEMENT_TEXT];

    if (same_value(&a->value, &b->value))
        return DECANT_OK;
    dcn_value_text(a_text, &a->value);
    dcn_value_text(b_text, &b->value);
    return tell_value(j, a, a_text, b_text, err);
}

static decant_status value_only_in(job *j, const decant_model *model, const void *item, decant_error *err)
{
    const dcn_value *value = item;
    char text[DCN_ELEMENT_TEXT];

    dcn_value_text(text, &value->value);
    return tell_value(j, value, model == j->a ? text : "", model == j->a ? "" : text, err);
}

/* --- both models, side by side -------------------------------------------------------------------------------------- */

/* What is compared: things with names, in one order in both models. */
typedef struct aspect {
    int (*order)(const void *a, const void *b);
    decant_status (*only)(job *j, const decant_model *model, const void *item, decant_error *err);
    decant_status (*both)(job *j, const void *a_item, const void *b_item, decant_error *err);
} aspect;

/* a_named and b_named are filled. */
static decant_status walk(job *j, const aspect *what, size_t a_count, size_t b_count, decant_error *err)
{
    const void **a = j->a_named, **b = j->b_named, **a_end = a + a_count, **b_end = b + b_count;
    decant_status rc = DECANT_OK;

    dcn_sort(a, a_count, sizeof *a, what->order);
    dcn_sort(b, b_count, sizeof *b, what->order);
    while (rc == DECANT_OK && (a < a_end || b < b_end)) {
        int order = a == a_end ? 1 : b == b_end ? -1 : what->order(a, b);

        if (order < 0)
            rc = what->only(j, j->a, *a++, err);
        else if (order > 0)
            rc = what->only(j, j->b, *b++, err);
        else
            rc = what->both(j, *a++, *b++, err);
    }
    return rc;
}

static decant_status walk_tensors(job *j, decant_error *err)
{
    static const aspect tensors = {compare_entries, tensor_only_in, compare_tensors};

    for (size_t i = 0; i < j->a->count; i++)
        j->a_named[i] = &j->a->entries[i];
    for (size_t i = 0; i < j->b->count; i++)
        j->b_named[i] = &j->b->entries[i];
    return walk(j, &tensors, j->a->count, j->b->count, err);
}

static decant_status walk_values(job *j, decant_error *err)
{
    static const aspect values = {compare_values, value_only_in, compare_two_values};

    for (size_t i = 0; i < j->a->value_count; i++)
        j->a_named[i] = &j->a->values[i];
    for (size_t i = 0; i < j->b->value_count; i++)
        j->b_named[i] = &j->b->values[i];
    return walk(j, &values, j->a->value_count, j->b->value_count, err);
}

static const void **room_for_names(const decant_model *model)
{
    return dcn_alloc(model->count > model->value_count ? model->count : model->value_count, sizeof(void *));
}

decant_status dcn_diff(const decant_model *a, const decant_model *b, size_t slot, const decant_diff_options *options,
                       decant_on_difference found, void *ctx, decant_diff_totals *totals, decant_error *err)
{
    job j = {.a = a, .b = b, .slot = slot, .options = options, .found = found, .ctx = ctx};
    decant_status rc;

    assert(slot > 0 && slot % 8 == 0);
    if (!(j.a_named = room_for_names(a)) || !(j.b_named = room_for_names(b)) || !(j.a_slot = dcn_alloc_pages(slot)) ||
        !(j.b_slot = dcn_alloc_pages(slot))) {
        rc = dcn_error_nomem(err);
        goto done;
    }
    if ((rc = walk_tensors(&j, err)) || (rc = walk_values(&j, err)))
        goto done;
    /* what was read while somebody wrote may be half old and half new */
    if ((rc = dcn_scan_check(a, err)) || (rc = dcn_scan_check(b, err)))
        goto done;
    if (totals)
        *totals = j.totals;
done:
    dcn_free(&j.b_slot);
    dcn_free(&j.a_slot);
    dcn_free(&j.b_named);
    dcn_free(&j.a_named);
    return rc;
}
