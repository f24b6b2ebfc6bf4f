/*
 * event.h - events as the process keeps them. The program holds one reference; so does each queued record and node.
 *
 * A shared event's last record is in the world (card/holding.h); whoever asks, waits or records looks there. The
 * functions for shared events leave other events alone.
 */
#ifndef LOADLINE_SIM_CUDA_LOCAL_EVENT_H
#define LOADLINE_SIM_CUDA_LOCAL_EVENT_H

#include "cuda/local/state.h"

/* Makes an event of a context. It is not recorded, and has one reference. NULL: out of memory. */
struct ll_cu_event *sim_event_new(struct ll_cu_context *context, unsigned flags);

/* Adds a reference. */
void sim_event_hold(struct ll_cu_event *event);

/* Gives up a reference. The last one frees the event. */
void sim_event_drop(struct ll_cu_event *event);

/* Notes that a queued record has happened, or was dropped with its context, at done_ns (CLOCK_MONOTONIC). Gives up the
 * record's reference. If the event has been recorded again since, only the later record counts. */
void sim_event_happened(struct ll_cu_event *event, uint32_t stream_slot, uint64_t position, uint64_t done_ns);

/* Makes an event shared, unless it is. False: the world has no slot left. */
bool sim_event_share(struct ll_cu_event *event);

/* Reads the last record of a shared event from the world. */
void sim_event_refresh(struct ll_cu_event *event);

/* Writes the last record of a shared event to the world. */
void sim_event_publish(const struct ll_cu_event *event);

/* Gives up this process's part in a shared event. */
void sim_event_unshare(struct ll_cu_event *event);

#endif
