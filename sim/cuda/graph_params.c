/*
 * Adds single nodes to graphs, and reads and changes their parameters.
 */
#include <string.h>

#include "cuda/enter.h"
#include "cuda/local/graph.h"
#include "cuda/local/graph_node.h"

typedef struct ll_cu_graph_node *const *node_list;

static ll_cu_result add_node(struct ll_cu_graph_node **ret_node, struct ll_cu_graph *graph, node_list from,
			     size_t count, const struct ll_cu_graph_node_params *params)
{
	struct ll_cu_graph_node *node;
	if (!ret_node || !sim_is_graph(graph) || !sim_are_nodes_of(graph, from, count))
		return LL_CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 1; i < count; i++) {
		if (sim_nodes_have(&(struct sim_nodes){.at = (struct ll_cu_graph_node **)(uintptr_t)from, .count = i},
				   from[i]))
			return LL_CUDA_ERROR_INVALID_VALUE;
	}
	sim_cuda_lock();
	ll_cu_result status = sim_node_new(params, &node);
	if (!status)
		status = sim_graph_append(graph, node, from, count);
	if (!status)
		*ret_node = node;
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuGraphAddNode_v2(struct ll_cu_graph_node **ret_node, struct ll_cu_graph *graph, node_list dependencies,
			       const struct ll_cu_graph_edge_data *edges, size_t count,
			       struct ll_cu_graph_node_params *params)
{
	SIM_ENTER();
	(void)edges;
	if (!params)
		return LL_CUDA_ERROR_INVALID_VALUE;
	ll_cu_result status = add_node(ret_node, graph, dependencies, count, params);
	if (!status && params->type == LL_CU_GRAPH_NODE_TYPE_MEM_ALLOC)
		params->alloc.address = (*ret_node)->params.alloc.address;
	return status;
}

/* The newer version checks the contexts of kernels; there is only one here. */
ll_cu_result cuGraphAddNode_v3(struct ll_cu_graph_node **ret_node, struct ll_cu_graph *graph, node_list dependencies,
			       const struct ll_cu_graph_edge_data *edges, size_t count,
			       struct ll_cu_graph_node_params *params)
{
	SIM_ENTER();
	return cuGraphAddNode_v2(ret_node, graph, dependencies, edges, count, params);
}

ll_cu_result cuGraphAddNode(struct ll_cu_graph_node **ret_node, struct ll_cu_graph *graph, node_list dependencies,
			    size_t count, struct ll_cu_graph_node_params *params)
{
	SIM_ENTER();
	return cuGraphAddNode_v2(ret_node, graph, dependencies, NULL, count, params);
}

/* These functions fill in the parameters of a node for cuGraphAddNode. They return false if there are no parameters. */
static bool say_kernel(struct ll_cu_graph_node_params *say, const struct ll_cu_kernel_params *given)
{
	*say = (struct ll_cu_graph_node_params){.type = LL_CU_GRAPH_NODE_TYPE_KERNEL};
	if (given)
		say->kernel = *given;
	return given;
}

/* The older form is the beginning of the newer one. */
static bool say_kernel_v1(struct ll_cu_graph_node_params *say, const struct ll_cu_kernel_params_v1 *given)
{
	*say = (struct ll_cu_graph_node_params){.type = LL_CU_GRAPH_NODE_TYPE_KERNEL};
	if (given)
		memcpy(&say->kernel, given, sizeof *given);
	return given;
}

static bool say_copy(struct ll_cu_graph_node_params *say, const struct ll_cu_memcpy3d *given,
		     struct ll_cu_context *context)
{
	*say = (struct ll_cu_graph_node_params){.type = LL_CU_GRAPH_NODE_TYPE_MEMCPY, .copy.context = context};
	if (given)
		say->copy.copy = *given;
	return given;
}

static bool say_fill(struct ll_cu_graph_node_params *say, const struct ll_cu_memset_params *given,
		     struct ll_cu_context *context)
{
	*say = (struct ll_cu_graph_node_params){.type = LL_CU_GRAPH_NODE_TYPE_MEMSET};
	if (given)
		memcpy(&say->fill, given, sizeof *given);
	say->fill.context = context;
	return given;
}

