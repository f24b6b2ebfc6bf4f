/* Contexts of a governed program: they are memory, and what is in them goes with them. */
#include "governed.h"

#include <pthread.h>

/* What another context is charged once it is there: what the card has less of, here a little less than foretold. */
static const uint64_t second_bytes = 524 * MIB;

TEST_IN_WORLD(NULL, the_last_use_of_a_context_that_is_detached_ends_it)
{
	struct ll_cu_context *one, *same;
	ll_cu_deviceptr address;
	govern(1200 * MIB);
	one = open_context(0);
	launch_timed(get_kernel("work_ns"), NULL, 1000, 1, 32); /* the library's agent asks events of it from here on */
	CHECK_EQUAL(cu.cuMemAlloc(&address, 10 * MIB), 0);
	CHECK_EQUAL(cu.cuCtxAttach(&same, 0), 0);
	CHECK(same == one);
	CHECK_EQUAL(cu.cuCtxAttach(&same, 0), 0);
	CHECK(cu.cuCtxAttach(&same, 1) != 0);
	for (int i = 0; i < 2; i++) {
		CHECK_EQUAL(cu.cuCtxDetach(one), 0);
		CHECK_EQUAL(charged(), CONTEXT_BYTES + 10 * MIB);
	}
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	CHECK_EQUAL(cu.cuCtxDetach(one), 0);
	CHECK_EQUAL(charged(), 0);
	CHECK(cu.cuCtxDetach(one) != 0);
	sleep_ms(20); /* the agent goes on */
	open_context(0);
	CHECK_EQUAL(charged(), CONTEXT_BYTES);
}

