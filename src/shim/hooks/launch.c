#include "shim/hooks/launch.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/scope.h"
#include "shim/device_state.h"
#include "shim/interpose/real.h"
#include "shim/interpose/reentry.h"
#include "shim/interpose/stream.h"
#include "shim/interpose/wait_listener.h"
#include "shim/say.h"

/* ---- code that a client of MPS cannot load ---- */

/* The line explains the error, because the program may show only "not supported". Older drivers have no special error
 * for it. */
void ll_children_say(const char *symbol, ll_cu_result status)
{
	static _Atomic bool is_said;
	if (is_said || ll_reentry_is_inside() || !ll_device_state_settings())
		return;
	LL_REENTRY_SCOPE();
	/* Drivers before CUDA 12.1 do not report whether the context belongs to a client of MPS. */
	ll_cu_device device;
	int is_mps = 0;
	if (ll_real()->cuCtxGetDevice(&device) != LL_CUDA_SUCCESS)
		device = 0;
	bool is_told =
	    ll_real()->cuDeviceGetAttribute(&is_mps, LL_CU_DEVICE_ATTRIBUTE_MPS_ENABLED, device) == LL_CUDA_SUCCESS;
	bool is_meant = is_mps || (!is_told && status == LL_CUDA_ERROR_CDP_NOT_SUPPORTED);
	if (is_meant && !atomic_exchange(&is_said, true))
		ll_say("%s: CUDA error %d: MPS loads no code that launches kernels from kernels (dynamic parallelism); "
		       "run this program without MPS, by slices",
		       symbol, status);
}

/* ---- launches ---- */

/* True if a capture of any stream has begun in this process. While it is false, the library does not ask the driver
 * about the stream of each launch. It still asks for launches that are not just counted, because a later driver may
 * have functions to begin a capture that the library does not know. */
static _Atomic bool captures_begun;

/* The card and the context of a stream. The context is current from enter_target to leave_target. */
struct target {
	struct ll_device_state *dev;   /* NULL: the card is not governed */
	struct ll_cu_context *context; /* NULL: there is none, or it could not be made current */
	struct ll_cu_context *owner;   /* the stream's context; NULL: a default stream, or not reported by the driver */
	bool is_elsewhere;
	bool is_passed;       /* the launch is counted and may be made; no context was made current */
	ll_cu_result failure; /* the driver's error when the card and context were read */
};

static void enter_target(struct target *target, struct ll_cu_stream *stream, bool may_pass)
{
	struct ll_cu_context *current = NULL;
	ll_cu_result pushed = LL_CUDA_SUCCESS;
	*target = (struct target){0};
	bool has_owner =
	    !ll_stream_is_default(stream) && ll_real()->cuStreamGetCtx(stream, &target->owner) == LL_CUDA_SUCCESS;
	/* For a process with several device states. If there is one, the hook itself counts. */
	const struct ll_device_state *dev = has_owner && may_pass ? ll_device_state_known(target->owner) : NULL;
	target->is_passed = dev && dev->flow && !ll_port_is_lost(dev->claim) && ll_flow_passes_open_gate(dev->flow);
	if (target->is_passed)
		return;
	bool is_known = has_owner && ll_real()->cuCtxGetCurrent(&current) == LL_CUDA_SUCCESS;
	if (is_known && current && current == target->owner) { /* the usual case: the driver is asked nothing else */
		target->context = current;
		target->failure = ll_device_state_find_in(current, &target->dev);
		return;
	}
	if (is_known && target->owner != current) {
		pushed = ll_real()->cuCtxPushCurrent_v2(target->owner);
		target->is_elsewhere = pushed == LL_CUDA_SUCCESS;
	}
	target->failure = ll_device_state_find(&target->context, &target->dev);
	if (!target->failure && !target->dev && ll_real_has_failed(pushed))
		target->failure = pushed;
	if (!target->dev && current && !target->is_elsewhere)
		target->context = current;
	else if (!target->dev && ll_real()->cuCtxGetCurrent(&target->context) != LL_CUDA_SUCCESS)
		target->context = NULL;
	if (pushed != LL_CUDA_SUCCESS)
		target->context = NULL;
}

