/*
 * Stream capture: begin, query, end.
 */
#include <stdlib.h>

#include "cuda/enter.h"
#include "cuda/local/capture.h"
#include "cuda/local/graph.h"
#include "cuda/local/stream.h"

static ll_cu_result begin_in(struct ll_cu_stream *handle, struct ll_cu_graph *graph, enum ll_cu_capture_mode mode,
			     struct ll_cu_stream **ret_stream)
{
	struct ll_cu_stream *stream;
	if (mode > LL_CU_STREAM_CAPTURE_MODE_RELAXED)
		return LL_CUDA_ERROR_INVALID_VALUE;
	ll_cu_result status = sim_stream_of(handle, &stream);
	if (status)
		return status;
	if (stream == &stream->context->legacy)
		return LL_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (stream->capture)
		return LL_CUDA_ERROR_ILLEGAL_STATE;
	status = sim_capture_begin(stream, graph, mode);
	if (status)
		return status;
	*ret_stream = stream;
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuStreamBeginCapture_v2(struct ll_cu_stream *handle, enum ll_cu_capture_mode mode)
{
	SIM_ENTER();
	struct ll_cu_stream *stream;
	sim_cuda_lock();
	ll_cu_result status = begin_in(handle, NULL, mode, &stream);
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuStreamBeginCapture(struct ll_cu_stream *stream)
{
	SIM_ENTER();
	return cuStreamBeginCapture_v2(stream, LL_CU_STREAM_CAPTURE_MODE_GLOBAL);
}

ll_cu_result cuStreamBeginCaptureToGraph(struct ll_cu_stream *handle, struct ll_cu_graph *graph,
					 struct ll_cu_graph_node *const *dependencies,
					 const struct ll_cu_graph_edge_data *edges, size_t count,
					 enum ll_cu_capture_mode mode)
{
	SIM_ENTER();
	struct ll_cu_stream *stream;
	(void)edges;
	if (!sim_is_graph(graph) || !sim_are_nodes_of(graph, dependencies, count))
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	ll_cu_result status = begin_in(handle, graph, mode, &stream);
	for (size_t i = 0; !status && i < count; i++) {
		if (!sim_nodes_add(&stream->tail, dependencies[i]))
			status = LL_CUDA_ERROR_OUT_OF_MEMORY;
	}
	sim_cuda_unlock();
	return status;
}

/* Whether the end of the origin depends on all work of the other streams of the capture. */
static bool is_joined(const struct sim_capture *capture)
{
	if (!sim_graph_mark(capture->graph, &capture->origin->tail))
		return false;
	for (const struct ll_cu_context *context = sim_cuda.contexts; context; context = context->next) {
		for (const struct ll_cu_stream *stream = context->streams; stream; stream = stream->next) {
			if (stream->capture == capture && !sim_nodes_are_marked(&stream->tail))
				return false;
		}
	}
	return true;
}

static ll_cu_result end_in(struct ll_cu_stream *handle, struct ll_cu_graph **ret_graph)
{
	struct ll_cu_stream *stream;
	ll_cu_result status = sim_stream_of(handle, &stream);
	if (status)
		return status;
	struct sim_capture *capture = stream->capture;
	if (!capture)
		return LL_CUDA_ERROR_ILLEGAL_STATE;
	if (capture->origin != stream) {
		capture->is_invalid = true;
		return LL_CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
	}
	if (capture->mode != LL_CU_STREAM_CAPTURE_MODE_RELAXED && !sim_capture_is_own(capture))
		return LL_CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
	if (capture->is_invalid)
		status = LL_CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	else if (!is_joined(capture))
		status = LL_CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
	if (!status)
		*ret_graph = capture->graph;
	sim_capture_end(capture, !status);
	return status;
}

ll_cu_result cuStreamEndCapture(struct ll_cu_stream *stream, struct ll_cu_graph **ret_graph)
{
	SIM_ENTER();
	if (!ret_graph)
		return LL_CUDA_ERROR_INVALID_VALUE;
	*ret_graph = NULL;
	sim_cuda_lock();
	ll_cu_result status = end_in(stream, ret_graph);
	sim_cuda_unlock();
	return status;
}

/* Finds the stream and its state. A query invalidates nothing. */
static ll_cu_result get_status(struct ll_cu_stream *handle, struct ll_cu_stream **ret_stream,
			       enum ll_cu_capture_status *ret_status)
{
	ll_cu_result status = sim_stream_of(handle, ret_stream);
	if (status)
		return status;
	struct ll_cu_stream *stream = *ret_stream;
	if (stream == &stream->context->legacy && sim_capture_is_implicit(stream->context, false))
		return LL_CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	*ret_status = !stream->capture              ? LL_CU_STREAM_CAPTURE_STATUS_NONE
		      : stream->capture->is_invalid ? LL_CU_STREAM_CAPTURE_STATUS_INVALIDATED
						    : LL_CU_STREAM_CAPTURE_STATUS_ACTIVE;
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuStreamIsCapturing(struct ll_cu_stream *handle, enum ll_cu_capture_status *ret_status)
{
	SIM_ENTER();
	struct ll_cu_stream *stream;
	if (!ret_status)
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	ll_cu_result status = get_status(handle, &stream, ret_status);
	sim_cuda_unlock();
	return status;
}

static ll_cu_result get_edges(struct ll_cu_stream *stream, const struct ll_cu_graph_edge_data **ret_edges)
{
	if (!ret_edges)
		return LL_CUDA_SUCCESS;
	free(stream->edges);
	stream->edges = calloc(stream->tail.count + 1, sizeof *stream->edges);
	*ret_edges = stream->edges;
	return stream->edges ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_OUT_OF_MEMORY;
}

static ll_cu_result get_info(struct ll_cu_stream *handle, enum ll_cu_capture_status *ret_status, uint64_t *ret_id,
			     struct ll_cu_graph **ret_graph, struct ll_cu_graph_node *const **ret_dependencies,
			     const struct ll_cu_graph_edge_data **ret_edges, size_t *ret_count)
{
	struct ll_cu_stream *stream;
	if (!ret_status || (ret_edges && !ret_dependencies))
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	ll_cu_result status = get_status(handle, &stream, ret_status);
	if (!status && *ret_status == LL_CU_STREAM_CAPTURE_STATUS_ACTIVE) {
		if (ret_id)
			*ret_id = stream->capture->id;
		if (ret_graph)
			*ret_graph = stream->capture->graph;
		if (ret_dependencies)
			*ret_dependencies = stream->tail.at;
		if (ret_count)
			*ret_count = stream->tail.count;
		status = get_edges(stream, ret_edges);
	}
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuStreamGetCaptureInfo(struct ll_cu_stream *stream, enum ll_cu_capture_status *ret_status,
				    uint64_t *ret_id)
{
	SIM_ENTER();
	return get_info(stream, ret_status, ret_id, NULL, NULL, NULL, NULL);
}

ll_cu_result cuStreamGetCaptureInfo_v2(struct ll_cu_stream *stream, enum ll_cu_capture_status *ret_status,
				       uint64_t *ret_id, struct ll_cu_graph **ret_graph,
				       struct ll_cu_graph_node *const **ret_dependencies, size_t *ret_count)
{
	SIM_ENTER();
	return get_info(stream, ret_status, ret_id, ret_graph, ret_dependencies, NULL, ret_count);
}

ll_cu_result cuStreamGetCaptureInfo_v3(struct ll_cu_stream *stream, enum ll_cu_capture_status *ret_status,
				       uint64_t *ret_id, struct ll_cu_graph **ret_graph,
				       struct ll_cu_graph_node *const **ret_dependencies,
				       const struct ll_cu_graph_edge_data **ret_edges, size_t *ret_count)
{
	SIM_ENTER();
	return get_info(stream, ret_status, ret_id, ret_graph, ret_dependencies, ret_edges, ret_count);
}

static ll_cu_result update_tail(struct ll_cu_stream *handle, struct ll_cu_graph_node *const *dependencies, size_t count,
				unsigned flags)
{
	struct ll_cu_stream *stream;
	ll_cu_result status = sim_stream_of(handle, &stream);
	if (status)
		return status;
	if (!stream->capture)
		return LL_CUDA_ERROR_ILLEGAL_STATE;
	if (stream->capture->is_invalid)
		return LL_CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (flags > LL_CU_STREAM_SET_CAPTURE_DEPENDENCIES ||
	    !sim_are_nodes_of(stream->capture->graph, dependencies, count))
		return LL_CUDA_ERROR_INVALID_VALUE;
	/* The program may have passed the stream's own array. */
	struct sim_nodes before = stream->tail;
	stream->tail = (struct sim_nodes){0};
	bool done = flags == LL_CU_STREAM_SET_CAPTURE_DEPENDENCIES || sim_nodes_add_all(&stream->tail, &before);
	for (size_t i = 0; done && i < count; i++)
		done = sim_nodes_add(&stream->tail, dependencies[i]);
	free(before.at);
	return done ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_OUT_OF_MEMORY;
}

ll_cu_result cuStreamUpdateCaptureDependencies_v2(struct ll_cu_stream *stream, struct ll_cu_graph_node **dependencies,
						  const struct ll_cu_graph_edge_data *edges, size_t count,
						  unsigned int flags)
{
	SIM_ENTER();
	(void)edges;
	sim_cuda_lock();
	ll_cu_result status = update_tail(stream, dependencies, count, flags);
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuStreamUpdateCaptureDependencies(struct ll_cu_stream *stream, struct ll_cu_graph_node **dependencies,
					       size_t count, unsigned int flags)
{
	SIM_ENTER();
	return cuStreamUpdateCaptureDependencies_v2(stream, dependencies, NULL, count, flags);
}

ll_cu_result cuThreadExchangeStreamCaptureMode(enum ll_cu_capture_mode *mode)
{
	SIM_ENTER();
	if (!mode || *mode > LL_CU_STREAM_CAPTURE_MODE_RELAXED)
		return LL_CUDA_ERROR_INVALID_VALUE;
	*mode = sim_capture_exchange_mode(*mode);
	return LL_CUDA_SUCCESS;
}
