#include "shim/time/flow.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/scope.h"
#include "shim/link/port.h"
#include "shim/time/agent.h"
#include "shim/time/flow_state.h"

/* The agent ticks at least once a second. If the last tick is older than this, the agent hangs in the driver. */
#define AGENT_HANGS_NS (1500 * LL_NS_PER_MS)
#define CAPTURE_LOOK_NS (100 * LL_NS_PER_US)

int ll_flow_new(struct ll_claim *claim, struct ll_gate_count *count, const struct ll_flow_owner *owner,
		struct ll_flow **ret_flow)
{
	struct ll_flow *flow = calloc(1, sizeof *flow);
	if (!flow)
		return -ENOMEM;
	flow->claim = claim;
	flow->count = count;
	flow->owner = owner;
	atomic_store(&count->launches, 0);
	atomic_store(&count->limit, 0);
	ll_timing_lock_init(&flow->lock);
	int rc = ll_agent_start(flow);
	if (rc < 0) {
		ll_timing_lock_fini(&flow->lock);
		free(flow);
		return rc;
	}
	*ret_flow = flow;
	return 0;
}

void ll_flow_limit_kernels(struct ll_flow *flow, uint64_t max_kernel_ns, bool kills)
{
	pthread_mutex_lock(&flow->lock.mutex);
	flow->max_kernel_ns = max_kernel_ns;
	flow->kills_at_max_kernel = kills;
	pthread_mutex_unlock(&flow->lock.mutex);
}

void ll_flow_end(struct ll_flow *flow)
{
	ll_agent_stop(flow);
	if (!flow->is_lost)
		ll_port_rest(flow->claim, ll_now_ns());
}

_Atomic uint32_t *ll_flow_gate(struct ll_flow *flow)
{
	return ll_port_gate(flow->claim);
}

bool ll_flow_passes_open_gate(struct ll_flow *flow)
{
	return atomic_load_explicit(ll_flow_gate(flow), memory_order_relaxed) == LL_GATE_OPEN &&
	       ll_gate_count_one(flow->count);
}

static void wait_for_turn(struct ll_flow *flow)
{
	uint64_t now_ns = ll_now_ns();
	uint64_t give_up_ns = now_ns + LL_FLOW_LONGEST_WAIT_NS;
	ll_flow_note_launching(flow);
	flow->turn.paused_since_ns = 0;
	if (ll_flow_is_in_turn(flow, now_ns))
		return;
	flow->waiting++;
	for (;;) {
		ll_flow_want(flow, now_ns);
		uint32_t wake_count = ll_port_wake_count(flow->claim);
		ll_flow_tick(flow, now_ns);
		if (ll_flow_may_go(flow) || now_ns >= give_up_ns || flow->is_ending ||
		    ll_flow_passes_stalled_queue(flow, now_ns) || ll_flow_passes_awaited(flow))
			break;
		uint64_t until_ns = ll_flow_sleep_until_ns(flow, now_ns);
		pthread_mutex_unlock(&flow->lock.mutex);
		ll_port_sleep(flow->claim, wake_count, until_ns);
		pthread_mutex_lock(&flow->lock.mutex);
		uint64_t slept_ns = ll_now_ns() - now_ns;
		now_ns += slept_ns;
		ll_port_note_wait(flow->claim, flow->is_in_debt ? LL_WAIT_CAP : LL_WAIT_TURN, slept_ns);
		if (flow->is_in_debt) /* a debt ends by itself, so the launch continues to wait */
			give_up_ns = now_ns + LL_FLOW_LONGEST_WAIT_NS;
	}
	flow->waiting--;
}

