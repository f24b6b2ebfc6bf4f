#include "trace/preload/preload.h"

#include <stdlib.h>
#include <string.h>

#include "abi/cupti.h"
#include "base/clock.h"
#include "base/guest.h"
#include "base/scope.h"
#include "shim/interpose/real.h"

enum { ADDRESSES = 4096 };

_Atomic int ll_trace_answer;

static struct {
	pthread_mutex_t lock; /* guards the decision, and the fields below */
	struct ll_trace_writer *writer;
	/* Sizes of allocations, because the driver does not tell the size of a free. Of two addresses with the same
	 * index the later one stays.
	 */
	struct {
		ll_cu_deviceptr address;
		uint64_t bytes;
	} sizes[ADDRESSES];
} trace = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void reset_in_child(struct ll_fork_item *item)
{
	(void)item;
	pthread_mutex_init(&trace.lock, NULL);
	if (trace.writer)
		ll_trace_writer_forget(trace.writer);
	trace.writer = NULL;
	ll_trace_events_reset();
	atomic_store(&ll_trace_answer, LL_TRACE_UNDECIDED);
}

static struct ll_fork_item fork_item = {.in_child = reset_in_child};

/* A function of libloadline-trace.so, if that is in the process, preloaded or loaded by the driver. */
static void *find_function(const char *name)
{
	static const char *const stems[] = {"libloadline-trace.so", NULL};
	struct ll_elf_object object;
	return ll_elf_find(stems, &object) ? ll_elf_function(&object, name) : NULL;
}

static bool is_by_cupti(void)
{
	int (*is_on)(void) = NULL;
	void *address = find_function(LL_TRACE_IS_ON);
	memcpy(&is_on, &address, sizeof address);
	return is_on && is_on();
}

/* Finishes the trace at exit, and in libloadline-trace.so at _exit, _Exit and quick_exit, which run no exit handlers.
 */
static void finish_at_end(void)
{
	void (*set_end)(void (*)(void)) = NULL;
	void *address = find_function(LL_TRACE_AT_END);
	memcpy(&set_end, &address, sizeof address);
	if (set_end)
		set_end(ll_trace_events_finish);
	atexit(ll_trace_events_finish);
}

static int choose_answer(void)
{
	const char *folder = getenv(LL_TRACE_FOLDER), *by = getenv(LL_TRACE_BY);
	struct ll_cu_context *context = NULL;
	if (!folder || !*folder || (by && strcmp(by, "cupti") == 0))
		return LL_TRACE_WITHOUT_EVENTS;
	if (ll_real()->cuCtxGetCurrent(&context) != LL_CUDA_SUCCESS || !context)
		return LL_TRACE_UNDECIDED;
	bool is_asked = by && strcmp(by, "events") == 0;
	if ((!is_asked && is_by_cupti()) || ll_trace_writer_open(LL_TRACE_SOURCE_EVENTS, &trace.writer) < 0 ||
	    ll_trace_events_start(trace.writer) < 0)
		return LL_TRACE_WITHOUT_EVENTS;
	finish_at_end();
	return LL_TRACE_BY_EVENTS;
}

int ll_trace_decide(void)
{
	LL_REENTRY_SCOPE();
	LL_SCOPE_NO_CANCEL;
	LL_SCOPE_LOCK(&trace.lock);
	int answer = atomic_load(&ll_trace_answer);
	if (answer != LL_TRACE_UNDECIDED)
		return answer;
	ll_fork_add(&fork_item);
	answer = choose_answer();
	atomic_store(&ll_trace_answer, answer);
	return answer;
}

static uint64_t exchange_size(enum ll_trace_kind kind, ll_cu_deviceptr address, uint64_t bytes)
{
	size_t place = (size_t)(address >> 8 ^ address >> 20) % ADDRESSES;
	LL_SCOPE_LOCK(&trace.lock);
	if (kind == LL_TRACE_ALLOCATE) {
		trace.sizes[place].address = address;
		trace.sizes[place].bytes = bytes;
		return bytes;
	}
	return trace.sizes[place].address == address ? trace.sizes[place].bytes : 0;
}

void ll_trace_note_memory(enum ll_trace_kind kind, ll_cu_deviceptr address, uint64_t bytes)
{
	struct ll_cu_context *context = NULL;
	uint32_t number, device;
	LL_SCOPE_NO_CANCEL;
	uint64_t now_ns = ll_now_ns();
	if (ll_real()->cuCtxGetCurrent(&context) != LL_CUDA_SUCCESS)
		return;
	/* A new context's anchors make calls that would break another thread's capture. */
	enum ll_cu_capture_mode mode = ll_stream_exchange_capture_mode(LL_CU_STREAM_CAPTURE_MODE_RELAXED);
	bool is_known = ll_trace_events_place(context, &number, &device);
	ll_stream_exchange_capture_mode(mode);
	if (!is_known)
		return;
	struct ll_trace_record record = {
	    .head = {.kind = (uint16_t)kind},
	    .start_ns = now_ns,
	    .end_ns = now_ns,
	    .device = device,
	    .context = number,
	    .bytes = exchange_size(kind, address, bytes),
	    .address = address,
	    .to = LL_CUPTI_MEMORY_DEVICE,
	};
	ll_trace_writer_add(trace.writer, &record);
}
