#include "shim/time/waits.h"

#include <stdatomic.h>

static _Atomic uint64_t counted;

void ll_waits_count(void)
{
	uint64_t count = atomic_load_explicit(&counted, memory_order_relaxed);
	atomic_store_explicit(&counted, count + 1, memory_order_relaxed);
}

uint64_t ll_waits_read(void)
{
	return atomic_load_explicit(&counted, memory_order_relaxed);
}
