/*
 * A model over several files, as the ecosystem writes it (huggingface_hub 0.25, serialization/_base.py, and transformers'
 * save_pretrained): tensors are dealt in the order of the model; what does not fit begins the next file; one that is larger
 * than a file may be gets a file of its own. NAME-00001-of-00003.safetensors, then the index NAME.safetensors.index.json,
 * JSON as Python's json.dumps(index, indent=2, sort_keys=True) has it. If it is one file there is no index.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/ckd.h"
#include "base/sort.h"
#include "base/text.h"
#include "codec/json.h"
#include "format/safetensors/layout.h"
#include "format/split.h"

#define ENDING ".safetensors"
#define INDEX_ENDING ".index.json"

/* --- dealing ----------------------------------------------------------------------------------------------------- */

/* Gives each entry the number of its file. @return how many files */
static size_t number_files(const decant_model *model, uint64_t cap, uint32_t *numbers)
{
    size_t files = 0, open = 0; /* the entries of the open file are those without a number, from here on */
    uint64_t used = 0;
    bool any = false;

    for (size_t i = 0; i < model->count; i++) {
        uint64_t len = model->entries[i].data.len;

        if (len > cap) {
            numbers[i] = (uint32_t)++files;
            continue;
        }
        if (len > cap - used) {
            files++;
            for (; open < i; open++)
                numbers[open] = numbers[open] ? numbers[open] : (uint32_t)files;
            used = 0;
        }
        used += len;
        any = true;
    }
    if (any)
        files++;
    for (; open < model->count; open++)
        numbers[open] = numbers[open] ? numbers[open] : (uint32_t)files;
    return files;
}

decant_status dcn_st_deal(const decant_model *model, uint64_t cap, dcn_st_hands *out, decant_error *err)
{
    uint32_t *numbers = dcn_alloc(model->count, sizeof *numbers);
    size_t *next = NULL;
    decant_status rc = DECANT_OK;

    out->count = numbers ? number_files(model, cap, numbers) : 0;
    out->ends = dcn_alloc(out->count + 1, sizeof *out->ends);
    out->tensors = dcn_alloc(model->count, sizeof(const dcn_entry *));
    next = dcn_alloc(out->count + 1, sizeof *next);
    if (!numbers || !out->ends || !out->tensors || !next) {
        rc = dcn_error_nomem(err);
        goto done;
    }
    for (size_t i = 0; i < model->count; i++)
        out->ends[numbers[i] - 1]++;
    for (size_t k = 1; k < out->count; k++) {
        next[k] = out->ends[k - 1];
        out->ends[k] += out->ends[k - 1];
    }
    for (size_t i = 0; i < model->count; i++)
        out->tensors[next[numbers[i] - 1]++] = &model->entries[i];
done:
    dcn_free(&next);
    dcn_free(&numbers);
    return rc;
}

void dcn_st_hands_close(dcn_st_hands *hands)
{
    dcn_free(&hands->tensors);
    dcn_free(&hands->ends);
}

/* --- names ------------------------------------------------------------------------------------------------------- */

/* Bytes of a name in front of its extension. */
static size_t stem_of(const char *name)
{
    size_t len = strlen(name), end = sizeof ENDING - 1;

    return len > end && strcasecmp(name + len - end, ENDING) == 0 ? len - end : len;
}

static decant_status finish_name(dcn_buf *text, char **out, decant_error *err)
{
    decant_status rc;

    dcn_buf_byte(text, '\0');
    if ((rc = dcn_buf_check(text, err)))
        dcn_buf_close(text);
    else
        *out = (char *)text->data;
    return rc;
}

decant_status dcn_st_shard_name(const char *name, size_t number, size_t count, char **out, decant_error *err)
{
    dcn_buf text = {0};

    dcn_buf_put(&text, name, stem_of(name));
    dcn_buf_format(&text, "-%05zu-of-%05zu" ENDING, number, count);
    return finish_name(&text, out, err);
}

static decant_status index_name(const char *name, char **out, decant_error *err)
{
    dcn_buf text = {0};

    dcn_buf_put(&text, name, stem_of(name));
    dcn_buf_text(&text, ENDING INDEX_ENDING);
    return finish_name(&text, out, err);
}

