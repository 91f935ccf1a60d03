#include "survey/digest.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/ckd.h"
#include "base/sha256.h"
#include "base/sort.h"
#include "codec/json.h"

/* A tensor that has passed. */
typedef struct sum {
    uint8_t sha256[DCN_SHA256];
    const dcn_entry *entry;
} sum;

struct dcn_digester {
    dcn_viewer viewer;
    dcn_sha256 *sha256;
    sum *sums;
    size_t count, cap;
    const decant_model *model;
    decant_on_digest found;
    void *ctx;
};

/* --- the order of lines ---------------------------------------------------------------------------------------------- */

/* "2," or "3]": an extent with what stands behind it, so that none is the beginning of another. */
static void put_extent(char out[24], const dcn_entry *e, size_t i)
{
    snprintf(out, 24, "%" PRIu64 "%c", e->shape[i], i + 1 < e->rank ? ',' : ']');
}

static int compare_shapes(const dcn_entry *a, const dcn_entry *b)
{
    char a_text[24], b_text[24];
    int order = 0;

    if (a->rank == 0 || b->rank == 0) /* "]" comes after all digits */
        return (a->rank == 0) - (b->rank == 0);
    for (size_t i = 0; order == 0 && i < a->rank && i < b->rank; i++) {
        put_extent(a_text, a, i);
        put_extent(b_text, b, i);
        order = strcmp(a_text, b_text);
    }
    return order;
}

/* What one byte of a name, or the end of the name, begins with in a JSON string, and what tells it from others. */
static unsigned escaped(const dcn_entry *e, size_t i)
{
    static const char shorts[] = "btn\0fr"; /* of 0x08 to 0x0d */
    uint8_t byte = i < e->name_len ? (uint8_t)e->name[i] : '"';

    if (i == e->name_len)
        return '"' << 8;
    if (byte == '"' || byte == '\\')
        return '\\' << 8 | byte;
    if (byte >= ' ')
        return (unsigned)byte << 8;
    if (byte >= '\b' && byte <= '\r' && byte != '\v')
        return '\\' << 8 | (uint8_t)shorts[byte - '\b'];
    return '\\' << 8 | 'u'; /* of two of these the byte decides, as its digits do */
}

static int compare_names(const dcn_entry *a, const dcn_entry *b)
{
    size_t i = 0;
    unsigned x, y;

    while (i < a->name_len && i < b->name_len && a->name[i] == b->name[i])
        i++;
    x = escaped(a, i);
    y = escaped(b, i);
    if (x != y)
        return x < y ? -1 : 1;
    return i < a->name_len && i < b->name_len ? (uint8_t)a->name[i] - (uint8_t)b->name[i] : 0;
}

/* As their lines, byte by byte, without making them. */
static int compare_sums(const void *a, const void *b)
{
    const sum *x = a, *y = b;
    int order = memcmp(x->sha256, y->sha256, DCN_SHA256);

    if (order == 0)
        order =
            strcmp(decant_dtype_name((decant_dtype)x->entry->dtype), decant_dtype_name((decant_dtype)y->entry->dtype));
    if (order == 0)
        order = compare_shapes(x->entry, y->entry);
    return order ? order : compare_names(x->entry, y->entry);
}

/* --- lines ----------------------------------------------------------------------------------------------------------- */

static void put_line(dcn_buf *line, const sum *s)
{
    char hex[DECANT_DIGEST];

    dcn_sha256_text(hex, s->sha256);
    line->len = 0;
    dcn_buf_text(line, hex);
    dcn_buf_byte(line, ' ');
    dcn_buf_text(line, decant_dtype_name((decant_dtype)s->entry->dtype));
    dcn_buf_text(line, " [");
    for (size_t i = 0; i < s->entry->rank; i++) {
        if (i)
            dcn_buf_byte(line, ',');
        dcn_json_put_u64(line, s->entry->shape[i]);
    }
    dcn_buf_text(line, "] ");
    dcn_json_put_string(line, s->entry->name, s->entry->name_len);
    dcn_buf_byte(line, '\n');
}

