#include "run.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The whole of a small file of /proc; "" if there is none. */
static void slurp(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? 0 : read(fd, text, size - 1);

    text[len > 0 ? len : 0] = '\0';
    if (fd >= 0)
        close(fd);
}

/* The number behind `key` in a text; 0 if it is not there. */
static uint64_t number_after(const char *text, const char *key)
{
    const char *at = strstr(text, key);

    return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

/* Microseconds that some task waited for `what` since boot. */
static uint64_t stalled(const char *what)
{
    char path[64], text[256];

    snprintf(path, sizeof path, "/proc/pressure/%s", what);
    slurp(path, text, sizeof text);
    return number_after(text, "total=");
}

static uint64_t cached(void)
{
    char text[2048];

    slurp("/proc/meminfo", text, sizeof text);
    return number_after(text, "\nCached:") * 1024;
}

/* Earlier writes and discards slow the next writer: wait until the disks' counters stand still, 5 s at most. */
static void settle(void)
{
    char before[16384], after[16384];

    sync();
    slurp("/proc/diskstats", after, sizeof after);
    for (int i = 0; i < 25; i++) {
        memcpy(before, after, sizeof before);
        nanosleep(&(struct timespec){.tv_nsec = 200 * 1000 * 1000}, NULL);
        slurp("/proc/diskstats", after, sizeof after);
        if (strcmp(before, after) == 0)
            return;
    }
}

static int sync_file(const char *path)
{
    char folder[4096];
    int fd = open(path, O_RDONLY | O_CLOEXEC), failed = fd < 0 || fsync(fd);
    char *slash;

    if (fd >= 0)
        close(fd);
    snprintf(folder, sizeof folder, "%s", path);
    slash = strrchr(folder, '/');
    if (slash)
        *slash = '\0';
    fd = open(slash ? folder : ".", O_RDONLY | O_CLOEXEC);
    failed |= fd < 0 || fsync(fd);
    if (fd >= 0)
        close(fd);
    return failed;
}

/* The child: its standard output goes to `out_fd`. */
static void become(const contestant *who, int out_fd)
{
    char *argv[MOST_ARGS];

    dup2(out_fd, STDOUT_FILENO);
    if (who->function)
        _exit(who->function(who->in, who->out));
    memcpy(argv, who->argv, sizeof argv);
    execvp(argv[0], argv);
    _exit(127);
}

sample run_once(const contestant *who)
{
    sample s = {0};
    char text[65536] = "", path[64];
    uint64_t io = 0, memory = 0, cache = 0;
    struct rusage usage;
    int pipe_fds[2], status = 0;
    size_t used = 0;
    siginfo_t info;
    ssize_t len;
    pid_t child;
    double start;

    s.failed = true;
    if (who->out)
        unlink(who->out);
    if (who->prepare[0] && run_quietly(who->prepare))
        return s;
    settle();
    fflush(NULL);
    if (pipe(pipe_fds))
        return s;
    io = stalled("io");
    memory = stalled("memory");
    cache = cached();

    start = now();
    child = fork();
    if (child == 0) {
        close(pipe_fds[0]);
        become(who, pipe_fds[1]);
    }
    close(pipe_fds[1]);
    while (child > 0 && used + 1 < sizeof text && (len = read(pipe_fds[0], text + used, sizeof text - 1 - used)) > 0)
        used += (size_t)len;
    text[used] = '\0';
    close(pipe_fds[0]);
    if (child < 0 || waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT))
        return s;
    if (who->syncs_output && sync_file(who->out))
        return s;
    s.seconds = now() - start;

    s.io_stall = (double)(stalled("io") - io) / 1e6 / s.seconds;
    s.memory_stall = (double)(stalled("memory") - memory) / 1e6 / s.seconds;
    s.cache = cached() > cache ? cached() - cache : 0;
    if (who->reports_ns) {
        const char *reported = strstr(text, "\"open_ns\"");

        s.seconds = (double)number_after(reported ? reported : "", "\"median\":") / 1e9;
    }
    snprintf(path, sizeof path, "/proc/%d/io", (int)child); /* still there: the child is not reaped yet */
    slurp(path, text, sizeof text);
    s.read = number_after(text, "rchar: ");
    s.written = number_after(text, "wchar: ");
    if (wait4(child, &status, 0, &usage) != child)
        return s;
    s.user = (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec / 1e6;
    s.sys = (double)usage.ru_stime.tv_sec + (double)usage.ru_stime.tv_usec / 1e6;
    s.rss = (uint64_t)usage.ru_maxrss * 1024;
    s.faults = (uint64_t)(usage.ru_minflt + usage.ru_majflt);
    s.failed = !WIFEXITED(status) || WEXITSTATUS(status) != 0 || s.seconds <= 0;
    return s;
}

int run_quietly(const char *const *argv)
{
    pid_t child;
    int status;

    fflush(NULL);
    child = fork();
    if (child == 0) {
        contestant command = {0};
        size_t i = 0;

        for (; argv[i] && i + 1 < MOST_ARGS; i++)
            command.argv[i] = argv[i];
        become(&command, open("/dev/null", O_WRONLY));
    }
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return -1;
    return WEXITSTATUS(status);
}
