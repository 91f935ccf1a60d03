/*
 * What happens beneath io/posix*.c: the linker puts these functions in the place of the system calls it makes (the list is
 * in tests/CMakeLists.txt). Until syscalls_begin() they only pass on. Threads: one at a time, from begin to end.
 */
#ifndef TEST_SYSCALLS_H
#define TEST_SYSCALLS_H

#include <stdbool.h>
#include <stddef.h>

/* From now on calls are traced; nothing is changed yet. */
void syscalls_begin(void);

/* No call is traced or changed any more. */
void syscalls_end(void);

/* Transfers move at most so many bytes. */
void syscalls_short(size_t most);

/* Every call that a signal may interrupt is interrupted so many times before it works. */
void syscalls_interrupt(unsigned times);

/* The next `times` calls of this function fail with this errno; 0: transfers move nothing. One function at a time. */
void syscalls_fail(const char *function, unsigned times, int code);

/* Transfers succeed without touching memory or file: for lengths that no test has. */
void syscalls_pretend(void);

/* The calls since begin, a line each: "pwrite 4+6", "pwritev2 0+3 dontcache", "fsync"; " = interrupted" or " = ERRNO". */
const char *syscalls_trace(void);

/* Forgets the trace so far. */
void syscalls_forget(void);

/* How many lines of the trace are calls of this function. */
size_t syscalls_count(const char *function);

#endif
