/*
 * SHA-256 (FIPS 180-4), by libcrypto where the build has it (DCN_HAS_LIBCRYPTO); without it creating one is UNSUPPORTED. Not
 * used where a checksum need only be fast.
 */
#ifndef DCN_BASE_SHA256_H
#define DCN_BASE_SHA256_H

#include <stdint.h>

#include "base/error.h"

enum { DCN_SHA256 = 32 }; /* bytes of a sum */

typedef struct dcn_sha256 dcn_sha256;

/* @return DECANT_UNSUPPORTED where the build has none; DECANT_NOMEM */
decant_status dcn_sha256_create(dcn_sha256 **out, decant_error *err);

/* Remembers its first failure until the end. */
void dcn_sha256_put(dcn_sha256 *sha, const void *data, size_t len);

/* The sum of what was put; begins anew. */
decant_status dcn_sha256_end(dcn_sha256 *sha, uint8_t out[DCN_SHA256], decant_error *err);

void dcn_sha256_close(dcn_sha256 **sha);

/* In lower case, with a NUL. */
void dcn_sha256_text(char out[2 * DCN_SHA256 + 1], const uint8_t sum[DCN_SHA256]);

#endif
