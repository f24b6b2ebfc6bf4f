/*
 * Managed memory: allocated, prefetched, advised about.
 */
#include "cuda/local/managed.h"
#include "cuda/enter.h"
#include "cuda/local/allocations.h"
#include "cuda/local/arena.h"
#include "cuda/local/capture.h"
#include "cuda/local/current.h"
#include "cuda/local/stream.h"

ll_cu_result cuMemAllocManaged(ll_cu_deviceptr *ret_address, size_t bytes, unsigned int flags)
{
	SIM_ENTER();
	if (!ret_address || !bytes || (flags != LL_CU_MEM_ATTACH_GLOBAL && flags != LL_CU_MEM_ATTACH_HOST))
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	struct ll_cu_context *context;
	ll_cu_result status = sim_current(&context);
	if (status == LL_CUDA_SUCCESS) {
		struct sim_memory memory = {
		    .bytes = bytes,
		    .kind = SIM_MEMORY_DEVICE,
		    .origin = SIM_ORIGIN_MANAGED,
		    .flags = flags,
		    .context = context,
		    .card = context->card,
		    .whole_bytes = bytes,
		};
		if (sim_arena_new(bytes, &memory.offset) == 0)
			memory.bytes_at = sim_arena_map(memory.offset, bytes, NULL);
		memory.address = memory.whole_address = (uintptr_t)memory.bytes_at;
		if (!memory.bytes_at || sim_memory_insert(&memory) < 0)
			status = LL_CUDA_ERROR_OUT_OF_MEMORY;
		else
			*ret_address = memory.address;
	}
	sim_cuda_unlock();
	return status;
}

/* Acts at once, not when the stream gets there. */
static ll_cu_result prefetch_memory(uint64_t address, size_t bytes, bool to_card, struct ll_cu_stream *handle)
{
	struct ll_cu_stream *stream;
	sim_cuda_lock();
	ll_cu_result status = sim_stream_for_work(handle, &stream);
	struct sim_memory *memory = bytes ? sim_managed_find(address, bytes) : NULL;
	if (!status && !memory)
		status = LL_CUDA_ERROR_INVALID_VALUE;
	if (!status && stream->capture)
		status = sim_capture_refuse(stream);
	else if (!status && to_card)
		sim_managed_touch(address);
	else if (!status)
		sim_managed_leave_card(memory);
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuMemPrefetchAsync(ll_cu_deviceptr address, size_t bytes, ll_cu_device device, struct ll_cu_stream *stream)
{
	SIM_ENTER();
	if (device != LL_CU_DEVICE_CPU && (device < 0 || device >= sim_cuda.device_count))
		return LL_CUDA_ERROR_INVALID_DEVICE;
	return prefetch_memory(address, bytes, device != LL_CU_DEVICE_CPU, stream);
}

static ll_cu_result check_location(struct ll_cu_mem_location location)
{
	if (location.type == LL_CU_MEM_LOCATION_TYPE_DEVICE &&
	    (location.id < 0 || location.id >= sim_cuda.device_count))
		return LL_CUDA_ERROR_INVALID_DEVICE;
	bool is_known = location.type >= LL_CU_MEM_LOCATION_TYPE_DEVICE &&
			location.type <= LL_CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
	return is_known ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_INVALID_VALUE;
}

ll_cu_result cuMemPrefetchAsync_v2(ll_cu_deviceptr address, size_t bytes, struct ll_cu_mem_location location,
				   unsigned int flags, struct ll_cu_stream *stream)
{
	SIM_ENTER();
	ll_cu_result status = flags ? LL_CUDA_ERROR_INVALID_VALUE : check_location(location);
	return status ? status
		      : prefetch_memory(address, bytes, location.type == LL_CU_MEM_LOCATION_TYPE_DEVICE, stream);
}

/* Advice is taken and changes nothing. */
static ll_cu_result advise_memory(uint64_t address, size_t bytes, enum ll_cu_mem_advise advice)
{
	if (advice < LL_CU_MEM_ADVISE_SET_READ_MOSTLY || advice > LL_CU_MEM_ADVISE_UNSET_ACCESSED_BY)
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	bool is_managed = bytes && sim_managed_find(address, bytes);
	sim_cuda_unlock();
	return is_managed ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_INVALID_VALUE;
}

ll_cu_result cuMemAdvise(ll_cu_deviceptr address, size_t bytes, enum ll_cu_mem_advise advice, ll_cu_device device)
{
	SIM_ENTER();
	if (device != LL_CU_DEVICE_CPU && (device < 0 || device >= sim_cuda.device_count))
		return LL_CUDA_ERROR_INVALID_DEVICE;
	return advise_memory(address, bytes, advice);
}

ll_cu_result cuMemAdvise_v2(ll_cu_deviceptr address, size_t bytes, enum ll_cu_mem_advise advice,
			    struct ll_cu_mem_location location)
{
	SIM_ENTER();
	ll_cu_result status = check_location(location);
	return status ? status : advise_memory(address, bytes, advice);
}
