#include "pour/probe.h"

#include "base/alloc.h"
#include "base/ckd.h"

enum {
    MOST = 16,    /* times the unit that is assumed: larger ones are not looked for */
    CLONED = 4096 /* bytes: as whole blocks are cut (dcn_step_blocks) */
};

decant_status dcn_probe_open(dcn_probe *probe, dcn_dir *dir, const dcn_space *space, decant_error *err)
{
    decant_status rc = DECANT_UNSUPPORTED;

    *probe = (dcn_probe){.space = space};
    if (space->unit && space->block &&
        space->limit / (MOST + 1) >= space->unit) /* past the limit the system ends the process */
        rc = dcn_dir_open(dir, "", DCN_READ | DCN_WRITE | DCN_NAMELESS, 0600, &probe->scratch, err);
    return rc == DECANT_UNSUPPORTED ? DECANT_OK : rc;
}

/* `len` bytes of noise, which no file system finds a shorter way to keep. */
static decant_status fill(dcn_probe *probe, const dcn_chunk *noise, uint64_t len, decant_error *err)
{
    decant_status rc = DECANT_OK;

    for (uint64_t at = 0; at < len && rc == DECANT_OK; at += noise->len)
        rc = dcn_file_write(probe->scratch, at, noise, 1, err);
    return rc ? rc : dcn_file_sync(probe->scratch, err);
}

/* Whether the first `len` bytes can be freed at once. */
static decant_status free_front(dcn_probe *probe, uint64_t len, bool *frees, decant_error *err)
{
    dcn_facts before, after;
    decant_status rc;

    if ((rc = dcn_file_facts(probe->scratch, &before, err)) || (rc = dcn_file_punch(probe->scratch, 0, len, err)) ||
        (rc = dcn_file_facts(probe->scratch, &after, err)))
        return rc;
    *frees = after.blocks < before.blocks;
    return DECANT_OK;
}

static decant_status find_unit(dcn_probe *probe, bool *frees, uint64_t *unit, decant_error *err)
{
    uint64_t assumed = probe->space->unit, len = dcn_min(probe->space->block, assumed);
    uint8_t *bytes = dcn_alloc((size_t)assumed, 1);
    dcn_chunk noise = {bytes, (size_t)assumed};
    decant_status rc = bytes ? dcn_io_random(probe->scratch->io, bytes, noise.len, err) : dcn_error_nomem(err);

    for (; rc == DECANT_OK && !*frees && len <= MOST * assumed; len *= 2) {
        *unit = len;
        /* what is behind is in the same unit, or in the next */
        if ((rc = fill(probe, &noise, len + assumed, err)) == DECANT_OK)
            rc = free_front(probe, len, frees, err);
    }
    dcn_free(&bytes);
    return rc;
}

decant_status dcn_probe_punch(dcn_probe *probe, bool *frees, uint64_t *unit, decant_error *err)
{
    uint64_t found = *unit;
    decant_status rc;

    *frees = !probe->scratch;
    if (!probe->scratch)
        return DECANT_OK;
    rc = find_unit(probe, frees, &found, err);
    if (rc == DECANT_NO_SPACE) /* what is planned says how much is missing */
        *frees = true;
    else if (rc == DECANT_OK)
        *unit = found;
    return rc == DECANT_NO_SPACE || rc == DECANT_UNSUPPORTED ? DECANT_OK : rc;
}

decant_status dcn_probe_clone(dcn_probe *probe, dcn_source *source, bool *shares, decant_error *err)
{
    decant_status rc = DECANT_OK;

    if (probe->scratch)
        rc = dcn_source_clone(source, 0, CLONED, probe->scratch, 0, err);
    *shares = rc == DECANT_OK || rc == DECANT_NO_SPACE;
    return rc == DECANT_UNSUPPORTED || rc == DECANT_NO_SPACE ? DECANT_OK : rc;
}

void dcn_probe_close(dcn_probe *probe)
{
    dcn_file_close(&probe->scratch);
}
