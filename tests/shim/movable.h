/*
 * movable.h - what the tests of an evictable program's pools share. Nobody moves it; the memory could be moved
 * all the same.
 */
#ifndef LOADLINE_TESTS_SHIM_MOVABLE_H
#define LOADLINE_TESTS_SHIM_MOVABLE_H

#include "governed.h"

#define RESERVED LL_CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT
#define RESERVED_HIGH LL_CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH
#define USED LL_CU_MEMPOOL_ATTR_USED_MEM_CURRENT
#define USED_HIGH LL_CU_MEMPOOL_ATTR_USED_MEM_HIGH

static inline uint64_t pool_charge(void)
{
	return charged() - CONTEXT_BYTES;
}

static inline struct ll_cu_mem_pool *default_pool(void)
{
	struct ll_cu_mem_pool *pool;
	CHECK_EQUAL(cu.cuDeviceGetDefaultMemPool(&pool, 0), 0);
	return pool;
}

static inline uint64_t value_of(struct ll_cu_mem_pool *pool, enum ll_cu_mem_pool_attribute attribute)
{
	uint64_t value = 0;
	CHECK_EQUAL(cu.cuMemPoolGetAttribute(pool, attribute, &value), 0);
	return value;
}

/* The pool keeps so much of what is freed. */
static inline void keep(struct ll_cu_mem_pool *pool, uint64_t bytes)
{
	CHECK_EQUAL(cu.cuMemPoolSetAttribute(pool, LL_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &bytes), 0);
}

static inline ll_cu_deviceptr allocate(size_t bytes, struct ll_cu_stream *stream)
{
	ll_cu_deviceptr address = 0;
	CHECK_EQUAL(cu.cuMemAllocAsync(&address, bytes, stream), 0);
	CHECK(address != 0);
	return address;
}

static inline void free_in(ll_cu_deviceptr address, struct ll_cu_stream *stream)
{
	CHECK_EQUAL(cu.cuMemFreeAsync(address, stream), 0);
}

/* The stream is busy for an hour. */
static inline void occupy(struct ll_cu_stream *stream)
{
	launch_timed(get_kernel("work_ns"), stream, UINT64_C(3600000000000), 1, 32);
}

static inline struct ll_cu_mem_pool *make_pool(uint64_t max_bytes, enum ll_cu_mem_handle_type types)
{
	struct ll_cu_mem_pool *pool;
	struct ll_cu_mem_pool_props props = {.type = LL_CU_MEM_ALLOCATION_TYPE_PINNED,
					     .handle_types = types,
					     .location = {.type = LL_CU_MEM_LOCATION_TYPE_DEVICE},
					     .max_bytes = max_bytes};
	CHECK_EQUAL(cu.cuMemPoolCreate(&pool, &props), 0);
	return pool;
}

#endif
