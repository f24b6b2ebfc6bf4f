/*
 * cuda_event.h - what queues tell events.
 */
#ifndef LOADLINE_SIM_CUDA_EVENT_H
#define LOADLINE_SIM_CUDA_EVENT_H

#include <stdint.h>

struct ll_cu_context;
struct ll_cu_event;

/* A queued record has happened (or was dropped with its context). Local lock held. */
void sim_event_happened(struct ll_cu_event *event, uint32_t stream_slot, uint64_t position, uint64_t done_ns);

/* A new event of that context, not recorded. NULL: no memory. */
struct ll_cu_event *sim_event_new(struct ll_cu_context *context, unsigned flags);

/* cuda_ipc_event.c: the last record of a shared event, from the world and to it; letting it go. Others are left alone.
 */
void sim_event_refresh(struct ll_cu_event *event);
void sim_event_publish(const struct ll_cu_event *event);
void sim_event_unshare(struct ll_cu_event *event);

#endif
