/**
 * Saving: plans and the places where they land.
 */
#ifndef DECANT_SAVE_H
#define DECANT_SAVE_H

#include <decant/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * What a save did, or what a plan would do: sizes, routes, losses, peaks.
 *
 * Threads: immutable, share freely.
 */
typedef struct decant_report decant_report;

/**
 * Called between slots with bytes done and bytes in total, and where a file gets its name at the end once more before that.
 *
 * @return not 0 to stop: the save fails with DECANT_CANCELLED, undone; DECANT_STOP_AND_KEEP: with DECANT_INTERRUPTED if it has
 *         begun to give inputs up, and can go on
 */
typedef int (*decant_progress)(void *ctx, uint64_t done, uint64_t total);

/** Where the data of tensors lies in the output. Depends on the model and the options alone, never on the file system. */
typedef enum decant_layout {
    DECANT_LAYOUT_CANONICAL = 0, /* byte for byte what the format's reference writer would write */
    DECANT_LAYOUT_ALIGNED,  /* at multiples of `align` in the file, for mapping; safetensors: the first tensor only */
    DECANT_LAYOUT_CONGRUENT /* as in its file, modulo 4096, so that blocks can be shared with it */
} decant_layout;

/** Whether inputs that were opened as owned are given up: moved into the output, and gone when it is in place. */
typedef enum decant_consume {
    DECANT_CONSUME_NEVER = 0,
    DECANT_CONSUME,        /* moved where they can be; else copied, and removed when the output is durable */
    DECANT_CONSUME_REQUIRE /* refused where one would have to be copied */
} decant_consume;

/** What a progress callback returns to stop a save and, where it has begun to give inputs up, to keep what is done. */
#define DECANT_STOP_AND_KEEP 2

/** Options of plan and save. NULL or all zero: the defaults. */
typedef struct decant_save_options {
    size_t          size;             /* of this struct: DECANT_SAVE_OPTIONS_INIT */
    const char     *format;           /* by name ("burnpack", "safetensors"); NULL: by the extension of the path */
    unsigned        allow;            /* DECANT_ALLOW_* */
    int             replace;          /* replace what is at the path when the new file is complete; default: refuse */
    int             append_extension; /* as burn-pack does: a path without an extension gets the format's own */
    decant_progress progress;
    void           *progress_ctx;
    decant_layout   layout;
    uint64_t        align;  /* of DECANT_LAYOUT_ALIGNED, bytes: a power of two from 256 to 1 GiB; 0: 4096 */
    uint64_t max_shard;     /* bytes of tensors in a file; more make a set, with an index. 0: one file, however large */
    int      verify;        /* files: read back from the disk and compared before they are published */
    int      prune;         /* when all is in place, remove what it supersedes: decant_report_superseded() */
    decant_consume consume; /* the inputs that were opened with decant_open_options.owned: the second key */
} decant_save_options;

#define DECANT_SAVE_OPTIONS_INIT                                                                                 \
    {                                                                                                            \
        sizeof(decant_save_options), 0, 0, 0, 0, 0, 0, DECANT_LAYOUT_CANONICAL, 0, 0, 0, 0, DECANT_CONSUME_NEVER \
    }

/**
 * Say what decant_save() would do, without writing or asking a provider: the same code up to the first byte.
 *
 * @param path    may be NULL: then options->format is needed and nothing about the place is checked
 * @param report  [owned] release with decant_report_close()
 * @return as decant_save() before its first byte
 */
DECANT_API DECANT_MUST_CHECK decant_status decant_plan(const decant_model *model, const char *path,
                                                       const decant_save_options *options, decant_report **report,
                                                       decant_error *err);

/**
 * Save a model to a file, all or nothing: on any failure what was at the path is untouched and nothing else is left. The
 * result is on stable storage when this returns DECANT_OK. Data goes to a scratch file beside the path, is synced once and
 * renamed, and the folder is synced. A symbolic link at the path is replaced. The mode is that of the file replaced, else
 * 0666 less the umask.
 *
 * Providers are asked at most once each, in the order of the output, each released before the next.
 *
 * With `verify` the scratch file is read back, past the page cache, and compared with checksums that were made on the way,
 * and only then renamed; what differs is DECANT_IO. Then no blocks are shared, and the report has the model's digest.
 *
 * @param report  [owned] NULL: no report. Written also with DECANT_NOT_DURABLE
 * @return DECANT_LOSS, DECANT_LIMIT, DECANT_MISMATCH, DECANT_DUPLICATE (nothing was touched); DECANT_EXISTS,
 *         DECANT_SAME_FILE, DECANT_NO_SPACE, DECANT_IO, a provider's status, DECANT_CANCELLED (undone);
 *         DECANT_NOT_DURABLE, DECANT_NOT_REMOVED (the new file is in place)
 *
 * Memory: 4 MiB of staging, however large the model. Threads: callbacks run on this thread.
 */
