/* Managed memory, what an address is, and the functions of old: each as an H200 answers. */
#include "memory.h"

static ll_cu_deviceptr allocate(size_t bytes)
{
	ll_cu_deviceptr address;
	CHECK_EQUAL(cu.cuMemAllocManaged(&address, bytes, LL_CU_MEM_ATTACH_GLOBAL), 0);
	return address;
}

TEST_IN_WORLD(NULL, managed_memory_is_on_the_card_once_the_card_uses_it)
{
	open_context(0);
	uint64_t before = used_bytes();
	ll_cu_deviceptr a = allocate(64 * MIB);
	CHECK_EQUAL(used_bytes(), before);
	((volatile char *)(uintptr_t)a)[5] = 3; /* the host's, too */
	CHECK_EQUAL(used_bytes(), before);
	CHECK_EQUAL(cu.cuMemsetD8(a, 7, 1), 0);
	CHECK_EQUAL(used_bytes() - before, 64 * MIB);
	CHECK_EQUAL(*(volatile char *)(uintptr_t)a, 7);
	CHECK_EQUAL(((volatile char *)(uintptr_t)a)[5], 3);
	CHECK_EQUAL(cu.cuMemFree(a), 0);
	CHECK_EQUAL(used_bytes(), before);
	/* A kernel that is given an address in it. */
	a = allocate(64 * MIB);
	uint64_t inside = a + 4096;
	void *params[] = {&inside};
	struct ll_cu_module *module;
	struct ll_cu_function *kernel;
	CHECK_EQUAL(cu.cuModuleLoadData(&module, ".version 7.0\n.target sm_50\n.address_size 64\n"
						 ".visible .entry reads(.param .u64 from) { ret; }\n"),
		    0);
	CHECK_EQUAL(cu.cuModuleGetFunction(&kernel, module, "reads"), 0);
	CHECK_EQUAL(cu.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL), 0);
	CHECK_EQUAL(used_bytes() - before, 64 * MIB);
	/* Prefetched to the host and back. */
	CHECK_EQUAL(cu.cuMemPrefetchAsync_v1(a, 64 * MIB, LL_CU_DEVICE_CPU, NULL), 0);
	CHECK_EQUAL(used_bytes(), before);
	struct ll_cu_mem_location card = {LL_CU_MEM_LOCATION_TYPE_DEVICE, 0};
	CHECK_EQUAL(cu.cuMemPrefetchAsync(a, MIB, card, 0, NULL), 0);
	CHECK_EQUAL(used_bytes() - before, 64 * MIB);
	CHECK_EQUAL(cu.cuMemAdvise(a, MIB, LL_CU_MEM_ADVISE_SET_READ_MOSTLY, card), 0);
}

