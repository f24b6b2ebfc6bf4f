/* Memory in the order of a stream of an evictable program, when contexts, pools and threads end, or processes fork. */
#include "movable.h"

#include <dlfcn.h>
#include <pthread.h>

TEST_IN_WORLD(NULL, memory_of_a_pool_outlives_its_context)
{
	unsigned char byte = 0;
	struct ll_cu_context *popped;
	govern_evictable(4 * GIB);
	struct ll_cu_context *first = open_context(0), *second = open_context(0);
	keep(default_pool(), UINT64_MAX);
	ll_cu_deviceptr freed = allocate(10 * MIB, NULL), kept = allocate(6 * MIB, new_stream()), plain;
	CHECK_EQUAL(cu.cuMemsetD8(kept, 7, 6 * MIB), 0);
	CHECK_EQUAL(cu.cuMemAlloc(&plain, 4 * MIB), 0);
	free_in(freed, NULL);
	free_in(plain, NULL);
	/* Memory of a pool outlives contexts; a context that ends has no work any more. */
	CHECK_EQUAL(cu.cuCtxPopCurrent(&popped), 0);
	CHECK_EQUAL(cu.cuCtxDestroy(second), 0);
	CHECK_EQUAL(cu.cuCtxSetCurrent(first), 0);
	CHECK_EQUAL(cu.cuMemcpyDtoH(&byte, kept + 6 * MIB - 1, 1), 0);
	CHECK_EQUAL(byte, 7);
	CHECK_EQUAL(value_of(default_pool(), USED), 6 * MIB);
	CHECK_EQUAL(allocate(10 * MIB, NULL), freed);
	free_in(freed, NULL);
	free_in(kept, NULL);
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	CHECK_EQUAL(cu.cuMemPoolTrimTo(default_pool(), 0), 0);
	CHECK_EQUAL(pool_charge(), 0);
}

TEST_IN_WORLD(NULL, what_was_freed_in_a_context_that_ends_is_done)
{
	struct ll_cu_context *context;
	govern_evictable(4 * GIB);
	open_context(0);
	for (int is_reset = 0; is_reset < 2; is_reset++) {
		CHECK_EQUAL(cu.cuDevicePrimaryCtxRetain(&context, 0), 0);
		CHECK_EQUAL(cu.cuCtxSetCurrent(context), 0);
		keep(default_pool(), UINT64_MAX);
		free_in(allocate(10 * MIB, NULL), NULL);
		CHECK_EQUAL(is_reset ? cu.cuDevicePrimaryCtxReset(0) : cu.cuDevicePrimaryCtxRelease(0), 0);
		CHECK_EQUAL(value_of(default_pool(), USED), 0);
		CHECK_EQUAL(value_of(default_pool(), RESERVED), 32 * MIB);
	}
	CHECK_EQUAL(cu.cuMemPoolTrimTo(default_pool(), 0), 0);
	CHECK_EQUAL(value_of(default_pool(), RESERVED), 0);
}

TEST_IN_WORLD(NULL, a_destroyed_pool_is_charged_until_its_last_block)
{
	ll_cu_deviceptr address, pending;
	govern_evictable(2 * GIB);
	open_context(0);
	struct ll_cu_stream *stream = new_stream(), *other = new_stream();
	struct ll_cu_mem_pool *pool = make_pool(0, LL_CU_MEM_HANDLE_TYPE_NONE);
	keep(pool, UINT64_MAX);
	CHECK_EQUAL(cu.cuMemAllocFromPoolAsync(&address, 10 * MIB, pool, stream), 0);
	CHECK_EQUAL(cu.cuMemAllocFromPoolAsync(&pending, 4 * MIB, pool, other), 0);
	free_in(allocate(2 * MIB, stream), stream);
	free_in(pending, other);
	/* A pool that is destroyed lives on in its blocks. */
	CHECK_EQUAL(cu.cuStreamSynchronize(other), 0);
	CHECK_EQUAL(pool_charge(), 16 * MIB);
	CHECK_EQUAL(cu.cuMemPoolDestroy(pool), 0);
	CHECK_EQUAL(pool_charge(), 12 * MIB);
	free_in(address, stream);
	CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	CHECK_EQUAL(pool_charge(), 0);
	/* The card's current pool is what a plain call takes from. */
	pool = make_pool(0, LL_CU_MEM_HANDLE_TYPE_NONE);
	CHECK_EQUAL(cu.cuDeviceSetMemPool(0, pool), 0);
	allocate(10 * MIB, stream);
	CHECK_EQUAL(value_of(pool, USED), 10 * MIB);
	CHECK_EQUAL(value_of(default_pool(), USED), 0);
}

