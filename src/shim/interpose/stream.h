/*
 * stream.h - streams as hooks see them: which stream a handle means, and whether it is being captured. While a stream
 * is being captured, nothing may be asked of it, recorded in it or charged for it.
 */
#ifndef LOADLINE_SHIM_INTERPOSE_STREAM_H
#define LOADLINE_SHIM_INTERPOSE_STREAM_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "shim/interpose/real.h"

/* A stream as launches name it: the handle, and for the per-thread default stream the thread too. */
struct ll_timing_stream {
	struct ll_cu_stream *handle;
	uint64_t thread; /* 0, except for LL_CU_STREAM_PER_THREAD */
};

static inline bool ll_timing_stream_is(struct ll_timing_stream one, struct ll_timing_stream other)
{
	return one.handle == other.handle && one.thread == other.thread;
}

/* The name of the stream that the calling thread means by this handle. */
static inline struct ll_timing_stream ll_timing_stream_of(struct ll_cu_stream *handle)
{
	bool is_own = handle == LL_CU_STREAM_PER_THREAD;
	return (struct ll_timing_stream){.handle = handle, .thread = is_own ? (uint64_t)pthread_self() : 0};
}

/* Whether it is one of the two default streams, which are streams of the thread's current context. */
static inline bool ll_stream_is_default(const struct ll_cu_stream *stream)
{
	return !stream || stream == LL_CU_STREAM_LEGACY || stream == LL_CU_STREAM_PER_THREAD;
}

/* Returns the stream that a variant for per-thread default streams (_ptsz, _ptds) means: for NULL the thread's own. */
static inline struct ll_cu_stream *ll_stream_per_thread(struct ll_cu_stream *stream)
{
	return stream ? stream : LL_CU_STREAM_PER_THREAD;
}

/* Sets the thread's mode, and returns the mode before. In the relaxed mode, what the thread asks and allocates spoils
 * no other thread's capture. */
static inline enum ll_cu_capture_mode ll_stream_exchange_capture_mode(enum ll_cu_capture_mode mode)
{
	ll_real()->cuThreadExchangeStreamCaptureMode(&mode);
	return mode;
}

/* Whether the stream is being captured. The question fails for the legacy stream while another stream is captured.
 * Nothing may be recorded in the legacy stream then either, so this counts as captured. */
static inline bool ll_stream_is_captured(struct ll_cu_stream *stream)
{
	enum ll_cu_capture_status capture = LL_CU_STREAM_CAPTURE_STATUS_NONE;
	ll_cu_result status = ll_real()->cuStreamIsCapturing(stream, &capture);
	return status == LL_CUDA_ERROR_STREAM_CAPTURE_IMPLICIT ||
	       (status == LL_CUDA_SUCCESS && capture != LL_CU_STREAM_CAPTURE_STATUS_NONE);
}

/* Whether the stream has no work. False also if that cannot be asked: the question would end a capture, and a driver
 * may not tell of the capture. */
static inline bool ll_stream_is_idle(struct ll_cu_stream *stream)
{
	enum ll_cu_capture_status capture = LL_CU_STREAM_CAPTURE_STATUS_NONE;
	return ll_real()->cuStreamIsCapturing(stream, &capture) == LL_CUDA_SUCCESS &&
	       capture == LL_CU_STREAM_CAPTURE_STATUS_NONE && ll_real()->cuStreamQuery(stream) == LL_CUDA_SUCCESS;
}

#endif
