/*
 * Burnpack, as Burn's crate burn-pack 0.23.0-pre.1 (src/base.rs, src/reader.rs, src/writer.rs) reads and writes it; 0.22.1
 * writes the same bytes:
 *
 *     u32 magic | u16 version | u32 M, all little-endian | M bytes of CBOR: the metadata | zeros to a multiple of 256 | data
 *
 * The metadata is a map of tensors (each a map of dtype, shape, data_offsets and perhaps param_id), metadata (text to text)
 * and scalars. Offsets count from where the data starts. Data lies in the order in which the tensors were given, each at
 * a multiple of 256 (since Burn 0.20: tracel-ai/burn pull request 4100); the maps are sorted by the bytes of their keys.
 */
#ifndef DCN_BURNPACK_LAYOUT_H
#define DCN_BURNPACK_LAYOUT_H

#include "format/format.h"

#define DCN_BPK_MAGIC UINT32_C(0x4255524E) /* on disk "NRUB" */
enum { DCN_BPK_VERSION = 1, DCN_BPK_PREFIX = 10, DCN_BPK_ALIGN = 256 };

/* The fewest bytes of metadata that a tensor takes: an empty name, "I8", rank 0, offsets below 24. */
enum { DCN_BPK_TENSOR = 36 };

/* Keys. */
#define DCN_BPK_TENSORS "tensors"
#define DCN_BPK_METADATA "metadata"
#define DCN_BPK_SCALARS "scalars"
#define DCN_BPK_DTYPE "dtype"
#define DCN_BPK_SHAPE "shape"
#define DCN_BPK_OFFSETS "data_offsets"
#define DCN_BPK_ID "param_id"

/* enum DType (burn-std 0.23.0-pre.1, src/tensor/dtype.rs): those that are a name alone, which is that of the dtype table. */
static const uint8_t dcn_bpk_dtypes[] = {
    DECANT_F64, DECANT_F32, DECANT_FLEX32, DECANT_F16, DECANT_BF16, DECANT_I64, DECANT_I32,
    DECANT_I16, DECANT_I8,  DECANT_U64,    DECANT_U32, DECANT_U16,  DECANT_U8,
};
enum { DCN_BPK_DTYPES = sizeof dcn_bpk_dtypes };

/* Bool(store), from DECANT_BOOL on. */
#define DCN_BPK_BOOL "Bool"
enum { DCN_BPK_BOOLS = 3 };
static const char *const dcn_bpk_bools[DCN_BPK_BOOLS] = {"Native", "U8", "U32"};

/* QFloat(scheme): the names of decant_quant's enums, in their order (cubecl-common 0.12.0-pre.1, src/quant/scheme.rs). */
#define DCN_BPK_QFLOAT "QFloat"
#define DCN_BPK_OLD_U32 "U32" /* a store of Burn 0.19: PackedU32(0) */
enum { DCN_BPK_VALUES = 9, DCN_BPK_STORES = 3, DCN_BPK_MODES = 2, DCN_BPK_SCALES = 5 };
static const char *const dcn_bpk_values[DCN_BPK_VALUES] = {"Q8F", "E5M2", "E4M3", "Q4F", "E2M1",
                                                           "Q2F", "Q8S",  "Q4S",  "Q2S"};
static const char *const dcn_bpk_stores[DCN_BPK_STORES] = {"Native", "PackedNative", "PackedU32"};
static const char *const dcn_bpk_modes[DCN_BPK_MODES] = {"Symmetric", "Lookup"};
static const char *const dcn_bpk_scales[DCN_BPK_SCALES] = {"F32", "F16", "BF16", "UE8M0", "UE4M3"}; /* after NONE */

/* enum Scalar, with our types. */
enum { DCN_BPK_SCALAR_TYPES = 4 };
static const struct {
    const char *name;
    decant_value_type type;
} dcn_bpk_scalars[DCN_BPK_SCALAR_TYPES] = {
    {"Int", DECANT_VALUE_I64},
    {"UInt", DECANT_VALUE_U64},
    {"Float", DECANT_VALUE_F64},
    {"Bool", DECANT_VALUE_BOOL},
};

/* What Burn's reader looks at before it opens a file: MAX_METADATA_SIZE, _TENSOR_COUNT, _TENSOR_SIZE, _FILE_SIZE. */
typedef struct dcn_bpk_sizes {
    uint64_t metadata, tensors, largest, total;
} dcn_bpk_sizes;

/*
 * Burn, and what keeps it from opening the file. The last two limits are defaults since 0.23.0-pre.1, which a program that
 * loads the file can raise; 0.22.1 opens 100 GiB a file.
 */
void dcn_bpk_openers(const dcn_bpk_sizes *sizes, dcn_openers *out);

decant_status dcn_bpk_emit(const decant_model *model, const dcn_layout *how, dcn_plans *out, decant_error *err);

#endif
