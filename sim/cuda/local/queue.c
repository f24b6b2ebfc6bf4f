#include "cuda/local/queue.h"

#include "cuda/local/allocations.h"
#include "cuda/local/event.h"
#include "cuda/local/graph_memory.h"
#include "cuda/local/pool.h"
#include "cuda/local/pump.h"

ll_cu_result sim_event_queue_record(struct ll_cu_event *event, struct ll_cu_stream *stream)
{
	struct sim_op op = {.kind = SIM_OP_MARK, .module = SIM_NONE};
	struct sim_action action = {.kind = SIM_ACTION_EVENT, .event = event};
	uint64_t position;
	uint32_t slot = stream->slot, generation = stream->generation;
	sim_event_hold(event);
	ll_cu_result status = sim_queue(stream, &op, &action, &position);
	if (status) {
		sim_event_drop(event);
		return status;
	}
	event->is_recorded = true;
	event->is_done = false;
	event->stream_slot = slot;
	event->stream_generation = generation;
	event->position = position;
	event->capture_id = 0;
	sim_event_publish(event);
	return LL_CUDA_SUCCESS;
}

ll_cu_result sim_event_queue_wait(struct ll_cu_event *event, struct ll_cu_stream *stream)
{
	sim_event_refresh(event);
	struct sim_op op = {
	    .kind = SIM_OP_WAIT,
	    .on_stream = event->stream_slot,
	    .on_generation = event->stream_generation,
	    .on_position = event->position,
	    .module = SIM_NONE,
	};
	return event->is_recorded ? sim_queue(stream, &op, NULL, NULL) : LL_CUDA_SUCCESS;
}

ll_cu_result sim_graph_memory_queue_free(struct sim_graph_memory *memory, struct ll_cu_stream *stream)
{
	struct sim_op op = {.kind = SIM_OP_MARK, .module = SIM_NONE};
	struct sim_action action = {.kind = SIM_ACTION_FREE, .graph = memory};
	if (!sim_graph_memory_begin_free(memory))
		return LL_CUDA_ERROR_INVALID_VALUE;
	ll_cu_result status = sim_queue(stream, &op, &action, NULL);
	if (status)
		sim_graph_memory_freed(memory);
	return status;
}

ll_cu_result sim_free_queue(struct ll_cu_stream *stream, uint64_t address)
{
	struct sim_op op = {.kind = SIM_OP_MARK, .module = SIM_NONE};
	struct sim_action action = {.kind = SIM_ACTION_FREE, .user = (void *)(uintptr_t)address};
	const struct sim_memory *memory = sim_memory_find(address);
	if (memory->origin == SIM_ORIGIN_GRAPH)
		return sim_graph_memory_queue_free(memory->graph, stream);
	if (memory->origin == SIM_ORIGIN_POOL) {
		action.pool = memory->pool;
		action.bytes = sim_pool_begin_free(memory, stream);
	}
	ll_cu_result status = sim_queue(stream, &op, &action, NULL);
	if (status)
		sim_freed_in_order(&action);
	return status;
}

ll_cu_result sim_host_queue(struct ll_cu_stream *stream, const struct sim_action *action)
{
	struct sim_op op = {.kind = SIM_OP_HOST, .module = SIM_NONE};
	sim_host_thread_start();
	sim_cuda.host_waiting++;
	ll_cu_result status = sim_queue(stream, &op, action, NULL);
	if (status)
		sim_cuda.host_waiting--;
	return status;
}

static bool is_wait(const union ll_cu_stream_mem_op *op)
{
	return op->operation == LL_CU_STREAM_MEM_OP_WAIT_VALUE_32 || op->operation == LL_CU_STREAM_MEM_OP_WAIT_VALUE_64;
}

static bool is_wide(const union ll_cu_stream_mem_op *op)
{
	return op->operation == LL_CU_STREAM_MEM_OP_WAIT_VALUE_64 ||
	       op->operation == LL_CU_STREAM_MEM_OP_WRITE_VALUE_64;
}

/* Writes are visible to all at once here, so barriers do nothing. */
static bool is_barrier(const union ll_cu_stream_mem_op *op)
{
	return op->operation == LL_CU_STREAM_MEM_OP_BARRIER || op->operation == LL_CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES;
}

ll_cu_result sim_value_check(const union ll_cu_stream_mem_op *op)
{
	unsigned bytes = is_wide(op) ? 8 : 4;
	if (is_barrier(op))
		return LL_CUDA_SUCCESS;
	if (op->operation < LL_CU_STREAM_MEM_OP_WAIT_VALUE_32 || op->operation > LL_CU_STREAM_MEM_OP_WRITE_VALUE_64 ||
	    !op->value.address || op->value.address % bytes || !sim_memory_at(op->value.address, bytes))
		return LL_CUDA_ERROR_INVALID_VALUE;
	return LL_CUDA_SUCCESS;
}

static ll_cu_result queue_value_op(struct ll_cu_stream *stream, const union ll_cu_stream_mem_op *given)
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
		status = sim_value_check(&ops[i]);
	for (unsigned i = 0; i < count && !status; i++)
		status = queue_value_op(stream, &ops[i]);
	return status;
}
