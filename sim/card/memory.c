#include "card/memory.h"

#include "card/defaults.h"
#include "card/holding.h"
#include "card/mps_limits.h"
#include "card/process.h"

#define BLOCK_BYTES (UINT64_C(2) << 20)

static uint32_t first_holder(const struct sim_share *share)
{
	for (uint32_t i = 0; i < SIM_PROCS / 64; i++) {
		if (share->holders[i])
			return i * 64 + (uint32_t)__builtin_ctzll(share->holders[i]);
	}
	return SIM_NONE;
}

/* Returns whether a share counts, for one process or for all (SIM_NONE). It counts for its first holder. If only
 * descriptors hold it, it counts for the card alone. Memory that the lender still has counts there. */
static bool does_share_count(const struct sim_share *share, uint32_t index, uint32_t proc)
{
	if (!share->is_used || share->lender)
		return false;
	return proc == SIM_NONE ? sim_share_has_holder(share, index) : first_holder(share) == proc;
}

/* Returns the memory of processes outside of contexts on a card and its slices, in bytes. proc: the process, or
 * SIM_NONE for all. */
static uint64_t held_bytes(const struct sim_world *w, uint32_t card, uint32_t proc)
{
	uint64_t bytes = 0;
	for (uint32_t c = 0; c < w->slot_count; c++) {
		if (c != card && w->cards[c].parent != card)
			continue;
		for (uint32_t i = 0; i < SIM_PROCS; i++) {
			bool is_here = w->procs[i].is_used && w->procs[i].stop != SIM_STOP_CHECKPOINTED;
			if (is_here && (proc == SIM_NONE || proc == i))
				bytes += w->procs[i].held_bytes[c];
		}
		for (uint32_t i = 0; i < SIM_SHARES; i++) {
			const struct sim_share *share = &w->shares[i];
			if (share->card == c && does_share_count(share, i, proc))
				bytes += share->bytes;
		}
	}
	return bytes;
}

uint64_t sim_context_used_bytes(const struct sim_context *context)
{
	uint64_t small = (context->small_bytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
	return context->own_bytes + context->large_bytes + small;
}

static bool has_memory(const struct sim_world *w, const struct sim_context *context, uint32_t card)
{
	return sim_context_is_on_card(w, context, card) && w->procs[context->proc].stop != SIM_STOP_CHECKPOINTED;
}

uint64_t sim_proc_used_bytes(struct sim_world *w, uint32_t card, uint32_t proc)
{
	uint64_t bytes = held_bytes(w, card, proc);
	for (uint32_t i = 0; i < SIM_CONTEXTS; i++) {
		const struct sim_context *context = &w->contexts[i];
		if (has_memory(w, context, card) && context->proc == proc)
			bytes += sim_context_used_bytes(context);
	}
	return bytes ? bytes + SIM_PROCESS_BYTES : 0;
}

uint64_t sim_card_used_bytes(struct sim_world *w, uint32_t card)
{
	uint64_t bytes = w->cards[card].foreign_bytes + held_bytes(w, card, SIM_NONE);
	for (uint32_t i = 0; i < SIM_CONTEXTS; i++) {
		if (has_memory(w, &w->contexts[i], card))
			bytes += sim_context_used_bytes(&w->contexts[i]);
	}
	bool is_in_sight = false;
	for (uint32_t i = 0; i < SIM_PROCS; i++)
		is_in_sight |= w->procs[i].is_used && (w->procs[i].cards >> card & 1);
	return is_in_sight ? bytes + SIM_PROCESS_BYTES : bytes;
}

static bool card_has_room(struct sim_world *w, uint32_t card, uint64_t bytes)
{
	uint64_t used = sim_card_used_bytes(w, card), total = w->cards[card].memory_bytes;
	return used <= total && bytes <= total - used;
}

uint64_t sim_mps_room_bytes(struct sim_world *w, uint32_t card, uint32_t proc)
{
	uint64_t limit = w->procs[proc].mps.limit_bytes[card];
	if (!limit)
		return UINT64_MAX;
	uint64_t used = sim_proc_used_bytes(w, card, proc);
	used = used > SIM_MPS_UNCOUNTED_BYTES ? used - SIM_MPS_UNCOUNTED_BYTES : 0;
	return limit > used ? limit - used : 0;
}

bool sim_proc_has_room(struct sim_world *w, uint32_t card, uint32_t proc, uint64_t bytes)
{
	if (!card_has_room(w, card, bytes) || sim_card_used_bytes(w, card) + bytes > w->cards[card].most_bytes)
		sim_procs_reap_now(w);
	if (!card_has_room(w, card, bytes) || bytes > sim_mps_room_bytes(w, card, proc))
		return false;
	uint64_t used = sim_card_used_bytes(w, card) + bytes;
	if (used > w->cards[card].most_bytes)
		*SIM_EDIT(w, &w->cards[card].most_bytes) = used;
	return true;
}
