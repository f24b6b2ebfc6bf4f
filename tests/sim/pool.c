/* Pools and allocation in the order of a stream, with the sizes of an H200. */
#include "memory.h"

#define RESERVED LL_CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT
#define RESERVED_HIGH LL_CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH
#define USED LL_CU_MEMPOOL_ATTR_USED_MEM_CURRENT
#define USED_HIGH LL_CU_MEMPOOL_ATTR_USED_MEM_HIGH
#define THRESHOLD LL_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD

static struct ll_cu_mem_pool *default_pool(void)
{
	struct ll_cu_mem_pool *pool;
	CHECK_EQUAL(cu.cuDeviceGetDefaultMemPool(&pool, 0), 0);
	return pool;
}

static ll_cu_deviceptr allocate(size_t bytes, struct ll_cu_stream *stream)
{
	ll_cu_deviceptr address = 0;
	CHECK_EQUAL(cu.cuMemAllocAsync(&address, bytes, stream), 0);
	CHECK(address != 0);
	return address;
}

TEST_IN_WORLD(NULL, a_pool_takes_chunks_and_gives_them_back_when_its_stream_has_been_waited_for)
{
	open_context(0);
	struct ll_cu_stream *s = new_stream();
	struct ll_cu_mem_pool *pool = default_pool();
	uint64_t before = used_bytes();
	CHECK_EQUAL(pool_value(pool, RESERVED), 0);
	ll_cu_deviceptr a = allocate(1, s);
	CHECK_EQUAL(used_bytes() - before, 32 * MIB);
	CHECK_EQUAL(pool_value(pool, USED), 1);
	ll_cu_deviceptr b = allocate(1000, s);
	CHECK_EQUAL(b - a, 512);
	CHECK_EQUAL(pool_value(pool, USED), 1001);
	/* 33 MiB begin in the first chunk. */
	ll_cu_deviceptr c = allocate(33 * MIB, s);
	CHECK_EQUAL(used_bytes() - before, 64 * MIB);
	ll_cu_deviceptr d = allocate(100 * MIB, s);
	CHECK_EQUAL(used_bytes() - before, 160 * MIB);
	CHECK_EQUAL(pool_value(pool, RESERVED), 160 * MIB);
	CHECK_EQUAL(pool_value(pool, USED), 1001 + 133 * MIB);
	const ll_cu_deviceptr all[] = {a, b, c, d};
	for (int i = 0; i < 4; i++)
		CHECK_EQUAL(cu.cuMemFreeAsync(all[i], s), 0);
	CHECK_EQUAL(cu.cuMemFreeAsync(a, s), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuStreamSynchronize(s), 0);
	CHECK_EQUAL(used_bytes(), before);
	CHECK_EQUAL(pool_value(pool, RESERVED), 0);
	CHECK_EQUAL(pool_value(pool, RESERVED_HIGH), 160 * MIB);
	CHECK_EQUAL(pool_value(pool, USED), 0);
	CHECK_EQUAL(pool_value(pool, USED_HIGH), 1001 + 133 * MIB);
}

TEST_IN_WORLD(NULL, freed_memory_is_a_gap_for_others_only_when_the_stream_gets_there)
{
	open_context(0);
	struct ll_cu_stream *s = new_stream(), *other = new_stream();
	struct ll_cu_mem_pool *pool = default_pool();
	uint64_t before = used_bytes();
	ll_cu_deviceptr a = allocate(MIB, s);
	/* Behind a kernel that never ends, nothing is freed, whoever looks; but in its own stream it is a gap. */
	launch_timed(get_kernel("work_ns"), s, UINT64_C(3600000000000), 1, 32);
	CHECK_EQUAL(cu.cuMemFreeAsync(a, s), 0);
	CHECK_EQUAL(pool_value(pool, USED), MIB);
	CHECK(allocate(MIB, other) != a);
	CHECK_EQUAL(allocate(MIB / 2, s), a);
	CHECK_EQUAL(allocate(MIB / 2, s), a + MIB / 2);
	CHECK_EQUAL(cu.cuStreamSynchronize(other), 0);
	CHECK_EQUAL(used_bytes() - before, 32 * MIB);
	CHECK_EQUAL(pool_value(pool, USED), 2 * MIB);
}

