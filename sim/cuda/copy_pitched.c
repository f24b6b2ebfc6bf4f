/*
 * Copies of rectangles and blocks, of arrays too, and copies between contexts: the same bytes as row by row, in one
 * operation.
 */
#include <stdlib.h>
#include <string.h>

#include "cuda/array.h"
#include "cuda/capture.h"
#include "cuda/copy.h"

/* One end of a copy: its first byte, and how far its rows and layers are apart. */
struct end {
	struct sim_place place;
	size_t pitch, slice;
};

static ll_cu_result find_end(uint64_t base, size_t x, size_t y, size_t z, size_t pitch, size_t height,
			     const struct ll_cu_memcpy3d *copy, bool is_device, struct end *ret_end)
{
	/* Not given, the rows lie one after the other. */
	if (!pitch)
		pitch = x + copy->width_bytes;
	if (!height)
		height = y + copy->height;
	if (pitch < x + copy->width_bytes || (copy->depth > 1 && height < y + copy->height))
		return LL_CUDA_ERROR_INVALID_VALUE;
	size_t slice, offset, above, bytes;
	if (__builtin_mul_overflow(pitch, height, &slice) || __builtin_mul_overflow(slice, z, &offset) ||
	    __builtin_add_overflow(offset, y * pitch + x, &offset) ||
	    __builtin_mul_overflow(slice, copy->depth - 1, &above) ||
	    __builtin_add_overflow(above, (copy->height - 1) * pitch + copy->width_bytes, &bytes))
		return LL_CUDA_ERROR_INVALID_VALUE;
	ret_end->pitch = pitch;
	ret_end->slice = slice;
	if (is_device)
		return sim_place_device(base + offset, bytes, &ret_end->place);
	ret_end->place = sim_place_any(base + offset, bytes);
	return LL_CUDA_SUCCESS;
}

/* Offsets are in bytes from the array's own corner; what it has no memory for cannot be copied. */
static ll_cu_result find_array_end(struct ll_cu_array *handle, size_t x, size_t y, size_t z,
				   const struct ll_cu_memcpy3d *copy, struct end *ret_end)
{
	const struct ll_cu_array *array = sim_array_of(handle);
	if (!array)
		return LL_CUDA_ERROR_INVALID_HANDLE;
	size_t height = array->shape.height ? array->shape.height : 1,
	       depth = array->shape.depth ? array->shape.depth : 1;
	if (!array->bytes_at || x > array->row_bytes || copy->width_bytes > array->row_bytes - x || y > height ||
	    copy->height > height - y || z > depth || copy->depth > depth - z)
		return LL_CUDA_ERROR_INVALID_VALUE;
	*ret_end = (struct end){
	    .place = {.at = array->bytes_at + z * array->plane_bytes + y * array->row_bytes + x,
		      .is_device = true,
		      .is_reachable = true},
	    .pitch = array->row_bytes,
	    .slice = array->plane_bytes,
	};
	return LL_CUDA_SUCCESS;
}

static ll_cu_result base_of(enum ll_cu_memory_type type, const void *host, ll_cu_deviceptr device, uint64_t *ret_base)
{
	if (type != LL_CU_MEMORYTYPE_HOST && type != LL_CU_MEMORYTYPE_DEVICE && type != LL_CU_MEMORYTYPE_UNIFIED)
		return LL_CUDA_ERROR_INVALID_VALUE;
	*ret_base = type == LL_CU_MEMORYTYPE_HOST ? (uintptr_t)host : device;
	return LL_CUDA_SUCCESS;
}

static bool is_nothing(const struct ll_cu_memcpy3d *copy)
{
	return !copy->width_bytes || !copy->height || !copy->depth;
}

static ll_cu_result find_ends(const struct ll_cu_memcpy3d *c, struct end *ret_to, struct end *ret_from)
{
	uint64_t base;
	ll_cu_result status;
	if (c->to_type == LL_CU_MEMORYTYPE_ARRAY)
		status = find_array_end(c->to_array, c->to_x_bytes, c->to_y, c->to_z, c, ret_to);
	else if (!(status = base_of(c->to_type, c->to_host, c->to_device, &base)))
		status = find_end(base, c->to_x_bytes, c->to_y, c->to_z, c->to_pitch_bytes, c->to_height, c,
				  c->to_type == LL_CU_MEMORYTYPE_DEVICE, ret_to);
	if (status)
		return status;
	if (c->from_type == LL_CU_MEMORYTYPE_ARRAY)
		status = find_array_end(c->from_array, c->from_x_bytes, c->from_y, c->from_z, c, ret_from);
	else if (!(status = base_of(c->from_type, c->from_host, c->from_device, &base)))
		status = find_end(base, c->from_x_bytes, c->from_y, c->from_z, c->from_pitch_bytes, c->from_height, c,
				  c->from_type == LL_CU_MEMORYTYPE_DEVICE, ret_from);
	return status;
}

ll_cu_result sim_copy_check(const struct ll_cu_memcpy3d *copy)
{
	struct end to, from;
	return is_nothing(copy) ? LL_CUDA_SUCCESS : find_ends(copy, &to, &from);
}

/* A private copy of the source, its rows one after the other. */
static char *stage(const struct ll_cu_memcpy3d *copy, const struct end *from)
{
	size_t row = 0;
	char *staged = malloc(copy->width_bytes * copy->height * copy->depth);
	for (size_t z = 0; staged && z < copy->depth; z++) {
		for (size_t y = 0; y < copy->height; y++)
			memcpy(staged + row++ * copy->width_bytes, from->place.at + z * from->slice + y * from->pitch,
			       copy->width_bytes);
	}
	return staged;
}

ll_cu_result sim_copy_queue(struct ll_cu_stream *stream, const struct ll_cu_memcpy3d *copy, bool is_async, bool is_node)
{
	struct end to, from;
	struct sim_op op;
	uint64_t position;
	if (is_nothing(copy))
		return LL_CUDA_SUCCESS;
	ll_cu_result status = find_ends(copy, &to, &from);
	if (status)
		return status;
	struct sim_action action = {
	    .kind = SIM_ACTION_COPY,
	    .to = to.place.at,
	    .from = from.place.at,
	    .bytes = copy->width_bytes,
	    .rows = {copy->height, copy->depth, to.pitch, to.slice, from.pitch, from.slice},
	};
	if (is_async && !is_node && !from.place.is_reachable) {
		action.staged = stage(copy, &from);
		if (!action.staged)
			return LL_CUDA_ERROR_OUT_OF_MEMORY;
		action.rows.from_pitch = copy->width_bytes;
		action.rows.from_slice = copy->width_bytes * copy->height;
	}
	sim_managed_touch(to.place.address);
	sim_managed_touch(from.place.address);
	sim_copy_describe(&op, stream->context, sim_direction_of(to.place, from.place),
			  copy->width_bytes * copy->height * copy->depth);
	status = sim_queue(stream, &op, &action, &position);
	if (!status && !is_node && (!is_async || !to.place.is_reachable))
		status = sim_wait(stream, position);
	return status;
}

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

/* All memory has one address space here, so a peer's is reached like one's own. */
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

/* The two differ in what stands at reserved0 and reserved1. */
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
