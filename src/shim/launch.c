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

/* Another thread's capture must not be spoiled by what we ask and allocate. */
static enum ll_cu_capture_mode exchange_capture_mode(enum ll_cu_capture_mode mode)
{
	ll_real()->cuThreadExchangeStreamCaptureMode(&mode);
	return mode;
}

/* Where a stream lives; its context is current from enter_place to leave_place. */
struct place {
	struct ll_seat *seat; /* NULL: not governed */
	struct ll_cu_context *context;
	bool is_elsewhere;
};

static bool is_default(const struct ll_cu_stream *stream)
{
	return !stream || stream == LL_CU_STREAM_LEGACY || stream == LL_CU_STREAM_PER_THREAD;
}

static void enter_place(struct place *place, struct ll_cu_stream *stream)
{
	struct ll_cu_context *current = NULL, *owner = NULL;
	bool is_lost = false;
	*place = (struct place){0};
	if (!is_default(stream) && ll_real()->cuStreamGetCtx(stream, &owner) == LL_CUDA_SUCCESS &&
	    ll_real()->cuCtxGetCurrent(&current) == LL_CUDA_SUCCESS && owner != current) {
		place->is_elsewhere = ll_real()->cuCtxPushCurrent_v2(owner) == LL_CUDA_SUCCESS;
		is_lost = !place->is_elsewhere;
	}
	place->seat = ll_seat_current(&place->context);
	if (is_lost)
		place->context = NULL;
}

static void leave_place(const struct place *place)
{
	struct ll_cu_context *pushed;
	if (place->is_elsewhere)
		ll_real()->cuCtxPopCurrent_v2(&pushed);
}

static void begin_there(struct ll_launch *launch, const struct place *place, struct ll_cu_stream *stream, uint64_t kind)
{
	struct ll_mark_stream name = name_stream(stream);
	struct ll_flow *flow = place->seat ? place->seat->flow : NULL;
	if (!flow || ll_flow_count(flow, place->context, name, kind))
		return;
	launch->flow = flow;
	launch->context = place->context;
	launch->stream = name;
	launch->kind = kind;
	launch->is_elsewhere = place->is_elsewhere;
	enum ll_cu_capture_mode mode = exchange_capture_mode(LL_CU_STREAM_CAPTURE_MODE_RELAXED);
	ll_flow_enter(flow, place->context, name, kind);
	exchange_capture_mode(mode);
}

struct ll_launch ll_launch_begin(struct ll_cu_stream *stream, uint64_t kind)
{
	struct ll_launch launch = {.errno_before = ll_reentry_enter(), .status = LL_LAUNCH_LOST};
	struct place place;
	if (!ll_seat_settings() || is_captured(stream))
		return launch;
	enter_place(&place, stream);
	begin_there(&launch, &place, stream, kind);
	leave_place(&place);
	return launch;
}

/* After a lost call the driver may be in any state: then it is not called. */
static void leave_flow(const struct ll_launch *launch)
{
	struct place place = {.is_elsewhere = false};
	if (launch->status == LL_LAUNCH_LOST) {
		ll_flow_leave(launch->flow, launch->context, launch->stream, launch->kind, false);
		return;
	}
	enum ll_cu_capture_mode mode = exchange_capture_mode(LL_CU_STREAM_CAPTURE_MODE_RELAXED);
	if (launch->is_elsewhere)
		place.is_elsewhere = ll_real()->cuCtxPushCurrent_v2(launch->context) == LL_CUDA_SUCCESS;
	bool is_there = place.is_elsewhere == launch->is_elsewhere;
	ll_flow_leave(launch->flow, launch->context, launch->stream, launch->kind,
		      launch->status == LL_CUDA_SUCCESS && is_there);
	leave_place(&place);
	exchange_capture_mode(mode);
}

void ll_launch_end(struct ll_launch *launch)
{
	if (launch->flow)
		leave_flow(launch);
	ll_reentry_leave(&launch->errno_before);
}

struct ll_flow *ll_launch_hold_marks(struct ll_cu_stream *stream)
{
	struct place place;
	enter_place(&place, stream);
	struct ll_flow *flow = place.seat ? place.seat->flow : NULL;
	leave_place(&place);
	if (flow)
		ll_flow_hold(flow);
	return flow;
}

void ll_launch_release_marks(struct ll_flow *const *flow)
{
	if (*flow)
		ll_flow_release(*flow);
}

void ll_launch_forget_stream(struct ll_cu_stream *stream)
{
	struct place place;
	enum ll_cu_capture_mode mode = exchange_capture_mode(LL_CU_STREAM_CAPTURE_MODE_RELAXED);
	enter_place(&place, stream);
	if (place.seat && place.seat->flow && place.context)
		ll_flow_forget_stream(place.seat->flow, place.context, name_stream(stream));
	leave_place(&place);
	exchange_capture_mode(mode);
}
