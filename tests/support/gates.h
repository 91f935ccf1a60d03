/*
 * A gate that counts every call, writes down a trace, and makes a chosen call fail. Several stand one behind the other:
 * the one that was put up last is asked first.
 */
#ifndef TEST_GATES_H
#define TEST_GATES_H

#include "io/io.h"

/* Which call fails, and how. {0} with a status fails the very first. */
typedef struct gates_fault {
    size_t nth;    /* of those that fit; the first is 0 */
    bool one_verb; /* only calls of `verb` fit */
    dcn_verb verb;
    const char *name; /* only calls on names that hold this text fit; NULL: all */
    decant_status status;
    int os_code;
    bool forever; /* all later ones that fit as well */
    bool crash;   /* and every later call, whatever it is: the process is as good as gone */
} gates_fault;

typedef struct gates {
    dcn_gate gate;
    const dcn_gate *next;
    dcn_io *io;

    size_t total;                   /* calls */
    size_t count[DCN_VERB_COUNT];   /* calls of a verb */
    uint64_t bytes[DCN_VERB_COUNT]; /* in calls of it that succeeded */

    gates_fault fault;
    size_t fits; /* calls so far that fit it */
    bool armed, fired;

    char *trace; /* a line a call: "write a.part 0+512", with " = io" if it failed */
    size_t trace_len, trace_cap;
} gates;

/* Puts a gate up, in front of those that are there. `g` stays where it is until it is taken down. */
void gates_up(gates *g, dcn_io *io);

/* Takes it down again and frees its trace; the one put up last first. */
void gates_down(gates *g);

/* Arms a fault; the count of those that fit begins anew. */
void gates_fail(gates *g, gates_fault fault);

/* From the n-th call on (the first is 0) every call fails without effect, as if the machine had stopped. */
void gates_crash(gates *g, size_t n);

/* What was called so far. "" if nothing. */
const char *gates_trace(const gates *g);

#endif