DECANT_API DECANT_MUST_CHECK decant_status decant_save(const decant_model *model, const char *path,
                                                       const decant_save_options *options, decant_report **report,
                                                       decant_error *err);

/**
 * Save over a file in place: links are followed, the inode, its owner and its other names are kept, nothing is synced. The
 * header is written last. A failure leaves a file that no reader accepts. Refused where the file is one of the sources.
 * Without `replace` the file must not exist.
 */
DECANT_API DECANT_MUST_CHECK decant_status decant_save_in_place(const decant_model *model, const char *path,
                                                                const decant_save_options *options,
                                                                decant_report **report, decant_error *err);

/**
 * Save into the caller's memory. Bytes past the size of the result keep what they were.
 *
 * @param len  bytes at `dst`; DECANT_NO_SPACE with found and expected if too few, nothing touched
 * @param written  bytes of the result; may be NULL
 */
DECANT_API DECANT_MUST_CHECK decant_status decant_save_into(const decant_model *model, void *dst, size_t len,
                                                            size_t *written, const decant_save_options *options,
                                                            decant_report **report, decant_error *err);

/** Save into new memory, allocated once. @param out [owned] bytes that hold it; pin them to read */
DECANT_API DECANT_MUST_CHECK decant_status decant_save_new(const decant_model *model, decant_bytes **out,
                                                           const decant_save_options *options, decant_report **report,
                                                           decant_error *err);

/** Where a stream goes. */
typedef struct decant_stream {
    size_t size;                                                                        /* of this struct */
    decant_status (*write)(void *ctx, const void *data, size_t len, decant_error *err); /* takes all, or fails */
    void *ctx;
} decant_stream;

/** Save to a stream, front to back. What was written before a failure cannot be taken back. */
DECANT_API DECANT_MUST_CHECK decant_status decant_save_stream(const decant_model *model, const decant_stream *stream,
                                                              const decant_save_options *options,
                                                              decant_report **report, decant_error *err);

/** Bytes that become a file: what a serializer makes that has a layout of its own, joined of parts by decant_bytes_join(). */
typedef struct decant_file {
    const char   *path;
    decant_bytes *bytes; /* [lent] */
} decant_file;

/**
 * Write bytes of any kind as files, as decant_save() writes a model: bounded memory, blocks shared where they line up, each
 * provider asked once and in its turn, everything on stable storage before it is reported. Several files are published in
 * their order, all or none of them, also when the power is cut: an index, or what refers to the others, goes last.
 *
 * @param files    [lent] `count` of them, in one folder
 * @param options  `format`, `layout` and `max_shard` say nothing here
 * @return as decant_save(); DECANT_BAD_CALL (a path twice), DECANT_UNSUPPORTED (several folders)
 */
DECANT_API DECANT_MUST_CHECK decant_status decant_write(const decant_file *files, size_t count,
                                                        const decant_save_options *options, decant_report **report,
                                                        decant_error *err);

/** Say what decant_write() would do, as decant_plan() does of decant_save(). */
DECANT_API DECANT_MUST_CHECK decant_status decant_plan_write(const decant_file *files, size_t count,
                                                             const decant_save_options *options, decant_report **report,
                                                             decant_error *err);

/** Exact bytes of the result, without asking a provider. options->format is needed. */
DECANT_API DECANT_MUST_CHECK decant_status decant_size(const decant_model *model, const decant_save_options *options,
                                                       uint64_t *size, decant_error *err);

/* Reports. Texts are lent by the report. */
DECANT_API const char *decant_report_path(const decant_report *report); /* "" where there is none */
DECANT_API const char *decant_report_format(const decant_report *report);
DECANT_API uint64_t    decant_report_size(const decant_report *report);    /* bytes of all outputs */
DECANT_API uint64_t    decant_report_data(const decant_report *report);    /* bytes of tensors in them */
DECANT_API size_t      decant_report_tensors(const decant_report *report); /* tensors in them */
DECANT_API uint64_t    decant_report_memory(const decant_report *report);  /* staging planned, bytes */
DECANT_API uint64_t    decant_report_room(const decant_report *report);    /* disk needed, bytes */
/**
 * Disk that was taken, bytes: by how much less was free, at most, than when it was planned. The file system was asked after each
 * batch of what is moved, and when all was written. What others write meanwhile counts; what it frees late, too (btrfs). 0 in a
 * plan, and where it is not known.
 */
