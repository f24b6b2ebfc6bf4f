/*
 * Values in memory that streams write and wait for, one at a time or in batches.
 */
#include "cuda/capture.h"
#include "cuda/event.h"
#include "cuda/local.h"

static bool is_wait(const union ll_cu_stream_mem_op *op)
{
	return op->operation == LL_CU_STREAM_MEM_OP_WAIT_VALUE_32 || op->operation == LL_CU_STREAM_MEM_OP_WAIT_VALUE_64;
}

static bool is_wide(const union ll_cu_stream_mem_op *op)
{
	return op->operation == LL_CU_STREAM_MEM_OP_WAIT_VALUE_64 ||
	       op->operation == LL_CU_STREAM_MEM_OP_WRITE_VALUE_64;
}

/* Writes reach everybody at once here, so barriers have nothing to do. */
static bool is_barrier(const union ll_cu_stream_mem_op *op)
{
	return op->operation == LL_CU_STREAM_MEM_OP_BARRIER || op->operation == LL_CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES;
}

static ll_cu_result check(const union ll_cu_stream_mem_op *op)
{
	unsigned bytes = is_wide(op) ? 8 : 4;
	if (is_barrier(op))
		return LL_CUDA_SUCCESS;
	if (op->operation < LL_CU_STREAM_MEM_OP_WAIT_VALUE_32 || op->operation > LL_CU_STREAM_MEM_OP_WRITE_VALUE_64 ||
	    !op->value.address || op->value.address % bytes || !sim_memory_at(op->value.address, bytes))
		return LL_CUDA_ERROR_INVALID_VALUE;
	return LL_CUDA_SUCCESS;
}

static ll_cu_result queue_one(struct ll_cu_stream *stream, const union ll_cu_stream_mem_op *given)
{
	if (is_barrier(given))
		return LL_CUDA_SUCCESS;
	struct sim_op op = {.kind = is_wait(given) ? SIM_OP_VALUE : SIM_OP_MARK, .module = SIM_NONE};
	struct sim_action action = {.kind = is_wait(given) ? SIM_ACTION_VALUE : SIM_ACTION_WRITE,
				    .to = sim_memory_at(given->value.address, is_wide(given) ? 8 : 4),
				    .value = is_wide(given) ? given->value.value : (uint32_t)given->value.value,
				    .is_wide = is_wide(given),
				    .width = given->value.flags & 3};
	sim_cuda.value_waiting += is_wait(given);
	ll_cu_result status = sim_queue(stream, &op, &action, NULL);
	if (status && is_wait(given))
		sim_cuda.value_waiting--;
	return status;
}

ll_cu_result sim_values_queue(struct ll_cu_stream *stream, const union ll_cu_stream_mem_op *ops, unsigned count)
{
	ll_cu_result status = LL_CUDA_SUCCESS;
	for (unsigned i = 0; i < count && !status; i++)
		status = check(&ops[i]);
	for (unsigned i = 0; i < count && !status; i++)
		status = queue_one(stream, &ops[i]);
	return status;
}

static ll_cu_result queue(struct ll_cu_stream *handle, union ll_cu_stream_mem_op *ops, unsigned count)
{
	struct ll_cu_stream *stream;
	sim_cuda_lock();
	ll_cu_result status = sim_stream_for_work(handle, &stream);
	for (unsigned i = 0; i < count && !status; i++)
		status = check(&ops[i]);
	if (!status && stream->capture) {
		struct ll_cu_graph_node_params params = {.type = LL_CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
							 .mem_op = {stream->context, count, ops, 0}};
		status = sim_capture_work(stream, &params);
	} else if (!status) {
		status = sim_values_queue(stream, ops, count);
	}
	sim_cuda_unlock();
	return status;
}

static ll_cu_result queue_value(struct ll_cu_stream *stream, enum ll_cu_stream_mem_op_type operation,
				ll_cu_deviceptr address, uint64_t value, unsigned flags)
{
	union ll_cu_stream_mem_op op = {
	    .value = {.operation = operation, .address = address, .value = value, .flags = flags}};
	return queue(stream, &op, 1);
}

ll_cu_result cuStreamWriteValue32(struct ll_cu_stream *stream, ll_cu_deviceptr address, uint32_t value,
				  unsigned int flags)
{
	SIM_ENTER();
	return queue_value(stream, LL_CU_STREAM_MEM_OP_WRITE_VALUE_32, address, value, flags);
}

ll_cu_result cuStreamWriteValue32_v2(struct ll_cu_stream *stream, ll_cu_deviceptr address, uint32_t value,
				     unsigned int flags)
{
	SIM_ENTER();
	return queue_value(stream, LL_CU_STREAM_MEM_OP_WRITE_VALUE_32, address, value, flags);
}

ll_cu_result cuStreamWriteValue64(struct ll_cu_stream *stream, ll_cu_deviceptr address, uint64_t value,
				  unsigned int flags)
{
	SIM_ENTER();
	return queue_value(stream, LL_CU_STREAM_MEM_OP_WRITE_VALUE_64, address, value, flags);
}

ll_cu_result cuStreamWriteValue64_v2(struct ll_cu_stream *stream, ll_cu_deviceptr address, uint64_t value,
				     unsigned int flags)
{
	SIM_ENTER();
	return queue_value(stream, LL_CU_STREAM_MEM_OP_WRITE_VALUE_64, address, value, flags);
}

ll_cu_result cuStreamWaitValue32(struct ll_cu_stream *stream, ll_cu_deviceptr address, uint32_t value,
				 unsigned int flags)
{
	SIM_ENTER();
	return queue_value(stream, LL_CU_STREAM_MEM_OP_WAIT_VALUE_32, address, value, flags);
}

ll_cu_result cuStreamWaitValue32_v2(struct ll_cu_stream *stream, ll_cu_deviceptr address, uint32_t value,
				    unsigned int flags)
{
	SIM_ENTER();
	return queue_value(stream, LL_CU_STREAM_MEM_OP_WAIT_VALUE_32, address, value, flags);
}

ll_cu_result cuStreamWaitValue64(struct ll_cu_stream *stream, ll_cu_deviceptr address, uint64_t value,
				 unsigned int flags)
{
	SIM_ENTER();
	return queue_value(stream, LL_CU_STREAM_MEM_OP_WAIT_VALUE_64, address, value, flags);
}

ll_cu_result cuStreamWaitValue64_v2(struct ll_cu_stream *stream, ll_cu_deviceptr address, uint64_t value,
				    unsigned int flags)
{
	SIM_ENTER();
	return queue_value(stream, LL_CU_STREAM_MEM_OP_WAIT_VALUE_64, address, value, flags);
}

static ll_cu_result batch(struct ll_cu_stream *stream, unsigned count, union ll_cu_stream_mem_op *ops, unsigned flags)
{
	return count && count <= 256 && ops && !flags ? queue(stream, ops, count) : LL_CUDA_ERROR_INVALID_VALUE;
}

ll_cu_result cuStreamBatchMemOp(struct ll_cu_stream *stream, unsigned int count, union ll_cu_stream_mem_op *ops,
				unsigned int flags)
{
	SIM_ENTER();
	return batch(stream, count, ops, flags);
}

ll_cu_result cuStreamBatchMemOp_v2(struct ll_cu_stream *stream, unsigned int count, union ll_cu_stream_mem_op *ops,
				   unsigned int flags)
{
	SIM_ENTER();
	return batch(stream, count, ops, flags);
}
