#include "safetensors.h"

#include <stdlib.h>

#include "base/endian.h"

uint8_t *st_file(const char *header, size_t data, size_t *len)
{
    size_t header_len = strlen(header);
    uint8_t *file = malloc(8 + header_len + data);

    if (!file)
        test_fail(__FILE__, __LINE__, "no memory");
    dcn_put_le(file, header_len, 8);
    memcpy(file + 8, header, header_len);
    test_stream(1, file + 8 + header_len, data);
    *len = 8 + header_len + data;
    return file;
}

decant_status st_open(const char *header, size_t data, bool lenient, decant_model **out, decant_error *err)
{
    size_t len;
    uint8_t *file = st_file(header, data, &len);
    decant_status rc = model_open(&dcn_safetensors, file, len, NULL, lenient ? DECANT_LENIENT_ALL : 0, out, err);

    free(file);
    return rc;
}
