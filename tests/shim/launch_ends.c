/* How threads and programs end while they launch: cancelled, by exit, with an agent that hangs. */
#include "launching.h"

#include <pthread.h>
#include <unistd.h>

#define ID 7
#define MS UINT64_C(1000000)
#define ENDLESS_DEBT (1000000 * MS)
static struct ll_cu_context *context;
static struct ll_cu_function *work;
static struct ll_cu_stream *shared;

static void prepare(unsigned cap_permille)
{
	govern_by((struct ll_run_settings){.id = ID, .tenant = "test", .compute_cap_permille = cap_permille});
	context = open_context(0);
	work = get_kernel("work_ns");
	shared = new_stream();
	launch_timed(work, shared, MS / 10, 1, 32);
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
}

/* The program has said that it is done: nothing of a launch was left half-way. */
static void check_rests(void)
{
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	WAIT_FOR(claim_of(ID) && !claim_of(ID)->want_since_ns);
}

#if defined(__SANITIZE_THREAD__)
static const bool is_tsan = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
static const bool is_tsan = true;
#else
static const bool is_tsan = false;
#endif
#else
static const bool is_tsan = false;
#endif
static _Atomic bool has_begun;

static void *launch_once(void *user)
{
	(void)user;
	CHECK_EQUAL(cu.cuCtxSetCurrent(context), 0);
	has_begun = true;
	launch_timed(work, shared, MS / 10, 1, 32);
	sleep(1000); /* cancelled here at the latest */
	return NULL;
}

static void cancel_one(void)
{
	pthread_t thread;
	void *result;
	has_begun = false;
	CHECK_EQUAL(pthread_create(&thread, NULL, launch_once, NULL), 0);
	WAIT_FOR(has_begun);
	sleep_ms(5); /* on its way in, wherever that is */
	CHECK_EQUAL(pthread_cancel(thread), 0);
	CHECK_EQUAL(pthread_join(thread, &result), 0);
	CHECK(result == PTHREAD_CANCELED);
}

static void body_cancel(void)
{
	prepare(100);
	owe(ID, 20 * MS);
	cancel_one();
	if (is_tsan) /* it does not follow a cancellation out of a library's call */
		return;
	/* In the driver's call itself. */
	check_rests();
	tenant(ID)->compute_cap_permille = 0;
	unsetenv("LD_PRELOAD"); /* nothing in front of the simulator's own program */
	CHECK_EQUAL(simctl("hang cuLaunchKernel 200ms count 1"), 0);
	cancel_one();
	launch_timed(work, shared, MS / 10, 1, 32);
	check_rests();
}

static void a_cancelled_thread_leaves_nothing_behind(void **state)
{
	(void)state;
	in_world(NULL, body_cancel);
}

/* It is cancelled in the first call of all that looks for a place on the card; the driver itself does nothing in it. */
static void *begin_cancelled(void *user)
{
	struct ll_cu_mem_allocation_prop prop = {.location = {.type = LL_CU_MEM_LOCATION_TYPE_DEVICE}};
	ll_cu_mem_handle handle;
	CHECK_EQUAL(pthread_cancel(pthread_self()), 0);
	cu.cuMemCreate(&handle, 0, &prop, 0);
	pthread_testcancel();
	return user;
}

static void body_cancel_first(void)
{
	pthread_t thread;
	void *result;
	govern_by((struct ll_run_settings){.id = ID, .tenant = "test"});
	open_cuda();
	CHECK_EQUAL(cu.cuInit(0), 0);
	CHECK_EQUAL(pthread_create(&thread, NULL, begin_cancelled, NULL), 0);
	CHECK_EQUAL(pthread_join(thread, &result), 0);
	CHECK(result == PTHREAD_CANCELED);
	context = open_context(0);
	launch_work(new_stream(), MS);
	check_rests();
}

static void a_thread_that_is_cancelled_in_its_first_call_leaves_nothing_locked(void **state)
{
	(void)state;
	if (!is_tsan)
		in_world(NULL, body_cancel_first);
}

static void *allocate_cancelled(void *user)
{
	ll_cu_deviceptr address;
	CHECK_EQUAL(cu.cuCtxSetCurrent(context), 0);
	has_begun = true;
	cu.cuMemAllocAsync(&address, 1 << 20, shared);
	sleep(1000);
	return user;
}

/* While the driver is asked what the pool has. */
static void body_cancel_in_pool(void)
{
	pthread_t thread;
	void *result;
	ll_cu_deviceptr address;
	prepare(0);
	CHECK_EQUAL(cu.cuMemAllocAsync(&address, 1 << 20, shared), 0);
	CHECK_EQUAL(cu.cuMemFreeAsync(address, shared), 0);
	unsetenv("LD_PRELOAD");
	CHECK_EQUAL(simctl("hang cuMemPoolGetAttribute 200ms count 1"), 0);
	has_begun = false;
	CHECK_EQUAL(pthread_create(&thread, NULL, allocate_cancelled, NULL), 0);
	WAIT_FOR(has_begun);
	sleep_ms(5);
	CHECK_EQUAL(pthread_cancel(thread), 0);
	CHECK_EQUAL(pthread_join(thread, &result), 0);
	CHECK(result == PTHREAD_CANCELED);
	CHECK_EQUAL(cu.cuMemAllocAsync(&address, 1 << 20, shared), 0);
}

static void a_thread_that_is_cancelled_in_a_pool_leaves_nothing_locked(void **state)
{
	(void)state;
	if (!is_tsan)
		in_world(NULL, body_cancel_in_pool);
}

static void destroy_shared(void)
{
	cu.cuStreamDestroy(shared);
}

