#include "cuda/local/capture_work.h"

#include "cuda/local/graph.h"
#include "cuda/local/graph_node.h"

ll_cu_result sim_capture_work(struct ll_cu_stream *stream, const struct ll_cu_graph_node_params *params)
{
	struct ll_cu_graph_node *node;
	ll_cu_result status = sim_node_new(params, &node);
	if (status)
		return status;
	status = sim_graph_append(stream->capture->graph, node, stream->tail.at, stream->tail.count);
	if (status)
		return status;
	stream->tail.count = 0;
	return sim_nodes_add(&stream->tail, node) ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_OUT_OF_MEMORY;
}

ll_cu_result sim_capture_record(struct ll_cu_stream *stream, struct ll_cu_event *event, unsigned flags)
{
	if (event->flags & LL_CU_EVENT_INTERPROCESS)
		return LL_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED; /* the capture stays valid */
	if (flags & LL_CU_EVENT_RECORD_EXTERNAL) {
		struct ll_cu_graph_node_params params = {.type = LL_CU_GRAPH_NODE_TYPE_EVENT_RECORD, .event = {event}};
		return sim_capture_work(stream, &params);
	}
	event->captured.count = 0;
	if (!sim_nodes_add_all(&event->captured, &stream->tail))
		return LL_CUDA_ERROR_OUT_OF_MEMORY;
	event->capture_id = stream->capture->id;
	event->is_recorded = false;
	return LL_CUDA_SUCCESS;
}

static ll_cu_result join_capture(struct ll_cu_stream *stream, const struct ll_cu_event *event)
{
	struct sim_capture *capture = sim_capture_find(event->capture_id);
	if (!capture)
		return LL_CUDA_ERROR_CAPTURED_EVENT;
	if (capture->is_invalid)
		return LL_CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (stream == &stream->context->legacy) {
		capture->is_invalid = true;
		return LL_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	if (stream->capture && stream->capture != capture) {
		stream->capture->is_invalid = capture->is_invalid = true;
		return LL_CUDA_ERROR_STREAM_CAPTURE_MERGE;
	}
	if (!sim_nodes_add_all(&stream->tail, &event->captured))
		return LL_CUDA_ERROR_OUT_OF_MEMORY;
	stream->capture = capture;
	return LL_CUDA_SUCCESS;
}

ll_cu_result sim_capture_wait(struct ll_cu_stream *stream, struct ll_cu_event *event, unsigned flags,
			      bool *ret_is_captured)
{
	if (stream->capture && event->flags & LL_CU_EVENT_INTERPROCESS)
		return sim_capture_refuse(stream);
	*ret_is_captured = stream->capture || event->capture_id;
	if (stream->capture && flags & LL_CU_EVENT_WAIT_EXTERNAL) {
		struct ll_cu_graph_node_params params = {.type = LL_CU_GRAPH_NODE_TYPE_WAIT_EVENT, .event = {event}};
		return sim_capture_work(stream, &params);
	}
	if (event->capture_id)
		return join_capture(stream, event);
	if (stream->capture && event->is_recorded) {
		stream->capture->is_invalid = true;
		return LL_CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
	}
	return LL_CUDA_SUCCESS;
}
