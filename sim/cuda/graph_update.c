/*
 * Changes executable graphs: by a graph of the same shape, or node by node.
 */
#include <string.h>

#include "cuda/enter.h"
#include "cuda/local/graph.h"
#include "cuda/local/graph_node.h"

static bool is_exec(const struct ll_cu_graph_exec *exec)
{
	return exec && exec->magic == SIM_MAGIC_EXEC;
}

static void number_nodes(struct ll_cu_graph *graph)
{
	size_t place = 0;
	for (struct ll_cu_graph_node *node = graph->first; node; node = node->next)
		node->place = place++;
}

/* Whether the two nodes depend on nodes at the same places, in the same order. Graphs that are built in the same way
 * have the same order. */
static bool same_edges(const struct ll_cu_graph_node *a, const struct ll_cu_graph_node *b)
{
	if (a->from.count != b->from.count)
		return false;
	for (size_t i = 0; i < a->from.count; i++) {
		if (a->from.at[i]->place != b->from.at[i]->place)
			return false;
	}
	return true;
}

static enum ll_cu_graph_update_result compare_graphs(struct ll_cu_graph *now, struct ll_cu_graph *then,
						     const struct ll_cu_graph_node **ret_culprit)
{
	number_nodes(now);
	number_nodes(then);
	struct ll_cu_graph_node *b = then->first;
	*ret_culprit = NULL;
	for (struct ll_cu_graph_node *a = now->first; a && b; a = a->next, b = b->next) {
		*ret_culprit = b;
		if (a->params.type != b->params.type)
			return LL_CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
		if (!same_edges(a, b))
			return LL_CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
		if (a->memory || b->memory)
			return LL_CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
		if (a->params.type == LL_CU_GRAPH_NODE_TYPE_KERNEL &&
		    a->params.kernel.context != b->params.kernel.context)
			return LL_CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED;
		if (a->params.type != LL_CU_GRAPH_NODE_TYPE_GRAPH)
			continue;
		const struct ll_cu_graph_node *inside;
		enum ll_cu_graph_update_result result =
		    compare_graphs(a->params.child.graph, b->params.child.graph, &inside);
		if (result)
			return result;
	}
	*ret_culprit = NULL;
	return now->count == then->count ? LL_CU_GRAPH_EXEC_UPDATE_SUCCESS
					 : LL_CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
}

/* The program identifies nodes by those of the graph from which the exec was made. */
static void take_names(const struct ll_cu_graph *from, struct ll_cu_graph *to)
{
	struct ll_cu_graph_node *b = to->first;
	for (const struct ll_cu_graph_node *a = from->first; a; a = a->next, b = b->next) {
		b->original = a->original;
		b->is_disabled = a->is_disabled;
		if (a->params.type == LL_CU_GRAPH_NODE_TYPE_GRAPH)
			take_names(a->params.child.graph, b->params.child.graph);
	}
}