/* As destructors of libraries do, which were made before the first context. */
static void body_exit_hung(void)
{
	CHECK_EQUAL(atexit(destroy_shared), 0);
	prepare(0);
	check_rests(); /* or it might hang before, with what was launched already */
	unsetenv("LD_PRELOAD");
	check_rests(); /* else the launch itself asks what has become of the one before */
	CHECK_EQUAL(simctl("hang cuEventQuery 600s"), 0);
	launch_timed(work, shared, 50 * MS, 1, 32);
	sleep_ms(20); /* the agent asks */
	exit(0);
}

static void a_program_whose_agent_hangs_in_the_driver_ends(void **state)
{
	(void)state;
	uint64_t began_ns = ll_now_ns();
	in_world(NULL, body_exit_hung);
	assert_true(ll_now_ns() - began_ns < 100000 * MS);
}

static void *launch_in_debt(void *user)
{
	(void)user;
	CHECK_EQUAL(cu.cuCtxSetCurrent(context), 0);
	has_begun = true;
	launch_timed(work, shared, MS / 10, 1, 32);
	return NULL;
}

static void body_exit(void)
{
	pthread_t thread;
	prepare(100);
	owe(ID, ENDLESS_DEBT);
	CHECK_EQUAL(pthread_create(&thread, NULL, launch_in_debt, NULL), 0);
	WAIT_FOR(has_begun);
	CHECK_EQUAL(pthread_detach(thread), 0);
	sleep_ms(5);
	exit(0);
}

static void a_program_ends_while_a_thread_waits_to_launch(void **state)
{
	(void)state;
	uint64_t began_ns = ll_now_ns();
	in_world(NULL, body_exit);
	assert_true(ll_now_ns() - began_ns < 30000 * MS);
}

static void body_exit_in_call(void)
{
	pthread_t thread;
	prepare(0);
	unsetenv("LD_PRELOAD");
	CHECK_EQUAL(simctl("hang cuLaunchKernel 500ms count 1"), 0);
	has_begun = false;
	CHECK_EQUAL(pthread_create(&thread, NULL, launch_in_debt, NULL), 0);
	WAIT_FOR(has_begun);
	CHECK_EQUAL(pthread_detach(thread), 0);
	sleep_ms(20);
	exit(0);
}

static void a_program_ends_while_the_driver_launches(void **state)
{
	(void)state;
	in_world(NULL, body_exit_in_call);
}

/* Behind a value that nobody has written yet lies more than a queue's bound; another stream's launch leads up to it. */
static void body_stalled(void)
{
	ll_cu_deviceptr word;
	uint64_t began_ns = ll_now_ns();
	prepare(500);
	struct ll_cu_stream *other = new_stream();
	CHECK_EQUAL(cu.cuMemAlloc(&word, 4096), 0);
	CHECK_EQUAL(cu.cuMemsetD8(word, 0, 4096), 0);
	CHECK_EQUAL(cu.cuStreamWaitValue32(shared, word, 1, LL_CU_STREAM_WAIT_VALUE_EQ), 0);
	for (int i = 0; i < 40; i++)
		launch_timed(work, shared, MS / 10, 1, 32);
	launch_timed(work, other, MS, 1, 32);
	CHECK_EQUAL(cu.cuStreamWriteValue32(other, word, 1, 0), 0);
	check_rests();
	CHECK(ll_now_ns() - began_ns < 30000 * MS); /* far below the longest wait at the gate */
}

static void a_queue_that_waits_for_the_next_launch_gets_it(void **state)
{
	(void)state;
	in_world(NULL, body_stalled);
}

/* Of kernels that are each longer than the queue's bound the next one is there when one ends. */
static void body_long_kernels(void)
{
	enum { KERNEL_MS = 45 };
	ll_cu_deviceptr word;
	prepare(999);
	CHECK_EQUAL(cu.cuMemAlloc(&word, 4096), 0);
	CHECK_EQUAL(cu.cuMemsetD8(word, 0, 4096), 0);
	for (int i = 0; i < 4; i++) {
		launch_timed(work, shared, KERNEL_MS * MS, 1, 32);
		CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	}
	tenant(ID)->tokens_ns = 2 * KERNEL_MS * MS;
	CHECK_EQUAL(cu.cuStreamWaitValue32(shared, word, 1, LL_CU_STREAM_WAIT_VALUE_EQ), 0);
	launch_timed(work, shared, KERNEL_MS * MS, 1, 32);
	uint64_t began_ns = ll_now_ns();
	launch_timed(work, shared, KERNEL_MS * MS, 1, 32);
	CHECK(ll_now_ns() - began_ns < 2 * KERNEL_MS * MS); /* a queue that is full stalls for longer */
	CHECK_EQUAL(cu.cuStreamWriteValue32(new_stream(), word, 1, 0), 0);
	check_rests();
}

static void behind_a_long_kernel_there_may_be_one_more(void **state)
{
	(void)state;
	in_world(NULL, body_long_kernels);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(behind_a_long_kernel_there_may_be_one_more),
	    cmocka_unit_test(a_queue_that_waits_for_the_next_launch_gets_it),
	    cmocka_unit_test(a_cancelled_thread_leaves_nothing_behind),
	    cmocka_unit_test(a_thread_that_is_cancelled_in_its_first_call_leaves_nothing_locked),
	    cmocka_unit_test(a_thread_that_is_cancelled_in_a_pool_leaves_nothing_locked),
	    cmocka_unit_test(a_program_whose_agent_hangs_in_the_driver_ends),
	    cmocka_unit_test(a_program_ends_while_a_thread_waits_to_launch),
	    cmocka_unit_test(a_program_ends_while_the_driver_launches),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
