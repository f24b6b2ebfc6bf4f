/*
 * Attributes of an address: cuPointerGetAttribute, cuPointerGetAttributes and cuPointerSetAttribute. Results are as
 * measured on an H200 and an H100 (driver 580). Ids and SYNC_MEMOPS are as documented: mapped physical memory has no
 * SYNC_MEMOPS.
 */
#include <string.h>

#include "card/defaults.h"
#include "cuda/enter.h"
#include "cuda/local/allocations.h"
#include "cuda/local/current.h"
#include "cuda/local/pool.h"
#include "cuda/vmm.h"

static bool is_managed_memory(const struct sim_memory *memory)
{
	return memory->origin == SIM_ORIGIN_MANAGED || (memory->pool && memory->pool->is_managed);
}

/* Whether the current context's card may access the memory. It may access pools, managed memory and similar memory. */
static bool has_access(const struct sim_memory *memory)
{
	struct ll_cu_context *context;
	if (sim_current(&context) || context->card == memory->card)
		return !memory->is_blocked;
	if (memory->origin == SIM_ORIGIN_MAPPED)
		return memory->peers >> context->card & 1;
	if (memory->kind != SIM_MEMORY_DEVICE || memory->origin != SIM_ORIGIN_PLAIN || !memory->context)
		return !memory->is_blocked;
	for (unsigned i = 0; i < context->peer_count; i++) {
		if (context->peers[i] == memory->context->id)
			return true;
	}
	return false;
}

/* Sets the attributes that are equal for every address, or for every kind of memory. Returns false for other
 * attributes. */
static bool get_flag(void *ret_value, enum ll_cu_pointer_attribute attribute, const struct sim_memory *memory)
{
	bool is_device = memory->kind == SIM_MEMORY_DEVICE, is_managed = is_managed_memory(memory);
	switch (attribute) {
	case LL_CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(unsigned *)ret_value = is_device ? LL_CU_MEMORYTYPE_DEVICE : LL_CU_MEMORYTYPE_HOST;
		return true;
	case LL_CU_POINTER_ATTRIBUTE_IS_MANAGED:
		*(unsigned *)ret_value = is_device && is_managed;
		return true;
	case LL_CU_POINTER_ATTRIBUTE_MAPPED:
		*(unsigned *)ret_value = 1;
		return true;
	case LL_CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
		*(unsigned *)ret_value = is_device && memory->origin == SIM_ORIGIN_PLAIN;
		return true;
	case LL_CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		*(uint64_t *)ret_value = memory->pool       ? (uint64_t)memory->pool->handle_types
					 : memory->physical ? (uint64_t)memory->physical->prop.handle_types
							    : 0;
		return true;
	case LL_CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
		*(unsigned *)ret_value =
		    is_device && !memory->pool && (!memory->physical || memory->physical->prop.is_rdma_capable);
		return true;
	case LL_CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
		*(unsigned *)ret_value = is_device && !memory->physical && !memory->pool;
		return true;
	case LL_CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		*(unsigned *)ret_value = has_access(memory) ? LL_CU_MEM_ACCESS_FLAGS_PROT_READWRITE : 0;
		return true;
	default:
		return false;
	}
}

static ll_cu_device device_of(const struct sim_memory *memory)
{
	if (memory->context)
		return memory->context->device;
	ll_cu_device device = 0;
	while (device + 1 < sim_cuda.device_count && sim_cuda.devices[device] != memory->card)
		device++;
	return device;
}

/* cuMemAlloc's memory is mapped in blocks of 2 MiB. The model gives each allocation its own blocks. */
static uint64_t mapping_bytes(const struct sim_memory *memory)
{
	if (memory->kind != SIM_MEMORY_DEVICE || memory->origin != SIM_ORIGIN_PLAIN)
		return memory->bytes;
	return (memory->bytes + SIM_GRANULARITY_BYTES - 1) / SIM_GRANULARITY_BYTES * SIM_GRANULARITY_BYTES;
}

