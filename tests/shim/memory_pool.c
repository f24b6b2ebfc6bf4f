/* Pools of a governed program: charged what they have of the card, refused before they grow over the limit. */
#include "governed.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

static uint64_t pool_charge(void)
{
	return charged() - CONTEXT_BYTES;
}

static uint64_t reserved_of_default(void)
{
	struct ll_cu_mem_pool *pool;
	uint64_t bytes;
	CHECK_EQUAL(cu.cuDeviceGetDefaultMemPool(&pool, 0), 0);
	CHECK_EQUAL(cu.cuMemPoolGetAttribute(pool, LL_CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &bytes), 0);
	return bytes;
}

TEST_IN_WORLD(NULL, a_pool_is_charged_what_it_has_reserved)
{
	ll_cu_deviceptr small, large, more;
	govern(2 * GIB);
	open_context(0);
	struct ll_cu_stream *stream = new_stream();
	/* As measured: 32, 128 and 160 MiB. */
	CHECK_EQUAL(cu.cuMemAllocAsync(&small, 1000, stream), 0);
	CHECK_EQUAL(pool_charge(), 32 * MIB);
	CHECK_EQUAL(cu.cuMemAllocAsync(&large, 100 * MIB, stream), 0);
	CHECK_EQUAL(pool_charge(), 128 * MIB);
	CHECK_EQUAL(cu.cuMemAllocAsync(&more, 33 * MIB, stream), 0);
	CHECK_EQUAL(pool_charge(), 160 * MIB);
	CHECK_EQUAL(pool_charge(), reserved_of_default());
	/* Freed memory is the pool's until somebody has waited. */
	CHECK_EQUAL(cu.cuMemFreeAsync(large, stream), 0);
	CHECK_EQUAL(pool_charge(), 160 * MIB);
	CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	CHECK_EQUAL(pool_charge(), reserved_of_default());
	CHECK(pool_charge() < 160 * MIB);
	CHECK_EQUAL(cu.cuMemFreeAsync(more, stream), 0);
	CHECK_EQUAL(cu.cuMemFreeAsync(small, stream), 0);
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	CHECK_EQUAL(pool_charge(), 0);
	CHECK(cu.cuMemFreeAsync(small, stream) != 0);
	CHECK_EQUAL(pool_charge(), 0);
}

TEST_IN_WORLD(NULL, what_a_threshold_keeps_stays_charged_until_it_is_trimmed)
{
	ll_cu_deviceptr address;
	struct ll_cu_mem_pool *pool;
	uint64_t threshold = UINT64_MAX;
	govern(2 * GIB);
	open_context(0);
	struct ll_cu_stream *stream = new_stream();
	CHECK_EQUAL(cu.cuDeviceGetDefaultMemPool(&pool, 0), 0);
	CHECK_EQUAL(cu.cuMemPoolSetAttribute(pool, LL_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold), 0);
	CHECK_EQUAL(cu.cuMemAllocAsync(&address, 60 * MIB, stream), 0);
	CHECK_EQUAL(cu.cuMemFree(address), 0);
	CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	CHECK_EQUAL(pool_charge(), 64 * MIB);
	CHECK_EQUAL(cu.cuMemPoolTrimTo(pool, 0), 0);
	CHECK_EQUAL(pool_charge(), 0);
}

