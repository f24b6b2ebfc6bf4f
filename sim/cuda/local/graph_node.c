/*
 * Nodes: checks the parameters of each type, and copies the data behind their pointers.
 */
#include "cuda/local/graph_node.h"

#include <stdlib.h>
#include <string.h>

#include "cuda/local/copy.h"
#include "cuda/local/current.h"
#include "cuda/local/event.h"
#include "cuda/local/graph.h"
#include "cuda/local/graph_memory.h"
#include "cuda/local/kernel.h"
#include "cuda/local/module.h"

/* Stores pointers to the arguments, and then the arguments' bytes, so that the program can read them back in the same
 * form. */
static ll_cu_result own_kernel(struct ll_cu_graph_node *node)
{
	struct ll_cu_kernel_params *kernel = &node->params.kernel;
	struct ll_cu_context *context = kernel->context;
	const char *buffer;
	if (!kernel->function)
		kernel->function = (void *)kernel->kernel;
	ll_cu_result status = sim_kernel_check(kernel);
	if (!status && !context)
		status = sim_current(&context);
	if (!status)
		status = sim_function_in(context, kernel->function, &kernel->function);
	if (!status)
		status = sim_kernel_arguments(kernel, &buffer);
	if (status)
		return status;
	const struct sim_ptx_entry *entry = kernel->function->entry;
	size_t table = entry->param_count * sizeof(void *);
	void **pointers = entry->param_count ? malloc(table + entry->param_bytes) : NULL;
	if (entry->param_count && !pointers)
		return LL_CUDA_ERROR_OUT_OF_MEMORY;
	for (unsigned i = 0; i < entry->param_count; i++) {
		size_t offset = entry->params[i].offset;
		pointers[i] = (char *)pointers + table + offset;
		memcpy(pointers[i], buffer ? buffer + offset : kernel->params[i], entry->params[i].size);
	}
	kernel->params = pointers;
	kernel->extra = NULL;
	kernel->context = kernel->function->module->context;
	node->owned = pointers;
	return LL_CUDA_SUCCESS;
}

