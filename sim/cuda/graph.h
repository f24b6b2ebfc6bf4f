/*
 * graph.h - graphs: nodes with what they do and what they depend on. All within the local lock.
 *
 * A node keeps its parameters as cuGraphAddNode takes them, with copies of its own of everything they point to. What
 * runs is a clone of the graph whose list of nodes is in topological order.
 */
#ifndef LOADLINE_SIM_CUDA_GRAPH_H
#define LOADLINE_SIM_CUDA_GRAPH_H

#include "abi/cuda_graph.h"
#include "cuda/local.h"

/*
 * Memory that an allocation node promises: addresses from the node's making on. The card's memory is taken by the first
 * launch, in chunks as pools take it, from what graphs have reserved on the card and more if need be. It belongs to the
 * process. Nothing but cuDeviceGraphMemTrim gives it back.
 */
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

struct ll_cu_graph_node {
	uint32_t magic;
	bool is_disabled; /* of an exec */
	bool is_marked;
	struct ll_cu_graph *graph;
	struct ll_cu_graph_node *original; /* of a clone's */
	struct ll_cu_graph_node *next;
	struct sim_nodes from;
	struct ll_cu_graph_node_params params;
	void *owned; /* what params points to */
	struct sim_graph_memory *memory;
	bool is_its_free; /* the one free node that memory may have */
	size_t place;     /* in the list, while graphs are compared or cloned */
};

struct ll_cu_graph {
	uint32_t magic;
	bool is_child; /* its node frees it */
	size_t count;
	struct ll_cu_graph_node *first, **last;
	struct ll_cu_graph *next, **link; /* all of them, so that a leak checker finds what a program has left */
};

struct ll_cu_graph_exec {
	uint32_t magic;
	uint64_t flags;
	struct ll_cu_graph *graph;           /* its own clone */
	uint32_t last_slot, last_generation; /* where it was last launched: it never runs beside itself */
	uint64_t last_position;
	bool was_launched;
	struct ll_cu_graph_exec *next, **link;
};

/* Sets. false: out of memory. */
bool sim_nodes_add(struct sim_nodes *nodes, struct ll_cu_graph_node *node);
bool sim_nodes_add_all(struct sim_nodes *nodes, const struct sim_nodes *more);
bool sim_nodes_have(const struct sim_nodes *nodes, const struct ll_cu_graph_node *node);
void sim_nodes_remove(struct sim_nodes *nodes, const struct ll_cu_graph_node *node);
bool sim_nodes_are_marked(const struct sim_nodes *nodes);

bool sim_is_graph(const struct ll_cu_graph *graph);
bool sim_is_node(const struct ll_cu_graph_node *node);
bool sim_are_nodes_of(const struct ll_cu_graph *graph, struct ll_cu_graph_node *const *nodes, size_t count);

struct ll_cu_graph *sim_graph_new(void);
void sim_graph_free(struct ll_cu_graph *graph);
/* Takes the node, also when it fails. */
ll_cu_result sim_graph_append(struct ll_cu_graph *graph, struct ll_cu_graph_node *node,
			      struct ll_cu_graph_node *const *from, size_t count);
/* NULL: out of memory. */
struct ll_cu_graph *sim_graph_clone(const struct ll_cu_graph *graph);
/* Marks these nodes and all that they depend on, and no others. */
bool sim_graph_mark(struct ll_cu_graph *graph, const struct sim_nodes *nodes);
/* Puts the list, and those of graphs inside, in topological order, as far as may be in the old one. NULL, or a node of
 * a cycle. */
struct ll_cu_graph_node *sim_graph_sort_all(struct ll_cu_graph *graph);
bool sim_graph_has_memory(const struct ll_cu_graph *graph);

/* cuda/graph_node.c. A node takes its parameters after checking them. */
ll_cu_result sim_node_new(const struct ll_cu_graph_node_params *params, struct ll_cu_graph_node **ret_node);
ll_cu_result sim_node_set(struct ll_cu_graph_node *node, const struct ll_cu_graph_node_params *params);
struct ll_cu_graph_node *sim_node_clone(const struct ll_cu_graph_node *node);
void sim_node_free(struct ll_cu_graph_node *node);

/* cuda/graph_memory.c. */
ll_cu_result sim_graph_memory_new(ll_cu_device device, size_t bytes, struct sim_graph_memory **ret_memory);
void sim_graph_memory_drop(struct sim_graph_memory *memory);
/* At an upload, or the launch: takes the card's memory, once. OUT_OF_MEMORY. */
ll_cu_result sim_graph_memory_back(struct sim_graph_memory *memory);
/* At a launch: takes the card's memory. OUT_OF_MEMORY; INVALID_VALUE: it has not been freed since the last one. */
ll_cu_result sim_graph_memory_take(struct sim_graph_memory *memory, bool frees_itself);
/* A node or the program frees it: the next launch may take it, its bytes stay until the stream gets there.
 * INVALID_VALUE: it is not in use. */
ll_cu_result sim_graph_memory_queue_free(struct sim_graph_memory *memory, struct ll_cu_stream *stream);
/* The stream has got there. */
void sim_graph_memory_freed(struct sim_graph_memory *memory);
/* The program frees it, and has waited. */
ll_cu_result sim_graph_memory_free(struct sim_graph_memory *memory);
/* The one that begins at the address, or NULL. */
struct sim_graph_memory *sim_graph_memory_find(uint64_t address);

#endif
