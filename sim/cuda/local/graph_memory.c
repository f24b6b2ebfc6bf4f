/*
 * Memory of graphs: a node reserves it, a launch takes it. As measured on an H200 (driver 580), with one difference:
 * nodes of one graph that could use the same memory one after the other have separate memory here.
 */
#include "cuda/local/graph_memory.h"

#include <stdlib.h>

#include "card/defaults.h"
#include "card/engine.h"
#include "card/holding.h"
#include "cuda/local/allocations.h"

/* The memory of graphs on a card. Freed memory counts as used until memory is taken or trimmed. */
static struct reserve {
	uint64_t reserved_bytes, reserved_high_bytes, used_bytes, used_high_bytes;
	uint64_t freed_bytes;  /* of used_bytes: what is freed */
	uint64_t backed_bytes; /* of reserved_bytes: what backs the addresses of nodes */
} reserves[SIM_CARDS];

static struct reserve *reserve_of(const struct sim_graph_memory *memory)
{
	return &reserves[memory->device];
}

static uint64_t room_of(const struct sim_graph_memory *memory)
{
	return (memory->bytes + SIM_POOL_CHUNK_BYTES - 1) / SIM_POOL_CHUNK_BYTES * SIM_POOL_CHUNK_BYTES;
}

static void count_freed(struct reserve *reserve)
{
	reserve->used_bytes -= reserve->freed_bytes;
	reserve->freed_bytes = 0;
}

ll_cu_result sim_graph_memory_new(ll_cu_device device, size_t bytes, struct sim_graph_memory **ret_memory)
{
	if (bytes > INT64_MAX)
		return LL_CUDA_ERROR_OUT_OF_MEMORY;
	struct sim_graph_memory *memory = calloc(1, sizeof *memory);
	if (!memory)
		return LL_CUDA_ERROR_OUT_OF_MEMORY;
	*memory = (struct sim_graph_memory){.references = 1, .device = device, .bytes = bytes};
	ll_cu_result status = sim_memory_new_of_graph(sim_cuda.devices[device], bytes, memory, &memory->address);
	if (status)
		free(memory);
	else
		*ret_memory = memory;
	return status;
}

/* Takes the memory from the reserve that backs nothing, then from the card. */
ll_cu_result sim_graph_memory_back(struct sim_graph_memory *memory)
{
	struct sim_world *w = sim_cuda.world;
	struct reserve *reserve = reserve_of(memory);
	uint64_t wanted = reserve->backed_bytes + room_of(memory);
	if (memory->is_backed)
		return LL_CUDA_SUCCESS;
	if (wanted > reserve->reserved_bytes) {
		uint64_t taken = wanted + w->cards[sim_cuda.devices[memory->device]].pool_extra_bytes;
		sim_lock(w);
		sim_advance_to_now(w);
		int rc = sim_holding_take(w, sim_cuda.proc, sim_cuda.devices[memory->device],
					  taken - reserve->reserved_bytes);
		sim_unlock(w);
		if (rc < 0)
			return LL_CUDA_ERROR_OUT_OF_MEMORY;
		reserve->reserved_bytes = taken;
	}
	if (reserve->reserved_high_bytes < reserve->reserved_bytes)
		reserve->reserved_high_bytes = reserve->reserved_bytes;
	reserve->backed_bytes = wanted;
	memory->is_backed = true;
	return LL_CUDA_SUCCESS;
}

static void unback_memory(struct sim_graph_memory *memory)
{
	if (memory->is_backed)
		reserve_of(memory)->backed_bytes -= room_of(memory);
	memory->is_backed = false;
}

static bool is_in_use(const struct sim_graph_memory *memory)
{
	return memory->is_live || memory->freeing;
}

static void free_if_unused(struct sim_graph_memory *memory)
{
	if (is_in_use(memory) || memory->references)
		return;
	unback_memory(memory);
	sim_memory_free(sim_memory_find(memory->address));
	free(memory);
}

void sim_graph_memory_drop(struct sim_graph_memory *memory)
{
	memory->references--;
	free_if_unused(memory);
}

ll_cu_result sim_graph_memory_take(struct sim_graph_memory *memory, bool frees_itself)
{
	struct reserve *reserve = reserve_of(memory);
	if (memory->is_live)
		return frees_itself ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_INVALID_VALUE;
	ll_cu_result status = sim_graph_memory_back(memory);
	if (status)
		return status;
	memory->is_live = true;
	count_freed(reserve);
	reserve->used_bytes += room_of(memory);
	if (reserve->used_high_bytes < reserve->used_bytes)
		reserve->used_high_bytes = reserve->used_bytes;
	return LL_CUDA_SUCCESS;
}

static void mark_free(struct sim_graph_memory *memory)
{
	memory->is_live = false;
	reserve_of(memory)->freed_bytes += room_of(memory);
}

bool sim_graph_memory_begin_free(struct sim_graph_memory *memory)
{
	if (!memory->is_live)
		return false;
	memory->references++;
	memory->freeing++;
	mark_free(memory);
	return true;
}

void sim_graph_memory_freed(struct sim_graph_memory *memory)
{
	memory->freeing--;
	sim_graph_memory_drop(memory);
}

ll_cu_result sim_graph_memory_free(struct sim_graph_memory *memory)
{
	if (!memory->is_live)
		return LL_CUDA_ERROR_INVALID_VALUE;
	mark_free(memory);
	free_if_unused(memory);
	return LL_CUDA_SUCCESS;
}

struct sim_graph_memory *sim_graph_memory_find(uint64_t address)
{
	const struct sim_memory *entry = sim_memory_find(address);
	return entry && entry->address == address ? entry->graph : NULL;
}

uint64_t sim_graph_reserve_bytes(ll_cu_device device, enum ll_cu_graph_mem_attribute attribute)
{
	const struct reserve *reserve = &reserves[device];
	return attribute == LL_CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT       ? reserve->used_bytes
	       : attribute == LL_CU_GRAPH_MEM_ATTR_USED_MEM_HIGH        ? reserve->used_high_bytes
	       : attribute == LL_CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT ? reserve->reserved_bytes
									: reserve->reserved_high_bytes;
}

void sim_graph_reserve_reset_high(ll_cu_device device, bool is_used_high)
{
	struct reserve *reserve = &reserves[device];
	if (is_used_high)
		reserve->used_high_bytes = reserve->used_bytes;
	else
		reserve->reserved_high_bytes = reserve->reserved_bytes;
}

void sim_graph_reserve_trim(ll_cu_device device)
{
	struct sim_world *w = sim_cuda.world;
	struct reserve *reserve = &reserves[device];
	for (size_t i = 0; i < sim_cuda.memory_count; i++) {
		struct sim_graph_memory *memory = sim_cuda.memory[i].graph;
		if (memory && memory->device == device && !is_in_use(memory))
			unback_memory(memory);
	}
	count_freed(reserve);
	sim_lock(w);
	sim_holding_give_back(w, sim_cuda.proc, sim_cuda.devices[device],
			      reserve->reserved_bytes - reserve->backed_bytes);
	sim_unlock(w);
	reserve->reserved_bytes = reserve->backed_bytes;
}
