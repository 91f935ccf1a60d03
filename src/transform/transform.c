#include "transform/transform.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/chunk.h"
#include "base/ckd.h"
#include "base/dtype.h"
#include "base/text.h"
#include "transform/cast.h"
#include "transform/pattern.h"
#include "transform/rename.h"

/* A rule of dtypes. */
typedef struct rule {
    dcn_pattern which; /* closed: every real number */
    decant_dtype to;
} rule;

/* A transform under way. */
typedef struct job {
    const decant_model *const *models;
    const char *const *prefixes; /* may be NULL */
    size_t count;
    const decant_transform_options *options;
    dcn_pattern *include, *exclude;
    dcn_rename *renames;
    rule *rules;
    bool *put;                      /* which contents have found their tensor */
    size_t kept[DECANT_QFLOAT + 1]; /* by dtype: tensors that were to be cast, and cannot be */
    dcn_buf name, other;            /* the name of the entry at hand, and one in the making */
    decant_model *out;
} job;

/* --- the options -------------------------------------------------------------------------------------------------- */

/* Says which flag's value is wrong. */
static decant_status blame(const char *flag, const char *text, decant_status rc, decant_error *err)
{
    if (rc && rc != DECANT_NOMEM && err) {
        char meaning[160], safe[128];

        dcn_text_escape(safe, sizeof safe, text, strlen(text));
        snprintf(meaning, sizeof meaning, "%s %s", flag, safe);
        dcn_error_recast(err, rc, meaning);
    }
    return rc;
}

static decant_status open_patterns(const char *flag, const char *const *texts, size_t count, dcn_pattern **out,
                                   decant_error *err)
{
    decant_status rc = DECANT_OK;

    if (!(*out = dcn_alloc(count, sizeof **out)))
        return dcn_error_nomem(err);
    for (size_t i = 0; i < count && rc == DECANT_OK; i++)
        rc = blame(flag, texts[i], dcn_pattern_open(texts[i], strlen(texts[i]), &(*out)[i], err), err);
    return rc;
}

static decant_status read_dtype(const char *name, decant_dtype *out, decant_error *err)
{
    static const struct {
        const char *name;
        decant_dtype dtype;
    } known[] = {{"f64", DECANT_F64}, {"f32", DECANT_F32}, {"f16", DECANT_F16}, {"bf16", DECANT_BF16}};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, name) == 0 || strcmp(decant_dtype_name(known[i].dtype), name) == 0) {
            *out = known[i].dtype;
            return DECANT_OK;
        }
    decant_error_set(err, DECANT_BAD_CALL, "nothing can be cast to '%s'", name);
    dcn_error_hint(err, "the types are f64, f32, f16, bf16");
    return DECANT_BAD_CALL;
}

static decant_status open_rule(const char *text, rule *out, decant_error *err)
{
    const char *equals = strrchr(text, '=');
    decant_status rc = read_dtype(equals ? equals + 1 : text, &out->to, err);

    if (rc == DECANT_OK && equals)
        rc = dcn_pattern_open(text, (size_t)(equals - text), &out->which, err);
    return blame("--dtype", text, rc, err);
}

static decant_status check_prefixes(const job *j, decant_error *err)
{
    for (size_t m = 0; j->prefixes && m < j->count; m++)
        if (j->prefixes[m] && !dcn_utf8_valid(j->prefixes[m], strlen(j->prefixes[m]))) {
            decant_error_set(err, DECANT_BAD_CALL, "a prefix that is not UTF-8");
            dcn_error_hint(err, "names are UTF-8, whatever the locale is");
            return blame("--prefix", j->prefixes[m], DECANT_BAD_CALL, err);
        }
    return DECANT_OK;
}

