/*
 * Providers that write down every call, fail on demand, and spoil what they lent as soon as it is given back: who reads it
 * later reads rubbish.
 */
#ifndef TEST_RECORDER_H
#define TEST_RECORDER_H

#include "support/test.h"

typedef enum recorder_what { ASKED_RANGE, ASKED_WHOLE, GIVEN_BACK, RELEASED } recorder_what;

typedef struct recorder_event {
    recorder_what what;
    unsigned who;
    uint64_t at, len;
} recorder_event;

typedef struct recorder {
    recorder_event *events;
    size_t count, cap;
    size_t asked;       /* calls of read and produce so far */
    size_t lent;        /* and not given back */
    size_t fail_at;     /* this one of them fails, counted from 1; 0: none */
    bool silent;        /* without saying why */
    long longer;        /* what is produced is longer by this many bytes, or shorter */
    unsigned longer_of; /* by this provider */
} recorder;             /* {0} records */

/* Bytes of the test stream `who`, behind a provider of either form. */
decant_bytes *recorder_bytes(recorder *r, unsigned who, uint64_t len, bool whole);

/*
 * Ends the test unless, in this order, each of `count` providers was asked for all of its `lens` bytes once, at rising
 * offsets, and had everything given back before the next was asked.
 */
void recorder_check(const recorder *r, const uint64_t *lens, size_t count);

/* How many events there are of one kind. */
size_t recorder_count(const recorder *r, recorder_what what);

void recorder_close(recorder *r);

#endif
