/* Memory in the order of a stream of an evictable program: when it is used again, what it is charged, when it goes back
 * to the card. memory_movable_ends.c has the ends of streams, contexts and pools. */
#include "movable.h"

#include <sys/mman.h>

TEST_IN_WORLD(NULL, freed_memory_is_its_own_stream_s_at_once_and_nobody_else_s)
{
	govern_evictable(0);
	open_context(0);
	struct ll_cu_stream *stream = new_stream(), *other = new_stream();
	struct ll_cu_mem_pool *pool = default_pool();
	ll_cu_deviceptr first = allocate(10 * MIB, stream);
	occupy(stream);
	free_in(first, stream);
	CHECK_EQUAL(value_of(pool, USED), 10 * MIB);
	/* Its own stream at once, also for a little less, but not for much less. Others not before the stream is there.
	 */
	CHECK(allocate(10 * MIB, other) != first);
	CHECK(allocate(6 * MIB, stream) != first);
	CHECK_EQUAL(allocate(10 * MIB - 5, stream), first);
	CHECK_EQUAL(value_of(pool, USED), 26 * MIB - 5);
	CHECK_EQUAL(pool_charge(), 26 * MIB);
	/* Small ones the same. */
	first = allocate(1000, stream);
	free_in(first, stream);
	CHECK(allocate(1000, other) != first);
	CHECK_EQUAL(allocate(1024, stream), first);
}

TEST_IN_WORLD(NULL, freed_memory_is_everybody_s_when_its_stream_is_there)
{
	govern_evictable(0);
	open_context(0);
	struct ll_cu_stream *stream = new_stream(), *other = new_stream();
	struct ll_cu_mem_pool *pool = default_pool();
	ll_cu_deviceptr first = allocate(10 * MIB, stream);
	free_in(first, stream);
	WAIT_FOR(value_of(pool, USED) == 0);
	CHECK_EQUAL(value_of(pool, RESERVED), 32 * MIB);
	CHECK_EQUAL(allocate(10 * MIB, other), first);
	CHECK_EQUAL(value_of(pool, USED_HIGH), 10 * MIB);
	/* Waiting frees it from the order of any stream. */
	CHECK_EQUAL(cu.cuMemFree(first), 0);
	CHECK_EQUAL(allocate(10 * MIB, stream), first);
}

enum { STREAMS = 5, SLOTS = 400, SLOT_BYTES = 8192 };

static struct ll_cu_function *work;

/*
 * Each round, in a random stream: allocate, fill a part, wait a while or not, copy it to a slot of its own, free.
 * Nobody waits for a stream before the end. The limit is so low that streams also wait for each other's blocks.
 */