static ll_cu_result get_attribute(void *ret_value, enum ll_cu_pointer_attribute attribute,
				  const struct sim_memory *memory, ll_cu_deviceptr address)
{
	bool is_mapped = memory->origin == SIM_ORIGIN_MAPPED;
	bool is_pooled = memory->origin == SIM_ORIGIN_POOL;
	if (get_flag(ret_value, attribute, memory))
		return LL_CUDA_SUCCESS;
	switch (attribute) {
	case LL_CU_POINTER_ATTRIBUTE_CONTEXT:
		*(struct ll_cu_context **)ret_value = memory->context;
		return LL_CUDA_SUCCESS;
	case LL_CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		*(ll_cu_deviceptr *)ret_value = address;
		return LL_CUDA_SUCCESS;
	case LL_CU_POINTER_ATTRIBUTE_HOST_POINTER:
		if (memory->kind == SIM_MEMORY_DEVICE && !is_managed_memory(memory))
			return LL_CUDA_ERROR_INVALID_VALUE;
		*(void **)ret_value = (void *)(uintptr_t)address;
		return LL_CUDA_SUCCESS;
	case LL_CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
		if (is_mapped)
			return LL_CUDA_ERROR_INVALID_VALUE;
		*(unsigned *)ret_value = memory->is_synced;
		return LL_CUDA_SUCCESS;
	case LL_CU_POINTER_ATTRIBUTE_BUFFER_ID:
	case LL_CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		*(uint64_t *)ret_value = memory->id;
		return LL_CUDA_SUCCESS;
	case LL_CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)ret_value = device_of(memory);
		return LL_CUDA_SUCCESS;
	case LL_CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		*(ll_cu_deviceptr *)ret_value = is_mapped ? memory->whole_address : memory->address;
		return LL_CUDA_SUCCESS;
	case LL_CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		*(size_t *)ret_value = is_mapped ? memory->whole_bytes : memory->bytes;
		return LL_CUDA_SUCCESS;
	case LL_CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		*(struct ll_cu_mem_pool **)ret_value = memory->pool;
		return LL_CUDA_SUCCESS;
	case LL_CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
		*(ll_cu_deviceptr *)ret_value = is_pooled ? memory->whole_address : memory->address;
		return LL_CUDA_SUCCESS;
	case LL_CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
		*(size_t *)ret_value = is_pooled ? memory->whole_bytes : mapping_bytes(memory);
		return LL_CUDA_SUCCESS;
	default:
		return LL_CUDA_ERROR_NOT_SUPPORTED;
	}
}

/* Arrays have no addresses. The table contains them so that they are freed with their context. */
static const struct sim_memory *find_addressed(uint64_t address)
{
	const struct sim_memory *memory = sim_memory_find(address);
	return memory && memory->origin != SIM_ORIGIN_ARRAY ? memory : NULL;
}

ll_cu_result cuPointerGetAttribute(void *ret_value, enum ll_cu_pointer_attribute attribute, ll_cu_deviceptr address)
{
	SIM_ENTER();
	if (!ret_value)
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	const struct sim_memory *memory = find_addressed(address);
	ll_cu_result status =
	    memory ? get_attribute(ret_value, attribute, memory, address) : LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_unlock();
	return status;
}

/* Returns the size of the value that cuPointerGetAttributes writes where cuPointerGetAttribute fails. */
static size_t value_bytes(enum ll_cu_pointer_attribute attribute)
{
	switch (attribute) {
	case LL_CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
	case LL_CU_POINTER_ATTRIBUTE_IS_MANAGED:
	case LL_CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
	case LL_CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
	case LL_CU_POINTER_ATTRIBUTE_MAPPED:
	case LL_CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
	case LL_CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
	case LL_CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
	case LL_CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
		return 4;
	default:
		return 8;
	}
}

ll_cu_result cuPointerGetAttributes(unsigned int count, enum ll_cu_pointer_attribute *attributes, void **ret_values,
				    ll_cu_deviceptr address)
{
	SIM_ENTER();
	if (!count || !attributes || !ret_values)
		return LL_CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < count; i++) {
		if (!ret_values[i])
			return LL_CUDA_ERROR_INVALID_VALUE;
	}
	sim_cuda_lock();
	const struct sim_memory *memory = find_addressed(address);
	for (unsigned i = 0; i < count; i++) {
		/* An address that is not memory of the card is not an error here. */
		if (memory && get_attribute(ret_values[i], attributes[i], memory, address) == LL_CUDA_SUCCESS)
			continue;
		bool is_ordinal = attributes[i] == LL_CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL;
		memset(ret_values[i], is_ordinal ? 0xff : 0, value_bytes(attributes[i]));
		if (attributes[i] == LL_CU_POINTER_ATTRIBUTE_HOST_POINTER) /* the driver takes it for a host address */
			*(ll_cu_deviceptr *)ret_values[i] = address;
	}
	sim_cuda_unlock();
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuPointerSetAttribute(const void *value, enum ll_cu_pointer_attribute attribute, ll_cu_deviceptr address)
{
	SIM_ENTER();
	if (!value)
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	struct sim_memory *memory = sim_memory_find(address);
	if (attribute != LL_CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) {
		bool is_mapped = memory && memory->origin == SIM_ORIGIN_MAPPED;
		sim_cuda_unlock();
		return is_mapped ? LL_CUDA_ERROR_NOT_SUPPORTED : LL_CUDA_ERROR_INVALID_VALUE;
	}
	bool can = memory && memory->kind == SIM_MEMORY_DEVICE && memory->origin != SIM_ORIGIN_MAPPED &&
		   memory->origin != SIM_ORIGIN_ARRAY;
	if (can)
		memory->is_synced = *(const unsigned *)value != 0;
	sim_cuda_unlock();
	return can ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_INVALID_VALUE;
}
