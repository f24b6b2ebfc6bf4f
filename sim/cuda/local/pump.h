/*
 * pump.h - brings the process up to date with the world: it carries out the actions of operations that have happened on
 * the card.
 *
 * The pump also queues operations and waits for them. A function that waits releases the local lock meanwhile.
 */
#ifndef LOADLINE_SIM_CUDA_LOCAL_PUMP_H
#define LOADLINE_SIM_CUDA_LOCAL_PUMP_H

#include "cuda/local/state.h"

/* Takes the local lock, brings the world up to now, and carries out the actions of completed operations. The world is
 * not locked on return. */
void sim_cuda_lock(void);

/* Releases the local lock. */
void sim_cuda_unlock(void);

/* Brings the world up to now and carries out the actions of completed operations. Returns when to call it again
 * (CLOCK_MONOTONIC), or SIM_NEVER. */
uint64_t sim_cuda_pump(void);

/* Queues an operation with an action, which is copied; NULL: no action. It waits while the queue is full. ret_position:
 * the position of the operation in the stream; may be NULL. Returns OUT_OF_MEMORY, or the status of sim_context_status.
 * On failure the action is dropped, with what it owns. */
ll_cu_result sim_queue(struct ll_cu_stream *stream, struct sim_op *op, const struct sim_action *action,
		       uint64_t *ret_position);

/* Waits until the actions of all operations up to and including `position` are carried out. Returns the status of
 * sim_context_status. */
ll_cu_result sim_wait(struct ll_cu_stream *stream, uint64_t position);

/* Waits for everything that has been submitted to the stream so far. */
ll_cu_result sim_wait_all(struct ll_cu_stream *stream);

/* Waits until no other thread waits for room in the stream. A call that queries a stream does so, as on a card. */
ll_cu_result sim_wait_for_others(struct ll_cu_stream *stream);

/* Waits for everything that has been submitted to the context so far. */
ll_cu_result sim_wait_context(struct ll_cu_context *context);

/* Waits for everything that has been submitted so far to all contexts of the process on a card. */
void sim_wait_card(uint32_t card);

/* Waits until no queued operation reads or writes these bytes. */
void sim_wait_bytes(const char *at, size_t bytes);

/* Starts the thread that pumps while no call is made, unless it is running. */
void sim_worker_start(void);

/* Starts the thread that runs host functions, unless it is running. */
void sim_host_thread_start(void);

#endif
