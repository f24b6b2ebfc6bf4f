/*
 * host_functions.h - the host functions of the program's streams (cuLaunchHostFunc, cuStreamAddCallback) that run now.
 *
 * A host function may need a lock that a thread holds around its launches, as Python's callbacks need the
 * interpreter's. If that thread is stopped at its next launch (shim/time/driver_calls.h), the host function never ends,
 * and neither does the stream's work. So whoever stops the program looks here, and lets it go on for a moment.
 *
 * Only an evictable program is stopped, so only its host functions are seen. Host functions in graphs are not.
 */
#ifndef LOADLINE_SHIM_RESIDENCY_HOST_FUNCTIONS_H
#define LOADLINE_SHIM_RESIDENCY_HOST_FUNCTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda.h"

/* A host function that was given to the driver: one of the two members is set. */
struct ll_host_function {
	ll_cu_host_fn function;
	ll_cu_stream_callback callback;
	void *user;
};

/* Returns a copy, which the driver gets in place of `user`, with ll_host_function_run or ll_host_callback_run in place
 * of the function. NULL: the program's own words are to be passed on. If the driver refuses, the copy is lost. */
struct ll_host_function *ll_host_function_new(struct ll_cu_stream *stream, struct ll_host_function function);

/* Call the function, and free the copy. In a thread of the driver. */
void ll_host_function_run(void *function);
void ll_host_callback_run(struct ll_cu_stream *stream, ll_cu_result status, void *function);

/* Whether host functions run, and none has begun or ended since that moment (CLOCK_MONOTONIC). */
bool ll_host_functions_stand_since(uint64_t since_ns);

#endif