static ll_cu_result update_exec(struct ll_cu_graph_exec *exec, struct ll_cu_graph *graph,
				struct ll_cu_graph_update_info *info)
{
	const struct ll_cu_graph_node *culprit = NULL;
	struct ll_cu_graph *clone = sim_graph_clone(graph);
	*info = (struct ll_cu_graph_update_info){.result = LL_CU_GRAPH_EXEC_UPDATE_ERROR};
	if (!clone)
		return LL_CUDA_ERROR_OUT_OF_MEMORY;
	info->result =
	    sim_graph_sort_all(clone) ? LL_CU_GRAPH_EXEC_UPDATE_ERROR : compare_graphs(exec->graph, clone, &culprit);
	info->error_node = culprit ? culprit->original : NULL;
	if (info->result) {
		sim_graph_free(clone);
		return LL_CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
	}
	take_names(exec->graph, clone);
	sim_graph_free(exec->graph);
	exec->graph = clone;
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuGraphExecUpdate_v2(struct ll_cu_graph_exec *exec, struct ll_cu_graph *graph,
				  struct ll_cu_graph_update_info *ret_info)
{
	SIM_ENTER();
	struct ll_cu_graph_update_info info;
	if (!is_exec(exec) || !sim_is_graph(graph) || graph->is_child)
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	ll_cu_result status = update_exec(exec, graph, &info);
	sim_cuda_unlock();
	if (ret_info)
		*ret_info = info;
	return status;
}

ll_cu_result cuGraphExecUpdate(struct ll_cu_graph_exec *exec, struct ll_cu_graph *graph,
			       struct ll_cu_graph_node **ret_error_node, enum ll_cu_graph_update_result *ret_result)
{
	SIM_ENTER();
	struct ll_cu_graph_update_info info = {.result = LL_CU_GRAPH_EXEC_UPDATE_ERROR};
	ll_cu_result status = cuGraphExecUpdate_v2(exec, graph, &info);
	if (ret_error_node)
		*ret_error_node = info.error_node;
	if (ret_result)
		*ret_result = info.result;
	return status;
}

static struct ll_cu_graph_node *find_clone_of(const struct ll_cu_graph *graph, const struct ll_cu_graph_node *original)
{
	for (struct ll_cu_graph_node *node = graph->first; node; node = node->next) {
		if (node->original == original)
			return node;
		struct ll_cu_graph_node *inside = node->params.type == LL_CU_GRAPH_NODE_TYPE_GRAPH
						      ? find_clone_of(node->params.child.graph, original)
						      : NULL;
		if (inside)
			return inside;
	}
	return NULL;
}

static ll_cu_result set_exec_node(struct ll_cu_graph_exec *exec, const struct ll_cu_graph_node *original,
				  const struct ll_cu_graph_node_params *params)
{
	if (!is_exec(exec) || !original)
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	struct ll_cu_graph_node *node = find_clone_of(exec->graph, original);
	ll_cu_result status = node ? sim_node_set(node, params) : LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuGraphExecKernelNodeSetParams_v2(struct ll_cu_graph_exec *exec, struct ll_cu_graph_node *node,
					       const struct ll_cu_kernel_params *params)
{
	SIM_ENTER();
	struct ll_cu_graph_node_params say = {.type = LL_CU_GRAPH_NODE_TYPE_KERNEL};
	if (!params)
		return LL_CUDA_ERROR_INVALID_VALUE;
	say.kernel = *params;
	return set_exec_node(exec, node, &say);
}

ll_cu_result cuGraphExecKernelNodeSetParams(struct ll_cu_graph_exec *exec, struct ll_cu_graph_node *node,
					    const struct ll_cu_kernel_params_v1 *params)
{
	SIM_ENTER();
	struct ll_cu_graph_node_params say = {.type = LL_CU_GRAPH_NODE_TYPE_KERNEL};
	if (!params)
		return LL_CUDA_ERROR_INVALID_VALUE;
	memcpy(&say.kernel, params, sizeof *params);
	return set_exec_node(exec, node, &say);
}

ll_cu_result cuGraphExecMemcpyNodeSetParams(struct ll_cu_graph_exec *exec, struct ll_cu_graph_node *node,
					    const struct ll_cu_memcpy3d *params, struct ll_cu_context *context)
{
	SIM_ENTER();
	struct ll_cu_graph_node_params say = {.type = LL_CU_GRAPH_NODE_TYPE_MEMCPY, .copy.context = context};
	if (!params)
		return LL_CUDA_ERROR_INVALID_VALUE;
	say.copy.copy = *params;
	return set_exec_node(exec, node, &say);
}

ll_cu_result cuGraphExecMemsetNodeSetParams(struct ll_cu_graph_exec *exec, struct ll_cu_graph_node *node,
					    const struct ll_cu_memset_params *params, struct ll_cu_context *context)
{
	SIM_ENTER();
	struct ll_cu_graph_node_params say = {.type = LL_CU_GRAPH_NODE_TYPE_MEMSET};
	if (!params)
		return LL_CUDA_ERROR_INVALID_VALUE;
	memcpy(&say.fill, params, sizeof *params);
	say.fill.context = context;
	return set_exec_node(exec, node, &say);
}

ll_cu_result cuGraphExecHostNodeSetParams(struct ll_cu_graph_exec *exec, struct ll_cu_graph_node *node,
					  const struct ll_cu_host_params *params)
{
	SIM_ENTER();
	struct ll_cu_graph_node_params say = {.type = LL_CU_GRAPH_NODE_TYPE_HOST};
	if (!params)
		return LL_CUDA_ERROR_INVALID_VALUE;
	say.host = *params;
	return set_exec_node(exec, node, &say);
}

/* Kernels, copies and memsets can be disabled. */
static struct ll_cu_graph_node *find_switch(const struct ll_cu_graph_exec *exec,
					    const struct ll_cu_graph_node *original)
{
	struct ll_cu_graph_node *node = is_exec(exec) && original ? find_clone_of(exec->graph, original) : NULL;
	return node && node->params.type <= LL_CU_GRAPH_NODE_TYPE_MEMSET ? node : NULL;
}

ll_cu_result cuGraphNodeSetEnabled(struct ll_cu_graph_exec *exec, struct ll_cu_graph_node *original,
				   unsigned int is_enabled)
{
	SIM_ENTER();
	sim_cuda_lock();
	struct ll_cu_graph_node *node = find_switch(exec, original);
	if (node)
		node->is_disabled = !is_enabled;
	sim_cuda_unlock();
	return node ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_INVALID_VALUE;
}

ll_cu_result cuGraphNodeGetEnabled(struct ll_cu_graph_exec *exec, struct ll_cu_graph_node *original,
				   unsigned int *ret_enabled)
{
	SIM_ENTER();
	if (!ret_enabled)
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	const struct ll_cu_graph_node *node = find_switch(exec, original);
	if (node)
		*ret_enabled = !node->is_disabled;
	sim_cuda_unlock();
	return node ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_INVALID_VALUE;
}
