#include "shim/trace_events.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "abi/cupti.h"
#include "base/clock.h"
#include "base/scope.h"
#include "shim/real.h"
#include "shim/reentry.h"
#include "shim/seat.h"
#include "shim/trace_anchor.h"

enum { MOST_IN_FLIGHT = 262144, AT_ONCE = 128, STACK_BYTES = 256 * 1024 };

#define HARVEST_EVERY_NS (20 * LL_NS_PER_MS)
#define FLUSH_EVERY_NS (200 * LL_NS_PER_MS)
#define LAST_WAIT_NS (1 * LL_NS_PER_S)
#define LAST_POLL_NS (200 * LL_NS_PER_US)

/* Its two events stay with it when it is used again. */
struct ll_trace_launch {
	struct ll_trace_record record;
	struct context *context;
	struct stream *stream;
	struct ll_trace_anchor *anchor;
	struct ll_cu_event *start, *end;
	struct ll_trace_launch *next;
};

struct stream {
	struct ll_mark_stream name; /* handle and thread 0: the stream is gone */
	bool is_gone;
	uint32_t number;
	struct ll_trace_launch *first, **tail; /* in flight */
	struct stream *next;
};

struct context {
	struct ll_cu_context *handle; /* NULL: gone */
	ll_cu_device device;
	uint32_t number, stream_count;
	struct stream *streams;
	struct ll_trace_launch *spare;
	struct ll_trace_anchors anchors;
	struct context *next;
};

static struct {
	pthread_mutex_t lock;    /* guards all below */
	pthread_mutex_t tending; /* of who harvests: taken before the lock, held while contexts are current to it */
	struct ll_trace_writer *writer;
	struct context *contexts;
	uint32_t context_count, in_flight, correlation;
	uint64_t told_devices;
	_Atomic bool has_ended;
} events = {.lock = PTHREAD_MUTEX_INITIALIZER, .tending = PTHREAD_MUTEX_INITIALIZER};

static struct context *find_context(const struct ll_cu_context *handle)
{
	struct context *context = events.contexts;
	while (context && context->handle != handle)
		context = context->next;
	return context;
}

static void tell_device(ll_cu_device device)
{
	char uuid[96];
	if (device < 0 || device >= 64 || events.told_devices >> device & 1 || !ll_seat_uuid(device, uuid, sizeof uuid))
		return;
	ll_trace_writer_add_card(events.writer, (uint32_t)device, uuid);
	events.told_devices |= UINT64_C(1) << device;
}

/* The context is current. */
static struct context *get_context(struct ll_cu_context *handle)
{
	struct context *context = handle ? find_context(handle) : NULL;
	if (context || !handle)
		return context;
	context = calloc(1, sizeof *context);
	if (!context)
		return NULL;
	if (ll_real()->cuCtxGetDevice(&context->device) != LL_CUDA_SUCCESS ||
	    !ll_trace_anchors_init(&context->anchors)) {
		free(context);
		return NULL;
	}
	tell_device(context->device);
	context->handle = handle;
	context->number = ++events.context_count;
	context->next = events.contexts;
	events.contexts = context;
	return context;
}

static struct stream *get_stream(struct context *context, struct ll_mark_stream name)
{
	for (struct stream *stream = context->streams; stream; stream = stream->next) {
		if (!stream->is_gone && stream->name.handle == name.handle && stream->name.thread == name.thread)
			return stream;
	}
	struct stream *stream = calloc(1, sizeof *stream);
	if (!stream)
		return NULL;
	*stream = (struct stream){.name = name, .number = context->stream_count++, .next = context->streams};
	stream->tail = &stream->first;
	context->streams = stream;
	return stream;
}

static struct ll_trace_launch *take_spare(struct context *context)
{
	struct ll_trace_launch *launch = context->spare;
	if (launch) {
		context->spare = launch->next;
		return launch;
	}
	launch = calloc(1, sizeof *launch);
	if (launch && ll_real()->cuEventCreate(&launch->start, LL_CU_EVENT_DEFAULT) == LL_CUDA_SUCCESS) {
		if (ll_real()->cuEventCreate(&launch->end, LL_CU_EVENT_DEFAULT) == LL_CUDA_SUCCESS)
			return launch;
		ll_real()->cuEventDestroy_v2(launch->start);
	}
	free(launch);
	return NULL;
}

