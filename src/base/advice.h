/*
 * advice.h - the commands that loadline prints for the user to type. Under the simulated driver each of them gets --sim
 * too.
 *
 * `loadline --sim=NAME` sets LOADLINE_SIM to its own option, for this process and all that it starts, including the
 * libraries in users' programs. The code that makes an advice does not know whether the card is simulated.
 *
 * A command of loadline is recognised at the beginning of a text, or after one of: ` ' $( ": " "-- ", or the Chinese
 * colon.
 */
#ifndef LOADLINE_BASE_ADVICE_H
#define LOADLINE_BASE_ADVICE_H

#include <stddef.h>

#define LL_SIM_VARIABLE "LOADLINE_SIM"

/* The library that answers as the simulated kernel driver, where it is preloaded (cli/common/env_sim.h). */
#define LL_SIM_KERNEL_LIBRARY "libloadline-sim-kernel.so"

/* Copies the text, cut at size - 1 bytes, and ends it with a NUL. Under the simulated driver it adds the user's --sim
 * to each command of loadline that has none, and replaces a command for a real card by the simulator's. Returns the
 * length that the whole text has. */
size_t ll_advice_copy(char *ret_text, size_t size, const char *text);

#endif
