#include "trace/preload/names.h"

#include <stdatomic.h>
#include <string.h>

#include "shim/interpose/real.h"

enum { PLACES = 4096, TRIES = 4 };

static struct {
	struct place {
		const void *what; /* the kernel, or the text of the driver's function; NULL: free */
		uint32_t number;
	} places[PLACES];
	unsigned next_out;  /* of the places that a kernel may have, the one that is given up next */
	unsigned forgotten; /* requests that were carried out */
	_Atomic unsigned requests;
} names;

/* A library's kernel may stand for its function. */
static const char *ask(const struct ll_work *work)
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
	memset(names.places, 0, sizeof names.places);
	names.forgotten = requests;
}

static size_t first_place(const void *what)
{
	return (size_t)((uint64_t)(uintptr_t)what * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

uint32_t ll_trace_names_find(struct ll_trace_writer *writer, const struct ll_work *work)
{
	const void *key = work->function ? (const void *)work->function : work->symbol;
	size_t first = first_place(key);
	struct place *free = NULL;
	carry_out_requests();
	for (size_t i = 0; i < TRIES; i++) {
		struct place *place = &names.places[(first + i) % PLACES];
		if (place->what == key)
			return place->number;
		if (!place->what && !free)
			free = place;
	}
	if (!free)
		free = &names.places[(first + names.next_out++ % TRIES) % PLACES];
	*free = (struct place){.what = key, .number = ll_trace_writer_name(writer, ask(work))};
	return free->number;
}

void ll_trace_names_forget(void)
{
	atomic_fetch_add_explicit(&names.requests, 1, memory_order_acq_rel);
}

void ll_trace_names_reset(void)
{
	memset(names.places, 0, sizeof names.places);
}
