/*
 * Device memory and host memory that the card can reach.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cuda_graph.h"
#include "engine.h"
#include "population.h"

ll_cu_result cuMemGetInfo_v2(size_t *ret_free_bytes, size_t *ret_total_bytes)
{
	SIM_ENTER();
	if (!ret_free_bytes || !ret_total_bytes)
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	struct ll_cu_context *context;
	ll_cu_result status = sim_current(&context);
	if (status == LL_CUDA_SUCCESS) {
		struct sim_world *w = sim_cuda.world;
		sim_lock(w);
		uint64_t used = sim_card_used_bytes(w, context->card), total = w->cards[context->card].memory_bytes;
		sim_unlock(w);
		*ret_free_bytes = used < total ? total - used : 0;
		*ret_total_bytes = total;
	}
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuMemAlloc_v2(ll_cu_deviceptr *ret_address, size_t bytes)
{
	SIM_ENTER();
	if (!ret_address || !bytes)
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	struct ll_cu_context *context;
	struct sim_memory memory;
	ll_cu_result status = sim_current(&context);
	if (status == LL_CUDA_SUCCESS)
		status = sim_memory_new(context, bytes, false, &memory);
	if (status == LL_CUDA_SUCCESS)
		*ret_address = memory.address;
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuMemAllocPitch_v2(ll_cu_deviceptr *ret_address, size_t *ret_pitch_bytes, size_t width_bytes,
				size_t height, unsigned int element_bytes)
{
	SIM_ENTER();
	if (!ret_pitch_bytes || (element_bytes != 4 && element_bytes != 8 && element_bytes != 16))
		return LL_CUDA_ERROR_INVALID_VALUE;
	size_t pitch = (width_bytes + 511) / 512 * 512, bytes;
	if (__builtin_mul_overflow(pitch, height, &bytes))
		return LL_CUDA_ERROR_INVALID_VALUE;
	ll_cu_result status = cuMemAlloc_v2(ret_address, bytes);
	if (status == LL_CUDA_SUCCESS)
		*ret_pitch_bytes = pitch;
	return status;
}

/* Freeing waits for the context's work, as the real one does, so that nothing writes to what is gone. */
ll_cu_result cuMemFree_v2(ll_cu_deviceptr address)
{
	SIM_ENTER();
	if (!address)
		return LL_CUDA_SUCCESS;
	sim_cuda_lock();
	struct ll_cu_context *context;
	ll_cu_result status = sim_current(&context);
	if (status == LL_CUDA_SUCCESS) {
		const struct sim_memory *memory = sim_memory_find(address);
		if (!memory || memory->address != address || memory->kind != SIM_MEMORY_DEVICE || memory->is_global)
			status = LL_CUDA_ERROR_INVALID_VALUE;
		else
			status = sim_wait_context(memory->context);
		memory = sim_memory_find(address);
		if (status == LL_CUDA_SUCCESS && memory && memory->graph)
			sim_graph_memory_release(memory->graph);
		else if (status == LL_CUDA_SUCCESS && memory)
			sim_memory_free(memory);
	}
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuMemGetAddressRange_v2(ll_cu_deviceptr *ret_base, size_t *ret_bytes, ll_cu_deviceptr address)
{
	SIM_ENTER();
	sim_cuda_lock();
	struct ll_cu_context *context;
	ll_cu_result status = sim_current(&context);
	const struct sim_memory *memory = status ? NULL : sim_memory_find(address);
	if (!status && (!memory || memory->kind != SIM_MEMORY_DEVICE))
		status = LL_CUDA_ERROR_NOT_FOUND;
	if (!status && ret_base)
		*ret_base = memory->address;
	if (!status && ret_bytes)
		*ret_bytes = memory->bytes;
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuMemHostAlloc(void **ret_pointer, size_t bytes, unsigned int flags)
{
	SIM_ENTER();
	if (!ret_pointer || !bytes || flags > 7)
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	struct ll_cu_context *context;
	ll_cu_result status = sim_current(&context);
	if (status == LL_CUDA_SUCCESS) {
		size_t page = (size_t)sysconf(_SC_PAGESIZE);
		void *p = mmap(NULL, (bytes + page - 1) / page * page, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		struct sim_memory memory = {
		    .address = (uintptr_t)p,
		    .bytes = bytes,
		    .bytes_at = p,
		    .kind = SIM_MEMORY_HOST,
		    .flags = flags,
		    .context = context,
		};
		if (p == MAP_FAILED || sim_memory_insert(&memory) < 0)
			status = LL_CUDA_ERROR_OUT_OF_MEMORY;
		else
			*ret_pointer = p;
	}
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuMemAllocHost_v2(void **ret_pointer, size_t bytes)
{
	return cuMemHostAlloc(ret_pointer, bytes, 0);
}

ll_cu_result cuMemFreeHost(void *pointer)
{
	SIM_ENTER();
	sim_cuda_lock();
	struct ll_cu_context *context;
	ll_cu_result status = sim_current(&context);
	if (status == LL_CUDA_SUCCESS) {
		const struct sim_memory *memory = sim_memory_find((uintptr_t)pointer);
		if (!memory || memory->bytes_at != pointer || memory->kind != SIM_MEMORY_HOST)
			status = LL_CUDA_ERROR_INVALID_VALUE;
		else
			status = sim_wait_context(memory->context);
		memory = sim_memory_find((uintptr_t)pointer);
		if (status == LL_CUDA_SUCCESS && memory)
			sim_memory_free(memory);
	}
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned int flags)
{
	SIM_ENTER();
	if (!pointer || !bytes || flags > 15)
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	struct ll_cu_context *context;
	ll_cu_result status = sim_current(&context);
	if (status == LL_CUDA_SUCCESS) {
		struct sim_memory memory = {
		    .address = (uintptr_t)pointer,
		    .bytes = bytes,
		    .bytes_at = pointer,
		    .kind = SIM_MEMORY_REGISTERED,
		    .flags = flags,
		    .context = context,
		};
		if (sim_memory_find((uintptr_t)pointer) || sim_memory_find((uintptr_t)pointer + bytes - 1))
			status = LL_CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
		else if (sim_memory_insert(&memory) < 0)
			status = LL_CUDA_ERROR_OUT_OF_MEMORY;
	}
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuMemHostUnregister(void *pointer)
{
	SIM_ENTER();
	sim_cuda_lock();
	struct ll_cu_context *context;
	ll_cu_result status = sim_current(&context);
	if (status == LL_CUDA_SUCCESS) {
		const struct sim_memory *memory = sim_memory_find((uintptr_t)pointer);
		if (!memory || memory->bytes_at != pointer || memory->kind != SIM_MEMORY_REGISTERED)
			status = LL_CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
		else
			status = sim_wait_context(memory->context);
		memory = sim_memory_find((uintptr_t)pointer);
		if (status == LL_CUDA_SUCCESS && memory)
			sim_memory_remove(memory);
	}
	sim_cuda_unlock();
	return status;
}

static ll_cu_result find_host(void *pointer, struct sim_memory *ret_memory)
{
	struct ll_cu_context *context;
	ll_cu_result status = sim_current(&context);
	if (status)
		return status;
	const struct sim_memory *memory = sim_memory_find((uintptr_t)pointer);
	if (!memory || memory->kind == SIM_MEMORY_DEVICE)
		return LL_CUDA_ERROR_INVALID_VALUE;
	*ret_memory = *memory;
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuMemHostGetDevicePointer_v2(ll_cu_deviceptr *ret_address, void *pointer, unsigned int flags)
{
	SIM_ENTER();
	if (!ret_address || flags)
		return LL_CUDA_ERROR_INVALID_VALUE;
	struct sim_memory memory;
	sim_cuda_lock();
	ll_cu_result status = find_host(pointer, &memory);
	sim_cuda_unlock();
	if (status == LL_CUDA_SUCCESS)
		*ret_address = (uintptr_t)pointer; /* one address space */
	return status;
}

ll_cu_result cuMemHostGetFlags(unsigned int *ret_flags, void *pointer)
{
	SIM_ENTER();
	if (!ret_flags)
		return LL_CUDA_ERROR_INVALID_VALUE;
	struct sim_memory memory;
	sim_cuda_lock();
	ll_cu_result status = find_host(pointer, &memory);
	sim_cuda_unlock();
	if (status == LL_CUDA_SUCCESS)
		*ret_flags = memory.flags | LL_CU_MEMHOSTALLOC_DEVICEMAP;
	return status;
}

static ll_cu_result get_attribute(void *ret_value, enum ll_cu_pointer_attribute attribute,
				  const struct sim_memory *memory, ll_cu_deviceptr address)
{
	bool is_device = memory->kind == SIM_MEMORY_DEVICE;
	switch (attribute) {
	case LL_CU_POINTER_ATTRIBUTE_CONTEXT:
		*(struct ll_cu_context **)ret_value = memory->context;
		return LL_CUDA_SUCCESS;
	case LL_CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(unsigned *)ret_value = is_device ? LL_CU_MEMORYTYPE_DEVICE : LL_CU_MEMORYTYPE_HOST;
		return LL_CUDA_SUCCESS;
	case LL_CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		*(ll_cu_deviceptr *)ret_value = address;
		return LL_CUDA_SUCCESS;
	case LL_CU_POINTER_ATTRIBUTE_HOST_POINTER:
		if (is_device)
			return LL_CUDA_ERROR_INVALID_VALUE;
		*(void **)ret_value = (void *)(uintptr_t)address;
		return LL_CUDA_SUCCESS;
	case LL_CU_POINTER_ATTRIBUTE_IS_MANAGED:
		*(unsigned *)ret_value = 0;
		return LL_CUDA_SUCCESS;
	case LL_CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)ret_value = memory->context->device;
		return LL_CUDA_SUCCESS;
	case LL_CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		*(ll_cu_deviceptr *)ret_value = memory->address;
		return LL_CUDA_SUCCESS;
	case LL_CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		*(size_t *)ret_value = memory->bytes;
		return LL_CUDA_SUCCESS;
	default:
		return LL_CUDA_ERROR_NOT_SUPPORTED;
	}
}

ll_cu_result cuPointerGetAttribute(void *ret_value, enum ll_cu_pointer_attribute attribute, ll_cu_deviceptr address)
{
	SIM_ENTER();
	if (!ret_value)
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	const struct sim_memory *memory = sim_memory_find(address);
	ll_cu_result status =
	    memory ? get_attribute(ret_value, attribute, memory, address) : LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_unlock();
	return status;
}
