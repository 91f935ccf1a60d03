#define _POSIX_C_SOURCE 200809L /* C11 hides signals and their masks */

#include "base/thread.h"

#include <signal.h>

/* A thread begins with the mask of the one that starts it. */
bool dcn_thread_start(dcn_thread *thread, void *(*run)(void *ctx), void *ctx)
{
    sigset_t all, own;
    int failed;

    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &own))
        return false;
    failed = pthread_create(thread, NULL, run, ctx);
    pthread_sigmask(SIG_SETMASK, &own, NULL);
    return !failed;
}
