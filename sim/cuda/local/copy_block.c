#include "cuda/local/array.h"
#include "cuda/local/copy.h"
#include "cuda/local/managed.h"
#include "cuda/local/pump.h"

#include <stdlib.h>
#include <string.h>

/* One end of a copy: its first byte, and the distances of its rows and layers. */
struct end {
	struct sim_place place;
	size_t pitch, slice;
};

static ll_cu_result find_end(uint64_t base, size_t x, size_t y, size_t z, size_t pitch, size_t height,
			     const struct ll_cu_memcpy3d *copy, bool is_device, struct end *ret_end)
{
	/* If the pitch is not given, the rows are contiguous. */
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

/* Offsets are in bytes from the array's own corner. An array without memory cannot be copied. */
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
	return *ret_base ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_INVALID_VALUE;
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

/* Makes a private copy of the source with contiguous rows. */
static char *stage_source(const struct ll_cu_memcpy3d *copy, const struct end *from)
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
		action.staged = stage_source(copy, &from);
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
