/*
 * Device memory, and host memory that the card can access.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "card/memory.h"
#include "cuda/enter.h"
#include "cuda/local/allocations.h"
#include "cuda/local/current.h"
#include "cuda/local/graph.h"
#include "cuda/local/graph_memory.h"
#include "cuda/local/pool.h"

ll_cu_result cuMemGetInfo_v2(size_t *ret_free_bytes, size_t *ret_total_bytes)
{
	SIM_ENTER();
	sim_cuda_lock();
	struct ll_cu_context *context;
	ll_cu_result status = sim_current(&context);
	if (status == LL_CUDA_SUCCESS) {
		struct sim_world *w = sim_cuda.world;
		sim_lock(w);
		uint64_t used = sim_card_used_bytes(w, context->card), total = w->cards[context->card].memory_bytes;
		uint64_t room = sim_mps_room_bytes(w, context->card, sim_cuda.proc);
		sim_unlock(w);
		uint64_t free_bytes = used < total ? total - used : 0;
		if (ret_free_bytes)
			*ret_free_bytes = room < free_bytes ? room : free_bytes;
		if (ret_total_bytes) /* the total of the card, for any limit */
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

/* Writes the result that has an address, although the call fails, as the driver does (bench/c/null_outs.txt). */
static ll_cu_result refuse_rows(ll_cu_deviceptr *ret_address, size_t *ret_pitch_bytes)
{
	if (ret_address)
		*ret_address = 0;
	if (ret_pitch_bytes)
		*ret_pitch_bytes = 0;
	return LL_CUDA_ERROR_INVALID_VALUE;
}

ll_cu_result cuMemAllocPitch_v2(ll_cu_deviceptr *ret_address, size_t *ret_pitch_bytes, size_t width_bytes,
				size_t height, unsigned int element_bytes)
{
	SIM_ENTER();
	if (!ret_address || !ret_pitch_bytes)
		return refuse_rows(ret_address, ret_pitch_bytes);
	if (element_bytes != 4 && element_bytes != 8 && element_bytes != 16)
		return LL_CUDA_ERROR_INVALID_VALUE;
	size_t pitch = (width_bytes + 511) / 512 * 512, bytes;
	if (__builtin_mul_overflow(pitch, height, &bytes))
		return LL_CUDA_ERROR_INVALID_VALUE;
	ll_cu_result status = cuMemAlloc_v2(ret_address, bytes);
	if (status == LL_CUDA_SUCCESS)
		*ret_pitch_bytes = pitch;
	return status;
}

static bool can_free(const struct sim_memory *memory)
{
	return memory->kind == SIM_MEMORY_DEVICE &&
	       (memory->origin == SIM_ORIGIN_PLAIN || memory->origin == SIM_ORIGIN_MANAGED ||
		memory->origin == SIM_ORIGIN_POOL || memory->origin == SIM_ORIGIN_GRAPH ||
		memory->origin == SIM_ORIGIN_EXTERNAL);
}

/* Freeing waits for the context's work, as in the real driver, so that nothing writes to freed memory. */
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
		if (!memory || memory->address != address || !can_free(memory))
			status = LL_CUDA_ERROR_INVALID_VALUE;
		else if (memory->context)
			status = sim_wait_context(memory->context);
		else
			sim_wait_card(memory->card);
		memory = sim_memory_find(address);
		if (status == LL_CUDA_SUCCESS && memory && memory->graph)
			status = sim_graph_memory_free(memory->graph);
		else if (status == LL_CUDA_SUCCESS && memory && memory->origin == SIM_ORIGIN_POOL)
			sim_pool_free_now(memory);
		else if (status == LL_CUDA_SUCCESS && memory)
			sim_memory_free(memory);
	}
	sim_cuda_unlock();
	return status;
}

/* The range of mapped physical memory is its reservation. */
static bool is_mapped(const struct sim_memory *memory)
{
	return memory->origin == SIM_ORIGIN_MAPPED;
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
		*ret_base = is_mapped(memory) ? memory->whole_address : memory->address;
	if (!status && ret_bytes)
		*ret_bytes = is_mapped(memory) ? memory->whole_bytes : memory->bytes;
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

/* Waits for the operations that use it, and forgets host memory of that kind. */
static ll_cu_result let_go(void *pointer, enum sim_memory_kind kind, void (*forget)(const struct sim_memory *),
			   ll_cu_result if_unknown)
{
	sim_cuda_lock();
	struct ll_cu_context *context;
	ll_cu_result status = sim_current(&context);
	if (status == LL_CUDA_SUCCESS) {
		const struct sim_memory *memory = sim_memory_find((uintptr_t)pointer);
		if (!memory || memory->bytes_at != pointer || memory->kind != kind)
			status = if_unknown;
		else
			status = sim_wait_context(memory->context);
		memory = sim_memory_find((uintptr_t)pointer);
		if (status == LL_CUDA_SUCCESS && memory)
			forget(memory);
	}
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuMemFreeHost(void *pointer)
{
	SIM_ENTER();
	return let_go(pointer, SIM_MEMORY_HOST, sim_memory_free, LL_CUDA_ERROR_INVALID_VALUE);
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
	return let_go(pointer, SIM_MEMORY_REGISTERED, sim_memory_remove, LL_CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

static ll_cu_result find_host(void *pointer, struct sim_memory *ret_memory)
{
	struct ll_cu_context *context;
	ll_cu_result status = sim_current(&context);
	if (status)
		return status;
	const struct sim_memory *memory = sim_memory_find((uintptr_t)pointer);
	/* The driver accepts mapped memory of the card too, and refuses cuMemAlloc's memory (an H100, driver 580). */
	if (!memory || (memory->kind == SIM_MEMORY_DEVICE && memory->origin != SIM_ORIGIN_MAPPED))
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
		*ret_address = (uintptr_t)pointer; /* there is one address space */
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