static ll_cu_result own_child(struct ll_cu_graph_node *node)
{
	struct ll_cu_child_graph_params *child = &node->params.child;
	if (!sim_is_graph(child->graph) || child->ownership > LL_CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (child->ownership == LL_CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE) {
		child->graph = sim_graph_clone(child->graph);
		if (!child->graph)
			return LL_CUDA_ERROR_OUT_OF_MEMORY;
	}
	child->graph->is_child = true;
	return LL_CUDA_SUCCESS;
}

static ll_cu_result own_values(struct ll_cu_graph_node *node)
{
	struct ll_cu_mem_op_params *values = &node->params.mem_op;
	if (!values->count || values->count > 256 || !values->ops || values->flags)
		return LL_CUDA_ERROR_INVALID_VALUE;
	size_t bytes = values->count * sizeof *values->ops;
	node->owned = malloc(bytes);
	if (!node->owned)
		return LL_CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(node->owned, values->ops, bytes);
	values->ops = node->owned;
	return LL_CUDA_SUCCESS;
}

static ll_cu_result own_memory(struct ll_cu_graph_node *node)
{
	struct ll_cu_mem_alloc_params *alloc = &node->params.alloc;
	ll_cu_device device;
	if (!alloc->bytes || alloc->pool.type != LL_CU_MEM_ALLOCATION_TYPE_PINNED ||
	    !sim_location_is_device(&alloc->pool.location, &device))
		return LL_CUDA_ERROR_INVALID_VALUE;
	ll_cu_result status = sim_graph_memory_new(device, alloc->bytes, &node->memory);
	if (status)
		return status;
	alloc->access = NULL;
	alloc->access_count = 0;
	alloc->address = node->memory->address;
	return LL_CUDA_SUCCESS;
}

static ll_cu_result own_event(struct ll_cu_graph_node *node)
{
	struct ll_cu_event *event = node->params.event.event;
	if (!event || event->magic != SIM_MAGIC_EVENT)
		return LL_CUDA_ERROR_INVALID_HANDLE;
	sim_event_hold(event);
	return LL_CUDA_SUCCESS;
}

/* Checks params, and replaces the data behind their pointers by the node's own copies. */
static ll_cu_result own_parameters(struct ll_cu_graph_node *node)
{
	struct ll_cu_memset_params fill;
	switch (node->params.type) {
	case LL_CU_GRAPH_NODE_TYPE_KERNEL:
		return own_kernel(node);
	case LL_CU_GRAPH_NODE_TYPE_MEMCPY:
		return sim_copy_check(&node->params.copy.copy);
	case LL_CU_GRAPH_NODE_TYPE_MEMSET:
		memcpy(&fill, &node->params.fill, sizeof fill);
		return sim_fill_check(&fill);
	case LL_CU_GRAPH_NODE_TYPE_HOST:
		return node->params.host.function ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_INVALID_VALUE;
	case LL_CU_GRAPH_NODE_TYPE_GRAPH:
		return own_child(node);
	case LL_CU_GRAPH_NODE_TYPE_EMPTY:
		return LL_CUDA_SUCCESS;
	case LL_CU_GRAPH_NODE_TYPE_WAIT_EVENT:
	case LL_CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return own_event(node);
	case LL_CU_GRAPH_NODE_TYPE_MEM_ALLOC:
		return own_memory(node);
	case LL_CU_GRAPH_NODE_TYPE_MEM_FREE:
		node->memory = sim_graph_memory_find(node->params.free.address);
		if (!node->memory || node->memory->has_free_node)
			return LL_CUDA_ERROR_INVALID_VALUE;
		node->memory->has_free_node = node->is_its_free = true;
		node->memory->references++;
		return LL_CUDA_SUCCESS;
	case LL_CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return own_values(node);
	default:
		return LL_CUDA_ERROR_NOT_SUPPORTED;
	}
}

ll_cu_result sim_node_new(const struct ll_cu_graph_node_params *params, struct ll_cu_graph_node **ret_node)
{
	struct ll_cu_graph_node *node = calloc(1, sizeof *node);
	if (!node)
		return LL_CUDA_ERROR_OUT_OF_MEMORY;
	node->magic = SIM_MAGIC_NODE;
	node->params = *params;
	ll_cu_result status = own_parameters(node);
	if (status)
		free(node);
	else
		*ret_node = node;
	return status;
}

ll_cu_result sim_node_set(struct ll_cu_graph_node *node, const struct ll_cu_graph_node_params *params)
{
	struct ll_cu_graph_node fresh = {.params = *params};
	if (params->type != node->params.type)
		return LL_CUDA_ERROR_INVALID_VALUE;
	ll_cu_result status = own_parameters(&fresh);
	if (status)
		return status;
	sim_node_disown(node);
	node->params = fresh.params;
	node->owned = fresh.owned;
	node->memory = fresh.memory;
	node->is_its_free = fresh.is_its_free;
	return LL_CUDA_SUCCESS;
}

static struct ll_cu_graph_node *clone_node(const struct ll_cu_graph_node *node)
{
	struct ll_cu_graph_node *clone;
	struct ll_cu_graph_node_params params = node->params;
	if (params.type == LL_CU_GRAPH_NODE_TYPE_GRAPH)
		params.child.ownership = LL_CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE;
	if (!node->memory)
		return sim_node_new(&params, &clone) == LL_CUDA_SUCCESS ? clone : NULL;
	clone = calloc(1, sizeof *clone);
	if (!clone)
		return NULL;
	clone->magic = SIM_MAGIC_NODE;
	clone->params = params;
	clone->memory = node->memory;
	clone->memory->references++;
	return clone;
}

/* The place of a node is the index of its clone. */
static bool copy_edges(const struct ll_cu_graph *graph, const struct ll_cu_graph *clone,
		       struct ll_cu_graph_node **clones)
{
	size_t place = 0;
	for (struct ll_cu_graph_node *node = graph->first; node; node = node->next)
		node->place = place++;
	const struct ll_cu_graph_node *from = graph->first;
	for (struct ll_cu_graph_node *node = clone->first; node && from; node = node->next, from = from->next) {
		for (size_t i = 0; i < from->from.count; i++) {
			if (!sim_nodes_append(&node->from, clones[from->from.at[i]->place]))
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
		clones[count] = clone_node(node);
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
