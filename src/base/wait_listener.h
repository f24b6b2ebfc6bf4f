/*
 * wait_listener.h - how the governing library tells another library of ours in the same process that a launch has
 * waited. The other library exports a function of this name; `loadline trace` has one (libloadline-trace.so).
 */
#ifndef LOADLINE_BASE_WAIT_LISTENER_H
#define LOADLINE_BASE_WAIT_LISTENER_H

#include <stdint.h>

#define LL_WAIT_LISTENER "loadline_launch_waited"

/* The calling thread's launch onto the card, or the process's work on it, has waited for its turn, its share or room in
 * the queue, from start_ns to end_ns on CLOCK_MONOTONIC. device: CUDA's ordinal. It does not wait, and calls no
 * function of the driver. */
typedef void ll_wait_listener(int device, const char *uuid, uint64_t start_ns, uint64_t end_ns);

#endif
