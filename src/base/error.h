/* Filling errors. Every function here accepts a NULL error. */
#ifndef DCN_BASE_ERROR_H
#define DCN_BASE_ERROR_H

#include <decant/error.h>

/* Adds to a filled error. Texts are sanitised and cut to fit, at a character. */
void dcn_error_found(decant_error *err, const char *format, ...) DECANT_PRINTF(2, 3);
void dcn_error_expected(decant_error *err, const char *format, ...) DECANT_PRINTF(2, 3);
void dcn_error_hint(decant_error *err, const char *format, ...) DECANT_PRINTF(2, 3);

/* The path by which the caller knows what it is about, whatever file the call that failed was on. */
void dcn_error_repath(decant_error *err, const char *path);

/* These keep what an inner function has set already: the innermost that knows wins. */
void dcn_error_tensor(decant_error *err, const char *name, size_t len);
void dcn_error_path(decant_error *err, const char *path);
void dcn_error_side(decant_error *err, decant_side side);
void dcn_error_offset(decant_error *err, uint64_t offset);

/* As dcn_error_offset(), and says it: "message at byte 42". */
void dcn_error_at(decant_error *err, uint64_t offset);

/* Gives the error another code and puts its meaning in front: "meaning: old message". Returns code. */
decant_status dcn_error_recast(decant_error *err, decant_status code, const char *meaning);

/* The status that running out of memory returns, with its message. */
decant_status dcn_error_nomem(decant_error *err);

#endif
