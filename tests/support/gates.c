#include "gates.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const verbs[DCN_VERB_COUNT] = {
    [DCN_DO_OPEN_DIR] = "open_dir",   [DCN_DO_RANDOM] = "random",     [DCN_DO_OPEN] = "open",
    [DCN_DO_STAT] = "stat",           [DCN_DO_LIST] = "list",         [DCN_DO_RENAME] = "rename",
    [DCN_DO_LINK] = "link",           [DCN_DO_REMOVE] = "remove",     [DCN_DO_SYNC_DIR] = "sync_dir",
    [DCN_DO_SPACE] = "space",         [DCN_DO_READ] = "read",         [DCN_DO_WRITE] = "write",
    [DCN_DO_RESIZE] = "resize",       [DCN_DO_RESERVE] = "reserve",   [DCN_DO_SYNC] = "sync",
    [DCN_DO_FACTS] = "facts",         [DCN_DO_LOCK] = "lock",         [DCN_DO_RESEMBLE] = "resemble",
    [DCN_DO_COPY] = "copy",           [DCN_DO_READLINK] = "readlink", [DCN_DO_WHO] = "who",
    [DCN_DO_FORGET] = "forget",       [DCN_DO_CLONE] = "clone",       [DCN_DO_WHERE] = "where",
    [DCN_DO_PUNCH] = "punch",         [DCN_DO_EXTENTS] = "extents",   [DCN_DO_DATA] = "data",
    [DCN_DO_ALONE] = "alone",         [DCN_DO_NOTE] = "note",         [DCN_DO_READ_NOTE] = "read_note",
    [DCN_DO_SET_MTIME] = "set_mtime",
};

static bool has_range(dcn_verb verb)
{
    return verb == DCN_DO_READ || verb == DCN_DO_WRITE || verb == DCN_DO_RESERVE || verb == DCN_DO_COPY ||
           verb == DCN_DO_CLONE || verb == DCN_DO_PUNCH;
}

static void note(gates *g, const dcn_call *call, decant_status rc)
{
    char range[64] = "";
    const char *name = call->name ? call->name : "", *to = call->to ? call->to : "";
    size_t most = strlen(name) + strlen(to) + 160;

    if (has_range(call->verb))
        snprintf(range, sizeof range, " %" PRIu64 "+%" PRIu64, call->at, call->len);
    else if (call->verb == DCN_DO_RESIZE)
        snprintf(range, sizeof range, " %" PRIu64, call->len);
    if (g->trace_len + most > g->trace_cap) {
        g->trace_cap = (g->trace_len + most) * 2;
        g->trace = realloc(g->trace, g->trace_cap);
        if (!g->trace)
            abort();
    }
    g->trace_len +=
        (size_t)snprintf(g->trace + g->trace_len, most, "%s%s%s%s%s%s%s%s\n", verbs[call->verb], name[0] ? " " : "",
                         name, to[0] ? " " : "", to, range, rc ? " = " : "", rc ? decant_status_name(rc) : "");
}

static bool fits(const gates *g, const dcn_call *call)
{
    const gates_fault *f = &g->fault;

    if (f->one_verb && f->verb != call->verb)
        return false;
    return !f->name || (call->name && strstr(call->name, f->name)) || (call->to && strstr(call->to, f->name));
}

/* Whether this call is to fail. */
static bool fails(gates *g, const dcn_call *call)
{
    if (!g->armed)
        return false;
    if (g->fired && g->fault.crash)
        return true;
    if (!fits(g, call))
        return false;
    if (g->fits++ == g->fault.nth || (g->fired && g->fault.forever)) {
        g->fired = true;
        return true;
    }
    return false;
}

static decant_status before(void *ctx, const dcn_call *call, decant_error *err)
{
    gates *g = ctx;
    decant_status rc = DECANT_OK;

    g->total++;
    g->count[call->verb]++;
    if (fails(g, call)) {
        rc = decant_error_set(err, g->fault.status, "injected");
        if (err)
            err->os_code = g->fault.os_code;
    } else if (g->next) {
        rc = g->next->before(g->next->ctx, call, err);
    }
    if (rc)
        note(g, call, rc);
    return rc;
}

static void after(void *ctx, const dcn_call *call, decant_status rc)
{
    gates *g = ctx;

    if (g->next && g->next->after)
        g->next->after(g->next->ctx, call, rc);
    if (!rc)
        g->bytes[call->verb] += call->len;
    note(g, call, rc);
}

void gates_up(gates *g, dcn_io *io)
{
    *g = (gates){.gate = {.before = before, .after = after, .ctx = g}, .next = io->gate, .io = io};
    io->gate = &g->gate;
}

void gates_down(gates *g)
{
    if (g->io->gate != &g->gate)
        abort();
    g->io->gate = g->next;
    free(g->trace);
    g->trace = NULL;
}

void gates_fail(gates *g, gates_fault fault)
{
    g->fault = fault;
    g->fits = 0;
    g->armed = true;
    g->fired = false;
}

void gates_crash(gates *g, size_t n)
{
    gates_fail(g, (gates_fault){.nth = n, .status = DECANT_IO, .os_code = EIO, .crash = true});
}

const char *gates_trace(const gates *g)
{
    return g->trace ? g->trace : "";
}