static void leave_target(const struct target *target)
{
	struct ll_cu_context *pushed;
	if (target->is_elsewhere)
		ll_real()->cuCtxPopCurrent_v2(&pushed);
}

/* Reports the waiting time of the launch to the listener, if there is one. */
static void wait_for_turn(struct ll_launch *launch, const struct target *target)
{
	launch->flow = target->dev->flow;
	enum ll_cu_capture_mode mode = ll_stream_exchange_capture_mode(LL_CU_STREAM_CAPTURE_MODE_RELAXED);
	ll_wait_listener *listener = ll_wait_listener_find();
	uint64_t start_ns = listener ? ll_now_ns() : 0;
	ll_driver_call_wait_for_turn(true);
	ll_flow_enter(launch->flow, launch->context, launch->stream, launch->kernel_key);
	ll_driver_call_wait_for_turn(false);
	if (listener)
		listener(target->dev->device, target->dev->uuid, start_ns, ll_now_ns());
	ll_stream_exchange_capture_mode(mode);
}

struct ll_launch ll_launch_begin(struct ll_cu_stream *stream, uint64_t kernel_key)
{
	struct ll_launch launch = {.errno_before = ll_reentry_enter(), .status = LL_LAUNCH_LOST};
	struct target target;
	bool is_asked = atomic_load_explicit(&captures_begun, memory_order_relaxed);
	if (!ll_device_state_is_governed() || (is_asked && ll_stream_is_captured(stream)))
		return launch;
	enter_target(&target, stream, true);
	if (target.is_passed)
		return launch;
	launch.context = target.context;
	launch.stream = ll_timing_stream_of(stream);
	launch.kernel_key = kernel_key;
	launch.is_elsewhere = target.is_elsewhere;
	/* A launch that cannot be charged, because its card is not known, is not made. */
	launch.refusal = target.failure;
	if (target.dev && ll_device_state_settings()->is_strict && ll_port_is_lost(target.dev->claim) &&
	    !ll_device_state_retake(target.dev))
		launch.refusal = LL_CUDA_ERROR_NOT_PERMITTED;
	struct ll_flow *flow = target.dev ? target.dev->flow : NULL;
	if (!launch.refusal && flow && ll_port_is_lost(target.dev->claim))
		ll_device_state_retake(target.dev);
	/* A launch that is counted need not wait. */
	bool enters = !launch.refusal && flow && !ll_flow_passes_open_gate(flow) &&
		      !ll_flow_count(flow, launch.context, launch.stream, kernel_key) &&
		      (is_asked || !ll_stream_is_captured(stream));
	if (enters || target.is_elsewhere) {
		LL_SCOPE_NO_CANCEL; /* the caller's scope only ends a launch that was returned to it */
		if (enters)
			wait_for_turn(&launch, &target);
		leave_target(&target);
	}
	return launch;
}

/* Ends the launch in the flow. launched_ns: time when the driver's call returned; 0: the call failed. */
static void report_end(const struct ll_launch *launch, uint64_t launched_ns)
{
	ll_flow_leave(launch->flow, launch->context, launch->stream, launch->kernel_key, launched_ns);
}

/* Ends a launch. If the driver's call did not return, the driver may be in any state, so the function does not call it.
 */
