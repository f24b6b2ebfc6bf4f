/*
 * Events in this process, and shared events in the world.
 */
#include "cuda/local/event.h"

#include <stdlib.h>

#include "base/clock.h"
#include "card/engine.h"
#include "card/holding.h"
#include "card/queue.h"

static struct ll_cu_event *events;

void sim_event_hold(struct ll_cu_event *event)
{
	event->references++;
}

void sim_event_drop(struct ll_cu_event *event)
{
	if (--event->references > 0)
		return;
	*event->link = event->next;
	if (event->next)
		event->next->link = event->link;
	free(event->captured.at);
	free(event);
}

void sim_event_happened(struct ll_cu_event *event, uint32_t stream_slot, uint64_t position, uint64_t done_ns)
{
	/* If it has been recorded again since, only the later record counts. */
	if (event->stream_slot == stream_slot && event->position == position) {
		event->is_done = true;
		event->done_ns = done_ns;
	}
	sim_event_drop(event);
}

struct ll_cu_event *sim_event_new(struct ll_cu_context *context, unsigned flags)
{
	struct ll_cu_event *event = calloc(1, sizeof *event);
	if (event) {
		event->magic = SIM_MAGIC_EVENT;
		event->flags = flags;
		event->references = 1;
		event->context = context;
		event->next = events;
		event->link = &events;
		if (events)
			events->link = &event->next;
		events = event;
	}
	return event;
}

void sim_event_refresh(struct ll_cu_event *event)
{
	struct sim_world *w = sim_cuda.world;
	if (!event->is_shared)
		return;
	sim_lock(w);
	sim_advance_to_now(w);
	const struct sim_shared_event *shared = &w->shared_events[event->shared_slot];
	event->is_recorded = shared->is_recorded;
	event->stream_slot = shared->stream_slot;
	event->stream_generation = shared->stream_generation;
	event->position = shared->position;
	event->done_ns = sim_done_ns(w, event->stream_slot, event->stream_generation, event->position);
	event->is_done = event->done_ns != SIM_NEVER;
	sim_unlock(w);
}

void sim_event_publish(const struct ll_cu_event *event)
{
	struct sim_world *w = sim_cuda.world;
	if (!event->is_shared)
		return;
	sim_lock(w);
	struct sim_shared_event *shared = SIM_EDIT(w, &w->shared_events[event->shared_slot]);
	shared->is_recorded = event->is_recorded;
	shared->stream_slot = event->stream_slot;
	shared->stream_generation = event->stream_generation;
	shared->position = event->position;
	sim_unlock(w);
}

void sim_event_unshare(struct ll_cu_event *event)
{
	struct sim_world *w = sim_cuda.world;
	if (!event->is_shared)
		return;
	event->is_shared = false;
	sim_lock(w);
	sim_shared_event_leave(w, event->shared_slot, sim_cuda.proc);
	sim_unlock(w);
}

bool sim_event_share(struct ll_cu_event *event)
{
	struct sim_world *w = sim_cuda.world;
	if (event->is_shared)
		return true;
	sim_lock(w);
	event->shared_slot = sim_shared_event_new(w, sim_cuda.proc);
	sim_unlock(w);
	event->is_shared = event->shared_slot != SIM_NONE;
	sim_event_publish(event);
	return event->is_shared;
}
