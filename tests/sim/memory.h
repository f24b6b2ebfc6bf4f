/*
 * memory.h - what the tests of device memory share.
 */
#ifndef LOADLINE_TESTS_SIM_MEMORY_H
#define LOADLINE_TESTS_SIM_MEMORY_H

#include <sys/mman.h>

#include "process.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

/* What the card has in use by now, in bytes, as CUDA says; needs a context. */
static inline uint64_t used_bytes(void)
{
	size_t free_bytes, total_bytes;
	CHECK_EQUAL(cu.cuMemGetInfo(&free_bytes, &total_bytes), 0);
	return total_bytes - free_bytes;
}

/* The same as NVML says it, which needs none. */
static inline uint64_t nvml_used_bytes(void)
{
	struct ll_nvml_memory memory;
	struct ll_nvml_device *card = open_card(0);
	CHECK_EQUAL(nv.nvmlDeviceGetMemoryInfo(card, &memory), 0);
	return memory.used_bytes;
}

static uint64_t *told_bytes;

static inline void tell_used_bytes(void)
{
	*told_bytes = nvml_used_bytes();
}

/* The same by a process of its own: NVML has threads, and a sanitizer lets nobody fork who has. */
static inline uint64_t used_bytes_before(void)
{
	told_bytes = mmap(NULL, sizeof *told_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(told_bytes != MAP_FAILED);
	join(spawn(tell_used_bytes));
	return *told_bytes;
}

static inline uint64_t pool_value(struct ll_cu_mem_pool *pool, enum ll_cu_mem_pool_attribute attribute)
{
	uint64_t value = 0;
	CHECK_EQUAL(cu.cuMemPoolGetAttribute(pool, attribute, &value), 0);
	return value;
}

/* Physical memory on card 0, exportable as a file descriptor. */
static inline struct ll_cu_mem_allocation_prop on_card_0(void)
{
	return (struct ll_cu_mem_allocation_prop){
	    .type = LL_CU_MEM_ALLOCATION_TYPE_PINNED,
	    .handle_types = LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
	    .location = {LL_CU_MEM_LOCATION_TYPE_DEVICE, 0},
	};
}

/* Maps physical memory at an address with access. */
static inline void map_at(ll_cu_deviceptr address, size_t bytes, ll_cu_mem_handle handle)
{
	struct ll_cu_mem_access_desc access = {{LL_CU_MEM_LOCATION_TYPE_DEVICE, 0},
					       LL_CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CHECK_EQUAL(cu.cuMemMap(address, bytes, 0, handle, 0), 0);
	CHECK_EQUAL(cu.cuMemSetAccess(address, bytes, &access, 1), 0);
}

#endif
