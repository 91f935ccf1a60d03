#include "base/sha256.h"
#include "support/sha256.h"
#include "support/test.h"

TEST(sha256__is_that_of_another_implementation_however_it_is_fed)
{
    uint8_t data[300], sum[DCN_SHA256];
    char hex[2 * DCN_SHA256 + 1];
    dcn_sha256 *sha = NULL;
    decant_error err;

    test_stream(1, data, sizeof data);
    CHECK_OK(dcn_sha256_create(&sha, &err), &err);
    for (size_t len = 0; len <= sizeof data; len++)
        for (size_t cut = 0; cut <= len; cut += 1 + cut / 2) {
            dcn_sha256_put(sha, data, cut);
            dcn_sha256_put(sha, data + cut, len - cut);
            CHECK_OK(dcn_sha256_end(sha, sum, &err), &err);
            dcn_sha256_text(hex, sum);
            CHECK_TEXT(hex, sha256_hex(data, len));
        }
    dcn_sha256_close(&sha);
    dcn_sha256_close(&sha);
}
