/*
 * stream.h - streams in this process, and the stream of a program's handle.
 */
#ifndef LOADLINE_SIM_CUDA_LOCAL_STREAM_H
#define LOADLINE_SIM_CUDA_LOCAL_STREAM_H

#include "cuda/local/state.h"

/* Finds the stream of a handle. NULL and the special values mean a stream of this thread's current context. Returns
 * INVALID_HANDLE, or the status of sim_context_status. */
ll_cu_result sim_stream_of(struct ll_cu_stream *handle, struct ll_cu_stream **ret_stream);

/* The same for a call that queues work; it refuses what stream capture forbids. If stream->capture is set, the caller
 * makes a node of the work. */
ll_cu_result sim_stream_for_work(struct ll_cu_stream *handle, struct ll_cu_stream **ret_stream);

/* Makes a stream of a context. A smaller priority runs first. OUT_OF_MEMORY. */
ll_cu_result sim_stream_make(struct ll_cu_context *context, unsigned flags, int priority,
			     struct ll_cu_stream **ret_stream);

/* Frees this process's data of a stream that is no longer in its context's list. */
void sim_stream_forget(struct ll_cu_stream *stream);

#endif
