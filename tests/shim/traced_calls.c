/*
 * What a launch takes of the driver, counted on a driver that is a table of functions: in the tracing library, by the
 * thread that launches and by the one that harvests; and in the governing library, where the gate counts it.
 */
#include "test.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "shim/hooks/launch.h"
#include "shim/interpose/device_uuid.h"
#include "shim/interpose/real.h"
#include "shim/interpose/wait_listener.h"
#include "shim/time/flow.h"
#include "trace/preload/preload.h"

enum { MANY = 500, MOST_EVENTS = 4096, WITHIN_S = 30 };

#define OWN_STREAM ((struct ll_cu_stream *)(uintptr_t)0x1000)
#define ANCHORS ((struct ll_cu_stream *)(uintptr_t)0x2000)
#define CONTEXT ((struct ll_cu_context *)(uintptr_t)0x3000)
#define KERNEL(number) ((struct ll_cu_function *)(uintptr_t)(0x4000 + 0x40 * (number)))

enum call { RECORD, ELAPSED, QUERY, EXCHANGE, CAPTURING, CURRENT, STREAM_CONTEXT, NAME, CREATE, PUSH, OTHER, CALLS };

/* Of the launching thread, and of all others. */
static _Atomic unsigned calls[2][CALLS], not_ready;
static pthread_t launching;

static void count(enum call call)
{
	calls[!pthread_equal(pthread_self(), launching)][call]++;
}

static unsigned count_all(void)
{
	unsigned sum = 0;
	for (int i = 0; i < CALLS; i++)
		sum += calls[0][i];
	return sum;
}

static void forget_counts(void)
{
	for (int i = 0; i < CALLS; i++)
		calls[0][i] = calls[1][i] = 0;
	not_ready = 0;
}

/* ---- the driver ---- */

struct ll_cu_event {
	uint64_t ns;
	struct ll_cu_stream *stream;
	uint64_t number; /* how many were recorded when it was */
};

static struct ll_cu_event made[MOST_EVENTS];
static _Atomic unsigned made_count;
static _Atomic uint64_t recorded, reached = UINT64_MAX; /* what the card has come to */
static _Atomic bool is_slow, is_inside;                 /* the harvesting thread stays in the driver, is there */
static const char *kernel_name = "first";

static ll_cu_result event_create(struct ll_cu_event **ret_event, unsigned int flags)
{
	(void)flags;
	count(CREATE);
	*ret_event = &made[made_count++];
	return made_count < MOST_EVENTS ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_OUT_OF_MEMORY;
}

static ll_cu_result event_record(struct ll_cu_event *event, struct ll_cu_stream *stream)
{
	count(stream == ANCHORS ? OTHER : RECORD);
	*event = (struct ll_cu_event){.ns = ll_now_ns(), .stream = stream, .number = ++recorded};
	return LL_CUDA_SUCCESS;
}

static bool is_reached(const struct ll_cu_event *event)
{
	return event->stream == ANCHORS || event->number <= reached;
}

static ll_cu_result event_query(struct ll_cu_event *event)
{
	count(event->stream == ANCHORS ? OTHER : QUERY);
	return is_reached(event) ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_NOT_READY;
}

static ll_cu_result event_elapsed(float *ret_ms, struct ll_cu_event *from, struct ll_cu_event *to)
{
	if (to->stream != ANCHORS) {
		uint64_t deadline_ns = ll_now_ns() + WITHIN_S * LL_NS_PER_S;
		for (is_inside = is_slow; is_inside && ll_now_ns() < deadline_ns; is_inside = is_slow)
			ll_sleep_until_ns(ll_now_ns() + LL_NS_PER_MS);
	}
	if (!is_reached(to)) {
		not_ready++;
		return LL_CUDA_ERROR_NOT_READY;
	}
	count(to->stream == ANCHORS ? OTHER : ELAPSED);
	*ret_ms = (float)((double)(int64_t)(to->ns - from->ns) / 1e6);
	return LL_CUDA_SUCCESS;
}

