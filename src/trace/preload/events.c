#include "trace/preload/preload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "abi/cupti.h"
#include "base/clock.h"
#include "base/guest.h"
#include "base/scope.h"
#include "shim/interpose/device_uuid.h"
#include "shim/interpose/real.h"

/* ---- names of kernels ---- */

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

/* ---- events ---- */

/* AIM: number of launches between two harvests. It is small, so that events are reused while they are in the caches. */
enum { MOST_IN_FLIGHT = 262144, AT_ONCE = 128, AIM = 256, STACK_BYTES = 256 * 1024 };

#define HARVEST_LEAST_NS (2 * LL_NS_PER_MS)
#define HARVEST_MOST_NS (20 * LL_NS_PER_MS)
#define FLUSH_EVERY_NS (200 * LL_NS_PER_MS)
#define LAST_WAIT_NS (1 * LL_NS_PER_S)
#define LAST_POLL_NS (200 * LL_NS_PER_US)

/* A launch keeps its two events when it is reused. */
struct ll_trace_launch {
	struct ll_trace_record record;
	struct context *context;
	struct stream *stream;
	struct ll_trace_anchor *anchor;
	struct ll_cu_event *start, *end;
	struct ll_trace_launch *next;
};

struct queue {
	struct ll_trace_launch *first, **tail;
};

struct stream {
	struct ll_timing_stream name; /* the stream's handle, and its thread for a per-thread stream */
	bool is_gone;
	uint32_t number;
	uint64_t ended_ns;  /* end of the newest written launch; only the harvesting thread uses it */
	struct queue fresh; /* launches in flight */
	struct queue taken; /* older launches in flight; only the harvesting thread uses them, without the lock */
	struct stream *next;
};

struct context {
	struct ll_cu_context *handle; /* NULL: the context is gone */
	ll_cu_device device;
	uint32_t number, stream_count;
	struct stream *streams;
	struct ll_trace_launch *spare;
	struct ll_trace_anchors anchors;
	struct context *next;
};

static struct {
	pthread_mutex_t lock; /* guards all fields below */
	pthread_mutex_t
	    harvesting; /* held by the thread that harvests, while a context is current to it; taken before lock */
	struct ll_trace_writer *writer;
	struct context *contexts;
	uint32_t context_count, in_flight, correlation;
	uint64_t written_devices;
	_Atomic bool has_ended;
} events = {.lock = PTHREAD_MUTEX_INITIALIZER, .harvesting = PTHREAD_MUTEX_INITIALIZER};

static struct context *find_context(const struct ll_cu_context *handle)
{
	struct context *context = events.contexts;
	while (context && context->handle != handle)
		context = context->next;
	return context;
}

static void write_device(ll_cu_device device)
{
	char uuid[96];
	if (device < 0 || device >= 64 || events.written_devices >> device & 1 ||
	    !ll_device_uuid(device, uuid, sizeof uuid))
		return;
	ll_trace_writer_add_card(events.writer, (uint32_t)device, uuid);
	events.written_devices |= UINT64_C(1) << device;
}

/* Finds the context, or adds it. The context must be current. */
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
	write_device(context->device);
	context->handle = handle;
	context->number = ++events.context_count;
	context->next = events.contexts;
	events.contexts = context;
	return context;
}

static struct stream *get_stream(struct context *context, struct ll_timing_stream name)
{
	for (struct stream *stream = context->streams; stream; stream = stream->next) {
		if (!stream->is_gone && ll_timing_stream_is(stream->name, name))
			return stream;
	}
	struct stream *stream = calloc(1, sizeof *stream);
	if (!stream)
		return NULL;
	*stream = (struct stream){.name = name, .number = context->stream_count++, .next = context->streams};
	stream->fresh.tail = &stream->fresh.first;
	stream->taken.tail = &stream->taken.first;
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

static void fill_record(struct ll_trace_launch *launch, const struct ll_work *work)
{
	static const enum ll_trace_kind kinds[] = {[LL_WORK_KERNEL] = LL_TRACE_KERNEL,
						   [LL_WORK_GRAPH] = LL_TRACE_GRAPH,
						   [LL_WORK_MEMSET] = LL_TRACE_MEMSET,
						   [LL_WORK_COPY] = LL_TRACE_COPY};
	bool has_name = work->kind == LL_WORK_KERNEL || work->kind == LL_WORK_GRAPH;
	launch->record = (struct ll_trace_record){
	    .head = {.kind = (uint16_t)kinds[work->kind],
		     .name = has_name ? ll_trace_names_find(events.writer, work) : 0},
	    .device = (uint32_t)launch->context->device,
	    .context = launch->context->number,
	    .stream = launch->stream->number,
	    .correlation = ++events.correlation,
	    .bytes = work->bytes,
	    .grid = {work->grid[0], work->grid[1], work->grid[2]},
	    .block = {work->block[0], work->block[1], work->block[2]},
	    .dynamic_shared_bytes = work->dynamic_shared_bytes,
	    .from = work->is_from_card ? LL_CUPTI_MEMORY_DEVICE : LL_CUPTI_MEMORY_UNKNOWN,
	    .to = work->is_to_card ? LL_CUPTI_MEMORY_DEVICE : LL_CUPTI_MEMORY_UNKNOWN,
	};
}

/* Takes a launch for the caller alone, until it is put in flight. */
static struct ll_trace_launch *prepare_launch(struct ll_cu_context *handle, struct ll_timing_stream name,
					      const struct ll_work *work)
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
	fill_record(launch, work);
	launch->anchor = ll_trace_anchor_join(&context->anchors);
	return launch;
}