bool dcn_st_supersedes(const char *out, const char *name)
{
    size_t stem = stem_of(out);
    char exact[256];
    dcn_split part;

    if (strcmp(name, out) == 0)
        return true;
    if (strncmp(name, out, stem) != 0)
        return false;
    if (strcmp(name + stem, ENDING INDEX_ENDING) == 0)
        return true;
    if (!dcn_split_parse(name, &part) || part.stem_len != stem || part.number > part.count)
        return false;
    snprintf(exact, sizeof exact, "-%05" PRIu32 "-of-%05" PRIu32 ENDING, part.number, part.count);
    return strcmp(name + stem, exact) == 0;
}

/* --- the index --------------------------------------------------------------------------------------------------- */

/* A string in ASCII, as Python writes it. The text is UTF-8. */
static void put_ascii(dcn_buf *out, const char *text, size_t len)
{
    const uint8_t *at = (const uint8_t *)text, *end = at + len;

    dcn_buf_byte(out, '"');
    while (at < end) {
        uint32_t point = *at;
        unsigned more = point < 0xC0 ? 0 : point < 0xE0 ? 1 : point < 0xF0 ? 2 : 3;
        const char *place = strchr("\"\\\b\f\n\r\t", (int)point);

        if (more)
            point &= 0x3Fu >> more;
        for (at++; more; more--)
            point = point << 6 | (*at++ & 0x3Fu);
        if (point && place)
            dcn_buf_format(out, "\\%c", "\"\\bfnrt"[place - "\"\\\b\f\n\r\t"]);
        else if (point >= 0x10000)
            dcn_buf_format(out, "\\u%04x\\u%04x", 0xD800 + ((point - 0x10000) >> 10), 0xDC00 + (point & 0x3FF));
        else if (point < 0x20 || point > 0x7E)
            dcn_buf_format(out, "\\u%04x", point);
        else
            dcn_buf_byte(out, (uint8_t)point);
    }
    dcn_buf_byte(out, '"');
}

/* A tensor and the number of its file. */
typedef struct row {
    const dcn_entry *entry;
    size_t file;
} row;

static int by_name(const void *a, const void *b)
{
    const dcn_entry *x = ((const row *)a)->entry, *y = ((const row *)b)->entry;

    return dcn_text_compare(x->name, x->name_len, y->name, y->name_len);
}

static decant_status put_map(const dcn_st_hands *hands, const dcn_plans *plans, dcn_buf *out, decant_error *err)
{
    size_t total = hands->ends[hands->count - 1];
    row *rows = dcn_alloc(total, sizeof *rows);

    if (!rows)
        return dcn_error_nomem(err);
    for (size_t i = 0, k = 0; i < total; i++) {
        while (i >= hands->ends[k])
            k++;
        rows[i] = (row){hands->tensors[i], k};
    }
    dcn_sort(rows, total, sizeof *rows, by_name);
    for (size_t i = 0; i < total; i++) {
        const char *file = plans->items[rows[i].file].name;

        dcn_buf_text(out, i ? ",\n    " : "\n    ");
        put_ascii(out, rows[i].entry->name, rows[i].entry->name_len);
        dcn_buf_text(out, ": ");
        put_ascii(out, file, strlen(file));
    }
    dcn_free(&rows);
    return DECANT_OK;
}

decant_status dcn_st_emit_map(const decant_model *model, const dcn_st_hands *hands, const char *name, dcn_plans *out,
                              decant_error *err)
{
    dcn_plan *plan = NULL;
    dcn_buf text = {0};
    uint64_t total = 0;
    decant_status rc;

    for (size_t i = 0; i < model->count; i++)
        total += model->entries[i].data.len;
    dcn_buf_format(&text, "{\n  \"metadata\": {\n    \"total_size\": %" PRIu64 "\n  },\n  \"weight_map\": {", total);
    if ((rc = put_map(hands, out, &text, err)))
        goto done;
    dcn_buf_text(&text, "\n  }\n}\n");
    if ((rc = dcn_buf_check(&text, err)) || (rc = dcn_plans_add(out, model, &plan, err)) ||
        (rc = index_name(name, &plan->name, err)))
        goto done;
    total = text.len;
    if ((rc = dcn_plan_literal(plan, 0, &text, err)))
        goto done;
    dcn_plan_finish(plan, total);
    plan->held = dcn_min(DCN_ST_HELD, total);
done:
    dcn_buf_close(&text);
    return rc;
}
