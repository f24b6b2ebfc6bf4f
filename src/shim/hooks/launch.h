/*
 * launch.h - the steps that every hook of a function that gives the card work takes before and after the driver's call.
 *
 *     LL_LAUNCH_HOOK(cuLaunch, NULL, ll_launch_key(function, 0), (struct ll_cu_function * function), (function))
 *
 * defines the hook of cuLaunch. A launch is free if the process is not governed, or if no other tenant wants the card
 * (gate.h). Otherwise the caller's thread waits for the turn before the driver's call, and the launch is timed. A
 * launch into a stream that is being captured is not work yet, so it passes.
 *
 * The card and the context are those of the stream. They may differ from the thread's current ones, except for the
 * default streams. A launch has a kernel key: a number for the kernel and its grid, or the graph, or the hook. The
 * library remembers how long launches with each key take (kernel_estimates.h). If the stream's context cannot be made
 * current for the timing event (a green context is current to one thread at a time), the launch waits for its turn and
 * is not timed.
 */
#ifndef LOADLINE_SHIM_HOOKS_LAUNCH_H
#define LOADLINE_SHIM_HOOKS_LAUNCH_H

#include "abi/cuda.h"
#include "shim/device_state.h"
#include "shim/interpose/reentry.h"
#include "shim/interpose/work.h"
#include "shim/time/driver_calls.h"
#include "shim/time/gate.h"

/* ---- code that a client of MPS cannot load ---- */

/*
 * Writes one line for a client of MPS if the driver does not accept its code.
 *
 * MPS does not load code that launches kernels from kernels (dynamic parallelism). The driver returns an error when it
 * loads such code. A module is loaded by the call that names it. A library of kernels is loaded only when a context
 * needs it: for its module, a variable, a function, a launch, or a node of a graph. So every hook of such a function
 * passes the driver's result through this file. It does so after its own scopes (reentry.h), because inside a call of
 * the library no line is written.
 */

/* Writes the line once in a process, and only if the process is a client of MPS. symbol: the driver's function that
 * returned the error. */
void ll_children_say(const char *symbol, ll_cu_result status);

/* Returns the driver's result unchanged. */
static inline ll_cu_result ll_children_answer(const char *symbol, ll_cu_result status)
{
	if (__builtin_expect(status == LL_CUDA_ERROR_CDP_NOT_SUPPORTED, 0))
		ll_children_say(symbol, status);
	return status;
}

/* The same for functions that only load or find code. Drivers before CUDA 12.1 have no special error for this and
 * return "not supported". For other functions this error has many causes. */
static inline ll_cu_result ll_children_answer_of_load(const char *symbol, ll_cu_result status)
{
	if (__builtin_expect(status == LL_CUDA_ERROR_NOT_SUPPORTED, 0))
		ll_children_say(symbol, status);
	return ll_children_answer(symbol, status);
}

/* ---- launches ---- */

struct ll_launch {
	struct ll_flow *flow; /* NULL: the launch passes without a gate */
	struct ll_cu_context *context;
	struct ll_timing_stream stream;
	uint64_t kernel_key;
	bool is_elsewhere; /* the context is not the thread's current one */
	int errno_before;
	ll_cu_result refusal; /* the result that the program gets without the driver's call (LL_LAUNCH_CALL) */
	ll_cu_result status;  /* the driver's result; LL_LAUNCH_LOST while the driver's call has not returned */
};

/* The driver's call did not return, because the thread was cancelled in it or an exception unwound it. */
#define LL_LAUNCH_LOST ((ll_cu_result)-1)

/* The stream is about to get an operation that is no kernel (ll_timing_note_gap). may_be_long: it may take longer than
 * a kernel. While the gate is open, only such ones are noted, because launches are not timed one by one then. */
void ll_launch_note_gap_shut(struct ll_cu_stream *stream);
static inline void ll_launch_note_gap(struct ll_cu_stream *stream, bool may_be_long)
{
	bool is_open = ll_gate_is_open();
	if ((is_open && !may_be_long) || ll_reentry_is_inside())
		return;
	if (is_open)
		ll_gate_note_gap();
	else
		ll_launch_note_gap_shut(stream);
}

/* A copy between host and card of so many bytes takes 5 us or longer. */
#define LL_LAUNCH_LONG_COPY (UINT64_C(1) << 18)

/* Around a copy between host and card, for the accounts. It counts as long as the call takes, and at least as long as
 * the bytes take over the bus, because the call of an asynchronous copy returns at once. */
