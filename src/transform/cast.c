/*
 * A cast as a backing. Who pours reads the input with all else that a slot wants and has it made from there; everybody else
 * comes through begin, which reads the input tile by tile onto the stack.
 */
#include "transform/cast.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "base/ckd.h"
#include "base/dtype.h"

typedef struct cast {
    dcn_backing base;
    dcn_recipe recipe;
    uint8_t from, to; /* dtypes */
    bool allow_overflow;
    dcn_mutex lock; /* guards `over` */
    dcn_overflow over;
} cast;

static const dcn_recipe *recipe_of_cast(dcn_backing *b)
{
    return &((cast *)b)->recipe;
}

static decant_status refuse_overflow(const cast *c, const dcn_overflow *over, decant_error *err)
{
    const char *to = decant_dtype_name((decant_dtype)c->to);
    dcn_place place;

    decant_error_set(err, DECANT_LOSS, "values are beyond the range of %s", to);
    dcn_error_found(err, "%" PRIu64 " so far, the first %.9g at index %" PRIu64 ", the largest %.9g", over->count,
                    over->first_value, over->first, over->most);
    dcn_error_expected(err, "at most %.9g", dcn_real_most((decant_dtype)c->to));
    dcn_error_hint(err, "choose a wider type with --dtype, or --allow overflow makes them infinite");
    if (dcn_backing_place(c->recipe.input.backing, c->recipe.input.offset, &place))
        dcn_error_path(err, dcn_source_path(place.source));
    return DECANT_LOSS;
}

static decant_status make_cast(dcn_backing *b, uint64_t unit, size_t count, const uint8_t *raw, uint8_t *dst,
                               decant_error *err)
{
    cast *c = (cast *)b;
    dcn_overflow here = {0}, all;

    dcn_real_cast((decant_dtype)c->from, (decant_dtype)c->to, raw, dst, count, unit, &here);
    if (here.count == 0 && unit > 0)
        return DECANT_OK;
    dcn_lock(&c->lock);
    all = unit ? c->over : (dcn_overflow){0};
    if (all.count == 0) {
        all = here;
    } else {
        all.count += here.count;
        all.most = here.most > all.most ? here.most : all.most;
    }
    c->over = all;
    dcn_unlock(&c->lock);
    return here.count && !c->allow_overflow ? refuse_overflow(c, &all, err) : DECANT_OK;
}

static decant_status make_by_tiles(cast *c, const dcn_fetch *f, decant_error *err)
{
    enum { TILE = 16 << 10 };
    uint8_t raw[TILE];
    size_t most =
        ((size_t)TILE / c->recipe.from - 1) * c->recipe.to; /* one less: a range may begin and end inside of a unit */

    for (size_t done = 0, len; done < f->len; done += len) {
        uint64_t at = f->at + done;
        dcn_span part;
        decant_status rc;

        len = (size_t)dcn_min(f->len - done, most - at % c->recipe.to);
        part = dcn_recipe_raw(&c->recipe, at, len);
        if ((rc = dcn_backing_fetch(part.backing, &(dcn_fetch){part.offset, raw, (size_t)part.len}, 1, err)) ||
            (rc = dcn_backing_make(&c->base, at, len, raw, (uint8_t *)f->dst + done, err)))
            return rc;
    }
    return DECANT_OK;
}

static decant_status read_cast(dcn_backing *b, dcn_fetch *f, size_t count, decant_error *err)
{
    cast *c = (cast *)b;
    decant_status rc = DECANT_OK;

    for (size_t i = 0; i < count && rc == DECANT_OK; i++) {
        dcn_span part = dcn_recipe_raw(&c->recipe, f[i].at, f[i].len);
        decant_view view = {0};

        rc = dcn_backing_lend(part.backing, part.offset, part.len, true, &view, err);
        if (rc == DECANT_OK)
            rc = dcn_backing_make(b, f[i].at, f[i].len, view.data, f[i].dst, err);
        else if (rc == DECANT_UNSUPPORTED)
            rc = make_by_tiles(c, &f[i], err);
        decant_view_release(&view);
    }
    return rc;
}

static dcn_backing *close_cast(dcn_backing *b)
{
    cast *c = (cast *)b;
    dcn_backing *input = c->recipe.input.backing;

    dcn_mutex_close(&c->lock);
    dcn_free(&c);
    return input;
}

static const dcn_backing_ops ops = {
    .kind = "cast",
    .begin = read_cast,
    .recipe = recipe_of_cast,
    .make = make_cast,
    .close = close_cast,
};

/*
 * A provider is asked once, in one go. Where others share in the input, or a cast stands in between, that could not be kept
 * up from slot to slot.
 */
static decant_status check_input(const dcn_span *input, decant_error *err)
{
    uint64_t offset, upto = input->offset, end = input->offset + input->len;
    bool takes_turns = false, shared = false;

    for (uint64_t at = input->offset; at < end; at = upto) {
        dcn_backing *leaf = dcn_backing_leaf(input->backing, at, &offset, &upto);

        shared |= at > input->offset || dcn_backing_recipe(leaf);
        takes_turns |= dcn_backing_takes_turns(leaf);
    }
    if (shared && takes_turns) {
        decant_error_set(err, DECANT_BAD_CALL, "bytes of a provider are cast already, or joined with others");
        dcn_error_hint(err, "keep them before they are cast");
        return DECANT_BAD_CALL;
    }
    if (input->backing->depth == DCN_ROPE_DEPTH) {
        decant_error_set(err, DECANT_BAD_CALL, "casts of casts go more than %d deep", DCN_ROPE_DEPTH);
        dcn_error_hint(err, "cast what was there first");
        return DECANT_BAD_CALL;
    }
    return DECANT_OK;
}

decant_status dcn_cast(const dcn_span *input, decant_dtype from, decant_dtype to, bool allow_overflow,
                       decant_bytes **out, decant_error *err)
{
    unsigned in = dcn_dtype(from)->bits / 8, made = dcn_dtype(to)->bits / 8;
    cast *c;
    decant_status rc = check_input(input, err);

    if (rc)
        return rc;
    if (!(c = dcn_alloc(1, sizeof *c)))
        return dcn_error_nomem(err);
    dcn_backing_init(&c->base, &ops, input->len / in * made);
    dcn_mutex_init(&c->lock);
    c->base.depth = input->backing->depth + 1;
    c->recipe = (dcn_recipe){*input, in, made};
    decant_bytes_ref(input->backing);
    c->from = (uint8_t)from;
    c->to = (uint8_t)to;
    c->allow_overflow = allow_overflow;
    *out = &c->base;
    return DECANT_OK;
}

bool dcn_cast_overflow(dcn_backing *b, dcn_overflow *out, decant_dtype *to)
{
    cast *c = (cast *)b;

    if (b->ops != &ops)
        return false;
    dcn_lock(&c->lock);
    *out = c->over;
    dcn_unlock(&c->lock);
    *to = (decant_dtype)c->to;
    return true;
}