static void do_round(struct ll_cu_stream *stream, ll_cu_deviceptr slot, unsigned char byte, unsigned random)
{
	static const size_t sizes[] = {SLOT_BYTES, 100000, MIB, 3 * MIB, 4 * MIB};
	ll_cu_deviceptr block;
	size_t bytes = sizes[random % 5];
	ll_cu_result status = cu.cuMemAllocAsync(&block, bytes, stream);
	if (status == LL_CUDA_SUCCESS) {
		ll_cu_deviceptr part = block + bytes - SLOT_BYTES;
		CHECK_EQUAL(cu.cuMemsetD8Async(part, byte, SLOT_BYTES, stream), 0);
		if (random / 5 % 3)
			launch_timed(work, stream, random / 15 % 4 * UINT64_C(500000), 1, 32);
		CHECK_EQUAL(cu.cuMemcpyDtoDAsync(slot, part, SLOT_BYTES, stream), 0);
		free_in(block, stream);
		return;
	}
	CHECK_EQUAL(status, LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(cu.cuMemsetD8Async(slot, byte, SLOT_BYTES, stream), 0);
}

TEST_IN_WORLD(NULL, no_byte_is_overwritten_before_its_stream_is_there)
{
	static unsigned char seen[SLOTS][SLOT_BYTES];
	unsigned short random[3] = {1, 2, 3};
	struct ll_cu_stream *streams[STREAMS];
	ll_cu_deviceptr slots;
	govern_evictable(CONTEXT_BYTES + 12 * MIB);
	open_context(0);
	work = get_kernel("work_ns");
	keep(default_pool(), UINT64_MAX);
	for (int i = 0; i < STREAMS; i++)
		streams[i] = new_stream();
	CHECK_EQUAL(cu.cuMemAlloc(&slots, sizeof seen), 0);
	for (unsigned i = 0; i < SLOTS; i++)
		do_round(streams[nrand48(random) % STREAMS], slots + i * (uint64_t)SLOT_BYTES, (unsigned char)(i % 251),
			 (unsigned)nrand48(random));
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	CHECK_EQUAL(cu.cuMemcpyDtoH(seen, slots, sizeof seen), 0);
	for (unsigned i = 0; i < SLOTS; i++) {
		for (unsigned at = 0; at < SLOT_BYTES; at++)
			CHECK_EQUAL(seen[i][at], i % 251);
	}
}

TEST_IN_WORLD(NULL, freed_memory_goes_back_when_the_program_waits_or_trims)
{
	ll_cu_deviceptr address;
	govern_evictable(2 * GIB);
	open_context(0);
	struct ll_cu_stream *stream = new_stream(), *other = new_stream();
	struct ll_cu_mem_pool *pool = default_pool();
	uint64_t none = 0, used = card_used();
	address = allocate(60 * MIB, stream);
	CHECK_EQUAL(pool_charge(), 60 * MIB);
	CHECK_EQUAL(card_used(), used + 60 * MIB);
	/* Back when somebody has waited for the stream, and not for another one. */
	free_in(address, stream);
	CHECK_EQUAL(cu.cuStreamSynchronize(other), 0);
	CHECK_EQUAL(pool_charge(), 60 * MIB);
	CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	CHECK_EQUAL(pool_charge(), 0);
	CHECK_EQUAL(card_used(), used);
	free_in(allocate(60 * MIB, stream), stream);
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	CHECK_EQUAL(pool_charge(), 0);
	/* A threshold keeps it. */
	keep(pool, 32 * MIB);
	ll_cu_deviceptr blocks[] = {allocate(30 * MIB, stream), allocate(20 * MIB, stream), allocate(4 * MIB, stream)};
	for (int i = 0; i < 3; i++)
		free_in(blocks[i], stream);
	CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	CHECK_EQUAL(pool_charge(), 34 * MIB);
	CHECK_EQUAL(value_of(pool, RESERVED), 64 * MIB);
	CHECK_EQUAL(value_of(pool, RESERVED_HIGH), 64 * MIB);
	CHECK_EQUAL(cu.cuMemPoolTrimTo(pool, 20 * MIB), 0);
	CHECK_EQUAL(pool_charge(), 30 * MIB);
	CHECK_EQUAL(cu.cuMemPoolTrimTo(pool, 0), 0);
	CHECK_EQUAL(pool_charge(), 0);
	CHECK_EQUAL(card_used(), used);
	CHECK_EQUAL(cu.cuMemPoolSetAttribute(pool, RESERVED_HIGH, &none), 0);
	CHECK_EQUAL(value_of(pool, RESERVED_HIGH), 0);
	CHECK_EQUAL(cu.cuMemPoolSetAttribute(pool, USED_HIGH, &none), 0);
	CHECK(cu.cuMemPoolGetAttribute(NULL, USED, &none) != 0);
	CHECK_EQUAL(value_of(pool, USED_HIGH), 0);
}

TEST_IN_WORLD(NULL, the_limit_counts_what_pools_keep_and_makes_them_give_it_up)
{
	ll_cu_deviceptr address;
	govern_evictable(CONTEXT_BYTES + 100 * MIB);
	open_context(0);
	struct ll_cu_stream *stream = new_stream(), *other = new_stream();
	keep(default_pool(), UINT64_MAX);
	CHECK_EQUAL(cu.cuMemAllocAsync(&address, 101 * MIB, stream), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(pool_charge(), 0);
	ll_cu_deviceptr block = allocate(96 * MIB, stream);
	CHECK_EQUAL(cu.cuMemAllocAsync(&address, 5 * MIB, stream), LL_CUDA_ERROR_OUT_OF_MEMORY);
	/* What is freed and done gives way. */
	free_in(block, stream);
	CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	CHECK_EQUAL(pool_charge(), 96 * MIB);
	CHECK_EQUAL(cu.cuMemAlloc(&address, 90 * MIB), 0);
	CHECK_EQUAL(pool_charge(), 90 * MIB);
	CHECK_EQUAL(cu.cuMemFree(address), 0);
	free_in(allocate(96 * MIB, stream), stream);
	CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	block = allocate(20 * MIB, stream);
	CHECK_EQUAL(pool_charge(), 20 * MIB);
	free_in(block, stream);
	CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	/* What is not done does not. But a stream may wait for it. */
	block = allocate(96 * MIB, stream);
	occupy(stream);
	free_in(block, stream);
	CHECK_EQUAL(cu.cuMemAlloc(&address, 90 * MIB), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(cu.cuMemAllocAsync(&address, 50 * MIB, other), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(cu.cuStreamQuery(other), 0);
	CHECK_EQUAL(allocate(96 * MIB, other), block);
	CHECK_EQUAL(cu.cuStreamQuery(other), LL_CUDA_ERROR_NOT_READY);
	CHECK_EQUAL(pool_charge(), 96 * MIB);
}

TEST_IN_WORLD("card 0 memory 4G\n", a_card_without_room_makes_pools_give_up_what_they_keep)
{
	ll_cu_deviceptr address;
	ll_cu_mem_handle handle;
	size_t pitch;
	struct ll_cu_mem_allocation_prop prop = {.type = LL_CU_MEM_ALLOCATION_TYPE_PINNED,
						 .location = {.type = LL_CU_MEM_LOCATION_TYPE_DEVICE}};
	govern_evictable(0);
	open_context(0);
	struct ll_cu_stream *stream = new_stream();
	keep(default_pool(), UINT64_MAX);
	for (int i = 0; i < 4; i++) {
		free_in(allocate(2 * GIB, stream), stream);
		CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
		CHECK_EQUAL(value_of(default_pool(), RESERVED), 2 * GIB);
		if (i == 0)
			address = allocate(GIB + 512 * MIB, stream);
		else if (i == 1)
			CHECK_EQUAL(cu.cuMemAlloc(&address, GIB + 512 * MIB), 0);
		else if (i == 2)
			CHECK_EQUAL(cu.cuMemAllocPitch(&address, &pitch, MIB, 1536, 4), 0);
		else
			CHECK_EQUAL(cu.cuMemCreate(&handle, GIB + 512 * MIB, &prop, 0), 0);
		CHECK_EQUAL(value_of(default_pool(), USED), i ? 0 : GIB + 512 * MIB);
		if (i < 3)
			CHECK_EQUAL(cu.cuMemFree(address), 0);
	}
}

TEST_IN_WORLD(NULL, an_address_is_told_as_a_pool_s)
{
	struct ll_cu_mem_pool *pool = NULL;
	struct ll_cu_context *context = (void *)&context;
	ll_cu_deviceptr start = 0;
	size_t bytes = 0;
	unsigned is_capable = 7, type = 0;
	uint64_t types = 7;
	struct ll_cu_ipc_mem_handle letter;
	govern_evictable(0);
	open_context(0);
	ll_cu_deviceptr block = allocate(5000, NULL), at = block + 4000;
	CHECK_EQUAL(cu.cuPointerGetAttribute(&pool, LL_CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, at), 0);
	CHECK(pool == default_pool());
	CHECK_EQUAL(cu.cuPointerGetAttribute(&context, LL_CU_POINTER_ATTRIBUTE_CONTEXT, at), 0);
	CHECK(context == NULL);
	CHECK_EQUAL(cu.cuPointerGetAttribute(&start, LL_CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, at), 0);
	CHECK_EQUAL(cu.cuPointerGetAttribute(&bytes, LL_CU_POINTER_ATTRIBUTE_RANGE_SIZE, at), 0);
	CHECK_EQUAL(start, block);
	CHECK_EQUAL(bytes, 5000);
	CHECK_EQUAL(cu.cuMemGetAddressRange(&start, &bytes, at), 0);
	CHECK_EQUAL(start, block);
	CHECK_EQUAL(bytes, 5000);
	CHECK_EQUAL(cu.cuPointerGetAttribute(&type, LL_CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at), 0);
	CHECK_EQUAL(type, LL_CU_MEMORYTYPE_DEVICE);
	CHECK_EQUAL(cu.cuPointerGetAttribute(&types, LL_CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, at), 0);
	CHECK_EQUAL(types, 0);
	CHECK_EQUAL(cu.cuPointerGetAttribute(&is_capable, LL_CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, at), 0);
	CHECK_EQUAL(is_capable, 0);
	CHECK(cu.cuIpcGetMemHandle(&letter, block) != 0);
	CHECK(cu.cuPointerGetAttribute(&type, LL_CU_POINTER_ATTRIBUTE_MEMORY_TYPE, block + 8192) != 0);
	free_in(block, NULL);
	CHECK(cu.cuPointerGetAttribute(&type, LL_CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at) != 0);
}

TEST_IN_WORLD(NULL, what_others_can_see_and_what_is_captured_stays_with_the_driver)
{
	ll_cu_deviceptr address;
	govern_evictable(0);
	open_context(0);
	/* The driver's pools take 32 MiB at least. */
	struct ll_cu_mem_pool *exported = make_pool(0, LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	struct ll_cu_mem_pool *own = make_pool(0, LL_CU_MEM_HANDLE_TYPE_NONE);
	struct ll_cu_stream *stream = new_stream();
	CHECK_EQUAL(cu.cuMemAllocFromPoolAsync(&address, 1000, exported, stream), 0);
	CHECK_EQUAL(value_of(exported, RESERVED), 32 * MIB);
	CHECK_EQUAL(cu.cuMemAllocFromPoolAsync(&address, 1000, own, stream), 0);
	CHECK_EQUAL(pool_charge(), 32 * MIB + 1024);
	/* In a captured stream it is a graph's memory. Other memory is not freed there, as the driver's pools' is not.
	 */
	struct ll_cu_graph *graph;
	ll_cu_deviceptr captured, block = allocate(MIB, stream);
	CHECK_EQUAL(cu.cuStreamBeginCapture(stream, LL_CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
	CHECK_EQUAL(cu.cuMemAllocAsync(&captured, MIB, stream), 0);
	CHECK_EQUAL(cu.cuMemFreeAsync(captured, stream), 0);
	CHECK_EQUAL(cu.cuMemFreeAsync(block, stream), LL_CUDA_ERROR_INVALID_VALUE);
	/* Another stream's goes on meanwhile, and spoils nothing. */
	struct ll_cu_stream *other = new_stream();
	free_in(allocate(3 * MIB, other), other);
	free_in(allocate(3 * MIB, other), other);
	CHECK_EQUAL(cu.cuStreamEndCapture(stream, &graph), 0);
	CHECK_EQUAL(pool_charge(), 32 * MIB + 1024 + 5 * MIB);
	free_in(block, stream);
}

/* What a pool tells after each of these calls, in bytes: the driver's own, if the program is not evictable. */
static void tell_growth(uint64_t told[9][4])
{
	static const size_t sizes[] = {1000, 100 * MIB, 33 * MIB, 27 * MIB - 2000, 1000, MIB, 300 * MIB};
	ll_cu_deviceptr blocks[7];
	uint64_t none = 0;
	open_context(0);
	struct ll_cu_stream *stream = new_stream();
	struct ll_cu_mem_pool *pool = default_pool();
	for (int i = 0; i < 9; i++) {
		if (i < 7)
			blocks[i] = allocate(sizes[i], stream);
		for (int j = 0; i == 7 && j < 7; j++)
			free_in(blocks[j], stream);
		if (i == 7)
			CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
		if (i == 8) {
			CHECK_EQUAL(cu.cuMemPoolSetAttribute(pool, RESERVED_HIGH, &none), 0);
			CHECK_EQUAL(cu.cuMemPoolSetAttribute(pool, USED_HIGH, &none), 0);
		}
		told[i][0] = value_of(pool, RESERVED);
		told[i][1] = value_of(pool, RESERVED_HIGH);
		told[i][2] = value_of(pool, USED);
		told[i][3] = value_of(pool, USED_HIGH);
	}
}

static uint64_t (*grown)[9][4];

static void body_grown_plain(void)
{
	govern(0);
	tell_growth(grown[0]);
}

static void body_grown_evictable(void)
{
	govern_evictable(0);
	tell_growth(grown[1]);
}

TEST(a_pool_tells_that_it_grows_and_shrinks_as_a_driver_s)
{
	static const uint64_t reserved[] = {32, 128, 160, 160, 192};
	grown = mmap(NULL, 2 * sizeof *grown, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(grown, MAP_FAILED);
	in_world(NULL, body_grown_plain);
	in_world(NULL, body_grown_evictable);
	for (int i = 0; i < 9; i++) {
		for (int j = 0; j < 4; j++)
			assert_int_equal(grown[0][i][j], grown[1][i][j]);
	}
	for (int i = 0; i < 5; i++)
		assert_int_equal(grown[0][i][0] / MIB, reserved[i]); /* doc/facts.md */
	munmap(grown, 2 * sizeof *grown);
}

TEST_IN_WORLD(NULL, errors_are_the_driver_s_and_leave_everything_as_it_was)
{
	ll_cu_deviceptr address, plain;
	govern_evictable(2 * GIB);
	open_context(0);
	struct ll_cu_stream *stream = new_stream();
	address = allocate(4 * MIB, stream);
	CHECK(cu.cuMemFreeAsync(address + 512, stream) != 0);
	CHECK_EQUAL(simctl("fail cuEventRecord CUDA_ERROR_LAUNCH_FAILED count 1"), 0);
	CHECK_EQUAL(cu.cuMemFreeAsync(address, stream), LL_CUDA_ERROR_LAUNCH_FAILED);
	free_in(address, stream);
	CHECK_EQUAL(cu.cuMemFreeAsync(address, stream), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuMemFree(address), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	CHECK_EQUAL(pool_charge(), 0);
	CHECK_EQUAL(simctl("fail cuMemCreate CUDA_ERROR_LAUNCH_FAILED count 1"), 0);
	CHECK_EQUAL(cu.cuMemAllocAsync(&address, MIB, stream), LL_CUDA_ERROR_LAUNCH_FAILED);
	CHECK_EQUAL(pool_charge(), 0);
	CHECK_EQUAL(value_of(default_pool(), RESERVED), 0);
	CHECK_EQUAL(cu.cuMemAllocAsync(NULL, MIB, stream), LL_CUDA_ERROR_INVALID_VALUE);
	/* Plain memory may be freed in the order of a stream too. */
	CHECK_EQUAL(cu.cuMemAlloc(&plain, 10 * MIB), 0);
	free_in(plain, stream);
	CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	CHECK_EQUAL(pool_charge(), 0);
	/* A pool's maximum, in steps of 32 MiB. */
	struct ll_cu_mem_pool *pool = make_pool(20 * MIB, LL_CU_MEM_HANDLE_TYPE_NONE);
	CHECK_EQUAL(cu.cuMemAllocFromPoolAsync(&address, 34 * MIB, pool, stream), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(cu.cuMemAllocFromPoolAsync(&address, 30 * MIB, pool, stream), 0);
	CHECK_EQUAL(cu.cuMemAllocFromPoolAsync(&plain, 4 * MIB, pool, stream), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(pool_charge(), 30 * MIB);
}
