/*
 * Copies of one range. If the card cannot access the host memory of the source, the bytes are staged at the call. If it
 * cannot access that of the target, the call waits. The real driver does the same.
 */
#include <stdlib.h>
#include <string.h>

#include "cuda/enter.h"
#include "cuda/local/capture.h"
#include "cuda/local/capture_work.h"
#include "cuda/local/copy.h"
#include "cuda/local/current.h"
#include "cuda/local/managed.h"
#include "cuda/local/stream.h"

static struct sim_place find_host(const void *pointer, size_t bytes)
{
	return sim_place_any((uintptr_t)pointer, bytes);
}

static ll_cu_result capture_copy(struct ll_cu_stream *stream, struct sim_place to, struct sim_place from, size_t bytes)
{
	struct ll_cu_graph_node_params params = {
	    .type = LL_CU_GRAPH_NODE_TYPE_MEMCPY,
	    .copy.context = stream->context,
	    .copy.copy = {.from_type = LL_CU_MEMORYTYPE_UNIFIED,
			  .from_device = from.address,
			  .from_pitch_bytes = bytes,
			  .to_type = LL_CU_MEMORYTYPE_UNIFIED,
			  .to_device = to.address,
			  .to_pitch_bytes = bytes,
			  .width_bytes = bytes,
			  .height = 1,
			  .depth = 1},
	};
	return sim_capture_work(stream, &params);
}

static ll_cu_result copy_range(struct sim_place to, struct sim_place from, size_t bytes, struct ll_cu_stream *handle,
			       bool is_async)
{
	struct ll_cu_stream *stream;
	struct sim_op op;
	uint64_t position;
	ll_cu_result status = sim_stream_for_work(handle, &stream);
	if (status || !bytes)
		return status;
	if (!to.at || !from.at)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (stream->capture)
		return is_async ? capture_copy(stream, to, from, bytes) : sim_capture_refuse(stream);
	struct sim_action action = {.kind = SIM_ACTION_COPY, .to = to.at, .from = from.at, .bytes = bytes};
	if (is_async && !from.is_reachable) {
		action.staged = malloc(bytes);
		if (!action.staged)
			return LL_CUDA_ERROR_OUT_OF_MEMORY;
		memcpy(action.staged, from.at, bytes);
	}
	sim_managed_touch(to.address);
	sim_managed_touch(from.address);
	sim_copy_describe(&op, stream->context, sim_direction_of(to, from), bytes);
	status = sim_queue(stream, &op, &action, &position);
	if (status == LL_CUDA_SUCCESS && (!is_async || !to.is_reachable))
		status = sim_wait(stream, position);
	return status;
}

static ll_cu_result copy_to_card(ll_cu_deviceptr to, const void *from, size_t bytes, struct ll_cu_stream *stream,
				 bool is_async)
{
	struct sim_place target = {0};
	sim_cuda_lock();
	struct ll_cu_context *context;
	ll_cu_result status = sim_current(&context);
	if (!status && bytes)
		status = sim_place_device(to, bytes, &target);
	if (!status)
		status = copy_range(target, find_host(from, bytes), bytes, stream, is_async);
	sim_cuda_unlock();
	return status;
}

static ll_cu_result copy_from_card(void *to, ll_cu_deviceptr from, size_t bytes, struct ll_cu_stream *stream,
				   bool is_async)
{
	struct sim_place source = {0};
	sim_cuda_lock();
	struct ll_cu_context *context;
	ll_cu_result status = sim_current(&context);
	if (!status && bytes)
		status = sim_place_device(from, bytes, &source);
	if (!status)
		status = copy_range(find_host(to, bytes), source, bytes, stream, is_async);
	sim_cuda_unlock();
	return status;
}

/* Copies between any two addresses. An address that the card does not know counts as host memory. */
static ll_cu_result copy_any(ll_cu_deviceptr to, ll_cu_deviceptr from, size_t bytes, bool must_be_known,
			     struct ll_cu_stream *stream, bool is_async)
{
	sim_cuda_lock();
	struct ll_cu_context *context;
	ll_cu_result status = sim_current(&context);
	struct sim_place target = find_host((void *)(uintptr_t)to, bytes);
	struct sim_place source = find_host((void *)(uintptr_t)from, bytes);
	if (!status && must_be_known && bytes && (!target.is_reachable || !source.is_reachable))
		status = LL_CUDA_ERROR_INVALID_VALUE;
	if (!status)
		status = copy_range(target, source, bytes, stream, is_async);
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuMemcpy(ll_cu_deviceptr to, ll_cu_deviceptr from, size_t bytes)
{
	SIM_ENTER();
	return copy_any(to, from, bytes, false, NULL, false);
}

ll_cu_result cuMemcpyAsync(ll_cu_deviceptr to, ll_cu_deviceptr from, size_t bytes, struct ll_cu_stream *stream)
{
	SIM_ENTER();
	return copy_any(to, from, bytes, false, stream, true);
}

ll_cu_result cuMemcpyHtoD_v2(ll_cu_deviceptr to, const void *from, size_t bytes)
{
	SIM_ENTER();
	return copy_to_card(to, from, bytes, NULL, false);
}

ll_cu_result cuMemcpyHtoDAsync_v2(ll_cu_deviceptr to, const void *from, size_t bytes, struct ll_cu_stream *stream)
{
	SIM_ENTER();
	return copy_to_card(to, from, bytes, stream, true);
}

ll_cu_result cuMemcpyDtoH_v2(void *to, ll_cu_deviceptr from, size_t bytes)
{
	SIM_ENTER();
	return copy_from_card(to, from, bytes, NULL, false);
}

ll_cu_result cuMemcpyDtoHAsync_v2(void *to, ll_cu_deviceptr from, size_t bytes, struct ll_cu_stream *stream)
{
	SIM_ENTER();
	return copy_from_card(to, from, bytes, stream, true);
}

ll_cu_result cuMemcpyDtoD_v2(ll_cu_deviceptr to, ll_cu_deviceptr from, size_t bytes)
{
	SIM_ENTER();
	return copy_any(to, from, bytes, true, NULL, false);
}

ll_cu_result cuMemcpyDtoDAsync_v2(ll_cu_deviceptr to, ll_cu_deviceptr from, size_t bytes, struct ll_cu_stream *stream)
{
	SIM_ENTER();
	return copy_any(to, from, bytes, true, stream, true);
}
