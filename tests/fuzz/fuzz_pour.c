/*
 * A model built from the input, through every place it can be saved to: plan → pour → read back. Tensors of all dtypes and
 * odd sizes, from memory, by range, produced whole, sliced and joined; slots of a few bytes; a crew whose order the input
 * decides. What is saved must open, hold the same tensors with the same bytes, and be the same in each place.
 */
#include <stdlib.h>
#include <string.h>

#include "api/env.h"
#include "base/alloc.h"
#include "base/dtype.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_TENSORS = 12, MOST_LEN = 700, MOST_RANK = 4 };

static void require(bool holds)
{
    if (!holds)
        abort();
}

/* The input, byte by byte; zeros when it is used up. */
typedef struct input {
    const uint8_t *at, *end;
} input;

static unsigned take(input *in)
{
    return in->at < in->end ? *in->at++ : 0;
}

/* What a provider yields, and what it has been asked for. */
typedef struct source {
    uint8_t content[MOST_LEN];
    uint64_t asked; /* up to here */
    bool lent;
    unsigned fails_at; /* 0: never */
    unsigned calls;
} source;

static decant_status read_range(void *ctx, uint64_t offset, void *dst, size_t len, decant_error *err)
{
    source *s = ctx;

    require(offset >= s->asked && offset + len <= MOST_LEN);
    s->asked = offset + len;
    if (++s->calls == s->fails_at)
        return decant_error_set(err, DECANT_IO, "the provider gives up");
    memcpy(dst, s->content + offset, len);
    return DECANT_OK;
}

static decant_status produce(void *ctx, decant_view *out, decant_error *err)
{
    source *s = ctx;

    require(!s->lent);
    if (++s->calls == s->fails_at)
        return decant_error_set(err, DECANT_IO, "the provider gives up");
    s->lent = true;
    out->data = s->content;
    out->len = (size_t)s->asked; /* its length, for this form */
    return DECANT_OK;
}

static void discard(void *ctx, decant_view *view)
{
    source *s = ctx;

    (void)view;
    require(s->lent);
    s->lent = false;
}

/* Bytes of `len` in one of the ways there are. */
static decant_bytes *make_bytes(input *in, source *s, size_t len, unsigned how, bool fails)
{
    decant_provider provider = DECANT_PROVIDER_INIT;
    decant_bytes *bytes = NULL, *rest = NULL, *joined = NULL;
    size_t cut;

    for (size_t i = 0; i < MOST_LEN; i++)
        s->content[i] = (uint8_t)(i * 31 + len);
    provider.ctx = s;
    s->fails_at = 1 + take(in) % 3; /* taken either way: the model must not depend on `fails` */
    if (!fails)
        s->fails_at = 0;
    switch (how % 4) {
    case 0:
        require(decant_bytes_copy(s->content, len, &bytes, NULL) == DECANT_OK);
        return bytes;
    case 1:
        provider.read = read_range;
        require(decant_bytes_defer(len, &provider, &bytes, NULL) == DECANT_OK);
        return bytes;
    case 2:
        s->asked = len;
        provider.produce = produce;
        provider.discard = discard;
        require(decant_bytes_defer(len, &provider, &bytes, NULL) == DECANT_OK);
        return bytes;
    default:
        cut = len ? take(in) % (len + 1) : 0;
        require(decant_bytes_copy(s->content, len, &rest, NULL) == DECANT_OK);
        {
            decant_bytes *parts[2] = {NULL, NULL};

            require(decant_bytes_slice(rest, 0, cut, &parts[0], NULL) == DECANT_OK);
            require(decant_bytes_slice(rest, cut, len - cut, &parts[1], NULL) == DECANT_OK);
            require(decant_bytes_join(parts, 2, &joined, NULL) == DECANT_OK);
            decant_bytes_unref(&parts[0]);
            decant_bytes_unref(&parts[1]);
        }
        decant_bytes_unref(&rest);
        return joined;
    }
}

/* The same model for the same input. */
static decant_model *build(input in, source *sources, bool fails)
{
    decant_model *model = NULL;
    unsigned count = take(&in) % (MOST_TENSORS + 1);

    require(decant_model_create(&model, NULL) == DECANT_OK);
    for (unsigned i = 0; i < count; i++) {
        decant_tensor tensor = DECANT_TENSOR_INIT;
        uint64_t shape[MOST_RANK], len = 0;
        char name[16] = {'t', (char)('a' + i)};
        decant_bytes *bytes;
        decant_status rc;

        tensor.name = name;
        tensor.name_len = 1 + take(&in) % 3;
        tensor.dtype = (decant_dtype)(1 + take(&in) % (DECANT_QFLOAT - 1));
        tensor.rank = take(&in) % (MOST_RANK + 1);
        tensor.shape = shape;
        for (size_t k = 0; k < tensor.rank; k++)
            shape[k] = take(&in) % 9;
        name[2] = 'z';
        if (dcn_dtype_len(tensor.dtype, shape, tensor.rank, &len, NULL) || len > MOST_LEN)
            continue;
        tensor.has_id = take(&in) % 8 == 0;
        tensor.id = UINT64_MAX - i;
        memset(&sources[i], 0, sizeof sources[i]);
        bytes = make_bytes(&in, &sources[i], (size_t)len, take(&in), fails);
        rc = decant_model_add(model, &tensor, bytes, NULL);
        require(rc == DECANT_OK || rc == DECANT_DUPLICATE || rc == DECANT_MALFORMED);
        decant_bytes_unref(&bytes);
    }
    return model;
}