static ll_cu_result exchange_mode(enum ll_cu_capture_mode *mode)
{
	static _Thread_local enum ll_cu_capture_mode now = LL_CU_STREAM_CAPTURE_MODE_GLOBAL;
	enum ll_cu_capture_mode before = now;
	count(EXCHANGE);
	now = *mode;
	*mode = before;
	return LL_CUDA_SUCCESS;
}

static enum ll_cu_capture_status capture_status = LL_CU_STREAM_CAPTURE_STATUS_NONE;

static ll_cu_result is_capturing(struct ll_cu_stream *stream, enum ll_cu_capture_status *ret_status)
{
	(void)stream;
	count(CAPTURING);
	*ret_status = capture_status;
	return LL_CUDA_SUCCESS;
}

static ll_cu_result get_current(struct ll_cu_context **ret_context)
{
	count(CURRENT);
	*ret_context = CONTEXT;
	return LL_CUDA_SUCCESS;
}

static ll_cu_result get_stream_context(struct ll_cu_stream *stream, struct ll_cu_context **ret_context)
{
	(void)stream;
	count(STREAM_CONTEXT);
	*ret_context = CONTEXT;
	return LL_CUDA_SUCCESS;
}

static ll_cu_result get_device(ll_cu_device *ret_device)
{
	count(OTHER);
	*ret_device = 0;
	return LL_CUDA_SUCCESS;
}

static ll_cu_result create_stream(struct ll_cu_stream **ret_stream, unsigned int flags)
{
	(void)flags;
	count(OTHER);
	*ret_stream = ANCHORS;
	return LL_CUDA_SUCCESS;
}

static ll_cu_result push(struct ll_cu_context *context)
{
	(void)context;
	count(PUSH);
	return LL_CUDA_SUCCESS;
}

static ll_cu_result get_name(const char **ret_name, struct ll_cu_function *function)
{
	(void)function;
	count(NAME);
	*ret_name = kernel_name;
	return LL_CUDA_SUCCESS;
}

static ll_cu_result any_other(void)
{
	count(OTHER);
	return LL_CUDA_SUCCESS;
}

_Atomic(const void *) ll_real_bound[2];

static struct ll_real table;

static void fill_table(void)
{
	void (*const other)(void) = (void (*)(void))any_other;
	for (size_t at = 0; at < sizeof table; at += sizeof other)
		memcpy((char *)&table + at, &other, sizeof other);
	table.cuEventCreate = event_create;
	table.cuEventRecord = event_record;
	table.cuEventQuery = event_query;
	table.cuEventElapsedTime = event_elapsed;
	table.cuThreadExchangeStreamCaptureMode = exchange_mode;
	table.cuStreamIsCapturing = is_capturing;
	table.cuCtxGetCurrent = get_current;
	table.cuStreamGetCtx = get_stream_context;
	table.cuCtxGetDevice = get_device;
	table.cuStreamCreate = create_stream;
	table.cuCtxPushCurrent_v2 = push;
	table.cuFuncGetName = get_name;
}

/* Threads may come at once, as in real.c. */
const void *ll_real_bind(enum ll_real_library which)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, fill_table);
	ll_real_bound[which] = &table;
	return &table;
}

/* ---- what else a launch touches: nothing is governed, unless said ---- */

static bool is_governed;
static struct ll_run_settings settings;
static struct ll_device_state own_dev = {.flow = (struct ll_flow *)(void *)made}; /* nobody looks inside */

ll_wait_listener *ll_wait_listener_find(void)
{
	return NULL;
}

_Atomic int ll_device_state_answer; /* asks each time */

const struct ll_run_settings *ll_device_state_settings(void)
{
	return is_governed ? &settings : NULL;
}

struct ll_device_state *ll_device_state_known(const struct ll_cu_context *context)
{
	(void)context;
	return NULL;
}

ll_cu_result ll_device_state_find_in(struct ll_cu_context *current, struct ll_device_state **ret_dev)
{
	*ret_dev = is_governed && current == CONTEXT ? &own_dev : NULL;
	return LL_CUDA_SUCCESS;
}

