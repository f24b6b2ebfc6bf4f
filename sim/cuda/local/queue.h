/*
 * queue.h - what is queued in streams besides kernels, copies and memsets: events, host functions, values, frees.
 *
 * The stream must not be captured. Functions return what sim_queue returns (pump.h), and what they say.
 */
#ifndef LOADLINE_SIM_CUDA_LOCAL_QUEUE_H
#define LOADLINE_SIM_CUDA_LOCAL_QUEUE_H

#include "cuda/local/state.h"

/* Queues a record of an event. */
ll_cu_result sim_event_queue_record(struct ll_cu_event *event, struct ll_cu_stream *stream);

/* Queues a wait for an event's last record. It queues nothing if the event was never recorded. */
ll_cu_result sim_event_queue_wait(struct ll_cu_event *event, struct ll_cu_stream *stream);

/* Queues a host function. action: of the kind SIM_ACTION_HOST. */
ll_cu_result sim_host_queue(struct ll_cu_stream *stream, const struct sim_action *action);

/* Returns INVALID_VALUE if an operation on a value is none, or its address is not in memory that the card reaches. */
ll_cu_result sim_value_check(const union ll_cu_stream_mem_op *op);

/* Checks operations on values, and queues them in their order. */
ll_cu_result sim_values_queue(struct ll_cu_stream *stream, const union ll_cu_stream_mem_op *ops, unsigned count);

/* Queues the free of the memory that begins at the address: of a pool, of a graph or of its own. INVALID_VALUE: it is a
 * graph's and not in use. */
ll_cu_result sim_free_queue(struct ll_cu_stream *stream, uint64_t address);

/* Queues the free of a graph's memory. The next launch may take the memory at once; its bytes stay until the stream
 * gets there. INVALID_VALUE: it is not in use. */
ll_cu_result sim_graph_memory_queue_free(struct sim_graph_memory *memory, struct ll_cu_stream *stream);

#endif
