/*
 * What a file system does, tried on a scratch file without a name: a plan goes by its kind, and a save by this. It only takes
 * away from what the kind promises; where no such file can be made, or none that fits, the promise stands.
 */
#ifndef DCN_PROBE_H
#define DCN_PROBE_H

#include "bytes/source.h"

typedef struct dcn_probe {
    dcn_file *scratch;      /* NULL: there is none */
    const dcn_space *space; /* [lent] of the folder */
} dcn_probe;

/* @param space  [lent] outlives the probe */
decant_status dcn_probe_open(dcn_probe *probe, dcn_dir *dir, const dcn_space *space, decant_error *err);

/* Whether what is punched out is free. @param unit  bytes that are freed at once, as far as that was found */
decant_status dcn_probe_punch(dcn_probe *probe, bool *frees, uint64_t *unit, decant_error *err);

/* Whether a source's blocks can be shared. */
decant_status dcn_probe_clone(dcn_probe *probe, dcn_source *source, bool *shares, decant_error *err);

void dcn_probe_close(dcn_probe *probe);

#endif
