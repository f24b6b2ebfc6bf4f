#include "card/holding.h"

#include <errno.h>

#include "card/descriptor.h"
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

static bool has_process(const struct sim_share *share)
{
	uint64_t left = 0;
	for (int i = 0; i < SIM_PROCS / 64; i++)
		left |= share->holders[i];
	return left != 0;
}

bool sim_share_has_holder(const struct sim_share *share, uint32_t index)
{
	return has_process(share) || (share->has_descriptors && sim_descriptors_are_open(index, share->generation));
}

bool sim_share_is_held(const struct sim_world *w, uint32_t index, uint32_t generation)
{
	const struct sim_share *share = &w->shares[index];
	return share->is_used && share->generation == generation && sim_share_has_holder(share, index);
}

/* A share ends without a call when its last descriptor is closed. */
static bool is_gone(const struct sim_share *share, uint32_t index)
{
	return !share->is_used || (!share->lender && !sim_share_has_holder(share, index));
}

static uint32_t make_share(struct sim_world *w, const struct sim_share *model)
{
	for (uint32_t i = 0; i < SIM_SHARES; i++) {
		struct sim_share *share = &w->shares[i];
		if (!is_gone(share, i))
			continue;
		uint32_t generation = share->generation + 1;
		*SIM_EDIT(w, share) = *model;
		share->is_used = 1;
		share->generation = generation;
		return i;
	}
	return SIM_NONE;
}

uint32_t sim_share_new(struct sim_world *w, uint32_t proc, uint32_t card, uint64_t bytes)
{
	struct sim_share share = {.card = card, .bytes = bytes};
	share.holders[proc / 64] = UINT64_C(1) << proc % 64;
	uint32_t index = make_share(w, &share);
	if (index != SIM_NONE)
		sim_holding_give_back(w, proc, card, bytes);
	return index;
}

uint32_t sim_share_lend(struct sim_world *w, uint32_t proc, uint32_t card, uint64_t bytes)
{
	return make_share(w, &(struct sim_share){.card = card, .bytes = bytes, .lender = proc + 1});
}

bool sim_share_join(struct sim_world *w, uint32_t index, uint32_t generation, uint32_t proc)
{
	if (index >= SIM_SHARES || w->shares[index].generation != generation || is_gone(&w->shares[index], index))
		return false;
	*SIM_EDIT(w, &w->shares[index].holders[proc / 64]) |= UINT64_C(1) << proc % 64;
	return true;
}

/* Frees the slot if the share has no holder. */
static bool settle_holding(struct sim_world *w, uint32_t index)
{
	bool is_last = is_gone(&w->shares[index], index);
	if (is_last)
		*SIM_EDIT(w, &w->shares[index].is_used) = 0;
	return is_last;
}

bool sim_share_leave(struct sim_world *w, uint32_t index, uint32_t proc)
{
	*SIM_EDIT(w, &w->shares[index].holders[proc / 64]) &= ~(UINT64_C(1) << proc % 64);
	return settle_holding(w, index);
}

bool sim_share_end_loan(struct sim_world *w, uint32_t index)
{
	*SIM_EDIT(w, &w->shares[index].lender) = 0;
	return settle_holding(w, index);
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
		if (w->shares[i].is_used && w->shares[i].lender == proc + 1)
			sim_share_end_loan(w, i);
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
