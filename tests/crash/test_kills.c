#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "api/env.h"
#include "support/models.h"

/*
 * On the real system: processes that give files up are killed at any time, and those that recover what they leave are, too.
 * All ends as it was or as it was to be, byte for byte. Each seed is a run: what is saved, who does it (the program,
 * $DECANT, or the library in small batches), when it is killed (within the time that such a run takes here), which way it
 * is recovered. KILLS=FOLDER,FIRST,COUNT[,TIMES] runs these seeds, so often, in this empty folder; cli/test_consume_stopped.py
 * makes file systems for it.
 */

enum { INPUTS = 3, TENSORS = 3, PATH = 512, SIZES = 3, DOERS = 2, UNIT = 65536 };

static const size_t sizes[SIZES] = {700, 30000, 90001}; /* of a tensor: all in one batch, or up to thirteen */

/* What lies at a path. */
typedef struct content {
    char path[PATH + 32];
    uint8_t *data;
    size_t len;
    struct stat facts; /* of an input, or what the output replaces, before the save; of what is not there st_ino is 0 */
} content;

typedef struct run {
    const char *folder;
    uint64_t chance;
    unsigned size, count;
    bool by_program;
    content inputs[INPUTS], out, old; /* as it is to be; what it replaces */
} run;

typedef enum state { AS_BEFORE, AS_WANTED, BETWEEN } state;

/* What it is that a kill falls into. A save spends most of its time on getting there: half of the kills are after that. */
typedef enum stretch { A_SAVE, A_SAVE_FROM_ITS_JOURNAL, A_RECOVERY, STRETCHES } stretch;

/* What the runs came to. */
typedef struct tally {
    unsigned runs, killed, recoveries_killed, ends[2][2], other_way;
    double took[STRETCHES][DOERS][SIZES]; /* seconds, if it is let */
} tally;

/* --- what is there -------------------------------------------------------------------------------------------------- */

static uint64_t some(run *r, uint64_t below)
{
    return test_random(&r->chance) % below;
}

static void put_file(content *c)
{
    FILE *file = fopen(c->path, "wb");

    CHECK(file && fwrite(c->data, 1, c->len, file) == c->len);
    CHECK_EQ(fclose(file), 0);
}

static void make_input(run *r, content *c, decant_model *model, uint64_t age)
{
    static const mode_t modes[] = {0644, 0600, 0640};
    struct timespec times[2] = {{1000000000, 0}, {1000000000, (long)age}};
    decant_error err;

    CHECK_OK(model_render(&dcn_safetensors, model, NULL, &c->data, &c->len, &err), &err);
    put_file(c);
    CHECK_EQ(chmod(c->path, modes[some(r, 3)]), 0);
    CHECK_EQ(utimensat(AT_FDCWD, c->path, times, 0), 0);
    CHECK_EQ(stat(c->path, &c->facts), 0);
}

static void start_over(run *r, const char *folder, uint64_t seed)
{
    const dcn_format *format;
    decant_model *whole = NULL;
    decant_error err;

    *r = (run){.folder = folder, .chance = seed};
    r->size = (unsigned)some(r, SIZES);
    r->count = 1 + (unsigned)some(r, INPUTS);
    r->by_program = getenv("DECANT") && some(r, 2);
    /* one file as it is would be shared where that can be done, and no journal written */
    format = r->count > 1 && some(r, 2) ? &dcn_safetensors : &dcn_burnpack;
    CHECK_OK(decant_model_create(&whole, &err), &err);
    for (unsigned i = 0; i < r->count; i++) {
        decant_model *model = NULL;

        CHECK_OK(decant_model_create(&model, &err), &err);
        for (unsigned k = 0; k < TENSORS; k++) {
            uint64_t bytes = sizes[r->size], noise = test_random(&r->chance);
            char name[32];

            snprintf(name, sizeof name, "%u.%u", i, k);
            model_add_stream(model, name, DECANT_U8, 1, &bytes, noise);
            model_add_stream(whole, name, DECANT_U8, 1, &bytes, noise);
        }
        snprintf(r->inputs[i].path, sizeof r->inputs[i].path, "%s/%u.safetensors", folder, i);
        make_input(r, &r->inputs[i], model, 1000 * seed + i);
        decant_model_close(&model);
    }
    snprintf(r->out.path, sizeof r->out.path, "%s/out.%s", folder, format->extensions[0]);
    CHECK_OK(model_render(format, whole, NULL, &r->out.data, &r->out.len, &err), &err);
    decant_model_close(&whole);
    if (some(r, 3) == 0) {
        r->old.len = 5000;
        r->old.data = calloc(1, r->old.len);
        memcpy(r->old.path, r->out.path, sizeof r->old.path);
        put_file(&r->old);
        CHECK_EQ(stat(r->old.path, &r->old.facts), 0);
    }
}

