/* Pools with gaps under a limit: at no moment does the card or the ledger have more than the limit, and a gap that fits
 * is used. */
#include "governed.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#define LIMIT (2 * GIB)

/* What the driver has of the card besides contexts and allocations: some MiB for the first process. */
#define DRIVER_BYTES (4 * MIB)

enum { BLOCKS = 512 };

static enum governed_way way;
static bool is_own;
static uint64_t block_bytes;

static void check_limit(uint64_t limit_bytes)
{
	CHECK(charged() <= limit_bytes);
	CHECK(card_most() <= limit_bytes + DRIVER_BYTES);
}

/* A pool that keeps what is freed. */
static struct ll_cu_mem_pool *open_pool(void)
{
	struct ll_cu_mem_pool *pool;
	uint64_t all = UINT64_MAX;
	struct ll_cu_mem_pool_props props = {.type = LL_CU_MEM_ALLOCATION_TYPE_PINNED,
					     .location = {.type = LL_CU_MEM_LOCATION_TYPE_DEVICE}};
	if (is_own)
		CHECK_EQUAL(cu.cuMemPoolCreate(&pool, &props), 0);
	else
		CHECK_EQUAL(cu.cuDeviceGetDefaultMemPool(&pool, 0), 0);
	CHECK_EQUAL(cu.cuMemPoolSetAttribute(pool, LL_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all), 0);
	return pool;
}

static bool is_made_or_refused(ll_cu_result status)
{
	return status == LL_CUDA_SUCCESS || status == LL_CUDA_ERROR_OUT_OF_MEMORY;
}

/* Every other block is freed. The whole of the gaps is asked for, less one gap, and then what fits the one. */
static void body_every_other(void)
{
	ll_cu_deviceptr blocks[BLOCKS], large, small;
	unsigned count = 0;
	govern_in_way(way, LIMIT);
	open_context(0);
	struct ll_cu_stream *stream = new_stream();
	struct ll_cu_mem_pool *pool = open_pool();
	while (count < BLOCKS && cu.cuMemAllocFromPoolAsync(&blocks[count], block_bytes, pool, stream) == 0)
		count++;
	CHECK(count > 10 && count < BLOCKS);
	check_limit(LIMIT);
	begin_watch();
	for (unsigned i = 0; i < count; i += 2)
		CHECK_EQUAL(cu.cuMemFreeAsync(blocks[i], stream), 0);
	CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	size_t gaps = (count + 1) / 2;
	CHECK(is_made_or_refused(cu.cuMemAllocFromPoolAsync(&large, (gaps - 1) * block_bytes, pool, stream)));
	check_limit(LIMIT);
	CHECK_EQUAL(cu.cuMemAllocFromPoolAsync(&small, block_bytes, pool, stream), 0);
	CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	CHECK(end_watch() <= LIMIT);
	check_limit(LIMIT);
}

TEST(a_pool_with_gaps_stays_within_the_limit_and_uses_them)
{
	/* No free step, some, half of each gap, all. */
	static const uint64_t sizes[] = {4 * MIB - 512, 10 * MIB, 40 * MIB, 64 * MIB};
	for (way = 0; way < GOVERNED_WAYS; way++) {
		for (unsigned k = 0; k < 2 * sizeof sizes / sizeof sizes[0]; k++) {
			is_own = k % 2;
			block_bytes = sizes[k / 2];
			if (way == GOVERNED_PLAINLY || is_own == ((k / 2 + way) % 2 == 1))
				in_world(NULL, body_every_other);
		}
	}
}

/* ---- what is a gap for whom ---- */

enum { STEPS = 4, FILLED = 2 * STEPS };

#define FULL (CONTEXT_BYTES + STEPS * 32 * MIB)

static struct ll_cu_stream *first, *second;
static struct ll_cu_mem_pool *full_pool;
static ll_cu_deviceptr filled[FILLED];

/* The pool has the four steps that the limit allows, and blocks of 15 MiB in them: no step is free if one is freed. */
static void fill_pool(void)
{
	govern(FULL);
	open_context(0);
	first = new_stream();
	second = new_stream();
	full_pool = open_pool();
	for (int i = 0; i < FILLED; i++)
		CHECK_EQUAL(cu.cuMemAllocFromPoolAsync(&filled[i], 15 * MIB, full_pool, first), 0);
	CHECK_EQUAL(charged(), FULL);
}

