/*
 * graph_memory.h - the memory of an allocation node of a graph.
 *
 * It gets its addresses when the node is made. The first launch takes memory of the card, in chunks as pools do: first
 * from the graphs' reserve on the card, then from the card. The reserve belongs to the process. Only
 * cuDeviceGraphMemTrim returns it to the card.
 */
#ifndef LOADLINE_SIM_CUDA_LOCAL_GRAPH_MEMORY_H
#define LOADLINE_SIM_CUDA_LOCAL_GRAPH_MEMORY_H

#include "abi/cuda_graph.h"
#include "cuda/local/state.h"

struct sim_graph_memory {
	unsigned references; /* nodes, and queued frees */
	unsigned freeing;    /* queued frees */
	bool has_exec;
	bool has_free_node;
	bool is_live; /* allocated by a launch and not freed since */
	bool is_backed;
	ll_cu_device device;
	uint64_t address;
	size_t bytes;
};

/* Makes memory with one reference, at addresses of its own. OUT_OF_MEMORY. */
ll_cu_result sim_graph_memory_new(ll_cu_device device, size_t bytes, struct sim_graph_memory **ret_memory);

/* Releases a reference. The last one frees the memory, unless it is in use. */
void sim_graph_memory_drop(struct sim_graph_memory *memory);

/* Takes the card's memory for an upload or a launch, unless it has been taken. OUT_OF_MEMORY. */
ll_cu_result sim_graph_memory_back(struct sim_graph_memory *memory);

/* Takes the card's memory for a launch, and marks the memory as in use. frees_itself: a launch first frees what the
 * launch before left. OUT_OF_MEMORY; INVALID_VALUE: it has not been freed since the last launch. */
ll_cu_result sim_graph_memory_take(struct sim_graph_memory *memory, bool frees_itself);

/* Begins a free in a stream's order: the next launch may take the memory. Adds a reference, which
 * sim_graph_memory_freed releases. False: the memory is not in use. */
bool sim_graph_memory_begin_free(struct sim_graph_memory *memory);

/* Ends a free in a stream's order: the stream has reached it. */
void sim_graph_memory_freed(struct sim_graph_memory *memory);

/* Frees the memory at once, because the program has waited. INVALID_VALUE: it is not in use. */
ll_cu_result sim_graph_memory_free(struct sim_graph_memory *memory);

/* Returns the graph's memory that begins at the address, or NULL. */
struct sim_graph_memory *sim_graph_memory_find(uint64_t address);

/* Returns the graphs' memory on a device, in bytes. The attribute must be known. */
uint64_t sim_graph_reserve_bytes(ll_cu_device device, enum ll_cu_graph_mem_attribute attribute);

/* Resets a high mark of a device to the present value: that of used bytes, or that of reserved bytes. */
void sim_graph_reserve_reset_high(ll_cu_device device, bool is_used_high);

/* Returns the unused reserve of graphs on a device to the card. */
void sim_graph_reserve_trim(ll_cu_device device);

#endif
