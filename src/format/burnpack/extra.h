/*
 * What Burnpack hangs on entries and on the model: quantization schemes, and the keys that no reader knows, which are carried
 * from file to file as they are. (What everybody may know of schemes is in format.h.)
 */
#ifndef DCN_BURNPACK_EXTRA_H
#define DCN_BURNPACK_EXTRA_H

#include "base/chunk.h"
#include "format/format.h"

/* Unknown keys of one map: pairs of a key and a value, in CBOR. */
typedef struct dcn_bpk_keys {
    uint64_t count;
    dcn_chunk pairs; /* lent */
} dcn_bpk_keys;

/*
 * An extra of an entry. `then`: its bytes are laid out as Burn 0.21 did; until the index is finished.
 *
 * @param quant  as for dcn_quant_extra(); NULL: not quantized
 * @param keys   copied
 * @param out    [owned] one reference
 */
decant_status dcn_bpk_extra(const decant_quant *quant, bool then, dcn_bpk_keys keys, dcn_extra **out,
                            decant_error *err);

/* An extra of a model: of the map that holds all others. */
decant_status dcn_bpk_model_extra(dcn_bpk_keys keys, dcn_extra **out, decant_error *err);

/* The keys in an extra, lent by it; none if the extra is NULL or another's. */
dcn_bpk_keys dcn_bpk_keys_of(const dcn_extra *extra);

/* Whether it is of an entry that is laid out as Burn 0.21 did. */
bool dcn_bpk_is_then(const dcn_extra *extra);

#endif
