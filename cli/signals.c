#include "signals.h"

#include <signal.h>
#include <stddef.h>
#include <unistd.h>

static volatile sig_atomic_t held, caught;

static void on_signal(int number)
{
    if (!held || caught)
        _exit(128 + number);
    caught = number;
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
    held = hold;
}

int cli_signals_caught(void)
{
    return caught;
}
