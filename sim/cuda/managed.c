/*
 * Managed memory: allocate, prefetch, advise.
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

/* Moves the memory at once, not when the stream reaches the operation. */
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

/* ---- batches ---- */

struct batch {
	const ll_cu_deviceptr *addresses;
	const size_t *bytes;
	size_t count;
	const struct ll_cu_mem_location *locations; /* locations[i] applies to the ranges from first_of[i] on */
	const size_t *first_of;
	size_t location_count;
};

static bool are_locations(const struct batch *batch)
{
	if (!batch->locations || !batch->first_of || !batch->location_count || batch->location_count > batch->count ||
	    batch->first_of[0] != 0)
		return false;
	for (size_t i = 1; i < batch->location_count; i++) {
		if (batch->first_of[i] <= batch->first_of[i - 1] || batch->first_of[i] >= batch->count)
			return false;
	}
	return true;
}

static ll_cu_result check_batch(const struct batch *batch, unsigned long long flags, const struct ll_cu_stream *stream)
{
	bool is_legacy = stream == LL_CU_STREAM_LEGACY || (!stream && !sim_null_is_per_thread);
	ll_cu_result status = LL_CUDA_SUCCESS;
	if (!batch->addresses || !batch->bytes || !batch->count || flags || is_legacy)
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	for (size_t i = 0; i < batch->count && !status; i++) {
		if (!batch->bytes[i] || !sim_managed_find(batch->addresses[i], batch->bytes[i]))
			status = LL_CUDA_ERROR_INVALID_VALUE;
	}
	sim_cuda_unlock();
	return status;
}

static ll_cu_result prefetch_batch(const struct batch *batch, unsigned long long flags, struct ll_cu_stream *stream)
{
	size_t location = 0;
	ll_cu_result status = are_locations(batch) ? check_batch(batch, flags, stream) : LL_CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < batch->location_count && !status; i++)
		status = check_location(batch->locations[i]);
	for (size_t i = 0; i < batch->count && !status; i++) {
		if (location + 1 < batch->location_count && batch->first_of[location + 1] == i)
			location++;
		bool to_card = batch->locations[location].type == LL_CU_MEM_LOCATION_TYPE_DEVICE;
		status = prefetch_memory(batch->addresses[i], batch->bytes[i], to_card, stream);
	}
	return status;
}

ll_cu_result cuMemPrefetchBatchAsync(ll_cu_deviceptr *addresses, size_t *bytes, size_t count,
				     struct ll_cu_mem_location *locations, size_t *first_of, size_t location_count,
				     unsigned long long flags, struct ll_cu_stream *stream)
{
	SIM_ENTER();
	struct batch batch = {addresses, bytes, count, locations, first_of, location_count};
	return prefetch_batch(&batch, flags, stream);
}

/* Discarded memory keeps its bytes and its place. A program may not rely on either. */
ll_cu_result cuMemDiscardBatchAsync(ll_cu_deviceptr *addresses, size_t *bytes, size_t count, unsigned long long flags,
				    struct ll_cu_stream *stream)
{
	SIM_ENTER();
	struct batch batch = {.addresses = addresses, .bytes = bytes, .count = count};
	return check_batch(&batch, flags, stream);
}

ll_cu_result cuMemDiscardAndPrefetchBatchAsync(ll_cu_deviceptr *addresses, size_t *bytes, size_t count,
					       struct ll_cu_mem_location *locations, size_t *first_of,
					       size_t location_count, unsigned long long flags,
					       struct ll_cu_stream *stream)
{
	SIM_ENTER();
	struct batch batch = {addresses, bytes, count, locations, first_of, location_count};
	return prefetch_batch(&batch, flags, stream);
}

/* This card has no decompression engine. The function returns that before it checks its arguments. */
ll_cu_result cuMemBatchDecompressAsync(struct ll_cu_mem_decompress_params *params, size_t count, unsigned int flags,
				       size_t *ret_failed, struct ll_cu_stream *stream)
{
	SIM_ENTER();
	(void)params, (void)count, (void)flags, (void)ret_failed, (void)stream;
	return LL_CUDA_ERROR_NOT_SUPPORTED;
}

/* ---- advice ---- */

/* Accepts advice, which has no effect. */
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
