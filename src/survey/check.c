#include "survey/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/chunk.h"
#include "base/dtype.h"
#include "base/text.h"
#include "survey/scan.h"
#include "survey/values.h"

enum { PAGE = 4096 }; /* a gap of less is alignment */

/* A check under way. */
typedef struct checking {
    const char *name; /* of the file */
    const decant_model *model;
    decant_on_finding found;
    void *ctx;
    bool stopped;
    uint64_t longest; /* the shortest run of zeros that is told */
    decant_check_totals totals;
    /* of the tensor whose values pass */
    decant_tensor tensor;
    dcn_tally tally;
    bool is_open;
    /* zeros at the end of the data so far: bytes, and from which tensor on */
    uint64_t tail, tail_begin;
    const dcn_entry *tail_from;
} checking;

/* --- telling --------------------------------------------------------------------------------------------------------- */

static void tell(checking *c, const decant_finding *finding)
{
    if (c->found && !c->stopped)
        c->stopped = c->found(c->ctx, finding) != 0;
}

/* The caller knows which file he asks for; of a set, another one may be at fault. */
static void tell_fault(void *ctx, const decant_error *fault)
{
    checking *c = ctx;
    decant_error copy = *fault, own = {0};

    dcn_error_path(&own, c->name);
    if (strcmp(copy.path, own.path) == 0)
        copy.path[0] = '\0';
    c->totals.faults++;
    tell(c, &(decant_finding){.kind = DECANT_FAULT, .text = decant_error_text(&copy), .error = fault});
}

static void warn(checking *c, const char *text)
{
    c->totals.warnings++;
    tell(c, &(decant_finding){.kind = DECANT_WARNING, .text = text});
}

/* Of several tensors of which one thing is to be said. */
typedef struct group {
    uint64_t count;
    const dcn_entry *first;
} group;

static void join(group *g, const dcn_entry *entry)
{
    if (g->count++ == 0)
        g->first = entry;
}

static void warn_of(checking *c, const group *g, const char *one, const char *many)
{
    char name[96], text[256];

    if (g->count == 0)
        return;
    dcn_text_escape(name, sizeof name, g->first->name, g->first->name_len);
    snprintf(text, sizeof text, "%" PRIu64 " %s, first '%s'", g->count, g->count == 1 ? one : many, name);
    warn(c, text);
}

/* --- what the metadata shows ------------------------------------------------------------------------------------------ */

/* People cannot see, or type, such a name. */
static bool is_hidden(const dcn_entry *e)
{
    char shown[512];

    if (e->name_len == 0)
        return true;
    if (e->name_len >= sizeof shown / 4)
        return false;
    dcn_text_escape(shown, sizeof shown, e->name, e->name_len);
    return !dcn_chunk_is((dcn_chunk){e->name, e->name_len}, shown);
}

static bool is_reserved(const dcn_entry *e)
{
    static const char name[] = "__metadata__";

    return e->name_len == sizeof name - 1 && memcmp(e->name, name, sizeof name - 1) == 0;
}

static bool is_unaligned(const dcn_entry *e)
{
    unsigned bytes = dcn_dtype((decant_dtype)e->dtype)->bits / 8;

    return bytes > 1 && e->data.len && e->data.offset % (bytes > 8 ? 8 : bytes);
}

static void warn_of_tensors(checking *c)
{
    group hidden = {0}, reserved = {0}, unaligned = {0}, holes = {0};
    const dcn_entry *before = NULL;

    for (size_t i = 0; i < c->model->count; i++) {
        const dcn_entry *e = &c->model->entries[i];

        if (is_hidden(e))
            join(&hidden, e);
        if (is_reserved(e))
            join(&reserved, e);
        if (is_unaligned(e))
            join(&unaligned, e);
        if (before && e->data.backing == before->data.backing &&
            e->data.offset > before->data.offset + before->data.len + PAGE)
            join(&holes, e);
        before = e;
    }
    warn_of(c, &hidden, "name is empty or has characters that do not show",
            "names are empty or have characters that do not show");
    warn_of(c, &reserved, "name that safetensors keeps for its metadata",
            "names that safetensors keeps for its metadata");
    warn_of(c, &unaligned, "tensor does not lie at a multiple of its elements' size",
            "tensors do not lie at multiples of their elements' size");
    warn_of(c, &holes, "hole of more than a page, before a tensor", "holes of more than a page, before tensors");
}

static void warn_of_notes(checking *c)
{
    for (size_t i = 0; i < c->model->note_count; i++)
        if (strcmp(c->model->notes[i].key, "odd") == 0)
            warn(c, c->model->notes[i].text);
}

/* --- what the values show --------------------------------------------------------------------------------------------- */

/* How much of the end of all data so far is zeros. */
static void extend_tail(checking *c, const dcn_entry *entry)
{
    if (c->tail && c->tally.run == entry->data.len) {
        c->tail += entry->data.len;
        return;
    }
    c->tail = c->tally.run;
    c->tail_begin = entry->data.len - c->tally.run;
    c->tail_from = entry;
}

