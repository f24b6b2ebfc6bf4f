#include "shim/time/agent.h"

#include <errno.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "base/guest.h"
#include "shim/interpose/real.h"
#include "shim/interpose/reentry.h"
#include "shim/link/port.h"
#include "shim/time/flow_state.h"

enum { STACK_BYTES = 256 * 1024, STOP_NS = 200000000, STOP_PAUSE_NS = 50000 };
/* Time between two heartbeats. A lost claim is noticed within this time. */
#define BEAT_NS (100 * LL_NS_PER_MS)

/* ---- timing events that fail ---- */

/*
 * If the driver fails to record or to read an event, the timing begins again with new events. Until then the agent
 * charges the time in which it sees the streams at work, so that the program's limits still hold.
 *
 * The timing begins again when the card has no work of this program, because new events cannot show when older work
 * ends. This happens at the earliest FIRST_RETRY_NS after the failure, and at the latest LAST_RETRY_NS after it. If the
 * events fail again soon, the earliest time doubles.
 */
#define FIRST_RETRY_NS (10 * LL_NS_PER_MS)
#define LAST_RETRY_NS (1000 * LL_NS_PER_MS)
/* The most time that is charged for work before the failure was noticed. */
#define UNSEEN_NS (20 * LL_NS_PER_MS)

/* Calls `look` for each context whose timing events fail, with that context current. Returns whether any call returned
 * true. */
static bool any_blind(struct ll_flow *flow, bool (*look)(struct ll_timing *timing))
{
	bool is_any = false;
	LL_FLOW_EACH_USED (flow, context) {
		struct ll_cu_context *before;
		if (ll_timing_is_blind(context->timing) &&
		    ll_real()->cuCtxPushCurrent_v2(context->handle) == LL_CUDA_SUCCESS) {
			is_any |= look(context->timing);
			ll_real()->cuCtxPopCurrent_v2(&before);
		}
	}
	return is_any;
}

static void note_blindness(struct ll_flow *flow, uint64_t now_ns)
{
	bool fails_again = flow->blind_since_ns && now_ns - flow->blind_since_ns < 2 * LAST_RETRY_NS;
	uint64_t wait_ns = fails_again ? 2 * flow->blind_wait_ns : FIRST_RETRY_NS;
	flow->blind_wait_ns = wait_ns < LAST_RETRY_NS ? wait_ns : LAST_RETRY_NS;
	flow->blind_since_ns = now_ns;
	if (now_ns - flow->charged_ns > UNSEEN_NS)
		flow->charged_ns = now_ns - UNSEEN_NS;
}

static void tend_blind(struct ll_flow *flow, uint64_t now_ns)
{
	bool is_new = flow->is_blind && !flow->was_blind;
	if (is_new)
		note_blindness(flow, now_ns);
	flow->was_blind = flow->is_blind;
	if (!flow->is_blind)
		return;
	bool has_work = any_blind(flow, ll_timing_has_work_unseen);
	if ((has_work || is_new) && now_ns > flow->charged_ns)
		ll_flow_charge(flow, &(struct ll_timing_stretch){.start_ns = flow->charged_ns,
								 .end_ns = now_ns,
								 .fresh_ns = now_ns - flow->charged_ns});
	flow->charged_ns = now_ns;
	uint64_t blind_ns = now_ns - flow->blind_since_ns;
	if (blind_ns >= LAST_RETRY_NS || (!has_work && blind_ns >= flow->blind_wait_ns))
		any_blind(flow, ll_timing_begin_anew);
}

/* ---- the thread ---- */

/* Reads the time under the lock, so no other thread has used a later time before. */
static uint64_t look_at_flow(struct ll_flow *flow, uint32_t *ret_wake_count, uint64_t *ret_now_ns)
{
	pthread_mutex_lock(&flow->lock.mutex);
	uint64_t now_ns = *ret_now_ns = ll_now_ns();
	*ret_wake_count = ll_port_wake_count(flow->claim);
	uint64_t next_ns = 0;
	if (!flow->is_ending) {
		ll_flow_close_tails(flow);
		tend_blind(flow, now_ns);
		next_ns = ll_flow_tick(flow, now_ns);
		ll_watch_kernels(flow, now_ns);
	}
	pthread_mutex_unlock(&flow->lock.mutex);
	return next_ns;
}

