#include "format/place.h"

#include "base/ckd.h"

const char *dcn_layout_name(decant_layout layout)
{
    static const char *const names[] = {"canonical", "aligned", "congruent"};

    return names[layout];
}

bool dcn_place_in_file(const dcn_entry *entry, uint64_t *offset)
{
    dcn_place place;

    if (!entry->data.len || !dcn_backing_place(entry->data.backing, entry->data.offset, &place))
        return false;
    *offset = place.at;
    return true;
}

bool dcn_place_entry(const dcn_layout *how, const dcn_entry *entry, uint64_t own, uint64_t end, uint64_t *at)
{
    uint64_t offset;

    *at = end;
    if (how->layout == DECANT_LAYOUT_CONGRUENT && !entry->data.len)
        return false; /* it need not part its neighbours */
    if (how->layout == DECANT_LAYOUT_CONGRUENT && dcn_place_in_file(entry, &offset))
        return dcn_ckd_add(at, end, (offset - end) % DCN_CONGRUENT);
    return dcn_ckd_align(at, end, how->layout == DECANT_LAYOUT_ALIGNED ? how->align : own);
}
