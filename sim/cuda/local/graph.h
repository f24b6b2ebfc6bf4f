/*
 * graph.h - graphs: nodes with their work and their dependencies.
 *
 * A node has its parameters as cuGraphAddNode takes them, with its own copies of all data behind their pointers
 * (graph_node.h). A launch runs a clone of the graph whose list of nodes is in topological order.
 */
#ifndef LOADLINE_SIM_CUDA_LOCAL_GRAPH_H
#define LOADLINE_SIM_CUDA_LOCAL_GRAPH_H

#include "abi/cuda_graph.h"
#include "cuda/local/graph_memory.h"
#include "cuda/local/state.h"

struct ll_cu_graph_node {
	uint32_t magic;
	bool is_disabled; /* of an exec */
	bool is_marked;
	struct ll_cu_graph *graph;
	struct ll_cu_graph_node *original; /* of a node of a clone */
	struct ll_cu_graph_node *next;
	struct sim_nodes from;
	struct ll_cu_graph_node_params params;
	void *owned; /* the data behind the pointers of params */
	struct sim_graph_memory *memory;
	bool is_its_free; /* it is the only free node of this memory */
	size_t place;     /* its index in the list, while graphs are compared or cloned */
};

struct ll_cu_graph {
	uint32_t magic;
	bool is_child; /* its node frees it */
	size_t count;
	struct ll_cu_graph_node *first, **last;
	struct ll_cu_graph *next,
	    **link; /* a list of all graphs, so that a leak checker finds the graphs that a program has not freed */
};

struct ll_cu_graph_exec {
	uint32_t magic;
	uint64_t flags;
	struct ll_cu_graph *graph; /* its own clone */
	uint32_t last_slot,
	    last_generation; /* the stream of its last launch, because two launches of it never run at the same time */
	uint64_t last_position;
	bool was_launched;
	struct ll_cu_graph_exec *next, **link;
};

/* Adds a node to a set, unless the set has it. False: out of memory. */
bool sim_nodes_add(struct sim_nodes *nodes, struct ll_cu_graph_node *node);

/* Appends a node to a list, even if the list has it. False: out of memory. */
bool sim_nodes_append(struct sim_nodes *nodes, struct ll_cu_graph_node *node);

/* Adds all nodes of another set. False: out of memory. */
bool sim_nodes_add_all(struct sim_nodes *nodes, const struct sim_nodes *more);

/* Returns whether a node is in a set. */
bool sim_nodes_have(const struct sim_nodes *nodes, const struct ll_cu_graph_node *node);

/* Removes a node from a set. */
void sim_nodes_remove(struct sim_nodes *nodes, const struct ll_cu_graph_node *node);

/* Returns whether all nodes of a set are marked (sim_graph_mark). */
bool sim_nodes_are_marked(const struct sim_nodes *nodes);

/* Returns whether a handle is a graph. It needs no lock. */
bool sim_is_graph(const struct ll_cu_graph *graph);

/* Returns whether a handle is a node. It needs no lock. */
bool sim_is_node(const struct ll_cu_graph_node *node);

/* Returns whether all handles are nodes of a graph. It needs no lock. */
bool sim_are_nodes_of(const struct ll_cu_graph *graph, struct ll_cu_graph_node *const *nodes, size_t count);

/* Makes an empty graph. NULL: out of memory. */
struct ll_cu_graph *sim_graph_new(void);

/* Frees a graph with its nodes. */
void sim_graph_free(struct ll_cu_graph *graph);

/* Frees a node that is in no graph, and what it owns. */
void sim_node_free(struct ll_cu_graph_node *node);

/* Releases what a node owns: a reference to an event, a child graph, memory, copies of parameters. */
void sim_node_disown(struct ll_cu_graph_node *node);

/* Appends a node that depends on `count` others. The graph owns the node. On failure the node is freed. OUT_OF_MEMORY.
 */
ll_cu_result sim_graph_append(struct ll_cu_graph *graph, struct ll_cu_graph_node *node,
			      struct ll_cu_graph_node *const *from, size_t count);

/* Marks these nodes and all their dependencies, and no others. False: out of memory. */
bool sim_graph_mark(struct ll_cu_graph *graph, const struct sim_nodes *nodes);

/* Sorts the list of nodes, and those of inner graphs, in topological order. It keeps the old order as far as possible.
 * Returns NULL, or a node of a cycle. */
struct ll_cu_graph_node *sim_graph_sort_all(struct ll_cu_graph *graph);

/* Returns whether a graph, or an inner one, allocates or frees memory. */
bool sim_graph_has_memory(const struct ll_cu_graph *graph);

#endif