ll_cu_result ll_device_state_find(struct ll_cu_context **ret_context, struct ll_device_state **ret_dev)
{
	bool is_there = is_governed && ll_real()->cuCtxGetCurrent(ret_context) == LL_CUDA_SUCCESS;
	*ret_dev = NULL;
	return is_there ? ll_device_state_find_in(*ret_context, ret_dev) : LL_CUDA_SUCCESS;
}

bool ll_device_state_retake(struct ll_device_state *dev)
{
	(void)dev;
	return false;
}

bool ll_device_uuid(ll_cu_device device, char *text, size_t size)
{
	(void)device;
	(void)text;
	(void)size;
	return false;
}

void ll_port_note_copy(struct ll_claim *claim, uint64_t ns)
{
	(void)claim;
	(void)ns;
}

bool ll_port_is_lost(const struct ll_claim *claim)
{
	(void)claim;
	return false;
}

static bool is_counted = true;
static unsigned entered;

bool ll_flow_passes_open_gate(struct ll_flow *flow)
{
	(void)flow;
	return false;
}

bool ll_flow_count(struct ll_flow *flow, struct ll_cu_context *context, struct ll_timing_stream stream, uint64_t kind)
{
	(void)flow;
	(void)context;
	(void)stream;
	(void)kind;
	return is_counted;
}

void ll_flow_enter(struct ll_flow *flow, struct ll_cu_context *context, struct ll_timing_stream stream,
		   uint64_t kernel_key)
{
	ll_flow_count(flow, context, stream, kernel_key);
	entered++;
}

void ll_flow_note_gap(struct ll_flow *flow, const struct ll_cu_context *context, struct ll_timing_stream stream)
{
	(void)flow;
	(void)context;
	(void)stream;
}

void ll_flow_leave(struct ll_flow *flow, struct ll_cu_context *context, struct ll_timing_stream stream,
		   uint64_t kernel_key, uint64_t launched_ns)
{
	(void)launched_ns;
	ll_flow_count(flow, context, stream, kernel_key);
}

bool ll_flow_hold_for_capture(struct ll_flow *flow)
{
	(void)flow;
	return false;
}

void ll_flow_release(struct ll_flow *flow)
{
	(void)flow;
}

void ll_flow_note_capture(struct ll_flow *flow, struct ll_cu_context *context, struct ll_timing_stream stream)
{
	ll_flow_count(flow, context, stream, 0);
}

void ll_flow_forget_stream(struct ll_flow *flow, struct ll_cu_context *context, struct ll_timing_stream stream,
			   bool is_current)
{
	(void)is_current;
	ll_flow_count(flow, context, stream, 0);
}

/* ---- the file ---- */

static _Atomic unsigned rows, dropped;
static char last_name[32];
static unsigned names_told;

void ll_trace_writer_add(struct ll_trace_writer *writer, const struct ll_trace_record *record)
{
	(void)writer;
	rows += record->end_ns >= record->start_ns;
}

void ll_trace_writer_add_dropped(struct ll_trace_writer *writer, uint64_t count)
{
	(void)writer;
	dropped += (unsigned)count;
}

uint32_t ll_trace_writer_name(struct ll_trace_writer *writer, const char *name)
{
	(void)writer;
	snprintf(last_name, sizeof last_name, "%s", name);
	return ++names_told;
}

void ll_trace_writer_add_card(struct ll_trace_writer *writer, uint32_t device, const char *uuid)
{
	(void)writer;
	(void)device;
	(void)uuid;
}

void ll_trace_writer_flush(struct ll_trace_writer *writer)
{
	(void)writer;
}

/* ---- tests ---- */

static void launch(struct ll_cu_function *function, struct ll_cu_stream *stream)
{
	struct ll_work work = {.symbol = "cuLaunchKernel", .kind = LL_WORK_KERNEL, .function = function};
	LL_TRACED_LAUNCH_SCOPE(launch, stream, work);
	launch.status = LL_CUDA_SUCCESS;
}

