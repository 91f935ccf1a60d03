#include "format/split.h"
#include "support/test.h"

TEST(split__is_a_name_with_a_number_of_a_count)
{
    static const struct {
        const char *name;
        uint32_t number, count;
        const char *fifth;
    } names[] = {
        {"model-00001-of-00003.safetensors", 1, 3, "model-00005-of-00003.safetensors"},
        {"model.fp16-00002-of-00012.safetensors", 2, 12, "model.fp16-00005-of-00012.safetensors"},
        {"model-00001-of-00003.fp16.safetensors", 1, 3, "model-00005-of-00003.fp16.safetensors"},
        {"a-of-b-1-of-2", 1, 2, "a-of-b-5-of-2"},
        {"x-000000001-of-999999999", 1, 999999999, "x-000000005-of-999999999"},
        {"x-0-of-0", 0, 0, "x-5-of-0"},
    };
    dcn_split part;
    char name[64];

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        CHECK(dcn_split_parse(names[i].name, &part));
        CHECK_EQ(part.number, names[i].number);
        CHECK_EQ(part.count, names[i].count);
        dcn_split_name(name, sizeof name, names[i].name, &part, 5);
        CHECK_TEXT(name, names[i].fifth);
        dcn_split_name(name, sizeof name, names[i].name, &part, part.number);
        CHECK_TEXT(name, names[i].name);
    }
}

TEST(split__is_no_other_name)
{
    static const char *const names[] = {
        "",
        "model.safetensors",
        "-of-",
        "-1-of-2",
        "1-of-2",
        "model1-of-2",
        "model-of-2",
        "model-x-of-2",
        "m-1-of-",
        "m-1-of-x",
        "m--of-2",
        "m-1-of2",
        "m-1_of-2",
        "m-1000000000-of-2",
        "m-1-of-1000000000",
        "m- 1-of-2",
        "m-1-of--2",
    };
    dcn_split part;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        CHECK(!dcn_split_parse(names[i], &part));
}
