#include "abi/cuda_graph.h"
#include "shim/hook.h"
#include "shim/launch.h"

/* One replay is one unit of work, whatever is in it. */
LL_LAUNCH_HOOKS_OF_KIND(cuGraphLaunch, _ptsz, stream, ll_launch_kind(exec, 0),
			(struct ll_cu_graph_exec * exec, struct ll_cu_stream *stream), (exec, stream))

/*
 * Work is marked from another thread too, which looks before whether the stream is being captured. A capture begins
 * before that look or after the mark, never between: else the mark would become part of the graph, or, in the legacy
 * stream, spoil the capture.
 */
#define CAPTURE_HOOK(symbol, stream, params, args)                                                                     \
	LL_HOOK_EXPORT ll_cu_result symbol params                                                                      \
	{                                                                                                              \
		if (ll_reentry_is_inside() || !ll_seat_settings())                                                     \
			return ll_real()->symbol args;                                                                 \
		LL_REENTRY_SCOPE();                                                                                    \
		struct ll_flow *held __attribute__((cleanup(ll_launch_release_marks), unused)) =                       \
		    ll_launch_hold_marks(stream);                                                                      \
		return ll_real()->symbol args;                                                                         \
	}
#define CAPTURE_HOOKS(symbol, params, args)                                                                            \
	CAPTURE_HOOK(symbol, stream, params, args)                                                                     \
	CAPTURE_HOOK(symbol##_ptsz, ll_launch_per_thread(stream), params, args)

CAPTURE_HOOKS(cuStreamBeginCapture, (struct ll_cu_stream * stream), (stream))
CAPTURE_HOOKS(cuStreamBeginCapture_v2, (struct ll_cu_stream * stream, enum ll_cu_capture_mode mode), (stream, mode))
CAPTURE_HOOKS(cuStreamBeginCaptureToGraph,
	      (struct ll_cu_stream * stream, struct ll_cu_graph *graph, struct ll_cu_graph_node *const *dependencies,
	       const struct ll_cu_graph_edge_data *edges, size_t count, enum ll_cu_capture_mode mode),
	      (stream, graph, dependencies, edges, count, mode))
