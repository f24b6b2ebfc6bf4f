/* Addresses and physical memory apart: what is charged when, what is refused how, and that the bytes are there. */
#include "memory.h"

TEST_IN_WORLD(NULL, physical_memory_goes_back_with_its_last_reference)
{
	struct ll_cu_mem_allocation_prop prop = on_card_0(), same;
	ll_cu_mem_handle handle, again;
	ll_cu_deviceptr base;
	open_context(0);
	uint64_t before = used_bytes();
	CHECK_EQUAL(cu.cuMemCreate(&handle, MIB, &prop, 0), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuMemCreate(&handle, 0, &prop, 0), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuMemCreate(&handle, 4 * MIB, &prop, 0), 0);
	CHECK_EQUAL(used_bytes() - before, 4 * MIB);
	CHECK_EQUAL(cu.cuMemGetAllocationPropertiesFromHandle(&same, handle), 0);
	CHECK(memcmp(&same, &prop, sizeof prop) == 0);
	CHECK_EQUAL(cu.cuMemAddressReserve(&base, MIB, 0, 0, 0), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuMemAddressReserve(&base, 8 * MIB, 0, 0, 0), 0);
	CHECK_EQUAL(base % (2 * MIB), 0);
	CHECK_EQUAL(used_bytes() - before, 4 * MIB);
	CHECK_EQUAL(cu.cuMemMap(base, 2 * MIB, 0, handle, 0), LL_CUDA_ERROR_NOT_SUPPORTED);
	CHECK_EQUAL(cu.cuMemMap(base + 6 * MIB, 4 * MIB, 0, handle, 0), LL_CUDA_ERROR_INVALID_VALUE);
	map_at(base, 4 * MIB, handle);
	CHECK_EQUAL(cu.cuMemMap(base, 4 * MIB, 0, handle, 0), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(base + 4096)), 0);
	CHECK_EQUAL(again, handle);
	CHECK_EQUAL(cu.cuMemRelease(handle), 0);
	CHECK_EQUAL(cu.cuMemRelease(again), 0);
	CHECK_EQUAL(cu.cuMemRelease(handle), LL_CUDA_ERROR_INVALID_VALUE);
	/* The mapping is the last reference. */
	CHECK_EQUAL(used_bytes() - before, 4 * MIB);
	CHECK_EQUAL(cu.cuMemFree(base), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuMemAddressFree(base, 8 * MIB), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuMemUnmap(base, 2 * MIB), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuMemUnmap(base, 8 * MIB), 0);
	CHECK_EQUAL(used_bytes(), before);
	CHECK_EQUAL(cu.cuMemUnmap(base, 4 * MIB), 0);
	CHECK_EQUAL(cu.cuMemAddressFree(base, 4 * MIB), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuMemAddressFree(base, 8 * MIB), 0);
	CHECK_EQUAL(cu.cuMemUnmap(base, 4 * MIB), LL_CUDA_ERROR_INVALID_VALUE);
}

