/*
 * Memory of graphs: promised by a node, taken by a launch.
 */
#include <stdlib.h>

#include "cuda_graph.h"

static struct sim_memory *entry_of(const struct sim_graph_memory *memory)
{
	struct sim_memory *entry = sim_memory_find(memory->address);
	return entry && entry->graph == memory ? entry : NULL; /* it goes with its context */
}

ll_cu_result sim_graph_memory_new(size_t bytes, struct sim_graph_memory **ret_memory)
{
	struct ll_cu_context *context;
	ll_cu_result status = sim_current(&context);
	if (status)
		return status;
	struct sim_graph_memory *memory = calloc(1, sizeof *memory);
	if (!memory)
		return LL_CUDA_ERROR_OUT_OF_MEMORY;
	*memory = (struct sim_graph_memory){.references = 1, .bytes = bytes};
	status = sim_memory_reserve(context, bytes, memory, &memory->address);
	if (status)
		free(memory);
	else
		*ret_memory = memory;
	return status;
}

static void free_if_unused(struct sim_graph_memory *memory)
{
	struct sim_memory *entry = entry_of(memory);
	if (memory->is_live && entry)
		return;
	if (entry && !memory->has_exec)
		sim_memory_give_back(entry);
	if (memory->references)
		return;
	if (entry)
		sim_memory_free(entry);
	free(memory);
}

void sim_graph_memory_drop(struct sim_graph_memory *memory)
{
	memory->references--;
	free_if_unused(memory);
}

ll_cu_result sim_graph_memory_take(struct sim_graph_memory *memory, bool frees_itself)
{
	struct sim_memory *entry = entry_of(memory);
	if (!entry || (memory->is_live && !frees_itself))
		return LL_CUDA_ERROR_INVALID_VALUE;
	ll_cu_result status = sim_memory_take(entry);
	if (status == LL_CUDA_SUCCESS)
		memory->is_live = true;
	return status;
}

void sim_graph_memory_retire(struct sim_graph_memory *memory)
{
	memory->has_exec = false;
	free_if_unused(memory);
}

void sim_graph_memory_release(struct sim_graph_memory *memory)
{
	memory->is_live = false;
	free_if_unused(memory);
}

void sim_graph_memory_trim(uint32_t card)
{
	for (size_t i = 0; i < sim_cuda.memory_count; i++) {
		struct sim_memory *entry = &sim_cuda.memory[i];
		if (entry->graph && !entry->graph->is_live && entry->context->card == card)
			sim_memory_give_back(entry);
	}
}

struct sim_graph_memory *sim_graph_memory_find(uint64_t address)
{
	const struct sim_memory *entry = sim_memory_find(address);
	return entry && entry->address == address ? entry->graph : NULL;
}
