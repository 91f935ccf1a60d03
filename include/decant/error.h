/**
 * Status codes and errors.
 *
 * A function that can fail returns a decant_status and takes a `decant_error *` last, which may be NULL. The error lives
 * on the caller's stack and owns nothing: nothing to free, nothing thread-local, and running out of memory is reported
 * as well as anything else.
 */
#ifndef DECANT_ERROR_H
#define DECANT_ERROR_H

#include <stddef.h>
#include <stdint.h>

#include <decant/version.h>

#if defined(_WIN32)
#define DECANT_EXPORT __declspec(dllexport)
#elif defined(__GNUC__)
#define DECANT_EXPORT __attribute__((visibility("default")))
#else
#define DECANT_EXPORT
#endif

#if defined(__GNUC__)
#define DECANT_MUST_CHECK __attribute__((warn_unused_result))
#define DECANT_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define DECANT_MUST_CHECK
#define DECANT_PRINTF(fmt, args)
#endif

#define DECANT_API DECANT_EXPORT

#ifdef __cplusplus
extern "C" {
#endif

/** What went wrong, as far as a caller would act on it. New codes may be added at the end. */
typedef enum decant_status {
    DECANT_OK = 0,
    DECANT_NOMEM,           /* no memory; everything is as it was */
    DECANT_BAD_CALL,        /* the caller broke the contract of a function */
    DECANT_NOT_FOUND,       /* no such file, folder, tensor or key */
    DECANT_DENIED,          /* no permission */
    DECANT_IO,              /* the system failed to read, write or sync */
    DECANT_NO_SPACE,        /* disk, quota or file size limit; or a buffer that is too small */
    DECANT_EXISTS,          /* the output exists and replacing was not asked for */
    DECANT_SAME_FILE,       /* an output is one of the inputs, or another output */
    DECANT_BUSY,            /* another process is at work on the same output */
    DECANT_TRUNCATED,       /* the input ends before what it promises */
    DECANT_MALFORMED,       /* the input breaks the rules of its format */
    DECANT_LIMIT,           /* valid, but larger than a limit that can be lifted */
    DECANT_UNSUPPORTED,     /* valid, but not done here; the only code that lets a caller try the next strategy */
    DECANT_DUPLICATE,       /* two things of one name */
    DECANT_LOSS,            /* the output has no place for something that the input holds */
    DECANT_MISMATCH,        /* a promised length, shape or dtype that did not come true */
    DECANT_CHANGED,         /* a file is not what it was when it was opened */
    DECANT_WOULD_COPY,      /* DECANT_NO_COPY was asked for and the bytes are not in memory */
    DECANT_CALLBACK,        /* a callback failed without saying more */
    DECANT_CANCELLED,       /* the progress callback asked to stop */
    DECANT_NOT_DURABLE,     /* the new file is in place and whole, but power loss may undo it */
    DECANT_INTERRUPTED,     /* a save was stopped half way, and nothing is lost: recover it */
    DECANT_PUBLISH_PENDING, /* all is written and will be in place, but is not yet: recovery finishes it */
    DECANT_NOT_REMOVED      /* saved, but a file that it supersedes could not be removed */
} decant_status;

/** Whose fault it is: tells exit status 3 from 4. */
typedef enum decant_side {
    DECANT_SIDE_NONE = 0, /* memory, broken callers */
    DECANT_SIDE_INPUT,
    DECANT_SIDE_OUTPUT,
    DECANT_SIDE_CALLER /* a callback of the caller's */
} decant_side;

/** No offset known. */
#define DECANT_NO_OFFSET UINT64_MAX

/**
 * Everything known about a failure. Filled on failure and left alone on success; the texts are valid UTF-8, cut at a
 * character where they are too long, control characters escaped. Hints name options as the command line does: --force is
 * `replace`, --lenient is `lenient`, and --allow WORD is DECANT_ALLOW_WORD. About 4 KiB; `{0}` is a good start.
 *
 * Threads: one at a time.
 */
typedef struct decant_error {
    decant_status status;
    decant_side   side;
    int           os_code;       /* errno of the failing call, 0 if none */
    int           callback_code; /* whatever a callback of the caller's put here */
    uint64_t      offset;        /* in the input named by `path`, or DECANT_NO_OFFSET */
    char          message[320];  /* what is wrong, one line, no full stop */
    char          found[128];    /* "" if the message says it all */
    char          expected[128];
    char          hint[640]; /* what to do next */
    char          tensor[256];
    char          path[512];
    char          text[2016]; /* composed by decant_error_text(), which has room for all of the above */
} decant_error;

/**
 * Set status and message, and clear everything else. For callbacks: a provider that fails says why with this, and may set
 * `err->callback_code` afterwards; both reach whoever asked for the save.
 *
 * @param err     may be NULL
 * @param status  not DECANT_OK
 * @param format  as printf; one line, no full stop
 * @return status, so that a failing function can return the call
 */
DECANT_API decant_status decant_error_set(decant_error *err, decant_status status, const char *format, ...)
    DECANT_PRINTF(3, 4);

/**
 * The whole error in one line: `PATH: tensor 'NAME': MESSAGE, found X, expected Y; HINT`.
 *
 * @return [lent] lives in the error; "" for one that was never filled
 */
DECANT_API const char *decant_error_text(decant_error *err);

/** The code's name in lower case, such as "malformed". Never NULL; "unknown" for codes of a later version. */
DECANT_API const char *decant_status_name(decant_status status);

/** The version of the library that runs, such as "0.1.0". */
DECANT_API const char *decant_version(void);

#ifdef __cplusplus
}
#endif
#endif