TEST_IN_WORLD(NULL, freed_memory_is_used_again)
{
	open_context(0);
	struct ll_cu_stream *s = new_stream(), *other = new_stream();
	struct ll_cu_mem_pool *pool = default_pool();
	ll_cu_deviceptr a = allocate(MIB, s);
	CHECK_EQUAL(cu.cuMemFreeAsync(a, s), 0);
	WAIT_FOR(pool_value(pool, USED) == 0);
	CHECK_EQUAL(allocate(MIB, other), a);
	CHECK_EQUAL(cu.cuMemFreeAsync(a, other), 0);
	/* Waiting for a stream in which nothing was freed gives nothing back. */
	CHECK_EQUAL(cu.cuStreamSynchronize(new_stream()), 0);
	CHECK_EQUAL(pool_value(pool, RESERVED), 32 * MIB);
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	CHECK_EQUAL(pool_value(pool, RESERVED), 0);
}

/* Blocks of 40 MiB, every other one freed: as much room as three of them, and none in one piece for two. Then what a
 * trim leaves of the gaps is used before the pool grows again. */
TEST_IN_WORLD(NULL, a_pool_grows_if_no_gap_is_large_enough_alone)
{
	ll_cu_deviceptr blocks[6];
	uint64_t all = UINT64_MAX;
	open_context(0);
	struct ll_cu_stream *s = new_stream();
	struct ll_cu_mem_pool *pool = default_pool();
	CHECK_EQUAL(cu.cuMemPoolSetAttribute(pool, THRESHOLD, &all), 0);
	for (int i = 0; i < 6; i++)
		blocks[i] = allocate(40 * MIB, s);
	CHECK_EQUAL(pool_value(pool, RESERVED), 256 * MIB);
	for (int i = 0; i < 6; i += 2)
		CHECK_EQUAL(cu.cuMemFreeAsync(blocks[i], s), 0);
	CHECK_EQUAL(cu.cuStreamSynchronize(s), 0);
	CHECK_EQUAL(allocate(40 * MIB, s), blocks[0]);
	CHECK_EQUAL(pool_value(pool, RESERVED), 256 * MIB);
	CHECK_EQUAL(allocate(80 * MIB, s), blocks[0] + 240 * MIB);
	CHECK_EQUAL(pool_value(pool, RESERVED), 320 * MIB);
	CHECK_EQUAL(cu.cuMemFreeAsync(blocks[0], s), 0);
	CHECK_EQUAL(cu.cuStreamSynchronize(s), 0);
	CHECK_EQUAL(cu.cuMemPoolTrimTo(pool, 0), 0);
	CHECK_EQUAL(pool_value(pool, RESERVED), 256 * MIB);
	/* 8 MiB of the first gap are left, in the second chunk. */
	CHECK_EQUAL(allocate(7 * MIB, s), blocks[0] + 32 * MIB);
	CHECK_EQUAL(pool_value(pool, RESERVED), 256 * MIB);
}

TEST_IN_WORLD("card 0 pool-extra 64M", a_pool_may_take_more_than_it_needs)
{
	open_context(0);
	struct ll_cu_stream *s = new_stream();
	uint64_t before = used_bytes();
	allocate(1, s);
	CHECK_EQUAL(used_bytes() - before, 96 * MIB);
	/* For what it has room for a pool does not grow. */
	allocate(90 * MIB, s);
	CHECK_EQUAL(used_bytes() - before, 96 * MIB);
	CHECK_EQUAL(simctl("card 0 pool-extra 0"), 0);
	allocate(7 * MIB, s);
	CHECK_EQUAL(used_bytes() - before, 128 * MIB);
}