static void tell_values(checking *c)
{
    const decant_values *v = &c->tally.values;
    char name[96], text[320];
    size_t used;

    dcn_text_escape(name, sizeof name, v->tensor->name, v->tensor->name_len);
    used = (size_t)snprintf(text, sizeof text, "tensor '%s':", name);
    if (v->nans || v->infinities)
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 " %" PRIu64 " NaN and %" PRIu64 " infinite of %" PRIu64 ";", v->nans, v->infinities,
                                 v->total);
    if (v->neither)
        used +=
            (size_t)snprintf(text + used, sizeof text - used, " %" PRIu64 " booleans are neither 0 nor 1;", v->neither);
    if (v->zeros)
        used += (size_t)snprintf(text + used, sizeof text - used, " %" PRIu64 " zero bytes from byte %" PRIu64 " on;",
                                 v->zeros, v->zeros_begin);
    text[used - 1] = '\0';
    tell(c, &(decant_finding){.kind = DECANT_VALUES, .text = text, .values = v});
}

static void open_tensor(checking *c, const dcn_entry *entry)
{
    c->tensor = (decant_tensor)DECANT_TENSOR_INIT;
    decant_model_tensor(c->model, (size_t)(entry - c->model->entries), &c->tensor);
    dcn_tally_begin(&c->tally, &c->tensor);
    c->is_open = true;
}

static decant_status see_part(void *ctx, const dcn_entry *entry, const uint8_t *data, size_t len, decant_error *err)
{
    checking *c = ctx;

    (void)err;
    if (!c->is_open)
        open_tensor(c, entry);
    dcn_tally_put(&c->tally, data, len);
    return DECANT_OK;
}

static decant_status see_end(void *ctx, const dcn_entry *entry, decant_error *err)
{
    checking *c = ctx;

    if (c->is_open) {
        if (dcn_tally_end(&c->tally, c->longest))
            tell_values(c);
        extend_tail(c, entry);
        c->totals.bytes += entry->data.len;
    }
    c->is_open = false;
    return c->stopped ? decant_error_set(err, DECANT_CANCELLED, "stopped") : DECANT_OK;
}

static decant_status check_values(checking *c, const dcn_cut *cut, const decant_check_options *options,
                                  decant_error *err)
{
    const dcn_viewer viewer = {see_part, see_end, c};
    char name[96], text[320];
    decant_status rc = dcn_scan_model(c->model, cut, options->progress, options->progress_ctx, &viewer, err);

    if (rc == DECANT_OK && c->tail >= c->longest) {
        dcn_text_escape(name, sizeof name, c->tail_from->name, c->tail_from->name_len);
        snprintf(text, sizeof text,
                 "the last %" PRIu64 " bytes of the data are zeros, from byte %" PRIu64
                 " of tensor '%s' on, as a download leaves them that has not finished",
                 c->tail, c->tail_begin, name);
        warn(c, text);
    }
    return rc;
}

/* --- the whole -------------------------------------------------------------------------------------------------------- */

static decant_status open_model(checking *c, dcn_input *in, const dcn_reading *how, decant_model **model,
                                decant_error *err)
{
    const dcn_findings findings = {tell_fault, c};
    const dcn_format *format = how->format;
    decant_error failure = {.offset = DECANT_NO_OFFSET};
    decant_status rc;

    if (!format && (rc = dcn_format_detect(in, &format, err)))
        return rc;
    c->totals.format = format->name;
    c->totals.covered = format->covers;
    c->totals.lacking = format->lacks;

    in->findings = &findings;
    rc = dcn_format_open(in, format, &how->limits, how->lenient, model, &failure);
    in->findings = NULL;
    if (rc == DECANT_NOT_FOUND) { /* a file of the set */
        tell_fault(c, &failure);
        return DECANT_OK;
    }
    if (rc != DECANT_UNSUPPORTED || failure.tensor[0]) /* a file of a later version is not checked */
        rc = dcn_fault(&findings, rc, &failure);
    if (rc && err)
        *err = failure;
    return rc;
}

decant_status dcn_check(dcn_input *in, const dcn_reading *how, const dcn_cut *cut, uint64_t longest,
                        const decant_check_options *options, decant_on_finding found, void *ctx,
                        decant_check_totals *totals, decant_error *err)
{
    checking c = {.name = in->name, .found = found, .ctx = ctx, .longest = longest};
    decant_model *model = NULL;
    decant_status rc = open_model(&c, in, how, &model, err);

    if (rc)
        return rc;
    c.model = model;
    c.totals.tensors = model ? model->count : 0;
    if (c.totals.faults == 0 && model) {
        warn_of_notes(&c);
        warn_of_tensors(&c);
        if (options->deep && !c.stopped)
            rc = check_values(&c, cut, options, err);
    }
    if (rc == DECANT_OK && c.stopped)
        rc = decant_error_set(err, DECANT_CANCELLED, "stopped");
    if (rc == DECANT_OK && totals)
        *totals = c.totals;
    decant_model_close(&model);
    return rc;
}
