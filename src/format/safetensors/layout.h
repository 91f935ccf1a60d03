/*
 * safetensors, as the Rust crate safetensors 0.8.0 (src/tensor.rs) reads and writes it:
 *
 *     u64, little-endian: bytes of the header | the header, a JSON object | data of the tensors, end to end, to the end
 *
 * The header maps names to {"dtype":...,"shape":[...],"data_offsets":[BEGIN,END]}, offsets counted from where the data
 * starts. One reserved name holds metadata, text to text.
 */
#ifndef DCN_SAFETENSORS_LAYOUT_H
#define DCN_SAFETENSORS_LAYOUT_H

#include "format/format.h"
#include "format/split.h"

/* Bytes of the length in front of the header. The writer pads the header with spaces to a multiple of it. */
enum { DCN_ST_PREFIX = 8 };

/* MAX_HEADER_SIZE: the reference opens no larger one and writes none. Larger ones are about (safetensors issue 668). */
enum { DCN_ST_HEADER_MAX = 100000000 };

#define DCN_ST_METADATA "__metadata__"

/* The values of the metadata `format` that transformers opens (load_state_dict() in modeling_utils.py). */
static const char *const dcn_st_loaders[] = {"pt", "tf", "flax", "mlx", NULL};

/* enum Dtype in its order, of which the writer puts the last first. The names are those of the dtype table. */
static const uint8_t dcn_st_dtypes[] = {
    DECANT_BOOL,    DECANT_F4,      DECANT_F6_E2M3, DECANT_F6_E3M2,     DECANT_U8,          DECANT_I8,
    DECANT_F8_E5M2, DECANT_F8_E4M3, DECANT_F8_E8M0, DECANT_F8_E4M3FNUZ, DECANT_F8_E5M2FNUZ, DECANT_I16,
    DECANT_U16,     DECANT_F16,     DECANT_BF16,    DECANT_I32,         DECANT_U32,         DECANT_F32,
    DECANT_C64,     DECANT_F64,     DECANT_I64,     DECANT_U64,
};

enum { DCN_ST_DTYPES = sizeof dcn_st_dtypes };

/* Hangs on a model whose file has metadata without an entry in it, so that saving it again gives the same bytes. */
extern const dcn_extra_ops dcn_st_empty_metadata;

/*
 * One file of tensors; where there are files beside it, an index or the first part of a split set stands for all of that.
 * The two below are the sets, by an index and by the names of the parts.
 */
decant_status dcn_st_index(dcn_input *in, const dcn_limits *limits, unsigned lenient, decant_model *model,
                           decant_error *err);
decant_status dcn_st_index_map(dcn_input *in, const dcn_limits *limits, unsigned lenient, decant_model *model,
                               decant_error *err);
decant_status dcn_st_index_parts(dcn_input *in, const dcn_split *part, const dcn_limits *limits, unsigned lenient,
                                 decant_model *model, decant_error *err);

/* Whether it is the index of a set. */
bool dcn_st_is_index(const dcn_clue *clue);

/* Notes to what the data in the files is aligned. */
decant_status dcn_st_note_layout(decant_model *model, decant_error *err);

/* The front of a file that is written last: at least the length of the header, and one page where there is one. */
enum { DCN_ST_HELD = 4096 };

/* The tensors of a model, dealt to files. */
typedef struct dcn_st_hands {
    const dcn_entry **tensors; /* file by file, in the order of the model */
    size_t *ends;              /* of each file, in `tensors` */
    size_t count;              /* of files; 0: there is no tensor */
} dcn_st_hands;

/* Deals them so that each file holds at most `cap` bytes, or one tensor. @param out  closed by the caller also on failure */
decant_status dcn_st_deal(const decant_model *model, uint64_t cap, dcn_st_hands *out, decant_error *err);
void dcn_st_hands_close(dcn_st_hands *hands);

/* The name of a file of a set that is asked for as NAME. @param out [owned] */
decant_status dcn_st_shard_name(const char *name, size_t number, size_t count, char **out, decant_error *err);

/* OUT itself, its index, and files of sets that are named for it: none of a set that only begins like it. */
bool dcn_st_supersedes(const char *out, const char *name);

/* Adds the index, behind the plans of the files that it names. */
decant_status dcn_st_emit_map(const decant_model *model, const dcn_st_hands *hands, const char *name, dcn_plans *out,
                              decant_error *err);

decant_status dcn_st_emit(const decant_model *model, const dcn_layout *how, dcn_plans *out, decant_error *err);

/* Whether the metadata says what transformers wants to read. */
bool dcn_st_for_loaders(const decant_model *model);

/* Who opens a file with a header of so many bytes, which is `for_loaders` or not. */
void dcn_st_openers(uint64_t header_len, bool for_loaders, dcn_openers *out);

#endif
