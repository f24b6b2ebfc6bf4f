/*
 * Graphs: make, clone, destroy.
 */
#include "cuda/local/graph.h"
#include "cuda/enter.h"
#include "cuda/local/graph_node.h"

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