TEST_IN_WORLD(NULL, a_pool_gives_up_its_reserve_before_anything_is_refused)
{
	ll_cu_deviceptr address, more;
	struct ll_cu_mem_pool *pool;
	uint64_t threshold = UINT64_MAX;
	govern(CONTEXT_BYTES + 100 * MIB);
	open_context(0);
	struct ll_cu_stream *stream = new_stream();
	CHECK_EQUAL(cu.cuMemAllocAsync(&address, 101 * MIB, stream), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(pool_charge(), 0);
	CHECK_EQUAL(cu.cuMemAllocAsync(&address, 96 * MIB, stream), 0);
	CHECK_EQUAL(pool_charge(), 96 * MIB);
	/* 4 MiB are left, and the pool would take 32. */
	CHECK_EQUAL(cu.cuMemAllocAsync(&more, 512, stream), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(cu.cuMemFreeAsync(address, stream), 0);
	/* What a pool keeps for later gives way to whoever needs it: to another pool, to a plain allocation. */
	CHECK_EQUAL(cu.cuDeviceGetDefaultMemPool(&pool, 0), 0);
	CHECK_EQUAL(cu.cuMemPoolSetAttribute(pool, LL_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold), 0);
	CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	CHECK_EQUAL(pool_charge(), 96 * MIB);
	CHECK_EQUAL(cu.cuMemAlloc(&address, 90 * MIB), 0);
	CHECK_EQUAL(pool_charge(), 90 * MIB);
	CHECK_EQUAL(cu.cuMemFree(address), 0);
	/* Within what a pool has nothing new is needed. */
	CHECK_EQUAL(cu.cuMemAllocAsync(&address, 96 * MIB, stream), 0);
	CHECK_EQUAL(cu.cuMemFreeAsync(address, stream), 0);
	CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	CHECK_EQUAL(cu.cuMemAllocAsync(&address, 40 * MIB, stream), 0);
	CHECK_EQUAL(cu.cuMemAllocAsync(&more, 40 * MIB, stream), 0);
	CHECK_EQUAL(pool_charge(), 96 * MIB);
}

TEST_IN_WORLD(NULL, growth_for_want_of_a_gap_is_refused_too)
{
	ll_cu_deviceptr blocks[6], large;
	govern(CONTEXT_BYTES + 192 * MIB);
	open_context(0);
	struct ll_cu_stream *stream = new_stream();
	for (int i = 0; i < 6; i++)
		CHECK_EQUAL(cu.cuMemAllocAsync(&blocks[i], 31 * MIB, stream), 0);
	CHECK_EQUAL(pool_charge(), 192 * MIB);
	/* Room enough in all, and no gap that is large enough: it would have to grow. */
	CHECK_EQUAL(cu.cuMemFreeAsync(blocks[1], stream), 0);
	CHECK_EQUAL(cu.cuMemFreeAsync(blocks[3], stream), 0);
	CHECK_EQUAL(cu.cuMemAllocAsync(&large, 50 * MIB, stream), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	CHECK(pool_charge() <= 192 * MIB);
	CHECK_EQUAL(pool_charge(), reserved_of_default());
}

static struct ll_cu_mem_pool *make_pool(void)
{
	struct ll_cu_mem_pool *pool;
	struct ll_cu_mem_pool_props props = {.type = LL_CU_MEM_ALLOCATION_TYPE_PINNED,
					     .location = {.type = LL_CU_MEM_LOCATION_TYPE_DEVICE}};
	CHECK_EQUAL(cu.cuMemPoolCreate(&pool, &props), 0);
	return pool;
}

TEST_IN_WORLD(NULL, each_pool_is_charged_and_a_destroyed_one_until_its_last_block)
{
	ll_cu_deviceptr address, other;
	govern(GIB);
	open_context(0);
	struct ll_cu_stream *stream = new_stream();
	struct ll_cu_mem_pool *pool = make_pool(), *second = make_pool();
	CHECK_EQUAL(cu.cuMemAllocFromPoolAsync(&address, 10 * MIB, pool, stream), 0);
	CHECK_EQUAL(cu.cuMemAllocFromPoolAsync(&other, 40 * MIB, second, stream), 0);
	CHECK_EQUAL(pool_charge(), 96 * MIB);
	CHECK_EQUAL(cu.cuMemAllocFromPoolAsync(&other, GIB, second, stream), LL_CUDA_ERROR_OUT_OF_MEMORY);
	cu.cuMemAllocFromPoolAsync(&other, 0, second, stream);
	CHECK(cu.cuMemAllocFromPoolAsync(&other, 512, NULL, stream) != 0);
	CHECK_EQUAL(pool_charge(), 96 * MIB);
	/* A pool that is destroyed lives on in its blocks. */
	CHECK_EQUAL(cu.cuMemPoolDestroy(pool), 0);
	CHECK_EQUAL(pool_charge(), 96 * MIB);
	CHECK_EQUAL(cu.cuMemFreeAsync(address, stream), 0);
	CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	CHECK_EQUAL(pool_charge(), 64 * MIB);
	CHECK(cu.cuMemPoolDestroy((struct ll_cu_mem_pool *)&other) != 0);
	/* The card's current pool is what a plain call takes from. */
	pool = make_pool();
	CHECK_EQUAL(cu.cuDeviceSetMemPool(0, pool), 0);
	CHECK_EQUAL(cu.cuMemAllocAsync(&address, 10 * MIB, stream), 0);
	CHECK_EQUAL(reserved_of_default(), 0);
	CHECK_EQUAL(pool_charge(), 96 * MIB);
	struct ll_cu_mem_location card = {.type = LL_CU_MEM_LOCATION_TYPE_DEVICE};
	struct ll_cu_mem_pool *third = make_pool();
	CHECK_EQUAL(cu.cuMemSetMemPool(&card, LL_CU_MEM_ALLOCATION_TYPE_PINNED, third), 0);
	CHECK_EQUAL(cu.cuMemAllocAsync(&other, 10 * MIB, stream), 0);
	CHECK_EQUAL(reserved_of_default(), 0);
	CHECK_EQUAL(pool_charge(), 128 * MIB);
}

static struct ll_cu_event *event;

static ll_cu_result wait_for_event(struct ll_cu_stream *stream)
{
	CHECK_EQUAL(cu.cuEventRecord(event, stream), 0);
	return cu.cuEventSynchronize(event);
}

static ll_cu_result wait_for_context(struct ll_cu_stream *stream)
{
	(void)stream;
	return cu.cuCtxSynchronize();
}

static ll_cu_result wait_for_named_context(struct ll_cu_stream *stream)
{
	struct ll_cu_context *context;
	CHECK_EQUAL(cu.cuStreamGetCtx(stream, &context), 0);
	return cu.cuCtxSynchronize_v2(context);
}

static void check_wait(ll_cu_result (*wait)(struct ll_cu_stream *), struct ll_cu_stream *stream)
{
	ll_cu_deviceptr address;
	CHECK_EQUAL(cu.cuMemAllocAsync(&address, 10 * MIB, stream), 0);
	CHECK_EQUAL(cu.cuMemFreeAsync(address, stream), 0);
	CHECK_EQUAL(pool_charge(), 32 * MIB);
	CHECK_EQUAL(wait(stream), 0);
	CHECK_EQUAL(pool_charge(), 0);
}

TEST_IN_WORLD(NULL, whatever_waits_for_the_card_makes_the_charge_true)
{
	govern(GIB);
	open_context(0);
	struct ll_cu_stream *stream = new_stream();
	CHECK_EQUAL(cu.cuEventCreate(&event, 0), 0);
	check_wait(cu.cuStreamSynchronize, stream);
	check_wait(wait_for_event, stream);
	check_wait(wait_for_context, stream);
	check_wait(wait_for_named_context, stream);
}

/* The same functions, by the names that a program for per-thread default streams is linked against. */
static void find(void *slot, const char *symbol)
{
	void *found = dlsym(cu.library, symbol);
	CHECK(found);
	memcpy(slot, &found, sizeof found);
}

TEST_IN_WORLD(NULL, a_thread_s_own_default_stream_is_charged_the_same)
{
	ll_cu_deviceptr address, other;
	__typeof__(cu.cuMemAllocAsync) allocate;
	__typeof__(cu.cuMemAllocFromPoolAsync) allocate_from;
	__typeof__(cu.cuMemFreeAsync) free_async;
	__typeof__(cu.cuStreamSynchronize) synchronize;
	govern(CONTEXT_BYTES + 96 * MIB);
	open_context(0);
	find(&allocate, "cuMemAllocAsync_ptsz");
	find(&allocate_from, "cuMemAllocFromPoolAsync_ptsz");
	find(&free_async, "cuMemFreeAsync_ptsz");
	find(&synchronize, "cuStreamSynchronize_ptsz");
	struct ll_cu_mem_pool *pool = make_pool();
	CHECK_EQUAL(allocate(&address, 40 * MIB, NULL), 0);
	CHECK_EQUAL(allocate_from(&other, 10 * MIB, pool, NULL), 0);
	CHECK_EQUAL(pool_charge(), 96 * MIB);
	CHECK_EQUAL(allocate(&address, 40 * MIB, NULL), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(allocate_from(&other, 40 * MIB, pool, NULL), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(free_async(address, NULL), 0);
	CHECK_EQUAL(free_async(other, NULL), 0);
	CHECK_EQUAL(synchronize(NULL), 0);
	CHECK_EQUAL(pool_charge(), 0);
}

TEST_IN_WORLD(NULL, what_fails_leaves_the_charge_as_it_was)
{
	ll_cu_deviceptr address;
	govern(GIB);
	open_context(0);
	struct ll_cu_stream *stream = new_stream();
	CHECK_EQUAL(simctl("fail cuMemAllocAsync CUDA_ERROR_LAUNCH_FAILED count 1"), 0);
	CHECK_EQUAL(cu.cuMemAllocAsync(&address, 10 * MIB, stream), LL_CUDA_ERROR_LAUNCH_FAILED);
	CHECK_EQUAL(pool_charge(), 0);
	CHECK_EQUAL(cu.cuMemAllocAsync(&address, 10 * MIB, stream), 0);
	CHECK_EQUAL(simctl("fail cuMemFreeAsync CUDA_ERROR_LAUNCH_FAILED count 1"), 0);
	CHECK_EQUAL(cu.cuMemFreeAsync(address, stream), LL_CUDA_ERROR_LAUNCH_FAILED);
	CHECK_EQUAL(cu.cuMemFreeAsync(address, stream), 0);
	CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	CHECK_EQUAL(pool_charge(), 0);
	/* A plain allocation may be freed in a stream's order. */
	CHECK_EQUAL(cu.cuMemAlloc(&address, 10 * MIB), 0);
	CHECK_EQUAL(pool_charge(), 10 * MIB);
	if (cu.cuMemFreeAsync(address, stream) == 0)
		CHECK_EQUAL(pool_charge(), 0);
}

enum { THREADS = 16, ROUNDS = 200 };

static struct ll_cu_context *shared_context;

static void *use_pool(void *arg)
{
	ll_cu_deviceptr address;
	CHECK_EQUAL(cu.cuCtxSetCurrent(shared_context), 0);
	struct ll_cu_stream *stream = new_stream();
	for (int i = 0; i < ROUNDS; i++) {
		ll_cu_result status = cu.cuMemAllocAsync(&address, (size_t)(1 + i % 7) * 5 * MIB, stream);
		CHECK(status == 0 || status == LL_CUDA_ERROR_OUT_OF_MEMORY);
		if (status == 0)
			CHECK_EQUAL(cu.cuMemFreeAsync(address, stream), 0);
		if (i % 10 == 0)
			CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	}
	CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	return arg;
}

TEST_IN_WORLD(NULL, threads_share_a_pool_and_its_charge_comes_to_nothing)
{
	pthread_t threads[THREADS];
	govern(CONTEXT_BYTES + 300 * MIB);
	shared_context = open_context(0);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, use_pool, NULL) == 0);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	CHECK_EQUAL(pool_charge(), reserved_of_default());
	CHECK_EQUAL(pool_charge(), 0);
}

static struct ll_cu_mem_pool *make_managed(enum ll_cu_mem_location_type where, int card)
{
	struct ll_cu_mem_pool *pool;
	struct ll_cu_mem_pool_props props = {.type = LL_CU_MEM_ALLOCATION_TYPE_MANAGED,
					     .location = {.type = where, .id = card}};
	CHECK_EQUAL(cu.cuMemPoolCreate(&pool, &props), 0);
	return pool;
}

/* Charged as managed memory is: wherever its pages are. */
static void check_managed(struct ll_cu_mem_pool *pool, struct ll_cu_stream *stream, unsigned card)
{
	ll_cu_deviceptr address, refused;
	uint64_t before = charged_on(card);
	CHECK_EQUAL(cu.cuMemAllocFromPoolAsync(&address, 100 * MIB, pool, stream), 0);
	CHECK_EQUAL(charged_on(card), before + 128 * MIB);
	CHECK_EQUAL(cu.cuMemAllocFromPoolAsync(&refused, GIB, pool, stream), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(charged_on(card), before + 128 * MIB);
	CHECK_EQUAL(cu.cuMemFreeAsync(address, stream), 0);
	CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	CHECK_EQUAL(charged_on(card), before);
}

TEST_IN_WORLD("cards 2\n", a_pool_of_managed_memory_is_charged_wherever_it_is)
{
	struct ll_cu_mem_pool *pool;
	struct ll_cu_mem_location location = {.type = LL_CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
	govern(GIB);
	open_context(0);
	struct ll_cu_stream *stream = new_stream();
	pool = make_managed(LL_CU_MEM_LOCATION_TYPE_DEVICE, 0);
	check_managed(pool, stream, 0);
	CHECK_EQUAL(cu.cuMemPoolDestroy(pool), 0);
	/* One that prefers another card, and one that prefers none. */
	pool = make_managed(LL_CU_MEM_LOCATION_TYPE_DEVICE, 1);
	check_managed(pool, stream, 1);
	pool = make_managed(LL_CU_MEM_LOCATION_TYPE_INVALID, 0);
	check_managed(pool, stream, 0);
	CHECK_EQUAL(cu.cuMemGetDefaultMemPool(&pool, &location, LL_CU_MEM_ALLOCATION_TYPE_MANAGED), 0);
	check_managed(pool, stream, 0);
	CHECK_EQUAL(pool_charge(), 0);
}

/* Keeps a large reserve, and says so. */
static void keep_reserve(void)
{
	ll_cu_deviceptr address;
	struct ll_cu_mem_pool *pool;
	uint64_t threshold = UINT64_MAX;
	open_context(0);
	struct ll_cu_stream *stream = new_stream();
	CHECK_EQUAL(cu.cuDeviceGetDefaultMemPool(&pool, 0), 0);
	CHECK_EQUAL(cu.cuMemPoolSetAttribute(pool, LL_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold), 0);
	CHECK_EQUAL(cu.cuMemAllocAsync(&address, 512 * MIB, stream), 0);
	CHECK_EQUAL(cu.cuMemFreeAsync(address, stream), 0);
	CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	ready();
	pause();
}

TEST_IN_WORLD(NULL, a_pool_gives_up_its_reserve_for_others_of_the_tenant)
{
	ll_cu_deviceptr address, block;
	govern(2 * CONTEXT_BYTES + 600 * MIB);
	pid_t sibling = spawn_ready(keep_reserve);
	CHECK_EQUAL(charged(), CONTEXT_BYTES + 512 * MIB);
	open_context(0);
	struct ll_cu_stream *stream = new_stream();
	/* On a busy machine the other one may answer too late for the first. */
	WAIT_FOR(cu.cuMemAlloc(&address, 300 * MIB) == 0);
	CHECK_EQUAL(charged(), 2 * CONTEXT_BYTES + 300 * MIB);
	CHECK_EQUAL(cu.cuMemAllocAsync(&block, 256 * MIB, stream), 0);
	/* There is no more, whoever is asked. */
	CHECK_EQUAL(cu.cuMemAlloc(&address, 100 * MIB), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(cu.cuMemAllocAsync(&block, 100 * MIB, stream), LL_CUDA_ERROR_OUT_OF_MEMORY);
	/* Nor does one that is stopped keep anybody waiting for long. */
	stop_outside_the_driver(sibling);
	CHECK_EQUAL(cu.cuMemAlloc(&address, 100 * MIB), LL_CUDA_ERROR_OUT_OF_MEMORY);
	kill(sibling, SIGKILL);
}