static ll_cu_result allocate(uint64_t bytes, struct ll_cu_stream *stream)
{
	ll_cu_deviceptr address;
	ll_cu_result status = cu.cuMemAllocFromPoolAsync(&address, bytes, full_pool, stream);
	check_limit(FULL);
	return status;
}

/* Work that keeps a stream from what is behind it until the end. */
static void block_stream(struct ll_cu_stream *stream)
{
	launch_timed(get_kernel("work_ns"), stream, 3600 * UINT64_C(1000000000), 1, 1);
}

static void gap_of_the_stream(void)
{
	CHECK_EQUAL(cu.cuMemFreeAsync(filled[2], first), 0);
	CHECK_EQUAL(allocate(16 * MIB, first), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(allocate(15 * MIB, first), 0);
	CHECK_EQUAL(allocate(15 * MIB, first), LL_CUDA_ERROR_OUT_OF_MEMORY);
}

static void rest_of_a_gap(void)
{
	CHECK_EQUAL(cu.cuMemFreeAsync(filled[2], first), 0);
	CHECK_EQUAL(allocate(5 * MIB, first), 0);
	CHECK_EQUAL(allocate(10 * MIB, first), 0);
	/* Behind the last block the pool's last step has 8 MiB. */
	CHECK_EQUAL(allocate(9 * MIB, first), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(allocate(3 * MIB, second), 0);
	CHECK_EQUAL(allocate(5 * MIB, first), 0);
	CHECK_EQUAL(allocate(512, first), LL_CUDA_ERROR_OUT_OF_MEMORY);
}

static void gap_of_a_busy_stream(void)
{
	block_stream(first);
	CHECK_EQUAL(cu.cuMemFreeAsync(filled[2], first), 0);
	CHECK_EQUAL(allocate(15 * MIB, second), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(allocate(15 * MIB, first), 0);
}

static void gap_that_was_waited_for(void)
{
	CHECK_EQUAL(cu.cuMemFreeAsync(filled[2], first), 0);
	CHECK_EQUAL(cu.cuStreamSynchronize(first), 0);
	block_stream(first);
	CHECK_EQUAL(allocate(15 * MIB, second), 0);
}

static void gap_that_was_reached(void)
{
	CHECK_EQUAL(cu.cuMemFreeAsync(filled[2], first), 0);
	WAIT_FOR(cu.cuStreamQuery(first) == 0);
	CHECK_EQUAL(allocate(15 * MIB, second), 0);
	CHECK_EQUAL(allocate(15 * MIB, first), LL_CUDA_ERROR_OUT_OF_MEMORY);
}

static void gap_without_opportunistic_reuse(void)
{
	int no = 0;
	CHECK_EQUAL(cu.cuMemPoolSetAttribute(full_pool, LL_CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &no), 0);
	CHECK_EQUAL(cu.cuMemPoolSetAttribute(full_pool, LL_CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &no), 0);
	CHECK_EQUAL(cu.cuMemPoolSetAttribute(full_pool, LL_CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, &no), 0);
	CHECK_EQUAL(cu.cuMemFreeAsync(filled[2], first), 0);
	CHECK_EQUAL(allocate(15 * MIB, second), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(cu.cuStreamSynchronize(first), 0);
	CHECK_EQUAL(allocate(15 * MIB, second), 0);
}

static void gap_of_a_stream_that_is_gone(void)
{
	CHECK_EQUAL(cu.cuMemFreeAsync(filled[2], first), 0);
	WAIT_FOR(cu.cuStreamQuery(first) == 0);
	CHECK_EQUAL(cu.cuStreamDestroy(first), 0);
	CHECK_EQUAL(allocate(15 * MIB, second), 0);
}

static void gap_of_a_busy_stream_that_is_gone(void)
{
	block_stream(first);
	CHECK_EQUAL(cu.cuMemFreeAsync(filled[2], first), 0);
	CHECK_EQUAL(cu.cuStreamDestroy(first), 0);
	CHECK_EQUAL(allocate(15 * MIB, second), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(allocate(15 * MIB, new_stream()), LL_CUDA_ERROR_OUT_OF_MEMORY);
}

static void gap_that_was_trimmed(void)
{
	/* Two steps of free memory go, and the limit gives their room to another allocation. */
	ll_cu_deviceptr plain;
	for (int i = 0; i < 5; i++)
		CHECK_EQUAL(cu.cuMemFreeAsync(filled[i], first), 0);
	CHECK_EQUAL(cu.cuStreamSynchronize(first), 0);
	CHECK_EQUAL(cu.cuMemPoolTrimTo(full_pool, 0), 0);
	CHECK_EQUAL(charged(), FULL - 64 * MIB);
	CHECK_EQUAL(cu.cuMemAlloc(&plain, 64 * MIB), 0);
	CHECK_EQUAL(allocate(30 * MIB, first), LL_CUDA_ERROR_OUT_OF_MEMORY);
}

static void gap_behind_a_threshold(void)
{
	/* The wait takes the pool's two free steps away from it. */
	uint64_t none = 0;
	ll_cu_deviceptr plain;
	CHECK_EQUAL(cu.cuMemPoolSetAttribute(full_pool, LL_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &none), 0);
	for (int i = 0; i < 5; i++)
		CHECK_EQUAL(cu.cuMemFreeAsync(filled[i], first), 0);
	CHECK_EQUAL(cu.cuStreamSynchronize(first), 0);
	CHECK_EQUAL(charged(), FULL - 64 * MIB);
	CHECK_EQUAL(cu.cuMemAlloc(&plain, 64 * MIB), 0);
	CHECK_EQUAL(allocate(30 * MIB, first), LL_CUDA_ERROR_OUT_OF_MEMORY);
}

static void gap_whose_free_failed(void)
{
	CHECK_EQUAL(simctl("fail cuMemFreeAsync CUDA_ERROR_LAUNCH_FAILED count 1"), 0);
	CHECK_EQUAL(cu.cuMemFreeAsync(filled[2], first), LL_CUDA_ERROR_LAUNCH_FAILED);
	CHECK_EQUAL(allocate(15 * MIB, first), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(cu.cuMemFreeAsync(filled[2], first), 0);
	CHECK_EQUAL(simctl("fail cuMemAllocFromPoolAsync CUDA_ERROR_LAUNCH_FAILED count 1"), 0);
	CHECK_EQUAL(allocate(15 * MIB, first), LL_CUDA_ERROR_LAUNCH_FAILED);
	CHECK_EQUAL(allocate(15 * MIB, first), 0);
}

static void (*gap_case)(void);

static void body_gap_for_whom(void)
{
	is_own = true;
	fill_pool();
	gap_case();
	check_limit(FULL);
}

TEST(a_gap_is_used_by_whom_the_driver_gives_it)
{
	static void (*const cases[])(void) = {
	    gap_of_the_stream,
	    rest_of_a_gap,
	    gap_of_a_busy_stream,
	    gap_that_was_waited_for,
	    gap_that_was_reached,
	    gap_without_opportunistic_reuse,
	    gap_of_a_stream_that_is_gone,
	    gap_that_was_trimmed,
	    gap_of_a_busy_stream_that_is_gone,
	    gap_behind_a_threshold,
	    gap_whose_free_failed,
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		gap_case = cases[i];
		in_world(NULL, body_gap_for_whom);
	}
}

/* ---- a driver whose pools grow by more than was foreseen ---- */

static void body_extra(void)
{
	ll_cu_deviceptr address, more;
	govern(CONTEXT_BYTES + 100 * MIB);
	open_context(0);
	struct ll_cu_stream *stream = new_stream();
	struct ll_cu_mem_pool *pool = open_pool();
	CHECK_EQUAL(cu.cuMemAllocFromPoolAsync(&address, 20 * MIB, pool, stream), 0);
	CHECK_EQUAL(simctl("card 0 pool-extra 96M"), 0);
	CHECK_EQUAL(cu.cuMemAllocFromPoolAsync(&more, 40 * MIB, pool, stream), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	/* The pool was trimmed: what it had before is left. */
	CHECK(charged() <= CONTEXT_BYTES + 64 * MIB);
	CHECK(card_used() <= CONTEXT_BYTES + 64 * MIB + DRIVER_BYTES);
	CHECK_EQUAL(simctl("card 0 pool-extra 0"), 0);
	CHECK_EQUAL(cu.cuMemAllocFromPoolAsync(&more, 40 * MIB, pool, stream), 0);
	CHECK(charged() <= CONTEXT_BYTES + 96 * MIB);
}

TEST(growth_that_was_not_foreseen_is_given_back)
{
	for (int i = 0; i < 2; i++) {
		is_own = i;
		in_world(NULL, body_extra);
	}
}

/* ---- several at once ---- */

enum { THREADS = 8, PROCESSES = 3, ROUNDS = 80, HELD = 6 };

#define CROWD_LIMIT (CONTEXT_BYTES + 300 * MIB)

static struct ll_cu_context *shared_context;
static struct ll_cu_mem_pool *shared_pool;
static _Atomic unsigned served;

/* Each holds some blocks, and frees the one in whose place the next one comes. */
static void *use_gaps(void *arg)
{
	ll_cu_deviceptr held[HELD] = {0};
	unsigned number = (unsigned)(uintptr_t)arg;
	CHECK_EQUAL(cu.cuCtxSetCurrent(shared_context), 0);
	struct ll_cu_stream *stream = new_stream();
	for (unsigned i = 0; i < ROUNDS; i++) {
		ll_cu_deviceptr *one = &held[(i * 5 + number) % HELD];
		number = number * 1103515245 + 12345;
		if (*one)
			CHECK_EQUAL(cu.cuMemFreeAsync(*one, stream), 0);
		*one = 0;
		size_t bytes = (1 + number / 65536 % 47) * MIB;
		ll_cu_result status = cu.cuMemAllocFromPoolAsync(one, bytes, shared_pool, stream);
		CHECK(is_made_or_refused(status));
		*one = status ? 0 : *one;
		served += !status;
		if (number / 65536 % 13 == 0)
			CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	}
	for (unsigned i = 0; i < HELD; i++) {
		if (held[i])
			CHECK_EQUAL(cu.cuMemFreeAsync(held[i], stream), 0);
	}
	CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	return NULL;
}

static void run_threads(unsigned count)
{
	pthread_t threads[THREADS];
	shared_pool = open_pool();
	for (uintptr_t i = 0; i < count; i++)
		CHECK_EQUAL(pthread_create(&threads[i], NULL, use_gaps, (void *)(i + (uintptr_t)getpid() * THREADS)),
			    0);
	for (unsigned i = 0; i < count; i++)
		CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
	CHECK_EQUAL(cu.cuMemPoolTrimTo(shared_pool, 0), 0);
	CHECK(served > ROUNDS / 4);
}

static void body_threads(void)
{
	govern_in_way(way, CROWD_LIMIT);
	shared_context = open_context(0);
	begin_watch();
	run_threads(THREADS);
	CHECK(end_watch() <= CROWD_LIMIT);
	check_limit(CROWD_LIMIT);
	CHECK_EQUAL(charged(), CONTEXT_BYTES);
}

TEST(threads_that_share_a_pool_stay_within_the_limit)
{
	for (way = 0; way < GOVERNED_WAYS; way++) {
		for (int i = 0; i < 2; i++) {
			is_own = i;
			in_world(NULL, body_threads);
		}
	}
}

static _Atomic int *opened, *ended;

static void one_of_several(void)
{
	shared_context = open_context(0);
	++*opened;
	WAIT_FOR(*opened == PROCESSES);
	run_threads(2);
	/* The memory of one that ends is on the card for a moment longer than it is charged. */
	++*ended;
	WAIT_FOR(*ended == PROCESSES);
}

/* Each process has a context of its own. */
static void body_processes(void)
{
	pid_t pids[PROCESSES];
	uint64_t limit = PROCESSES * CONTEXT_BYTES + 200 * MIB;
	opened = mmap(NULL, 2 * sizeof *opened, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(opened != MAP_FAILED);
	ended = opened + 1;
	govern_in_way(way, limit);
	for (int i = 0; i < PROCESSES; i++)
		pids[i] = spawn(one_of_several);
	begin_watch();
	for (int i = 0; i < PROCESSES; i++)
		join(pids[i]);
	CHECK_EQUAL(charged(), 0);
	CHECK(end_watch() <= limit);
	CHECK(card_most() <= limit + DRIVER_BYTES);
}

TEST(processes_of_a_tenant_stay_within_the_limit)
{
	for (way = 0; way < GOVERNED_WAYS; way++) {
		is_own = way == GOVERNED_STRICTLY;
		in_world(NULL, body_processes);
	}
}
