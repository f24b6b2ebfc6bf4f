/*
 * The hooks as calls that use the card (shim/time/driver_calls.h): every hook whose row of cuda.def does not say
 * BODY_NO_CARD is one, by its own name, whether the gate is open or shut; and what the slow side sees of a program on
 * the simulated card. The library is linked in, so that the test can use its slow side.
 */
#include "../sim/process.h"

#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "shim/interpose/real.h"
#include "shim/time/driver_calls.h"
#include "shim/time/gate.h"

/* ---- every hook, before a driver that only looks ---- */

static const char *called, *inside_of; /* the driver's function, and what the thread was inside of meanwhile */
static bool exits_inside;

static ll_cu_result answer(const char *symbol)
{
	called = symbol;
	inside_of = ll_driver_call_own->function;
	if (exits_inside)
		pthread_exit(NULL);
	return LL_CUDA_ERROR_NOT_INITIALIZED;
}

#define LL_HOOK(symbol)                                                                                                \
	static ll_cu_result answer_##symbol(void)                                                                      \
	{                                                                                                              \
		return answer(#symbol);                                                                                \
	}
#define LL_CALL(symbol)                                                                                                \
	static ll_cu_result answer_##symbol(void)                                                                      \
	{                                                                                                              \
		return LL_CUDA_ERROR_NOT_INITIALIZED;                                                                  \
	}
#include "shim/interpose/hooks.def"

static const struct ll_real looking_driver = {
#define LL_HOOK(symbol) .symbol = (__typeof__(&symbol))(void (*)(void))answer_##symbol,
#define LL_CALL LL_HOOK
#include "shim/interpose/hooks.def"
};

/* More arguments than any of them takes: all zero. */
typedef ll_cu_result any_function(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
				  uint64_t, uint64_t, uint64_t, uint64_t);

static const struct hook {
	const char *symbol;
	void (*hook)(void);
	bool uses_card;
} hooks[] = {
#define LL_HOOK(symbol) {#symbol, (void (*)(void))symbol, true},
#define LL_HOOK_NO_CARD(symbol) {#symbol, (void (*)(void))symbol, false},
#include "shim/interpose/hooks.def"
};
enum { HOOKS = sizeof hooks / sizeof hooks[0] };

static void check_hook(const struct hook *hook)
{
	const char *symbol = hook->symbol;
	called = inside_of = NULL;
	((any_function *)hook->hook)(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
	bool is_right = !called || strcmp(called, symbol) != 0 ? false
			: hook->uses_card                      ? inside_of && strcmp(inside_of, symbol) == 0
							       : !inside_of;
	if (!is_right)
		printf("%s: called %s, inside of %s\n", symbol, called ? called : "nothing",
		       inside_of ? inside_of : "nothing");
	fflush(stdout);
	CHECK(is_right);
	CHECK(!ll_driver_call_own->function);
}

static void enter_once(void)
{
	LL_DRIVER_CALL(cuFirst); /* a thread's first call goes the slow way */
}

TEST_IN_WORLD(NULL, every_hook_that_uses_the_card_is_inside_while_the_driver_works)
{
	atomic_store(&ll_real_bound[LL_REAL_CUDA], (const void *)&looking_driver);
	enter_once();
	for (size_t i = 0; i < HOOKS; i++) {
		ll_gate_set_open();
		check_hook(&hooks[i]);
		ll_gate_set(NULL);
		check_hook(&hooks[i]);
	}
}

static void *call_and_exit(void *hook)
{
	any_function *function;
	memcpy(&function, hook, sizeof function);
	function(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
	return hook;
}

TEST_IN_WORLD(NULL, a_thread_that_exits_in_the_driver_has_left_every_hook)
{
	struct ll_driver_calls_inside inside;
	atomic_store(&ll_real_bound[LL_REAL_CUDA], (const void *)&looking_driver);
	ll_gate_set_open();
	exits_inside = true;
	for (size_t i = 0; i < HOOKS; i++) {
		pthread_t thread;
		void *result;
		void (*hook)(void) = hooks[i].hook;
		CHECK_EQUAL(pthread_create(&thread, NULL, call_and_exit, &hook), 0);
		CHECK_EQUAL(pthread_join(thread, &result), 0);
		CHECK(!result);
		CHECK_EQUAL(ll_driver_calls_wait(0, &inside), 0);
		CHECK_EQUAL(inside.count, 0);
	}
}

/* ---- on the simulated card ---- */

static struct ll_cu_context *context;
static ll_cu_deviceptr memory;
static _Atomic int copying_thread;
static _Atomic bool is_copied;

/* Waits for all that was launched in the default stream before. */
static void *copy_out(void *user)
{
	static char host[64];
	CHECK_EQUAL(cu.cuCtxSetCurrent(context), 0);
	copying_thread = (int)syscall(SYS_gettid);
	CHECK_EQUAL(cu.cuMemcpyDtoH(host, memory, sizeof host), 0);
	is_copied = true;
	return user;
}

static struct ll_driver_calls_inside wait_for_ms(uint64_t ms)
{
	struct ll_driver_calls_inside inside;
	CHECK_EQUAL(ll_driver_calls_wait(ll_now_ns() + ms * LL_NS_PER_MS, &inside), 0);
	return inside;
}

static void prepare(void)
{
	context = open_context(0);
	CHECK_EQUAL(cu.cuMemAlloc(&memory, 4096), 0);
	CHECK_EQUAL(cu.cuMemsetD32(memory, 0, 1024), 0);
}

TEST_IN_WORLD(NULL, a_thread_whose_copy_blocks_in_the_driver_is_named_until_it_is_back)
{
	pthread_t thread;
	prepare();
	struct ll_cu_stream *other = new_stream();
	CHECK_EQUAL(cu.cuStreamWaitValue32(NULL, memory + 1024, 1, LL_CU_STREAM_WAIT_VALUE_GEQ), 0);
	CHECK_EQUAL(pthread_create(&thread, NULL, copy_out, NULL), 0);
	WAIT_FOR(wait_for_ms(0).count == 1);
	CHECK_EQUAL(ll_driver_calls_shut(), 0);
	struct ll_driver_calls_inside inside = wait_for_ms(20);
	CHECK_EQUAL(inside.count, 1);
	CHECK_EQUAL(inside.named[0].thread, copying_thread);
	CHECK(strcmp(inside.named[0].function, "cuMemcpyDtoH_v2") == 0);
	CHECK(!is_copied);
	CHECK_EQUAL(ll_real()->cuStreamWriteValue32_v2(other, memory + 1024, 1, 0), 0); /* past the hook */
	CHECK_EQUAL(wait_for_ms(30000).count, 0);
	ll_driver_calls_open();
	CHECK_EQUAL(pthread_join(thread, NULL), 0);
	CHECK(is_copied);
}

TEST_IN_WORLD(NULL, a_copy_waits_while_the_calls_are_shut)
{
	pthread_t thread;
	prepare();
	CHECK_EQUAL(ll_driver_calls_shut(), 0);
	CHECK_EQUAL(pthread_create(&thread, NULL, copy_out, NULL), 0);
	WAIT_FOR(copying_thread);
	CHECK_EQUAL(wait_for_ms(30000).count, 0);
	sleep_ms(20);
	CHECK(!is_copied);
	ll_driver_calls_open();
	CHECK_EQUAL(pthread_join(thread, NULL), 0);
	CHECK(is_copied);
}
