#include "format/split.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { DIGITS_MOST = DCN_SPLIT_LONGER + 1 }; /* more than any set has, and what fits 32 bits */

/* The number whose digits are [from, to). False: there are none, too many, or something else is among them. */
static bool number_in(const char *name, size_t from, size_t to, uint32_t *out)
{
    *out = 0;
    if (from >= to || to - from > DIGITS_MOST)
        return false;
    for (; from < to; from++) {
        if (name[from] < '0' || name[from] > '9')
            return false;
        *out = *out * 10 + (uint32_t)(name[from] - '0');
    }
    return true;
}

bool dcn_split_parse(const char *name, dcn_split *out)
{
    static const char of[] = "-of-";
    const char *tail = NULL;
    size_t first, count_at;

    for (const char *at = name; (at = strstr(at, of)); at++)
        tail = at;
    if (!tail)
        return false;
    out->tail_at = (size_t)(tail - name);
    for (first = out->tail_at; first > 0 && name[first - 1] >= '0' && name[first - 1] <= '9'; first--)
        ;
    count_at = out->tail_at + strlen(of);
    out->rest_at = count_at + strspn(name + count_at, "0123456789");
    if (first < 2 || name[first - 1] != '-')
        return false;
    out->stem_len = first - 1;
    return number_in(name, first, out->tail_at, &out->number) && number_in(name, count_at, out->rest_at, &out->count);
}

void dcn_split_name(char *out, size_t size, const char *name, const dcn_split *part, uint32_t number)
{
    snprintf(out, size, "%.*s-%0*" PRIu32 "%s", (int)part->stem_len, name, (int)(part->tail_at - part->stem_len - 1),
             number, name + part->tail_at);
}
