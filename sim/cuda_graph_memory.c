/*
 * Memory of graphs: promised by a node, taken by a launch; and what a program is told about it.
 */
#include <stdlib.h>

#include "cuda_graph.h"
#include "engine.h"
#include "holding.h"

#define UNIT_BYTES (UINT64_C(2) << 20)

/* What graphs have on a card. */
static struct reserve {
	uint64_t reserved_bytes, reserved_high_bytes, used_bytes, used_high_bytes;
} reserves[SIM_CARDS];

static struct reserve *reserve_of(const struct sim_graph_memory *memory)
{
	return &reserves[memory->device];
}

static uint64_t room_of(const struct sim_graph_memory *memory)
{
	return (memory->bytes + UNIT_BYTES - 1) / UNIT_BYTES * UNIT_BYTES;
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

static ll_cu_result back(struct sim_graph_memory *memory)
{
	struct sim_world *w = sim_cuda.world;
	struct reserve *reserve = reserve_of(memory);
	if (memory->is_backed)
		return LL_CUDA_SUCCESS;
	sim_lock(w);
	sim_advance_to_now(w);
	int rc = sim_holding_take(w, sim_cuda.proc, sim_cuda.devices[memory->device], room_of(memory));
	sim_unlock(w);
	if (rc < 0)
		return LL_CUDA_ERROR_OUT_OF_MEMORY;
	memory->is_backed = true;
	reserve->reserved_bytes += room_of(memory);
	if (reserve->reserved_high_bytes < reserve->reserved_bytes)
		reserve->reserved_high_bytes = reserve->reserved_bytes;
	return LL_CUDA_SUCCESS;
}

static void give_back(struct sim_graph_memory *memory)
{
	struct sim_world *w = sim_cuda.world;
	if (!memory->is_backed)
		return;
	memory->is_backed = false;
	reserve_of(memory)->reserved_bytes -= room_of(memory);
	sim_lock(w);
	sim_holding_give_back(w, sim_cuda.proc, sim_cuda.devices[memory->device], room_of(memory));
	sim_unlock(w);
}

static bool is_in_use(const struct sim_graph_memory *memory)
{
	return memory->is_live || memory->freeing;
}

static void settle(struct sim_graph_memory *memory)
{
	if (is_in_use(memory))
		return;
	if (!memory->has_exec)
		give_back(memory);
	if (memory->references)
		return;
	give_back(memory);
	sim_memory_free(sim_memory_find(memory->address));
	free(memory);
}

void sim_graph_memory_drop(struct sim_graph_memory *memory)
{
	memory->references--;
	settle(memory);
}

ll_cu_result sim_graph_memory_take(struct sim_graph_memory *memory, bool frees_itself)
{
	struct reserve *reserve = reserve_of(memory);
	if (memory->is_live)
		return frees_itself ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_INVALID_VALUE;
	ll_cu_result status = back(memory);
	if (status)
		return status;
	memory->is_live = true;
	reserve->used_bytes += memory->bytes;
	if (reserve->used_high_bytes < reserve->used_bytes)
		reserve->used_high_bytes = reserve->used_bytes;
	return LL_CUDA_SUCCESS;
}

void sim_graph_memory_retire(struct sim_graph_memory *memory)
{
	memory->has_exec = false;
	settle(memory);
}

static void mark_free(struct sim_graph_memory *memory)
{
	memory->is_live = false;
	reserve_of(memory)->used_bytes -= memory->bytes;
}

ll_cu_result sim_graph_memory_queue_free(struct sim_graph_memory *memory, struct ll_cu_stream *stream)
{
	struct sim_op op = {.kind = SIM_OP_MARK, .module = SIM_NONE};
	struct sim_action action = {.kind = SIM_ACTION_FREE, .graph = memory};
	if (!memory->is_live)
		return LL_CUDA_ERROR_INVALID_VALUE;
	memory->references++;
	memory->freeing++;
	mark_free(memory);
	ll_cu_result status = sim_queue(stream, &op, &action, NULL);
	if (status)
		sim_graph_memory_freed(memory);
	return status;
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
	settle(memory);
	return LL_CUDA_SUCCESS;
}

struct sim_graph_memory *sim_graph_memory_find(uint64_t address)
{
	const struct sim_memory *entry = sim_memory_find(address);
	return entry && entry->address == address ? entry->graph : NULL;
}

static bool is_device(ll_cu_device device)
{
	return device >= 0 && device < sim_cuda.device_count;
}

ll_cu_result cuDeviceGetGraphMemAttribute(ll_cu_device device, enum ll_cu_graph_mem_attribute attribute,
					  void *ret_value)
{
	SIM_ENTER();
	if (!ret_value || (unsigned)attribute > LL_CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (!is_device(device))
		return LL_CUDA_ERROR_INVALID_DEVICE;
	sim_cuda_lock();
	const struct reserve *reserve = &reserves[device];
	*(uint64_t *)ret_value = attribute == LL_CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT ? reserve->used_bytes
				 : attribute == LL_CU_GRAPH_MEM_ATTR_USED_MEM_HIGH  ? reserve->used_high_bytes
				 : attribute == LL_CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT
				     ? reserve->reserved_bytes
				     : reserve->reserved_high_bytes;
	sim_cuda_unlock();
	return LL_CUDA_SUCCESS;
}

/* The high marks start anew at what is there now; nothing else can be set. */
ll_cu_result cuDeviceSetGraphMemAttribute(ll_cu_device device, enum ll_cu_graph_mem_attribute attribute, void *value)
{
	SIM_ENTER();
	bool is_used_high = attribute == LL_CU_GRAPH_MEM_ATTR_USED_MEM_HIGH;
	if (!value || (!is_used_high && attribute != LL_CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH) ||
	    *(const uint64_t *)value)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (!is_device(device))
		return LL_CUDA_ERROR_INVALID_DEVICE;
	sim_cuda_lock();
	struct reserve *reserve = &reserves[device];
	if (is_used_high)
		reserve->used_high_bytes = reserve->used_bytes;
	else
		reserve->reserved_high_bytes = reserve->reserved_bytes;
	sim_cuda_unlock();
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuDeviceGraphMemTrim(ll_cu_device device)
{
	SIM_ENTER();
	if (!is_device(device))
		return LL_CUDA_ERROR_INVALID_DEVICE;
	sim_cuda_lock();
	for (size_t i = 0; i < sim_cuda.memory_count; i++) {
		struct sim_graph_memory *memory = sim_cuda.memory[i].graph;
		if (memory && memory->device == device && !is_in_use(memory))
			give_back(memory);
	}
	sim_cuda_unlock();
	return LL_CUDA_SUCCESS;
}
