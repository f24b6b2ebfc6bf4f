/*
 * Graphs: sets of nodes, lists in order, and the objects that are freed with a node.
 */
#include "cuda/local/graph.h"

#include <stdlib.h>

#include "cuda/local/event.h"

static struct ll_cu_graph *graphs;

bool sim_nodes_have(const struct sim_nodes *nodes, const struct ll_cu_graph_node *node)
{
	for (size_t i = 0; i < nodes->count; i++) {
		if (nodes->at[i] == node)
			return true;
	}
	return false;
}

bool sim_nodes_append(struct sim_nodes *nodes, struct ll_cu_graph_node *node)
{
	if (nodes->count == nodes->capacity) {
		size_t capacity = nodes->capacity ? nodes->capacity * 2 : 4;
		struct ll_cu_graph_node **grown = realloc(nodes->at, capacity * sizeof(struct ll_cu_graph_node *));
		if (!grown)
			return false;
		nodes->at = grown;
		nodes->capacity = capacity;
	}
	nodes->at[nodes->count++] = node;
	return true;
}

bool sim_nodes_add(struct sim_nodes *nodes, struct ll_cu_graph_node *node)
{
	return sim_nodes_have(nodes, node) || sim_nodes_append(nodes, node);
}

bool sim_nodes_add_all(struct sim_nodes *nodes, const struct sim_nodes *more)
{
	for (size_t i = 0; i < more->count; i++) {
		if (!sim_nodes_add(nodes, more->at[i]))
			return false;
	}
	return true;
}

void sim_nodes_remove(struct sim_nodes *nodes, const struct ll_cu_graph_node *node)
{
	size_t kept = 0;
	for (size_t i = 0; i < nodes->count; i++) {
		if (nodes->at[i] != node)
			nodes->at[kept++] = nodes->at[i];
	}
	nodes->count = kept;
}

bool sim_nodes_are_marked(const struct sim_nodes *nodes)
{
	for (size_t i = 0; i < nodes->count; i++) {
		if (!nodes->at[i]->is_marked)
			return false;
	}
	return true;
}

bool sim_is_graph(const struct ll_cu_graph *graph)
{
	return graph && graph->magic == SIM_MAGIC_GRAPH;
}

bool sim_is_node(const struct ll_cu_graph_node *node)
{
	return node && node->magic == SIM_MAGIC_NODE;
}

bool sim_are_nodes_of(const struct ll_cu_graph *graph, struct ll_cu_graph_node *const *nodes, size_t count)
{
	if (count && !nodes)
		return false;
	for (size_t i = 0; i < count; i++) {
		if (!sim_is_node(nodes[i]) || nodes[i]->graph != graph)
			return false;
	}
	return true;
}

struct ll_cu_graph *sim_graph_new(void)
{
	struct ll_cu_graph *graph = calloc(1, sizeof *graph);
	if (!graph)
		return NULL;
	graph->magic = SIM_MAGIC_GRAPH;
	graph->last = &graph->first;
	graph->next = graphs;
	graph->link = &graphs;
	if (graphs)
		graphs->link = &graph->next;
	graphs = graph;
	return graph;
}

void sim_graph_free(struct ll_cu_graph *graph)
{
	while (graph->first) {
		struct ll_cu_graph_node *node = graph->first;
		graph->first = node->next;
		sim_node_free(node);
	}
	*graph->link = graph->next;
	if (graph->next)
		graph->next->link = graph->link;
	graph->magic = 0;
	free(graph);
}

ll_cu_result sim_graph_append(struct ll_cu_graph *graph, struct ll_cu_graph_node *node,
			      struct ll_cu_graph_node *const *from, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!sim_nodes_add(&node->from, from[i])) {
			sim_node_free(node);
			return LL_CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	node->graph = graph;
	*graph->last = node;
	graph->last = &node->next;
	graph->count++;
	return LL_CUDA_SUCCESS;
}

