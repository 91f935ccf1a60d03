/* Any bytes as the records of a journal: what is read, no name of which leads out of the folder, is written as the same bytes. */
#include <stdlib.h>
#include <string.h>

#include "pour/intent.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void check_name(const char *name)
{
    require(name[0] && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0);
}

static void check_same(const dcn_buf *buf, const uint8_t *data, size_t len)
{
    require(!buf->failed && buf->len == len && (len == 0 || memcmp(buf->data, data, len) == 0));
}

/* The first byte says where BEGIN ends and COMMIT begins. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dcn_intent intent = {0};
    dcn_buf again = {0};
    size_t begin;

    if (size == 0)
        return 0;
    begin = (size - 1) * *data / 255;
    if (dcn_intent_read_begin(&intent, data + 1, begin, NULL))
        goto done;
    for (size_t i = 0; i < intent.count; i++)
        check_name(intent.outputs[i].name);
    for (size_t i = 0; i < intent.removal_count; i++)
        check_name(intent.removals[i].name);
    dcn_intent_put_begin(&intent, &again);
    check_same(&again, data + 1, begin);

    again.len = 0;
    if (dcn_intent_read_commit(&intent, data + 1 + begin, size - 1 - begin, NULL))
        goto done;
    require(size - 1 - begin == dcn_intent_commit_len(&intent));
    dcn_intent_put_commit(&intent, &again);
    check_same(&again, data + 1 + begin, size - 1 - begin);
done:
    dcn_buf_close(&again);
    dcn_intent_close(&intent);
    return 0;
}
