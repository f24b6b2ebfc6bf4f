/*
 * waits.h - counts how often the program waited until all launched work of a stream or context was done.
 *
 * The hooks of functions that wait for a whole stream or context count here, before they wait. cuEventSynchronize is
 * not counted, because a program that keeps ten kernels queued waits for the event of the oldest one.
 *
 * The count is of the whole process. Threads that count at once may lose a few.
 */
#ifndef LOADLINE_SHIM_TIME_WAITS_H
#define LOADLINE_SHIM_TIME_WAITS_H

#include <stdint.h>

void ll_waits_count(void);

/* Returns the number of waits since the process began. */
uint64_t ll_waits_read(void);

#endif
