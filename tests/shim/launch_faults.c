/* Launches whose context or card the driver does not say: they are counted, or not made. */
#include "launching.h"

#include <pthread.h>

#define ID 7
#define MS UINT64_C(1000000)
#define DEBT (5 * MS)
#define FAULT LL_CUDA_ERROR_LAUNCH_TIMEOUT

static struct ll_cu_context *context;
static struct ll_cu_function *work;
static struct ll_cu_stream *stream;
static uint64_t length_ns = MS;

static const struct trial {
	const char *function; /* of the driver, that fails */
	bool is_default_stream;
	ll_cu_result answer;
} trials[] = {
    {"cuCtxGetCurrent", false, FAULT},          {"cuCtxGetCurrent", true, FAULT},
    {"cuCtxGetDevice", false, FAULT},           {"cuCtxGetDevice", true, FAULT},
    {"cuStreamGetCtx", false, LL_CUDA_SUCCESS}, {"cuStreamIsCapturing", false, LL_CUDA_SUCCESS},
};

/* In a thread that has asked for no context yet. */
static void *launch(void *argument)
{
	const struct trial *trial = argument;
	char command[128];
	void *params[] = {&length_ns};
	CHECK_EQUAL(cu.cuCtxSetCurrent(context), 0);
	snprintf(command, sizeof command, "fail %s %d", trial->function, FAULT);
	CHECK_EQUAL(simctl(command), 0);
	ll_cu_result status =
	    cu.cuLaunchKernel(work, 1, 1, 1, 32, 1, 1, 0, trial->is_default_stream ? NULL : stream, params, NULL);
	CHECK_EQUAL(simctl("heal"), 0);
	CHECK_EQUAL(status, trial->answer);
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	return NULL;
}

static const struct trial *trial;

/* A tail that a busy host has not timed within 20 ms is charged when its stream is timed next. */
static bool is_charged(uint64_t before_ns, struct ll_cu_stream *of)
{
	if (gpu_ns(ID) >= before_ns + MS / 2)
		return true;
	launch_work(of, MS / 1000);
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	return false;
}

static void body_trial(void)
{
	pthread_t thread;
	context = begin_program(ID, 100, &work, &stream);
	owe(ID, DEBT);
	uint64_t before_ns = gpu_ns(ID);
	CHECK_EQUAL(pthread_create(&thread, NULL, launch, (void *)(uintptr_t)trial), 0);
	pthread_join(thread, NULL);
	if (trial->answer == LL_CUDA_SUCCESS) {
		CHECK(tokens_ns(ID) > -(int64_t)(DEBT / 2)); /* it has waited */
		WAIT_FOR(is_charged(before_ns, trial->is_default_stream ? NULL : stream));
	}
	/* The next launch is gated and counted as any other. */
	owe(ID, DEBT);
	before_ns = gpu_ns(ID);
	launch_work(stream, MS);
	CHECK(tokens_ns(ID) > -(int64_t)(DEBT / 2));
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	WAIT_FOR(is_charged(before_ns, stream));
}

TEST(a_launch_whose_context_the_driver_does_not_say_is_counted_or_not_made)
{
	for (trial = trials; trial < trials + sizeof trials / sizeof *trials; trial++) {
		print_message("%s fails\n", trial->function);
		in_world(NULL, body_trial);
	}
}
