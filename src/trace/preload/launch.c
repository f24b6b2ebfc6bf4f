#include "trace/preload/launch.h"

#include "base/scope.h"
#include "trace/preload/events.h"

/* Makes the stream's context current until leave_context, and returns it. NULL: there is none, or it cannot be made
 * current. */
static struct ll_cu_context *enter_context(struct ll_cu_stream *stream, bool *ret_is_elsewhere)
{
	struct ll_cu_context *current = NULL, *owner = NULL;
	bool has_owner = !ll_stream_is_default(stream) && ll_real()->cuStreamGetCtx(stream, &owner) == LL_CUDA_SUCCESS;
	if (ll_real()->cuCtxGetCurrent(&current) != LL_CUDA_SUCCESS)
		return NULL;
	if (!has_owner || owner == current)
		return current;
	*ret_is_elsewhere = ll_real()->cuCtxPushCurrent_v2(owner) == LL_CUDA_SUCCESS;
	return *ret_is_elsewhere ? owner : NULL;
}

static void leave_context(bool is_elsewhere)
{
	struct ll_cu_context *pushed;
	if (is_elsewhere)
		ll_real()->cuCtxPopCurrent_v2(&pushed);
}

/* Cancellation is disabled in here, because the caller's scope ends only a launch that was returned to it. */
static void begin_timing(struct ll_traced_launch *launch, struct ll_cu_stream *stream, const struct ll_work *work)
{
	LL_SCOPE_NO_CANCEL;
	launch->context = enter_context(stream, &launch->is_elsewhere);
	enum ll_cu_capture_mode mode = ll_stream_exchange_capture_mode(LL_CU_STREAM_CAPTURE_MODE_RELAXED);
	launch->timed = ll_trace_events_begin(launch->context, ll_timing_stream_of(stream), work);
	ll_stream_exchange_capture_mode(mode);
	leave_context(launch->is_elsewhere);
}

struct ll_traced_launch ll_traced_launch_begin(struct ll_cu_stream *stream, struct ll_work work)
{
	struct ll_traced_launch launch = {.errno_before = ll_reentry_enter(), .status = LL_TRACED_LAUNCH_LOST};
	if (work.symbol && !ll_stream_is_captured(stream))
		begin_timing(&launch, stream, &work);
	return launch;
}

/* If the thread did not return from the driver's call, the driver may be in any state, so it is not called. */
static void end_timing(const struct ll_traced_launch *launch)
{
	LL_SCOPE_NO_CANCEL; /* a cancelled thread would leave the launch unfinished */
	if (launch->status == LL_TRACED_LAUNCH_LOST) {
		ll_trace_events_end(launch->timed, false);
		return;
	}
	enum ll_cu_capture_mode mode = ll_stream_exchange_capture_mode(LL_CU_STREAM_CAPTURE_MODE_RELAXED);
	bool is_there = !launch->is_elsewhere || ll_real()->cuCtxPushCurrent_v2(launch->context) == LL_CUDA_SUCCESS;
	ll_trace_events_end(launch->timed, launch->status == LL_CUDA_SUCCESS && is_there);
	leave_context(launch->is_elsewhere && is_there);
	ll_stream_exchange_capture_mode(mode);
}

void ll_traced_launch_end(struct ll_traced_launch *launch)
{
	if (launch->timed)
		end_timing(launch);
	ll_reentry_leave(&launch->errno_before);
}