static decant_status prepare(job *j, decant_error *err)
{
    const decant_transform_options *o = j->options;
    decant_status rc;

    if ((rc = check_prefixes(j, err)) ||
        (rc = open_patterns("--include", o->include, o->include_count, &j->include, err)) ||
        (rc = open_patterns("--exclude", o->exclude, o->exclude_count, &j->exclude, err)))
        return rc;
    if (!(j->put = dcn_alloc(o->put_count, sizeof *j->put)) ||
        !(j->renames = dcn_alloc(o->rename_count, sizeof *j->renames)) ||
        !(j->rules = dcn_alloc(o->dtype_count, sizeof *j->rules)))
        return dcn_error_nomem(err);
    for (size_t i = 0; i < o->rename_count && rc == DECANT_OK; i++)
        rc = blame("--rename", o->rename[i], dcn_rename_open(o->rename[i], &j->renames[i], err), err);
    for (size_t i = 0; i < o->dtype_count && rc == DECANT_OK; i++)
        rc = open_rule(o->dtype[i], &j->rules[i], err);
    return rc;
}

static void dispose(job *j)
{
    const decant_transform_options *o = j->options;

    for (size_t i = 0; j->include && i < o->include_count; i++)
        dcn_pattern_close(&j->include[i]);
    for (size_t i = 0; j->exclude && i < o->exclude_count; i++)
        dcn_pattern_close(&j->exclude[i]);
    for (size_t i = 0; j->renames && i < o->rename_count; i++)
        dcn_rename_close(&j->renames[i]);
    for (size_t i = 0; j->rules && i < o->dtype_count; i++)
        dcn_pattern_close(&j->rules[i].which);
    dcn_free(&j->include);
    dcn_free(&j->exclude);
    dcn_free(&j->renames);
    dcn_free(&j->rules);
    dcn_free(&j->put);
    dcn_buf_close(&j->name);
    dcn_buf_close(&j->other);
    decant_model_close(&j->out);
}

/* --- names -------------------------------------------------------------------------------------------------------- */

/* Puts into `name` what the entry is called after the prefix. */
static decant_status begin_name(job *j, size_t input, const dcn_entry *e, decant_error *err)
{
    j->name.len = 0;
    if (j->prefixes && j->prefixes[input])
        dcn_buf_text(&j->name, j->prefixes[input]);
    dcn_buf_put(&j->name, e->name, e->name_len);
    return dcn_buf_check(&j->name, err);
}

static decant_status match_any(dcn_pattern *patterns, size_t count, const dcn_buf *name, bool *yes, decant_error *err)
{
    decant_status rc = DECANT_OK;
    bool one = false;

    *yes = false;
    for (size_t i = 0; i < count && rc == DECANT_OK; i++) { /* all of them, since each must match something */
        rc = dcn_pattern_match(&patterns[i], (const char *)name->data, name->len, &one, err);
        *yes |= one;
    }
    return rc;
}

static decant_status filter(job *j, bool *stays, decant_error *err)
{
    const decant_transform_options *o = j->options;
    bool included, excluded;
    decant_status rc;

    if ((rc = match_any(j->include, o->include_count, &j->name, &included, err)) ||
        (rc = match_any(j->exclude, o->exclude_count, &j->name, &excluded, err)))
        return rc;
    *stays = (included || !o->include_count) && !excluded;
    return DECANT_OK;
}

/* Renames what stays, by the first `count` substitutions. */
static decant_status rename_entry(job *j, size_t count, decant_error *err)
{
    for (size_t i = 0; i < count; i++) {
        dcn_buf was = j->name;
        decant_status rc;

        j->other.len = 0;
        if ((rc = dcn_rename_apply(&j->renames[i], (const char *)was.data, was.len, &j->other, err)))
            return rc;
        j->name = j->other;
        j->other = was;
    }
    return DECANT_OK;
}

static bool is_changed(const job *j, const dcn_entry *e)
{
    return j->name.len != e->name_len || memcmp(j->name.data, e->name, e->name_len) != 0;
}