static void launch_many(struct ll_cu_stream *stream)
{
	for (int i = 0; i < MANY; i++)
		launch(KERNEL(i % 8), stream);
}

static void launch_many_governed(struct ll_cu_stream *stream)
{
	for (int i = 0; i < MANY; i++) {
		LL_LAUNCH_SCOPE(launch, stream, 0);
		launch.status = LL_CUDA_SUCCESS;
	}
}

#define WAIT_FOR(condition)                                                                                            \
	do {                                                                                                           \
		uint64_t deadline_ns_ = ll_now_ns() + WITHIN_S * LL_NS_PER_S;                                          \
		while (!(condition) && ll_now_ns() < deadline_ns_)                                                     \
			ll_sleep_until_ns(ll_now_ns() + LL_NS_PER_MS);                                                 \
		assert_true(condition);                                                                                \
	} while (0)

static void wait_for_rows(unsigned wanted)
{
	WAIT_FOR(rows >= wanted);
	assert_int_equal(rows, wanted);
	assert_int_equal(dropped, 0);
}

static void hold_card(void)
{
	reached = recorded;
}

static void let_card_go(void)
{
	reached = UINT64_MAX;
}

/* All of it has ended, and as many events lie ready as the next test takes. */
static int make_ready(void **state)
{
	(void)state;
	let_card_go();
	is_slow = false;
	rows = 0;
	hold_card();
	launch_many(NULL);
	let_card_go();
	wait_for_rows(MANY);
	rows = 0;
	/* A harvest gives the last ones back before it ends. */
	unsigned pushes = calls[1][PUSH];
	WAIT_FOR(calls[1][PUSH] > pushes);
	forget_counts();
	return 0;
}

static void check_launches(struct ll_cu_stream *stream, unsigned stream_calls)
{
	hold_card(); /* so that how fast events come back does not matter */
	launch_many(stream);
	assert_int_equal(calls[0][RECORD], 2 * MANY);
	assert_int_equal(calls[0][CAPTURING], MANY);
	assert_int_equal(calls[0][CURRENT], MANY);
	assert_int_equal(calls[0][STREAM_CONTEXT], stream_calls * MANY);
	assert_int_equal(calls[0][EXCHANGE], 4 * MANY);
	assert_int_equal(calls[0][NAME], 0);
	assert_int_equal(calls[0][CREATE], 0);
	assert_int_equal(count_all(), (8 + stream_calls) * MANY);
	let_card_go();
	wait_for_rows(MANY);
}

TEST_WITH(make_ready, NULL, a_launch_takes_two_records_and_no_call_that_costs)
{
	check_launches(NULL, 0);
}

TEST_WITH(make_ready, NULL, in_a_stream_of_its_own_a_launch_asks_for_its_context_too)
{
	check_launches(OWN_STREAM, 1);
}

TEST_WITH(make_ready, NULL, what_has_ended_takes_a_call_for_each_event_and_what_has_not_one_a_harvest)
{
	hold_card();
	launch_many(NULL);
	uint64_t half = reached + MANY;
	WAIT_FOR(not_ready >= 3);
	assert_int_equal(rows, 0);
	reached = half;
	wait_for_rows(MANY / 2);
	let_card_go();
	wait_for_rows(MANY);
	assert_int_equal(calls[1][ELAPSED], 2 * MANY);
	assert_int_equal(calls[1][QUERY], 0);
	assert_true(not_ready <= calls[1][PUSH] + 1);
}

TEST_WITH(make_ready, NULL, nobody_waits_while_the_harvest_asks_the_driver)
{
	is_slow = true;
	launch(KERNEL(0), NULL);
	WAIT_FOR(is_inside);
	for (int i = 1; i < MANY; i++)
		launch(KERNEL(0), NULL);
	assert_true(is_inside); /* it did not have to come out for them */
	assert_int_equal(rows, 0);
	is_slow = false;
	wait_for_rows(MANY);
}

