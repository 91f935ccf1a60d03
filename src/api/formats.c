#include <decant/formats.h>

#include <string.h>

#include "format/format.h"

int decant_format(size_t index, decant_format_info *out)
{
    const dcn_format *format = dcn_format_at(index);
    decant_format_info info = {.size = out->size};

    if (!format)
        return 0;
    info.name = format->name;
    info.extension = format->extensions[0];
    info.reads = format->index != NULL;
    info.writes = format->emit != NULL;
    memcpy(out, &info, info.size && info.size < sizeof info ? info.size : sizeof info);
    return 1;
}
