/*
 * Pools for the program: make, query, set, trim, and choose the pool of cuMemAllocAsync.
 */
#include "cuda/enter.h"
#include "cuda/local/pool.h"
#include "cuda/vmm.h"

/* CUDA 13.0 introduced pools of managed memory. */
static bool is_type(enum ll_cu_mem_allocation_type type)
{
	return type == LL_CU_MEM_ALLOCATION_TYPE_PINNED ||
	       (type == LL_CU_MEM_ALLOCATION_TYPE_MANAGED && sim_cuda.world->cuda_version >= 13000);
}

/* Managed memory need not be on a card. The pool is then kept with the first card. */
static bool pool_device(const struct ll_cu_mem_location *location, bool is_managed, ll_cu_device *ret_device)
{
	if (sim_location_is_device(location, ret_device))
		return true;
	*ret_device = 0;
	return is_managed && location->type != LL_CU_MEM_LOCATION_TYPE_DEVICE;
}

ll_cu_result cuMemPoolCreate(struct ll_cu_mem_pool **ret_pool, const struct ll_cu_mem_pool_props *props)
{
	SIM_ENTER();
	ll_cu_device device;
	if (!ret_pool || !props || props->usage)
		return LL_CUDA_ERROR_INVALID_VALUE;
	bool is_managed = props->type == LL_CU_MEM_ALLOCATION_TYPE_MANAGED;
	if (!is_type(props->type) || (!is_managed && props->location.type > LL_CU_MEM_LOCATION_TYPE_DEVICE) ||
	    (unsigned)props->handle_types > LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return LL_CUDA_ERROR_NOT_SUPPORTED;
	if (!pool_device(&props->location, is_managed, &device))
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	struct ll_cu_mem_pool *pool = sim_pool_new(device);
	if (pool) {
		pool->is_managed = is_managed;
		pool->handle_types = props->handle_types;
		pool->max_bytes = props->max_bytes ? props->max_bytes : SIM_NEVER;
		*ret_pool = pool;
	}
	sim_cuda_unlock();
	return pool ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_OUT_OF_MEMORY;
}

ll_cu_result cuMemPoolDestroy(struct ll_cu_mem_pool *pool)
{
	SIM_ENTER();
	sim_cuda_lock();
	bool can = sim_pool_is_known(pool) && !pool->is_default;
	if (can)
		sim_pool_destroy(pool);
	sim_cuda_unlock();
	return can ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_INVALID_VALUE;
}

ll_cu_result cuMemPoolTrimTo(struct ll_cu_mem_pool *pool, size_t keep_bytes)
{
	SIM_ENTER();
	sim_cuda_lock();
	bool can = sim_pool_is_known(pool);
	if (can)
		sim_pool_trim(pool, keep_bytes);
	sim_cuda_unlock();
	return can ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_INVALID_VALUE;
}

/* Resets a high mark to the present value. No other counter can be set. */
static bool set_attribute(struct ll_cu_mem_pool *pool, enum ll_cu_mem_pool_attribute attribute, const void *value)
{
	switch (attribute) {
	case LL_CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
	case LL_CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
	case LL_CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		pool->reuse[attribute - LL_CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES] = *(const int *)value != 0;
		return true;
	case LL_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		pool->threshold_bytes = *(const uint64_t *)value;
		return true;
	case LL_CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		pool->reserved_high_bytes = pool->reserved_bytes;
		return *(const uint64_t *)value == 0;
	case LL_CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		pool->used_high_bytes = pool->used_bytes;
		return *(const uint64_t *)value == 0;
	default:
		return false;
	}
}

ll_cu_result cuMemPoolSetAttribute(struct ll_cu_mem_pool *pool, enum ll_cu_mem_pool_attribute attribute, void *value)
{
	SIM_ENTER();
	sim_cuda_lock();
	bool is_set = value && sim_pool_is_known(pool) && set_attribute(pool, attribute, value);
	sim_cuda_unlock();
	return is_set ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_INVALID_VALUE;
}

static bool get_attribute(const struct ll_cu_mem_pool *pool, enum ll_cu_mem_pool_attribute attribute, void *ret_value)
{
	uint64_t value;
	switch (attribute) {
	case LL_CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
	case LL_CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
	case LL_CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		*(int *)ret_value = pool->reuse[attribute - LL_CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES];
		return true;
	case LL_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		value = pool->threshold_bytes;
		break;
	case LL_CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
		value = pool->reserved_bytes;
		break;
	case LL_CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		value = pool->reserved_high_bytes;
		break;
	case LL_CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
		value = pool->used_bytes;
		break;
	case LL_CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		value = pool->used_high_bytes;
		break;
	default:
		return false;
	}
	*(uint64_t *)ret_value = value;
	return true;
}

ll_cu_result cuMemPoolGetAttribute(struct ll_cu_mem_pool *pool, enum ll_cu_mem_pool_attribute attribute,
				   void *ret_value)
{
	SIM_ENTER();
	sim_cuda_lock();
	bool is_got = ret_value && sim_pool_is_known(pool) && get_attribute(pool, attribute, ret_value);
	sim_cuda_unlock();
	return is_got ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_INVALID_VALUE;
}

static bool are_peers(ll_cu_device a, ll_cu_device b)
{
	const struct sim_card *cards = sim_cuda.world->cards;
	return a != b && cards[sim_cuda.devices[a]].has_peers && cards[sim_cuda.devices[b]].has_peers;
}

static ll_cu_result set_access(struct ll_cu_mem_pool *pool, const struct ll_cu_mem_access_desc *access)
{
	ll_cu_device device;
	bool is_none = access->flags == LL_CU_MEM_ACCESS_FLAGS_PROT_NONE;
	if (!sim_location_is_device(&access->location, &device) ||
	    (device != pool->device && !are_peers(device, pool->device)))
		return LL_CUDA_ERROR_INVALID_DEVICE;
	if (access->flags != LL_CU_MEM_ACCESS_FLAGS_PROT_READWRITE && (!is_none || device == pool->device))
		return LL_CUDA_ERROR_INVALID_VALUE;
	uint64_t bit = device == pool->device ? 0 : UINT64_C(1) << device;
	pool->peers = is_none ? pool->peers & ~bit : pool->peers | bit;
	return LL_CUDA_SUCCESS;
}

/* The pool's own card always has access. */
ll_cu_result cuMemPoolSetAccess(struct ll_cu_mem_pool *pool, const struct ll_cu_mem_access_desc *accesses, size_t count)
{
	SIM_ENTER();
	sim_cuda_lock();
	ll_cu_result status = sim_pool_is_known(pool) && accesses ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; !status && i < count; i++)
		status = set_access(pool, &accesses[i]);
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuMemPoolGetAccess(enum ll_cu_mem_access_flags *ret_flags, struct ll_cu_mem_pool *pool,
				struct ll_cu_mem_location *location)
{
	SIM_ENTER();
	ll_cu_device device;
	sim_cuda_lock();
	bool can = ret_flags && location && sim_pool_is_known(pool) && sim_location_is_device(location, &device);
	if (can)
		*ret_flags = device == pool->device || pool->peers >> device & 1 ? LL_CU_MEM_ACCESS_FLAGS_PROT_READWRITE
										 : LL_CU_MEM_ACCESS_FLAGS_PROT_NONE;
	sim_cuda_unlock();
	return can ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_INVALID_VALUE;
}

static ll_cu_result get_pool(struct ll_cu_mem_pool **ret_pool, ll_cu_device device,
			     struct ll_cu_mem_pool *(*which)(ll_cu_device))
{
	if (!ret_pool)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (device < 0 || device >= sim_cuda.device_count)
		return LL_CUDA_ERROR_INVALID_DEVICE;
	sim_cuda_lock();
	struct ll_cu_mem_pool *pool = which(device);
	if (pool)
		*ret_pool = pool;
	sim_cuda_unlock();
	return pool ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_OUT_OF_MEMORY;
}

ll_cu_result cuDeviceGetDefaultMemPool(struct ll_cu_mem_pool **ret_pool, ll_cu_device device)
{
	SIM_ENTER();
	return get_pool(ret_pool, device, sim_pool_default);
}

ll_cu_result cuDeviceGetMemPool(struct ll_cu_mem_pool **ret_pool, ll_cu_device device)
{
	SIM_ENTER();
	return get_pool(ret_pool, device, sim_pool_current);
}

ll_cu_result cuDeviceSetMemPool(ll_cu_device device, struct ll_cu_mem_pool *pool)
{
	SIM_ENTER();
	if (device < 0 || device >= sim_cuda.device_count)
		return LL_CUDA_ERROR_INVALID_DEVICE;
	sim_cuda_lock();
	bool can = sim_pool_is_known(pool) && pool->device == device && !pool->is_imported && !pool->is_managed;
	if (can)
		sim_pool_set_current(device, pool);
	sim_cuda_unlock();
	return can ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_INVALID_VALUE;
}

/* From CUDA 13.0 on, a location names the device. Pools of the host are not modelled. */
static ll_cu_result check_location(const struct ll_cu_mem_location *location, enum ll_cu_mem_allocation_type type,
				   ll_cu_device *ret_device)
{
	if (!location)
		return LL_CUDA_ERROR_INVALID_VALUE;
	bool is_managed = type == LL_CU_MEM_ALLOCATION_TYPE_MANAGED;
	if (!is_type(type) || (!is_managed && location->type > LL_CU_MEM_LOCATION_TYPE_DEVICE))
		return LL_CUDA_ERROR_NOT_SUPPORTED;
	return pool_device(location, is_managed, ret_device) ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_INVALID_VALUE;
}

ll_cu_result cuMemGetDefaultMemPool(struct ll_cu_mem_pool **ret_pool, struct ll_cu_mem_location *location,
				    enum ll_cu_mem_allocation_type type)
{
	SIM_ENTER();
	ll_cu_device device;
	ll_cu_result status = check_location(location, type, &device);
	bool is_managed = type == LL_CU_MEM_ALLOCATION_TYPE_MANAGED;
	return status ? status : get_pool(ret_pool, device, is_managed ? sim_pool_default_managed : sim_pool_default);
}

ll_cu_result cuMemGetMemPool(struct ll_cu_mem_pool **ret_pool, struct ll_cu_mem_location *location,
			     enum ll_cu_mem_allocation_type type)
{
	SIM_ENTER();
	ll_cu_device device;
	ll_cu_result status = check_location(location, type, &device);
	bool is_managed = type == LL_CU_MEM_ALLOCATION_TYPE_MANAGED;
	return status ? status : get_pool(ret_pool, device, is_managed ? sim_pool_default_managed : sim_pool_current);
}

ll_cu_result cuMemSetMemPool(struct ll_cu_mem_location *location, enum ll_cu_mem_allocation_type type,
			     struct ll_cu_mem_pool *pool)
{
	SIM_ENTER();
	ll_cu_device device;
	ll_cu_result status = check_location(location, type, &device);
	if (!status && type == LL_CU_MEM_ALLOCATION_TYPE_MANAGED)
		return LL_CUDA_ERROR_NOT_SUPPORTED;
	return status ? status : cuDeviceSetMemPool(device, pool);
}