static void cancel_launch(struct ll_trace_launch *launch, bool is_lost)
{
	LL_SCOPE_LOCK(&events.lock);
	if (is_lost && !events.has_ended)
		ll_trace_writer_add_dropped(events.writer, 1);
	put_spare(launch);
}

/* Before a launch. NULL: it is not timed, because there is no context or no room. cuEventRecord may wait for room in a
 * full queue. It is called without the lock, because a launch of another thread may make the room.
 */
static struct ll_trace_launch *begin_launch(struct ll_cu_context *context, struct ll_timing_stream stream,
					    const struct ll_work *work)
{
	if (!context)
		return NULL;
	LL_SCOPE_NO_CANCEL;
	struct ll_trace_launch *launch = prepare_launch(context, stream, work);
	if (!launch || ll_real()->cuEventRecord(launch->start, stream.handle) == LL_CUDA_SUCCESS)
		return launch;
	cancel_launch(launch, true);
	return NULL;
}

/* After it. is_launched: the driver accepted it. */
static void end_launch(struct ll_trace_launch *launch, bool is_launched)
{
	LL_SCOPE_NO_CANCEL;
	bool is_recorded =
	    is_launched && ll_real()->cuEventRecord(launch->end, launch->stream->name.handle) == LL_CUDA_SUCCESS;
	if (!is_recorded) {
		cancel_launch(launch, is_launched);
		return;
	}
	LL_SCOPE_LOCK(&events.lock);
	if (!launch->context->handle || events.has_ended) {
		put_spare(launch);
		return;
	}
	launch->next = NULL;
	*launch->stream->fresh.tail = launch;
	launch->stream->fresh.tail = &launch->next;
	events.in_flight++;
}

/* Keeps the order of a stream's launches, which run one after the other. If the newest anchor changed between two
 * launches, their times may overlap a little. */
static void keep_order(struct ll_trace_launch *launch)
{
	struct ll_trace_record *record = &launch->record;
	if (record->start_ns < launch->stream->ended_ns)
		record->start_ns = launch->stream->ended_ns;
	if (record->end_ns < record->start_ns)
		record->end_ns = record->start_ns;
	launch->stream->ended_ns = record->end_ns;
}

/* Writes the launch's record if the launch has ended, and returns true. False: it has not ended yet. It calls the
 * driver once for each event. */
static bool read_launch(struct ll_trace_launch *launch)
{
	struct ll_trace_record *record = &launch->record;
	ll_cu_result status = ll_trace_anchor_time(launch->anchor, launch->end, &record->end_ns);
	if (status == LL_CUDA_ERROR_NOT_READY)
		return false;
	if (status == LL_CUDA_SUCCESS &&
	    ll_trace_anchor_time(launch->anchor, launch->start, &record->start_ns) == LL_CUDA_SUCCESS) {
		keep_order(launch);
		ll_trace_writer_add(events.writer, record);
	} else {
		ll_trace_writer_add_dropped(events.writer, 1);
	}
	return true;
}

/* Makes the first `count` taken launches available for reuse. */
static void reuse_launches(struct stream *stream, unsigned count)
{
	LL_SCOPE_LOCK(&events.lock);
	events.in_flight -= count;
	for (; count; count--) {
		struct ll_trace_launch *launch = stream->taken.first;
		stream->taken.first = launch->next;
		put_spare(launch);
	}
	if (!stream->taken.first)
		stream->taken.tail = &stream->taken.first;
}

/* Returns the number of launches that have ended. */
static unsigned harvest_stream(struct stream *stream)
{
	unsigned total = 0, count;
	do {
		struct ll_trace_launch *launch = stream->taken.first;
		for (count = 0; launch && count < AT_ONCE && read_launch(launch); count++)
			launch = launch->next;
		if (count)
			reuse_launches(stream, count);
		total += count;
	} while (count == AT_ONCE);
	return total;
}

/* Moves the fresh launches of all streams to those taken. Returns the first stream; the list from there on does not
 * change, so it can be read without the lock. */
