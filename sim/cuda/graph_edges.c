/*
 * Queries of a graph's shape, and adding and removing edges.
 */
#include <string.h>

#include "cuda/enter.h"
#include "cuda/local/graph.h"

/*
 * A list takes two calls. Without an array the call returns the count. With an array the count is its room, and the
 * unused rest is set to NULL.
 */
struct list {
	struct ll_cu_graph_node **first, **second;
	struct ll_cu_graph_edge_data *edges;
	size_t room, count;
};

static struct list list_to(struct ll_cu_graph_node **first, struct ll_cu_graph_node **second,
			   struct ll_cu_graph_edge_data *edges, const size_t *count)
{
	return (struct list){.first = first, .second = second, .edges = edges, .room = first ? *count : 0};
}

static void put_edge(struct list *list, struct ll_cu_graph_node *first, struct ll_cu_graph_node *second)
{
	size_t i = list->count++;
	if (i >= list->room)
		return;
	list->first[i] = first;
	if (list->second)
		list->second[i] = second;
	if (list->edges)
		list->edges[i] = (struct ll_cu_graph_edge_data){0};
}

static ll_cu_result close_list(const struct list *list, size_t *ret_count)
{
	for (size_t i = list->count; i < list->room; i++) {
		list->first[i] = NULL;
		if (list->second)
			list->second[i] = NULL;
	}
	*ret_count = !list->first || list->count < list->room ? list->count : list->room;
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuGraphGetNodes(struct ll_cu_graph *graph, struct ll_cu_graph_node **ret_nodes, size_t *count)
{
	SIM_ENTER();
	if (!sim_is_graph(graph) || !count)
		return LL_CUDA_ERROR_INVALID_VALUE;
	struct list list = list_to(ret_nodes, NULL, NULL, count);
	for (struct ll_cu_graph_node *node = graph->first; node; node = node->next)
		put_edge(&list, node, NULL);
	return close_list(&list, count);
}

ll_cu_result cuGraphGetRootNodes(struct ll_cu_graph *graph, struct ll_cu_graph_node **ret_nodes, size_t *count)
{
	SIM_ENTER();
	if (!sim_is_graph(graph) || !count)
		return LL_CUDA_ERROR_INVALID_VALUE;
	struct list list = list_to(ret_nodes, NULL, NULL, count);
	for (struct ll_cu_graph_node *node = graph->first; node; node = node->next) {
		if (!node->from.count)
			put_edge(&list, node, NULL);
	}
	return close_list(&list, count);
}

ll_cu_result cuGraphGetEdges_v2(struct ll_cu_graph *graph, struct ll_cu_graph_node **ret_from,
				struct ll_cu_graph_node **ret_to, struct ll_cu_graph_edge_data *ret_edges,
				size_t *count)
{
	SIM_ENTER();
	if (!sim_is_graph(graph) || !count || !ret_from != !ret_to)
		return LL_CUDA_ERROR_INVALID_VALUE;
	struct list list = list_to(ret_from, ret_to, ret_edges, count);
	for (struct ll_cu_graph_node *node = graph->first; node; node = node->next) {
		for (size_t i = 0; i < node->from.count; i++)
			put_edge(&list, node->from.at[i], node);
	}
	return close_list(&list, count);
}

ll_cu_result cuGraphGetEdges(struct ll_cu_graph *graph, struct ll_cu_graph_node **ret_from,
			     struct ll_cu_graph_node **ret_to, size_t *count)
{
	SIM_ENTER();
	return cuGraphGetEdges_v2(graph, ret_from, ret_to, NULL, count);
}

ll_cu_result cuGraphNodeGetDependencies_v2(struct ll_cu_graph_node *node, struct ll_cu_graph_node **ret_nodes,
					   struct ll_cu_graph_edge_data *ret_edges, size_t *count)
{
	SIM_ENTER();
	if (!sim_is_node(node) || !count)
		return LL_CUDA_ERROR_INVALID_VALUE;
	struct list list = list_to(ret_nodes, NULL, ret_edges, count);
	for (size_t i = 0; i < node->from.count; i++)
		put_edge(&list, node->from.at[i], NULL);
	return close_list(&list, count);
}

ll_cu_result cuGraphNodeGetDependencies(struct ll_cu_graph_node *node, struct ll_cu_graph_node **ret_nodes,
					size_t *count)
{
	SIM_ENTER();
	return cuGraphNodeGetDependencies_v2(node, ret_nodes, NULL, count);
}

ll_cu_result cuGraphNodeGetDependentNodes_v2(struct ll_cu_graph_node *node, struct ll_cu_graph_node **ret_nodes,
					     struct ll_cu_graph_edge_data *ret_edges, size_t *count)
{
	SIM_ENTER();
	if (!sim_is_node(node) || !count)
		return LL_CUDA_ERROR_INVALID_VALUE;
	struct list list = list_to(ret_nodes, NULL, ret_edges, count);
	for (struct ll_cu_graph_node *other = node->graph->first; other; other = other->next) {
		if (sim_nodes_have(&other->from, node))
			put_edge(&list, other, NULL);
	}
	return close_list(&list, count);
}

ll_cu_result cuGraphNodeGetDependentNodes(struct ll_cu_graph_node *node, struct ll_cu_graph_node **ret_nodes,
					  size_t *count)
{
	SIM_ENTER();
	return cuGraphNodeGetDependentNodes_v2(node, ret_nodes, NULL, count);
}

static bool has_edge(const struct ll_cu_graph_node *from, const struct ll_cu_graph_node *to)
{
	return sim_nodes_have(&to->from, from);
}

ll_cu_result cuGraphAddDependencies_v2(struct ll_cu_graph *graph, struct ll_cu_graph_node *const *from,
				       struct ll_cu_graph_node *const *to, const struct ll_cu_graph_edge_data *edges,
				       size_t count)
{
	SIM_ENTER();
	(void)edges;
	if (!sim_is_graph(graph) || !sim_are_nodes_of(graph, from, count) || !sim_are_nodes_of(graph, to, count))
		return LL_CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		if (from[i] == to[i] || has_edge(from[i], to[i]))
			return LL_CUDA_ERROR_INVALID_VALUE;
	}
	bool done = true;
	sim_cuda_lock();
	for (size_t i = 0; done && i < count; i++)
		done = sim_nodes_add(&to[i]->from, from[i]);
	sim_cuda_unlock();
	return done ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_OUT_OF_MEMORY;
}

