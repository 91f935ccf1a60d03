/* SIGINT, SIGTERM and SIGHUP: outside a save they end the program at once, inside it they ask the save to undo itself. */
#ifndef CLI_SIGNALS_H
#define CLI_SIGNALS_H

#include <stdbool.h>

/*
 * Installs the handlers. Signals that are ignored stay so (nohup); SIGPIPE ends the program, SIGXFSZ becomes an error of the
 * write that met the limit.
 */
void cli_signals_install(void);

/* While held, the first signal only makes cli_signals_caught() say so. A second ends the program, unless one is heeded. */
void cli_signals_hold(bool hold);

/* As cli_signals_caught(), by who undoes what was begun if there was one: as long as it is held no more signals count. */
int cli_signals_heed(void);

/* The signal that came while held; 0: none. */
int cli_signals_caught(void);

/* Ends the program by a signal, as if nobody had handled it: a shell that ran it in a loop stops the loop too. */
void cli_signals_die(int number);

#endif
