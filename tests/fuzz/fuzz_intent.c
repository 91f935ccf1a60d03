/*
 * Any bytes as the records of a journal: what is read, no name of which leads out of its folder and no run out of its files, is
 * written as the same bytes.
 */
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

static void check_giving(const dcn_intent *intent)
{
    const dcn_giving *giving = &intent->giving;

    for (size_t i = 1; i < intent->folder_count; i++)
        require(intent->folders[i][0] == '/');
    for (size_t i = 0; i < giving->count; i++)
        check_name(giving->items[i].name);
    for (uint32_t i = 0; i < giving->count; i++) {
        uint64_t end = dcn_runs_end(&giving->runs, i), most = end / 1000 + 1, from, upto;
        dcn_places places = dcn_places_of(&giving->runs, i, 0, end);
        dcn_placing p;

        require(end <= giving->items[i].file.size);
        for (uint64_t at = 0; dcn_runs_cover(&giving->runs, i, at, end, most, &from, &upto); at = upto)
            require(from >= at && upto > from && upto <= end && upto - from <= most);
        while (dcn_places_next(&places, &p))
            require(p.len && p.to + p.len <= intent->outputs[p.output].size);
    }
}

/* What may follow, as each kind of record. */
static void check_records(dcn_intent *intent, const uint8_t *data, size_t len)
{
    dcn_buf again = {0}, held = {0};
    dcn_mark mark;

    if (dcn_intent_read_commit(intent, data, len, NULL) == DECANT_OK) {
        dcn_intent_put_commit(intent, &again);
        check_same(&again, data, len);
    }
    if (dcn_intent_read_ready(intent, data, len, &held, NULL) == DECANT_OK) {
        again.len = 0;
        dcn_intent_put_commit(intent, &again);
        dcn_buf_put(&again, held.data, held.len);
        check_same(&again, data, len);
    }
    if (dcn_mark_read(&mark, intent, data, len, NULL) == DECANT_OK) {
        again.len = 0;
        dcn_mark_put(&mark, &again);
        check_same(&again, data, len);
    }
    dcn_buf_close(&held);
    dcn_buf_close(&again);
}

/* The first byte says where BEGIN ends and the next record begins. */
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
    check_giving(&intent);
    check_records(&intent, data + 1 + begin, size - 1 - begin);
done:
    dcn_buf_close(&again);
    dcn_intent_close(&intent);
    return 0;
}
