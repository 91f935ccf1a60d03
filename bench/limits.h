/* What the machine can do at best, measured in the same rounds as the contestants. Each is a contestant's function. */
#ifndef BENCH_LIMITS_H
#define BENCH_LIMITS_H

/* Copies with 1 MiB of reads and writes and nothing else. */
int limit_copy(const char *in, const char *out);

/* Writes as many bytes as `in` has from memory, space reserved, not kept in the page cache where the system can; then one sync. */
int limit_durable_write(const char *in, const char *out);

/* Reads all of `in` into 256 KiB that are used again and again. */
int limit_read(const char *in, const char *out);

#endif