static struct stream *take_launches(struct context *context)
{
	LL_SCOPE_LOCK(&events.lock);
	for (struct stream *stream = context->streams; stream; stream = stream->next) {
		if (!stream->fresh.first)
			continue;
		*stream->taken.tail = stream->fresh.first;
		stream->taken.tail = stream->fresh.tail;
		stream->fresh.first = NULL;
		stream->fresh.tail = &stream->fresh.first;
	}
	return context->streams;
}

static bool has_work(const struct context *context)
{
	LL_SCOPE_LOCK(&events.lock);
	for (const struct stream *stream = context->streams; stream; stream = stream->next) {
		if (stream->fresh.first || stream->taken.first)
			return true;
	}
	return false;
}

static unsigned harvest_context(struct context *context)
{
	struct ll_cu_context *popped;
	unsigned count = 0;
	if (ll_real()->cuCtxPushCurrent_v2(context->handle) != LL_CUDA_SUCCESS)
		return 0;
	ll_trace_anchors_renew(&context->anchors, &events.lock);
	for (struct stream *stream = take_launches(context); stream; stream = stream->next)
		count += harvest_stream(stream);
	ll_real()->cuCtxPopCurrent_v2(&popped);
	return count;
}

/* Contexts are added at the list's head only and never removed, so the list behind the head can be read without the
 * lock. */
static unsigned harvest_all(void)
{
	unsigned count = 0;
	pthread_mutex_lock(&events.lock);
	struct context *context = events.contexts;
	pthread_mutex_unlock(&events.lock);
	for (; context; context = context->next) {
		if (context->handle)
			count += harvest_context(context);
	}
	return count;
}

static uint64_t next_pause_ns(uint64_t pause_ns, unsigned count)
{
	uint64_t aim_ns = pause_ns * AIM / (count ? count : 1);
	return aim_ns < HARVEST_LEAST_NS ? HARVEST_LEAST_NS : aim_ns > HARVEST_MOST_NS ? HARVEST_MOST_NS : aim_ns;
}

