#include "output/output.h"

#include <assert.h>

/*
 * Memory is nobody's side, a callback of the caller's has said that it is the caller's. Of what is the output's the caller
 * knows the path; that of a scratch file or a folder says nothing to him.
 */
static decant_status blame(const dcn_output *o, decant_status rc, decant_error *err)
{
    if (!rc || rc == DECANT_NOMEM || !err)
        return rc;
    dcn_error_side(err, DECANT_SIDE_OUTPUT);
    if (o->path && err->side == DECANT_SIDE_OUTPUT)
        dcn_error_repath(err, o->path);
    return rc;
}

decant_status dcn_output_begin(dcn_output *o, const dcn_plan *plan, decant_error *err)
{
    assert(o->phase == DCN_NEW);
    o->phase = DCN_BEGUN;
    return o->ops->begin ? blame(o, o->ops->begin(o, plan, err), err) : DECANT_OK;
}

void *dcn_output_lend(dcn_output *o, uint64_t at, size_t len)
{
    assert(o->phase == DCN_BEGUN && o->ops->can & DCN_CAN_LEND);
    return o->ops->lend(o, at, len);
}

decant_status dcn_output_write(dcn_output *o, uint64_t at, const dcn_chunk *c, size_t count, decant_error *err)
{
    assert(o->phase == DCN_BEGUN && !(o->ops->can & DCN_CAN_LEND));
    return blame(o, o->ops->write(o, at, c, count, err), err);
}

decant_status dcn_output_copy(dcn_output *o, uint64_t at, dcn_source *from, uint64_t from_at, uint64_t len,
                              decant_error *err)
{
    assert(o->phase == DCN_BEGUN && o->ops->copy);
    return blame(o, o->ops->copy(o, at, from, from_at, len, err), err);
}

decant_status dcn_output_clone(dcn_output *o, uint64_t at, dcn_source *from, uint64_t from_at, uint64_t len,
                               decant_error *err)
{
    assert(o->phase == DCN_BEGUN && o->ops->clone);
    return blame(o, o->ops->clone(o, at, from, from_at, len, err), err);
}

decant_status dcn_output_reserve(dcn_output *o, uint64_t at, uint64_t len, decant_error *err)
{
    assert(o->phase == DCN_BEGUN);
    return o->ops->reserve && len ? blame(o, o->ops->reserve(o, at, len, err), err) : DECANT_OK;
}

decant_status dcn_output_seal(dcn_output *o, decant_error *err)
{
    assert(o->phase == DCN_BEGUN);
    o->phase = DCN_SEALED;
    return o->ops->seal ? blame(o, o->ops->seal(o, err), err) : DECANT_OK;
}

decant_status dcn_output_reread(dcn_output *o, uint64_t at, void *dst, size_t len, decant_error *err)
{
    assert(o->phase == DCN_SEALED && o->ops->reread);
    return blame(o, o->ops->reread(o, at, dst, len, err), err);
}

decant_status dcn_output_reopen(dcn_output *o, const dcn_facts *part, const uint8_t *held, size_t len,
                                decant_error *err)
{
    assert(o->phase == DCN_NEW && o->ops->reopen);
    o->phase = DCN_BEGUN;
    return blame(o, o->ops->reopen(o, part, held, len, err), err);
}

dcn_file *dcn_output_part(dcn_output *o)
{
    const uint8_t *held;

    assert((o->phase == DCN_BEGUN || o->phase == DCN_SEALED) && o->ops->part);
    return o->ops->part(o, &held);
}

const uint8_t *dcn_output_held(dcn_output *o)
{
    const uint8_t *held;

    assert(o->ops->part);
    o->ops->part(o, &held);
    return held;
}

decant_status dcn_output_rejoin(dcn_output *o, const dcn_facts *part, decant_error *err)
{
    assert(o->phase == DCN_NEW && o->ops->rejoin);
    o->phase = DCN_SEALED;
    return blame(o, o->ops->rejoin(o, part, err), err);
}

decant_status dcn_output_publish(dcn_output *o, decant_error *err)
{
    decant_status rc;

    assert(o->phase == DCN_SEALED);
    rc = o->ops->publish ? blame(o, o->ops->publish(o, err), err) : DECANT_OK;
    if (rc == DECANT_OK || rc == DECANT_NOT_DURABLE) {
        o->phase = DCN_PUBLISHED;
        o->published = true;
    }
    return rc;
}

decant_status dcn_output_settle(dcn_output *o, decant_error *err)
{
    decant_status rc;

    assert(o->phase != DCN_NEW && o->phase != DCN_ABANDONED);
    if (!o->ops->settle)
        return DECANT_OK;
    rc = blame(o, o->ops->settle(o, err), err);
    o->durable = rc == DECANT_OK && o->published;
    return rc;
}

void dcn_output_abandon(dcn_output *o)
{
    if (o->phase == DCN_PUBLISHED || o->phase == DCN_ABANDONED)
        return;
    if (o->phase != DCN_NEW && o->ops->abandon)
        o->ops->abandon(o);
    o->phase = DCN_ABANDONED;
}

void dcn_output_leave(dcn_output *o)
{
    if (o->phase != DCN_PUBLISHED)
        o->phase = DCN_ABANDONED;
}

void dcn_output_close(dcn_output **o)
{
    if (*o) {
        dcn_output_abandon(*o);
        (*o)->ops->close(*o);
    }
    *o = NULL;
}

decant_status dcn_outputs_settle(dcn_output *const *outputs, size_t count, decant_error *err)
{
    decant_status rc = DECANT_OK;

    for (size_t i = 0; i < count && rc == DECANT_OK; i++)
        if (i && outputs[i]->dir && outputs[i]->dir == outputs[i - 1]->dir)
            outputs[i]->durable = outputs[i - 1]->durable;
        else
            rc = dcn_output_settle(outputs[i], err);
    return rc;
}

/* With a journal anything amiss is recovery's; without one what has its name has it, and the rest goes on. */
static bool goes_on(const dcn_output *o, decant_status rc)
{
    return rc == DECANT_OK || (rc == DECANT_NOT_DURABLE && !o->transaction);
}

/* They get their names; what fails behind that is their durability alone. */
static decant_status publish(dcn_output *const *outputs, size_t count, decant_error *err)
{
    decant_status rc, unsure = DECANT_OK;

    for (size_t i = 0; i < count; i++) {
        rc = dcn_output_publish(outputs[i], err);
        if (!goes_on(outputs[i], rc))
            return rc;
        unsure = rc ? rc : unsure;
    }
    if (dcn_outputs_settle(outputs, count, err))
        return dcn_error_recast(err, DECANT_NOT_DURABLE, "saved, but power loss may undo it");
    return unsure;
}

decant_status dcn_outputs_publish(dcn_output *const *outputs, size_t count, decant_error *err)
{
    size_t others = count ? count - 1 : 0;
    decant_status unsure = publish(outputs, others, err), rc;

    if (others && !goes_on(outputs[0], unsure))
        return unsure;
    rc = publish(outputs + others, count - others, err);
    return rc ? rc : unsure;
}
