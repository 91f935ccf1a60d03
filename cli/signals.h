/* SIGINT, SIGTERM and SIGHUP: outside a save they end the program at once, inside it they ask the save to undo itself. */
#ifndef CLI_SIGNALS_H
#define CLI_SIGNALS_H

#include <stdbool.h>

/*
 * Installs the handlers. Signals that are ignored stay so (nohup); SIGPIPE ends the program, SIGXFSZ becomes an error of the
 * write that met the limit.
 */
void cli_signals_install(void);

/* While held, the first signal only makes cli_signals_caught() say so; the second still ends the program. */
void cli_signals_hold(bool hold);

/* The signal that came while held; 0: none. */
int cli_signals_caught(void);

#endif
