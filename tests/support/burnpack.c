#include "burnpack.h"

#include <stdlib.h>

#include "base/endian.h"
#include "codec/cbor.h"

uint8_t *bpk_file_of(const uint8_t *metadata, size_t metadata_len, size_t data, size_t *len)
{
    size_t start = (10 + metadata_len + 255) / 256 * 256;
    uint8_t *file = calloc(start + data, 1);

    CHECK(file);
    memcpy(file, "NRUB\1", 5);
    dcn_put_le(file + 6, metadata_len, 4);
    if (metadata_len)
        memcpy(file + 10, metadata, metadata_len);
    test_stream(1, file + start, data);
    *len = start + data;
    return file;
}

uint8_t *bpk_file(const char *metadata, size_t data, size_t *len)
{
    dcn_buf buf = {0};
    uint8_t *file;

    while (*metadata) {
        const char *end = strchr(metadata + 1, '\'');
        char digits[3] = {0};

        if (*metadata == ' ') {
            metadata++;
        } else if (*metadata == '\'') {
            CHECK(end);
            dcn_cbor_put_text(&buf, metadata + 1, (size_t)(end - metadata - 1));
            metadata = end + 1;
        } else {
            memcpy(digits, metadata, 2);
            dcn_buf_byte(&buf, (uint8_t)strtoul(digits, NULL, 16));
            metadata += 2;
        }
    }
    file = bpk_file_of(buf.data, buf.len, data, len);
    dcn_buf_close(&buf);
    return file;
}

decant_status bpk_open(const char *metadata, size_t data, bool lenient, decant_model **out, decant_error *err)
{
    size_t len;
    uint8_t *file = bpk_file(metadata, data, &len);
    decant_status rc = model_open(&dcn_burnpack, file, len, NULL, lenient ? DECANT_LENIENT_ALL : 0, out, err);

    free(file);
    return rc;
}