static decant_status swallow(void *ctx, const void *data, size_t len, decant_error *err)
{
    dcn_buf *buf = ctx;

    dcn_buf_put(buf, data, len);
    return dcn_buf_check(buf, err);
}

/* Saves a fresh build of the model to one kind of place. */
static decant_status save_to(const dcn_env *env, input in, dcn_target_kind kind, const decant_save_options *options,
                             bool fails, dcn_buf *out, decant_error *err)
{
    static source sources[MOST_TENSORS];
    decant_model *model = build(in, sources, fails);
    decant_bytes *bytes = NULL;
    dcn_target target = {.kind = kind, .bytes = &bytes};
    decant_view view = {0};
    uint64_t size = 0;
    decant_status rc;

    *out = (dcn_buf){0};
    target.stream = (decant_stream){sizeof target.stream, swallow, out};
    if (kind == DCN_TO_MEMORY && decant_size(model, options, &size, NULL) == DECANT_OK) {
        require(dcn_buf_reserve(out, (size_t)size) != NULL);
        memset(out->data, 0xEE, (size_t)size);
        out->len = (size_t)size;
        target.dst = out->data;
        target.len = (size_t)size;
    }
    rc = dcn_save(env, model, &target, options, false, NULL, err);
    if (rc == DECANT_OK && kind == DCN_TO_NEW) {
        require(decant_bytes_pin(bytes, 0, decant_bytes_len(bytes), DECANT_NO_COPY, &view, NULL) == DECANT_OK);
        dcn_buf_put(out, view.data, view.len);
        decant_view_release(&view);
    }
    decant_bytes_unref(&bytes);
    decant_model_close(&model);
    for (size_t i = 0; i < MOST_TENSORS; i++)
        require(!sources[i].lent);
    return rc;
}

static void check_same(input in, const dcn_buf *file, const char *format)
{
    static source sources[MOST_TENSORS];
    decant_open_options options = {.size = sizeof options, .format = format};
    decant_model *model = build(in, sources, false), *opened = NULL;
    decant_diff_totals totals = {0};
    decant_bytes *bytes = NULL;
    decant_error err = {0};

    require(decant_bytes_wrap(file->data, file->len, NULL, NULL, &bytes, NULL) == DECANT_OK);
    require(decant_open_bytes(bytes, "saved", &options, &opened, &err) == DECANT_OK);
    require(decant_model_count(opened) == decant_model_count(model));
    require(decant_diff(model, opened, NULL, NULL, NULL, &totals, &err) == DECANT_OK && totals.differences == 0);
    decant_bytes_unref(&bytes);
    decant_model_close(&opened);
    decant_model_close(&model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const formats[] = {"burnpack", "safetensors"};
    static const dcn_target_kind kinds[] = {DCN_TO_NEW, DCN_TO_MEMORY, DCN_TO_STREAM};
    input in = {data, data + size};
    dcn_env env = dcn_env_default();
    decant_save_options options = DECANT_SAVE_OPTIONS_INIT;
    unsigned how = take(&in);
    bool fails = how & 2;
    dcn_buf files[3] = {{0}};
    decant_status first = DECANT_OK;

    options.format = formats[how & 1];
    options.allow = how & 4 ? DECANT_ALLOW_LOSS : 0;
    env.crew_seed = take(&in);
    env.cut = (dcn_cut){.slot = (size_t)64 << take(&in) % 5, .slots = 1 + take(&in) % 3, .direct = 32 + take(&in)};

    for (size_t i = 0; i < 3; i++) {
        decant_error err = {0};
        decant_status rc = save_to(&env, in, kinds[i], &options, fails, &files[i], &err);

        require(rc == DECANT_OK || rc == DECANT_LOSS || rc == DECANT_BAD_CALL || (fails && rc == DECANT_IO));
        require(rc == err.status);
        if (i == 0)
            first = rc;
        require(rc == first);
        if (rc == DECANT_OK && i > 0)
            require(files[i].len == files[0].len && memcmp(files[i].data, files[0].data, files[0].len) == 0);
    }
    if (first == DECANT_OK)
        check_same(in, &files[0], options.format);
    for (size_t i = 0; i < 3; i++)
        dcn_buf_close(&files[i]);
    return 0;
}
