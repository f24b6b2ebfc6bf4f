/*
 * queue.h - queues operations other than kernels, copies and memsets: events, host functions, values, frees.
 *
 * The stream must not be captured. Functions return the status of sim_queue (pump.h), and those that they name.
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

/* Returns INVALID_VALUE if an operation on a value is malformed, or if the card cannot access its address. */
ll_cu_result sim_value_check(const union ll_cu_stream_mem_op *op);

/* Checks operations on values, and queues them in their order. */
ll_cu_result sim_values_queue(struct ll_cu_stream *stream, const union ll_cu_stream_mem_op *ops, unsigned count);

/* Queues the free of the memory that begins at the address: of a pool, of a graph or of its own. INVALID_VALUE: it is a
 * graph's memory and not in use. */
ll_cu_result sim_free_queue(struct ll_cu_stream *stream, uint64_t address);

/* Queues the free of a graph's memory. The next launch may take the memory at once; its bytes stay until the stream
 * reaches the free. INVALID_VALUE: it is not in use. */
ll_cu_result sim_graph_memory_queue_free(struct sim_graph_memory *memory, struct ll_cu_stream *stream);

#endif
