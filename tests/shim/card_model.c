#include "card_model.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/clock.h"
#include "shim/interpose/real.h"
#include "shim/time/timing_clock.h"

/* doc/facts.md, "Launching": costs of calls on the host, and distances on the card. */
#define RECORD_HOST_NS 1040
#define RECORD_AFTER_PERCENT 27 /* of that call, behind what puts the event into the queue */
#define QUERY_HOST_NS 280
#define LATENCY_NS 3000     /* from the call to the card */
#define KERNEL_GAP_NS 1380  /* between kernels of a queue */
#define EVENT_AFTER_NS 1480 /* from a kernel's end to the event behind it */
#define EVENT_EVENT_NS 1250 /* from an event to the next */
#define AFTER_EVENT_NS 2000 /* from an event to the kernel behind it */
#define MEMSET_NS 770       /* a small memset; an event, or the next one, follows at once */
#define GPM_EXTRA_NS 1800   /* what GPM counts beyond a kernel's stamps */
#define WAKE_NS 5000        /* from a kernel's end to the host that waited for it */
/* The other machine: an event takes so long whatever stands before it. */
#define SLOW_EVENT_AFTER_NS 2230
#define SLOW_EVENT_EVENT_NS 2850

enum { STREAMS = 4, EVENTS = 1024 };

struct ll_cu_event {
	uint64_t card_ns;
	bool is_recorded, is_used;
};

static struct lane {
	struct ll_cu_stream *stream;
	uint64_t ready_ns; /* when the last of it ends, by the host's clock */
	enum { KERNEL, GRAPH, MEMSET, EVENT } last;
	bool is_used;
} lanes[STREAMS];
static struct ll_cu_event events[EVENTS];
static uint64_t host_ns, busy_ns, busy_until_ns, calls, before_ns, after_ns;
static int drift_ppm;
static bool has_slow_events;
static uint64_t row_ns, slow_record_ns;
static struct ll_timing_lock *watched;

void model_reset(int ppm)
{
	for (unsigned i = 0; i < STREAMS; i++)
		lanes[i] = (struct lane){0};
	for (unsigned i = 0; i < EVENTS; i++)
		events[i] = (struct ll_cu_event){0};
	host_ns = LL_NS_PER_S;
	busy_ns = busy_until_ns = calls = before_ns = after_ns = 0;
	drift_ppm = ppm;
	has_slow_events = false;
	row_ns = slow_record_ns = 0;
	watched = NULL;
}

void model_slow_events(void)
{
	has_slow_events = true;
}

void model_part_events(uint64_t ns)
{
	row_ns = ns;
}

void model_slow_records(uint64_t ns)
{
	slow_record_ns = ns;
}

uint64_t ll_now_ns(void)
{
	host_ns += 25;
	return host_ns;
}

void model_spend(uint64_t ns)
{
	host_ns += ns;
}

void model_interrupt_record(uint64_t before, uint64_t after)
{
	before_ns = before;
	after_ns = after;
}

uint64_t model_busy_ns(void)
{
	return busy_ns;
}

uint64_t model_calls(void)
{
	return calls;
}

void model_watch_lock(struct ll_timing_lock *lock)
{
	watched = lock;
}

static void may_wait(void)
{
	if (watched && pthread_mutex_trylock(&watched->mutex) != 0)
		abort();
	if (watched)
		pthread_mutex_unlock(&watched->mutex);
}

static struct lane *lane_of(struct ll_cu_stream *stream)
{
	unsigned i = 0;
	while (i + 1 < STREAMS && lanes[i].stream != stream && lanes[i].is_used)
		i++;
	lanes[i].stream = stream;
	lanes[i].is_used = true;
	return &lanes[i];
}

static void count_busy(uint64_t from_ns, uint64_t until_ns)
{
	if (from_ns < busy_until_ns)
		from_ns = busy_until_ns;
	if (until_ns <= from_ns)
		return;
	busy_ns += until_ns - from_ns;
	busy_until_ns = until_ns;
}

static uint64_t later(uint64_t one_ns, uint64_t other_ns)
{
	return one_ns > other_ns ? one_ns : other_ns;
}

static void launch(struct lane *lane, uint64_t kernel_ns, uint64_t begin_ns, bool is_graph)
{
	uint64_t arrives_ns = host_ns + LATENCY_NS;
	uint64_t behind_ns = lane->ready_ns + (lane->last == EVENT ? AFTER_EVENT_NS : KERNEL_GAP_NS);
	uint64_t start_ns = later(behind_ns, arrives_ns);
	if (!(behind_ns > arrives_ns && lane->last == GRAPH))
		start_ns += begin_ns;
	lane->ready_ns = start_ns + kernel_ns;
	lane->last = is_graph ? GRAPH : KERNEL;
	count_busy(start_ns, lane->ready_ns + GPM_EXTRA_NS);
}

void model_launch(struct ll_cu_stream *stream, uint64_t kernel_ns, uint64_t call_ns)
{
	host_ns += call_ns;
	launch(lane_of(stream), kernel_ns, 0, false);
}

