/* SHA-256 (FIPS 180-4), for the sums in the golden files' descriptions. */
#ifndef TEST_SHA256_H
#define TEST_SHA256_H

#include <stddef.h>

/* The sum in hexadecimal; overwritten by the next call. */
const char *sha256_hex(const void *data, size_t len);

#endif
