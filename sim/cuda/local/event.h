/*
 * event.h - events in this process. The program has one reference; each queued record and node has one.
 *
 * The last record of a shared event is in the world (card/holding.h). Queries, waits and records use that. The
 * functions for shared events do nothing for other events.
 */
#ifndef LOADLINE_SIM_CUDA_LOCAL_EVENT_H
#define LOADLINE_SIM_CUDA_LOCAL_EVENT_H

#include "cuda/local/state.h"

/* Makes an event of a context. It is not recorded, and has one reference. NULL: out of memory. */
struct ll_cu_event *sim_event_new(struct ll_cu_context *context, unsigned flags);

/* Adds a reference. */
void sim_event_hold(struct ll_cu_event *event);

/* Releases a reference. The last one frees the event. */
void sim_event_drop(struct ll_cu_event *event);

/* Notes that a queued record was reached, or was dropped with its context, at done_ns (CLOCK_MONOTONIC). Releases the
 * record's reference. If the event has been recorded again since, only the later record counts. */
void sim_event_happened(struct ll_cu_event *event, uint32_t stream_slot, uint64_t position, uint64_t done_ns);

/* Makes an event shared, unless it is shared already. False: the world has no free slot. */
bool sim_event_share(struct ll_cu_event *event);

/* Reads the last record of a shared event from the world. */
void sim_event_refresh(struct ll_cu_event *event);

/* Writes the last record of a shared event to the world. */
void sim_event_publish(const struct ll_cu_event *event);

/* Removes this process from a shared event. */
void sim_event_unshare(struct ll_cu_event *event);

#endif
