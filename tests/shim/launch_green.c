/* Launches into green contexts, which are current to one thread at a time. */
#include "launching.h"

#include <pthread.h>

#define ID 7
#define MS UINT64_C(1000000)
#define SHORT_DEBT (5 * MS)

static struct ll_cu_stream *stream;
static struct ll_cu_function *work;
static struct ll_cu_context *context;
static uint64_t length_ns = MS / 10;
static void *params[] = {&length_ns};

static void prepare(void)
{
	govern_by((struct ll_run_settings){.id = ID, .tenant = "test", .compute_cap_permille = 100});
	context = open_context(0);
	stream = new_stream();
	work = get_kernel("work_ns");
	launch_work(stream, MS); /* the account begins */
}

static struct ll_cu_green_context *make_green(void)
{
	struct ll_cu_green_context *green;
	CHECK_EQUAL(cu.cuGreenCtxCreate(&green, new_green_desc(), 0, LL_CU_GREEN_CTX_DEFAULT_STREAM), 0);
	return green;
}

static void check_green(struct ll_cu_function *function, struct ll_cu_stream *in)
{
	owe(ID, SHORT_DEBT);
	uint64_t before_ns = gpu_ns(ID);
	CHECK_EQUAL(cu.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, in, params, NULL), 0);
	CHECK(tokens_ns(ID) > -(int64_t)(SHORT_DEBT / 2));
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	WAIT_FOR(gpu_ns(ID) > before_ns);
}

/* By its own streams from anywhere, and by its default stream where it is current. */
TEST_IN_WORLD(NULL, a_green_context_s_launches_are_gated_and_timed)
{
	struct ll_cu_context *view, *current, *primary;
	struct ll_cu_stream *own_stream;
	prepare();
	CHECK_EQUAL(cu.cuDevicePrimaryCtxRetain(&primary, 0), 0);
	struct ll_cu_green_context *green = make_green();
	CHECK_EQUAL(cu.cuGreenCtxStreamCreate(&own_stream, green, LL_CU_STREAM_NON_BLOCKING, 0), 0);
	CHECK_EQUAL(cu.cuCtxFromGreenCtx(&view, green), 0);
	CHECK_EQUAL(cu.cuCtxSetCurrent(primary), 0);
	struct ll_cu_function *function = get_kernel("work_ns");
	check_green(function, own_stream);
	CHECK_EQUAL(cu.cuCtxGetCurrent(&current), 0);
	CHECK(current == primary);
	CHECK_EQUAL(cu.cuCtxSetCurrent(view), 0);
	check_green(function, own_stream);
	check_green(function, NULL);
	CHECK_EQUAL(cu.cuCtxGetCurrent(&current), 0);
	CHECK(current == view);
	/* While it is current here nobody else can time what was launched last: it rests all the same. */
	for (int i = 0; i < 20; i++) {
		CHECK_EQUAL(cu.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, own_stream, params, NULL), 0);
		CHECK_EQUAL(cu.cuStreamSynchronize(own_stream), 0);
	}
	WAIT_FOR(!claim_of(ID)->want_since_ns);
	/* When it has gone, what it had launched is not looked after any more, and the rest is. */
	CHECK_EQUAL(cu.cuCtxSetCurrent(primary), 0);
	CHECK_EQUAL(cu.cuStreamDestroy(own_stream), 0);
	CHECK_EQUAL(cu.cuGreenCtxDestroy(green), 0);
	CHECK_EQUAL(cu.cuDevicePrimaryCtxRelease(0), 0);
	CHECK_EQUAL(cu.cuCtxSetCurrent(context), 0);
	check_green(work, stream);
	WAIT_FOR(!claim_of(ID)->want_since_ns);
	CHECK_EQUAL(has_note(ID), 0);
}

static struct ll_cu_context *green_view;
static struct ll_cu_stream *green_stream;
static _Atomic int step;

/* What it has launched last nobody has timed when it lets the context go. */
static void *launch_in_green(void *user)
{
	CHECK_EQUAL(cu.cuCtxSetCurrent(green_view), 0);
	struct ll_cu_function *function = get_kernel("work_ns");
	for (int i = 0; i < 24; i++) {
		CHECK_EQUAL(cu.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, green_stream, params, NULL), 0);
		if (i < 20 || i == 23)
			CHECK_EQUAL(cu.cuStreamSynchronize(green_stream), 0);
	}
	step = 1;
	WAIT_FOR(step == 2);
	CHECK_EQUAL(cu.cuCtxSetCurrent(NULL), 0);
	return user;
}

TEST_IN_WORLD(NULL, a_stream_whose_context_is_current_elsewhere_is_forgotten)
{
	pthread_t thread;
	prepare();
	struct ll_cu_green_context *green = make_green();
	CHECK_EQUAL(cu.cuGreenCtxStreamCreate(&green_stream, green, LL_CU_STREAM_NON_BLOCKING, 0), 0);
	CHECK_EQUAL(cu.cuCtxFromGreenCtx(&green_view, green), 0);
	CHECK_EQUAL(pthread_create(&thread, NULL, launch_in_green, NULL), 0);
	WAIT_FOR(step == 1);
	CHECK_EQUAL(cu.cuStreamDestroy(green_stream), 0);
	step = 2;
	CHECK_EQUAL(pthread_join(thread, NULL), 0);
	WAIT_FOR(!claim_of(ID)->want_since_ns);
	CHECK_EQUAL(has_note(ID), 0);
}