/* The calls that the batches of CUDA 13 make, in any stream but the legacy one. */
TEST_IN_WORLD(NULL, batches_prefetch_and_discard_managed_memory_alone)
{
	open_context(0);
	uint64_t before = used_bytes();
	struct ll_cu_stream *stream = new_stream();
	ll_cu_deviceptr ranges[] = {allocate(64 * MIB), allocate(32 * MIB), allocate(16 * MIB)};
	ll_cu_deviceptr plain[1];
	size_t bytes[] = {64 * MIB, 32 * MIB, 16 * MIB}, first_of[] = {0, 2}, both_first[] = {0, 0};
	struct ll_cu_mem_location card = {LL_CU_MEM_LOCATION_TYPE_DEVICE, 0}, host = {LL_CU_MEM_LOCATION_TYPE_HOST, 0};
	struct ll_cu_mem_location to_card[] = {card}, mixed[] = {card, host}, nowhere[] = {{0}};
	CHECK_EQUAL(cu.cuMemPrefetchBatchAsync(ranges, bytes, 3, to_card, first_of, 1, 0, stream), 0);
	CHECK_EQUAL(used_bytes() - before, 112 * MIB);
	CHECK_EQUAL(cu.cuMemDiscardBatchAsync(ranges, bytes, 3, 0, stream), 0);
	CHECK_EQUAL(cu.cuMemDiscardAndPrefetchBatchAsync(ranges, bytes, 3, mixed, first_of, 2, 0, stream), 0);
	CHECK_EQUAL(used_bytes() - before, 96 * MIB);
	CHECK_EQUAL(cu.cuMemPrefetchBatchAsync(ranges, bytes, 3, mixed, both_first, 2, 0, stream),
		    LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuMemPrefetchBatchAsync(ranges, bytes, 1, mixed, first_of, 2, 0, stream),
		    LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuMemPrefetchBatchAsync(ranges, bytes, 3, nowhere, first_of, 1, 0, stream),
		    LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuMemPrefetchBatchAsync(ranges, bytes, 3, to_card, first_of, 1, 1, stream),
		    LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuMemPrefetchBatchAsync(ranges, bytes, 3, to_card, first_of, 1, 0, NULL),
		    LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuMemDiscardBatchAsync(ranges, bytes, 0, 0, stream), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuMemAlloc(plain, bytes[0]), 0);
	CHECK_EQUAL(cu.cuMemDiscardBatchAsync(plain, bytes, 1, 0, stream), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(used_bytes() - before, 160 * MIB);
}

TEST_IN_WORLD(NULL, there_may_be_more_managed_memory_than_the_card_has)
{
	open_context(0);
	ll_cu_deviceptr a = allocate(200 * GIB), plain;
	CHECK_EQUAL(cu.cuMemPrefetchAsync_v1(a, MIB, 0, NULL), 0);
	CHECK(143155 * MIB - used_bytes() < 2 * MIB);
	CHECK_EQUAL(cu.cuMemAlloc(&plain, 2 * MIB), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(cu.cuMemFree(a), 0);
	CHECK_EQUAL(cu.cuMemAlloc(&plain, 100 * GIB), 0);
}

TEST_IN_WORLD(NULL, what_is_not_managed_cannot_be_prefetched)
{
	ll_cu_deviceptr a, plain;
	open_context(0);
	CHECK_EQUAL(cu.cuMemAllocManaged(&a, 0, LL_CU_MEM_ATTACH_GLOBAL), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuMemAllocManaged(&a, 100, 0), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuMemAllocManaged(&a, 100, 3), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuMemAllocManaged(&a, 100, LL_CU_MEM_ATTACH_SINGLE), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuMemAlloc(&plain, MIB), 0);
	CHECK_EQUAL(cu.cuMemPrefetchAsync_v1(plain, 4096, 0, NULL), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuMemAdvise_v1(plain, 4096, LL_CU_MEM_ADVISE_SET_READ_MOSTLY, 0), LL_CUDA_ERROR_INVALID_VALUE);
}

TEST_IN_WORLD(NULL, an_address_says_what_it_is)
{
	struct ll_cu_mem_allocation_prop prop = on_card_0();
	struct ll_cu_context *context = open_context(0);
	ll_cu_deviceptr mapped, pooled, managed = allocate(MIB);
	ll_cu_mem_handle handle;
	unsigned type, is_managed;
	struct ll_cu_context *of;
	size_t range, mapping;
	enum ll_cu_pointer_attribute wanted[] = {
	    LL_CU_POINTER_ATTRIBUTE_MEMORY_TYPE, LL_CU_POINTER_ATTRIBUTE_IS_MANAGED,   LL_CU_POINTER_ATTRIBUTE_CONTEXT,
	    LL_CU_POINTER_ATTRIBUTE_RANGE_SIZE,  LL_CU_POINTER_ATTRIBUTE_MAPPING_SIZE,
	};
	void *values[] = {&type, &is_managed, &of, &range, &mapping};
	CHECK_EQUAL(cu.cuPointerGetAttributes(5, wanted, values, managed), 0);
	CHECK(type == LL_CU_MEMORYTYPE_DEVICE && is_managed == 1 && of == context && range == MIB && mapping == MIB);
	CHECK_EQUAL(cu.cuMemAllocAsync(&pooled, 1000, NULL), 0);
	CHECK_EQUAL(cu.cuPointerGetAttributes(5, wanted, values, pooled), 0);
	CHECK(type == LL_CU_MEMORYTYPE_DEVICE && !is_managed && !of && range == 1000 && mapping == 32 * MIB);
	CHECK_EQUAL(cu.cuMemCreate(&handle, 4 * MIB, &prop, 0), 0);
	CHECK_EQUAL(cu.cuMemAddressReserve(&mapped, 8 * MIB, 0, 0, 0), 0);
	map_at(mapped, 4 * MIB, handle);
	CHECK_EQUAL(cu.cuPointerGetAttributes(5, wanted, values, mapped), 0);
	CHECK(type == LL_CU_MEMORYTYPE_DEVICE && !is_managed && !of && range == 8 * MIB && mapping == 4 * MIB);
	/* What is no memory of the card is an error for one attribute, and an answer for several. */
	CHECK_EQUAL(cu.cuPointerGetAttribute(&type, LL_CU_POINTER_ATTRIBUTE_MEMORY_TYPE, mapped + 6 * MIB),
		    LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuPointerGetAttributes(5, wanted, values, mapped + 6 * MIB), 0);
	CHECK(!type && !is_managed && !of && !range && !mapping);
}

TEST_IN_WORLD(NULL, functions_of_32_bits_fail_as_on_a_card_of_today)
{
	struct ll_cu_context *context;
	unsigned small = 0, other = 0;
	unsigned long long id, next_id;
	open_context(0);
	CHECK_EQUAL(cu.cuDeviceTotalMem_v1(&small, 0), 0);
	CHECK_EQUAL(small, UINT32_MAX);
	CHECK_EQUAL(cu.cuMemAlloc_v1(&small, 4096), LL_CUDA_ERROR_INVALID_CONTEXT);
	CHECK_EQUAL(cu.cuMemGetInfo_v1(&small, &other), LL_CUDA_ERROR_INVALID_CONTEXT);
	CHECK_EQUAL(cu.cuCtxCreate_v1(&context, 0, 0), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(cu.cuGLCtxCreate_v1(&context, 0, 0), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(cu.cuVDPAUCtxCreate_v1(&context, 0, 0, 1, NULL), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(cu.cuCtxGetId(NULL, &id), 0);
	CHECK_EQUAL(cu.cuCtxCreate_v3(&context, NULL, 0, 0, 0), 0);
	CHECK_EQUAL(cu.cuCtxGetId(context, &next_id), 0);
	CHECK_EQUAL(next_id, id + 1);
	CHECK_EQUAL(cu.cuCtxDestroy_v1(context), 0);
	CHECK_EQUAL(cu.cuDevicePrimaryCtxRetain(&context, 0), 0);
	CHECK_EQUAL(cu.cuDevicePrimaryCtxRelease_v1(0), 0);
	CHECK_EQUAL(cu.cuDevicePrimaryCtxRelease_v1(0), LL_CUDA_ERROR_INVALID_CONTEXT);
}
