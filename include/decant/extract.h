/**
 * Single tensors out of models, into files of their own.
 */
#ifndef DECANT_EXTRACT_H
#define DECANT_EXTRACT_H

#include <decant/save.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Options of decant_extract(). NULL or all zero: the defaults. */
typedef struct decant_extract_options {
    size_t          size;      /* of this struct */
    const char     *format;    /* "npy", "raw"; NULL: npy where NumPy has the dtype, else raw */
    int             replace;   /* replace what is at the path when the new file is complete; default: refuse */
    int             plan_only; /* write nothing: say what would be refused before the first byte */
    decant_progress progress;
    void           *progress_ctx;
} decant_extract_options;

/**
 * Save one tensor to a file, all or nothing, as decant_save() does: as NumPy's .npy, byte for byte what numpy.save() writes,
 * or its bytes alone.
 *
 * @param index  < decant_model_count()
 * @return DECANT_UNSUPPORTED for a dtype that NumPy lacks, if "npy" is asked for; else as decant_save()
 *
 * Memory: as decant_save().
 */
DECANT_API DECANT_MUST_CHECK decant_status decant_extract(const decant_model *model, size_t index, const char *path,
                                                          const decant_extract_options *options, decant_error *err);

/** The same to a stream, front to back. What was written before a failure cannot be taken back. */
DECANT_API DECANT_MUST_CHECK decant_status decant_extract_stream(const decant_model *model, size_t index,
                                                                 const decant_stream          *stream,
                                                                 const decant_extract_options *options,
                                                                 decant_error                 *err);

/** Room for the name of a file: 255 bytes and a NUL. */
#define DECANT_FILE_NAME 256

/**
 * A name for the file of a tensor, with the extension of its format. It stays in its folder, is no hidden file and has no
 * control characters: a slash, a backslash, a percent sign, a leading dot, and control characters become % and two
 * hexadecimal digits, an empty name %. One that is too long is cut, and made distinct by a checksum of all of it.
 *
 * @param format    as in decant_extract_options
 * @param distinct  not 0: with the checksum however long it is, for names that a file system would take for one
 * @param out       of DECANT_FILE_NAME bytes
 */
DECANT_API void decant_extract_name(const decant_model *model, size_t index, const char *format, int distinct,
                                    char *out);

#ifdef __cplusplus
}
#endif
#endif
