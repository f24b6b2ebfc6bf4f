#include "shim/time/waits.h"

#include <stdatomic.h>

#include "base/clock.h"

static _Atomic uint64_t counted, shortest_ns = UINT64_MAX;
/* Of this thread; 0: it has not waited yet. initial-exec, because reading it must not allocate. */
static _Thread_local uint64_t last_ns __attribute__((tls_model("initial-exec")));

void ll_waits_count(void)
{
	uint64_t now_ns = ll_now_ns();
	uint64_t since_ns = last_ns ? now_ns - last_ns : UINT64_MAX;
	last_ns = now_ns;
	if (since_ns < atomic_load_explicit(&shortest_ns, memory_order_relaxed))
		atomic_store_explicit(&shortest_ns, since_ns, memory_order_relaxed);
	uint64_t count = atomic_load_explicit(&counted, memory_order_relaxed);
	atomic_store_explicit(&counted, count + 1, memory_order_relaxed);
}

struct ll_waits ll_waits_take(void)
{
	return (struct ll_waits){
	    .count = atomic_load_explicit(&counted, memory_order_relaxed),
	    .shortest_ns = atomic_exchange_explicit(&shortest_ns, UINT64_MAX, memory_order_relaxed),
	};
}
