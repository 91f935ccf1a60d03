/* What a save supersedes: files of an earlier save to the same path that are none of its outputs. */
#ifndef DCN_RELICS_H
#define DCN_RELICS_H

#include "format/format.h"
#include "pour/intent.h"
#include "pour/route.h"

typedef struct dcn_relic {
    const char *path;
    const char *kept; /* why it is not to be removed; a literal; NULL: nothing speaks against it */
    dcn_identity file;
    int64_t mtime;
    bool removed;
} dcn_relic;

typedef struct dcn_relics {
    dcn_relic *items; /* by path */
    size_t count, cap;
    size_t name_at;        /* in each path: where the bare name begins */
    dcn_removal *removals; /* those that nothing speaks against */
    size_t removal_count;
    dcn_arena memory; /* paths */
} dcn_relics;

/*
 * Looks for them beside OUT in `dir`. A folder that cannot be listed shows none.
 *
 * @param out  closed by the caller also on failure
 */
decant_status dcn_relics_find(dcn_relics *out, dcn_dir *dir, const dcn_format *format, const char *name,
                              const dcn_landing *landings, size_t landing_count, dcn_source *const *sources,
                              size_t source_count, decant_error *err);

/* Those that are given up are no relics: they go in any case. */
void dcn_relics_leave_out(dcn_relics *relics, const dcn_giving *giving);

/* What has become of them. */
void dcn_relics_look(dcn_relics *relics, dcn_dir *dir);

void dcn_relics_close(dcn_relics *relics);

#endif
