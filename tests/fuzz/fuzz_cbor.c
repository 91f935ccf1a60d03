/* Any bytes as CBOR: skipped whole, or pulled apart by a schema that takes whatever stands next. */
#include <stdlib.h>
#include <string.h>

#include "codec/cbor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OPEN = 8 };

/* Takes what stands next, containers as far as there is room for them. */
static void pull(dcn_cbor *cbor)
{
    dcn_cbor_run runs[OPEN];
    size_t open = 0;
    dcn_chunk chunk;
    uint64_t number, numbers[4];
    int64_t signed_number;
    size_t count;
    bool flag;

    for (int steps = 0; steps < 10000 && !cbor->status; steps++) {
        if (open && !dcn_cbor_more(cbor, &runs[open - 1])) {
            open--;
        } else {
            if (open)
                dcn_cbor_key(cbor, &chunk);
            switch (dcn_cbor_peek(cbor)) {
            case DCN_CBOR_UINT:
                dcn_cbor_u64(cbor, &number);
                break;
            case DCN_CBOR_NEGATIVE:
                dcn_cbor_i64(cbor, &signed_number);
                break;
            case DCN_CBOR_BYTES:
                if (!dcn_cbor_u64s(cbor, numbers, 4, &count))
                    dcn_cbor_u64(cbor, &number);
                break;
            case DCN_CBOR_TEXT:
                if (!dcn_cbor_is_text(cbor, "dtype", 5))
                    dcn_cbor_text(cbor, &chunk);
                break;
            case DCN_CBOR_ARRAY:
                dcn_cbor_u64s(cbor, numbers, 4, &count);
                break;
            case DCN_CBOR_MAP:
                if (open == OPEN)
                    dcn_cbor_skip(cbor);
                else if (dcn_cbor_map(cbor, &runs[open]))
                    open++;
                break;
            case DCN_CBOR_OTHER:
                if (!dcn_cbor_null(cbor) && cbor->at < cbor->end && (*cbor->at & 31) >= 25)
                    dcn_cbor_f64(cbor, &number);
                else
                    dcn_cbor_bool(cbor, &flag);
                break;
            default:
                dcn_cbor_skip(cbor);
            }
        }
        if (open == 0)
            break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int way = 0; way < 2; way++) {
        uint8_t *copy = malloc(size ? size : 1);
        decant_error err = {0};
        dcn_cbor cbor;

        if (!copy)
            abort();
        if (size)
            memcpy(copy, data, size);
        cbor = dcn_cbor_on(copy, size, 0, &err);
        if (way)
            pull(&cbor);
        else
            dcn_cbor_skip(&cbor);
        if (cbor.status != err.status || cbor.at < cbor.start || cbor.at > cbor.end || cbor.depth > DCN_CBOR_DEPTH)
            abort();
        free(copy);
    }
    return 0;
}