void model_launch_graph(struct ll_cu_stream *stream, uint64_t kernel_ns, uint64_t call_ns, uint64_t begin_ns)
{
	host_ns += call_ns;
	launch(lane_of(stream), kernel_ns, begin_ns, true);
}

void model_memset(struct ll_cu_stream *stream, uint64_t memset_ns, uint64_t call_ns)
{
	struct lane *lane = lane_of(stream);
	host_ns += call_ns;
	uint64_t gap_ns = lane->last == EVENT ? EVENT_EVENT_NS : KERNEL_GAP_NS;
	uint64_t behind_ns = lane->ready_ns + (lane->last == MEMSET ? 0 : gap_ns);
	uint64_t start_ns = later(behind_ns, host_ns + LATENCY_NS);
	lane->ready_ns = start_ns + MEMSET_NS;
	lane->last = MEMSET;
	count_busy(start_ns, start_ns + memset_ns);
}

void model_wait(struct ll_cu_stream *stream)
{
	struct lane *lane = lane_of(stream);
	if (lane->ready_ns + WAKE_NS > host_ns)
		host_ns = lane->ready_ns + WAKE_NS;
}

static ll_cu_result create_event(struct ll_cu_event **ret_event, unsigned flags)
{
	(void)flags;
	for (unsigned i = 0; i < EVENTS; i++) {
		if (events[i].is_used)
			continue;
		events[i] = (struct ll_cu_event){.is_used = true};
		*ret_event = &events[i];
		return LL_CUDA_SUCCESS;
	}
	return LL_CUDA_ERROR_OUT_OF_MEMORY;
}

static ll_cu_result destroy_event(struct ll_cu_event *event)
{
	if (!event->is_used)
		abort();
	event->is_used = false;
	return LL_CUDA_SUCCESS;
}

static ll_cu_result record_event(struct ll_cu_event *event, struct ll_cu_stream *stream)
{
	struct lane *lane = lane_of(stream);
	may_wait();
	calls++;
	uint64_t call_ns = RECORD_HOST_NS + slow_record_ns;
	uint64_t rest_ns = call_ns * RECORD_AFTER_PERCENT / 100;
	host_ns += call_ns - rest_ns + before_ns;
	uint64_t arrives_ns = host_ns + LATENCY_NS;
	host_ns += rest_ns + after_ns;
	before_ns = after_ns = 0;
	uint64_t after_event_ns = row_ns ? row_ns : has_slow_events ? SLOW_EVENT_EVENT_NS : EVENT_EVENT_NS;
	uint64_t after_kernel_ns = has_slow_events ? SLOW_EVENT_AFTER_NS : EVENT_AFTER_NS;
	uint64_t gap_ns = lane->last == EVENT ? after_event_ns : after_kernel_ns;
	lane->ready_ns = later(lane->ready_ns + (lane->last == MEMSET ? 0 : gap_ns), arrives_ns);
	lane->last = EVENT;
	event->card_ns = lane->ready_ns;
	event->is_recorded = true;
	return LL_CUDA_SUCCESS;
}

static ll_cu_result query_event(struct ll_cu_event *event)
{
	calls++;
	host_ns += QUERY_HOST_NS;
	return event->card_ns <= host_ns ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_NOT_READY;
}

static ll_cu_result elapsed(float *ret_ms, struct ll_cu_event *start, struct ll_cu_event *end)
{
	if (!start->is_recorded || !end->is_recorded || start->card_ns > host_ns || end->card_ns > host_ns)
		return LL_CUDA_ERROR_NOT_READY;
	double ns = (double)end->card_ns - (double)start->card_ns;
	*ret_ms = (float)(ns * (1 + drift_ppm * 1e-6) / 1e6);
	return LL_CUDA_SUCCESS;
}

static ll_cu_result is_capturing(struct ll_cu_stream *stream, enum ll_cu_capture_status *ret_status)
{
	(void)stream;
	calls++;
	*ret_status = LL_CU_STREAM_CAPTURE_STATUS_NONE;
	return LL_CUDA_SUCCESS;
}

static ll_cu_result query_stream(struct ll_cu_stream *stream)
{
	may_wait();
	calls++;
	host_ns += QUERY_HOST_NS;
	return lane_of(stream)->ready_ns <= host_ns ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_NOT_READY;
}

static ll_cu_result push_context(struct ll_cu_context *context)
{
	(void)context;
	return LL_CUDA_SUCCESS;
}

static ll_cu_result pop_context(struct ll_cu_context **ret_context)
{
	*ret_context = NULL;
	return LL_CUDA_SUCCESS;
}

static const struct ll_real model = {
    .cuCtxPushCurrent_v2 = push_context,
    .cuCtxPopCurrent_v2 = pop_context,
    .cuEventCreate = create_event,
    .cuEventDestroy_v2 = destroy_event,
    .cuEventRecord = record_event,
    .cuEventQuery = query_event,
    .cuEventElapsedTime = elapsed,
    .cuStreamIsCapturing = is_capturing,
    .cuStreamQuery = query_stream,
};
_Atomic(const void *) ll_real_bound[2] = {&model, &model};

const void *ll_real_bind(enum ll_real_library which)
{
	(void)which;
	return &model;
}
