/*
 * launch.h - what every hook that makes the card work does around the driver's call.
 *
 *     if (ll_launch_is_free())
 *             return ll_real()->cuLaunchKernel(...);
 *     struct ll_launch launch = ll_launch_begin(stream);
 *     return ll_launch_end(&launch, ll_real()->cuLaunchKernel(...));
 *
 * Free is one relaxed load and a branch: nothing is governed, or nobody else wants the card. Otherwise the call waits
 * for its turn in the caller's thread, and is marked. Launches into a stream that is being captured are not work yet and pass.
 */
#ifndef LOADLINE_SHIM_LAUNCH_H
#define LOADLINE_SHIM_LAUNCH_H

#include "shim/reentry.h"
#include "shim/seat.h"

struct ll_launch {
	struct ll_flow *flow; /* NULL: passes */
	struct ll_cu_context *context;
	struct ll_mark_stream stream;
	int errno_before;
};

static inline bool ll_launch_is_free(void)
{
	_Atomic uint32_t *gate = atomic_load_explicit(&ll_seat_gate, memory_order_relaxed);
	if (__builtin_expect(atomic_load_explicit(gate, memory_order_relaxed) == LL_GATE_OPEN, 1) && ll_seat_pass_open())
		return true;
	return ll_reentry_is_inside();
}

/* stream as the driver takes it; for a _ptsz variant of a function NULL is LL_CU_STREAM_PER_THREAD: the hook says so. */
struct ll_launch ll_launch_begin(struct ll_cu_stream *stream);
ll_cu_result ll_launch_end(struct ll_launch *launch, ll_cu_result status);

static inline struct ll_cu_stream *ll_launch_per_thread(struct ll_cu_stream *stream)
{
	return stream ? stream : LL_CU_STREAM_PER_THREAD;
}

#endif
