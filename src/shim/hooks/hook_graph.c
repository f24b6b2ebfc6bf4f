/* Hooks of graphs. The launch of a graph counts as one launch. Graphs may allocate memory. */
#include "abi/cuda_graph.h"
#include "shim/hooks/launch.h"
#include "shim/interpose/hook.h"
#include "shim/interpose/stream.h"
#include "shim/memory/memory.h"
#include "shim/memory/pools.h"

/* ---- replays ---- */

static bool may_allocate(void)
{
	return ll_graph_memory_is_used && !ll_charge_passes();
}

#define COVER(cover, memory, stream)                                                                                   \
	struct ll_graph_cover cover __attribute__((cleanup(ll_graph_memory_end))) =                                    \
	    ll_graph_memory_begin(memory, stream)

#define COVERED_CALL(symbol, its_stream, is_launched)                                                                  \
	static ll_cu_result cover_##symbol(struct ll_cu_graph_exec *exec, struct ll_cu_stream *stream)                 \
	{                                                                                                              \
		LL_REENTRY_SCOPE();                                                                                    \
		COVER(cover, ll_graph_memory_find(exec), its_stream);                                                  \
		if (cover.is_refused)                                                                                  \
			return LL_CUDA_ERROR_OUT_OF_MEMORY;                                                            \
		ll_cu_result status = ll_real()->symbol(exec, stream);                                                 \
		if (status == LL_CUDA_SUCCESS)                                                                         \
			ll_graph_memory_note(&cover, is_launched);                                                     \
		return status;                                                                                         \
	}

/* A graph's launch is one unit of work, independent of the graph's content. Its memory is reserved after the launch has
 * got its turn. */