static decant_status check_name(const job *j, const dcn_entry *e, decant_error *err)
{
    uint64_t most = dcn_limits_of(j->options->allow & DECANT_ALLOW_LIMITS).name;

    if (!is_changed(j, e))
        return DECANT_OK;
    if (j->name.len == 0) {
        decant_error_set(err, DECANT_BAD_CALL, "nothing would be left of its name");
        dcn_error_hint(err, "write a --rename that leaves something of it");
        return DECANT_BAD_CALL;
    }
    if (j->name.len <= most)
        return DECANT_OK;
    decant_error_set(err, DECANT_LIMIT, "its new name would be too long");
    dcn_error_found(err, "%zu bytes", j->name.len);
    dcn_error_expected(err, "at most %" PRIu64, most);
    dcn_error_hint(err, "choose a shorter one, or --allow limits");
    return DECANT_LIMIT;
}

/* Where a tensor of the result was: "'w' of a.safetensors". */
static void describe(const job *j, char *out, size_t size, size_t input, const char *name, size_t len)
{
    char safe[72];
    const char *path = j->models[input]->path;

    dcn_text_escape(safe, sizeof safe, name, len);
    snprintf(out, size, "'%s'%s%s", safe, path ? " of " : "", path ? path : "");
}

static decant_status refuse_collision(const job *j, size_t there, size_t input, const dcn_entry *e, decant_error *err)
{
    const dcn_origin *first = &j->out->origins[there];
    bool renamed = is_changed(j, e) || first->name_len != e->name_len;
    char one[144], other[144];

    describe(j, one, sizeof one, first->input, first->name, first->name_len);
    describe(j, other, sizeof other, input, e->name, e->name_len);
    decant_error_set(err, DECANT_DUPLICATE, "two tensors would have this name: %s and %s", one, other);
    if (renamed)
        dcn_error_hint(err, "write --rename so that they stay apart");
    else
        dcn_error_hint(err, "put a --prefix in front of one of the inputs, or --exclude one of the tensors");
    dcn_error_tensor(err, (const char *)j->name.data, j->name.len);
    return DECANT_DUPLICATE;
}

/* --- dtypes ------------------------------------------------------------------------------------------------------- */

static decant_status refuse_cast(const dcn_entry *e, decant_error *err)
{
    decant_error_set(err, DECANT_UNSUPPORTED, "%s cannot be cast", decant_dtype_name((decant_dtype)e->dtype));
    dcn_error_hint(err, "F64, F32, F16, BF16, F8_E4M3 and F8_E5M2 can: leave it out of --dtype");
    return DECANT_UNSUPPORTED;
}

/* What the entry's dtype becomes. A rule that says its name must be able to; of what a wildcard takes in, all that can do. */
static decant_status choose_dtype(job *j, const dcn_entry *e, decant_dtype *out, decant_error *err)
{
    bool can = dcn_real_from((decant_dtype)e->dtype), taken = false;

    *out = (decant_dtype)e->dtype;
    for (size_t i = 0; i < j->options->dtype_count; i++) {
        rule *r = &j->rules[i];
        bool yes = true;
        decant_status rc;

        if (r->which.text && (rc = dcn_pattern_match(&r->which, (const char *)j->name.data, j->name.len, &yes, err)))
            return rc;
        if (yes && !can && r->which.text && dcn_pattern_is_name(&r->which) && r->to != (decant_dtype)e->dtype)
            return refuse_cast(e, err);
        if (yes && can)
            *out = r->to;
        taken = taken || yes;
    }
    j->kept[e->dtype] += taken && !can;
    return DECANT_OK;
}

/* "2 tensors of I64, 1 of Flex32": nothing is left as it is without a word. */
static decant_status note_kept(job *j, decant_error *err)
{
    dcn_buf text = {0};
    decant_status rc;

    for (size_t dtype = 0; dtype <= DECANT_QFLOAT; dtype++)
        if (j->kept[dtype])
            dcn_buf_format(&text, "%s%zu%s of %s", text.len ? ", " : "", j->kept[dtype],
                           text.len              ? ""
                           : j->kept[dtype] == 1 ? " tensor"
                                                 : " tensors",
                           decant_dtype_name((decant_dtype)dtype));
    if (!text.len && !text.failed)
        return DECANT_OK;
    dcn_buf_byte(&text, '\0');
    if ((rc = dcn_buf_check(&text, err)) == DECANT_OK)
        rc = dcn_model_note(j->out, "keeps", err, "%s, which cannot be cast", (const char *)text.data);
    dcn_buf_close(&text);
    return rc;
}