static bool say_host(struct ll_cu_graph_node_params *say, const struct ll_cu_host_params *given)
{
	*say = (struct ll_cu_graph_node_params){.type = LL_CU_GRAPH_NODE_TYPE_HOST};
	if (given)
		say->host = *given;
	return given;
}

ll_cu_result cuGraphAddKernelNode_v2(struct ll_cu_graph_node **ret_node, struct ll_cu_graph *graph,
				     node_list dependencies, size_t count, const struct ll_cu_kernel_params *params)
{
	SIM_ENTER();
	struct ll_cu_graph_node_params say;
	return say_kernel(&say, params) ? add_node(ret_node, graph, dependencies, count, &say)
					: LL_CUDA_ERROR_INVALID_VALUE;
}

ll_cu_result cuGraphAddKernelNode(struct ll_cu_graph_node **ret_node, struct ll_cu_graph *graph, node_list dependencies,
				  size_t count, const struct ll_cu_kernel_params_v1 *params)
{
	SIM_ENTER();
	struct ll_cu_graph_node_params say;
	return say_kernel_v1(&say, params) ? add_node(ret_node, graph, dependencies, count, &say)
					   : LL_CUDA_ERROR_INVALID_VALUE;
}

ll_cu_result cuGraphAddMemcpyNode(struct ll_cu_graph_node **ret_node, struct ll_cu_graph *graph, node_list dependencies,
				  size_t count, const struct ll_cu_memcpy3d *params, struct ll_cu_context *context)
{
	SIM_ENTER();
	struct ll_cu_graph_node_params say;
	return say_copy(&say, params, context) ? add_node(ret_node, graph, dependencies, count, &say)
					       : LL_CUDA_ERROR_INVALID_VALUE;
}

ll_cu_result cuGraphAddMemsetNode(struct ll_cu_graph_node **ret_node, struct ll_cu_graph *graph, node_list dependencies,
				  size_t count, const struct ll_cu_memset_params *params, struct ll_cu_context *context)
{
	SIM_ENTER();
	struct ll_cu_graph_node_params say;
	return say_fill(&say, params, context) ? add_node(ret_node, graph, dependencies, count, &say)
					       : LL_CUDA_ERROR_INVALID_VALUE;
}

ll_cu_result cuGraphAddHostNode(struct ll_cu_graph_node **ret_node, struct ll_cu_graph *graph, node_list dependencies,
				size_t count, const struct ll_cu_host_params *params)
{
	SIM_ENTER();
	struct ll_cu_graph_node_params say;
	return say_host(&say, params) ? add_node(ret_node, graph, dependencies, count, &say)
				      : LL_CUDA_ERROR_INVALID_VALUE;
}

ll_cu_result cuGraphAddChildGraphNode(struct ll_cu_graph_node **ret_node, struct ll_cu_graph *graph,
				      node_list dependencies, size_t count, struct ll_cu_graph *child)
{
	SIM_ENTER();
	struct ll_cu_graph_node_params say = {.type = LL_CU_GRAPH_NODE_TYPE_GRAPH, .child = {.graph = child}};
	if (!sim_is_graph(child))
		return LL_CUDA_ERROR_INVALID_VALUE;
	return sim_graph_has_memory(child) ? LL_CUDA_ERROR_NOT_SUPPORTED
					   : add_node(ret_node, graph, dependencies, count, &say);
}

ll_cu_result cuGraphAddEmptyNode(struct ll_cu_graph_node **ret_node, struct ll_cu_graph *graph, node_list dependencies,
				 size_t count)
{
	SIM_ENTER();
	struct ll_cu_graph_node_params say = {.type = LL_CU_GRAPH_NODE_TYPE_EMPTY};
	return add_node(ret_node, graph, dependencies, count, &say);
}

ll_cu_result cuGraphAddEventRecordNode(struct ll_cu_graph_node **ret_node, struct ll_cu_graph *graph,
				       node_list dependencies, size_t count, struct ll_cu_event *event)
{
	SIM_ENTER();
	struct ll_cu_graph_node_params say = {.type = LL_CU_GRAPH_NODE_TYPE_EVENT_RECORD, .event = {event}};
	return add_node(ret_node, graph, dependencies, count, &say);
}

