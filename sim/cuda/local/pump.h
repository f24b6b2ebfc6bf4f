/*
 * pump.h - brings the process up to date with the world: what has happened on the card is done here.
 *
 * The pump also queues operations and waits for them. While a function waits, it lets the local lock go.
 */
#ifndef LOADLINE_SIM_CUDA_LOCAL_PUMP_H
#define LOADLINE_SIM_CUDA_LOCAL_PUMP_H

#include "cuda/local/state.h"

/* Takes the local lock, brings the world up to now and acts on what has happened. The world is not locked on return. */
void sim_cuda_lock(void);

/* Lets the local lock go. */
void sim_cuda_unlock(void);

/* Brings the world up to now and acts on what has happened. Returns when to look again (CLOCK_MONOTONIC), or
 * SIM_NEVER. */
uint64_t sim_cuda_pump(void);

/* Queues an operation with an action, which is copied; NULL: nothing is to be done here. It waits while the queue is
 * full. ret_position: where in the stream the operation is; may be NULL. Returns OUT_OF_MEMORY, or what
 * sim_context_status says. On failure the action is dropped, with what it owns. */
ll_cu_result sim_queue(struct ll_cu_stream *stream, struct sim_op *op, const struct sim_action *action,
		       uint64_t *ret_position);

/* Waits until everything in the stream up to and with `position` has been acted on here. Returns what
 * sim_context_status says. */
ll_cu_result sim_wait(struct ll_cu_stream *stream, uint64_t position);

/* Waits for everything that has been submitted to the stream so far. */
ll_cu_result sim_wait_all(struct ll_cu_stream *stream);

/* Waits until no other thread waits for room in the stream. A call that asks about a stream does so, as on a card. */
ll_cu_result sim_wait_for_others(struct ll_cu_stream *stream);

/* Waits for everything that has been submitted to the context so far. */
ll_cu_result sim_wait_context(struct ll_cu_context *context);

/* Waits for everything that has been submitted so far to all contexts of the process on a card. */
void sim_wait_card(uint32_t card);

/* Waits until nothing that is queued reads or writes these bytes any more. */
void sim_wait_bytes(const char *at, size_t bytes);

/* Starts the thread that pumps while no call is made, unless it runs. */
void sim_worker_start(void);

/* Starts the thread that runs host functions, unless it runs. */
void sim_host_thread_start(void);

#endif
