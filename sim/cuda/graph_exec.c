/*
 * Executable graphs: make, change, launch. A launch queues the nodes one after the other.
 */
#include <stdlib.h>
#include <string.h>

#include "cuda/enter.h"
#include "cuda/launch.h"
#include "cuda/local/capture.h"
#include "cuda/local/capture_work.h"
#include "cuda/local/copy.h"
#include "cuda/local/current.h"
#include "cuda/local/event.h"
#include "cuda/local/graph.h"
#include "cuda/local/graph_memory.h"
#include "cuda/local/graph_node.h"
#include "cuda/local/kernel.h"
#include "cuda/local/queue.h"
#include "cuda/local/stream.h"

static struct ll_cu_graph_exec *execs;

static bool is_exec(const struct ll_cu_graph_exec *exec)
{
	return exec && exec->magic == SIM_MAGIC_EXEC;
}

/* Whether an allocation node of the graph has an exec already. */
static bool have_exec(const struct ll_cu_graph *graph)
{
	for (const struct ll_cu_graph_node *node = graph->first; node; node = node->next) {
		if ((node->memory && node->memory->has_exec) ||
		    (node->params.type == LL_CU_GRAPH_NODE_TYPE_GRAPH && have_exec(node->params.child.graph)))
			return true;
	}
	return false;
}

static void set_exec(const struct ll_cu_graph *graph, bool has_exec)
{
	for (const struct ll_cu_graph_node *node = graph->first; node; node = node->next) {
		if (node->params.type == LL_CU_GRAPH_NODE_TYPE_GRAPH)
			set_exec(node->params.child.graph, has_exec);
		else if (node->memory)
			node->memory->has_exec = has_exec;
	}
}

static ll_cu_result instantiate_graph(struct ll_cu_graph *graph, uint64_t flags, struct ll_cu_graph_exec **ret_exec,
				      struct ll_cu_graph_node **ret_culprit)
{
	*ret_culprit = NULL;
	if (flags & LL_CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH || have_exec(graph))
		return LL_CUDA_ERROR_NOT_SUPPORTED;
	struct ll_cu_graph_exec *exec = calloc(1, sizeof *exec);
	struct ll_cu_graph *clone = exec ? sim_graph_clone(graph) : NULL;
	if (!clone) {
		free(exec);
		return LL_CUDA_ERROR_OUT_OF_MEMORY;
	}
	const struct ll_cu_graph_node *culprit = sim_graph_sort_all(clone);
	if (culprit) {
		*ret_culprit = culprit->original;
		sim_graph_free(clone);
		free(exec);
		return LL_CUDA_ERROR_INVALID_VALUE;
	}
	*exec = (struct ll_cu_graph_exec){
	    .magic = SIM_MAGIC_EXEC, .flags = flags, .graph = clone, .next = execs, .link = &execs};
	if (execs)
		execs->link = &exec->next;
	execs = exec;
	set_exec(clone, true);
	*ret_exec = exec;
	return LL_CUDA_SUCCESS;
}

