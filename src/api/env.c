#include "api/env.h"

#include <string.h>

dcn_env dcn_env_default(void)
{
    return (dcn_env){.io = dcn_io_posix(), .cut = dcn_cut_default};
}

void dcn_options_take(void *own, size_t own_size, const void *theirs)
{
    size_t size;

    if (!theirs)
        return;
    /* of 0 bytes are options that somebody zeroed and did not size: they are of this version */
    memcpy(&size, theirs, sizeof size);
    memcpy(own, theirs, size && size < own_size ? size : own_size);
}
