#include "limits.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef RWF_DONTCACHE
#define RWF_DONTCACHE 0x80
#endif

enum { CHUNK = 1 << 20, WINDOW = 256 << 10 };

static char buffer[CHUNK];

int limit_copy(const char *in, const char *out)
{
    int from = open(in, O_RDONLY), to = open(out, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    ssize_t len = -1;

    while (from >= 0 && to >= 0 && (len = read(from, buffer, CHUNK)) > 0)
        if (write(to, buffer, (size_t)len) != len)
            return 1;
    return len != 0;
}

int limit_durable_write(const char *in, const char *out)
{
    int to = open(out, O_WRONLY | O_CREAT | O_TRUNC, 0666), flags = RWF_DONTCACHE;
    struct stat facts;

    if (to < 0 || stat(in, &facts))
        return 1;
    if (fallocate(to, 0, 0, facts.st_size) && ftruncate(to, facts.st_size))
        return 1;
    for (size_t i = 0; i < sizeof buffer; i++)
        buffer[i] = (char)(i * 2654435761u >> 13);
    for (off_t at = 0; at < facts.st_size;) {
        size_t len = facts.st_size - at < CHUNK ? (size_t)(facts.st_size - at) : CHUNK;
        struct iovec part = {buffer, len};
        ssize_t done = pwritev2(to, &part, 1, at, flags);

        if (done < 0 && flags) {
            flags = 0;
            continue;
        }
        if (done <= 0)
            return 1;
        at += done;
    }
    return fdatasync(to) != 0;
}

int limit_read(const char *in, const char *out)
{
    int from = open(in, O_RDONLY);
    ssize_t len = -1;

    (void)out;
    while (from >= 0 && (len = read(from, buffer, WINDOW)) > 0)
        ;
    return len != 0;
}