uint64_t ll_launch_copy_begin(void); /* 0: it is not counted */
void ll_launch_copy_end(uint64_t since_ns, uint64_t bytes);

static inline bool ll_launch_is_free(void)
{
	return ll_gate_passes() || ll_reentry_is_inside();
}

/* Call these before and after the driver's call. stream: the handle as the driver's function without _ptsz interprets
 * it. For a _ptsz variant NULL means LL_CU_STREAM_PER_THREAD, so its hook passes this value. */
struct ll_launch ll_launch_begin(struct ll_cu_stream *stream, uint64_t kernel_key);
void ll_launch_end(struct ll_launch *launch);

/* Calls the driver and gives its result. If the launch is refused, gives the refusal instead. */
#define LL_LAUNCH_CALL(launch, call) ((launch).status = (launch).refusal ? (launch).refusal : (call))

/* A launch that ends with its scope, also if the scope is left by cancellation or an exception. */
#define LL_LAUNCH_SCOPE(launch, stream, kernel_key)                                                                    \
	struct ll_launch launch __attribute__((cleanup(ll_launch_end))) = ll_launch_begin(stream, kernel_key)

/* Stops timing events on the stream's card: until the release no thread records one there. */
struct ll_launch_hold {
	struct ll_flow *flow; /* NULL: there are no timing events to stop */
	struct ll_cu_context *context;
	struct ll_timing_stream stream;
};
struct ll_launch_hold ll_launch_hold_timing(struct ll_cu_stream *stream);
void ll_launch_release_timing(const struct ll_launch_hold *hold);

/* Notes that a capture of the stream has begun. Call it before the release. */
void ll_launch_note_capture(const struct ll_launch_hold *hold);

/* Call it before the stream is destroyed. */
void ll_launch_forget_stream(struct ll_cu_stream *stream);

/* Computes a kernel key. Keys are only compared, so any number that differs from the other keys is good. */
static inline uint64_t ll_launch_key(const void *what, uint64_t size)
{
	return ((uint64_t)(uintptr_t)what * UINT64_C(0x9e3779b97f4a7c15)) ^ (size * UINT64_C(0xc2b2ae3d27d4eb4f));
}

/* Memsets and copies of about the same size take about the same time. So their kernel key has the three highest bits of
 * the size. */
static inline uint64_t ll_launch_size(uint64_t bytes)
{
	int shift = bytes < 8 ? 0 : 61 - __builtin_clzll(bytes);
	return bytes >> shift << shift;
}

static inline uint64_t ll_launch_key_of(struct ll_work work)
{
	if (work.function)
		return ll_launch_key(work.function, (uint64_t)work.grid[0] * work.grid[1] * work.grid[2]);
	return work.symbol ? ll_launch_key(work.symbol, ll_launch_size(work.bytes)) : 0;
}

/*
 * Defines the hook of `symbol`, a launch. stream and kernel_key are expressions of its parameters. A thread that passes
 * the open gate notes that it is inside, calls the driver, and notes that it is outside again. It calls no other
 * function of the library. A separate function handles all other launches: a launch that is not free, a launch inside
 * another call, and the first launch of a thread or of the process.
 */
#define LL_LAUNCH_HOOK(symbol, stream, kernel_key, params, args)                                                       \
	static __attribute__((noinline)) ll_cu_result gate_##symbol params                                             \
	{                                                                                                              \
		LL_DRIVER_CALL(symbol);                                                                                \
		if (ll_launch_is_free())                                                                               \
			return ll_real()->symbol args;                                                                 \
		LL_LAUNCH_SCOPE(launch, stream, kernel_key);                                                           \
		return LL_LAUNCH_CALL(launch, ll_real()->symbol args);                                                 \
	}                                                                                                              \
	LL_HOOK_EXPORT ll_cu_result symbol params                                                                      \
	{                                                                                                              \
		const struct ll_real *real = ll_real_if_bound();                                                       \
		struct ll_driver_call *call = ll_driver_call_own;                                                      \
		if (real && ll_driver_call_enter_fast(call, #symbol)) {                                                \
			if (ll_gate_passes()) {                                                                        \
				struct ll_driver_call *entered                                                         \
				    __attribute__((cleanup(ll_driver_call_leave_entered), unused)) = call;             \
				return ll_children_answer(#symbol, real->symbol args);                                 \
			}                                                                                              \
			ll_driver_call_leave(call);                                                                    \
		}                                                                                                      \
		return ll_children_answer(#symbol, gate_##symbol args);                                                \
	}

#endif
