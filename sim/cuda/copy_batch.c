/*
 * Copies in batches. Each copy is queued in the stream as a single copy would be, in the given order. If one of them is
 * invalid, none is queued.
 */
#include "cuda/copy_pitched.h"
#include "cuda/enter.h"
#include "cuda/local/array.h"
#include "cuda/local/copy.h"

enum { OVERLAP = 1 };

#define NO_COPY SIZE_MAX

static bool is_order(enum ll_cu_copy_order order)
{
	return order >= LL_CU_MEMCPY_SRC_ACCESS_ORDER_STREAM && order <= LL_CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
}

static bool is_legacy(const struct ll_cu_stream *stream)
{
	return stream == LL_CU_STREAM_LEGACY || (!stream && !sim_null_is_per_thread);
}

/* Attribute i applies to the copies from first_of[i] on. */
static bool are_attributes(const struct ll_cu_copy_attributes *attributes, const size_t *first_of,
			   size_t attribute_count, size_t count)
{
	if (!attributes || !first_of || !attribute_count || attribute_count > count || first_of[0] != 0)
		return false;
	for (size_t i = 0; i < attribute_count; i++) {
		bool is_next = i == 0 || (first_of[i] > first_of[i - 1] && first_of[i] < count);
		if (!is_next || !is_order(attributes[i].order) || attributes[i].flags & ~(unsigned)OVERLAP)
			return false;
	}
	return true;
}

static struct ll_cu_memcpy3d describe_range(ll_cu_deviceptr to, ll_cu_deviceptr from, size_t bytes)
{
	return (struct ll_cu_memcpy3d){
	    .from_type = LL_CU_MEMORYTYPE_UNIFIED,
	    .from_device = from,
	    .to_type = LL_CU_MEMORYTYPE_UNIFIED,
	    .to_device = to,
	    .width_bytes = bytes,
	    .height = 1,
	    .depth = 1,
	};
}

static ll_cu_result check_copy(const struct ll_cu_memcpy3d *copy)
{
	sim_cuda_lock();
	ll_cu_result status = sim_copy_check(copy);
	sim_cuda_unlock();
	return status;
}

static ll_cu_result copy_lines(const ll_cu_deviceptr *to, const ll_cu_deviceptr *from, const size_t *bytes,
			       size_t count, struct ll_cu_stream *stream, size_t *ret_failed)
{
	ll_cu_result status = LL_CUDA_SUCCESS;
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < count && !status; i++) {
			struct ll_cu_memcpy3d copy = describe_range(to[i], from[i], bytes[i]);
			status = pass ? sim_copy_block(&copy, stream, true) : check_copy(&copy);
			if (!status && !bytes[i])
				status = LL_CUDA_ERROR_INVALID_VALUE;
			if (status)
				*ret_failed = i;
		}
	}
	return status;
}

static ll_cu_result copy_batch(const ll_cu_deviceptr *to, const ll_cu_deviceptr *from, const size_t *bytes,
			       size_t count, const struct ll_cu_copy_attributes *attributes, const size_t *first_of,
			       size_t attribute_count, size_t *ret_failed, struct ll_cu_stream *stream)
{
	*ret_failed = NO_COPY;
	if (!to || !from || !bytes || !count || is_legacy(stream) ||
	    !are_attributes(attributes, first_of, attribute_count, count))
		return LL_CUDA_ERROR_INVALID_VALUE;
	return copy_lines(to, from, bytes, count, stream, ret_failed);
}

ll_cu_result cuMemcpyBatchAsync_v2(ll_cu_deviceptr *to, ll_cu_deviceptr *from, size_t *bytes, size_t count,
				   struct ll_cu_copy_attributes *attributes, size_t *first_of, size_t attribute_count,
				   struct ll_cu_stream *stream)
{
	size_t failed;
	SIM_ENTER();
	return copy_batch(to, from, bytes, count, attributes, first_of, attribute_count, &failed, stream);
}

ll_cu_result cuMemcpyBatchAsync(ll_cu_deviceptr *to, ll_cu_deviceptr *from, size_t *bytes, size_t count,
				struct ll_cu_copy_attributes *attributes, size_t *first_of, size_t attribute_count,
				size_t *ret_failed, struct ll_cu_stream *stream)
{
	size_t failed;
	SIM_ENTER();
	return copy_batch(to, from, bytes, count, attributes, first_of, attribute_count,
			  ret_failed ? ret_failed : &failed, stream);
}

/* Returns the size of an element of a copy: an element of the array, or a byte. */
static size_t element_bytes(const struct ll_cu_copy3d_op *op)
{
	const struct ll_cu_array *array = NULL;
	sim_cuda_lock();
	if (op->from.type == LL_CU_MEMCPY_OPERAND_TYPE_ARRAY)
		array = sim_array_of(op->from.at.array.array);
	else if (op->to.type == LL_CU_MEMCPY_OPERAND_TYPE_ARRAY)
		array = sim_array_of(op->to.at.array.array);
	size_t bytes = array ? array->element_bytes : 1;
	sim_cuda_unlock();
	return bytes;
}

