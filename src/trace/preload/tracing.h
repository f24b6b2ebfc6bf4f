/*
 * tracing.h - whether libloadline-events.so times what this process does, and the rows of a trace about memory.
 *
 * `loadline trace` preloads the library where CUPTI may not serve. What timing by events means is in events.h. Whether
 * it is needed is known only once the driver was initialised, for CUPTI begins in cuInit: so it is decided at the first
 * hooked call with a context, and until then every hook asks. In a process that is not traced by events every hook
 * passes straight on. In a forked child all of it begins anew.
 *
 * A program under the limits of `loadline run` has the governing library too, which stands in front of this one
 * (real.h): a launch has waited for its turn when it comes here.
 */
#ifndef LOADLINE_TRACE_PRELOAD_TRACING_H
#define LOADLINE_TRACE_PRELOAD_TRACING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda.h"
#include "trace/record.h"

enum ll_trace_answer {
	LL_TRACE_UNDECIDED, /* not yet known */
	LL_TRACE_WITHOUT_EVENTS,
	LL_TRACE_BY_EVENTS,
};

extern _Atomic int ll_trace_answer;

/* Decides, if that can be done by now. */
int ll_trace_decide(void);

/* Whether launches are timed. One load once it is decided. */
static inline bool ll_trace_is_by_events(void)
{
	int answer = atomic_load_explicit(&ll_trace_answer, memory_order_relaxed);
	if (__builtin_expect(answer == LL_TRACE_UNDECIDED, 0))
		answer = ll_trace_decide();
	return answer == LL_TRACE_BY_EVENTS;
}

/* The device's memory came or went (LL_TRACE_ALLOCATE, LL_TRACE_FREE): a row of its own. bytes: of what came; what goes
 * is looked up. Within a LL_REENTRY_SCOPE. */
void ll_trace_note_memory(enum ll_trace_kind kind, ll_cu_deviceptr address, uint64_t bytes);

#endif
