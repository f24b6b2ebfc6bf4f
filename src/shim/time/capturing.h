/*
 * capturing.h - whether a stream is being captured: then nothing may be asked of it, recorded or charged.
 */
#ifndef LOADLINE_SHIM_TIME_CAPTURING_H
#define LOADLINE_SHIM_TIME_CAPTURING_H

#include <stdbool.h>

#include "shim/interpose/real.h"

/* A query of the legacy stream fails while another stream is captured: nothing may be recorded there then either. */
static inline bool ll_stream_is_captured(struct ll_cu_stream *stream)
{
	enum ll_cu_capture_status capture = LL_CU_STREAM_CAPTURE_STATUS_NONE;
	ll_cu_result status = ll_real()->cuStreamIsCapturing(stream, &capture);
	return status == LL_CUDA_ERROR_STREAM_CAPTURE_IMPLICIT ||
	       (status == LL_CUDA_SUCCESS && capture != LL_CU_STREAM_CAPTURE_STATUS_NONE);
}

/* Whether it has no work. False where that cannot be asked: a capture would end, which a driver may not tell. */
static inline bool ll_stream_is_idle(struct ll_cu_stream *stream)
{
	enum ll_cu_capture_status capture = LL_CU_STREAM_CAPTURE_STATUS_NONE;
	return ll_real()->cuStreamIsCapturing(stream, &capture) == LL_CUDA_SUCCESS &&
	       capture == LL_CU_STREAM_CAPTURE_STATUS_NONE && ll_real()->cuStreamQuery(stream) == LL_CUDA_SUCCESS;
}

#endif
