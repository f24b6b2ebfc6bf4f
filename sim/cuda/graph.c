/*
 * Graphs: made, cloned, their nodes and edges.
 */
#include "cuda/graph.h"

#include <stdlib.h>

static struct ll_cu_graph *graphs;

bool sim_nodes_have(const struct sim_nodes *nodes, const struct ll_cu_graph_node *node)
{
	for (size_t i = 0; i < nodes->count; i++) {
		if (nodes->at[i] == node)
			return true;
	}
	return false;
}

static bool push(struct sim_nodes *nodes, struct ll_cu_graph_node *node)
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
	return sim_nodes_have(nodes, node) || push(nodes, node);
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

/* A node's place leads to its clone. */
static bool copy_edges(const struct ll_cu_graph *graph, const struct ll_cu_graph *clone,
		       struct ll_cu_graph_node **clones)
{
	size_t place = 0;
	for (struct ll_cu_graph_node *node = graph->first; node; node = node->next)
		node->place = place++;
	const struct ll_cu_graph_node *from = graph->first;
	for (struct ll_cu_graph_node *node = clone->first; node; node = node->next, from = from->next) {
		for (size_t i = 0; i < from->from.count; i++) {
			if (!push(&node->from, clones[from->from.at[i]->place]))
				return false;
		}
	}
	return true;
}

struct ll_cu_graph *sim_graph_clone(const struct ll_cu_graph *graph)
{
	struct ll_cu_graph *clone = sim_graph_new();
	struct ll_cu_graph_node **clones = calloc(graph->count + 1, sizeof(struct ll_cu_graph_node *));
	size_t count = 0;
	bool done = clone && clones;
	for (struct ll_cu_graph_node *node = graph->first; done && node; node = node->next) {
		clones[count] = sim_node_clone(node);
		done = clones[count] && sim_graph_append(clone, clones[count], NULL, 0) == LL_CUDA_SUCCESS;
		if (done)
			clones[count++]->original = node;
	}
	done = done && copy_edges(graph, clone, clones);
	free(clones);
	if (!done && clone)
		sim_graph_free(clone);
	return done ? clone : NULL;
}

bool sim_graph_mark(struct ll_cu_graph *graph, const struct sim_nodes *nodes)
{
	struct sim_nodes stack = {0};
	bool done = true;
	for (struct ll_cu_graph_node *node = graph->first; node; node = node->next)
		node->is_marked = false;
	for (size_t i = 0; done && i < nodes->count; i++)
		done = push(&stack, nodes->at[i]);
	while (done && stack.count) {
		struct ll_cu_graph_node *node = stack.at[--stack.count];
		if (node->is_marked)
			continue;
		node->is_marked = true;
		for (size_t i = 0; done && i < node->from.count; i++)
			done = push(&stack, node->from.at[i]);
	}
	free(stack.at);
	return done;
}

/* Puts the list in topological order, as far as may be in the old one. false: there is a cycle. */
static bool sort(struct ll_cu_graph *graph)
{
	struct ll_cu_graph_node *sorted = NULL, **end = &sorted;
	for (struct ll_cu_graph_node *node = graph->first; node; node = node->next)
		node->is_marked = false;
	/* Almost always the order is right already, and one pass takes all. */
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
	if (!sort(graph)) {
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

ll_cu_result cuGraphCreate(struct ll_cu_graph **ret_graph, unsigned int flags)
{
	SIM_ENTER();
	if (!ret_graph || flags)
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	struct ll_cu_graph *graph = sim_graph_new();
	sim_cuda_unlock();
	if (!graph)
		return LL_CUDA_ERROR_OUT_OF_MEMORY;
	*ret_graph = graph;
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuGraphDestroy(struct ll_cu_graph *graph)
{
	SIM_ENTER();
	if (!sim_is_graph(graph) || graph->is_child)
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	sim_graph_free(graph);
	sim_cuda_unlock();
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuGraphClone(struct ll_cu_graph **ret_clone, struct ll_cu_graph *graph)
{
	SIM_ENTER();
	if (!ret_clone || !sim_is_graph(graph))
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (sim_graph_has_memory(graph))
		return LL_CUDA_ERROR_NOT_SUPPORTED;
	sim_cuda_lock();
	struct ll_cu_graph *clone = sim_graph_clone(graph);
	sim_cuda_unlock();
	if (!clone)
		return LL_CUDA_ERROR_OUT_OF_MEMORY;
	*ret_clone = clone;
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuGraphNodeFindInClone(struct ll_cu_graph_node **ret_node, struct ll_cu_graph_node *original,
				    struct ll_cu_graph *clone)
{
	SIM_ENTER();
	if (!ret_node || !sim_is_node(original) || !sim_is_graph(clone))
		return LL_CUDA_ERROR_INVALID_VALUE;
	for (struct ll_cu_graph_node *node = clone->first; node; node = node->next) {
		if (node->original == original) {
			*ret_node = node;
			return LL_CUDA_SUCCESS;
		}
	}
	return LL_CUDA_ERROR_INVALID_VALUE;
}

ll_cu_result cuGraphDestroyNode(struct ll_cu_graph_node *node)
{
	SIM_ENTER();
	if (!sim_is_node(node))
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (node->params.type == LL_CU_GRAPH_NODE_TYPE_MEM_ALLOC || node->params.type == LL_CU_GRAPH_NODE_TYPE_MEM_FREE)
		return LL_CUDA_ERROR_NOT_SUPPORTED;
	sim_cuda_lock();
	struct ll_cu_graph *graph = node->graph;
	graph->last = &graph->first;
	while (*graph->last) {
		if (*graph->last == node) {
			*graph->last = node->next;
			continue;
		}
		sim_nodes_remove(&(*graph->last)->from, node);
		graph->last = &(*graph->last)->next;
	}
	graph->count--;
	sim_node_free(node);
	sim_cuda_unlock();
	return LL_CUDA_SUCCESS;
}