static void put_spare(struct ll_trace_launch *launch)
{
	struct context *context = launch->context;
	if (launch->anchor && context->handle)
		ll_trace_anchor_leave(&context->anchors, launch->anchor);
	launch->anchor = NULL;
	launch->next = context->spare;
	context->spare = launch;
}

/* A library's kernel may stand for its function. */
static const char *name_of(const struct ll_trace_what *what)
{
	const char *name = NULL;
	struct ll_cu_function *function = (void *)(uintptr_t)what->function;
	if (!function)
		return what->symbol;
	if (ll_real()->cuFuncGetName(&name, function) == LL_CUDA_SUCCESS && name)
		return name;
	if (ll_real()->cuKernelGetName(&name, (void *)function) == LL_CUDA_SUCCESS && name)
		return name;
	return what->symbol;
}

static void describe(struct ll_trace_launch *launch, const struct ll_trace_what *what)
{
	bool has_name = what->kind == LL_TRACE_KERNEL || what->kind == LL_TRACE_GRAPH;
	launch->record = (struct ll_trace_record){
	    .head = {.kind = (uint16_t)what->kind,
		     .name = has_name ? ll_trace_writer_name(events.writer, name_of(what)) : 0},
	    .device = (uint32_t)launch->context->device,
	    .context = launch->context->number,
	    .stream = launch->stream->number,
	    .correlation = ++events.correlation,
	    .bytes = what->bytes,
	    .grid = {what->grid[0], what->grid[1], what->grid[2]},
	    .block = {what->block[0], what->block[1], what->block[2]},
	    .dynamic_shared_bytes = what->dynamic_shared_bytes,
	    .from = what->from,
	    .to = what->kind == LL_TRACE_MEMSET ? LL_CUPTI_MEMORY_DEVICE : what->to,
	};
}

/* A launch that is nobody else's until it is put in flight. */
static struct ll_trace_launch *prepare(struct ll_cu_context *handle, struct ll_mark_stream name,
				       const struct ll_trace_what *what)
{
	LL_SCOPE_LOCK(&events.lock);
	if (events.has_ended)
		return NULL;
	struct context *context = get_context(handle);
	struct stream *stream = context ? get_stream(context, name) : NULL;
	struct ll_trace_launch *launch = stream && events.in_flight < MOST_IN_FLIGHT ? take_spare(context) : NULL;
	if (!launch) {
		ll_trace_writer_add_dropped(events.writer, 1);
		return NULL;
	}
	launch->context = context;
	launch->stream = stream;
	describe(launch, what);
	launch->anchor = ll_trace_anchor_join(&context->anchors);
	return launch;
}

static void give_up(struct ll_trace_launch *launch, bool is_lost)
{
	LL_SCOPE_LOCK(&events.lock);
	if (is_lost && !events.has_ended)
		ll_trace_writer_add_dropped(events.writer, 1);
	put_spare(launch);
}

static void put_in_flight(struct ll_trace_launch *launch)
{
	LL_SCOPE_LOCK(&events.lock);
	if (!launch->context->handle || events.has_ended) {
		put_spare(launch);
		return;
	}
	launch->next = NULL;
	*launch->stream->tail = launch;
	launch->stream->tail = &launch->next;
	events.in_flight++;
}

/* Recording may wait, for room in a full queue: without the lock, for it may be another thread's launch that makes
 * room.
 */
struct ll_trace_launch *ll_trace_events_begin(struct ll_cu_context *context, struct ll_mark_stream stream)
{
	struct ll_trace_what what = ll_trace_next;
	ll_trace_next = (struct ll_trace_what){.symbol = NULL};
	if (!what.symbol || !context)
		return NULL;
	LL_SCOPE_NO_CANCEL;
	struct ll_trace_launch *launch = prepare(context, stream, &what);
	if (!launch || ll_real()->cuEventRecord(launch->start, stream.handle) == LL_CUDA_SUCCESS)
		return launch;
	give_up(launch, true);
	return NULL;
}

