#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/env.h"
#include "support/models.h"

/* On the real system: processes that are killed in the middle of a save, and processes that save to one name at once. */

enum { SLOT = 512 };

static decant_model *some_model(uint64_t seed)
{
    uint64_t shape[] = {3000};
    decant_model *model = NULL;
    decant_error err;

    CHECK_OK(decant_model_create(&model, &err), &err);
    model_add_stream(model, "a", DECANT_U8, 1, shape, seed);
    model_add_stream(model, "b", DECANT_U8, 1, shape, seed + 1);
    return model;
}

static decant_status save(const decant_model *model, const char *path, decant_progress progress, void *ctx,
                          decant_error *err)
{
    dcn_env env = dcn_env_default();
    dcn_target target = {.kind = DCN_TO_FILE, .path = path};
    decant_save_options options = DECANT_SAVE_OPTIONS_INIT;

    env.cut = (dcn_cut){.slot = SLOT, .slots = 1, .direct = 2 * SLOT};
    options.replace = 1;
    options.progress = progress;
    options.progress_ctx = ctx;
    return dcn_save(&env, model, &target, &options, false, NULL, err);
}

/* Files in a folder. */
static size_t count_files(const char *folder)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    size_t count = 0;

    CHECK(dir != NULL);
    while ((entry = readdir(dir)))
        count += entry->d_name[0] != '.';
    closedir(dir);
    return count;
}

static void check_file(const char *path, const decant_model *model)
{
    size_t len, got_len;
    uint8_t *wanted = NULL, *got = test_data(path, &got_len);
    decant_error err;

    CHECK_OK(model_render(&dcn_safetensors, model, NULL, &wanted, &len, &err), &err);
    CHECK_BYTES(got, got_len, wanted, len);
    free(wanted);
    free(got);
}

static int die(void *ctx, uint64_t done, uint64_t total)
{
    size_t *countdown = ctx;

    (void)done;
    (void)total;
    if ((*countdown)-- == 0)
        raise(SIGKILL);
    return 0;
}

TEST(kill__leaves_the_old_file_and_a_part_which_the_next_save_removes)
{
    const char *folder = test_folder();
    decant_model *old = some_model(1), *fresh = some_model(7);
    char path[4096];
    bool killed = true;
    size_t kills = 0;
    decant_error err;

    snprintf(path, sizeof path, "%s/out.safetensors", folder);
    for (size_t n = 0; killed; n++) {
        size_t countdown = n;
        int status = 0;
        pid_t child;

        CHECK_OK(save(old, path, NULL, NULL, &err), &err);
        child = fork();
        if (child == 0)
            _exit(save(fresh, path, die, &countdown, NULL) == DECANT_OK ? 0 : 1);
        CHECK(child > 0 && waitpid(child, &status, 0) == child);
        killed = WIFSIGNALED(status);
        if (!killed)
            CHECK_EQ(WEXITSTATUS(status), 0);
        kills += killed;
        check_file(path, killed ? old : fresh);
        CHECK_EQ(count_files(folder), killed ? 2 : 1);

        CHECK_OK(save(fresh, path, NULL, NULL, &err), &err);
        check_file(path, fresh);
        CHECK_EQ(count_files(folder), 1);
    }
    CHECK(kills >= 6000 / SLOT);
    decant_model_close(&old);
    decant_model_close(&fresh);
}

/* --- several files ------------------------------------------------------------------------------------------------ */

static decant_status die_before(void *ctx, const dcn_call *call, decant_error *err)
{
    size_t *countdown = ctx;

    (void)call;
    (void)err;
    if ((*countdown)-- == 0)
        raise(SIGKILL);
    return DECANT_OK;
}

/* A tensor a file. */
static decant_status save_set(const decant_model *model, const char *path, const dcn_gate *gate, decant_error *err)
{
    dcn_env env = dcn_env_default();
    dcn_target target = {.kind = DCN_TO_FILE, .path = path};
    decant_save_options options = DECANT_SAVE_OPTIONS_INIT;
    decant_status rc;

    env.cut = (dcn_cut){.slot = SLOT, .slots = 1, .direct = 2 * SLOT};
    options.replace = 1;
    options.max_shard = 1;
    env.io->gate = gate;
    rc = dcn_save(&env, model, &target, &options, false, NULL, err);
    env.io->gate = NULL;
    return rc;
}

