#include "support/test.h"

uint64_t test_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);

    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

void test_stream(uint64_t seed, void *dst, size_t len)
{
    uint8_t *p = dst;

    for (size_t i = 0; i < len; i += 8) {
        uint64_t word = test_random(&seed);

        for (size_t k = 0; k < 8 && i + k < len; k++)
            p[i + k] = (uint8_t)(word >> 8 * k);
    }
}
