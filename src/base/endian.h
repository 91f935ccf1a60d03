/* Little-endian (files) and big-endian (CBOR) integers, byte by byte: right on any host. Compilers make single moves of them. */
#ifndef DCN_BASE_ENDIAN_H
#define DCN_BASE_ENDIAN_H

#include <stdint.h>
#include <string.h>

static inline uint16_t dcn_le16(const void *at)
{
    const uint8_t *p = at;

    return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t dcn_le32(const void *at)
{
    const uint8_t *p = at;

    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t dcn_le64(const void *at)
{
    const uint8_t *p = at;

    return dcn_le32(p) | (uint64_t)dcn_le32(p + 4) << 32;
}

static inline void dcn_put_le(void *at, uint64_t value, unsigned bytes)
{
    uint8_t *p = at;

    for (unsigned i = 0; i < bytes; i++)
        p[i] = (uint8_t)(value >> 8 * i);
}

static inline uint32_t dcn_be32(const void *at)
{
    const uint8_t *p = at;

    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline uint64_t dcn_be64(const void *at)
{
    const uint8_t *p = at;

    return (uint64_t)dcn_be32(p) << 32 | dcn_be32(p + 4);
}

static inline uint64_t dcn_be(const void *at, unsigned bytes)
{
    const uint8_t *p = at;
    uint64_t value = 0;

    for (unsigned i = 0; i < bytes; i++)
        value = value << 8 | p[i];
    return value;
}

static inline void dcn_put_be64(void *at, uint64_t value)
{
    const uint8_t bytes[] = {(uint8_t)(value >> 56), (uint8_t)(value >> 48), (uint8_t)(value >> 40),
                             (uint8_t)(value >> 32), (uint8_t)(value >> 24), (uint8_t)(value >> 16),
                             (uint8_t)(value >> 8),  (uint8_t)value};

    memcpy(at, bytes, sizeof bytes); /* at once, or compilers take what stands in front of them for more of the same */
}

#endif
