/* Any bytes as JSON: skipping and walking agree on what it is, and a string that was read is written and read again. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "codec/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static char *copy_of(const uint8_t *data, size_t size)
{
    char *copy = malloc(size ? size : 1);

    require(copy);
    if (size)
        memcpy(copy, data, size);
    return copy;
}

/* Writes a string and reads it back. */
static void check_string(dcn_chunk text)
{
    dcn_buf buf = {0};
    dcn_chunk again;
    dcn_json json;

    dcn_json_put_string(&buf, text.data, text.len);
    json = dcn_json_on((char *)buf.data, buf.len, 0, NULL);
    require(dcn_json_string(&json, &again) && dcn_json_end(&json) == DECANT_OK);
    require(again.len == text.len && memcmp(again.data, text.data, text.len) == 0);
    dcn_buf_close(&buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = copy_of(data, size), *walked = copy_of(data, size);
    decant_error err = {0}, walk_err = {0};
    dcn_json json = dcn_json_on(text, size, 0, &err), walk = dcn_json_on(walked, size, 0, &walk_err);
    dcn_chunk chunk;
    bool skipped;

    skipped = dcn_json_skip(&json, DCN_JSON_DEPTH) && dcn_json_end(&json) == DECANT_OK;
    require(skipped == (json.status == DECANT_OK) && err.status == json.status);
    require(skipped ? json.depth == 0 : err.offset <= size);

    if (size && *data == '[') {
        dcn_json_array(&walk);
        while (dcn_json_item(&walk))
            dcn_json_skip(&walk, DCN_JSON_DEPTH);
        require(skipped == (dcn_json_end(&walk) == DECANT_OK));
    } else if (size && *data == '{') {
        dcn_json_object(&walk);
        while (dcn_json_key(&walk, &chunk)) {
            check_string(chunk);
            dcn_json_skip(&walk, DCN_JSON_DEPTH);
        }
        require(skipped == (dcn_json_end(&walk) == DECANT_OK));
    } else if (dcn_json_string(&walk, &chunk)) {
        check_string(chunk);
        require(skipped == (dcn_json_end(&walk) == DECANT_OK));
    }
    free(walked);
    free(text);
    return 0;
}
