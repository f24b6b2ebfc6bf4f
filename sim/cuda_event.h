/*
 * cuda_event.h - what queues tell events.
 */
#ifndef LOADLINE_SIM_CUDA_EVENT_H
#define LOADLINE_SIM_CUDA_EVENT_H

#include <stdint.h>

struct ll_cu_event;

/* A queued record has happened (or was dropped with its context). Local lock held. */
void sim_event_happened(struct ll_cu_event *event, uint32_t stream_slot, uint64_t position, uint64_t done_ns);

#endif
