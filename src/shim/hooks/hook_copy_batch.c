/*
 * Copies in batches: the driver runs a batch as one thing in its stream's order, so it waits, and is timed, as one. It
 * does when any copy of it is within the card or between cards, as in hook_copy.c; the hints of a batch change nothing
 * of that.
 */
#include "abi/cuda_copy.h"
#include "shim/hooks/copy.h"
#include "shim/hooks/launch.h"
#include "shim/interpose/hook.h"

static bool has_line_on_card(const ll_cu_deviceptr *to, const ll_cu_deviceptr *from, size_t count)
{
	for (size_t i = 0; to && from && i < count; i++) {
		if (ll_copy_is_on_card(to[i]) && ll_copy_is_on_card(from[i]))
			return true;
	}
	return false;
}

static bool is_operand_on_card(const struct ll_cu_copy_operand *operand)
{
	return operand->type == LL_CU_MEMCPY_OPERAND_TYPE_ARRAY || ll_copy_is_on_card(operand->at.pointer.address);
}

static bool has_block_on_card(const struct ll_cu_copy3d_op *ops, size_t count)
{
	for (size_t i = 0; ops && i < count; i++) {
		if (is_operand_on_card(&ops[i].to) && is_operand_on_card(&ops[i].from))
			return true;
	}
	return false;
}

/* Where none is, the first one says for a trace which way they go. */
static struct ll_copy_sides sides_of_lines(const ll_cu_deviceptr *to, const ll_cu_deviceptr *from, size_t count)
{
	if (has_line_on_card(to, from, count))
		return (struct ll_copy_sides){true, true};
	if (!to || !from || !count)
		return (struct ll_copy_sides){false, false};
	return (struct ll_copy_sides){ll_copy_is_on_card(to[0]), ll_copy_is_on_card(from[0])};
}

static struct ll_copy_sides sides_of_blocks(const struct ll_cu_copy3d_op *ops, size_t count)
{
	if (has_block_on_card(ops, count))
		return (struct ll_copy_sides){true, true};
	if (!ops || !count)
		return (struct ll_copy_sides){false, false};
	return (struct ll_copy_sides){is_operand_on_card(&ops[0].to), is_operand_on_card(&ops[0].from)};
}

static uint64_t bytes_of_lines(const size_t *bytes, size_t count)
{
	uint64_t sum = 0;
	for (size_t i = 0; bytes && i < count; i++)
		sum += bytes[i];
	return sum;
}

LL_COPY_HOOKS(cuMemcpyBatchAsync_v2, _ptsz, sides_of_lines(to, from, count), bytes_of_lines(bytes, count), stream,
	      (ll_cu_deviceptr * to, ll_cu_deviceptr *from, size_t *bytes, size_t count,
	       struct ll_cu_copy_attributes *attributes, size_t *first_of, size_t attribute_count,
	       struct ll_cu_stream *stream),
	      (to, from, bytes, count, attributes, first_of, attribute_count, stream))
LL_COPY_HOOKS(cuMemcpyBatchAsync, _ptsz, sides_of_lines(to, from, count), bytes_of_lines(bytes, count), stream,
	      (ll_cu_deviceptr * to, ll_cu_deviceptr *from, size_t *bytes, size_t count,
	       struct ll_cu_copy_attributes *attributes, size_t *first_of, size_t attribute_count, size_t *ret_failed,
	       struct ll_cu_stream *stream),
	      (to, from, bytes, count, attributes, first_of, attribute_count, ret_failed, stream))
LL_COPY_HOOKS(cuMemcpy3DBatchAsync_v2, _ptsz, sides_of_blocks(ops, count), 0, stream,
	      (size_t count, struct ll_cu_copy3d_op *ops, unsigned long long flags, struct ll_cu_stream *stream),
	      (count, ops, flags, stream))
LL_COPY_HOOKS(cuMemcpy3DBatchAsync, _ptsz, sides_of_blocks(ops, count), 0, stream,
	      (size_t count, struct ll_cu_copy3d_op *ops, size_t *ret_failed, unsigned long long flags,
	       struct ll_cu_stream *stream),
	      (count, ops, ret_failed, flags, stream))

/* From CUDA 13.2: one of them each. */
LL_COPY_HOOKS(cuMemcpyWithAttributesAsync, _ptsz, sides_of_lines(&to, &from, 1), bytes, stream,
	      (ll_cu_deviceptr to, ll_cu_deviceptr from, size_t bytes, struct ll_cu_copy_attributes *attributes,
	       struct ll_cu_stream *stream),
	      (to, from, bytes, attributes, stream))
LL_COPY_HOOKS(cuMemcpy3DWithAttributesAsync, _ptsz, sides_of_blocks(op, 1), 0, stream,
	      (struct ll_cu_copy3d_op * op, unsigned long long flags, struct ll_cu_stream *stream), (op, flags, stream))