/* The world knows the most that was in use, however short that was. */
TEST_IN_WORLD(NULL, the_most_that_was_in_use_is_kept)
{
	open_context(0);
	struct ll_cu_stream *s = new_stream();
	CHECK_EQUAL(cu.cuMemFreeAsync(allocate(96 * GIB, s), s), 0);
	CHECK_EQUAL(cu.cuStreamSynchronize(s), 0);
	CHECK(used_bytes() < GIB);
	CHECK_EQUAL(simctl("show | grep -q 'card 0 .*, at most 98[0-9]*\\.[0-9] MiB'"), 0);
}

TEST_IN_WORLD(NULL, a_threshold_keeps_memory_and_trimming_gives_it_back)
{
	open_context(0);
	struct ll_cu_stream *s = new_stream();
	struct ll_cu_mem_pool *pool = default_pool();
	uint64_t before = used_bytes(), keep = 64 * MIB, none = 0, some = 5;
	CHECK_EQUAL(cu.cuMemPoolSetAttribute(pool, THRESHOLD, &keep), 0);
	CHECK_EQUAL(cu.cuMemFreeAsync(allocate(200 * MIB, s), s), 0);
	CHECK_EQUAL(used_bytes() - before, 224 * MIB);
	CHECK_EQUAL(cu.cuStreamSynchronize(s), 0);
	CHECK_EQUAL(used_bytes() - before, 64 * MIB);
	CHECK_EQUAL(cu.cuMemPoolTrimTo(pool, 40 * MIB), 0);
	CHECK_EQUAL(used_bytes() - before, 64 * MIB);
	CHECK_EQUAL(cu.cuMemPoolTrimTo(pool, 0), 0);
	CHECK_EQUAL(used_bytes(), before);
	CHECK_EQUAL(cu.cuMemPoolSetAttribute(pool, RESERVED_HIGH, &none), 0);
	CHECK_EQUAL(pool_value(pool, RESERVED_HIGH), 0);
	CHECK_EQUAL(cu.cuMemPoolSetAttribute(pool, USED_HIGH, &some), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuMemPoolSetAttribute(pool, RESERVED, &none), LL_CUDA_ERROR_INVALID_VALUE);
}

