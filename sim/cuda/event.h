/*
 * event.h - what queues tell events, and what is queued besides kernels, copies and memsets.
 */
#ifndef LOADLINE_SIM_CUDA_EVENT_H
#define LOADLINE_SIM_CUDA_EVENT_H

#include "cuda/local.h"

/* A queued record has happened (or was dropped with its context). Local lock held. */
void sim_event_happened(struct ll_cu_event *event, uint32_t stream_slot, uint64_t position, uint64_t done_ns);

/* A new event of that context, not recorded. NULL: no memory. */
struct ll_cu_event *sim_event_new(struct ll_cu_context *context, unsigned flags);

/* cuda/ipc_event.c: the last record of a shared event, from the world and to it; letting it go. Others are left alone.
 */
void sim_event_refresh(struct ll_cu_event *event);
void sim_event_publish(const struct ll_cu_event *event);
void sim_event_unshare(struct ll_cu_event *event);
/* Queue a record of an event, a wait for its last one. Local lock held; the stream is not being captured. */
ll_cu_result sim_event_queue_record(struct ll_cu_event *event, struct ll_cu_stream *stream);
ll_cu_result sim_event_queue_wait(struct ll_cu_event *event, struct ll_cu_stream *stream);

/* A node or a queued record keeps the event alive. */
void sim_event_hold(struct ll_cu_event *event);
void sim_event_drop(struct ll_cu_event *event);

/* Queue a host function (action: SIM_ACTION_HOST), and operations on values. */
ll_cu_result sim_host_queue(struct ll_cu_stream *stream, const struct sim_action *action);
ll_cu_result sim_values_queue(struct ll_cu_stream *stream, const union ll_cu_stream_mem_op *ops, unsigned count);

#endif