/* ---- green contexts ---- */

static struct ll_cu_stream *make_green_stream(struct ll_cu_green_context **ret_green)
{
	struct ll_cu_stream *stream;
	CHECK_EQUAL(cu.cuGreenCtxCreate(ret_green, new_green_desc(), 0, LL_CU_GREEN_CTX_DEFAULT_STREAM), 0);
	CHECK_EQUAL(cu.cuGreenCtxStreamCreate(&stream, *ret_green, LL_CU_STREAM_NON_BLOCKING, 0), 0);
	return stream;
}

TEST_IN_WORLD(NULL, a_green_context_s_stream_takes_from_the_driver)
{
	struct ll_cu_green_context *green;
	govern_evictable(0);
	open_context(0);
	struct ll_cu_stream *stream = make_green_stream(&green);
	ll_cu_deviceptr ours = allocate(10 * MIB, NULL);
	CHECK_EQUAL(value_of(default_pool(), RESERVED), 32 * MIB);
	/* The driver's. */
	ll_cu_deviceptr its = allocate(10 * MIB, stream);
	CHECK_EQUAL(value_of(default_pool(), RESERVED), 64 * MIB);
	free_in(ours, stream);
	free_in(its, stream);
	CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	CHECK_EQUAL(cu.cuStreamDestroy(stream), 0);
	CHECK_EQUAL(cu.cuGreenCtxDestroy(green), 0);
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	CHECK_EQUAL(value_of(default_pool(), RESERVED), 0);
}

/* ---- threads ---- */

static struct ll_cu_context *shared;
static __typeof__(cu.cuMemAllocAsync) allocate_own;
static __typeof__(cu.cuMemFreeAsync) free_own;
static ll_cu_deviceptr left;

/* As a program for per-thread default streams is linked. */
static void find(void *slot, const char *symbol)
{
	void *found = dlsym(cu.library, symbol);
	CHECK(found);
	memcpy(slot, &found, sizeof found);
}

static void *release_block(void *arg)
{
	CHECK_EQUAL(cu.cuCtxSetCurrent(shared), 0);
	CHECK_EQUAL(allocate_own(&left, 10 * MIB, NULL), 0);
	occupy(LL_CU_STREAM_PER_THREAD);
	CHECK_EQUAL(free_own(left, NULL), 0);
	ll_cu_deviceptr again;
	CHECK_EQUAL(allocate_own(&again, 10 * MIB, NULL), 0);
	CHECK_EQUAL(again, left);
	CHECK_EQUAL(free_own(left, NULL), 0);
	return arg;
}

static void *find_none(void *arg)
{
	ll_cu_deviceptr address;
	CHECK_EQUAL(cu.cuCtxSetCurrent(shared), 0);
	CHECK_EQUAL(allocate_own(&address, 10 * MIB, NULL), 0);
	CHECK(address != left);
	return arg;
}