void ll_trace_events_end(struct ll_trace_launch *launch, bool is_launched)
{
	LL_SCOPE_NO_CANCEL;
	if (!is_launched)
		give_up(launch, false);
	else if (ll_real()->cuEventRecord(launch->end, launch->stream->name.handle) != LL_CUDA_SUCCESS)
		give_up(launch, true);
	else
		put_in_flight(launch);
}

/* False: it has not ended yet. */
static bool settle(struct ll_trace_launch *launch)
{
	ll_cu_result status = ll_real()->cuEventQuery(launch->end);
	if (status == LL_CUDA_ERROR_NOT_READY)
		return false;
	if (status == LL_CUDA_SUCCESS &&
	    ll_trace_anchor_time(launch->anchor, launch->start, &launch->record.start_ns) &&
	    ll_trace_anchor_time(launch->anchor, launch->end, &launch->record.end_ns)) {
		if (launch->record.end_ns < launch->record.start_ns)
			launch->record.end_ns = launch->record.start_ns;
		ll_trace_writer_add(events.writer, &launch->record);
	} else {
		ll_trace_writer_add_dropped(events.writer, 1);
	}
	return true;
}

static unsigned harvest_stream(struct stream *stream, unsigned most)
{
	unsigned count = 0;
	while (count < most && stream->first && settle(stream->first)) {
		struct ll_trace_launch *launch = stream->first;
		stream->first = launch->next;
		if (!stream->first)
			stream->tail = &stream->first;
		put_spare(launch);
		events.in_flight--;
		count++;
	}
	return count;
}

/* Some of what has ended; false: that was all for now. The context is current. Under the lock. */
static bool harvest_some(struct context *context)
{
	unsigned left = AT_ONCE;
	for (struct stream *stream = context->streams; stream && left; stream = stream->next)
		left -= harvest_stream(stream, left);
	return left == 0;
}

static bool has_work(const struct context *context)
{
	LL_SCOPE_LOCK(&events.lock);
	for (const struct stream *stream = context->streams; stream; stream = stream->next) {
		if (stream->first)
			return true;
	}
	return false;
}

static void harvest(struct context *context)
{
	struct ll_cu_context *popped;
	if (ll_real()->cuCtxPushCurrent_v2(context->handle) != LL_CUDA_SUCCESS)
		return;
	ll_trace_anchors_renew(&context->anchors, &events.lock);
	for (bool has_more = true; has_more;) {
		pthread_mutex_lock(&events.lock);
		has_more = harvest_some(context);
		pthread_mutex_unlock(&events.lock);
	}
	ll_real()->cuCtxPopCurrent_v2(&popped);
}

/* Contexts are taken off by who tends alone, so the list is sound without the lock but for its head. */
static void harvest_all(void)
{
	pthread_mutex_lock(&events.lock);
	struct context *context = events.contexts;
	pthread_mutex_unlock(&events.lock);
	for (; context; context = context->next) {
		if (context->handle)
			harvest(context);
	}
}

static void *tend(void *unused)
{
	uint64_t flushed_ns = 0;
	(void)unused;
	prctl(PR_SET_NAME, "ll-trace");
	ll_reentry_depth = 1;
	enum ll_cu_capture_mode mode = LL_CU_STREAM_CAPTURE_MODE_RELAXED;
	ll_real()->cuThreadExchangeStreamCaptureMode(&mode);
	for (;;) {
		ll_sleep_until_ns(ll_now_ns() + HARVEST_EVERY_NS);
		pthread_mutex_lock(&events.tending);
		bool has_ended = events.has_ended;
		if (!has_ended)
			harvest_all();
		pthread_mutex_unlock(&events.tending);
		if (has_ended)
			return NULL;
		uint64_t now_ns = ll_now_ns();
		if (now_ns - flushed_ns >= FLUSH_EVERY_NS) {
			ll_trace_writer_flush(events.writer);
			flushed_ns = now_ns;
		}
	}
}

int ll_trace_events_start(struct ll_trace_writer *writer)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, before;
	events.writer = writer;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int rc = pthread_create(&thread, &attr, tend, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return -rc;
}

