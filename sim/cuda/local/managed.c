/*
 * Moves managed memory to the card and back.
 */
#include "cuda/local/managed.h"

#include <sys/mman.h>

#include "card/memory.h"
#include "cuda/local/allocations.h"
#include "cuda/local/arena.h"
#include "cuda/local/capture.h"

struct sim_memory *sim_managed_find(uint64_t address, uint64_t bytes)
{
	struct sim_memory *memory = sim_memory_find(address);
	bool is_managed = memory && memory->kind == SIM_MEMORY_DEVICE && memory->origin == SIM_ORIGIN_MANAGED;
	return is_managed && bytes <= memory->bytes - (address - memory->address) ? memory : NULL;
}

void sim_managed_touch(uint64_t address)
{
	struct sim_world *w = sim_cuda.world;
	struct sim_memory *memory = sim_managed_find(address, 1);
	if (!memory || memory->charged_bytes)
		return;
	if (sim_memory_charge(memory->context, memory) == 0)
		return;
	/* sim_memory_charge has set the charge that was refused. */
	sim_lock(w);
	uint64_t used = sim_card_used_bytes(w, memory->card), total = w->cards[memory->card].memory_bytes;
	uint64_t room = used < total ? (total - used) >> 21 << 21 : 0;
	if (room < memory->charged_bytes)
		memory->charged_bytes = room;
	SIM_EDIT(w, &w->contexts[memory->context->slot])->large_bytes += memory->charged_bytes;
	sim_unlock(w);
	memory->is_small = false;
}

void sim_managed_leave_card(struct sim_memory *memory)
{
	sim_memory_refund(memory);
	memory->charged_bytes = 0;
}
