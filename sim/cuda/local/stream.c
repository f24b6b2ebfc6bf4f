/*
 * Streams: make, find by handle, forget.
 */
#include "cuda/local/stream.h"

#include <stdlib.h>
#include <string.h>

#include "card/context.h"
#include "cuda/local/capture.h"
#include "cuda/local/current.h"
#include "cuda/local/event.h"
#include "cuda/local/state.h"

ll_cu_result sim_stream_make(struct ll_cu_context *context, unsigned flags, int priority,
			     struct ll_cu_stream **ret_stream)
{
	struct sim_world *w = sim_cuda.world;
	struct ll_cu_stream *stream = calloc(1, sizeof *stream);
	if (!stream)
		return LL_CUDA_ERROR_OUT_OF_MEMORY;
	*stream =
	    (struct ll_cu_stream){.magic = SIM_MAGIC_STREAM, .flags = flags, .priority = priority, .context = context};
	sim_lock(w);
	int rc = sim_stream_new(w, context->slot, priority, !(flags & LL_CU_STREAM_NON_BLOCKING), &stream->slot);
	if (rc == 0)
		stream->generation = w->streams[stream->slot].generation;
	sim_unlock(w);
	if (rc < 0) {
		free(stream);
		return LL_CUDA_ERROR_OUT_OF_MEMORY;
	}
	stream->next = context->streams;
	context->streams = stream;
	*ret_stream = stream;
	return LL_CUDA_SUCCESS;
}

/* Finds the context's stream for this thread's per-thread default stream. */
static ll_cu_result find_per_thread(struct ll_cu_context *context, struct ll_cu_stream **ret_stream)
{
	for (struct ll_cu_stream *stream = context->streams; stream; stream = stream->next) {
		if (stream->is_per_thread && pthread_equal(stream->thread, pthread_self())) {
			*ret_stream = stream;
			return LL_CUDA_SUCCESS;
		}
	}
	ll_cu_result status = sim_stream_make(context, LL_CU_STREAM_DEFAULT, 0, ret_stream);
	if (status == LL_CUDA_SUCCESS) {
		(*ret_stream)->is_per_thread = true;
		(*ret_stream)->thread = pthread_self();
	}
	return status;
}

ll_cu_result sim_stream_of(struct ll_cu_stream *handle, struct ll_cu_stream **ret_stream)
{
	struct ll_cu_context *context;
	if (!handle || handle == LL_CU_STREAM_LEGACY || handle == LL_CU_STREAM_PER_THREAD) {
		ll_cu_result status = sim_current(&context);
		if (status)
			return status;
		if (handle == LL_CU_STREAM_PER_THREAD || (!handle && sim_null_is_per_thread))
			return find_per_thread(context, ret_stream);
		*ret_stream = &context->legacy;
		return LL_CUDA_SUCCESS;
	}
	if (handle->magic != SIM_MAGIC_STREAM)
		return LL_CUDA_ERROR_INVALID_HANDLE;
	ll_cu_result status = sim_context_status(handle->context);
	if (status == LL_CUDA_SUCCESS)
		*ret_stream = handle;
	return status;
}

ll_cu_result sim_stream_for_work(struct ll_cu_stream *handle, struct ll_cu_stream **ret_stream)
{
	ll_cu_result status = sim_stream_of(handle, ret_stream);
	return status ? status : sim_capture_admit(*ret_stream);
}

void sim_stream_forget(struct ll_cu_stream *stream)
{
	sim_capture_forget_stream(stream);
	free(stream->tail.at);
	free(stream->edges);
	stream->magic = 0;
	free(stream);
}
