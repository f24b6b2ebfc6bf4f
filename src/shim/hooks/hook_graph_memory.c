/* Graphs that allocate: nothing is taken before they are uploaded or launched, but from here on it is looked for
 * (pools.h). */
#include "abi/cuda_graph.h"
#include "shim/interpose/hook.h"
#include "shim/memory/charge.h"
#include "shim/memory/pools.h"

LL_HOOK_EXPORT ll_cu_result cuGraphAddMemAllocNode(struct ll_cu_graph_node **ret_node, struct ll_cu_graph *graph,
						   struct ll_cu_graph_node *const *dependencies, size_t count,
						   struct ll_cu_mem_alloc_params *params)
{
	if (!ll_charge_passes() && params)
		ll_pool_expect_graphs(params->bytes);
	return ll_real()->cuGraphAddMemAllocNode(ret_node, graph, dependencies, count, params);
}

LL_HOOK_EXPORT ll_cu_result cuGraphExecDestroy(struct ll_cu_graph_exec *exec)
{
	if (!ll_charge_passes())
		ll_pool_forget_graph(exec);
	return ll_real()->cuGraphExecDestroy(exec);
}

static void look_at(const struct ll_cu_graph_node_params *params)
{
	if (!ll_charge_passes() && params && params->type == LL_CU_GRAPH_NODE_TYPE_MEM_ALLOC)
		ll_pool_expect_graphs(params->alloc.bytes);
}

LL_HOOK_EXPORT ll_cu_result cuGraphAddNode(struct ll_cu_graph_node **ret_node, struct ll_cu_graph *graph,
					   struct ll_cu_graph_node *const *dependencies, size_t count,
					   struct ll_cu_graph_node_params *params)
{
	look_at(params);
	return ll_real()->cuGraphAddNode(ret_node, graph, dependencies, count, params);
}

#define ADD_NODE_HOOK(symbol)                                                                                          \
	LL_HOOK_EXPORT ll_cu_result symbol(struct ll_cu_graph_node **ret_node, struct ll_cu_graph *graph,              \
					   struct ll_cu_graph_node *const *dependencies,                               \
					   const struct ll_cu_graph_edge_data *edges, size_t count,                    \
					   struct ll_cu_graph_node_params *params)                                     \
	{                                                                                                              \
		look_at(params);                                                                                       \
		return ll_real()->symbol(ret_node, graph, dependencies, edges, count, params);                         \
	}

ADD_NODE_HOOK(cuGraphAddNode_v2)
ADD_NODE_HOOK(cuGraphAddNode_v3)
