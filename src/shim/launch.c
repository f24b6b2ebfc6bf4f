#include "shim/launch.h"

#include <pthread.h>

#include "shim/real.h"

static struct ll_mark_stream name_stream(struct ll_cu_stream *stream)
{
	bool is_own = stream == LL_CU_STREAM_PER_THREAD;
	return (struct ll_mark_stream){.handle = stream, .thread = is_own ? (uint64_t)pthread_self() : 0};
}

/* A query of the legacy stream fails while another stream is captured: nothing may be recorded there then either. */
static bool is_captured(struct ll_cu_stream *stream)
{
	enum ll_cu_capture_status capture = LL_CU_STREAM_CAPTURE_STATUS_NONE;
	ll_cu_result status = ll_real()->cuStreamIsCapturing(stream, &capture);
	return status == LL_CUDA_ERROR_STREAM_CAPTURE_IMPLICIT ||
	       (status == LL_CUDA_SUCCESS && capture != LL_CU_STREAM_CAPTURE_STATUS_NONE);
}

static enum ll_cu_capture_mode relax_capture(enum ll_cu_capture_mode mode)
{
	ll_real()->cuThreadExchangeStreamCaptureMode(&mode);
	return mode;
}

struct ll_launch ll_launch_begin(struct ll_cu_stream *stream)
{
	struct ll_launch launch = {.errno_before = ll_reentry_enter()};
	struct ll_seat *seat = ll_seat_current(&launch.context);
	if (!seat || !seat->flow || is_captured(stream))
		return launch;
	launch.flow = seat->flow;
	launch.stream = name_stream(stream);
	enum ll_cu_capture_mode mode = relax_capture(LL_CU_STREAM_CAPTURE_MODE_RELAXED);
	ll_flow_enter(launch.flow, launch.context, launch.stream);
	relax_capture(mode);
	return launch;
}

ll_cu_result ll_launch_end(struct ll_launch *launch, ll_cu_result status)
{
	if (launch->flow) {
		enum ll_cu_capture_mode mode = relax_capture(LL_CU_STREAM_CAPTURE_MODE_RELAXED);
		ll_flow_leave(launch->flow, launch->context, launch->stream, status == LL_CUDA_SUCCESS);
		relax_capture(mode);
	}
	ll_reentry_leave(&launch->errno_before);
	return status;
}
