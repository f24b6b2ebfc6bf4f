/*
 * library.h - the preloaded library in this program itself. It tells a program under a memory limit that its card is as
 * large as the limit; what is left on the card is read without it. This program launches nothing on a card.
 */
#ifndef LOADLINE_CLI_LIMITS_LIBRARY_H
#define LOADLINE_CLI_LIMITS_LIBRARY_H

#include <stdbool.h>

/* If LD_PRELOAD names the library, executes this program again without it, and does not return. Returns if it does not,
 * or that cannot be done. */
void ll_limits_leave_library(void);

/* Whether the library is in this process: /etc/ld.so.preload may name it too. */
bool ll_limits_has_library(void);

#endif