TEST_IN_WORLD(NULL, a_context_is_charged_and_goes_with_all_that_is_in_it)
{
	struct ll_cu_context *first, *second;
	ll_cu_deviceptr address;
	govern(1200 * MIB);
	first = open_context(0);
	CHECK_EQUAL(charged(), CONTEXT_BYTES);
	CHECK_EQUAL(cu.cuMemAlloc(&address, 10 * MIB), 0);
	CHECK_EQUAL(cu.cuCtxCreate(&second, 0, 0), 0);
	CHECK_NEAR(charged(), CONTEXT_BYTES + 10 * MIB + second_bytes, (double)MIB);
	CHECK_EQUAL(cu.cuMemAlloc(&address, 30 * MIB), 0);
	struct ll_cu_context *third;
	CHECK_EQUAL(cu.cuCtxCreate(&third, 0, 0), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(cu.cuCtxCreate_v4(&third, NULL, 0, 0), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(cu.cuCtxCreate(&third, 0, 77) != 0);
	CHECK(cu.cuCtxCreate(&third, 0xffff0000, 0) != 0);
	/* The second goes, and what was allocated in it; not what was in the first. */
	CHECK_EQUAL(cu.cuCtxDestroy(second), 0);
	CHECK_EQUAL(charged(), CONTEXT_BYTES + 10 * MIB);
	CHECK(cu.cuCtxDestroy(second) != 0);
	CHECK_EQUAL(charged(), CONTEXT_BYTES + 10 * MIB);
	CHECK_EQUAL(cu.cuCtxSetCurrent(first), 0);
	CHECK(cu.cuMemFree(address) != 0);
	CHECK_EQUAL(charged(), CONTEXT_BYTES + 10 * MIB);
	CHECK_EQUAL(cu.cuCtxDestroy(first), 0);
	CHECK_EQUAL(charged(), 0);
}

TEST_IN_WORLD(NULL, a_context_of_any_version_is_charged)
{
	struct ll_cu_context *context, *refused;
	govern(CONTEXT_BYTES);
	open_cuda();
	CHECK_EQUAL(cu.cuInit(0), 0);
	CHECK_EQUAL(cu.cuCtxCreate_v3(&context, NULL, 0, 0, 0), 0);
	CHECK_EQUAL(charged(), CONTEXT_BYTES);
	CHECK_EQUAL(cu.cuCtxCreate_v3(&refused, NULL, 0, 0, 0), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(cu.cuCtxDestroy_v1(context), 0);
	CHECK_EQUAL(charged(), 0);
	/* The oldest is refused by every driver of today, and takes nothing. */
	CHECK(cu.cuCtxCreate_v1(&refused, 0, 0) != 0);
	CHECK_EQUAL(charged(), 0);
	set_limit(CONTEXT_BYTES - 1);
	CHECK_EQUAL(cu.cuCtxCreate_v1(&refused, 0, 0), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(cu.cuCtxCreate_v4(&refused, NULL, 0, 0), LL_CUDA_ERROR_OUT_OF_MEMORY);
	set_limit(CONTEXT_BYTES);
	CHECK_EQUAL(cu.cuCtxCreate_v4(&context, NULL, 0, 0), 0);
	CHECK_EQUAL(charged(), CONTEXT_BYTES);
}

static void body_graphics(void)
{
	struct ll_cu_context *context, *refused;
	ll_cu_deviceptr address;
	unsigned flags;
	govern(CONTEXT_BYTES + 10 * MIB);
	open_cuda();
	CHECK_EQUAL(cu.cuInit(0), 0);
	for (int i = 0; i < 2; i++) {
		ll_cu_result status = i == 0 ? cu.cuGLCtxCreate(&context, LL_CU_CTX_SCHED_SPIN, 0)
					     : cu.cuVDPAUCtxCreate(&context, LL_CU_CTX_SCHED_SPIN, 0, 1, NULL);
		CHECK_EQUAL(status, 0);
		CHECK_EQUAL(cu.cuCtxGetFlags(&flags), 0);
		CHECK_EQUAL(flags, LL_CU_CTX_SCHED_SPIN);
		CHECK_EQUAL(charged(), CONTEXT_BYTES);
		CHECK_EQUAL(cu.cuMemAlloc(&address, 10 * MIB), 0);
		CHECK_EQUAL(charged(), CONTEXT_BYTES + 10 * MIB);
		CHECK_EQUAL(cu.cuGLCtxCreate(&refused, 0, 0), LL_CUDA_ERROR_OUT_OF_MEMORY);
		CHECK_EQUAL(cu.cuVDPAUCtxCreate(&refused, 0, 0, 1, NULL), LL_CUDA_ERROR_OUT_OF_MEMORY);
		CHECK_EQUAL(charged(), CONTEXT_BYTES + 10 * MIB);
		CHECK_EQUAL(cu.cuCtxDestroy(context), 0);
		CHECK_EQUAL(charged(), 0);
	}
	CHECK(cu.cuGLCtxCreate(&refused, 0, 77) != 0);
	CHECK(cu.cuVDPAUCtxCreate(&refused, 0xffff0000, 0, 1, NULL) != 0);
	CHECK_EQUAL(charged(), 0);
	/* Each is asked of the driver where there is room, the oldest too, and of nobody where there is none. */
	CHECK_EQUAL(simctl("fail cuGLCtxCreate* CUDA_ERROR_LAUNCH_FAILED"), 0);
	CHECK_EQUAL(simctl("fail cuVDPAUCtxCreate* CUDA_ERROR_LAUNCH_FAILED"), 0);
	for (int i = 0; i < 2; i++) {
		ll_cu_result expected = i == 0 ? LL_CUDA_ERROR_LAUNCH_FAILED : LL_CUDA_ERROR_OUT_OF_MEMORY;
		CHECK_EQUAL(cu.cuGLCtxCreate(&refused, 0, 0), expected);
		CHECK_EQUAL(cu.cuGLCtxCreate_v1(&refused, 0, 0), expected);
		CHECK_EQUAL(cu.cuVDPAUCtxCreate(&refused, 0, 0, 1, NULL), expected);
		CHECK_EQUAL(cu.cuVDPAUCtxCreate_v1(&refused, 0, 0, 1, NULL), expected);
		CHECK_EQUAL(charged(), 0);
		set_limit(CONTEXT_BYTES - 1);
	}
}

/* A driver without graphics. */
static void body_no_graphics(void)
{
	static const char *const names[] = {"cuGLCtxCreate", "cuVDPAUCtxCreate"};
	govern(CONTEXT_BYTES);
	open_context(0);
	CHECK_EQUAL(charged(), CONTEXT_BYTES);
	CHECK(!cu.cuGLCtxCreate && !cu.cuGLCtxCreate_v1 && !cu.cuVDPAUCtxCreate && !cu.cuVDPAUCtxCreate_v1);
	for (int i = 0; i < 2; i++) {
		void *found = NULL;
		enum ll_cu_proc_address_result result;
		CHECK_EQUAL(cu.cuGetProcAddress(names[i], &found, 12000, 0, &result), 0);
		CHECK(!found && result == LL_CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	}
}

TEST(a_context_for_graphics_is_charged)
{
	in_world(NULL, body_graphics);
	in_world("missing cuGLCtxCreate cuGLCtxCreate_v2 cuVDPAUCtxCreate cuVDPAUCtxCreate_v2\n", body_no_graphics);
}

TEST_IN_WORLD(NULL, the_primary_context_is_charged_once_until_its_last_release)
{
	struct ll_cu_context *context, *again;
	ll_cu_deviceptr address;
	govern(700 * MIB);
	open_cuda();
	/* Too early: refused by the driver, and no reason to leave the card ungoverned. */
	CHECK(cu.cuDevicePrimaryCtxRetain(&context, 0) != 0);
	CHECK_EQUAL(cu.cuInit(0), 0);
	CHECK_EQUAL(cu.cuDevicePrimaryCtxRetain(&context, 0), 0);
	CHECK_EQUAL(charged(), CONTEXT_BYTES);
	CHECK_EQUAL(cu.cuDevicePrimaryCtxRetain(&again, 0), 0);
	CHECK_EQUAL(charged(), CONTEXT_BYTES);
	CHECK_EQUAL(cu.cuCtxSetCurrent(context), 0);
	CHECK_EQUAL(cu.cuMemAlloc(&address, 10 * MIB), 0);
	CHECK_EQUAL(cu.cuDevicePrimaryCtxRelease(0), 0);
	CHECK_EQUAL(charged(), CONTEXT_BYTES + 10 * MIB);
	CHECK(cu.cuCtxDestroy(context) != 0);
	CHECK_EQUAL(charged(), CONTEXT_BYTES + 10 * MIB);
	CHECK_EQUAL(cu.cuDevicePrimaryCtxRelease(0), 0);
	CHECK_EQUAL(charged(), 0);
	CHECK(cu.cuDevicePrimaryCtxRelease(0) != 0);
	/* Once more, and reset. */
	CHECK_EQUAL(cu.cuDevicePrimaryCtxRetain(&context, 0), 0);
	CHECK_EQUAL(cu.cuCtxSetCurrent(context), 0);
	CHECK_EQUAL(cu.cuMemAlloc(&address, 10 * MIB), 0);
	CHECK_EQUAL(charged(), CONTEXT_BYTES + 10 * MIB);
	CHECK_EQUAL(cu.cuDevicePrimaryCtxReset(0), 0);
	CHECK_EQUAL(charged(), 0);
	CHECK_EQUAL(cu.cuDevicePrimaryCtxRetain(&context, 0), 0);
	CHECK_EQUAL(charged(), CONTEXT_BYTES);
	CHECK_EQUAL(cu.cuDevicePrimaryCtxRelease_v1(0), 0);
	CHECK_EQUAL(charged(), 0);
	set_limit(400 * MIB);
	CHECK_EQUAL(cu.cuDevicePrimaryCtxRetain(&context, 0), LL_CUDA_ERROR_OUT_OF_MEMORY);
	set_limit(600 * MIB);
	CHECK_EQUAL(cu.cuDevicePrimaryCtxRetain(&context, 0), 0);
	CHECK_EQUAL(cu.cuDevicePrimaryCtxReset_v1(0), 0);
	CHECK_EQUAL(charged(), 0);
}

static struct ll_cu_context *retained[8];

static void *retain(void *arg)
{
	CHECK_EQUAL(cu.cuDevicePrimaryCtxRetain(arg, 0), 0);
	return NULL;
}

TEST_IN_WORLD("card 0 context-time 20ms\n", threads_that_retain_at_once_charge_it_once)
{
	pthread_t threads[8];
	govern(CONTEXT_BYTES);
	open_cuda();
	CHECK_EQUAL(cu.cuInit(0), 0);
	for (int i = 0; i < 8; i++)
		CHECK(pthread_create(&threads[i], NULL, retain, &retained[i]) == 0);
	for (int i = 0; i < 8; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	CHECK_EQUAL(charged(), CONTEXT_BYTES);
	for (int i = 0; i < 8; i++)
		CHECK_EQUAL(cu.cuDevicePrimaryCtxRelease(0), 0);
	CHECK_EQUAL(charged(), 0);
}

TEST_IN_WORLD(NULL, what_a_context_s_limits_take_is_charged_when_they_are_set)
{
	size_t value;
	uint64_t stacks = 2048 * 132; /* bytes of all stacks for each byte of one */
	govern(3 * GIB);
	open_context(0);
	CHECK_EQUAL(cu.cuCtxSetLimit(LL_CU_LIMIT_STACK_SIZE, 8192), 0);
	CHECK_EQUAL(charged(), CONTEXT_BYTES + 7168 * stacks); /* 1848 MiB more */
	CHECK_EQUAL(cu.cuCtxSetLimit(LL_CU_LIMIT_STACK_SIZE, 32768), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(cu.cuCtxGetLimit(&value, LL_CU_LIMIT_STACK_SIZE), 0);
	CHECK_EQUAL(value, 8192);
	CHECK_EQUAL(charged(), CONTEXT_BYTES + 7168 * stacks);
	CHECK_EQUAL(cu.cuCtxSetLimit(LL_CU_LIMIT_STACK_SIZE, 0), 0);
	CHECK_EQUAL(charged(), CONTEXT_BYTES - 1024 * stacks);
	CHECK_EQUAL(cu.cuCtxSetLimit(LL_CU_LIMIT_STACK_SIZE, 1024), 0);
	CHECK_EQUAL(charged(), CONTEXT_BYTES);
	CHECK_EQUAL(cu.cuCtxSetLimit(LL_CU_LIMIT_MALLOC_HEAP_SIZE, 108 * MIB), 0);
	CHECK_EQUAL(charged(), CONTEXT_BYTES + 100 * MIB);
	CHECK_EQUAL(cu.cuCtxSetLimit(LL_CU_LIMIT_MALLOC_HEAP_SIZE, 4 * GIB), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(cu.cuCtxSetLimit(LL_CU_LIMIT_MALLOC_HEAP_SIZE, 0), 0);
	CHECK_EQUAL(cu.cuCtxSetLimit(LL_CU_LIMIT_PRINTF_FIFO_SIZE, 21 * MIB), 0);
	CHECK_EQUAL(charged(), CONTEXT_BYTES + 20 * MIB);
	CHECK_EQUAL(cu.cuCtxSetLimit(LL_CU_LIMIT_PRINTF_FIFO_SIZE, 0), 0);
	CHECK_EQUAL(charged(), CONTEXT_BYTES);
	CHECK(cu.cuCtxSetLimit((enum ll_cu_limit)99, 1) != 0);
	CHECK_EQUAL(simctl("fail cuCtxSetLimit CUDA_ERROR_LAUNCH_FAILED count 1"), 0);
	CHECK_EQUAL(cu.cuCtxSetLimit(LL_CU_LIMIT_STACK_SIZE, 4096), LL_CUDA_ERROR_LAUNCH_FAILED);
	CHECK_EQUAL(charged(), CONTEXT_BYTES);
}

TEST_IN_WORLD(NULL, what_fails_leaves_the_charge_as_it_was)
{
	struct ll_cu_context *context;
	govern(GIB);
	open_cuda();
	CHECK_EQUAL(cu.cuInit(0), 0);
	CHECK_EQUAL(simctl("fail cuCtxCreate_v2 CUDA_ERROR_LAUNCH_FAILED count 1"), 0);
	CHECK_EQUAL(cu.cuCtxCreate(&context, 0, 0), LL_CUDA_ERROR_LAUNCH_FAILED);
	CHECK_EQUAL(charged(), 0);
	CHECK_EQUAL(simctl("fail cuDevicePrimaryCtxRetain CUDA_ERROR_LAUNCH_FAILED count 1"), 0);
	CHECK_EQUAL(cu.cuDevicePrimaryCtxRetain(&context, 0), LL_CUDA_ERROR_LAUNCH_FAILED);
	CHECK_EQUAL(charged(), 0);
	CHECK_EQUAL(cu.cuCtxCreate(&context, 0, 0), 0);
	CHECK_EQUAL(simctl("fail cuCtxDestroy_v2 CUDA_ERROR_LAUNCH_FAILED count 1"), 0);
	CHECK_EQUAL(cu.cuCtxDestroy(context), LL_CUDA_ERROR_LAUNCH_FAILED);
	CHECK_EQUAL(charged(), CONTEXT_BYTES);
	CHECK_EQUAL(cu.cuCtxDestroy(context), 0);
	CHECK_EQUAL(charged(), 0);
}

TEST_IN_WORLD(NULL, contexts_may_be_left_out)
{
	ll_cu_deviceptr address;
	govern_without_context(100 * MIB);
	struct ll_cu_context *context = open_context(0);
	CHECK_EQUAL(charged(), 0);
	CHECK_EQUAL(cu.cuCtxSetLimit(LL_CU_LIMIT_STACK_SIZE, 8192), 0);
	CHECK_EQUAL(charged(), 0);
	CHECK_EQUAL(cu.cuMemAlloc(&address, 100 * MIB), 0);
	CHECK_EQUAL(charged(), 100 * MIB);
	CHECK_EQUAL(cu.cuMemAlloc(&address, 1), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(cu.cuCtxDestroy(context), 0);
	CHECK_EQUAL(charged(), 0);
	CHECK_EQUAL(cu.cuDevicePrimaryCtxRetain(&context, 0), 0);
	CHECK_EQUAL(charged(), 0);
	CHECK_EQUAL(cu.cuCtxSetCurrent(context), 0);
	CHECK_EQUAL(cu.cuMemAlloc(&address, MIB), 0);
	CHECK_EQUAL(charged(), MIB);
	CHECK_EQUAL(cu.cuDevicePrimaryCtxRelease(0), 0);
	CHECK_EQUAL(charged(), 0);
}

TEST_IN_WORLD("cards 2\n", each_card_has_its_own_account)
{
	ll_cu_deviceptr address;
	struct ll_cu_context *first, *second;
	size_t free_bytes, total;
	govern(2 * GIB);
	first = open_context(0);
	CHECK_EQUAL(cu.cuMemAlloc(&address, 10 * MIB), 0);
	CHECK_EQUAL(cu.cuCtxCreate(&second, 0, 1), 0);
	CHECK_EQUAL(charged_on(1), CONTEXT_BYTES);
	CHECK_EQUAL(cu.cuMemAlloc(&address, 100 * MIB), 0);
	CHECK_EQUAL(charged_on(0), CONTEXT_BYTES + 10 * MIB);
	CHECK_EQUAL(charged_on(1), CONTEXT_BYTES + 100 * MIB);
	CHECK_EQUAL(cu.cuMemGetInfo(&free_bytes, &total), 0);
	CHECK_EQUAL(free_bytes, 2 * GIB - CONTEXT_BYTES - 100 * MIB);
	/* The first is current again, and frees what is the second's. */
	CHECK_EQUAL(cu.cuCtxSetCurrent(first), 0);
	if (cu.cuMemFree(address) == 0)
		CHECK_EQUAL(charged_on(1), CONTEXT_BYTES);
	CHECK_EQUAL(charged_on(0), CONTEXT_BYTES + 10 * MIB);
	CHECK_EQUAL(cu.cuCtxDestroy(second), 0);
	CHECK_EQUAL(charged_on(1), 0);
	CHECK_EQUAL(charged_on(0), CONTEXT_BYTES + 10 * MIB);
}

/* CUDA's first card is NVML's second. */
TEST_IN_WORLD("cards 2\ncuda-order 1 0\n", nvml_s_and_cuda_s_order_of_cards_may_differ)
{
	ll_cu_deviceptr address;
	struct ll_nvml_memory first, second;
	struct ll_nvml_device *cards[] = {open_card(0), open_card(1)};
	govern(GIB);
	open_context(0);
	CHECK_EQUAL(cu.cuMemAlloc(&address, 10 * MIB), 0);
	CHECK_EQUAL(charged_on(0), 0);
	CHECK_EQUAL(charged_on(1), CONTEXT_BYTES + 10 * MIB);
	CHECK_EQUAL(nv.nvmlDeviceGetMemoryInfo(cards[0], &first), 0);
	CHECK_EQUAL(nv.nvmlDeviceGetMemoryInfo(cards[1], &second), 0);
	CHECK_EQUAL(first.used_bytes, 0);
	CHECK_EQUAL(second.used_bytes, CONTEXT_BYTES + 10 * MIB);
	CHECK_EQUAL(second.total_bytes, GIB);
}

static ll_cu_result make_green(struct ll_cu_green_context **ret_green)
{
	return cu.cuGreenCtxCreate(ret_green, new_green_desc(), 0, LL_CU_GREEN_CTX_DEFAULT_STREAM);
}

TEST_IN_WORLD(NULL, a_green_context_is_charged_with_the_primary_one)
{
	struct ll_cu_green_context *first, *second, *refused;
	struct ll_cu_context *context, *primary;
	ll_cu_deviceptr address;
	govern(CONTEXT_BYTES + 40 * MIB);
	open_cuda();
	CHECK_EQUAL(cu.cuInit(0), 0);
	CHECK_EQUAL(make_green(&first), 0);
	CHECK_EQUAL(charged(), CONTEXT_BYTES + 10 * MIB);
	CHECK_EQUAL(make_green(&second), 0);
	CHECK_EQUAL(charged(), CONTEXT_BYTES + 20 * MIB);
	/* What is allocated in one is the primary context's. */
	CHECK_EQUAL(cu.cuCtxFromGreenCtx(&context, second), 0);
	CHECK_EQUAL(cu.cuCtxSetCurrent(context), 0);
	CHECK_EQUAL(cu.cuMemAlloc(&address, 14 * MIB), 0);
	CHECK_EQUAL(charged(), CONTEXT_BYTES + 34 * MIB);
	CHECK_EQUAL(cu.cuCtxSetLimit(LL_CU_LIMIT_PRINTF_FIFO_SIZE, 5 * MIB), 0);
	CHECK_EQUAL(charged(), CONTEXT_BYTES + 38 * MIB);
	CHECK_EQUAL(cu.cuCtxSetLimit(LL_CU_LIMIT_PRINTF_FIFO_SIZE, 9 * MIB), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(cu.cuCtxSetLimit(LL_CU_LIMIT_PRINTF_FIFO_SIZE, MIB), 0);
	CHECK_EQUAL(make_green(&refused), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(charged(), CONTEXT_BYTES + 34 * MIB);
	CHECK_EQUAL(simctl("fail cuGreenCtxDestroy CUDA_ERROR_LAUNCH_FAILED count 1"), 0);
	CHECK_EQUAL(cu.cuGreenCtxDestroy(second), LL_CUDA_ERROR_LAUNCH_FAILED);
	CHECK_EQUAL(charged(), CONTEXT_BYTES + 34 * MIB);
	CHECK_EQUAL(cu.cuGreenCtxDestroy(second), 0);
	CHECK_EQUAL(charged(), CONTEXT_BYTES + 24 * MIB);
	CHECK(cu.cuGreenCtxDestroy(second) != 0);
	/* The primary context stays for its own user, and goes with the last of all. */
	CHECK_EQUAL(cu.cuDevicePrimaryCtxRetain(&primary, 0), 0);
	CHECK_EQUAL(cu.cuGreenCtxDestroy(first), 0);
	CHECK_EQUAL(charged(), CONTEXT_BYTES + 14 * MIB);
	CHECK_EQUAL(cu.cuDevicePrimaryCtxRelease(0), 0);
	CHECK_EQUAL(charged(), 0);
	CHECK_EQUAL(make_green(&first), 0);
	CHECK_EQUAL(charged(), CONTEXT_BYTES + 10 * MIB);
	CHECK_EQUAL(cu.cuGreenCtxDestroy(first), 0);
	CHECK_EQUAL(charged(), 0);
	set_limit(CONTEXT_BYTES);
	CHECK_EQUAL(make_green(&first), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(charged(), 0);
}
