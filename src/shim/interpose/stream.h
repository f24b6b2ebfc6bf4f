/*
 * stream.h - finds the stream that a handle means, and whether the stream is being captured. While a stream is being
 * captured, the library must not query it, record events in it or charge for it.
 */
#ifndef LOADLINE_SHIM_INTERPOSE_STREAM_H
#define LOADLINE_SHIM_INTERPOSE_STREAM_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "shim/interpose/real.h"

/* The name of a stream: its handle, and for the per-thread default stream also the thread. */
struct ll_timing_stream {
	struct ll_cu_stream *handle;
	uint64_t thread; /* 0, except for LL_CU_STREAM_PER_THREAD */
};

static inline bool ll_timing_stream_is(struct ll_timing_stream one, struct ll_timing_stream other)
{
	return one.handle == other.handle && one.thread == other.thread;
}

/* Returns the name of the stream that the calling thread means by this handle. */
static inline struct ll_timing_stream ll_timing_stream_of(struct ll_cu_stream *handle)
{
	bool is_own = handle == LL_CU_STREAM_PER_THREAD;
	return (struct ll_timing_stream){.handle = handle, .thread = is_own ? (uint64_t)pthread_self() : 0};
}

/* Returns whether the handle is one of the two default streams. These are streams of the thread's current context. */
static inline bool ll_stream_is_default(const struct ll_cu_stream *stream)
{
	return !stream || stream == LL_CU_STREAM_LEGACY || stream == LL_CU_STREAM_PER_THREAD;
}

/* Returns the stream that a variant for per-thread default streams (_ptsz, _ptds) means. NULL means the thread's own
 * stream. */
static inline struct ll_cu_stream *ll_stream_per_thread(struct ll_cu_stream *stream)
{
	return stream ? stream : LL_CU_STREAM_PER_THREAD;
}

/* Sets the thread's capture mode, and returns the former mode. In the relaxed mode the thread's queries and allocations
 * do not make another thread's capture invalid. */
static inline enum ll_cu_capture_mode ll_stream_exchange_capture_mode(enum ll_cu_capture_mode mode)
{
	ll_real()->cuThreadExchangeStreamCaptureMode(&mode);
	return mode;
}

/* Returns whether the stream is being captured. The query fails for the legacy stream while another stream is being
 * captured. In this case nothing may be recorded in the legacy stream, so it counts as captured. */
static inline bool ll_stream_is_captured(struct ll_cu_stream *stream)
{
	enum ll_cu_capture_status capture = LL_CU_STREAM_CAPTURE_STATUS_NONE;
	ll_cu_result status = ll_real()->cuStreamIsCapturing(stream, &capture);
	return status == LL_CUDA_ERROR_STREAM_CAPTURE_IMPLICIT ||
	       (status == LL_CUDA_SUCCESS && capture != LL_CU_STREAM_CAPTURE_STATUS_NONE);
}

/* Returns whether the stream has no work. Also returns false if the query is not possible, because it would end a
 * capture and the driver may not report the capture. */
static inline bool ll_stream_is_idle(struct ll_cu_stream *stream)
{
	enum ll_cu_capture_status capture = LL_CU_STREAM_CAPTURE_STATUS_NONE;
	return ll_real()->cuStreamIsCapturing(stream, &capture) == LL_CUDA_SUCCESS &&
	       capture == LL_CU_STREAM_CAPTURE_STATUS_NONE && ll_real()->cuStreamQuery(stream) == LL_CUDA_SUCCESS;
}

#endif