static struct ll_cu_memcpy3d describe_block(const struct ll_cu_copy3d_op *op)
{
	size_t element = element_bytes(op);
	struct ll_cu_memcpy3d copy = {
	    .width_bytes = op->extent.width * element, .height = op->extent.height, .depth = op->extent.depth};
	if (op->from.type == LL_CU_MEMCPY_OPERAND_TYPE_ARRAY) {
		copy.from_type = LL_CU_MEMORYTYPE_ARRAY;
		copy.from_array = op->from.at.array.array;
		copy.from_x_bytes = op->from.at.array.offset.x * element;
		copy.from_y = op->from.at.array.offset.y;
		copy.from_z = op->from.at.array.offset.z;
	} else {
		copy.from_type = LL_CU_MEMORYTYPE_UNIFIED;
		copy.from_device = op->from.at.pointer.address;
		copy.from_pitch_bytes = op->from.at.pointer.row_length * element;
		copy.from_height = op->from.at.pointer.layer_height;
	}
	if (op->to.type == LL_CU_MEMCPY_OPERAND_TYPE_ARRAY) {
		copy.to_type = LL_CU_MEMORYTYPE_ARRAY;
		copy.to_array = op->to.at.array.array;
		copy.to_x_bytes = op->to.at.array.offset.x * element;
		copy.to_y = op->to.at.array.offset.y;
		copy.to_z = op->to.at.array.offset.z;
	} else {
		copy.to_type = LL_CU_MEMORYTYPE_UNIFIED;
		copy.to_device = op->to.at.pointer.address;
		copy.to_pitch_bytes = op->to.at.pointer.row_length * element;
		copy.to_height = op->to.at.pointer.layer_height;
	}
	return copy;
}

static bool is_operand(const struct ll_cu_copy_operand *operand)
{
	return operand->type == LL_CU_MEMCPY_OPERAND_TYPE_POINTER || operand->type == LL_CU_MEMCPY_OPERAND_TYPE_ARRAY;
}

static bool is_op(const struct ll_cu_copy3d_op *op)
{
	return is_operand(&op->from) && is_operand(&op->to) && op->extent.width && op->extent.height &&
	       op->extent.depth && is_order(op->order) && !(op->flags & ~(unsigned)OVERLAP);
}

static ll_cu_result copy_blocks(size_t count, const struct ll_cu_copy3d_op *ops, size_t *ret_failed,
				unsigned long long flags, struct ll_cu_stream *stream)
{
	ll_cu_result status = LL_CUDA_SUCCESS;
	*ret_failed = NO_COPY;
	if (!count || !ops || flags || is_legacy(stream))
		return LL_CUDA_ERROR_INVALID_VALUE;
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < count && !status; i++) {
			struct ll_cu_memcpy3d copy;
			status = is_op(&ops[i]) ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_INVALID_VALUE;
			if (!status) {
				copy = describe_block(&ops[i]);
				status = pass ? sim_copy_block(&copy, stream, true) : check_copy(&copy);
			}
			if (status)
				*ret_failed = i;
		}
	}
	return status;
}

ll_cu_result cuMemcpy3DBatchAsync_v2(size_t count, struct ll_cu_copy3d_op *ops, unsigned long long flags,
				     struct ll_cu_stream *stream)
{
	size_t failed;
	SIM_ENTER();
	return copy_blocks(count, ops, &failed, flags, stream);
}

ll_cu_result cuMemcpy3DBatchAsync(size_t count, struct ll_cu_copy3d_op *ops, size_t *ret_failed,
				  unsigned long long flags, struct ll_cu_stream *stream)
{
	size_t failed;
	SIM_ENTER();
	return copy_blocks(count, ops, ret_failed ? ret_failed : &failed, flags, stream);
}

ll_cu_result cuMemcpyWithAttributesAsync(ll_cu_deviceptr to, ll_cu_deviceptr from, size_t bytes,
					 struct ll_cu_copy_attributes *attributes, struct ll_cu_stream *stream)
{
	size_t failed, first_of = 0;
	SIM_ENTER();
	return copy_batch(&to, &from, &bytes, 1, attributes, &first_of, 1, &failed, stream);
}

ll_cu_result cuMemcpy3DWithAttributesAsync(struct ll_cu_copy3d_op *op, unsigned long long flags,
					   struct ll_cu_stream *stream)
{
	size_t failed;
	SIM_ENTER();
	return copy_blocks(1, op, &failed, flags, stream);
}
