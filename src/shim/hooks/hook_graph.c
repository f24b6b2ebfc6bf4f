/* Graphs. The launch of a graph counts as one launch. Graphs may allocate memory. */
#include "abi/cuda_graph.h"
#include "shim/hooks/launch.h"
#include "shim/interpose/hook.h"
#include "shim/interpose/stream.h"
#include "shim/memory/charge.h"
#include "shim/memory/pools.h"

/* ---- replays ---- */

/* False: there is no room for the graph's memory. Then pools and other graphs have given up their reserves. */
static bool upload_graph(struct ll_device_state *dev, struct ll_cu_graph_exec *exec, struct ll_cu_stream *stream)
{
	if (ll_real()->cuGraphUpload(exec, stream) != LL_CUDA_ERROR_OUT_OF_MEMORY)
		return ll_pool_keep_graph(dev, exec);
	ll_device_state_give_up_reserve(dev);
	return false;
}

/* Lets the graph take its memory before the launch, because nothing tells before how much that is. Returns
 * LL_CUDA_SUCCESS, LL_CUDA_ERROR_OUT_OF_MEMORY if the limit refuses it, or the driver's error if it does not say which
 * card it is. */
static ll_cu_result take_memory(struct ll_cu_graph_exec *exec, struct ll_cu_stream *stream)
{
	LL_REENTRY_SCOPE();
	struct ll_device_state *dev;
	ll_cu_result status = ll_pool_find_dev_if_used(&dev);
	if (status != LL_CUDA_SUCCESS)
		return status;
	if (!dev || ll_pool_has_room_for_graph(dev, exec) || ll_stream_is_captured(stream) ||
	    upload_graph(dev, exec, stream))
		return LL_CUDA_SUCCESS;
	return upload_graph(dev, exec, stream) ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_OUT_OF_MEMORY;
}

/* A graph's launch is one unit of work, whatever is in the graph. */
#define GRAPH_LAUNCH_HOOK(symbol, its_stream)                                                                          \
	static ll_cu_result gate_##symbol(struct ll_cu_graph_exec *exec, struct ll_cu_stream *stream)                  \
	{                                                                                                              \
		LL_LAUNCH_SCOPE(launch, its_stream, ll_launch_kind(exec, 0));                                          \
		return LL_LAUNCH_CALL(launch, ll_real()->symbol(exec, stream));                                        \
	}                                                                                                              \
	LL_HOOK_EXPORT ll_cu_result symbol(struct ll_cu_graph_exec *exec, struct ll_cu_stream *stream)                 \
	{                                                                                                              \
		LL_DRIVER_CALL(symbol);                                                                                \
		ll_cu_result status = ll_reentry_is_inside() ? LL_CUDA_SUCCESS : take_memory(exec, its_stream);        \
		if (status != LL_CUDA_SUCCESS)                                                                         \
			return status;                                                                                 \
		status = ll_launch_is_free() ? ll_real()->symbol(exec, stream) : gate_##symbol(exec, stream);          \
		if (!ll_reentry_is_inside())                                                                           \
			true_up_graphs();                                                                              \
		return status;                                                                                         \
	}

static void true_up_graphs(void)
{
	LL_REENTRY_SCOPE();
	ll_pool_true_up_if_used();
}

#define GRAPH_UPLOAD_HOOK(symbol)                                                                                      \
	LL_HOOK_EXPORT ll_cu_result symbol(struct ll_cu_graph_exec *exec, struct ll_cu_stream *stream)                 \
	{                                                                                                              \
		LL_DRIVER_CALL(symbol);                                                                                \
		if (ll_reentry_is_inside())                                                                            \
			return ll_real()->symbol(exec, stream);                                                        \
		LL_REENTRY_SCOPE();                                                                                    \
		struct ll_device_state *dev;                                                                           \
		ll_cu_result status = ll_pool_find_dev_if_used(&dev);                                                  \
		if (status == LL_CUDA_SUCCESS)                                                                         \
			status = ll_real()->symbol(exec, stream);                                                      \
		if (status != LL_CUDA_SUCCESS)                                                                         \
			return status;                                                                                 \
		return dev && !ll_pool_keep_graph(dev, exec) ? LL_CUDA_ERROR_OUT_OF_MEMORY : status;                   \
	}

GRAPH_UPLOAD_HOOK(cuGraphUpload)
GRAPH_UPLOAD_HOOK(cuGraphUpload_ptsz)

GRAPH_LAUNCH_HOOK(cuGraphLaunch, stream)
GRAPH_LAUNCH_HOOK(cuGraphLaunch_ptsz, ll_stream_per_thread(stream))

/*
 * The agent's thread also records timing events. Before it records one, it looks whether the stream is being captured.
 * So a capture must begin before that look or after the timing event, never between: else the event would become part
 * of the graph or, in the legacy stream, spoil the capture. Other streams join a capture by waiting for it. So while a
 * capture goes on, no other thread records an event in any stream (captures.h).
 *
 * Whoever shuts the calls may wait for contexts then, which would spoil a capture. So a capture begins as a call that
 * uses the card, and none begins while the calls are shut.
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

/* A graph takes its memory when it is uploaded or launched. From the first node that allocates on, the library looks
 * for that memory (pools.h). */
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
	LL_DRIVER_CALL(cuGraphExecDestroy);
	if (!ll_charge_passes())
		ll_pool_forget_graph(exec);
	return ll_real()->cuGraphExecDestroy(exec);
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
	return ll_real()->cuGraphAddNode(ret_node, graph, dependencies, count, params);
}

#define ADD_NODE_HOOK(symbol)                                                                                          \
	LL_HOOK_EXPORT ll_cu_result symbol(struct ll_cu_graph_node **ret_node, struct ll_cu_graph *graph,              \
					   struct ll_cu_graph_node *const *dependencies,                               \
					   const struct ll_cu_graph_edge_data *edges, size_t count,                    \
					   struct ll_cu_graph_node_params *params)                                     \
	{                                                                                                              \
		note_alloc_node(params);                                                                               \
		return ll_real()->symbol(ret_node, graph, dependencies, edges, count, params);                         \
	}

ADD_NODE_HOOK(cuGraphAddNode_v2)
ADD_NODE_HOOK(cuGraphAddNode_v3)
