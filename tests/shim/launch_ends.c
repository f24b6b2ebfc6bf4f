/* How threads and programs end while they launch: cancelled, by exit, with an agent that hangs. */
#include "launching.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "process_state.h"

#define ID 7
#define MS UINT64_C(1000000)
static struct ll_cu_context *context;
static struct ll_cu_function *work;
static struct ll_cu_stream *shared;

static void prepare(unsigned cap_permille)
{
	context = begin_program(ID, cap_permille, &work, &shared);
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
/* The thread that is about to make the call under test; 0: none yet. */
static _Atomic pid_t caller;

static void announce_call(void)
{
	CHECK_EQUAL(cu.cuCtxSetCurrent(context), 0);
	caller = (pid_t)syscall(SYS_gettid);
}

/* The caller sleeps: at the gate, in the driver that hangs, or behind the call. */
static bool caller_sleeps(void)
{
	char path[64];
	if (!caller)
		return false;
	snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)caller);
	return state_in(path) == 'S';
}

static void *launch_once(void *user)
{
	(void)user;
	announce_call();
	launch_timed(work, shared, MS / 10, 1, 32);
	sleep(1000); /* cancelled here at the latest */
	return NULL;
}

static void cancel_one(void)
{
	pthread_t thread;
	void *result;
	caller = 0;
	CHECK_EQUAL(pthread_create(&thread, NULL, launch_once, NULL), 0);
	WAIT_FOR(caller_sleeps());
	CHECK_EQUAL(pthread_cancel(thread), 0);
	CHECK_EQUAL(pthread_join(thread, &result), 0);
	CHECK(result == PTHREAD_CANCELED);
}

TEST_IN_WORLD(NULL, a_cancelled_thread_leaves_nothing_behind)
{
	prepare(100);
	owe(ID, 20 * MS);
	cancel_one();
	if (is_tsan) /* it does not follow a cancellation out of a library's call */
		return;
	/* In the driver's call itself. */
	check_rests(ID);
	set_cap(ID, 0);
	unsetenv("LD_PRELOAD"); /* nothing in front of the simulator's own program */
	CHECK_EQUAL(simctl("hang cuLaunchKernel 200ms count 1"), 0);
	cancel_one();
	launch_timed(work, shared, MS / 10, 1, 32);
	check_rests(ID);
}

/* The library asks the driver something before and after the program's own call, in the same thread. */
static void body_cancel_around(void)
{
	enum { CALLS = 4 };
	prepare(0);
	unsetenv("LD_PRELOAD");
	for (int i = 0; i < CALLS; i++) {
		char command[80];
		check_rests(ID);
		snprintf(command, sizeof command, "hang cuThreadExchangeStreamCaptureMode 200ms after %d count 1", i);
		CHECK_EQUAL(simctl(command), 0);
		cancel_one();
		CHECK_EQUAL(simctl("heal"), 0);
		check_rests(ID);
		launch_timed(work, shared, MS / 10, 1, 32);
	}
}

TEST(a_thread_that_is_cancelled_around_its_launch_leaves_nothing_behind)
{
	if (!is_tsan)
		in_world(NULL, body_cancel_around);
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
	check_rests(ID);
}

TEST(a_thread_that_is_cancelled_in_its_first_call_leaves_nothing_locked)
{
	if (!is_tsan)
		in_world(NULL, body_cancel_first);
}

static void *allocate_cancelled(void *user)
{
	ll_cu_deviceptr address;
	announce_call();
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
	caller = 0;
	CHECK_EQUAL(pthread_create(&thread, NULL, allocate_cancelled, NULL), 0);
	WAIT_FOR(caller_sleeps());
	CHECK_EQUAL(pthread_cancel(thread), 0);
	CHECK_EQUAL(pthread_join(thread, &result), 0);
	CHECK(result == PTHREAD_CANCELED);
	CHECK_EQUAL(cu.cuMemAllocAsync(&address, 1 << 20, shared), 0);
}

TEST(a_thread_that_is_cancelled_in_a_pool_leaves_nothing_locked)
{
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
	unsetenv("LD_PRELOAD");
	check_rests(ID); /* else the launch itself asks what has become of the one before */
	CHECK_EQUAL(simctl("hang cuEventQuery 600s"), 0);
	launch_timed(work, shared, 50 * MS, 1, 32);
	sleep_ms(20); /* the agent asks */
	exit(0);
}

