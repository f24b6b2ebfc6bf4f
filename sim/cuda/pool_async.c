/*
 * Allocates and frees memory in the order of a stream.
 */
#include "cuda/enter.h"
#include "cuda/local/allocations.h"
#include "cuda/local/capture_work.h"
#include "cuda/local/graph.h"
#include "cuda/local/pool.h"
#include "cuda/local/queue.h"
#include "cuda/local/stream.h"

/* In a captured stream the allocation is a graph's memory, for any pool. Its addresses are known at once. */
static ll_cu_result capture_allocation(struct ll_cu_stream *stream, const struct ll_cu_mem_pool *pool, size_t bytes,
				       uint64_t *ret_address)
{
	struct ll_cu_graph_node_params params = {
	    .type = LL_CU_GRAPH_NODE_TYPE_MEM_ALLOC,
	    .alloc = {.pool = {.type = LL_CU_MEM_ALLOCATION_TYPE_PINNED,
			       .location = {LL_CU_MEM_LOCATION_TYPE_DEVICE, pool->device}},
		      .bytes = bytes},
	};
	ll_cu_result status = sim_capture_work(stream, &params);
	if (status == LL_CUDA_SUCCESS)
		*ret_address = stream->tail.at[0]->params.alloc.address;
	return status;
}

static ll_cu_result allocate_in_order(ll_cu_deviceptr *ret_address, size_t bytes, struct ll_cu_mem_pool *pool,
				      bool is_current, struct ll_cu_stream *handle)
{
	struct ll_cu_stream *stream;
	sim_cuda_lock();
	ll_cu_result status = sim_stream_for_work(handle, &stream);
	if (!status && is_current)
		pool = sim_pool_current(stream->context->device);
	if (!status && (!sim_pool_is_known(pool) || pool->is_imported))
		status = LL_CUDA_ERROR_INVALID_VALUE;
	uint64_t address = 0;
	if (!status && bytes && stream->capture)
		status = capture_allocation(stream, pool, bytes, &address);
	else if (!status && bytes)
		status = sim_pool_allocate(pool, bytes, stream, &address);
	if (!status)
		*ret_address = address;
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuMemAllocAsync(ll_cu_deviceptr *ret_address, size_t bytes, struct ll_cu_stream *stream)
{
	SIM_ENTER();
	return ret_address ? allocate_in_order(ret_address, bytes, NULL, true, stream) : LL_CUDA_ERROR_INVALID_VALUE;
}

ll_cu_result cuMemAllocFromPoolAsync(ll_cu_deviceptr *ret_address, size_t bytes, struct ll_cu_mem_pool *pool,
				     struct ll_cu_stream *stream)
{
	SIM_ENTER();
	return ret_address ? allocate_in_order(ret_address, bytes, pool, false, stream) : LL_CUDA_ERROR_INVALID_VALUE;
}

ll_cu_result cuMemFreeAsync(ll_cu_deviceptr address, struct ll_cu_stream *handle)
{
	SIM_ENTER();
	struct ll_cu_stream *stream;
	sim_cuda_lock();
	ll_cu_result status = sim_stream_for_work(handle, &stream);
	if (!status && address && stream->capture) {
		struct ll_cu_graph_node_params params = {.type = LL_CU_GRAPH_NODE_TYPE_MEM_FREE, .free = {address}};
		status = sim_capture_work(stream, &params);
	} else if (!status && address) {
		const struct sim_memory *memory = sim_memory_find(address);
		bool can = memory && memory->address == address && memory->kind == SIM_MEMORY_DEVICE &&
			   (memory->origin == SIM_ORIGIN_POOL || memory->origin == SIM_ORIGIN_GRAPH ||
			    memory->origin == SIM_ORIGIN_PLAIN || memory->origin == SIM_ORIGIN_MANAGED ||
			    memory->origin == SIM_ORIGIN_EXTERNAL);
		status = can ? sim_free_queue(stream, address) : LL_CUDA_ERROR_INVALID_VALUE;
	}
	sim_cuda_unlock();
	return status;
}
