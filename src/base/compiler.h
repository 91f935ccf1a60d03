/* What compilers know how to do and C11 does not say, in one place so that another compiler has one file to change. */
#ifndef DCN_BASE_COMPILER_H
#define DCN_BASE_COMPILER_H

#include <stdint.h>

/* How many bits are zero below the lowest one that is set. `word` is not 0. */
static inline unsigned dcn_zeros_below(uint64_t word)
{
    return (unsigned)__builtin_ctzll(word);
}

/* Memory that is soon read and written: what is done meanwhile need not wait for it. A hint; any address will do. */
static inline void dcn_expect(const void *at)
{
    __builtin_prefetch(at, 1);
}

/* A function that is worth nothing as a call: its constant arguments are to be folded wherever it is used. */
#define DCN_INLINE inline __attribute__((always_inline))

/* A function for what seldom happens, such as a failure: kept apart, so that who calls it need not make room for it. */
#define DCN_SELDOM __attribute__((noinline, cold))

/* Whether numbers lie in memory as they do in files. */
#define DCN_LITTLE_ENDIAN (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)

#endif
