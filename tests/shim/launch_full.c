/*
 * A stream whose queue in the driver is full, and that waits for what another thread's launch leads up to: timing
 * events take room in it, too. Natively every program here ends.
 */
#include "launching.h"

#include <pthread.h>
#include <unistd.h>

#define ID 7
#define MS UINT64_C(1000000)
enum { QUEUE = 1024, OTHERS = 3, MORE_THAN_FIT = 1100, DEADLINE_S = 60 }; /* sim/README.md */

static struct ll_cu_context *context;
static struct ll_cu_function *work;
static struct ll_cu_stream *full, *side;
static void *pinned;
static ll_cu_deviceptr word;
static unsigned blocks = 1; /* of the kernels: another grid is another kind */
static _Atomic unsigned launched;

/* Nothing is known of what launches take: each is timed. */
static void prepare(unsigned cap_permille)
{
	govern_by((struct ll_run_settings){.id = ID, .tenant = "test", .compute_cap_permille = cap_permille});
	context = open_context(0);
	work = get_kernel("work_ns");
	full = new_stream();
	side = new_stream();
	CHECK_EQUAL(cu.cuMemHostAlloc(&pinned, 4096, 0), 0);
	CHECK_EQUAL(cu.cuMemAlloc(&word, 4096), 0);
	CHECK_EQUAL(cu.cuMemsetD8(word, 0, 4096), 0);
}

/* From here on it is: a few of them are not timed one by one. */
static void learn(void)
{
	for (int i = 0; i < 12; i++) {
		launch_timed(work, full, MS / 50, blocks, 32);
		CHECK_EQUAL(cu.cuStreamSynchronize(full), 0);
	}
	WAIT_FOR(!claim_of(ID)->want_since_ns);
}

/* The stream waits, with so many places left behind: copies are not held back, and not counted. */
static void fill(unsigned left)
{
	CHECK_EQUAL(cu.cuStreamWaitValue32(full, word, 1, LL_CU_STREAM_WAIT_VALUE_EQ), 0);
	for (unsigned i = 1; i < QUEUE - left; i++)
		CHECK_EQUAL(cu.cuMemcpyHtoDAsync(word + 64, pinned, 4, full), 0);
}

static void *launch_into_full(void *count)
{
	CHECK_EQUAL(cu.cuCtxSetCurrent(context), 0);
	for (unsigned i = 0; i < *(unsigned *)count; i++) {
		launch_timed(work, full, MS / 50, blocks, 32);
		launched++;
	}
	return NULL;
}

static void *launch_beside(void *unused)
{
	(void)unused;
	CHECK_EQUAL(cu.cuCtxSetCurrent(context), 0);
	struct ll_cu_stream *own = new_stream();
	for (int i = 0; i < 3; i++)
		launch_timed(work, own, MS / 50, 1, 32);
	CHECK_EQUAL(cu.cuStreamSynchronize(own), 0);
	return NULL;
}

static void release(void)
{
	CHECK_EQUAL(cu.cuStreamWriteValue32(side, word, 1, 0), 0);
}

/* Whoever launches is done, or gets no further. */
static void wait_until_stuck(unsigned count)
{
	unsigned calm_ms = 0;
	for (unsigned before = launched; before < count && calm_ms < 100; calm_ms++) {
		sleep_ms(1);
		if (launched != before)
			calm_ms = 0;
		before = launched;
	}
}

/* With a deadline: a program that hangs does not come back from here. */
static void check_others_launch(void)
{
	pthread_t threads[OTHERS];
	alarm(DEADLINE_S);
	for (int i = 0; i < OTHERS; i++)
		CHECK_EQUAL(pthread_create(&threads[i], NULL, launch_beside, NULL), 0);
	for (int i = 0; i < OTHERS; i++)
		CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
}

/* All of it was worked off and charged, and the claim can be had again. */
static void check_ends(pthread_t thread, uint64_t before_ns, unsigned count)
{
	release();
	CHECK_EQUAL(pthread_join(thread, NULL), 0);
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	WAIT_FOR(!claim_of(ID)->want_since_ns);
	CHECK(gpu_ns(ID) - before_ns >= count * (MS / 50) * 8 / 10);
	CHECK_EQUAL(has_note(ID), 0);
	alarm(0);
}

static void run_full(unsigned count)
{
	pthread_t thread;
	uint64_t before_ns = gpu_ns(ID);
	launched = 0;
	CHECK_EQUAL(pthread_create(&thread, NULL, launch_into_full, &count), 0);
	wait_until_stuck(count);
	check_others_launch();
	check_ends(thread, before_ns, count);
}

TEST_IN_WORLD(NULL, a_start_that_finds_no_room_holds_up_nobody_else)
{
	prepare(500);
	learn();
	fill(0);
	run_full(1);
}

/* A kernel of a kind that nobody knows is timed at once. */
TEST_IN_WORLD(NULL, an_end_that_finds_no_room_holds_up_nobody_else)
{
	prepare(500);
	learn();
	blocks = 2;
	fill(2);
	run_full(1);
}

/* Known launches are left to the agent, which finds the queue full, and goes on: a cap that comes then is kept to. */
TEST_IN_WORLD(NULL, an_agent_that_finds_no_room_goes_on)
{
	prepare(500);
	learn();
	set_cap(ID, 0);
	fill(2);
	pthread_t thread;
	unsigned count = 1;
	uint64_t before_ns = gpu_ns(ID);
	CHECK_EQUAL(pthread_create(&thread, NULL, launch_into_full, &count), 0);
	wait_until_stuck(count);
	sleep_ms(30); /* ticks of the agent's in which it would time */
	set_cap(ID, 500);
	WAIT_FOR(claim_of(ID)->gate == LL_GATE_SHUT);
	check_others_launch();
	check_ends(thread, before_ns, count);
}

TEST_IN_WORLD(NULL, more_launches_than_fit_hold_up_nobody_else)
{
	prepare(0);
	fill(QUEUE - 1);
	run_full(MORE_THAN_FIT);
}

/* As many as fit natively, by a thread that brings itself what they wait for. */
TEST_IN_WORLD(NULL, events_leave_room_for_a_thousand_launches)
{
	enum { FIT = 1000 };
	prepare(0);
	uint64_t before_ns = gpu_ns(ID);
	alarm(DEADLINE_S);
	fill(QUEUE - 1);
	for (int i = 0; i < FIT; i++)
		launch_timed(work, full, MS / 50, blocks, 32);
	release();
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	WAIT_FOR(!claim_of(ID)->want_since_ns);
	CHECK(gpu_ns(ID) - before_ns >= FIT * (MS / 50) * 8 / 10);
}
