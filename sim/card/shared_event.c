#include "card/shared_event.h"

uint32_t sim_shared_event_new(struct sim_world *w, uint32_t proc)
{
	for (uint32_t i = 0; i < SIM_SHARED_EVENTS; i++) {
		struct sim_shared_event *event = &w->shared_events[i];
		if (event->is_used)
			continue;
		SIM_EDIT(w, event);
		*event = (struct sim_shared_event){.is_used = 1, .generation = event->generation + 1};
		event->holders[proc / 64] = UINT64_C(1) << proc % 64;
		return i;
	}
	return SIM_NONE;
}

bool sim_shared_event_join(struct sim_world *w, uint32_t index, uint32_t generation, uint32_t proc)
{
	if (index >= SIM_SHARED_EVENTS || !w->shared_events[index].is_used ||
	    w->shared_events[index].generation != generation)
		return false;
	*SIM_EDIT(w, &w->shared_events[index].holders[proc / 64]) |= UINT64_C(1) << proc % 64;
	return true;
}

void sim_shared_event_leave(struct sim_world *w, uint32_t index, uint32_t proc)
{
	struct sim_shared_event *event = SIM_EDIT(w, &w->shared_events[index]);
	uint64_t left = 0;
	event->holders[proc / 64] &= ~(UINT64_C(1) << proc % 64);
	for (int i = 0; i < SIM_PROCS / 64; i++)
		left |= event->holders[i];
	event->is_used = left != 0;
}

void sim_shared_events_drop(struct sim_world *w, uint32_t proc)
{
	for (uint32_t i = 0; i < SIM_SHARED_EVENTS; i++) {
		if (w->shared_events[i].is_used && w->shared_events[i].holders[proc / 64] >> proc % 64 & 1)
			sim_shared_event_leave(w, i, proc);
	}
}
