/*
 * Saves three tensors, whose bytes come in the three ways there are: three_tensors OUT.
 *
 *   memory    lies in an array of ours
 *   by_range  is asked for range by range, and never exists as a whole
 *   whole     is made as a whole when its turn comes, and given back before the next is asked for
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <decant/decant.h>

/* As many bytes of the tensor as are asked for. A real one would copy from a device or a network. */
static decant_status read_range(void *ctx, uint64_t offset, void *dst, size_t len, decant_error *err)
{
    (void)ctx, (void)err;
    for (size_t i = 0; i < len; i++)
        ((unsigned char *)dst)[i] = (unsigned char)(offset + i);
    return DECANT_OK;
}

static decant_status produce_whole(void *ctx, decant_view *out, decant_error *err)
{
    size_t len = *(const size_t *)ctx;
    void *data = malloc(len);

    if (!data)
        return decant_error_set(err, DECANT_NOMEM, "no memory for %zu bytes", len);
    memset(data, 7, len);
    out->data = data;
    out->len = len;
    out->hold = data;
    return DECANT_OK;
}

static void discard_whole(void *ctx, decant_view *view)
{
    (void)ctx;
    free(view->hold);
}

/* The model keeps a reference of its own on the bytes. */
static decant_status add(decant_model *model, const char *name, uint64_t extent, decant_bytes *bytes, decant_error *err)
{
    decant_tensor tensor = DECANT_TENSOR_INIT;

    tensor.name = name;
    tensor.dtype = DECANT_U8;
    tensor.rank = 1;
    tensor.shape = &extent;
    return decant_model_add(model, &tensor, bytes, err);
}

int main(int argc, char **argv)
{
    static const unsigned char memory[] = {1, 2, 3, 4, 5};
    size_t whole_len = 1000;
    decant_provider by_range = DECANT_PROVIDER_INIT, whole = DECANT_PROVIDER_INIT;
    decant_bytes *bytes[3] = {NULL, NULL, NULL};
    decant_model *model = NULL;
    decant_error err;
    int failed;

    if (argc != 2) {
        fprintf(stderr, "usage: three_tensors OUT\n");
        return 2;
    }
    by_range.read = read_range;
    whole.produce = produce_whole;
    whole.discard = discard_whole;
    whole.ctx = &whole_len;

    failed =
        decant_model_create(&model, &err) || decant_bytes_wrap(memory, sizeof memory, NULL, NULL, &bytes[0], &err) ||
        decant_bytes_defer(256, &by_range, &bytes[1], &err) || decant_bytes_defer(whole_len, &whole, &bytes[2], &err) ||
        add(model, "memory", sizeof memory, bytes[0], &err) || add(model, "by_range", 256, bytes[1], &err) ||
        add(model, "whole", whole_len, bytes[2], &err) || decant_save(model, argv[1], NULL, NULL, &err);
    if (failed)
        fprintf(stderr, "%s\n", decant_error_text(&err));
    for (size_t i = 0; i < 3; i++)
        decant_bytes_unref(&bytes[i]);
    decant_model_close(&model);
    return failed;
}
