/* Plain allocations, contexts and readings of a governed program: charged, refused, given back. */
#include "governed.h"

#include <pthread.h>

static void allocate(uint64_t bytes, uint64_t expected)
{
	ll_cu_deviceptr address;
	uint64_t before = charged();
	CHECK_EQUAL(cu.cuMemAlloc(&address, bytes), 0);
	CHECK_EQUAL(charged() - before, expected);
	CHECK_EQUAL(cu.cuMemFree(address), 0);
	CHECK_EQUAL(charged(), before);
	/* Not a second time. */
	CHECK(cu.cuMemFree(address) != 0);
	CHECK_EQUAL(charged(), before);
}

TEST_IN_WORLD(NULL, an_allocation_is_charged_what_the_card_takes_and_given_back)
{
	govern(4 * GIB);
	open_context(0);
	CHECK_EQUAL(charged(), CONTEXT_BYTES);
	allocate(1, 512);
	allocate(512, 512);
	allocate(513, 1024);
	allocate(MIB, MIB);
	allocate(MIB + 1, 2 * MIB);
	allocate(2 * MIB, 2 * MIB);
	allocate(100 * MIB + 1, 102 * MIB);
}

TEST_IN_WORLD(NULL, not_a_byte_goes_over_the_limit_which_may_change)
{
	ll_cu_deviceptr address, more;
	govern(CONTEXT_BYTES + 100 * MIB);
	open_context(0);
	CHECK_EQUAL(cu.cuMemAlloc(&address, 100 * MIB + 1), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(charged(), CONTEXT_BYTES);
	CHECK_EQUAL(cu.cuMemAlloc(&address, 100 * MIB), 0);
	CHECK_EQUAL(cu.cuMemAlloc(&more, 1), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(cu.cuMemAlloc(&more, SIZE_MAX), LL_CUDA_ERROR_OUT_OF_MEMORY);
	set_limit(CONTEXT_BYTES + 100 * MIB + 512);
	CHECK_EQUAL(cu.cuMemAlloc(&more, 1), 0);
	CHECK_EQUAL(cu.cuMemFree(more), 0);
	CHECK_EQUAL(cu.cuMemFree(address), 0);
	CHECK_EQUAL(charged(), CONTEXT_BYTES);
}

TEST_IN_WORLD(NULL, what_the_driver_refuses_is_not_charged)
{
	ll_cu_deviceptr address = 0;
	govern(1000 * GIB);
	open_context(0);
	uint64_t before = charged();
	CHECK_EQUAL(cu.cuMemAlloc(&address, 500 * GIB), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(cu.cuMemAlloc(&address, 0), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuMemAlloc(NULL, 16), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuMemAllocManaged(&address, 16, 99), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuMemFree(12345), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuMemFree(0), 0);
	CHECK_EQUAL(charged(), before);
}

TEST_IN_WORLD(NULL, a_free_that_fails_keeps_the_charge)
{
	ll_cu_deviceptr address;
	govern(GIB);
	open_context(0);
	CHECK_EQUAL(cu.cuMemAlloc(&address, 10 * MIB), 0);
	CHECK_EQUAL(simctl("fail cuMemFree_v2 CUDA_ERROR_LAUNCH_FAILED count 1"), 0);
	CHECK_EQUAL(cu.cuMemFree(address), LL_CUDA_ERROR_LAUNCH_FAILED);
	CHECK_EQUAL(charged(), CONTEXT_BYTES + 10 * MIB);
	CHECK_EQUAL(cu.cuMemFree(address), 0);
	CHECK_EQUAL(charged(), CONTEXT_BYTES);
}

TEST_IN_WORLD(NULL, rows_and_managed_memory_are_charged)
{
	ll_cu_deviceptr address;
	size_t pitch;
	govern(GIB);
	open_context(0);
	CHECK_EQUAL(cu.cuMemAllocPitch(&address, &pitch, 1000, 5000, 4), 0);
	CHECK_EQUAL(pitch, 1024);
	CHECK_EQUAL(charged(), CONTEXT_BYTES + 6 * MIB); /* 4.9 MiB */
	CHECK_EQUAL(cu.cuMemFree(address), 0);
	CHECK_EQUAL(charged(), CONTEXT_BYTES);
	CHECK_EQUAL(cu.cuMemAllocPitch(&address, &pitch, 1000, 1000000, 4), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(cu.cuMemAllocManaged(&address, 10 * MIB, LL_CU_MEM_ATTACH_GLOBAL), 0);
	CHECK_EQUAL(charged(), CONTEXT_BYTES + 10 * MIB);
	CHECK_EQUAL(cu.cuMemFree(address), 0);
	CHECK_EQUAL(charged(), CONTEXT_BYTES);
}

TEST_IN_WORLD(NULL, the_limit_is_shown_as_the_card)
{
	size_t total, free_bytes;
	ll_cu_deviceptr address;
	struct ll_nvml_memory memory;
	struct ll_nvml_memory_v2 memory_v2 = {.version = LL_NVML_MEMORY_V2};
	struct ll_nvml_device *card;
	govern(2 * GIB);
	card = open_card(0);
	/* Before there is a context: from the environment. */
	CHECK_EQUAL(nv.nvmlDeviceGetMemoryInfo(card, &memory), 0);
	CHECK_EQUAL(memory.total_bytes, 2 * GIB);
	CHECK_EQUAL(memory.used_bytes, 0);
	CHECK_EQUAL(memory.free_bytes, 2 * GIB);
	open_cuda();
	CHECK_EQUAL(cu.cuInit(0), 0);
	CHECK_EQUAL(cu.cuDeviceTotalMem(&total, 0), 0);
	CHECK_EQUAL(total, 2 * GIB);
	open_context(0);
	CHECK_EQUAL(cu.cuMemAlloc(&address, 100 * MIB), 0);
	CHECK_EQUAL(cu.cuMemGetInfo(&free_bytes, &total), 0);
	CHECK_EQUAL(total, 2 * GIB);
	CHECK_EQUAL(free_bytes, 2 * GIB - CONTEXT_BYTES - 100 * MIB);
	/* The driver takes NULL for either figure. */
	total = free_bytes = 0;
	CHECK_EQUAL(cu.cuMemGetInfo(NULL, &total), 0);
	CHECK_EQUAL(total, 2 * GIB);
	CHECK_EQUAL(cu.cuMemGetInfo(&free_bytes, NULL), 0);
	CHECK_EQUAL(free_bytes, 2 * GIB - CONTEXT_BYTES - 100 * MIB);
	CHECK_EQUAL(nv.nvmlDeviceGetMemoryInfo_v2(card, &memory_v2), 0);
	CHECK_EQUAL(memory_v2.total_bytes, 2 * GIB);
	CHECK_EQUAL(memory_v2.used_bytes, CONTEXT_BYTES + 100 * MIB);
	CHECK_EQUAL(memory_v2.free_bytes, 2 * GIB - memory_v2.used_bytes);
	CHECK_EQUAL(memory_v2.reserved_bytes, 0);
	memory_v2.version = 77;
	CHECK(nv.nvmlDeviceGetMemoryInfo_v2(card, &memory_v2) != 0);
	/* More than the card has is not shown. */
	set_limit(1000 * GIB);
	CHECK_EQUAL(cu.cuDeviceTotalMem(&total, 0), 0);
	CHECK(total < 200 * GIB);
	CHECK_EQUAL(cu.cuMemGetInfo(&free_bytes, &total), 0);
	CHECK(total < 200 * GIB && free_bytes < total);
	/* A limit below what is used. */
	set_limit(GIB / 4);
	CHECK_EQUAL(cu.cuMemGetInfo(&free_bytes, &total), 0);
	CHECK_EQUAL(free_bytes, 0);
	CHECK_EQUAL(nv.nvmlDeviceGetMemoryInfo(card, &memory), 0);
	CHECK_EQUAL(memory.free_bytes, 0);
	CHECK_EQUAL(memory.used_bytes, GIB / 4);
}

TEST_IN_WORLD(NULL, without_a_limit_memory_is_charged_and_readings_are_the_card_s)
{
	size_t total, free_bytes;
	ll_cu_deviceptr address;
	struct ll_nvml_memory memory;
	govern(0);
	open_context(0);
	CHECK_EQUAL(cu.cuMemAlloc(&address, 100 * MIB), 0);
	CHECK_EQUAL(charged(), CONTEXT_BYTES + 100 * MIB);
	CHECK_EQUAL(cu.cuMemGetInfo(&free_bytes, &total), 0);
	CHECK(total > 100 * GIB);
	CHECK_EQUAL(nv.nvmlDeviceGetMemoryInfo(open_card(0), &memory), 0);
	CHECK(memory.total_bytes > 100 * GIB && memory.used_bytes != charged());
}

enum { THREADS = 64, ROUNDS = 300, KEPT = 8 };
static struct ll_cu_context *shared_context;
static _Atomic uint64_t kept_bytes;
static ll_cu_deviceptr handed[THREADS];

static void *allocate_often(void *arg)
{
	ll_cu_deviceptr addresses[KEPT] = {0};
	size_t index = (size_t)((ll_cu_deviceptr *)arg - handed);
	CHECK_EQUAL(cu.cuCtxSetCurrent(shared_context), 0);
	for (unsigned i = 0; i < ROUNDS; i++) {
		ll_cu_deviceptr *slot = &addresses[i % KEPT];
		if (*slot)
			CHECK_EQUAL(cu.cuMemFree(*slot), 0);
		ll_cu_result status = cu.cuMemAlloc(slot, (size_t)(1 + (i + index) % 5) * 700 * KIB);
		CHECK(status == 0 || status == LL_CUDA_ERROR_OUT_OF_MEMORY);
		if (status != 0)
			*slot = 0;
	}
	for (unsigned i = 0; i < KEPT; i++) {
		if (addresses[i])
			CHECK_EQUAL(cu.cuMemFree(addresses[i]), 0);
	}
	/* One for another thread to free. */
	if (cu.cuMemAlloc(arg, MIB) == 0)
		kept_bytes += MIB;
	return NULL;
}

TEST_IN_WORLD(NULL, threads_may_allocate_at_once_and_free_for_each_other)
{
	pthread_t threads[THREADS];
	govern(CONTEXT_BYTES + 300 * MIB);
	shared_context = open_context(0);
	for (size_t i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, allocate_often, &handed[i]) == 0);
	for (size_t i = 0; i < THREADS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	CHECK_EQUAL(charged(), CONTEXT_BYTES + kept_bytes);
	CHECK(kept_bytes > 0);
	for (size_t i = 0; i < THREADS; i++) {
		if (handed[i])
			CHECK_EQUAL(cu.cuMemFree(handed[i]), 0);
	}
	CHECK_EQUAL(charged(), CONTEXT_BYTES);
}

TEST_IN_WORLD(NULL, a_program_that_run_did_not_start_is_left_alone)
{
	ll_cu_deviceptr address;
	size_t total, free_bytes;
	open_context(0);
	CHECK_EQUAL(cu.cuMemAlloc(&address, 100 * MIB), 0);
	CHECK_EQUAL(cu.cuMemGetInfo(&free_bytes, &total), 0);
	CHECK(total > 100 * GIB);
	CHECK_EQUAL(cu.cuMemFree(address), 0);
	CHECK_EQUAL(charged(), 0);
}
