/*
 * trace.h - `loadline trace` in a program that the shim is in front of: waits at the gate, and, where CUPTI does not
 * serve, the times of what the card does, by timing events.
 *
 * Nothing of it is done unless LOADLINE_TRACE is set. What by events means is in trace_events.h; whether it is needed
 * is known only once the driver was initialised, for CUPTI begins in cuInit: so it is decided at the first launch into
 * a context, and until then the gate of all launches stays shut (device_state.h). When it is needed the gate stays so:
 * every launch comes to launch.c, which asks the turn first and then has the launch timed.
 *
 * In a forked child all of it begins anew.
 */
#ifndef LOADLINE_SHIM_TRACE_TRACE_H
#define LOADLINE_SHIM_TRACE_TRACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/cuda.h"
#include "trace/record.h"

enum ll_trace_answer {
	LL_TRACE_UNDECIDED, /* not yet known, or known to be decided later */
	LL_TRACE_NOTHING,
	LL_TRACE_GATE_ONLY,
	LL_TRACE_GATE_AND_EVENTS,
};

extern _Atomic int ll_trace_answer;

/* Whether launches may have to be timed: the gate may not be opened then. release is called once it is known that they
 * need not be. */
bool ll_trace_holds_gate(void (*release)(void));

/* Decides, if that can be done by now. */
int ll_trace_decide(void);

/* Whether launches are timed. One load once it is decided. */
static inline bool ll_trace_is_by_events(void)
{
	int answer = atomic_load_explicit(&ll_trace_answer, memory_order_relaxed);
	if (__builtin_expect(answer == LL_TRACE_UNDECIDED, 0))
		answer = ll_trace_decide();
	return answer == LL_TRACE_GATE_AND_EVENTS;
}

/* It is decided that launches are not timed. */
static inline bool ll_trace_is_without_events(void)
{
	int answer = atomic_load(&ll_trace_answer);
	return answer == LL_TRACE_NOTHING || answer == LL_TRACE_GATE_ONLY;
}

static inline bool ll_trace_has_gate(void)
{
	int answer = atomic_load_explicit(&ll_trace_answer, memory_order_relaxed);
	return answer == LL_TRACE_GATE_ONLY || answer == LL_TRACE_GATE_AND_EVENTS;
}

/* A launch onto the card has waited from start_ns to end_ns. Shorter ones than LL_TRACE_LEAST_WAIT_NS are what asking
 * costs. */
#define LL_TRACE_LEAST_WAIT_NS UINT64_C(20000)
void ll_trace_waited(ll_cu_device device, const char *uuid, uint64_t start_ns, uint64_t end_ns);

/* What the next launch of this thread is, noted by its hook; symbol: the driver's function. */
struct ll_trace_what {
	const char *symbol; /* NULL: nothing was noted */
	const struct ll_cu_function *function;
	uint64_t bytes;
	unsigned grid[3], block[3], dynamic_shared_bytes;
	enum ll_trace_kind kind;
	uint8_t from, to; /* enum ll_cupti_memory_kind */
};
extern _Thread_local struct ll_trace_what ll_trace_next __attribute__((tls_model("initial-exec")));

static inline void ll_trace_note(struct ll_trace_what what)
{
	if (ll_trace_is_by_events())
		ll_trace_next = what;
}

/* The device's memory came or went: a row of its own. The driver's status is returned as it is. */
void ll_trace_note_memory(enum ll_trace_kind kind, ll_cu_deviceptr address, uint64_t bytes);

static inline ll_cu_result ll_trace_allocated(ll_cu_result status, const ll_cu_deviceptr *address, size_t bytes)
{
	if (ll_trace_is_by_events() && status == LL_CUDA_SUCCESS)
		ll_trace_note_memory(LL_TRACE_ALLOCATE, *address, bytes);
	return status;
}

static inline ll_cu_result ll_trace_freed(ll_cu_result status, ll_cu_deviceptr address)
{
	if (ll_trace_is_by_events() && status == LL_CUDA_SUCCESS && address)
		ll_trace_note_memory(LL_TRACE_FREE, address, 0);
	return status;
}

#endif