static void forget(run *r)
{
    for (unsigned i = 0; i < r->count; i++) {
        unlink(r->inputs[i].path);
        free(r->inputs[i].data);
    }
    unlink(r->out.path);
    free(r->out.data);
    free(r->old.data);
}

/* Whether these bytes are what lies there. */
static bool holds(const content *c)
{
    struct stat facts;
    uint8_t *data;
    size_t len;
    bool same;

    if (!c->data || stat(c->path, &facts))
        return false;
    data = test_data(c->path, &len);
    same = len == c->len && memcmp(data, c->data, len) == 0;
    free(data);
    return same;
}

static bool exists(const content *c)
{
    return access(c->path, F_OK) == 0;
}

/* It is the very file that it was, too. */
static bool is_as_before(const content *c)
{
    struct stat now;

    return holds(c) && stat(c->path, &now) == 0 && now.st_ino == c->facts.st_ino && now.st_mode == c->facts.st_mode &&
           now.st_mtim.tv_sec == c->facts.st_mtim.tv_sec && now.st_mtim.tv_nsec == c->facts.st_mtim.tv_nsec;
}

static size_t found; /* files in the folder */

static int count_one(const char *path, const struct stat *facts, int type, struct FTW *walk)
{
    (void)path;
    (void)facts;
    (void)walk;
    found += type != FTW_D && type != FTW_DNR;
    return 0;
}

static int show_one(const char *path, const struct stat *facts, int type, struct FTW *walk)
{
    if (type != FTW_D && type != FTW_DNR)
        fprintf(stderr, "%s: inode %ju, mode %o, %jd bytes, changed %jd.%09ld\n", path + walk->base,
                (uintmax_t)facts->st_ino, facts->st_mode & 07777, (intmax_t)facts->st_size,
                (intmax_t)facts->st_mtim.tv_sec, facts->st_mtim.tv_nsec);
    return 0;
}

static state state_of(const run *r)
{
    size_t before = 0, outs = exists(&r->out);

    found = 0;
    CHECK_EQ(nftw(r->folder, count_one, 16, FTW_PHYS), 0);
    for (unsigned i = 0; i < r->count; i++)
        before += is_as_before(&r->inputs[i]);
    if (found == before + outs && before == r->count && (r->old.data ? is_as_before(&r->old) : !outs))
        return AS_BEFORE;
    return found == 1 && holds(&r->out) ? AS_WANTED : BETWEEN;
}

/* What opens under a name that a program would try is whole (I2, I11). NULL, or what is not. */
static const char *what_is_torn(const run *r)
{
    for (unsigned i = 0; i < r->count; i++)
        if (exists(&r->inputs[i]) && !holds(&r->inputs[i]))
            return r->inputs[i].path;
    return exists(&r->out) && !holds(&r->out) && !holds(&r->old) ? r->out.path : NULL;
}

/* --- who is killed --------------------------------------------------------------------------------------------------- */

static dcn_env in_small_batches(void)
{
    dcn_env env = dcn_env_default();

    env.cut.slot = UNIT / 4;
    env.cut.batch = env.cut.least_batch = UNIT;
    return env;
}

