/*
 * Stream capture: begun, joined, asked about, ended.
 */
#include "cuda/capture.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/event.h"
#include "cuda/graph.h"

static struct sim_capture *captures;
static uint64_t last_id;
static _Atomic unsigned capture_count; /* looked at without the lock */
static _Thread_local enum ll_cu_capture_mode thread_mode = LL_CU_STREAM_CAPTURE_MODE_GLOBAL;

static const struct unsafe {
	const char *symbol;
	bool uses_legacy;
} unsafe[] = {
#define SIM_UNSAFE(symbol, uses_legacy) {#symbol, uses_legacy},
#include "cuda/capture_unsafe.def"
};

static bool is_own(const struct sim_capture *capture)
{
	return pthread_equal(capture->thread, pthread_self());
}

static bool prohibits(const struct sim_capture *capture)
{
	if (thread_mode == LL_CU_STREAM_CAPTURE_MODE_RELAXED || capture->mode == LL_CU_STREAM_CAPTURE_MODE_RELAXED)
		return false;
	return is_own(capture) ||
	       (thread_mode == LL_CU_STREAM_CAPTURE_MODE_GLOBAL && capture->mode == LL_CU_STREAM_CAPTURE_MODE_GLOBAL);
}

/* Invalidates the captures that the legacy stream would have to wait for. Returns whether there are any. */
static bool has_implicit(const struct ll_cu_context *context, bool invalidate)
{
	bool any = false;
	for (const struct ll_cu_stream *stream = context->streams; stream; stream = stream->next) {
		if (!stream->capture || stream->flags & LL_CU_STREAM_NON_BLOCKING)
			continue;
		any = true;
		stream->capture->is_invalid |= invalidate;
	}
	return any;
}

