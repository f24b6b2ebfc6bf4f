#include "shim/hooks/launch.h"

#include "base/clock.h"
#include "base/scope.h"
#include "shim/hooks/wait_listener.h"
#include "shim/interpose/real.h"
#include "shim/interpose/stream.h"

/* Whether a capture of any stream was ever begun in this process. If not, the driver is not asked about the stream of
 * each launch. It is still asked about launches that are not just counted, because later drivers may have ways to begin
 * a capture that the library does not know. */
static _Atomic bool captures_begun;

/* The card and the context of a stream. The context is current from enter_place to leave_place. */
struct place {
	struct ll_device_state *dev;   /* NULL: not governed */
	struct ll_cu_context *context; /* NULL: there is none, or it could not be made current */
	struct ll_cu_context *owner; /* the stream's context; NULL: it is a default stream, or the driver did not say */
	bool is_elsewhere;
	bool is_passed; /* the launch is counted and may go; no context was made current */
};

/* Whether the card's gate lets the launch pass. For a process with several device states; with one, the hook itself
 * counts. */
static bool passes_open_gate(struct ll_cu_context *context)
{
	const struct ll_device_state *dev = ll_device_state_known(context);
	return dev && dev->flow && !ll_port_is_lost(dev->claim) && ll_flow_passes_open_gate(dev->flow);
}

static void enter_place(struct place *place, struct ll_cu_stream *stream, bool may_pass)
{
	struct ll_cu_context *current = NULL;
	bool is_lost = false;
	*place = (struct place){0};
	bool has_owner =
	    !ll_stream_is_default(stream) && ll_real()->cuStreamGetCtx(stream, &place->owner) == LL_CUDA_SUCCESS;
	place->is_passed = has_owner && may_pass && passes_open_gate(place->owner);
	if (place->is_passed)
		return;
	bool is_known = has_owner && ll_real()->cuCtxGetCurrent(&current) == LL_CUDA_SUCCESS;
	if (is_known && current && current == place->owner) { /* the usual case: nothing else is asked */
		place->context = current;
		place->dev = ll_device_state_in(current);
		return;
	}
	if (is_known && place->owner != current) {
		place->is_elsewhere = ll_real()->cuCtxPushCurrent_v2(place->owner) == LL_CUDA_SUCCESS;
		is_lost = !place->is_elsewhere;
	}
	place->dev = ll_device_state_current(&place->context);
	if (!place->dev && current && !place->is_elsewhere)
		place->context = current;
	else if (!place->dev && ll_real()->cuCtxGetCurrent(&place->context) != LL_CUDA_SUCCESS)
		place->context = NULL;
	if (is_lost)
		place->context = NULL;
}

static void leave_place(const struct place *place)
{
	struct ll_cu_context *pushed;
	if (place->is_elsewhere)
		ll_real()->cuCtxPopCurrent_v2(&pushed);
}

/* Whether the launch may go without waiting. It is counted then, if it is governed. */
static bool is_counted(const struct ll_launch *launch, const struct place *place)
{
	struct ll_flow *flow = place->dev ? place->dev->flow : NULL;
	if (flow && ll_port_is_lost(place->dev->claim))
		ll_device_state_retake(place->dev);
	if (flow && ll_flow_passes_open_gate(flow))
		return true;
	return !flow || ll_flow_count(flow, launch->context, launch->stream, launch->kind);
}

static bool is_refused(const struct place *place)
{
	return place->dev && ll_device_state_settings()->is_strict && ll_port_is_lost(place->dev->claim) &&
	       !ll_device_state_retake(place->dev);
}

/* Waits for the turn. Tells the listener, if there is one, how long the launch waited. */
static void enter_flow(struct ll_launch *launch, const struct place *place)
{
	launch->flow = place->dev->flow;
	enum ll_cu_capture_mode mode = ll_stream_exchange_capture_mode(LL_CU_STREAM_CAPTURE_MODE_RELAXED);
	ll_wait_listener *listener = ll_wait_listener_find();
	uint64_t start_ns = listener ? ll_now_ns() : 0;
	ll_driver_call_wait_for_turn(true);
	ll_flow_enter(launch->flow, launch->context, launch->stream, launch->kind);
	ll_driver_call_wait_for_turn(false);
	if (listener)
		listener(place->dev->device, place->dev->uuid, start_ns, ll_now_ns());
	ll_stream_exchange_capture_mode(mode);
}

