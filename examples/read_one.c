/*
 * Reads one tensor of a model, and nothing of the others: read_one FILE NAME. Prints its dtype, its shape, and its first
 * elements if they are F32.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <decant/decant.h>

static void print_head(const decant_tensor *tensor, const void *data, size_t len)
{
    float element;

    printf("%s [", decant_dtype_name(tensor->dtype));
    for (size_t i = 0; i < tensor->rank; i++)
        printf("%s%" PRIu64, i ? ", " : "", tensor->shape[i]);
    printf("]");
    for (size_t at = 0; tensor->dtype == DECANT_F32 && at < len; at += sizeof element) {
        memcpy(&element, (const char *)data + at, sizeof element); /* data in files is little-endian */
        printf(" %g", (double)element);
    }
    printf("\n");
}

int main(int argc, char **argv)
{
    decant_model *model = NULL;
    decant_bytes *bytes = NULL;
    decant_tensor tensor = DECANT_TENSOR_INIT;
    decant_view view = {0};
    decant_error err;
    size_t index;
    uint64_t head;
    int failed = 1;

    if (argc != 3) {
        fprintf(stderr, "usage: read_one FILE NAME\n");
        return 2;
    }
    /* Opening reads the header; asking for the bytes reads nothing yet. */
    if (decant_open(argv[1], NULL, &model, &err) || decant_model_find(model, argv[2], strlen(argv[2]), &index, &err) ||
        decant_model_bytes(model, index, &bytes, &err))
        goto done;
    decant_model_tensor(model, index, &tensor);

    /* Only these bytes come from the disk. */
    head = tensor.len < 16 ? tensor.len : 16;
    if (decant_bytes_pin(bytes, 0, head, 0, &view, &err))
        goto done;
    print_head(&tensor, view.data, view.len);
    failed = 0;
done:
    if (failed)
        fprintf(stderr, "%s\n", decant_error_text(&err));
    decant_view_release(&view);
    decant_bytes_unref(&bytes);
    decant_model_close(&model);
    return failed;
}
