#include "trace/preload/names.h"

#include <stdatomic.h>
#include <string.h>

#include "shim/interpose/real.h"

enum { SLOTS = 4096, TRIES = 4 };

static struct {
	struct slot {
		const void *what; /* the kernel, or the name of the driver's function; NULL: the slot is free */
		uint32_t number;
	} slots[SLOTS];
	unsigned next_replaced; /* which of the slots that a kernel may have is replaced next */
	unsigned forgotten;     /* value of requests at the last clearing */
	_Atomic unsigned requests;
} names;

/* A CUkernel of a library may stand in place of its function. */
static const char *ask_name(const struct ll_work *work)
{
	const char *name = NULL;
	struct ll_cu_function *function = (void *)(uintptr_t)work->function;
	if (!function)
		return work->symbol;
	if (ll_real()->cuFuncGetName(&name, function) == LL_CUDA_SUCCESS && name)
		return name;
	if (ll_real()->cuKernelGetName(&name, (void *)function) == LL_CUDA_SUCCESS && name)
		return name;
	return work->symbol;
}

static void carry_out_requests(void)
{
	unsigned requests = atomic_load_explicit(&names.requests, memory_order_acquire);
	if (names.forgotten == requests)
		return;
	memset(names.slots, 0, sizeof names.slots);
	names.forgotten = requests;
}

static size_t first_slot(const void *what)
{
	return (size_t)((uint64_t)(uintptr_t)what * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

uint32_t ll_trace_names_find(struct ll_trace_writer *writer, const struct ll_work *work)
{
	const void *key = work->function ? (const void *)work->function : work->symbol;
	size_t first = first_slot(key);
	struct slot *free = NULL;
	carry_out_requests();
	for (size_t i = 0; i < TRIES; i++) {
		struct slot *slot = &names.slots[(first + i) % SLOTS];
		if (slot->what == key)
			return slot->number;
		if (!slot->what && !free)
			free = slot;
	}
	if (!free)
		free = &names.slots[(first + names.next_replaced++ % TRIES) % SLOTS];
	*free = (struct slot){.what = key, .number = ll_trace_writer_name(writer, ask_name(work))};
	return free->number;
}

void ll_trace_names_forget(void)
{
	atomic_fetch_add_explicit(&names.requests, 1, memory_order_acq_rel);
}

void ll_trace_names_reset(void)
{
	memset(names.slots, 0, sizeof names.slots);
}
