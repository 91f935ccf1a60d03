/* Any bytes as a safetensors file. What opens is planned, rendered and opened again: it is the same model, and the same bytes. */
#include "support/models.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_any_file(&dcn_safetensors, data, size, false);
    return 0;
}
