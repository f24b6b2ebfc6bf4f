/*
 * Which threads are inside a call of the driver, without a driver: entering and leaving, shutting, and what becomes of
 * threads that end. The barrier is the test's own, which a kernel or a sandbox may refuse.
 */
#include "shim/time/driver_calls.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

#include "base/clock.h"

#define SOON_NS (20 * LL_NS_PER_MS)
#define LONG_NS (30 * LL_NS_PER_S)

static int answer_to_allow, answer_to_barrier;
static bool has_kernel_barrier; /* it is the kernel's, if the kernel grants one */
static _Atomic int barriers;

int ll_thread_barrier_allow(void)
{
	if (has_kernel_barrier)
		return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0) == 0 ? 0 : -errno;
	return answer_to_allow;
}

int ll_thread_barrier(void)
{
	barriers++;
	if (has_kernel_barrier)
		return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0) == 0 ? 0 : -errno;
	return answer_to_barrier;
}

#define CHECK(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                \
			_exit(1);                                                                                      \
		}                                                                                                      \
	} while (0)

/* A process of its own: the first call of a process decides how threads enter. */
static void in_process(void (*body)(void))
{
	int status = 0;
	pid_t child = fork();
	assert_true(child >= 0);
	if (!child) {
		alarm(100);
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static struct ll_driver_calls_inside wait_for_ns(uint64_t ns)
{
	struct ll_driver_calls_inside inside;
	CHECK(ll_driver_calls_wait(ll_now_ns() + ns, &inside) == 0);
	return inside;
}

/* ---- a thread that is inside for as long as the test wants ---- */

static _Atomic bool is_in, may_leave, waits_for_turn;
static _Atomic int its_number;

static void *stay_inside(void *user)
{
	LL_DRIVER_CALL(cuStay);
	ll_driver_call_wait_for_turn(waits_for_turn);
	its_number = (int)syscall(SYS_gettid);
	is_in = true;
	while (!may_leave)
		ll_sleep_until_ns(ll_now_ns() + LL_NS_PER_MS / 10);
	return user;
}

static pthread_t start_inside(void)
{
	pthread_t thread;
	is_in = may_leave = false;
	CHECK(pthread_create(&thread, NULL, stay_inside, NULL) == 0);
	while (!is_in)
		ll_sleep_until_ns(ll_now_ns() + LL_NS_PER_MS / 10);
	return thread;
}

static void join_thread(pthread_t thread)
{
	may_leave = true;
	CHECK(pthread_join(thread, NULL) == 0);
}

static void body_named(void)
{
	pthread_t thread = start_inside();
	CHECK(ll_driver_calls_shut() == 0);
	struct ll_driver_calls_inside inside = wait_for_ns(SOON_NS);
	CHECK(inside.count == 1);
	CHECK(inside.named[0].thread == its_number);
	CHECK(strcmp(inside.named[0].function, "cuStay") == 0);
	CHECK(inside.named[0].waits_for_turn == waits_for_turn);
	join_thread(thread);
	CHECK(wait_for_ns(LONG_NS).count == 0);
	ll_driver_calls_open();
}

TEST(a_thread_that_stays_inside_is_named_and_the_wait_ends)
{
	in_process(body_named);
	waits_for_turn = true;
	in_process(body_named);
	waits_for_turn = false;
}

static void *leave_soon(void *user)
{
	ll_sleep_until_ns(ll_now_ns() + SOON_NS);
	may_leave = true;
	return user;
}

TEST_RUN_BY(in_process, a_wait_ends_with_the_last_call)
{
	pthread_t thread = start_inside(), timer;
	CHECK(pthread_create(&timer, NULL, leave_soon, NULL) == 0);
	CHECK(ll_driver_calls_shut() == 0);
	CHECK(wait_for_ns(LONG_NS).count == 0);
	CHECK(may_leave);
	join_thread(thread);
	join_thread(timer);
}

static _Atomic bool has_entered;

static void *enter_once(void *user)
{
	errno = EXDEV;
	LL_DRIVER_CALL(cuOnce);
	CHECK(errno == EXDEV);
	has_entered = true;
	return user;
}

/* The thread is known already, or it is new. */
static void body_shut(void)
{
	pthread_t thread;
	CHECK(ll_driver_calls_shut() == 0);
	CHECK(ll_driver_calls_shut() == 0);
	CHECK(pthread_create(&thread, NULL, enter_once, NULL) == 0);
	ll_sleep_until_ns(ll_now_ns() + SOON_NS);
	CHECK(wait_for_ns(0).count == 0);
	ll_driver_calls_open();
	ll_sleep_until_ns(ll_now_ns() + SOON_NS);
	CHECK(!has_entered);
	ll_driver_calls_open();
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(has_entered);
}

TEST(a_thread_that_comes_while_the_calls_are_shut_waits_until_the_last_open)
{
	in_process(body_shut);
}

static void call_inside(void)
{
	LL_DRIVER_CALL(cuInner);
	CHECK(strcmp(ll_driver_call_own->function, "cuOuter") == 0);
}

TEST_RUN_BY(in_process, a_nested_call_counts_once_and_passes)
{
	LL_DRIVER_CALL(cuOuter);
	CHECK(ll_driver_calls_shut() == 0); /* who is inside already never waits */
	call_inside();
	CHECK(strcmp(ll_driver_call_own->function, "cuOuter") == 0);
	CHECK(wait_for_ns(0).count == 0); /* the calling thread is left out */
}

/* ---- threads that come and go ---- */

enum { CROWD = 1000, AT_ONCE = 250, CALLS = 100 };

static _Atomic bool is_anyone_allowed = true;
static _Atomic int wrong;

static void *call_often(void *user)
{
	for (int i = 0; i < CALLS; i++) {
		LL_DRIVER_CALL(cuOften);
		wrong += !is_anyone_allowed;
	}
	return user;
}

static void *shut_often(void *user)
{
	while (!may_leave) {
		CHECK(ll_driver_calls_shut() == 0);
		CHECK(wait_for_ns(LONG_NS).count == 0);
		is_anyone_allowed = false;
		ll_sleep_until_ns(ll_now_ns() + LL_NS_PER_MS / 10);
		is_anyone_allowed = true;
		ll_driver_calls_open();
		ll_sleep_until_ns(ll_now_ns() + LL_NS_PER_MS / 10);
	}
	return user;
}

static void body_crowd(void)
{
	static pthread_t threads[AT_ONCE];
	pthread_t shutter;
	may_leave = false;
	CHECK(pthread_create(&shutter, NULL, shut_often, NULL) == 0);
	for (int done = 0; done < CROWD; done += AT_ONCE) {
		for (int i = 0; i < AT_ONCE; i++)
			CHECK(pthread_create(&threads[i], NULL, call_often, NULL) == 0);
		for (int i = 0; i < AT_ONCE; i++)
			CHECK(pthread_join(threads[i], NULL) == 0);
	}
	join_thread(shutter);
	CHECK(wrong == 0);
	CHECK(wait_for_ns(0).count == 0);
}

TEST(a_thousand_threads_come_and_go_and_none_is_inside_while_the_calls_are_shut)
{
	answer_to_allow = -EPERM;
	in_process(body_crowd); /* with fences */
	answer_to_allow = 0;
	has_kernel_barrier = true;
	in_process(body_crowd);
	has_kernel_barrier = false;
}

static void *exit_inside(void *user)
{
	(void)user;
	LL_DRIVER_CALL(cuExit);
	pthread_exit(NULL);
}

TEST_RUN_BY(in_process, a_thread_that_exits_inside_a_call_has_left_it)
{
	pthread_t thread;
	CHECK(pthread_create(&thread, NULL, exit_inside, NULL) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(wait_for_ns(0).count == 0);
}

/* As a thread ends whose language knows nothing of the C library's clean-ups. */
static void *end_without_a_word(void *user)
{
	LL_DRIVER_CALL(cuGone);
	is_in = true;
	syscall(SYS_exit, 0);
	return user;
}

TEST_RUN_BY(in_process, a_thread_that_ended_without_a_word_is_not_waited_for)
{
	pthread_t thread;
	CHECK(pthread_create(&thread, NULL, end_without_a_word, NULL) == 0);
	CHECK(pthread_detach(thread) == 0);
	while (!is_in)
		ll_sleep_until_ns(ll_now_ns() + LL_NS_PER_MS / 10);
	CHECK(wait_for_ns(LONG_NS).count == 0);
}

/* In the child is one thread, inside as it was; the parent's other one is not there. */
static void body_fork(void)
{
	int status = 0;
	pthread_t thread = start_inside();
	LL_DRIVER_CALL(cuFork);
	CHECK(ll_driver_calls_shut() == 0);
	pid_t child = fork();
	if (!child) {
		alarm(60);
		struct ll_driver_call *own = ll_driver_call_own;
		CHECK(strcmp(own->function, "cuFork") == 0);
		CHECK(own->thread == (int)syscall(SYS_gettid));
		CHECK(wait_for_ns(0).count == 0);
		pthread_t one;
		CHECK(pthread_create(&one, NULL, enter_once, NULL) == 0); /* the calls are open */
		CHECK(pthread_join(one, NULL) == 0);
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK(wait_for_ns(0).count == 1);
	join_thread(thread);
}

TEST(a_forked_child_has_its_own_thread_alone_and_its_calls_are_open)
{
#if defined(LL_HAS_THREAD_SANITIZER)
	SKIP_TEST("the thread sanitizer does not follow a fork of a program that has threads");
#endif
	in_process(body_fork);
}

/* ---- barriers that are refused ---- */

TEST_RUN_BY(in_process, without_barriers_entries_have_fences_and_all_is_the_same)
{
	answer_to_allow = answer_to_barrier = -EPERM;
	body_named();
	has_entered = false;
	body_shut();
	CHECK(barriers == 0);
}

TEST_RUN_BY(in_process, a_barrier_that_is_refused_later_is_said)
{
	pthread_t thread = start_inside();
	answer_to_barrier = -EPERM;
	CHECK(ll_driver_calls_shut() == -EPERM);
	ll_driver_calls_open();
	answer_to_barrier = 0;
	CHECK(ll_driver_calls_shut() == 0);
	join_thread(thread);
}
