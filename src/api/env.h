/* What every entry point runs in. (A default that programs may change, the one mutable global, comes when there is a need.) */
#ifndef DCN_ENV_H
#define DCN_ENV_H

#include <decant/decant.h>

#include "format/format.h"
#include "pour/pour.h"

typedef struct dcn_env {
    dcn_io *io;
    dcn_cut cut;
    unsigned threads;   /* where files are drained, the caller's among them; 0: his alone, as everywhere else */
    uint64_t crew_seed; /* not 0: a seeded crew, for tests */
} dcn_env;

/* The default: this system, the default cut, a helper where it pays. */
dcn_env dcn_env_default(void);

/* The crew of a save or a recovery. @param out [owned] */
decant_status dcn_env_crew(const dcn_env *env, bool drains, dcn_crew **out, decant_error *err);

/* Copies a caller's options over the defaults in `own`: fields that his version of the struct lacks keep theirs. */
void dcn_options_take(void *own, size_t own_size, const void *theirs);

/* A caller's options of opening over the defaults. */
decant_status dcn_reading_take(dcn_reading *own, const decant_open_options *theirs, decant_error *err);

/* What a path stands for. @param out [owned] */
decant_status dcn_open_input(const dcn_env *env, const char *path, const dcn_reading *how, dcn_input **out,
                             decant_error *err);

/* The kinds of place a model is saved to. */
typedef enum dcn_target_kind {
    DCN_TO_FILE,
    DCN_TO_FILE_IN_PLACE,
    DCN_TO_MEMORY,
    DCN_TO_NEW,
    DCN_TO_STREAM,
    DCN_TO_NOWHERE /* plan only */
} dcn_target_kind;

typedef struct dcn_target {
    dcn_target_kind kind;
    const dcn_format *format; /* NULL: as the options or the path say */
    const char *path;         /* files */
    void *dst;                /* memory */
    size_t len;               /* memory, bytes */
    decant_stream stream;     /* streams */
    decant_bytes **bytes;     /* new memory: [owned] by the caller on success */
} dcn_target;

/* The public verbs with an environment of their own: what the tests call. */
decant_status dcn_open(const dcn_env *env, const char *path, const decant_open_options *options, decant_model **out,
                       decant_error *err);
decant_status dcn_save(const dcn_env *env, const decant_model *model, const dcn_target *target,
                       const decant_save_options *options, bool plan_only, decant_report **report, decant_error *err);
decant_status dcn_write(const dcn_env *env, const decant_file *files, size_t count, const decant_save_options *options,
                        bool plan_only, decant_report **report, decant_error *err);
decant_status dcn_recover(const dcn_env *env, const char *path, const decant_recover_options *options,
                          decant_recovery **out, decant_error *err);

#endif