static ll_cu_result check_and_instantiate(struct ll_cu_graph_exec **ret_exec, struct ll_cu_graph *graph, uint64_t flags,
					  struct ll_cu_graph_node **ret_culprit)
{
	const uint64_t known = 15;
	if (!ret_exec || !sim_is_graph(graph) || flags & ~known)
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	ll_cu_result status = instantiate_graph(graph, flags, ret_exec, ret_culprit);
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuGraphInstantiateWithFlags(struct ll_cu_graph_exec **ret_exec, struct ll_cu_graph *graph,
					 unsigned long long flags)
{
	SIM_ENTER();
	struct ll_cu_graph_node *culprit;
	return check_and_instantiate(ret_exec, graph, flags, &culprit);
}

static ll_cu_result back_all(const struct ll_cu_graph *graph)
{
	ll_cu_result status = LL_CUDA_SUCCESS;
	for (const struct ll_cu_graph_node *node = graph->first; node && !status; node = node->next) {
		if (node->params.type == LL_CU_GRAPH_NODE_TYPE_GRAPH)
			status = back_all(node->params.child.graph);
		else if (node->params.type == LL_CU_GRAPH_NODE_TYPE_MEM_ALLOC)
			status = sim_graph_memory_back(node->memory);
	}
	return status;
}

/* An upload prepares a launch, and takes its memory, as the driver's manual says. */
static ll_cu_result upload_exec(const struct ll_cu_graph_exec *exec, struct ll_cu_stream *handle)
{
	struct ll_cu_stream *stream;
	sim_cuda_lock();
	ll_cu_result status = sim_stream_for_work(handle, &stream);
	if (status == LL_CUDA_SUCCESS)
		status = stream->capture ? sim_capture_refuse(stream) : back_all(exec->graph);
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuGraphInstantiateWithParams(struct ll_cu_graph_exec **ret_exec, struct ll_cu_graph *graph,
					  struct ll_cu_graph_instantiate_params *params)
{
	SIM_ENTER();
	struct ll_cu_graph_node *culprit = NULL;
	if (!params)
		return LL_CUDA_ERROR_INVALID_VALUE;
	ll_cu_result status = check_and_instantiate(ret_exec, graph, params->flags, &culprit);
	if (!status && params->flags & LL_CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) {
		status = upload_exec(*ret_exec, params->upload_stream);
		if (status)
			cuGraphExecDestroy(*ret_exec);
	}
	params->error_node = culprit;
	params->result = !status   ? LL_CUDA_GRAPH_INSTANTIATE_SUCCESS
			 : culprit ? LL_CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE
			 : status == LL_CUDA_ERROR_NOT_SUPPORTED
			     ? LL_CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED
			     : LL_CUDA_GRAPH_INSTANTIATE_ERROR;
	return status;
}

ll_cu_result cuGraphInstantiate_v2(struct ll_cu_graph_exec **ret_exec, struct ll_cu_graph *graph,
				   struct ll_cu_graph_node **ret_error_node, char *log, size_t log_bytes)
{
	SIM_ENTER();
	struct ll_cu_graph_node *culprit = NULL;
	ll_cu_result status = check_and_instantiate(ret_exec, graph, 0, &culprit);
	if (ret_error_node)
		*ret_error_node = culprit;
	if (log && log_bytes)
		*log = '\0';
	return status;
}

ll_cu_result cuGraphInstantiate(struct ll_cu_graph_exec **ret_exec, struct ll_cu_graph *graph,
				struct ll_cu_graph_node **ret_error_node, char *log, size_t log_bytes)
{
	SIM_ENTER();
	return cuGraphInstantiate_v2(ret_exec, graph, ret_error_node, log, log_bytes);
}

ll_cu_result cuGraphExecGetFlags(struct ll_cu_graph_exec *exec, uint64_t *ret_flags)
{
	SIM_ENTER();
	if (!is_exec(exec) || !ret_flags)
		return LL_CUDA_ERROR_INVALID_VALUE;
	*ret_flags = exec->flags;
	return LL_CUDA_SUCCESS;
}

/* Operations that it has queued are still done. */
ll_cu_result cuGraphExecDestroy(struct ll_cu_graph_exec *exec)
{
	SIM_ENTER();
	if (!is_exec(exec))
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	set_exec(exec->graph, false);
	sim_graph_free(exec->graph);
	*exec->link = exec->next;
	if (exec->next)
		exec->next->link = exec->link;
	exec->magic = 0;
	free(exec);
	sim_cuda_unlock();
	return LL_CUDA_SUCCESS;
}

/* Before anything is queued, checks whether all nodes can be queued, and takes their memory. *taken is raised for each
 * allocation node. */
static ll_cu_result prepare_launch(const struct ll_cu_graph *graph, const struct ll_cu_stream *stream,
				   bool frees_itself, size_t *taken)
{
	ll_cu_result status = LL_CUDA_SUCCESS;
	for (const struct ll_cu_graph_node *node = graph->first; node && !status; node = node->next) {
		switch (node->params.type) {
		case LL_CU_GRAPH_NODE_TYPE_KERNEL:
			if (node->params.kernel.function->module->context != stream->context)
				status = LL_CUDA_ERROR_INVALID_HANDLE;
			break;
		case LL_CU_GRAPH_NODE_TYPE_GRAPH:
			status = prepare_launch(node->params.child.graph, stream, frees_itself, taken);
			break;
		case LL_CU_GRAPH_NODE_TYPE_MEM_ALLOC:
			status = sim_graph_memory_take(node->memory, frees_itself);
			*taken += !status;
			break;
		default:
			break;
		}
	}
	return status;
}

/* Frees the memory that the first *taken allocation nodes have taken. */
static void undo_launch(const struct ll_cu_graph *graph, size_t *taken)
{
	for (const struct ll_cu_graph_node *node = graph->first; node && *taken; node = node->next) {
		if (node->params.type == LL_CU_GRAPH_NODE_TYPE_GRAPH) {
			undo_launch(node->params.child.graph, taken);
		} else if (node->params.type == LL_CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
			sim_graph_memory_free(node->memory);
			--*taken;
		}
	}
}

static ll_cu_result queue_all(struct ll_cu_graph *graph, struct ll_cu_stream *stream);

static ll_cu_result queue_node(const struct ll_cu_graph_node *node, struct ll_cu_stream *stream)
{
	const struct ll_cu_graph_node_params *params = &node->params;
	struct ll_cu_memset_params fill;
	struct sim_action host = {.kind = SIM_ACTION_HOST, .host = params->host.function, .user = params->host.user};
	switch (params->type) {
	case LL_CU_GRAPH_NODE_TYPE_KERNEL:
		return sim_kernel_queue(stream, &params->kernel);
	case LL_CU_GRAPH_NODE_TYPE_MEMCPY:
		return sim_copy_queue(stream, &params->copy.copy, true, true);
	case LL_CU_GRAPH_NODE_TYPE_MEMSET:
		memcpy(&fill, &params->fill, sizeof fill);
		return sim_fill_queue(stream, &fill, true);
	case LL_CU_GRAPH_NODE_TYPE_HOST:
		return sim_host_queue(stream, &host);
	case LL_CU_GRAPH_NODE_TYPE_GRAPH:
		return queue_all(params->child.graph, stream);
	case LL_CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		return sim_event_queue_wait(params->event.event, stream);
	case LL_CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return sim_event_queue_record(params->event.event, stream);
	case LL_CU_GRAPH_NODE_TYPE_MEM_FREE:
		return sim_graph_memory_queue_free(node->memory, stream);
	case LL_CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return sim_values_queue(stream, params->mem_op.ops, params->mem_op.count);
	default:
		return LL_CUDA_SUCCESS;
	}
}

static ll_cu_result queue_all(struct ll_cu_graph *graph, struct ll_cu_stream *stream)
{
	ll_cu_result status = LL_CUDA_SUCCESS;
	for (const struct ll_cu_graph_node *node = graph->first; node && !status; node = node->next) {
		if (!node->is_disabled)
			status = queue_node(node, stream);
	}
	return status;
}

static ll_cu_result wait_for_last_launch(const struct ll_cu_graph_exec *exec, struct ll_cu_stream *stream)
{
	struct sim_op op = {
	    .kind = SIM_OP_WAIT,
	    .on_stream = exec->last_slot,
	    .on_generation = exec->last_generation,
	    .on_position = exec->last_position,
	    .module = SIM_NONE,
	};
	bool is_elsewhere = exec->last_slot != stream->slot || exec->last_generation != stream->generation;
	return exec->was_launched && is_elsewhere ? sim_queue(stream, &op, NULL, NULL) : LL_CUDA_SUCCESS;
}

static ll_cu_result launch_exec(struct ll_cu_graph_exec *exec, struct ll_cu_stream *stream)
{
	struct sim_world *w = sim_cuda.world;
	bool frees_itself = exec->flags & LL_CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
	ll_cu_result status = sim_context_status(stream->context);
	size_t taken = 0;
	if (!status)
		status = prepare_launch(exec->graph, stream, frees_itself, &taken);
	if (status) {
		undo_launch(exec->graph, &taken);
		return status;
	}
	status = wait_for_last_launch(exec, stream);
	if (!status)
		status = queue_all(exec->graph, stream);
	sim_lock(w);
	uint64_t submitted = w->streams[stream->slot].submitted;
	sim_unlock(w);
	exec->was_launched = submitted > 0;
	exec->last_slot = stream->slot;
	exec->last_generation = stream->generation;
	exec->last_position = submitted - 1;
	return status;
}

/* In a captured stream a launch becomes a node, with the present graph. */
static ll_cu_result capture_exec(const struct ll_cu_graph_exec *exec, struct ll_cu_stream *stream)
{
	struct ll_cu_graph_node_params params = {.type = LL_CU_GRAPH_NODE_TYPE_GRAPH, .child = {.graph = exec->graph}};
	return sim_graph_has_memory(exec->graph) ? LL_CUDA_ERROR_NOT_SUPPORTED : sim_capture_work(stream, &params);
}

ll_cu_result cuGraphLaunch(struct ll_cu_graph_exec *exec, struct ll_cu_stream *handle)
{
	SIM_ENTER();
	if (!is_exec(exec))
		return LL_CUDA_ERROR_INVALID_VALUE;
	struct ll_cu_stream *stream;
	sim_cuda_lock();
	ll_cu_result status = sim_stream_for_work(handle, &stream);
	if (status == LL_CUDA_SUCCESS)
		status = stream->capture ? capture_exec(exec, stream) : launch_exec(exec, stream);
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuGraphUpload(struct ll_cu_graph_exec *exec, struct ll_cu_stream *handle)
{
	SIM_ENTER();
	if (!is_exec(exec))
		return LL_CUDA_ERROR_INVALID_VALUE;
	return upload_exec(exec, handle);
}