static void *harvest_for_ever(void *unused)
{
	uint64_t flushed_ns = 0, pause_ns = HARVEST_MOST_NS;
	(void)unused;
	prctl(PR_SET_NAME, "ll-trace");
	ll_reentry_depth = 1;
	enum ll_cu_capture_mode mode = LL_CU_STREAM_CAPTURE_MODE_RELAXED;
	ll_real()->cuThreadExchangeStreamCaptureMode(&mode);
	for (;;) {
		ll_sleep_until_ns(ll_now_ns() + pause_ns);
		pthread_mutex_lock(&events.harvesting);
		bool has_ended = events.has_ended;
		if (!has_ended)
			pause_ns = next_pause_ns(pause_ns, harvest_all());
		pthread_mutex_unlock(&events.harvesting);
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
	events.writer = writer;
	return ll_guest_thread_start(STACK_BYTES, harvest_for_ever, NULL, NULL);
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

static void drop_launches(struct context *context, struct queue *queue)
{
	for (struct ll_trace_launch *launch = queue->first; launch; launch = launch->next) {
		ll_trace_writer_add_dropped(events.writer, 1);
		ll_trace_anchor_leave(&context->anchors, launch->anchor);
		events.in_flight--;
	}
	free_launches(queue->first);
	queue->first = NULL;
	queue->tail = &queue->first;
}

/* Frees the context's launches and anchors, with the lock held. The struct stays, because a launch whose driver call is
 * under way returns to it.
 */
static void free_context_work(struct context *context)
{
	for (struct stream *stream = context->streams; stream; stream = stream->next) {
		drop_launches(context, &stream->taken);
		drop_launches(context, &stream->fresh);
	}
	free_launches(context->spare);
	context->spare = NULL;
	ll_trace_anchors_fini(&context->anchors);
	context->handle = NULL;
}

/* Waits for the work of the context, 1 s at most, and removes the library's events from it. */
static void finish_context(struct context *context)
{
	ll_trace_names_forget(); /* a context's kernels go with it */
	uint64_t give_up_ns = ll_now_ns() + LAST_WAIT_NS;
	harvest_context(context);
	while (has_work(context) && ll_now_ns() < give_up_ns) {
		ll_sleep_until_ns(ll_now_ns() + LAST_POLL_NS);
		harvest_context(context);
	}
	pthread_mutex_lock(&events.lock);
	free_context_work(context);
	pthread_mutex_unlock(&events.lock);
}

static bool lock_harvesting(void)
{
	struct timespec deadline;
	clock_gettime(CLOCK_REALTIME, &deadline);
	deadline.tv_sec += (time_t)(LAST_WAIT_NS / LL_NS_PER_S) + 1;
	return pthread_mutex_timedlock(&events.harvesting, &deadline) == 0;
}

/* handle, device: the contexts that are meant; NULL: any. */
static void forget_contexts(const struct ll_cu_context *handle, const ll_cu_device *device)
{
	LL_REENTRY_SCOPE();
	LL_SCOPE_NO_CANCEL;
	if (!events.writer || !lock_harvesting())
		return;
	for (struct context *context = events.contexts; context; context = context->next) {
		if (context->handle && (!handle || context->handle == handle) &&
		    (!device || context->device == *device))
			finish_context(context);
	}
	pthread_mutex_unlock(&events.harvesting);
}

void ll_trace_events_forget(struct ll_cu_context *context)
{
	if (context)
		forget_contexts(context, NULL);
}

void ll_trace_events_forget_device(ll_cu_device device)
{
	forget_contexts(NULL, &device);
}

void ll_trace_events_forget_stream(struct ll_timing_stream name)
{
	LL_SCOPE_LOCK(&events.lock);
	for (struct context *context = events.contexts; context; context = context->next) {
		for (struct stream *stream = context->streams; stream; stream = stream->next) {
			if (ll_timing_stream_is(stream->name, name))
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
	forget_contexts(NULL, NULL);
	pthread_mutex_lock(&events.lock);
	events.has_ended = true;
	pthread_mutex_unlock(&events.lock);
	ll_trace_writer_flush(events.writer);
}

void ll_trace_events_reset(void)
{
	memset(&events, 0, sizeof events);
	memset(names.slots, 0, sizeof names.slots); /* another writer follows */
	pthread_mutex_init(&events.lock, NULL);
	pthread_mutex_init(&events.harvesting, NULL);
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

/* ---- a launch of a hook ---- */

/* Makes the stream's context current until leave_context, and returns it. NULL: there is none, or it cannot be made
 * current. */
static struct ll_cu_context *enter_context(struct ll_cu_stream *stream, bool *ret_is_elsewhere)
{
	struct ll_cu_context *current = NULL, *owner = NULL;
	bool has_owner = !ll_stream_is_default(stream) && ll_real()->cuStreamGetCtx(stream, &owner) == LL_CUDA_SUCCESS;
	if (ll_real()->cuCtxGetCurrent(&current) != LL_CUDA_SUCCESS)
		return NULL;
	if (!has_owner || owner == current)
		return current;
	*ret_is_elsewhere = ll_real()->cuCtxPushCurrent_v2(owner) == LL_CUDA_SUCCESS;
	return *ret_is_elsewhere ? owner : NULL;
}

static void leave_context(bool is_elsewhere)
{
	struct ll_cu_context *pushed;
	if (is_elsewhere)
		ll_real()->cuCtxPopCurrent_v2(&pushed);
}

/* Cancellation is disabled in here, because the caller's scope ends only a launch that was returned to it. */
static void begin_timing(struct ll_traced_launch *launch, struct ll_cu_stream *stream, const struct ll_work *work)
{
	LL_SCOPE_NO_CANCEL;
	launch->context = enter_context(stream, &launch->is_elsewhere);
	enum ll_cu_capture_mode mode = ll_stream_exchange_capture_mode(LL_CU_STREAM_CAPTURE_MODE_RELAXED);
	launch->timed = begin_launch(launch->context, ll_timing_stream_of(stream), work);
	ll_stream_exchange_capture_mode(mode);
	leave_context(launch->is_elsewhere);
}

struct ll_traced_launch ll_traced_launch_begin(struct ll_cu_stream *stream, struct ll_work work)
{
	struct ll_traced_launch launch = {.errno_before = ll_reentry_enter(), .status = LL_TRACED_LAUNCH_LOST};
	if (work.symbol && !ll_stream_is_captured(stream))
		begin_timing(&launch, stream, &work);
	return launch;
}

/* If the thread did not return from the driver's call, the driver may be in any state, so it is not called. */
static void end_timing(const struct ll_traced_launch *launch)
{
	LL_SCOPE_NO_CANCEL; /* a cancelled thread would leave the launch unfinished */
	if (launch->status == LL_TRACED_LAUNCH_LOST) {
		end_launch(launch->timed, false);
		return;
	}
	enum ll_cu_capture_mode mode = ll_stream_exchange_capture_mode(LL_CU_STREAM_CAPTURE_MODE_RELAXED);
	bool is_there = !launch->is_elsewhere || ll_real()->cuCtxPushCurrent_v2(launch->context) == LL_CUDA_SUCCESS;
	end_launch(launch->timed, launch->status == LL_CUDA_SUCCESS && is_there);
	leave_context(launch->is_elsewhere && is_there);
	ll_stream_exchange_capture_mode(mode);
}

void ll_traced_launch_end(struct ll_traced_launch *launch)
{
	if (launch->timed)
		end_timing(launch);
	ll_reentry_leave(&launch->errno_before);
}