DECANT_API uint64_t decant_report_taken(const decant_report *report);
DECANT_API uint64_t decant_report_free(const decant_report *report);      /* disk free when planned, bytes */
DECANT_API int      decant_report_published(const decant_report *report); /* all outputs are in place */
DECANT_API int      decant_report_durable(const decant_report *report);   /* and synced */
/** What the outputs outlive, once synced: "power" (a power cut), "process" (they are in memory: tmpfs), "unknown" (no file, or a network's). */
DECANT_API const char *decant_report_survives(const decant_report *report);
/** Per output, in the order of publication: path, bytes, whether it is in place, and synced; 0 past the last. */
DECANT_API int decant_report_output(const decant_report *report, size_t index, const char **path, uint64_t *bytes,
                                    int *published, int *durable);
/** Earlier saves to these outputs that were interrupted half way, and are undone first. Mostly 0. */
DECANT_API size_t decant_report_undone(const decant_report *report);
/** How the data lies: "canonical", "aligned", "congruent", and why not as asked where that could not be. */
DECANT_API const char *decant_report_layout(const decant_report *report);
DECANT_API uint64_t    decant_report_padding(const decant_report *report); /* bytes of gaps in it */
/** Whether what was saved was read back and is what was written. */
DECANT_API int decant_report_verified(const decant_report *report);
/** The digest of what was read back, as decant_digest() of it; "" where nothing was, or the build has no SHA-256. */
DECANT_API const char *decant_report_digest(const decant_report *report);
/** What is lost ("3 param ids"), index from 0. NULL past the last. */
DECANT_API const char *decant_report_loss(const decant_report *report, size_t index);
/** What the output gets that the model does not have ("metadata format = pt"), index from 0. NULL past the last. */
DECANT_API const char *decant_report_gain(const decant_report *report, size_t index);
/**
 * What is special about the file that is replaced ("a file with other names, which keep it"), index from 0. NULL past the
 * last, which mostly is the first.
 */
DECANT_API const char *decant_report_replaces(const decant_report *report, size_t index);
/**
 * What became infinite because its new dtype has no room for it, with DECANT_ALLOW_OVERFLOW: "2 values in 'w' exceed the range
 * of F16, the largest 100000", index from 0. NULL past the last, and in a plan.
 */
DECANT_API const char *decant_report_overflow(const decant_report *report, size_t index);
/** Who can open the output, as decant_model_reader(); 0 past the last. */
DECANT_API int decant_report_reader(const decant_report *report, size_t index, const char **program,
                                    const char **why_not);
/**
 * A file beside the outputs that an earlier save to the same path has made and that is none of them: the shards and the index
 * of a set, or the single file. A loader may take it for the new one. Index from 0; 0 past the last.
 *
 * @param kept  why `prune` does not remove it, NULL: nothing speaks against it
 */
DECANT_API int decant_report_superseded(const decant_report *report, size_t index, const char **path, const char **kept,
                                        int *removed);
/**
 * Per source: path, bytes of it in the output, route ("clone": blocks are shared with it; "drain": they are moved; "copy"; "remove":
 * it goes, and nothing of it is needed) and why nothing better, "" where nothing is. A plan judges by the kind of file system what can be shared, a save tells what was. 0 past the last.
 */
DECANT_API int decant_report_source(const decant_report *report, size_t index, const char **path, uint64_t *bytes,
                                    const char **route, const char **reason);
/** Whether a source is given up: gone when the outputs are in place. */
DECANT_API int decant_report_given(const decant_report *report, size_t index);
/** Whether of some source that is given up it cannot be told, here, whether somebody else has it open. */
DECANT_API int decant_report_unsure(const decant_report *report);
/**
 * Where bytes of a source that is given up are in the outputs (of a plan: are going to be), in the order of the source. What
 * stands in two places has two ranges; what is in none is in no output as it is.
 *
 * @param range   from 0
 * @param from    where it begins in the source, and `len` bytes
 * @param output  which one, as in decant_report_output(), and where it begins there: `to`
 * @return 0 past the last
 */
DECANT_API int decant_report_range(const decant_report *report, size_t index, size_t range, uint64_t *from,
                                   uint64_t *len, size_t *output, uint64_t *to);
/** Bytes of a source in blocks that are shared, or can be. */
DECANT_API uint64_t decant_report_shared(const decant_report *report, size_t index);
DECANT_API void     decant_report_close(decant_report **report);

#ifdef __cplusplus
}
#endif
#endif
