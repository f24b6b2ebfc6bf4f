/*
 * Values in memory that streams write and wait for, single or in batches.
 */
#include "cuda/enter.h"
#include "cuda/local/capture.h"
#include "cuda/local/capture_work.h"
#include "cuda/local/event.h"
#include "cuda/local/queue.h"
#include "cuda/local/stream.h"

static ll_cu_result queue_values(struct ll_cu_stream *handle, union ll_cu_stream_mem_op *ops, unsigned count)
{
	struct ll_cu_stream *stream;
	sim_cuda_lock();
	ll_cu_result status = sim_stream_for_work(handle, &stream);
	for (unsigned i = 0; i < count && !status; i++)
		status = sim_value_check(&ops[i]);
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

#define STREAM_VALUE(name, type, operation_)                                                                           \
	ll_cu_result name(struct ll_cu_stream *stream, ll_cu_deviceptr address, type value, unsigned int flags)        \
	{                                                                                                              \
		SIM_ENTER();                                                                                           \
		union ll_cu_stream_mem_op op = {                                                                       \
		    .value = {.operation = (operation_), .address = address, .value = value, .flags = flags}};         \
		return queue_values(stream, &op, 1);                                                                   \
	}

STREAM_VALUE(cuStreamWriteValue32, uint32_t, LL_CU_STREAM_MEM_OP_WRITE_VALUE_32)
STREAM_VALUE(cuStreamWriteValue32_v2, uint32_t, LL_CU_STREAM_MEM_OP_WRITE_VALUE_32)
STREAM_VALUE(cuStreamWriteValue64, uint64_t, LL_CU_STREAM_MEM_OP_WRITE_VALUE_64)
STREAM_VALUE(cuStreamWriteValue64_v2, uint64_t, LL_CU_STREAM_MEM_OP_WRITE_VALUE_64)
STREAM_VALUE(cuStreamWaitValue32, uint32_t, LL_CU_STREAM_MEM_OP_WAIT_VALUE_32)
STREAM_VALUE(cuStreamWaitValue32_v2, uint32_t, LL_CU_STREAM_MEM_OP_WAIT_VALUE_32)
STREAM_VALUE(cuStreamWaitValue64, uint64_t, LL_CU_STREAM_MEM_OP_WAIT_VALUE_64)
STREAM_VALUE(cuStreamWaitValue64_v2, uint64_t, LL_CU_STREAM_MEM_OP_WAIT_VALUE_64)

static ll_cu_result queue_batch(struct ll_cu_stream *stream, unsigned count, union ll_cu_stream_mem_op *ops,
				unsigned flags)
{
	return count && count <= 256 && ops && !flags ? queue_values(stream, ops, count) : LL_CUDA_ERROR_INVALID_VALUE;
}

ll_cu_result cuStreamBatchMemOp(struct ll_cu_stream *stream, unsigned int count, union ll_cu_stream_mem_op *ops,
				unsigned int flags)
{
	SIM_ENTER();
	return queue_batch(stream, count, ops, flags);
}

ll_cu_result cuStreamBatchMemOp_v2(struct ll_cu_stream *stream, unsigned int count, union ll_cu_stream_mem_op *ops,
				   unsigned int flags)
{
	SIM_ENTER();
	return queue_batch(stream, count, ops, flags);
}