ll_cu_result cuGraphAddEventWaitNode(struct ll_cu_graph_node **ret_node, struct ll_cu_graph *graph,
				     node_list dependencies, size_t count, struct ll_cu_event *event)
{
	SIM_ENTER();
	struct ll_cu_graph_node_params say = {.type = LL_CU_GRAPH_NODE_TYPE_WAIT_EVENT, .event = {event}};
	return add_node(ret_node, graph, dependencies, count, &say);
}

ll_cu_result cuGraphAddMemAllocNode(struct ll_cu_graph_node **ret_node, struct ll_cu_graph *graph,
				    node_list dependencies, size_t count, struct ll_cu_mem_alloc_params *params)
{
	SIM_ENTER();
	struct ll_cu_graph_node_params say = {.type = LL_CU_GRAPH_NODE_TYPE_MEM_ALLOC};
	if (!params)
		return LL_CUDA_ERROR_INVALID_VALUE;
	say.alloc = *params;
	ll_cu_result status = add_node(ret_node, graph, dependencies, count, &say);
	if (!status)
		params->address = (*ret_node)->params.alloc.address;
	return status;
}

ll_cu_result cuGraphAddMemFreeNode(struct ll_cu_graph_node **ret_node, struct ll_cu_graph *graph,
				   node_list dependencies, size_t count, ll_cu_deviceptr address)
{
	SIM_ENTER();
	struct ll_cu_graph_node_params say = {.type = LL_CU_GRAPH_NODE_TYPE_MEM_FREE, .free = {address}};
	return add_node(ret_node, graph, dependencies, count, &say);
}

ll_cu_result cuGraphAddBatchMemOpNode(struct ll_cu_graph_node **ret_node, struct ll_cu_graph *graph,
				      node_list dependencies, size_t count, const struct ll_cu_mem_op_params *params)
{
	SIM_ENTER();
	struct ll_cu_graph_node_params say = {.type = LL_CU_GRAPH_NODE_TYPE_BATCH_MEM_OP};
	if (!params)
		return LL_CUDA_ERROR_INVALID_VALUE;
	say.mem_op = *params;
	return add_node(ret_node, graph, dependencies, count, &say);
}

ll_cu_result cuGraphNodeGetType(struct ll_cu_graph_node *node, enum ll_cu_graph_node_type *ret_type)
{
	SIM_ENTER();
	if (!sim_is_node(node) || !ret_type)
		return LL_CUDA_ERROR_INVALID_VALUE;
	*ret_type = node->params.type;
	return LL_CUDA_SUCCESS;
}

static bool is_a(const struct ll_cu_graph_node *node, enum ll_cu_graph_node_type type)
{
	return sim_is_node(node) && node->params.type == type;
}

/* Copies size bytes of the node's own parameters to the caller. */
static ll_cu_result get_params(const struct ll_cu_graph_node *node, enum ll_cu_graph_node_type type, const void *from,
			       void *ret, size_t size)
{
	if (!is_a(node, type) || !ret)
		return LL_CUDA_ERROR_INVALID_VALUE;
	memcpy(ret, from, size);
	return LL_CUDA_SUCCESS;
}

