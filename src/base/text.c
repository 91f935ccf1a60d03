#include "base/text.h"

#include <stdio.h>
#include <string.h>

#include "base/ckd.h"

/* The length of the character at `p`, with its code point; 0 if there is none in `left` bytes. */
static size_t decode(const uint8_t *p, size_t left, uint32_t *code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t len = p[0] < 0x80 ? 1 : p[0] >= 0xF0 ? 4 : p[0] >= 0xE0 ? 3 : p[0] >= 0xC0 ? 2 : 0;

    if (len == 0 || len > left || p[0] > 0xF4)
        return 0;
    *code = len == 1 ? p[0] : p[0] & (0x7Fu >> len);
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xC0) != 0x80)
            return 0;
        *code = *code << 6 | (p[i] & 0x3F);
    }
    if (*code < least[len] || (*code >= 0xD800 && *code < 0xE000) || *code > 0x10FFFF)
        return 0;
    return len;
}

bool dcn_utf8_valid(const void *data, size_t len)
{
    const uint8_t *p = data, *end = p + len;
    uint32_t code;

    while (p < end) {
        uint64_t eight;
        uint32_t four;
        size_t step;

        /* as many ASCII bytes at a time as there are: names are mostly that */
        if (end - p >= 8) {
            memcpy(&eight, p, 8);
            if (!(eight & UINT64_C(0x8080808080808080))) {
                p += 8;
                continue;
            }
        } else if (end - p >= 4) {
            memcpy(&four, p, 4);
            if (!(four & UINT32_C(0x80808080))) {
                p += 4;
                continue;
            }
        }
        if (*p < 0x80) {
            p++;
            continue;
        }
        step = decode(p, (size_t)(end - p), &code);
        if (step == 0)
            return false;
        p += step;
    }
    return true;
}

uint32_t dcn_utf8_take(const char **at)
{
    uint32_t code = 0;
    size_t len = decode((const uint8_t *)*at, 4, &code);

    *at += len ? len : 1;
    return code;
}

size_t dcn_text_distance(const char *a, size_t a_len, const char *b, size_t b_len, size_t most)
{
    enum { LONGEST = 255 };
    size_t row[LONGEST + 1], longer = a_len > b_len ? a_len - b_len : b_len - a_len;

    if (a_len > LONGEST || b_len > LONGEST || longer >= most)
        return most;
    for (size_t k = 0; k <= b_len; k++)
        row[k] = k;
    for (size_t i = 1; i <= a_len; i++) {
        size_t corner = row[0];

        row[0] = i;
        for (size_t k = 1; k <= b_len; k++) {
            size_t change = corner + (a[i - 1] != b[k - 1]);

            corner = row[k];
            row[k] = (size_t)dcn_min(change, dcn_min(row[k - 1], row[k]) + 1);
        }
    }
    return (size_t)dcn_min(row[b_len], most);
}

int dcn_text_compare(const char *a, size_t a_len, const char *b, size_t b_len)
{
    int order = memcmp(a, b, a_len < b_len ? a_len : b_len);

    return order ? order : (a_len > b_len) - (a_len < b_len);
}

size_t dcn_utf8_cut(const char *text, size_t len, size_t max)
{
    size_t cut = len < max ? len : max;

    if (cut == len)
        return cut;
    while (cut > 0 && ((uint8_t)text[cut] & 0xC0) == 0x80)
        cut--;
    return cut;
}

/* Characters that would move the cursor, break the line or reorder what stands beside them. */
static bool is_unsafe(uint32_t code)
{
    return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x061C || code == 0x200E || code == 0x200F ||
           (code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069) || code == 0xFEFF;
}

void dcn_text_escape(char *out, size_t size, const char *text, size_t len)
{
    const uint8_t *p = (const uint8_t *)text, *end = p + len;
    size_t used = 0, safe = 0; /* safe: where "..." may go */

    if (size == 0)
        return;
    while (p < end) {
        char piece[16];
        uint32_t code = 0;
        size_t step = decode(p, (size_t)(end - p), &code), piece_len;

        if (step == 0 || is_unsafe(code)) {
            piece_len = (size_t)(step <= 1 ? snprintf(piece, sizeof piece, "\\x%02x", p[0])
                                           : snprintf(piece, sizeof piece, "\\u{%04x}", code));
            step = step ? step : 1;
        } else {
            memcpy(piece, p, step);
            piece_len = step;
        }
        if (used + piece_len >= size) {
            if (size > 3) {
                memcpy(out + safe, "...", 3);
                used = safe + 3;
            }
            break;
        }
        memcpy(out + used, piece, piece_len);
        used += piece_len;
        if (used + 3 < size)
            safe = used;
        p += step;
    }
    out[used] = '\0';
}

const char *dcn_text_word(char out[DCN_WORD], const char *path)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+:@%,=-";
    static const char quote[] = "'\\''";
    const char *mark = *path && !path[strspn(path, plain)] ? "" : "'";
    size_t used = (size_t)sprintf(out, "%s%s", mark, *path == '-' ? "./" : ""); /* or it is taken for a flag */

    for (; *path && used < DCN_WORD - sizeof quote; path++)
        if (*path == '\'') {
            memcpy(out + used, quote, sizeof quote - 1);
            used += sizeof quote - 1;
        } else {
            out[used++] = *path;
        }
    strcpy(out + used, mark);
    return *path ? strcpy(out, "...") : out;
}
