/*
 * tracing.h - decides whether libloadline-events.so times the launches of this process, and records its allocations and
 * frees.
 *
 * `loadline trace` preloads the library if CUPTI may not work. CUPTI starts in cuInit, so the decision is made after
 * it: at the first hooked call that has a context. Until then each hook asks. In a process that is not traced by events
 * each hook only calls the driver. A forked child decides again. events.h has the timing.
 *
 * A program under the limits of `loadline run` also has the governing library, which comes before this one (real.h). So
 * a launch has waited for its turn when it comes here.
 */
#ifndef LOADLINE_TRACE_PRELOAD_TRACING_H
#define LOADLINE_TRACE_PRELOAD_TRACING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda.h"
#include "trace/record.h"

enum ll_trace_answer {
	LL_TRACE_UNDECIDED, /* not decided yet */
	LL_TRACE_WITHOUT_EVENTS,
	LL_TRACE_BY_EVENTS,
};

extern _Atomic int ll_trace_answer;

/* Decides, if the process has a context. Returns the answer, which may still be LL_TRACE_UNDECIDED. */
int ll_trace_decide(void);

/* Whether launches are timed. After the decision this is one load. */
static inline bool ll_trace_is_by_events(void)
{
	int answer = atomic_load_explicit(&ll_trace_answer, memory_order_relaxed);
	if (__builtin_expect(answer == LL_TRACE_UNDECIDED, 0))
		answer = ll_trace_decide();
	return answer == LL_TRACE_BY_EVENTS;
}

/* Records an allocation or a free of device memory (LL_TRACE_ALLOCATE, LL_TRACE_FREE). bytes: size of the allocation;
 * the size of a free is looked up. Call it inside a LL_REENTRY_SCOPE. */
void ll_trace_note_memory(enum ll_trace_kind kind, ll_cu_deviceptr address, uint64_t bytes);

#endif