static bool holds(const char *path, const decant_model *model)
{
    decant_model *read = NULL;
    bool same;

    if (decant_open(path, NULL, &read, NULL))
        return false;
    same = decant_model_count(read) == decant_model_count(model);
    for (size_t i = 0; same && i < decant_model_count(model); i++) {
        uint8_t *a = entry_bytes(&model->entries[i]), *b = entry_bytes(&read->entries[i]);

        same = memcmp(a, b, (size_t)model->entries[i].data.len) == 0;
        free(a);
        free(b);
    }
    decant_model_close(&read);
    return same;
}

/* What was there to recover. */
typedef enum found { NOTHING, BEGUN, COMPLETE } found;

/* Finishes the save whose journal is there, or undoes it. */
static found recover_set(const char *folder)
{
    decant_recover_options options = DECANT_RECOVER_OPTIONS_INIT;
    decant_recovered save = {.size = sizeof save};
    decant_recovery *r = NULL;
    found what = NOTHING;
    decant_error err;

    CHECK_OK(decant_recover(folder, NULL, &r, &err), &err);
    if (decant_recovery_save(r, 0, &save))
        what = save.stage == DECANT_STAGE_COMPLETE ? COMPLETE : BEGUN;
    decant_recovery_close(&r);
    options.direction = what == COMPLETE ? DECANT_RECOVER_RESUME : DECANT_RECOVER_UNDO;
    CHECK_OK(decant_recover(folder, &options, &r, &err), &err);
    decant_recovery_close(&r);
    return what;
}

TEST(kill__of_a_save_of_several_files_leaves_what_recovery_makes_all_or_none_of)
{
    const char *folder = test_folder();
    decant_model *old = some_model(1), *fresh = some_model(7);
    char path[4096], index[4128];
    bool killed = true;
    size_t undone = 0, finished = 0;
    decant_error err;

    snprintf(path, sizeof path, "%s/out.safetensors", folder);
    snprintf(index, sizeof index, "%s.index.json", path);
    for (size_t n = 0; killed; n++) {
        dcn_gate gate = {.before = die_before};
        size_t countdown = n;
        int status = 0;
        found what;
        pid_t child;

        gate.ctx = &countdown;
        CHECK_OK(save_set(old, path, NULL, &err), &err);
        child = fork();
        if (child == 0)
            _exit(save_set(fresh, path, &gate, NULL) == DECANT_OK ? 0 : 1);
        CHECK(child > 0 && waitpid(child, &status, 0) == child);
        killed = WIFSIGNALED(status);
        if (!killed)
            CHECK_EQ(WEXITSTATUS(status), 0);
        what = recover_set(folder);
        CHECK(killed || what == NOTHING);
        if (what != NOTHING || !killed)
            CHECK(holds(index, what == BEGUN ? old : fresh));
        else /* before it had begun, or after all was done */
            CHECK(holds(index, old) || holds(index, fresh));
        CHECK_EQ(count_files(folder), 3);
        finished += what == COMPLETE;
        undone += what == BEGUN;
    }
    CHECK(finished >= 3 && undone > 20);
    decant_model_close(&old);
    decant_model_close(&fresh);
}

TEST(saves__to_one_name_at_once_leave_one_of_their_files_whole_and_nothing_else)
{
    enum { SAVERS = 3, TIMES = 15 };
    const char *folder = test_folder();
    decant_model *models[SAVERS];
    pid_t children[SAVERS];
    char path[4096];
    decant_model *read = NULL;
    decant_error err;

    snprintf(path, sizeof path, "%s/out.safetensors", folder);
    for (unsigned i = 0; i < SAVERS; i++) {
        models[i] = some_model(10 * i);
        children[i] = fork();
        CHECK(children[i] >= 0);
        if (children[i] == 0) {
            decant_status rc = DECANT_OK;

            for (unsigned k = 0; k < TIMES && rc == DECANT_OK; k++)
                rc = save(models[i], path, NULL, NULL, NULL);
            _exit((int)rc);
        }
    }
    for (unsigned i = 0; i < SAVERS; i++) {
        int status = 0;

        CHECK(waitpid(children[i], &status, 0) == children[i]);
        CHECK(WIFEXITED(status));
        CHECK_EQ(WEXITSTATUS(status), DECANT_OK);
        decant_model_close(&models[i]);
    }
    CHECK_EQ(count_files(folder), 1);
    CHECK_OK(decant_open(path, NULL, &read, &err), &err);
    CHECK_EQ(decant_model_count(read), 2);
    decant_model_close(&read);
}
