#include "signals.h"

#include <signal.h>
#include <stddef.h>

/* UNDOING: the save has been told, and is not to be disturbed at it. */
enum { FREE, HELD, UNDOING };

static volatile sig_atomic_t state, caught;

static void on_signal(int number)
{
    if (state == HELD && !caught)
        caught = number;
    else if (state != UNDOING)
        cli_signals_die(number);
}

void cli_signals_install(void)
{
    static const int stops[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction ours = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, old;

    sigemptyset(&ours.sa_mask);
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++)
        if (sigaction(stops[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(stops[i], &ours, NULL);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_IGN);
}

void cli_signals_hold(bool hold)
{
    state = hold ? HELD : FREE;
}

int cli_signals_heed(void)
{
    if (caught)
        state = UNDOING;
    return caught;
}

int cli_signals_caught(void)
{
    return caught;
}

void cli_signals_die(int number)
{
    signal(number, SIG_DFL);
    raise(number); /* in its own handler it waits until that returns */
}