/* --- entries ------------------------------------------------------------------------------------------------------ */

static decant_status add(job *j, size_t input, const dcn_entry *e, decant_dtype dtype, const dcn_span *data,
                         decant_error *err)
{
    dcn_origin origin = {.name_len = e->name_len, .input = (uint32_t)input, .dtype = e->dtype};
    dcn_draft draft = {
        .name = (const char *)j->name.data,
        .name_len = j->name.len,
        .shape = e->shape,
        .rank = e->rank,
        .dtype = dtype,
        .has_id = e->has_id,
        .any_name = true, /* it was let pass already */
        .id = e->id,
        .data = *data,
        .extra = e->extra,
    };
    decant_status rc;

    if ((rc = dcn_model_add(j->out, &draft, err)))
        return rc;
    origin.name = j->out->entries[j->out->count - 1].name;
    if (is_changed(j, e) && !(origin.name = dcn_arena_copy(&j->out->memory, e->name, e->name_len)))
        return dcn_error_nomem(err);
    j->out->origins[j->out->count - 1] = origin;
    return DECANT_OK;
}

static decant_status add_cast(job *j, size_t input, const dcn_entry *e, decant_dtype dtype, const dcn_span *raw,
                              decant_error *err)
{
    dcn_span data = {0};
    decant_status rc;

    if ((rc = dcn_cast(raw, (decant_dtype)e->dtype, dtype, j->options->allow & DECANT_ALLOW_OVERFLOW, &data.backing,
                       err)))
        return rc;
    data.len = data.backing->len;
    rc = add(j, input, e, dtype, &data, err);
    decant_bytes_unref(&data.backing);
    return rc;
}

/* The bytes of an entry: its own, or those that are put in their place. */
static decant_status choose_data(job *j, const dcn_entry *e, dcn_span *out, decant_error *err)
{
    bool has_new = false;

    *out = e->data;
    for (size_t i = 0; i < j->options->put_count; i++) {
        const decant_content *put = &j->options->put[i];

        if (!dcn_chunk_is((dcn_chunk){e->name, e->name_len}, put->name))
            continue;
        if (has_new) {
            decant_error_set(err, DECANT_BAD_CALL, "new content is given to it twice");
            dcn_error_hint(err, "give it one --put");
            return DECANT_BAD_CALL;
        }
        j->put[i] = has_new = true;
        *out = (dcn_span){put->bytes, 0, put->bytes->len};
        if (out->len == e->data.len)
            continue;
        decant_error_set(err, DECANT_MISMATCH, "the new content has another length");
        dcn_error_found(err, "%" PRIu64 " bytes", out->len);
        dcn_error_expected(err, "%" PRIu64, e->data.len);
        dcn_error_hint(err, "give it in the tensor's dtype and shape, without a header");
        return DECANT_MISMATCH;
    }
    return DECANT_OK;
}

static decant_status check_len(const dcn_entry *e, decant_error *err)
{
    uint64_t len;
    decant_status rc = dcn_dtype_len((decant_dtype)e->dtype, e->shape, e->rank, &len, err);

    if (rc || len == e->data.len)
        return rc;
    decant_error_set(err, DECANT_MISMATCH, "the length of its bytes does not fit its dtype and shape");
    dcn_error_found(err, "%" PRIu64 " bytes", e->data.len);
    dcn_error_expected(err, "%" PRIu64, len);
    return DECANT_MISMATCH;
}