static void run_thread(void *(*run)(void *))
{
	pthread_t thread;
	CHECK(pthread_create(&thread, NULL, run, NULL) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
}

TEST_IN_WORLD(NULL, each_thread_s_default_stream_is_a_stream_of_its_own)
{
	govern_evictable(0);
	shared = open_context(0);
	find(&allocate_own, "cuMemAllocAsync_ptsz");
	find(&free_own, "cuMemFreeAsync_ptsz");
	run_thread(release_block);
	run_thread(find_none); /* which may have the number of the thread before */
}

enum { THREADS = 8, ROUNDS = 100 };

static void *use_pool(void *arg)
{
	CHECK_EQUAL(cu.cuCtxSetCurrent(shared), 0);
	struct ll_cu_stream *stream = new_stream();
	for (unsigned i = 0; i < ROUNDS; i++) {
		ll_cu_deviceptr address;
		ll_cu_result status = cu.cuMemAllocAsync(&address, (size_t)(1 + i % 7) * 300 * KIB, stream);
		CHECK(status == 0 || status == LL_CUDA_ERROR_OUT_OF_MEMORY);
		if (status == 0)
			CHECK_EQUAL(cu.cuMemsetD8Async(address, (unsigned char)i, 300 * KIB, stream), 0);
		if (status == 0)
			CHECK_EQUAL(i % 13 ? cu.cuMemFreeAsync(address, stream) : cu.cuMemFree(address), 0);
		if (i % 10 == 0)
			CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	}
	CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	return arg;
}

TEST_IN_WORLD(NULL, threads_share_a_pool_and_its_charge_comes_to_nothing)
{
	pthread_t threads[THREADS];
	govern_evictable(CONTEXT_BYTES + 20 * MIB);
	shared = open_context(0);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, use_pool, NULL) == 0);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	CHECK_EQUAL(value_of(default_pool(), USED), 0);
	CHECK_EQUAL(value_of(default_pool(), RESERVED), 0);
	CHECK_EQUAL(pool_charge(), 0);
}

/* ---- children ---- */

static void be_a_child(void)
{
	open_context(0);
	CHECK_EQUAL(value_of(default_pool(), RESERVED), 0);
	free_in(allocate(10 * MIB, NULL), NULL);
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	CHECK_EQUAL(value_of(default_pool(), RESERVED), 0);
}

/* The parent has not used the driver, which no child may use after it. */
TEST_IN_WORLD(NULL, a_child_has_pools_of_its_own)
{
	govern_evictable(2 * GIB);
	join(spawn(be_a_child));
	be_a_child();
	CHECK_EQUAL(pool_charge(), 0);
}

/* ---- cards ---- */

/* Which access the current context's card has. */
static unsigned access_to(ll_cu_deviceptr address)
{
	unsigned flags = 7;
	CHECK_EQUAL(cu.cuPointerGetAttribute(&flags, LL_CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, address), 0);
	return flags;
}

static void let_card_1(enum ll_cu_mem_access_flags flags)
{
	struct ll_cu_mem_access_desc access = {.location = {LL_CU_MEM_LOCATION_TYPE_DEVICE, 1}, .flags = flags};
	CHECK_EQUAL(cu.cuMemPoolSetAccess(default_pool(), &access, 1), 0);
}

TEST_IN_WORLD("cards 2\ncard all peers on\n", cards_that_may_use_a_pool_may_use_its_blocks)
{
	ll_cu_deviceptr address;
	govern_evictable(4 * GIB);
	struct ll_cu_context *first = open_context(0), *second = open_context(1);
	CHECK_EQUAL(cu.cuCtxSetCurrent(first), 0);
	ll_cu_deviceptr before = allocate(10 * MIB, NULL);
	CHECK_EQUAL(cu.cuCtxSetCurrent(second), 0);
	CHECK_EQUAL(access_to(before), LL_CU_MEM_ACCESS_FLAGS_PROT_NONE);
	let_card_1(LL_CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	let_card_1(LL_CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	/* Blocks of before and after, in a stream of either card. */
	uint64_t other_card = charged_on(1);
	CHECK_EQUAL(cu.cuMemAllocFromPoolAsync(&address, 4 * MIB, default_pool(), NULL), 0);
	CHECK_EQUAL(pool_charge(), 14 * MIB);
	CHECK_EQUAL(charged_on(1), other_card);
	CHECK_EQUAL(access_to(before), LL_CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	CHECK_EQUAL(access_to(address), LL_CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	let_card_1(LL_CU_MEM_ACCESS_FLAGS_PROT_NONE);
	CHECK_EQUAL(access_to(before), LL_CU_MEM_ACCESS_FLAGS_PROT_NONE);
	free_in(address, NULL);
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	CHECK_EQUAL(pool_charge(), 10 * MIB);
}