ll_cu_result cuGraphAddDependencies(struct ll_cu_graph *graph, struct ll_cu_graph_node *const *from,
				    struct ll_cu_graph_node *const *to, size_t count)
{
	SIM_ENTER();
	return cuGraphAddDependencies_v2(graph, from, to, NULL, count);
}

ll_cu_result cuGraphRemoveDependencies_v2(struct ll_cu_graph *graph, struct ll_cu_graph_node *const *from,
					  struct ll_cu_graph_node *const *to, const struct ll_cu_graph_edge_data *edges,
					  size_t count)
{
	SIM_ENTER();
	(void)edges;
	if (!sim_is_graph(graph) || !sim_are_nodes_of(graph, from, count) || !sim_are_nodes_of(graph, to, count))
		return LL_CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		if (!has_edge(from[i], to[i]))
			return LL_CUDA_ERROR_INVALID_VALUE;
	}
	sim_cuda_lock();
	for (size_t i = 0; i < count; i++)
		sim_nodes_remove(&to[i]->from, from[i]);
	sim_cuda_unlock();
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuGraphRemoveDependencies(struct ll_cu_graph *graph, struct ll_cu_graph_node *const *from,
				       struct ll_cu_graph_node *const *to, size_t count)
{
	SIM_ENTER();
	return cuGraphRemoveDependencies_v2(graph, from, to, NULL, count);
}