/* For a claim that other processes have cleared. If no new claim is found, the program continues without limits,
 * because launches must not wait for the turn of a lost claim. */
static void replace_claim(struct ll_flow *flow)
{
	bool is_lost = !flow->owner->retake_claim(flow);
	pthread_mutex_lock(&flow->lock.mutex);
	flow->is_lost = is_lost;
	if (is_lost)
		ll_flow_leave_gates(flow);
	pthread_mutex_unlock(&flow->lock.mutex);
}

void ll_agent_move(struct ll_flow *flow, struct ll_claim *claim)
{
	pthread_mutex_lock(&flow->lock.mutex);
	ll_port_wake(flow->claim); /* wakes the agent, which may sleep on the old claim's wake count; if another process
				      uses the slot now, it makes one needless look */
	ll_flow_leave_gates(flow);
	flow->claim = claim;
	flow->turn = (struct ll_turn){0};
	flow->look = (struct ll_turn_look){0};
	flow->is_wanting = false;
	flow->is_lost = false;
	flow->note[0] = '\0';
	pthread_mutex_unlock(&flow->lock.mutex);
}

/* If another process of the tenant got no memory, gives up the memory that this process keeps in reserve. */
static void answer_siblings(struct ll_flow *flow)
{
	uint32_t question = ll_port_is_asked(flow->claim);
	if (!question)
		return;
	flow->owner->give_up_reserve(flow);
	ll_port_reply(flow->claim, question);
}

static void *agent_main(void *arg)
{
	struct ll_flow *flow = arg;
	uint64_t beaten_ns = 0;
	pthread_setname_np(pthread_self(), "ll-agent");
	prctl(PR_SET_TIMERSLACK, 1);
	ll_reentry_depth = 1; /* all driver calls of this thread are the library's own */
	enum ll_cu_capture_mode mode = LL_CU_STREAM_CAPTURE_MODE_RELAXED;
	ll_real()->cuThreadExchangeStreamCaptureMode(&mode);
	for (;;) {
		uint32_t wake_count;
		uint64_t now_ns;
		uint64_t next_ns = look_at_flow(flow, &wake_count, &now_ns);
		if (!next_ns) {
			atomic_store(&flow->has_agent_ended, true);
			return NULL;
		}
		if (now_ns - beaten_ns >= BEAT_NS) {
			if (ll_port_beat(flow->claim, now_ns) == -ESTALE)
				replace_claim(flow);
			flow->owner->tend_memory(flow);
			beaten_ns = now_ns;
		}
		answer_siblings(flow);
		ll_port_sleep(flow->claim, wake_count, next_ns);
	}
}

int ll_agent_start(struct ll_flow *flow)
{
	int rc = ll_guest_thread_start(STACK_BYTES, agent_main, flow, &flow->agent);
	flow->has_agent = rc == 0;
	return rc;
}

/* The deadline is in CLOCK_MONOTONIC, because a wait by the time of day takes longer if that clock is set back. */
void ll_agent_stop(struct ll_flow *flow)
{
	if (!flow->has_agent)
		return;
	uint64_t now_ns = ll_now_ns(), deadline_ns = now_ns + STOP_NS;
	atomic_store(&flow->is_ending, true);
	ll_port_wake(flow->claim);
	while (!atomic_load(&flow->has_agent_ended) && now_ns < deadline_ns) {
		ll_sleep_until_ns(now_ns + STOP_PAUSE_NS);
		now_ns = ll_now_ns();
	}
	if (atomic_load(&flow->has_agent_ended)) /* otherwise the agent hangs in the driver, and the process ends
						    without joining it */
		pthread_join(flow->agent, NULL);
	flow->has_agent = false;
}
