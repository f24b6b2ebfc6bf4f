#include "shim/trace/trace.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "abi/cupti.h"
#include "base/clock.h"
#include "base/fork.h"
#include "base/scope.h"
#include "shim/interpose/real.h"
#include "shim/interpose/reentry.h"
#include "shim/trace/trace_events.h"

enum { CARDS = 64, ADDRESSES = 4096 };

_Atomic int ll_trace_answer;
_Thread_local struct ll_trace_what ll_trace_next;

static struct {
	pthread_mutex_t lock; /* guards deciding, and what follows */
	struct ll_trace_writer *gate, *events;
	bool is_gate_refused;
	uint64_t told_cards; /* in the gate's file, a bit each */
	/* What was allocated where: the driver does not say how much it frees. Two at one place drive each other out.
	 */
	struct {
		ll_cu_deviceptr address;
		uint64_t bytes;
	} sizes[ADDRESSES];
	struct ll_fork_item fork;
	bool has_fork;
} trace = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Of the device states: what decides tells them, whichever comes first. */
static _Atomic(void (*)(void)) release_gate;

static void in_child(struct ll_fork_item *item)
{
	(void)item;
	pthread_mutex_init(&trace.lock, NULL);
	if (trace.gate)
		ll_trace_writer_forget(trace.gate);
	if (trace.events)
		ll_trace_writer_forget(trace.events);
	trace.gate = trace.events = NULL;
	trace.told_cards = 0;
	trace.is_gate_refused = false;
	ll_trace_events_reset();
	atomic_store(&ll_trace_answer, LL_TRACE_UNDECIDED);
}

static bool is_traced(void)
{
	const char *folder = getenv(LL_TRACE_FOLDER);
	return folder && *folder;
}

bool ll_trace_holds_gate(void (*release)(void))
{
	atomic_store(&release_gate, release);
	const char *by = getenv(LL_TRACE_BY);
	return is_traced() && (!by || strcmp(by, "cupti") != 0);
}

/* libloadline-trace.so, when it is in the process: preloaded, or loaded by the driver. */
static bool find_library(struct ll_elf_object *ret_object)
{
	static const char *const stems[] = {"libloadline-trace.so", NULL};
	return ll_elf_find(stems, ret_object);
}

static bool is_by_cupti(void)
{
	struct ll_elf_object object;
	int (*is_on)(void) = NULL;
	void *address = find_library(&object) ? ll_elf_function(&object, LL_TRACE_IS_ON) : NULL;
	memcpy(&is_on, &address, sizeof address);
	return is_on && is_on();
}

/* A program may end without its handlers being run: that library stands before such ends. */
static void finish_at_end(void)
{
	struct ll_elf_object object;
	void (*set_end)(void (*)(void)) = NULL;
	void *address = find_library(&object) ? ll_elf_function(&object, LL_TRACE_AT_END) : NULL;
	memcpy(&set_end, &address, sizeof address);
	if (set_end)
		set_end(ll_trace_events_finish);
	atexit(ll_trace_events_finish);
}

static bool has_context(void)
{
	struct ll_cu_context *context = NULL;
	return ll_real()->cuCtxGetCurrent(&context) == LL_CUDA_SUCCESS && context;
}

static int find_answer(void)
{
	const char *by = getenv(LL_TRACE_BY);
	if (!is_traced())
		return LL_TRACE_NOTHING;
	if (by && strcmp(by, "cupti") == 0)
		return LL_TRACE_GATE_ONLY;
	if (!has_context())
		return LL_TRACE_UNDECIDED;
	bool is_asked = by && strcmp(by, "events") == 0;
	if ((!is_asked && is_by_cupti()) || ll_trace_writer_open(LL_TRACE_SOURCE_EVENTS, &trace.events) < 0)
		return LL_TRACE_GATE_ONLY;
	if (ll_trace_events_start(trace.events) < 0)
		return LL_TRACE_GATE_ONLY;
	finish_at_end();
	return LL_TRACE_GATE_AND_EVENTS;
}

static int decide(void)
{
	LL_SCOPE_LOCK(&trace.lock);
	int answer = atomic_load(&ll_trace_answer);
	if (answer != LL_TRACE_UNDECIDED)
		return answer;
	answer = find_answer();
	if (!trace.has_fork && answer != LL_TRACE_NOTHING) {
		trace.has_fork = true;
		trace.fork.in_child = in_child;
		ll_fork_add(&trace.fork);
	}
	atomic_store(&ll_trace_answer, answer);
	return answer;
}

int ll_trace_decide(void)
{
	LL_REENTRY_SCOPE();
	LL_SCOPE_NO_CANCEL;
	int answer = decide();
	if (answer == LL_TRACE_NOTHING || answer == LL_TRACE_GATE_ONLY) {
		void (*release)(void) = atomic_load(&release_gate);
		if (release)
			release();
	}
	return answer;
}

static bool open_gate_file(void)
{
	if (!trace.gate && !trace.is_gate_refused)
		trace.is_gate_refused = ll_trace_writer_open(LL_TRACE_SOURCE_GATE, &trace.gate) < 0;
	return trace.gate;
}

/* It has waited for 20 us at least: a write of 1 us more is nothing to it. */
void ll_trace_waited(ll_cu_device device, const char *uuid, uint64_t start_ns, uint64_t end_ns)
{
	if (end_ns - start_ns < LL_TRACE_LEAST_WAIT_NS)
		return;
	LL_SCOPE_NO_CANCEL;
	LL_SCOPE_LOCK(&trace.lock);
	if (!open_gate_file())
		return;
	if (device < CARDS && !(trace.told_cards >> device & 1)) {
		ll_trace_writer_add_card(trace.gate, (uint32_t)device, uuid);
		trace.told_cards |= UINT64_C(1) << device;
	}
	struct ll_trace_record record = {
	    .head = {.kind = LL_TRACE_GATE},
	    .start_ns = start_ns,
	    .end_ns = end_ns,
	    .device = (uint32_t)device,
	    .stream = (uint32_t)syscall(SYS_gettid),
	};
	ll_trace_writer_add(trace.gate, &record);
	ll_trace_writer_flush(trace.gate);
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
	if (ll_reentry_depth > 1) /* the driver's own, within a hook */
		return;
	LL_REENTRY_SCOPE();
	LL_SCOPE_NO_CANCEL;
	uint64_t now_ns = ll_now_ns();
	if (ll_real()->cuCtxGetCurrent(&context) != LL_CUDA_SUCCESS)
		return;
	/* Another thread's capture must not be spoiled by what a new context's anchors take. */
	enum ll_cu_capture_mode mode = LL_CU_STREAM_CAPTURE_MODE_RELAXED;
	ll_real()->cuThreadExchangeStreamCaptureMode(&mode);
	bool is_known = ll_trace_events_place(context, &number, &device);
	ll_real()->cuThreadExchangeStreamCaptureMode(&mode);
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
	ll_trace_writer_add(trace.events, &record);
}