static ll_cu_result check_unsafe(bool uses_legacy)
{
	struct ll_cu_context *context;
	ll_cu_result status = LL_CUDA_SUCCESS;
	if (uses_legacy && !sim_null_is_per_thread && sim_current(&context) == LL_CUDA_SUCCESS &&
	    has_implicit(context, true))
		return LL_CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	for (struct sim_capture *capture = captures; capture; capture = capture->next) {
		if (!prohibits(capture))
			continue;
		capture->is_invalid = true;
		status = LL_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	return status;
}

ll_cu_result sim_capture_check_call(const char *function)
{
	ll_cu_result status = LL_CUDA_SUCCESS;
	if (!atomic_load_explicit(&capture_count, memory_order_relaxed))
		return status;
	for (size_t i = 0; i < sizeof unsafe / sizeof unsafe[0]; i++) {
		if (strcmp(unsafe[i].symbol, function) != 0)
			continue;
		sim_cuda_lock();
		status = check_unsafe(unsafe[i].uses_legacy);
		sim_cuda_unlock();
	}
	return status;
}

ll_cu_result sim_capture_admit(const struct ll_cu_stream *stream)
{
	if (stream == &stream->context->legacy && has_implicit(stream->context, true))
		return LL_CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	return stream->capture && stream->capture->is_invalid ? LL_CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
							      : LL_CUDA_SUCCESS;
}

ll_cu_result sim_capture_refuse(const struct ll_cu_stream *stream)
{
	stream->capture->is_invalid = true;
	return LL_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

static struct sim_capture *find(uint64_t id)
{
	struct sim_capture *capture = captures;
	while (capture && capture->id != id)
		capture = capture->next;
	return capture;
}

ll_cu_result sim_capture_refuse_event(const struct ll_cu_event *event)
{
	struct sim_capture *capture = find(event->capture_id);
	if (capture)
		capture->is_invalid = true;
	return LL_CUDA_ERROR_CAPTURED_EVENT;
}

ll_cu_result sim_capture_refuse_context(const struct ll_cu_context *context)
{
	ll_cu_result status = LL_CUDA_SUCCESS;
	for (const struct ll_cu_stream *stream = context->streams; stream; stream = stream->next) {
		if (stream->capture)
			status = sim_capture_refuse(stream);
	}
	return status;
}

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
		return LL_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED; /* the capture goes on */
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

static ll_cu_result join(struct ll_cu_stream *stream, const struct ll_cu_event *event)
{
	struct sim_capture *capture = find(event->capture_id);
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
		return join(stream, event);
	if (stream->capture && event->is_recorded) {
		stream->capture->is_invalid = true;
		return LL_CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
	}
	return LL_CUDA_SUCCESS;
}

/* Lets go of all streams, and of the graph unless it is to be kept. */
static void end(struct sim_capture *capture, bool keep_graph)
{
	for (struct ll_cu_context *context = sim_cuda.contexts; context; context = context->next) {
		for (struct ll_cu_stream *stream = context->streams; stream; stream = stream->next) {
			if (stream->capture != capture)
				continue;
			stream->capture = NULL;
			stream->tail.count = 0;
		}
	}
	struct sim_capture **link = &captures;
	while (*link != capture)
		link = &(*link)->next;
	*link = capture->next;
	atomic_fetch_sub(&capture_count, 1);
	if (!keep_graph && capture->owns_graph)
		sim_graph_free(capture->graph);
	free(capture);
}

void sim_capture_forget_stream(struct ll_cu_stream *stream)
{
	struct sim_capture *capture = stream->capture;
	if (!capture)
		return;
	stream->capture = NULL;
	capture->is_invalid = true;
	if (capture->origin == stream)
		end(capture, false);
}

static ll_cu_result begin(struct ll_cu_stream *handle, struct ll_cu_graph *graph, enum ll_cu_capture_mode mode,
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
	struct sim_capture *capture = calloc(1, sizeof *capture);
	bool owns_graph = !graph;
	if (capture && !graph)
		graph = sim_graph_new();
	if (!capture || !graph) {
		free(capture);
		return LL_CUDA_ERROR_OUT_OF_MEMORY;
	}
	*capture = (struct sim_capture){
	    .next = captures,
	    .id = ++last_id,
	    .mode = mode,
	    .owns_graph = owns_graph,
	    .thread = pthread_self(),
	    .origin = stream,
	    .graph = graph,
	};
	captures = capture;
	atomic_fetch_add(&capture_count, 1);
	stream->capture = capture;
	stream->tail.count = 0;
	*ret_stream = stream;
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuStreamBeginCapture_v2(struct ll_cu_stream *handle, enum ll_cu_capture_mode mode)
{
	SIM_ENTER();
	struct ll_cu_stream *stream;
	sim_cuda_lock();
	ll_cu_result status = begin(handle, NULL, mode, &stream);
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
	ll_cu_result status = begin(handle, graph, mode, &stream);
	for (size_t i = 0; !status && i < count; i++) {
		if (!sim_nodes_add(&stream->tail, dependencies[i]))
			status = LL_CUDA_ERROR_OUT_OF_MEMORY;
	}
	sim_cuda_unlock();
	return status;
}

/* Is everything that other streams of the capture have done before what its origin ends with? */
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
	if (capture->mode != LL_CU_STREAM_CAPTURE_MODE_RELAXED && !is_own(capture))
		return LL_CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
	if (capture->is_invalid)
		status = LL_CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	else if (!is_joined(capture))
		status = LL_CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
	if (!status)
		*ret_graph = capture->graph;
	end(capture, !status);
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

/* The stream, and what it is doing. Asking invalidates nothing. */
static ll_cu_result get_status(struct ll_cu_stream *handle, struct ll_cu_stream **ret_stream,
			       enum ll_cu_capture_status *ret_status)
{
	ll_cu_result status = sim_stream_of(handle, ret_stream);
	if (status)
		return status;
	struct ll_cu_stream *stream = *ret_stream;
	if (stream == &stream->context->legacy && has_implicit(stream->context, false))
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

static ll_cu_result update(struct ll_cu_stream *handle, struct ll_cu_graph_node *const *dependencies, size_t count,
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
	/* The program may have handed us our own array. */
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
	ll_cu_result status = update(stream, dependencies, count, flags);
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
	enum ll_cu_capture_mode before = thread_mode;
	thread_mode = *mode;
	*mode = before;
	return LL_CUDA_SUCCESS;
}