static decant_status transform_entry(job *j, size_t input, const dcn_entry *e, decant_error *err)
{
    decant_dtype dtype;
    dcn_span data;
    size_t there;
    bool stays;
    decant_status rc;

    if ((rc = begin_name(j, input, e, err)) || (rc = filter(j, &stays, err)) || !stays ||
        (rc = choose_data(j, e, &data, err)) || (rc = rename_entry(j, j->options->rename_count, err)) ||
        (rc = check_name(j, e, err)) || (rc = choose_dtype(j, e, &dtype, err)))
        goto done;
    if (dcn_model_find(j->out, (const char *)j->name.data, j->name.len, &there))
        rc = refuse_collision(j, there, input, e, err);
    else if (dtype == (decant_dtype)e->dtype)
        rc = add(j, input, e, dtype, &data, err);
    else if ((rc = check_len(e, err)) == DECANT_OK)
        rc = add_cast(j, input, e, dtype, &data, err);
done:
    if (rc && rc != DECANT_NOMEM) {
        dcn_error_tensor(err, e->name, e->name_len);
        dcn_error_path(err, j->models[input]->path);
        if (rc != DECANT_BAD_CALL)
            dcn_error_side(err, DECANT_SIDE_INPUT);
    }
    return rc;
}

/* --- what matches nothing ----------------------------------------------------------------------------------------- */

/* A name that may have been meant. */
typedef struct guess {
    const char *wanted;
    size_t distance;
    char name[128];
} guess;

/* The name closest to a pattern and not another altogether, of those that the first `renames` substitutions make of what stays (SIZE_MAX: of all). */
static decant_status guess_name(job *j, const char *wanted, size_t renames, guess *out, decant_error *err)
{
    enum { LOOKED_AT = 20000 }; /* of more, the first: it is about a hint */
    size_t left = LOOKED_AT, len = strlen(wanted);
    decant_status rc = DECANT_OK;

    *out = (guess){.wanted = wanted, .distance = len < 3 ? len : len / 3 + 2};
    for (size_t m = 0; m < j->count && rc == DECANT_OK; m++)
        for (size_t i = 0; i < j->models[m]->count && left && rc == DECANT_OK; i++, left--) {
            bool stays = true;
            size_t distance;

            if ((rc = begin_name(j, m, &j->models[m]->entries[i], err)) ||
                (renames != SIZE_MAX && (rc = filter(j, &stays, err))) || !stays ||
                (renames != SIZE_MAX && (rc = rename_entry(j, renames, err))))
                continue;
            distance = dcn_text_distance(wanted, len, (const char *)j->name.data, j->name.len, out->distance);
            if (distance < out->distance) {
                out->distance = distance;
                dcn_text_escape(out->name, sizeof out->name, (const char *)j->name.data, j->name.len);
            }
        }
    return rc;
}

static decant_status refuse_unmatched(job *j, const char *flag, const char *text, const char *wanted, size_t renames,
                                      decant_error *err)
{
    char safe[128];
    guess g;
    decant_status rc = guess_name(j, wanted, renames, &g, err);

    if (rc)
        return rc;
    dcn_text_escape(safe, sizeof safe, text, strlen(text));
    decant_error_set(err, DECANT_NOT_FOUND, "%s %s matches no tensor", flag, safe);
    if (g.name[0])
        dcn_error_hint(err, "did you mean '%s'? decant ls shows all names", g.name);
    else
        dcn_error_hint(err, "decant ls shows all names");
    dcn_error_side(err, DECANT_SIDE_INPUT);
    if (j->count == 1)
        dcn_error_path(err, j->models[0]->path);
    return DECANT_NOT_FOUND;
}

/* Content for a tensor that there is not, or that is left out. */
static decant_status refuse_put(job *j, const char *name, decant_error *err)
{
    size_t len = strlen(name), index, m = 0;

    while (m < j->count && !dcn_model_find(j->models[m], name, len, &index))
        m++;
    if (m == j->count)
        return refuse_unmatched(j, "--put", name, name, SIZE_MAX, err);
    decant_error_set(err, DECANT_BAD_CALL, "it is given new content and left out");
    dcn_error_hint(err, "take away its --put, or what leaves it out (--drop)");
    dcn_error_tensor(err, name, len);
    dcn_error_path(err, j->models[m]->path);
    return DECANT_BAD_CALL;
}