TEST(a_program_whose_agent_hangs_in_the_driver_ends)
{
	uint64_t began_ns = ll_now_ns();
	in_world(NULL, body_exit_hung);
	assert_true(ll_now_ns() - began_ns < 100000 * MS);
}

/* The program ends meanwhile: the driver may refuse what it has not begun. */
static void *launch_at_the_end(void *user)
{
	uint64_t ns = MS / 10;
	void *params[] = {&ns};
	announce_call();
	cu.cuLaunchKernel(work, 1, 1, 1, 32, 1, 1, 0, shared, params, NULL);
	return user;
}

static void body_exit(void)
{
	pthread_t thread;
	prepare(100);
	owe_for_long(ID);
	CHECK_EQUAL(pthread_create(&thread, NULL, launch_at_the_end, NULL), 0);
	WAIT_FOR(caller_sleeps());
	CHECK_EQUAL(pthread_detach(thread), 0);
	exit(0);
}

TEST(a_program_ends_while_a_thread_waits_to_launch)
{
	uint64_t began_ns = ll_now_ns();
	in_world(NULL, body_exit);
	assert_true(ll_now_ns() - began_ns < 30000 * MS);
}

TEST_IN_WORLD(NULL, a_program_ends_while_the_driver_launches)
{
	pthread_t thread;
	prepare(0);
	unsetenv("LD_PRELOAD");
	CHECK_EQUAL(simctl("hang cuLaunchKernel 500ms count 1"), 0);
	CHECK_EQUAL(pthread_create(&thread, NULL, launch_at_the_end, NULL), 0);
	WAIT_FOR(caller_sleeps());
	CHECK_EQUAL(pthread_detach(thread), 0);
	exit(0);
}

/* Behind a value that nobody has written yet lies more than a queue's bound; another stream's launch leads up to it. */
TEST_IN_WORLD(NULL, a_queue_that_waits_for_the_next_launch_gets_it)
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
	check_rests(ID);
	CHECK(ll_now_ns() - began_ns < 30000 * MS); /* far below the longest wait at the gate */
}

/* How long the launch of a kernel of that length takes behind one that has not begun. */
static uint64_t launch_behind(ll_cu_deviceptr word, uint32_t value, uint64_t kernel_ns)
{
	WAIT_FOR(tokens_ns(ID) >= (int64_t)(2 * kernel_ns));
	CHECK_EQUAL(cu.cuStreamWaitValue32(shared, word, value, LL_CU_STREAM_WAIT_VALUE_EQ), 0);
	launch_timed(work, shared, kernel_ns, 1, 32);
	uint64_t began_ns = ll_now_ns();
	launch_timed(work, shared, kernel_ns, 1, 32);
	uint64_t took_ns = ll_now_ns() - began_ns;
	CHECK_EQUAL(cu.cuStreamWriteValue32(new_stream(), word, value, 0), 0);
	check_rests(ID);
	return took_ns;
}

/*
 * If each kernel is longer than the queue's bound, the next one may be queued while one runs. A launch that has to wait
 * for a full queue takes at least 50 ms and twice the kernel; a busy host may hold up any launch for as long, but not
 * each of them.
 */
TEST_IN_WORLD(NULL, behind_a_long_kernel_there_may_be_one_more)
{
	enum { KERNEL_MS = 45, TRIES = 10 };
	ll_cu_deviceptr word;
	uint64_t quickest_ns = UINT64_MAX;
	prepare(999);
	CHECK_EQUAL(cu.cuMemAlloc(&word, 4096), 0);
	CHECK_EQUAL(cu.cuMemsetD8(word, 0, 4096), 0);
	for (int i = 0; i < 4; i++) {
		launch_timed(work, shared, KERNEL_MS * MS, 1, 32);
		CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	}
	for (uint32_t i = 1; i <= TRIES && quickest_ns >= 2 * KERNEL_MS * MS; i++) {
		uint64_t took_ns = launch_behind(word, i, KERNEL_MS * MS);
		quickest_ns = took_ns < quickest_ns ? took_ns : quickest_ns;
	}
	CHECK(quickest_ns < 2 * KERNEL_MS * MS);
}
