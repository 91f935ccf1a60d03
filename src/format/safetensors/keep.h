/*
 * What safetensors has no place for is kept in its metadata, which is text, and restored when the file is opened:
 *
 *     decant.id.NAME      the param id of tensor NAME, in decimal
 *     decant.dtype.NAME   Flex32, Bool(U8) or Bool(U32): a dtype whose bytes are stored as F32, U8 and U32
 *     decant.scalar.KEY   "bool true", "i64 -3", "u64 42" or "f64 3fb999999999999a", the 64 bits
 *     decant.text.KEY     metadata with a KEY that would be one of these itself
 *     decant.order        the order of the tensors: for each its place, from 0, among all names sorted by bytes
 *     decant.added        "format": the metadata format = pt was added for loaders, and goes where the model came from
 *
 * Any other key is plain metadata.
 */
#ifndef DCN_SAFETENSORS_KEEP_H
#define DCN_SAFETENSORS_KEEP_H

#include "format/format.h"

/* The dtype as which bytes of `dtype` are stored: itself, unless the file keeps what it is. */
decant_dtype dcn_st_stored(decant_dtype dtype);

/* The tensors of one file, in the order of their data. Where the model has more it is one of a set. */
typedef struct dcn_st_part {
    const dcn_entry *const *tensors;
    size_t count;
    bool first; /* of the set: it stands for all of it, and keeps what is about all of it */
} dcn_st_part;

/*
 * Puts the metadata of a file, in braces and sorted by key, if there is any.
 *
 * @param add_format  format = pt is added
 * @param put         whether there is any
 * @param keeps       becomes true if some of it is kept there for want of another place
 */
decant_status dcn_st_put_metadata(dcn_buf *buf, const decant_model *model, const dcn_st_part *part, bool add_format,
                                  bool *put, bool *keeps, decant_error *err);

/* Whether a key of metadata is kept for such use. */
bool dcn_st_is_kept(const char *key, size_t len);

/*
 * Restores what was kept, and takes it from the metadata. The model is sorted, and is afterwards in the order that was kept.
 *
 * @param findings  lists all keys that do not fit; NULL: the first one is the failure
 * @return DECANT_MALFORMED for a key that does not fit the tensors, unless it is let pass: then it is plain metadata
 */
decant_status dcn_st_restore(decant_model *model, unsigned lenient, const dcn_findings *findings, decant_error *err);

#endif
