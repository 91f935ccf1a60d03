#include "base/error.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* Formats into one of the error's texts, safe to print whatever a file put into the arguments. */
DECANT_PRINTF(3, 0)
static void put(char *out, size_t size, const char *format, va_list args)
{
    char raw[512];
    int len = vsnprintf(raw, sizeof raw, format, args);

    if (len < 0)
        len = 0;
    if ((size_t)len >= sizeof raw)
        len = (int)dcn_utf8_cut(raw, sizeof raw, sizeof raw - 1);
    dcn_text_escape(out, size, raw, (size_t)len);
}

#define PUT(field)                               \
    do {                                         \
        va_list args;                            \
        va_start(args, format);                  \
        put(field, sizeof(field), format, args); \
        va_end(args);                            \
    } while (0)

decant_status decant_error_set(decant_error *err, decant_status status, const char *format, ...)
{
    if (err) {
        *err = (decant_error){.status = status, .offset = DECANT_NO_OFFSET};
        PUT(err->message);
    }
    return status;
}

void dcn_error_found(decant_error *err, const char *format, ...)
{
    if (err)
        PUT(err->found);
}

void dcn_error_expected(decant_error *err, const char *format, ...)
{
    if (err)
        PUT(err->expected);
}

void dcn_error_hint(decant_error *err, const char *format, ...)
{
    if (err)
        PUT(err->hint);
}

void dcn_error_tensor(decant_error *err, const char *name, size_t len)
{
    if (err && !err->tensor[0])
        dcn_text_escape(err->tensor, sizeof err->tensor, name, len);
}

void dcn_error_path(decant_error *err, const char *path)
{
    if (err && path && !err->path[0])
        dcn_text_escape(err->path, sizeof err->path, path, strlen(path));
}

void dcn_error_repath(decant_error *err, const char *path)
{
    if (err) {
        err->path[0] = '\0';
        dcn_error_path(err, path);
    }
}

void dcn_error_side(decant_error *err, decant_side side)
{
    if (err && err->side == DECANT_SIDE_NONE)
        err->side = side;
}

void dcn_error_offset(decant_error *err, uint64_t offset)
{
    if (err && err->offset == DECANT_NO_OFFSET)
        err->offset = offset;
}

void dcn_error_at(decant_error *err, uint64_t offset)
{
    size_t len;

    if (!err || err->offset != DECANT_NO_OFFSET)
        return;
    err->offset = offset;
    len = strlen(err->message);
    snprintf(err->message + len, sizeof err->message - len, " at byte %" PRIu64, offset);
}

decant_status dcn_error_recast(decant_error *err, decant_status code, const char *meaning)
{
    char old[sizeof err->message];

    if (err) {
        memcpy(old, err->message, sizeof old);
        err->status = code;
        snprintf(err->message, sizeof err->message, "%s: ", meaning);
        dcn_text_escape(err->message + strlen(err->message), sizeof err->message - strlen(err->message), old,
                        strlen(old));
    }
    return code;
}

decant_status dcn_error_nomem(decant_error *err)
{
    return decant_error_set(err, DECANT_NOMEM, "out of memory");
}

const char *decant_error_text(decant_error *err)
{
    static const struct {
        const char *before, *after;
    } frames[] = {{"", ": "}, {"tensor '", "': "}, {"", ""}, {", found ", ""}, {", expected ", ""}, {"; ", ""}};
    const char *parts[6];
    size_t used = 0;

    if (!err || err->status == DECANT_OK)
        return "";
    parts[0] = err->path;
    parts[1] = err->tensor;
    parts[2] = err->message[0] ? err->message : decant_status_name(err->status);
    parts[3] = err->found;
    parts[4] = err->expected;
    parts[5] = err->hint;

    err->text[0] = '\0';
    for (size_t i = 0; i < sizeof parts / sizeof *parts && used < sizeof err->text; i++)
        if (parts[i][0])
            used += (size_t)snprintf(err->text + used, sizeof err->text - used, "%s%s%s", frames[i].before, parts[i],
                                     frames[i].after);
    return err->text;
}

const char *decant_status_name(decant_status status)
{
    static const char *const names[] = {
        [DECANT_OK] = "ok",
        [DECANT_NOMEM] = "no_memory",
        [DECANT_BAD_CALL] = "bad_call",
        [DECANT_NOT_FOUND] = "not_found",
        [DECANT_DENIED] = "denied",
        [DECANT_IO] = "io",
        [DECANT_NO_SPACE] = "no_space",
        [DECANT_EXISTS] = "exists",
        [DECANT_SAME_FILE] = "same_file",
        [DECANT_BUSY] = "busy",
        [DECANT_TRUNCATED] = "truncated",
        [DECANT_MALFORMED] = "malformed",
        [DECANT_LIMIT] = "limit",
        [DECANT_UNSUPPORTED] = "unsupported",
        [DECANT_DUPLICATE] = "duplicate",
        [DECANT_LOSS] = "loss",
        [DECANT_MISMATCH] = "mismatch",
        [DECANT_CHANGED] = "changed",
        [DECANT_WOULD_COPY] = "would_copy",
        [DECANT_CALLBACK] = "callback",
        [DECANT_CANCELLED] = "cancelled",
        [DECANT_NOT_DURABLE] = "not_durable",
        [DECANT_INTERRUPTED] = "interrupted",
        [DECANT_PUBLISH_PENDING] = "publish_pending",
        [DECANT_NOT_REMOVED] = "not_removed",
    };

    return (size_t)status < sizeof names / sizeof *names ? names[status] : "unknown";
}

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

const char *decant_version(void)
{
    return TEXT(DECANT_VERSION_MAJOR) "." TEXT(DECANT_VERSION_MINOR) "." TEXT(DECANT_VERSION_PATCH);
}