TEST_WITH(make_ready, NULL, a_kernel_s_name_is_asked_for_again_once_handles_may_be_others)
{
	kernel_name = "second";
	launch(KERNEL(0), NULL);
	assert_int_equal(calls[0][NAME], 0);
	ll_trace_names_forget();
	launch(KERNEL(0), NULL);
	launch(KERNEL(0), NULL);
	assert_int_equal(calls[0][NAME], 1);
	assert_string_equal(last_name, "second");
	wait_for_rows(3);
}

TEST_WITH(make_ready, NULL, more_kernels_than_places_keep_their_names)
{
	enum { KERNELS = 20000 };
	static uint32_t numbers[KERNELS];
	for (unsigned i = 0; i < KERNELS; i++) {
		struct ll_work what = {.symbol = "x", .function = KERNEL(i)};
		numbers[i] = ll_trace_names_find(NULL, &what);
		assert_int_equal(ll_trace_names_find(NULL, &what), numbers[i]);
		assert_true(i == 0 || numbers[i] != numbers[i - 1]);
	}
	assert_true(calls[0][NAME] <= KERNELS && calls[0][NAME] >= KERNELS - 8);
	ll_trace_names_forget();
}

static void check_counted(struct ll_cu_stream *stream, unsigned stream_calls, unsigned capture_calls)
{
	forget_counts();
	launch_many_governed(stream);
	assert_int_equal(calls[0][CAPTURING], capture_calls * MANY);
	assert_int_equal(calls[0][CURRENT], MANY);
	assert_int_equal(calls[0][STREAM_CONTEXT], stream_calls * MANY);
	assert_int_equal(count_all(), (1 + stream_calls + capture_calls) * MANY);
}

static void begin_capture(void)
{
	struct ll_launch_hold hold = ll_launch_hold_timing(NULL);
	ll_launch_release_timing(&hold);
}

/* Whether its stream is being captured only once any was. */
TEST_WITH(make_ready, NULL, a_launch_that_the_gate_counts_asks_one_to_three_questions)
{
	is_governed = true;
	check_counted(NULL, 0, 0);
	check_counted(OWN_STREAM, 1, 0);
	begin_capture();
	check_counted(NULL, 0, 1);
	check_counted(OWN_STREAM, 1, 1);
	is_governed = false;
}

/* Before any capture was begun in a way that is known, as later drivers may have others. */
TEST_WITH(make_ready, NULL, a_launch_that_is_not_counted_is_never_timed_in_a_capture)
{
	is_governed = true;
	is_counted = false;
	launch_many_governed(OWN_STREAM);
	assert_int_equal(entered, MANY);
	capture_status = LL_CU_STREAM_CAPTURE_STATUS_ACTIVE;
	launch_many_governed(OWN_STREAM);
	assert_int_equal(entered, MANY);
	capture_status = LL_CU_STREAM_CAPTURE_STATUS_NONE;
	is_counted = true;
	is_governed = false;
}

static uint64_t kind_of_memset(const char *symbol, uint64_t bytes)
{
	return ll_launch_key_of((struct ll_work){.symbol = symbol, .kind = LL_WORK_MEMSET, .bytes = bytes});
}

TEST(memsets_of_about_one_size_are_of_a_kind)
{
	static const char symbol[] = "cuMemsetD8Async";
	static const uint64_t classes[][2] = {{4, 4},       {5, 5},       {8, 9},
					      {1000, 1023}, {1024, 1279}, {UINT64_MAX, UINT64_MAX - 1}};
	uint64_t last = kind_of_memset(symbol, 0);
	for (unsigned i = 0; i < sizeof classes / sizeof *classes; i++) {
		uint64_t kind = kind_of_memset(symbol, classes[i][0]);
		assert_int_equal(kind, kind_of_memset(symbol, classes[i][1]));
		assert_int_not_equal(kind, last);
		last = kind;
	}
}

int main(int argc, char **argv)
{
	launching = pthread_self();
	if (ll_trace_events_start((struct ll_trace_writer *)(void *)made))
		return LL_EXIT_FAILED;
	int rc = tests_run(argc, argv);
	ll_trace_events_finish();
	return rc;
}