#define GRAPH_LAUNCH_HOOK(symbol, its_stream)                                                                          \
	COVERED_CALL(symbol, its_stream, true)                                                                         \
	static ll_cu_result launch_##symbol(struct ll_cu_graph_exec *exec, struct ll_cu_stream *stream)                \
	{                                                                                                              \
		LL_DRIVER_CALL(symbol);                                                                                \
		bool allocates = may_allocate();                                                                       \
		if (ll_launch_is_free())                                                                               \
			return allocates ? cover_##symbol(exec, stream) : ll_real()->symbol(exec, stream);             \
		LL_LAUNCH_SCOPE(launch, its_stream, ll_launch_key(exec, 0));                                           \
		return LL_LAUNCH_CALL(launch,                                                                          \
				      allocates ? cover_##symbol(exec, stream) : ll_real()->symbol(exec, stream));     \
	}                                                                                                              \
	LL_HOOK_EXPORT ll_cu_result symbol(struct ll_cu_graph_exec *exec, struct ll_cu_stream *stream)                 \
	{                                                                                                              \
		return ll_children_answer(#symbol, launch_##symbol(exec, stream));                                     \
	}

#define GRAPH_UPLOAD_HOOK(symbol, its_stream)                                                                          \
	COVERED_CALL(symbol, its_stream, false)                                                                        \
	static ll_cu_result upload_##symbol(struct ll_cu_graph_exec *exec, struct ll_cu_stream *stream)                \
	{                                                                                                              \
		LL_DRIVER_CALL(symbol);                                                                                \
		return may_allocate() ? cover_##symbol(exec, stream) : ll_real()->symbol(exec, stream);                \
	}                                                                                                              \
	LL_HOOK_EXPORT ll_cu_result symbol(struct ll_cu_graph_exec *exec, struct ll_cu_stream *stream)                 \
	{                                                                                                              \
		return ll_children_answer(#symbol, upload_##symbol(exec, stream));                                     \
	}

GRAPH_UPLOAD_HOOK(cuGraphUpload, stream)
GRAPH_UPLOAD_HOOK(cuGraphUpload_ptsz, ll_stream_per_thread(stream))

GRAPH_LAUNCH_HOOK(cuGraphLaunch, stream)
GRAPH_LAUNCH_HOOK(cuGraphLaunch_ptsz, ll_stream_per_thread(stream))

/* ---- the memory that an executable graph will need ---- */

/* Defines the hook of a function that makes or changes an executable graph of `graph`, a parameter. has_upload_flag:
 * the function also uploads the graph in its_stream, which allocates the graph's memory at once. */
#define MAKE_HOOK(symbol, exec, has_upload_flag, its_stream, params, args)                                             \
	static ll_cu_result make_##symbol params                                                                       \
	{                                                                                                              \
		LL_DRIVER_CALL(symbol);                                                                                \
		if (!may_allocate())                                                                                   \
			return ll_real()->symbol args;                                                                 \
		LL_REENTRY_SCOPE();                                                                                    \
		struct ll_graph_memory *memory __attribute__((cleanup(ll_graph_memory_free))) =                        \
		    ll_graph_memory_of(graph);                                                                         \
		COVER(cover, has_upload_flag ? memory : NULL, its_stream);                                             \
		if (cover.is_refused)                                                                                  \
			return LL_CUDA_ERROR_OUT_OF_MEMORY;                                                            \
		ll_cu_result status = ll_real()->symbol args;                                                          \
		if (status != LL_CUDA_SUCCESS)                                                                         \
			return status;                                                                                 \
		ll_graph_memory_note(&cover, false);                                                                   \
		ll_graph_memory_keep(exec, &memory);                                                                   \
		return status;                                                                                         \
	}                                                                                                              \
	LL_HOOK_EXPORT ll_cu_result symbol params                                                                      \
	{                                                                                                              \
		return ll_children_answer(#symbol, make_##symbol args);                                                \
	}

#define WITH_LOG                                                                                                       \
	(struct ll_cu_graph_exec * *ret_exec, struct ll_cu_graph * graph, struct ll_cu_graph_node * *ret_error_node,   \
	 char *log, size_t log_bytes)
#define WITH_LOG_ARGS (ret_exec, graph, ret_error_node, log, log_bytes)

MAKE_HOOK(cuGraphInstantiate, *ret_exec, false, NULL, WITH_LOG, WITH_LOG_ARGS)
MAKE_HOOK(cuGraphInstantiate_v2, *ret_exec, false, NULL, WITH_LOG, WITH_LOG_ARGS)
MAKE_HOOK(cuGraphInstantiateWithFlags, *ret_exec, false, NULL,
	  (struct ll_cu_graph_exec * *ret_exec, struct ll_cu_graph *graph, unsigned long long flags),
	  (ret_exec, graph, flags))

static bool has_upload_flag(const struct ll_cu_graph_instantiate_params *params)
{
	return params && params->flags & LL_CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
}

static struct ll_cu_stream *upload_stream(const struct ll_cu_graph_instantiate_params *params)
{
	return params ? params->upload_stream : NULL;
}

#define WITH_PARAMS                                                                                                    \
	(struct ll_cu_graph_exec * *ret_exec, struct ll_cu_graph * graph,                                              \
	 struct ll_cu_graph_instantiate_params * params)

MAKE_HOOK(cuGraphInstantiateWithParams, *ret_exec, has_upload_flag(params), upload_stream(params), WITH_PARAMS,
	  (ret_exec, graph, params))
MAKE_HOOK(cuGraphInstantiateWithParams_ptsz, *ret_exec, has_upload_flag(params),
	  ll_stream_per_thread(upload_stream(params)), WITH_PARAMS, (ret_exec, graph, params))

MAKE_HOOK(cuGraphExecUpdate, exec, false, NULL,
	  (struct ll_cu_graph_exec * exec, struct ll_cu_graph *graph, struct ll_cu_graph_node **ret_error_node,
	   enum ll_cu_graph_update_result *ret_result),
	  (exec, graph, ret_error_node, ret_result))
MAKE_HOOK(cuGraphExecUpdate_v2, exec, false, NULL,
	  (struct ll_cu_graph_exec * exec, struct ll_cu_graph *graph, struct ll_cu_graph_update_info *ret_info),
	  (exec, graph, ret_info))

LL_HOOK_EXPORT ll_cu_result cuGraphExecDestroy(struct ll_cu_graph_exec *exec)
{
	LL_DRIVER_CALL(cuGraphExecDestroy);
	if (!ll_charge_passes())
		ll_graph_memory_forget(exec);
	return ll_real()->cuGraphExecDestroy(exec);
}

/*
 * The agent's thread also records timing events. Before it records one, it checks whether the stream is being captured.
 * A capture must begin before this check or after the event, never in between. Otherwise the event would become part of
 * the graph, or, in the legacy stream, make the capture invalid. Other streams join a capture by waiting for it. So
 * during a capture no other thread records an event in any stream (captures.h).
 *
 * The code that shuts the calls may then wait for contexts, which would make a capture invalid. So the begin of a
 * capture counts as a call that uses the card, and no capture begins while the calls are shut.
 */
#define CAPTURE_HOOK(symbol, stream, params, args)                                                                     \
	LL_HOOK_EXPORT ll_cu_result symbol params                                                                      \
	{                                                                                                              \
		LL_DRIVER_CALL(symbol);                                                                                \
		if (ll_reentry_is_inside() || !ll_device_state_settings())                                             \
			return ll_real()->symbol args;                                                                 \
		LL_REENTRY_SCOPE();                                                                                    \
		struct ll_launch_hold held __attribute__((cleanup(ll_launch_release_timing))) =                        \
		    ll_launch_hold_timing(stream);                                                                     \
		ll_cu_result status = ll_real()->symbol args;                                                          \
		if (status == LL_CUDA_SUCCESS)                                                                         \
			ll_launch_note_capture(&held);                                                                 \
		return status;                                                                                         \
	}
#define CAPTURE_HOOKS(symbol, params, args)                                                                            \
	CAPTURE_HOOK(symbol, stream, params, args)                                                                     \
	CAPTURE_HOOK(symbol##_ptsz, ll_stream_per_thread(stream), params, args)

CAPTURE_HOOKS(cuStreamBeginCapture, (struct ll_cu_stream * stream), (stream))
CAPTURE_HOOKS(cuStreamBeginCapture_v2, (struct ll_cu_stream * stream, enum ll_cu_capture_mode mode), (stream, mode))
CAPTURE_HOOKS(cuStreamBeginCaptureToGraph,
	      (struct ll_cu_stream * stream, struct ll_cu_graph *graph, struct ll_cu_graph_node *const *dependencies,
	       const struct ll_cu_graph_edge_data *edges, size_t count, enum ll_cu_capture_mode mode),
	      (stream, graph, dependencies, edges, count, mode))

/* ---- graphs that allocate ---- */

/* A graph takes its memory when it is uploaded or launched. After the first node that allocates was added, the library
 * tracks this memory (graph_memory.h). */
LL_HOOK_EXPORT ll_cu_result cuGraphAddMemAllocNode(struct ll_cu_graph_node **ret_node, struct ll_cu_graph *graph,
						   struct ll_cu_graph_node *const *dependencies, size_t count,
						   struct ll_cu_mem_alloc_params *params)
{
	if (!ll_charge_passes() && params)
		ll_pool_expect_graphs(params->bytes);
	return ll_real()->cuGraphAddMemAllocNode(ret_node, graph, dependencies, count, params);
}

static void note_alloc_node(const struct ll_cu_graph_node_params *params)
{
	if (!ll_charge_passes() && params && params->type == LL_CU_GRAPH_NODE_TYPE_MEM_ALLOC)
		ll_pool_expect_graphs(params->alloc.bytes);
}

LL_HOOK_EXPORT ll_cu_result cuGraphAddNode(struct ll_cu_graph_node **ret_node, struct ll_cu_graph *graph,
					   struct ll_cu_graph_node *const *dependencies, size_t count,
					   struct ll_cu_graph_node_params *params)
{
	note_alloc_node(params);
	return ll_children_answer("cuGraphAddNode",
				  ll_real()->cuGraphAddNode(ret_node, graph, dependencies, count, params));
}

#define ADD_NODE_HOOK(symbol)                                                                                          \
	LL_HOOK_EXPORT ll_cu_result symbol(struct ll_cu_graph_node **ret_node, struct ll_cu_graph *graph,              \
					   struct ll_cu_graph_node *const *dependencies,                               \
					   const struct ll_cu_graph_edge_data *edges, size_t count,                    \
					   struct ll_cu_graph_node_params *params)                                     \
	{                                                                                                              \
		note_alloc_node(params);                                                                               \
		return ll_children_answer(#symbol,                                                                     \
					  ll_real()->symbol(ret_node, graph, dependencies, edges, count, params));     \
	}

ADD_NODE_HOOK(cuGraphAddNode_v2)
ADD_NODE_HOOK(cuGraphAddNode_v3)