/* If the thread were cancelled in here, the launch would never be ended: the caller's scope ends only a launch that was
 * returned to it. */
static void enter_gate(struct ll_launch *launch, const struct place *place, bool is_gated)
{
	LL_SCOPE_NO_CANCEL;
	if (is_gated)
		enter_flow(launch, place);
	leave_place(place);
}

struct ll_launch ll_launch_begin(struct ll_cu_stream *stream, uint64_t kind)
{
	struct ll_launch launch = {.errno_before = ll_reentry_enter(), .status = LL_LAUNCH_LOST};
	struct place place;
	bool is_asked = atomic_load_explicit(&captures_begun, memory_order_relaxed);
	if (!ll_device_state_is_governed() || (is_asked && ll_stream_is_captured(stream)))
		return launch;
	enter_place(&place, stream, true);
	if (place.is_passed)
		return launch;
	launch.context = place.context;
	launch.stream = ll_timing_stream_of(stream);
	launch.kind = kind;
	launch.is_elsewhere = place.is_elsewhere;
	launch.is_refused = is_refused(&place);
	bool enters =
	    !launch.is_refused && !is_counted(&launch, &place) && (is_asked || !ll_stream_is_captured(stream));
	if (enters || place.is_elsewhere)
		enter_gate(&launch, &place, enters);
	return launch;
}

/* launched_ns: when the driver's call returned; 0 if it failed. */
static void report_end(const struct ll_launch *launch, uint64_t launched_ns)
{
	ll_flow_leave(launch->flow, launch->context, launch->stream, launch->kind, launched_ns);
}

/* Ends a launch. After a call that did not return the driver may be in any state, so it is not called. */
static void leave_gate(const struct ll_launch *launch)
{
	LL_SCOPE_NO_CANCEL; /* if the thread were cancelled here, the launch would never end */
	struct place place = {.is_elsewhere = false};
	uint64_t launched_ns = ll_now_ns();
	if (launch->status == LL_LAUNCH_LOST) {
		report_end(launch, 0);
		return;
	}
	enum ll_cu_capture_mode mode = ll_stream_exchange_capture_mode(LL_CU_STREAM_CAPTURE_MODE_RELAXED);
	if (launch->is_elsewhere)
		place.is_elsewhere = ll_real()->cuCtxPushCurrent_v2(launch->context) == LL_CUDA_SUCCESS;
	bool is_there = place.is_elsewhere == launch->is_elsewhere;
	report_end(launch, launch->status == LL_CUDA_SUCCESS && is_there ? launched_ns : 0);
	leave_place(&place);
	ll_stream_exchange_capture_mode(mode);
}

void ll_launch_end(struct ll_launch *launch)
{
	if (launch->flow)
		leave_gate(launch);
	ll_reentry_leave(&launch->errno_before);
}

struct ll_launch_hold ll_launch_hold_timing(struct ll_cu_stream *stream)
{
	struct place place;
	atomic_store(&captures_begun, true);
	enter_place(&place, stream, false);
	struct ll_launch_hold hold = {.flow = place.dev ? place.dev->flow : NULL,
				      .context = place.context ? place.context : place.owner,
				      .stream = ll_timing_stream_of(stream)};
	leave_place(&place);
	if (hold.flow && !ll_flow_hold(hold.flow))
		hold.flow = NULL;
	return hold;
}

void ll_launch_note_capture(const struct ll_launch_hold *hold)
{
	if (hold->flow)
		ll_flow_note_capture(hold->flow, hold->context, hold->stream);
}

void ll_launch_release_timing(const struct ll_launch_hold *hold)
{
	if (hold->flow)
		ll_flow_release(hold->flow);
}

void ll_launch_forget_stream(struct ll_cu_stream *stream)
{
	struct place place;
	enum ll_cu_capture_mode mode = ll_stream_exchange_capture_mode(LL_CU_STREAM_CAPTURE_MODE_RELAXED);
	enter_place(&place, stream, false);
	struct ll_cu_context *context = place.context ? place.context : place.owner;
	if (place.dev && place.dev->flow && context)
		ll_flow_forget_stream(place.dev->flow, context, ll_timing_stream_of(stream), place.context);
	leave_place(&place);
	ll_stream_exchange_capture_mode(mode);
}
