/* What is worth a look among a tensor's values: no numbers, infinities, zeros where a download was never finished. */
#ifndef DCN_VALUES_H
#define DCN_VALUES_H

#include <decant/check.h>

#include <stdbool.h>

/* A tensor's values as they pass. */
typedef struct dcn_tally {
    decant_values values;
    size_t unit;   /* bytes that are counted as one */
    bool is_whole; /* elements are whole bytes */
    uint64_t at;   /* bytes passed */
    uint64_t run;  /* zero bytes that end there */
} dcn_tally;

/* Begins with a tensor, lent until the end. */
void dcn_tally_begin(dcn_tally *t, const decant_tensor *tensor);

/* More of its data, whole elements. */
void dcn_tally_put(dcn_tally *t, const uint8_t *data, size_t len);

/* All of it has passed. @return whether anything is to be told: `longest` is the first length of a run of zeros that is */
bool dcn_tally_end(dcn_tally *t, uint64_t longest);

#endif