decant_status dcn_digester_end(dcn_digester *d, char hex[DECANT_DIGEST], decant_error *err)
{
    uint8_t sha256[DCN_SHA256];
    dcn_buf line = {0};
    decant_status rc = DECANT_OK;

    dcn_sort(d->sums, d->count, sizeof *d->sums, compare_sums);
    for (size_t i = 0; i < d->count && rc == DECANT_OK; i++) {
        put_line(&line, &d->sums[i]);
        if ((rc = dcn_buf_check(&line, err)) == DECANT_OK)
            dcn_sha256_put(d->sha256, line.data, line.len);
    }
    dcn_buf_close(&line);
    if (rc || (rc = dcn_sha256_end(d->sha256, sha256, err)))
        return rc;
    dcn_sha256_text(hex, sha256);
    return DECANT_OK;
}

/* --- data ------------------------------------------------------------------------------------------------------------ */

static decant_status hash_part(void *ctx, const dcn_entry *entry, const uint8_t *data, size_t len, decant_error *err)
{
    dcn_digester *d = ctx;

    (void)entry;
    (void)err;
    dcn_sha256_put(d->sha256, data, len);
    return DECANT_OK;
}

static decant_status hash_end(void *ctx, const dcn_entry *entry, decant_error *err)
{
    dcn_digester *d = ctx;
    sum *s = &d->sums[d->count++];
    decant_tensor tensor = DECANT_TENSOR_INIT;
    char hex[DECANT_DIGEST];
    decant_status rc;

    assert(d->count <= d->cap);
    s->entry = entry;
    if ((rc = dcn_sha256_end(d->sha256, s->sha256, err)) || !d->found)
        return rc;
    decant_model_tensor(d->model, (size_t)(entry - d->model->entries), &tensor);
    dcn_sha256_text(hex, s->sha256);
    return d->found(d->ctx, &tensor, hex) ? decant_error_set(err, DECANT_CANCELLED, "stopped") : DECANT_OK;
}

decant_status dcn_digester_create(size_t count, const decant_model *model, decant_on_digest found, void *ctx,
                                  dcn_digester **out, decant_error *err)
{
    dcn_digester *d = dcn_alloc(1, sizeof *d);
    decant_status rc;

    if (!d || !(d->sums = dcn_alloc(count, sizeof *d->sums)))
        rc = dcn_error_nomem(err);
    else
        rc = dcn_sha256_create(&d->sha256, err);
    if (rc) {
        dcn_digester_close(&d);
        return rc;
    }
    d->viewer = (dcn_viewer){hash_part, hash_end, d};
    d->cap = count;
    d->model = model;
    d->found = found;
    d->ctx = ctx;
    *out = d;
    return DECANT_OK;
}

const dcn_viewer *dcn_digester_viewer(dcn_digester *d)
{
    return &d->viewer;
}

void dcn_digester_close(dcn_digester **d)
{
    if (*d) {
        dcn_sha256_close(&(*d)->sha256);
        dcn_free(&(*d)->sums);
    }
    dcn_free(d);
}

decant_status dcn_digest(const decant_model *model, const dcn_cut *cut, const decant_digest_options *options,
                         decant_on_digest found, void *ctx, char hex[DECANT_DIGEST], decant_error *err)
{
    dcn_digester *d = NULL;
    decant_status rc;

    if ((rc = dcn_digester_create(model->count, model, found, ctx, &d, err)) == DECANT_OK &&
        (rc = dcn_scan_model(model, cut, options->progress, options->progress_ctx, dcn_digester_viewer(d), err)) ==
            DECANT_OK)
        rc = dcn_digester_end(d, hex, err);
    dcn_digester_close(&d);
    return rc;
}
