/* Names of parts of a split set, as all tools write them: STEM-00001-of-00003REST, REST such as ".safetensors". */
#ifndef DCN_FORMAT_SPLIT_H
#define DCN_FORMAT_SPLIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct dcn_split {
    size_t stem_len; /* bytes in front of "-00001-of-00003" */
    size_t tail_at;  /* where "-of-" begins */
    size_t rest_at;  /* what is behind the count */
    uint32_t number, count;
} dcn_split;

/* Bytes by which the name of another part may be longer: not all put zeros in front of its number. */
enum { DCN_SPLIT_LONGER = 8 };

/* A bare name taken apart. False: it is none of a part. */
bool dcn_split_parse(const char *name, dcn_split *out);

/* The name of another part of the set that `name` is of, cut to fit. */
void dcn_split_name(char *out, size_t size, const char *name, const dcn_split *part, uint32_t number);

#endif
