/**
 * The formats that this build knows.
 */
#ifndef DECANT_FORMATS_H
#define DECANT_FORMATS_H

#include <decant/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One container format; texts live as long as the program. */
typedef struct decant_format_info {
    size_t      size;      /* of this struct */
    const char *name;      /* "burnpack": options, --to */
    const char *extension; /* canonical, no dot */
    int         reads, writes;
} decant_format_info;

/** @return 0 past the last */
DECANT_API int decant_format(size_t index, decant_format_info *out);

#ifdef __cplusplus
}
#endif
#endif