/* Counts this launch. If it is like the one before it, some more launches of its kernel are counted too (gate.h). */
static bool count_and_prepay(struct ll_flow *flow, const struct ll_prepaid_kernel *what, uint64_t now_ns)
{
	struct ll_flow_context *known = ll_flow_find_context(flow, what->context);
	bool is_exclusive = flow->look.is_exclusive;
	if (is_exclusive && !ll_flow_may_pass_unheld(flow, known, what->stream))
		return false;
	bool is_like_last = ll_prepaid_is_like_last(&flow->prepaid, what);
	uint32_t most = is_like_last && !is_exclusive ? 1 + LL_PREPAID_MOST : 1;
	struct ll_timing_queue counted = {0};
	if (known)
		counted = ll_timing_count(known->timing, what->stream, what->kernel_key, now_ns, most);
	if (!counted.launches)
		return false;
	if (counted.launches > 1)
		ll_prepaid_give(&flow->prepaid, what, (uint32_t)counted.launches - 1);
	ll_flow_note_launching(flow);
	flow->queued.ns += counted.ns;
	flow->queued.launches += counted.launches;
	return true;
}

/* The driver's calls may be cancellation points. The function disables cancellation, because a cancelled thread would
 * leave the lock held or a launch counted in part. */
bool ll_flow_count(struct ll_flow *flow, struct ll_cu_context *context, struct ll_timing_stream stream,
		   uint64_t kernel_key)
{
	if (atomic_load(&flow->is_ending) || !context)
		return false;
	struct ll_prepaid_kernel what = {context, stream, kernel_key};
	if (ll_prepaid_use(&flow->prepaid, &what)) {
		ll_flow_note_launches(flow, 1);
		return true;
	}
	LL_SCOPE_NO_CANCEL;
	ll_flow_lock(flow);
	uint64_t now_ns = ll_now_ns();
	bool is_shut = atomic_load(ll_port_gate(flow->claim)) == LL_GATE_SHUT;
	bool may_count = flow->look.is_exclusive ? flow->is_wanting : ll_flow_is_in_turn(flow, now_ns);
	bool is_counted = may_count && is_shut && count_and_prepay(flow, &what, now_ns);
	ll_flow_note_launches(flow, is_counted);
	pthread_mutex_unlock(&flow->lock.mutex);
	return is_counted;
}

/* If the agent hangs, the launching thread runs the tick instead. Otherwise the gate would never change. */
static void look_if_agent_hangs(struct ll_flow *flow)
{
	uint64_t now_ns = ll_now_ns();
	if (now_ns >= flow->ticked_ns + AGENT_HANGS_NS)
		ll_flow_tick(flow, now_ns);
}

void ll_flow_enter(struct ll_flow *flow, struct ll_cu_context *context, struct ll_timing_stream stream,
		   uint64_t kernel_key)
{
	if (atomic_load(&flow->is_ending)) /* the agent may hang and hold the lock */
		return;
	LL_SCOPE_NO_CANCEL;
	ll_flow_lock(flow);
	uint32_t gate = atomic_load(ll_port_gate(flow->claim));
	struct ll_flow_context *known = ll_flow_get_context(flow, context);
	ll_flow_use(known);
	if (gate == LL_GATE_SHUT && !ll_flow_waits_on_card(flow, known, stream))
		wait_for_turn(flow);
	else if (gate == LL_GATE_TIMED) /* has no effect if another process shuts the gate meanwhile */
		atomic_compare_exchange_strong(ll_port_gate(flow->claim), &gate, LL_GATE_OPEN);
	look_if_agent_hangs(flow);
	flow->launching++;
	ll_flow_note_launches(flow, 1);
	ll_flow_note_untimed(flow);
	flow->last_context = context;
	flow->last_stream = stream;
	if (known && gate == LL_GATE_OPEN && ll_flow_is_sampled(flow, flow->ticked_ns)) {
		ll_timing_note_typical(known->timing, stream, kernel_key);
		flow->to_sample = 0;
	}
	if (known && !known->is_gone)
		ll_timing_begin(known->timing, stream, kernel_key);
	ll_flow_leave_unused(known);
	pthread_mutex_unlock(&flow->lock.mutex);
}

static void note_queue(struct ll_flow *flow, const struct ll_timing *timing)
{
	flow->is_blind |= ll_timing_is_blind(timing);
	flow->queued = ll_timing_queued(timing);
	ll_flow_set_open_limit(flow, timing);
}

