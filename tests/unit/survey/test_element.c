#include "support/test.h"

#include "survey/element.h"

static const char *text_of(decant_dtype dtype, const void *at)
{
    static char out[DCN_ELEMENT_TEXT];

    dcn_element_text(out, dtype, at);
    return out;
}

static const char *f16(uint16_t bits)
{
    return text_of(DECANT_F16, (const uint8_t[]){(uint8_t)bits, (uint8_t)(bits >> 8)});
}

TEST(element__half_floats_are_widened_exactly)
{
    static const struct {
        uint16_t bits;
        const char *text;
    } cases[] = {{0x0000, "0"},
                 {0x8000, "-0"},
                 {0x3C00, "1"},
                 {0xC000, "-2"},
                 {0x7BFF, "65504"},
                 {0x0400, "6.1035156e-05"},
                 {0x0001, "5.9604645e-08"},
                 {0x83FF, "-6.097555e-05"},
                 {0x7C00, "inf"},
                 {0xFC00, "-inf"},
                 {0x3555, "0.33325195"}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK_TEXT(f16(cases[i].bits), cases[i].text);
}

TEST(element__real_numbers_have_the_fewest_digits_that_tell_them_apart)
{
    CHECK_TEXT(text_of(DECANT_F32, "\xcd\xcc\xcc\x3d"), "0.1");
    CHECK_TEXT(text_of(DECANT_F32, "\xce\xcc\xcc\x3d"), "0.10000001");
    CHECK_TEXT(text_of(DECANT_F64, "\x9a\x99\x99\x99\x99\x99\xb9\x3f"), "0.1");
    CHECK_TEXT(text_of(DECANT_F64, "\x9b\x99\x99\x99\x99\x99\xb9\x3f"), "0.10000000000000002");
    CHECK_TEXT(text_of(DECANT_C64, "\0\0\x80\x3f\0\0\0\xc0"), "1-2i");
    CHECK_TEXT(text_of(DECANT_C64, "\0\0\x80\xbf\0\0\0\x40"), "-1+2i");
}

TEST(element__booleans_are_words_unless_they_are_none)
{
    CHECK_TEXT(text_of(DECANT_BOOL, "\1"), "true");
    CHECK_TEXT(text_of(DECANT_BOOL_U8, "\0"), "false");
    CHECK_TEXT(text_of(DECANT_BOOL_U32, "\1\0\0\0"), "true");
    CHECK_TEXT(text_of(DECANT_BOOL_U32, "\0\1\0\0"), "0x00000100");
    CHECK_TEXT(text_of(DECANT_BOOL, "\2"), "0x02");
}

TEST(element__what_has_no_other_form_is_shown_as_bits)
{
    CHECK_TEXT(text_of(DECANT_F8_E4M3, "\x7e"), "0x7e");
    CHECK_TEXT(text_of(DECANT_F4, "\xa5"), "0xa5");
    CHECK_TEXT(text_of(DECANT_DTYPE_NONE, "\x00"), "0x00");
}

TEST(element__a_dtype_tells_how_it_is_quantized)
{
    decant_quant quant = {.size = sizeof quant,
                          .value = DECANT_Q4S,
                          .store = DECANT_STORE_PACKED_U32,
                          .tensor_scale = DECANT_SCALE_F32,
                          .block_scale = DECANT_SCALE_F16,
                          .block = {2, 32},
                          .block_rank = 2};
    decant_tensor tensor = {.size = sizeof tensor, .dtype = DECANT_QFLOAT, .quant = &quant};
    char text[DCN_ELEMENT_TEXT];

    dcn_dtype_text(text, &tensor);
    CHECK_TEXT(text, "QFloat(Q4S, packed U32 along 0, F32 scales, F16 a block of 2x32)");
}
