#include "base/sha256.h"

#include <stdbool.h>

#include "base/alloc.h"

void dcn_sha256_text(char out[2 * DCN_SHA256 + 1], const uint8_t sum[DCN_SHA256])
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < DCN_SHA256; i++) {
        out[2 * i] = digits[sum[i] >> 4];
        out[2 * i + 1] = digits[sum[i] & 15];
    }
    out[2 * (size_t)DCN_SHA256] = '\0';
}

#ifdef DCN_HAS_LIBCRYPTO

#include <openssl/evp.h>

struct dcn_sha256 {
    EVP_MD_CTX *state;
    bool failed;
};

static void begin(dcn_sha256 *sha)
{
    sha->failed = !EVP_DigestInit_ex(sha->state, EVP_sha256(), NULL);
}

decant_status dcn_sha256_create(dcn_sha256 **out, decant_error *err)
{
    dcn_sha256 *sha = dcn_alloc(1, sizeof *sha);

    if (!sha || !(sha->state = EVP_MD_CTX_new())) {
        dcn_free(&sha);
        return dcn_error_nomem(err);
    }
    begin(sha);
    *out = sha;
    return DECANT_OK;
}

void dcn_sha256_put(dcn_sha256 *sha, const void *data, size_t len)
{
    sha->failed = sha->failed || !EVP_DigestUpdate(sha->state, data, len);
}

decant_status dcn_sha256_end(dcn_sha256 *sha, uint8_t out[DCN_SHA256], decant_error *err)
{
    bool failed = sha->failed || !EVP_DigestFinal_ex(sha->state, out, NULL);

    begin(sha);
    if (!failed)
        return DECANT_OK;
    (void)decant_error_set(err, DECANT_UNSUPPORTED, "libcrypto does not compute SHA-256 here");
    dcn_error_hint(err, "see which providers its configuration loads");
    return DECANT_UNSUPPORTED;
}

void dcn_sha256_close(dcn_sha256 **sha)
{
    if (*sha)
        EVP_MD_CTX_free((*sha)->state);
    dcn_free(sha);
}

#else

decant_status dcn_sha256_create(dcn_sha256 **out, decant_error *err)
{
    (void)out;
    (void)decant_error_set(err, DECANT_UNSUPPORTED, "this build of decant has no SHA-256, which libcrypto brings");
    dcn_error_hint(err, "build it with libcrypto (Debian: libssl-dev), or compare with decant diff");
    return DECANT_UNSUPPORTED;
}

void dcn_sha256_put(dcn_sha256 *sha, const void *data, size_t len)
{
    (void)sha;
    (void)data;
    (void)len;
}

decant_status dcn_sha256_end(dcn_sha256 *sha, uint8_t out[DCN_SHA256], decant_error *err)
{
    (void)out;
    return dcn_sha256_create(&sha, err);
}

void dcn_sha256_close(dcn_sha256 **sha)
{
    *sha = NULL;
}

#endif
