#include "card/holding.h"

#include <errno.h>

#include "card/memory.h"

int sim_holding_take(struct sim_world *w, uint32_t proc, uint32_t card, uint64_t bytes)
{
	if (!sim_proc_has_room(w, card, proc, bytes))
		return -ENOMEM;
	*SIM_EDIT(w, &w->procs[proc].held_bytes[card]) += bytes;
	return 0;
}

void sim_holding_give_back(struct sim_world *w, uint32_t proc, uint32_t card, uint64_t bytes)
{
	*SIM_EDIT(w, &w->procs[proc].held_bytes[card]) -= bytes;
}

uint32_t sim_share_new(struct sim_world *w, uint32_t proc, uint32_t card, uint64_t bytes)
{
	for (uint32_t i = 0; i < SIM_SHARES; i++) {
		struct sim_share *share = &w->shares[i];
		if (share->is_used)
			continue;
		SIM_EDIT(w, share);
		*share =
		    (struct sim_share){.is_used = 1, .generation = share->generation + 1, .card = card, .bytes = bytes};
		share->holders[proc / 64] = UINT64_C(1) << proc % 64;
		sim_holding_give_back(w, proc, card, bytes);
		return i;
	}
	return SIM_NONE;
}

bool sim_share_join(struct sim_world *w, uint32_t index, uint32_t generation, uint32_t proc)
{
	if (index >= SIM_SHARES || !w->shares[index].is_used || w->shares[index].generation != generation)
		return false;
	*SIM_EDIT(w, &w->shares[index].holders[proc / 64]) |= UINT64_C(1) << proc % 64;
	return true;
}

bool sim_share_leave(struct sim_world *w, uint32_t index, uint32_t proc)
{
	struct sim_share *share = SIM_EDIT(w, &w->shares[index]);
	uint64_t left = 0;
	share->holders[proc / 64] &= ~(UINT64_C(1) << proc % 64);
	for (int i = 0; i < SIM_PROCS / 64; i++)
		left |= share->holders[i];
	share->is_used = left != 0;
	return !left;
}

void sim_holdings_drop(struct sim_world *w, uint32_t proc)
{
	for (uint32_t i = 0; i < SIM_CARDS; i++) {
		if (w->procs[proc].held_bytes[i])
			*SIM_EDIT(w, &w->procs[proc].held_bytes[i]) = 0;
	}
	for (uint32_t i = 0; i < SIM_SHARES; i++) {
		if (w->shares[i].is_used && w->shares[i].holders[proc / 64] >> proc % 64 & 1)
			sim_share_leave(w, i, proc);
	}
}

/* ---- events ---- */

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