bool sim_graph_mark(struct ll_cu_graph *graph, const struct sim_nodes *nodes)
{
	struct sim_nodes stack = {0};
	bool done = true;
	for (struct ll_cu_graph_node *node = graph->first; node; node = node->next)
		node->is_marked = false;
	for (size_t i = 0; done && i < nodes->count; i++)
		done = sim_nodes_append(&stack, nodes->at[i]);
	while (done && stack.count) {
		struct ll_cu_graph_node *node = stack.at[--stack.count];
		if (node->is_marked)
			continue;
		node->is_marked = true;
		for (size_t i = 0; done && i < node->from.count; i++)
			done = sim_nodes_append(&stack, node->from.at[i]);
	}
	free(stack.at);
	return done;
}

/* Sorts the list in topological order, and keeps the old order as far as possible. Returns false if there is a
 * cycle. */
static bool sort_nodes(struct ll_cu_graph *graph)
{
	struct ll_cu_graph_node *sorted = NULL, **end = &sorted;
	for (struct ll_cu_graph_node *node = graph->first; node; node = node->next)
		node->is_marked = false;
	/* The order is almost always right already; one pass then suffices. */
	for (bool moved = true; moved && graph->first;) {
		moved = false;
		for (struct ll_cu_graph_node **link = &graph->first; *link;) {
			struct ll_cu_graph_node *node = *link;
			if (!sim_nodes_are_marked(&node->from)) {
				link = &node->next;
				continue;
			}
			*link = node->next;
			node->next = NULL;
			node->is_marked = true;
			*end = node;
			end = &node->next;
			moved = true;
		}
	}
	bool has_cycle = graph->first != NULL;
	*end = graph->first;
	graph->first = sorted;
	graph->last = &graph->first;
	while (*graph->last)
		graph->last = &(*graph->last)->next;
	return !has_cycle;
}

struct ll_cu_graph_node *sim_graph_sort_all(struct ll_cu_graph *graph)
{
	if (!sort_nodes(graph)) {
		struct ll_cu_graph_node *node = graph->first;
		while (node->is_marked)
			node = node->next;
		return node;
	}
	for (struct ll_cu_graph_node *node = graph->first; node; node = node->next) {
		struct ll_cu_graph_node *culprit = node->params.type == LL_CU_GRAPH_NODE_TYPE_GRAPH
						       ? sim_graph_sort_all(node->params.child.graph)
						       : NULL;
		if (culprit)
			return culprit;
	}
	return NULL;
}

bool sim_graph_has_memory(const struct ll_cu_graph *graph)
{
	for (const struct ll_cu_graph_node *node = graph->first; node; node = node->next) {
		enum ll_cu_graph_node_type type = node->params.type;
		if (type == LL_CU_GRAPH_NODE_TYPE_MEM_ALLOC || type == LL_CU_GRAPH_NODE_TYPE_MEM_FREE ||
		    (type == LL_CU_GRAPH_NODE_TYPE_GRAPH && sim_graph_has_memory(node->params.child.graph)))
			return true;
	}
	return false;
}

void sim_node_disown(struct ll_cu_graph_node *node)
{
	if (node->params.type == LL_CU_GRAPH_NODE_TYPE_WAIT_EVENT ||
	    node->params.type == LL_CU_GRAPH_NODE_TYPE_EVENT_RECORD)
		sim_event_drop(node->params.event.event);
	else if (node->params.type == LL_CU_GRAPH_NODE_TYPE_GRAPH)
		sim_graph_free(node->params.child.graph);
	if (node->is_its_free)
		node->memory->has_free_node = false;
	if (node->memory)
		sim_graph_memory_drop(node->memory);
	free(node->owned);
}

void sim_node_free(struct ll_cu_graph_node *node)
{
	sim_node_disown(node);
	free(node->from.at);
	node->magic = 0;
	free(node);
}
