/*
 * waits.h - how often the program waited until all that it had launched was done.
 *
 * A program that waits for each kernel needs the card to be kept for it. A program that launches ahead does not
 * (control/pace.h). The hooks of functions that wait for a whole stream or context count here, before they wait.
 * cuEventSynchronize is not counted: a program that keeps ten kernels queued waits for the event of the oldest one.
 *
 * The counts are of the whole process. Threads that count at once may lose a few.
 */
#ifndef LOADLINE_SHIM_TIME_WAITS_H
#define LOADLINE_SHIM_TIME_WAITS_H

#include <stdint.h>

struct ll_waits {
	uint64_t count;
	uint64_t shortest_ns; /* shortest time between two waits of one thread, since the last ll_waits_take;
				 UINT64_MAX: none */
};

void ll_waits_count(void);

/* Returns the waits since the process began, and the shortest time between two waits since the last call of this
 * function. */
struct ll_waits ll_waits_take(void);

#endif