static void leave_gate(const struct ll_launch *launch)
{
	LL_SCOPE_NO_CANCEL; /* a thread that is cancelled here would leave the launch without an end */
	struct target target = {.is_elsewhere = false};
	uint64_t launched_ns = ll_now_ns();
	if (launch->status == LL_LAUNCH_LOST) {
		report_end(launch, 0);
		return;
	}
	enum ll_cu_capture_mode mode = ll_stream_exchange_capture_mode(LL_CU_STREAM_CAPTURE_MODE_RELAXED);
	if (launch->is_elsewhere)
		target.is_elsewhere = ll_real()->cuCtxPushCurrent_v2(launch->context) == LL_CUDA_SUCCESS;
	bool is_there = target.is_elsewhere == launch->is_elsewhere;
	report_end(launch, launch->status == LL_CUDA_SUCCESS && is_there ? launched_ns : 0);
	leave_target(&target);
	ll_stream_exchange_capture_mode(mode);
}

void ll_launch_end(struct ll_launch *launch)
{
	if (launch->flow)
		leave_gate(launch);
	ll_reentry_leave(&launch->errno_before);
}

static struct ll_cu_context *context_of(const struct target *target)
{
	return target->context ? target->context : target->owner;
}

struct ll_launch_hold ll_launch_hold_timing(struct ll_cu_stream *stream)
{
	struct target target;
	atomic_store(&captures_begun, true);
	enter_target(&target, stream, false);
	struct ll_launch_hold hold = {.flow = target.dev ? target.dev->flow : NULL,
				      .context = context_of(&target),
				      .stream = ll_timing_stream_of(stream)};
	leave_target(&target);
	if (hold.flow && !ll_flow_hold_for_capture(hold.flow))
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

/* Returns the flow that knows the stream; NULL: none. No capture is made invalid until leave_stream. */
static struct ll_flow *enter_stream(struct target *target, struct ll_cu_stream *stream,
				    enum ll_cu_capture_mode *ret_mode)
{
	*ret_mode = ll_stream_exchange_capture_mode(LL_CU_STREAM_CAPTURE_MODE_RELAXED);
	enter_target(target, stream, false);
	return target->dev && context_of(target) ? target->dev->flow : NULL;
}

static void leave_stream(const struct target *target, enum ll_cu_capture_mode mode)
{
	leave_target(target);
	ll_stream_exchange_capture_mode(mode);
}

void ll_launch_note_gap_shut(struct ll_cu_stream *stream)
{
	LL_REENTRY_SCOPE();
	struct target target;
	bool is_asked = atomic_load_explicit(&captures_begun, memory_order_relaxed);
	if (!ll_device_state_is_governed() || (is_asked && ll_stream_is_captured(stream)))
		return;
	enum ll_cu_capture_mode mode;
	struct ll_flow *flow = enter_stream(&target, stream, &mode);
	if (flow)
		ll_flow_note_gap(flow, context_of(&target), ll_timing_stream_of(stream));
	leave_stream(&target, mode);
}

/* Of an H200 (doc/facts.md). On a slower bus an asynchronous copy counts for less than it takes. */
#define COPY_BYTES_PER_NS 50

uint64_t ll_launch_copy_begin(void)
{
	return ll_device_state_is_governed() && !ll_reentry_is_inside() ? ll_now_ns() : 0;
}

void ll_launch_copy_end(uint64_t since_ns, uint64_t bytes)
{
	struct ll_cu_context *context;
	struct ll_device_state *dev = NULL;
	if (!since_ns)
		return;
	LL_REENTRY_SCOPE();
	uint64_t call_ns = ll_now_ns() - since_ns, bus_ns = bytes / COPY_BYTES_PER_NS;
	if (ll_device_state_find(&context, &dev) == LL_CUDA_SUCCESS && dev)
		ll_port_note_copy(atomic_load(&dev->claim), call_ns > bus_ns ? call_ns : bus_ns);
}

void ll_launch_forget_stream(struct ll_cu_stream *stream)
{
	struct target target;
	enum ll_cu_capture_mode mode;
	struct ll_flow *flow = enter_stream(&target, stream, &mode);
	if (flow)
		ll_flow_forget_stream(flow, context_of(&target), ll_timing_stream_of(stream), target.context);
	leave_stream(&target, mode);
}