TEST_IN_WORLD(NULL, copies_work_across_mappings_and_bytes_stay_with_physical_memory)
{
	enum { PIECES = 3 };
	struct ll_cu_mem_allocation_prop prop = on_card_0();
	ll_cu_mem_handle handles[PIECES];
	ll_cu_deviceptr base, second;
	open_context(0);
	unsigned char *host = malloc(6 * MIB);
	CHECK_EQUAL(cu.cuMemAddressReserve(&base, 6 * MIB, 0, 0, 0), 0);
	for (int i = 0; i < PIECES; i++) {
		CHECK_EQUAL(cu.cuMemCreate(&handles[i], 2 * MIB, &prop, 0), 0);
		CHECK_EQUAL(cu.cuMemMap(base + (uint64_t)i * 2 * MIB, 2 * MIB, 0, handles[i], 0), 0);
	}
	/* Mapped is not yet usable. */
	CHECK_EQUAL(cu.cuMemsetD8(base, 1, 16), LL_CUDA_ERROR_INVALID_VALUE);
	struct ll_cu_mem_access_desc access = {{LL_CU_MEM_LOCATION_TYPE_DEVICE, 0},
					       LL_CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	unsigned long long flags;
	CHECK_EQUAL(cu.cuMemSetAccess(base, 8 * MIB, &access, 1), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuMemSetAccess(base, 6 * MIB, &access, 1), 0);
	CHECK_EQUAL(cu.cuMemGetAccess(&flags, &access.location, base + 5 * MIB), 0);
	CHECK_EQUAL(flags, LL_CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	/* One memset and one copy across all pieces. */
	CHECK_EQUAL(cu.cuMemsetD8(base, 7, 6 * MIB), 0);
	CHECK_EQUAL(cu.cuMemsetD8(base + 2 * MIB - 1, 9, 2), 0);
	CHECK_EQUAL(cu.cuMemcpyDtoH(host, base, 6 * MIB), 0);
	CHECK_EQUAL(host[2 * MIB - 2], 7);
	CHECK_EQUAL(host[2 * MIB - 1], 9);
	CHECK_EQUAL(host[2 * MIB], 9);
	CHECK_EQUAL(host[6 * MIB - 1], 7);
	/* The same memory at a second address; and after moving, what it held. */
	CHECK_EQUAL(cu.cuMemAddressReserve(&second, 2 * MIB, 0, 0, 0), 0);
	map_at(second, 2 * MIB, handles[1]);
	CHECK_EQUAL(cu.cuMemsetD8(second + 5, 11, 1), 0);
	CHECK_EQUAL(cu.cuMemcpyDtoH(host, base + 2 * MIB, 16), 0);
	CHECK_EQUAL(host[0], 9);
	CHECK_EQUAL(host[5], 11);
	CHECK_EQUAL(cu.cuMemUnmap(base + 2 * MIB, 2 * MIB), 0);
	CHECK_EQUAL(cu.cuMemcpyDtoH(host, base, 4 * MIB), LL_CUDA_ERROR_INVALID_VALUE);
	map_at(base + 2 * MIB, 2 * MIB, handles[1]);
	CHECK_EQUAL(cu.cuMemcpyDtoH(host, base + 2 * MIB, 16), 0);
	CHECK_EQUAL(host[5], 11);
	free(host);
}

TEST_IN_WORLD(NULL, a_full_card_refuses_to_the_last_byte)
{
	struct ll_cu_mem_allocation_prop prop = on_card_0();
	ll_cu_mem_handle all, more = 17;
	ll_cu_deviceptr address;
	open_context(0);
	uint64_t before = used_bytes(), room = (143155 * MIB - before) / (2 * MIB) * 2 * MIB;
	CHECK_EQUAL(cu.cuMemCreate(&more, room + 2 * MIB, &prop, 0), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(more, 17);
	CHECK_EQUAL(cu.cuMemCreate(&all, room, &prop, 0), 0);
	CHECK_EQUAL(cu.cuMemCreate(&more, 2 * MIB, &prop, 0), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(cu.cuMemAlloc(&address, 2 * MIB), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(cu.cuMemRelease(all), 0);
	CHECK_EQUAL(cu.cuMemCreate(&more, 2 * MIB, &prop, 0), 0);
	CHECK_EQUAL(used_bytes() - before, 2 * MIB);
}

static void body_no_context(void)
{
	struct ll_cu_mem_allocation_prop prop = on_card_0();
	ll_cu_mem_handle handle;
	size_t granularity;
	int value;
	open_cuda();
	CHECK_EQUAL(cu.cuInit(0), 0);
	uint64_t before = nvml_used_bytes();
	CHECK_EQUAL(cu.cuMemGetAllocationGranularity(&granularity, &prop, LL_CU_MEM_ALLOC_GRANULARITY_MINIMUM), 0);
	CHECK_EQUAL(granularity, 2 * MIB);
	CHECK_EQUAL(cu.cuDeviceGetAttribute(&value, LL_CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0), 0);
	CHECK_EQUAL(value, 1);
	CHECK_EQUAL(cu.cuMemCreate(&handle, 2 * MIB, &prop, 0), 0);
	CHECK_EQUAL(nvml_used_bytes() - before, 2 * MIB);
	CHECK_EQUAL(cu.cuMemCreate(&handle, 2 * MIB, &prop, 0), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(cu.cuMemCreate(&handle, 2 * MIB, &prop, 0), 0);
	prop.location.id = 1;
	CHECK_EQUAL(cu.cuMemCreate(&handle, 2 * MIB, &prop, 0), LL_CUDA_ERROR_INVALID_DEVICE);
}

TEST(physical_memory_needs_no_context_and_faults_reach_it)
{
	in_world("fail cuMemCreate CUDA_ERROR_OUT_OF_MEMORY after 1 count 1", body_no_context);
}

TEST_IN_WORLD(NULL, mapped_memory_outlives_a_context)
{
	struct ll_cu_mem_allocation_prop prop = on_card_0();
	ll_cu_mem_handle handle;
	struct ll_cu_context *context = open_context(0);
	ll_cu_deviceptr address;
	uint32_t word = 5, back = 0;
	CHECK_EQUAL(cu.cuMemCreate(&handle, 2 * MIB, &prop, 0), 0);
	CHECK_EQUAL(cu.cuMemAddressReserve(&address, 2 * MIB, 0, 0, 0), 0);
	map_at(address, 2 * MIB, handle);
	CHECK_EQUAL(cu.cuMemcpyHtoD(address, &word, 4), 0);
	CHECK_EQUAL(cu.cuCtxDestroy(context), 0);
	CHECK_EQUAL(cu.cuCtxCreate(&context, 0, 0), 0);
	CHECK_EQUAL(cu.cuMemcpyDtoH(&back, address, 4), 0);
	CHECK_EQUAL(back, 5);
}

static void hold_memory(void)
{
	struct ll_cu_mem_allocation_prop prop = on_card_0();
	ll_cu_mem_handle handle;
	open_cuda();
	CHECK_EQUAL(cu.cuInit(0), 0);
	CHECK_EQUAL(cu.cuMemCreate(&handle, 10 * GIB, &prop, 0), 0);
	CHECK(nvml_used_bytes() >= 10 * GIB);
	ready();
	for (;;)
		sleep_ms(1000);
}

TEST_IN_WORLD(NULL, sigkill_frees_physical_memory)
{
	uint64_t before = used_bytes_before();
	spawn_and_kill(hold_memory);
	WAIT_FOR(nvml_used_bytes() == before);
}