static decant_status save(const run *r)
{
    dcn_env env = in_small_batches();
    decant_open_options opening = {.size = sizeof opening, .owned = true};
    decant_save_options saving = DECANT_SAVE_OPTIONS_INIT;
    dcn_target target = {.kind = DCN_TO_FILE, .path = r->out.path};
    decant_model *models[INPUTS] = {0}, *whole = NULL;
    decant_status rc = DECANT_OK;

    saving.replace = 1;
    saving.consume = DECANT_CONSUME_REQUIRE;
    for (unsigned i = 0; i < r->count && rc == DECANT_OK; i++)
        rc = dcn_open(&env, r->inputs[i].path, &opening, &models[i], NULL);
    if (rc == DECANT_OK)
        rc = decant_transform((const decant_model *const *)models, NULL, r->count, NULL, &whole, NULL);
    for (unsigned i = 0; i < r->count; i++)
        decant_model_close(&models[i]);
    if (rc == DECANT_OK)
        rc = dcn_save(&env, whole, &target, &saving, false, NULL, NULL);
    decant_model_close(&whole);
    return rc;
}

static decant_status recover(const run *r, decant_direction direction)
{
    dcn_env env = in_small_batches();
    decant_recover_options options = {.size = sizeof options, .direction = direction};
    decant_recovery *recovery = NULL;
    decant_status rc = dcn_recover(&env, r->out.path, &options, &recovery, NULL);

    decant_recovery_close(&recovery);
    return rc;
}

