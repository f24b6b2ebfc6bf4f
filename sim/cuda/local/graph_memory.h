/*
 * graph_memory.h - memory that an allocation node of a graph promises.
 *
 * It has its addresses from the node's making on. The first launch takes the card's memory, in chunks as pools take it,
 * from what graphs have reserved on the card, and more from the card if need be. The reserve belongs to the process.
 * Nothing but cuDeviceGraphMemTrim gives it back.
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
	bool is_live; /* launched and not freed since */
	bool is_backed;
	ll_cu_device device;
	uint64_t address;
	size_t bytes;
};

/* Makes memory with one reference, at addresses of its own. OUT_OF_MEMORY. */
ll_cu_result sim_graph_memory_new(ll_cu_device device, size_t bytes, struct sim_graph_memory **ret_memory);

/* Gives up a reference. The last one frees the memory, unless it is in use. */
void sim_graph_memory_drop(struct sim_graph_memory *memory);

/* Takes the card's memory for an upload or a launch, unless it is taken. OUT_OF_MEMORY. */
ll_cu_result sim_graph_memory_back(struct sim_graph_memory *memory);

/* Takes the card's memory for a launch, and marks the memory as in use. frees_itself: a launch frees what the one
 * before has left. OUT_OF_MEMORY; INVALID_VALUE: it has not been freed since the last launch. */
ll_cu_result sim_graph_memory_take(struct sim_graph_memory *memory, bool frees_itself);

/* Begins a free in a stream's order: the next launch may take the memory. Adds a reference that sim_graph_memory_freed
 * gives up. False: the memory is not in use. */
bool sim_graph_memory_begin_free(struct sim_graph_memory *memory);

/* Ends a free in a stream's order: the stream has got there. */
void sim_graph_memory_freed(struct sim_graph_memory *memory);

/* Frees the memory at once: the program has waited. INVALID_VALUE: it is not in use. */
ll_cu_result sim_graph_memory_free(struct sim_graph_memory *memory);

/* Returns the graph's memory that begins at the address, or NULL. */
struct sim_graph_memory *sim_graph_memory_find(uint64_t address);

/* Returns what graphs have on a device, in bytes. The attribute must be a known one. */
uint64_t sim_graph_reserve_bytes(ll_cu_device device, enum ll_cu_graph_mem_attribute attribute);

/* Sets a high mark of a device to what is there now: that of used bytes, or that of reserved ones. */
void sim_graph_reserve_reset_high(ll_cu_device device, bool is_used_high);

/* Gives back to the card what graphs have reserved on a device and do not use. */
void sim_graph_reserve_trim(ll_cu_device device);

#endif