TEST_IN_WORLD(NULL, a_full_card_refuses)
{
	open_context(0);
	struct ll_cu_stream *s = new_stream();
	uint64_t before = used_bytes(), total = 143155 * MIB;
	ll_cu_deviceptr address = 17;
	CHECK_EQUAL(cu.cuMemAllocAsync(&address, 200 * GIB, s), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(address, 17);
	CHECK_EQUAL(used_bytes(), before);
	/* To the last chunk, and not one more. */
	uint64_t room = (total - before) / (32 * MIB) * 32 * MIB;
	ll_cu_deviceptr all = allocate(room, s);
	CHECK_EQUAL(cu.cuMemAllocAsync(&address, 1, s), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(cu.cuMemAlloc(&address, 32 * MIB), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(cu.cuMemFree(all), 0);
	CHECK_EQUAL(pool_value(default_pool(), USED), 0);
	all = allocate(room, s);
	CHECK_EQUAL(used_bytes() - before, room);
}

TEST_IN_WORLD(NULL, a_pool_of_one_s_own_has_a_limit_and_outlives_its_destruction)
{
	open_context(0);
	struct ll_cu_stream *s = new_stream();
	struct ll_cu_mem_pool *pool, *now;
	struct ll_cu_mem_pool_props props = {.type = LL_CU_MEM_ALLOCATION_TYPE_PINNED,
					     .location = {LL_CU_MEM_LOCATION_TYPE_DEVICE, 0},
					     .max_bytes = 10 * MIB};
	uint64_t before = used_bytes();
	ll_cu_deviceptr a, b;
	CHECK_EQUAL(cu.cuMemPoolCreate(&pool, &props), 0);
	CHECK_EQUAL(cu.cuMemAllocFromPoolAsync(&a, 6 * MIB, pool, s), 0);
	/* Its limit is rounded to chunks. */
	CHECK_EQUAL(cu.cuMemAllocFromPoolAsync(&b, 6 * MIB, pool, s), 0);
	CHECK_EQUAL(cu.cuMemAllocFromPoolAsync(&b, 40 * MIB, pool, s), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(cu.cuMemPoolDestroy(default_pool()), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuDeviceSetMemPool(0, pool), 0);
	CHECK_EQUAL(cu.cuDeviceGetMemPool(&now, 0), 0);
	CHECK(now == pool);
	CHECK_EQUAL(cu.cuPointerGetAttribute(&now, LL_CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, a), 0);
	CHECK(now == pool);
	CHECK_EQUAL(cu.cuMemPoolDestroy(pool), 0);
	CHECK_EQUAL(cu.cuDeviceGetMemPool(&now, 0), 0);
	CHECK(now == default_pool());
	/* What is in it lives on, and the pool with it. */
	CHECK_EQUAL(cu.cuMemAllocFromPoolAsync(&b, 1, pool, s), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuMemsetD8(a, 1, 6 * MIB), 0);
	CHECK_EQUAL(used_bytes() - before, 32 * MIB);
	CHECK_EQUAL(cu.cuMemFreeAsync(b, s), 0);
	CHECK_EQUAL(cu.cuMemFreeAsync(a, s), 0);
	CHECK_EQUAL(cu.cuStreamSynchronize(s), 0);
	CHECK_EQUAL(used_bytes(), before);
}

TEST_IN_WORLD(NULL, copies_work_on_what_a_pool_gave)
{
	open_context(0);
	struct ll_cu_stream *s = new_stream();
	uint32_t word = 0x12345678, back = 0;
	ll_cu_deviceptr a = allocate(40 * MIB, s), plain;
	CHECK_EQUAL(cu.cuMemcpyHtoDAsync(a + 33 * MIB, &word, 4, s), 0);
	CHECK_EQUAL(cu.cuMemcpyDtoHAsync(&back, a + 33 * MIB, 4, s), 0);
	CHECK_EQUAL(cu.cuStreamSynchronize(s), 0);
	CHECK_EQUAL(back, word);
	CHECK_EQUAL(cu.cuMemcpyDtoH(&back, a + 40 * MIB, 4), LL_CUDA_ERROR_INVALID_VALUE);
	/* Other memory may be freed in a stream's order, too. */
	uint64_t before = used_bytes();
	CHECK_EQUAL(cu.cuMemAlloc(&plain, 4 * MIB), 0);
	CHECK_EQUAL(cu.cuMemFreeAsync(plain, s), 0);
	CHECK_EQUAL(cu.cuStreamSynchronize(s), 0);
	CHECK_EQUAL(used_bytes(), before);
	CHECK_EQUAL(cu.cuMemFreeAsync(plain, s), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuMemFreeAsync(0, s), 0);
	CHECK_EQUAL(cu.cuMemAllocAsync(&plain, 0, s), 0);
}

static void hold_pools(void)
{
	open_context(0);
	allocate(10 * GIB, new_stream());
	CHECK(nvml_used_bytes() > 10 * GIB);
	ready();
	for (;;)
		sleep_ms(1000);
}

TEST_IN_WORLD(NULL, sigkill_frees_a_pool)
{
	uint64_t before = used_bytes_before();
	spawn_and_kill(hold_pools);
	WAIT_FOR(nvml_used_bytes() == before);
}

static void body_fault(void)
{
	ll_cu_deviceptr a;
	struct ll_cu_mem_pool *pool;
	open_context(0);
	CHECK_EQUAL(cu.cuMemAllocAsync(&a, 1, NULL), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(cu.cuMemAllocAsync(&a, 1, NULL), 0);
	CHECK_EQUAL(cu.cuDeviceGetMemPool(&pool, 0), LL_CUDA_ERROR_NOT_SUPPORTED);
}

TEST(faults_reach_pools)
{
	in_world("fail cuMemAllocAsync CUDA_ERROR_OUT_OF_MEMORY count 1\nfail cuDeviceGetMemPool 801", body_fault);
}