static decant_status check_matched(job *j, decant_error *err)
{
    const decant_transform_options *o = j->options;

    for (size_t i = 0; i < o->put_count; i++)
        if (!j->put[i])
            return refuse_put(j, o->put[i].name, err);
    for (size_t i = 0; i < o->include_count; i++)
        if (!j->include[i].matched)
            return refuse_unmatched(j, "--include", o->include[i], j->include[i].text, SIZE_MAX, err);
    for (size_t i = 0; i < o->exclude_count; i++)
        if (!j->exclude[i].matched)
            return refuse_unmatched(j, "--exclude", o->exclude[i], j->exclude[i].text, SIZE_MAX, err);
    for (size_t i = 0; i < o->rename_count; i++)
        if (!j->renames[i].matched)
            return refuse_unmatched(j, "--rename", o->rename[i], "", i, err);
    for (size_t i = 0; i < o->dtype_count; i++)
        if (j->rules[i].which.text && !j->rules[i].which.matched)
            return refuse_unmatched(j, "--dtype", o->dtype[i], j->rules[i].which.text, o->rename_count, err);
    return DECANT_OK;
}

/* --- all of it ---------------------------------------------------------------------------------------------------- */

/* What a format hangs on a model is one thing, and cannot be joined with another. */
static decant_status take_extra(job *j, decant_error *err)
{
    const decant_model *from = NULL;

    for (size_t m = 0; m < j->count; m++) {
        dcn_extra *extra = j->models[m]->extra;

        if (!extra || extra == j->out->extra)
            continue;
        if (!j->out->extra) {
            j->out->extra = dcn_extra_ref(extra);
            from = j->models[m];
        } else if (extra->ops->what && !(j->options->allow & DECANT_ALLOW_LOSS)) {
            assert(from);
            decant_error_set(err, DECANT_LOSS, "its %s cannot be merged with that of %s", extra->ops->what,
                             from->path ? from->path : "another input");
            dcn_error_hint(err, "--allow loss drops it");
            dcn_error_path(err, j->models[m]->path);
            dcn_error_side(err, DECANT_SIDE_INPUT);
            return DECANT_LOSS;
        }
    }
    return DECANT_OK;
}

static decant_status create(job *j, decant_error *err)
{
    const decant_model *first = j->models[0];
    uint64_t total = 0;
    decant_status rc;

    for (size_t m = 0; m < j->count; m++)
        total += j->models[m]->count;
    if ((rc = dcn_model_create(first->seed, &j->out, err)) || (rc = dcn_model_reserve(j->out, (size_t)total, err)))
        return rc;
    if (!(j->out->origins = dcn_alloc((size_t)total, sizeof *j->out->origins)) ||
        (j->count == 1 && first->path &&
         !(j->out->path = dcn_arena_copy(&j->out->memory, first->path, strlen(first->path) + 1))))
        return dcn_error_nomem(err);
    for (size_t m = 0; m < j->count; m++)
        for (size_t i = 0; i < j->models[m]->owned_count; i++)
            if ((rc = dcn_model_own(j->out, j->models[m]->owned[i], err)))
                return rc;
    j->out->format = first->format;
    return DECANT_OK;
}

decant_status dcn_transform(const decant_model *const *models, const char *const *prefixes, size_t count,
                            const decant_transform_options *options, decant_model **out, decant_error *err)
{
    job j = {.models = models, .prefixes = prefixes, .count = count, .options = options};
    decant_status rc;

    if ((rc = prepare(&j, err)) || (rc = create(&j, err)) || (rc = take_extra(&j, err)) ||
        (rc = dcn_transform_values(models, count, options, j.out, err)))
        goto done;
    for (size_t m = 0; m < count; m++)
        for (size_t i = 0; i < models[m]->count; i++)
            if ((rc = transform_entry(&j, m, &models[m]->entries[i], err)))
                goto done;
    if ((rc = check_matched(&j, err)) || (rc = note_kept(&j, err)))
        goto done;
    *out = j.out;
    j.out = NULL;
done:
    dispose(&j);
    return rc;
}