static ll_cu_result set_params(struct ll_cu_graph_node *node, bool is_given, const struct ll_cu_graph_node_params *say)
{
	if (!is_given || !sim_is_node(node))
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	ll_cu_result status = sim_node_set(node, say);
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuGraphKernelNodeGetParams_v2(struct ll_cu_graph_node *node, struct ll_cu_kernel_params *ret_params)
{
	SIM_ENTER();
	return get_params(node, LL_CU_GRAPH_NODE_TYPE_KERNEL, &node->params.kernel, ret_params, sizeof *ret_params);
}

ll_cu_result cuGraphKernelNodeSetParams_v2(struct ll_cu_graph_node *node, const struct ll_cu_kernel_params *params)
{
	SIM_ENTER();
	struct ll_cu_graph_node_params say;
	bool is_given = say_kernel(&say, params);
	return set_params(node, is_given, &say);
}

ll_cu_result cuGraphKernelNodeGetParams(struct ll_cu_graph_node *node, struct ll_cu_kernel_params_v1 *ret_params)
{
	SIM_ENTER();
	return get_params(node, LL_CU_GRAPH_NODE_TYPE_KERNEL, &node->params.kernel, ret_params, sizeof *ret_params);
}

ll_cu_result cuGraphKernelNodeSetParams(struct ll_cu_graph_node *node, const struct ll_cu_kernel_params_v1 *params)
{
	SIM_ENTER();
	struct ll_cu_graph_node_params say;
	bool is_given = say_kernel_v1(&say, params);
	return set_params(node, is_given, &say);
}

ll_cu_result cuGraphMemcpyNodeGetParams(struct ll_cu_graph_node *node, struct ll_cu_memcpy3d *ret_params)
{
	SIM_ENTER();
	return get_params(node, LL_CU_GRAPH_NODE_TYPE_MEMCPY, &node->params.copy.copy, ret_params, sizeof *ret_params);
}

ll_cu_result cuGraphMemcpyNodeSetParams(struct ll_cu_graph_node *node, const struct ll_cu_memcpy3d *params)
{
	SIM_ENTER();
	struct ll_cu_graph_node_params say;
	bool is_given = say_copy(&say, params, sim_is_node(node) ? node->params.copy.context : NULL);
	return set_params(node, is_given, &say);
}

ll_cu_result cuGraphMemsetNodeGetParams(struct ll_cu_graph_node *node, struct ll_cu_memset_params *ret_params)
{
	SIM_ENTER();
	return get_params(node, LL_CU_GRAPH_NODE_TYPE_MEMSET, &node->params.fill, ret_params, sizeof *ret_params);
}

ll_cu_result cuGraphMemsetNodeSetParams(struct ll_cu_graph_node *node, const struct ll_cu_memset_params *params)
{
	SIM_ENTER();
	struct ll_cu_graph_node_params say;
	bool is_given = say_fill(&say, params, sim_is_node(node) ? node->params.fill.context : NULL);
	return set_params(node, is_given, &say);
}

ll_cu_result cuGraphHostNodeGetParams(struct ll_cu_graph_node *node, struct ll_cu_host_params *ret_params)
{
	SIM_ENTER();
	return get_params(node, LL_CU_GRAPH_NODE_TYPE_HOST, &node->params.host, ret_params, sizeof *ret_params);
}

ll_cu_result cuGraphHostNodeSetParams(struct ll_cu_graph_node *node, const struct ll_cu_host_params *params)
{
	SIM_ENTER();
	struct ll_cu_graph_node_params say;
	bool is_given = say_host(&say, params);
	return set_params(node, is_given, &say);
}

ll_cu_result cuGraphChildGraphNodeGetGraph(struct ll_cu_graph_node *node, struct ll_cu_graph **ret_graph)
{
	SIM_ENTER();
	return get_params(node, LL_CU_GRAPH_NODE_TYPE_GRAPH, &node->params.child.graph, ret_graph, sizeof *ret_graph);
}

ll_cu_result cuGraphEventRecordNodeGetEvent(struct ll_cu_graph_node *node, struct ll_cu_event **ret_event)
{
	SIM_ENTER();
	return get_params(node, LL_CU_GRAPH_NODE_TYPE_EVENT_RECORD, &node->params.event.event, ret_event,
			  sizeof *ret_event);
}

ll_cu_result cuGraphEventWaitNodeGetEvent(struct ll_cu_graph_node *node, struct ll_cu_event **ret_event)
{
	SIM_ENTER();
	return get_params(node, LL_CU_GRAPH_NODE_TYPE_WAIT_EVENT, &node->params.event.event, ret_event,
			  sizeof *ret_event);
}

ll_cu_result cuGraphMemAllocNodeGetParams(struct ll_cu_graph_node *node, struct ll_cu_mem_alloc_params *ret_params)
{
	SIM_ENTER();
	return get_params(node, LL_CU_GRAPH_NODE_TYPE_MEM_ALLOC, &node->params.alloc, ret_params, sizeof *ret_params);
}

ll_cu_result cuGraphMemFreeNodeGetParams(struct ll_cu_graph_node *node, ll_cu_deviceptr *ret_address)
{
	SIM_ENTER();
	return get_params(node, LL_CU_GRAPH_NODE_TYPE_MEM_FREE, &node->params.free.address, ret_address,
			  sizeof *ret_address);
}
