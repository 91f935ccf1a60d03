/*
 * Writes a model of a known shape, the same bytes each time, through providers: nothing of it is ever in memory whole.
 *
 *     decant-generate WORKLOAD OUT
 *
 * llama-7b/N        291 tensors of Llama 2 7B in BF16, rows divided by N: N = 16 is 0.8 GB, N = 13 about 1 GiB
 * small-COUNTxSIZE  COUNT tensors of SIZE bytes (U8), names of 80 bytes, some not ASCII, in the worst order for sorting
 * part-K:COUNTxSIZE part K of a model: between two of its tensors stands one of each other part, in the order of names
 * one-huge:SIZE     one U8 tensor
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <decant/decant.h>

/* splitmix64, which can start anywhere: the word at index i is a function of seed + i alone. */
static uint64_t word_at(uint64_t seed, uint64_t index)
{
    uint64_t z = seed + (index + 1) * UINT64_C(0x9E3779B97F4A7C15);

    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

static decant_status fill(void *ctx, uint64_t offset, void *dst, size_t len, decant_error *err)
{
    uint64_t seed;
    uint8_t *out = dst;

    (void)err;
    memcpy(&seed, ctx, sizeof seed);
    for (size_t done = 0; done < len;) {
        uint64_t word = word_at(seed, (offset + done) / 8);
        size_t skip = (offset + done) % 8, step = 8 - skip < len - done ? 8 - skip : len - done;

        for (size_t i = 0; i < step; i++)
            out[done + i] = (uint8_t)(word >> 8 * (skip + i));
        done += step;
    }
    return DECANT_OK;
}

static decant_status add(decant_model *model, const char *name, decant_dtype dtype, unsigned bytes_each,
                         const uint64_t *shape, size_t rank, decant_error *err)
{
    decant_tensor tensor = DECANT_TENSOR_INIT;
    decant_provider provider = DECANT_PROVIDER_INIT;
    decant_bytes *bytes = NULL;
    uint64_t *seed = malloc(sizeof *seed), len = bytes_each;
    decant_status rc;

    if (!seed)
        return decant_error_set(err, DECANT_NOMEM, "out of memory");
    *seed = decant_model_count(model);
    for (size_t i = 0; i < rank; i++)
        len *= shape[i];
    provider.read = fill;
    provider.release = free;
    provider.ctx = seed;
    tensor.name = name;
    tensor.dtype = dtype;
    tensor.rank = rank;
    tensor.shape = shape;
    if ((rc = decant_bytes_defer(len, &provider, &bytes, err))) {
        free(seed);
        return rc;
    }
    rc = decant_model_add(model, &tensor, bytes, err);
    decant_bytes_unref(&bytes);
    return rc;
}

static decant_status add_llama(decant_model *model, uint64_t divisor, decant_error *err)
{
    enum { LAYERS = 32, WIDTH = 4096, HIDDEN = 11008, WORDS = 32000 };
    static const struct {
        const char *name;
        uint64_t rows, columns;
    } parts[] = {
        {"self_attn.q_proj.weight", WIDTH, WIDTH},     {"self_attn.k_proj.weight", WIDTH, WIDTH},
        {"self_attn.v_proj.weight", WIDTH, WIDTH},     {"self_attn.o_proj.weight", WIDTH, WIDTH},
        {"mlp.gate_proj.weight", HIDDEN, WIDTH},       {"mlp.up_proj.weight", HIDDEN, WIDTH},
        {"mlp.down_proj.weight", WIDTH, HIDDEN},       {"input_layernorm.weight", 0, WIDTH},
        {"post_attention_layernorm.weight", 0, WIDTH},
    };
    const uint64_t words[] = {WORDS / divisor, WIDTH}, norm[] = {WIDTH};
    decant_status rc = add(model, "model.embed_tokens.weight", DECANT_BF16, 2, words, 2, err);

    for (unsigned layer = 0; layer < LAYERS; layer++)
        for (size_t i = 0; i < sizeof parts / sizeof *parts && !rc; i++) {
            const uint64_t matrix[] = {parts[i].rows / divisor, parts[i].columns};
            char name[96];

            snprintf(name, sizeof name, "model.layers.%u.%s", layer, parts[i].name);
            rc = add(model, name, DECANT_BF16, 2, parts[i].rows ? matrix : norm, parts[i].rows ? 2 : 1, err);
        }
    if (!rc)
        rc = add(model, "model.norm.weight", DECANT_BF16, 2, norm, 1, err);
    return rc ? rc : add(model, "lm_head.weight", DECANT_BF16, 2, words, 2, err);
}

static decant_status add_small(decant_model *model, uint64_t count, uint64_t size, decant_error *err)
{
    decant_status rc = DECANT_OK;

    for (uint64_t i = 0; i < count && !rc; i++) {
        char name[128];

        /* the bits of i reversed lead the name, so neighbours in the file are far apart when sorted */
        snprintf(name, sizeof name,
                 "%016" PRIx64 ".%s.encoder.layers.%05" PRIu64 ".attention.projection.weight_%08" PRIu64, word_at(7, i),
                 i % 8 ? "block" : "\xC3\xA9t\xC3\xA9", i % 1000, i);
        rc = add(model, name, DECANT_U8, 1, &size, 1, err);
    }
    return rc;
}

static decant_status add_part(decant_model *model, uint64_t part, uint64_t count, uint64_t size, decant_error *err)
{
    decant_status rc = DECANT_OK;

    for (uint64_t i = 0; i < count && !rc; i++) {
        char name[64];

        snprintf(name, sizeof name, "layers.%05" PRIu64 ".experts.%03" PRIu64, i, part);
        rc = add(model, name, DECANT_U8, 1, &size, 1, err);
    }
    return rc;
}

static decant_status add_workload(decant_model *model, const char *workload, decant_error *err)
{
    uint64_t a, b, c;

    if (sscanf(workload, "llama-7b/%" SCNu64, &a) == 1 && a >= 1 && a <= 4096)
        return add_llama(model, a, err);
    if (sscanf(workload, "small-%" SCNu64 "x%" SCNu64, &a, &b) == 2)
        return add_small(model, a, b, err);
    if (sscanf(workload, "part-%" SCNu64 ":%" SCNu64 "x%" SCNu64, &a, &b, &c) == 3)
        return add_part(model, a, b, c, err);
    if (sscanf(workload, "one-huge:%" SCNu64, &a) == 1)
        return add(model, "weight", DECANT_U8, 1, &a, 1, err);
    return decant_error_set(err, DECANT_BAD_CALL, "no workload '%s'", workload);
}

int main(int argc, char **argv)
{
    decant_save_options options = DECANT_SAVE_OPTIONS_INIT;
    decant_model *model = NULL;
    decant_error err = {0};
    decant_status rc;

    if (argc != 3) {
        fputs("usage: decant-generate llama-7b/N|small-COUNTxSIZE|part-K:COUNTxSIZE|one-huge:SIZE OUT\n", stderr);
        return 2;
    }
    options.replace = 1;
    options.allow = DECANT_ALLOW_LIMITS;
    if ((rc = decant_model_create(&model, &err)) || (rc = add_workload(model, argv[1], &err)) ||
        (rc = decant_save(model, argv[2], &options, NULL, &err)))
        fprintf(stderr, "decant-generate: %s\n", decant_error_text(&err));
    decant_model_close(&model);
    return rc ? 1 : 0;
}
