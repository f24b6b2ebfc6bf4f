/*
 * The captures, and the calls that they forbid.
 */
#include "cuda/local/capture.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/local/current.h"
#include "cuda/local/event.h"
#include "cuda/local/graph.h"
#include "cuda/local/pump.h"

static struct sim_capture *captures;
static uint64_t last_id;
static _Atomic unsigned capture_count; /* read without the lock */
static _Thread_local enum ll_cu_capture_mode thread_mode = LL_CU_STREAM_CAPTURE_MODE_GLOBAL;

static const struct unsafe {
	const char *symbol;
	bool uses_legacy;
} unsafe[] = {
#define SIM_UNSAFE(symbol, uses_legacy) {#symbol, uses_legacy},
#include "cuda/local/capture_unsafe.def"
};

bool sim_capture_is_own(const struct sim_capture *capture)
{
	return pthread_equal(capture->thread, pthread_self());
}

static bool prohibits_calls(const struct sim_capture *capture)
{
	if (thread_mode == LL_CU_STREAM_CAPTURE_MODE_RELAXED || capture->mode == LL_CU_STREAM_CAPTURE_MODE_RELAXED)
		return false;
	return sim_capture_is_own(capture) ||
	       (thread_mode == LL_CU_STREAM_CAPTURE_MODE_GLOBAL && capture->mode == LL_CU_STREAM_CAPTURE_MODE_GLOBAL);
}

bool sim_capture_is_implicit(const struct ll_cu_context *context, bool invalidate)
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
	    sim_capture_is_implicit(context, true))
		return LL_CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	for (struct sim_capture *capture = captures; capture; capture = capture->next) {
		if (!prohibits_calls(capture))
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
	if (stream == &stream->context->legacy && sim_capture_is_implicit(stream->context, true))
		return LL_CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	return stream->capture && stream->capture->is_invalid ? LL_CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
							      : LL_CUDA_SUCCESS;
}

ll_cu_result sim_capture_refuse(const struct ll_cu_stream *stream)
{
	stream->capture->is_invalid = true;
	return LL_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

struct sim_capture *sim_capture_find(uint64_t id)
{
	struct sim_capture *capture = captures;
	while (capture && capture->id != id)
		capture = capture->next;
	return capture;
}

ll_cu_result sim_capture_refuse_event(const struct ll_cu_event *event)
{
	struct sim_capture *capture = sim_capture_find(event->capture_id);
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

void sim_capture_end(struct sim_capture *capture, bool keep_graph)
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
		sim_capture_end(capture, false);
}

ll_cu_result sim_capture_begin(struct ll_cu_stream *stream, struct ll_cu_graph *graph, enum ll_cu_capture_mode mode)
{
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
	return LL_CUDA_SUCCESS;
}

enum ll_cu_capture_mode sim_capture_exchange_mode(enum ll_cu_capture_mode mode)
{
	enum ll_cu_capture_mode before = thread_mode;
	thread_mode = mode;
	return before;
}
