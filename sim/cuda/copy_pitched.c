/*
 * Copies of rectangles and blocks, including arrays, and copies between contexts. The bytes are copied row by row, in
 * one operation.
 */
#include "cuda/copy_pitched.h"

#include <stdlib.h>
#include <string.h>

#include "cuda/enter.h"
#include "cuda/local/array.h"
#include "cuda/local/capture.h"
#include "cuda/local/capture_work.h"
#include "cuda/local/copy.h"
#include "cuda/local/current.h"
#include "cuda/local/stream.h"

ll_cu_result sim_copy_block(const struct ll_cu_memcpy3d *copy, struct ll_cu_stream *handle, bool is_async)
{
	struct ll_cu_context *context;
	struct ll_cu_stream *stream;
	sim_cuda_lock();
	ll_cu_result status = sim_current(&context);
	if (!status)
		status = sim_stream_for_work(handle, &stream);
	if (!status)
		status = sim_copy_check(copy);
	if (!status && stream->capture && !is_async) {
		status = sim_capture_refuse(stream);
	} else if (!status && stream->capture) {
		struct ll_cu_graph_node_params params = {.type = LL_CU_GRAPH_NODE_TYPE_MEMCPY,
							 .copy = {.context = stream->context, .copy = *copy}};
		status = sim_capture_work(stream, &params);
	} else if (!status) {
		status = sim_copy_queue(stream, copy, is_async, false);
	}
	sim_cuda_unlock();
	return status;
}

static ll_cu_result copy_rectangle(const struct ll_cu_memcpy2d *copy, struct ll_cu_stream *stream, bool is_async)
{
	if (!copy)
		return LL_CUDA_ERROR_INVALID_VALUE;
	struct ll_cu_memcpy3d block = {
	    .from_x_bytes = copy->from_x_bytes,
	    .from_y = copy->from_y,
	    .from_type = copy->from_type,
	    .from_host = copy->from_host,
	    .from_device = copy->from_device,
	    .from_array = copy->from_array,
	    .from_pitch_bytes = copy->from_pitch_bytes,
	    .to_x_bytes = copy->to_x_bytes,
	    .to_y = copy->to_y,
	    .to_type = copy->to_type,
	    .to_host = copy->to_host,
	    .to_device = copy->to_device,
	    .to_array = copy->to_array,
	    .to_pitch_bytes = copy->to_pitch_bytes,
	    .width_bytes = copy->width_bytes,
	    .height = copy->height,
	    .depth = 1,
	};
	return sim_copy_block(&block, stream, is_async);
}

ll_cu_result cuMemcpy2D_v2(const struct ll_cu_memcpy2d *copy)
{
	SIM_ENTER();
	return copy_rectangle(copy, NULL, false);
}

ll_cu_result cuMemcpy2DUnaligned_v2(const struct ll_cu_memcpy2d *copy)
{
	SIM_ENTER();
	return copy_rectangle(copy, NULL, false);
}

ll_cu_result cuMemcpy2DAsync_v2(const struct ll_cu_memcpy2d *copy, struct ll_cu_stream *stream)
{
	SIM_ENTER();
	return copy_rectangle(copy, stream, true);
}

ll_cu_result cuMemcpy3D_v2(const struct ll_cu_memcpy3d *copy)
{
	SIM_ENTER();
	return copy ? sim_copy_block(copy, NULL, false) : LL_CUDA_ERROR_INVALID_VALUE;
}

ll_cu_result cuMemcpy3DAsync_v2(const struct ll_cu_memcpy3d *copy, struct ll_cu_stream *stream)
{
	SIM_ENTER();
	return copy ? sim_copy_block(copy, stream, true) : LL_CUDA_ERROR_INVALID_VALUE;
}

/* All memory has one address space here, so a peer's memory is accessed like the own one. */
static ll_cu_result copy_peer(ll_cu_deviceptr to, const struct ll_cu_context *to_context, ll_cu_deviceptr from,
			      const struct ll_cu_context *from_context, size_t bytes, struct ll_cu_stream *stream,
			      bool is_async)
{
	struct ll_cu_memcpy3d copy = {
	    .from_type = LL_CU_MEMORYTYPE_DEVICE,
	    .from_device = from,
	    .to_type = LL_CU_MEMORYTYPE_DEVICE,
	    .to_device = to,
	    .width_bytes = bytes,
	    .height = 1,
	    .depth = 1,
	};
	return to_context && from_context ? sim_copy_block(&copy, stream, is_async) : LL_CUDA_ERROR_INVALID_CONTEXT;
}

ll_cu_result cuMemcpyPeer(ll_cu_deviceptr to, struct ll_cu_context *to_context, ll_cu_deviceptr from,
			  struct ll_cu_context *from_context, size_t bytes)
{
	SIM_ENTER();
	return copy_peer(to, to_context, from, from_context, bytes, NULL, false);
}

ll_cu_result cuMemcpyPeerAsync(ll_cu_deviceptr to, struct ll_cu_context *to_context, ll_cu_deviceptr from,
			       struct ll_cu_context *from_context, size_t bytes, struct ll_cu_stream *stream)
{
	SIM_ENTER();
	return copy_peer(to, to_context, from, from_context, bytes, stream, true);
}

/* The two structures differ only in reserved0 and reserved1. */
static ll_cu_result copy_block_peer(const struct ll_cu_memcpy3d_peer *copy, struct ll_cu_stream *stream, bool is_async)
{
	_Static_assert(sizeof(struct ll_cu_memcpy3d_peer) == sizeof(struct ll_cu_memcpy3d), "one layout");
	struct ll_cu_memcpy3d block;
	if (!copy)
		return LL_CUDA_ERROR_INVALID_VALUE;
	memcpy(&block, copy, sizeof block);
	block.reserved0 = NULL;
	block.reserved1 = NULL;
	return sim_copy_block(&block, stream, is_async);
}

ll_cu_result cuMemcpy3DPeer(const struct ll_cu_memcpy3d_peer *copy)
{
	SIM_ENTER();
	return copy_block_peer(copy, NULL, false);
}

ll_cu_result cuMemcpy3DPeerAsync(const struct ll_cu_memcpy3d_peer *copy, struct ll_cu_stream *stream)
{
	SIM_ENTER();
	return copy_block_peer(copy, stream, true);
}