static void free_launches(struct ll_trace_launch *launch)
{
	while (launch) {
		struct ll_trace_launch *next = launch->next;
		ll_real()->cuEventDestroy_v2(launch->start);
		ll_real()->cuEventDestroy_v2(launch->end);
		free(launch);
		launch = next;
	}
}

/* Under the lock. A launch whose driver's call is still under way comes back to the husk that is left of the context.
 */
static void free_all(struct context *context)
{
	for (struct stream *stream = context->streams; stream; stream = stream->next) {
		for (struct ll_trace_launch *launch = stream->first; launch; launch = launch->next) {
			ll_trace_writer_add_dropped(events.writer, 1);
			ll_trace_anchor_leave(&context->anchors, launch->anchor);
			events.in_flight--;
		}
		free_launches(stream->first);
		stream->first = NULL;
		stream->tail = &stream->first;
	}
	free_launches(context->spare);
	context->spare = NULL;
	ll_trace_anchors_fini(&context->anchors);
	context->handle = NULL;
}

/* Waits for what runs there, and takes what is ours out of it. */
static void let_go(struct context *context)
{
	uint64_t give_up_ns = ll_now_ns() + LAST_WAIT_NS;
	harvest(context);
	while (has_work(context) && ll_now_ns() < give_up_ns) {
		ll_sleep_until_ns(ll_now_ns() + LAST_POLL_NS);
		harvest(context);
	}
	pthread_mutex_lock(&events.lock);
	free_all(context);
	pthread_mutex_unlock(&events.lock);
}

static bool lock_tending(void)
{
	struct timespec deadline;
	clock_gettime(CLOCK_REALTIME, &deadline);
	deadline.tv_sec += (time_t)(LAST_WAIT_NS / LL_NS_PER_S) + 1;
	return pthread_mutex_timedlock(&events.tending, &deadline) == 0;
}

static void forget(bool (*is_meant)(const struct context *context, const void *what), const void *what)
{
	LL_REENTRY_SCOPE();
	LL_SCOPE_NO_CANCEL;
	if (!events.writer || !lock_tending())
		return;
	for (struct context *context = events.contexts; context; context = context->next) {
		if (context->handle && is_meant(context, what))
			let_go(context);
	}
	pthread_mutex_unlock(&events.tending);
}

static bool is_that(const struct context *context, const void *what)
{
	return context->handle == what;
}

static bool is_there(const struct context *context, const void *what)
{
	return context->device == *(const ll_cu_device *)what;
}

static bool is_any(const struct context *context, const void *what)
{
	(void)context;
	(void)what;
	return true;
}

void ll_trace_events_forget(struct ll_cu_context *context)
{
	forget(is_that, context);
}

void ll_trace_events_forget_device(ll_cu_device device)
{
	forget(is_there, &device);
}

void ll_trace_events_forget_stream(struct ll_mark_stream name)
{
	LL_SCOPE_LOCK(&events.lock);
	for (struct context *context = events.contexts; context; context = context->next) {
		for (struct stream *stream = context->streams; stream; stream = stream->next) {
			if (stream->name.handle == name.handle && stream->name.thread == name.thread)
				stream->is_gone = true;
		}
	}
}

void ll_trace_events_finish(void)
{
	pthread_mutex_lock(&events.lock);
	bool has_ended = events.has_ended || !events.writer;
	pthread_mutex_unlock(&events.lock);
	if (has_ended)
		return;
	forget(is_any, NULL);
	pthread_mutex_lock(&events.lock);
	events.has_ended = true;
	pthread_mutex_unlock(&events.lock);
	ll_trace_writer_flush(events.writer);
}

void ll_trace_events_reset(void)
{
	memset(&events, 0, sizeof events);
	pthread_mutex_init(&events.lock, NULL);
	pthread_mutex_init(&events.tending, NULL);
}

bool ll_trace_events_place(struct ll_cu_context *handle, uint32_t *ret_number, uint32_t *ret_device)
{
	LL_SCOPE_LOCK(&events.lock);
	struct context *context = events.has_ended ? NULL : get_context(handle);
	if (!context)
		return false;
	*ret_number = context->number;
	*ret_device = (uint32_t)context->device;
	return true;
}