void ll_flow_leave(struct ll_flow *flow, struct ll_cu_context *context, struct ll_timing_stream stream,
		   uint64_t kernel_key, uint64_t launched_ns)
{
	if (atomic_load(&flow->is_ending))
		return;
	LL_SCOPE_NO_CANCEL;
	ll_flow_lock(flow);
	struct ll_flow_context *known = ll_flow_get_context(flow, context);
	ll_flow_use(known);
	if (known)
		ll_timing_end(known->timing, stream, kernel_key, launched_ns);
	if (known && !known->is_gone)
		note_queue(flow, known->timing);
	ll_flow_leave_unused(known);
	flow->launching--;
	pthread_mutex_unlock(&flow->lock.mutex);
}

void ll_flow_note_gap(struct ll_flow *flow, const struct ll_cu_context *context, struct ll_timing_stream stream)
{
	if (atomic_load(&flow->is_ending))
		return;
	LL_SCOPE_NO_CANCEL;
	ll_flow_lock(flow);
	struct ll_flow_context *known = ll_flow_find_context(flow, context);
	if (known)
		ll_timing_note_gap(known->timing, stream);
	pthread_mutex_unlock(&flow->lock.mutex);
}

bool ll_flow_hold(struct ll_flow *flow)
{
	if (atomic_load(&flow->is_ending))
		return false;
	pthread_mutex_lock(&flow->lock.mutex);
	ll_timing_lock_settle(&flow->lock);
	return true;
}

void ll_flow_note_capture(struct ll_flow *flow, struct ll_cu_context *context, struct ll_timing_stream stream)
{
	ll_captures_add(&flow->captures, context, stream);
}

void ll_flow_release(struct ll_flow *flow)
{
	pthread_mutex_unlock(&flow->lock.mutex);
}

bool ll_flow_is_capturing(struct ll_flow *flow)
{
	LL_SCOPE_NO_CANCEL;
	if (!ll_flow_hold(flow))
		return false;
	bool is_capturing = ll_captures_go_on(&flow->captures);
	ll_flow_release(flow);
	return is_capturing;
}

bool ll_flow_begin_wait(struct ll_flow *flow)
{
	LL_SCOPE_NO_CANCEL;
	if (!flow)
		return false;
	bool is_held = ll_flow_hold(flow);
	bool may_wait = !is_held || !ll_captures_go_on(&flow->captures);
	if (may_wait)
		atomic_fetch_add(&flow->context_waits, 1);
	if (is_held)
		ll_flow_release(flow);
	return may_wait;
}

void ll_flow_end_wait(struct ll_flow *flow)
{
	atomic_fetch_sub(&flow->context_waits, 1);
}

bool ll_flow_hold_for_capture(struct ll_flow *flow)
{
	while (ll_flow_hold(flow)) {
		if (!atomic_load(&flow->context_waits))
			return true;
		ll_flow_release(flow);
		ll_sleep_until_ns(ll_now_ns() + CAPTURE_LOOK_NS);
	}
	return false;
}

/* A destructor of the program may call this after ll_flow_end. Then the function returns at once, because the agent may
 * hang and hold the lock. */
void ll_flow_forget_stream(struct ll_flow *flow, struct ll_cu_context *context, struct ll_timing_stream stream,
			   bool is_current)
{
	if (atomic_load(&flow->is_ending))
		return;
	LL_SCOPE_NO_CANCEL;
	ll_flow_lock(flow);
	ll_timing_lock_settle(&flow->lock);
	ll_captures_forget_stream(&flow->captures, stream);
	struct ll_flow_context *known = ll_flow_find_context(flow, context);
	ll_flow_use(known);
	if (known)
		ll_timing_forget_stream(known->timing, stream, is_current);
	ll_flow_leave_unused(known);
	pthread_mutex_unlock(&flow->lock.mutex);
}

void ll_flow_forget_context(struct ll_flow *flow, struct ll_cu_context *context)
{
	if (atomic_load(&flow->is_ending))
		return;
	LL_SCOPE_NO_CANCEL;
	ll_flow_lock(flow);
	ll_timing_lock_settle(&flow->lock);
	ll_flow_tick(flow, ll_now_ns());
	ll_captures_forget_context(&flow->captures, context);
	ll_flow_drop_context(flow, context);
	pthread_mutex_unlock(&flow->lock.mutex);
}