static _Noreturn void be_program(const run *r, decant_direction direction)
{
    const char *decant = getenv("DECANT"), *out = r->out.path;
    bool resumes = direction == DECANT_RECOVER_RESUME;

    if (direction == DECANT_RECOVER_SHOW)
        execl(decant, "decant", "convert", "-fqo", out, "--consume", r->inputs[0].path,
              r->count > 1 ? r->inputs[1].path : NULL, r->count > 2 ? r->inputs[2].path : NULL, (char *)NULL);
    else
        execl(decant, "decant", "recover", resumes ? "--resume" : "--undo", "-q", out, (char *)NULL);
    _exit(99);
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

enum { KILLED = -1, REFUSED_WAY = 4 };

static void wait_for_journal(const run *r, pid_t child)
{
    char path[PATH + 64];
    siginfo_t ended = {0};

    snprintf(path, sizeof path, "%s.decant-journal", r->out.path);
    while (access(path, F_OK) && waitid(P_PID, (id_t)child, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && !ended.si_pid)
        sched_yield();
}

/*
 * A save (SHOW), or a recovery, in a process of its own. The time that it took, if it is let, is what the next ones are
 * killed within.
 *
 * @return its exit status, of one that cannot go this way REFUSED_WAY; or KILLED
 */
static int act(run *r, tally *t, decant_direction direction, bool kills)
{
    stretch of = direction != DECANT_RECOVER_SHOW ? A_RECOVERY : some(r, 2) ? A_SAVE : A_SAVE_FROM_ITS_JOURNAL;
    double *took = &t->took[of][r->by_program][r->size], begun = now();
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        decant_status rc;

        if (!freopen("/dev/null", "w", stderr) || r->by_program)
            be_program(r, direction);
        rc = direction == DECANT_RECOVER_SHOW ? save(r) : recover(r, direction);
        _exit(rc == DECANT_OK ? 0 : rc == DECANT_BAD_CALL ? REFUSED_WAY : 3);
    }
    CHECK(child > 0);
    if (of == A_SAVE_FROM_ITS_JOURNAL) {
        wait_for_journal(r, child);
        begun = now();
    }
    if (kills && *took > 0) {
        double delay = *took * (double)some(r, 1100) / 1000;
        struct timespec wait = {(time_t)delay, (long)((delay - (double)(time_t)delay) * 1e9)};

        nanosleep(&wait, NULL);
        kill(child, SIGKILL);
    }
    CHECK(waitpid(child, &status, 0) == child);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        return KILLED;
    *took = *took > 0 ? 0.9 * *took + 0.1 * (now() - begun) : now() - begun;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

/* --- a run ----------------------------------------------------------------------------------------------------------- */

/* The other way where it is too late for this one, or too early. */
static const char *recover_at_last(run *r, tally *t, decant_direction way)
{
    state wanted = way == DECANT_RECOVER_RESUME ? AS_WANTED : AS_BEFORE;
    int code = act(r, t, way, false);

    if (code == REFUSED_WAY) {
        t->other_way++;
        way = way == DECANT_RECOVER_RESUME ? DECANT_RECOVER_UNDO : DECANT_RECOVER_RESUME;
        wanted = wanted == AS_WANTED ? AS_BEFORE : AS_WANTED;
        code = act(r, t, way, false);
    }
    if (code)
        return "it cannot be recovered";
    return state_of(r) == wanted ? NULL : "it is neither as before nor as wanted";
}

static decant_direction some_way(run *r)
{
    return some(r, 2) ? DECANT_RECOVER_RESUME : DECANT_RECOVER_UNDO;
}

/* NULL, or what went wrong. */
static const char *run_killed(run *r, tally *t)
{
    const char *why = NULL;
    int code = act(r, t, DECANT_RECOVER_SHOW, true);
    decant_direction way;

    if (code != KILLED)
        return code == 0 && state_of(r) == AS_WANTED ? NULL : "without being killed it is not as wanted";
    t->killed++;
    for (uint64_t more = some(r, 3); more && state_of(r) == BETWEEN && !(why = what_is_torn(r)); more--) {
        code = act(r, t, some_way(r), true);
        t->recoveries_killed += code == KILLED;
        if (code != KILLED && code != 0 && code != REFUSED_WAY)
            return "it cannot be recovered";
    }
    way = some_way(r);
    if (why || (why = what_is_torn(r)) || (state_of(r) == BETWEEN && (why = recover_at_last(r, t, way))))
        return why;
    t->ends[way == DECANT_RECOVER_RESUME][state_of(r)]++;
    return NULL;
}

static void run_all(const char *folder, uint64_t first, uint64_t count, tally *t)
{
    for (uint64_t seed = first; seed < first + count; seed++) {
        const char *why;
        run r;

        start_over(&r, folder, seed);
        t->runs++;
        if ((why = run_killed(&r, t))) {
            nftw(folder, show_one, 16, FTW_PHYS);
            test_fail(__FILE__, __LINE__, "%s\n    KILLS=%s,%" PRIu64 ",1,1000", why, folder, seed);
        }
        forget(&r);
    }
}

TEST(kills__of_consuming_saves_and_of_recoveries_leave_what_ends_as_it_was_or_as_it_was_to_be)
{
    const char *asked = getenv("KILLS");
    uint64_t first = 1, count = 100, times = 1;
    char folder[PATH];
    tally t = {0};

    if (!asked)
        snprintf(folder, sizeof folder, "%s", test_folder());
    else
        CHECK(sscanf(asked, "%400[^,],%" SCNu64 ",%" SCNu64 ",%" SCNu64, folder, &first, &count, &times) >= 3);
    prctl(PR_SET_TIMERSLACK, 1); /* it is about less than the 50 us that a sleep takes more otherwise */
    for (uint64_t i = 0; i < times; i++)
        run_all(folder, first, count, &t);
    printf("%u runs, %u killed, %u recoveries killed; "
           "undo: %u as before, %u as wanted; resume: %u, %u; %u the other way\n",
           t.runs, t.killed, t.recoveries_killed, t.ends[0][AS_BEFORE], t.ends[0][AS_WANTED], t.ends[1][AS_BEFORE],
           t.ends[1][AS_WANTED], t.other_way);
    if (count >= 100) {
        CHECK(t.killed > count / 10 && t.recoveries_killed > 0);
        CHECK(t.ends[0][AS_BEFORE] > 0 && t.ends[1][AS_WANTED] > 0);
    }
}
