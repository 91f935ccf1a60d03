#include "progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "out.h"
#include "signals.h"

double cli_clock(void)
{
    struct timespec now = {0};

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void cli_progress_start(cli_progress *p, const char *name, bool quiet)
{
    const char *terminal = getenv("TERM"), *no_colour = getenv("NO_COLOR");

    *p = (cli_progress){.name = name};
    p->shown = !quiet && isatty(STDERR_FILENO) && !(terminal && strcmp(terminal, "dumb") == 0);
    p->colour = !(no_colour && no_colour[0]);
    p->start = p->last = cli_clock();
}

static size_t terminal_width(void)
{
    struct winsize size = {0};

    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

static void draw(cli_progress *p, double now, uint64_t done, uint64_t total)
{
    char so_far[CLI_NUMBER], all[CLI_NUMBER], rate[CLI_NUMBER], left[CLI_NUMBER], tail[256];
    double per_second = (double)done / (now - p->start), part = total ? (double)done / (double)total : 1;
    size_t width = terminal_width(), tail_len, name_width, bar;

    cli_duration(left, per_second > 0 ? (double)(total - done) / per_second : 0);
    tail_len =
        (size_t)snprintf(tail, sizeof tail, " %3.0f %%  %s of %s  %s/s  %s left", part * 100, cli_size(so_far, done),
                         cli_size(all, total), cli_size(rate, (uint64_t)per_second), left);

    fputs("\r\033[K", stderr);
    if (width < tail_len + 24) {
        fprintf(stderr, "%3.0f %%", part * 100);
    } else {
        name_width = cli_put_text(stderr, p->name, strlen(p->name), (width - tail_len) / 2);
        bar = width - tail_len - name_width - 3;
        bar = bar < 30 ? bar : 30;
        fputs(p->colour ? " \033[32m" : " ", stderr);
        for (size_t i = 0; i < bar; i++)
            fputc((double)i < part * (double)bar ? '#' : '.', stderr);
        fputs(p->colour ? "\033[0m" : "", stderr);
        fputs(tail, stderr);
    }
    fflush(stderr);
    p->drawn = true;
}

int cli_progress_step(void *progress, uint64_t done, uint64_t total)
{
    cli_progress *p = progress;
    double now = cli_clock();

    if (p->shown && now - p->last >= 0.1) {
        draw(p, now, done, total);
        p->last = now;
    }
    return cli_signals_heed() ? DECANT_STOP_AND_KEEP : 0;
}

void cli_progress_end(cli_progress *p)
{
    if (p->drawn)
        fputs("\r\033[K", stderr);
    p->drawn = false;
}
