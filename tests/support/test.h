/*
 * Tests are functions that state a promise: TEST(name__what_it_promises) { ... CHECK(...); }. They register themselves;
 * main() is in test.c and runs them through cmocka. Environment TEST_ONLY=text runs those whose names hold the text.
 */
#ifndef TEST_H
#define TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <decant/decant.h>

/* Under a sanitizer every step costs several: tests that try very much try a part of it. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { TEST_IS_SLOW = 1 };
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
enum { TEST_IS_SLOW = 1 };
#else
enum { TEST_IS_SLOW = 0 };
#endif
#else
enum { TEST_IS_SLOW = 0 };
#endif

void test_register(const char *name, void (*run)(void));

/* Ends the test: prints place and message. */
_Noreturn void test_fail(const char *file, int line, const char *format, ...) DECANT_PRINTF(3, 4);

/* Ends the test as skipped, with the reason. */
_Noreturn void test_skip(const char *why);

#define TEST(name)                                                 \
    static void name(void);                                        \
    __attribute__((constructor)) static void register_##name(void) \
    {                                                              \
        test_register(#name, name);                                \
    }                                                              \
    static void name(void)

#define CHECK(condition)                                               \
    do {                                                               \
        if (!(condition))                                              \
            test_fail(__FILE__, __LINE__, "not true: %s", #condition); \
    } while (0)

/* Integers, compared as 64 bits. */
#define CHECK_EQ(actual, wanted)                                                                    \
    do {                                                                                            \
        long long a_ = (long long)(actual), w_ = (long long)(wanted);                               \
        if (a_ != w_)                                                                               \
            test_fail(__FILE__, __LINE__, "%s is %lld (0x%llx), wanted %lld (0x%llx)", #actual, a_, \
                      (unsigned long long)a_, w_, (unsigned long long)w_);                          \
    } while (0)

#define CHECK_TEXT(actual, wanted)                                                               \
    do {                                                                                         \
        const char *a_ = (actual), *w_ = (wanted);                                               \
        if (strcmp(a_, w_) != 0)                                                                 \
            test_fail(__FILE__, __LINE__, "%s is\n  \"%s\", wanted\n  \"%s\"", #actual, a_, w_); \
    } while (0)

/* That `text` holds `part`. */
#define CHECK_HAS(text, part)                                                                       \
    do {                                                                                            \
        const char *t_ = (text), *p_ = (part);                                                      \
        if (!strstr(t_, p_))                                                                        \
            test_fail(__FILE__, __LINE__, "%s is\n  \"%s\", should hold\n  \"%s\"", #text, t_, p_); \
    } while (0)

/* Shows the first byte that differs. */
#define CHECK_BYTES(actual, actual_len, wanted, wanted_len) \
    test_check_bytes(__FILE__, __LINE__, #actual, (actual), (actual_len), (wanted), (wanted_len))
void test_check_bytes(const char *file, int line, const char *what, const void *actual, size_t actual_len,
                      const void *wanted, size_t wanted_len);

/* That a call succeeds; shows its error otherwise. `err` is a decant_error of the test's. */
#define CHECK_OK(call, err)                                                                                     \
    do {                                                                                                        \
        decant_status s_ = (call);                                                                              \
        if (s_ != DECANT_OK)                                                                                    \
            test_fail(__FILE__, __LINE__, "%s: %s: %s", #call, decant_status_name(s_), decant_error_text(err)); \
    } while (0)

/* That a call fails with this status, and that the error says the same. */
#define CHECK_FAILS(call, wanted, err)                                                                \
    do {                                                                                              \
        decant_status s_ = (call);                                                                    \
        if (s_ != (wanted))                                                                           \
            test_fail(__FILE__, __LINE__, "%s gave %s, wanted %s: %s", #call, decant_status_name(s_), \
                      decant_status_name(wanted), s_ ? decant_error_text(err) : "");                  \
        CHECK_EQ((err)->status, s_);                                                                  \
    } while (0)

/* The bytes of a file of tests/data (or of any path that starts with a slash). Freed by the caller; ends the test if absent. */
uint8_t *test_data(const char *name, size_t *len);

/* The splitmix64 stream of the golden files, `seed:N`. */
void test_stream(uint64_t seed, void *dst, size_t len);

/* A step of it, for random choices: state in, state out. */
uint64_t test_random(uint64_t *state);

/* A fresh empty folder under the build tree for this test; removed with its content when the test ends. */
const char *test_folder(void);

#endif
